"""Optional terms of the equation of motion, each adding to the force rows of one block.

Every function walks over the eight lanes with literal offsets; only where a table is read do the lanes
go one by one.  Sources are named at each term.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb

from wavesim_server.dynamics.lanes import (
    add,
    at,
    cell,
    greater,
    lesser,
    of,
    put,
    root,
    vector,
    where,
)
from wavesim_server.dynamics.rows import (
    A_EFFECT,
    ABS,
    AN,
    BALLASTS,
    CROSS,
    DELTA,
    F_C1,
    F_C2,
    F_H,
    F_K,
    F_S,
    F_T,
    F_W,
    F_Y,
    F_Z,
    FADE,
    FINS,
    FRICTION,
    G_Z,
    GRAVITY,
    HEAVE,
    KIND_PORT,
    KIND_TABLE,
    KIND_TERM,
    LANES,
    LAW,
    LEVEL,
    LIFTED,
    MA_V,
    MEM_A,
    MEM_C,
    MU,
    MUNK,
    NUR,
    ONE,
    PZ,
    RIGID_ROWS,
    ROT,
    SLOPE,
    SLOT_ANGLE,
    SLOT_BALLAST,
    SLOT_BUCKET,
    SLOT_FIN,
    SPEED,
    STATE_ROWS,
    SWIVELS,
    T_D,
    T_H,
    T_H2,
    T_L,
    TABLE_POINTS,
    TANK,
    TERM,
    THRUST,
    THRUSTERS,
    TMP,
    WING,
    F,
    G,
    K,
    X,
)
from wavesim_server.elementary import atan2, exp, log10, sin_cos

_inline = nb.njit(cache=True, error_model="numpy", forceinline=True)


@_inline
def _wrench(p: Any, row: int, w: Any) -> Any:
    """A force-and-torque column of the parameters times nu_r: speed along it at its place."""
    return (
        of(p, row) * at(w, NUR)
        + of(p, row + 1) * at(w, NUR + 1)
        + of(p, row + 2) * at(w, NUR + 2)
        + of(p, row + 3) * at(w, NUR + 3)
        + of(p, row + 4) * at(w, NUR + 4)
        + of(p, row + 5) * at(w, NUR + 5)
    )


@_inline
def _pull(w: Any, p: Any, row: int, size: Any) -> None:
    """F += column of the parameters times size."""
    for i in range(6):
        add(w, F + i, of(p, row + i) * size)


# ------------------------------------------------------------------ actuators


@_inline
def simple_thrusters(b: Any, p: Any, w: Any, count: int) -> None:
    """Thrust is the lagged command."""
    for k in range(count):
        _pull(w, p, T_H + 6 * k, at(w, AN + k) * at(b, A_EFFECT + k))


@_inline
def _thrust(p: Any, w: Any, k: int) -> Any:
    """c1 n + abs(n) (c2 n + c3 u_a), with coefficients by the sign of n."""
    o, n = T_L + LAW * k, at(w, AN + k)
    ahead = n > 0.0
    c1, c2 = where(ahead, of(p, o), of(p, o + 3)), where(ahead, of(p, o + 1), of(p, o + 4))
    c3 = where(ahead, of(p, o + 2), of(p, o + 5))
    most = of(p, o + 16)
    return lesser(greater(c1 * n + abs(n) * (c2 * n + c3 * _advance(p, w, k)), -most), most)


@_inline
def _advance(p: Any, w: Any, k: int) -> Any:
    """u_a: speed along the thruster or the whole speed through water (DUNE, Fossen's REMUS), times 1 - wake."""
    total = of(p, T_L + LAW * k + 10)
    along = _wrench(p, T_H + 6 * k, w)
    return ((1.0 - total) * along + total * at(w, SPEED)) * of(p, T_L + LAW * k + 11)


@_inline
def thrusters(b: Any, p: Any, w: Any, count: int, torque: bool) -> None:
    """Thrust by the laws, and the torque of propellers."""
    for k in range(count):
        effect = at(b, A_EFFECT + k)
        size = _thrust(p, w, k) * effect
        put(w, THRUST + k, size)
        _pull(w, p, T_H + 6 * k, size)
        if torque:
            o, n = T_L + LAW * k, at(w, AN + k)
            ahead = n > 0.0
            q2, q3 = where(ahead, of(p, o + 6), of(p, o + 8)), where(ahead, of(p, o + 7), of(p, o + 9))
            turn = abs(n) * (q2 * n + q3 * _advance(p, w, k)) * effect
            for i in range(3):
                add(w, F + 3 + i, turn * of(p, T_D + 3 * k + i))


@_inline
def table_thrusters(b: Any, p: Any, w: Any, kind: Any, tables: Any, count: int) -> None:
    """rho D^4 KT(J) n abs(n), J = u_a/(n D), KT from a table."""
    for k in range(count):
        table = kind[KIND_TABLE + FINS + k]
        if table < 0:
            continue
        o, n = T_L + LAW * k, at(w, AN + k)
        put(w, TMP, (_advance(p, w, k) / (n * of(p, o + 13)) - of(p, o + 14)) * of(p, o + 15))
        for l in range(LANES):
            place = cell(w, TMP, l)
            if cell(w, AN + k, l) == 0.0:
                place = 0.0
            place = min(max(place, 0.0), TABLE_POINTS - 1.000001)
            i = int(place)
            kt = tables[table, 0, i] + (place - i) * (tables[table, 0, i + 1] - tables[table, 0, i])
            w[TMP * LANES + l] = kt
        _pull(w, p, T_H + 6 * k, of(p, o + 12) * at(w, TMP) * n * abs(n) * at(b, A_EFFECT + k))


@_inline
def swivels(p: Any, w: Any, count: int) -> None:
    """Azimuths and jets: the thrust of the fixed direction, already added, is turned by its angle; a
    deflector scales the part along the fixed direction."""
    for k in range(min(count, SWIVELS)):
        sine, cosine = sin_cos(at(w, AN + SLOT_ANGLE + k))
        size = at(w, THRUST + k)
        _pull(w, p, T_H + 6 * k, size * (cosine * at(w, AN + SLOT_BUCKET + k) - 1.0))
        _pull(w, p, T_H2 + 6 * k, size * sine)


@_inline
def fins(b: Any, p: Any, w: Any, count: int) -> None:
    """Linear lift: 1/2 rho A CL_a abs(u) (u delta - w_n) along the normal."""
    for k in range(count):
        u, q, r = at(w, NUR), at(w, NUR + 4), at(w, NUR + 5)
        along = u + q * of(p, F_Z + k) - r * of(p, F_Y + k)
        wn = _wrench(p, F_H + 6 * k, w) * of(p, F_W + k)
        lift = of(p, F_K + k) * abs(along) * (along * at(w, AN + SLOT_FIN + k) - wn)
        _pull(w, p, F_H + 6 * k, lift * at(b, A_EFFECT + THRUSTERS + k))


@_inline
def fin_coefficients(b: Any, p: Any, w: Any, count: int) -> None:
    """Force and torque per angle and angle^2, times the square of the speed across the span."""
    for k in range(count):
        u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
        along = u * of(p, F_S + 3 * k) + v * of(p, F_S + 3 * k + 1) + z * of(p, F_S + 3 * k + 2)
        angle = at(w, AN + SLOT_FIN + k)
        size = (u * u + v * v + z * z - along * along) * angle * at(b, A_EFFECT + THRUSTERS + k)
        _pull(w, p, F_C1 + 6 * k, size)
        _pull(w, p, F_C2 + 6 * k, size * angle)


@_inline
def aerofoils(b: Any, p: Any, w: Any, kind: Any, tables: Any, count: int) -> None:
    """Lift and drag from a table at the local angle of attack; lift across, drag along the local flow."""
    for k in range(count):
        table = kind[KIND_TABLE + k]
        if table < 0:
            continue
        o = F_T + 13 * k
        for l in range(LANES):
            x, y, z = p[o], p[o + 1], p[o + 2]
            vp, vq, vr = cell(w, NUR + 3, l), cell(w, NUR + 4, l), cell(w, NUR + 5, l)
            u = cell(w, NUR, l) + vq * z - vr * y
            v = cell(w, NUR + 1, l) + vr * x - vp * z
            h = cell(w, NUR + 2, l) + vp * y - vq * x
            cx, cy, cz = p[o + 3], p[o + 4], p[o + 5]
            nx, ny, nz = p[o + 6], p[o + 7], p[o + 8]
            along, across = u * cx + v * cy + h * cz, u * nx + v * ny + h * nz
            speed2 = along * along + across * across
            if speed2 == 0.0:
                continue
            attack = cell(w, AN + SLOT_FIN + k, l) - atan2(across, along)
            turns = attack / (2.0 * math.pi)
            place = (turns - math.floor(turns + 0.5) + 0.5) * (TABLE_POINTS - 1)
            i = min(int(place), TABLE_POINTS - 2)
            cl = tables[table, 0, i] + (place - i) * (tables[table, 0, i + 1] - tables[table, 0, i])
            cd = tables[table, 1, i] + (place - i) * (tables[table, 1, i + 1] - tables[table, 1, i])
            size = p[o + 9] * math.sqrt(speed2) * cell(b, A_EFFECT + THRUSTERS + k, l)
            fc = size * (cl * across - cd * along)
            fn = size * (cl * along - cd * across)
            fx, fy, fz = fc * cx + fn * nx, fc * cy + fn * ny, fc * cz + fn * nz
            w[F * LANES + l] += fx
            w[(F + 1) * LANES + l] += fy
            w[(F + 2) * LANES + l] += fz
            w[(F + 3) * LANES + l] += y * fz - z * fy
            w[(F + 4) * LANES + l] += z * fx - x * fz
            w[(F + 5) * LANES + l] += x * fy - y * fx


@_inline
def ballast(p: Any, w: Any) -> None:
    """Weight of the ballast in each tank, kg times g; its inertia is small and left out."""
    for k in range(BALLASTS):
        weight = at(w, AN + SLOT_BALLAST + k) * of(p, GRAVITY)
        fx, fy, fz = weight * at(w, ROT + 6), weight * at(w, ROT + 7), weight * at(w, ROT + 8)
        x, y, z = of(p, TANK + 3 * k), of(p, TANK + 3 * k + 1), of(p, TANK + 3 * k + 2)
        add(w, F, fx)
        add(w, F + 1, fy)
        add(w, F + 2, fz)
        add(w, F + 3, y * fz - z * fy)
        add(w, F + 4, z * fx - x * fz)
        add(w, F + 5, x * fy - y * fx)


# ------------------------------------------------------------------ hull


@_inline
def basis(w: Any, fins: int) -> None:
    """abs(nu_r), U, U^2, 1/U and the fin angles, for the terms that need them."""
    u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
    square = u * u + v * v + z * z
    speed = root(square)
    put(w, ONE, vector(1.0))
    put(w, SPEED, speed)
    put(w, SPEED + 1, square)
    put(w, SPEED + 2, 1.0 / greater(speed, 1e-6))
    for i in range(6):
        put(w, ABS + i, abs(at(w, NUR + i)))
    for i in range(fins):
        put(w, DELTA + i, at(w, AN + SLOT_FIN + i))


@_inline
def seakeeping(p: Any, w: Any) -> None:
    """Hulls on the surface: in heave the water that they carry is lifted, not swept along. Its inertia acts against the
    vertical acceleration w' - u q + v p, drag and memory against the vertical speed, as in linear seakeeping theory
    (Fossen 2021, sec. 6.3 and 5.4); along the body's z axis they would make it porpoise at speed."""
    u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
    put(w, HEAVE, at(w, ROT + 6) * u + at(w, ROT + 7) * v + at(w, ROT + 8) * z)
    turn = u * at(w, NUR + 4) - v * at(w, NUR + 3)
    for i in range(6):
        add(w, F + i, of(p, LIFTED + i) * turn)


@_inline
def named(p: Any, w: Any, kind: Any, count: int) -> None:
    """Named hydrodynamic derivatives: coefficient times up to four factors, added to one axis."""
    for t in range(count):
        o = KIND_TERM + 5 * t
        factors = at(w, ONE + kind[o + 1]) * at(w, ONE + kind[o + 2]) * at(w, ONE + kind[o + 3])
        add(w, F + kind[o], of(p, TERM + t) * factors * at(w, ONE + kind[o + 4]))


@_inline
def _strip_integrals(v: Any, r: Any, h: Any) -> tuple[Any, Any]:
    """Integrals over x in [-h, h] of s abs(s) and x s abs(s), s = v + x r, exactly."""
    low, high = v - r * h, v + r * h
    sign = where(v < 0.0, -1.0, 1.0)
    turns = abs(r) * h > abs(v)  # the flow changes sides along the hull
    by = 1.0 / where(turns, r, 1.0)
    al, ah = abs(low), abs(high)
    cubes = (ah * ah * ah - al * al * al) / 3.0
    fourths = 0.25 * (ah * ah * ah * high - al * al * al * low)
    cube = h * h * h
    y = where(turns, cubes * by, sign * (2.0 * h * v * v + 2.0 / 3.0 * cube * r * r))
    n = where(turns, (fourths - v * cubes) * by * by, sign * (4.0 / 3.0) * cube * v * r)
    return y, n


@_inline
def cross_flow(p: Any, w: Any) -> None:
    """Cross-flow drag along the hull (Faltinsen 1990): exact integral, sway-yaw and heave-pitch."""
    h, x = of(p, CROSS + 4), of(p, CROSS + 5)
    v, r, q = at(w, NUR + 1), at(w, NUR + 5), -at(w, NUR + 4)
    y, n = _strip_integrals(v + x * r, r, h)
    z, m = _strip_integrals(at(w, HEAVE) + x * q, q, h)
    still = abs(v) < of(p, CROSS + 6)
    add(w, F + 1, where(still, 0.0, -of(p, CROSS) * y))
    add(w, F + 5, where(still, 0.0, -of(p, CROSS + 1) * (n + x * y)))
    add(w, F + 2, -of(p, CROSS + 2) * z)
    add(w, F + 4, of(p, CROSS + 3) * (m + x * z))


@_inline
def cross_flow_strips(p: Any, w: Any, strips: int) -> None:
    """The same as a sum over strips, each of width L/(strips - 1), as some codes have it; to compare."""
    h = of(p, CROSS + 4)
    dx = 2.0 * h / float(strips - 1)
    for i in range(strips):
        x = float(i) * dx - h
        s, t = at(w, NUR + 1) + x * at(w, NUR + 5), at(w, NUR + 2) - x * at(w, NUR + 4)
        add(w, F + 1, -of(p, CROSS) * s * abs(s) * dx)
        add(w, F + 5, -of(p, CROSS + 1) * x * s * abs(s) * dx)
        add(w, F + 2, -of(p, CROSS + 2) * t * abs(t) * dx)
        add(w, F + 4, of(p, CROSS + 3) * x * t * abs(t) * dx)


@_inline
def friction(p: Any, w: Any) -> None:
    """Surge friction by the ITTC 1957 line: X = -c (0.075/(log10 Rn - 2)^2 + k) u abs(u). Below Rn = 1000
    the coefficient stays that of 1000, where the line is no longer meant."""
    u = at(w, NUR)
    lg = log10(greater(abs(u) * of(p, FRICTION + 2), 1000.0)) - 2.0
    add(w, F, -of(p, FRICTION) * (0.075 / (lg * lg) + of(p, FRICTION + 1)) * u * abs(u))


@_inline
def fading(p: Any, w: Any) -> None:
    """Linear drag that fades as exp(-k U) (Fossen 2021, ch. 8: low-speed damping)."""
    u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
    faded = exp(-(of(p, FADE + 6) * root(u * u + v * v + z * z)))
    for i in range(6):
        add(w, F + i, -of(p, FADE + i) * faded * at(w, NUR + i))


@_inline
def wing(p: Any, w: Any) -> None:
    """Lift and drag of the hull as a slender wing at the angle of attack atan2(w, u) (Fossen 2021, ch. 8)."""
    u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
    plane = root(u * u + z * z)
    still = plane <= 0.0
    attack = atan2(z, u)
    size = of(p, WING) * (u * u + v * v + z * z)
    cl = of(p, WING + 1) * attack
    cd = of(p, WING + 2) + cl * cl * of(p, WING + 3)
    safe = where(still, 1.0, plane)
    c, s = where(still, 1.0, u / safe), z / safe
    add(w, F, size * (s * cl - c * cd))
    add(w, F + 2, -size * (s * cd + c * cl))


@_inline
def without_munk(p: Any, w: Any) -> None:
    """Take out single elements of C_A(nu_r), which some published models set to zero."""
    a1, a2, a3 = _wrench(p, MA_V, w), _wrench(p, MA_V + 6, w), _wrench(p, MA_V + 12, w)
    u, v, z, q, r = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2), at(w, NUR + 4), at(w, NUR + 5)
    add(w, F, a3 * q * of(p, MUNK) - a2 * r * of(p, MUNK + 1))
    add(w, F + 1, a1 * r * of(p, MUNK + 2))
    add(w, F + 2, -a1 * q * of(p, MUNK + 3))
    add(w, F + 4, a1 * z * of(p, MUNK + 5) - a3 * u * of(p, MUNK + 4))
    add(w, F + 5, a2 * u * of(p, MUNK + 6) - a1 * v * of(p, MUNK + 7))


