"""Wind, waves, slowly varying current (drift) and tide, and their effect on bodies during a tick; compiled.

The effects are evaluated once per tick and are constant within the tick. Random numbers are hashes of (stream, tick),
as in :mod:`wavesim_kernels.randomness`, so they do not depend on other draws.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints, Keys
from wavesim_sdk.tables import SURROUNDINGS
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics.bodies import BodyArrays
from wavesim_server.dynamics.lines import N_P, N_WATER_ACCELERATION, N_WATER_LEVEL, N_WATER_VELOCITY
from wavesim_server.dynamics.rotation import to_world
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.elementary import atan2, cos, exp, flush, log, sin_cos
from wavesim_server.environment.flow import FlowField, flow_at, uniform_flow
from wavesim_server.environment.sea_surface import elevation, tide_level
from wavesim_server.rng import normal
from wavesim_world.ocean.surface import (
    S_AMPLITUDE,
    S_BED_FACTOR,
    S_COS,
    S_DEEP_FACTOR,
    S_DIRECTION,
    S_EAST,
    S_FREQUENCY,
    S_NORTH,
    S_PHASE,
    S_SIN,
    S_WAVE_NUMBER,
)
from wavesim_world.ocean.wind import SURFACE_LAYER

#: state of the weather: slow part of the wind, deviations of drift speed and direction, current wind at a height of 10
#: m, and level of the tide
W_SLOW_WIND, W_DRIFT_SPEED, W_DRIFT_DIRECTION, W_WIND, W_LEVEL, W_NORTH, W_EAST, WEATHER = range(8)
#: indices of the inputs for wind, waves and air; these inputs are the same at all positions; see :class:`WeatherArrays`
(
    I_MEAN,
    I_WIND_FROM,
    I_SLOW,
    I_TIME,
    I_WIND_MIN,
    I_WIND_MAX,
    I_AIR_DENSITY,
    I_GRAVITY,
    I_PEAK,
    I_HEIGHT,
    I_WAVES_TO,
    WIND,
) = range(12)
#: columns for the slowly varying current (drift):
# speed, its deviation, minimum and maximum; direction (towards), its deviation and maximum; time constant
D_SPEED, D_SPEED_DEVIATION, D_SPEED_MIN, D_SPEED_MAX, D_DIRECTION, D_DIRECTION_DEVIATION, D_RANGE, D_TIME = range(8)
#: columns for the exposure of a body to wind and waves:
# flags (0 nothing, 1 wind, 2 filter, 4 RAO); law, areas, length, height, forward, profile, coefficients, gains and
# damping of the filters, table of operators and its number of headings, reach, half length and width
E_FLAGS, E_LAW, E_FRONTAL_AREA, E_LATERAL_AREA, E_LENGTH, E_HEIGHT, E_FORWARD, E_PROFILE, E_C = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
)
E_GAIN, E_DAMPING, E_RAO, E_HEADINGS, E_REACH, E_HALF_LENGTH, E_HALF_WIDTH, EXPOSURE = 13, 19, 20, 21, 22, 23, 24, 25
HAS_WIND, HAS_FILTER, HAS_RAO, HAS_WATER, HAS_AIR = 1, 2, 4, 8, 16
#: columns of the coefficients for an aircraft: factor and roughness length of the wind profile
E_PROFILE_FACTOR, E_ROUGHNESS = E_C, E_C + 1
#: columns for the buoyancy of a body in water of variable density:
# buoyancy in water of the world's density and its centre, B; relative excess at a depth, its change per metre, that
# depth
(V_FULL, V_X, V_Y, V_Z, V_EXCESS, V_SLOPE, V_DEPTH, VOLUMES) = range(8)
#: exponent of decay; a wave component is neglected below the depth at which its motion has decayed to
#: exp(-MAX_DECAY_EXPONENT)
MAX_DECAY_EXPONENT = 9.0
#: maximum half length of a body that is treated as a point, as a fraction of 1/k for the shortest wave
POINT_SIZE_LIMIT = 0.1

#: columns in the `surroundings` table
_CURRENT, _WIND, _LEVEL, _WAVE = (SURROUNDINGS.first_columns[name] for name in ("current_W", "wind_W", "level", "wave"))


class WeatherArrays(NamedTuple):
    """All arrays that :func:`apply_to_bodies` reads. ``state`` and ``filters`` contain the state of the weather, which
    is kept from tick to tick.
    """

    state: Floats  # (WEATHER,)
    # (WIND,): U10 and its direction (from), slow part: deviation, time constant, minimum, maximum; air density;
    # gravity; the sea's
    wind: Floats
    # peak frequency, significant height and direction (towards)
    gusts: Floats  # (n, 3): amplitude, angular frequency, phase
    drift: Floats  # (8,)
    tide: Floats  # amplitude, period, phase
    sea: Floats  # (n, SEA)
    keys: Keys  # streams: slow wind, drift speed, drift direction
    exposure: Floats  # (capacity, EXPOSURE)
    streams: Keys  # (capacity,): streams of the wave filters
    filters: Floats  # (capacity, 6, 2)
    rao: Floats  # (tables, maximum headings, components, 6, 2): cosine and sine part of the force
    drift_rao: Floats  # (tables, maximum headings, components, 3): signed root of the mean drift force per amplitude^2
    buoyancy_volumes: Floats  # (capacity, VOLUMES)


class SeaPoint(NamedTuple):
    """A point in the water."""

    x: float  # position, W
    y: float
    depth: float  # below the still level
    is_near: bool  # whether the surface is near, so that its elevation matters


class Footprint(NamedTuple):
    """Size and heading of a body on the water. The heading vector need not have unit length."""

    half_length: float
    half_width: float
    north: float
    east: float


@device_function
def advance_weather(w: WeatherArrays, tick: int, time: float, h: float) -> None:
    """Advance the slow weather processes by a tick, and update all values that depend on them."""
    s, d = w.state, w.drift
    if w.wind[I_SLOW] > 0.0:
        keep = exp(-h / w.wind[I_TIME])
        s[W_SLOW_WIND] = keep * s[W_SLOW_WIND] + w.wind[I_SLOW] * math.sqrt(1.0 - keep * keep) * normal(
            w.keys[0], tick, 0
        )
        s[W_SLOW_WIND] = min(
            max(s[W_SLOW_WIND], w.wind[I_WIND_MIN] - w.wind[I_MEAN]), w.wind[I_WIND_MAX] - w.wind[I_MEAN]
        )
    if d[D_SPEED_DEVIATION] > 0.0 or d[D_DIRECTION_DEVIATION] > 0.0:
        keep = exp(-h / d[D_TIME])
        kick = math.sqrt(1.0 - keep * keep)
        s[W_DRIFT_SPEED] = keep * s[W_DRIFT_SPEED] + d[D_SPEED_DEVIATION] * kick * normal(w.keys[1], tick, 0)
        s[W_DRIFT_SPEED] = min(max(s[W_DRIFT_SPEED], d[D_SPEED_MIN] - d[D_SPEED]), d[D_SPEED_MAX] - d[D_SPEED])
        s[W_DRIFT_DIRECTION] = keep * s[W_DRIFT_DIRECTION] + d[D_DIRECTION_DEVIATION] * kick * normal(
            w.keys[2], tick, 0
        )
        s[W_DRIFT_DIRECTION] = min(max(s[W_DRIFT_DIRECTION], -d[D_RANGE]), d[D_RANGE])
    update_weather(w, time)


@device_function
def update_weather(w: WeatherArrays, time: float) -> None:
    """Update the gusty wind, the slowly varying current (drift), and the tide level for a given time."""
    s, d = w.state, w.drift
    gust = 0.0
    for i in range(w.gusts.shape[0]):
        gust += w.gusts[i, 0] * cos(w.gusts[i, 1] * time + w.gusts[i, 2])
    s[W_WIND] = max(w.wind[I_MEAN] + s[W_SLOW_WIND] + gust, 0.0)
    speed, to = d[D_SPEED] + s[W_DRIFT_SPEED], d[D_DIRECTION] + s[W_DRIFT_DIRECTION]
    east, north = sin_cos(to)
    s[W_NORTH], s[W_EAST] = speed * north, speed * east
    s[W_LEVEL] = tide_level(w.tide, time)


@device_function
def _still_water(b: Floats, l: int) -> None:
    """Set the slope of the surface and the orbital motion of the water to zero."""
    for k in range(2):
        b[(B.WATER_SLOPE + k) * LANES + l] = 0.0
    for k in range(3):
        b[(B.V_WF_W + k) * LANES + l] = b[(B.A_WF_W + k) * LANES + l] = 0.0


@device_function
def orbital_motion(
    sea: Floats,
    time: float,
    at: SeaPoint,
    area: Footprint,
    still: float,
    parts: Floats,
    b: Floats,
    l: int,
) -> None:
    """Compute the plane of the water surface at a body, and the velocity and acceleration of the water there, by Airy's
    theory. ``still`` is the still-water level.

    The acceleration is that of the water itself, v' + (v . grad) v. Without the second term, a free body would not
    follow the orbit of the water.

    All values are means over the body's length and width. For a wave with the wave number k, averaging multiplies them
    by the factor exp(-(k_x^2 long^2 + k_y^2 wide^2)/6). This is the factor of a Gaussian weight with the second moments
    of the rectangle. The slope is a first moment; its factor is this factor raised to the power 3/5. Above the
    still-water level, the water moves as it does at that level. ``parts`` (5, n) stores intermediate values, so that
    the compiler can vectorise the loops.
    """
    x, y, near = at.x, at.y, at.is_near
    long, wide = area.half_length, area.half_width
    down = max(at.depth, 0.0)
    n = sea.shape[0]
    up = north = east = 0.0
    u = v = z = au = av = az = 0.0
    xx = xy = yy = xz = yz = 0.0  # gradient of the velocity; zz = -xx - yy
    turn = 1.0 / math.sqrt(max(area.north * area.north + area.east * area.east, 1e-12))
    cx, sx = area.north * turn, area.east * turn
    while not near and n > 0 and sea[n - 1, S_WAVE_NUMBER] * down > MAX_DECAY_EXPONENT:  # ascending
        n -= 1
    cosines, sines, decays, means, steeps = parts[0], parts[1], parts[2], parts[3], parts[4]
    for i in range(n):
        angle = sea[i, S_FREQUENCY] * time - sea[i, S_NORTH] * x - sea[i, S_EAST] * y + sea[i, S_PHASE]
        sines[i], cosines[i] = sin_cos(angle)
        decays[i] = exp(-min(sea[i, S_WAVE_NUMBER] * down, 700.0))
        means[i] = steeps[i] = 1.0
    if sea[sea.shape[0] - 1, S_WAVE_NUMBER] * max(long, wide) >= POINT_SIZE_LIMIT:
        for i in range(n):
            kx = long * (sea[i, S_NORTH] * cx + sea[i, S_EAST] * sx)
            ky = wide * (sea[i, S_EAST] * cx - sea[i, S_NORTH] * sx)
            q = (kx * kx + ky * ky) / 6.0
            means[i], steeps[i] = exp(-q), exp(-0.6 * q)
    for i in range(n):
        k, mean, decay = sea[i, S_WAVE_NUMBER], means[i], decays[i]
        c, s = sea[i, S_AMPLITUDE] * cosines[i], sea[i, S_AMPLITUDE] * sines[i]
        if near:
            up += mean * c
            north += steeps[i] * sea[i, S_NORTH] * s
            east += steeps[i] * sea[i, S_EAST] * s
        bed = min(sea[i, S_BED_FACTOR] / decay, decay)  # the wave that the bed reflects
        flat, tall = sea[i, S_DEEP_FACTOR] * (decay + bed) * mean, sea[i, S_DEEP_FACTOR] * (decay - bed) * mean
        w = sea[i, S_FREQUENCY]
        along, rise = w * flat * c, w * tall * s
        u += along * sea[i, S_COS]
        v += along * sea[i, S_SIN]
        z += rise
        along = w * w * flat * s
        au -= along * sea[i, S_COS]
        av -= along * sea[i, S_SIN]
        az += w * w * tall * c
        east_share, north_share = k * sea[i, S_SIN], k * sea[i, S_COS]
        along, rise = w * flat * s, w * tall * c
        xx += along * north_share * sea[i, S_COS]
        xy += along * north_share * sea[i, S_SIN]
        yy += along * east_share * sea[i, S_SIN]
        xz -= rise * north_share
        yz -= rise * east_share
    b[B.WATER_LEVEL * LANES + l] = still - up
    b[B.WATER_SLOPE * LANES + l], b[(B.WATER_SLOPE + 1) * LANES + l] = -north, -east
    b[B.V_WF_W * LANES + l], b[(B.V_WF_W + 1) * LANES + l], b[(B.V_WF_W + 2) * LANES + l] = u, v, z
    b[B.A_WF_W * LANES + l] = au + xx * u + xy * v + xz * z
    b[(B.A_WF_W + 1) * LANES + l] = av + xy * u + yy * v + yz * z
    b[(B.A_WF_W + 2) * LANES + l] = az + xz * u + yz * v - (xx + yy) * z


@device_function
def apply_to_bodies(
    w: WeatherArrays,
    flow: FlowField,
    f: BodyArrays,
    order: Ints,
    count: int,
    tick: int,
    time: float,
    h: float,
) -> None:
    """Compute the current, the plane of the water surface, and the forces that stay constant during this tick, for all
    bodies.
    """
    s, blocks, slots = w.state, f.blocks, f.slots
    parts = np.empty((5, w.sea.shape[0]))
    n, e, d = uniform_flow(flow, time)
    uniform = flow.layers.shape[0] == 0 and flow.values.shape[2] == 0
    for i in range(count):
        row = order[i]
        b, l = blocks[slots[row] // LANES], slots[row] % LANES
        x, y, z = b[B.PX * LANES + l], b[B.PY * LANES + l], b[B.PZ * LANES + l]
        if not uniform:
            n, e, d = flow_at(flow, time, x, y, z)
        exposure = w.exposure[row]
        flags = int(exposure[E_FLAGS])
        depth = z - s[W_LEVEL]
        near = depth < exposure[E_REACH] + 2.0 * w.wind[I_HEIGHT] + 1.0
        q0, q1, q2, q3 = b[B.QW * LANES + l], b[B.QX * LANES + l], b[B.QY * LANES + l], b[B.QZ * LANES + l]
        if w.sea.shape[0]:
            if flags & (HAS_FILTER | HAS_RAO):  # its wave forces are the only effect of the sea on it
                b[B.WATER_LEVEL * LANES + l] = s[W_LEVEL]
                for k in range(2):
                    b[(B.WATER_SLOPE + k) * LANES + l] = 0.0
                for k in range(3):
                    b[(B.V_WF_W + k) * LANES + l] = b[(B.A_WF_W + k) * LANES + l] = 0.0
            else:
                cx, sx = 1.0 - 2.0 * (q2 * q2 + q3 * q3), 2.0 * (q1 * q2 + q3 * q0)
                area = Footprint(exposure[E_HALF_LENGTH], exposure[E_HALF_WIDTH], cx, sx)
                orbital_motion(w.sea, time, SeaPoint(x, y, depth, near), area, s[W_LEVEL], parts, b, l)
        else:
            b[B.WATER_LEVEL * LANES + l] = s[W_LEVEL]
            if (
                b[(B.V_WF_W + 2) * LANES + l] != 0.0
                or b[B.WATER_SLOPE * LANES + l] != 0.0
                or b[(B.WATER_SLOPE + 1) * LANES + l] != 0.0
            ):
                _still_water(b, l)  # the sea has ended, or the flow has a vertical component
            b[B.V_WF_W * LANES + l] = b[(B.V_WF_W + 1) * LANES + l] = 0.0
        b[B.V_WF_W * LANES + l] += n + s[W_NORTH]
        b[(B.V_WF_W + 1) * LANES + l] += e + s[W_EAST]
        b[(B.V_WF_W + 2) * LANES + l] += d
        if flags == 0:
            continue
        for k in range(6):
            b[(B.ENVIRONMENT_WRENCH + k) * LANES + l] = 0.0
        heading = atan2(2.0 * (q1 * q2 + q3 * q0), 1.0 - 2.0 * (q2 * q2 + q3 * q3))
        if flags & HAS_WIND and near:
            _wind_force(w, exposure, b, l, heading)
        if flags & HAS_FILTER and w.wind[I_HEIGHT] > 0.0:
            _wave_filter_force(w, exposure, b, l, row, heading, tick, h)
        if flags & HAS_RAO and w.sea.shape[0]:
            _wave_force(w, exposure, b, l, heading, time, x, y)
        if flags & HAS_AIR:
            _wind_at_aircraft(w, exposure, b, l, -depth)
        if flags & HAS_WATER:
            _stratified_buoyancy(w.buoyancy_volumes[row], exposure[E_REACH], b, l, depth)


@device_function
def apply_to_nodes(w: WeatherArrays, flow: FlowField, nodes: Floats, time: float) -> None:
    """Compute the velocity and acceleration of the water, and the surface level, at the nodes of lines in this tick."""
    still = w.state[W_LEVEL]
    parts, b = np.empty((5, w.sea.shape[0])), np.zeros(B.SIZE)
    for i in range(nodes.shape[0]):
        o = nodes[i]
        x, y, z = o[N_P], o[N_P + 1], o[N_P + 2]
        b[B.WATER_LEVEL * LANES] = still
        if w.sea.shape[0]:
            near = z - still < 2.0 * w.wind[I_HEIGHT] + 1.0
            at = SeaPoint(x, y, z - still, near)
            orbital_motion(w.sea, time, at, Footprint(0.0, 0.0, 1.0, 0.0), still, parts, b, 0)
        n, e, d = flow_at(flow, time, x, y, z)
        o[N_WATER_LEVEL] = b[B.WATER_LEVEL * LANES]
        for k in range(3):
            o[N_WATER_VELOCITY + k], o[N_WATER_ACCELERATION + k] = b[(B.V_WF_W + k) * LANES], b[(B.A_WF_W + k) * LANES]
        o[N_WATER_VELOCITY] += n + w.state[W_NORTH]
        o[N_WATER_VELOCITY + 1] += e + w.state[W_EAST]
        o[N_WATER_VELOCITY + 2] += d


@device_function
def fill_surroundings(
    w: WeatherArrays, flow: FlowField, blocks: Floats, slots: Ints, rows: Ints, time: float, out: Floats
) -> None:
    """Fill in rows in the `surroundings` table for a given time: the velocity of water and air in W, the water level,
    and the wave elevation.
    """
    s = w.state
    sine, cosine = sin_cos(w.wind[I_WIND_FROM])
    for i in range(rows.shape[0]):
        row = rows[i]
        b, l = blocks[slots[row] // LANES], slots[row] % LANES
        x, y, z = b[B.PX * LANES + l], b[B.PY * LANES + l], b[B.PZ * LANES + l]
        n, e, d = flow_at(flow, time, x, y, z)
        up, _, _ = elevation(w.sea, time, x, y)
        o = out[row]
        o[_CURRENT], o[_CURRENT + 1], o[_CURRENT + 2] = n + s[W_NORTH], e + s[W_EAST], d
        o[_WIND], o[_WIND + 1], o[_WIND + 2] = -s[W_WIND] * cosine, -s[W_WIND] * sine, 0.0
        o[_LEVEL], o[_WAVE] = up - s[W_LEVEL], up


@device_function
def _stratified_buoyancy(v: Floats, reach: float, b: Floats, l: int, depth: float) -> None:
    """Add the excess buoyancy of a body in water of the local density, including the compression of the body. At the
    surface, this excess is scaled by the submerged fraction of the body's height.
    """
    z = b[B.PZ * LANES + l]
    wet = min(max(0.5 * (depth / max(reach, 1e-6) + 1.0), 0.0), 1.0)
    up = wet * v[V_FULL] * (v[V_EXCESS] + v[V_SLOPE] * (z - v[V_DEPTH]))
    fx, fy, fz = to_world(
        b[B.QW * LANES + l], -b[B.QX * LANES + l], -b[B.QY * LANES + l], -b[B.QZ * LANES + l], 0.0, 0.0, -up
    )
    b[B.ENVIRONMENT_WRENCH * LANES + l] += fx
    b[(B.ENVIRONMENT_WRENCH + 1) * LANES + l] += fy
    b[(B.ENVIRONMENT_WRENCH + 2) * LANES + l] += fz
    b[(B.ENVIRONMENT_WRENCH + 3) * LANES + l] += v[V_Y] * fz - v[V_Z] * fy
    b[(B.ENVIRONMENT_WRENCH + 4) * LANES + l] += v[V_Z] * fx - v[V_X] * fz
    b[(B.ENVIRONMENT_WRENCH + 5) * LANES + l] += v[V_X] * fy - v[V_Y] * fx


@device_function
def _wind_force(w: WeatherArrays, e: Floats, b: Floats, l: int, heading: float) -> None:
    """Add the force due to the apparent wind (Blendermann 1994; Fossen 2021, sec. 10.1)."""
    speed, away = w.state[W_WIND] * e[E_PROFILE], w.wind[I_WIND_FROM] + math.pi - heading
    sine, cosine = sin_cos(away)
    u, v = b[B.NU * LANES + l] - speed * cosine, b[(B.NU + 1) * LANES + l] - speed * sine
    q = 0.5 * w.wind[I_AIR_DENSITY] * (u * u + v * v)
    g = -atan2(v, u)
    sine, cosine = sin_cos(g)
    if e[E_LAW] == 0.0:
        cd = e[E_C] if abs(g) <= 0.5 * math.pi else e[E_C + 1]
        along = cd * e[E_FRONTAL_AREA] / e[E_LATERAL_AREA]
        s2 = 2.0 * sine * cosine
        low = 1.0 - 0.5 * e[E_C + 3] * (1.0 - along / e[E_C + 2]) * s2 * s2
        fx = -q * cd * e[E_FRONTAL_AREA] * cosine / low
        fy = q * e[E_C + 2] * e[E_LATERAL_AREA] * sine / low
        k = e[E_C + 4] * fy * e[E_HEIGHT]
        n = (e[E_FORWARD] - 0.18 * (abs(g) - 0.5 * math.pi) * e[E_LENGTH]) * fy
    else:
        fx = -q * e[E_C] * e[E_FRONTAL_AREA] * cosine
        fy = q * e[E_C + 1] * e[E_LATERAL_AREA] * sine
        k = fy * e[E_HEIGHT]
        n = q * e[E_C + 2] * e[E_LATERAL_AREA] * e[E_LENGTH] * 2.0 * sine * cosine
    b[B.ENVIRONMENT_WRENCH * LANES + l] += fx
    b[(B.ENVIRONMENT_WRENCH + 1) * LANES + l] += fy
    b[(B.ENVIRONMENT_WRENCH + 3) * LANES + l] += k
    b[(B.ENVIRONMENT_WRENCH + 5) * LANES + l] += n


@device_function
def _wind_at_aircraft(w: WeatherArrays, e: Floats, b: Floats, l: int, height: float) -> None:
    """Set the air velocity at an aircraft: the wind of this tick according to the logarithmic profile
    (:mod:`wavesim_world.ocean.wind`), which ends at the top of the surface layer.
    """
    above = max(min(height, SURFACE_LAYER), e[E_ROUGHNESS]) / e[E_ROUGHNESS]
    speed = w.state[W_WIND] * e[E_PROFILE_FACTOR] * log(above)
    sine, cosine = sin_cos(w.wind[I_WIND_FROM])
    b[B.V_AF_W * LANES + l], b[(B.V_AF_W + 1) * LANES + l] = -speed * cosine, -speed * sine


@device_function
def _wave_filter_force(
    w: WeatherArrays, e: Floats, b: Floats, l: int, row: int, heading: float, tick: int, h: float
) -> None:
    """Advance the filter K s/(s^2 + 2 d w_e s + w_e^2), which is driven by white noise, by one tick (exact solution).
    Add its output to the forces (Fossen 2021, sec. 10.2).
    """
    u, v = b[B.NU * LANES + l], b[(B.NU + 1) * LANES + l]
    speed, beta = math.sqrt(u * u + v * v), w.wind[I_WAVES_TO] - heading - atan2(v, u)
    w0 = w.wind[I_PEAK]
    we = max(abs(w0 - w0 * w0 / w.wind[I_GRAVITY] * speed * cos(beta)), 0.02)
    d = e[E_DAMPING]
    wd = we * math.sqrt(max(1.0 - d * d, 1e-6))
    decay = exp(-d * we * h)
    s, c = sin_cos(wd * h)
    f = d * we / wd
    for k in range(6):
        if e[E_GAIN + k] == 0.0:
            continue
        x1, x2 = w.filters[row, k, 0], w.filters[row, k, 1]
        x2 += e[E_GAIN + k] * w.wind[I_HEIGHT] * math.sqrt(h) * normal(w.streams[row], tick, k)
        w.filters[row, k, 0] = flush(decay * ((c + f * s) * x1 + s / wd * x2))
        w.filters[row, k, 1] = flush(decay * (-we * we / wd * s * x1 + (c - f * s) * x2))
        b[(B.ENVIRONMENT_WRENCH + k) * LANES + l] += w.filters[row, k, 1]


@device_function
def _wave_force(
    w: WeatherArrays, e: Floats, b: Floats, l: int, heading: float, time: float, x: float, y: float
) -> None:
    """Add the first-order wave force and the slowly varying drift force.

    The first-order force is the sum over the wave components, each multiplied by the force operator for its relative
    heading. The drift force in surge, sway and yaw is Newman's approximation, 2 (sum a sqrt(T) cos)^2 (Newman 1974).
    """
    sea, t, headings = w.sea, w.rao[int(e[E_RAO])], int(e[E_HEADINGS])
    slow = w.drift_rao[int(e[E_RAO])]
    x_pos = x_neg = y_pos = y_neg = n_pos = n_neg = 0.0
    for i in range(sea.shape[0]):
        relative = (sea[i, S_DIRECTION] - heading) / (2.0 * math.pi)
        at = (relative - math.floor(relative)) * headings
        k = min(int(at), headings - 1)
        part, following = at - k, (k + 1) % headings
        angle = sea[i, S_FREQUENCY] * time - sea[i, S_NORTH] * x - sea[i, S_EAST] * y + sea[i, S_PHASE]
        sine, cosine = sin_cos(angle)
        c, s = sea[i, S_AMPLITUDE] * cosine, sea[i, S_AMPLITUDE] * sine
        for j in range(6):
            real = (1.0 - part) * t[k, i, j, 0] + part * t[following, i, j, 0]
            imaginary = (1.0 - part) * t[k, i, j, 1] + part * t[following, i, j, 1]
            b[(B.ENVIRONMENT_WRENCH + j) * LANES + l] += real * c - imaginary * s
        d = (1.0 - part) * slow[k, i, 0] + part * slow[following, i, 0]
        x_pos += max(d, 0.0) * c
        x_neg += min(d, 0.0) * c
        d = (1.0 - part) * slow[k, i, 1] + part * slow[following, i, 1]
        y_pos += max(d, 0.0) * c
        y_neg += min(d, 0.0) * c
        d = (1.0 - part) * slow[k, i, 2] + part * slow[following, i, 2]
        n_pos += max(d, 0.0) * c
        n_neg += min(d, 0.0) * c
    b[B.ENVIRONMENT_WRENCH * LANES + l] += 2.0 * (x_pos * x_pos - x_neg * x_neg)
    b[(B.ENVIRONMENT_WRENCH + 1) * LANES + l] += 2.0 * (y_pos * y_pos - y_neg * y_neg)
    b[(B.ENVIRONMENT_WRENCH + 5) * LANES + l] += 2.0 * (n_pos * n_pos - n_neg * n_neg)
