"""Virtual SeaTrac beacons: their messages, and exchanges between three of them."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.water import DELAY_S, SPEED, Node, Water
from wavesim_devices.seatrac import messages as m
from wavesim_devices.seatrac.device import REBOOT_S, SeaTracDevice
from wavesim_devices.seatrac.exchanges import AcousticMessage, Protocol
from wavesim_devices.seatrac.messages import AcousticFix, BeaconSensors, Command, MessageType
from wavesim_sdk.tables import SignalKind

RANGE_DM = round(10 * DELAY_S * SPEED)


class Beacon:
    """A beacon with its host."""

    def __init__(self, water: Water, number: int, model: str = "X110") -> None:
        direction = (math.radians(30.0), math.radians(10.0)) if model == "X150" else None
        self.node: Node = water.node(number, turn_around=0.01, preamble=0.4, direction=direction)
        self.said = bytearray()
        self.device = SeaTracDevice(self.node, self.said.extend, number, model, SPEED, {})  # type: ignore[arg-type]
        self.node.device = self.device
        assert self.said.startswith(b"Blueprint")
        self.said.clear()

    def ask(self, command: int, payload: bytes = b"") -> tuple[int, bytes]:
        """The answer to a command, which comes at once."""
        self.device.receive(m.frame(command, payload, b"#"))
        return self.read(False).pop()

    def read(self, events: bool = True) -> list[tuple[int, bytes]]:
        """The messages since the last call; among events there is no status."""
        lines = [line for line in self.said.split(b"\r\n") if line.startswith(b"$")]
        self.said.clear()
        found = [m.parse("#" + line[1:].decode()) for line in lines]
        assert None not in found
        return [f for f in found if f is not None and not (events and f[0] == Command.STATUS)]


@pytest.fixture
def sea() -> tuple[Water, Beacon, Beacon]:
    water = Water()
    return water, Beacon(water, 1, "X150"), Beacon(water, 2)


@pytest.mark.parametrize("text", ["#0281C1", "#15C1CF", "#1001CC", "#18000A", "#4001028185"])
def test_vectors(text: str) -> None:
    command, payload = bytes.fromhex(text[1:])[0], bytes.fromhex(text[1:])[1:-2]
    assert m.frame(command, payload, b"#") == text.encode() + b"\r\n"
    assert m.parse(text.lower()) == (command, payload)


def test_system_and_status(sea: tuple[Water, Beacon, Beacon]) -> None:
    water, head, beacon = sea
    assert head.ask(Command.ALIVE) == (Command.ALIVE, bytes(4))
    info = head.ask(Command.INFO)[1]
    assert len(info) == 39 and struct.unpack_from("<H", info, 5) == (795,)
    assert struct.unpack_from("<H", beacon.ask(Command.INFO)[1], 5) == (843,)
    water.advance(3.5)
    messages = head.read(False)
    assert [c for c, _ in messages] == [Command.STATUS] * 4, "once a second"
    assert [len(p) for _, p in messages] == [9 + 14 + 6] * 4 and messages[1][1][:2] == b"\x03\xf2"
    status = head.ask(Command.STATUS, b"\x3f")[1]
    assert len(status) == 9 + 14 + 6 + 7 + 12 + 18 + 36 and struct.unpack_from("<H", status, 21) == (15000,)
    assert head.ask(Command.STATUS_CONFIG_SET, b"\x01\x04") == (Command.STATUS_CONFIG_SET, b"\x00")
    assert head.ask(Command.STATUS_CONFIG_GET)[1] == b"\x01\x04"
    water.advance(1.0)
    assert len(head.read(False)) in (9, 10)
    assert head.ask(Command.STATUS_CONFIG_SET, b"\x00\x00")[1] == b"\x00"
    water.advance(2.0)
    assert head.read(False) == []


def test_settings_survive_only_if_they_are_saved(sea: tuple[Water, Beacon, Beacon]) -> None:
    water, head, _ = sea
    block = bytearray(head.ask(Command.SETTINGS_GET)[1])
    assert len(block) == 110 and block[96] == 1 and struct.unpack_from("<HH", block, 97) == (1000, 10)
    block[97:99] = struct.pack("<H", 500)
    assert head.ask(Command.SETTINGS_SET, bytes(block)) == (Command.SETTINGS_SET, b"\x00")
    assert head.ask(Command.SETTINGS_GET)[1] == block
    assert head.ask(Command.REBOOT, b"\x95\x6a") == (Command.REBOOT, b"\x00")
    head.device.receive(m.frame(Command.ALIVE, b"", b"#"))
    water.advance(REBOOT_S - 0.1)
    assert not head.said, "it restarts"
    water.advance(0.2)
    assert head.said.startswith(b"Blueprint Subsea SeaTrac X150\r\n")
    assert head.ask(Command.SETTINGS_GET)[1][97:99] == struct.pack("<H", 1000)
    for command in (Command.SETTINGS_SAVE, Command.SETTINGS_LOAD, Command.SETTINGS_RESET):
        assert head.ask(command) == (command, b"\x00")
    for offset, value in ((96, 2), (0, 9), (99, 5)):
        wrong = bytearray(block)
        wrong[offset] = value
        assert head.ask(Command.SETTINGS_SET, bytes(wrong))[1] == bytes((m.INVALID,))
    assert head.ask(Command.SETTINGS_SET, b"1")[1] == bytes((m.MISSING,))


def test_ping_with_usbl(sea: tuple[Water, Beacon, Beacon]) -> None:
    water, head, beacon = sea
    assert head.ask(Command.PING_SEND, b"\x02\x04") == (Command.PING_SEND, b"\x00\x02")
    assert head.ask(Command.PING_SEND, b"\x02\x04") == (Command.PING_SEND, b"\x30\x02"), "one at a time"
    assert head.ask(Command.TRANSCEIVER_STATUS)[1] == bytes((m.REQUESTING,))
    water.advance(3.0)
    ((command, fix),) = head.read()
    assert command == Command.PING_RESPONSE and len(fix) == 16 + 10 + 15 + 6
    assert fix[:4] == bytes((1, 2, 0x07, MessageType.RESPONSE_U))
    assert struct.unpack_from("<IiH", fix, 16) == (6400, round(DELAY_S * 1e7), RANGE_DM)
    assert struct.unpack_from("<B4h3h", fix, 26)[5:] == (300, -100, 0)
    east, north, depth = struct.unpack_from("<3h", fix, 41)
    flat = RANGE_DM * math.cos(math.radians(10.0))
    assert (east, north) == (round(flat * 0.5), round(flat * math.cos(math.radians(30.0))))
    assert depth == round(RANGE_DM * math.sin(math.radians(10.0)))
    assert [c for c, _ in beacon.read()] == [Command.PING_REQUEST]
    beacon.ask(Command.PING_SEND, b"\x01\x02")
    water.advance(3.0)
    ((command, fix),) = beacon.read()
    assert command == Command.PING_RESPONSE and fix[2:4] == b"\x01\x03" and len(fix) == 26, "an X110 has no USBL"


def test_an_enhanced_ping_uses_the_depth_of_the_other_beacon(sea: tuple[Water, Beacon, Beacon]) -> None:
    water, head, beacon = sea
    beacon.device._own.depth, head.device._own.depth = 40.3, 10.0
    head.ask(Command.PING_SEND, b"\x02\x06")
    water.advance(5.0)
    ((command, fix),) = head.read()
    assert command == Command.PING_RESPONSE and fix[2:4] == b"\x0f\x07"
    east, north, depth = struct.unpack_from("<3h", fix, 41)
    assert depth == 405 and math.hypot(east, north) == pytest.approx(math.sqrt(3000.0**2 - 305.0**2), abs=1.0)


@pytest.mark.parametrize(
    ("command", "payload", "error"),
    [
        (Command.PING_SEND, b"\x02\x04", Command.PING_ERROR),
        (Command.ECHO_SEND, b"\x02\x02\x01x", Command.ECHO_ERROR),
        (Command.NAV_SEND, b"\x02\x01", Command.NAV_ERROR),
        (Command.DATA_SEND, b"\x02\x02\x01x", Command.DATA_ERROR),
    ],
)
def test_a_dead_beacon_is_an_error_after_the_time_out(
    sea: tuple[Water, Beacon, Beacon], command: int, payload: bytes, error: int
) -> None:
    water, head, _ = sea
    water.lose = lambda s: s["kind"] == SignalKind.RANGE_REPLY
    head.ask(command, payload)
    water.advance(1.3)
    assert head.read() == []
    water.advance(10.0)
    assert head.read() == [(error, bytes((m.TIMEOUT, 2)))]
    head.node.refusing = "the transducer was recharging"
    assert head.ask(command, payload)[1] == b"\x00\x02"
    water.advance(0.1)
    assert head.read() == [(error, bytes((m.FAILED, 2)))]


def test_data_both_ways(sea: tuple[Water, Beacon, Beacon]) -> None:
    water, head, beacon = sea
    third = Beacon(water, 3)
    there, back = bytes(range(31)), bytes(range(100, 131))
    assert beacon.ask(Command.DATA_QUEUE_SET, bytes((1, 31)) + back)[1] == bytes((0, 1, 31))
    assert beacon.ask(Command.DATA_QUEUE_STATUS, b"\x01")[1] == bytes((1, 31)) + back
    head.ask(Command.DATA_SEND, bytes((2, MessageType.REQUEST_U, 31)) + there)
    water.advance(10.0)
    ((command, received),) = beacon.read()
    assert command == Command.DATA_RECEIVE and received[-34:] == b"\x00\x1f" + there + b"\x01"
    ((command, received),) = head.read()
    assert command == Command.DATA_RECEIVE and received[-34:] == b"\x01\x1f" + back + b"\x01"
    assert received[2] == 0x07 and struct.unpack_from("<H", received, 24) == (RANGE_DM,)
    assert beacon.ask(Command.DATA_QUEUE_STATUS, b"\x01")[1] == b"\x01\x00"
    packet = water.sent[0][2]
    assert packet["length"] == pytest.approx(0.4 + 31 * 0.08)
    assert third.read() == []
    head.ask(Command.DATA_SEND, b"\x00\x01\x02hi")
    water.advance(3.0)
    for other in (beacon, third):
        ((command, received),) = other.read()
        assert command == Command.DATA_RECEIVE and received[:4] == b"\x00\x01\x00\x01" and received[-3:] == b"hi\x01"
    assert head.read() == [] and head.ask(Command.TRANSCEIVER_STATUS)[1] == bytes((m.IDLE,))


def test_echo_and_nav(sea: tuple[Water, Beacon, Beacon]) -> None:
    water, head, beacon = sea
    head.ask(Command.ECHO_SEND, b"\x02\x04\x05hello" + bytes(25))  # the driver sends its whole buffer
    water.advance(8.0)
    assert [(c, p[-6:]) for c, p in beacon.read()] == [(Command.ECHO_REQUEST, b"\x05hello")]
    assert [(c, p[-6:]) for c, p in head.read()] == [(Command.ECHO_RESPONSE, b"\x05hello")]
    beacon.device._own = BeaconSensors(depth=12.3, temperature=8.7, roll=0.1, pitch=-0.1, yaw=math.pi / 2)
    beacon.ask(Command.NAV_QUEUE_SET, b"\x01\x03abc")
    head.ask(Command.NAV_SEND, b"\x02\x8f\x02up")
    water.advance(8.0)
    assert [(c, p[-5:]) for c, p in beacon.read()] == [(Command.NAV_REQUEST, b"\x8f\x02up\x01"[-5:])]
    ((command, received),) = head.read()
    fields = struct.pack("<BiHh3h", 0x8F, 123, 12000, 87, 900, -57, 57) + b"\x03abc\x01"
    assert command == Command.NAV_RESPONSE and received.endswith(fields) and received[2] == 0x0F


def test_mistakes(sea: tuple[Water, Beacon, Beacon]) -> None:
    _, head, _ = sea
    assert head.ask(Command.PING_SEND, b"\x02") == (Command.PING_SEND, bytes((m.MISSING, 2)))
    for payload in (b"\x10\x02", b"\x02\x03", b"\x02\x09", b"\x00\x02"):
        assert head.ask(Command.PING_SEND, payload)[1][0] == m.INVALID
    assert head.ask(Command.DATA_SEND, b"\x02\x02\x05abc")[1] == bytes((m.MISSING, 2))
    assert head.ask(Command.DATA_SEND, b"\x02\x02\x20" + bytes(32))[1] == bytes((m.INVALID, 2))
    assert head.ask(Command.NAV_SEND, b"\x02\x40")[1][0] == m.INVALID
    assert head.ask(0x70)[1] == b"\x01" and head.ask(Command.ANALYSE)[1] == b"\x01"
    assert head.ask(Command.REBOOT, b"\x00\x00")[1] == bytes((m.INVALID,))
    before = head.device.errors
    for line in (b"#FF0000\r\n", b"#028181\n\r", b"#02\r\n", b"#xx\r\n", b"noise\r\n"):
        head.device.receive(line)
    head.device.receive(m.frame(0x99, b"", b"#"))
    assert head.read() == [] and head.device.errors == before + 6, "as silent as the real one"


def test_other_makes_are_not_understood(sea: tuple[Water, Beacon, Beacon]) -> None:
    water, head, beacon = sea
    water.node(9).send(b"WH a Micro-Modem")
    water.advance(2.0)
    assert head.read() == beacon.read() == []
    message = AcousticMessage(Protocol.NAV, MessageType.REQUEST_X, 1, 2, b"\x01")
    assert AcousticMessage.decode(message.encode()) == message
    assert AcousticMessage.decode(b"ST\x09\x00\x01\x02") is AcousticMessage.decode(b"ST\x00\x00\x00\x02") is None


def test_position_in_a_turned_body() -> None:
    """Dead ahead of a beacon that points east and is pitched down: to the east, and deeper."""
    own = BeaconSensors(depth=5.0, pitch=-0.5, yaw=math.pi / 2)
    east, north, depth = AcousticFix(1, 2, MessageType.RESPONSE_U, 100.0).position(own, 100.0, 0.0, 0.0)
    assert (east, north, depth) == pytest.approx((100 * math.cos(0.5), 0.0, 5.0 + 100 * math.sin(0.5)))


COMMANDS = [m.frame(c, bytes(range(1, n)), b"#") for c in range(120) for n in (1, 3, 5, 120)]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40) | st.sampled_from(COMMANDS)))
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    beacon = Beacon(Water(), 1)
    for part in parts:
        beacon.device.receive(part)
    beacon.device.receive(b"x" * 20000 + b"\r\n")
    beacon.said.clear()
    if beacon.device._off_until < 0.0:
        assert beacon.ask(Command.ALIVE) == (Command.ALIVE, bytes(4))
