"""Measured water: gridded volumes and scattered points, read from CSV files.

Both contain temperature, salinity and time; a volume also contains flow and optional additional columns. The reader
rejects a physically impossible value (wrong unit, wrong column) and reports its line number.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wavesim_sdk.algebra import dot, norm
from wavesim_sdk.arrays import Floats, Mask
from wavesim_sdk.elementary import cos, power
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import check_installed

EARTH_RADIUS = (
    6371008.8  #: mean radius of the earth in m (IUGG), for the conversion of a file's coordinates to a local plane
)
MAX_BYTES = 512 * 2**20
#: quantities of a volume, in the order of ``VolumeGrid.values``, each with the column of the file that contains it
VOLUME_COLUMNS = {
    "temperature": "sea_water_temperature_degC",
    "salinity": "sea_water_salinity_psu",
    "north": "northward_sea_water_velocity_meter_per_sec",
    "east": "eastward_sea_water_velocity_meter_per_sec",
}
#: optional column of a volume with the vertical flow; positive up in the file, as its CF standard name says
UPWARD_COLUMN = "upward_sea_water_velocity_meter_per_sec"
#: optional column of a volume with the sound speed, which then replaces the formula
SPEED_COLUMN = "speed_of_sound_in_sea_water_meter_per_sec"
_AXES = ("depth_meter", "latitude_degree", "longitude_degree")
_TIME = "elapsed_time_second"
#: valid range of each column of the file; a quantity may also be NaN (not measured)
LIMITS = {
    "depth_meter": (-100.0, 12_000.0),
    "latitude_degree": (-90.0, 90.0),
    "longitude_degree": (-180.0, 360.0),
    _TIME: (-1e12, 1e12),
    VOLUME_COLUMNS["temperature"]: (-5.0, 45.0),
    VOLUME_COLUMNS["salinity"]: (0.0, 60.0),
    VOLUME_COLUMNS["north"]: (-10.0, 10.0),
    VOLUME_COLUMNS["east"]: (-10.0, 10.0),
    UPWARD_COLUMN: (-10.0, 10.0),
    SPEED_COLUMN: (1300.0, 1800.0),
}


@dataclass(frozen=True)
class VolumeGrid:
    """Water properties on a regular horizontal grid with any depth levels and times, interpolated linearly between the
    grid points.

    ``origin`` and ``spacing`` are (north, east) in m, ``depths`` ascending in m, ``times`` ascending in s. ``values``
    has the shape (times, quantities, depths, north, east) and no gaps. ``filled`` marks grid points (times, depths,
    north, east) without data, which have the value of their nearest neighbour. ``flow`` contains the quantities that
    are the components of the flow: north, east and, if the file contains a vertical flow, down. ``sound_speed`` is the
    quantity that is the sound speed, or None if the file does not contain it.
    """

    origin: tuple[float, float]
    spacing: tuple[float, float]
    depths: Floats
    times: Floats
    values: Floats
    filled: Mask
    flow: tuple[int, ...] = (2, 3)
    sound_speed: int | None = None

    def at(self, time_s: float) -> Floats:
        """Return the values (quantities, depths, north, east) at a given time. The values are constant before the first
        and after the last time.
        """
        n = int(np.clip(np.searchsorted(self.times, time_s, side="right") - 1, 0, max(len(self.times) - 2, 0)))
        if len(self.times) == 1:
            return np.asarray(self.values[0])
        t = np.clip((time_s - self.times[n]) / (self.times[n + 1] - self.times[n]), 0.0, 1.0)
        return np.asarray(self.values[n] * (1 - t) + self.values[n + 1] * t)

    def __call__(self, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return (quantities, ...) at positions (..., 3). Outside the grid, the values at its edge apply."""
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


