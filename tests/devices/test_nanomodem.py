"""Virtual nano-modem: acknowledged messages, the system timer, and messages that leave at a given time."""

from __future__ import annotations

import pytest

from tests.devices.water import DELAY_S, SPEED, Water
from wavesim_devices.nanomodem import UNIT_S, NanoModemDevice
from wavesim_sdk.tables import SignalKind


class Modem:
    """A modem with its host."""

    def __init__(self, water: Water, address: int) -> None:
        self.node = water.node(address, preamble=0.105, turn_around=0.04)
        self.said = bytearray()
        self.device = NanoModemDevice(self.node, address, SPEED, self.said.extend)  # type: ignore[arg-type]
        self.node.device = self.device

    def read(self) -> bytes:
        said = bytes(self.said)
        self.said.clear()
        return said


@pytest.fixture
def pair() -> tuple[Water, Modem, Modem]:
    water = Water()
    return water, Modem(water, 3), Modem(water, 5)


def test_an_acknowledged_message(pair: tuple[Water, Modem, Modem]) -> None:
    water, a, b = pair
    a.device.receive(b"$M00505hel$o")
    assert a.read() == b"$M00505\r\n"
    water.advance(2.0)
    assert b.read() == b"#U05hel$o\r\n"
    assert a.read() == b"#R005T%05d\r\n" % round(DELAY_S / UNIT_S)
    assert water.sent[0][2]["length"] == pytest.approx(0.105 + (5 + 16) * 2 * 50 / 8000)
    water.lose = lambda s: s["kind"] == SignalKind.RANGE_REPLY
    a.device.receive(b"$M00502hi")
    water.advance(3.9)
    assert a.read() == b"$M00502\r\n" and b.read() == b"#U02hi\r\n"
    water.advance(0.2)
    assert a.read() == b"#TO\r\n"


def test_the_status_and_the_system_timer(pair: tuple[Water, Modem, Modem]) -> None:
    water, a, b = pair
    a.device.receive(b"$?$XTG")
    assert a.read() == b"#A003V21941\r\n#XTD00000000000000\r\n"
    b.device.receive(b"$XTE")
    water.advance(2.0)
    b.device.receive(b"$XTC")
    water.advance(1.5)
    b.device.receive(b"$XTG$XTQ")
    assert b.read() == b"#XTE00000000000000\r\n#XTE00000000000000\r\n#XTE00000001500000\r\nE\r\n"
    a.device.receive(b"$B02hi")
    water.advance(1.0)
    assert b.read() == b"#B00302hiT%014d\r\n" % ((1.5 + DELAY_S) * 1e6)
    b.device.receive(b"$XTD")
    a.device.receive(b"$U00502hi")
    water.advance(1.0)
    assert b.read() == b"#XTD00000002500000\r\n#U02hi\r\n"


def test_a_message_leaves_at_the_time_that_the_host_states(pair: tuple[Water, Modem, Modem]) -> None:
    water, a, b = pair
    water.advance(0.5)
    for part in (b"$M00502hiT0000000", b"2500000", b"$U00502ab"):
        a.device.receive(part)
    assert a.read() == b"$M00502\r\n$U00502\r\n"
    water.advance(5.0)
    assert [t for node, t, s in water.sent if node is a.node] == pytest.approx([0.5, 2.5])
    assert a.read().startswith(b"#R005T") and b.read() == b"#U02ab\r\n#U02hi\r\n"
    a.device.receive(b"$U00502abTwenty")
    assert a.read() == b"$U00502\r\n", "not a time"
