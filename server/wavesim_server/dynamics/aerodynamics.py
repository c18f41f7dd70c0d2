"""Aerodynamic forces on an aircraft: wing, tail, control surfaces and propellers (Beard & McLain, Small Unmanned
Aircraft, 2012, ch. 4), and the forces that stop an aircraft in the water.

    F = 1/2 rho V^2 S (lift and drag in the plane of symmetry, side force),  M = 1/2 rho V^2 S (b Cl, c Cm, b Cn)

V is the speed through the air. With the blending function s(alpha), which changes from 0 to 1 at the stall angle:

    CL = (1 - s) (CL0 + CLa alpha) + 2 s sgn(alpha) sin^2(alpha) cos(alpha) + CLq q c/(2 V) + sum CLd d
    CD = CD0 + (1 - s) (CL0 + CLa alpha)^2/(pi e A) + 2 s abs(sin(alpha)^3) + sum CDd d
    Cm = (1 - s) (Cm0 + Cma alpha) + s (Cma/CLa) 2 sgn(alpha) sin^2(alpha) + Cmq q c/(2 V) + sum Cmd d

Beyond stall, the wing is modelled as a flat plate, whose normal force acts at the neutral point. The book gives only
the lift beyond stall, not the drag or the moment. Beyond stall, the effect of the control surfaces fades to cos(alpha)
times their full effect, so that it reverses when the flow comes from behind. Side force, roll and yaw are linear in
beta, p, r and the angles of the control surfaces.

The aerodynamic forces decrease with the wetted fraction (:mod:`wavesim_server.dynamics.water_exit`). In the water, the
motion relative to the water decays as in v' = -v abs(v)/L over the length L, where v includes half the span times the
angular rate. The rate of decay is limited to 1/step, so that the step is stable at any impact speed.
"""

from __future__ import annotations

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.lanes import add_to, broadcast, load, maximum, select, splat, sqrt, store
from wavesim_server.dynamics.sizes import SLOT_FIN, THRUSTERS
from wavesim_server.dynamics.types import Lanes
from wavesim_server.elementary import LEAST, atan2, exp

LIFT, DRAG, SIDE, ROLL, PITCH, YAW = range(6)  #: order of the coefficients of a control surface


@always_inline
def velocity_through_air(block: Floats, work: Floats) -> None:
    """Store the velocity through the air, and the fraction of the aerodynamic forces that is applied."""
    x, y, z = load(block, B.V_AF_W), load(block, B.V_AF_W + 1), load(block, B.V_AF_W + 2)
    for i in range(3):
        wind = load(work, W.ROT + i) * x + load(work, W.ROT + 3 + i) * y + load(work, W.ROT + 6 + i) * z
        store(work, W.NU_A + i, load(work, W.STATE + B.NU + i) - wind)
    store(work, W.AIR_SHARE, 1.0 - load(work, W.WET_SHARE))


@always_inline
def _stalled_share(params: Floats, alpha: Lanes) -> Lanes:
    """Return the blending function s(alpha): 0 for a wing with attached flow, 1 for a stalled wing."""
    sharpness, stall = broadcast(params, P.AIR_SHARPNESS), broadcast(params, P.AIR_STALL)
    above, below = exp(-sharpness * (alpha - stall)), exp(sharpness * (alpha + stall))
    return (1.0 + above + below) / ((1.0 + above) * (1.0 + below))


@always_inline
def _controls(block: Floats, params: Floats, work: Floats, count: int, which: int) -> Lanes:
    """Return the sum of the effects of all control surfaces on one coefficient."""
    total = splat(0.0)
    for k in range(count):
        angle = load(work, W.STAGE_ACTUATORS + SLOT_FIN + k) * load(block, B.ACTUATOR_EFFECT + THRUSTERS + k)
        total = total + broadcast(params, P.AIR_CONTROL + 6 * k + which) * angle
    return total


@always_inline
def _lateral(params: Floats, first: int, beta: Lanes, p: Lanes, r: Lanes) -> Lanes:
    """Return a coefficient of the side force or of the roll or yaw moment, linear in beta, p and r; p and r are
    dimensionless.
    """
    return (
        broadcast(params, first)
        + broadcast(params, first + 1) * beta
        + broadcast(params, first + 2) * p
        + broadcast(params, first + 3) * r
    )


