"""Ten minutes of simulation with VectorNav's and Nortek's sensors and their judges: no byte is lost, and memory is constant."""

from __future__ import annotations

import logging
import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from nucleus_driver import NucleusDriver
from vectornav import VN200

from tests.conftest import Server
from tests.devices import test_nucleus, test_vectornav
from tests.devices.bench import device, processes
from tests.e2e.test_remote_emulators import await_lockstep
from tests.e2e.test_remote_emulators import step as advance
from tests.nursery import launch
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.long, pytest.mark.timeout(1800)]

DURATION_S = 600
GROWTH_KB = 1024  #: of the device's memory between the first minute and the end
Start = Callable[..., tuple[Server, str]]


@pytest.fixture
def start(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> Start:
    """Start a server at a stopped clock with its emulators and a device in lockstep; return the places of its ports."""

    def run(sea: str, sensors: tuple[str, ...], kind: str, *options: str) -> tuple[Server, str]:
        sea = sea.replace('step="5 ms"', 'step="10 ms"').replace('rate="8 Hz"', 'rate="4 Hz"')
        sea = sea.replace("<network ", '<network lockstep_timeout="60 s" ')
        path = config(sea).path
        server = serve(path, "--speed", "0")
        processes.append(launch("emulate", *sensors, path, "-s", server.name))
        await_lockstep(server, sensors)
        return server, device(processes, server, kind, "--lockstep", "0.1", *options)

    return run


def memory_kb(process: subprocess.Popen[str]) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert found is not None
    return int(found[1])


def summary(server: Server, device: subprocess.Popen[str]) -> str:
    """The last line of a device, after the end of its server."""
    assert server.end() == 0
    assert device.stdout is not None
    text = device.stdout.read()
    assert "failed" not in text
    return text.splitlines()[-1]


def test_vn_200(start: Start, processes: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    link = str(tmp_path / "tty")
    options = ("--model", "VN-200", "--link", link)
    server, _ = start(test_vectornav.SEA, ("ahrs", "imu", "gps"), "vectornav", *options)
    times, memory = list[float](), list[int]()
    with VN200(link, timeout=120.0) as sensor:  # it pauses the asynchronous messages, so that no byte is unread
        for second in range(1, DURATION_S + 1):
            advance(server, 101 if second == 1 else 100)
            found = sensor.read_ins()
            times.append(found["ins_time"])
            assert abs(found["pitch"]) < 10.0 and abs(sensor.read_accel_z() + 9.8) < 3.0
            assert len(sensor.read_imu()) == 11
            if second % 60 == 0:
                memory.append(memory_kb(processes[-1]))
    assert [b - a for a, b in pairwise(times)] == pytest.approx([1.0] * (DURATION_S - 1), abs=0.11)
    assert memory[-1] - memory[0] < GROWTH_KB, memory
    text = summary(server, processes[-1])
    assert "dropped" not in text and "invalid" not in text, text


def test_nucleus_1000(start: Start, processes: list[subprocess.Popen[str]], caplog: pytest.LogCaptureFixture) -> None:
    ports = ("--command", "tcp:0", "--stream", "off")
    server, place = start(test_nucleus.SEA, ("dvl", "ahrs", "imu", "ctd"), "nucleus", *ports)
    driver = NucleusDriver()
    driver.set_tcp_configuration(host="127.0.0.1", port=int(place.rpartition(":")[2]))
    times: dict[int, list[float]] = {0xB4: [], 0xAA: [], 0xD2: []}
    memory = list[int]()
    with caplog.at_level(logging.WARNING):
        assert driver.connect("tcp") is True
        assert b"OK\r\n" in driver.commands.set_trig(freq=4) and b"OK\r\n" in driver.start_measurement()
        last = times[0xD2]
        for second in range(10, DURATION_S + 1, 10):
            advance(server, 1001 if second == 10 else 1000)
            while not last or last[-1] - last[0] < second - 0.35:
                fields = driver.read_packet(timeout=120.0)
                assert fields is not None
                if (kind := int(fields["id"])) in times:
                    times[kind].append(fields["timeStamp"] + 1e-6 * fields["microSeconds"])
            if second % 60 == 0:
                memory.append(memory_kb(processes[-1]))
        assert driver.read_condition() is None, "a packet with a wrong check sum"
        driver.stop()
        driver.disconnect()
    assert not caplog.records
    for kind, period in ((0xB4, 0.25), (0xAA, 0.25), (0xD2, 0.1)):
        steps = [b - a for a, b in pairwise(times[kind])]
        assert len(steps) > 0.99 * DURATION_S / period
        assert steps == pytest.approx([period] * len(steps), abs=0.011), "a packet is missing, or repeated"
    assert memory[-1] - memory[0] < GROWTH_KB, memory
    text = summary(server, processes[-1])
    assert "dropped" not in text and "invalid" not in text, text
