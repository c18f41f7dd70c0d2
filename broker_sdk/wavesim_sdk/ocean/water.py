"""Pressure, temperature, conductivity and flow as pure functions of position and time.

The paper's models (profile with two knees, Gaussian spots, pressure polynomial) and gridded volumes
read from CSV.  All functions take arrays of positions and are shared by server, emulators and users.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.config.load import Loaded
from wavesim_sdk.config.world import Conductivity, Current, Spot, Temperature, World
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.ocean import seawater

Array = np.ndarray[Any, np.dtype[np.float64]]

EARTH_RADIUS = 6371008.8  #: mean radius (IUGG), for the local flat map of a volume


def pressure(world: World, depth: Array) -> Array:
    """Absolute pressure in dbar: P0 + P1 z + P2 z^2."""
    z = np.asarray(depth, float)
    return np.asarray(world.pressure_0 + z * (world.pressure_1 + z * world.pressure_2))


def depth_of_pressure(world: World, pressure_dbar: float) -> float:
    """Depth in m: the inverse of :func:`pressure`."""
    p, a, b = pressure_dbar - world.pressure_0, world.pressure_2, world.pressure_1
    if a == 0.0:
        return p / b
    return float(2.0 * p / (b + math.sqrt(b * b + 4.0 * a * p)))


def profile(field: Temperature | Conductivity, z: Array) -> Array:
    """The paper's vertical profile: constant, gradient 1 between the knees, gradient 2 below."""
    first = np.clip(z - field.knee_1, 0.0, max(field.knee_2 - field.knee_1, 0.0))
    return np.asarray(field.surface + field.gradient_1 * first + field.gradient_2 * np.maximum(z - field.knee_2, 0.0))


def spots(of: Sequence[Spot], p_W: Array) -> Array:
    """Sum of the Gaussian deviations at positions (..., 3)."""
    total = np.zeros(p_W.shape[:-1])
    for s in of:
        d = (p_W - np.array(s.position)) * np.array([s.alpha, s.beta, s.gamma])
        total += s.deviation * np.exp(-np.sum(d * d, axis=-1))
    return total


def tide(current: Current, time_s: float) -> Array:
    """Uniform flow (north, east, down) in m/s at a time."""
    stream = current.tide_amplitude * math.cos(2 * math.pi * time_s / current.tide_period + current.tide_phase)
    return np.array(
        [
            current.north + stream * math.cos(current.tide_direction),
            current.east + stream * math.sin(current.tide_direction),
            0.0,
        ]
    )


@dataclass(frozen=True)
class Grid:
    """Values on a regular horizontal grid with any depth levels and times; linear between the points.

    ``origin`` and ``spacing`` are (north, east) in m, ``depths`` ascending in m, ``times`` ascending in s, ``values``
    has shape (times, quantities, depths, north, east) and no gaps: see ``filled``.  ``filled`` marks points of
    the grid (times, depths, north, east) that had no data and hold their nearest neighbour's.
    """

    origin: tuple[float, float]
    spacing: tuple[float, float]
    depths: Array
    times: Array
    values: Array
    filled: np.ndarray[Any, np.dtype[np.bool_]]

    def at(self, time_s: float) -> Array:
        """Values (quantities, depths, north, east) at a time; before the first and after the last, theirs."""
        n = int(np.clip(np.searchsorted(self.times, time_s, side="right") - 1, 0, max(len(self.times) - 2, 0)))
        if len(self.times) == 1:
            return np.asarray(self.values[0])
        t = np.clip((time_s - self.times[n]) / (self.times[n + 1] - self.times[n]), 0.0, 1.0)
        return np.asarray(self.values[n] * (1 - t) + self.values[n + 1] * t)

    def __call__(self, p_W: Array, time_s: float = 0.0) -> Array:
        """(quantities, ...) at positions (..., 3); beyond the edges, the edge's value."""
        p = np.asarray(p_W, float)
        nz, nx, ny = self.values.shape[2:]
        fx = np.clip((p[..., 0] - self.origin[0]) / self.spacing[0], 0.0, nx - 1.0)
        fy = np.clip((p[..., 1] - self.origin[1]) / self.spacing[1], 0.0, ny - 1.0)
        i = np.minimum(fx.astype(int), nx - 2)
        j = np.minimum(fy.astype(int), ny - 2)
        k = np.clip(np.searchsorted(self.depths, p[..., 2], side="right") - 1, 0, nz - 2)
        z0, z1 = self.depths[k], self.depths[k + 1]
        c = np.clip((p[..., 2] - z0) / (z1 - z0), 0.0, 1.0)
        a, b = fx - i, fy - j
        v = self.at(time_s)
        top = (v[:, k, i, j] * (1 - b) + v[:, k, i, j + 1] * b) * (1 - a) + (
            v[:, k, i + 1, j] * (1 - b) + v[:, k, i + 1, j + 1] * b
        ) * a
        low = (v[:, k + 1, i, j] * (1 - b) + v[:, k + 1, i, j + 1] * b) * (1 - a) + (
            v[:, k + 1, i + 1, j] * (1 - b) + v[:, k + 1, i + 1, j + 1] * b
        ) * a
        return np.asarray(top * (1 - c) + low * c)


