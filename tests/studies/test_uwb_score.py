"""UWB and GPS from logs in the reference filter: a model boat tracks way-points around four corners, as in the Panisim dissertation,
with its UWB receiver (0.23 m a coordinate) and IMU.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.studies import boat
from wavesim_sdk import frames
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.log import Log, Series, read
from wavesim_studies.navigation import cli, logs

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("navigation")]
ANTENNA = (0.2, 0.05, -0.4)
GPS = '<gps rate="5 Hz" hacc="0.8 m" vacc="1 m" correlation="20 s" position="0.2 0.05 -0.4 m"/>'
UWB = logs.Selection(use=("imu", "uwb"))
Array = Any


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("boat") / "run.mcap"
    program = boat.run(found, 115.0, 3, boat.SENSORS.format(rate=5) + GPS + '<ahrs rate="5 Hz"/>')
    assert program.reached == 4, "all four way-points"
    return found


@pytest.fixture(scope="module")
def log(path: Path) -> Log:
    return read(path)


def score(path: Path, *options: str) -> Any:
    done = CliRunner().invoke(cli.nav, ["score", str(path), *options, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)["boat"]


def changed(log: Log, sensor: str, change: Callable[[Any, Array], None]) -> Log:
    """The log with other values of a sensor; the change is given its records and the true positions of the antenna."""
    state, series = log.series["/state/boat"], log.series[f"/sensor/boat/{sensor}"]
    p = state.records["p_WB_W"] + frames.rotation(state.records["q_WB"]) @ np.array(ANTENNA)
    records, times = series.records.copy(), series.records["time_ns"]
    change(records, np.stack([np.interp(times, state.time_ns, p[:, k]) for k in range(3)], axis=1))
    found = copy.copy(log)
    found.series = {**log.series, f"/sensor/boat/{sensor}": Series(series.time_ns, records, sensor)}
    return found


def test_uwb_and_imu_around_four_corners(path: Path) -> None:
    """15 states, from a log end to end: half the error of the raw fixes, and as sure as it may be."""
    found = score(path, "--use", "imu", "--use", "uwb")
    uwb = found["sensors"]["uwb"]
    assert found["states"] == 15 and found["inertial"] == "imu" and list(found["sensors"]) == ["uwb"]
    assert found["unused"] == {"gps": "excluded", "ahrs": "excluded"} and 50.0 < found["distance"] < 70.0
    assert uwb["raw"] == pytest.approx(boat.UWB_SIGMA * 2.0**0.5, rel=0.1) and found["rms"] < 0.6 * uwb["raw"]
    assert uwb["taken"] + uwb["refused"] > 550 and uwb["refused"] < 15 and uwb["low"] < uwb["nis"] < uwb["high"]


def test_the_filter_is_consistent_over_many_draws_of_the_radio(log: Log) -> None:
    """NEES (2) and NIS (3) with eight other draws of the fixes' noise."""
    nees, nis = [], []
    for seed in range(8):
        noise = boat.UWB_SIGMA * np.random.default_rng(seed).standard_normal((10_000, 3))

        def draw(records: Any, p: Array, noise: Array = noise) -> None:
            records["position"] = p + noise[: len(p)]

        voyage = logs.estimation_case(changed(log, "uwb", draw), "boat", selection=UWB)
        track = voyage.run()
        nees.append(voyage.score(track).nees)
        nis.append(logs.counts(voyage, track)["uwb"]["nis"])
    assert 1.3 < np.mean(nees) < 2.7 and np.mean(nis) == pytest.approx(3.0, rel=0.05)


def test_the_lever_arm_of_the_antenna_is_used(log: Log) -> None:
    """Exact fixes: an antenna 0.2 m ahead that is taken for the origin would leave an error of that size."""

    def exact(records: Any, p: Array) -> None:
        records["position"] = p

    voyage = logs.estimation_case(changed(log, "uwb", exact), "boat", selection=UWB)
    assert voyage.score(voyage.run()).rms < 0.1


def test_reflected_fixes_are_rejected_unless_the_gate_is_off(log: Log) -> None:
    """The dissertation's jumps: each tenth fix is 3 m off."""

    def reflect(records: Any, p: Array) -> None:
        records["position"][::10, 1] += 3.0

    jumps, errors = changed(log, "uwb", reflect), []
    for gated in (True, False):
        voyage = logs.estimation_case(jumps, "boat", selection=logs.Selection(use=("imu", "uwb"), gated=gated))
        track = voyage.run()
        errors.append(voyage.score(track).rms)
        counted = logs.counts(voyage, track)["uwb"]
        assert (56 <= counted["refused"] <= 70) if gated else counted["refused"] == 0
    assert errors[0] < 0.25 < 2.0 * errors[0] < errors[1]


def test_gps_is_used_and_its_slow_error_is_not_averaged_away(path: Path, log: Log) -> None:
    """Five fixes per second with an error that lasts 20 s: as sure as white noise, NEES would be above ten."""
    found = score(path, "--use", "imu", "--use", "gps")
    assert list(found["sensors"]) == ["gps"] and found["sensors"]["gps"]["taken"] > 550
    origin, nees = Origin(np.radians(13.0), np.radians(80.0)), []
    for seed in range(6):
        rng, keep = np.random.default_rng(seed), np.exp(-0.2 / 20.0)
        error = rng.standard_normal((10_000, 3))
        for k in range(1, len(error)):
            error[k] = keep * error[k - 1] + np.sqrt(1.0 - keep * keep) * error[k]
        error *= 0.8 * 0.5**0.5, 0.8 * 0.5**0.5, 1.0

        def draw(records: Any, p: Array, error: Array = error) -> None:
            records["latitude"], records["longitude"], records["height"] = origin.geodetic(p + error[: len(p)])

        voyage = logs.estimation_case(changed(log, "gps", draw), "boat", selection=logs.Selection(use=("imu", "gps")))
        nees.append(voyage.score(voyage.run()).nees)
    assert 0.4 < np.mean(nees) < 3.5


def test_assumed_noise_and_unused_instruments_are_reported(path: Path) -> None:
    usual, doubted = score(path, "--use", "uwb", "--use", "imu"), score(path, "--without", "ahrs", "--noise", "uwb=3")
    assert doubted["sensors"]["uwb"]["nis"] < 0.2 * usual["sensors"]["uwb"]["nis"] and "gps" in doubted["sensors"]
    done = CliRunner().invoke(cli.nav, ["score", str(path), "--without", "gps"])
    assert done.exit_code == 0 and "propagates 15 states" in done.output
    assert "not used: excluded" in done.output and "m rms" in done.output and "(95 %: " in done.output


def test_mistakes(path: Path) -> None:
    for text in ("uwb", "uwb=x", "uwb=0", "=2"):
        done = CliRunner().invoke(cli.nav, ["score", str(path), "--noise", text])
        assert done.exit_code == 2 and "must be NAME=FACTOR" in done.output
    done = CliRunner().invoke(cli.nav, ["score", str(path), "--use", "radar"])
    assert "unknown type or instrument 'radar'; use: imu, dvl" in str(done.exception)
