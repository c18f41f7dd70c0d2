"""Rows of the kernel's arrays: what lies where.

A *block* holds eight bodies of one kind side by side: row ``r`` of lane ``l`` is element ``8 r + l`` of a
flat float64 array, so each statement of the kernel is a load at a literal offset and the compiler
works on all lanes at once.  The *work* (what a step computes and forgets; there is only one) has the same
shape.  The *parameters* are the coefficients of a kind, one number each: they serve all its blocks and stay in the
cache.
"""

from __future__ import annotations

from wavesim_sdk import actuators
from wavesim_sdk.actuators import FIRST_SLOT, ActuatorKind

LANES = 8


class _Rows:
    """Hands out rows one after the other."""

    def __init__(self) -> None:
        self.next = 0

    def take(self, count: int = 1) -> int:
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
SLOT_BALLAST = FIRST_SLOT[ActuatorKind.BALLAST]  # ballast tanks, kg; after them actuators of registered types
SLOTS = actuators.MAX_ACTUATORS

# ------------------------------------------------------------------ block

_b = _Rows()
PX, PY, PZ, QW, QX, QY, QZ = (_b.take() for _ in range(7))  # position W, attitude q_WB
NU = _b.take(6)  # u v w, p q r: velocity and angular velocity, B
RIGID_ROWS = _b.next
MEMORIES, MEMORY_STATES = 24, 64  # systems of fluid memory, and their states in all
OSCILLATORS = 16  # of radiated waves; each has two of these states
MU = _b.take(MEMORY_STATES)  # fluid memory, system by system; after them places and rates of the oscillators
STATE_ROWS = _b.next
A_NOW = _b.take(SLOTS)  # actuators now
A_CMD = _b.take(SLOTS)  # where they are told to go
A_EFFECT = _b.take(THRUSTERS + FINS)  # share of the force that is left (faults)
CURRENT = _b.take(3)  # water velocity, W; orbital velocity of waves included
ACCEL = _b.take(3)  # acceleration of the water, W
LEVEL = _b.take()  # water plane over the body: z = LEVEL + SLOPE . (p - body)
SLOPE = _b.take(2)
ENV = _b.take(6)  # wind and wave forces held for this tick, B
EXT = _b.take(6)  # external force and torque, B
MOOR = _b.take(6)  # anchor W (3), length, stiffness, damping
PULLED = _b.take(6)  # force and torque of the lines, held for this tick, B
LINED = _b.take()  # 1 of bodies that lines are made for
CLEARANCE = _b.take()  # way to go before the sea bed must be looked at again
ASLEEP = _b.take()  # 1 of bodies that lie still and are left where they are
PRESENT = _b.take()
BLOCK_ROWS = _b.next
BLOCK = BLOCK_ROWS * LANES

# ------------------------------------------------------------------ parameters

_p = _Rows()
MASS = _p.take(36)  # M_RB + M_A, symmetric part: momentum
MINV = _p.take(36)  # inverse of M_RB + M_A, of the free degrees of freedom
DL = _p.take(36)  # linear drag
DQ = _p.take(36)  # quadratic drag
LIFT = _p.take(36)  # drag per surge speed
WEIGHT = _p.take()
WG = _p.take(3)  # weight times centre of mass, B
FULL_B = _p.take()  # buoyancy when submerged, N
RB = _p.take(3)  # its centre, B
VOLUME = _p.take()  # of a hull's mesh, m3
SHAPE = _p.take()  # 0 box, 1 cylinder, 2 sphere
HALF = _p.take(3)  # half length, half width (or radius), half height
REACH = _p.take()  # radius of the sphere around the body
MARGIN = _p.take()  # contact: radius by which the core is rounded

T_WRENCH = _p.take(THRUSTERS * 6)  # force and torque of unit thrust
T_WRENCH_TURNED = _p.take(SWIVELS * 6)  # the same, thruster turned by 90 degrees to starboard
# a thruster's law: thrust c1 c2 c3 and torque q2 q3, ahead and astern; whether u_a is the whole speed; 1 - wake; of a KT
# table: rho D^4, D, least J, points per J; greatest thrust
LAW_AHEAD, LAW_ASTERN, LAW_TORQUE_AHEAD, LAW_TORQUE_ASTERN = 0, 3, 6, 8
LAW_WHOLE, LAW_WAKE, LAW_SCALE, LAW_DIAMETER, LAW_LEAST_J, LAW_PER_J, LAW_LIMIT, LAW = range(10, 18)
T_LAW = _p.take(THRUSTERS * LAW)
T_AXIS = _p.take(THRUSTERS * 3)  # torque per propeller torque
A_RATE = _p.take(SLOTS)  # greatest change in a step
A_JUMP = _p.take(SLOTS)  # 1 for actuators without lag and rate limit: they are there at once
GAINS = 5
A_GAIN = _p.take(GAINS * SLOTS)  # 1 - exp(-c h / T) at the integrator's times c (first: c = 1)

