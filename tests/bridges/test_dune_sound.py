"""Modem, long baseline and operators of a vehicle that DUNE controls."""

from __future__ import annotations

import asyncio
import math
import socket
import struct
import subprocess
import time
from collections.abc import Callable

import numpy as np
import pymap3d
import pytest

from tests.bridges.dune import ENTITIES, Bridge, Dune, beacons, opened, packet, parameters, text, texts, until
from tests.conftest import Server
from tests.nursery import launch
from wavesim_bridges import dune, imc
from wavesim_bridges.core import BridgedVehicle, BridgeOptions
from wavesim_bridges.dune import ImcSocket, command
from wavesim_bridges.dune_acoustics import DuneAcoustics
from wavesim_bridges.dune_operator import OperatorCommands
from wavesim_bridges.dune_vehicle import ReferencePoint
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Step
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frames import euler
from wavesim_sdk.wire.state import State
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.xdist_group("dune")

MODEM = '<transducer listen_low="20 kHz" listen_high="32 kHz" threshold="90 dB" recharge="0 s"><modem address="{}"/></transducer>'
WORLD = f"""<time step="4 ms"/><world latitude="41.18 deg" longitude="-8.7 deg"><bed depth="40 m"/></world>
<network><grant to="first" role="pilot" rights="pose fault"/></network><fleet>
<vehicle name="first" model="lauv" position="0 0 5 m" client="optional"><sensors><leak rate="10 Hz"/></sensors>
{MODEM.format(1)}</vehicle>
<vehicle name="second" model="lauv" position="30 40 5 m" client="optional">{MODEM.format(2)}</vehicle>
<buoy name="buoy" model="buoy" position="60 -80 0 m"><transducer position="0 0 5 m" threshold="90 dB" query="22 kHz" reply="28 kHz"/>
</buoy></fleet>"""
NAMES = ["--modem", "lauv-1=1", "--modem", "lauv-2=2", "--origin", "41.18,-8.7"]
STATUS = ["done", "failed", "canceled", "busy", "invalid address", "in progress", "unsupported", "invalid size"]


def frame(seq: int, to: str, data: bytes, flags: int = 0) -> bytes:
    return struct.pack("<H", seq) + text(to) + struct.pack("<BH", flags, len(data)) + data


def statuses(dune: Dune, seq: int) -> list[str]:
    found = [struct.unpack_from("<HB", payload) for payload in dune.received.get(816, [])]
    return [STATUS[value] for s, value in found if s == seq]


