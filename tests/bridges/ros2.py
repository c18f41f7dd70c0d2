"""A stand-in for ROS 2 nodes. Messages are declared from their definitions and encoded by Cyclone's own codec, while
the bridge uses that of rosbags. The controllers are written as users write them.
"""

import contextlib
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cyclonedds.core import Listener
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import (
    array,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    sequence,
    uint8,
    uint16,
    uint32,
    uint64,
)
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration
from scipy.spatial.transform import Rotation

CONFIG = """<CycloneDDS><Domain><General><Interfaces><NetworkInterface address="127.0.0.1"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>
<Peers><Peer address="127.0.0.1"/></Peers></Discovery></Domain></CycloneDDS>"""

# ------------------------------------------------------------------------------------------------ messages


def _type(name: str) -> str:
    package, short = name.split("/")
    return f"{package}.msg.dds_.{short}_"


@dataclass
class Time(IdlStruct, typename=_type("builtin_interfaces/Time")):
    sec: int32 = 0
    nanosec: uint32 = 0

    @property
    def ns(self) -> int:
        return int(self.sec * 1_000_000_000 + self.nanosec)


@dataclass
class Header(IdlStruct, typename=_type("std_msgs/Header")):
    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@dataclass
class Clock(IdlStruct, typename=_type("rosgraph_msgs/Clock")):
    clock: Time


@dataclass
class Vector3(IdlStruct, typename=_type("geometry_msgs/Vector3")):
    x: float64
    y: float64
    z: float64

    @property
    def array(self) -> Any:
        return np.array([self.x, self.y, self.z])


@dataclass
class Point(IdlStruct, typename=_type("geometry_msgs/Point")):
    x: float64
    y: float64
    z: float64

    @property
    def array(self) -> Any:
        return np.array([self.x, self.y, self.z])


@dataclass
class Quaternion(IdlStruct, typename=_type("geometry_msgs/Quaternion")):
    x: float64
    y: float64
    z: float64
    w: float64

    @property
    def rotation(self) -> Rotation:
        return Rotation.from_quat([self.x, self.y, self.z, self.w])

    @property
    def yaw(self) -> float:
        return float(self.rotation.as_euler("ZYX")[0])


@dataclass
class Pose(IdlStruct, typename=_type("geometry_msgs/Pose")):
    position: Point
    orientation: Quaternion


@dataclass
class PoseWithCovariance(IdlStruct, typename=_type("geometry_msgs/PoseWithCovariance")):
    pose: Pose
    covariance: array[float64, 36]


@dataclass
class PoseStamped(IdlStruct, typename=_type("geometry_msgs/PoseWithCovarianceStamped")):
    header: Header
    pose: PoseWithCovariance


@dataclass
class Twist(IdlStruct, typename=_type("geometry_msgs/Twist")):
    linear: Vector3
    angular: Vector3


@dataclass
class Wrench(IdlStruct, typename=_type("geometry_msgs/Wrench")):
    force: Vector3
    torque: Vector3


@dataclass
class TwistWithCovariance(IdlStruct, typename=_type("geometry_msgs/TwistWithCovariance")):
    twist: Twist
    covariance: array[float64, 36]


@dataclass
class Odometry(IdlStruct, typename=_type("nav_msgs/Odometry")):
    header: Header
    child_frame_id: str
    pose: PoseWithCovariance
    twist: TwistWithCovariance


@dataclass
class Transform(IdlStruct, typename=_type("geometry_msgs/Transform")):
    translation: Vector3
    rotation: Quaternion


@dataclass
class TransformStamped(IdlStruct, typename=_type("geometry_msgs/TransformStamped")):
    header: Header
    child_frame_id: str
    transform: Transform


@dataclass
class TFMessage(IdlStruct, typename=_type("tf2_msgs/TFMessage")):
    transforms: sequence[TransformStamped]


@dataclass
class Imu(IdlStruct, typename=_type("sensor_msgs/Imu")):
    header: Header
    orientation: Quaternion
    orientation_covariance: array[float64, 9]
    angular_velocity: Vector3
    angular_velocity_covariance: array[float64, 9]
    linear_acceleration: Vector3
    linear_acceleration_covariance: array[float64, 9]


@dataclass
class NavSatStatus(IdlStruct, typename=_type("sensor_msgs/NavSatStatus")):
    status: int8
    service: uint16


@dataclass
class NavSatFix(IdlStruct, typename=_type("sensor_msgs/NavSatFix")):
    header: Header
    status: NavSatStatus
    latitude: float64
    longitude: float64
    altitude: float64
    position_covariance: array[float64, 9]
    position_covariance_type: uint8


