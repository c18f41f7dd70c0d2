"""Rays in water whose sound speed depends only on depth; compiled.

The profile is linear between knots, so every ray is a chain of circular arcs with one Snell invariant
p = cos(theta)/c (theta from the horizontal). Over a layer from speed ca to cb, with sines sa and sb,

    dx = p dz (ca + cb)/(sa + sb),   dt = (2/g) asinh(g d / (2 sqrt(ca cb))),   ds = d h / sin h

where d is the chord and h is half the angle turned. These forms avoid cancellation for small gradients and flat rays. A
path is identified by its first direction (up or down) and its number of reversals, each a turning point or a bounce off
surface or bottom. Travel time is stationary at the eigenray, so p times the miss corrects it to second order.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function
from wavesim_sdk.tables import Table, integer, value
from wavesim_server.acoustics.types import Array, Record, Records
from wavesim_server.elementary import acos, asin, asinh, atan2, cos, exp, log, sin

#: reasons for the end of a march along a ray
REACHED, TURNED, BOUNDARY = range(3)
RAY = Table(
    "ray",
    "A ray from a source to a receiver.",
    "medium",
    (
        value("x", "m", "Range at which the ray is at the receiver's depth."),
        value("time", "s", "Travel time."),
        value("length", "m", "Length along the ray."),
        value("invariant", "s/m", "Snell invariant: cos(angle) over sound speed."),
        integer("surface", "", "Bounces off the surface."),
        integer("bottom", "", "Bounces off the bottom."),
        value("sin_source", "", "Sine of the ray's angle to the horizontal at the source."),
        value("sin_receiver", "", "Sine of the ray's angle to the horizontal at the receiver."),
        value("sin_bottom", "", "Sine of the ray's angle to the horizontal at the bottom."),
    ),
)
FAN = Table(
    "fan",
    "One of many launch angles from a source, and its ray.",
    "medium",
    (
        value("angle", "rad", "Launch angle from the horizontal."),
        value("upper_x", "m", "Range from the upper reversal to the source."),
        value("lower_x", "m", "Range from the source to the lower reversal."),
        value("upper", "m", "Depth of the upper reversal."),
        value("lower", "m", "Depth of the lower reversal."),
        integer("bounces", "", "Sum of 1 if the ray bounces off the surface and 2 if it bounces off the bottom."),
        value("upper_slope", "m2/s", "Derivative of upper_x with respect to the invariant."),
        value("lower_slope", "m2/s", "Derivative of lower_x with respect to the invariant."),
        value(
            "way",
            "m",
            "Range from the source to the current receiver, negative if the receiver is higher; NaN = not reached.",
        ),
        value("way_slope", "m2/s", "Derivative of the range `way` with respect to the invariant."),
    ),
)
EIGENRAY = Table(
    "eigenray",
    "A ray that reaches a receiver.",
    "medium",
    (
        value("angle", "rad", "Launch angle."),
        integer("down", "", "1 = launched downwards."),
        integer("reversals", "", "Turning points and bounces."),
        value("time", "s", "Travel time."),
        value("sx", "", "Direction at the source of a ray that bounces off a bed that is not level, W."),
        value("sy", "", ""),
        integer("bed", "", "1 = the ray bounces off a bed that is not level."),
        value("level", "dB re 1 uPa", "Level at the receiver, if there are more rays than the medium follows."),
    ),
)
MIN_LAUNCH_ANGLE = 1e-5  #: minimum launch angle of the fan, rad
FAN_ANGLES = 256  #: number of angles of the fan, in addition to those that graze a knot of the profile
SPARE = 2  #: additional records of a fan after those of its rays: the ray that grazes the receiver, and a trial ray
REVERSALS = 31  #: maximum number of reversals of a path; paths with more are counted as dropped
GRAZE = 1e-7  #: relative offset in angle of the two fan rays on either side of a ray that grazes a knot
#: m, maximum distance by which an eigenray misses the receiver; its travel time is corrected to second order
# Where an eigenray grazes a knot, its end moves by millimetres with the last bit of its angle.
MAX_MISS = 0.1


@device_function
def layer_of(z: Array, depth: float) -> int:
    """Return the index of the layer that contains a depth."""
    low, high = 0, z.shape[0] - 2
    while low < high:
        mid = (low + high + 1) // 2
        if z[mid] <= depth:
            low = mid
        else:
            high = mid - 1
    return low


@device_function
def sound_speed_at(z: Array, c: Array, depth: float) -> float:
    """Return the sound speed at a depth; outside the profile, the sound speed at its nearer end."""
    if depth <= z[0]:
        return float(c[0])
    if depth >= z[-1]:
        return float(c[-1])
    k = layer_of(z, depth)
    return float(c[k] + (c[k + 1] - c[k]) * (depth - z[k]) / (z[k + 1] - z[k]))


@device_function
def sine_from_cosine(pc: float) -> float:
    return math.sqrt(max((1.0 - pc) * (1.0 + pc), 0.0))


@device_function
def layer_leg(ca: float, cb: float, dz: float, p: float) -> tuple[float, float, float]:
    """Return (dx, dt, ds) of a ray across the height dz > 0 of one layer, without a turning point in between."""
    sa, sb = sine_from_cosine(p * ca), sine_from_cosine(p * cb)
    total = sa + sb
    if total <= 0.0:
        return 0.0, 0.0, 0.0
    dx = p * (ca + cb) / total * dz
    chord = math.sqrt(dx * dx + dz * dz)
    mean = math.sqrt(ca * cb)
    a = abs(cb - ca) / dz * chord / (2.0 * mean)
    stretch = asinh(a) / a if a > 1e-4 else 1.0 - a * a / 6.0
    half = 0.5 * abs(atan2(sa, p * ca) - atan2(sb, p * cb))
    bow = half / sin(half) if half > 1e-4 else 1.0 + half * half / 6.0
    return dx, chord / mean * stretch, chord * bow


@device_function
def march_ray(
    z: Array, c: Array, p: float, start: float, down: bool, stop: float, points: Array
) -> tuple[float, float, float, float, int, int]:
    """Follow a ray until ``stop``, a turning point or a boundary. Returns (x, t, s, depth reached, reason for the end,
    points).

    ``points`` (n, 2) receives (x, z) at each knot passed; n may be 0.
    """
    x = t = s = 0.0
    here, room, n = start, points.shape[0], 0
    k = layer_of(z, start)
    if not down and k > 0 and start <= z[k]:
        k -= 1
    ca = sound_speed_at(z, c, start)
    while True:
        edge = z[k + 1] if down else z[k]
        target, how = edge, -1
        if (down and stop <= edge) or (not down and stop >= edge):
            target, how = stop, REACHED
        g = (c[k + 1] - c[k]) / (z[k + 1] - z[k])
        cb = c[k] + g * (target - z[k])
        if p * cb >= 1.0 and abs(g) > 0.0 and (g > 0.0) == down:
            cb = 1.0 / p
            target, how = z[k] + (cb - c[k]) / g, TURNED
        dz = abs(target - here)
        if dz > 0.0:
            dx, dt, ds = layer_leg(ca, cb, dz, p)
            x, t, s = x + dx, t + dt, s + ds
        here, ca = target, cb
        if n < room:
            points[n, 0], points[n, 1] = x, here
            n += 1
        if how >= 0:
            return x, t, s, here, how, n
        k += 1 if down else -1
        if k < 0 or k > z.shape[0] - 2:
            return x, t, s, here, BOUNDARY, n


@device_function
def trace_ray(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    theta: float,
    down: bool,
    reversals: int,
    none: Array,
    out: Record,
) -> bool:
    """Trace the ray with launch angle theta > 0, up or down, to the receiver's depth after the given number of
    reversals.

    Fills in ``out``; returns False if the ray does not reach that depth.
    """
    cs, cr = sound_speed_at(z, c, source), sound_speed_at(z, c, receiver)
    p = cos(theta) / cs
    if p * cr > 1.0:
        return False
    out.invariant, out.sin_source, out.sin_receiver = p, sin(theta), sine_from_cosine(p * cr)
    out.surface = out.bottom = 0
    out.sin_bottom = 0.0
    if reversals == 0:
        if (receiver > source) != down:
            return False
        x, t, s, _, how, _ = march_ray(z, c, p, source, down, receiver, none)
        out.x, out.time, out.length = x, t, s
        return how == REACHED
    top, end = z[0] - 1.0, z[-1] + 1.0
    ux, ut, us, high, up_how, _ = march_ray(z, c, p, source, False, top, none)
    lx, lt, ls, low, low_how, _ = march_ray(z, c, p, source, True, end, none)
    if receiver < high or receiver > low:
        return False
    last_down = down == (reversals % 2 == 1)
    x, t, s, _, _, _ = march_ray(z, c, p, receiver, last_down, end if last_down else top, none)
    turns = reversals - 1
    fx, ft, fs = (lx, lt, ls) if down else (ux, ut, us)
    out.x, out.time, out.length = (
        x + fx + turns * (lx + ux),
        t + ft + turns * (lt + ut),
        s + fs + turns * (ls + us),
    )
    lower = (reversals + 1) // 2 if down else reversals // 2
    if low_how == BOUNDARY:
        out.bottom, out.sin_bottom = lower, sine_from_cosine(p * c[-1])
    if up_how == BOUNDARY:
        out.surface = reversals - lower
    return True


@device_function
def solve_launch_angle(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    distance: float,
    low: float,
    high: float,
    down: bool,
    reversals: int,
    none: Array,
    out: Record,
) -> float:
    """Find the launch angle of the ray that reaches the distance, between two angles that bracket it (Illinois method).
    ``out`` receives the ray. Returns NaN if there is none.

    Where a ray grazes a maximum of the sound speed, the range jumps: from that of a ray that turns there to that of a
    ray that continues. No ray reaches the ranges in between.
    """
    if not trace_ray(z, c, source, receiver, low, down, reversals, none, out):
        return math.nan
    fa = out.x - distance
    if not trace_ray(z, c, source, receiver, high, down, reversals, none, out):
        return math.nan
    fb = out.x - distance
    if fa * fb > 0.0:
        return math.nan
    a, b, side = low, high, 0
    for _ in range(80):
        theta = (a * fb - b * fa) / (fb - fa) if fa != fb else 0.5 * (a + b)
        if not a <= theta <= b:
            theta = 0.5 * (a + b)
        if not trace_ray(z, c, source, receiver, theta, down, reversals, none, out):
            return math.nan
        f = out.x - distance
        if abs(f) < 1e-6 or b - a < 1e-15:
            break
        if f * fb > 0.0:
            b, fb = theta, f
            if side == 1:
                fa *= 0.5
            side = 1
        else:
            a, fa = theta, f
            if side == -1:
                fb *= 0.5
            side = -1
    if abs(f) > MAX_MISS:
        return math.nan
    out.time -= out.invariant * f
    return theta


@device_function
def refine_eigenray(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    distance: float,
    theta: float,
    down: bool,
    reversals: int,
    none: Array,
    out: Record,
) -> float:
    """Find the eigenray of the same path near a known launch angle (secant). Returns NaN if the eigenray no longer
    exists.
    """
    a, b = theta, theta * (1.0 + 1e-5)
    if not trace_ray(z, c, source, receiver, a, down, reversals, none, out):
        return math.nan
    fa = out.x - distance
    best, least = a, abs(fa)
    for _ in range(30):
        if least < 1e-6:
            break
        if not trace_ray(z, c, source, receiver, b, down, reversals, none, out):
            b = 0.5 * (a + b)
            continue
        fb = out.x - distance
        if abs(fb) < least:
            best, least = b, abs(fb)
        if fa == fb:
            break
        step = fb * (b - a) / (fb - fa)
        limit = 0.3 * b  # a bad slope must not move it to another path
        a, fa, b = b, fb, b - min(max(step, -limit), limit)
    if least > MAX_MISS:
        return math.nan
    trace_ray(z, c, source, receiver, best, down, reversals, none, out)
    out.time -= out.invariant * (out.x - distance)
    return best


@device_function
def _insert(fan: Records, n: int, angle: float) -> int:
    """Insert an angle among the ``n`` ascending angles of a fan; return their new number."""
    k = n
    while k > 0 and fan[k - 1].angle > angle:
        fan[k].angle = fan[k - 1].angle
        k -= 1
    fan[k].angle = angle
    return n + 1


@device_function
def _insert_grazing(z: Array, c: Array, k: int, source_speed: float, fan: Records, n: int) -> int:
    """Insert a ray on each side of the ray that turns at a knot.

    The derivative of the range jumps there. The range itself also jumps if the speed decreases beyond the knot. Between
    two such angles the range is smooth.
    """
    if 0 < k < z.shape[0] - 1:
        above, below = (c[k] - c[k - 1]) / (z[k] - z[k - 1]), (c[k + 1] - c[k]) / (z[k + 1] - z[k])
        if abs(above - below) <= 1e-9 * (abs(above) + abs(below)):
            return n
    grazing = acos(min(source_speed / c[k], 1.0))
    if grazing > MIN_LAUNCH_ANGLE:
        n = _insert(fan, n, grazing * (1.0 - GRAZE))
        n = _insert(fan, n, grazing * (1.0 + GRAZE))
    return n


def fan_size(knots: int) -> int:
    """Return the number of records that the fan of a profile needs."""
    return FAN_ANGLES + 2 * knots + SPARE


@device_function
def excursion(z: Array, c: Array, p: float, start: float, down: bool, stop: float) -> tuple[float, float, float, int]:
    """Return (range, its derivative with respect to the invariant as in :mod:`ray_tubes`, depth reached, reason for the
    end) of a ray until ``stop``, a turning point or a boundary. This is :func:`march_ray` without time and length.
    """
    x = slope = 0.0
    here, k = start, layer_of(z, start)
    if not down and k > 0 and start <= z[k]:
        k -= 1
    ca = sound_speed_at(z, c, start)
    while True:
        edge = z[k + 1] if down else z[k]
        target, how = edge, -1
        if (down and stop <= edge) or (not down and stop >= edge):
            target, how = stop, REACHED
        g = (c[k + 1] - c[k]) / (z[k + 1] - z[k])
        cb = c[k] + g * (target - z[k])
        if p * cb >= 1.0 and abs(g) > 0.0 and (g > 0.0) == down:
            cb = 1.0 / p
            target, how = z[k] + (cb - c[k]) / g, TURNED
        dz, sa, sb = abs(target - here), sine_from_cosine(p * ca), sine_from_cosine(p * cb)
        if dz > 0.0 and sa + sb > 0.0:
            x += p * (ca + cb) / (sa + sb) * dz
            sa = max(sa, 1e-12)
            if how == TURNED:
                slope -= 1.0 / (abs(g) * p * p * sa)
            else:
                sb = max(sb, 1e-12)
                slope += dz * (ca + cb) / (sa * sb * (sa + sb))
        here, ca = target, cb
        if how >= 0:
            return x, slope, here, how
        k += 1 if down else -1
        if k < 0 or k > z.shape[0] - 2:
            return x, slope, here, BOUNDARY


@device_function
def _leave(z: Array, c: Array, source: float, leaving: Record) -> None:
    """Compute the fields of a record of the fan from its angle."""
    p = cos(leaving.angle) / sound_speed_at(z, c, source)
    ux, us, high, up_how = excursion(z, c, p, source, False, z[0] - 1.0)
    lx, ls, low, low_how = excursion(z, c, p, source, True, z[-1] + 1.0)
    leaving.upper_x, leaving.lower_x, leaving.upper_slope, leaving.lower_slope = ux, lx, us, ls
    leaving.upper, leaving.lower = high, low
    leaving.bounces = (1 if up_how == BOUNDARY else 0) + (2 if low_how == BOUNDARY else 0)


@device_function
def launch_fan(z: Array, c: Array, source: float, fan: Records) -> int:
    """Fill a fan, :func:`fan_size` records FAN, with rays of many launch angles from one source, for
    :func:`find_eigenrays`.

    Returns the number of rays. The rays are in order of ascending angle.
    """
    cs = sound_speed_at(z, c, source)
    ratio = log(1.5706 / MIN_LAUNCH_ANGLE) / (FAN_ANGLES - 1)
    for k in range(FAN_ANGLES):
        fan[k].angle = MIN_LAUNCH_ANGLE * exp(ratio * k)
    n, greatest = FAN_ANGLES, cs
    for k in range(z.shape[0] - 1, -1, -1):
        if z[k] <= source and c[k] > greatest:
            greatest = c[k]
            n = _insert_grazing(z, c, k, cs, fan, n)
    greatest = cs
    for k in range(z.shape[0]):
        if z[k] >= source and c[k] > greatest:
            greatest = c[k]
            n = _insert_grazing(z, c, k, cs, fan, n)
    for k in range(n):
        _leave(z, c, source, fan[k])
    return n


@device_function
def _pass(z: Array, c: Array, source: float, receiver: float, leaving: Record) -> bool:
    """Return whether a ray of the fan reaches the receiver's depth; fill in the range to that depth."""
    leaving.way = math.nan
    if receiver < leaving.upper or receiver > leaving.lower:
        return False
    p = cos(leaving.angle) / sound_speed_at(z, c, source)
    # between source and receiver the ray of the fan does not turn, since both are between its reversals
    x, slope, _, _ = excursion(z, c, p, min(source, receiver), True, max(source, receiver))
    sign = 1.0 if receiver > source else -1.0
    leaving.way, leaving.way_slope = sign * x, sign * slope
    return True


