"""Rays in a sound speed that depends on depth alone, compiled.

The profile is linear between knots, so every ray is a chain of circular arcs with one Snell invariant
p = cos(theta)/c (theta from the horizontal).  Over a layer from speed ca to cb, with sines sa and sb,

    dx = p dz (ca + cb)/(sa + sb),   dt = (2/g) asinh(g d / (2 sqrt(ca cb))),   ds = d h / sin h

(d the chord, h half the angle turned): forms without cancellation for small gradients and flat rays.
A path is named by its first direction (up or down) and its number of reversals, each a turn in the water or a
bounce off surface or bottom.  Travel time is stationary at the eigenray, so p times the miss corrects it to second order.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb
import numpy as np

from wavesim_server.elementary import acos, asin, asinh, atan2, cos, exp, log, sin

_njit = nb.njit(cache=True, error_model="numpy")

#: how a march ended
REACHED, TURNED, BOUNDARY = range(3)
#: results of :func:`ray`
X, T, S, P, SURFACE, BOTTOM, SIN_SOURCE, SIN_RECEIVER, SIN_BOTTOM, RAY = range(10)
FLAT = 1e-5  #: the flattest launch angle of the fan, rad
ANGLES = 256


@_njit
def layer_of(z: Any, depth: float) -> int:
    """The layer that holds a depth."""
    low, high = 0, z.shape[0] - 2
    while low < high:
        mid = (low + high + 1) // 2
        if z[mid] <= depth:
            low = mid
        else:
            high = mid - 1
    return low


@_njit
def speed(z: Any, c: Any, depth: float) -> float:
    """Sound speed at a depth; beyond the profile, of its ends."""
    if depth <= z[0]:
        return float(c[0])
    if depth >= z[-1]:
        return float(c[-1])
    k = layer_of(z, depth)
    return float(c[k] + (c[k + 1] - c[k]) * (depth - z[k]) / (z[k + 1] - z[k]))


@_njit
def sine(pc: float) -> float:
    return math.sqrt(max((1.0 - pc) * (1.0 + pc), 0.0))


@_njit
def leg(ca: float, cb: float, dz: float, p: float) -> tuple[float, float, float]:
    """(dx, dt, ds) over a part of a layer of height dz > 0 without a turn inside."""
    sa, sb = sine(p * ca), sine(p * cb)
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


@_njit
def march(
    z: Any, c: Any, p: float, start: float, down: bool, stop: float, points: Any
) -> tuple[float, float, float, float, int, int]:
    """Follow a ray until ``stop``, a turn or a boundary. Returns (x, t, s, depth reached, how, points).

    ``points`` (n, 2) receives (x, z) at each knot passed; n may be 0.
    """
    x = t = s = 0.0
    here, room, n = start, points.shape[0], 0
    k = layer_of(z, start)
    if not down and k > 0 and start <= z[k]:
        k -= 1
    ca = speed(z, c, start)
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
            dx, dt, ds = leg(ca, cb, dz, p)
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


@_njit
def ray(
    z: Any, c: Any, source: float, receiver: float, theta: float, down: bool, reversals: int, none: Any, out: Any
) -> bool:
    """The ray with launch angle theta > 0, up or down, to the receiver's depth after so many reversals.

    Fills ``out``; False if this ray does not get there.
    """
    cs, cr = speed(z, c, source), speed(z, c, receiver)
    p = cos(theta) / cs
    if p * cr > 1.0:
        return False
    out[P], out[SIN_SOURCE], out[SIN_RECEIVER] = p, sin(theta), sine(p * cr)
    out[SURFACE] = out[BOTTOM] = out[SIN_BOTTOM] = 0.0
    if reversals == 0:
        if (receiver > source) != down:
            return False
        x, t, s, _, how, _ = march(z, c, p, source, down, receiver, none)
        out[X], out[T], out[S] = x, t, s
        return how == REACHED
    top, end = z[0] - 1.0, z[-1] + 1.0
    ux, ut, us, high, up_how, _ = march(z, c, p, source, False, top, none)
    lx, lt, ls, low, low_how, _ = march(z, c, p, source, True, end, none)
    if receiver < high or receiver > low:
        return False
    last_down = down == (reversals % 2 == 1)
    x, t, s, _, _, _ = march(z, c, p, receiver, last_down, end if last_down else top, none)
    turns = reversals - 1
    fx, ft, fs = (lx, lt, ls) if down else (ux, ut, us)
    out[X], out[T], out[S] = (
        x + fx + turns * (lx + ux),
        t + ft + turns * (lt + ut),
        s + fs + turns * (ls + us),
    )
    lower = (reversals + 1) // 2 if down else reversals // 2
    if low_how == BOUNDARY:
        out[BOTTOM], out[SIN_BOTTOM] = lower, sine(p * c[-1])
    if up_how == BOUNDARY:
        out[SURFACE] = reversals - lower
    return True


@_njit
def solve(
    z: Any,
    c: Any,
    source: float,
    receiver: float,
    distance: float,
    low: float,
    high: float,
    down: bool,
    reversals: int,
    none: Any,
    out: Any,
) -> float:
    """Launch angle between two that bracket the distance (Illinois); ``out`` holds its ray. NaN if there is none."""
    if not ray(z, c, source, receiver, low, down, reversals, none, out):
        return math.nan
    fa = out[X] - distance
    if not ray(z, c, source, receiver, high, down, reversals, none, out):
        return math.nan
    fb = out[X] - distance
    if fa * fb > 0.0:
        return math.nan
    a, b, side = low, high, 0
    for _ in range(80):
        theta = (a * fb - b * fa) / (fb - fa) if fa != fb else 0.5 * (a + b)
        if not a <= theta <= b:
            theta = 0.5 * (a + b)
        if not ray(z, c, source, receiver, theta, down, reversals, none, out):
            return math.nan
        f = out[X] - distance
        if abs(f) < 1e-6 or b - a < 1e-15:
            out[T] -= out[P] * f
            return theta
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
    out[T] -= out[P] * f
    return theta


@_njit
def again(
    z: Any,
    c: Any,
    source: float,
    receiver: float,
    distance: float,
    theta: float,
    down: bool,
    reversals: int,
    none: Any,
    out: Any,
) -> float:
    """The eigenray of the same path near a known launch angle (secant). NaN if it has gone."""
    a, b = theta, theta * (1.0 + 1e-5)
    if not ray(z, c, source, receiver, a, down, reversals, none, out):
        return math.nan
    fa = out[X] - distance
    best, least = a, abs(fa)
    for _ in range(30):
        if least < 1e-6:
            break
        if not ray(z, c, source, receiver, b, down, reversals, none, out):
            b = 0.5 * (a + b)
            continue
        fb = out[X] - distance
        if abs(fb) < least:
            best, least = b, abs(fb)
        if fa == fb:
            break
        step = fb * (b - a) / (fb - fa)
        limit = 0.3 * b  # a bad slope must not throw it to another path
        a, fa, b = b, fb, b - min(max(step, -limit), limit)
    # near a grazing layer rounding alone moves the end by micrometres; the correction takes care of them
    if least > 1e-3:
        return math.nan
    ray(z, c, source, receiver, best, down, reversals, none, out)
    out[T] -= out[P] * (out[X] - distance)
    return best


@_njit
def fan(z: Any, c: Any, source: float, angles: Any, widths: Any, classes: Any) -> int:
    """Rays of many launch angles from one source, for :func:`eigenrays`; returns how many.

    ``angles`` ascend; ``widths`` (n, 4): x from the upper reversal to the source, from there to the lower one, and the
    depths of the two; ``classes``: 1 if it bounces off the surface, 2 off the bottom.
    """
    none = np.zeros((0, 2))
    cs = speed(z, c, source)
    n = 0
    # the angles that graze surface and bottom divide the fan: one ray to each side of them
    graze = np.zeros(2)
    above = below = cs
    for k in range(z.shape[0]):
        if z[k] <= source:
            above = max(above, c[k])
        if z[k] >= source:
            below = max(below, c[k])
    graze[0], graze[1] = acos(min(cs / above, 1.0)), acos(min(cs / below, 1.0))
    ratio = log(1.5706 / FLAT) / (ANGLES - 1)
    for k in range(ANGLES):
        angles[n] = FLAT * exp(ratio * k)
        n += 1
    for k in range(2):
        if graze[k] > FLAT:
            angles[n], angles[n + 1] = graze[k] * (1.0 - 1e-7), graze[k] * (1.0 + 1e-7)
            n += 2
    angles[:n] = np.sort(angles[:n])
    for k in range(n):
        p = cos(angles[k]) / cs
        ux, _, _, high, up_how, _ = march(z, c, p, source, False, z[0] - 1.0, none)
        lx, _, _, low, low_how, _ = march(z, c, p, source, True, z[-1] + 1.0, none)
        widths[k, 0], widths[k, 1], widths[k, 2], widths[k, 3] = ux, lx, high, low
        classes[k] = (1 if up_how == BOUNDARY else 0) + (2 if low_how == BOUNDARY else 0)
    return n


@_njit
def _distance(
    z: Any, c: Any, source: float, receiver: float, theta: float, w: Any, down: bool, reversals: int, none: Any
) -> float:
    """Where a ray of the fan reaches the receiver's depth; NaN if it does not."""
    if receiver < w[2] or receiver > w[3]:
        return math.nan
    p = cos(theta) / speed(z, c, source)
    # between source and receiver the ray of the fan has no turn, since both lie between its reversals
    between = march(z, c, p, min(source, receiver), True, max(source, receiver), none)[0]
    if reversals == 0:
        return between if (receiver > source) == down else math.nan
    way = between if receiver > source else -between
    last_down = down == (reversals % 2 == 1)
    last = w[1] - way if last_down else w[0] + way
    return float((w[1] if down else w[0]) + (reversals - 1) * (w[0] + w[1]) + last)


