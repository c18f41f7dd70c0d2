"""A multibeam echosounder over the real harbour: its gridded soundings give the original bed, also through KMALL."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pymap3d
import pytest

from tests.conftest import wavesim
from tests.data.test_real_input import SOUNDINGS, soundings
from wavesim_emulators.sonar.emulator import describe, euler_of
from wavesim_emulators.sonar.imaging import SonarPose
from wavesim_emulators.sonar.multibeam import MultibeamSonar
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_sdk.frames import quaternion, rotation
from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_sdk.log import frames
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz.mosaic import grid_points
from wavesim_world.config import allow_files
from wavesim_world.ocean.bed import sea_bed

pytestmark = [pytest.mark.data, pytest.mark.timeout(300)]

LATITUDE, LONGITUDE = 41.18, -8.7
LINES, PINGS, APART = 5, 60, 6.0
CELL = 1.0


@pytest.fixture(scope="module")
def allowed(data_dir: Path) -> Iterator[None]:
    with allow_files(data_dir):
        yield


@pytest.fixture(scope="module")
def survey(data_dir: Path, allowed: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Five lines over the middle of the harbour, rolling and pitching; the log, and the bed."""
    from tests.emulators.sonar import design
    from wavesim_world.config import load

    folder = tmp_path_factory.mktemp("harbour")
    (folder / "a.xml").write_text(
        f"<wavesim><world latitude='{LATITUDE} deg' longitude='{LONGITUDE} deg'><soundings file='{(data_dir / SOUNDINGS).resolve()}'/></world>"
        "<fleet><vehicle name='auv' model='lauv' position='0 0 1 m'/></fleet></wavesim>"
    )
    loaded = load(folder / "a.xml")
    d = design("norbit-wbms", 40.0, 1000, {"beams": 128}, noise=True)
    sonar = MultibeamSonar(d, SonarScene(loaded), 0.0, 1)
    record = describe(d, b"auv", b"bed", 1, "norbit-wbms")
    north, east, _ = np.median(soundings(data_dir), axis=0)
    writer, number = LogWriter(folder / "run.mcap", loaded, 1), 0
    for line in range(LINES):
        heading = math.pi * (line % 2)
        for k in np.linspace(-15.0, 15.0, PINGS):
            number += 1
            tilt = (math.radians(6.0 * math.sin(number / 3.0)), math.radians(3.0 * math.cos(number / 5.0)))
            p = np.array([north + math.cos(heading) * k, east + (line - 2) * APART, 0.5 + 0.2 * math.sin(number / 4.0)])
            ping = SonarPose(p, rotation(quaternion(*tilt, heading)), np.zeros(3), np.zeros(3))
            table = np.ascontiguousarray(sonar.ping(ping, number).soundings)
            record["number"], record["ping_ns"], record["bytes"] = number, number * 10**8, table.nbytes
            record["time_ns"], record["p_WS_W"], record["euler"] = number * 10**8 + 1, p, euler_of(ping.R)
            writer.frame(ImagingFrame(record.copy(), table.tobytes()))
    writer.close()
    return folder / "run.mcap", sea_bed(loaded)


def judge(points: Any, bed: Callable[..., Any]) -> None:
    """(n, 3) against the bed: median below 1 cm, rms below 2 % of depth."""
    north, east, down = points[np.isfinite(points).all(axis=1)].T
    measured = grid_points(north, east, down, CELL)
    true = grid_points(north, east, np.asarray(bed(north, east)), CELL, measured)
    wrong = (measured.values - true.values)[np.isfinite(measured.values)]
    assert wrong.size > 700
    assert abs(np.median(wrong)) < 0.01
    assert math.sqrt(np.mean(wrong**2)) < 0.02 * float(np.nanmean(true.values))


def test_soundings_gridded_are_the_harbour(survey: tuple[Path, Any]) -> None:
    path, bed = survey
    points = np.concatenate([f.points for f in frames(path, "auv", "bed")])
    assert np.isfinite(points[:, 0]).mean() > 0.95
    judge(points, bed)


def test_and_so_they_are_through_kmall(survey: tuple[Path, Any], tmp_path: Path) -> None:
    from KMALL import kmall

    path, bed = survey
    assert wavesim("log", "export", path, "--kmall", tmp_path / "a.kmall").returncode == 0
    reader = kmall(str(tmp_path / "a.kmall"))
    reader.index_file()
    points = []
    for offset, kind in zip(reader.Index["ByteOffset"], reader.Index["MessageType"], strict=True):
        if "MRZ" not in str(kind):
            continue
        reader.FID.seek(int(offset))
        mrz = reader.read_EMdgmMRZ()
        s, info = {k: np.array(v) for k, v in mrz["sounding"].items()}, mrz["pingInfo"]
        lat, lon = info["latitude_deg"] + s["deltaLatitude_deg"], info["longitude_deg"] + s["deltaLongitude_deg"]
        north, east, _ = pymap3d.geodetic2ned(lat, lon, 0.0, LATITUDE, LONGITUDE, 0.0)
        depth = s["z_reRefPoint_m"] + info["txTransducerDepth_m"]
        points.append(np.stack([north, east, np.where(s["detectionType"] == 0, depth, np.nan)], axis=1))
    reader.closeFile()
    assert len(points) == LINES * PINGS
    judge(np.concatenate(points), bed)
