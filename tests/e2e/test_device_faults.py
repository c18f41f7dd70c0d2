"""Faults of the line between a device and its hosts, switched while the device runs: by a command and by the schedule."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server, run_trial, wavesim
from tests.devices.bench import device, processes
from tests.e2e.test_trial_devices import free_port
from tests.e2e.test_trial_eight_devices import PROGRAM
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.log import Log, read
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("device-faults")]

SEA = """<time step="10 ms" duration="4 s" pace="fast"/><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="{client}"><sensors><gps rate="10 Hz" position="0 0 -1 m"/></sensors>
{more}</vehicle></fleet>"""
TRIAL = """<program run="driver.py"/>
<device name="nmea" options="--tcp {nmea}"/><device name="nmea" options="--tcp {other}"/>
<fault part="device:nmea" kind="silent" at="1 s" for="1 s" every="2 s"/>
<fault part="device:nmea-2" kind="late" amount="0.5 s" at="0 s" for="2 s"/>"""


def trial(folder: Path, name: str) -> tuple[Log, dict[str, list[float]]]:
    """The log, and the times at which the driver received something from each device."""
    done = run_trial(folder / "config.xml", folder, name)
    assert done.returncode == 0, done.stderr
    times: dict[str, list[float]] = {}
    for line in (folder / name / "program-boat.txt").read_text().splitlines():
        which, time, _ = json.loads(line)
        times.setdefault(which, []).append(time)
    return read(folder / name / "run.mcap"), times


def test_scheduled_faults_of_devices_repeat(tmp_path: Path) -> None:
    ports = {"nmea": free_port(), "other": free_port()}
    (tmp_path / "driver.py").write_text(PROGRAM)
    (tmp_path / "boat.json").write_text(json.dumps({d: (p, []) for d, p in ports.items()}))
    sea = SEA.format(client="required", more=TRIAL.format(**ports))
    (tmp_path / "config.xml").write_text(f"<wavesim>{sea}</wavesim>")
    log, times = trial(tmp_path, f"faulted{os.getpid()}")
    # a step of the program contains what the devices sent at the step before
    assert not [t for t in times["nmea"] if 1.1 < t <= 2.05 or t > 3.1], times
    assert [t for t in times["nmea"] if t <= 1.1] and [t for t in times["nmea"] if 2.05 < t <= 3.1]
    assert min(times["other"]) == pytest.approx(min(times["nmea"]) + 0.5, abs=0.11)
    faults = [(t // 10**6, f["part"], f["kind"], f["begins"]) for t, f in log.json["/faults"]]
    assert list(dict.fromkeys(faults)) == [
        (0, "device:nmea-2", "late", True),
        (1000, "device:nmea", "silent", True),
        (2000, "device:nmea", "none", False),
        (2000, "device:nmea-2", "none", False),
        (3000, "device:nmea", "silent", True),
        (4000, "device:nmea", "none", False),
    ]
    again = trial(tmp_path, f"again{os.getpid()}")
    assert again[1] == times and again[0].content_hash == log.content_hash


#: a device that sends the number of its steps since it was created
COUNTER = """
class Device:
    def __init__(self, broker, send, sensors):
        self.send, self.steps = send, 0

    def receive(self, data): ...

    def step(self, step):
        self.steps += 1
        self.send(b"%d\\n" % self.steps)
