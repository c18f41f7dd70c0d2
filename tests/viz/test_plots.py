"""The pictures of a run: their axes show the right numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.log import Series
from wavesim_sdk.tables import ACTUATION, ESTIMATE, LINES, STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz import plots
from wavesim_viz.plots import LoggedRun, draw, motion, navigation, tracks
from wavesim_world.config import LoadedConfig

TICKS = 40


@pytest.fixture
def log(config: Callable[..., LoadedConfig], tmp_path: Path) -> Path:
    """A submarine and a jet boat whose actuators each take values of their own."""
    loaded = config(
        '<fleet><vehicle name="auv" model="lauv" position="0 0 5 m"/><vehicle name="jet" model="odin" position="9 0 0 m"/></fleet>'
    )
    path = tmp_path / "run.mcap"
    writer = LogWriter(path, loaded, 1)
    writer.body(0, 0, "auv", "lauv", "underwater", True)
    writer.body(0, 1, "jet", "odin", "surface", True)
    state, acting = np.zeros(2, STATE.dtype), np.zeros(2, ACTUATION.dtype)
    state["q_WB"][:, 0] = 1.0
    for k in range(TICKS):
        time_ns = k * 500_000_000
        state["p_WB_W"][:, 0] = 0.5 * k
        state["v_WB_B"][:, 0] = state["v_FB_B"][:, 0] = 1.0
        wave = np.sin(k / 5.0)
        acting["actual"][0, :5] = 8.0, 0.2 * wave, 0.2 * wave, 0.05, -0.05
        acting["actual"][1, :6] = 30.0, 25.0, 0.4 * wave, 0.3 * wave, 1.0, -1.0 if k > 20 else 1.0
        writer.table(time_ns, "state", [0, 1], state.tobytes())
        writer.table(time_ns, "actuation", [0, 1], acting.tobytes())
    writer.body(TICKS * 500_000_000, 1, "jet", "odin", "surface", False)  # what it had is known after it left
    writer.close()
    return path


def test_actuators_are_drawn_by_name_and_unit(log: Path, tmp_path: Path) -> None:
    """Force in N, shaft speed in revolutions, angles in degrees, deflectors in percent: nothing under a label of another."""
    figure = motion(LoggedRun(log))
    assert figure is not None
    axes = np.array(figure.axes).reshape(-1, 2)
    assert [a.get_ylabel() for a in axes[2:, 0]] == ["thrust (N)", "angle (deg)", ""]
    assert [a.get_ylabel() for a in axes[2:, 1]] == ["revolutions (1/s)", "angle (deg)", "deflector (%)"]
    names = [[line.get_label() for line in a.lines] for a in axes[2:].ravel()]
    assert names == [
        ["propeller"],
        ["port", "starboard"],
        ["rudder-top", "rudder-bottom", "plane-port", "plane-starboard"],
        ["port-angle", "starboard-angle"],
        [],
        ["port-deflector", "starboard-deflector"],
    ]
    assert np.ptp(axes[3, 1].lines[0].get_ydata()) == pytest.approx(np.degrees(0.8), rel=0.02)
    assert min(axes[4, 1].lines[1].get_ydata()) == -100.0
    made = draw(LoggedRun(log), tmp_path / "out")
    assert {p.name for p in made} == {"motion.png", "tracks.png"}
    beside = draw(LoggedRun(log), tmp_path / "beside", processes=2)
    assert [p.read_bytes() for p in beside] == [p.read_bytes() for p in made]


def test_a_picture_that_cannot_be_drawn_is_no_success(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another process draws it; fails where nobody asks how that ended."""

    def broken(run: LoggedRun) -> None:
        raise ValueError("no ink")

    monkeypatch.setattr(plots, "PICTURES", {"tracks": lambda run: None, "motion": broken})
    (tmp_path / "tracks.png").touch()
    with pytest.raises(WaveSimError, match="could not be drawn"):
        draw(LoggedRun(log), tmp_path, processes=2)
    assert not (tmp_path / "tracks.png").exists(), "of the run before"


