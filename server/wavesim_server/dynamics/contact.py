"""Contact between bodies and with the sea bed: impulses at the end of a tick, compiled.

A body is a capsule along its x axis (a cylinder's or box's axis; a sphere has none).  Two bodies that
overlap and approach get equal and opposite impulses that end the approach (no bounce, no friction),
with the mass that each shows at the point of contact, added mass included; then they are moved apart
by a part of the overlap.  The sea bed is a body of infinite mass.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb

from wavesim_server.dynamics.rows import (
    CAPSULE_HALF,
    CAPSULE_R,
    CLEARANCE,
    LANES,
    MINV,
    PRESENT,
    PX,
    PY,
    PZ,
    QW,
    QX,
    QY,
    QZ,
    STATE_ROWS,
    U,
)
from wavesim_server.environment.kernels import bed_depth

_njit = nb.njit(cache=True, error_model="numpy")
PUSH = 0.2  #: part of the overlap that is undone per tick
SLOP = 1e-4  #: overlap that is left alone, m


@_njit
def _axis(b: Any, l: int) -> tuple[float, float, float]:
    """Body x axis in W."""
    w, x, y, z = b[QW * LANES + l], b[QX * LANES + l], b[QY * LANES + l], b[QZ * LANES + l]
    return 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w), 2.0 * (x * z - y * w)


@_njit
def _to_body(b: Any, l: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """A vector of W in B."""
    q0, q1, q2, q3 = b[QW * LANES + l], b[QX * LANES + l], b[QY * LANES + l], b[QZ * LANES + l]
    return (
        (1.0 - 2.0 * (q2 * q2 + q3 * q3)) * x + 2.0 * (q1 * q2 + q3 * q0) * y + 2.0 * (q1 * q3 - q2 * q0) * z,
        2.0 * (q1 * q2 - q3 * q0) * x + (1.0 - 2.0 * (q1 * q1 + q3 * q3)) * y + 2.0 * (q2 * q3 + q1 * q0) * z,
        2.0 * (q1 * q3 + q2 * q0) * x + 2.0 * (q2 * q3 - q1 * q0) * y + (1.0 - 2.0 * (q1 * q1 + q2 * q2)) * z,
    )


@_njit
def _lever(
    b: Any, l: int, px: float, py: float, pz: float, nx: float, ny: float, nz: float, j: Any
) -> tuple[float, float]:
    """Fill j with [n; r x n] in B for point p (W); return (approach speed along n, inverse mass along it)."""
    mx, my, mz = _to_body(b, l, nx, ny, nz)
    rx, ry, rz = _to_body(b, l, px - b[PX * LANES + l], py - b[PY * LANES + l], pz - b[PZ * LANES + l])
    j[0], j[1], j[2] = mx, my, mz
    j[3], j[4], j[5] = ry * mz - rz * my, rz * mx - rx * mz, rx * my - ry * mx
    speed = inverse = 0.0
    for i in range(6):
        speed += j[i] * b[(U + i) * LANES + l]
        for k in range(6):
            inverse += j[i] * b[(MINV + 6 * i + k) * LANES + l] * j[k]
    return speed, inverse


@_njit
def _impulse(b: Any, l: int, j: Any, size: float) -> None:
    for i in range(6):
        change = 0.0
        for k in range(6):
            change += b[(MINV + 6 * i + k) * LANES + l] * j[k]
        b[(U + i) * LANES + l] += change * size


@_njit
def _closest(
    ax: float,
    ay: float,
    az: float,
    ha: float,
    bx: float,
    by: float,
    bz: float,
    hb: float,
    dx: float,
    dy: float,
    dz: float,
) -> tuple[float, float]:
    """Parameters (s, t) of the closest points of the segments c_a + s a and c_a + d + t b."""
    ab = ax * bx + ay * by + az * bz
    ad = ax * dx + ay * dy + az * dz
    bd = bx * dx + by * dy + bz * dz
    den = 1.0 - ab * ab
    s = min(max((ad - ab * bd) / den, -ha), ha) if den > 1e-9 else 0.0
    t = min(max(ab * s - bd, -hb), hb)
    s = min(max(ab * t + ad, -ha), ha)
    return s, t


@_njit
def bodies(blocks: Any, order: Any, count: int, scratch: Any) -> int:
    """Resolve overlaps between bodies. ``order`` holds ``count`` rows, kept sorted by their lowest x.
    Returns the number of contacts."""
    # insertion sort: from tick to tick the order hardly changes
    for i in range(1, count):
        row = order[i]
        key = _low(blocks, row)
        k = i - 1
        while k >= 0 and _low(blocks, order[k]) > key:
            order[k + 1] = order[k]
            k -= 1
        order[k + 1] = row
    contacts = 0
    for i in range(count):
        ra = order[i]
        a, la = blocks[ra // LANES], ra % LANES
        high = a[PX * LANES + la] + a[CAPSULE_HALF * LANES + la] + a[CAPSULE_R * LANES + la]
        for k in range(i + 1, count):
            if _low(blocks, order[k]) > high:
                break
            contacts += _pair(blocks, ra, order[k], scratch)
    return contacts


@_njit
def _low(blocks: Any, row: int) -> float:
    b, l = blocks[row // LANES], row % LANES
    return b[PX * LANES + l] - b[CAPSULE_HALF * LANES + l] - b[CAPSULE_R * LANES + l]


@_njit
def _pair(blocks: Any, ra: int, rb: int, scratch: Any) -> int:
    a, la, b, lb = blocks[ra // LANES], ra % LANES, blocks[rb // LANES], rb % LANES
    ha, hb = a[CAPSULE_HALF * LANES + la], b[CAPSULE_HALF * LANES + lb]
    reach = a[CAPSULE_R * LANES + la] + b[CAPSULE_R * LANES + lb]
    dx, dy, dz = (
        b[PX * LANES + lb] - a[PX * LANES + la],
        b[PY * LANES + lb] - a[PY * LANES + la],
        b[PZ * LANES + lb] - a[PZ * LANES + la],
    )
    far = reach + ha + hb
    if dx * dx + dy * dy + dz * dz > far * far:
        return 0
    ax, ay, az = _axis(a, la)
    bx, by, bz = _axis(b, lb)
    s, t = _closest(ax, ay, az, ha, bx, by, bz, hb, dx, dy, dz)
    nx, ny, nz = dx + t * bx - s * ax, dy + t * by - s * ay, dz + t * bz - s * az
    gap = math.sqrt(nx * nx + ny * ny + nz * nz)
    if gap >= reach:
        return 0
    if gap > 1e-9:
        nx, ny, nz = nx / gap, ny / gap, nz / gap
    else:
        nx, ny, nz = 0.0, 0.0, 1.0
    # the point of contact on a's surface
    ra_ = a[CAPSULE_R * LANES + la]
    px, py, pz = (
        a[PX * LANES + la] + s * ax + ra_ * nx,
        a[PY * LANES + la] + s * ay + ra_ * ny,
        a[PZ * LANES + la] + s * az + ra_ * nz,
    )
    ja, jb = scratch[0], scratch[1]
    va, ka = _lever(a, la, px, py, pz, nx, ny, nz, ja)
    vb, kb = _lever(b, lb, px, py, pz, nx, ny, nz, jb)
    approach = va - vb
    if approach > 0.0:
        size = approach / (ka + kb)
        _impulse(a, la, ja, -size)
        _impulse(b, lb, jb, size)
    push = PUSH * max(reach - gap - SLOP, 0.0) / (ka + kb)
    for i, n in enumerate((nx, ny, nz)):
        a[(PX + i) * LANES + la] -= push * ka * n
        b[(PX + i) * LANES + lb] += push * kb * n
    return 1


@_njit
def bottom(blocks: Any, order: Any, count: int, h: float, bed: Any, triangles: Any, cursor: Any, scratch: Any) -> int:
    """Hold bodies above the sea bed. Returns the number of contacts.

    A body is looked at again only when it may have used up its last clearance.
    """
    contacts = 0
    steepest = bed.slope
    for i in range(count):
        row = order[i]
        b, l = blocks[row // LANES], row % LANES
        u, v, w = b[U * LANES + l], b[(U + 1) * LANES + l], b[(U + 2) * LANES + l]
        clearance = b[CLEARANCE * LANES + l] - math.sqrt(u * u + v * v + w * w) * h * (1.0 + steepest)
        if clearance > 0.0:
            b[CLEARANCE * LANES + l] = clearance
            continue
        half, radius = b[CAPSULE_HALF * LANES + l], b[CAPSULE_R * LANES + l]
        x, y, z = b[PX * LANES + l], b[PY * LANES + l], b[PZ * LANES + l]
        gap = bed_depth(bed, triangles, cursor, row, x, y) - z - (half + radius) * (1.0 + steepest)
        if not gap <= 0.0:  # far above, or no bed is known here
            b[CLEARANCE * LANES + l] = gap if gap > 0.0 else 1.0
            continue
        b[CLEARANCE * LANES + l] = 0.0
        ax, ay, az = _axis(b, l)
        for side in range(-1, 2, 2):
            ex, ey, ez = x + side * half * ax, y + side * half * ay, z + side * half * az
            depth = bed_depth(bed, triangles, cursor, row, ex, ey)
            sx = (bed_depth(bed, triangles, cursor, row, ex + 0.05, ey) - depth) / 0.05
            sy = (bed_depth(bed, triangles, cursor, row, ex, ey + 0.05) - depth) / 0.05
            s = 1.0 / math.sqrt(1.0 + sx * sx + sy * sy)
            overlap = radius - (depth - ez) * s
            if not overlap > 0.0:
                continue
            nx, ny, nz = -sx * s, -sy * s, s  # into the bed
            j = scratch[0]
            into, k = _lever(b, l, ex + radius * nx, ey + radius * ny, ez + radius * nz, nx, ny, nz, j)
            if into > 0.0:
                _impulse(b, l, j, -into / k)
            push = PUSH * max(overlap - SLOP, 0.0)
            b[PX * LANES + l] -= push * nx
            b[PY * LANES + l] -= push * ny
            b[PZ * LANES + l] -= push * nz
            contacts += 1
    return contacts


@_njit
def freeze_faulted(blocks: Any, order: Any, count: int, last: Any, faults: Any) -> int:
    """Hold bodies whose state is no longer finite at their last finite one; returns how many are new."""
    new = 0
    for i in range(count):
        row = order[i]
        b, l = blocks[row // LANES], row % LANES
        total = 0.0
        for k in range(STATE_ROWS):
            total += b[k * LANES + l]
        if math.isfinite(total):
            for k in range(STATE_ROWS):
                last[row, k] = b[k * LANES + l]
        elif b[PRESENT * LANES + l] != 0.0:
            for k in range(STATE_ROWS):
                b[k * LANES + l] = last[row, k] if k < U else 0.0
            for k in range(36):
                b[(MINV + k) * LANES + l] = 0.0
            if faults[row] == 0:
                faults[row] = 1
                new += 1
    return new
