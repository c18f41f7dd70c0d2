"""The equation of motion for all vehicles, compiled.

    M nu' = tau - C_RB(nu) nu - C_A(nu_r) nu_r - D(nu_r) nu_r - M_A [w x v_c; 0] + gravity + buoyancy

with M = M_RB + M_A, nu_r = nu - nu_c, and D = D_L + abs(u_r) L + D_Q abs(nu_r) (element by element).
Fossen 2021, chapters 6 to 8; the current is irrotational and constant within a step.  Classical
Runge-Kutta of fourth order; the lagged actuators are evaluated exactly at its three times, so
the order is kept.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb

from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics.rows import (
    A_0,
    A_1,
    A_CMD,
    A_DECAY,
    A_H,
    A_N,
    A_RATE,
    ACC,
    ACTUATORS,
    CB,
    CURRENT,
    DL,
    DQ,
    EXT,
    F_H,
    F_K,
    F_W,
    F_Y,
    F_Z,
    FB,
    FULL_B,
    HALF,
    IB,
    LANES,
    LEVEL,
    LIFT,
    MA,
    MASS,
    MINV,
    MOOR,
    PRESENT,
    PX,
    PY,
    PZ,
    QW,
    QX,
    QY,
    QZ,
    RB,
    REACH,
    RG,
    SHAPE,
    STATE_ROWS,
    T_C,
    T_H,
    TAU,
    WEIGHT,
    X0,
    K,
    U,
)

_njit = nb.njit(cache=True, error_model="numpy")
_inline = nb.njit(cache=True, error_model="numpy", inline="always")


@_inline
def _at(b: Any, row: int, lane: int) -> float:
    return b[row * LANES + lane]


@_inline
def _row(b: Any, row: int, lane: int, x0: float, x1: float, x2: float, x3: float, x4: float, x5: float) -> float:
    """One row of a 6x6 matrix times a vector."""
    o = row * LANES + lane
    return (
        b[o] * x0
        + b[o + LANES] * x1
        + b[o + 2 * LANES] * x2
        + b[o + 3 * LANES] * x3
        + b[o + 4 * LANES] * x4
        + b[o + 5 * LANES] * x5
    )


@_inline
def _row3(b: Any, row: int, lane: int, x0: float, x1: float, x2: float) -> float:
    """The first three columns of one row of a 6x6 matrix times a vector."""
    o = row * LANES + lane
    return b[o] * x0 + b[o + LANES] * x1 + b[o + 2 * LANES] * x2


@_inline
def _drag(
    b: Any,
    i: int,
    lane: int,
    s: float,
    u: float,
    v: float,
    w: float,
    p: float,
    q: float,
    r: float,
    au: float,
    av: float,
    aw: float,
    ap: float,
    aq: float,
    ar: float,
) -> float:
    """Row i of (D_L + s L + D_Q abs) nu_r."""
    o = (DL + 6 * i) * LANES + lane
    f = (LIFT + 6 * i) * LANES + lane
    z = (DQ + 6 * i) * LANES + lane
    return (
        (b[o] + s * b[f] + b[z] * au) * u
        + (b[o + LANES] + s * b[f + LANES] + b[z + LANES] * av) * v
        + (b[o + 2 * LANES] + s * b[f + 2 * LANES] + b[z + 2 * LANES] * aw) * w
        + (b[o + 3 * LANES] + s * b[f + 3 * LANES] + b[z + 3 * LANES] * ap) * p
        + (b[o + 4 * LANES] + s * b[f + 4 * LANES] + b[z + 4 * LANES] * aq) * q
        + (b[o + 5 * LANES] + s * b[f + 5 * LANES] + b[z + 5 * LANES] * ar) * r
    )


@_njit
def hydrostatic(b: Any, lane: int) -> None:
    """Buoyancy and its centre for one lane at its present pose."""
    if _at(b, PRESENT, lane) == 0.0:
        return
    z = _at(b, PZ, lane) - _at(b, LEVEL, lane)
    full = _at(b, FULL_B, lane)
    if z >= _at(b, REACH, lane):
        fraction, mx, my, mz = 1.0, 0.0, 0.0, 0.0
    elif z <= -_at(b, REACH, lane):
        fraction, mx, my, mz = 0.0, 0.0, 0.0, 0.0
    else:
        w, x, y, q = _at(b, QW, lane), _at(b, QX, lane), _at(b, QY, lane), _at(b, QZ, lane)
        nx = 2.0 * (x * q - w * y)
        ny = 2.0 * (y * q + w * x)
        nz = 1.0 - 2.0 * (x * x + y * y)
        h0, h1, h2 = _at(b, HALF, lane), _at(b, HALF + 1, lane), _at(b, HALF + 2, lane)
        shape = _at(b, SHAPE, lane)
        if shape == 0.0:
            volume, mx, my, mz = hydrostatics.box(h0, h1, h2, nx, ny, nz, -z)
            whole = 8.0 * h0 * h1 * h2
        elif shape == 1.0:
            volume, mx, my, mz = hydrostatics.cylinder(h0, h1, nx, ny, nz, -z)
            whole = 2.0 * math.pi * h1 * h1 * h0
        else:
            volume, m = hydrostatics.sphere(h0, -z)
            mx, my, mz = m * nx, m * ny, m * nz
            whole = 4.0 / 3.0 * math.pi * h0**3
        fraction = volume / whole
        if volume > 0.0:
            mx, my, mz = mx / volume, my / volume, mz / volume
    b[FB * LANES + lane] = full * fraction
    b[CB * LANES + lane] = _at(b, RB, lane) + mx
    b[(CB + 1) * LANES + lane] = _at(b, RB + 1, lane) + my
    b[(CB + 2) * LANES + lane] = _at(b, RB + 2, lane) + mz


@_inline
def _thruster(b: Any, k: int, lane: int, u: float, v: float, w: float, p: float, q: float, r: float) -> float:
    """Thrust of thruster k."""
    n = _at(b, A_N + k, lane)
    ua = _row(b, T_H + 6 * k, lane, u, v, w, p, q, r)
    return _at(b, T_C + k, lane) * n + abs(n) * (_at(b, T_C + 8 + k, lane) * n + _at(b, T_C + 16 + k, lane) * ua)


@_inline
def _fin(b: Any, k: int, lane: int, u: float, v: float, w: float, p: float, q: float, r: float) -> float:
    """Normal force of fin k."""
    wn = _row(b, F_H + 6 * k, lane, u, v, w, p, q, r)
    along = u + q * _at(b, F_Z + k, lane) - r * _at(b, F_Y + k, lane)
    return _at(b, F_K + k, lane) * abs(along) * (along * _at(b, A_N + 8 + k, lane) - _at(b, F_W + k, lane) * wn)


@_inline
def _relative(b: Any, lane: int) -> tuple[float, float, float, float, float, float]:
    """Velocity through the water, and the current, both in B: (u, v, w, cu, cv, cw)."""
    q0, q1, q2, q3 = _at(b, QW, lane), _at(b, QX, lane), _at(b, QY, lane), _at(b, QZ, lane)
    x, y, z = _at(b, CURRENT, lane), _at(b, CURRENT + 1, lane), _at(b, CURRENT + 2, lane)
    cu = (1.0 - 2.0 * (q2 * q2 + q3 * q3)) * x + 2.0 * (q1 * q2 + q3 * q0) * y + 2.0 * (q1 * q3 - q2 * q0) * z
    cv = 2.0 * (q1 * q2 - q3 * q0) * x + (1.0 - 2.0 * (q1 * q1 + q3 * q3)) * y + 2.0 * (q2 * q3 + q1 * q0) * z
    cw = 2.0 * (q1 * q3 + q2 * q0) * x + 2.0 * (q2 * q3 - q1 * q0) * y + (1.0 - 2.0 * (q1 * q1 + q2 * q2)) * z
    return _at(b, U, lane) - cu, _at(b, U + 1, lane) - cv, _at(b, U + 2, lane) - cw, cu, cv, cw


@_njit
def actuator_forces(b: Any, thrusters: int, fins: int) -> None:
    """TAU of all lanes from the actuators' values in this stage."""
    for l in range(LANES):
        u, v, w, _, _, _ = _relative(b, l)
        p, q, r = _at(b, U + 3, l), _at(b, U + 4, l), _at(b, U + 5, l)
        t0 = _thruster(b, 0, l, u, v, w, p, q, r)
        t1 = _thruster(b, 1, l, u, v, w, p, q, r)
        for i in range(6):
            b[(TAU + i) * LANES + l] = _at(b, EXT + i, l) + _at(b, T_H + i, l) * t0 + _at(b, T_H + 6 + i, l) * t1
    if thrusters > 2:  # written out: with a variable index the compiler gives up the lanes
        for l in range(LANES):
            u, v, w, _, _, _ = _relative(b, l)
            p, q, r = _at(b, U + 3, l), _at(b, U + 4, l), _at(b, U + 5, l)
            t2 = _thruster(b, 2, l, u, v, w, p, q, r)
            t3 = _thruster(b, 3, l, u, v, w, p, q, r)
            t4 = _thruster(b, 4, l, u, v, w, p, q, r)
            t5 = _thruster(b, 5, l, u, v, w, p, q, r)
            t6 = _thruster(b, 6, l, u, v, w, p, q, r)
            t7 = _thruster(b, 7, l, u, v, w, p, q, r)
            for i in range(6):
                b[(TAU + i) * LANES + l] += (
                    _at(b, T_H + 12 + i, l) * t2
                    + _at(b, T_H + 18 + i, l) * t3
                    + _at(b, T_H + 24 + i, l) * t4
                    + _at(b, T_H + 30 + i, l) * t5
                    + _at(b, T_H + 36 + i, l) * t6
                    + _at(b, T_H + 42 + i, l) * t7
                )
    if fins:
        for l in range(LANES):
            u, v, w, _, _, _ = _relative(b, l)
            p, q, r = _at(b, U + 3, l), _at(b, U + 4, l), _at(b, U + 5, l)
            f0 = _fin(b, 0, l, u, v, w, p, q, r)
            f1 = _fin(b, 1, l, u, v, w, p, q, r)
            f2 = _fin(b, 2, l, u, v, w, p, q, r)
            f3 = _fin(b, 3, l, u, v, w, p, q, r)
            for i in range(6):
                b[(TAU + i) * LANES + l] += (
                    _at(b, F_H + i, l) * f0
                    + _at(b, F_H + 6 + i, l) * f1
                    + _at(b, F_H + 12 + i, l) * f2
                    + _at(b, F_H + 18 + i, l) * f3
                )


