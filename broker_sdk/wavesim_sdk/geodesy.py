"""Geodetic positions. The world frame W is the tangent plane of the WGS84 ellipsoid at the world's origin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, sin_cos

__all__ = ["Origin"]

A, E2 = 6378137.0, 6.69437999014131699e-3  #: WGS84 ellipsoid: semi-major axis in m, and square of the eccentricity


class Origin:
    """Origin of a world: latitude and longitude in rad of its point (0, 0, 0)."""

    def __init__(self, latitude: float, longitude: float) -> None:
        self.latitude, self.longitude = latitude, longitude
        self._latitude, self._longitude = sin_cos(latitude), sin_cos(longitude)
        sine = self._latitude[0]
        self._radius = A / math.sqrt(1.0 - E2 * sine * sine)

    def geodetic(self, p_W: Any) -> tuple[Floats, Floats, Floats]:
        """Return the latitude and longitude in rad and the height above the ellipsoid in m of points (..., 3) in W
        (Bowring 1976, computed with tangents).
        """
        north, east, down = np.moveaxis(np.asarray(p_W, float), -1, 0)
        (s, c), (sl, cl) = self._latitude, self._longitude
        radius = self._radius
        out = (radius - down) * c - s * north  # distance from the axis, in the meridian of the origin
        x, y, z = cl * out - sl * east, sl * out + cl * east, ((1.0 - E2) * radius - down) * s + c * north
        p = np.sqrt(x * x + y * y)
        tangent = z / (p * math.sqrt(1.0 - E2))  # tangent of the reduced latitude
        for _ in range(3):
            cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
            sine = tangent * cosine
            up = z + E2 / math.sqrt(1.0 - E2) * A * sine * sine * sine
            away = p - E2 * A * cosine * cosine * cosine
            tangent = math.sqrt(1.0 - E2) * up / away
        cosine = 1.0 / np.sqrt(1.0 + (up / away) * (up / away))
        sine = up / away * cosine
        height = p * cosine + z * sine - A * np.sqrt(1.0 - E2 * sine * sine)
        return atan2(up, away), atan2(y, x), height

    def degrees(self, p_W: Any) -> tuple[Any, Any]:
        """Return (latitude, longitude) in degrees of points (..., 3) in W."""
        latitude, longitude, _ = self.geodetic(p_W)
        return np.degrees(latitude), np.degrees(longitude)

    def ned(self, latitude: float, longitude: float, height: float = 0.0) -> Floats:
        """Return the position (3,) in W, in m, for a latitude and longitude in rad and a height above the ellipsoid in
        m.
        """
        (s, c), (sl, cl) = sin_cos(latitude), sin_cos(longitude)
        (s0, c0), (sl0, cl0) = self._latitude, self._longitude
        radius = A / math.sqrt(1.0 - E2 * s * s)
        out = (radius + height) * c
        x, y = out * cl, out * sl
        ahead, east = cl0 * x + sl0 * y, cl0 * y - sl0 * x  # relative to the meridian of the origin
        ahead -= self._radius * c0
        up = ((1.0 - E2) * radius + height) * s - (1.0 - E2) * self._radius * s0
        return np.array([c0 * up - s0 * ahead, east, -(c0 * ahead + s0 * up)])
