"""Declarations of the actuators of a model: thrusters, fins, ballast tanks and actuators from other packages.

This module is part of the configuration model. A configuration file may use any supported unit; the objects contain SI
values and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.schema import Vector, child, children, choice, content, flag, key, text


@dataclass(frozen=True)
class Swivel:
    """Drive that turns the thrust in the body's x-y plane: an azimuth drive or the nozzle of a jet.

    The drive is commanded as the actuator NAME-angle, where NAME is the thruster. The command is the angle in rad,
    positive from x towards y. Only the first four thrusters may have a swivel.
    """

    minimum: float = key("Minimum angle of the swivel.", "angle", -3.141592653589793, low=-3.1415927, high=3.1415927)
    maximum: float = key("Maximum angle of the swivel.", "angle", 3.141592653589793, low=-3.1415927, high=3.1415927)
    lag: float = key("Time constant of the swivel's first-order lag; 0 = no lag.", "time", 0.0, low=0.0)
    rate: float = key("Maximum angular rate of the swivel; 0 = unlimited.", "angular rate", 0.0, low=0.0)
    initial: float = key("Angle of the swivel when the body enters the simulation.", "angle", 0.0)


@dataclass(frozen=True)
class Deflector:
    """Astern deflector (bucket) of a water jet. It scales the thrust along the axis of the jet.

    The deflector is commanded as the actuator NAME-deflector, where NAME is the thruster. The command ranges from -1
    (full astern) to 1 (deflector up). Only the first four thrusters may have a deflector.
    """

    minimum: float = key("Minimum command of the deflector; -1 = full astern.", default=-1.0, low=-1.0, high=1.0)
    maximum: float = key("Maximum command of the deflector; 1 = deflector up.", default=1.0, low=-1.0, high=1.0)
    lag: float = key("Time constant of the deflector's first-order lag; 0 = no lag.", "time", 0.0, low=0.0)
    initial: float = key("Position of the deflector when the body enters the simulation.", default=1.0)


@dataclass(frozen=True)
class OpenWater:
    """Propeller with open-water curves: T = rho D^4 KT(J) n abs(n), Q = rho D^5 KQ(J) n abs(n).

    J = u_a/(n D) is the advance ratio, with n in 1/s. KT and KQ are linear in J. Alternatively, KT is interpolated
    between the rows `J KT` that the element contains. When n is negative, the linear curves are constant: KT and KQ do not
    depend on J (Fossen 2021, sec. 9.1).
    """

    diameter: float = key("Diameter D of the propeller.", "length", low=1e-3)
    kt: Vector = key(
        "Thrust coefficient KT of the propeller at advance ratio J = 0, and its slope with respect to J.",
        default=(0.0, 0.0),
        count=2,
    )
    kq: Vector = key(
        "Torque coefficient KQ of the propeller at advance ratio J = 0, and its slope with respect to J.",
        default=(0.0, 0.0),
        count=2,
    )
    torque_share: float = key(
        "Fraction of the propeller torque that acts on the hull in the opposite direction: 1 = all of it, 0 = none.",
        default=1.0,
    )
    deduction: float = key(
        "Thrust deduction t of the propeller: a thrust T causes the force (1 - t) T on the hull.",
        default=0.0,
        low=0.0,
        high=1.0,
    )
    rows: Vector = content(
        "Thrust curve of the propeller as rows `J KT`, ascending in J. Below the first and above the last row, KT is "
        "constant.",
        0,
    )


@dataclass(frozen=True)
class Thruster:
    """Thruster with the thrust law T = c1 n + c2 n abs(n) + c3 abs(n) u_a.

    The variable n is a force or a shaft speed (see `law`), and u_a is the inflow speed (see `inflow`). The model
    computes n from the command in four steps. It limits the command, applies the dead band, applies the motor law, and
    filters the result with the first-order lag.
    """

    name: str = text("Name of the thruster, unique among the actuators of the model. Commands and faults use it.")
    position: Vector = key(
        "Point of application of the thrust, in the body frame (forward, starboard, down).", "length", count=3
    )
    direction: Vector = key(
        "Direction of positive thrust in the body frame. It is normalised to a unit vector.", count=3
    )
    law: str = choice(
        "Meaning of the thruster variable n. force: a force in N. shaft: a shaft speed in revolutions per second.",
        ("force", "shaft"),
    )
    minimum: float = key(
        "Minimum command of the thruster. Without a motor law, the unit is N for law=force and 1/s for law=shaft."
    )
    maximum: float = key(
        "Maximum command of the thruster. Without a motor law, the unit is N for law=force and 1/s for law=shaft."
    )
    lag: float = key("Time constant of the thruster's first-order lag; 0 = no lag.", "time", low=0.0)
    coefficients: Vector = key(
        "Coefficients c1, c2, c3 of the thrust law c1 n + c2 n abs(n) + c3 abs(n) u_a, in SI units.",
        default=(1.0, 0.0, 0.0),
        count=3,
    )
    reverse: Vector = key(
        "Coefficients c1, c2, c3 of the thrust law for negative n. If absent, `coefficients` apply in both directions.",
        default=(),
        count=3,
    )
    inflow: str = choice(
        "Definition of the inflow speed u_a. along: speed of the thruster through the water along its direction. "
        "total: speed of the whole body through the water, as in DUNE and Fossen's REMUS.",
        ("along", "total"),
        "along",
    )
    wake: float = key("Wake fraction w: the inflow speed u_a is multiplied by (1 - w).", default=0.0, low=0.0, high=1.0)
    thrust_limit: float = key("Maximum thrust in either direction; 0 = unlimited.", "force", 0.0, low=0.0)
    motor: Vector = key(
        "Coefficients a and b of the motor law n = a sign(c) + b c, for a command c.", default=(0.0, 1.0), count=2
    )
    dead_band: float = key(
        "Dead band of the thruster, in the unit of the command: commands of smaller magnitude count as 0.",
        default=0.0,
        low=0.0,
    )
    start: float = key(
        "Simulation time from which the thruster responds to commands. Until then, it keeps its `initial` output.",
        "time",
        0.0,
        low=0.0,
    )
    initial: float = key(
        "Thruster variable n (force in N or shaft speed in 1/s) when the body enters the simulation: the output y(t0) of "
        "the first-order lag.",
        default=0.0,
    )
    feedback: float = key(
        "Length of the moving-average window for the reported force or shaft speed n; 0 = no averaging.",
        "time",
        0.0,
        low=0.0,
        high=10.0,
    )
    open_water: OpenWater | None = child(
        OpenWater, "Open-water curves of the propeller. They replace the coefficients c1, c2, c3."
    )
    swivel: Swivel | None = child(Swivel, "Swivel that turns the thrust, for an azimuth drive or a jet nozzle.")
    deflector: Deflector | None = child(Deflector, "Astern deflector of a water jet.")


@dataclass(frozen=True)
class Aerofoil:
    """Table of lift and drag coefficients by angle of attack: rows `alpha CL CD`, with alpha in degrees.

    If the table does not reach -180 deg or 180 deg, it is extended with the coefficients of a stalled flat plate at the
    angle of attack a: CL = sin 2a, CD = 2 sin^2 a. The transition is blended over 10 deg.
    """

    rows: Vector = content("Table of the aerofoil as rows `alpha CL CD`, ascending in alpha (degrees).", 0)


@dataclass(frozen=True)
class Fin:
    """Lifting surface on a rotating shaft, such as a rudder. Its command is the angle d in rad.

    law=linear: the normal force is 1/2 rho A CL_a abs(u) (u d - w_n), up to the angle `stall`. Here u is the speed of
    the water along x, and d is the angle of the fin. w_n is the speed of the fin along its normal.

    law=coefficients: six forces and moments, each equal to U^2 (k1 d + k2 d^2) at the fin angle d. `speed`
    defines the speed U.

    law=aerofoil: lift and drag are interpolated in the <aerofoil> table at the local angle of attack.

    law=derivatives: the fin itself produces no force; <derivatives> defines the force as a function of the
    fin angle.
    """

    name: str = text("Name of the fin, unique among the actuators of the model. Commands and faults use it.")
    position: Vector = key(
        "Position of the fin's centre of pressure in the body frame (forward, starboard, down).",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    normal: Vector = key(
        "Direction of the fin's force at a positive angle. It is normalised to a unit vector.",
        default=(0.0, 1.0, 0.0),
        count=3,
    )
    chord: Vector = key(
        "Direction from the trailing edge to the leading edge of the fin at angle 0.", default=(1.0, 0.0, 0.0), count=3
    )
    law: str = choice(
        "Law that defines the force of the fin as a function of its angle.",
        ("linear", "coefficients", "aerofoil", "derivatives"),
        "linear",
    )
    area: float = key("Planform area of the fin (law=linear or law=aerofoil).", "area", 0.0, low=0.0)
    lift_slope: float = key("Slope of the fin's lift coefficient, 1/rad (law=linear).", default=0.0, low=0.0)
    stall: float = key(
        "Angle of attack at which the fin stalls (law=linear); 0 = never. Beyond this angle, the force is that of a "
        "flat plate (Viterna and Corrigan 1982). A fin with an aspect ratio of 2 stalls at 24 deg, and a fin with an "
        "aspect ratio of 3 stalls at 20 deg (Whicker and Fehlner 1958).",
        "angle",
        0.0,
        low=0.0,
        high=1.0471976,
    )
    plate: float = key(
        "Normal-force coefficient of the stalled fin perpendicular to the flow (law=linear or law=aerofoil): 1.2 for "
        "plates of aspect ratio 1 to 5 (Hoerner 1965).",
        default=1.2,
        low=0.0,
    )
    per_angle: Vector = key(
        "Coefficients k1 of the forces X Y Z and moments K M N of the fin, per speed squared and per rad "
        "(law=coefficients).",
        default=(0.0,) * 6,
        count=6,
    )
    per_square: Vector = key(
        "Coefficients k2 of the forces X Y Z and moments K M N of the fin, per speed squared and per rad squared "
        "(law=coefficients).",
        default=(0.0,) * 6,
        count=6,
    )
    speed: str = choice(
        "Definition of the speed U in the forces U^2 (k1 d + k2 d^2) of a fin at the angle d (law=coefficients). "
        "plane: the speed through the water without its component along the span. total: the whole speed through "
        "the water.",
        ("plane", "total"),
        "plane",
    )
    limit: float = key("Maximum angle of the fin to either side.", "angle", low=0.0, high=3.1415927)
    rate: float = key("Maximum angular rate of the fin; 0 = unlimited.", "angular rate", 0.0, low=0.0)
    lag: float = key("Time constant of the fin servo's first-order lag; 0 = no lag.", "time", 0.0, low=0.0)
    initial: float = key("Angle of the fin when the body enters the simulation.", "angle", 0.0)
    inflow: bool = flag(
        "Whether the fin force depends on w_n, the speed of the fin along its normal. Set to no if <lift> of the "
        "model already includes this contribution of the fins.",
        True,
    )
    aerofoil: Aerofoil | None = child(Aerofoil, "Table of lift and drag coefficients, used only by the `aerofoil` law.")


@dataclass(frozen=True)
class Ballast:
    """Ballast tank or buoyancy engine. Its command is the mass in kg; a negative mass means buoyancy."""

    name: str = text("Name of the tank, unique among the actuators of the model. Commands and faults use it.")
    position: Vector = key(
        "Position of the tank's centre in the body frame (forward, starboard, down).", "length", count=3
    )
    minimum: float = key("Minimum mass in the tank; a negative mass means buoyancy.", "mass")
    maximum: float = key("Maximum mass in the tank.", "mass")
    rate: float = key("Maximum flow into or out of the tank, kg/s; 0 = unlimited.", default=0.0, low=0.0)
    initial: float = key("Mass in the tank when the body enters the simulation.", "mass", 0.0)


@dataclass(frozen=True)
class Coefficient:
    """Coefficient of a force term or actuator from another package."""

    name: str = text("Name of the coefficient in the force term or actuator.")
    value: float = key("Value of the coefficient, in SI units.")


@dataclass(frozen=True)
class OtherActuator:
    """Actuator of a type that another package provides through entry points in the wavesim.dynamics group
    (docs/extending.md)."""

    name: str = text("Name of the actuator, unique among the actuators of the model. Commands and faults use it.")
    type: str = text("Type of the actuator: the name under which its package registers it.")
    unit: str = text("Unit of the actuator's command, for display only. The value itself is in SI units.", "")
    minimum: float = key("Minimum command of the actuator, in SI units.")
    maximum: float = key("Maximum command of the actuator, in SI units.")
    lag: float = key("Time constant of the actuator's first-order lag; 0 = no lag.", "time", 0.0, low=0.0)
    rate: float = key(
        "Maximum rate of change of the actuator, in units of the command per second; 0 = unlimited.",
        default=0.0,
        low=0.0,
    )
    initial: float = key("Value of the actuator when the body enters the simulation, in SI units.", default=0.0)
    coefficient: tuple[Coefficient, ...] = children(Coefficient, "Coefficient of the actuator.")


@dataclass(frozen=True)
class Allocation:
    """Thruster allocation matrix: force and moment on the body per unit of thrust.

    The allocation matrix has six rows and one column per thruster. It replaces the positions and directions of the
    thrusters.
    """

    rows: Vector = content(
        "Elements of the allocation matrix, row by row (X Y Z K M N): six rows with one value per thruster.", 0
    )
