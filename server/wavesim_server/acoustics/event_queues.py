"""Queues of future events, compiled: a timing wheel of candidates, and a heap of events with exact times.

A candidate is a signal on its way to a node; its slot in the wheel is the earliest tick at which it can arrive. The
heap holds only the events of the current tick and the events that are planned to the nanosecond.
"""

from __future__ import annotations

from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_server.acoustics.medium_arrays import ISOVELOCITY, WHEEL_TICKS, Medium


class FollowedPath(NamedTuple):
    """A path that a candidate follows: its index, whether the signal is expected to arrive on it first, and for rays
    the launch angle (rad) and travel time (s).
    """

    path: int
    first: bool
    angle: float
    travel: float


@device_function
def _comes_before(m: Medium, i: int, time: float, kind: int, key: int) -> bool:
    """Return whether entry i of the heap precedes (time, kind, key)."""
    event = m.events[i]
    if event.time != time:
        return bool(event.time < time)
    if event.kind != kind:
        return bool(event.kind < kind)
    return bool(event.key < key)


@device_function
def push_event(m: Medium, time: float, kind: int, key: int, subject: int, node: int) -> None:
    """Add an event; simultaneous events are ordered by kind and key."""
    k = m.counters[0].events
    m.counters[0].events += 1
    while k > 0:
        up = (k - 1) // 2
        if _comes_before(m, up, time, kind, key):
            break
        m.events[k] = m.events[up]
        k = up
    event = m.events[k]
    event.time, event.kind, event.key, event.subject, event.node = time, kind, key, subject, node


@device_function
def pop_event(m: Medium) -> None:
    """Remove the first event."""
    last = m.counters[0].events - 1
    m.counters[0].events = last
    moved = m.events[last]
    time, kind, key = moved.time, moved.kind, moved.key
    k = 0
    while True:
        child = 2 * k + 1
        if child >= last:
            break
        right = child + 1
        if right < last:
            left = m.events[child]
            if _comes_before(m, right, left.time, left.kind, left.key):
                child = right
        if not _comes_before(m, child, time, kind, key):
            break
        m.events[k] = m.events[child]
        k = child
    m.events[k] = m.events[last]


@device_function
def new_candidate(m: Medium, signal: int, node: int, followed: FollowedPath) -> int:
    """Use a free record for a candidate; :func:`schedule_candidate` sets its tick."""
    k = m.counters[0].free_candidate
    candidate = m.candidates[k]
    m.counters[0].free_candidate = candidate.next
    m.counters[0].left_candidates -= 1
    candidate.signal, candidate.node, candidate.path = signal, node, followed.path
    candidate.first, candidate.bed = 1 if followed.first else 0, 0
    if m.water[0].mode != ISOVELOCITY:
        m.kept_rays[k].angle, m.kept_rays[k].travel = followed.angle, followed.travel
    m.signals[signal].pending += 1
    return int(k)


@device_function
def schedule_candidate(m: Medium, candidate: int, time: float, tick: int) -> None:
    """Schedule the next check of a candidate in the tick that contains ``time``, but not before ``tick + 1``."""
    due, k = time / m.water[0].step, tick + 1
    if due > k:  # an infinite time (a body whose state diverged) is checked in the next tick
        k = int(min(due, float(tick + WHEEL_TICKS - 1)))
    k &= WHEEL_TICKS - 1
    m.candidates[candidate].next = m.wheel[k]
    m.wheel[k] = candidate


@device_function
def free_candidate(m: Medium, candidate: int) -> None:
    """Free the record of a candidate."""
    m.signals[m.candidates[candidate].signal].pending -= 1
    m.candidates[candidate].next = m.counters[0].free_candidate
    m.counters[0].free_candidate = candidate
    m.counters[0].left_candidates += 1
