"""Instruments in ROS 2: frames checked by SciPy, covariances checked by random draws."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wavesim_bridges.ros2 import sensors
from wavesim_bridges.ros2.message_types import MessageTypes
from wavesim_bridges.ros2.mounted_instrument import FrameNames, MessageFactory, MountedInstrument
from wavesim_bridges.ros2.sensors import NUMBERS, OUTPUTS, mounting
from wavesim_sdk.axes import attitude_enu
from wavesim_sdk.frames import quaternion
from wavesim_sdk.sensors import sensor_table_of, value_fields
from wavesim_sdk.wire.items import FieldDescription, SensorDescription
from wavesim_sdk.wire.state import Layout as ValueLayout
from wavesim_sdk.wire.state import Value
from wavesim_world.actuators import actuators_of
from wavesim_world.config import sensors as declared
from wavesim_world.config.build import library
from wavesim_world.config.sensors import InstrumentConfig
from wavesim_world.instruments import dvl_beams

B = np.diag([1.0, -1.0, -1.0])
AT = 12_345_678_901  #: ns


@pytest.fixture(scope="module")
def types() -> MessageTypes:
    return MessageTypes("jazzy")


def mounted(types: MessageTypes, type_: str, **given: Any) -> MountedInstrument:
    kinds = {k: getattr(declared, f"{k.capitalize()}Config", declared.SensorConfig) for k in OUTPUTS}
    kinds["speedlog"] = declared.SpeedLogConfig
    parameters = kinds.get(type_, declared.SensorConfig)(**given)
    fields = tuple((f.name, math.prod(f.shape)) for f in value_fields(sensor_table_of(type_)))
    frames = FrameNames("odom", "v/base_link", "v/s_link", "v/s_frd", "v/s_beam")
    return MountedInstrument(
        InstrumentConfig("s", type_, parameters, sensor_table_of(type_)), frames, MessageFactory(types), fields
    )


def measured(s: MountedInstrument, **given: Any) -> Value:
    """NaN where nothing is given."""
    numbers: list[float] = []
    for name, count in s.fields:
        value = given.get(name, math.nan)
        numbers += [*value, *[math.nan] * (count - len(value))] if isinstance(value, list) else [value] * count
    fields = [FieldDescription(name, "", count) for name, count in s.fields]
    return Value(ValueLayout(SensorDescription(0, "s", s.instrument.type, 1, fields)), AT, tuple(numbers))


def converted(s: MountedInstrument, output: str, **given: Any) -> Any:
    found = OUTPUTS[s.instrument.type][output].to_message(s, measured(s, **given), AT)
    if found is not None and hasattr(found, "header"):
        assert (found.header.stamp.sec, found.header.stamp.nanosec) == (12, 345_678_901)
    if found is not None:
        s.factory.types.packed(found)
    return found


def vector(v: Any) -> Any:
    return np.array([v.x, v.y, v.z])


def rotation(q: Any) -> Rotation:
    return Rotation.from_quat([q.x, q.y, q.z, q.w])


@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0), (math.pi, 0.0, 0.0), (0.3, -0.2, 2.0)])
def test_an_imu_as_it_is_mounted(types: MessageTypes, attitude: tuple[float, float, float]) -> None:
    """By tf its values are the body's; its attitude is that of its link."""
    s = mounted(types, "imu", attitude=attitude, position=(1.0, 2.0, 3.0), rate=100.0, noise=2.0)
    R_BS = Rotation.from_euler("ZYX", attitude[::-1]).as_matrix()
    force_B, rates_B = np.array([0.1, 0.2, -9.8]), np.array([0.01, 0.02, 0.03])
    m = converted(s, "raw", force=(R_BS.T @ force_B).tolist(), rates=(R_BS.T @ rates_B).tolist())
    (link,) = mounting(s)
    assert (
        (link.header.frame_id, link.child_frame_id) == ("v/base_link", m.header.frame_id) == ("v/base_link", "v/s_link")
    )
    assert vector(link.transform.translation).tolist() == [1.0, -2.0, -3.0]
    R = rotation(link.transform.rotation)
    assert R.apply(vector(m.linear_acceleration)) == pytest.approx(B @ force_B)
    assert R.apply(vector(m.angular_velocity)) == pytest.approx(B @ rates_B)
    assert m.orientation_covariance[0] == -1.0
    assert m.angular_velocity_covariance.reshape(3, 3) == pytest.approx(np.eye(3) * (2 * 3.394e-4) ** 2 * 100.0)
    assert m.linear_acceleration_covariance.reshape(3, 3) == pytest.approx(np.eye(3) * (2 * 0.004) ** 2 * 100.0)
    ahrs = mounted(types, "ahrs")
    q_WB = quaternion(0.1, 0.2, 1.0)
    full = sensors.with_attitude(s, m, ahrs, measured(ahrs, roll=0.1, pitch=0.2, heading=1.0))
    body = Rotation.from_quat(attitude_enu(q_WB), scalar_first=True)
    assert (rotation(full.orientation).inv() * (body * R)).magnitude() < 1e-12
    assert converted(s, "raw", force=[0.0, 0.0, math.nan], rates=[0.0] * 3) is None


