"""The Imagenex 881A and 852: switch data, return data, scan, levels, and echoes of walls at known ranges and bearings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.scanning import FakeScan, step
from wavesim_devices import imagenex as x

#: places of the settings in the switch data
PLACES = {
    "range": 3, "direction": 5, "mode": 6, "gain": 8, "tvg": 9, "absorption": 10, "train": 11, "sector": 12, "step": 13,
    "minimum": 15, "points": 19, "bits": 20, "profile": 22, "calibrate": 23, "delay": 24,
}  # fmt: skip
#: settings that leave the levels of the sonar as they are
NEUTRAL = {
    "881A": {"range": 10, "mode": 0x43, "gain": 20, "tvg": 2, "absorption": 20, "train": 60, "points": 50, "bits": 8},
    "852": {"range": 10, "gain": 20, "absorption": 20, "train": 70, "points": 50},
    "852-sounder": {"range": 10, "gain": 20, "absorption": 20, "points": 50},
}


def command(model: str, **changes: int) -> bytes:
    data = bytearray(27)
    data[:3], data[26] = bytes((0xFE, 0x44, 0x11 if model == "852-sounder" else 0x10)), 0xFD
    for name, value in (NEUTRAL[model] | changes).items():
        data[PLACES[name]] = value
    return bytes(data)


@dataclass
class Echoes:
    """Return data, decoded as the specification says."""

    data: bytes

    def __post_init__(self) -> None:
        d = self.data
        assert d[0:1] == b"I" and d[2:3] == b"X" and d[-1] == 0xFC
        self.title, self.status, self.range = d[:3].decode(), d[4], d[7]
        self.position, self.profile, self.count = (
            ((d[i + 1] & 0x7E) >> 1) << 8 | (d[i + 1] & 1) << 7 | d[i] & 0x7F for i in (5, 8, 10)
        )
        self.clockwise, self.position = bool(d[6] & 0x40), self.position & 0x1FFF
        self.samples = d[12:-1]
        assert len(self.samples) == self.count and all(not b & 0x80 for b in d[5:7] + d[8:12])


class Head:
    """A head without ports."""

    def __init__(self, model: str, scan: FakeScan | None = None, sound_speed: float = x.SOUND_SPEED) -> None:
        self.model, self.out, self.time = model, list[bytes](), 0.0
        self.device = x.ImagenexDevice(x.MODELS[model], self.out.append, sound_speed, (scan or FakeScan()).take)

    def wait(self, seconds: float, period: float = 0.001) -> list[bytes]:
        self.out.clear()
        end = self.time + seconds
        while self.time < end - 1e-9:
            self.time += period
            self.device.step(step(self.time))
        return list(self.out)

    def ping(self, seconds: float = 2.0, **changes: int) -> Echoes:
        self.device.receive(command(self.model, **changes))
        (data,) = self.wait(seconds)
        return Echoes(data)


def test_return_data_byte_for_byte() -> None:
    wall = {0.0: 5.0}
    for points, title, count in ((25, "IMX", 252), (50, "IGX", 500)):
        head = Head("881A", FakeScan(wall))
        head.device.receive(command("881A", points=points))
        (data,) = head.wait(0.1)
        assert len(data) == count + 13
        assert data[:12] == title.encode() + bytes(
            (0x10, 0x40, 600 & 0x7F, 600 >> 7 | 0x40, 10, 500 & 0x7F, 500 >> 7, count & 0x7F, count >> 7)
        )
    data = Head("881A", FakeScan(wall)).ping(profile=1, points=0).data
    assert data == bytes.fromhex("495058 10 40 58 44 0a 74 03 00 00 fc")
    assert Head("852", FakeScan(wall)).ping(points=25).data[:8] == bytes.fromhex("494d58 10 41 78 4a 0a")
    data = Head("852-sounder", FakeScan(wall)).ping(profile=1, points=0).data
    assert data == bytes.fromhex("495058 11 41 00 00 0a 74 03 00 00 fc"), "5 m in centimetres"


@pytest.mark.parametrize("model", ["881A", "852"])
def test_walls_at_known_ranges_and_bearings(model: str) -> None:
    head = Head(model, FakeScan({0.0: 8.0, 0.5 * math.pi: 6.0, -0.5 * math.pi: 4.0}))
    ahead, unit = NEUTRAL[model]["train"], {"881A": 0.3, "852": 0.15}[model]
    for train, bearing, wall in ((0, 0.0, 8.0), (30, 90.0, 6.0), (-30, -90.0, 4.0)):
        echoes = head.ping(train=ahead + train)
        centre = x.MODELS[model].centre
        assert unit * (echoes.position - centre) == pytest.approx(bearing), bearing
        strongest = max(range(500), key=echoes.samples.__getitem__)
        assert (strongest + 0.5) * 10.0 / 500 == pytest.approx(wall, abs=0.02)
        assert echoes.profile == (0 if model == "852" else pytest.approx(100.0 * wall, abs=1.0))
    assert not any(head.ping(train=ahead + 15).samples), "the sonar has not looked there"
    assert not any(head.ping(train=ahead, range=5).samples), "the wall is beyond the range"


def test_profile_of_an_881a() -> None:
    head = Head("881A", FakeScan({0.0: 3.0}))
    assert head.ping(range=4).profile == pytest.approx(1500, abs=3), "units of 2 mm"
    assert head.ping(range=5).profile == pytest.approx(300, abs=1), "units of 10 mm"
    assert head.ping(range=5, minimum=29).profile > 0
    assert head.ping(range=5, minimum=31).profile == 0, "the echo is nearer than the minimum range"
    assert head.ping(range=5, gain=0).profile == 0, "below the threshold"


def test_the_head_assumes_a_speed_of_sound() -> None:
    echoes = Head("881A", FakeScan({0.0: 6.0}), 1400.0).ping()
    strongest = max(range(500), key=echoes.samples.__getitem__)
    assert (strongest + 0.5) * 10.0 / 500 == pytest.approx(6.0 * 15.0 / 14.0, abs=0.02)
    assert echoes.profile == pytest.approx(600.0 * 15.0 / 14.0, abs=1.0)


def test_gain_and_absorption() -> None:
    """The wall is 33 dB above the floor; the sonar has a span of 66 dB, X = 30 and 0.2 dB/m."""
    head = Head("881A", FakeScan({0.0: 8.0}, level=33.0))

    def level(**changes: int) -> float:
        return max(head.ping(**changes).samples) / 255.0 * 66.0

    near = 0.15
    assert level() == pytest.approx(33.0, abs=near)
    assert level(gain=30) == pytest.approx(43.0, abs=near)
    assert level(gain=5) == pytest.approx(18.0, abs=near)
    assert level(tvg=3) == pytest.approx(33.0 + 10.0 * math.log10(8.0), abs=near)
    assert level(tvg=0) == pytest.approx(33.0 - 20.0 * math.log10(8.0), abs=near)
    assert level(absorption=60) == pytest.approx(33.0 + 2.0 * 0.4 * 8.0, abs=near)


def positions(head: Head, count: int, **changes: int) -> list[int]:
    return [head.ping(**changes).position for _ in range(count)]


def test_the_head_scans_a_sector() -> None:
    head = Head("881A")
    sector = {"sector": 2, "step": 8}  # 6 deg, in steps of 2.4 deg
    assert positions(head, 7, **sector) == [600, 608, 610, 602, 594, 590, 598]
    assert positions(head, 2, **sector, direction=x.HOLD) == [606, 606], "the head is held"
    assert positions(head, 2, **sector) == [606, 610]
    assert head.ping(train=90, sector=2).position == 890, "it turns to the nearest end of the sector"
    assert head.ping(train=90, calibrate=1).position == 900
    head = Head("881A")
    assert positions(head, 3, sector=120, step=4) == [600, 604, 608]
    assert positions(head, 3, sector=120, step=4, direction=x.REVERSE) == [612, 608, 604], "reversed once"
    assert positions(head, 2, sector=120, step=4) == [600, 596]
    head = Head("852")
    assert positions(head, 4, sector=4, step=1) == [1400, 1420, 1440, 1420], "steps of 3 deg"


def test_a_ping_takes_its_time() -> None:
    head = Head("881A")
    head.device.receive(command("881A", range=100, delay=50))  # 133 ms and 100 ms
    assert head.wait(0.230) == [] and len(head.wait(0.01)) == 1
    head.device.receive(command("881A") + command("881A"))
    (data,) = head.wait(1.0)
    assert Echoes(data).status == x.ACCEPTED | x.OVERRUN, "a command during a ping is lost"
    assert head.ping().status == x.ACCEPTED
    head.device.receive(command("881A", train=120))
    assert head.wait(1.4) == [] and len(head.wait(0.2)) == 1, "half a turn at 120 deg/s"
    head.device.receive(command("881A", mode=0x41, train=120))
    assert head.wait(1.0) == [], "the host wants no data"
    assert not any(head.ping(mode=0x42, train=120).samples), "no transmission"


@pytest.mark.parametrize(
    "model, changes",
    [
        ("881A", {"range": 6}), ("881A", {"gain": 41}), ("881A", {"points": 26}), ("881A", {"bits": 4}),
        ("881A", {"mode": 3}), ("881A", {"tvg": 4}), ("881A", {"train": 121}), ("881A", {"sector": 121}),
        ("881A", {"step": 9}), ("852", {"range": 4}), ("852", {"train": 141}), ("852", {"step": 3}),
        ("852", {"profile": 1, "points": 0}),
        ("852-sounder", {"range": 60}), ("852-sounder", {"minimum": 251}),
    ],
)  # fmt: skip
def test_invalid_settings_are_not_accepted(model: str, changes: dict[str, int]) -> None:
    head = Head(model)
    assert head.ping().status & x.ACCEPTED
    before = head.device.switches
    answer = head.ping(**changes)
    assert not answer.status & x.ACCEPTED and answer.range == 10
    assert head.device.errors == 1 and head.device.switches == before
    assert head.ping().status & x.ACCEPTED


def test_half_and_malformed_commands() -> None:
    head = Head("881A")
    good = command("881A")
    head.device.receive(good[:11])
    assert head.wait(0.2) == []
    head.device.receive(good[11:])
    assert len(head.wait(0.2)) == 1 and head.device.errors == 0
    head.device.receive(good[:11] + good)
    assert len(head.wait(0.2)) == 1 and head.device.errors == 1
    head.device.receive(good[:9] + b"\xfd" + good)
    assert len(head.wait(0.2)) == 1 and head.device.errors == 2, "the command ends early"
    head.device.receive(command("852-sounder"))
    assert head.wait(0.2) == [] and head.device.errors == 2, "another head"


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(x.MODELS)),
    st.lists(
        st.binary(max_size=40) | st.binary(min_size=23, max_size=23).map(lambda b: b"\xfe\x44\x10" + b + b"\xfd"),
        max_size=6,
    ),
)
def test_no_bytes_stop_the_head(model: str, parts: list[bytes]) -> None:
    head = Head(model, FakeScan({0.0: 5.0}))
    for part in parts:
        head.device.receive(part)
        head.wait(0.02, 0.02)
    head.device.receive(bytes(30))  # ends a command that had begun
    head.wait(4.0, 0.1)
    head.device.receive(command(model))
    (data,) = head.wait(2.0, 0.1)
    assert Echoes(data).status & x.ACCEPTED
