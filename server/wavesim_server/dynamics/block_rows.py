"""Rows of a block, imported as ``B``: the state, actuators, water and forces of the bodies in the block.

A block contains four bodies of one model side by side: row ``r`` of lane ``l`` is element ``4 r + l`` of a flat float64
array. Kernel statements load rows at literal offsets, and the compiled code processes all lanes simultaneously.
"""

from __future__ import annotations

from wavesim_server.dynamics.row_tables import RowTable
from wavesim_server.dynamics.sizes import FINS, LANES, MEMORY_STATES, SLOTS, THRUSTERS

TABLE = RowTable(
    "block", "State, actuators, water and forces of four bodies with the same model. Compiled code reads `B.NAME`."
)
_rows = TABLE.declare
_ACTUATOR = "N, 1/s, rad or kg"
_WRENCH = "N, N m"

PX = _rows("PX", "m", "W", "North coordinate of the origin.", column="p_WB_W")
PY = _rows("PY", "m", "W", "East coordinate of the origin.", column="p_WB_W")
PZ = _rows("PZ", "m", "W", "Down coordinate (depth) of the origin.", column="p_WB_W")
QW = _rows("QW", "", "", "Scalar part of the attitude q_WB.", column="q_WB")
QX = _rows("QX", "", "", "First component of the vector part of q_WB.", column="q_WB")
QY = _rows("QY", "", "", "Second component of the vector part of q_WB.", column="q_WB")
QZ = _rows("QZ", "", "", "Third component of the vector part of q_WB.", column="q_WB")
NU = _rows("NU", "m/s, rad/s", "B", "Velocity over ground (u v w) and angular velocity (p q r).", 6, column="v_WB_B")
RIGID_ROWS = TABLE.size
MEMORY_STATE = _rows(
    "MEMORY_STATE",
    "",
    "",
    "State of the fluid-memory systems, one system after the other; then the displacements and rates of the radiation "
    "oscillators.",
    MEMORY_STATES,
)
STATE_ROWS = TABLE.size
ACTUATOR_STATE = _rows("ACTUATOR_STATE", _ACTUATOR, "", "Actual value of the actuator in each slot.", SLOTS)
ACTUATOR_COMMAND = _rows("ACTUATOR_COMMAND", _ACTUATOR, "", "Commanded value of the actuator in each slot.", SLOTS)
ACTUATOR_EFFECT = _rows(
    "ACTUATOR_EFFECT",
    "",
    "",
    "Fraction of the nominal force that each thruster still produces despite a fault; the fractions for the fins "
    "follow.",
    THRUSTERS + FINS,
)
V_WF_W = _rows("V_WF_W", "m/s", "W", "Velocity of the water, including the orbital velocity of waves.", 3)
A_WF_W = _rows("A_WF_W", "m/s2", "W", "Acceleration of the water.", 3)
WATER_LEVEL = _rows("WATER_LEVEL", "m", "W", "Plane of the water surface at the body: z = level + slope . (p - body).")
WATER_SLOPE = _rows("WATER_SLOPE", "", "W", "Slopes of the water plane in the north and east directions.", 2)
ENVIRONMENT_WRENCH = _rows("ENVIRONMENT_WRENCH", _WRENCH, "B", "Wind and wave forces, constant during a tick.", 6)
EXTERNAL_WRENCH = _rows("EXTERNAL_WRENCH", _WRENCH, "B", "External force and moment.", 6)
MOORING = _rows("MOORING", "m", "W", "Anchor of the elastic mooring.", 3)
MOORING_LENGTH = _rows("MOORING_LENGTH", "m", "", "Unstretched length of the mooring.")
MOORING_STIFFNESS = _rows("MOORING_STIFFNESS", "N/m", "", "Stiffness of the mooring.")
MOORING_DAMPING = _rows("MOORING_DAMPING", "N s/m", "", "Damping of the mooring.")
LINE_WRENCH = _rows("LINE_WRENCH", _WRENCH, "B", "Force and moment from the lines, constant during a tick.", 6)
HAS_LINES = _rows("HAS_LINES", "", "", "1 = the body may have lines; 0 = it has none.")
CLEARANCE = _rows(
    "CLEARANCE", "m", "", "Distance that the body can move before its contact with the bed must be checked again."
)
ASLEEP = _rows("ASLEEP", "", "", "1 = the body is at rest and is skipped.")
PRESENT = _rows("PRESENT", "", "", "1 = the lane holds a body; 0 = it is empty.")
V_AF_W = _rows("V_AF_W", "m/s", "W", "Air velocity at the body; set only for aircraft.", 3)
#: number of rows, rounded up to an even number so that each block begins on a cache line
ROWS = TABLE.size + TABLE.size % 2
SIZE = ROWS * LANES  #: number of float64 elements in a block

HEAD_TABLE = RowTable("block_heads", "Integers of each block. Compiled code reads the `B.NAME` column.")
HEAD_BODIES = HEAD_TABLE.declare("HEAD_BODIES", "", "", "Number of bodies in the block.")
HEAD_MODEL = HEAD_TABLE.declare("HEAD_MODEL", "", "", "Index of the bodies' model.")
HEAD_MOORED = HEAD_TABLE.declare("HEAD_MOORED", "", "", "Number of bodies with a mooring or lines.")
HEAD_SIZE = HEAD_TABLE.size
