"""Declare the model of a body: geometry, masses, hydrodynamics, actuators, exposure to wind and waves.

Part of the configuration model. The file may use any unit of a quantity; the values here are SI and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.acoustics import TransducerConfig
from wavesim_sdk.config.schema import Vector, child, children, choice, content, flag, key, place, text
from wavesim_sdk.config.sensors import SensorsConfig


@dataclass(frozen=True)
class Box:
    """Box geometry, for surface vehicles. The body's origin is the centre of the box."""

    length: float = key("Length along the body x axis.", "length", low=1e-3)
    width: float = key("Width along the body y axis.", "length", low=1e-3)
    height: float = key("Height along the body z axis.", "length", low=1e-3)


@dataclass(frozen=True)
class Cylinder:
    """Cylinder geometry along the body x axis, for underwater vehicles."""

    length: float = key("Length along the body x axis.", "length", low=1e-3)
    radius: float = key("Radius of the circular section.", "length", low=1e-3)


@dataclass(frozen=True)
class Sphere:
    """Sphere geometry, for buoys."""

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
    """Moments of inertia about the centre of mass, or radii of gyration instead."""

    xx: float = key("Moment of inertia about the roll axis, kg m2.", default=0.0, low=0.0)
    yy: float = key("Moment of inertia about the pitch axis, kg m2.", default=0.0, low=0.0)
    zz: float = key("Moment of inertia about the yaw axis, kg m2.", default=0.0, low=0.0)
    xy: float = key("Product of inertia (element 1,2 of the matrix), kg m2.", default=0.0)
    xz: float = key("Product of inertia (element 1,3 of the matrix), kg m2.", default=0.0)
    yz: float = key("Product of inertia (element 2,3 of the matrix), kg m2.", default=0.0)
    gyration: Vector = key(
        "Radii of gyration about x, y and z. They replace xx, yy and zz.", "length", default=(), count=3
    )


