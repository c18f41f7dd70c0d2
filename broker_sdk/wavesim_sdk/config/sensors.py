"""The declaration of instruments: what a model, a vehicle or a whole fleet carries."""

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
    """Distance to the bottom and to obstacles: the least within its cone."""

    level: bool = flag("yes: straight down whatever the attitude, as in the paper; no: along the z axis of S.", True)
    maximum: float = key("Beyond this range the value is invalid.", "length", 200.0, low=0.1)
    minimum: float = key("Nearer than this the value is invalid.", "length", 0.0, low=0.0)
    width: float = key("Full angle of the cone; 0 = a single ray.", "angle", 0.0, low=0.0, high=2.0)


@dataclass(frozen=True)
class RangeBeam:
    """A beam of an instrument that has several: its direction, and where it leaves."""

    azimuth: float = key("From the x axis of S to its y axis.", "angle", 0.0)
    elevation: float = key("Down from the x-y plane of S.", "angle", 0.0)
    position: Vector = key("Where it starts, in S.", "length", (0.0, 0.0, 0.0), count=3)

    @property
    def direction(self) -> Vector:
        """Unit vector in S."""
        (down, level), (east, north) = sin_cos(self.elevation), sin_cos(self.azimuth)
        return level * north, level * east, down


@dataclass(frozen=True)
class RangerConfig(SensorConfig):
    """Up to eight fixed beams; without any: one ahead. They see obstacles, the bottom and the surface."""

    maximum: float = key("Greatest range.", "length", 50.0, low=0.1)
    sigma: float = key("Standard deviation of a range.", "length", 0.02, low=0.0)
    beam: tuple[RangeBeam, ...] = children(RangeBeam, "A beam.")


@dataclass(frozen=True)
class ScannerConfig(SensorConfig):
    """One pencil beam that turns in the x-y plane of S, by a step with each value."""

    maximum: float = key("Greatest range.", "length", 50.0, low=0.1)
    sigma: float = key("Standard deviation of a range.", "length", 0.02, low=0.0)
    first: float = key("First angle.", "angle", -3.141592653589793)
    last: float = key("Last angle; then it starts again.", "angle", 3.141592653589793)
    step: float = key("Angle per value.", "angle", 0.031415926535, low=1e-4)


@dataclass(frozen=True)
class MultibeamConfig(SensorConfig):
    """A fan of beams in the y-z plane of S, or up to 256 beams of any place and direction."""

    beams: int = key("Number of beams.", default=64, low=2, high=256, integer=True)
    width: float = key("Full angle of the fan.", "angle", 2.0943951023931953, low=0.01, high=3.1)
    maximum: float = key("Greatest range.", "length", 150.0, low=0.1)
    sigma: float = key("Standard deviation of a range.", "length", 0.05, low=0.0)
    beam: tuple[RangeBeam, ...] = children(RangeBeam, "A beam; with one or more the fan is left out.")


