"""The moving sea surface as a reflector of sound; compiled.

The surface elevation is the tide plus the sum of the wave components that also act on the bodies. A command can change
the sea during the run, and the surface then jumps at that time. Each reflection uses the sea at the time of the
reflection, so a signal in transit can be reflected by the old sea and later by the new one. The medium therefore stores
the present sea, and each earlier sea that may have reflected a signal that is still in transit, with the times from
which they apply.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_sdk.tables import Table, integer, value
from wavesim_server.acoustics.types import Records
from wavesim_server.environment.sea_surface import surface_motion, tide_level

TIDE_STEP = 1.0  #: half of the interval in s over which the rate of the tide is computed

SEA_PERIOD = Table(
    "sea period",
    "Sea state between two weather changes.",
    "medium",
    (
        value("start", "s", "Time from which this sea applies."),
        integer("first", "", "First row of its components."),
        integer("count", "", "Number of its components."),
        value("deviation", "m", "Standard deviation of the surface elevation."),
        value("curvature", "1/m", "Curvature that the surface rarely exceeds."),
    ),
)


class SurfaceMotion(NamedTuple):
    """The moving surface, as met by a signal that was sent at ``emission`` (s) in water with the sound speed ``speed``.

    ``periods`` contains SEA_PERIOD records in chronological order; ``components`` contains the wave components of all
    periods. If there are no periods, the surface is flat and at rest. ``tide`` contains amplitude, period and phase.
    """

    components: Floats
    periods: Records
    tide: Floats
    emission: float
    speed: float
    parts: Floats  # space for :func:`surface_motion`


class SurfacePoint(NamedTuple):
    """A point of the surface: its depth z in m, the slopes of the surface (positive where it rises), and the rate in
    m/s at which it rises.
    """

    z: float
    north: float
    east: float
    rise: float


@device_function
def sea_period_at(surface: SurfaceMotion, delay: float) -> int:
    """Return the row of the sea that applies at a time in s after the emission."""
    k = surface.periods.shape[0] - 1
    while k > 0 and surface.periods[k].start > surface.emission + delay:
        k -= 1
    return k


@device_function
def surface_at(surface: SurfaceMotion, delay: float, x: float, y: float) -> SurfacePoint:
    """Return the point of the surface above a position at a time in s after the emission."""
    sea, time = surface.periods[sea_period_at(surface, delay)], surface.emission + delay
    components = surface.components[sea.first : sea.first + sea.count]
    up, north, east, rise = surface_motion(components, time, x, y, surface.parts)
    level = 0.0
    if surface.tide[0] > 0.0:
        level = tide_level(surface.tide, time)
        rise -= (tide_level(surface.tide, time + TIDE_STEP) - tide_level(surface.tide, time - TIDE_STEP)) / (
            2.0 * TIDE_STEP
        )
    return SurfacePoint(level - up, north, east, rise)


@device_function
def still_level_at(surface: SurfaceMotion, delay: float) -> float:
    """Return the depth in m of the still-water level at a time in s after the emission."""
    return tide_level(surface.tide, surface.emission + delay) if surface.tide[0] > 0.0 else 0.0


@device_function
def moving_plane(surface: SurfaceMotion, delay: float, x: float, y: float) -> tuple[float, float, float, float, float]:
    """Return (n, d, v) of the plane n . p - v c t = d that touches the moving surface at a position at the time t =
    ``delay`` in s after the emission. The unit vector n points into the water; v is the plane's velocity along n,
    divided by the sound speed c.
    """
    at = surface_at(surface, delay, x, y)
    unit = 1.0 / math.sqrt(1.0 + at.north * at.north + at.east * at.east)
    nx, ny, nz, v = at.north * unit, at.east * unit, unit, -at.rise * unit / surface.speed
    return nx, ny, nz, nx * x + ny * y + nz * at.z - v * surface.speed * delay, v
