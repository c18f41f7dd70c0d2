"""Paths in water of one sound speed by image sources, losses at the bounces, and what stands in the way, compiled.

A path is numbered 2 bounces + (1 if the first bounce is off the bottom); 0 is the direct one.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb

from wavesim_server.dynamics.shapes import BOX, POSE, TRIANGLE, in_prism, normal
from wavesim_server.elementary import log10
from wavesim_server.seabed import Bed, Net, bed_depth

_njit = nb.njit(cache=True, error_model="numpy")
STANDOFF = 1.0  #: m at both ends of a path where the sea bed cannot block it: transducers may stand on it


@_njit
def image(z: float, bottom: float, path: int) -> float:
    """Depth of the image source of a path: mirrored at surface and bottom in turn."""
    at_bottom = path % 2 == 1
    for _ in range(path // 2):
        z = 2.0 * bottom - z if at_bottom else -z
        at_bottom = not at_bottom
    return z


@_njit
def bounces(path: int) -> tuple[int, int]:
    """(surface, bottom) bounces of a path."""
    n = path // 2
    first, second = (n + 1) // 2, n // 2
    return (second, first) if path % 2 == 1 else (first, second)


@_njit
def below(sine: float, speed: float, attenuation: float) -> tuple[float, float]:
    """Real and imaginary part of sqrt(n^2 - cos^2), n = speed (1 + i k) the index of the bottom (see :func:`bottom_loss`)."""
    k = attenuation / (40.0 * math.pi * 0.4342944819032518)  # log10 e
    a, b = speed * speed * (1.0 - k * k) - (1.0 - sine * sine), 2.0 * k * speed * speed
    # the root of a + i b that has positive parts
    size = math.sqrt(0.5 * (math.sqrt(a * a + b * b) + abs(a)))
    rest = 0.5 * b / size if size > 0.0 else 0.0
    return (size, rest) if a >= 0.0 else (rest, size)


@_njit
def bottom_loss(sine: float, density: float, speed: float, attenuation: float) -> float:
    """Loss in dB of one bounce off a fluid bottom at a grazing angle: Rayleigh's reflection coefficient.

    Density over the water's, sound speed of the water over the bottom's, attenuation in dB per wavelength.
    """
    real, imaginary = below(sine, speed, attenuation)
    less, more = density * sine - real, density * sine + real
    r = math.sqrt((less * less + imaginary * imaginary) / (more * more + imaginary * imaginary))
    return float(-20.0 * log10(max(r, 1e-9)))


@_njit
def _hits(g: Any, ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> bool:
    """Whether a segment passes through an obstacle."""
    o = POSE + 3
    dx, dy, dz = ax - g[POSE], ay - g[POSE + 1], az - g[POSE + 2]
    ex, ey, ez = bx - ax, by - ay, bz - az
    if g[0] == TRIANGLE:
        nx, ny, nz = normal(g)
        toward = nx * ex + ny * ey + nz * ez
        if toward == 0.0:
            return False
        t = -(nx * (dx - g[o]) + ny * (dy - g[o + 1]) + nz * (dz - g[o + 2])) / toward
        return 0.0 < t < 1.0 and in_prism(g, dx + t * ex, dy + t * ey, dz + t * ez, 0.0)
    low, high = 0.0, 1.0
    px = g[o] * dx + g[o + 3] * dy + g[o + 6] * dz
    py = g[o + 1] * dx + g[o + 4] * dy + g[o + 7] * dz
    pz = g[o + 2] * dx + g[o + 5] * dy + g[o + 8] * dz
    vx = g[o] * ex + g[o + 3] * ey + g[o + 6] * ez
    vy = g[o + 1] * ex + g[o + 4] * ey + g[o + 7] * ez
    vz = g[o + 2] * ex + g[o + 5] * ey + g[o + 8] * ez
    slabs = 3 if g[0] == BOX else 1
    for i in range(slabs):
        p, v, half = (px, vx, g[1]) if i == 0 else (py, vy, g[2]) if i == 1 else (pz, vz, g[3])
        if abs(v) < 1e-12:
            if abs(p) > half:
                return False
        else:
            t1, t2 = (-half - p) / v, (half - p) / v
            low, high = max(low, min(t1, t2)), min(high, max(t1, t2))
    if slabs == 3:
        return low < high
    a, b, c = vy * vy + vz * vz, py * vy + pz * vz, py * py + pz * pz - g[2] * g[2]
    if a < 1e-12:
        return c < 0.0 and low < high
    under = b * b - a * c
    if under <= 0.0:
        return False
    root = math.sqrt(under)
    return bool(max(low, (-b - root) / a) < min(high, (-b + root) / a))


@_njit
def _buried(
    bed: Bed,
    net: Net,
    cursor: Any,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    start: float,
    end: float,
) -> bool:
    """Whether a segment dips into the sea bed between two distances from its start."""
    ex, ey, ez = bx - ax, by - ay, bz - az
    length = math.sqrt(ex * ex + ey * ey + ez * ez)
    if length == 0.0:
        return False
    fall = bed.slope * math.sqrt(ex * ex + ey * ey) / length + abs(ez) / length
    s = start
    while s < length - end:
        k = s / length
        clear = bed_depth(bed, net, cursor, 0, ax + k * ex, ay + k * ey) - (az + k * ez)
        if clear < 0.0:
            return True
        if fall == 0.0:
            return False  # level over a level bed
        # the bed cannot rise faster than its steepest slope; beyond soundings (NaN) there is none
        s += max(clear / fall, 0.25) if clear == clear else 5.0
    return False


@_njit
def blocked(fixed: Any, bed: Bed, net: Net, cursor: Any, points: Any, n: int) -> bool:
    """Whether anything stands in the way of a path through ``n`` points (n, 3)."""
    rough = bed.soundings or bed.slope > 0.0
    for i in range(n - 1):
        a, b = points[i], points[i + 1]
        for k in range(fixed.shape[0]):
            if _hits(fixed[k], a[0], a[1], a[2], b[0], b[1], b[2]):
                return True
        if rough and _buried(
            bed,
            net,
            cursor,
            a[0],
            a[1],
            a[2],
            b[0],
            b[1],
            b[2],
            STANDOFF,
            STANDOFF,
        ):
            return True
    return False


@_njit
def unfold(
    path: int, bottom: float, ax: float, ay: float, az: float, bx: float, by: float, bz: float, points: Any
) -> int:
    """The corners of an image path from a to b; returns how many."""
    n = path // 2
    total = abs(image(az, bottom, path) - bz)
    points[0, 0], points[0, 1], points[0, 2] = ax, ay, az
    at_bottom = path % 2 == 1
    way = bottom - az if at_bottom else az
    for i in range(n):
        k = way / total if total > 0.0 else 0.0
        points[i + 1, 0], points[i + 1, 1] = ax + k * (bx - ax), ay + k * (by - ay)
        points[i + 1, 2] = bottom if at_bottom else 0.0
        at_bottom = not at_bottom
        way += bottom
    points[n + 1, 0], points[n + 1, 1], points[n + 1, 2] = bx, by, bz
    return n + 2
