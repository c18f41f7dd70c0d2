"""Rays in water whose sound speed is linear in tetrahedra (:mod:`sound_field`); compiled.

In a tetrahedron with the sound speed c and its gradient g at a point of the ray, the ray is an arc of a circle. The part
of g across the vertical plane through source and receiver is neglected: it would shorten the travel time t over a range
L by t (g L / c)^2 / 24 at most, but its jumps from one tetrahedron to the next would split rays that run along a grid
plane. Let t be the direction of the ray, and let K = -(g - (g.t) t) / c be its curvature. With the parameter
s = 2 tan(angle / 2) / |K|, the arc is rational:

    x(s) = x0 + (s t + s^2/2 K) / (1 + q),   t(s) = ((1 - q) t + s K) / (1 + q),   q = s^2 |K|^2 / 4

Therefore, the intersection with a plane, the turning point and the point nearest to a receiver are roots of quadratic
equations, and no step size is needed. The travel time over a chord d from ca to cb is (2/|g|) asinh(|g| d / (2 sqrt(ca
cb))). A ray leaves a tetrahedron through the face that it reaches first. If it reaches two faces at the same time, the
one with the lower index is used. The next tetrahedron follows from the face alone, never from rounded coordinates, so a
ray cannot get lost between two tetrahedra.

At the bed, a ray is mirrored in the tangent plane, as in :mod:`range_dependent_rays`. The point at which a ray is nearest
to its target serves to aim it (:mod:`volume_aiming`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics.root_bracket import Bracket, estimate_root, narrow_bracket
from wavesim_server.acoustics.sound_field import DOWN, EAST, NORTH, Axis, axes_at, corner_speeds, make_axis, value_at
from wavesim_server.acoustics.types import Record, Vector
from wavesim_server.acoustics.waveguides import (
    BED,
    BEDS_MET,
    BOUNCES_MET,
    HISTORY,
    LEVELS,
    MAX_LEGS,
    SINE,
    SPEED,
    SURFACE,
    TURNED,
    TURNS_MET,
    RayStart,
    Waveguide,
    X,
    Y,
    bed_depth_at,
    met,
    reflect_off_bed,
)
from wavesim_server.elementary import asinh, atan2

DENSE_TRACK = 4096  #: number of points from which on a track has points at closer distances
MAX_ARCS = 100_000  #: maximum number of arcs of a ray; a ray ends long before
#: the faces of a tetrahedron: the end of its first axis, equal first and middle coordinates, equal middle and last
#: coordinates, the start of its last axis; and no face
FAR, FIRST_MIDDLE, MIDDLE_LAST, NEAR, INSIDE = range(5)
#: a ray that has come near the receiver is followed until its distance from the receiver exceeds this fraction of its
#: maximum range
BEYOND_RECEIVER = 0.02


class Arc(NamedTuple):
    """An arc of a ray: its start, its direction and its curvature there, and the square of the curvature over 4."""

    x: float
    y: float
    z: float
    tx: float
    ty: float
    tz: float
    kx: float
    ky: float
    kz: float
    quarter: float


class RayTarget(NamedTuple):
    """A receiver, and the reversals and bounces of the rays that are aimed at it.

    Rays of a fan have no target (``bounces`` < 0); only their crossings of the receiver's depth matter.
    """

    position: Vector
    reversals: int
    bounces: int


class ClosestApproach(NamedTuple):
    """The point at which a ray is nearest to its target, relative to the target, with the ray's direction there and the
    number of reversals up to there, which is -1 if the ray does not pass the target.

    ``points`` is the number of points in the track of the ray. If a bounce comes just before the target, the arc
    before the bounce is continued, and ``beyond`` is the distance in m from the bounce to the point.
    """

    reversals: int
    points: int
    x: float
    y: float
    z: float
    rx: float
    ry: float
    rz: float
    beyond: float


@always_inline
def _root(distance: float, slope: float, bend: float, quarter: float, entered: bool) -> float:
    """Return the parameter at which an arc meets a plane that is ``distance`` m ahead; infinite if it does not.

    ``slope`` and ``bend`` are the components of the direction and of half the curvature towards the plane. A ray that
    has just entered through this plane is exactly on it, and the root at its start does not count.
    """
    if entered:
        return -slope / bend if slope < 0.0 and bend > 0.0 else math.inf
    ahead = max(distance, 0.0)
    bend -= ahead * quarter
    square = slope * slope + 4.0 * bend * ahead
    if square < 0.0:
        return math.inf
    root = math.sqrt(square)
    if slope > 0.0:
        return 2.0 * ahead / (slope + root)
    return (root - slope) / (2.0 * bend) if bend > 0.0 else math.inf


@always_inline
def _along(axis: int, first: Axis, middle: Axis, a: float, b: float, c: float) -> float:
    """Return the component along an axis of W of a vector with the components (a, b, c) along the sorted axes."""
    return a if first.name == axis else b if middle.name == axis else c


@always_inline
def _level(first: Axis, middle: Axis, last: Axis) -> int:
    """Return the index of the level above a point."""
    return first.cell if first.name == DOWN else middle.cell if middle.name == DOWN else last.cell


@always_inline
def _horizontal(axis: int, north: float, east: float) -> float:
    """Return the component along an axis of W of a horizontal vector."""
    return north if axis == NORTH else east if axis == EAST else 0.0


@always_inline
def _moved(axis: Axis, place: float, along: float) -> Axis:
    return Axis(axis.name, axis.cell, axis.stride, axis.size, axis.inverse, place, along)


@always_inline
def _displacement(
    first: Axis, middle: Axis, last: Axis, k: Vector, s: float, quarter: float
) -> tuple[float, float, float, float]:
    """Return (1 / (1 + q), displacement along each of the sorted axes) from the start of an arc with the curvature k."""
    w, half = 1.0 / (1.0 + s * s * quarter), 0.5 * s * s
    return w, w * (s * first.along + half * k.x), w * (s * middle.along + half * k.y), w * (s * last.along + half * k.z)


@always_inline
def _arc_point(arc: Arc, s: float) -> tuple[float, float, float]:
    """Return the displacement (north, east, down) from the start of an arc."""
    w = s / (1.0 + s * s * arc.quarter)
    half = 0.5 * s
    return w * (arc.tx + half * arc.kx), w * (arc.ty + half * arc.ky), w * (arc.tz + half * arc.kz)


@device_function
def _arc_direction(arc: Arc, s: float) -> tuple[float, float, float]:
    """Return the direction of an arc, with a length of 1."""
    q = s * s * arc.quarter
    w, u = s / (1.0 + q), (1.0 - q) / (1.0 + q)
    x, y, z = u * arc.tx + w * arc.kx, u * arc.ty + w * arc.ky, u * arc.tz + w * arc.kz
    size = math.sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size


@device_function
def chord_time(chord: float, gradient: float, ca: float, cb: float) -> float:
    """Return the travel time in s along an arc with the given chord (m) from the sound speed ca to cb (m/s), in a gradient
    of the given size (1/s).
    """
    mean = math.sqrt(ca * cb)
    a = 0.5 * gradient * chord / mean
    b = a * a
    # both series of this arc are exact to 1e-16 below their limits
    stretch = 1.0 - b * (1.0 / 6.0 - b * (0.075 - b * (15.0 / 336.0))) if a < 0.02 else asinh(a) / a
    return chord / mean * stretch


@device_function
def arc_length(s: float, q: float) -> float:
    """Return the length in m of an arc with the parameter s; the tangent of half its angle is the root of q."""
    h = math.sqrt(q)
    return s * (1.0 - q * (1.0 / 3.0 - q * (0.2 - q / 7.0)) if h < 0.01 else atan2(h, 1.0) / h)


@device_function
def _arc_time(s: float, quarter: float, gradient: float, ca: float, cb: float) -> tuple[float, float]:
    """Return (travel time, length) of an arc from the sound speed ca to cb, in a gradient of the given size."""
    q = s * s * quarter
    return chord_time(s / math.sqrt(1.0 + q), gradient, ca, cb), arc_length(s, q)


@device_function
def _arc_to_bed(guide: Waveguide, arc: Arc, end: float, to: float) -> float:
    """Return the parameter at which an arc meets the bed, before the parameter ``end`` at which it has the depth ``to``;
    -1 if it does not meet the bed. The depth is monotonic along the arc.
    """
    if guide.max_slope == 0.0:
        if to > arc.z and to >= guide.min_depth:
            return min(_root(guide.min_depth - arc.z, arc.tz, 0.5 * arc.kz, arc.quarter, False), end)
        return -1.0
    clear = bed_depth_at(guide, arc.x, arc.y) - arc.z
    if clear > max(to - arc.z, 0.0) + guide.max_slope * end:
        return -1.0
    _, _, down = _arc_direction(arc, end)
    fastest = max(arc.tz, down, 0.0) + guide.max_slope + 1e-9
    s = 0.0
    while True:
        ahead = s + max(max(clear, 0.0) / fastest, guide.min_step, 1e-9 * end)
        ahead = min(ahead, end)
        dx, dy, dz = _arc_point(arc, ahead)
        over = bed_depth_at(guide, arc.x + dx, arc.y + dy) - (arc.z + dz)
        if over <= 0.0:
            break
        if ahead >= end:
            return -1.0
        s, clear = ahead, over
    bracket = Bracket(s, max(clear, 0.0), ahead, over, 0)
    for _ in range(60):
        if bracket.high - bracket.low < 1e-11 * max(end, 1.0) or bracket.f_low <= 0.0:
            break
        tried = estimate_root(bracket)
        dx, dy, dz = _arc_point(arc, tried)
        over = bed_depth_at(guide, arc.x + dx, arc.y + dy) - (arc.z + dz)
        if abs(over) < 1e-10:
            return tried
        bracket = narrow_bracket(bracket, tried, over)
    return bracket.low


@device_function
def trace_ray(
    guide: Waveguide, start: RayStart, target: RayTarget, with_time: bool, legs: Floats, track: Floats, shot: Record
) -> ClosestApproach:
    """Follow a ray from its start; ``legs`` receives the points at which it crosses the receiver's depth.

    If the ray has a target, ``track`` (n, 3) receives points along the ray up to the point nearest to the target. With
    ``with_time``, times and lengths are computed, and ``shot`` is filled in.
    """
    legs[:, X], legs[:, HISTORY], legs[:, LEVELS] = math.nan, 0.0, 0.0
    field, direction, receiver, goal = guide.field, start.direction, target.position.z, target.position
    aimed = target.bounces >= 0
    last_leg = target.reversals + 1 if aimed else MAX_LEGS - 1
    max_bounces = target.bounces if aimed else guide.max_bounces
    x, y, z = start.position.x, start.position.y, start.position.z
    corner, first, middle, last = axes_at(field, start.position, direction)
    c0, c1, c2, c3 = corner_speeds(field, corner, first, middle, last)
    down = direction.z > 0.0
    entry, leg, history, crests, n = INSIDE, 0, 0.0, 0.0, 1
    surface = beds = water = 0
    time = length = top = way = noted = levels = 0.0
    gz_above, gz_below, at_level = 0.0, 0.0, False
    best = ClosestApproach(-1, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    nearest, deflected, approaches = math.inf, True, False
    sparse = guide.max_range / 128.0
    if track.shape[0] >= DENSE_TRACK:
        sparse = 2.0 * guide.max_range / track.shape[0]
    square_range = guide.max_range * guide.max_range
    for _ in range(MAX_ARCS):
        # the arc: sound speed, gradient and curvature
        gf, gm, gl = (c1 - c0) * first.inverse, (c2 - c1) * middle.inverse, (c3 - c2) * last.inverse
        ca = c0 + gf * first.place + gm * middle.place + gl * last.place
        # only the gradient in the vertical plane bends the ray
        across = _along(NORTH, first, middle, gf, gm, gl) * guide.across_x
        across += _along(EAST, first, middle, gf, gm, gl) * guide.across_y
        pf = gf - across * _horizontal(first.name, guide.across_x, guide.across_y)
        pm = gm - across * _horizontal(middle.name, guide.across_x, guide.across_y)
        pl = gl - across * _horizontal(last.name, guide.across_x, guide.across_y)
        along = pf * first.along + pm * middle.along + pl * last.along
        share = -1.0 / ca
        kf, km, kl = (
            share * (pf - along * first.along),
            share * (pm - along * middle.along),
            share * (pl - along * last.along),
        )
        quarter = 0.25 * (kf * kf + km * km + kl * kl)
        gz = _along(DOWN, first, middle, gf, gm, gl)
        if at_level:
            crests += 1.0 if (gz_above > 0.0 and gz <= 0.0 if down else gz > 0.0 and gz_below <= 0.0) else 0.0
            at_level = False
        # the face through which it leaves the tetrahedron
        uf, um, ul = first.place * first.inverse, middle.place * middle.inverse, last.place * last.inverse
        bf, bm, bl = first.along * first.inverse, middle.along * middle.inverse, last.along * last.inverse
        hf, hm, hl = 0.5 * kf * first.inverse, 0.5 * km * middle.inverse, 0.5 * kl * last.inverse
        face, s = FAR, _root(1.0 - uf, bf, hf, quarter, entry == FAR)
        other = _root(uf - um, bm - bf, hm - hf, quarter, entry == FIRST_MIDDLE)
        if other < s:
            face, s = FIRST_MIDDLE, other
        other = _root(um - ul, bl - bm, hl - hm, quarter, entry == MIDDLE_LAST)
        if other < s:
            face, s = MIDDLE_LAST, other
        other = _root(ul, -bl, -hl, quarter, entry == NEAR)
        if other < s:
            face, s = NEAR, other
        if math.isinf(s):
            break
        arc = Arc(
            x,
            y,
            z,
            _along(NORTH, first, middle, first.along, middle.along, last.along),
            _along(EAST, first, middle, first.along, middle.along, last.along),
            _along(DOWN, first, middle, first.along, middle.along, last.along),
            _along(NORTH, first, middle, kf, km, kl),
            _along(EAST, first, middle, kf, km, kl),
            _along(DOWN, first, middle, kf, km, kl),
            quarter,
        )
        # it may turn before
        falls = arc.tz * (1.0 - s * s * quarter) + s * arc.kz
        turns = falls != 0.0 and (falls > 0.0) != down
        if turns:
            tz, kz = abs(arc.tz), abs(arc.kz)
            s = min(2.0 * tz / (kz + math.sqrt(kz * kz + 4.0 * tz * tz * quarter)), s)
            face = INSIDE
        w, sf, sm, sl = _displacement(first, middle, last, Vector(kf, km, kl), s, quarter)
        dz = _along(DOWN, first, middle, sf, sm, sl)
        to = z + dz
        if face == FAR and first.name == DOWN and first.cell + 1 < field.depths.shape[0]:
            to = field.depths[first.cell + 1]
        elif face == NEAR and last.name == DOWN:
            to = field.depths[last.cell]
        # or meet the bed
        meeting = -1.0
        if max(z, to) >= guide.min_depth:
            meeting = _arc_to_bed(guide, arc, s, to)
            if meeting >= 0.0:
                s, face, turns = meeting, INSIDE, False
                w, sf, sm, sl = _displacement(first, middle, last, Vector(kf, km, kl), s, quarter)
                to = guide.min_depth if guide.max_slope == 0.0 else z + _along(DOWN, first, middle, sf, sm, sl)
        dx, dy = _along(NORTH, first, middle, sf, sm, sl), _along(EAST, first, middle, sf, sm, sl)
        cb = ca + gf * sf + gm * sm + gl * sl
        gradient = 0.0
        if with_time:
            gradient = math.sqrt(pf * pf + pm * pm + pl * pl)
        # the receiver's depth; a ray that meets the bed just above this depth is continued, because the receiver may
        # rest on the bed
        crossing = -1.0
        if (z < receiver <= to) if down else (to <= receiver < z):
            crossing = s
            if receiver != to:
                sign = 1.0 if down else -1.0
                ahead = abs(receiver - z)
                crossing = min(_root(ahead, sign * arc.tz, 0.5 * sign * arc.kz, quarter, False), s)
        elif meeting >= 0.0 and down and to < receiver:
            crossing = _root(receiver - z, arc.tz, 0.5 * arc.kz, quarter, False)
            if crossing > s + BEYOND_RECEIVER * guide.max_range:
                crossing = -1.0
        if crossing >= 0.0:
            ex, ey, _ = _arc_point(arc, crossing)
            legs[leg, X], legs[leg, Y], legs[leg, HISTORY] = x + ex, y + ey, history
            legs[leg, TURNS_MET], legs[leg, BEDS_MET], legs[leg, BOUNCES_MET] = water, beds, beds + surface
            legs[leg, LEVELS] = levels
        # the point nearest to the target; a ray that bounces just before it is continued beyond the bounce
        if aimed:
            rx, ry, rz = x - goal.x, y - goal.y, z - goal.z
            before = arc.tx * rx + arc.ty * ry + arc.tz * rz
            # between two arcs without a bounce, rounding must not change whether the ray comes nearer
            approached = before < 0.0 if deflected else approaches
            fx, fy, fz = rx + dx, ry + dy, rz + (to - z)
            ux, uy, uz = _arc_direction(arc, s)
            bounces = meeting >= 0.0 or (face == NEAR and last.name == DOWN and last.cell == 0)
            fits = abs(leg - target.reversals) <= 1 and surface + beds == target.bounces
            approaches = ux * fx + uy * fy + uz * fz < 0.0
            deflected = bounces
            if fits and approached and (bounces or not approaches):
                bend = 1.0 + arc.kx * rx + arc.ky * ry + arc.kz * rz
                p = -2.0 * before / (bend + math.sqrt(bend * bend + 4.0 * before * before * quarter))
                ex, ey, ez = _arc_point(arc, p)
                nx, ny, nz = rx + ex, ry + ey, rz + ez
                distance = math.sqrt(nx * nx + ny * ny + nz * nz)
                # a ray that turns near its target passes it twice; each passage is a ray of its own
                rank = distance if leg == target.reversals else 3.0 * distance
                if rank < nearest:
                    nearest = rank
                    ux, uy, uz = _arc_direction(arc, p)
                    best = ClosestApproach(leg, n, nx, ny, nz, ux, uy, uz, max(p - s, 0.0))
                    if with_time:
                        speed = ca + gz * ez
                        speed += _along(NORTH, first, middle, gf, gm, gl) * ex
                        speed += _along(EAST, first, middle, gf, gm, gl) * ey
                        dt, ds = _arc_time(p, quarter, gradient, ca, speed)
                        shot.x, shot.y = goal.x + nx, goal.y + ny
                        shot.time, shot.length = time + dt, length + ds
                        shot.sx, shot.sy, shot.sz = direction.x, direction.y, direction.z
                        shot.rx, shot.ry, shot.rz = ux, uy, uz
                        shot.surface, shot.bottom, shot.sine_top = surface, beds, top / max(surface, 1)
            elif best.reversals >= 0 and fx * fx + fy * fy + fz * fz > (
                3.0 * nearest + BEYOND_RECEIVER * guide.max_range
            ) * (3.0 * nearest + BEYOND_RECEIVER * guide.max_range):
                break
        # to the end of the arc
        if with_time:
            dt, ds = _arc_time(s, quarter, gradient, ca, cb)
            time, length = time + dt, length + ds
        u, w = w * (1.0 - s * s * quarter), w * s
        tf, tm, tl = u * first.along + w * kf, u * middle.along + w * km, u * last.along + w * kl
        size = 1.5 - 0.5 * (tf * tf + tm * tm + tl * tl)
        first = _moved(first, first.place + sf, tf * size)
        middle = _moved(middle, middle.place + sm, tm * size)
        last = _moved(last, last.place + sl, tl * size)
        x, y, z, way = x + dx, y + dy, to, way + s
        is_reversal = False
        entry = INSIDE
        if face == FAR:
            corner += first.stride
            entered = make_axis(field, first.name, first.cell + 1, 0.0, first.along)
            at_level, gz_above = first.name == DOWN and first.cell + 2 < field.depths.shape[0], gz
            first, middle, last = middle, last, entered
            c0, c1, c2 = c1, c2, c3
            c3 = value_at(field, corner + first.stride + middle.stride + last.stride)
            entry = NEAR
        elif face == FIRST_MIDDLE:
            first, middle = middle, first
            c1 = value_at(field, corner + first.stride)
            entry = FIRST_MIDDLE
        elif face == MIDDLE_LAST:
            middle, last = last, middle
            c2 = value_at(field, corner + first.stride + middle.stride)
            entry = MIDDLE_LAST
        elif face == NEAR and last.name == DOWN and last.cell == 0:
            top += abs(last.along)
            last = _moved(last, 0.0, abs(last.along))
            surface, history, is_reversal, entry = surface + 1, met(history, SURFACE), True, NEAR
        elif face == NEAR:
            at_level, gz_below = last.name == DOWN and last.cell + 1 < field.depths.shape[0], gz
            entered = make_axis(field, last.name, last.cell - 1, -1.0, last.along)
            corner -= entered.stride
            first, middle, last = entered, first, middle
            c1, c2, c3 = c0, c1, c2
            c0 = value_at(field, corner)
            entry = FAR
        elif turns:
            first = _moved(first, first.place, 0.0 if first.name == DOWN else first.along)
            middle = _moved(middle, middle.place, 0.0 if middle.name == DOWN else middle.along)
            last = _moved(last, last.place, 0.0 if last.name == DOWN else last.along)
            water, history, is_reversal = water + 1, met(history, TURNED + 4.0 * crests), True
            levels = met(levels, 1.0 + _level(first, middle, last))
        else:
            tx = _along(NORTH, first, middle, first.along, middle.along, last.along)
            ty = _along(EAST, first, middle, first.along, middle.along, last.along)
            tz = _along(DOWN, first, middle, first.along, middle.along, last.along)
            tx, ty, tz, sine = reflect_off_bed(guide, x, y, tx, ty, tz)
            if not sine > 0.0:
                break
            first = _moved(first, first.place, tx if first.name == NORTH else ty if first.name == EAST else tz)
            middle = _moved(middle, middle.place, tx if middle.name == NORTH else ty if middle.name == EAST else tz)
            last = _moved(last, last.place, tx if last.name == NORTH else ty if last.name == EAST else tz)
            legs[min(beds, MAX_LEGS - 1), SINE], legs[min(beds, MAX_LEGS - 1), SPEED] = sine, cb
            beds, history, is_reversal = beds + 1, met(history, BED), (tz > 0.0) != down
        if n < track.shape[0] - 1 and (face == INSIDE or is_reversal or way - noted > sparse):
            track[n, 0], track[n, 1], track[n, 2] = x, y, z
            n, noted = n + 1, way
        if is_reversal:
            down, leg, crests = not down, leg + 1, 0.0
        ex, ey = x - start.position.x, y - start.position.y
        if (
            leg > last_leg
            or beds + surface > max_bounces
            or not ex * ex + ey * ey < square_range
            or z > field.depths[-1] + guide.max_range
        ):
            break
    points = best.points
    if best.reversals >= 0 and 0 < points < track.shape[0]:
        track[points, 0], track[points, 1], track[points, 2] = goal.x + best.x, goal.y + best.y, goal.z + best.z
        points += 1
    return ClosestApproach(best.reversals, points, best.x, best.y, best.z, best.rx, best.ry, best.rz, best.beyond)
