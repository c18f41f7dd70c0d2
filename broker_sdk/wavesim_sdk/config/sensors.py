"""Declare the instruments that a model, a vehicle or the whole fleet carries."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_sdk.config.adcp import AdcpConfig
from wavesim_sdk.config.magnetometer import MagnetometerConfig
from wavesim_sdk.config.schema import Vector, children, choice, flag, key, key_or_word, place, text
from wavesim_sdk.config.sensor_base import SensorConfig as SensorConfig
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.tables import Table


@dataclass(frozen=True)
class EchosounderConfig(SensorConfig):
    """Echosounder: distance to the nearest part of the bottom or of an obstacle within its cone."""

    level: bool = flag(
        "yes: the beam points straight down at any attitude, as in the paper. no: it points along the z axis of S.",
        True,
    )
    maximum: float = key("Maximum range. Values beyond it are invalid.", "length", 200.0, low=0.1)
    minimum: float = key("Minimum range. Values below it are invalid.", "length", 0.0, low=0.0)
    width: float = key("Full angle of the cone; 0 = a single ray.", "angle", 0.0, low=0.0, high=2.0)


@dataclass(frozen=True)
class RangeBeam:
    """One beam of an instrument with several: its direction and its start point."""

    azimuth: float = key("Angle from the x axis of S towards its y axis.", "angle", 0.0)
    elevation: float = key("Angle below the x-y plane of S.", "angle", 0.0)
    position: Vector = key("Start point of the beam in S.", "length", (0.0, 0.0, 0.0), count=3)

    @property
    def direction(self) -> Vector:
        """Unit vector in S."""
        (down, level), (east, north) = sin_cos(self.elevation), sin_cos(self.azimuth)
        return level * north, level * east, down


@dataclass(frozen=True)
class RangerConfig(SensorConfig):
    """Ranger with up to eight fixed beams. Without <beam>, one beam points ahead.

    The beams detect obstacles, the bottom and the surface.
    """

    maximum: float = key("Maximum range.", "length", 50.0, low=0.1)
    sigma: float = key("Standard deviation of a range.", "length", 0.02, low=0.0)
    beam: tuple[RangeBeam, ...] = children(RangeBeam, "A beam.")


@dataclass(frozen=True)
class ScannerConfig(SensorConfig):
    """Scanner: one pencil beam that rotates in the x-y plane of S by one step per value."""

    maximum: float = key("Maximum range.", "length", 50.0, low=0.1)
    sigma: float = key("Standard deviation of a range.", "length", 0.02, low=0.0)
    first: float = key("First angle of the scan.", "angle", -3.141592653589793)
    last: float = key("Last angle of the scan. The scan then restarts at the first angle.", "angle", 3.141592653589793)
    step: float = key("Angle between consecutive values.", "angle", 0.031415926535, low=1e-4)


@dataclass(frozen=True)
class MultibeamConfig(SensorConfig):
    """Multibeam: a fan of beams in the y-z plane of S, or up to 256 beams of any position and direction."""

    beams: int = key("Number of beams.", default=64, low=2, high=256, integer=True)
    width: float = key("Full angle of the fan.", "angle", 2.0943951023931953, low=0.01, high=3.1)
    maximum: float = key("Maximum range.", "length", 150.0, low=0.1)
    sigma: float = key("Standard deviation of a range.", "length", 0.05, low=0.0)
    beam: tuple[RangeBeam, ...] = children(RangeBeam, "A beam. If any beam is given, the fan is omitted.")


@dataclass(frozen=True)
class SonarConfig(SensorConfig):
    """Imaging sonar, selected by the name of an instrument (`wavesim sonars` lists them).

    Frame S has x ahead, y to starboard and z down. A ping is complete at each period of `rate`; it was sent earlier
    by twice the range divided by the speed of sound.
    """

    rate: float = key("Pings per second; at most c/(2 range).", "frequency", 5.0, low=0.01, high=1000.0)
    preset: str = text("Name of the instrument.")
    range: float = key("Maximum range. Default: the usual range of the instrument.", "length", 0.0, low=0.01)
    bins: int = key(
        "Number of samples over the range. Default: from the resolution of the instrument, at most 2000.",
        default=0,
        low=1,
        high=8192,
        integer=True,
    )
    beams: int = key("Number of beams. Default: that of the instrument.", default=0, low=1, high=1024, integer=True)
    sector: float = key(
        "Full angle of the sector; 0 = that of the instrument.", "angle", 0.0, low=0.0, high=6.283185307179586
    )
    tilt: float = key(
        "Angle of the sonar axis below the x-y plane of S; -1 rad = that of the instrument.",
        "angle",
        -1.0,
        low=-1.6,
        high=1.6,
    )
    gain: float = key("Fixed gain in dB.", default=0.0, low=-200.0, high=200.0)
    tvg: float = key("X in the time-varying gain X log r + 2 alpha r.", default=30.0, low=0.0, high=60.0)
    hold: float = key("Range beyond which the gain stays constant; 0 = never.", "length", 0.0, low=0.0)
    floor: float = key("Level after gain, in dB, that maps to sample value 0.", default=110.0)
    span: float = key(
        "Range of levels in dB that maps to sample values from 0 to the maximum.", default=66.0, low=1.0, high=200.0
    )
    bits: int = key("Bits per sample: 8 or 16.", default=8, low=8, high=16, integer=True)
    volume: float = key(
        "Volume scattering strength of the water in dB: -90 in clear water, -60 in a wake.",
        default=-90.0,
        low=-300.0,
        high=0.0,
    )
    speckle: bool = flag("Whether levels fluctuate as echoes from many small scatterers do.", True)
    log: int = key(
        "Log every n-th frame, if there is a log; 0 = none.",
        default=1,
        low=0,
        high=1_000_000,
        integer=True,
    )
    truth: bool = flag("Whether each sample also reports the material and the object behind it.", False)
    stabilised: bool = flag(
        "For a multibeam echosounder: whether the beams are stabilised against roll of up to 10 deg.", True
    )
    equidistant: bool = flag(
        "For a multibeam echosounder: whether soundings are at equal distances across the track. no: at equal angles.",
        False,
    )
    assumed_speed: float = key(
        "For a multibeam echosounder: speed of sound assumed at the array; 0 = the true one.", "speed", 0.0, low=0.0
    )


@dataclass(frozen=True)
class CameraConfig(SensorConfig):
    """Underwater camera, rendered by ray tracing on the CPU with the light and water of `<optics>`.

    Frame S has x ahead, y to the right of the image and z down the image. Above the water the camera sees nothing.
    """

    rate: float = key("Images per second.", "frequency", 5.0, low=0.01, high=1000.0)
    width: int = key("Width of the image in pixels.", default=320, low=16, high=1024, integer=True)
    height: int = key("Height of the image in pixels.", default=240, low=16, high=1024, integer=True)
    view: float = key(
        "Horizontal field of view without distortion: half the width is f tan(view/2).",
        "angle",
        1.0472,
        low=0.05,
        high=2.6,
    )
    distortion: Vector = key(
        "Distortion coefficients k1, k2: a point at r focal lengths from the centre appears at r (1 + k1 r2 + k2 r4).",
        default=(0.0, 0.0),
        count=2,
        low=-1.0,
        high=1.0,
    )
    range: float = key("Visual range. Anything farther away appears as water.", "length", 20.0, low=0.1, high=200.0)
    lamp: float = key(
        "Light of the lamp on a surface 1 m away, relative to daylight at the surface (1); 0 = no lamp.",
        default=0.0,
        low=0.0,
    )
    lamp_position: Vector = key("Position of the lamp in S.", "length", (0.0, 0.0, -0.2), count=3)
    exposure: float = key(
        "Share of full scale that light of 1 gives. 0 = automatic: in each image, 1 in 50 of its numbers is above 0.9.",
        default=0.0,
        low=0.0,
    )
    gamma: float = key("Gamma: a pixel number is 255 share^(1/gamma).", default=2.2, low=0.2, high=5.0)
    electrons: float = key(
        "Electrons at full scale. Shot noise is the square root of the number of electrons.", default=10000.0, low=1.0
    )
    read_noise: float = key("Read noise, standard deviation in electrons.", default=8.0, low=0.0)
    depth: bool = flag("Whether the true depth of each pixel is included.", False)
    log: int = key(
        "Log every n-th image, if there is a log; 0 = none.",
        default=0,
        low=0,
        high=1_000_000,
        integer=True,
    )


@dataclass(frozen=True)
class ImuConfig(SensorConfig):
    """Inertial measurement unit with errors of each axis in SI units.

    The errors are white noise, biases (turn-on, instability, random walk), scale factors, misalignment and
    quantisation. `grade` sets the errors of a specific instrument for all keys that stay at their defaults.
    """

    grade: str = choice(
        "mems: the defaults below, a MEMS unit typical of robots. tactical: Sensonor STIM300. navigation: Honeywell "
        "HG9900.",
        ("mems", "tactical", "navigation"),
        "mems",
    )
    gyro_noise: float = key("Angular random walk of the gyros, rad/s/sqrt(Hz).", default=3.394e-4, low=0.0)
    gyro_walk: float = key("Random walk of the gyro bias, rad/s2/sqrt(Hz).", default=3.8785e-5, low=0.0)
    gyro_turn_on: float = key(
        "Turn-on bias of the gyros, standard deviation from start to start, rad/s.", default=0.0087, low=0.0
    )
    gyro_instability: float = key(
        "Bias instability of the gyros: the flat level of the Allan deviation, rad/s.", default=0.0, low=0.0
    )
    gyro_scale: float = key("Scale factor error of the gyros, standard deviation.", "drift", 0.0, low=0.0)
    gyro_step: float = key("Quantisation step of the angle; 0 = none.", "angle", 0.0, low=0.0)
    accelerometer_noise: float = key(
        "Velocity random walk of the accelerometers, m/s2/sqrt(Hz).", default=0.004, low=0.0
    )
    accelerometer_walk: float = key("Random walk of the accelerometer bias, m/s3/sqrt(Hz).", default=0.006, low=0.0)
    accelerometer_turn_on: float = key(
        "Turn-on bias of the accelerometers, standard deviation from start to start, m/s2.", default=0.196, low=0.0
    )
    accelerometer_instability: float = key(
        "Bias instability of the accelerometers: the flat level of the Allan deviation, m/s2.", default=0.0, low=0.0
    )
    accelerometer_scale: float = key(
        "Scale factor error of the accelerometers, standard deviation.", "drift", 0.0, low=0.0
    )
    accelerometer_step: float = key("Quantisation step of the velocity; 0 = none.", "speed", 0.0, low=0.0)
    instability_time: float = key("Correlation time of the bias instability.", "time", 300.0, low=0.1)
    misalignment: float = key(
        "Misalignment of each axis towards each other axis, standard deviation.", "angle", 0.0, low=0.0
    )
    earth: bool = flag(
        "Whether the sensor measures the rotation of the earth: its rate, and the Coriolis "
        "acceleration of a moving body.",
        False,
    )

    @functools.cached_property
    def resolved(self) -> ImuConfig:
        """The configuration with the values of its grade for all keys that stay at their defaults."""
        standing = {f.name for f in fields(ImuConfig) if getattr(self, f.name) == f.default}
        return replace(self, **{k: v for k, v in IMU_GRADES[self.grade].items() if k in standing})


#: Values of the data sheets in SI units. STIM300 (10 g): 0.15 deg/sqrt(h), 0.5 deg/h, 5 deg/h over temperature, 500 ppm; 0.06 m/s/sqrt(h),
#: 0.05 mg, 0.75 mg from start to start, 300 ppm; 1 mrad. HG9900: 0.002 deg/sqrt(h), 0.0035 deg/h, 5 ppm; 25 ug, 100 ppm; its
#: sheet omits velocity random walk, instability and misalignment; assumed: 5 ug/sqrt(Hz), a third of the biases, 20 urad.
IMU_GRADES: dict[str, dict[str, Any]] = {
    "mems": {},
    "tactical": {
        "gyro_noise": 4.363e-5, "gyro_walk": 0.0, "gyro_turn_on": 2.424e-5, "gyro_instability": 2.424e-6, "gyro_scale": 5e-4,
        "accelerometer_noise": 1e-3, "accelerometer_walk": 0.0, "accelerometer_turn_on": 7.36e-3,
        "accelerometer_instability": 4.905e-4, "accelerometer_scale": 3e-4, "misalignment": 1e-3,
    },
    "navigation": {
        "gyro_noise": 5.818e-7, "gyro_walk": 0.0, "gyro_turn_on": 1.697e-8, "gyro_instability": 5.66e-9, "gyro_scale": 5e-6,
        "accelerometer_noise": 4.9e-5, "accelerometer_walk": 0.0, "accelerometer_turn_on": 2.4525e-4,
        "accelerometer_instability": 8.2e-5, "accelerometer_scale": 1e-4, "misalignment": 2e-5,
    },
}  # fmt: skip


#: default height, by type of model, of the mast that carries instruments which must be above the water
MAST_M = {"surface": 1.0, "buoy": 0.5, "underwater": 0.25}
MAST = "mast"  #: the position at the top of the mast


def aerial(what: str) -> Any:
    """Declare the position of an instrument that works only above the water."""
    return key_or_word(
        MAST,
        f"{what} on the body. `{MAST}`: on a mast above the centre of the hull, mounted on its highest point; the mast is "
        f"{MAST_M['surface']:g} m high on a surface vessel, {MAST_M['buoy']:g} m on a buoy, {MAST_M['underwater']:g} m on an underwater vehicle.",
        "length", MAST, count=3,
    )  # fmt: skip


@dataclass(frozen=True)
class GpsConfig(SensorConfig):
    """Satellite receiver. It has a fix while its antenna is above the water."""

    position: Any = aerial("Position of the antenna")
    hacc: float = key("Standard deviation of the horizontal position.", "length", 2.0, low=0.0)
    vacc: float = key("Standard deviation of the height.", "length", 3.0, low=0.0)
    speed_sigma: float = key("Standard deviation of each velocity component.", "speed", 0.05, low=0.0)
    correlation: float = key("Time constant of the position error; 0 = white noise.", "time", 60.0, low=0.0)
    hdop: float = key("Horizontal dilution of precision.", default=0.9, low=0.1)
    satellites: int = key("Number of satellites in use.", default=9, low=0, high=64, integer=True)


@dataclass(frozen=True)
class UwbConfig(SensorConfig):
    """Position above the water from a local ultra-wideband network."""

    position: Any = aerial("Position of the antenna")
    sigma: float = key("Standard deviation of each coordinate.", "length", 0.1, low=0.0)


@dataclass(frozen=True)
class DvlConfig(SensorConfig):
    """Doppler velocity log with four Janus beams around the z axis of S, or with three or four beams of any position
    and direction.

    The first Janus beam is at the azimuth `first`, from x towards y.
    """

    rate: float = key("Rate at which the sensor computes its values.", "frequency", 7.0, low=0.01, high=1000.0)
    angle: float = key("Angle of the beams from the z axis.", "angle", 0.5235987755982988, low=0.05, high=1.2)
    first: float = key("Azimuth of the first beam, from x towards y.", "angle", 0.7853981633974483)
    radius: float = key("Radius of the circle around the origin of S on which the beams start.", "length", 0.0, low=0.0)
    minimum: float = key("Minimum range of bottom lock.", "length", 0.7, low=0.0)
    maximum: float = key("Maximum range of bottom lock.", "length", 90.0, low=0.1)
    bottom_sigma: float = key("Noise of a beam with bottom lock, standard deviation.", "speed", 0.005, low=0.0)
    water_sigma: float = key("Noise of a beam that tracks the water, standard deviation.", "speed", 0.0075, low=0.0)
    beam_drop_out: float = key("Probability that a beam drops out of a value.", default=0.0, low=0.0, high=1.0)
    beam: tuple[RangeBeam, ...] = children(RangeBeam, "A beam. If any beam is given, the Janus beams are omitted.")


@dataclass(frozen=True)
class RpmConfig(SensorConfig):
    """Propeller speeds from the pulses counted since the previous value."""

    pulses: int = key(
        "Pulses per revolution; 0 = exact speed without counting.", default=16, low=0, high=10000, integer=True
    )


@dataclass(frozen=True)
class LeakConfig(SensorConfig):
    """Leak detectors. They are dry until the fault `wet` names a compartment."""

    compartments: str = text(
        "Names of the compartments: up to four, separated by spaces.", "bow battery electronics stern"
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the compartments."""
        return tuple(self.compartments.split())


