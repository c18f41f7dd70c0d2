"""Vehicles controlled by stand-ins for ROS 2 nodes, with another codec, another DDS, and controllers as users write
them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pymap3d
import pytest
from benchmarks.processes import children
from scipy.spatial.transform import Rotation

from tests.bridges import ros2
from tests.bridges.program import Program
from tests.bridges.ros2 import Auv, Boat, Node, Rov, until
from tests.conftest import Server
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
WORLD = """<time step="5 ms"/><world latitude="41.18 deg" longitude="-8.7 deg"><bed depth="40 m"/></world>
<network><grant to="rov" rights="control fault"/></network>
<fleet><vehicle name="rov" model="bluerov2" position="0 0 2 m" client="optional"><sensors>
<ahrs rate="25 Hz" noise="0"/><pressure rate="10 Hz" noise="0" position="0 0 0.1 m"/></sensors></vehicle>
<vehicle name="auv" model="lauv" position="0 30 3 m" attitude="0 0 90 deg" client="optional"/>
<vehicle name="wamv" model="wam-v" position="0 -40 0 m" client="optional"><sensors>
<imu rate="25 Hz" noise="0"/><ahrs rate="25 Hz" noise="0"/><gps rate="10 Hz" noise="0" position="0 0 -1.5 m"/></sensors></vehicle>
</fleet>"""
S = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])  #: NED to ENU
B = np.diag([1.0, -1.0, -1.0])


@pytest.fixture
def domain() -> Iterator[int]:
    yield from ros2.domains()


@pytest.fixture
def node(domain: int) -> Iterator[Node]:
    made = Node(domain)
    yield made
    made.close()


class Bridge(Program):
    """The command."""

    def __init__(self, server: Server, path: Path, domain: int, vehicle: str, *options: str) -> None:
        where = ["--port", str(server.port), "--config", str(path), "--domain", str(domain), "--period", "0.04"]
        super().__init__("bridge", "ros2", "--vehicle", vehicle, *where, *options)

    def joined(self) -> Bridge:
        self.wait("joined, one step every 40 ms")
        return self


@pytest.fixture
def bridges() -> Iterator[list[Bridge]]:
    found: list[Bridge] = []
    yield found
    for b in found:
        b.kill()


class FastDds:
    """A peer on Fast DDS (tests/bridges/fastdds.cpp); its lines as (topic, bytes)."""

    def __init__(self, program: Path, domain: int, *topics: str) -> None:
        self.process = subprocess.Popen(
            [program, str(domain), *topics], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.lines: list[tuple[str, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.stdout:
            topic, _, rest = line.strip().partition(" ")
            self.lines.append((topic, rest))

    def write(self, topic: str, data: bytes) -> None:
        self.stdin.write(f"{topic} {data.hex()}\n")
        self.stdin.flush()

    def end(self) -> list[tuple[str, str]]:
        self.stdin.close()
        self.process.wait(60)
        self._reader.join(60)
        self.stdout.close()
        return self.lines


@pytest.fixture(scope="session")
def fastdds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The peer, compiled. Its library is a package of the system: libfastrtps-dev."""
    program = tmp_path_factory.mktemp("fastdds") / "fastdds"
    compiler, source = shutil.which("g++"), Path(__file__).parent / "fastdds.cpp"
    there = compiler is not None and Path("/usr/include/fastdds").exists()
    if not there:
        if os.environ.get("CI"):
            pytest.fail("g++ or libfastrtps-dev is absent")
        pytest.skip("needs g++ and libfastrtps-dev")
    subprocess.run(
        [str(compiler), "-std=c++17", source, "-o", program, "-lfastrtps", "-lfastcdr"], check=True, timeout=120
    )
    return program


