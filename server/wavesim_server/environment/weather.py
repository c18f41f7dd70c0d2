"""Wind, waves, drift of the current and tide: what acts on bodies in a tick, compiled.

Evaluated once per tick and held over it.  Random numbers are hashes of (stream, tick), as in
:mod:`wavesim_sdk.randomness`, so they do not depend on who else draws.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from wavesim_sdk import randomness
from wavesim_sdk.config.model import Config
from wavesim_sdk.config.world import Waves, World
from wavesim_server.draws import normal
from wavesim_server.dynamics.rows import CURRENT, ENV, LANES, LEVEL, PX, PY, PZ, QW, QX, QY, QZ, SLOPE, U
from wavesim_server.environment.kernels import Flow, flow_at, stream

_njit = nb.njit(cache=True, error_model="numpy")
Array = np.ndarray[Any, np.dtype[np.float64]]

#: significant wave height (m) and peak frequency (rad/s) by Beaufort number (Oedegaard 2017, tables 2.4 and 3.2)
SEA_STATES = (
    (0.0, 1.9858), (0.2, 1.9858), (0.5, 1.2559), (1.0, 0.8881), (2.0, 0.6280), (3.0, 0.5127), (4.0, 0.4440),
    (5.5, 0.3787), (7.5, 0.3243), (10.0, 0.2808), (12.5, 0.2512), (15.0, 0.2293), (16.0, 0.2220),
)  # fmt: skip
#: state of the weather: slow wind, drift speed and direction (deviations), wind now at 10 m, level of the tide
W_SLOW, W_SPEED, W_TURN, W_WIND, W_LEVEL, W_NORTH, W_EAST, WEATHER = range(8)
#: exposure of a body: 0 nothing, 1 wind, 2 filter, 4 RAO; law, areas, length, height, forward, profile, coefficients
E_FLAGS, E_LAW, E_FRONT, E_SIDE, E_LENGTH, E_HEIGHT, E_FORWARD, E_PROFILE, E_C = 0, 1, 2, 3, 4, 5, 6, 7, 8
E_GAIN, E_DAMPING, E_RAO, E_HEIGHT_REACH, EXPOSURE = 13, 19, 20, 21, 22
HAS_WIND, HAS_FILTER, HAS_RAO = 1, 2, 4
#: component of the sea: amplitude, frequency, wave number north, east, phase, direction
(S_A, S_W, S_NORTH, S_EAST, S_PHASE, S_TO, SEA) = range(7)


class Weather(NamedTuple):
    """Everything that :func:`act` reads; ``state``, ``filters`` are its memory."""

    state: Any  # (WEATHER,)
    wind: Any  # U10, direction, slow deviation, time constant, least, most, air density, gravity, peak, Hs, heading
    gusts: Any  # (n, 3): amplitude, angular frequency, phase
    drift: Any  # speed, dev, least, most, direction, dev, range, time constant
    tide: Any  # amplitude, period, phase
    sea: Any  # (n, SEA)
    keys: Any  # streams: slow wind, drift speed, drift direction
    exposure: Any  # (capacity, EXPOSURE)
    streams: Any  # (capacity,): of the wave filters
    filters: Any  # (capacity, 6, 2)
    rao: Any  # (tables, headings, components, 6, 2): cosine and sine part of the force


@_njit
def advance(w: Weather, tick: int, time: float, h: float) -> None:
    """The weather of a tick: slow processes step on, gusts, tide level."""
    s = w.state
    if w.wind[2] > 0.0:
        keep = math.exp(-h / w.wind[3])
        s[W_SLOW] = keep * s[W_SLOW] + w.wind[2] * math.sqrt(1.0 - keep * keep) * normal(w.keys[0], tick, 0)
        s[W_SLOW] = min(max(s[W_SLOW], w.wind[4] - w.wind[0]), w.wind[5] - w.wind[0])
    gust = 0.0
    for i in range(w.gusts.shape[0]):
        gust += w.gusts[i, 0] * math.cos(w.gusts[i, 1] * time + w.gusts[i, 2])
    s[W_WIND] = max(w.wind[0] + s[W_SLOW] + gust, 0.0)
    d = w.drift
    if d[1] > 0.0 or d[5] > 0.0:
        keep = math.exp(-h / d[7])
        kick = math.sqrt(1.0 - keep * keep)
        s[W_SPEED] = keep * s[W_SPEED] + d[1] * kick * normal(w.keys[1], tick, 0)
        s[W_SPEED] = min(max(s[W_SPEED], d[2] - d[0]), d[3] - d[0])
        s[W_TURN] = keep * s[W_TURN] + d[5] * kick * normal(w.keys[2], tick, 0)
        s[W_TURN] = min(max(s[W_TURN], -d[6]), d[6])
    speed, to = d[0] + s[W_SPEED], d[4] + s[W_TURN]
    s[W_NORTH], s[W_EAST] = speed * math.cos(to), speed * math.sin(to)
    s[W_LEVEL] = -w.tide[0] * math.cos(2.0 * math.pi * time / w.tide[1] + w.tide[2])


@_njit
def elevation(sea: Any, time: float, x: float, y: float) -> tuple[float, float, float]:
    """Elevation of the surface (up) at a point, and its slopes to the north and east."""
    up = north = east = 0.0
    for i in range(sea.shape[0]):
        angle = sea[i, S_W] * time - sea[i, S_NORTH] * x - sea[i, S_EAST] * y + sea[i, S_PHASE]
        up += sea[i, S_A] * math.cos(angle)
        steep = sea[i, S_A] * math.sin(angle)
        north += sea[i, S_NORTH] * steep
        east += sea[i, S_EAST] * steep
    return up, north, east


@_njit
def act(
    w: Weather, flow: Flow, blocks: Any, slots: Any, order: Any, count: int, tick: int, time: float, h: float
) -> None:
    """Current, water plane and held forces of every body in this tick."""
    s = w.state
    n, e = stream(flow, time)
    uniform = flow.layers.shape[0] == 0 and flow.values.shape[2] == 0
    for i in range(count):
        row = order[i]
        b, l = blocks[slots[row] // LANES], slots[row] % LANES
        x, y, z = b[PX * LANES + l], b[PY * LANES + l], b[PZ * LANES + l]
        if not uniform:
            n, e = flow_at(flow, time, x, y, z)
        b[CURRENT * LANES + l], b[(CURRENT + 1) * LANES + l] = n + s[W_NORTH], e + s[W_EAST]
        exposure = w.exposure[row]
        flags = int(exposure[E_FLAGS])
        near = z - s[W_LEVEL] < exposure[E_HEIGHT_REACH]
        up = north = east = 0.0
        if near and w.sea.shape[0]:
            up, north, east = elevation(w.sea, time, x, y)
        b[LEVEL * LANES + l] = s[W_LEVEL] - up
        b[SLOPE * LANES + l], b[(SLOPE + 1) * LANES + l] = -north, -east
        if flags == 0:
            continue
        for k in range(6):
            b[(ENV + k) * LANES + l] = 0.0
        q0, q1, q2, q3 = b[QW * LANES + l], b[QX * LANES + l], b[QY * LANES + l], b[QZ * LANES + l]
        heading = math.atan2(2.0 * (q1 * q2 + q3 * q0), 1.0 - 2.0 * (q2 * q2 + q3 * q3))
        if flags & HAS_WIND and near and s[W_WIND] > 0.0:
            _wind(w, exposure, b, l, heading)
        if flags & HAS_FILTER and w.wind[9] > 0.0:
            _filter(w, exposure, b, l, row, heading, tick, h)
        if flags & HAS_RAO and w.sea.shape[0]:
            _rao(w, int(exposure[E_RAO]), b, l, heading, time, x, y)


@_njit
def _wind(w: Weather, e: Any, b: Any, l: int, heading: float) -> None:
    """Wind force by the apparent wind (Blendermann 1994; Fossen 2021, sec. 10.1)."""
    speed, away = w.state[W_WIND] * e[E_PROFILE], w.wind[1] + math.pi - heading
    u = b[U * LANES + l] - speed * math.cos(away)
    v = b[(U + 1) * LANES + l] - speed * math.sin(away)
    q = 0.5 * w.wind[6] * (u * u + v * v)
    g = -math.atan2(v, u)
    if e[E_LAW] == 0.0:
        cd = e[E_C] if abs(g) <= 0.5 * math.pi else e[E_C + 1]
        along = cd * e[E_FRONT] / e[E_SIDE]
        s2 = math.sin(2.0 * g)
        low = 1.0 - 0.5 * e[E_C + 3] * (1.0 - along / e[E_C + 2]) * s2 * s2
        fx = -q * cd * e[E_FRONT] * math.cos(g) / low
        fy = q * e[E_C + 2] * e[E_SIDE] * math.sin(g) / low
        k = e[E_C + 4] * fy * e[E_HEIGHT]
        n = (e[E_FORWARD] - 0.18 * (abs(g) - 0.5 * math.pi) * e[E_LENGTH]) * fy
    else:
        fx = -q * e[E_C] * e[E_FRONT] * math.cos(g)
        fy = q * e[E_C + 1] * e[E_SIDE] * math.sin(g)
        k = fy * e[E_HEIGHT]
        n = q * e[E_C + 2] * e[E_SIDE] * e[E_LENGTH] * math.sin(2.0 * g)
    b[ENV * LANES + l] += fx
    b[(ENV + 1) * LANES + l] += fy
    b[(ENV + 3) * LANES + l] += k
    b[(ENV + 5) * LANES + l] += n


@_njit
def _filter(w: Weather, e: Any, b: Any, l: int, row: int, heading: float, tick: int, h: float) -> None:
    """K s/(s^2 + 2 d w_e s + w_e^2) of white noise (Fossen 2021, sec. 10.2), stepped exactly."""
    u, v = b[U * LANES + l], b[(U + 1) * LANES + l]
    speed, beta = math.sqrt(u * u + v * v), w.wind[10] - heading - math.atan2(v, u)
    w0 = w.wind[8]
    we = max(abs(w0 - w0 * w0 / w.wind[7] * speed * math.cos(beta)), 0.02)
    d = e[E_DAMPING]
    wd = we * math.sqrt(max(1.0 - d * d, 1e-6))
    decay, c, s = math.exp(-d * we * h), math.cos(wd * h), math.sin(wd * h)
    f = d * we / wd
    for k in range(6):
        if e[E_GAIN + k] == 0.0:
            continue
        x1, x2 = w.filters[row, k, 0], w.filters[row, k, 1]
        x2 += e[E_GAIN + k] * w.wind[9] * math.sqrt(h) * normal(w.streams[row], tick, k)
        w.filters[row, k, 0] = decay * ((c + f * s) * x1 + s / wd * x2)
        w.filters[row, k, 1] = decay * (-we * we / wd * s * x1 + (c - f * s) * x2)
        b[(ENV + k) * LANES + l] += w.filters[row, k, 1]


@_njit
def _rao(w: Weather, table: int, b: Any, l: int, heading: float, time: float, x: float, y: float) -> None:
    """First-order wave force: each component times the force operator at its relative heading."""
    sea, t = w.sea, w.rao[table]
    headings = t.shape[0]
    for i in range(sea.shape[0]):
        relative = (sea[i, S_TO] - heading) / (2.0 * math.pi)
        at = (relative - math.floor(relative)) * headings
        k = min(int(at), headings - 1)
        part, following = at - k, (k + 1) % headings
        angle = sea[i, S_W] * time - sea[i, S_NORTH] * x - sea[i, S_EAST] * y + sea[i, S_PHASE]
        c, s = sea[i, S_A] * math.cos(angle), sea[i, S_A] * math.sin(angle)
        for j in range(6):
            real = (1.0 - part) * t[k, i, j, 0] + part * t[following, i, j, 0]
            imaginary = (1.0 - part) * t[k, i, j, 1] + part * t[following, i, j, 1]
            b[(ENV + j) * LANES + l] += real * c - imaginary * s


# ------------------------------------------------------------------ from the configuration


def spectrum(waves: Waves, height: float, peak: float, w: Array) -> Array:
    """S(w) in m2 s/rad of a sea with significant height and peak frequency."""
    with np.errstate(over="ignore", divide="ignore"):
        s = 0.3125 * height**2 * peak**4 / w**5 * np.exp(-1.25 * (peak / w) ** 4)
    if waves.spectrum == "jonswap":
        width = np.where(w <= peak, 0.07, 0.09)
        s = s * waves.gamma ** np.exp(-0.5 * ((w / peak - 1) / width) ** 2)
    return np.asarray(s)


def components(waves: Waves, gravity: float, seed: int) -> Array:
    """The sea as (n, SEA) components of equal energy; their variances add up to Hs^2/16 exactly.

    The spectrum from 0.3 to 8 peak frequencies is cut into pieces of equal energy; each component has the mean
    frequency of its piece and a random phase, so that the record does not repeat soon.
    """
    height, peak = sea_state(waves)
    if height == 0.0:
        return np.zeros((0, SEA))
    n = waves.components
    w = np.linspace(0.3 * peak, 8.0 * peak, 40_001)
    energy = np.concatenate(
        [[0.0], np.cumsum(0.5 * np.diff(w) * (lambda s: s[1:] + s[:-1])(spectrum(waves, height, peak, w)))]
    )
    moment = np.concatenate([[0.0], np.cumsum(np.diff(energy) * 0.5 * (w[1:] + w[:-1]))])
    edges = np.interp(np.linspace(0.0, energy[-1], n + 1), energy, w)
    mean = np.diff(np.interp(edges, w, moment)) / (energy[-1] / n)
    keys = np.array([randomness.key(seed, "waves", str(i)) for i in range(n)], np.uint64)
    sea = np.zeros((n, SEA))
    sea[:, S_A] = math.sqrt(2.0 * height**2 / 16.0 / n)
    sea[:, S_W] = mean
    sea[:, S_PHASE] = 2.0 * math.pi * randomness.uniform(keys, 0)
    to = np.full(n, waves.direction)
    if waves.spreading > 0.0:
        angle = np.linspace(-math.pi, math.pi, 3601)
        weight = np.cumsum(np.cos(0.5 * angle) ** (2.0 * waves.spreading))
        to += np.interp(randomness.uniform(keys, 1), weight / weight[-1], angle)
    k = sea[:, S_W] ** 2 / gravity
    sea[:, S_NORTH], sea[:, S_EAST], sea[:, S_TO] = k * np.cos(to), k * np.sin(to), to
    return sea


def sea_state(waves: Waves) -> tuple[float, float]:
    """(Hs, peak frequency) of the configuration."""
    return SEA_STATES[waves.beaufort] if waves.beaufort >= 0 else (waves.height, waves.peak)


def gust_components(world: World, mean: float, seed: int) -> Array:
    """(n, 3) gust components of the Harris spectrum, spaced by equal energy from 1/3600 to 1 Hz."""
    n, wind = world.wind.gusts, world.wind
    if n == 0 or mean == 0.0:
        return np.zeros((0, 3))
    f = np.geomspace(1.0 / 3600.0, 1.0, 20_001)
    s = harris(wind.drag, wind.gust_length, mean, f)
    energy = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(f) * (s[1:] + s[:-1]))])
    moment = np.concatenate([[0.0], np.cumsum(np.diff(energy) * 0.5 * (f[1:] + f[:-1]))])
    edges = np.interp(np.linspace(0.0, energy[-1], n + 1), energy, f)
    middle = np.diff(np.interp(edges, f, moment)) / (energy[-1] / n)
    keys = np.array([randomness.key(seed, "gusts", str(i)) for i in range(n)], np.uint64)
    amplitude = np.full(n, math.sqrt(2.0 * energy[-1] / n))
    return np.stack([amplitude, 2.0 * math.pi * middle, 2.0 * math.pi * randomness.uniform(keys, 0)], axis=1)


def harris(drag: float, length: float, mean: float, f: Array) -> Array:
    """Harris gust spectrum in (m/s)^2/Hz."""
    return np.asarray(4.0 * drag * length * mean / (2.0 + (length * f / mean) ** 2) ** (5.0 / 6.0))


def weather_of(config: Config, capacity: int, seed: int) -> Weather:
    """The weather of a configuration."""
    world, wind, waves = config.world, config.world.wind, config.world.waves
    mean = wind.mean
    height, peak = sea_state(waves)
    d = world.current.drift
    drift = (
        [d.speed, d.speed_deviation, d.speed_minimum, d.speed_maximum, d.direction, d.direction_deviation]
        + [d.direction_range, d.time_constant]
        if d
        else [0.0] * 7 + [1.0]
    )
    exposure = np.zeros((capacity, EXPOSURE))
    return Weather(
        np.zeros(WEATHER),
        np.array(
            [mean, wind.direction, wind.slow_deviation, wind.slow_time, wind.minimum, wind.maximum, wind.air_density]
            + [world.gravity, peak, height, waves.direction]
        ),
        gust_components(world, mean, seed),
        np.array(drift, float),
        np.array([world.tide.amplitude, world.tide.period, world.tide.phase]),
        components(waves, world.gravity, seed),
        np.array([randomness.key(seed, "weather", p) for p in ("wind", "drift speed", "drift direction")], np.uint64),
        exposure,
        np.zeros(capacity, np.uint64),
        np.zeros((capacity, 6, 2)),
        np.zeros((1, 1, len(components(waves, world.gravity, seed)), 6, 2)),
    )
