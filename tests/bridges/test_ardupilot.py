"""ArduPilot's JSON interface: its bytes, and vehicles controlled by a stand-in."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.bridges.autopilot import VECTORED, VECTORED_6DOF, Autopilot, State, rov, shipped, skid
from tests.bridges.conftest import Fly
from tests.conftest import Server, wavesim
from wavesim_bridges.ardupilot import FRAMES, ArduPilotBridge, parse_servo_frame, state_message
from wavesim_bridges.core import BridgeOptions, MalformedMessage
from wavesim_bridges.servo_outputs import ServoOutput
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.log import read
from wavesim_sdk.tables import STATE
from wavesim_sdk.testing import FakeServer
from wavesim_world.config import LoadedConfig


def test_a_servo_frame() -> None:
    """The two layouts of the description, to the byte; 0 us is no output, and more than full is full."""
    pwm = [1500, 1900, 1100, 0, 2000, 1000, 1600] + [1500] * 9
    found = parse_servo_frame(struct.pack("<HHI16H", 18458, 400, 7, *pwm))
    assert (found.rate, found.number, found.pwm) == (400, 7, tuple(pwm))
    assert found.outputs()[:7] == [0.0, 1.0, -1.0, None, 1.0, -1.0, 0.25]
    assert len(parse_servo_frame(struct.pack("<HHI32H", 29569, 50, 2**32 - 1, *[1500] * 32)).pwm) == 32


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "magic"),
        (b"\x1aH", "size"),
        (struct.pack("<HHI15H", 18458, 1, 1, *[0] * 15), "size"),
        (struct.pack("<HHI32H", 18458, 1, 1, *[0] * 32), "size"),
        (struct.pack("<HHI16H", 18459, 1, 1, *[0] * 16), "magic"),
    ],
)
def test_what_is_no_servo_frame(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        parse_servo_frame(data)


def test_a_state_is_text_that_both_readers_take() -> None:
    """ArduPilot, which searches for names, and a parser of JSON."""
    motion = VehicleMotion(
        12.3456789,
        np.array([1.0, -2.5, 3e-7]),
        np.array([0.1, 0.2, -0.3]),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.array([0.01, -0.02, 0.03]),
        np.array([0.0, 0.0, -9.80665]),
    )
    data = state_message(motion, (3.25, -1.0))
    state, found = json.loads(data), State(data.decode())
    assert state["imu"]["accel_body"] == [0, 0, -9.80665] and state["rng_1"] == 3.25 and state["rng_2"] == -1
    assert found.time == pytest.approx(12.3456789, abs=1e-9) and found.position == (1.0, -2.5, 3e-7)
    assert found.gyro == (0.01, -0.02, 0.03) and found.velocity == (0.1, 0.2, -0.3) and found.yaw == 0.0


def test_an_output_of_nothing_is_refused_at_joining() -> None:
    """Before the world is started."""

    async def run() -> None:
        with FakeServer() as server:
            seat = BridgeOptions("boat", server.address, 0.004)
            with pytest.raises(BrokerError, match="no actuator 'propellor'; did you mean 'propeller'"):
                await asyncio.wait_for(ArduPilotBridge(seat, {1: ServoOutput("propellor")}, ()).run(0), 20.0)

    asyncio.run(run())


# -- flown -----------------------------------------------------------------------------------------------

WORLD = """<time step="2.5 ms"/><world><bed depth="60 m"/></world><fleet>
<vehicle name="rov" model="bluerov2" position="0 0 2 m" client="optional"/>
<vehicle name="heavy" model="vita1" position="10 0 2 m" attitude="0 0 90 deg" client="optional"/>
<vehicle name="boat" model="otter" position="0 20 0 m" client="optional"/></fleet>"""


def settled(pilot: Autopilot, share: float = 0.2) -> list[State]:
    """The last states of a flight."""
    assert pilot.error is None
    return pilot.states[-max(int(share * len(pilot.states)), 1) :]


@pytest.mark.system
@pytest.mark.xdist_group("ardupilot")
def test_three_autopilots_in_one_world(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], fly: Fly
) -> None:
    """Two frames of ArduSub below 12 m, with our parameters, and a boat, in lockstep; one is killed in mid-flight and comes back, one is asked every second step
    only. All say 1200 frames a second, as ArduPilot does by default."""
    # the ROV sinks at 0.8 m/s at most, and ArduSub's integral, filled on the way down, takes it 0.4 m too deep for some 4 s
    world = WORLD.replace('position="0 0 2 m"', 'position="0 0 8 m"')
    server = serve(config(world).path, "--speed", "0")
    bridge = fly("ardupilot", server, "rov", "--frame", "vectored")
    fly("ardupilot", server, "heavy", "--frame", "vectored_6dof", "--instance", "1", "--period", "0.005")
    fly("ardupilot", server, "boat", "--frame", "skid", "--instance", "2")
    first = Autopilot(rov(VECTORED, 13.0, heading=1.0), 1000.0)
    others = [
        Autopilot(rov(VECTORED_6DOF, 12.5, heading=-0.5, parm=shipped("vita1")), 16.0, 1, magic=29569),
        Autopilot(skid(4.0, 22.0), 14.0, 2),
    ]
    for a in (first, *others):
        a.start()
    server.send("start")
    limit = time.monotonic() + 200.0
    while len(first.states) < 2000:
        assert first.is_alive() and first.error is None and time.monotonic() < limit
        time.sleep(0.01)
    first.die()
    again = Autopilot(rov(VECTORED, 13.0, heading=1.0), 16.0)
    again.start()
    for a in (again, *others):
        a.done(200)
    server.send("pause")
    truth = SharedState(server.name)

    assert first.states[-1].position[2] < 12.5, "still on its way down"
    assert np.abs(np.array([s.position[2] for s in settled(again)]) - 13.0).max() < 0.2
    assert abs(settled(again)[-1].yaw - 1.0) < 0.1 and abs(settled(again)[-1].roll) < 0.05
    assert again.states[0].time > first.states[-1].time, "one clock, whoever looks at it"
    heavy, boat = others
    assert np.abs(np.array([s.position[2] for s in settled(heavy)]) - 12.5).max() < 0.2
    assert abs(settled(heavy)[-1].yaw + 0.5) < 0.1
    assert math.dist(settled(boat)[-1].position[:2], (4.0, 22.0)) < 1.0
    for pilot in (first, heavy, boat):  # one of them received what lies between
        assert np.isclose(pilot.steps, 0.0025).mean() > 0.99, "but for a second in which a busy machine stood still"
    # the clients received the truth
    assert truth.snapshot().state["p_WB_W"][truth.row("boat")][:2] == pytest.approx(
        boat.states[-1].position[:2], abs=1.0
    )
    said = bridge.end()
    assert "no data from the autopilot" in said or said.count("an autopilot at") == 2, said


@pytest.mark.system
@pytest.mark.xdist_group("ardupilot")
def test_what_an_accelerometer_feels(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], fly: Fly
) -> None:
    """Its integral is the velocity: specific force and attitude belong together, also in a turn."""
    server = serve(config(WORLD).path, "--speed", "0")
    fly("ardupilot", server, "heavy", "--frame", "vectored_6dof")
    pilot = Autopilot(rov(VECTORED_6DOF, 3.0, heading=2.5, forward=0.6), 5.0)
    pilot.start()
    server.send("start")
    pilot.join(100)
    assert pilot.error is None and len(pilot.states) > 1900
    velocity = np.array(pilot.states[400].velocity)
    for s, t in zip(pilot.states[400:-1], pilot.states[401:], strict=True):
        cr, sr, cp, sp, cy, sy = (f(a) for a in (s.roll, s.pitch, s.yaw) for f in (math.cos, math.sin))
        R = np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
        velocity = velocity + (t.time - s.time) * (R @ s.force + (0.0, 0.0, 9.80665))
    assert np.linalg.norm(pilot.states[-1].velocity) > 0.3
    assert velocity == pytest.approx(np.array(pilot.states[-1].velocity), abs=0.05)


@pytest.mark.system
@pytest.mark.xdist_group("ardupilot")
def test_bad_input_is_counted_and_ends_nothing(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], fly: Fly
) -> None:
    server = serve(config(WORLD).path, "--speed", "0")
    bridge = fly("ardupilot", server, "rov", "--frame", "vectored")
    pilot = Autopilot(rov(VECTORED, 3.0), 10.0)
    pilot.start()
    server.send("start")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        good = struct.pack("<HHI16H", 18458, 400, 2**31, *[1900] * 16)
        while pilot.is_alive():
            for data in (b"", b"x" * 40, good[:20], good, good + good):
                stranger.sendto(data, pilot.address)
            time.sleep(0.01)
    assert pilot.error is None
    assert np.abs(np.array([s.position[2] for s in settled(pilot)]) - 3.0).max() < 0.3
    said = bridge.end()
    assert all(f"was dropped: {reason}" in said for reason in ("size", "magic", "another sender")), said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "outputs missing: use --frame"),
        (("--output", "x"), "invalid output 'x'; write NUMBER=ACTUATOR"),
    ],
)
def test_mistakes(options: tuple[str, ...], message: str) -> None:
    done = wavesim("bridge", "ardupilot", "--vehicle", "rov", "--port", "9", "--instance", "40", *options)
    assert message in done.stderr and done.returncode in (1, 5) and "Traceback" not in done.stderr


def test_every_frame_names_outputs_once() -> None:
    for outputs in FRAMES.values():
        assert len({o.actuator for o in outputs.values()}) == len(outputs)


@pytest.mark.system
@pytest.mark.xdist_group("ardupilot")
def test_a_trial_starts_a_bridge_as_a_program(config: Callable[..., LoadedConfig], name: str, tmp_path: Path) -> None:
    path = config(
        '<time step="2.5 ms" duration="8 s"/><world><bed depth="60 m"/></world><fleet>'
        '<vehicle name="rov" model="bluerov2" position="0 0 2 m" client="required">'
        '<program bridge="ardupilot" options="--frame vectored --instance 3" period="2.5 ms"/></vehicle></fleet>'
    ).path
    pilot = Autopilot(rov(VECTORED, 4.0), 7.9, 3)
    pilot.start()
    done = wavesim("trial", path, "--name", name, "--port", "0", "--out", tmp_path, "--no-plots")
    pilot.die()
    said = (tmp_path / name / "program-rov.txt").read_text()
    assert done.returncode == 0, done.stderr + said
    assert pilot.error is None and "an autopilot at 127.0.0.1" in said
    positions = {round(s.time * 1e9): s.position for s in pilot.states}
    track = read(tmp_path / name / "run.mcap").get("/state/rov", STATE)
    both = [
        (p, positions[int(t)])
        for t, p in zip(track.time_ns, track.records["p_WB_W"], strict=True)
        if int(t) in positions
    ]
    assert len(both) > 50 and np.abs(np.array([a - np.array(b) for a, b in both])).max() < 1e-6, "it received the truth"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('<program bridge="ardupylot"/>', "unknown bridge 'ardupylot'; did you mean 'ardupilot'?"),
        ("<program/>", "a program needs either `run` or `bridge`"),
        ('<program run="c.xml" bridge="ardupilot"/>', "a program needs either `run` or `bridge`"),
    ],
)
def test_a_wrong_program(tmp_path: Path, program: str, message: str) -> None:
    path = tmp_path / "c.xml"
    path.write_text(
        f'<wavesim><fleet><vehicle name="a" model="lauv" position="0 0 9 m" client="required">{program}</vehicle></fleet></wavesim>'
    )
    done = wavesim("check", path)
    assert done.returncode == 2 and message in done.stderr
