"""Multibeam echosounder: one sounding per beam, with the accuracy of its detection method."""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.sonar import design as shape
from wavesim_emulators.sonar import ray_kernels as k
from wavesim_emulators.sonar.design import SonarDesign
from wavesim_emulators.sonar.imaging import DOWN, PingResult, SonarPose, ray_energy
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_kernels import randomness
from wavesim_sdk.arrays import Floats
from wavesim_sdk.imaging_frames import SOUNDING_COLUMNS as SOUNDING_COLUMNS

DETECTION_SNR_DB = 10.0  #: signal-to-noise ratio in dB below which the sounding of a beam is lost
MIN_PHASE_CELLS = 2.0  #: minimum number of range cells in a footprint for phase detection
STABILISED = math.radians(10.0)  #: maximum roll in rad that the stabilisation of the beams compensates
AMPLITUDE, PHASE, NONE = 1, 2, 0


class MultibeamSonar:
    """Multibeam echosounder that returns soundings (beams, SOUNDING). The columns are: assumed angle (rad, to
    starboard); two-way time (s); position x ahead, y starboard, z down (m), relative to the sonar, in axes levelled by
    its true roll and pitch; standard deviations (m); echo level and signal-to-noise ratio (dB); detection method (1
    amplitude, 2 phase, 0 lost: all other columns are NaN). The last columns are the true point in W, its material and
    its object.
    """

    def __init__(self, design: SonarDesign, world: SonarScene, wind: float, key: int) -> None:
        self.design, self.world = design, world
        self.tables = world.palette.tables(design.preset.frequency, design.sound_speed, wind)
        self.beam_angles = shape.beam_angles(design)
        self.restart(key)
        self.sound_speed_ratio = design.sound_speed / (design.assumed_speed or design.sound_speed)

    def restart(self, key: int) -> None:
        """Restart the sonar with another key for the random numbers."""
        self.keys = np.uint64(key)

    def ping(self, pose: SonarPose, number: int, level: float = 0.0) -> PingResult:
        d = self.design
        beams = d.preset.beams
        R = pose.R @ DOWN
        roll = math.atan2(float(pose.R[2, 1]), float(pose.R[2, 2]))
        held = min(max(roll, -STABILISED), STABILISED) if d.stabilised else 0.0
        steered = self.beam_angles + held  # at the array: roll moves starboard down, so beams turn the other way
        actual = np.arcsin(np.clip(np.sin(steered) * self.sound_speed_ratio, -1.0, 1.0))
        rays = shape.sounding_rays(d, actual)
        out, what = self.world.cast_fan(pose.p, R, rays.u, rays.e, d.range, level, False)
        out, what = out.reshape(beams, -1, 4), what.reshape(beams, -1, 2)
        centre = shape.ACROSS * (shape.ACROSS // 2) + shape.ACROSS // 2
        r, cosine = out[:, centre, 0], np.clip(out[:, centre, 1], 1e-3, 1.0)
        weight = (rays.gain_u * rays.du * np.cos(rays.angle)).reshape(beams, -1, 1) * (rays.gain_e * rays.de)
        weight = weight.reshape(beams, -1)
        energy = ray_energy(out, what, weight, self.tables, d.decay)
        total = d.energy_per_ray * energy.sum(axis=1)

        there = r < k.FAR
        with np.errstate(divide="ignore", invalid="ignore"):
            tangent = np.sqrt(1.0 - cosine**2) / cosine
            across = np.where(there, r, 0.0) * d.preset.beam / np.maximum(np.cos(actual), 0.05) * tangent
            cells = np.maximum(across / d.pulse, 1.0)
            power = total / cells
            snr = 10.0 * np.log10(np.maximum(power, 1e-30) / d.noise_power)
            base = d.pulse**2 / 12.0
            by_amplitude = base + across**2 / (12.0 * cells)
            by_phase = base + across**2 / (10.0 ** (snr / 10.0) * cells)
            by_phase = np.where(cells > MIN_PHASE_CELLS, by_phase, np.inf)
        sigma_r = np.sqrt(np.minimum(by_amplitude, by_phase))
        detection = np.where(by_phase < by_amplitude, PHASE, AMPLITUDE)
        lost = ~there | (snr < DETECTION_SNR_DB) | (r < d.minimum)

        noisy = sigma_r * self._normal(number, beams) if d.noise else 0.0
        measured = np.where(there, r, np.nan) * (1.0 - self._towards(pose, R, actual)) + noisy
        table = np.full((beams, len(SOUNDING_COLUMNS)), np.nan)
        n_F = np.stack([np.cos(steered), np.sin(steered), np.zeros(beams)], axis=1)
        level_axes = level_axes_of(pose.R).T @ pose.R @ DOWN
        n_L = n_F @ level_axes.T
        place = measured[:, None] * n_L
        for name, value in {
            "angle": steered,
            "time": 2.0 * measured / d.sound_speed,
            "x": place[:, 0],
            "y": place[:, 1],
            "z": place[:, 2],
            "sigma_z": np.abs(n_L[:, 2]) * sigma_r,
            "sigma_r": sigma_r,
            "level": 10.0 * np.log10(np.maximum(power, 1e-30)),
            "snr": snr,
            "detection": detection,
        }.items():
            table[:, SOUNDING_COLUMNS.index(name)] = value
        n_A = np.stack([np.cos(actual), np.sin(actual), np.zeros(beams)], axis=1)
        with np.errstate(invalid="ignore"):
            table[:, 10:13] = pose.p + np.where(there, r, np.nan)[:, None] * (n_A @ R.T)
        table[:, 13:15] = what[:, centre]
        table[lost, 1:9] = np.nan
        table[lost, 9] = NONE
        return PingResult(
            pose, number, soundings=table, altitude=float(r[beams // 2]) if there[beams // 2] else math.nan
        )

    def _towards(self, pose: SonarPose, R: Floats, actual: Floats) -> Floats:
        """Return the fraction by which a measured range is shortened because the receiver moves towards the echo."""
        v = R.T @ pose.v
        return np.asarray((v[0] * np.cos(actual) + v[1] * np.sin(actual)) / self.design.sound_speed)

    def _normal(self, number: int, beams: int) -> Floats:
        return randomness.normal(np.full(beams, self.keys), number, np.arange(beams))


def level_axes_of(R: Floats) -> Floats:
    """Return level axes (3, 3, columns in W) whose x axis has the heading of R's x axis."""
    heading = math.atan2(float(R[1, 0]), float(R[0, 0]))
    c, s = math.cos(heading), math.sin(heading)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
