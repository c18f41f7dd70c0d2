"""Echoes off a bed whose depth changes along the path, in water of uniform sound speed; compiled.

Each bounce off the bed mirrors the source in the plane that is tangent to the bed at the point of reflection. The
points of reflection and the tangent planes depend on each other, so they are found together by iteration, starting with
level planes. For a plane bed, however steep, this is the exact method of images in three dimensions. Over a curved bed,
the level neglects the curvature, but the travel time does not, because it is stationary at the point of reflection. If
a path has several such points, the one nearest to the point of reflection on a level bed is used.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import image_paths
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.types import Vector
from wavesim_server.seabed import bed_depth

MAX_ITERATIONS = 24  #: maximum number of iterations of the search for the planes
CONVERGENCE_TOLERANCE = 1e-4  #: distance in m of the corners from their targets below which the search ends
#: maximum distance in m of the corners from their targets after the last iteration; the path length is stationary
#: there, so its error is far smaller
ACCEPTANCE_TOLERANCE = 1.0
SLOPE_HALF_WIDTH = 0.5  #: distance in m to each side over which the bed's slope is computed


@device_function
def tangent_plane(scene: AcousticScene, x: float, y: float) -> tuple[float, float, float, float]:
    """Return (n, d) for the bed's tangent plane n . p = d under a point, with n upwards; NaN outside the soundings."""
    depth = bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, x, y)
    sx = bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, x + SLOPE_HALF_WIDTH, y)
    sx -= bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, x - SLOPE_HALF_WIDTH, y)
    sy = bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, x, y + SLOPE_HALF_WIDTH)
    sy -= bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, x, y - SLOPE_HALF_WIDTH)
    sx, sy = sx / (2.0 * SLOPE_HALF_WIDTH), sy / (2.0 * SLOPE_HALF_WIDTH)
    unit = 1.0 / math.sqrt(1.0 + sx * sx + sy * sy)
    nx, ny, nz = sx * unit, sy * unit, -unit
    return nx, ny, nz, nx * x + ny * y + nz * depth


@device_function
def find_reflections(scene: AcousticScene, path: int, a: Vector, b: Vector, points: Floats) -> bool:
    """Fill ``points`` (rows of three) with the n + 2 corners of a path with n bounces from a to b. Returns False if
    there is no such path.

    The rows after these corners contain the n + 1 images of a, and the n planes with their normals and their distances
    from the origin. The last rows are scratch space for the search.
    """
    n = path // 2
    bottom = max(
        bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, 0.5 * (a.x + b.x), 0.5 * (a.y + b.y)), a.z, b.z
    )
    if bottom != bottom:
        return False
    image_paths.unfold_image_path(path, bottom, a, b, points)
    first_down = path % 2 == 1
    images, normals, wanted, before = n + 2, 2 * n + 3, 4 * n + 3, 5 * n + 3
    share, moved = 1.0, 0.0
    for turn in range(MAX_ITERATIONS):
        x, y, z = a.x, a.y, a.z
        for i in range(n):  # the source, mirrored in one plane after the other
            nx, ny, nz, d = 0.0, 0.0, 1.0, 0.0
            if first_down == (i % 2 == 0):
                nx, ny, nz, d = tangent_plane(scene, points[i + 1, 0], points[i + 1, 1])
                if d != d:
                    return False
            away = 2.0 * (nx * x + ny * y + nz * z - d)
            x, y, z = x - away * nx, y - away * ny, z - away * nz
            _set_point(points, images + i + 1, x, y, z)
            _set_point(points, normals + i, nx, ny, nz)
            points[normals + n + i, 0] = d
        x, y, z = b.x, b.y, b.z
        for i in range(n - 1, -1, -1):  # and the intersections of its path with them, from the receiver back
            nx, ny, nz = points[normals + i, 0], points[normals + i, 1], points[normals + i, 2]
            d, image = points[normals + n + i, 0], points[images + i + 1]
            here, there = nx * x + ny * y + nz * z - d, nx * image[0] + ny * image[1] + nz * image[2] - d
            if not here * there < 0.0:
                return False  # both on one side: no point of this plane is between them
            t = here / (here - there)
            x, y, z = x + t * (image[0] - x), y + t * (image[1] - y), z + t * (image[2] - z)
            _set_point(points, wanted + i, x, y, z)
        moved, share = _residual_and_step(points, path, turn, share)
        if moved < CONVERGENCE_TOLERANCE:
            break
        for i in range(n):
            old, goal = points[i + 1], points[wanted + i]
            _set_point(points, before + i, old[0], old[1], 0.0)
            _set_point(points, i + 1, old[0] + share * (goal[0] - old[0]), old[1] + share * (goal[1] - old[1]), goal[2])
    if moved > ACCEPTANCE_TOLERANCE:
        return False
    for i in range(n):
        _set_point(points, i + 1, points[wanted + i, 0], points[wanted + i, 1], points[wanted + i, 2])
    return _in_water(scene, path, points)