def test_three_vehicles_of_three_layouts(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    domain: int,
    node: Node,
    bridges: list[Bridge],
    fastdds: Path,
) -> None:
    """A ROV by an array of thrusts in lockstep, an AUV by UUV Simulator's topics, a WAM-V by VRX's: each to its depth or its points,
    with rubbish on the topics, a bridge that is killed and back, and a controller that falls silent."""
    path = config(WORLD).path
    server = serve(path, "--speed", "8")
    emulators = launch("emulate", "all", path, "-s", server.name, stderr=subprocess.DEVNULL)
    try:
        bridges += [
            Bridge(server, path, domain, "rov", "--lockstep"),
            Bridge(server, path, domain, "auv", "--layout", "uuv", "--no-clock", "--lockstep"),
            Bridge(server, path, domain, "wamv", "--layout", "vrx", "--no-clock"),
        ]
        peer = FastDds(
            fastdds,
            domain,
            *("r", "rt/rov/odom", ros2.dds(ros2.Odometry)),
            *("b", "rt/clock", ros2.dds(ros2.Clock)),
            *("t", "rt/tf_static", ros2.dds(ros2.TFMessage)),
            *("r", "rt/wamv/sensors/imu/imu/data", ros2.dds(ros2.Imu)),
            *("w", "rt/rov/actuators/cmd", ros2.dds(ros2.Float64MultiArray)),
            *("w", "rq/rov/startRequest", ros2.dds(ros2.TriggerRequest)),
        )
        _fly(
            server,
            node,
            bridges,
            peer,
            lambda: Bridge(server, path, domain, "auv", "--layout", "uuv", "--no-clock", "--lockstep"),
        )
    finally:
        emulators.terminate()
        emulators.wait(60)


