"""Bodies that leave the water and return: the water forces decrease with the wetted fraction of the body.

B is the current buoyancy of the body. B_0 is its buoyancy at rest: its weight, or its full buoyancy if it does not
float. With ``w = min(1, B/B_0)``, the wetted fraction is ``s = w (2 - w)``. It is 0 in the air. At the body's own
draft, where the model was identified, it is 1 with zero slope. Small motions about that draft therefore use the model's
own coefficients. The equation of motion becomes

    (M_RB + s M_A) nu_r' + max(s', 0) M_A nu_r = s (drag, lift, memory, propellers, fins) - (C_RB + s C_A) nu_r + the
    rest.

A body that falls into the water shares its momentum with the water it entrains (von Karman 1929: slamming at entry). A
body that leaves the water leaves that momentum behind. In both cases the sum of (m + s a) v^2 / 2 and the potential
energy only decreases. The model neglects water that the body lifts, spray, air behind a blunt tail and the greater
added mass near the surface. Bodies that cannot heave, and those with a linear restoring matrix instead of a shape, do
not leave the water.
"""

from __future__ import annotations

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_server.dynamics.lanes import add_to, broadcast, element, load, maximum, minimum, select, splat, store
from wavesim_server.dynamics.rows import (
    A_WF_B,
    ADDED_MASS,
    ADDED_MOMENTUM,
    ADDED_MOMENTUM_LEFT,
    BUOYANCY,
    ENVIRONMENT_WRENCH,
    EXTERNAL_WRENCH,
    FORCE,
    FREE_DOFS,
    FULL_BUOYANCY,
    HEAVE_SPEED,
    LANES,
    LINEAR_DRAG,
    LOADS,
    NU,
    NU_R,
    PRESENT,
    QUADRATIC_DRAG,
    TOTAL_INERTIA,
    V_WF_B,
    WEIGHT,
    WET_INERTIA,
    WET_SHARE,
    WET_SHARE_RATE,
)
from wavesim_server.dynamics.types import Floats, Lanes

INSTANT_S = 1e-6  #: s, interval over which the growth of the wetted fraction is measured


@always_inline
def _buoyancy_share(params: Floats, work: Floats) -> Lanes:
    """Return the ratio w for the current buoyancy."""
    at_rest = minimum(broadcast(params, WEIGHT), broadcast(params, FULL_BUOYANCY))
    floats = at_rest > 0.0
    return select(floats, minimum(load(work, BUOYANCY) / select(floats, at_rest, 1.0), 1.0), 1.0)


@device_function
def is_partly_out(block: Floats, params: Floats, work: Floats) -> bool:
    """Store the wetted fraction of each body, and return whether any is less than 1."""
    wet = _buoyancy_share(params, work)
    share = select(broadcast(params, FREE_DOFS + 2) > 0.0, wet * (2.0 - wet), 1.0)
    store(work, WET_SHARE, share)
    least = 1.0
    for l in range(LANES):
        if element(block, PRESENT, l) != 0.0:
            least = min(least, element(work, WET_SHARE, l))
    return least < 1.0


@always_inline
def wet_share_rate(params: Floats, work: Floats) -> None:
    """Store the growth rate of the wetted fraction, from the buoyancy an instant later."""
    wet = _buoyancy_share(params, work)
    growth = (wet * (2.0 - wet) - load(work, WET_SHARE)) / INSTANT_S
    store(work, WET_SHARE_RATE, select(load(work, WET_SHARE) < 1.0, maximum(growth, 0.0), 0.0))


@always_inline
def fade_water_forces(block: Floats, work: Floats) -> None:
    """Scale the water forces in the force rows; actuator and wind forces are not scaled."""
    share = load(work, WET_SHARE)
    for i in range(6):
        force, other = load(work, FORCE + i), load(block, EXTERNAL_WRENCH + i) + load(block, ENVIRONMENT_WRENCH + i)
        store(work, FORCE + i, select(share < 1.0, other + share * (force - other), force))


