"""Search for the eigenrays between a source and a receiver, in water whose sound speed depends only on depth; the
search is compiled.

A fan of rays with many launch angles brackets the eigenray of each path. A path is identified by its first direction
and its number of reversals. Because travel time is stationary at the eigenray, the Snell invariant times the miss
distance corrects the travel time to second order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_sdk.tables import Table, integer, value
from wavesim_server.acoustics.rays import BOUNDARY, Link, WaterPoint, excursion, ray_range, trace_ray, water_point
from wavesim_server.acoustics.root_bracket import Bracket, estimate_root, narrow_bracket
from wavesim_server.acoustics.types import Record, Records, SoundSpeedProfile
from wavesim_server.elementary import acos, cos, exp, log, sin

FAN = Table(
    "fan",
    "A launch angle at a source, and the ray launched at this angle.",
    "medium",
    (
        value("angle", "rad", "Launch angle from the horizontal."),
        value(
            "invariant", "s/m", "Snell invariant: cosine of the angle to the horizontal, divided by the sound speed."
        ),
        value("upper_x", "m", "Range from the upper turning point or bounce of the ray to the source."),
        value("lower_x", "m", "Range from the source to the lower turning point or bounce of the ray."),
        value("upper", "m", "Depth of the upper turning point or bounce of the ray."),
        value("lower", "m", "Depth of the lower turning point or bounce of the ray."),
        integer("bounces", "", "Bit mask: 1 = the ray bounces off the surface, 2 = it bounces off the bottom."),
        value("upper_slope", "m2/s", "Derivative of upper_x with respect to the invariant."),
        value("lower_slope", "m2/s", "Derivative of lower_x with respect to the invariant."),
        value(
            "way",
            "m",
            "Range over which the ray passes from the source's depth to the receiver's depth, negative if the receiver is above the source; NaN = not reached.",
        ),
        value("way_slope", "m2/s", "Derivative of the range `way` with respect to the invariant."),
        value(
            "reversals_up",
            "",
            "Fractional number of turning points and bounces before a ray launched upwards passes the current receiver.",
        ),
        value(
            "reversals_down",
            "",
            "Fractional number of turning points and bounces before a ray launched downwards passes the current receiver.",
        ),
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
        value("sx", "", "Direction at the source, in W, if the ray bounces off a bed that is not level."),
        value("sy", "", ""),
        integer("bed", "", "1 = the ray bounces off a bed that is not level."),
        value("rx", "", "Direction at the receiver, in W, of a ray that is identified by its launch direction."),
        value("ry", "", ""),
        value("rz", "", ""),
        value("down_x", "m", "Displacement (W) of the ray at the receiver per rad of downward tilt at the source."),
        value("down_y", "m", ""),
        value("down_z", "m", ""),
        value("side_x", "m", "The same displacement per rad of sideways tilt."),
        value("side_y", "m", ""),
        value("side_z", "m", ""),
        value(
            "level", "dB re 1 uPa", "Level at the receiver. Set only if there are more rays than the medium follows."
        ),
    ),
)
MIN_LAUNCH_ANGLE = 1e-5  #: minimum launch angle in the fan in rad
#: number of launch angles in the fan, not counting the angles of rays that graze a knot of the profile
FAN_ANGLES = 256
SPARE = 2  #: number of additional records at the end of a fan, for the ray that grazes the receiver and for a trial ray
REVERSALS = 31  #: maximum number of reversals of a path; paths with more reversals are counted as dropped
GRAZE = 1e-7  #: relative angular offset of the two fan rays on either side of a ray that grazes a knot
#: maximum distance in m by which an eigenray may miss the receiver; the travel time is corrected to second order.
# Where an eigenray grazes a knot, its end moves by millimetres with the last bit of its angle.
MAX_MISS = 0.1


class EigenraySearch(NamedTuple):
    """A search for those eigenrays of a link that have at most ``max_bounces`` bounces. Bounces off the bottom are
    allowed only if ``bed`` is true.

    :func:`launch_fan` fills the array ``fan``, whose last ``SPARE`` records are scratch space. ``found`` has EIGENRAY
    records for the results. ``no_points`` is an empty array (0, 2). ``ray`` has one RAY record (1,) for the ray that is
    being traced.
    """

    link: Link
    max_bounces: int
    bed: bool
    fan: Records
    found: Records
    no_points: Floats
    ray: Records


@device_function
def solve_launch_angle(
    link: Link, low: float, high: float, down: bool, reversals: int, no_points: Floats, ray: Record
) -> float:
    """Find the launch angle of the ray that reaches the receiver, given two angles that bracket this launch angle.
    ``ray`` receives the ray, without its length. Returns NaN if there is no such ray.

    Where a ray grazes a maximum of the sound speed, the range jumps: on one side of the jump the ray turns at the
    maximum, and on the other side it continues. No ray reaches the ranges in between.
    """
    reached, x = ray_range(link, low, down, reversals)
    if not reached:
        return math.nan
    miss_low = x - link.distance
    reached, x = ray_range(link, high, down, reversals)
    if not reached:
        return math.nan
    miss_high = x - link.distance
    if miss_low * miss_high > 0.0:
        return math.nan
    bracket = Bracket(low, miss_low, high, miss_high, 0)
    for _ in range(80):
        theta = estimate_root(bracket)
        reached, x = ray_range(link, theta, down, reversals)
        if not reached:
            return math.nan
        miss = x - link.distance
        if abs(miss) < 1e-6 or bracket.high - bracket.low < 1e-15:
            break
        bracket = narrow_bracket(bracket, theta, miss)
    if abs(miss) > MAX_MISS:
        return math.nan
    trace_ray(link, theta, down, reversals, no_points, ray, False)
    ray.time -= ray.invariant * miss
    return theta


@device_function
def refine_eigenray(
    link: Link, theta: float, down: bool, reversals: int, no_points: Floats, ray: Record, with_length: bool
) -> float:
    """Find the eigenray of the same path near a known launch angle (secant method). Returns NaN if the eigenray no
    longer exists. ``ray`` receives the ray. Its length is computed only if ``with_length`` is true.
    """
    a, b = theta, theta * (1.0 + 1e-5)
    reached, x = ray_range(link, a, down, reversals)
    if not reached:
        return math.nan
    fa = x - link.distance
    best, least = a, abs(fa)
    for _ in range(30):
        if least < 1e-6:
            break
        reached, x = ray_range(link, b, down, reversals)
        if not reached:
            b = 0.5 * (a + b)
            continue
        fb = x - link.distance
        if abs(fb) < least:
            best, least = b, abs(fb)
        if fa == fb:
            break
        step = fb * (b - a) / (fb - fa)
        limit = 0.3 * b  # a bad slope must not move it to another path
        a, fa, b = b, fb, b - min(max(step, -limit), limit)
    if least > MAX_MISS:
        return math.nan
    trace_ray(link, best, down, reversals, no_points, ray, with_length)
    ray.time -= ray.invariant * (ray.x - link.distance)
    return best


@device_function
def _insert(fan: Records, n: int, angle: float) -> int:
    """Insert an angle among the ``n`` ascending angles of a fan; return the new number of angles."""
    k = n
    while k > 0 and fan[k - 1].angle > angle:
        fan[k].angle = fan[k - 1].angle
        k -= 1
    fan[k].angle = angle
    return n + 1


@device_function
def _insert_grazing(profile: SoundSpeedProfile, k: int, source_speed: float, fan: Records, n: int) -> int:
    """Insert a ray on each side of the ray that turns at a knot.

    At the angle of the ray that turns at a knot, the derivative of the range is discontinuous. The range itself also
    jumps if the sound speed decreases beyond the knot. Between two such angles, the range is smooth.
    """
    z, c = profile.z, profile.c
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
def _fill_fan_ray(profile: SoundSpeedProfile, source: WaterPoint, leaving: Record) -> None:
    """Compute the fields in a fan record from its angle."""
    p = leaving.invariant = cos(leaving.angle) / source.speed
    ux, us, high, up_how = excursion(profile, p, source, False, profile.z[0] - 1.0, True)
    lx, ls, low, low_how = excursion(profile, p, source, True, profile.z[-1] + 1.0, True)
    leaving.upper_x, leaving.lower_x, leaving.upper_slope, leaving.lower_slope = ux, lx, us, ls
    leaving.upper, leaving.lower = high, low
    leaving.bounces = (1 if up_how == BOUNDARY else 0) + (2 if low_how == BOUNDARY else 0)


@device_function
def launch_fan(profile: SoundSpeedProfile, source: float, fan: Records) -> int:
    """Fill a fan (:func:`fan_size` FAN records) with rays of many launch angles from one source, for
    :func:`find_eigenrays`.

    Returns the number of rays, which are sorted by ascending angle.
    """
    z, c, at_source = profile.z, profile.c, water_point(profile, source)
    cs = at_source.speed
    ratio = log(1.5706 / MIN_LAUNCH_ANGLE) / (FAN_ANGLES - 1)
    for k in range(FAN_ANGLES):
        fan[k].angle = MIN_LAUNCH_ANGLE * exp(ratio * k)
    n, greatest = FAN_ANGLES, cs
    for k in range(z.shape[0] - 1, -1, -1):
        if z[k] <= source and c[k] > greatest:
            greatest = c[k]
            n = _insert_grazing(profile, k, cs, fan, n)
    greatest = cs
    for k in range(z.shape[0]):
        if z[k] >= source and c[k] > greatest:
            greatest = c[k]
            n = _insert_grazing(profile, k, cs, fan, n)
    for k in range(n):
        _fill_fan_ray(profile, at_source, fan[k])
    return n


class _Course(NamedTuple):
    """Kind of path: the factors by which ``upper_x``, ``lower_x`` and ``way`` of a fan ray are multiplied. The sum of
    these products is the range of the path.
    """

    upper: int
    lower: int
    sign: float


@always_inline
def _course(down: bool, reversals: int) -> _Course:
    """Return the factors for paths that leave downwards (or upwards if ``down`` is false) and have the given number of
    reversals.
    """
    if reversals == 0:
        return _Course(0, 0, 1.0 if down else -1.0)
    turns, last_down = reversals - 1, down == (reversals % 2 == 1)
    return _Course(
        turns + (0 if down else 1) + (0 if last_down else 1),
        turns + (1 if down else 0) + (1 if last_down else 0),
        -1.0 if last_down else 1.0,
    )


@always_inline
def _range(leaving: Record, course: _Course) -> float:
    """Return the range at which a ray of the fan reaches the receiver's depth."""
    return float(course.upper * leaving.upper_x + course.lower * leaving.lower_x + course.sign * leaving.way)


