"""Mosaics that grow with the survey equal the mosaics of `wavesim plot --mosaic` from the same frames: in steps, in bounded memory,
and on the page, live and in a replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.sea import READY, Opener, Page
from tests.viz.stage import Stage, on_stage
from tests.viz.test_mosaic import ALTITUDE, BINS, RANGE, record
from wavesim_sdk.imaging_frames import SOUNDING_COLUMNS, ImagingFrame
from wavesim_viz import mosaic, mosaic_tiles
from wavesim_viz.image_streams import SequentialFrames
from wavesim_viz.mosaic_tiles import TILE_CELLS, GrowingMosaic

Cells = dict[tuple[int, int], float]
#: of a histogram, of the settled medians, and of single precision
TOLERANCE_DB = mosaic_tiles.BIN_DB + mosaic_tiles.SETTLED_DB + 1e-4


def cells_of_grid(made: mosaic.MosaicGrid) -> Cells:
    """Values by the number of the cell north and east of the origin."""
    south, west = round(made.south / made.cell), round(made.west / made.cell)
    return {(south + int(n), west + int(e)): float(made.values[n, e]) for n, e in np.argwhere(np.isfinite(made.values))}


def cells_of_growing(growing: GrowingMosaic) -> Cells:
    found: Cells = {}
    for (n, e), tile in growing.tiles.items():
        assert tile.values is not None
        for i, k in np.argwhere(np.isfinite(tile.values)):
            found[n * TILE_CELLS + int(i), e * TILE_CELLS + int(k)] = float(tile.values[i, k])
    return found


def differ(found: Cells, wanted: Cells) -> str:
    """How two mosaics differ; empty: they are equal."""
    if found.keys() != wanted.keys():
        return f"{len(found.keys() ^ wanted.keys())} of {len(wanted)} cells are in one only"
    off = max((abs(found[k] - wanted[k]) for k in wanted), default=0.0)
    return "" if off <= TOLERANCE_DB else f"off by {off}"


def survey(count: int) -> tuple[list[ImagingFrame], list[ImagingFrame]]:
    """Pings of a side-scan sonar over speckle whose level depends on the angle, and of an echosounder over a slope, along a curve."""
    dice, side, bed = np.random.default_rng(5), [], []
    r = (np.arange(BINS) + 0.5) * RANGE / BINS
    angle = np.arccos(np.minimum(ALTITUDE / r, 1.0))
    for k in range(count):
        heading, at = 0.02 * k, (0.137 * k, 2.0 + 0.0007 * k**2, 4.0)
        samples = 120 + 60 * np.cos(angle) + 17 * np.log(dice.exponential(1.0, (2, BINS)) + 0.01)
        payload = np.where(r > ALTITUDE, samples, 0).clip(0, 255).astype(np.uint8).tobytes()
        shape = {"beams": 2, "bins": BINS, "sample_bytes": 1}
        side.append(record(b"side", k, heading, 0.0, payload, kind=1, p_WS_W=at, **shape))
        table = np.zeros((64, len(SOUNDING_COLUMNS)))
        y = np.tan(np.linspace(-1.0, 1.0, 64)) * ALTITUDE
        for column, values in {"y": y, "z": ALTITUDE + 0.1 * y, "detection": dice.random(64) > 0.1}.items():
            table[:, SOUNDING_COLUMNS.index(column)] = values
        shape = {"beams": 64, "bins": len(SOUNDING_COLUMNS), "sample_bytes": 8}
        bed.append(record(b"bed", k, heading, 0.0, table.tobytes(), kind=2, p_WS_W=at, **shape))
    return side, bed


def offline(path: Path, name: str, cell: float) -> Cells:
    """The mosaic of a file."""
    if name == "side":
        return cells_of_grid(mosaic.mosaic(path, "auv", name, cell))
    return cells_of_grid(mosaic.depths(path, "auv", name, cell)[0])


@pytest.mark.parametrize("name", ["side", "bed"])
@pytest.mark.parametrize("cells", [10**9, 5])
def test_a_growing_mosaic_equals_that_of_a_file(name: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any time, and whatever was computed before; a mosaic of too many tiles gets larger cells, and equals that of such cells."""
    monkeypatch.setattr(mosaic_tiles, "MOST_TILES", cells)
    made = survey(120)[("side", "bed").index(name)]
    growing = GrowingMosaic(name == "side")
    for k, frame in enumerate(made):
        growing.add(frame)
        if k in (1, 60, 119):
            while not growing.update(5):
                pass
            monkeypatch.setattr(mosaic, "frames", lambda *_a, until=k: iter(made[: until + 1]))
            assert not differ(cells_of_growing(growing), offline(Path(), name, growing.cell)), k
        assert len(growing.tiles) <= cells
    assert (growing.cell > mosaic_tiles.CELL_M) == (cells == 5)
    before = growing.version
    assert growing.update(1000) and growing.version == before, "what does not change is not sent again"


