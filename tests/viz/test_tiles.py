"""A chart of the user under ours: MBTiles and PMTiles are read and positioned by independent geodesy, and invalid files
are refused.
"""

from __future__ import annotations

import math
import sqlite3
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymap3d
import pytest

from tests.conftest import wavesim
from tests.viz.browser import Page, need_package
from tests.viz.stage import Stage, on_stage
from wavesim_sdk.errors import ConfigError
from wavesim_viz.tiles import open_tiles

ORIGIN = 41.18, -8.71  # degrees
ZOOM = 16
COLOURS = ((200, 40, 40), (40, 200, 40), (40, 40, 200), (200, 200, 40))


def png(colour: tuple[int, int, int], size: int = 256) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def corner() -> tuple[int, int]:
    """The corner between four tiles that is nearest to the origin: column and row on its south-eastern side, rows from the north."""
    lat, lon = map(math.radians, ORIGIN)
    n = 1 << ZOOM
    return round((lon / math.pi + 1.0) / 2.0 * n), round((1.0 - math.asinh(math.tan(lat)) / math.pi) / 2.0 * n)


def mbtiles(path: Path, tiles: dict[tuple[int, int, int], bytes], **metadata: str) -> Path:
    """A file as the specification has it: rows count from the south."""
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE metadata (name text, value text)")
        base.execute("CREATE TABLE tiles (zoom_level integer, tile_column integer, tile_row integer, tile_data blob)")
        base.executemany("INSERT INTO metadata VALUES (?, ?)", metadata.items())
        base.executemany(
            "INSERT INTO tiles VALUES (?, ?, ?, ?)", [(z, x, (1 << z) - 1 - y, d) for (z, x, y), d in tiles.items()]
        )
    base.close()
    return path


def pmtiles(
    path: Path,
    tiles: dict[tuple[int, int, int], bytes],
    kind: str = "PNG",
    packed: str = "NONE",
    **metadata: str,
) -> Path:
    """An archive as the format's own library writes it."""
    need_package("pmtiles")
    from pmtiles.tile import Compression, TileType, zxy_to_tileid
    from pmtiles.writer import Writer

    levels = [z for z, _, _ in tiles] or [0]
    with path.open("wb") as file:
        writer = Writer(file)
        for number, data in sorted((zxy_to_tileid(*place), data) for place, data in tiles.items()):
            writer.write_tile(number, data)
        writer.finalize(
            {
                "tile_type": TileType[kind],
                "tile_compression": Compression[packed],
                "min_zoom": min(levels),
                "max_zoom": max(levels),
            },
            metadata,
        )
    return path


