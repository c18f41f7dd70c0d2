"""Table declarations for all sensors, both built-in sensors and sensors from other packages.

A package provides a sensor through two entry points of the same name: in the group ``wavesim.sensors``, its
:class:`~wavesim_sdk.tables.Table` (made by :func:`sensor_table`), and in the group ``wavesim.emulators``, the class
that computes its values. Frame B is the body frame, and S is the frame of the sensor as mounted.
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

HEAD_COLUMNS = 4  #: number of columns before the values in each sensor table
MULTIBEAM_BEAMS = 256  #: maximum number of beams in a multibeam echosounder
MAX_SCALARS = 4  #: maximum number of properties of the water that one sensor can measure
LEAK_COMPARTMENTS = 4  #: maximum number of compartments that a leak detector monitors
RANGER_BEAMS = 8  #: maximum number of beams in a rangefinder
DVL_BEAMS = 4  #: maximum number of beams in a Doppler log
ADCP_BEAMS = 4  #: number of beams in a current profiler
ADCP_CELLS = 64  #: maximum number of cells in a current profile
RADAR_TARGETS = 16  #: maximum number of tracks in a radar's target list
AIS_STATIONS = 16  #: maximum number of stations listed by an AIS receiver, with its own station first


def sensor_table(name: str, doc: str, fields: Sequence[Field], state: Sequence[Field] = ()) -> Table:
    """Create the table declaration of a sensor. Each row contains the tick, time, validity, sequence number and values.

    ``state`` lists hidden columns. They store the state that an emulator carries from one value to the next, such as a
    random-walk bias or the energy used. An emulator that replaces another one can therefore continue from that state.
    """
    head = (
        TICK,
        TIME,
        integer("valid", "", "1 = the values are valid; 0 = the values are invalid."),
        integer("sequence", "", "Incremented with each new value; 0 = never written."),
    )
    for f in fields:
        if f.type != "f8":
            raise ValueError(f"sensor '{name}': value '{f.name}' must have type f8")
    generation = integer(
        "generation",
        "",
        "Generation number of the instrument to which the value belongs. If it differs from that in the `instruments` "
        "table, the value belongs to a previous instrument.",
    )
    measured = integer("measured_ns", "ns", "Time to which the following values apply.")
    hidden = tuple(replace(f, hidden=True) for f in (generation, *((measured, *state) if state else ())))
    return Table(name, doc, f"emulator {name}", head + tuple(fields) + hidden)


_BUILT_IN = (
    sensor_table(
        "ctd",
        "Conductivity, temperature and depth sensor (CTD).",
        (
            value("pressure", "dbar", "Absolute pressure."),
            value("temperature", "C", "Temperature (IPTS-68)."),
            value("conductivity", "S/m", "Conductivity."),
            value("salinity", "", "Practical salinity (PSS-78), computed from conductivity, temperature and pressure."),
        ),
    ),
    sensor_table("pressure", "Pressure sensor.", (value("pressure", "dbar", "Absolute pressure."), value("depth", "m", "Depth computed from the pressure."))),
    sensor_table("temperature", "Thermometer.", (value("temperature", "C", "Temperature (IPTS-68)."),)),
    sensor_table("conductivity", "Conductivity cell.", (value("conductivity", "S/m", "Conductivity."),)),
    sensor_table("salinity", "Salinometer.", (value("salinity", "", "Practical salinity (PSS-78)."),)),
    sensor_table(
        "scalar",
        "Scalar properties of the water, in the order of the world's `<scalar>` elements.",
        (value("value", "as configured", "Value of each property; -1 = the property is not defined at this position.", MAX_SCALARS),),
    ),
    sensor_table("sound_velocity", "Sound velocity probe.", (value("speed", "m/s", "Speed of sound."),)),
    sensor_table("echosounder", "Distance to the bottom.", (value("range", "m", "Minimum distance within the cone."),)),
    sensor_table(
        "ranger",
        "Rangefinder with fixed beams that point, for example, forward or towards the walls of a tunnel.",
        (value("range", "m", "Distance along each beam; NaN = nothing within range.", RANGER_BEAMS),),
    ),
    sensor_table(
        "scanner",
        "Scanning echosounder with a pencil beam.",
        (
            value("angle", "rad", "Angle of the beam in its plane, from forward towards starboard."),
            value("range", "m", "Distance; NaN = nothing within range."),
        ),
    ),
    sensor_table(
        "multibeam",
        "Multibeam echosounder: a fan of beams across the track.",
        (value("range", "m", "Distance along each beam, from port to starboard; NaN = nothing within range.", MULTIBEAM_BEAMS),),
    ),
    sensor_table(
        "sonar",
        "Imaging sonar. Its frames are in a separate ring.",
        (
            value("frame", "", "Number of the newest frame, from 1."),
            value("range", "m", "Maximum range."),
            value("beams", "", "Number of beams per frame."),
            value("bins", "", "Number of samples per beam, or of values per sounding."),
            value("saturated", "", "Fraction of the samples that were clipped at the maximum."),
            value("altitude", "m", "Side-scan sonar: altitude above the bed. Multibeam echosounder: range straight "
                                   "down. NaN = unknown."),
        ),
    ),
    sensor_table(
        "camera",
        "Camera. Its images are in shared-memory rings, like the frames of sonars.",
        (
            value("frame", "", "Number of the newest frame, from 1."),
            value("width", "", "Width of the image in pixels."),
            value("height", "", "Height of the image in pixels."),
            value("exposure", "", "Exposure of the image: factor by which the light is multiplied to obtain the fraction of full scale."),
            value("saturated", "", "Fraction of the pixel values that were clipped at the maximum."),
        ),
    ),
    sensor_table(
        "lidar",
        "Lidar. Its scans are in shared-memory rings, like the frames of sonars.",
        (
            value("frame", "", "Number of the newest frame, from 1."),
            value("channels", "", "Number of channels: rows of the scan."),
            value("columns", "", "Number of columns of the scan."),
            value("points", "", "Number of beams with an echo."),
            value("nearest", "m", "Range of the nearest point; NaN = no point."),
        ),
    ),
    sensor_table(
        "hydrophone",
        "Hydrophone. Its blocks of samples are in shared-memory rings, like the frames of sonars.",
        (
            value("frame", "", "Number of the newest block, from 1."),
            value("channels", "", "Number of channels: elements of the hydrophone."),
            value("samples", "", "Number of samples of each channel in a block."),
            value("level", "dB re 1 uPa", "Root-mean-square level of all channels in the newest block; NaN = silence."),
            value("clipped", "", "Number of samples of the newest block that were clipped."),
            value("replayed", "", "Number of signals in the newest block that a measured channel shaped (<replay>)."),
            value(
                "refused",
                "",
                "Number of signals in the newest block that take the paths of the medium because their measured channel cannot carry them.",
            ),
            value("lost", "", "Number of arrivals at all hydrophones that the emulator has lost so far; 0 in a complete run."),
        ),
        (
            value("next", "", "Number of the first sample of the next block."),
            value("lost_count", "", "Number of lost arrivals, which no fault changes."),
        ),
    ),
    sensor_table(
        "imu",
        "Inertial measurement unit. Values are means over the time since the previous value.",
        (value("force", "m/s2", "Specific force, frame S.", 3), value("rates", "rad/s", "Angular velocity, frame S.", 3)),
        (
            value("force_bias", "m/s2", "Random-walk bias of the specific force, frame S.", 3),
            value("rates_bias", "rad/s", "Random-walk bias of the angular rates, frame S.", 3),
            value("slow", "m/s2, rad/s", "Bias instability of the specific force and the angular rates, frame S.", 6),
            value("rest", "m/s, rad", "Velocity and angle increments that are smaller than a quantisation step and are carried over to the next value, frame S.", 6),
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
        "Satellite navigation receiver; valid while its antenna is above the water.",
        (
            value("latitude", "rad", "Latitude, WGS84."),
            value("longitude", "rad", "Longitude, WGS84."),
            value("height", "m", "Height above the ellipsoid. The frame W is flat: the mean water level is at a "
                                 "height of 0 m at the origin, and 8 m at a distance of 10 km."),
            value("sog", "m/s", "Speed over ground."),
            value("cog", "rad", "Course over ground, 0..2 pi."),
            value("hdop", "", "Horizontal dilution of precision."),
            value("hacc", "m", "Standard deviation of the horizontal position."),
            value("satellites", "", "Number of satellites in use."),
        ),
        (value("error_W", "m", "Slowly varying position error, frame W.", 3),),
    ),
    sensor_table("uwb", "Position from an ultra-wideband system, above water only.", (value("position", "m", "Position: north, east, down.", 3),)),
    sensor_table(
        "dvl",
        "Doppler velocity log with four Janus beams.",
        (
            value("bottom", "m/s", "Velocity over the bottom, frame S; NaN without bottom lock.", 3),
            value("water", "m/s", "Velocity through the water, frame S.", 3),
            value("beams", "m/s", "Velocity along each beam, positive away from the sensor; NaN = the beam was dropped.", DVL_BEAMS),
            value("ranges", "m", "Range of each beam; NaN = no range.", DVL_BEAMS),
            value("altitude", "m", "Mean height above the bottom; NaN without bottom lock."),
            value("locked", "", "Number of beams with bottom lock."),
        ),
    ),
    sensor_table(
        "adcp",
        "Acoustic Doppler current profiler: velocity of the water relative to the instrument, in cells, starting with"
        " the nearest cell; NaN = not measured.",
        (
            value("x", "m/s", "Velocity of the water along the x axis of frame S.", ADCP_CELLS),
            value("y", "m/s", "Velocity of the water along the y axis of frame S.", ADCP_CELLS),
            value("z", "m/s", "Velocity of the water along the z axis of frame S, which is the axis of the instrument.", ADCP_CELLS),
            value("error", "m/s", "Error velocity: disagreement between the beams, scaled to the noise of the x and y "
                                  "velocities; NaN with three beams.", ADCP_CELLS),
            value("ranges", "m", "Range to the bottom, the surface or an obstacle along each beam; NaN = no range.", ADCP_BEAMS),
            value("first", "m", "Distance along the axis to the centre of the first cell."),
            value("cell", "m", "Height of a cell."),
            value("good", "", "Number of measured cells."),
        ),
    ),
    sensor_table("speedlog", "Speed through the water.", (value("v_FB_B", "m/s", "Velocity through the water, frame B.", 3),)),
    sensor_table(
        "anemometer",
        "Apparent wind; valid above water.",
        (value("speed", "m/s", "Apparent wind speed."), value("angle", "rad", "Direction from which the apparent wind blows, measured from the bow towards starboard.")),
    ),
    sensor_table("encoder", "Encoders, which report the actual value of each actuator.", (value("actuator", "1/s, rad or kg", "Actual value of each actuator.", MAX_ACTUATORS),)),
    sensor_table("rpm", "Propeller speeds from counted pulses.", (value("rpm", "1/min", "Speed of each thruster; NaN = a thruster without a shaft.", MAX_THRUSTERS),)),
    sensor_table("leak", "Leak detectors.", (value("wet", "", "1 = the compartment is wet.", LEAK_COMPARTMENTS),)),
    sensor_table(
        "battery",
        "Battery.",
        (value("voltage", "V", "Voltage."), value("current", "A", "Current."), value("charge", "", "Remaining fraction of the capacity.")),
        (value("used", "W h", "Energy drawn since the battery was full."),),
    ),
    sensor_table(
        "navigation",
        "Navigation reference: true pose, velocity and acceleration.",
        (
            value("p_WB_W", "m", "Position.", 3),
            value("euler", "rad", "Roll, pitch, heading.", 3),
            value("v_WB_W", "m/s", "Velocity over ground, frame W.", 3),
            value("w_WB_B", "rad/s", "Angular velocity, frame B.", 3),
            value("a_WB_W", "m/s2", "Mean acceleration since the previous value, frame W.", 3),
        ),
        (value("v_before_W", "m/s", "Velocity over ground at the time of the last value, frame W.", 3),),
    ),
    sensor_table(
        "radar",
        "Target list of a radar. Each track keeps its position in the list; NaN = no track.",
        (
            value("target", "", "Track number, 1 to 99. The numbers of lost tracks are reused.", RADAR_TARGETS),
            value("range", "m", "Smoothed distance to the target.", RADAR_TARGETS),
            value("bearing", "rad", "True bearing of the target, 0..2 pi.", RADAR_TARGETS),
            value("course", "rad", "Course over ground, 0..2 pi; NaN until the track is old enough.", RADAR_TARGETS),
            value("speed", "m/s", "Speed over ground.", RADAR_TARGETS),
            value("age", "s", "Time since the last detection of the track.", RADAR_TARGETS),
            value("status", "", "State of the track: 1 acquired, 2 tracked.", RADAR_TARGETS),
        ),
        (
            value("north", "m", "North coordinate of the track, frame W.", RADAR_TARGETS),
            value("east", "m", "East coordinate of the track, frame W.", RADAR_TARGETS),
            value("v_north", "m/s", "North component of the track's velocity.", RADAR_TARGETS),
            value("v_east", "m/s", "East component of the track's velocity.", RADAR_TARGETS),
            value("scans", "", "Number of scans in which the track was detected.", RADAR_TARGETS),
            value("missed", "", "The last ten scans as bits, 1 = not detected.", RADAR_TARGETS),
            value("since", "s", "Time of the first detection.", RADAR_TARGETS),
            value("next", "", "Number that the next new track receives."),
        ),
    ),
    sensor_table(
        "ais",
        "Latest report from each AIS station, own station first, at the resolution of AIS messages; NaN = no station, "
        "or not available.",
        (
            value("mmsi", "", "MMSI of the station.", AIS_STATIONS),
            value("latitude", "rad", "Latitude, WGS84.", AIS_STATIONS),
            value("longitude", "rad", "Longitude, WGS84.", AIS_STATIONS),
            value("sog", "m/s", "Speed over ground.", AIS_STATIONS),
            value("cog", "rad", "Course over ground, 0..2 pi.", AIS_STATIONS),
            value("heading", "rad", "True heading, 0..2 pi.", AIS_STATIONS),
            value("turn", "rad/s", "Rate of turn, positive to starboard; class A only.", AIS_STATIONS),
            value("age", "s", "Time since the last report from the station.", AIS_STATIONS),
            value("station", "", "Class of the station: 1 class A, 2 class B (carrier sense), 3 class B (self-organised), "
                  "4 aid to navigation, 5 receiver only.", AIS_STATIONS),
            value("kind", "", "Type of ship or of aid to navigation.", AIS_STATIONS),
            value("status", "", "Navigational status.", AIS_STATIONS),
            value("length", "m", "Length of the ship.", AIS_STATIONS),
            value("width", "m", "Width of the ship.", AIS_STATIONS),
            value("called", "", "Name of the station in six-bit characters, seven per element; `wavesim_sdk.ais.unpacked` decodes it.", 3 * AIS_STATIONS),
        ),
        (value("reported", "s", "Time of the report.", AIS_STATIONS),),
    ),
)  # fmt: skip

#: tables of WaVeSim's own sensors
SENSORS: dict[str, Table] = {t.name: t for t in _BUILT_IN}


@functools.cache
def _foreign() -> dict[str, Table]:
    found = {}
    for entry in entry_points(group="wavesim.sensors"):
        table = entry.load()
        if not isinstance(table, Table) or table.name != entry.name:
            raise ConfigError(
                f"entry point '{entry.name}' of wavesim.sensors must refer to a sensor table with the same name"
            )
        found[entry.name] = table
    return found


def all_sensor_tables() -> dict[str, Table]:
    """Return the tables of all sensors, by name."""
    return {**_foreign(), **SENSORS}


def sensor_table_of(name: str) -> Table:
    """Return the table of a sensor that WaVeSim or an installed package provides. Raises ConfigError, listing the known
    names, if there is no such sensor.
    """
    tables = all_sensor_tables()
    if name not in tables:
        raise ConfigError(f"unknown sensor type '{name}'; use one of {', '.join(sorted(tables))}")
    return tables[name]


def value_count(table: Table) -> int:
    """Return the number of elements in a value from a sensor, excluding the head and the hidden columns."""
    return table.visible.dtype.itemsize // 8 - HEAD_COLUMNS


def value_fields(table: Table) -> tuple[Field, ...]:
    """Return the fields of a sensor value, excluding the head and the hidden columns."""
    return table.visible.fields[HEAD_COLUMNS:]


def find_columns(table: Table, name: str) -> tuple[int, int, str]:
    """Return the index of the first number, the count of numbers and the unit of a field, such as `heading`, or of one
    number in a field, such as `rates.2`.

    Raises ValueError, listing the available names, if the sensor does not have this field.
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
            raise ValueError(
                f"invalid field '{name}': use '{field_name}', or one of {field_name}.0 to {field_name}.{count - 1}"
            )
        at += count
    own = ", ".join(f.name for f in value_fields(table))
    raise ValueError(f"sensor type '{table.name}' has no field '{name}'; use one of {own}")