@device_function
def _flattest_angle(z: Array, c: Array, source: float, receiver: float) -> float:
    """Return the launch angle of the flattest ray that does not turn between a source and a receiver."""
    cs, peak = sound_speed_at(z, c, source), 0.0
    for k in range(z.shape[0]):
        if min(source, receiver) <= z[k] <= max(source, receiver):
            peak = max(peak, c[k])
    peak = max(peak, sound_speed_at(z, c, receiver), cs)
    return float(acos(min(cs / peak, 1.0)) * (1.0 + 1e-9) + 1e-9)


@device_function
def find_eigenrays(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    distance: float,
    bounces: int,
    fan: Records,
    n: int,
    found: Records,
    none: Array,
    out: Record,
    bed: bool = True,
) -> tuple[int, int]:
    """Find all paths to a receiver with at most the given number of bounces and ``REVERSALS`` reversals, from a fan of
    ``n`` rays.

    Returns (number of paths, number of dropped paths: those with more reversals or without room in ``found``).
    ``found``: records EIGENRAY; ``out``: a record RAY; ``bed``: whether paths may bounce off the bottom.

    Between two rays of the fan with the same bounces the range is smooth. A receiver between their ranges has one path
    there. A receiver beyond both ranges has two paths if the range has an extreme in between; the derivative then has
    opposite signs at the two ends.
    """
    count = left = 0
    flattest, last = _flattest_angle(z, c, source, receiver), -1
    if flattest >= fan[0].angle:
        fan[n].angle = flattest
        _leave(z, c, source, fan[n])
        if _pass(z, c, source, receiver, fan[n]):
            last = n
    for k in range(n):
        if fan[k].angle <= flattest:
            continue
        if not _pass(z, c, source, receiver, fan[k]):
            last = -1
            continue
        if last >= 0 and fan[last].bounces == fan[k].bounces:
            for side in range(2):
                count, left = _side(
                    z,
                    c,
                    source,
                    receiver,
                    distance,
                    bounces,
                    fan,
                    n,
                    last,
                    k,
                    side == 1,
                    found,
                    count,
                    left,
                    none,
                    out,
                    bed,
                )
        last = k
    return count, left


