"""Narrow phase of contact detection, compiled. It finds the points at which a body touches another body, an obstacle or
the bed, now or within the step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import shapes
from wavesim_server.dynamics.bodies import BodyArrays, bounding_sphere, geometry, speed_bound
from wavesim_server.dynamics.contact_events import BED
from wavesim_server.dynamics.contact_memory import (
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
    OVERLAP_TOLERANCE,
    POINT,
    ContactMemory,
)
from wavesim_server.dynamics.shapes import (
    BOX,
    CORE,
    CORE_MARGIN,
    CYLINDER,
    GEOMETRY,
    HALF_X,
    HALF_Y,
    HALF_Z,
    MAX_FEATURES,
    R11,
    R21,
    R31,
    SHAPE_CODE,
    SPHERE,
    TRIANGLE,
    X,
    Y,
    Z,
    to_body,
)
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.seabed import SeaBed, bed_depth

FEATURE_TOLERANCE = (
    #: maximum additional distance in m, relative to the nearest point, at which another point of a flat side still
    #: carries load
    0.01
)
EDGE_TOLERANCE = 1e-3  #: tolerance in m by which a contact point may lie beyond the edge of the other body's side


class ContactPoint(NamedTuple):
    """Contact point between two bodies, in W: its position, the normal from the first body to the second, and the gap."""

    x: float
    y: float
    z: float
    nx: float
    ny: float
    nz: float
    gap: float


@device_function
def _add_contact(t: ContactMemory, n: int, a: int, b: int, at: ContactPoint) -> int:
    """Add a contact between the bodies ``a`` and ``b`` and return the number of contacts."""
    if n >= t.contacts.shape[0]:
        t.counters[N_LOST] += 1
        return n
    c = t.contacts[n]
    c[C_A], c[C_B] = a, b
    c[C_POINT], c[C_POINT + 1], c[C_POINT + 2] = at.x, at.y, at.z
    c[C_NORMAL], c[C_NORMAL + 1], c[C_NORMAL + 2] = at.nx, at.ny, at.nz
    c[C_GAP], c[C_IMPULSE] = at.gap, 0.0
    c[C_FRICTION], c[C_FRICTION + 1], c[C_FRICTION + 2] = 0.0, 0.0, 0.0
    return n + 1


@device_function
def contacts_of_pair(f: BodyArrays, t: ContactMemory, n: int, ra: int, rb: int, h: float) -> int:
    """Find the contacts of a pair of bodies: their nearest points and, on flat sides, further points that are about as
    near.
    """
    ga, gb = t.shapes[0], t.shapes[1]
    geometry(f, ra, ga)
    if rb >= 0:
        geometry(f, rb, gb)
    else:
        for i in range(GEOMETRY):
            gb[i] = t.obstacles[-1 - rb, i]
    round_ = ga[CORE_MARGIN] + gb[CORE_MARGIN]
    pa, pb, point = t.scratch[ON_A], t.scratch[ON_B], t.scratch[POINT]
    far = shapes.distance(ga, gb, t.scratch[:ON_A], pa, pb)
    reach = speed_bound(f, ra) * h + (speed_bound(f, rb) * h if rb >= 0 else 0.0) + OVERLAP_TOLERANCE
    if far - round_ > reach:
        return n
    other = rb if rb >= 0 else rb - 1
    if far <= 0.0:  # the cores overlap: separate them along the line of centres, or through a side of a fixed body
        nx, ny, nz = gb[X] - ga[X], gb[Y] - ga[Y], gb[Z] - ga[Z]
        if gb[SHAPE_CODE] == TRIANGLE:
            fx, fy, fz = shapes.triangle_normal(gb)
            facing = math.copysign(1.0, nx * fx + ny * fy + nz * fz)
            nx, ny, nz = facing * fx, facing * fy, facing * fz
        elif rb < 0 and gb[SHAPE_CODE] == BOX:  # a wall: through its nearest side
            least, axis, facing = math.inf, 0, 1.0
            for i in range(3):
                along = gb[R11 + i] * nx + gb[R21 + i] * ny + gb[R31 + i] * nz
                if gb[CORE + i] - abs(along) < least:
                    least, axis, facing = gb[CORE + i] - abs(along), i, math.copysign(1.0, along)
            nx, ny, nz = facing * gb[R11 + axis], facing * gb[R21 + axis], facing * gb[R31 + axis]
        s = math.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = (nx / s, ny / s, nz / s) if s > 1e-9 else (0.0, 0.0, 1.0)
        x, y, z = 0.5 * (ga[X] + gb[X]), 0.5 * (ga[Y] + gb[Y]), 0.5 * (ga[Z] + gb[Z])
        return _add_contact(t, n, ra, other, ContactPoint(x, y, z, nx, ny, nz, -round_))
    nx, ny, nz = (pb[0] - pa[0]) / far, (pb[1] - pa[1]) / far, (pb[2] - pa[2]) / far
    x, y, z = pa[0] + ga[CORE_MARGIN] * nx, pa[1] + ga[CORE_MARGIN] * ny, pa[2] + ga[CORE_MARGIN] * nz
    n = _add_contact(t, n, ra, other, ContactPoint(x, y, z, nx, ny, nz, far - round_))
    for side in range(2):
        g, o = (ga, gb) if side == 0 else (gb, ga)
        sign = 1.0 if side == 0 else -1.0
        base = pb if side == 0 else pa
        for i in range(shapes.feature_count(g)):
            shapes.feature_point(g, i, sign * nx, sign * ny, sign * nz, point)
            gap = sign * (nx * (base[0] - point[0]) + ny * (base[1] - point[1]) + nz * (base[2] - point[2]))
            if gap < 0.0 or (gap > far + FEATURE_TOLERANCE and gap - round_ > reach):
                continue
            # the point carries load only where the other body faces it
            px, py, pz = point[0] + sign * nx * gap, point[1] + sign * ny * gap, point[2] + sign * nz * gap
            if not _is_in_core(o, px, py, pz):
                continue
            away = g[CORE_MARGIN]
            x, y, z = (
                point[0] + sign * away * nx,
                point[1] + sign * away * ny,
                point[2] + sign * away * nz,
            )
            n = _add_contact(t, n, ra, other, ContactPoint(x, y, z, nx, ny, nz, gap - round_))
    return n


@device_function
def may_touch(f: BodyArrays, t: ContactMemory, ra: int, rb: int, h: float) -> bool:
    """Return whether two bodies touch, or may touch within the step."""
    ga, gb = t.shapes[0], t.shapes[1]
    geometry(f, ra, ga)
    geometry(f, rb, gb)
    far = shapes.distance(ga, gb, t.scratch[:ON_A], t.scratch[ON_A], t.scratch[ON_B])
    return far - ga[CORE_MARGIN] - gb[CORE_MARGIN] <= (speed_bound(f, ra) + speed_bound(f, rb)) * h + OVERLAP_TOLERANCE


@device_function
def _is_in_core(g: Floats, x: float, y: float, z: float) -> bool:
    """Return whether a point is inside a core, within rounding errors."""
    dx, dy, dz = x - g[X], y - g[Y], z - g[Z]
    if g[SHAPE_CODE] == TRIANGLE:
        return shapes.is_over_triangle(g, dx, dy, dz, EDGE_TOLERANCE)
    bx, by, bz = to_body(g, dx, dy, dz)
    if g[SHAPE_CODE] == BOX:
        return (
            abs(bx) <= g[HALF_X] + EDGE_TOLERANCE
            and abs(by) <= g[HALF_Y] + EDGE_TOLERANCE
            and abs(bz) <= g[HALF_Z] + EDGE_TOLERANCE
        )
    return (
        g[SHAPE_CODE] == CYLINDER
        and abs(bx) <= g[HALF_X] + EDGE_TOLERANCE
        and math.sqrt(by * by + bz * bz) <= g[HALF_Y] + EDGE_TOLERANCE
    )


@device_function
def contacts_with_bed(f: BodyArrays, t: ContactMemory, n: int, row: int, h: float, sea_bed: SeaBed) -> int:
    """Find the contacts of a body with the sea bed, and update the clearance of the body."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    bed, net, cursor = sea_bed.parameters, sea_bed.mesh, sea_bed.cursors
    way = speed_bound(f, row) * h * (1.0 + bed.max_slope)
    x, y, z, reach = bounding_sphere(f, row)
    gap = bed_depth(bed, net, cursor, row, x, y) - z - reach * (1.0 + bed.max_slope) - way
    if not gap <= 0.0:  # far above the bed, or the bed is unknown here
        b[B.CLEARANCE * LANES + l] = gap if gap > 0.0 else 1.0
        return n
    b[B.CLEARANCE * LANES + l] = 0.0
    g, point = t.shapes[0], t.scratch[POINT]
    geometry(f, row, g)
    for i in range(MAX_FEATURES if g[SHAPE_CODE] != SPHERE else 1):
        shapes.feature_point(g, i, 0.0, 0.0, 1.0, point)
        depth = bed_depth(bed, net, cursor, row, point[0], point[1])
        sx = (bed_depth(bed, net, cursor, row, point[0] + 0.05, point[1]) - depth) / 0.05
        sy = (bed_depth(bed, net, cursor, row, point[0], point[1] + 0.05) - depth) / 0.05
        s = 1.0 / math.sqrt(1.0 + sx * sx + sy * sy)
        gap = (depth - point[2]) * s - g[CORE_MARGIN]
        if gap > way + OVERLAP_TOLERANCE or not math.isfinite(gap + s):
            continue
        nx, ny, nz, away = -sx * s, -sy * s, s, g[CORE_MARGIN]
        x, y, z = point[0] + away * nx, point[1] + away * ny, point[2] + away * nz
        n = _add_contact(t, n, row, BED, ContactPoint(x, y, z, nx, ny, nz, gap))
    return n
