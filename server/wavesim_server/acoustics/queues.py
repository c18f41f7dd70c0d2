"""What comes next: a wheel of candidates by tick, and a heap of exact events in order of time, compiled.

A candidate is a signal on its way to a node; its place in the wheel is the earliest tick at which it can arrive.
Only what happens in the tick under way, and what is planned to the nanosecond, stands in the heap.
"""

from __future__ import annotations

from wavesim_server.acoustics.layout import (
    A_STEP,
    C_FREE_W,
    C_HEAP,
    C_LEFT_W,
    H_A,
    H_B,
    H_KEY,
    H_KIND,
    I_PENDING,
    W_NEXT,
    W_NODE,
    W_PATH,
    W_SIGNAL,
    WHEEL,
    Medium,
)  # fmt: skip
from wavesim_server.pointers import inner as _njit


@_njit
def _before(m: Medium, i: int, time: float, kind: int, key: int) -> bool:
    """Whether entry i of the heap comes before (time, kind, key)."""
    if m.times[i] != time:
        return bool(m.times[i] < time)
    if m.heap[i, H_KIND] != kind:
        return bool(m.heap[i, H_KIND] < kind)
    return bool(m.heap[i, H_KEY] < key)


@_njit
def push(m: Medium, time: float, kind: int, key: int, a: int, b: int) -> None:
    """Add an event; events of one time come in the order of kind and key."""
    k = m.counters[C_HEAP]
    m.counters[C_HEAP] += 1
    while k > 0:
        up = (k - 1) // 2
        if _before(m, up, time, kind, key):
            break
        m.times[k] = m.times[up]
        for i in range(4):
            m.heap[k, i] = m.heap[up, i]
        k = up
    m.times[k] = time
    m.heap[k, H_KIND], m.heap[k, H_KEY], m.heap[k, H_A], m.heap[k, H_B] = kind, key, a, b


@_njit
def pop(m: Medium) -> None:
    """Remove the first event."""
    last = m.counters[C_HEAP] - 1
    m.counters[C_HEAP] = last
    time, kind, key = m.times[last], m.heap[last, H_KIND], m.heap[last, H_KEY]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= last:
            break
        right = child + 1
        if right < last and _before(m, right, m.times[child], m.heap[child, H_KIND], m.heap[child, H_KEY]):
            child = right
        if not _before(m, child, time, kind, key):
            break
        m.times[k] = m.times[child]
        for i in range(4):
            m.heap[k, i] = m.heap[child, i]
        k = child
    m.times[k] = time
    for i in range(4):
        m.heap[k, i] = m.heap[last, i]


@_njit
def candidate(m: Medium, signal: int, node: int, path: int, angle: float, travel: float) -> int:
    """A new entry for the wheel; :func:`place` gives it its tick."""
    e = m.counters[C_FREE_W]
    m.counters[C_FREE_W] = m.entries[e, W_NEXT]
    m.counters[C_LEFT_W] -= 1
    m.entries[e, W_SIGNAL], m.entries[e, W_NODE], m.entries[e, W_PATH] = signal, node, path
    m.angles[e, 0], m.angles[e, 1] = angle, travel
    m.signal_ids[signal, I_PENDING] += 1
    return int(e)


@_njit
def place(m: Medium, e: int, time: float, tick: int) -> None:
    """Look at an entry again in the tick that holds ``time``, and after ``tick``."""
    at, k = time / m.sound[A_STEP], tick + 1
    if at > k:  # what comes at no time (a body thrown out of all bounds) is looked at in the next tick
        k = int(min(at, float(tick + WHEEL - 1)))
    k &= WHEEL - 1
    m.entries[e, W_NEXT] = m.wheel[k]
    m.wheel[k] = e


@_njit
def release(m: Medium, e: int) -> None:
    """An entry has done its work."""
    m.signal_ids[m.entries[e, W_SIGNAL], I_PENDING] -= 1
    m.entries[e, W_NEXT] = m.counters[C_FREE_W]
    m.counters[C_FREE_W] = e
    m.counters[C_LEFT_W] += 1
