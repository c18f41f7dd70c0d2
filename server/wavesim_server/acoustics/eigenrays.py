"""Search for the eigenrays between a source and a receiver, in water whose sound speed depends only on depth; compiled.

A fan of rays with many launch angles brackets the eigenray of each path: of each first direction and number of
reversals. Travel time is stationary at the eigenray, so the Snell invariant times the miss corrects it to second order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_sdk.tables import Table, integer, value
from wavesim_server.acoustics.rays import BOUNDARY, Link, excursion, sound_speed_at, trace_ray
from wavesim_server.acoustics.root_bracket import Bracket, estimate_root, narrow_bracket
from wavesim_server.acoustics.types import Record, Records, SoundSpeedProfile
from wavesim_server.elementary import acos, cos, exp, log, sin

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


class EigenraySearch(NamedTuple):
    """A search for the eigenrays of a link with at most ``max_bounces`` bounces, off the bottom only if ``bed``.

    Its arrays: the launch fan, filled by :func:`launch_fan` (its last ``SPARE`` records are scratch), records EIGENRAY
    for the results, an empty array (0, 2), and one record RAY, (1,), of the ray that is traced.
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
    """Find the launch angle of the ray that reaches the receiver, between two angles that bracket it. ``ray`` receives
    the ray. Returns NaN if there is none.

    Where a ray grazes a maximum of the sound speed, the range jumps: from that of a ray that turns there to that of a
    ray that continues. No ray reaches the ranges in between.
    """
    if not trace_ray(link, low, down, reversals, no_points, ray):
        return math.nan
    miss_low = ray.x - link.distance
    if not trace_ray(link, high, down, reversals, no_points, ray):
        return math.nan
    miss_high = ray.x - link.distance
    if miss_low * miss_high > 0.0:
        return math.nan
    bracket = Bracket(low, miss_low, high, miss_high, 0)
    for _ in range(80):
        theta = estimate_root(bracket)
        if not trace_ray(link, theta, down, reversals, no_points, ray):
            return math.nan
        miss = ray.x - link.distance
        if abs(miss) < 1e-6 or bracket.high - bracket.low < 1e-15:
            break
        bracket = narrow_bracket(bracket, theta, miss)
    if abs(miss) > MAX_MISS:
        return math.nan
    ray.time -= ray.invariant * miss
    return theta


@device_function
def refine_eigenray(link: Link, theta: float, down: bool, reversals: int, no_points: Floats, ray: Record) -> float:
    """Find the eigenray of the same path near a known launch angle (secant). Returns NaN if the eigenray no longer
    exists.
    """
    a, b = theta, theta * (1.0 + 1e-5)
    if not trace_ray(link, a, down, reversals, no_points, ray):
        return math.nan
    fa = ray.x - link.distance
    best, least = a, abs(fa)
    for _ in range(30):
        if least < 1e-6:
            break
        if not trace_ray(link, b, down, reversals, no_points, ray):
            b = 0.5 * (a + b)
            continue
        fb = ray.x - link.distance
        if abs(fb) < least:
            best, least = b, abs(fb)
        if fa == fb:
            break
        step = fb * (b - a) / (fb - fa)
        limit = 0.3 * b  # a bad slope must not move it to another path
        a, fa, b = b, fb, b - min(max(step, -limit), limit)
    if least > MAX_MISS:
        return math.nan
    trace_ray(link, best, down, reversals, no_points, ray)
    ray.time -= ray.invariant * (ray.x - link.distance)
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
def _insert_grazing(profile: SoundSpeedProfile, k: int, source_speed: float, fan: Records, n: int) -> int:
    """Insert a ray on each side of the ray that turns at a knot.

    The derivative of the range jumps there. The range itself also jumps if the speed decreases beyond the knot. Between
    two such angles the range is smooth.
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
def _fill_fan_ray(profile: SoundSpeedProfile, source: float, leaving: Record) -> None:
    """Compute the fields of a record of the fan from its angle."""
    p = cos(leaving.angle) / sound_speed_at(profile, source)
    ux, us, high, up_how = excursion(profile, p, source, False, profile.z[0] - 1.0)
    lx, ls, low, low_how = excursion(profile, p, source, True, profile.z[-1] + 1.0)
    leaving.upper_x, leaving.lower_x, leaving.upper_slope, leaving.lower_slope = ux, lx, us, ls
    leaving.upper, leaving.lower = high, low
    leaving.bounces = (1 if up_how == BOUNDARY else 0) + (2 if low_how == BOUNDARY else 0)


@device_function
def launch_fan(profile: SoundSpeedProfile, source: float, fan: Records) -> int:
    """Fill a fan, :func:`fan_size` records FAN, with rays of many launch angles from one source, for
    :func:`find_eigenrays`.

    Returns the number of rays. The rays are in order of ascending angle.
    """
    z, c, cs = profile.z, profile.c, sound_speed_at(profile, source)
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
        _fill_fan_ray(profile, source, fan[k])
    return n


@device_function
def _reach_receiver(link: Link, leaving: Record) -> bool:
    """Return whether a ray of the fan reaches the receiver's depth; fill in the range to that depth."""
    source, receiver = link.source, link.receiver
    leaving.way = math.nan
    if receiver < leaving.upper or receiver > leaving.lower:
        return False
    p = cos(leaving.angle) / sound_speed_at(link.profile, source)
    # between source and receiver the ray of the fan does not turn, since both are between its reversals
    x, slope, _, _ = excursion(link.profile, p, min(source, receiver), True, max(source, receiver))
    sign = 1.0 if receiver > source else -1.0
    leaving.way, leaving.way_slope = sign * x, sign * slope
    return True


