"""An electronic chart: a cell written by the text of the standards, read by GDAL, positioned by independent geodesy,
and invalid cells.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pymap3d
import pytest

from tests.conftest import wavesim
from tests.viz.browser import Page, need_package
from tests.viz.cell import DEPARE, DRVAL1, DRVAL2, LNDARE, Cell
from tests.viz.stage import Stage, on_stage
from wavesim_sdk.errors import ConfigError
from wavesim_viz.s57 import read_cell
from wavesim_world.ocean.bed import read_soundings

ORIGIN = 41.18, -8.71  # degrees
SOUNDINGS = [(41.1801, -8.7099, 7.3), (41.1803, -8.7095, 32.0), (41.1797, -8.7104, -0.5)]
CONTOUR = [(41.1800, -8.7110), (41.1805, -8.7100), (41.1803, -8.7090)]
SHALLOW = [(41.1795, -8.7115), (41.1795, -8.7085), (41.1805, -8.7085), (41.1805, -8.7115)]
LAND = [(41.1805, -8.7115), (41.1805, -8.7085), (41.1812, -8.7085), (41.1812, -8.7115)]


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    need_package("pyogrio", "shapely")
    cell = Cell()
    cell.soundings(SOUNDINGS)
    cell.contour(10.0, CONTOUR)
    cell.area(DEPARE, SHALLOW, {DRVAL1: "5", DRVAL2: "10"})
    cell.area(LNDARE, LAND, {})
    return cell.write(tmp_path / "TEST0001.000")


def test_a_cell_is_read(chart: Path) -> None:
    cell = read_cell(chart)
    assert cell.soundings == pytest.approx(np.array(SOUNDINGS), abs=1e-7), "depths are down, what dries is above"
    assert [(kind, depth) for kind, depth, _ in cell.lines] == [("DEPCNT", 10.0)]
    assert cell.lines[0][2] == pytest.approx(np.array(CONTOUR), abs=1e-7)
    assert [kind for kind, _, _ in cell.areas] == ["DEPARE", "LNDARE"] and cell.areas[0][1] == 5.0
    ring = cell.areas[0][2][0]
    assert {tuple(p) for p in ring.round(7).tolist()} == set(SHALLOW) and tuple(ring[0]) == tuple(ring[-1])


def test_a_world_gets_its_bed(chart: Path, tmp_path: Path) -> None:
    """The command's file is one that a configuration reads; points lie where pymap3d has them; nothing is written over."""
    done = wavesim("soundings", chart, tmp_path / "bed.txt", "--origin", *map(str, ORIGIN))
    assert done.returncode == 0 and "6 points, -0.5 to 32 m deep" in done.stdout
    bed = read_soundings(tmp_path / "bed.txt")
    points = [*SOUNDINGS, *((lat, lon, 10.0) for lat, lon in CONTOUR)]
    for found, (lat, lon, depth) in zip(bed, points, strict=True):
        north, east, _ = pymap3d.geodetic2ned(lat, lon, 0.0, *ORIGIN, 0.0)
        assert found == pytest.approx([north, east, depth], abs=0.006)
    again = wavesim("soundings", chart, tmp_path / "bed.txt", "--origin", *map(str, ORIGIN))
    assert again.returncode == 2 and "File exists" in again.stderr and "Traceback" not in again.stderr


def test_what_cannot_be_read_is_said(chart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.000").write_text("no cell")
    with pytest.raises(ConfigError, match="not an S-57 cell"):
        read_cell(tmp_path / "text.000")
    with pytest.raises(ConfigError, match="electronic chart not found"):
        read_cell(tmp_path / "none.000")
    done = wavesim("viz", "--enc", tmp_path / "text.000")
    assert done.returncode == 2 and "not an S-57 cell" in done.stderr and "Traceback" not in done.stderr
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    with pytest.raises(ConfigError, match=r"pip install 'wavesim-viz\[charts\]'"):
        read_cell(chart)


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_it_is_drawn_where_it_belongs(chart: Path, open_page: Callable[[str], Page], tmp_path: Path) -> None:
    """Land meets the shallow where pymap3d has their border, a metre a pixel; depths are given as numbers."""
    source = Stage()
    source.described["origin"] = list(ORIGIN)
    border, _, _ = pymap3d.geodetic2ned(SHALLOW[2][0], ORIGIN[1], 0.0, *ORIGIN, 0.0)
    with on_stage(source, tmp_path, cell=read_cell(chart)) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.scene && wavesim.store.rows.length && wavesim.chart.enc.version")
        page.page.keyboard.press("4")
        page.see(f"wavesim.chart.look([{border}, 0], 1); wavesim.chart.show.trails = false")

        def colour(north: float, east: float) -> tuple[int, ...]:
            return tuple(
                page.see(
                    f"(() => {{ wavesim.chart.render(); const c = wavesim.chart.canvas, r = c.width / c.clientWidth, p = wavesim.chart.px({north}, {east});"
                    " return [...c.getContext('2d').getImageData(Math.round(p[0] * r), Math.round(p[1] * r), 1, 1).data].slice(0, 3) })()"
                )
            )

        land, shallow, outside = colour(border + 40, 61.0), colour(border - 33, 61.0), colour(border + 33, 173.0)
        assert len({land, shallow, outside}) == 3
        assert colour(border + 2, 61.0) == land and colour(border - 2, 61.0) == shallow
        page.shot("enc")
        page.clean()
