"""Emulators with range beams: echosounder, rangefinder with fixed beams, scanning beam, multibeam.

The beams detect the sea bed, obstacles, the surface and other bodies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_emulators import ray_kernels
from wavesim_emulators.base import Batch, Emulator
from wavesim_sdk.arrays import Floats, Ints, Record
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.elementary import cos, sin
from wavesim_world.config import LoadedConfig, ranging_sensors
from wavesim_world.instruments import multibeam_beams, ranger_beams
from wavesim_world.ocean.bodies import BodyObstacles, ModelShapes
from wavesim_world.ocean.scene import RaycastScene

RINGS, SPOKES = 3, 12  #: numbers of rings and of spokes in the pattern of rays that represents a cone
#: maximum number of bodies for which a search for nearby bodies compares all instruments with all bodies
FEW_BODIES = 100


def cone(width: float) -> Floats:
    """Return unit vectors (n, 3) that fill a cone of full angle ``width`` around z."""
    rays = [(0.0, 0.0, 1.0)]
    for ring in range(1, RINGS + 1) if width else ():
        a = 0.5 * width * ring / RINGS
        for k in range(SPOKES):
            b = 2.0 * math.pi * k / SPOKES
            rays.append((sin(a) * cos(b), sin(a) * sin(b), cos(a)))
    return np.array(rays)


class BeamGeometry:
    """Beams of an instrument in S: directions and origins (n, 3)."""

    def __init__(self, directions: Floats, positions: Floats) -> None:
        self.directions, self.positions = np.ascontiguousarray(directions), np.ascontiguousarray(positions)
        self.is_apart = bool(positions.any())

    @classmethod
    def from_origin(cls, along: Floats) -> BeamGeometry:
        return cls(along, np.zeros((1, 3)))


class AnalyticWorld:
    """Static part of the configured world, as arrays for kernels. ``is_complete`` is False if the world also has
    soundings or meshes, which only the rays of :class:`~wavesim_world.ocean.scene.RaycastScene` can hit.
    """

    def __init__(self, loaded: LoadedConfig, scene: RaycastScene) -> None:
        bed = loaded.config.world.bed
        self.is_complete = loaded.config.world.soundings is None and scene.solid is None
        self.bed = np.array([bed.depth, bed.slope_north, bed.slope_east, scene.max_bed_slope])
        self.bumps = np.array([(b.height, b.north, b.east, b.alpha, b.beta) for b in bed.bump], float).reshape(-1, 5)
        self.boxes = np.zeros((len(scene.boxes), ray_kernels.BOX_COLUMNS))
        self.piers = np.zeros((len(scene.piers), ray_kernels.PIER_COLUMNS))
        for box, (x, y, z, a, b, c, heading) in zip(self.boxes, scene.boxes.tolist(), strict=True):
            s, k = float(sin(heading)), float(cos(heading))
            box[:] = x, y, z, a, b, c, a * a + b * b + c * c, k, -s, 0.0, s, k, 0.0, 0.0, 0.0, 1.0
        for pier, (x, y, z, radius, half) in zip(self.piers, scene.piers.tolist(), strict=True):
            pier[:] = x, y, z, radius, half, radius * radius + half * half


class RaycastEmulator(Emulator):
    """Base class of emulators that cast rays. Rays hit the bed, obstacles, the surface, and the bodies at their poses
    in this tick.
    """

    kernels = ray_kernels.KERNELS

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.scene = RaycastScene(loaded)
        self._world = AnalyticWorld(loaded, self.scene)
        self._shapes = ModelShapes(loaded)
        self._view: FleetSnapshot
        self._bodies: BodyObstacles | None = None
        #: version of the last snapshot, and radii of the bounding spheres of its bodies
        self._radii: tuple[Any, Floats] = None, np.zeros(0)

    def begin(self, view: FleetSnapshot, weather: object) -> None:
        self._view, self._bodies = view, None

    @property
    def bodies(self) -> BodyObstacles:
        """The bodies at the current tick."""
        if self._bodies is None:
            view = self._view
            self._bodies = BodyObstacles(self._shapes, view.rows, view.identity, view.state)
        return self._bodies

    def rays(self, now: Batch, beams: BeamGeometry, is_level: bool = False) -> Floats:
        """Return rays in W (n, beams, RAY_COLUMNS) along beams in S, or along beams in W if ``is_level`` is set."""
        found = np.empty((len(now), len(beams.directions), ray_kernels.RAY_COLUMNS))
        ray_kernels.fill_rays(now.poses, beams.directions, beams.positions, beams.is_apart, is_level, found)
        return found

    def cast(self, now: Batch, rays: Floats, maximum: float, surface: bool = True) -> Ints | None:
        """Set the ranges of rays; inf = no hit within the maximum range. Return the index of the body that each ray
        hit, or -1 if it hit no body (n, beams); return None if no body is near.
        """
        if (w := self._world).is_complete:
            ray_kernels.cast_rays(rays, w.bed, w.bumps, w.boxes, w.piers, maximum, now.level, surface)
            if not self._may_hit_bodies(now, rays, maximum):
                return None
        origins, along = rays[:, :, :3], rays[:, :, 3:6]
        if not w.is_complete:
            rays[:, :, ray_kernels.RANGE] = self.scene.cast(origins, along, maximum, surface=surface, level=now.level)
        ranges, hit = self.bodies.cast(origins, along, rays[:, :, ray_kernels.RANGE], maximum, now.rows)
        rays[:, :, ray_kernels.RANGE] = ranges
        return hit

    def _may_hit_bodies(self, now: Batch, rays: Floats, maximum: float) -> bool:
        """Return whether any ray may hit another body. This check takes less time than the search for hits."""
        view = now.view
        if len(view.rows) > FEW_BODIES:
            return True
        if view.version is None or view.version != self._radii[0]:
            shapes = self._shapes.table(view.identity["model"].take(view.rows))
            self._radii = view.version, shapes[:, 4].copy()
        return bool(ray_kernels.may_hit_bodies(rays, now.rows, now.state_numbers, view.rows, self._radii[1], maximum))

    def ranges(self, now: Batch, beams: BeamGeometry, surface: bool = True, level: bool = False) -> Floats:
        """Return ranges (n, beams) along beams in S, or in W if ``level`` is set."""
        rays = self.rays(now, beams, level)
        self.cast(now, rays, now.parameters.maximum, surface)
        return np.asarray(rays[:, :, ray_kernels.RANGE])


class EchosounderEmulator(RaycastEmulator):
    """Emulator of an echosounder: distance to the nearest part of the bottom, obstacles and bodies within the cone. The
    noise is 2 cm.
    """

    sensor = "echosounder"
    kernels = ray_kernels.ECHOSOUNDER_KERNELS

    def prepare(self, parameters: ranging_sensors.EchosounderConfig) -> BeamGeometry:
        return BeamGeometry.from_origin(cone(parameters.width))

    def measure(self, now: Batch, out: Record) -> None:
        p = now.parameters
        rays = self.rays(now, now.prepared, p.level)
        self.cast(now, rays, p.maximum, surface=False)
        ray_kernels.fill_echosounder(now.poses, rays, now.noise.normals(1), p.minimum, now.numbers(out))


class RangerEmulator(RaycastEmulator):
    """Emulator of a rangefinder: ranges along fixed beams."""

    sensor = "ranger"

    def prepare(self, parameters: ranging_sensors.RangerConfig) -> BeamGeometry:
        return BeamGeometry(*ranger_beams(parameters))

    def measure(self, now: Batch, out: Record) -> None:
        count = len(now.prepared.directions)
        found = self.ranges(now, now.prepared) + now.parameters.sigma * now.noise.normals(count)
        out["range"] = np.nan
        out["range"][:, :count] = np.where(np.isfinite(found), found, np.nan)


class ScannerEmulator(RaycastEmulator):
    """Emulator of a scanner: one scanning beam. The angle of the beam is computed from the tick, so that a replacement
    process continues where the previous one stopped.
    """

    sensor = "scanner"

    def measure(self, now: Batch, out: Record) -> None:
        p = now.parameters
        steps = max(1, round((p.last - p.first) / p.step))
        angle = p.first + (now.tick // now.period) % steps * p.step
        beam = BeamGeometry.from_origin(np.array([(cos(angle), sin(angle), 0.0)]))
        found = self.ranges(now, beam)[:, 0] + p.sigma * now.noise(0)
        out["angle"] = angle
        out["range"] = np.where(np.isfinite(found), found, np.nan)


class MultibeamEmulator(RaycastEmulator):
    """Emulator of a multibeam echosounder: a fan of beams that point down and to both sides, or beams with any origin
    and direction.
    """

    sensor = "multibeam"

    def prepare(self, parameters: ranging_sensors.MultibeamConfig) -> BeamGeometry:
        return BeamGeometry(*multibeam_beams(parameters))

    def measure(self, now: Batch, out: Record) -> None:
        count = len(now.prepared.directions)
        found = self.ranges(now, now.prepared, surface=False) + now.parameters.sigma * now.noise.normals(count)
        out["range"] = np.nan
        out["range"][:, :count] = np.where(np.isfinite(found), found, np.nan)
