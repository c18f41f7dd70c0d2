"""The filter over a log: instruments are mounted as configured, and the true states are kept apart."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from tests.studies.test_filter import voyage
from tests.studies.voyage import logged
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log
from wavesim_studies.navigation import cli, logs, metrics

pytestmark = [pytest.mark.xdist_group("navigation")]


@pytest.fixture(scope="module")
def log() -> Log:
    return logged(voyage(120.0, 10.0, leg=40.0))


def test_mountings_and_levers_are_those_of_the_configuration(log: Log) -> None:
    voyage_ = logs.estimation_case(log, "auv", without=("ahrs", "speedlog"))
    track = voyage_.run()
    found = metrics.score(track.at(voyage_.lever), track.q, voyage_.p, voyage_.q, track.covariance[:, :2, :2])
    assert found.rms < 0.5 and found.percent < 0.5 and found.distance > 150.0
    scores = logs.counts(voyage_, track)
    assert list(scores) == ["dvl"] and scores["dvl"]["refused"] <= 5 and 1.5 < scores["dvl"]["nis"] < 4.5


def test_the_unit_alone_is_right_where_it_is_mounted_and_knows_how_little_it_knows(log: Log) -> None:
    """Its samples are ideal: whoever turned or moved them wrongly would be metres off."""
    voyage_ = logs.estimation_case(log, "auv", without=("dvl", "ahrs", "speedlog"))
    track = voyage_.run()
    assert np.linalg.norm(track.at(voyage_.lever)[-1] - voyage_.p[-1]) < 0.01
    assert np.sqrt(np.trace(track.covariance[-1, :3, :3])) > 10.0


@pytest.mark.parametrize("noise", [1.0, 0.5])
def test_without_a_unit_the_filter_is_as_sure_as_it_may_be(noise: float) -> None:
    """Moved by its AHRS, with a speed log and a Doppler log: innovations and errors of position are as large as stated,
    in turns too; where the configuration says half the noise that there is, they are not.
    """
    o, nis, nees = voyage(120.0, 10.0, leg=20.0), [], []
    for seed in range(8):
        voyage_ = logs.estimation_case(logged(o, seed, noise), "auv", without=("imu",))
        track = voyage_.run()
        scores = logs.counts(voyage_, track)
        nis.append([scores[sensor]["nis"] / scores[sensor]["numbers"] for sensor in ("ahrs", "speedlog")])
        nees.append(voyage_.score(track).nees)
    found = np.mean(nis, axis=0)
    assert (abs(found - 1.0) < 0.25).all() == (noise == 1.0)
    assert 0.2 < np.mean(nees) < 2.6, "2, but it begins at the very place"


def test_mistakes(log: Log) -> None:
    with pytest.raises(LogError, match=r"no vehicle 'aux'.*vehicles: auv"):
        logs.estimation_case(log, "aux")
    with pytest.raises(LogError, match=r"unknown type or instrument 'sonar'; use: imu, .*uwb"):
        logs.estimation_case(log, "auv", without=("sonar",))
    with pytest.raises(LogError, match="neither an IMU nor an AHRS has a valid value"):
        logs.estimation_case(log, "auv", without=("imu", "ahrs"))
    done = CliRunner().invoke(cli.nav, ["score", "absent.mcap", "--picture", "x.foo"])
    assert (
        done.exit_code == 2 and "'x.foo' must end in one of .png, .pdf, .svg" in done.output
    )  # before anything is computed
