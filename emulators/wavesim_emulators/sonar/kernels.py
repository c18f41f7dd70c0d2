"""Compiled kernels for rays in the world, their energy over range, speckle and gain. They are pure functions on arrays;
the caller supplies the output arrays.

Lengths are in m, angles in rad, levels linear unless a name says dB. W is north-east-down. A *fan* has y along the
array, x broadside, and z across both. The direction of a ray is ``sqrt(1 - u^2) (cos e x + sin e z) + u y``. Here u is
the sine of the angle off broadside, and e is the elevation around the array. Functions that are called for each ray
take separate arrays instead of records, because a call with a record counts a reference to every array in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_emulators.sonar.texture import (
    CELLS_PER_M,
    PATCH_TILE,
    RIPPLE_EAST,
    RIPPLE_NORTH,
    RIPPLE_SLOPE,
    Textures,
    nearest_value,
    ripple_amplitude,
    ripple_factor,
    ripple_weight,
    tile_value,
    wide_patch_factor,
)
from wavesim_emulators.sonar.types import Ints32, Levels, Singles
from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the random numbers with Numba
from wavesim_kernels.compiler import device_function, kernel
from wavesim_kernels.randomness import random_bits, splitmix64
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.frame_labels import FIRST_OBSTACLE

BOX, CYLINDER, SPHERE = 0.0, 1.0, 2.0  #: types of objects
# columns of an object: type, centre, rotation to W (row by row), half sizes, radius of the bounding sphere, material,
# label
(
    OBJECT_KIND,
    OBJECT_CENTRE,
    OBJECT_ROTATION,
    OBJECT_HALF_SIZE,
    OBJECT_RADIUS,
    OBJECT_MATERIAL,
    OBJECT_LABEL,
    OBJECT_WIDTH,
) = 0, 1, 4, 13, 16, 17, 18, 19
# columns of a region of the bed: centre, cos and sin of its heading, half sizes, round or not, material, rms distance of
# its irregular border from the exact one
REGION_WIDTH = 9
FAR = 1e30
CLOSE = 1e-4
MARCH = 600
NO_HIT = -1
BED, SURFACE = 0, 1  #: labels of the bed and the surface, as hit by rays; objects are numbered from 2
FIXED = FIRST_OBSTACLE  #: first label of fixed objects; bodies, whose labels are smaller, move and have no texture


class Fan(NamedTuple):
    """Rays of a fan: its origin in W, its axes (columns, in W), and the sines u and elevations e of its rays."""

    origin: Floats
    R: Floats
    u: Floats
    e: Floats


class FanWeights(NamedTuple):
    """Angular widths of the rays of a fan, off broadside and in elevation (rad), and their beam patterns (linear).

    ``edges`` (columns, rays, 2) contains the elevations of the edges of each ray relative to its own elevation, towards
    the previous ray and towards the next one. If its length is 0, each ray is in the middle of its width ``de``.
    """

    du: Floats
    de: Floats
    gain_u: Floats
    gain_e: Floats
    edges: Floats


class Bed(NamedTuple):
    """The bed D0 + D1 x + D2 y + bumps, and its materials.

    ``plane`` contains D0, D1, D2, the steepest slope, and a flag that is set if triangles replace this bed. The
    material at a point is that of the last region that contains the point. Outside all regions, the raster gives the
    material; ``grid`` contains the north and east coordinates of its origin and the size of its cells. Outside the
    raster, the material is ``material``.
    """

    plane: Floats
    bumps: Floats
    material: int
    regions: Floats
    grid: Floats
    raster: Ints


class TriangleHits(NamedTuple):
    """For each ray (columns, rays), the range and the number of the triangle that it hits (-1 = none), as computed by
    another library.

    Both arrays may have length 0. ``triangles`` (n, 5) contains the normal in W, the material and the label of each
    triangle.
    """

    range: Singles
    number: Ints32
    triangles: Floats


class SurfaceLevel(NamedTuple):
    """Height of the sea surface above the mean (m), and the material of the surface (-1 = the surface is ignored)."""

    level: float
    material: int


class FanHits(NamedTuple):
    """Hits of the rays of a fan.

    ``geometry`` (columns, rays, 4) contains the range (FAR = no hit), the cosine of the angle of incidence, and the two
    components of the surface normal in the directions in which u and e increase. ``labels`` (columns, rays, 2) contains
    the material and the object (NO_HIT = none).
    """

    geometry: Floats
    labels: Ints


class Backscatter(NamedTuple):
    """Backscattering strengths s_b of each material for each degree of incidence (materials, 91), and the random
    patches and the textures that vary these strengths. The patches are given by the quantiles of their factor, the size
    of their cells (m, 0 = no patches), and the key of their random numbers.
    """

    tables: Floats
    patches: Floats
    cells: Floats
    key: np.uint64
    textures: Textures


class EchoPath(NamedTuple):
    """Properties of the water and the receiver that determine the level of an echo.

    ``decay`` (1/m) is the two-way absorption. ``v_S`` is the velocity of the sonar in the axes of the fan: a moving
    receiver receives the echo at another position. ``aperture`` contains the length of the array (0 = not used) and the
    energy width of its beam in rad. The length of the array is also the minimum width of its footprint.
    """

    decay: float
    sound_speed: float
    v_S: Floats
    aperture: Floats


class EchoBins(NamedTuple):
    """Range bins of each column: the start of the first bin, the bin size (m), and the energy (columns, bins)
    in single precision, which halves the time of everything that follows.

    ``intervals`` (columns, rays, 3) records the bins over which each ray is spread, as two real numbers, and its energy
    per bin; rays without an echo are not recorded. An array of length 0 is not filled.
    """

    first: float
    size: float
    energy: Singles
    intervals: Floats


# ------------------------------------------------------------------ the world


@device_function
def bed_analytic(o: Floats, dx: float, dy: float, dz: float, reach: float, bed: Floats, bumps: Floats) -> float:
    """Return the range at which a ray hits the bed, which consists of a plane and bumps. The search advances in steps
    limited by the steepest slope; the result is exact for a plane.
    """
    closing = bed[1] * dx + bed[2] * dy - dz
    clear = bed[0] + bed[1] * o[0] + bed[2] * o[1] - o[2]
    if len(bumps) == 0:
        if clear <= 0.0:
            return 0.0
        return -clear / closing if closing < 0.0 else FAR
    fall = bed[3] * np.sqrt(dx * dx + dy * dy) + dz
    if fall <= 0.0:
        return FAR
    t = 0.0
    for _ in range(MARCH):
        x, y = o[0] + t * dx, o[1] + t * dy
        c = clear + closing * t
        for k in range(len(bumps)):
            p, q = bumps[k, 3] * (x - bumps[k, 1]), bumps[k, 4] * (y - bumps[k, 2])
            c += bumps[k, 0] * np.exp(-(p * p + q * q))
        if c <= CLOSE:
            return t
        t += c / fall
        if t > reach:
            return FAR
    return FAR


@device_function
def intersect_object(p: Floats, v: Floats, shape: Floats, n: Floats) -> float:
    """Return the range at which a ray hits an object (FAR = no hit, 0 = the ray starts inside). The ray and the object
    are given in the object's axes. ``n`` is set to the normal at the hit.
    """
    kind, a, b, c = (
        shape[OBJECT_KIND],
        shape[OBJECT_HALF_SIZE],
        shape[OBJECT_HALF_SIZE + 1],
        shape[OBJECT_HALF_SIZE + 2],
    )
    n[0] = n[1] = n[2] = 0.0
    if kind == SPHERE:
        along = p[0] * v[0] + p[1] * v[1] + p[2] * v[2]
        out = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] - a * a
        if out <= 0.0:
            return 0.0
        root = along * along - out
        if root < 0.0 or along >= 0.0:
            return FAR
        t = -along - np.sqrt(root)
        for k in range(3):
            n[k] = (p[k] + t * v[k]) / a
        return t
    low, high, face = -FAR, FAR, -1
    first = 0
    if kind == CYLINDER:  # around x: the lateral surface here, the ends as the slab of a box
        first = 2
        q = v[1] * v[1] + v[2] * v[2]
        h = p[1] * v[1] + p[2] * v[2]
        out = p[1] * p[1] + p[2] * p[2] - b * b
        if q < 1e-14:
            if out > 0.0:
                return FAR
        else:
            root = h * h - q * out
            if root < 0.0:
                return FAR
            root = np.sqrt(root)
            low, high, face = (-h - root) / q, (-h + root) / q, 3
    for j in range(first, 3):
        k = (j + 1) % 3  # only k = 0 for a cylinder
        half = a if k == 0 else (b if k == 1 else c)
        if abs(v[k]) < 1e-14:
            if abs(p[k]) > half:
                return FAR
            continue
        near, far = (-half - p[k]) / v[k], (half - p[k]) / v[k]
        if near > far:
            near, far = far, near
        if near > low:
            low, face = near, k
        high = min(high, far)
    if low > high or high < 0.0:
        return FAR
    if low <= 0.0:
        return 0.0
    if face == 3:
        n[1], n[2] = (p[1] + low * v[1]) / b, (p[2] + low * v[2]) / b
    else:
        n[face] = -1.0 if v[face] > 0.0 else 1.0
    return low


@device_function
def border_noise(u: float, v: float) -> float:
    """Return an irregular displacement at a point, with mean 0 and rms 1, and wavelengths from 1 to 16."""
    return (
        0.95 * np.sin(0.31 * u + 0.23 * v + 1.3)
        + 0.8 * np.sin(0.97 * v - 0.61 * u + 4.1)
        + 0.6 * np.sin(2.1 * u + 1.4 * v + 2.2)
        + 0.35 * np.sin(4.1 * u - 4.7 * v + 0.7)
    )


@device_function
def material_at(x: float, y: float, base: int, regions: Floats, grid: Floats, raster: Ints) -> int:
    """Return the material number of the bed at a point. This is the material of the last region that contains the
    point. Outside all regions, the grid gives the material; outside the grid, the material is ``base``.
    """
    for k in range(len(regions) - 1, -1, -1):
        g = regions[k]
        dx, dy = x - g[0], y - g[1]
        a, b = (g[2] * dx + g[3] * dy) / g[4], (g[2] * dy - g[3] * dx) / g[5]
        outside = (np.sqrt(a * a + b * b) if g[6] > 0.0 else max(abs(a), abs(b))) - 1.0
        if g[8] > 0.0:
            half = min(g[4], g[5])
            if abs(outside) * half < 3.0 * g[8]:
                outside += border_noise(x / g[8], y / g[8]) * g[8] / half
        if outside <= 0.0:
            return int(g[7])
    if grid[2] > 0.0:  # origin north, east, cell
        i, j = int(np.floor((x - grid[0]) / grid[2])), int(np.floor((y - grid[1]) / grid[2]))
        if 0 <= i < raster.shape[0] and 0 <= j < raster.shape[1] and raster[i, j] >= 0:
            return int(raster[i, j])
    return base


@kernel
def ray_directions(R: Floats, u: Floats, e: Floats, out: Singles) -> None:
    """Return the directions of the rays of a fan in W, as unit vectors (columns, rays, 3). If the output has only one
    ray per column although there are several elevations, column j has the elevation ``e[j]``.
    """
    cosines, sines = np.cos(e), np.sin(e)
    single = out.shape[1] < len(e)
    for j in range(len(u)):
        side = u[j]
        ahead = np.sqrt(1.0 - side * side)
        for k in range(out.shape[1]):
            at = j if single else k
            c, s = ahead * cosines[at], ahead * sines[at]
            for i in range(3):
                out[j, k, i] = R[i, 0] * c + R[i, 1] * side + R[i, 2] * s


@device_function
def angular_extent(p: Floats, shape: Floats, R: Floats, around: Floats) -> None:
    """Compute the bounds of u (``around[0]``, ``around[1]``) within which a sonar at ``p`` in the object's axes sees an
    object. ``R`` rotates the axes of the fan into W. The bounds follow from the bounding box of the object. The corners
    of the box limit y; its nearest point and its farthest corner limit the range. The bounds may be wider than the
    object, but never narrower.
    """
    near = far = 0.0
    across = np.empty(3)  # the fan's y axis in the object's axes
    for i in range(3):
        half = shape[OBJECT_HALF_SIZE] if shape[OBJECT_KIND] == SPHERE else shape[OBJECT_HALF_SIZE + i]
        beyond = abs(p[i]) - half
        near += beyond * beyond if beyond > 0.0 else 0.0
        far += (abs(p[i]) + half) ** 2
        across[i] = (
            shape[OBJECT_ROTATION + i] * R[0, 1]
            + shape[OBJECT_ROTATION + 3 + i] * R[1, 1]
            + shape[OBJECT_ROTATION + 6 + i] * R[2, 1]
        )
    middle = -(p[0] * across[0] + p[1] * across[1] + p[2] * across[2])
    reach = 0.0
    for i in range(3):
        reach += abs(across[i]) * (
            shape[OBJECT_HALF_SIZE] if shape[OBJECT_KIND] == SPHERE else shape[OBJECT_HALF_SIZE + i]
        )
    low, high, near, far = middle - reach, middle + reach, np.sqrt(near), np.sqrt(far)
    if near < 1e-6:
        around[0], around[1] = -2.0, 2.0
        return
    around[0] = (low / near if low < 0.0 else low / far) - 1e-9
    around[1] = (high / near if high > 0.0 else high / far) + 1e-9


@kernel
def cast_fan(
    fan: Fan, reach: float, bed: Bed, objects: Floats, triangles: TriangleHits, surface: SurfaceLevel, hits: FanHits
) -> None:
    """Trace the rays of a fan up to a range; ``hits`` receives what they hit. If ``hits`` has only one ray per column
    although there are several elevations, column j has the elevation ``e[j]``.
    """
    o, R, u, e = fan.origin, fan.R, fan.u, fan.e
    plane, bumps, far, which = bed.plane, bed.bumps, triangles.range, triangles.number
    regions, grid, raster = bed.regions, bed.grid, bed.raster
    out, what = hits.geometry, hits.labels
    v, n, d = np.empty(3), np.empty(3), np.empty(3)
    own = np.empty((len(objects), 3))  # the sonar's position in each object's axes
    around, some = np.empty((len(objects), 2)), np.empty(len(objects), np.int64)
    # distance from the middle of each object; squared distance outside its bounding sphere
    rel = np.empty((len(objects), 4))
    for b in range(len(objects)):
        for i in range(3):
            rel[b, i] = o[i] - objects[b, OBJECT_CENTRE + i]
        rel[b, 3] = rel[b, 0] ** 2 + rel[b, 1] ** 2 + rel[b, 2] ** 2 - objects[b, OBJECT_RADIUS] ** 2
        g = objects[b]
        for i in range(3):
            own[b, i] = (
                g[OBJECT_ROTATION + i] * rel[b, 0]
                + g[OBJECT_ROTATION + 3 + i] * rel[b, 1]
                + g[OBJECT_ROTATION + 6 + i] * rel[b, 2]
            )
        angular_extent(own[b], g, R, around[b])
    cosines, sines = np.cos(e), np.sin(e)
    rays = out.shape[1]
    single = rays < len(e)
    for j in range(len(u)):
        side = u[j]
        ahead = np.sqrt(1.0 - side * side)
        there = 0
        for b in range(len(objects)):
            if around[b, 0] <= side <= around[b, 1]:
                some[there], there = b, there + 1
        for k in range(rays):
            c, s = cosines[j if single else k], sines[j if single else k]
            for i in range(3):
                d[i] = R[i, 0] * ahead * c + R[i, 1] * side + R[i, 2] * ahead * s
            best, material, label = reach, -1, NO_HIT
            nx = ny = nz = 0.0
            if plane[4] == 0.0:
                t = bed_analytic(o, d[0], d[1], d[2], reach, plane, bumps)
                if t <= best:
                    best, label = t, BED
                    nx, ny = plane[1], plane[2]
                    x, y = o[0] + t * d[0], o[1] + t * d[1]
                    for b in range(len(bumps)):
                        q, w = bumps[b, 3] * (x - bumps[b, 1]), bumps[b, 4] * (y - bumps[b, 2])
                        h = bumps[b, 0] * np.exp(-(q * q + w * w))
                        nx -= 2.0 * h * q * bumps[b, 3]
                        ny -= 2.0 * h * w * bumps[b, 4]
                    h = 1.0 / np.sqrt(1.0 + nx * nx + ny * ny)
                    nx, ny, nz = nx * h, ny * h, -h
            if len(far) > 0 and which[j, k] >= 0 and far[j, k] < best:
                f = which[j, k]
                facet = triangles.triangles[f]
                best, nx, ny, nz = float(far[j, k]), facet[0], facet[1], facet[2]
                material, label = int(facet[3]), int(facet[4])
            if label == BED:
                material = material_at(o[0] + best * d[0], o[1] + best * d[1], bed.material, regions, grid, raster)
            if surface.material >= 0 and d[2] < 0.0:
                t = -(o[2] + surface.level) / d[2]
                if 0.0 <= t < best:
                    best, material, label = t, surface.material, SURFACE
                    nx, ny, nz = 0.0, 0.0, 1.0
            for m in range(there):
                b = some[m]
                g = objects[b]
                along = rel[b, 0] * d[0] + rel[b, 1] * d[1] + rel[b, 2] * d[2]
                if along * along < rel[b, 3] or (along > 0.0 and rel[b, 3] > 0.0) or -along - g[OBJECT_RADIUS] > best:
                    continue
                for i in range(3):
                    v[i] = (
                        g[OBJECT_ROTATION + i] * d[0]
                        + g[OBJECT_ROTATION + 3 + i] * d[1]
                        + g[OBJECT_ROTATION + 6 + i] * d[2]
                    )
                t = intersect_object(own[b], v, g, n)
                if t < best:
                    best, material, label = t, int(g[OBJECT_MATERIAL]), int(g[OBJECT_LABEL])
                    nx = g[OBJECT_ROTATION] * n[0] + g[OBJECT_ROTATION + 1] * n[1] + g[OBJECT_ROTATION + 2] * n[2]
                    ny = g[OBJECT_ROTATION + 3] * n[0] + g[OBJECT_ROTATION + 4] * n[1] + g[OBJECT_ROTATION + 5] * n[2]
                    nz = g[OBJECT_ROTATION + 6] * n[0] + g[OBJECT_ROTATION + 7] * n[1] + g[OBJECT_ROTATION + 8] * n[2]
            what[j, k, 0], what[j, k, 1] = material, label
            if label == NO_HIT:
                out[j, k, 0], out[j, k, 1], out[j, k, 2], out[j, k, 3] = FAR, 0.0, 0.0, 0.0
                continue
            cosine = nx * d[0] + ny * d[1] + nz * d[2]
            if cosine > 0.0:  # a mesh with the opposite winding
                nx, ny, nz, cosine = -nx, -ny, -nz, -cosine
            a = nx * R[0, 0] + ny * R[1, 0] + nz * R[2, 0]
            b_ = nx * R[0, 1] + ny * R[1, 1] + nz * R[2, 1]
            z = nx * R[0, 2] + ny * R[1, 2] + nz * R[2, 2]
            out[j, k, 0], out[j, k, 1] = best, -cosine
            out[j, k, 2] = b_ * ahead - side * (a * c + z * s)
            out[j, k, 3] = z * c - a * s


# ------------------------------------------------------------------ energy


@device_function
def ground_texture(x: float, y: float, cell: float, key: np.uint64, quantiles: Floats) -> float:
    """Return a gamma-distributed random number of mean 1 for a cell of the sea bed. All sonars use the same numbers."""
    i, j = np.uint64(np.int64(np.floor(x / cell))), np.uint64(np.int64(np.floor(y / cell)))
    h = splitmix64(splitmix64(key + i * np.uint64(0x9E3779B97F4A7C15)) + j * np.uint64(0xD1342543DE82EF95))
    return float(quantiles[h >> np.uint64(52)])  # 4096 quantiles


@device_function
def strength_at(tables: Floats, material: int, row: int, part: float) -> float:
    """Return the backscattering strength of a material, interpolated between two degrees of incidence."""
    return tables[material, row] * (1.0 - part) + tables[material, row + 1] * part


@device_function
def is_border(what: Ints, j: int, k: int) -> bool:
    """Return whether a neighbouring ray hits the bed where it has another material."""
    for step in range(4):
        a = j + (1 if step == 0 else -1 if step == 1 else 0)
        b = k + (1 if step == 2 else -1 if step == 3 else 0)
        inside = 0 <= a < what.shape[0] and 0 <= b < what.shape[1]
        if inside and what[a, b, 1] == BED and what[a, b, 0] != what[j, k, 0]:
            return True
    return False


@kernel
def bin_energy(
    fan: Fan,
    weights: FanWeights,
    hits: FanHits,
    bed: Bed,
    backscatter: Backscatter,
    path: EchoPath,
    echoes: EchoBins,
) -> None:
    """Add the energy of each ray to the bins of its column: b s_b dOmega e^(-decay r) / (r^2 cos theta), where b is the
    beam pattern. The energy is spread over the ranges that the width of the ray covers, up to the hits of the
    neighbouring rays. Within this interval, it varies with the texture and, at the border of a region, with the
    material.
    """
    o, R, u, e = fan.origin, fan.R, fan.u, fan.e
    du, de, gain_u, gain_e, edges = weights.du, weights.de, weights.gain_u, weights.gain_e, weights.edges
    out, what, tables, v_S = hits.geometry, hits.labels, backscatter.tables, path.v_S
    energy, intervals = echoes.energy, echoes.intervals
    first, size, aperture = echoes.first, echoes.size, path.aperture
    textures, patches, ripples = (
        backscatter.textures.materials,
        backscatter.textures.patches,
        backscatter.textures.ripples,
    )
    ripple_weights, regions, grid, raster = backscatter.textures.weights, bed.regions, bed.grid, bed.raster
    cosines, sines, backscatter_cells = np.cos(e), np.sin(e), backscatter.cells
    bins = energy.shape[1]
    order = 1.0 if len(e) < 2 or e[1] > e[0] else -1.0
    steps = np.zeros(len(e))  # relative change of the beam pattern with the elevation
    for k in range(1, len(e) - 1):
        total = max(gain_e[k - 1] + gain_e[k + 1], 1e-30)
        steps[k] = 2.0 * (gain_e[k + 1] - gain_e[k - 1]) / (total * (e[k + 1] - e[k - 1]))
    for j in range(len(u)):
        side = u[j]
        ahead = np.sqrt(1.0 - side * side)
        for k in range(len(e)):
            r, cosine = out[j, k, 0], out[j, k, 1]
            if r >= FAR or r <= 0.0:
                continue
            material, label = what[j, k, 0], what[j, k, 1]
            grazing = max(cosine, 1e-4)
            angle = np.arccos(min(cosine, 1.0)) * (180.0 / np.pi)
            row = min(int(angle), 89)
            part = angle - row
            s_b = strength_at(tables, material, row, part)
            before, after = -0.5 * order * de[k], 0.5 * order * de[k]
            if len(edges) > 0:
                before, after = edges[j, k, 0], edges[j, k, 1]
            c, s = cosines[k], sines[k]
            power = gain_u[j] * gain_e[k] * ahead * du[j] * abs(after - before) * np.exp(-path.decay * r)
            power *= s_b / (r * r * grazing)
            if aperture[0] > 0.0:
                power *= max(1.0, aperture[0] / (r * aperture[1]))
            # the tangent plane gives the ranges at which the edges of the ray hit the surface
            slope, tilt_u = out[j, k, 3] * ahead, out[j, k, 2] * 0.5 * du[j]
            low = r * grazing / max(grazing - slope * before, 0.25 * grazing)
            high = r * grazing / max(grazing - slope * after, 0.25 * grazing)
            if low > high:
                low, high = high, low
            for other in (k - 1, k + 1):
                if 0 <= other < len(e):
                    t = out[j, other, 0]
                    if r <= t < high:
                        high = t
                    elif low < t < r:
                        low = t
            # at an object's edge the tangent plane misleads: limit the range to that of a neighbour on the same object
            reach, edge = 0.0, False
            for other in (k - 1, k + 1):
                if 0 <= other < len(e):
                    if what[j, other, 1] == label:
                        reach = max(reach, abs(out[j, other, 0] - r))
                    else:
                        edge = True
            if edge:
                low, high = max(low, r - reach), min(high, r + reach)
            wide = 2.0 * r * min(abs(tilt_u) / grazing, 1.0)
            if len(u) > 1:
                reach = 0.0
                for other in (j - 1, j + 1):
                    if 0 <= other < len(u) and what[other, k, 1] == label:
                        reach = max(reach, abs(out[other, k, 0] - r))
                wide = min(wide, reach)
            if wide > 0.5 * size:
                grown = 0.5 * (np.sqrt((high - low) ** 2 + wide * wide) - (high - low))
                low, high = low - grown, high + grown
            shift = -r * (v_S[0] * ahead * c + v_S[1] * side + v_S[2] * ahead * s) / path.sound_speed
            a, b = (low + shift - first) / size, (high + shift - first) / size
            share = power / max(b - a, 1e-9)
            if len(intervals) > 0:
                intervals[j, k, 0], intervals[j, k, 1], intervals[j, k, 2] = a, b, share
            if b <= 0.0 or a >= bins:
                continue
            begin, end = max(int(np.floor(a)), 0), min(int(np.floor(b)), bins - 1)
            steepness = 2.0 * (tables[material, row] - tables[material, row + 1]) * (180.0 / np.pi)
            steepness /= max(tables[material, row] + tables[material, row + 1], 1e-30)
            # the energy per range falls within a wide ray on a plane: spreading r^-3, absorption, strength, beam pattern
            ramp, middle = 0.0, 0.5 * (low + high)
            if high - low > 2.0 * size and label <= SURFACE and abs(slope) > 0.1:
                ramp = (steps[k] * grazing / slope - 3.0 - steepness * grazing / abs(slope)) / r - path.decay
                steepest = 1.8 / (high - low)
                ramp = min(max(ramp, -steepest), steepest)
            # what varies over the bins: horizontal position, and its change with the range
            cell = backscatter_cells[material]
            tile = int(textures[material, PATCH_TILE]) if label == BED or label >= FIXED else -1
            slopes = textures[material, RIPPLE_SLOPE] if label == BED else 0.0
            border = label == BED and is_border(what, j, k)
            varied = tile >= 0 or slopes > 0.0 or border or cell > 0.0
            x = y = gx = gy = rippled = per_m = north = east = 0.0
            factor, coarse = 1.0, False
            if varied:
                dx, dy = (
                    R[0, 0] * ahead * c + R[0, 1] * side + R[0, 2] * ahead * s,
                    R[1, 0] * ahead * c + R[1, 1] * side + R[1, 2] * ahead * s,
                )
                turn = slope / grazing  # the range grows by r times this with the elevation
                turn = max(turn, 0.05) if turn > 0.0 else min(turn, -0.05)
                x, y = o[0] + r * dx, o[1] + r * dy
                gx = dx + ahead * (R[0, 2] * c - R[0, 0] * s) / turn
                gy = dy + ahead * (R[1, 2] * c - R[1, 0] * s) / turn
                if label != BED:  # walls vary with the depth, too
                    dz = R[2, 0] * ahead * c + R[2, 1] * side + R[2, 2] * ahead * s
                    gz = dz + ahead * (R[2, 2] * c - R[2, 0] * s) / turn
                    z = o[2] + r * dz
                    x, y, gx, gy = x + 0.6 * z, y + 0.8 * z, gx + 0.6 * gz, gy + 0.8 * gz
                per_m = textures[material, CELLS_PER_M]
                north, east = textures[material, RIPPLE_NORTH], textures[material, RIPPLE_EAST]
                along = min(size, high - low) * np.sqrt(gx * gx + gy * gy)
                coarse = along * per_m > 1.0
                if slopes > 0.0:
                    level = max(np.sqrt(dx * dx + dy * dy), 1e-9)
                    crossing, beside = (north * dx + east * dy) / level, (north * dy - east * dx) / level
                    rippled = ripple_amplitude(crossing, beside, slopes, steepness, along, r * du[j])
                    if rippled != 0.0:
                        factor = ripple_weight(ripple_weights, rippled)
                if tile >= 0:
                    factor *= wide_patch_factor(patches, tile, x * per_m, y * per_m)
                share, power = share * factor, power * factor
            for i in range(begin, end + 1):
                some = share * (min(b, i + 1.0) - max(a, float(i))) if b - a > 1e-9 else power
                at = min(max(first + (i + 0.5) * size - shift, low), high)
                some *= 1.0 + ramp * (at - middle)
                if varied:
                    beyond = at - r
                    px, py = x + beyond * gx, y + beyond * gy
                    if tile >= 0:
                        u_, v_ = px * per_m, py * per_m
                        some *= nearest_value(patches, tile, u_, v_) if coarse else tile_value(patches, tile, u_, v_)
                    if rippled != 0.0:
                        some *= ripple_factor(ripples, north * px + east * py, north * py - east * px, rippled)
                    if border:
                        here = material_at(px, py, bed.material, regions, grid, raster)
                        if here != material:
                            some *= strength_at(tables, here, row, part) / max(s_b, 1e-30)
                    if cell > 0.0:
                        some *= ground_texture(px, py, cell, backscatter.key, backscatter.patches[material])
                energy[j, i] += some


@kernel
def convolve_pulse(energy: Floats, pulse: Floats, out: Floats) -> None:
    """Convolve each row over the bins with a pulse envelope of odd length."""
    half = len(pulse) // 2
    bins = energy.shape[1]
    for j in range(energy.shape[0]):
        for i in range(bins):
            total = 0.0
            for k in range(max(-half, i - bins + 1), min(half, i) + 1):
                total += energy[j, i - k] * pulse[half + k]
            out[j, i] = total


@kernel
def pattern_matrix(u_beams: Floats, u_columns: Floats, shift: Floats, table: Floats, per: float, out: Floats) -> None:
    """Interpolate receive gains (beams, columns) in a table of the beam pattern. The position in the table is ``per`` times
    the absolute difference in u between beam and shifted column; beyond the table the gain is 0.
    """
    for i in range(len(u_beams)):
        for j in range(len(u_columns)):
            x = abs(u_columns[j] + shift[j] - u_beams[i]) * per
            k = int(x)
            out[i, j] = table[k] + (x - k) * (table[k + 1] - table[k]) if k < len(table) - 1 else 0.0


# ------------------------------------------------------------------ the receiver


@kernel
def apply_speckle(
    power: Floats,
    noise: Floats,
    key: np.uint64,
    ping: int,
    old: Singles,
    memory: Floats,
    normal: Floats,
    exponential: Floats,
) -> None:
    """Multiply mean powers (beams, bins) by |z|^2, where z is the complex speckle amplitude, and add exponentially
    distributed noise, in place.

    ``old`` (beams, bins, 2) is z of the previous ping. The function replaces it with z of this ping, ``z = m old +
    sqrt(1 - m^2) w``, where m is ``memory`` (beams). Random numbers are hashes of (key, ping, beam and bin), mapped to
    their distributions by quantile tables.
    """
    bins = power.shape[1]
    top = np.uint64(65535)
    for j in range(power.shape[0]):
        m = memory[j]
        fresh = np.sqrt(max(0.0, 1.0 - m * m))
        for i in range(bins):
            h = random_bits(key, np.uint64(ping), np.uint64(j * bins + i))
            a = np.float32(m * old[j, i, 0] + fresh * normal[h & top])
            b = np.float32(m * old[j, i, 1] + fresh * normal[(h >> np.uint64(16)) & top])
            old[j, i, 0], old[j, i, 1] = a, b
            power[j, i] = power[j, i] * (a * a + b * b) + noise[i] * exponential[(h >> np.uint64(32)) & top]


@kernel
def to_levels(power: Floats, gain_dB: Floats, floor_dB: float, per_dB: float, top: int, out: Levels) -> int:
    """Convert powers (beams, bins) to integers ``(10 log10 power + gain - floor) per_dB``, limited to the range from 0
    to ``top``. Return the number of saturated values.
    """
    cut = 0
    least = 10.0 ** (0.1 * (floor_dB - gain_dB) - 1e-9)  # powers below it are 0 without a logarithm
    for j in range(power.shape[0]):
        for i in range(power.shape[1]):
            if power[j, i] < least[i]:
                out[j, i] = 0
                continue
            level = (10.0 / np.log(10.0)) * np.log(max(power[j, i], 1e-30)) + gain_dB[i] - floor_dB  # faster than log10
            x = int(np.floor(level * per_dB + 0.5))
            if x > top:
                x, cut = top, cut + 1
            out[j, i] = max(x, 0)
    return cut
