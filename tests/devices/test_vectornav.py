"""Virtual VectorNav sensor: vectors, frames of several drivers, registers, errors, and a driver from PyPI as the judge."""

from __future__ import annotations

import asyncio
import math
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vectornav import VN200, VN200Error

from tests.conftest import Server
from tests.devices.bench import device, processes
from tests.nursery import launch
from tests.sdk.test_devices import step
from wavesim_devices.ports import PtyPort
from wavesim_devices.vectornav.codec import GROUPS, crc16, line, xor
from wavesim_devices.vectornav.device import TYPES, VectorNav
from wavesim_sdk.attach import SharedState
from wavesim_sdk.frames import euler
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
SENSORS = {t: t for t in TYPES}
VALUES: dict[str, list[float]] = {
    "ahrs": [0.1, -0.2, 4.0, 0.0, 0.0, 0.0],
    "imu": [0.1, -0.2, -9.8, 0.01, 0.02, 0.03],
    "magnetometer": [2e-5, -1e-6, 4e-5],
    "gps": [math.radians(41.18), math.radians(-8.70), 1.25, 2.0, math.radians(30.0), 0.9, 1.5, 11.0],
    "ctd": [20.1325, 12.5, 4.29, 35.0],
}


class Bench:
    """A sensor, and what it sends."""

    def __init__(self, model: str = "VN-100", rate: float = 200.0) -> None:
        self.data, self.rate, self.ticks = bytearray(), rate, 0
        self.sensor = VectorNav(self.data.extend, model, SENSORS)
        self.values = dict(VALUES)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * self.rate)):
            self.ticks += 1
            self.sensor.step(step(self.ticks / self.rate, **self.values))

    def ask(self, text: str) -> str:
        """The answer to a command, without its check sum."""
        self.data.clear()
        self.sensor.receive(line(text))
        answer, star, check = bytes(self.data).strip().rpartition(b"*")
        assert star and int(check, 16) == xor(answer[1:])
        return answer.decode()


def frames(data: bytes, length: int) -> list[bytes]:
    """Binary frames of a length, whose CRC is right."""
    assert len(data) % length == 0
    found = [data[k : k + length] for k in range(0, len(data), length)]
    assert all(f[0] == 0xFA and crc16(f[1:]) == 0 for f in found)
    return found


def test_check_sums() -> None:
    assert line("VNRRG,01") == b"$VNRRG,01*72\r\n" and crc16(b"VNWRG,75,3,16,01,0721") == 0xD415


@pytest.mark.parametrize(
    ("command", "length"),
    [
        ("75,3,4,14,073E,0004", 104),
        ("75,3,4,34,072E,0106,0612", 170),
        ("76,3,4,4E,0002,0010,20B8,0018", 92),
        ("75,3,4,11,0001,0106", 1 + 1 + 4 + 8 + 40 + 2),
    ],
)
def test_binary_outputs_of_drivers(command: str, length: int) -> None:
    bench = Bench("VN-300")
    bench.ask("VNWRG,06,0")
    assert bench.ask(f"VNWRG,{command}") == f"$VNWRG,{command}"
    assert bench.ask(f"VNRRG,{command[:2]}") == f"$VNRRG,{command}"
    bench.data.clear()
    bench.run(1.0)
    assert len(frames(bytes(bench.data), length)) == pytest.approx(100, abs=1), "400 Hz divided by 4"


def test_the_content_of_a_binary_frame() -> None:
    bench = Bench()
    bench.ask("VNWRG,06,0")
    bench.ask("VNWRG,75,1,8,01,0FFB")  # all of the common group but the synchronisation, up to the deltas
    bench.data.clear()
    bench.run(0.5)
    sizes = [8, 8, 12, 16, 12, 24, 12, 12, 24, 20, 28]
    frame = frames(bytes(bench.data), 4 + sum(sizes) + 2)[-1]
    startup, gps_ns, *rest = struct.unpack_from("<QQ3f4f3f3d3f3f6f5f7f", frame, 4)
    seconds = bench.ticks / bench.rate
    assert (
        startup == pytest.approx(seconds * 1e9, abs=1.1e7)
        and gps_ns - startup == (1_767_225_600 - 315_964_800 + 18) * 10**9
    )
    ypr, q, rates, lla, velocity = rest[:3], rest[3:7], rest[7:10], rest[10:13], rest[13:16]
    assert ypr == pytest.approx([math.degrees(4.0 - 2 * math.pi), math.degrees(-0.2), math.degrees(0.1)], rel=1e-6)
    assert euler(np.array([q[3], q[0], q[1], q[2]])) == pytest.approx([0.1, -0.2, 4.0 - 2 * math.pi], abs=1e-6)
    assert rates == pytest.approx([0.01, 0.02, 0.03]) and lla == pytest.approx([41.18, -8.70, 1.25])
    assert velocity == pytest.approx([math.sqrt(3.0), 1.0, 0.0]) and rest[16:19] == pytest.approx([0.1, -0.2, -9.8])
    assert rest[25:30] == pytest.approx([0.2, -0.01, 0.4, 12.5, 201.325])
    assert rest[30] == pytest.approx(0.005) and rest[31:] == pytest.approx(
        [math.degrees(5e-5), math.degrees(1e-4), math.degrees(1.5e-4), 5e-4, -1e-3, -0.049]
    )