F_WRENCH = _p.take(FINS * 6)  # force and torque of unit normal force
F_LIFT = _p.take(FINS)  # linear law: 1/2 rho A CL_a
F_INFLOW = _p.take(FINS)  # share of its inflow angle that the fin feels (0 or 1)
F_PLACE_Y = _p.take(FINS)  # place of the fin
F_PLACE_Z = _p.take(FINS)
F_STALL = _p.take(FINS)  # linear law: angle of stall; 0 = none
F_SLOPE = _p.take(FINS)  # CL_a
F_PLATE = _p.take(FINS)  # normal-force coefficient across the flow, of stalled fins
F_SPAN = _p.take(FINS * 3)  # span axis (coefficients per plane speed)
F_PER_ANGLE = _p.take(FINS * 6)  # force and torque per speed^2 and angle
F_PER_SQUARE = _p.take(FINS * 6)  # per speed^2 and angle^2
FOIL_PLACE, FOIL_CHORD, FOIL_NORMAL, FOIL_AREA, FOIL = 0, 3, 6, 9, 10  # an aerofoil; its area as 1/2 rho A
F_FOIL = _p.take(FINS * FOIL)

CROSS_SWAY, CROSS_YAW, CROSS_HEAVE, CROSS_PITCH, CROSS_HALF, CROSS_CENTRE, CROSS_STILL = (_p.take() for _ in range(7))
#                                       cross-flow: coefficients, half length and centre of the hull, least sway speed
FRICTION, FRICTION_RESIDUAL, FRICTION_REYNOLDS = (_p.take() for _ in range(3))  # ITTC: factor, residual, L/nu
FADE, FADE_RATE = _p.take(6), _p.take()  # linear drag that fades with speed
WING_AREA, WING_SLOPE, WING_DRAG, WING_INDUCED = (_p.take() for _ in range(4))  # 1/2 rho S, CL_a, CD_0, 1/(pi e A)
MUNK = _p.take(8)  # elements of C_A that are left out: 15 16 26 35 51 53 61 62
MA_V = _p.take(18)  # first three rows of M_A, for them
RESTORING = _p.take(18)  # linear restoring: columns z, phi, theta
RESTORING_DEPTH = _p.take()  # depth of the origin at equilibrium
MEM_A = _p.take(MEMORY_STATES)  # memory: a of all systems, one after the other
MEM_C = _p.take(MEMORY_STATES)  # and c
OSC_SQUARE = _p.take(OSCILLATORS)  # radiated waves: squares of the frequencies,
OSC_DAMPING = _p.take(OSCILLATORS * OSCILLATORS)  # damping, row by row,
OSC_COUPLING = _p.take(OSCILLATORS * 6)  # and couplings to the six motions
TANK = _p.take(BALLASTS * 3)  # places of the ballast tanks
GRAVITY = _p.take()
BY_GRAVITY = _p.take()  # its inverse; 0 without gravity
TERMS = 48
TERM = _p.take(TERMS)  # coefficients of named derivatives
LIFTED = _p.take(6)  # column of M_A (and M_RB, of models without C) for heave: of hulls on the surface
FREE = _p.take(6)  # 1 of the degrees of freedom that move
INERTIA = _p.take(36)  # M_RB + M_A as given, for what is told of forces; MINV is its inverse
ADDED = _p.take(36)  # M_A as given, for bodies that leave the water,
ADDED_MOMENTUM = _p.take(36)  # and its part of MASS
OTHER_COEFFICIENTS = 16
OTHER = _p.take(BALLASTS * OTHER_COEFFICIENTS)  # coefficients of actuators of registered types
EXTRAS = 64
EXTRA = _p.take(EXTRAS)  # coefficients of registered terms, one term after the other

PARAMS = _p.next

# ------------------------------------------------------------------ work