@dataclass(frozen=True)
class AnemometerConfig(SensorConfig):
    """Anemometer: apparent wind at its own height."""

    position: Any = aerial("Position of the instrument")
    speed_sigma: float = key("Standard deviation of the speed.", "speed", 0.2, low=0.0)
    angle_sigma: float = key("Standard deviation of the angle.", "angle", 0.035, low=0.0)


@dataclass(frozen=True)
class BatteryConfig(SensorConfig):
    """Battery that the hotel load and the thrusters drain.

    A thruster with a force command draws power in proportion to thrust^1.5 (an ideal propeller at zero speed). A
    thruster with a shaft speed command draws power in proportion to the cube of that speed (2 pi rho D^5 KQ n^3).
    """

    capacity: float = key("Capacity in W h.", default=500.0, low=0.001)
    voltage: float = key("Open-circuit voltage when full.", default=28.8, low=0.1)
    empty: float = key("Open-circuit voltage when empty.", default=22.0, low=0.1)
    resistance: float = key("Internal resistance in ohm.", default=0.05, low=0.0)
    hotel: float = key("Hotel load in W.", default=20.0, low=0.0)
    per_thrust: float = key('Power of thrusters with law="force", in W per N^1.5 of thrust.', default=0.6, low=0.0)
    per_shaft: float = key(
        'Power of thrusters with law="shaft", in W per (1/s)^3 of shaft speed.', default=0.015, low=0.0
    )


