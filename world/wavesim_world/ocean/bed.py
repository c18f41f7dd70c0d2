"""Sea bed: depth below the surface as a function of (north, east).

The bed is an analytic function, or a Delaunay triangulation of soundings, which needs SciPy: ``pip install
wavesim-sdk[ocean]``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.algebra import norm
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import exp, hypot
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import check_installed
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.world import BedConfig, World
from wavesim_world.ocean.volume import MAX_BYTES

LEVEL_MARGIN_M = 20_000.0  #: width of the level ground around the area of a survey, m
MAX_POINTS = 2_000_000
DEEPEST, HIGHEST = 12_000.0, -9_000.0  #: maximum and minimum valid depth, m


def analytic_depth(bed: BedConfig, north: Floats, east: Floats) -> Floats:
    """Return the depth in m of the analytic bed: D0 + D1 x + D2 y + sum h exp(-(a^2 dx^2 + b^2 dy^2))."""
    x, y = np.asarray(north, float), np.asarray(east, float)
    depth = bed.depth + bed.slope_north * x + bed.slope_east * y
    for b in bed.bump:
        north_of, east_of = b.alpha * (x - b.north), b.beta * (y - b.east)
        depth = depth + b.height * exp(-(north_of * north_of) - east_of * east_of)
    return np.asarray(depth)


def read_soundings(path: Path, heights: bool = False) -> Floats:
    """Read soundings (plain or in DUNE's format) or an ESRI ASCII grid as an array (n, 3) of north, east, depth in m.

    ``heights`` is True if the file contains heights instead of depths. Raises ConfigError, naming the line, if a line
    is invalid.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"the soundings file is larger than {MAX_BYTES >> 20} MiB", str(path))
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read the soundings: {error.strerror}", str(path)) from None
    first = next((line.split() for line in lines if line.strip()), [""])
    points = _grid(lines, path) if first[0].lower() == "ncols" else _triples(lines, path)
    sign = -1.0 if heights else 1.0
    for _, _, depth, number in points:
        if not HIGHEST <= sign * depth <= DEEPEST:
            raise ConfigError(
                f"invalid depth of {sign * depth:g} m: use {HIGHEST:g} to {DEEPEST:g} m; check that the file is in "
                "metres",
                str(path),
                number,
            )
    if len(points) < 3:
        raise ConfigError(
            "the file has fewer than three soundings; write one line `north east depth` for each", str(path)
        )
    if len(points) > MAX_POINTS:
        raise ConfigError(f"the file has {len(points)} soundings; the maximum is {MAX_POINTS}", str(path))
    data = np.array(points)[:, :3] * (1.0, 1.0, sign)
    if np.linalg.matrix_rank(data[:, :2] - data[0, :2], tol=1e-6) < 2:
        raise ConfigError("the soundings lie on one straight line; they must span an area", str(path))
    return data


Point = tuple[float, float, float, int]  #: north, east, third value (depth or height), line number


def _triples(lines: list[str], path: Path) -> list[Point]:
    """Read lines of three numbers. If the text has a line ``Data = ...``, start there."""
    start = next((k for k, line in enumerate(lines) if line.lstrip().startswith("Data")), 0)
    points: list[Point] = []
    for number, line in enumerate(lines[start:], start + 1):
        text = line.strip()
        if text.startswith("Data"):
            text = text.partition("=")[2].strip()
        if not text or text.startswith("#"):
            continue
        values = _floats(text.rstrip(",").split())
        if len(values) != 3 or not all(map(math.isfinite, values)):
            raise ConfigError("invalid sounding: use three numbers, north east depth", str(path), number)
        points.append((values[0], values[1], values[2], number))
    return points


