"""Readers of other people judge our formats: Signal K, ctd and seabird, mhkit."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ctd
import numpy as np
import pytest
from seabird.cnv import fCNV

from wavesim_sdk.devices import dvl, nmea, seabird
from wavesim_sdk.ocean import seawater
from wavesim_sdk.sensors import SENSORS

TIME = datetime(2026, 3, 4, 5, 6, 7, 890000, UTC)


def absent(what: str) -> None:
    """A judge that is not there: loud here, a failure in CI."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def signalk(sentences: list[bytes], root: Path) -> list[Any]:
    node, folder = shutil.which("node"), root / "tests/judges"
    if node is None or not (folder / "node_modules").is_dir():
        absent("Signal K's parser is not installed (it needs Node.js and npm; then `make setup`)")
    done = subprocess.run(
        [str(node), "signalk.js"], cwd=folder, input=b"".join(sentences), capture_output=True, timeout=60, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_signal_k_understands_every_sentence(root: Path) -> None:
    sentences = {
        "HDT": nmea.hdt(1.25),
        "DPT": nmea.dpt(12.3, 0.5),
        "DBT": nmea.dbt(12.3),
        "MTW": nmea.mtw(14.25),
        "VHW": nmea.vhw(1.25, 1.5),
        "MWV": nmea.mwv(math.pi / 2, 8.0),
        "GGA": nmea.gga(TIME, math.radians(41.18), math.radians(-8.7), 1.5, 9, 0.9),
        "RMC": nmea.rmc(TIME, math.radians(41.18), math.radians(-8.7), 2.0, 0.5),
        "VTG": nmea.vtg(2.0, 0.5),
        "ROT": nmea.rot(0.02),
        "XDR": nmea.xdr(0.1, -0.05),
    }
    answers = dict(zip(sentences, signalk(list(sentences.values()), root), strict=True))
    for kind, answer in answers.items():
        assert isinstance(answer, list), f"{kind}: {answer}"
    found = {v["path"]: v["value"] for answer in answers.values() for v in answer}
    assert found["navigation.headingTrue"] == pytest.approx(1.25, abs=1e-4)
    assert found["environment.depth.belowTransducer"] == pytest.approx(12.3, abs=0.01)
    assert found["environment.water.temperature"] == pytest.approx(273.15 + 14.25)
    assert found["navigation.speedThroughWater"] == pytest.approx(1.5, abs=1e-3)
    assert found["environment.wind.speedApparent"] == pytest.approx(8.0)
    assert found["environment.wind.angleApparent"] == pytest.approx(math.pi / 2, abs=1e-3)
    assert found["navigation.position"]["latitude"] == pytest.approx(41.18, abs=1e-6)
    assert found["navigation.position"]["longitude"] == pytest.approx(-8.7, abs=1e-6)
    assert found["navigation.speedOverGround"] == pytest.approx(2.0, abs=1e-3)
    assert found["navigation.courseOverGroundTrue"] == pytest.approx(0.5, abs=1e-4)
    assert found["navigation.rateOfTurn"] == pytest.approx(0.02, abs=1e-4)


def test_ctd_and_seabird_read_our_file(tmp_path: Path) -> None:
    values = np.zeros(80, SENSORS["ctd"].dtype)
    time = 0.5 * np.arange(80)
    values["pressure"] = seabird.ATMOSPHERE + np.linspace(0.0, 60.0, 80)
    values["temperature"] = np.linspace(18.0, 12.0, 80)
    values["conductivity"] = np.linspace(4.5, 4.0, 80)
    gauge = values["pressure"] - seabird.ATMOSPHERE
    values["salinity"] = seawater.salinity(values["conductivity"], values["temperature"], gauge)
    path = tmp_path / "cast.cnv"
    path.write_text(seabird.cnv(time, values, math.radians(-41.18), math.radians(8.7)), newline="")
    cast = ctd.from_cnv(path)
    assert cast.index.to_numpy() == pytest.approx(gauge, abs=1e-4)
    assert cast["t090C"].to_numpy() * 1.00024 == pytest.approx(values["temperature"], abs=1e-4)
    assert cast["c0S/m"].to_numpy() == pytest.approx(values["conductivity"], abs=1e-6)
    assert cast["sal00"].to_numpy() == pytest.approx(values["salinity"], abs=1e-4)
    assert cast["depSM"].to_numpy() == pytest.approx(seawater.depth(gauge, math.radians(41.18)), abs=1e-3)
    assert (cast._metadata["lat"], cast._metadata["lon"]) == pytest.approx((-41.18, 8.7), abs=1e-5)
    profile = fCNV(str(path))
    assert np.asarray(profile["PRES"]) == pytest.approx(gauge, abs=1e-4)
    assert np.asarray(profile["PSAL"]) == pytest.approx(values["salinity"], abs=1e-4)
    assert profile.attributes["datetime"] == datetime(2026, 1, 1)
    assert len(fCNV(str(path))["timeS"]) == 80


@pytest.mark.mhkit
def test_mhkit_reads_our_pd0(root: Path, tmp_path: Path) -> None:
    judge = root / ".venv-mhkit/bin/python"
    if not judge.exists():
        absent("mhkit is not installed (`make test-mhkit` does it)")
    truth, data = [], b""
    for k in range(40):
        lost = k in (10, 11)
        e = dvl.Ensemble(
            k + 1,
            TIME + timedelta(seconds=0.2 * k),
            (math.nan,) * 3 if lost else (0.1 * math.sin(k), 1.0 + 0.01 * k, -0.05),
            (0.2, 0.9, 0.03),
            (20.0 + 0.1 * k, 21.0, 22.0, 23.0),
            21.5,
            heading=(0.2 * k) % (2 * math.pi),
            pitch=0.1,
            roll=-0.05,
            sound_speed=1493.0,
            temperature=12.34,
            depth=10.0 + k,
        )
        truth.append(e)
        data += dvl.pd0(e)
    (tmp_path / "x.pd0").write_bytes(data)
    subprocess.run(
        [judge, root / "tests/judges/pd0.py", tmp_path / "x.pd0", tmp_path / "x.json"],
        check=True, capture_output=True, timeout=200,
    )  # fmt: skip
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["attributes"] == {
        "coord_sys": "ship", "orientation": "down", "beam_angle": "30", "n_beams": "4", "inst_make": "TRDI"
    }  # fmt: skip
    n = len(found["heading"])
    assert n >= 39, "its reader leaves out the last ensemble"
    seen = truth[:n]
    late = np.array(found["time"], "datetime64[ms]") - np.array(
        [e.time.replace(tzinfo=None) for e in seen], "datetime64[ms]"
    )
    assert np.abs(late.astype(int)).max() <= 15, "hundredths of a second, through its floating-point days"
    bottom = np.array(found["vel_bt"], float)[:3]
    expected = -np.array([e.bottom for e in seen]).T  # the bottom's velocity, not the vehicle's
    bottom = np.where(
        np.abs(bottom + 32.768) < 1e-3, np.nan, bottom
    )  # it knows bad values of cells, but not of the bottom
    assert bottom == pytest.approx(expected, abs=6e-4, nan_ok=True)
    assert np.isnan(bottom[:, 10:12]).all()
    assert np.array(found["vel"])[:3, 0] == pytest.approx(-np.array([e.water for e in seen]).T, abs=6e-4)
    assert np.array(found["dist_bt"]) == pytest.approx(np.array([e.ranges for e in seen]).T, abs=0.006)
    assert found["heading"] == pytest.approx([math.degrees(e.heading) for e in seen], abs=0.006)
    assert found["pitch"] == pytest.approx([math.degrees(0.1)] * n, abs=0.006)
    assert found["temp"] == pytest.approx([12.34] * n, abs=1e-4) and found["c_sound"] == [1493.0] * n
    assert found["depth"] == pytest.approx([e.depth for e in seen], abs=0.05)