def test_an_ahrs_looks_east_at_zero(types: MessageTypes) -> None:
    s = mounted(types, "ahrs")
    m = converted(s, "data", roll=0.0, pitch=0.1, heading=math.radians(350.0), rates=[0.1, 0.2, 0.3])
    yaw, pitch, roll = rotation(m.orientation).as_euler("ZYX", degrees=True)
    assert (yaw, pitch, roll) == pytest.approx((100.0, -math.degrees(0.1), 0.0))
    assert vector(m.angular_velocity).tolist() == [0.1, -0.2, -0.3] and m.linear_acceleration_covariance[0] == -1.0
    assert np.sqrt(m.orientation_covariance[[0, 4, 8]]) == pytest.approx(np.radians([0.1, 0.1, 0.3]))
    assert m.header.frame_id == "v/base_link"


def test_a_receiver(types: MessageTypes) -> None:
    s = mounted(types, "gps", hacc=2.0, vacc=4.0, speed_sigma=0.1)
    m = converted(s, "fix", latitude=math.radians(41.0), longitude=math.radians(-8.0), height=3.0)
    assert (m.latitude, m.longitude, m.altitude) == pytest.approx((41.0, -8.0, 3.0)) and m.status.status == 0
    assert (
        m.position_covariance.reshape(3, 3) == pytest.approx(np.diag([2.0, 2.0, 16.0]))
        and m.position_covariance_type == 2
    )
    v = converted(s, "velocity", sog=2.0, cog=math.radians(90.0))
    assert vector(v.twist.twist.linear) == pytest.approx([2.0, 0.0, 0.0]) and v.header.frame_id == "odom"
    assert v.twist.covariance[0] == pytest.approx(0.01)
    assert converted(s, "fix").status.status == -1 and sensors.no_fix(s, AT).position_covariance_type == 0