def _grid(lines: list[str], path: Path) -> list[Point]:
    """Read an ESRI ASCII grid, with rows from north to south. Cells without data are omitted."""
    head: dict[str, float] = {}
    names = {"ncols", "nrows", "xllcorner", "xllcenter", "yllcorner", "yllcenter", "cellsize", "nodata_value"}
    k = 0
    while k < len(lines) and lines[k].split() and lines[k].split()[0].lower() in names:
        name, *rest = lines[k].split()
        value = _floats(rest)
        if len(value) != 1 or not math.isfinite(value[0]):
            raise ConfigError(f"invalid line in the header of the grid: {name} needs one number", str(path), k + 1)
        head[name.lower()] = value[0]
        k += 1
    for name in ("ncols", "nrows", "cellsize"):
        if head.get(name, 0.0) <= 0.0:
            raise ConfigError(f"'{name}' is missing from the header of the grid, or not positive", str(path), k)
    columns, rows, cell = int(head["ncols"]), int(head["nrows"]), head["cellsize"]
    east = head.get("xllcenter", head.get("xllcorner", 0.0) + 0.5 * cell)
    north = head.get("yllcenter", head.get("yllcorner", 0.0) + 0.5 * cell)
    points: list[Point] = []
    row = 0
    for number, line in enumerate(lines[k:], k + 1):
        if not line.strip():
            continue
        values = _floats(line.split())
        if len(values) != columns or row >= rows:
            raise ConfigError(
                f"row {row + 1} of the grid has {len(values)} numbers; the header states {rows} rows with {columns} "
                "numbers each",
                str(path),
                number,
            )
        y = north + (rows - 1 - row) * cell
        points += [
            (y, east + j * cell, v, number)
            for j, v in enumerate(values)
            if v != head.get("nodata_value") and not math.isnan(v)
        ]
        row += 1
    if row != rows:
        raise ConfigError(f"the grid ends after {row} of {rows} rows", str(path), len(lines))
    return points


def _floats(words: list[str]) -> list[float]:
    """Return words as numbers, or an empty list if any word is not a number."""
    try:
        return [float(w) for w in words]
    except ValueError:
        return []


class TriangulatedBed:
    """Sea bed as a Delaunay triangulation of soundings, with level ground around the survey."""

    def __init__(self, soundings: Floats) -> None:
        check_installed("scipy")
        from scipy.spatial import Delaunay

        unique = np.unique(soundings[:, :2], axis=0, return_index=True)[1]
        points = soundings[np.sort(unique)]
        corners = []
        low, high = points[:, :2].min(axis=0) - LEVEL_MARGIN_M, points[:, :2].max(axis=0) + LEVEL_MARGIN_M
        for n in np.linspace(low[0], high[0], 9):
            for e in np.linspace(low[1], high[1], 9):
                if n in (low[0], high[0]) or e in (low[1], high[1]):
                    nearest = points[np.argmin(norm(points[:, :2] - (n, e)))]
                    corners.append((n, e, nearest[2]))
        self.points = np.vstack([points, corners])
        self._delaunay = Delaunay(self.points[:, :2])
        self.simplices = np.ascontiguousarray(self._delaunay.simplices, dtype=np.int64)
        self.neighbors = np.ascontiguousarray(self._delaunay.neighbors, dtype=np.int64)

        self(self.points[:1, 0], self.points[:1, 1])  # the first search builds tables; do that now, not during a run

    def __call__(self, north: Floats, east: Floats) -> Floats:
        """Return the depth in m; NaN beyond the level ground."""
        xy = np.stack(np.broadcast_arrays(np.asarray(north, float), np.asarray(east, float)), axis=-1)
        at = self._delaunay.find_simplex(xy)
        a, b, c = (self.points[self.simplices[at, k]] for k in range(3))
        a, b, (x, y) = a - c, b - c, np.moveaxis(xy - c[..., :2], -1, 0)
        whole = a[..., 0] * b[..., 1] - b[..., 0] * a[..., 1]
        depth = c[..., 2] + (
            (x * b[..., 1] - b[..., 0] * y) / whole * a[..., 2] + (a[..., 0] * y - x * a[..., 1]) / whole * b[..., 2]
        )
        return np.where(at >= 0, depth, np.nan)


