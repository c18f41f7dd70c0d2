"""Intersections of beams with bodies (boxes, cylinders along their x axis, spheres) at a given tick.

The algorithm is designed for thousands of beams and bodies. Bounding spheres exclude pairs of a beam and a body that
cannot intersect. The nearest bodies are tested first, because a beam that hits a body needs no test against the bodies
behind it. The remaining pairs are solved in closed form.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.algebra import dot, matvec, norm, vecmat
from wavesim_sdk.arrays import Floats, Ints, Record
from wavesim_sdk.extras import check_installed
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.primitives import shape_of
from wavesim_world.ocean.scene import intersect_box, intersect_cylinder

BOX, CYLINDER, SPHERE = 0.0, 1.0, 2.0
#: maximum mean number of bodies per strip; with more bodies, a search in a tree is faster than a search in strips
STRIP = 30
ELEMENTS = 200_000  #: number of beam-body pairs tested in one batch


def _cross(a: Floats, b: Floats) -> Floats:
    """Return cross products (n, 3). This is faster than np.cross, which accepts other shapes too."""
    x, y = a[:, [1, 2, 0]], b[:, [2, 0, 1]]
    return np.asarray(x * y - a[:, [2, 0, 1]] * b[:, [1, 2, 0]])


def _tree(points: Floats) -> Any:
    check_installed("scipy")
    from scipy.spatial import cKDTree  # the import takes 0.25 s, so only worlds with solids pay for it

    return cKDTree(points, leafsize=12, balanced_tree=False, compact_nodes=False)  # rebuilt at each tick


class ModelShapes:
    """Primitive shapes of models: type, half sizes along x, y, z, and radius of the bounding sphere."""

    def __init__(self, loaded: LoadedConfig) -> None:
        self.loaded = loaded
        self._of_model = functools.cache(self._shape_row)
        self._models: Any = None
        self._table: Floats = np.zeros((0, 5))

    def table(self, models: Any) -> Floats:
        """Return the shapes of bodies with these models as an array (n, 5), with one row per body."""
        if self._models is None or not np.array_equal(models, self._models):
            self._models = models.copy()
            self._table = np.array([self._of_model(m) for m in models.tolist()]).reshape(-1, 5)
        return self._table

    def _shape_row(self, model: bytes) -> tuple[float, ...]:
        shape = shape_of(self.loaded.model(model.decode()))
        return float(shape.code), *shape.half_size, shape.bounding_radius


class BodyObstacles:
    """Bodies at a given tick, as obstacles for beams."""

    def __init__(self, shapes: ModelShapes, rows: Ints, identity: Record, state: Record) -> None:
        self.rows, self.state = rows, state.take(rows)  # ten times as fast as indexing
        self.p: Floats = self.state["p_WB_W"]
        shape = shapes.table(identity["model"].take(rows))
        self.kind, self.half, self.radius = shape[:, 0], shape[:, 1:4], shape[:, 4]

        self._widest = float(self.radius.max(initial=0.0))
        self._sorted: list[Any] = [None, None]  # along north and east: order, and sorted coordinates

    @functools.cached_property
    def _tree(self) -> Any:
        return _tree(self.p)

    def cast(self, starts: Floats, along: Floats, ranges: Floats, maximum: float, own: Ints) -> tuple[Floats, Ints]:
        """Return the ranges, and the index of the body that each beam hits (-1 = none), for the beams of n instruments;
        both have the shape (n, beams).

        ``ranges`` contains the ranges that the beams would have without bodies; ``own`` contains the rows of the bodies
        that carry the instruments. Start points (n, beams or 1, 3) and unit vectors (n or 1, beams, 3) are in frame W.
        A beam that starts within another body has range 0.
        """
        hit = np.full(ranges.shape, -1)
        if len(self.rows) < 2 or not ranges.size:
            return ranges, hit
        if along.shape[:-1] != ranges.shape:
            along = np.broadcast_to(along, (*ranges.shape, 3))
        limit = np.minimum(ranges, maximum)
        i, j = self._near(starts, along, limit, own)
        if len(i):
            ranges = ranges.copy()
            portion = max(1, ELEMENTS // ranges.shape[1])
            if len(i) > portion:
                i, j = self._nearest_first(starts, i, j)
            for at in range(0, len(i), portion):
                some = slice(at, at + portion)
                self._strike(starts, along, limit, ranges, hit, i[some], j[some])
        return ranges, hit

    def _strike(
        self, starts: Floats, along: Floats, limit: Floats, ranges: Floats, hit: Ints, i: Ints, j: Ints
    ) -> None:
        """Shorten the beams of instruments ``i`` where they hit bodies ``j``."""
        beams = ranges.shape[1]
        c, d = self.p[j][:, None, :] - starts[i], along[i]
        ahead = dot(c, d)
        beside = dot(c, c) - ahead * ahead
        r = self.radius[j][:, None]
        pair, beam = np.nonzero((beside <= r * r) & (ahead > -r) & (ahead - r < limit[i]))
        if not len(pair):
            return
        who, place = i[pair], j[pair]
        found = self._meet(-c[pair, np.minimum(beam, c.shape[1] - 1)], d[pair, beam], place)
        flat = who * beams + beam
        nearer = found <= limit.reshape(-1)[flat]
        flat, found, place = flat[nearer], found[nearer], place[nearer]
        np.minimum.at(ranges.reshape(-1), flat, found)
        first = ranges.reshape(-1)[flat] == found
        hit.reshape(-1)[flat[first]] = place[first]
        limit.reshape(-1)[flat] = ranges.reshape(-1)[flat]

    def velocity(self, hit: Ints, points: Floats) -> Floats:
        """Return the velocity in W of points (n, beams, 3) on the bodies that the beams hit; 0 where a beam hit no
        body.
        """
        found = np.zeros(points.shape)
        some = hit >= 0
        if some.any():
            j = hit[some]
            state = self.state[j]
            R = frames.rotation(state["q_WB"])
            arm = points[some] - self.p[j]
            turning = np.cross(matvec(R, state["w_WB_B"]), arm)
            found[some] = matvec(R, state["v_WB_B"]) + turning
        return found

    def _near(self, starts: Floats, along: Floats, limit: Floats, own: Ints) -> tuple[Ints, Ints]:
        """Return the (instrument, body) pairs that may intersect. The selection uses the bounding box of the beams and,
        for a fan, the plane of the fan.
        """
        ends = starts + limit[:, :, None] * along
        if along.shape[1] == 1:
            start, end = starts[:, 0], ends[:, 0]
            low, high = np.minimum(start, end), np.maximum(start, end)
        else:
            low = np.minimum(ends.min(axis=1), starts.min(axis=1))
            high = np.maximum(ends.max(axis=1), starts.max(axis=1))
        i, j = self._within(low, high)
        keep = self.rows[j] != own[i]
        i, j = i[keep], j[keep]
        if along.shape[1] > 2 and len(i):
            normal = _cross(along[:, 0], along[:, -1])
            normal /= np.maximum(np.sqrt((normal * normal).sum(axis=1)), 1e-12)[:, None]
            thick = (np.abs(matvec(along, normal)) * limit).max(axis=1)
            if starts.shape[1] > 1:
                thick += np.abs(matvec(starts - starts[:, :1], normal)).max(axis=1)
            off = np.abs(((self.p[j] - starts[i, 0]) * normal[i]).sum(axis=1))
            keep = off <= thick[i] + self.radius[j]
            i, j = i[keep], j[keep]
        return i, j

    def _within(self, low: Floats, high: Floats) -> tuple[Ints, Ints]:
        """Return the (box, body) pairs in which the axis-aligned box is within the bounding radius of the body."""
        axis = 0 if (high[:, 0] - low[:, 0]).sum() < (high[:, 1] - low[:, 1]).sum() else 1
        if self._sorted[axis] is None:
            order = np.argsort(self.p[:, axis])
            self._sorted[axis] = order, self.p[order, axis]
        order, along = self._sorted[axis]
        first = np.searchsorted(along, low[:, axis] - self._widest)
        count = np.searchsorted(along, high[:, axis] + self._widest) - first
        total = int(count.sum())
        if total <= STRIP * len(low):
            i = np.repeat(np.arange(len(low)), count)
            j = order[np.arange(total) - np.repeat(np.cumsum(count) - count - first, count)]
            others: tuple[int, ...] = (1 - axis, 2)
        else:
            middle, reach = (
                0.5 * (low + high),
                0.5 * float(norm(high - low).max()) + self._widest,
            )
            found = _tree(middle).sparse_distance_matrix(self._tree, reach, output_type="ndarray")
            i, j = found["i"], found["j"]
            others = (0, 1, 2)
        for k in others:
            p, r = self.p[:, k][j], self.radius[j]
            keep = np.flatnonzero((p >= low[:, k][i] - r) & (p <= high[:, k][i] + r))
            i, j = i[keep], j[keep]
        return i, j

    def _nearest_first(self, starts: Floats, i: Ints, j: Ints) -> tuple[Ints, Ints]:
        """Sort the pairs by distance, so that a later pair can be skipped if its beams have already hit a nearer body."""
        apart = norm(self.p[j] - starts[i, 0]) - self.radius[j]
        order = np.argsort(apart, kind="stable")
        return i[order], j[order]

    def _meet(self, o: Floats, d: Floats, j: Ints) -> Floats:
        """Return the distances at which rays (n, 3), relative to the body origins, first hit bodies ``j``. The distance
        is 0 if a ray starts inside the body, and inf if it does not hit the body.
        """
        R, half, kind = frames.rotation(self.state["q_WB"][j]), self.half[j], self.kind[j]
        p, v = vecmat(o, R), vecmat(d, R)
        found = np.full(len(j), np.inf)
        box, cylinder, sphere = kind == BOX, kind == CYLINDER, kind == SPHERE
        if box.any():
            found[box] = intersect_box(p[box], v[box], half[box])
        if cylinder.any():
            upright = [1, 2, 0]  # turn the axis of the cylinder upright
            h = half[cylinder]
            found[cylinder] = intersect_cylinder(p[cylinder][:, upright], v[cylinder][:, upright], h[:, 1], h[:, 0])
        if sphere.any():
            o, d, r = p[sphere], v[sphere], half[sphere, 0]
            ahead = -dot(o, d)
            with np.errstate(invalid="ignore"):
                chord = np.sqrt(r * r - (dot(o, o) - ahead * ahead))
            found[sphere] = np.where(ahead + chord >= 0.0, np.maximum(ahead - chord, 0.0), np.inf)  # NaN: no hit
        return found