@dataclass(frozen=True)
class RadarConfig(SensorConfig):
    """Radar with a target list: it tracks what it detects above the water at each scan. `rate` is the scan rate."""

    rate: float = key("Scans per second.", "frequency", 1.0 / 2.4, low=0.01, high=10.0)
    position: Vector = key("Position of the antenna on the body.", "length", (0.0, 0.0, -4.0), count=3)
    minimum: float = key("Minimum detection range.", "length", 20.0, low=0.0)
    maximum: float = key("Maximum detection range.", "length", 22224.0, low=1.0)
    range_sigma: float = key("Standard deviation of a range.", "length", 10.0, low=0.0)
    bearing_sigma: float = key("Standard deviation of a bearing.", "angle", 0.005235987755982988, low=0.0)
    detection: float = key("Probability that a scan detects a visible target.", default=0.95, low=0.0, high=1.0)
    false_echoes: float = key(
        "Mean number of false echoes per scan. They appear anywhere within half the maximum range.",
        default=0.0,
        low=0.0,
        high=8.0,
    )
    trend: float = key("Time after which a new track reports course and speed.", "time", 60.0, low=0.0)
    memory: int = key(
        "Maximum number of scans used to compute the course and speed of a track. More scans give steadier values.",
        default=100, low=3, high=1000, integer=True,
    )  # fmt: skip