def _fly(server: Server, node: Node, bridges: list[Bridge], peer: FastDds, another: Callable[[], Bridge]) -> None:
    for b in bridges:
        b.joined()
    clock = node.latest("/clock", ros2.Clock)
    transforms = node.latest("/tf", ros2.TFMessage)
    joints = node.latest("/rov/joint_states", ros2.JointState)
    attitudes = node.latest("/rov/ahrs/data", ros2.Imu)
    depths = node.latest("/rov/pressure/depth", ros2.PoseStamped)
    pressures = node.latest("/rov/pressure", ros2.FluidPressure)
    fixes = node.latest("/wamv/sensors/gps/gps/fix", ros2.NavSatFix)
    static: list[ros2.TFMessage] = []
    node.read("/tf_static", ros2.TFMessage, static.append, latched=True)

    rov, odometry = Rov([(2.0, 1.0, -3.0), (2.0, -1.0, -3.5), (1.0, 0.0, -4.0)], 1.0), list[ros2.Odometry]()
    thrusts = node.writer("/rov/actuators/cmd", ros2.Float64MultiArray)
    velocities, wrenches = node.writer("/rov/cmd_vel", ros2.Twist), node.writer("/rov/cmd_wrench", ros2.Wrench)

    def by_array(o: ros2.Odometry) -> None:
        thrusts.write(ros2.Float64MultiArray(ros2.MultiArrayLayout(), rov.thrusts(o)))

    def by_velocity(o: ros2.Odometry) -> None:
        velocities.write(ros2.Twist(ros2.Vector3(0.3, 0.1, 0.0), ros2.Vector3(0.0, 0.0, 0.2)))

    def by_wrench(o: ros2.Odometry) -> None:
        wrenches.write(ros2.Wrench(ros2.Vector3(30.0, 0.0, 0.0), ros2.Vector3(0.0, 0.0, 0.0)))

    flying: list[Callable[[ros2.Odometry], None] | None] = [by_array]

    def fly_rov(o: ros2.Odometry) -> None:
        odometry.append(o)
        if (controller := flying[0]) is not None:
            controller(o)

    auv, poses = Auv(4.5, -0.5), list[ros2.Odometry]()
    propeller = node.writer("/auv/thrusters/id_0/input", ros2.FloatStamped)
    fins = [node.writer(f"/auv/fins/id_{k}/input", ros2.FloatStamped) for k in range(4)]

    def fly_auv(o: ros2.Odometry) -> None:
        poses.append(o)
        turns, angles = auv.outputs(o)
        propeller.write(ros2.FloatStamped(ros2.Header(), turns))
        for fin, angle in zip(fins, angles, strict=True):
            fin.write(ros2.FloatStamped(ros2.Header(), angle))

    goal = pymap3d.ned2geodetic(12.0, -30.0, 0.0, 41.18, -8.7, 0.0)[:2]
    boat, bearings = Boat(*goal), list[ros2.Imu]()
    engines = [node.writer(f"/wamv/thrusters/{side}/thrust", ros2.Float64) for side in ("left", "right")]

    def fly_boat(imu: ros2.Imu) -> None:
        bearings.append(imu)
        boat.fix = fixes[-1] if fixes else None
        for engine, thrust in zip(engines, boat.thrusts(imu), strict=True):
            engine.write(ros2.Float64(thrust))

    node.read("/rov/odom", ros2.Odometry, fly_rov)
    node.read("/auv/pose_gt", ros2.Odometry, fly_auv)
    node.read("/wamv/sensors/imu/imu/data", ros2.Imu, fly_boat)

    # The clock is published before the run; a service begins it.
    until(lambda: len(clock) > 3)
    assert {c.clock.ns for c in clock} == {0}
    answer = node.call("/rov/start", ros2.TriggerRequest, ros2.TriggerResponse)
    assert answer.success, answer.message

    # Rubbish: no number, too few numbers, bytes that are no message; for a service too.
    until(lambda: len(odometry) > 20 and len(poses) > 20 and len(bearings) > 20)
    empty = ros2.MultiArrayLayout()
    until(
        lambda: (
            {("+", "rt/rov/actuators/cmd"), ("+", "rq/rov/startRequest")}
            <= {line for line in list(peer.lines) if line[0] == "+"}
        )
    )
    thrusts.write(ros2.Float64MultiArray(empty, [math.nan] * 6))
    thrusts.write(ros2.Float64MultiArray(empty, [1.0, 2.0]))
    good = ros2.Float64MultiArray(empty, [0.0] * 6).serialize()
    for data in (b"", b"\0", good[:3], good[:17], good[:8] + b"\xff\xff\xff\x7f" + good[12:], bytes(range(200))):
        peer.write("rt/rov/actuators/cmd", data or b"\0\1\0\0")
        peer.write("rq/rov/startRequest", data or b"\0\1\0\0")
    wrong = node.call(
        "/rov/fault",
        ros2.SetParametersRequest,
        ros2.SetParametersResponse,
        [
            ros2.Parameter("presure", ros2.ParameterValue(string_value="lost")),
            ros2.Parameter("ahrs.heading", ros2.ParameterValue(string_value="bias 0.5")),
        ],
    )
    assert [r.successful for r in wrong.results] == [False, True] and "presure" in wrong.results[0].reason
    mended = node.call(
        "/rov/fault",
        ros2.SetParametersRequest,
        ros2.SetParametersResponse,
        [ros2.Parameter("ahrs", ros2.ParameterValue(string_value="none"))],
    )
    assert mended.results[0].successful

    # The AUV's bridge dies; the others go on; another takes its place.
    until(lambda: len(poses) > 150)
    bridges[1].kill()
    before = len(odometry)
    until(lambda: len(odometry) > before + 20)
    count = len(poses)
    bridges.append(another().joined())
    until(lambda: len(poses) > count + 20)
    assert poses[-1].header.stamp.ns > poses[count - 1].header.stamp.ns

    # Arrivals.
    until(lambda: rov.at == 2)
    until(lambda: all(np.linalg.norm(o.pose.pose.position.array - rov.points[-1]) < 0.2 for o in odometry[-50:]))
    until(lambda: boat.left < 2.0)
    settled = lambda: [-o.pose.pose.position.z for o in poses[-100:]]  # noqa: E731
    until(lambda: len(poses) > 400 and max(abs(d - 4.5) for d in settled()) < 0.3)
    assert abs(ros2.turned(odometry[-1].pose.pose.orientation.yaw, 1.0)) < 0.1
    assert abs(ros2.turned(poses[-1].pose.pose.orientation.yaw, -0.5)) < 0.1

    # A controller that is silent: neutral. It speaks again: on.
    assert any(abs(f) > 0.0 for f in joints[-1].effort)
    flying[0] = None
    until(lambda: not any(abs(f) > 1e-6 for f in joints[-1].effort))

    # Others: a velocity ahead, to port, turning to port; then a force ahead.
    def moves(o: ros2.Odometry) -> bool:
        v, w = o.twist.twist.linear.array, o.twist.twist.angular.array
        return bool(np.abs(v - (0.3, 0.1, 0.0)).max() < 0.05 and abs(w[2] - 0.2) < 0.05)

    flying[0] = by_velocity
    until(lambda: all(map(moves, odometry[-25:])))
    flying[0] = by_wrench
    until(lambda: all(abs(f - 30.0 / math.sqrt(8.0)) < 0.1 for f in joints[-1].effort[:4]))

    # The published values are the truth.
    truth = SharedState(server.name)
    limit, now = time.monotonic() + 150.0, -1
    while not (odometry[-1].header.stamp.ns == now == poses[-1].header.stamp.ns and clock[-1].clock.ns == now):
        assert time.monotonic() < limit, "timed out"
        if now >= 0:  # the pause came between two steps, of which nothing is published
            assert node.call("/rov/start", ros2.TriggerRequest, ros2.TriggerResponse).success
        assert node.call("/rov/pause", ros2.TriggerRequest, ros2.TriggerResponse).success
        shot = truth.snapshot()
        now = int(shot.time_ns)
        with contextlib.suppress(AssertionError):
            until(
                lambda now=now: odometry[-1].header.stamp.ns == now == poses[-1].header.stamp.ns == clock[-1].clock.ns,
                3.0,
            )
    said = {t.child_frame_id: t for message in transforms[-10:] for t in message.transforms}
    frames = {"rov": "rov/base_link", "auv": "auv/base_link", "wamv": "wamv/wamv/base_link"}
    for name, frame in frames.items():
        true, t = shot.state[truth.row(name)], said[frame].transform
        assert said[frame].header.stamp.ns == now and said[frame].header.frame_id == (
            "world" if name == "auv" else "odom"
        )
        assert np.abs(t.translation.array - S @ true["p_WB_W"]).max() < 1e-6
        R = S @ Rotation.from_quat(true["q_WB"], scalar_first=True).as_matrix() @ B
        assert np.abs(t.rotation.rotation.as_matrix() - R).max() < 1e-6
    last, true = odometry[-1], shot.state[truth.row("rov")]
    assert last.header.frame_id == "odom" and last.child_frame_id == "rov/base_link"
    assert np.abs(last.pose.pose.position.array - S @ true["p_WB_W"]).max() < 1e-6
    assert np.abs(last.twist.twist.linear.array - B @ true["v_WB_B"]).max() < 1e-6
    assert np.abs(last.twist.twist.angular.array - B @ true["w_WB_B"]).max() < 1e-6
    same = {o.header.stamp.ns: o for o in odometry}
    felt = next(a for a in reversed(attitudes) if a.header.stamp.ns in same)
    orientation = same[felt.header.stamp.ns].pose.pose.orientation.rotation
    assert (
        felt.orientation.rotation.inv() * orientation
    ).magnitude() < 1e-6 and felt.header.frame_id == "rov/base_link"
    deep = next(d for d in reversed(depths) if d.header.stamp.ns in same)
    assert deep.pose.pose.position.z == pytest.approx(same[deep.header.stamp.ns].pose.pose.position.z - 0.1, abs=0.02)
    wet = next(p for p in reversed(pressures) if p.header.stamp.ns in same)
    expected = 101_325.0 - 1025.0 * 9.81 * (same[wet.header.stamp.ns].pose.pose.position.z - 0.1)
    assert wet.fluid_pressure == pytest.approx(expected, abs=500.0) and wet.header.frame_id == "rov/pressure_link"
    wanted = {"rov/pressure_link", "odom", "wamv/wamv/gps_wamv_link"}
    until(lambda: wanted <= {t.child_frame_id for message in static for t in message.transforms})
    mounted = {t.child_frame_id: t for message in static for t in message.transforms}
    assert mounted["rov/pressure_link"].transform.translation.z == pytest.approx(-0.1)
    assert mounted["odom"].header.frame_id == "map"
    held = list(clock)
    until(lambda: len(clock) > len(held) + 3)  # the clock is still published, and stands

    # The end, for everybody.
    assert node.call("/rov/stop", ros2.TriggerRequest, ros2.TriggerResponse).success
    dead = bridges.pop(1)
    assert dead.process.returncode == -signal.SIGKILL
    assert all(b.process.poll() is None for b in bridges)
    spoken = [b.end() for b in bridges]
    assert not any("Traceback" in text for text in spoken)
    for why in ("no number", "2 numbers for 6 actuators"):
        assert f"was dropped: /rov/actuators/cmd: {why}\n" in spoken[0], spoken[0]
    assert "deserialization rt/rov/actuators/cmd/" in spoken[0], "Cyclone refuses bytes that cannot be of the type"
    assert "was dropped: /rov/start: not a message of this type\n" in spoken[0], spoken[0]
    assert "no commands from the controller" in spoken[0] and "the first message on /rov/actuators/cmd" in spoken[0]
    assert node.errors == []
    ticks = [c.clock.ns for c in clock]
    assert ticks == sorted(ticks) and ticks[-1] == now and len(set(ticks)) > 400
    for messages in (odometry, poses, bearings, fixes):
        stamps = [m.header.stamp.ns for m in messages]
        assert all(a < b for a, b in itertools.pairwise(stamps)), "in order, and each once"

    # The other DDS heard the same.
    lines = peer.end()
    heard: dict[str, list[bytes]] = {}
    for topic, text in lines:
        heard.setdefault(topic, []).append(bytes.fromhex(text) if topic not in "+!" else text.encode())
    assert "!" not in heard and len(heard["rt/tf_static"]) >= 3, "whoever comes late hears what is latched"
    theirs = [ros2.Odometry.deserialize(data) for data in heard["rt/rov/odom"]]
    assert len(theirs) > 400 and all(same.get(o.header.stamp.ns) == o for o in theirs if o.header.stamp.ns in same)
    stamps = [o.header.stamp.ns for o in theirs]
    assert all(a < b for a, b in itertools.pairwise(stamps))
    assert {ros2.Clock.deserialize(data).clock.ns for data in heard["rt/clock"]} <= set(ticks)
    assert ros2.Imu.deserialize(heard["rt/wamv/sensors/imu/imu/data"][-1]) == bearings[-1]


