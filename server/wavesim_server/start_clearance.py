"""Clearance at the start positions of bodies: a body must be outside the bed, the obstacles and other bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_kernels.compiler import kernel
from wavesim_sdk import frames
from wavesim_sdk.algebra import norm
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import shapes
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_server.dynamics.model_compiler import contact_margin
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.seabed import BedParameters, SoundingsMesh, bed_depth
from wavesim_world.config import Model
from wavesim_world.config.primitives import shape_of

Vector = Sequence[float] | Floats
OVERLAP_TOLERANCE = 0.01  #: overlap in m that contacts resolve without visible motion


class StartClearance:
    """The bed and the obstacles of a configuration, for checking bodies that are about to start."""

    def __init__(self, names: Sequence[str], bed: BedParameters, net: SoundingsMesh, fixed: Floats) -> None:
        """``names`` contains the names of the obstacles, one for each row of ``fixed``."""
        self.bed, self.soundings_mesh, self.obstacles, self._names = bed, net, fixed, names
        self._cursor = np.zeros(1, np.int64)
        self._work, self._points = np.zeros((16, 3)), np.zeros((3, 3))
        # radius of a bounding sphere around each obstacle
        cores = fixed[:, shapes.CORE : shapes.CORE + 3]
        self._reach = np.where(fixed[:, shapes.SHAPE_CODE] == shapes.TRIANGLE, cores[:, 0], norm(cores))

    def check(self, model: Model, position: Vector, attitude: Vector) -> None:
        """Check that a body starts outside the bed and all obstacles. Raises ValueError, stating the depth or the
        obstacle, if it does not.
        """
        g, reach = model_geometry(model, position, attitude), shape_of(model).bounding_radius
        self._check_bed(g, reach)
        middles = self.obstacles[:, shapes.POSE : shapes.ROTATION]
        away = norm(middles - g[shapes.POSE : shapes.ROTATION])
        for k in np.flatnonzero(away < self._reach + reach).tolist():
            if self._overlap(g, self.obstacles[k]) > OVERLAP_TOLERANCE:
                place = ", ".join(f"{x:g}" for x in middles[k])
                what = self._names[k].replace("tunnel", "a wall of tunnel")
                raise ValueError(f"start position inside {what} (at {place} m): {_place_text(g)}")

    def overlapping_row(self, model: Model, position: Vector, attitude: Vector, fleet: FleetDynamics) -> int | None:
        """Return the row of the body in the fleet that a new body would overlap at its start, or None."""
        g, reach = model_geometry(model, position, attitude), shape_of(model).bounding_radius
        seat = -1
        while (
            seat := _next_near_body(
                fleet.blocks, fleet.block_heads, fleet.params, g[shapes.POSE : shapes.ROTATION], reach, seat + 1
            )
        ) >= 0:
            row = int(np.flatnonzero(fleet.slots == seat)[0])
            b, c = fleet.body(row), fleet.coefficients(row)
            other = _geometry(
                int(c[P.SHAPE]), c[P.HALF : P.HALF + 3], c[P.CONTACT_MARGIN], b[B.PX : B.PX + 3], b[B.QW : B.QW + 4]
            )
            if self._overlap(g, other) > OVERLAP_TOLERANCE:
                return row
        return None

    def overlapping_pair(self, starts: Sequence[tuple[Model, Vector, Vector]]) -> tuple[int, int] | None:
        """Return the indices of two bodies, each given as (model, position, attitude), that would overlap at the start,
        or None.
        """
        shape = [model_geometry(m, p, a) for m, p, a in starts]
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
                if near and self._overlap(g, shape[i]) > OVERLAP_TOLERANCE:
                    return min(i, k), max(i, k)
            active.append(k)
        return None

    def _check_bed(self, g: Floats, reach: float) -> None:
        if not self._is_under_bed(g[shapes.X], g[shapes.Y], g[shapes.Z] + reach * (1.0 + self.bed.max_slope)):
            return
        point, deepest = self._points[0], (0.0, 0.0, 0.0)
        for k in range(shapes.MAX_FEATURES if g[shapes.SHAPE_CODE] != shapes.SPHERE else 1):
            shapes.feature_point(g, k, 0.0, 0.0, 1.0, point)
            z = point[2] + g[shapes.CORE_MARGIN]
            depth = bed_depth(self.bed, self.soundings_mesh, self._cursor, 0, point[0], point[1])
            deepest = max(deepest, (z - depth, z, depth))
        if deepest[0] > OVERLAP_TOLERANCE:
            raise ValueError(
                f"start position {deepest[0]:.2f} m inside the bed: the lowest point of the body is {deepest[1]:.2f} m deep, but the bed "
                f"at this position is {deepest[2]:.2f} m deep; {_place_text(g)}"
            )

    def _is_under_bed(self, x: float, y: float, z: float) -> bool:
        """Return whether a point is below the bed; False where the bed is unknown."""
        return bool(bed_depth(self.bed, self.soundings_mesh, self._cursor, 0, x, y) < z)

    def _overlap(self, a: Floats, b: Floats) -> float:
        far = shapes.distance(a, b, self._work, self._points[1], self._points[2])
        return float(a[shapes.CORE_MARGIN] + b[shapes.CORE_MARGIN] - far)


@kernel
def _next_near_body(blocks: Any, heads: Any, params: Any, place: Any, reach: float, first: int) -> int:
    """Return the first slot, from ``first`` on, whose body is near ``place``, or -1 if there is none.

    A body counts as near if its bounding sphere meets the sphere with the radius ``reach`` around ``place``.
    """
    for seat in range(first, heads.shape[0] * LANES):
        block, lane = seat // LANES, seat % LANES
        if blocks[block, B.PRESENT * LANES + lane] != 0.0:
            away = 0.0
            for i in range(3):
                d = blocks[block, (B.PX + i) * LANES + lane] - place[i]
                away += d * d
            near = reach + params[heads[block, B.HEAD_MODEL], P.BOUNDING_RADIUS]
            if away < near * near:
                return seat
    return -1


def model_geometry(model: Model, position: Vector, attitude: Vector) -> Floats:
    """Return a body as a row of :mod:`wavesim_server.dynamics.shapes`; the position is in m, and roll, pitch and yaw
    are in rad.
    """
    shape = shape_of(model)
    return _geometry(shape.code, shape.half_size, contact_margin(shape), position, frames.quaternion(*attitude))


def _geometry(code: int, half: Any, margin: float, position: Any, q_WB: Any) -> Floats:
    g = np.zeros(shapes.GEOMETRY)
    g[shapes.SHAPE_CODE], g[shapes.CORE_MARGIN] = code, margin
    g[shapes.CORE : shapes.CORE + 3] = np.maximum(np.asarray(half) - margin, 0.0)
    g[shapes.POSE : shapes.ROTATION] = position
    g[shapes.ROTATION :] = frames.rotation(q_WB).ravel()
    return g


def _place_text(g: Floats) -> str:
    return f"the configured start is {g[shapes.X]:g} {g[shapes.Y]:g} {g[shapes.Z]:g} m (north, east, down)"
