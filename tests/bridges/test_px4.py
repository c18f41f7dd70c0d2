"""PX4 in the loop: its bytes, and vehicles controlled by a stand-in."""

from __future__ import annotations

import asyncio
import math
import random
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.bridges.conftest import Fly
from tests.bridges.px4 import COMMAND, CONTROLS, HEARTBEAT, LAYOUTS, Px4, Seen, boat, crc, packed, uuv
from tests.conftest import Server, wavesim
from wavesim_bridges.core import BridgedVehicle, BridgeOptions
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.mavlink_codec import MavlinkStream
from wavesim_bridges.px4 import FRAMES, PORT, Px4Connection, Px4Server
from wavesim_bridges.px4_sensors import Px4Sensors, magnetic_field
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.frames import quaternion
from wavesim_world.config import LoadedConfig

ORIGIN = WorldOrigin(41.185, -8.705)
PLACE = ("--latitude", "41.185", "--longitude", "-8.705")


def test_a_stream_in_pieces_with_rubbish_between() -> None:
    """Whatever the pieces are, the same messages; anything else is reported, and the next frame is found."""
    good = packed(CONTROLS, 4000, 1, *[0.5] * 16, 129), packed(HEARTBEAT, 0, 0, 12, 0, 0, 3)
    spoilt = bytearray(good[0])
    spoilt[20] ^= 1
    whole = good[0] + b"rubbish" + good[1] + bytes(spoilt) + good[0]
    for size in (1, 3, 50, len(whole)):
        stream, found, faults = MavlinkStream(), [], Counter[str]()
        for k in range(0, len(whole), size):
            messages, why = stream.feed(whole[k : k + size])
            found += messages
            faults.update(why)
        assert [m.name for m in found] == ["HIL_ACTUATOR_CONTROLS", "HEARTBEAT", "HIL_ACTUATOR_CONTROLS"]
        assert faults["magic"] >= 1 and faults["checksum"] == 1
    assert found[0].fields["controls"] == (0.5,) * 16 and found[0].fields["mode"] == 129
    assert found[0].fields["time_usec"] == 4000


def test_what_the_sensors_say() -> None:
    """Read by a codec of its own: the field points north and down, the accelerometer feels the weight, pressure falls with height."""
    turned = VehicleMotion(
        1.0,
        np.array([30.0, -40.0, 0.2]),
        np.array([0.0, 2.0, 0.0]),
        np.array(quaternion(0.0, 0.0, math.pi / 2)),
        np.array([0.1, 0.2, 0.3]),
        np.array([0.0, 0.0, -9.80665]),
    )
    sensors = Px4Sensors(ORIGIN, odometry=True, seed=1)
    sensors.set_truth_interval(8000)
    peer = Px4(uuv(1, 0), 1.0, 0, check=True)
    for k in range(251):
        data = sensors.frame(turned, 4000 * (k + 1), [3.21, -1.0] if k else [-1.0, 3.21])
        while data:
            size = 12 + data[1]
            peer.take(data[:size])
            data = data[size:]
    s = peer.seen
    assert s.counts == {107: 251, 331: 51, 132: 102, 113: 11, 115: 126} and set(s.counts) == set(LAYOUTS)
    assert s.time_us == 1_004_000 and set(np.diff(peer.times)) == {4000}
    assert s.force == pytest.approx((0, 0, -9.80665), abs=0.1) and s.gyro == pytest.approx((0.1, 0.2, 0.3), abs=0.005)
    n, e, d = magnetic_field(ORIGIN)
    assert (n, e, d) == pytest.approx((0.254, -0.0042, 0.373), abs=0.001), "WMM2025 for Porto: 45 uT, 56 degrees down"
    assert s.magnetic == pytest.approx((e, -n, d), abs=0.003), "ahead is east"
    assert s.pressure == pytest.approx(1013.25 + 0.2 * 0.12, abs=0.1)
    assert s.gps == pytest.approx((*ORIGIN.degrees(30.0, -40.0), -0.2), abs=1e-6) and s.fix == 3
    assert s.odometry[:3] == pytest.approx((30.0, -40.0, 0.2)) and s.odometry[7:10] == pytest.approx(
        (2.0, 0.0, 0.0), abs=1e-6
    )
    assert s.truth[:4] == pytest.approx((math.sqrt(0.5), 0, 0, math.sqrt(0.5)), abs=1e-6) and s.truth[11] == 200
    assert s.truth[-3:] == (0, 0, 0), "no acceleration but the weight"
    assert s.distance_cm == 5001, "no echo is beyond the range"
    turned.position[2] = 3.0
    sensors.reset()
    data = sensors.frame(turned, 2_000_000)
    while data:
        peer.take(data[: 12 + data[1]])
        data = data[12 + data[1] :]
    assert s.fix == 0 and s.gps[2] == -3.0, "no fix under water"


