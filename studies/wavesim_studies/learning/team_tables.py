"""Layout of the arrays of teams: rows of numbers, constants of the task, and the state of a step."""

from __future__ import annotations

from typing import NamedTuple

from wavesim_sdk.arrays import Floats, Ints, Keys, Mask
from wavesim_server.dynamics.sizes import LANES
from wavesim_studies.learning.kernels import FleetView, Singles

L = LANES
BYTES = 4  #: number of payload bytes in a packet; a member may fill them with any content
COURSE_VALUE, SPEED_VALUE, SEND_VALUE, LEVEL_VALUE, START_VALUE, FREE_VALUE = range(6)
ACTIONS = FREE_VALUE + BYTES  #: number of values in an action
OWN = 11  #: number of values in an observation that describe the member itself
PER_MEMBER = 6 + BYTES  #: number of values in an observation that describe each of the other members
BOUND = 10.0  #: limit of the magnitude of every value in an observation
INTERVALS = 5  #: number of autopilot commands in a step
CONTROL_S = 0.2  #: time in s between two autopilot commands
STEP_S = INTERVALS * CONTROL_S  #: time in s between two actions
FARTHEST_CODE = 32767.0  #: maximum of a coordinate in a packet, in dm
PARTS = 3  #: number of terms in a reward: for the error, the propulsion effort and the packets
#: number of packets that are kept for each sender until they arrive; a member sends at most one packet per step
RING = 16

#: rows of a block of members. The filter estimates the position and the current (north and east of each); its
#: covariance has ten distinct elements
ESTIMATE, COVARIANCE, VELOCITY = 0, 4, 14
HEADING_ERROR, SCALE_ERROR, DEPTH, DEPTH_INTEGRAL, SPEED_INTEGRAL, EFFORT, SENDING_UNTIL, IS_LOST = (
    16 + k for k in range(8)
)
COURSE, SPEED, SENT = (24 + k for k in range(3))
MEMBER = 27
V00, V01, V02, V03, V11, V12, V13, V22, V23, V33 = (COVARIANCE + k for k in range(10))
#: rows of a group of teams: steps and episodes; 1 = the episode has ended
STEP, EPISODE, ENDED = range(3)
TEAM = 3
#: rows of temporary values
DRAW, RATE_NORTH, RATE_EAST, INNOVATION, VARIANCE, SIGMA, SINE, COSINE, ERROR = 0, 6, 7, 8, 9, 10, 11, 12, 13
WORK = 14
#: values in the record of a packet under way
PLACE, PLACE_SIGMA, HAS_GPS, FREE = 0, 3, 4, 5
PACKET = FREE + BYTES


class Autopilot(NamedTuple):
    """Gains of the controllers in :mod:`wavesim_sdk.guidance.control`, and the actuator slots that they command."""

    heading_gain: float
    yaw_gain: float
    rudder_limit: float
    depth_gain: float
    depth_integral: float
    pitch_gain: float
    pitch_rate_gain: float
    pitch_limit: float
    plane_limit: float
    speed_gain: float
    speed_integral: float
    most_thrust: float
    propeller: int
    first_rudder: int
    first_plane: int


class TeamRules(NamedTuple):
    """Constants of the task. Lengths are in m, times in s, angles in rad."""

    members: int
    known: int  # the first members have GPS
    steps: int
    substeps: int  # Runge-Kutta steps between two commands
    mode: int
    far: float
    fastest: float
    lowest_level: float
    highest_level: float
    packet: float  # duration of a packet
    heading_error: float  # standard deviations of errors that are constant in an episode
    scale_error: float
    current: float
    gps: float
    range_error: float
    clock_offset: float
    clock_drift: float


class TeamArrays(NamedTuple):
    """State of all teams: rows of members (blocks, MEMBER L), rows of groups (groups, TEAM L), keys, packets in
    transit, the memory of the media and its content at the start, temporary values (WORK L), and the teams of a group
    (L) that start a new episode.
    """

    members: Floats
    groups: Floats
    keys: Keys
    packets: Floats
    memory: Keys
    start: Keys
    work: Floats
    chosen: Mask


class TeamOutput(NamedTuple):
    """Outputs of a step, with one row for each member of each team. ``last`` is the observation before a reset."""

    observation: Singles
    reward: Floats
    terminated: Mask
    truncated: Mask
    last: Singles
    parts: Floats
    error: Floats
    sigma: Floats
    heard: Ints
    lost: Ints
    present: Mask
    ended: Mask  # for each team


class TeamState(NamedTuple):
    """All arrays and numbers that a step works on."""

    fleet: FleetView
    teams: TeamArrays
    autopilot: Autopilot
    rules: TeamRules
    outputs: TeamOutput