@device_function
def _range(leaving: Record, down: bool, reversals: int) -> tuple[float, float]:
    """Return (range at which a ray of the fan reaches the receiver's depth, its derivative with respect to the invariant)."""
    if reversals == 0:
        sign = 1.0 if down else -1.0
        return sign * leaving.way, sign * leaving.way_slope
    turns, last_down = reversals - 1, down == (reversals % 2 == 1)
    upper = turns + (0 if down else 1) + (0 if last_down else 1)
    lower = turns + (1 if down else 0) + (1 if last_down else 0)
    sign = -1.0 if last_down else 1.0
    return (
        upper * leaving.upper_x + lower * leaving.lower_x + sign * leaving.way,
        upper * leaving.upper_slope + lower * leaving.lower_slope + sign * leaving.way_slope,
    )


@device_function
def _side(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    distance: float,
    bounces: int,
    fan: Records,
    n: int,
    i: int,
    k: int,
    down: bool,
    found: Records,
    count: int,
    left: int,
    none: Array,
    out: Record,
    bed: bool,
) -> tuple[int, int]:
    """Add the paths between two neighbours of the fan that leave down or up, as :func:`find_eigenrays` does."""
    one, other = fan[i], fan[k]
    kind = one.bounces
    cycle_1, cycle_2 = one.upper_x + one.lower_x, other.upper_x + other.lower_x
    # number of reversals that would lead there, at either end
    start_1, start_2 = _range(one, down, 1)[0] - cycle_1, _range(other, down, 1)[0] - cycle_2
    r1, r2 = (distance - start_1) / max(cycle_1, 1e-9), (distance - start_2) / max(cycle_2, 1e-9)
    first, most = max(math.floor(min(r1, r2)) - 2, 0.0), math.ceil(max(r1, r2)) + 2
    r = int(min(first, REVERSALS + 1.0))
    while r <= most:
        lower = (r + 1) // 2 if down else r // 2
        hits = (lower if kind & 2 else 0) + (r - lower if kind & 1 else 0)
        if hits > bounces or (not bed and kind & 2 and lower > 0):
            break
        if r > REVERSALS:  # only rays that turn at both ends
            left += max(int(min(max(r1, r2), 1e9)) - max(r, int(min(min(r1, r2), 1e9)) + 1) + 1, 0)
            break
        if r > 0 or (receiver > source) == down:
            count, left = _pair(z, c, source, receiver, distance, fan, n, i, k, down, r, found, count, left, none, out)
        r += 1
    return count, left