@pytest.mark.parametrize("beams", [4, 3])
def test_a_doppler_log_states_its_noise(types: MessageTypes, beams: int) -> None:
    """The covariance is that of velocities drawn as the instrument draws them."""
    s = mounted(types, "dvl", bottom_sigma=0.02, noise=1.5)
    along, _ = dvl_beams(s.declared)  # type: ignore[arg-type]
    along = along[:beams]
    v = np.array([1.0, 0.2, -0.1])
    seen = along @ v
    given: dict[str, Any] = {
        "bottom": v.tolist(),
        "beams": seen.tolist(),
        "ranges": [9.0] * beams,
        "altitude": 8.0,
        "locked": beams,
    }
    m, twist = converted(s, "dvl", **given), converted(s, "twist", **given)
    drawn = (seen + 0.03 * np.random.default_rng(1).normal(size=(30_000, beams))) @ np.linalg.pinv(along).T
    assert m.velocity_covar.reshape(3, 3) == pytest.approx(np.cov(drawn.T), rel=0.05, abs=3e-5)
    assert twist.twist.covariance.reshape(6, 6)[:3, :3] == pytest.approx(np.cov((drawn @ B).T), rel=0.05, abs=3e-5)
    assert vector(m.velocity) == pytest.approx(v) and vector(twist.twist.twist.linear) == pytest.approx(B @ v)
    assert (m.velocity_mode, m.num_good_beams, m.altitude) == (1, beams, 8.0) and m.header.frame_id == "v/s_frd"
    assert m.speed_gnd == pytest.approx(math.hypot(1.0, 0.2)) and m.course_gnd == pytest.approx(math.atan2(0.2, 1.0))
    down = {t.child_frame_id: rotation(t.transform.rotation) for t in mounting(s)}
    assert down["v/s_frd"].apply([0, 0, 1]) == pytest.approx([0, 0, -1]) == down["v/s_beam"].apply([1, 0, 0])
    water = converted(s, "dvl", water=[1.0, 0.0, 0.0])
    assert water.velocity_mode == 2 and water.altitude == -1.0 and converted(s, "twist", water=[1.0, 0.0, 0.0]) is None
    assert converted(s, "altitude").range == math.inf and converted(s, "dvl") is None


def test_water(types: MessageTypes) -> None:
    s = mounted(types, "pressure", noise=2.0)
    m = converted(s, "pressure", pressure=11.0, depth=1.0)
    assert m.fluid_pressure == pytest.approx(110_000.0) and m.variance == pytest.approx((2 * 0.01 * 1e4) ** 2)
    k = converted(s, "pressure_kpa", pressure=11.0)
    assert k.fluid_pressure == pytest.approx(110.0) and k.variance == pytest.approx((2 * 0.1) ** 2)
    d = converted(s, "depth", depth=7.0)
    assert (
        d.pose.pose.position.z == -7.0
        and d.pose.covariance[14] == pytest.approx(0.02**2, rel=0.02)
        and d.pose.covariance[0] >= 1e6
    )
    assert converted(mounted(types, "ctd"), "temperature", temperature=12.0).variance == pytest.approx(0.002**2)
    assert (
        converted(mounted(types, "ctd"), "salinity", salinity=35.0).data == 35.0
        and converted(mounted(types, "ctd"), "conductivity") is None
    )
    assert converted(mounted(types, "salinity"), "salinity", salinity=34.0).data == 34.0
    log = converted(mounted(types, "speedlog"), "twist", v_FB_B=[1.0, 2.0, 3.0])
    assert vector(log.twist.twist.linear).tolist() == [1.0, -2.0, -3.0] and log.twist.covariance[0] == pytest.approx(
        1e-4
    )


def test_distances(types: MessageTypes) -> None:
    s = mounted(types, "echosounder", maximum=30.0, width=0.2)
    m = converted(s, "range", range=12.0)
    assert (m.range, m.max_range, m.variance, m.header.frame_id) == pytest.approx(
        (12.0, 30.0, 0.02**2, "v/s_beam"), rel=1e-6
    )
    assert converted(s, "range").range == math.inf
    assert not hasattr(converted(mounted(MessageTypes("humble"), "echosounder"), "range", range=1.0), "variance")
    fan = mounted(types, "multibeam", beams=4, width=math.radians(90.0))
    sonar = converted(fan, "ranges", range=[10.0, 20.0, math.nan, 40.0])
    assert [f.flag for f in sonar.flags] == [0, 0, 1, 0] and sonar.ranges[1] == 20.0 and len(sonar.ranges) == 4
    assert vector(sonar.beam_unit_vec[0]) == pytest.approx([0.0, math.sqrt(0.5), -math.sqrt(0.5)]), "port first, down"
    cloud = converted(fan, "points", range=[10.0, 20.0, math.nan, 40.0])
    points = np.frombuffer(cloud.data.tobytes(), "<f4").reshape(-1, 3)
    assert cloud.width == 3 == len(points) and points[0] == pytest.approx([0.0, math.sqrt(50.0), -math.sqrt(50.0)])
    ahead = converted(mounted(types, "ranger"), "points", range=[5.0])
    assert np.frombuffer(ahead.data.tobytes(), "<f4") == pytest.approx([5.0, 0.0, 0.0])
    ray = converted(mounted(types, "scanner"), "scan", angle=0.5, range=7.0)
    assert ray.angle_min == ray.angle_max == pytest.approx(-0.5) and ray.ranges.tolist() == [7.0]