@dataclass
class JointState(IdlStruct, typename=_type("sensor_msgs/JointState")):
    header: Header
    name: sequence[str]
    position: sequence[float64]
    velocity: sequence[float64]
    effort: sequence[float64]


@dataclass
class FluidPressure(IdlStruct, typename=_type("sensor_msgs/FluidPressure")):
    header: Header
    fluid_pressure: float64
    variance: float64


@dataclass
class Float64(IdlStruct, typename=_type("std_msgs/Float64")):
    data: float64


@dataclass
class FloatStamped(IdlStruct, typename=_type("uuv_gazebo_ros_plugins_msgs/FloatStamped")):
    header: Header
    data: float64


@dataclass
class String(IdlStruct, typename=_type("std_msgs/String")):
    data: str


@dataclass
class Dimension(IdlStruct, typename=_type("std_msgs/MultiArrayDimension")):
    label: str
    size: uint32
    stride: uint32


@dataclass
class MultiArrayLayout(IdlStruct, typename=_type("std_msgs/MultiArrayLayout")):
    dim: sequence[Dimension] = field(default_factory=list)
    data_offset: uint32 = 0


@dataclass
class Float64MultiArray(IdlStruct, typename=_type("std_msgs/Float64MultiArray")):
    layout: MultiArrayLayout
    data: sequence[float64]


@dataclass
class Actuator(IdlStruct, typename=_type("interfaces/Actuator")):
    """As the manual of Panisim defines it (Actuator.msg)."""

    header: Header
    actuator_names: sequence[str]
    actuator_values: sequence[float64]


@dataclass
class PanisimDvl(IdlStruct, typename=_type("interfaces/DVL")):
    header: Header
    velocity: Vector3
    covariance: array[float64, 9]


@dataclass
class PointField(IdlStruct, typename=_type("sensor_msgs/PointField")):
    name: str
    offset: uint32
    datatype: uint8
    count: uint32


@dataclass
class PointCloud2(IdlStruct, typename=_type("sensor_msgs/PointCloud2")):
    header: Header
    height: uint32
    width: uint32
    fields: sequence[PointField]
    is_bigendian: bool
    point_step: uint32
    row_step: uint32
    data: sequence[uint8]
    is_dense: bool

    @property
    def array(self) -> Any:
        """The points as a structured array, decoded as their fields describe them."""
        kinds = {2: "u1", 4: "<u2", 6: "<u4", 7: "<f4", 8: "<f8"}
        point = np.dtype(
            {
                "names": [f.name for f in self.fields],
                "formats": [kinds[f.datatype] for f in self.fields],
                "offsets": [f.offset for f in self.fields],
                "itemsize": self.point_step,
            }
        )
        assert self.row_step == self.point_step * self.width and not self.is_bigendian
        return np.frombuffer(bytes(self.data), point, self.height * self.width)


@dataclass
class Dvl(IdlStruct, typename=_type("marine_acoustic_msgs/Dvl")):
    header: Header
    velocity_mode: uint8
    dvl_type: uint8
    velocity: Vector3
    velocity_covar: array[float64, 9]
    altitude: float64
    course_gnd: float64
    speed_gnd: float64
    num_good_beams: uint8
    sound_speed: float32
    beam_ranges_valid: bool
    beam_velocities_valid: bool
    beam_unit_vec: array[Vector3, 4]
    range: array[float64, 4]
    range_covar: array[float32, 4]
    beam_quality: array[float32, 4]
    beam_velocity: array[float32, 4]
    beam_velocity_covar: array[float32, 4]


@dataclass
class ParameterValue(IdlStruct, typename=_type("rcl_interfaces/ParameterValue")):
    type: uint8 = 4
    bool_value: bool = False
    integer_value: int64 = 0
    double_value: float64 = 0.0
    string_value: str = ""
    byte_array_value: sequence[uint8] = field(default_factory=list)
    bool_array_value: sequence[bool] = field(default_factory=list)
    integer_array_value: sequence[int64] = field(default_factory=list)
    double_array_value: sequence[float64] = field(default_factory=list)
    string_array_value: sequence[str] = field(default_factory=list)


@dataclass
class Parameter(IdlStruct, typename=_type("rcl_interfaces/Parameter")):
    name: str
    value: ParameterValue


@dataclass
class SetParametersResult(IdlStruct, typename=_type("rcl_interfaces/SetParametersResult")):
    successful: bool
    reason: str


# Services, as rmw_cyclonedds has them: whose call it is stands before the fields.
@dataclass
class TriggerRequest(IdlStruct, typename="std_srvs.srv.dds_.Trigger_Request_"):
    caller: uint64
    call: int64
    structure_needs_at_least_one_member: uint8 = 0


@dataclass
class TriggerResponse(IdlStruct, typename="std_srvs.srv.dds_.Trigger_Response_"):
    caller: uint64
    call: int64
    success: bool
    message: str


