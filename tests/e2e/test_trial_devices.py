"""Devices that a trial starts, with a driver that knows nothing of the simulation: two runs have the same hash."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run_trial, wavesim
from wavesim_devices.traffic import read_recording
from wavesim_sdk.log import Log, read
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.system

#: a driver of a nano-modem: it knows only its port, and runs in the steps of the program on board
PROGRAM = """
import socket, sys
from wavesim_sdk.broker import Broker

here = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with Broker(here["--vehicle"], ("127.0.0.1", int(here["--port"])), lockstep=0.1) as broker:
    steps = broker.steps()
    next(steps)  # the devices have joined by then
    driver = socket.create_connection(("127.0.0.1", {port}))
    driver.setblocking(False)
    for n, step in enumerate(steps):
        try:
            print(f"{{step.time:.3f}}", driver.recv(4096), flush=True)
        except BlockingIOError:
            pass
        if n % 10 == 0:
            driver.sendall(b"$P002")
        broker.answer([3.0, 0.0, 0.0])
"""
TRANSDUCER = '<transducer turn_around="50 ms"><modem address="{}" bit_rate="1000" preamble="20 ms"/></transducer>'
CONFIG = """<time step="10 ms" duration="6 s" pace="fast"/><fleet><sensors><gps rate="5 Hz"/><ahrs rate="10 Hz"/></sensors>
<vehicle name="auv" model="lauv" position="0 0 5 m" client="required">{one}
<program run="driver.py"/>
<device name="nmea" options="--tcp 0"/>
<device name="nanomodem" options="--address 1 --tcp {port}"/>
<device name="nmea" options="--link auv-nmea" period="0 s"/></vehicle>
<buoy name="beacon" model="buoy" position="90 40 2 m">{two}<device name="nanomodem" options="--address 2" period="20 ms"/></buoy>
</fleet>"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def trial(loaded: LoadedConfig, out: Path, *more: str) -> tuple[Log, str]:
    name = f"devices{os.getpid()}"
    done = run_trial(loaded.path, out, name, "--no-plots", *more)
    assert done.returncode == 0, done.stderr
    return read(out / name / "run.mcap"), (out / name / "program-auv.txt").read_text()


@pytest.mark.parametrize("where", [(), ("--in-process",)])
def test_a_trial_with_devices_and_a_driver_repeats(
    config: Callable[..., LoadedConfig], tmp_path: Path, where: tuple[str, ...]
) -> None:
    port = free_port()
    (tmp_path / "driver.py").write_text(PROGRAM.format(port=port))
    loaded = config(CONFIG.format(port=port, one=TRANSDUCER.format(1), two=TRANSDUCER.format(2)))
    first, read_by_driver = trial(loaded, tmp_path / "a", *where)
    assert "#R002T" in read_by_driver, read_by_driver
    again, read_again = trial(loaded, tmp_path / "b", *where)
    assert read_again == read_by_driver and again.content_hash == first.content_hash
    assert len(first.series["/acoustics/sent"].records) >= 8, "queries and replies"
    outputs = {p.name for p in (tmp_path / "a").rglob("device-*.txt")}
    assert outputs == {f"device-{d}.txt" for d in ("auv-nmea", "auv-nmea-2", "auv-nanomodem", "beacon-nanomodem")}


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ('name="nema"', "device 'nema': unknown device; did you mean 'nmea'?"),
        ('name="nmea" options="--talker GP"', "invalid talker 'GP'"),
        ('name="nmea" options="--tcp"', "--tcp"),
        ('name="nmea" options="--lockstep 1"', "remove --lockstep from `options`: the trial sets it; set `period`"),
        ('name="nmea" options="\'"', "No closing quotation"),
        ('name="run"', "device 'run': unknown device"),
        (
            'name="lauv-actuators"',
            "this device drives the body: start it with `wavesim device lauv-actuators c --pilot` instead",
        ),
        ('options="--tcp 0"', "<device>: set either `name` or `run`"),
        ('run="mine.py"', "device 'mine': there is no file"),
        ('name="nmea" options="--fault lots"', "unknown fault 'lots'"),
        ('name="nmea" period="15 ms"', "period 0.015 s is not a multiple of the time step 0.01 s"),
    ],
)
def test_an_invalid_device_is_refused_with_its_line(tmp_path: Path, device: str, text: str) -> None:
    path = tmp_path / "config.xml"
    path.write_text(
        f'<wavesim><time step="10 ms"/><fleet>\n<buoy name="c" model="buoy" position="0 0 2 m">\n<device {device}/></buoy></fleet></wavesim>'
    )
    done = wavesim("check", path)
    assert done.returncode == 2 and text in done.stderr and f"{path}:3:" in done.stderr, done.stderr


def test_a_device_that_fails_ends_the_trial_with_its_last_words(
    config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        device = f'<device name="nmea" options="--tcp {port}"/>'
        loaded = config(
            f'<time step="10 ms" duration="1 s" pace="fast"/><fleet><buoy name="c" model="buoy" position="0 0 2 m">{device}</buoy></fleet>'
        )
        done = run_trial(loaded.path, tmp_path / "out", f"taken{os.getpid()}", "--no-plots")
    assert done.returncode == 10
    assert "device-c-nmea exited with code 1 before the trial started: " in done.stderr
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr


def test_a_device_of_ones_own_is_part_of_a_trial_and_recorded(
    root: Path, config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    (tmp_path / "gauge.py").write_text((root / "tests/devices/gauge.py").read_text())
    device = '<device run="gauge.py" options="--option interval=0.5 --record gauge.jsonl --print"/>'
    loaded = config(
        f'<time step="10 ms" duration="2 s" pace="fast"/><fleet><buoy name="c" model="buoy" position="0 0 2 m">'
        f'<sensors><pressure rate="10 Hz"/></sensors>{device}</buoy></fleet>'
    )
    done = run_trial(loaded.path, tmp_path / "out", f"own{os.getpid()}", "--no-plots")
    assert done.returncode == 0, done.stderr
    events = [e for e in read_recording(loaded.path.parent / "gauge.jsonl").events if e.what == "sent"]
    assert [e.time for e in events] == pytest.approx([0.1, 0.6, 1.1, 1.6], abs=0.11)
    assert all(e.data.endswith(b" dbar\r\n") for e in events) and float(events[-1].data.split()[0]) > 10.0
    (output,) = (tmp_path / "out").rglob("device-c-gauge.txt")
    assert str(events[-1]) in output.read_text().splitlines()