@_njit
def eigenrays(
    z: Any,
    c: Any,
    source: float,
    receiver: float,
    distance: float,
    bounces: int,
    angles: Any,
    widths: Any,
    classes: Any,
    n: int,
    found: Any,
    out: Any,
) -> int:
    """All paths to a receiver with at most so many bounces; returns how many.

    Row of ``found``: launch angle, down (1/0), reversals, travel time.
    """
    none = np.zeros((0, 2))
    count = 0
    cs, peak = speed(z, c, source), 0.0
    for k in range(z.shape[0]):
        if min(source, receiver) <= z[k] <= max(source, receiver):
            peak = max(peak, c[k])
    peak = max(peak, speed(z, c, receiver), cs)
    flattest = acos(min(cs / peak, 1.0)) * (1.0 + 1e-9) + 1e-9  # flatter rays turn before the receiver
    edge = np.zeros(4)
    for reversals in range(bounces + 3):
        for side in range(2):
            down = side == 1
            before, angle, kind = math.nan, 0.0, -1
            for k in range(-1, n):
                if k < 0:
                    theta = flattest
                    if theta < angles[0] or not ray(z, c, source, receiver, theta, down, reversals, none, out):
                        continue
                    edge[0] = out[X]
                    x = out[X]
                    cls = -1
                    for i in range(n):
                        if angles[i] > theta:
                            cls = classes[i]
                            break
                else:
                    theta = angles[k]
                    if theta <= flattest:
                        continue
                    cls = classes[k]
                    x = _distance(z, c, source, receiver, theta, widths[k], down, reversals, none)
                lower = (reversals + 1) // 2 if down else reversals // 2
                hits = (lower if cls & 2 else 0) + (reversals - lower if cls & 1 else 0)
                if math.isnan(x) or hits > bounces:
                    before = math.nan
                    continue
                f = x - distance
                if not math.isnan(before) and cls == kind and before * f <= 0.0 and count < found.shape[0]:
                    root = solve(z, c, source, receiver, distance, angle, theta, down, reversals, none, out)
                    if not math.isnan(root):
                        found[count, 0], found[count, 1], found[count, 2], found[count, 3] = (
                            root,
                            1.0 if down else 0.0,
                            reversals,
                            out[T],
                        )
                        count += 1
                before, angle, kind = f, theta, cls
    return count


