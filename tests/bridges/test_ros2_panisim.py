"""Panisim's topics: actuators by name, the state in one array, NED axes; and covariances in messages."""

from __future__ import annotations

import dataclasses
import math
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.bridges import ros2
from tests.bridges.ros2 import Node, until
from tests.bridges.test_ros2 import described
from tests.bridges.test_ros2_flights import Bridge
from tests.bridges.test_ros2_sensors import converted, measured, mounted, vector
from tests.conftest import Server
from tests.nursery import launch
from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.ros2 import named_actuators
from wavesim_bridges.ros2.axes import NED
from wavesim_bridges.ros2.message_types import ACTUATOR, ACTUATOR_FIELDS, MessageTypes
from wavesim_bridges.ros2.mounted_instrument import FrameNames, MessageFactory
from wavesim_bridges.ros2.sensors import mounting
from wavesim_bridges.ros2.topic_layout import TopicLayout
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frames import euler
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig
from wavesim_world.config.build import library

BOAT = "boat_00"
WORLD = f"""<time step="20 ms"/><world latitude="13 deg" longitude="80.2 deg"><bed depth="20 m"/></world>
<fleet><vehicle name="{BOAT}" model="cybership2" position="5 3 0 m" client="optional"><sensors>
<imu rate="20 Hz" noise="0"/><ahrs rate="20 Hz" noise="0"/><gps rate="5 Hz" noise="0"/><uwb rate="5 Hz" noise="0"/>
<dvl rate="5 Hz" noise="0" position="0 0 0.2 m" minimum="0.1 m"/><encoder rate="10 Hz"/></sensors></vehicle></fleet>"""


@pytest.fixture(scope="module")
def types() -> MessageTypes:
    return MessageTypes("jazzy")


@pytest.fixture
def domain() -> Iterator[int]:
    yield from ros2.domains()


def test_the_topics_have_panisims_names_and_types() -> None:
    layout = TopicLayout.find("panisim", "sookshma_00")
    assert (layout.odometry, layout.state) == ("/sookshma_00/odometry_sim", "/sookshma_00/vessel_state")
    assert layout.command("named") == "/sookshma_00/actuator_cmd" and layout.axes is NED
    assert layout.frames("imu") == FrameNames(
        "NED", "BODY", "sookshma_00_imu_frame", "sookshma_00_imu_frame_frd", "sookshma_00_imu_frame_beam"
    )
    found = {
        topic: output.type
        for kind in ("imu", "gps", "dvl", "uwb", "encoder")
        for _, topic, output in layout.outputs(kind, kind)
    }
    assert found == {
        "/sookshma_00/imu": "sensor_msgs/msg/Imu",
        "/sookshma_00/gps": "sensor_msgs/msg/NavSatFix",
        "/sookshma_00/dvl": "interfaces/msg/DVL",
        "/sookshma_00/uwb": "geometry_msgs/msg/PoseWithCovarianceStamped",
        "/sookshma_00/encoder": "interfaces/msg/Actuator",
    }


@pytest.mark.parametrize("fields", ACTUATOR_FIELDS)
def test_the_actuator_message_of_each_release(fields: str) -> None:
    """The bridge writes and reads the fields in the order that the layout states."""
    types = MessageTypes("jazzy", fields)
    assert list(types.fields(ACTUATOR))[1:] == [
        f"actuator_{word}" if word != "covariance" else word for word in fields.split()
    ]
    make = MessageFactory(types)
    sent = named_actuators.message(make, actuators_of(library()["cybership2"]), [10.0, math.radians(-35.0)], 5)
    again = types.read(types.packed(sent), ACTUATOR)
    assert list(again.actuator_names) == ["th_1", "cs_1"]
    assert again.actuator_values == pytest.approx([600.0, -35.0])
    assert named_actuators.names_of(actuators_of(library()["odin"])) == [
        *("th_1", "th_2"),
        *("port-angle", "starboard-angle", "port-deflector", "starboard-deflector"),
    ]


