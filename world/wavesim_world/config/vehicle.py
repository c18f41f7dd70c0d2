"""Declare the model of a body: geometry, masses, hydrodynamics, actuators, exposure to wind and waves.

Part of the configuration model. The file may use any unit of a quantity; the values here are SI and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.acoustics import TransducerConfig
from wavesim_world.config.schema import Vector, child, children, choice, content, flag, key, place, text
from wavesim_world.config.sensors import SensorsConfig


@dataclass(frozen=True)
class Box:
    """Box-shaped body, typically a surface vehicle. The body's origin is the centre of the box."""

    length: float = key("Length of the box along the body x axis.", "length", low=1e-3)
    width: float = key("Width of the box along the body y axis.", "length", low=1e-3)
    height: float = key("Height of the box along the body z axis.", "length", low=1e-3)


@dataclass(frozen=True)
class Cylinder:
    """Cylinder along the body x axis, as the shape of underwater vehicles."""

    length: float = key("Length of the cylinder along the body x axis.", "length", low=1e-3)
    radius: float = key("Radius of the cylinder.", "length", low=1e-3)


@dataclass(frozen=True)
class Sphere:
    """Sphere, as the shape of buoys."""

    diameter: float = key("Diameter of the sphere.", "length", low=1e-3)


@dataclass(frozen=True)
class Mass:
    """Mass and centre of mass."""

    value: float = key("Mass of the body.", "mass", low=1e-6)
    centre: Vector = key(
        "Position of the centre of mass relative to the body's origin (forward, starboard, down).",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )


@dataclass(frozen=True)
class Inertia:
    """Moments of inertia about the centre of mass. Alternatively, use radii of gyration."""

    xx: float = key("Moment of inertia about the roll axis, kg m2.", default=0.0, low=0.0)
    yy: float = key("Moment of inertia about the pitch axis, kg m2.", default=0.0, low=0.0)
    zz: float = key("Moment of inertia about the yaw axis, kg m2.", default=0.0, low=0.0)
    xy: float = key("Product of inertia (element 1,2 of the inertia matrix), kg m2.", default=0.0)
    xz: float = key("Product of inertia (element 1,3 of the inertia matrix), kg m2.", default=0.0)
    yz: float = key("Product of inertia (element 2,3 of the inertia matrix), kg m2.", default=0.0)
    gyration: Vector = key(
        "Radii of gyration about the x, y and z axes. They replace the moments `xx`, `yy` and `zz`.",
        "length",
        default=(),
        count=3,
    )