@device_function
def _pair(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    distance: float,
    fan: Records,
    n: int,
    i: int,
    k: int,
    down: bool,
    reversals: int,
    found: Records,
    count: int,
    left: int,
    none: Array,
    out: Record,
) -> tuple[int, int]:
    """Add the paths with the given number of reversals between two neighbours of the fan."""
    low, high = fan[i].angle, fan[k].angle
    a, slope_a = _range(fan[i], down, reversals)
    b, slope_b = _range(fan[k], down, reversals)
    a, b = a - distance, b - distance
    if a * b <= 0.0:
        return _keep(z, c, source, receiver, distance, low, high, down, reversals, found, count, left, none, out)
    # the invariant decreases while the angle increases
    if a * slope_a > 0.0 and b * slope_b < 0.0:
        middle = _come_back(z, c, source, receiver, distance, fan, n, i, k, down, reversals)
        if middle == middle:
            count, left = _keep(
                z, c, source, receiver, distance, low, middle, down, reversals, found, count, left, none, out
            )
            count, left = _keep(
                z, c, source, receiver, distance, middle, high, down, reversals, found, count, left, none, out
            )
    return count, left


@device_function
def _keep(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    distance: float,
    low: float,
    high: float,
    down: bool,
    reversals: int,
    found: Records,
    count: int,
    left: int,
    none: Array,
    out: Record,
) -> tuple[int, int]:
    """Add the path between two angles."""
    root = solve_launch_angle(z, c, source, receiver, distance, low, high, down, reversals, none, out)
    if root != root:
        return count, left
    if count >= found.shape[0]:
        return count, left + 1
    eigenray = found[count]
    eigenray.angle, eigenray.down, eigenray.reversals = root, 1 if down else 0, reversals
    eigenray.time, eigenray.bed = out.time, 0
    return count + 1, left


