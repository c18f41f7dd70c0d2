"""Emulators with range beams: echosounder, fixed rangers, scanning beam, multibeam. The beams detect sea bed,
obstacles, surface and other bodies.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_emulators.base import Batch, Emulator
from wavesim_sdk.algebra import matvec
from wavesim_sdk.arrays import Floats, Ints, Record
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.elementary import cos, sin
from wavesim_world.config import LoadedConfig, ranging_sensors
from wavesim_world.instruments import ECHO_SIGMA, multibeam_beams, ranger_beams
from wavesim_world.ocean.bodies import BodyObstacles, ModelShapes
from wavesim_world.ocean.scene import RaycastScene

RINGS, SPOKES = 3, 12  #: number of rays that represent a cone
FLOATING = 0.5  #: height in m above the water up to which an echosounder on a floating hull still counts as submerged


def cone(width: float) -> Floats:
    """Return unit vectors (n, 3) that fill a cone of full angle ``width`` around z."""
    rays = [(0.0, 0.0, 1.0)]
    for ring in range(1, RINGS + 1) if width else ():
        a = 0.5 * width * ring / RINGS
        for k in range(SPOKES):
            b = 2.0 * math.pi * k / SPOKES
            rays.append((sin(a) * cos(b), sin(a) * sin(b), cos(a)))
    return np.array(rays)


class BeamGeometry(NamedTuple):
    """Beams of an instrument in S: directions and origins (n, 3)."""

    directions: Floats
    positions: Floats

    @classmethod
    def from_origin(cls, along: Floats) -> BeamGeometry:
        return cls(along, np.zeros((1, 3)))


class RaycastEmulator(Emulator):
    """Base class of emulators that cast rays into the world: bed, obstacles, surface, and the bodies at the tick."""

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.scene = RaycastScene(loaded)
        self._shapes = ModelShapes(loaded)

    def begin(self, view: FleetSnapshot, weather: object) -> None:
        self.bodies = BodyObstacles(self._shapes, view.rows, view.identity, view.state)

    def starts(self, now: Batch, places: Floats) -> Floats:
        """Return beam origins in W (instruments, beams or 1, 3) from their positions in S."""
        if not places.any():
            return now.p_WS_W[:, None, :]
        return np.asarray(now.p_WS_W[:, None, :] + matvec(now.R_WS[:, None], places))

    def cast_rays(
        self, now: Batch, starts: Floats, along: Floats, maximum: float, surface: bool = True
    ) -> tuple[Floats, Ints]:
        """Return (ranges, number of the hit body or -1), both (n, beams), along unit vectors in W; inf = no hit within
        the maximum range.
        """
        level = float(now.weather["level"])
        ranges = self.scene.cast(starts, along, maximum, surface=surface, level=level)
        return self.bodies.cast(starts, along, ranges, maximum, now.rows)

    def ranges(self, now: Batch, beams: BeamGeometry, surface: bool = True, level: bool = False) -> Floats:
        """Return ranges (n, beams) along beams in S, or in W if ``level`` is set."""
        along = beams.directions[None] if level else matvec(now.R_WS[:, None], beams.directions)
        return self.cast_rays(now, self.starts(now, beams.positions), along, now.parameters.maximum, surface)[0]


class EchosounderEmulator(RaycastEmulator):
    """Emulator of an echosounder: distance to the nearest part of the bottom, obstacles and bodies within the cone. The
    noise is 2 cm.
    """

    sensor = "echosounder"

    def prepare(self, parameters: ranging_sensors.EchosounderConfig) -> BeamGeometry:
        return BeamGeometry.from_origin(cone(parameters.width))

    def measure(self, now: Batch, out: Record) -> None:
        distance = self.ranges(now, now.prepared, False, now.parameters.level).min(axis=1)
        out["range"] = np.where(np.isfinite(distance), distance + ECHO_SIGMA * now.noise(0), np.nan)
        in_water = now.depth >= -FLOATING
        out["valid"] = in_water & np.isfinite(distance) & (distance > now.parameters.minimum)


class RangerEmulator(RaycastEmulator):
    """Emulator of a ranger: ranges along fixed beams."""

    sensor = "ranger"

    def prepare(self, parameters: ranging_sensors.RangerConfig) -> BeamGeometry:
        return BeamGeometry(*ranger_beams(parameters))

    def measure(self, now: Batch, out: Record) -> None:
        count = len(now.prepared.directions)
        found = self.ranges(now, now.prepared) + now.parameters.sigma * now.noise.normals(count)
        out["range"] = np.nan
        out["range"][:, :count] = np.where(np.isfinite(found), found, np.nan)


class ScannerEmulator(RaycastEmulator):
    """Emulator of a scanner: one scanning beam. Its angle follows from the tick, so that a new process continues where
    the old one stopped.
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
    """Emulator of a multibeam: a fan of beams down and to both sides, or beams with any origin and direction."""

    sensor = "multibeam"

    def prepare(self, parameters: ranging_sensors.MultibeamConfig) -> BeamGeometry:
        return BeamGeometry(*multibeam_beams(parameters))

    def measure(self, now: Batch, out: Record) -> None:
        count = len(now.prepared.directions)
        found = self.ranges(now, now.prepared, surface=False) + now.parameters.sigma * now.noise.normals(count)
        out["range"] = np.nan
        out["range"][:, :count] = np.where(np.isfinite(found), found, np.nan)