@_njit
def within(z: Any, source: float, receiver: float, across: float) -> tuple[float, float, float]:
    """(source depth, receiver depth, distance) as the search needs them: in the water, not level, not in one line."""
    deep = z[-1]
    zs, zr = min(max(source, 0.0), deep), min(max(receiver, 0.0), deep)
    if abs(zs - zr) < 1e-6:
        zr = zs + 1e-6 if zs + 1e-6 < deep else zs - 1e-6
    return zs, zr, max(across, 1e-6 * abs(zs - zr))


@_njit
def nearest(
    z: Any,
    c: Any,
    source: float,
    receiver: float,
    distance: float,
    bounces: int,
    travel: float,
    angles: Any,
    widths: Any,
    classes: Any,
    found: Any,
    none: Any,
    out: Any,
) -> int:
    """The eigenray whose travel time is nearest to a known one, within 1 ms; -1 = none. ``out`` holds it."""
    n = fan(z, c, source, angles, widths, classes)
    count = eigenrays(z, c, source, receiver, distance, bounces, angles, widths, classes, n, found, out)
    best, gap = -1, 1e-3
    for k in range(count):
        if abs(found[k, 3] - travel) < gap:
            best, gap = k, abs(found[k, 3] - travel)
    if best >= 0:
        ray(z, c, source, receiver, found[best, 0], found[best, 1] > 0.0, int(found[best, 2]), none, out)
        out[T] -= out[P] * (out[X] - distance)
    return best


