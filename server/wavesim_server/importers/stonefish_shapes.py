"""Meshes of Stonefish's bodies, and the ellipsoid by which Stonefish approximates them."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array, Floats
from wavesim_sdk.errors import ConfigError

REFINE = 3.0  #: triangles larger than this multiple of the mean area are divided
LEAST_AREA = 1e-4  #: lower bound of the mean area in m2
MOST_TRIANGLES = 200_000
ELLIPSOID_ERROR = 0.2  #: tolerance of the ellipsoid's volume
ELLIPSOID_ROUNDS = 10
SLICE = 0.1  #: width of the slices of a cylinder in m; at least 32 slices


class StonefishMesh(NamedTuple):
    """Vertices (n, 3) in m, in the order of the file, and triangles (k, 3) that point outwards."""

    vertices: Floats
    triangles: Array

    @property
    def corners(self) -> Floats:
        return np.asarray(self.vertices[self.triangles])


def box(size: Floats) -> StonefishMesh:
    """Return the mesh of a box with three divisions of each face."""
    x, y, z = 0.5 * size
    corner = np.array(
        [[-x, -y, -z], [-x, y, -z], [x, y, -z], [x, -y, -z], [x, y, z], [x, -y, z], [-x, -y, z], [-x, y, z]]
    )
    faces = ((0, 1, 2, 3), (3, 2, 4, 5), (6, 7, 1, 0), (5, 4, 7, 6), (4, 2, 1, 7), (3, 5, 6, 0))
    vertices = corner[[i for face in faces for i in face]]
    triangles = np.array([[4 * k, 4 * k + a, 4 * k + a + 1] for k in range(6) for a in (1, 2)])
    mesh = StonefishMesh(vertices, triangles)
    for _ in range(3):
        mesh = divided(mesh, np.ones(len(mesh.triangles), bool))
    return mesh if _volume(mesh) > 0.0 else StonefishMesh(mesh.vertices, mesh.triangles[:, ::-1])


def cylinder(radius: float, height: float) -> StonefishMesh:
    """Return the mesh of a cylinder along z, with a radius that gives the exact volume."""
    slices = max(math.ceil(2.0 * math.pi * radius / SLICE), 32)
    angle = np.linspace(0.0, 2.0 * math.pi, slices, endpoint=False)
    r = math.sqrt((2.0 * math.pi / slices) * radius**2 / math.sin(2.0 * math.pi / slices))
    ring = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)
    low, high = (np.column_stack([ring, np.full(slices, h)]) for h in (-height / 2.0, height / 2.0))
    vertices = np.concatenate([low, high, [[0, 0, -height / 2.0], [0, 0, height / 2.0]]])
    k, n = np.arange(slices), (np.arange(slices) + 1) % slices
    side = np.concatenate([np.stack([k, n, k + slices], 1), np.stack([n, n + slices, k + slices], 1)])
    caps = [np.stack([np.full(slices, 2 * slices), n, k], 1)]
    caps.append(np.stack([np.full(slices, 2 * slices + 1), k + slices, n + slices], 1))
    return StonefishMesh(vertices, np.concatenate([side, *caps]))


def sphere(radius: float) -> StonefishMesh:
    """Return an icosahedron that is divided three times, with the volume of the sphere."""
    golden = (1.0 + math.sqrt(5.0)) / 2.0
    raw = [(0.0, a, b) for a in (-1.0, 1.0) for b in (-golden, golden)]
    points = np.array([np.roll(p, s) for s in range(3) for p in raw])
    points /= np.linalg.norm(points[0])
    edge = np.linalg.norm(points[:, None] - points[None], axis=2)
    near = (edge > 0.1) & (edge < 1.06)
    found = [
        (i, j, k) for i in range(12) for j in range(i) for k in range(j) if near[i, j] and near[j, k] and near[i, k]
    ]
    triangles = np.array(
        [t if np.dot(points[t[0]], np.cross(points[t[1]], points[t[2]])) > 0 else t[::-1] for t in found]
    )
    mesh = StonefishMesh(points, triangles)
    for _ in range(3):
        mesh = divided(mesh, np.ones(len(mesh.triangles), bool))
        mesh = StonefishMesh(mesh.vertices / np.linalg.norm(mesh.vertices, axis=1)[:, None], mesh.triangles)
    scale = (4.0 / 3.0 * math.pi * radius**3 / _volume(mesh)) ** (1.0 / 3.0)
    return StonefishMesh(mesh.vertices * scale, mesh.triangles)


def read(path: Path, scale: float) -> StonefishMesh:
    """Return the mesh of an OBJ or STL file, with large triangles divided as in Stonefish."""
    try:
        mesh = _read_obj(path) if path.suffix.lower() == ".obj" else _read_stl(path)
    except (ValueError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise ConfigError(f"not a valid mesh file: {error}", str(path)) from None
    if not len(mesh.triangles) or len(mesh.triangles) > MOST_TRIANGLES:
        raise ConfigError(f"the mesh has {len(mesh.triangles)} triangles; expected 1 to {MOST_TRIANGLES}", str(path))
    mesh = StonefishMesh(mesh.vertices * scale, mesh.triangles)
    while True:
        area = _areas(mesh)
        large = area > REFINE * max(float(area.mean()), LEAST_AREA)
        if not large.any() or len(mesh.triangles) > MOST_TRIANGLES:
            return mesh
        mesh = divided(mesh, large)


def _read_obj(path: Path) -> StonefishMesh:
    vertices: list[list[float]] = []
    triangles: list[list[int]] = []
    for line in path.read_text(errors="replace").splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            vertices.append([float(w) for w in words[1:4]])
        elif words[:1] == ["f"]:
            ring = [int(w.split("/")[0]) for w in words[1:]]
            ring = [i - 1 if i > 0 else len(vertices) + i for i in ring]
            triangles += [[ring[0], ring[k], ring[k + 1]] for k in range(1, len(ring) - 1)]
    return StonefishMesh(np.array(vertices, float).reshape(-1, 3), np.array(triangles, int).reshape(-1, 3))


def _read_stl(path: Path) -> StonefishMesh:
    data = path.read_bytes()
    count = struct.unpack("<I", data[80:84])[0] if len(data) >= 84 else -1
    if len(data) == 84 + 50 * count:
        rows = np.frombuffer(data, np.dtype([("n", "<f4", 3), ("c", "<f4", (3, 3)), ("a", "<u2")]), count, 84)
        points = rows["c"].astype(float).reshape(-1, 3)
    else:
        words = [w.split() for w in data.decode("ascii").splitlines()]
        points = np.array([[float(x) for x in w[1:4]] for w in words if w[:1] == ["vertex"]], float)
    return StonefishMesh(points, np.arange(len(points)).reshape(-1, 3))


def divided(mesh: StonefishMesh, chosen: Array) -> StonefishMesh:
    """Return the mesh with the chosen triangles divided into four."""
    vertices, triangles = list(mesh.vertices), []
    middles: dict[tuple[int, int], int] = {}

    def middle(a: int, b: int) -> int:
        key = (min(a, b), max(a, b))
        if key not in middles:
            middles[key] = len(vertices)
            vertices.append(0.5 * (mesh.vertices[a] + mesh.vertices[b]))
        return middles[key]

    for (a, b, c), split in zip(mesh.triangles.tolist(), chosen.tolist(), strict=True):
        if split:
            p, q, r = middle(a, b), middle(b, c), middle(c, a)
            triangles += [[a, p, r], [b, q, p], [c, r, q], [p, q, r]]
        else:
            triangles.append([a, b, c])
    return StonefishMesh(np.array(vertices), np.array(triangles))


def _areas(mesh: StonefishMesh) -> Floats:
    t = mesh.corners
    return np.asarray(0.5 * np.linalg.norm(np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]), axis=1))


def _volume(mesh: StonefishMesh) -> float:
    t = mesh.corners
    return float(np.einsum("ij,ij->i", t[:, 0], np.cross(t[:, 1], t[:, 2])).sum() / 6.0)


def mass_properties(mesh: StonefishMesh, thickness: float) -> tuple[float, Floats, Floats]:
    """Return the volume in m3, the centre (3,), and the moments of inertia (3, 3) for a density of 1 kg/m3, about the
    centre. With a thickness in m, the mesh is a shell.
    """
    t = mesh.corners
    if thickness > 0.0:
        area = _areas(mesh)
        volume = float(area.sum()) * thickness
        centre = (t.mean(axis=1) * area[:, None]).sum(axis=0) / area.sum()
        cross = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
        out = cross / np.maximum(np.linalg.norm(cross, axis=1), 1e-300)[:, None] * thickness / 2.0
        return volume, centre, _moments(t - centre + out[:, None]) - _moments(t - centre - out[:, None])
    six = np.einsum("ij,ij->i", t[:, 0], np.cross(t[:, 1], t[:, 2]))
    if six.sum() <= 0.0:
        raise ConfigError("the mesh encloses no volume: its triangles must point outwards")
    centre = (t.sum(axis=1) / 4.0 * six[:, None]).sum(axis=0) / six.sum()
    return float(six.sum() / 6.0), centre, _moments(t - centre)


def _moments(t: Floats) -> Floats:
    """Return the moments of inertia of the solid inside triangles, about the origin, for a density of 1."""
    six = np.einsum("ij,ij->i", t[:, 0], np.cross(t[:, 1], t[:, 2]))
    s = t.sum(axis=1)
    second = (np.einsum("i,ika,ikb->ab", six, t, t) + np.einsum("i,ia,ib->ab", six, s, s)) / 120.0
    return np.asarray(np.trace(second) * np.eye(3) - second)


def ellipsoid(points: Floats) -> Floats:
    """Return the semi-axes (3,) of an ellipsoid along the axes that approximately encloses the points, with the least
    volume (Kumar and Yildirim, J. Optim. Theory Appl. 136, 2008). The tolerance and the number of rounds are
    Stonefish's.
    """
    extreme = [f(points[:, k]) for k in range(3) for f in (np.argmin, np.argmax)]
    weight = np.where((points[:, None] == points[extreme][None]).all(axis=2).any(axis=1), 1.0 / 6.0, 0.0)
    limit, rounds = (1.0 + ELLIPSOID_ERROR) ** (2.0 / 3.0) - 1.0, 0
    while True:
        mean = weight @ points
        spread = weight @ points**2 - mean**2
        distance = ((points - mean) ** 2 / (3.0 * spread)).sum(axis=1)
        worst = int(np.argmax(distance))
        excess = float(distance[worst]) - 1.0
        if excess <= limit or rounds >= ELLIPSOID_ROUNDS:
            break
        step = excess / (4.0 * (1.0 + excess))
        weight = (1.0 - step) * weight
        weight[worst] += step
        rounds += 1
    if rounds == 0:
        a = points[extreme]
        return np.asarray(np.abs([a[2 * k, k] - 0.5 * (a[2 * k, k] + a[2 * k + 1, k]) for k in range(3)]))
    return np.asarray(np.sqrt(3.0 * spread))
