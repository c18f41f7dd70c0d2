"""HullSections of a hull along its axis, and the panels between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array

STATIONS = 32  #: number of sections along the hull


class HullSections(NamedTuple):
    """HullSections perpendicular to x, one in the middle of each of n cells of the same length, as arrays (n,) in m.

    ``beam`` and ``height`` are the extents in y and z, and ``area`` is the enclosed area in m2. ``first`` is the x of
    the aft end of the first cell, and ``step`` is the length of a cell.
    """

    x: Array
    area: Array
    beam: Array
    height: Array
    first: float
    step: float

    @property
    def length(self) -> float:
        return self.step * len(self.x)

    @property
    def largest(self) -> float:
        """Largest section area in m2."""
        return float(self.area.max())

    @property
    def diameter(self) -> float:
        """Diameter in m of the circle with the largest section area."""
        return float(np.sqrt(4.0 * self.largest / np.pi))

    def fullness(self) -> Array:
        """Return the area of each section divided by the area of its box: 1 for a rectangle, 0.785 for an ellipse."""
        box = self.beam * self.height
        share = np.where(box > 0.0, self.area / np.where(box > 0.0, box, 1.0), np.pi / 4.0)
        return np.asarray(np.clip(share, 0.0, 1.0))

    def cell(self, x: Array) -> Array:
        """Return the index of the cell that contains each x."""
        return np.asarray(np.clip(((x - self.first) / self.step).astype(int), 0, len(self.x) - 1))


def cut(triangles: Array, stations: int = STATIONS) -> HullSections:
    """Cut a surface of triangles (n, 3, 3) that is closed, or open at z = 0."""
    along = triangles[:, :, 0]
    first, last = float(along.min()), float(along.max())
    step = (last - first) / stations
    x = first + step * (np.arange(stations) + 0.5)
    area, beam, height = (np.zeros(stations) for _ in range(3))
    low, high = along.min(axis=1), along.max(axis=1)
    for k, at in enumerate(x):
        p, q = _lines(triangles[(low <= at) & (high > at)], float(at))
        if len(p):
            area[k] = abs(0.5 * float((p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]).sum()))
            beam[k], height[k] = np.ptp(np.concatenate([p, q]), axis=0)
    return HullSections(x, area, beam, height, first, step)


def _lines(t: Array, at: float) -> tuple[Array, Array]:
    """Return the ends (k, 2) in y and z of the lines along which the plane x = ``at`` cuts triangles. All lines run in
    the same direction around a closed section.
    """
    over = t[:, :, 0] > at
    count = over.sum(axis=1)
    starts, ends = [], []
    for k in range(3):
        for alone in (1, 2):
            m = (count == alone) & (over[:, k] == (alone == 1))
            p = np.roll(t[m], -k, axis=1)
            found = []
            for other in (1, 2):
                share = (at - p[:, 0, 0]) / np.where(p[:, other, 0] == p[:, 0, 0], 1.0, p[:, other, 0] - p[:, 0, 0])
                found.append((p[:, 0] + share[:, None] * (p[:, other] - p[:, 0]))[:, 1:])
            a, b = found if alone == 1 else found[::-1]
            starts.append(a)
            ends.append(b)
    return np.concatenate(starts), np.concatenate(ends)


class HullPanels(NamedTuple):
    """HullPanels of a surface: centres (n, 3) in m, outward unit normals (n, 3) and areas (n,) in m2."""

    centre: Array
    normal: Array
    area: Array


def panels(triangles: Array, longest: float) -> HullPanels:
    """Return the triangles as panels. Triangles with an edge above ``longest`` are divided."""
    whole = []
    t = triangles
    while len(t):
        edges = np.sqrt(((np.roll(t, -1, axis=1) - t) ** 2).sum(axis=2))
        long = edges.max(axis=1) > longest
        whole.append(t[~long])
        t, edges = t[long], edges[long]
        turn = (np.argmin(edges, axis=1)[:, None] + 2) % 3  # the vertex opposite the shortest edge first
        t = np.take_along_axis(t, ((turn + np.arange(3)) % 3)[:, :, None], axis=1)
        pieces = 2 ** np.ceil(np.log2(edges.max(axis=1) / longest)).astype(int)
        t = np.concatenate([_slices(t[pieces == n], int(n)) for n in np.unique(pieces)]) if len(t) else t
    t = np.concatenate(whole)
    cross = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
    twice = np.sqrt((cross**2).sum(axis=1))
    real = twice > 1e-14 * max(float(twice.max()), 1e-300)
    return HullPanels(t[real].mean(axis=1), cross[real] / twice[real, None], 0.5 * twice[real])


def _slices(t: Array, pieces: int) -> Array:
    """Divide triangles from their first vertex to the opposite edge into slices of the same width."""
    share = np.arange(pieces + 1)[:, None, None] / pieces
    p = t[:, 0] + share * (t[:, 1] - t[:, 0])
    q = t[:, 0] + share * (t[:, 2] - t[:, 0])
    outer = np.stack([p[:-1], p[1:], q[1:]], axis=2)
    inner = np.stack([p[1:-1], q[2:], q[1:-1]], axis=2)
    return np.concatenate([outer.reshape(-1, 3, 3), inner.reshape(-1, 3, 3)])