@dataclass
class SetParametersRequest(IdlStruct, typename="rcl_interfaces.srv.dds_.SetParameters_Request_"):
    caller: uint64
    call: int64
    parameters: sequence[Parameter]


@dataclass
class SetParametersResponse(IdlStruct, typename="rcl_interfaces.srv.dds_.SetParameters_Response_"):
    caller: uint64
    call: int64
    results: sequence[SetParametersResult]


def dds(kind: type) -> str:
    """Name of a type in DDS."""
    return str(kind.__idl__.idl_transformed_typename)  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ the node


def domains() -> Iterator[int]:
    """A DDS domain that nobody else on this machine uses, as long as they do the same; and where no participant is that somebody
    left behind."""
    for domain in range(1, 100):
        first = 7400 + 250 * domain
        with contextlib.ExitStack() as stack:
            try:
                lock = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                lock.bind(("127.0.0.1", first + 249))
                for participant in range(8):
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                        probe.bind(("", first + 10 + 2 * participant))
            except OSError:
                continue
            yield domain
            return
    raise AssertionError("all domains are in use")


class Node:
    """Calls functions with what it hears, in threads of DDS; what they raise is kept in ``errors``."""

    def __init__(self, domain: int, beside: bool = False) -> None:
        """``beside``: in a process that is in this domain already."""
        self.errors: list[Exception] = []
        self._domain = None if beside else Domain(domain, CONFIG)
        self._participant = DomainParticipant(domain)
        self._kept: list[Any] = []
        self._calls = 0

    def read(
        self, topic: str, kind: type, call: Callable[[Any], None], latched: bool = False, inside: str = "rt"
    ) -> DataReader[Any]:
        node, turn = self, threading.RLock()
        taken: deque[Any] = deque()
        busy = False  # DDS may call the listener again from within ``call``: later samples wait for earlier ones

        class Ear(Listener):
            def on_data_available(self, reader: Any) -> None:
                nonlocal busy
                if reader is None:  # while it is being made
                    return
                try:
                    with turn:
                        taken.extend(s for s in reader.take(100) if s.sample_info.valid_data)
                        if busy:
                            return
                        busy = True
                        try:
                            while taken:
                                call(taken.popleft())
                        finally:
                            busy = False
                except Exception as error:
                    node.errors.append(error)

        late = [Policy.Durability.TransientLocal] if latched else []
        qos = Qos(Policy.Reliability.Reliable(duration(seconds=0)), Policy.History.KeepLast(1000), *late)
        ear = Ear()  # type: ignore[no-untyped-call]
        reader = DataReader(self._participant, Topic(self._participant, inside + topic, kind), qos=qos, listener=ear)
        ear.on_data_available(reader)  # what came before it could be asked
        self._kept += [reader, ear]
        return reader

    def latest(self, topic: str, kind: type) -> list[Any]:
        """All messages of a topic from now on, in a list that grows."""
        found: list[Any] = []
        self.read(topic, kind, found.append)
        return found

    def writer(self, topic: str, kind: type, inside: str = "rt") -> DataWriter[Any]:
        qos = Qos(Policy.Reliability.Reliable(duration(seconds=0)), Policy.History.KeepLast(10))
        writer: DataWriter[Any] = DataWriter(self._participant, Topic(self._participant, inside + topic, kind), qos=qos)
        self._kept.append(writer)
        return writer

    def call(self, service: str, asked: type, response_type: type, *fields: Any, seconds: float = 150.0) -> Any:
        """Call a service; its answer."""
        answers: list[Any] = []
        reader = self.read(f"{service}Reply", response_type, answers.append, inside="rr")
        writer = self.writer(f"{service}Request", asked, inside="rq")
        until(lambda: writer.get_matched_subscriptions() and reader.get_matched_publications(), seconds)
        self._calls += 1
        writer.write(asked(4711, self._calls, *fields))
        until(lambda: answers, seconds)
        assert (answers[0].caller, answers[0].call) == (4711, self._calls)
        return answers[0]

    def close(self) -> None:
        self._kept.clear()
        del self._participant, self._domain


