"""Contact between bodies, with obstacles and with the sea bed: impulses at the end of a tick, compiled.

A contact limits the speed of approach to what the gap allows in one step, so that nothing passes through a thin
wall however fast it is; bodies that touch do not bounce, and rub with Coulomb's friction.  Impulses use the
mass that a body shows at the point of contact, added mass included, and are found by a few sweeps over all
contacts of the tick.  What little overlap remains is undone by moving bodies apart.

Pairs that can meet are listed with a skin around each body, and listed anew when something has moved by it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from wavesim_server.dynamics import rotation, shapes
from wavesim_server.dynamics.meetings import BED, Meetings, meet, meetings
from wavesim_server.dynamics.rows import (
    BLOCK_KIND,
    CLEARANCE,
    HALF,
    LANES,
    MARGIN,
    MINV,
    NU,
    PRESENT,
    PX,
    PY,
    PZ,
    QW,
    QX,
    QY,
    QZ,
    REACH,
    RIGID_ROWS,
    SHAPE,
    STATE_ROWS,
)
from wavesim_server.dynamics.shapes import CORE, GEOMETRY, POINTS, ROUND, TRIANGLE
from wavesim_server.seabed import bed_depth

_njit = nb.njit(cache=True, error_model="numpy")
_inline = nb.njit(cache=True, error_model="numpy", forceinline=True)  # a call counts every array of a tuple
PUSH = 0.2  #: part of the overlap that is undone per tick
GENTLY = 0.2  #: but no faster than this at each point of contact, m/s: a body that got inside another rises out of it
SLOP = 1e-4  #: overlap that is left alone, m
SKIN = 1.0  #: m around a body, see the module
FRICTION = 0.3
SWEEPS = 24
NEAR = 0.01  #: points of a side within this of the nearest one bear too, m
#: a contact: row a, row b (BED; -2 - k = fixed geometry k), point (3), normal from a to b (3), gap, impulse, friction impulse
#: on b (3), speed of approach
C_A, C_B, C_POINT, C_NORMAL, C_GAP, C_IMPULSE, C_FRICTION, C_SPEED, CONTACT = 0, 1, 2, 5, 8, 9, 10, 13, 14
#: counters of a Bodies tuple
N_PAIRS, N_CONTACTS, N_LOST, N_STALE = range(4)


class Bodies(NamedTuple):
    """What contacts need of the fleet, and their own memory."""

    blocks: Any
    slots: Any
    heads: Any
    params: Any


class Touch(NamedTuple):
    """Memory of the contacts: obstacles (n, GEOMETRY), pairs, contacts of the tick, scratch."""

    fixed: Any
    pairs: Any  # (n, 2): row, row; or row, -1 - obstacle
    contacts: Any
    work: Any  # (32, 3)
    levers: Any  # (2, 6)
    shapes: Any  # (2, GEOMETRY)
    travel: Any  # (1,): way since the pairs were listed
    counters: Any
    meetings: Meetings


def touch(capacity: int, fixed: Any, owners: Any, step: float) -> Touch:
    """Memory for a fleet of this size, fixed geometries and which obstacle each is of."""
    pairs = capacity * capacity if capacity <= 512 else 128 * capacity
    return Touch(
        fixed,
        np.zeros((pairs, 2), np.int64),
        np.zeros((max(256, 16 * capacity), CONTACT)),
        np.zeros((32, 3)),
        np.zeros((2, 6)),
        np.zeros((2, GEOMETRY)),
        np.array([math.inf]),
        np.zeros(4, np.int64),
        meetings(capacity, owners, step),
    )


@_njit
def geometry(f: Bodies, row: int, g: Any) -> None:
    """The geometry of a body at its present pose."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    p = f.params[f.heads[slot // LANES, BLOCK_KIND]]
    margin = p[MARGIN]
    g[0] = p[SHAPE]
    for i in range(3):
        g[CORE + i] = max(p[HALF + i] - margin, 0.0)
        g[5 + i] = b[(PX + i) * LANES + l]
    g[ROUND] = margin
    g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15], g[16] = rotation.matrix(
        b[QW * LANES + l], b[QX * LANES + l], b[QY * LANES + l], b[QZ * LANES + l]
    )


