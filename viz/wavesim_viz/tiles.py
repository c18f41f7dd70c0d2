"""A chart in a file: raster tiles in Web Mercator, as MBTiles 1.3 keeps them in an SQLite database."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wavesim_sdk.errors import ConfigError

#: how the bytes of a picture begin, and what they are
PICTURES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"RIFF": "image/webp"}
DEEPEST = 24  #: level of zoom
MOST_LETTERS = 200


@dataclass(frozen=True)
class Described:
    """What the page is told of it."""

    name: str
    attribution: str
    least: int  #: level of zoom
    most: int


class Tiles:
    """An MBTiles file, read only. Raises ConfigError if it holds no pictures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise ConfigError("there is no such file of tiles", str(path))
        try:
            self._base = sqlite3.connect(
                f"file:{quote(str(path.resolve()))}?mode=ro", uri=True, check_same_thread=False
            )
            told = {str(k): str(v) for k, v in self._base.execute("SELECT name, value FROM metadata")}
            least, most = self._base.execute("SELECT min(zoom_level), max(zoom_level) FROM tiles").fetchone()
            first = self._base.execute("SELECT tile_data FROM tiles LIMIT 1").fetchone()
        except sqlite3.Error as error:
            raise ConfigError(f"no MBTiles file: {error}", str(path)) from None
        if first is None:
            raise ConfigError("it has no tiles", str(path))
        if kind_of(first[0]) is None:
            kind = told.get("format", "unknown")
            raise ConfigError(
                f"its tiles are no pictures (format: {kind}); PNG, JPEG and WebP are drawn, vector tiles are not",
                str(path),
            )
        if not (type(least) is int and type(most) is int and 0 <= least <= most <= DEEPEST):
            raise ConfigError(f"its levels of zoom are {least} to {most}; 0 to {DEEPEST} may be", str(path))
        name, attribution = (told.get(k, "")[:MOST_LETTERS] for k in ("name", "attribution"))
        self.described = Described(name or path.name, attribution, least, most)

    def tile(self, z: int, x: int, y: int) -> tuple[bytes, str] | None:
        """A picture and its type; rows count from the north, as on the web. None where there is none."""
        if not 0 <= z <= DEEPEST or not (0 <= x < 1 << z and 0 <= y < 1 << z):
            return None
        asked = "SELECT tile_data FROM tiles WHERE zoom_level = ? AND tile_column = ? AND tile_row = ?"
        try:
            found = self._base.execute(
                asked, (z, x, (1 << z) - 1 - y)
            ).fetchone()  # in the file they count from the south
        except sqlite3.Error as error:
            raise ConfigError(f"a tile cannot be read: {error}", str(self.path)) from None
        kind = kind_of(found[0]) if found is not None else None
        return None if found is None or kind is None else (bytes(found[0]), kind)

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()


def kind_of(data: Any) -> str | None:
    """What picture some bytes are, by how they begin."""
    return (
        next((k for head, k in PICTURES.items() if data[: len(head)] == head), None)
        if isinstance(data, bytes)
        else None
    )