@device_function
def _in_water(scene: AcousticScene, path: int, points: Floats) -> bool:
    """Return True if all bed corners of a path are below the surface and there is water under all of its surface
    corners.
    """
    n, first_down = path // 2, path % 2 == 1
    for i in range(n):
        corner = points[i + 1]
        if first_down == (i % 2 == 0):
            if not corner[2] > 0.0:
                return False
        elif not bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, corner[0], corner[1]) > 0.0:
            return False
    return True


@device_function
def _residual_and_step(points: Floats, path: int, turn: int, share: float) -> tuple[float, float]:
    """Return (maximum distance of the bed corners from their targets, fraction of that distance for the next step).

    The first step covers the whole distance; each later step uses the change that the previous step caused (Barzilai
    and Borwein 1988). If every step covered the whole distance, corners on a hill would jump across its top.
    """
    n = path // 2
    wanted, before, last = 4 * n + 3, 5 * n + 3, 6 * n + 3
    moved = along = square = 0.0
    for i in range(n):
        if (path % 2 == 1) != (i % 2 == 0):
            continue
        fx, fy = points[wanted + i, 0] - points[i + 1, 0], points[wanted + i, 1] - points[i + 1, 1]
        moved = max(moved, abs(fx) + abs(fy))
        if turn > 0:
            gx, gy = fx - points[last + i, 0], fy - points[last + i, 1]
            along -= (points[i + 1, 0] - points[before + i, 0]) * gx + (points[i + 1, 1] - points[before + i, 1]) * gy
            square += gx * gx + gy * gy
        _set_point(points, last + i, fx, fy, 0.0)
    if turn > 0 and square > 0.0:
        share = min(max(along / square, 0.02), 1.5)
    return moved, share


@device_function
def _set_point(points: Floats, k: int, x: float, y: float, z: float) -> None:
    points[k, 0], points[k, 1], points[k, 2] = x, y, z


@device_function
def leg_direction(points: Floats, k: int) -> tuple[float, float, float]:
    """Return the unit vector from one corner to the next."""
    x, y, z = points[k + 1, 0] - points[k, 0], points[k + 1, 1] - points[k, 1], points[k + 1, 2] - points[k, 2]
    far = max(math.sqrt(x * x + y * y + z * z), 1e-9)
    return x / far, y / far, z / far


@device_function
def grazing_sine(points: Floats, path: int, k: int) -> float:
    """Return the sine of the grazing angle at bounce ``k`` of a path that :func:`find_reflections` has filled in."""
    x, y, z = leg_direction(points, k)
    o = 2 * (path // 2) + 3 + k
    return float(abs(x * points[o, 0] + y * points[o, 1] + z * points[o, 2]))


@device_function
def bed_loss(
    points: Floats, path: int, density: float, speed: float, attenuation: float, phases: bool
) -> tuple[float, float, float]:
    """Return (loss, sine, phase) of a path that :func:`find_reflections` has filled in. The loss in dB and the phase in
    rad are sums of the values of all bounces off the bed; the phase is 0 unless ``phases`` is true. The sine is the
    mean sine of the grazing angles at the surface.

    In a wedge, each bounce has a different angle. See :func:`image_paths.bottom_loss` and
    :func:`image_paths.bottom_phase`.
    """
    total = surface = turned = 0.0
    for k in range(path // 2):
        grazing = grazing_sine(points, path, k)
        if (path % 2 == 1) == (k % 2 == 0):
            total += image_paths.bottom_loss(grazing, density, speed, attenuation)
            if phases:
                turned += image_paths.bottom_phase(grazing, density, speed, attenuation)
        else:
            surface += grazing
    at_surface, _ = image_paths.bounce_counts(path)
    return total, surface / max(at_surface, 1), turned
