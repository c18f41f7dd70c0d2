"""Underwater cameras: ray tracing in the scene of the sonars, with daylight, a lamp, absorption and scattering in the
water, and a pixel array.

The model treats red, green and blue separately (Akkaynak & Treibitz 2018). If the light J leaves a surface at distance
z, the camera receives ``J exp(-bD z) + V (1 - exp(-bB z))``. J is the colour of the surface, multiplied by the light
that falls on it. Horizontal surfaces receive the full daylight at their depth, and upright walls half of it. The light
of a lamp decreases as 1/r^2 and is absorbed along its path. The lamp also lights the water in its beam; this light is
summed in steps along the ray (single scatter, isotropic in the half space behind; Jaffe-McGlamery). The model neglects
shadows, specular reflections, blur caused by forward scattering, and refraction at the housing and at the water
surface. The model is not validated against real images. Rays are cast on a grid of angles, and their light is
interpolated to the pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_emulators.base import Batch
from wavesim_emulators.sonar import ray_kernels as k
from wavesim_emulators.sonar.frame_emulator import SceneEmulator, euler_of
from wavesim_emulators.sonar.imaging import NORMAL_QUANTILES
from wavesim_emulators.sonar.scene import SonarScene, fan_directions
from wavesim_kernels import randomness
from wavesim_sdk import imaging_frames as frames
from wavesim_sdk.arrays import Array, Record
from wavesim_sdk.frame_labels import FIRST_BOARD, NOTHING
from wavesim_world.config.imaging import Board, Optics
from wavesim_world.config.ranging_sensors import CameraConfig as Declared
from wavesim_world.sonars import lens

STEPS = 8  #: number of segments into which a ray is divided to compute the scattered light of a lamp
TURBID = 0.02  #: scattering back to the camera, as a fraction of the turbidity
NEAR = 0.05  #: minimum distance in m between a lamp and the water that it lights
#: with automatic exposure, the fraction SHARE of the pixel values is below the value EXPOSURE_LEVEL
EXPOSURE_LEVEL, SHARE = 0.9, 0.98
BOARD_BACK_COLOUR = 0.3  #: reflectance of the back of a board


@dataclass(frozen=True)
class WaterOptics:
    """Optical properties of turbid water: coefficients (3,) for direct light, for veiling light, for the decrease of
    daylight with depth and for backscatter; colour (3,) of the veiling light; daylight at the surface.
    """

    direct: Array
    back: Array
    diffuse: Array
    scatter: Array
    veil: Array
    daylight: float

    @classmethod
    def from_optics(cls, o: Optics) -> WaterOptics:
        direct, back, diffuse = (
            np.array(a, np.float32) + o.turbidity for a in (o.attenuation, o.backscatter, o.diffuse)
        )
        scatter = np.array(o.scattering, np.float32) + TURBID * o.turbidity
        return cls(direct, back, diffuse, scatter, np.array(o.veil, np.float32), o.daylight)


class BoardGeometry:
    """Board in a scene: its pattern, and its geometry in W: the centre, the axes to the right and down as seen from the
    front, and the normal.
    """

    def __init__(self, b: Board) -> None:
        c, s = math.cos(b.heading), math.sin(b.heading)
        up = math.cos(b.tilt)
        self.centre, self.half = np.array(b.position), 0.5 * np.array(b.size)
        self.normal = np.array([up * c, up * s, -math.sin(b.tilt)])
        right = np.array([s, -c, 0.0])
        self.axes = np.stack([right, np.cross(-self.normal, right)])
        self.cells = np.array([[float(cell) for cell in row] for row in b.cell_rows])

    def intersect(self, p: Array, R: Array, D: Array) -> tuple[Array, Array, Array]:
        """Return the range (inf = no hit), the colour and the normal in S for rays ``D`` (..., 3) in S of a camera at
        ``p`` with axes ``R``.
        """
        n, c = R.T @ self.normal, R.T @ (self.centre - p)
        towards = D @ n
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (n @ c) / towards
            x = (((t[..., None] * D - c) @ (R.T @ self.axes.T)) / self.half + 1.0) * 0.5
            there = (t > 0.0) & (np.abs(x - 0.5) <= 0.5).all(axis=-1)
        rows, columns = self.cells.shape
        x = np.where(there[..., None], x, 0.0)
        i = np.minimum((x[..., 1] * rows).astype(int), rows - 1)
        j = np.minimum((x[..., 0] * columns).astype(int), columns - 1)
        return np.where(there, t, np.inf), np.where(towards < 0.0, self.cells[i, j], BOARD_BACK_COLOUR), n


class CameraView:
    """Camera that renders an image from a pose. It uses no clock, process or shared memory."""

    def __init__(self, c: Declared, world: SonarScene, optics: Optics, boards: tuple[Board, ...], key: int) -> None:
        self.camera, self.world, self.key = c, world, np.array([key], np.uint64)
        self.water, self.boards = WaterOptics.from_optics(optics), [BoardGeometry(b) for b in boards]
        self.colours = world.palette.colours().astype(np.float32)
        y, z = lens.pixel_slopes(c.width, c.height, c.view, c.distortion)
        across, down = np.arcsin(y / np.sqrt(1.0 + y * y + z * z)), np.arctan(z)
        a, e = (np.linspace(x.min(), x.max(), n) for x, n in ((across, c.width), (down, c.height)))
        self.u, self.e = np.sin(a), e
        i, j = (across - a[0]) / (a[1] - a[0]), (down - e[0]) / (e[1] - e[0])
        i0, j0 = np.minimum(i.astype(int), c.width - 2), np.minimum(j.astype(int), c.height - 2)
        self._at = (i0 * c.height + j0).ravel()
        self._steps = (0, 1, c.height, c.height + 1)
        i, j = (i - i0).ravel(), (j - j0).ravel()
        self._parts = np.stack([(1 - i) * (1 - j), (1 - i) * j, i * (1 - j), i * j]).astype(np.float32)
        self._nearest = self._at + np.array(self._steps)[self._parts.argmax(axis=0)]
        self.D = fan_directions(self.u, self.e).astype(np.float32)
        cosine, sine, ahead = np.cos(e), np.sin(e), np.cos(a)[:, None]
        side = np.broadcast_to(self.u[:, None], ahead.shape[:1] + e.shape)
        self._along_u = np.stack([-side * cosine, np.broadcast_to(ahead, side.shape), -side * sine], axis=-1)
        self._along_e = np.broadcast_to(np.stack([-sine, np.zeros_like(e), cosine], axis=-1), (*side.shape, 3))

    def trace(self, p: Array, R: Array, level: float = 0.0) -> tuple[Array, Array, Array]:
        """Return the light (columns, rows, 3), the range (columns, rows) and the labels of each ray. The range is inf
        if a ray hits nothing. The labels (columns, rows, 2) are material and object.
        """
        w, far = self.water, self.camera.range
        out, what = self.world.cast_fan(p, R, self.u, self.e, far, level, True)
        r, label = np.where(out[..., 0] < k.FAR, out[..., 0], np.inf), what.copy()
        colour = self.colours[np.maximum(what[..., 0], 0)]
        normal = -out[..., 1:2] * self.D + out[..., 2:3] * self._along_u + out[..., 3:4] * self._along_e
        for number, board in enumerate(self.boards):
            if np.linalg.norm(board.centre - p) > far + float(np.hypot(*board.half)):
                continue
            t, white, n = board.intersect(p, R, self.D)
            nearer = (t < r) & (t < far)
            r[nearer], label[nearer] = t[nearer], (NOTHING, FIRST_BOARD + number)
            colour[nearer], normal[nearer] = white[nearer, None], n
        nothing = ~np.isfinite(r)
        z = np.where(nothing, far, r).astype(np.float32)[..., None]
        depth = np.maximum(float(p[2]) + level + z * (self.D @ R[2].astype(np.float32))[..., None], 0.0)
        flat = np.where(label[..., 1] == k.SURFACE, 1.0, 0.5 - 0.5 * (normal @ R[2]))[..., None].astype(np.float32)
        lit = w.daylight * np.exp(-w.diffuse * depth) * flat
        glow: Any = 0.0
        if self.camera.lamp > 0.0:
            lamp = np.array(self.camera.lamp_position, np.float32)
            lit = lit + self._lamp(z * self.D - lamp, normal.astype(np.float32))
            glow = self._glow(z, lamp)
        lit[nothing] = 0.0
        veil = w.veil * w.daylight * np.exp(-w.diffuse * max(float(p[2]) + level, 0.0))
        far_veil = np.where(nothing[..., None], 1.0, 1.0 - np.exp(-w.back * z))
        return colour * lit * np.exp(-w.direct * z) + veil * far_veil + glow, r, label

    def _lamp(self, away: Array, normal: Array) -> Array:
        """Return the light from the lamp that falls on the surfaces. ``away`` contains the vectors from the lamp to the surfaces."""
        d = np.maximum(np.linalg.norm(away, axis=-1, keepdims=True), NEAR)
        falls = np.maximum(-(normal * away).sum(axis=-1, keepdims=True) / d, 0.0)
        return np.asarray(self.camera.lamp * falls / d**2 * np.exp(-self.water.direct * d))

    def _glow(self, z: Array, lamp: Array) -> Array:
        """Return the lamp light that the water scatters back to the camera."""
        total = np.zeros((*z.shape[:2], 3), np.float32)
        for n in range(STEPS):  # short steps near the camera, where the lamp is
            s, step = z * ((n + 0.5) / STEPS) ** 2, z * ((2 * n + 1) / STEPS**2)
            d = np.maximum(np.linalg.norm(s * self.D - lamp, axis=-1, keepdims=True), NEAR)
            total += step / d**2 * np.exp(-self.water.direct * (d + s))
        return np.asarray(total * self.water.scatter * (self.camera.lamp / (2.0 * math.pi)))

    def _pixels(self, rays: Array) -> Array:
        """Interpolate ray values (columns, rows, n) to the pixels (rows x columns, n)."""
        flat = rays.reshape(-1, rays.shape[-1])
        total = flat[self._at] * self._parts[0][:, None]
        for s, part in zip(self._steps[1:], self._parts[1:], strict=True):
            total += flat[self._at + s] * part[:, None]
        return np.asarray(total)

    def depths(self, r: Array, label: Array) -> Array:
        """Return, for each pixel (rows, columns), the true distance along the optical axis of the camera; inf = no hit.
        The distance is interpolated where all rays around the pixel hit the same object. Elsewhere, it is the distance
        along the nearest ray.
        """
        near = 1.0 / (r * self.D[..., 0])
        flat = label[..., 1].ravel()
        same = np.logical_and.reduce([flat[self._at + s] == flat[self._at] for s in self._steps[1:]])
        found = np.where(same, self._pixels(near[..., None])[:, 0], near.ravel()[self._nearest])
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / found, np.float32).reshape(self.camera.height, self.camera.width)

    def labels(self, label: Array) -> Array:
        """Return material and object (rows, columns, 2) of the ray that is nearest to each pixel."""
        found = label.reshape(-1, 2)[self._nearest].astype("<i2")
        return np.asarray(found.reshape(self.camera.height, self.camera.width, 2))

    def picture(
        self, p: Array, R: Array, number: int, level: float = 0.0, noise: float = 1.0
    ) -> tuple[Array, list[Array], float, int]:
        """Return the pixel values (rows, columns, 3), the configured true values (depths, then labels), the exposure,
        and the number of saturated values.
        """
        c = self.camera
        light, r, label = self.trace(p, R, level)
        light_level = self._pixels(light)
        exposure = c.exposure
        if exposure <= 0.0:
            bright = float(np.quantile(light_level, SHARE))
            exposure = EXPOSURE_LEVEL / bright if bright > 0.0 else 1.0
        light_level *= np.float32(exposure)
        if noise > 0.0:
            spread = noise * np.sqrt(np.maximum(light_level, 0.0) * c.electrons + c.read_noise**2) / c.electrons
            bits = randomness.uniform(self.key, number, np.arange(light_level.size)) * len(NORMAL_QUANTILES)
            light_level += (
                spread * NORMAL_QUANTILES[bits.astype(int)].reshape(light_level.shape) * np.float32(math.sqrt(2.0))
            )
        cut = int((light_level >= 1.0).sum())
        numbers = np.rint(255.0 * np.clip(light_level, 0.0, 1.0) ** (1.0 / c.gamma)).astype(np.uint8)
        true = ([self.depths(r, label)] if c.depth else []) + ([self.labels(label)] if c.truth else [])
        return numbers.reshape(c.height, c.width, 3), true, exposure, cut


class CameraEmulator(SceneEmulator):
    """Emulator that renders the images of all cameras."""

    sensor = "camera"

    def __init__(self, loaded: Any) -> None:
        super().__init__(loaded)
        self._views: dict[int, tuple[int, CameraView, Any]] = {}

    def warm_up(self) -> None:
        self.world.cast_fan(np.zeros(3), np.eye(3), np.zeros(1), np.zeros(1), 1.0, 0.0)

    def measure(self, now: Batch, out: Record) -> None:
        keys = now.noise.streams("frames")
        mounted = now.mounted
        R_WS = np.broadcast_to(mounted.R_WS, (len(now), 3, 3))
        c: Declared = now.parameters
        for i, place in enumerate(now.table_rows.tolist()):
            out["valid"][i] = 0
            if now.depth[i] <= 0.0:  # in air
                continue
            view, record = self._view(now, i, place, int(out["generation"][i]), int(keys[i]))
            self.world.set_bodies(self.bodies, int(now.rows[i]))
            p, R = mounted.p_WS_W[i], R_WS[i]
            noise = float(np.broadcast_to(now.noise.scale, (len(now),))[i])
            numbers, true, exposure, cut = view.picture(
                p, R, now.tick // now.period, float(now.weather["level"]), noise
            )
            record["ping_ns"] = record["time_ns"] = now.time_ns
            record["saturated"], record["gain"] = cut, exposure
            record["p_WS_W"], record["v_WS_W"], record["euler"] = p, mounted.v_WS_W[i], euler_of(R)
            out["frame"][i] = self.write(place, record, numbers.tobytes(), *(values.tobytes() for values in true))
            out["valid"][i] = 1
            out["width"][i], out["height"][i], out["exposure"][i] = c.width, c.height, exposure
            out["saturated"][i] = cut / numbers.size

    def _view(self, now: Batch, i: int, place: int, generation: int, key: int) -> tuple[CameraView, Any]:
        known = self._views.get(place)
        if known is not None and known[0] == generation:
            known[1].key[:] = key
        else:
            world = self.loaded.config.world
            view = CameraView(now.parameters, self.world, world.optics, world.board, key)
            known = generation, view, describe(now.parameters, *self.names_of(now, i, place), generation)
            self._views[place] = known
        return known[1:]


def describe(c: Declared, body: bytes, name: bytes, generation: int) -> Any:
    """Return a frame record with all fields that stay the same from image to image."""
    f = lens.focal_length(c.width, c.view)
    return frames.frame_record(
        generation=generation,
        body=body,
        name=name,
        preset=b"camera",
        kind=frames.FRAME_KINDS.index("camera"),
        beams=c.height,
        bins=3 * c.width,
        sample_bytes=1,
        labels=int(c.depth) + 2 * int(c.truth),
        range=c.range,
        tvg=c.gamma,
        sector=c.view,
        fan_height=2.0 * math.atan(0.5 * c.height / f),
        altitude=math.nan,
    )