def test_every_field_of_every_group_has_its_length() -> None:
    lengths = (
        (8, 8, 8, 12, 16, 12, 24, 12, 12, 24, 20, 28, 2, 4, 8),
        (8, 8, 8, 2, 8, 8, 8, 4, 4, 1),
        (2, 12, 12, 12, 4, 4, 16, 12, 12, 12, 12, 2, 40),
        (8, 8, 2, 1, 1, 24, 24, 12, 12, 12, 4, 4, 2, 28),
        (2, 12, 16, 36, 12, 12, 12, 12, 12, 12, 28, 24, 12),
        (2, 24, 24, 12, 12, 12, 12, 12, 12, 4, 4, 68, 64),
        (8, 8, 2, 1, 1, 24, 24, 12, 12, 12, 4, 4, 2, 28),
    )
    assert len(GROUPS) == len(lengths)
    for group, expected in enumerate(lengths):
        bench = Bench()
        bench.ask("VNWRG,06,0")
        for bit, length in enumerate(expected):
            assert bench.ask(f"VNWRG,75,1,8,{1 << group:02X},{1 << bit:04X}").startswith("$VNWRG")
            bench.data.clear()
            bench.run(0.01)
            assert frames(bytes(bench.data), 4 + length + 2)
        assert bench.ask(f"VNWRG,75,1,8,{1 << group:02X},{1 << len(expected):04X}") == "$VNERR,07"


def test_ascii_outputs_and_their_rate() -> None:
    bench = Bench()
    bench.run(1.0)
    lines = bytes(bench.data).decode().split("\r\n")[:-1]
    assert len(lines) == pytest.approx(40, abs=1)
    assert all(text.startswith("$VNYMR,-130.817,-011.459,+005.730,+00.2000,") for text in lines)
    for kind, name in ((1, "VNYPR"), (2, "VNQTN"), (19, "VNIMU"), (20, "VNGPS"), (22, "VNINS"), (30, "VNDTV")):
        assert bench.ask(f"VNWRG,06,{kind}") == f"$VNWRG,06,{kind}" and bench.ask("VNWRG,07,10") == "$VNWRG,07,10"
        bench.data.clear()
        bench.run(1.0)
        lines = bytes(bench.data).decode().split("\r\n")[:-1]
        assert len(lines) == pytest.approx(10, abs=1) and {text[1:6] for text in lines} == {name}
    assert bench.ask("VNASY,0") == "$VNASY,0"
    bench.data.clear()
    bench.run(1.0)
    assert bench.data == b""
    bench.ask("VNASY,1")
    bench.run(0.2)
    assert b"$VNDTV" in bench.data


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("$VNRRG,1*00", "03"), ("$VNRRG,1", "03"), ("$VNXYZ*XX", "04"), ("$VNRRG*XX", "05"), ("$VNWRG,6*XX", "05"),
        ("$VNWRG,75,1,8,01*XX", "05"), ("$VNWRG,75,1,8,01,1,1*XX", "06"), ("$VNWRG,6,99*XX", "07"),
        ("$VNWRG,75,1,0,01,0001*XX", "07"), ("$VNWRG,75,1,8,80,0001*XX", "07"), ("$VNRRG,x*XX", "07"),
        ("$VNRRG,99*XX", "08"), ("$VNWRG,1,VN-9000*XX", "09"), ("$VNTAR*XX", "09"), ("$VNWRG,5,1234*XX", "0C"),
        ("$" + "x" * 600, "02"),
    ],
)  # fmt: skip
def test_errors(sent: str, code: str) -> None:
    bench = Bench()
    bench.sensor.receive(sent.encode() + b"\r\n")
    assert bytes(bench.data).startswith(b"$VNERR," + code.encode()) and bench.sensor.errors == 1