@dataclass(frozen=True)
class SonarConfig(SensorConfig):
    """An imaging sonar, by the name of an instrument (`wavesim sonars` lists them); S has x ahead, y to starboard, z down. A ping is
    complete at the times of its rate, and was sent twice its range over the speed of sound before."""

    rate: float = key("Pings per second; at most c/(2 range).", "frequency", 5.0, low=0.01, high=1000.0)
    preset: str = text("The instrument.")
    range: float = key("Greatest range; without it the instrument's usual one.", "length", 0.0, low=0.01)
    bins: int = key(
        "Samples over the range; without it by the instrument's resolution, at most 2000.",
        default=0,
        low=1,
        high=8192,
        integer=True,
    )
    beams: int = key("Number of beams; without it the instrument's.", default=0, low=1, high=1024, integer=True)
    sector: float = key("Full angle; 0 = the instrument's.", "angle", 0.0, low=0.0, high=6.283185307179586)
    tilt: float = key(
        "Of its axis below the x-y plane of S; -1 rad = the instrument's.", "angle", -1.0, low=-1.6, high=1.6
    )
    gain: float = key("Fixed gain in dB.", default=0.0, low=-200.0, high=200.0)
    tvg: float = key("X of the gain X log r + 2 alpha r.", default=30.0, low=0.0, high=60.0)
    hold: float = key("Range from which the gain no longer grows; 0 = never.", "length", 0.0, low=0.0)
    floor: float = key("Level after gain in dB that becomes 0.", default=110.0)
    span: float = key("dB from 0 to the greatest number.", default=66.0, low=1.0, high=200.0)
    bits: int = key("Of a sample: 8 or 16.", default=8, low=8, high=16, integer=True)
    volume: float = key(
        "Scattering strength of the water in dB: -90 clear, -60 in a wake.", default=-90.0, low=-300.0, high=0.0
    )
    speckle: bool = flag("Whether levels fluctuate as of many small scatterers.", True)
    log: int = key(
        "Every so manieth frame goes into the log, if there is one; 0 = none.",
        default=1,
        low=0,
        high=1_000_000,
        integer=True,
    )
    truth: bool = flag("Whether each sample tells the material and object behind it.", False)
    stabilised: bool = flag("A multibeam echosounder: beams held against roll up to 10 deg.", True)
    equidistant: bool = flag("A multibeam echosounder: soundings at equal steps across instead of equal angles.", False)
    assumed_speed: float = key(
        "A multibeam echosounder: speed of sound believed at the array; 0 = the true one.", "speed", 0.0, low=0.0
    )


@dataclass(frozen=True)
class CameraConfig(SensorConfig):
    """A camera under water, traced on the processor: light and water are those of `<optics>`. S has x ahead, y to the right of the
    picture, z down it. Above the water it sees nothing."""

    rate: float = key("Pictures per second.", "frequency", 5.0, low=0.01, high=1000.0)
    width: int = key("Pixels of a row.", default=320, low=16, high=1024, integer=True)
    height: int = key("Rows.", default=240, low=16, high=1024, integer=True)
    view: float = key(
        "Horizontal field of view without distortion: half the width is f tan(view/2).",
        "angle",
        1.0472,
        low=0.05,
        high=2.6,
    )
    distortion: Vector = key(
        "k1, k2: a point at r focal lengths from the middle is seen at r (1 + k1 r2 + k2 r4).",
        default=(0.0, 0.0),
        count=2,
        low=-1.0,
        high=1.0,
    )
    range: float = key("What is farther away is water.", "length", 20.0, low=0.1, high=200.0)
    lamp: float = key(
        "Light of its lamp on a surface 1 m away; daylight at the surface is 1. 0 = no lamp.", default=0.0, low=0.0
    )
    lamp_position: Vector = key("Where the lamp sits, in S.", "length", (0.0, 0.0, -0.2), count=3)
    exposure: float = key(
        "Share of full scale that light of 1 gives; 0 = for each picture so that 1 in 50 of its numbers is above 0.9.",
        default=0.0,
        low=0.0,
    )
    gamma: float = key("A number is 255 share^(1/gamma).", default=2.2, low=0.2, high=5.0)
    electrons: float = key("Of full scale: shot noise has the root of a number of electrons.", default=10000.0, low=1.0)
    read_noise: float = key("Electrons, standard deviation.", default=8.0, low=0.0)
    depth: bool = flag("Whether the true depth of each pixel comes with it.", False)
    log: int = key(
        "Every so manieth picture goes into the log, if there is one; 0 = none.",
        default=0,
        low=0,
        high=1_000_000,
        integer=True,
    )


