"""Bodies that leave the water and return to it. The water forces decrease with the wetted fraction of the body.

B is the current buoyancy of the body. B_0 is its buoyancy at rest: the weight of a floating body, or the full buoyancy
of a body that does not float. With ``w = min(1, B/B_0)``, the wetted fraction is ``s = w (2 - w)``. In the air, this
fraction is 0. At the body's own draft, where the model was identified, it is 1 with zero slope. Therefore, small
motions about that draft use the model's own coefficients. The equation of motion then takes this form:

    (M_RB + s M_A) nu_r' + max(s', 0) M_A nu_r = s (drag, lift, memory, propellers, fins) - (C_RB + s C_A) nu_r + the
    rest.

A body that falls into the water shares its momentum with the water that it entrains (von Karman 1929: slamming at
entry). A body that leaves the water leaves that momentum behind. In both cases, the sum of (m + s a) v^2 / 2 and the
potential energy can only decrease. The model neglects water that the body lifts, spray, air behind a blunt tail, and
the greater added mass near the surface. Bodies that cannot heave, and bodies with a linear restoring matrix instead of
a shape, do not leave the water.
"""

from __future__ import annotations

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.lanes import add_to, broadcast, element, load, maximum, minimum, select, splat, store
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.dynamics.types import Lanes

INSTANT_S = 1e-6  #: interval in s over which the growth of the wetted fraction is measured


@always_inline
def _buoyancy_share(params: Floats, work: Floats) -> Lanes:
    """Return the ratio w of the current buoyancy to the buoyancy at rest."""
    at_rest = minimum(broadcast(params, P.WEIGHT), broadcast(params, P.FULL_BUOYANCY))
    floats = at_rest > 0.0
    return select(floats, minimum(load(work, W.BUOYANCY) / select(floats, at_rest, 1.0), 1.0), 1.0)


@device_function
def is_partly_out(block: Floats, params: Floats, work: Floats) -> bool:
    """Store the wetted fraction of each body, and return whether any fraction is less than 1."""
    wet = _buoyancy_share(params, work)
    share = select(broadcast(params, P.FREE_DOFS + 2) > 0.0, wet * (2.0 - wet), 1.0)
    store(work, W.WET_SHARE, share)
    least = 1.0
    for l in range(LANES):
        if element(block, B.PRESENT, l) != 0.0:
            least = min(least, element(work, W.WET_SHARE, l))
    return least < 1.0


@always_inline
def wet_share_rate(params: Floats, work: Floats) -> None:
    """Store the rate at which the wetted fraction grows. The rate is computed from the buoyancy INSTANT_S later."""
    wet = _buoyancy_share(params, work)
    growth = (wet * (2.0 - wet) - load(work, W.WET_SHARE)) / INSTANT_S
    store(work, W.WET_SHARE_RATE, select(load(work, W.WET_SHARE) < 1.0, maximum(growth, 0.0), 0.0))


@always_inline
def fade_water_forces(block: Floats, work: Floats) -> None:
    """Scale the water forces in the force rows; actuator and wind forces are not scaled."""
    share = load(work, W.WET_SHARE)
    for i in range(6):
        force, other = (
            load(work, W.FORCE + i),
            load(block, B.EXTERNAL_WRENCH + i) + load(block, B.ENVIRONMENT_WRENCH + i),
        )
        store(work, W.FORCE + i, select(share < 1.0, other + share * (force - other), force))


@device_function
def solve_partly_out(params: Floats, work: Floats, k: int) -> None:
    """Write the accelerations of those bodies that are partly out of the water into row k, which contains the
    accelerations of all bodies.

    The force rows contain all loads on these bodies, including drag and Coriolis forces as for bodies in the water.
    """
    share = load(work, W.WET_SHARE)
    dry = 1.0 - share
    for i in range(6):
        drag, momentum, carried = splat(0.0), splat(0.0), splat(0.0)
        for j in range(6):
            o, x = 6 * i + j, load(work, W.NU_R + j)
            y = load(work, W.HEAVE_SPEED) if j == 2 else x
            drag = drag + (broadcast(params, P.LINEAR_DRAG + o) + broadcast(params, P.QUADRATIC_DRAG + o) * abs(y)) * y
            momentum = momentum + broadcast(params, P.ADDED_MOMENTUM + o) * x
            carried = carried + broadcast(params, P.ADDED_MASS + o) * x
        store(work, W.LOADS + i, load(work, W.FORCE + i) + dry * drag - load(work, W.WET_SHARE_RATE) * carried)
        store(work, W.ADDED_MOMENTUM_LEFT + i, dry * momentum)
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        va, vb, wa, wb = (
            load(work, W.NU_R + a),
            load(work, W.NU_R + b),
            load(work, W.NU_R + 3 + a),
            load(work, W.NU_R + 3 + b),
        )
        ha, hb = load(work, W.ADDED_MOMENTUM_LEFT + a), load(work, W.ADDED_MOMENTUM_LEFT + b)
        add_to(work, W.LOADS + i, wa * hb - wb * ha)
        ka, kb = load(work, W.ADDED_MOMENTUM_LEFT + 3 + a), load(work, W.ADDED_MOMENTUM_LEFT + 3 + b)
        add_to(work, W.LOADS + 3 + i, wa * kb - wb * ka + va * hb - vb * ha)
    solve_accelerations(params, work)
    for i in range(6):
        rate = load(work, W.LOADS + i)
        if i < 3:  # acceleration of the water, and its rotation in B
            m, n = (i + 1) % 3, (i + 2) % 3
            turn = load(work, W.V_WF_B + m) * load(work, W.NU_R + 3 + n) - load(work, W.V_WF_B + n) * load(
                work, W.NU_R + 3 + m
            )
            rate = rate + broadcast(params, P.FREE_DOFS + i) * (turn + load(work, W.A_WF_B + i))
        store(work, k + B.NU + i, select(share < 1.0, rate, load(work, k + B.NU + i)))


@device_function
def solve_accelerations(params: Floats, work: Floats) -> None:
    """Solve for the accelerations relative to the water, and store them in place of the loads.

    The inertia matrix is positive definite, so the elimination uses its diagonal as pivots.
    """
    dry = 1.0 - load(work, W.WET_SHARE)
    for i in range(6):
        free = broadcast(params, P.FREE_DOFS + i)
        for j in range(6):
            o = 6 * i + j
            inertia = broadcast(params, P.TOTAL_INERTIA + o) - dry * broadcast(params, P.ADDED_MASS + o)
            store(work, W.WET_INERTIA + o, free * broadcast(params, P.FREE_DOFS + j) * inertia)
        add_to(work, W.WET_INERTIA + 7 * i, 1.0 - free)
        store(work, W.LOADS + i, free * load(work, W.LOADS + i))
    for c in range(6):
        for i in range(c + 1, 6):
            factor = load(work, W.WET_INERTIA + 6 * i + c) / load(work, W.WET_INERTIA + 7 * c)
            for j in range(c + 1, 6):
                add_to(work, W.WET_INERTIA + 6 * i + j, -factor * load(work, W.WET_INERTIA + 6 * c + j))
            add_to(work, W.LOADS + i, -factor * load(work, W.LOADS + c))
    for n in range(6):
        i = 5 - n
        left = load(work, W.LOADS + i)
        for j in range(i + 1, 6):
            left = left - load(work, W.WET_INERTIA + 6 * i + j) * load(work, W.LOADS + j)
        store(work, W.LOADS + i, left / load(work, W.WET_INERTIA + 7 * i))
