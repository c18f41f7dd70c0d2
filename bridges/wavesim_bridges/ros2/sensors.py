"""Instrument values as ROS messages in SI units and the layout's axes, with covariances from the declared noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wavesim_bridges.ros2 import hydrophones, named_actuators
from wavesim_bridges.ros2.message_types import Message
from wavesim_bridges.ros2.mounted_instrument import ARRAY, MessageFactory, MountedInstrument
from wavesim_bridges.vehicle_motion import product
from wavesim_sdk.actuators import Actuator, ActuatorKind
from wavesim_sdk.arrays import Floats
from wavesim_sdk.frames import quaternion
from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_sdk.wire.state import Value
from wavesim_world import instruments as fixed
from wavesim_world.config.ranging_sensors import EchosounderConfig
from wavesim_world.config.sensors import (
    AhrsConfig,
    AnemometerConfig,
    BatteryConfig,
    DvlConfig,
    GpsConfig,
    ImuConfig,
    SpeedLogConfig,
    UwbConfig,
)

PASCAL = 1e4  #: number of Pa in a dbar
METRE_PER_DBAR = 1e4 / (1025.0 * 9.80665)
UNKNOWN = 1e6  #: variance in m2 or rad2 so large that a filter ignores the value
IMU, RANGE, FIX = "sensor_msgs/msg/Imu", "sensor_msgs/msg/Range", "sensor_msgs/msg/NavSatFix"
TWIST, POSE = "geometry_msgs/msg/TwistWithCovarianceStamped", "geometry_msgs/msg/PoseWithCovarianceStamped"
NUMBER, JOINTS = "std_msgs/msg/Float64", "sensor_msgs/msg/JointState"
PANISIM_DVL = "interfaces/msg/DVL"
DVL, SONAR, CLOUD = (
    "marine_acoustic_msgs/msg/Dvl",
    "marine_acoustic_msgs/msg/SonarRanges",
    "sensor_msgs/msg/PointCloud2",
)


Stamped = Callable[
    [MountedInstrument, Value, int], Message | None
]  #: function that converts an instrument's value with its stamp to a message


def _all_finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _imu(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    """Return the Imu message without an attitude."""
    p = cast("ImuConfig", s.declared).resolved
    if not _all_finite(*v.force, *v.rates):
        return None
    rates = s.covariance(p.angular_rate_covariance, p.gyro_noise * math.sqrt(p.rate))
    force = s.covariance(p.acceleration_covariance, p.accelerometer_noise * math.sqrt(p.rate))
    unknown = np.zeros(9)
    unknown[0] = -1.0
    return s.new(
        IMU,
        s.factory.header(stamp, s.frames.link),
        s.factory.quaternion(np.array([1.0, 0.0, 0.0, 0.0])),
        unknown,
        s.factory.vector(s.axes.body @ v.rates),
        s.axes.body_covariance(rates).ravel(),
        s.factory.vector(s.axes.body @ v.force),
        s.axes.body_covariance(force).ravel(),
    )


def attitude_covariance(s: MountedInstrument) -> Floats:
    """Return the covariance of the roll, pitch and yaw of an AHRS. The heading is less accurate than the tilt."""
    p = cast("AhrsConfig", s.declared)
    found = s.covariance(p.orientation_covariance, fixed.TILT_SIGMA, fixed.TILT_SIGMA, fixed.HEADING_SIGMA)
    return s.axes.body_covariance(found).ravel()


def _ahrs(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(v.roll, v.pitch, v.heading, *v.rates):
        return None
    unknown = np.zeros(9)
    unknown[0] = -1.0
    q = s.axes.attitude(quaternion(v.roll, v.pitch, v.heading))
    rates = s.covariance(cast("AhrsConfig", s.declared).angular_rate_covariance, fixed.RATE_SIGMA)
    return s.new(
        IMU,
        s.factory.header(stamp, s.frames.base),
        s.factory.quaternion(q),
        attitude_covariance(s),
        s.factory.vector(s.axes.body @ v.rates),
        s.axes.body_covariance(rates).ravel(),
        s.factory.vector((0.0, 0.0, 0.0)),
        unknown,
    )


def with_attitude(imu: MountedInstrument, message: Message, ahrs: MountedInstrument, v: Value) -> Message:
    """Return the Imu message with the attitude of the IMU's link added. The attitude comes from an AHRS on the body."""
    q = product(quaternion(v.roll, v.pitch, v.heading), imu.q_BS)
    message.orientation, message.orientation_covariance = (
        imu.factory.quaternion(imu.axes.attitude(q)),
        attitude_covariance(ahrs),
    )
    return message