@dataclass(frozen=True)
class AisConfig(SensorConfig):
    """AIS station. It sends reports at the intervals of its class and lists the latest reports received, its own
    first.

    With `noise` 0, positions have no errors.
    """

    rate: float = key(
        "Rate at which the list is updated. A report is sent with the first value at or after its due time.",
        "frequency",
        5.0,
        low=0.01,
        high=1000.0,
    )
    position: Vector = key("Position of the antenna on the body.", "length", (0.0, 0.0, -4.0), count=3)
    station: str = choice(
        "Class of the station. mark: an aid to navigation that stays where it is. receiver: sends nothing.",
        ("A", "B", "B-SO", "mark", "receiver"),
        "A",
    )
    mmsi: int = key("MMSI of the station, nine digits.", low=1, high=999_999_999, integer=True)
    called: str = text("Name that the station sends, up to twenty characters. Empty: the name of the body.", "")
    kind: int = key(
        "Type of ship (36 sailing, 52 tug, 70 cargo ...) or of mark.", default=0, low=0, high=99, integer=True
    )
    status: int = key(
        "Navigational status: 0 under way, 1 at anchor, 5 moored ...", default=0, low=0, high=15, integer=True
    )
    turning: float = key(
        "Rate of turn from which the station counts as turning.", "angular rate", 0.008726646259971648, low=0.0
    )
    sigma: float = key("Standard deviation of each coordinate of a received position.", "length", 3.0, low=0.0)
    maximum: float = key(
        "Maximum range of reception. Stations beyond the radio horizon of the antennas are not received either.",
        "length",
        74080.0,
        low=1.0,
    )
    loss: float = key("Probability that a report is not received.", default=0.0, low=0.0, high=1.0)