"""
EMPTY_SEA = """<time step="10 ms"/><network keepalive_timeout="20 s" lockstep_timeout="20 s"/><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="optional"/></fleet>"""


class RunningDevice:
    """The counter as a device in lockstep with a stopped server, and a host at its port."""

    def __init__(self, server: Server, place: str) -> None:
        self.server, self.port = server, int(place.rpartition(":")[2])
        self.host = socket.create_connection(("127.0.0.1", self.port))

    def step(self, seconds: float = 0.3) -> None:
        """Advance by three steps of the device."""
        end = int(str(self.server.status()["tick"])) + round(seconds * 100)
        self.server.send("step", ticks=round(seconds * 100))
        self.server.wait(lambda s: int(str(s["tick"])) == end)

    def read(self) -> list[int]:
        """Read what the device has sent; an empty list also stands for a closed connection."""
        self.host.setblocking(False)
        try:
            return [int(line) for line in self.host.recv(4096).split()]
        except BlockingIOError:
            return []

    def fault(self, *words: str) -> tuple[bool, str]:
        done = wavesim("fault", "boat", "device:counter", *words, "-s", self.server.name)
        return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def running(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
) -> RunningDevice:
    (tmp_path / "counter.py").write_text(COUNTER)
    server = serve(config(EMPTY_SEA).path, "--speed", "0", "--log", str(tmp_path / "log.mcap"))
    options = ["--lockstep", "0.1", "--at", "tcp:0"]
    running = RunningDevice(server, device(processes, server, "run", *options, own=str(tmp_path / "counter.py")))
    running.step(0.31)  # the device takes part from the first tick after it joined
    assert running.read()
    return running


def test_faults_switched_by_command(running: RunningDevice, tmp_path: Path) -> None:
    running.step()
    (first, *_, last) = running.read()
    assert last == first + 2
    ok, text = running.fault("silent")
    assert ok and "fault 'silent' in 'device:counter' of 'boat' starting at " in text
    running.step()
    assert running.read() == []
    assert running.fault("none")[0]
    running.step()
    assert running.read() == [last + 4, last + 5, last + 6]
    assert running.fault("late", "0.2s")[0]
    running.step()
    assert running.read() == [last + 7]
    assert running.fault("doubled", "1")[0], "it replaces the fault before; a line keeps its order"
    running.step()
    assert running.read()[:2] == [last + 8, last + 9]
    assert running.fault("restarted")[0]
    running.step()
    running.host.setblocking(True)
    while running.host.recv(4096):
        pass
    assert running.fault("none")[0]
    running.step()
    running.host = socket.create_connection(("127.0.0.1", running.port))
    running.step()
    assert running.read()[-1] <= 6, "it has lost its state"
    assert running.server.end() == 0
    found = [(f["part"], f["kind"], f.get("amount")) for _, f in read(tmp_path / "log.mcap").json["/faults"]]
    assert [(k, a) for part, k, a in found if part == "device:counter"] == [
        ("silent", 0.0),
        ("none", 0.0),
        ("late", 0.2),
        ("doubled", 1.0),
        ("restarted", 0.0),
        ("none", 0.0),
    ]


INVALID = (
    ("device:conter", ["silent"], "'boat' has no device 'conter'; did you mean 'counter'?"),
    ("device:counter", ["sillent"], "unknown fault 'sillent'; did you mean 'silent'?"),
    ("device:counter", ["late"], "fault 'late' needs a delay"),
    ("device:counter", ["lost", "2"], "needs a probability per byte"),
    ("device:counter", ["silent", "--field", "x"], "remove the field"),
    ("counter", ["silent"], "to name a device, use 'device:NAME'"),
)


def test_an_invalid_fault_is_refused(running: RunningDevice) -> None:
    for part, words, text in INVALID:
        done = wavesim("fault", "boat", part, *words, "-s", running.server.name)
        assert done.returncode != 0 and text in done.stderr, done.stderr
    running.step()
    assert running.read()


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ('part="device:nema" kind="silent"', "unknown device 'nema'; did you mean 'nmea'?"),
        ('part="device:nmea" kind="bias"', "unknown fault 'bias'"),
        ('part="device:nmea" kind="late" amount="5"', "has no unit"),
        ('part="device:nmea" kind="silent" field="x"', "remove `field`, which applies only to sensors"),
    ],
)
def test_an_invalid_scheduled_fault_is_refused(config: Callable[..., LoadedConfig], fault: str, text: str) -> None:
    sea = SEA.format(client="optional", more=f'<device name="nmea"/><fault at="1 s" {fault}/>')
    with pytest.raises(ConfigError, match=re.escape(text)):
        config(sea)


def test_a_device_that_joins_again_has_the_fault_again(
    running: RunningDevice, processes: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    assert running.fault("silent")[0]
    processes[-1].terminate()
    processes[-1].wait(15)
    running.server.wait(lambda s: s["clients"] == [])
    options = ["--lockstep", "0.1", "--at", "tcp:0"]
    place = device(processes, running.server, "run", *options, own=str(tmp_path / "counter.py"))
    again = RunningDevice(running.server, place)
    again.step(0.31)
    again.step()
    assert again.read() == []
    assert again.fault("none")[0]
    again.step()
    assert again.read()
