"""The declaration of a kind of body: geometry, masses, hydrodynamics, actuators, exposure to wind and waves.

Part of the configuration model; units in the file are the user's choice, the values here are SI and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.acoustics import TransducerConfig
from wavesim_sdk.config.schema import Vector, child, children, choice, content, flag, key, place, text
from wavesim_sdk.config.sensors import SensorsConfig


@dataclass(frozen=True)
class Box:
    """The body is a box (surface vehicles); its centre is the body's origin."""

    length: float = key("Along the body x axis.", "length", low=1e-3)
    width: float = key("Along the body y axis.", "length", low=1e-3)
    height: float = key("Along the body z axis.", "length", low=1e-3)


@dataclass(frozen=True)
class Cylinder:
    """The body is a cylinder along its x axis (underwater vehicles)."""

    length: float = key("Along the body x axis.", "length", low=1e-3)
    radius: float = key("Of the circular section.", "length", low=1e-3)


@dataclass(frozen=True)
class Sphere:
    """The body is a sphere (buoys)."""

    diameter: float = key("Of the sphere.", "length", low=1e-3)


@dataclass(frozen=True)
class Mass:
    """Mass and centre of mass."""

    value: float = key("Mass of the body.", "mass", low=1e-6)
    centre: Vector = key(
        "Centre of mass from the body's origin (forward, starboard, down).",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )


@dataclass(frozen=True)
class Inertia:
    """Moments of inertia about the centre of mass, in kg m2, or the radii of gyration instead."""

    xx: float = key("Roll, kg m2.", default=0.0, low=0.0)
    yy: float = key("Pitch, kg m2.", default=0.0, low=0.0)
    zz: float = key("Yaw, kg m2.", default=0.0, low=0.0)
    xy: float = key("Product of inertia (element 1,2 of the matrix), kg m2.", default=0.0)
    xz: float = key("Product of inertia (element 1,3 of the matrix), kg m2.", default=0.0)
    yz: float = key("Product of inertia (element 2,3 of the matrix), kg m2.", default=0.0)
    gyration: Vector = key("Radii of gyration about x, y, z, instead of xx, yy, zz.", "length", default=(), count=3)


