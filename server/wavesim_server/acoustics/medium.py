"""The acoustic medium, compiled. It processes events in order, each at its exact time within the tick.

A signal is a wavefront that leaves its point of emission. At emission, each node within range is assigned a *candidate*
for each path: the earliest tick in which the wavefront can reach the node, given a bound on the node's speed. Each tick
checks only its own candidates. If the wavefront has passed a node by the end of the tick, the time of arrival is
computed. For straight motion, it has the closed form T = (q.v + sqrt((q.v)^2 + (c^2 - v.v) q.q)) / (c^2 - v.v). It is
then corrected for the cubic that describes the actual motion of the node. The medium then processes arrivals, ends of
receptions and replies in the order of their exact times. This works even when a reply is sent and arrives within the
same tick.

Times are float64 seconds since the start; rounding errors stay below 2e-12 s in the first three hours.
Functions identify signals, nodes, candidates and emissions by their rows in the arrays of the medium.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function, kernel
from wavesim_server.acoustics import image_paths
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.carrier_sense import end_transmission
from wavesim_server.acoustics.event_queues import (
    begin_tick,
    free_candidate,
    next_event,
    push_event,
    remove_first_event,
    schedule_candidate,
    take_candidate,
)
from wavesim_server.acoustics.medium_arrays import PULSE, RANGE_REPLY, RANGE_REQUEST, SOUND, Medium, MediumTable
from wavesim_server.acoustics.moving_paths import may_meet_moving_surface, moving_travel_time
from wavesim_server.acoustics.propagation import (
    source_image,
    travel_time,
)
from wavesim_server.acoustics.reception import (
    Arrival,
    begin_arrival,
    finish_reception,
    record_loss,
    transmission_loss,
)
from wavesim_server.acoustics.spreading import spread_to_nodes, wake_node
from wavesim_server.acoustics.transducer_motion import TickInterval, clock_reading, position_and_velocity
from wavesim_server.acoustics.types import Record, Records, Vector
from wavesim_server.array_tables import prefetch

AcousticScene = image_paths.AcousticScene


@device_function
def crossing_time(c: float, qx: float, qy: float, qz: float, vx: float, vy: float, vz: float) -> float:
    """Return the time from emission to arrival at a node that has the constant velocity v.

    q is the position of the node relative to the source at emission.
    """
    qv = qx * vx + qy * vy + qz * vz
    qq = qx * qx + qy * qy + qz * qz
    cc = c * c - (vx * vx + vy * vy + vz * vz)
    return (qv + math.sqrt(qv * qv + cc * qq)) / cc


# ------------------------------------------------------------------ planned emissions


@device_function
def _new_emission(m: Medium, node: int) -> int:
    """Take a free record for an emission that is not a reply and has no payload.

    Returns the row of the record, or -1 if there is no room. In that case, enlarge the arrays and call the function
    again.
    """
    if m.counters[0].left_events < 1 or m.counters[0].left_emissions < 1:
        return -1
    k = m.counters[0].free_emission
    emission = m.emissions[k]
    m.counters[0].free_emission = emission.next
    m.counters[0].left_emissions -= 1
    emission.bits = emission.turn_around = emission.query_emission = 0.0
    emission.query, emission.query_source = 0, -1
    emission.to_address = emission.request = emission.payload_bytes = emission.handle = 0
    emission.entry = m.nodes[node].entry
    return int(k)


@device_function
def _free_emission(m: Medium, emission: int) -> None:
    m.emissions[emission].next = m.counters[0].free_emission
    m.counters[0].free_emission = emission
    m.counters[0].left_emissions += 1


@device_function
def _plan_next_ping(m: Medium, j: int, time: float) -> bool:
    """Schedule the next ping of a pinger after a whole number of periods on its own clock."""
    node = m.nodes[j]
    if node.ping_period <= 0.0:
        return True
    number = max(node.pings, math.ceil((clock_reading(m, j, time) - node.ping_offset) / node.ping_period - 1e-9))
    node.pings = number + 1.0
    own = node.ping_offset + number * node.ping_period
    when = max((own - node.clock_offset) / (1.0 + node.clock_drift), time)
    k = _new_emission(m, j)
    if k < 0:
        return False
    ping = m.emissions[k]
    ping.kind, ping.code, ping.request = PULSE, node.code, a.PINGER_REQUEST
    ping.frequency, ping.source_level = node.ping_frequency, node.source_level
    ping.duration, ping.band, ping.handle = node.ping_duration, node.ping_band, node.ping_handle
    ping.absorption, ping.noise = node.ping_absorption, node.ping_noise
    push_event(m, when, a.EMIT, j, k, j)
    return True


@device_function
def _answers_pulse(node: Record, heard: Record) -> bool:
    """Return whether a node answers a pulse that it has received."""
    frequency = heard.frequency + heard.doppler
    if node.query <= 0.0 or heard.query > 0 or abs(frequency - node.query) > node.tolerance:
        return False
    return not (node.query_code > 0 and heard.code != node.query_code)


@device_function
def _plan_reply(m: Medium, row: int, j: int, end: float) -> None:
    """Schedule the reply of a node to a reception that has just ended, if the signal was a query to this node."""
    heard, node = m.receptions[row], m.nodes[j]
    if heard.outcome != a.HEARD:
        return
    pulse = heard.kind == PULSE
    if pulse:
        if not _answers_pulse(node, heard):
            return
    elif heard.kind != RANGE_REQUEST or heard.to_address != node.address or node.address == 0:
        return
    k = _new_emission(m, j)
    if k < 0:
        return
    reply = m.emissions[k]
    if pulse:
        reply.kind, reply.frequency, reply.duration, reply.band = (
            PULSE,
            node.reply,
            node.pulse,
            node.band,
        )
        reply.absorption, reply.noise = node.reply_absorption, node.reply_noise
    else:
        reply.kind, reply.to_address = RANGE_REPLY, heard.from_address
        reply.frequency, reply.duration, reply.band = (
            node.modem_frequency,
            node.preamble,
            node.modem_band,
        )
        reply.absorption, reply.noise = node.modem_absorption, node.modem_noise
    reply.source_level, reply.code = node.source_level, node.code
    reply.turn_around = max(node.turn_around, heard.duration)
    reply.query_emission = heard.emission_ns * 1e-9
    reply.query, reply.query_source = heard.id, heard.source
    wait = max(node.turn_around / (1.0 + node.clock_drift), heard.duration)
    arrived = end - heard.duration
    push_event(m, arrived + wait, a.EMIT, j, k, j)


# ------------------------------------------------------------------ signals


@device_function
def _emit_signal(
    m: Medium, scene: AcousticScene, e: int, j: int, time: float, tick: TickInterval, capacity: int
) -> None:
    """Emit a signal from a transducer, unless it is recharging."""
    node, emission = m.nodes[j], m.emissions[e]
    by_itself = emission.request == a.PINGER_REQUEST
    if node.active == 0 or emission.entry != node.entry:
        _free_emission(m, e)
        return
    ready = time >= node.ready
    x, y, z, _, _, _ = position_and_velocity(m, tick, j, time)
    record = m.sent[m.counters[0].sent]
    m.counters[0].sent += 1
    m.counters[0].last_id += 1
    record.id, record.source = m.counters[0].last_id, j
    record.query, record.request = emission.query, max(emission.request, 0)
    record.outcome, record.kind, record.code = a.HEARD if ready else a.NOT_SENT, emission.kind, emission.code
    record.from_address = node.address if emission.kind != PULSE and emission.kind != SOUND else 0
    record.to_address = emission.to_address
    record.payload_bytes, record.handle = emission.payload_bytes, emission.handle
    record.emission_ns, record.clock_ns = round(time * 1e9), round(clock_reading(m, j, time) * 1e9)
    record.frequency, record.source_level = emission.frequency, emission.source_level
    record.duration = emission.duration
    record.origin_W[0], record.origin_W[1], record.origin_W[2] = x, y, z
    record.out_of_reach = spread_to_nodes(m, scene, e, j, time, tick, capacity) if ready else 0
    _free_emission(m, e)
    if by_itself:
        _plan_next_ping(m, j, time)


@device_function
def retire_signal(m: Medium, e: int, tick: TickInterval) -> None:
    """Retire a signal when it can no longer reach any node."""
    s = a.to_row(m.candidates[e].signal)
    signal = m.signals[s]
    due = signal.emission + signal.reach / m.water[0].fastest
    if tick.end < due or signal.pending > 1:
        schedule_candidate(
            m, e, max(due, tick.end), tick.number
        )  # not yet, or a candidate with an early bound is still on its way
        return
    free_candidate(m, e)
    signal.id = 0
    signal.next = m.counters[0].free_signal
    m.counters[0].free_signal = s
    m.counters[0].live -= 1


# ------------------------------------------------------------------ candidates


@device_function
def _check_straight_arrival(m: Medium, scene: AcousticScene, e: int, tick: TickInterval) -> tuple[bool, float]:
    """Return (whether a candidate arrives in this tick, time of arrival), in water of uniform sound speed.

    If the candidate does not arrive, the function schedules its next check.
    """
    candidate, w = m.candidates[e], m.water[0]
    s, j, path = a.to_row(candidate.signal), a.to_row(candidate.node), a.to_row(candidate.path)
    signal = m.signals[s]
    now, before = m.places[tick.number & 1, j], m.places[(tick.number - 1) & 1, j]
    c, h, emission = w.speed, w.step, signal.emission
    ox, oy, oz = source_image(m, scene, s, path, Vector(now.x, now.y, now.z))
    if ox != ox:
        return True, math.nan
    dx, dy, dz = now.x - ox, now.y - oy, now.z - oz
    gap = math.sqrt(dx * dx + dy * dy + dz * dz) - c * (tick.end - emission)
    if gap > 0.0:
        schedule_candidate(m, e, tick.end + gap / (c + a.MAX_SPEED), tick.number)
        return False, 0.0
    vx, vy, vz = (now.x - before.x) / h, (now.y - before.y) / h, (now.z - before.z) / h
    back = emission - tick.end
    t = emission + crossing_time(c, dx + vx * back, dy + vy * back, dz + vz * back, vx, vy, vz)
    for _ in range(2):
        x, y, z, vx, vy, vz = position_and_velocity(m, tick, j, t)
        ox, oy, oz = source_image(m, scene, s, path, Vector(x, y, z))
        dx, dy, dz = x - ox, y - oy, z - oz
        far = math.sqrt(dx * dx + dy * dy + dz * dz)
        closing = (dx * vx + dy * vy + dz * vz) / max(far, 1e-9) - c
        t -= (far - c * (t - emission)) / closing
    return True, t


@device_function
def check_arrival(m: Medium, scene: AcousticScene, e: int, tick: TickInterval, has_event: bool) -> float:
    """Return the time at which a candidate arrives in this tick; with ``has_event``, also add the event of its arrival.
    If it does not arrive, the function schedules its next check, or frees it because it can never arrive, and returns NaN.
    """
    candidate, w, end = m.candidates[e], m.water[0], tick.end
    s, j, path = a.to_row(candidate.signal), a.to_row(candidate.node), a.to_row(candidate.path)
    signal, place = m.signals[s], m.places[tick.number & 1, j]
    emission = signal.emission
    if m.nodes[j].active == 0 or m.nodes[j].since > emission:
        if candidate.first and m.nodes[j].asleep == 0:
            record_loss(m, Arrival(s, j, path, end), a.RECEIVER_LEFT, Vector(place.x, place.y, place.z))
        free_candidate(m, e)
        return math.nan
    moving = may_meet_moving_surface(m, path)
    if w.mode == a.ISOVELOCITY and not moving:
        arrives, t = _check_straight_arrival(m, scene, e, tick)
        if not arrives:
            return math.nan
    else:
        t = end
        for k in range(4):  # at the end of the tick, then at the node position of the improved time
            x, y, z, _, _, _ = position_and_velocity(m, tick, j, t)
            here = Vector(x, y, z)
            travel = moving_travel_time(m, scene, s, e, here) if moving else travel_time(m, scene, s, e, here, False)
            if travel != travel:
                if candidate.first:
                    record_loss(m, Arrival(s, j, path, end), a.SHADOW, Vector(x, y, z))
                free_candidate(m, e)
                return math.nan
            gap = travel - (end - emission)
            if k == 0 and gap > 0.0:
                schedule_candidate(m, e, end + gap / (1.0 + 2.0 * a.MAX_SPEED / w.fastest), tick.number)
                return math.nan
            settled = w.mode == a.VOLUME and abs(emission + travel - t) < a.SETTLED_S
            t = emission + travel
            if settled:
                break
    if t != t:  # the state of one of them diverged in this tick: no sound arrives
        if candidate.first:
            record_loss(m, Arrival(s, j, path, end), a.FADED, Vector(place.x, place.y, place.z))
        free_candidate(m, e)
        return math.nan
    if m.nodes[j].asleep != 0:
        free_candidate(m, e)
        return math.nan
    t = min(max(t, emission, tick.start), end)
    if has_event:
        push_event(m, t, a.ARRIVAL, (signal.id * m.nodes.shape[0] + j) * 64 + path, e, j)
    return t


# ------------------------------------------------------------------ entry points: `t` is the table of the medium's
# addresses


@device_function
def _prefetch_event(m: Medium, k: int) -> None:
    """Prefetch the data of the next event while the current one is being processed."""
    if k < 0:
        return
    event = m.events[k]
    prefetch(m.nodes, event.node)
    if event.kind == a.END:
        prefetch(m.ongoing_receptions, event.subject)
        prefetch(m.hearings, event.subject)
    else:
        prefetch(m.candidates, event.subject)


@device_function
def _room_for(m: Medium, kind: int, capacity: int) -> tuple[int, int]:
    """Return the maximum numbers of (reception records, candidates) that an event can create."""
    paths = m.water[0].paths_per_node
    if kind == a.EMIT:
        return capacity, int(capacity * paths + 1)  # it may write a record for each node beyond its reach
    return 1, int(m.counters[0].live * paths) if kind == a.WAKE else 0


@device_function
def _buffers_have_room(m: Medium, receptions: int) -> bool:
    """Return whether the records of one more event fit into the buffers, with this number of receptions."""
    c = m.counters[0]
    return bool(
        c.receptions + receptions <= m.receptions.shape[0]
        and c.sent + 1 <= m.sent.shape[0]
        and c.channel_states + 1 <= m.channel_states.shape[0]
    )


@device_function
def advance(t: MediumTable, scene: AcousticScene, number: int, start: float, end: float, capacity: int) -> int:
    """Process every event of tick ``number``, which ends at ``end``.

    Returns OK when no event is left. If it returns GROW, enlarge the arrays and call the function again. If it returns
    FLUSH, collect the records and call the function again.
    """
    m, tick = a.unpack_medium(t), TickInterval(number, start, end)
    counters = m.counters[0]
    begin_tick(m, number, start, end)
    bucket = number & (a.WHEEL_TICKS - 1)
    while True:
        if m.wheel[bucket] >= 0:
            if counters.left_events < 1 or counters.left_chunks < 1 or counters.left_candidates < 1:
                return a.GROW
            if counters.receptions + 1 > m.receptions.shape[0]:
                return a.FLUSH
            e = take_candidate(m, number)
            if m.candidates[e].node == a.RETIRE_NODE:
                retire_signal(m, e, tick)
            else:
                check_arrival(m, scene, e, tick, True)
            continue
        first = next_event(m)
        if first < 0:
            m.tick[0].is_open = 0
            return a.OK
        event = m.events[first]
        time, kind, key, subject, node = event.time, event.kind, event.key, event.subject, event.node
        records, candidates = _room_for(m, kind, capacity)
        if not _buffers_have_room(m, records):
            return a.FLUSH
        if (
            counters.left_events < 4
            or counters.left_chunks < candidates
            or counters.left_candidates < 1
            or counters.left_hearings < 1
            or counters.left_emissions < 2
            or counters.live + 1 > m.signals.shape[0]
        ):
            return a.GROW
        remove_first_event(m)
        _prefetch_event(m, next_event(m))
        if kind == a.ARRIVAL:
            slot = begin_arrival(m, scene, subject, time, tick)
            free_candidate(m, subject)
            if slot >= 0:
                push_event(m, m.hearings[slot].end, a.END, key, slot, node)
        elif kind == a.END:
            _plan_reply(m, finish_reception(m, subject, node), node, time)
        elif kind == a.TRANSMISSION_END:
            end_transmission(m, node, subject, time)
        elif kind == a.EMIT:
            _emit_signal(m, scene, subject, node, time, tick, capacity)
        elif kind == a.WAKE:
            wake_node(m, scene, node, time, tick)


@kernel
def request_emission(t: MediumTable, node: int, time: float, wanted: Records) -> bool:
    """Schedule the emission ``wanted`` (1,), ignoring its fields ``entry`` and ``next``.

    Returns False if there is no room. In that case, enlarge the arrays and call the function again.
    """
    m = a.unpack_medium(t)
    k = _new_emission(m, node)
    if k < 0:
        return False
    entry = m.emissions[k].entry
    m.emissions[k] = wanted[0]
    m.emissions[k].entry = entry
    push_event(m, time, a.EMIT, node, k, node)
    return True


@kernel
def plan_first_ping(t: MediumTable, node: int, time: float) -> bool:
    """Schedule the first ping of a pinger. Returns False if there is no room; in that case, enlarge the arrays and call
    the function again.
    """
    return bool(_plan_next_ping(a.unpack_medium(t), node, time))


@kernel
def plan_waking(t: MediumTable, node: int, time: float) -> bool:
    """Schedule the event that wakes a node. Returns False if there is no room; in that case, enlarge the arrays and
    call the function again.
    """
    m = a.unpack_medium(t)
    if m.counters[0].left_events < 1:
        return False
    m.nodes[node].waking = 1
    push_event(m, time, a.WAKE, node, node, node)
    return True


@kernel
def fill_live_signals(t: MediumTable, time: float, table: Records) -> int:
    """Fill rows in the `signals` table with the signals in transit; return the number of these signals."""
    k, m = 0, a.unpack_medium(t)
    for s in range(m.signals.shape[0]):
        signal = m.signals[s]
        if signal.id == 0 or k >= table.shape[0]:
            continue
        radius = m.water[0].fastest * (time - signal.emission)
        if radius > signal.reach:
            continue
        row = table[k]
        row.id, row.source, row.emission_ns = signal.id, signal.source, round(signal.emission * 1e9)
        row.frequency, row.source_level, row.radius = signal.frequency, signal.source_level, radius
        row.level = signal.source_level - transmission_loss(radius, m.water[0].spreading, signal.absorption)
        row.origin_W[0], row.origin_W[1], row.origin_W[2] = signal.x, signal.y, signal.z
        k += 1
    return k
