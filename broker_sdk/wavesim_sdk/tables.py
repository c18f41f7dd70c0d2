"""Every table and record of the system, declared once.

From these declarations come the layout of shared memory, the schemas of the log, the structs of the
mailbox and ``docs/SHARED_MEMORY.md``.  A number is 8 bytes (``i8`` or ``f8``) and a text a multiple
of 8 bytes, so that a record's bytes are the same in C, in NumPy and in CDR, without padding.

Frames: W north-east-down, B forward-starboard-down, F the water at the body.  Quaternions scalar first.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from wavesim_sdk.actuators import MAX_ACTUATORS as MAX_ACTUATORS

LAYOUT_VERSION = 1

NAME_BYTES = 32
MAX_PAYLOAD = 256  #: bytes of an acoustic packet
MAX_SEGMENTS = 64  #: of a line


class RunState(IntEnum):
    """State of the simulation timer."""

    STOPPED = 0
    RUNNING = 1
    PAUSED = 2
    ENDED = 3


class BodyType(IntEnum):
    """The three client types of the paper."""

    SURFACE = 0
    UNDERWATER = 1
    BUOY = 2


class Outcome(IntEnum):
    """What became of a signal at one node. Everything but HEARD is a loss with its reason."""

    HEARD = 0
    BELOW_THRESHOLD = 1
    FADED = 2  #: below the ambient noise before it arrived: the signal died
    OUT_OF_BAND = 3
    TRANSMITTING = 4  #: half duplex: the node was sending
    RECHARGING = 5  #: the node is deaf in its recharge time
    RECEIVER_LEFT = 6
    NOT_SENT = 7  #: the transmitter was still recharging, so the signal never left
    COLLISION = 8  #: another reception overlapped it in time and band and was not weaker by the capture ratio
    BLOCKED = 9  #: an obstacle or a hill of the sea bed stood in the way
    SHADOW = 10  #: no ray of the sound-speed profile leads there
    ECHO = 11  #: a later path of a signal that had been detected: not reported
    DROPPED = 12  #: the instrument lost it by chance (drop_out)
    CORRUPT = 13  #: bit errors in the packet


class SensorFault(IntEnum):
    """What can be wrong with a sensor."""

    NONE = 0
    LOST = 1  #: no valid values
    FROZEN = 2  #: the last value again and again, as if it were new
    BIAS = 3  #: an amount added to every value
    SPIKES = 4  #: with the chance of the amount, a value far off
    NOISY = 5  #: noise multiplied by the amount
    WET = 6  #: leak detectors: the amount has bit k set for a wet compartment k
    UNLOCKED = 7  #: Doppler log: no bottom lock


class SignalKind(IntEnum):
    """What a signal carries."""

    PULSE = 0  #: of a pinger, transponder or responder
    DATA = 1  #: a packet with a payload
    RANGE_REQUEST = 2  #: of a modem; the one addressed answers
    RANGE_REPLY = 3


@dataclass(frozen=True)
class Field:
    """One column: numpy type, shape, unit, and meaning (with its frame).

    A hidden one is kept for its writer's successor; logs and clients do not get it.
    """

    name: str
    type: str
    unit: str
    doc: str
    shape: tuple[int, ...] = ()
    hidden: bool = False


@dataclass(frozen=True)
class Table:
    """A table: its columns and who writes it. ``tail``: what the bytes are that follow a record in the log, where some do."""

    name: str
    doc: str
    writer: str
    fields: tuple[Field, ...]
    tail: str = field(default="", repr=False)  # kernels know the records of tables by what they say of themselves

    @property
    def message(self) -> str:
        """Name of the log's message type, as ROS 2 writes such names."""
        return "wavesim/msg/" + "".join(part.capitalize() for part in self.name.split("_"))

    @functools.cached_property
    def visible(self) -> Table:
        """The table without its hidden columns, which stand last: a row's first bytes are a row of this one."""
        return Table(self.name, self.doc, self.writer, tuple(f for f in self.fields if not f.hidden), self.tail)

    @functools.cached_property
    def dtype(self) -> np.dtype[np.void]:
        return np.dtype([(f.name, f"<{f.type}" if f.type[0] in "if" else f.type, f.shape) for f in self.fields])


