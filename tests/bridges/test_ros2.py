"""ROS 2: bytes against another codec, hashes, what instruments say against SciPy, layouts, a clock that never falls."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cyclonedds.idl import make_idl_struct
from scipy.spatial.transform import Rotation

from tests.bridges import ros2
from wavesim_bridges.motion import attitude_enu
from wavesim_bridges.ros2 import command, sensors
from wavesim_bridges.ros2.bridge import Clock
from wavesim_bridges.ros2.layout import Layout, presets
from wavesim_bridges.ros2.node import Node, legal
from wavesim_bridges.ros2.sensors import NUMBERS, OUTPUTS, Frames, Make, Mounted, mounting
from wavesim_bridges.ros2.types import ADDED, DISTROS, SERVICES, Types, Unusable, dds_name
from wavesim_sdk.actuators import ActuatorKind, actuators_of
from wavesim_sdk.config import load
from wavesim_sdk.config import sensors as declared
from wavesim_sdk.config.load import library
from wavesim_sdk.config.sensors import Instrument
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frames import quaternion
from wavesim_sdk.instruments import dvl_beams
from wavesim_sdk.sensors import table_of, value_fields
from wavesim_sdk.wire.items import ActuatorDescription, FieldDescription, SensorDescription
from wavesim_sdk.wire.state import Layout as ValueLayout
from wavesim_sdk.wire.state import Value

B = np.diag([1.0, -1.0, -1.0])
USED = sorted(
    {o.type for outputs in OUTPUTS.values() for o in outputs.values()}
    | {
        NUMBERS.type,
        *ADDED,
        "nav_msgs/msg/Odometry",
        "tf2_msgs/msg/TFMessage",
        "rosgraph_msgs/msg/Clock",
        "std_msgs/msg/String",
    }
    | {"rmw_dds_common/msg/ParticipantEntitiesInfo"}
    | {f"{name}_{part}" for name in SERVICES for part in ("Request", "Response")}
)


@pytest.fixture(scope="module")
def types() -> Types:
    return Types("jazzy")


# -- bytes -----------------------------------------------------------------------------------------------

SPANS = {
    "int8": 7,
    "uint8": 8,
    "byte": 8,
    "char": 8,
    "int16": 15,
    "uint16": 16,
    "int32": 31,
    "uint32": 32,
    "int64": 63,
    "uint64": 64,
}


def anything(types: Types, dice: random.Random, kind: Any, what: Any, plain: dict[str, type]) -> tuple[Any, Any]:
    """A random value of a field, for rosbags and for Cyclone's codec."""
    if kind == 2:  # of another type
        made = {f: anything(types, dice, *described, plain) for f, described in types.store.fielddefs[what][1]}
        return types.new(what)(*(a for a, _ in made.values())), plain_type(types, what, plain)(
            **{f: b for f, (_, b) in made.items()}
        )
    if kind == 1:
        name = what[0]
        if name in SPANS:
            signed = name.startswith("int")
            value: Any = dice.randrange(-(2 ** SPANS[name]) if signed else 0, 2 ** SPANS[name])
        elif name == "bool":
            value = dice.random() < 0.5
        elif name == "string":
            value = "".join(dice.choice("abc/_ é°") for _ in range(dice.randrange(12)))
        else:
            value = float(np.float32(dice.gauss(0.0, 100.0))) if name == "float32" else dice.gauss(0.0, 100.0)
        return value, value
    count = what[1] if kind == 3 else dice.randrange(5)
    both = [anything(types, dice, *what[0], plain) for _ in range(count)]
    ours, theirs = [a for a, _ in both], [b for _, b in both]
    if what[0][0] == 1 and what[0][1][0] != "string":
        ours = np.array(ours, {"byte": np.uint8, "char": np.uint8, "bool": np.bool_}.get(what[0][1][0], what[0][1][0]))  # type: ignore[assignment]
    return ours, theirs


