"""Search for all rays that travel from a source to a receiver and bounce off a bed that is not level, or that travel
through water whose sound speed is given by a grid; the search is compiled.

A fan of rays in the vertical plane through source and receiver brackets the rays that reach the receiver. Each leg,
which is the part of a ray between two reversals, is searched separately. The history of a ray is its sequence of
surface bounces, bed bounces, turning points and maxima of the sound speed. Between two rays of the fan with the same
history, the range is assumed to be smooth. In a sound field, the range has a kink where a turning point passes a level
of the grid. The levels between which a ray turns are therefore treated as part of its history. Where the history
changes, a search finds the launch angle of the change. Near the receiver, the interval between two launch angles is
halved. It is halved again as long as the curvature of the range is so large that the interval may hide a pair of rays.
Each ray is then aimed as in :mod:`range_dependent_rays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import eigenrays, range_dependent_rays, volume_aiming, volume_rays
from wavesim_server.acoustics.root_bracket import Bracket, estimate_root, narrow_bracket
from wavesim_server.acoustics.types import Record, Records, Vector
from wavesim_server.acoustics.volume_aiming import FirstGuess
from wavesim_server.acoustics.volume_rays import RayTarget
from wavesim_server.acoustics.waveguides import (
    BEDS_MET,
    BEFORE,
    BEYOND,
    BOUNCES_MET,
    DEEP,
    EDGE,
    HIGH,
    HISTORY,
    LEVELS,
    LOW,
    MAX_LEGS,
    NEXT,
    TRIED,
    RayStart,
    Waveguide,
    X,
    Y,
    copy,
    has_field,
)
from wavesim_server.elementary import asin, asinh, cos, exp, hypot, sin

#: number of rays on each side of the fan, and the number of these rays that are beyond the vertical
ANGLES, BACK = 332, 12
FLAT = 2e-2  #: launch angle in rad above which the steps between the rays of the fan grow
REACH = 0.06  #: distance from the receiver within which the fan is refined, as a fraction of a ray's maximum range
CLOSE = 0.01  #: maximum distance in m by which a ray of the fan may miss the receiver before it is aimed
ALWAYS = 2  #: minimum number of halvings of the angle between two rays near the receiver
DIVISIONS = 64  #: maximum number of history changes that are located between two rays of the fan


class Course(NamedTuple):
    """Data of a scan: water and bed, source and receiver, the horizontal direction from the source to the receiver, and
    the arrays of the scan.
    """

    guide: Waveguide
    a: Vector
    b: Vector
    lx: float
    ly: float
    legs: Floats
    no_points: Floats
    found: Records


@device_function
def _angle(k: int) -> float:
    """Return the launch angle of a ray in the fan. The angles begin at the horizontal and end slightly beyond the
    vertical; the steps between them grow above `FLAT`.
    """
    if k >= ANGLES - BACK:
        return 1.5706 + 0.05 * (k - (ANGLES - BACK) + 1)
    u = k * asinh(1.5706 / FLAT) / (ANGLES - BACK - 1)
    return max(0.5 * FLAT * (exp(u) - exp(-u)), eigenrays.MIN_LAUNCH_ANGLE)


@device_function
def scan(
    guide: Waveguide, a: Vector, b: Vector, found: Records, count: int, legs: Floats, no_points: Floats, shot: Record
) -> tuple[int, int]:
    """Find all rays from a to b that bounce off the bed, or all rays in a sound field. Append them to the ``count`` rays
    that have already been found. A ray has at most ``guide.max_bounces`` bounces.

    Returns (new number of rays, lower bound on the number of dropped rays). Rays are dropped if there is no room for
    them or if they have too many reversals.
    """
    far = hypot(b.x - a.x, b.y - a.y)
    lx, ly = ((b.x - a.x) / far, (b.y - a.y) / far) if far > 1e-9 else (1.0, 0.0)
    w = Course(guide, a, b, lx, ly, legs, no_points, found)
    left, cut = 0, 0
    for side in range(2):
        sign = 1.0 if side == 1 else -1.0
        before = math.nan
        for k in range(ANGLES):
            angle = _angle(k)
            _shoot(w, sign, angle, NEXT, shot)
            if _is_searched(w, legs[NEXT, MAX_LEGS - 1]) and _ahead(w, legs[NEXT, MAX_LEGS - 1]) < 0.0:
                cut = 1
            if before == before:
                count, left = _interval(w, sign, before, angle, count, left, shot)
            before = angle
            copy(legs[NEXT], legs[BEFORE])
    if has_field(guide):
        count, left = _add_flat_ray(w, count, left, shot)
    return count, left + cut


@device_function
def _add_flat_ray(w: Course, count: int, left: int, shot: Record) -> tuple[int, int]:
    """Add the direct ray if the fan has missed it, because the ray is nearly level and its ends have nearly the same
    depth.
    """
    x, y, z = w.b.x - w.a.x, w.b.y - w.a.y, w.b.z - w.a.z
    far = math.sqrt(x * x + y * y + z * z)
    if far < 1e-9:
        return count, left
    level = _unknown_ray(Vector(x / far, y / far, z / far))
    if not aim_ray(w.guide, w.a, RayTarget(w.b, 0, 0), level, False, w.legs, w.no_points, shot):
        return count, left
    return _add_ray(w, asin(min(abs(shot.sz), 1.0)), int(shot.reversals), count, left, shot)


@device_function
def _unknown_ray(direction: Vector) -> FirstGuess:
    """Return a first guess for a ray of which only the direction is known."""
    return FirstGuess(direction, Vector(0.0, 0.0, 0.0), Vector(0.0, 0.0, 0.0))


@device_function
def aim_ray(
    guide: Waveguide,
    a: Vector,
    target: RayTarget,
    guess: FirstGuess,
    with_level: bool,
    legs: Floats,
    no_points: Floats,
    shot: Record,
) -> bool:
    """Find the ray from a to a target near a given direction; ``shot`` receives the ray. Returns False if there is no
    such ray. The level of the ray is valid only if ``with_level`` is true.
    """
    if has_field(guide):
        return volume_aiming.aim_ray(guide, a, target, guess, with_level, legs, no_points, shot)
    return range_dependent_rays.aim_ray(
        guide, a, target.position, target.reversals, guess.direction, legs, no_points, shot
    )


@device_function
def _is_searched(w: Course, leg: Floats) -> bool:
    """Return whether the search includes a leg: in a sound field, any leg; otherwise, a leg after a bounce off the bed."""
    return bool(has_field(w.guide) or leg[BEDS_MET] > 0.0)


@device_function
def _shoot(w: Course, sign: float, angle: float, slot: int, shot: Record) -> None:
    """Trace a ray of the fan; ``legs[slot]`` receives its legs."""
    start = RayStart(w.a, _direction(w, sign, angle))
    if has_field(w.guide):
        volume_rays.trace_ray(w.guide, start, RayTarget(w.b, 0, -1), False, w.legs[slot], w.no_points, shot)
        return
    range_dependent_rays.trace_ray(w.guide, start, w.b.z, MAX_LEGS - 1, False, w.legs[slot], w.no_points, shot)


@device_function
def _direction(w: Course, sign: float, angle: float) -> Vector:
    """Return the direction towards the receiver at a given launch angle."""
    level = cos(angle)
    return Vector(level * w.lx, level * w.ly, sign * sin(angle))


@device_function
def _ahead(w: Course, leg: Floats) -> float:
    """Return the distance in m by which a leg of a ray passes beyond the receiver; negative if the leg falls short of
    it.
    """
    return float((leg[X] - w.b.x) * w.lx + (leg[Y] - w.b.y) * w.ly)


@device_function
def _interval(w: Course, sign: float, a: float, b: float, count: int, left: int, shot: Record) -> tuple[int, int]:
    """Add the rays that reach the receiver and are between two rays of the fan, ``legs[BEFORE]`` and ``legs[NEXT]``.

    Each interval in which the rays have the same history is searched separately.
    """
    legs, edge = w.legs, False
    copy(legs[BEFORE], legs[LOW])
    for division in range(DIVISIONS + 1):
        if _alike(w, legs[LOW], legs[NEXT]):
            break
        if division == DIVISIONS:
            return count, left + 1
        low, high = a, b
        copy(legs[LOW], legs[EDGE])
        copy(legs[NEXT], legs[BEYOND])
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            _shoot(w, sign, middle, TRIED, shot)
            if _alike(w, legs[LOW], legs[TRIED]):
                low = middle
                copy(legs[TRIED], legs[EDGE])
            else:
                high = middle
                copy(legs[TRIED], legs[BEYOND])
        if low > a:
            copy(legs[EDGE], legs[HIGH])
            count, left = _refined(w, sign, a, low, True, count, left, shot)
        if has_field(w.guide):  # the range does not jump where a turning point passes a level of the grid
            count, left = _between(w, sign, low, high, BEYOND, count, left, shot)
        a, edge = high, True
        copy(legs[BEYOND], legs[LOW])
    if a < b:
        copy(legs[NEXT], legs[HIGH])
        count, left = _refined(w, sign, a, b, edge, count, left, shot)
    return count, left


@device_function
def _refined(
    w: Course, sign: float, a: float, b: float, edge: bool, count: int, left: int, shot: Record
) -> tuple[int, int]:
    """Add the rays that reach the receiver and are between ``legs[LOW]`` and ``legs[HIGH]``, in the order from low to
    high.

    The interval between the two launch angles is halved where the curvature of the range may hide a pair of rays.
    ``edge`` states whether the interval borders on rays with another history. The range may then be curved all the way
    to that border, so the interval is halved at least ``ALWAYS`` times.
    """
    legs = w.legs
    depth = i = 0  # part i of 2^depth
    halve = (
        (1 << ALWAYS) - 1 if edge or _within_reach(w, legs[LOW], legs[HIGH]) else 0
    )  # bit k: parts at depth k are halved
    while True:
        # end of a part: the middle of the last halved part whose left half contains it
        ends, bits = HIGH + depth, i
        while bits & 1:
            ends, bits = ends - 1, bits >> 1
        size = (b - a) / (1 << depth)
        if (halve >> depth) & 1 and depth < DEEP:
            depth, i = depth + 1, 2 * i
            _shoot(w, sign, a + (i + 1) * 0.5 * size, HIGH + depth, shot)
            if depth > ALWAYS:
                halve &= ~(1 << depth)
            if _bends(w, legs[LOW], legs[HIGH + depth], legs[ends]):
                halve |= 1 << depth
            continue
        count, left = _between(w, sign, a + i * size, a + (i + 1) * size, ends, count, left, shot)
        copy(legs[ends], legs[LOW])
        while depth > 0 and i & 1:
            depth, i = depth - 1, i >> 1
        if depth == 0:
            return count, left
        i += 1


@device_function
def _within_reach(w: Course, low: Floats, high: Floats) -> bool:
    """Return whether two rays of the fan pass so close to the receiver, in the same leg, that a ray between them may
    reach the receiver.
    """
    for r in range(MAX_LEGS):
        if low[r, HISTORY] == high[r, HISTORY] and _is_searched(w, low[r]):
            a, b = _ahead(w, low[r]), _ahead(w, high[r])
            if min(abs(a), abs(b)) < abs(b - a) + REACH * w.guide.max_range:
                return True
    return False


@device_function
def _bends(w: Course, low: Floats, middle: Floats, high: Floats) -> bool:
    """Return whether the range of a leg may have an extremum near the receiver, between two rays of the fan.

    The test uses the ray midway between the two rays.
    """
    for r in range(MAX_LEGS):
        kinds = middle[r, HISTORY]
        if low[r, HISTORY] == kinds and high[r, HISTORY] == kinds and _is_searched(w, middle[r]):
            a, m, b = _ahead(w, low[r]), _ahead(w, middle[r]), _ahead(w, high[r])
            bow = abs(m - 0.5 * (a + b))  # of a parabola: it has an extreme if this exceeds a quarter of the difference
            if bow > 1e-3 and abs(b - a) < 6.0 * bow and min(abs(a), abs(m), abs(b)) < 2.0 * bow:
                return True
    return False


@device_function
def _alike(w: Course, one: Floats, other: Floats) -> bool:
    """Return whether two rays have the same history up to the receiver."""
    ax, ay = w.a.x, w.a.y
    for r in range(MAX_LEGS):
        a, b = hypot(one[r, X] - ax, one[r, Y] - ay), hypot(other[r, X] - ax, other[r, Y] - ay)
        away = a != a or b != b or one[r, HISTORY] != other[r, HISTORY] or one[r, LEVELS] != other[r, LEVELS]
        if away and (a < 0.8 * w.guide.max_range or b < 0.8 * w.guide.max_range):
            return False
    return True


@device_function
def _between(
    w: Course, sign: float, a: float, b: float, end: int, count: int, left: int, shot: Record
) -> tuple[int, int]:
    """Add the rays that reach the receiver and whose launch angles are between those of ``legs[LOW]`` and
    ``legs[end]``.

    There is one such ray for each leg that passes over the receiver.
    """
    low, high = w.legs[LOW], w.legs[end]
    for r in range(MAX_LEGS):
        kinds = low[r, HISTORY]
        if kinds != high[r, HISTORY] or not _is_searched(w, low[r]):
            continue
        fa, fb = _ahead(w, low[r]), _ahead(w, high[r])
        if not fa * fb <= 0.0:
            continue
        angle = _root(w, sign, Bracket(a, fa, b, fb, 0), r, kinds, shot)
        if angle != angle:
            continue
        target = RayTarget(w.b, r, int(w.legs[TRIED, r, BOUNCES_MET]))
        if aim_ray(w.guide, w.a, target, _unknown_ray(_direction(w, sign, angle)), False, w.legs, w.no_points, shot):
            count, left = _add_ray(w, angle, int(shot.reversals), count, left, shot)
    return count, left


@device_function
def _add_ray(w: Course, angle: float, reversals: int, count: int, left: int, shot: Record) -> tuple[int, int]:
    """Add an aimed ray, unless it has already been found."""
    if reversals >= MAX_LEGS or is_known(w.guide, w.found, count, shot):
        return count, left
    if count >= w.found.shape[0]:
        return count, left + 1
    store_eigenray(w.found[count], angle, shot)
    return count + 1, left


@device_function
def store_eigenray(eigenray: Record, angle: float, shot: Record) -> None:
    """Store an aimed ray."""
    eigenray.angle, eigenray.down, eigenray.reversals = angle, 1 if shot.sz > 0.0 else 0, shot.reversals
    eigenray.time, eigenray.sx, eigenray.sy = shot.time, shot.sx, shot.sy
    eigenray.rx, eigenray.ry, eigenray.rz = shot.rx, shot.ry, shot.rz
    eigenray.bed = 1 + shot.surface + shot.bottom
    eigenray.down_x, eigenray.down_y, eigenray.down_z = shot.down_x, shot.down_y, shot.down_z
    eigenray.side_x, eigenray.side_y, eigenray.side_z = shot.side_x, shot.side_y, shot.side_z


@device_function
def is_known(guide: Waveguide, found: Records, count: int, shot: Record) -> bool:
    """Return whether an aimed ray has already been found. Newton's method can jump between the two rays of a pair."""
    # directions of the same ray through a field differ by the tolerance of its aim
    apart = max(1e-9, 10.0 * volume_aiming.AIM_TOLERANCE / max(shot.length, 1.0)) if has_field(guide) else 1e-9
    for k in range(count):
        ray = found[k]
        same = ray.bed and ray.reversals == shot.reversals and (ray.down > 0) == (shot.sz > 0.0)
        if same and hypot(ray.sx - shot.sx, ray.sy - shot.sy) < apart and abs(ray.time - shot.time) < 1e-9:
            return True
    return False


@device_function
def _root(w: Course, sign: float, bracket: Bracket, r: int, kinds: float, shot: Record) -> float:
    """Return the launch angle within a bracket at which a leg meets the receiver; NaN if the range jumps past the
    receiver.
    """
    angle, miss = bracket.low, bracket.f_low
    for _ in range(60):
        angle = estimate_root(bracket)
        _shoot(w, sign, angle, TRIED, shot)
        if w.legs[TRIED, r, HISTORY] != kinds:
            return math.nan
        miss = _ahead(w, w.legs[TRIED, r])
        if abs(miss) < CLOSE or bracket.high - bracket.low < 1e-14:
            break
        bracket = narrow_bracket(bracket, angle, miss)
    return angle if abs(miss) < 10.0 * CLOSE else math.nan
