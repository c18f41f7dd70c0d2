"""Queues of future events, compiled: timing wheels for candidates and events, and the order of the events within a
tick.

A candidate is a signal on its way to a node along one path. Its slot in the wheel is the earliest tick in which it can
arrive. The candidates in a slot are in chunks of adjacent records, so that the next candidates are known while one is
being processed. An event is scheduled to the nanosecond. Its slot in the wheel of events is its tick. When the tick
begins, its events are sorted into bins: short intervals of the tick, each with a list in the order of time, kind and
key. Therefore, the cost of scheduling an event and of taking the next one does not depend on the number of events.
"""

from __future__ import annotations

from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_server.acoustics.medium_arrays import BINS, CHUNK_SIZE, ISOVELOCITY, NO_EVENT, WHEEL_TICKS, Medium
from wavesim_server.array_tables import prefetch

AHEAD = 3  #: number of candidates after the current one whose data are prefetched


class FollowedPath(NamedTuple):
    """A path that a candidate follows. It has an index, and a flag that is set if the signal is expected to arrive
    first on this path. A ray also has a launch angle (rad) and a travel time (s).
    """

    path: int
    first: bool
    angle: float
    travel: float


@device_function
def _comes_before(m: Medium, i: int, k: int) -> bool:
    """Return True if the first event comes before the second. Simultaneous events are ordered by kind and key."""
    event, other = m.events[i], m.events[k]
    if event.time != other.time:
        return bool(event.time < other.time)
    if event.kind != other.kind:
        return bool(event.kind < other.kind)
    return bool(event.key < other.key)


@device_function
def _sort_into_bin(m: Medium, k: int) -> None:
    """Insert an event of the current tick into the ordered list of its bin."""
    now = m.tick[0]
    share = (m.events[k].time - now.start) * (BINS / m.water[0].step)
    b = max(int(min(share, BINS - 1.0)) if share > 0.0 else 0, now.bin)
    now.waiting += 1
    first = m.bins[b]
    if first < 0:
        m.bins[b] = m.bin_ends[b] = k
        m.events[k].next = -1
    elif _comes_before(m, k, first):
        m.bins[b], m.events[k].next = k, first
    elif not _comes_before(m, k, m.bin_ends[b]):
        m.events[m.bin_ends[b]].next = k
        m.bin_ends[b], m.events[k].next = k, -1
    else:
        while not _comes_before(m, k, m.events[first].next):
            first = m.events[first].next
        m.events[k].next = m.events[first].next
        m.events[first].next = k


@device_function
def _file_event(m: Medium, k: int) -> None:
    """File an event under its bin if it is in the current tick, and under its tick otherwise."""
    now, time = m.tick[0], m.events[k].time
    if now.is_open != 0 and not time > now.end:
        _sort_into_bin(m, k)
        return
    # not later than its tick, whatever the rounding: an event that is filed too early is filed again
    due, slot = time / m.water[0].step - 1e-6, now.number + 1
    if due > slot:
        slot = int(min(due, float(now.number + WHEEL_TICKS - 2))) + 1
    slot &= WHEEL_TICKS - 1
    following = m.event_wheel[slot]
    if following >= 0:
        m.events[following].previous = k
    m.events[k].next, m.events[k].previous, m.events[k].slot = following, -1, slot
    m.event_wheel[slot] = k


@device_function
def push_event(m: Medium, time: float, kind: int, key: int, subject: int, node: int) -> None:
    """Add an event; simultaneous events are ordered by kind and key."""
    k = m.counters[0].free_event
    event = m.events[k]
    m.counters[0].free_event = event.next
    m.counters[0].left_events -= 1
    event.time, event.kind, event.key, event.subject, event.node = time, kind, key, subject, node
    _file_event(m, k)


@device_function
def begin_tick(m: Medium, number: int, start: float, end: float) -> None:
    """Sort the events in a tick into bins, unless the tick has already begun."""
    now = m.tick[0]
    if now.is_open != 0:
        return
    now.is_open, now.number, now.start, now.end, now.bin = 1, number, start, end, 0
    slot = number & (WHEEL_TICKS - 1)
    k = m.event_wheel[slot]
    m.event_wheel[slot] = -1
    while k >= 0:
        following = m.events[k].next
        _file_event(m, k)
        k = following


@device_function
def next_event(m: Medium) -> int:
    """Return the row of the first event left in the current tick; -1 if there is none."""
    now = m.tick[0]
    if now.waiting == 0:
        return -1
    while m.bins[now.bin] < 0:
        now.bin += 1
    return int(m.bins[now.bin])


