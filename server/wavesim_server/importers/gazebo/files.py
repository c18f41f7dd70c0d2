"""Search for the files that a description names by `model://`, `package://`, `file://` or a path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wavesim_sdk.errors import ConfigError

_SCHEME = re.compile(r"^(model|package|file|fuel)://|^https?://")
PARENTS = 4  #: number of folders above the file that are searched


class SearchPath(NamedTuple):
    """Folders to search: those of the user, also up to two folders below them, then those above the file."""

    given: tuple[Path, ...]
    above: tuple[Path, ...]


def search_path(path: Path, given: Sequence[Path]) -> SearchPath:
    """Return the folders to search for the files that ``path`` names. Raises ConfigError if a folder does not exist."""
    for folder in given:
        if not folder.is_dir():
            raise ConfigError("this folder does not exist", f"--path {folder}")
    here = path.resolve().parent
    return SearchPath(tuple(folder.resolve() for folder in given), (here, *here.parents[:PARENTS]))


def find_file(uri: str, search: SearchPath, here: Path) -> Path | None:
    """Return the file or folder of a URI, or None if no folder contains it. ``here`` is the folder of the file that
    contains the URI.
    """
    uri = uri.strip()
    name = _SCHEME.sub("", uri)
    if not name or uri.startswith(("http", "fuel:")):
        return None
    if uri.startswith("file://") and Path(name).is_absolute():
        return Path(name) if Path(name).exists() else None
    return next((c for c in (here / name, *_candidates(search, name)) if c.exists()), None)


def find_package(name: str, search: SearchPath) -> Path | None:
    """Return the folder of a ROS package: a folder of this name with a package.xml."""
    return next((c for c in _candidates(search, name) if (c / "package.xml").is_file()), None)


def _candidates(search: SearchPath, name: str) -> Iterator[Path]:
    first = name.partition("/")[0]
    for folder in (*search.given, *search.above):
        yield folder / name
        if folder.name == first:
            yield folder.parent / name
    if first in ("", ".", ".."):
        return
    for folder in search.given:
        for depth in ("*", "*/*"):
            for found in sorted(folder.glob(f"{depth}/{first}")):
                yield found.parent / name