AT = VehicleMotion(2.0, np.zeros(3), np.zeros(3), np.array([1.0, 0, 0, 0]), np.zeros(3), np.zeros(3))


class Wire(asyncio.Transport):
    """A connection; what is written to it is read by ``peer``."""

    def __init__(self, peer: Px4) -> None:
        super().__init__({"peername": ("127.0.0.1", 9)})
        self.peer = peer

    def write(self, data: Any) -> None:
        while data:
            self.peer.take(data[: 12 + data[1]])
            data = data[12 + data[1] :]

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        """It is not sent."""


def connected(port: Px4Server, peer: Px4) -> Px4Connection:
    link = Px4Connection(port)
    link.transport = Wire(peer)
    link.data_received(packed(HEARTBEAT, 0, 0, 12, 0, 0, 3))
    return link


def test_a_clock_never_goes_back_for_whoever_looks_at_it() -> None:
    """A PX4 that comes at once after another: its first time is after the last time of the one before."""
    peer = Px4(boat([(0.0, 0.0)]), 1.0, 0)

    async def two() -> None:
        port = Px4Server(BridgedVehicle(BridgeOptions("boat", ("127.0.0.1", 9), 0.004)), Px4Sensors(ORIGIN, False, 1))
        for _ in range(2):
            link = connected(port, peer)
            for _ in range(3):
                await port.exchange(AT, [])
            port.on_connection_lost(link)

    asyncio.run(two())
    assert peer.times == [2_000_000 + 4000 * k for k in range(6)]


def test_random_frames_end_nothing() -> None:
    """Whole frames of random content, and bytes that are none: outputs stay numbers from -1 to 1, or none; PX4's clock goes on."""
    peer, luck, said = Px4(boat([(0.0, 0.0)]), 1.0, 0), random.Random(3), list[str]()

    async def fly() -> None:
        port = Px4Server(
            BridgedVehicle(BridgeOptions("boat", ("127.0.0.1", 9), 0.004, report=said.append)),
            Px4Sensors(ORIGIN, True, 1),
        )
        link = connected(port, peer)
        for k in range(600):
            number, layout, extra = luck.choice((CONTROLS, COMMAND, HEARTBEAT))
            body = bytes([layout.size, 0, 0, 0, 1, 1]) + number.to_bytes(3, "little") + luck.randbytes(layout.size)
            whole = b"\xfd" + body + crc(body + bytes([extra])).to_bytes(2, "little")
            link.data_received(luck.choice((whole, whole, whole, luck.randbytes(40), whole[:-1])))
            if k % 30 == 0:
                outputs = await port.exchange(AT, []) or [None]
                assert all(u is None or -1.0 <= u <= 1.0 for u in outputs)

    asyncio.run(fly())
    assert set(np.diff(peer.times)) == {4000}
    assert {"checksum", "magic", "not finite"} <= {s.rpartition(": ")[2] for s in said}


# -- flown -----------------------------------------------------------------------------------------------

WORLD = """<time step="4 ms"/><world latitude="41.185 deg" longitude="-8.705 deg"><bed depth="60 m"/></world><fleet>
<vehicle name="rov" model="vita1" position="0 0 2 m" client="optional"/>
<vehicle name="second" model="vita1" position="10 0 2 m" attitude="0 0 90 deg" client="optional"/>
<vehicle name="boat" model="otter" position="0 20 0 m" client="optional"/></fleet>"""


