"""Survey patterns: parallel legs over an area, and circles. Mission control (the viewer) generates the same tracks.

area = [(0, 0), (100, 0), (100, 60), (0, 60)]
mission = [Waypoint(north, east, depth=5.0, speed=1.2) for north, east in parallel_legs(area, 10.0)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_sdk import arguments
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.errors import InvalidArgument

__all__ = ["circle_points", "parallel_legs"]

MAX_LEGS = 100_000  #: maximum number of legs of a pattern


def parallel_legs(area: Sequence[Sequence[float]] | Floats, spacing: float, heading: float = 0.0) -> Floats:
    """Return the end points (n, 2) of parallel legs (lawnmower pattern), in the order in which a vehicle visits them.

    ``area`` contains the corners (north, east) of a polygon in m, and may be concave. ``spacing`` is the largest
    distance in m between legs, and ``heading`` is their direction in rad. No point of the polygon is farther than half
    the spacing from a leg's line. Raises InvalidArgument if there are fewer than three corners or the spacing is not
    positive.
    """
    corners = np.asarray(area, float)
    spacing, heading = arguments.number("spacing", spacing), arguments.number("heading", heading)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3 or not np.isfinite(corners).all():
        raise InvalidArgument("area must contain at least three corners, each with north and east in m")
    if spacing <= 0.0:
        raise InvalidArgument(f"spacing must be greater than 0 m, got {spacing:g}")
    s, c = sin_cos(heading)
    along, across = corners[:, 0] * c + corners[:, 1] * s, corners[:, 1] * c - corners[:, 0] * s
    low = float(across.min())
    width = float(across.max()) - low
    count = max(1, math.ceil(width / spacing - 1e-9))
    if count > MAX_LEGS:
        raise InvalidArgument(f"the pattern needs {count} legs; the maximum is {MAX_LEGS}")
    found: list[tuple[float, float]] = []
    for k in range(count):
        at = low + (width - (count - 1) * spacing) / 2.0 + k * spacing
        for end in sorted(_crossings(along, across, at), reverse=k % 2 == 1):
            found.append((end * c - at * s, end * s + at * c))
    return np.array(found, float).reshape(-1, 2)


def _crossings(along: Floats, across: Floats, at: float) -> Any:
    """Yield the points at which the line ``across = at`` crosses the sides of the polygon."""
    for a, b, p, q in zip(across, np.roll(across, -1), along, np.roll(along, -1), strict=True):
        if (a <= at) != (b <= at):
            yield float(p + (at - a) / (b - a) * (q - p))


def circle_points(middle: Sequence[float], radius: float, points: int = 12) -> Floats:
    """Return the points (points + 1, 2) of a closed circle, north and east in m, starting and ending in the north."""
    s, c = sin_cos(2.0 * math.pi / points * np.arange(points + 1))
    return np.stack([middle[0] + radius * c, middle[1] + radius * s], axis=-1)
