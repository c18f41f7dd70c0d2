"""The model boat's two recorded runs: coefficients fitted to one predict the other, and the shipped `sookshma-fitted` is what
both runs give.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from wavesim_studies.identification import (
    FitResult,
    RecordedTrial,
    ShootingOptions,
    TrialSource,
    fit,
    parse_unknowns,
    predict,
    read_trial,
)
from wavesim_studies.identification.coefficients import ModelCoefficients
from wavesim_world.config import library

pytestmark = [pytest.mark.data, pytest.mark.xdist_group("identification")]
MAP = """<trial licence="MIT">
<table file="mav_rudder_command.csv" columns="time=t_ns:ns rudder=data:rad"/>
<table file="sookshma_00_imu_data.csv" columns="time=t_ns:ns yaw_rate=wz:rad/s"/>
<table file="sookshma_00_odometry.csv" columns="time=t_ns:ns north=x:m east=y:m attitude=qw,qx,qy,qz"/>
</trial>"""
CHANNELS = ("north", "east", "heading", "yaw_rate")
#: all fitted to the yaw rate, because the odometry follows the boat late and in steps
UNKNOWNS = ["derivatives/N_r~100%", "derivatives/N_v", "derivatives/N_d1", "fin[rudder]/rate=2~50%", "offset/rudder"]
OPTIONS = ShootingOptions()
#: the propeller turned at 800 rpm throughout, which holds about 0.5 m/s; 1.28 N is the drag of the model there
ASSUMED = {"push": 1.28, "speed": 0.5}
SURGE_TIME = 3.1  #: time constant of the model's surge in s: 7.99 kg and 2.56 N/(m/s)


@pytest.fixture(scope="module")
def runs(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RecordedTrial]:
    path = tmp_path_factory.mktemp("map") / "trial.xml"
    path.write_text(MAP)
    source = TrialSource(map_file=path)
    model = library()["sookshma"]
    return {k: read_trial(data_dir / f"sookshma/run-{k}", model, source).with_channels(CHANNELS) for k in "ab"}


def fit_to(trials: list[RecordedTrial]) -> FitResult:
    model = library()["sookshma"]
    trials = [t.with_channels(("yaw_rate",)) for t in trials]
    return fit(model, trials, parse_unknowns(UNKNOWNS, model, ("yaw_rate",), len(trials)), OPTIONS, ASSUMED)


@pytest.fixture(scope="module")
def fits(runs: dict[str, RecordedTrial]) -> dict[str, FitResult]:
    return {k: fit_to([runs[k]]) for k in "ab"}


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("b", "a")])
def test_a_fit_to_one_run_predicts_the_other(
    one: str, other: str, runs: dict[str, RecordedTrial], fits: dict[str, FitResult]
) -> None:
    """Yaw rate of the held-out run: at most 0.045 rad/s rms and 16 % of its variation, and at least 97 % of its variance;
    the shipped model explains none of it. From a start state that fits the whole run, the track stays within 1 m.
    """
    result = fits[one]
    known = {**ASSUMED, **result.common_values()}
    shipped = predict(library()["sookshma"], runs[other], OPTIONS, ASSUMED).errors["yaw_rate"]
    error = predict(result.model, runs[other], OPTIONS, known).errors["yaw_rate"]
    assert error.rms < 0.045 and error.rms < 0.16 * error.variation and error.explained > 0.97
    assert shipped.explained < 0.0
    from_start = predict(result.model, runs[other], OPTIONS, known, 3.0).distances
    best_start = predict(result.model, runs[other], OPTIONS, known, 100.0).distances
    late = max(k for k in best_start if k < 26.0)
    assert best_start[10.0] < 0.5 and best_start[late] < 1.0
    assert from_start[10.0] < 1.6 and from_start[late] < 4.0, "the first three seconds do not tell the start state"


def test_both_runs_agree_on_what_was_fitted(fits: dict[str, FitResult]) -> None:
    """The rate of the rudder and its offset are properties of the boat: within two standard errors in both runs."""
    a, b = fits["a"], fits["b"]
    for k, u in enumerate(a.unknowns):
        assert abs(a.value(k) - b.value(k)) < 2.0 * math.hypot(a.sd(k), b.sd(k)), u.path
        assert a.uncertainty.informed(k), u.path


def test_the_shipped_model_is_the_fit_to_both_runs(runs: dict[str, RecordedTrial]) -> None:
    result = fit_to([runs["a"], runs["b"]])
    shipped = ModelCoefficients(library()["sookshma-fitted"])
    for k, u in enumerate(result.unknowns):
        if u.kind == "coefficient":
            assert shipped.value(u.path) == pytest.approx(result.value(k), rel=0.02), u.path


def test_a_start_in_the_middle_of_a_run_predicts_the_track(
    runs: dict[str, RecordedTrial], fits: dict[str, FitResult]
) -> None:
    """Once the boat is under way, 3 s of measurements are enough for a start: the track to the end of the run, 16 and 23 s later, is
    predicted to less than 1 m. The yaw coefficients are those of the other run.
    """
    for one, other in ("ab", "ba"):
        trial = runs[other].part(runs[other].begin + 6.0, runs[other].end)
        known = {"push": ASSUMED["push"], **fits[one].common_values()}
        assert max(predict(fits[one].model, trial, OPTIONS, known).distances.values()) < 1.0


def test_the_first_seconds_limit_the_track(runs: dict[str, RecordedTrial]) -> None:
    """Why the track is not within 1 m: even the measured yaw rate, integrated, misses it by metres if heading and speed come from the
    first three seconds, at a constant speed by more than 2 m rms, and by 2 to 3 m after 25 s if the boat speeds up like the model. The
    start of the whole run gives less than 0.5 m.
    """
    for trial in (t.averaged(0.1) for t in runs.values()):
        assert _dead_reckoned(trial, 3.0)[0] > 2.0
        assert _dead_reckoned(trial, 3.0, SURGE_TIME)[1] > 1.5
        assert _dead_reckoned(trial, 100.0)[0] < 0.5


def _dead_reckoned(trial: RecordedTrial, seconds: float, surge: float = math.inf) -> tuple[float, float]:
    """Return the distance in m from the odometry of a track by the gyro, rms and at the end of 25 s, with the start that fits its
    first seconds. The speed approaches that of the model with the time constant ``surge`` in s.
    """
    rate, north, east = (trial.channels[k] for k in ("yaw_rate", "north", "east"))
    dt = np.diff(rate.time)
    yaw = np.concatenate([[0.0], np.cumsum(0.5 * (rate.value[1:] + rate.value[:-1]) * dt)])
    decay = np.exp(-(rate.time - rate.time[0]) / surge)

    def off(z: Any) -> Any:
        u = z[0] * decay + ASSUMED["speed"] * (1.0 - decay)
        p = [np.concatenate([[0.0], np.cumsum((u * f(yaw + z[1]))[:-1] * dt)]) for f in (np.cos, np.sin)]
        return [np.interp(north.time, rate.time, x) + z[k] - s.value for k, x, s in ((2, p[0], north), (3, p[1], east))]

    early = north.time < north.time[0] + seconds
    starts = [[0.5, h, north.value[0], east.value[0]] for h in np.arange(0.0, 6.3, 1.0)]
    best = min(
        (optimize.least_squares(lambda z: np.concatenate([d[early] for d in off(z)]), s) for s in starts),
        key=lambda s: s.cost,
    )
    distance = np.hypot(*off(best.x))
    until = min(25.0, float(min(north.time[-1], rate.time[-1]) - north.time[0]))
    return float(np.sqrt(np.mean(distance**2))), float(np.interp(north.time[0] + until, north.time, distance))