def plain_type(types: Types, name: str, known: dict[str, type]) -> type:
    """The type with Cyclone's own codec."""
    if name not in known:
        ours = types.struct(name)
        fields = {f: plain_field(types, *described, known) for f, described in types.store.fielddefs[name][1]}
        assert list(ours.__annotations__)[-len(fields) :] == list(fields)
        known[name] = make_idl_struct(name.replace("/", "_"), dds_name(name) + "plain", fields)
    return known[name]


def plain_field(types: Types, kind: Any, what: Any, known: dict[str, type]) -> Any:
    if kind == 2:
        return plain_type(types, what, known)
    if kind == 1:
        other = {"bool": bool, "string": str, "byte": ros2.uint8, "char": ros2.uint8}
        return other.get(what[0]) or getattr(__import__("cyclonedds.idl.types", fromlist=["x"]), what[0])
    of = plain_field(types, *what[0], known)
    return ros2.array[of, what[1]] if kind == 3 else ros2.sequence[of]  # type: ignore[misc]


@pytest.mark.parametrize("name", USED)
def test_bytes_are_those_of_another_codec(types: Types, name: str) -> None:
    """Random messages, there and back."""
    dice, known = random.Random(name), dict[str, type]()
    for _ in range(40):
        ours, theirs = anything(types, dice, 2, name, known)
        data = types.packed(ours)
        assert data == theirs.serialize()
        again = types.read(data, name)
        assert types.packed(again) == data and type(again) is type(ours)


def test_declared_by_hand_it_is_the_same(types: Types) -> None:
    """The stand-in's messages: declared from their definitions, not from the bridge's."""
    found = 0
    for kind in vars(ros2).values():
        if isinstance(kind, type) and issubclass(kind, ros2.IdlStruct) and kind is not ros2.IdlStruct:
            package, word, _, short = ros2.dds(kind).split("::")
            name = f"{package}/{word}/{short.removesuffix('_')}"
            assert ros2.dds(kind) == dds_name(name).replace(".", "::")
            ours, fields = types.struct(name), kind.__dataclass_fields__  # type: ignore[attr-defined]
            assert list(ours.__annotations__)[-len(fields) :] == list(fields), name
            found += 1
    assert found > 30


def test_hashes() -> None:
    """Those that ROS's own packages announce."""
    known = {
        "sensor_msgs/msg/Imu": "7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b",
        "marine_acoustic_msgs/msg/Dvl": "77604ba1b113d1a3", "marine_acoustic_msgs/msg/SonarRanges": "f440f02f1adc9535",
    }  # fmt: skip
    all_types = {distro: Types(distro) for distro in DISTROS}
    for t in all_types.values():
        for name, start in known.items():
            assert t.hash(name).startswith(f"RIHS01_{start}")
    for name in USED:
        hashes = {d: t.hash(name) for d, t in all_types.items()}
        if name == "sensor_msgs/msg/Range":
            assert hashes.pop("humble") not in hashes.values()
        if name != "rmw_dds_common/msg/ParticipantEntitiesInfo":
            assert len(set(hashes.values())) == 1, name
    assert (
        all_types["humble"].length("rmw_dds_common/msg/Gid") == 24
        and all_types["jazzy"].length("rmw_dds_common/msg/Gid") == 16
    )


def test_a_call_stands_before_its_fields(types: Types) -> None:
    request = types.new("std_srvs/srv/Trigger_Request")(0)
    data = types.packed_call((7, -2), request)
    assert data == ros2.TriggerRequest(7, -2).serialize() and types.read_call(data, "std_srvs/srv/Trigger_Request")[
        0
    ] == (7, -2)
    reply = types.new("std_srvs/srv/Trigger_Response")(True, "done")
    assert types.packed_call((2**64 - 1, 1), reply) == ros2.TriggerResponse(2**64 - 1, 1, True, "done").serialize()


