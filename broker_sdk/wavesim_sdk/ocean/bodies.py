"""Bodies in the way of beams: boxes, cylinders along their x axis and spheres, as they lie and move at a tick.

Thousands of beams against thousands of bodies: pairs that cannot meet are left out by the spheres around the bodies, the nearest
first, because what they stop needs no looking further; the rest is met in closed form.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from wavesim_sdk import frames
from wavesim_sdk.area import Record
from wavesim_sdk.config.load import Loaded
from wavesim_sdk.ocean.scene import post, slab

Array = np.ndarray[Any, np.dtype[np.float64]]
Rows = np.ndarray[Any, np.dtype[np.int64]]

BOX, CYLINDER, SPHERE = 0.0, 1.0, 2.0
FEW = 250_000  #: pairs of instrument and body of which the distances are simply computed
ELEMENTS = 200_000  #: pairs of beam and body that are looked at together


class Shapes:
    """Shapes of models: kind, half sizes along x, y, z, radius of the sphere around."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.of = functools.cache(self._of)

    def _of(self, model: bytes) -> tuple[float, ...]:
        m = self.loaded.model(model.decode())
        if m.box is not None:
            kind, half = BOX, (m.box.length / 2, m.box.width / 2, m.box.height / 2)
        elif m.cylinder is not None:
            kind, half = CYLINDER, (m.cylinder.length / 2, m.cylinder.radius, m.cylinder.radius)
        else:
            assert m.sphere is not None
            kind, half = SPHERE, (m.sphere.diameter / 2,) * 3
        around = {BOX: np.hypot(np.hypot(*half[:2]), half[2]), CYLINDER: np.hypot(*half[:2]), SPHERE: half[0]}[kind]
        return kind, *half, float(around)