@dataclass(frozen=True)
class Parameter:
    """Parameter of a sensor that another package provides."""

    name: str = text("Name of the parameter.")
    value: str = text("Value of the parameter. The emulator of the sensor reads it.")


@dataclass(frozen=True)
class OtherSensorConfig(SensorConfig):
    """Sensor that another package provides (entry points wavesim.sensors and wavesim.emulators)."""

    type: str = text("Type of the sensor: the name under which its package registers it.")
    parameter: tuple[Parameter, ...] = children(Parameter, "A parameter.")


@dataclass(frozen=True)
class InstrumentConfig:
    """One instrument of a body: its name there, its type, its declaration, and the table of its values."""

    name: str
    type: str
    parameters: SensorConfig
    table: Table

    @functools.cached_property
    def batch_key(self) -> tuple[str, SensorConfig]:
        """Type and parameters without name, position, attitude and noise. Instruments with equal keys are computed in
        one pass.
        """
        alike = replace(self.parameters, name="", position=(0.0, 0.0, 0.0), attitude=(0.0, 0.0, 0.0), noise=1.0)
        return self.type, alike

    def __str__(self) -> str:
        """Describe the instrument for people: its name, its type if that differs, its rate."""
        return f"{self.name}{'' if self.name == self.type else f' ({self.type})'} {self.parameters.rate:g} Hz"

    @property
    def as_dict(self) -> dict[str, Any]:
        """The description as plain data."""
        return {"name": self.name, "type": self.type, "rate_hz": self.parameters.rate}

    def period(self, step: float) -> int:
        """Number of ticks of length ``step`` (s) from one value to the next."""
        return max(1, round(1.0 / self.parameters.rate / step))


