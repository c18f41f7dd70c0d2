"""The equation of motion for all bodies, compiled.

    M nu_r' = tau - C(nu_r) nu_r - D(nu_r) nu_r + gravity + buoyancy + ...,   nu' = nu_r' + [v_c x w; 0]

with M = M_RB + M_A and nu_r = nu - nu_c.  For a current that is constant in the world this is the usual form
M_RB nu' + C_RB(nu) nu + M_A nu_r' + C_A(nu_r) nu_r exactly (Fossen 2021, sec. 10.3: C_RB in the form that
does not hold linear velocity), with one matrix less.  D = D_L + abs(u_r) L + D_Q abs(nu_r), element by
element; the other terms are in :mod:`wavesim_server.dynamics.terms`.

Steps through it are in :mod:`wavesim_server.dynamics.integrators`.
"""

from __future__ import annotations

from wavesim_sdk.kernel_compiler import always_inline
from wavesim_server.dynamics import afloat as surface
from wavesim_server.dynamics import emerging, radiation, registry, rotation, stall, terms
from wavesim_server.dynamics.lanes import add_to, broadcast, load, maximum, minimum, select, sqrt, store
from wavesim_server.dynamics.rows import (
    A_CMD,
    A_GAIN,
    A_JUMP,
    A_NOW,
    A_RATE,
    ACCEL,
    ACTUATORS,
    BUOYANCY,
    BUOYANCY_CENTRE,
    BY_GRAVITY,
    CURRENT,
    DERIVATIVES,
    DL,
    DOWN,
    DQ,
    ENV,
    EXT,
    FORCE,
    FREE,
    HAS_AEROFOIL,
    HAS_BALLAST,
    HAS_CROSS,
    HAS_FADE,
    HAS_FIN,
    HAS_FIN_COEFFICIENTS,
    HAS_FRICTION,
    HAS_KT_TABLE,
    HAS_LAW,
    HAS_LIFT,
    HAS_MEMORY,
    HAS_MUNK,
    HAS_OTHER,
    HAS_RADIATION,
    HAS_RESTORING,
    HAS_STALL,
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
    KIND_STRIPS,
    KIND_TANKS,
    KIND_TERMS,
    KIND_THRUSTERS,
    LIFT,
    MASS,
    MINV,
    MOOR,
    NU,
    NUR,
    ON_SURFACE,
    PULL,
    PULLED,
    PX,
    PY,
    PZ,
    QW,
    QX,
    QY,
    QZ,
    ROT,
    SLOT_ANGLE,
    SLOT_FIN,
    SLOTS,
    STATE,
    STATE_ROWS,
    WATER,
    WEIGHT,
    WG,
)
from wavesim_server.dynamics.types import Floats, Ints, Lanes


@always_inline
def _row(a: Floats, row: int, x0: Lanes, x1: Lanes, x2: Lanes, x3: Lanes, x4: Lanes, x5: Lanes) -> Lanes:
    """One row of a 6x6 matrix times a vector."""
    return (
        broadcast(a, row) * x0
        + broadcast(a, row + 1) * x1
        + broadcast(a, row + 2) * x2
        + broadcast(a, row + 3) * x3
        + broadcast(a, row + 4) * x4
        + broadcast(a, row + 5) * x5
    )


@always_inline
def _row3(a: Floats, row: int, x0: Lanes, x1: Lanes, x2: Lanes) -> Lanes:
    """Every second element of one row of a 6x6 matrix times three numbers."""
    return broadcast(a, row) * x0 + broadcast(a, row + 2) * x1 + broadcast(a, row + 4) * x2


