"""Sound pressure in a vertical plane, from a fan of rays with geometric (hat-shaped) beams; compiled.

The medium traces each ray of the fan. In each part of a ray, the sound speed is linear, so the part is an arc of a
circle, and its depth, direction and travel time at each range of a grid have closed forms. Two neighbouring rays are the
edges of a ray tube. The power that the source radiates into the tube is the same at all ranges, so the tube has

    |pressure / pressure at 1 m|^2 = d(sin a) c_receiver / (c_source r |dz| cos)

at the range r, where its height is |dz|, its mean angle to the horizontal has the cosine `cos`, and `a` is the launch
angle. Between the two rays, phase and losses are interpolated; this corresponds to beams in the shape of a hat. A tube
that is being reflected at the range r is unfolded into two tubes, one before and one after the bounce. Where two
neighbours have different histories of bounces and turning points, the angle between them is halved repeatedly.

The width of a tube is limited as in :mod:`ray_tubes`. The model neglects diffraction, and it neglects refraction and
reflection out of the vertical plane when it computes the width of a tube.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import (
    eigenrays,
    image_paths,
    range_dependent_rays,
    ray_tubes,
    rays,
    sloping_bed_images,
    volume_rays,
    waveguides,
)
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.medium_arrays import Medium, MediumTable
from wavesim_server.acoustics.sound_field import gradient_at
from wavesim_server.acoustics.types import Vector
from wavesim_server.acoustics.volume_rays import RayTarget, arc_length, chord_time
from wavesim_server.acoustics.waveguides import MAX_LEGS, RayStart, Waveguide, bed_depth_at, has_field, sound_speed
from wavesim_server.elementary import cos, log10, power, sin, sin_cos

HALVINGS = 10  #: maximum number of times that the angle between two rays of the fan is halved
#: an angle is not halved if it is smaller than its initial size divided by this number, which is 0.75 * 2^HALVINGS
FINEST = 768.0
#: properties of a ray at one range of the grid
DEPTH, SINE, COSINE, SPEED, TIME, LENGTH, LOSS, PHASE, EVENTS, BOUNCES = range(10)
STATES = 10
#: events in the history of a ray; the first two are bounces, and an obstacle ends the ray
AT_SURFACE, AT_BED, TURNED, STOPPED = 1.0, 2.0, 3.0, 4.0
#: values that apply to a whole ray
ANGLE, COLUMNS, COUNT = range(3)
_SHORT = 1e-5  #: parts shorter than this (m) have no reliable direction
_KINK = 1e-6  #: change of a ray's sine at a point that may be a bounce
_ON_BED = 1e-4  #: distance in m from the bed within which a point is on the bed
MAX_GAIN = 100.0  #: limit of the gain by focusing, as in :data:`ray_tubes.MAX_FOCUSING_DB`


class FanPlan(NamedTuple):
    """A fan of rays in the vertical plane with the horizontal direction (hx, hy).

    The launch angles ascend (rad, positive downwards). The grid has ``ranges`` (m, ascending) and ``depth_count`` depths
    from ``depth`` (m) in equal steps.
    """

    hx: float
    hy: float
    angles: Floats
    ranges: Floats
    depth: float
    depth_step: float
    max_bounces: int


class FanRays(NamedTuple):
    """Scratch space for HALVINGS + 2 rays: their states (rays, ranges, STATES), their events (rays, MAX_LEGS, 2) as
    pairs of kind and range, and the values that apply to each whole ray (rays, 3). ``track`` (n, 3) receives the points
    along one ray.
    """

    states: Floats
    events: Floats
    whole: Floats
    track: Floats


class Edge(NamedTuple):
    """A ray at one range, as an edge of a ray tube: depth (m), direction, sound speed (m/s), travel time (s), length (m),
    and the loss (dB) and phase (rad) of its bounces.
    """

    depth: float
    sine: float
    cosine: float
    speed: float
    time: float
    length: float
    loss: float
    phase: float


class RayTube(NamedTuple):
    """A ray tube at one range of the grid, with its power, divided by the sound speed at the source, and the caustics that
    it has passed.
    """

    column: int
    power: float
    caustics: int


@device_function
def _gradient(guide: Waveguide, x: float, y: float, z: float) -> Vector:
    """Return the gradient of the sound speed at a point."""
    if has_field(guide):
        return gradient_at(guide.field, Vector(x, y, z))
    zs, cs = guide.profile.z, guide.profile.c
    if z < zs[0] or z > zs[-1]:
        return Vector(0.0, 0.0, 0.0)
    k = rays.layer_of(zs, z)
    return Vector(0.0, 0.0, (cs[k + 1] - cs[k]) / (zs[k + 1] - zs[k]))


@device_function
def _length(chord: float, bend: float) -> float:
    """Return the length of an arc; ``bend`` is half of the chord divided by the distance of the centre from it."""
    q = bend * bend
    return arc_length(chord * math.sqrt(1.0 + q), q)


@device_function
def _note(fan: FanRays, slot: int, kind: float, u: float) -> None:
    """Add an event to the history of a ray."""
    k = int(fan.whole[slot, COUNT])
    if k < MAX_LEGS:
        fan.events[slot, k, 0], fan.events[slot, k, 1] = kind, u
        fan.whole[slot, COUNT] = k + 1.0


@device_function
def _not_level(angle: float) -> float:
    """Return a launch angle, or the minimum launch angle if it is closer to the horizontal."""
    if abs(angle) >= eigenrays.MIN_LAUNCH_ANGLE:
        return angle
    return eigenrays.MIN_LAUNCH_ANGLE if angle > 0.0 else -eigenrays.MIN_LAUNCH_ANGLE


@device_function
def _trace(m: Medium, guide: Waveguide, plan: FanPlan, angle: float, slot: int, fan: FanRays) -> None:
    """Trace a ray and store its states at the ranges of the grid."""
    signal, w, p, states = m.signals[0], m.water[0], fan.track, fan.states
    for i in range(p.shape[0]):
        p[i, 0] = math.nan
    angle = _not_level(angle)
    fan.whole[slot, ANGLE], fan.whole[slot, COUNT] = angle, 0.0
    level, rise = cos(angle), sin(angle)
    start = RayStart(Vector(signal.x, signal.y, signal.z), Vector(level * plan.hx, level * plan.hy, rise))
    legs = waveguides.legs_view(m.legs)[waveguides.NOW]
    if has_field(guide):
        nowhere = RayTarget(Vector(signal.x, signal.y, -1.0), 0, -1)
        volume_rays.trace_ray(guide, start, nowhere, False, legs, p, m.shot[0])
    else:
        range_dependent_rays.trace_ray(guide, start, -1.0, MAX_LEGS - 1, False, legs, p, m.shot[0])
    p[0, 0], p[0, 1], p[0, 2] = signal.x, signal.y, signal.z
    time = length = loss = phase = bounces = 0.0
    x1, y1, z1, u1 = signal.x, signal.y, signal.z, 0.0
    sine, ax, ay, down, c1 = (
        rise,
        level * plan.hx,
        level * plan.hy,
        rise > 0.0,
        sound_speed(guide, Vector(signal.x, signal.y, signal.z)),
    )
    j, n, limit = 0, plan.ranges.shape[0], math.inf
    for i in range(1, p.shape[0]):
        x2, y2, z2 = p[i, 0], p[i, 1], p[i, 2]
        if x2 != x2 or fan.whole[slot, COUNT] > limit:
            break
        dx, dy, dz = x2 - x1, y2 - y1, z2 - z1
        across = math.sqrt(dx * dx + dy * dy)
        chord = math.sqrt(across * across + dz * dz)
        if chord < _SHORT:
            continue
        u2 = (x2 - signal.x) * plan.hx + (y2 - signal.y) * plan.hy
        c2 = sound_speed(guide, Vector(x2, y2, z2))
        g = _gradient(guide, x1 + 0.5 * dx, y1 + 0.5 * dy, z1 + 0.5 * dz)
        eh, ez = across / chord, dz / chord
        # half of the chord over the distance of the centre of the arc, in the vertical plane of the chord
        ahead = (g.x * dx + g.y * dy) / across if across > 0.0 else 0.0
        gradient = math.sqrt(ahead * ahead + g.z * g.z)
        bend = 0.5 * chord * (g.z * eh - ahead * ez) / (0.5 * (c1 + c2))
        ch = 1.0 / math.sqrt(1.0 + bend * bend)
        sh = bend * ch
        sa, ca = ez * ch + eh * sh, eh * ch - ez * sh
        sb, cb = ez * ch - eh * sh, eh * ch + ez * sh
        if abs(sa - sine) > _KINK and i > 1:
            if z1 <= _KINK:
                _note(fan, slot, AT_SURFACE, u1)
                loss += w.surface_loss + ray_tubes.surface_loss(abs(sine), signal.frequency, c1, w.roughness, w.bubbles)
                phase, bounces = phase + math.pi, bounces + 1.0
            elif abs(bed_depth_at(guide, x1, y1) - z1) < _ON_BED:
                _note(fan, slot, AT_BED, u1)
                nx, ny, nz, _ = sloping_bed_images.tangent_plane(guide.scene, x1, y1)
                grazing = abs(ax * nx + ay * ny + sine * nz)
                loss += image_paths.bottom_loss(grazing, w.density_ratio, w.speed_ratio, w.attenuation)
                bounces += 1.0
                phase += image_paths.bottom_phase(grazing, w.density_ratio, w.speed_ratio, w.attenuation)
        elif (dz > 0.0) != down and dz != 0.0:
            _note(fan, slot, TURNED, u1)
        down = dz > 0.0
        if u2 <= u1:
            break  # it goes straight up or down, or back to the source
        if (
            w.blocking != 0
            and image_paths.find_blocker(guide.scene, p[i - 1 : i + 1], 2, False) != image_paths.NOT_BLOCKED
        ):
            _note(fan, slot, STOPPED, u1)
            break
        while j < n and plan.ranges[j] <= u2:
            way = (plan.ranges[j] - u1) / (u2 - u1) * across
            drop, s, c = range_dependent_rays.circle_step(sa, ca, (sa - sb) / across, way)
            part = math.sqrt(way * way + drop * drop)
            speed = c1 + g.z * drop + (c2 - c1 - g.z * dz) * (way / across)
            to = states[slot, j]
            to[DEPTH], to[SINE], to[COSINE], to[SPEED] = z1 + drop, s, c, speed
            to[TIME] = time + chord_time(part, gradient, c1, speed)
            to[LENGTH] = length + _length(part, bend * part / chord)
            to[LOSS], to[PHASE], to[EVENTS], to[BOUNCES] = loss, phase, fan.whole[slot, COUNT], bounces
            j += 1
        if j >= n and math.isinf(limit):
            limit = fan.whole[slot, COUNT]  # only the next event still matters, for the comparison with its neighbours
        time, length = time + chord_time(chord, gradient, c1, c2), length + _length(chord, bend)
        x1, y1, z1, u1, c1, sine = x2, y2, z2, u2, c2, sb
        ax, ay = cb * dx / across, cb * dy / across
    fan.whole[slot, COLUMNS] = j


@device_function
def _common_events(fan: FanRays, one: int, other: int) -> int:
    """Return the number of events that the histories of two rays have in common at their start."""
    most = int(min(fan.whole[one, COUNT], fan.whole[other, COUNT]))
    for k in range(most):
        if fan.events[one, k, 0] != fan.events[other, k, 0]:
            return k
    return most


@device_function
def _differ(plan: FanPlan, fan: FanRays, one: int, other: int) -> bool:
    """Return whether two rays have different histories within the grid."""
    k, last = _common_events(fan, one, other), plan.ranges[plan.ranges.shape[0] - 1]
    more_one, more_other = k < fan.whole[one, COUNT], k < fan.whole[other, COUNT]
    return (more_one and fan.events[one, k, 1] < last) or (more_other and fan.events[other, k, 1] < last)


@device_function
def _edge(of: Floats, mirror: float, like: Floats) -> Edge:
    """Return the edge of a tube that a ray forms, mirrored at a depth unless ``mirror`` is NaN. The edge has the losses
    and phases of the ray ``like``.
    """
    depth, sine = of[DEPTH], of[SINE]
    if mirror == mirror:
        depth, sine = 2.0 * mirror - depth, -sine
    return Edge(depth, sine, of[COSINE], of[SPEED], of[TIME], of[LENGTH], like[LOSS], like[PHASE])


@device_function
def _fill(m: Medium, plan: FanPlan, tube: RayTube, one: Edge, other: Edge, field: Floats) -> None:
    """Add the pressure between the two edges of a tube to the field."""
    w, signal, j = m.water[0], m.signals[0], tube.column
    height = other.depth - one.depth
    low, high = min(one.depth, other.depth), max(one.depth, other.depth)
    if high - low < 1e-9:
        return
    k = int(max(math.ceil((low - plan.depth) / plan.depth_step), 0.0))
    # the derivative of the travel time with respect to the depth is sin / c
    slope_a, slope_b = one.sine / one.speed * height, other.sine / other.speed * height
    while k < field.shape[1] and plan.depth + k * plan.depth_step < high:
        u = (plan.depth + k * plan.depth_step - one.depth) / height
        v = 1.0 - u
        length = max(v * one.length + u * other.length, 1.0)
        if length <= w.max_range:
            if w.spreading > 0.0:
                gain = power(10.0, -0.1 * w.spreading * log10(length))
            else:
                level, speed = v * one.cosine + u * other.cosine, v * one.speed + u * other.speed
                gain = tube.power * speed / (plan.ranges[j] * (high - low) * max(level, 1e-9))
                gain = min(gain, MAX_GAIN / (length * length))
            gain *= power(10.0, -0.1 * (signal.absorption * length + v * one.loss + u * other.loss))
            time = v * v * (1.0 + 2.0 * u) * one.time + u * u * (3.0 - 2.0 * u) * other.time
            cycles = signal.frequency * (time + u * v * (v * slope_a - u * slope_b))
            turned = v * one.phase + u * other.phase + 0.5 * math.pi * tube.caustics
            sine, cosine = sin_cos(turned - 2.0 * math.pi * (cycles - math.floor(cycles)))
            root = math.sqrt(gain)
            field[0, k, j] += gain
            field[1, k, j] += root * cosine
            field[2, k, j] += root * sine
        k += 1


@device_function
def _add_tube(m: Medium, guide: Waveguide, plan: FanPlan, pair: tuple[int, int], fan: FanRays, field: Floats) -> None:
    """Add the pressure between two rays of the fan to the field."""
    one, other = pair
    start, whole, events = m.signals[0], fan.whole, fan.events
    common = _common_events(fan, one, other)
    source_speed = sound_speed(guide, Vector(start.x, start.y, start.z))
    radiated = abs(sin(whole[other, ANGLE]) - sin(whole[one, ANGLE])) / source_speed
    side, caustics, met, bounces = 1.0, 0, 0, 0
    for j in range(int(min(whole[one, COLUMNS], whole[other, COLUMNS]))):
        s, t = fan.states[one, j], fan.states[other, j]
        few, many = int(min(s[EVENTS], t[EVENTS])), int(max(s[EVENTS], t[EVENTS]))
        if many > common or many > few + 1:
            # neighbours on both sides of a change of the history, whose angle is as small as possible
            if s[BOUNCES] == t[BOUNCES] <= plan.max_bounces and abs(t[DEPTH] - s[DEPTH]) < 2.0 * plan.depth_step:
                _fill(m, plan, RayTube(j, radiated, caustics), _edge(s, math.nan, s), _edge(t, math.nan, t), field)
            continue
        while met < few:
            bounces += 1 if events[one, met, 0] != TURNED else 0
            met += 1
        if bounces > plan.max_bounces:
            return
        at = events[one, few, 0] if many > few else TURNED
        mirror, depth = math.nan, 0.0
        if at != TURNED:
            if at == AT_BED:
                x, y = start.x + plan.ranges[j] * plan.hx, start.y + plan.ranges[j] * plan.hy
                depth = bed_depth_at(guide, x, y)
            mirror = depth
        first_is_many = s[EVENTS] > t[EVENTS]
        before = s if not first_is_many else t
        a_edge = _edge(s, mirror if first_is_many else math.nan, before)
        b_edge = _edge(t, mirror if not first_is_many else math.nan, before)
        if mirror != mirror:
            a_edge, b_edge = _edge(s, mirror, s), _edge(t, mirror, t)
        now = b_edge.depth - a_edge.depth if bounces % 2 == 0 else a_edge.depth - b_edge.depth
        if now * side < 0.0:
            side = -side
            caustics += 1
        tube = RayTube(j, radiated, caustics)
        _fill(m, plan, tube, a_edge, b_edge, field)
        if mirror == mirror and bounces < plan.max_bounces:
            after = t if not first_is_many else s
            a_edge = _edge(s, math.nan if first_is_many else mirror, after)
            b_edge = _edge(t, math.nan if not first_is_many else mirror, after)
            _fill(m, plan, tube, a_edge, b_edge, field)


@device_function
def _copy(fan: FanRays, slot: int, to: int) -> None:
    """Copy a ray of the scratch space, up to its last state and event."""
    for i in range(3):
        fan.whole[to, i] = fan.whole[slot, i]
    for j in range(int(fan.whole[slot, COLUMNS])):
        for i in range(STATES):
            fan.states[to, j, i] = fan.states[slot, j, i]
    for k in range(int(fan.whole[slot, COUNT])):
        for i in range(2):
            fan.events[to, k, i] = fan.events[slot, k, i]


@kernel
def add_fan(t: MediumTable, scene: AcousticScene, plan: FanPlan, fan: FanRays, field: Floats) -> int:
    """Add the sound of signal 0 in a vertical plane to ``field`` (3, depths, ranges), and return the number of rays.

    The field contains the sum of the squared pressures of all paths, and the real and imaginary parts of the sum of
    their pressures, relative to the pressure at 1 m.
    """
    m = a.unpack_medium(t)
    signal, count = m.signals[0], plan.angles.shape[0]
    far = plan.ranges[plan.ranges.shape[0] - 1]
    source = Vector(signal.x, signal.y, signal.z)
    end = Vector(signal.x + far * plan.hx, signal.y + far * plan.hy, signal.z)
    profile = a.sound_speed_profile(m)
    # with one more bounce, because a tube may be reflected for the last time at a range of the grid
    field_of_speeds = a.sound_field(m, signal.emission)
    guide = waveguides.waveguide_between(profile, field_of_speeds, scene, plan.max_bounces + 1, source, end)
    _trace(m, guide, plan, plan.angles[0], 0, fan)
    for k in range(1, plan.angles.shape[0]):
        _trace(m, guide, plan, plan.angles[k], 1, fan)
        top, finest = 1, (plan.angles[k] - plan.angles[k - 1]) / FINEST
        while top > 0:
            low, high = fan.whole[0, ANGLE], fan.whole[top, ANGLE]
            middle = _not_level(low + 0.5 * (high - low))
            if top <= HALVINGS and high - low > finest and low < middle < high and _differ(plan, fan, 0, top):
                top += 1
                count += 1
                _trace(m, guide, plan, middle, top, fan)
                continue
            _add_tube(m, guide, plan, (0, top), fan, field)
            _copy(fan, top, 0)
            top -= 1
    return count
