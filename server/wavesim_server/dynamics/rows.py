"""Row layout of the kernel's arrays.

A *block* holds eight bodies of one model side by side: row ``r`` of lane ``l`` is element ``8 r + l`` of a flat float64
array. Each statement of the kernel is a load at a literal offset, and the compiler works on all lanes at once. One
*work* array, of the same shape, stores intermediate values of a step for all blocks. The *parameters* are the
coefficients of a model, one number each. All blocks of the model use the same parameters, which therefore remain in the
cache.
"""

from __future__ import annotations

from wavesim_sdk import actuators
from wavesim_sdk.actuators import FIRST_SLOT, ActuatorKind

LANES = 8


class _RowAllocator:
    """Allocator of consecutive rows."""

    def __init__(self) -> None:
        self.next = 0

    def allocate(self, count: int = 1) -> int:
        first = self.next
        self.next += count
        return first


# ------------------------------------------------------------------ actuator slots

THRUSTERS, FINS, SWIVELS, BALLASTS = (
    actuators.MAX_THRUSTERS,
    actuators.MAX_FINS,
    actuators.MAX_SWIVELS,
    actuators.MAX_BALLASTS,
)
SLOT_FIN = FIRST_SLOT[ActuatorKind.FIN]
SLOT_ANGLE = FIRST_SLOT[ActuatorKind.ANGLE]  # angle of the first thrusters (azimuth, nozzle)
SLOT_BUCKET = FIRST_SLOT[ActuatorKind.DEFLECTOR]  # their astern deflector, -1..1
SLOT_BALLAST = FIRST_SLOT[ActuatorKind.BALLAST]  # ballast tanks, kg; actuators of registered types follow
SLOTS = actuators.MAX_ACTUATORS

# ------------------------------------------------------------------ block

_block_rows = _RowAllocator()
PX, PY, PZ, QW, QX, QY, QZ = (_block_rows.allocate() for _ in range(7))  # position W, attitude q_WB
NU = _block_rows.allocate(6)  # u v w, p q r: velocity and angular velocity, B
RIGID_ROWS = _block_rows.next
MEMORIES, MEMORY_STATES = 24, 64  # systems of fluid memory, and the sum of their states
OSCILLATORS = 16  # oscillators of radiated waves; each uses two of these states
MEMORY_STATE = _block_rows.allocate(
    MEMORY_STATES
)  # fluid memory, system by system; then displacements and rates of the oscillators
STATE_ROWS = _block_rows.next
ACTUATOR_STATE = _block_rows.allocate(SLOTS)  # current actuator values
ACTUATOR_COMMAND = _block_rows.allocate(SLOTS)  # commanded actuator values
ACTUATOR_EFFECT = _block_rows.allocate(THRUSTERS + FINS)  # remaining share of the force (faults)
V_WF_W = _block_rows.allocate(3)  # water velocity, W; includes the orbital velocity of waves
A_WF_W = _block_rows.allocate(3)  # acceleration of the water, W
WATER_LEVEL = _block_rows.allocate()  # water plane over the body: z = LEVEL + SLOPE . (p - body)
WATER_SLOPE = _block_rows.allocate(2)
ENVIRONMENT_WRENCH = _block_rows.allocate(6)  # wind and wave forces held for this tick, B
EXTERNAL_WRENCH = _block_rows.allocate(6)  # external force and torque, B
MOORING = _block_rows.allocate(6)  # anchor W (3), length, stiffness, damping
LINE_WRENCH = _block_rows.allocate(6)  # force and torque of the lines, held for this tick, B
HAS_LINES = _block_rows.allocate()  # 1 for bodies that may have lines
CLEARANCE = _block_rows.allocate()  # distance that the body can move before the bed must be checked again
ASLEEP = _block_rows.allocate()  # 1 for bodies at rest that are skipped
PRESENT = _block_rows.allocate()
BLOCK_ROWS = _block_rows.next
BLOCK = BLOCK_ROWS * LANES

# ------------------------------------------------------------------ parameters