@dataclass(frozen=True)
class Buoyancy:
    """Displaced volume when fully submerged, and where its centre is."""

    volume: float = key("Displaced volume.", "volume", low=0.0)
    centre: Vector = key(
        "Centre of buoyancy of the submerged body, from its origin.",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    compressibility: float = key(
        "Share of the volume that is lost per pressure; only where the world's density is that of the `water`.",
        "compressibility",
        0.0,
        low=0.0,
    )


@dataclass(frozen=True)
class Matrix6:
    """A 6x6 matrix in SI units about the body's origin: 36 numbers by rows, or its diagonal."""

    diagonal: Vector = key("The six diagonal elements, all others zero.", default=(), count=6)
    rows: Vector = content("36 numbers, row by row, instead of `diagonal`.", 36)


@dataclass(frozen=True)
class Swivel:
    """Turns the thrust in the body's x-y plane: an azimuth drive or a jet's nozzle. Its command is the
    angle in rad, positive from x towards y, of the actuator NAME-angle. One of the first four thrusters may have it."""

    minimum: float = key("Least angle.", "angle", -3.141592653589793, low=-3.1415927, high=3.1415927)
    maximum: float = key("Greatest angle.", "angle", 3.141592653589793, low=-3.1415927, high=3.1415927)
    lag: float = key("Time constant of the first-order lag.", "time", 0.0, low=0.0)
    rate: float = key("Greatest angular rate; 0 = unlimited.", "angular rate", 0.0, low=0.0)


@dataclass(frozen=True)
class Deflector:
    """Astern deflector (bucket) of a jet: scales the thrust along the jet's axis. Its command is -1 (full
    astern) .. 1 (up), of the actuator NAME-deflector. One of the first four thrusters may have it."""

    minimum: float = key("Least command.", default=-1.0, low=-1.0, high=1.0)
    maximum: float = key("Greatest command.", default=1.0, low=-1.0, high=1.0)
    lag: float = key("Time constant of the first-order lag.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class OpenWater:
    """A propeller by its open-water curves: T = rho D^4 KT(J) n abs(n), Q = rho D^5 KQ(J) n abs(n), with
    J = u_a/(n D) and n in 1/s. KT and KQ are linear in J, or KT is read from rows `J KT` between the tags.
    With linear curves there is no term in J when n is negative (Fossen 2021, sec. 9.1)."""

    diameter: float = key("D.", "length", low=1e-3)
    kt: Vector = key("KT at J = 0 and its slope per J.", default=(0.0, 0.0), count=2)
    kq: Vector = key("KQ at J = 0 and its slope per J.", default=(0.0, 0.0), count=2)
    torque_share: float = key("Share of the torque that turns the hull (against the propeller).", default=1.0)
    deduction: float = key("t: the hull feels (1 - t) T.", default=0.0, low=0.0, high=1.0)
    rows: Vector = content("Rows `J KT`, ascending in J; beyond the ends, the end's value.", 0)


@dataclass(frozen=True)
class Thruster:
    """A thruster. Thrust = c1 n + c2 n abs(n) + c3 abs(n) u_a, n the lagged command and u_a the water's
    speed against it. The command is limited, freed of the dead band, then mapped to n by the motor law."""

    name: str = text("Name, unique among the actuators of the model: commands and faults use it.")
    position: Vector = key("Where the force acts.", "length", count=3)
    direction: Vector = key("Direction of positive thrust (made a unit vector).", count=3)
    law: str = choice(
        "Unit of n: a force in N, or shaft speed in revolutions per second.",
        ("force", "shaft"),
    )
    minimum: float = key("Least command (in the unit of the command; N or 1/s without a motor law).")
    maximum: float = key("Greatest command.")
    lag: float = key("Time constant of the first-order lag; 0 = none.", "time", low=0.0)
    coefficients: Vector = key("c1, c2, c3 of the law above, SI.", default=(1.0, 0.0, 0.0), count=3)
    reverse: Vector = key("c1, c2, c3 for negative n; absent: the same.", default=(), count=3)
    inflow: str = choice(
        "u_a is the speed of the thruster through the water along its direction, or the body's whole "
        "speed through water (DUNE, Fossen's REMUS).",
        ("along", "total"),
        "along",
    )
    wake: float = key("w: u_a is multiplied by (1 - w).", default=0.0, low=0.0, high=1.0)
    thrust_limit: float = key("Greatest thrust to either side; 0 = unlimited.", "force", 0.0, low=0.0)
    motor: Vector = key("a, b of n = a sign(c) + b c for a command c.", default=(0.0, 1.0), count=2)
    dead_band: float = key("Commands of smaller size mean 0.", default=0.0, low=0.0)
    start: float = key("It answers from this time on (simulation time).", "time", 0.0, low=0.0)
    feedback: float = key("Window of the moving average of its reported n; 0 = none.", "time", 0.0, low=0.0, high=10.0)
    open_water: OpenWater | None = child(OpenWater, "A propeller instead of c1, c2, c3.")
    swivel: Swivel | None = child(Swivel, "It turns: azimuth drive or nozzle.")
    deflector: Deflector | None = child(Deflector, "Astern deflector of a jet.")


@dataclass(frozen=True)
class Aerofoil:
    """Lift and drag coefficients by angle of attack: rows `alpha CL CD`, alpha in degrees. A table that
    reaches less than 180 deg to either side is continued as a flat plate that has stalled
    (CL = sin 2a, CD = 2 sin2 a), blended over 10 deg."""

    rows: Vector = content("Rows `alpha CL CD`, ascending in alpha (degrees).", 0)


@dataclass(frozen=True)
class Fin:
    """A lifting surface on a turning shaft; its command is the angle in rad.

    law linear: normal force = 1/2 rho A CL_a abs(u) (u d - w_n), u the water speed along x and w_n the
    speed of the fin along its normal, up to the angle `stall`. law coefficients: six forces and torques, each k1 s d + k2 s d^2,
    with s the square of the speed across the span (or of the whole speed). law aerofoil: lift and drag
    from a table at the local angle of attack. law derivatives: it only turns; its force is in <derivatives>."""

    name: str = text("Name, unique among the actuators of the model: commands and faults use it.")
    position: Vector = key("Centre of pressure.", "length", (0.0, 0.0, 0.0), count=3)
    normal: Vector = key(
        "Direction of the force at a positive angle (made a unit vector).", default=(0.0, 1.0, 0.0), count=3
    )
    chord: Vector = key("Direction from trailing to leading edge at angle 0.", default=(1.0, 0.0, 0.0), count=3)
    law: str = choice(
        "How the force follows from the angle.", ("linear", "coefficients", "aerofoil", "derivatives"), "linear"
    )
    area: float = key("Planform area (linear, aerofoil).", "area", 0.0, low=0.0)
    lift_slope: float = key("Slope of the lift coefficient, 1/rad (linear).", default=0.0, low=0.0)
    stall: float = key(
        "Angle of attack at which the fin stalls (linear): beyond it the force is that of a plate, after Viterna and "
        "Corrigan (1982). Fins of aspect ratio 2 stall at 24 deg, of 3 at 20 deg (Whicker and Fehlner 1958). 0 = never.",
        "angle",
        0.0,
        low=0.0,
        high=1.0471976,
    )
    plate: float = key(
        "Normal-force coefficient of the stalled fin square to the flow (linear, aerofoil); 1.2 for plates of aspect "
        "ratio 1 to 5 (Hoerner 1965).",
        default=1.2,
        low=0.0,
    )
    per_angle: Vector = key("k1: X Y Z K M N per speed squared and rad.", default=(0.0,) * 6, count=6)
    per_square: Vector = key("k2: X Y Z K M N per speed squared and rad squared.", default=(0.0,) * 6, count=6)
    speed: str = choice("Speed for k1, k2: without its part along the span, or the whole.", ("plane", "total"), "plane")
    limit: float = key("Greatest angle to either side.", "angle", low=0.0, high=3.1415927)
    rate: float = key("Greatest angular rate; 0 = unlimited.", "angular rate", 0.0, low=0.0)
    lag: float = key("Time constant of the servo.", "time", 0.0, low=0.0)
    inflow: bool = flag("no: leave out w_n, for models whose <lift> holds the fins' share already.", True)
    aerofoil: Aerofoil | None = child(Aerofoil, "The table of law aerofoil.")


@dataclass(frozen=True)
class Ballast:
    """A tank or a buoyancy engine; its command is the mass in kg (negative: buoyancy)."""

    name: str = text("Name, unique among the actuators of the model: commands and faults use it.")
    position: Vector = key("Centre of the tank.", "length", count=3)
    minimum: float = key("Least mass.", "mass")
    maximum: float = key("Greatest mass.", "mass")
    rate: float = key("Greatest flow, kg/s; 0 = unlimited.", default=0.0, low=0.0)


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of a term or an actuator of another package."""

    name: str = text("Its name.")
    value: float = key("Its value, SI.")


@dataclass(frozen=True)
class OtherActuator:
    """An actuator of a type that another package offers (entry points wavesim.dynamics, docs/extending.md)."""

    name: str = text("Name, unique among the actuators of the model: commands and faults use it.")
    type: str = text("Its type: the name under which its package offers it.")
    unit: str = text("Unit of its command, for those who read it; the value is SI.", "")
    minimum: float = key("Least command.")
    maximum: float = key("Greatest command.")
    lag: float = key("Time constant of the first-order lag; 0 = none.", "time", 0.0, low=0.0)
    rate: float = key("Greatest change, per s; 0 = unlimited.", default=0.0, low=0.0)
    coefficient: tuple[Coefficient, ...] = children(Coefficient, "Each coefficient that the type has.")


@dataclass(frozen=True)
class Allocation:
    """Force and torque per unit thrust: six rows, one column per thruster, instead of positions and directions."""

    rows: Vector = content("6 x n numbers, row by row (X Y Z K M N).", 0)


# ------------------------------------------------------------------ hull


@dataclass(frozen=True)
class CrossFlow:
    """Cross-flow drag along the hull: Y = -c int abs(s) s dx, N = -c int x abs(s) s dx, s = v + x r over the
    length; the same for heave and pitch. The integral is exact."""

    length: float = key("Length of the integral.", "length", low=1e-3)
    centre: float = key("Its middle, forward of the origin.", "length", 0.0)
    sway: float = key("c of Y: 1/2 rho T CD.", "cross-flow", 0.0, low=0.0)
    yaw: float = key("c of N; absent: as sway.", "cross-flow", -1.0)
    heave: float = key("c of Z.", "cross-flow", 0.0, low=0.0)
    pitch: float = key("c of M; absent: as heave.", "cross-flow", -1.0)
    still: float = key(
        "Below this sway speed there is none in sway and yaw, to compare with codes that have it so.",
        "speed",
        0.0,
        low=0.0,
    )
    strips: int = key(
        "0: exact. n: a sum over n strips of length/(n - 1), to compare with codes that have it so.",
        default=0,
        low=0,
        high=200,
        integer=True,
    )


@dataclass(frozen=True)
class SurgeFriction:
    """X = -c (0.075/(log10 Rn - 2)^2 + k) u abs(u), Rn = abs(u) L / nu: the ITTC 1957 line."""

    factor: float = key("c: 1/2 rho S.", "cross-flow length", low=0.0)
    residual: float = key("k: roughness and wave making.", default=0.0)
    length: float = key("L.", "length", low=1e-3)
    viscosity: float = key("nu, kinematic, m2/s.", default=1e-6, low=1e-9)


@dataclass(frozen=True)
class FadingDrag:
    """Linear drag that fades with speed: tau = -d exp(-k U) nu_r."""

    diagonal: Vector = key("d: six elements.", count=6)
    fade: float = key("k, s/m.", low=0.0)


@dataclass(frozen=True)
class BodyLift:
    """Hull as a slender wing in the vertical plane: CL = CL_a a, CD = CD_0 + CL^2/(pi e A), a = atan2(w, u)."""

    area: float = key("S: reference area.", "area", low=0.0)
    span: float = key("b: the aspect ratio is A = b^2/S.", "length", low=1e-3)
    drag: float = key("CD_0.", low=0.0)
    efficiency: float = key("e: Oswald's.", default=0.7, low=0.01, high=1.0)


@dataclass(frozen=True)
class Derivative:
    """One hydrodynamic derivative, named by its force and its factors: `X_u`, `X_u_au` (u abs(u)), `Y_v_av`,
    `N_uv`, `Y_v_r`, `Y_dr` (d, d1..d8: angle of a fin; dr is the first one). A force is positive along its axis."""

    name: str = text("Force letter, underscore, factors u v w p q r, au av aw ap aq ar, d d1 .. d8.")
    value: float = key("Coefficient.")


@dataclass(frozen=True)
class Derivatives:
    """Any named derivatives, up to 48. In the prime system forces are made dimensionless by 1/2 rho L^2 U^2,
    moments by 1/2 rho L^3 U^2, velocities by U, rates by U/L."""

    system: str = choice("dimensional (SI) or prime.", ("dimensional", "prime"), "dimensional")
    length: float = key("L of the prime system.", "length", 0.0, low=0.0)
    speed: float = key("U of the prime system; 0 m/s = the speed through water at that time.", "speed", 0.0, low=0.0)
    derivative: tuple[Derivative, ...] = children(Derivative, "A derivative.")


@dataclass(frozen=True)
class OtherTerm:
    """A force of the hull that another package offers (entry points wavesim.dynamics, docs/extending.md)."""

    name: str = text("The name under which its package offers it.")
    coefficient: tuple[Coefficient, ...] = children(Coefficient, "Each coefficient that the term has.")


@dataclass(frozen=True)
class HullMesh:
    """The body's surface for buoyancy, a closed mesh of up to 1280 triangles (STL, PLY, OBJ, OFF, GLB): what of it is under the
    local water plane lifts it, at any heel, so it capsizes where the real one does. The primitive still stands for
    contacts, and for the waves' mean over length and width. Added mass and drag stay those of the whole body, also when it leaves the water."""

    file: str = text("The file, relative to the file that names it.")
    attitude: Vector = key(
        "Roll, pitch, yaw from the file's axes to the body's: 180 0 0 deg for a file with z up.",
        "angle",
        (0.0, 0.0, 0.0),
        count=3,
    )
    position: Vector = key("Where the file's origin lies in the body.", "length", (0.0, 0.0, 0.0), count=3)
    scale: float = key("Metres per unit of the file.", default=1.0, low=1e-6, high=1e6)


@dataclass(frozen=True)
class Restoring(Matrix6):
    """Linear restoring -G [x y z phi theta psi] about the equilibrium, for hulls that are no box, cylinder or
    sphere. Weight and buoyancy balance; only <load> adds weight. Only columns 3, 4, 5 may hold numbers."""

    z: float = key("Depth of the origin at equilibrium.", "length", 0.0)


@dataclass(frozen=True)
class Load:
    """A weight on board whose mass is part of <mass> already, but that <restoring> does not balance."""

    mass: float = key("Its mass.", "mass")
    position: Vector = key("Where it is.", "length", count=3)


@dataclass(frozen=True)
class FluidMemory:
    """Fluid memory: a radiation force -mu on one degree of freedom from the motion of another, by a linear system of
    order n: mu = c0 x0 + c1 x1 + ... with x0' = x1, x1' = x2, ..., and at the end x' = nu - a0 x0 - a1 x1 - ...; its
    transfer function is (c0 + c1 s + ...)/(a0 + a1 s + ... + s^n). Up to 24 systems with 64 states in all."""

    source: str = choice("The motion.", ("u", "v", "w", "p", "q", "r"))
    force: str = choice("The force.", ("X", "Y", "Z", "K", "M", "N"))
    a: Vector = key("a0 a1 ...: as many as its order.", count=0)
    c: Vector = key("c0 c1 ...: as many.", count=0)


@dataclass(frozen=True)
class Oscillator:
    """One of the oscillators of <radiation>."""

    frequency: float = key("w: its natural frequency.", "angular rate", low=1e-6)
    damping: Vector = key("Its row of R, 1/s: as many numbers as there are oscillators.", count=0)
    coupling: Vector = key("Its row b of B: X Y Z K M N, SI (sqrt(kg)/s for forces, times m for moments).", count=6)


@dataclass(frozen=True)
class Radiation:
    """Waves that the hull radiates, as up to 16 oscillators that its motion through the water drives:
    q'' + R q' + diag(w^2) q = B nu_r, tau = -B^T q', so K(s) = s B^T (s^2 + R s + diag(w^2))^-1 B. With a symmetric R that
    has no negative eigenvalue it cannot give energy, whatever the motion. <added-mass> is that at infinite frequency.
    `wavesim vehicles import` fits it to the tables of a panel code. Each takes two of the 64 states of fluid memory."""

    oscillator: tuple[Oscillator, ...] = children(Oscillator, "Each of them.", least=1)


# ------------------------------------------------------------------ wind and waves


@dataclass(frozen=True)
class WindDrag:
    """Wind on the part above water. blendermann: CD_l ahead and astern, CD_t, cross-force delta, kappa of
    Blendermann (1994). simple: X = -c_x cos g, Y = c_y sin g, N = c_n sin 2g times dynamic pressure and area."""

    frontal: float = key("Frontal projected area.", "area", low=0.0)
    lateral: float = key("Lateral projected area.", "area", low=0.0)
    length: float = key("Overall length, for the yaw moment.", "length", low=1e-3)
    law: str = choice("Which coefficients.", ("blendermann", "simple"), "blendermann")
    drag: Vector = key("CD_l ahead, CD_l astern, CD_t, delta, kappa.", default=(0.55, 0.6, 0.9, 0.6, 1.1), count=5)
    simple: Vector = key("c_x c_y c_n.", default=(0.7, 0.85, 0.125), count=3)
    height: float = key(
        "s_H: height of the centroid of the lateral area above the water; the wind there counts.", "length", low=0.01
    )
    forward: float = key("s_L: its place forward of the origin.", "length", 0.0)


@dataclass(frozen=True)
class WaveFilter:
    """First-order wave forces by a filter K s/(s^2 + 2 l w_e s + w_e^2) of white noise for each degree of freedom,
    with the frequency of encounter w_e of the sea's peak. They stand for all that waves do: the hull floats on the mean
    water. For hulls with neither a primitive's buoyancy nor <rao>."""

    gain: Vector = key("K of X Y Z K M N, at a significant wave height of 1 m.", count=6)
    damping: float = key("l.", default=0.1, low=1e-3, high=2.0)


@dataclass(frozen=True)
class Rao:
    """Wave forces by response amplitude operators from a file: MATLAB (as of the MSS toolbox) or CSV. They stand for all that
    waves do: the hull floats on the mean water. Mean drift forces of the file act by Newman's approximation.

    A CSV file has a header and a line for each heading and frequency: `heading_deg` (0 = following sea, equal steps to 360, or
    to 180 for a hull that is the same on both sides), `frequency` (rad/s), `surge`, `surge_phase_deg` and so on to `yaw` (N, N m
    or m, rad per m of wave amplitude; phases as in MSS), and, all or none, `drift_surge`, `drift_sway`, `drift_yaw` (N, N m per m2).
    """

    file: str = text("The file, relative to the file that names it.")
    group: str = text("Name of the structure in a MATLAB file.", "vessel")
    speed: int = key("Index of the speed in the tables of a MATLAB file.", default=0, low=0, integer=True)
    use: str = choice(
        "force: the force operators of the file. motion: its motion operators, by the forces that make this model move "
        "so at rest (its own mass, added mass, linear drag, memory and <restoring>, which it needs).",
        ("force", "motion"),
        "force",
    )


@dataclass(frozen=True)
class Performance:
    """Published figures of the vehicle itself, which stand beside those of the model (docs/models.md). They act on nothing."""

    speed: float = key("Greatest speed of the vehicle; 0 = not published.", "speed", 0.0, low=0.0)
    turn_rate: float = key("Greatest rate of turn; 0 = not published.", "angular rate", 0.0, low=0.0)
    stable: str = choice(
        "Whether the vehicle itself keeps a straight course with its helm amidships.",
        ("yes", "no", "unknown"),
        "unknown",
    )
    source: str = text("Where the figures come from.")
    remark: str = text("Why the model differs, where it does.", "")


@dataclass(frozen=True)
class Model:
    """A kind of body: geometry, masses, hydrodynamic coefficients, actuators."""

    name: str = text("Name by which vehicles refer to it.")
    type: str = choice("Client type.", ("surface", "underwater", "buoy"))
    title: str = text("One line for people.", "")
    source: str = text("Where the numbers come from.", "")
    validated: str = text("What the model was compared with, and what not.", "")
    valid_speed: float = key(
        "Greatest speed through the water that the model is meant for; 0 m/s = not stated.", "speed", 0.0, low=0.0
    )
    valid_sea: float = key(
        "Greatest significant wave height that it is meant for; 0 m = not stated.", "length", 0.0, low=0.0
    )
    appearance: str = text(
        "A glTF file (.glb; metres, +Z forward, +Y up) that viewers draw instead of the primitive, relative to the "
        "configuration file.",
        "",
    )
    active: str = text("Degrees of freedom that move; the others are frozen at rest.", "u v w p q r")
    coriolis: bool = flag("no: leave out C(nu) altogether, for models that have it in their derivatives.", True)
    coriolis_added: str = choice(
        "Which added mass takes part in C_A: whole, for bodies deep under water; or only its plane part (surge, sway, "
        "yaw), for hulls on the surface. Those lift the water in heave and do not sweep it along: its inertia, drag and "
        "memory act against vertical motion, as in seakeeping theory; C_A and drag along the body would overturn them.",
        ("whole", "plane"),
        "whole",
    )
    coriolis_without: str = text(
        "Elements of C_A that the model leaves out, as row and column: of 15 16 26 35 51 53 61 62. Some published "
        "models do so instead of damping the Munk moment.",
        "",
    )
    box: Box | None = child(Box, "Geometry: a box.")
    cylinder: Cylinder | None = child(Cylinder, "Geometry: a cylinder.")
    sphere: Sphere | None = child(Sphere, "Geometry: a sphere.")
    mass: Mass = child(Mass, "Mass and its centre.", required=True)
    inertia: Inertia | None = child(Inertia, "Inertia about the centre of mass.")
    rigid_body: Matrix6 | None = child(Matrix6, "M_RB about the origin, instead of <inertia> and the mass's centre.")
    buoyancy: Buoyancy | None = child(Buoyancy, "Absent: the volume of the primitive, at its centre.")
    hull: HullMesh | None = child(HullMesh, "A closed mesh, instead of the primitive's buoyancy.")
    restoring: Restoring | None = child(Restoring, "Linear restoring, instead of the primitive's buoyancy.")
    load: tuple[Load, ...] = children(Load, "Weights that <restoring> does not balance.")
    added_mass: Matrix6 = child(Matrix6, "Added mass M_A (positive).", required=True)
    linear_drag: Matrix6 | None = child(Matrix6, "Force per velocity, opposing: tau = -D nu_r (positive).")
    quadratic_drag: Matrix6 | None = child(Matrix6, "tau = -D (abs(nu_r) nu_r), element by element (positive).")
    lift: Matrix6 | None = child(Matrix6, "Body lift and cross terms: tau = -L abs(u_r) nu_r.")
    fading_drag: FadingDrag | None = child(FadingDrag, "Linear drag that fades with speed.")
    cross_flow: CrossFlow | None = child(CrossFlow, "Cross-flow drag.")
    surge_friction: SurgeFriction | None = child(SurgeFriction, "ITTC friction in surge.")
    body_lift: BodyLift | None = child(BodyLift, "Lift and drag of a slender hull.")
    derivatives: Derivatives | None = child(Derivatives, "Named hydrodynamic derivatives.")
    memory: tuple[FluidMemory, ...] = children(FluidMemory, "Fluid memory.")
    radiation: Radiation | None = child(Radiation, "Fluid memory of all axes together, by oscillators.")
    term: tuple[OtherTerm, ...] = children(OtherTerm, "Forces of the hull that other packages offer.")
    wind_drag: WindDrag | None = child(WindDrag, "Wind forces.")
    wave_filter: WaveFilter | None = child(WaveFilter, "Wave forces by filters.")
    rao: Rao | None = child(Rao, "Wave forces by response amplitude operators.")
    thruster: tuple[Thruster, ...] = children(Thruster, "Up to twelve thrusters.")
    allocation: Allocation | None = child(Allocation, "Thruster allocation matrix.")
    fin: tuple[Fin, ...] = children(Fin, "Up to eight fins.")
    ballast: tuple[Ballast, ...] = children(Ballast, "Up to four ballast tanks.")
    actuator: tuple[OtherActuator, ...] = children(
        OtherActuator, "Actuators of types that other packages offer; with the ballast tanks up to four."
    )
    transducer: TransducerConfig | None = child(TransducerConfig, "The acoustic transducer, if it has one.")
    sensors: SensorsConfig | None = child(SensorsConfig, "Its instruments.")
    performance: Performance | None = child(Performance, "Published figures of the vehicle itself.")
    place: str = place()
