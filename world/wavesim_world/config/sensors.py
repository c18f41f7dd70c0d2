"""Declarations of the instruments that a model, a vehicle or the whole fleet carries."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.tables import Table
from wavesim_world.config.adcp import AdcpConfig
from wavesim_world.config.hydrophone import HydrophoneArrayConfig
from wavesim_world.config.lidar import LidarConfig
from wavesim_world.config.magnetometer import MagnetometerConfig
from wavesim_world.config.motion_sensors import IMU_GRADES as IMU_GRADES
from wavesim_world.config.motion_sensors import AhrsConfig as AhrsConfig
from wavesim_world.config.motion_sensors import EncoderConfig as EncoderConfig
from wavesim_world.config.motion_sensors import ImuConfig as ImuConfig
from wavesim_world.config.motion_sensors import SpeedLogConfig as SpeedLogConfig
from wavesim_world.config.ranging_sensors import (
    CameraConfig,
    EchosounderConfig,
    MultibeamConfig,
    RangeBeam,
    RangerConfig,
    ScannerConfig,
    SonarConfig,
)
from wavesim_world.config.schema import Vector, children, choice, flag, key, key_or_word, place, text
from wavesim_world.config.sensor_base import SensorConfig as SensorConfig
from wavesim_world.config.sensor_base import covariance

#: default height of the mast in m, by model type; the mast carries instruments that must be above the water
MAST_M = {"surface": 1.0, "buoy": 0.5, "underwater": 0.25, "aircraft": 0.0}
MAST = "mast"  #: keyword for a position at the top of the mast


def aerial(what: str) -> Any:
    """Declare a key for the position of an instrument that works only above the water."""
    return key_or_word(
        MAST,
        f"{what} in the body frame. `{MAST}`: on a mast above the centre of the hull, mounted on its highest point. The mast is "
        f"{MAST_M['surface']:g} m high on a surface vessel, {MAST_M['buoy']:g} m on a buoy, {MAST_M['underwater']:g} m on an underwater vehicle; an aircraft has none.",
        "length",
        MAST,
        count=3,
    )


@dataclass(frozen=True)
class GpsConfig(SensorConfig):
    """Satellite navigation receiver. It has a fix while its antenna is above the water."""

    position: Any = aerial("Position of the antenna")
    hacc: float = key("Standard deviation of the horizontal position error.", "length", 2.0, low=0.0)
    vacc: float = key("Standard deviation of the height error.", "length", 3.0, low=0.0)
    speed_sigma: float = key("Standard deviation of the error in each velocity component.", "speed", 0.05, low=0.0)
    correlation: float = key("Time constant of the receiver's position error; 0 = white noise.", "time", 60.0, low=0.0)
    position_covariance: Vector = covariance("the position", "north, east, down, m2", "`hacc` and `vacc`")
    velocity_covariance: Vector = covariance("the velocity", "north, east, down, (m/s)2", "`speed_sigma`")
    hdop: float = key("Horizontal dilution of precision (HDOP) that the receiver reports.", default=0.9, low=0.1)
    satellites: int = key(
        "Number of satellites that the receiver reports as in use.", default=9, low=0, high=64, integer=True
    )


@dataclass(frozen=True)
class UwbConfig(SensorConfig):
    """Position from a local ultra-wideband network, available only above the water."""

    position: Any = aerial("Position of the antenna")
    sigma: float = key("Standard deviation of the error in each position coordinate.", "length", 0.1, low=0.0)
    position_covariance: Vector = covariance("the position", "north, east, down, m2", "`sigma`")


@dataclass(frozen=True)
class DvlConfig(SensorConfig):
    """Doppler velocity log. It has four Janus beams around the z axis of the sensor frame S, or three or four beams
    with any positions and directions.

    The first Janus beam is at the azimuth `first`, measured from the x axis of the sensor frame S towards its y axis.
    """

    rate: float = key(
        "Rate at which the Doppler velocity log computes values.", "frequency", 7.0, low=0.01, high=1000.0
    )
    angle: float = key(
        "Angle between each Janus beam and the z axis of the sensor frame S.",
        "angle",
        0.5235987755982988,
        low=0.05,
        high=1.2,
    )
    first: float = key(
        "Azimuth of the first Janus beam, from the x axis of the sensor frame S towards its y axis.",
        "angle",
        0.7853981633974483,
    )
    radius: float = key(
        "Radius of the circle on which the Janus beams start. Its centre is the origin of the sensor frame S.",
        "length",
        0.0,
        low=0.0,
    )
    minimum: float = key("Minimum range at which a beam locks on to the bottom.", "length", 0.7, low=0.0)
    maximum: float = key("Maximum range at which a beam locks on to the bottom.", "length", 90.0, low=0.1)
    bottom_sigma: float = key(
        "Standard deviation of the velocity noise of a beam that tracks the bottom.", "speed", 0.005, low=0.0
    )
    water_sigma: float = key(
        "Standard deviation of the velocity noise of a beam that tracks the water.", "speed", 0.0075, low=0.0
    )
    bottom_covariance: Vector = covariance("the velocity over the bottom", "frame S, (m/s)2", "`bottom_sigma`")
    water_covariance: Vector = covariance("the velocity through the water", "frame S, (m/s)2", "`water_sigma`")
    beam_drop_out: float = key(
        "Probability that a beam of the Doppler velocity log is missing from a measurement.",
        default=0.0,
        low=0.0,
        high=1.0,
    )
    beam: tuple[RangeBeam, ...] = children(
        RangeBeam, "Beam with its own position and direction. If there are custom beams, the Janus beams are omitted."
    )


@dataclass(frozen=True)
class RpmConfig(SensorConfig):
    """Propeller speeds, from the pulses counted since the previous value."""

    pulses: int = key(
        "Number of pulses per propeller revolution; 0 = report the exact speed without counting pulses.",
        default=16,
        low=0,
        high=10000,
        integer=True,
    )


@dataclass(frozen=True)
class LeakConfig(SensorConfig):
    """Leak detectors in the compartments of the body. A compartment is dry until a `wet` fault is injected for it."""

    compartments: str = text(
        "Names of the compartments with a leak detector: up to four, separated by spaces.",
        "bow battery electronics stern",
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the compartments."""
        return tuple(self.compartments.split())


