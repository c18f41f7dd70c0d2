"""Devices that serve the frames of imaging sonars, controlled by the libraries of their makers and others."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from brping import Omniscan450, Ping360, Surveyor240, definitions
from hypothesis import given
from hypothesis import strategies as st

from tests.emulators import sonar
from tests.sdk.test_devices import step
from wavesim_devices import cerulean, ping1d, ping360
from wavesim_emulators.sonar import imaging
from wavesim_emulators.sonar.emulator import describe
from wavesim_emulators.sonar.multibeam import MultibeamSonar
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.imaging_frames import ImagingFrame

FLAT = '<bed depth="20 m"/>'


def framed(d: Any, made: imaging.PingResult, number: int) -> ImagingFrame:
    """What an engine made, as it goes over the network."""
    record = describe(d, b"auv", b"sonar", 1, d.preset.name)
    payload = np.ascontiguousarray(made.soundings if made.levels is None else made.levels).tobytes()
    record["number"], record["bytes"], record["azimuth"], record["ping_ns"] = (
        number,
        len(payload),
        made.azimuth,
        number * 10**8,
    )
    return ImagingFrame(record, payload)


class Wire:
    """brping's socket in this process: time goes on by a frame while it waits."""

    def __init__(self, make: Any, frames: Iterator[ImagingFrame]) -> None:
        self.out: list[bytes] = []
        self.frames, self.time = frames, 0.0
        self.device = make(self.out.append, lambda: [f] if (f := next(self.frames, None)) is not None else [])

    def send(self, data: bytes) -> int:
        self.device.receive(bytes(data))
        return len(data)

    def recv(self, size: int) -> bytes:
        self.time += 0.05
        if not self.out:
            self.device.step(step(self.time))
        if not self.out:
            raise BlockingIOError
        return self.out.pop(0)


def test_brping_reads_our_omniscan(config: Any) -> None:
    """First bottom echo where the altitude says; levels come back; both sides."""
    w = sonar.world(config, FLAT)
    d = sonar.design("omniscan-450", 50.0, 1000)
    side = imaging.SideScanSonar(d, w, 0.0, 1)
    made = side.ping(sonar.pose((0.0, 0.0, 12.0)), 0)
    driver = Omniscan450()
    driver.iodev = wire = Wire(cerulean.OmniscanDevice, iter(framed(d, made, n) for n in range(1, 9)))
    assert driver.initialize() is not False
    driver.control_os_ping_params(start_mm=0, length_mm=60_000, num_results=1200, msec_per_ping=0)
    assert driver.wait_message([definitions.COMMON_ACK]).acked_id == cerulean.PING_PARAMS
    seen = [driver.wait_message([definitions.OMNISCAN450_OS_MONO_PROFILE], 2.0) for _ in range(2)]
    assert [m.channel_number for m in seen] == [0, 1]
    power = np.array(Omniscan450.scale_power(seen[1]))
    first = np.flatnonzero(power > d.floor + 6.0)[0]
    assert (first + 0.5) * 0.05 == pytest.approx(8.0, abs=0.1), "the bed"
    assert (power[1000:] == d.floor).all(), "beyond the range of the sonar is silence"
    levels = made.levels[1].astype(float) * d.span / d.top + d.floor
    assert np.abs(power[200:900] - levels[200:900]).max() < 6.0
    assert np.median(np.abs(power[200:900] - levels[200:900])) < 0.5
    assert (seen[1].ping_hz, seen[1].length_mm, seen[1].sos_dmps) == (450_000, 60_000, 15_000)
    driver.control_set_speed_of_sound(1_400_000)
    driver.wait_message([definitions.COMMON_ACK])
    wire.out.clear()
    power = np.array(Omniscan450.scale_power(driver.wait_message([definitions.OMNISCAN450_OS_MONO_PROFILE], 2.0)))
    assert (np.flatnonzero(power > d.floor + 6.0)[0] + 0.5) * 0.05 == pytest.approx(8.0 * 14 / 15, abs=0.1)
    driver.control_os_ping_params(length_mm=0)
    wire.out[:] = wire.out[-1:]
    assert driver.wait_message([definitions.COMMON_NACK]).nacked_id == cerulean.PING_PARAMS