def test_any_bytes_are_refused_by_name(types: Types) -> None:
    dice = random.Random(9)
    good = [ros2.Float64MultiArray(ros2.MultiArrayLayout([ros2.Dimension("a", 2, 2)]), [1.0, 2.0]).serialize()]
    good.append(ros2.SetParametersRequest(1, 2, [ros2.Parameter("a", ros2.ParameterValue())]).serialize())
    kinds = [
        "std_msgs/msg/Float64MultiArray",
        "std_msgs/msg/String",
        "std_msgs/msg/Float64",
        "rcl_interfaces/srv/SetParameters_Request",
    ]
    for _ in range(3000):
        data = bytearray(dice.choice(good)[: dice.randrange(200)])
        for _ in range(dice.randrange(4)):
            if data:
                data[dice.randrange(len(data))] = dice.randrange(256)
        name = dice.choice(kinds)
        try:
            types.read_call(bytes(data), name) if "/srv/" in name else types.read(bytes(data), name)
        except Unusable as unusable:
            assert str(unusable) == "no message of this type"


# -- instruments -----------------------------------------------------------------------------------------

AT = 12_345_678_901


def mounted(types: Types, type_: str, **given: Any) -> Mounted:
    kinds = {k: getattr(declared, k.capitalize(), declared.Sensor) for k in OUTPUTS}
    parameters = kinds.get(type_, declared.Sensor)(**given)
    fields = tuple((f.name, math.prod(f.shape)) for f in value_fields(table_of(type_)))
    frames = Frames("odom", "v/base_link", "v/s_link", "v/s_frd", "v/s_beam")
    return Mounted(Instrument("s", type_, parameters, table_of(type_)), frames, Make(types), fields)


def measured(s: Mounted, **given: Any) -> Value:
    """NaN where nothing is given."""
    numbers: list[float] = []
    for name, count in s.fields:
        value = given.get(name, math.nan)
        numbers += [*value, *[math.nan] * (count - len(value))] if isinstance(value, list) else [value] * count
    fields = [FieldDescription(name, "", count) for name, count in s.fields]
    return Value(ValueLayout(SensorDescription(0, "s", s.instrument.type, 1, fields)), AT, tuple(numbers))


def told(s: Mounted, output: str, **given: Any) -> Any:
    found = OUTPUTS[s.instrument.type][output].tell(s, measured(s, **given), AT)
    if found is not None and hasattr(found, "header"):
        assert (found.header.stamp.sec, found.header.stamp.nanosec) == (12, 345_678_901)
    if found is not None:
        s.make.types.packed(found)
    return found


def vector(v: Any) -> Any:
    return np.array([v.x, v.y, v.z])


def rotation(q: Any) -> Rotation:
    return Rotation.from_quat([q.x, q.y, q.z, q.w])


@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0), (math.pi, 0.0, 0.0), (0.3, -0.2, 2.0)])
def test_an_imu_as_it_is_mounted(types: Types, attitude: tuple[float, float, float]) -> None:
    """By tf its values are the body's; its attitude is that of its link."""
    s = mounted(types, "imu", attitude=attitude, position=(1.0, 2.0, 3.0), rate=100.0, noise=2.0)
    R_BS = Rotation.from_euler("ZYX", attitude[::-1]).as_matrix()
    force_B, rates_B = np.array([0.1, 0.2, -9.8]), np.array([0.01, 0.02, 0.03])
    m = told(s, "raw", force=(R_BS.T @ force_B).tolist(), rates=(R_BS.T @ rates_B).tolist())
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
    full = sensors.oriented(s, m, ahrs, measured(ahrs, roll=0.1, pitch=0.2, heading=1.0))
    body = Rotation.from_quat(attitude_enu(q_WB), scalar_first=True)
    assert (rotation(full.orientation).inv() * (body * R)).magnitude() < 1e-12
    assert told(s, "raw", force=[0.0, 0.0, math.nan], rates=[0.0] * 3) is None


