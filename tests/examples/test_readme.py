"""The tour of the README works: its program runs, and its commands and files exist."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server, wavesim
from wavesim_world.config import load


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text()


@pytest.mark.system
def test_the_tour(readme: str, root: Path, tmp_path: Path, serve: Callable[..., Server], name: str) -> None:
    (options,) = re.findall(r"^wavesim serve config\.xml (.*)$", readme, re.MULTILINE)
    server = serve(root / "config.xml", "--log", "", *options.split())
    assert "missing    lauv, remus, jolner: " in wavesim("status", "-s", name).stdout, (
        "the three that the trial would wait for"
    )
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    hello = tmp_path / "hello.py"
    hello.write_text(program.replace('"demo"', repr(name)))
    process = subprocess.Popen(
        [sys.executable, "-u", str(hello)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        server.wait(lambda s: s["clients_total"] == 1)
        for command in (["speed", "1"], ["start"]):
            assert wavesim(*command, "-s", name).returncode == 0
        assert process.stdout is not None
        seconds = []
        for line in process.stdout:
            seconds.append(int(line.split()[0]))
            if len(seconds) == 1:
                assert line.split()[-5:] == ["speed", "over", "ground", "0.00", "m/s"], "a boat at rest"
            if float(line.split()[-2]) > 0.2:
                break
        else:
            pytest.fail("the boat did not move")
        emulator = subprocess.Popen(
            [sys.executable, "-m", "wavesim_sdk", "emulate", "ctd", str(root / "config.xml"), "-s", name],
            stderr=subprocess.DEVNULL,
        )
        from wavesim_sdk.attach import SharedState

        reader = SharedState(name)
        server.wait(lambda _: bool(reader.values("ctd")["sequence"].max() > 3))
        emulator.terminate()
        emulator.wait()
        assert len(set(seconds)) == len(seconds), "one line for each simulated second"
        assert wavesim("speed", "0", "-s", name).returncode == 0
        end_s = load(root / "config.xml").config.time.duration
        server.wait(lambda s: s["time_ns"] > (end_s + 1.0) * 1e9 and s["state"] == "running", timeout=90.0)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.stderr is not None and process.stderr.read() == "", "Ctrl-C is how it ends"
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    for command in (["pause"], ["step", "25"], ["speed", "0"], ["shutdown"]):
        assert wavesim(*command, "-s", name).returncode == 0, command


def test_links_and_files_exist(root: Path) -> None:
    for page in [root / "README.md", *(root / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} names {target}"


def test_no_machine_of_ours_is_named(root: Path) -> None:
    files = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    for file in files:
        text = (root / file).read_text(errors="replace")
        assert not re.search(r"(?<![\w./])/(home|work|root|Users)/", text), file