@always_inline
def _drag3(params: Floats, i: int, j: int, x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    """The part of row i of (D_L + D_Q abs(nu_r)) nu_r from columns j, j + 2, j + 4."""
    o, s = DL + 6 * i + j, DQ + 6 * i + j
    return (
        (broadcast(params, o) + broadcast(params, s) * abs(x)) * x
        + (broadcast(params, o + 2) + broadcast(params, s + 2) * abs(y)) * y
        + (broadcast(params, o + 4) + broadcast(params, s + 4) * abs(z)) * z
    )


@always_inline
def kinematics(block: Floats, params: Floats, work: Floats, k: int) -> None:
    """Rotation, velocity through the water and its acceleration, and the derivative of position and attitude into row k."""
    q0, q1, q2, q3 = load(work, STATE + QW), load(work, STATE + QX), load(work, STATE + QY), load(work, STATE + QZ)
    u, v, w = load(work, STATE + NU), load(work, STATE + NU + 1), load(work, STATE + NU + 2)
    p, q, r = load(work, STATE + NU + 3), load(work, STATE + NU + 4), load(work, STATE + NU + 5)
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation.matrix(q0, q1, q2, q3)
    x, y, d = load(block, CURRENT), load(block, CURRENT + 1), load(block, CURRENT + 2)
    cu, cv, cw = r11 * x + r21 * y + r31 * d, r12 * x + r22 * y + r32 * d, r13 * x + r23 * y + r33 * d
    store(work, k + PX, r11 * u + r12 * v + r13 * w)
    store(work, k + PY, r21 * u + r22 * v + r23 * w)
    store(work, k + PZ, r31 * u + r32 * v + r33 * w)
    store(work, k + QW, -0.5 * (q1 * p + q2 * q + q3 * r))
    store(work, k + QX, 0.5 * (q0 * p + q2 * r - q3 * q))
    store(work, k + QY, 0.5 * (q0 * q + q3 * p - q1 * r))
    store(work, k + QZ, 0.5 * (q0 * r + q1 * q - q2 * p))
    store(work, ROT, r11)
    store(work, ROT + 1, r12)
    store(work, ROT + 2, r13)
    store(work, ROT + 3, r21)
    store(work, ROT + 4, r22)
    store(work, ROT + 5, r23)
    store(work, ROT + 6, r31)
    store(work, ROT + 7, r32)
    store(work, ROT + 8, r33)
    store(work, WATER, cu)
    store(work, WATER + 1, cv)
    store(work, WATER + 2, cw)
    store(work, NUR, u - cu)
    store(work, NUR + 1, v - cv)
    store(work, NUR + 2, w - cw)
    store(work, HEAVE, w - cw)
    store(work, NUR + 3, p)
    store(work, NUR + 4, q)
    store(work, NUR + 5, r)
    x, y, d = load(block, ACCEL), load(block, ACCEL + 1), load(block, ACCEL + 2)
    ax, ay, az = r11 * x + r21 * y + r31 * d, r12 * x + r22 * y + r32 * d, r13 * x + r23 * y + r33 * d
    by = broadcast(params, BY_GRAVITY)
    store(work, PULL, ax)
    store(work, PULL + 1, ay)
    store(work, PULL + 2, az)
    store(work, DOWN, r31 - by * ax)
    store(work, DOWN + 1, r32 - by * ay)
    store(work, DOWN + 2, r33 - by * az)


@always_inline
def body_lift(params: Floats, work: Floats) -> None:
    """Body lift and the fins' share of it: -abs(u_r) L nu_r."""
    u, v, w = load(work, NUR), load(work, NUR + 1), load(work, NUR + 2)
    p, q, r = load(work, NUR + 3), load(work, NUR + 4), load(work, NUR + 5)
    for i in range(6):
        store(work, FORCE + i, load(work, FORCE + i) - (abs(u) * _row(params, LIFT + 6 * i, u, v, w, p, q, r)))


@always_inline
def _coriolis_and_weight(
    params: Floats, work: Floats, hx: Lanes, hy: Lanes, hz: Lanes, kx: Lanes, ky: Lanes, kz: Lanes
) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes, Lanes]:
    """Force rows less C(nu_r) nu_r, plus weight and buoyancy; h and k are the momentum M nu_r."""
    u, v, w = load(work, NUR), load(work, NUR + 1), load(work, NUR + 2)
    p, q, r = load(work, NUR + 3), load(work, NUR + 4), load(work, NUR + 5)
    r1, r2, r3 = load(work, DOWN), load(work, DOWN + 1), load(work, DOWN + 2)
    buoyancy = load(work, BUOYANCY)
    net = broadcast(params, WEIGHT) - buoyancy
    lx = broadcast(params, WG) - buoyancy * load(work, BUOYANCY_CENTRE)
    ly = broadcast(params, WG + 1) - buoyancy * load(work, BUOYANCY_CENTRE + 1)
    lz = broadcast(params, WG + 2) - buoyancy * load(work, BUOYANCY_CENTRE + 2)
    return (
        load(work, FORCE) - (q * hz - r * hy) + net * r1,
        load(work, FORCE + 1) - (r * hx - p * hz) + net * r2,
        load(work, FORCE + 2) - (p * hy - q * hx) + net * r3,
        load(work, FORCE + 3) - (q * kz - r * ky + v * hz - w * hy) + (ly * r3 - lz * r2),
        load(work, FORCE + 4) - (r * kx - p * kz + w * hx - u * hz) + (lz * r1 - lx * r3),
        load(work, FORCE + 5) - (p * ky - q * kx + u * hy - v * hx) + (lx * r2 - ly * r1),
    )