def test_an_ahrs_looks_east_at_zero(types: Types) -> None:
    s = mounted(types, "ahrs")
    m = told(s, "data", roll=0.0, pitch=0.1, heading=math.radians(350.0), rates=[0.1, 0.2, 0.3])
    yaw, pitch, roll = rotation(m.orientation).as_euler("ZYX", degrees=True)
    assert (yaw, pitch, roll) == pytest.approx((100.0, -math.degrees(0.1), 0.0))
    assert vector(m.angular_velocity).tolist() == [0.1, -0.2, -0.3] and m.linear_acceleration_covariance[0] == -1.0
    assert np.sqrt(m.orientation_covariance[[0, 4, 8]]) == pytest.approx(np.radians([0.1, 0.1, 0.3]))
    assert m.header.frame_id == "v/base_link"


def test_a_receiver(types: Types) -> None:
    s = mounted(types, "gps", hacc=2.0, vacc=4.0, speed_sigma=0.1)
    m = told(s, "fix", latitude=math.radians(41.0), longitude=math.radians(-8.0), height=3.0)
    assert (m.latitude, m.longitude, m.altitude) == pytest.approx((41.0, -8.0, 3.0)) and m.status.status == 0
    assert (
        m.position_covariance.reshape(3, 3) == pytest.approx(np.diag([2.0, 2.0, 16.0]))
        and m.position_covariance_type == 2
    )
    v = told(s, "velocity", sog=2.0, cog=math.radians(90.0))
    assert vector(v.twist.twist.linear) == pytest.approx([2.0, 0.0, 0.0]) and v.header.frame_id == "odom"
    assert v.twist.covariance[0] == pytest.approx(0.01)
    assert told(s, "fix").status.status == -1 and sensors.no_fix(s, AT).position_covariance_type == 0


@pytest.mark.parametrize("beams", [4, 3])
def test_a_doppler_log_states_its_noise(types: Types, beams: int) -> None:
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
    m, twist = told(s, "dvl", **given), told(s, "twist", **given)
    drawn = (seen + 0.03 * np.random.default_rng(1).normal(size=(30_000, beams))) @ np.linalg.pinv(along).T
    assert m.velocity_covar.reshape(3, 3) == pytest.approx(np.cov(drawn.T), rel=0.05, abs=3e-5)
    assert twist.twist.covariance.reshape(6, 6)[:3, :3] == pytest.approx(np.cov((drawn @ B).T), rel=0.05, abs=3e-5)
    assert vector(m.velocity) == pytest.approx(v) and vector(twist.twist.twist.linear) == pytest.approx(B @ v)
    assert (m.velocity_mode, m.num_good_beams, m.altitude) == (1, beams, 8.0) and m.header.frame_id == "v/s_frd"
    assert m.speed_gnd == pytest.approx(math.hypot(1.0, 0.2)) and m.course_gnd == pytest.approx(math.atan2(0.2, 1.0))
    down = {t.child_frame_id: rotation(t.transform.rotation) for t in mounting(s)}
    assert down["v/s_frd"].apply([0, 0, 1]) == pytest.approx([0, 0, -1]) == down["v/s_beam"].apply([1, 0, 0])
    water = told(s, "dvl", water=[1.0, 0.0, 0.0])
    assert water.velocity_mode == 2 and water.altitude == -1.0 and told(s, "twist", water=[1.0, 0.0, 0.0]) is None
    assert told(s, "altitude").range == math.inf and told(s, "dvl") is None


