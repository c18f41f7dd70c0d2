"""Rays in water whose sound speed depends only on depth; compiled.

The profile is linear between its knots, so every ray is a chain of circular arcs. One Snell invariant p = cos(theta)/c
holds along the whole ray, with theta measured from the horizontal. Over a layer from sound speed ca to sound speed cb,
at which the sines of theta are sa and sb, these closed forms apply:

    dx = p dz (ca + cb)/(sa + sb),   dt = (2/g) asinh(g d / (2 sqrt(ca cb))),   ds = d h / sin h

Here, d is the chord and h is half the angle through which the ray turns. These forms avoid cancellation for small
gradients and flat rays. A path is identified by its first direction (up or down) and its number of reversals. A
reversal is a turning point, or a bounce off the surface or the bottom.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_sdk.tables import Table, integer, value
from wavesim_server.acoustics.types import Record, SoundSpeedProfile
from wavesim_server.elementary import asin, asinh, atan2, cos, sin

#: reasons why the tracing of a ray ends
REACHED, TURNED, BOUNDARY = range(3)
RAY = Table(
    "ray",
    "A ray from a source to a receiver.",
    "medium",
    (
        value("x", "m", "Range at which the ray is at the receiver's depth."),
        value("time", "s", "Travel time."),
        value("length", "m", "Length along the ray."),
        value(
            "invariant", "s/m", "Snell invariant: cosine of the angle to the horizontal, divided by the sound speed."
        ),
        integer("surface", "", "Bounces off the surface."),
        integer("bottom", "", "Bounces off the bottom."),
        value("sin_source", "", "Sine of the ray's angle to the horizontal at the source."),
        value("sin_receiver", "", "Sine of the ray's angle to the horizontal at the receiver."),
        value("sin_bottom", "", "Sine of the ray's angle to the horizontal at the bottom."),
    ),
)


class WaterPoint(NamedTuple):
    """A depth (m), the layer that contains it, and the sound speed there (m/s)."""

    depth: float
    layer: int
    speed: float


class Link(NamedTuple):
    """A source and a receiver in one water column: their depths in m, which must differ, and their horizontal distance
    in m.

    :func:`make_link` adds the layer and the sound speed at each of the two depths, because every ray between the two
    depths needs these values.
    """

    profile: SoundSpeedProfile
    source: float
    receiver: float
    distance: float
    at_source: WaterPoint
    at_receiver: WaterPoint


@device_function
def layer_of(z: Floats, depth: float) -> int:
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
def sound_speed_at(profile: SoundSpeedProfile, depth: float) -> float:
    """Return the sound speed at a depth; outside the profile, return the sound speed at its nearer end."""
    z, c = profile.z, profile.c
    if depth <= z[0]:
        return float(c[0])
    if depth >= z[-1]:
        return float(c[-1])
    k = layer_of(z, depth)
    return float(c[k] + (c[k + 1] - c[k]) * (depth - z[k]) / (z[k + 1] - z[k]))


@device_function
def water_point(profile: SoundSpeedProfile, depth: float) -> WaterPoint:
    """Return a depth together with its layer and its sound speed."""
    return WaterPoint(depth, layer_of(profile.z, depth), sound_speed_at(profile, depth))


@device_function
def make_link(profile: SoundSpeedProfile, source: float, receiver: float, distance: float) -> Link:
    """Return the link between two depths at a horizontal distance."""
    return Link(profile, source, receiver, distance, water_point(profile, source), water_point(profile, receiver))


@device_function
def entered_layer(z: Floats, start: WaterPoint, down: bool) -> int:
    """Return the index of the layer that a ray enters from a point."""
    k = start.layer
    return k - 1 if not down and k > 0 and start.depth <= z[k] else k


@device_function
def sine_from_cosine(pc: float) -> float:
    return math.sqrt(max((1.0 - pc) * (1.0 + pc), 0.0))


@device_function
def layer_leg(
    ca: float, cb: float, sa: float, sb: float, dz: float, p: float, with_length: bool
) -> tuple[float, float, float]:
    """Return (dx, dt, ds) of a ray across the height dz > 0 of one layer, without a turning point in between.

    ``sa`` and ``sb`` are the sines at both ends. ds is 0 unless ``with_length`` is true.
    """
    total = sa + sb
    if total <= 0.0:
        return 0.0, 0.0, 0.0
    dx = p * (ca + cb) / total * dz
    chord = math.sqrt(dx * dx + dz * dz)
    mean = math.sqrt(ca * cb)
    a = abs(cb - ca) / dz * chord / (2.0 * mean)
    stretch = asinh(a) / a if a > 1e-4 else 1.0 - a * a / 6.0
    ds = 0.0
    if with_length:
        half = 0.5 * abs(atan2(sa, p * ca) - atan2(sb, p * cb))
        ds = chord * (half / sin(half) if half > 1e-4 else 1.0 + half * half / 6.0)
    return dx, chord / mean * stretch, ds


@device_function
def march_ray(
    profile: SoundSpeedProfile, p: float, start: WaterPoint, down: bool, stop: float, points: Floats, with_length: bool
) -> tuple[float, float, float, float, int, int]:
    """Follow a ray to the depth ``stop``, a turning point or a boundary, whichever it reaches first. Returns (x, t, s,
    depth reached, reason for the end, number of points). s is 0 unless ``with_length`` is true, because computing s
    takes as long as computing x and t together.

    ``points`` (n, 2) receives (x, z) at each knot that the ray passes; n may be 0.
    """
    z, c = profile.z, profile.c
    x = t = s = 0.0
    here, room, n = start.depth, points.shape[0], 0
    k = entered_layer(z, start, down)
    ca = start.speed
    sa = sine_from_cosine(p * ca)
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
        dz, sb = abs(target - here), sine_from_cosine(p * cb)
        if dz > 0.0:
            dx, dt, ds = layer_leg(ca, cb, sa, sb, dz, p, with_length)
            x, t, s = x + dx, t + dt, s + ds
        here, ca, sa = target, cb, sb
        if n < room:
            points[n, 0], points[n, 1] = x, here
            n += 1
        if how >= 0:
            return x, t, s, here, how, n
        k += 1 if down else -1
        if k < 0 or k > z.shape[0] - 2:
            return x, t, s, here, BOUNDARY, n


@device_function
def excursion(
    profile: SoundSpeedProfile, p: float, start: WaterPoint, down: bool, stop: float, with_slope: bool
) -> tuple[float, float, float, int]:
    """Follow a ray to the depth ``stop``, a turning point or a boundary, whichever it reaches first. Return (range,
    derivative of the range, depth reached, reason for the end). The derivative is with respect to the invariant, as in
    :mod:`ray_tubes`; it is 0 unless ``with_slope`` is true. This function is :func:`march_ray` without time and length;
    both compute the same range to the last bit.
    """
    z, c = profile.z, profile.c
    x = slope = 0.0
    here, ca = start.depth, start.speed
    k = entered_layer(z, start, down)
    sa = sine_from_cosine(p * ca)
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
        dz, sb = abs(target - here), sine_from_cosine(p * cb)
        if dz > 0.0 and sa + sb > 0.0:
            x += p * (ca + cb) / (sa + sb) * dz
            if with_slope:
                steep = max(sa, 1e-12)
                if how == TURNED:
                    slope -= 1.0 / (abs(g) * p * p * steep)
                else:
                    beyond = max(sb, 1e-12)
                    slope += dz * (ca + cb) / (steep * beyond * (steep + beyond))
        here, ca, sa = target, cb, sb
        if how >= 0:
            return x, slope, here, how
        k += 1 if down else -1
        if k < 0 or k > z.shape[0] - 2:
            return x, slope, here, BOUNDARY


@device_function
def ray_range(link: Link, theta: float, down: bool, reversals: int) -> tuple[bool, float]:
    """Return (whether the ray reaches the receiver's depth, range at which it reaches this depth). The range is the
    same as from :func:`trace_ray`, which takes several times as long.
    """
    profile, source, receiver = link.profile, link.source, link.receiver
    p = cos(theta) / link.at_source.speed
    if p * link.at_receiver.speed > 1.0:
        return False, 0.0
    if reversals == 0:
        if (receiver > source) != down:
            return False, 0.0
        x, _, _, how = excursion(profile, p, link.at_source, down, receiver, False)
        return how == REACHED, x
    top, end = profile.z[0] - 1.0, profile.z[-1] + 1.0
    ux, _, high, _ = excursion(profile, p, link.at_source, False, top, False)
    lx, _, low, _ = excursion(profile, p, link.at_source, True, end, False)
    if receiver < high or receiver > low:
        return False, 0.0
    last_down = down == (reversals % 2 == 1)
    x, _, _, _ = excursion(profile, p, link.at_receiver, last_down, end if last_down else top, False)
    return True, x + (lx if down else ux) + (reversals - 1) * (lx + ux)


@device_function
def trace_ray(
    link: Link, theta: float, down: bool, reversals: int, no_points: Floats, ray: Record, with_length: bool
) -> bool:
    """Trace the ray with the launch angle theta > 0, upwards or downwards, to the receiver's depth after the given
    number of reversals.

    Fills in ``ray``; its length is computed only if ``with_length`` is true. Returns False if the ray does not reach
    that depth.
    """
    profile, source, receiver = link.profile, link.source, link.receiver
    cs, cr = link.at_source.speed, link.at_receiver.speed
    p = cos(theta) / cs
    if p * cr > 1.0:
        return False
    ray.invariant, ray.sin_source, ray.sin_receiver = p, sin(theta), sine_from_cosine(p * cr)
    ray.surface = ray.bottom = 0
    ray.sin_bottom = 0.0
    if reversals == 0:
        if (receiver > source) != down:
            return False
        x, t, s, _, how, _ = march_ray(profile, p, link.at_source, down, receiver, no_points, with_length)
        ray.x, ray.time, ray.length = x, t, s
        return how == REACHED
    top, end = profile.z[0] - 1.0, profile.z[-1] + 1.0
    ux, ut, us, high, up_how, _ = march_ray(profile, p, link.at_source, False, top, no_points, with_length)
    lx, lt, ls, low, low_how, _ = march_ray(profile, p, link.at_source, True, end, no_points, with_length)
    if receiver < high or receiver > low:
        return False
    last_down = down == (reversals % 2 == 1)
    x, t, s, _, _, _ = march_ray(
        profile, p, link.at_receiver, last_down, end if last_down else top, no_points, with_length
    )
    turns = reversals - 1
    fx, ft, fs = (lx, lt, ls) if down else (ux, ut, us)
    ray.x, ray.time, ray.length = (
        x + fx + turns * (lx + ux),
        t + ft + turns * (lt + ut),
        s + fs + turns * (ls + us),
    )
    lower = (reversals + 1) // 2 if down else reversals // 2
    if low_how == BOUNDARY:
        ray.bottom, ray.sin_bottom = lower, sine_from_cosine(p * profile.c[-1])
    if up_how == BOUNDARY:
        ray.surface = reversals - lower
    return True


@device_function
def link_in_water(profile: SoundSpeedProfile, source: float, receiver: float, across: float) -> Link:
    """Return the link between two depths at a horizontal distance. The depths are limited to the water column and made
    different, and the distance is made positive.
    """
    deep = profile.z[-1]
    zs, zr = min(max(source, 0.0), deep), min(max(receiver, 0.0), deep)
    if abs(zs - zr) < 1e-6:
        zr = zs + 1e-6 if zs + 1e-6 < deep else zs - 1e-6
    return make_link(profile, zs, zr, max(across, 1e-6 * abs(zs - zr)))


@device_function
def gradient_arc(
    speed_0: float, g: float, bottom: float, source: float, receiver: float, x: float, ray: Record
) -> bool:
    """Compute the direct ray in closed form for c = speed_0 + g z (a circle about the depth where c = 0).

    Fills in ``ray``, in which the sines are signed (positive downwards). Returns False if the arc leaves the water.
    """
    dz = receiver - source
    d = math.sqrt(x * x + dz * dz)
    ca, cb = speed_0 + g * source, speed_0 + g * receiver
    ray.surface = ray.bottom = 0
    ray.sin_bottom = 0.0
    if d == 0.0:
        ray.x = ray.time = ray.length = ray.invariant = ray.sin_source = ray.sin_receiver = 0.0
        return True
    mean = math.sqrt(ca * cb)
    a = abs(g) * d / (2.0 * mean)
    ray.x, ray.time = x, d / mean * (asinh(a) / a if a > 1e-4 else 1.0 - a * a / 6.0)
    if x <= 1e-9 * d or abs(g) < 1e-12:
        ray.length, ray.invariant = d, x / d / mean
        ray.sin_source = ray.sin_receiver = dz / d
        return True
    za, zb = ca / g, cb / g  # depths below the circle's centre
    middle = 0.5 * (x + dz * (zb + za) / x)
    radius = math.sqrt(middle * middle + za * za)
    half = d / (2.0 * radius)
    ray.length = d * (asin(min(half, 1.0)) / half if half > 1e-4 else 1.0 + half * half / 6.0)
    ray.invariant = 1.0 / (abs(g) * radius)
    sign = 1.0 if za > 0.0 else -1.0
    ray.sin_source, ray.sin_receiver = sign * middle / radius, sign * (middle - x) / radius
    if 0.0 < middle < x:
        vertex = sign * radius - speed_0 / g
        return 0.0 <= vertex <= bottom
    return True