@device_function
def _come_back(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    distance: float,
    fan: Records,
    n: int,
    i: int,
    k: int,
    down: bool,
    reversals: int,
) -> float:
    """Find an angle between two neighbours of the fan whose ray and theirs are on opposite sides of the receiver.

    The search bisects for the extreme of the range. Returns NaN if there is no such angle, for example if the tangents
    at both ends do not meet beyond the receiver.
    """
    cs, tried = sound_speed_at(z, c, source), fan[n + 1]
    low, high = fan[i].angle, fan[k].angle
    a, slope_a = _range(fan[i], down, reversals)
    b, slope_b = _range(fan[k], down, reversals)
    a, b = a - distance, b - distance
    slope_a, slope_b = -slope_a * sin(low) / cs, -slope_b * sin(high) / cs
    for _ in range(60):
        if high - low < 1e-13:
            break
        meet = (b - a + slope_a * low - slope_b * high) / (slope_a - slope_b)
        if (a + slope_a * (meet - low)) * a > 0.0:
            break
        middle = 0.5 * (low + high)
        tried.angle = middle
        _leave(z, c, source, tried)
        if not _pass(z, c, source, receiver, tried):
            break
        f, slope = _range(tried, down, reversals)
        f -= distance
        slope = -slope * sin(middle) / cs
        if f * a <= 0.0:
            return middle
        if slope * a < 0.0:
            low, a, slope_a = middle, f, slope
        else:
            high, b, slope_b = middle, f, slope
    return math.nan