@dataclass(frozen=True)
class SensorsConfig:
    """Instruments: any number of each type.

    An instrument of a vehicle replaces one of the same name from its model or the fleet; an instrument of a model
    replaces one of the same name from the fleet.
    """

    inherit: bool = flag("Whether the instruments of the model and the fleet are kept. no: they are left out.", True)
    ctd: tuple[SensorConfig, ...] = children(SensorConfig, "CTD: pressure, temperature, conductivity, salinity.")
    pressure: tuple[SensorConfig, ...] = children(SensorConfig, "Pressure sensor: pressure and depth.")
    temperature: tuple[SensorConfig, ...] = children(SensorConfig, "Thermometer.")
    conductivity: tuple[SensorConfig, ...] = children(SensorConfig, "Conductivity cell.")
    salinity: tuple[SensorConfig, ...] = children(SensorConfig, "Salinometer: practical salinity.")
    scalar: tuple[SensorConfig, ...] = children(SensorConfig, "Sensor of other quantities of the water.")
    sound_velocity: tuple[SensorConfig, ...] = children(SensorConfig, "Sound velocity probe.")
    echosounder: tuple[EchosounderConfig, ...] = children(EchosounderConfig, "Echosounder: distance to the bottom.")
    ranger: tuple[RangerConfig, ...] = children(RangerConfig, "Ranger: fixed range beams.")
    scanner: tuple[ScannerConfig, ...] = children(ScannerConfig, "Scanner: a rotating pencil beam.")
    multibeam: tuple[MultibeamConfig, ...] = children(MultibeamConfig, "Multibeam: a fan of range beams.")
    sonar: tuple[SonarConfig, ...] = children(SonarConfig, "Imaging sonar.")
    camera: tuple[CameraConfig, ...] = children(CameraConfig, "Underwater camera.")
    imu: tuple[ImuConfig, ...] = children(ImuConfig, "Inertial measurement unit: specific force and angular rates.")
    ahrs: tuple[SensorConfig, ...] = children(
        SensorConfig, "Attitude and heading reference: roll, pitch, heading, angular rates."
    )
    magnetometer: tuple[MagnetometerConfig, ...] = children(
        MagnetometerConfig, "Magnetometer: the magnetic fields of the earth and of the vehicle."
    )
    gps: tuple[GpsConfig, ...] = children(GpsConfig, "Satellite receiver.")
    uwb: tuple[UwbConfig, ...] = children(UwbConfig, "Ultra-wideband position.")
    dvl: tuple[DvlConfig, ...] = children(DvlConfig, "Doppler velocity log.")
    adcp: tuple[AdcpConfig, ...] = children(
        AdcpConfig, "Acoustic Doppler current profiler: profile of the flow in cells."
    )
    speedlog: tuple[SensorConfig, ...] = children(SensorConfig, "Speed log: speed through the water.")
    anemometer: tuple[AnemometerConfig, ...] = children(AnemometerConfig, "Anemometer: apparent wind.")
    encoder: tuple[SensorConfig, ...] = children(SensorConfig, "Encoder: actual values of the actuators.")
    rpm: tuple[RpmConfig, ...] = children(RpmConfig, "Speed of the propellers.")
    leak: tuple[LeakConfig, ...] = children(LeakConfig, "Leak detectors.")
    battery: tuple[BatteryConfig, ...] = children(BatteryConfig, "Battery.")
    navigation: tuple[SensorConfig, ...] = children(
        SensorConfig, "Reference for navigation: true pose, velocity, acceleration."
    )
    radar: tuple[RadarConfig, ...] = children(RadarConfig, "Radar: target list.")
    ais: tuple[AisConfig, ...] = children(AisConfig, "AIS station.")
    sensor: tuple[OtherSensorConfig, ...] = children(OtherSensorConfig, "Sensor that another package provides.")
    place: str = place()

    @functools.cached_property
    def declared(self) -> tuple[tuple[str, SensorConfig], ...]:
        """(type, declaration) of each instrument, in document order."""
        found: list[tuple[str, SensorConfig]] = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "sensor":
                found += [(s.type, s) for s in value]
            elif isinstance(value, tuple):
                found += [(f.name, s) for s in value]
        return tuple(sorted(found, key=lambda entry: entry[1].order))

    @functools.cached_property
    def instruments(self) -> tuple[InstrumentConfig, ...]:
        """The instruments declared here. Raises ConfigError if a type is unknown."""
        return tuple(InstrumentConfig(s.name or type_, type_, s, sensor_table_of(type_)) for type_, s in self.declared)