def test_water(types: Types) -> None:
    s = mounted(types, "pressure", noise=2.0)
    m = told(s, "pressure", pressure=11.0, depth=1.0)
    assert m.fluid_pressure == pytest.approx(110_000.0) and m.variance == pytest.approx((2 * 0.01 * 1e4) ** 2)
    k = told(s, "pressure_kpa", pressure=11.0)
    assert k.fluid_pressure == pytest.approx(110.0) and k.variance == pytest.approx((2 * 0.1) ** 2)
    d = told(s, "depth", depth=7.0)
    assert (
        d.pose.pose.position.z == -7.0
        and d.pose.covariance[14] == pytest.approx(0.02**2, rel=0.02)
        and d.pose.covariance[0] >= 1e6
    )
    assert told(mounted(types, "ctd"), "temperature", temperature=12.0).variance == pytest.approx(0.002**2)
    assert (
        told(mounted(types, "ctd"), "salinity", salinity=35.0).data == 35.0
        and told(mounted(types, "ctd"), "conductivity") is None
    )
    assert told(mounted(types, "salinity"), "salinity", salinity=34.0).data == 34.0
    log = told(mounted(types, "speedlog"), "twist", v_FB_B=[1.0, 2.0, 3.0])
    assert vector(log.twist.twist.linear).tolist() == [1.0, -2.0, -3.0] and log.twist.covariance[0] == pytest.approx(
        1e-4
    )


def test_distances(types: Types) -> None:
    s = mounted(types, "echosounder", maximum=30.0, width=0.2)
    m = told(s, "range", range=12.0)
    assert (m.range, m.max_range, m.variance, m.header.frame_id) == pytest.approx(
        (12.0, 30.0, 0.02**2, "v/s_beam"), rel=1e-6
    )
    assert told(s, "range").range == math.inf
    assert not hasattr(told(mounted(Types("humble"), "echosounder"), "range", range=1.0), "variance")
    fan = mounted(types, "multibeam", beams=4, width=math.radians(90.0))
    sonar = told(fan, "ranges", range=[10.0, 20.0, math.nan, 40.0])
    assert [f.flag for f in sonar.flags] == [0, 0, 1, 0] and sonar.ranges[1] == 20.0 and len(sonar.ranges) == 4
    assert vector(sonar.beam_unit_vec[0]) == pytest.approx([0.0, math.sqrt(0.5), -math.sqrt(0.5)]), "port first, down"
    cloud = told(fan, "points", range=[10.0, 20.0, math.nan, 40.0])
    points = np.frombuffer(cloud.data.tobytes(), "<f4").reshape(-1, 3)
    assert cloud.width == 3 == len(points) and points[0] == pytest.approx([0.0, math.sqrt(50.0), -math.sqrt(50.0)])
    ahead = told(mounted(types, "ranger"), "points", range=[5.0])
    assert np.frombuffer(ahead.data.tobytes(), "<f4") == pytest.approx([5.0, 0.0, 0.0])
    ray = told(mounted(types, "scanner"), "scan", angle=0.5, range=7.0)
    assert ray.angle_min == ray.angle_max == pytest.approx(-0.5) and ray.ranges.tolist() == [7.0]


def test_the_rest(types: Types) -> None:
    p = told(mounted(types, "uwb", sigma=0.5), "pose", position=[1.0, 2.0, -3.0])
    assert vector(p.pose.pose.position).tolist() == [2.0, 1.0, 3.0] and p.pose.covariance[7] == 0.25
    wind = told(mounted(types, "anemometer"), "wind", speed=5.0, angle=math.pi / 2)
    assert vector(wind.vector) == pytest.approx([0.0, 5.0, 0.0]), "from starboard: the air goes to port"
    b = told(mounted(types, "battery", capacity=500.0, voltage=25.0), "state", voltage=24.0, current=2.0, charge=0.5)
    assert (b.voltage, b.current, b.charge, b.capacity, b.percentage) == (24.0, -2.0, 10.0, 20.0, 0.5)
    s = mounted(types, "leak")
    numbers = NUMBERS.tell(s, measured(s, wet=[0.0, 1.0]), AT)
    assert numbers.data[:2].tolist() == [0.0, 1.0] and [d.label for d in numbers.layout.dim] == ["wet"]


