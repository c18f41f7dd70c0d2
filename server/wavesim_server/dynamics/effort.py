"""Forces and accelerations of single bodies, term by term, on request. The functions are compiled, but the integration
step does not use them.

The terms are those of the equation of motion in :mod:`wavesim_server.dynamics.kernel`, evaluated for the current state
and actuators. With M = M_RB + M_A, they satisfy this equation in the free degrees of freedom:

    M nu' = restoring + drag + actuators + environment + external + contact,

``restoring`` is the weight and the buoyancy relative to the water, which accelerates in waves. ``drag`` includes
-C(nu_r) nu_r and M v_c', the inertial force of a current that accelerates and that turns relative to B. ``contact``
includes the mooring force, and the contact impulses averaged over the last tick.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_kernels.compiler import kernel as entry
from wavesim_sdk import tables
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import aerodynamics, immersion, kernel, terms, water_exit
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.bodies import BodyArrays, ModelArrays
from wavesim_server.dynamics.lanes import element, load, splat, store
from wavesim_server.dynamics.row_tables import row_numbers
from wavesim_server.dynamics.sizes import LANES, SLOTS

#: columns in a row of the `effort` table
ACCELERATION, TOTAL, RESTORING, DRAG, ACTUATORS, ENVIRONMENT, EXTERNAL, CONTACT = (
    tables.EFFORT.first_columns[name]
    for name in ("acceleration", "total", "restoring", "drag", "actuators", "environment", "external", "contact")
)
EFFORT = row_numbers(tables.EFFORT)
# terms that are computed on all lanes of a block at once
_ACTUATORS, _HULL, _RESTORING, _MOORING, _PROPELLERS, _AIRFRAME, _LANE_PARTS = range(0, 42, 6)


class EffortScratch(NamedTuple):
    """Scratch arrays for a block."""

    work: Floats  # (W.SIZE,)
    parts: Floats  # terms that are computed on all lanes of a block at once


def make_scratch(work: Floats) -> EffortScratch:
    """Return the scratch arrays for a block; ``work`` becomes one of them."""
    return EffortScratch(work, np.zeros(_LANE_PARTS * LANES))


@always_inline
def _clear(work: Floats) -> None:
    for i in range(6):
        store(work, W.FORCE + i, splat(0.0))


@always_inline
def _move_to_part(work: Floats, parts: Floats, part: int) -> None:
    """Copy the force rows to the result for one term, and clear them for the next term."""
    for i in range(6):
        store(parts, part + i, load(work, W.FORCE + i))
    _clear(work)


@device_function
def _block_parts(
    block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats, moored: bool, parts: Floats
) -> None:
    """Compute the terms for all bodies in a block; rotation, velocities and buoyancy remain in the work array."""
    flags, k = model_ints[M.FLAGS], W.DERIVATIVES
    for i in range(model_ints[M.STATES]):
        store(work, W.STATE + i, load(block, i))
    for i in range(SLOTS):
        store(work, W.STAGE_ACTUATORS + i, load(block, B.ACTUATOR_STATE + i))
    kernel.kinematics(block, params, work, k)
    if flags & M.HAS_RESTORING == 0 and immersion.is_afloat(block, params):
        kernel.surface_buoyancy(block, params, work, model_ints, tables)
    else:
        immersion.submerged_buoyancy(params, work)
    _clear(work)
    if flags & (M.HAS_THRUSTER_LAW | M.HAS_DERIVATIVES):
        terms.derivative_basis(work, model_ints[M.FIN_COUNT])
    kernel.actuator_forces(block, params, work, model_ints, tables)
    _move_to_part(work, parts, _ACTUATORS)
    kernel.hull_forces(block, params, work, model_ints, 0)
    _move_to_part(work, parts, _HULL)
    if flags & M.HAS_RESTORING:
        terms.restoring(block, params, work)
    if flags & M.HAS_BALLAST:
        terms.ballast(params, work, model_ints[M.TANKS])
    _move_to_part(work, parts, _RESTORING)
    if moored:
        kernel.mooring(block, work, k)
    _move_to_part(work, parts, _MOORING)
    if flags & M.HAS_AERODYNAMICS:
        aerodynamics.propellers(block, params, work, model_ints[M.THRUSTER_COUNT])
    _move_to_part(work, parts, _PROPELLERS)
    if flags & M.HAS_AERODYNAMICS:
        aerodynamics.airframe(block, params, work, model_ints[M.FIN_COUNT])
    _move_to_part(work, parts, _AIRFRAME)


@device_function
def _accelerations(params: Floats, work: Floats, l: int, turn: Floats, jump: Floats, h: float, o: Floats) -> None:
    """Compute the acceleration nu' of a body from its terms. Then add the inertial force M v_c' to the drag term, and
    the contact impulses to the contact term, so that the terms add up to M nu'.

    ``turn`` is v_c', the acceleration of the current in B axes, including the apparent acceleration due to the rotation
    of B.
    """
    wet = element(work, W.WET_SHARE, l)
    for i in range(6):
        load = o[RESTORING + i] + o[DRAG + i] + o[ACTUATORS + i] + o[ENVIRONMENT + i] + o[EXTERNAL + i] + o[CONTACT + i]
        work[(W.LOADS + i) * LANES + l] = load
    if wet < 1.0:
        water_exit.solve_accelerations(params, work)
        for i in range(6):
            o[ACCELERATION + i] = turn[i] + jump[i] / h + element(work, W.LOADS + i, l)
    else:
        for i in range(6):
            o[ACCELERATION + i] = turn[i] + jump[i] / h
            for k in range(6):
                o[ACCELERATION + i] += params[P.MASS_INVERSE + 6 * i + k] * element(work, W.LOADS + k, l)
    for i in range(6):
        for k in range(6):
            if params[P.FREE_DOFS + i] != 0.0 and params[P.FREE_DOFS + k] != 0.0:
                inertia = params[P.TOTAL_INERTIA + 6 * i + k] - (1.0 - wet) * params[P.ADDED_MASS + 6 * i + k]
                o[DRAG + i] += inertia * turn[k]
                o[CONTACT + i] += inertia * jump[k] / h


@device_function
def _fill_row(
    block: Floats, params: Floats, work: Floats, l: int, parts: Floats, jump: Floats, h: float, o: Floats
) -> None:
    """Fill in the row of one body; ``jump`` is the change in its velocity due to contacts in the last tick."""
    nu, momentum, turn = np.empty(6), np.zeros(6), np.zeros(6)
    wet = element(work, W.WET_SHARE, l)
    for i in range(6):
        nu[i] = element(work, W.NU_R + i, l)
    # weight and buoyancy
    buoyancy = element(work, W.BUOYANCY, l)
    net = params[P.WEIGHT] - buoyancy
    down, lever = np.empty(3), np.empty(3)
    for i in range(3):
        down[i] = element(work, W.G_EFF_B + i, l)
        lever[i] = params[P.WEIGHT_MOMENT + i] - buoyancy * element(work, W.BUOYANCY_CENTRE + i, l)
    for i in range(6):
        o[RESTORING + i] = element(parts, _RESTORING + i, l)
        o[ACTUATORS + i] = wet * element(parts, _ACTUATORS + i, l) + element(parts, _PROPELLERS + i, l)
        o[ENVIRONMENT + i] = element(block, B.ENVIRONMENT_WRENCH + i, l)
        o[EXTERNAL + i] = element(block, B.EXTERNAL_WRENCH + i, l)
        o[CONTACT + i] = element(parts, _MOORING + i, l)
        o[DRAG + i] = wet * element(parts, _HULL + i, l) + element(parts, _AIRFRAME + i, l)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        o[RESTORING + i] += net * down[i]
        o[RESTORING + 3 + i] += lever[j] * down[k] - lever[k] * down[j]
    # drag, and -C(nu_r) nu_r by the momentum M nu_r
    for i in range(6):
        for k in range(6):
            speed = element(work, W.HEAVE_SPEED, l) if k == 2 else nu[k]
            o[DRAG + i] -= wet * (
                (params[P.LINEAR_DRAG + 6 * i + k] + params[P.QUADRATIC_DRAG + 6 * i + k] * abs(speed)) * speed
            )
            momentum[i] += (params[P.MASS + 6 * i + k] - (1.0 - wet) * params[P.ADDED_MOMENTUM + 6 * i + k]) * nu[k]
            if wet < 1.0:
                o[DRAG + i] -= element(work, W.WET_SHARE_RATE, l) * params[P.ADDED_MASS + 6 * i + k] * nu[k]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        o[DRAG + i] -= nu[3 + j] * momentum[k] - nu[3 + k] * momentum[j]
        o[DRAG + 3 + i] -= nu[3 + j] * momentum[3 + k] - nu[3 + k] * momentum[3 + j]
        o[DRAG + 3 + i] -= nu[j] * momentum[k] - nu[k] * momentum[j]
        turn[i] = (
            element(work, W.V_WF_B + j, l) * nu[3 + k]
            - element(work, W.V_WF_B + k, l) * nu[3 + j]
            + element(work, W.A_WF_B + i, l)
        )
        turn[i] *= params[P.FREE_DOFS + i]
    _accelerations(params, work, l, turn, jump, h, o)
    for i in range(6):
        o[TOTAL + i] = (
            o[RESTORING + i] + o[DRAG + i] + o[ACTUATORS + i] + o[ENVIRONMENT + i] + o[EXTERNAL + i] + o[CONTACT + i]
        )


@entry
def fill_efforts(
    f: BodyArrays,
    models: ModelArrays,
    scratch: EffortScratch,
    rows: Ints,
    last: Floats,
    faults: Ints,
    h: float,
    out: Floats,
) -> None:
    """Fill in rows in the `effort` table, given as a flat view (capacity, EFFORT).

    ``last`` contains the state of each body before its last contacts. The function is fastest if the rows are in the
    order of their slots.
    """
    jump, work, parts = np.zeros(6), scratch.work, scratch.parts
    before = -1
    for i in range(rows.shape[0]):
        row = rows[i]
        block, l = f.slots[row] // LANES, f.slots[row] % LANES
        b, k = f.blocks[block], f.block_heads[block, B.HEAD_MODEL]
        p = f.params[k]
        if faults[row]:  # its state diverged, and it is frozen
            for c in range(EFFORT):
                out[row, c] = 0.0
            continue
        if block != before:
            moored = f.block_heads[block, B.HEAD_MOORED] != 0
            _block_parts(b, p, work, models.ints[k], models.tables, moored, parts)
            before = block
        for c in range(6):
            jump[c] = element(b, B.NU + c, l) - last[row, B.NU + c]
        _fill_row(b, p, work, l, parts, jump, h, out[row])
