"""Raster charts from files with Web Mercator tiles: MBTiles 1.3 or PMTiles 3."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from wavesim_sdk.errors import ConfigError
from wavesim_viz.page_content import TilesetInfo

#: type of each image format, by its first bytes
PICTURES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"RIFF": "image/webp"}
DEEPEST = 24  #: maximum zoom level of a chart
MOST_LETTERS = 200
ARCHIVE = b"PMTiles"  #: first bytes of a PMTiles file


class Tileset(Protocol):
    """File of tiles, opened read-only."""

    described: TilesetInfo

    def tile(self, z: int, x: int, y: int) -> tuple[bytes, str] | None:
        """Return the image of a tile and the type of the image, or None outside the chart. Rows are counted from the
        north, as in web maps.
        """

    def close(self) -> None:
        """Close the file."""


def open_tiles(path: Path) -> Tileset:
    """Open a file of either format, detecting the format from its first bytes. Raise ConfigError if the file contains
    no images.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(ARCHIVE))
    except FileNotFoundError:
        raise ConfigError("tile file not found", str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot read the tiles: {error.strerror}", str(path)) from None
    return PMTiles(path) if head == ARCHIVE else MBTiles(path)


class MBTiles:
    """Tiles in an SQLite database (MBTiles)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._base = sqlite3.connect(
                f"file:{quote(str(path.resolve()))}?mode=ro", uri=True, check_same_thread=False
            )
            metadata = {str(k): str(v) for k, v in self._base.execute("SELECT name, value FROM metadata")}
            least, most = self._base.execute("SELECT min(zoom_level), max(zoom_level) FROM tiles").fetchone()
            first = self._base.execute("SELECT tile_data FROM tiles LIMIT 1").fetchone()
        except sqlite3.Error as error:
            raise ConfigError(f"neither an MBTiles nor a PMTiles file: {error}", str(path)) from None
        if first is None:
            raise ConfigError("the file has no tiles", str(path))
        _require_raster(path, kind_of(first[0]), metadata.get("format", "unknown"))
        self.described = _described(path, metadata, least, most)

    def tile(self, z: int, x: int, y: int) -> tuple[bytes, str] | None:
        if not _is_tile(z, x, y):
            return None
        query = "SELECT tile_data FROM tiles WHERE zoom_level = ? AND tile_column = ? AND tile_row = ?"
        try:
            found = self._base.execute(
                query, (z, x, (1 << z) - 1 - y)
            ).fetchone()  # rows in the file count from the south
        except sqlite3.Error as error:
            raise ConfigError(f"cannot read a tile: {error}", str(self.path)) from None
        kind = kind_of(found[0]) if found is not None else None
        return None if found is None or kind is None else (bytes(found[0]), kind)

    def close(self) -> None:
        self._base.close()


class PMTiles:
    """Tiles in an archive with a directory (PMTiles)."""

    def __init__(self, path: Path) -> None:
        try:
            from pmtiles import reader
            from pmtiles.tile import Compression
        except ImportError:
            raise ConfigError("PMTiles need a library: pip install 'wavesim-viz[charts]'", str(path)) from None
        self.path = path
        self._file = path.open("rb")
        try:
            self._reader = reader.Reader(reader.MmapSource(self._file))
            head, metadata = self._reader.header(), self._reader.metadata()
        except Exception as error:  # the reader may raise any exception for a damaged file
            self._file.close()
            raise ConfigError(
                f"damaged PMTiles file, or not version 3: {str(error) or type(error).__name__}", str(path)
            ) from None
        kind = head["tile_type"].name.lower()
        _require_raster(path, kind if kind in ("png", "jpeg", "webp") else None, kind)
        if head["tile_compression"] not in (Compression.NONE, Compression.UNKNOWN):
            raise ConfigError(
                f"tiles with additional compression ({head['tile_compression'].name.lower()}) are not supported",
                str(path),
            )
        texts = {str(k): str(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {}
        self.described = _described(path, texts, head["min_zoom"], head["max_zoom"])

    def tile(self, z: int, x: int, y: int) -> tuple[bytes, str] | None:
        if not _is_tile(z, x, y):
            return None
        try:
            found = self._reader.get(z, x, y)
        except Exception as error:
            raise ConfigError(f"cannot read a tile: {str(error) or type(error).__name__}", str(self.path)) from None
        kind = kind_of(found)
        return None if kind is None else (bytes(found), kind)

    def close(self) -> None:
        self._file.close()


def _is_tile(z: int, x: int, y: int) -> bool:
    return 0 <= z <= DEEPEST and 0 <= x < 1 << z and 0 <= y < 1 << z


def _require_raster(path: Path, kind: str | None, stated: str) -> None:
    if kind is None:
        raise ConfigError(
            f"the tiles in this file are not raster images (format: {stated}); use PNG, JPEG or WebP, and convert vector tiles with QGIS (Generate XYZ tiles, MBTiles)",
            str(path),
        )


def _described(path: Path, metadata: dict[str, str], least: Any, most: Any) -> TilesetInfo:
    if not (type(least) is int and type(most) is int and 0 <= least <= most <= DEEPEST):
        raise ConfigError(f"zoom levels {least} to {most} are out of range; use 0 to {DEEPEST}", str(path))
    name, attribution = (metadata.get(k, "")[:MOST_LETTERS] for k in ("name", "attribution"))
    return TilesetInfo(name or path.name, attribution, least, most)


def kind_of(data: Any) -> str | None:
    """Detect the type of an image from the signature in its first bytes."""
    return (
        next((k for head, k in PICTURES.items() if data[: len(head)] == head), None)
        if isinstance(data, bytes)
        else None
    )
