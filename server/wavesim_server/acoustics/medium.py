"""The acoustic medium, compiled: exact times inside the tick, in order.

A signal is a sphere of radius c (t - t0) around its point of emission.  At emission each node gets
a *candidate*: the earliest time at which the sphere can reach it, given a bound on the node's speed.  All
coming events stand in one heap ordered by time, so that a tick costs what happens in it.  When a
candidate's time has come, the crossing of sphere and node, which moves straight within a tick, is
solved in closed form (spec: T = (q.v + sqrt((q.v)^2 + (c^2 - v.v) q.q)) / (c^2 - v.v)).  The error of
the straight line is a dt^2 / 8: 25 um for 0.5 m/s^2 at 20 ms.

Times are float64 seconds since the start: below 2e-12 s of rounding in the first three hours.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from wavesim_sdk.config.model import Acoustics
from wavesim_sdk.config.vehicle import Transducer
from wavesim_sdk.tables import RECEPTION, SENT, Outcome

_njit = nb.njit(cache=True, error_model="numpy")
Array = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

MAX_SPEED = 50.0  #: bound on the speed of a node, m/s

# columns of a node
N_ACTIVE, N_LOW, N_HIGH, N_THRESHOLD, N_PULSE, N_TAT, N_RECHARGE, N_DEAF, N_QUERY, N_REPLY, N_TOLERANCE, N_LEVEL = (
    range(12)
)
N_TX_START, N_TX_END, N_READY, N_SINCE = range(12, 16)  # of its last signal; when it entered
NODE_COLUMNS = 16
# columns of a live signal
S_T0, S_FREQ, S_LEVEL, S_X, S_Y, S_Z, S_RMAX, S_ALPHA = range(8)
SIGNAL_COLUMNS = 8
I_ID, I_SOURCE, I_QUERY, I_QSOURCE, I_PENDING = range(5)
# kinds of heap entries
CANDIDATE, EXACT, EMISSION, DEATH = range(4)
# heap integer columns
H_SEQ, H_KIND, H_SIGNAL, H_NODE = range(4)
# counters
C_HEAP, C_SEQ, C_ID, C_SENT, C_HEARD, C_LIVE, C_OUT_SENT, C_OUT_REC, C_EMISSIONS = range(9)
# return codes
OK, GROW, FLUSH = range(3)

HEARD, BELOW_THRESHOLD, FADED = int(Outcome.HEARD), int(Outcome.BELOW_THRESHOLD), int(Outcome.FADED)
OUT_OF_BAND, TRANSMITTING = int(Outcome.OUT_OF_BAND), int(Outcome.TRANSMITTING)
RECHARGING, RECEIVER_LEFT, NOT_SENT = int(Outcome.RECHARGING), int(Outcome.RECEIVER_LEFT), int(Outcome.NOT_SENT)


class Medium(NamedTuple):
    """All arrays of the medium; one object so that kernels take it whole."""

    nodes: Array  # (capacity, NODE_COLUMNS)
    before: Array  # transducers at the start of the tick, W (capacity, 3)
    after: Array  # and at its end
    signals: Array  # (n, SIGNAL_COLUMNS)
    signal_ids: Ints  # (n, 5)
    emissions: Array  # (n, 2): frequency, level of emissions to come
    emission_ids: Ints  # (n, 3): used, query, its source
    times: Array  # heap
    entries: Ints  # heap (n, 4)
    counters: Ints
    sound: Array  # c, spreading, absorption, noise, Thorp?
    out_sent: Array  # (n, 8) floats: t, f, SL, x, y, z, 0, 0
    out_sent_ids: Ints  # (n, 5): id, source, query, outcome, 0
    out_rec: Array  # (n, 8): t0, t, f, level, range, x, y, z
    out_rec_ids: Ints  # (n, 6): id, source, receiver, query, query source, outcome


def create(capacity: int, acoustics: Acoustics, signals: int = 64, heap: int = 1024, out: int = 4096) -> Medium:
    """An empty medium."""
    thorp = 1.0 if acoustics.absorption_model == "thorp" else 0.0
    sound = np.array([acoustics.sound_speed, acoustics.spreading, acoustics.absorption, acoustics.ambient_noise, thorp])
    return Medium(
        np.zeros((capacity, NODE_COLUMNS)),
        np.zeros((capacity, 3)),
        np.zeros((capacity, 3)),
        np.zeros((signals, SIGNAL_COLUMNS)),
        np.zeros((signals, 5), np.int64),
        np.zeros((signals, 2)),
        np.zeros((signals, 3), np.int64),
        np.zeros(heap),
        np.zeros((heap, 4), np.int64),
        np.zeros(9, np.int64),
        sound,
        np.zeros((out, 8)),
        np.zeros((out, 5), np.int64),
        np.zeros((out, 8)),
        np.zeros((out, 6), np.int64),
    )


def grown(m: Medium) -> Medium:
    """The same medium with twice the room for signals, emissions and events."""

    def double(a: Any) -> Any:
        return np.concatenate([a, np.zeros_like(a)])

    names = ("signals", "signal_ids", "emissions", "emission_ids", "times", "entries")
    return m._replace(**{n: double(getattr(m, n)) for n in names})


def set_node(m: Medium, row: int, t: Transducer, time: float) -> None:
    """Make a row a node that can hear and send from now on."""
    n = m.nodes[row]
    n[:] = 0.0
    n[:N_TX_START] = (
        1.0,
        t.listen_low,
        t.listen_high,
        t.threshold,
        t.pulse,
        t.turn_around,
        t.recharge,
        float(t.deaf_in_recharge),
        t.query,
        t.reply,
        t.tolerance,
        t.source_level,
    )
    n[N_TX_START] = n[N_TX_END] = n[N_READY] = -1.0
    n[N_SINCE] = time


@_njit
def _push(m: Medium, time: float, kind: int, signal: int, node: int) -> None:
    k = m.counters[C_HEAP]
    m.counters[C_HEAP] += 1
    seq = m.counters[C_SEQ]
    m.counters[C_SEQ] += 1
    while k > 0:
        up = (k - 1) // 2
        if m.times[up] < time or (m.times[up] == time and m.entries[up, H_SEQ] < seq):
            break
        m.times[k] = m.times[up]
        for i in range(4):
            m.entries[k, i] = m.entries[up, i]
        k = up
    m.times[k] = time
    m.entries[k, H_SEQ], m.entries[k, H_KIND], m.entries[k, H_SIGNAL], m.entries[k, H_NODE] = seq, kind, signal, node


@_njit
def _pop(m: Medium) -> None:
    """Remove the first entry."""
    last = m.counters[C_HEAP] - 1
    m.counters[C_HEAP] = last
    time, seq = m.times[last], m.entries[last, H_SEQ]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= last:
            break
        right = child + 1
        if right < last and (
            m.times[right] < m.times[child]
            or (m.times[right] == m.times[child] and m.entries[right, H_SEQ] < m.entries[child, H_SEQ])
        ):
            child = right
        if time < m.times[child] or (time == m.times[child] and seq < m.entries[child, H_SEQ]):
            break
        m.times[k] = m.times[child]
        for i in range(4):
            m.entries[k, i] = m.entries[child, i]
        k = child
    m.times[k] = time
    for i in range(4):
        m.entries[k, i] = m.entries[last, i]


@_njit
def thorp(f_khz: float) -> float:
    """Absorption in dB/m at f in kHz: Thorp (1967), `1.0936 (0.1 f^2/(1+f^2) + 40 f^2/(4100+f^2))` dB/km."""
    f2 = f_khz * f_khz
    return 1.0936e-3 * (0.1 * f2 / (1.0 + f2) + 40.0 * f2 / (4100.0 + f2))


@_njit
def loss(r: float, spreading: float, alpha: float) -> float:
    """Transmission loss in dB over r metres; nothing is lost within the first metre."""
    r = max(r, 1.0)
    return spreading * math.log10(r) + alpha * r


@_njit
def reach(excess: float, spreading: float, alpha: float) -> float:
    """Distance at which ``excess`` dB are lost."""
    if excess <= 0.0:
        return 0.0
    low, high = 1.0, 1.0
    while loss(high, spreading, alpha) < excess and high < 1e9:
        high *= 2.0
    for _ in range(100):
        mid = 0.5 * (low + high)
        if loss(mid, spreading, alpha) < excess:
            low = mid
        else:
            high = mid
    return 0.5 * (low + high)


@_njit
def crossing(c: float, qx: float, qy: float, qz: float, vx: float, vy: float, vz: float) -> float:
    """Time from emission to arrival at a node at q (from the origin, at emission) with velocity v."""
    qv = qx * vx + qy * vy + qz * vz
    qq = qx * qx + qy * qy + qz * qz
    cc = c * c - (vx * vx + vy * vy + vz * vz)
    return (qv + math.sqrt(qv * qv + cc * qq)) / cc


@_njit
def request(m: Medium, node: int, time: float, frequency: float, level: float, query: int, qsource: int) -> bool:
    """Put an emission into the heap; False when there is no room (grow, then ask again)."""
    if m.counters[C_HEAP] + 1 > m.times.shape[0]:
        return False
    for e in range(m.emission_ids.shape[0]):
        if m.emission_ids[e, 0] == 0:
            m.emission_ids[e, 0] = 1
            m.emission_ids[e, 1] = query
            m.emission_ids[e, 2] = qsource
            m.emissions[e, 0], m.emissions[e, 1] = frequency, level
            _push(m, time, EMISSION, e, node)
            return True
    return False


@_njit
def _record(
    m: Medium, s: int, node: int, outcome: int, time: float, level: float, r: float, x: float, y: float, z: float
) -> None:
    k = m.counters[C_OUT_REC]
    m.counters[C_OUT_REC] += 1
    o, i = m.out_rec[k], m.out_rec_ids[k]
    o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7] = m.signals[s, S_T0], time, m.signals[s, S_FREQ], level, r, x, y, z
    i[0], i[1], i[2], i[3], i[4], i[5] = (
        m.signal_ids[s, I_ID],
        m.signal_ids[s, I_SOURCE],
        node,
        m.signal_ids[s, I_QUERY],
        m.signal_ids[s, I_QSOURCE],
        outcome,
    )


@_njit
def _emit(m: Medium, e: int, node: int, time: float, x: float, y: float, z: float, capacity: int) -> None:
    """A signal leaves a transducer (or does not, while it recharges)."""
    n = m.nodes[node]
    frequency, level = m.emissions[e, 0], m.emissions[e, 1]
    query, qsource = m.emission_ids[e, 1], m.emission_ids[e, 2]
    m.emission_ids[e, 0] = 0
    ready = time >= n[N_READY]
    k = m.counters[C_OUT_SENT]
    m.counters[C_OUT_SENT] += 1
    o, i = m.out_sent[k], m.out_sent_ids[k]
    m.counters[C_ID] += 1
    number = m.counters[C_ID]
    o[0], o[1], o[2], o[3], o[4], o[5] = time, frequency, level, x, y, z
    i[0], i[1], i[2], i[3], i[4] = number, node, query, HEARD if ready else NOT_SENT, qsource
    if not ready:
        return
    m.counters[C_SENT] += 1
    n[N_TX_START], n[N_TX_END] = time, time + n[N_PULSE]
    n[N_READY] = n[N_TX_END] + n[N_RECHARGE]
    s = 0
    while m.signal_ids[s, I_ID] != 0:
        s += 1
    c, spreading, noise = m.sound[0], m.sound[1], m.sound[3]
    alpha = thorp(frequency * 1e-3) if m.sound[4] else m.sound[2]
    rmax = reach(level - noise, spreading, alpha)
    g, d = m.signals[s], m.signal_ids[s]
    g[S_T0], g[S_FREQ], g[S_LEVEL], g[S_X], g[S_Y], g[S_Z], g[S_RMAX], g[S_ALPHA] = (
        time,
        frequency,
        level,
        x,
        y,
        z,
        rmax,
        alpha,
    )
    d[I_ID], d[I_SOURCE], d[I_QUERY], d[I_QSOURCE], d[I_PENDING] = number, node, query, qsource, 0
    m.counters[C_LIVE] += 1
    for j in range(capacity):
        if j == node or m.nodes[j, N_ACTIVE] == 0.0:
            continue
        dx, dy, dz = m.after[j, 0] - x, m.after[j, 1] - y, m.after[j, 2] - z
        # `after` is up to a tick from its place at the emission: allow for it in the bound
        dist = max(math.sqrt(dx * dx + dy * dy + dz * dz) - MAX_SPEED * 0.1, 0.0)
        if dist * c / (c + MAX_SPEED) > rmax:
            _record(
                m,
                s,
                j,
                FADED,
                time + rmax / c,
                noise,
                math.sqrt(dx * dx + dy * dy + dz * dz),
                m.after[j, 0],
                m.after[j, 1],
                m.after[j, 2],
            )
        else:
            d[I_PENDING] += 1
            _push(m, time + dist / (c + MAX_SPEED), CANDIDATE, s, j)
    _push(m, time + rmax / c, DEATH, s, node)


@_njit
def _arrive(m: Medium, s: int, j: int, time: float, x: float, y: float, z: float) -> None:
    """A sphere crosses a node."""
    g, n = m.signals[s], m.nodes[j]
    m.signal_ids[s, I_PENDING] -= 1
    r = m.sound[0] * (time - g[S_T0])
    level = g[S_LEVEL] - loss(r, m.sound[1], g[S_ALPHA])
    f = g[S_FREQ]
    if level < m.sound[3]:
        outcome = FADED
    elif f < n[N_LOW] or f > n[N_HIGH]:
        outcome = OUT_OF_BAND
    elif level < n[N_THRESHOLD]:
        outcome = BELOW_THRESHOLD
    elif n[N_TX_START] <= time < n[N_TX_END]:
        outcome = TRANSMITTING
    elif n[N_DEAF] != 0.0 and time < n[N_READY]:
        outcome = RECHARGING
    else:
        outcome = HEARD
        m.counters[C_HEARD] += 1
    _record(m, s, j, outcome, time, level, r, x, y, z)
    if outcome == HEARD and n[N_QUERY] > 0.0 and abs(f - n[N_QUERY]) <= n[N_TOLERANCE]:
        request(m, j, time + n[N_TAT], n[N_REPLY], n[N_LEVEL], m.signal_ids[s, I_ID], m.signal_ids[s, I_SOURCE])


@_njit
def advance(m: Medium, start: float, end: float, capacity: int) -> int:
    """Every event up to ``end``. Returns OK, or GROW / FLUSH: make room and call again."""
    c = m.sound[0]
    span = end - start
    while m.counters[C_HEAP] and m.times[0] <= end:
        time, kind, s, j = m.times[0], m.entries[0, H_KIND], m.entries[0, H_SIGNAL], m.entries[0, H_NODE]
        if (
            m.counters[C_OUT_REC] + capacity + 1 > m.out_rec.shape[0]
            or m.counters[C_OUT_SENT] + 1 > m.out_sent.shape[0]
        ):
            return FLUSH
        if m.counters[C_HEAP] + capacity + 2 > m.times.shape[0] or m.counters[C_LIVE] + 1 > m.signals.shape[0]:
            return GROW
        free = 0
        for e in range(m.emission_ids.shape[0]):
            if m.emission_ids[e, 0] == 0:
                free = 1
                break
        if free == 0:
            return GROW
        _pop(m)
        part = (time - start) / span
        x = m.before[j, 0] + part * (m.after[j, 0] - m.before[j, 0])
        y = m.before[j, 1] + part * (m.after[j, 1] - m.before[j, 1])
        z = m.before[j, 2] + part * (m.after[j, 2] - m.before[j, 2])
        if kind == EMISSION:
            if m.nodes[j, N_ACTIVE] != 0.0:
                _emit(m, s, j, time, x, y, z, capacity)
            else:
                m.emission_ids[s, 0] = 0
        elif kind == DEATH:
            if m.signal_ids[s, I_PENDING] > 0:
                # candidates bounded early are still in the heap: look again when they are through
                _push(m, end + span, DEATH, s, j)
            else:
                m.signal_ids[s, I_ID] = 0
                m.counters[C_LIVE] -= 1
        elif m.nodes[j, N_ACTIVE] == 0.0 or m.nodes[j, N_SINCE] > m.signals[s, S_T0]:
            m.signal_ids[s, I_PENDING] -= 1
            _record(m, s, j, RECEIVER_LEFT, time, math.nan, math.nan, x, y, z)
        elif kind == EXACT:
            _arrive(m, s, j, time, x, y, z)
        else:
            g = m.signals[s]
            vx, vy, vz = (
                (m.after[j, 0] - m.before[j, 0]) / span,
                (m.after[j, 1] - m.before[j, 1]) / span,
                (m.after[j, 2] - m.before[j, 2]) / span,
            )
            back = g[S_T0] - start
            qx, qy, qz = (
                m.before[j, 0] + vx * back - g[S_X],
                m.before[j, 1] + vy * back - g[S_Y],
                m.before[j, 2] + vz * back - g[S_Z],
            )
            arrival = g[S_T0] + crossing(c, qx, qy, qz, vx, vy, vz)
            if arrival <= end:
                _push(m, max(arrival, time), EXACT, s, j)
            else:
                dx, dy, dz = m.after[j, 0] - g[S_X], m.after[j, 1] - g[S_Y], m.after[j, 2] - g[S_Z]
                gap = math.sqrt(dx * dx + dy * dy + dz * dz) - c * (end - g[S_T0])
                # always after `end`, so that the loop comes to its end
                _push(m, end + max(gap, 1e-6) / (c + MAX_SPEED), CANDIDATE, s, j)
    return OK


@_njit
def live_table(m: Medium, time: float, table: Any, ids: Any) -> int:
    """Fill viewer rows (7 floats: f, SL, level, radius, origin; 3 ints: id, source, t0 ns); returns how many."""
    k = 0
    for s in range(m.signals.shape[0]):
        if m.signal_ids[s, I_ID] == 0 or k >= table.shape[0]:
            continue
        g = m.signals[s]
        radius = m.sound[0] * (time - g[S_T0])
        if radius > g[S_RMAX]:
            continue
        ids[k, 0], ids[k, 1], ids[k, 2] = m.signal_ids[s, I_ID], m.signal_ids[s, I_SOURCE], round(g[S_T0] * 1e9)
        table[k, 0], table[k, 1], table[k, 2], table[k, 3] = (
            g[S_FREQ],
            g[S_LEVEL],
            g[S_LEVEL] - loss(radius, m.sound[1], g[S_ALPHA]),
            radius,
        )
        table[k, 4], table[k, 5], table[k, 6] = g[S_X], g[S_Y], g[S_Z]
        k += 1
    return k


def take_records(m: Medium) -> tuple[Any, Any]:
    """(sent, receptions) since the last call, as records of the log's tables; empties the buffers."""
    ns, nr = int(m.counters[C_OUT_SENT]), int(m.counters[C_OUT_REC])
    m.counters[C_OUT_SENT] = m.counters[C_OUT_REC] = 0
    sent, rec = np.zeros(ns, SENT.dtype), np.zeros(nr, RECEPTION.dtype)
    o, i = m.out_sent[:ns], m.out_sent_ids[:ns]
    sent["id"], sent["source"], sent["query"], sent["outcome"] = i[:, 0], i[:, 1], i[:, 2], i[:, 3]
    sent["emission_ns"] = np.rint(o[:, 0] * 1e9)
    sent["frequency"], sent["source_level"], sent["origin_W"] = o[:, 1], o[:, 2], o[:, 3:6]
    o, i = m.out_rec[:nr], m.out_rec_ids[:nr]
    for k, name in enumerate(("id", "source", "receiver", "query", "query_source", "outcome")):
        rec[name] = i[:, k]
    rec["emission_ns"], rec["arrival_ns"] = np.rint(o[:, 0] * 1e9), np.rint(o[:, 1] * 1e9)
    rec["reported_ns"] = rec["arrival_ns"]
    rec["frequency"], rec["level"], rec["range"], rec["position_W"] = o[:, 2], o[:, 3], o[:, 4], o[:, 5:8]
    return sent, rec