def test_settings_are_saved_and_restored() -> None:
    bench = Bench()
    bench.ask("VNWRG,06,1")
    assert bench.ask("VNWNV") == "$VNWNV"
    bench.ask("VNWRG,06,19")
    assert bench.ask("VNRST") == "$VNRST" and bench.ask("VNRRG,06") == "$VNRRG,06,1"
    assert bench.ask("VNRFS") == "$VNRFS" and bench.ask("VNRRG,6") == "$VNRRG,6,14"
    assert bench.ask("VNKMD,1") == "$VNKMD,1"


def test_without_satellites_the_ins_keeps_its_position() -> None:
    bench = Bench("VN-200")
    bench.run(0.1)
    assert ",0006," in bench.ask("VNRRG,63")
    del bench.values["gps"]
    bench.run(0.1)
    assert ",0003," in bench.ask("VNRRG,63") and ",+41.18000000," in bench.ask("VNRRG,63")
    assert bench.ask("VNRRG,58").split(",")[4:6] == ["0", "00"]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.binary(max_size=50) | st.sampled_from([b"$VNWRG,75,", b"*XX\r\n", b"$VNRRG,", b",,", b"$", b"\n"])))
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    bench = Bench()
    for part in parts:
        bench.sensor.receive(part)
    bench.run(0.02)
    bench.sensor.receive(b"\r\n")
    assert bench.ask("VNRRG,1") == "$VNRRG,1,VN-100"


class Peer:
    """Connection of a host with the sensor of a bench."""

    def __init__(self, bench: Bench) -> None:
        self.receive = bench.sensor.receive

    def close(self) -> None: ...


async def test_the_driver_vectornav_vn200(tmp_path: Path) -> None:
    """It runs unchanged, at a pseudo-terminal."""
    bench, link = Bench("VN-200"), str(tmp_path / "tty")
    port = PtyPort(lambda send: Peer(bench), link)
    bench.sensor.send = port.send
    await port.open()
    bench.run(0.1)

    def drive() -> None:
        with VN200(link, timeout=30.0) as sensor:
            assert sensor.read_model_number() == "VN-200" and sensor.read_serial_number() > 0
            assert sensor.read_yaw_pitch_roll() == pytest.approx({"yaw": -130.817, "pitch": -11.459, "roll": 5.730})
            assert sensor.read_accel() == pytest.approx({"accel_x": 0.1, "accel_y": -0.2, "accel_z": -9.8})
            assert sensor.read_gyro_z() == pytest.approx(0.03) and sensor.read_mag_z() == pytest.approx(0.4)
            assert sensor.read_temperature() == 12.5 and sensor.read_pressure() == pytest.approx(201.325)
            fix, ins = sensor.read_gps(), sensor.read_ins()
            assert (fix["latitude"], fix["gps_fix"], fix["num_satellites"]) == pytest.approx((41.18, 3, 11))
            assert (ins["longitude"], ins["ins_status"], ins["yaw"]) == pytest.approx((-8.70, 6, -130.817))
            assert sensor.read_delta_theta_velocity()["delta_time"] == pytest.approx(0.005)
            with pytest.raises(VN200Error, match="Invalid Register"):
                sensor._read_register(99)

    await asyncio.to_thread(drive)
    await port.close()


SEA = """<time step="5 ms"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="20 m"/></world>
<network keepalive_timeout="20 s"/><fleet><vehicle name="boat" model="jolner" position="0 0 0 m" attitude="0 0 30 deg"
 client="optional"><sensors><ahrs rate="50 Hz"/><imu rate="50 Hz"/><gps rate="5 Hz"/></sensors></vehicle></fleet>"""


@pytest.mark.system
def test_the_driver_reads_the_sensor_of_a_boat_on_a_server(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    path, link = config(SEA).path, str(tmp_path / "tty")
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "ahrs", "imu", "gps", path, "-s", server.name))
    device(processes, server, "vectornav", "--model", "VN-200", "--link", link)
    server.send("start")
    found: list[dict[str, Any]] = []
    with VN200(link, timeout=60.0) as sensor:
        while len(found) < 50 or sensor.read_gps_fix() != 3:
            found += [sensor.read_yaw_pitch_roll()] if sensor.read_accel_z() else []
        place = sensor.read_ins()
        force = sensor.read_accel_z()
    state = SharedState(server.name)
    heading = math.degrees(euler(state.snapshot().state[state.row("boat")]["q_WB"])[2])
    assert found[-1]["yaw"] == pytest.approx(heading, abs=3.0)
    assert force == pytest.approx(-9.8, abs=2.0) and place["latitude"] == pytest.approx(41.18, abs=3e-4)
