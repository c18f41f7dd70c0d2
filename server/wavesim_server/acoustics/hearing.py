"""What a node makes of a signal: level, Doppler, detection, collisions, what its instrument reports, compiled."""

from __future__ import annotations

import math
from typing import Any

import numba as nb

from wavesim_server.acoustics import layout as a
from wavesim_server.acoustics import paths, rays, tubes
from wavesim_server.acoustics.layout import Medium
from wavesim_server.draws import normal, uniform
from wavesim_server.elementary import acos, atan2, cos, exp, hypot, log, log10, power, sin_cos
from wavesim_server.pointers import inner as _njit

_plain = nb.njit(cache=True, error_model="numpy")


@_njit
def where(m: Medium, tick: int, j: int, u: float) -> tuple[float, float, float, float, float, float]:
    """Position and velocity of a transducer at the share ``u`` of a tick: cubic between both ends."""
    p, q, h = m.places[(tick - 1) & 1, j], m.places[tick & 1, j], m.sound[a.A_STEP]
    w = 1.0 - u
    b, d, e = u * u * (3.0 - 2.0 * u), u * w * w * h, -u * u * w * h
    k, f, g = 6.0 * u * w / h, w * (1.0 - 3.0 * u), u * (3.0 * u - 2.0)
    return (
        p[0] + b * (q[0] - p[0]) + d * p[3] + e * q[3],
        p[1] + b * (q[1] - p[1]) + d * p[4] + e * q[4],
        p[2] + b * (q[2] - p[2]) + d * p[5] + e * q[5],
        k * (q[0] - p[0]) + f * p[3] + g * q[3],
        k * (q[1] - p[1]) + f * p[4] + g * q[4],
        k * (q[2] - p[2]) + f * p[5] + g * q[5],
    )


@_njit
def attitude(m: Medium, tick: int, j: int, u: float) -> tuple[float, float, float, float]:
    """q_WB at the share ``u`` of a tick: the chord between both ends, made a unit."""
    p, q = m.places[(tick - 1) & 1, j], m.places[tick & 1, j]
    s = 1.0 if p[6] * q[6] + p[7] * q[7] + p[8] * q[8] + p[9] * q[9] >= 0.0 else -1.0
    w, x, y, z = (
        p[6] + u * (s * q[6] - p[6]),
        p[7] + u * (s * q[7] - p[7]),
        p[8] + u * (s * q[8] - p[8]),
        p[9] + u * (s * q[9] - p[9]),
    )
    n = math.sqrt(w * w + x * x + y * y + z * z)
    return w / n, x / n, y / n, z / n


@_njit
def turn(w: float, x: float, y: float, z: float, bx: float, by: float, bz: float) -> tuple[float, float, float]:
    """A vector of B in W."""
    tx, ty, tz = 2.0 * (y * bz - z * by), 2.0 * (z * bx - x * bz), 2.0 * (x * by - y * bx)
    return bx + w * tx + y * tz - z * ty, by + w * ty + z * tx - x * tz, bz + w * tz + x * ty - y * tx


@_njit
def gain(m: Medium, k: int, ax: float, ay: float, az: float, nx: float, ny: float, nz: float) -> float:
    """Loss in dB of a beam along an axis of W towards a direction of W."""
    degrees = math.degrees(acos(min(max(ax * nx + ay * ny + az * nz, -1.0), 1.0)))
    i = min(int(degrees), 179)
    return float(m.beams[k, i] + (degrees - i) * (m.beams[k, i + 1] - m.beams[k, i]))


@_plain
def spreading_loss(r: float, spreading: float) -> float:
    """Spreading in dB over r metres: of spheres where it is by tubes, which say more than a distance alone."""
    return (spreading if spreading > 0.0 else 20.0) * log10(max(r, 1.0))


@_plain
def loss(r: float, spreading: float, alpha: float) -> float:
    """Transmission loss in dB over r metres; nothing is lost within the first metre."""
    return spreading_loss(r, spreading) + alpha * max(r, 1.0)


@_plain
def reach(excess: float, spreading: float, alpha: float) -> float:
    """Distance at which ``excess`` dB are lost (Newton in log r, from above)."""
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


@_njit
def clock(m: Medium, j: int, time: float) -> float:
    """What the clock of a node reads."""
    return float(time + m.nodes[j, a.N_OFFSET] + m.nodes[j, a.N_DRIFT] * time)