#: quantities of a volume in the order of ``Grid.values``, and their columns in the file
VOLUME_COLUMNS = {
    "temperature": "sea_water_temperature_degC",
    "salinity": "sea_water_salinity_psu",
    "north": "northward_sea_water_velocity_meter_per_sec",
    "east": "eastward_sea_water_velocity_meter_per_sec",
}
_AXES = ("depth_meter", "latitude_degree", "longitude_degree")
_TIME = "elapsed_time_second"


def read_volume(path: Path, latitude: float, longitude: float) -> Grid:
    """Read a gridded volume; (latitude, longitude) in rad is the point that lies at NED (0, 0)."""
    rows: list[list[float]] = []
    try:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            wanted = (*_AXES, *VOLUME_COLUMNS.values())
            missing = [c for c in wanted if c not in (reader.fieldnames or ())]
            if missing:
                raise ConfigError(f"the volume lacks the column '{missing[0]}'", str(path), 1)
            for row in reader:
                try:
                    rows.append([float(row[c]) for c in wanted] + [float(row.get(_TIME) or 0.0)])
                except (ValueError, TypeError):
                    raise ConfigError("not a row of numbers", str(path), reader.line_num) from None
    except OSError as error:
        raise ConfigError(f"cannot read the volume: {error.strerror}", str(path)) from None
    if not rows:
        raise ConfigError("the volume holds no data", str(path))
    data = np.array(rows)
    depths, lats, lons, times = (np.unique(data[:, c]) for c in (0, 1, 2, -1))
    shape = len(times), len(depths), len(lats), len(lons)
    if len(data) != math.prod(shape) or min(shape[1:]) < 2:
        raise ConfigError("the volume is no complete grid of depth, latitude and longitude", str(path))
    index = tuple(np.searchsorted(axis, data[:, c]) for axis, c in ((times, -1), (depths, 0), (lats, 1), (lons, 2)))
    values = np.full((len(times), len(VOLUME_COLUMNS), *shape[1:]), np.nan)
    for q in range(len(VOLUME_COLUMNS)):
        values[:, q][index] = data[:, 3 + q]
    if not np.isfinite(values).any():
        raise ConfigError("the volume holds no finite value", str(path))
    filled = ~np.isfinite(values).all(axis=1)
    for n in range(len(times)):
        for q in range(len(VOLUME_COLUMNS)):
            _fill(values[n, q], filled[n])
    rad = math.pi / 180.0
    metres = EARTH_RADIUS * rad
    east = metres * math.cos(latitude)
    return Grid(
        ((lats[0] - latitude / rad) * metres, (lons[0] - longitude / rad) * east),
        (float(np.diff(lats).mean()) * metres, float(np.diff(lons).mean()) * east),
        depths,
        times,
        values,
        filled,
    )


def _fill(values: Array, missing: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    """Fill gaps of one quantity (depth, lat, lon): from the level above, else from the nearest column."""
    for k in range(len(values)):
        level, gaps = values[k], missing[k]
        if gaps.all() and k:
            level[:] = values[k - 1]
        elif gaps.any():
            have = np.argwhere(~gaps)
            for i, j in np.argwhere(gaps):
                if k and not missing[k - 1, i, j]:
                    level[i, j] = values[k - 1, i, j]
                elif len(have):
                    n = have[np.argmin(np.sum((have - (i, j)) ** 2, axis=1))]
                    level[i, j] = level[n[0], n[1]]
                else:
                    level[i, j] = np.nanmean(values)


class Water:
    """The water of a configuration: call its methods with positions (..., 3) in W."""

    def __init__(self, loaded: Loaded) -> None:
        self.world = loaded.config.world
        v = self.world.volume
        self.volume = read_volume(loaded.data_file(v.file), v.latitude, v.longitude) if v else None

    def pressure(self, p_W: Array) -> Array:
        """Absolute pressure, dbar."""
        return pressure(self.world, np.asarray(p_W)[..., 2])

    def temperature(self, p_W: Array, time_s: float = 0.0) -> Array:
        """Temperature, C."""
        if self.volume is not None:
            return np.asarray(self.volume(p_W, time_s)[0])
        field = self.world.temperature
        return profile(field, np.asarray(p_W)[..., 2]) + spots(field.spot, np.asarray(p_W))

    def conductivity(self, p_W: Array, time_s: float = 0.0) -> Array:
        """Conductivity, S/m; of a volume, from its salinity and temperature at that pressure."""
        if self.volume is not None:
            values = self.volume(p_W, time_s)
            gauge = np.maximum(self.pressure(p_W) - self.world.pressure_0, 0.0)
            return seawater.conductivity(values[1], values[0], gauge)
        field = self.world.conductivity
        return profile(field, np.asarray(p_W)[..., 2]) + spots(field.spot, np.asarray(p_W))

    def current(self, p_W: Array, time_s: float) -> Array:
        """Flow (..., 3) north, east, down in m/s, without the drift (which is random; the server publishes it)."""
        p = np.asarray(p_W, float)
        flow = np.broadcast_to(tide(self.world.current, time_s), p.shape).copy()
        layers = self.world.current.layer
        if layers:
            depths = [layer.depth for layer in layers]
            flow[..., 0] += np.interp(p[..., 2], depths, [layer.north for layer in layers])
            flow[..., 1] += np.interp(p[..., 2], depths, [layer.east for layer in layers])
        if self.volume is not None:
            values = self.volume(p, time_s)
            flow[..., 0] += values[2]
            flow[..., 1] += values[3]
        return flow
