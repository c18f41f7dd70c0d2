"""Rows of the work array, imported as ``W``. They contain the intermediate values of a step.

One array with the same shape as a block serves all blocks, one after the other.
"""

from __future__ import annotations

from wavesim_server.dynamics.block_rows import STATE_ROWS
from wavesim_server.dynamics.row_tables import RowTable
from wavesim_server.dynamics.sizes import FINS, LANES, SLOTS, STAGES, THRUSTERS

TABLE = RowTable("work", "Intermediate values of a step, for the bodies of a block. Compiled code reads `W.NAME`.")
_rows = TABLE.declare

STATE = _rows("STATE", "", "", "State at this integrator stage, laid out like the first rows of a block.", STATE_ROWS)
DERIVATIVES = _rows(
    "DERIVATIVES", "", "", "Time derivatives of the state, one stage after the other.", STAGES * STATE_ROWS
)
ROT = _rows("ROT", "", "", "Rotation matrix R_WB in row-major order.", 9)
V_WF_B = _rows("V_WF_B", "m/s", "B", "Velocity of the water.", 3)
A_WF_B = _rows("A_WF_B", "m/s2", "B", "Acceleration of the water.", 3)
G_EFF_B = _rows(
    "G_EFF_B",
    "",
    "B",
    "Direction of apparent gravity in waves: the unit vector pointing down minus the acceleration of the water in units of g.",
    3,
)
FORCE = _rows("FORCE", "N, N m", "B", "Sum of the forces and moments.", 6)
BUOYANCY = _rows("BUOYANCY", "N", "", "Buoyancy.")
BUOYANCY_CENTRE = _rows("BUOYANCY_CENTRE", "m", "B", "Centre of buoyancy.", 3)
STAGE_ACTUATORS = _rows(
    "STAGE_ACTUATORS",
    "N, 1/s, rad or kg",
    "",
    "Values of the actuators after their lag, at this integrator stage.",
    SLOTS,
)
# The next five groups are the basis of the named derivatives; a model's terms refer to them by their place in it.
DERIVATIVE_BASIS = _rows(
    "DERIVATIVE_BASIS",
    "",
    "",
    "First element of the basis of the named derivatives; its value is 1. The next four entries of this table hold the other elements.",
)
NU_R = _rows("NU_R", "m/s, rad/s", "B", "Velocity through the water (u v w p q r).", 6)
ABS_NU_R = _rows("ABS_NU_R", "m/s, rad/s", "B", "Absolute values of NU_R, the velocity through the water.", 6)
SPEED_POWERS = _rows("SPEED_POWERS", "m/s, m2/s2, s/m", "", "Speed U through the water, U^2 and 1/U.", 3)
FIN_ANGLES = _rows("FIN_ANGLES", "rad", "", "Angles of the fins.", FINS)
HEAVE_SPEED = _rows(
    "HEAVE_SPEED",
    "m/s",
    "",
    "Heave speed used by drag and fluid memory: along the z axis of B, or vertical for hulls on the surface.",
)
THRUST = _rows("THRUST", "N", "", "Thrust of each thruster at this integrator stage.", THRUSTERS)
LANE_SCRATCH = _rows("LANE_SCRATCH", "", "", "Scratch space for values that are computed lane by lane.", 4)
WET_SHARE = _rows(
    "WET_SHARE",
    "",
    "",
    "Remaining fraction of the water's forces and inertia: 1 in the water, 0 in the air. See `dynamics/water_exit.py`.",
)
WET_SHARE_RATE = _rows("WET_SHARE_RATE", "1/s", "", "Rate of increase of WET_SHARE; 0 while WET_SHARE decreases.")
WET_INERTIA = _rows("WET_INERTIA", "kg, kg m, kg m2", "B", "Inertia of bodies that are partly out of the water.", 36)
LOADS = _rows("LOADS", "N, N m", "B", "Loads on bodies that are partly out of the water.", 6)
ADDED_MOMENTUM_LEFT = _rows(
    "ADDED_MOMENTUM_LEFT", "N s, N m s", "B", "Momentum that bodies left in the water when they emerged.", 6
)
NU_A = _rows("NU_A", "m/s", "B", "Velocity of an aircraft through the air (u v w).", 3)
AIR_SHARE = _rows("AIR_SHARE", "", "", "Fraction of the aerodynamic forces that acts on an aircraft: 1 - WET_SHARE.")
SIZE = TABLE.size * LANES  #: number of float64 elements in the work array
