"""The trials of surface vessels and of the tunnel, shortened: each must show what it was made for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.test_trials import trial
from wavesim_sdk.config import library
from wavesim_sdk.frames import euler
from wavesim_sdk.log import Log, read
from wavesim_sdk.recorded import parse_map, read_columns
from wavesim_sdk.tables import ESTIMATE, STATE
from wavesim_server.study import replay

pytestmark = [pytest.mark.long, pytest.mark.system, pytest.mark.xdist_group("vessels"), pytest.mark.timeout(200)]


def sailed(root: Path, out: Path, which: str, seconds: int) -> tuple[dict[str, Any], Log]:
    """(table, log) of a trial."""
    return trial(root, out, which, seconds), read(next(out.glob("*/run.mcap")))


def test_the_tunnel(root: Path, tmp_path: Path) -> None:
    """From 1 m off and 5, 20, 15 deg to the middle: 3.70 m by all four echosounders (whole: 80 s)."""
    _, log = sailed(root, tmp_path, "tunnel", 30)
    ranges = log.sensors("vita")["ranger"].records["range"][:, :4]
    assert ranges[0].min() < 3.0, "it began beside the middle"
    assert ranges[-20:].mean(axis=0) == pytest.approx([3.70] * 4, abs=0.015)
    state = log.get("/state/vita", STATE).records[-1]
    assert np.abs(np.degrees(euler(state["q_WB"]))).max() < 1.0
    assert state["v_WB_B"][0] == pytest.approx(0.2, abs=0.01)


def test_the_tunnel_on_a_sine(root: Path, tmp_path: Path) -> None:
    """The offset in heave settles at 0.90 m of the 1 m that is asked for (whole: 0.89 to 0.91)."""
    _, log = sailed(root, tmp_path, "tunnel-sine", 60)
    state = log.get("/state/vita", STATE)
    late = state.records["p_WB_W"][state.time_ns > 42e9][:, 2] - 50.0
    assert late.max() == pytest.approx(0.90, abs=0.02) and late.min() == pytest.approx(-0.90, abs=0.02)


def test_way_points_in_a_gale(root: Path, tmp_path: Path) -> None:
    """Odin's first two legs and Jolner's: the crab angle is found, the way-points are passed."""
    table, log = sailed(root, tmp_path, "usv-gale", 140)
    assert [v["name"] for v in table["vehicles"]] == ["odin", "jolner"]
    odin = log.get("/state/odin", STATE).records["p_WB_W"][:, :2]
    first = odin[(odin[:, 0] > 150.0) & (odin[:, 0] < 350.0) & (odin[:, 1] < 100.0)]
    second = odin[(odin[:, 1] > 150.0) & (odin[:, 0] > 200.0)]
    assert len(first) and len(second) and np.abs(first[:, 1]).max() < 2.0
    assert np.sqrt(np.mean(np.square(second[:, 0] - 400.0))) < 6.0
    for corner in ((400.0, 0.0), (400.0, 400.0)):
        assert np.hypot(*(odin - corner).T).min() < 25.0 or corner[1] > odin[:, 1].max() + 20.0
    jolner = log.get("/state/jolner", STATE).records["p_WB_W"][:, :2]
    assert np.hypot(*(jolner - (-500.0, 100.0)).T).min() < 4.0


def test_traffic_in_waves(root: Path, tmp_path: Path) -> None:
    """Odin meets a silent boat that only the radar sees; the closest approaches stand in the table."""
    table, log = sailed(root, tmp_path, "usv-waves", 75)
    vehicles = {v["name"]: v for v in table["vehicles"]}
    assert set(vehicles) == {"odin", "jolner", "ferry", "silent", "late"}
    near = vehicles["odin"]["closest"]
    assert near["to"] == "silent" and near["distance_m"] > 30.0, (
        "three lengths; on the same line it would have been none"
    )
    seen = log.sensors("odin")
    radar, stations = seen["radar"].records, seen["ais"].records
    assert (np.nanmax(radar["status"], axis=1) == 2.0).any(), "followed"
    assert {257000001.0, 257000002.0, 257000003.0, 257000004.0} <= set(np.unique(stations["mmsi"][-1]).tolist())


def test_recorded_commands_again(root: Path, tmp_path: Path) -> None:
    """Through a live server they do what they do in the library; the track beside them is told, and measured against."""
    seconds = 30
    table, log = sailed(root, tmp_path, "recorded", seconds)
    columns, times = read_columns(root / "examples/trials/odin-zigzag.csv", None)
    model, now = library()["odin"], times < seconds
    names = {"throttle": ("port", "starboard"), "nozzle*deg": ("port-angle", "starboard-angle"), "bucket": ("port-deflector", "starboard-deflector")}  # fmt: skip
    commands = dict(parse_map(model, f"{name}={column}", columns) for column, both in names.items() for name in both)
    alone = replay(model, times[now], {k: v[now] for k, v in commands.items()}, 0.01, world='<bed depth="60 m"/>')
    live = log.get("/state/odin", STATE)
    t, p = live.time_ns * 1e-9, live.records["p_WB_W"]
    for axis in (0, 1):
        assert np.abs(np.interp(alone[:, 0], t, p[:, axis]) - alone[:, 1 + axis]).max() < 1e-9
    (odin,) = table["vehicles"]
    assert odin["distance_m"] > 50.0 and 0.0 < odin["navigation_max_m"] < 0.2 * odin["distance_m"]
    believed = log.get("/estimate/odin", ESTIMATE)
    measured = np.interp(believed.time_ns * 1e-9, times, columns["north"])
    assert np.abs(believed.records["p_WB_W"][:, 0] - measured).max() < 1e-9, "and the measured track stands beside it"