@always_inline
def _acceleration_of_current(params: Floats, work: Floats) -> tuple[Lanes, Lanes, Lanes]:
    """v_c' in B of the degrees of freedom that move: how the water accelerates, and turns in B, [v_c x w]."""
    p, q, r = load(work, NUR + 3), load(work, NUR + 4), load(work, NUR + 5)
    cu, cv, cw = load(work, WATER), load(work, WATER + 1), load(work, WATER + 2)
    return (
        broadcast(params, FREE) * (cv * r - cw * q + load(work, PULL)),
        broadcast(params, FREE + 1) * (cw * p - cu * r + load(work, PULL + 1)),
        broadcast(params, FREE + 2) * (cu * q - cv * p + load(work, PULL + 2)),
    )


@always_inline
def _keep(work: Floats, fx: Lanes, fy: Lanes, fz: Lanes, fk: Lanes, fm: Lanes, fn: Lanes) -> None:
    """All that acts on bodies in the water, for those that leave it."""
    store(work, FORCE, fx)
    store(work, FORCE + 1, fy)
    store(work, FORCE + 2, fz)
    store(work, FORCE + 3, fk)
    store(work, FORCE + 4, fm)
    store(work, FORCE + 5, fn)


@always_inline
def solve(params: Floats, work: Floats, k: int, partly_out: bool) -> None:
    """Drag, Coriolis, gravity; then the accelerations into row k. Any couplings."""
    u, v, w = load(work, NUR), load(work, NUR + 1), load(work, NUR + 2)
    p, q, r = load(work, NUR + 3), load(work, NUR + 4), load(work, NUR + 5)
    hx, hy, hz = (
        _row(params, MASS, u, v, w, p, q, r),
        _row(params, MASS + 6, u, v, w, p, q, r),
        _row(params, MASS + 12, u, v, w, p, q, r),
    )
    kx, ky, kz = (
        _row(params, MASS + 18, u, v, w, p, q, r),
        _row(params, MASS + 24, u, v, w, p, q, r),
        _row(params, MASS + 30, u, v, w, p, q, r),
    )
    fx, fy, fz, fk, fm, fn = _coriolis_and_weight(params, work, hx, hy, hz, kx, ky, kz)
    w = load(work, HEAVE)
    fx -= _drag3(params, 0, 0, u, w, q) + _drag3(params, 0, 1, v, p, r)
    fy -= _drag3(params, 1, 0, u, w, q) + _drag3(params, 1, 1, v, p, r)
    fz -= _drag3(params, 2, 0, u, w, q) + _drag3(params, 2, 1, v, p, r)
    fk -= _drag3(params, 3, 0, u, w, q) + _drag3(params, 3, 1, v, p, r)
    fm -= _drag3(params, 4, 0, u, w, q) + _drag3(params, 4, 1, v, p, r)
    fn -= _drag3(params, 5, 0, u, w, q) + _drag3(params, 5, 1, v, p, r)
    if partly_out:
        _keep(work, fx, fy, fz, fk, fm, fn)
    tx, ty, tz = _acceleration_of_current(params, work)
    store(work, k + NU, tx + _row(params, MINV, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 1, ty + _row(params, MINV + 6, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 2, tz + _row(params, MINV + 12, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 3, _row(params, MINV + 18, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 4, _row(params, MINV + 24, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 5, _row(params, MINV + 30, fx, fy, fz, fk, fm, fn))


@always_inline
def solve_symmetric(params: Floats, work: Floats, k: int, partly_out: bool) -> None:
    """The same for bodies that are alike to port and starboard: half of each matrix is zero."""
    u, v, w = load(work, NUR), load(work, NUR + 1), load(work, NUR + 2)
    p, q, r = load(work, NUR + 3), load(work, NUR + 4), load(work, NUR + 5)
    hx, hy, hz = _row3(params, MASS, u, w, q), _row3(params, MASS + 7, v, p, r), _row3(params, MASS + 12, u, w, q)
    kx, ky, kz = _row3(params, MASS + 19, v, p, r), _row3(params, MASS + 24, u, w, q), _row3(params, MASS + 31, v, p, r)
    fx, fy, fz, fk, fm, fn = _coriolis_and_weight(params, work, hx, hy, hz, kx, ky, kz)
    w = load(work, HEAVE)
    fx -= _drag3(params, 0, 0, u, w, q)
    fy -= _drag3(params, 1, 1, v, p, r)
    fz -= _drag3(params, 2, 0, u, w, q)
    fk -= _drag3(params, 3, 1, v, p, r)
    fm -= _drag3(params, 4, 0, u, w, q)
    fn -= _drag3(params, 5, 1, v, p, r)
    if partly_out:
        _keep(work, fx, fy, fz, fk, fm, fn)
    tx, ty, tz = _acceleration_of_current(params, work)
    store(work, k + NU, tx + _row3(params, MINV, fx, fz, fm))
    store(work, k + NU + 1, ty + _row3(params, MINV + 7, fy, fk, fn))
    store(work, k + NU + 2, tz + _row3(params, MINV + 12, fx, fz, fm))
    store(work, k + NU + 3, _row3(params, MINV + 19, fy, fk, fn))
    store(work, k + NU + 4, _row3(params, MINV + 24, fx, fz, fm))
    store(work, k + NU + 5, _row3(params, MINV + 31, fy, fk, fn))


@always_inline
def mooring(block: Floats, work: Floats, k: int) -> None:
    """An elastic line from the origin of the body to its anchor: it pulls, never pushes; and what other lines pull."""
    dx = load(block, MOOR) - load(work, STATE + PX)
    dy = load(block, MOOR + 1) - load(work, STATE + PY)
    dz = load(block, MOOR + 2) - load(work, STATE + PZ)
    away = dx * load(work, k + PX) + dy * load(work, k + PY) + dz * load(work, k + PZ)
    dist = sqrt(dx * dx + dy * dy + dz * dz) + 1e-12
    stretch = dist - load(block, MOOR + 3)
    pull = load(block, MOOR + 4) * stretch - load(block, MOOR + 5) * away / dist
    pull = select(stretch > 0.0, maximum(pull, 0.0) / dist, 0.0)
    for i in range(3):
        add_to(
            work,
            FORCE + i,
            pull * (load(work, ROT + i) * dx + load(work, ROT + 3 + i) * dy + load(work, ROT + 6 + i) * dz),
        )
    for i in range(6):
        add_to(work, FORCE + i, load(block, PULLED + i))


@always_inline
def lag(block: Floats, params: Floats, work: Floats, first: int, last: int, gain: int, part: float) -> None:
    """Lagged and rate-limited actuators at a part of the step, exactly; gain -1 is its start."""
    for k in range(first, last):
        now = load(block, A_NOW + k)
        change = load(block, A_CMD + k) - now
        if gain < 0:
            change = change * broadcast(params, A_JUMP + k)
        else:
            rate = broadcast(params, A_RATE + k) * part
            change = minimum(maximum(change * broadcast(params, A_GAIN + SLOTS * gain + k), -rate), rate)
        store(work, ACTUATORS + k, now + change)


@always_inline
def lags(block: Floats, params: Floats, work: Floats, kind: Ints, gain: int, part: float) -> None:
    """All actuators that a kind has, as they are at a part of the step."""
    lag(block, params, work, 0, kind[KIND_THRUSTERS], gain, part)
    lag(block, params, work, SLOT_FIN, SLOT_FIN + kind[KIND_FINS], gain, part)
    if kind[KIND_FLAGS] & (HAS_SWIVEL | HAS_BALLAST | HAS_OTHER):
        lag(block, params, work, SLOT_ANGLE, SLOTS, gain, part)


@always_inline
def actuators(block: Floats, params: Floats, work: Floats, kind: Ints, tables: Floats) -> None:
    """Forces of all actuators that push, onto the force rows."""
    flags = kind[KIND_FLAGS]
    if flags & HAS_LAW:
        terms.thrusters(block, params, work, kind[KIND_THRUSTERS], flags & HAS_TORQUE != 0)
        if flags & HAS_KT_TABLE:
            terms.table_thrusters(block, params, work, kind, tables, kind[KIND_THRUSTERS])
        if flags & HAS_SWIVEL:
            terms.swivels(params, work, kind[KIND_THRUSTERS])
    else:
        terms.simple_thrusters(block, params, work, kind[KIND_THRUSTERS])
    if flags & HAS_FIN:
        terms.fins(block, params, work, kind[KIND_FINS])
        if flags & HAS_STALL:
            stall.forces(block, params, work, kind[KIND_FINS])
    if flags & HAS_FIN_COEFFICIENTS:
        terms.fin_coefficients(block, params, work, kind[KIND_FINS])
    if flags & HAS_AEROFOIL:
        terms.aerofoils(block, params, work, kind, tables, kind[KIND_FINS])
    registry.actuators(block, params, work, kind)


@always_inline
def hull(block: Floats, params: Floats, work: Floats, kind: Ints, number: int) -> None:
    """Forces of the hull that are no matrix times a velocity, onto the force rows; ``number`` is that of the stage."""
    flags = kind[KIND_FLAGS]
    if flags & ON_SURFACE:
        terms.seakeeping(params, work)
    if flags & HAS_LIFT:
        body_lift(params, work)
    if flags & HAS_TERMS:
        terms.named(params, work, kind, kind[KIND_TERMS])
    if flags & HAS_CROSS:
        terms.cross_flow(params, work)
    if flags & HAS_STRIPS:
        terms.cross_flow_strips(params, work, kind[KIND_STRIPS])
    if flags & HAS_FRICTION:
        terms.friction(params, work)
    if flags & HAS_FADE:
        terms.fading(params, work)
    if flags & HAS_WING:
        terms.wing(params, work)
    if flags & HAS_MUNK:
        terms.without_munk(params, work)
    if flags & HAS_MEMORY:
        terms.memory(params, work, kind, kind[KIND_MEMORY], number)
    if flags & HAS_RADIATION:
        radiation.oscillators(params, work, kind, number)
    registry.terms(block, params, work, kind)


@always_inline
def buoyancy(block: Floats, params: Floats, work: Floats, kind: Ints, tables: Floats) -> bool:
    """Of bodies at the surface, with the share of the water's forces that is left; whether one of them is partly out of it."""
    surface.floating(block, params, work, kind, tables)
    partly_out = emerging.is_partly_out(block, params, work)
    if partly_out:
        now = load(work, BUOYANCY)
        surface.an_instant_later(block, params, work, kind, tables, emerging.INSTANT)
        emerging.wetting(params, work)
        store(work, BUOYANCY, now)
    return partly_out


@always_inline
def stage(
    block: Floats,
    params: Floats,
    work: Floats,
    kind: Ints,
    tables: Floats,
    number: int,
    gain: int,
    part: float,
    afloat: bool,
    moored: bool,
) -> None:
    """One evaluation of the equation of motion at X, into the derivative rows of a stage."""
    flags, k = kind[KIND_FLAGS], DERIVATIVES + STATE_ROWS * number
    lags(block, params, work, kind, gain, part)
    kinematics(block, params, work, k)
    partly_out = False
    if afloat:
        partly_out = buoyancy(block, params, work, kind, tables)
    for i in range(6):
        store(work, FORCE + i, load(block, EXT + i) + load(block, ENV + i))
    if flags & (HAS_LAW | HAS_TERMS):
        terms.basis(work, kind[KIND_FINS])
    actuators(block, params, work, kind, tables)
    hull(block, params, work, kind, number)
    if partly_out:
        emerging.fade(block, work)
    if flags & HAS_RESTORING:
        terms.restoring(block, params, work)
    if flags & HAS_BALLAST:
        terms.ballast(params, work, kind[KIND_TANKS])
    if moored:
        mooring(block, work, k)
    if flags & IS_FULL:
        solve(params, work, k, partly_out)
    else:
        solve_symmetric(params, work, k, partly_out)
    if partly_out:
        emerging.solve(params, work, k)
