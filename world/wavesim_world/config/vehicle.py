"""Declarations of the model of a body: geometry, masses, hydrodynamics, actuators, exposure to wind and waves.

This module is part of the configuration model. A configuration file may use any supported unit; the objects contain SI
values and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.acoustics import TransducerConfig
from wavesim_world.config.actuators import Allocation, Ballast, Coefficient, Fin, OtherActuator, Thruster
from wavesim_world.config.aerodynamics import Aerodynamics
from wavesim_world.config.exposure import FluidMemory, Radiation, Rao, WaveFilter, WindDrag
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
    """Cylinder along the x axis of the body, as a simple shape for underwater vehicles."""

    length: float = key("Length of the cylinder along the body x axis.", "length", low=1e-3)
    radius: float = key("Radius of the cylinder.", "length", low=1e-3)


@dataclass(frozen=True)
class Sphere:
    """Sphere, as a simple shape for buoys."""

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
    """6x6 matrix in SI units about the body's origin. Specify all 36 elements row by row, or only the
    diagonal.
    """

    diagonal: Vector = key(
        "The six diagonal elements of the matrix, in SI units. All other elements are zero.", default=(), count=6
    )
    rows: Vector = content("All 36 elements of the matrix, row by row, instead of `diagonal`.", 36)


# ------------------------------------------------------------------ hull forces


@dataclass(frozen=True)
class CrossFlowSection:
    """Cross-section of the hull for the cross-flow drag. Beam and draft are interpolated linearly between sections."""

    x: float = key("Distance from the body's origin to the cross-section, positive forward.", "length")
    beam: float = key(
        "Beam of the cross-section at the waterline, or its largest beam if submerged.", "length", low=0.0
    )
    draft: float = key(
        "Draft of the cross-section. For underwater vehicles, enter the height of the cross-section.",
        "length",
        low=0.0,
    )


@dataclass(frozen=True)
class CrossFlow:
    """Cross-flow drag along the hull: Y = -c integral(abs(s) s dx) and N = -c integral(x abs(s) s dx), with s = v + x
    r.

    The integrals over the hull length `length` are evaluated exactly. The force in heave and the moment in pitch have
    the same form. With coefficient="hoerner", c = 1/2 rho T CD follows from the dimensions of the hull, or of each
    <section>. CD is Hoerner's (1965) drag coefficient of a cross-section with the ratio B/(2T) of beam to twice the
    draft.
    """

    coefficient: str = choice(
        "Source of the coefficients. given: `sway`, `yaw`, `heave` and `pitch`. hoerner: Hoerner's curve as a function "
        "of B/(2T). For underwater vehicles, hoerner also gives the drag in heave and pitch.",
        ("given", "hoerner"),
        "given",
    )
    length: float = key(
        "Length of the hull over which the cross-flow drag is integrated; 0 m = length of the primitive shape.",
        "length",
        0.0,
        low=0.0,
    )
    centre: float = key(
        "Distance from the body's origin to the centre of the integration length, positive forward.", "length", 0.0
    )
    beam: float = key(
        "Beam B of the hull (coefficient=hoerner); 0 m = width of the primitive shape.", "length", 0.0, low=0.0
    )
    draft: float = key(
        "Draft T of the hull (coefficient=hoerner); 0 m = the draft at which a box with the size of the primitive "
        "shape displaces the mass of the model. For underwater vehicles, enter the height of the hull; 0 m = height "
        "of the primitive shape.",
        "length",
        0.0,
        low=0.0,
    )
    sway: float = key(
        "Coefficient c of the cross-flow force Y in sway: 1/2 rho T CD, where T is the draft and CD the drag coefficient.",
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
    section: tuple[CrossFlowSection, ...] = children(
        CrossFlowSection,
        "Cross-section of the hull (coefficient=hoerner), in ascending order of `x`. Two or more sections replace "
        "`length`, `centre`, `beam` and `draft`.",
    )


@dataclass(frozen=True)
class SurgeFriction:
    """Friction in surge according to the ITTC 1957 line: X = -c (0.075/(log10 Rn - 2)^2 + k) u abs(u). The Reynolds
    number is Rn = abs(u) L / nu.
    """

    factor: float = key(
        "Factor c of the surge friction: 1/2 rho S, where S is the wetted surface.", "cross-flow length", low=0.0
    )
    residual: float = key("Residual coefficient k of the surge resistance, for roughness and wave making.", default=0.0)
    length: float = key("Length L of the hull, for the Reynolds number.", "length", low=1e-3)
    viscosity: float = key("Kinematic viscosity nu of the water, m2/s.", default=1e-6, low=1e-9)


@dataclass(frozen=True)
class FadingDrag:
    """Linear drag that decreases with the speed U through the water: tau = -d exp(-k U) nu_r, where nu_r is the
    velocity through water."""

    diagonal: Vector = key("Six linear drag coefficients d at zero speed, in SI units.", count=6)
    fade: float = key("Decay constant k of the linear drag, s/m.", low=0.0)


@dataclass(frozen=True)
class BodyLift:
    """Lift and drag of the hull in the vertical plane, modelled as a slender wing.

    The lift coefficient is `CL_a alpha` and the drag coefficient `CD_0 + CL^2/(pi e A)`, where
    `alpha = atan2(w, u)` is the angle of attack.
    """

    area: float = key("Reference area S of the wing that represents the hull.", "area", low=0.0)
    span: float = key("Span b of the wing that represents the hull. The aspect ratio is A = b^2/S.", "length", low=1e-3)
    drag: float = key("Zero-lift drag coefficient CD_0 of the hull.", low=0.0)
    efficiency: float = key(
        "Oswald efficiency e of the wing that represents the hull.", default=0.7, low=0.01, high=1.0
    )


@dataclass(frozen=True)
class Derivative:
    """Hydrodynamic derivative. Its name states the force, and the factors by which the derivative is multiplied.

    Examples: `X_u`, `X_u_au` (u abs(u)), `Y_v_av`, `N_uv`, `Y_v_r`, `Y_dr`. The factors d1 to d8 are the angles of the
    fins; d and dr are other names for d1. A force is positive along its axis.
    """

    name: str = text(
        "Name of the derivative: a letter for the force, an underscore, and the factors. Letters: X Y Z K M N. "
        "Factors: the velocities u v w p q r, their absolute values au av aw ap aq ar, and the fin angles d, d1 .. d8."
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
    """Hull force of a type that another package provides through entry points in the wavesim.dynamics group
    (docs/extending.md).
    """

    name: str = text("Name under which the package registers the force term.")
    coefficient: tuple[Coefficient, ...] = children(Coefficient, "Coefficient of the force term.")


@dataclass(frozen=True)
class HullMesh:
    """Closed mesh of the body's surface, from which buoyancy is computed. The mesh has up to 1280 triangles (STL, PLY,
    OBJ, OFF, GLB).

    The part of the mesh below the local water plane determines the buoyancy at any heel. The model therefore capsizes
    at the same angle of heel as the real hull. Contacts, and the averaging of waves over length and width, still use
    the primitive shape. Added mass and drag are always computed for the whole body, even when it leaves the water.
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

    Weight and buoyancy are in balance; only <load> adds weight. Only columns 3, 4 and 5 (heave, roll, pitch) may have non-zero elements.
    """

    z: float = key("Depth of the body's origin when the body floats at equilibrium.", "length", 0.0)


@dataclass(frozen=True)
class Load:
    """Load such as cargo. <mass> already includes it, but the buoyancy implied by <restoring> does not support its
    weight.

    The weight acts vertically, but the restoring force acts along the axes of the body. A loaded body that trims
    therefore moves ahead without a command. To avoid this, include the load in <mass> and <restoring>.
    """

    mass: float = key("Mass of the load on board.", "mass")
    position: Vector = key("Position of the load in the body frame (forward, starboard, down).", "length", count=3)


# ------------------------------------------------------------------ wind and waves


@dataclass(frozen=True)
class Performance:
    """Published performance of the real vehicle, for comparison with the performance of the model (docs/models.md). It
    does not affect the simulation.
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
    type: str = choice("Type of body that the model describes.", ("surface", "underwater", "buoy", "aircraft"))
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
        "primitive shape. The file uses metres, with +Z forward and +Y up. Nodes with the name of an actuator move "
        "with it.",
        "",
    )
    draw_parts: bool = flag(
        "Whether viewers add their own drawing of each thruster and fin for which the `appearance` file has no node "
        "of the same name. Set to no if the file shows them without such nodes.",
        True,
    )
    active: str = text(
        "Degrees of freedom in which the body can move. Its velocity in the other degrees of freedom stays at zero.",
        "u v w p q r",
    )
    coriolis: bool = flag(
        "Whether to compute the Coriolis and centripetal forces C(nu). Set to no if the derivatives of the model "
        "already include them.",
        True,
    )
    coriolis_added: str = choice(
        "Added mass used in the Coriolis matrix C_A. whole: all of it, for submerged bodies. plane: surge, sway and "
        "yaw, for hulls on the surface. With `plane`, heave inertia, drag and memory act along the vertical, as in "
        "seakeeping theory; along the z axis of the body, they would capsize the hull.",
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
        Buoyancy, "Displaced volume and its centre. If absent, the volume and centre of the primitive shape apply."
    )
    hull: HullMesh | None = child(HullMesh, "Closed mesh that replaces the primitive shape for buoyancy.")
    restoring: Restoring | None = child(
        Restoring, "Linear restoring forces that replace the buoyancy of the primitive shape."
    )
    load: tuple[Load, ...] = children(
        Load, "Weight on board that is included in <mass> but not in the equilibrium of <restoring>."
    )
    added_mass: Matrix6 = child(Matrix6, "Added mass matrix M_A, entered with a positive sign.", required=True)
    linear_drag: Matrix6 | None = child(
        Matrix6,
        "Linear drag matrix D, entered with a positive sign: tau = -D nu_r, where nu_r is the velocity through water.",
    )
    quadratic_drag: Matrix6 | None = child(
        Matrix6,
        "Quadratic drag matrix D, entered with a positive sign: tau = -D (abs(nu_r) nu_r), where nu_r is the velocity "
        "through water. The product abs(nu_r) nu_r is taken element by element.",
    )
    lift: Matrix6 | None = child(
        Matrix6,
        "Matrix L of body lift and cross terms: tau = -L abs(u_r) nu_r, where nu_r is the velocity through water and "
        "u_r its surge component.",
    )
    fading_drag: FadingDrag | None = child(FadingDrag, "Linear drag that decreases with speed.")
    cross_flow: CrossFlow | None = child(CrossFlow, "Cross-flow drag along the hull.")
    surge_friction: SurgeFriction | None = child(SurgeFriction, "Friction of the hull in surge (ITTC 1957).")
    body_lift: BodyLift | None = child(BodyLift, "Lift and drag of the hull as a slender wing.")
    derivatives: Derivatives | None = child(Derivatives, "Hydrodynamic derivatives by name.")
    memory: tuple[FluidMemory, ...] = children(
        FluidMemory,
        "Fluid memory: radiation force on one degree of freedom due to motion in the same or another degree of "
        "freedom.",
    )
    radiation: Radiation | None = child(Radiation, "Fluid memory of all coupled axes, modelled by oscillators.")
    term: tuple[OtherTerm, ...] = children(OtherTerm, "Hull force of a type that another package provides.")
    aerodynamics: Aerodynamics | None = child(Aerodynamics, "Aerodynamics of an aircraft (type `aircraft`).")
    wind_drag: WindDrag | None = child(WindDrag, "Wind forces on the vehicle.")
    wave_filter: WaveFilter | None = child(WaveFilter, "First-order wave forces, modelled by filters.")
    rao: Rao | None = child(Rao, "Wave forces computed from response amplitude operators (RAOs).")
    thruster: tuple[Thruster, ...] = children(Thruster, "Thruster. A model may have up to twelve.")
    allocation: Allocation | None = child(Allocation, "Thruster allocation matrix.")
    fin: tuple[Fin, ...] = children(Fin, "Fin. A model may have up to eight.")
    ballast: tuple[Ballast, ...] = children(Ballast, "Ballast tank. A model may have up to four.")
    actuator: tuple[OtherActuator, ...] = children(
        OtherActuator,
        "Actuator of a type that another package provides. A model may have up to four such "
        "actuators and ballast tanks in total.",
    )
    transducer: TransducerConfig | None = child(TransducerConfig, "Acoustic transducer of the body.")
    sensors: SensorsConfig | None = child(SensorsConfig, "Instruments that all bodies of this model carry.")
    performance: Performance | None = child(Performance, "Published performance of the real vehicle.")
    place: str = place()