_w = _Rows()
STATE = _w.take(STATE_ROWS)  # state in this stage
STAGES = 6
DERIVATIVES = _w.take(STAGES * STATE_ROWS)  # derivatives
ROT = _w.take(9)  # R_WB
WATER = _w.take(3)  # current, B
PULL = _w.take(3)  # acceleration of the water, B
DOWN = _w.take(3)  # gravity less that acceleration, B, in g: whither weight acts for those who move with the water
FORCE = _w.take(6)  # force and torque
BUOYANCY = _w.take()  # buoyancy, N
BUOYANCY_CENTRE = _w.take(3)  # its centre, B
ACTUATORS = _w.take(SLOTS)  # actuators in this stage
ONE = _w.take()  # basis of the named derivatives: 1, nu_r, abs(nu_r), U, U^2, 1/U, fin angles
NUR = _w.take(6)
ABS = _w.take(6)
SPEED = _w.take(3)
DELTA = _w.take(FINS)
BASIS = 16 + FINS
HEAVE = _w.take()  # speed that drag and memory in heave feel: along B, or down, of hulls on the surface
THRUST = _w.take(THRUSTERS)  # of each thruster in this stage
TMP = _w.take(4)  # what is computed lane by lane
WET = _w.take()  # share of the water's forces and inertia that is left, see emerging,
WETTING = _w.take()  # and how fast it grows, 1/s; 0 where it falls
MATRIX = _w.take(36)  # inertia of bodies that are partly out of the water,
LOADS = _w.take(6)  # what acts on them,
MOMENTUM = _w.take(6)  # and momentum that they have left to the water
WORK = _w.next * LANES

# ------------------------------------------------------------------ what a kind of body needs

(
    IS_FULL,  # couplings between the longitudinal and the lateral plane
    HAS_LIFT,
    HAS_LAW,  # thrust is not just the lagged command
    HAS_TORQUE,
    HAS_SWIVEL,
    HAS_KT_TABLE,
    HAS_FIN,
    HAS_FIN_COEFFICIENTS,
    HAS_AEROFOIL,
    HAS_TERMS,
    HAS_CROSS,
    HAS_STRIPS,
    HAS_FRICTION,
    HAS_FADE,
    HAS_WING,
    HAS_MUNK,
    HAS_RESTORING,
    HAS_MEMORY,
    HAS_RADIATION,
    HAS_BALLAST,
    ON_SURFACE,  # a hull whose heave, roll and pitch are those of seakeeping
    HAS_OTHER,  # actuators of registered types
    HAS_STALL,  # fins by the linear law that stall
    FIRST_EXTRA_FLAG,  # of the first registered term; the others follow
) = (1 << k for k in range(24))

#: integers of a kind: flags, thrusters, fins, named derivatives, memory systems, strips of the cross-flow, rows of state,
#: oscillators and the first of their states
KIND_FLAGS, KIND_THRUSTERS, KIND_FINS, KIND_TERMS, KIND_MEMORY, KIND_STRIPS, KIND_STATES = range(7)
KIND_OSCILLATORS, KIND_OSCILLATOR = 7, 8
KIND_TERM = 9  # axis and four factors of each named derivative
TERM_AXIS, TERM_FACTORS, TERM_INTS = 0, 1, 5
KIND_MEMORIES = KIND_TERM + TERM_INTS * TERMS
MEMORY_SOURCE, MEMORY_FORCE, MEMORY_ORDER, MEMORY_FIRST, MEMORY_INTS = range(
    5
)  # row of work, force, order, first state
KIND_TANKS = KIND_MEMORIES + MEMORY_INTS * MEMORIES  # ballast tanks
KIND_OTHER = KIND_TANKS + 1  # by slot from SLOT_BALLAST on: number of the registered type, from 1; 0 = none
KIND_FACES = KIND_OTHER + BALLASTS  # triangles of a hull's mesh; 0 = its shape is the primitive
KIND_TABLE = KIND_FACES + 1  # table of each fin and thruster, and those with the triangles; -1 = none
HULL_TABLES = 4
KIND_HULL = KIND_TABLE + FINS + THRUSTERS
KIND = KIND_HULL + HULL_TABLES

#: (block): bodies present, kind, how many have a mooring or lines
BLOCK_BODIES, BLOCK_KIND, BLOCK_MOORED = range(3)

TABLE_FACES = 320  # triangles in a table, nine numbers each
TABLE_POINTS = 1441  # of a resampled aerofoil (-180..180 deg) or propeller curve
