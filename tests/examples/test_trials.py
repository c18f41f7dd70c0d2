"""The acoustic trials, shortened: each must show its purpose."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import run_trial, wavesim
from tests.examples import front_water
from wavesim_sdk.log import read
from wavesim_sdk.tables import RECEPTION, STATE, Outcome
from wavesim_server.resources import remove_leftovers
from wavesim_studies.navigation.logs import estimation_case

pytestmark = [pytest.mark.long, pytest.mark.system, pytest.mark.xdist_group("trials"), pytest.mark.timeout(200)]


def trial(root: Path, out: Path, which: str, seconds: int) -> dict[str, Any]:
    name = f"{which}{os.getpid()}"
    done = run_trial(
        root / f"examples/trials/{which}.xml",
        out,
        name,
        "--files",
        str(root / "examples"),
        "--duration",
        str(seconds),
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert remove_leftovers(name) == []
    table: dict[str, Any] = json.loads((out / name / "table.json").read_text())
    return table


def test_homing_by_usbl(root: Path, tmp_path: Path) -> None:
    lauv, _dock = trial(root, tmp_path, "usbl-dock", 340)["vehicles"]
    assert lauv["ranges"] == 170 and lauv["range_error_rms_m"] < 0.1
    assert lauv["navigation_rms_m"] < 5.0, "the first guess was 50 m off"
    assert lauv["distance_m"] == pytest.approx(370.0, abs=25.0), "it stopped at the dock"
    log = read(tmp_path / f"usbl-dock{os.getpid()}" / "run.mcap")
    state, estimate = log.get("/state/lauv", STATE), log.series["/estimate/lauv"]
    true = [np.interp(estimate.time_ns, state.time_ns, state.records["p_WB_W"][:, i]) for i in (0, 1)]
    error = np.linalg.norm(estimate.records["p_WB_W"][:, :2] - np.transpose(true), axis=1)
    assert error[estimate.time_ns > 4_000_000_000].max() < 3.0, "two answers are enough"
    made = estimation_case(log, "lauv")
    assert made.score(made.run()).rms < 1.5, "scored by ranges and directions; ranges alone leave 5 m across"


def test_one_way_ranging_with_drifting_clocks(root: Path, tmp_path: Path) -> None:
    for v in trial(root, tmp_path, "one-way", 120)["vehicles"][:3]:
        assert v["sent"] == 0 and v["one_way_ranges"] > 110
        assert v["one_way_error_rms_m"] > 1.0, "the clock is off by a millisecond and more"
        assert v["navigation_max_m"] < 1.5, "but the filter knows it"


def test_a_network_with_time_slots(root: Path, tmp_path: Path) -> None:
    table = trial(root, tmp_path, "tdma", 60)
    packets = table["packets"]
    assert packets["sent"] >= 60 and packets["deliveries_possible"] >= 540
    assert 0.93 < packets["delivery_ratio"] < 0.99
    assert set(packets["lost"]) <= {"dropped", "corrupt"}, "no two packets met"
    assert table["utilisation"] == pytest.approx(0.16, abs=0.02)


def test_shallow_water(root: Path, tmp_path: Path) -> None:
    lauv, *beacons = trial(root, tmp_path, "shallow", 150)["vehicles"]
    echoes = (
        read(next(tmp_path.glob("shallow*/run.mcap"))).get("/acoustics/reception", RECEPTION).records["outcome"]
        == Outcome.ECHO
    )
    assert echoes.sum() > 300
    assert "echo" not in lauv["lost"], "what was heard is not lost by its echoes"
    assert lauv["navigation_max_m"] < 8.0
    assert lauv["range_error_max_m"] > 1.0, "the assumed sound speed is not the sea's"
    assert sum(b["lost"].get("blocked", 0) for b in beacons) > 0, "the quay hides a beacon"


def test_the_water_of_the_front(root: Path) -> None:
    """The committed file of the volume is the closed form, and `wavesim check` has nothing to say about it."""
    assert (root / "examples/trials/front-water.csv").read_text() == "\n".join(front_water.rows()) + "\n"
    done = wavesim("check", "--files", root / "examples", root / "examples/trials/front.xml")
    assert done.returncode == 0 and done.stderr == ""


def test_ranges_through_a_front(root: Path, tmp_path: Path) -> None:
    """The range errors are those of the water. They bias the position, and averaging does not reduce the bias."""
    lauv, remus, *_ = trial(root, tmp_path, "front", 240)["vehicles"]
    for v in (lauv, remus):
        assert v["ranges"] >= 88 and 12.0 < v["range_straight_line_error_max_m"] < 20.0
        assert abs(v["range_straight_line_error_max_m"] - v["range_error_max_m"]) < 0.5, "50 us are 0.04 m"
        assert abs(v["range_straight_line_error_mean_m"]) < 5.0, "errors of both signs"
        assert 10.0 < v["navigation_rms_m"] < 25.0 and v["dead_reckoning_end_m"] < 10.0
        assert v["lost"] == {"shadow": v["lost"]["shadow"]} and v["lost"]["shadow"] < 10, (
            "at the surface, before the dive"
        )


def test_the_study_of_the_tick(root: Path, tmp_path: Path) -> None:
    picture = tmp_path / "study.png"
    done = subprocess.run(
        [
            sys.executable,
            root / "examples/studies/lbl_against_tick.py",
            "--ticks",
            "4",
            "100",
            "--fixes",
            "20",
            "--out",
            picture,
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    exact = [float(r[2]) for r in rows]
    assert max(exact) < 2.0 and exact[0] == pytest.approx(exact[1], abs=0.01), "millimetres, at any tick"
    assert float(rows[0][4]) > 0.5 and float(rows[1][4]) > 10.0
    assert picture.stat().st_size > 20_000


def test_a_survey(root: Path, tmp_path: Path) -> None:
    """Its begin: depths are those of the bed, the mosaic is there."""
    trial(root, tmp_path, "survey", 8)
    log = next(tmp_path.glob("survey*/run.mcap"))
    result = wavesim("plot", log, "--mosaic", "--out", tmp_path / "pictures")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "pictures/mosaic-lauv-side.png").stat().st_size > 10_000
    found = re.search(r"(\d+) cells of 0.5 m, median ([-+.\d]+) m, rms ([.\d]+) m", result.stdout)
    assert found is not None, result.stdout
    assert int(found[1]) > 200 and abs(float(found[2])) < 0.01 and float(found[3]) < 0.05
    assert re.search(r"sphere +sphere", result.stdout)


def test_a_mixed_fleet(root: Path, tmp_path: Path) -> None:
    """AUV, ROV, boat and aircraft of the DUNE manual together: each does what it is for."""
    table = trial(root, tmp_path, "mixed-fleet", 60)
    found = {v["name"]: v for v in table["vehicles"]}
    assert found["uav"]["distance_m"] > 1200.0 and found["boat"]["distance_m"] > 40.0
    assert found["auv"]["ranges"] >= 12 and found["auv"]["navigation_max_m"] < 10.0
    log = read(tmp_path / f"mixed-fleet{os.getpid()}" / "run.mcap")
    down = {v: log.get(f"/state/{v}", STATE).records["p_WB_W"][:, 2] for v in found}
    assert down["uav"].min() > -160.0 and down["uav"].max() < -90.0
    assert np.abs(down["rov"] - 20.0).max() < 0.5 and np.abs(down["boat"]).max() < 0.6
    assert np.isfinite(log.series["/sensor/uav/anemometer"].records["speed"][10:]).all()
