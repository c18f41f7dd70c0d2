"""Integration steps of fixed length, compiled: semi-implicit Euler, classical Runge-Kutta, Dormand & Prince's fifth
order, and the methods of other packages.

Lagged actuators are evaluated exactly at the times of the integrator's stages, so the integrator keeps its order of
convergence. Current, wind and waves are constant over a step. At the end of a step, state and actuator values whose
magnitude is below LEAST become zero, so that a body can come fully to rest.
"""

from __future__ import annotations

import numpy as np

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import shorten, suggest_name
from wavesim_server.dynamics import registry
from wavesim_server.dynamics.extension_points import Integrator
from wavesim_server.dynamics.immersion import is_afloat, submerged_buoyancy
from wavesim_server.dynamics.kernel import evaluate_stage, kinematics, lag_actuators
from wavesim_server.dynamics.lanes import add_to, load, sqrt, store
from wavesim_server.dynamics.rows import (
    ACTUATOR_STATE,
    ASLEEP,
    BLOCK_BODIES,
    BLOCK_MODEL,
    BLOCK_MOORED,
    DERIVATIVES,
    HAS_BALLAST,
    HAS_OTHER,
    HAS_RESTORING,
    HAS_SWIVEL,
    LANES,
    MODEL_FINS,
    MODEL_FLAGS,
    MODEL_STATES,
    MODEL_THRUSTERS,
    NU,
    QW,
    QX,
    QY,
    QZ,
    SLOT_ANGLE,
    SLOT_FIN,
    SLOTS,
    STAGE_ACTUATORS,
    STAGES,
    STATE,
    STATE_ROWS,
)
from wavesim_server.dynamics.types import Floats, Ints
from wavesim_server.elementary import flush

