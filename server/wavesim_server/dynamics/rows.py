"""Rows of a block: eight vehicles side by side in one flat float64 array.

Row ``r`` of lane ``l`` is element ``8 r + l``.  Everything that the kernel touches for a vehicle is in
its block, so that each statement of the kernel is a load at a literal offset and the compiler works
on all lanes at once.
"""

LANES = 8

# state: position W, quaternion, velocity B, angular velocity B
PX, PY, PZ, QW, QX, QY, QZ, U, V, W, P, Q, R = range(13)
STATE_ROWS = 13
X0 = 13  # state at the start of the step
K = 26  # derivative
ACC = 39  # Runge-Kutta sum

CURRENT = 52  # water velocity in W (3)
LEVEL = 55  # depth of the water plane
FB = 56  # buoyancy force now, N
CB = 57  # its centre, B (3)
EXT = 60  # external force and torque, B (6)
TAU = 66  # actuator force and torque, B (6)

# hydrostatics
SHAPE = 72  # 0 box, 1 cylinder, 2 sphere
HALF = 73  # half length, half width (or radius), half height (3)
REACH = 76  # radius of the sphere around the body
FULL_B = 77  # buoyancy when submerged, N
RB = 78  # centre of buoyancy when submerged, B (3)

WEIGHT = 81
MASS = 82
RG = 83  # centre of mass, B (3)
IB = 86  # inertia about the origin, 3x3 by rows (9)

MOOR = 95  # anchor W (3), length, stiffness, damping

MA = 101  # added mass, symmetric part (36)
MINV = 137  # inverse of M_RB + M_A (36)
DL = 173  # linear drag (36)
DQ = 209  # quadratic drag (36)
LIFT = 245  # drag per surge speed (36)

ACTUATORS = 12
THRUSTERS, FINS = 8, 4
A_N = 281  # value in this stage (12)
A_0 = 293  # at the start of the step
A_H = 305  # at half step
A_1 = 317  # at the end
A_CMD = 329
A_DECAY = 341  # exp(-h / 2T)
A_RATE = 353  # greatest change in half a step
T_C = 365  # thruster law: c1 (8), c2 (8), c3 (8)
T_H = 389  # force and torque of unit thrust (8 x 6)
F_K = 437  # fin: 1/2 rho A CL_a (4)
F_H = 441  # force and torque of unit normal force (4 x 6)
F_Y = 465  # y of the fin (4)
F_Z = 469  # z of the fin (4)

F_W = 473  # 1 if the fin feels its inflow angle, 0 if only its own angle counts (4)

CAPSULE_HALF = 477  # contact: half length of the axis
CAPSULE_R = 478  # radius
CLEARANCE = 479  # way to go before the sea bed must be looked at again
PRESENT = 480

ROWS = 481
BLOCK = ROWS * LANES
