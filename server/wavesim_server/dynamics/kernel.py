"""The equation of motion for all bodies, compiled.

    M nu_r' = tau - C(nu_r) nu_r - D(nu_r) nu_r + gravity + buoyancy + ...,   nu' = nu_r' + [v_c x w; 0]

with M = M_RB + M_A and nu_r = nu - nu_c. For a current that is constant in the world this equals the usual form
M_RB nu' + C_RB(nu) nu + M_A nu_r' + C_A(nu_r) nu_r exactly (Fossen 2021, sec. 10.3: C_RB in the form without linear
velocity), with one matrix fewer. D = D_L + abs(u_r) L + D_Q abs(nu_r), element by element; the other terms are in
:mod:`wavesim_server.dynamics.terms`.

:mod:`wavesim_server.dynamics.integrators` steps through it.
"""

from __future__ import annotations

from wavesim_kernels.compiler import always_inline
from wavesim_server.dynamics import immersion as surface
from wavesim_server.dynamics import radiation, registry, rotation, stall, terms, water_exit
from wavesim_server.dynamics.lanes import add_to, broadcast, load, maximum, minimum, select, sqrt, store
from wavesim_server.dynamics.rows import (
    A_WF_B,
    A_WF_W,
    ACTUATOR_COMMAND,
    ACTUATOR_GAIN,
    ACTUATOR_IMMEDIATE,
    ACTUATOR_RATE,
    ACTUATOR_STATE,
    BODY_LIFT,
    BUOYANCY,
    BUOYANCY_CENTRE,
    COUPLES_PLANES,
    DERIVATIVES,
    ENVIRONMENT_WRENCH,
    EXTERNAL_WRENCH,
    FORCE,
    FREE_DOFS,
    G_EFF_B,
    HAS_AEROFOIL,
    HAS_BALLAST,
    HAS_CROSS,
    HAS_DERIVATIVES,
    HAS_FADE,
    HAS_FIN,
    HAS_FIN_COEFFICIENTS,
    HAS_FRICTION,
    HAS_KT_TABLE,
    HAS_LIFT,
    HAS_MEMORY,
    HAS_MUNK,
    HAS_OTHER,
    HAS_RADIATION,
    HAS_RESTORING,
    HAS_STALL,
    HAS_SWIVEL,
    HAS_THRUSTER_LAW,
    HAS_TORQUE,
    HAS_WING,
    HEAVE_SPEED,
    INVERSE_GRAVITY,
    LINE_WRENCH,
    LINEAR_DRAG,
    MASS,
    MASS_INVERSE,
    MODEL_DERIVATIVES,
    MODEL_FINS,
    MODEL_FLAGS,
    MODEL_MEMORY,
    MODEL_TANKS,
    MODEL_THRUSTERS,
    MOORING,
    NU,
    NU_R,
    ON_SURFACE,
    PX,
    PY,
    PZ,
    QUADRATIC_DRAG,
    QW,
    QX,
    QY,
    QZ,
    ROT,
    SLOT_ANGLE,
    SLOT_FIN,
    SLOTS,
    STAGE_ACTUATORS,
    STATE,
    STATE_ROWS,
    V_WF_B,
    V_WF_W,
    WEIGHT,
    WEIGHT_MOMENT,
)
from wavesim_server.dynamics.types import Floats, Ints, Lanes


@always_inline
def _row_product(a: Floats, row: int, x0: Lanes, x1: Lanes, x2: Lanes, x3: Lanes, x4: Lanes, x5: Lanes) -> Lanes:
    """Multiply one row of a 6x6 matrix by a vector."""
    return (
        broadcast(a, row) * x0
        + broadcast(a, row + 1) * x1
        + broadcast(a, row + 2) * x2
        + broadcast(a, row + 3) * x3
        + broadcast(a, row + 4) * x4
        + broadcast(a, row + 5) * x5
    )


@always_inline
def _half_row_product(a: Floats, row: int, x0: Lanes, x1: Lanes, x2: Lanes) -> Lanes:
    """Multiply every second element of one row of a 6x6 matrix by three numbers."""
    return broadcast(a, row) * x0 + broadcast(a, row + 2) * x1 + broadcast(a, row + 4) * x2


