"""Bodies that leave the water, and come back: what the water does to them fades with the part of them that is wet.

With B the buoyancy of now and B_0 that of the body at rest (its weight, or all its buoyancy if it does not float), ``w = min(1, B/B_0)``
and the share is ``s = w (2 - w)``: 1 at its own draft, where the model was identified, with no slope there, so that small motions about
it have the model's own coefficients; 0 in the air.  The equation of motion becomes

    (M_RB + s M_A) nu_r' + max(s', 0) M_A nu_r = s (drag, lift, memory, propellers, fins) - (C_RB + s C_A) nu_r + the rest.

Who falls into the water shares his momentum with what he takes along (von Karman 1929: the blow of entry); who leaves it
leaves that behind.  Both ways (m + s a) v^2 / 2 and the potential together only fall.  Wet water that is lifted off, spray,
air behind a blunt tail and the greater added mass near the surface are left out.  Bodies that cannot heave, and those with a linear
restoring matrix instead of a shape, do not leave the water.
"""

from __future__ import annotations

from wavesim_sdk.kernel_compiler import always_inline, device_function
from wavesim_server.dynamics.lanes import add_to, broadcast, element, load, maximum, minimum, select, splat, store
from wavesim_server.dynamics.rows import (
    ADDED,
    ADDED_MOMENTUM,
    BUOYANCY,
    DL,
    DQ,
    ENV,
    EXT,
    FORCE,
    FREE,
    FULL_B,
    HEAVE,
    INERTIA,
    LANES,
    LOADS,
    MATRIX,
    MOMENTUM,
    NU,
    NUR,
    PRESENT,
    PULL,
    WATER,
    WEIGHT,
    WET,
    WETTING,
)
from wavesim_server.dynamics.types import Floats, Lanes

INSTANT = 1e-6  #: s, over which the wet part is looked at to see how fast it grows


@always_inline
def _part(params: Floats, work: Floats) -> Lanes:
    """w, of the buoyancy of now."""
    at_rest = minimum(broadcast(params, WEIGHT), broadcast(params, FULL_B))
    floats = at_rest > 0.0
    return select(floats, minimum(load(work, BUOYANCY) / select(floats, at_rest, 1.0), 1.0), 1.0)


@device_function
def is_partly_out(block: Floats, params: Floats, work: Floats) -> bool:
    """Store the share of each body, and whether any is less than 1."""
    wet = _part(params, work)
    share = select(broadcast(params, FREE + 2) > 0.0, wet * (2.0 - wet), 1.0)
    store(work, WET, share)
    least = 1.0
    for l in range(LANES):
        if element(block, PRESENT, l) != 0.0:
            least = min(least, element(work, WET, l))
    return least < 1.0


@always_inline
def wetting(params: Floats, work: Floats) -> None:
    """Store how fast the share grows, where the buoyancy is that of an instant later."""
    wet = _part(params, work)
    growth = (wet * (2.0 - wet) - load(work, WET)) / INSTANT
    store(work, WETTING, select(load(work, WET) < 1.0, maximum(growth, 0.0), 0.0))


@always_inline
def fade(block: Floats, work: Floats) -> None:
    """The water's share of the force rows; what is pushed and what the wind does is there in any case."""
    share = load(work, WET)
    for i in range(6):
        force, other = load(work, FORCE + i), load(block, EXT + i) + load(block, ENV + i)
        store(work, FORCE + i, select(share < 1.0, other + share * (force - other), force))


@device_function
def solve(params: Floats, work: Floats, k: int) -> None:
    """Accelerations of bodies that are partly out of the water into row k, where those of all bodies are. The force rows hold all that
    acts on them, of drag and Coriolis force as much as on bodies in the water."""
    share = load(work, WET)
    dry = 1.0 - share
    for i in range(6):
        drag, momentum, carried = splat(0.0), splat(0.0), splat(0.0)
        for j in range(6):
            o, x = 6 * i + j, load(work, NUR + j)
            y = load(work, HEAVE) if j == 2 else x
            drag = drag + (broadcast(params, DL + o) + broadcast(params, DQ + o) * abs(y)) * y
            momentum = momentum + broadcast(params, ADDED_MOMENTUM + o) * x
            carried = carried + broadcast(params, ADDED + o) * x
        store(work, LOADS + i, load(work, FORCE + i) + dry * drag - load(work, WETTING) * carried)
        store(work, MOMENTUM + i, dry * momentum)
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        va, vb, wa, wb = (load(work, NUR + a), load(work, NUR + b), load(work, NUR + 3 + a), load(work, NUR + 3 + b))
        ha, hb = load(work, MOMENTUM + a), load(work, MOMENTUM + b)
        add_to(work, LOADS + i, wa * hb - wb * ha)
        ka, kb = load(work, MOMENTUM + 3 + a), load(work, MOMENTUM + 3 + b)
        add_to(work, LOADS + 3 + i, wa * kb - wb * ka + va * hb - vb * ha)
    accelerate(params, work)
    for i in range(6):
        rate = load(work, LOADS + i)
        if i < 3:  # how the water accelerates, and turns in B
            m, n = (i + 1) % 3, (i + 2) % 3
            turn = load(work, WATER + m) * load(work, NUR + 3 + n) - load(work, WATER + n) * load(work, NUR + 3 + m)
            rate = rate + broadcast(params, FREE + i) * (turn + load(work, PULL + i))
        store(work, k + NU + i, select(share < 1.0, rate, load(work, k + NU + i)))


@device_function
def accelerate(params: Floats, work: Floats) -> None:
    """Accelerations through the water in the place of the loads. Inertia is positive definite, so its diagonal serves as pivots."""
    dry = 1.0 - load(work, WET)
    for i in range(6):
        free = broadcast(params, FREE + i)
        for j in range(6):
            o = 6 * i + j
            inertia = broadcast(params, INERTIA + o) - dry * broadcast(params, ADDED + o)
            store(work, MATRIX + o, free * broadcast(params, FREE + j) * inertia)
        add_to(work, MATRIX + 7 * i, 1.0 - free)
        store(work, LOADS + i, free * load(work, LOADS + i))
    for c in range(6):
        for i in range(c + 1, 6):
            factor = load(work, MATRIX + 6 * i + c) / load(work, MATRIX + 7 * c)
            for j in range(c + 1, 6):
                add_to(work, MATRIX + 6 * i + j, -factor * load(work, MATRIX + 6 * c + j))
            add_to(work, LOADS + i, -factor * load(work, LOADS + c))
    for n in range(6):
        i = 5 - n
        left = load(work, LOADS + i)
        for j in range(i + 1, 6):
            left = left - load(work, MATRIX + 6 * i + j) * load(work, LOADS + j)
        store(work, LOADS + i, left / load(work, MATRIX + 7 * i))