def until(condition: Callable[[], object], seconds: float = 150.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "timed out"
        time.sleep(0.01)


# ------------------------------------------------------------------------------------------------ controllers


def clipped(value: float, limit: float) -> float:
    return max(-limit, min(limit, value))


def turned(a: float, b: float) -> float:
    return (a - b + math.pi) % (2 * math.pi) - math.pi


A = math.sqrt(0.5)
#: force ahead, to port and moment to port of a BlueROV2's horizontal thrusters: front starboard, front port, rear starboard, port
HORIZONTAL = np.array([[A, A, A, A], [A, -A, -A, A], [0.189, -0.189, 0.189, -0.189]])


class Rov:
    """Goes from point to point (ENU) and keeps its heading, by an array of thrusts in N."""

    def __init__(self, points: list[tuple[float, float, float]], yaw: float) -> None:
        self.points, self.yaw, self.at = points, yaw, 0

    def thrusts(self, o: Odometry) -> list[float]:
        p, R = o.pose.pose.position.array, o.pose.pose.orientation.rotation
        v, w = o.twist.twist.linear.array, o.twist.twist.angular.array
        if np.linalg.norm(p - self.points[self.at]) < 0.3 and self.at + 1 < len(self.points):
            self.at += 1
        error = R.inv().apply(np.array(self.points[self.at]) - p)
        push = np.clip(40.0 * error, -40.0, 40.0) - 50.0 * v
        moment = 6.0 * turned(self.yaw, o.pose.pose.orientation.yaw) - 4.0 * w[2]
        horizontal = np.linalg.pinv(HORIZONTAL) @ [push[0], push[1], moment]
        return [*np.clip(horizontal, -40.0, 40.0).tolist(), *[clipped(-push[2] / 2, 40.0)] * 2]


class Auv:
    """Holds depth and heading with a propeller (rad/s) and four fins (rad)."""

    def __init__(self, depth: float, yaw: float) -> None:
        self.depth, self.yaw, self._integral = depth, yaw, 0.0

    def outputs(self, o: Odometry) -> tuple[float, list[float]]:
        yaw, pitch, _ = o.pose.pose.orientation.rotation.as_euler("ZYX")
        w = o.twist.twist.angular.array
        error = -self.depth - o.pose.pose.position.z  # positive: too deep
        if abs(error) < 0.7:
            self._integral += 0.04 * error
        nose_up = clipped(0.2 * error + 0.02 * self._integral, 0.4)
        plane = clipped(1.2 * (nose_up + pitch) + w[1], 0.26)  # pitch is positive with the nose down here
        to_port = clipped(turned(self.yaw, yaw) - 1.2 * w[2], 0.26)
        return 177.0, [to_port, to_port, plane, plane]


class Boat:
    """Goes to a point (degrees) by its receiver and its inertial unit alone, as VRX's teams do; both engines straight ahead."""

    def __init__(self, latitude: float, longitude: float) -> None:
        self.goal = latitude, longitude
        self.fix: NavSatFix | None = None
        self.left = math.inf  #: m to the goal

    def thrusts(self, imu: Imu) -> tuple[float, float]:
        if self.fix is None:
            return 0.0, 0.0
        north = math.radians(self.goal[0] - self.fix.latitude) * 6.37e6
        east = math.radians(self.goal[1] - self.fix.longitude) * 6.37e6 * math.cos(math.radians(self.goal[0]))
        self.left = math.hypot(north, east)
        wrong = turned(math.atan2(north, east), imu.orientation.yaw)
        ahead = clipped(80.0 * self.left, 600.0) * max(math.cos(wrong), 0.0) ** 4
        turn = clipped(900.0 * wrong - 500.0 * imu.angular_velocity.z, 500.0)
        return ahead - turn, ahead + turn


@dataclass
class PingInfo(IdlStruct, typename=_type("marine_acoustic_msgs/PingInfo")):
    frequency: float32
    sound_speed: float32
    tx_beamwidths: sequence[float32]
    rx_beamwidths: sequence[float32]


@dataclass
class SonarImageData(IdlStruct, typename=_type("marine_acoustic_msgs/SonarImageData")):
    is_bigendian: bool
    dtype: uint32
    beam_count: uint32
    data: sequence[uint8]


@dataclass
class RawSonarImage(IdlStruct, typename=_type("marine_acoustic_msgs/RawSonarImage")):
    header: Header
    ping_info: PingInfo
    sample_rate: float32
    samples_per_beam: uint32
    sample0: uint32
    tx_delays: sequence[float32]
    tx_angles: sequence[float32]
    rx_angles: sequence[float32]
    image: SonarImageData

    @property
    def array(self) -> Any:
        """The samples (channels, samples)."""
        kind = {3: "<i2", 5: "<i4", 8: "<f4"}[self.image.dtype]
        return np.frombuffer(bytes(self.image.data), kind).reshape(self.samples_per_beam, self.image.beam_count).T


@dataclass
class HydrophoneSamples(IdlStruct, typename=_type("mil_passive_sonar/HydrophoneSamples")):
    channels: int32
    samples: int32
    sample_rate: int32
    data: sequence[int16]


@dataclass
class HydrophoneSamplesStamped(IdlStruct, typename=_type("mil_passive_sonar/HydrophoneSamplesStamped")):
    header: Header
    hydrophone_samples: HydrophoneSamples