def test_commands_by_name(types: MessageTypes) -> None:
    """deg and RPM by number, counted from 1 for each kind, or by the actuators' own names."""
    layout = TopicLayout.find("panisim", "auv")
    commands = layout.named_commands(described("remus100-fossen"))
    assert commands is not None

    def values(names: list[str], numbers: list[float]) -> dict[int, float]:
        new = types.new(ACTUATOR)
        assert commands is not None
        header = MessageFactory(types).header(0, "")
        return commands.values(new(header, names, np.array(numbers)))

    assert values(["cs_1", "th_1"], [15.0, 1200.0]) == pytest.approx({1: math.radians(15.0), 0: 20.0})
    assert values(["cs_2"], [-5.0]) == pytest.approx({2: math.radians(-5.0)})
    assert values(["rudder", "propeller"], [5.0, 60.0]) == pytest.approx({1: math.radians(5.0), 0: 1.0})
    assert values(["cs_1"], [900.0]) == {1: described("remus100-fossen")[1].maximum}
    for names, numbers, why in (
        (["cs_1", "th_1"], [1.0], "1 numbers for 2 names"),
        (["cs_3"], [1.0], "no actuator named 'cs_3'"),
        (["cs_1"], [math.nan], "no number"),
    ):
        with pytest.raises(MalformedMessage, match=why):
            values(names, numbers)
    with pytest.raises(WaveSimError, match=r"panisim.toml: 'propeller' is commanded in N, .* add a rotor_constant"):
        layout.named_commands(described("lauv"))
    table = "[commands]\nnamed = { topic = 'cmd', rotor_constant = 0.0003 }"
    thrust = TopicLayout(table, "mine.toml", "auv").named_commands(described("lauv"))
    assert thrust is not None
    message = types.new(ACTUATOR)(MessageFactory(types).header(0, ""), ["th_1"], np.array([-600.0]))
    assert thrust.values(message)[0] == pytest.approx(-0.0003 * (20.0 * math.pi) ** 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("axes = 'enuu'", "axes must be one of: enu, ned"),
        ("[commands]\nnamed = { topic = 'x', type = 'std_msgs/msg/Float64' }", "type must be interfaces/msg/Actuator"),
        ("[commands]\nnamed = { topic = 'x', fields = 'values' }", "fields must be one of: names values, "),
        ("[commands]\nnamed = { topic = 'x', sign = 1 }", "named: unknown name 'sign'"),
    ],
)
def test_mistakes_in_a_layout(text: str, message: str) -> None:
    with pytest.raises(WaveSimError, match=message):
        TopicLayout(text, "mine.toml", "auv")


# -- covariances -------------------------------------------------------------------------------------------

C = (4.0, 1.0, -0.5, 1.0, 3.0, 0.2, -0.5, 0.2, 2.0)
FLU, ENU = np.diag([1.0, -1.0, -1.0]), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])


def test_messages_carry_the_declared_covariance(types: MessageTypes) -> None:
    """Of errors that are drawn with it and converted as the message converts the value."""
    c = np.reshape(C, (3, 3))
    e = np.random.default_rng(1).multivariate_normal(np.zeros(3), 4.0 * c, 200_000)

    def same(found: Any, errors: Any) -> None:
        assert np.reshape(found, (3, 3)) == pytest.approx(np.cov(errors.T), abs=0.2)

    imu = mounted(types, "imu", acceleration_covariance=C, angular_rate_covariance=C, noise=2.0)
    m = converted(imu, "raw", force=[0.0] * 3, rates=[0.0] * 3)
    same(m.linear_acceleration_covariance, e @ FLU)
    same(m.angular_velocity_covariance, e @ FLU)
    ahrs = mounted(types, "ahrs", orientation_covariance=C, angular_rate_covariance=C, noise=2.0)
    m = converted(ahrs, "data", roll=0.0, pitch=0.0, heading=0.0, rates=[0.0] * 3)
    same(m.orientation_covariance, e * (1.0, -1.0, -1.0))  # yaw is pi/2 - heading, pitch has the opposite sign
    gps = mounted(types, "gps", position_covariance=C, velocity_covariance=C, noise=2.0)
    m = converted(gps, "fix", latitude=0.1, longitude=0.2, height=3.0)
    same(m.position_covariance, e @ ENU.T)
    assert m.position_covariance_type == 3
    m = converted(gps, "velocity", sog=2.0, cog=0.0)
    assert m.twist.covariance.reshape(6, 6)[:2, :2] == pytest.approx(np.cov((e @ ENU.T)[:, :2].T), abs=0.2)
    uwb = mounted(types, "uwb", position_covariance=C, noise=2.0)
    m = converted(uwb, "pose", position=[1.0, 2.0, 3.0])
    same(m.pose.covariance.reshape(6, 6)[:3, :3], e @ ENU.T)
    log = mounted(types, "speedlog", velocity_covariance=C, noise=2.0)
    m = converted(log, "twist", v_FB_B=[1.0, 0.0, 0.0])
    same(m.twist.covariance.reshape(6, 6)[:3, :3], e @ FLU)
    dvl = mounted(types, "dvl", bottom_covariance=C, water_covariance=C, noise=2.0)
    given = {"bottom": [1.0, 0.0, 0.0], "beams": [0.1] * 4, "ranges": [9.0] * 4, "water": [1.0, 0.0, 0.0]}
    same(converted(dvl, "twist", **given).twist.covariance.reshape(6, 6)[:3, :3], e @ FLU)
    same(converted(dvl, "water", **given).twist.covariance.reshape(6, 6)[:3, :3], e @ FLU)
    same(converted(dvl, "dvl", **given).velocity_covar, e)


