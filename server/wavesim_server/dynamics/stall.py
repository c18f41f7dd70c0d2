"""Correction to the linear fin force beyond stall. It is computed only while a fin in the block is stalled."""

from __future__ import annotations

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.lanes import any_lane, broadcast, load, maximum, minimum, select, sqrt, store
from wavesim_server.dynamics.sizes import SLOT_FIN, THRUSTERS
from wavesim_server.dynamics.terms import speed_along
from wavesim_server.dynamics.types import Lanes
from wavesim_server.elementary import sin_cos


@device_function
def _beyond(params: Floats, k: int, angle: Lanes, along: Lanes, wn: Lanes) -> Lanes:
    """Return the correction to the normal force on the stalled fin k. A fin is stalled if its angle in the linear law,
    delta - w_n/u, exceeds FIN_STALL.

    Between the stall angle a_s and 90 deg, the normal force has the form given by Viterna and Corrigan (1982): CN =
    CN90 sin(a) + (CN_s - CN90 sin(a_s)) (cos(a)^2 / sin(a)) (sin(a_s) / cos(a_s)^2). Here, a is the true angle of
    attack, and CN_s is the coefficient of the linear law at a_s. The function subtracts the linear force. This force
    includes the inflow term, which is part of the lift of the fin or of the body.
    """
    stall, forward = broadcast(params, P.FIN_STALL + k), abs(along)
    speed2 = along * along + wn * wn
    turned = select(along >= 0.0, angle, -angle)
    sine, cosine = sin_cos(turned)
    across = forward * sine - wn * cosine
    slope = select(forward * turned > wn, turned - stall, turned + stall)  # w_n/u at the stall
    square = 1.0 + slope * slope
    s_stall = minimum(abs(sine - slope * cosine) / sqrt(square), 1.0)
    s = minimum(maximum(abs(across) / sqrt(speed2), s_stall), 1.0)
    plate = broadcast(params, P.FIN_PLATE + k)
    lift, lift_slope = broadcast(params, P.FIN_LIFT + k), broadcast(params, P.FIN_SLOPE + k)
    ahead = lift_slope * stall / square - plate * s_stall
    spread = (1.0 - s * s) * s_stall / (s * maximum(1.0 - s_stall * s_stall, 1e-9))
    size = lift / lift_slope * speed2 * (plate * s + ahead * spread)
    correction = select(across >= 0.0, size, -size) - lift * forward * (along * angle - wn)
    return select(speed2 > 0.0, correction, 0.0)


@device_function
def _correct(block: Floats, params: Floats, work: Floats, k: int, excess: Lanes, along: Lanes, wn: Lanes) -> None:
    """Correct the force on fin k in those lanes that have a positive ``excess``; the other lanes do not change."""
    angle = load(work, W.STAGE_ACTUATORS + SLOT_FIN + k)
    size = _beyond(params, k, angle, along, wn) * load(block, B.ACTUATOR_EFFECT + THRUSTERS + k)
    for i in range(6):
        force = load(work, W.FORCE + i)
        corrected = force + broadcast(params, P.FIN_WRENCH + 6 * k + i) * size
        store(work, W.FORCE + i, select(excess > 0.0, corrected, force))


@always_inline
def forces(block: Floats, params: Floats, work: Floats, count: int) -> None:
    """Correct the forces on those fins that use the linear law and are beyond stall; leave the forces on the other fins
    unchanged.
    """
    for k in range(count):
        if params[P.FIN_STALL + k] > 0.0:
            u, q, r = load(work, W.NU_R), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
            along = u + q * broadcast(params, P.FIN_PLACE_Z + k) - r * broadcast(params, P.FIN_PLACE_Y + k)
            wn = 0.0 + speed_along(params, P.FIN_WRENCH + 6 * k, work)  # +0 where the sum is -0
            attack = abs(along * load(work, W.STAGE_ACTUATORS + SLOT_FIN + k) - wn)
            excess = load(block, B.PRESENT) * (attack - broadcast(params, P.FIN_STALL + k) * abs(along))
            if any_lane(excess > 0.0):
                _correct(block, params, work, k, excess, along, wn)
