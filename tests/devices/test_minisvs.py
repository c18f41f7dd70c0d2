"""Virtual miniSVS: its lines, commands, air, noise."""

from __future__ import annotations

import pytest

from tests.sdk.test_devices import step
from wavesim_devices.minisvs import MiniSvs


class Bench:
    """The sensor in water of 1500.123 m/s, or in air. A step takes 50 ms."""

    def __init__(self) -> None:
        self.data, self.ticks, self.in_water = bytearray(), 0, True
        self.sensor = MiniSvs(self.data.extend, "sound_velocity")

    def run(self, seconds: float) -> bytes:
        self.data.clear()
        for _ in range(round(seconds * 20.0)):
            self.ticks += 1
            values = {"sound_velocity": [1500.1234]} if self.in_water else {}
            self.sensor.step(step(self.ticks / 20.0, **values))
        return bytes(self.data)

    def ask(self, command: bytes) -> bytes:
        self.data.clear()
        self.sensor.receive(command)
        return bytes(self.data)


def test_it_measures_once_per_second() -> None:
    bench = Bench()
    bench.run(0.5)
    assert bench.run(3.0) == 3 * b" 1500123\r\n"
    bench.in_water = False
    assert bench.run(1.0) == b" 0000000\r\n"


def test_the_start_of_dunes_driver() -> None:
    bench = Bench()
    bench.run(1.0)
    assert bench.ask(b"#") == b">" and bench.run(3.0) == b""
    assert bench.ask(b"M1\r\n") == b"" and bench.run(3.0).count(b"\n") in (3, 4)
    assert bench.sensor.errors == 0


@pytest.mark.parametrize(("command", "rate"), [(b"M1\r", 1), (b"m4\n", 4), (b"M8\r\n", 8)])
def test_rates(command: bytes, rate: int) -> None:
    bench = Bench()
    bench.run(1.0)
    bench.ask(command)
    bench.run(1.0)
    assert bench.run(4.0).count(b"\r\n") == 4 * rate


def test_single_measurements_and_errors() -> None:
    bench = Bench()
    bench.run(1.0)
    assert bench.ask(b"#S\r\n") == b"> 1500123\r\n" and bench.ask(b"#M2#") == b">>"
    assert bench.run(2.0) == b"", "the second interrupt applies"
    assert bench.ask(b"M3\r\n\xff\xfe\r\n") == b"" and bench.sensor.errors == 2
    bench.sensor.receive(b"x" * 300)
    assert bench.sensor.errors == 3
