"""`wavesim conformance --device`: a sound device of a user's own passes, and each defect is found."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CLI, Server, wavesim
from tests.devices.bench import device, processes
from tests.devices.gauge import Gauge
from wavesim_conformance.device import DeviceChecker, noise, places_of
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = pytest.mark.system

GAUGE = Path(__file__).with_name("gauge.py")
#: a device that closes the connection of a second host
ONE_HOST = """
class Connection:
    def __init__(self, device):
        self.device = device

    def receive(self, data): ...

    def close(self):
        self.device.hosts -= 1

class Device:
    def __init__(self, broker, send, sensors):
        self.hosts = 0

    def connect(self, port, send):
        self.hosts += 1
        if self.hosts > 1:
            send(b"")
        return Connection(self)

    def step(self, step): ...
"""
DEFECTS: dict[str, tuple[Callable[[str], str], str]] = {
    "none": (lambda text: text, ""),
    "raises": (lambda text: text.replace('"FAIL"', '"="'), "the device reports no failure: .*'a defect'"),
    "ends": (
        lambda text: text.replace('raise ValueError("a defect")', "os._exit(1)").replace('"FAIL"', '"="'),
        "incomplete and malformed commands do not harm the device: the device no longer answers",
    ),
    "closes": (
        lambda _: ONE_HOST,
        "a host that never reads does not harm the device: the device no longer serves other hosts",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_device_of_ones_own(tmp_path: Path, defect: str) -> None:
    change, finding = DEFECTS[defect]
    path = tmp_path / "own.py"
    path.write_text("import os\n" + change(GAUGE.read_text()).replace("from __future__ import annotations", ""))
    options = ["--port", "{port}", "--lockstep", "0.1", "--at", "tcp:0"]
    command = [*CLI, "device", "run", str(path), "{name}", *options]
    done = wavesim("conformance", "--device", "--send", r"P\r\n", "--", *command)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    if not finding:
        assert done.returncode == 0 and not failed and done.stdout.count("ok  ") == 8, done
        return
    assert done.returncode == 5 and len(failed) == 1, done
    assert re.search(finding, failed[0]), failed[0]


EMPTY_SEA = """<time step="10 ms"/><network keepalive_timeout="20 s"/><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="optional"><sensors><pressure rate="10 Hz"/></sensors></vehicle></fleet>"""


@pytest.mark.parametrize("defect", ["none", "closes"])
def test_a_device_that_runs_already(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
    defect: str,
) -> None:
    """A device at a real server with a stopped clock: it answers commands, but no state arrives."""
    change, _ = DEFECTS[defect]
    path = tmp_path / "own.py"
    path.write_text("import os\n" + change(GAUGE.read_text()).replace("from __future__ import annotations", ""))
    server = serve(config(EMPTY_SEA).path, "--speed", "1")
    place = device(processes, server, "run", "--at", "tcp:0", own=str(path))
    command = ("conformance", "--device", "--at", f"tcp:{place.rpartition(':')[2]}", "--send", r"P\r\n")
    done = wavesim(*command)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    if defect == "closes":
        assert done.returncode == 5 and "the device sent no bytes" in failed[0], "it answers nothing"
    else:
        assert done.returncode == 0 and done.stdout.count("ok  ") == 5, (
            done,
            "its failures are only in its own output",
        )
    processes[-1].terminate()
    processes[-1].wait(15)
    gone = wavesim(*command)
    assert gone.returncode == 5 and "the device sent no bytes" in gone.stdout, gone


def test_a_device_that_does_not_start_is_a_finding(tmp_path: Path) -> None:
    found = DeviceChecker([*CLI, "device", "run", str(tmp_path / "none.py"), "{name}", "--port", "{port}"]).run()
    assert [f.ok for f in found] == [False] and "joins" in found[0].rule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--send", r"\x", "--device", "--", "x"), "invalid escape"),
        (("--send", "", "--device", "--", "x"), "the command is empty"),
        (("--send", "P", "--", "x"), "without --device"),
        (("--sensor", "ctd", "--device", "--", "x"), "with --device"),
        (("--device",), "COMMAND is missing"),
        (("--device", "--at", "tcp:x"), "invalid port location 'tcp:x'"),
        (("--device", "--at", "4001"), "invalid port location '4001'"),
        (("--device", "--at", "tcp:4001", "--", "x"), "without COMMAND"),
        (("--device", "--at", "tcp:4001", "--body", "a"), "with --device"),
        (("--at", "127.0.0.1:1", "--at", "127.0.0.1:2", "--body", "a"), "use --at HOST:PORT --body NAME"),
    ],
)
def test_an_invalid_command_line_is_refused(options: tuple[str, ...], message: str) -> None:
    done = wavesim("conformance", *options)
    assert done.returncode == 2 and message in done.stderr, done.stderr


def test_the_places_of_the_ports() -> None:
    assert places_of("a DVL of 'rov' at json 127.0.0.1:1, pd6 udp 127.0.0.1:2, serial /dev/pts/3\n") == [
        "127.0.0.1:1",
        "udp 127.0.0.1:2",
        "/dev/pts/3",
    ]
    assert places_of("a gauge of 'rov' at udp 127.0.0.1:2\n") == ["udp 127.0.0.1:2"]


def test_the_noise_is_one_megabyte_and_repeats() -> None:
    parts = list(noise(7, [b"P\r\n"]))
    assert sum(map(len, parts)) == 1_000_000 and parts == list(noise(7, [b"P\r\n"])) != list(noise(8, [b"P\r\n"]))
    assert b"P\r\nP\r\n" in b"".join(parts)


def test_the_gauge_counts_lines_that_are_too_long() -> None:
    gauge = Gauge(None, lambda _: None, {})
    gauge.receive(b"x" * 300)
    assert gauge.errors == 1