@_njit
def arc(speed_0: float, g: float, bottom: float, source: float, receiver: float, x: float, out: Any) -> bool:
    """The direct ray where c = speed_0 + g z, in closed form (a circle about the depth where c = 0).

    Fills ``out``, the sines with their sign (positive down). False if the arc leaves the water.
    """
    dz = receiver - source
    d = math.sqrt(x * x + dz * dz)
    ca, cb = speed_0 + g * source, speed_0 + g * receiver
    out[SURFACE] = out[BOTTOM] = out[SIN_BOTTOM] = 0.0
    if d == 0.0:
        out[X] = out[T] = out[S] = out[P] = out[SIN_SOURCE] = out[SIN_RECEIVER] = 0.0
        return True
    mean = math.sqrt(ca * cb)
    a = abs(g) * d / (2.0 * mean)
    out[X], out[T] = x, d / mean * (asinh(a) / a if a > 1e-4 else 1.0 - a * a / 6.0)
    if x <= 1e-9 * d or abs(g) < 1e-12:
        out[S], out[P] = d, x / d / mean
        out[SIN_SOURCE] = out[SIN_RECEIVER] = dz / d
        return True
    za, zb = ca / g, cb / g  # depths below the circle's centre
    middle = 0.5 * (x + dz * (zb + za) / x)
    radius = math.sqrt(middle * middle + za * za)
    half = d / (2.0 * radius)
    out[S] = d * (asin(min(half, 1.0)) / half if half > 1e-4 else 1.0 + half * half / 6.0)
    out[P] = 1.0 / (abs(g) * radius)
    sign = 1.0 if za > 0.0 else -1.0
    out[SIN_SOURCE], out[SIN_RECEIVER] = sign * middle / radius, sign * (middle - x) / radius
    if 0.0 < middle < x:
        vertex = sign * radius - speed_0 / g
        return 0.0 <= vertex <= bottom
    return True
