"""Ray casting against the fixed world: sea bed, walls, piers, tunnels, meshes and surface; thousands of rays at a time.

A ray approaches the bed in steps. The maximum slope of the bed limits the length of the steps, so that the ray cannot
pass through a hill. Intersections with the other shapes are computed in closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk.algebra import dot, vecmat
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import cos, hypot, sin, sin_cos
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.world import Obstacles
from wavesim_world.ocean import mesh
from wavesim_world.ocean.bed import max_slope, sea_bed

CLOSE = 1e-4  #: distance in m from the bed at which a ray counts as on the bed
STEPS = 400


def obstacle_boxes(o: Obstacles) -> Floats:
    """Return upright boxes as an array (n, 7): centre, half sizes, heading. The rows are the blocks, followed by four
    walls per tunnel.
    """
    rows = [(*b.position, *(0.5 * s for s in b.size), b.heading) for b in o.block]
    for t in o.tunnel:
        c, s = cos(t.heading), sin(t.heading)
        for side in (-1.0, 1.0):
            off = side * (t.width + t.thickness) / 2
            x, y, z = t.position
            rows.append(
                (x - s * off, y + c * off, z, t.length / 2, t.thickness / 2, t.height / 2 + t.thickness, t.heading)
            )
            off = side * (t.height + t.thickness) / 2
            rows.append((x, y, z + off, t.length / 2, t.width / 2, t.thickness / 2, t.heading))
    return np.array(rows, float).reshape(-1, 7)


class RaycastScene:
    """Static part of the configured world, for ray casting."""

    def __init__(self, loaded: LoadedConfig) -> None:
        o = loaded.config.world.obstacles
        self.bed = sea_bed(loaded)
        self.max_bed_slope = max_slope(loaded)
        self.boxes = obstacle_boxes(o)
        self.piers = np.array([(*p.position, p.radius, p.height / 2) for p in o.pier], float).reshape(-1, 5)
        triangles = mesh.all_triangles(loaded)
        self.solid = mesh.RaycastMesh(triangles) if len(triangles) else None

    def cast(
        self, origin: Floats, direction: Floats, maximum: float, *, surface: bool = True, level: float = 0.0
    ) -> Floats:
        """Return distances (n,) from origins (n, 3) along unit directions (n, 3), all in frame W; inf if nothing is
        within ``maximum``.

        ``level`` is the height in m of the water surface above the mean. Rays that start below the surface hit it at
        this level.
        """
        origin, direction = np.asarray(origin, float), np.asarray(direction, float)
        if origin.shape != direction.shape:
            origin, direction = np.broadcast_arrays(origin, direction)
        o, d = origin.reshape(-1, 3), direction.reshape(-1, 3)
        found = np.minimum(self._bottom(o, d, maximum), self._solid(o, d))
        if surface:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                depth = o[:, 2] + level
                up = np.where((d[:, 2] < 0.0) & (depth >= 0.0), -depth / d[:, 2], np.inf)
            found = np.minimum(found, up)
        return np.where(found <= maximum, found, np.inf).reshape(origin.shape[:-1])

    def _bottom(self, o: Floats, d: Floats, maximum: float) -> Floats:
        across = hypot(d[:, 0], d[:, 1])
        fall = self.max_bed_slope * across + d[:, 2]  # maximum rate at which ray and bed approach each other
        t = np.zeros(len(o))
        result = np.full(len(o), np.inf)
        active = np.flatnonzero(fall > 0.0)
        for _ in range(STEPS):
            if not len(active):
                break
            p = o[active] + t[active, None] * d[active]
            clear = self.bed(p[:, 0], p[:, 1]) - p[:, 2]
            hit = clear <= CLOSE
            result[active[hit]] = t[active[hit]]
            with np.errstate(over="ignore"):  # almost parallel: no hit
                step = np.where(
                    np.isfinite(clear), np.maximum(clear, CLOSE) / fall[active], 5.0
                )  # no bed beyond the soundings
            t[active] += step
            active = active[~hit & (t[active] <= maximum)]
        return np.where(result <= maximum, result, np.inf)

    def _solid(self, o: Floats, d: Floats) -> Floats:
        best = np.full(len(o), np.inf)
        for x, y, z, a, b, c, heading in self.boxes:
            some, rel = _towards(o, d, (x, y, z), a * a + b * b + c * c)
            if len(some):
                sh, ch = sin_cos(heading)
                turn = np.array([[ch, -sh, 0.0], [sh, ch, 0.0], [0.0, 0.0, 1.0]])
                best[some] = np.minimum(
                    best[some], intersect_box(vecmat(rel, turn), vecmat(d[some], turn), np.array([a, b, c]))
                )
        for x, y, z, radius, half in self.piers:
            some, rel = _towards(o, d, (x, y, z), radius * radius + half * half)
            if len(some):
                best[some] = np.minimum(best[some], intersect_cylinder(rel, d[some], radius, half))
        if self.solid is not None:
            best = np.minimum(best, self.solid.cast(o, d))
        return best


def _towards(o: Floats, d: Floats, centre: Any, square: float) -> tuple[Any, Floats]:
    """Return the indices of the rays that pass the centre at a squared distance below ``square``, and their origins
    relative to the centre.
    """
    rel = o - centre
    ahead = -dot(rel, d)
    far = dot(rel, rel)
    some = np.flatnonzero((far - ahead * ahead <= square + 1e-6) & ((ahead > 0.0) | (far <= square)))
    return some, rel[some]


def intersect_box(p: Floats, v: Floats, half: Floats) -> Floats:
    """Return the distance at which rays first hit a box around the origin. The distance is 0 if a ray starts inside the
    box, and inf if it does not hit the box.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        near, far = (-half - p) / v, (half - p) / v
    low, high = np.minimum(near, far), np.maximum(near, far)
    parallel, inside = np.abs(v) < 1e-12, np.abs(p) <= half
    low = np.where(parallel, np.where(inside, -np.inf, np.inf), low).max(axis=1)
    high = np.where(parallel, np.where(inside, np.inf, -np.inf), high).min(axis=1)
    return np.where((low <= high) & (high >= 0.0), np.maximum(low, 0.0), np.inf)


def intersect_cylinder(p: Floats, v: Floats, radius: Any, half: Any) -> Floats:
    """Return the distance at which rays first hit an upright cylinder around the origin. The distance is 0 if a ray
    starts inside the cylinder, and inf if it does not hit the cylinder.
    """
    a = v[:, 0] * v[:, 0] + v[:, 1] * v[:, 1]
    b = p[:, 0] * v[:, 0] + p[:, 1] * v[:, 1]
    c = p[:, 0] * p[:, 0] + p[:, 1] * p[:, 1] - radius * radius
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        root = np.sqrt(b * b - a * c)
        low, high = (-b - root) / a, (-b + root) / a
        upright = a < 1e-24
        low = np.where(upright, np.where(c <= 0.0, -np.inf, np.inf), low)
        high = np.where(upright, np.where(c <= 0.0, np.inf, -np.inf), high)
        near, far = (-half - p[:, 2]) / v[:, 2], (half - p[:, 2]) / v[:, 2]
    level = np.abs(v[:, 2]) < 1e-12
    inside = np.abs(p[:, 2]) <= half
    low = np.maximum(low, np.where(level, np.where(inside, -np.inf, np.inf), np.minimum(near, far)))
    high = np.minimum(high, np.where(level, np.where(inside, np.inf, -np.inf), np.maximum(near, far)))
    return np.where((low <= high) & (high >= 0.0), np.maximum(low, 0.0), np.inf)
