"""Flow of the water during a tick; compiled. ``wavesim_world.ocean`` contains a more readable version of the same
code."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.elementary import cos, sin_cos
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.water import Water

#: columns of the uniform stream: mean flow, and amplitude, direction, period and phase of the tidal stream
F_NORTH, F_EAST, F_DOWN, F_AMPLITUDE, F_DIRECTION, F_PERIOD, F_PHASE, STREAM = range(8)


class FlowField(NamedTuple):
    """Flow of the water: a uniform stream, layers (n, 4) by depth, and a gridded volume (which may be empty)."""

    uniform: Floats  # (STREAM,)
    layers: Floats  # depth, north, east, down
    origin: Floats
    spacing: Floats
    depths: Floats
    times: Floats
    values: Floats  # (times, 2 or 3, depths, north, east): the volume may omit the vertical component


def make_flow(loaded: LoadedConfig, water: Water) -> FlowField:
    """Build the flow of a configuration in the form that the kernels use."""
    c = loaded.config.world.current
    stream = np.array([c.north, c.east, c.down, c.tide_amplitude, c.tide_direction, c.tide_period, c.tide_phase])
    layers = np.array([[a.depth, a.north, a.east, a.down] for a in c.layer]).reshape(-1, 4)
    if water.volume is None:
        empty = np.zeros((0, 2, 0, 0, 0))
        return FlowField(stream, layers, np.zeros(2), np.ones(2), np.zeros(2), np.zeros(0), empty)
    v = water.volume
    values = np.array(v.values[:, list(v.flow)], order="C")
    return FlowField(
        stream, layers, np.array(v.origin), np.array(v.spacing), np.array(v.depths), np.array(v.times), values
    )


@device_function
def uniform_flow(flow: FlowField, time: float) -> tuple[float, float, float]:
    """Return the uniform part of the flow (north, east, down): the mean flow plus the tidal stream."""
    s = flow.uniform
    speed = s[F_AMPLITUDE] * cos(2.0 * math.pi * time / s[F_PERIOD] + s[F_PHASE])
    east, north = sin_cos(s[F_DIRECTION])
    return s[F_NORTH] + speed * north, s[F_EAST] + speed * east, s[F_DOWN]


@device_function
def flow_at(flow: FlowField, time: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the flow (north, east, down) at a point."""
    north, east, down = uniform_flow(flow, time)
    if flow.layers.shape[0]:
        k, n = 0, flow.layers.shape[0]
        while k < n - 1 and z >= flow.layers[k + 1, 0]:
            k += 1
        m = min(k + 1, n - 1)
        way = flow.layers[m, 0] - flow.layers[k, 0]
        c = min(max((z - flow.layers[k, 0]) / way, 0.0), 1.0) if way > 0.0 else 0.0
        north += flow.layers[k, 1] + c * (flow.layers[m, 1] - flow.layers[k, 1])
        east += flow.layers[k, 2] + c * (flow.layers[m, 2] - flow.layers[k, 2])
        down += flow.layers[k, 3] + c * (flow.layers[m, 3] - flow.layers[k, 3])
    nt, nz, nx, ny = flow.values.shape[0], flow.values.shape[2], flow.values.shape[3], flow.values.shape[4]
    if nz == 0:
        return north, east, down
    fx = min(max((x - flow.origin[0]) / flow.spacing[0], 0.0), nx - 1.0)
    fy = min(max((y - flow.origin[1]) / flow.spacing[1], 0.0), ny - 1.0)
    i, j = min(int(fx), nx - 2), min(int(fy), ny - 2)
    k = 0
    while k < nz - 2 and z >= flow.depths[k + 1]:
        k += 1
    t = 0
    while t < nt - 2 and time >= flow.times[t + 1]:
        t += 1
    later = min(t + 1, nt - 1)
    d = min(max((time - flow.times[t]) / (flow.times[later] - flow.times[t]), 0.0), 1.0) if later > t else 0.0
    a, b = fx - i, fy - j
    c = min(max((z - flow.depths[k]) / (flow.depths[k + 1] - flow.depths[k]), 0.0), 1.0)
    total_n = total_e = total_d = 0.0
    is_vertical = flow.values.shape[1] > 2
    for dt in range(2 if d > 0.0 else 1):
        n = later if dt else t
        for dk in range(2):
            for di in range(2):
                for dj in range(2):
                    w = (c if dk else 1.0 - c) * (a if di else 1.0 - a) * (b if dj else 1.0 - b)
                    w *= d if dt else 1.0 - d
                    total_n += w * flow.values[n, 0, k + dk, i + di, j + dj]
                    total_e += w * flow.values[n, 1, k + dk, i + di, j + dj]
                    if is_vertical:
                        total_d += w * flow.values[n, 2, k + dk, i + di, j + dj]
    return north + total_n, east + total_e, down + total_d