@dataclass(frozen=True)
class Buoyancy:
    """Displaced volume of the fully submerged body, and the centre of that volume."""

    volume: float = key("Volume of water that the fully submerged body displaces.", "volume", low=0.0)
    centre: Vector = key(
        "Centre of buoyancy of the submerged body relative to its origin.",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    compressibility: float = key(
        "Relative loss of volume per unit of pressure. It acts only if the density of the world is set to `water`.",
        "compressibility",
        0.0,
        low=0.0,
    )


@dataclass(frozen=True)
class Matrix6:
    """A 6x6 matrix in SI units about the body's origin. Give all 36 numbers by rows, or only the diagonal."""

    diagonal: Vector = key("The six diagonal elements. All other elements are zero.", default=(), count=6)
    rows: Vector = content("36 numbers, row by row, instead of `diagonal`.", 36)


@dataclass(frozen=True)
class Swivel:
    """A drive that turns the thrust in the body's x-y plane: an azimuth drive or the nozzle of a jet.

    The actuator NAME-angle takes its command: the angle in rad, positive from x towards y. Only the first four
    thrusters may have a swivel.
    """

    minimum: float = key("Minimum angle.", "angle", -3.141592653589793, low=-3.1415927, high=3.1415927)
    maximum: float = key("Maximum angle.", "angle", 3.141592653589793, low=-3.1415927, high=3.1415927)
    lag: float = key("Time constant of the first-order lag.", "time", 0.0, low=0.0)
    rate: float = key("Maximum angular rate; 0 = unlimited.", "angular rate", 0.0, low=0.0)


@dataclass(frozen=True)
class Deflector:
    """Astern deflector (bucket) of a jet. It scales the thrust along the axis of the jet.

    The actuator NAME-deflector takes its command, from -1 (full astern) to 1 (up). Only the first four thrusters may
    have a deflector.
    """

    minimum: float = key("Minimum command.", default=-1.0, low=-1.0, high=1.0)
    maximum: float = key("Maximum command.", default=1.0, low=-1.0, high=1.0)
    lag: float = key("Time constant of the first-order lag.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class OpenWater:
    """Propeller with open-water curves: T = rho D^4 KT(J) n abs(n), Q = rho D^5 KQ(J) n abs(n).

    J = u_a/(n D), with n in 1/s. KT and KQ are linear in J, or KT is interpolated in rows `J KT` between the tags.
    Linear curves have no term in J when n is negative (Fossen 2021, sec. 9.1).
    """

    diameter: float = key("Diameter D of the propeller.", "length", low=1e-3)
    kt: Vector = key("Thrust coefficient KT at J = 0, and its slope per J.", default=(0.0, 0.0), count=2)
    kq: Vector = key("Torque coefficient KQ at J = 0, and its slope per J.", default=(0.0, 0.0), count=2)
    torque_share: float = key(
        "Share of the propeller torque that acts on the hull, in the opposite direction.", default=1.0
    )
    deduction: float = key("Thrust deduction t: the force on the hull is (1 - t) T.", default=0.0, low=0.0, high=1.0)
    rows: Vector = content(
        "Rows `J KT`, ascending in J. Beyond the first and last rows, KT keeps the value at that end.", 0
    )


@dataclass(frozen=True)
class Thruster:
    """Thruster with the thrust c1 n + c2 n abs(n) + c3 abs(n) u_a.

    n is the command after the lag, and u_a the speed of the thruster through the water. The model first limits the
    command, then applies the dead band, and then maps the result to n by the motor law.
    """

    name: str = text("Name of the thruster, unique among the actuators of the model. Commands and faults use it.")
    position: Vector = key("Point at which the force acts.", "length", count=3)
    direction: Vector = key("Direction of positive thrust. It is normalised to a unit vector.", count=3)
    law: str = choice(
        "Meaning of n. force: a force in N. shaft: a shaft speed in revolutions per second.",
        ("force", "shaft"),
    )
    minimum: float = key("Minimum command, in the unit of the command: N or 1/s if there is no motor law.")
    maximum: float = key("Maximum command.")
    lag: float = key("Time constant of the first-order lag; 0 = no lag.", "time", low=0.0)
    coefficients: Vector = key("Coefficients c1, c2, c3 of the thrust law, SI.", default=(1.0, 0.0, 0.0), count=3)
    reverse: Vector = key(
        "Coefficients c1, c2, c3 for negative n. If absent, `coefficients` apply in both directions.",
        default=(),
        count=3,
    )
    inflow: str = choice(
        "Definition of u_a. along: speed of the thruster through the water along its direction. total: speed of the "
        "whole body through the water, as in DUNE and Fossen's REMUS.",
        ("along", "total"),
        "along",
    )
    wake: float = key("Wake fraction w: u_a is multiplied by (1 - w).", default=0.0, low=0.0, high=1.0)
    thrust_limit: float = key("Maximum thrust in either direction; 0 = unlimited.", "force", 0.0, low=0.0)
    motor: Vector = key("Motor law: a, b of n = a sign(c) + b c for a command c.", default=(0.0, 1.0), count=2)
    dead_band: float = key("Commands of smaller magnitude count as 0.", default=0.0, low=0.0)
    start: float = key("Simulation time from which the thruster responds to commands.", "time", 0.0, low=0.0)
    feedback: float = key(
        "Window of the moving average of the reported n; 0 = no averaging.", "time", 0.0, low=0.0, high=10.0
    )
    open_water: OpenWater | None = child(OpenWater, "Open-water curves of a propeller. They replace c1, c2, c3.")
    swivel: Swivel | None = child(Swivel, "Swivel of an azimuth drive or a nozzle.")
    deflector: Deflector | None = child(Deflector, "Astern deflector of a jet.")


@dataclass(frozen=True)
class Aerofoil:
    """Lift and drag coefficients as a function of the angle of attack: rows `alpha CL CD`, alpha in degrees.

    If a table covers less than 180 deg on a side, it is extended by a stalled flat plate (CL = sin 2a, CD = 2 sin2
    a), blended over 10 deg.
    """

    rows: Vector = content("Rows `alpha CL CD`, ascending in alpha (degrees).", 0)


@dataclass(frozen=True)
class Fin:
    """Lifting surface on a turning shaft. Its command is the angle d in rad.

    law linear: the normal force is 1/2 rho A CL_a abs(u) (u d - w_n), up to the angle `stall`. u is the speed of the
    water along x, and w_n the speed of the fin along its normal.

    law coefficients: six forces and moments, each k1 s d + k2 s d^2. s is the square of the speed across the span, or
    of the whole speed.

    law aerofoil: lift and drag come from a table at the local angle of attack.

    law derivatives: the fin only turns; its force is part of <derivatives>.
    """

    name: str = text("Name of the fin, unique among the actuators of the model. Commands and faults use it.")
    position: Vector = key("Position of the centre of pressure.", "length", (0.0, 0.0, 0.0), count=3)
    normal: Vector = key(
        "Direction of the force at a positive angle. It is normalised to a unit vector.",
        default=(0.0, 1.0, 0.0),
        count=3,
    )
    chord: Vector = key(
        "Direction from the trailing edge to the leading edge at angle 0.", default=(1.0, 0.0, 0.0), count=3
    )
    law: str = choice(
        "Law that gives the force as a function of the angle.",
        ("linear", "coefficients", "aerofoil", "derivatives"),
        "linear",
    )
    area: float = key("Planform area (linear, aerofoil).", "area", 0.0, low=0.0)
    lift_slope: float = key("Slope of the lift coefficient, 1/rad (linear).", default=0.0, low=0.0)
    stall: float = key(
        "Angle of attack at which the fin stalls (linear); 0 = never. Beyond it the force is that of a plate "
        "(Viterna and Corrigan 1982). Fins of aspect ratio 2 stall at 24 deg, of aspect ratio 3 at 20 deg (Whicker "
        "and Fehlner 1958).",
        "angle",
        0.0,
        low=0.0,
        high=1.0471976,
    )
    plate: float = key(
        "Normal-force coefficient of the stalled fin perpendicular to the flow (linear, aerofoil): 1.2 for plates "
        "of aspect ratio 1 to 5 (Hoerner 1965).",
        default=1.2,
        low=0.0,
    )
    per_angle: Vector = key(
        "k1 for X Y Z K M N, per speed squared and rad (coefficients).", default=(0.0,) * 6, count=6
    )
    per_square: Vector = key(
        "k2 for X Y Z K M N, per speed squared and rad squared (coefficients).", default=(0.0,) * 6, count=6
    )
    speed: str = choice(
        "Speed used with k1 and k2. plane: without its component along the span. total: the whole speed.",
        ("plane", "total"),
        "plane",
    )
    limit: float = key("Maximum angle to either side.", "angle", low=0.0, high=3.1415927)
    rate: float = key("Maximum angular rate; 0 = unlimited.", "angular rate", 0.0, low=0.0)
    lag: float = key("Time constant of the servo.", "time", 0.0, low=0.0)
    inflow: bool = flag(
        "yes: use the inflow w_n. no: leave w_n out, for models whose <lift> already includes the share of the fins.",
        True,
    )
    aerofoil: Aerofoil | None = child(Aerofoil, "The table of coefficients for law aerofoil.")


@dataclass(frozen=True)
class Ballast:
    """Ballast tank or buoyancy engine. Its command is the mass in kg; a negative mass is buoyancy."""

    name: str = text("Name of the tank, unique among the actuators of the model. Commands and faults use it.")
    position: Vector = key("Position of the centre of the tank.", "length", count=3)
    minimum: float = key("Minimum mass.", "mass")
    maximum: float = key("Maximum mass.", "mass")
    rate: float = key("Maximum flow, kg/s; 0 = unlimited.", default=0.0, low=0.0)


@dataclass(frozen=True)
class Coefficient:
    """Coefficient of a term or an actuator that another package provides."""

    name: str = text("Name of the coefficient.")
    value: float = key("Value of the coefficient, SI.")


@dataclass(frozen=True)
class OtherActuator:
    """Actuator of a type that another package provides (entry points wavesim.dynamics, docs/extending.md)."""

    name: str = text("Name of the actuator, unique among the actuators of the model. Commands and faults use it.")
    type: str = text("Type of the actuator: the name under which its package registers it.")
    unit: str = text("Unit of the command, for display only. The value itself is SI.", "")
    minimum: float = key("Minimum command.")
    maximum: float = key("Maximum command.")
    lag: float = key("Time constant of the first-order lag; 0 = no lag.", "time", 0.0, low=0.0)
    rate: float = key("Maximum rate of change, per s; 0 = unlimited.", default=0.0, low=0.0)
    coefficient: tuple[Coefficient, ...] = children(Coefficient, "A coefficient of the actuator type.")


@dataclass(frozen=True)
class Allocation:
    """Thruster allocation matrix: force and moment per unit of thrust.

    It has six rows and one column per thruster, and it replaces the positions and directions of the thrusters.
    """

    rows: Vector = content("6 x n numbers, row by row (X Y Z K M N).", 0)


# ------------------------------------------------------------------ hull forces


@dataclass(frozen=True)
class CrossFlow:
    """Cross-flow drag along the hull: Y = -c int abs(s) s dx, N = -c int x abs(s) s dx, with s = v + x r.

    The integral runs over `length` and is evaluated exactly. Heave and pitch have the same form.
    """

    length: float = key("Length over which the integral runs.", "length", low=1e-3)
    centre: float = key("Centre of the integration length, forward of the origin.", "length", 0.0)
    sway: float = key("Coefficient c for Y: 1/2 rho T CD.", "cross-flow", 0.0, low=0.0)
    yaw: float = key("Coefficient c for N; a negative value means the same as sway.", "cross-flow", -1.0)
    heave: float = key("Coefficient c for Z.", "cross-flow", 0.0, low=0.0)
    pitch: float = key("Coefficient c for M; a negative value means the same as heave.", "cross-flow", -1.0)
    still: float = key(
        "Sway speed below which there is no cross-flow drag in sway and yaw. Use it to compare with codes that do "
        "the same.",
        "speed",
        0.0,
        low=0.0,
    )
    strips: int = key(
        "Number of strips of length/(n - 1) over which the drag is summed; 0 = exact integral. Use strips to "
        "compare with codes that do the same.",
        default=0,
        low=0,
        high=200,
        integer=True,
    )


@dataclass(frozen=True)
class SurgeFriction:
    """Surge friction by the ITTC 1957 line: X = -c (0.075/(log10 Rn - 2)^2 + k) u abs(u), Rn = abs(u) L / nu."""

    factor: float = key("Factor c: 1/2 rho S.", "cross-flow length", low=0.0)
    residual: float = key("Residual coefficient k: roughness and wave making.", default=0.0)
    length: float = key("Length L of the hull.", "length", low=1e-3)
    viscosity: float = key("Kinematic viscosity nu, m2/s.", default=1e-6, low=1e-9)


@dataclass(frozen=True)
class FadingDrag:
    """Linear drag that decreases with speed: tau = -d exp(-k U) nu_r."""

    diagonal: Vector = key("The six elements of d.", count=6)
    fade: float = key("Decay constant k, s/m.", low=0.0)


@dataclass(frozen=True)
class BodyLift:
    """Lift and drag of the hull as a slender wing in the vertical plane.

    CL = CL_a a, CD = CD_0 + CL^2/(pi e A), a = atan2(w, u).
    """

    area: float = key("Reference area S.", "area", low=0.0)
    span: float = key("Span b. The aspect ratio is A = b^2/S.", "length", low=1e-3)
    drag: float = key("Zero-lift drag coefficient CD_0.", low=0.0)
    efficiency: float = key("Oswald efficiency e.", default=0.7, low=0.01, high=1.0)


@dataclass(frozen=True)
class Derivative:
    """One hydrodynamic derivative, named by its force and its factors.

    Examples: `X_u`, `X_u_au` (u abs(u)), `Y_v_av`, `N_uv`, `Y_v_r`, `Y_dr`. d and d1 to d8 are the angles of fins; dr
    is the angle of the first fin. A force is positive along its axis.
    """

    name: str = text("Force letter, underscore, factors: u v w p q r, au av aw ap aq ar, d, d1 .. d8.")
    value: float = key("Value of the coefficient.")


@dataclass(frozen=True)
class Derivatives:
    """Up to 48 named hydrodynamic derivatives.

    The prime system makes forces dimensionless by 1/2 rho L^2 U^2, moments by 1/2 rho L^3 U^2, velocities by U, and
    rates by U/L.
    """

    system: str = choice("System of units: dimensional (SI) or prime.", ("dimensional", "prime"), "dimensional")
    length: float = key("Length L of the prime system.", "length", 0.0, low=0.0)
    speed: float = key(
        "Speed U of the prime system; 0 m/s = the present speed through the water.", "speed", 0.0, low=0.0
    )
    derivative: tuple[Derivative, ...] = children(Derivative, "A derivative.")


@dataclass(frozen=True)
class OtherTerm:
    """Force on the hull that another package provides (entry points wavesim.dynamics, docs/extending.md)."""

    name: str = text("Name under which the package registers the term.")
    coefficient: tuple[Coefficient, ...] = children(Coefficient, "A coefficient of the term.")


@dataclass(frozen=True)
class HullMesh:
    """Surface of the body for buoyancy: a closed mesh of up to 1280 triangles (STL, PLY, OBJ, OFF, GLB).

    The part of the mesh below the local water plane gives the buoyancy at any heel, so the model capsizes at the same
    heel as the real hull. The primitive still serves for contacts and for averaging the waves over length and width.
    Added mass and drag remain those of the whole body, even when it leaves the water.
    """

    file: str = text("Path of the mesh file, relative to the file that names it.")
    attitude: Vector = key(
        "Roll, pitch, yaw from the axes of the file to those of the body: 180 0 0 deg for a file with z up.",
        "angle",
        (0.0, 0.0, 0.0),
        count=3,
    )
    position: Vector = key("Position of the file's origin in the body frame.", "length", (0.0, 0.0, 0.0), count=3)
    scale: float = key("Metres per unit of length in the file.", default=1.0, low=1e-6, high=1e6)


@dataclass(frozen=True)
class Restoring(Matrix6):
    """Linear restoring force -G [x y z phi theta psi] about the equilibrium, for hulls other than a box, cylinder or
    sphere.

    Weight and buoyancy balance; only <load> adds weight. Only columns 3, 4 and 5 may hold numbers.
    """

    z: float = key("Depth of the origin at equilibrium.", "length", 0.0)


@dataclass(frozen=True)
class Load:
    """Weight on board that <mass> already includes but <restoring> does not balance."""

    mass: float = key("Mass of the load.", "mass")
    position: Vector = key("Position of the load.", "length", count=3)


@dataclass(frozen=True)
class FluidMemory:
    """Fluid memory: a radiation force -mu on one degree of freedom due to motion in another.

    A linear system of order n gives it: mu = c0 x0 + c1 x1 + ... with x0' = x1, x1' = x2, ..., and finally x' = nu -
    a0 x0 - a1 x1 - ... Its transfer function is (c0 + c1 s + ...)/(a0 + a1 s + ... + s^n). A model may have up to 24
    systems with 64 states in total.
    """

    source: str = choice("Motion that causes the force.", ("u", "v", "w", "p", "q", "r"))
    force: str = choice("Component of the force.", ("X", "Y", "Z", "K", "M", "N"))
    a: Vector = key("Coefficients a0 a1 ...; their count is the order of the system.", count=0)
    c: Vector = key("Coefficients c0 c1 ...; as many as in `a`.", count=0)


@dataclass(frozen=True)
class Oscillator:
    """One oscillator of <radiation>."""

    frequency: float = key("Natural frequency w.", "angular rate", low=1e-6)
    damping: Vector = key("Row of R for this oscillator, 1/s: one number per oscillator.", count=0)
    coupling: Vector = key(
        "Row b of B for this oscillator: X Y Z K M N, SI (sqrt(kg)/s for forces, times m for moments).", count=6
    )


@dataclass(frozen=True)
class Radiation:
    """Radiated waves as up to 16 oscillators that the motion of the hull through the water drives.

    q'' + R q' + diag(w^2) q = B nu_r, tau = -B^T q', so K(s) = s B^T (s^2 + R s + diag(w^2))^-1 B. With a symmetric R
    without negative eigenvalues, the oscillators cannot supply energy, whatever the motion. <added-mass> must hold
    the added mass at infinite frequency. `wavesim vehicles import` fits the oscillators to the tables of a panel
    code. Each oscillator takes two of the 64 states of fluid memory.
    """

    oscillator: tuple[Oscillator, ...] = children(Oscillator, "An oscillator.", least=1)


# ------------------------------------------------------------------ wind and waves


@dataclass(frozen=True)
class WindDrag:
    """Wind forces on the part above the water.

    blendermann: CD_l ahead and astern, CD_t, cross-force delta and kappa of Blendermann (1994). simple: X = -c_x cos
    g, Y = c_y sin g, N = c_n sin 2g, times dynamic pressure and area.
    """

    frontal: float = key("Frontal projected area.", "area", low=0.0)
    lateral: float = key("Lateral projected area.", "area", low=0.0)
    length: float = key("Overall length, used for the yaw moment.", "length", low=1e-3)
    law: str = choice("Set of coefficients.", ("blendermann", "simple"), "blendermann")
    drag: Vector = key(
        "Coefficients CD_l ahead, CD_l astern, CD_t, delta, kappa (blendermann).",
        default=(0.55, 0.6, 0.9, 0.6, 1.1),
        count=5,
    )
    simple: Vector = key("Coefficients c_x c_y c_n (simple).", default=(0.7, 0.85, 0.125), count=3)
    height: float = key(
        "Height s_H of the centroid of the lateral area above the water. The wind at this height acts.",
        "length",
        low=0.01,
    )
    forward: float = key("Position s_L of that centroid, forward of the origin.", "length", 0.0)


@dataclass(frozen=True)
class WaveFilter:
    """First-order wave forces: white noise through a filter K s/(s^2 + 2 l w_e s + w_e^2) for each degree of freedom.

    w_e is the encounter frequency of the spectral peak. The filters represent all effects of the waves: the hull
    floats on the mean water level. They are for hulls with neither a primitive's buoyancy nor <rao>.
    """

    gain: Vector = key("Gain K for X Y Z K M N at a significant wave height of 1 m.", count=6)
    damping: float = key("Relative damping l.", default=0.1, low=1e-3, high=2.0)


@dataclass(frozen=True)
class Rao:
    """Wave forces by response amplitude operators from a file: MATLAB (as in the MSS toolbox) or CSV.

    They represent all effects of the waves: the hull floats on the mean water level. Mean drift forces in the file
    act by Newman's approximation.

    A CSV file has a header and one line for each heading and frequency. `heading_deg` is 0 for a following sea, in
    equal steps to 360, or to 180 for a hull that is symmetric about its centre plane. `frequency` is in rad/s.
    `surge`, `surge_phase_deg` and so on to `yaw` are in N, N m or m, rad, per m of wave amplitude, with phases as in
    MSS. `drift_surge`, `drift_sway` and `drift_yaw` (N, N m per m2) are optional, but must come together.
    """

    file: str = text("Path of the operator file, relative to the file that names it.")
    group: str = text("Name of the structure in a MATLAB file.", "vessel")
    speed: int = key("Index of the speed in the tables of a MATLAB file.", default=0, low=0, integer=True)
    use: str = choice(
        "force: use the force operators of the file. motion: use its motion operators. Forces are then derived that "
        "give this model at rest the same motion, from its own mass, added mass, linear drag, memory and "
        "<restoring>, which is required.",
        ("force", "motion"),
        "force",
    )


@dataclass(frozen=True)
class Performance:
    """Published figures of the real vehicle, for comparison with those of the model (docs/models.md). They do not
    affect the simulation.
    """

    speed: float = key("Maximum speed of the vehicle; 0 = not published.", "speed", 0.0, low=0.0)
    turn_rate: float = key("Maximum rate of turn; 0 = not published.", "angular rate", 0.0, low=0.0)
    stable: str = choice(
        "Whether the real vehicle keeps a straight course with its helm amidships.",
        ("yes", "no", "unknown"),
        "unknown",
    )
    source: str = text("Source of the figures.")
    remark: str = text("Reason for any difference between the model and the figures.", "")


@dataclass(frozen=True)
class Model:
    """Model of a body: geometry, masses, hydrodynamic coefficients, actuators."""

    name: str = text("Name by which vehicles refer to it.")
    type: str = choice("Type of the body.", ("surface", "underwater", "buoy"))
    title: str = text("One-line description for people.", "")
    source: str = text("Source of the numbers.", "")
    validated: str = text("Comparisons made with the model, and those not made.", "")
    valid_speed: float = key(
        "Maximum speed through the water for which the model is intended; 0 m/s = not stated.", "speed", 0.0, low=0.0
    )
    valid_sea: float = key(
        "Maximum significant wave height for which the model is intended; 0 m = not stated.", "length", 0.0, low=0.0
    )
    appearance: str = text(
        "Path of a glTF file (.glb; metres, +Z forward, +Y up) that viewers draw instead of the primitive, relative "
        "to the configuration file.",
        "",
    )
    active: str = text("Degrees of freedom that move. The others stay frozen at rest.", "u v w p q r")
    coriolis: bool = flag(
        "Whether the model computes C(nu). no: for models that include it in their derivatives.", True
    )
    coriolis_added: str = choice(
        "Added mass used in C_A. whole: all of it, for deep bodies. plane: only surge, sway and yaw, for hulls on "
        "the surface. These lift the water in heave rather than sweep it along: inertia, drag and memory oppose "
        "vertical motion, as in seakeeping theory. C_A and drag along the body would capsize them.",
        ("whole", "plane"),
        "whole",
    )
    coriolis_without: str = text(
        "Elements of C_A that the model leaves out, as row and column: any of 15 16 26 35 51 53 61 62. Some "
        "published models leave them out instead of damping the Munk moment.",
        "",
    )
    box: Box | None = child(Box, "Box geometry.")
    cylinder: Cylinder | None = child(Cylinder, "Cylinder geometry.")
    sphere: Sphere | None = child(Sphere, "Sphere geometry.")
    mass: Mass = child(Mass, "Mass and centre of mass.", required=True)
    inertia: Inertia | None = child(Inertia, "Inertia about the centre of mass.")
    rigid_body: Matrix6 | None = child(
        Matrix6, "Rigid-body mass matrix M_RB about the origin. It replaces <inertia> and the centre of mass."
    )
    buoyancy: Buoyancy | None = child(
        Buoyancy, "Displaced volume and its centre. If absent, the volume of the primitive at its centre applies."
    )
    hull: HullMesh | None = child(HullMesh, "Closed mesh that replaces the primitive for buoyancy.")
    restoring: Restoring | None = child(Restoring, "Linear restoring forces that replace the primitive's buoyancy.")
    load: tuple[Load, ...] = children(Load, "Weights that <restoring> does not balance.")
    added_mass: Matrix6 = child(Matrix6, "Added mass M_A, with positive sign.", required=True)
    linear_drag: Matrix6 | None = child(Matrix6, "Linear drag D with positive sign: tau = -D nu_r.")
    quadratic_drag: Matrix6 | None = child(
        Matrix6,
        "Quadratic drag D with positive sign: tau = -D (abs(nu_r) nu_r), with the product taken element by element.",
    )
    lift: Matrix6 | None = child(Matrix6, "Body lift and cross terms L: tau = -L abs(u_r) nu_r.")
    fading_drag: FadingDrag | None = child(FadingDrag, "Linear drag that decreases with speed.")
    cross_flow: CrossFlow | None = child(CrossFlow, "Cross-flow drag.")
    surge_friction: SurgeFriction | None = child(SurgeFriction, "ITTC 1957 friction in surge.")
    body_lift: BodyLift | None = child(BodyLift, "Lift and drag of a slender hull.")
    derivatives: Derivatives | None = child(Derivatives, "Named hydrodynamic derivatives.")
    memory: tuple[FluidMemory, ...] = children(FluidMemory, "Fluid memory between two degrees of freedom.")
    radiation: Radiation | None = child(Radiation, "Fluid memory of all axes together, by oscillators.")
    term: tuple[OtherTerm, ...] = children(OtherTerm, "Forces on the hull that other packages provide.")
    wind_drag: WindDrag | None = child(WindDrag, "Wind forces.")
    wave_filter: WaveFilter | None = child(WaveFilter, "Wave forces by filters.")
    rao: Rao | None = child(Rao, "Wave forces by response amplitude operators.")
    thruster: tuple[Thruster, ...] = children(Thruster, "Up to twelve thrusters.")
    allocation: Allocation | None = child(Allocation, "Thruster allocation matrix.")
    fin: tuple[Fin, ...] = children(Fin, "Up to eight fins.")
    ballast: tuple[Ballast, ...] = children(Ballast, "Up to four ballast tanks.")
    actuator: tuple[OtherActuator, ...] = children(
        OtherActuator, "Actuators of types that other packages provide. With the ballast tanks, at most four."
    )
    transducer: TransducerConfig | None = child(TransducerConfig, "Acoustic transducer.")
    sensors: SensorsConfig | None = child(SensorsConfig, "Instruments that bodies of this model carry.")
    performance: Performance | None = child(Performance, "Published figures of the real vehicle.")
    place: str = place()
