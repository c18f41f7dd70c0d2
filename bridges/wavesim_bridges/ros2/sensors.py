"""Instrument values as ROS messages, in FLU, ENU and SI units, with covariances from the declared noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wavesim_bridges.ros2.message_types import Message, MessageTypes
from wavesim_bridges.vehicle_motion import attitude_enu, product
from wavesim_sdk.actuators import Actuator, ActuatorKind
from wavesim_sdk.arrays import Floats
from wavesim_sdk.frames import quaternion
from wavesim_sdk.wire.state import Value
from wavesim_world import instruments as fixed
from wavesim_world.config.ranging_sensors import EchosounderConfig
from wavesim_world.config.sensors import (
    AnemometerConfig,
    BatteryConfig,
    DvlConfig,
    GpsConfig,
    ImuConfig,
    InstrumentConfig,
    SensorConfig,
    UwbConfig,
)

PASCAL = 1e4  #: number of Pa in a dbar
METRE_PER_DBAR = 1e4 / (1025.0 * 9.80665)
UNKNOWN = 1e6  #: variance in m2 or rad2 so large that a filter ignores the value
FRD_TO_FLU = np.diag([1.0, -1.0, -1.0])  #: matrix that converts from FRD to FLU, and back
IMU, RANGE, FIX = "sensor_msgs/msg/Imu", "sensor_msgs/msg/Range", "sensor_msgs/msg/NavSatFix"
TWIST, POSE = "geometry_msgs/msg/TwistWithCovarianceStamped", "geometry_msgs/msg/PoseWithCovarianceStamped"
ARRAY, NUMBER, JOINTS = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/Float64", "sensor_msgs/msg/JointState"
DVL, SONAR, CLOUD = (
    "marine_acoustic_msgs/msg/Dvl",
    "marine_acoustic_msgs/msg/SonarRanges",
    "sensor_msgs/msg/PointCloud2",
)


@dataclass(frozen=True)
class FrameNames:
    """Names of frames. ``world`` is ENU; ``base`` and ``link`` are FLU; ``face`` has the same origin as ``link`` but
    the instrument's own axes, FRD; ``beam`` has its x axis along a single beam.
    """

    world: str
    base: str
    link: str
    face: str
    beam: str


class MessageFactory:
    """Constructors of the message types that other messages contain."""

    def __init__(self, types: MessageTypes) -> None:
        self.types = types
        self._header, self._time = types.new("std_msgs/msg/Header"), types.new("builtin_interfaces/msg/Time")
        self._vector, self._point = types.new("geometry_msgs/msg/Vector3"), types.new("geometry_msgs/msg/Point")
        self._quaternion = types.new("geometry_msgs/msg/Quaternion")

    def time(self, stamp: int) -> Message:
        """Return a Time message for a stamp in ns since the epoch."""
        return self._time(*divmod(stamp, 1_000_000_000))

    def header(self, stamp: int, frame: str) -> Message:
        return self._header(self.time(stamp), frame)

    def vector(self, v: Sequence[float] | Floats) -> Message:
        return self._vector(float(v[0]), float(v[1]), float(v[2]))

    def point(self, v: Sequence[float] | Floats) -> Message:
        return self._point(float(v[0]), float(v[1]), float(v[2]))

    def quaternion(self, q: Floats) -> Message:
        """Return a Quaternion message from the components w, x, y, z."""
        w, x, y, z = map(float, q)
        return self._quaternion(x, y, z, w)

    def pose(self, place: Sequence[float] | Floats, q: Floats) -> Message:
        return self.types.new("geometry_msgs/msg/Pose")(self.point(place), self.quaternion(q))

    def twist(self, linear: Sequence[float] | Floats, angular: Sequence[float] | Floats) -> Message:
        return self.types.new("geometry_msgs/msg/Twist")(self.vector(linear), self.vector(angular))

    def transform(self, stamp: int, parent: str, child: str, place: Sequence[float] | Floats, q: Floats) -> Message:
        body = self.types.new("geometry_msgs/msg/Transform")(self.vector(place), self.quaternion(q))
        return self.types.new("geometry_msgs/msg/TransformStamped")(self.header(stamp, parent), child, body)

    def numbers(self, values: Sequence[float], labels: Sequence[tuple[str, int]]) -> Message:
        """Return a Float64MultiArray with a label and a size for each field."""
        dimension, layout = (
            self.types.new("std_msgs/msg/MultiArrayDimension"),
            self.types.new("std_msgs/msg/MultiArrayLayout"),
        )
        return self.types.new(ARRAY)(layout([dimension(name, n, n) for name, n in labels], 0), np.array(values, float))


@dataclass(frozen=True)
class MountedInstrument:
    """Instrument of a vehicle, with its frames and the factory for its messages."""

    instrument: InstrumentConfig
    frames: FrameNames
    factory: MessageFactory
    fields: tuple[tuple[str, int], ...] = ()  #: names of the fields of a value, with the length of each field
    actuators: tuple[Actuator, ...] = ()  #: actuators of the body that carries the instrument

    @property
    def declared(self) -> SensorConfig:
        return self.instrument.parameters

    @property
    def q_BS(self) -> Floats:
        """Attitude of the instrument relative to the body, as a rotation between their FRD frames."""
        return quaternion(*self.declared.attitude)

    def variance(self, sigma: float) -> float:
        """Return the variance of a value. ``sigma`` is the standard deviation of the value's noise if the configuration
        contains ``noise="1"``.
        """
        return (self.declared.noise * sigma) ** 2

    def new(self, name: str, *values: Any) -> Message:
        return self.factory.types.new(name)(*values)


Stamped = Callable[
    [MountedInstrument, Value, int], Message | None
]  #: function that converts an instrument's value with its stamp to a message


def _all_finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _diagonal(*variances: float) -> Floats:
    return np.diag(variances).ravel()


def _imu(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    """Return the Imu message without an attitude."""
    p = cast("ImuConfig", s.declared).resolved
    if not _all_finite(*v.force, *v.rates):
        return None
    rates, force = (s.variance(n) * p.rate for n in (p.gyro_noise, p.accelerometer_noise))
    unknown = np.zeros(9)
    unknown[0] = -1.0
    return s.new(
        IMU,
        s.factory.header(stamp, s.frames.link),
        s.factory.quaternion(np.array([1.0, 0.0, 0.0, 0.0])),
        unknown,
        s.factory.vector(FRD_TO_FLU @ v.rates),
        _diagonal(*[rates] * 3),
        s.factory.vector(FRD_TO_FLU @ v.force),
        _diagonal(*[force] * 3),
    )


def attitude_covariance(s: MountedInstrument) -> Floats:
    """Return the attitude covariance of an AHRS about the world's axes. The heading is less accurate than the tilt."""
    return _diagonal(*(s.variance(n) for n in (fixed.TILT_SIGMA, fixed.TILT_SIGMA, fixed.HEADING_SIGMA)))


