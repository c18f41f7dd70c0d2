"""Compiled autopilots and navigation filters. They work on all lanes of a block of members."""

from __future__ import annotations

import math

from wavesim_kernels.compiled_elementary import uniform
from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import rotation
from wavesim_server.dynamics.lanes import load, maximum, minimum, select, splat, sqrt, store
from wavesim_server.dynamics.types import Lanes
from wavesim_server.elementary import atan2, sin_cos
from wavesim_studies.learning.kernels import normal_pair
from wavesim_studies.learning.team_tables import (
    CONTROL_S,
    COURSE,
    DEPTH,
    DEPTH_INTEGRAL,
    DRAW,
    EFFORT,
    EPISODE,
    ESTIMATE,
    HEADING_ERROR,
    INTERVALS,
    SCALE_ERROR,
    SPEED,
    SPEED_INTEGRAL,
    STEP,
    V00,
    V01,
    V02,
    V03,
    V11,
    V12,
    V13,
    V22,
    V23,
    V33,
    VELOCITY,
    Autopilot,
    L,
    TeamArrays,
    TeamRules,
)

_TURN = 2.0 * math.pi


@device_function
def draw_noise(a: TeamArrays, group: int, k: int, interval: int) -> None:
    """Draw six normally distributed numbers for member k of each team. Each hash yields two of them."""
    g, w = a.groups[group], a.work
    for l in range(L):
        e = (int(g[EPISODE * L + l]) << 20) + int(g[STEP * L + l]) * INTERVALS + interval + 1
        for i in range(3):
            w[(DRAW + i) * L + l] = uniform(a.keys[group * L + l], e, 3 * k + i)
    for i in range(2, -1, -1):  # the last first: each row makes two
        one, other = normal_pair(load(w, DRAW + i))
        store(w, DRAW + 2 * i, one)
        store(w, DRAW + 2 * i + 1, other)


@device_function
def _predict(c: Floats, vn: Lanes, ve: Lanes, rules: TeamRules) -> None:
    """Predict the estimate over an interval from the measured velocity through water, in W."""
    dt = CONTROL_S
    gn, ge = vn + load(c, ESTIMATE + 2), ve + load(c, ESTIMATE + 3)
    store(c, VELOCITY, gn)
    store(c, VELOCITY + 1, ge)
    store(c, ESTIMATE, load(c, ESTIMATE) + gn * dt)
    store(c, ESTIMATE + 1, load(c, ESTIMATE + 1) + ge * dt)
    # heading and scale errors last long: add in each second what they would cause in twenty seconds
    long_lasting = rules.heading_error * rules.heading_error + rules.scale_error * rules.scale_error
    wrong = long_lasting * (vn * vn + ve * ve) * 20.0 * dt
    v02, v03, v12, v13 = load(c, V02), load(c, V03), load(c, V12), load(c, V13)
    v22, v23, v33 = load(c, V22), load(c, V23), load(c, V33)
    store(c, V00, load(c, V00) + dt * (v02 + v02) + dt * dt * v22 + wrong)
    store(c, V01, load(c, V01) + dt * (v03 + v12) + dt * dt * v23)
    store(c, V11, load(c, V11) + dt * (v13 + v13) + dt * dt * v33 + wrong)
    store(c, V02, v02 + dt * v22)
    store(c, V03, v03 + dt * v23)
    store(c, V12, v12 + dt * v23)
    store(c, V13, v13 + dt * v33)
    store(c, V22, v22 + 1e-6 * dt)
    store(c, V33, v33 + 1e-6 * dt)


@device_function
def update_estimate(c: Floats, hn: Lanes, he: Lanes, innovation: Lanes, variance: Lanes) -> None:
    """Update the estimate with a measurement that changes by (hn, he) per metre north and east. Lanes whose variance is
    not positive remain unchanged.
    """
    g0 = load(c, V00) * hn + load(c, V01) * he
    g1 = load(c, V01) * hn + load(c, V11) * he
    g2 = load(c, V02) * hn + load(c, V12) * he
    g3 = load(c, V03) * hn + load(c, V13) * he
    some = variance > 0.0
    scale = 1.0 / (hn * g0 + he * g1 + variance)
    k0, k1, k2, k3 = g0 * scale, g1 * scale, g2 * scale, g3 * scale
    store(c, ESTIMATE, select(some, load(c, ESTIMATE) + k0 * innovation, load(c, ESTIMATE)))
    store(c, ESTIMATE + 1, select(some, load(c, ESTIMATE + 1) + k1 * innovation, load(c, ESTIMATE + 1)))
    store(c, ESTIMATE + 2, select(some, load(c, ESTIMATE + 2) + k2 * innovation, load(c, ESTIMATE + 2)))
    store(c, ESTIMATE + 3, select(some, load(c, ESTIMATE + 3) + k3 * innovation, load(c, ESTIMATE + 3)))
    store(c, V00, select(some, load(c, V00) - k0 * g0, load(c, V00)))
    store(c, V01, select(some, load(c, V01) - k0 * g1, load(c, V01)))
    store(c, V02, select(some, load(c, V02) - k0 * g2, load(c, V02)))
    store(c, V03, select(some, load(c, V03) - k0 * g3, load(c, V03)))
    store(c, V11, select(some, load(c, V11) - k1 * g1, load(c, V11)))
    store(c, V12, select(some, load(c, V12) - k1 * g2, load(c, V12)))
    store(c, V13, select(some, load(c, V13) - k1 * g3, load(c, V13)))
    store(c, V22, select(some, load(c, V22) - k2 * g2, load(c, V22)))
    store(c, V23, select(some, load(c, V23) - k2 * g3, load(c, V23)))
    store(c, V33, select(some, load(c, V33) - k3 * g3, load(c, V33)))