def value(name: str, unit: str, doc: str, *shape: int) -> Field:
    """A column of floating-point numbers."""
    return Field(name, "f8", unit, doc, shape)


def integer(name: str, unit: str, doc: str, *shape: int) -> Field:
    """A column of whole numbers."""
    return Field(name, "i8", unit, doc, shape)


def _s(name: str, doc: str, size: int = NAME_BYTES) -> Field:
    return Field(name, f"S{size}", "", doc)


TICK = integer("tick", "", "Tick that the row belongs to.")
TIME = integer("time_ns", "ns", "Simulation time since the start.")

# ------------------------------------------------------------------ area 1: simulation

CLOCK = Table(
    "clock",
    "Elapsed time, state and counters of the simulation.",
    "engine",
    (
        TICK,
        TIME,
        integer("timestamp", "0.1 ms", "Tenths of a millisecond since the start, as in the paper."),
        integer("state", "", "0 stopped, 1 running, 2 paused, 3 ended."),
        value("speed", "", "Wanted simulated seconds per wall second; 0 = as fast as possible."),
        value("realtime_factor", "", "Simulated seconds per wall second of the last second."),
        integer("ticks_late", "", "Ticks in real time that began more than one step late."),
        integer("lateness_ns", "ns", "Lateness of the last tick in real time."),
        integer("lateness_max_ns", "ns", "Greatest lateness since the start."),
        integer("slipped_ns", "ns", "Wall time given up because ticks could not catch up."),
        integer("vehicles", "", "Vehicles present."),
        integer("buoys", "", "Buoys present."),
        integer("signals_live", "", "Signals that can still be heard."),
        integer("signals_sent", "", "Signals sent since the start."),
        integer("receptions", "", "Receptions heard since the start."),
        integer("events_dropped", "", "Records lost because the front did not keep up (real time only)."),
        integer("sensors_late", "", "Times a synchronous emulator missed its time limit."),
        integer("contacts_dropped", "", "Contacts left out because there were too many at once."),
        integer(
            "paths_dropped",
            "",
            "Paths of sound left out: weaker than the `paths` followed to their node, or with more than 31 reversals.",
        ),
    ),
)

WORLD = Table(
    "world",
    "The configurable parameters of the world.",
    "engine",
    (
        integer("step_ns", "ns", "Length of a tick."),
        integer("duration_ns", "ns", "Time at which the run ends; 0 = never."),
        integer("seed", "", "Seed of every random stream."),
        value("sound_speed", "m/s", "Speed of sound."),
        value("absorption", "dB/m", "Constant absorption; NaN when it is computed by frequency."),
        value("spreading", "dB", "Factor of log10 r."),
        value("ambient_noise", "dB re 1 uPa", "Level below which a signal is dead."),
        value("density", "kg/m3", "Density of the water."),
        value("gravity", "m/s2", "Acceleration of gravity."),
        value("origin", "rad", "Latitude and longitude of the origin of W.", 2),
        _s("digest", "SHA-256 of the configuration, in hexadecimal; empty = not to be compared.", 64),
    ),
)

WEATHER = Table(
    "weather",
    "Flow, wind and water level of this tick: what is the same everywhere.",
    "engine",
    (
        value("current_W", "m/s", "Uniform flow: mean, tide and drift, frame W.", 3),
        value("wind_speed", "m/s", "Wind 10 m above the water, with its slow part and gusts."),
        value("wind_direction", "rad", "Direction from which it blows."),
        value("level", "m", "Water level above the mean: the tide."),
        value("wave_height", "m", "Significant wave height."),
        value("wave_peak", "rad/s", "Peak frequency of the waves."),
        value("wave_direction", "rad", "Direction to which they travel."),
    ),
)

