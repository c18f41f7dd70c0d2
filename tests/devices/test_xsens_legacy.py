"""Legacy messages of the virtual MTi: the start of DUNE's driver, all quantities, invalid modes and settings."""

from __future__ import annotations

import math
import struct

import pytest

from tests.devices.test_xsens import VALUES, Bench, read
from tests.sdk.test_devices import step
from wavesim_devices import xsens_legacy as legacy


def contents(bench: Bench, seconds: float) -> list[bytes]:
    """Contents of the legacy messages of some time, with values at 100 Hz."""
    bench.data.clear()
    for _ in range(round(seconds * 100.0)):
        bench.ticks += 1
        bench.sensor.step(step(bench.ticks / 100.0, **bench.values))
    messages = read(bytes(bench.data))
    assert {m for m, _ in messages} <= {legacy.MT_DATA}
    return [content for _, content in messages]


def choose(bench: Bench, mode: int, settings: int) -> None:
    assert bench.ask(0x30) == (0x31, b"")
    assert bench.ask(0xD2, struct.pack(">I", settings)) == (0xD3, b"")
    assert bench.ask(0xD0, struct.pack(">H", mode)) == (0xD1, b"")
    assert bench.ask(0x10) == (0x11, b"")


def test_the_start_of_dunes_driver() -> None:
    """Its commands byte for byte; then temperature, acceleration, rate of turn and angles at fixed places."""
    bench = Bench()
    for command, answer in (
        ("faff3000d1", "faff3100d0"),
        ("faff3000d1", "faff3100d0"),
        ("faffd20400000445e2", "faffd3002e"),
        ("faffd002000728", "faffd10030"),
        ("faffd60300000127", "faffd7002a"),
        ("faff1000f1", "faff1100f0"),
    ):
        bench.data.clear()
        bench.sensor.receive(bytes.fromhex(command))
        assert bytes(bench.data).hex() == answer
    found = contents(bench, 1.0)
    assert len(found) == 100 and {len(c) for c in found} == {42}
    temperature, *values = struct.unpack(">10f", found[-1][:40])
    assert temperature == 12.5
    assert values[:6] == pytest.approx([0.1, 0.2, 9.8, 0.01, -0.02, -0.03])
    assert values[8] == pytest.approx(90.0 - math.degrees(1.0)), "yaw in ENU"
    assert [struct.unpack(">H", c[40:])[0] for c in found] == list(range(100)), "sample counter"
    assert bench.sensor.errors == 0


def test_all_quantities() -> None:
    bench = Bench()
    choose(bench, legacy.MODES, legacy.NED | legacy.UTC_TIME)
    (content,) = contents(bench, 0.01)
    numbers = struct.unpack_from(">20f", content)
    assert numbers[:4] == pytest.approx([12.5, 0.1, 0.2, 9.8]) and numbers[7:10] == pytest.approx([0.5, 0.1, -1.0])
    assert math.hypot(*numbers[10:14]) == pytest.approx(1.0)
    assert numbers[14:17] == pytest.approx([41.18, -8.70, 1.25], rel=1e-6)
    assert numbers[17:20] == pytest.approx([2.0 * math.cos(math.radians(30.0)), 1.0, 0.0], abs=1e-6)
    assert content[80:81] == b"\x07" and struct.unpack(">IH6B", content[81:])[1:4] == (2026, 1, 1)
    del bench.values["gps"], bench.values["magnetometer"]
    (content,) = contents(bench, 0.01)
    numbers = struct.unpack_from(">20f", content)
    assert len(content) == 93 and not any((*numbers[7:10], *numbers[14:20])), "not measured"


def test_period_and_skip_factor() -> None:
    bench = Bench()
    choose(bench, legacy.TEMPERATURE, 0)
    assert bench.ask(0x30) == (0x31, b"") and bench.ask(0x04, struct.pack(">H", 2304)) == (0x05, b"")
    assert bench.ask(0x10) == (0x11, b"") and len(contents(bench, 1.0)) in (50, 51)
    assert bench.ask(0x30) == (0x31, b"") and bench.ask(0xD4, struct.pack(">H", 4)) == (0xD5, b"")
    assert bench.ask(0x10) == (0x11, b"") and len(contents(bench, 1.0)) in (10, 11)


def test_the_host_reads_its_settings_back() -> None:
    bench = Bench()
    choose(bench, 0x0807, 0x445)
    bench.ask(0x30)
    assert bench.ask(0xD0) == (0xD1, b"\x08\x07") and bench.ask(0xD2) == (0xD3, b"\0\0\x04\x45")
    assert bench.ask(0x04) == (0x05, struct.pack(">H", 1152)) and bench.ask(0xD4) == (0xD5, b"\0\0")
    configuration = bench.ask(0x0C)[1]
    assert len(configuration) == 118 and configuration[104:110] == b"\x08\x07\0\0\x04\x45"
    bench.values = dict(VALUES)
    assert bench.choose((0x2010, 100))[0] == 0xC1 and list(bench.run(0.1)[-1]) == [0x2010], "MTData2 again"


@pytest.mark.parametrize(
    ("command", "content"),
    [
        (0xD0, b"\x40\x00"),  # raw data
        (0xD0, b"\x00\x08"),  # analogue inputs
        (0xD0, b"\x07"),
        (0xD2, b"\x00\x00\x01\x00"),  # fixed-point numbers
        (0xD2, b"\x00\x00\x00\x08"),  # rotation matrix
        (0xD2, b"\x00"),
        (0x04, b"\x00\x00"),
        (0x04, b"\x00"),
        (0xD4, b"\x00"),
    ],
)
def test_invalid_settings_are_rejected(command: int, content: bytes) -> None:
    bench = Bench()
    choose(bench, legacy.TEMPERATURE, 0)
    bench.ask(0x30)
    assert bench.ask(command, content) == (0x42, b"\x21") and bench.sensor.errors == 1
    bench.ask(0x10)
    assert [len(c) for c in contents(bench, 0.01)] == [4]