@_njit
def sounding(m: Medium, s: int, e: int, x: float, y: float, z: float) -> float:
    """Travel time of a candidate's path to a point, in a profile; NaN if there is none. ``m.ray`` then holds the ray.

    The ray is followed from where it was when last looked at. Where it has turned into one of another kind, as a ray
    whose turning point passes the receiver does, the ray with the nearest travel time takes its place.
    """
    g, w = m.signals[s], m.sound
    dx, dy = x - g[a.S_X], y - g[a.S_Y]
    across = math.sqrt(dx * dx + dy * dy)
    if w[a.A_MODE] == a.GRADIENT:
        if not rays.arc(w[a.A_C], w[a.A_G], w[a.A_BOTTOM], g[a.S_Z], z, across, m.ray):
            return math.nan
        return float(m.ray[rays.T])
    zs, zr, across = rays.within(m.profile_z, g[a.S_Z], z, across)
    path = m.entries[e, a.W_PATH]
    theta = rays.again(
        m.profile_z, m.profile_c, zs, zr, across, m.angles[e, 0], path % 2 == 1, path // 2, m.none, m.ray
    )
    if theta != theta:
        k = rays.nearest(
            m.profile_z,
            m.profile_c,
            zs,
            zr,
            across,
            int(w[a.A_ORDER]),
            m.angles[e, 1],
            m.fan_angles,
            m.fan_widths,
            m.fan_classes,
            m.fan_found,
            m.none,
            m.ray,
        )
        if k < 0:
            return math.nan
        theta = m.fan_found[k, 0]
        m.entries[e, a.W_PATH] = 2 * int(m.fan_found[k, 2]) + int(m.fan_found[k, 1])
    m.angles[e, 0], m.angles[e, 1] = theta, m.ray[rays.T]
    return float(m.ray[rays.T])


@_njit
def note(m: Medium, rf: Any, ri: Any, k: int, s: int, j: int, path: int, outcome: int, time: float) -> None:
    """Fill a record of a reception with what the signal brings along."""
    g, d = m.signals[s], m.signal_ids[s]
    f, i = rf[k], ri[k]
    i[a.R_ID], i[a.R_SOURCE], i[a.R_RECEIVER], i[a.R_QUERY] = d[a.I_ID], d[a.I_SOURCE], j, d[a.EI_QUERY]
    i[a.R_QSOURCE], i[a.R_OUTCOME], i[a.R_KIND], i[a.R_CODE] = d[a.EI_QSOURCE], outcome, d[a.EI_KIND], d[a.EI_CODE]
    i[a.R_FROM], i[a.R_TO] = d[a.I_FROM], d[a.EI_TO]
    i[a.R_SURFACE] = i[a.R_BOTTOM] = 0
    if m.sound[a.A_MODE] == a.ISO:
        i[a.R_SURFACE], i[a.R_BOTTOM] = paths.bounces(path)
    i[a.R_T0], i[a.R_ARRIVAL] = round(g[a.S_T0] * 1e9), round(time * 1e9)
    i[a.R_REPORTED] = i[a.R_ARRIVAL]
    f[a.R_FREQ], f[a.R_DURATION], f[a.R_NOISE] = g[a.E_FREQ], g[a.E_DURATION], g[a.E_NOISE]
    for c in (a.R_DOPPLER, a.R_LEVEL, a.R_RANGE, a.R_MEASURED, a.R_ONE_WAY, a.R_AZIMUTH, a.R_ELEVATION, a.R_HEARD_FREQ,
              a.R_HEARD_LEVEL):  # fmt: skip
        f[c] = math.nan


@_njit
def lost(m: Medium, s: int, j: int, path: int, outcome: int, time: float, x: float, y: float, z: float) -> None:
    """A record of a signal that did not come to a reception."""
    k = m.counters[a.C_OUT_REC]
    m.counters[a.C_OUT_REC] += 1
    note(m, m.rec_f, m.rec_i, k, s, j, path, outcome, time)
    f, g = m.rec_f[k], m.signals[s]
    dx, dy, dz = x - g[a.S_X], y - g[a.S_Y], z - g[a.S_Z]
    f[a.R_DISTANCE] = math.sqrt(dx * dx + dy * dy + dz * dz)
    f[a.R_POSITION], f[a.R_POSITION + 1], f[a.R_POSITION + 2] = x, y, z


