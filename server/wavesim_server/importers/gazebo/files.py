"""Search for the files that a description names by `model://`, `package://`, `file://` or a path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from wavesim_sdk.errors import ConfigError

_SCHEME = re.compile(r"^(model|package|file|fuel)://|^https?://")
PARENTS = 4  #: number of folders above the file that are searched


def search_folders(path: Path, given: Sequence[Path]) -> list[Path]:
    """Return the folders to search: those of the user, that of the file, and those above it."""
    for folder in given:
        if not folder.is_dir():
            raise ConfigError("this folder does not exist", f"--path {folder}")
    here = path.resolve().parent
    return [*(folder.resolve() for folder in given), here, *list(here.parents)[:PARENTS]]


def find_file(uri: str, folders: Sequence[Path], here: Path) -> Path | None:
    """Return the file or folder of a URI, or None if no folder contains it. ``here`` is the folder of the file that
    contains the URI.
    """
    uri = uri.strip()
    name = _SCHEME.sub("", uri)
    if uri.startswith(("http", "fuel:")):
        return None
    if uri.startswith("file://") and Path(name).is_absolute():
        return Path(name) if Path(name).exists() else None
    for folder in (here, *folders):
        for candidate in _candidates(folder, name):
            if candidate.exists():
                return candidate
    return None


def find_package(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the folder of a ROS package: a folder of this name with a package.xml, in one of the folders or up to two
    folders below.
    """
    for folder in folders:
        for candidate in _candidates(folder, name):
            if (candidate / "package.xml").is_file():
                return candidate
    return None


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    yield folder / name
    if folder.name == name.partition("/")[0]:
        yield folder.parent / name
    first = name.partition("/")[0]
    if not first or first in (".", ".."):
        return
    for depth in ("*", "*/*"):
        for found in sorted(folder.glob(f"{depth}/{first}")):
            yield found.parent / name
