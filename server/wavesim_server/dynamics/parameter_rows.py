"""Rows of a model's parameters, imported as ``P``: the coefficients in its equation of motion, one number each.

All blocks of a model use the same parameters, which therefore remain in the cache.
"""

from __future__ import annotations

from wavesim_server.dynamics.row_tables import RowTable
from wavesim_server.dynamics.sizes import (
    BALLASTS,
    FINS,
    GAINS,
    MAX_DERIVATIVES,
    MAX_EXTENSION_COEFFICIENTS,
    MEMORY_STATES,
    OSCILLATORS,
    OTHER_COEFFICIENTS,
    SLOTS,
    SWIVELS,
    THRUSTERS,
)

TABLE = RowTable(
    "params",
    "Coefficients of a model, which all its bodies share. Matrices are stored in row-major order. Compiled code "
    "reads `P.NAME`.",
)
_rows = TABLE.declare
_ACTUATOR = "N, 1/s, rad or kg"
_INERTIA = "kg, kg m, kg m2"
_LINEAR = "N s/m, N s, N m s"
_QUADRATIC = "N s2/m2, N s2/m, N s2, N m s2"
_PER_SPEED2 = "N s2/m2, N s2/m"
_LEVER = "m"  # of a wrench per force; its first three numbers are a direction

MASS = _rows("MASS", _INERTIA, "B", "Symmetric part of M_RB + M_A, from which the momentum is computed.", 36)
MASS_INVERSE = _rows(
    "MASS_INVERSE", "1/kg, 1/(kg m), 1/(kg m2)", "B", "Inverse of M_RB + M_A for the free degrees of freedom.", 36
)
LINEAR_DRAG = _rows("LINEAR_DRAG", _LINEAR, "B", "Linear drag D_L.", 36)
QUADRATIC_DRAG = _rows("QUADRATIC_DRAG", _QUADRATIC, "B", "Quadratic drag D_Q.", 36)
BODY_LIFT = _rows("BODY_LIFT", _QUADRATIC, "B", "Body lift matrix L, per unit of surge speed.", 36)
WEIGHT = _rows("WEIGHT", "N", "", "Weight.")
WEIGHT_MOMENT = _rows("WEIGHT_MOMENT", "N m", "B", "Weight times the position of the centre of mass.", 3)
FULL_BUOYANCY = _rows("FULL_BUOYANCY", "N", "", "Buoyancy of the fully submerged body.")
FULL_BUOYANCY_CENTRE = _rows("FULL_BUOYANCY_CENTRE", "m", "B", "Centre of buoyancy of the fully submerged body.", 3)
VOLUME = _rows("VOLUME", "m3", "", "Volume of a hull mesh; 0 = the model has the shape of its primitive.")
SHAPE = _rows("SHAPE", "", "", "Primitive shape: 0 box, 1 cylinder, 2 sphere.")
HALF = _rows("HALF", "m", "B", "Half length, half width (or radius), half height.", 3)
BOUNDING_RADIUS = _rows("BOUNDING_RADIUS", "m", "", "Radius of the body's bounding sphere.")
CONTACT_MARGIN = _rows(
    "CONTACT_MARGIN",
    "m",
    "",
    "Rounding radius for contact: the shape is shrunk by this radius to a core, and all points within this radius of the core form the rounded shape.",
)