@device_function
def airframe(block: Floats, params: Floats, work: Floats, fins: int) -> None:
    """Add the aerodynamic forces on wing, tail and control surfaces, and the forces that stop an aircraft in the
    water.
    """
    velocity_through_air(block, work)
    u, v, w = load(work, W.NU_A), load(work, W.NU_A + 1), load(work, W.NU_A + 2)
    plane = sqrt(u * u + w * w)
    speed = sqrt(u * u + v * v + w * w)
    still = plane <= LEAST
    safe = select(still, 1.0, plane)
    cosine, sine = select(still, 1.0, u / safe), select(still, 0.0, w / safe)
    alpha, beta = atan2(w, u), atan2(v, plane)
    per_speed = 0.5 / maximum(speed, LEAST)
    span, chord = broadcast(params, P.AIR_SPAN), broadcast(params, P.AIR_CHORD)
    p = load(work, W.NU_R + 3) * span * per_speed
    q = load(work, W.NU_R + 4) * chord * per_speed
    r = load(work, W.NU_R + 5) * span * per_speed
    stalled = _stalled_share(params, alpha)
    attached = 1.0 - stalled
    effect = attached + stalled * cosine
    slope = broadcast(params, P.AIR_LIFT + 1)
    linear = broadcast(params, P.AIR_LIFT) + slope * alpha
    plate = stalled * 2.0 * sine * abs(sine)  # normal force of the plate
    lift = attached * linear + plate * cosine + broadcast(params, P.AIR_LIFT + 2) * q
    lift = lift + effect * _controls(block, params, work, fins, LIFT)
    drag = broadcast(params, P.AIR_DRAG) + attached * linear * linear * broadcast(params, P.AIR_INDUCED) + plate * sine
    drag = drag + effect * _controls(block, params, work, fins, DRAG)
    pitch = attached * (broadcast(params, P.AIR_PITCH) + broadcast(params, P.AIR_PITCH + 1) * alpha)
    pitch = pitch + broadcast(params, P.AIR_PITCH + 1) / slope * plate + broadcast(params, P.AIR_PITCH + 2) * q
    pitch = pitch + effect * _controls(block, params, work, fins, PITCH)
    side = _lateral(params, P.AIR_SIDE, beta, p, r) + effect * _controls(block, params, work, fins, SIDE)
    roll = _lateral(params, P.AIR_ROLL, beta, p, r) + effect * _controls(block, params, work, fins, ROLL)
    yaw = _lateral(params, P.AIR_YAW, beta, p, r) + effect * _controls(block, params, work, fins, YAW)
    force = broadcast(params, P.AIR_AREA) * speed * speed * load(work, W.AIR_SHARE)
    add_to(work, W.FORCE, force * (sine * lift - cosine * drag))
    add_to(work, W.FORCE + 1, force * side)
    add_to(work, W.FORCE + 2, -force * (cosine * lift + sine * drag))
    add_to(work, W.FORCE + 3, force * span * roll)
    add_to(work, W.FORCE + 4, force * chord * pitch)
    add_to(work, W.FORCE + 5, force * span * yaw)
    _stop_in_water(params, work)


@always_inline
def _stop_in_water(params: Floats, work: Floats) -> None:
    """Add the force -rate M nu_r, which makes the motion relative to the water decay."""
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    p, q, r = load(work, W.NU_R + 3), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
    speed = sqrt(u * u + v * v + w * w) + 0.5 * broadcast(params, P.AIR_SPAN) * sqrt(p * p + q * q + r * r)
    rate = load(work, W.WET_SHARE) * speed * broadcast(params, P.AIR_DITCHING)
    rate = rate / (1.0 + broadcast(params, P.AIR_STEP) * rate)
    for i in range(6):
        momentum = splat(0.0)
        for j in range(6):
            momentum = momentum + broadcast(params, P.TOTAL_INERTIA + 6 * i + j) * load(work, W.NU_R + j)
        add_to(work, W.FORCE + i, -rate * momentum)


@device_function
def propellers(block: Floats, params: Floats, work: Floats, count: int) -> None:
    """Add the thrust T = rho D^4 n^2 KT(J) and the reaction torque of the propellers, with J = u_a/(n D), where u_a is
    the speed through the air along the thrust.

    A propeller that would brake (J above the advance ratio of zero thrust, or n = 0) produces no force.
    """
    velocity_through_air(block, work)
    size, diameter = broadcast(params, P.AIR_PROPELLER), broadcast(params, P.AIR_DIAMETER)
    for k in range(count):
        o = P.THRUSTER_WRENCH + 6 * k
        along = splat(0.0)
        for i in range(3):
            along = along + broadcast(params, o + i) * load(work, W.NU_A + i)
            along = along + broadcast(params, o + 3 + i) * load(work, W.NU_R + 3 + i)
        n = maximum(load(work, W.STAGE_ACTUATORS + k), 0.0)
        inflow = maximum(along, 0.0) / diameter
        share = size * load(work, W.AIR_SHARE) * load(block, B.ACTUATOR_EFFECT + k)
        thrust = _by_advance(params, P.AIR_KT, n, inflow)
        torque = _by_advance(params, P.AIR_KQ, n, inflow)
        for i in range(6):
            add_to(work, W.FORCE + i, share * maximum(thrust, 0.0) * broadcast(params, o + i))
        braking = select(broadcast(params, P.AIR_KQ) >= 0.0, maximum(torque, 0.0), -maximum(-torque, 0.0))
        for i in range(3):
            add_to(work, W.FORCE + 3 + i, -share * braking * broadcast(params, o + i))


@always_inline
def _by_advance(params: Floats, first: int, n: Lanes, inflow: Lanes) -> Lanes:
    """Return n^2 K(J) for a curve K = k0 + k1 J + k2 J^2, with ``inflow`` = u_a/D = n J."""
    curve = broadcast(params, first) * n + broadcast(params, first + 1) * inflow
    return n * curve + broadcast(params, first + 2) * inflow * inflow


@always_inline
def forces(block: Floats, params: Floats, work: Floats, thrusters: int, fins: int) -> None:
    """Add all aerodynamic forces, and the forces that stop an aircraft in the water."""
    propellers(block, params, work, thrusters)
    airframe(block, params, work, fins)
