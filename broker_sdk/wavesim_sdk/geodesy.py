"""Geodetic positions. The world frame W is the tangent plane of the WGS84 ellipsoid at the world's origin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, sin_cos

__all__ = ["Origin", "ecef", "geodetic", "ned_to_ecef"]

A, E2 = 6378137.0, 6.69437999014131699e-3  #: WGS84 ellipsoid: semi-major axis in m, and square of the eccentricity


class Origin:
    """Origin of a world: latitude and longitude in rad of its point (0, 0, 0)."""

    def __init__(self, latitude: float, longitude: float) -> None:
        self.latitude, self.longitude = latitude, longitude
        self._latitude, self._longitude = sin_cos(latitude), sin_cos(longitude)
        sine = self._latitude[0]
        self._radius = A / math.sqrt(1.0 - E2 * sine * sine)

    def ecef(self, p_W: Any) -> Floats:
        """Return the Earth-centred, Earth-fixed coordinates (..., 3) in m of points (..., 3) in W."""
        return np.stack(np.broadcast_arrays(*self._ecef(p_W)), axis=-1)

    def from_ecef(self, p_E: Any) -> Floats:
        """Convert Earth-centred, Earth-fixed coordinates (..., 3) in m to points (..., 3) in W, in m."""
        x, y, z = np.moveaxis(np.asarray(p_E, float), -1, 0)
        (s, c), (sl, cl) = self._latitude, self._longitude
        ahead, east = cl * x + sl * y - self._radius * c, cl * y - sl * x
        up = z - (1.0 - E2) * self._radius * s
        return np.stack([c * up - s * ahead, east, -(c * ahead + s * up)], axis=-1)

    def _ecef(self, p_W: Any) -> tuple[Any, Any, Any]:
        north, east, down = np.moveaxis(np.asarray(p_W, float), -1, 0)
        (s, c), (sl, cl) = self._latitude, self._longitude
        radius = self._radius
        out = (radius - down) * c - s * north  # distance from the axis, in the meridian of the origin
        return cl * out - sl * east, sl * out + cl * east, ((1.0 - E2) * radius - down) * s + c * north

    def geodetic(self, p_W: Any) -> tuple[Floats, Floats, Floats]:
        """Return the latitude and longitude in rad and the height above the ellipsoid in m of points (..., 3) in W."""
        return _geodetic(*self._ecef(p_W))

    def degrees(self, p_W: Any) -> tuple[Any, Any]:
        """Return the latitudes and longitudes in degrees of points (..., 3) in W."""
        latitude, longitude, _ = self.geodetic(p_W)
        return np.degrees(latitude), np.degrees(longitude)

    def ned(self, latitude: Any, longitude: Any, height: Any = 0.0) -> Floats:
        """Return the positions (..., 3) in W, in m, for latitudes and longitudes in rad and heights above the ellipsoid
        in m.
        """
        (s, c), (sl, cl) = sin_cos(latitude), sin_cos(longitude)
        (s0, c0), (sl0, cl0) = self._latitude, self._longitude
        radius = A / np.sqrt(1.0 - E2 * s * s)
        out = (radius + height) * c
        x, y = out * cl, out * sl
        ahead, east = cl0 * x + sl0 * y, cl0 * y - sl0 * x  # relative to the meridian of the origin
        ahead = ahead - self._radius * c0
        up = ((1.0 - E2) * radius + height) * s - (1.0 - E2) * self._radius * s0
        return np.stack(np.broadcast_arrays(c0 * up - s0 * ahead, east, -(c0 * ahead + s0 * up)), axis=-1)


def ecef(latitude: Any, longitude: Any, height: Any = 0.0) -> Floats:
    """Return the Earth-centred, Earth-fixed coordinates (..., 3) in m for latitudes and longitudes in rad and heights
    above the ellipsoid in m. The x axis points to latitude 0, longitude 0, and the z axis to the north pole.
    """
    (s, c), (sl, cl) = sin_cos(np.asarray(latitude, float)), sin_cos(np.asarray(longitude, float))
    radius = A / np.sqrt(1.0 - E2 * s * s)
    out = (radius + height) * c
    return np.stack(np.broadcast_arrays(out * cl, out * sl, ((1.0 - E2) * radius + height) * s), axis=-1)


def geodetic(p_E: Any) -> tuple[Floats, Floats, Floats]:
    """Return the latitude and longitude in rad and the height above the ellipsoid in m of Earth-centred, Earth-fixed
    coordinates (..., 3) in m. At the poles, where any longitude is correct, the function returns the longitude 0.
    """
    return _geodetic(*np.moveaxis(np.asarray(p_E, float), -1, 0))


def ned_to_ecef(latitude: Any, longitude: Any) -> Floats:
    """Return the rotation matrices R_EW (..., 3, 3) of local north-east-down frames W at latitudes and longitudes in
    rad, such that ``v_E = R_EW v_W``; E is the Earth-centred, Earth-fixed frame. The transposed matrices convert from E
    to W.
    """
    (s, c), (sl, cl) = sin_cos(np.asarray(latitude, float)), sin_cos(np.asarray(longitude, float))
    zero = np.zeros_like(s * sl)
    elements = np.broadcast_arrays(-s * cl, -sl, -c * cl, -s * sl, cl, -c * sl, c, zero, -s)
    return np.stack(elements, axis=-1).reshape((*elements[0].shape, 3, 3))


def _geodetic(x: Any, y: Any, z: Any) -> tuple[Floats, Floats, Floats]:
    """Convert Earth-centred, Earth-fixed to geodetic coordinates (Bowring 1976, computed with tangents)."""
    p = np.maximum(np.sqrt(x * x + y * y), 1e-9)  # the tangent is infinite on the axis
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