def test_the_rest(types: MessageTypes) -> None:
    p = converted(mounted(types, "uwb", sigma=0.5), "pose", position=[1.0, 2.0, -3.0])
    assert vector(p.pose.pose.position).tolist() == [2.0, 1.0, 3.0] and p.pose.covariance[7] == 0.25
    wind = converted(mounted(types, "anemometer"), "wind", speed=5.0, angle=math.pi / 2)
    assert vector(wind.vector) == pytest.approx([0.0, 5.0, 0.0]), "from starboard: the air goes to port"
    b = converted(
        mounted(types, "battery", capacity=500.0, voltage=25.0), "state", voltage=24.0, current=2.0, charge=0.5
    )
    assert (b.voltage, b.current, b.charge, b.capacity, b.percentage) == (24.0, -2.0, 10.0, 20.0, 0.5)
    s = mounted(types, "leak")
    numbers = NUMBERS.to_message(s, measured(s, wet=[0.0, 1.0]), AT)
    assert numbers.data[:2].tolist() == [0.0, 1.0] and [d.label for d in numbers.layout.dim] == ["wet"]


def test_actuators_are_joints(types: MessageTypes) -> None:
    actuators = actuators_of(library()["remus100-fossen"])
    j = sensors.joints(MessageFactory(types), actuators, [10.0, 0.1, -0.2], AT)
    assert j.name == ["propeller", "rudder", "stern-plane"]
    assert (
        j.velocity.tolist() == [20.0 * math.pi, 0.0, 0.0]
        and j.position.tolist() == [0.0, 0.1, -0.2]
        and not j.effort.any()
    )


#: outputs that report a missing measurement by a code of the message type; of all others, nothing is sent
CODED = {"numbers", "fix", "altitude", "range", "points", "ranges", "scan", "state", "joints", "actuators"}


@pytest.mark.parametrize(("type_", "output"), [(t, output) for t, outputs in OUTPUTS.items() for output in outputs])
def test_without_a_measurement(types: MessageTypes, type_: str, output: str) -> None:
    coded = output in CODED and type_ != "lidar"  # its points are in frames, not in values
    assert (converted(mounted(types, type_), output) is None) != coded


def test_motion_through_the_water_and_shafts(types: MessageTypes) -> None:
    water = converted(mounted(types, "dvl"), "water", water=[1.0, 2.0, 3.0])
    assert vector(water.twist.twist.linear).tolist() == [1.0, -2.0, -3.0]
    assert water.header.frame_id == "v/s_link"
    actuators = actuators_of(library()["remus100-fossen"])
    shafts = converted(dataclasses.replace(mounted(types, "rpm"), actuators=actuators), "joints", rpm=[600.0])
    assert list(shafts.name) == ["propeller"] and len(shafts.position) == 0
    assert list(shafts.velocity) == pytest.approx([20.0 * math.pi])
    encoder = dataclasses.replace(mounted(types, "encoder"), actuators=actuators)
    joints = converted(encoder, "joints", actuator=[10.0, 0.1, -0.2])
    assert list(joints.name) == [a.name for a in actuators] and joints.position.tolist() == [0.0, 0.1, -0.2]