@_inline
def restoring(b: Any, p: Any, w: Any) -> None:
    """Linear restoring -G [z, phi, theta] about the equilibrium, over the water plane at the body and its slope."""
    z = at(w, X + PZ) - at(b, LEVEL) - of(p, G_Z)
    sx, sy = -at(b, SLOPE), -at(b, SLOPE + 1)
    unit = 1.0 / root(1.0 + sx * sx + sy * sy)
    s = -(unit * (at(w, ROT + 6) + sx * at(w, ROT) + sy * at(w, ROT + 3)))
    y = unit * (at(w, ROT + 7) + sx * at(w, ROT + 1) + sy * at(w, ROT + 4))
    c = unit * (at(w, ROT + 8) + sx * at(w, ROT + 2) + sy * at(w, ROT + 5))
    theta, phi = atan2(s, root(greater(1.0 - s * s, 0.0))), atan2(y, c)
    for i in range(6):
        o = G + 3 * i
        add(w, F + i, -(of(p, o) * z + of(p, o + 1) * phi + of(p, o + 2) * theta))


@_inline
def memory(p: Any, w: Any, kind: Any, count: int, stage: int) -> None:
    """Radiation force -mu by linear systems, mu = c . x, x the companion form driven by nu_r."""
    for m in range(count):
        o = KIND_PORT + 4 * m
        last, first = kind[o + 2] - 1, kind[o + 3]
        k, x = K + STATE_ROWS * stage + RIGID_ROWS + first, X + MU + first
        drive, force = at(w, kind[o]) - of(p, MEM_A + first) * at(w, x), of(p, MEM_C + first) * at(w, x)
        for i in range(1, last + 1):
            put(w, k + i - 1, at(w, x + i))
            drive = drive - of(p, MEM_A + first + i) * at(w, x + i)
            force = force + of(p, MEM_C + first + i) * at(w, x + i)
        put(w, k + last, drive)
        add(w, F + kind[o + 1], -force)