@device_function
def clamp_to_water(z: Array, source: float, receiver: float, across: float) -> tuple[float, float, float]:
    """Return (source depth, receiver depth, distance) for the search. The depths are limited to the water column and
    made different, and the distance is made positive.
    """
    deep = z[-1]
    zs, zr = min(max(source, 0.0), deep), min(max(receiver, 0.0), deep)
    if abs(zs - zr) < 1e-6:
        zr = zs + 1e-6 if zs + 1e-6 < deep else zs - 1e-6
    return zs, zr, max(across, 1e-6 * abs(zs - zr))


@device_function
def match_by_travel_time(
    z: Array,
    c: Array,
    source: float,
    receiver: float,
    distance: float,
    bounces: int,
    travel: float,
    fan: Records,
    found: Records,
    none: Array,
    out: Record,
    bed: bool,
) -> int:
    """Return the index of the eigenray with the travel time nearest to a known one, within 1 ms; -1 = none. ``out``
    receives that eigenray.
    """
    n = launch_fan(z, c, source, fan)
    count, _ = find_eigenrays(z, c, source, receiver, distance, bounces, fan, n, found, none, out, bed)
    best, gap = -1, 1e-3
    for k in range(count):
        if abs(found[k].time - travel) < gap:
            best, gap = k, abs(found[k].time - travel)
    if best >= 0:
        eigenray = found[best]
        trace_ray(z, c, source, receiver, eigenray.angle, eigenray.down > 0, eigenray.reversals, none, out)
        out.time -= out.invariant * (out.x - distance)
    return best