@_njit
def derivative(b: Any) -> None:
    """K of all lanes from the state and TAU."""
    for l in range(LANES):
        q0, q1, q2, q3 = _at(b, QW, l), _at(b, QX, l), _at(b, QY, l), _at(b, QZ, l)
        u, v, w = _at(b, U, l), _at(b, U + 1, l), _at(b, U + 2, l)
        p, q, r = _at(b, U + 3, l), _at(b, U + 4, l), _at(b, U + 5, l)
        ur, vr, wr, cu, cv, cw = _relative(b, l)
        # R_WB
        r11, r12, r13 = 1.0 - 2.0 * (q2 * q2 + q3 * q3), 2.0 * (q1 * q2 - q3 * q0), 2.0 * (q1 * q3 + q2 * q0)
        r21, r22, r23 = 2.0 * (q1 * q2 + q3 * q0), 1.0 - 2.0 * (q1 * q1 + q3 * q3), 2.0 * (q2 * q3 - q1 * q0)
        r31, r32, r33 = 2.0 * (q1 * q3 - q2 * q0), 2.0 * (q2 * q3 + q1 * q0), 1.0 - 2.0 * (q1 * q1 + q2 * q2)
        xd, yd, zd = r11 * u + r12 * v + r13 * w, r21 * u + r22 * v + r23 * w, r31 * u + r32 * v + r33 * w
        # drag
        au, av, aw, ap, aq, ar = abs(ur), abs(vr), abs(wr), abs(p), abs(q), abs(r)
        fx = _at(b, TAU, l) - _drag(b, 0, l, au, ur, vr, wr, p, q, r, au, av, aw, ap, aq, ar)
        fy = _at(b, TAU + 1, l) - _drag(b, 1, l, au, ur, vr, wr, p, q, r, au, av, aw, ap, aq, ar)
        fz = _at(b, TAU + 2, l) - _drag(b, 2, l, au, ur, vr, wr, p, q, r, au, av, aw, ap, aq, ar)
        fk = _at(b, TAU + 3, l) - _drag(b, 3, l, au, ur, vr, wr, p, q, r, au, av, aw, ap, aq, ar)
        fm = _at(b, TAU + 4, l) - _drag(b, 4, l, au, ur, vr, wr, p, q, r, au, av, aw, ap, aq, ar)
        fn = _at(b, TAU + 5, l) - _drag(b, 5, l, au, ur, vr, wr, p, q, r, au, av, aw, ap, aq, ar)
        # rigid body: momentum h = m (v + w x r_g), k = I_b w + m r_g x v; C nu = [w x h; w x k + v x h]
        m = _at(b, MASS, l)
        gx, gy, gz = _at(b, RG, l), _at(b, RG + 1, l), _at(b, RG + 2, l)
        hx, hy, hz = m * (u + q * gz - r * gy), m * (v + r * gx - p * gz), m * (w + p * gy - q * gx)
        kx = _at(b, IB, l) * p + _at(b, IB + 1, l) * q + _at(b, IB + 2, l) * r + m * (gy * w - gz * v)
        ky = _at(b, IB + 3, l) * p + _at(b, IB + 4, l) * q + _at(b, IB + 5, l) * r + m * (gz * u - gx * w)
        kz = _at(b, IB + 6, l) * p + _at(b, IB + 7, l) * q + _at(b, IB + 8, l) * r + m * (gx * v - gy * u)
        fx -= q * hz - r * hy
        fy -= r * hx - p * hz
        fz -= p * hy - q * hx
        fk -= q * kz - r * ky + v * hz - w * hy
        fm -= r * kx - p * kz + w * hx - u * hz
        fn -= p * ky - q * kx + u * hy - v * hx
        # added mass, with the relative velocity
        hx = _row(b, MA, l, ur, vr, wr, p, q, r)
        hy = _row(b, MA + 6, l, ur, vr, wr, p, q, r)
        hz = _row(b, MA + 12, l, ur, vr, wr, p, q, r)
        kx = _row(b, MA + 18, l, ur, vr, wr, p, q, r)
        ky = _row(b, MA + 24, l, ur, vr, wr, p, q, r)
        kz = _row(b, MA + 30, l, ur, vr, wr, p, q, r)
        fx -= q * hz - r * hy
        fy -= r * hx - p * hz
        fz -= p * hy - q * hx
        fk -= q * kz - r * ky + vr * hz - wr * hy
        fm -= r * kx - p * kz + wr * hx - ur * hz
        fn -= p * ky - q * kx + ur * hy - vr * hx
        # the current turns in B: nu_c' = [-w x v_c; 0]
        ax, ay, az = q * cw - r * cv, r * cu - p * cw, p * cv - q * cu
        fx -= _row3(b, MA, l, ax, ay, az)
        fy -= _row3(b, MA + 6, l, ax, ay, az)
        fz -= _row3(b, MA + 12, l, ax, ay, az)
        fk -= _row3(b, MA + 18, l, ax, ay, az)
        fm -= _row3(b, MA + 24, l, ax, ay, az)
        fn -= _row3(b, MA + 30, l, ax, ay, az)
        # weight and buoyancy
        wgt, buo = _at(b, WEIGHT, l), _at(b, FB, l)
        bx, by, bz = _at(b, CB, l), _at(b, CB + 1, l), _at(b, CB + 2, l)
        net = wgt - buo
        fx += net * r31
        fy += net * r32
        fz += net * r33
        lx, ly, lz = wgt * gx - buo * bx, wgt * gy - buo * by, wgt * gz - buo * bz
        fk += ly * r33 - lz * r32
        fm += lz * r31 - lx * r33
        fn += lx * r32 - ly * r31
        # mooring line, at the origin of the body
        dx, dy, dz = (
            _at(b, MOOR, l) - _at(b, PX, l),
            _at(b, MOOR + 1, l) - _at(b, PY, l),
            _at(b, MOOR + 2, l) - _at(b, PZ, l),
        )
        dist = math.sqrt(dx * dx + dy * dy + dz * dz) + 1e-12
        stretch = dist - _at(b, MOOR + 3, l)
        pull = _at(b, MOOR + 4, l) * stretch - _at(b, MOOR + 5, l) * (dx * xd + dy * yd + dz * zd) / dist
        pull = max(pull, 0.0) / dist if stretch > 0.0 else 0.0
        dx, dy, dz = dx * pull, dy * pull, dz * pull
        fx += r11 * dx + r21 * dy + r31 * dz
        fy += r12 * dx + r22 * dy + r32 * dz
        fz += r13 * dx + r23 * dy + r33 * dz
        # derivatives
        b[(K + PX) * LANES + l] = xd
        b[(K + PY) * LANES + l] = yd
        b[(K + PZ) * LANES + l] = zd
        b[(K + QW) * LANES + l] = -0.5 * (q1 * p + q2 * q + q3 * r)
        b[(K + QX) * LANES + l] = 0.5 * (q0 * p + q2 * r - q3 * q)
        b[(K + QY) * LANES + l] = 0.5 * (q0 * q + q3 * p - q1 * r)
        b[(K + QZ) * LANES + l] = 0.5 * (q0 * r + q1 * q - q2 * p)
        b[(K + U) * LANES + l] = _row(b, MINV, l, fx, fy, fz, fk, fm, fn)
        b[(K + U + 1) * LANES + l] = _row(b, MINV + 6, l, fx, fy, fz, fk, fm, fn)
        b[(K + U + 2) * LANES + l] = _row(b, MINV + 12, l, fx, fy, fz, fk, fm, fn)
        b[(K + U + 3) * LANES + l] = _row(b, MINV + 18, l, fx, fy, fz, fk, fm, fn)
        b[(K + U + 4) * LANES + l] = _row(b, MINV + 24, l, fx, fy, fz, fk, fm, fn)
        b[(K + U + 5) * LANES + l] = _row(b, MINV + 30, l, fx, fy, fz, fk, fm, fn)