def test_brping_reads_our_surveyor(config: Any) -> None:
    w = sonar.world(config, FLAT)
    d = sonar.design("surveyor-240", 60.0, 1200)
    table = MultibeamSonar(d, w, 0.0, 1).ping(sonar.pose((0.0, 0.0, 5.0)), 0)
    driver = Surveyor240()
    driver.iodev = Wire(cerulean.SurveyorDevice, iter(framed(d, table, n) for n in range(1, 9)))
    assert driver.initialize() is not False
    driver.control_set_ping_parameters(ping_enable=True, enable_atof_data=True, sos_mps=1500)
    message = driver.wait_message([definitions.SURVEYOR240_ATOF_POINT_DATA], 2.0)
    points = Surveyor240.create_atof_list(message)
    assert message.num_points == len(points) == 80
    depth = [p.tof * 750.0 * math.cos(p.angle) for p in points]
    assert depth == pytest.approx([15.0] * 80, abs=0.05)
    assert math.degrees(points[0].angle - points[-1].angle) == pytest.approx(80.0, abs=0.5), "port is positive"
    many = sonar.design("r2sonic-2024", 60.0, 1200, {"beams": 400})
    (payload,) = cerulean.SurveyorDevice(lambda _: None, list)._payloads(
        framed(many, MultibeamSonar(many, w, 0.0, 1).ping(sonar.pose((0.0, 0.0, 5.0)), 0), 1)
    )
    assert len(ping1d.encode_frame(cerulean.ATOF, payload)) <= 4096, "more its hosts cannot read from a datagram"


def test_brping_turns_a_head_over_frames(config: Any) -> None:
    """A square tank 16 m wide; walls at 8 m within a sample; 50 m is more than the sonar has."""
    tank = "".join(
        f'<block position="{8.5 * c:.1f} {8.5 * s:.1f} 5 m" size="{1 + 30 * abs(s)} {1 + 30 * abs(c)} 10 m" material="concrete"/>'
        for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1))
    )
    w = sonar.world(config, f'<bed depth="400 m"/><obstacles>{tank}</obstacles>')
    d = sonar.design("ping360", 20.0, 1200, gain=-75.0)
    head = imaging.ScanningSonar(d, w, 0.0, 1)
    turn = [framed(d, head.ping(sonar.pose((0.0, 0.0, 5.0)), n), n + 1) for n in range(0, 400, 10)]
    driver = Ping360()
    made: list[ping360.Ping360Device] = []

    def make(send: Any, new: Any) -> ping360.Ping360Device:
        made.append(ping360.Ping360Device(send, 1500.0, "sonar", new))
        return made[-1]

    driver.iodev = Wire(make, iter(turn))
    assert driver.initialize() is True
    for _ in turn:
        driver.iodev.time += 0.05
        made[0].step(step(driver.iodev.time))
    assert driver.set_sample_period(1111) and driver.set_number_of_samples(1200)  # 25 m
    sample = 0.5 * 1500.0 * 1111 * 25e-9
    for gradian, wall in ((0, 8.0), (100, 8.0), (200, 8.0), (50, 8.0 * math.sqrt(2.0)), (20, 8.0 / math.cos(0.314159))):
        assert driver.transmitAngle(gradian).angle == gradian
        strongest = max(range(1200), key=driver._data.__getitem__)
        assert driver._data[strongest] < 255
        assert (strongest + 0.5) * sample == pytest.approx(wall, abs=0.25 if gradian % 100 else sample), gradian
    assert max(driver._data[round(20.0 / sample) + 1 :]) == 0
    assert max(driver.transmitAngle(5).data) == 0, "nothing was seen so far from where it looked"


def test_a_sonar_of_another_kind_is_refused(config: Any) -> None:
    d = sonar.design("ping360", 20.0, 100)
    frame = framed(d, imaging.ScanningSonar(d, sonar.world(config, FLAT), 0.0, 1).ping(sonar.pose((0, 0, 5.0)), 0), 1)

    class Broker:
        def subscribe_frames(self, *names: str) -> None:
            assert names == ("sonar",)

        def take_frames(self) -> list[ImagingFrame]:
            return [frame]

    pictures: Any = cerulean.SonarFrameSource
    with pytest.raises(BrokerError, match="sonar 'sonar' is of type scanning; a Surveyor 240 needs type bathymetry"):
        pictures(Broker(), "sonar", "bathymetry", "a Surveyor 240").take_frames()
    assert pictures(Broker(), "sonar", "scanning", "a Ping360").take_frames() == [frame]


@given(st.binary(max_size=80))
def test_foreign_bytes_do_no_harm(data: bytes) -> None:
    for make in (cerulean.OmniscanDevice, cerulean.SurveyorDevice):
        out: list[bytes] = []
        device = make(out.append, list)
        for message in (0, 6, 116, 2197, 2198, 3012, 3023):
            device.receive(ping1d.encode_frame(message, data) + data)
        assert all(o[:2] == b"BR" and struct.unpack_from("<H", o, 4)[0] in (1, 2, 4, 5) for o in out)