@_njit
def _lever(f: Bodies, row: int, c: Any, x: float, y: float, z: float, j: Any) -> tuple[float, float]:
    """Fill j with [n; r x n] in B for a contact's point and a direction; (speed along it, inverse mass along it)."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    p = f.params[f.heads[slot // LANES, BLOCK_KIND]]
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation.matrix(
        b[QW * LANES + l], b[QX * LANES + l], b[QY * LANES + l], b[QZ * LANES + l]
    )
    dx = c[C_POINT] - b[PX * LANES + l]
    dy = c[C_POINT + 1] - b[PY * LANES + l]
    dz = c[C_POINT + 2] - b[PZ * LANES + l]
    mx, my, mz = r11 * x + r21 * y + r31 * z, r12 * x + r22 * y + r32 * z, r13 * x + r23 * y + r33 * z
    rx, ry, rz = r11 * dx + r21 * dy + r31 * dz, r12 * dx + r22 * dy + r32 * dz, r13 * dx + r23 * dy + r33 * dz
    j[0], j[1], j[2] = mx, my, mz
    j[3], j[4], j[5] = ry * mz - rz * my, rz * mx - rx * mz, rx * my - ry * mx
    speed = inverse = 0.0
    for i in range(6):
        speed += j[i] * b[(NU + i) * LANES + l]
        for k in range(6):
            inverse += j[i] * p[MINV + 6 * i + k] * j[k]
    return speed, inverse


@_inline
def _along(f: Bodies, levers: Any, c: Any, x: float, y: float, z: float) -> tuple[float, float, float]:
    """(speed of approach, inverse mass of row a, that of row b) of a contact along a direction; the levers of both are in
    ``levers`` (2, 6). What is fixed has no speed, and infinite mass."""
    a, b = int(c[C_A]), int(c[C_B])
    va, ka = _lever(f, a, c, x, y, z, levers[0])
    vb, kb = (0.0, 0.0) if b < 0 else _lever(f, b, c, x, y, z, levers[1])
    return va - vb, ka, kb


@_inline
def _impulse(f: Bodies, levers: Any, c: Any, size: float) -> None:
    """An impulse on row b, and its reaction on row a, along the direction of the levers."""
    for side in range(2):
        row = int(c[C_A]) if side == 0 else int(c[C_B])
        if row < 0:
            continue
        slot, j = f.slots[row], levers[side]
        b, l = f.blocks[slot // LANES], slot % LANES
        p = f.params[f.heads[slot // LANES, BLOCK_KIND]]
        for i in range(6):
            change = 0.0
            for k in range(6):
                change += p[MINV + 6 * i + k] * j[k]
            b[(NU + i) * LANES + l] += change * (-size if side == 0 else size)


@_inline
def _push_apart(f: Bodies, levers: Any, c: Any, limit: float) -> float:
    """Impulse along the normal of a contact that brings its approach to ``limit``; the sum of its impulses is not
    negative. Returns the sum."""
    had = c[C_IMPULSE]
    approach, ka, kb = _along(f, levers, c, c[C_NORMAL], c[C_NORMAL + 1], c[C_NORMAL + 2])
    if ka + kb <= 0.0:
        return float(had)
    size = max(had + (approach - limit) / (ka + kb), 0.0)
    _impulse(f, levers, c, size - had)
    return size


@_njit
def list_pairs(f: Bodies, order: Any, count: int, t: Touch) -> None:
    """All pairs that can meet before something has moved by the skin. ``order`` is kept sorted by lowest x."""
    for i in range(1, count):  # insertion sort: the order hardly changes
        row = order[i]
        key = _low(f, row)
        k = i - 1
        while k >= 0 and _low(f, order[k]) > key:
            order[k + 1] = order[k]
            k -= 1
        order[k + 1] = row
    n = 0
    for i in range(count):
        ra = order[i]
        xa, ya, za, reach = _ball(f, ra)
        for k in range(i + 1, count):
            rb = order[k]
            xb, yb, zb, rad = _ball(f, rb)
            if xb - rad > xa + reach + SKIN:
                break
            far = reach + rad + SKIN
            dx, dy, dz = xb - xa, yb - ya, zb - za
            if abs(dy) < far and dx * dx + dy * dy + dz * dz < far * far:
                n = _add_pair(t, n, min(ra, rb), max(ra, rb))
        for k in range(t.fixed.shape[0]):
            g = t.fixed[k]
            dx, dy, dz = xa - g[5], ya - g[6], za - g[7]
            if g[0] == TRIANGLE:
                far = reach + SKIN + g[1]
                if dx * dx + dy * dy + dz * dz < far * far:
                    n = _add_pair(t, n, ra, -1 - k)
                continue
            bx, by, bz = (
                abs(g[8] * dx + g[11] * dy + g[14] * dz) - g[1],
                abs(g[9] * dx + g[12] * dy + g[15] * dz) - g[2],
                abs(g[10] * dx + g[13] * dy + g[16] * dz) - g[3],
            )
            if max(bx, by, bz) < reach + SKIN + g[ROUND]:
                n = _add_pair(t, n, ra, -1 - k)
    t.counters[N_PAIRS] = min(n, t.pairs.shape[0])
    t.counters[N_LOST] += max(n - t.pairs.shape[0], 0)
    t.travel[0] = 0.0


@_njit
def _add_pair(t: Touch, n: int, a: int, b: int) -> int:
    if n < t.pairs.shape[0]:
        t.pairs[n, 0], t.pairs[n, 1] = a, b
    return n + 1


@_njit
def _ball(f: Bodies, row: int) -> tuple[float, float, float, float]:
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    p = f.params[f.heads[slot // LANES, BLOCK_KIND]]
    return b[PX * LANES + l], b[PY * LANES + l], b[PZ * LANES + l], p[REACH]


@_njit
def _low(f: Bodies, row: int) -> float:
    x, _, _, reach = _ball(f, row)
    return x - reach


@_njit
def _add_contact(
    t: Touch, n: int, a: int, b: int, x: float, y: float, z: float, nx: float, ny: float, nz: float, gap: float
) -> int:
    if n >= t.contacts.shape[0]:
        t.counters[N_LOST] += 1
        return n
    c = t.contacts[n]
    c[C_A], c[C_B] = a, b
    c[C_POINT], c[C_POINT + 1], c[C_POINT + 2] = x, y, z
    c[C_NORMAL], c[C_NORMAL + 1], c[C_NORMAL + 2] = nx, ny, nz
    c[C_GAP], c[C_IMPULSE] = gap, 0.0
    c[C_FRICTION], c[C_FRICTION + 1], c[C_FRICTION + 2] = 0.0, 0.0, 0.0
    return n + 1


@_njit
def _contacts_of_pair(f: Bodies, t: Touch, n: int, ra: int, rb: int, h: float) -> int:
    """Contacts of a pair: the nearest points, and the points of flat sides that are as near."""
    ga, gb = t.shapes[0], t.shapes[1]
    geometry(f, ra, ga)
    if rb >= 0:
        geometry(f, rb, gb)
    else:
        for i in range(GEOMETRY):
            gb[i] = t.fixed[-1 - rb, i]
    round_ = ga[ROUND] + gb[ROUND]
    pa, pb, point = t.work[16], t.work[17], t.work[18]
    far = shapes.distance(ga, gb, t.work[0:16], pa, pb)
    reach = _speed(f, ra) * h + (_speed(f, rb) * h if rb >= 0 else 0.0) + SLOP
    if far - round_ > reach:
        return n
    other = rb if rb >= 0 else rb - 1
    if far <= 0.0:  # the cores overlap: part them along the line of centres, or from a side of what is fixed
        nx, ny, nz = gb[5] - ga[5], gb[6] - ga[6], gb[7] - ga[7]
        if gb[0] == TRIANGLE:
            fx, fy, fz = shapes.normal(gb)
            facing = math.copysign(1.0, nx * fx + ny * fy + nz * fz)
            nx, ny, nz = facing * fx, facing * fy, facing * fz
        elif rb < 0 and gb[0] == shapes.BOX:  # a wall: through its nearest side
            least, axis, facing = math.inf, 0, 1.0
            for i in range(3):
                along = gb[8 + i] * nx + gb[11 + i] * ny + gb[14 + i] * nz
                if gb[1 + i] - abs(along) < least:
                    least, axis, facing = gb[1 + i] - abs(along), i, math.copysign(1.0, along)
            nx, ny, nz = facing * gb[8 + axis], facing * gb[11 + axis], facing * gb[14 + axis]
        s = math.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = (nx / s, ny / s, nz / s) if s > 1e-9 else (0.0, 0.0, 1.0)
        return _add_contact(
            t, n, ra, other, 0.5 * (ga[5] + gb[5]), 0.5 * (ga[6] + gb[6]), 0.5 * (ga[7] + gb[7]), nx, ny, nz, -round_
        )
    nx, ny, nz = (pb[0] - pa[0]) / far, (pb[1] - pa[1]) / far, (pb[2] - pa[2]) / far
    x, y, z = pa[0] + ga[ROUND] * nx, pa[1] + ga[ROUND] * ny, pa[2] + ga[ROUND] * nz
    n = _add_contact(t, n, ra, other, x, y, z, nx, ny, nz, far - round_)
    for side in range(2):
        g, o = (ga, gb) if side == 0 else (gb, ga)
        sign = 1.0 if side == 0 else -1.0
        base = pb if side == 0 else pa
        for i in range(shapes.points(g)):
            shapes.feature(g, i, sign * nx, sign * ny, sign * nz, point)
            gap = sign * (nx * (base[0] - point[0]) + ny * (base[1] - point[1]) + nz * (base[2] - point[2]))
            if gap < 0.0 or (gap > far + NEAR and gap - round_ > reach):
                continue
            # the point bears only where the other body faces it
            px, py, pz = point[0] + sign * nx * gap, point[1] + sign * ny * gap, point[2] + sign * nz * gap
            if not _holds(o, px, py, pz):
                continue
            away = g[ROUND]
            n = _add_contact(
                t, n, ra, other, point[0] + sign * away * nx, point[1] + sign * away * ny,
                point[2] + sign * away * nz, nx, ny, nz, gap - round_,
            )  # fmt: skip
    return n


@_njit
def _holds(g: Any, x: float, y: float, z: float) -> bool:
    """Whether a point lies in a core, or within a hair of it."""
    dx, dy, dz = x - g[5], y - g[6], z - g[7]
    if g[0] == TRIANGLE:
        return shapes.in_prism(g, dx, dy, dz, 1e-3)
    bx = abs(g[8] * dx + g[11] * dy + g[14] * dz)
    by = abs(g[9] * dx + g[12] * dy + g[15] * dz)
    bz = abs(g[10] * dx + g[13] * dy + g[16] * dz)
    hair = 1e-3
    if g[0] == shapes.BOX:
        return bx <= g[1] + hair and by <= g[2] + hair and bz <= g[3] + hair
    return g[0] == shapes.CYLINDER and bx <= g[1] + hair and math.sqrt(by * by + bz * bz) <= g[2] + hair


@_njit
def _speed(f: Bodies, row: int) -> float:
    """Greatest speed that any point of a body can have."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    reach = f.params[f.heads[slot // LANES, BLOCK_KIND]][REACH]
    u, v, w = b[NU * LANES + l], b[(NU + 1) * LANES + l], b[(NU + 2) * LANES + l]
    p, q, r = b[(NU + 3) * LANES + l], b[(NU + 4) * LANES + l], b[(NU + 5) * LANES + l]
    return math.sqrt(u * u + v * v + w * w) + reach * math.sqrt(p * p + q * q + r * r)


