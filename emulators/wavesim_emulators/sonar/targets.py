"""Targets that are too small for rays: points with a closed-form target strength. For each target, one ray checks
whether it is visible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from wavesim_emulators.sonar.design import SonarDesign
from wavesim_emulators.sonar.multipath import SonarMultipath
from wavesim_emulators.sonar.multipath_kernels import ghost_profile
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_emulators.sonar.types import Ints32, Singles
from wavesim_sdk.arrays import Floats
from wavesim_sdk.frame_labels import FIRST_TARGET, NOTHING
from wavesim_world.config.imaging import TargetConfig
from wavesim_world.sonars import materials, patterns


def strength(t: TargetConfig, wavelength: float, r: float, from_W: Floats) -> float:
    """Return the linear target strength in a direction (unit vector from the target to the sonar)."""
    a, b = t.size
    facing = np.array([math.cos(t.heading), math.sin(t.heading), 0.0])
    off = math.asin(min(1.0, max(-1.0, float(from_W @ facing))))
    if t.shape == "sphere":
        return materials.sphere(a)
    if t.shape == "cylinder":
        return materials.cylinder(a, b, wavelength, off, r)
    if t.shape == "plate":
        return materials.plate(a, b, wavelength, 0.5 * math.pi - abs(off), r)
    return materials.trihedral(a, wavelength)


class PointTargets:
    """Point targets of a world, as detected by one sonar."""

    def __init__(self, world: SonarScene, design: SonarDesign, multipath: SonarMultipath) -> None:
        self.world, self.design, self.multipath = world, design, multipath
        self.declared = world.targets
        self.places = np.array([t.position for t in self.declared]).reshape(-1, 3)
        #: number, beam and range of each target in the newest ping
        self.echoes: list[tuple[int, int, float]] = []

    def visible_targets(self, pose: Any, R: Floats, level: float) -> list[tuple[int, float, Floats, float]]:
        """Return the visible targets as (number of the target, range, direction in the fan, echo level) tuples. The
        level is linear, before the beam patterns are applied.
        """
        d = self.design
        found = []
        apart = np.linalg.norm(self.places - pose.p, axis=1)
        for i in np.flatnonzero((apart < d.range) & (apart > 1e-3)):
            r, t = float(apart[i]), self.declared[i]
            along = (self.places[i] - pose.p) / r
            n_F = R.T @ along
            if n_F[0] <= 0.0:
                continue
            u, e = np.array([n_F[1]]), np.array([math.atan2(n_F[2], n_F[0])])
            out, _ = self.world.cast_fan(pose.p, R, u, e, r, level, False)
            if out[0, 0, 0] < r - 0.05:  # the bed does not hide a target that lies on it
                continue
            power = d.energy_per_ray * strength(t, d.wavelength, r, -along) * math.exp(-d.decay * r) / r**4
            shifted = r * (1.0 - float(pose.v @ along) / d.sound_speed)
            found.append((int(i), shifted, n_F, power))
        return found

    def _ghosts(
        self, pose: Any, R: Floats, echo: tuple[float, Floats, float], level: float
    ) -> Iterator[tuple[Singles, float]]:
        """Yield the energy (1, bins) of each ghost of a target, and the sine of the angle off broadside at which it
        arrives. The target is given by its range, its direction in the fan, and its level.
        """
        if not self.multipath.enabled:
            return
        d = self.design
        r, n_F, power = echo
        echoes = np.array([[r, power, *(R @ n_F)]])
        for ghost in self.multipath.find(pose.p, R, echoes, level):
            profile = np.empty((1, d.bins), np.float32)
            ghost_profile(ghost, d.bin, profile)
            yield profile, float(ghost[2])

    def _across(self, n_F: Floats) -> float:
        """Return the two-way beam pattern across the array."""
        d = self.design
        e = math.atan2(n_F[2], n_F[0]) - (d.preset.tilt if d.preset.kind == "sidescan" else 0.0)
        return float(patterns.line(np.sin(e) * d.height / d.wavelength) ** 2) if abs(e) < 0.5 * math.pi else 0.0

    def add_sector_echoes(
        self,
        power: Floats,
        pose: Any,
        R: Floats,
        angles: Floats,
        pattern: Floats,
        scale: float,
        w_F: Floats,
        level: float,
    ) -> None:
        """Add target echoes to beams that receive with a pattern and transmit to the whole sector."""
        d = self.design
        self.echoes = []
        for i, r, n_F, echo in self.visible_targets(pose, R, level):
            azimuth = math.asin(n_F[1])
            if abs(azimuth) > 0.5 * d.preset.sector:
                continue
            self.echoes.append((i, int(np.abs(angles - azimuth).argmin()), r))
            t = 2.0 * r / d.sound_speed
            u = n_F[1] - w_F[2] * t * math.sqrt(1.0 - n_F[1] ** 2)
            gain = patterns.line((u - np.sin(angles)) * scale, d.preset.shading) * self._across(n_F)
            add_to_bins(power, r / d.bin, echo * gain)
            for profile, arrival in self._ghosts(pose, R, (r, n_F, echo), level):
                power += patterns.line((arrival - np.sin(angles)) * scale, d.preset.shading)[:, None] * profile

    def add_beam_echoes(self, power: Floats, pose: Any, R: Floats, level: float) -> None:
        """Add target echoes to one beam (1, bins) that transmits and receives with the same pattern."""
        d = self.design
        w_F = R.T @ pose.w
        self.echoes = []
        for i, r, n_F, echo in self.visible_targets(pose, R, level):
            if abs(math.asin(n_F[1])) < d.preset.beam:
                self.echoes.append((i, 0, r))
            scale = d.array / d.wavelength
            u = n_F[1] - w_F[2] * 2.0 * r / d.sound_speed
            sent, heard = patterns.line(np.array([n_F[1], u]) * scale, d.preset.shading)
            add_to_bins(power, r / d.bin, np.array([echo * sent * heard * self._across(n_F)]))
            for profile, arrival in self._ghosts(pose, R, (r, n_F, echo), level):
                power += patterns.line(np.array([arrival * scale]), d.preset.shading) ** 2 * profile

    def label(self, labels: Ints32) -> None:
        """Label the cell (beam and range bin) of each target in the newest ping; ``labels`` has the shape (beams, bins,
        2).
        """
        d = self.design
        for i, beam, r in self.echoes:
            first = max(math.floor((r - 0.5 * d.pulse) / d.bin), 0)
            labels[beam, first : math.floor((r + 0.5 * d.pulse) / d.bin) + 1] = NOTHING, FIRST_TARGET + i


def add_to_bins(power: Floats, at: float, echo: Floats) -> None:
    """Add the echoes of all beams at one range, dividing each echo between the two bins whose centres are nearest."""
    i = math.floor(at - 0.5)
    part = at - 0.5 - i
    for j, share in ((i, 1.0 - part), (i + 1, part)):
        if 0 <= j < power.shape[1]:
            power[:, j] += share * echo
