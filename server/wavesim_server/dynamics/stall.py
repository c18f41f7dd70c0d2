"""Correction of the linear fin force beyond stall, computed separately for each lane in which a fin stalls."""

from __future__ import annotations

import math

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.lanes import broadcast, element, load, maximum, splat, store
from wavesim_server.dynamics.sizes import LANES, SLOT_FIN, THRUSTERS
from wavesim_server.dynamics.terms import speed_along
from wavesim_server.elementary import sin_cos


@device_function
def _beyond(params: Floats, k: int, angle: float, along: float, wn: float) -> float:
    """Return the correction of the normal force of fin k, whose angle in the linear law, delta - w_n/u, exceeds
    FIN_STALL.

    Between the stall angle a_s and 90 deg, the normal force has the form of Viterna and Corrigan (1982):
    CN = CN90 sin(a) + (CN_s - CN90 sin(a_s)) (cos(a)^2 / sin(a)) (sin(a_s) / cos(a_s)^2), where a is the true angle of
    attack and CN_s the linear law's coefficient at a_s. The linear force, including the inflow term (part of the fin or of the
    body's lift), is subtracted.
    """
    stall, forward = params[P.FIN_STALL + k], abs(along)
    speed2 = along * along + wn * wn
    if speed2 == 0.0:
        return 0.0
    turned = angle if along >= 0.0 else -angle
    sine, cosine = sin_cos(turned)
    across = forward * sine - wn * cosine
    slope = turned - stall if forward * turned > wn else turned + stall  # w_n/u at the stall
    square = 1.0 + slope * slope
    s_stall = min(abs(sine - slope * cosine) / math.sqrt(square), 1.0)
    s = min(max(abs(across) / math.sqrt(speed2), s_stall), 1.0)
    plate = params[P.FIN_PLATE + k]
    ahead = params[P.FIN_SLOPE + k] * stall / square - plate * s_stall
    spread = (1.0 - s * s) * s_stall / (s * max(1.0 - s_stall * s_stall, 1e-9))
    size = params[P.FIN_LIFT + k] / params[P.FIN_SLOPE + k] * speed2 * (plate * s + ahead * spread)
    return (size if across >= 0.0 else -size) - params[P.FIN_LIFT + k] * forward * (along * angle - wn)


@device_function
def _stall_lane(block: Floats, params: Floats, work: Floats, count: int, l: int) -> None:
    """Add the forces of the stalled fins of one lane."""
    for k in range(count):
        along = (
            element(work, W.NU_R, l)
            + element(work, W.NU_R + 4, l) * params[P.FIN_PLACE_Z + k]
            - element(work, W.NU_R + 5, l) * params[P.FIN_PLACE_Y + k]
        )
        wn = 0.0
        for i in range(6):
            wn += params[P.FIN_WRENCH + 6 * k + i] * element(work, W.NU_R + i, l)
        angle = element(work, W.STAGE_ACTUATORS + SLOT_FIN + k, l)
        if params[P.FIN_STALL + k] > 0.0 and abs(along * angle - wn) > params[P.FIN_STALL + k] * abs(along):
            size = _beyond(params, k, angle, along, wn) * element(block, B.ACTUATOR_EFFECT + THRUSTERS + k, l)
            for i in range(6):
                work[(W.FORCE + i) * LANES + l] += params[P.FIN_WRENCH + 6 * k + i] * size


@always_inline
def forces(block: Floats, params: Floats, work: Floats, count: int) -> None:
    """Correct fins with the linear law that are beyond stall; the results of the others do not change."""
    worst = splat(0.0)
    for k in range(count):
        if params[P.FIN_STALL + k] > 0.0:
            u, q, r = load(work, W.NU_R), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
            along = u + q * broadcast(params, P.FIN_PLACE_Z + k) - r * broadcast(params, P.FIN_PLACE_Y + k)
            wn = speed_along(params, P.FIN_WRENCH + 6 * k, work)
            attack = abs(along * load(work, W.STAGE_ACTUATORS + SLOT_FIN + k) - wn)
            worst = maximum(worst, attack - broadcast(params, P.FIN_STALL + k) * abs(along))
    store(work, W.LANE_SCRATCH, worst)
    for l in range(LANES):
        if element(work, W.LANE_SCRATCH, l) > 0.0:
            _stall_lane(block, params, work, count, l)