def max_slope(loaded: LoadedConfig) -> float:
    """Return an upper bound on the slope of the bed in metres of depth per metre."""
    t = triangulated_bed(loaded)
    if t is not None:
        a, b, c = (t.points[t.simplices[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        return min(float((hypot(normal[:, 0], normal[:, 1]) / np.abs(normal[:, 2])).max()), 10.0)
    bed = loaded.config.world.bed
    bump = math.sqrt(2.0 / math.e)  # the maximum slope of h exp(-(a x)^2) is h a sqrt(2/e)
    return float(hypot(bed.slope_north, bed.slope_east)) + sum(
        abs(b.height) * max(b.alpha, b.beta) * bump for b in bed.bump
    )


def mean_depth(loaded: LoadedConfig) -> float:
    """Return the water depth in m for the wave model: the mean of the soundings, or the depth of an analytic bed at the
    origin.
    """
    t = triangulated_bed(loaded)
    return max(float(t.points[:, 2].mean()) if t is not None else loaded.config.world.bed.depth, 0.1)


def is_uneven(world: World) -> bool:
    """Return whether the configured bed is not level."""
    return bool(world.soundings is not None or world.bed.bump or world.bed.slope_north or world.bed.slope_east)


def profile_depth(loaded: LoadedConfig) -> float:
    """Return the depth in m down to which sound speeds are needed over a bed that is not level. For a sloping plane, it
    is twice the depth at the origin.
    """
    t, bed = triangulated_bed(loaded), loaded.config.world.bed
    if t is not None:
        return float(t.points[:, 2].max())
    falls = 2.0 if bed.slope_north or bed.slope_east else 1.0
    return falls * bed.depth + sum(max(b.height, 0.0) for b in bed.bump)


def sea_bed(loaded: LoadedConfig) -> Callable[[Floats, Floats], Floats]:
    """Return the depth function of a configuration's bed."""
    return triangulated_bed(loaded) or (lambda north, east: analytic_depth(loaded.config.world.bed, north, east))


def triangulated_bed(loaded: LoadedConfig) -> TriangulatedBed | None:
    """Return the bed that a configuration defines by soundings, in the world frame, or None if the bed is analytic."""
    soundings = loaded.config.world.soundings
    if soundings is None:
        return None
    path = loaded.data_file(soundings.file)
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0  # the reader reports the error
    return _triangles(path, changed, soundings.north, soundings.east, soundings.heights)


@functools.lru_cache(maxsize=4)
def _triangles(path: Path, _changed: int, north: float, east: float, heights: bool) -> TriangulatedBed:
    """Read and triangulate soundings, once per version of the file."""
    return TriangulatedBed(read_soundings(path, heights) + np.array([north, east, 0.0]))


def bed_around_fleet(loaded: LoadedConfig, points: int = 81, share: float = 0.12) -> dict[str, Any]:
    """Return the sea bed around the fleet and its missions on a grid, for drawing.

    The result has the keys north, east and depth (None outside the bed). ``share`` is the margin on each side as a
    fraction of the extent.
    """
    bodies = loaded.config.fleet.bodies
    north = [b.position[0] for b in bodies] + [w.north for b in bodies for w in b.waypoint] or [0.0]
    east = [b.position[1] for b in bodies] + [w.east for b in bodies for w in b.waypoint] or [0.0]
    margin = share * max(max(north) - min(north), max(east) - min(east), 100.0)
    n = np.linspace(min(north) - margin, max(north) + margin, points)
    e = np.linspace(min(east) - margin, max(east) + margin, points)
    depth = sea_bed(loaded)(n[:, None], e[None, :])
    rounded = np.round(depth, 2).astype(object)
    rounded[~np.isfinite(depth)] = None
    return {"north": n.round(3).tolist(), "east": e.round(3).tolist(), "depth": rounded.tolist()}
