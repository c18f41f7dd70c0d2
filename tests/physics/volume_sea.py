"""Water whose sound speed is given by a grid, for tests: the grid, and all paths between two points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.physics.sea import records
from wavesim_server.acoustics import eigenrays, fans, image_paths, medium_arrays, medium_setup, waveguides
from wavesim_server.acoustics.types import Vector
from wavesim_server.acoustics.volume_aiming import FirstGuess
from wavesim_server.acoustics.volume_rays import RayTarget
from wavesim_server.acoustics.waveguides import Waveguide
from wavesim_server.seabed import BedParameters, SoundingsMesh
from wavesim_world.ocean.sound import SoundSpeedVolume

Speed = Callable[[Any, Any, Any], Any]


class Path(NamedTuple):
    """A path: its time, its bounces, its spreading loss, and its directions at both ends."""

    time: float
    surface: int
    bottom: int
    spread: float
    caustics: int
    leaves: tuple[float, float, float]
    arrives: tuple[float, float, float]


def volume(
    speed: Speed, depths: Any, spacing: tuple[float, float], reach: float, times: tuple[float, ...] = (0.0,)
) -> SoundSpeedVolume:
    """Speeds at the points of a grid that covers a square around the origin; at later times, one m/s more each second."""
    n, e = (np.arange(-math.ceil(reach / s), math.ceil(reach / s) + 1) * s for s in spacing)
    c = speed(n[None, :, None], e[None, None, :], depths[:, None, None]) + 0.0 * n[None, :, None] * e
    return SoundSpeedVolume(
        np.array([c + t for t in times]), depths, np.array(times), (float(n[0]), float(e[0])), spacing
    )


def bed(depth: float, slope: tuple[float, float] = (0.0, 0.0)) -> image_paths.AcousticScene:
    none = np.zeros((0, 3), np.int64)
    parameters = BedParameters(np.array([depth, *slope]), np.zeros((0, 5)), math.hypot(*slope), False)
    return image_paths.AcousticScene(
        np.zeros((0, 20)), parameters, SoundingsMesh(np.zeros((0, 3)), none, none), np.zeros(1, np.int64)
    )


class VolumeSea:
    """A sound field over a bed."""

    def __init__(self, water: SoundSpeedVolume, scene: image_paths.AcousticScene, order: int = 0) -> None:
        self.medium = medium_arrays.allocate_medium(
            nodes=1, signals=1, emissions=1, chunks=1, waiting=16, waiting_rays=16, candidates=1, kept_rays=1,
            hearings=1, events=1, profile=len(water.depths), field_times=len(water.times), field_points=water.c[0].size,
            pairs=0, sent=1, receptions=1,
        )  # fmt: skip
        self.medium.profile_z[:] = water.depths
        medium_setup.fill_sound_field(self.medium, water)
        self.scene, self.order = scene, order
        self.legs, self.none = waveguides.legs_view(self.medium.legs), np.zeros((0, 3))
        self.found, self.shot = records(eigenrays.EIGENRAY, 512), records(waveguides.SHOT, 1)[0]

    def guide(self, a: Vector, b: Vector, time: float = 0.0) -> Waveguide:
        return waveguides.waveguide_between(
            medium_arrays.sound_speed_profile(self.medium),
            medium_arrays.sound_field(self.medium, time),
            self.scene,
            self.order,
            a,
            b,
        )

    def paths(self, source: tuple[float, ...], receiver: tuple[float, ...], time: float = 0.0) -> list[Path]:
        """All paths in the order of their times, each aimed once more from its kept direction as the medium does."""
        a, b = (Vector(*map(float, p)) for p in (source, receiver))
        guide = self.guide(a, b, time)
        count, left = fans.scan(guide, a, b, self.found, 0, self.legs, self.none, self.shot)
        assert left == 0
        made = []
        for ray in self.found[:count]:
            sz = math.sqrt(max(1.0 - ray.sx * ray.sx - ray.sy * ray.sy, 0.0))
            leaves = Vector(float(ray.sx), float(ray.sy), sz if ray.down else -sz)
            target, s = RayTarget(b, int(ray.reversals), int(ray.bed) - 1), self.shot
            guess = FirstGuess(leaves, Vector(0.0, 0.0, 0.0), Vector(0.0, 0.0, 0.0))
            assert fans.aim_ray(guide, a, target, guess, True, self.legs, self.none, s)
            assert abs(s.time - ray.time) < 1e-11
            made.append(
                Path(
                    float(s.time),
                    int(s.surface),
                    int(s.bottom),
                    float(s.spread),
                    int(s.caustics),
                    (float(s.sx), float(s.sy), float(s.sz)),
                    (float(s.rx), float(s.ry), float(s.rz)),
                )
            )
        return sorted(made)
