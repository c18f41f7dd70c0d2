"""Compiled kernels for the waves that a hull radiates. Oscillators driven by the motion of the hull represent these
waves.

    q'' + R q' + diag(w^2) q = B nu_r,   tau = -B^T q'

R is symmetric without negative eigenvalues, so the energy (q'^2 + w^2 q^2)/2 of the oscillators grows by no more than
the energy that the hull supplies. Therefore, the model of the retardation forces (Cummins 1962) is passive for any
coefficients.
"""

from __future__ import annotations

from wavesim_kernels.compiler import always_inline
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.lanes import add_to, broadcast, load, store


@always_inline
def oscillators(params: Floats, work: Floats, model_ints: Ints, stage: int) -> None:
    """Write the derivatives of the oscillators at an integrator stage, and add the wave force to the force rows."""
    n, first = model_ints[M.OSCILLATOR_COUNT], model_ints[M.FIRST_OSCILLATOR]
    place = W.STATE + B.MEMORY_STATE + first
    k = W.DERIVATIVES + B.STATE_ROWS * stage + B.RIGID_ROWS + first
    for i in range(n):
        b = P.OSCILLATOR_COUPLING + 6 * i
        motion = (
            broadcast(params, b) * load(work, W.NU_R)
            + broadcast(params, b + 1) * load(work, W.NU_R + 1)
            + broadcast(params, b + 2) * load(work, W.HEAVE_SPEED)
            + broadcast(params, b + 3) * load(work, W.NU_R + 3)
            + broadcast(params, b + 4) * load(work, W.NU_R + 4)
            + broadcast(params, b + 5) * load(work, W.NU_R + 5)
        )
        drive = load(work, W.WET_SHARE) * motion - broadcast(params, P.OSCILLATOR_SQUARE + i) * load(work, place + i)
        for j in range(n):
            drive = drive - broadcast(params, P.OSCILLATOR_DAMPING + n * i + j) * load(work, place + n + j)
        rate = load(work, place + n + i)
        store(work, k + i, rate)
        store(work, k + n + i, drive)
        for j in range(6):
            add_to(work, W.FORCE + j, -(broadcast(params, b + j) * rate))