EULER, RK4, DP5 = 0, 1, 2
ALL: tuple[Integrator, ...] = (
    Integrator("euler", (0.0,), ((),), (1.0,), 1.8),  # semi-implicit: see step_block
    Integrator(
        "rk4", (0.0, 0.5, 0.5, 1.0), ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6), 2.5
    ),
    Integrator(  # Dormand & Prince 1980
        "dp5",
        (0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0),
        (
            (),
            (1 / 5,),
            (3 / 40, 9 / 40),
            (44 / 45, -56 / 15, 32 / 9),
            (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
            (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        ),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
        2.8,
    ),
    *registry.INTEGRATORS,
)


def integrator_index(name: str) -> int:
    """Return the index in ``ALL`` of the method with this name. For an unknown name, raises a ConfigError that suggests the
    nearest name.
    """
    names = [i.name for i in ALL]
    if name not in names:
        raise ConfigError(f"unknown integrator '{shorten(name)}'{suggest_name(shorten(name), names)}")
    return names.index(name)


#: coefficients by method and stage; the gain index is -1 for a stage at the start of the step
_WEIGHTS, _SUM = np.zeros((len(ALL), STAGES, STAGES)), np.zeros((len(ALL), STAGES))
_TIME, _GAIN = np.zeros((len(ALL), STAGES)), np.full((len(ALL), STAGES), -1)
_COUNT = np.array([len(i.times) for i in ALL])
for _k, _i in enumerate(ALL):
    for _s, (_time, _weights) in enumerate(zip(_i.times, _i.stages, strict=True)):
        _WEIGHTS[_k, _s, :_s], _TIME[_k, _s] = _weights, _time
        _GAIN[_k, _s] = _i.gains.index(_time) if _time else -1
    _SUM[_k, : len(_i.weights)] = _i.weights


@always_inline
def _keep_actuators(block: Floats, work: Floats, first: int, last: int) -> None:
    """Store the actuators of the last stage for the next step."""
    for k in range(first, last):
        store(block, ACTUATOR_STATE + k, flush(load(work, STAGE_ACTUATORS + k)))


@always_inline
def _add_weighted_stages(to: Floats, work: Floats, first: int, n: int, h: float, weights: Floats, stages: int) -> None:
    """Add h times the weighted derivatives to the rows of an array, from ``first`` on."""
    for s in range(stages):
        weight = weights[s] * h
        if weight != 0.0:
            k = DERIVATIVES + STATE_ROWS * s
            for i in range(n):
                add_to(to, first + i, weight * load(work, k + i))


@device_function
def step_block(
    block: Floats,
    params: Floats,
    work: Floats,
    model_ints: Ints,
    tables: Floats,
    h: float,
    integrator: int,
    moored: bool,
) -> None:
    """Advance one block by one step."""
    flags = model_ints[MODEL_FLAGS]
    # Far below the surface the buoyancy is constant within a step.
    afloat = flags & HAS_RESTORING == 0 and is_afloat(block, params)
    if not afloat:
        submerged_buoyancy(params, work)
    n = model_ints[MODEL_STATES]
    stages = _COUNT[integrator]
    for s in range(stages):
        if integrator == RK4:  # only one earlier stage counts
            weight = _WEIGHTS[RK4, s, max(s - 1, 0)] * h
            k = DERIVATIVES + STATE_ROWS * max(s - 1, 0)
            for i in range(n):
                store(work, STATE + i, load(block, i) + weight * load(work, k + i) if s else load(block, i))
        else:
            for i in range(n):
                store(work, STATE + i, load(block, i))
            _add_weighted_stages(work, work, STATE, n, h, _WEIGHTS[integrator, s], s)
        evaluate_stage(
            block, params, work, model_ints, tables, s, _GAIN[integrator, s], _TIME[integrator, s], afloat, moored
        )
    if integrator == EULER:  # new velocities first, then position and attitude with them
        for i in range(NU, n):
            add_to(work, STATE + i, h * load(work, DERIVATIVES + i))
        kinematics(block, params, work, DERIVATIVES)
        lag_actuators(block, params, work, model_ints, 0, 1.0)
    if integrator == RK4:
        k1, k2, k3, k4 = (
            DERIVATIVES,
            DERIVATIVES + STATE_ROWS,
            DERIVATIVES + 2 * STATE_ROWS,
            DERIVATIVES + 3 * STATE_ROWS,
        )
        for i in range(n):
            total = load(work, k1 + i) + 2.0 * (load(work, k2 + i) + load(work, k3 + i)) + load(work, k4 + i)
            store(block, i, flush(load(block, i) + h / 6.0 * total))
    else:
        _add_weighted_stages(block, work, 0, n, h, _SUM[integrator], stages)
        for i in range(n):
            store(block, i, flush(load(block, i)))
    _keep_actuators(block, work, 0, model_ints[MODEL_THRUSTERS])
    _keep_actuators(block, work, SLOT_FIN, SLOT_FIN + model_ints[MODEL_FINS])
    if flags & (HAS_SWIVEL | HAS_BALLAST | HAS_OTHER):
        _keep_actuators(block, work, SLOT_ANGLE, SLOTS)
    e0, x, y, z = load(block, QW), load(block, QX), load(block, QY), load(block, QZ)
    unit = 1.0 / sqrt(e0 * e0 + x * x + y * y + z * z)
    store(block, QW, e0 * unit)
    store(block, QX, x * unit)
    store(block, QY, y * unit)
    store(block, QZ, z * unit)


@device_function
def step_all(
    blocks: Floats,
    heads: Ints,
    sequence: Ints,
    params: Floats,
    all_model_ints: Ints,
    tables: Floats,
    work: Floats,
    h: float,
    integrator: int,
) -> None:
    """Advance every block by one step.

    ``blocks`` (n, BLOCK), ``heads`` (n, 3), ``sequence`` (n) the order of the blocks, ``params`` (kinds, PARAMS),
    ``kinds`` (kinds, KIND), ``tables`` (t, 2, TABLE_POINTS), ``work`` (WORK).
    """
    for i in sequence:
        awake = float(heads[i, BLOCK_BODIES])
        for l in range(LANES):
            awake -= blocks[i, ASLEEP * LANES + l]
        if awake:
            k = heads[i, BLOCK_MODEL]
            step_block(
                blocks[i], params[k], work, all_model_ints[k], tables, h, integrator, heads[i, BLOCK_MOORED] != 0
            )
