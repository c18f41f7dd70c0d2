"""Lidars: ranges and intensities of beams that are cast into the scene of the sonars and cameras.

A beam hits the nearest surface above the water: a hull, an obstacle, a mesh or the shore. The intensity is the
reflectivity of the surface (the red component of its material's colour) times the cosine of the angle of incidence. A
surface is detected if its intensity is at least ``minimum_reflectivity (r/range)^2``, because the received power
decreases with 1/r^2. The water surface absorbs a beam, or reflects it if ``surface_reflectivity`` is set. For a
submerged lidar, the water reduces the light by the factor ``exp(-2 c r)``. The model neglects waves, spray, multiple
echoes and the width of the beam. The columns of a scan are measured one after the other; other bodies do not move
during a scan.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from wavesim_emulators.base import Batch
from wavesim_emulators.sonar import ray_kernels as k
from wavesim_emulators.sonar.frame_emulator import SceneEmulator, euler_of
from wavesim_emulators.sonar.imaging import NORMAL_QUANTILES
from wavesim_emulators.sonar.scene import SonarScene, fan_directions
from wavesim_emulators.sonar.sonar_3d import TOP, UPRIGHT
from wavesim_kernels import randomness
from wavesim_sdk import imaging_frames as frames
from wavesim_sdk.arrays import Array, Record
from wavesim_world.config.lidar import LidarConfig as Declared

BLOCK = 16  #: number of columns that are measured at the same pose


class LidarPose(NamedTuple):
    """Pose of a lidar in W at the end of a scan, its velocity and angular velocity in W, and the duration of a scan."""

    p: Array
    R: Array
    v: Array
    w: Array
    duration: float


def turned(R: Array, angle: Array) -> Array:
    """Return a rotation matrix after an additional rotation by a rotation vector in W."""
    size = float(np.linalg.norm(angle))
    if size == 0.0:
        return R
    x, y, z = angle / size
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray((np.eye(3) + math.sin(size) * cross + (1.0 - math.cos(size)) * cross @ cross) @ R)


class LidarScanner:
    """Lidar that scans from a pose. It uses no clock, process or shared memory."""

    def __init__(self, c: Declared, world: SonarScene, key: int) -> None:
        self.lidar, self.world = c, world
        own = np.array([key], np.uint64)
        self.range_key, self.drop_key = (randomness.stream(own, what) for what in ("range", "drop-out"))
        self.reflectivity = world.palette.colours()[:, 0].copy()
        self.reflectivity[-1] = c.surface_reflectivity
        self.u = np.sin(np.linspace(-c.upper, -c.lower, c.channels))
        self.e = -np.linspace(*c.azimuths, c.columns)
        self.D = fan_directions(self.u, self.e) @ UPRIGHT.T  #: unit vectors (channels, columns, 3) in S
        self.pixels = np.arange(c.channels * c.columns).reshape(c.channels, c.columns)

    def trace(self, pose: LidarPose, level: float = 0.0) -> tuple[Array, Array]:
        """Return the range and the intensity of each beam, both (channels, columns) and without noise. The range is inf
        if a beam hits nothing. The intensity is the returned light, relative to the light that a white surface returns
        at normal incidence.
        """
        c = self.lidar
        r, intensity = np.empty(self.pixels.shape), np.empty(self.pixels.shape)
        moves = c.sweep and pose.duration > 0.0
        size = BLOCK if moves else c.columns
        for first in range(0, c.columns, size):
            block = slice(first, min(first + size, c.columns))
            middle = 0.5 * (block.start + block.stop)
            ago = pose.duration * (1.0 - middle / c.columns) if moves else 0.0
            p, R = pose.p - ago * pose.v, turned(pose.R, -ago * pose.w)
            r[:, block], intensity[:, block] = self._cast(p, R, block, level)
        return r, intensity

    def _cast(self, p: Array, R: Array, block: slice, level: float) -> tuple[Array, Array]:
        c = self.lidar
        geometry, what = self.world.cast_fan(p, R @ UPRIGHT, self.u, self.e[block], c.range, level, True)
        r, cosine, material = geometry[..., 0], geometry[..., 1], what[..., 0]
        intensity = np.where(r < k.FAR, self.reflectivity[np.maximum(material, 0)] * cosine, 0.0)
        depth = float(p[2]) + level
        if depth > 0.0:
            intensity *= np.exp(-2.0 * c.extinction * np.minimum(r, c.range))
        else:
            down = self.D[:, block] @ R[2]
            with np.errstate(divide="ignore"):
                surface = np.where(down > 0.0, -depth / down, np.inf)
            drowned = surface < r
            r = np.where(drowned, surface, r)
            intensity = np.where(drowned, c.surface_reflectivity * down, intensity)
        lost = (intensity < c.minimum_reflectivity * (r / c.range) ** 2) | (intensity <= 0.0) | (r > c.range)
        return np.where(lost, np.inf, r), np.where(lost, 0.0, intensity)

    def scan(self, pose: LidarPose, number: int, level: float = 0.0, noise: float = 1.0) -> Array:
        """Return the pixels (channels, columns) of a scan, with noise and drop-outs."""
        c = self.lidar
        r, intensity = self.trace(pose, level)
        there = np.isfinite(r) & (r >= c.minimum)
        if noise > 0.0 and c.sigma > 0.0:
            draw = randomness.uniform(self.range_key, number, self.pixels) * len(NORMAL_QUANTILES)
            # the table contains quantiles of a complex normal number: variance 1/2
            r = r + noise * c.sigma * math.sqrt(2.0) * NORMAL_QUANTILES[draw.astype(np.int64)]
        if c.beam_drop_out > 0.0:
            there &= randomness.uniform(self.drop_key, number, self.pixels) >= c.beam_drop_out
        pixels = np.zeros(self.pixels.shape, frames.PIXEL_3D)
        scaled = np.rint(np.where(there, r, 0.0) * (TOP / c.range))
        pixels["range"] = np.where(there, np.clip(scaled, 1.0, TOP), 0.0)
        pixels["level"] = np.where(there, np.clip(np.rint(intensity * TOP), 1.0, TOP), 0.0)
        return pixels


class LidarEmulator(SceneEmulator):
    """Emulator that computes the scans of all lidars."""

    sensor = "lidar"

    def __init__(self, loaded: Any) -> None:
        super().__init__(loaded)
        self._scanners: dict[int, tuple[tuple[int, int], LidarScanner, Any]] = {}

    def warm_up(self) -> None:
        self.world.cast_fan(np.zeros(3), np.eye(3), np.zeros(1), np.zeros(1), 1.0, 0.0)

    def prepare(self, parameters: Declared) -> Declared:
        return parameters.resolved

    def measure(self, now: Batch, out: Record) -> None:
        keys, mounted = now.noise.streams("frames"), now.mounted
        R_WS = np.broadcast_to(mounted.R_WS, (len(now), 3, 3))
        R_WB = np.broadcast_to(mounted.R_WB, (len(now), 3, 3))
        period_s = now.period * self.loaded.config.time.step
        for i, place in enumerate(now.table_rows.tolist()):
            scanner, record = self._scanner(now, i, place, int(out["generation"][i]), int(keys[i]))
            self.world.set_bodies(self.bodies, int(now.rows[i]))
            c, p, R, v = scanner.lidar, mounted.p_WS_W[i], R_WS[i], mounted.v_WS_W[i]
            duration = min(period_s, now.time) if c.sweep else 0.0
            pose = LidarPose(p, R, v, R_WB[i] @ mounted.w_WB_B[i], duration)
            noise = float(np.broadcast_to(now.noise.scale, (len(now),))[i])
            pixels = scanner.scan(pose, now.tick // now.period, float(now.weather["level"]), noise)
            record["time_ns"] = now.time_ns
            record["ping_ns"] = now.time_ns - round(duration * 1e9)
            record["p_WS_W"], record["v_WS_W"], record["euler"] = p, v, euler_of(R)
            out["frame"][i] = self.write(place, record, pixels.tobytes())
            found = pixels["range"][pixels["range"] > 0]
            out["channels"][i], out["columns"][i], out["points"][i] = c.channels, c.columns, len(found)
            out["nearest"][i] = found.min() * (c.range / TOP) if len(found) else math.nan

    def _scanner(self, now: Batch, i: int, place: int, generation: int, key: int) -> tuple[LidarScanner, Any]:
        known = self._scanners.get(place)
        if known is None or known[0] != (generation, key):
            scanner = LidarScanner(now.prepared, self.world, key)
            known = (generation, key), scanner, describe(now.prepared, *self.names_of(now, i, place), generation)
            self._scanners[place] = known
        return known[1:]


def describe(c: Declared, body: bytes, name: bytes, generation: int) -> Any:
    """Return a frame record with all fields that stay the same from scan to scan."""
    first, last = c.azimuths
    return frames.frame_record(
        generation=generation,
        body=body,
        name=name,
        preset=b"lidar" if c.preset == "none" else c.preset.encode(),
        kind=frames.FRAME_KINDS.index("lidar"),
        beams=c.channels,
        bins=c.columns,
        sample_bytes=frames.PIXEL_3D.itemsize,
        range=c.range,
        sector=last - first,
        fan_height=c.upper - c.lower,
        tilt=-0.5 * (c.upper + c.lower),
        span=1.0,
        altitude=math.nan,
    )
