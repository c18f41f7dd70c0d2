"""Declarations of every table and record of the system.

These declarations define the layout of shared memory, the schemas of the log, the structs of the mailbox and
``docs/SHARED_MEMORY.md``. A number takes 8 bytes (``i8`` or ``f8``), and a text column takes a multiple of 8 bytes. A
record therefore consists of the same bytes in C, NumPy and CDR, without padding.

The frames are W (north-east-down), B (forward-starboard-down) and F (moves with the water at the body). Quaternions are
scalar-first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from wavesim_sdk.actuators import MAX_ACTUATORS as MAX_ACTUATORS

LAYOUT_VERSION = 1

NAME_BYTES = 32
MAX_PAYLOAD = 256  #: maximum payload of an acoustic packet in bytes
MAX_SIGNAL_S = 60.0  #: maximum duration in s of a signal whose duration the sender specifies
MAX_SEGMENTS = 64  #: maximum number of segments of a mooring or tether line


class RunState(IntEnum):
    """State of the simulation clock."""

    STOPPED = 0
    RUNNING = 1
    PAUSED = 2
    ENDED = 3


class BodyType(IntEnum):
    """Type of a body: surface vessel, underwater vehicle, buoy or aircraft."""

    SURFACE = 0
    UNDERWATER = 1
    BUOY = 2
    AIRCRAFT = 3


class Outcome(IntEnum):
    """Outcome of a signal at one node. Every outcome except HEARD is a reason for loss."""

    HEARD = 0
    BELOW_THRESHOLD = 1
    FADED = 2  #: the level of the signal fell below the ambient noise before it arrived
    OUT_OF_BAND = 3
    TRANSMITTING = 4  #: the node was transmitting (half duplex)
    RECHARGING = 5  #: the node could not receive while it was recharging
    RECEIVER_LEFT = 6
    NOT_SENT = 7  #: the transmitter was still recharging
    #: the reception overlapped another one in time and frequency, and its level did not exceed the other level by the
    #: capture ratio
    COLLISION = 8
    BLOCKED = 9  #: an obstacle or a hill on the sea bed blocked the path
    SHADOW = 10  #: no ray reaches the node through the sound-speed profile
    ECHO = 11  #: a later path of a signal that had already been detected; not reported
    DROPPED = 12  #: the receiver lost the signal at random (`drop_out` key)
    CORRUPT = 13  #: the packet had bit errors
    FOREIGN = 14  #: the packet used another manufacturer's modulation


class SensorFault(IntEnum):
    """Fault of a sensor."""

    NONE = 0
    LOST = 1  #: the sensor produces no valid values
    FROZEN = 2  #: the last value is repeated as if it were new
    BIAS = 3  #: the magnitude of the fault is added to every value
    SPIKES = 4  #: the magnitude of the fault is the probability of a value with a large error
    NOISY = 5  #: the noise is multiplied by the magnitude of the fault
    #: leak detector: the magnitude of the fault is a bit mask of the wet compartments (bit k for compartment k)
    WET = 6
    UNLOCKED = 7  #: the Doppler log has no bottom lock


class SignalKind(IntEnum):
    """Content of an acoustic signal."""

    PULSE = 0  #: pulse from a pinger, transponder or responder
    DATA = 1  #: packet with a payload
    RANGE_REQUEST = 2  #: request from a modem, to which the addressed modem replies
    RANGE_REPLY = 3
    SOUND = 4  #: samples that a program plays; transducers hear them, but cannot decode them


@dataclass(frozen=True)
class Field:
    """Column of a table: its NumPy type, shape, unit and meaning, which includes the reference frame.

    A hidden column is used only by an emulator that replaces another one. Logs and clients do not receive it.
    """

    name: str
    type: str
    unit: str
    doc: str
    shape: tuple[int, ...] = ()
    hidden: bool = False


@dataclass(frozen=True)
class Table:
    """Declaration of a table: its columns, and the process that writes it. ``tail`` describes the bytes that follow a
    record in the log, if there are any.
    """

    name: str
    doc: str
    writer: str
    fields: tuple[Field, ...]
    tail: str = field(default="", repr=False)  # kernels identify records by the repr of their tables

    @property
    def message(self) -> str:
        """Name of the message type in the log, in ROS 2 style."""
        return "wavesim/msg/" + "".join(part.capitalize() for part in self.name.split("_"))

    @functools.cached_property
    def visible(self) -> Table:
        """The table without its hidden columns.

        Hidden columns are at the end, so the first bytes of a row in the full table form a row of this table.
        """
        return Table(self.name, self.doc, self.writer, tuple(f for f in self.fields if not f.hidden), self.tail)

    @functools.cached_property
    def dtype(self) -> np.dtype[np.void]:
        return np.dtype([(f.name, f"<{f.type}" if f.type[0] in "if" else f.type, f.shape) for f in self.fields])

    @property
    def first_columns(self) -> dict[str, int]:
        """Index of the first element of each column if the table is viewed as a matrix of 8-byte numbers, one row per
        table row.
        """
        return {name: offset // 8 for name, (_, offset, *_) in (self.dtype.fields or {}).items()}


def value(name: str, unit: str, doc: str, *shape: int) -> Field:
    """Declare a column of floating-point numbers."""
    return Field(name, "f8", unit, doc, shape)


def integer(name: str, unit: str, doc: str, *shape: int) -> Field:
    """Declare a column of integers."""
    return Field(name, "i8", unit, doc, shape)


def _s(name: str, doc: str, size: int = NAME_BYTES) -> Field:
    return Field(name, f"S{size}", "", doc)


TICK = integer("tick", "", "Tick of the values in this row.")
TIME = integer("time_ns", "ns", "Simulation time since the start.")

# ------------------------------------------------------------------ area 1: simulation

CLOCK = Table(
    "clock",
    "Elapsed time, state and counters of the simulation.",
    "engine",
    (
        TICK,
        TIME,
        integer("timestamp", "0.1 ms", "Elapsed time in units of 0.1 ms."),
        integer("state", "", "State of the clock: 0 stopped, 1 running, 2 paused, 3 ended."),
        value("speed", "", "Requested simulated seconds per second of wall time; 0 = as fast as possible."),
        value("realtime_factor", "", "Simulated seconds per second of wall time, measured over the last second."),
        integer("ticks_late", "", "Number of real-time ticks that started more than one step late."),
        integer("lateness_ns", "ns", "Lateness of the last real-time tick."),
        integer("lateness_max_ns", "ns", "Maximum lateness since the start."),
        integer("slipped_ns", "ns", "Wall time skipped because the ticks could not catch up with real time."),
        integer("vehicles", "", "Number of vehicles present."),
        integer("buoys", "", "Number of buoys present."),
        integer("signals_live", "", "Number of live signals: those that some node can still receive."),
        integer("signals_sent", "", "Number of signals sent since the start."),
        integer("receptions", "", "Number of signals received since the start."),
        integer(
            "events_dropped", "", "Number of records lost because the front end did not keep up (only in real time)."
        ),
        integer("sensors_late", "", "Number of times a synchronous emulator exceeded its time limit."),
        integer("contacts_dropped", "", "Number of contacts omitted because too many occurred at the same time."),
        integer(
            "paths_dropped",
            "",
            "Number of propagation paths omitted. A path is omitted if the number of stronger paths to its node has reached "
            "`paths` of `<acoustics>`, or if it has more than 31 turning points and bounces.",
        ),
    ),
)

WORLD = Table(
    "world",
    "Configured parameters of the world.",
    "engine",
    (
        integer("step_ns", "ns", "Length of a tick."),
        integer("duration_ns", "ns", "Simulation time at which the run ends; 0 = never."),
        integer("seed", "", "Seed of all random streams."),
        value("sound_speed", "m/s", "Speed of sound."),
        value("absorption", "dB/m", "Constant absorption coefficient; NaN if it is a function of frequency."),
        value("spreading", "dB", "Coefficient of log10(r) in the spreading loss."),
        value(
            "ambient_noise",
            "dB re 1 uPa",
            "Ambient noise level. A signal is no longer received beyond the range at which its level falls below "
            "the noise.",
        ),
        value("density", "kg/m3", "Density of the water."),
        value("gravity", "m/s2", "Acceleration of gravity."),
        value("origin", "rad", "Latitude and longitude of the origin of W.", 2),
        _s("digest", "SHA-256 of the configuration, in hexadecimal; empty = do not compare it.", 64),
    ),
)

WEATHER = Table(
    "weather",
    "Spatially uniform components of the current, wind and water level at this tick.",
    "engine",
    (
        value("current_W", "m/s", "Uniform current: mean, tide and drift, frame W.", 3),
        value("wind_speed", "m/s", "Wind speed 10 m above the water, including slow variation and gusts."),
        value("wind_direction", "rad", "Direction from which the wind blows."),
        value("level", "m", "Water level above the mean, due to the tide."),
        value("wave_height", "m", "Significant wave height."),
        value("wave_peak", "rad/s", "Peak frequency of the waves."),
        value("wave_direction", "rad", "Direction towards which the waves travel."),
    ),
)

_DEVICE = (
    _s("device", "Name of the device that the session serves; empty = none."),
    _s("device_fault", "Kind of the fault injected into the device; empty = none."),
)

CLIENTS = Table(
    "clients",
    "Pilots (clients that drive a body), with keep-alive data. Each pilot is in the row of its body.",
    "front",
    (
        integer("status", "", "Status: 0 empty row, 1 connected, 2 removed by keep-alive, 3 left."),
        integer("type", "", "Type of the body: 0 surface, 1 underwater, 2 buoy, 3 aircraft."),
        _s("name", "Name of the vehicle."),
        _s("address", "IP address of the client.", 48),
        integer("port", "", "UDP port of the client."),
        integer("lockstep_ns", "ns", "Lockstep period; 0 = not in lockstep."),
        value("silent", "s", "Wall time since the last datagram."),
        value("rtt_last", "s", "Round-trip time of the last keep-alive message."),
        value("rtt_mean", "s", "Mean round-trip time."),
        value("rtt_min", "s", "Minimum round-trip time."),
        value("rtt_max", "s", "Maximum round-trip time."),
        integer("keepalives", "", "Keep-alive messages sent."),
        integer("replies", "", "Replies received."),
        integer("datagrams_in", "", "Datagrams accepted from the client."),
        integer("datagrams_out", "", "Datagrams sent to the client."),
        *_DEVICE,
    ),
)

CREW = Table(
    "crew",
    "Sessions of instruments and of listeners, one row per session. Pilots are in the `clients` table.",
    "front",
    (
        integer("body", "", "Row of the body; -1 = this row and all following rows are empty."),
        integer("role", "", "Role of the session: 1 instrument, 2 listener."),
        integer("ordinal", "", "Session number within the crew of the body."),
        _s("address", "IP address of the session.", 48),
        integer("port", "", "UDP port of the session."),
        value("silent", "s", "Wall time since the last datagram."),
        value("rtt_mean", "s", "Mean round-trip time of keep-alive messages."),
        integer("datagrams_in", "", "Datagrams accepted from the session."),
        integer("datagrams_out", "", "Datagrams sent to the session."),
        *_DEVICE,
    ),
)
#: additional rows in the `crew` table, beyond one row per body; sessions for which no row is left appear only in the
#: status
CREW_ROWS = 64

SIGNALS = Table(
    "signals",
    "Live acoustic signals. Viewers draw each of them as an expanding sphere.",
    "engine",
    (
        integer("id", "", "Number of the signal, from 1; 0 = empty row."),
        integer("source", "", "Row of the sender."),
        value("frequency", "Hz", "Carrier frequency."),
        value("source_level", "dB re 1 uPa at 1 m", "Source level of the signal."),
        value("level", "dB re 1 uPa", "Level at the current radius."),
        value("radius", "m", "Current radius of the sphere, c (t - t0)."),
        integer("emission_ns", "ns", "Time of emission, t0."),
        value("origin_W", "m", "Point of emission, in frame W.", 3),
    ),
)

# ------------------------------------------------------------------ area 2: vehicles and buoys

IDENTITY = Table(
    "identity",
    "Identity of the body in each row.",
    "engine",
    (
        integer("present", "", "1 = a body occupies the row; 0 = the row is empty."),
        integer("type", "", "Type of the body: 0 surface, 1 underwater, 2 buoy, 3 aircraft."),
        _s("name", "Name of the vehicle."),
        _s("model", "Name of the vehicle's model."),
        integer("generation", "", "Incremented each time a body enters the row."),
    ),
)

GEOMETRY = Table(
    "geometry",
    "Geometry and masses of each body.",
    "engine",
    (
        value(
            "size",
            "m",
            "Size of the shape. Box: length, width, height. Cylinder: length, diameter, diameter. Sphere: the diameter in each element.",
            3,
        ),
        value("mass", "kg", "Mass."),
        value("transducer_B", "m", "Position of the transducer, frame B; NaN = none.", 3),
    ),
)

STATE = Table(
    "state",
    "Motion of each body at the tick.",
    "engine",
    (
        value("p_WB_W", "m", "Position of the body origin in W.", 3),
        value("q_WB", "", "Attitude quaternion, scalar first.", 4),
        value("v_WB_B", "m/s", "Velocity over ground, in B.", 3),
        value("w_WB_B", "rad/s", "Angular velocity, in B.", 3),
        value("v_FB_B", "m/s", "Velocity through the water, in B.", 3),
    ),
)

ACTUATION = Table(
    "actuation",
    "Actuators in the order of the model: thrusters, fins, angles, deflectors, ballast, other types. Values beyond "
    "the last actuator are 0.",
    "engine",
    (
        value("command", "N, 1/s, rad or kg", "Commanded value, after saturation and motor law.", MAX_ACTUATORS),
        value("actual", "N, 1/s, rad or kg", "Actual value, after lag and rate limit.", MAX_ACTUATORS),
        value("feedback", "1/s", "Shaft speed (moving average) of each thruster that reports it.", MAX_ACTUATORS),
    ),
)

ACTUATOR_FAULT = Table(
    "actuator_fault",
    "Newest fault of each actuator, in the order of the model. Written when a fault changes.",
    "engine",
    (
        integer("kind", "", "Fault: 0 none, 1 stuck, 2 frozen, 3 lost, 4 reduced, 5 reversed.", MAX_ACTUATORS),
        value("until", "s", "Time at which a frozen actuator recovers; infinite for other faults.", MAX_ACTUATORS),
    ),
)

INSTRUMENTS = Table(
    "instruments",
    "Instruments of all bodies, one row each. The values of an instrument are in row `place` of the table for its type.",
    "engine",
    (
        integer("body", "", "Row of the body that carries the instrument; -1 = empty row."),
        integer("number", "", "Index of the instrument among those of its body, from 0."),
        _s("type", "Type of the instrument: the name of the table that contains its values."),
        _s("name", "Name of the instrument on the body."),
        integer("place", "", "Row of the instrument's values in the table of its type."),
        integer("period", "ticks", "Period in ticks. The instrument produces a value at each multiple of the period."),
        integer(
            "generation",
            "",
            "Incremented each time an instrument is assigned to `place`. The instrument's values carry the same number.",
        ),
        integer("fault", "", "Fault: 0 none, 1 lost, 2 frozen, 3 bias, 4 spikes, 5 noisy, 6 wet, 7 unlocked."),
        integer(
            "fault_first",
            "",
            "Index of the first component that the fault affects; 0 = the first one after the common columns.",
        ),
        integer("fault_count", "", "Number of components that the fault affects."),
        value(
            "fault_amount",
            "",
            "Size of the bias (in the unit of the components), spike probability, noise factor, or bit mask "
            "of wet compartments.",
        ),
    ),
)

_FORCE = "N, N m"
EFFORT = Table(
    "effort",
    "Acceleration of each body at the tick, and the three forces and three moments on the body, in B about its origin. "
    "Only requested rows are filled. The forces and moments from all causes add up to the total. In the body's free "
    "degrees of freedom, the mass matrix (with added mass) times the acceleration equals the total.",
    "engine",
    (
        value(
            "acceleration",
            "m/s2, rad/s2",
            "Rates of change of v_WB_B and w_WB_B. The contribution from contacts is averaged over the tick.",
            6,
        ),
        value("total", _FORCE, "Total force and moment: the sum of the columns that follow.", 6),
        value("restoring", _FORCE, "Weight, buoyancy, linear restoring, ballast.", 6),
        value(
            "drag",
            _FORCE,
            "Hull forces: drag, lift, named derivatives, fluid memory, Coriolis force, and the inertial force of a "
            "current that accelerates or turns relative to B.",
            6,
        ),
        value("actuators", _FORCE, "Thrusters and fins.", 6),
        value(
            "environment",
            _FORCE,
            "Wind forces, and wave forces computed with filters or response amplitude operators.",
            6,
        ),
        value("external", _FORCE, "External force set by a command.", 6),
        value("contact", _FORCE, "Forces from mooring lines, and from contact with bodies, obstacles and the bed.", 6),
    ),
)

SURROUNDINGS = Table(
    "surroundings",
    "Water and air conditions at the position of each body at this tick.",
    "engine",
    (
        value("current_W", "m/s", "Velocity of the water at the body, in frame W.", 3),
        value("wind_W", "m/s", "Wind velocity 10 m above the water, in frame W.", 3),
        value("level", "m", "Water level above the mean at the body: tide and waves."),
        value("wave", "m", "Contribution of the waves to `level`."),
    ),
)

LINES = Table(
    "lines",
    "Lines (tethers, moorings, tow cables), in the order of the configuration. All values are zero while a body at "
    "either end is absent. Elements of `nodes_W` beyond the last node are zero.",
    "engine",
    (
        integer("present", "", "1 = both ends are present; 0 = the row is empty, or an end is absent."),
        _s("name", "Name of the line."),
        integer("first_body", "", "Row of the body at the first end; -1 = an anchor."),
        integer("second_body", "", "Row of the body at the second end; -1 = an anchor."),
        integer("nodes", "", "Number of nodes including the two ends: one more than the number of segments."),
        integer("broken", "", "Number of the broken segment, from 0; -1 = none."),
        value("tension", "N", "Tension at the two ends.", 2),
        value("greatest", "N", "Maximum tension in any segment."),
        value("on_bed", "m", "Length of the segment of the line that rests on the bed."),
        value(
            "nodes_W",
            "m",
            "Positions of the nodes in frame W, starting at the first end of the line: x, y, z of each.",
            3 * (MAX_SEGMENTS + 1),
        ),
    ),
)

# ------------------------------------------------------------------ records (log, mailbox; the newest also in shared memory)

SENT = Table(
    "sent",
    "A signal that a transducer sent. Shared memory contains the newest records: record number k is in row k mod "
    "capacity.",
    "front",
    (
        integer("id", "", "Number of the signal, from 1."),
        integer("source", "", "Row of the sender."),
        integer("query", "", "Number of the signal that this signal answers; 0 = none."),
        integer("request", "", "Number of the client's request; 0 = none."),
        integer("outcome", "", "Outcome: 0 = sent, 7 = not sent because the transmitter was recharging."),
        integer("kind", "", "Kind of the signal: 0 pulse, 1 data, 2 range request, 3 range reply, 4 sound."),
        integer("code", "", "Code of the signal; 0 = none."),
        integer("from_address", "", "Modem address of the sender; 0 = none."),
        integer("to_address", "", "Modem address of the destination; 0 = all."),
        integer("emission_ns", "ns", "Exact time of emission."),
        integer("clock_ns", "ns", "Time of emission according to the sender's clock."),
        integer("out_of_reach", "", "Number of nodes that were out of range when the signal was emitted."),
        value("frequency", "Hz", "Carrier frequency."),
        value("source_level", "dB re 1 uPa at 1 m", "Source level of the signal."),
        value("duration", "s", "Duration of the signal."),
        value("origin_W", "m", "Position of the transducer at emission, frame W.", 3),
        integer("payload_bytes", "", "Length of the payload in bytes."),
        _s("payload", "Payload.", MAX_PAYLOAD),
    ),
)

RECEPTION = Table(
    "reception",
    "Outcome of a signal at one node on one propagation path: received, or lost, with the reason. Shared memory holds "
    "the newest records, as in the `sent` table.",
    "front",
    (
        integer("id", "", "Number of the signal."),
        integer("source", "", "Row of the sender."),
        integer("receiver", "", "Row of the receiver."),
        integer("query", "", "Number of the signal that this signal answers; 0 = none."),
        integer("query_source", "", "Row of the node that sent the query; -1 = none."),
        integer("outcome", "", "Outcome: 0 = received; any other value = the reason for the loss (`Outcome`)."),
        integer("kind", "", "Kind of the signal: 0 pulse, 1 data, 2 range request, 3 range reply, 4 sound."),
        integer("code", "", "Code of the signal; 0 = none."),
        integer("from_address", "", "Modem address of the sender; 0 = none."),
        integer("to_address", "", "Modem address of the destination; 0 = all."),
        integer("surface", "", "Number of surface bounces on the path."),
        integer("bottom", "", "Number of bottom bounces on the path."),
        integer("emission_ns", "ns", "Exact time of emission."),
        integer("arrival_ns", "ns", "Exact time of arrival. For a faded signal, the time when it faded."),
        integer(
            "reported_ns",
            "ns",
            "Arrival time as the receiver reports it, including clock error, noise, resolution and outliers.",
        ),
        value("frequency", "Hz", "Carrier frequency as sent."),
        value("doppler", "Hz", "True Doppler shift at the receiver."),
        value("level", "dB re 1 uPa", "Received level."),
        value("noise", "dB re 1 uPa", "Noise in the band of the signal at the receiver."),
        value("duration", "s", "Duration of the signal."),
        value("range", "m", "Length of the propagation path."),
        value(
            "distance",
            "m",
            "Straight-line distance from the sending transducer at emission to the receiving transducer at arrival.",
        ),
        value(
            "measured",
            "m",
            "Two-way range that the querying node measures by its clock: half of (round-trip time minus turn-around "
            "time), times the assumed sound speed; NaN = not a reply to this node.",
        ),
        value("one_way", "m", "One-way range from the clocks of both nodes and the assumed sound speed."),
        value(
            "azimuth",
            "rad",
            "Direction of arrival in B as a USBL head measures it, from forward towards starboard; NaN = none.",
        ),
        value(
            "elevation",
            "rad",
            "Elevation of the arrival in B as a USBL head measures it, downwards from the "
            "horizontal plane of B; NaN = none.",
        ),
        value("heard_frequency", "Hz", "Frequency as the receiver reports it."),
        value("heard_level", "dB re 1 uPa", "Level as the receiver reports it."),
        value("position_W", "m", "Position of the receiving transducer at arrival, frame W.", 3),
    ),
)

NOTICE_BYTES = 160
NOTICE = Table(
    "notice",
    "Human-readable notice, for example that a watchdog has acted or a vehicle has crossed a fence. Shared memory holds the "
    "newest records, as in the `sent` table.",
    "front",
    (
        TIME,
        integer("row", "", "Row of the body."),
        _s("name", "Name of the body."),
        _s("text", "Text of the notice.", NOTICE_BYTES),
    ),
)

FENCE_CORNERS = 1024  #: maximum total number of corners of all fences
FENCES = Table(
    "fences",
    "Corners of the current fences: all corners of the first fence, in order around its area, then those of the next "
    "fence. Rows after the last corner have an empty name.",
    "engine",
    (
        _s("name", "Name of the fence."),
        integer("keep", "", "Side on which bodies must stay: 0 = inside, 1 = outside."),
        value("north", "m", "North coordinate of the corner, frame W."),
        value("east", "m", "East coordinate of the corner, frame W."),
    ),
)

SNAPSHOTS = Table(
    "snapshots",
    "Automatic snapshots that the server holds, in ascending order of time. Rows after the last snapshot have the time -1.",
    "engine",
    (integer("time_ns", "ns", "Simulation time of the snapshot."),),
)

TIME_CHANGE = Table(
    "time_change",
    "Newest time change: a reset, or the return to a snapshot. The records that precede it in `sent`, `reception` and "
    "`notice` belong to the discarded part of the run if they are later than `time_ns`.",
    "front",
    (
        integer("count", "", "Number of time changes since the start of the server."),
        integer("time_ns", "ns", "Simulation time after the change."),
        integer("before_ns", "ns", "Simulation time before the change."),
        integer("sent", "", "Number of records ever written to `sent` before the change."),
        integer("reception", "", "Number of records ever written to `reception` before the change."),
        integer("notice", "", "Number of records ever written to `notice` before the change."),
    ),
)

ESTIMATE = Table(
    "estimate",
    "Estimate from an on-board navigator, published by its broker. In shared memory, all zeros = no estimate yet.",
    "front",
    (
        value("p_WB_W", "m", "Estimated position.", 3),
        value("sigma", "m", "Standard deviation of the estimate (north, east, down).", 3),
        value("dead_reckoning_W", "m", "Position by dead reckoning: heading and speed through water only.", 3),
        value("innovation", "m", "Innovation of the last range; NaN = no range since the previous record."),
    ),
)

SIMULATION_TABLES = (
    CLOCK,
    WORLD,
    WEATHER,
    CLIENTS,
    CREW,
    SIGNALS,
    SENT,
    RECEPTION,
    NOTICE,
    FENCES,
    SNAPSHOTS,
    TIME_CHANGE,
)
VEHICLE_TABLES = (
    IDENTITY,
    GEOMETRY,
    STATE,
    ACTUATION,
    ACTUATOR_FAULT,
    EFFORT,
    SURROUNDINGS,
    INSTRUMENTS,
    ESTIMATE,
    LINES,
)
HISTORY_ROWS = 512  #: number of SENT, RECEPTION and NOTICE records kept in shared memory


def ros2_definition(table: Table) -> str:
    """Return the table as a ROS 2 message definition. The CDR body of the message is identical to the bytes of the
    record.
    """
    lines = []
    for f in table.fields:
        kind = {"i": "int64", "f": "float64", "S": "uint8"}[f.type[0]]
        count = int(f.type[1:]) if f.type[0] == "S" else int(np.prod(f.shape)) if f.shape else 0
        lines.append(f"# {f.doc}" + (f" [{f.unit}]" if f.unit else ""))
        name = f.name.lower()  # ROS 2 allows only lower case
        lines.append(f"{kind}[{count}] {name}" if count else f"{kind} {name}")
    if table.tail:
        lines += [f"# {table.tail}", "uint8[] data"]
    return "\n".join(lines)


def c_struct(table: Table) -> str:
    """Return the table as a C struct (8-byte members, no padding, little-endian)."""
    lines = [f"/* {table.doc} */", f"struct wavesim_{table.name} {{"]
    for f in table.fields:
        kind = {"i": "int64_t", "f": "double", "S": "char"}[f.type[0]]
        count = int(f.type[1:]) if f.type[0] == "S" else int(np.prod(f.shape)) if f.shape else 0
        lines.append(
            f"    {kind} {f.name}{f'[{count}]' if count else ''}; /* {f.doc}{f' [{f.unit}]' if f.unit else ''} */"
        )
    return "\n".join([*lines, "};"])