@device_function
def _flattest_angle(link: Link) -> float:
    """Return the launch angle of the flattest ray of a link that does not turn between source and receiver."""
    profile, source, receiver = link.profile, link.source, link.receiver
    cs, peak = sound_speed_at(profile, source), 0.0
    for k in range(profile.z.shape[0]):
        if min(source, receiver) <= profile.z[k] <= max(source, receiver):
            peak = max(peak, profile.c[k])
    peak = max(peak, sound_speed_at(profile, receiver), cs)
    return float(acos(min(cs / peak, 1.0)) * (1.0 + 1e-9) + 1e-9)


@device_function
def find_eigenrays(search: EigenraySearch, n: int) -> tuple[int, int]:
    """Find all paths of a link with at most ``REVERSALS`` reversals, from a fan of ``n`` rays.

    Returns (number of paths, number of dropped paths: those with more reversals or without room in ``search.found``).

    Between two rays of the fan with the same bounces the range is smooth. A receiver between their ranges has one path
    there. A receiver beyond both ranges has two paths if the range has an extreme in between; the derivative then has
    opposite signs at the two ends.
    """
    link, fan = search.link, search.fan
    count = dropped = 0
    flattest, last = _flattest_angle(link), -1
    if flattest >= fan[0].angle:
        spare = fan.shape[0] - SPARE
        fan[spare].angle = flattest
        _fill_fan_ray(link.profile, link.source, fan[spare])
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
def _search_side(
    search: EigenraySearch, one: Record, other: Record, down: bool, count: int, dropped: int
) -> tuple[int, int]:
    """Add the paths between two neighbours of the fan that leave down or up, as :func:`find_eigenrays` does."""
    link, kind = search.link, one.bounces
    cycle_1, cycle_2 = one.upper_x + one.lower_x, other.upper_x + other.lower_x
    # number of reversals that would lead there, at either end
    start_1, start_2 = _range(one, down, 1)[0] - cycle_1, _range(other, down, 1)[0] - cycle_2
    r1, r2 = (link.distance - start_1) / max(cycle_1, 1e-9), (link.distance - start_2) / max(cycle_2, 1e-9)
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
            count, dropped = _search_pair(search, one, other, down, r, count, dropped)
        r += 1
    return count, dropped


@device_function
def _search_pair(
    search: EigenraySearch, one: Record, other: Record, down: bool, reversals: int, count: int, dropped: int
) -> tuple[int, int]:
    """Add the paths with the given number of reversals between two neighbours of the fan."""
    low, high = one.angle, other.angle
    a, slope_a = _range(one, down, reversals)
    b, slope_b = _range(other, down, reversals)
    a, b = a - search.link.distance, b - search.link.distance
    if a * b <= 0.0:
        return _add_eigenray(search, low, high, down, reversals, count, dropped)
    # the invariant decreases while the angle increases
    if a * slope_a > 0.0 and b * slope_b < 0.0:
        middle = _angle_beyond_receiver(search, one, other, down, reversals)
        if middle == middle:
            count, dropped = _add_eigenray(search, low, middle, down, reversals, count, dropped)
            count, dropped = _add_eigenray(search, middle, high, down, reversals, count, dropped)
    return count, dropped


@device_function
def _add_eigenray(
    search: EigenraySearch, low: float, high: float, down: bool, reversals: int, count: int, dropped: int
) -> tuple[int, int]:
    """Add the path between two angles."""
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
def _angle_beyond_receiver(search: EigenraySearch, one: Record, other: Record, down: bool, reversals: int) -> float:
    """Find an angle between two neighbours of the fan whose ray and theirs are on opposite sides of the receiver.

    The search bisects for the extreme of the range. Returns NaN if there is no such angle, for example if the tangents
    at both ends do not meet beyond the receiver.
    """
    link, tried = search.link, search.fan[search.fan.shape[0] - 1]
    cs = sound_speed_at(link.profile, link.source)
    low, high = one.angle, other.angle
    a, slope_a = _range(one, down, reversals)
    b, slope_b = _range(other, down, reversals)
    a, b = a - link.distance, b - link.distance
    slope_a, slope_b = -slope_a * sin(low) / cs, -slope_b * sin(high) / cs
    for _ in range(60):
        if high - low < 1e-13:
            break
        meet = (b - a + slope_a * low - slope_b * high) / (slope_a - slope_b)
        if (a + slope_a * (meet - low)) * a > 0.0:
            break
        middle = 0.5 * (low + high)
        tried.angle = middle
        _fill_fan_ray(link.profile, link.source, tried)
        if not _reach_receiver(link, tried):
            break
        f, slope = _range(tried, down, reversals)
        f -= link.distance
        slope = -slope * sin(middle) / cs
        if f * a <= 0.0:
            return middle
        if slope * a < 0.0:
            low, a, slope_a = middle, f, slope
        else:
            high, b, slope_b = middle, f, slope
    return math.nan


@device_function
def match_by_travel_time(search: EigenraySearch, travel: float) -> int:
    """Return the index of the eigenray with the travel time nearest to a known one, within 1 ms; -1 = none.
    ``search.ray[0]`` receives that eigenray. The fan is launched here.
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
        trace_ray(link, eigenray.angle, eigenray.down > 0, eigenray.reversals, search.no_points, ray)
        ray.time -= ray.invariant * (ray.x - link.distance)
    return best