@dataclass(frozen=True)
class ImuConfig(SensorConfig):
    """Errors of each axis, in SI units: white noise, bias (turned on, unstable, walking), scale factors, misalignment, steps.
    `grade` gives those that are not written beside it, of one instrument each."""

    grade: str = choice(
        "mems: the defaults below (a MEMS unit as robots carry it). tactical: Sensonor STIM300. navigation: Honeywell HG9900.",
        ("mems", "tactical", "navigation"),
        "mems",
    )
    gyro_noise: float = key("Angular random walk, rad/s/sqrt(Hz).", default=3.394e-4, low=0.0)
    gyro_walk: float = key("Random walk of the bias, rad/s2/sqrt(Hz).", default=3.8785e-5, low=0.0)
    gyro_turn_on: float = key("Bias from start to start, standard deviation, rad/s.", default=0.0087, low=0.0)
    gyro_instability: float = key("Bias instability: the height of its Allan deviation, rad/s.", default=0.0, low=0.0)
    gyro_scale: float = key("Error of the scale factor, standard deviation.", "drift", 0.0, low=0.0)
    gyro_step: float = key("Step of the angle that it counts; 0 = none.", "angle", 0.0, low=0.0)
    accelerometer_noise: float = key("Velocity random walk, m/s2/sqrt(Hz).", default=0.004, low=0.0)
    accelerometer_walk: float = key("m/s3/sqrt(Hz).", default=0.006, low=0.0)
    accelerometer_turn_on: float = key("Standard deviation, m/s2.", default=0.196, low=0.0)
    accelerometer_instability: float = key("Height of its Allan deviation, m/s2.", default=0.0, low=0.0)
    accelerometer_scale: float = key("Standard deviation.", "drift", 0.0, low=0.0)
    accelerometer_step: float = key("Step of the velocity that it counts; 0 = none.", "speed", 0.0, low=0.0)
    instability_time: float = key("Correlation time of the unstable part of the biases.", "time", 300.0, low=0.1)
    misalignment: float = key("Of each axis towards each other, standard deviation.", "angle", 0.0, low=0.0)
    earth: bool = flag("Whether the earth turns: its rate, and the Coriolis acceleration of what moves on it.", False)

    @functools.cached_property
    def resolved(self) -> ImuConfig:
        """With the values of its grade for those that stand at their defaults."""
        standing = {f.name for f in fields(ImuConfig) if getattr(self, f.name) == f.default}
        return replace(self, **{k: v for k, v in IMU_GRADES[self.grade].items() if k in standing})


#: data sheets in SI units. STIM300 (10 g): 0.15 deg/sqrt(h), 0.5 deg/h, 5 deg/h over temperature, 500 ppm; 0.06 m/s/sqrt(h),
#: 0.05 mg, 0.75 mg from start to start, 300 ppm; 1 mrad. HG9900: 0.002 deg/sqrt(h), 0.0035 deg/h, 5 ppm; 25 ug, 100 ppm; its
#: sheet has no velocity random walk, instability or misalignment: 5 ug/sqrt(Hz), a third of the biases, 20 urad are assumed.
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


#: length of the mast of a model that has no other place for what must be above the water, by the model's type
MAST_M = {"surface": 1.0, "buoy": 0.5, "underwater": 0.25}
MAST = "mast"  #: stands for the place at its top


def aerial(what: str) -> Any:
    """The place of an instrument that works above the water alone."""
    return key_or_word(
        MAST,
        f"{what} on the body. `{MAST}`: over the middle of the hull, on a mast upon its highest point, "
        f"{MAST_M['surface']:g} m long on a surface vessel, {MAST_M['buoy']:g} m on a buoy, {MAST_M['underwater']:g} m on an underwater vehicle.",
        "length", MAST, count=3,
    )  # fmt: skip


@dataclass(frozen=True)
class GpsConfig(SensorConfig):
    """Fix while the antenna is above the water."""

    position: Any = aerial("Where its antenna is")
    hacc: float = key("Standard deviation of the horizontal position.", "length", 2.0, low=0.0)
    vacc: float = key("Of the height.", "length", 3.0, low=0.0)
    speed_sigma: float = key("Of each component of the velocity.", "speed", 0.05, low=0.0)
    correlation: float = key("Time constant of the position's errors; 0 = white.", "time", 60.0, low=0.0)
    hdop: float = key("Horizontal dilution of precision.", default=0.9, low=0.1)
    satellites: int = key("In use.", default=9, low=0, high=64, integer=True)


