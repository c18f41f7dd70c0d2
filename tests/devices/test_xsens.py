"""Virtual Xsens MTi: vectors, quantities in each frame and precision, commands, errors, noise."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sdk.test_devices import step
from wavesim_devices.xsens import MAX_CONTENT, TYPES, MessageSplitter, XsensMti, message
from wavesim_sdk.frames import quaternion, rotation

SENSORS = {t: t for t in TYPES}
VALUES: dict[str, list[float]] = {
    "ahrs": [0.1, -0.2, 1.0, 0.0, 0.0, 0.0],
    "imu": [0.1, -0.2, -9.8, 0.01, 0.02, 0.03],
    "magnetometer": [2.45e-5, -4.9e-6, 4.9e-5],
    "gps": [math.radians(41.18), math.radians(-8.70), 1.25, 2.0, math.radians(30.0), 0.9, 1.5, 11.0],
    "ctd": [20.1325, 12.5, 4.29, 35.0],
}
Blocks = dict[int, bytes]


def read(data: bytes) -> list[tuple[int, bytes]]:
    """Messages in bytes that contain nothing else, read byte by byte."""
    found, at = [], 0
    while at < len(data):
        assert data[at : at + 2] == b"\xfa\xff"
        size, head = data[at + 3], 4
        if size == 255:
            size, head = int.from_bytes(data[at + 4 : at + 6], "big"), 6
        end = at + head + size + 1
        assert sum(data[at + 1 : end]) % 256 == 0
        found.append((data[at + 2], data[at + head : end - 1]))
        at = end
    return found


class Bench:
    """A sensor with values at 100 Hz, and what it sends."""

    def __init__(self) -> None:
        self.data, self.ticks, self.values = bytearray(), 0, dict(VALUES)
        self.sensor = XsensMti(self.data.extend, SENSORS)

    def run(self, seconds: float) -> list[Blocks]:
        """The messages of some time, as blocks."""
        self.data.clear()
        for _ in range(round(seconds * 100.0)):
            self.ticks += 1
            self.sensor.step(step(self.ticks / 100.0, **self.values))
        found = []
        for identifier, content in read(bytes(self.data)):
            blocks, at = Blocks(), 0
            while at < len(content):
                name, size = struct.unpack_from(">HB", content, at)
                blocks[name], at = content[at + 3 : at + 3 + size], at + 3 + size
            assert identifier == 0x36
            found.append(blocks)
        return found

    def ask(self, identifier: int, content: bytes = b"") -> tuple[int, bytes]:
        self.data.clear()
        self.sensor.receive(message(identifier, content))
        return read(bytes(self.data))[0]

    def choose(self, *outputs: tuple[int, int]) -> tuple[int, bytes]:
        self.ask(0x30)
        answer = self.ask(0xC0, b"".join(struct.pack(">HH", *o) for o in outputs))
        self.ask(0x10)
        return answer


def test_vectors() -> None:
    assert message(0x30).hex() == "faff3000d1" and message(0x10).hex() == "faff1000f1"
    assert message(0x36, bytes(300))[:6].hex() == "faff36ff012c"


def test_it_measures_after_the_start() -> None:
    found = Bench().run(1.0)
    assert len(found) == 100 and list(found[0]) == [0x1020, 0x1060, 0x2010, 0x8020, 0x4020, 0xE020]
    numbers = [struct.unpack(">H", blocks[0x1020])[0] for blocks in found]
    times = [struct.unpack(">I", blocks[0x1060])[0] for blocks in found]
    assert numbers == list(range(100)) and set(np.diff(times)) == {100}


def test_the_housing_is_upright() -> None:
    blocks = Bench().run(0.1)[-1]
    assert struct.unpack(">3f", blocks[0x4020]) == pytest.approx([0.1, 0.2, 9.8])
    assert struct.unpack(">3f", blocks[0x8020]) == pytest.approx([0.01, -0.02, -0.03])


@pytest.mark.parametrize(
    ("frame", "forward", "up"),
    [
        (0x0, (math.sin(1.0), math.cos(1.0), 0.0), (0.0, 0.0, 1.0)),
        (0x4, (math.cos(1.0), math.sin(1.0), 0.0), (0.0, 0.0, -1.0)),
        (0x8, (math.cos(1.0), -math.sin(1.0), 0.0), (0.0, 0.0, 1.0)),
    ],
)
def test_orientation_in_each_local_frame(frame: int, forward: tuple[float, ...], up: tuple[float, ...]) -> None:
    bench = Bench()
    bench.values["ahrs"] = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    bench.choose((0x2013 | frame, 100), (0x2033 | frame, 100), (0xD010 | frame, 100))
    blocks = bench.run(0.1)[-1]
    R = rotation(np.array(struct.unpack(">4d", blocks[0x2013 | frame])))
    assert R[:, 0] == pytest.approx(forward) and R[:, 2] == pytest.approx(up)
    roll, pitch, yaw = np.radians(struct.unpack(">3d", blocks[0x2033 | frame]))
    assert (math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch)) == pytest.approx(forward[:2])
    assert math.cos(roll) == pytest.approx(up[2])
    east, north = struct.unpack(">3f", blocks[0xD010 | frame])[:2]
    assert math.hypot(east, north) == pytest.approx(2.0)


@given(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(0.0, 6.28), st.sampled_from([0x0, 0x4, 0x8]))
@settings(deadline=None)
def test_the_quaternion_and_the_angles_agree(roll: float, pitch: float, heading: float, frame: int) -> None:
    bench = Bench()
    bench.values["ahrs"] = [roll, pitch, heading, 0.0, 0.0, 0.0]
    bench.choose((0x2013 | frame, 100), (0x2033 | frame, 100))
    blocks = bench.run(0.01)[-1]
    R = rotation(np.array(struct.unpack(">4d", blocks[0x2013 | frame])))
    a, b, c = np.radians(struct.unpack(">3d", blocks[0x2033 | frame]))
    assert rotation(quaternion(a, b, c)) == pytest.approx(R, abs=1e-9)


def test_every_other_quantity() -> None:
    bench = Bench()
    outputs = (0x0810, 0x1010, 0x3010, 0x5020, 0x5043, 0xC020, 0xE010)
    assert bench.choose(*((o, 50) for o in outputs))[0] == 0xC1
    found = bench.run(1.0)
    assert len(found) == pytest.approx(50, abs=1)
    b = found[-1]
    assert struct.unpack(">f", b[0x0810])[0] == 12.5 and struct.unpack(">I", b[0x3010])[0] == 201325
    ns, year, month, day, hour, minute, second, flags = struct.unpack(">IH6B", b[0x1010])
    assert (year, month, day, hour, minute, second, flags) == (2026, 1, 1, 0, 0, bench.ticks // 100, 7) or ns > 9e8
    assert struct.unpack(">2d", b[0x5043]) == pytest.approx([41.18, -8.70]) and b[0xE010] == b"\x07"
    assert struct.unpack(">f", b[0x5020])[0] == 1.25 and struct.unpack(">3f", b[0xC020]) == pytest.approx(
        [0.5, 0.1, -1.0]
    )
    del bench.values["gps"]
    b = bench.run(0.1)[-1]
    assert 0x5043 not in b and b[0xE010] == b"\x03"


def test_commands_and_states() -> None:
    bench = Bench()
    assert bench.ask(0x0C) == (0x42, b"\x04"), "only in the configuration state"
    assert bench.ask(0x30) == (0x31, b"") and bench.run(0.1) == []
    assert bench.ask(0x00) == (0x01, struct.pack(">I", 0x07700001)) and bench.ask(0x1C)[1].startswith(b"MTi-G-710")
    assert bench.ask(0x12) == (0x13, bytes((1, 12, 0))) and len(bench.ask(0x0C)[1]) == 118
    assert bench.ask(0xC0, struct.pack(">HH", 0x2010, 50)) == (0xC1, struct.pack(">HH", 0x2010, 50))
    assert bench.ask(0xC0, struct.pack(">HH", 0x2010, 5000)) == (0xC1, struct.pack(">HH", 0x2010, 400))
    for wrong in (struct.pack(">HH", 0x2011, 50), struct.pack(">HH", 0x7010, 4), b"\x20\x10\x00", bytes(200)):
        assert bench.ask(0xC0, wrong) == (0x42, b"\x21")
    assert bench.ask(0x18, b"\x05") == (0x19, b"") and bench.ask(0x18) == (0x19, b"\x05")
    assert bench.ask(0x18, b"\x99") == (0x42, b"\x21") and bench.ask(0x48, bytes(3)) == (0x42, b"\x21")
    assert bench.ask(0x48, struct.pack(">II", 0x10, 0)) == (0x49, struct.pack(">I", 0x10))
    assert bench.ask(0x55) == (0x42, b"\x04") and bench.sensor.errors == 8
    bench.data.clear()
    bench.sensor.receive(message(0x40))
    assert read(bytes(bench.data)) == [(0x41, b""), (0x3E, b"")] and len(bench.run(0.1)) == 10
    bench.data.clear()
    bench.sensor.receive(message(0x3F))
    assert bench.run(0.1) == []


def test_damaged_and_long_messages_are_dropped_and_counted() -> None:
    splitter = MessageSplitter()
    good = message(0x30)
    assert splitter.feed(good[:-1] + b"\x00" + good[:2]) == [] and splitter.dropped == 1
    assert splitter.feed(good[2:]) == [(0x30, b"")]
    assert splitter.feed(b"\xfa\xff\x30\xff" + struct.pack(">H", MAX_CONTENT + 1) + good) == [(0x30, b"")]
    assert splitter.dropped == 2


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([b"\xfa\xff", message(0x30), message(0xC0, bytes(8)), b"\xff"]))
)
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    bench = Bench()
    for part in parts:
        bench.sensor.receive(part)
    bench.sensor.receive(bytes(MAX_CONTENT + 8))
    bench.sensor.receive(message(0x10))
    bench.run(0.05)
    assert bench.ask(0x00)[0] == 0x01
