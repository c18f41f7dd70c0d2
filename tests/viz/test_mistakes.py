"""Mistakes with the viewer: one clear message, and the right exit code."""

from __future__ import annotations

import html
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CLI, Server, wavesim
from tests.faults.test_mistakes import clear
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.system
ONE_BOAT = '<fleet><vehicle name="boat" model="jolner" position="0 0 0 m"/></fleet>'
EMPTY = '<fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>'


def test_no_server(name: str) -> None:
    clear(wavesim("viz", "--server", name, "--port", "0"), 3, f"no server named '{name}' is running; ")
    clear(
        wavesim("viz", "--remote", "127.0.0.1:1", "--port", "0"),
        5,
        "no server answers at 127.0.0.1:1; is one running there?",
    )


def test_no_log(tmp_path: Path) -> None:
    clear(wavesim("viz", tmp_path / "absent.mcap", "--port", "0"), 6, "cannot read")
    (tmp_path / "foreign.mcap").write_bytes(b"\x89MCAP0\r\n" + bytes(100))
    clear(wavesim("viz", tmp_path / "foreign.mcap", "--port", "0"), 6, "is not a WaVeSim log")
    (tmp_path / "text.mcap").write_text("hello")
    clear(wavesim("viz", tmp_path / "text.mcap", "--port", "0"), 6, "is not an MCAP file")


def test_wrong_words(tmp_path: Path) -> None:
    for arguments, message in (
        (("viz", "--remote", "somewhere"), "--remote expects ADDRESS:PORT"),
        (("viz", "x.mcap", "--remote", "1.2.3.4:5"), "a log or --remote"),
        (("configure", "--address", "here"), "--address here: not an IP address"),
        (("configure", "--folder", tmp_path / "absent"), "does not exist"),
    ):
        done = wavesim(*arguments)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_port_taken() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        clear(wavesim("configure", "--port", s.getsockname()[1]), 8, "select another with --port")
        # before a log is read, which may be long
        clear(wavesim("viz", "absent.mcap", "--port", s.getsockname()[1]), 8, "select another with --port")


def test_page_not_built(tmp_path: Path) -> None:
    """A copy of the package without its page."""
    import shutil

    import wavesim_viz

    shutil.copytree(
        Path(wavesim_viz.__file__).parent,
        tmp_path / "wavesim_viz",
        ignore=shutil.ignore_patterns("static", "__pycache__"),
    )
    done = wavesim("configure", env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"})
    clear(done, 11, "the viewer's page is not built; run `make web`")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_on_a_signal(end: signal.Signals) -> None:
    """Ctrl-C, kill, a closed terminal: no traceback, code 0."""
    process = subprocess.Popen([*CLI, "configure", "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "viewer of 'configurator' at http://127.0.0.1:" in process.stderr.readline()
    process.send_signal(end)
    assert process.wait(10) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_no_display(tmp_path: Path) -> None:
    done = subprocess.Popen(
        [*CLI, "configure", "--port", "0", "--open"],
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": str(tmp_path), "BROWSER": "absent-browser"},
    )
    assert done.stderr is not None
    done.stderr.readline()
    assert "cannot open a browser here" in done.stderr.readline()
    done.terminate()
    done.wait(10)
    done.stderr.close()


def test_the_command_line_of_the_browser_does_not_show_the_token(tmp_path: Path) -> None:
    """Other users of the machine can read it. It names a private file that leads to the printed address."""
    os.mkfifo(seen := tmp_path / "seen")
    (browser := tmp_path / "browser").write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o700)
    viewer = subprocess.Popen(
        [*CLI, "configure", "--port", "0", "--open"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"BROWSER": f"{browser} %s"},
    )
    assert viewer.stderr is not None
    printed = "http://" + viewer.stderr.readline().split("http://")[1].split()[0]
    address = seen.read_text().strip()
    assert "?token=" in printed and printed.endswith("#configure") and "token" not in address
    file = Path(address.removeprefix("file://"))
    assert file.stat().st_mode & 0o777 == 0o600 and html.escape(printed) in file.read_text()
    viewer.terminate()
    assert viewer.wait(10) == 0 and not file.exists()
    viewer.stderr.close()


def test_a_configuration_that_changed_is_reported(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str
) -> None:
    """The viewer reads the server's file: if that is another by now, it says so and draws what it can."""
    from wavesim_viz.live import LiveSource, SourceConfiguration

    path = config(EMPTY).path
    serve(path)
    before = LiveSource(name)
    assert before.scene()[1]["warning"] == "" and before.configuration() == SourceConfiguration(str(path))
    path.write_text(path.read_text() + " ")
    after = LiveSource(name)
    assert "has changed since the server loaded it" in after.scene()[1]["warning"]
    for live in (before, after):
        shown = live.configuration()
        assert shown.text == str(path) and "has changed since the start" in shown.note, "rays of another configuration"
    path.unlink()
    live = LiveSource(name)
    assert live.configuration() == SourceConfiguration("")
    assert "cannot read the configuration" in live.scene()[1]["warning"]
    frame = live.frame()
    assert frame is not None and len(frame.bodies) == 1
    assert [b[1] for b in live.roster()] == ["b"]


def test_a_viewer_could_not_write(config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str) -> None:
    """It maps the server's memory to read only: a fault of the viewer, or of who breaks into it, changes no simulation."""
    from wavesim_viz.live import LiveSource

    serve(config(EMPTY).path)
    live = LiveSource(name)
    assert live.frame() is not None and live.panel(0) is not None
    segment = f"/dev/shm/wavesim.{name}."
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if segment in line]
    assert len(maps) >= 2
    assert [m[1] for m in maps if "w" in m[1]] == []
    for area in (live.state.simulation, live.state.vehicles):
        with pytest.raises(TypeError, match="read-only"):
            area["clock" if "clock" in area.tables else "state"].header[0] = 1


def test_a_fault_of_an_actuator_is_shown_until_it_is_repaired(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str
) -> None:
    """A refused one is not. The answer names part, kind and body."""
    from wavesim_viz.live import LiveSource
    from wavesim_viz.page_protocol import FaultRequest

    server = serve(config(ONE_BOAT).path)
    live = LiveSource(name)

    def faults() -> dict[str, str]:
        panel = live.panel(0)
        assert panel is not None and panel["actuation"] is not None
        return panel["actuation"]["faults"]

    assert faults() == {}
    ok, text = live.fault(FaultRequest(0, "starboard", "stuck", "", ""))
    assert ok and text.startswith("fault 'stuck' in 'starboard' of 'boat' starting at"), text
    assert not live.fault(FaultRequest(0, "port", "no such fault", "", ""))[0]
    assert faults() == {"starboard": "stuck"}
    assert live.fault(FaultRequest(0, "starboard", "none", "", ""))[0]
    assert faults() == {}
    server.send("fault", body="boat", part="port", kind="frozen", amount="2 s")  # from elsewhere
    assert faults() == {"port": "frozen"}
    server.send("step", ticks=600)
    server.wait(lambda s: float(str(s["time_ns"])) > 2e9)
    assert faults() == {}, "the actuator recovers without a command"