@pytest.fixture(params=["mbtiles", "pmtiles"])
def chart(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Four tiles of different colours around a corner near the origin: north-west, north-east, south-west, south-east."""
    x, y = corner()
    places = [(ZOOM, x - 1, y - 1), (ZOOM, x, y - 1), (ZOOM, x - 1, y), (ZOOM, x, y)]
    drawn = dict(zip(places, map(png, COLOURS), strict=True))
    write = mbtiles if request.param == "mbtiles" else pmtiles
    return write(tmp_path / "bay", drawn, name="Bay", format="png", attribution="<b>Hydrographers</b>")


def test_tiles_of_a_file(chart: Path) -> None:
    tiles, (x, y) = open_tiles(chart), corner()
    assert (tiles.described.name, tiles.described.least, tiles.described.most) == ("Bay", ZOOM, ZOOM)
    assert tiles.tile(ZOOM, x, y - 1) == (png(COLOURS[1]), "image/png")
    assert (
        tiles.tile(ZOOM, x + 5, y) is None and tiles.tile(ZOOM, 1 << ZOOM, 0) is None and tiles.tile(30, 0, 0) is None
    )
    tiles.close()


@pytest.mark.parametrize(
    "kind", ["absent", "text", "empty", "vector", "deep", "other", "pm-vector", "pm-packed", "pm-cut", "pm-old"]
)
def test_what_is_no_chart_is_refused_in_words(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.mbtiles"
    if kind == "text":
        path.write_text("no database at all, but long enough to be looked at by whoever expects one" * 20)
    elif kind == "other":
        with sqlite3.connect(path) as base:
            base.execute("CREATE TABLE sheep (name text)")
        base.close()
    elif kind.startswith("pm-"):
        place = {(3, 1, 1): png(COLOURS[0], 1)}
        what = "MVT" if kind == "pm-vector" else "PNG"
        pmtiles(path, place, what, "GZIP" if kind == "pm-packed" else "NONE")
        whole = path.read_bytes()
        path.write_bytes({"pm-cut": whole[:120], "pm-old": whole[:7] + b"\x02" + whole[8:]}.get(kind, whole))
    elif kind != "absent":
        tile = {"empty": {}, "vector": {(3, 1, 1): b"\x1f\x8b\x08rest"}, "deep": {(40, 1, 1): png(COLOURS[0], 1)}}[kind]
        mbtiles(path, tile, format="pbf")
    says = {
        "absent": "tile file not found",
        "text": "neither an MBTiles",
        "other": "neither an MBTiles",
        "empty": "the file has no tiles",
        "vector": r"not raster images \(format: pbf\)",
        "deep": "zoom levels 40 to 40",
        "pm-vector": r"not raster images \(format: mvt\)",
        "pm-packed": r"additional compression \(gzip\)",
        "pm-cut": "damaged PMTiles",
        "pm-old": "damaged PMTiles",
    }
    with pytest.raises(ConfigError, match=says[kind]):
        open_tiles(path)


def test_the_command_says_so_too(tmp_path: Path) -> None:
    done = wavesim("viz", "--tiles", tmp_path / "none.mbtiles")
    assert done.returncode == 2 and "tile file not found" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("chart", ["pmtiles"], indirect=True)
def test_tiles_are_drawn_where_they_belong(chart: Path, open_page: Callable[[str], Page], tmp_path: Path) -> None:
    """Colours meet within two pixels of where pymap3d has the corner, half a metre a pixel."""
    source = Stage()
    source.described["origin"] = list(ORIGIN)
    x, y = corner()
    lat = math.degrees(math.atan(math.sinh(math.pi * (1.0 - 2.0 * y / (1 << ZOOM)))))
    north, east, _ = pymap3d.geodetic2ned(lat, x / (1 << ZOOM) * 360.0 - 180.0, 0.0, *ORIGIN, 0.0)
    with on_stage(source, tmp_path, open_tiles(chart)) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.scene && wavesim.store.rows.length")
        page.page.keyboard.press("4")
        page.see(f"wavesim.chart.look([{north}, {east}], 2)")
        page.wait("wavesim.chart.tiles.version >= 4")
        page.see("wavesim.chart.show.trails = false")

        def colour(dn: float, de: float) -> Any:
            return page.see(
                f"(() => {{ wavesim.chart.render(); const c = wavesim.chart.canvas, r = c.width / c.clientWidth, p = wavesim.chart.px({north + dn}, {east + de});"
                " return [...c.getContext('2d').getImageData(Math.round(p[0] * r), Math.round(p[1] * r), 1, 1).data].slice(0, 3) })()"
            )

        def nearest(dn: float, de: float) -> int:
            found = colour(dn, de)
            return min(range(4), key=lambda k: sum((a - b) ** 2 for a, b in zip(COLOURS[k], found, strict=True)))

        # away from the lines of the grid: 1 m is two pixels
        assert [nearest(n, e) for n, e in ((37.3, -41.7), (37.3, 41.7), (-37.3, -41.7), (-37.3, 41.7))] == [0, 1, 2, 3]
        assert [nearest(1.0, -41.7), nearest(-1.0, -41.7)] == [0, 2], "from north to south"
        assert [nearest(37.3, -1.0), nearest(37.3, 1.0)] == [0, 1], "from west to east"
        page.shot("tiles")
        page.clean()
