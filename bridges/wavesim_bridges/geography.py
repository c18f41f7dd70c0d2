"""Geographic positions of a local world: its plane touches the ellipsoid (WGS84) at the origin."""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, cos, degrees, hypot, radians, sin, sqrt
from typing import Any

import click
import numpy as np

from wavesim_bridges.motion import Array
from wavesim_sdk.config import load
from wavesim_sdk.errors import WaveSimError

_EQUATOR_M, _E2 = 6378137.0, 6.69437999014e-3


def _earth(latitude: float, longitude: float) -> Array:
    """A point of the ellipsoid, earth-centred (m), from degrees."""
    p, l = radians(latitude), radians(longitude)
    n = _EQUATOR_M / sqrt(1.0 - _E2 * sin(p) ** 2)
    return np.array([n * cos(p) * cos(l), n * cos(p) * sin(l), n * (1.0 - _E2) * sin(p)])


class Origin:
    """Of a world, in degrees."""

    def __init__(self, latitude: float, longitude: float) -> None:
        self.latitude, self.longitude = latitude, longitude
        self._place = _earth(latitude, longitude)
        (sp, cp), (sl, cl) = ((sin(radians(a)), cos(radians(a))) for a in (latitude, longitude))
        self._axes = np.array(
            [[-sp * cl, -sp * sl, cp], [-sl, cl, 0.0], [-cp * cl, -cp * sl, -sp]]
        )  # rows: north, east, down

    def degrees(self, north: float, east: float) -> tuple[float, float]:
        """Latitude and longitude of a place at sea level."""
        x, y, z = self._place + north * self._axes[0] + east * self._axes[1]
        r, p = hypot(x, y), atan2(z, (1.0 - _E2) * hypot(x, y))
        for _ in range(4):
            n = _EQUATOR_M / sqrt(1.0 - _E2 * sin(p) ** 2)
            p = atan2(z + _E2 * n * sin(p), r)
        return degrees(p), degrees(atan2(y, x))

    def metres(self, latitude: float, longitude: float) -> tuple[float, float]:
        """North and east of a place at sea level."""
        north, east, _ = self._axes @ (_earth(latitude, longitude) - self._place)
        return float(north), float(east)


def with_origin(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a bridge that has to know where the world is; :func:`origin_of` reads them."""
    for option in (
        click.option("--config", help="The world's configuration, whose origin it is."),
        click.option("--longitude", type=float, help="Of the world's origin, in degrees."),
        click.option("--latitude", type=float, help="Of the world's origin, in degrees."),
    ):
        function = option(function)
    return function


def origin_of(latitude: float | None, longitude: float | None, config: str | None) -> Origin:
    """The world's origin by these options."""
    if config is not None:
        world = load(config).config.world
        return Origin(degrees(world.latitude), degrees(world.longitude))
    if latitude is None or longitude is None:
        raise WaveSimError("where is the world's origin? Give --latitude and --longitude in degrees, or --config FILE")
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 180.0):
        raise WaveSimError(
            f"{latitude:g}, {longitude:g} is no place on the earth; latitude and longitude are in degrees"
        )
    return Origin(latitude, longitude)