@always_inline
def _drag3(params: Floats, i: int, j: int, x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    """Return the part of row i of (D_L + D_Q abs(nu_r)) nu_r from the columns j, j + 2 and j + 4."""
    o, s = LINEAR_DRAG + 6 * i + j, QUADRATIC_DRAG + 6 * i + j
    return (
        (broadcast(params, o) + broadcast(params, s) * abs(x)) * x
        + (broadcast(params, o + 2) + broadcast(params, s + 2) * abs(y)) * y
        + (broadcast(params, o + 4) + broadcast(params, s + 4) * abs(z)) * z
    )


@always_inline
def kinematics(block: Floats, params: Floats, work: Floats, k: int) -> None:
    """Compute rotation, velocity through the water and its acceleration; write the derivative of the pose into row k."""
    q0, q1, q2, q3 = load(work, STATE + QW), load(work, STATE + QX), load(work, STATE + QY), load(work, STATE + QZ)
    u, v, w = load(work, STATE + NU), load(work, STATE + NU + 1), load(work, STATE + NU + 2)
    p, q, r = load(work, STATE + NU + 3), load(work, STATE + NU + 4), load(work, STATE + NU + 5)
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation.matrix(q0, q1, q2, q3)
    x, y, d = load(block, V_WF_W), load(block, V_WF_W + 1), load(block, V_WF_W + 2)
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
    store(work, V_WF_B, cu)
    store(work, V_WF_B + 1, cv)
    store(work, V_WF_B + 2, cw)
    store(work, NU_R, u - cu)
    store(work, NU_R + 1, v - cv)
    store(work, NU_R + 2, w - cw)
    store(work, HEAVE_SPEED, w - cw)
    store(work, NU_R + 3, p)
    store(work, NU_R + 4, q)
    store(work, NU_R + 5, r)
    x, y, d = load(block, A_WF_W), load(block, A_WF_W + 1), load(block, A_WF_W + 2)
    ax, ay, az = r11 * x + r21 * y + r31 * d, r12 * x + r22 * y + r32 * d, r13 * x + r23 * y + r33 * d
    by = broadcast(params, INVERSE_GRAVITY)
    store(work, A_WF_B, ax)
    store(work, A_WF_B + 1, ay)
    store(work, A_WF_B + 2, az)
    store(work, G_EFF_B, r31 - by * ax)
    store(work, G_EFF_B + 1, r32 - by * ay)
    store(work, G_EFF_B + 2, r33 - by * az)


@always_inline
def body_lift(params: Floats, work: Floats) -> None:
    """Add body lift, including the contribution of the fins: -abs(u_r) L nu_r."""
    u, v, w = load(work, NU_R), load(work, NU_R + 1), load(work, NU_R + 2)
    p, q, r = load(work, NU_R + 3), load(work, NU_R + 4), load(work, NU_R + 5)
    for i in range(6):
        store(
            work,
            FORCE + i,
            load(work, FORCE + i) - (abs(u) * _row_product(params, BODY_LIFT + 6 * i, u, v, w, p, q, r)),
        )


@always_inline
def _coriolis_and_weight(
    params: Floats, work: Floats, hx: Lanes, hy: Lanes, hz: Lanes, kx: Lanes, ky: Lanes, kz: Lanes
) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes, Lanes]:
    """Return the force rows minus C(nu_r) nu_r, plus weight and buoyancy; h and k are the momentum M nu_r."""
    u, v, w = load(work, NU_R), load(work, NU_R + 1), load(work, NU_R + 2)
    p, q, r = load(work, NU_R + 3), load(work, NU_R + 4), load(work, NU_R + 5)
    r1, r2, r3 = load(work, G_EFF_B), load(work, G_EFF_B + 1), load(work, G_EFF_B + 2)
    buoyancy = load(work, BUOYANCY)
    net = broadcast(params, WEIGHT) - buoyancy
    lx = broadcast(params, WEIGHT_MOMENT) - buoyancy * load(work, BUOYANCY_CENTRE)
    ly = broadcast(params, WEIGHT_MOMENT + 1) - buoyancy * load(work, BUOYANCY_CENTRE + 1)
    lz = broadcast(params, WEIGHT_MOMENT + 2) - buoyancy * load(work, BUOYANCY_CENTRE + 2)
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
    """Return v_c' in B for the degrees of freedom that move: acceleration of the water, and the rotation of its
    velocity in B, [v_c x w].
    """
    p, q, r = load(work, NU_R + 3), load(work, NU_R + 4), load(work, NU_R + 5)
    cu, cv, cw = load(work, V_WF_B), load(work, V_WF_B + 1), load(work, V_WF_B + 2)
    return (
        broadcast(params, FREE_DOFS) * (cv * r - cw * q + load(work, A_WF_B)),
        broadcast(params, FREE_DOFS + 1) * (cw * p - cu * r + load(work, A_WF_B + 1)),
        broadcast(params, FREE_DOFS + 2) * (cu * q - cv * p + load(work, A_WF_B + 2)),
    )