@device_function
def remove_first_event(m: Medium) -> None:
    """Remove the event that :func:`next_event` has returned."""
    now = m.tick[0]
    k = m.bins[now.bin]
    event = m.events[k]
    m.bins[now.bin] = event.next
    now.waiting -= 1
    event.kind, event.next = NO_EVENT, m.counters[0].free_event
    m.counters[0].free_event = k
    m.counters[0].left_events += 1


@device_function
def _candidate_record(m: Medium) -> int:
    """Take a free record for a candidate that is being processed."""
    k = m.counters[0].free_candidate
    m.counters[0].free_candidate = m.candidates[k].next
    m.counters[0].left_candidates -= 1
    return int(k)


@device_function
def _free_candidate_record(m: Medium, candidate: int) -> None:
    m.candidates[candidate].next = m.counters[0].free_candidate
    m.counters[0].free_candidate = candidate
    m.counters[0].left_candidates += 1


@device_function
def new_candidate(m: Medium, signal: int, node: int, followed: FollowedPath) -> int:
    """Take a free record for a candidate. :func:`schedule_candidate` puts the candidate into the wheel."""
    k = _candidate_record(m)
    candidate = m.candidates[k]
    candidate.signal, candidate.node, candidate.path = signal, node, followed.path
    candidate.first, candidate.bed = 1 if followed.first else 0, 0
    if m.water[0].mode != ISOVELOCITY:
        m.kept_rays[k].angle, m.kept_rays[k].travel = followed.angle, followed.travel
    m.signals[signal].pending += 1
    return k


@device_function
def schedule_candidate(m: Medium, candidate: int, time: float, tick: int) -> None:
    """Schedule the next check of a candidate in the tick that contains ``time``, but not before ``tick + 1``. The
    candidate waits in a chunk, so its own record becomes free.
    """
    due, k = time / m.water[0].step, tick + 1
    if due > k:  # an infinite time (a body whose state diverged) is checked in the next tick
        k = int(min(due, float(tick + WHEEL_TICKS - 1)))
    k &= WHEEL_TICKS - 1
    c = m.wheel[k]
    if c < 0 or m.chunks[c].count == CHUNK_SIZE:
        fresh = m.counters[0].free_chunk
        m.counters[0].free_chunk = m.chunks[fresh].next
        m.counters[0].left_chunks -= 1
        m.chunks[fresh].next, m.chunks[fresh].count = c, 0
        m.wheel[k] = c = fresh
    row = c * CHUNK_SIZE + m.chunks[c].count
    m.chunks[c].count += 1
    m.waiting[row] = m.candidates[candidate]
    if m.water[0].mode != ISOVELOCITY:
        m.waiting_rays[row] = m.kept_rays[candidate]
    _free_candidate_record(m, candidate)


@device_function
def take_candidate(m: Medium, tick: int) -> int:
    """From the wheel slot of a tick, take the candidate that was scheduled last. The slot must not be empty. Returns
    the record that holds the candidate while it is being processed.
    """
    slot = tick & (WHEEL_TICKS - 1)
    c = m.wheel[slot]
    count = m.chunks[c].count - 1
    row, k = c * CHUNK_SIZE + count, _candidate_record(m)
    m.chunks[c].count = count
    m.candidates[k] = m.waiting[row]
    if m.water[0].mode != ISOVELOCITY:
        m.kept_rays[k] = m.waiting_rays[row]
    if count > AHEAD:
        _prefetch_waiting(m, row - AHEAD, tick)
    elif count > 0:
        following = m.chunks[c].next
        prefetch(m.chunks, following)
        prefetch(m.waiting, following * CHUNK_SIZE + CHUNK_SIZE - 1)
    else:
        following = m.chunks[c].next
        m.wheel[slot] = following
        m.chunks[c].next = m.counters[0].free_chunk
        m.counters[0].free_chunk = c
        m.counters[0].left_chunks += 1
        if following >= 0:
            end = following * CHUNK_SIZE + m.chunks[following].count
            for i in range(min(m.chunks[following].count, AHEAD)):
                _prefetch_waiting(m, end - 1 - i, tick)
    return k


@device_function
def _prefetch_waiting(m: Medium, row: int, tick: int) -> None:
    """Prefetch the data of a waiting candidate. The data of all candidates exceed the CPU caches, and candidates are
    processed in random memory order.
    """
    candidate = m.waiting[row]
    prefetch(m.signals, candidate.signal)
    prefetch(m.nodes, candidate.node)
    prefetch(m.places[tick & 1], candidate.node)
    prefetch(m.places[(tick - 1) & 1], candidate.node)


@device_function
def free_candidate(m: Medium, candidate: int) -> None:
    """Free the record of a candidate whose processing is finished."""
    m.signals[m.candidates[candidate].signal].pending -= 1
    _free_candidate_record(m, candidate)
