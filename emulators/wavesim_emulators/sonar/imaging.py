"""Computation of a ping: from the pose of a sonar and the scene to a frame. The module does not depend on a clock, on
processes or on shared memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_emulators.sonar import design as shape
from wavesim_emulators.sonar import echo_kernels, level_kernels
from wavesim_emulators.sonar import ray_kernels as k
from wavesim_emulators.sonar.beam_kernels import FAST_BINS, UNROLLED, sum_columns
from wavesim_emulators.sonar.design import RayFan, SonarDesign
from wavesim_emulators.sonar.edges import find_edges
from wavesim_emulators.sonar.label_kernels import LabelledRays, label_cells
from wavesim_emulators.sonar.multipath import SonarMultipath
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_emulators.sonar.targets import PointTargets
from wavesim_emulators.sonar.types import Ints32, Singles
from wavesim_kernels import randomness
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.extras import check_installed
from wavesim_world.sonars import patterns

#: number of time slices of a ping during which the receiver turns; the receive pattern is interpolated within each
#: slice
SLICES = 8
#: length of rays as a multiple of the range; a ray is longer than the range because its energy is spread over ranges
#: around its hit
REACH = 1.1
STEADY_TURN = 0.1  #: fraction of the beam width below which a turn of the receiver during a ping is neglected
PATTERN_RESOLUTION = 64  #: number of entries per lambda/L in the table of a beam pattern
SIDELOBES = 40  #: extent of the table of a beam pattern, in lambda/L

check_installed("scipy")
from scipy.special import ndtri

_q = (np.arange(65536) + 0.5) / 65536
_NORMAL = ndtri(_q)
#: quantiles of a normal distribution of variance 1/2, used for the real and imaginary parts of a complex amplitude
# EXPONENTIAL_QUANTILES are those of an exponential distribution of mean 1.
NORMAL_QUANTILES = (_NORMAL / math.sqrt(2.0 * float(np.mean(_NORMAL**2)))).astype(np.float32)
_EXPONENTIAL = -np.log1p(-_q)
EXPONENTIAL_QUANTILES = (_EXPONENTIAL / float(np.mean(_EXPONENTIAL))).astype(np.float32)


@dataclass(frozen=True)
class SonarPose:
    """Pose and motion of a sonar at the time of transmission: position in W, rotation from its frame S to W, velocity
    and angular velocity in W.
    """

    p: Floats
    R: Floats
    v: Floats
    w: Floats

    def before(self, seconds: float) -> SonarPose:
        """Return the pose ``seconds`` earlier, assuming constant velocities."""
        angle = float(np.linalg.norm(self.w)) * seconds
        R = self.R if angle < 1e-12 else rotation_matrix(-self.w * seconds) @ self.R
        return SonarPose(self.p - seconds * self.v, R, self.v, self.w)


def rotation_matrix(by: Floats) -> Floats:
    """Return the rotation matrix (3, 3) of a rotation vector (Rodrigues)."""
    angle = float(np.linalg.norm(by))
    if angle < 1e-12:
        return np.eye(3)
    x, y, z = by / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * (K @ K))


#: axes of a fan in S, as columns; see :mod:`~wavesim_emulators.sonar.ray_kernels`
DOWN = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
STARBOARD = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
PORT = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def forward_axes(tilt: float, azimuth: float = 0.0) -> Floats:
    """Return the axes of a fan that looks ahead, after it is turned to starboard and tilted down by these angles."""
    c, s = math.cos(azimuth), math.sin(azimuth)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    c, s = math.cos(tilt), math.sin(tilt)
    return np.asarray(R @ np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]]))


@dataclass
class PingResult:
    """Result of a ping. ``levels`` (beams, bins) are integers; for soundings, ``soundings`` (beams, columns of
    SOUNDING) is set instead. ``power`` contains the levels before gain. ``labels`` (beams, bins, 2) are material and
    object of each cell (:mod:`wavesim_sdk.frame_labels`).
    """

    pose: SonarPose
    number: int
    azimuth: float = 0.0
    levels: Any = None
    soundings: Any = None
    power: Any = None
    labels: Any = None
    saturated: int = 0
    altitude: float = math.nan


def ray_energy(geometry: Floats, labels: Any, weight: Any, tables: Floats, decay: float) -> Floats:
    """Return the echo energy of rays: weight s_b e^(-decay r) / (r^2 cos theta), where the weight is the solid angle
    times the beam pattern. ``geometry`` (..., 4) and ``labels`` (..., 2) have the same meaning as in FanHits.
    """
    hit = (geometry[..., 0] > 0.0) & (geometry[..., 0] < k.FAR)
    safe = np.where(hit, geometry[..., 0], 1.0)
    angle = np.degrees(np.arccos(np.clip(geometry[..., 1], 1e-4, 1.0)))
    row = np.minimum(angle.astype(int), 89)
    material = np.maximum(labels[..., 0], 0)
    s_b = tables[material, row] + (angle - row) * (tables[material, row + 1] - tables[material, row])
    return np.where(hit, weight * s_b * np.exp(-decay * safe) / (safe**2 * np.maximum(geometry[..., 1], 1e-4)), 0.0)


class ImagingSonar:
    """Base class of forward-looking, side-scan and scanning sonars. Each sonar has one array. Echoes are stored by beam
    and range bin.
    """

    def __init__(self, design: SonarDesign, world: SonarScene, wind: float, key: int, rows: int) -> None:
        self.design, self.world = design, world
        self.key = np.uint64(key)
        self.ground_key = np.uint64(randomness.key(0, "ground", "patches"))
        self.tables = world.palette.tables(design.preset.frequency, design.sound_speed, wind)
        self.z = np.zeros((rows, design.bins, 2), np.float32)
        #: energy of the echoes of each column; all pings use the same memory
        self.energy = np.zeros((0, design.bins), np.float32)
        self.fresh = True
        self.last: SonarPose | None = None
        self.multipath = SonarMultipath(design, world, wind)
        self.side = 0.0 if design.preset.kind == "forward" else design.array

    def restart(self, key: int) -> None:
        """Restart the sonar with another key for the random numbers."""
        self.key, self.fresh = np.uint64(key), True

    def echo_energy(
        self, pose: SonarPose, axes: Floats, rays: RayFan, level: float
    ) -> tuple[Singles, LabelledRays | None]:
        """Return the energy (columns, bins) of the echoes of a fan and, if the sonar has labels, the rays for
        :func:`label_cells`. The next ping overwrites the energy.
        """
        d = self.design
        fan = k.Fan(pose.p, pose.R @ axes, rays.u, rays.e)
        reach = REACH * d.range
        hits = self.world.cast_fan(*fan, reach, level, d.surface)
        edges = find_edges(self.world, fan, hits.labels[..., 1], rays.de, (reach, level, d.surface))
        if len(self.energy) < len(rays.u):
            self.energy = np.empty((len(rays.u), d.bins), np.float32)
        energy = self.energy[: len(rays.u)]
        energy[:] = 0.0
        shape = (len(rays.u), len(rays.e), 3)
        intervals = np.zeros(shape if d.labels else (0, 0, 3))
        self._bin_energy(pose, fan, rays, edges, hits, echo_kernels.EchoBins(0.0, d.bin, energy, intervals))
        if self.multipath.enabled:
            self.multipath.add_to_columns(energy, fan, rays, hits, self.tables, level)
        if not d.labels:
            return energy, None
        background = np.zeros((0, 0, 3))
        if (hits.labels[..., 1] > k.SURFACE).any():
            background = np.zeros(shape)
            free = self.world.cast_fan_without_objects(fan, reach, level, d.surface)
            bins = echo_kernels.EchoBins(0.0, d.bin, np.zeros((len(rays.u), 1), np.float32), background)
            self._bin_energy(pose, fan, rays, edges[:0], free, bins)
        gain = rays.gain_e / rays.gain_e.max()
        return energy, LabelledRays(intervals, hits.geometry, hits.labels, rays.de / d.bin, gain, background)

    def _bin_energy(
        self, pose: SonarPose, fan: k.Fan, rays: RayFan, edges: Floats, hits: k.FanHits, echoes: echo_kernels.EchoBins
    ) -> None:
        """Add the energy of rays with these edges and hits to the bins."""
        d, palette = self.design, self.world.palette
        aperture = np.array([self.side, patterns.HALF_POWER * d.wavelength / d.array])
        echo_kernels.bin_energy(
            fan,
            echo_kernels.FanWeights(rays.du, rays.de, d.energy_per_ray * rays.gain_u, rays.gain_e, edges),
            hits,
            self.world.bed,
            echo_kernels.Backscatter(self.tables, palette.patches, palette.cells, self.ground_key, palette.textures),
            echo_kernels.EchoPath(d.decay, d.sound_speed, fan.R.T @ pose.v, aperture),
            echoes,
        )

    def labels_of(self, rays: LabelledRays | None, first: Ints, end: Ints) -> Ints32 | None:
        """Return the labels (beams, bins, 2) of beams that consist of the columns from ``first`` to ``end`` - 1, or
        None if the sonar has no labels.
        """
        if rays is None:
            return None
        labels = np.empty((len(first), self.design.bins, 2), np.int32)
        label_cells(rays, first, end, labels)
        return labels

    def reverberation(self, solid: Floats) -> Floats:
        """Return volume reverberation (beams, bins) for two-way solid angles (beams)."""
        d = self.design
        r = np.maximum(d.ranges, d.bin)
        per_bin = 10.0 ** (d.volume / 10.0) * d.energy_per_ray * max(d.bin, d.pulse) * np.exp(-d.decay * r) / r**2
        return np.asarray(solid[:, None] * per_bin)

    def receive(
        self, power: Floats, pose: SonarPose, along: Floats, number: int, beam: float
    ) -> tuple[Floats, Any, int]:
        """Convert mean powers (beams, bins) to samples: apply speckle, noise, gain and quantisation. Return the power,
        the levels, and the number of saturated values.
        """
        d = self.design
        if len(d.envelope) > 1:
            mean = np.empty_like(power)
            level_kernels.convolve_pulse(power, d.envelope, mean)
            power = mean
        noise = np.full(d.bins, d.noise_power if d.noise else 0.0)
        if d.speckle:
            memory = self.speckle_correlation(pose, along, beam)
            level_kernels.apply_speckle(
                power, noise, self.key, number, self.z, memory, NORMAL_QUANTILES, EXPONENTIAL_QUANTILES
            )
        else:
            power = power + noise
        levels = np.empty(power.shape, np.uint8 if d.bits == 8 else np.uint16)
        cut = level_kernels.to_levels(power, d.gain_dB, d.floor, d.top / d.span, d.top, levels)
        return power, levels, int(cut)

    def speckle_correlation(self, pose: SonarPose, along: Floats, beam: float) -> Floats:
        """Return the correlation of each beam's speckle with its speckle in the previous ping: 1 without motion, 0.14
        after half an aperture or half a beam.
        """
        last, self.last = self.last, pose
        if last is None or self.fresh:
            self.fresh = False
            return np.zeros(len(along))
        d = self.design
        moved = pose.p - last.p
        towards = along @ moved
        across2 = np.maximum(moved @ moved - towards**2, 0.0)
        turned = math.acos(min(1.0, max(-1.0, 0.5 * (float(np.trace(last.R.T @ pose.R)) - 1.0))))
        x = across2 / (0.5 * d.array) ** 2 + (2.0 * turned / beam) ** 2 + (towards / d.pulse) ** 2
        return np.asarray(np.exp(-x))


class ForwardLookingSonar(ImagingSonar):
    """Forward-looking sonar. With ``axes`` = DOWN, it records the water column of a multibeam echosounder."""

    def __init__(
        self, design: SonarDesign, world: SonarScene, wind: float, key: int, axes: Floats | None = None
    ) -> None:
        super().__init__(design, world, wind, key, design.preset.beams)
        p = design.preset
        self.axes = forward_axes(p.tilt) if axes is None else axes
        self.rays = shape.image_rays(design)
        self.angles = np.linspace(-0.5 * p.sector, 0.5 * p.sector, p.beams)
        self.scale = design.array / design.wavelength
        x = np.arange(PATTERN_RESOLUTION * SIDELOBES + 1) / PATTERN_RESOLUTION
        self.pattern = patterns.line(x, p.shading)
        self.targets = PointTargets(world, design, self.multipath)
        self.two_way = float(np.sum(self.rays.gain_e * self.rays.de))
        self.receive_gains = self.receive_gains_at(np.zeros(len(self.rays.u)))
        self.energy = np.zeros((self.receive_gains.shape[1], design.bins), np.float32)
        self.energy[len(self.rays.u)] = self.reverberation(np.ones(1))[0]
        self.nearest = np.abs(self.rays.angle[None, :] - self.angles[:, None]).argmin(axis=1)

    def receive_gains_at(self, shift: Floats) -> Singles:
        """Return the receive gains (beams, rows of ``energy``) for columns that are displaced by ``shift`` (in u, the
        sine of the angle), because the receiver has turned. Each row contains the gains of the columns, then the
        two-way solid angle of the beam, then zeros as padding.
        """
        count = len(self.rays.u)
        W = np.empty((len(self.angles), count))
        level_kernels.pattern_matrix(
            np.sin(self.angles), self.rays.u, shift, self.pattern, self.scale * PATTERN_RESOLUTION, W
        )
        gains = np.zeros((len(W), -(-(count + 1) // UNROLLED) * UNROLLED), np.float32)
        gains[:, :count] = W
        gains[:, count] = np.einsum("ij,j->i", W, np.cos(self.rays.angle) * self.rays.du) * self.two_way
        return gains

    def beam_power(self, w_F: Floats) -> Floats:
        """Return the mean power (beams, bins) that the beams receive from the columns and from the water, while the
        receiver turns.
        """
        d = self.design
        columns = self.energy  # followed by the volume reverberation
        received = np.empty((len(self.angles), d.bins), np.float32)
        if abs(w_F[2]) * d.ping_time < STEADY_TURN * d.preset.beam:
            sum_columns(self.receive_gains, columns, 0, d.bins, received)
            return received.astype(np.float64)
        power = np.zeros(received.shape)
        ends = np.linspace(0, d.bins, SLICES + 1).astype(int).tolist()
        turned = -w_F[2] * np.cos(self.rays.angle) * 2.0 * d.bin / d.sound_speed
        for i, at in enumerate(ends):
            first, end = ends[max(i - 1, 0)], ends[min(i + 1, SLICES)]
            begin = max(0, end - -(-(end - first) // FAST_BINS) * FAST_BINS)
            sum_columns(self.receive_gains_at(turned * at), columns, begin, end, received)
            weight = np.interp(np.arange(first, end) + 0.5, ends, np.arange(len(ends)) == i)
            power[:, first:end] += received[:, first:end] * weight
        return power

    def ping(self, pose: SonarPose, number: int, level: float = 0.0) -> PingResult:
        d, rays = self.design, self.rays
        _, labelled = self.echo_energy(pose, self.axes, rays, level)
        w_F = self.axes.T @ pose.R.T @ pose.w  # velocity of the receiver, in the fan
        power = self.beam_power(w_F)
        self.targets.add_sector_echoes(
            power, pose, pose.R @ self.axes, self.angles, self.pattern, self.scale, w_F, level
        )
        along = np.stack([np.cos(self.angles), np.sin(self.angles), np.zeros(len(self.angles))], axis=1)
        power, levels, cut = self.receive(power, pose, along @ (pose.R @ self.axes).T, number, d.preset.beam)
        labels = self.labels_of(labelled, self.nearest, self.nearest + 1)
        if labels is not None:
            self.targets.label(labels)
        return PingResult(pose, number, levels=levels, power=power, labels=labels, saturated=cut)


class MonostaticSonar(ImagingSonar):
    """Base class of sonars that transmit and receive with the same array: one beam at a time, with the same pattern in
    both directions.
    """

    def one_beam(self, pose: SonarPose, axes: Floats, rays: RayFan, level: float) -> tuple[Floats, Floats, Any]:
        """Return, for one beam, the power (bins), the volume reverberation (bins), and the labels (1, bins, 2); the
        labels are None if the sonar has none.
        """
        d = self.design
        scale = d.array / d.wavelength
        energy, labelled = self.echo_energy(pose, axes, rays, level)
        w_F = axes.T @ pose.R.T @ pose.w
        width = float(rays.du[0])

        def weights(shift: float) -> Floats:
            return shape.mean_pattern(rays.angle, width, scale, d.preset.shading, 2, shift)

        rest = weights(0.0)
        if abs(w_F[2]) * d.ping_time < STEADY_TURN * d.preset.beam:
            power = rest @ energy
        else:  # the pattern at a few ranges, and between them by interpolation
            at = np.linspace(0.0, d.range, 4 * SLICES + 1)
            turning = np.array([weights(-w_F[2] * 2.0 * r / d.sound_speed) for r in at])
            power = np.sum([np.interp(d.ranges, at, w) * e for w, e in zip(turning.T, energy, strict=True)], axis=0)
        solid = float((rest @ rays.du) * np.sum(rays.gain_e * rays.de))
        labels = self.labels_of(labelled, np.zeros(1, np.int64), np.array([len(rays.u)]))
        return power, self.reverberation(np.array([solid]))[0], labels


class SideScanSonar(MonostaticSonar):
    """Side-scan sonar with a port and a starboard side. Levels have the shape (2, bins), with the first bin nearest to
    the sonar.
    """

    def __init__(self, design: SonarDesign, world: SonarScene, wind: float, key: int) -> None:
        super().__init__(design, world, wind, key, 2)
        self.targets = PointTargets(world, design, self.multipath)

    def ping(self, pose: SonarPose, number: int, level: float = 0.0) -> PingResult:
        d = self.design
        altitude = self.world.depth(float(pose.p[0]), float(pose.p[1])) - float(pose.p[2])
        power, labels = np.empty((2, d.bins)), []
        for side, axes in enumerate((PORT, STARBOARD)):
            R = pose.R @ axes
            below = math.atan2(float(R[2, 0]), float(R[2, 2]))  # angle of broadside below the horizontal
            rays = shape.side_rays(d, altitude if math.isfinite(altitude) else d.range, below)
            power[side], volume, seen = self.one_beam(pose, axes, rays, level)
            power[side] += volume
            self.targets.add_beam_echoes(power[side : side + 1], pose, R, level)
            if seen is not None:
                self.targets.label(seen)
                labels.append(seen)
        along = np.stack([-pose.R[:, 1], pose.R[:, 1]])
        power, levels, cut = self.receive(power, pose, along, number, d.preset.beam)
        return PingResult(
            pose,
            number,
            levels=levels,
            power=power,
            labels=np.concatenate(labels) if labels else None,
            saturated=cut,
            altitude=altitude,
        )


class ScanningSonar(MonostaticSonar):
    """Scanning sonar: a head that turns by a step with each ping. Levels have the shape (1, bins)."""

    def __init__(self, design: SonarDesign, world: SonarScene, wind: float, key: int) -> None:
        super().__init__(design, world, wind, key, 1)
        self.rays = shape.pencil_rays(design)
        self.targets = PointTargets(world, design, self.multipath)

    def azimuth(self, number: int) -> float:
        """Return the angle of a ping from the x axis of S towards its y axis. It is computed from the ping number, so
        that a replacement process continues where the previous one stopped.
        """
        p = self.design.preset
        steps = max(1, round(p.sector / p.step))
        begin = -math.pi if p.sector > 6.28 else -0.5 * p.sector
        return begin + number % steps * p.step

    def ping(self, pose: SonarPose, number: int, level: float = 0.0) -> PingResult:
        d = self.design
        azimuth = self.azimuth(number)
        axes = forward_axes(d.preset.tilt, azimuth)
        power = np.empty((1, d.bins))
        power[0], volume, labels = self.one_beam(pose, axes, self.rays, level)
        power[0] += volume
        self.targets.add_beam_echoes(power, pose, pose.R @ axes, level)
        self.fresh = True  # the head has turned by a step: the speckle is independent of the last one
        power, levels, cut = self.receive(power, pose, (pose.R @ axes)[:, :1].T, number, d.preset.beam)
        if labels is not None:
            self.targets.label(labels)
        return PingResult(pose, number, azimuth, levels=levels, power=power, labels=labels, saturated=cut)
