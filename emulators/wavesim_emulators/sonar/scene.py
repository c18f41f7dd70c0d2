"""Scene for imaging sonars: arrays of the world for the kernels, and meshes for embree."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from wavesim_emulators.sonar import ray_kernels as k
from wavesim_emulators.sonar.texture import textures_of
from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.extras import check_installed
from wavesim_sdk.frame_labels import FIRST_BODY
from wavesim_world.config import imaging_checks
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.world import World
from wavesim_world.ocean import bed, mesh
from wavesim_world.ocean.bodies import BOX, CYLINDER, BodyObstacles
from wavesim_world.ocean.scene import obstacle_boxes
from wavesim_world.sonars import materials
from wavesim_world.sonars.scene_labels import HULL_MATERIAL, label_names, material_names, obstacle_labels

QUANTILES = 4096


class MaterialPalette:
    """Materials of a scene by number, with scattering tables for one sonar and patches for all sonars."""

    def __init__(self, world: World) -> None:
        own = imaging_checks.materials_of(world)
        self.names = list(material_names(world))
        self.materials = [materials.find_material(n, own) for n in self.names[:-1]]
        patchy = [(m.patch, m.cell if m.patch > 0.0 else 0.0) for m in self.materials] + [(0.0, 0.0)]
        self.cells = np.array([cell for _, cell in patchy])
        self.patches = np.array([gamma_quantiles(nu) for nu, _ in patchy])
        self.textures = textures_of(self.materials)

    def __getitem__(self, name: str) -> int:
        return self.names.index(name)

    def colours(self) -> Floats:
        """Return the reflected fractions of red, green and blue light (materials, 3); the last row is the sea surface,
        which emits light.
        """
        return np.array([*(m.colour for m in self.materials), (1.0, 1.0, 1.0)])

    def tables(self, frequency: float, sound_speed: float, wind: float) -> Floats:
        """Return the backscattering strengths s_b (materials, 91) of all materials; the last row is the sea surface at
        this wind speed.
        """
        beds = [m.backscatter_table(frequency, sound_speed) for m in self.materials]
        return np.array([*beds, materials.surface_backscatter(frequency, wind)])


@functools.lru_cache(maxsize=32)
def _gamma(nu: float) -> tuple[float, ...]:
    check_installed("scipy")
    from scipy.stats import gamma

    q = gamma.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES, nu, scale=1.0 / nu)
    return tuple(q / q.mean())


def gamma_quantiles(nu: float) -> Floats:
    """Return the quantiles (4096,) of a gamma distribution of mean 1 and shape nu, or ones if nu = 0."""
    return np.array(_gamma(nu)) if nu > 0.0 else np.ones(QUANTILES)


def object_row(kind: float, centre: Any, R: Floats, half: Any, material: int, label: int) -> Floats:
    """Return a row of the object table of the kernels."""
    row = np.zeros(k.OBJECT_WIDTH)
    row[k.OBJECT_KIND], row[k.OBJECT_CENTRE : k.OBJECT_CENTRE + 3], row[k.OBJECT_ROTATION : k.OBJECT_ROTATION + 9] = (
        kind,
        centre,
        R.ravel(),
    )
    a, b, c = half
    row[k.OBJECT_HALF_SIZE : k.OBJECT_HALF_SIZE + 3] = half
    row[k.OBJECT_RADIUS] = {BOX: math.hypot(a, b, c), CYLINDER: math.hypot(a, b)}.get(kind, a)
    row[k.OBJECT_MATERIAL], row[k.OBJECT_LABEL] = material, label
    return row


def yaw_rotation(heading: float) -> Floats:
    """Return the rotation matrix of an object that is rotated about the vertical."""
    return frames.rotation(frames.quaternion(0.0, 0.0, heading))


class SonarScene:
    """Scene of a world: the fixed bed, the obstacles, their materials, and the bodies at one tick."""

    def __init__(self, loaded: LoadedConfig) -> None:
        world = loaded.config.world
        self.palette = MaterialPalette(world)
        self.ground = self.palette[world.ground.material]
        self._triangulated_bed = bed.triangulated_bed(loaded)
        self.bed = self._bed(loaded)
        self.targets = world.target
        self.labels = label_names(loaded)
        self.fixed = self._obstacles(world)
        self.objects = self.fixed
        self._triangles(loaded)

    def _bed(self, loaded: LoadedConfig) -> k.Bed:
        world = loaded.config.world
        b = world.bed
        plane = (b.depth, b.slope_north, b.slope_east, bed.max_slope(loaded), float(self._triangulated_bed is not None))
        regions = [
            (
                *r.position,
                math.cos(r.heading),
                math.sin(r.heading),
                0.5 * r.size[0],
                0.5 * r.size[1],
                float(r.round),
                self.palette[r.material],
                r.edge,
            )
            for r in world.ground.region
        ]
        return k.Bed(
            plane=np.array(plane),
            bumps=np.array([(b.height, b.north, b.east, b.alpha, b.beta) for b in b.bump]).reshape(-1, 5),
            material=self.ground,
            regions=np.array(regions).reshape(-1, k.REGION_WIDTH),
            grid=np.zeros(3),
            raster=np.zeros((0, 0), np.int64),
        )

    def _obstacles(self, world: World) -> Floats:
        o, rows = world.obstacles, []
        labels = obstacle_labels(world)
        piers, tunnels = len(o.block), len(o.block) + len(o.pier)
        boxes = obstacle_boxes(o)
        made = [b.material for b in o.block] + [t.material for t in o.tunnel for _ in range(4)]
        of = labels[:piers] + [label for label in labels[tunnels : tunnels + len(o.tunnel)] for _ in range(4)]
        for (x, y, z, a, b, c, heading), label, what in zip(boxes, of, made, strict=True):
            rows.append(object_row(BOX, (x, y, z), yaw_rotation(heading), (a, b, c), self.palette[what], label))
        stand = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # its x axis upright
        for p, label in zip(o.pier, labels[piers:tunnels], strict=True):
            half = (p.height / 2, p.radius, p.radius)
            rows.append(object_row(CYLINDER, p.position, stand, half, self.palette[p.material], label))
        return np.array(rows).reshape(-1, k.OBJECT_WIDTH)

    def _triangles(self, loaded: LoadedConfig) -> None:
        """Build the triangles of the meshes and, if the bed has triangles, of the bed."""
        meshes = loaded.config.world.obstacles.mesh
        labels = obstacle_labels(loaded.config.world)
        of = [(self.palette[m.material], n) for m, n in zip(meshes, labels[len(labels) - len(meshes) :], strict=True)]
        found = mesh.mesh_triangles(loaded)
        bed_ = self._triangulated_bed
        beds = [] if bed_ is None else [bed_.points[bed_.simplices]]
        beds_of = [(self.ground, k.BED)] * len(beds)
        self.triangles = TriangleScene([*beds, *found], [*beds_of, *of])
        #: the triangles without the obstacles
        self.background = TriangleScene(beds, beds_of) if found else self.triangles

    def set_bodies(self, bodies: BodyObstacles | None, own: int = -1) -> None:
        """Set the bodies of this tick, except the body in row ``own``."""
        if bodies is None or not len(bodies.rows):
            self.objects = self.fixed
            return
        others = np.flatnonzero(bodies.rows != own)
        hull = self.palette[HULL_MATERIAL]
        turned = frames.rotation(bodies.state["q_WB"][others])
        rows = [
            object_row(bodies.kind[j], bodies.p[j], R, bodies.half[j], hull, FIRST_BODY + int(bodies.rows[j]))
            for j, R in zip(others, turned, strict=True)
        ]
        self.objects = np.concatenate([self.fixed, np.array(rows).reshape(-1, k.OBJECT_WIDTH)])

    def near(self, p: Floats, reach: float) -> Floats:
        """Return the objects that a ray from ``p`` can hit."""
        o = self.objects
        apart = np.linalg.norm(o[:, k.OBJECT_CENTRE : k.OBJECT_CENTRE + 3] - p, axis=1)
        return np.ascontiguousarray(o[apart < reach + o[:, k.OBJECT_RADIUS]])

    def depth(self, north: float, east: float) -> float:
        """Return the depth of the bed in m; NaN outside the bed."""
        if self._triangulated_bed is not None:
            return float(self._triangulated_bed(np.array(north), np.array(east)))
        b = self.bed.plane
        bumps = sum(h * math.exp(-((a * (north - n)) ** 2) - (c * (east - e)) ** 2) for h, n, e, a, c in self.bed.bumps)
        return float(b[0] + b[1] * north + b[2] * east + bumps)

    def cast_fan(
        self, p: Floats, R: Floats, u: Floats, e: Floats, reach: float, level: float = 0.0, surface: bool = True
    ) -> k.FanHits:
        """Return the hits of the rays of a fan at ``p`` with axes ``R`` in W."""
        return self._cast(k.Fan(p, R, u, e), reach, self.near(p, reach), self.triangles, self._surface(level, surface))

    def cast_fan_without_objects(self, fan: k.Fan, reach: float, level: float, surface: bool) -> k.FanHits:
        """Return the hits of the rays of a fan on the bed and the surface, as if there were no objects."""
        return self._cast(fan, reach, self.fixed[:0], self.background, self._surface(level, surface))

    def _surface(self, level: float, is_visible: bool) -> k.SurfaceLevel:
        return k.SurfaceLevel(level, len(self.palette.names) - 1 if is_visible else -1)

    def cast_rays(self, fan: k.Fan, reach: float, level: float, surface: bool) -> Ints:
        """Return the label (rays,) of the object that each ray hits. Ray n has the sine ``u[n]`` off broadside and the
        elevation ``e[n]``.
        """
        near = self.near(fan.origin, reach)
        return self._cast(fan, reach, near, self.triangles, self._surface(level, surface), 1).labels[:, 0, 1]

    def _cast(
        self,
        fan: k.Fan,
        reach: float,
        objects: Floats,
        triangles: TriangleScene,
        surface: k.SurfaceLevel,
        count: int = 0,
    ) -> k.FanHits:
        shape = len(fan.u), count or len(fan.e)
        hits = k.FanHits(np.empty((*shape, 4)), np.empty((*shape, 2), np.int64))
        k.cast_fan(fan, reach, self.bed, objects, triangles.cast(fan, reach, count), surface, hits)
        return hits


class TriangleScene:
    """Triangles in an embree scene: ``found`` contains the corners (n, 3, 3) of each mesh, and ``of`` contains the
    material and the label of each mesh.
    """

    def __init__(self, found: list[Floats], of: list[tuple[int, int]]) -> None:
        self.triangles = np.zeros((0, 5))
        self.scene: Any = None
        if not found:
            return
        check_installed("embreex")
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        corners = np.concatenate(found)
        self.middle = np.concatenate(found[-1:]).reshape(-1, 3).mean(axis=0)  # embree calculates in single precision
        self.wide = float(np.linalg.norm(corners.reshape(-1, 3) - self.middle, axis=1).max())
        self.scene = EmbreeScene()
        TriangleMesh(self.scene, np.ascontiguousarray(corners - self.middle, np.float32))
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-30)[:, None]
        made = np.repeat(np.array(of, float), [len(f) for f in found], axis=0)
        self.triangles = np.ascontiguousarray(np.concatenate([normal, made], axis=1))

    def cast(self, fan: k.Fan, reach: float, count: int = 0) -> k.TriangleHits:
        """Return the triangle that each ray hits. The result has no rays if no triangle can be within range."""
        if self.scene is None or np.linalg.norm(self.middle - fan.origin) > reach + self.wide:
            return k.TriangleHits(np.zeros((0, 0), np.float32), np.zeros((0, 0), np.int32), self.triangles)
        shape = len(fan.u), count or len(fan.e)
        rays = np.empty((*shape, 3), np.float32)
        k.ray_directions(fan.R, fan.u, fan.e, rays)
        start = np.empty((shape[0] * shape[1], 3), np.float32)
        start[:] = fan.origin - self.middle
        found = self.scene.run(start, rays.reshape(-1, 3), output=True)
        return k.TriangleHits(found["tfar"].reshape(shape), found["primID"].reshape(shape), self.triangles)


def fan_directions(u: Floats, e: Floats) -> Floats:
    """Return unit vectors (columns, rays, 3) in the axes of a fan."""
    ahead = np.sqrt(1.0 - u * u)[:, None]
    return np.stack([ahead * np.cos(e), np.broadcast_to(u[:, None], (len(u), len(e))), ahead * np.sin(e)], axis=-1)