class Bodies:
    """The bodies of one tick."""

    def __init__(self, shapes: Shapes, rows: Rows, identity: Record, state: Record) -> None:
        self.rows, self.state = rows, state[rows]
        self.p: Array = self.state["p_WB_W"]
        shape = np.array([shapes.of(m) for m in identity["model"][rows].tolist()]).reshape(-1, 5)
        self.kind, self.half, self.radius = shape[:, 0], shape[:, 1:4], shape[:, 4]
        self._tree: cKDTree | None = None

    @functools.cached_property
    def R(self) -> Array:
        return frames.rotation(self.state["q_WB"])

    def cast(self, starts: Array, along: Array, ranges: Array, maximum: float, own: Rows) -> tuple[Array, Rows]:
        """(ranges, index of the body that was hit or -1), both (n, beams), of beams of n instruments that would go as far as
        ``ranges`` without the bodies; ``own`` are the rows of the bodies that carry them.

        Starts (n, beams or 1, 3) and unit vectors (n or 1, beams, 3) are in W; from within another body the range is 0.
        """
        ranges, hit = ranges.copy(), np.full(ranges.shape, -1)
        if len(self.rows) < 2 or not ranges.size:
            return ranges, hit
        beams = ranges.shape[1]
        starts = np.broadcast_to(starts, (len(ranges), starts.shape[1], 3))
        along = np.broadcast_to(along, (len(ranges), beams, 3))
        for i, j in self._pairs(starts, ranges, maximum, own):
            c = self.p[j][:, None, :] - starts[i]
            ahead = np.einsum("pbk,pbk->pb", np.broadcast_to(c, (len(i), beams, 3)), along[i])
            beside = np.einsum("pbk,pbk->pb", c, c) - ahead * ahead
            r = self.radius[j][:, None]
            near = (beside <= r * r) & (ahead > -r) & (ahead - r < np.minimum(ranges[i], maximum))
            pair, beam = np.nonzero(near)
            if not len(pair):
                continue
            who, place = i[pair], j[pair]
            found = self._meet(-c[pair, np.minimum(beam, c.shape[1] - 1)], along[who, beam], place)
            flat = who * beams + beam
            np.minimum.at(ranges.reshape(-1), flat, np.where(found <= maximum, found, np.inf))
            first = (found <= maximum) & (ranges.reshape(-1)[flat] == found)
            hit.reshape(-1)[flat[first]] = place[first]
        return ranges, hit

    def velocity(self, hit: Rows, points: Array) -> Array:
        """Velocity in W of points (n, beams, 3) of the bodies that were hit; 0 where none was."""
        found = np.zeros(points.shape)
        some = hit >= 0
        if some.any():
            j = hit[some]
            state, R = self.state[j], self.R[j]
            arm = points[some] - self.p[j]
            turning = np.cross(np.einsum("nij,nj->ni", R, state["w_WB_B"]), arm)
            found[some] = np.einsum("nij,nj->ni", R, state["v_WB_B"]) + turning
        return found

    def _pairs(self, starts: Array, ranges: Array, maximum: float, own: Rows) -> Iterator[tuple[Rows, Rows]]:
        """Pairs (instrument, body) that may meet, nearest first, in portions; what the first stopped leaves out later ones."""
        centre = starts.mean(axis=1)
        spread = np.sqrt(((starts - centre[:, None]) ** 2).sum(axis=2).max(axis=1))

        def reach(some: Any = slice(None)) -> Array:
            """How far the longest beam of an instrument still goes, from its middle."""
            return np.minimum(ranges[some], maximum).max(axis=1) + spread[some]  # type: ignore[no-any-return]

        i, j, apart = self._near(centre, float(reach().max()) + float(self.radius.max()))
        apart = apart - self.radius[j]
        good = (apart < reach()[i]) & (self.rows[j] != own[i])
        i, j, apart = i[good], j[good], apart[good]
        order = np.argsort(apart, kind="stable")
        i, j, apart = i[order], j[order], apart[order]
        portion = max(1, ELEMENTS // ranges.shape[1])
        for at in range(0, len(i), portion):
            some = slice(at, at + portion)
            left = apart[some] < reach(i[some])
            yield i[some][left], j[some][left]

    def _near(self, centre: Array, distance: float) -> tuple[Rows, Rows, Array]:
        """(point, body, distance) of all pairs within a distance, in a fixed order."""
        if len(centre) * len(self.p) <= FEW:
            apart = np.sqrt(((centre[:, None] - self.p[None]) ** 2).sum(axis=2))
            i, j = np.nonzero(apart < distance)
            return i, j, apart[i, j]
        if self._tree is None:
            self._tree = cKDTree(self.p)
        found = cKDTree(centre).sparse_distance_matrix(self._tree, distance, output_type="ndarray")
        found = found[np.lexsort((found["j"], found["i"]))]
        return found["i"].astype(np.int64), found["j"].astype(np.int64), found["v"]

    def _meet(self, o: Array, d: Array, j: Rows) -> Array:
        """Where rays (n, 3), given from the bodies' origins, first meet the bodies j; 0 from inside, inf = nowhere."""
        R, half, kind = self.R[j], self.half[j], self.kind[j]
        p, v = np.einsum("nji,nj->ni", R, o), np.einsum("nji,nj->ni", R, d)
        found = np.full(len(j), np.inf)
        box, cylinder, sphere = kind == BOX, kind == CYLINDER, kind == SPHERE
        if box.any():
            found[box] = slab(p[box], v[box], half[box])
        if cylinder.any():
            upright = [1, 2, 0]  # its axis as that of a post
            h = half[cylinder]
            found[cylinder] = post(p[cylinder][:, upright], v[cylinder][:, upright], h[:, 1], h[:, 0])
        if sphere.any():
            o, d, r = p[sphere], v[sphere], half[sphere, 0]
            ahead = -np.einsum("ni,ni->n", o, d)
            with np.errstate(invalid="ignore"):
                chord = np.sqrt(r * r - (np.einsum("ni,ni->n", o, o) - ahead * ahead))
            found[sphere] = np.where(ahead + chord >= 0.0, np.maximum(ahead - chord, 0.0), np.inf)  # NaN: passes by
        return found