@dataclass(frozen=True)
class Buoyancy:
    """Volume of water that the fully submerged body displaces, and the centre of that volume."""

    volume: float = key("Volume of water that the fully submerged body displaces.", "volume", low=0.0)
    centre: Vector = key(
        "Position of the centre of buoyancy of the submerged body relative to the body's origin (forward, starboard, "
        "down).",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    compressibility: float = key(
        "Compressibility of the body: relative decrease of its volume per unit of pressure. It has an effect "
        "only if the density of the world is `water`.",
        "compressibility",
        0.0,
        low=0.0,
    )


@dataclass(frozen=True)
class Matrix6:
    """Matrix of 6x6 elements in SI units about the body's origin. Specify all 36 elements row by row, or only the
    diagonal.
    """

    diagonal: Vector = key(
        "The six diagonal elements of the matrix, in SI units. All other elements are zero.", default=(), count=6
    )
    rows: Vector = content("All 36 elements of the matrix, row by row, instead of `diagonal`.", 36)


@dataclass(frozen=True)
class Swivel:
    """Drive that turns the thrust in the body's x-y plane: an azimuth drive or the nozzle of a jet.

    It is commanded as the actuator NAME-angle (NAME is the thruster): the angle in rad, positive from x towards y.
    Only the first four thrusters may have a swivel.
    """

    minimum: float = key("Minimum angle of the swivel.", "angle", -3.141592653589793, low=-3.1415927, high=3.1415927)
    maximum: float = key("Maximum angle of the swivel.", "angle", 3.141592653589793, low=-3.1415927, high=3.1415927)
    lag: float = key("Time constant of the first-order lag of the swivel; 0 = no lag.", "time", 0.0, low=0.0)
    rate: float = key("Maximum angular rate of the swivel; 0 = unlimited.", "angular rate", 0.0, low=0.0)


@dataclass(frozen=True)
class Deflector:
    """Astern deflector (bucket) of a water jet. It scales the thrust along the axis of the jet.

    It is commanded as the actuator NAME-deflector (NAME is the thruster): from -1 (full astern) to 1 (deflector up).
    Only the first four thrusters may have a deflector.
    """

    minimum: float = key("Minimum command of the deflector; -1 = full astern.", default=-1.0, low=-1.0, high=1.0)
    maximum: float = key("Maximum command of the deflector; 1 = deflector up.", default=1.0, low=-1.0, high=1.0)
    lag: float = key("Time constant of the first-order lag of the deflector; 0 = no lag.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class OpenWater:
    """Propeller with open-water curves: T = rho D^4 KT(J) n abs(n), Q = rho D^5 KQ(J) n abs(n).

    J = u_a/(n D) is the advance ratio, with n in 1/s. KT and KQ are linear in J, or KT is interpolated in rows `J KT`
    between the tags. When n is negative, the linear curves are constant: KT and KQ do not depend on J (Fossen 2021,
    sec. 9.1).
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
    filters the result by the first-order lag.
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
    lag: float = key("Time constant of the first-order lag of the thruster; 0 = no lag.", "time", low=0.0)
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
    start: float = key("Simulation time from which the thruster responds to commands.", "time", 0.0, low=0.0)
    feedback: float = key(
        "Window of the moving average of the force or shaft speed n that the thruster reports; 0 = no averaging.",
        "time",
        0.0,
        low=0.0,
        high=10.0,
    )
    open_water: OpenWater | None = child(
        OpenWater, "Open-water curves of the propeller. They replace the coefficients c1, c2, c3."
    )
    swivel: Swivel | None = child(Swivel, "Swivel of an azimuth drive or a jet nozzle, which turns the thrust.")
    deflector: Deflector | None = child(Deflector, "Astern deflector of a water jet.")


@dataclass(frozen=True)
class Aerofoil:
    """Table of lift and drag coefficients by angle of attack: rows `alpha CL CD`, with alpha in degrees.

    If the table does not reach 180 deg on a side, the coefficients of a stalled flat plate extend it: CL = sin 2a, CD =
    2 sin^2 a. The transition is blended over 10 deg.
    """

    rows: Vector = content("Table of the aerofoil as rows `alpha CL CD`, ascending in alpha (degrees).", 0)


@dataclass(frozen=True)
class Fin:
    """Lifting surface on a rotating shaft, such as a rudder. Its command is the angle d in rad.

    law=linear: the normal force is 1/2 rho A CL_a abs(u) (u d - w_n), up to the angle `stall`. Here u is the speed of
    the water along x, d the angle of the fin, and w_n the speed of the fin along its normal.

    law=coefficients: six forces and moments, each equal to U^2 (k1 d + k2 d^2) at the fin angle d. The key `speed`
    defines the speed U.

    law=aerofoil: lift and drag are interpolated in the table <aerofoil> at the local angle of attack.

    law=derivatives: the fin itself produces no force; the element <derivatives> defines the force as a function of the
    fin angle.
    """

    name: str = text("Name of the fin, unique among the actuators of the model. Commands and faults use it.")
    position: Vector = key(
        "Position of the centre of pressure of the fin in the body frame (forward, starboard, down).",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    normal: Vector = key(
        "Direction of the force of the fin at a positive angle. It is normalised to a unit vector.",
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
    lift_slope: float = key("Slope of the lift coefficient of the fin, 1/rad (law=linear).", default=0.0, low=0.0)
    stall: float = key(
        "Angle of attack at which the fin stalls (law=linear); 0 = never. Beyond this angle, the force is that "
        "of a flat plate (Viterna and Corrigan 1982). Fins with an aspect ratio of 2 stall at 24 deg, and fins "
        "with an aspect ratio of 3 at 20 deg (Whicker and Fehlner 1958).",
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
    lag: float = key("Time constant of the first-order lag of the fin's servo; 0 = no lag.", "time", 0.0, low=0.0)
    inflow: bool = flag(
        "Whether the fin force depends on w_n, the speed of the fin along its normal. no: for models whose "
        "<lift> already includes this contribution of the fins.",
        True,
    )
    aerofoil: Aerofoil | None = child(Aerofoil, "Table of lift and drag coefficients, used only by the law `aerofoil`.")


@dataclass(frozen=True)
class Ballast:
    """Ballast tank or buoyancy engine. Its command is the mass in kg; a negative mass means buoyancy."""

    name: str = text("Name of the tank, unique among the actuators of the model. Commands and faults use it.")
    position: Vector = key(
        "Position of the centre of the tank in the body frame (forward, starboard, down).", "length", count=3
    )
    minimum: float = key("Minimum mass in the tank; a negative mass means buoyancy.", "mass")
    maximum: float = key("Maximum mass in the tank.", "mass")
    rate: float = key("Maximum flow into or out of the tank, kg/s; 0 = unlimited.", default=0.0, low=0.0)


@dataclass(frozen=True)
class Coefficient:
    """Coefficient of a force term or an actuator that another package provides."""

    name: str = text("Name of the coefficient of the force term or actuator.")
    value: float = key("Value of the coefficient, in SI units.")


@dataclass(frozen=True)
class OtherActuator:
    """Actuator of a type that another package provides through the entry points wavesim.dynamics (docs/extending.md)."""

    name: str = text("Name of the actuator, unique among the actuators of the model. Commands and faults use it.")
    type: str = text("Type of the actuator: the name under which its package registers it.")
    unit: str = text("Unit of the actuator's command, for display only. The value itself is in SI units.", "")
    minimum: float = key("Minimum command of the actuator, in SI units.")
    maximum: float = key("Maximum command of the actuator, in SI units.")
    lag: float = key("Time constant of the first-order lag of the actuator; 0 = no lag.", "time", 0.0, low=0.0)
    rate: float = key(
        "Maximum rate of change of the actuator, in units of the command per second; 0 = unlimited.",
        default=0.0,
        low=0.0,
    )
    coefficient: tuple[Coefficient, ...] = children(Coefficient, "Coefficient of the actuator.")


@dataclass(frozen=True)
class Allocation:
    """Thruster allocation matrix: force and moment on the body per unit of thrust.

    The allocation matrix has six rows and one column per thruster. It replaces the positions and directions of the
    thrusters.
    """

    rows: Vector = content(
        "Elements of the allocation matrix, row by row (X Y Z K M N): six rows with one number per thruster.", 0
    )


# ------------------------------------------------------------------ hull forces


@dataclass(frozen=True)
class CrossFlow:
    """Cross-flow drag along the hull: Y = -c integral(abs(s) s dx) and N = -c integral(x abs(s) s dx), with s = v + x
    r.

    The integrals over the hull length `length` are evaluated exactly. The force in heave and the moment in pitch have
    the same form.
    """

    length: float = key("Length of the hull over which the cross-flow drag is integrated.", "length", low=1e-3)
    centre: float = key(
        "Position of the centre of the integration length, forward of the body's origin.", "length", 0.0
    )
    sway: float = key(
        "Coefficient c of the cross-flow force Y in sway: 1/2 rho T CD, with the draft T and the drag coefficient CD.",
        "cross-flow",
        0.0,
        low=0.0,
    )
    yaw: float = key(
        "Coefficient c of the cross-flow moment N in yaw; a negative value = use the value of `sway`.",
        "cross-flow",
        -1.0,
    )
    heave: float = key("Coefficient c of the cross-flow force Z in heave.", "cross-flow", 0.0, low=0.0)
    pitch: float = key(
        "Coefficient c of the cross-flow moment M in pitch; a negative value = use the value of `heave`.",
        "cross-flow",
        -1.0,
    )
    still: float = key(
        "Sway speed below which there is no cross-flow drag in sway and yaw; 0 m/s = drag at all speeds. Use it "
        "for comparisons with programs that have this limit.",
        "speed",
        0.0,
        low=0.0,
    )


@dataclass(frozen=True)
class SurgeFriction:
    """Friction in surge by the ITTC 1957 line: X = -c (0.075/(log10 Rn - 2)^2 + k) u abs(u), with the Reynolds number
    Rn = abs(u) L / nu.
    """

    factor: float = key(
        "Factor c of the surge friction: 1/2 rho S, with the wetted surface S.", "cross-flow length", low=0.0
    )
    residual: float = key("Residual coefficient k of the surge resistance, for roughness and wave making.", default=0.0)
    length: float = key("Length L of the hull, for the Reynolds number.", "length", low=1e-3)
    viscosity: float = key("Kinematic viscosity nu of the water, m2/s.", default=1e-6, low=1e-9)


@dataclass(frozen=True)
class FadingDrag:
    """Linear drag that decreases with the speed U through the water: tau = -d exp(-k U) nu_r, with the velocity nu_r
    through the water."""

    diagonal: Vector = key("Six linear drag coefficients d at zero speed, in SI units.", count=6)
    fade: float = key("Decay constant k of the linear drag, s/m.", low=0.0)


@dataclass(frozen=True)
class BodyLift:
    """Lift and drag of the hull as a slender wing in the vertical plane.

    The lift coefficient is `CL_a alpha` and the drag coefficient `CD_0 + CL^2/(pi e A)`, with the angle of attack
    `alpha = atan2(w, u)`.
    """

    area: float = key("Reference area S of the wing that represents the hull.", "area", low=0.0)
    span: float = key("Span b of the wing that represents the hull. The aspect ratio is A = b^2/S.", "length", low=1e-3)
    drag: float = key("Zero-lift drag coefficient CD_0 of the hull.", low=0.0)
    efficiency: float = key(
        "Oswald efficiency e of the wing that represents the hull.", default=0.7, low=0.01, high=1.0
    )


@dataclass(frozen=True)
class Derivative:
    """Hydrodynamic derivative, named by its force and the factors that multiply it.

    Examples: `X_u`, `X_u_au` (u abs(u)), `Y_v_av`, `N_uv`, `Y_v_r`, `Y_dr`. The factors d1 to d8 are the angles of the
    fins; d and dr are other names for d1. A force is positive along its axis.
    """

    name: str = text(
        "Name of the derivative: a letter for the force (X Y Z K M N), an underscore, and the factors (u v w p q "
        "r, au av aw ap aq ar, d, d1 .. d8)."
    )
    value: float = key("Value of the hydrodynamic derivative, in the selected system of units.")


@dataclass(frozen=True)
class Derivatives:
    """Hydrodynamic derivatives by name. A model may have up to 48.

    The prime system makes forces dimensionless by 1/2 rho L^2 U^2, moments by 1/2 rho L^3 U^2, velocities by U, and
    rates by U/L.
    """

    system: str = choice(
        "Units of the derivatives: dimensional (SI) or prime (dimensionless).",
        ("dimensional", "prime"),
        "dimensional",
    )
    length: float = key("Reference length L of the prime system.", "length", 0.0, low=0.0)
    speed: float = key(
        "Reference speed U of the prime system; 0 m/s = the instantaneous speed through the water.",
        "speed",
        0.0,
        low=0.0,
    )
    derivative: tuple[Derivative, ...] = children(Derivative, "Hydrodynamic derivative.")


@dataclass(frozen=True)
class OtherTerm:
    """Force on the hull that another package provides through the entry points wavesim.dynamics (docs/extending.md)."""

    name: str = text("Name under which the package registers the force term.")
    coefficient: tuple[Coefficient, ...] = children(Coefficient, "Coefficient of the force term.")


@dataclass(frozen=True)
class HullMesh:
    """Surface of the body for buoyancy: a closed mesh of up to 1280 triangles (STL, PLY, OBJ, OFF, GLB).

    The part of the mesh below the local water plane determines the buoyancy at any heel. The model therefore capsizes
    at the same angle of heel as the real hull. Contacts, and the averaging of waves over length and width, still use
    the primitive shape. Added mass and drag remain those of the whole body, even when it leaves the water.
    """

    file: str = text("Path of the mesh file, relative to the file that contains this key.")
    attitude: Vector = key(
        "Roll, pitch and yaw that rotate the axes of the mesh file to those of the body. Use 180 0 0 deg for a "
        "file whose z axis points up.",
        "angle",
        (0.0, 0.0, 0.0),
        count=3,
    )
    position: Vector = key(
        "Position of the origin of the mesh file in the body frame (forward, starboard, down).",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    scale: float = key(
        "Length in metres of one unit of the mesh file: 0.001 for a file in millimetres.",
        default=1.0,
        low=1e-6,
        high=1e6,
    )


@dataclass(frozen=True)
class Restoring(Matrix6):
    """Linear restoring force -G [x y z phi theta psi] about the equilibrium, for hulls other than a box, cylinder or
    sphere.

    Weight and buoyancy are in balance; only <load> adds weight. Only columns 3, 4 and 5 may contain numbers.
    """

    z: float = key("Depth of the body's origin when the body floats at equilibrium.", "length", 0.0)


@dataclass(frozen=True)
class Load:
    """Weight on board that <mass> already includes but <restoring> does not balance, such as cargo."""

    mass: float = key("Mass of the load on board.", "mass")
    position: Vector = key("Position of the load in the body frame (forward, starboard, down).", "length", count=3)


@dataclass(frozen=True)
class FluidMemory:
    """Fluid memory: a radiation force -mu on one degree of freedom due to motion in the same or another one.

    The force mu of the fluid memory is the output of a linear system of order n: mu = c0 x0 + c1 x1 + ..., with x0' =
    x1, x1' = x2, ..., and finally x' = nu - a0 x0 - a1 x1 - ... Its transfer function is (c0 + c1 s + ...)/(a0 + a1 s +
    ... + s^n). A model may have up to 24 systems with 64 states in total.
    """

    source: str = choice("Velocity component of the body that causes the memory force.", ("u", "v", "w", "p", "q", "r"))
    force: str = choice(
        "Component of the force or moment that the fluid memory causes.", ("X", "Y", "Z", "K", "M", "N")
    )
    a: Vector = key(
        "Denominator coefficients a0 a1 ... of the memory system. Their number is the order of the system.", count=0
    )
    c: Vector = key("Numerator coefficients c0 c1 ... of the memory system, as many as in `a`.", count=0)


@dataclass(frozen=True)
class Oscillator:
    """One oscillator of the fluid-memory model in <radiation>."""

    frequency: float = key("Natural frequency w of the oscillator.", "angular rate", low=1e-6)
    damping: Vector = key("Row of the damping matrix R for this oscillator, 1/s: one number per oscillator.", count=0)
    coupling: Vector = key(
        "Row b of the coupling matrix B for this oscillator, with six numbers for X Y Z K M N. The units are "
        "sqrt(kg)/s for forces and sqrt(kg) m/s for moments.",
        count=6,
    )


@dataclass(frozen=True)
class Radiation:
    """Radiated waves as up to 16 oscillators that the motion of the hull through the water drives.

    The equations are q'' + R q' + diag(w^2) q = B nu_r and tau = -B^T q', so K(s) = s B^T (s^2 + R s + diag(w^2))^-1 B.
    If R is symmetric without negative eigenvalues, the oscillators cannot supply energy, whatever the motion.
    <added-mass> must be the added mass at infinite frequency. `wavesim vehicles import` fits the oscillators to the
    tables of a panel code. Each oscillator uses two of the 64 states of fluid memory.
    """

    oscillator: tuple[Oscillator, ...] = children(Oscillator, "One oscillator of the fluid-memory model.", least=1)


# ------------------------------------------------------------------ wind and waves


@dataclass(frozen=True)
class WindDrag:
    """Wind forces on the part of the vehicle above the water.

    law=blendermann: the law of Blendermann (1994) with the coefficients CD_l ahead and astern, CD_t, delta
    (cross-force) and kappa. law=simple: X = -c_x cos g, Y = c_y sin g, N = c_n sin 2g, with the apparent wind angle g.
    Each is multiplied by the dynamic pressure and an area: X by the frontal area, Y and N by the lateral area. N is
    also multiplied by the length.
    """

    frontal: float = key("Frontal projected area of the vehicle above the water.", "area", low=0.0)
    lateral: float = key("Lateral projected area of the vehicle above the water.", "area", low=0.0)
    length: float = key("Overall length of the vehicle, used for the yaw moment of the wind.", "length", low=1e-3)
    law: str = choice(
        "Law and coefficients of the wind forces: Blendermann (1994), or simple functions of the wind angle.",
        ("blendermann", "simple"),
        "blendermann",
    )
    drag: Vector = key(
        "Wind coefficients CD_l ahead, CD_l astern, CD_t, delta and kappa (law=blendermann).",
        default=(0.55, 0.6, 0.9, 0.6, 1.1),
        count=5,
    )
    simple: Vector = key("Wind coefficients c_x, c_y and c_n (law=simple).", default=(0.7, 0.85, 0.125), count=3)
    height: float = key(
        "Height s_H of the centroid of the lateral area above the water. The wind speed at this height determines "
        "the forces.",
        "length",
        low=0.01,
    )
    forward: float = key(
        "Position s_L of the centroid of the lateral area, forward of the body's origin.", "length", 0.0
    )


@dataclass(frozen=True)
class WaveFilter:
    """First-order wave forces: white noise through a filter K s/(s^2 + 2 l w_e s + w_e^2) for each degree of freedom.

    Here w_e is the encounter frequency of the spectral peak. The filters represent all effects of the waves, so the
    hull floats on the mean water level. Use them for hulls that have neither the buoyancy of a primitive shape nor
    <rao>.
    """

    gain: Vector = key(
        "Gains of the wave filters for the forces X Y Z and the moments K M N, at a significant wave height of 1 m.",
        count=6,
    )
    damping: float = key("Relative damping l of the wave filters.", default=0.1, low=1e-3, high=2.0)


@dataclass(frozen=True)
class Rao:
    """Wave forces from response amplitude operators in a file: MATLAB (as in the MSS toolbox) or CSV.

    The operators represent all effects of the waves, so the hull floats on the mean water level. If the file contains
    mean drift forces, they are applied by Newman's approximation.

    A CSV file has a header and one line for each heading and frequency. `heading_deg` runs in equal steps from 0 (a
    following sea) to 360, or to 180 for a hull that is symmetric about its centre plane. `frequency` is in rad/s. The
    columns `surge` to `yaw` are in N and N m, or in m and rad, per m of wave amplitude. The columns `surge_phase_deg`
    to `yaw_phase_deg` are the phases as in MSS. `drift_surge`, `drift_sway` and `drift_yaw` (N, N m per m2) are
    optional, but a file must have all three or none.
    """

    file: str = text("Path of the operator file, relative to the file that contains this key.")
    group: str = text("Name of the structure in a MATLAB operator file.", "vessel")
    speed: int = key(
        "Index, from 0, of the vessel speed in the tables of a MATLAB operator file.", default=0, low=0, integer=True
    )
    use: str = choice(
        "Operators to read from the file. force: the force operators. motion: the motion operators, converted to forces "
        "that cause the same motion of this model at rest. The conversion uses the model's mass, added mass, linear "
        "drag, memory and <restoring>, which is required.",
        ("force", "motion"),
        "force",
    )


@dataclass(frozen=True)
class Performance:
    """Published performance of the real vehicle, for comparison with that of the model (docs/models.md). It does not
    affect the simulation.
    """

    speed: float = key("Published maximum speed of the real vehicle; 0 = not published.", "speed", 0.0, low=0.0)
    turn_rate: float = key(
        "Published maximum rate of turn of the real vehicle; 0 = not published.", "angular rate", 0.0, low=0.0
    )
    stable: str = choice(
        "Whether the real vehicle maintains a straight course with its rudder amidships.",
        ("yes", "no", "unknown"),
        "unknown",
    )
    source: str = text("Source of the published performance.")
    remark: str = text("Reason for any difference between the model's performance and the published performance.", "")


@dataclass(frozen=True)
class Model:
    """Model of a body: geometry, masses, hydrodynamic coefficients, actuators."""

    name: str = text("Name of the model. Vehicles refer to it by this name.")
    type: str = choice("Type of body that the model describes.", ("surface", "underwater", "buoy"))
    title: str = text("One-line description of the model.", "")
    source: str = text("Source of the model's parameters.", "")
    validated: str = text(
        "Validation of the model: the data with which it has been compared, and the comparisons that are missing.", ""
    )
    valid_speed: float = key(
        "Maximum speed through the water for which the model is intended; 0 m/s = not stated.", "speed", 0.0, low=0.0
    )
    valid_sea: float = key(
        "Maximum significant wave height for which the model is intended; 0 m = not stated.", "length", 0.0, low=0.0
    )
    appearance: str = text(
        "Path of a glTF file (.glb), relative to the configuration file. Viewers draw it instead of the "
        "primitive shape. The file uses metres, with +Z forward and +Y up.",
        "",
    )
    active: str = text(
        "Degrees of freedom in which the body can move. Its velocity in the others stays at zero.", "u v w p q r"
    )
    coriolis: bool = flag(
        "Whether the model computes the Coriolis and centripetal forces C(nu). no: for models whose derivatives "
        "include them.",
        True,
    )
    coriolis_added: str = choice(
        "Added mass used in the Coriolis matrix C_A. whole: all of it, for submerged "
        "bodies. plane: surge, sway and yaw, for hulls on the surface. With plane, inertia, drag and "
        "memory in heave act along the vertical, as in seakeeping theory. Along the body's z axis, they and C_A "
        "would capsize the hull.",
        ("whole", "plane"),
        "whole",
    )
    coriolis_without: str = text(
        "Elements of the Coriolis matrix C_A that the model omits, each as row and column: any of 15 16 26 35 51 "
        "53 61 62. Some published models omit elements to remove the Munk moment. Others keep them and oppose "
        "the moment with damping.",
        "",
    )
    box: Box | None = child(Box, "Primitive shape of the body: a box.")
    cylinder: Cylinder | None = child(Cylinder, "Primitive shape of the body: a cylinder.")
    sphere: Sphere | None = child(Sphere, "Primitive shape of the body: a sphere.")
    mass: Mass = child(Mass, "Mass and centre of mass of the body.", required=True)
    inertia: Inertia | None = child(Inertia, "Moments of inertia about the centre of mass.")
    rigid_body: Matrix6 | None = child(
        Matrix6, "Rigid-body mass matrix M_RB about the origin. It replaces <inertia> and the centre of mass."
    )
    buoyancy: Buoyancy | None = child(
        Buoyancy, "Displaced volume and its centre. If absent, volume and centre of the primitive shape apply."
    )
    hull: HullMesh | None = child(HullMesh, "Closed mesh that replaces the primitive shape for buoyancy.")
    restoring: Restoring | None = child(
        Restoring, "Linear restoring forces that replace the buoyancy of the primitive shape."
    )
    load: tuple[Load, ...] = children(Load, "Weight on board that <restoring> does not balance.")
    added_mass: Matrix6 = child(Matrix6, "Added mass matrix M_A, with positive sign.", required=True)
    linear_drag: Matrix6 | None = child(
        Matrix6, "Linear drag matrix D, with positive sign: tau = -D nu_r, with the velocity nu_r through the water."
    )
    quadratic_drag: Matrix6 | None = child(
        Matrix6,
        "Quadratic drag matrix D, with positive sign: tau = -D (abs(nu_r) nu_r), with the velocity nu_r through "
        "the water. The product abs(nu_r) nu_r is taken element by element.",
    )
    lift: Matrix6 | None = child(
        Matrix6,
        "Matrix L of body lift and cross terms: tau = -L abs(u_r) nu_r, with "
        "the velocity nu_r through the water and its surge component u_r.",
    )
    fading_drag: FadingDrag | None = child(FadingDrag, "Linear drag that decreases with speed.")
    cross_flow: CrossFlow | None = child(CrossFlow, "Cross-flow drag along the hull.")
    surge_friction: SurgeFriction | None = child(SurgeFriction, "Friction of the hull in surge (ITTC 1957).")
    body_lift: BodyLift | None = child(BodyLift, "Lift and drag of the hull as a slender wing.")
    derivatives: Derivatives | None = child(Derivatives, "Hydrodynamic derivatives by name.")
    memory: tuple[FluidMemory, ...] = children(
        FluidMemory, "Fluid memory: radiation force on one degree of freedom due to motion in the same or another one."
    )
    radiation: Radiation | None = child(Radiation, "Fluid memory of all axes together, as oscillators.")
    term: tuple[OtherTerm, ...] = children(OtherTerm, "Force on the hull that another package provides.")
    wind_drag: WindDrag | None = child(WindDrag, "Wind forces on the vehicle.")
    wave_filter: WaveFilter | None = child(WaveFilter, "First-order wave forces, modelled by filters.")
    rao: Rao | None = child(Rao, "Wave forces by response amplitude operators.")
    thruster: tuple[Thruster, ...] = children(Thruster, "Thruster. A model may have up to twelve.")
    allocation: Allocation | None = child(Allocation, "Thruster allocation matrix.")
    fin: tuple[Fin, ...] = children(Fin, "Fin. A model may have up to eight.")
    ballast: tuple[Ballast, ...] = children(Ballast, "Ballast tank. A model may have up to four.")
    actuator: tuple[OtherActuator, ...] = children(
        OtherActuator,
        "Actuator of a type that another package provides. A model may have up to four, including ballast tanks.",
    )
    transducer: TransducerConfig | None = child(TransducerConfig, "Acoustic transducer of the body.")
    sensors: SensorsConfig | None = child(SensorsConfig, "Instruments that all bodies of this model carry.")
    performance: Performance | None = child(Performance, "Published performance of the real vehicle.")
    place: str = place()
