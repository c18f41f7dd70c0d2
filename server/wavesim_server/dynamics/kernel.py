"""The equation of motion for all bodies, compiled.

    M nu_r' = tau - C(nu_r) nu_r - D(nu_r) nu_r + gravity + buoyancy + ...,   nu' = nu_r' + [v_c x w; 0]

In this equation, M = M_RB + M_A and nu_r = nu - nu_c. For a current that is constant in the world, this exactly equals
the usual form M_RB nu' + C_RB(nu) nu + M_A nu_r' + C_A(nu_r) nu_r (Fossen 2021, sec. 10.3). C_RB is in the form without
linear velocity, so that one matrix fewer is needed. D = D_L + abs(u_r) L + D_Q abs(nu_r), element by element; the other
terms are in :mod:`wavesim_server.dynamics.terms`.

:mod:`wavesim_server.dynamics.integrators` integrates this equation step by step.
"""

from __future__ import annotations

from typing import NamedTuple

from wavesim_kernels.compiler import always_inline
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import aerodynamics, radiation, registry, rotation, stall, terms, water_exit
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import immersion as surface
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.lanes import add_to, broadcast, load, maximum, minimum, select, sqrt, store
from wavesim_server.dynamics.sizes import SLOT_ANGLE, SLOT_FIN, SLOTS
from wavesim_server.dynamics.types import Lanes


class Stage(NamedTuple):
    """A stage of an integrator."""

    number: int
    #: index of the integrator time at which the stage evaluates the actuators; -1 means the start of the step
    gain: int
    time: float  #: integrator time of the stage, as a fraction of the step


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
    """Return the contribution of the columns j, j + 2 and j + 4 to row i of (D_L + D_Q abs(nu_r)) nu_r."""
    o, s = P.LINEAR_DRAG + 6 * i + j, P.QUADRATIC_DRAG + 6 * i + j
    return (
        (broadcast(params, o) + broadcast(params, s) * abs(x)) * x
        + (broadcast(params, o + 2) + broadcast(params, s + 2) * abs(y)) * y
        + (broadcast(params, o + 4) + broadcast(params, s + 4) * abs(z)) * z
    )


@always_inline
def kinematics(block: Floats, params: Floats, work: Floats, k: int) -> None:
    """Compute the rotation, and the velocity through the water and its derivative; write the derivative of the pose
    into row k.
    """
    q0, q1, q2, q3 = (
        load(work, W.STATE + B.QW),
        load(work, W.STATE + B.QX),
        load(work, W.STATE + B.QY),
        load(work, W.STATE + B.QZ),
    )
    u, v, w = load(work, W.STATE + B.NU), load(work, W.STATE + B.NU + 1), load(work, W.STATE + B.NU + 2)
    p, q, r = load(work, W.STATE + B.NU + 3), load(work, W.STATE + B.NU + 4), load(work, W.STATE + B.NU + 5)
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation.matrix(q0, q1, q2, q3)
    x, y, d = load(block, B.V_WF_W), load(block, B.V_WF_W + 1), load(block, B.V_WF_W + 2)
    cu, cv, cw = r11 * x + r21 * y + r31 * d, r12 * x + r22 * y + r32 * d, r13 * x + r23 * y + r33 * d
    store(work, k + B.PX, r11 * u + r12 * v + r13 * w)
    store(work, k + B.PY, r21 * u + r22 * v + r23 * w)
    store(work, k + B.PZ, r31 * u + r32 * v + r33 * w)
    store(work, k + B.QW, -0.5 * (q1 * p + q2 * q + q3 * r))
    store(work, k + B.QX, 0.5 * (q0 * p + q2 * r - q3 * q))
    store(work, k + B.QY, 0.5 * (q0 * q + q3 * p - q1 * r))
    store(work, k + B.QZ, 0.5 * (q0 * r + q1 * q - q2 * p))
    store(work, W.ROT, r11)
    store(work, W.ROT + 1, r12)
    store(work, W.ROT + 2, r13)
    store(work, W.ROT + 3, r21)
    store(work, W.ROT + 4, r22)
    store(work, W.ROT + 5, r23)
    store(work, W.ROT + 6, r31)
    store(work, W.ROT + 7, r32)
    store(work, W.ROT + 8, r33)
    store(work, W.V_WF_B, cu)
    store(work, W.V_WF_B + 1, cv)
    store(work, W.V_WF_B + 2, cw)
    store(work, W.NU_R, u - cu)
    store(work, W.NU_R + 1, v - cv)
    store(work, W.NU_R + 2, w - cw)
    store(work, W.HEAVE_SPEED, w - cw)
    store(work, W.NU_R + 3, p)
    store(work, W.NU_R + 4, q)
    store(work, W.NU_R + 5, r)
    x, y, d = load(block, B.A_WF_W), load(block, B.A_WF_W + 1), load(block, B.A_WF_W + 2)
    ax, ay, az = r11 * x + r21 * y + r31 * d, r12 * x + r22 * y + r32 * d, r13 * x + r23 * y + r33 * d
    by = broadcast(params, P.INVERSE_GRAVITY)
    store(work, W.A_WF_B, ax)
    store(work, W.A_WF_B + 1, ay)
    store(work, W.A_WF_B + 2, az)
    store(work, W.G_EFF_B, r31 - by * ax)
    store(work, W.G_EFF_B + 1, r32 - by * ay)
    store(work, W.G_EFF_B + 2, r33 - by * az)