_parameter_rows = _RowAllocator()
MASS = _parameter_rows.allocate(36)  # M_RB + M_A, symmetric part: momentum
MASS_INVERSE = _parameter_rows.allocate(36)  # inverse of M_RB + M_A, of the free degrees of freedom
LINEAR_DRAG = _parameter_rows.allocate(36)  # linear drag
QUADRATIC_DRAG = _parameter_rows.allocate(36)  # quadratic drag
BODY_LIFT = _parameter_rows.allocate(36)  # drag per surge speed
WEIGHT = _parameter_rows.allocate()
WEIGHT_MOMENT = _parameter_rows.allocate(3)  # weight times centre of mass, B
FULL_BUOYANCY = _parameter_rows.allocate()  # buoyancy when submerged, N
FULL_BUOYANCY_CENTRE = _parameter_rows.allocate(3)  # its centre, B
VOLUME = _parameter_rows.allocate()  # of a hull mesh, m3
SHAPE = _parameter_rows.allocate()  # 0 box, 1 cylinder, 2 sphere
HALF = _parameter_rows.allocate(3)  # half length, half width (or radius), half height
BOUNDING_RADIUS = _parameter_rows.allocate()  # radius of the sphere around the body
CONTACT_MARGIN = _parameter_rows.allocate()  # contact: radius by which the core is rounded

THRUSTER_WRENCH = _parameter_rows.allocate(THRUSTERS * 6)  # force and torque of unit thrust
THRUSTER_WRENCH_TURNED = _parameter_rows.allocate(SWIVELS * 6)  # the same, thruster turned 90 degrees to starboard
# a thruster's law: thrust c1 c2 c3 and torque q2 q3, ahead and astern; whether u_a is the total speed; 1 - wake; for a
# KT table: rho D^4, D, minimum J, points per J; maximum thrust
LAW_AHEAD, LAW_ASTERN, LAW_TORQUE_AHEAD, LAW_TORQUE_ASTERN = 0, 3, 6, 8
LAW_WHOLE, LAW_WAKE, LAW_SCALE, LAW_DIAMETER, LAW_LEAST_J, LAW_PER_J, LAW_LIMIT, LAW = range(10, 18)
THRUSTER_LAW = _parameter_rows.allocate(THRUSTERS * LAW)
PROPELLER_TORQUE_AXIS = _parameter_rows.allocate(THRUSTERS * 3)  # torque per propeller torque
ACTUATOR_RATE = _parameter_rows.allocate(SLOTS)  # maximum change in a step
ACTUATOR_IMMEDIATE = _parameter_rows.allocate(SLOTS)  # 1 for actuators without lag and rate limit: they follow at once
GAINS = 5
ACTUATOR_GAIN = _parameter_rows.allocate(GAINS * SLOTS)  # 1 - exp(-c h / T) at the integrator's times c (first: c = 1)

FIN_WRENCH = _parameter_rows.allocate(FINS * 6)  # force and torque of unit normal force
FIN_LIFT = _parameter_rows.allocate(FINS)  # linear law: 1/2 rho A CL_a
FIN_INFLOW = _parameter_rows.allocate(FINS)  # share of its inflow angle that acts on the fin (0 or 1)
FIN_PLACE_Y = _parameter_rows.allocate(FINS)  # position of the fin
FIN_PLACE_Z = _parameter_rows.allocate(FINS)
F_STALL = _parameter_rows.allocate(FINS)  # linear law: angle of stall; 0 = none
F_SLOPE = _parameter_rows.allocate(FINS)  # CL_a
F_PLATE = _parameter_rows.allocate(FINS)  # normal-force coefficient of stalled fins at 90 deg
FIN_SPAN = _parameter_rows.allocate(FINS * 3)  # span axis (coefficients per plane speed)
FIN_PER_ANGLE = _parameter_rows.allocate(FINS * 6)  # force and torque per speed^2 and angle
FIN_PER_SQUARE = _parameter_rows.allocate(FINS * 6)  # per speed^2 and angle^2
FOIL_PLACE, FOIL_CHORD, FOIL_NORMAL, FOIL_AREA, FOIL = 0, 3, 6, 9, 10  # an aerofoil; its area as 1/2 rho A
FIN_FOIL = _parameter_rows.allocate(FINS * FOIL)

