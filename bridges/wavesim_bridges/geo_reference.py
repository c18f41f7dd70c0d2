"""Conversion between geographic positions and the local world. The world's plane is tangent to the WGS84 ellipsoid at
the origin.
"""

from __future__ import annotations

from collections.abc import Callable
from math import degrees, radians
from typing import Any

import click

from wavesim_sdk import geodesy
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import WaveSimError
from wavesim_world.config import load


class WorldOrigin:
    """Origin of a world at sea level, in degrees."""

    def __init__(self, latitude: float, longitude: float) -> None:
        self.latitude, self.longitude = latitude, longitude
        self._origin = geodesy.Origin(radians(latitude), radians(longitude))

    def degrees(self, north: float, east: float) -> tuple[float, float]:
        """Return the latitude and longitude of a position."""
        latitude, longitude = self._origin.degrees((north, east, 0.0))
        return float(latitude), float(longitude)

    def metres(self, latitude: float, longitude: float) -> tuple[float, float]:
        """Return the north and east coordinates of a position in m."""
        north, east, _ = self._origin.ned(radians(latitude), radians(longitude))
        return float(north), float(east)


def origin_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the command-line options that define the world's origin; :func:`origin_of` evaluates them."""
    for option in (
        click.option(
            "--config", help="Configuration that defines the world's origin, instead of --latitude and --longitude."
        ),
        click.option("--longitude", type=Quantity("angle", "deg"), help="Longitude of the world's origin in degrees."),
        click.option("--latitude", type=Quantity("angle", "deg"), help="Latitude of the world's origin in degrees."),
    ):
        function = option(function)
    return function


def origin_of(latitude: float | None, longitude: float | None, config: str | None) -> WorldOrigin:
    """Return the world's origin from the values of the options that :func:`origin_options` added."""
    if config is not None:
        world = load(config).config.world
        return WorldOrigin(degrees(world.latitude), degrees(world.longitude))
    if latitude is None or longitude is None:
        raise WaveSimError("the world's origin is missing: use --latitude and --longitude in degrees, or --config FILE")
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 180.0):
        raise WaveSimError(
            f"{latitude:g}, {longitude:g} is not a position on the Earth: specify latitude and longitude in degrees"
        )
    return WorldOrigin(latitude, longitude)