@device_function
def solve_partly_out(params: Floats, work: Floats, k: int) -> None:
    """Write the accelerations of bodies that are partly out of the water into row k, which contains the accelerations
    of all bodies.

    The force rows contain all loads on these bodies, including drag and Coriolis force as for bodies in the water.
    """
    share = load(work, WET_SHARE)
    dry = 1.0 - share
    for i in range(6):
        drag, momentum, carried = splat(0.0), splat(0.0), splat(0.0)
        for j in range(6):
            o, x = 6 * i + j, load(work, NU_R + j)
            y = load(work, HEAVE_SPEED) if j == 2 else x
            drag = drag + (broadcast(params, LINEAR_DRAG + o) + broadcast(params, QUADRATIC_DRAG + o) * abs(y)) * y
            momentum = momentum + broadcast(params, ADDED_MOMENTUM + o) * x
            carried = carried + broadcast(params, ADDED_MASS + o) * x
        store(work, LOADS + i, load(work, FORCE + i) + dry * drag - load(work, WET_SHARE_RATE) * carried)
        store(work, ADDED_MOMENTUM_LEFT + i, dry * momentum)
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        va, vb, wa, wb = (
            load(work, NU_R + a),
            load(work, NU_R + b),
            load(work, NU_R + 3 + a),
            load(work, NU_R + 3 + b),
        )
        ha, hb = load(work, ADDED_MOMENTUM_LEFT + a), load(work, ADDED_MOMENTUM_LEFT + b)
        add_to(work, LOADS + i, wa * hb - wb * ha)
        ka, kb = load(work, ADDED_MOMENTUM_LEFT + 3 + a), load(work, ADDED_MOMENTUM_LEFT + 3 + b)
        add_to(work, LOADS + 3 + i, wa * kb - wb * ka + va * hb - vb * ha)
    solve_accelerations(params, work)
    for i in range(6):
        rate = load(work, LOADS + i)
        if i < 3:  # acceleration of the water, and its rotation in B
            m, n = (i + 1) % 3, (i + 2) % 3
            turn = load(work, V_WF_B + m) * load(work, NU_R + 3 + n) - load(work, V_WF_B + n) * load(work, NU_R + 3 + m)
            rate = rate + broadcast(params, FREE_DOFS + i) * (turn + load(work, A_WF_B + i))
        store(work, k + NU + i, select(share < 1.0, rate, load(work, k + NU + i)))


@device_function
def solve_accelerations(params: Floats, work: Floats) -> None:
    """Solve for the accelerations through the water, which replace the loads.

    The inertia matrix is positive definite, so the elimination uses its diagonal as pivots.
    """
    dry = 1.0 - load(work, WET_SHARE)
    for i in range(6):
        free = broadcast(params, FREE_DOFS + i)
        for j in range(6):
            o = 6 * i + j
            inertia = broadcast(params, TOTAL_INERTIA + o) - dry * broadcast(params, ADDED_MASS + o)
            store(work, WET_INERTIA + o, free * broadcast(params, FREE_DOFS + j) * inertia)
        add_to(work, WET_INERTIA + 7 * i, 1.0 - free)
        store(work, LOADS + i, free * load(work, LOADS + i))
    for c in range(6):
        for i in range(c + 1, 6):
            factor = load(work, WET_INERTIA + 6 * i + c) / load(work, WET_INERTIA + 7 * c)
            for j in range(c + 1, 6):
                add_to(work, WET_INERTIA + 6 * i + j, -factor * load(work, WET_INERTIA + 6 * c + j))
            add_to(work, LOADS + i, -factor * load(work, LOADS + c))
    for n in range(6):
        i = 5 - n
        left = load(work, LOADS + i)
        for j in range(i + 1, 6):
            left = left - load(work, WET_INERTIA + 6 * i + j) * load(work, LOADS + j)
        store(work, LOADS + i, left / load(work, WET_INERTIA + 7 * i))
