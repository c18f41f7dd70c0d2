"""Virtual 3DM-GX3: replies against a reader that uses only the protocol, continuous mode, EEPROM, noise."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sdk.test_devices import step
from wavesim_devices.microstrain import GRAVITY, QUANTITIES, TYPES, Microstrain, MicrostrainSplitter

SENSORS = {t: t for t in TYPES}
VALUES: dict[str, list[float]] = {
    "ahrs": [0.1, -0.2, 1.0, 0.0, 0.0, 0.0],
    "imu": [0.1, -0.2, -GRAVITY, 0.01, 0.02, 0.03],
    "magnetometer": [2.45e-5, -4.9e-6, 4.0e-5],
}
#: length of each reply in the description of the protocol
LENGTHS = {0xC2: 31, 0xC5: 43, 0xC8: 67, 0xCB: 43, 0xCC: 79, 0xCE: 19, 0xCF: 31, 0xDF: 23}


class Bench:
    def __init__(self, declination: float = 0.0) -> None:
        self.data, self.ticks, self.values = bytearray(), 0, dict(VALUES)
        self.sensor = Microstrain(self.data.extend, SENSORS, declination)
        self.run(1)

    def run(self, count: int) -> bytes:
        """What it sends during some values, 50 per second."""
        self.data.clear()
        for _ in range(count):
            self.ticks += 1
            self.sensor.step(step(self.ticks / 50.0, **self.values))
        return bytes(self.data)

    def ask(self, command: bytes) -> bytes:
        """The reply without its check sum, which must be right."""
        self.data.clear()
        self.sensor.receive(command)
        reply = bytes(self.data)
        if reply:
            assert reply[0] == command[0] and sum(reply[:-2]) & 0xFFFF == int.from_bytes(reply[-2:], "big")
        return reply[:-2]


def test_all_data_replies_have_their_length() -> None:
    bench = Bench()
    assert QUANTITIES.keys() == LENGTHS.keys()
    assert {command: len(bench.ask(bytes((command,)))) + 2 for command in LENGTHS} == LENGTHS


def test_acceleration_rates_field_and_matrix() -> None:
    bench = Bench()
    *numbers, ticks = struct.unpack(">18fI", bench.ask(b"\xcc")[1:])
    assert numbers[:3] == pytest.approx([0.1 / GRAVITY, -0.2 / GRAVITY, -1.0])
    assert numbers[3:6] == pytest.approx([0.01, 0.02, 0.03]) and numbers[6:9] == pytest.approx([0.245, -0.049, 0.4])
    assert ticks == 62500 // 50
    m = np.array(numbers[9:]).reshape(3, 3).T  # as DUNE computes the angles
    assert math.atan2(m[2, 1], m[2, 2]) == pytest.approx(0.1) and math.asin(-m[2, 0]) == pytest.approx(-0.2)
    assert math.atan2(m[1, 0], m[0, 0]) == pytest.approx(1.0)
    del bench.values["magnetometer"]
    bench.run(1)
    assert struct.unpack_from(">3f", bench.ask(b"\xcb"), 25) == (0.0, 0.0, 0.0)


def test_the_heading_is_magnetic() -> None:
    bench = Bench(math.radians(-8.0))
    bench.values["ahrs"] = [0.0, 0.0, math.radians(350.0), 0.0, 0.0, 0.0]
    bench.run(1)
    roll, pitch, heading, *rates = struct.unpack(">6f", bench.ask(b"\xcf")[1:-4])
    assert (roll, pitch, math.degrees(heading)) == pytest.approx((0.0, 0.0, -2.0)) and rates[2] == pytest.approx(0.03)
    w, x, y, z = struct.unpack(">4f", bench.ask(b"\xdf")[1:-4])
    assert (w, x, y, z) == pytest.approx((math.cos(math.radians(1.0)), 0.0, 0.0, math.sin(math.radians(1.0))))


def test_continuous_mode() -> None:
    bench = Bench()
    assert not bench.run(5), "it starts only on command"
    assert bench.ask(b"\xc4\xc1\x29\xce") == b"\xc4\xce" + struct.pack(">I", 6 * 1250)
    sent = bench.run(10)
    assert len(sent) == 190 and {sent[k] for k in range(0, 190, 19)} == {0xCE}
    bench.sensor.step(step(bench.ticks / 50.0, **bench.values))
    assert len(bench.data) == 190, "each value once"
    assert bench.ask(b"\xd4\xa3\x47\x00") == b"\xd4\x02"
    assert bench.ask(b"\xfa\x75\xb4") == b"" and not bench.run(5)
    assert bench.ask(b"\xd4\xa3\x47\x01") == b"\xd4\x01"
    bench.ask(b"\xc4\xc1\x29\xcc")
    assert bench.ask(b"\xfe\x9e\x3a") == b"" and not bench.run(5), "a reset"
    bench.ask(b"\xc4\xc1\x29\xcc")
    assert bench.ask(b"\xc4\xc1\x29\x00")[:2] == b"\xc4\x00" and not bench.run(5)


def test_eeprom_firmware_and_identity() -> None:
    bench = Bench()
    assert bench.ask(b"\xe5\x00\x04\x00") == b"\xe5\x00\x00"
    assert bench.ask(b"\xe4\xc1\x29\x00\x04\x02\x3f\x80") == b"\xe4\x3f\x80"
    assert bench.ask(b"\xe5\x00\x04\x02") == b"\xe5\x3f\x80"
    assert struct.unpack(">i", bench.ask(b"\xe9")[1:])[0] == 2005
    assert [len(bench.ask(b"\xea" + bytes((k,)))) for k in range(4)] == [18] * 4
    assert bench.ask(b"\xea\x02")[2:].strip() == b"3DM-GX3-25"
    assert bench.ask(b"\xea\x09") == bench.ask(b"\xd4\xa3\x47\x07") == bench.ask(b"\xc4\xc1\x29\x99") == b""
    assert bench.sensor.errors == 3


def test_it_is_silent_before_the_first_values() -> None:
    sent = bytearray()
    sensor = Microstrain(sent.extend, SENSORS)
    sensor.receive(b"\xcc")
    sensor.step(step(1.0))
    sensor.receive(b"\xcc")
    assert not sent and sensor.errors == 0


@given(
    st.lists(st.sampled_from([b"\xcc", b"\xe9", b"\xe5\x00\x04\x00", b"\xc4\xc1\x29\xcc", b"\xfa\x75\xb4"])), st.data()
)
@settings(deadline=None)
def test_commands_in_pieces(commands: list[bytes], data: st.DataObject) -> None:
    splitter, stream, found = MicrostrainSplitter(), b"".join(commands), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert [c for c, _ in found] == [c[0] for c in commands] and splitter.dropped == 0


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_noise_is_counted(noise: bytes) -> None:
    splitter = MicrostrainSplitter()
    found = splitter.feed(noise + bytes(16))
    used = {0xE4: 8, 0xE5: 4, 0xEA: 2, 0xC4: 4, 0xD4: 4, 0xFA: 3, 0xFE: 3}
    assert sum(used.get(c, 1) for c, _ in found) + splitter.dropped == len(noise) + 16