@dataclass(frozen=True)
class UwbConfig(SensorConfig):
    """Position above water from a local network."""

    position: Any = aerial("Where its antenna is")
    sigma: float = key("Standard deviation of each coordinate.", "length", 0.1, low=0.0)


@dataclass(frozen=True)
class DvlConfig(SensorConfig):
    """Four Janus beams around the z axis of S, the first at `first` from x to y; or three or four beams of any place and
    direction."""

    rate: float = key("How often it computes its values.", "frequency", 7.0, low=0.01, high=1000.0)
    angle: float = key("Of the beams from the z axis.", "angle", 0.5235987755982988, low=0.05, high=1.2)
    first: float = key("Azimuth of the first beam.", "angle", 0.7853981633974483)
    radius: float = key("The beams start on a circle of this radius around the origin of S.", "length", 0.0, low=0.0)
    minimum: float = key("Least range of bottom lock.", "length", 0.7, low=0.0)
    maximum: float = key("Greatest range of bottom lock.", "length", 90.0, low=0.1)
    bottom_sigma: float = key("Noise of a beam over the bottom.", "speed", 0.005, low=0.0)
    water_sigma: float = key("Noise of a beam in the water.", "speed", 0.0075, low=0.0)
    beam_drop_out: float = key("Probability that a beam drops out.", default=0.0, low=0.0, high=1.0)
    beam: tuple[RangeBeam, ...] = children(RangeBeam, "A beam, instead of the Janus beams.")


@dataclass(frozen=True)
class RpmConfig(SensorConfig):
    """Propeller speeds from the pulses of the time since the last value."""

    pulses: int = key("Pulses per revolution; 0 = not counted, exact.", default=16, low=0, high=10000, integer=True)


@dataclass(frozen=True)
class LeakConfig(SensorConfig):
    """Leak detectors: dry, until the fault `wet` names a compartment."""

    compartments: str = text("Up to four names, with blanks between.", "bow battery electronics stern")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the compartments."""
        return tuple(self.compartments.split())


@dataclass(frozen=True)
class AnemometerConfig(SensorConfig):
    """Apparent wind at its height."""

    position: Any = aerial("Where it is")
    speed_sigma: float = key("Standard deviation of the speed.", "speed", 0.2, low=0.0)
    angle_sigma: float = key("Standard deviation of the angle.", "angle", 0.035, low=0.0)


@dataclass(frozen=True)
class BatteryConfig(SensorConfig):
    """A battery that hotel load and thrusters drain. A thruster whose command is a force takes power with the thrust to 1.5
    (an ideal propeller at rest), one whose command is a shaft speed with its cube (2 pi rho D^5 KQ n^3)."""

    capacity: float = key("Capacity in W h.", default=500.0, low=0.001)
    voltage: float = key("Open-circuit voltage when full.", default=28.8, low=0.1)
    empty: float = key("Open-circuit voltage when empty.", default=22.0, low=0.1)
    resistance: float = key("Internal resistance in ohm.", default=0.05, low=0.0)
    hotel: float = key("Hotel load in W.", default=20.0, low=0.0)
    per_thrust: float = key('W per N^1.5 of thrust, of thrusters with law="force".', default=0.6, low=0.0)
    per_shaft: float = key('W per (1/s)^3 of shaft speed, of thrusters with law="shaft".', default=0.015, low=0.0)


@dataclass(frozen=True)
class RadarConfig(SensorConfig):
    """A radar's target list: what it sees above the water at each scan, followed as tracks. `rate`: scans."""

    rate: float = key("Scans per second.", "frequency", 1.0 / 2.4, low=0.01, high=10.0)
    position: Vector = key("Where its antenna is on the body.", "length", (0.0, 0.0, -4.0), count=3)
    minimum: float = key("Nearer than this it sees nothing.", "length", 20.0, low=0.0)
    maximum: float = key("Beyond this it sees nothing.", "length", 22224.0, low=1.0)
    range_sigma: float = key("Standard deviation of a range.", "length", 10.0, low=0.0)
    bearing_sigma: float = key("Standard deviation of a bearing.", "angle", 0.005235987755982988, low=0.0)
    detection: float = key("Probability that a scan shows a target in sight.", default=0.95, low=0.0, high=1.0)
    false_echoes: float = key(
        "False echoes per scan, on average, anywhere within half its range.", default=0.0, low=0.0, high=8.0
    )
    trend: float = key("A new track tells course and speed after this time.", "time", 60.0, low=0.0)
    memory: int = key(
        "Scans that a track's course and speed are made of, as long as it keeps them; more are steadier.",
        default=100, low=3, high=1000, integer=True,
    )  # fmt: skip


