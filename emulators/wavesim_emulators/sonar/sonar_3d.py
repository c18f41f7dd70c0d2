"""3D sonar: the range and the level of the strongest echo in each direction of an image.

A pixel is a beam. The energy of each ray of a beam follows from the sonar equation, and each ray has independent
speckle. The range of the pixel is the range of the strongest ray, which may be anywhere in the beam. Ranges on an
inclined surface therefore scatter. An object appears wider by half a beam if there is a background behind it, and by a
whole beam otherwise. A pixel has no echo if nothing is within range, or if its level is less than 10 dB above the mean
noise and reverberation.

The model omits the turning of the sonar during a ping, the change of the beam width with the azimuth, distant sidelobes,
and false detections.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.sonar import level_kernels
from wavesim_emulators.sonar import ray_kernels as k
from wavesim_emulators.sonar.design import SonarDesign, normalised_weights
from wavesim_emulators.sonar.imaging import (
    EXPONENTIAL_QUANTILES,
    NORMAL_QUANTILES,
    ImagingSonar,
    PingResult,
    SonarPose,
    forward_axes,
    ray_energy,
)
from wavesim_emulators.sonar.multibeam import DETECTION_SNR_DB
from wavesim_emulators.sonar.scene import SonarScene, fan_directions
from wavesim_emulators.sonar.sonar_3d_kernels import RayEchoes, find_strongest_echoes
from wavesim_emulators.sonar.targets import PointTargets
from wavesim_kernels import randomness
from wavesim_sdk.arrays import Array, Floats
from wavesim_sdk.frame_labels import FIRST_TARGET
from wavesim_sdk.imaging_frames import PIXEL_3D
from wavesim_world.sonars import patterns

TOP = 65535  #: maximum integer value of a pixel
STEEP = 1.55  #: maximum angle of a ray from the axis of the sonar, rad
#: axes of the fan of rays in the axes of the sonar, as columns. The array of the fan is upright: u is the sine of the
#: angle down, and e is the angle to port
UPRIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


class BeamAxis:
    """Beams along one axis of the image, and their rays. The rays are as far apart as the beams, and continue beyond the
    image by one beam width.
    """

    def __init__(self, count: int, field: float, width: float, scale: float, shading: str) -> None:
        """``field`` is the angle from the first to the last beam, ``width`` the beam width (rad), ``scale`` the length of
        the array in wavelengths.
        """
        self.step = field / (count - 1)
        self.margin = math.ceil(width / self.step)
        self.inner = slice(self.margin, self.margin + count)
        steps = np.arange(-self.margin, count + self.margin) * self.step - 0.5 * field
        self.angles: Floats = np.clip(steps, -STEEP, STEEP)
        self.scale, self.shading = scale, shading
        self.reach = (self.margin + 0.5) * self.step  #: maximum angle off the axis of a beam at which the beam receives
        gains = self.gain(np.arange(-self.margin, self.margin + 1) * self.step)
        self.weights = normalised_weights(gains, self.step, patterns.energy_width(shading) / scale)

    def gain(self, off: Array) -> Floats:
        """Return the beam pattern at angles off the axis of a beam, without distant sidelobes."""
        return np.where(np.abs(off) < self.reach, patterns.line(np.sin(off) * self.scale, self.shading), 0.0)


class Sonar3D(ImagingSonar):
    """3D sonar. The levels of a ping are pixels (rows, columns), from top to bottom and from port to starboard."""

    def __init__(self, design: SonarDesign, world: SonarScene, wind: float, key: int) -> None:
        super().__init__(design, world, wind, key, 0)
        p, wavelength = design.preset, design.wavelength
        self.axes = forward_axes(p.tilt) @ UPRIGHT
        self.down = BeamAxis(p.rows, p.height, p.vertical, design.height / wavelength, "none")
        self.across = BeamAxis(p.beams, p.sector, p.beam, design.array / wavelength, p.shading)
        self.u, self.e = np.sin(self.down.angles), -self.across.angles
        self.weights = np.outer(self.down.weights, self.across.weights)
        cell = self.down.step * self.across.step
        self.energy_per_ray = design.energy_per_ray * cell * np.cos(self.down.angles)[:, None]
        self.directions = fan_directions(self.u[self.down.inner], self.e[self.across.inner])
        self.pixels = np.arange(p.rows * p.beams).reshape(p.rows, p.beams)
        self.z = np.zeros((len(self.u), len(self.e), 2), np.float32)
        self.restart(key)
        #: power in a range cell: ``noise`` is the noise, and ``scattered`` the volume reverberation at 1 m, without
        #: absorption
        self.noise = design.noise_power / max(1.0, design.bin / design.pulse) if design.noise else 0.0
        scattered = 10.0 ** (design.volume / 10.0) * design.energy_per_ray * design.pulse
        self.scattered = scattered * cell * float(self.weights.sum())
        self.targets = PointTargets(world, design, self.multipath)

    def restart(self, key: int) -> None:
        super().restart(key)
        own = np.array([key], np.uint64)
        self.range_key, self.noise_key = (randomness.stream(own, what) for what in ("range", "noise"))

    def ping(self, pose: SonarPose, number: int, level: float = 0.0) -> PingResult:
        d = self.design
        R = pose.R @ self.axes
        geometry, labels = self.world.cast_fan(pose.p, R, self.u, self.e, d.range, level, d.surface)
        rays = self._ray_echoes(geometry, labels, pose, R, number)
        power, ray = np.empty(self.pixels.shape), np.empty(self.pixels.shape, np.int32)
        find_strongest_echoes(rays, self.weights, d.pulse, power, ray)
        ranges, label = rays.range.ravel()[ray], labels.reshape(-1, 2)[ray]
        if d.noise:
            where = randomness.uniform(self.range_key, number, self.pixels) - 0.5
            ranges += where * rays.extent.ravel()[ray]
        ranges *= 1.0 - self.directions @ (R.T @ pose.v) / d.sound_speed
        self._add_targets(pose, R, level, ranges, power, label)
        there = (power > 0.0) & (ranges >= d.minimum) & (ranges <= d.range)
        safe = np.where(there, ranges, d.range)
        disturbance = self.noise + self.scattered * np.exp(-d.decay * safe) / safe**2
        if d.noise:
            draw = randomness.uniform(self.noise_key, number, self.pixels) * len(EXPONENTIAL_QUANTILES)
            power = power + disturbance * EXPONENTIAL_QUANTILES[draw.astype(np.int64)]
        there &= power >= 10.0 ** (DETECTION_SNR_DB / 10.0) * disturbance
        label[~there] = k.NO_HIT
        levels, saturated = self._quantise(there, safe, power)
        return PingResult(
            pose, number, levels=levels, power=power, labels=label if d.labels else None, saturated=saturated
        )

    def _ray_echoes(self, geometry: Floats, labels: Array, pose: SonarPose, R: Floats, number: int) -> RayEchoes:
        """Return the echoes of the rays, computed from their hits."""
        d = self.design
        energy = ray_energy(geometry, labels, self.energy_per_ray, self.tables, d.decay)
        r, cosine = geometry[..., 0], np.maximum(geometry[..., 1], 1e-3)
        energy[r < d.minimum] = 0.0
        if d.speckle:
            along = fan_directions(self.u, np.zeros(1))[:, 0] @ R.T
            memory = self.speckle_correlation(pose, along, d.preset.beam)
            nothing = np.zeros(len(self.e))
            level_kernels.apply_speckle(
                energy, nothing, self.key, number, self.z, memory, NORMAL_QUANTILES, EXPONENTIAL_QUANTILES
            )
        # range that the width of a ray covers on the tangent plane
        ahead = np.sqrt(1.0 - self.u**2)[:, None]
        tilt = np.abs(geometry[..., 2]) * self.down.step + np.abs(geometry[..., 3]) * ahead * self.across.step
        extent = np.maximum(np.where(r < k.FAR, r, 0.0) * tilt / cosine, d.pulse)
        return RayEchoes(np.ascontiguousarray(r), energy, extent)

    def _add_targets(
        self, pose: SonarPose, R: Floats, level: float, ranges: Floats, power: Floats, label: Array
    ) -> None:
        """Set range, power and label of the pixels in which a point target is the strongest echo."""
        for i, r, n_F, echo in self.targets.visible_targets(pose, R, level):
            if r < self.design.minimum:
                continue
            down, across = math.asin(n_F[1]), -math.atan2(n_F[2], n_F[0])
            by_row = self.down.gain(down - self.down.angles[self.down.inner])
            by_column = self.across.gain(across - self.across.angles[self.across.inner])
            received = echo * np.outer(by_row, by_column)
            stronger = received > power
            ranges[stronger], power[stronger] = r, received[stronger]
            label[stronger] = k.NO_HIT, FIRST_TARGET + i

    def _quantise(self, there: Array, ranges: Floats, power: Floats) -> tuple[Array, int]:
        """Return the pixels, and the number of saturated levels."""
        d = self.design
        x = np.minimum(ranges, d.hold)
        level = 10.0 * np.log10(np.maximum(power, 1e-30)) + d.tvg * np.log10(x) + 2.0 * d.absorption * x + d.gain
        scaled = np.rint((level - d.floor) * (TOP / d.span))
        pixels = np.zeros(self.pixels.shape, PIXEL_3D)
        pixels["range"] = np.where(there, np.maximum(np.rint(ranges * (TOP / d.range)), 1.0), 0.0)
        pixels["level"] = np.where(there, np.clip(scaled, 0.0, TOP), 0.0)
        return pixels, int((there & (scaled > TOP)).sum())