@always_inline
def body_lift(params: Floats, work: Floats) -> None:
    """Add body lift, including the contribution of the fins: -abs(u_r) L nu_r."""
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    p, q, r = load(work, W.NU_R + 3), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
    for i in range(6):
        store(
            work,
            W.FORCE + i,
            load(work, W.FORCE + i) - (abs(u) * _row_product(params, P.BODY_LIFT + 6 * i, u, v, w, p, q, r)),
        )


@always_inline
def _coriolis_and_weight(
    params: Floats, work: Floats, hx: Lanes, hy: Lanes, hz: Lanes, kx: Lanes, ky: Lanes, kz: Lanes
) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes, Lanes]:
    """Return the force rows minus C(nu_r) nu_r, plus weight and buoyancy. (hx, hy, hz) and (kx, ky, kz) are
    the linear and the angular momentum M nu_r.
    """
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    p, q, r = load(work, W.NU_R + 3), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
    r1, r2, r3 = load(work, W.G_EFF_B), load(work, W.G_EFF_B + 1), load(work, W.G_EFF_B + 2)
    buoyancy = load(work, W.BUOYANCY)
    net = broadcast(params, P.WEIGHT) - buoyancy
    lx = broadcast(params, P.WEIGHT_MOMENT) - buoyancy * load(work, W.BUOYANCY_CENTRE)
    ly = broadcast(params, P.WEIGHT_MOMENT + 1) - buoyancy * load(work, W.BUOYANCY_CENTRE + 1)
    lz = broadcast(params, P.WEIGHT_MOMENT + 2) - buoyancy * load(work, W.BUOYANCY_CENTRE + 2)
    return (
        load(work, W.FORCE) - (q * hz - r * hy) + net * r1,
        load(work, W.FORCE + 1) - (r * hx - p * hz) + net * r2,
        load(work, W.FORCE + 2) - (p * hy - q * hx) + net * r3,
        load(work, W.FORCE + 3) - (q * kz - r * ky + v * hz - w * hy) + (ly * r3 - lz * r2),
        load(work, W.FORCE + 4) - (r * kx - p * kz + w * hx - u * hz) + (lz * r1 - lx * r3),
        load(work, W.FORCE + 5) - (p * ky - q * kx + u * hy - v * hx) + (lx * r2 - ly * r1),
    )


@always_inline
def _acceleration_of_current(params: Floats, work: Floats) -> tuple[Lanes, Lanes, Lanes]:
    """Return v_c' in B for the free degrees of freedom. It is the acceleration of the water plus [v_c x w],
    because B rotates.
    """
    p, q, r = load(work, W.NU_R + 3), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
    cu, cv, cw = load(work, W.V_WF_B), load(work, W.V_WF_B + 1), load(work, W.V_WF_B + 2)
    return (
        broadcast(params, P.FREE_DOFS) * (cv * r - cw * q + load(work, W.A_WF_B)),
        broadcast(params, P.FREE_DOFS + 1) * (cw * p - cu * r + load(work, W.A_WF_B + 1)),
        broadcast(params, P.FREE_DOFS + 2) * (cu * q - cv * p + load(work, W.A_WF_B + 2)),
    )