@device_function
def _limited(value: Lanes, limit: float) -> Lanes:
    return minimum(maximum(value, -limit), limit)


@device_function
def steer(b: Floats, c: Floats, w: Floats, has_gps: bool, pilot: Autopilot, rules: TeamRules) -> None:
    """Measure the motion of a block of members, update their estimates, and set the actuator commands."""
    r11, r12, _, r21, r22, _, r31, r32, _ = rotation.matrix(load(b, B.QW), load(b, B.QX), load(b, B.QY), load(b, B.QZ))
    cx, cy, cz = load(b, B.V_WF_W), load(b, B.V_WF_W + 1), load(b, B.V_WF_W + 2)
    surge = load(b, B.NU) - (r11 * cx + r21 * cy + r31 * cz)
    sway = load(b, B.NU + 1) - (r12 * cx + r22 * cy + r32 * cz)
    heading = atan2(r21, r11) + load(c, HEADING_ERROR) + 0.005 * load(w, DRAW)
    scale = 1.0 + load(c, SCALE_ERROR)
    u, v = scale * surge + 0.01 * load(w, DRAW + 1), scale * sway + 0.01 * load(w, DRAW + 2)
    sine, cosine = sin_cos(heading)
    _predict(c, u * cosine - v * sine, u * sine + v * cosine, rules)
    if has_gps:
        one, none, variance = splat(1.0), splat(0.0), splat(rules.gps * rules.gps)
        update_estimate(c, one, none, load(b, B.PX) + rules.gps * load(w, DRAW + 3) - load(c, ESTIMATE), variance)
        update_estimate(c, none, one, load(b, B.PY) + rules.gps * load(w, DRAW + 4) - load(c, ESTIMATE + 1), variance)
    turn = load(c, COURSE) - heading
    turn = select(turn > math.pi, turn - _TURN, turn)
    turn = select(turn <= -math.pi, turn + _TURN, turn)
    rudder = -_limited(pilot.heading_gain * turn - pilot.yaw_gain * load(b, B.NU + 5), pilot.rudder_limit)
    error, depth_integral = load(c, DEPTH) - load(b, B.PZ), load(c, DEPTH_INTEGRAL)
    ask = -pilot.depth_gain * error - pilot.depth_integral * depth_integral
    store(
        c,
        DEPTH_INTEGRAL,
        select(
            abs(ask) < pilot.pitch_limit,
            select(abs(error) < 3.0, depth_integral + error * CONTROL_S, depth_integral),
            depth_integral,
        ),
    )
    pitch = atan2(-r31, sqrt(r11 * r11 + r21 * r21))
    planes = _limited(
        pilot.pitch_gain * (_limited(ask, pilot.pitch_limit) - pitch) - pilot.pitch_rate_gain * load(b, B.NU + 4),
        pilot.plane_limit,
    )
    miss, speed_integral = load(c, SPEED) - u, load(c, SPEED_INTEGRAL)
    raw = pilot.speed_gain * miss + pilot.speed_integral * (speed_integral + miss * CONTROL_S)
    store(  # no wind-up while saturated
        c,
        SPEED_INTEGRAL,
        select(
            raw > 0.0,
            select(raw < pilot.most_thrust, speed_integral + miss * CONTROL_S, speed_integral),
            speed_integral,
        ),
    )
    thrust = minimum(maximum(raw, 0.0), pilot.most_thrust)
    share = thrust / pilot.most_thrust
    store(c, EFFORT, load(c, EFFORT) + share * share * CONTROL_S)
    store(b, B.ACTUATOR_COMMAND + pilot.propeller, thrust)
    for k in range(2):
        store(b, B.ACTUATOR_COMMAND + pilot.first_rudder + k, rudder)
        store(b, B.ACTUATOR_COMMAND + pilot.first_plane + k, planes)