def instance(count: int = 1) -> int:
    """So many TCP ports in a row that nobody uses."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            first: int = probe.getsockname()[1]
        try:
            for k in range(1, count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", first + k))
        except OSError:
            continue
        return first - PORT


def yaw(odometry: tuple[float, ...]) -> float:
    w, x, y, z = odometry[3:7]
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def until(condition: Callable[[], bool], pilot: Px4) -> None:
    limit = time.monotonic() + 120.0
    while not condition():
        assert pilot.error is None and time.monotonic() < limit, pilot.error
        time.sleep(0.01)


@pytest.mark.system
def test_two_rovs_and_a_boat_in_one_world(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], fly: Fly
) -> None:
    """Two ROVs of one process and a boat whose controllers answer every second or third frame; one ROV's PX4 is killed in
    mid-flight and started anew."""
    server = serve(config(WORLD).path, "--speed", "0")
    rovs, boats = instance(2), instance()
    goals = [(4.0, 21.0), (8.0, 20.0)]
    first = Px4(uuv(3.0, 0.5), 1000.0, PORT + rovs)
    others = [
        Px4(uuv(3.0, 1.0), 8.0, PORT + rovs + 1),
        Px4(boat([ORIGIN.degrees(*g) for g in goals]), 15.0, PORT + boats, every=2),
    ]
    bridge = fly("px4", server, "rov", *PLACE, "--instance", f"{rovs}", "--frame", "bluerov2_heavy", "--also", "second")
    fly("px4", server, "boat", *PLACE, "--instance", f"{boats}", "--frame", "boat")
    for p in (first, *others):
        p.start()
    server.send("start")
    until(lambda: len(first.times) > 400, first)
    first.die()
    again = Px4(uuv(3.0, 0.5), 8.0, PORT + rovs)
    again.start()
    for p in (again, *others):
        p.done(200)
    server.send("pause")
    second, surface = others
    for pilot, depth, heading in ((again, 3.0, 0.5), (second, 3.0, 1.0)):
        last = pilot.track[-len(pilot.track) // 5 :]
        assert np.abs([s.odometry[2] - depth for s in last]).max() < 0.3
        assert np.abs([yaw(s.odometry) - heading for s in last]).max() < 0.09, "5 degrees"
    passed = np.array([ORIGIN.metres(*s.gps[:2]) for s in surface.track[::50] if s.gps])
    for goal in goals:
        assert np.hypot(*(passed - goal).T).min() < 2.0, "reached"
    assert np.hypot(*(passed[-1] - goals[-1])) < 2.0, "it stays there"
    assert not surface.seen.odometry
    for p in (first, again, *others):
        assert set(np.diff(p.times)) == {4000}, "its clock goes on by 4 ms exactly"
    assert again.times[0] > first.times[-1], "one clock of the world, whoever looks at it"
    said = bridge.end()
    assert "the autopilot has disconnected" in said and said.count("an autopilot at") == 3, said
    assert "dropped" not in said, said


@pytest.mark.system
def test_bad_input_late_answers_and_none_end_nothing(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], fly: Fly
) -> None:
    """Rubbish and half a frame before PX4 comes, a second one while it flies, NaN, answers that are 200 ms late or missing."""
    server = serve(config(WORLD).path, "--speed", "0")
    number = instance()
    bridge = fly("px4", server, "rov", *PLACE, "--instance", f"{number}", "--frame", "bluerov2_heavy")
    address = ("127.0.0.1", PORT + number)
    with socket.create_connection(address) as stranger:
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n" + packed(HEARTBEAT, 0, 0, 12, 0, 0, 3)[:9])
    server.send("start")
    hold = uuv(3.0, 0.3)

    def pilot(s: Seen) -> list[float]:
        return [math.nan] * 8 if s.time_us % 400_000 == 0 else hold(s)

    px4 = Px4(
        pilot, 8.0, PORT + number, answers=lambda n: 0.2 if n % 500 == 300 else None if n % 500 in (400, 401) else 0.0
    )
    px4.start()
    until(lambda: len(px4.times) > 100, px4)
    with socket.create_connection(address) as second:
        second.settimeout(10.0)
        second.sendall(packed(HEARTBEAT, 0, 0, 12, 0, 0, 3))
        assert second.recv(10) == b"", "sent away"
    px4.done(200)
    assert len(px4.times) >= 2000 and set(np.diff(px4.times)) == {4000}
    last = px4.track[-250:]
    assert np.abs([s.odometry[2] - 3.0 for s in last]).max() < 0.3
    said = bridge.end()
    for reason in ("dropped: magic", "dropped: another sender", "dropped: not finite", "no answer within 100 ms"):
        assert reason in said, said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--frame", "boat"), "use --latitude and --longitude in degrees, or --config FILE"),
        (("--frame", "boat", "--latitude", "410", "--longitude", "0"), "410, 0 is not a position on the Earth"),
        (("--latitude", "0", "--longitude", "0"), "outputs missing: use --frame"),
        (
            ("--frame", "boat", "--latitude", "0", "--longitude", "0", "--period", "0.01"),
            "0.01 is not a multiple of 0.004",
        ),
    ],
)
def test_mistakes(options: tuple[str, ...], message: str) -> None:
    done = wavesim("bridge", "px4", "--vehicle", "rov", "--port", "9", *options)
    assert message in done.stderr and done.returncode != 0 and "Traceback" not in done.stderr


def test_every_frame_names_actuators_once() -> None:
    for outputs in FRAMES.values():
        assert len({o.actuator for o in outputs.values()}) == len(outputs)
