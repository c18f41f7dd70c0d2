"""Declarations of the aerodynamics of an aircraft: wing, control surfaces and propellers.

This module is part of the configuration model. A configuration file may use any supported unit; the objects contain SI
values and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.schema import Vector, child, children, key, text


@dataclass(frozen=True)
class ControlSurface:
    """Effect of a control surface: changes in the coefficients per rad of fin angle."""

    fin: str = text('Name of the <fin law="derivatives"> whose angle moves the control surface.')
    lift: float = key("Change in the lift coefficient CL per rad.", default=0.0)
    drag: float = key("Change in the drag coefficient CD per rad. It has the same sign as the angle.", default=0.0)
    side: float = key("Change in the side-force coefficient CY per rad.", default=0.0)
    roll: float = key("Change in the rolling-moment coefficient Cl per rad.", default=0.0)
    pitch: float = key("Change in the pitching-moment coefficient Cm per rad.", default=0.0)
    yaw: float = key("Change in the yawing-moment coefficient Cn per rad.", default=0.0)


@dataclass(frozen=True)
class AircraftPropeller:
    """Propeller in air: T = rho D^4 n^2 KT(J) and Q = rho D^5 n^2 KQ(J), with J = u_a/(n D).

    It applies to every <thruster> of the aircraft. The command of such a thruster is the shaft speed n in 1/s. u_a is
    the speed through the air along the thrust. A propeller whose thrust would be negative produces no force.
    """

    diameter: float = key("Diameter D of the propeller.", "length", low=1e-3)
    kt: Vector = key("Coefficients k0, k1, k2 of the thrust coefficient KT = k0 + k1 J + k2 J^2.", count=3)
    kq: Vector = key(
        "Coefficients k0, k1, k2 of the torque coefficient KQ = k0 + k1 J + k2 J^2.", default=(0.0, 0.0, 0.0), count=3
    )
    torque_share: float = key(
        "Fraction of the propeller torque that acts on the airframe: 1 for a propeller that turns clockwise as seen "
        "from behind, -1 for one that turns the other way, 0 = none.",
        default=1.0,
        low=-1.0,
        high=1.0,
    )


@dataclass(frozen=True)
class Aerodynamics:
    """Aerodynamic forces on an aircraft (Beard and McLain, Small Unmanned Aircraft, 2012, ch. 4).

    Forces are 1/2 rho V^2 S times CL, CD or CY, and moments 1/2 rho V^2 S times b Cl, c Cm or b Cn. V is the speed
    through the air, alpha the angle of attack, and beta the sideslip angle. The wind of the world acts at the height of
    the aircraft. Beyond stall, the wing is modelled as a flat plate. The reference point of the moments is the body's
    origin.
    """

    area: float = key("Wing area S.", "area", low=1e-4)
    span: float = key("Wing span b.", "length", low=1e-2)
    chord: float = key("Mean chord c of the wing.", "length", low=1e-3)
    efficiency: float = key("Oswald efficiency e of the wing.", default=0.9, low=0.01, high=1.0)
    drag: float = key("Drag coefficient CD at zero lift. The induced drag CL^2 S/(pi e b^2) is added.", low=0.0)
    lift: Vector = key(
        "Lift coefficient CL at zero alpha, and its slopes with respect to alpha and q c/(2 V).", count=3
    )
    pitch: Vector = key(
        "Pitching-moment coefficient Cm at zero alpha, and its slopes with respect to alpha and q c/(2 V).", count=3
    )
    side: Vector = key(
        "Side-force coefficient CY at zero beta, and its slopes with respect to beta, p b/(2 V) and r b/(2 V).",
        count=4,
    )
    roll: Vector = key(
        "Rolling-moment coefficient Cl at zero beta, and its slopes with respect to beta, p b/(2 V) and r b/(2 V).",
        count=4,
    )
    yaw: Vector = key(
        "Yawing-moment coefficient Cn at zero beta, and its slopes with respect to beta, p b/(2 V) and r b/(2 V).",
        count=4,
    )
    stall: float = key("Angle of attack at which the wing stalls.", "angle", low=0.01, high=1.0471976)
    sharpness: float = key(
        "Sharpness M of the stall, 1/rad: the transition to the flat-plate model spans about 8/M rad of angle of "
        "attack.",
        default=50.0,
        low=1.0,
        high=100.0,
    )
    ditching: float = key(
        "Length over which an aircraft that hits the water loses 63 % of its speed.", "length", 0.5, low=0.01
    )
    control: tuple[ControlSurface, ...] = children(ControlSurface, "Control surface that a <fin> moves.")
    propeller: AircraftPropeller | None = child(
        AircraftPropeller, "Properties of the thrusters' propellers when they run in air."
    )