def test_actuators_are_joints(types: Types) -> None:
    actuators = actuators_of(library()["remus100-fossen"])
    j = sensors.joints(Make(types), actuators, [10.0, 0.1, -0.2], AT)
    assert j.name == ["propeller", "rudder", "stern-plane"]
    assert (
        j.velocity.tolist() == [20.0 * math.pi, 0.0, 0.0]
        and j.position.tolist() == [0.0, 0.1, -0.2]
        and not j.effort.any()
    )


# -- layouts ---------------------------------------------------------------------------------------------


def described(model: str) -> list[ActuatorDescription]:
    return [
        ActuatorDescription(k, a.name, int(a.kind), a.unit, a.minimum, a.maximum)
        for k, a in enumerate(actuators_of(library()[model]))
    ]


def test_presets() -> None:
    assert presets() == ["uuv", "vrx", "wavesim"]
    ours = Layout.of("wavesim", "my-auv")
    assert [c.topic for c in ours.commands(described("lauv"))][:2] == [
        "/my_auv/propeller/cmd",
        "/my_auv/rudder_top/cmd",
    ]
    assert ours.all_commands == "/my_auv/actuators/cmd" and ours.odometry == "/my_auv/odom"
    assert ours.frames("dvl-down") == Frames(
        "odom", "my_auv/base_link", "my_auv/dvl_down_link", "my_auv/dvl_down_frd", "my_auv/dvl_down_beam"
    )
    assert {t for _, t, _ in ours.outputs("dvl", "dvl-down")} >= {"/my_auv/dvl_down", "/my_auv/dvl_down/twist"}
    assert ours.outputs("leak", "leak")[0][1:] == ("/my_auv/leak", NUMBERS)
    for type_, outputs in OUTPUTS.items():
        assert {name for name, *_ in ours.outputs(type_, "x")} <= set(outputs)
    vrx = {c.topic: c for c in Layout.of("vrx", "wamv").commands(described("wam-v"))}
    assert set(vrx) == {f"/wamv/thrusters/{side}/{what}" for side in ("left", "right") for what in ("thrust", "pos")}
    assert (
        vrx["/wamv/thrusters/left/thrust"].actuator.name == "port"
        and vrx["/wamv/thrusters/left/thrust"].value(9e9) == 2353.0
    )
    assert vrx["/wamv/thrusters/right/pos"].value(0.3) == -0.3, "about the vertical upwards"
    uuv = {c.topic: c for c in Layout.of("uuv", "auv").commands(described("lauv"))}
    assert set(uuv) == {"/auv/thrusters/id_0/input", *(f"/auv/fins/id_{k}/input" for k in range(4))}
    assert uuv["/auv/thrusters/id_0/input"].value(100.0) == pytest.approx(3.1)
    assert uuv["/auv/thrusters/id_0/input"].value(-100.0) == pytest.approx(-3.1) and legal("1-a b") == "_1_a_b"
    shaft = Layout.of("uuv", "auv").commands(described("remus100-fossen"))[0]
    assert shaft.value(2.0 * math.pi) == pytest.approx(1.0)
    assert {ActuatorKind(c.actuator.kind).name for c in uuv.values()} == {"THRUSTER", "FIN"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("odometri = 'x'", "there is no key 'odometri'; did you mean 'odometry'"),
        ("odometry = 3", "'odometry' is a text in quotes"),
        ("x = ", "Invalid value"),
        ("[sensors]\nimuu = {}", r"\[sensors\] has no 'imuu'; did you mean 'imu'"),
        ("[sensors]\nimu = 'x'", r"\[sensors\] 'imu' is written {"),
        ("[sensors]\nimu = { daat = 'x' }", "imu: there is no 'daat'; did you mean 'data'"),
        ("[sensors]\nimu = { data = '{robot}/x' }", "there are {vehicle}, {sensor}, {actuator} and {number}"),
        ("[commands]\nfin = { type = 'std_msgs/msg/Float64' }", "fin: which topic"),
        ("[commands]\nfin = { topic = 'x', type = 'std_msgs/msg/Bool' }", "fin: a type is"),
        ("[commands]\nfin = { topic = 'x', sign = 2 }", "fin: a sign is 1 or -1"),
        ("[commands]\nfin = { topic = 'x', unit = 'rpm' }", "fin: the unit is"),
        ("[commands]\nfin = { topic = 'x', rotor_constant = 'a' }", "fin: rotor_constant is a number"),
        ("frames = 3", "'frames' is a table"),
    ],
)
def test_layouts_that_are_none(text: str, message: str) -> None:
    with pytest.raises(WaveSimError, match=message):
        Layout(text, "mine.toml", "auv")


