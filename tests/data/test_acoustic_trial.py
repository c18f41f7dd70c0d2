"""The recorded trial ssu1: reconstruction against GPS and against receivers left out, and the same trial simulated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from wavesim_sdk.errors import LogError
from wavesim_studies.field_trials import cli, ssu1, trial_comparison
from wavesim_studies.field_trials.clock_solution import Survey, solve_clocks
from wavesim_studies.field_trials.medium_fit import LATE_TIME, RESOLUTION, fit_medium, fit_survey
from wavesim_studies.field_trials.simulated_trial import TrialModel, simulate
from wavesim_studies.field_trials.towed_track import GAP
from wavesim_studies.field_trials.trial_comparison import Analysis

pytestmark = [pytest.mark.data, pytest.mark.xdist_group("real"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def survey(data_dir: Path) -> Survey:
    return fit_survey(*ssu1.read(data_dir / "ssu1"))


@pytest.fixture(scope="module")
def recorded(survey: Survey, data_dir: Path) -> Analysis:
    return trial_comparison.analyse(ssu1.read(data_dir / "ssu1")[0], survey, ssu1.TOWED)


@pytest.fixture(scope="module")
def source(recorded: Analysis, survey: Survey) -> TrialModel:
    trial = recorded.trial
    medium = fit_medium(trial, recorded.clocks, survey, ssu1.fit_span(trial))
    return TrialModel(trial, recorded.clocks, recorded.track, ssu1.TOWED, medium)


@pytest.fixture(scope="module")
def simulated(source: TrialModel, survey: Survey) -> Analysis:
    return trial_comparison.analyse(simulate(source, 1), survey, ssu1.TOWED)


def test_clocks_agree_with_the_stored_ones(recorded: Analysis, data_dir: Path) -> None:
    """yaps states the offset of each clock at the start of two periods, with positions of its own."""
    rows = np.genfromtxt(data_dir / "ssu1" / "yaps_sync.csv", delimiter=",", names=True)
    for row in rows:
        at = row["from_epoch_s"] - recorded.trial.start
        offset = recorded.clocks.offset_and_drift(int(row["idx"]) - 1, at)[0][0]
        assert abs(offset - row["offset_s"]) < 5e-3
    # two standard deviations (6 m/s) about 1542 m/s, which 27 to 33 C at the surface allow; residuals 0.34 ms
    assert 1530.0 < recorded.clocks.sound_speed < 1555.0 and recorded.clocks.scale < 0.36e-3


def test_the_track_is_as_near_to_gps_as_the_stored_one(recorded: Analysis, data_dir: Path) -> None:
    found = recorded.summary()
    stored = ssu1.yaps_track(data_dir / "ssu1", recorded.trial)
    assert stored is not None
    to_gps, between = ssu1.yaps_distances(stored, recorded.track, recorded.trial.gps)
    assert to_gps == pytest.approx(3.22, abs=0.05)
    # the tracks differ by 1.23 m, since tags have positions of their own: less than either differs from GPS
    assert between < 1.5
    assert found["median_to_gps"] < to_gps  # 3.16 m; the best constant of the clock is the better comparison
    assert found["median_to_gps_shifted"] <= 2.5 and found["towed_residual_ms"] <= 0.36


def test_own_arrivals_are_late_by_the_distance_of_the_tag(recorded: Analysis) -> None:
    """Receivers report the tag on their own mooring 1.3 to 2.3 ms late. The tag is 1.7 to 2.5 m away."""
    clocks, trial = recorded.clocks, recorded.trial
    for tag, n in trial.fixed_tags.items():
        distance = float(np.linalg.norm(clocks.tag_positions[n] - clocks.positions[n]))
        rows = clocks.groups.rows
        own = (trial.tag[rows] == tag) & (trial.receiver[rows] == n)
        assert own.sum() > 120 and 1.5 < distance < 2.8
        assert abs(np.median(clocks.residual[own])) < 0.2e-3


def test_no_ping_with_four_receivers_is_thrown_away(recorded: Analysis) -> None:
    """An own, plain grouping of the detections by their common times."""
    trial, rows = recorded.trial, recorded.trial.tag == ssu1.TOWED
    order = np.argsort(common := recorded.clocks.common(trial.receiver[rows], trial.time[rows]))
    pings = np.split(trial.receiver[rows][order], np.flatnonzero(np.diff(common[order]) > GAP) + 1)
    assert recorded.track.groups.count == sum(len(set(p)) >= 4 for p in pings) == 120


def test_arrivals_at_receivers_left_out_are_predicted(recorded: Analysis) -> None:
    errors = recorded.held_out()  # 0.59 ms at the worst receiver
    assert errors.max() < 0.6e-3


def test_another_set_is_refused(recorded: Analysis, tmp_path: Path) -> None:
    from wavesim_studies.field_trials.detection_files import within, write_trial

    write_trial(tmp_path, within(recorded.trial, recorded.trial.tag != ssu1.TOWED))
    with pytest.raises(LogError, match="does not contain ssu1"):
        ssu1.read(tmp_path)


def test_simulated_arrivals_have_the_true_times(source: TrialModel, recorded: Analysis, simulated: Analysis) -> None:
    """Each arrival is the emission plus distance over sound speed, by the receiver's clock, with the fitted noise."""
    found, truth = simulated.trial, source.truth(1)
    pings = np.zeros(recorded.clocks.groups.count, np.int64)
    pings[recorded.clocks.groups.ping] = recorded.trial.tag[recorded.clocks.groups.rows]
    errors = []
    for tag, home in recorded.trial.fixed_tags.items():
        sent = np.sort(recorded.clocks.ping_time[pings == tag]) - source.begin
        for n in range(len(found.serials)):
            offset, drift = source.linear_clock(n, truth)
            heard = (found.time[(found.tag == tag) & (found.receiver == n)] - offset) / (1.0 + drift)
            travel = np.linalg.norm(truth.positions[n] - truth.tag_positions[home]) / truth.sound_speed
            errors += [h - travel - sent[np.argmin(np.abs(sent - h + travel))] for h in heard]
    medium = source.medium
    late = medium.late_share * LATE_TIME / 2.0
    noise = np.sqrt(medium.timing_noise**2 + RESOLUTION**2 / 12.0 + medium.late_share * LATE_TIME**2 / 3.0)
    # the recording has 7453 arrivals of fixed tags, this trial 7479
    assert len(errors) > 7000 and abs(np.mean(errors) - late) < 0.03e-3
    assert np.std(errors) == pytest.approx(noise, rel=0.1)


