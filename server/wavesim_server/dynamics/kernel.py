"""The equation of motion for all bodies, compiled.

    M nu_r' = tau - C(nu_r) nu_r - D(nu_r) nu_r + gravity + buoyancy + ...,   nu' = nu_r' + [v_c x w; 0]

with M = M_RB + M_A and nu_r = nu - nu_c.  For a current that is constant in the world this is the usual form
M_RB nu' + C_RB(nu) nu + M_A nu_r' + C_A(nu_r) nu_r exactly (Fossen 2021, sec. 10.3: C_RB in the form that
does not hold linear velocity), with one matrix less.  D = D_L + abs(u_r) L + D_Q abs(nu_r), element by
element; the other terms are in :mod:`wavesim_server.dynamics.terms`.

Integrators of fixed step: semi-implicit Euler, classical Runge-Kutta, Dormand & Prince's fifth order.
Lagged actuators are evaluated exactly at the integrator's times, so the order is kept; current, wind and
waves are held over a step.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb
import numpy as np

from wavesim_server.dynamics import hydrostatics, terms
from wavesim_server.dynamics.lanes import add, at, cell, greater, lesser, of, put, root, where
from wavesim_server.dynamics.rows import (
    A_CMD,
    A_GAIN,
    A_JUMP,
    A_NOW,
    A_RATE,
    ACCEL,
    AN,
    BLOCK_BODIES,
    BLOCK_KIND,
    BLOCK_MOORED,
    BY_GRAVITY,
    CB,
    CURRENT,
    DL,
    DOWN,
    DQ,
    ENV,
    EXT,
    FB,
    FREE,
    FULL_B,
    HALF,
    HAS_AEROFOIL,
    HAS_BALLAST,
    HAS_CROSS,
    HAS_FADE,
    HAS_FIN,
    HAS_FIN_COEFFICIENTS,
    HAS_FRICTION,
    HAS_G,
    HAS_KT_TABLE,
    HAS_LAW,
    HAS_LIFT,
    HAS_MEMORY,
    HAS_MUNK,
    HAS_STRIPS,
    HAS_SWIVEL,
    HAS_TERMS,
    HAS_TORQUE,
    HAS_WING,
    HEAVE,
    IS_FULL,
    KIND_FINS,
    KIND_FLAGS,
    KIND_MEMORY,
    KIND_STATES,
    KIND_STRIPS,
    KIND_TERMS,
    KIND_THRUSTERS,
    LANES,
    LEVEL,
    LIFT,
    MINV,
    MOOR,
    NUR,
    ON_SURFACE,
    PRESENT,
    PULL,
    PX,
    PY,
    PZ,
    QW,
    QX,
    QY,
    QZ,
    RB,
    REACH,
    ROT,
    SHAPE,
    SLOPE,
    SLOT_ANGLE,
    SLOT_FIN,
    SLOTS,
    STATE_ROWS,
    TMP,
    WATER,
    WEIGHT,
    WG,
    F,
    K,
    M,
    U,
    X,
)

_njit = nb.njit(cache=True, error_model="numpy")
_inline = nb.njit(cache=True, error_model="numpy", forceinline=True)

EULER, RK4, DP5 = 0, 1, 2
#: times of the integrators' stages as parts of the step; the first is 1, see A_GAIN
TIMES = {EULER: (1.0,), RK4: (1.0, 0.5), DP5: (1.0, 0.2, 0.3, 0.8, 8.0 / 9.0)}
#: weights of earlier stages, of all stages in the sum, times, and which of TIMES each is (-1: the start)
_WEIGHTS, _SUM, _TIME = np.zeros((3, 6, 6)), np.zeros((3, 6)), np.zeros((3, 6))
_GAIN = np.full((3, 6), -1)
_COUNT = np.array([1, 4, 6])
_SUM[EULER, 0] = 1.0
_WEIGHTS[RK4, [1, 2, 3], [0, 1, 2]] = 0.5, 0.5, 1.0
_SUM[RK4, :4] = 1 / 6, 1 / 3, 1 / 3, 1 / 6
_TIME[RK4, :4], _GAIN[RK4, 1:4] = (0.0, 0.5, 0.5, 1.0), (1, 1, 0)
# Dormand & Prince 1980
_WEIGHTS[DP5, 1, :1] = 1 / 5
_WEIGHTS[DP5, 2, :2] = 3 / 40, 9 / 40
_WEIGHTS[DP5, 3, :3] = 44 / 45, -56 / 15, 32 / 9
_WEIGHTS[DP5, 4, :4] = 19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729
_WEIGHTS[DP5, 5, :5] = 9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656
_SUM[DP5] = 35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84
_TIME[DP5], _GAIN[DP5, 1:] = (0.0, 0.2, 0.3, 0.8, 8 / 9, 1.0), (1, 2, 3, 4, 0)


@_inline
def _row(a: Any, row: int, x0: Any, x1: Any, x2: Any, x3: Any, x4: Any, x5: Any) -> Any:
    """One row of a 6x6 matrix times a vector."""
    return (
        of(a, row) * x0
        + of(a, row + 1) * x1
        + of(a, row + 2) * x2
        + of(a, row + 3) * x3
        + of(a, row + 4) * x4
        + of(a, row + 5) * x5
    )


@_inline
def _row3(a: Any, row: int, x0: Any, x1: Any, x2: Any) -> Any:
    """Every second element of one row of a 6x6 matrix times three numbers."""
    return of(a, row) * x0 + of(a, row + 2) * x1 + of(a, row + 4) * x2


@_inline
def _drag3(p: Any, i: int, j: int, x: Any, y: Any, z: Any) -> Any:
    """The part of row i of (D_L + D_Q abs(nu_r)) nu_r from columns j, j + 2, j + 4."""
    o, s = DL + 6 * i + j, DQ + 6 * i + j
    return (
        (of(p, o) + of(p, s) * abs(x)) * x
        + (of(p, o + 2) + of(p, s + 2) * abs(y)) * y
        + (of(p, o + 4) + of(p, s + 4) * abs(z)) * z
    )


@_inline
def kinematics(b: Any, p: Any, w: Any, k: int) -> None:
    """Rotation, velocity through the water and its acceleration, and the derivative of position and attitude into row k."""
    q0, q1, q2, q3 = at(w, X + QW), at(w, X + QX), at(w, X + QY), at(w, X + QZ)
    u, v, z = at(w, X + U), at(w, X + U + 1), at(w, X + U + 2)
    a, q, r = at(w, X + U + 3), at(w, X + U + 4), at(w, X + U + 5)
    r11, r12, r13 = 1.0 - 2.0 * (q2 * q2 + q3 * q3), 2.0 * (q1 * q2 - q3 * q0), 2.0 * (q1 * q3 + q2 * q0)
    r21, r22, r23 = 2.0 * (q1 * q2 + q3 * q0), 1.0 - 2.0 * (q1 * q1 + q3 * q3), 2.0 * (q2 * q3 - q1 * q0)
    r31, r32, r33 = 2.0 * (q1 * q3 - q2 * q0), 2.0 * (q2 * q3 + q1 * q0), 1.0 - 2.0 * (q1 * q1 + q2 * q2)
    x, y, d = at(b, CURRENT), at(b, CURRENT + 1), at(b, CURRENT + 2)
    cu, cv, cw = r11 * x + r21 * y + r31 * d, r12 * x + r22 * y + r32 * d, r13 * x + r23 * y + r33 * d
    put(w, k + PX, r11 * u + r12 * v + r13 * z)
    put(w, k + PY, r21 * u + r22 * v + r23 * z)
    put(w, k + PZ, r31 * u + r32 * v + r33 * z)
    put(w, k + QW, -0.5 * (q1 * a + q2 * q + q3 * r))
    put(w, k + QX, 0.5 * (q0 * a + q2 * r - q3 * q))
    put(w, k + QY, 0.5 * (q0 * q + q3 * a - q1 * r))
    put(w, k + QZ, 0.5 * (q0 * r + q1 * q - q2 * a))
    put(w, ROT, r11)
    put(w, ROT + 1, r12)
    put(w, ROT + 2, r13)
    put(w, ROT + 3, r21)
    put(w, ROT + 4, r22)
    put(w, ROT + 5, r23)
    put(w, ROT + 6, r31)
    put(w, ROT + 7, r32)
    put(w, ROT + 8, r33)
    put(w, WATER, cu)
    put(w, WATER + 1, cv)
    put(w, WATER + 2, cw)
    put(w, NUR, u - cu)
    put(w, NUR + 1, v - cv)
    put(w, NUR + 2, z - cw)
    put(w, HEAVE, z - cw)
    put(w, NUR + 3, a)
    put(w, NUR + 4, q)
    put(w, NUR + 5, r)
    x, y, d = at(b, ACCEL), at(b, ACCEL + 1), at(b, ACCEL + 2)
    ax, ay, az = r11 * x + r21 * y + r31 * d, r12 * x + r22 * y + r32 * d, r13 * x + r23 * y + r33 * d
    by = of(p, BY_GRAVITY)
    put(w, PULL, ax)
    put(w, PULL + 1, ay)
    put(w, PULL + 2, az)
    put(w, DOWN, r31 - by * ax)
    put(w, DOWN + 1, r32 - by * ay)
    put(w, DOWN + 2, r33 - by * az)


@_inline
def body_lift(p: Any, w: Any) -> None:
    """Body lift and the fins' share of it: -abs(u_r) L nu_r."""
    u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
    a, q, r = at(w, NUR + 3), at(w, NUR + 4), at(w, NUR + 5)
    for i in range(6):
        put(w, F + i, at(w, F + i) - (abs(u) * _row(p, LIFT + 6 * i, u, v, z, a, q, r)))


