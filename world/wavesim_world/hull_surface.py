"""Surface of a hull from the parts of a file: placement in body axes, repair, nested parts, convex hulls.

Triangles are arrays (n, 3, 3). In body axes, x is forward, y is to starboard and z is down, in m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_world import hull_geometry as geometry
from wavesim_world.hull_reader import HullPart, InvalidHull

SHORTEST_M, LONGEST_M = 0.01, 1000.0  #: hulls outside these lengths are refused
SMALL_HOLE = 0.05  #: extent of a hole, as a share of the hull's extent, up to which it counts as small


class HullPose(NamedTuple):
    """Rotation (3, 3), scale and offset (3,) in m that transform positions in the file to body axes."""

    rotation: Array
    scale: float
    offset: Array

    def place(self, points: Array) -> Array:
        return np.asarray(self.scale * points @ self.rotation.T + self.offset)


class SurfaceHole(NamedTuple):
    """Hole of a surface: its rim (k, 3) in the order in which a lid must run through it, and its extent in m."""

    rim: Array
    extent: float


def corners_of(parts: Sequence[HullPart]) -> Array:
    return np.concatenate([p.vertices for p in parts])


def hull_pose(parts: Sequence[HullPart], unit: str, up: str, forward: str, origin: str) -> HullPose:
    """Return the pose of a hull. Raises InvalidHull for an unknown choice, or if the hull would have an implausible
    size.
    """
    if unit not in geometry.UNITS:
        raise InvalidHull(f"unknown unit '{unit}': use {', '.join(geometry.UNITS)}")
    if up not in geometry.AXES or forward not in geometry.AXES:
        raise InvalidHull(f"unknown axis: use {', '.join(geometry.AXES)}")
    if origin not in geometry.ORIGINS:
        raise InvalidHull(f"unknown origin '{origin}': use {', '.join(geometry.ORIGINS)}")
    try:
        turn = geometry.rotation(up, forward)
    except ValueError as error:
        raise InvalidHull(str(error)) from None
    pose = HullPose(turn, geometry.UNITS[unit], np.zeros(3))
    points = pose.place(corners_of(parts))
    low, high = points.min(axis=0), points.max(axis=0)
    if origin != "file":
        pose = pose._replace(offset=-0.5 * (low + high))
    size = float((high - low).max())
    if not SHORTEST_M <= size <= LONGEST_M:
        raise InvalidHull(
            f"the hull would be {size:g} m long: choose another unit ({SHORTEST_M:g} m to {LONGEST_M:g} m are possible)"
        )
    return pose


def join_parts(names: Sequence[str], triangles: Sequence[Array]) -> tuple[Array, list[str]]:
    """Return the surface of the parts that form a hull, and notes for the user. The faces of closed parts point
    outwards. A part that lies inside a closed one is not counted.
    """
    notes: list[str] = []
    whole = dict(enumerate(triangles))
    for k, t in whole.items():
        edges = geometry.open_edges(t)
        if len(edges):
            notes.append(
                f"part '{names[k]}' is open: {len(edges)} edges do not join two faces, one of them near "
                f"{place_text(edges[0])} m; the volume and the centre of its convex hull are used; the convex hull is "
                "larger than the real one"
            )
        elif geometry.mass_properties(t).volume < 0.0:
            notes.append(f"part '{names[k]}' was inside out; its faces were reversed")
            whole[k] = geometry.outward(t)
    notes += drop_nested(names, whole)
    return np.concatenate(list(whole.values())), notes


def drop_nested(names: Sequence[str], whole: dict[int, Array]) -> list[str]:
    """Remove parts that lie inside a closed one from ``whole``. Return a note about each."""
    notes = []
    for k, t in list(whole.items()):
        for other, u in whole.items():
            if other != k and not len(geometry.open_edges(u)) and is_inside(t, u):
                notes.append(
                    f"part '{names[k]}' is inside part '{names[other]}' and displaces no additional water; it is not "
                    "counted"
                )
                del whole[k]
                break
    return notes


def is_inside(t: Array, other: Array) -> bool:
    """Return whether a part is inside a closed surface. The test uses the part's box, and the winding number at one of
    its points.
    """
    p, q = t.reshape(-1, 3), other.reshape(-1, 3)
    if (p.min(axis=0) <= q.min(axis=0)).any() or (p.max(axis=0) >= q.max(axis=0)).any():
        return False
    a, b, c = np.moveaxis(other - t[0].mean(axis=0), 1, 0)
    la, lb, lc = (np.sqrt((v * v).sum(axis=1)) for v in (a, b, c))
    top = np.einsum("ij,ij->i", a, np.cross(b, c))
    bottom = la * lb * lc + (a * b).sum(axis=1) * lc + (b * c).sum(axis=1) * la + (c * a).sum(axis=1) * lb
    return abs(float(2.0 * np.arctan2(top, bottom).sum())) > 2.0 * math.pi


def convex_surface(surface: Array) -> Array:
    """Return the convex hull of a surface, with its faces outwards. Raises InvalidHull if the surface is flat."""
    from scipy.spatial import ConvexHull, QhullError

    points = surface.reshape(-1, 3)
    try:
        found = ConvexHull(points)
    except QhullError:
        raise InvalidHull("the hull is flat: it encloses no volume") from None
    t = points[found.simplices]
    normal = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
    wrong = (normal * found.equations[:, :3]).sum(axis=1) < 0.0
    t[wrong] = t[wrong][:, ::-1]
    return np.asarray(t)


def clean(t: Array) -> tuple[Array, list[str]]:
    """Join coincident vertices, and drop degenerate and duplicate faces. Return the triangles and notes."""
    at, points = geometry.joined_vertices(t)
    full = (at[:, 0] != at[:, 1]) & (at[:, 1] != at[:, 2]) & (at[:, 2] != at[:, 0])
    at = at[full]
    notes = [f"{int((~full).sum())} faces without area were dropped"] if not full.all() else []
    if not len(at):
        return np.zeros((0, 3, 3)), notes
    # a face that occurs twice in the same sense is a duplicate; two in opposite senses enclose nothing
    turn = np.argmin(at, axis=1)
    rolled = np.stack([at[np.arange(len(at)), (turn + k) % 3] for k in range(3)], axis=1)
    _, first = np.unique(rolled, axis=0, return_index=True)
    if len(first) < len(at):
        notes.append(f"{len(at) - len(first)} duplicate faces were dropped")
        at = at[np.sort(first)]
    return np.asarray(points[at]), notes


def consistent(t: Array) -> tuple[Array, int]:
    """Turn faces so that neighbours traverse their common edge in opposite directions. Return the triangles and the
    number of faces that were turned. Edges with other than two faces do not count.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    at, _ = geometry.joined_vertices(t)
    faces = np.tile(np.arange(len(at)), 3)
    edges = np.concatenate([at[:, [0, 1]], at[:, [1, 2]], at[:, [2, 0]]])
    low, high = edges.min(axis=1).astype(np.int64), edges.max(axis=1)
    _, edge, count = np.unique(low * (int(at.max()) + 1) + high, return_inverse=True, return_counts=True)
    pairs = np.argsort(edge, kind="stable")
    pairs = pairs[count[edge[pairs]] == 2].reshape(-1, 2)
    a, b = faces[pairs[:, 0]], faces[pairs[:, 1]]
    same = (edges[pairs[:, 0], 0] == edges[pairs[:, 1], 0]).astype(np.int8) + 1  # 2: one of both must be turned
    if not (same == 2).any():
        return t, 0
    # if two faces share several edges, the first one decides
    _, first = np.unique(np.minimum(a, b).astype(np.int64) * len(at) + np.maximum(a, b), return_index=True)
    a, b, same = a[first], b[first], same[first]
    n = len(at)
    links = coo_matrix((np.r_[same, same], (np.r_[a, b], np.r_[b, a])), shape=(n, n)).tocsr()
    turned = np.zeros(n, bool)
    count_of, label = connected_components(links, directed=False)
    starts = np.unique(label, return_index=True)[1]
    for k in range(count_of):
        order, before = breadth_first_order(links, int(starts[k]), directed=False)
        sense = np.asarray(links[before[order[1:]], order[1:]]).ravel()
        for face, parent, s in zip(order[1:].tolist(), before[order[1:]].tolist(), sense.tolist(), strict=True):
            turned[face] = turned[parent] ^ (s == 2)
        mine = label == k
        if 2 * int(turned[mine].sum()) > int(mine.sum()):  # turn the smaller part
            turned[mine] = ~turned[mine]
    found = t.copy()
    found[turned] = found[turned][:, ::-1]
    return found, int(turned.sum())


