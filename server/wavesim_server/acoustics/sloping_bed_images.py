"""Echoes off a bed whose depth changes along the path, and off a moving surface, in water of uniform sound speed;
compiled.

Each bounce off the bed mirrors the source in the plane that is tangent to the bed at the point of reflection. The
points of reflection and the tangent planes depend on each other, so they are found together by iteration, starting with
level planes. For a plane bed, however steep, this is the exact method of images in three dimensions. Over a curved bed,
the level neglects the curvature, but the travel time does not, because it is stationary at the point of reflection. If
a path has several such points, the one nearest to the point of reflection on a level bed is used.

A plane that moves with the speed w along its normal mirrors the source in space and time. The wave equation does not
change under Lorentz transformations, in which the plane can be brought to rest. A source at the point p that emits at
the time t therefore has the image p - a n, which emits at the time t - a w/c^2, with a = 2 (n . p - w t - d) / (1 -
w^2/c^2). The method of images remains exact with this image.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import image_paths
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.moving_surface import SurfaceMotion, moving_plane
from wavesim_server.acoustics.types import Vector
from wavesim_server.seabed import bed_depth

MAX_ITERATIONS = 24  #: maximum number of iterations of the search for the planes
CONVERGENCE_TOLERANCE = 1e-4  #: distance in m of the corners from their targets below which the search ends
#: maximum distance in m of the corners from their targets after the last iteration; the path length is stationary
#: there, so its error is far smaller
ACCEPTANCE_TOLERANCE = 1.0
#: ACCEPTANCE_TOLERANCE for paths that the moving surface reflects; it is smaller because waves are short
SURFACE_TOLERANCE = 0.02
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
def find_reflections(
    scene: AcousticScene, surface: SurfaceMotion, path: int, a: Vector, b: Vector, points: Floats
) -> bool:
    """Fill ``points`` (rows of three) with the n + 2 corners of a path with n bounces from a to b. Returns False if
    there is no such path.

    The rows after these corners contain the n + 1 images of a, and the n planes with their normals, and with their
    distances from the origin and their speeds (see :func:`moving_surface.moving_plane`). The last rows are scratch
    space for the search; they also contain the times of the reflections and of the images, see :func:`image_delay`.
    """
    n = path // 2
    bottom = max(
        bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, 0.5 * (a.x + b.x), 0.5 * (a.y + b.y)), a.z, b.z
    )
    if bottom != bottom:
        return False
    image_paths.unfold_image_path(path, bottom, a, b, points)
    first_down = path % 2 == 1
    images, normals, wanted, before, times = n + 2, 2 * n + 3, 4 * n + 3, 5 * n + 3, 7 * n + 3
    share, moved, moving = 1.0, 0.0, surface.periods.shape[0] > 0
    _start_times(points, path, surface.speed)
    for turn in range(MAX_ITERATIONS):
        x, y, z, late = a.x, a.y, a.z, 0.0  # `late` and `way` are times in metres: c t
        for i in range(n):  # the source, mirrored in one plane after the other
            nx, ny, nz, d, v = 0.0, 0.0, 1.0, 0.0, 0.0
            if first_down == (i % 2 == 0):
                nx, ny, nz, d = tangent_plane(scene, points[i + 1, 0], points[i + 1, 1])
                if d != d:
                    return False
            elif moving:
                nx, ny, nz, d, v = moving_plane(surface, points[times + i, 0], points[i + 1, 0], points[i + 1, 1])
            away = 2.0 * (nx * x + ny * y + nz * z - v * late - d) / (1.0 - v * v)
            x, y, z, late = x - away * nx, y - away * ny, z - away * nz, late - away * v
            _set_point(points, images + i + 1, x, y, z)
            _set_point(points, normals + i, nx, ny, nz)
            points[normals + n + i, 0], points[normals + n + i, 1] = d, v
            points[times + i, 2] = late
        away = math.sqrt((b.x - x) * (b.x - x) + (b.y - y) * (b.y - y) + (b.z - z) * (b.z - z))
        x, y, z, way = b.x, b.y, b.z, late + away
        for i in range(n - 1, -1, -1):  # and the intersections of its path with them, from the receiver back
            nx, ny, nz = points[normals + i, 0], points[normals + i, 1], points[normals + i, 2]
            d, v, image = points[normals + n + i, 0], points[normals + n + i, 1], points[images + i + 1]
            late = points[times + i, 2]
            here = nx * x + ny * y + nz * z - v * way - d
            there = nx * image[0] + ny * image[1] + nz * image[2] - v * late - d
            if not here * there < 0.0:
                return False  # both on one side: no point of this plane is between them
            t = here / (here - there)
            x, y, z, way = (
                x + t * (image[0] - x),
                y + t * (image[1] - y),
                z + t * (image[2] - z),
                way + t * (late - way),
            )
            _set_point(points, wanted + i, x, y, z)
            points[times + i, 1] = way / surface.speed
        moved, share = _residual_and_step(points, path, turn, share, moving)
        if moved < CONVERGENCE_TOLERANCE:
            break
        for i in range(n):
            old, goal = points[i + 1], points[wanted + i]
            _set_point(points, before + i, old[0], old[1], 0.0)
            _set_point(points, i + 1, old[0] + share * (goal[0] - old[0]), old[1] + share * (goal[1] - old[1]), goal[2])
            points[times + i, 0] = points[times + i, 1]
    if moved > (SURFACE_TOLERANCE if moving else ACCEPTANCE_TOLERANCE):
        return False
    for i in range(n):
        _set_point(points, i + 1, points[wanted + i, 0], points[wanted + i, 1], points[wanted + i, 2])
    return _in_water(scene, path, points)


@device_function
def _start_times(points: Floats, path: int, speed: float) -> None:
    """Set the times of the reflections, in s after the emission, from the present corners."""
    n = path // 2
    way = 0.0
    for i in range(n):
        x, y, z = points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1], points[i + 1, 2] - points[i, 2]
        way += math.sqrt(x * x + y * y + z * z)
        points[7 * n + 3 + i, 0] = way / speed


@device_function
def image_delay(points: Floats, path: int) -> float:
    """Return the time at which the last image of a path emits, in metres of travel after the emission of its source."""
    n = path // 2
    return float(points[8 * n + 2, 2])


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
def _residual_and_step(points: Floats, path: int, turn: int, share: float, moving: bool) -> tuple[float, float]:
    """Return (maximum distance of the corners from their targets, fraction of that distance for the next step). Corners
    at the surface count only if it is ``moving``.

    The first step covers the whole distance; each later step uses the change that the previous step caused (Barzilai
    and Borwein 1988). If every step covered the whole distance, corners on a hill would jump across its top.
    """
    n = path // 2
    wanted, before, last = 4 * n + 3, 5 * n + 3, 6 * n + 3
    moved = along = square = 0.0
    for i in range(n):
        if not moving and (path % 2 == 1) != (i % 2 == 0):
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


@device_function
def moving_doppler(points: Floats, path: int) -> float:
    """Return the factor by which the moving surface multiplies the frequency, for a path that :func:`find_reflections`
    has filled in.
    """
    n, factor = path // 2, 1.0
    for k in range(n):
        o = 2 * n + 3 + k
        v = points[o + n, 1]
        if v != 0.0:
            ux, uy, uz = leg_direction(points, k)
            wx, wy, wz = leg_direction(points, k + 1)
            before = ux * points[o, 0] + uy * points[o, 1] + uz * points[o, 2]
            after = wx * points[o, 0] + wy * points[o, 1] + wz * points[o, 2]
            factor *= (1.0 - v * before) / (1.0 - v * after)
    return factor
