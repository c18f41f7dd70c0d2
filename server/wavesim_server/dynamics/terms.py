"""Optional terms of the equation of motion. Each function adds one term to the force rows of one block.

Every function processes all lanes at literal offsets; only table lookups process the lanes one by one. The docstring of
each term names its source.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import always_inline
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.lanes import (
    add_to,
    broadcast,
    element,
    load,
    maximum,
    minimum,
    select,
    splat,
    sqrt,
    store,
)
from wavesim_server.dynamics.sizes import (
    FINS,
    LANES,
    SLOT_ANGLE,
    SLOT_BALLAST,
    SLOT_BUCKET,
    SLOT_FIN,
    SWIVELS,
    TABLE_POINTS,
    THRUSTERS,
)
from wavesim_server.dynamics.types import Lanes
from wavesim_server.elementary import LEAST, atan2, exp, log10, sin_cos


@always_inline
def speed_along(params: Floats, row: int, work: Floats) -> Lanes:
    """Return the product of a force-and-torque column of the parameters and nu_r. This product is the component, along
    the force, of the velocity at the point where the force acts.
    """
    return (
        broadcast(params, row) * load(work, W.NU_R)
        + broadcast(params, row + 1) * load(work, W.NU_R + 1)
        + broadcast(params, row + 2) * load(work, W.NU_R + 2)
        + broadcast(params, row + 3) * load(work, W.NU_R + 3)
        + broadcast(params, row + 4) * load(work, W.NU_R + 4)
        + broadcast(params, row + 5) * load(work, W.NU_R + 5)
    )


@always_inline
def _add_wrench(work: Floats, params: Floats, row: int, size: Lanes) -> None:
    """Add a column of the parameters, multiplied by a magnitude, to the force rows."""
    for i in range(6):
        add_to(work, W.FORCE + i, broadcast(params, row + i) * size)


# ------------------------------------------------------------------ actuators


@always_inline
def simple_thrusters(block: Floats, params: Floats, work: Floats, count: int) -> None:
    """Add a thrust that equals the lagged command."""
    for k in range(count):
        _add_wrench(
            work,
            params,
            P.THRUSTER_WRENCH + 6 * k,
            load(work, W.STAGE_ACTUATORS + k) * load(block, B.ACTUATOR_EFFECT + k),
        )


@always_inline
def _thrust_by_law(params: Floats, work: Floats, k: int) -> Lanes:
    """Return the thrust c1 n + abs(n) (c2 n + c3 u_a), with coefficients that depend on the sign of n."""
    n = load(work, W.STAGE_ACTUATORS + k)
    forward, astern = P.THRUSTER_LAW + P.LAW_SIZE * k + P.LAW_AHEAD, P.THRUSTER_LAW + P.LAW_SIZE * k + P.LAW_ASTERN
    ahead = n > 0.0
    c1 = select(ahead, broadcast(params, forward), broadcast(params, astern))
    c2 = select(ahead, broadcast(params, forward + 1), broadcast(params, astern + 1))
    c3 = select(ahead, broadcast(params, forward + 2), broadcast(params, astern + 2))
    most = broadcast(params, P.THRUSTER_LAW + P.LAW_SIZE * k + P.LAW_LIMIT)
    return minimum(maximum(c1 * n + abs(n) * (c2 * n + c3 * _advance_speed(params, work, k)), -most), most)


@always_inline
def _advance_speed(params: Floats, work: Floats, k: int) -> Lanes:
    """Return the advance speed u_a. This is the speed along the thruster, or the total speed through the water (DUNE,
    Fossen's REMUS). In both cases, the speed is multiplied by 1 - wake.
    """
    whole = broadcast(params, P.THRUSTER_LAW + P.LAW_SIZE * k + P.LAW_WHOLE)
    along = speed_along(params, P.THRUSTER_WRENCH + 6 * k, work)
    return ((1.0 - whole) * along + whole * load(work, W.SPEED_POWERS)) * broadcast(
        params, P.THRUSTER_LAW + P.LAW_SIZE * k + P.LAW_WAKE
    )


@always_inline
def thrusters(block: Floats, params: Floats, work: Floats, count: int, torque: bool) -> None:
    """Add the thrust from the thruster laws, and the propeller torque."""
    for k in range(count):
        effect = load(block, B.ACTUATOR_EFFECT + k)
        size = _thrust_by_law(params, work, k) * effect
        store(work, W.THRUST + k, size)
        _add_wrench(work, params, P.THRUSTER_WRENCH + 6 * k, size)
        if torque:
            n = load(work, W.STAGE_ACTUATORS + k)
            forward, astern = (
                P.THRUSTER_LAW + P.LAW_SIZE * k + P.LAW_TORQUE_AHEAD,
                P.THRUSTER_LAW + P.LAW_SIZE * k + P.LAW_TORQUE_ASTERN,
            )
            ahead = n > 0.0
            q2 = select(ahead, broadcast(params, forward), broadcast(params, astern))
            q3 = select(ahead, broadcast(params, forward + 1), broadcast(params, astern + 1))
            moment = abs(n) * (q2 * n + q3 * _advance_speed(params, work, k)) * effect
            for i in range(3):
                add_to(work, W.FORCE + 3 + i, moment * broadcast(params, P.PROPELLER_TORQUE_AXIS + 3 * k + i))


@always_inline
def table_thrusters(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats, count: int) -> None:
    """Add the thrust rho D^4 KT(J) n abs(n), with J = u_a/(n D) and KT from a table."""
    for k in range(count):
        table = model_ints[M.ACTUATOR_TABLES + FINS + k]
        if table < 0:
            continue
        o, n = P.THRUSTER_LAW + P.LAW_SIZE * k, load(work, W.STAGE_ACTUATORS + k)
        advance_ratio = _advance_speed(params, work, k) / (n * broadcast(params, o + P.LAW_DIAMETER))
        store(
            work,
            W.LANE_SCRATCH,
            (advance_ratio - broadcast(params, o + P.LAW_LEAST_J)) * broadcast(params, o + P.LAW_PER_J),
        )
        for l in range(LANES):
            if element(block, B.PRESENT, l) == 0.0:
                continue
            place = element(work, W.LANE_SCRATCH, l)
            if element(work, W.STAGE_ACTUATORS + k, l) == 0.0 or not place > 0.0:  # NaN cannot index a table
                place = 0.0
            place = min(place, TABLE_POINTS - 1.000001)
            i = int(place)
            kt = tables[table, 0, i] + (place - i) * (tables[table, 0, i + 1] - tables[table, 0, i])
            work[W.LANE_SCRATCH * LANES + l] = kt
        _add_wrench(
            work,
            params,
            P.THRUSTER_WRENCH + 6 * k,
            broadcast(params, o + P.LAW_SCALE)
            * load(work, W.LANE_SCRATCH)
            * n
            * abs(n)
            * load(block, B.ACTUATOR_EFFECT + k),
        )


@always_inline
def swivels(params: Floats, work: Floats, count: int) -> None:
    """Rotate the thrust of azimuth thrusters and jets by their angle.

    The thrust has already been added along the fixed direction. A deflector scales the part of the thrust along that
    direction.
    """
    for k in range(min(count, SWIVELS)):
        sine, cosine = sin_cos(load(work, W.STAGE_ACTUATORS + SLOT_ANGLE + k))
        size = load(work, W.THRUST + k)
        _add_wrench(
            work,
            params,
            P.THRUSTER_WRENCH + 6 * k,
            size * (cosine * load(work, W.STAGE_ACTUATORS + SLOT_BUCKET + k) - 1.0),
        )
        _add_wrench(work, params, P.THRUSTER_WRENCH_TURNED + 6 * k, size * sine)


@always_inline
def fins(block: Floats, params: Floats, work: Floats, count: int) -> None:
    """Add the linear fin lift 1/2 rho A CL_a abs(u) (u delta - w_n) along the fin's normal."""
    for k in range(count):
        u, q, r = load(work, W.NU_R), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
        along = u + q * broadcast(params, P.FIN_PLACE_Z + k) - r * broadcast(params, P.FIN_PLACE_Y + k)
        wn = speed_along(params, P.FIN_WRENCH + 6 * k, work) * broadcast(params, P.FIN_INFLOW + k)
        lift = (
            broadcast(params, P.FIN_LIFT + k) * abs(along) * (along * load(work, W.STAGE_ACTUATORS + SLOT_FIN + k) - wn)
        )
        _add_wrench(work, params, P.FIN_WRENCH + 6 * k, lift * load(block, B.ACTUATOR_EFFECT + THRUSTERS + k))


@always_inline
def fin_coefficients(block: Floats, params: Floats, work: Floats, count: int) -> None:
    """Add the force and torque of fins whose coefficients are given per angle and per squared angle. The force and the
    torque are proportional to the squared speed across the span.
    """
    for k in range(count):
        u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
        along = (
            u * broadcast(params, P.FIN_SPAN + 3 * k)
            + v * broadcast(params, P.FIN_SPAN + 3 * k + 1)
            + w * broadcast(params, P.FIN_SPAN + 3 * k + 2)
        )
        angle = load(work, W.STAGE_ACTUATORS + SLOT_FIN + k)
        size = (u * u + v * v + w * w - along * along) * angle * load(block, B.ACTUATOR_EFFECT + THRUSTERS + k)
        _add_wrench(work, params, P.FIN_PER_ANGLE + 6 * k, size)
        _add_wrench(work, params, P.FIN_PER_SQUARE + 6 * k, size * angle)


@always_inline
def _load_vector(params: Floats, first: int) -> tuple[float, float, float]:
    return params[first], params[first + 1], params[first + 2]


@always_inline
def aerofoils(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats, count: int) -> None:
    """Add lift and drag from a table at the local angle of attack, with the lift across the local flow and the drag
    along it.
    """
    for k in range(count):
        table = model_ints[M.ACTUATOR_TABLES + k]
        if table < 0:
            continue
        o = P.FIN_FOIL + P.FOIL_SIZE * k
        for l in range(LANES):
            if element(block, B.PRESENT, l) == 0.0:
                continue
            x, y, z = _load_vector(params, o + P.FOIL_PLACE)
            vp, vq, vr = element(work, W.NU_R + 3, l), element(work, W.NU_R + 4, l), element(work, W.NU_R + 5, l)
            u = element(work, W.NU_R, l) + vq * z - vr * y
            v = element(work, W.NU_R + 1, l) + vr * x - vp * z
            h = element(work, W.NU_R + 2, l) + vp * y - vq * x
            cx, cy, cz = _load_vector(params, o + P.FOIL_CHORD)
            nx, ny, nz = _load_vector(params, o + P.FOIL_NORMAL)
            along, across = u * cx + v * cy + h * cz, u * nx + v * ny + h * nz
            speed2 = along * along + across * across
            if speed2 == 0.0:
                continue
            if not speed2 < math.inf:  # the state has diverged; NaN cannot index a table
                work[W.FORCE * LANES + l] = math.nan
                continue
            attack = element(work, W.STAGE_ACTUATORS + SLOT_FIN + k, l) - atan2(across, along)
            turns = attack / (2.0 * math.pi)
            place = (turns - math.floor(turns + 0.5) + 0.5) * (TABLE_POINTS - 1)
            i = min(int(place), TABLE_POINTS - 2)
            cl = tables[table, 0, i] + (place - i) * (tables[table, 0, i + 1] - tables[table, 0, i])
            cd = tables[table, 1, i] + (place - i) * (tables[table, 1, i + 1] - tables[table, 1, i])
            size = params[o + P.FOIL_AREA] * math.sqrt(speed2) * element(block, B.ACTUATOR_EFFECT + THRUSTERS + k, l)
            fc = -size * (cl * across + cd * along)
            fn = size * (cl * along - cd * across)
            fx, fy, fz = fc * cx + fn * nx, fc * cy + fn * ny, fc * cz + fn * nz
            work[W.FORCE * LANES + l] += fx
            work[(W.FORCE + 1) * LANES + l] += fy
            work[(W.FORCE + 2) * LANES + l] += fz
            work[(W.FORCE + 3) * LANES + l] += y * fz - z * fy
            work[(W.FORCE + 4) * LANES + l] += z * fx - x * fz
            work[(W.FORCE + 5) * LANES + l] += x * fy - y * fx


@always_inline
def ballast(params: Floats, work: Floats, count: int) -> None:
    """Add the weight of the ballast in each tank: its mass in kg times g. The inertia of the ballast is small and is
    neglected.
    """
    for k in range(count):
        weight = load(work, W.STAGE_ACTUATORS + SLOT_BALLAST + k) * broadcast(params, P.GRAVITY)
        fx, fy, fz = weight * load(work, W.ROT + 6), weight * load(work, W.ROT + 7), weight * load(work, W.ROT + 8)
        x, y, z = (
            broadcast(params, P.BALLAST_PLACE + 3 * k),
            broadcast(params, P.BALLAST_PLACE + 3 * k + 1),
            broadcast(params, P.BALLAST_PLACE + 3 * k + 2),
        )
        add_to(work, W.FORCE, fx)
        add_to(work, W.FORCE + 1, fy)
        add_to(work, W.FORCE + 2, fz)
        add_to(work, W.FORCE + 3, y * fz - z * fy)
        add_to(work, W.FORCE + 4, z * fx - x * fz)
        add_to(work, W.FORCE + 5, x * fy - y * fx)


# ------------------------------------------------------------------ hull


@always_inline
def derivative_basis(work: Floats, fins: int) -> None:
    """Compute abs(nu_r), U, U^2, 1/U and the fin angles, for those terms that need them."""
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    square = u * u + v * v + w * w
    speed = sqrt(square)
    store(work, W.DERIVATIVE_BASIS, splat(1.0))
    store(work, W.SPEED_POWERS, speed)
    store(work, W.SPEED_POWERS + 1, square)
    store(work, W.SPEED_POWERS + 2, 1.0 / maximum(speed, 1e-6))
    for i in range(6):
        store(work, W.ABS_NU_R + i, abs(load(work, W.NU_R + i)))
    for i in range(fins):
        store(work, W.FIN_ANGLES + i, load(work, W.STAGE_ACTUATORS + SLOT_FIN + i))


@always_inline
def seakeeping(params: Floats, work: Floats) -> None:
    """Compute the heave of hulls on the surface. Added mass, drag and fluid memory act on their vertical motion.

    The added mass acts against the vertical acceleration w' - u q + v p. Drag and fluid memory act against the vertical
    speed, as in linear seakeeping theory (Fossen 2021, sec. 6.3 and 5.4). If they acted along the body's z axis, the
    hull would porpoise at speed.
    """
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    store(work, W.HEAVE_SPEED, load(work, W.ROT + 6) * u + load(work, W.ROT + 7) * v + load(work, W.ROT + 8) * w)
    turn = u * load(work, W.NU_R + 4) - v * load(work, W.NU_R + 3)
    for i in range(6):
        add_to(work, W.FORCE + i, broadcast(params, P.HEAVE_ADDED_MASS + i) * turn)


@always_inline
def named_derivatives(params: Floats, work: Floats, model_ints: Ints, count: int) -> None:
    """Add named hydrodynamic derivatives: a coefficient times up to four factors, added to one axis."""
    for t in range(count):
        term = M.DERIVATIVES + M.TERM_SIZE * t
        first = term + M.TERM_FACTORS
        factors = (
            load(work, W.DERIVATIVE_BASIS + model_ints[first])
            * load(work, W.DERIVATIVE_BASIS + model_ints[first + 1])
            * load(work, W.DERIVATIVE_BASIS + model_ints[first + 2])
        )
        force = (
            broadcast(params, P.DERIVATIVE_COEFFICIENT + t)
            * factors
            * load(work, W.DERIVATIVE_BASIS + model_ints[first + 3])
        )
        add_to(work, W.FORCE + model_ints[term + M.TERM_AXIS], force)


@always_inline
def _strip_integrals(v: Lanes, r: Lanes, h: Lanes) -> tuple[Lanes, Lanes]:
    """Return the exact integrals over x in [-h, h] of s abs(s) and x s abs(s), with s = v + x r."""
    low, high = v - r * h, v + r * h
    sign = select(v < 0.0, -1.0, 1.0)
    turns = abs(r) * h > maximum(
        abs(v), LEAST
    )  # the flow changes sides along the hull; the fourth power of r is a normal number
    by = 1.0 / select(turns, r, 1.0)
    al, ah = abs(low), abs(high)
    cubes = (ah * ah * ah - al * al * al) / 3.0
    fourths = 0.25 * (ah * ah * ah * high - al * al * al * low)
    cube = h * h * h
    y = select(turns, cubes * by, sign * (2.0 * h * v * v + 2.0 / 3.0 * cube * r * r))
    n = select(turns, (fourths - v * cubes) * by * by, sign * (4.0 / 3.0) * cube * v * r)
    return y, n


@always_inline
def cross_flow(params: Floats, work: Floats) -> None:
    """Add cross-flow drag along the hull (Faltinsen 1990) as an exact integral, for sway and yaw and for heave and
    pitch.
    """
    h, x = broadcast(params, P.CROSS_HALF), broadcast(params, P.CROSS_CENTRE)
    v, r, q = load(work, W.NU_R + 1), load(work, W.NU_R + 5), -load(work, W.NU_R + 4)
    y, n = _strip_integrals(v + x * r, r, h)
    z, m = _strip_integrals(load(work, W.HEAVE_SPEED) + x * q, q, h)
    still = abs(v) < broadcast(params, P.CROSS_STILL)
    add_to(work, W.FORCE + 1, select(still, 0.0, -broadcast(params, P.CROSS_SWAY) * y))
    add_to(work, W.FORCE + 5, select(still, 0.0, -broadcast(params, P.CROSS_YAW) * (n + x * y)))
    add_to(work, W.FORCE + 2, -broadcast(params, P.CROSS_HEAVE) * z)
    add_to(work, W.FORCE + 4, broadcast(params, P.CROSS_PITCH) * (m + x * z))


@always_inline
def friction(params: Floats, work: Floats) -> None:
    """Add surge friction according to the ITTC 1957 line: X = -c (0.075/(log10 Rn - 2)^2 + k) u abs(u).

    Below Rn = 1000, which is outside the range of the line, the coefficient keeps its value at Rn = 1000.
    """
    u = load(work, W.NU_R)
    lg = log10(maximum(abs(u) * broadcast(params, P.FRICTION_REYNOLDS), 1000.0)) - 2.0
    add_to(
        work,
        W.FORCE,
        -broadcast(params, P.FRICTION) * (0.075 / (lg * lg) + broadcast(params, P.FRICTION_RESIDUAL)) * u * abs(u),
    )


@always_inline
def fading_drag(params: Floats, work: Floats) -> None:
    """Add linear drag that fades with the speed as exp(-k U) (Fossen 2021, ch. 8: low-speed damping)."""
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    faded = exp(-(broadcast(params, P.FADING_RATE) * sqrt(u * u + v * v + w * w)))
    for i in range(6):
        add_to(work, W.FORCE + i, -broadcast(params, P.FADING_DRAG + i) * faded * load(work, W.NU_R + i))


@always_inline
def wing_lift(params: Floats, work: Floats) -> None:
    """Add the lift and drag of the hull as a slender wing at the angle of attack atan2(w, u) (Fossen 2021, ch. 8)."""
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    plane = sqrt(u * u + w * w)
    still = plane <= 0.0
    attack = atan2(w, u)
    size = broadcast(params, P.WING_AREA) * (u * u + v * v + w * w)
    cl = broadcast(params, P.WING_SLOPE) * attack
    cd = broadcast(params, P.WING_DRAG) + cl * cl * broadcast(params, P.WING_INDUCED)
    safe = select(still, 1.0, plane)
    c, s = select(still, 1.0, u / safe), w / safe
    add_to(work, W.FORCE, size * (s * cl - c * cd))
    add_to(work, W.FORCE + 2, -size * (s * cd + c * cl))


@always_inline
def omit_munk_terms(params: Floats, work: Floats) -> None:
    """Remove individual elements of C_A(nu_r), because some published models set these elements to zero."""
    a1, a2, a3 = (
        speed_along(params, P.ADDED_MASS_ROWS, work),
        speed_along(params, P.ADDED_MASS_ROWS + 6, work),
        speed_along(params, P.ADDED_MASS_ROWS + 12, work),
    )
    u, v, w, q, r = (
        load(work, W.NU_R),
        load(work, W.NU_R + 1),
        load(work, W.NU_R + 2),
        load(work, W.NU_R + 4),
        load(work, W.NU_R + 5),
    )
    add_to(work, W.FORCE, a3 * q * broadcast(params, P.OMITTED_MUNK) - a2 * r * broadcast(params, P.OMITTED_MUNK + 1))
    add_to(work, W.FORCE + 1, a1 * r * broadcast(params, P.OMITTED_MUNK + 2))
    add_to(work, W.FORCE + 2, -a1 * q * broadcast(params, P.OMITTED_MUNK + 3))
    add_to(
        work,
        W.FORCE + 4,
        a1 * w * broadcast(params, P.OMITTED_MUNK + 5) - a3 * u * broadcast(params, P.OMITTED_MUNK + 4),
    )
    add_to(
        work,
        W.FORCE + 5,
        a2 * u * broadcast(params, P.OMITTED_MUNK + 6) - a1 * v * broadcast(params, P.OMITTED_MUNK + 7),
    )


@always_inline
def restoring(block: Floats, params: Floats, work: Floats) -> None:
    """Add the linear restoring force -G [z, phi, theta] about the equilibrium, relative to the level and the slope of
    the water plane at the body.
    """
    z = load(work, W.STATE + B.PZ) - load(block, B.WATER_LEVEL) - broadcast(params, P.RESTORING_DEPTH)
    sx, sy = -load(block, B.WATER_SLOPE), -load(block, B.WATER_SLOPE + 1)
    unit = 1.0 / sqrt(1.0 + sx * sx + sy * sy)
    s = -(unit * (load(work, W.ROT + 6) + sx * load(work, W.ROT) + sy * load(work, W.ROT + 3)))
    y = unit * (load(work, W.ROT + 7) + sx * load(work, W.ROT + 1) + sy * load(work, W.ROT + 4))
    c = unit * (load(work, W.ROT + 8) + sx * load(work, W.ROT + 2) + sy * load(work, W.ROT + 5))
    theta, phi = atan2(s, sqrt(maximum(1.0 - s * s, 0.0))), atan2(y, c)
    for i in range(6):
        o = P.RESTORING + 3 * i
        add_to(
            work,
            W.FORCE + i,
            -(broadcast(params, o) * z + broadcast(params, o + 1) * phi + broadcast(params, o + 2) * theta),
        )


@always_inline
def radiation_memory(params: Floats, work: Floats, model_ints: Ints, count: int, stage: int) -> None:
    """Add the radiation force -mu of linear systems, where mu = c . x and nu_r drives the state x in companion form."""
    for m in range(count):
        system = M.MEMORIES + M.MEMORY_SIZE * m
        last, first = model_ints[system + M.MEMORY_ORDER] - 1, model_ints[system + M.MEMORY_FIRST]
        k, x = W.DERIVATIVES + B.STATE_ROWS * stage + B.RIGID_ROWS + first, W.STATE + B.MEMORY_STATE + first
        drive = load(work, W.WET_SHARE) * load(work, model_ints[system + M.MEMORY_SOURCE]) - broadcast(
            params, P.MEMORY_DENOMINATOR + first
        ) * load(work, x)
        force = broadcast(params, P.MEMORY_NUMERATOR + first) * load(work, x)
        for i in range(1, last + 1):
            store(work, k + i - 1, load(work, x + i))
            drive = drive - broadcast(params, P.MEMORY_DENOMINATOR + first + i) * load(work, x + i)
            force = force + broadcast(params, P.MEMORY_NUMERATOR + first + i) * load(work, x + i)
        store(work, k + last, drive)
        add_to(work, W.FORCE + model_ints[system + M.MEMORY_FORCE], -force)
