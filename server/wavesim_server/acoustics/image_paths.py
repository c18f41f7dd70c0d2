"""Image-source paths in water of uniform sound speed, losses at bounces, and blocking by obstacles; compiled.

The index of a path is twice its number of bounces, plus 1 if the first bounce is off the bottom. Index 0 is the direct
path.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.acoustics.types import Vector
from wavesim_server.dynamics.shapes import BOX, CORE, POSE, SHAPE_CODE, TRIANGLE, is_over_triangle, triangle_normal
from wavesim_server.elementary import atan2, log10
from wavesim_server.seabed import BedParameters, SoundingsMesh, bed_depth

ROTATION = POSE + 3  #: R_WB of an obstacle, row by row; for a triangle, the corners relative to its centre
#: distance in m from both ends of a path within which the sea bed cannot block it, because transducers may rest on the
#: bed
END_CLEARANCE = 1.0
#: results of :func:`find_blocker` that are not rows of obstacles
NOT_BLOCKED, BLOCKED_BY_BED = -1, -2


class AcousticScene(NamedTuple):
    """Objects that can block sound: obstacles (n, GEOMETRY) and the sea bed. ``cursor`` (1,) contains the index of the
    last triangle of the soundings that was used.
    """

    obstacles: Floats
    bed: BedParameters
    soundings_mesh: SoundingsMesh
    cursor: Ints


@device_function
def image_depth(z: float, bottom: float, path: int) -> float:
    """Return the depth of a path's image source, which is the source mirrored alternately at surface and bottom."""
    at_bottom = path % 2 == 1
    for _ in range(path // 2):
        z = 2.0 * bottom - z if at_bottom else -z
        at_bottom = not at_bottom
    return z


@device_function
def bounce_counts(path: int) -> tuple[int, int]:
    """Return the numbers of (surface, bottom) bounces of a path."""
    n = path // 2
    first, second = (n + 1) // 2, n // 2
    return (second, first) if path % 2 == 1 else (first, second)


@device_function
def bottom_wavenumber_sine(sine: float, speed: float, attenuation: float) -> tuple[float, float]:
    """Return the real and imaginary parts of sqrt(n^2 - cos^2). The refractive index of the bottom is n = speed (1 + i
    k); see :func:`bottom_loss`.
    """
    k = attenuation / (40.0 * math.pi * 0.4342944819032518)  # log10 e
    a, b = speed * speed * (1.0 - k * k) - (1.0 - sine * sine), 2.0 * k * speed * speed
    # the root of a + i b with positive parts
    size = math.sqrt(0.5 * (math.sqrt(a * a + b * b) + abs(a)))
    rest = 0.5 * b / size if size > 0.0 else 0.0
    return (size, rest) if a >= 0.0 else (rest, size)


@device_function
def bottom_loss(sine: float, density: float, speed: float, attenuation: float) -> float:
    """Return the loss in dB of one bounce off a fluid bottom at a grazing angle, by the Rayleigh reflection
    coefficient.

    The ratios are the bottom's density divided by the water's, and the water's sound speed divided by the bottom's.
    Attenuation is in dB per wavelength.
    """
    real, imaginary = bottom_wavenumber_sine(sine, speed, attenuation)
    less, more = density * sine - real, density * sine + real
    r = math.sqrt((less * less + imaginary * imaginary) / (more * more + imaginary * imaginary))
    return float(-20.0 * log10(max(r, 1e-9)))


@device_function
def bottom_phase(sine: float, density: float, speed: float, attenuation: float) -> float:
    """Return the phase in rad of one bounce off a fluid bottom, by the Rayleigh reflection coefficient.

    Pressures vary as ``exp(+i w t)``, so a travel time tau multiplies them by ``exp(-i w tau)``.

    The roots from :func:`bottom_wavenumber_sine` apply to ``exp(-i w t)``; therefore, the phase is minus the argument
    of the coefficient.
    """
    real, imaginary = bottom_wavenumber_sine(sine, speed, attenuation)
    less, more = density * sine - real, density * sine + real
    return float(atan2(imaginary * (less + more), less * more - imaginary * imaginary))


@device_function
def _to_body(g: Floats, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Rotate a vector from W to the axes of an obstacle."""
    R = g[ROTATION : ROTATION + 9]
    return R[0] * x + R[3] * y + R[6] * z, R[1] * x + R[4] * y + R[7] * z, R[2] * x + R[5] * y + R[8] * z


@device_function
def _segment_hits(g: Floats, ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> bool:
    """Return whether a segment passes through an obstacle."""
    dx, dy, dz = ax - g[POSE], ay - g[POSE + 1], az - g[POSE + 2]
    ex, ey, ez = bx - ax, by - ay, bz - az
    if g[SHAPE_CODE] == TRIANGLE:
        nx, ny, nz = triangle_normal(g)
        corner = g[ROTATION : ROTATION + 3]
        toward = nx * ex + ny * ey + nz * ez
        if toward == 0.0:
            return False
        t = -(nx * (dx - corner[0]) + ny * (dy - corner[1]) + nz * (dz - corner[2])) / toward
        return bool(0.0 < t < 1.0 and is_over_triangle(g, dx + t * ex, dy + t * ey, dz + t * ez, 0.0))
    low, high = 0.0, 1.0
    px, py, pz = _to_body(g, dx, dy, dz)
    vx, vy, vz = _to_body(g, ex, ey, ez)
    half = g[CORE : CORE + 3]
    slabs = 3 if g[SHAPE_CODE] == BOX else 1
    for i in range(slabs):
        p, v = (px, vx) if i == 0 else (py, vy) if i == 1 else (pz, vz)
        if abs(v) < 1e-12:
            if abs(p) > half[i]:
                return False
        else:
            t1, t2 = (-half[i] - p) / v, (half[i] - p) / v
            low, high = max(low, min(t1, t2)), min(high, max(t1, t2))
    if slabs == 3:
        return low < high
    a, b, c = vy * vy + vz * vz, py * vy + pz * vz, py * py + pz * pz - half[1] * half[1]
    if a < 1e-12:
        return c < 0.0 and low < high
    under = b * b - a * c
    if under <= 0.0:
        return False
    root = math.sqrt(under)
    return bool(max(low, (-b - root) / a) < min(high, (-b + root) / a))


@device_function
def _dips_into_bed(scene: AcousticScene, ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> bool:
    """Return whether a segment passes below the sea bed, ignoring END_CLEARANCE metres at each end."""
    ex, ey, ez = bx - ax, by - ay, bz - az
    length = math.sqrt(ex * ex + ey * ey + ez * ez)
    if length == 0.0:
        return False
    fall = scene.bed.max_slope * math.sqrt(ex * ex + ey * ey) / length + abs(ez) / length
    s = END_CLEARANCE
    while s < length - END_CLEARANCE:
        k = s / length
        clear = bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, ax + k * ex, ay + k * ey) - (az + k * ez)
        if clear < 0.0:
            return True
        if fall == 0.0:
            return False  # a level segment over a level bed
        # the bed cannot rise faster than its steepest slope; beyond the soundings (NaN) there is no bed
        s += max(clear / fall, 0.25) if clear == clear else 5.0
    return False


@device_function
def find_blocker(scene: AcousticScene, points: Floats, n: int, bed: bool) -> int:
    """Return the row of the first obstacle that blocks a path through ``n`` points (n, 3), BLOCKED_BY_BED if the sea bed
    blocks it, or NOT_BLOCKED. ``bed`` states whether the sea bed can block the path.
    """
    rough = bed and (scene.bed.has_soundings or scene.bed.max_slope > 0.0)
    for i in range(n - 1):
        a, b = points[i], points[i + 1]
        for k in range(scene.obstacles.shape[0]):
            if _segment_hits(scene.obstacles[k], a[0], a[1], a[2], b[0], b[1], b[2]):
                return k
        if rough and _dips_into_bed(scene, a[0], a[1], a[2], b[0], b[1], b[2]):
            return BLOCKED_BY_BED
    return NOT_BLOCKED


@device_function
def is_path_blocked(scene: AcousticScene, points: Floats, n: int, bed: bool) -> bool:
    """Return whether anything blocks a path; see :func:`find_blocker` for the arguments."""
    return find_blocker(scene, points, n, bed) != NOT_BLOCKED


@device_function
def unfold_image_path(path: int, bottom: float, a: Vector, b: Vector, points: Floats) -> int:
    """Fill in the corners of an image path from a to b; return their number."""
    n = path // 2
    total = abs(image_depth(a.z, bottom, path) - b.z)
    points[0, 0], points[0, 1], points[0, 2] = a.x, a.y, a.z
    at_bottom = path % 2 == 1
    way = bottom - a.z if at_bottom else a.z
    for i in range(n):
        k = way / total if total > 0.0 else 0.0
        points[i + 1, 0], points[i + 1, 1] = a.x + k * (b.x - a.x), a.y + k * (b.y - a.y)
        points[i + 1, 2] = bottom if at_bottom else 0.0
        at_bottom = not at_bottom
        way += bottom
    points[n + 1, 0], points[n + 1, 1], points[n + 1, 2] = b.x, b.y, b.z
    return n + 2