def _fix(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    p = cast("GpsConfig", s.declared)
    if not _all_finite(v.latitude, v.longitude, v.height):
        return no_fix(s, stamp)
    level = math.sqrt(0.5) * p.hacc
    covariance = s.axes.world_covariance(s.covariance(p.position_covariance, level, level, p.vacc)).ravel()
    status = s.new("sensor_msgs/msg/NavSatStatus", 0, 1)
    degrees = math.degrees(v.latitude), math.degrees(v.longitude)
    quality = 3 if p.position_covariance else 2  # all of the covariance is known, or its diagonal
    return s.new(FIX, s.factory.header(stamp, s.frames.link), status, *degrees, v.height, covariance, quality)


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


def _pose(s: MountedInstrument, stamp: int, ned: Sequence[float], covariance: Floats) -> Message:
    """Return a pose message for a position in the world (NED) with its covariance (3, 3). Components that are not
    measured have a huge variance.
    """
    body = s.factory.pose(s.axes.world @ np.array(ned), np.array([1.0, 0.0, 0.0, 0.0]))
    full = np.diag([UNKNOWN] * 6)
    full[:3, :3] = s.axes.world_covariance(covariance)
    with_covariance = s.new("geometry_msgs/msg/PoseWithCovariance", body, full.ravel())
    return s.new(POSE, s.factory.header(stamp, s.frames.world), with_covariance)


def _gps_velocity(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(v.sog, v.cog):
        return None
    p = cast("GpsConfig", s.declared)
    covariance = s.covariance(p.velocity_covariance, p.speed_sigma)
    covariance[2], covariance[:, 2], covariance[2, 2] = 0.0, 0.0, UNKNOWN  # the receiver reports no vertical speed
    moving = s.axes.world @ np.array([v.sog * math.cos(v.cog), v.sog * math.sin(v.cog), 0.0])
    return _twist(s, s.frames.world, stamp, moving, s.axes.world_covariance(covariance))


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
    variance = s.variance(METRE_PER_DBAR * fixed.PRESSURE_SIGMA)
    return _pose(s, stamp, (0.0, 0.0, v.depth), np.diag([UNKNOWN, UNKNOWN, variance]))


def _temperature(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(v.temperature):
        return None
    header = s.factory.header(stamp, s.frames.link)
    return s.new("sensor_msgs/msg/Temperature", header, v.temperature, s.variance(fixed.TEMPERATURE_SIGMA))


def _number(field: str) -> Stamped:
    return lambda s, v, stamp: s.new(NUMBER, v[field]) if _all_finite(v[field]) else None


def _velocity_covariance(s: MountedInstrument, v: Value, bottom: bool) -> Floats:
    """Return the covariance (3, 3) in S of a velocity over the bottom or through the water. If it is not declared, it
    is computed from the noise of the beams: of all beams or, over the bottom, of the beams with bottom lock.
    """
    p = cast("DvlConfig", s.declared)
    if declared := p.bottom_covariance if bottom else p.water_covariance:
        return s.covariance(declared)
    along, _ = fixed.dvl_beams(p)
    if bottom:
        along = along[np.isfinite(v.beams[: len(along)])]
    inverse = np.linalg.pinv(along)
    return np.asarray(s.variance(p.bottom_sigma if bottom else p.water_sigma) * inverse @ inverse.T)


def _dvl_twist(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(*v.bottom):
        return None
    covariance = s.axes.body_covariance(_velocity_covariance(s, v, True))
    return _twist(s, s.frames.link, stamp, s.axes.body @ v.bottom, covariance)


def _dvl_water(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(*v.water):
        return None
    covariance = s.axes.body_covariance(_velocity_covariance(s, v, False))
    return _twist(s, s.frames.link, stamp, s.axes.body @ v.water, covariance)


def _dvl_velocity(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    """Return the velocity over the bottom, as Panisim publishes it."""
    if not _all_finite(*v.bottom):
        return None
    covariance = s.axes.body_covariance(_velocity_covariance(s, v, True)).ravel()
    velocity = s.factory.vector(s.axes.body @ v.bottom)
    return s.new(PANISIM_DVL, s.factory.header(stamp, s.frames.link), velocity, covariance)


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
    covariance = _velocity_covariance(s, v, bottom)
    along_beams = (four @ (s.covariance(p.bottom_covariance, p.bottom_sigma)) * four).sum(axis=1)
    x, y, _ = velocity
    return s.new(
        DVL,
        s.factory.header(stamp, s.frames.face),
        1 if bottom else 2,
        0,
        s.factory.vector(velocity),
        covariance.ravel(),
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
        np.where(heard, along_beams, -1.0).astype(np.float32),
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
    """Return the directions and origins of an instrument's beams in its link frame."""
    p: Any = s.declared
    along, places = fixed.ranger_beams(p) if s.instrument.type == "ranger" else fixed.multibeam_beams(p)
    return along @ s.axes.body, places @ s.axes.body


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


FromFrame = Callable[
    [MountedInstrument, ImagingFrame, int], Message
]  #: function that converts an instrument's frame with its stamp to a message


#: fields of a lidar's point: name, offset, and type (4 = uint16, 7 = float32), as drivers of Velodyne's lidars publish
#: them
LIDAR_FIELDS = (("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("intensity", 12, 7), ("ring", 16, 4), ("time", 20, 7))
_LIDAR_POINT = np.dtype(
    {
        "names": [name for name, *_ in LIDAR_FIELDS],
        "formats": ["<u2" if type_ == 4 else "<f4" for *_, type_ in LIDAR_FIELDS],
        "offsets": [offset for _, offset, _ in LIDAR_FIELDS],
        "itemsize": 24,
    }
)


def lidar_cloud(s: MountedInstrument, frame: ImagingFrame, stamp: int) -> Message:
    """Return the points of a lidar's scan in its link frame. Rings are numbered from the bottom; times are relative to
    the end of the scan, which is the stamp.
    """
    seen = np.isfinite(frame.ranges)
    row, column = seen.nonzero()
    points = np.zeros(len(row), _LIDAR_POINT)
    points["x"], points["y"], points["z"] = (frame.points_S[seen] @ s.axes.body).T
    points["intensity"] = frame.intensities[seen]
    points["ring"] = len(seen) - 1 - row
    points["time"] = (frame.column_times - frame.column_times[-1])[column]
    fields = [s.new("sensor_msgs/msg/PointField", name, offset, type_, 1) for name, offset, type_ in LIDAR_FIELDS]
    size, data = _LIDAR_POINT.itemsize, np.frombuffer(points.tobytes(), np.uint8)
    header = s.factory.header(stamp, s.frames.link)
    return s.new(CLOUD, header, 1, len(points), fields, False, size, size * len(points), data, True)


def _from_frames(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    """Return None: these messages are made from the frames of the instrument, not from its values."""
    return None


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
    angle = v.angle if s.axes.is_ned else -v.angle
    return s.new(
        "sensor_msgs/msg/LaserScan", header, angle, angle, 0.0, 0.0, 1.0 / p.rate, 0.0, p.maximum, ranges, none
    )


def _speedlog(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(*v.v_FB_B):
        return None
    covariance = s.covariance(cast("SpeedLogConfig", s.declared).velocity_covariance, fixed.SPEED_SIGMA)
    return _twist(s, s.frames.base, stamp, s.axes.body @ v.v_FB_B, s.axes.body_covariance(covariance))


def _uwb(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    if not _all_finite(*v.position):
        return None
    p = cast("UwbConfig", s.declared)
    return _pose(s, stamp, v.position, s.covariance(p.position_covariance, p.sigma))


def _wind(s: MountedInstrument, v: Value, stamp: int) -> Message | None:
    """Return the apparent wind on board."""
    if not _all_finite(v.speed, v.angle) or not isinstance(s.declared, AnemometerConfig):
        return None
    moving = s.axes.body @ np.array([-v.speed * math.cos(v.angle), -v.speed * math.sin(v.angle), 0.0])
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
    """Return the actuators as joints, with angles (rad), shaft speeds (rad/s) and thrusts (N). Quantities that do not
    apply to a joint are 0.
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


def _actuators(s: MountedInstrument, v: Value, stamp: int) -> Message:
    """Return the values of the actuators under their Panisim names, in deg and RPM."""
    return named_actuators.message(s.factory, s.actuators, v.numbers, stamp)


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
    """ROS message type for the values or the frames from a sensor."""

    type: str
    to_message: Stamped
    from_frame: FromFrame | None = None  #: None = made from values


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
        "velocity": SensorOutput(PANISIM_DVL, _dvl_velocity),
    },
    "speedlog": {"twist": SensorOutput(TWIST, _speedlog)},
    "echosounder": {"range": SensorOutput(RANGE, _echosounder)},
    "ranger": {"points": SensorOutput(CLOUD, _cloud)},
    "multibeam": {"points": SensorOutput(CLOUD, _cloud), "ranges": SensorOutput(SONAR, _sonar)},
    "lidar": {"points": SensorOutput(CLOUD, _from_frames, lidar_cloud)},
    "hydrophone": {
        "numbers": NUMBERS,
        "raw": SensorOutput(hydrophones.RAW, _from_frames, hydrophones.raw_samples),
        "samples": SensorOutput(hydrophones.SAMPLES, _from_frames, hydrophones.stamped_samples),
    },
    "scanner": {"scan": SensorOutput("sensor_msgs/msg/LaserScan", _scan)},
    "uwb": {"pose": SensorOutput(POSE, _uwb)},
    "anemometer": {"wind": SensorOutput("geometry_msgs/msg/Vector3Stamped", _wind)},
    "battery": {"state": SensorOutput("sensor_msgs/msg/BatteryState", _battery)},
    "encoder": {
        "joints": SensorOutput(JOINTS, _encoder),
        "actuators": SensorOutput(named_actuators.ACTUATOR, _actuators),
    },
    "rpm": {"joints": SensorOutput(JOINTS, _rpm)},
}


def mounting(s: MountedInstrument) -> list[Message]:
    """Return the static transforms of an instrument: from the body to its link and, for some types, from the link to
    the instrument's own axes and to its beam direction.
    """
    p = s.declared
    none, axes = np.zeros(3), s.axes
    found = [s.factory.transform(0, s.frames.base, s.frames.link, axes.body @ p.position, axes.mount(s.q_BS))]
    if s.instrument.type == "dvl":
        found.append(s.factory.transform(0, s.frames.link, s.frames.face, none, axes.face))
    if s.instrument.type in ("dvl", "echosounder"):
        found.append(s.factory.transform(0, s.frames.link, s.frames.beam, none, axes.beam))
    return found