THRUSTER_WRENCH = _rows(
    "THRUSTER_WRENCH", _LEVER, "B", "Force and moment per unit thrust, for each thruster.", THRUSTERS * 6
)
THRUSTER_WRENCH_TURNED = _rows(
    "THRUSTER_WRENCH_TURNED",
    _LEVER,
    "B",
    "Force and moment per unit thrust when the thruster is turned 90 degrees to starboard.",
    SWIVELS * 6,
)
LAW_TABLE = RowTable("thruster law", "Columns of `P.THRUSTER_LAW` for each thruster. Compiled code reads `P.NAME`.")
LAW_AHEAD = LAW_TABLE.declare("LAW_AHEAD", "N, N s or N s2", "", "Thrust ahead: c1 n + abs(n) (c2 n + c3 u_a).", 3)
LAW_ASTERN = LAW_TABLE.declare(
    "LAW_ASTERN", "N, N s or N s2", "", "Thrust astern, with the same formula as the thrust ahead.", 3
)
LAW_TORQUE_AHEAD = LAW_TABLE.declare("LAW_TORQUE_AHEAD", "N m s2, N s2", "", "Torque ahead: abs(n) (q2 n + q3 u_a).", 2)
LAW_TORQUE_ASTERN = LAW_TABLE.declare(
    "LAW_TORQUE_ASTERN", "N m s2, N s2", "", "Torque astern, with the same formula as the torque ahead.", 2
)
LAW_WHOLE = LAW_TABLE.declare(
    "LAW_WHOLE", "", "", "1 = u_a is the total speed through the water; 0 = the speed along the thruster."
)
LAW_WAKE = LAW_TABLE.declare("LAW_WAKE", "", "", "Inflow factor of a thruster: 1 - wake fraction.")
LAW_SCALE = LAW_TABLE.declare("LAW_SCALE", "N s2", "", "rho D^4, for a KT table.")
LAW_DIAMETER = LAW_TABLE.declare("LAW_DIAMETER", "m", "", "Diameter D, for a KT table.")
LAW_LEAST_J = LAW_TABLE.declare("LAW_LEAST_J", "", "", "Minimum advance ratio of the KT table.")
LAW_PER_J = LAW_TABLE.declare("LAW_PER_J", "", "", "Number of points in the KT table per unit of the advance ratio.")
LAW_LIMIT = LAW_TABLE.declare("LAW_LIMIT", "N", "", "Maximum thrust of a thruster in either direction.")
LAW_SIZE = LAW_TABLE.size
THRUSTER_LAW = _rows(
    "THRUSTER_LAW", "", "", "Laws of the thrusters; see [thruster law](#thruster-law).", THRUSTERS * LAW_SIZE
)
PROPELLER_TORQUE_AXIS = _rows(
    "PROPELLER_TORQUE_AXIS", "", "B", "Moment per unit of propeller torque, for each thruster.", THRUSTERS * 3
)
ACTUATOR_RATE = _rows("ACTUATOR_RATE", _ACTUATOR, "", "Maximum change per step of the actuator in each slot.", SLOTS)
ACTUATOR_IMMEDIATE = _rows(
    "ACTUATOR_IMMEDIATE",
    "",
    "",
    "1 for actuators without lag or rate limit, which follow a command immediately.",
    SLOTS,
)
ACTUATOR_GAIN = _rows(
    "ACTUATOR_GAIN",
    "",
    "",
    "Lag factor 1 - exp(-c h / T) of all slots, for each stage time c (in steps) of the integrator. The first stage "
    "time is 1.",
    GAINS * SLOTS,
)

FIN_WRENCH = _rows("FIN_WRENCH", _LEVER, "B", "Force and moment per unit normal force, for each fin.", FINS * 6)
FIN_LIFT = _rows("FIN_LIFT", "N s2/m2", "", "Coefficient 1/2 rho A CL_a of the linear lift law.", FINS)
FIN_INFLOW = _rows("FIN_INFLOW", "", "", "1 = the inflow angle acts on the fin; 0 = it does not.", FINS)
FIN_PLACE_Y = _rows("FIN_PLACE_Y", "m", "B", "Distance of the fin to starboard of the origin.", FINS)
FIN_PLACE_Z = _rows("FIN_PLACE_Z", "m", "B", "Distance of the fin below the origin.", FINS)
FIN_STALL = _rows("FIN_STALL", "rad", "", "Stall angle of the linear law; 0 = the fin does not stall.", FINS)
FIN_SLOPE = _rows("FIN_SLOPE", "", "", "Lift slope CL_a of the fin, per rad.", FINS)
FIN_PLATE = _rows("FIN_PLATE", "", "", "Normal-force coefficient of stalled fins at 90 degrees.", FINS)
FIN_SPAN = _rows(
    "FIN_SPAN",
    "",
    "B",
    "Span axis of each fin; set only if the fin's coefficients apply to the speed in its own plane.",
    FINS * 3,
)
FIN_PER_ANGLE = _rows(
    "FIN_PER_ANGLE", _PER_SPEED2, "B", "Force and moment per speed squared and per fin angle, for each fin.", FINS * 6
)
FIN_PER_SQUARE = _rows(
    "FIN_PER_SQUARE",
    _PER_SPEED2,
    "B",
    "Force and moment per speed squared and per fin angle squared, for each fin.",
    FINS * 6,
)
FOIL_TABLE = RowTable("aerofoil", "Columns of `P.FIN_FOIL` for each fin. Compiled code reads `P.NAME`.")
FOIL_PLACE = FOIL_TABLE.declare("FOIL_PLACE", "m", "B", "Position of a fin's aerofoil.", 3)
FOIL_CHORD = FOIL_TABLE.declare("FOIL_CHORD", "", "B", "Direction of the chord of an aerofoil.", 3)
FOIL_NORMAL = FOIL_TABLE.declare("FOIL_NORMAL", "", "B", "Direction of the normal of an aerofoil.", 3)
FOIL_AREA = FOIL_TABLE.declare("FOIL_AREA", "N s2/m2", "", "Area A of the aerofoil, stored as 1/2 rho A.")
FOIL_SIZE = FOIL_TABLE.size
FIN_FOIL = _rows("FIN_FOIL", "", "", "Aerofoils of the fins; see [aerofoil](#aerofoil).", FINS * FOIL_SIZE)

