"""Rays in water whose sound speed depends on depth, over a bed whose depth changes along the path; compiled.

A ray is traced from layer to layer, as in :mod:`rays`. Where it meets the bed, it is mirrored in the tangent plane, in
three dimensions, so that its invariant and its bearing change. A fan of such rays in the vertical plane through source
and receiver brackets the rays that reach the receiver. The fan is refined where the range may have an extremum between
two of its rays. Newton's method then aims each ray at the receiver, with the help of two neighbouring rays: one to the
side, and one above or below. These neighbours are also the edges of the ray tube:

    |pressure at 1 m / pressure|^2 = |d1 x d2| s_receiver c_source / c_receiver

In this formula, d1 and d2 are the displacements of the two neighbours from the ray at the receiver's depth, per radian
of the launch angle between neighbour and ray. The formula includes the curvature of the bed. The method neglects
diffraction, as well as bed features smaller than 1/128 of the path.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import eigenrays, rays
from wavesim_server.acoustics.ray_tubes import MAX_FOCUSING_DB
from wavesim_server.acoustics.root_bracket import Bracket, estimate_root, narrow_bracket
from wavesim_server.acoustics.types import Record, SoundSpeedProfile, Vector
from wavesim_server.acoustics.waveguides import (
    AIM_TOLERANCE,
    BED,
    BEDS_MET,
    BESIDE,
    BOUNCES_MET,
    HISTORY,
    MAX_AIM_STEPS,
    MAX_LEGS,
    NEIGHBOUR_ANGLE,
    NOW,
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
from wavesim_server.elementary import hypot, log10

ROUNDING = 1e-9  #: rise in m that an upward arc has only because the depth of a bounce was rounded


class LayerArc(NamedTuple):
    """The part of a ray within one layer, which is an arc of a circle in a vertical plane.

    The arc starts at (x, y, z) and covers ``range`` in the direction of the unit vector (hx, hy), while it descends or
    ascends by ``rise``. The sines of its angles to the horizontal are given at both ends, and the cosine at the start;
    ``turn`` is the decrease of the sine per metre of range.
    """

    x: float
    y: float
    z: float
    hx: float
    hy: float
    down: bool
    rise: float
    range: float
    sine_start: float
    sine_end: float
    cosine_start: float
    turn: float


@device_function
def circle_step(sa: float, ca: float, turn: float, way: float) -> tuple[float, float, float]:
    """Follow a circular arc over a horizontal range. The arc starts with the given sine and cosine of its angle to the
    horizontal. Return the change in depth, and the sine and cosine at the end.

    ``turn`` is the decrease of the sine per metre of range. The result is exact and does not need trigonometry.
    """
    loss = turn * way
    sb = sa - loss
    cb = math.sqrt(max(ca * ca + loss * (sa + sb), 0.0))
    return way * (sa + sb) / max(ca + cb, 1e-300), sb, cb


@device_function
def range_to_bed(guide: Waveguide, arc: LayerArc) -> float:
    """Return the horizontal range after which an arc meets the bed, or -1 if it does not."""
    sign = 1.0 if arc.down else -1.0
    if not arc.down and arc.rise < ROUNDING:
        return -1.0  # it has just left a level bed at the end of the profile
    if max(arc.z, arc.z + sign * arc.rise) < guide.min_depth:
        return -1.0
    clear = bed_depth_at(guide, arc.x, arc.y) - arc.z
    if clear > (arc.rise if arc.down else 0.0) + guide.max_slope * arc.range:
        return -1.0
    u, cosine, most = 0.0, arc.cosine_start, max(arc.sine_start, arc.sine_end)
    while True:
        step = max(max(clear, 0.0) / ((most if arc.down else 0.0) + guide.max_slope + 1e-9), guide.min_step)
        ahead = u + max(step * cosine, 1e-9 * arc.range)
        if ahead >= arc.range:
            ahead, drop = arc.range, arc.rise
        else:
            drop, _, cosine = circle_step(arc.sine_start, arc.cosine_start, arc.turn, ahead)
        over = bed_depth_at(guide, arc.x + arc.hx * ahead, arc.y + arc.hy * ahead) - (arc.z + sign * drop)
        if over <= 0.0:
            break
        if ahead >= arc.range:
            return -1.0
        u, clear = ahead, over
    bracket = Bracket(u, max(clear, 0.0), ahead, over, 0)
    for _ in range(60):
        if bracket.high - bracket.low < 1e-11 * max(arc.range, 1.0) or bracket.f_low <= 0.0:
            break
        middle = estimate_root(bracket)
        drop, _, _ = circle_step(arc.sine_start, arc.cosine_start, arc.turn, middle)
        over = bed_depth_at(guide, arc.x + arc.hx * middle, arc.y + arc.hy * middle) - (arc.z + sign * drop)
        if abs(over) < 1e-10:
            return middle
        bracket = narrow_bracket(bracket, middle, over)
    return bracket.low


@device_function
def _layer_ahead(
    profile: SoundSpeedProfile, here: float, down: bool, receiver: float, limit: float
) -> tuple[float, float, bool]:
    """Return (depth at which a layer ends, dc/dz, whether the layer contains the receiver's depth) for the layer that a
    ray enters. Below the profile, the sound speed is constant.
    """
    z, c = profile.z, profile.c
    bottom = z.shape[0] - 1
    if here > z[bottom] or (down and here == z[bottom]):
        edge, fall = (here + limit if down else z[bottom]), 0.0
    else:
        k = rays.layer_of(z, here)
        if not down and k > 0 and here <= z[k]:
            k -= 1
        edge, fall = (z[k + 1] if down else z[k]), (c[k + 1] - c[k]) / (z[k + 1] - z[k])
    return edge, fall, (here < receiver <= edge) if down else (edge <= receiver < here)


@device_function
def _crest(profile: SoundSpeedProfile, depth: float) -> float:
    """Return 1 if the profile has a knot at this depth and the sound speed has a maximum there, otherwise 0."""
    z, c = profile.z, profile.c
    k = rays.layer_of(z, depth)
    return 1.0 if z[k] == depth and k > 0 and c[k] > c[k - 1] and c[k] >= c[k + 1] else 0.0


@device_function
def trace_ray(
    guide: Waveguide,
    start: RayStart,
    receiver: float,
    last: int,
    with_time: bool,
    legs: Floats,
    track: Floats,
    shot: Record,
) -> int:
    """Follow a ray from its start; ``legs`` receives the point at which each leg between reversals crosses
    the receiver's depth.

    The search ends where the leg after ``last`` reversals crosses that depth; ``shot`` is then filled in. Returns 0 if
    the ray does not reach the depth; otherwise, returns the number of points in ``track`` (n, 3), or 1 if ``track`` has
    no room for points. Times and lengths are computed only if ``with_time`` is true.
    """
    legs[:, X], legs[:, HISTORY] = math.nan, 0.0
    profile, direction = guide.profile, start.direction
    x, y, here, down = start.position.x, start.position.y, start.position.z, direction.z > 0.0
    ca = rays.sound_speed_at(profile, here)
    qx, qy = direction.x / ca, direction.y / ca
    leg, history, n = 0, 0.0, 1
    time = length = top = crests = 0.0
    surface = beds = water = 0
    for _ in range(100_000):  # a ray ends long before
        p = max(hypot(qx, qy), 1e-13)
        hx, hy = qx / p, qy / p
        edge, fall, crosses = _layer_ahead(profile, here, down, receiver, guide.max_range)
        target = receiver if crosses else edge
        cb = ca + fall * (target - here)
        turns = p * cb >= 1.0 and abs(fall) > 0.0 and (fall > 0.0) == down
        if turns:
            cb, crosses = 1.0 / p, False
            target = here + (cb - ca) / fall
        sa, sb = rays.sine_from_cosine(p * ca), rays.sine_from_cosine(p * cb)
        rise = abs(target - here)
        leg_range = p * (ca + cb) / (sa + sb) * rise if sa + sb > 0.0 else 0.0
        turn = p * fall if down else -p * fall
        arc = LayerArc(x, y, here, hx, hy, down, rise, leg_range, sa, sb, p * ca, turn)
        meeting = range_to_bed(guide, arc)
        if meeting >= 0.0:
            rise, sb, _ = circle_step(sa, p * ca, turn, meeting)
            leg_range, turns, crosses = meeting, False, False
            target = here + (rise if down else -rise)
            cb = ca + fall * (target - here)
        if with_time and rise > 0.0:
            _, dt, ds = rays.layer_leg(ca, cb, sa, rays.sine_from_cosine(p * cb), rise, p, True)
            time, length = time + dt, length + ds
        x, y, here, ca = x + hx * leg_range, y + hy * leg_range, target, cb
        if n < track.shape[0]:
            track[n, 0], track[n, 1], track[n, 2] = x, y, here
            n += 1
        if crosses:
            legs[leg, X], legs[leg, Y], legs[leg, HISTORY] = x, y, history
            legs[leg, TURNS_MET], legs[leg, BEDS_MET], legs[leg, BOUNCES_MET] = water, beds, beds + surface
            if leg == last:
                break
        is_reversal = False
        if meeting >= 0.0:
            qx, qy, qz, sine = reflect_off_bed(guide, x, y, qx, qy, sb / ca if down else -sb / ca)
            if not sine > 0.0:
                break
            legs[min(beds, MAX_LEGS - 1), SINE], legs[min(beds, MAX_LEGS - 1), SPEED] = sine * ca, 1.0
            beds, history, is_reversal = beds + 1, met(history, BED), (qz > 0.0) != down
        elif turns:  # a ray beyond a maximum of the speed has jumped there
            water, history, is_reversal = water + 1, met(history, TURNED + 4.0 * crests), True
        elif not down and target == profile.z[0]:
            surface, top, history, is_reversal = surface + 1, top + sb, met(history, SURFACE), True
        else:  # on to the next layer
            crests += _crest(profile, target)
        if is_reversal:
            down, leg, crests = not down, leg + 1, 0.0
        # finished, left the area, or the bed is unknown
        spent = leg > last or beds + surface > guide.max_bounces
        if (
            spent
            or not hypot(x - start.position.x, y - start.position.y) < guide.max_range
            or here > profile.z[-1] + guide.max_range
        ):
            break
    if leg != last or legs[last, X] != legs[last, X]:
        return 0
    shot.x, shot.y, shot.time, shot.length = x, y, time, length
    shot.sx, shot.sy, shot.sz = direction.x, direction.y, direction.z
    shot.rx, shot.ry, shot.rz = qx * ca, qy * ca, (sb if down else -sb)
    shot.surface, shot.bottom, shot.sine_top = surface, beds, top / max(surface, 1)
    shot.reversals = leg
    return n


@device_function
def aim_ray(
    guide: Waveguide,
    a: Vector,
    b: Vector,
    reversals: int,
    direction: Vector,
    legs: Floats,
    no_points: Floats,
    shot: Record,
) -> bool:
    """Find the ray from a to b near a given direction, with the given number of reversals (Newton); ``shot`` receives
    the ray. Returns False if there is no such ray.
    """
    e = f = h = i = 0.0  # displacement of its end point per rad: up and down (e, f), sideways (h, i)
    tx = ty = tz = ux = uy = 0.0
    caustics, history, previous, fresh, whole = 0, 0.0, math.inf, False, False
    sx, sy, sz = direction.x, direction.y, direction.z
    px, py, pz = sx, sy, sz
    for _ in range(MAX_AIM_STEPS):
        start = RayStart(a, Vector(sx, sy, sz))
        if trace_ray(guide, start, b.z, reversals, True, legs[NOW], no_points, shot) == 0 or (
            history > 0.0 and legs[NOW, reversals, HISTORY] != history
        ):
            if math.isinf(previous):
                return False
            sx, sy, sz = 0.5 * (sx + px), 0.5 * (sy + py), 0.5 * (sz + pz)  # back by half of the step
            continue
        mx, my = b.x - shot.x, b.y - shot.y
        miss = hypot(mx, my)
        if miss > previous:
            sx, sy, sz = 0.5 * (sx + px), 0.5 * (sy + py), 0.5 * (sz + pz)
            continue
        history, whole = legs[NOW, reversals, HISTORY], fresh
        if not fresh:
            level = max(hypot(sx, sy), 1e-12)
            ux, uy = -sy / level, sx / level
            tx, ty, tz = -sz * sx / level, -sz * sy / level, level
            good, caustics, e, f = _neighbour_shift(
                guide, start, Vector(tx, ty, tz), b.z, reversals, legs, no_points, shot
            )
            if not good:
                return False
            good, _, h, i = _neighbour_shift(guide, start, Vector(ux, uy, 0.0), b.z, reversals, legs, no_points, shot)
            if not good:
                return False
            fresh = miss < 1.0
        if miss < AIM_TOLERANCE:
            break
        area = e * i - f * h
        if area == 0.0:
            return False
        up, aside = (mx * i - my * h) / area, (my * e - mx * f) / area
        size = hypot(up, aside)
        if size > 0.1:
            up, aside = up * 0.1 / size, aside * 0.1 / size
        px, py, pz, previous = sx, sy, sz, miss
        sx, sy, sz = sx + up * tx + aside * ux, sy + up * ty + aside * uy, sz + up * tz
        size = math.sqrt(sx * sx + sy * sy + sz * sz)
        sx, sy, sz = sx / size, sy / size, sz / size
    if not whole:
        start = RayStart(a, Vector(sx, sy, sz))
        if trace_ray(guide, start, b.z, reversals, True, legs[NOW], no_points, shot) == 0:
            return False
    mx, my = b.x - shot.x, b.y - shot.y
    if not hypot(mx, my) < eigenrays.MAX_MISS:
        return False
    ca, cb = rays.sound_speed_at(guide.profile, a.z), rays.sound_speed_at(guide.profile, b.z)
    more = shot.rx * mx + shot.ry * my
    shot.time += more / cb
    length: float = shot.length + more
    shot.length = length
    tube = abs(e * i - f * h) * abs(shot.rz) * ca / cb
    shot.spread = max(10.0 * log10(max(tube, 1.0)), 20.0 * log10(max(length, 1.0)) - MAX_FOCUSING_DB)
    shot.caustics = caustics
    return True


@device_function
def _neighbour_shift(
    guide: Waveguide,
    start: RayStart,
    tilt: Vector,
    depth: float,
    reversals: int,
    legs: Floats,
    no_points: Floats,
    shot: Record,
) -> tuple[bool, int, float, float]:
    """Compute a neighbour of the ray ``legs[NOW]``. The launch direction of the neighbour is tilted towards ``tilt``.
    Return (whether the neighbour exists, number of caustics between the two rays, displacement north and east per rad
    of tilt).

    Before a turning point, the steeper ray reaches a given depth at a shorter range; after a turning point, it does so
    at a longer range. Each crossing of the two rays (a caustic) reverses this.
    """
    for k in range(2):
        d = NEIGHBOUR_ANGLE if k == 0 else -NEIGHBOUR_ANGLE
        s = start.direction
        tilted = RayStart(start.position, Vector(s.x + d * tilt.x, s.y + d * tilt.y, s.z + d * tilt.z))
        ok = trace_ray(guide, tilted, depth, reversals, False, legs[BESIDE], no_points, shot)
        if ok and legs[BESIDE, reversals, HISTORY] == legs[NOW, reversals, HISTORY]:
            count, before = 0, -d * s.z
            for r in range(reversals + 1):
                dx, dy = legs[BESIDE, r, X] - legs[NOW, r, X], legs[BESIDE, r, Y] - legs[NOW, r, Y]
                if dx == dx:
                    ahead = dx * (legs[NOW, r, X] - start.position.x) + dy * (legs[NOW, r, Y] - start.position.y)
                    if legs[NOW, r, TURNS_MET] % 2.0 == 1.0:
                        ahead = -ahead
                    if ahead * before < 0.0:
                        count += 1
                    before = ahead
            last = legs[BESIDE, reversals], legs[NOW, reversals]
            return True, count, (last[0][X] - last[1][X]) / d, (last[0][Y] - last[1][Y]) / d
    return False, 0, 0.0, 0.0