@_njit
def _contacts_with_bed(f: Bodies, t: Touch, n: int, row: int, h: float, bed: Any, net: Any, cursor: Any) -> int:
    """Contacts of a body with the sea bed, and its clearance from now on."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    way = _speed(f, row) * h * (1.0 + bed.slope)
    x, y, z, reach = _ball(f, row)
    gap = bed_depth(bed, net, cursor, row, x, y) - z - reach * (1.0 + bed.slope) - way
    if not gap <= 0.0:  # far above, or no bed is known here
        b[CLEARANCE * LANES + l] = gap if gap > 0.0 else 1.0
        return n
    b[CLEARANCE * LANES + l] = 0.0
    g, point = t.shapes[0], t.work[18]
    geometry(f, row, g)
    for i in range(POINTS if g[0] != shapes.SPHERE else 1):
        shapes.feature(g, i, 0.0, 0.0, 1.0, point)
        depth = bed_depth(bed, net, cursor, row, point[0], point[1])
        sx = (bed_depth(bed, net, cursor, row, point[0] + 0.05, point[1]) - depth) / 0.05
        sy = (bed_depth(bed, net, cursor, row, point[0], point[1] + 0.05) - depth) / 0.05
        s = 1.0 / math.sqrt(1.0 + sx * sx + sy * sy)
        gap = (depth - point[2]) * s - g[ROUND]
        if gap > way + SLOP or not math.isfinite(gap + s):
            continue
        nx, ny, nz, away = -sx * s, -sy * s, s, g[ROUND]
        n = _add_contact(
            t, n, row, BED, point[0] + away * nx, point[1] + away * ny, point[2] + away * nz, nx, ny, nz, gap
        )
    return n


@_njit
def resolve(
    f: Bodies, order: Any, count: int, t: Touch, fastest: float, h: float, bed: Any, net: Any, cursor: Any, tick: int
) -> int:
    """All contacts of this tick; ``fastest`` is the greatest speed of any body. Returns how many touch."""
    t.travel[0] += 2.0 * fastest * h
    if t.travel[0] > SKIN or t.counters[N_STALE]:
        t.counters[N_STALE] = 0
        list_pairs(f, order, count, t)
    n = 0
    for i in range(t.counters[N_PAIRS]):
        n = _contacts_of_pair(f, t, n, t.pairs[i, 0], t.pairs[i, 1], h)
    # A body is looked at only when it may have used up its last clearance, were it as fast as the fastest: the test stands
    # here because a call costs more than all the rest of it (NamedTuples are counted in and out).
    way = fastest * h * (1.0 + bed.slope)
    for i in range(count):
        slot = f.slots[order[i]]
        b, l = f.blocks[slot // LANES], slot % LANES
        b[CLEARANCE * LANES + l] -= way
        if not b[CLEARANCE * LANES + l] > 0.0:
            n = _contacts_with_bed(f, t, n, order[i], h, bed, net, cursor)
    if n == 0:
        return 0
    for i in range(n):
        c = t.contacts[i]
        c[C_SPEED], _, _ = _along(f, t.levers, c, c[C_NORMAL], c[C_NORMAL + 1], c[C_NORMAL + 2])
    for _ in range(SWEEPS):
        for i in range(n):
            c = t.contacts[i]
            c[C_IMPULSE] = _push_apart(f, t.levers, c, max(c[C_GAP], 0.0) / h)
            if c[C_IMPULSE] > 0.0:
                _friction(f, t, c)
    touching = 0
    for i in range(n):
        c = t.contacts[i]
        if c[C_IMPULSE] > 0.0 or c[C_GAP] < 0.0:
            touching += 1
            a, b = int(c[C_A]), int(c[C_B])
            meet(t.meetings, a, b if b >= BED else -2 - t.meetings.owners[-2 - b], tick, c[C_SPEED])
            if b >= 0:
                meet(t.meetings, b, a, tick, c[C_SPEED])
            _separate(f, t, c, h)
    return touching


@_njit
def _friction(f: Bodies, t: Touch, c: Any) -> None:
    """Friction against the sliding of a contact, at most FRICTION times its impulse."""
    slide = t.work[19]
    for i in range(3):
        slide[i], _, _ = _along(f, t.levers, c, 1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0)
    along = slide[0] * c[C_NORMAL] + slide[1] * c[C_NORMAL + 1] + slide[2] * c[C_NORMAL + 2]
    for i in range(3):
        slide[i] -= along * c[C_NORMAL + i]
    speed = math.sqrt(slide[0] * slide[0] + slide[1] * slide[1] + slide[2] * slide[2])
    if speed < 1e-12:
        return
    for i in range(3):
        slide[i] /= speed
    _, ka, kb = _along(f, t.levers, c, slide[0], slide[1], slide[2])
    if ka + kb <= 0.0:
        return
    # the sum of a contact's friction stays within the cone
    total = t.work[20]
    size = 0.0
    for i in range(3):
        total[i] = c[C_FRICTION + i] + slide[i] * speed / (ka + kb)
        size += total[i] * total[i]
    size = math.sqrt(size)
    share = min(1.0, FRICTION * c[C_IMPULSE] / size) if size > 0.0 else 1.0
    size = 0.0
    for i in range(3):
        change = share * total[i] - c[C_FRICTION + i]
        c[C_FRICTION + i] = share * total[i]
        slide[i] = change
        size += change * change
    size = math.sqrt(size)
    if size == 0.0:
        return
    _along(f, t.levers, c, slide[0] / size, slide[1] / size, slide[2] / size)
    _impulse(f, t.levers, c, size)


@_njit
def _separate(f: Bodies, t: Touch, c: Any, h: float) -> None:
    """Move overlapping bodies apart by a part of the overlap, the lighter one farther."""
    push = min(PUSH * max(-c[C_GAP] - SLOP, 0.0), GENTLY * h)
    if push == 0.0:
        return
    nx, ny, nz = c[C_NORMAL], c[C_NORMAL + 1], c[C_NORMAL + 2]
    _, ka, kb = _along(f, t.levers, c, nx, ny, nz)
    if ka + kb <= 0.0:
        return
    a, b = int(c[C_A]), int(c[C_B])
    _shift(f, a, -push * ka / (ka + kb), nx, ny, nz)
    if b >= 0:
        _shift(f, b, push * kb / (ka + kb), nx, ny, nz)


@_njit
def _shift(f: Bodies, row: int, by: float, nx: float, ny: float, nz: float) -> None:
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    b[PX * LANES + l] += by * nx
    b[PY * LANES + l] += by * ny
    b[PZ * LANES + l] += by * nz


@_njit
def survey(f: Bodies, order: Any, count: int, last: Any, faults: Any) -> tuple[int, float]:
    """Hold bodies whose state is no longer finite at their last finite one. (how many are new, greatest speed)."""
    new, fastest = 0, 0.0
    for i in range(count):
        row = order[i]
        slot = f.slots[row]
        b, l = f.blocks[slot // LANES], slot % LANES
        total = 0.0
        for k in range(RIGID_ROWS):
            total += b[k * LANES + l]
        if faults[row] == 0 and math.isfinite(total):
            for k in range(RIGID_ROWS):
                last[row, k] = b[k * LANES + l]
            fastest = max(fastest, _speed(f, row))
        elif b[PRESENT * LANES + l] != 0.0:
            for k in range(STATE_ROWS):
                b[k * LANES + l] = last[row, k] if k < NU else 0.0
            new += 1 - faults[row]
            faults[row] = 1
    return new, fastest