@dataclass(frozen=True)
class AnemometerConfig(SensorConfig):
    """Anemometer: apparent wind at the height of the instrument."""

    position: Any = aerial("Position of the instrument")
    speed_sigma: float = key("Standard deviation of the wind speed error.", "speed", 0.2, low=0.0)
    angle_sigma: float = key("Standard deviation of the wind angle error.", "angle", 0.035, low=0.0)


@dataclass(frozen=True)
class BatteryConfig(SensorConfig):
    """Battery that supplies the hotel load and the thrusters.

    A thruster with a force command draws power in proportion to thrust^1.5, like an ideal propeller at zero speed. A
    thruster with a shaft speed command n draws power in proportion to n^3. This follows from the power of a propeller,
    2 pi rho D^5 KQ n^3.
    """

    capacity: float = key("Capacity of the battery in W h.", default=500.0, low=0.001)
    voltage: float = key("Open-circuit voltage of the full battery, in V.", default=28.8, low=0.1)
    empty: float = key("Open-circuit voltage of the empty battery, in V.", default=22.0, low=0.1)
    resistance: float = key("Internal resistance of the battery in ohm.", default=0.05, low=0.0)
    hotel: float = key("Hotel load: constant power that the body draws from the battery, in W.", default=20.0, low=0.0)
    per_thrust: float = key(
        'Factor for the power that a thruster with law="force" draws: power = factor * thrust^1.5. The unit is W/N^1.5.',
        default=0.6,
        low=0.0,
    )
    per_shaft: float = key(
        'Factor for the power that a thruster with law="shaft" draws: power = factor * n^3, where n is the shaft '
        "speed in 1/s. The unit is W s^3.",
        default=0.015,
        low=0.0,
    )


@dataclass(frozen=True)
class RadarConfig(SensorConfig):
    """Radar with a target list. At each scan, it detects targets above the water and updates their tracks. `rate` is
    the scan rate.
    """

    rate: float = key("Number of radar scans per second.", "frequency", 1.0 / 2.4, low=0.01, high=10.0)
    position: Vector = key(
        "Position of the radar antenna on the body (forward, starboard, down).", "length", (0.0, 0.0, -4.0), count=3
    )
    minimum: float = key("Minimum range at which the radar detects targets.", "length", 20.0, low=0.0)
    maximum: float = key("Maximum range at which the radar detects targets.", "length", 22224.0, low=1.0)
    range_sigma: float = key("Standard deviation of the radar range error.", "length", 10.0, low=0.0)
    bearing_sigma: float = key("Standard deviation of the radar bearing error.", "angle", 0.005235987755982988, low=0.0)
    detection: float = key("Probability that a radar scan detects a visible target.", default=0.95, low=0.0, high=1.0)
    false_echoes: float = key(
        "Mean number of false echoes per radar scan. They appear at random within half the maximum range.",
        default=0.0,
        low=0.0,
        high=8.0,
    )
    trend: float = key(
        "Time from the start of a radar track until the course and speed of its target are reported.",
        "time",
        60.0,
        low=0.0,
    )
    memory: int = key(
        "Maximum number of scans used to compute the course and speed of a radar track. More scans make the values "
        "less noisy.",
        default=100,
        low=3,
        high=1000,
        integer=True,
    )