def test_the_simulated_trial_is_recovered(source: TrialModel, recorded: Analysis, simulated: Analysis) -> None:
    truth, found = source.truth(1), simulated.clocks
    inside = []
    for n in range(len(recorded.trial.names)):
        (offset, drift), covariance = found.offset_and_drift(n, found.middle)
        (expected, true_drift), _ = truth.offset_and_drift(n, truth.middle)
        expected += true_drift * (found.middle - truth.middle)
        if found.clock_index[n] >= 0:
            inside += (np.abs([offset - expected, drift - true_drift]) < 1.96 * np.sqrt(np.diag(covariance))).tolist()
        first = found.position_index[n]  # no position is exact
        deviation = np.sqrt(np.diag(found.covariance)[first : first + 2])
        inside += (np.abs(found.positions[n, :2] - truth.positions[n, :2]) < 1.96 * deviation).tolist()
        assert abs(drift - true_drift) < 0.05e-6  # at most 0.032 ppm in twenty trials
    # errors of one trial are correlated, so that 95 % is not to be expected: 78 % here, 92 % with the next seeds, 93 % in all.
    # Intervals without the errors of held positions contained as little as 39 %.
    assert np.mean(inside) >= 0.75
    assert abs(found.sound_speed - truth.sound_speed) < 3.0 * found.covariance[-1, -1] ** 0.5 < 24.0
    nearest = np.argmin(np.abs(simulated.track.time[:, None] - recorded.track.time), axis=1)
    error = np.linalg.norm(simulated.track.position - recorded.track.position[nearest], axis=1)
    assert simulated.track.groups.count >= 115 and np.median(error) < 1.5  # 0.4 to 1.5 m in twenty trials


def test_shares_and_residuals_of_the_towed_tag(recorded: Analysis, simulated: Analysis) -> None:
    """The fit has not used the towed tag. Where both differ, docs/evidence/real-trials.md says so."""
    shares = trial_comparison.compare_shares(recorded, [simulated])
    bins = trial_comparison.compare_residuals(recorded, [simulated])
    # twenty trials agree in all ten and all five intervals; a single trial has errors of its own
    assert sum(s.agrees for s in shares) >= 8
    assert sum(b.agrees for b in bins) >= 4
    # the test by receivers is weak, so the quantiles are limited too: 0.6 ms here, 1.7 ms before tags had their own positions
    assert max(b.difference for b in bins) < 0.9e-3


def test_the_command_writes_configuration_and_report(data_dir: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        cli.data, ["ssu1", str(data_dir / "ssu1"), "--out", str(tmp_path), "--picture", str(tmp_path / "p.png")]
    )
    assert done.exit_code == 0 and "GPL-3" in done.output and "19 of 19 within 0.6 ms" in done.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["recorded"]["pings"] == 120 and (tmp_path / "p.png").stat().st_size > 20_000
    from wavesim_world.config import load

    bodies = load(tmp_path / "trial.xml").config.fleet.bodies
    assert len(bodies) == 23


def test_the_solution_does_not_depend_on_the_order_of_the_rows(recorded: Analysis, survey: Survey) -> None:
    from dataclasses import replace

    trial = recorded.trial
    order = np.random.default_rng(1).permutation(len(trial.time))
    mixed = replace(trial, receiver=trial.receiver[order], tag=trial.tag[order], time=trial.time[order])
    assert solve_clocks(mixed, survey).sound_speed == pytest.approx(recorded.clocks.sound_speed, abs=1e-6)
