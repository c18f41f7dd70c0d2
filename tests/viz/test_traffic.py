"""Traffic around a vessel: distances and times against a step-by-step computation, and the domain of the encounter
score.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk import frames
from wavesim_sdk.guidance.encounters import EncounterRole, domain
from wavesim_sdk.tables import LINES, STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_studies.traffic.colregs_score import VesselTrack, score_run
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_viz.replay import ReplaySource
from wavesim_viz.traffic import encounter_table
from wavesim_world.config import load
from wavesim_world.ocean.surface import S_AMPLITUDE, S_EAST, S_FREQUENCY, S_NORTH, S_PHASE, elevation, sea_components

ROSTER = [
    [k, n, "otter" if k == 4 else "boat", t, 0]
    for k, n, t in (
        (4, "own", "surface"),
        (7, "west", "surface"),
        (8, "astern", "surface"),
        (9, "sub", "underwater"),
        (11, "mark", "buoy"),
    )
]
MODELS = {"otter": {"shape": {"size": [2.0, 1.0, 1.0]}}, "boat": {"shape": {"size": [8.0, 3.0, 3.0]}}}
PLACES = np.array([[0.0, 0.0, 0.0], [100.0, 160.0, 0.0], [-90.0, 5.0, 0.0], [50.0, 0.0, 9.0], [30.0, 0.0, 0.0]])
COURSES, SPEEDS = np.radians([10.0, 260.0, 30.0, 0.0, 0.0]), np.array([3.0, 4.0, 1.0, 1.0, 0.0])


def frame(drift: float = 0.0) -> ViewerFrame:
    """One moment; vessels head ``drift`` rad to the left of where they go."""
    q = frames.quaternion(np.zeros(5), np.zeros(5), COURSES - drift)
    v = np.stack([SPEEDS * math.cos(drift), SPEEDS * math.sin(drift), np.zeros(5)], axis=1)
    packed = bodies([b[0] for b in ROSTER], PLACES, q, v)
    return ViewerFrame(5.0, 50, 1, packed, v_WB_B=v)


@pytest.mark.parametrize("drift", [0.0, 0.4])
def test_who_passes_how_near_and_when(drift: float) -> None:
    met = encounter_table(frame(drift), ROSTER, 4, MODELS)
    assert met is not None and (met["least"], met["preferred"]) == domain(2.0)
    assert [m["row"] for m in met["others"]] == [7, 8], "vessels on the surface only; who is past comes last"
    walk = np.arange(0.0, 200.0, 0.01)[:, None]
    v = (SPEEDS * np.array([np.cos(COURSES), np.sin(COURSES)])).T
    for m, k in zip(met["others"], (1, 2), strict=True):
        apart = np.linalg.norm(PLACES[k, :2] - PLACES[0, :2] + walk * (v[k] - v[0]), axis=1)
        nearest = int(np.argmin(apart))
        assert m["dcpa"] == pytest.approx(apart[nearest], abs=1e-3) or m["tcpa"] < 0.0
        assert max(m["tcpa"], 0.0) == pytest.approx(walk[nearest, 0], abs=0.01)
        assert math.dist(m["own_at"], m["other_at"]) == pytest.approx(apart[nearest], abs=1e-3)
        assert m["course"] % math.tau == pytest.approx(COURSES[k], abs=1e-5) and m["speed"] == pytest.approx(SPEEDS[k])
    assert [m["role"] for m in met["others"]] == ["give way", "overtaken"] or met["others"][1]["tcpa"] < 0.0
    assert encounter_table(frame(), ROSTER, 9, MODELS) is None and encounter_table(frame(), ROSTER, 5, MODELS) is None


def test_the_domain_is_that_of_the_score() -> None:
    """A pass right outside the inner circle begins to score, one outside the outer circle scores all of its safety."""
    least, preferred = domain(2.0)
    t = np.arange(0.0, 101.0)

    def safety(apart: float) -> Any:
        def track(east: float, north: float, speed: float) -> VesselTrack:
            places = np.stack([north + speed * t, np.full(len(t), east)], axis=1)
            return VesselTrack(t, places, np.tile([speed, 0.0], (len(t), 1)))

        pair = score_run(track(0.0, 0.0, 3.0), {"x": (EncounterRole.HEAD_ON, track(apart, 300.0, -3.0))}, 2.0).pairs[0]
        return pair.parts["safety"]

    assert safety(least - 0.01) == 0.0 and 0.0 < safety(least + 0.01) < 0.01
    assert 0.99 < safety(preferred - 0.01) < 1.0 and safety(preferred + 0.01) == 1.0


def test_a_log_tells_its_lines(tmp_path: Path) -> None:
    """Nodes of the newest moment; a line that is not there is not drawn."""
    (tmp_path / "c.xml").write_text(
        '<wavesim><fleet><vehicle name="a" model="otter" position="0 0 0 m"/></fleet></wavesim>'
    )
    writer = LogWriter(tmp_path / "run.mcap", load(tmp_path / "c.xml"), 8)
    writer.body(0, 0, "a", "otter", "surface", True)
    state, line = np.zeros(1, STATE.dtype), np.zeros(2, LINES.dtype)
    state["q_WB"][:, 0] = 1.0
    line["name"], line["nodes"], line["broken"] = (b"tether", b"gone"), 3, (1, -1)
    for second in range(3):
        line["present"] = (1, 0)
        line["nodes_W"][:, :9] = np.arange(9) + second
        writer.table(second * 10**9, "state", [0], state.tobytes())
        writer.table(second * 10**9, "lines", [0, 1], line.tobytes())
    writer.close()
    replay = ReplaySource(tmp_path / "run.mcap")
    replay.control("pause", None)
    replay.control("seek", 1.5)
    (cable,) = replay.cables()
    assert cable == {"name": "tether", "tension": 0.0, "broken": 1, "points": (np.arange(9.0) + 1.0).tolist()}


def test_a_log_tells_the_sea_that_bodies_felt(tmp_path: Path) -> None:
    """Its seed, not the configuration's; changed when the weather was, by what was given; back again after going back."""
    (tmp_path / "c.xml").write_text(
        '<wavesim seed="5"><world><waves height="1 m" peak="0.9 rad/s" spreading="6"/></world><fleet><vehicle name="a" model="otter" position="0 0 0 m"/></fleet></wavesim>'
    )
    loaded = load(tmp_path / "c.xml")
    writer = LogWriter(tmp_path / "run.mcap", loaded, 8)
    writer.body(0, 0, "a", "otter", "surface", True)
    state = np.zeros(1, STATE.dtype)
    state["q_WB"][:, 0] = 1.0
    for second in range(4):
        writer.table(second * 10**9, "state", [0], state.tobytes())
        if second == 1:
            writer.command(10**9, "", "weather", {"wave_height": 2.0, "wave_direction": 1.0, "wind_speed": None})
    writer.close()
    replay = ReplaySource(tmp_path / "run.mcap")
    for at, changed in ((0.5, ()), (1.5, (2.0, None, 1.0)), (0.5, ())):
        replay.control("pause", None)
        replay.control("seek", at)
        components, wanted = replay.sea_components(), sea_components(loaded, 8, *changed)
        assert components == wanted[:, [S_AMPLITUDE, S_FREQUENCY, S_NORTH, S_EAST, S_PHASE]].tolist()
    assert 4.0 * math.sqrt(0.5 * float((wanted[:, S_AMPLITUDE] ** 2).sum())) == pytest.approx(1.0)
    assert elevation(wanted, 3.0, 10.0, -5.0) == pytest.approx(
        sum(a * math.cos(w * 3.0 - n * 10.0 + e * 5.0 + p) for a, w, n, e, p in replay.sea_components() or ())
    )
