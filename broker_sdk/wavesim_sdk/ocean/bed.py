"""The sea bed: depth below the surface as a function of (north, east).

The paper's analytic form, or soundings joined by Delaunay triangles (needs SciPy:
``pip install wavesim-sdk[ocean]``).
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.config.load import Loaded
from wavesim_sdk.config.world import Bed
from wavesim_sdk.errors import ConfigError

Array = np.ndarray[Any, np.dtype[np.float64]]
FRAME = 20_000.0  #: the level ground around a survey reaches this far, m
_TRIPLE = re.compile(r"([-+\d.eE]+)\s+([-+\d.eE]+)\s+([-+\d.eE]+)\s*,?\s*$")


def analytic(bed: Bed, north: Array, east: Array) -> Array:
    """D0 + D1 x + D2 y + sum h exp(-(a^2 dx^2 + b^2 dy^2))."""
    x, y = np.asarray(north, float), np.asarray(east, float)
    depth = bed.depth + bed.slope_north * x + bed.slope_east * y
    for b in bed.bump:
        depth = depth + b.height * np.exp(-((b.alpha * (x - b.north)) ** 2) - (b.beta * (y - b.east)) ** 2)
    return np.asarray(depth)


def read_soundings(path: Path) -> Array:
    """(n, 3) north, east, depth in m from a file in DUNE's form; ConfigError names a bad line."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read the soundings: {error.strerror}", str(path)) from None
    points: list[tuple[float, float, float]] = []
    reading = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("Data"):
            reading, text = True, text.partition("=")[2].strip()
        if not reading or not text or text.startswith("#"):
            continue
        match = _TRIPLE.fullmatch(text)
        try:
            if match is None:
                raise ValueError
            points.append((float(match[1]), float(match[2]), float(match[3])))
        except ValueError:
            raise ConfigError(f"'{text[:40]}' is not a sounding (north east depth)", str(path), number) from None
    if len(points) < 3:
        raise ConfigError("fewer than three soundings after 'Data ='", str(path))
    data = np.array(points)
    if not np.isfinite(data).all():
        raise ConfigError("the soundings hold a value that is not finite", str(path))
    return data


class Triangles:
    """Soundings joined by Delaunay triangles, with level ground around the survey."""

    def __init__(self, soundings: Array) -> None:
        try:
            from scipy.spatial import Delaunay
        except ImportError:
            raise ConfigError("soundings need SciPy: pip install 'wavesim-sdk[ocean]'") from None
        unique = np.unique(soundings[:, :2], axis=0, return_index=True)[1]
        points = soundings[np.sort(unique)]
        corners = []
        low, high = points[:, :2].min(axis=0) - FRAME, points[:, :2].max(axis=0) + FRAME
        for n in np.linspace(low[0], high[0], 9):
            for e in np.linspace(low[1], high[1], 9):
                if n in (low[0], high[0]) or e in (low[1], high[1]):
                    nearest = points[np.argmin(np.sum((points[:, :2] - (n, e)) ** 2, axis=1))]
                    corners.append((n, e, nearest[2]))
        self.points = np.vstack([points, corners])
        self._delaunay = Delaunay(self.points[:, :2])
        self.simplices = np.ascontiguousarray(self._delaunay.simplices, dtype=np.int64)
        self.neighbors = np.ascontiguousarray(self._delaunay.neighbors, dtype=np.int64)

        self(self.points[:1, 0], self.points[:1, 1])  # the first search builds its tables: now, not in a run

    def __call__(self, north: Array, east: Array) -> Array:
        """Depth; NaN beyond the frame."""
        xy = np.stack(np.broadcast_arrays(np.asarray(north, float), np.asarray(east, float)), axis=-1)
        at = self._delaunay.find_simplex(xy)
        t = self._delaunay.transform[at]
        b = np.einsum("...ij,...j->...i", t[..., :2, :], xy - t[..., 2, :])
        weights = np.concatenate([b, 1.0 - b.sum(axis=-1, keepdims=True)], axis=-1)
        depth = np.sum(weights * self.points[self.simplices[at], 2], axis=-1)
        return np.where(at >= 0, depth, np.nan)


def steepest(loaded: Loaded) -> float:
    """A bound on the slope of the bed anywhere, in metres of depth per metre."""
    t = triangles(loaded)
    if t is not None:
        a, b, c = (t.points[t.simplices[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        return min(float((np.hypot(normal[:, 0], normal[:, 1]) / np.abs(normal[:, 2])).max()), 10.0)
    bed = loaded.config.world.bed
    bump = math.sqrt(2.0 / math.e)  # of h exp(-(a x)^2): h a sqrt(2/e)
    return math.hypot(bed.slope_north, bed.slope_east) + sum(
        abs(b.height) * max(b.alpha, b.beta) * bump for b in bed.bump
    )


def sea_bed(loaded: Loaded) -> Callable[[Array, Array], Array]:
    """The bed of a configuration."""
    return triangles(loaded) or (lambda north, east: analytic(loaded.config.world.bed, north, east))


def triangles(loaded: Loaded) -> Triangles | None:
    """The soundings of a configuration, in its world; None if its bed is analytic."""
    soundings = loaded.config.world.soundings
    if soundings is None:
        return None
    path = loaded.data_file(soundings.file)
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0  # the reader says what is wrong
    return _triangles(path, changed, soundings.north, soundings.east)


@functools.lru_cache(maxsize=4)
def _triangles(path: Path, _changed: int, north: float, east: float) -> Triangles:
    """Read and joined once, however many ask for it."""
    return Triangles(read_soundings(path) + np.array([north, east, 0.0]))
