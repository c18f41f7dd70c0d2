"""Where two bodies touch, or a body and an obstacle or the sea bed, or may do so within the step: contacts, compiled."""

from __future__ import annotations

import math

from wavesim_sdk.kernel_compiler import device_function
from wavesim_server.dynamics import shapes
from wavesim_server.dynamics.bodies import Bodies, bounding_ball, geometry, speed_bound
from wavesim_server.dynamics.meetings import BED
from wavesim_server.dynamics.rows import CLEARANCE, LANES
from wavesim_server.dynamics.shapes import (
    BOX,
    CODE,
    CORE,
    CYLINDER,
    GEOMETRY,
    HALF_X,
    HALF_Y,
    HALF_Z,
    POINTS,
    R11,
    R21,
    R31,
    ROUND,
    SPHERE,
    TRIANGLE,
    X,
    Y,
    Z,
    to_body,
)
from wavesim_server.dynamics.touch import (
    C_A,
    C_B,
    C_FRICTION,
    C_GAP,
    C_IMPULSE,
    C_NORMAL,
    C_POINT,
    N_LOST,
    ON_A,
    ON_B,
    POINT,
    SLOP,
    Touch,
)
from wavesim_server.dynamics.types import Floats, Ints
from wavesim_server.seabed import Bed, Net, bed_depth

NEAR = 0.01  #: points of a side within this of the nearest one bear too, m
HAIR = 1e-3  #: and where the other body ends no farther than this beside them, m


@device_function
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


@device_function
def contacts_of_pair(f: Bodies, t: Touch, n: int, ra: int, rb: int, h: float) -> int:
    """Contacts of a pair: the nearest points, and the points of flat sides that are as near."""
    ga, gb = t.shapes[0], t.shapes[1]
    geometry(f, ra, ga)
    if rb >= 0:
        geometry(f, rb, gb)
    else:
        for i in range(GEOMETRY):
            gb[i] = t.fixed[-1 - rb, i]
    round_ = ga[ROUND] + gb[ROUND]
    pa, pb, point = t.work[ON_A], t.work[ON_B], t.work[POINT]
    far = shapes.distance(ga, gb, t.work[:ON_A], pa, pb)
    reach = speed_bound(f, ra) * h + (speed_bound(f, rb) * h if rb >= 0 else 0.0) + SLOP
    if far - round_ > reach:
        return n
    other = rb if rb >= 0 else rb - 1
    if far <= 0.0:  # the cores overlap: part them along the line of centres, or from a side of what is fixed
        nx, ny, nz = gb[X] - ga[X], gb[Y] - ga[Y], gb[Z] - ga[Z]
        if gb[CODE] == TRIANGLE:
            fx, fy, fz = shapes.normal(gb)
            facing = math.copysign(1.0, nx * fx + ny * fy + nz * fz)
            nx, ny, nz = facing * fx, facing * fy, facing * fz
        elif rb < 0 and gb[CODE] == BOX:  # a wall: through its nearest side
            least, axis, facing = math.inf, 0, 1.0
            for i in range(3):
                along = gb[R11 + i] * nx + gb[R21 + i] * ny + gb[R31 + i] * nz
                if gb[CORE + i] - abs(along) < least:
                    least, axis, facing = gb[CORE + i] - abs(along), i, math.copysign(1.0, along)
            nx, ny, nz = facing * gb[R11 + axis], facing * gb[R21 + axis], facing * gb[R31 + axis]
        s = math.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = (nx / s, ny / s, nz / s) if s > 1e-9 else (0.0, 0.0, 1.0)
        return _add_contact(
            t, n, ra, other, 0.5 * (ga[X] + gb[X]), 0.5 * (ga[Y] + gb[Y]), 0.5 * (ga[Z] + gb[Z]), nx, ny, nz, -round_
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
            if not _holds_point(o, px, py, pz):
                continue
            away = g[ROUND]
            n = _add_contact(
                t, n, ra, other, point[0] + sign * away * nx, point[1] + sign * away * ny,
                point[2] + sign * away * nz, nx, ny, nz, gap - round_,
            )  # fmt: skip
    return n


@device_function
def touches(f: Bodies, t: Touch, ra: int, rb: int, h: float) -> bool:
    """Whether two bodies touch, or may do so within the step."""
    ga, gb = t.shapes[0], t.shapes[1]
    geometry(f, ra, ga)
    geometry(f, rb, gb)
    far = shapes.distance(ga, gb, t.work[:ON_A], t.work[ON_A], t.work[ON_B])
    return far - ga[ROUND] - gb[ROUND] <= (speed_bound(f, ra) + speed_bound(f, rb)) * h + SLOP


@device_function
def _holds_point(g: Floats, x: float, y: float, z: float) -> bool:
    """Whether a point lies in a core, or within a hair of it."""
    dx, dy, dz = x - g[X], y - g[Y], z - g[Z]
    if g[CODE] == TRIANGLE:
        return shapes.in_prism(g, dx, dy, dz, HAIR)
    bx, by, bz = to_body(g, dx, dy, dz)
    if g[CODE] == BOX:
        return abs(bx) <= g[HALF_X] + HAIR and abs(by) <= g[HALF_Y] + HAIR and abs(bz) <= g[HALF_Z] + HAIR
    return g[CODE] == CYLINDER and abs(bx) <= g[HALF_X] + HAIR and math.sqrt(by * by + bz * bz) <= g[HALF_Y] + HAIR


@device_function
def contacts_with_bed(f: Bodies, t: Touch, n: int, row: int, h: float, bed: Bed, net: Net, cursor: Ints) -> int:
    """Contacts of a body with the sea bed, and its clearance from now on."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    way = speed_bound(f, row) * h * (1.0 + bed.slope)
    x, y, z, reach = bounding_ball(f, row)
    gap = bed_depth(bed, net, cursor, row, x, y) - z - reach * (1.0 + bed.slope) - way
    if not gap <= 0.0:  # far above, or no bed is known here
        b[CLEARANCE * LANES + l] = gap if gap > 0.0 else 1.0
        return n
    b[CLEARANCE * LANES + l] = 0.0
    g, point = t.shapes[0], t.work[POINT]
    geometry(f, row, g)
    for i in range(POINTS if g[CODE] != SPHERE else 1):
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