def test_a_server_that_starts_anew(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], domain: int, node: Node, bridges: list[Bridge]
) -> None:
    """Two vehicles in one process: time goes on where it was, for both."""
    bodies = "".join(
        f'<vehicle name="{name}" model="bluerov2" position="0 {y} 2 m" client="optional" truth="{truth}"/>'
        for name, y, truth in (("one", 0, "full"), ("two", 5, "full"), ("blind", 9, "none"))
    )
    path = config(f'<time step="5 ms"/><world/><fleet>{bodies}</fleet>').path
    server = serve(path, "--speed", "8")
    bridges.append(Bridge(server, path, domain, "one", "--also", "two", "--also", "blind").joined())
    clock = node.latest("/clock", ros2.Clock)
    odometry = [node.latest(f"/{name}/odom", ros2.Odometry) for name in ("one", "two", "blind")]
    until(lambda: clock)
    server.send("start")
    until(lambda: all(len(o) > 10 for o in odometry[:2]))
    parts = children(server.process.pid).values()
    for pid in (server.process.pid, *parts):
        os.kill(pid, signal.SIGKILL)
    server.process.wait(60)
    before = [len(o) for o in odometry]
    again = serve(path, "--speed", "8", "--port", str(server.port))
    again.wait(lambda status: status["clients_total"] == 3, 150.0)
    again.send("start")
    until(lambda: all(len(o) > n + 10 for o, n in zip(odometry[:2], before, strict=False)))
    said = bridges[0].end()
    assert (
        said.count("joined, one step every 40 ms") == 6 and said.count("for a server") >= 3 and "Traceback" not in said
    ), said
    ticks = [c.clock.ns for c in clock]
    assert ticks == sorted(ticks) and node.errors == []
    for messages in odometry[:2]:
        stamps = [o.header.stamp.ns for o in messages]
        assert all(a < b for a, b in itertools.pairwise(stamps)) and set(stamps) <= set(ticks)
    assert odometry[2] == [], "a vehicle that hides its truth publishes none"
