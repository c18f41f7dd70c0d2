"""The tutorial that flies ArduSub by acoustic fixes: its scene and its bridge, with a stand-in instead of ArduSub."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bridges.autopilot import VECTORED, Autopilot, rov
from tests.bridges.navigation_filter import NavigationFilter
from tests.bridges.program import Program
from tests.conftest import Server
from tests.examples.pages import Block, page_blocks
from wavesim_bridges.ardupilot import parameter_files

PAGE = "docs/tutorials/ardupilot.md"


@pytest.fixture
def blocks(root: Path) -> dict[str, Block]:
    """Blocks of the page by their titles."""
    return {b.title: b for b in page_blocks(root, PAGE)}


@pytest.mark.system
@pytest.mark.xdist_group("ardupilot")
@pytest.mark.parametrize(("method", "limit"), [("lbl", 0.5), ("usbl", 0.5)])
def test_fixes_of_a_flown_rov(
    blocks: dict[str, Block], tmp_path: Path, serve: Callable[..., Server], method: str, limit: float
) -> None:
    """The fixes agree with the motion that the autopilot received, as closely as they state; the velocities add up to it."""
    dialect: Any = pytest.importorskip("pymavlink.dialects.v20.ardupilotmega")
    path = tmp_path / "fixes.xml"
    path.write_text(blocks["fixes.xml"].text.replace('<log file="run.mcap" state_rate="10 Hz"/>', ""))
    server = serve(path, "--speed", "0")
    options = shlex.split(blocks["terminal 3"].text)[1:]
    options[options.index("--fixes") + 1], options[options.index("--config") + 1] = method, str(path)
    options[options.index("-s") + 1] = server.name
    emulators = Program("emulate", "all", str(path), "-s", server.name)
    for sensor in ("ahrs", "dvl", "pressure"):
        emulators.wait(f"emulator {sensor} serves")
    bridge = Program(*options, "--fix-period", "0.6", "--doppler", "dvl")
    bridge.wait("'rov' joined")
    pilot, navigation = Autopilot(rov(VECTORED, 4.0, forward=0.15), 12.0), NavigationFilter(14560, dialect)
    navigation.start()
    pilot.start()
    server.send("start")
    pilot.done(200)
    navigation.die()
    bridge.end()
    emulators.end()
    assert navigation.error is None
    times = np.array([s.time for s in pilot.states])
    track = np.array([s.position for s in pilot.states])
    fixes, deltas = navigation.of("VISION_POSITION_ESTIMATE"), navigation.of("VISION_POSITION_DELTA")
    assert len(fixes) > 10 and len(deltas) > 40
    at = np.array([[np.interp(1e-6 * f.usec, times, c) for c in track.T] for f in fixes])
    error = np.array([(f.x, f.y, f.z) for f in fixes]) - at
    assert np.abs(error[:, 2]).max() < 0.2
    assert np.diff([f.usec for f in fixes]).min() > 20_000, "EKF3 ignores a position within 20 ms of the last one"
    assert np.hypot(*error[:, :2].T).max() < limit
    sigma = np.sqrt([f.covariance[0] + f.covariance[6] for f in fixes])
    assert np.sqrt(np.mean(np.sum(error[:, :2] ** 2, axis=1))) < sigma.mean() < limit
    assert np.ptp(track[:, 0]) > 1.0, "it has moved"
    seconds = 1e-6 * sum(d.time_delta_usec for d in deltas)
    ahead = sum(d.position_delta[0] for d in deltas)
    assert ahead / seconds == pytest.approx(np.ptp(track[:, 0]) / np.ptp(times), rel=0.2)


def test_programs_and_parameters_of_the_page(blocks: dict[str, Block]) -> None:
    """The programs are Python, and the parameter files exist."""
    for block in blocks.values():
        if block.title.endswith(".py"):
            ast.parse(block.text)
    named = blocks["terminal 4"].text.split("--parm ")[1].split(")")[0]
    assert set(named.split(",")) <= parameter_files().keys()