@always_inline
def _keep_loads(work: Floats, fx: Lanes, fy: Lanes, fz: Lanes, fk: Lanes, fm: Lanes, fn: Lanes) -> None:
    """Store the total load of bodies that are partly out of the water."""
    store(work, W.FORCE, fx)
    store(work, W.FORCE + 1, fy)
    store(work, W.FORCE + 2, fz)
    store(work, W.FORCE + 3, fk)
    store(work, W.FORCE + 4, fm)
    store(work, W.FORCE + 5, fn)


@always_inline
def solve(params: Floats, work: Floats, k: int, partly_out: bool) -> None:
    """Add drag, Coriolis force and gravity, including any couplings; write the accelerations into row k."""
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    p, q, r = load(work, W.NU_R + 3), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
    hx, hy, hz = (
        _row_product(params, P.MASS, u, v, w, p, q, r),
        _row_product(params, P.MASS + 6, u, v, w, p, q, r),
        _row_product(params, P.MASS + 12, u, v, w, p, q, r),
    )
    kx, ky, kz = (
        _row_product(params, P.MASS + 18, u, v, w, p, q, r),
        _row_product(params, P.MASS + 24, u, v, w, p, q, r),
        _row_product(params, P.MASS + 30, u, v, w, p, q, r),
    )
    fx, fy, fz, fk, fm, fn = _coriolis_and_weight(params, work, hx, hy, hz, kx, ky, kz)
    w = load(work, W.HEAVE_SPEED)
    fx -= _drag3(params, 0, 0, u, w, q) + _drag3(params, 0, 1, v, p, r)
    fy -= _drag3(params, 1, 0, u, w, q) + _drag3(params, 1, 1, v, p, r)
    fz -= _drag3(params, 2, 0, u, w, q) + _drag3(params, 2, 1, v, p, r)
    fk -= _drag3(params, 3, 0, u, w, q) + _drag3(params, 3, 1, v, p, r)
    fm -= _drag3(params, 4, 0, u, w, q) + _drag3(params, 4, 1, v, p, r)
    fn -= _drag3(params, 5, 0, u, w, q) + _drag3(params, 5, 1, v, p, r)
    if partly_out:
        _keep_loads(work, fx, fy, fz, fk, fm, fn)
    tx, ty, tz = _acceleration_of_current(params, work)
    store(work, k + B.NU, tx + _row_product(params, P.MASS_INVERSE, fx, fy, fz, fk, fm, fn))
    store(work, k + B.NU + 1, ty + _row_product(params, P.MASS_INVERSE + 6, fx, fy, fz, fk, fm, fn))
    store(work, k + B.NU + 2, tz + _row_product(params, P.MASS_INVERSE + 12, fx, fy, fz, fk, fm, fn))
    store(work, k + B.NU + 3, _row_product(params, P.MASS_INVERSE + 18, fx, fy, fz, fk, fm, fn))
    store(work, k + B.NU + 4, _row_product(params, P.MASS_INVERSE + 24, fx, fy, fz, fk, fm, fn))
    store(work, k + B.NU + 5, _row_product(params, P.MASS_INVERSE + 30, fx, fy, fz, fk, fm, fn))


@always_inline
def solve_symmetric(params: Floats, work: Floats, k: int, partly_out: bool) -> None:
    """Add drag, Coriolis force and gravity for bodies with port-starboard symmetry, for which half the elements of each
    matrix are zero.
    """
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    p, q, r = load(work, W.NU_R + 3), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
    hx, hy, hz = (
        _half_row_product(params, P.MASS, u, w, q),
        _half_row_product(params, P.MASS + 7, v, p, r),
        _half_row_product(params, P.MASS + 12, u, w, q),
    )
    kx, ky, kz = (
        _half_row_product(params, P.MASS + 19, v, p, r),
        _half_row_product(params, P.MASS + 24, u, w, q),
        _half_row_product(params, P.MASS + 31, v, p, r),
    )
    fx, fy, fz, fk, fm, fn = _coriolis_and_weight(params, work, hx, hy, hz, kx, ky, kz)
    w = load(work, W.HEAVE_SPEED)
    fx -= _drag3(params, 0, 0, u, w, q)
    fy -= _drag3(params, 1, 1, v, p, r)
    fz -= _drag3(params, 2, 0, u, w, q)
    fk -= _drag3(params, 3, 1, v, p, r)
    fm -= _drag3(params, 4, 0, u, w, q)
    fn -= _drag3(params, 5, 1, v, p, r)
    if partly_out:
        _keep_loads(work, fx, fy, fz, fk, fm, fn)
    tx, ty, tz = _acceleration_of_current(params, work)
    store(work, k + B.NU, tx + _half_row_product(params, P.MASS_INVERSE, fx, fz, fm))
    store(work, k + B.NU + 1, ty + _half_row_product(params, P.MASS_INVERSE + 7, fy, fk, fn))
    store(work, k + B.NU + 2, tz + _half_row_product(params, P.MASS_INVERSE + 12, fx, fz, fm))
    store(work, k + B.NU + 3, _half_row_product(params, P.MASS_INVERSE + 19, fy, fk, fn))
    store(work, k + B.NU + 4, _half_row_product(params, P.MASS_INVERSE + 24, fx, fz, fm))
    store(work, k + B.NU + 5, _half_row_product(params, P.MASS_INVERSE + 31, fy, fk, fn))