@_inline
def _coriolis_and_weight(
    p: Any, w: Any, hx: Any, hy: Any, hz: Any, kx: Any, ky: Any, kz: Any
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Force rows less C(nu_r) nu_r, plus weight and buoyancy; h and k are the momentum M nu_r."""
    u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
    a, q, r = at(w, NUR + 3), at(w, NUR + 4), at(w, NUR + 5)
    r1, r2, r3 = at(w, DOWN), at(w, DOWN + 1), at(w, DOWN + 2)
    buoyancy = at(w, FB)
    net = of(p, WEIGHT) - buoyancy
    lx = of(p, WG) - buoyancy * at(w, CB)
    ly = of(p, WG + 1) - buoyancy * at(w, CB + 1)
    lz = of(p, WG + 2) - buoyancy * at(w, CB + 2)
    return (
        at(w, F) - (q * hz - r * hy) + net * r1,
        at(w, F + 1) - (r * hx - a * hz) + net * r2,
        at(w, F + 2) - (a * hy - q * hx) + net * r3,
        at(w, F + 3) - (q * kz - r * ky + v * hz - z * hy) + (ly * r3 - lz * r2),
        at(w, F + 4) - (r * kx - a * kz + z * hx - u * hz) + (lz * r1 - lx * r3),
        at(w, F + 5) - (a * ky - q * kx + u * hy - v * hx) + (lx * r2 - ly * r1),
    )


@_inline
def _turn_of_current(p: Any, w: Any) -> tuple[Any, Any, Any]:
    """v_c' in B of the degrees of freedom that move: how the water accelerates, and turns in B, [v_c x w]."""
    a, q, r = at(w, NUR + 3), at(w, NUR + 4), at(w, NUR + 5)
    cu, cv, cw = at(w, WATER), at(w, WATER + 1), at(w, WATER + 2)
    return (
        of(p, FREE) * (cv * r - cw * q + at(w, PULL)),
        of(p, FREE + 1) * (cw * a - cu * r + at(w, PULL + 1)),
        of(p, FREE + 2) * (cu * q - cv * a + at(w, PULL + 2)),
    )


@_inline
def solve(p: Any, w: Any, k: int) -> None:
    """Drag, Coriolis, gravity; then the accelerations into row k. Any couplings."""
    u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
    a, q, r = at(w, NUR + 3), at(w, NUR + 4), at(w, NUR + 5)
    hx, hy, hz = (
        _row(p, M, u, v, z, a, q, r),
        _row(p, M + 6, u, v, z, a, q, r),
        _row(p, M + 12, u, v, z, a, q, r),
    )
    kx, ky, kz = (
        _row(p, M + 18, u, v, z, a, q, r),
        _row(p, M + 24, u, v, z, a, q, r),
        _row(p, M + 30, u, v, z, a, q, r),
    )
    fx, fy, fz, fk, fm, fn = _coriolis_and_weight(p, w, hx, hy, hz, kx, ky, kz)
    z = at(w, HEAVE)
    fx -= _drag3(p, 0, 0, u, z, q) + _drag3(p, 0, 1, v, a, r)
    fy -= _drag3(p, 1, 0, u, z, q) + _drag3(p, 1, 1, v, a, r)
    fz -= _drag3(p, 2, 0, u, z, q) + _drag3(p, 2, 1, v, a, r)
    fk -= _drag3(p, 3, 0, u, z, q) + _drag3(p, 3, 1, v, a, r)
    fm -= _drag3(p, 4, 0, u, z, q) + _drag3(p, 4, 1, v, a, r)
    fn -= _drag3(p, 5, 0, u, z, q) + _drag3(p, 5, 1, v, a, r)
    tx, ty, tz = _turn_of_current(p, w)
    put(w, k + U, tx + _row(p, MINV, fx, fy, fz, fk, fm, fn))
    put(w, k + U + 1, ty + _row(p, MINV + 6, fx, fy, fz, fk, fm, fn))
    put(w, k + U + 2, tz + _row(p, MINV + 12, fx, fy, fz, fk, fm, fn))
    put(w, k + U + 3, _row(p, MINV + 18, fx, fy, fz, fk, fm, fn))
    put(w, k + U + 4, _row(p, MINV + 24, fx, fy, fz, fk, fm, fn))
    put(w, k + U + 5, _row(p, MINV + 30, fx, fy, fz, fk, fm, fn))


@_inline
def solve_symmetric(p: Any, w: Any, k: int) -> None:
    """The same for bodies that are alike to port and starboard: half of each matrix is zero."""
    u, v, z = at(w, NUR), at(w, NUR + 1), at(w, NUR + 2)
    a, q, r = at(w, NUR + 3), at(w, NUR + 4), at(w, NUR + 5)
    hx, hy, hz = _row3(p, M, u, z, q), _row3(p, M + 7, v, a, r), _row3(p, M + 12, u, z, q)
    kx, ky, kz = _row3(p, M + 19, v, a, r), _row3(p, M + 24, u, z, q), _row3(p, M + 31, v, a, r)
    fx, fy, fz, fk, fm, fn = _coriolis_and_weight(p, w, hx, hy, hz, kx, ky, kz)
    z = at(w, HEAVE)
    fx -= _drag3(p, 0, 0, u, z, q)
    fy -= _drag3(p, 1, 1, v, a, r)
    fz -= _drag3(p, 2, 0, u, z, q)
    fk -= _drag3(p, 3, 1, v, a, r)
    fm -= _drag3(p, 4, 0, u, z, q)
    fn -= _drag3(p, 5, 1, v, a, r)
    tx, ty, tz = _turn_of_current(p, w)
    put(w, k + U, tx + _row3(p, MINV, fx, fz, fm))
    put(w, k + U + 1, ty + _row3(p, MINV + 7, fy, fk, fn))
    put(w, k + U + 2, tz + _row3(p, MINV + 12, fx, fz, fm))
    put(w, k + U + 3, _row3(p, MINV + 19, fy, fk, fn))
    put(w, k + U + 4, _row3(p, MINV + 24, fx, fz, fm))
    put(w, k + U + 5, _row3(p, MINV + 31, fy, fk, fn))


@_inline
def mooring(b: Any, w: Any, k: int) -> None:
    """An elastic line from the origin of the body to its anchor; it pulls, never pushes."""
    dx = at(b, MOOR) - at(w, X + PX)
    dy = at(b, MOOR + 1) - at(w, X + PY)
    dz = at(b, MOOR + 2) - at(w, X + PZ)
    away = dx * at(w, k + PX) + dy * at(w, k + PY) + dz * at(w, k + PZ)
    dist = root(dx * dx + dy * dy + dz * dz) + 1e-12
    stretch = dist - at(b, MOOR + 3)
    pull = at(b, MOOR + 4) * stretch - at(b, MOOR + 5) * away / dist
    pull = where(stretch > 0.0, greater(pull, 0.0) / dist, 0.0)
    for i in range(3):
        add(w, F + i, pull * (at(w, ROT + i) * dx + at(w, ROT + 3 + i) * dy + at(w, ROT + 6 + i) * dz))


@_inline
def submerged(p: Any, w: Any) -> None:
    """Buoyancy of bodies that are under water in this whole step."""
    put(w, FB, of(p, FULL_B))
    put(w, CB, of(p, RB))
    put(w, CB + 1, of(p, RB + 1))
    put(w, CB + 2, of(p, RB + 2))


@_inline
def floating(b: Any, p: Any, w: Any) -> None:
    """Buoyancy of bodies at the surface: the true volume under the local water plane and its centre. It acts against DOWN,
    upright on the slope of a wave whose water accelerates so."""
    z = at(w, X + PZ) - at(b, LEVEL)
    r31, r32, r33 = at(w, ROT + 6), at(w, ROT + 7), at(w, ROT + 8)
    sx, sy = -at(b, SLOPE), -at(b, SLOPE + 1)
    s = 1.0 / root(1.0 + sx * sx + sy * sy)
    nx = s * (r31 + sx * at(w, ROT) + sy * at(w, ROT + 3))
    ny = s * (r32 + sx * at(w, ROT + 1) + sy * at(w, ROT + 4))
    nz = s * (r33 + sx * at(w, ROT + 2) + sy * at(w, ROT + 5))
    put(w, TMP, nx)
    put(w, TMP + 1, ny)
    put(w, TMP + 2, nz)
    put(w, TMP + 3, -z * s)
    if p[SHAPE] == hydrostatics.SPHERE:
        radius = of(p, HALF)
        d = lesser(greater(-z * s, -radius), radius)
        cap = radius - d
        square = radius * radius - d * d
        volume = (math.pi / 3.0) * cap * cap * (3.0 * radius - cap)
        moment = (0.25 * math.pi) * square * square / greater(volume, 1e-300)
        put(w, FB, of(p, FULL_B) * volume / ((4.0 / 3.0 * math.pi) * radius * radius * radius))
        put(w, CB, of(p, RB) + moment * nx)
        put(w, CB + 1, of(p, RB + 1) + moment * ny)
        put(w, CB + 2, of(p, RB + 2) + moment * nz)
    elif p[SHAPE] == hydrostatics.BOX and _is_upright(b, p, w):
        _upright_box(p, w)
    else:
        for l in range(LANES):
            fraction, mx, my, mz = hydrostatics.submerged(
                p[SHAPE], p[HALF], p[HALF + 1], p[HALF + 2], p[REACH],
                cell(w, TMP, l), cell(w, TMP + 1, l), cell(w, TMP + 2, l), cell(w, TMP + 3, l),
            )  # fmt: skip
            w[FB * LANES + l] = p[FULL_B] * fraction
            w[CB * LANES + l] = p[RB] + mx
            w[(CB + 1) * LANES + l] = p[RB + 1] + my
            w[(CB + 2) * LANES + l] = p[RB + 2] + mz


@_njit
def _is_upright(b: Any, p: Any, w: Any) -> bool:
    """Whether the water plane cuts only the four upright edges of every box of a block."""
    for l in range(LANES):
        if cell(b, PRESENT, l) != 0.0:
            tilt = abs(cell(w, TMP, l)) * p[HALF] + abs(cell(w, TMP + 1, l)) * p[HALF + 1]
            if not tilt + abs(cell(w, TMP + 3, l)) < abs(cell(w, TMP + 2, l)) * p[HALF + 2]:
                return False
    return True


@_inline
def _upright_box(p: Any, w: Any) -> None:
    """Submerged part of boxes whose upright edges the water cuts: a column's depth is linear in x and y."""
    hx, hy, hz = of(p, HALF), of(p, HALF + 1), of(p, HALF + 2)
    nz = at(w, TMP + 2)
    nz = where(abs(nz) < 1e-9, 1.0, nz)  # lanes without a body
    level, tx, ty = at(w, TMP + 3) / nz, at(w, TMP) / nz, at(w, TMP + 1) / nz
    side = where(nz > 0.0, 1.0, -1.0)
    height = hz - side * level
    share = 1.0 / height
    square = level * level + (tx * tx * hx * hx + ty * ty * hy * hy) / 3.0
    put(w, FB, of(p, FULL_B) * height / (2.0 * hz))
    put(w, CB, of(p, RB) + side * tx * hx * hx / 3.0 * share)
    put(w, CB + 1, of(p, RB + 1) + side * ty * hy * hy / 3.0 * share)
    put(w, CB + 2, of(p, RB + 2) + side * 0.5 * (hz * hz - square) * share)


@_inline
def lag(b: Any, p: Any, w: Any, first: int, last: int, gain: int, part: float) -> None:
    """Lagged and rate-limited actuators at a part of the step, exactly; gain -1 is its start."""
    for k in range(first, last):
        now = at(b, A_NOW + k)
        change = at(b, A_CMD + k) - now
        if gain < 0:
            change = change * of(p, A_JUMP + k)
        else:
            rate = of(p, A_RATE + k) * part
            change = lesser(greater(change * of(p, A_GAIN + SLOTS * gain + k), -rate), rate)
        put(w, AN + k, now + change)


@_inline
def _lags(b: Any, p: Any, w: Any, kind: Any, gain: int, part: float) -> None:
    """All actuators that a kind has, as they are at a part of the step."""
    lag(b, p, w, 0, kind[KIND_THRUSTERS], gain, part)
    lag(b, p, w, SLOT_FIN, SLOT_FIN + kind[KIND_FINS], gain, part)
    if kind[KIND_FLAGS] & (HAS_SWIVEL | HAS_BALLAST):
        lag(b, p, w, SLOT_ANGLE, SLOTS, gain, part)


@_inline
def _keep(b: Any, w: Any, first: int, last: int) -> None:
    """The actuators of the last stage are those of the next step."""
    for k in range(first, last):
        put(b, A_NOW + k, at(w, AN + k))


@_inline
def actuators(b: Any, p: Any, w: Any, kind: Any, tables: Any) -> None:
    """Forces of all actuators that push, onto the force rows."""
    flags = kind[KIND_FLAGS]
    if flags & HAS_LAW:
        terms.thrusters(b, p, w, kind[KIND_THRUSTERS], flags & HAS_TORQUE != 0)
        if flags & HAS_KT_TABLE:
            terms.table_thrusters(b, p, w, kind, tables, kind[KIND_THRUSTERS])
        if flags & HAS_SWIVEL:
            terms.swivels(p, w, kind[KIND_THRUSTERS])
    else:
        terms.simple_thrusters(b, p, w, kind[KIND_THRUSTERS])
    if flags & HAS_FIN:
        terms.fins(b, p, w, kind[KIND_FINS])
    if flags & HAS_FIN_COEFFICIENTS:
        terms.fin_coefficients(b, p, w, kind[KIND_FINS])
    if flags & HAS_AEROFOIL:
        terms.aerofoils(b, p, w, kind, tables, kind[KIND_FINS])


@_inline
def hull(p: Any, w: Any, kind: Any, number: int) -> None:
    """Forces of the hull that are no matrix times a velocity, onto the force rows; ``number`` is that of the stage."""
    flags = kind[KIND_FLAGS]
    if flags & ON_SURFACE:
        terms.seakeeping(p, w)
    if flags & HAS_LIFT:
        body_lift(p, w)
    if flags & HAS_TERMS:
        terms.named(p, w, kind, kind[KIND_TERMS])
    if flags & HAS_CROSS:
        terms.cross_flow(p, w)
    if flags & HAS_STRIPS:
        terms.cross_flow_strips(p, w, kind[KIND_STRIPS])
    if flags & HAS_FRICTION:
        terms.friction(p, w)
    if flags & HAS_FADE:
        terms.fading(p, w)
    if flags & HAS_WING:
        terms.wing(p, w)
    if flags & HAS_MUNK:
        terms.without_munk(p, w)
    if flags & HAS_MEMORY:
        terms.memory(p, w, kind, kind[KIND_MEMORY], number)


@_inline
def stage(
    b: Any, p: Any, w: Any, kind: Any, tables: Any, number: int, gain: int, part: float, afloat: bool, moored: bool
) -> None:
    """One evaluation of the equation of motion at X, into the derivative rows of a stage."""
    flags, k = kind[KIND_FLAGS], K + STATE_ROWS * number
    _lags(b, p, w, kind, gain, part)
    kinematics(b, p, w, k)
    for i in range(6):
        put(w, F + i, at(b, EXT + i) + at(b, ENV + i))
    if flags & (HAS_LAW | HAS_TERMS):
        terms.basis(w, kind[KIND_FINS])
    actuators(b, p, w, kind, tables)
    hull(p, w, kind, number)
    if flags & HAS_G:
        terms.restoring(b, p, w)
    if flags & HAS_BALLAST:
        terms.ballast(p, w)
    if moored:
        mooring(b, w, k)
    if afloat:
        floating(b, p, w)
    if flags & IS_FULL:
        solve(p, w, k)
    else:
        solve_symmetric(p, w, k)


@_inline
def _advance(to: Any, w: Any, first: int, n: int, h: float, weights: Any, stages: int) -> None:
    """Rows from ``first`` of an array += h times the weighted derivatives."""
    for s in range(stages):
        weight = weights[s] * h
        if weight != 0.0:
            k = K + STATE_ROWS * s
            for i in range(n):
                add(to, first + i, weight * at(w, k + i))


@_njit
def is_afloat(b: Any, p: Any) -> bool:
    """Whether any body of a block is so near the surface that its buoyancy may change within the step."""
    for l in range(LANES):
        if cell(b, PRESENT, l) != 0.0 and cell(b, PZ, l) - cell(b, LEVEL, l) < 1.5 * p[REACH] + 1.0:
            return True
    return False


@_njit
def step_block(b: Any, p: Any, w: Any, kind: Any, tables: Any, h: float, integrator: int, moored: bool) -> None:
    """One step of one block."""
    flags = kind[KIND_FLAGS]
    # Far below the surface the buoyancy is constant within a step.
    afloat = flags & HAS_G == 0 and is_afloat(b, p)
    if not afloat:
        submerged(p, w)
    n = kind[KIND_STATES]
    stages = _COUNT[integrator]
    for s in range(stages):
        if integrator == RK4:  # one earlier stage counts
            weight = _WEIGHTS[RK4, s, max(s - 1, 0)] * h
            k = K + STATE_ROWS * max(s - 1, 0)
            for i in range(n):
                put(w, X + i, at(b, i) + weight * at(w, k + i) if s else at(b, i))
        else:
            for i in range(n):
                put(w, X + i, at(b, i))
            _advance(w, w, X, n, h, _WEIGHTS[integrator, s], s)
        stage(b, p, w, kind, tables, s, _GAIN[integrator, s], _TIME[integrator, s], afloat, moored)
    if integrator == EULER:  # new velocities first, then position and attitude with them
        for i in range(U, n):
            add(w, X + i, h * at(w, K + i))
        kinematics(b, p, w, K)
        _lags(b, p, w, kind, 0, 1.0)
    if integrator == RK4:
        k1, k2, k3, k4 = K, K + STATE_ROWS, K + 2 * STATE_ROWS, K + 3 * STATE_ROWS
        for i in range(n):
            total = at(w, k1 + i) + 2.0 * (at(w, k2 + i) + at(w, k3 + i)) + at(w, k4 + i)
            put(b, i, at(b, i) + h / 6.0 * total)
    else:
        _advance(b, w, 0, n, h, _SUM[integrator], stages)
    _keep(b, w, 0, kind[KIND_THRUSTERS])
    _keep(b, w, SLOT_FIN, SLOT_FIN + kind[KIND_FINS])
    if flags & (HAS_SWIVEL | HAS_BALLAST):
        _keep(b, w, SLOT_ANGLE, SLOTS)
    e0, x, y, z = at(b, QW), at(b, QX), at(b, QY), at(b, QZ)
    unit = 1.0 / root(e0 * e0 + x * x + y * y + z * z)
    put(b, QW, e0 * unit)
    put(b, QX, x * unit)
    put(b, QY, y * unit)
    put(b, QZ, z * unit)


@_njit
def step_all(
    blocks: Any,
    heads: Any,
    turn: Any,
    params: Any,
    kinds: Any,
    tables: Any,
    work: Any,
    h: float,
    integrator: int,
) -> None:
    """One step of every block. ``blocks`` (n, BLOCK), ``heads`` (n, 3), ``turn`` (n) the order to take them in,
    ``params`` (kinds, PARAMS), ``kinds`` (kinds, KIND), ``tables`` (t, 2, TABLE_POINTS), ``work`` (WORK)."""
    for i in turn:
        if heads[i, BLOCK_BODIES]:
            k = heads[i, BLOCK_KIND]
            step_block(blocks[i], params[k], work, kinds[k], tables, h, integrator, heads[i, BLOCK_MOORED] != 0)
