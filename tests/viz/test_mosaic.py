"""Results of a survey: points at their true positions, reported depth errors, and detected or missed targets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pymap3d
import pytest
from PIL import Image
from pyproj import Proj

from tests.conftest import wavesim
from wavesim_sdk.imaging_frames import RECORD, SOUNDING_COLUMNS, ImagingFrame
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz import mosaic
from wavesim_world.config import load
from wavesim_world.config.imaging import TargetConfig

ALTITUDE, RANGE, BINS = 8.0, 40.0, 800
NORTH, EAST = 12.3, 21.7  #: of what is bright
BIAS = 0.05
LATITUDE, LONGITUDE = 41.18, -8.7


def record(name: bytes, number: int, heading: float, north: float, payload: bytes, **fields: Any) -> ImagingFrame:
    made = np.zeros((), RECORD)
    given = {
        "body": b"auv",
        "name": name,
        "number": number,
        "bytes": len(payload),
        "range": RANGE,
        "time_ns": number * 10**8,
    }
    pose = {"p_WS_W": (north, 2.0, 4.0), "euler": (0.0, 0.0, heading), "altitude": ALTITUDE, "beam_width": 0.014}
    for field, value in {**given, **pose, "span": 66.0, "floor": 60.0, "hold": math.inf, **fields}.items():
        made[field] = value
    return ImagingFrame(made, payload)


def line(heading: float, north: float, dice: Any) -> bytes:
    """Speckle on a bed, nothing before it; what is bright where it is, if the ping passes it."""
    r = (np.arange(BINS) + 0.5) * RANGE / BINS
    samples = np.where(r > ALTITUDE, 100 + 17 * np.log(dice.exponential(1.0, (2, BINS)) + 0.01), 0).clip(0, 255)
    if abs(north - NORTH) < 0.1:
        slant = math.hypot(EAST - 2.0, ALTITUDE)
        starboard = math.cos(heading) * (EAST - 2.0) > 0.0
        samples[int(starboard), int(slant / RANGE * BINS)] = 240
    return np.asarray(samples.astype(np.uint8)).tobytes()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """There and back along the same line."""
    folder = tmp_path_factory.mktemp("mosaic")
    (folder / "a.xml").write_text(
        f"<wavesim><world latitude='{LATITUDE} deg' longitude='{LONGITUDE} deg'/><fleet><vehicle name='auv' model='lauv' position='0 0 4 m'/></fleet></wavesim>"
    )
    writer, dice, number = LogWriter(folder / "run.mcap", load(folder / "a.xml"), 1), np.random.default_rng(2), 0
    angle = np.linspace(-1.0, 1.0, 64)
    for heading in (0.0, math.pi):
        for north in np.arange(0.0, 30.0, 0.15):
            number += 1
            fields = {"kind": 1, "beams": 2, "bins": BINS, "sample_bytes": 1}
            writer.frame(record(b"side", number, heading, north, line(heading, north, dice), **fields))
            table = np.zeros((64, len(SOUNDING_COLUMNS)))
            starboard = np.tan(angle) * ALTITUDE
            true = (north - math.sin(heading) * starboard, 2.0 + math.cos(heading) * starboard, 4.0 + ALTITUDE)
            for name, values in {
                "y": starboard,
                "z": ALTITUDE + BIAS,
                "detection": 1.0,
                **dict(zip(("north", "east", "down"), true, strict=True)),
            }.items():
                table[:, SOUNDING_COLUMNS.index(name)] = values
            table[5, SOUNDING_COLUMNS.index("detection")] = 0.0
            fields = {"kind": 2, "beams": 64, "bins": len(SOUNDING_COLUMNS), "sample_bytes": 8}
            writer.frame(record(b"bed", number, heading, north, table.tobytes(), **fields))
    writer.close()
    return folder / "run.mcap"


def test_what_is_bright_stands_where_it_is(log: Path) -> None:
    """Seen to starboard on the way there and to port on the way back, at one place."""
    made = mosaic.mosaic(log, "auv", "side", 0.25)
    n, e = np.unravel_index(np.nanargmax(made.values), made.values.shape)
    assert made.south + (n + 0.5) * 0.25 == pytest.approx(NORTH, abs=0.25)
    assert made.west + (e + 0.5) * 0.25 == pytest.approx(EAST, abs=0.25)
    west, east, south, north = made.extent
    assert (west, east) == pytest.approx((2.0 - math.sqrt(RANGE**2 - 64), 2.0 + math.sqrt(RANGE**2 - 64)), abs=0.3)
    assert (south, north) == pytest.approx((0.0, 30.0), abs=0.3)
    assert abs(np.nanmedian(made.values)) < 3.0, "over what is usual"


def test_targets_are_seen_or_missed(log: Path) -> None:
    wanted = (
        TargetConfig(name="there", position=(NORTH, EAST, 4.0 + ALTITUDE)),
        TargetConfig(name="nothing", position=(20.0, -9.0, 4.0 + ALTITUDE)),
        TargetConfig(name="elsewhere", position=(90.0, 0.0, 4.0 + ALTITUDE)),
    )
    found = mosaic.targets(log, "auv", "side", wanted)
    assert set(found) == {"there", "nothing"}
    over, slant = found["there"]
    assert over > 2 * mosaic.SEEN_DB and slant == pytest.approx(math.hypot(EAST - 2.0, ALTITUDE), abs=0.1)
    assert found["nothing"][0] < mosaic.SEEN_DB, "speckle alone is no target"


def stands_on_earth(path: Path) -> None:
    """Its brightest cell, by the tags as GeoTIFF 1.1 defines them and PROJ's arithmetic."""
    with Image.open(path) as picture:
        tags, values = picture.tag_v2, np.array(picture)  # type: ignore[attr-defined]
    head, *keys = np.array(tags[34735]).reshape(-1, 4).tolist()
    assert head == [1, 1, 1, len(keys)]
    assert keys == sorted(keys)
    found = {k: tags[34736][v] if where == 34736 else v for k, where, _, v in keys}
    assert (found[1024], found[1025], found[2048], found[3075], found[3076]) == (1, 1, 4326, 1, 9001)
    there = Proj(
        proj="tmerc",
        lon_0=found[3080],
        lat_0=found[3081],
        x_0=found[3082],
        y_0=found[3083],
        k=found[3092],
        ellps="WGS84",
    )
    row, column = np.unravel_index(np.nanargmax(values), values.shape)
    (sx, sy, _), (_, _, _, x0, y0, _) = tags[33550], tags[33922]
    lon, lat = there(x0 + (column + 0.5) * sx, y0 - (row + 0.5) * sy, inverse=True)
    north, east, _ = pymap3d.geodetic2ned(lat, lon, 0.0, LATITUDE, LONGITUDE, 0.0)
    assert (north, east) == (pytest.approx(NORTH, abs=0.25), pytest.approx(EAST, abs=0.25))
    assert np.isnan(values).any() and values.dtype == np.float32


def test_pictures_and_figures_by_a_command(log: Path, tmp_path: Path) -> None:
    result = wavesim("plot", log, "--mosaic", "--geotiff", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert {p.name for p in tmp_path.iterdir()} == {
        f"{n}.{t}" for n in ("mosaic-auv-side", "depth-auv-bed") for t in ("png", "tif")
    }
    stands_on_earth(tmp_path / "mosaic-auv-side.tif")
    assert f"median +{BIAS:.3f} m, rms {BIAS:.3f} m" in result.stdout, "the error of the soundings is printed"
    (tmp_path / "a.xml").write_text("<wavesim/>")
    LogWriter(tmp_path / "none.mcap", load(tmp_path / "a.xml"), 1).close()
    result = wavesim("plot", tmp_path / "none.mcap", "--mosaic")
    assert result.returncode != 0 and "has no frames from a side-scan sonar or a multibeam echosounder" in result.stderr
    result = wavesim("plot", tmp_path / "none.mcap", "--mosaic", "--geotiff")
    assert (
        result.returncode != 0
        and result.stderr.count("\n") == 1
        and "needs the latitude and longitude" in result.stderr
    )