@pytest.mark.system
def test_sound_and_operators(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    path = config(WORLD).path
    server = serve(path, "--speed", "2")
    emulators = launch("emulate", "leak", path, "-s", server.name, stderr=subprocess.DEVNULL)
    try:
        with (
            Dune(0) as first,
            Dune(0, source=0x15) as second,
            Bridge(
                server, "first", first.port, *NAMES, "--name", "lauv-1", "--transponder", "benthos1=22000,28000"
            ) as a,
            Bridge(server, "second", second.port, *NAMES, "--name", "lauv-2", "--system", "0x15") as b,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as neptus,
        ):
            neptus.bind(("127.0.0.1", 0))
            neptus.settimeout(5.0)
            for dune, bridge in ((first, a), (second, b)):
                dune.bridge = ("127.0.0.1", bridge.port)
                dune.start()
                dune.say(150)
            server.send("start")
            for bridge in (a, b):
                bridge.wait("transmits and receives sound through its transducer")
            _packets(first, second)
            _baseline(first)
            _operator(first, neptus, server)
            assert first.error is None and second.error is None, (first.error, second.error)
            said = a.end()
        assert "Traceback" not in said and "the servo of" in said and "refused" not in said, said
        assert "was dropped: invalid position\n" in said and "was dropped: no such parameter\n" in said
    finally:
        emulators.terminate()
        emulators.wait(60)


def _packets(first: Dune, second: Dune) -> None:
    """Both ways, to one and to all, with a range as acknowledgement; an invalid request gets an error."""
    first.say(814, frame(1, "lauv-2", b"hello\0\xff"))
    until(lambda: statuses(first, 1) == ["in progress", "done"])
    until(lambda: 815 in second.received)
    assert second.received[815] == [text("lauv-1") + text("lauv-2") + b"\0\7\0hello\0\xff"]
    second.say(814, frame(9, "broadcast", b"all"))
    until(lambda: 815 in first.received)
    assert first.received[815] == [text("lauv-2") + text("broadcast") + b"\0\3\0all"]
    first.say(814, frame(2, "lauv-2", b"x", flags=1))
    first.say(814, frame(3, "lauv-2", b"y"))
    until(lambda: statuses(first, 2) == ["in progress", "done"])
    assert statuses(first, 3) == ["busy"]
    first.say(818, struct.pack("<H", 4) + text("lauv-2") + struct.pack("<f", math.nan))
    until(lambda: statuses(first, 4) == ["in progress", "done"])
    one, two = first.states[-1], second.states[-1]
    apart = math.dist((one.x, one.y, one.z), (two.x, two.y, two.z))
    for payload, seq in zip(first.received[817], (2, 4), strict=True):
        assert struct.unpack_from("<H", payload)[0] == seq and texts(payload, 2, 1) == ("lauv-2",)
        assert struct.unpack("<f", payload[-4:])[0] == pytest.approx(apart, abs=0.5)
    for seq, to, data in ((5, "lauv-7", b"x"), (6, "lauv-1", b"x"), (7, "lauv-2", bytes(257))):
        first.say(814, frame(seq, to, data))
    until(
        lambda: [statuses(first, k) for k in (5, 6, 7)] == [["invalid address"], ["invalid address"], ["invalid size"]]
    )
    assert first.entities[815] == {ENTITIES["Acoustic Modem"]}


def _baseline(first: Dune) -> None:
    """A modem and a transponder as beacons, one after the other; an unknown third one."""
    first.say(804, parameters("LBL", Ping_Delay="0.5"))
    first.say(203, beacons("lauv-2", "absent", "benthos1"))
    until(lambda: {payload[0] for payload in first.received.get(200, [])} == {0, 2} and len(first.received[200]) > 3)
    first.say(804, parameters("LBL", Active="false"))
    assert {p[0]: pytest.approx(struct.unpack_from("<f", p, 1)[0], abs=0.7) for p in first.received[200]} == {
        0: 50.0,
        2: 100.0,
    }
    assert first.entities[200] == {ENTITIES["LBL"]}
    first.say(203, beacons(op=1))
    until(lambda: 203 in first.received)
    assert first.received[203] == [beacons("lauv-2", "absent", "benthos1", op=2)]


def _operator(first: Dune, neptus: socket.socket, server: Server) -> None:
    """From another system: leaks, a manual fix, a failing servo; it receives the position of the vehicle."""

    def said(number: int, payload: bytes = b"") -> None:
        neptus.sendto(packet(number, payload, source=0x4001), first.bridge)

    def heard(number: int) -> bytes:
        while True:
            found, source, payload = opened(neptus.recv(4096))
            assert source == first.source
            if found == number:
                return payload

    def leaks() -> set[int]:
        return {payload[0] for payload in first.received.get(1, [])}

    truth = SharedState(server.name)
    row = truth.row("first")
    first.say(150, source=0x4002)  # as DUNE passes an operator's on: it is no operator, and must not hear where it is
    said(150)
    assert struct.unpack_from("<dd", heard(350)) == pytest.approx(np.radians([41.18, -8.7]))
    until(lambda: leaks() == {1})
    said(51, b"\1" + text("Leak Sensor - Tail"))
    until(lambda: leaks() == {1, 4})
    assert first.entities[1] == {44, 45}
    said(51, b"\0" + text(""))
    until(lambda: first.received[1][-1][0] == first.received[1][-2][0] == 1)

    place = pymap3d.enu2geodetic(200.0, 100.0, 0.0, 41.18, -8.7, 0.0)[:2]

    def fix(latitude: float, source: int = 0x4001) -> bytes:
        payload = struct.pack(
            "<HBHBBfddfBffffff", 4, 3, 2026, 1, 1, 0.0, latitude, math.radians(place[1]), 0, 9, 1.0, 0, 1, 1, 1, 1
        )
        return packet(253, payload, source)

    for data in (fix(math.nan), fix(0.0), fix(0.3, source=first.source), fix(math.radians(place[0]))):
        neptus.sendto(data, first.bridge)
    until(lambda: abs(truth.snapshot().state[row]["p_WB_W"][1] - 200.0) < 2.0)
    until(lambda: first.states[-1].lat == pytest.approx(math.radians(place[0]), abs=1e-9))
    state, true = first.states[-1], truth.snapshot().state[row]
    assert (state.x, state.y) == pytest.approx((0.0, 0.0), abs=1.0), (
        "states count from the fix, as with DUNE's own physics"
    )
    assert true["p_WB_W"][:2] == pytest.approx((100.0, 200.0), abs=1.0) and euler(true["q_WB"])[2] == pytest.approx(
        1.0, abs=0.2
    )

    said(804, parameters("Servos", Fault_Time="0", Generate_Faults="true"))
    assert heard(802) == parameters("Servos", Generate_Faults="true", Fault_Time="0")
    said(804, parameters("Servos", Nothing="0"))
    deadline = time.monotonic() + 60.0
    while True:
        first.ask(0.0, [0.2] * 4)
        actual = np.abs(truth.table("actuation").snapshot()[1]["actual"][row][1:5])
        if np.sum(actual > 0.15) == 3 and np.sum(actual < 0.05) == 1:
            break
        assert time.monotonic() < deadline, actual
        time.sleep(0.05)
    assert not {150, 350, 500} & first.received.keys(), "DUNE hears nothing of what operators hear"


class Transducer:
    """What was asked of it, by request."""

    sensors = ()

    def __init__(self) -> None:
        self.asked: list[float] = []

    def ping(self, frequency: float) -> int:
        self.asked.append(frequency)
        return len(self.asked)


def at(seconds: float) -> Step:
    return Step(State(0, round(seconds * 1e9)))


def test_a_server_that_starts_anew_is_no_reason_to_be_silent() -> None:
    """Its time begins at 0 again: beacons are asked as before, and a fault comes when it was due."""
    sound, transducer = (
        DuneAcoustics(BridgeOptions("auv", ("127.0.0.1", 9), 0.04), "auv", {}, {"b": (2e4, 2.5e4)}, lambda _: None),
        Transducer(),
    )
    sound.configure([imc.LblBeacon("b", 0.0, 0.0, 0.0, 0, 0, 0)])
    for seconds in (500.0, 0.04):
        sound.advance(transducer, at(seconds))  # type: ignore[arg-type]  # all that is asked of a broker here
        sound._pending = None  # its session was lost
    assert transducer.asked == [2e4, 2e4]
    operator = OperatorCommands(
        lambda _: None, ReferencePoint(WorldOrigin(0.0, 0.0)), ["fin"], {}, None, lambda *_: None, 1
    )
    frozen: list[str] = []
    transducer.fault = lambda part, *_: frozen.append(part) or 1  # type: ignore[attr-defined]
    operator.advance(transducer, at(500.0))  # type: ignore[arg-type]
    values = tuple(imc.EntityParameter(*p) for p in (("Fault Time", "5"), ("Generate Faults", "true")))
    operator.handle(imc.SetEntityParameters("Servos", values), lambda _: None)
    for seconds in (504.0, 0.0, 0.9):
        operator.advance(transducer, at(seconds))  # type: ignore[arg-type]
    assert frozen == []
    operator.advance(transducer, at(1.0))  # type: ignore[arg-type]
    assert frozen == ["fin"]


async def test_a_transducer_that_is_lost_holds_up_no_end() -> None:
    class Lost:
        async def run(self) -> None:
            await asyncio.sleep(3600.0)

    port = ImcSocket(BridgedVehicle(BridgeOptions("auv", ("127.0.0.1", 9), 0.04)), ("127.0.0.1", 9), 1, {})
    port.sound = Lost()  # type: ignore[assignment]
    bridge = dune.DuneBridge(port, "auv", ({}, {}), ReferencePoint(WorldOrigin(0.0, 0.0)), False, [])

    async def fly() -> None:
        bridge._vehicle_present.set()
        await asyncio.sleep(0.05)

    bridge._fly = fly  # type: ignore[method-assign]
    async with asyncio.timeout(30.0):
        await bridge.run(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--modem", "a=0"), "invalid modem 'a=0'; write NAME=ADDRESS"),
        (("--modem", "other=2"), "the vehicle's own modem is missing"),
        (("--transponder", "a=26000"), "invalid transponder 'a=26000'; write NAME=QUERY,REPLY"),
        (
            ("--leak", "Nose=attic"),
            "invalid leak sensor 'Nose=attic'; write LABEL=COMPARTMENT, where COMPARTMENT is one of bow",
        ),
        (("--entity", "Depht=x"), "invalid entity 'Depht=x'; write MESSAGE=LABEL, where MESSAGE"),
    ],
)
def test_mistakes(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(WaveSimError, match=message):
        command.main(["--vehicle", "first", "--port", "9", *options], standalone_mode=False)
