"""Elevation and motion of the sea surface, for bodies and for sound; compiled. ``wavesim_world.ocean.surface`` makes the
wave components and contains a more readable version of the same sum.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.elementary import cos, sin_cos
from wavesim_world.ocean.surface import S_AMPLITUDE, S_EAST, S_FREQUENCY, S_NORTH, S_PHASE


@device_function
def tide_level(tide: Floats, time: float) -> float:
    """Return the depth (m, positive downwards) of the still-water level; ``tide`` contains amplitude, period, phase."""
    return -tide[0] * cos(2.0 * math.pi * time / tide[1] + tide[2])


@device_function
def surface_motion(sea: Floats, time: float, x: float, y: float, parts: Floats) -> tuple[float, float, float, float]:
    """Return the elevation of the surface (positive upwards) at a point, the slopes of the surface to the north and
    east, and the rate in m/s at which the surface rises at that point.

    ``parts`` (2, n) stores sines and cosines, so that the compiler can vectorise their computation.
    """
    sines, cosines = parts[0], parts[1]
    for i in range(sea.shape[0]):
        angle = sea[i, S_FREQUENCY] * time - sea[i, S_NORTH] * x - sea[i, S_EAST] * y + sea[i, S_PHASE]
        sines[i], cosines[i] = sin_cos(angle)
    up = north = east = rise = 0.0
    for i in range(sea.shape[0]):
        up += sea[i, S_AMPLITUDE] * cosines[i]
        steep = sea[i, S_AMPLITUDE] * sines[i]
        north += sea[i, S_NORTH] * steep
        east += sea[i, S_EAST] * steep
        rise -= sea[i, S_FREQUENCY] * steep
    return up, north, east, rise


@device_function
def elevation(sea: Floats, time: float, x: float, y: float) -> tuple[float, float, float]:
    """Return the elevation of the surface (positive upwards) at a point, and the slopes of the surface to the north and
    east.
    """
    up, north, east, _ = surface_motion(sea, time, x, y, np.empty((2, sea.shape[0])))
    return up, north, east