def _ahrs(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(v.roll, v.pitch, v.heading, *v.rates):
        return None
    unknown = np.zeros(9)
    unknown[0] = -1.0
    q = attitude_enu(quaternion(v.roll, v.pitch, v.heading))
    return s.new(
        IMU,
        s.factory.header(stamp, s.frames.base),
        s.factory.quaternion(q),
        attitude_covariance(s),
        s.factory.vector(FRD_TO_FLU @ v.rates),
        _diagonal(*[s.variance(fixed.RATE_SIGMA)] * 3),
        s.factory.vector((0.0, 0.0, 0.0)),
        unknown,
    )


def with_attitude(imu: MountedInstrument, message: Message, ahrs: MountedInstrument, v: Value) -> Message:
    """Return the Imu message with the attitude of the IMU's link added. The attitude comes from an AHRS on the body."""
    q = product(quaternion(v.roll, v.pitch, v.heading), imu.q_BS)
    message.orientation, message.orientation_covariance = (
        imu.factory.quaternion(attitude_enu(q)),
        attitude_covariance(ahrs),
    )
    return message


def _fix(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    p = cast("GpsConfig", s.declared)
    if not _all_finite(v.latitude, v.longitude, v.height):
        return no_fix(s, stamp)
    level, up = 0.5 * s.variance(p.hacc), s.variance(p.vacc)
    status = s.new("sensor_msgs/msg/NavSatStatus", 0, 1)
    degrees = math.degrees(v.latitude), math.degrees(v.longitude)
    return s.new(
        FIX, s.factory.header(stamp, s.frames.link), status, *degrees, v.height, _diagonal(level, level, up), 2
    )


def no_fix(s: MountedInstrument, stamp: int) -> Message:
    """Return the NavSatFix message of a satellite receiver. Under water, its status is "no fix"."""
    status = s.new("sensor_msgs/msg/NavSatStatus", -1, 1)
    return s.new(FIX, s.factory.header(stamp, s.frames.link), status, math.nan, math.nan, math.nan, np.zeros(9), 0)


def _twist(
    s: MountedInstrument, frame: str, stamp: int, linear: Sequence[float] | Floats, covariance: Floats
) -> Message:
    """Return a velocity message. A covariance of -1 marks the angular velocity, which is not measured."""
    full = np.zeros((6, 6))
    full[:3, :3] = covariance
    full[3, 3] = -1.0
    with_covariance = s.new(
        "geometry_msgs/msg/TwistWithCovariance", s.factory.twist(linear, (0.0, 0.0, 0.0)), full.ravel()
    )
    return s.new(TWIST, s.factory.header(stamp, frame), with_covariance)


def _pose(s: MountedInstrument, stamp: int, place: Sequence[float], variances: Sequence[float]) -> Message:
    """Return a pose message for a position in the world. Components that are not measured have a huge variance."""
    body = s.factory.pose(place, np.array([1.0, 0.0, 0.0, 0.0]))
    with_covariance = s.new("geometry_msgs/msg/PoseWithCovariance", body, _diagonal(*variances, *[UNKNOWN] * 3))
    return s.new(POSE, s.factory.header(stamp, s.frames.world), with_covariance)


def _gps_velocity(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(v.sog, v.cog):
        return None
    level = s.variance(cast("GpsConfig", s.declared).speed_sigma)
    moving = v.sog * math.sin(v.cog), v.sog * math.cos(v.cog), 0.0
    return _twist(s, s.frames.world, stamp, moving, np.diag([level, level, UNKNOWN]))


def _pressure(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(v.pressure):
        return None
    header = s.factory.header(stamp, s.frames.link)
    return s.new(
        "sensor_msgs/msg/FluidPressure", header, PASCAL * v.pressure, s.variance(PASCAL * fixed.PRESSURE_SIGMA)
    )


def _pressure_kpa(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    """Return the pressure in kPa, as UUV Simulator publishes it."""
    message = _pressure(s, v, stamp)
    if message is not None:
        message.fluid_pressure, message.variance = 1e-3 * message.fluid_pressure, 1e-6 * message.variance
    return message


def _depth(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(v.depth):
        return None
    return _pose(s, stamp, (0.0, 0.0, -v.depth), (UNKNOWN, UNKNOWN, s.variance(METRE_PER_DBAR * fixed.PRESSURE_SIGMA)))


def _temperature(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(v.temperature):
        return None
    header = s.factory.header(stamp, s.frames.link)
    return s.new("sensor_msgs/msg/Temperature", header, v.temperature, s.variance(fixed.TEMPERATURE_SIGMA))


def _number(field: str) -> Stamped:
    return lambda s, v, stamp: s.new(NUMBER, v[field]) if _all_finite(v[field]) else None


def _velocity_covariance(s: MountedInstrument, v: Value, sigma: float, locked: bool) -> Floats:
    """Return the covariance (3, 3) in S of a velocity that a Doppler log measures with all of its beams, or only with
    the beams that have bottom lock.
    """
    along, _ = fixed.dvl_beams(cast("DvlConfig", s.declared))
    if locked:
        along = along[np.isfinite(v.beams[: len(along)])]
    inverse = np.linalg.pinv(along)
    return np.asarray(s.variance(sigma) * inverse @ inverse.T)


def _dvl_twist(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(*v.bottom):
        return None
    covariance = FRD_TO_FLU @ _velocity_covariance(s, v, cast("DvlConfig", s.declared).bottom_sigma, True) @ FRD_TO_FLU
    return _twist(s, s.frames.link, stamp, FRD_TO_FLU @ v.bottom, covariance)


def _dvl_water(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(*v.water):
        return None
    covariance = FRD_TO_FLU @ _velocity_covariance(s, v, cast("DvlConfig", s.declared).water_sigma, False) @ FRD_TO_FLU
    return _twist(s, s.frames.link, stamp, FRD_TO_FLU @ v.water, covariance)


def _dvl(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    """Return the velocity over the bottom or, without bottom lock, the velocity through the water."""
    p = cast("DvlConfig", s.declared)
    bottom = _all_finite(*v.bottom)
    velocity = v.bottom if bottom else v.water
    if not _all_finite(*velocity):
        return None
    along, _ = fixed.dvl_beams(p)
    four = np.zeros((4, 3))
    four[: len(along)] = along[:4]
    beams, ranges = (np.nan_to_num(np.array(x, float), nan=-1.0) for x in (v.beams, v.ranges))
    heard = np.isfinite(v.beams)
    variance = s.variance(p.bottom_sigma)
    x, y, _ = velocity
    return s.new(
        DVL,
        s.factory.header(stamp, s.frames.face),
        1 if bottom else 2,
        0,
        s.factory.vector(velocity),
        _velocity_covariance(s, v, p.bottom_sigma if bottom else p.water_sigma, bottom).ravel(),
        v.altitude if _all_finite(v.altitude) else -1.0,
        math.atan2(y, x),
        math.hypot(x, y),
        int(heard.sum()),
        -1.0,
        bool(heard.any()),
        bool(heard.any()),
        [s.factory.vector(d) for d in four],
        ranges,
        np.full(4, -1.0, np.float32),
        heard.astype(np.float32),
        beams.astype(np.float32),
        np.where(heard, variance, -1.0).astype(np.float32),
    )


def _range(
    s: MountedInstrument, stamp: int, distance: float, width: float, least: float, most: float, sigma: float
) -> Message:
    found = distance if math.isfinite(distance) else math.inf
    values: list[Any] = [s.factory.header(stamp, s.frames.beam), 0, width, least, most, found]
    return s.new(RANGE, *values, *([s.variance(sigma)] if s.factory.types.has(RANGE, "variance") else []))


def _echosounder(s: MountedInstrument, v: Value, stamp: int) -> Message:
    p = cast("EchosounderConfig", s.declared)
    return _range(s, stamp, v.range, p.width, p.minimum, p.maximum, fixed.ECHO_SIGMA)


def _altitude(s: MountedInstrument, v: Value, stamp: int) -> Message:
    p = cast("DvlConfig", s.declared)
    return _range(s, stamp, v.altitude, 2.0 * p.angle, p.minimum, p.maximum, 0.0)


def _beams(s: MountedInstrument) -> tuple[Floats, Floats]:
    """Return the directions and origins of an instrument's beams in its link frame (FLU)."""
    p: Any = s.declared
    along, places = fixed.ranger_beams(p) if s.instrument.type == "ranger" else fixed.multibeam_beams(p)
    return along @ FRD_TO_FLU, places @ FRD_TO_FLU


def _cloud(s: MountedInstrument, v: Value, stamp: int) -> Message:
    """Return a cloud of the points that the beams hit."""
    along, places = _beams(s)
    distance = np.array(v.range[: len(along)])
    hit = np.isfinite(distance)
    points = (places + distance[:, None] * along)[hit].astype("<f4")
    fields = [s.new("sensor_msgs/msg/PointField", name, 4 * k, 7, 1) for k, name in enumerate("xyz")]
    data = np.frombuffer(points.tobytes(), np.uint8)
    header = s.factory.header(stamp, s.frames.link)
    return s.new(CLOUD, header, 1, len(points), fields, False, 12, 12 * len(points), data, True)


def _sonar(s: MountedInstrument, v: Value, stamp: int) -> Message:
    """Return the ranges of all beams, with NaN for a beam without a hit."""
    along, _ = _beams(s)
    ranges = np.array(v.range[: len(along)], np.float32)
    flags = [s.new("marine_acoustic_msgs/msg/DetectionFlag", int(not np.isfinite(r))) for r in ranges]
    none = np.zeros(0, np.float32)
    ping = s.new("marine_acoustic_msgs/msg/PingInfo", 0.0, 0.0, none, none)
    header = s.factory.header(stamp, s.frames.link)
    return s.new(SONAR, header, ping, flags, none, none, [s.factory.vector(d) for d in along], ranges)


def _scan(s: MountedInstrument, v: Value, stamp: int) -> Message:
    """Return a LaserScan with one ray, at the current angle of the beam."""
    p: Any = s.declared
    distance = v.range if math.isfinite(v.range) else math.inf
    ranges, none = np.array([distance], np.float32), np.zeros(0, np.float32)
    header = s.factory.header(stamp, s.frames.link)
    return s.new(
        "sensor_msgs/msg/LaserScan", header, -v.angle, -v.angle, 0.0, 0.0, 1.0 / p.rate, 0.0, p.maximum, ranges, none
    )


def _speedlog(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(*v.v_FB_B):
        return None
    return _twist(s, s.frames.base, stamp, FRD_TO_FLU @ v.v_FB_B, np.eye(3) * s.variance(fixed.SPEED_SIGMA))


def _uwb(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    north, east, down = v.position
    if not _all_finite(north, east, down):
        return None
    return _pose(s, stamp, (east, north, -down), [s.variance(cast("UwbConfig", s.declared).sigma)] * 3)


def _wind(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    """Return the apparent wind on board."""
    if not _all_finite(v.speed, v.angle) or not isinstance(s.declared, AnemometerConfig):
        return None
    moving = -v.speed * math.cos(v.angle), v.speed * math.sin(v.angle), 0.0
    return s.new("geometry_msgs/msg/Vector3Stamped", s.factory.header(stamp, s.frames.base), s.factory.vector(moving))


def _battery(s: MountedInstrument, v: Value, stamp: int) -> Message:
    p = cast("BatteryConfig", s.declared)
    full = p.capacity / p.voltage  # A h
    none = np.zeros(0, np.float32)
    return s.new(
        "sensor_msgs/msg/BatteryState",
        s.factory.header(stamp, s.frames.link),
        v.voltage,
        math.nan,
        -v.current,
        v.charge * full,
        full,
        full,
        v.charge,
        2,
        0,
        0,
        True,
        none,
        none,
        "",
        s.instrument.name,
    )


def joints(make: MessageFactory, actuators: Sequence[Actuator], values: Sequence[float], stamp: int) -> Message:
    """Return the actuators as joints, with angles (rad), shaft speeds (rad/s) and thrusts (N). Quantities that a joint
    does not have are 0.
    """
    of = {"rad": 0, "1/s": 1, "N": 2}
    scale = 1.0, 2.0 * math.pi, 1.0
    rows = np.zeros((3, len(actuators)))
    for k, a in enumerate(actuators):
        if a.actual_unit in of and k < len(values) and math.isfinite(values[k]):
            rows[of[a.actual_unit], k] = scale[of[a.actual_unit]] * values[k]
    names = [a.name for a in actuators]
    return make.types.new(JOINTS)(make.header(stamp, ""), names, *rows)


def _encoder(s: MountedInstrument, v: Value, stamp: int) -> Message:
    return joints(s.factory, s.actuators, v.numbers, stamp)


def _rpm(s: MountedInstrument, v: Value, stamp: int) -> Message:
    """Return the joint states of the thruster shafts, without the other actuators."""
    thrusters = [a for a in s.actuators if a.kind == ActuatorKind.THRUSTER]
    turning = [
        (a.name, n / 60.0 * 2.0 * math.pi) for a, n in zip(thrusters, v.numbers, strict=False) if math.isfinite(n)
    ]
    none, speeds = np.zeros(0), np.array([w for _, w in turning])
    return s.new(JOINTS, s.factory.header(stamp, ""), [name for name, _ in turning], none, speeds, none)


def _numbers(s: MountedInstrument, v: Value, stamp: int) -> Message:
    """Return all fields of an instrument, in the units of its table."""
    return s.factory.numbers(v.numbers, s.fields)


@dataclass(frozen=True)
class SensorOutput:
    """ROS message type for the values from a sensor."""

    type: str
    to_message: Stamped


NUMBERS = SensorOutput(ARRAY, _numbers)  #: output with all fields of an instrument; every sensor type has this output
#: the outputs of each sensor type, by their names in a layout
OUTPUTS: dict[str, dict[str, SensorOutput]] = {
    "imu": {"raw": SensorOutput(IMU, _imu), "data": SensorOutput(IMU, _imu)},
    "ahrs": {"data": SensorOutput(IMU, _ahrs)},
    "gps": {"fix": SensorOutput(FIX, _fix), "velocity": SensorOutput(TWIST, _gps_velocity)},
    "pressure": {
        "pressure": SensorOutput("sensor_msgs/msg/FluidPressure", _pressure),
        "depth": SensorOutput(POSE, _depth),
        "pressure_kpa": SensorOutput("sensor_msgs/msg/FluidPressure", _pressure_kpa),
    },
    "ctd": {
        "pressure": SensorOutput("sensor_msgs/msg/FluidPressure", _pressure),
        "temperature": SensorOutput("sensor_msgs/msg/Temperature", _temperature),
        "conductivity": SensorOutput(NUMBER, _number("conductivity")),
        "salinity": SensorOutput(NUMBER, _number("salinity")),
    },
    "temperature": {"temperature": SensorOutput("sensor_msgs/msg/Temperature", _temperature)},
    "conductivity": {"conductivity": SensorOutput(NUMBER, _number("conductivity"))},
    "salinity": {"salinity": SensorOutput(NUMBER, _number("salinity"))},
    "sound_velocity": {"speed": SensorOutput(NUMBER, _number("speed"))},
    "dvl": {
        "dvl": SensorOutput(DVL, _dvl),
        "twist": SensorOutput(TWIST, _dvl_twist),
        "water": SensorOutput(TWIST, _dvl_water),
        "altitude": SensorOutput(RANGE, _altitude),
    },
    "speedlog": {"twist": SensorOutput(TWIST, _speedlog)},
    "echosounder": {"range": SensorOutput(RANGE, _echosounder)},
    "ranger": {"points": SensorOutput(CLOUD, _cloud)},
    "multibeam": {"points": SensorOutput(CLOUD, _cloud), "ranges": SensorOutput(SONAR, _sonar)},
    "scanner": {"scan": SensorOutput("sensor_msgs/msg/LaserScan", _scan)},
    "uwb": {"pose": SensorOutput(POSE, _uwb)},
    "anemometer": {"wind": SensorOutput("geometry_msgs/msg/Vector3Stamped", _wind)},
    "battery": {"state": SensorOutput("sensor_msgs/msg/BatteryState", _battery)},
    "encoder": {"joints": SensorOutput(JOINTS, _encoder)},
    "rpm": {"joints": SensorOutput(JOINTS, _rpm)},
}


def mounting(s: MountedInstrument) -> list[Message]:
    """Return the static transforms of an instrument: from the body to its link and, for some types, from the link to
    the instrument's own axes and to its beam direction.
    """
    p = s.declared
    w, x, y, z = s.q_BS
    none, turned = np.zeros(3), math.sqrt(0.5)
    found = [s.factory.transform(0, s.frames.base, s.frames.link, FRD_TO_FLU @ p.position, np.array([w, x, -y, -z]))]
    if s.instrument.type == "dvl":
        found.append(s.factory.transform(0, s.frames.link, s.frames.face, none, np.array([0.0, 1.0, 0.0, 0.0])))
    if s.instrument.type in ("dvl", "echosounder"):
        found.append(s.factory.transform(0, s.frames.link, s.frames.beam, none, np.array([turned, 0.0, turned, 0.0])))
    return found
