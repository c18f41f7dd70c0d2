"""Propagation path of a signal to a node, straight or along a ray, and the obstacles that block it; compiled."""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_server.acoustics import (
    eigenrays,
    fans,
    image_paths,
    range_dependent_rays,
    ray_tubes,
    rays,
    sloping_bed_images,
    volume_rays,
    waveguides,
)
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.eigenrays import EigenraySearch
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.sound_field import speed_at
from wavesim_server.acoustics.types import Record, Vector
from wavesim_server.acoustics.volume_aiming import FirstGuess
from wavesim_server.acoustics.volume_rays import RayTarget
from wavesim_server.acoustics.waveguides import RayStart, Waveguide
from wavesim_server.elementary import cos


class PropagationPath(NamedTuple):
    """Propagation path of a signal.

    The path has a length and, at each end, a unit vector along the path (in W) and a sound speed. It also has the
    numbers of bounces and caustics, and the mean sine of the grazing angles at the surface. The spreading loss is in dB
    (-1 means the loss of a straight line). All bounces off the bottom together have a loss in dB and a phase in rad (0
    if not requested).
    """

    length: float
    sx: float
    sy: float
    sz: float
    rx: float
    ry: float
    rz: float
    c_source: float
    c_receiver: float
    surface: int
    bottom: int
    caustics: int
    sine_top: float
    spreading_loss: float
    bottom_loss: float
    turned: float