@_njit
def actuators(b: Any) -> None:
    """Lag and rate limit: values at the start, the middle and the end of the step, exactly."""
    for i in range(ACTUATORS * LANES):
        now = b[A_1 * LANES + i]
        command, decay, rate = b[A_CMD * LANES + i], b[A_DECAY * LANES + i], b[A_RATE * LANES + i]
        half = now + min(max((command - now) * (1.0 - decay), -rate), rate)
        b[A_0 * LANES + i] = now
        b[A_H * LANES + i] = half
        b[A_1 * LANES + i] = half + min(max((command - half) * (1.0 - decay), -rate), rate)


@_njit
def _stage(b: Any, values: int, thrusters: int, fins: int, floats: int) -> None:
    if thrusters or fins:
        for i in range(ACTUATORS * LANES):
            b[A_N * LANES + i] = b[values * LANES + i]
    if floats:
        for l in range(LANES):
            hydrostatic(b, l)
    actuator_forces(b, thrusters, fins)
    derivative(b)


@_njit
def step_block(b: Any, h: float, thrusters: int, fins: int) -> None:
    """One Runge-Kutta step of one block; ``thrusters`` and ``fins`` are the most that a lane has."""
    if thrusters or fins:
        actuators(b)
    # Far below the surface the buoyancy is constant within a step.
    floats = 0
    for l in range(LANES):
        if b[PRESENT * LANES + l] != 0.0 and b[PZ * LANES + l] - b[LEVEL * LANES + l] < b[REACH * LANES + l] + 1.0:
            floats = 1
    if not floats:
        for l in range(LANES):
            hydrostatic(b, l)
    n = STATE_ROWS * LANES
    for i in range(n):
        b[X0 * LANES + i] = b[i]
    _stage(b, A_0, thrusters, fins, floats)
    for i in range(n):
        b[ACC * LANES + i] = b[K * LANES + i]
        b[i] = b[X0 * LANES + i] + 0.5 * h * b[K * LANES + i]
    _stage(b, A_H, thrusters, fins, floats)
    for i in range(n):
        b[ACC * LANES + i] += 2.0 * b[K * LANES + i]
        b[i] = b[X0 * LANES + i] + 0.5 * h * b[K * LANES + i]
    _stage(b, A_H, thrusters, fins, floats)
    for i in range(n):
        b[ACC * LANES + i] += 2.0 * b[K * LANES + i]
        b[i] = b[X0 * LANES + i] + h * b[K * LANES + i]
    _stage(b, A_1, thrusters, fins, floats)
    for i in range(n):
        b[i] = b[X0 * LANES + i] + h / 6.0 * (b[ACC * LANES + i] + b[K * LANES + i])
    for l in range(LANES):
        w, x, y, z = _at(b, QW, l), _at(b, QX, l), _at(b, QY, l), _at(b, QZ, l)
        s = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
        b[QW * LANES + l] = w * s
        b[QX * LANES + l] = x * s
        b[QY * LANES + l] = y * s
        b[QZ * LANES + l] = z * s


@_njit
def step_all(blocks: Any, counts: Any, h: float) -> None:
    """One step of every block. ``blocks`` (n, BLOCK), ``counts`` (n, 3): bodies, thrusters, fins."""
    for i in range(blocks.shape[0]):
        if counts[i, 0]:
            step_block(blocks[i], h, counts[i, 1], counts[i, 2])