@dataclass(frozen=True)
class AisConfig(SensorConfig):
    """An AIS station: it sends reports at the intervals of its class, and lists the newest of those it received, its own first.
    `noise` 0: positions without errors."""

    rate: float = key(
        "How often the list is renewed; a report goes out at the first value at or after its time.",
        "frequency",
        5.0,
        low=0.01,
        high=1000.0,
    )
    position: Vector = key("Where its antenna is on the body.", "length", (0.0, 0.0, -4.0), count=3)
    station: str = choice(
        "Its class; a mark stays where it is, a receiver sends nothing.", ("A", "B", "B-SO", "mark", "receiver"), "A"
    )
    mmsi: int = key("Number of the station, nine digits.", low=1, high=999_999_999, integer=True)
    called: str = text("Name that it sends, up to twenty characters; empty: that of the body.", "")
    kind: int = key(
        "Type of ship (36 sailing, 52 tug, 70 cargo ...), or of mark.", default=0, low=0, high=99, integer=True
    )
    status: int = key(
        "Navigational status: 0 under way, 1 at anchor, 5 moored ...", default=0, low=0, high=15, integer=True
    )
    turning: float = key("It counts as turning from this rate on.", "angular rate", 0.008726646259971648, low=0.0)
    sigma: float = key(
        "Standard deviation of each coordinate of a reported place, as received.", "length", 3.0, low=0.0
    )
    maximum: float = key(
        "Farther stations are not received; nor are those beyond the horizon of the antennas.",
        "length",
        74080.0,
        low=1.0,
    )
    loss: float = key("Probability that a report is not received.", default=0.0, low=0.0, high=1.0)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a sensor of another package."""

    name: str = text("Its name.")
    value: str = text("Its value; the sensor's emulator reads it.")


@dataclass(frozen=True)
class OtherSensorConfig(SensorConfig):
    """A sensor that another package offers (entry points wavesim.sensors and wavesim.emulators)."""

    type: str = text("Its type: the name under which its package offers it.")
    parameter: tuple[Parameter, ...] = children(Parameter, "A parameter.")


@dataclass(frozen=True)
class InstrumentConfig:
    """One instrument of a body: its name there, its type, how it is declared, the table of its type's values."""

    name: str
    type: str
    parameters: SensorConfig
    table: Table

    @functools.cached_property
    def batch_key(self) -> tuple[str, SensorConfig]:
        """Type and parameters without name, place, attitude and noise: equal for instruments that are computed in one pass."""
        alike = replace(self.parameters, name="", position=(0.0, 0.0, 0.0), attitude=(0.0, 0.0, 0.0), noise=1.0)
        return self.type, alike

    def __str__(self) -> str:
        """For people: its name, its type if that is another word, how often it speaks."""
        return f"{self.name}{'' if self.name == self.type else f' ({self.type})'} {self.parameters.rate:g} Hz"

    @property
    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"name": self.name, "type": self.type, "rate_hz": self.parameters.rate}

    def period(self, step: float) -> int:
        """Ticks of this length in s from one value to the next."""
        return max(1, round(1.0 / self.parameters.rate / step))