CLIENTS = Table(
    "clients",
    "Clients that drive a body, its pilots, with their keep-alive data; the row is that of the body.",
    "front",
    (
        integer("status", "", "0 empty, 1 connected, 2 removed by keep-alive, 3 left."),
        integer("type", "", "0 surface, 1 underwater, 2 buoy."),
        _s("name", "Name of the vehicle."),
        _s("address", "IP address.", 48),
        integer("port", "", "UDP port."),
        integer("lockstep_ns", "ns", "Lockstep period; 0 = free."),
        value("silent", "s", "Wall time since the last datagram."),
        value("rtt_last", "s", "Last keep-alive round trip."),
        value("rtt_mean", "s", "Mean round trip."),
        value("rtt_min", "s", "Least round trip."),
        value("rtt_max", "s", "Greatest round trip."),
        integer("keepalives", "", "Keep-alive messages sent."),
        integer("replies", "", "Replies received."),
        integer("datagrams_in", "", "Datagrams accepted from it."),
        integer("datagrams_out", "", "Datagrams sent to it."),
    ),
)

CREW = Table(
    "crew",
    "Sessions on board of bodies beside the pilots, who stand in `clients`: instruments and listeners, one row each.",
    "front",
    (
        integer("body", "", "Row of the body; -1 = empty row, and all after it."),
        integer("role", "", "1 instrument, 2 listener."),
        integer("ordinal", "", "Its number within the crew of the body."),
        _s("address", "IP address.", 48),
        integer("port", "", "UDP port."),
        value("silent", "s", "Wall time since the last datagram."),
        value("rtt_mean", "s", "Mean keep-alive round trip."),
        integer("datagrams_in", "", "Datagrams accepted from it."),
        integer("datagrams_out", "", "Datagrams sent to it."),
    ),
)
CREW_ROWS = 64  #: more than the bodies; whoever finds no row is in the status only

SIGNALS = Table(
    "signals",
    "Live acoustic signals, for viewers: one sphere each.",
    "engine",
    (
        integer("id", "", "Number of the signal, from 1; 0 = empty row."),
        integer("source", "", "Row of the sender."),
        value("frequency", "Hz", "Carrier."),
        value("source_level", "dB re 1 uPa at 1 m", "Level at the source."),
        value("level", "dB re 1 uPa", "Level at the present radius."),
        value("radius", "m", "Present radius c (t - t0)."),
        integer("emission_ns", "ns", "t0."),
        value("origin_W", "m", "Point of emission, frame W.", 3),
    ),
)

# ------------------------------------------------------------------ area 2: vehicles and buoys

IDENTITY = Table(
    "identity",
    "Who is in each row.",
    "engine",
    (
        integer("present", "", "1 if the row holds a body."),
        integer("type", "", "0 surface, 1 underwater, 2 buoy."),
        _s("name", "Name of the vehicle."),
        _s("model", "Name of its model."),
        integer("generation", "", "Grows each time a body enters the row."),
    ),
)

