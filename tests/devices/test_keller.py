"""Virtual Keller transmitter: vectors of the Keller bus, channels, exceptions, zero, echo, noise."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sdk.test_devices import step
from wavesim_devices.keller import KellerSplitter, KellerTransmitter, crc16

SENSORS = {"pressure": "pressure", "ctd": "ctd"}
CTD = [20.0, 12.5, 4.2, 35.0]


class Bench:
    def __init__(self, address: int = 1, variant: str = "PA", *, echoes: bool = False) -> None:
        self.data = bytearray()
        self.sensor = KellerTransmitter(self.data.extend, dict(SENSORS), address, variant, echoes=echoes)
        self.at(20.0)

    def at(self, dbar: float) -> None:
        self.sensor.step(step(1.0, pressure=[dbar, dbar - 10.0], ctd=CTD))

    def ask(self, *body: int) -> bytes:
        """The reply to a command, without its CRC, which must be right."""
        self.data.clear()
        self.sensor.receive(bytes(body) + crc16(bytes(body)))
        reply = bytes(self.data)
        assert not reply or crc16(reply[:-2]) == reply[-2:]
        return reply[:-2]


def test_vectors() -> None:
    """Function 48 to address 250, as in the description of the bus; and the start of DUNE's driver."""
    assert crc16(bytes((250, 48))) == bytes((4, 67))
    assert crc16(bytes.fromhex("fa4901")).hex() == "a1a7" and crc16(bytes.fromhex("fa45")).hex() == "e382"


def test_the_transmitter_must_be_initialised_first() -> None:
    bench = Bench()
    assert bench.ask(250, 73, 1) == bytes((250, 73 | 128, 32)) and bench.sensor.errors == 1
    assert bench.ask(250, 48) == bytes((250, 48, 5, 20, 12, 50, 10, 0))
    assert bench.ask(250, 48)[-1] == 1, "it was initialised before"
    assert bench.ask(250, 69) == bytes((250, 69)) + struct.pack(">I", 123456)


@pytest.mark.parametrize(("variant", "bar"), [("PA", 1.0), ("PAA", 2.0)])
def test_pressure_and_temperature(variant: str, bar: float) -> None:
    bench = Bench(7, variant)
    bench.ask(7, 48)
    address, function, value, status = struct.unpack(">BBfB", bench.ask(7, 73, 1))
    assert (address, function, status) == (7, 73, 0) and value == pytest.approx(bar)
    assert (
        struct.unpack(">f", bench.ask(250, 73, 4)[2:6])[0] == struct.unpack(">f", bench.ask(250, 73, 3)[2:6])[0] == 12.5
    )
    assert struct.unpack(">i", bench.ask(7, 74, 1)[2:6])[0] == round(bar * 1e5)
    assert struct.unpack(">i", bench.ask(7, 74, 4)[2:6])[0] == 1250


def test_the_zero() -> None:
    bench = Bench()
    bench.ask(1, 48)
    assert bench.ask(1, 95, 0) == bytes((1, 95, 0))
    assert struct.unpack(">f", bench.ask(1, 73, 1)[2:6])[0] == 0.0
    bench.at(25.0)
    assert struct.unpack(">f", bench.ask(1, 73, 1)[2:6])[0] == pytest.approx(0.5)
    assert bench.ask(1, 95, 1) == bytes((1, 95, 0)), "the zero of the factory"
    assert struct.unpack(">f", bench.ask(1, 73, 1)[2:6])[0] == pytest.approx(1.5)


def test_without_a_value_the_pressure_is_invalid() -> None:
    bench = Bench()
    bench.ask(1, 48)
    bench.sensor.step(step(2.0))
    value, status = struct.unpack(">fB", bench.ask(1, 73, 1)[2:])
    assert math.isnan(value) and status == 2
    assert struct.unpack(">iB", bench.ask(1, 74, 1)[2:]) == (0, 2)
    bench.ask(1, 95, 0)
    bench.at(20.0)
    assert struct.unpack(">f", bench.ask(1, 73, 1)[2:6])[0] == pytest.approx(1.0), "no zero without a pressure"


def test_exceptions_and_silence() -> None:
    bench = Bench()
    bench.ask(1, 48)
    assert bench.ask(1, 66) == bytes((1, 66 | 128, 1)) and bench.ask(1, 73, 9) == bytes((1, 73 | 128, 2))
    assert bench.ask(1, 95, 7) == bytes((1, 95 | 128, 2)) and bench.sensor.errors == 3
    assert bench.ask(2, 48) == b"", "another transmitter"
    bench.data.clear()
    bench.sensor.receive(bytes((1, 73, 1, 0, 0)))
    assert not bench.data, "a wrong CRC has no reply"
    assert bench.ask(1, 69)[1] == 69 and bench.sensor.errors > 3


def test_the_echo_of_a_two_wire_line() -> None:
    bench = Bench(echoes=True)
    command = bytes((250, 48)) + crc16(bytes((250, 48)))
    bench.sensor.receive(command)
    assert bytes(bench.data[:4]) == command and len(bench.data) == 14


@given(st.binary(max_size=60), st.data())
def test_a_command_is_found_after_noise(noise: bytes, data: st.DataObject) -> None:
    splitter, command = KellerSplitter(), bytes((250, 73, 1)) + crc16(bytes((250, 73, 1)))
    stream = noise + command + bytes(8)
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert (250, 73, b"\x01") in found
