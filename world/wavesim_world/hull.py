"""Hydrostatics of a hull from its mesh: draft, metacentric heights, righting arm.

    hull = Hull(trimesh.load("ship.stl").triangles)   # body axes, z down, faces counter-clockwise seen from outside
    found = hull.afloat(mass=2200.0, centre=(0.0, 0.0, 0.1))
    print(found.draft, found.gm_roll, [hull.righting_arm(2200.0, (0.0, 0.0, 0.1), phi) for phi in heels])

The wetted part of the mesh is computed exactly. Each face is cut at the water plane, and the part below the plane is
joined to a point in this plane; the cut surface itself therefore contributes nothing (for closed surfaces, see Mirtich,
Fast and accurate computation of polyhedral mass properties, 1996). The hull floats at a given attitude; the computation
does not search for the trim at which the moments vanish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array


@dataclass(frozen=True)
class WettedVolume:
    """Part of a hull below a water plane: volume (m3) and its centre (m, body axes)."""

    volume: float
    centre: Array


@dataclass(frozen=True)
class FloatingState:
    """Upright hull at rest: z of the waterline (m, body axes), draft below it (m), volume (m3), centre of buoyancy (m).

    ``area`` is the area of the water plane (m2), ``flotation`` its centre (x, y in m); ``gm_roll`` and ``gm_pitch`` are the
    metacentric heights (m).
    """

    waterline: float
    draft: float
    volume: float
    centre: Array
    area: float
    flotation: tuple[float, float]
    gm_roll: float
    gm_pitch: float


class Hull:
    """Closed surface of triangles (n, 3, 3) in m, body axes, with its ``volume`` (m3) and the ``centre`` of that volume
    (m). Raises ValueError if the surface is not closed or is inside out.
    """

    def __init__(self, triangles: Any) -> None:
        self.triangles = t = np.asarray(triangles, float)
        if t.ndim != 3 or t.shape[1:] != (3, 3) or not len(t) or not np.isfinite(t).all():
            raise ValueError(f"a hull needs triangles with finite vertices, shape (n, 3, 3), got {t.shape}")
        if not _closed(t):
            raise ValueError("the surface is not closed: each edge must belong to two faces, once in each direction")
        self.volume = self._volume_and_centre(t, np.zeros(3)).volume
        # about a point within the hull: a distant one would leave no digits for the centre
        self.centre = self._volume_and_centre(t, t.mean(axis=(0, 1))).centre
        if self.volume <= 0.0:
            raise ValueError("the surface is inside out: faces must be counter-clockwise when seen from outside")

    def wetted_part(self, down: Sequence[float], level: float) -> WettedVolume:
        """Return the part of the hull whose points p satisfy ``down . p > level``. ``down`` is a unit vector in body
        axes that points down in the world.
        """
        n = np.asarray(down, float)
        return self._volume_and_centre(self._cut(n, level)[0], n * level)

    def wetted_area(self, down: Sequence[float], level: float) -> float:
        """Return the area in m2 of the surface below the water plane. The water plane itself does not count."""
        t = self.wetted_triangles(down, level)
        cross = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
        return float(0.5 * np.sqrt((cross * cross).sum(axis=1)).sum())

    def wetted_triangles(self, down: Sequence[float], level: float) -> Array:
        """Return the triangles (n, 3, 3) of the surface below the water plane. The surface is open at the plane."""
        return self._cut(np.asarray(down, float), level)[0]

    def level(self, down: Sequence[float], volume: float) -> float:
        """Return the level of the water plane that cuts off this volume (m3). Raises ValueError unless the volume of
        the hull is larger.
        """
        if not 0.0 < volume < self.volume:
            raise ValueError(f"the hull cannot float: it must displace {volume:g} m3 but has {self.volume:g} m3")
        along = self.triangles @ np.asarray(down, float)
        low, high = float(along.min()), float(along.max())
        while high - low > 1e-13 * max(1.0, abs(low), abs(high)):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            low, high = (middle, high) if self.wetted_part(down, middle).volume > volume else (low, middle)
        return 0.5 * (low + high)

    def afloat(self, mass: float, centre: Sequence[float], density: float = 1025.0) -> FloatingState:
        """Return the upright floating state for a mass (kg), a centre of gravity (m) and a water density (kg/m3)."""
        down = (0.0, 0.0, 1.0)
        level = self.level(down, mass / density)
        wet = self.wetted_part(down, level)
        a, b = np.moveaxis(self._cut(np.array(down), level)[1][:, :, :2], 1, 0)  # edges of the water plane
        cross = a[:, 0] * b[:, 1] - b[:, 0] * a[:, 1]
        area = 0.5 * cross.sum()
        x, y = ((a + b) * cross[:, None]).sum(axis=0) / (6.0 * area)
        second = ((a * a + a * b + b * b) * cross[:, None]).sum(axis=0) / 12.0
        above = float(wet.centre[2] - centre[2])  # height of the centre of gravity above the centre of buoyancy
        return FloatingState(
            level,
            float(self.triangles[:, :, 2].max()) - level,
            wet.volume,
            wet.centre,
            abs(float(area)),
            (float(x), float(y)),
            float(abs(second[1]) - abs(area) * y * y) / wet.volume - above,
            float(abs(second[0]) - abs(area) * x * x) / wet.volume - above,
        )

    def righting_arm(self, mass: float, centre: Sequence[float], heel: float, density: float = 1025.0) -> float:
        """Return the righting arm GZ in m at a heel angle in rad; a positive arm rights a hull that heels to starboard."""
        c, s = math.cos(heel), math.sin(heel)
        down = (0.0, s, c)
        b = self.wetted_part(down, self.level(down, mass / density)).centre
        return float((b[1] - centre[1]) * c - (b[2] - centre[2]) * s)

    def _cut(self, n: Array, level: float) -> tuple[Array, Array]:
        """Return the triangles of the wetted surface, and the lines (k, 2, 3) along which the water plane cuts faces."""
        t = self.triangles
        over = t @ n - level
        wet = over > 0.0
        count = wet.sum(axis=1)
        whole, pieces, sides = t[count == 3], [], []
        for k in range(3):  # one vertex is wet, or one is dry: rotate it to the front
            p, d = np.roll(t, -k, axis=1), np.roll(over, -k, axis=1)
            for alone in (1, 2):
                m = (count == alone) & ((d[:, 0] > 0.0) == (alone == 1))
                q, e = p[m], d[m]
                to_1 = q[:, 0] + (e[:, 0] / (e[:, 0] - e[:, 1]))[:, None] * (q[:, 1] - q[:, 0])
                to_2 = q[:, 0] + (e[:, 0] / (e[:, 0] - e[:, 2]))[:, None] * (q[:, 2] - q[:, 0])
                if alone == 1:
                    pieces.append(np.stack([q[:, 0], to_1, to_2], axis=1))
                    sides.append(np.stack([to_1, to_2], axis=1))
                else:
                    pieces.append(np.stack([to_1, q[:, 1], q[:, 2]], axis=1))
                    pieces.append(np.stack([to_1, q[:, 2], to_2], axis=1))
                    sides.append(np.stack([to_2, to_1], axis=1))
        return np.concatenate([whole, *pieces]), np.concatenate(sides)

    @staticmethod
    def _volume_and_centre(triangles: Array, apex: Array) -> WettedVolume:
        a, b, c = np.moveaxis(triangles - apex, 1, 0)
        volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
        total = float(volumes.sum())
        centre = apex + (volumes[:, None] * (a + b + c)).sum(axis=0) / (4.0 * total) if total else apex
        return WettedVolume(total, centre)


def _closed(triangles: Array) -> bool:
    """Return whether each edge occurs equally often in both directions. Vertices closer together than about 1e-6 of
    the hull's size are merged.
    """
    size = float(np.ptp(triangles.reshape(-1, 3), axis=0).max())
    _, at = np.unique(np.round(triangles.reshape(-1, 3) / (1e-6 * size)), axis=0, return_inverse=True)
    at = at.reshape(-1, 3).astype(np.int64)
    edges = np.concatenate([at[:, [0, 1]], at[:, [1, 2]], at[:, [2, 0]]])
    low, high = edges.min(axis=1), edges.max(axis=1)
    _, edge = np.unique(low * (int(at.max()) + 1) + high, return_inverse=True)
    balance = np.bincount(edge.ravel(), weights=np.sign(edges[:, 1] - edges[:, 0]))
    return not balance.any()