def test_sums_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mosaic_tiles, "MOST_SUMS", 5000)
    growing, most = GrowingMosaic(True), 0
    for frame in survey(60)[0]:
        growing.add(frame)
        most = max(most, sum(len(t.keys) for t in growing.tiles.values()))
        assert growing.sums == sum(len(t.keys) for t in growing.tiles.values()) <= 5000
    assert most > 2500


def test_frames_of_a_log_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the time of the replay, each once and none left out; after a jump back, again from the start."""
    made = survey(60)[0]
    monkeypatch.setattr("wavesim_viz.image_streams.frames", lambda *_: iter(made))
    now = [2.95]  # s; pings are 0.1 s apart
    stream = SequentialFrames(Path(), "auv", "side", lambda: now[0])

    def read() -> tuple[list[bool], list[int]]:
        backs, numbers = [], []
        while True:
            back, found = stream.new()
            backs.append(back)
            numbers += [int(f.record["number"]) for f in found]
            if not found:
                return backs, numbers

    assert read()[1] == list(range(30))
    now[0] = 5.0
    assert read() == ([False] * 3, list(range(30, 51)))
    now[0] = 1.0
    backs, numbers = read()
    assert backs[0] and not any(backs[1:]) and numbers == list(range(11))


class Survey(Stage):
    """A source whose sonars have sent the pings before a time: as a server sends them, or as a replay reads them."""

    def __init__(self, replay: bool) -> None:
        super().__init__()
        self.side, self.bed = survey(100)
        self.now, self.replay = 0.0, replay
        axis = [-60.0, 0.0, 60.0]
        self.described["bed"] = {"north": axis, "east": axis, "depth": [[12.0, 12.0, 14.0]] * 3}
        self.kits[0] = {
            "row": 0,
            "generation": 1,
            "actuators": [],
            "sensors": [self.sensor(n) for n in ("side", "bed")],
        }

    @staticmethod
    def sensor(name: str) -> dict[str, Any]:
        told = {"name": name, "type": "sonar", "doc": "", "period": 0.1, "fields": [], "position": None, "beams": None}
        return {**told, "faults": []}

    def until(self, name: str) -> list[ImagingFrame]:
        return [f for f in getattr(self, name) if int(f.record["time_ns"]) <= self.now * 1e9]

    def open_frames(self, row: int, name: str, every: bool = False) -> Any:
        assert every
        if self.replay:
            return SequentialFrames(Path(), "auv", name, lambda: self.now)
        sent, source = [0], self

        class Sent:
            """Frames that have come since the last call."""

            def new(self) -> tuple[bool, list[ImagingFrame]]:
                made = source.until(name)
                found, sent[0] = made[sent[0] :], len(made)
                return False, found

            def close(self) -> None:
                pass

        return Sent()


def cells_of_page(page: Page, name: str) -> Cells:
    tiles = page.see(
        f"[...(wavesim.store.mosaic.layers.get('0/{name}')?.tiles.values() ?? [])].map(t => [t.head.south, t.head.west, t.head.cell,"
        " [...t.values].flatMap((v, k) => Number.isNaN(v) ? [] : [[k, v]])])"
    )
    found: Cells = {}
    for south, west, cell, values in tiles:
        for k, value in values:
            found[round(south / cell) + k // TILE_CELLS, round(west / cell) + k % TILE_CELLS] = value
    return found


def is_painted(page: Page) -> None:
    """The mosaic is on the chart where it was surveyed, and on the bed of the 3D view."""
    page.see("wavesim.chart.look([6, 4], 8)")
    pixels = (
        "(() => { wavesim.chart.render(); const c = wavesim.chart.canvas, f = c.width / c.clientWidth, p = wavesim.chart.px(6, -4);"
        " return c.getContext('2d').getImageData(p[0] * f - 20, p[1] * f - 20, 40, 40).data.join() })()"
    )
    shown = page.see(pixels)
    page.shot("mosaic-chart")
    # in one step: the next picture of the page shows what is set in the menu
    hidden = page.see(
        f"(() => {{ wavesim.store.mosaic.shown = false; const p = {pixels}; wavesim.store.mosaic.shown = true; return p }})()"
    )
    assert hidden != shown
    page.page.keyboard.press("1")
    page.wait("wavesim.view?.mosaic.group.children.length > 0 && wavesim.view.mosaic.group.visible")
    heights = page.see(
        "(() => { const a = wavesim.view.mosaic.group.children[0].geometry.getAttribute('position').array;"
        " return [...a].filter((_, k) => k % 3 === 1) })()"
    )
    assert all(-14.0 <= y <= -11.9 for y in heights), "on the bed"
    page.shot("mosaic-bed")


@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("replay", [False, True])
def test_the_page_shows_the_mosaic(
    replay: bool, tmp_path: Path, open_page: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Switched on in *show*, it grows with the survey and equals the mosaic of a file with the same frames; a jump back in a replay
    removes what is later."""
    source = Survey(replay)
    monkeypatch.setattr("wavesim_viz.image_streams.frames", lambda _path, _body, name: iter(getattr(source, name)))
    monkeypatch.setattr(mosaic, "frames", lambda _path, _body, name: iter(source.until(name)))
    with on_stage(source, tmp_path) as url:
        page = open_page(url)
        page.wait(f"{READY} === 1")
        page.page.keyboard.press("4")
        source.now = -1.0
        page.page.locator("#shown summary").click()
        page.page.locator("#do-show-mosaic").click()
        # its sonars have sent nothing, so the page promises a mosaic and reports no error
        page.wait(
            "document.querySelector('.toast')?.textContent === 'the mosaic starts with the next frame of a sonar'"
        )
        assert page.see("document.querySelectorAll('.toast.bad').length") == 0
        page.page.keyboard.press("Escape")
        for source.now in (3.0, 9.9, *((5.0,) if replay else ())):
            for name in ("side", "bed"):
                wanted = offline(Path(), name, mosaic_tiles.CELL_M)
                page.until(lambda name=name, wanted=wanted: not differ(cells_of_page(page, name), wanted))  # type: ignore[misc]
        is_painted(page)
        page.page.reload()  # a page that opens later gets the whole mosaic
        page.wait(f"{READY} === 1")
        page.until(lambda: not differ(cells_of_page(page, "bed"), wanted))
        page.clean()


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_without_sonars_the_page_says_that_there_is_no_mosaic(tmp_path: Path, open_page: Opener) -> None:
    with on_stage(Stage(), tmp_path) as url:
        page = open_page(url)
        page.wait(f"{READY} === 1")
        page.page.locator("#shown summary").click()
        page.page.locator("#do-show-mosaic").click()
        page.wait("document.querySelector('.toast.bad')?.textContent.startsWith('no mosaic:')")
        page.clean()
