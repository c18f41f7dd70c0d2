"""The shipped trials: the same content hash in one process, in processes, and over the network with programs of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, Server, wavesim
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.log import read
from wavesim_sdk.shared_memory import SYNCHRONOUS
from wavesim_world.config import load

DEMONSTRATION = ROOT / "config.xml"
SHIPPED = sorted((ROOT / "examples" / "trials").glob("*.xml"))
#: at real-time pace no run repeats another; real-water needs downloaded data
EXCEPT = {"ardupilot", "fleet", "real-water"}
pytestmark = [pytest.mark.system, pytest.mark.timeout(280), pytest.mark.xdist_group("trial")]


def content_hash(config: Path, out: Path, *more: str) -> str:
    """Hash of the trial's log after at most 10 s."""
    name = f"{config.stem}-{os.getpid()}"
    options = [
        "--files",
        str(ROOT / "examples"),
        "--duration",
        "10",
        "--out",
        str(out),
        "--name",
        name,
        "--port",
        "0",
        "--quiet",
        "--no-plots",
    ]
    done = wavesim("trial", config, *options, *more, timeout=250)
    assert done.returncode == 0, done.stderr
    return read(out / name / "run.mcap").content_hash


@pytest.mark.long
@pytest.mark.parametrize("config", [c for c in SHIPPED if c.stem not in EXCEPT], ids=lambda c: c.stem)
def test_a_shipped_trial_has_one_hash(config: Path, tmp_path: Path) -> None:
    assert content_hash(config, tmp_path / "a", "--in-process") == content_hash(config, tmp_path / "b")


def test_the_demonstration_has_one_hash_in_all_three_ways(
    tmp_path: Path, name: str, serve: Callable[..., Server]
) -> None:
    text = DEMONSTRATION.read_text().replace('duration="15 min"', 'duration="10 s"')
    config = tmp_path / "config.xml"
    text = text.replace('run="', f'run="{ROOT}/')
    config.write_text(text)
    inside = content_hash(config, tmp_path / "a", "--in-process")
    assert content_hash(config, tmp_path / "b") == inside
    server = serve(config, "--log", str(tmp_path / "run.mcap"))
    emulators = launch("emulate", "all", config, "-s", name, stderr=subprocess.DEVNULL)
    programs = [
        subprocess.Popen(
            [sys.executable, b.program.run, "--config", config, "--vehicle", b.name, "--port", str(server.port)]
        )
        for b in load(config).config.fleet.bodies
        if b.program is not None
    ]
    try:
        tables = SharedState(name).vehicles
        server.wait(
            lambda s: (
                not s["missing"]
                and all(tables[k].header[SYNCHRONOUS] for k in ("ctd", "echosounder", "ahrs", "speedlog"))
            )
        )
        server.send("start")
        assert [p.wait(60) for p in programs] == [0, 0, 0]
        server.send("shutdown")  # a command, which the log records
        assert server.process.wait(30) == 0
    finally:
        for process in (emulators, *programs):
            process.kill()
            process.wait()
    assert read(tmp_path / "run.mcap").content_hash == inside