CROSS_SWAY, CROSS_YAW, CROSS_HEAVE, CROSS_PITCH, CROSS_HALF, CROSS_CENTRE, CROSS_STILL = (
    _parameter_rows.allocate() for _ in range(7)
)
# cross-flow: coefficients, half length and centre of the hull, minimum sway speed
FRICTION, FRICTION_RESIDUAL, FRICTION_REYNOLDS = (
    _parameter_rows.allocate() for _ in range(3)
)  # ITTC: factor, residual, L/nu
FADING_DRAG, FADING_RATE = _parameter_rows.allocate(6), _parameter_rows.allocate()  # linear drag that fades with speed
WING_AREA, WING_SLOPE, WING_DRAG, WING_INDUCED = (
    _parameter_rows.allocate() for _ in range(4)
)  # 1/2 rho S, CL_a, CD_0, 1/(pi e A)
OMITTED_MUNK = _parameter_rows.allocate(8)  # omitted elements of C_A: 15 16 26 35 51 53 61 62
ADDED_MASS_ROWS = _parameter_rows.allocate(18)  # first three rows of M_A, for the omitted elements
RESTORING = _parameter_rows.allocate(18)  # linear restoring: columns z, phi, theta
RESTORING_DEPTH = _parameter_rows.allocate()  # depth of the origin at equilibrium
MEMORY_DENOMINATOR = _parameter_rows.allocate(MEMORY_STATES)  # memory: a of all systems, one after the other
MEMORY_NUMERATOR = _parameter_rows.allocate(MEMORY_STATES)  # memory: c of all systems
OSCILLATOR_SQUARE = _parameter_rows.allocate(OSCILLATORS)  # radiated waves: squares of the frequencies,
OSCILLATOR_DAMPING = _parameter_rows.allocate(OSCILLATORS * OSCILLATORS)  # damping, row by row,
OSCILLATOR_COUPLING = _parameter_rows.allocate(OSCILLATORS * 6)  # and couplings to the six motions
BALLAST_PLACE = _parameter_rows.allocate(BALLASTS * 3)  # positions of the ballast tanks
GRAVITY = _parameter_rows.allocate()
INVERSE_GRAVITY = _parameter_rows.allocate()  # its inverse; 0 without gravity
MAX_DERIVATIVES = 48
DERIVATIVE_COEFFICIENT = _parameter_rows.allocate(MAX_DERIVATIVES)  # coefficients of named derivatives
HEAVE_ADDED_MASS = _parameter_rows.allocate(
    6
)  # column of M_A (and M_RB, for models without C) for heave, for hulls on the surface
FREE_DOFS = _parameter_rows.allocate(6)  # 1 for the degrees of freedom that move
TOTAL_INERTIA = _parameter_rows.allocate(
    36
)  # M_RB + M_A as given, for the reported forces; MASS_INVERSE is its inverse
ADDED_MASS = _parameter_rows.allocate(36)  # M_A as given, for bodies that leave the water,
ADDED_MOMENTUM = _parameter_rows.allocate(36)  # and its part of MASS
OTHER_COEFFICIENTS = 16
OTHER_COEFFICIENT = _parameter_rows.allocate(
    BALLASTS * OTHER_COEFFICIENTS
)  # coefficients of actuators of registered types
MAX_EXTENSION_COEFFICIENTS = 64
EXTENSION_COEFFICIENT = _parameter_rows.allocate(
    MAX_EXTENSION_COEFFICIENTS
)  # coefficients of registered terms, one term after the other

PARAMS = _parameter_rows.next

# ------------------------------------------------------------------ work