@device_function
def travel_time(m: Medium, scene: AcousticScene, s: int, e: int, point: Vector, with_length: bool) -> float:
    """Return the travel time to a point along a candidate's path under a sound-speed profile; NaN if there is no path.
    ``m.ray`` or ``m.shot`` then contains the ray. Its length is computed only if ``with_length`` is true.

    The function starts from the ray that was found at the candidate's last check. If this ray no longer exists as a ray
    of the same kind, for example because its turning point has passed the receiver, the ray with the nearest travel
    time replaces it.
    """
    signal, w, ray = m.signals[s], m.water[0], m.ray[0]
    candidate, kept = m.candidates[e], m.kept_rays[e]
    if candidate.bed:
        return _bed_travel_time(m, scene, s, e, point, with_length)
    dx, dy = point.x - signal.x, point.y - signal.y
    across = math.sqrt(dx * dx + dy * dy)
    if w.mode == a.GRADIENT:
        if not rays.gradient_arc(w.speed, w.gradient, w.bottom, signal.z, point.z, across, ray):
            return math.nan
        return float(ray.time)
    link = rays.link_in_water(a.sound_speed_profile(m), signal.z, point.z, across)
    path = a.to_row(candidate.path)
    angle = eigenrays.refine_eigenray(link, kept.angle, path % 2 == 1, path // 2, m.no_points, ray, with_length)
    if angle != angle:
        k = eigenrays.match_by_travel_time(eigenray_search(m, link), kept.travel)
        if k < 0:
            return math.nan
        found = m.eigenrays[k]
        angle = found.angle
        candidate.path = 2 * found.reversals + found.down
    kept.angle, kept.travel = angle, ray.time
    return float(ray.time)


@device_function
def eigenray_search(m: Medium, link: rays.Link) -> EigenraySearch:
    """Return an eigenray search that uses the arrays of the medium. The search does not find rays that bounce off a bed
    that is not level; see :func:`find_bed_eigenrays`.
    """
    w = m.water[0]
    return EigenraySearch(link, w.order, w.uneven == 0, m.fan, m.eigenrays, m.no_points, m.ray)


@device_function
def launch_angles(m: Medium, s: int) -> int:
    """Fill the fan of rays that leave a signal's source, if rays through layers are used. Returns their number."""
    if m.water[0].mode != a.RAYS:
        return 0
    source = min(max(m.signals[s].z, 0.0), m.profile_z[-1])
    return int(eigenrays.launch_fan(a.sound_speed_profile(m), source, m.fan))


@device_function
def path_waveguide(m: Medium, scene: AcousticScene, s: int, point: Vector) -> tuple[Waveguide, Vector, Vector]:
    """Return (water and bed between the source of a signal and a point, source, point). Source and point are moved into
    the water if necessary.
    """
    signal, profile = m.signals[s], a.sound_speed_profile(m)
    source = Vector(signal.x, signal.y, signal.z)
    field = a.sound_field(m, signal.emission)
    guide = waveguides.waveguide_between(profile, field, scene, m.water[0].order, source, point)
    if m.water[0].mode == a.VOLUME:
        return guide, waveguides.moved_into_water(guide, source), waveguides.moved_into_water(guide, point)
    link = rays.link_in_water(profile, signal.z, point.z, 0.0)
    return guide, Vector(signal.x, signal.y, link.source), Vector(point.x, point.y, link.receiver)


@device_function
def find_bed_eigenrays(m: Medium, scene: AcousticScene, s: int, point: Vector, found: int) -> tuple[int, int]:
    """Find the eigenrays that bounce off a sloping bed on their way to a point, or all eigenrays in a sound field. Append
    them to the ``found`` eigenrays of the medium.

    Returns (new number of eigenrays, number of eigenrays that were dropped for lack of room).
    """
    guide, source, receiver = path_waveguide(m, scene, s, point)
    legs = waveguides.legs_view(m.legs)
    return fans.scan(guide, source, receiver, m.eigenrays, found, legs, m.no_points, m.shot[0])


@device_function
def found_way(m: Medium, scene: AcousticScene, s: int, k: int, point: Vector) -> tuple[bool, PropagationPath]:
    """Return (whether the path exists, the path) for the found eigenray ``k`` to a point."""
    signal, found = m.signals[s], m.eigenrays[k]
    path = 2 * found.reversals + found.down
    if found.bed:
        there = _aim_at_point(m, scene, s, KeptRay(path, found.bed - 1, kept_guess(found, path)), True, point)
        return there, reflected_path(m, s, point)
    dx, dy = point.x - signal.x, point.y - signal.y
    link = rays.link_in_water(a.sound_speed_profile(m), signal.z, point.z, math.sqrt(dx * dx + dy * dy))
    rays.trace_ray(link, found.angle, found.down > 0, found.reversals, m.no_points, m.ray[0], True)
    return True, refracted_path(m, s, path, point)


@device_function
def _bed_travel_time(m: Medium, scene: AcousticScene, s: int, e: int, point: Vector, with_level: bool) -> float:
    """Return the travel time of a ray that is identified by its launch direction. The ray itself is stored in
    ``m.shot``.
    """
    candidate, kept, shot = m.candidates[e], m.kept_rays[e], m.shot[0]
    path = a.to_row(candidate.path)
    ray = KeptRay(path, a.to_row(candidate.bed) - 1, kept_guess(kept, path))
    if not _aim_at_point(m, scene, s, ray, with_level, point):
        best, gap = -1, 1e-3
        count, _ = find_bed_eigenrays(m, scene, s, point, 0)
        for k in range(count):
            away = abs(m.eigenrays[k].time - kept.travel)
            if away < gap:
                best, gap = k, away
        if best < 0:
            return math.nan
        found = m.eigenrays[best]
        path = 2 * found.reversals + found.down
        ray = KeptRay(path, found.bed - 1, kept_guess(found, path))
        if not _aim_at_point(m, scene, s, ray, with_level, point):
            return math.nan
        candidate.path, candidate.bed = ray.path, 1 + ray.bounces
    if m.water[0].mode == a.VOLUME:  # the turning point of a ray can pass the receiver
        candidate.path = 2 * shot.reversals + (1 if shot.sz > 0.0 else 0)
    keep_direction(kept, shot)
    kept.travel = shot.time
    return float(shot.time)


class KeptRay(NamedTuple):
    """A ray that is identified by its launch direction: the index of its path, its number of bounces, and a first
    guess.
    """

    path: int
    bounces: int
    guess: FirstGuess


@device_function
def kept_guess(kept: Record, path: int) -> FirstGuess:
    """Return the first guess for a ray from its record."""
    sz = math.sqrt(max(1.0 - kept.sx * kept.sx - kept.sy * kept.sy, 0.0))
    return FirstGuess(
        Vector(kept.sx, kept.sy, sz if path % 2 == 1 else -sz),
        Vector(kept.down_x, kept.down_y, kept.down_z),
        Vector(kept.side_x, kept.side_y, kept.side_z),
    )


@device_function
def keep_direction(kept: Record, ray: Record) -> None:
    """Copy the direction of a ray, and its displacements at the receiver, from one record to another."""
    kept.sx, kept.sy = ray.sx, ray.sy
    kept.down_x, kept.down_y, kept.down_z = ray.down_x, ray.down_y, ray.down_z
    kept.side_x, kept.side_y, kept.side_z = ray.side_x, ray.side_y, ray.side_z


@device_function
def _aim_at_point(m: Medium, scene: AcousticScene, s: int, ray: KeptRay, with_level: bool, point: Vector) -> bool:
    """Return whether a kept ray reaches a point; the ray is stored in ``m.shot``."""
    guide, source, receiver = path_waveguide(m, scene, s, point)
    target = RayTarget(receiver, ray.path // 2, ray.bounces)
    return fans.aim_ray(
        guide, source, target, ray.guess, with_level, waveguides.legs_view(m.legs), m.no_points, m.shot[0]
    )


@device_function
def sound_speed_of_signal(m: Medium, s: int, point: Vector) -> float:
    """Return the sound speed at a point in m/s, at the time of emission of a signal."""
    if m.water[0].mode == a.ISOVELOCITY:
        return float(m.water[0].speed)
    if m.water[0].mode == a.VOLUME:
        return float(speed_at(a.sound_field(m, m.signals[s].emission), point))
    return rays.sound_speed_at(a.sound_speed_profile(m), point.z)


@device_function
def reflected_path(m: Medium, s: int, point: Vector) -> PropagationPath:
    """Return the path of the ray in ``m.shot`` over a bed that is not level, or through a sound field."""
    w, shot = m.water[0], m.shot[0]
    bottom_loss, turned = waveguides.bed_loss(
        waveguides.legs_view(m.legs)[waveguides.NOW],
        shot.bottom,
        w.density_ratio,
        w.speed_ratio,
        w.attenuation,
        w.summing == a.COHERENT,
    )
    spread = shot.spread if w.spreading == 0.0 else -1.0
    signal = m.signals[s]
    c_source = sound_speed_of_signal(m, s, Vector(signal.x, signal.y, signal.z))
    c_receiver = sound_speed_of_signal(m, s, point)
    return PropagationPath(
        shot.length,
        shot.sx,
        shot.sy,
        shot.sz,
        shot.rx,
        shot.ry,
        shot.rz,
        c_source,
        c_receiver,
        shot.surface,
        shot.bottom,
        shot.caustics,
        shot.sine_top,
        spread,
        bottom_loss,
        turned,
    )


@device_function
def meets_sloping_bed(m: Medium, path: int) -> bool:
    """Return whether a path in water of uniform sound speed meets a bed that is not level."""
    return bool(m.water[0].uneven != 0 and image_paths.bounce_counts(path)[1] > 0)


@always_inline
def source_image(m: Medium, scene: AcousticScene, s: int, path: int, point: Vector) -> tuple[float, float, float]:
    """Return the position of the image source for a path to a point, in water with a uniform sound speed; NaN if the
    path does not exist.

    Over a bed that is not level, ``m.points`` then contains the corners of the path.
    """
    if path == 0:  # nearly all paths: avoids a call
        return m.signals[s].x, m.signals[s].y, m.signals[s].z
    return _mirrored_source(m, scene, s, path, point)


@device_function
def _mirrored_source(m: Medium, scene: AcousticScene, s: int, path: int, point: Vector) -> tuple[float, float, float]:
    """Return the position of the image source for a path with bounces."""
    signal = m.signals[s]
    if not meets_sloping_bed(m, path):
        return signal.x, signal.y, image_paths.image_depth(signal.z, m.water[0].bottom, path)
    source = Vector(signal.x, signal.y, signal.z)
    if not sloping_bed_images.find_reflections(scene, a.still_surface(m), path, source, point, m.points):
        return math.nan, math.nan, math.nan
    k = 2 * (path // 2) + 2
    return m.points[k, 0], m.points[k, 1], m.points[k, 2]


@device_function
def _sloping_bed_path(m: Medium, scene: AcousticScene, s: int, path: int, point: Vector) -> PropagationPath:
    """Return the path that bounces off a bed that is not level; its length is NaN if there is no such path."""
    w = m.water[0]
    ox, oy, oz = source_image(m, scene, s, path, point)
    dx, dy, dz = point.x - ox, point.y - oy, point.z - oz
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    sx, sy, sz = sloping_bed_images.leg_direction(m.points, 0)
    rx, ry, rz = sloping_bed_images.leg_direction(m.points, path // 2)
    bottom_loss, sine_top, turned = sloping_bed_images.bed_loss(
        m.points, path, w.density_ratio, w.speed_ratio, w.attenuation, w.summing == a.COHERENT
    )
    surface, bottom = image_paths.bounce_counts(path)
    return PropagationPath(
        length, sx, sy, sz, rx, ry, rz, w.speed, w.speed, surface, bottom, 0, sine_top, -1.0, bottom_loss, turned
    )


@device_function
def straight_path(m: Medium, scene: AcousticScene, s: int, path: int, point: Vector) -> PropagationPath:
    """Return the path in water of uniform sound speed; its length is NaN if there is no path."""
    if meets_sloping_bed(m, path):
        return _sloping_bed_path(m, scene, s, path, point)
    signal, w = m.signals[s], m.water[0]
    dx, dy, dz = point.x - signal.x, point.y - signal.y, point.z - image_paths.image_depth(signal.z, w.bottom, path)
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    safe_length = max(length, 1e-9)
    rx, ry, rz = dx / safe_length, dy / safe_length, dz / safe_length
    surface, bottom = image_paths.bounce_counts(path)
    bottom_loss = turned = 0.0
    if bottom:
        bottom_loss = bottom * image_paths.bottom_loss(abs(rz), w.density_ratio, w.speed_ratio, w.attenuation)
        if w.summing == a.COHERENT:
            turned = bottom * image_paths.bottom_phase(abs(rz), w.density_ratio, w.speed_ratio, w.attenuation)
    sz = -rz if (surface + bottom) % 2 else rz
    return PropagationPath(
        length, rx, ry, sz, rx, ry, rz, w.speed, w.speed, surface, bottom, 0, abs(rz), -1.0, bottom_loss, turned
    )


@device_function
def refracted_path(m: Medium, s: int, path: int, point: Vector) -> PropagationPath:
    """Return the path of the ray in ``m.ray``."""
    signal, w, ray = m.signals[s], m.water[0], m.ray[0]
    dx, dy = point.x - signal.x, point.y - signal.y
    far = math.sqrt(dx * dx + dy * dy)
    hx, hy = (dx / far, dy / far) if far > 1e-9 else (1.0, 0.0)
    surface = bottom = caustics = 0
    sine_top = bottom_loss = turned = 0.0
    spread = -1.0
    if w.mode == a.GRADIENT:
        c_source, c_receiver = w.speed + w.gradient * signal.z, w.speed + w.gradient * point.z
        sz, rz = ray.sin_source, ray.sin_receiver
        if w.spreading == 0.0:
            spread = ray_tubes.arc_spreading(far, ray.length, sz, c_source, c_receiver)
    else:
        profile = a.sound_speed_profile(m)
        c_source = rays.sound_speed_at(profile, signal.z)
        c_receiver = rays.sound_speed_at(profile, point.z)
        down = path % 2 == 1
        sz = ray.sin_source if down else -ray.sin_source
        arrives_down = down == (path // 2 % 2 == 0)
        rz = ray.sin_receiver if arrives_down else -ray.sin_receiver
        surface, bottom = ray.surface, ray.bottom
        sine_top = rays.sine_from_cosine(ray.invariant * m.profile_c[0])
        if w.spreading == 0.0:
            link = rays.link_in_water(profile, signal.z, point.z, far)
            spread, caustics = ray_tubes.tube_spreading(link, down, path // 2, ray)
        if bottom:
            bottom_loss = bottom * image_paths.bottom_loss(
                ray.sin_bottom, w.density_ratio, w.speed_ratio, w.attenuation
            )
            if w.summing == a.COHERENT:
                turned = bottom * image_paths.bottom_phase(
                    ray.sin_bottom, w.density_ratio, w.speed_ratio, w.attenuation
                )
    cs, cr = math.sqrt(max(1.0 - sz * sz, 0.0)), math.sqrt(max(1.0 - rz * rz, 0.0))
    return PropagationPath(
        ray.length,
        cs * hx,
        cs * hy,
        sz,
        cr * hx,
        cr * hy,
        rz,
        c_source,
        c_receiver,
        surface,
        bottom,
        caustics,
        sine_top,
        spread,
        bottom_loss,
        turned,
    )


@device_function
def path_points(m: Medium, scene: AcousticScene, s: int, e: int, point: Vector) -> int:
    """Fill ``m.points`` with points along a candidate's path to a point, over a flat surface; return their number, or 0
    if there is no path. If the path is a ray, ``m.ray`` or ``m.shot`` must contain this ray; the points are then those
    at which it passes from one layer to the next.
    """
    signal, candidate = m.signals[s], m.candidates[e]
    path, source = a.to_row(candidate.path), Vector(signal.x, signal.y, signal.z)
    if m.water[0].mode == a.ISOVELOCITY and meets_sloping_bed(m, path):
        still = a.still_surface(m)
        return path // 2 + 2 if sloping_bed_images.find_reflections(scene, still, path, source, point, m.points) else 0
    if m.water[0].mode == a.ISOVELOCITY:
        return image_paths.unfold_image_path(path, m.water[0].bottom, source, point, m.points)
    if candidate.bed:
        return _bed_ray_points(m, scene, s, path, point)
    return _ray_points(m, s, path, m.kept_rays[e].angle, point)


@device_function
def is_blocked(m: Medium, scene: AcousticScene, s: int, e: int, point: Vector) -> bool:
    """Return whether anything blocks a candidate's path to a point. The bed does not block a ray that it has reflected."""
    n = path_points(m, scene, s, e, point)
    return n == 0 or image_paths.is_path_blocked(scene, m.points, n, m.candidates[e].bed == 0)


@device_function
def _bed_ray_points(m: Medium, scene: AcousticScene, s: int, path: int, point: Vector) -> int:
    """Fill in points along the ray in ``m.shot``; return the number of points. This overwrites the time and the length
    of the ray.
    """
    shot, p = m.shot[0], m.points
    guide, source, receiver = path_waveguide(m, scene, s, point)
    p[0, 0], p[0, 1], p[0, 2] = source.x, source.y, source.z
    start = RayStart(source, Vector(shot.sx, shot.sy, shot.sz))
    legs = waveguides.legs_view(m.legs)[waveguides.BESIDE]
    if m.water[0].mode == a.VOLUME:
        target = RayTarget(receiver, shot.reversals, shot.surface + shot.bottom)
        return int(volume_rays.trace_ray(guide, start, target, False, legs, p, shot).points)
    return int(range_dependent_rays.trace_ray(guide, start, receiver.z, path // 2, False, legs, p, shot))


@device_function
def _ray_points(m: Medium, s: int, path: int, angle: float, point: Vector) -> int:
    """Fill in points along a ray for the obstacle check; return the number of points."""
    signal = m.signals[s]
    dx, dy = point.x - signal.x, point.y - signal.y
    across = math.sqrt(dx * dx + dy * dy)
    p = m.points
    p[0, 0], p[0, 1], p[0, 2] = signal.x, signal.y, signal.z
    n = 1
    if m.water[0].mode == a.GRADIENT:  # a circle through both ends: chords of an eighth
        rise, fall = m.ray[0].sin_source, m.ray[0].sin_receiver
        slope_a, slope_b = rise / math.sqrt(1.0 - rise * rise + 1e-12), fall / math.sqrt(1.0 - fall * fall + 1e-12)
        for i in range(1, 8):
            u = i / 8.0
            w = 1.0 - u
            p[n, 0], p[n, 1] = signal.x + u * dx, signal.y + u * dy
            p[n, 2] = (
                signal.z
                + u * u * (3.0 - 2.0 * u) * (point.z - signal.z)
                + across * (u * w * w * slope_a - u * u * w * slope_b)
            )
            n += 1
    else:
        profile = a.sound_speed_profile(m)
        profile_depth = profile.z[-1]
        here, level = 0.0, min(max(signal.z, 0.0), profile_depth)
        invariant = cos(angle) / rays.sound_speed_at(profile, level)
        down = path % 2 == 1
        room = p.shape[0] - profile.z.shape[0] - 2  # each knot once between two reversals
        track = p[room:, :2]
        for r in range(path // 2 + 1):
            last = r == path // 2
            stop = point.z if last else (profile_depth + 1.0 if down else -1.0)
            start = rays.water_point(profile, level)
            leg_range, _, _, end, _, count = rays.march_ray(profile, invariant, start, down, stop, track, False)
            for i in range(count):
                if n < room:
                    k = (here + track[i, 0]) / across if across > 0.0 else 0.0
                    p[n, 0], p[n, 1], p[n, 2] = signal.x + k * dx, signal.y + k * dy, track[i, 1]
                    n += 1
            here, level, down = here + leg_range, end, not down
    p[n, 0], p[n, 1], p[n, 2] = point.x, point.y, point.z
    return n + 1
