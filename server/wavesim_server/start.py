"""Room for a body where it starts: not inside the bed, an obstacle or another body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.algebra import norm
from wavesim_sdk.config import Model
from wavesim_sdk.config.primitives import shape_of
from wavesim_sdk.kernel_compiler import kernel
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics import shapes
from wavesim_server.dynamics.fleet import Fleet
from wavesim_server.dynamics.kind import margin_of
from wavesim_server.seabed import Bed, Net, bed_depth

Array = np.ndarray[Any, np.dtype[np.float64]]
Vector = Sequence[float] | Array
DEEPEST = 0.01  #: overlap that contact undoes unseen, m


class Room:
    """The bed and the obstacles of a configuration, for bodies that are about to start."""

    def __init__(self, names: Sequence[str], bed: Bed, net: Net, fixed: Array) -> None:
        """``names`` of the obstacles, for each row of ``fixed``."""
        self.bed, self.net, self.fixed, self._names = bed, net, fixed, names
        self._cursor = np.zeros(1, np.int64)
        self._work, self._points = np.zeros((16, 3)), np.zeros((3, 3))
        # a ball around each
        cores = fixed[:, shapes.CORE : shapes.CORE + 3]
        self._reach = np.where(fixed[:, shapes.CODE] == shapes.TRIANGLE, cores[:, 0], norm(cores))

    def check(self, model: Model, position: Vector, attitude: Vector) -> None:
        """ValueError if the body would start inside the bed or an obstacle; it says how deep."""
        g, reach = geometry(model, position, attitude), shape_of(model).bounding_radius
        self._above_bed(g, reach)
        middles = self.fixed[:, shapes.POSE : shapes.ROTATION]
        away = norm(middles - g[shapes.POSE : shapes.ROTATION])
        for k in np.flatnonzero(away < self._reach + reach).tolist():
            if self._overlap(g, self.fixed[k]) > DEEPEST:
                place = ", ".join(f"{x:g}" for x in middles[k])
                what = self._names[k].replace("tunnel", "a wall of tunnel")
                raise ValueError(f"it starts inside {what} (at {place} m): {_place(g)}")

    def beside(self, model: Model, position: Vector, attitude: Vector, fleet: Fleet) -> int | None:
        """The row of a body of the fleet inside which this one would start, if there is one."""
        g, reach = geometry(model, position, attitude), shape_of(model).bounding_radius
        seat = -1
        while (
            seat := _near(fleet.blocks, fleet.heads, fleet.params, g[shapes.POSE : shapes.ROTATION], reach, seat + 1)
        ) >= 0:
            row = int(np.flatnonzero(fleet.slots == seat)[0])
            b, c = fleet.body(row), fleet.coefficients(row)
            other = _geometry(
                int(c[r.SHAPE]), c[r.HALF : r.HALF + 3], c[r.MARGIN], b[r.PX : r.PX + 3], b[r.QW : r.QW + 4]
            )
            if self._overlap(g, other) > DEEPEST:
                return row
        return None

    def apart(self, starts: Sequence[tuple[Model, Vector, Vector]]) -> tuple[int, int] | None:
        """The numbers of two of these (model, position, attitude) that would start inside each other, if there are such."""
        shape = [geometry(m, p, a) for m, p, a in starts]
        reach = [shape_of(m).bounding_radius for m, _, _ in starts]
        order = sorted(range(len(starts)), key=lambda k: shape[k][shapes.POSE] - reach[k])
        active: list[int] = []
        for k in order:
            g = shape[k]
            active = [i for i in active if shape[i][shapes.POSE] + reach[i] > g[shapes.POSE] - reach[k]]
            for i in active:
                near = (
                    norm(shape[i][shapes.POSE : shapes.ROTATION] - g[shapes.POSE : shapes.ROTATION])
                    < reach[i] + reach[k]
                )
                if near and self._overlap(g, shape[i]) > DEEPEST:
                    return min(i, k), max(i, k)
            active.append(k)
        return None

    def _above_bed(self, g: Array, reach: float) -> None:
        if not self._under(g[shapes.X], g[shapes.Y], g[shapes.Z] + reach * (1.0 + self.bed.slope)):
            return
        point, deepest = self._points[0], (0.0, 0.0, 0.0)
        for k in range(shapes.POINTS if g[shapes.CODE] != shapes.SPHERE else 1):
            shapes.feature(g, k, 0.0, 0.0, 1.0, point)
            z = point[2] + g[shapes.ROUND]
            depth = bed_depth(self.bed, self.net, self._cursor, 0, point[0], point[1])
            deepest = max(deepest, (z - depth, z, depth))
        if deepest[0] > DEEPEST:
            raise ValueError(
                f"it starts {deepest[0]:.2f} m inside the bed: its lowest point is {deepest[1]:.2f} m deep, the bed "
                f"there {deepest[2]:.2f} m; {_place(g)}"
            )

    def _under(self, x: float, y: float, z: float) -> bool:
        """Whether a point is under the bed; not where none is known."""
        return bool(bed_depth(self.bed, self.net, self._cursor, 0, x, y) < z)

    def _overlap(self, a: Array, b: Array) -> float:
        far = shapes.distance(a, b, self._work, self._points[1], self._points[2])
        return float(a[shapes.ROUND] + b[shapes.ROUND] - far)


@kernel
def _near(blocks: Any, heads: Any, params: Any, place: Any, reach: float, first: int) -> int:
    """The first seat of a fleet, from ``first`` on, with a body whose ball meets that of radius ``reach`` here; -1 if none."""
    for seat in range(first, heads.shape[0] * r.LANES):
        block, lane = seat // r.LANES, seat % r.LANES
        if blocks[block, r.PRESENT * r.LANES + lane] != 0.0:
            away = 0.0
            for i in range(3):
                d = blocks[block, (r.PX + i) * r.LANES + lane] - place[i]
                away += d * d
            near = reach + params[heads[block, r.BLOCK_KIND], r.REACH]
            if away < near * near:
                return seat
    return -1


def geometry(model: Model, position: Vector, attitude: Vector) -> Array:
    """A body as a row of :mod:`wavesim_server.dynamics.shapes`; position in m, roll, pitch, yaw in rad."""
    shape = shape_of(model)
    return _geometry(shape.code, shape.half_size, margin_of(shape), position, frames.quaternion(*attitude))


def _geometry(code: int, half: Any, margin: float, position: Any, q_WB: Any) -> Array:
    g = np.zeros(shapes.GEOMETRY)
    g[shapes.CODE], g[shapes.ROUND] = code, margin
    g[shapes.CORE : shapes.CORE + 3] = np.maximum(np.asarray(half) - margin, 0.0)
    g[shapes.POSE : shapes.ROTATION] = position
    g[shapes.ROTATION :] = frames.rotation(q_WB).ravel()
    return g


def _place(g: Array) -> str:
    return f"it starts at {g[shapes.X]:g} {g[shapes.Y]:g} {g[shapes.Z]:g} m (north, east, down)"