_work_rows = _RowAllocator()
STATE = _work_rows.allocate(STATE_ROWS)  # state in this stage
STAGES = 6
DERIVATIVES = _work_rows.allocate(STAGES * STATE_ROWS)  # derivatives
ROT = _work_rows.allocate(9)  # R_WB
V_WF_B = _work_rows.allocate(3)  # current, B
A_WF_B = _work_rows.allocate(3)  # acceleration of the water, B
G_EFF_B = _work_rows.allocate(
    3
)  # gravity less that acceleration, B, in g: direction of the apparent weight in the moving water
FORCE = _work_rows.allocate(6)  # force and torque
BUOYANCY = _work_rows.allocate()  # buoyancy, N
BUOYANCY_CENTRE = _work_rows.allocate(3)  # its centre, B
STAGE_ACTUATORS = _work_rows.allocate(SLOTS)  # actuators in this stage
DERIVATIVE_BASIS = _work_rows.allocate()  # basis of the named derivatives: 1, nu_r, abs(nu_r), U, U^2, 1/U, fin angles
NU_R = _work_rows.allocate(6)
ABS_NU_R = _work_rows.allocate(6)
SPEED_POWERS = _work_rows.allocate(3)
FIN_ANGLES = _work_rows.allocate(FINS)
BASIS = 16 + FINS
HEAVE_SPEED = (
    _work_rows.allocate()
)  # heave speed for drag and memory: along B, or straight down for hulls on the surface
THRUST = _work_rows.allocate(THRUSTERS)  # thrust of each thruster in this stage
LANE_SCRATCH = _work_rows.allocate(4)  # values that are computed lane by lane
WET_SHARE = _work_rows.allocate()  # remaining share of the water's forces and inertia, see water_exit,
WET_SHARE_RATE = _work_rows.allocate()  # and its rate of growth, 1/s; 0 while it falls
WET_INERTIA = _work_rows.allocate(36)  # inertia of bodies that are partly out of the water,
LOADS = _work_rows.allocate(6)  # loads on them,
ADDED_MOMENTUM_LEFT = _work_rows.allocate(6)  # and momentum that they have left to the water
WORK = _work_rows.next * LANES

# ------------------------------------------------------------------ flags of a model

(
    COUPLES_PLANES,  # couplings between the longitudinal and the lateral plane
    HAS_LIFT,
    HAS_THRUSTER_LAW,  # thrust is not just the lagged command
    HAS_TORQUE,
    HAS_SWIVEL,
    HAS_KT_TABLE,
    HAS_FIN,
    HAS_FIN_COEFFICIENTS,
    HAS_AEROFOIL,
    HAS_DERIVATIVES,
    HAS_CROSS,
    HAS_FRICTION,
    HAS_FADE,
    HAS_WING,
    HAS_MUNK,
    HAS_RESTORING,
    HAS_MEMORY,
    HAS_RADIATION,
    HAS_BALLAST,
    ON_SURFACE,  # a hull with heave, roll and pitch by seakeeping theory
    HAS_OTHER,  # actuators of registered types
    HAS_STALL,  # fins by the linear law, with stall
    FIRST_EXTRA_FLAG,  # of the first registered term; the others follow
) = (1 << k for k in range(23))

#: columns of the integer parameters of a model
# flags, thrusters, fins, named derivatives, memory systems, rows of state, oscillators and the first of their states
MODEL_FLAGS, MODEL_THRUSTERS, MODEL_FINS, MODEL_DERIVATIVES, MODEL_MEMORY, MODEL_STATES = range(6)
MODEL_OSCILLATORS, MODEL_FIRST_OSCILLATOR = 6, 7
MODEL_DERIVATIVE = 8  # axis and four factors of each named derivative
TERM_AXIS, TERM_FACTORS, TERM_INTS = 0, 1, 5
MODEL_MEMORIES = MODEL_DERIVATIVE + TERM_INTS * MAX_DERIVATIVES
MEMORY_SOURCE, MEMORY_FORCE, MEMORY_ORDER, MEMORY_FIRST, MEMORY_INTS = range(
    5
)  # row of work, force, order, first state
MODEL_TANKS = MODEL_MEMORIES + MEMORY_INTS * MEMORIES  # ballast tanks
MODEL_OTHER = MODEL_TANKS + 1  # by slot from SLOT_BALLAST on: number of the registered type, from 1; 0 = none
MODEL_FACES = MODEL_OTHER + BALLASTS  # triangles of a hull mesh; 0 = the primitive is the shape
MODEL_TABLE = MODEL_FACES + 1  # table of each fin and thruster, and tables with the triangles; -1 = none
HULL_TABLES = 4
MODEL_HULL = MODEL_TABLE + FINS + THRUSTERS
MODEL_INTS = MODEL_HULL + HULL_TABLES

#: columns of the head of a block: number of bodies, model, number of bodies with a mooring or lines
BLOCK_BODIES, BLOCK_MODEL, BLOCK_MOORED = range(3)

TABLE_FACES = 320  # triangles in a table, nine numbers each
TABLE_POINTS = 1441  # of a resampled aerofoil (-180..180 deg) or propeller curve