@always_inline
def mooring(block: Floats, work: Floats, k: int) -> None:
    """Add the forces of lines and of the elastic mooring. The mooring connects the body's origin to its anchor and can
    only pull.
    """
    dx = load(block, B.MOORING) - load(work, W.STATE + B.PX)
    dy = load(block, B.MOORING + 1) - load(work, W.STATE + B.PY)
    dz = load(block, B.MOORING + 2) - load(work, W.STATE + B.PZ)
    away = dx * load(work, k + B.PX) + dy * load(work, k + B.PY) + dz * load(work, k + B.PZ)
    dist = sqrt(dx * dx + dy * dy + dz * dz) + 1e-12
    stretch = dist - load(block, B.MOORING_LENGTH)
    pull = load(block, B.MOORING_STIFFNESS) * stretch - load(block, B.MOORING_DAMPING) * away / dist
    pull = select(stretch > 0.0, maximum(pull, 0.0) / dist, 0.0)
    for i in range(3):
        add_to(
            work,
            W.FORCE + i,
            pull * (load(work, W.ROT + i) * dx + load(work, W.ROT + 3 + i) * dy + load(work, W.ROT + 6 + i) * dz),
        )
    for i in range(6):
        add_to(work, W.FORCE + i, load(block, B.LINE_WRENCH + i))


@always_inline
def lag_slots(block: Floats, params: Floats, work: Floats, first: int, last: int, gain: int, part: float) -> None:
    """Compute the exact values of lagged and rate-limited actuators at a time within the step; the gain index -1 means
    the start of the step.
    """
    for k in range(first, last):
        now = load(block, B.ACTUATOR_STATE + k)
        change = load(block, B.ACTUATOR_COMMAND + k) - now
        if gain < 0:
            change = change * broadcast(params, P.ACTUATOR_IMMEDIATE + k)
        else:
            rate = broadcast(params, P.ACTUATOR_RATE + k) * part
            change = minimum(maximum(change * broadcast(params, P.ACTUATOR_GAIN + SLOTS * gain + k), -rate), rate)
        store(work, W.STAGE_ACTUATORS + k, now + change)


@always_inline
def lag_actuators(block: Floats, params: Floats, work: Floats, model_ints: Ints, gain: int, part: float) -> None:
    """Compute the values of all actuators in a model at a time within the step."""
    lag_slots(block, params, work, 0, model_ints[M.THRUSTER_COUNT], gain, part)
    lag_slots(block, params, work, SLOT_FIN, SLOT_FIN + model_ints[M.FIN_COUNT], gain, part)
    if model_ints[M.FLAGS] & (M.HAS_SWIVEL | M.HAS_BALLAST | M.HAS_OTHER):
        lag_slots(block, params, work, SLOT_ANGLE, SLOTS, gain, part)


