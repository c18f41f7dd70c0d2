"""Fronts of signals at hydrophones, compiled.

A signal is emitted for a while, during which its source and the hydrophones move. The fronts describe this: a front is
one instant of the emission, followed along each path to each hydrophone like a signal without duration. The first front
leaves at the start of the emission, further ones at regular intervals, and the last one at its end. Between two fronts,
the emission time that arrives at a given time follows from the times and the rates of both.

The motion of the ends enters a rate only through the directions at both ends: for a straight path by definition, and
for a ray because its travel time is stationary (Fermat's principle). With the direction n and the sound speed c at each
end, ``d te/d tr = (1 - v_receiver.n/c) / (1 - v_source.n/c)``.

The noise that a body radiates is a series of segments of 0.5 s without a gap. Each segment is treated like a signal: the
last front of a segment is the first one of the next segment. Levels of its fronts depend on the speed of the body.

The medium of the transducers does not change: the kernel reads the signals that this medium has sent, and follows the
fronts in the medium of the hydrophones (see :mod:`front_arrays`). In the arguments, ``sender`` is the medium of the
transducers, ``m`` the medium of the hydrophones, and ``f`` their additional arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.front_tables import FRONT_ELEMENTS, NOISE_SEGMENT_S, RADIATED_NOISE
from wavesim_server.acoustics import front_arrays
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.event_queues import free_candidate, take_candidate
from wavesim_server.acoustics.front_arrays import GROW_FRONTS, PATHS, FrontArrays, FrontTable
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.known_rays import knows_layered_rays
from wavesim_server.acoustics.medium import check_arrival
from wavesim_server.acoustics.medium_arrays import Medium, MediumTable
from wavesim_server.acoustics.moving_paths import may_meet_moving_surface
from wavesim_server.acoustics.propagation import (
    PropagationPath,
    is_blocked,
    launch_angles,
    source_image,
    straight_path,
)
from wavesim_server.acoustics.reception import arriving_path, level_of
from wavesim_server.acoustics.spreading import add_passing_candidates, reach_of
from wavesim_server.acoustics.transducer_motion import TickInterval, attitude, cubic_motion, position_and_velocity
from wavesim_server.acoustics.types import Record, Vector
from wavesim_server.dynamics.rotation import to_world

#: numbers of the segments of noise are above those of all signals: this number, plus the number of the segment times
#: NOISE_ROWS, plus the row of the body
FIRST_NOISE_SIGNAL, NOISE_ROWS = 1 << 52, 1 << 20
ITERATIONS = 4  #: number of Newton steps for the time of arrival at an element


class FrontArrival(NamedTuple):
    """The arrival of a front at the reference point of a hydrophone: its candidate, the position of the hydrophone, the
    time, the path, and the factor of the frequency due to the moving surface.
    """

    candidate: int
    point: Vector
    time: float
    path: PropagationPath
    doppler: float


# ------------------------------------------------------------------ emission


@device_function
def _notice_emissions(sender: Medium, f: FrontArrays) -> int:
    """Begin the emission of the signals that were sent in this tick, in the order of their numbers."""
    c = f.counters[0]
    while c.last_signal < sender.counters[0].last_id:
        if c.emitting == f.emitting.shape[0]:
            return GROW_FRONTS
        if c.waveforms == f.waveforms.shape[0]:
            return a.FLUSH
        number = c.last_signal + 1
        for s in range(sender.signals.shape[0]):
            if sender.signals[s].id == number:
                _begin_emission(sender, f, s)
                break
        c.last_signal = number
    return a.OK


@device_function
def _begin_emission(sender: Medium, f: FrontArrays, s: int) -> None:
    """Begin the emission of a signal, and write its waveform."""
    signal, c = sender.signals[s], f.counters[0]
    row = _next_waveform(f)
    row.signal, row.source, row.kind, row.code = signal.id, signal.source, signal.kind, signal.code
    row.modulation, row.samples = signal.modulation, 0
    row.emission, row.duration, row.frequency, row.band = (
        signal.emission,
        signal.duration,
        signal.frequency,
        signal.band,
    )
    row.source_level, row.absorption = signal.source_level, signal.absorption
    f.emitted[c.emitting] = signal
    e = f.emitting[c.emitting]
    c.emitting += 1
    e.number, e.last = 0, max(math.ceil(signal.duration / c.interval - 1e-9), 1)
    e.entry, e.slope = sender.nodes[a.to_row(signal.source)].entry, 0.0
    e.start = e.time = signal.emission
    e.x, e.y, e.z, e.vx, e.vy, e.vz = signal.x, signal.y, signal.z, signal.vx, signal.vy, signal.vz


@device_function
def _next_waveform(f: FrontArrays) -> Record:
    """Return the next record of a waveform, in which there are no tones."""
    row = f.waveforms[f.counters[0].waveforms]
    f.counters[0].waveforms += 1
    row.cycles = row.rate = row.rate_end = row.blade_level = row.machine = row.machine_level = 0.0
    return row


@device_function
def _begin_noise_segments(sender: Medium, f: FrontArrays, tick: TickInterval) -> int:
    """Begin the segments of noise that start in this tick, in the order of the rows of their bodies."""
    for k in range(sender.noise_sources.shape[0]):
        source = sender.noise_sources[k]
        if source.active == 0 or source.next * NOISE_SEGMENT_S > tick.end:
            continue
        if f.counters[0].emitting == f.emitting.shape[0]:
            return GROW_FRONTS
        if f.counters[0].waveforms == f.waveforms.shape[0]:
            return a.FLUSH
        _begin_noise_segment(sender, f, k, tick)
        source.next += 1
    return a.OK


@device_function
def _begin_noise_segment(sender: Medium, f: FrontArrays, k: int, tick: TickInterval) -> None:
    """Begin the next segment of the noise of a body, and write its waveform.

    During a segment, the blade rate changes linearly from its value at the start of the previous segment to the value
    at the start of this one. Therefore, it follows the shaft half a second late, but without a jump.
    """
    source, c = sender.noise_sources[k], f.counters[0]
    i = c.emitting
    c.emitting += 1
    f.emitted[i] = sender.noise_signals[k]
    signal, e, row = f.emitted[i], f.emitting[i], _next_waveform(f)
    signal.id = FIRST_NOISE_SIGNAL + source.next * NOISE_ROWS + k
    signal.emission = source.next * NOISE_SEGMENT_S
    e.number, e.last = 0, max(math.ceil(signal.duration / c.interval - 1e-9), 1)
    e.entry, e.slope = source.entry, source.slope
    e.start = e.time = signal.emission
    _move_source(sender, f, i, signal.emission, tick)
    signal.x, signal.y, signal.z, signal.vx, signal.vy, signal.vz = e.x, e.y, e.z, e.vx, e.vy, e.vz
    row.signal, row.source, row.kind, row.code = signal.id, k, RADIATED_NOISE, signal.code
    row.modulation, row.samples = 0, 0
    row.emission, row.duration, row.frequency, row.band = (
        signal.emission,
        signal.duration,
        signal.frequency,
        signal.band,
    )
    row.source_level, row.absorption = signal.source_level, signal.absorption
    if source.last_rate != source.last_rate:
        source.last_rate = source.rate
    row.cycles, row.rate, row.rate_end = source.cycles, source.last_rate, source.rate
    row.blade_level, row.machine, row.machine_level = source.blade_level, source.machine, source.machine_level
    turns = source.cycles + 0.5 * (source.last_rate + source.rate) * NOISE_SEGMENT_S
    source.cycles, source.last_rate = turns - math.floor(turns), source.rate


@device_function
def _front_time(f: FrontArrays, i: int) -> float:
    """Return the emission time of the next front of an emission."""
    e = f.emitting[i]
    if e.number >= e.last:
        return float(e.start + f.emitted[i].duration)
    return float(e.start + e.number * f.counters[0].interval)


@device_function
def _emit_fronts(sender: Medium, m: Medium, f: FrontArrays, scene: AcousticScene, tick: TickInterval) -> int:
    """Emit all fronts that leave their source in this tick."""
    room, i = f.hydrophones.shape[0] * m.water[0].paths_per_node + 1, 0
    while i < f.counters[0].emitting:
        time = _front_time(f, i)
        if time > tick.end:
            i += 1
            continue
        c = m.counters[0]
        if c.live + 1 > m.signals.shape[0] or c.left_chunks < room or c.left_candidates < 1:
            return GROW_FRONTS
        if c.nodes > 0:
            _emit_front(sender, m, f, scene, i, time, tick)
        f.emitting[i].number += 1
        if f.emitting[i].number > f.emitting[i].last:
            f.counters[0].emitting -= 1
            for k in range(i, f.counters[0].emitting):
                f.emitting[k] = f.emitting[k + 1]
                f.emitted[k] = f.emitted[k + 1]
    return a.OK


@device_function
def _move_source(sender: Medium, f: FrontArrays, i: int, time: float, tick: TickInterval) -> bool:
    """Move the source of an emission to its place at a time in this tick; return whether it is still in the water.

    A source that has left the water emits the rest of its signal on a straight course.
    """
    e, j = f.emitting[i], a.to_row(f.emitted[i].source)
    if f.emitted[i].kind == RADIATED_NOISE:
        there = sender.noise_sources[j].active != 0 and sender.noise_sources[j].entry == e.entry
    else:
        there = sender.nodes[j].active != 0 and sender.nodes[j].entry == e.entry
    if there and f.emitted[i].kind == RADIATED_NOISE:
        p, q = sender.noise_places[(tick.number - 1) & 1, j], sender.noise_places[tick.number & 1, j]
        e.x, e.y, e.z, e.vx, e.vy, e.vz = cubic_motion(p, q, time - tick.start, sender.water[0].step)
    elif there:
        e.x, e.y, e.z, e.vx, e.vy, e.vz = position_and_velocity(sender, tick, j, time)
    else:
        dt = time - e.time
        e.x, e.y, e.z = e.x + e.vx * dt, e.y + e.vy * dt, e.z + e.vz * dt
    e.time = time
    return there


@device_function
def _emit_front(
    sender: Medium, m: Medium, f: FrontArrays, scene: AcousticScene, i: int, time: float, tick: TickInterval
) -> None:
    """Emit the next front of an emission: a signal without duration, with candidates for all hydrophones."""
    e, rows = f.emitting[i], f.counters[0].rows
    s = m.counters[0].free_signal
    following = m.signals[s].next
    m.counters[0].free_signal = following
    m.counters[0].live += 1
    m.signals[s] = f.emitted[i]
    signal, j = m.signals[s], a.to_row(f.emitted[i].source)
    signal.pending, signal.next = 0, -1
    if e.number > 0:
        if _move_source(sender, f, i, time, tick) and signal.beam >= 0:
            node = sender.nodes[j]
            qw, qx, qy, qz = attitude(sender, tick, j, time)
            signal.axis_x, signal.axis_y, signal.axis_z = to_world(
                qw, qx, qy, qz, node.axis_x, node.axis_y, node.axis_z
            )
        signal.emission = time
        signal.x, signal.y, signal.z, signal.vx, signal.vy, signal.vz = e.x, e.y, e.z, e.vx, e.vy, e.vz
    if e.slope > 0.0:
        signal.source_level += e.slope * math.sqrt(e.vx * e.vx + e.vy * e.vy + e.vz * e.vz)
    signal.reach = reach_of(m, signal)
    front = f.front_signals[s]
    front.signal, front.number, front.last = signal.id, e.number, 1 if e.number >= e.last else 0
    for k in range(f.arrivals.shape[1]):
        f.arrivals[s, k] = 0
    angles = -1  # a hydrophone whose rays are known needs no fan
    limit = signal.reach * (m.water[0].fastest + a.MAX_SPEED) / m.water[0].fastest + a.MAX_SPEED * m.water[0].step
    for h in range(f.hydrophones.shape[0]):
        if m.nodes[rows + h].active == 0:
            continue
        x, y, z, _, _, _ = position_and_velocity(m, tick, rows + h, time)
        dx, dy, dz = x - signal.x, y - signal.y, z - signal.z
        if dx * dx + dy * dy + dz * dz <= limit * limit:
            m.counters[0].receptions = 0  # the medium of the hydrophones keeps no record of losses
            if angles < 0 and not knows_layered_rays(m, s, rows + h, Vector(x, y, z)):
                angles = launch_angles(m, s)
            add_passing_candidates(m, scene, s, rows + h, time, tick, angles)
    _retire_if_received(m, s)


@device_function
def _retire_if_received(m: Medium, s: int) -> None:
    """Retire a front that is no longer on its way to any hydrophone. Unlike signals, fronts do not reach hydrophones
    that enter the water later.
    """
    if m.signals[s].pending == 0:
        m.signals[s].id, m.signals[s].next = 0, m.counters[0].free_signal
        m.counters[0].free_signal = s
        m.counters[0].live -= 1


# ------------------------------------------------------------------ arrival


@device_function
def _element_motion(
    m: Medium, f: FrontArrays, e: int, tick: TickInterval, time: float
) -> tuple[float, float, float, float, float, float]:
    """Return the position and velocity of an element at a time in the tick, or a few milliseconds outside it, where its
    acceleration is assumed to be the mean of the tick.
    """
    p, q = f.element_places[(tick.number - 1) & 1, e], f.element_places[tick.number & 1, e]
    h = m.water[0].step
    if tick.start <= time <= tick.end:
        return cubic_motion(p, q, time - tick.start, h)
    ax, ay, az = (q.vx - p.vx) / h, (q.vy - p.vy) / h, (q.vz - p.vz) / h
    near, dt = q, time - tick.end
    if time < tick.start:
        near, dt = p, time - tick.start
    half = 0.5 * dt * dt
    return (
        near.x + near.vx * dt + ax * half,
        near.y + near.vy * dt + ay * half,
        near.z + near.vz * dt + az * half,
        near.vx + ax * dt,
        near.vy + ay * dt,
        near.vz + az * dt,
    )


@device_function
def _image_arrival(
    m: Medium, f: FrontArrays, scene: AcousticScene, arrival: FrontArrival, e: int, tick: TickInterval
) -> tuple[float, float]:
    """Return (time of arrival, rate) of a front at an element in water of uniform sound speed; exact."""
    candidate, c = m.candidates[arrival.candidate], m.water[0].speed
    s, path = a.to_row(candidate.signal), a.to_row(candidate.path)
    signal, time = m.signals[s], arrival.time
    for _ in range(ITERATIONS):
        x, y, z, vx, vy, vz = _element_motion(m, f, e, tick, time)
        ox, oy, oz = source_image(m, scene, s, path, Vector(x, y, z))
        dx, dy, dz = x - ox, y - oy, z - oz
        far = math.sqrt(dx * dx + dy * dy + dz * dz)
        time -= (far - c * (time - signal.emission)) / ((dx * vx + dy * vy + dz * vz) / max(far, 1e-9) - c)
    x, y, z, vx, vy, vz = _element_motion(m, f, e, tick, time)
    way = straight_path(m, scene, s, path, Vector(x, y, z))
    toward = way.rx * vx + way.ry * vy + way.rz * vz
    left = way.sx * signal.vx + way.sy * signal.vy + way.sz * signal.vz
    return time, (1.0 - toward / c) / (1.0 - left / c)


@device_function
def _curved_arrival(
    m: Medium, f: FrontArrays, arrival: FrontArrival, e: int, tick: TickInterval
) -> tuple[float, float]:
    """Return (time of arrival, rate) of a front at an element along a ray. Near the hydrophone, the front is a plane
    with the curvature of a sphere whose radius is the length of the path.

    The direction at the source differs from element to element by the mirrored lateral distance over the length.
    """
    candidate, way = m.candidates[arrival.candidate], arrival.path
    signal = m.signals[a.to_row(candidate.signal)]
    c, length, time = way.c_receiver, max(way.length, 1.0), arrival.time
    gx, gy, gz = way.rx, way.ry, way.rz
    sx, sy, sz = 0.0, 0.0, 0.0
    for k in range(ITERATIONS + 1):
        x, y, z, vx, vy, vz = _element_motion(m, f, e, tick, time)
        dx, dy, dz = x - arrival.point.x, y - arrival.point.y, z - arrival.point.z
        along = dx * way.rx + dy * way.ry + dz * way.rz
        sx, sy, sz = (dx - along * way.rx) / length, (dy - along * way.ry) / length, (dz - along * way.rz) / length
        gx, gy, gz = way.rx + sx, way.ry + sy, way.rz + sz
        if k < ITERATIONS:
            bow = 0.5 * (dx * sx + dy * sy + dz * sz)
            late = time - arrival.time - (along + bow) / c
            time -= late / (1.0 - (gx * vx + gy * vy + gz * vz) / c)
    mirrored = -1.0 if (a.to_row(candidate.path) // 2) % 2 else 1.0
    toward = gx * vx + gy * vy + gz * vz
    left = (way.sx + sx) * signal.vx + (way.sy + sy) * signal.vy + (way.sz + mirrored * sz) * signal.vz
    return time, (1.0 - toward / c) / (1.0 - left / way.c_source) * arrival.doppler


@device_function
def _path_number(f: FrontArrays, s: int, hydrophone: int, index: int, time: float) -> int:
    """Return the number of the path on which a front arrives: the index of the path, plus PATHS for each earlier arrival
    of the front with this index at the hydrophone.

    Within a tick, arrivals are not found in the order of their times. An arrival that was found too early is therefore
    renumbered here.
    """
    index = min(index, PATHS - 1)
    column = hydrophone * PATHS + index
    earlier = f.arrivals[s, column]
    f.arrivals[s, column] += 1
    if earlier == 0:
        return index
    front = f.front_signals[s]
    for k in range(f.counters[0].first_front, f.counters[0].fronts):
        other = f.fronts[k]
        same = other.signal == front.signal and other.number == front.number
        same = same and other.receiver % f.hydrophones.shape[0] == hydrophone
        if same and other.path % PATHS == index and other.arrival > time:
            other.path += PATHS
            earlier -= 1 if other.receiver == hydrophone else 0  # an arrival has a record for each group of elements
    return int(index + PATHS * earlier)


@device_function
def _record_front(m: Medium, f: FrontArrays, scene: AcousticScene, e: int, time: float, tick: TickInterval) -> None:
    """Write the records of a front that arrives at the reference point of a hydrophone, unless it is inaudible there."""
    candidate, w = m.candidates[e], m.water[0]
    s, j = a.to_row(candidate.signal), a.to_row(candidate.node)
    x, y, z, _, _, _ = position_and_velocity(m, tick, j, time)
    point, h = Vector(x, y, z), j - f.counters[0].rows
    there, way, gain, doppler = arriving_path(m, scene, e, point)
    if not there:
        return
    level = level_of(m, s, j, way, tick, time) + gain
    if level < m.signals[s].noise + w.floor or way.length > w.max_range:
        return
    if w.blocking != 0 and is_blocked(m, scene, s, e, point):
        return
    path = a.to_row(candidate.path)
    number = _path_number(f, s, h, path, time)
    front, arrival = f.front_signals[s], FrontArrival(e, point, time, way, doppler)
    by_image = w.mode == a.ISOVELOCITY and not may_meet_moving_surface(m, path)
    hydrophones = f.hydrophones.shape[0]
    room = f.elements.shape[0] // hydrophones
    for first in range(0, f.hydrophones[h].elements, FRONT_ELEMENTS):
        row = f.fronts[f.counters[0].fronts]
        f.counters[0].fronts += 1
        row.signal, row.path, row.number, row.last = front.signal, number, front.number, front.last
        row.receiver = h + first // FRONT_ELEMENTS * hydrophones
        row.emission, row.arrival, row.level, row.length = m.signals[s].emission, time, level, way.length
        row.phase = math.pi * way.surface + 0.5 * math.pi * way.caustics + way.turned
        row.surface, row.bottom = way.surface, way.bottom
        for k in range(FRONT_ELEMENTS):
            row.times[k] = row.rates[k] = math.nan
            if first + k < f.hydrophones[h].elements:
                element = h * room + first + k
                if by_image:
                    row.times[k], row.rates[k] = _image_arrival(m, f, scene, arrival, element, tick)
                else:
                    row.times[k], row.rates[k] = _curved_arrival(m, f, arrival, element, tick)


@device_function
def _receive_fronts(m: Medium, f: FrontArrays, scene: AcousticScene, tick: TickInterval) -> int:
    """Process all candidates of this tick: arrivals at hydrophones, and fronts that can no longer reach any."""
    bucket = tick.number & (a.WHEEL_TICKS - 1)
    records = f.elements.shape[0] // (f.hydrophones.shape[0] * FRONT_ELEMENTS)  # of one arrival, at most
    while m.wheel[bucket] >= 0:
        if f.counters[0].fronts + records > f.fronts.shape[0] or m.counters[0].left_chunks < 1:
            return GROW_FRONTS
        if m.counters[0].left_candidates < 1:
            return GROW_FRONTS
        e = take_candidate(m, tick.number)
        s = a.to_row(m.candidates[e].signal)
        m.counters[0].receptions = 0  # the medium of the hydrophones keeps no record of losses
        time = check_arrival(m, scene, e, tick, False)
        if time == time:
            _record_front(m, f, scene, e, time, tick)
            free_candidate(m, e)
        _retire_if_received(m, s)
    return a.OK


# ------------------------------------------------------------------ entry point


@device_function
def advance(
    sending: MediumTable, listening: MediumTable, additional: FrontTable, scene: AcousticScene, tick: TickInterval
) -> int:
    """Emit and receive the fronts of a tick. The arguments are the tables of the medium of the transducers, which has
    completed this tick, of the medium of the hydrophones, and of the additional arrays of the hydrophones.

    Returns OK, or FLUSH or GROW_FRONTS. In these cases, collect the records or enlarge the arrays, and call the function
    again.
    """
    sender, m = a.unpack_medium(sending), a.unpack_medium(listening)
    f = front_arrays.unpack_fronts(additional)
    c = f.counters[0]
    if c.tick != tick.number:
        if 2 * c.fronts > f.fronts.shape[0]:
            return a.FLUSH
        c.tick, c.first_front = tick.number, c.fronts
    code = _notice_emissions(sender, f)
    if code == a.OK:
        code = _begin_noise_segments(sender, f, tick)
    if code == a.OK:
        code = _emit_fronts(sender, m, f, scene, tick)
    if code == a.OK:
        code = _receive_fronts(m, f, scene, tick)
    return code