def holes_of(t: Array) -> list[SurfaceHole]:
    """Return the holes of a surface, largest first."""
    at, points = geometry.joined_vertices(t)
    edges = np.concatenate([at[:, [0, 1]], at[:, [1, 2]], at[:, [2, 0]]]).astype(np.int64)
    edges = edges[edges[:, 0] != edges[:, 1]]
    n = len(points)
    key, count = np.unique(edges[:, 0] * n + edges[:, 1], return_counts=True)
    back = (key % n) * n + key // n
    where = np.searchsorted(key, back)
    matched = np.where((where < len(key)) & (key[np.minimum(where, len(key) - 1)] == back), count[where % len(key)], 0)
    after: dict[int, list[int]] = {}
    for k, extra in zip(key.tolist(), (count - matched).tolist(), strict=True):
        if extra > 0:  # a lid traverses the edge in the opposite direction
            after.setdefault(k % n, []).extend([k // n] * extra)
    found = []
    while after:
        start = next(iter(after))
        rim, here = [start], start
        while True:
            ways = after.get(here)
            if not ways:
                break
            here = ways.pop()
            if not ways:
                del after[rim[-1]]
            if here == start:
                break
            rim.append(here)
        loop = points[rim]
        found.append(SurfaceHole(loop, float(np.ptp(loop, axis=0).max())))
    return sorted(found, key=lambda hole: -hole.extent)


def lid(hole: SurfaceHole) -> Array:
    """Return triangles that cover a hole, from its rim to the mean of its rim."""
    after = np.roll(hole.rim, -1, axis=0)
    middle = np.broadcast_to(hole.rim.mean(axis=0), after.shape)
    return np.stack([hole.rim, after, middle], axis=1)


def place_text(at: Array) -> str:
    return " ".join(f"{round(float(v), 6) + 0.0:.3g}" for v in at)
