"""The tables of all sensors: those that come with WaVeSim, and those of other packages.

A package offers a sensor by two entry points of one name: under ``wavesim.sensors`` its :class:`~wavesim_sdk.tables.Table`
(made by :func:`sensor_table`), under ``wavesim.emulators`` the class that computes it.  Frame B is that of the body,
S that of the sensor as it is mounted.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import entry_points

from wavesim_sdk.actuators import MAX_THRUSTERS
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.tables import MAX_ACTUATORS, TICK, TIME, Field, Table, integer, value

HEAD_COLUMNS = 4  #: columns of a sensor's table before its values
MULTIBEAM_BEAMS = 256  #: of a multibeam
MAX_SCALARS = 4  #: quantities of the water that a sensor can tell
LEAK_COMPARTMENTS = 4  #: of a leak detector
RANGER_BEAMS = 8  #: beams of a ranger
DVL_BEAMS = 4  #: of a Doppler log
ADCP_BEAMS = 4  #: of a current profiler
ADCP_CELLS = 64  #: of its profile, at most
RADAR_TARGETS = 16  #: of a radar
AIS_STATIONS = 16  #: of an AIS receiver, its own the first


def sensor_table(name: str, doc: str, fields: Sequence[Field], state: Sequence[Field] = ()) -> Table:
    """A sensor's table: its values, each row with tick, time, validity and sequence number.

    ``state`` is what an emulator has to know of the past (a bias that walks, the charge that is used up): hidden columns,
    so that a process that takes over goes on where the other one ended.
    """
    head = (
        TICK,
        TIME,
        integer("valid", "", "1 if the values may be used."),
        integer("sequence", "", "Grows with each new value; 0 = never written."),
    )
    for f in fields:
        if f.type != "f8":
            raise ValueError(f"sensor '{name}': the value '{f.name}' is no floating-point number")
    generation = integer(
        "generation",
        "",
        "That of its instrument in the table instruments; with another the value is of one that was there before.",
    )
    measured = integer("measured_ns", "ns", "Time at which the following was true.")
    hidden = tuple(replace(f, hidden=True) for f in (generation, *((measured, *state) if state else ())))
    return Table(name, doc, f"emulator {name}", head + tuple(fields) + hidden)


_BUILT_IN = (
    sensor_table(
        "ctd",
        "Conductivity, temperature, depth sensor.",
        (
            value("pressure", "dbar", "Absolute pressure."),
            value("temperature", "C", "Temperature (IPTS-68)."),
            value("conductivity", "S/m", "Conductivity."),
            value("salinity", "", "Practical salinity PSS-78 of the three."),
        ),
    ),
    sensor_table("pressure", "Pressure sensor.", (value("pressure", "dbar", "Absolute."), value("depth", "m", "Depth from it."))),
    sensor_table("temperature", "Thermometer.", (value("temperature", "C", "Temperature (IPTS-68)."),)),
    sensor_table("conductivity", "Conductivity cell.", (value("conductivity", "S/m", "Conductivity."),)),
    sensor_table("salinity", "Salinometer.", (value("salinity", "", "Practical salinity PSS-78."),)),
    sensor_table(
        "scalar",
        "Other quantities of the water, in the order of <scalar> in the world.",
        (value("value", "as configured", "Quantity; -1 = none here.", MAX_SCALARS),),
    ),
    sensor_table("sound_velocity", "Sound velocity probe.", (value("speed", "m/s", "Speed of sound."),)),
    sensor_table("echosounder", "Distance to the bottom.", (value("range", "m", "Least distance within its cone."),)),
    sensor_table(
        "ranger",
        "Fixed range beams: forward looking, or to the walls of a tunnel.",
        (value("range", "m", "Distance along each beam; NaN = nothing within reach.", RANGER_BEAMS),),
    ),
    sensor_table(
        "scanner",
        "Scanning pencil beam.",
        (
            value("angle", "rad", "Angle of the beam in its plane, from forward to starboard."),
            value("range", "m", "Distance; NaN = nothing within reach."),
        ),
    ),
    sensor_table(
        "multibeam",
        "Fan of beams across the track.",
        (value("range", "m", "Distance along each beam, from port to starboard; NaN = none.", MULTIBEAM_BEAMS),),
    ),
    sensor_table(
        "sonar",
        "Imaging sonar; its frames stand in a ring of their own.",
        (
            value("frame", "", "Number of the newest frame, from 1."),
            value("range", "m", "Greatest range."),
            value("beams", "", "Beams of the frame."),
            value("bins", "", "Samples of a beam, or numbers of a sounding."),
            value("saturated", "", "Share of samples cut at the top."),
            value("altitude", "m", "Over the bed, of a side-scan; range straight down, of a multibeam echosounder; NaN = unknown."),
        ),
    ),
    sensor_table(
        "camera",
        "Camera; its pictures are frames in rings beside those of sonars.",
        (
            value("frame", "", "Number of the newest frame, from 1."),
            value("width", "", "Pixels of a row."),
            value("height", "", "Rows."),
            value("exposure", "", "Share of full scale that light of 1 gives."),
            value("saturated", "", "Share of numbers cut at the top."),
        ),
    ),
    sensor_table(
        "imu",
        "Inertial measurement unit; means over the time since its last value.",
        (value("force", "m/s2", "Specific force, frame S.", 3), value("rates", "rad/s", "Angular velocity, frame S.", 3)),
        (
            value("force_bias", "m/s2", "Bias that walks, frame S.", 3),
            value("rates_bias", "rad/s", "Bias that walks, frame S.", 3),
            value("slow", "m/s2, rad/s", "Unstable part of the biases: force, rates, frame S.", 6),
            value("rest", "m/s, rad", "Velocity and angle that have not made a step yet, frame S.", 6),
            value("v_WS_S", "m/s", "Velocity of the sensor, frame S.", 3),
            value("q_WB", "", "Attitude of the body.", 4),
            value("w_WB_B", "rad/s", "Angular velocity of the body, frame B.", 3),
        ),
    ),
    sensor_table(
        "ahrs",
        "Attitude and heading reference.",
        (
            value("roll", "rad", "Roll."),
            value("pitch", "rad", "Pitch."),
            value("heading", "rad", "Heading from true north, 0..2 pi."),
            value("rates", "rad/s", "Angular velocity, frame B.", 3),
        ),
    ),
    sensor_table(
        "magnetometer",
        "Magnetometer with three axes.",
        (value("field", "T", "Magnetic field, frame S.", 3),),
    ),
    sensor_table(
        "gps",
        "Satellite receiver; valid while its antenna is above the water.",
        (
            value("latitude", "rad", "WGS84."),
            value("longitude", "rad", "WGS84."),
            value("height", "m", "Above the ellipsoid, which the mean water level touches at the origin (10 km from there: 8 m)."),
            value("sog", "m/s", "Speed over ground."),
            value("cog", "rad", "Course over ground, 0..2 pi."),
            value("hdop", "", "Horizontal dilution of precision."),
            value("hacc", "m", "Standard deviation of the position."),
            value("satellites", "", "Satellites in use."),
        ),
        (value("error_W", "m", "Slow error of the position, frame W.", 3),),
    ),
    sensor_table("uwb", "Ultra-wideband position above water.", (value("position", "m", "North, east, down.", 3),)),
    sensor_table(
        "dvl",
        "Doppler velocity log with four Janus beams.",
        (
            value("bottom", "m/s", "Velocity over the bottom, frame S; NaN without lock.", 3),
            value("water", "m/s", "Velocity through the water, frame S.", 3),
            value("beams", "m/s", "Velocity along each beam, away from it positive; NaN = dropped.", DVL_BEAMS),
            value("ranges", "m", "Range of each beam; NaN = none.", DVL_BEAMS),
            value("altitude", "m", "Mean height over the bottom; NaN without lock."),
            value("locked", "", "Beams with bottom lock."),
        ),
    ),
    sensor_table(
        "adcp",
        "Acoustic Doppler current profiler: velocity of the water past it by cells, the nearest first; NaN = not measured.",
        (
            value("x", "m/s", "Velocity of the water along x, frame S.", ADCP_CELLS),
            value("y", "m/s", "Along y.", ADCP_CELLS),
            value("z", "m/s", "Along z, its axis.", ADCP_CELLS),
            value("error", "m/s", "Error velocity: what the beams disagree by, scaled to have the noise of x and y; NaN with three beams.", ADCP_CELLS),
            value("ranges", "m", "Range of bottom, surface or obstacle along each beam; NaN = none.", ADCP_BEAMS),
            value("first", "m", "Distance of the first cell's middle along the axis."),
            value("cell", "m", "Height of a cell."),
            value("good", "", "Cells that were measured."),
        ),
    ),
    sensor_table("speedlog", "Speed through the water.", (value("v_FB_B", "m/s", "Velocity through the water, frame B.", 3),)),
    sensor_table(
        "anemometer",
        "Apparent wind; valid above water.",
        (value("speed", "m/s", "Speed."), value("angle", "rad", "Direction from which it blows, from the bow to starboard.")),
    ),
    sensor_table("encoder", "Actuators as they report themselves.", (value("actuator", "1/s, rad or kg", "Value.", MAX_ACTUATORS),)),
    sensor_table("rpm", "Speed of the propellers, counted by pulses.", (value("rpm", "1/min", "Thrusters; NaN = one without a shaft.", MAX_THRUSTERS),)),
    sensor_table("leak", "Leak detectors.", (value("wet", "", "1 if the compartment is wet.", LEAK_COMPARTMENTS),)),
    sensor_table(
        "battery",
        "Battery.",
        (value("voltage", "V", "Voltage."), value("current", "A", "Current."), value("charge", "", "Share of the capacity left.")),
        (value("used", "W h", "Energy drawn since it was full."),),
    ),
    sensor_table(
        "navigation",
        "Everything at once, as a reference: pose, velocity, acceleration.",
        (
            value("p_WB_W", "m", "Position.", 3),
            value("euler", "rad", "Roll, pitch, heading.", 3),
            value("v_WB_W", "m/s", "Velocity over ground, frame W.", 3),
            value("w_WB_B", "rad/s", "Angular velocity, frame B.", 3),
            value("a_WB_W", "m/s2", "Acceleration, frame W, mean since its last value.", 3),
        ),
        (value("v_before_W", "m/s", "Velocity over ground at its last value, frame W.", 3),),
    ),
    sensor_table(
        "radar",
        "Target list of a radar: tracks, each at a place of its own; NaN = none.",
        (
            value("target", "", "Number of the track, 1 to 99; a lost one's is used again.", RADAR_TARGETS),
            value("range", "m", "Distance of the track, smoothed.", RADAR_TARGETS),
            value("bearing", "rad", "True bearing, 0..2 pi.", RADAR_TARGETS),
            value("course", "rad", "Course over ground, 0..2 pi; NaN until there is a trend.", RADAR_TARGETS),
            value("speed", "m/s", "Speed over ground.", RADAR_TARGETS),
            value("age", "s", "Time since the track was seen last.", RADAR_TARGETS),
            value("status", "", "1 acquired, 2 followed.", RADAR_TARGETS),
        ),
        (
            value("north", "m", "Place of the track.", RADAR_TARGETS),
            value("east", "m", "Place of the track.", RADAR_TARGETS),
            value("v_north", "m/s", "Velocity of the track.", RADAR_TARGETS),
            value("v_east", "m/s", "Velocity of the track.", RADAR_TARGETS),
            value("scans", "", "Scans that saw it.", RADAR_TARGETS),
            value("missed", "", "The last ten scans as bits, 1 = not seen.", RADAR_TARGETS),
            value("since", "s", "Time at which it was first seen.", RADAR_TARGETS),
            value("next", "", "Number of the next track."),
        ),
    ),
    sensor_table(
        "ais",
        "Reports of AIS stations: the newest of each, one's own first, in the steps of their messages; NaN = none, or not told.",
        (
            value("mmsi", "", "Number of the station.", AIS_STATIONS),
            value("latitude", "rad", "WGS84.", AIS_STATIONS),
            value("longitude", "rad", "WGS84.", AIS_STATIONS),
            value("sog", "m/s", "Speed over ground.", AIS_STATIONS),
            value("cog", "rad", "Course over ground, 0..2 pi.", AIS_STATIONS),
            value("heading", "rad", "True heading, 0..2 pi.", AIS_STATIONS),
            value("turn", "rad/s", "Rate of turn, to starboard positive; class A.", AIS_STATIONS),
            value("age", "s", "Time since the report.", AIS_STATIONS),
            value("station", "", "1 class A, 2 class B (carrier sense), 3 class B (self-organised), 4 mark, 5 a mere receiver.", AIS_STATIONS),
            value("kind", "", "Type of ship or of mark.", AIS_STATIONS),
            value("status", "", "Navigational status.", AIS_STATIONS),
            value("length", "m", "Of the ship.", AIS_STATIONS),
            value("width", "m", "Of the ship.", AIS_STATIONS),
            value("called", "", "Name in six-bit characters, seven to a number: wavesim_sdk.ais.unpacked.", 3 * AIS_STATIONS),
        ),
        (value("reported", "s", "Time of the report.", AIS_STATIONS),),
    ),
)  # fmt: skip

#: sensors that come with WaVeSim
SENSORS: dict[str, Table] = {t.name: t for t in _BUILT_IN}


@functools.cache
def _foreign() -> dict[str, Table]:
    found = {}
    for entry in entry_points(group="wavesim.sensors"):
        table = entry.load()
        if not isinstance(table, Table) or table.name != entry.name:
            raise ConfigError(f"the entry point '{entry.name}' of wavesim.sensors is no sensor table of that name")
        found[entry.name] = table
    return found


def all_sensor_tables() -> dict[str, Table]:
    """All sensors that there are."""
    return {**_foreign(), **SENSORS}


def sensor_table_of(name: str) -> Table:
    """The table of a sensor of WaVeSim or of an installed package; ConfigError names what there is."""
    tables = all_sensor_tables()
    if name not in tables:
        raise ConfigError(f"there is no sensor '{name}'; known are: {', '.join(sorted(tables))}")
    return tables[name]


def value_count(table: Table) -> int:
    """Numbers of one value, without the head and what is hidden."""
    return table.visible.dtype.itemsize // 8 - HEAD_COLUMNS


def value_fields(table: Table) -> tuple[Field, ...]:
    """The fields of a value, without the head and what is hidden."""
    return table.visible.fields[HEAD_COLUMNS:]


def find_columns(table: Table, name: str) -> tuple[int, int, str]:
    """(first number, count, unit) of a value's field: `heading`, or one number of several, `rates.2`.

    ValueError names what there is.
    """
    field_name, dot, element = name.partition(".")
    at = 0
    for f in value_fields(table):
        count = math.prod(f.shape)
        if f.name == field_name and not dot:
            return at, count, f.unit
        if f.name == field_name and element.isdecimal() and int(element) < count:
            return at + int(element), 1, f.unit
        if f.name == field_name:
            raise ValueError(f"'{name}': '{field_name}' has the numbers {field_name}.0 to {field_name}.{count - 1}")
        at += count
    own = ", ".join(f.name for f in value_fields(table))
    raise ValueError(f"a value of type '{table.name}' has no '{name}'; it has {own}")