@_njit
def _barred(m: Medium, scene: Any, s: int, path: int, angle: float, x: float, y: float, z: float) -> bool:
    """Whether something stands in the way of a path."""
    g, n = m.signals[s], 0
    if m.sound[a.A_MODE] == a.ISO:
        n = paths.unfold(path, m.sound[a.A_BOTTOM], g[a.S_X], g[a.S_Y], g[a.S_Z], x, y, z, m.points)
    else:
        n = _bend(m, s, path, angle, x, y, z)
    return paths.blocked(scene.fixed, scene.bed, scene.net, scene.cursor, m.points, n)


@_njit
def _bend(m: Medium, s: int, path: int, angle: float, x: float, y: float, z: float) -> int:
    """Points along a ray, for obstacles; returns how many."""
    g = m.signals[s]
    dx, dy = x - g[a.S_X], y - g[a.S_Y]
    across = math.sqrt(dx * dx + dy * dy)
    p = m.points
    p[0, 0], p[0, 1], p[0, 2] = g[a.S_X], g[a.S_Y], g[a.S_Z]
    n = 1
    if m.sound[a.A_MODE] == a.GRADIENT:  # a circle through both ends: chords of an eighth
        rise, fall = m.ray[rays.SIN_SOURCE], m.ray[rays.SIN_RECEIVER]
        slope_a, slope_b = rise / math.sqrt(1.0 - rise * rise + 1e-12), fall / math.sqrt(1.0 - fall * fall + 1e-12)
        for i in range(1, 8):
            u = i / 8.0
            w = 1.0 - u
            p[n, 0], p[n, 1] = g[a.S_X] + u * dx, g[a.S_Y] + u * dy
            p[n, 2] = (
                g[a.S_Z]
                + u * u * (3.0 - 2.0 * u) * (z - g[a.S_Z])
                + across * (u * w * w * slope_a - u * u * w * slope_b)
            )
            n += 1
    else:
        deep = m.profile_z[-1]
        here, level = 0.0, min(max(g[a.S_Z], 0.0), deep)
        slow = cos(angle) / rays.speed(m.profile_z, m.profile_c, level)
        down = path % 2 == 1
        track = m.points[128:, :2]
        for r in range(path // 2 + 1):
            last = r == path // 2
            stop = z if last else (deep + 1.0 if down else -1.0)
            way, _, _, end, _, count = rays.march(m.profile_z, m.profile_c, slow, level, down, stop, track)
            for i in range(count):
                if n < 120:
                    k = (here + track[i, 0]) / across if across > 0.0 else 0.0
                    p[n, 0], p[n, 1], p[n, 2] = g[a.S_X] + k * dx, g[a.S_Y] + k * dy, track[i, 1]
                    n += 1
            here, level, down = here + way, end, not down
    p[n, 0], p[n, 1], p[n, 2] = x, y, z
    return n + 1


@_njit
def _detected(m: Medium, j: int, number: int) -> bool:
    for k in range(a.DETECTED):
        if m.detected[j, k] == number:
            return True
    o = m.first[j]
    while o >= 0:
        if m.under_i[o, a.R_ID] == number and m.under_i[o, a.R_OUTCOME] == a.HEARD:
            return True
        o = m.under_ids[o, a.O_NEXT]
    return False


@_njit
def arrive(m: Medium, scene: Any, e: int, time: float, tick: int, start: float) -> int:
    """The front of a signal crosses a transducer. Returns the reception under way that this starts; -1 = none."""
    s, j, path = m.entries[e, a.W_SIGNAL], m.entries[e, a.W_NODE], m.entries[e, a.W_PATH]
    g, n, w = m.signals[s], m.nodes[j], m.sound
    u = (time - start) / w[a.A_STEP]
    x, y, z, vx, vy, vz = where(m, tick, j, u)
    ox, oy, oz = g[a.S_X], g[a.S_Y], g[a.S_Z]
    surface = bottom = caustics = 0
    extra = sine_top = sine_bed = 0.0
    spread = -1.0  # until a tube says it
    if w[a.A_MODE] == a.ISO:
        dx, dy, dz = x - ox, y - oy, z - paths.image(oz, w[a.A_BOTTOM], path)
        length = math.sqrt(dx * dx + dy * dy + dz * dz)
        far = max(length, 1e-9)
        rx, ry, rz = dx / far, dy / far, dz / far
        surface, bottom = paths.bounces(path)
        sx, sy, sz = rx, ry, -rz if (surface + bottom) % 2 else rz
        c_source = c_here = w[a.A_C]
        sine_top = sine_bed = abs(rz)
        if bottom:
            extra += bottom * paths.bottom_loss(abs(rz), w[a.A_DENSITY], w[a.A_RATIO], w[a.A_ATTEN])
    else:
        travel = sounding(m, s, e, x, y, z)
        path = m.entries[e, a.W_PATH]
        if travel != travel:
            if m.entries[e, a.W_FIRST]:
                lost(m, s, j, path, a.SHADOW, time, x, y, z)
            return -1
        ray = m.ray
        length = ray[rays.S]
        dx, dy = x - ox, y - oy
        far = math.sqrt(dx * dx + dy * dy)
        hx, hy = (dx / far, dy / far) if far > 1e-9 else (1.0, 0.0)
        if w[a.A_MODE] == a.GRADIENT:
            c_source, c_here = w[a.A_C] + w[a.A_G] * oz, w[a.A_C] + w[a.A_G] * z
            sz, rz = ray[rays.SIN_SOURCE], ray[rays.SIN_RECEIVER]
            if w[a.A_SPREAD] == 0.0:
                spread = tubes.arc(far, length, sz, c_source, c_here)
        else:
            c_source, c_here = rays.speed(m.profile_z, m.profile_c, oz), rays.speed(m.profile_z, m.profile_c, z)
            down = path % 2 == 1
            sz = ray[rays.SIN_SOURCE] if down else -ray[rays.SIN_SOURCE]
            arrives_down = down == (path // 2 % 2 == 0)
            rz = ray[rays.SIN_RECEIVER] if arrives_down else -ray[rays.SIN_RECEIVER]
            surface, bottom = int(ray[rays.SURFACE]), int(ray[rays.BOTTOM])
            sine_top, sine_bed = rays.sine(ray[rays.P] * m.profile_c[0]), ray[rays.SIN_BOTTOM]
            if w[a.A_SPREAD] == 0.0:
                zs, zr, _ = rays.within(m.profile_z, oz, z, far)
                spread, caustics = tubes.tube(m.profile_z, m.profile_c, zs, zr, down, path // 2, ray)
            if bottom:
                extra += bottom * paths.bottom_loss(ray[rays.SIN_BOTTOM], w[a.A_DENSITY], w[a.A_RATIO], w[a.A_ATTEN])
        cs, cr = math.sqrt(max(1.0 - sz * sz, 0.0)), math.sqrt(max(1.0 - rz * rz, 0.0))
        sx, sy, rx, ry = cs * hx, cs * hy, cr * hx, cr * hy
    if surface:
        rough = tubes.surface_loss(sine_top, g[a.E_FREQ], c_here, w[a.A_ROUGH], w[a.A_BUBBLES])
        extra += surface * (w[a.A_SURFACE_LOSS] + rough)
    if g[a.S_BEAM] >= 0.0:
        extra += gain(m, int(g[a.S_BEAM]), g[a.S_AXIS], g[a.S_AXIS + 1], g[a.S_AXIS + 2], sx, sy, sz)
    if n[a.N_BEAM] >= 0.0:
        qw, qx, qy, qz = attitude(m, tick, j, u)
        ax, ay, az = turn(qw, qx, qy, qz, m.axes[j, 0], m.axes[j, 1], m.axes[j, 2])
        extra += gain(m, int(n[a.N_BEAM]), ax, ay, az, -rx, -ry, -rz)
    if spread < 0.0:
        spread = spreading_loss(length, w[a.A_SPREAD])
    level = g[a.E_LEVEL] - spread - g[a.E_ALPHA] * max(length, 1.0) - extra
    toward = rx * vx + ry * vy + rz * vz
    left = sx * g[a.S_VX] + sy * g[a.S_VY] + sz * g[a.S_VZ]
    shift = g[a.E_FREQ] * ((1.0 - toward / c_here) / (1.0 - left / c_source) - 1.0)
    noise = g[a.E_NOISE]
    if n[a.N_SELF] > 0.0:
        own = n[a.N_SELF] + n[a.N_SELF_SLOPE] * math.sqrt(vx * vx + vy * vy + vz * vz)
        own += 10.0 * log10(max(g[a.E_BAND], 1.0))
        noise = 10.0 * log10(power(10.0, 0.1 * noise) + power(10.0, 0.1 * own))
    frequency = g[a.E_FREQ] + shift

    outcome = a.HEARD
    if level < g[a.E_NOISE] + w[a.A_FLOOR]:
        outcome = a.FADED
    elif frequency < n[a.N_LOW] or frequency > n[a.N_HIGH]:
        outcome = a.OUT_OF_BAND
    if outcome == a.HEARD and w[a.A_BLOCK] != 0.0 and _barred(m, scene, s, path, m.angles[e, 0], x, y, z):
        outcome = a.BLOCKED
    if outcome != a.HEARD and not m.entries[e, a.W_FIRST]:
        return -1  # an echo that cannot be heard leaves no trace
    begun = outcome == a.HEARD
    if begun:
        if n[a.N_TX_START] <= time < n[a.N_TX_END]:
            outcome = a.TRANSMITTING
        elif n[a.N_DEAF] != 0.0 and time < n[a.N_READY]:
            outcome = a.RECHARGING
        elif (level - noise < n[a.N_SNR]) if n[a.N_SNR] == n[a.N_SNR] else (level < n[a.N_THRESHOLD]):
            outcome = a.BELOW_THRESHOLD
        elif w[a.A_ECHOES] != 0.0 and _detected(m, j, m.signal_ids[s, a.I_ID]):
            outcome = a.ECHO

    slot = -1
    if begun:
        slot = m.counters[a.C_FREE_O]
        m.counters[a.C_FREE_O] = m.under_ids[slot, a.O_NEXT]
        m.counters[a.C_LEFT_O] -= 1
        f, i, k = m.under_f, m.under_i, slot
    else:
        f, i, k = m.rec_f, m.rec_i, m.counters[a.C_OUT_REC]
        m.counters[a.C_OUT_REC] += 1
    note(m, f, i, k, s, j, path, outcome, time)
    dx, dy, dz = x - ox, y - oy, z - oz
    i[k, a.R_SURFACE], i[k, a.R_BOTTOM] = surface, bottom
    f[k, a.R_LEVEL], f[k, a.R_DOPPLER], f[k, a.R_NOISE], f[k, a.R_RANGE] = level, shift, noise, length
    f[k, a.R_DISTANCE] = math.sqrt(dx * dx + dy * dy + dz * dz)
    f[k, a.R_POSITION], f[k, a.R_POSITION + 1], f[k, a.R_POSITION + 2] = x, y, z
    if not begun:
        return -1
    if w[a.A_SUM] != 0.0:
        phase = 0.0
        if w[a.A_SUM] == a.COHERENT:
            turns = math.pi * surface - 0.5 * math.pi * caustics
            if bottom:
                turns += bottom * tubes.bottom_phase(sine_bed, w[a.A_DENSITY], w[a.A_RATIO], w[a.A_ATTEN])
            cycles = g[a.E_FREQ] * (time - g[a.S_T0])
            phase = turns - 2.0 * math.pi * (cycles - math.floor(cycles))
        _add(m, j, slot, outcome == a.ECHO, level, phase)
    o = m.under[slot]
    o[a.O_END], o[a.O_BAND], o[a.O_BITS] = time + g[a.E_DURATION], 0.5 * g[a.E_BAND], g[a.E_BITS]
    o[a.O_QT0], o[a.O_TAT], o[a.O_CLOCK], o[a.O_TIME] = g[a.E_QT0], g[a.E_TAT], g[a.S_CLOCK], time
    o[a.O_COUNT] = m.signal_ids[s, a.I_COUNT] * 64 + path
    m.under_keys[slot] = m.keys[j] ^ (m.signal_keys[s] * 3)
    _collide(m, j, slot)
    if m.under_i[slot, a.R_OUTCOME] == a.HEARD and n[a.N_HEAD] >= 0.0:
        _bearing(m, s, j, path, slot, time, tick, start, rx, ry, rz, c_here, length)
    m.under_ids[slot, a.O_NODE], m.under_ids[slot, a.O_NEXT] = j, m.first[j]
    m.first[j] = slot
    return int(slot)


@_njit
def _add(m: Medium, j: int, slot: int, echo: bool, level: float, phase: float) -> None:
    """The path of a reception that begins joins those of the same signal that its node is hearing: of ``under``, real and
    imaginary part of the pressure, or its square."""
    if echo:
        own = m.under_i[slot, a.R_ID]
        slot = m.first[j]
        while slot >= 0 and not (m.under_i[slot, a.R_ID] == own and m.under_i[slot, a.R_OUTCOME] == a.HEARD):
            slot = m.under_ids[slot, a.O_NEXT]
        if slot < 0:
            return  # its reception has ended
    else:
        m.under[slot, a.O_REAL] = m.under[slot, a.O_IMAG] = 0.0
    coherent = m.sound[a.A_SUM] == a.COHERENT
    size = power(10.0, (0.05 if coherent else 0.1) * level)
    sine, cosine = sin_cos(phase)
    m.under[slot, a.O_REAL] += size * cosine
    m.under[slot, a.O_IMAG] += size * sine


@_njit
def _collide(m: Medium, j: int, new: int) -> None:
    """Receptions that overlap in time and band are lost, unless one is stronger by the capture ratio."""
    i, f, capture = m.under_i, m.under_f, m.nodes[j, a.N_CAPTURE]
    o = m.first[j]
    while o >= 0:
        codes = i[o, a.R_CODE] != i[new, a.R_CODE] and i[o, a.R_CODE] != 0 and i[new, a.R_CODE] != 0
        gap = abs(f[o, a.R_FREQ] + f[o, a.R_DOPPLER] - f[new, a.R_FREQ] - f[new, a.R_DOPPLER])
        near = gap < m.under[o, a.O_BAND] + m.under[new, a.O_BAND] or gap == 0.0
        if near and not codes and i[o, a.R_ID] != i[new, a.R_ID]:
            if i[new, a.R_OUTCOME] == a.HEARD and f[new, a.R_LEVEL] < f[o, a.R_LEVEL] + capture:
                i[new, a.R_OUTCOME] = a.COLLISION
            if i[o, a.R_OUTCOME] == a.HEARD and f[o, a.R_LEVEL] < f[new, a.R_LEVEL] + capture:
                i[o, a.R_OUTCOME] = a.COLLISION
        o = m.under_ids[o, a.O_NEXT]


@_njit
def _bearing(
    m: Medium,
    s: int,
    j: int,
    path: int,
    slot: int,
    time: float,
    tick: int,
    start: float,
    rx: float,
    ry: float,
    rz: float,
    c: float,
    length: float,
) -> None:
    """Direction of arrival from the times at the hydrophones, by the sound speed that the head assumes."""
    head = int(m.nodes[j, a.N_HEAD])
    data, g, h = m.head_data[head], m.signals[s], m.sound[a.A_STEP]
    sx = sy = sz = 0.0
    for k in range(int(data[0])):
        row = m.heads[head, k]
        t = time
        for _ in range(4):
            u = (t - start) / h
            x, y, z, vx, vy, vz = where(m, tick, j, u)
            w, qx, qy, qz = attitude(m, tick, j, u)
            ax, ay, az = turn(w, qx, qy, qz, row[0], row[1], row[2])
            if m.sound[a.A_MODE] == a.ISO:
                dx, dy = x + ax - g[a.S_X], y + ay - g[a.S_Y]
                dz = z + az - paths.image(g[a.S_Z], m.sound[a.A_BOTTOM], path)
                far = math.sqrt(dx * dx + dy * dy + dz * dz)
                t -= (far - c * (t - g[a.S_T0])) / ((dx * vx + dy * vy + dz * vz) / max(far, 1e-9) - c)
            else:  # the ray is straight over the head; its front is curved with the length of the path
                along = ax * rx + ay * ry + az * rz
                bow = (ax * ax + ay * ay + az * az - along * along) / (2.0 * max(length, 1.0))
                t = time + (along + bow) / (c - (rx * vx + ry * vy + rz * vz))
        delay = t - time
        if data[3] > 0.0:
            delay += data[3] * normal(m.under_keys[slot], int(m.under[slot, a.O_COUNT]), 8 + k)
        if data[4] > 0.0:
            delay = round((time + delay) / data[4]) * data[4] - time
        sx, sy, sz = sx + row[3] * delay, sy + row[4] * delay, sz + row[5] * delay
    nx, ny, nz = -sx * data[2], -sy * data[2], -sz * data[2]
    if data[1] == 2.0:
        side = math.sqrt(max(1.0 - nx * nx - ny * ny - nz * nz, 0.0))
        nx, ny, nz = nx + side * data[5], ny + side * data[6], nz + side * data[7]
    m.under_f[slot, a.R_AZIMUTH] = atan2(ny, nx)
    m.under_f[slot, a.R_ELEVATION] = atan2(nz, math.sqrt(nx * nx + ny * ny))


@_njit
def finish(m: Medium, slot: int, j: int) -> int:
    """A reception ends: what the instrument makes of it is recorded. Returns the row of its record."""
    f, i, o, n = m.under_f[slot], m.under_i[slot], m.under[slot], m.nodes[j]
    at = m.first[j]
    if at == slot:
        m.first[j] = m.under_ids[slot, a.O_NEXT]
    else:
        while at >= 0:
            following = m.under_ids[at, a.O_NEXT]
            if following == slot:
                m.under_ids[at, a.O_NEXT] = m.under_ids[slot, a.O_NEXT]
                break
            at = following
    if n[a.N_ACTIVE] == 0.0 or n[a.N_SINCE] > o[a.O_TIME]:
        i[a.R_OUTCOME] = a.RECEIVER_LEFT
    if m.sound[a.A_SUM] != 0.0 and i[a.R_OUTCOME] != a.ECHO:
        size = max(hypot(o[a.O_REAL], o[a.O_IMAG]), 1e-30)
        f[a.R_LEVEL] = (20.0 if m.sound[a.A_SUM] == a.COHERENT else 10.0) * log10(size)
    key, count = m.under_keys[slot], int(o[a.O_COUNT])
    if i[a.R_OUTCOME] == a.HEARD:
        if n[a.N_DROP] > 0.0 and uniform(key, count, 0) < n[a.N_DROP]:
            i[a.R_OUTCOME] = a.DROPPED
        elif n[a.N_BIT_ERROR] > 0.0 and uniform(key, count, 1) > power(1.0 - n[a.N_BIT_ERROR], o[a.O_BITS]):
            i[a.R_OUTCOME] = a.CORRUPT
    reported = clock(m, j, o[a.O_TIME])
    if i[a.R_OUTCOME] == a.HEARD:
        m.counters[a.C_HEARD] += 1
        if m.sound[a.A_ECHOES] != 0.0:
            k = m.detected[j, a.DETECTED]
            m.detected[j, k] = i[a.R_ID]
            m.detected[j, a.DETECTED] = (k + 1) % a.DETECTED
        if n[a.N_TIMING] > 0.0:
            reported += n[a.N_TIMING] * normal(key, count, 2)
        if n[a.N_OUTLIER] > 0.0 and uniform(key, count, 2) < n[a.N_OUTLIER]:
            reported += n[a.N_OUTLIER_TIME] * uniform(key, count, 3)
        if n[a.N_RESOLUTION] > 0.0:
            reported = round(reported / n[a.N_RESOLUTION]) * n[a.N_RESOLUTION]
        f[a.R_HEARD_FREQ] = f[a.R_FREQ] + f[a.R_DOPPLER]
        if n[a.N_DOPPLER_NOISE] > 0.0:
            f[a.R_HEARD_FREQ] += n[a.N_DOPPLER_NOISE] * normal(key, count, 3)
        f[a.R_HEARD_LEVEL] = f[a.R_LEVEL]
        if n[a.N_LEVEL_NOISE] > 0.0:
            f[a.R_HEARD_LEVEL] += n[a.N_LEVEL_NOISE] * normal(key, count, 4)
        f[a.R_ONE_WAY] = n[a.N_ASSUMED] * (reported - o[a.O_CLOCK])
        if i[a.R_QSOURCE] == j and i[a.R_QUERY] > 0:
            f[a.R_MEASURED] = 0.5 * n[a.N_ASSUMED] * (reported - clock(m, j, o[a.O_QT0]) - o[a.O_TAT])
    i[a.R_REPORTED] = round(reported * 1e9)
    row = m.counters[a.C_OUT_REC]
    m.counters[a.C_OUT_REC] += 1
    for c in range(a.RECEPTION_WIDTH):
        m.rec_i[row, c] = i[c]
    m.under_ids[slot, a.O_NEXT] = m.counters[a.C_FREE_O]
    m.counters[a.C_FREE_O] = slot
    m.counters[a.C_LEFT_O] += 1
    return int(row)