@always_inline
def actuator_forces(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> None:
    """Add the forces of all actuators to the force rows."""
    flags = model_ints[M.FLAGS]
    if flags & M.HAS_THRUSTER_LAW:
        terms.thrusters(block, params, work, model_ints[M.THRUSTER_COUNT], flags & M.HAS_TORQUE != 0)
        if flags & M.HAS_KT_TABLE:
            terms.table_thrusters(block, params, work, model_ints, tables, model_ints[M.THRUSTER_COUNT])
        if flags & M.HAS_SWIVEL:
            terms.swivels(params, work, model_ints[M.THRUSTER_COUNT])
    else:
        terms.simple_thrusters(block, params, work, model_ints[M.THRUSTER_COUNT])
    if flags & M.HAS_FIN:
        terms.fins(block, params, work, model_ints[M.FIN_COUNT])
        if flags & M.HAS_STALL:
            stall.forces(block, params, work, model_ints[M.FIN_COUNT])
    if flags & M.HAS_FIN_COEFFICIENTS:
        terms.fin_coefficients(block, params, work, model_ints[M.FIN_COUNT])
    if flags & M.HAS_AEROFOIL:
        terms.aerofoils(block, params, work, model_ints, tables, model_ints[M.FIN_COUNT])
    registry.actuators(block, params, work, model_ints)


@always_inline
def hull_forces(block: Floats, params: Floats, work: Floats, model_ints: Ints, number: int) -> None:
    """Add the hull forces that cannot be written as a matrix times a velocity to the force rows. ``number`` is the
    index of the stage.
    """
    flags = model_ints[M.FLAGS]
    if flags & M.ON_SURFACE:
        terms.seakeeping(params, work)
    if flags & M.HAS_LIFT:
        body_lift(params, work)
    if flags & M.HAS_DERIVATIVES:
        terms.named_derivatives(params, work, model_ints, model_ints[M.DERIVATIVE_COUNT])
    if flags & M.HAS_CROSS:
        terms.cross_flow(params, work)
    if flags & M.HAS_FRICTION:
        terms.friction(params, work)
    if flags & M.HAS_FADE:
        terms.fading_drag(params, work)
    if flags & M.HAS_WING:
        terms.wing_lift(params, work)
    if flags & M.HAS_MUNK:
        terms.omit_munk_terms(params, work)
    if flags & M.HAS_MEMORY:
        terms.radiation_memory(params, work, model_ints, model_ints[M.MEMORY_COUNT], number)
    if flags & M.HAS_RADIATION:
        radiation.oscillators(params, work, model_ints, number)
    registry.terms(block, params, work, model_ints)


@always_inline
def surface_buoyancy(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> bool:
    """Set the buoyancy and the wetted fraction of bodies at the surface; return whether any of these bodies is partly
    out of the water.
    """
    surface.surface_buoyancy(block, params, work, model_ints, tables)
    partly_out = water_exit.is_partly_out(block, params, work)
    if partly_out:
        now = load(work, W.BUOYANCY)
        surface.buoyancy_after_instant(block, params, work, model_ints, tables, water_exit.INSTANT_S)
        water_exit.wet_share_rate(params, work)
        store(work, W.BUOYANCY, now)
    return partly_out


@always_inline
def evaluate_stage(
    block: Floats,
    params: Floats,
    work: Floats,
    model_ints: Ints,
    tables: Floats,
    stage: Stage,
    afloat: bool,
    moored: bool,
) -> None:
    """Evaluate the equation of motion at X, and write the result to the derivative rows of a stage."""
    flags, k = model_ints[M.FLAGS], W.DERIVATIVES + B.STATE_ROWS * stage.number
    lag_actuators(block, params, work, model_ints, stage.gain, stage.time)
    kinematics(block, params, work, k)
    partly_out = False
    if afloat:
        partly_out = surface_buoyancy(block, params, work, model_ints, tables)
    for i in range(6):
        store(work, W.FORCE + i, load(block, B.EXTERNAL_WRENCH + i) + load(block, B.ENVIRONMENT_WRENCH + i))
    if flags & (M.HAS_THRUSTER_LAW | M.HAS_DERIVATIVES):
        terms.derivative_basis(work, model_ints[M.FIN_COUNT])
    actuator_forces(block, params, work, model_ints, tables)
    hull_forces(block, params, work, model_ints, stage.number)
    if partly_out:
        water_exit.fade_water_forces(block, work)
    if flags & M.HAS_AERODYNAMICS:
        aerodynamics.forces(block, params, work, model_ints[M.THRUSTER_COUNT], model_ints[M.FIN_COUNT])
    if flags & M.HAS_RESTORING:
        terms.restoring(block, params, work)
    if flags & M.HAS_BALLAST:
        terms.ballast(params, work, model_ints[M.TANKS])
    if moored:
        mooring(block, work, k)
    if flags & M.COUPLES_PLANES:
        solve(params, work, k, partly_out)
    else:
        solve_symmetric(params, work, k, partly_out)
    if partly_out:
        water_exit.solve_partly_out(params, work, k)
