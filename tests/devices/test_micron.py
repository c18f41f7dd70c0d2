"""The Tritech Micron: packets, scan, levels, and echoes of walls at known ranges and bearings."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.scanning import FakeScan, step
from wavesim_devices.micron import device as m
from wavesim_devices.micron import packets as p

#: the head command of the maker's manual, with its V3B block: 90 bins of 141 x 640 ns, gain 84, steps of 16
MANUAL = bytes.fromhex(
    "4030303443 4c00ff0247 138002 1d012302 99999902 666666 05 a3703d06 703d0a09 2800 3c00 0100 ff18 51 08 54 54 5a00 7d00"
    "19 10 8d00 5a00 e803 9703 4006 01 00 0000 50 51 09 08 54 54 0000 5a00 7d00 0000 0000 0a"
)
SPEED = 1500.0


def command(**changes: int) -> bytes:
    """Head command with settings of a common driver: a sector of 90 deg, 10 m in 400 bins, all levels."""
    v = {"control": 0x2305, "range": 100, "left": 2400, "right": 4000, "span": 255, "low": 0, "gain": m.NEUTRAL_GAIN}
    v |= {"motor": 25, "step": 32, "interval": 52, "bins": 400} | changes
    gain = v["gain"]
    payload = p.SETTINGS.pack(1, v["control"], 0x11, bytes(18), v["range"], v["left"], v["right"], v["span"], v["low"],
                              gain, gain, bytes(4), v["motor"], v["step"], v["interval"], v["bins"], bytes(10))  # fmt: skip
    return p.encode_packet(p.HEAD_COMMAND, payload, p.HOST, p.SONAR)


PING = p.encode_packet(p.SEND_DATA, bytes(4), p.HOST, p.SONAR)


class Head:
    """A Micron without ports."""

    def __init__(self, scan: FakeScan | None = None) -> None:
        self.out: list[bytes] = []
        self.time = 0.0
        self.device = m.MicronDevice(self.out.append, SPEED, (scan or FakeScan()).take)

    def send(self, data: bytes) -> list[bytes]:
        """Send bytes, and return what the head answers at once."""
        self.out.clear()
        self.device.receive(data)
        return list(self.out)

    def wait(self, seconds: float) -> list[bytes]:
        """Let time pass, and return what the head sends."""
        self.out.clear()
        end = self.time + seconds
        while self.time < end - 1e-9:
            self.time += 0.01
            self.device.step(step(self.time))
        return list(self.out)

    def configure(self, **changes: int) -> None:
        self.send(command(**changes))
        self.wait(m.CENTRING_S + 1.0)

    def ping(self) -> tuple[Any, bytes]:
        """Ping, and return the fields and the bins of the reply."""
        self.send(PING)
        (reply,) = (b for b in self.wait(0.5) if b[10] == p.HEAD_DATA)
        fields = m._DATA.unpack_from(reply, 13)
        assert len(reply) == fields[0] + 14 == fields[-1] + 45 and reply[9] == 0 and reply[-1] == 0x0A
        return fields, reply[44:-1]


def flags(alive: bytes) -> int:
    assert len(alive) == 22 and alive[:13] == b"@0010\x10\0\x02\xff\x0b\x04\x80\x02"
    return alive[20]


def test_packets_byte_for_byte() -> None:
    head = Head()
    assert p.encode_packet(p.SEND_VERSION, b"", p.HOST, p.SONAR) == bytes.fromhex("40303030380800ff0203178002 0a")
    assert p.encode_packet(p.REBOOT, b"", p.HOST, p.SONAR) == bytes.fromhex("40303030380800ff0203108002 0a")
    assert bytes.fromhex("40303030430c00ff0207198002 00000000 0a") == PING
    (version,) = head.send(bytes.fromhex("40303030380800ff0203178002 0a"))
    assert version == bytes.fromhex("40303031331300 02ff 0e 01 80 02 0100010000000000000002 0a") and len(version) == 25
    (user,) = head.send(p.encode_packet(p.SEND_USER_DATA, b"", p.HOST, p.SONAR))
    assert len(user) == 264 and user[146] == 0, "full duplex"
    head.send(MANUAL)
    s = head.device.settings
    assert s is not None and head.device.errors == 0
    assert (s.control, s.range_scale, s.left, s.right, s.span, s.low, s.gain) == (0x2301, 60, 1, 6399, 0x51, 8, 84)
    assert (s.motor_time, s.step, s.interval, s.bins) == (25, 16, 141, 90)


def test_states_of_the_head() -> None:
    """Without settings, while it finds its centre, scanning, and after a restart."""
    head = Head()
    (alive,) = head.wait(0.5)
    assert flags(alive) == m.CENTRING | m.CLOCKWISE | m.MOTOR_ON | m.NO_SETTINGS
    assert head.send(PING) == [] and head.device.errors == 1, "the head has no settings"
    (alive,) = head.send(command())
    assert flags(alive) == m.CENTRING | m.CLOCKWISE | m.MOTOR_ON
    head.send(PING)
    sent = head.wait(m.CENTRING_S - 0.1)
    assert {b[10] for b in sent} == {p.ALIVE} and len(sent) == 3, "one per second"
    assert flags(sent[-1]) & m.IN_SCAN
    assert [b[10] for b in head.wait(0.2)] == [p.HEAD_DATA]
    alive = head.wait(1.0)[-1]
    assert flags(alive) == m.CENTRED | m.CLOCKWISE | m.MOTOR_ON
    assert struct.unpack_from("<H", alive, 18)[0] == 3232, "the head has turned by a step"
    head.send(p.encode_packet(p.SEND_DATA, struct.pack("<I", 3_600_000), p.HOST, p.SONAR))
    clock = struct.unpack_from("<I", next(b for b in head.wait(1.0) if b[10] == p.ALIVE), 14)[0]
    assert 3_600_000 <= clock <= 3_601_000, "the head takes the clock of the host"
    head.send(p.encode_packet(p.STOP_ALIVE, b"", p.HOST, p.SONAR))
    assert head.wait(3.0) == []
    head.send(p.encode_packet(p.REBOOT, b"", p.HOST, p.ALL))
    assert head.send(command()) == [] and head.wait(m.BOOT_S - 0.1) == [], "it restarts"
    (alive,) = head.wait(0.3)
    assert flags(alive) & (m.CENTRING | m.NO_SETTINGS) == m.CENTRING | m.NO_SETTINGS
    assert head.device.errors == 1


def bearings(head: Head, count: int) -> list[int]:
    return [head.ping()[0][-2] for _ in range(count)]


def test_the_head_scans_a_sector_to_and_fro() -> None:
    head = Head()
    head.configure(left=3100, right=3300, step=64)
    found = [head.ping()[0] for _ in range(9)]
    assert [f[-2] for f in found] == [3200, 3264, 3300, 3236, 3172, 3108, 3100, 3164, 3228]
    assert [f[3] for f in found] == [m.CENTRE, 0, m.RIGHT_LIMIT, 0, 0, 0, m.LEFT_LIMIT, 0, 0]
    head.send(p.encode_packet(p.HEAD_COMMAND, bytes((m.REVERSE,)), p.HOST, p.SONAR))
    assert bearings(head, 2) == [3292, 3228], "the head had turned before the command"


@pytest.mark.parametrize(
    "control, expected",
    [
        (0x2307, [3200, 4800, 0, 1600, 3200]),  # continuous, to the right
        (0x2303, [3200, 1600, 0, 4800, 3200]),  # continuous, to the left
        (0x2315, [3200, 3200]),  # the motor is off
        (0x3305, [2400, 2400]),  # the head stares at the left limit
    ],
)
def test_directions_of_the_scan(control: int, expected: list[int]) -> None:
    head = Head()
    head.configure(control=control, step=200, motor=1)
    assert bearings(head, len(expected) * 8)[::8] == expected


def test_a_ping_takes_the_time_of_its_bins_and_of_the_motor() -> None:
    head = Head()
    head.configure(bins=1000, interval=500, motor=250, step=255)  # 0.32 s; 0.64 s
    head.send(PING)
    assert [b[10] for b in head.wait(0.31) if b[10] == p.HEAD_DATA] == []
    assert [b[10] for b in head.wait(0.02) if b[10] == p.HEAD_DATA] == [p.HEAD_DATA]
    head.send(PING + PING)
    assert not [b for b in head.wait(0.94) if b[10] == p.HEAD_DATA]
    assert len([b for b in head.wait(2.0) if b[10] == p.HEAD_DATA]) == 1, "a ping during a ping is lost"


def test_walls_at_known_ranges_and_bearings() -> None:
    """Walls ahead at 8 m, to starboard at 6 m; the device has 25 mm per bin."""
    scan = FakeScan({0.0: 8.0, 0.5 * math.pi: 6.0, -0.5 * math.pi: 4.0})
    head = Head(scan)
    for bearing, wall in ((3200, 8.0), (4800, 6.0), (1600, 4.0)):
        head.configure(control=0x3305, left=bearing, right=bearing)
        fields, bins = head.ping()
        assert fields[-2] == bearing
        each = 0.5 * SPEED * 52 * 640e-9
        assert (int(np.argmax(list(bins))) + 0.5) * each == pytest.approx(wall, abs=each), bearing
    head.configure(control=0x330D, left=4800, right=4800)  # upside down: port and starboard are exchanged
    assert (int(np.argmax(list(head.ping()[1]))) + 0.5) * each == pytest.approx(4.0, abs=each)
    head.configure(control=0x3325, left=3200, right=3200)
    assert not any(head.ping()[1]), "the transmitter is off"
    head.configure(control=0x3305, left=4000, right=4000)
    assert not any(head.ping()[1]), "the sonar has not looked there"


def test_gain_and_levels() -> None:
    """The wall is 33 dB above the floor: half of a span of 66 dB."""
    head = Head(FakeScan({0.0: 8.0}, level=33.0))

    def value(**changes: int) -> int:
        head.configure(control=changes.pop("control", 0x3305), left=3200, right=3200, **changes)
        return max(head.ping()[1])

    assert value() == round(33.0 / 80.0 * 255)
    assert value(gain=105) == round(41.0 / 80.0 * 255), "8 dB more"
    assert value(gain=63) == round(25.0 / 80.0 * 255)
    assert value(low=64, span=127) == round((33.0 / 80.0 * 255 - 64) / 127 * 255), "from 20 dB to 60 dB"
    assert value(low=128) == 0
    head.configure(control=0x3304, left=3200, right=3200, span=15)
    fields, bins = head.ping()
    assert fields[-1] == 200 and fields[1] == m.DEVICE_TYPE, "two bins in a byte"
    assert max(max(b >> 4, b & 15) for b in bins) == round(33.0 / 80.0 * 15)


@pytest.mark.parametrize("changes", [{"bins": 0}, {"bins": 1501}, {"interval": 0}, {"left": 6400}, {"gain": 211}])
def test_invalid_settings_are_not_accepted(changes: dict[str, int]) -> None:
    head = Head()
    head.configure()
    before = head.device.settings
    assert head.send(command(**changes)) == []
    assert head.device.errors == 1 and head.device.settings == before
    head.ping()


def test_half_and_malformed_packets() -> None:
    head = Head()
    version = p.encode_packet(p.SEND_VERSION, b"", p.HOST, p.SONAR)
    assert head.send(version[:9]) == [] and len(head.send(version[9:])) == 1, "in two parts"
    assert len(head.send(b"@00" + version)) == 1 and head.device.errors == 1
    assert len(head.send(version[:-1] + b"@" + version)) == 1 and head.device.errors >= 2
    assert head.send(p.encode_packet(p.SEND_VERSION, b"", p.HOST, 20)) == [], "another node"
    errors = head.device.errors
    for unknown in (
        p.encode_packet(72, b"", p.HOST, p.SONAR),
        p.encode_packet(p.HEAD_COMMAND, b"\x01\0", p.HOST, p.SONAR),
    ):
        assert head.send(unknown) == []
    assert head.device.errors == errors + 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40) | st.sampled_from([PING, command(), command()[:30], MANUAL]), max_size=6))
def test_no_bytes_stop_the_head(parts: list[bytes]) -> None:
    head = Head()
    for part in parts:
        head.send(part)
        head.wait(0.05)
    head.send(bytes(600))  # ends a packet that had begun
    assert len(head.send(p.encode_packet(p.SEND_VERSION, b"", p.HOST, p.SONAR))) == 1
