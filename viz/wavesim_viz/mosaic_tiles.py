"""Mosaics that grow frame by frame in bounded memory: levels of a side-scan sonar, or depths of a multibeam
echosounder.

A side-scan mosaic shows levels relative to the median of all levels at the same angle (:mod:`wavesim_viz.mosaic`). That
median changes with every frame. Therefore, a cell keeps one sum of powers for each angle, and the medians are computed
from histograms of the levels. To within the width of a histogram bin, the result is the same as that of
:mod:`wavesim_viz.mosaic` for a log with the same frames.

Memory is bounded because the size of the cells is doubled when a mosaic has too many of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.imaging_frames import SOUNDING_COLUMNS, ImagingFrame

CELL_M = 0.25  #: initial size of a cell in m
TILE_CELLS = 64  #: number of cells along each side of a tile
MOST_TILES = 400
MOST_SUMS = 1_500_000  #: maximum number of sums in a mosaic
ANGLES = 91  #: number of angles, in whole degrees from the vertical
LOWEST_DB, HIGHEST_DB, BIN_DB = -60.0, 260.0, 0.02  #: limits and bin width of the histograms of levels
SETTLED_DB = 0.02  #: change of a median in dB above which a tile is computed again
_BITS_LOCAL, _BITS_TILE = 19, 20
_DETECTION = SOUNDING_COLUMNS.index("detection")


@dataclass(frozen=True)
class GroundSamples:
    """Samples placed on the ground: positions in W (m), angles from the vertical in whole degrees, and levels (dB) or
    depths (m).
    """

    north: Floats
    east: Floats
    angle: Ints
    value: Floats


def place_sidescan(frame: ImagingFrame) -> GroundSamples | None:
    """Place the samples of a ping on a level bed at the altitude of the ping. Return None if the altitude is unknown."""
    altitude = float(frame.record["altitude"])
    if not math.isfinite(altitude):
        return None
    r = frame.ranges
    reached = r > altitude
    across = np.sqrt(r[reached] ** 2 - altitude**2)
    heading, p = float(frame.record["euler"][2]), frame.record["p_WS_W"]
    sides = [(p[0] - s * across * math.sin(heading), p[1] + s * across * math.cos(heading)) for s in (-1.0, 1.0)]
    north, east = np.concatenate(sides, axis=1)
    angle = np.degrees(np.arctan2(across, altitude)).astype(int)
    levels = np.asarray(frame.levels, float)
    return GroundSamples(north, east, np.tile(angle, 2), levels[:, reached].ravel())


def place_soundings(frame: ImagingFrame) -> GroundSamples:
    """Return the detected soundings of a ping. Their angle is not used."""
    north, east, down = frame.points[frame.samples[:, _DETECTION] > 0.0].T
    return GroundSamples(north, east, np.zeros(len(down), int), down)


@dataclass
class Tile:
    """Square of cells: its sums by cell and angle, and its values as they were last computed."""

    keys: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    total: Floats = field(default_factory=lambda: np.zeros(0))
    count: Floats = field(default_factory=lambda: np.zeros(0))
    #: medians with which the values were computed; None if the sums have changed since then
    usual: Floats | None = None
    #: values by cell, given as (north, east); NaN means no data
    values: np.ndarray[Any, np.dtype[np.float32]] | None = None
    version: int = 0  #: version of the mosaic when the values last changed

    def add(self, keys: Ints, total: Floats, count: Floats) -> None:
        """Add the sums of new samples. ``keys`` ascend; each one encodes a cell and an angle."""
        self.usual = None
        at = np.searchsorted(self.keys, keys)
        known = at < len(self.keys)
        known[known] = self.keys[at[known]] == keys[known]
        self.total[at[known]] += total[known]
        self.count[at[known]] += count[known]
        at = at[~known]
        self.keys = np.insert(self.keys, at, keys[~known])
        self.total = np.insert(self.total, at, total[~known])
        self.count = np.insert(self.count, at, count[~known])

    def means(self, weight: Floats) -> Floats:
        """Return the mean of each cell. The sums at each angle are first multiplied by ``weight`` at that angle."""
        cell, angle = np.divmod(self.keys, ANGLES)
        total = np.bincount(cell, self.total * weight[angle], TILE_CELLS**2)
        count = np.bincount(cell, self.count, TILE_CELLS**2)
        with np.errstate(invalid="ignore"):
            return (total / count).reshape(TILE_CELLS, TILE_CELLS)


class GrowingMosaic:
    """Mosaic of one sonar: levels in dB for a side-scan sonar, depths in m for a multibeam echosounder."""

    def __init__(self, sidescan: bool, cell: float = CELL_M) -> None:
        self.sidescan, self.cell = sidescan, cell
        self.tiles: dict[tuple[int, int], Tile] = {}  #: tiles, by their (north, east) index from the origin
        self.version = 0  #: version number, which increases with each change of a tile's values
        self.sums = 0
        bins = round((HIGHEST_DB - LOWEST_DB) / BIN_DB) if sidescan else 0
        self._levels = np.zeros((ANGLES, bins), np.int32)

    def add(self, frame: ImagingFrame) -> None:
        """Add the samples of a frame."""
        samples = place_sidescan(frame) if self.sidescan else place_soundings(frame)
        if samples is None or not len(samples.value):
            return
        total = samples.value
        if self.sidescan:
            bins = np.clip((samples.value - LOWEST_DB) / BIN_DB, 0, self._levels.shape[1] - 1).astype(int)
            np.add.at(self._levels, (samples.angle, bins), 1)
            total = 10.0 ** (0.1 * samples.value)
        north, east = (np.floor(x / self.cell).astype(np.int64) for x in (samples.north, samples.east))
        self._add(north, east, samples.angle, total, np.ones(len(total)))
        while len(self.tiles) > MOST_TILES or self.sums > MOST_SUMS:
            self._double_cells()

    def _add(self, north: Ints, east: Ints, angle: Ints, total: Floats, count: Floats) -> None:
        """Add the sums of new samples to the cells of the mosaic. Cell indices count from the origin."""
        half = 1 << (_BITS_TILE - 1)
        tile = ((north // TILE_CELLS + half) << _BITS_TILE) | (east // TILE_CELLS + half)
        local = (north % TILE_CELLS * TILE_CELLS + east % TILE_CELLS) * ANGLES + angle
        codes, where = np.unique((tile << _BITS_LOCAL) | local, return_inverse=True)
        totals, counts = (np.bincount(where, w).astype(float) for w in (total, count))
        tiles, starts = np.unique(codes >> _BITS_LOCAL, return_index=True)
        for code, a, b in zip(tiles.tolist(), starts, [*starts[1:], len(codes)], strict=True):
            key = (code >> _BITS_TILE) - half, (code & ((1 << _BITS_TILE) - 1)) - half
            found = self.tiles.setdefault(key, Tile())
            self.sums -= len(found.keys)
            found.add(codes[a:b] & ((1 << _BITS_LOCAL) - 1), totals[a:b], counts[a:b])
            self.sums += len(found.keys)

    def _double_cells(self) -> None:
        old, self.tiles, self.sums = self.tiles, {}, 0
        self.cell *= 2.0
        for (n, e), tile in old.items():
            cell, angle = np.divmod(tile.keys, ANGLES)
            north, east = n * TILE_CELLS + cell // TILE_CELLS, e * TILE_CELLS + cell % TILE_CELLS
            self._add(north // 2, east // 2, angle, tile.total, tile.count)

    def medians(self) -> Floats:
        """Return the median level in dB at each angle, or 0 where there is none."""
        if not self.sidescan:
            return np.zeros(ANGLES)
        seen = np.cumsum(self._levels, axis=1)
        found = np.zeros(ANGLES)
        for angle in np.flatnonzero(seen[:, -1]):
            n = int(seen[angle, -1])
            middle = np.searchsorted(seen[angle], ((n - 1) // 2 + 1, n // 2 + 1))
            found[angle] = LOWEST_DB + (float(middle.mean()) + 0.5) * BIN_DB
        return found

    def update(self, most: int) -> bool:
        """Compute the values of at most ``most`` tiles that have changed. Return whether no changed tile is left."""
        usual = self.medians()
        weight = 10.0 ** (-0.1 * usual)
        for tile in self.tiles.values():
            if tile.usual is not None and np.max(np.abs(tile.usual - usual)) <= SETTLED_DB:
                continue
            if most <= 0:
                return False
            most -= 1
            mean = tile.means(weight)
            with np.errstate(divide="ignore"):
                values = (10.0 * np.log10(mean) if self.sidescan else mean).astype(np.float32)
            tile.usual = usual
            if tile.values is None or not np.array_equal(values, tile.values, equal_nan=True):
                self.version += 1
                tile.values, tile.version = values, self.version
        return True