CROSS_SWAY = _rows(
    "CROSS_SWAY",
    "N s2/m3",
    "",
    "Coefficient c of the cross-flow force in sway: Y = -c integral(abs(s) s dx), with s = v + x r.",
)
CROSS_YAW = _rows(
    "CROSS_YAW",
    "N s2/m3",
    "",
    "Coefficient c of the cross-flow moment in yaw: N = -c integral(x abs(s) s dx), with s = v + x r.",
)
CROSS_HEAVE = _rows(
    "CROSS_HEAVE",
    "N s2/m3",
    "",
    "Coefficient c of the cross-flow force in heave: Z = -c integral(abs(s) s dx), with s = w - x q.",
)
CROSS_PITCH = _rows(
    "CROSS_PITCH",
    "N s2/m3",
    "",
    "Coefficient c of the cross-flow moment in pitch: M = c integral(x abs(s) s dx), with s = w - x q.",
)
CROSS_HALF = _rows("CROSS_HALF", "m", "", "Half length of the hull.")
CROSS_CENTRE = _rows("CROSS_CENTRE", "m", "B", "Distance of the hull's centre forward of the origin.")
CROSS_STILL = _rows(
    "CROSS_STILL", "m/s", "", "Sway speed below which the cross-flow drag produces no sway force and no yaw moment."
)
FRICTION = _rows(
    "FRICTION", "N s2/m2", "", "ITTC friction force, divided by the friction coefficient and the square of the speed."
)
FRICTION_RESIDUAL = _rows(
    "FRICTION_RESIDUAL", "", "", "Residual resistance coefficient, added to the coefficient of the ITTC line."
)
FRICTION_REYNOLDS = _rows("FRICTION_REYNOLDS", "s/m", "", "Reynolds number per unit of speed: L/nu.")
FADING_DRAG = _rows("FADING_DRAG", "N s/m, N m s", "B", "Diagonal of the linear drag that fades with speed.", 6)
FADING_RATE = _rows("FADING_RATE", "s/m", "", "Rate k of the factor exp(-k U) by which linear drag fades with speed.")
WING_AREA = _rows("WING_AREA", "N s2/m2", "", "Coefficient 1/2 rho S of the hull lift.")
WING_SLOPE = _rows("WING_SLOPE", "", "", "Lift slope CL_a, per rad.")
WING_DRAG = _rows("WING_DRAG", "", "", "Drag coefficient CD_0 at zero lift.")
WING_INDUCED = _rows("WING_INDUCED", "", "", "Induced drag per CL^2: 1/(pi e A).")
OMITTED_MUNK = _rows(
    "OMITTED_MUNK", "", "", "1 for each omitted element of C_A, in the order 15 16 26 35 51 53 61 62.", 8
)
ADDED_MASS_ROWS = _rows(
    "ADDED_MASS_ROWS",
    "kg, kg m",
    "B",
    "First three rows of M_A, from which the omitted elements of C_A are computed.",
    18,
)
RESTORING = _rows("RESTORING", "N/m, N, N m/rad", "B", "Columns z, phi and theta of the linear restoring matrix.", 18)
RESTORING_DEPTH = _rows("RESTORING_DEPTH", "m", "W", "Depth of the origin at equilibrium.")
MEMORY_DENOMINATOR = _rows(
    "MEMORY_DENOMINATOR",
    "",
    "",
    "Coefficients a of all fluid memory systems, one system after the other.",
    MEMORY_STATES,
)
MEMORY_NUMERATOR = _rows("MEMORY_NUMERATOR", "", "", "Coefficients c of all fluid memory systems.", MEMORY_STATES)
OSCILLATOR_SQUARE = _rows(
    "OSCILLATOR_SQUARE", "1/s2", "", "Squares of the radiation oscillators' frequencies.", OSCILLATORS
)
OSCILLATOR_DAMPING = _rows(
    "OSCILLATOR_DAMPING", "1/s", "", "Damping matrix of the radiation oscillators.", OSCILLATORS * OSCILLATORS
)
OSCILLATOR_COUPLING = _rows(
    "OSCILLATOR_COUPLING",
    "",
    "B",
    "Factors that couple each oscillator to the six degrees of freedom.",
    OSCILLATORS * 6,
)
BALLAST_PLACE = _rows("BALLAST_PLACE", "m", "B", "Positions of the ballast tanks.", BALLASTS * 3)
GRAVITY = _rows("GRAVITY", "m/s2", "", "Gravitational acceleration.")
INVERSE_GRAVITY = _rows("INVERSE_GRAVITY", "s2/m", "", "Inverse of the gravitational acceleration; 0 without gravity.")
DERIVATIVE_COEFFICIENT = _rows(
    "DERIVATIVE_COEFFICIENT", "", "B", "Coefficients of the named derivatives, in SI units.", MAX_DERIVATIVES
)
HEAVE_ADDED_MASS = _rows(
    "HEAVE_ADDED_MASS",
    "kg, kg m",
    "B",
    "Heave column of M_A for hulls on the surface; for models without Coriolis forces, the heave column of M_RB is included.",
    6,
)
FREE_DOFS = _rows("FREE_DOFS", "", "B", "1 for each free degree of freedom.", 6)
TOTAL_INERTIA = _rows(
    "TOTAL_INERTIA",
    _INERTIA,
    "B",
    "M_RB + M_A as configured, for the reported forces; MASS_INVERSE is its inverse.",
    36,
)
ADDED_MASS = _rows("ADDED_MASS", _INERTIA, "B", "M_A as configured, for bodies that leave the water.", 36)
ADDED_MOMENTUM = _rows("ADDED_MOMENTUM", _INERTIA, "B", "Added-mass part of MASS.", 36)
OTHER_COEFFICIENT = _rows(
    "OTHER_COEFFICIENT", "", "", "Coefficients of actuators whose types are registered.", BALLASTS * OTHER_COEFFICIENTS
)
EXTENSION_COEFFICIENT = _rows(
    "EXTENSION_COEFFICIENT",
    "",
    "",
    "Coefficients of registered terms, one term after the other.",
    MAX_EXTENSION_COEFFICIENTS,
)

