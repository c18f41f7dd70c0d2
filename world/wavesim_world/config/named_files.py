"""Detection of changes to the files that a configuration consists of, and to the files that it names."""

from __future__ import annotations

import contextlib
from pathlib import Path

from wavesim_sdk.errors import ConfigError
from wavesim_world.config import xml


def named_files(path: Path, text: str | None = None) -> list[Path]:
    """Return the configuration file, the files that it names, and those that its included files name.

    If ``text`` is given, it is the configuration, and ``path`` only gives the folder of the files. Missing and invalid
    files are omitted, because the reader of the configuration reports them.
    """
    found: dict[Path, None] = {}
    _collect(path, text, found)
    return list(found)


def _collect(path: Path, text: str | None, found: dict[Path, None]) -> None:
    if text is None:
        if path in found or not _is_file(path):
            return
        found[path] = None
    with contextlib.suppress(ConfigError, OSError):
        for element in xml.parse(path.read_bytes() if text is None else text.encode(), str(path)).iter():
            named = [path.parent / value for value in element.attrib.values()]
            if element.tag == "include":
                for file in named:
                    _collect(file, None, found)
            else:
                found.update(dict.fromkeys(filter(_is_file, named)))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the value is too long for a name
        return False


def file_states(files: list[Path]) -> list[tuple[int, int] | None]:
    """Return the time of the last change (ns) and the size of each file, or None for a missing file."""
    states: list[tuple[int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            states.append(None)
        else:
            states.append((status.st_mtime_ns, status.st_size))
    return states