@always_inline
def _range_slope(leaving: Record, course: _Course) -> float:
    """Return the derivative of :func:`_range` with respect to the Snell invariant."""
    return float(
        course.upper * leaving.upper_slope + course.lower * leaving.lower_slope + course.sign * leaving.way_slope
    )


@device_function
def _reach_receiver(link: Link, leaving: Record) -> bool:
    """Return whether a ray of the fan reaches the receiver's depth, and fill in the fields that depend on the receiver."""
    source, receiver = link.source, link.receiver
    leaving.way = math.nan
    if receiver < leaving.upper or receiver > leaving.lower:
        return False
    # between source and receiver the ray of the fan does not turn, since both are between its reversals
    is_lower = receiver > source
    start = link.at_source if is_lower else link.at_receiver
    x, slope, _, _ = excursion(link.profile, leaving.invariant, start, True, max(source, receiver), True)
    sign = 1.0 if is_lower else -1.0
    leaving.way, leaving.way_slope = sign * x, sign * slope
    cycle = leaving.upper_x + leaving.lower_x
    least = max(cycle, 1e-9)
    leaving.reversals_up = (link.distance - (_range(leaving, _course(False, 1)) - cycle)) / least
    leaving.reversals_down = (link.distance - (_range(leaving, _course(True, 1)) - cycle)) / least
    return True


