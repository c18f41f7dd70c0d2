"""Real soundings and a real water column: the emulators follow the data, checked by other interpolators."""

from __future__ import annotations

import csv
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import LinearNDInterpolator, RegularGridInterpolator

from tests.e2e.test_trial import run_trial
from wavesim_sdk.log import Log
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import STATE
from wavesim_world.ocean import bed, seawater
from wavesim_world.ocean.volume import EARTH_RADIUS, VOLUME_COLUMNS, read_volume

pytestmark = [pytest.mark.data, pytest.mark.xdist_group("real"), pytest.mark.timeout(300)]

SOUNDINGS = Path("dune/bathymetry-apdl.ini")
VOLUME = Path("lrauv/monterey-bay-temperature-salinity-current.csv")


def soundings(data_dir: Path) -> np.ndarray:
    """An own, plain reading of the file."""
    text = (data_dir / SOUNDINGS).read_text(errors="replace").split("Data =")[1]
    return np.array([[float(x) for x in t] for t in re.findall(r"(-?\d+\.\d+)\s+(-?\d+\.\d+)\s+(-?\d+\.\d+)", text)])


def volume(data_dir: Path) -> list[dict[str, float]]:
    with (data_dir / VOLUME).open() as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def test_soundings_are_exact_at_every_point(data_dir: Path) -> None:
    points = soundings(data_dir)
    assert len(points) == 13137
    t = bed.TriangulatedBed(bed.read_soundings(data_dir / SOUNDINGS))
    assert t(points[:, 0], points[:, 1]) == pytest.approx(points[:, 2], abs=1e-6)


def test_the_volume_is_exact_at_every_valid_point(data_dir: Path) -> None:
    rows = volume(data_dir)
    lat0, lon0 = math.radians(36.8069), math.radians(-121.8241)
    grid = read_volume(data_dir / VOLUME, lat0, lon0)
    good = [r for r in rows if math.isfinite(r["sea_water_temperature_degC"])]
    p = np.array(
        [
            [
                (math.radians(r["latitude_degree"]) - lat0) * EARTH_RADIUS,
                (math.radians(r["longitude_degree"]) - lon0) * EARTH_RADIUS * math.cos(lat0),
                r["depth_meter"],
            ]
            for r in good
        ]
    )
    got = grid(p)
    assert np.isfinite(got).all() and len(good) > 10_000
    for k, column in enumerate(VOLUME_COLUMNS.values()):
        expected = np.array([r[column] for r in good])
        assert got[k] == pytest.approx(expected, abs=2e-4 * np.ptp(expected) + 1e-9), column


