"""New closed surface around the water that a mesh displaces, for meshes that intersect themselves or have holes.

Columns parallel to each axis are intersected with all triangles. A point is inside if the winding number along its
column is positive, so a volume inside two parts counts once. Where the surface has holes, the columns disagree, and the
majority of the three directions decides. The surface is that of naive surface nets (Gibson 1998). It is scaled to the
volume that the columns measured.
"""

from __future__ import annotations

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_world import hull_geometry as geometry
from wavesim_world.hull_reader import InvalidHull

CELLS = 128  #: number of cells along the longest side of the hull
NO_VOLUME = "the surface encloses no volume: close it in the CAD program, or use --shape convex"
#: shift of the columns from the corners of the cells, so that they do not run along edges of the mesh
_OFFSET = 0.5 + 0.0137 * np.array([1.0, 2.0**0.5 - 1.0])


def remeshed(t: Array, cells: int = CELLS) -> tuple[Array, float]:
    """Return a closed surface (n, 3, 3) of the volume inside triangles, and the relative difference between the volumes
    that the columns of two directions measure. Raises InvalidHull if there is no volume.
    """
    points = t.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    edge = float((high - low).max()) / cells
    shape = np.ceil((high - low) / edge).astype(int) + 4
    first = low - 1.5 * edge
    votes = np.zeros(shape, np.int8)
    volumes = []
    for axis in range(3):
        inside, volume = _columns(t, axis, first, edge, shape)
        votes += inside
        volumes.append(volume)
    solid = votes >= 2
    if not solid.any():
        raise InvalidHull(NO_VOLUME)
    surface = first + edge * (_surface_net(_blurred(solid)) + 0.5)
    volume = float(np.median(volumes))
    if volume <= 0.0:
        raise InvalidHull(NO_VOLUME)
    found = geometry.mass_properties(surface)
    scaled = found.centre + (volume / found.volume) ** (1.0 / 3.0) * (surface - found.centre)
    return np.asarray(scaled), float(np.diff(sorted(volumes)).min()) / volume  # one direction may look into a hole


def _columns(t: Array, axis: int, first: Array, edge: float, shape: Array) -> tuple[Array, float]:
    """Return which cells are inside (bool, ``shape``) along the columns parallel to an axis, and the volume in m3."""
    order = [(axis + 1) % 3, (axis + 2) % 3, axis]
    u = (t[:, :, order] - first[order]) / edge
    n, m, deep = (int(shape[k]) for k in order)
    a, b, c = np.moveaxis(u, 1, 0)
    twice = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    low = np.ceil(u[:, :, :2].min(axis=1) - _OFFSET).astype(int)
    high = np.floor(u[:, :, :2].max(axis=1) - _OFFSET).astype(int)
    where, height, sense = [], [], []
    for k in np.flatnonzero((twice != 0.0) & (high >= low).all(axis=1)).tolist():
        columns = np.arange(low[k, 0], high[k, 0] + 1), np.arange(low[k, 1], high[k, 1] + 1)
        i, j = (part.ravel() for part in np.meshgrid(*columns, indexing="ij"))
        x, y = i + _OFFSET[0], j + _OFFSET[1]
        wb = ((x - a[k, 0]) * (c[k, 1] - a[k, 1]) - (y - a[k, 1]) * (c[k, 0] - a[k, 0])) / twice[k]
        wc = ((b[k, 0] - a[k, 0]) * (y - a[k, 1]) - (b[k, 1] - a[k, 1]) * (x - a[k, 0])) / twice[k]
        hit = (wb >= 0.0) & (wc >= 0.0) & (wb + wc <= 1.0)
        if hit.any():
            where.append(i[hit] * m + j[hit])
            height.append(a[k, 2] + wb[hit] * (b[k, 2] - a[k, 2]) + wc[hit] * (c[k, 2] - a[k, 2]))
            sense.append(np.full(int(hit.sum()), -1 if twice[k] > 0.0 else 1))
    inside = np.zeros((n * m, deep), bool)
    length = 0.0
    if where:
        at, z, s = np.concatenate(where), np.concatenate(height), np.concatenate(sense)
        rank = np.lexsort((z, at))
        at, z, s = at[rank], z[rank], s[rank]
        # the surface is entered where its faces point against the column
        winding = np.cumsum(s)
        start = np.r_[0, np.flatnonzero(np.diff(at)) + 1]
        before = np.repeat(winding[start] - s[start], np.diff(np.r_[start, len(at)]))
        wet = (winding - before > 0) & np.r_[at[1:] == at[:-1], False]
        here = np.flatnonzero(wet)
        length = float((z[here + 1] - z[here]).sum())
        enter, leave = np.ceil(z[here] - 0.5).astype(int), np.ceil(z[here + 1] - 0.5).astype(int)
        change = np.zeros((n * m, deep + 1), int)
        np.add.at(change, (at[here], np.clip(enter, 0, deep)), 1)
        np.add.at(change, (at[here], np.clip(leave, 0, deep)), -1)
        inside = np.cumsum(change, axis=1)[:, :deep] > 0
    whole = inside.reshape(n, m, deep)
    return np.moveaxis(whole, (0, 1, 2), order), length * edge**3


def _blurred(solid: Array) -> Array:
    """Return the share of solid cells around each cell, which is above one half in solid cells only: thin walls stay."""
    share = solid.astype(float)
    for axis in range(3):
        share = 0.25 * np.roll(share, 1, axis) + 0.5 * share + 0.25 * np.roll(share, -1, axis)
    return np.asarray(np.where(solid, np.maximum(share, 0.55), np.minimum(share, 0.45)))


def _surface_net(field: Array) -> Array:
    """Return the triangles (k, 3, 3), in cells, of the surface on which a field of samples is one half."""
    solid = field > 0.5
    shape = np.array(solid.shape) - 1
    total, count = np.zeros((*shape, 3)), np.zeros(shape)
    steps = np.eye(3, dtype=int)
    corner = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).astype(float)
    for axis in range(3):
        one, two = steps[(axis + 1) % 3], steps[(axis + 2) % 3]
        for shift in (0 * one, one, two, one + two):
            ends = [
                field[tuple(slice(s, s + n) for s, n in zip(shift + e, shape, strict=True))] for e in (0, steps[axis])
            ]
            cut = (ends[0] > 0.5) != (ends[1] > 0.5)
            along = np.where(cut, (0.5 - ends[0]) / np.where(cut, ends[1] - ends[0], 1.0), 0.0)
            total += np.where(cut[..., None], corner + shift + along[..., None] * steps[axis], 0.0)
            count += cut
    number = np.full(tuple(shape), -1)
    used = count > 0
    number[used] = np.arange(int(used.sum()))
    vertices = total[used] / count[used][:, None]
    faces = []
    for axis in range(3):
        one, two = steps[(axis + 1) % 3], steps[(axis + 2) % 3]
        place = np.argwhere(np.diff(solid.astype(np.int8), axis=axis) != 0)
        quad = np.stack([number[tuple((place - back).T)] for back in (one + two, two, 0 * one, one)], axis=1)
        out = solid[tuple(place.T)]  # the solid is on the lower side: the face points along the axis
        quad = np.where(out[:, None], quad, quad[:, ::-1])
        faces += [quad[:, [0, 1, 2]], quad[:, [0, 2, 3]]]
    return np.asarray(vertices[np.concatenate(faces)])