@dataclass(frozen=True)
class SensorsConfig:
    """Instruments: any number of each type. An entry of a vehicle takes the place of one of the same name that its model or the
    fleet gives; an entry of the model that of the fleet's."""

    inherit: bool = flag("no: those that the model and the fleet give are left out.", True)
    ctd: tuple[SensorConfig, ...] = children(SensorConfig, "Pressure, temperature, conductivity, salinity.")
    pressure: tuple[SensorConfig, ...] = children(SensorConfig, "Pressure and depth.")
    temperature: tuple[SensorConfig, ...] = children(SensorConfig, "Temperature.")
    conductivity: tuple[SensorConfig, ...] = children(SensorConfig, "Conductivity.")
    salinity: tuple[SensorConfig, ...] = children(SensorConfig, "Practical salinity.")
    scalar: tuple[SensorConfig, ...] = children(SensorConfig, "Other quantities of the water.")
    sound_velocity: tuple[SensorConfig, ...] = children(SensorConfig, "Speed of sound.")
    echosounder: tuple[EchosounderConfig, ...] = children(EchosounderConfig, "Distance to the bottom.")
    ranger: tuple[RangerConfig, ...] = children(RangerConfig, "Fixed range beams.")
    scanner: tuple[ScannerConfig, ...] = children(ScannerConfig, "Scanning pencil beam.")
    multibeam: tuple[MultibeamConfig, ...] = children(MultibeamConfig, "Fan of beams.")
    sonar: tuple[SonarConfig, ...] = children(SonarConfig, "Imaging sonar.")
    camera: tuple[CameraConfig, ...] = children(CameraConfig, "Camera.")
    imu: tuple[ImuConfig, ...] = children(ImuConfig, "Specific force and angular rates.")
    ahrs: tuple[SensorConfig, ...] = children(SensorConfig, "Roll, pitch, heading and angular rates.")
    magnetometer: tuple[MagnetometerConfig, ...] = children(
        MagnetometerConfig, "The earth's magnetic field, and the vehicle's own."
    )
    gps: tuple[GpsConfig, ...] = children(GpsConfig, "Satellite receiver.")
    uwb: tuple[UwbConfig, ...] = children(UwbConfig, "Ultra-wideband position.")
    dvl: tuple[DvlConfig, ...] = children(DvlConfig, "Doppler velocity log.")
    adcp: tuple[AdcpConfig, ...] = children(AdcpConfig, "Profile of the flow by cells.")
    speedlog: tuple[SensorConfig, ...] = children(SensorConfig, "Speed through water.")
    anemometer: tuple[AnemometerConfig, ...] = children(AnemometerConfig, "Apparent wind.")
    encoder: tuple[SensorConfig, ...] = children(SensorConfig, "Actuators.")
    rpm: tuple[RpmConfig, ...] = children(RpmConfig, "Speed of the propellers.")
    leak: tuple[LeakConfig, ...] = children(LeakConfig, "Leak detectors.")
    battery: tuple[BatteryConfig, ...] = children(BatteryConfig, "Battery.")
    navigation: tuple[SensorConfig, ...] = children(SensorConfig, "Pose, velocity, acceleration.")
    radar: tuple[RadarConfig, ...] = children(RadarConfig, "Target list of a radar.")
    ais: tuple[AisConfig, ...] = children(AisConfig, "AIS station.")
    sensor: tuple[OtherSensorConfig, ...] = children(OtherSensorConfig, "A sensor of another package.")
    place: str = place()

    @functools.cached_property
    def declared(self) -> tuple[tuple[str, SensorConfig], ...]:
        """(type, declaration) of each, as they stand in the document."""
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
        """Those declared here. ConfigError where a type is unknown."""
        return tuple(InstrumentConfig(s.name or type_, type_, s, sensor_table_of(type_)) for type_, s in self.declared)