@device_function
def _flattest_angle(link: Link) -> float:
    """Return the launch angle of a link's flattest ray that does not turn between source and receiver."""
    profile, source, receiver = link.profile, link.source, link.receiver
    cs, peak = link.at_source.speed, 0.0
    for k in range(profile.z.shape[0]):
        if min(source, receiver) <= profile.z[k] <= max(source, receiver):
            peak = max(peak, profile.c[k])
    peak = max(peak, link.at_receiver.speed, cs)
    return float(acos(min(cs / peak, 1.0)) * (1.0 + 1e-9) + 1e-9)


@device_function
def find_eigenrays(search: EigenraySearch, n: int) -> tuple[int, int]:
    """Find all paths of a link with at most ``REVERSALS`` reversals, from a fan of ``n`` rays.

    Returns (number of paths, number of dropped paths). A path is dropped if it has more than the maximum number of
    reversals, or if ``search.found`` is full.

    Between two rays of the fan with the same bounces, the range is smooth. If the receiver's range is between the
    ranges of the two rays, there is one path between them. If the receiver is beyond both ranges, there are two paths,
    provided that the range has an extremum between the two rays and that this extremum lies on the other side of the
    receiver. The derivative of the range then has opposite signs at the two rays.
    """
    link, fan = search.link, search.fan
    count = dropped = 0
    flattest, last = _flattest_angle(link), -1
    if flattest >= fan[0].angle:
        spare = fan.shape[0] - SPARE
        fan[spare].angle = flattest
        _fill_fan_ray(link.profile, link.at_source, fan[spare])
        if _reach_receiver(link, fan[spare]):
            last = spare
    for k in range(n):
        if fan[k].angle <= flattest:
            continue
        if not _reach_receiver(link, fan[k]):
            last = -1
            continue
        if last >= 0 and fan[last].bounces == fan[k].bounces:
            for side in range(2):
                count, dropped = _search_side(search, fan[last], fan[k], side == 1, count, dropped)
        last = k
    return count, dropped