GEOMETRY = Table(
    "geometry",
    "Geometry and masses.",
    "engine",
    (
        value(
            "size", "m", "Box: length, width, height. Cylinder: length, diameter, diameter. Sphere: 3 x diameter.", 3
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
    "Actuators, in the order of the model: thrusters, fins, angles, deflectors, ballast, other types; zero beyond the last.",
    "engine",
    (
        value("command", "N, 1/s, rad or kg", "Commanded value after saturation and motor law.", MAX_ACTUATORS),
        value("actual", "N, 1/s, rad or kg", "Value after lag and rate limit.", MAX_ACTUATORS),
        value("feedback", "1/s", "Reported shaft speed: moving average, of thrusters that have it.", MAX_ACTUATORS),
    ),
)


INSTRUMENTS = Table(
    "instruments",
    "Every instrument of every body: one row each. Its values stand in the table of its type, at the row `place`.",
    "engine",
    (
        integer("body", "", "Row of the body that carries it; -1 = empty row."),
        integer("number", "", "Its number among the instruments of the body, from 0."),
        _s("type", "Its type: the name of the table with its values."),
        _s("name", "Its name on the body."),
        integer("place", "", "Row of its values in the table of its type."),
        integer("period", "ticks", "It has a value at each multiple of this."),
        integer("generation", "", "Grows each time an instrument enters the place; its values carry the same."),
        integer("fault", "", "0 none, 1 lost, 2 frozen, 3 bias, 4 spikes, 5 noisy, 6 wet, 7 unlocked."),
        integer("fault_first", "", "First number of a value that the fault acts on; 0 = the first after the head."),
        integer("fault_count", "", "How many numbers it acts on."),
        value(
            "fault_amount",
            "",
            "Size of a bias (unit of the numbers), chance of a spike, factor of the noise, bits of wet compartments.",
        ),
    ),
)

_FORCE = "N, N m"
EFFORT = Table(
    "effort",
    "Accelerations and forces of each body at the tick, for rows that somebody asked for; all in B, about its origin: three "
    "forces, three moments. The parts add up to the total, and the mass matrix (with added mass) times the acceleration is "
    "the total, in the degrees of freedom that move.",
    "engine",
    (
        value("acceleration", "m/s2, rad/s2", "Rate of change of v_WB_B and w_WB_B; contact averaged over the tick.", 6),
        value("total", _FORCE, "Sum of all that follows.", 6),
        value("restoring", _FORCE, "Weight, buoyancy, linear restoring, ballast.", 6),
        value(
            "drag", _FORCE, "Of the hull: drag, lift, named derivatives, fluid memory, Coriolis, inertia in a turning current.",
            6,
        ),
        value("actuators", _FORCE, "Thrusters and fins.", 6),
        value("environment", _FORCE, "Wind, and waves by filters or operators.", 6),
        value("external", _FORCE, "The push that was set.", 6),
        value("contact", _FORCE, "Mooring, and contact with bodies, obstacles and bed.", 6),
    ),
)  # fmt: skip

SURROUNDINGS = Table(
    "surroundings",
    "Water and air where each body is, at the tick.",
    "engine",
    (
        value("current_W", "m/s", "Velocity of the water at the body, frame W.", 3),
        value("wind_W", "m/s", "Velocity of the air 10 m above the water, frame W.", 3),
        value("level", "m", "Water level over the body above the mean: tide and waves."),
        value("wave", "m", "The waves' part of it."),
    ),
)

LINES = Table(
    "lines",
    "Lines (tethers, moorings, tow cables), in the order of the configuration. Numbers are zero while a body at an end is not "
    "there, and beyond the last node.",
    "engine",
    (
        integer("present", "", "1 while both its ends are there; 0: no line, or none now."),
        _s("name", "Its name."),
        integer("first_body", "", "Row of the body at its first end; -1 = an anchor."),
        integer("second_body", "", "Row of the body at its second end; -1 = an anchor."),
        integer("nodes", "", "Nodes, the two ends among them: one more than segments."),
        integer("broken", "", "Segment that has broken, from 0; -1 = none."),
        value("tension", "N", "Tension at its two ends.", 2),
        value("greatest", "N", "Greatest tension of its segments."),
        value("on_bed", "m", "Length that lies on the bed."),
        value(
            "nodes_W",
            "m",
            "Places of the nodes from the first end on, frame W: x, y, z of each.",
            3 * (MAX_SEGMENTS + 1),
        ),
    ),
)

# ------------------------------------------------------------------ records (log, mailbox; the newest also in shared memory)

SENT = Table(
    "sent",
    "A signal that a transducer sent. In shared memory: the newest, number k of all at row k mod capacity.",
    "front",
    (
        integer("id", "", "Number of the signal, from 1."),
        integer("source", "", "Row of the sender."),
        integer("query", "", "Number of the signal that this one answers; 0 = none."),
        integer("request", "", "Number of the client's request; 0 = none."),
        integer("outcome", "", "0 sent; 7 not sent: the transmitter was recharging."),
        integer("kind", "", "0 pulse, 1 data, 2 range request, 3 range reply."),
        integer("code", "", "Code; 0 = none."),
        integer("from_address", "", "Modem address of the sender; 0 = none."),
        integer("to_address", "", "Modem address of the destination; 0 = all."),
        integer("emission_ns", "ns", "Exact time of emission."),
        integer("clock_ns", "ns", "The same by the sender's clock."),
        integer("out_of_reach", "", "Nodes that lay beyond its reach at emission."),
        value("frequency", "Hz", "Carrier."),
        value("source_level", "dB re 1 uPa at 1 m", "Level at the source."),
        value("duration", "s", "Length of the signal."),
        value("origin_W", "m", "Position of the transducer at emission, frame W.", 3),
        integer("payload_bytes", "", "Length of the payload."),
        _s("payload", "Payload.", MAX_PAYLOAD),
    ),
)

RECEPTION = Table(
    "reception",
    "What became of a signal at one node on one path: heard, or lost with its reason. In shared memory: as sent.",
    "front",
    (
        integer("id", "", "Number of the signal."),
        integer("source", "", "Row of the sender."),
        integer("receiver", "", "Row of the receiver."),
        integer("query", "", "Number of the signal that this one answers; 0 = none."),
        integer("query_source", "", "Row of the sender of that query; -1 = none."),
        integer("outcome", "", "Outcome: 0 heard, else the reason of the loss."),
        integer("kind", "", "0 pulse, 1 data, 2 range request, 3 range reply."),
        integer("code", "", "Code; 0 = none."),
        integer("from_address", "", "Modem address of the sender; 0 = none."),
        integer("to_address", "", "Modem address of the destination; 0 = all."),
        integer("surface", "", "Bounces off the surface on its path."),
        integer("bottom", "", "Bounces off the bottom on its path."),
        integer("emission_ns", "ns", "Exact time of emission."),
        integer("arrival_ns", "ns", "Exact time of arrival (of death, if it faded)."),
        integer("reported_ns", "ns", "Arrival as the instrument reports it: its clock, noise, resolution, outliers."),
        value("frequency", "Hz", "Carrier as sent."),
        value("doppler", "Hz", "True Doppler shift at the receiver."),
        value("level", "dB re 1 uPa", "Received level."),
        value("noise", "dB re 1 uPa", "Noise in the band of the signal at the receiver."),
        value("duration", "s", "Length of the signal."),
        value("range", "m", "Length of the path."),
        value("distance", "m", "Straight distance between the two transducers, at emission and at arrival."),
        value(
            "measured",
            "m",
            "Two-way range as the asker measures it: half its clock's time, less the turn-around, by the sound speed it assumes; NaN = no answer to it.",
        ),
        value("one_way", "m", "One-way range by the clocks of both and the assumed sound speed."),
        value(
            "azimuth",
            "rad",
            "Direction of arrival in B as a USBL head measures it, from forward to starboard; NaN = none.",
        ),
        value("elevation", "rad", "The same, down from the horizontal of B; NaN = none."),
        value("heard_frequency", "Hz", "Frequency as the instrument reports it."),
        value("heard_level", "dB re 1 uPa", "Level as the instrument reports it."),
        value("position_W", "m", "Position of the receiving transducer at arrival, frame W.", 3),
    ),
)

NOTICE_BYTES = 160
NOTICE = Table(
    "notice",
    "What a person should know: a watchdog acted, a fence was crossed. In shared memory: as sent.",
    "front",
    (
        TIME,
        integer("row", "", "Row of the body."),
        _s("name", "Name of the body."),
        _s("text", "The notice.", NOTICE_BYTES),
    ),
)

ESTIMATE = Table(
    "estimate",
    "What an on-board navigator believes (published by its broker). In shared memory: all zero = nothing yet.",
    "front",
    (
        value("p_WB_W", "m", "Estimated position.", 3),
        value("sigma", "m", "Standard deviation of the estimate (north, east, down).", 3),
        value("dead_reckoning_W", "m", "Position by heading and speed through water alone.", 3),
        value("innovation", "m", "Last range innovation; NaN = none since the last record."),
    ),
)

SIMULATION_TABLES = (CLOCK, WORLD, WEATHER, CLIENTS, CREW, SIGNALS, SENT, RECEPTION, NOTICE)
VEHICLE_TABLES = (IDENTITY, GEOMETRY, STATE, ACTUATION, EFFORT, SURROUNDINGS, INSTRUMENTS, ESTIMATE, LINES)
HISTORY_ROWS = 512  #: newest records of SENT, RECEPTION and NOTICE in shared memory


def layout_hash() -> str:
    """Hash of the columns of all built-in tables; part of every segment's header."""
    from wavesim_sdk.sensors import SENSORS

    tables = (*SIMULATION_TABLES, *VEHICLE_TABLES, *SENSORS.values())
    layout = [
        (t.name, t.writer, [(f.name, f.type, f.unit, f.shape, f.hidden) for f in t.fields]) for t in tables
    ]  # without the texts: a better sentence is no other layout
    return hashlib.sha256(repr((LAYOUT_VERSION, layout)).encode()).hexdigest()[:16]


def ros2_definition(table: Table) -> str:
    """The table as a ROS 2 message definition; its CDR body is the record's bytes."""
    lines = []
    for f in table.fields:
        kind = {"i": "int64", "f": "float64", "S": "uint8"}[f.type[0]]
        count = int(f.type[1:]) if f.type[0] == "S" else int(np.prod(f.shape)) if f.shape else 0
        lines.append(f"# {f.doc}" + (f" [{f.unit}]" if f.unit else ""))
        name = f.name.lower()  # ROS 2 allows nothing else
        lines.append(f"{kind}[{count}] {name}" if count else f"{kind} {name}")
    if table.tail:
        lines += [f"# {table.tail}", "uint8[] data"]
    return "\n".join(lines)


def c_struct(table: Table) -> str:
    """The table as a C struct (8-byte members, no padding, little-endian)."""
    lines = [f"/* {table.doc} */", f"struct wavesim_{table.name} {{"]
    for f in table.fields:
        kind = {"i": "int64_t", "f": "double", "S": "char"}[f.type[0]]
        count = int(f.type[1:]) if f.type[0] == "S" else int(np.prod(f.shape)) if f.shape else 0
        lines.append(
            f"    {kind} {f.name}{f'[{count}]' if count else ''}; /* {f.doc}{f' [{f.unit}]' if f.unit else ''} */"
        )
    return "\n".join([*lines, "};"])


def tables_markdown() -> str:
    """The tables part of docs/SHARED_MEMORY.md."""
    from wavesim_sdk.mailbox_tables import RECORDS
    from wavesim_sdk.sensors import SENSORS

    lines: list[str] = []
    for title, group in (
        ("Area *simulation*", SIMULATION_TABLES),
        ("Area *vehicles*", VEHICLE_TABLES),
        ("Area *vehicles*: types of sensors (those that the configuration gives to somebody)", tuple(SENSORS.values())),
        ("Records of the mailbox", RECORDS),
    ):
        lines += [f"## {title}", ""]
        for t in group:
            lines += [f"### {t.name}", "", f"{t.doc} Written by: {t.writer}. {t.dtype.itemsize} bytes a row.", ""]
            lines += ["| column | type | unit | meaning |", "|---|---|---|---|"]
            for f in t.fields:
                shape = f" x {f.shape[0]}" if f.shape else ""
                lines.append(f"| `{f.name}` | {f.type}{shape} | {f.unit} | {'*Hidden.* ' if f.hidden else ''}{f.doc} |")
            lines.append("")
    return "\n".join(lines)