def test_thrusts_need_thrusters_that_take_them() -> None:
    with pytest.raises(WaveSimError, match=r"vrx.toml: 'port' is not commanded in N but in 1/s"):
        Layout.of("vrx", "boat").commands(described("otter"))
    slow = Layout("[commands]\nthruster = { topic = 'x', unit = 'rad/s' }", "mine.toml", "auv")
    with pytest.raises(WaveSimError, match="rad/s need a rotor_constant above 0"):
        slow.commands(described("lauv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--layout", "vrxx"), "there is no layout 'vrxx'; did you mean 'vrx'"),
        (("--layout", "none.toml"), "cannot read the layout none.toml"),
        (("--distro", "foxy"), "there is no ROS 2 'foxy'; there are humble, "),
    ],
)
def test_mistakes(config: Callable[..., Any], domain: int, options: tuple[str, ...], message: str) -> None:
    path = str(config('<world/><fleet><vehicle name="auv" model="lauv" position="0 0 1 m"/></fleet>').path)
    with pytest.raises(WaveSimError, match=message):
        command.main(["--vehicle", "auv", "--config", path, "--domain", str(domain), *options], standalone_mode=False)


# -- time ------------------------------------------------------------------------------------------------


@pytest.fixture
def domain() -> Iterator[int]:
    yield from ros2.domains()


async def test_the_clock_never_falls(types: Types, domain: int) -> None:
    """Two vehicles; the run begins anew, and first one of them sees it."""
    node = Node(types, "wavesim", domain, lambda text: None, lambda reason: None)
    ear = ros2.Node(domain, beside=True)
    heard = ear.latest("/clock", ros2.Clock)
    clock = Clock(node, True, False, 10_000_000)
    writer = clock._writer
    assert writer is not None
    ros2.until(lambda: writer.readers)
    steps = [
        ("a", 10),
        ("b", 10),
        ("a", 20),
        ("b", 20),
        ("a", 30),
        ("a", 10),
        ("b", 30),
        ("b", 10),
        ("a", 20),
        ("b", 20),
    ]
    stamps = []
    for vehicle, ms in steps:
        clock.step(vehicle, ms * 1_000_000)
        stamps.append(clock.stamp(vehicle, ms * 1_000_000) // 1_000_000)
    assert stamps == [10, 10, 20, 20, 30, 40, 30, 40, 50, 50]
    assert clock.stamp("a", 15_000_000) == 45_000_000, "a value from before the last step"
    ros2.until(lambda: len(heard) == 5)
    assert [c.clock.ns // 1_000_000 for c in heard] == [10, 20, 30, 40, 50]
    wall = Clock(node, True, True, 10_000_000)
    wall.step("a", 20_000_000)
    assert wall._writer is None and wall.stamp("a", 20_000_000) - wall.stamp("a", 15_000_000) == 5_000_000
    ear.close()
    node.close()


def test_the_example_of_the_page(root: Any) -> None:
    """docs/bridges/ros2.md names a world that there is."""
    page = (root / "docs" / "bridges" / "ros2.md").read_text()
    assert "examples/trials/ros2.xml" in page and load(root / "examples" / "trials" / "ros2.xml").config.fleet.bodies
