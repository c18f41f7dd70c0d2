"""Paths of signals that a moving surface reflects: delay, Doppler factor, gain and phase of a reception; compiled.

The medium finds each path as if the surface were flat and at rest, and this module adds the effect of the motion. In
water of uniform sound speed, the mirror part is Fermat's path over the moving surface (:mod:`sloping_bed_images`).
Along a ray through a sound-speed profile, each reflection is corrected separately: on both sides of the point of
reflection, the ray is replaced by a straight line of the same direction and length, in water that has the sound speed
at the surface. If waves focus the sound, Fermat's path is not unique, and the sound is reflected at the point of
reflection of the flat surface, at its present height (:func:`surface_scatter.fermat_weight`).

One part of the sound, drawn at random, determines the time and the Doppler shift of a reception. The draw depends only
on the signal, the node and the path; see :func:`surface_scatter.dominant_part`. The level is the level of the sum of
all parts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import image_paths, sloping_bed_images, surface_scatter
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.moving_surface import SurfaceMotion
from wavesim_server.acoustics.propagation import (
    PropagationPath,
    path_points,
    sound_speed_of_signal,
    source_image,
    travel_time,
)
from wavesim_server.acoustics.surface_scatter import MIRROR, PartMotion, Stream
from wavesim_server.acoustics.types import Record, Vector
from wavesim_server.elementary import atan2, log10

LEAST_POWER = 1e-12  #: minimum power of a fading path, relative to the path over a flat surface
ONE_BOUNCE = 2  #: index of the path with one bounce, off the surface


class SurfaceEffect(NamedTuple):
    """Effect of the moving surface on a reception: its path, the gain of its level in dB, and the factor of its
    frequency.
    """

    path: PropagationPath
    gain: float
    doppler: float


@device_function
def may_meet_moving_surface(m: Medium, path: int) -> bool:
    """Return whether a path can have reflections off a moving surface."""
    if m.water[0].moving == 0 or path < ONE_BOUNCE:
        return False
    return bool(m.water[0].mode != a.ISOVELOCITY or image_paths.bounce_counts(path)[0] > 0)


@device_function
def moving_travel_time(m: Medium, scene: AcousticScene, s: int, e: int, point: Vector) -> float:
    """Return the travel time to a point along a candidate's path, over the moving surface; NaN if there is no path."""
    if m.water[0].mode == a.ISOVELOCITY:
        x, y, z = source_image(m, scene, s, a.to_row(m.candidates[e].path), point)
        x, y, z = point.x - x, point.y - y, point.z - z
        flat = math.sqrt(x * x + y * y + z * z) / m.water[0].speed
    else:
        flat = travel_time(m, scene, s, e, point, False)
    if flat != flat:
        return flat
    surface, count = a.surface_motion(m, s), _read_bounces(m, scene, s, e, point, flat)
    shares = surface_scatter.shares_of(surface, m.bounces, count, m.signals[s].frequency)
    part = surface_scatter.dominant_part(shares, _stream(m, s, e))
    if part == MIRROR:
        return flat + _mirror_motion(m, scene, s, e, point, count, flat)[1].delay
    return flat + _part_motion(m, s, e, count, part).delay


@device_function
def meet_surface(
    m: Medium, scene: AcousticScene, s: int, e: int, point: Vector, path: PropagationPath, travel: float
) -> SurfaceEffect:
    """Return the effect of the moving surface on the reception of a candidate at a point. ``path`` is the path over a
    flat surface, and ``travel`` its travel time in s. The phase of the sum of all parts is added to the phase of the
    returned path.
    """
    count = _read_bounces(m, scene, s, e, point, travel)
    if count == 0:
        return SurfaceEffect(path, 0.0, 1.0)
    surface, stream, frequency = a.surface_motion(m, s), _stream(m, s, e), m.signals[s].frequency
    shares = surface_scatter.shares_of(surface, m.bounces, count, frequency)
    part = surface_scatter.dominant_part(shares, stream)
    weight, mirror, gain = 0.0, PartMotion(0.0, 1.0), 0.0
    if shares.scattered < 1.0:
        weight, mirror = _mirror_motion(m, scene, s, e, point, count, travel)
    dominant = mirror if part == MIRROR else _part_motion(m, s, e, count, part)
    if part == MIRROR and weight > 0.5 and m.water[0].mode == a.ISOVELOCITY:
        path = _with_ends(path, (travel + mirror.delay) * path.c_receiver, m.points, a.to_row(m.candidates[e].path))
    if shares.scattered > 0.0:
        n = surface_scatter.fill_parts(surface, m.bounces, count, frequency, stream, mirror, m.parts)
        real, imaginary = surface_scatter.sum_of_parts(m.parts, n, frequency, dominant.delay)
        gain = 10.0 * log10(max(real * real + imaginary * imaginary, LEAST_POWER))
        path = _with_phase(path, atan2(imaginary, real))
    return SurfaceEffect(path, gain, dominant.doppler)


