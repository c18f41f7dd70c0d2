"""IMC byte by byte, and LAUVs controlled by a stand-in for DUNE."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pymap3d
import pytest

from tests.bridges.dune import Bridge, Dune, autopilot, checksum, opened, packet, steady, through, until
from tests.conftest import Server
from tests.nursery import launch
from wavesim_bridges import imc, imc_codec
from wavesim_bridges.dune import command
from wavesim_bridges.dune_vehicle import (
    SERVOS,
    THRUSTERS,
    ImcActuators,
    ImcInstruments,
    ReferencePoint,
    estimated_state,
    simulated_state,
)
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frames import euler, quaternion, rotation
from wavesim_sdk.sensors import sensor_table_of, value_fields
from wavesim_sdk.wire.items import ActuatorDescription, FieldDescription, SensorDescription
from wavesim_sdk.wire.state import Layout, Sensors, Value
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.xdist_group("dune")

# -- bytes -----------------------------------------------------------------------------------------------


def test_the_checksum() -> None:
    """The check value that catalogues give for CRC-16/ARC."""
    assert imc_codec.crc16(b"123456789") == 0xBB3D == checksum(b"123456789") and imc_codec.crc16(b"") == 0


def test_a_packet_to_the_byte() -> None:
    """SetServoPosition 2, 0.5 rad; time 1.0 s."""
    head = bytes.fromhex("54fe 2e01 0500 000000000000f03f d100 ff ffff ff".replace(" ", ""))
    payload = bytes.fromhex("02 0000003f".replace(" ", ""))
    data = head + payload + struct.pack("<H", checksum(head + payload))
    assert len(head) == 20
    assert imc_codec.packed(imc_codec.ImcPacket(imc.SetServoPosition(2, 0.5), 1.0, 0x00D1)) == data
    assert imc_codec.read(data) == imc_codec.ImcPacket(imc.SetServoPosition(2, 0.5), 1.0, 0x00D1)
    big = bytes.fromhex("fe54 012e 0005 3ff0000000000000 00d1 0a 4001 0b 02 3f000000".replace(" ", ""))
    found = imc_codec.read(big + struct.pack(">H", checksum(big)))
    assert found == imc_codec.ImcPacket(imc.SetServoPosition(2, 0.5), 1.0, 0x00D1, 0x4001, 0x0A, 0x0B)


def test_texts_and_lists() -> None:
    announce = imc.Announce("lauv", imc.Announce.SYSTEMTYPE_UUV, 0xFFFF, 0.0, 0.0, 0.0, "a://b/")
    payload = imc_codec.packed(imc_codec.ImcPacket(announce, 0.0, 1))[20:-2]
    assert payload == b"\x04\x00lauv" + b"\x02" + b"\xff\xff" + bytes(20) + b"\x06\x00a://b/"
    distance = imc_codec.packed(imc_codec.ImcPacket(imc.Distance(1, (), (), 2.0), 0.0, 1))[20:-2]
    assert distance == bytes.fromhex("01 0000 0000 00000040".replace(" ", ""))
    beacons = imc.LblConfig(
        imc.LblConfig.OP_SET_CFG,
        (imc.LblBeacon("a", 0.0, 0.0, 2.0, 1, 2, 3), imc.LblBeacon("", 0.0, 0.0, 0.0, 0, 0, 0)),
    )
    data = imc_codec.packed(imc_codec.ImcPacket(beacons, 0.0, 1))
    one, two = b"\xca\x00\x01\x00a" + bytes(16) + b"\0\0\0\x40\1\2\3", b"\xca\x00\0\0" + bytes(23)
    assert data[20:-2] == b"\0\2\0" + one + two and imc_codec.read(data).message == beacons
    frame = imc.UamTxFrame(7, "x", 1, b"\xff\0")
    data = imc_codec.packed(imc_codec.ImcPacket(frame, 0.0, 1))
    assert data[20:-2] == b"\7\0\1\0x\1\2\0\xff\0" and imc_codec.read(data).message == frame


#: bytes of fields, by the definition of IMC
SIZES = {
    1: 4, 3: 9, 5: 3, 51: 3, 200: 5, 202: 25, 203: 3, 350: 88, 500: 31, 801: 4, 802: 4, 804: 4, 814: 7, 815: 7, 816: 5, 817: 8,
    818: 8, 50: 80, 150: 0, 151: 27, 250: 2, 253: 56, 254: 40, 256: 32, 257: 32, 259: 25, 260: 25, 262: 9, 263: 4, 265: 4, 269: 4,
    281: 5, 301: 5, 302: 5, 352: 8, 353: 8, 400: 8, 401: 5, 402: 9, 403: 8,
}  # fmt: skip


@pytest.mark.parametrize("number", sorted(imc_codec.MESSAGES))
def test_every_message_comes_back(number: int) -> None:
    kind, values = imc_codec.MESSAGES[number], []
    for k, code in enumerate(kind.LAYOUT):
        values.append({"t": "", "r": b"", "l": ()}[code] if code in "trl" else k + 1 if code in "BHIh" else -0.5 * k)
    packet_ = imc_codec.ImcPacket(kind(*values), 1.7e9, 0x00D1, 0x4001, 3, 4)
    data = imc_codec.packed(packet_)
    assert imc_codec.read(data) == packet_ and len(data) == 22 + SIZES[number]
    assert len(dataclasses.fields(kind)) == len(kind.LAYOUT)  # type: ignore[arg-type]
    assert opened(imc_codec.packed(dataclasses.replace(packet_, time=time.time())))[0] == number


def reason(data: bytes) -> str:
    with pytest.raises(imc_codec.MalformedMessage) as caught:
        imc_codec.read(data)
    return str(caught.value)


def test_what_is_no_packet() -> None:
    good = packet(301, struct.pack("<Bf", 0, 1.0))
    assert [reason(good[:k]) for k in (0, 21, 22, len(good) - 1)] == ["truncated", "truncated", "size", "size"]
    assert reason(good + b"\0") == "size" and reason(b"\x54\xfd" + good[2:]) == "sync" == reason(bytes(40))
    for at in range(6, len(good)):
        assert reason(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]) == "crc"
    assert imc_codec.read(packet(9999, b"")).message == imc_codec.UnknownMessage(9999)
    assert reason(packet(301, b"\0")) == "payload" == reason(packet(301, bytes(6)))
    assert reason(packet(151, b"\xff\xffx")) == "payload" == reason(packet(151, b"\x01\0\xff" + bytes(25)))
    assert reason(packet(262, b"\1" + b"\1\0" + bytes(6))) == "payload", "a list of what is not known"
    assert reason(packet(804, bytes(2) + b"\1\0" + b"\x24\3" * 9000)) == "payload", "lists in lists"


def test_any_bytes_are_refused_by_name() -> None:
    dice = random.Random(3)
    good = packet(50, bytes(80))
    for _ in range(3000):
        data = bytearray(good[: dice.randrange(len(good) + 1)])
        for _ in range(dice.randrange(4)):
            if data:
                data[dice.randrange(len(data))] = dice.randrange(256)
        body = bytes(data) if dice.random() < 0.5 else packet(dice.choice([*imc_codec.MESSAGES, 7]), bytes(data))
        try:
            imc_codec.read(body)
        except imc_codec.MalformedMessage as unusable:
            assert str(unusable) in ("truncated", "sync", "size", "crc", "payload")


# -- messages in both directions ------------------------------------------------------------------------


def test_a_simulated_state() -> None:
    """In a current, DUNE receives the velocity through the water, and the current."""
    q = quaternion(0.1, -0.2, 2.0)
    through = np.array([1.5, 0.1, -0.05])
    flow = np.array([0.2, -0.3, 0.0])
    motion = VehicleMotion(
        1.0, np.array([1.0, 2.0, 3.0]), rotation(q) @ through + flow, q, np.array([0.1, 0.2, 0.3]), np.zeros(3)
    )
    reference = ReferencePoint(WorldOrigin(40.0, -9.0))
    s = simulated_state(motion, through, reference)
    assert (s.lat, s.lon) == pytest.approx(np.radians([40.0, -9.0])) and (s.height, s.x, s.y, s.z) == (
        0.0,
        1.0,
        2.0,
        3.0,
    )
    assert (s.phi, s.theta, s.psi) == pytest.approx((0.1, -0.2, 2.0)) and (s.p, s.q, s.r) == (0.1, 0.2, 0.3)
    assert (s.u, s.v, s.w) == tuple(through) and (s.svx, s.svy, s.svz) == pytest.approx(tuple(flow))
    reference.move(100.0, -50.0)
    e = estimated_state(motion, reference)
    assert pymap3d.geodetic2ned(math.degrees(e.lat), math.degrees(e.lon), 0.0, 40.0, -9.0, 0.0)[:2] == pytest.approx(
        (100.0, -50.0), abs=0.01
    )
    assert (e.x, e.y, e.z, e.depth, e.alt) == (-99.0, 52.0, 3.0, 3.0, -1.0)
    assert (e.vx, e.vy, e.vz) == pytest.approx(tuple(motion.velocity))
    assert (e.u, e.v, e.w) == pytest.approx(tuple(through + rotation(q).T @ flow)) and (e.p, e.q, e.r) == (
        0.1,
        0.2,
        0.3,
    )


def lauv() -> ImcActuators:
    described = [ActuatorDescription(0, "propeller", 0, "N", -6.0, 12.0)]
    for k, name in enumerate(("rudder-top", "rudder-bottom", "plane-port", "plane-starboard"), 1):
        described.append(ActuatorDescription(k, name, 1, "rad", -0.4, 0.4))
    return ImcActuators(THRUSTERS, SERVOS, described)


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        (imc.SetThrusterActuation(0, 0.5), (0, 6.0)),
        (imc.SetThrusterActuation(0, -0.5), (0, -3.0)),
        (imc.SetThrusterActuation(0, 7.0), (0, 12.0)),
        (imc.SetThrusterActuation(0, -7.0), (0, -6.0)),
        (imc.SetServoPosition(0, 0.1), (2, 0.1)),
        (imc.ServoPosition(3, -0.1), (1, -0.1)),
        (imc.SetServoPosition(1, 0.1), (3, -0.1)),
        (imc.ServoPosition(2, 9.0), (4, -0.4)),
        (imc.Heartbeat(), None),
    ],
)
def test_commands(message: imc_codec.ImcMessage, asked: tuple[int, float] | None) -> None:
    assert lauv().command(message) == asked and lauv().neutral == [0.0] * 5


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (imc.SetThrusterActuation(1, 0.5), "no such thruster"),
        (imc.SetServoPosition(4, 0.5), "no such servo"),
        (imc.SetServoPosition(0, math.nan), "no number"),
        (imc.SetThrusterActuation(0, math.inf), "no number"),
    ],
)
def test_commands_that_are_none(message: imc_codec.ImcMessage, text: str) -> None:
    with pytest.raises(imc_codec.MalformedMessage, match=text):
        lauv().command(message)


def described(number: int, kind: str) -> SensorDescription:
    fields = [FieldDescription(f.name, f.unit, math.prod(f.shape)) for f in value_fields(sensor_table_of(kind))]
    return SensorDescription(number, f"my-{kind}", kind, 100_000_000, fields)


def measured(kind: str, time_ns: int = 2_000_000_000, **given: Any) -> dict[str, Value]:
    """A value of a sensor; NaN where nothing is given."""
    d = described(0, kind)
    numbers: list[float] = []
    for f in d.fields:
        value = given.get(f.name, math.nan)
        numbers += value if isinstance(value, list) else [value] * f.count
    return {d.name: Value(Layout(d), time_ns, tuple(numbers))}


NOW, AT_NS = 1_700_000_000.0, 2_100_000_000  #: 14 November 2023, 22:13:20 UTC; values are a tenth of a second old


def converted(kind: str, **given: Any) -> list[imc_codec.ImcMessage]:
    return ImcInstruments([described(0, kind)]).messages(Sensors(measured(kind, **given)), AT_NS, NOW)


def test_a_fix() -> None:
    (fix,) = converted(
        "gps", latitude=0.7, longitude=-0.15, height=1.0, sog=2.0, cog=3.0, hdop=0.9, hacc=1.5, satellites=9.0
    )
    assert isinstance(fix, imc.GpsFix)
    assert (fix.utc_year, fix.utc_month, fix.utc_day) == (2023, 11, 14)
    assert fix.utc_time == pytest.approx(22 * 3600 + 13 * 60 + 19.9, abs=1e-3)
    assert (fix.lat, fix.lon, fix.height, fix.satellites) == (0.7, -0.15, 1.0, 9)
    assert (fix.cog, fix.sog, fix.hdop, fix.hacc, fix.validity) == (3.0, 2.0, 0.9, 1.5, 0xBF)
    assert converted("gps", latitude=0.7) == []


def test_instruments_in_the_words_of_imc() -> None:
    at = pytest.approx(NOW - 0.1)
    (angles, rates) = converted("ahrs", roll=0.1, pitch=0.2, heading=1.5 * math.pi, rates=[1.0, 2.0, 3.0])
    assert angles == imc.EulerAngles(at, 0.1, 0.2, pytest.approx(-0.5 * math.pi), pytest.approx(-0.5 * math.pi))  # type: ignore[arg-type]
    assert rates == imc.AngularVelocity(at, 1.0, 2.0, 3.0)  # type: ignore[arg-type]
    assert converted("imu", force=[1.0, 2.0, 3.0])[0] == imc.Acceleration(at, 1.0, 2.0, 3.0)  # type: ignore[arg-type]
    assert converted("dvl", bottom=[1.0, math.nan, 3.0], water=[4.0, 5.0, 6.0]) == [
        imc.GroundVelocity(5, 1.0, 0.0, 3.0),
        imc.WaterVelocity(7, 4.0, 5.0, 6.0),
        imc.Distance(0, (), (), 0.0),
    ]
    assert converted("speedlog", v_FB_B=[1.0, 2.0, 3.0]) == [imc.WaterVelocity(7, 1.0, 2.0, 3.0)]
    assert converted("echosounder", range=12.0) == [imc.Distance(1, (), (), 12.0)]
    assert converted("pressure", pressure=11.0, depth=1.0) == [imc.Depth(1.0)]
    assert converted("ctd", temperature=15.0, conductivity=4.0) == [imc.Temperature(15.0), imc.Conductivity(4.0)]
    assert converted("temperature", temperature=15.0) == [imc.Temperature(15.0)]
    assert converted("conductivity", conductivity=math.nan) == []
    assert (
        converted("rpm", rpm=[math.nan, 1200.4, *[math.nan] * 22]) == [imc.Rpm(1200)]
        or len(described(0, "rpm").fields) == 0
    )
    assert converted("rpm") == []


def test_each_kind_from_one_instrument_and_each_value_once() -> None:
    i = ImcInstruments([described(0, "speedlog"), described(1, "dvl"), described(2, "ahrs"), described(3, "imu")])
    assert len(i.kinds) == len(set(i.kinds)) == 6
    values = {**measured("speedlog", v_FB_B=[9.0] * 3), **measured("dvl", water=[1.0] * 3, bottom=[2.0] * 3)}
    assert imc.WaterVelocity(7, 1.0, 1.0, 1.0) in i.messages(Sensors(values), AT_NS, NOW)
    assert i.messages(Sensors(values), AT_NS, NOW) == []
    assert len(i.messages(Sensors(measured("dvl", time_ns=AT_NS)), AT_NS, NOW)) == 3


# -- flown -----------------------------------------------------------------------------------------------

WORLD = """<time step="4 ms"/><world latitude="41.18 deg" longitude="-8.7 deg"><bed depth="40 m"/>
<current north="0.1 m/s" east="-0.05 m/s"/></world><fleet>
<vehicle name="first" model="lauv" position="0 0 2 m" client="optional"/>
<vehicle name="second" model="lauv" position="0 30 3 m" attitude="0 0 90 deg" client="optional"/></fleet>"""


@pytest.fixture
def bridges() -> Iterator[list[Bridge]]:
    found: list[Bridge] = []
    yield found
    for b in found:
        b.end()


@pytest.fixture
def dunes() -> Iterator[list[Dune]]:
    found: list[Dune] = []
    yield found
    for d in found:
        d.die()


def turned(a: float, b: float) -> float:
    return abs((a - b + math.pi) % (2 * math.pi) - math.pi)


@pytest.mark.system
def test_two_lauvs_in_one_world(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], bridges: list[Bridge], dunes: list[Dune]
) -> None:
    """One holds depth and heading in a current, the other depth on its way through points, six times as fast as real time, their
    fins by the signs of IMC; one is killed and comes back; rubbish and strangers meanwhile. Neptus sees one of them."""
    server = serve(config(WORLD).path, "--speed", "6")
    points = (6.0, 50.0), (20.0, 62.0)
    first, second = Dune(0), Dune(0, autopilot(6.0, through(*points)), source=0x0015, servo=281)
    dunes += [first, second]
    neptus = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    neptus.bind(("127.0.0.1", 0))
    neptus.settimeout(5.0)
    origin = ("--origin", "41.18,-8.7")
    bridges += [
        Bridge(server, "first", first.port, *origin, "--announce", str(neptus.getsockname()[1])),
        Bridge(server, "second", second.port, "--system", "0x15", *origin),
    ]
    first.bridge, second.bridge = (("127.0.0.1", b.port) for b in bridges)
    first.pilot = autopilot(9.0, steady(-1.0))
    with neptus:
        heard = dict(opened(neptus.recv(4096))[::2] for _ in range(2))
    assert heard[150] == b"" and heard[151].startswith(b"\x05\0first\x02\xff\xff")
    assert heard[151].endswith(f"imc+udp://127.0.0.1:{bridges[0].port}/".encode())
    assert struct.unpack_from("<dd", heard[151], 10) == pytest.approx(np.radians([41.18, -8.7]))
    first.start()
    second.start()
    server.send("start")
    truth = SharedState(server.name)
    row = truth.row("first")

    def propeller() -> float:
        return float(truth.table("actuation").snapshot()[1]["actual"][row][0])

    until(lambda: len(first.states) > 150)
    assert propeller() > 5.0
    first.die()
    until(lambda: abs(propeller()) < 0.1)
    again = Dune(bridges[0].port, autopilot(5.0, steady(1.0)))  # elsewhere than --dune says: answered where it is
    dunes.append(again)
    again.ask(0.0, [])
    again.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        full = struct.pack("<Bf", 0, -1.0)
        until(lambda: again.states)
        # on a busy machine, the vehicle settles later
        while len(again.states) < 700 or any(abs(s.z - 5.0) >= 0.3 for s in again.states[-150:]):
            assert again.error is None and again.is_alive()
            for data in (b"x", packet(301, full)[:-1] + b"\0", packet(301, full), packet(301, full, source=7)):
                stranger.sendto(data, again.bridge)
            for data in (packet(9999, b""), packet(301, struct.pack("<Bf", 0, math.nan))):
                again.sock.sendto(data, again.bridge)
            time.sleep(0.05)
    server.send("pause")

    def up_to_date(dune: Dune, name: str) -> bool:
        with contextlib.suppress(AssertionError):  # the last one is not over yet
            server.send("step", ticks=10)  # a period of the bridges: what a busy machine lost is sent again
        s, place = dune.states[-1], truth.snapshot().state[truth.row(name)]["p_WB_W"]
        return bool(np.allclose((s.x, s.y, s.z), place, atol=0.1))

    until(lambda: up_to_date(again, "first") and up_to_date(second, "second"))  # it received the truth
    for dune, depth in ((again, 5.0), (second, 6.0)):
        assert dune.error is None
        last = dune.states[-150:]
        assert max(abs(s.z - depth) for s in last) < 0.3, [s.z for s in last[::15]]
        assert last[-1].u > 1.2 and last[-1].stream == pytest.approx([0.1, -0.05, 0.0], abs=1e-5)
    assert max(turned(s.psi, 1.0) for s in again.states[-150:]) < math.radians(5.0)
    for point in points:
        assert min(math.dist(point, (s.x, s.y)) for s in second.states) < 2.0
    shot = truth.snapshot()
    for dune, name in ((again, "first"), (second, "second")):
        true, s = shot.state[truth.row(name)], dune.states[-1]
        assert (s.x, s.y, s.z) == pytest.approx(true["p_WB_W"], abs=0.2)
        assert (s.phi, s.theta, s.psi) == pytest.approx(euler(true["q_WB"]), abs=0.02)
        assert (s.lat, s.lon) == pytest.approx(np.radians([41.18, -8.7]))
    said = bridges[0].end()
    assert said.count("a DUNE at") == 2 and "no data from DUNE" in said and "Traceback" not in said
    for why in ("truncated", "crc", "another sender", "another system", "unknown message", "no number"):
        assert f"was dropped: {why}\n" in said, said


@pytest.mark.system
def test_instruments_against_the_truth(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], bridges: list[Bridge], dunes: list[Dune]
) -> None:
    """A vehicle that hides its truth, with a mast for its antenna."""
    carried = ["ahrs", "imu", "dvl", "pressure", "gps"]
    place = {"gps": ' position="0 0 -2 m"'}
    sensors = "".join(f'<{s} rate="25 Hz" noise="0"{place.get(s, "")}/>' for s in carried)
    vehicle = '<vehicle name="first" model="lauv" position="0 0 1 m" client="optional" truth="none"><sensors>'
    world = WORLD.split("<fleet>")[0] + f"<fleet>{vehicle}{sensors}</sensors></vehicle></fleet>"
    path = config(world).path
    server = serve(path, "--speed", "1")
    emulators = launch("emulate", "all", path, "-s", server.name, stderr=subprocess.DEVNULL)
    try:
        dunes.append(d := Dune(0))
        bridges.append(b := Bridge(server, "first", d.port, "--sensors"))
        d.bridge = ("127.0.0.1", b.port)
        d.start()
        server.send("start")
        kinds = {253, 254, 256, 257, 259, 260, 262, 265}
        truth = SharedState(server.name)
        row = truth.row("first")

        def under_way() -> bool:
            d.ask(0.8, [0.05, 0.0, 0.0, 0.05])
            return set(d.received) >= kinds and truth.snapshot().state[row]["v_WB_B"][0] > 0.7

        until(under_way)
        d.ask(0.8, [0.05, 0.0, 0.0, 0.05])
        time.sleep(0.6)
        server.send("pause")
        time.sleep(0.2)
        shot = truth.snapshot("effort")
        true, change = shot.state[row], shot.tables["effort"]["acceleration"][row][:3]
    finally:
        emulators.terminate()
        emulators.wait(60)
    assert d.error is None

    def last(number: int, layout: str) -> tuple[float, ...]:
        return struct.unpack("<" + layout, d.received[number][-1])

    R = rotation(true["q_WB"])
    near: Callable[..., Any] = pytest.approx
    _, phi, theta, psi, _ = last(254, "5d")
    assert (phi, theta, psi) == near(euler(true["q_WB"]), abs=0.02)
    assert last(256, "4d")[1:] == near(true["w_WB_B"], abs=0.02)
    felt = change + np.cross(true["w_WB_B"], true["v_WB_B"]) - 9.81 * R[2]
    assert last(257, "4d")[1:] == near(felt, abs=0.15)
    valid, *over_ground = last(259, "B3d")
    assert valid == 7 and over_ground == near(true["v_WB_B"], abs=0.05) and over_ground[0] > 0.5
    valid, *through = last(260, "B3d")
    assert valid == 7 and through == near(true["v_FB_B"], abs=0.05)
    depth = float(true["p_WB_W"][2])
    assert last(262, "BHHf") == (1, 0, 0, near(40.0 - depth, abs=0.3))
    assert last(265, "f")[0] == near(depth, abs=0.05)
    validity, *_, lat, lon, height = struct.unpack_from("<HBHBBfddf", d.received[253][-1])
    north, east, _ = pymap3d.geodetic2ned(math.degrees(lat), math.degrees(lon), height, 41.18, -8.7, 0.0)
    assert validity == 0xBF and (north, east) == near(true["p_WB_W"][:2], abs=0.3)
    assert "Traceback" not in b.end()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--origin", "91,0"), "invalid origin '91,0'; write LATITUDE,LONGITUDE in degrees"),
        (("--dune", "nowhere"), "invalid address 'nowhere'; write PORT or HOST:PORT"),
        (("--system", "lauv"), "invalid system number 'lauv'; write a number such as 0x00D1 or 209"),
        (("--servo", "x"), "invalid output 'x'; write NUMBER=ACTUATOR"),
    ],
)
def test_mistakes(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(WaveSimError, match=message):
        command.main(["--vehicle", "first", "--port", "9", *options], standalone_mode=False)


def test_an_actuator_that_there_is_not() -> None:
    with pytest.raises(WaveSimError, match="the vehicle has no actuator 'propeler'; did you mean 'propeller'"):
        ImcActuators(
            {0: dataclasses.replace(THRUSTERS[0], actuator="propeler")},
            {},
            [ActuatorDescription(0, "propeller", 0, "N", -6, 12)],
        )