@dataclass(frozen=True)
class AisConfig(SensorConfig):
    """AIS station. It sends reports at the intervals of its class. It lists the latest report from each station that it
    receives, with its own report first.

    If `noise` is 0, the positions that an AIS station receives have no errors.
    """

    rate: float = key(
        "Rate at which the AIS station updates its list of reports. It sends its own report at the first update "
        "at which that report is due.",
        "frequency",
        5.0,
        low=0.01,
        high=1000.0,
    )
    position: Vector = key(
        "Position of the AIS antenna on the body (forward, starboard, down).", "length", (0.0, 0.0, -4.0), count=3
    )
    station: str = choice(
        "Class of the AIS station. mark: an aid to navigation that does not move. receiver: a station that sends "
        "nothing.",
        ("A", "B", "B-SO", "mark", "receiver"),
        "A",
    )
    mmsi: int = key("MMSI (radio identity) of the AIS station, nine digits.", low=1, high=999_999_999, integer=True)
    called: str = text("Name that the AIS station sends, up to 20 characters. Empty: the name of the body.", "")
    kind: int = key(
        "AIS type number of the ship (36 sailing, 52 tug, 70 cargo ...) or of the aid to navigation.",
        default=0,
        low=0,
        high=99,
        integer=True,
    )
    status: int = key(
        "AIS navigational status: 0 under way, 1 at anchor, 5 moored ...", default=0, low=0, high=15, integer=True
    )
    turning: float = key(
        "Rate of turn at or above which the ship counts as turning. Turning ships send AIS reports more often.",
        "angular rate",
        0.008726646259971648,
        low=0.0,
    )
    sigma: float = key(
        "Standard deviation of the error in each coordinate of a received AIS position.", "length", 3.0, low=0.0
    )
    maximum: float = key(
        "Maximum range of AIS reception. Stations beyond the radio horizon of the antennas are not received either.",
        "length",
        74080.0,
        low=1.0,
    )
    loss: float = key("Probability that an AIS report is not received.", default=0.0, low=0.0, high=1.0)


@dataclass(frozen=True)
class Parameter:
    """Parameter of a sensor that another package provides."""

    name: str = text("Name of the sensor parameter.")
    value: str = text("Value of the sensor parameter. The emulator of the sensor interprets it.")


@dataclass(frozen=True)
class OtherSensorConfig(SensorConfig):
    """Sensor of a type that another package provides through entry points in the wavesim.sensors and wavesim.emulators
    groups."""

    type: str = text("Type of the sensor: the name under which its package registers it.")
    parameter: tuple[Parameter, ...] = children(Parameter, "Parameter of the sensor.")


@dataclass(frozen=True)
class InstrumentConfig:
    """Instrument of a body: its name on the body, its type, its configuration, and the table of its values."""

    name: str
    type: str
    parameters: SensorConfig
    table: Table

    @functools.cached_property
    def batch_key(self) -> tuple[str, SensorConfig]:
        """Type and parameters of the instrument, without its name, position, attitude and noise. Instruments with equal
        type and parameters are computed in one pass.
        """
        alike = replace(self.parameters, name="", position=(0.0, 0.0, 0.0), attitude=(0.0, 0.0, 0.0), noise=1.0)
        return self.type, alike

    def __str__(self) -> str:
        """Describe the instrument as text: its name, its type if different from the name, and its rate."""
        return f"{self.name}{'' if self.name == self.type else f' ({self.type})'} {self.parameters.rate:g} Hz"

    @property
    def as_dict(self) -> dict[str, Any]:
        """Name, type and rate of the instrument as plain data."""
        return {"name": self.name, "type": self.type, "rate_hz": self.parameters.rate}

    def period(self, step: float) -> int:
        """Return the number of ticks of length ``step`` (s) from one value to the next."""
        return max(1, round(1.0 / self.parameters.rate / step))


