"""Compiled kernels that trace the rays of a sonar in the world. They are pure functions on arrays; the caller supplies
the output arrays.

Lengths are in m, angles in rad. W is north-east-down. A *fan* has y along the array, x broadside, and z across both.
The direction of a ray is ``sqrt(1 - u^2) (cos e x + sin e z) + u y``. Here u is the sine of the angle off broadside, and
e is the elevation around the array. Functions that are called for each ray take separate arrays instead of records,
because a call with a record counts a reference to every array in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_emulators.sonar.types import Ints32, Singles
from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the elementary functions
from wavesim_kernels.compiler import device_function, kernel
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