@device_function
def gradient_arc(
    speed_0: float, g: float, bottom: float, source: float, receiver: float, x: float, out: Record
) -> bool:
    """Compute the direct ray where c = speed_0 + g z, in closed form (a circle about the depth where c = 0).

    Fills in ``out``, in which the sines have a sign (positive down). Returns False if the arc leaves the water.
    """
    dz = receiver - source
    d = math.sqrt(x * x + dz * dz)
    ca, cb = speed_0 + g * source, speed_0 + g * receiver
    out.surface = out.bottom = 0
    out.sin_bottom = 0.0
    if d == 0.0:
        out.x = out.time = out.length = out.invariant = out.sin_source = out.sin_receiver = 0.0
        return True
    mean = math.sqrt(ca * cb)
    a = abs(g) * d / (2.0 * mean)
    out.x, out.time = x, d / mean * (asinh(a) / a if a > 1e-4 else 1.0 - a * a / 6.0)
    if x <= 1e-9 * d or abs(g) < 1e-12:
        out.length, out.invariant = d, x / d / mean
        out.sin_source = out.sin_receiver = dz / d
        return True
    za, zb = ca / g, cb / g  # depths below the circle's centre
    middle = 0.5 * (x + dz * (zb + za) / x)
    radius = math.sqrt(middle * middle + za * za)
    half = d / (2.0 * radius)
    out.length = d * (asin(min(half, 1.0)) / half if half > 1e-4 else 1.0 + half * half / 6.0)
    out.invariant = 1.0 / (abs(g) * radius)
    sign = 1.0 if za > 0.0 else -1.0
    out.sin_source, out.sin_receiver = sign * middle / radius, sign * (middle - x) / radius
    if 0.0 < middle < x:
        vertex = sign * radius - speed_0 / g
        return 0.0 <= vertex <= bottom
    return True
