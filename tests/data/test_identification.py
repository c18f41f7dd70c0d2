"""The model boat's two recorded runs: coefficients fitted to one predict the other, and the shipped `sookshma-fitted` is what
both runs give.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from wavesim_studies.identification import (
    FitResult,
    RecordedTrial,
    ShootingOptions,
    TrialSource,
    fit,
    parse_unknowns,
    read_trial,
)
from wavesim_world.config import library

pytestmark = [pytest.mark.data, pytest.mark.xdist_group("identification")]
MAP = """<trial licence="MIT">
<table file="mav_rudder_command.csv" columns="time=t_ns:ns rudder=data:rad"/>
<table file="sookshma_00_imu_data.csv" columns="time=t_ns:ns yaw_rate=wz:rad/s"/>
<table file="sookshma_00_odometry.csv" columns="time=t_ns:ns north=x:m east=y:m attitude=qw,qx,qy,qz"/>
</trial>"""
CHANNELS = ("north", "east", "heading", "yaw_rate")
UNKNOWNS = ["derivatives/N_r~100%", "derivatives/N_v", "derivatives/N_d1", "fin[rudder]/lag~100%", "offset/rudder"]
OPTIONS = ShootingOptions()
PUSH = {"push": 1.28}


@pytest.fixture(scope="module")
def runs(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RecordedTrial]:
    path = tmp_path_factory.mktemp("map") / "trial.xml"
    path.write_text(MAP)
    source = TrialSource(map_file=path)
    model = library()["sookshma"]
    return {k: read_trial(data_dir / f"sookshma/run-{k}", model, source).with_channels(CHANNELS) for k in "ab"}


def fit_to(trials: list[RecordedTrial]) -> FitResult:
    model = library()["sookshma"]
    return fit(model, trials, parse_unknowns(UNKNOWNS, model, CHANNELS, len(trials)), OPTIONS, PUSH)


@pytest.fixture(scope="module")
def fits(runs: dict[str, RecordedTrial]) -> dict[str, FitResult]:
    return {k: fit_to([runs[k]]) for k in "ab"}
