"""Sizes of the arrays of the dynamics: the number of lanes, the actuator slots, and the maximum number of each kind of
part in a model.
"""

from __future__ import annotations

from wavesim_sdk import actuators
from wavesim_sdk.actuators import FIRST_SLOT, ActuatorKind

LANES = 4  #: number of bodies in a block

THRUSTERS, FINS, SWIVELS, BALLASTS = (
    actuators.MAX_THRUSTERS,
    actuators.MAX_FINS,
    actuators.MAX_SWIVELS,
    actuators.MAX_BALLASTS,
)
#: first slot of each kind of actuator; thrusters begin at slot 0
SLOT_FIN = FIRST_SLOT[ActuatorKind.FIN]
SLOT_ANGLE = FIRST_SLOT[ActuatorKind.ANGLE]  # angle of the first thrusters (azimuth, nozzle)
SLOT_BUCKET = FIRST_SLOT[ActuatorKind.DEFLECTOR]  # their astern deflector, -1..1
SLOT_BALLAST = FIRST_SLOT[ActuatorKind.BALLAST]  # ballast tanks, kg; actuators of registered types follow
SLOTS = actuators.MAX_ACTUATORS

MEMORIES, MEMORY_STATES = 24, 64  # systems of fluid memory, and the sum of their states
OSCILLATORS = 16  # oscillators of radiated waves; each uses two of these states
STAGES = 6  # stages of an integrator
GAINS = 5  # times within a step at which an integrator needs the actuators
MAX_DERIVATIVES = 48  # named derivatives
OTHER_COEFFICIENTS = 16  # coefficients of an actuator of a registered type
MAX_EXTENSION_COEFFICIENTS = 64  # coefficients of all registered terms

HULL_TABLES = 4  # tables with the triangles of a hull mesh
TABLE_FACES = 320  # triangles in a table, nine numbers each
TABLE_POINTS = 1441  # of a resampled aerofoil (-180..180 deg) or propeller curve
ARRAY_WORDS = 3  #: number of words for each array in an address table: its address and up to two lengths