@always_inline
def _keep_loads(work: Floats, fx: Lanes, fy: Lanes, fz: Lanes, fk: Lanes, fm: Lanes, fn: Lanes) -> None:
    """Store the total load of bodies that are partly out of the water."""
    store(work, FORCE, fx)
    store(work, FORCE + 1, fy)
    store(work, FORCE + 2, fz)
    store(work, FORCE + 3, fk)
    store(work, FORCE + 4, fm)
    store(work, FORCE + 5, fn)


@always_inline
def solve(params: Floats, work: Floats, k: int, partly_out: bool) -> None:
    """Add drag, Coriolis force and gravity, with any couplings; write the accelerations into row k."""
    u, v, w = load(work, NU_R), load(work, NU_R + 1), load(work, NU_R + 2)
    p, q, r = load(work, NU_R + 3), load(work, NU_R + 4), load(work, NU_R + 5)
    hx, hy, hz = (
        _row_product(params, MASS, u, v, w, p, q, r),
        _row_product(params, MASS + 6, u, v, w, p, q, r),
        _row_product(params, MASS + 12, u, v, w, p, q, r),
    )
    kx, ky, kz = (
        _row_product(params, MASS + 18, u, v, w, p, q, r),
        _row_product(params, MASS + 24, u, v, w, p, q, r),
        _row_product(params, MASS + 30, u, v, w, p, q, r),
    )
    fx, fy, fz, fk, fm, fn = _coriolis_and_weight(params, work, hx, hy, hz, kx, ky, kz)
    w = load(work, HEAVE_SPEED)
    fx -= _drag3(params, 0, 0, u, w, q) + _drag3(params, 0, 1, v, p, r)
    fy -= _drag3(params, 1, 0, u, w, q) + _drag3(params, 1, 1, v, p, r)
    fz -= _drag3(params, 2, 0, u, w, q) + _drag3(params, 2, 1, v, p, r)
    fk -= _drag3(params, 3, 0, u, w, q) + _drag3(params, 3, 1, v, p, r)
    fm -= _drag3(params, 4, 0, u, w, q) + _drag3(params, 4, 1, v, p, r)
    fn -= _drag3(params, 5, 0, u, w, q) + _drag3(params, 5, 1, v, p, r)
    if partly_out:
        _keep_loads(work, fx, fy, fz, fk, fm, fn)
    tx, ty, tz = _acceleration_of_current(params, work)
    store(work, k + NU, tx + _row_product(params, MASS_INVERSE, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 1, ty + _row_product(params, MASS_INVERSE + 6, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 2, tz + _row_product(params, MASS_INVERSE + 12, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 3, _row_product(params, MASS_INVERSE + 18, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 4, _row_product(params, MASS_INVERSE + 24, fx, fy, fz, fk, fm, fn))
    store(work, k + NU + 5, _row_product(params, MASS_INVERSE + 30, fx, fy, fz, fk, fm, fn))


@always_inline
def solve_symmetric(params: Floats, work: Floats, k: int, partly_out: bool) -> None:
    """Add drag, Coriolis force and gravity for bodies with port-starboard symmetry, for which half of each matrix is
    zero.
    """
    u, v, w = load(work, NU_R), load(work, NU_R + 1), load(work, NU_R + 2)
    p, q, r = load(work, NU_R + 3), load(work, NU_R + 4), load(work, NU_R + 5)
    hx, hy, hz = (
        _half_row_product(params, MASS, u, w, q),
        _half_row_product(params, MASS + 7, v, p, r),
        _half_row_product(params, MASS + 12, u, w, q),
    )
    kx, ky, kz = (
        _half_row_product(params, MASS + 19, v, p, r),
        _half_row_product(params, MASS + 24, u, w, q),
        _half_row_product(params, MASS + 31, v, p, r),
    )
    fx, fy, fz, fk, fm, fn = _coriolis_and_weight(params, work, hx, hy, hz, kx, ky, kz)
    w = load(work, HEAVE_SPEED)
    fx -= _drag3(params, 0, 0, u, w, q)
    fy -= _drag3(params, 1, 1, v, p, r)
    fz -= _drag3(params, 2, 0, u, w, q)
    fk -= _drag3(params, 3, 1, v, p, r)
    fm -= _drag3(params, 4, 0, u, w, q)
    fn -= _drag3(params, 5, 1, v, p, r)
    if partly_out:
        _keep_loads(work, fx, fy, fz, fk, fm, fn)
    tx, ty, tz = _acceleration_of_current(params, work)
    store(work, k + NU, tx + _half_row_product(params, MASS_INVERSE, fx, fz, fm))
    store(work, k + NU + 1, ty + _half_row_product(params, MASS_INVERSE + 7, fy, fk, fn))
    store(work, k + NU + 2, tz + _half_row_product(params, MASS_INVERSE + 12, fx, fz, fm))
    store(work, k + NU + 3, _half_row_product(params, MASS_INVERSE + 19, fy, fk, fn))
    store(work, k + NU + 4, _half_row_product(params, MASS_INVERSE + 24, fx, fz, fm))
    store(work, k + NU + 5, _half_row_product(params, MASS_INVERSE + 31, fy, fk, fn))


@always_inline
def mooring(block: Floats, work: Floats, k: int) -> None:
    """Add the forces of lines, including the elastic mooring from the body's origin to its anchor, which can only pull."""
    dx = load(block, MOORING) - load(work, STATE + PX)
    dy = load(block, MOORING + 1) - load(work, STATE + PY)
    dz = load(block, MOORING + 2) - load(work, STATE + PZ)
    away = dx * load(work, k + PX) + dy * load(work, k + PY) + dz * load(work, k + PZ)
    dist = sqrt(dx * dx + dy * dy + dz * dz) + 1e-12
    stretch = dist - load(block, MOORING + 3)
    pull = load(block, MOORING + 4) * stretch - load(block, MOORING + 5) * away / dist
    pull = select(stretch > 0.0, maximum(pull, 0.0) / dist, 0.0)
    for i in range(3):
        add_to(
            work,
            FORCE + i,
            pull * (load(work, ROT + i) * dx + load(work, ROT + 3 + i) * dy + load(work, ROT + 6 + i) * dz),
        )
    for i in range(6):
        add_to(work, FORCE + i, load(block, LINE_WRENCH + i))


@always_inline
def lag_slots(block: Floats, params: Floats, work: Floats, first: int, last: int, gain: int, part: float) -> None:
    """Compute lagged and rate-limited actuators exactly at a time within the step; gain -1 = the start of the step."""
    for k in range(first, last):
        now = load(block, ACTUATOR_STATE + k)
        change = load(block, ACTUATOR_COMMAND + k) - now
        if gain < 0:
            change = change * broadcast(params, ACTUATOR_IMMEDIATE + k)
        else:
            rate = broadcast(params, ACTUATOR_RATE + k) * part
            change = minimum(maximum(change * broadcast(params, ACTUATOR_GAIN + SLOTS * gain + k), -rate), rate)
        store(work, STAGE_ACTUATORS + k, now + change)


@always_inline
def lag_actuators(block: Floats, params: Floats, work: Floats, model_ints: Ints, gain: int, part: float) -> None:
    """Compute all actuators of a model at a time within the step."""
    lag_slots(block, params, work, 0, model_ints[MODEL_THRUSTERS], gain, part)
    lag_slots(block, params, work, SLOT_FIN, SLOT_FIN + model_ints[MODEL_FINS], gain, part)
    if model_ints[MODEL_FLAGS] & (HAS_SWIVEL | HAS_BALLAST | HAS_OTHER):
        lag_slots(block, params, work, SLOT_ANGLE, SLOTS, gain, part)


@always_inline
def actuator_forces(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> None:
    """Add the forces of all actuators to the force rows."""
    flags = model_ints[MODEL_FLAGS]
    if flags & HAS_THRUSTER_LAW:
        terms.thrusters(block, params, work, model_ints[MODEL_THRUSTERS], flags & HAS_TORQUE != 0)
        if flags & HAS_KT_TABLE:
            terms.table_thrusters(block, params, work, model_ints, tables, model_ints[MODEL_THRUSTERS])
        if flags & HAS_SWIVEL:
            terms.swivels(params, work, model_ints[MODEL_THRUSTERS])
    else:
        terms.simple_thrusters(block, params, work, model_ints[MODEL_THRUSTERS])
    if flags & HAS_FIN:
        terms.fins(block, params, work, model_ints[MODEL_FINS])
        if flags & HAS_STALL:
            stall.forces(block, params, work, model_ints[MODEL_FINS])
    if flags & HAS_FIN_COEFFICIENTS:
        terms.fin_coefficients(block, params, work, model_ints[MODEL_FINS])
    if flags & HAS_AEROFOIL:
        terms.aerofoils(block, params, work, model_ints, tables, model_ints[MODEL_FINS])
    registry.actuators(block, params, work, model_ints)


@always_inline
def hull_forces(block: Floats, params: Floats, work: Floats, model_ints: Ints, number: int) -> None:
    """Add the hull forces that cannot be written as a matrix times a velocity to the force rows; ``number`` is the
    index of the stage.
    """
    flags = model_ints[MODEL_FLAGS]
    if flags & ON_SURFACE:
        terms.seakeeping(params, work)
    if flags & HAS_LIFT:
        body_lift(params, work)
    if flags & HAS_DERIVATIVES:
        terms.named_derivatives(params, work, model_ints, model_ints[MODEL_DERIVATIVES])
    if flags & HAS_CROSS:
        terms.cross_flow(params, work)
    if flags & HAS_FRICTION:
        terms.friction(params, work)
    if flags & HAS_FADE:
        terms.fading_drag(params, work)
    if flags & HAS_WING:
        terms.wing_lift(params, work)
    if flags & HAS_MUNK:
        terms.omit_munk_terms(params, work)
    if flags & HAS_MEMORY:
        terms.radiation_memory(params, work, model_ints, model_ints[MODEL_MEMORY], number)
    if flags & HAS_RADIATION:
        radiation.oscillators(params, work, model_ints, number)
    registry.terms(block, params, work, model_ints)


@always_inline
def surface_buoyancy(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> bool:
    """Set the buoyancy and wetted fraction of bodies at the surface; return whether one of them is partly out of the water."""
    surface.surface_buoyancy(block, params, work, model_ints, tables)
    partly_out = water_exit.is_partly_out(block, params, work)
    if partly_out:
        now = load(work, BUOYANCY)
        surface.buoyancy_after_instant(block, params, work, model_ints, tables, water_exit.INSTANT_S)
        water_exit.wet_share_rate(params, work)
        store(work, BUOYANCY, now)
    return partly_out


@always_inline
def evaluate_stage(
    block: Floats,
    params: Floats,
    work: Floats,
    model_ints: Ints,
    tables: Floats,
    number: int,
    gain: int,
    part: float,
    afloat: bool,
    moored: bool,
) -> None:
    """Evaluate the equation of motion at X, and write the result to the derivative rows of a stage."""
    flags, k = model_ints[MODEL_FLAGS], DERIVATIVES + STATE_ROWS * number
    lag_actuators(block, params, work, model_ints, gain, part)
    kinematics(block, params, work, k)
    partly_out = False
    if afloat:
        partly_out = surface_buoyancy(block, params, work, model_ints, tables)
    for i in range(6):
        store(work, FORCE + i, load(block, EXTERNAL_WRENCH + i) + load(block, ENVIRONMENT_WRENCH + i))
    if flags & (HAS_THRUSTER_LAW | HAS_DERIVATIVES):
        terms.derivative_basis(work, model_ints[MODEL_FINS])
    actuator_forces(block, params, work, model_ints, tables)
    hull_forces(block, params, work, model_ints, number)
    if partly_out:
        water_exit.fade_water_forces(block, work)
    if flags & HAS_RESTORING:
        terms.restoring(block, params, work)
    if flags & HAS_BALLAST:
        terms.ballast(params, work, model_ints[MODEL_TANKS])
    if moored:
        mooring(block, work, k)
    if flags & COUPLES_PLANES:
        solve(params, work, k, partly_out)
    else:
        solve_symmetric(params, work, k, partly_out)
    if partly_out:
        water_exit.solve_partly_out(params, work, k)
