"""Reception of a signal by a node: level, Doppler shift, detection, collisions, and reported values; compiled.

Functions identify signals, nodes and candidates by their rows (s, j, e) in the arrays of the medium.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_kernels.radiated_noise import relative_spectrum
from wavesim_server.acoustics import image_paths, ray_tubes
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.carrier_sense import is_too_weak, sense_arrival, sense_end
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.moving_paths import may_meet_moving_surface, meet_surface
from wavesim_server.acoustics.packet_losses import bit_energy, delay_spread, packet_loss
from wavesim_server.acoustics.propagation import (
    PropagationPath,
    is_blocked,
    reflected_path,
    refracted_path,
    source_image,
    straight_path,
    travel_time,
)
from wavesim_server.acoustics.transducer_motion import (
    TickInterval,
    attitude,
    clock_reading,
    cubic_motion,
    position_and_velocity,
)
from wavesim_server.acoustics.types import Record, Vector
from wavesim_server.dynamics.rotation import to_world
from wavesim_server.elementary import acos, atan2, exp, hypot, log, log10, power, sin_cos
from wavesim_server.rng import normal, uniform


class Arrival(NamedTuple):
    """The arrival of a signal at a node, with the rows of signal and node, the path, and the exact time."""

    signal: int
    node: int
    path: int
    time: float


@device_function
def beam_loss(m: Medium, beam: int, ax: float, ay: float, az: float, nx: float, ny: float, nz: float) -> float:
    """Return the loss in dB of a beam in a direction; the axis and the direction are in W."""
    degrees = math.degrees(acos(min(max(ax * nx + ay * ny + az * nz, -1.0), 1.0)))
    i = min(int(degrees), 179)
    return float(m.beams[beam, i] + (degrees - i) * (m.beams[beam, i + 1] - m.beams[beam, i]))


@device_function
def spreading_loss(r: float, spreading: float) -> float:
    """Return the spreading loss in dB over r metres.

    Where ray tubes apply, this is spherical spreading, because the loss of a tube depends on more than the distance."""
    return (spreading if spreading > 0.0 else 20.0) * log10(max(r, 1.0))


@device_function
def transmission_loss(r: float, spreading: float, alpha: float) -> float:
    """Return the transmission loss in dB over r metres; it is 0 within the first metre."""
    return spreading_loss(r, spreading) + alpha * max(r, 1.0)


@device_function
def detection_range(excess: float, spreading: float, alpha: float) -> float:
    """Return the distance at which the transmission loss equals ``excess`` dB (Newton's method in log r, from above)."""
    if excess <= 0.0:
        return 0.0
    k = (spreading if spreading > 0.0 else 20.0) / log(10.0)
    x = min(excess / k, log(excess / alpha) if alpha > 0.0 else math.inf, log(1e9))
    for _ in range(60):
        r = alpha * exp(x)
        step = (k * x + r - excess) / (k + r)
        x -= step
        if abs(step) < 1e-14 * max(x, 1.0):
            break
    return exp(max(x, 0.0))


@device_function
def fill_reception(m: Medium, record: Record, arrival: Arrival, outcome: int, point: Vector) -> None:
    """Fill the record of a reception with the properties of the signal and the position at which its wavefront met the
    node.
    """
    signal = m.signals[arrival.signal]
    record.id, record.source, record.receiver, record.query = signal.id, signal.source, arrival.node, signal.query
    record.query_source, record.outcome, record.kind = signal.query_source, outcome, signal.kind
    record.code, record.from_address, record.to_address = signal.code, signal.from_address, signal.to_address
    record.surface = record.bottom = 0
    if m.water[0].mode == a.ISOVELOCITY:
        record.surface, record.bottom = image_paths.bounce_counts(arrival.path)
    record.emission_ns, record.arrival_ns = round(signal.emission * 1e9), round(arrival.time * 1e9)
    record.reported_ns = record.arrival_ns
    record.frequency, record.duration, record.noise = signal.frequency, signal.duration, signal.noise
    record.doppler = record.level = record.range = record.measured = record.one_way = math.nan
    record.azimuth = record.elevation = record.heard_frequency = record.heard_level = math.nan
    dx, dy, dz = point.x - signal.x, point.y - signal.y, point.z - signal.z
    record.distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    record.position_W[0], record.position_W[1], record.position_W[2] = point.x, point.y, point.z


@device_function
def record_loss(m: Medium, arrival: Arrival, outcome: int, point: Vector) -> None:
    """Record a signal that did not lead to a reception."""
    record = m.receptions[m.counters[0].receptions]
    m.counters[0].receptions += 1
    fill_reception(m, record, arrival, outcome, point)


@device_function
def _is_already_detected(m: Medium, j: int, number: int) -> bool:
    """Return whether a node has detected a signal, or is receiving it, on an earlier path."""
    for k in range(a.DETECTED_HISTORY):
        if m.detected[j, k] == number:
            return True
    return _ongoing_reception(m, j, number) >= 0


@device_function
def _ongoing_reception(m: Medium, j: int, number: int) -> int:
    """Return the reception in progress of a signal at a node; -1 means that there is none."""
    k = m.nodes[j].first_hearing
    while k >= 0 and not (m.hearings[k].id == number and m.hearings[k].outcome == a.HEARD):
        k = m.hearings[k].next
    return int(k)


@device_function
def level_of(m: Medium, s: int, j: int, way: PropagationPath, tick: TickInterval, time: float) -> float:
    """Return the level of a signal at a node after spreading, absorption, bounces and beam patterns."""
    signal, node, w = m.signals[s], m.nodes[j], m.water[0]
    extra = way.bottom_loss
    if way.surface:
        rough = ray_tubes.surface_loss(way.sine_top, signal.frequency, way.c_receiver, w.roughness, w.bubbles)
        extra += way.surface * (w.surface_loss + rough)
    if signal.beam >= 0:
        extra += beam_loss(m, signal.beam, signal.axis_x, signal.axis_y, signal.axis_z, way.sx, way.sy, way.sz)
    if node.beam >= 0:
        qw, qx, qy, qz = attitude(m, tick, j, time)
        ax, ay, az = to_world(qw, qx, qy, qz, node.axis_x, node.axis_y, node.axis_z)
        extra += beam_loss(m, node.beam, ax, ay, az, -way.rx, -way.ry, -way.rz)
    spread = way.spreading_loss if way.spreading_loss >= 0.0 else spreading_loss(way.length, w.spreading)
    return float(signal.source_level - spread - signal.absorption * max(way.length, 1.0) - extra)


@device_function
def _radiated_noise_power(m: Medium, s: int, point: Vector, time: float, tick: TickInterval) -> float:
    """Return the mean square of the broadband noise of all bodies in the band of a signal at a point, in uPa^2.

    The noise arrives on a straight path without a delay; echoes and tones are left out.
    """
    signal, w, total = m.signals[s], m.water[0], 0.0
    in_band = relative_spectrum(signal.frequency) + 10.0 * log10(max(signal.band, 1.0))
    for k in range(m.noise_sources.shape[0]):
        source = m.noise_sources[k]
        if source.active == 0:
            continue
        p, q = m.noise_places[(tick.number - 1) & 1, k], m.noise_places[tick.number & 1, k]
        x, y, z, vx, vy, vz = cubic_motion(p, q, time - tick.start, w.step)
        dx, dy, dz = x - point.x, y - point.y, z - point.z
        level = source.level + source.slope * math.sqrt(vx * vx + vy * vy + vz * vz) + in_band
        level -= transmission_loss(math.sqrt(dx * dx + dy * dy + dz * dz), w.spreading, signal.absorption)
        total += power(10.0, 0.1 * level)
    return total


@device_function
def _noise_level(m: Medium, s: int, j: int, speed: float, radiated: float) -> float:
    """Return the noise in the band of a signal at a node that moves at a given speed. It is the sum of the ambient
    noise, the self-noise of the node's body, and the radiated noise, whose mean square is given in uPa^2.
    """
    signal, node = m.signals[s], m.nodes[j]
    noise = signal.noise
    if radiated > 0.0:
        noise = 10.0 * log10(power(10.0, 0.1 * noise) + radiated)
    if node.self_noise > 0.0:
        own = node.self_noise + node.self_noise_slope * speed
        own += 10.0 * log10(max(signal.band, 1.0))
        noise = 10.0 * log10(power(10.0, 0.1 * noise) + power(10.0, 0.1 * own))
    return float(noise)


@device_function
def _detection_outcome(m: Medium, arrival: Arrival, level: float, noise: float) -> int:
    """Return the outcome of a reception at its start, before other signals can interfere."""
    node, signal, time = m.nodes[arrival.node], m.signals[arrival.signal], arrival.time
    if node.sending_from <= time < node.sending_until:
        return a.TRANSMITTING
    if node.deaf_in_recharge != 0 and time < node.ready:
        return a.RECHARGING
    if is_too_weak(m, arrival.node, signal.kind != a.PULSE, level, noise):
        return a.BELOW_THRESHOLD
    if signal.kind != a.PULSE and signal.modulation != node.modulation:
        return a.FOREIGN
    if m.water[0].echoes != 0 and _is_already_detected(m, arrival.node, signal.id):
        return a.ECHO
    return a.HEARD


@device_function
def _no_path() -> PropagationPath:
    """Return a placeholder for a path that does not exist."""
    n = math.nan
    return PropagationPath(n, n, n, n, n, n, n, n, n, 0, 0, 0, n, n, n, n)


@always_inline
def arriving_path(m: Medium, scene: AcousticScene, e: int, point: Vector) -> tuple[bool, PropagationPath, float, float]:
    """Return (whether a candidate's path leads to a point, the path, gain of the moving surface in dB, factor of the
    frequency due to the moving surface). The candidate may now follow a path with another index.
    """
    candidate, w = m.candidates[e], m.water[0]
    s = a.to_row(candidate.signal)
    if w.mode == a.ISOVELOCITY:
        path = straight_path(m, scene, s, a.to_row(candidate.path), point)
        travel = path.length / w.speed
        if travel != travel:
            return False, path, 0.0, 1.0
    else:
        travel = travel_time(m, scene, s, e, point, True)
        if travel != travel:
            return False, _no_path(), 0.0, 1.0
        path = reflected_path(m, s, point) if candidate.bed else refracted_path(m, s, a.to_row(candidate.path), point)
    if may_meet_moving_surface(m, a.to_row(candidate.path)):
        path, gain, doppler = meet_surface(m, scene, s, e, point, path, travel)
        return True, path, gain, doppler
    return True, path, 0.0, 1.0


@device_function
def begin_arrival(m: Medium, scene: AcousticScene, e: int, time: float, tick: TickInterval) -> int:
    """Begin the arrival of a wavefront at a transducer. Returns the reception that the arrival starts; -1 means none."""
    candidate, w = m.candidates[e], m.water[0]
    s, j, path = a.to_row(candidate.signal), a.to_row(candidate.node), a.to_row(candidate.path)
    signal, node = m.signals[s], m.nodes[j]
    x, y, z, vx, vy, vz = position_and_velocity(m, tick, j, time)
    point = Vector(x, y, z)
    there, propagation_path, gain, doppler = arriving_path(m, scene, e, point)
    if not there:
        if w.mode != a.ISOVELOCITY and candidate.first:
            record_loss(m, Arrival(s, j, path, time), a.SHADOW, point)
        return -1
    path = a.to_row(candidate.path)  # it may have become another
    arrival = Arrival(s, j, path, time)
    level = level_of(m, s, j, propagation_path, tick, time) + gain
    if node.fluctuation > 0.0:
        level += node.fluctuation * normal(np.uint64(node.key ^ (signal.key * 3)), signal.draw * 64 + path, 5)
    toward = propagation_path.rx * vx + propagation_path.ry * vy + propagation_path.rz * vz
    left = propagation_path.sx * signal.vx + propagation_path.sy * signal.vy + propagation_path.sz * signal.vz
    shift = signal.frequency * (
        (1.0 - toward / propagation_path.c_receiver) / (1.0 - left / propagation_path.c_source) * doppler - 1.0
    )
    radiated = _radiated_noise_power(m, s, point, time, tick) if m.noise_sources.shape[0] > 0 else 0.0
    noise = _noise_level(m, s, j, math.sqrt(vx * vx + vy * vy + vz * vz), radiated)
    frequency = signal.frequency + shift

    outcome = a.HEARD
    if level < signal.noise + w.floor or propagation_path.length > w.max_range:
        outcome = a.FADED
    elif frequency < node.listen_low or frequency > node.listen_high:
        outcome = a.OUT_OF_BAND
    if outcome == a.HEARD and w.blocking != 0 and is_blocked(m, scene, s, e, point):
        outcome = a.BLOCKED
    if outcome != a.HEARD and not candidate.first:
        return -1  # an inaudible echo leaves no trace
    begun = outcome == a.HEARD
    slot = -1
    if begun:
        outcome = _detection_outcome(m, arrival, level, noise)
        slot = m.counters[0].free_hearing
        m.counters[0].free_hearing = m.hearings[slot].next
        m.counters[0].left_hearings -= 1
        record = m.ongoing_receptions[slot]
    else:
        record = m.receptions[m.counters[0].receptions]
        m.counters[0].receptions += 1
    fill_reception(m, record, arrival, outcome, point)
    record.surface, record.bottom = propagation_path.surface, propagation_path.bottom
    record.level, record.doppler, record.noise, record.range = level, shift, noise, propagation_path.length
    if begun:
        _begin_reception(m, arrival, slot, propagation_path, outcome)
        sense_arrival(m, slot, j, m.signals[arrival.signal].kind != a.PULSE, noise)
        _resolve_collisions(m, j, slot)
        if m.hearings[slot].outcome == a.HEARD and node.head >= 0:
            _measure_bearing(m, scene, arrival, slot, tick, propagation_path)
        _link_reception(m, slot, j)
    return int(slot)


@device_function
def _begin_reception(m: Medium, arrival: Arrival, slot: int, propagation_path: PropagationPath, outcome: int) -> None:
    """Fill in the additional data of a reception in progress."""
    signal, hearing, w, time = m.signals[arrival.signal], m.hearings[slot], m.water[0], arrival.time
    if w.summing != 0:
        phase = 0.0
        if w.summing == a.COHERENT:
            # pressures as exp(+i w t): travel reduces the phase, a caustic increases it
            turns = (
                math.pi * propagation_path.surface + 0.5 * math.pi * propagation_path.caustics + propagation_path.turned
            )
            cycles = signal.frequency * (time - signal.emission)
            phase = turns - 2.0 * math.pi * (cycles - math.floor(cycles))
        _add_multipath(m, arrival.node, slot, outcome == a.ECHO, m.ongoing_receptions[slot].level, phase)
    if m.nodes[arrival.node].curve > 0:
        _add_power(m, arrival, slot, outcome == a.ECHO)
    record = m.ongoing_receptions[slot]
    hearing.id, hearing.code, hearing.outcome = signal.id, signal.code, outcome
    hearing.level, hearing.frequency = record.level, record.frequency + record.doppler
    hearing.end, hearing.half_band, hearing.bits = time + signal.duration, 0.5 * signal.band, signal.bits
    hearing.query_emission, hearing.turn_around = signal.query_emission, signal.turn_around
    hearing.clock, hearing.arrival = signal.clock, time
    hearing.draw = signal.draw * 64 + arrival.path
    hearing.key = m.nodes[arrival.node].key ^ (signal.key * 3)


@device_function
def _add_power(m: Medium, arrival: Arrival, slot: int, echo: bool) -> None:
    """Add the power of a path, and its moments over the delay, to the sums of its signal at this node."""
    size = power(10.0, 0.1 * m.ongoing_receptions[slot].level)
    if not echo:
        first = m.hearings[slot]
        first.sum_power, first.sum_delay, first.sum_square = size, 0.0, 0.0
        return
    k = _ongoing_reception(m, arrival.node, m.ongoing_receptions[slot].id)
    if k >= 0:
        first, delay = m.hearings[k], arrival.time - m.hearings[k].arrival
        first.sum_power += size
        first.sum_delay += size * delay
        first.sum_square += size * delay * delay


@device_function
def _is_corrupt(m: Medium, slot: int, j: int) -> bool:
    """Draw at random whether a signal is lost because some of its bits are wrong."""
    hearing, node = m.hearings[slot], m.nodes[j]
    if node.curve > 0 and m.ongoing_receptions[slot].kind != a.PULSE:
        return bool(uniform(hearing.key, hearing.draw, 1) < _curve_loss(m, slot, j))
    if node.bit_error > 0.0:
        return bool(uniform(hearing.key, hearing.draw, 1) > power(1.0 - node.bit_error, hearing.bits))
    return False


@device_function
def _curve_loss(m: Medium, slot: int, j: int) -> float:
    """Return the probability that a node loses a packet, from the curve of its modem."""
    record, hearing, node = m.ongoing_receptions[slot], m.hearings[slot], m.nodes[j]
    energy = bit_energy(hearing.sum_power, record.noise, 2.0 * hearing.half_band, node.bit_rate)
    spread = delay_spread(hearing.sum_power, hearing.sum_delay, hearing.sum_square)
    shift = abs(record.doppler)
    row = a.to_row(node.curve - 1)
    return packet_loss(m.curves, row, energy, spread * node.bit_rate, shift / node.bit_rate, hearing.bits)


@device_function
def _add_multipath(m: Medium, j: int, slot: int, echo: bool, level: float, phase: float) -> None:
    """Add the path of a new arrival to the sum of the paths of its signal at this node.

    A coherent sum adds the complex pressures; an incoherent sum adds the powers.
    """
    if echo:
        slot = _ongoing_reception(m, j, m.ongoing_receptions[slot].id)
        if slot < 0:
            return  # its reception has ended
    else:
        m.hearings[slot].sum_real = m.hearings[slot].sum_imaginary = 0.0
    coherent = m.water[0].summing == a.COHERENT
    size = power(10.0, (0.05 if coherent else 0.1) * level)
    sine, cosine = sin_cos(phase)
    m.hearings[slot].sum_real += size * cosine
    m.hearings[slot].sum_imaginary += size * sine


@device_function
def _resolve_collisions(m: Medium, j: int, slot: int) -> None:
    """Mark overlapping receptions as lost: a new reception, and each earlier one that overlaps it in time and band. The
    stronger of two receptions survives if it exceeds the other by at least the capture ratio.
    """
    new, record, capture = m.hearings[slot], m.ongoing_receptions[slot], m.nodes[j].capture
    frequency, doppler = record.frequency, record.doppler
    k = m.nodes[j].first_hearing
    while k >= 0:
        old = m.hearings[k]
        codes = old.code != new.code and old.code != 0 and new.code != 0
        gap = abs(old.frequency - frequency - doppler)
        near = gap < old.half_band + new.half_band or gap == 0.0
        if near and not codes and old.id != new.id:
            if new.outcome == a.HEARD and new.level < old.level + capture:
                new.outcome = a.COLLISION
            if old.outcome == a.HEARD and old.level < new.level + capture:
                old.outcome = a.COLLISION
        k = old.next


@device_function
def _measure_bearing(
    m: Medium,
    scene: AcousticScene,
    arrival: Arrival,
    slot: int,
    tick: TickInterval,
    propagation_path: PropagationPath,
) -> None:
    """Compute the direction of arrival from the arrival times at the hydrophones, with the sound speed that the head
    assumes.
    """
    s, j, time = arrival.signal, arrival.node, arrival.time
    row, c = m.nodes[j].head, propagation_path.c_receiver
    head, signal, hearing = m.heads[row], m.signals[s], m.hearings[slot]
    sx = sy = sz = ox = oy = oz = 0.0
    by_image = m.water[0].mode == a.ISOVELOCITY and not may_meet_moving_surface(m, arrival.path)
    if by_image:
        x, y, z, vx, vy, vz = position_and_velocity(m, tick, j, time)
        ox, oy, oz = source_image(m, scene, s, arrival.path, Vector(x, y, z))
    for k in range(head.phones):
        phone = m.phones[row, k]
        t = time
        for _ in range(4):
            x, y, z, vx, vy, vz = position_and_velocity(m, tick, j, t)
            qw, qx, qy, qz = attitude(m, tick, j, t)
            ax, ay, az = to_world(qw, qx, qy, qz, phone.x, phone.y, phone.z)
            if by_image:
                dx, dy, dz = x + ax - ox, y + ay - oy, z + az - oz
                far = math.sqrt(dx * dx + dy * dy + dz * dz)
                t -= (far - c * (t - signal.emission)) / ((dx * vx + dy * vy + dz * vz) / max(far, 1e-9) - c)
            else:  # the ray is straight across the head; its front has the curvature of the path's length
                along = ax * propagation_path.rx + ay * propagation_path.ry + az * propagation_path.rz
                bow = (ax * ax + ay * ay + az * az - along * along) / (2.0 * max(propagation_path.length, 1.0))
                t = time + (along + bow) / (
                    c - (propagation_path.rx * vx + propagation_path.ry * vy + propagation_path.rz * vz)
                )
        delay = t - time
        if head.timing_noise > 0.0:
            delay += head.timing_noise * normal(hearing.key, hearing.draw, 8 + k)
        if head.timing_resolution > 0.0:
            delay = round((time + delay) / head.timing_resolution) * head.timing_resolution - time
        sx, sy, sz = sx + phone.slowness_x * delay, sy + phone.slowness_y * delay, sz + phone.slowness_z * delay
    nx, ny, nz = -sx * head.sound_speed, -sy * head.sound_speed, -sz * head.sound_speed
    if head.rank == 2:
        side = math.sqrt(max(1.0 - nx * nx - ny * ny - nz * nz, 0.0))
        nx, ny, nz = nx + side * head.axis_x, ny + side * head.axis_y, nz + side * head.axis_z
    m.ongoing_receptions[slot].azimuth = atan2(ny, nx)
    m.ongoing_receptions[slot].elevation = atan2(nz, math.sqrt(nx * nx + ny * ny))


@device_function
def _link_reception(m: Medium, slot: int, j: int) -> None:
    """Add a reception at the front of its node's list."""
    hearing, following = m.hearings[slot], m.nodes[j].first_hearing
    hearing.node, hearing.next, hearing.previous = j, following, -1
    if following >= 0:
        m.hearings[following].previous = slot
    m.nodes[j].first_hearing = slot


@device_function
def _unlink_reception(m: Medium, slot: int, j: int) -> None:
    """Remove a reception from the list of its node. If the node has been removed, another node may have its row by now."""
    following, previous = m.hearings[slot].next, m.hearings[slot].previous
    if following >= 0:
        m.hearings[following].previous = previous
    if previous >= 0:
        m.hearings[previous].next = following
    elif m.nodes[j].first_hearing == slot:
        m.nodes[j].first_hearing = following


@device_function
def _report_arrival(m: Medium, slot: int, j: int) -> float:
    """Compute the values that a node's instrument reports for a detected reception; return the reported time of
    arrival.
    """
    record, hearing, node = m.ongoing_receptions[slot], m.hearings[slot], m.nodes[j]
    key, draw = hearing.key, hearing.draw
    reported = clock_reading(m, j, hearing.arrival)
    if node.timing_noise > 0.0:
        reported += node.timing_noise * normal(key, draw, 2)
    if node.outlier > 0.0 and uniform(key, draw, 2) < node.outlier:
        reported += node.outlier_time * uniform(key, draw, 3)
    if node.timing_resolution > 0.0:
        reported = round(reported / node.timing_resolution) * node.timing_resolution
    record.heard_frequency = record.frequency + record.doppler
    if node.doppler_noise > 0.0:
        record.heard_frequency += node.doppler_noise * normal(key, draw, 3)
    record.heard_level = record.level
    if node.level_noise > 0.0:
        record.heard_level += node.level_noise * normal(key, draw, 4)
    record.one_way = node.sound_speed * (reported - hearing.clock)
    if record.query_source == j and record.query > 0:
        asked = clock_reading(m, j, hearing.query_emission)
        record.measured = 0.5 * node.sound_speed * (reported - asked - hearing.turn_around)
    return reported


@device_function
def finish_reception(m: Medium, slot: int, j: int) -> int:
    """Finish a reception and record the values reported for it. Returns the row of its record."""
    record, hearing, node = m.ongoing_receptions[slot], m.hearings[slot], m.nodes[j]
    _unlink_reception(m, slot, j)
    sense_end(m, slot, j)
    record.outcome = hearing.outcome
    if node.active == 0 or node.since > hearing.arrival:
        record.outcome = a.RECEIVER_LEFT
    if m.water[0].summing != 0 and record.outcome != a.ECHO:
        size = max(hypot(hearing.sum_real, hearing.sum_imaginary), 1e-30)
        record.level = (20.0 if m.water[0].summing == a.COHERENT else 10.0) * log10(size)
    key, draw = hearing.key, hearing.draw
    if record.outcome == a.HEARD:
        if node.drop_out > 0.0 and uniform(key, draw, 0) < node.drop_out:
            record.outcome = a.DROPPED
        elif _is_corrupt(m, slot, j):
            record.outcome = a.CORRUPT
    if record.outcome == a.HEARD:
        m.counters[0].heard += 1
        if m.water[0].echoes != 0:
            m.detected[j, node.next_detected] = record.id
            node.next_detected = (node.next_detected + 1) % a.DETECTED_HISTORY
        reported = _report_arrival(m, slot, j)
    else:
        reported = clock_reading(m, j, hearing.arrival)
    record.reported_ns = round(reported * 1e9)
    row = m.counters[0].receptions
    m.counters[0].receptions += 1
    m.receptions[row] = record
    hearing.next = m.counters[0].free_hearing
    m.counters[0].free_hearing = slot
    m.counters[0].left_hearings += 1
    return int(row)