@device_function
def _search_side(
    search: EigenraySearch, one: Record, other: Record, down: bool, count: int, dropped: int
) -> tuple[int, int]:
    """Add the paths between two neighbouring rays of the fan, either those that leave downwards or those that leave
    upwards; see :func:`find_eigenrays`.
    """
    link, kind = search.link, one.bounces
    r1, r2 = (one.reversals_down, other.reversals_down) if down else (one.reversals_up, other.reversals_up)
    first, most = max(math.floor(min(r1, r2)) - 2, 0.0), math.ceil(max(r1, r2)) + 2
    r = int(min(first, REVERSALS + 1.0))
    while r <= most:
        lower = (r + 1) // 2 if down else r // 2
        hits = (lower if kind & 2 else 0) + (r - lower if kind & 1 else 0)
        if hits > search.max_bounces or (not search.bed and kind & 2 and lower > 0):
            break
        if r > REVERSALS:  # only rays that turn at both ends
            dropped += max(int(min(max(r1, r2), 1e9)) - max(r, int(min(min(r1, r2), 1e9)) + 1) + 1, 0)
            break
        if r > 0 or (link.receiver > link.source) == down:
            course = _course(down, r)
            a, b = _range(one, course) - link.distance, _range(other, course) - link.distance
            if a * b <= 0.0:
                count, dropped = _add_eigenray(search, one.angle, other.angle, down, r, count, dropped)
            # the invariant decreases while the angle increases
            elif a * _range_slope(one, course) > 0.0 and b * _range_slope(other, course) < 0.0:
                middle = _angle_beyond_receiver(search, one, other, course)
                if middle == middle:
                    count, dropped = _add_eigenray(search, one.angle, middle, down, r, count, dropped)
                    count, dropped = _add_eigenray(search, middle, other.angle, down, r, count, dropped)
        r += 1
    return count, dropped


@device_function
def _add_eigenray(
    search: EigenraySearch, low: float, high: float, down: bool, reversals: int, count: int, dropped: int
) -> tuple[int, int]:
    """Add the eigenray of the path between two launch angles."""
    root = solve_launch_angle(search.link, low, high, down, reversals, search.no_points, search.ray[0])
    if root != root:
        return count, dropped
    if count >= search.found.shape[0]:
        return count, dropped + 1
    eigenray = search.found[count]
    eigenray.angle, eigenray.down, eigenray.reversals = root, 1 if down else 0, reversals
    eigenray.time, eigenray.bed = search.ray[0].time, 0
    return count + 1, dropped


@device_function
def _angle_beyond_receiver(search: EigenraySearch, one: Record, other: Record, course: _Course) -> float:
    """Find a launch angle at which a ray between two neighbouring rays of the fan reaches the other side of the
    receiver.

    The search bisects for the extremum of the range. Returns NaN if there is no such angle, for example if the tangents
    at both ends do not meet beyond the receiver.
    """
    link, tried = search.link, search.fan[search.fan.shape[0] - 1]
    cs = link.at_source.speed
    low, high = one.angle, other.angle
    a, b = _range(one, course) - link.distance, _range(other, course) - link.distance
    slope_a, slope_b = -_range_slope(one, course) * sin(low) / cs, -_range_slope(other, course) * sin(high) / cs
    for _ in range(60):
        if high - low < 1e-13:
            break
        meet = (b - a + slope_a * low - slope_b * high) / (slope_a - slope_b)
        if (a + slope_a * (meet - low)) * a > 0.0:
            break
        middle = 0.5 * (low + high)
        tried.angle = middle
        _fill_fan_ray(link.profile, link.at_source, tried)
        if not _reach_receiver(link, tried):
            break
        f = _range(tried, course) - link.distance
        slope = -_range_slope(tried, course) * sin(middle) / cs
        if f * a <= 0.0:
            return middle
        if slope * a < 0.0:
            low, a, slope_a = middle, f, slope
        else:
            high, b, slope_b = middle, f, slope
    return math.nan


@device_function
def match_by_travel_time(search: EigenraySearch, travel: float) -> int:
    """Return the index of the eigenray whose travel time is nearest to a known travel time and within 1 ms of it; -1
    means none. ``search.ray[0]`` receives that eigenray. This function launches the fan.
    """
    link, found, ray = search.link, search.found, search.ray[0]
    n = launch_fan(link.profile, link.source, search.fan)
    count, _ = find_eigenrays(search, n)
    best, gap = -1, 1e-3
    for k in range(count):
        if abs(found[k].time - travel) < gap:
            best, gap = k, abs(found[k].time - travel)
    if best >= 0:
        eigenray = found[best]
        trace_ray(link, eigenray.angle, eigenray.down > 0, eigenray.reversals, search.no_points, ray, True)
        ray.time -= ray.invariant * (ray.x - link.distance)
    return best