def _read(
    path: Path, what: str, quantities: Sequence[str], optional: Sequence[str] = ()
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Return rows (n, 4 + quantities) of depth, latitude, longitude, time and quantities, the line number of each row,
    and the quantities. The quantities include those ``optional`` ones that the file contains.
    """
    rows: list[list[float]] = []
    lines: list[int] = []
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"the {what} is larger than {MAX_BYTES >> 20} MiB", str(path))
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            quantities = (*quantities, *(column for column in optional if column in (reader.fieldnames or ())))
            wanted = (*_AXES, _TIME, *quantities)
            for column in wanted:
                if column != _TIME and column not in (reader.fieldnames or ()):
                    raise ConfigError(f"the {what} has no column '{column}'", str(path), 1)
            for row in reader:
                values = []
                for column in wanted:
                    text = row.get(column) or ("0" if column == _TIME else "")
                    try:
                        value = float(text)
                    except ValueError:
                        raise ConfigError(f"{column} is not a number", str(path), reader.line_num) from None
                    low, high = LIMITS.get(column, (-1e30, 1e30))
                    unknown = math.isnan(value) and column in quantities
                    if not unknown and not low <= value <= high:
                        raise ConfigError(f"{column} is {value:g}; use {low:g} to {high:g}", str(path), reader.line_num)
                    values.append(value)
                rows.append(values)
                lines.append(reader.line_num)
    except OSError as error:
        raise ConfigError(f"cannot read the {what}: {error.strerror}", str(path)) from None
    except (UnicodeDecodeError, csv.Error):
        raise ConfigError(f"the {what} is not a valid CSV file in UTF-8", str(path)) from None
    if not rows:
        raise ConfigError(f"the {what} has no data", str(path))
    return np.array(rows), np.array(lines, float), quantities


def metres_east(latitude: float) -> float:
    """Return the number of metres in one degree of longitude."""
    return EARTH_RADIUS * math.pi / 180.0 * float(cos(latitude))


def _even(axis: Floats, name: str, path: Path) -> float:
    """Return the spacing of an axis. Raises ConfigError if it is not uniform."""
    steps = np.diff(axis)
    mean = float(steps.mean())
    if np.abs(steps - mean).max() > 0.01 * mean:
        k = int(np.abs(steps - mean).argmax())
        raise ConfigError(f"the {name}s of the volume are not evenly spaced: {axis[k]:g}, {axis[k + 1]:g}", str(path))
    return mean


def read_volume(path: Path, latitude: float, longitude: float, more: Sequence[str] = ()) -> VolumeGrid:
    """Read a gridded volume. ``latitude`` and ``longitude`` (rad) are the position of the origin of W.

    ``more`` names additional columns; in the values, they follow the columns of VOLUME_COLUMNS. The vertical flow and
    the sound speed are the last quantities, if the file contains them.
    """
    optional = [UPWARD_COLUMN, SPEED_COLUMN]
    data, lines, quantities = _read(path, "volume", (*VOLUME_COLUMNS.values(), *more), optional)
    first = len(VOLUME_COLUMNS) + len(more)
    place = {column: first + k for k, column in enumerate(quantities[first:])}
    upward, speed = place.get(UPWARD_COLUMN), place.get(SPEED_COLUMN)
    depths, lats, lons, times = (np.unique(data[:, c]) for c in range(4))
    shape = len(times), len(depths), len(lats), len(lons)
    index = tuple(np.searchsorted(a, data[:, c]) for a, c in ((times, 3), (depths, 0), (lats, 1), (lons, 2)))
    seen = np.full(shape, -1)
    for at, line in zip(zip(*index, strict=True), lines, strict=True):
        if seen[at] >= 0:
            raise ConfigError(
                f"duplicate line: its point and time equal those of line {seen[at]}", str(path), int(line)
            )
        seen[at] = line
    if (seen < 0).any() or min(shape[1:]) < 2:
        n, k, i, j = (int(x) for x in np.argwhere(seen < 0)[0]) if (seen < 0).any() else (0, 0, 0, 0)
        lacks = f"; missing: depth {depths[k]:g}, latitude {lats[i]:g}, longitude {lons[j]:g}, time {times[n]:g}"
        raise ConfigError(
            "the volume is not a complete grid of depth, latitude and longitude, with at least two of each"
            + (lacks if (seen < 0).any() else "")
            + " (use <samples> for scattered points)",
            str(path),
        )
    values = np.full((len(times), len(quantities), *shape[1:]), np.nan)
    for q in range(len(quantities)):
        values[:, q][index] = data[:, 4 + q]
    for q, column in enumerate(quantities):
        for n in range(len(times)):
            if not np.isfinite(values[n, q]).any():
                raise ConfigError(f"the volume has no value of {column} at time {times[n]:g}", str(path))
    known = np.isfinite(values)
    water = [q for q in range(len(quantities)) if q != speed]
    filled = ~known[:, water].all(axis=1)
    for n in range(len(times)):
        for q in range(len(quantities)):
            _fill(values[n, q], ~known[n, q] if q == speed else filled[n])
    flow: tuple[int, ...] = (2, 3)
    if upward is not None:
        flow = (2, 3, upward)
        values[:, upward] = 0.0 - values[:, upward]  # downwards
    rad = math.pi / 180.0
    metres, east = EARTH_RADIUS * rad, metres_east(latitude)
    return VolumeGrid(
        ((lats[0] - latitude / rad) * metres, (lons[0] - longitude / rad) * east),
        (_even(lats, "latitude", path) * metres, _even(lons, "longitude", path) * east),
        depths,
        times,
        values,
        filled,
        flow,
        speed,
    )


def _fill(values: Floats, missing: Mask) -> None:
    """Fill the gaps of one quantity (depth, lat, lon). Each missing value is copied from the level above or, if that
    level has a gap there too, from the nearest column with data.
    """
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
                    n = have[np.argmin(norm(have - (i, j)))]
                    level[i, j] = level[n[0], n[1]]
                else:
                    level[i, j] = np.nanmean(values)


class ScatteredSamples:
    """Values at scattered points, interpolated with inverse-distance weights in space and linearly in time."""

    def __init__(self, points: Floats, times: Floats, values: Floats, radius: float, power: float) -> None:
        check_installed("scipy")
        from scipy.spatial import cKDTree

        self.radius, self.power = radius, power
        self.times = np.unique(times)
        self.levels = []
        for t in self.times:
            at = times == t
            self.levels.append((cKDTree(points[at]), values[at]))

    def __call__(self, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return an array (quantities, ...) of values at positions (..., 3)."""
        p = np.asarray(p_W, float)
        flat = p.reshape(-1, 3)
        n = int(np.clip(np.searchsorted(self.times, time_s, side="right") - 1, 0, len(self.times) - 1))
        found = self._level(n, flat)
        if n + 1 < len(self.times) and time_s > self.times[n]:
            share = (time_s - self.times[n]) / (self.times[n + 1] - self.times[n])
            found = (1.0 - share) * found + share * self._level(n + 1, flat)
        return np.asarray(found.T.reshape(-1, *p.shape[:-1]))

    def _level(self, n: int, p: Floats) -> Floats:
        """Return the values (points, quantities) of the samples at a given time."""
        tree, values = self.levels[n]
        nearest, which = tree.query(p)
        found = values[which].copy()  # the nearest value: at data points, and where no point is within the radius
        for i in np.flatnonzero((nearest > 0.0) & (nearest <= self.radius)):
            near = np.array(tree.query_ball_point(p[i], self.radius))
            distance = norm(tree.data[near] - p[i])
            weights = power(nearest[i] / distance, self.power)  # scaled to stay finite
            found[i] = dot(weights, values[near].T) / weights.sum()
        return np.asarray(found)


def read_samples(path: Path, latitude: float, longitude: float, radius: float, power: float) -> ScatteredSamples:
    """Read scattered points of temperature and salinity. ``latitude`` and ``longitude`` (rad) are the position of the
    origin of W.
    """
    quantities = (VOLUME_COLUMNS["temperature"], VOLUME_COLUMNS["salinity"])
    data, lines, _ = _read(path, "samples", quantities)
    missing = np.flatnonzero(~np.isfinite(data).all(axis=1))
    if len(missing):
        raise ConfigError("the sample has a missing value", str(path), int(lines[missing[0]]))
    _, first, count = np.unique(data[:, :4], axis=0, return_index=True, return_counts=True)
    if (count > 1).any():
        same = np.flatnonzero((data[:, :4] == data[first[count > 1][0], :4]).all(axis=1))
        raise ConfigError(
            f"duplicate line: its point and time equal those of line {int(lines[same[0]])}",
            str(path),
            int(lines[same[1]]),
        )
    rad = math.pi / 180.0
    north = (data[:, 1] - latitude / rad) * EARTH_RADIUS * rad
    east = (data[:, 2] - longitude / rad) * metres_east(latitude)
    return ScatteredSamples(np.stack([north, east, data[:, 0]], axis=1), data[:, 3], data[:, 4:], radius, power)
