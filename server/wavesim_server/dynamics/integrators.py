"""Integration steps of fixed length, compiled: semi-implicit Euler, classical Runge-Kutta, the fifth-order method of
Dormand & Prince, and methods from other packages.

Lagged actuators are evaluated exactly at the times of the integrator's stages, so the integrator keeps its order of
convergence. Current, wind and waves are constant over a step. At the end of a step, state and actuator values whose
magnitude is below LEAST become zero, so that a body can come fully to rest.
"""

from __future__ import annotations

import numpy as np

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import shorten, suggest_name
from wavesim_server.array_tables import prefetch
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import registry
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.bodies import BodyArrays, ModelArrays
from wavesim_server.dynamics.extension_points import Integrator
from wavesim_server.dynamics.immersion import is_afloat, submerged_buoyancy
from wavesim_server.dynamics.kernel import Stage, evaluate_stage, kinematics, lag_actuators
from wavesim_server.dynamics.lanes import add_to, load, sqrt, store
from wavesim_server.dynamics.sizes import LANES, SLOT_ANGLE, SLOT_FIN, SLOTS, STAGES, THRUSTERS
from wavesim_server.elementary import flush

EULER, RK4, DP5 = 0, 1, 2
CACHE_LINE_ROWS = 8 // LANES  #: number of rows of a block in a cache line of 64 bytes
USUAL_THRUSTERS, USUAL_FINS = 8, 4  #: numbers of actuators whose rows are prefetched
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
    """Return the index in ``ALL`` of the method with this name. Raises ConfigError, suggesting the most similar name,
    if the name is unknown.
    """
    names = [i.name for i in ALL]
    if name not in names:
        raise ConfigError(f"unknown integrator '{shorten(name)}'{suggest_name(shorten(name), names)}")
    return names.index(name)


#: coefficients by method and stage; the index in _GAIN is -1 for a stage at the start of the step
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
    """Store the actuator values at the last stage, for use in the next step."""
    for k in range(first, last):
        store(block, B.ACTUATOR_STATE + k, flush(load(work, W.STAGE_ACTUATORS + k)))


@always_inline
def _add_weighted_stages(to: Floats, work: Floats, first: int, n: int, h: float, weights: Floats, stages: int) -> None:
    """Add h times the weighted derivatives to the rows of an array, beginning with row ``first``."""
    for s in range(stages):
        weight = weights[s] * h
        if weight != 0.0:
            k = W.DERIVATIVES + B.STATE_ROWS * s
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
    flags = model_ints[M.FLAGS]
    # Far below the surface the buoyancy is constant within a step.
    afloat = flags & M.HAS_RESTORING == 0 and is_afloat(block, params)
    if not afloat:
        submerged_buoyancy(params, work)
    n = model_ints[M.STATES]
    stages = _COUNT[integrator]
    for s in range(stages):
        if integrator == RK4:  # only one earlier stage counts
            weight = _WEIGHTS[RK4, s, max(s - 1, 0)] * h
            k = W.DERIVATIVES + B.STATE_ROWS * max(s - 1, 0)
            for i in range(n):
                store(work, W.STATE + i, load(block, i) + weight * load(work, k + i) if s else load(block, i))
        else:
            for i in range(n):
                store(work, W.STATE + i, load(block, i))
            _add_weighted_stages(work, work, W.STATE, n, h, _WEIGHTS[integrator, s], s)
        stage = Stage(s, _GAIN[integrator, s], _TIME[integrator, s])
        evaluate_stage(block, params, work, model_ints, tables, stage, afloat, moored)
    if integrator == EULER:  # new velocities first, then position and attitude with them
        for i in range(B.NU, n):
            add_to(work, W.STATE + i, h * load(work, W.DERIVATIVES + i))
        kinematics(block, params, work, W.DERIVATIVES)
        lag_actuators(block, params, work, model_ints, 0, 1.0)
    if integrator == RK4:
        k1, k2, k3, k4 = (
            W.DERIVATIVES,
            W.DERIVATIVES + B.STATE_ROWS,
            W.DERIVATIVES + 2 * B.STATE_ROWS,
            W.DERIVATIVES + 3 * B.STATE_ROWS,
        )
        for i in range(n):
            total = load(work, k1 + i) + 2.0 * (load(work, k2 + i) + load(work, k3 + i)) + load(work, k4 + i)
            store(block, i, flush(load(block, i) + h / 6.0 * total))
    else:
        _add_weighted_stages(block, work, 0, n, h, _SUM[integrator], stages)
        for i in range(n):
            store(block, i, flush(load(block, i)))
    _keep_actuators(block, work, 0, model_ints[M.THRUSTER_COUNT])
    _keep_actuators(block, work, SLOT_FIN, SLOT_FIN + model_ints[M.FIN_COUNT])
    if flags & (M.HAS_SWIVEL | M.HAS_BALLAST | M.HAS_OTHER):
        _keep_actuators(block, work, SLOT_ANGLE, SLOTS)
    e0, x, y, z = load(block, B.QW), load(block, B.QX), load(block, B.QY), load(block, B.QZ)
    unit = 1.0 / sqrt(e0 * e0 + x * x + y * y + z * z)
    store(block, B.QW, e0 * unit)
    store(block, B.QX, x * unit)
    store(block, B.QY, y * unit)
    store(block, B.QZ, z * unit)


@always_inline
def _prefetch_rows(block: Floats, first: int, count: int) -> None:
    """Prefetch consecutive rows of a block."""
    for row in range(first, first + count, CACHE_LINE_ROWS):
        prefetch(block, row * LANES)


@always_inline
def prefetch_block(block: Floats) -> None:
    """While another block is being advanced, prefetch the rows that a step reads for most models. Blocks of large
    fleets are not in the first-level cache, and their rows are too far apart for the processor's own prefetcher.
    """
    _prefetch_rows(block, B.PX, B.RIGID_ROWS)
    for group in (B.ACTUATOR_STATE, B.ACTUATOR_COMMAND, B.ACTUATOR_EFFECT):
        _prefetch_rows(block, group, USUAL_THRUSTERS)
    for group in (B.ACTUATOR_STATE + SLOT_FIN, B.ACTUATOR_COMMAND + SLOT_FIN, B.ACTUATOR_EFFECT + THRUSTERS):
        _prefetch_rows(block, group, USUAL_FINS)
    _prefetch_rows(block, B.V_WF_W, B.MOORING - B.V_WF_W)
    _prefetch_rows(block, B.ASLEEP, 2)


@device_function
def step_all(f: BodyArrays, models: ModelArrays, sequence: Ints, work: Floats, h: float, integrator: int) -> None:
    """Advance the blocks in ``sequence`` by one step. ``work`` (W.SIZE) is scratch space."""
    for place in range(sequence.shape[0]):
        i = sequence[place]
        if place + 1 < sequence.shape[0]:
            prefetch_block(f.blocks[sequence[place + 1]])
        awake = float(f.block_heads[i, B.HEAD_BODIES])
        for l in range(LANES):
            awake -= f.blocks[i, B.ASLEEP * LANES + l]
        if awake:
            k, moored = f.block_heads[i, B.HEAD_MODEL], f.block_heads[i, B.HEAD_MOORED] != 0
            step_block(f.blocks[i], f.params[k], work, models.ints[k], models.tables, h, integrator, moored)