@device_function
def _stream(m: Medium, s: int, e: int) -> Stream:
    """Return the random number stream of a candidate."""
    signal, candidate = m.signals[s], m.candidates[e]
    key = np.uint64(m.nodes[a.to_row(candidate.node)].key ^ (signal.key * 3))
    return Stream(key, signal.draw * 64 + a.to_row(candidate.path))


@device_function
def _part_motion(m: Medium, s: int, e: int, count: int, part: int) -> PartMotion:
    """Return the motion of one part of a candidate; ``m.bounces`` holds the reflections of that part."""
    surface, frequency = a.surface_motion(m, s), m.signals[s].frequency
    return surface_scatter.part_motion(surface, m.bounces, count, frequency, _stream(m, s, e), part)


@device_function
def _read_bounces(m: Medium, scene: AcousticScene, s: int, e: int, point: Vector, travel: float) -> int:
    """Fill ``m.bounces`` with the reflections of a candidate's path off the surface, as if the surface were flat;
    return their number.
    """
    n, count = path_points(m, scene, s, e, point), 0
    p, top = m.points, m.profile_z[0]
    time = way = 0.0
    before = sound_speed_of_signal(m, s, Vector(p[0, 0], p[0, 1], p[0, 2]))
    for k in range(1, n):
        here = sound_speed_of_signal(m, s, Vector(p[k, 0], p[k, 1], p[k, 2]))
        x, y, z = p[k, 0] - p[k - 1, 0], p[k, 1] - p[k - 1, 1], p[k, 2] - p[k - 1, 2]
        chord = math.sqrt(x * x + y * y + z * z)
        time, way = time + chord / math.sqrt(before * here), way + chord
        if k < n - 1 and p[k, 2] <= top and z < 0.0 and p[k + 1, 2] > p[k, 2] and count < m.bounces.shape[0]:
            if count > 0:
                m.bounces[count - 1].after = way
            bounce = m.bounces[count]
            bounce.x, bounce.y, bounce.delay, bounce.before, bounce.speed = p[k, 0], p[k, 1], time, way, here
            _set_direction(bounce, x, y, -z, (before - here) / (before + here))
            count, way = count + 1, 0.0
        before = here
    if count > 0:
        m.bounces[count - 1].after = way
        _correct_miss(m, e, n, point, count, time)
    for k in range(count):
        m.bounces[k].delay *= travel / time
    return count


@device_function
def _correct_miss(m: Medium, e: int, n: int, point: Vector, count: int, time: float) -> None:
    """Move the reflections of a ray that misses its receiver by a fraction of a millimetre, so that the delays do not
    depend on the ray from which the search started. ``time`` is the sum of the times between the ``n`` points.
    """
    if m.water[0].mode == a.ISOVELOCITY:
        return
    last = n - 1 if m.candidates[e].bed else n - 2  # the points of a ray through layers end with the receiver itself
    mx, my = point.x - m.points[last, 0], point.y - m.points[last, 1]
    for k in range(count):
        m.bounces[k].x += mx * m.bounces[k].delay / time
        m.bounces[k].y += my * m.bounces[k].delay / time


@device_function
def _set_direction(bounce: Record, x: float, y: float, up: float, slower: float) -> None:
    """Set the direction of the sound at a reflection from the chord (x, y, up) of the last arc of its ray.

    The angles to the horizontal at both ends of an arc are chi - h and chi + h, with the angle chi of the chord. Snell's
    law then gives tan h = slower / tan chi; ``slower`` is the decrease of the sound speed divided by twice its mean.
    """
    level = math.sqrt(x * x + y * y)
    chord = math.sqrt(level * level + up * up)
    tangent = slower * level / up
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    flat = cosine * (level - tangent * up) / chord
    bounce.sine = cosine * (up + tangent * level) / chord
    bounce.north, bounce.east = (flat * x / level, flat * y / level) if level > 0.0 else (0.0, 0.0)


