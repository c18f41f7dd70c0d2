"""Integers of a model, imported as ``M``: its flags, the number of parts of each kind, and the indices that locate the
data of these parts.
"""

from __future__ import annotations

from wavesim_server.dynamics import sizes
from wavesim_server.dynamics.row_tables import RowTable
from wavesim_server.dynamics.sizes import BALLASTS, FINS, HULL_TABLES, MAX_DERIVATIVES, THRUSTERS

TABLE = RowTable(
    "model_ints", "Integer parameters of a model, shared by all bodies of this model. Compiled code reads `M.NAME`."
)
_columns = TABLE.declare

FLAGS = _columns("FLAGS", "", "", "Sum of the set flags, for example `M.HAS_FIN`.")
THRUSTER_COUNT = _columns("THRUSTER_COUNT", "", "", "Number of thrusters.")
FIN_COUNT = _columns("FIN_COUNT", "", "", "Number of fins.")
DERIVATIVE_COUNT = _columns("DERIVATIVE_COUNT", "", "", "Number of named derivatives.")
MEMORY_COUNT = _columns("MEMORY_COUNT", "", "", "Number of fluid-memory systems.")
STATES = _columns("STATES", "", "", "Number of state rows that the model uses.")
OSCILLATOR_COUNT = _columns("OSCILLATOR_COUNT", "", "", "Number of radiation oscillators.")
FIRST_OSCILLATOR = _columns("FIRST_OSCILLATOR", "", "", "State row of the first radiation oscillator.")
TERM_TABLE = RowTable(
    "named derivative", "Columns of `M.DERIVATIVES` for each named derivative. Compiled code reads `M.NAME`."
)
TERM_AXIS = TERM_TABLE.declare("TERM_AXIS", "", "", "Axis of the force, 0 to 5.")
TERM_FACTORS = TERM_TABLE.declare(
    "TERM_FACTORS", "", "", "Factors of the derivative, as indices into the basis `W.DERIVATIVE_BASIS`.", 4
)
TERM_SIZE = TERM_TABLE.size
DERIVATIVES = _columns(
    "DERIVATIVES", "", "", "Named derivatives; see [named derivative](#named-derivative).", TERM_SIZE * MAX_DERIVATIVES
)
MEMORY_TABLE = RowTable("fluid memory", "Columns of `M.MEMORIES` for each system. Compiled code reads `M.NAME`.")
MEMORY_SOURCE = MEMORY_TABLE.declare("MEMORY_SOURCE", "", "", "Row of `work` that drives the system.")
MEMORY_FORCE = MEMORY_TABLE.declare("MEMORY_FORCE", "", "", "Axis of the force, 0 to 5.")
MEMORY_ORDER = MEMORY_TABLE.declare("MEMORY_ORDER", "", "", "Number of states of the system.")
MEMORY_FIRST = MEMORY_TABLE.declare("MEMORY_FIRST", "", "", "State row that holds the first state of the system.")
MEMORY_SIZE = MEMORY_TABLE.size
MEMORIES = _columns(
    "MEMORIES", "", "", "Fluid-memory systems; see [fluid memory](#fluid-memory).", MEMORY_SIZE * sizes.MEMORIES
)
TANKS = _columns("TANKS", "", "", "Number of ballast tanks.")
OTHER_TYPES = _columns(
    "OTHER_TYPES",
    "",
    "",
    "Registered type, counted from 1, of each actuator in the slots from SLOT_BALLAST onwards; 0 = none.",
    BALLASTS,
)
FACES = _columns("FACES", "", "", "Number of triangles of a hull mesh; 0 = the model has the shape of its primitive.")
ACTUATOR_TABLES = _columns(
    "ACTUATOR_TABLES",
    "",
    "",
    "Index of the aerofoil table of each fin, then of the KT table of each thruster; -1 = no table.",
    FINS + THRUSTERS,
)
HULL = _columns(
    "HULL", "", "", "Indices of the tables with the triangles of the hull mesh; -1 = no table.", HULL_TABLES
)
COLUMNS = TABLE.size

# ------------------------------------------------------------------ flags

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
    HAS_AERODYNAMICS,  # an aircraft
    FIRST_EXTRA_FLAG,  # of the first registered term; the others follow
) = (1 << k for k in range(24))
