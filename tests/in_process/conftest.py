"""Trials in the process of the tests, of programs that each test writes."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from wavesim_server.in_process.trial import InProcessTrial
from wavesim_server.resources import remove_leftovers
from wavesim_world.config import load

#: names that the configuration and each program may use
HEAD = """
import argparse, sys
from wavesim_sdk.broker import AsyncBroker, Broker
parser = argparse.ArgumentParser()
for name in ("--config", "--vehicle", "--mode"):
    parser.add_argument(name)
parser.add_argument("--port", type=int)
a = parser.parse_args()
SERVER = ("127.0.0.1", a.port)
"""

WORLD = """<wavesim name="{name}" seed="3">
<time step="10 ms" duration="{seconds} s" pace="fast"/>
<network port="{port}" lockstep_timeout="{limit} s">{grants}</network>
<log file="run.mcap"/>
<fleet>{fleet}</fleet></wavesim>"""

SENSORS = '<sensors><ctd rate="10 Hz"/><ahrs rate="10 Hz"/></sensors>'
AUV = '<vehicle name="{0}" model="lauv" position="0 {1} 5 m" client="required">{2}<program run="{3}" options="{4}"/></vehicle>'

Program = tuple[str, str]  # body, source


@pytest.fixture
def make_trial(tmp_path: Path) -> Callable[..., InProcessTrial]:
    """Return a function that makes the trial of some programs: ``make(auv="...", other="...")``."""

    def make(
        *, seconds: float = 2.0, limit: float = 30.0, grants: str = "", fleet: str = "", **programs: str
    ) -> InProcessTrial:
        bodies = ""
        for k, (name, source) in enumerate(programs.items()):
            file = f"{name}.py"
            if not source.endswith(".py"):
                (tmp_path / file).write_text(HEAD + textwrap.dedent(source))
            else:
                file = source
            bodies += AUV.format(name, 30 * k, SENSORS, file, "")
        config = tmp_path / "config.xml"
        name = f"inside{os.getpid()}"
        config.write_text(
            WORLD.format(name=name, seconds=seconds, port=9750, limit=limit, grants=grants, fleet=bodies + fleet)
        )
        assert remove_leftovers(name) == []
        return InProcessTrial(load(config), tmp_path / "runs", quiet=True)

    return make


def output(trial: InProcessTrial, name: str) -> str:
    """What the program of a body printed."""
    return (trial.folder / f"program-{name}.txt").read_text()