def test_obstacles_and_contacts_are_drawn(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    loaded = config(
        '<world><obstacles><block position="10 20 5 m" size="8 2 4 m" heading="90 deg"/><pier position="0 0 5 m" radius="3 m" '
        'height="10 m"/></obstacles></world><fleet><vehicle name="auv" model="lauv" position="0 0 5 m"/></fleet>'
    )
    writer = LogWriter(tmp_path / "run.mcap", loaded, 1)
    writer.body(0, 0, "auv", "lauv", "underwater", True)
    state = np.zeros(1, STATE.dtype)
    for k in range(3):
        state["p_WB_W"][0, 0] = 2.0 * k
        writer.table(k * 1_000_000_000, "state", [0], state.tobytes())
    writer.notice(500_000_000, "auv", "contact with pier 1 at 1 m/s")
    writer.close()
    figure = tracks(LoggedRun(tmp_path / "run.mcap"))
    assert figure is not None
    block, pier = figure.axes[0].patches
    low, high = block.get_path().get_extents().get_points()
    assert np.allclose(low, (16.0, 9.0)) and np.allclose(high, (24.0, 11.0)), "east, north"
    assert pier.center == (0.0, 0.0) and pier.radius == 3.0
    (mark,) = [line for line in figure.axes[0].lines if line.get_label() == "contact"]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (0.0, 1.0)


def test_what_is_believed_is_called_so(log: Path) -> None:
    """Of a vehicle that tells what it believes: the truth, its own estimate, dead reckoning; of one that does not: the truth."""
    run = LoggedRun(log)
    state = run.log.get("/state/auv", STATE)
    estimates = np.zeros(TICKS, ESTIMATE.dtype)
    estimates["p_WB_W"], estimates["innovation"] = state.records["p_WB_W"] + (3.0, 4.0, 0.0), np.nan
    run.log.series["/estimate/auv"] = Series(state.time_ns, estimates, ESTIMATE.name)
    run.navigators = ["auv"]
    chart = tracks(run).axes[0]  # type: ignore[union-attr]  # there are vehicles
    named = {line.get_label(): line for line in chart.lines if not str(line.get_label()).startswith("_")}
    assert list(named) == ["auv: true", "auv: estimate", "auv: dead reckoning", "jet: true"]
    assert np.array_equal(named["auv: true"].get_ydata(), state.records["p_WB_W"][:, 0])
    assert named["auv: estimate"].get_ydata()[-1] == pytest.approx(0.5 * (TICKS - 1) + 3.0, abs=0.1)
    error = navigation(run).axes[0]  # type: ignore[union-attr]  # one navigates
    lines = {line.get_label(): line.get_ydata() for line in error.lines}
    assert lines["auv: estimate"] == pytest.approx(np.full(TICKS, 5.0)), "the length of (3, 4)"
    assert not [name for name in lines if str(name).startswith("jet")]


def test_lines_are_drawn_as_they_lie_at_the_end(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """Broken ones with their gap; and nothing is said of an echosounder where there is none."""
    loaded = config(
        '<world><bed depth="20 m"/></world><fleet><vehicle name="auv" model="lauv" position="0 0 5 m"/><line name="tow" length="40 m" diameter="8 mm" '
        'mass="0.1 kg/m" stiffness="10 kN" segments="3"><end body="auv" position="0 0 0 m"/><end position="0 30 20 m"/></line></fleet>'
    )
    writer = LogWriter(tmp_path / "run.mcap", loaded, 1)
    writer.body(0, 0, "auv", "lauv", "underwater", True)
    writer.table(0, "state", [0], np.zeros(1, STATE.dtype).tobytes())
    line = np.zeros(1, LINES.dtype)
    line["present"], line["name"], line["nodes"], line["broken"] = 1, b"tow", 4, -1
    for second, broken in ((0, -1), (1, 1)):
        line["broken"], line["nodes_W"][0, :12] = broken, [0, 0, 0, 0, 10, 5, 0, 20, 9, second, 30, 20]
        writer.table(second * 10**9, "lines", [0], line.tobytes())
    writer.close()
    figure = tracks(LoggedRun(tmp_path / "run.mcap"))
    assert figure is not None
    (drawn,) = [x for x in figure.axes[0].lines if x.get_label() == "line at the end"]
    assert np.array_equal(drawn.get_xydata(), [(0, 0), (10, 0), (np.nan,) * 2, (20, 0), (30, 1)], equal_nan=True)
    assert figure.axes[0].get_xlim()[1] > 30.0, "the chart holds it"
    assert [a.get_title() for a in figure.axes if a.get_ylabel() == "depth (m)"] == ["Depth"]


def test_the_chart_holds_the_whole_track(log: Path) -> None:
    """Where the log's grid of the bed ends before the track does, too."""
    run = LoggedRun(log)
    run.log.json["/world/bed"] = [
        (0, {"north": [-5.0, 5.0], "east": [-5.0, 5.0], "depth": [[30.0, 30.0], [30.0, 30.0]]})
    ]
    figure = tracks(run)
    assert figure is not None
    low, high = figure.axes[0].get_ylim()
    assert low == -5.0 and high > 0.5 * (TICKS - 1), "half a metre north each tick"