@pytest.fixture(scope="module")
def trial(root: Path, data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp("real")
    (folder / "trials" / "data").mkdir(parents=True)
    (folder / "onboard").symlink_to(root / "examples/onboard")
    (folder / "trials/data/soundings.ini").symlink_to(data_dir / SOUNDINGS)
    (folder / "trials/data/volume.csv").symlink_to(data_dir / VOLUME)
    config = folder / "trials" / "real-water.xml"
    config.write_text((root / "examples/trials/real-water.xml").read_text())
    linked = ["--files", str(root / "examples"), "--files", str(data_dir.resolve())]
    return run_trial(config, folder, f"real{os.getpid()}", *linked, "--duration", "270", "--no-plots")[0]


@pytest.mark.long
@pytest.mark.system
@pytest.mark.xdist_group("real")
def test_the_echosounder_follows_the_soundings(trial: Log, data_dir: Path) -> None:
    points = soundings(data_dir) + np.array([-2450.0, 850.0, 0.0])
    judge = LinearNDInterpolator(points[:, :2], points[:, 2])
    for name in ("lauv", "remus"):
        echo = trial.get(f"/sensor/{name}/echosounder", SENSORS["echosounder"]).records
        p = trial.get(f"/state/{name}", STATE).records["p_WB_W"]
        assert len(echo) == len(p) and (echo["valid"] == 1).all()
        seen = p[:, 2] + echo["range"]
        assert seen == pytest.approx(judge(p[:, 0], p[:, 1]), abs=1e-6)
        # and beside the soundings themselves that were passed within half a metre
        near = [(k, np.hypot(*(points[:, :2] - q[:2]).T).argmin()) for k, q in enumerate(p[::5])]
        close = [(5 * k, j) for k, j in near if np.hypot(*(points[j, :2] - p[5 * k, :2])) < 0.5]
        assert len(close) > 5
        assert max(abs(seen[k] - points[j, 2]) for k, j in close) < 0.5
        assert np.ptp(seen) > 1.0, "the bottom is not flat"


@pytest.mark.long
@pytest.mark.system
@pytest.mark.xdist_group("real")
def test_the_ctd_and_the_drift_follow_the_volume(trial: Log, data_dir: Path) -> None:
    rows = volume(data_dir)
    axes = [np.unique([r[c] for r in rows]) for c in ("depth_meter", "latitude_degree", "longitude_degree")]
    lat0, lon0 = 36.8069, -121.8241
    metres = math.radians(1) * EARTH_RADIUS

    def judge(column: str) -> RegularGridInterpolator:
        values = np.full([len(a) for a in axes], np.nan)
        for r in rows:
            at = tuple(
                int(np.searchsorted(a, r[c]))
                for a, c in zip(axes, ("depth_meter", "latitude_degree", "longitude_degree"), strict=True)
            )
            values[at] = r[column]
        return RegularGridInterpolator(axes, values)

    temperature, salinity = judge("sea_water_temperature_degC"), judge("sea_water_salinity_psu")
    for name in ("lauv", "remus"):
        ctd = trial.get(f"/sensor/{name}/ctd", SENSORS["ctd"]).records
        state = trial.get(f"/state/{name}", STATE)
        p = state.records["p_WB_W"]
        wet = p[:, 2] > 0.0
        at = np.stack([p[:, 2], lat0 + p[:, 0] / metres, lon0 + p[:, 1] / (metres * math.cos(math.radians(lat0)))], -1)[
            wet
        ]
        assert ctd["temperature"][wet] == pytest.approx(temperature(at), abs=2e-3)
        assert ctd["salinity"][wet] == pytest.approx(salinity(at), abs=2e-3)
        gauge = ctd["pressure"] - 10.1325
        back = seawater.salinity(ctd["conductivity"], ctd["temperature"], gauge)
        assert ctd["salinity"] == pytest.approx(back, abs=1e-9)
        assert np.ptp(ctd["temperature"][wet]) > 0.1, "the water is not the same everywhere"
    # the flow: velocity over ground minus velocity through the water, turned into W
    from scipy.spatial.transform import Rotation

    s = trial.get("/state/lauv", STATE).records
    turn = Rotation.from_quat(np.ascontiguousarray(s["q_WB"][:, [1, 2, 3, 0]]))
    flow = turn.apply(np.ascontiguousarray(s["v_WB_B"] - s["v_FB_B"]))
    p = s["p_WB_W"]
    at = np.stack(
        [np.maximum(p[:, 2], 0), lat0 + p[:, 0] / metres, lon0 + p[:, 1] / (metres * math.cos(math.radians(lat0)))], -1
    )
    tide = 0.05 * np.array([math.cos(math.radians(20)), math.sin(math.radians(20))])
    assert flow[:, 0] == pytest.approx(judge("northward_sea_water_velocity_meter_per_sec")(at) + tide[0], abs=1e-3)
    assert flow[:, 1] == pytest.approx(judge("eastward_sea_water_velocity_meter_per_sec")(at) + tide[1], abs=1e-3)


@pytest.mark.long
@pytest.mark.system
@pytest.mark.xdist_group("real")
def test_navigation_works_there_too(trial: Log) -> None:
    for name in ("lauv", "remus"):
        _, nav, _ = trial.navigation_errors(name)
        assert nav.max() < 3.0
        p = trial.get(f"/state/{name}", STATE).records["p_WB_W"]
        assert p[-1, 2] > 2.0