def test_axes_of_panisim(types: MessageTypes) -> None:
    """Values as WaVeSim has them: nothing is turned, and z points down."""
    imu = dataclasses.replace(mounted(types, "imu", acceleration_covariance=C, position=(1.0, 2.0, 3.0)), axes=NED)
    m = converted(imu, "data", force=[0.1, 0.2, -9.8], rates=[0.01, 0.02, 0.03])
    assert vector(m.linear_acceleration).tolist() == [0.1, 0.2, -9.8]
    assert m.linear_acceleration_covariance.tolist() == list(C)
    assert vector(mounting(imu)[0].transform.translation).tolist() == [1.0, 2.0, 3.0]
    dvl = dataclasses.replace(mounted(types, "dvl", bottom_covariance=C), axes=NED)
    m = converted(dvl, "velocity", bottom=[1.0, 0.2, 0.1], beams=[0.1] * 4)
    assert vector(m.velocity).tolist() == [1.0, 0.2, 0.1] and m.covariance.tolist() == list(C)
    assert measured(dvl, bottom=[1.0, 0.2, 0.1]).bottom[0] == 1.0
    face, beam = (t.transform.rotation for t in mounting(dvl)[1:])
    assert (face.w, face.x, face.y, face.z) == (1.0, 0.0, 0.0, 0.0)
    assert ros2.Quaternion(beam.x, beam.y, beam.z, beam.w).rotation.apply([1.0, 0.0, 0.0]) == pytest.approx([0, 0, 1])


@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_vessel_is_driven_by_actuator_messages(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], domain: int
) -> None:
    """With 15 deg and 300 RPM it turns; odometry, state and sensors are those of the server, in NED."""
    path = config(WORLD).path
    server = serve(path, "--speed", "8")
    emulators = launch("emulate", "all", path, "-s", server.name, stderr=subprocess.DEVNULL)
    node, bridge = Node(domain), Bridge(server, path, domain, BOAT, "--layout", "panisim", "--period", "0.02")
    try:
        bridge.wait("joined, one step every 20 ms")
        odometry = node.latest(f"/{BOAT}/odometry_sim", ros2.Odometry)
        states = node.latest(f"/{BOAT}/vessel_state", ros2.Float64MultiArray)
        imu, gps = node.latest(f"/{BOAT}/imu", ros2.Imu), node.latest(f"/{BOAT}/gps", ros2.NavSatFix)
        dvl, uwb = (
            node.latest(f"/{BOAT}/dvl", ros2.PanisimDvl),
            node.latest(f"/{BOAT}/uwb", ros2.PoseStamped),
        )
        encoder = node.latest(f"/{BOAT}/encoder", ros2.Actuator)
        writer = node.writer(f"/{BOAT}/actuator_cmd", ros2.Actuator)
        until(lambda: writer.get_matched_subscriptions())
        server.send("start")

        def steer(_: Any) -> None:
            names: Any = ["cs_1", "th_1"]
            values: Any = [15.0, 300.0]
            writer.write(ros2.Actuator(ros2.Header(), names, values))

        node.read(f"/{BOAT}/odometry_sim", ros2.Odometry, steer)

        def turns() -> bool:
            """It has turned by 1 rad and still turns: on a busy machine, commands may have lapsed for a moment."""
            u, r, yaw = (states[-1].data[i] for i in (0, 5, 11)) if states else (0.0, 0.0, 0.0)
            return u > 0.1 and abs(r) > 0.011 and abs(yaw) > 1.0

        until(turns)
        until(lambda: imu and gps and dvl and uwb and encoder)
        server.send("pause")
        shared = SharedState(server.name)
        shot = shared.snapshot()
        truth = shot.state[shared.row(BOAT)]
        until(lambda: odometry[-1].header.stamp.ns == shot.time_ns)
        until(lambda: states[-1].data[6:9] == pytest.approx(truth["p_WB_W"], abs=1e-9))  # of the same step
        o, s = odometry[-1], np.array(states[-1].data)
    finally:
        node.close()
        bridge.kill()
        emulators.terminate()
        emulators.wait(60)
    assert not node.errors
    assert (o.header.frame_id, o.child_frame_id) == ("NED", "BODY")
    assert o.pose.pose.position.array == pytest.approx(truth["p_WB_W"])
    q = o.pose.pose.orientation
    assert np.abs([q.w, q.x, q.y, q.z]) == pytest.approx(np.abs(truth["q_WB"]))
    assert o.twist.twist.linear.array == pytest.approx(truth["v_WB_B"])
    assert s[:12] == pytest.approx(
        [*truth["v_WB_B"], *truth["w_WB_B"], *truth["p_WB_W"], *euler(truth["q_WB"])], abs=1e-9
    )
    assert s[12:] == pytest.approx([math.radians(15.0), 300.0], rel=0.02)
    assert s[0] > 0.05 and abs(s[5]) > 0.01
    assert list(encoder[-1].actuator_names) == ["th_1", "cs_1"]
    assert encoder[-1].actuator_values == pytest.approx([300.0, 15.0], rel=0.05)
    assert imu[-1].linear_acceleration.z == pytest.approx(-9.8, abs=0.3) and imu[-1].orientation_covariance[0] >= 0.0
    assert dvl[-1].velocity.x > 0.0 and dvl[-1].header.frame_id == f"{BOAT}_dvl_frame"
    assert uwb[-1].header.frame_id == "NED" and abs(uwb[-1].pose.pose.position.x - s[6]) < 1.0
    assert gps[-1].latitude == pytest.approx(13.0, abs=1e-3)
