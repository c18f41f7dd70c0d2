"""Compiled search for candidates: for a new signal at all nodes, and for all signals in transit at a node that wakes.

Functions identify signals, nodes, candidates and emissions by their rows in the arrays of the medium.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function
from wavesim_server.acoustics import eigenrays, known_rays, ray_tubes, rays
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.carrier_sense import sense_transmission
from wavesim_server.acoustics.event_queues import FollowedPath, new_candidate, schedule_candidate
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.medium_arrays import PULSE, SOUND, UNKNOWN_MODULATION, Medium
from wavesim_server.acoustics.propagation import (
    eigenray_search,
    find_bed_eigenrays,
    found_way,
    keep_direction,
    launch_angles,
    source_image,
)
from wavesim_server.acoustics.reception import Arrival, detection_range, level_of, record_loss
from wavesim_server.acoustics.transducer_motion import TickInterval, clock_reading, position_and_velocity
from wavesim_server.acoustics.types import Record, Vector
from wavesim_server.dynamics.rotation import to_world
from wavesim_server.elementary import hypot


@device_function
def _new_signal(m: Medium, e: int, j: int, time: float, tick: TickInterval) -> int:
    """Store the signal of an emission in a free record, and return its row."""
    m.counters[0].signals_sent += 1
    m.counters[0].live += 1
    k = m.counters[0].free_signal
    signal, emission, node = m.signals[k], m.emissions[e], m.nodes[j]
    m.counters[0].free_signal = signal.next
    signal.frequency, signal.source_level, signal.duration = (
        emission.frequency,
        emission.source_level,
        emission.duration,
    )
    signal.band, signal.absorption, signal.noise = (
        emission.band,
        emission.absorption,
        emission.noise,
    )
    signal.bits, signal.turn_around = emission.bits, emission.turn_around
    signal.query_emission, signal.query, signal.query_source = (
        emission.query_emission,
        emission.query,
        emission.query_source,
    )
    signal.kind, signal.code, signal.to_address = emission.kind, emission.code, emission.to_address
    signal.from_address = node.address if emission.kind != PULSE and emission.kind != SOUND else 0
    signal.modulation = node.modulation if emission.kind != SOUND else UNKNOWN_MODULATION
    signal.emission, signal.clock = time, clock_reading(m, j, time)
    signal.x, signal.y, signal.z, signal.vx, signal.vy, signal.vz = position_and_velocity(m, tick, j, time)
    signal.beam = node.beam  # kept with the signal: its sender may leave
    if node.beam >= 0:
        q = m.places[tick.number & 1, j]
        signal.axis_x, signal.axis_y, signal.axis_z = to_world(
            q.qw, q.qx, q.qy, q.qz, node.axis_x, node.axis_y, node.axis_z
        )
    signal.reach = reach_of(m, signal)
    signal.id, signal.source, signal.pending, signal.key = m.counters[0].last_id, j, 0, node.key
    # draws count a sender's own signals, so that other senders do not change them
    signal.draw = node.emitted
    node.emitted += 1
    return int(k)


@device_function
def reach_of(m: Medium, signal: Record) -> float:
    """Return the maximum distance in m at which a signal can be received."""
    w = m.water[0]
    focus = ray_tubes.MAX_FOCUSING_DB if w.spreading == 0.0 and w.mode != a.ISOVELOCITY else 0.0
    reach = detection_range(signal.source_level - signal.noise - w.floor + focus, w.spreading, signal.absorption)
    return float(min(reach, w.max_range))


@device_function
def _mark_transmitting(m: Medium, j: int, time: float, duration: float) -> None:
    """Mark a node as transmitting. Because nodes are half duplex, the node loses its receptions in progress."""
    node = m.nodes[j]
    node.sending_from, node.sending_until = time, time + duration
    node.ready = node.sending_until + node.recharge
    k = node.first_hearing
    while k >= 0:
        if m.hearings[k].outcome == a.HEARD:
            m.hearings[k].outcome = a.TRANSMITTING
        k = m.hearings[k].next


@device_function
def spread_to_nodes(
    m: Medium, scene: AcousticScene, e: int, node: int, time: float, tick: TickInterval, capacity: int
) -> int:
    """Add a live signal and its candidates; return the number of nodes that are out of range."""
    s, w = _new_signal(m, e, node, time, tick), m.water[0]
    signal = m.signals[s]
    _mark_transmitting(m, node, time, signal.duration)
    sense_transmission(m, node)
    x, y, z = signal.x, signal.y, signal.z
    c, mode = w.fastest, w.mode
    max_speed = c + a.MAX_SPEED
    slack = a.MAX_SPEED * w.step  # positions are those at the end of the tick
    angles = launch_angles(m, s)
    is_within = 0
    after = m.places[tick.number & 1]
    limit = signal.reach * max_speed / c + slack
    limit *= limit
    for j in range(capacity):
        place = after[j]
        dx, dy, dz = place.x - x, place.y - y, place.z - z
        square = dx * dx + dy * dy + dz * dz
        if (square > limit and w.faded == 0) or j == node or m.nodes[j].active == 0:
            continue
        if m.nodes[j].asleep != 0:
            is_within += 1 if square <= limit else 0
            continue
        distance = math.sqrt(square)
        near = max(distance - slack, 0.0)
        if square > limit:
            record_loss(m, Arrival(s, j, 0, time + signal.reach / c), a.FADED, Vector(place.x, place.y, place.z))
            continue
        is_within += 1
        if mode == a.ISOVELOCITY:
            _add_candidate(m, s, j, FollowedPath(0, True, 0.0, 0.0), time + near / max_speed, tick)
            for path in range(2, 2 * w.order + 2):
                ox, oy, oz = source_image(m, scene, s, path, Vector(place.x, place.y, place.z))
                if ox != ox:
                    continue  # this path does not exist
                ix, iy, up = place.x - ox, place.y - oy, place.z - oz
                # a moving surface shortens the path at each of its bounces
                way = max(math.sqrt(ix * ix + iy * iy + up * up) - slack - w.crest * path, 0.0)
                if way * c / max_speed <= signal.reach:
                    _add_candidate(m, s, j, FollowedPath(path, False, 0.0, 0.0), time + way / max_speed, tick)
        elif mode == a.GRADIENT:
            if rays.gradient_arc(w.speed, w.gradient, w.bottom, z, place.z, math.sqrt(dx * dx + dy * dy), m.ray[0]):
                _add_candidate(m, s, j, FollowedPath(0, True, 0.0, 0.0), time + near / max_speed, tick)
            else:
                record_loss(m, Arrival(s, j, 0, time + distance / c), a.SHADOW, Vector(place.x, place.y, place.z))
        else:
            _add_eigenray_candidates(m, scene, s, j, time, tick, angles)
    schedule_candidate(
        m, new_candidate(m, s, a.RETIRE_NODE, FollowedPath(0, False, 0.0, 0.0)), time + signal.reach / c, tick.number
    )
    return int(m.counters[0].nodes - 1 - is_within)


@device_function
def _add_eigenray_candidates(
    m: Medium, scene: AcousticScene, s: int, j: int, time: float, tick: TickInterval, angles: int
) -> None:
    """Find the eigenrays to a node's current position, and add candidates for the eigenrays on which the signal has not
    yet passed the node.

    With echoes, candidates are added for the strongest eigenrays. Without echoes, only the eigenray that arrives first
    is used.
    """
    x, y, z, _, _, _ = position_and_velocity(m, tick, j, time)
    signal, w = m.signals[s], m.water[0]
    across = hypot(x - signal.x, y - signal.y)
    link = rays.link_in_water(a.sound_speed_profile(m), signal.z, z, across)
    count = dropped = 0
    if w.mode == a.VOLUME:
        count, dropped = known_rays.find_eigenrays(m, scene, s, j, Vector(x, y, z))
    elif m.pairs.shape[0] > 0:
        count, dropped = known_rays.find_layered_eigenrays(m, s, j, Vector(x, y, z), link, angles)
    else:
        count, dropped = eigenrays.find_eigenrays(eigenray_search(m, link), angles)
    if w.uneven != 0:
        count, more = find_bed_eigenrays(m, scene, s, Vector(x, y, z), count)
        dropped += more
    if count == 0:
        m.counters[0].paths_dropped += dropped
        far = hypot(link.distance, link.receiver - link.source)
        if time == signal.emission:
            record_loss(m, Arrival(s, j, 0, time + far / w.fastest), a.SHADOW, Vector(x, y, z))
        return
    first = 0
    for k in range(1, count):
        if m.eigenrays[k].time < m.eigenrays[first].time:
            first = k
    every = w.order > 0 or w.summing != 0
    if every:
        m.counters[0].paths_dropped += dropped + max(count - w.paths, 0)
        if count > w.paths:
            _weigh(m, scene, s, j, time, tick, count, first)
    slower = 1.0 - 2.0 * a.MAX_SPEED / w.fastest  # the node may approach at full speed
    for k in range(count):
        found = m.eigenrays[k]
        if time > signal.emission and signal.emission + found.time <= time:
            continue
        if k == first or (every and _among_strongest(m, k, count)):
            path = 2 * found.reversals + found.down
            earliest = signal.emission + found.time * slower - 2.0 * w.step - w.crest * path / w.fastest
            e = new_candidate(m, s, j, FollowedPath(path, k == first, found.angle, found.time))
            m.candidates[e].bed = found.bed
            keep_direction(m.kept_rays[e], found)
            _schedule_first_check(m, e, earliest, tick)


@device_function
def _weigh(
    m: Medium, scene: AcousticScene, s: int, j: int, time: float, tick: TickInterval, count: int, first: int
) -> None:
    """Set the level of each eigenray for the current position of the node. The first arrival has priority, because it
    determines the range.
    """
    x, y, z, _, _, _ = position_and_velocity(m, tick, j, time)
    for k in range(count):
        there, way = found_way(m, scene, s, k, Vector(x, y, z))
        m.eigenrays[k].level = level_of(m, s, j, way, tick, time) if there else -math.inf
    m.eigenrays[first].level = math.inf


@device_function
def _among_strongest(m: Medium, k: int, count: int) -> bool:
    """Return whether an eigenray is among those that are to be followed."""
    if count <= m.water[0].paths:
        return True
    mine, stronger = m.eigenrays[k].level, 0
    for i in range(count):
        other = m.eigenrays[i].level
        stronger += 1 if other > mine or (other == mine and i < k) else 0
    return stronger < m.water[0].paths


@device_function
def wake_node(m: Medium, scene: AcousticScene, j: int, time: float, tick: TickInterval) -> None:
    """Let a node receive from now on. It also receives signals in transit that were sent while it was asleep, unless
    they have already passed it.
    """
    node, w = m.nodes[j], m.water[0]
    if node.active == 0 or node.waking == 0:
        return
    node.asleep = node.waking = 0
    x, y, z, _, _, _ = position_and_velocity(m, tick, j, time)
    for s in range(m.signals.shape[0]):
        signal = m.signals[s]
        if signal.id <= node.asleep_after or signal.source == j:
            continue
        across = hypot(x - signal.x, y - signal.y)
        if hypot(across, z - signal.z) > signal.reach * (w.fastest + a.MAX_SPEED) / w.fastest:
            continue
        add_passing_candidates(m, scene, s, j, time, tick, launch_angles(m, s))


@device_function
def add_passing_candidates(
    m: Medium, scene: AcousticScene, s: int, j: int, time: float, tick: TickInterval, angles: int
) -> None:
    """Add candidates for all paths on which a signal has not yet passed a node at a time within the tick. ``angles`` is
    the result of :func:`launch_angles`; a medium that remembers rays accepts -1, which means that the fan has not been launched.
    """
    signal, w = m.signals[s], m.water[0]
    if w.mode == a.ISOVELOCITY:
        _add_straight_candidates(m, scene, s, j, time, tick)
    elif w.mode == a.GRADIENT:
        x, y, z, _, _, _ = position_and_velocity(m, tick, j, time)
        across = hypot(x - signal.x, y - signal.y)
        there = rays.gradient_arc(w.speed, w.gradient, w.bottom, signal.z, z, across, m.ray[0])
        if there and signal.emission + m.ray[0].time > time:
            _add_candidate(m, s, j, FollowedPath(0, True, 0.0, 0.0), time, tick)
    else:
        _add_eigenray_candidates(m, scene, s, j, time, tick, angles)


@device_function
def _add_straight_candidates(m: Medium, scene: AcousticScene, s: int, j: int, time: float, tick: TickInterval) -> None:
    """Find the straight paths to a node's current position, and add candidates for the paths on which the signal has
    not yet passed the node.
    """
    x, y, z, _, _, _ = position_and_velocity(m, tick, j, time)
    c, passed = m.water[0].speed, time - m.signals[s].emission
    for path in range(2 * m.water[0].order + 2):
        if path == 1:
            continue  # paths without bounces have the index 0 only
        ox, oy, oz = source_image(m, scene, s, path, Vector(x, y, z))
        dx, dy, dz = x - ox, y - oy, z - oz
        gap = math.sqrt(dx * dx + dy * dy + dz * dz) - c * passed
        # false for a path that does not exist (NaN); a signal has not passed the place where it is being sent
        if gap > 0.0 or (gap == 0.0 and passed == 0.0):
            gap = max(gap - m.water[0].crest * path, 0.0)
            _add_candidate(m, s, j, FollowedPath(path, path == 0, 0.0, 0.0), time + gap / (c + a.MAX_SPEED), tick)


@device_function
def _add_candidate(m: Medium, s: int, j: int, followed: FollowedPath, earliest: float, tick: TickInterval) -> None:
    """Add a candidate for a path of a signal to a node, and schedule its first check."""
    _schedule_first_check(m, new_candidate(m, s, j, followed), earliest, tick)


@device_function
def _schedule_first_check(m: Medium, e: int, earliest: float, tick: TickInterval) -> None:
    """Schedule the first check of a candidate. A candidate that may arrive in this tick is checked before the next
    event.
    """
    schedule_candidate(m, e, earliest, tick.number if earliest > tick.end else tick.number - 1)