@device_function
def _mirror_motion(
    m: Medium, scene: AcousticScene, s: int, e: int, point: Vector, count: int, travel: float
) -> tuple[float, PartMotion]:
    """Return (weight of Fermat's path over the moving surface, motion of the mirror part).

    In water of uniform sound speed, ``m.points`` contains Fermat's path if the weight is not 0.
    """
    surface, over = a.surface_motion(m, s), _part_motion(m, s, e, count, MIRROR)
    weight = surface_scatter.fermat_weight(surface, m.bounces, count)
    if weight == 0.0:
        return 0.0, over
    if m.water[0].mode == a.ISOVELOCITY:
        found, fermat = _image_motion(m, scene, s, e, point, travel)
    else:
        found, fermat = _ray_motion(m, scene, s, count)
    return (weight, surface_scatter.blend(fermat, over, weight)) if found else (0.0, over)


@device_function
def _image_motion(
    m: Medium, scene: AcousticScene, s: int, e: int, point: Vector, travel: float
) -> tuple[bool, PartMotion]:
    """Find Fermat's path in water of uniform sound speed. Return (whether it was found, motion)."""
    surface, signal, path = a.surface_motion(m, s), m.signals[s], a.to_row(m.candidates[e].path)
    source = Vector(signal.x, signal.y, signal.z)
    if not sloping_bed_images.find_reflections(scene, surface, path, source, point, m.points):
        return False, PartMotion(0.0, 1.0)
    delay = _way_from_image(m, path, point) / surface.speed - travel
    return True, PartMotion(delay, sloping_bed_images.moving_doppler(m.points, path))


@device_function
def _ray_motion(m: Medium, scene: AcousticScene, s: int, count: int) -> tuple[bool, PartMotion]:
    """Find Fermat's path near each reflection of a ray. Return (whether all were found, motion)."""
    delay, doppler = 0.0, 1.0
    for k in range(count):
        b = m.bounces[k]
        source = Vector(b.x - b.before * b.north, b.y - b.before * b.east, b.before * b.sine)
        receiver = Vector(b.x + b.after * b.north, b.y + b.after * b.east, b.after * b.sine)
        start = m.signals[s].emission + b.delay + delay - b.before / b.speed
        local = SurfaceMotion(m.sea_components, m.sea_periods, m.tide, start, b.speed, m.wave_parts)
        if not sloping_bed_images.find_reflections(scene, local, ONE_BOUNCE, source, receiver, m.points):
            return False, PartMotion(0.0, 1.0)
        delay += (_way_from_image(m, ONE_BOUNCE, receiver) - (b.before + b.after)) / b.speed
        doppler *= sloping_bed_images.moving_doppler(m.points, ONE_BOUNCE)
    return True, PartMotion(delay, doppler)


@device_function
def _way_from_image(m: Medium, path: int, point: Vector) -> float:
    """Return the length in m of the path in ``m.points`` to a point."""
    image = m.points[2 * (path // 2) + 2]
    x, y, z = point.x - image[0], point.y - image[1], point.z - image[2]
    return math.sqrt(x * x + y * y + z * z) + sloping_bed_images.image_delay(m.points, path)


@device_function
def _with_ends(path: PropagationPath, length: float, points: Floats, number: int) -> PropagationPath:
    """Return a copy of a path with another length, and with the directions at both ends taken from the path in
    ``points``.
    """
    sx, sy, sz = sloping_bed_images.leg_direction(points, 0)
    rx, ry, rz = sloping_bed_images.leg_direction(points, number // 2)
    return PropagationPath(
        length, sx, sy, sz, rx, ry, rz, path.c_source, path.c_receiver, path.surface, path.bottom, path.caustics,
        path.sine_top, path.spreading_loss, path.bottom_loss, path.turned,
    )  # fmt: skip


@device_function
def _with_phase(p: PropagationPath, more: float) -> PropagationPath:
    """Return a copy of a path with an additional phase in rad."""
    return PropagationPath(
        p.length, p.sx, p.sy, p.sz, p.rx, p.ry, p.rz, p.c_source, p.c_receiver, p.surface, p.bottom, p.caustics,
        p.sine_top, p.spreading_loss, p.bottom_loss, p.turned + more,
    )  # fmt: skip
