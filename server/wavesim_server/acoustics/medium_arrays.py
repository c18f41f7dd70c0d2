"""The memory of the medium, declared once: the members of each record with their units, and the size of each array.

Allocation, growth and the views for kernels are derived from the declaration, so all members are accessed by name.
Compiled code reads a member of a record at a fixed offset. With compilation off, the same source lines run on NumPy
record arrays. Sent signals and receptions are written in place, as records of the log's tables.

The frames are W (north-east-down) and B (the body). Times are seconds since the start, but integer nanoseconds in the
records of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.tables import MAX_PAYLOAD, RECEPTION, SENT, Field, Outcome, SignalKind, Table, integer, value
from wavesim_server import array_tables
from wavesim_server.acoustics.eigenrays import EIGENRAY, FAN, REVERSALS, fan_size
from wavesim_server.acoustics.moving_surface import SEA_PERIOD, SurfaceMotion
from wavesim_server.acoustics.packet_losses import CURVE_COLUMNS
from wavesim_server.acoustics.rays import RAY
from wavesim_server.acoustics.sound_field import SoundField, time_weight
from wavesim_server.acoustics.surface_scatter import BOUNCE, MAX_BOUNCES, PART, PARTS
from wavesim_server.acoustics.types import Records, SoundSpeedProfile
from wavesim_server.acoustics.waveguides import COLUMNS, LEG_ARRAYS, MAX_LEGS, SHOT
from wavesim_world.ocean.surface import SEA_COLUMNS

MAX_SPEED = 50.0  #: upper bound on the speed of a node in m/s
#: change in an arrival time in s below which the iteration stops; each change is smaller than the previous one by about
#: the ratio of the receiver's speed to the sound speed
SETTLED_S = 1e-9
MAX_HYDROPHONES = 8
DETECTED_HISTORY = 16  #: number of recent signals that a node stores to recognise their echoes
WHEEL_TICKS = 4096  #: number of future ticks that the wheels cover
CHUNK_SIZE = 16  #: number of candidates in a chunk
BINS = 256  #: number of intervals of a tick into which its events are sorted
#: maximum number of eigenrays that are computed for one node; the strongest of these eigenrays are followed
FOUND = 512
#: maximum number of rays that are remembered for a pair; for a pair with more rays, each signal repeats the search
KNOWN_RAYS = 10
CHANNEL_STATES = 1024  #: maximum number of records of channel states that wait to be collected
DEGREES = 181  #: number of loss values in a beam pattern, one for each degree off its axis
PINGER_REQUEST = -1  #: request number of automatic pings
RETIRE_NODE = -1  #: node number of the special candidate that retires a signal

#: type that reads small members as 64-bit integers, so that each function is compiled only once
to_row: Any = np.int64

# kinds of events, in the order in which simultaneous events are processed
NO_EVENT, WAKE, END, TRANSMISSION_END, EMIT, ARRIVAL = range(6)
# return codes of an advance
OK, GROW, FLUSH = range(3)
# propagation models
ISOVELOCITY, GRADIENT, RAYS, VOLUME = range(4)
# level of a reception when further paths of its signal arrive during it
PATH_SUMS = ("first", "incoherent", "coherent")
COHERENT = PATH_SUMS.index("coherent")

# kinds of signals
PULSE, DATA, RANGE_REQUEST, RANGE_REPLY, SOUND = map(int, SignalKind)
UNKNOWN_MODULATION = -1  #: modulation of a sound, which no transducer understands
# outcomes of receptions
HEARD, BELOW_THRESHOLD, FADED, OUT_OF_BAND, TRANSMITTING, RECHARGING, RECEIVER_LEFT, NOT_SENT = map(
    int, list(Outcome)[:8]
)
COLLISION, BLOCKED, SHADOW, ECHO, DROPPED, CORRUPT, FOREIGN = map(int, list(Outcome)[8:])


def _record(name: str, doc: str, *fields: Field) -> Table:
    return Table(name, doc, "medium", fields)


def _small_integer(name: str, size: int, doc: str) -> Field:
    return Field(name, f"i{size}", "", doc)


_KEY = Field("key", "u8", "", "Key of the random number stream.")

NODE = _record(
    "node",
    "A transducer: its electronics, its clock, and its state. The members that each reception needs come first, so that they occupy few cache lines.",
    integer("active", "", "1 = the transducer is in the water."),
    integer("asleep", "", "1 = the transducer does not receive, because no caller has requested its receptions."),
    integer("first_hearing", "", "First reception in progress at the node; -1 = none."),
    value("sending_from", "s", "Start of the last transmission."),
    value("sending_until", "s", "End of the last transmission."),
    value("ready", "s", "Earliest time of the next transmission."),
    value("since", "s", "Time at which the transducer entered the water."),
    value("listen_low", "Hz", "Lowest frequency that the node receives."),
    value("listen_high", "Hz", "Highest frequency that the node receives."),
    value("threshold", "dB re 1 uPa", "Minimum level that the node detects."),
    value("snr", "dB", "Minimum signal-to-noise ratio; NaN = detection by the level only."),
    value("capture", "dB", "Margin by which a reception must exceed overlapping ones to survive."),
    value("fluctuation", "dB", "Standard deviation of the random fluctuation of received levels."),
    value("self_noise", "dB re 1 uPa/sqrt(Hz)", "Noise of the node's own body at rest; 0 = none."),
    integer("beam", "", "Row of the node's beam pattern; -1 = none."),
    integer("head", "", "Row of the node's hydrophone head; -1 = none."),
    integer("deaf_in_recharge", "", "1 = the node cannot receive while recharging."),
    integer("carrier_sense", "", "1 = the node reports when the channel becomes busy or idle."),
    integer("sensed", "", "Number of signals that keep the channel busy at a node with carrier sense."),
    _KEY,
    value("clock_offset", "s", "Offset of the node's clock at the start."),
    value("clock_drift", "", "Drift of the node's clock, seconds per second."),
    value("timing_noise", "s", "Standard deviation of a reported arrival time."),
    value("timing_resolution", "s", "Resolution of a reported arrival time; 0 = exact."),
    value("outlier", "", "Fraction of receptions that the node reports late."),
    value("doppler_noise", "Hz", "Standard deviation of a reported frequency."),
    value("level_noise", "dB", "Standard deviation of a reported level."),
    value("drop_out", "", "Fraction of receptions that are lost at random."),
    value("bit_error", "", "Probability that a bit is wrong."),
    integer("curve", "", "Number of the modem's curve of packet loss, which is its row plus 1; 0 = none."),
    value("curve_snr", "dB", "Signal-to-noise ratio below which the curve detects no packet."),
    value("bit_rate", "1/s", "Bit rate of the node's modem, for its curve."),
    integer("next_detected", "", "Index of the next entry in the node's list of detected signals."),
    value("sound_speed", "m/s", "Sound speed that the node assumes."),
    value("query", "Hz", "Carrier of the queries that the node answers; 0 = none."),
    integer("address", "", "Address of the node's modem; 0 = none."),
    value("pulse", "s", "Duration of the node's pulse."),
    value("band", "Hz", "Bandwidth of the node's pulse."),
    value("turn_around", "s", "Time from a query to the reply, by the node's own clock."),
    value("recharge", "s", "Time after a transmission until the next one is possible."),
    value("reply", "Hz", "Carrier of the reply."),
    value("tolerance", "Hz", "Maximum deviation of a query from its nominal frequency."),
    value("source_level", "dB re 1 uPa at 1 m", "Source level of the node's emissions."),
    integer("code", "", "Code of the node's emissions; 0 = none."),
    integer("query_code", "", "Code of the queries that the node answers; 0 = any."),
    value("outlier_time", "s", "Maximum delay of a late report."),
    value("self_noise_slope", "dB s/m", "Increase of the self-noise with speed."),
    value("modem_frequency", "Hz", "Carrier of the node's modem."),
    value("modem_band", "Hz", "Bandwidth of the node's modem."),
    value("preamble", "s", "Duration of a packet without payload."),
    integer("modulation", "", "Number of the modem's modulation; 0 = none."),
    value("axis_x", "", "Axis of the beam, in B."),
    value("axis_y", "", ""),
    value("axis_z", "", ""),
    value("ping_period", "s", "Period of a pinger; 0 = the node is not a pinger."),
    value("ping_offset", "s", "Time of the first ping, by the pinger's own clock."),
    value("ping_frequency", "Hz", "Carrier of the ping."),
    value("ping_duration", "s", "Duration of the ping."),
    value("ping_band", "Hz", "Bandwidth of the ping."),
    integer("ping_handle", "", "Negative number of the sound that the pinger plays; 0 = a pulse."),
    value("reply_absorption", "dB/m", "Absorption coefficient for automatic replies, in the current weather."),
    value("reply_noise", "dB re 1 uPa", "Noise in the band of automatic replies."),
    value("modem_absorption", "dB/m", "Absorption coefficient for automatic packets."),
    value("modem_noise", "dB re 1 uPa", "Noise in the band of automatic packets."),
    value("ping_absorption", "dB/m", "Absorption coefficient for automatic pings."),
    value("ping_noise", "dB re 1 uPa", "Noise in the band of automatic pings."),
    value("pings", "", "Number of the next ping."),
    integer("entry", "", "Number of transducers that have used this row."),
    integer("emitted", "", "Number of signals that the node has sent."),
    integer("waking", "", "1 = the event that wakes the node has been scheduled."),
    integer("asleep_after", "", "Number of the newest signal when the node fell asleep."),
)

PLACE = _record(
    "place",
    "A transducer or a noise source at the end of a tick. A noise source has no attitude.",
    value("x", "m", "Position, W."),
    value("y", "m", ""),
    value("z", "m", ""),
    value("vx", "m/s", "Velocity, W."),
    value("vy", "m/s", ""),
    value("vz", "m/s", ""),
    value("qw", "", "Attitude, q_WB."),
    value("qx", "", ""),
    value("qy", "", ""),
    value("qz", "", ""),
)

PHONE = _record(
    "phone",
    "A hydrophone of a receiving head.",
    value("x", "m", "Position relative to the transducer, B."),
    value("y", "m", ""),
    value("z", "m", ""),
    value(
        "slowness_x",
        "1/m",
        "Change in the wavefront's slowness per unit of delay at this hydrophone (a row of the pseudo-inverse).",
    ),
    value("slowness_y", "1/m", ""),
    value("slowness_z", "1/m", ""),
)

HEAD = _record(
    "head",
    "A hydrophone head, which measures directions.",
    integer("phones", "", "Number of hydrophones."),
    integer("rank", "", "Rank of the hydrophone positions; 2 = all in one plane."),
    value("sound_speed", "m/s", "Sound speed that the head assumes."),
    value("timing_noise", "s", "Standard deviation of the arrival time at each hydrophone."),
    value("timing_resolution", "s", "Resolution of the arrival times; 0 = exact."),
    value("axis_x", "", "Outward normal of a planar head, in B."),
    value("axis_y", "", ""),
    value("axis_z", "", ""),
)

#: properties that an emission and its signal have in common
_SOUND = (
    value("frequency", "Hz", "Carrier."),
    value("source_level", "dB re 1 uPa at 1 m", "Level at the source."),
    value("duration", "s", "Length."),
    value("band", "Hz", "Bandwidth."),
    value("absorption", "dB/m", "Absorption of the water at the carrier frequency."),
    value("noise", "dB re 1 uPa", "Ambient noise in the signal's band."),
    value("bits", "", "Bits of the payload."),
    value("turn_around", "s", "For a reply: actual turn-around time of the sender."),
    value("query_emission", "s", "For a reply: time at which the query was sent."),
    integer("query", "", "For a reply: signal number of the query; 0 = none."),
    integer("query_source", "", "For a reply: row of the query's sender; -1 = none."),
    integer("kind", "", "Kind of signal, as in the `sent` table."),
    integer("code", "", "0 = none."),
    integer("to_address", "", "0 = all."),
)

EMISSION = _record(
    "emission",
    "A planned emission.",
    *_SOUND,
    integer("request", "", "Number of the client's request; PINGER_REQUEST = automatic ping."),
    integer("payload_bytes", "", "Length of the payload."),
    integer("handle", "", "Key of the stored payload, or negative number of the sound that is sent; 0 = none."),
    integer("entry", "", "Number of transducers that had used the sender's row when the emission was planned."),
    integer("next", "", "Row of the next free record."),
)

SIGNAL = _record(
    "signal",
    "A wavefront in transit.",
    value("emission", "s", "Time at which the signal was sent."),
    value("x", "m", "Position of the emission, W."),
    value("y", "m", ""),
    value("z", "m", ""),
    integer("pending", "", "Number of candidates of the signal that are still pending."),
    integer("id", "", "Number of the signal, from 1; 0 = a free record."),
    value("reach", "m", "Maximum distance at which the signal can be received."),
    *_SOUND,
    value("vx", "m/s", "Velocity of the sender at emission, W."),
    value("vy", "m/s", ""),
    value("vz", "m/s", ""),
    integer("beam", "", "Row of the sender's beam pattern; -1 = none."),
    value("axis_x", "", "Axis of the sender's beam, W."),
    value("axis_y", "", ""),
    value("axis_z", "", ""),
    value("clock", "s", "Time of emission, by the sender's clock."),
    integer("source", "", "Row of the sender."),
    integer("draw", "", "Number of signals that the sender had sent before; selects the random numbers."),
    integer("from_address", "", "0 = none."),
    integer("modulation", "", "Modulation index of a packet; 0 = none."),
    integer("next", "", "Row of the next free record."),
    _KEY,
)

CANDIDATE = _record(
    "candidate",
    "One path of a signal that is on its way to a node. There is one record for each path. Each record is read once, usually from"
    " memory outside the caches. The records are therefore small: four of them fit into a cache line.",
    _small_integer("signal", 4, "Row of the signal."),
    _small_integer("node", 4, "Row of the node; RETIRE_NODE = the end of the signal."),
    _small_integer("next", 4, "Next free record."),
    _small_integer(
        "path", 2, "Index of the path: twice the number of bounces, plus 1 if the first bounce is off the bottom."
    ),
    _small_integer(
        "first", 1, "1 = first candidate of the signal at the node; only the loss of this candidate is recorded."
    ),
    _small_integer(
        "bed",
        1,
        "For a ray that is identified by its launch direction, because it bounces off a bed that is not level or"
        " travels through a sound field: its number of bounces plus 1; 0 = any other path.",
    ),
)

CHUNK = _record(
    "chunk",
    "Candidates of a tick: CHUNK_SIZE adjacent records.",
    integer("next", "", "Next chunk of the same tick, or next free chunk; -1 = none."),
    integer("count", "", "Number of candidates."),
)

_TUBE = (
    value(
        "down_x",
        "m",
        "For a ray in a sound field: its displacement (W) at the receiver per rad of downward tilt at the source.",
    ),
    value("down_y", "m", ""),
    value("down_z", "m", ""),
    value("side_x", "m", "The same displacement per rad of sideways tilt."),
    value("side_y", "m", ""),
    value("side_z", "m", ""),
)

KEPT_RAY = _record(
    "kept ray",
    "Ray of a candidate if there is a sound-speed profile, as computed at the candidate's last check.",
    value("angle", "rad", "Launch angle."),
    value("travel", "s", "Travel time."),
    value("sx", "", "Direction of the ray at the source, in W, if it identifies the ray."),
    value("sy", "", ""),
    *_TUBE,
)

PAIR = _record(
    "pair",
    "A source and a receiver whose rays are remembered as first guesses.",
    integer("key", "", "Number of the pair, from 1; 0 = empty row."),
    value("searched", "s", "Time of the last search for all rays."),
    value("used", "s", "Time of the last use."),
    integer("count", "", "Number of rays."),
    integer("dropped", "", "Number of rays that the search has dropped."),
    value("ax", "m", "Position of the source at the search, W."),
    value("ay", "m", ""),
    value("az", "m", ""),
    value("bx", "m", "Position of the receiver at the search, W."),
    value("by", "m", ""),
    value("bz", "m", ""),
)

KNOWN_RAY = _record(
    "known ray",
    "A ray of a pair, as last aimed.",
    value("angle", "rad", "Launch angle of a ray through layers."),
    value("sx", "", "Direction at the source, in W, of a ray through a sound field."),
    value("sy", "", ""),
    _small_integer("path", 4, "Index of the path, as for a candidate."),
    _small_integer("bed", 4, "Number of bounces of the ray, plus 1."),
    *_TUBE,
)

HEARING = _record(
    "hearing",
    "Data of a reception in progress, in addition to its log record. The members that are compared for each new reception"
    " at the node come first, in one or two cache lines.",
    integer("next", "", "Next reception at the same node, or next free record."),
    integer("previous", "", "Previous reception at the same node; -1 = none."),
    integer("id", "", "Number of the signal."),
    integer("code", "", "Code of the signal."),
    integer("outcome", "", "Outcome so far."),
    integer("sensed", "", "1 = the reception counts in `sensed` of its node."),
    value("level", "dB re 1 uPa", "Level of the first path."),
    value("frequency", "Hz", "Received frequency, with Doppler shift."),
    value("half_band", "Hz", "Half of the bandwidth."),
    value("end", "s", "End of the reception."),
    value("bits", "", "Bits of the payload."),
    value("query_emission", "s", "For a reply: time at which the query was sent."),
    value("turn_around", "s", "For a reply: actual turn-around time of the sender."),
    value("clock", "s", "Time of emission, by the sender's clock."),
    value("arrival", "s", "Start of the reception."),
    value("sum_real", "uPa", "Sum of the pressures (or of their squares) over the paths."),
    value("sum_imaginary", "uPa", ""),
    value("sum_power", "uPa2", "Sum of the powers of the paths, if the modem has a curve of packet loss."),
    value("sum_delay", "uPa2 s", "Sum of the powers times the delays after the first path."),
    value("sum_square", "uPa2 s2", "Sum of the powers times the squares of the delays."),
    integer("draw", "", "Counter of the reception's random numbers."),
    integer("node", "", "Row of the receiving node."),
    _KEY,
)

CHANNEL_STATE = _record(
    "channel_state",
    "A change of the channel between busy and idle at a node with carrier sense.",
    integer("receiver", "", "Row of the node."),
    integer("busy", "", "1 = the channel became busy; 0 = it became idle."),
    integer("time_ns", "ns", "Exact time of the change."),
    integer("clock_ns", "ns", "Time of the change by the node's own clock."),
)

EVENT = _record(
    "event",
    "An event, scheduled to the nanosecond.",
    value("time", "s", "Time of the event."),
    integer("kind", "", "Kind of event: WAKE, END, TRANSMISSION_END, EMIT or ARRIVAL; NO_EVENT = a free record."),
    integer("key", "", "Sort key for events that have the same time and kind."),
    integer("subject", "", "Row of the reception, emission or candidate; TRANSMISSION_END: `entry` of the node."),
    integer("node", "", "Row of the node."),
    integer("next", "", "Row of the next event of the same list, or of the next free record."),
    integer("previous", "", "Row of the previous event of the same tick; -1 = none."),
    integer("slot", "", "Slot of the event in the wheel."),
)

TICK = _record(
    "tick",
    "The current tick and its events; between two ticks, the last tick.",
    integer("is_open", "", "1 = the events of the tick are being processed."),
    integer("number", "", "Number of the tick."),
    value("start", "s", "Start of the tick."),
    value("end", "s", "End of the tick."),
    integer("waiting", "", "Number of events in the bins."),
    integer("bin", "", "First bin that may contain events."),
)

COUNTERS = _record(
    "counters",
    "Number of entries in each array.",
    integer("last_id", "", "Number of the newest signal."),
    integer("signals_sent", "", "Signals sent since the start."),
    integer("heard", "", "Receptions since the start."),
    integer("live", "", "Signals in transit."),
    integer("sent", "", "Number of records of sent signals that have not been collected yet."),
    integer("receptions", "", "Number of records of receptions that have not been collected yet."),
    integer("channel_states", "", "Number of records of channel states that have not been collected yet."),
    integer("free_signal", "", "Row of the first free signal."),
    integer("free_emission", "", "First free row for an emission."),
    integer("free_candidate", "", "Row of the first free candidate."),
    integer("free_chunk", "", "First free chunk of candidates."),
    integer("free_hearing", "", "Row of the first free reception."),
    integer("free_event", "", "Row of the first free event."),
    integer("left_emissions", "", "Number of free emissions."),
    integer("left_candidates", "", "Number of free candidates."),
    integer("left_chunks", "", "Number of free chunks of candidates."),
    integer("left_hearings", "", "Number of free receptions."),
    integer("left_events", "", "Number of free events."),
    integer("nodes", "", "Transducers in the water."),
    integer("paths_dropped", "", "Number of propagation paths dropped since the start."),
)

NOISE_SOURCE = _record(
    "noise_source",
    "The noise that the body in the same row radiates.",
    integer("active", "", "1 = the body radiates noise."),
    integer("entry", "", "Number of noise sources that have used the row."),
    integer("next", "", "Number of the next segment of the noise."),
    integer("shaft", "", "Slot of the thruster with the propeller; -1 = none."),
    integer("blades", "", "Number of blades."),
    value("x", "m", "Position of the source, B."),
    value("y", "m", ""),
    value("z", "m", ""),
    value("level", "dB re 1 uPa/sqrt(Hz) at 1 m", "Spectrum level at 1 kHz, at rest."),
    value("slope", "dB s/m", "Increase in the level with speed."),
    value("blade_level", "dB re 1 uPa at 1 m", "Level of the tone at the blade rate, at rest."),
    value("machine", "Hz", "Fundamental frequency of the machine; 0 = none."),
    value("machine_level", "dB re 1 uPa at 1 m", "Level of the machine's fundamental, at rest."),
    value("rate", "Hz", "Blade rate at the end of the tick."),
    value("last_rate", "Hz", "Blade rate at the start of the newest segment; NaN = there has been no segment."),
    value("cycles", "", "Phase of the blade rate at the start of the next segment, in cycles."),
)

WATER = _record(
    "water",
    "Acoustic properties and bounds of the water.",
    integer("mode", "", "Propagation mode: ISOVELOCITY, GRADIENT, RAYS or VOLUME."),
    value("speed", "m/s", "Sound speed at the surface."),
    value("gradient", "1/s", "Gradient of the sound speed with depth."),
    value("fastest", "m/s", "Maximum sound speed."),
    value("spreading", "dB", "Spreading loss per decade of distance; 0 = computed from ray tubes."),
    value("floor", "dB", "Lowest signal-to-noise ratio at which any receiver detects a signal; at most 0."),
    value("max_range", "m", "Maximum length of a path; infinite = limited only by the level."),
    value("bottom", "m", "Depth of the flat bottom."),
    integer("uneven", "", "1 = bottom echoes use the depth and slope at the point of reflection."),
    integer("order", "", "Maximum number of bounces of a path."),
    integer(
        "paths", "", "Maximum number of paths traced for a signal to each node when there is a sound-speed profile."
    ),
    integer("paths_per_node", "", "Maximum number of candidates of a signal at a node."),
    value("surface_loss", "dB", "Loss of each bounce off the surface."),
    value("density_ratio", "", "Ratio of the density of the bottom to the density of the water."),
    value(
        "speed_ratio",
        "",
        "Ratio of the sound speed in the water to that in the bottom. In a sound field, 1 m/s divided by the speed in the"
        " bottom, because each bounce has its own speed in the water.",
    ),
    value("attenuation", "dB", "Attenuation in the bottom, per wavelength."),
    integer("blocking", "", "1 = obstacles and hills can block sound."),
    integer("faded", "", "1 = signals that are too weak to reach a node are recorded."),
    integer("echoes", "", "1 = a signal can arrive on several paths."),
    integer("summing", "", "Method by which the paths of a signal are summed; see PATH_SUMS."),
    value("roughness", "m", "Standard deviation of the surface elevation."),
    value("bubbles", "dB", "Loss due to bubbles; see ray_tubes.surface_loss."),
    value("step", "s", "Length of a tick."),
    value("field_north", "m", "North position, in frame W, of the first column of the sound field."),
    value("field_east", "m", "East position, in frame W, of the first column of the sound field."),
    value("field_step_north", "m", "North-south spacing of the columns of the sound field."),
    value("field_step_east", "m", "East-west spacing of the columns of the sound field."),
    integer("field_columns_north", "", "Number of columns of the sound field from south to north."),
    integer("field_columns_east", "", "Number of columns of the sound field from west to east."),
    integer("moving", "", "1 = waves and tide affect reflections off the surface."),
    value("crest", "m", "Maximum distance of the moving surface from its mean level."),
)


def _with_handle() -> np.dtype[np.void]:
    """Return the record type of the `sent` table, in which a handle replaces the payload until the record is collected."""
    fields = [(f.name, f"<{f.type}", f.shape) for f in SENT.fields if f.name != "payload"]
    return np.dtype([*fields, ("handle", "<i8"), ("rest", "<i8", (MAX_PAYLOAD // 8 - 1,))])


@dataclass(frozen=True)
class ArraySpec:
    """Declaration of an array of the medium: element type, lengths, fill value, growth and chain of free records.

    Lengths are numbers, or names of arguments of :func:`allocate_medium`. The array grows whenever the array named by
    ``grows_with`` runs out of room. In some arrays, the free records form a chain: a counter ``free_...`` holds the
    first record of the chain and, for most of these arrays, ``left_...`` holds its length.
    """

    dtype: Any
    lengths: tuple[int | str, ...]
    fill: int = 0
    grows_with: str = ""
    free_chain: str = ""


def _fixed_array(of: Any, *lengths: int | str, fill: int = 0) -> Any:
    return ArraySpec(of.dtype if isinstance(of, Table) else np.dtype(of), lengths, fill)


def _growing_array(record: Table, length: str, chain: str = "", grows_with: str = "") -> Any:
    return ArraySpec(record.dtype, (length,), grows_with=grows_with or length, free_chain=chain)


class Medium(NamedTuple):
    """All arrays of the medium, in one tuple that is passed to kernels as a whole."""

    nodes: Records = _fixed_array(NODE, "nodes")
    places: Records = _fixed_array(PLACE, 2, "nodes")  #: motion of each node at the end of even and odd ticks
    detected: Ints = _fixed_array(np.int64, "nodes", DETECTED_HISTORY)  #: signals that nodes have recently detected
    beams: Floats = _fixed_array(
        np.float64, 0, DEGREES
    )  #: loss of each beam pattern in dB, indexed by the angle from its axis in degrees
    curves: Floats = _fixed_array(np.float64, 0, CURVE_COLUMNS)  #: modem curves; see packet_losses.py
    heads: Records = _fixed_array(HEAD, 0)
    phones: Records = _fixed_array(PHONE, 0, MAX_HYDROPHONES)
    signals: Records = _growing_array(SIGNAL, "signals", "signal")
    emissions: Records = _growing_array(EMISSION, "emissions", "emission")
    wheel: Ints = _fixed_array(np.int64, WHEEL_TICKS, fill=-1)  #: first chunk of candidates in each tick
    chunks: Records = _growing_array(CHUNK, "chunks", "chunk")
    #: candidates that are waiting in chunks
    waiting: Records = _growing_array(CANDIDATE, "waiting", grows_with="chunks")
    waiting_rays: Records = _growing_array(KEPT_RAY, "waiting_rays", grows_with="chunks")
    candidates: Records = _growing_array(CANDIDATE, "candidates", "candidate")  #: candidates that are being processed
    #: ray of each candidate in water with a sound-speed profile
    kept_rays: Records = _growing_array(KEPT_RAY, "kept_rays", grows_with="candidates")
    pairs: Records = _fixed_array(PAIR, "pairs")  #: pairs of nodes whose rays are remembered
    known_rays: Records = _fixed_array(KNOWN_RAY, "pairs", KNOWN_RAYS)
    ongoing_receptions: Records = _growing_array(
        RECEPTION, "hearings"
    )  #: receptions in progress, as records of the log
    #: additional data about the receptions in progress
    hearings: Records = _growing_array(HEARING, "hearings", "hearing")
    events: Records = _growing_array(EVENT, "events", "event")
    event_wheel: Ints = _fixed_array(np.int64, WHEEL_TICKS, fill=-1)  #: first event in each future tick
    bins: Ints = _fixed_array(np.int64, BINS, fill=-1)  #: first and last event in each interval of the current tick
    bin_ends: Ints = _fixed_array(np.int64, BINS, fill=-1)
    tick: Records = _fixed_array(TICK, 1)
    counters: Records = _fixed_array(COUNTERS, 1)
    water: Records = _fixed_array(WATER, 1)
    profile_z: Floats = _fixed_array(np.float64, "profile")  #: depths of the profile's knots in m
    profile_c: Floats = _fixed_array(np.float64, "profile")  #: sound speeds at the profile's knots in m/s
    #: sound speeds of the sound field in m/s, and the times of its rows in s; see :class:`SoundField`
    field_c: Floats = _fixed_array(np.float64, "field_times", "field_points")
    field_times: Floats = _fixed_array(np.float64, "field_times")
    fan: Records = _fixed_array(FAN, "fan")
    eigenrays: Records = _fixed_array(EIGENRAY, FOUND)
    ray: Records = _fixed_array(RAY, 1)
    shot: Records = _fixed_array(SHOT, 1)
    legs: Floats = _fixed_array(
        np.float64, LEG_ARRAYS * MAX_LEGS, COLUMNS
    )  #: legs of rays over a bed that is not level
    points: Floats = _fixed_array(np.float64, "points", 3)  #: corners of a path in W in m
    no_points: Floats = _fixed_array(np.float64, 0, 2)
    sea_components: Floats = _fixed_array(np.float64, 0, SEA_COLUMNS)  #: waves of all periods of the sea
    sea_periods: Records = _fixed_array(SEA_PERIOD, 0)
    wave_parts: Floats = _fixed_array(np.float64, 2, 0)  #: sines and cosines of waves
    tide: Floats = _fixed_array(np.float64, 3)  #: amplitude, period and phase of the tide
    bounces: Records = _fixed_array(BOUNCE, MAX_BOUNCES)  #: reflections of a path off the surface
    parts: Records = _fixed_array(PART, PARTS)
    noise_sources: Records = _fixed_array(NOISE_SOURCE, "noise_sources")  #: by row of the body; empty = there are none
    noise_places: Records = _fixed_array(PLACE, 2, "noise_sources")  #: at the end of even and odd ticks
    noise_signals: Records = _fixed_array(
        SIGNAL, "noise_sources"
    )  #: values that all segments of a source have in common
    sent: Records = _fixed_array(_with_handle(), "sent")
    receptions: Records = _fixed_array(RECEPTION, "receptions")
    channel_states: Records = _fixed_array(CHANNEL_STATE, CHANNEL_STATES)


ARRAY_SPECS: dict[str, ArraySpec] = Medium._field_defaults
_CHAINED = {name: a.free_chain for name, a in ARRAY_SPECS.items() if a.free_chain}


#: the table with the addresses of the medium's arrays; with compilation off, the medium itself
MediumTable = Ints | Medium
#: function that rebuilds the medium inside a kernel, from the table of its addresses
unpack_medium: Callable[[MediumTable], Medium] = array_tables.make_views(
    "Medium", {name: (a.dtype, len(a.lengths)) for name, a in ARRAY_SPECS.items()}
)


@device_function
def sound_speed_profile(m: Medium) -> SoundSpeedProfile:
    """Return the sound speed profile of the medium."""
    return SoundSpeedProfile(m.profile_z, m.profile_c)


@device_function
def sound_field(m: Medium, time: float) -> SoundField:
    """Return the sound field of the medium at a time in s. Its levels are the knots of the profile."""
    w = m.water[0]
    row, weight = time_weight(m.field_times, time)
    return SoundField(
        m.field_c,
        m.profile_z,
        w.field_north,
        w.field_east,
        w.field_step_north,
        w.field_step_east,
        w.field_columns_north,
        w.field_columns_east,
        row,
        weight,
    )


@device_function
def surface_motion(m: Medium, s: int) -> SurfaceMotion:
    """Return the moving surface for a signal."""
    return SurfaceMotion(m.sea_components, m.sea_periods, m.tide, m.signals[s].emission, m.profile_c[0], m.wave_parts)


@device_function
def still_surface(m: Medium) -> SurfaceMotion:
    """Return a surface that is flat and at rest."""
    none: Any = m.sea_periods[:0]
    return SurfaceMotion(m.sea_components, none, m.tide, 0.0, m.profile_c[0], m.wave_parts)


def make_record(of: Table) -> Records:
    """Create an array (1,) with a single record."""
    return np.zeros(1, of.dtype).view(np.recarray)


def allocate_medium(**lengths: int) -> Medium:
    """Allocate an empty medium, in which all records are free and there are no nodes. Without a sound field or noise
    sources, the lengths of their arrays may be omitted.
    """
    new: dict[str, Any] = {}
    lengths = {"pairs": 0, "field_times": 0, "field_points": 0, "noise_sources": 0} | lengths
    knots = lengths["profile"]
    lengths["fan"], lengths["points"] = fan_size(knots), max(256, (REVERSALS + 2) * (knots + 2))
    for name, a in ARRAY_SPECS.items():
        shape = [n if isinstance(n, int) else lengths[n] for n in a.lengths]
        array = np.full(shape, a.fill, a.dtype) if a.fill else np.zeros(shape, a.dtype)
        new[name] = array.view(np.recarray) if a.dtype.names else array
    m = Medium(**new)
    for name in _CHAINED:
        _chain_free_records(m, name, 0)
    return m


def grow_medium(m: Medium) -> Medium:
    """Return the same medium with twice the capacity of each array that lacks room for the next event."""
    c = m.counters[0]
    room = {
        "signals": (len(m.signals) - c.live, 1),
        "emissions": (c.left_emissions, 2),
        "chunks": (c.left_chunks, max(len(m.nodes), c.live) * m.water[0].paths_per_node + 1),
        "candidates": (c.left_candidates, 1),
        "hearings": (c.left_hearings, 1),
        "events": (c.left_events, 4),
    }
    short = {name for name, (left, needed) in room.items() if left < needed}
    new: dict[str, Any] = {}
    for name, a in ARRAY_SPECS.items():
        if a.grows_with in short:
            old = getattr(m, name)
            new[name] = np.concatenate([old, np.zeros_like(old)]).view(np.recarray)
    bigger = m._replace(**new)
    for name in _CHAINED:
        if name in new:
            _chain_free_records(bigger, name, len(getattr(m, name)))
    return bigger


def _chain_free_records(m: Medium, name: str, start: int) -> None:
    """Prepend the records with indices >= ``start`` to the chain of free records."""
    records, chain, counters = getattr(m, name), _CHAINED[name], m.counters[0]
    records.next[start:] = np.arange(start + 1, len(records) + 1)
    if start:
        records.next[-1] = counters[f"free_{chain}"]
    counters[f"free_{chain}"] = start
    if f"left_{chain}s" in (COUNTERS.dtype.names or ()):
        counters[f"left_{chain}s"] += len(records) - start
