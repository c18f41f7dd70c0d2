"""The acoustic medium, compiled: exact times inside the tick, in order.

A signal is a front that leaves a point of emission.  At emission each node within reach gets a *candidate* for
each path: the tick in which the front can reach it at the earliest, given a bound on the node's speed.  A tick
looks only at its own candidates; where the front has passed a node by the end of the tick, the crossing is solved: in
closed form for straight motion (spec: T = (q.v + sqrt((q.v)^2 + (c^2 - v.v) q.q)) / (c^2 - v.v)), then corrected
for the cubic on which the node really moves.  Arrivals, ends of receptions and replies then happen in the order
of their exact times, also when a reply and its arrival fall into the same tick.

Times are float64 seconds since the start: below 2e-12 s of rounding in the first three hours.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba as nb

from wavesim_sdk.tables import SignalKind
from wavesim_server.acoustics import layout as a
from wavesim_server.acoustics import paths, rays, tubes
from wavesim_server.acoustics.hearing import arrive, clock, finish, loss, lost, reach, sounding, turn, where
from wavesim_server.acoustics.layout import Medium
from wavesim_server.acoustics.queues import candidate, place, pop, push, release
from wavesim_server.elementary import hypot
from wavesim_server.pointers import inner as _njit

_entry = nb.njit(cache=True, error_model="numpy")
PULSE, DATA, RANGE_REQUEST, RANGE_REPLY = map(int, SignalKind)


class Scene(NamedTuple):
    """What may stand in the way of sound."""

    fixed: Any
    bed: Any
    net: Any
    cursor: Any


@_njit
def crossing(c: float, qx: float, qy: float, qz: float, vx: float, vy: float, vz: float) -> float:
    """Time from emission to arrival at a node at q (from the origin, at emission) with velocity v."""
    qv = qx * vx + qy * vy + qz * vz
    qq = qx * qx + qy * qy + qz * qz
    cc = c * c - (vx * vx + vy * vy + vz * vz)
    return (qv + math.sqrt(qv * qv + cc * qq)) / cc


@_njit
def plan(
    m: Medium,
    node: int,
    time: float,
    kind: int,
    frequency: float,
    level: float,
    duration: float,
    band: float,
    alpha: float,
    noise: float,
    bits: float,
    code: int,
    to: int,
    number: int,
    size: int,
    handle: int,
) -> bool:
    """Plan an emission; False when there is no room (grow, then ask again)."""
    if m.counters[a.C_HEAP] + 1 > m.times.shape[0] or m.counters[a.C_LEFT_E] < 1:
        return False
    e = m.counters[a.C_FREE_E]
    f, i = m.emissions[e], m.emission_ids[e]
    m.counters[a.C_FREE_E] = i[a.EI_NEXT]
    m.counters[a.C_LEFT_E] -= 1
    f[a.E_FREQ], f[a.E_LEVEL], f[a.E_DURATION], f[a.E_BAND] = frequency, level, duration, band
    f[a.E_ALPHA], f[a.E_NOISE], f[a.E_BITS], f[a.E_TAT], f[a.E_QT0] = alpha, noise, bits, 0.0, 0.0
    i[a.EI_QUERY], i[a.EI_QSOURCE], i[a.EI_KIND], i[a.EI_CODE], i[a.EI_TO] = 0, -1, kind, code, to
    i[a.EI_REQUEST], i[a.EI_BYTES], i[a.EI_HANDLE], i[a.EI_ENTRY] = number, size, handle, int(m.nodes[node, a.N_ENTRY])
    push(m, time, a.EMISSION, node, e, node)
    return True


@_njit
def _next_ping(m: Medium, node: int, time: float) -> bool:
    """Plan the next ping of a pinger, at a full period of its own clock."""
    n = m.nodes[node]
    if n[a.N_P_PERIOD] <= 0.0:
        return True
    k = max(n[a.N_PINGS], math.ceil((clock(m, node, time) - n[a.N_P_OFFSET]) / n[a.N_P_PERIOD] - 1e-9))
    n[a.N_PINGS] = k + 1.0
    own = n[a.N_P_OFFSET] + k * n[a.N_P_PERIOD]
    when = max((own - n[a.N_OFFSET]) / (1.0 + n[a.N_DRIFT]), time)
    return plan(
        m, node, when, PULSE, n[a.N_P_FREQ], n[a.N_LEVEL], n[a.N_PULSE], n[a.N_BAND], n[a.N_P_ALPHA], n[a.N_P_NOISE],
        0.0, int(n[a.N_CODE]), 0, a.PINGER, 0, 0,
    )  # fmt: skip


@_njit
def _reply(m: Medium, row: int, j: int, end: float) -> None:
    """A node answers what it has just heard, if that was a query to it."""
    i, f, n = m.rec_i[row], m.rec_f[row], m.nodes[j]
    kind = i[a.R_KIND]
    heard = f[a.R_FREQ] + f[a.R_DOPPLER]
    if kind == PULSE:
        if n[a.N_QUERY] <= 0.0 or i[a.R_QUERY] > 0 or abs(heard - n[a.N_QUERY]) > n[a.N_TOLERANCE]:
            return
        if n[a.N_QUERY_CODE] > 0.0 and i[a.R_CODE] != n[a.N_QUERY_CODE]:
            return
        frequency, duration, band, alpha, noise = (
            n[a.N_REPLY],
            n[a.N_PULSE],
            n[a.N_BAND],
            n[a.N_R_ALPHA],
            n[a.N_R_NOISE],
        )
        answer, to = PULSE, 0
    elif kind == RANGE_REQUEST and i[a.R_TO] == n[a.N_ADDRESS] and n[a.N_ADDRESS] > 0.0:
        frequency, duration, band = n[a.N_M_FREQ], n[a.N_PREAMBLE], n[a.N_M_BAND]
        alpha, noise = n[a.N_M_ALPHA], n[a.N_M_NOISE]
        answer, to = RANGE_REPLY, i[a.R_FROM]
    else:
        return
    wait = max(n[a.N_TAT] / (1.0 + n[a.N_DRIFT]), f[a.R_DURATION])
    arrived = end - f[a.R_DURATION]
    e = m.counters[a.C_FREE_E]
    if plan(
        m,
        j,
        arrived + wait,
        answer,
        frequency,
        n[a.N_LEVEL],
        duration,
        band,
        alpha,
        noise,
        0.0,
        int(n[a.N_CODE]),
        to,
        0,
        0,
        0,
    ):
        m.emissions[e, a.E_TAT] = max(n[a.N_TAT], f[a.R_DURATION])
        m.emissions[e, a.E_QT0] = i[a.R_T0] * 1e-9
        m.emission_ids[e, a.EI_QUERY], m.emission_ids[e, a.EI_QSOURCE] = i[a.R_ID], i[a.R_SOURCE]


@_njit
def _emit(m: Medium, e: int, node: int, time: float, tick: int, start: float, end: float, capacity: int) -> None:
    """A signal leaves a transducer (or does not, while it recharges)."""
    n, w = m.nodes[node], m.sound
    f, i = m.emissions[e], m.emission_ids[e]
    entered, by_itself = i[a.EI_ENTRY] == n[a.N_ENTRY], i[a.EI_REQUEST] == a.PINGER
    if n[a.N_ACTIVE] == 0.0 or not entered:
        _free_emission(m, e)
        return
    ready = time >= n[a.N_READY]
    x, y, z, vx, vy, vz = where(m, tick, node, (time - start) / w[a.A_STEP])
    k = m.counters[a.C_OUT_SENT]
    m.counters[a.C_OUT_SENT] += 1
    m.counters[a.C_ID] += 1
    number = m.counters[a.C_ID]
    o, d = m.sent_f[k], m.sent_i[k]
    d[:] = 0
    d[a.X_ID], d[a.X_SOURCE], d[a.X_QUERY], d[a.X_REQUEST] = number, node, i[a.EI_QUERY], max(i[a.EI_REQUEST], 0)
    d[a.X_OUTCOME], d[a.X_KIND], d[a.X_CODE] = a.HEARD if ready else a.NOT_SENT, i[a.EI_KIND], i[a.EI_CODE]
    address = int(n[a.N_ADDRESS]) if i[a.EI_KIND] != PULSE else 0
    d[a.X_FROM], d[a.X_TO], d[a.X_BYTES], d[a.X_HANDLE] = address, i[a.EI_TO], i[a.EI_BYTES], i[a.EI_HANDLE]
    d[a.X_T0], d[a.X_CLOCK] = round(time * 1e9), round(clock(m, node, time) * 1e9)
    o[a.X_FREQ], o[a.X_LEVEL], o[a.X_DURATION] = f[a.E_FREQ], f[a.E_LEVEL], f[a.E_DURATION]
    o[a.X_ORIGIN], o[a.X_ORIGIN + 1], o[a.X_ORIGIN + 2] = x, y, z
    if ready:
        d[a.X_BEYOND] = _spread(m, e, node, time, tick, start, end, capacity, number, x, y, z, vx, vy, vz)
    _free_emission(m, e)
    if by_itself:
        _next_ping(m, node, time)


@_njit
def _free_emission(m: Medium, e: int) -> None:
    m.emission_ids[e, a.EI_NEXT] = m.counters[a.C_FREE_E]
    m.counters[a.C_FREE_E] = e
    m.counters[a.C_LEFT_E] += 1


@_njit
def _spread(
    m: Medium,
    e: int,
    node: int,
    time: float,
    tick: int,
    start: float,
    end: float,
    capacity: int,
    number: int,
    x: float,
    y: float,
    z: float,
    vx: float,
    vy: float,
    vz: float,
) -> int:
    """A new live signal and its candidates; returns how many nodes lie beyond its reach."""
    n, w = m.nodes[node], m.sound
    m.counters[a.C_SENT] += 1
    s = m.counters[a.C_FREE_S]
    g, d = m.signals[s], m.signal_ids[s]
    m.counters[a.C_FREE_S] = d[a.I_PENDING]
    m.counters[a.C_LIVE] += 1
    for k in range(9):
        g[k], d[k] = m.emissions[e, k], m.emission_ids[e, k]
    n[a.N_TX_START], n[a.N_TX_END] = time, time + g[a.E_DURATION]
    n[a.N_READY] = n[a.N_TX_END] + n[a.N_RECHARGE]
    under = m.first[node]  # half duplex: what it was hearing is lost
    while under >= 0:
        if m.under_i[under, a.R_OUTCOME] == a.HEARD:
            m.under_i[under, a.R_OUTCOME] = a.TRANSMITTING
        under = m.under_ids[under, a.O_NEXT]
    g[a.S_T0], g[a.S_X], g[a.S_Y], g[a.S_Z], g[a.S_VX], g[a.S_VY], g[a.S_VZ] = time, x, y, z, vx, vy, vz
    g[a.S_CLOCK] = clock(m, node, time)
    g[a.S_BEAM] = n[a.N_BEAM]  # kept with the signal: its sender may leave
    if n[a.N_BEAM] >= 0.0:
        q, axis = m.places[tick & 1, node], m.axes[node]
        g[a.S_AXIS], g[a.S_AXIS + 1], g[a.S_AXIS + 2] = turn(q[6], q[7], q[8], q[9], axis[0], axis[1], axis[2])
    focus = tubes.FOCUS_DB if w[a.A_SPREAD] == 0.0 and w[a.A_MODE] != a.ISO else 0.0
    rmax = reach(g[a.E_LEVEL] - g[a.E_NOISE] - w[a.A_FLOOR] + focus, w[a.A_SPREAD], g[a.E_ALPHA])
    g[a.S_RMAX] = rmax
    d[a.I_ID], d[a.I_SOURCE], d[a.I_PENDING] = number, node, 0
    d[a.I_FROM] = int(n[a.N_ADDRESS]) if d[a.EI_KIND] != PULSE else 0
    # draws count a sender's own signals, so that nobody else's change them
    d[a.I_COUNT] = m.detected[node, a.EMITTED]
    m.detected[node, a.EMITTED] += 1
    m.signal_keys[s] = m.keys[node]
    c, mode = w[a.A_CMAX], w[a.A_MODE]
    fast = c + a.MAX_SPEED
    slack = a.MAX_SPEED * w[a.A_STEP]  # places are those at the end of the tick
    rays_n = 0
    if mode == a.RAYS:
        deep = m.profile_z[-1]
        zs = min(max(z, 0.0), deep)
        rays_n = rays.fan(m.profile_z, m.profile_c, zs, m.fan_angles, m.fan_widths, m.fan_classes)
    within = 0
    after = m.places[tick & 1]
    limit = rmax * fast / c + slack
    limit *= limit
    for j in range(capacity):
        dx, dy, dz = after[j, 0] - x, after[j, 1] - y, after[j, 2] - z
        square = dx * dx + dy * dy + dz * dz
        if (square > limit and w[a.A_FADED] == 0.0) or j == node or m.nodes[j, a.N_ACTIVE] == 0.0:
            continue
        far = math.sqrt(square)
        near = max(far - slack, 0.0)
        if square > limit:
            lost(m, s, j, 0, a.FADED, time + rmax / c, after[j, 0], after[j, 1], after[j, 2])
            continue
        within += 1
        if mode == a.ISO:
            _consider(m, s, j, 0, True, 0.0, 0.0, time + near / fast, tick, end)
            for path in range(2, 2 * int(w[a.A_ORDER]) + 2):
                up = after[j, 2] - paths.image(z, w[a.A_BOTTOM], path)
                way = max(math.sqrt(dx * dx + dy * dy + up * up) - slack, 0.0)
                if way * c / fast <= rmax:
                    _consider(m, s, j, path, False, 0.0, 0.0, time + way / fast, tick, end)
        elif mode == a.GRADIENT:
            if rays.arc(w[a.A_C], w[a.A_G], w[a.A_BOTTOM], z, after[j, 2], math.sqrt(dx * dx + dy * dy), m.ray):
                _consider(m, s, j, 0, True, 0.0, 0.0, time + near / fast, tick, end)
            else:
                lost(m, s, j, 0, a.SHADOW, time + far / c, after[j, 0], after[j, 1], after[j, 2])
        else:
            _find_rays(m, s, j, time, tick, start, end, rays_n)
    place(m, candidate(m, s, a.RETIRE, 0, 0.0, 0.0), time + rmax / c, tick)
    return int(m.counters[a.C_NODES] - 1 - within)


@_njit
def _find_rays(m: Medium, s: int, j: int, time: float, tick: int, start: float, end: float, n: int) -> None:
    """Candidates for every eigenray to where a node is now: all of them with echoes, else only the first to arrive."""
    x, y, z, _, _, _ = where(m, tick, j, (time - start) / m.sound[a.A_STEP])
    across = hypot(x - m.signals[s, a.S_X], y - m.signals[s, a.S_Y])
    zs, zr, across = rays.within(m.profile_z, m.signals[s, a.S_Z], z, across)
    order = int(m.sound[a.A_ORDER])
    count = rays.eigenrays(
        m.profile_z,
        m.profile_c,
        zs,
        zr,
        across,
        order,
        m.fan_angles,
        m.fan_widths,
        m.fan_classes,
        n,
        m.fan_found,
        m.ray,
    )
    if count == 0:
        far = hypot(across, zr - zs)
        lost(m, s, j, 0, a.SHADOW, time + far / m.sound[a.A_CMAX], x, y, z)
        return
    first = 0
    for k in range(1, count):
        if m.fan_found[k, 3] < m.fan_found[first, 3]:
            first = k
    slower = 1.0 - 2.0 * a.MAX_SPEED / m.sound[a.A_CMAX]  # the node may come towards it at full speed
    for k in range(count):
        if order > 0 or k == first or m.sound[a.A_SUM] != 0.0:
            r = m.fan_found[k]
            path = 2 * int(r[2]) + int(r[1])
            _consider(m, s, j, path, k == first, r[0], r[3], time + r[3] * slower - 2.0 * m.sound[a.A_STEP], tick, end)


@_njit
def _consider(
    m: Medium,
    s: int,
    j: int,
    path: int,
    first: bool,
    angle: float,
    travel: float,
    earliest: float,
    tick: int,
    end: float,
) -> None:
    """A new candidate; one that may arrive in this tick is looked at before the next event."""
    e = candidate(m, s, j, path, angle, travel)
    m.entries[e, a.W_FIRST] = 1 if first else 0
    place(m, e, earliest, tick if earliest > end else tick - 1)


@_njit
def _retire(m: Medium, e: int, tick: int, end: float) -> None:
    """A signal ends when it can reach nobody any more."""
    s = m.entries[e, a.W_SIGNAL]
    due = m.signals[s, a.S_T0] + m.signals[s, a.S_RMAX] / m.sound[a.A_CMAX]
    if end < due or m.signal_ids[s, a.I_PENDING] > 1:
        place(m, e, max(due, end), tick)  # not yet, or a candidate that was bounded early is still on its way
        return
    release(m, e)
    m.signal_ids[s, a.I_ID] = 0
    m.signal_ids[s, a.I_PENDING] = m.counters[a.C_FREE_S]
    m.counters[a.C_FREE_S] = s
    m.counters[a.C_LIVE] -= 1


@_njit
def _look(m: Medium, e: int, tick: int, start: float, end: float) -> None:
    """Does a candidate arrive in this tick? Then it gets its exact time, else a later look."""
    s, j, path = m.entries[e, a.W_SIGNAL], m.entries[e, a.W_NODE], m.entries[e, a.W_PATH]
    g, w = m.signals[s], m.sound
    t0, h = g[a.S_T0], w[a.A_STEP]
    q = m.places[tick & 1, j]
    if m.nodes[j, a.N_ACTIVE] == 0.0 or m.nodes[j, a.N_SINCE] > t0:
        if m.entries[e, a.W_FIRST]:
            lost(m, s, j, path, a.RECEIVER_LEFT, end, q[0], q[1], q[2])
        release(m, e)
        return
    if w[a.A_MODE] == a.ISO:
        c = w[a.A_C]
        oz = g[a.S_Z] if path == 0 else paths.image(g[a.S_Z], w[a.A_BOTTOM], path)
        dx, dy, dz = q[0] - g[a.S_X], q[1] - g[a.S_Y], q[2] - oz
        gap = math.sqrt(dx * dx + dy * dy + dz * dz) - c * (end - t0)
        if gap > 0.0:
            place(m, e, end + gap / (c + a.MAX_SPEED), tick)
            return
        p = m.places[(tick - 1) & 1, j]
        vx, vy, vz = (q[0] - p[0]) / h, (q[1] - p[1]) / h, (q[2] - p[2]) / h
        back = t0 - end
        t = t0 + crossing(c, dx + vx * back, dy + vy * back, dz + vz * back, vx, vy, vz)
        for _ in range(2):
            x, y, z, vx, vy, vz = where(m, tick, j, (t - start) / h)
            dx, dy, dz = x - g[a.S_X], y - g[a.S_Y], z - oz
            far = math.sqrt(dx * dx + dy * dy + dz * dz)
            closing = (dx * vx + dy * vy + dz * vz) / max(far, 1e-9) - c
            t -= (far - c * (t - t0)) / closing
    else:
        t = end
        for k in range(4):  # at the end of the tick, then where it has brought the node back to
            x, y, z, vx, vy, vz = where(m, tick, j, (t - start) / h)
            travel = sounding(m, s, e, x, y, z)
            if travel != travel:
                if m.entries[e, a.W_FIRST]:
                    lost(m, s, j, path, a.SHADOW, end, x, y, z)
                release(m, e)
                return
            gap = travel - (end - t0)
            if k == 0 and gap > 0.0:
                place(m, e, end + gap / (1.0 + 2.0 * a.MAX_SPEED / w[a.A_CMAX]), tick)
                return
            t = t0 + travel
    if t != t:  # one of both was thrown out of all bounds in this tick: no sound comes there
        if m.entries[e, a.W_FIRST]:
            lost(m, s, j, path, a.FADED, end, q[0], q[1], q[2])
        release(m, e)
        return
    t = min(max(t, t0, start), end)
    push(m, t, a.EXACT, (m.signal_ids[s, a.I_ID] * m.nodes.shape[0] + j) * 64 + path, e, 0)


# ------------------------------------------------------------------ entries: `t` is the table of the medium's addresses


@_entry
def advance(t: Any, scene: Scene, tick: int, start: float, end: float, capacity: int) -> int:
    """Every event of the tick that ends at ``end``. Returns OK, or GROW / FLUSH: make room and call again."""
    m = a.views(t)
    many = 1
    if m.sound[a.A_MODE] == a.ISO:
        many += 2 * int(m.sound[a.A_ORDER])
    elif m.sound[a.A_MODE] == a.RAYS:
        many = a.PATHS if m.sound[a.A_ORDER] > 0.0 or m.sound[a.A_SUM] != 0.0 else 1
    bucket = tick & (a.WHEEL - 1)
    while True:
        if m.wheel[bucket] >= 0:
            if m.counters[a.C_HEAP] + 1 > m.times.shape[0]:
                return a.GROW
            if m.counters[a.C_OUT_REC] + 1 > m.rec_f.shape[0]:
                return a.FLUSH
            e = m.wheel[bucket]
            m.wheel[bucket] = m.entries[e, a.W_NEXT]
            if m.entries[e, a.W_NODE] == a.RETIRE:
                _retire(m, e, tick, end)
            else:
                _look(m, e, tick, start, end)
            continue
        if not m.counters[a.C_HEAP] or m.times[0] > end:
            return a.OK
        time, kind, key = m.times[0], m.heap[0, a.H_KIND], m.heap[0, a.H_KEY]
        p, q = m.heap[0, a.H_A], m.heap[0, a.H_B]
        fresh = kind == a.EMISSION
        records, entries = (capacity * many + 1, capacity * many + 1) if fresh else (1, 0)
        if m.counters[a.C_OUT_REC] + records > m.rec_f.shape[0] or m.counters[a.C_OUT_SENT] + 1 > m.sent_f.shape[0]:
            return a.FLUSH
        if (
            m.counters[a.C_HEAP] + 4 > m.times.shape[0]
            or m.counters[a.C_LEFT_W] < entries
            or m.counters[a.C_LEFT_O] < 1
            or m.counters[a.C_LEFT_E] < 2
            or m.counters[a.C_LIVE] + 1 > m.signals.shape[0]
        ):
            return a.GROW
        pop(m)
        if kind == a.EXACT:
            j = m.entries[p, a.W_NODE]
            slot = arrive(m, scene, p, time, tick, start)
            release(m, p)
            if slot >= 0:
                push(m, m.under[slot, a.O_END], a.END, key, slot, j)
        elif kind == a.END:
            row = finish(m, p, q)
            if m.rec_i[row, a.R_OUTCOME] == a.HEARD:
                _reply(m, row, q, time)
        else:
            _emit(m, p, q, time, tick, start, end, capacity)


@_entry
def request(t: Any, *emission: Any) -> bool:
    """See :func:`plan`, whose arguments after the first these are."""
    return bool(plan(a.views(t), *emission))


@_entry
def ping_by_itself(t: Any, node: int, time: float) -> bool:
    """Plan the first ping of a pinger; False when there is no room (grow, then ask again)."""
    return bool(_next_ping(a.views(t), node, time))


@_entry
def live_table(t: Any, time: float, table: Any, ids: Any) -> int:
    """Fill viewer rows (7 floats: f, SL, level, radius, origin; 3 ints: id, source, t0 ns); returns how many."""
    k, m = 0, a.views(t)
    for s in range(m.signals.shape[0]):
        if m.signal_ids[s, a.I_ID] == 0 or k >= table.shape[0]:
            continue
        g = m.signals[s]
        radius = m.sound[a.A_CMAX] * (time - g[a.S_T0])
        if radius > g[a.S_RMAX]:
            continue
        ids[k, 0], ids[k, 1], ids[k, 2] = m.signal_ids[s, a.I_ID], m.signal_ids[s, a.I_SOURCE], round(g[a.S_T0] * 1e9)
        table[k, 0], table[k, 1], table[k, 2], table[k, 3] = (
            g[a.E_FREQ],
            g[a.E_LEVEL],
            g[a.E_LEVEL] - loss(radius, m.sound[a.A_SPREAD], g[a.E_ALPHA]),
            radius,
        )
        table[k, 4], table[k, 5], table[k, 6] = g[a.S_X], g[a.S_Y], g[a.S_Z]
        k += 1
    return k
