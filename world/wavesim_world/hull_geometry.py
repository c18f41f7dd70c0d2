"""Geometry of a hull file: axes and unit, mass properties, checks of the surface, and the mesh that a model can use.

Triangles are arrays (n, 3, 3). In body axes, x is forward, y is to starboard and z is down, in m.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "inch": 0.0254}
AXES = {
    "x": (1.0, 0.0, 0.0),
    "-x": (-1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "-y": (0.0, -1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
    "-z": (0.0, 0.0, -1.0),
}
ORIGINS = ("middle", "file", "buoyancy")
#: formats whose definition states the unit (m) and the axes (y up); Assimp converts FBX files to this unit and these axes
Y_UP_METRES = ("glb", "gltf", "fbx")
#: formats whose unit is known: STEP files state their unit, and the reader converts them to m
KNOWN_UNIT = (*Y_UP_METRES, "step", "stp")
LONGEST_M = 100.0  #: a file without a unit whose hull would be longer than this is taken to be in mm


class MassProperties(NamedTuple):
    """Properties of the volume inside a closed surface: volume (m3), its centre (m), and the inertia matrix (3, 3)
    about that centre per unit density, in m5.
    """

    volume: float
    centre: Array
    inertia: Array


def guess_unit(kind: str, size: Array) -> str:
    """Return the likely unit of a file, from its type and the extent of its mesh."""
    return "m" if kind in KNOWN_UNIT or float(np.max(size)) <= LONGEST_M else "mm"


def guess_axes(kind: str, size: Array) -> tuple[str, str]:
    """Return the axes of a file that likely point up and forward: a hull is longer than it is wide."""
    up = "y" if kind in (*Y_UP_METRES, "obj") else "z"
    flat = [k for k in "xyz" if k != up]
    longest = max(flat, key=lambda k: float(size["xyz".index(k)]))
    return up, longest


def rotation(up: str, forward: str) -> Array:
    """Return the matrix (3, 3) that rotates vectors from the axes of a file to body axes. Raises ValueError if ``up``
    and ``forward`` are parallel.
    """
    f, d = np.array(AXES[forward]), -np.array(AXES[up])
    if abs(float(f @ d)) > 0.5:
        raise ValueError("the axis that points up and the axis that points forward must differ")
    return np.stack([f, np.cross(d, f), d])


def area(t: Array) -> float:
    """Return the area of triangles."""
    return float(0.5 * np.sqrt((np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]) ** 2).sum(axis=1)).sum())


def mass_properties(t: Array) -> MassProperties:
    """Return the volume, its centre and its inertia, from the tetrahedra between a point and all triangles. The volume
    of a surface that is inside out is negative.
    """
    apex = t.reshape(-1, 3).mean(axis=0)
    a, b, c = np.moveaxis(t - apex, 1, 0)
    six = np.einsum("ij,ij->i", a, np.cross(b, c))
    volume = float(six.sum()) / 6.0
    if not volume:
        return MassProperties(0.0, apex, np.zeros((3, 3)))
    s = a + b + c
    centre = (six[:, None] * s).sum(axis=0) / (24.0 * volume)
    second = sum(np.einsum("i,ij,ik->jk", six, v, v) for v in (a, b, c, s)) / 120.0
    second = second - volume * np.outer(centre, centre)
    return MassProperties(volume, apex + centre, np.trace(second) * np.eye(3) - second)


def joined_vertices(t: Array) -> tuple[Array, Array]:
    """Join coincident vertices. Return the vertex indices (n, 3) of the triangles, and the vertices."""
    points = t.reshape(-1, 3)
    size = max(float(np.ptp(points, axis=0).max()), 1e-300)
    _, first, at = np.unique(cells(points, 1e-6 * size), return_index=True, return_inverse=True)
    return at.reshape(-1, 3), points[first]


def cells(points: Array, size: float) -> Array:
    """Return the index of the cubic cell that contains each point, for at most 2^20 cells along each axis."""
    x, y, z = np.round((points - points.min(axis=0)) / size).astype(np.int64).T
    return np.asarray((x << 42) | (y << 21) | z)


def open_edges(t: Array) -> Array:
    """Return the midpoints (k, 3) of the edges that the adjacent faces do not traverse equally often in both
    directions.
    """
    at, points = joined_vertices(t)
    edges = np.concatenate([at[:, [0, 1]], at[:, [1, 2]], at[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    low, high = edges.min(axis=1), edges.max(axis=1)
    key, edge = np.unique(low.astype(np.int64) * len(points) + high, return_inverse=True)
    balance = np.bincount(edge.ravel(), weights=np.sign(edges[:, 1] - edges[:, 0]))
    bad = key[balance != 0]
    return np.asarray(0.5 * (points[bad // len(points)] + points[bad % len(points)]))


def crossing(t: Array) -> Array | None:
    """Return a point (3,) at which the surface intersects itself, or None. Edges are tested against the triangles that
    share no vertex with them.
    """
    at, _ = joined_vertices(t)
    low, high = t.min(axis=1), t.max(axis=1)
    order = np.argsort(low[:, 0])
    t, at, low, high = t[order], at[order], low[order], high[order]
    tiny = 1e-9 * max(float(np.ptp(t.reshape(-1, 3), axis=0).max()), 1e-300)
    for k in range(len(t)):
        last = int(np.searchsorted(low[:, 0], high[k, 0]))
        other = np.arange(k + 1, last)
        near = other[
            (low[other, 1:] < high[k, 1:] - tiny).all(axis=1) & (high[other, 1:] > low[k, 1:] + tiny).all(axis=1)
        ]
        near = near[~np.isin(at[near], at[k]).any(axis=1)]
        if not len(near):
            continue
        mine = np.broadcast_to(t[k], (len(near), 3, 3))
        for edges, faces in ((mine, t[near]), (t[near], mine)):
            found = _pierced(edges, faces)
            if len(found):
                return np.asarray(found[0])
    return None


def _pierced(of: Array, faces: Array) -> Array:
    """Return the points at which the edges of one triangle pierce another one, for pairs of triangles (n, 3, 3)."""
    a, b, c = np.moveaxis(faces, 1, 0)
    normal = np.cross(b - a, c - a)
    points = []
    for i in range(3):
        p, q = of[:, i], of[:, (i + 1) % 3]
        dp, dq = np.einsum("ij,ij->i", p - a, normal), np.einsum("ij,ij->i", q - a, normal)
        cut = dp * dq < 0.0
        s = np.where(cut, dp / np.where(cut, dp - dq, 1.0), 0.0)
        x = p + s[:, None] * (q - p)
        size = np.einsum("ij,ij->i", normal, normal)
        inside = cut
        for u, v in ((a, b), (b, c), (c, a)):
            inside = inside & (np.einsum("ij,ij->i", np.cross(v - u, x - u), normal) > 1e-9 * size)
        points.append(x[inside])
    return np.concatenate(points)


def outward(t: Array) -> Array:
    """Return the triangles of a closed surface, with their vertex order reversed if the surface is inside out."""
    return t[:, ::-1] if mass_properties(t).volume < 0.0 else t


def simplify(t: Array, most: int) -> Array:
    """Return a surface with at most ``most`` triangles, the same volume and the same centre of volume.

    The vertices in each cell of a grid are joined. Joining keeps a closed surface closed, because each edge still
    occurs equally often in both directions. The result is then scaled and shifted to the volume and its centre.
    """
    if len(t) <= most:
        return t
    before = mass_properties(t)
    size = float(np.ptp(t.reshape(-1, 3), axis=0).max())
    low, high, best = 0.0, 0.5 * size, None
    at, points = joined_vertices(t)
    if len(t) > 16 * most:  # a first step with small cells bounds the time of the search
        at, points = joined_vertices(_join(at, points, float(np.sqrt(area(t) / (4.0 * most)))))
    for _ in range(16):
        cell = 0.5 * (low + high)
        found = _join(at, points, cell)
        if 4 <= len(found) <= most:
            best, high = found, cell
            if len(found) >= 0.97 * most:
                break
        elif len(found) < 4:
            high = cell
        else:
            low = cell
    after = mass_properties(best) if best is not None else before
    if best is None or after.volume <= 0.0:
        raise ValueError(f"the mesh has {len(t)} triangles and cannot be simplified to {most}")
    factor = (before.volume / after.volume) ** (1.0 / 3.0)
    return np.asarray(before.centre + factor * (best - after.centre))


def _join(at: Array, points: Array, cell: float) -> Array:
    """Join the vertices in each cell. Return the triangles (n, 3, 3) that neither collapse nor cancel each other."""
    _, label = np.unique(cells(points, max(cell, 1e-6 * float(np.ptp(points, axis=0).max()))), return_inverse=True)
    count = np.bincount(label).astype(float)
    middle = np.stack([np.bincount(label, points[:, k]) for k in range(3)], axis=1) / count[:, None]
    faces = label[at]
    faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
    # the same three vertices in both senses enclose nothing: such pairs cancel
    turn = np.argmin(faces, axis=1)
    rolled = np.stack([faces[np.arange(len(faces)), (turn + k) % 3] for k in range(3)], axis=1)
    sense = np.where(rolled[:, 1] < rolled[:, 2], 1, -1)
    key = np.stack([rolled[:, 0], rolled[:, 1:].min(axis=1), rolled[:, 1:].max(axis=1)], axis=1)
    same, which = np.unique(key, axis=0, return_inverse=True)
    net = np.bincount(which.reshape(-1), weights=sense, minlength=len(same)).astype(int)
    out = np.where((net > 0)[:, None], same, same[:, [0, 2, 1]])
    return np.asarray(middle[np.repeat(out, np.abs(net), axis=0)])


class PartFrame(NamedTuple):
    """Position and axes of a part in body axes: the middle of its box, its extent, its axis of symmetry (for a
    propeller), and the direction in which it is thinnest (for a fin).
    """

    centre: Array
    size: Array
    axis: Array
    normal: Array


def part_frame(t: Array) -> PartFrame:
    """Return the position and the axes of a part, from the second moments of its surface."""
    points = t.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    cross = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
    weight = np.sqrt((cross**2).sum(axis=1))
    middle = t.mean(axis=1)
    mean = (weight[:, None] * middle).sum(axis=0) / max(float(weight.sum()), 1e-300)
    corners = t - mean
    second = sum(
        np.einsum("i,ij,ik->jk", weight, v, v) for v in (*np.moveaxis(corners, 1, 0), middle - mean, middle - mean)
    )
    values, vectors = np.linalg.eigh(second)  # ascending
    thin, long = vectors[:, 0], vectors[:, 2]
    axis = thin if values[2] - values[1] < values[1] - values[0] else long
    return PartFrame(0.5 * (low + high), high - low, _forward(axis), _forward(thin, (1, 2, 0)))


def _forward(v: Array, order: tuple[int, int, int] = (0, 1, 2)) -> Array:
    """Return ``v`` or ``-v``, such that the first component in ``order`` that is not small is positive. A direction
    within 5 deg of a body axis becomes that axis.
    """
    k = int(np.argmax(np.abs(v)))
    if abs(v[k]) > np.cos(np.radians(5.0)):
        v = np.eye(3)[k]
    first = next(i for i in order if abs(v[i]) > 0.3)
    return np.asarray(v * np.sign(v[first]))


def to_stl(t: Array) -> bytes:
    """Return triangles as the content of a binary STL file."""
    rows = np.zeros(len(t), np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("unused", "<u2")]))
    cross = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
    rows["normal"] = cross / np.maximum(np.sqrt((cross**2).sum(axis=1)), 1e-300)[:, None]
    rows["corners"] = t
    return b"WaVeSim hull: m, x forward, y starboard, z down".ljust(80) + np.uint32(len(t)).tobytes() + rows.tobytes()


def to_glb(parts: list[Any]) -> bytes:
    """Return parts (name, vertices, triangles, colour) in body axes as a glTF file, with +z forward and +y up."""
    import trimesh

    scene: Any = trimesh.Scene()
    visual: Any = trimesh.visual
    for p in parts:
        f, s, d = p.vertices.T
        mesh = trimesh.Trimesh(np.stack([-s, -d, f], axis=1), p.triangles, process=False)
        colour = [*(round(255 * c) for c in p.colour), 255]
        material = visual.material.PBRMaterial(
            name=p.name, baseColorFactor=colour, metallicFactor=0.1, roughnessFactor=0.7, doubleSided=True
        )
        mesh.visual = visual.TextureVisuals(material=material)
        scene.add_geometry(mesh, node_name=p.name, geom_name=p.name)
    buffer = io.BytesIO()
    buffer.write(scene.export(file_type="glb"))
    return buffer.getvalue()
