"""The exam: frozen scenarios, the bound against closed forms and Monte Carlo, scores, result files, and a stranger's filter."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from wavesim_sdk import frames
from wavesim_sdk.errors import ConfigError, LogError, UnknownName
from wavesim_studies.exam import results, scenario
from wavesim_studies.exam.bound import OWN, BoundModel, direction_rows, head_axes, prior
from wavesim_studies.exam.cli import exam
from wavesim_studies.exam.execution import find_estimates
from wavesim_studies.exam.scenario import AlteredScenario, FilterSettings
from wavesim_studies.exam.scoring import check_export, first_fix, score_track
from wavesim_studies.navigation import measurements as make
from wavesim_studies.navigation.acoustic_rows import RAY_BEND_SIGMA, _sight_sigma
from wavesim_studies.navigation.attitude_motion import ahrs_motion
from wavesim_studies.navigation.filter import estimate
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_world.instruments import HEADING_SIGMA, RATE_SIGMA, SPEED_SIGMA, TILT_SIGMA

pytestmark = [pytest.mark.xdist_group("navigation")]

#: digest of all frozen scenarios; a change makes all earlier results incomparable
FROZEN = "073f7bbc3a6aaf2bd8f0bc74bc3625e62e35fe2f4816485a798a5008aa906461"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(exam, list(arguments))


# ------------------------------------------------------------------ scenarios


def test_the_scenarios_are_frozen() -> None:
    frozen = scenario.frozen_digests()
    assert len(frozen) == 10
    assert {name: scenario.digest_of(name) for name in frozen} == frozen
    together = hashlib.sha256(json.dumps(frozen, sort_keys=True).encode()).hexdigest()
    assert together == FROZEN, "earlier results can no longer be compared: give a new scenario a new name instead"


@pytest.mark.parametrize("name", list(scenario.frozen_digests()))
def test_a_scenario_is_complete(name: str) -> None:
    s = scenario.scenario(name)
    texts = [s.configuration(level, seed) for level in scenario.LEVELS for seed in (1, 2)]
    assert not any("{" in text for text in texts) and len(set(texts)) == 6
    assert f'duration="{s.duration:g} s"' in texts[0] and 60.0 <= s.duration <= 300.0
    sigmas = [s.start_sigma(level) for level in scenario.LEVELS]
    assert sigmas == sorted(sigmas) and s.score_from < s.duration
    assert s.seeds == (1, 2, 3)


def test_a_program_in_any_folder_can_be_named() -> None:
    text = scenario.scenario("lbl").configuration("easy", 1, '/mine/a & b/"mine".py')
    assert 'run="/mine/a &amp; b/&quot;mine&quot;.py"' in text


def test_a_changed_scenario_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(scenario.FOLDER, tmp_path / "scenarios")
    monkeypatch.setattr(scenario, "FOLDER", tmp_path / "scenarios")
    assert scenario.scenario("lbl").name == "lbl"
    path = tmp_path / "scenarios" / "lbl.xml"
    path.write_text(path.read_text().replace('depth="60 m"', 'depth="61 m"'))
    with pytest.raises(AlteredScenario, match=r"scenario 'lbl' .* were changed"):
        scenario.scenario("lbl")
    with pytest.raises(UnknownName, match=r"did you mean 'usbl'"):
        scenario.scenario("usbi")


def test_the_start_positions_have_the_stated_deviation() -> None:
    s = scenario.scenario("lbl")
    errors = np.array([s.start_errors("medium", seed, "auv") for seed in range(400)])
    assert abs(errors.std() / 20.0 - 1.0) < 0.08 and np.abs(errors.mean(axis=0)).max() < 3.0


def test_cases_have_independent_random_numbers() -> None:
    """No two scenarios, levels or seeds have the same error of the start, current or seed of the simulation."""
    cases = [(s, k, n) for s in map(scenario.scenario, scenario.names()) for k in scenario.LEVELS for n in s.seeds]
    starts = [round(s.start_errors(k, n, "auv")[0] / s.start_sigma(k), 9) for s, k, n in cases]
    assert len({*starts}) == len({s.run_seed(k, n) for s, k, n in cases}) == len(cases) == 90
    currents = re.findall(r'current north="(\S+) ', "".join(s.configuration(k, n) for s, k, n in cases))
    assert len({*currents}) == len(currents) == 90


# ------------------------------------------------------------------ bound


def model(settings: FilterSettings, seconds: float, start: float, **changes: Any) -> BoundModel:
    time = np.arange(0.0, seconds + 1e-9, 0.1)
    found = BoundModel(
        time,
        np.zeros((1, len(time))),
        np.tile((1.0, 0.0), (1, len(time), 1)),
        settings,
        RATE_SIGMA,
        prior(1, [start], [False], settings, 1500.0),
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def test_the_bound_of_a_regression_is_its_closed_form() -> None:
    """Only the start and a constant current are unknown: a straight line through positions, with priors."""
    settings = FilterSettings(current_sigma=0.3, agility=0.0)
    m = model(settings, 20.0, 5.0)
    m.P[2:5, 2:5] = 0.0
    m.rate_sigma = 0.0
    times = np.arange(1.0, 20.1, 1.0)
    for t in times:
        m.observe(t, [m.row(0, north=1.0)], 0.7)
    A = np.stack([np.ones(20), times], axis=1)
    information = A.T @ A / 0.7**2 + np.diag([1.0 / 5.0**2, 1.0 / 0.3**2])
    end = np.array([1.0, 20.0])
    assert m.covariances()[0, -1, 0, 0] == pytest.approx(end @ np.linalg.inv(information) @ end, rel=1e-9)
    assert m.covariances()[0, -1, 1, 1] == pytest.approx(5.0**2 + (0.3 * 20.0) ** 2, rel=1e-9)


def test_the_bound_of_one_round_of_ranges_is_the_dilution_of_precision() -> None:
    """At the centre of a regular polygon of N transponders, it is 2/sqrt(N) times the error of a range (Levanon 2000)."""
    for n in (3, 4, 7):
        m = model(FilterSettings(current_sigma=1e-9), 0.1, 1e4)
        for angle in 2.0 * np.pi * np.arange(n) / n:
            m.observe(0.0, [m.row(0, north=np.cos(angle), east=np.sin(angle))], 0.5)
        found = np.sqrt(np.trace(m.covariances()[0, 0]))
        assert found == pytest.approx(0.5 * 2.0 / np.sqrt(n), rel=1e-6)


def test_a_direction_has_the_information_of_its_delays() -> None:
    """Delays between the hydrophones of a flat head, below a vehicle: north and east have different accuracies. The
    derivatives are those of the delays.
    """
    phones = np.array([(0.4, 0.0, 0.0), (-0.4, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, -0.1, 0.0)])
    m = model(FilterSettings(current_sigma=1e-9), 0.1, 1e5)
    m.P[4, 4] = 1e-18
    depth, sigma = 50.0, 1e-3
    toward = np.array([0.0, 0.0, 1.0])
    m.observe(0.0, direction_rows(m, 0, head_axes(phones), toward, depth), sigma)
    P = m.covariances()[0, 0]
    expected = [depth * sigma / np.sqrt((phones[:, k] ** 2).sum()) for k in (0, 1)]
    assert np.sqrt(np.diag(P)) == pytest.approx(expected, rel=1e-6)

    def delays(x: Any) -> Any:
        """Of a vehicle at x = (north, east, heading) with roll 0.1 and pitch 0.2, to a node at (30, -20, 15)."""
        R_WB = frames.rotation(frames.quaternion(0.1, 0.2, x[2]))
        away = np.array([30.0 - x[0], -20.0 - x[1], 15.0])
        return head_axes(phones) @ R_WB.T @ away / np.linalg.norm(away)

    at, away = np.array([2.0, 3.0, 0.7]), np.array([28.0, -23.0, 15.0])
    axes_W = head_axes(phones) @ frames.rotation(frames.quaternion(0.1, 0.2, 0.7)).T
    d = float(np.linalg.norm(away))
    rows = np.array(direction_rows(m, 0, axes_W, away / d, d))[:, [0, 1, 4]]
    slopes = np.stack([(delays(at + h) - delays(at - h)) / 2e-6 for h in 1e-6 * np.eye(3)], axis=1)
    np.testing.assert_allclose(rows, slopes, atol=1e-8)


def test_an_unmodelled_excess_shifts_the_estimator_of_the_bound() -> None:
    """Fixes that are all wrong by 2 m north, without motion: the weighted mean with the start at the truth."""
    m = model(FilterSettings(current_sigma=1e-9, agility=0.0), 2.0, 5.0)
    m.P[2:5, 2:5], m.rate_sigma = 0.0, 0.0
    for t in (0.5, 1.0, 1.5):
        m.observe(t, [m.row(0, north=1.0)], 3.0, 2.0)
    weight = 3.0 / 9.0 / (3.0 / 9.0 + 1.0 / 25.0)
    assert m.recursion()[1][0, -1] == pytest.approx((2.0 * weight, 0.0), rel=1e-9)


def test_the_bound_of_a_random_walk_is_the_steady_state_of_its_riccati_equation() -> None:
    """The position is a random walk that is observed at each step; the motion of the vehicle is replaced."""
    m = model(FilterSettings(current_sigma=1e-9, agility=0.0), 30.0, 10.0)
    m.P[2:5, 2:5] = 0.0
    m.rate_sigma, step = 0.0, 0.04

    def transition(t: int) -> tuple[Any, Any]:
        Q = np.zeros((m.size, m.size))
        Q[0, 0] = step
        return np.eye(m.size), Q

    m.transition = transition  # type: ignore[method-assign]
    for t in m.time:
        m.observe(t, [m.row(0, north=1.0)], 0.6)
    r = 0.36
    assert m.covariances()[0, -1, 0, 0] == pytest.approx(0.5 * (-step + np.sqrt(step**2 + 4 * step * r)), rel=1e-9)


def test_the_derivatives_of_the_motion_are_those_of_its_equations() -> None:
    time = np.array([0.0, 0.1])
    x = np.array([3.0, -2.0, 1.3, 0.2, 0.7, 0.0, 0.0, 0.1, -0.2, 0.0])

    def move(x: Any) -> Any:
        s, c = np.sin(x[4]), np.cos(x[4])
        moved = x.copy()
        moved[0] += 0.1 * (c * x[2] - s * x[3] + x[7])
        moved[1] += 0.1 * (s * x[2] + c * x[3] + x[8])
        moved[5] += 0.1 * x[6]
        return moved

    m = model(FilterSettings(), 0.1, 1.0, time=time, heading=np.full((1, 2), 0.7))
    m.velocity = np.tile((1.3, 0.2), (1, 2, 1))
    F = np.stack([(move(x + d) - move(x - d)) / 2e-6 for d in 1e-6 * np.eye(OWN + 3)], axis=1)
    np.testing.assert_allclose(m.transition(1)[0], F, atol=1e-8)


def test_the_reference_filter_reaches_the_bound_in_a_linear_case() -> None:
    """Position fixes, speed log and AHRS with white noise, an unknown current: the errors of 60 runs have the size of the
    bound. The interval is that of 60 runs with about four independent errors each (99.9 %).
    """
    settings = FilterSettings(current_sigma=0.2, agility=0.1)
    m = model(settings, 60.0, 3.0)
    fixes = np.arange(5.0, 60.0, 5.0)
    for t in m.time:
        m.observe(t, [m.row(0, forward=1.0), m.row(0, starboard=1.0)], SPEED_SIGMA)
        m.observe(t, [m.row(0, heading=1.0)], HEADING_SIGMA)
    for t in fixes:
        m.observe(t, [m.row(0, north=1.0), m.row(0, east=1.0)], 1.0)
    bound = np.trace(m.covariances()[0, 100:], axis1=1, axis2=2)
    squares = []
    for seed in range(60):
        squares.append(_errors(np.random.default_rng(seed), m.time, fixes)[100:])
    ratio = np.mean(squares) / bound.mean()
    assert 0.75 < ratio < 1.35, ratio


def _errors(rng: Any, time: Any, fixes: Any) -> Any:
    """Return the squared horizontal errors (T) of the reference filter in one run of the linear case."""
    n = len(time)
    speed = np.array([1.0, 0.0, 0.0]) + np.concatenate(
        [0.1**0.5 * 0.1 * rng.standard_normal((n, 2)), np.zeros((n, 1))], 1
    ).cumsum(0)
    current = np.array([*(0.2 * rng.standard_normal(2)), 0.0])
    p = np.concatenate([np.zeros((1, 3)), 0.1 * (speed + current)[:-1].cumsum(0)])
    sigma = np.array([TILT_SIGMA, TILT_SIGMA, HEADING_SIGMA])
    angles = sigma * rng.standard_normal((n, 3))
    measured = speed + SPEED_SIGMA * rng.standard_normal((n, 3))
    design, imu = ahrs_motion(
        time,
        angles,
        RATE_SIGMA * rng.standard_normal((n, 3)),
        (time, measured, SPEED_SIGMA),
        rate_noise=RATE_SIGMA * 0.1**0.5,
        current=0.2,
        accelerometer_noise=0.1,
    )
    start = design.start(
        0.0, (*(3.0 * rng.standard_normal(2)), 0.0), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0),
        [(3.0, 3.0, 0.1), 0.3, 0.006, 1e-9, 1e-9],
    )  # fmt: skip
    at = np.searchsorted(time, fixes)
    rows = [
        make.each(make.angles(0.0, dict.fromkeys(make.ANGLE, 0.0), sigma, 0), time[1:], angles[1:]),
        make.each(make.velocity(0.0, np.zeros(3), SPEED_SIGMA, water=True, sensor=1), time[1:], measured[1:]),
        make.each(make.depth(0.0, 0.0, 0.01, sensor=2), time[1:], np.zeros((n - 1, 1))),
        make.each(make.position(0.0, np.zeros(2), 1.0, sensor=3), fixes, p[at, :2] + rng.standard_normal((len(at), 2))),
    ]
    table = np.concatenate(rows)
    table[:, 5] = np.finfo(float).max  # no gate
    track = estimate(design, start, imu[1:], table, time[1:], say=lambda text: None)
    return np.square(track.p[:, :2] - p[1:, :2]).sum(axis=1)


# ------------------------------------------------------------------ scores


def tracks(offset: float, until: float = 180.0) -> tuple[PoseTrack, PoseTrack]:
    time = np.arange(0.0, 180.01, 0.1)
    p = np.stack([time, 0.1 * time, np.full(len(time), 20.0)], axis=1)
    wrong = np.where(time < 30.0, 50.0, offset)[:, None] * [0.6, 0.8, 0.0]
    P = np.tile(offset**2 / 2.0 * np.eye(2), (len(time), 1, 1))
    keep = time <= until
    return PoseTrack("mine", time, p + wrong, None, P).part(keep), PoseTrack("auv", time, p)


def test_the_metrics_of_a_known_error() -> None:
    s = scenario.scenario("lbl")
    found = score_track(*tracks(1.0), s)
    assert found["rms"] == pytest.approx(1.0) and found["p95"] == pytest.approx(1.0)
    assert found["first_fix"] == pytest.approx(30.0) and found["available"] == 1.0
    assert found["nees"] == pytest.approx(2.0)
    assert score_track(*tracks(3.0), s)["first_fix"] is None
    half = score_track(*tracks(1.0, 120.0), s)
    assert half["coverage"] == half["available"] == pytest.approx(0.5, abs=0.01)
    with pytest.raises(LogError, match="covers no time after 60 s"):
        score_track(*tracks(1.0, 40.0), s)


def test_a_fix_must_last() -> None:
    time = np.arange(0.0, 40.0, 1.0)
    error = np.where((time > 5.0) & (time < 12.0) | (time >= 20.0), 1.0, 9.0)
    assert first_fix(time, error, 2.0) == 20.0 and first_fix(time, error, 0.5) is None


def case(**changes: Any) -> dict[str, Any]:
    values = {"rms": 1.0, "p95": 2.0, "available": 0.9, "coverage": 0.95, "first_fix": 12.0, "ping_energy": 5.0}
    return {
        "scenario": "lbl", "level": "easy", "seed": 1, "digest": scenario.frozen_digests()["lbl"], "filter": "mine",
        "content_hash": "a", "truth_hash": "b", "vehicles": {"auv": values}, "bound": {"auv": 0.5},
        "straight": {"auv": 0.6}, **changes,
    }  # fmt: skip


def test_the_table_combines_results_and_refuses_those_of_other_runs(tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    results.write_results([case(), case(seed=2)], a)
    results.write_results([case(filter="reference")], b)
    done = run("table", str(a), str(b), "--format", "csv")
    assert done.exit_code == 0
    rows = [line.split(",") for line in done.output.splitlines()]
    assert rows[1][6:8] == ["0.5", "0.6"] and rows[1][10:12] == ["90", "95"]
    assert [row[:5] for row in rows[1:]] == [["lbl", "easy", "mine", "2", "1"], ["lbl", "easy", "reference", "1", "1"]]
    results.write_results([case(digest="0" * 64)], b)
    with pytest.raises(AlteredScenario, match=r"b\.json: the result for 'lbl' belongs to another version"):
        results.read_results([a, b])
    old = case(digest="0" * 64)  # results of earlier versions lack a column, but that is not the reason
    del old["straight"]
    results.write_results([old], b)
    with pytest.raises(AlteredScenario, match="belongs to another version of the scenario; run it again"):
        results.read_results([b])
    results.write_results([case(truth_hash="c")], b)
    with pytest.raises(AlteredScenario, match="the true tracks differ"):
        results.read_results([a, b])
    results.write_results([case()], b)
    with pytest.raises(LogError, match=r"a\.json and .*b\.json both contain a result of 'mine' for lbl, easy, seed 1"):
        results.read_results([a, b])
    row = results.csv(results.table_rows([case(filter='a "b", c')])).splitlines()[1]
    assert next(csv.reader([row]))[2] == 'a "b", c'
    for text, message in (
        ("{", "not a result"),
        ('{"format": "x"}', "must be JSON"),
        (b"\xff\xfe", "not a text file"),
        ('{"format": "wavesim-exam-1", "cases": [1]}', "must be an object"),
    ):
        b.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(LogError, match=message):
            results.read_results([b])


def test_the_commands_describe_the_scenarios() -> None:
    done = run("list")
    assert done.exit_code == 0 and len(done.output.splitlines()) == 10
    done = run("show", "one-way")
    assert "exact times of emission" in done.output and "hard" in done.output
    assert isinstance(run("show", "two-way").exception, UnknownName)


def test_a_head_without_a_speed_of_sound_assumes_that_of_the_water() -> None:
    """The exam found directions that the filter took to be four times as accurate as they are."""
    places = [(0.85, 0, 0), (0.75, 0.05, 0), (0.75, -0.05, 0), (0.75, 0, 0.05), (0.75, 0, -0.05)]
    phones = [SimpleNamespace(position=p) for p in places]
    head = SimpleNamespace(hydrophone=phones, timing_noise=6e-7, timing_resolution=0.0, sound_speed=0.0)
    assert _sight_sigma(head, 1500.0) == pytest.approx(np.hypot(1500.0 * 6e-7 / (0.05 * 2**0.5), RAY_BEND_SIGMA))
    head.sound_speed = 1490.0
    assert _sight_sigma(head, 1500.0) == _sight_sigma(head, 1.0)


# ------------------------------------------------------------------ from export to score


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exam")
    done = run("export", "lbl", str(folder), "--level", "medium", "--seeds", "1")
    assert done.exit_code == 0, done.output
    return folder


def test_an_export_contains_no_truth(exported: Path) -> None:
    place = exported / "lbl-medium-1"
    assert sorted(p.name for p in place.iterdir()) == [
        "auv-ahrs.csv", "auv-ctd.csv", "auv-speedlog.csv", "exam.json", "ranges.csv",
    ]  # fmt: skip
    facts = json.loads((place / "exam.json").read_text())
    start = facts["vehicles"]["auv"]["start"]
    assert start != [-120.0, -80.0] and facts["vehicles"]["auv"]["start_sigma"] == 20.0
    header = (place / "ranges.csv").read_text().splitlines()[0]
    assert header == "vehicle,node,time,query_time,range"


def test_a_strangers_filter_is_scored(exported: Path, root: Path, tmp_path: Path) -> None:
    """Plain NumPy on the exported tables: it beats its start by far, and does not fall below the bound."""
    subprocess.run([sys.executable, root / "examples/exam/own_filter.py", exported], check=True)
    out = tmp_path / "own.json"
    done = run("score", "all", str(exported), "--name", "own", "--out", str(out), "--workers", "1")
    assert done.exit_code == 0, done.output
    (found,) = results.read_results([out])
    values, bound = found["vehicles"]["auv"], found["bound"]["auv"]
    assert found["filter"] == "own" and 0.5 * bound < values["rms"] < 1.0 and values["available"] > 0.9
    one = run("score", "lbl", str(exported / "lbl-medium-1" / "estimate.csv"), "--name", "own", "--json")
    assert json.loads(one.stdout)[0]["vehicles"] == found["vehicles"]
    facts = exported / "lbl-medium-1" / "exam.json"
    before = facts.read_text()
    known = json.loads(before)
    assert known["content_hash"] == found["content_hash"]
    facts.write_text(json.dumps({**known, "content_hash": "0" * 64}))
    with pytest.raises(AlteredScenario, match=r"was exported by another version of the simulator .* export it again"):
        raise run("score", "all", str(exported), "--workers", "1").exception  # type: ignore[misc]
    facts.write_text(before)


def test_cases_without_an_estimate_are_named_and_stale_ones_refused(tmp_path: Path) -> None:
    """Also with `all`, which takes the scenarios that the folder has."""
    stale = tmp_path / "lbl-easy-1" / "exam.json"
    for seed in (1, 2):
        (tmp_path / f"lbl-easy-{seed}").mkdir()
        digest = scenario.frozen_digests()["lbl"]
        facts = {"scenario": "lbl", "level": "easy", "seed": seed, "digest": digest, "content_hash": "0"}
        (tmp_path / f"lbl-easy-{seed}" / "exam.json").write_text(json.dumps(facts))
    (tmp_path / "lbl-easy-2" / "estimate.csv").touch()
    found, lacking = find_estimates(tmp_path, scenario.scenario("lbl"))
    assert list(found) == [("easy", 2)] and lacking == [tmp_path / "lbl-easy-1"]
    for text, message in (
        (json.dumps({**facts, "digest": "0"}), "exported from another version"),
        ("{}", "is not a file of `wavesim exam export`"),
        (json.dumps({k: v for k, v in facts.items() if k != "content_hash"}), "exported from another version"),
    ):
        stale.write_text(text)
        with pytest.raises(LogError, match=message):
            raise run("score", "all", str(tmp_path)).exception  # type: ignore[misc]


def test_an_estimate_beside_facts_of_another_run_is_refused(tmp_path: Path) -> None:
    """Exports of earlier versions contain no content hash. Facts of another case, and other files, do not matter."""
    ours: Any = SimpleNamespace(
        scenario=SimpleNamespace(name="lbl"), level="easy", seed=1, log=SimpleNamespace(content_hash="1" * 64)
    )
    facts = {"scenario": "lbl", "level": "easy", "seed": 1, "digest": "0"}
    path = tmp_path / "exam.json"
    for known in ({**facts, "content_hash": "1" * 64}, {**facts, "seed": 2}, {}, []):
        path.write_text(json.dumps(known))
        check_export(path, ours)
    for known, hashed in ((facts, "unknown"), ({**facts, "content_hash": "2" * 64}, "2" * 12)):
        path.write_text(json.dumps(known))
        with pytest.raises(
            AlteredScenario, match=rf"another version of the simulator \(content hash {hashed}, now 1+\)"
        ):
            check_export(path, ours)


def test_mistakes_in_estimates_get_one_message(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no estimates of 'usbl'"):
        raise run("score", "usbl", str(exported)).exception  # type: ignore[misc]
    done = run("score", "lbl", str(exported), "--seed", "3")
    assert done.exit_code == 2 and "--level and --seed apply to files" in done.output
    with pytest.raises(ConfigError, match=r"cannot write .*x\.json: the folder .*absent does not exist"):
        raise run("run", "lbl", "--out", str(tmp_path / "absent" / "x.json")).exception  # type: ignore[misc]


@pytest.mark.long
def test_a_live_program_gets_the_same_run(root: Path, tmp_path: Path) -> None:
    out = [tmp_path / "live.json", tmp_path / "reference.json"]
    program = root / "examples/exam/live_filter.py"
    one = ("--seeds", "1", "--workers", "1")
    done = run("run", "lbl", "--program", str(program), "--out", str(out[0]), *one)
    assert done.exit_code == 0, done.output
    assert run("run", "lbl", "--out", str(out[1]), *one).exit_code == 0
    live, reference = results.read_results(out)
    assert live["truth_hash"] == reference["truth_hash"] and live["content_hash"] != reference["content_hash"]
    assert live["vehicles"]["auv"]["rms"] < 2.0 and live["filter"] == "live_filter"


@pytest.mark.long
@pytest.mark.timeout(1500)  # the first run for a generic processor compiles all kernels and the filter
def test_one_table_for_any_number_of_workers_and_any_processor(tmp_path: Path) -> None:
    """Four cases, by one worker and by two that compile for a generic processor with one thread."""
    tables = []
    for k, (workers, settings) in enumerate(
        (("1", {}), ("2", {"NUMBA_CPU_NAME": "generic", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}))
    ):
        out = tmp_path / f"{k}.json"
        command = [sys.executable, "-m", "wavesim_sdk", "exam", "run", "lbl", "currents", "--seeds", "2"]
        subprocess.run([*command, "--workers", workers, "--out", str(out)], check=True, env={**os.environ, **settings})
        tables.append(results.markdown(results.table_rows(results.read_results([out]))))
        hashes = [c["content_hash"] for c in results.read_results([out])]
        tables.append("".join(hashes))
    assert tables[:2] == tables[2:]