AIR_AREA = _rows("AIR_AREA", "N s2/m2", "", "Wing area S of an aircraft, stored as 1/2 rho S with the density of air.")
AIR_SPAN = _rows("AIR_SPAN", "m", "", "Wing span b.")
AIR_CHORD = _rows("AIR_CHORD", "m", "", "Mean chord c of the wing.")
AIR_DRAG = _rows("AIR_DRAG", "", "", "Drag coefficient of an aircraft at zero lift.")
AIR_INDUCED = _rows("AIR_INDUCED", "", "", "Induced drag of an aircraft per CL^2: S/(pi e b^2).")
AIR_STALL = _rows("AIR_STALL", "rad", "", "Stall angle of the wing.")
AIR_SHARPNESS = _rows("AIR_SHARPNESS", "1/rad", "", "Sharpness M of the transition to the stalled wing.")
AIR_LIFT = _rows(
    "AIR_LIFT", "", "", "Lift coefficient at zero angle of attack; its slopes with respect to alpha and q c/(2 V).", 3
)
AIR_PITCH = _rows(
    "AIR_PITCH",
    "",
    "",
    "Pitching-moment coefficient at zero angle of attack; its slopes with respect to alpha and q c/(2 V).",
    3,
)
AIR_SIDE = _rows(
    "AIR_SIDE",
    "",
    "",
    "Side-force coefficient at zero sideslip; its slopes with respect to beta, p b/(2 V) and r b/(2 V).",
    4,
)
AIR_ROLL = _rows(
    "AIR_ROLL",
    "",
    "",
    "Rolling-moment coefficient at zero sideslip; its slopes with respect to beta, p b/(2 V) and r b/(2 V).",
    4,
)
AIR_YAW = _rows(
    "AIR_YAW",
    "",
    "",
    "Yawing-moment coefficient at zero sideslip; its slopes with respect to beta, p b/(2 V) and r b/(2 V).",
    4,
)
AIR_CONTROL = _rows(
    "AIR_CONTROL",
    "1/rad",
    "",
    "Slopes of the coefficients of lift, drag, side force, and rolling, pitching and yawing moment with respect to "
    "the angle of each control surface.",
    FINS * 6,
)
AIR_PROPELLER = _rows("AIR_PROPELLER", "N s2", "", "rho D^4 of an aircraft's propellers, with the density of air.")
AIR_DIAMETER = _rows("AIR_DIAMETER", "m", "", "Diameter D of an aircraft's propellers.")
AIR_KT = _rows("AIR_KT", "", "", "Coefficients of KT = k0 + k1 J + k2 J^2 of an aircraft's propellers.", 3)
AIR_KQ = _rows(
    "AIR_KQ",
    "m",
    "",
    "Coefficients of the torque term D KQ; the torque acts on the airframe against the rotation of the propeller.",
    3,
)
AIR_DITCHING = _rows("AIR_DITCHING", "1/m", "", "Inverse of the distance within which the water stops an aircraft.")
AIR_STEP = _rows("AIR_STEP", "s", "", "Time step, which limits the deceleration of an aircraft in the water.")

ROWS = TABLE.size