@dataclass(frozen=True)
class SensorsConfig:
    """Instruments of a body, a model or the fleet: any number of each type.

    An instrument of a vehicle replaces an instrument with the same name from its model or the fleet. An instrument of a
    model replaces one with the same name from the fleet.
    """

    inherit: bool = flag(
        "Whether this body also carries the instruments from its model and the fleet. no: it carries only those "
        "listed here.",
        True,
    )
    ctd: tuple[SensorConfig, ...] = children(SensorConfig, "CTD: pressure, temperature, conductivity, salinity.")
    pressure: tuple[SensorConfig, ...] = children(SensorConfig, "Pressure sensor: pressure and depth.")
    temperature: tuple[SensorConfig, ...] = children(SensorConfig, "Thermometer: temperature of the water.")
    conductivity: tuple[SensorConfig, ...] = children(SensorConfig, "Conductivity cell: conductivity of the water.")
    salinity: tuple[SensorConfig, ...] = children(SensorConfig, "Salinometer: practical salinity.")
    scalar: tuple[SensorConfig, ...] = children(SensorConfig, "Sensor for scalar properties of the water.")
    sound_velocity: tuple[SensorConfig, ...] = children(
        SensorConfig, "Sound velocity probe: speed of sound in the water."
    )
    echosounder: tuple[EchosounderConfig, ...] = children(EchosounderConfig, "Echosounder: distance to the bottom.")
    ranger: tuple[RangerConfig, ...] = children(RangerConfig, "Rangefinder: fixed range beams.")
    scanner: tuple[ScannerConfig, ...] = children(ScannerConfig, "Scanner: a rotating pencil beam.")
    multibeam: tuple[MultibeamConfig, ...] = children(
        MultibeamConfig, "Multibeam echosounder: a fan of beams, each of which measures a range."
    )
    sonar: tuple[SonarConfig, ...] = children(SonarConfig, "Imaging sonar.")
    camera: tuple[CameraConfig, ...] = children(CameraConfig, "Underwater camera.")
    lidar: tuple[LidarConfig, ...] = children(LidarConfig, "Lidar.")
    hydrophone: tuple[HydrophoneArrayConfig, ...] = children(
        HydrophoneArrayConfig, "Hydrophone: samples of the sound in the water."
    )
    imu: tuple[ImuConfig, ...] = children(ImuConfig, "Inertial measurement unit: specific force and angular rates.")
    ahrs: tuple[AhrsConfig, ...] = children(
        AhrsConfig, "Attitude and heading reference system: roll, pitch, heading, angular rates."
    )
    magnetometer: tuple[MagnetometerConfig, ...] = children(
        MagnetometerConfig, "Magnetometer: magnetic field of the earth and of the vehicle."
    )
    gps: tuple[GpsConfig, ...] = children(GpsConfig, "Satellite navigation receiver: position and velocity.")
    uwb: tuple[UwbConfig, ...] = children(
        UwbConfig, "Ultra-wideband receiver: position while the receiver is above the water."
    )
    dvl: tuple[DvlConfig, ...] = children(
        DvlConfig, "Doppler velocity log: velocity over the bottom or through the water."
    )
    adcp: tuple[AdcpConfig, ...] = children(
        AdcpConfig, "Acoustic Doppler current profiler: profile of the flow in cells."
    )
    speedlog: tuple[SpeedLogConfig, ...] = children(SpeedLogConfig, "Speed log: speed through the water.")
    anemometer: tuple[AnemometerConfig, ...] = children(AnemometerConfig, "Anemometer: apparent wind.")
    encoder: tuple[EncoderConfig, ...] = children(EncoderConfig, "Encoder: actual values of the actuators.")
    rpm: tuple[RpmConfig, ...] = children(RpmConfig, "Propeller speed sensors.")
    leak: tuple[LeakConfig, ...] = children(LeakConfig, "Leak detectors in the compartments of the body.")
    battery: tuple[BatteryConfig, ...] = children(BatteryConfig, "Battery monitor: voltage, current and charge.")
    navigation: tuple[SensorConfig, ...] = children(
        SensorConfig, "Navigation reference: true pose, velocity and acceleration."
    )
    radar: tuple[RadarConfig, ...] = children(RadarConfig, "Radar with a list of tracked targets.")
    ais: tuple[AisConfig, ...] = children(AisConfig, "AIS station that sends and receives reports.")
    sensor: tuple[OtherSensorConfig, ...] = children(OtherSensorConfig, "Sensor that another package provides.")
    place: str = place()

    @functools.cached_property
    def declared(self) -> tuple[tuple[str, SensorConfig], ...]:
        """Declared instruments as (type, configuration) pairs, in document order."""
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
        """Instruments declared in this element. Raises ConfigError if a type is unknown."""
        return tuple(InstrumentConfig(s.name or type_, type_, s, sensor_table_of(type_)) for type_, s in self.declared)
