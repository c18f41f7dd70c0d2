"""Messages in a log from another program, in the form in which the reader of a file format returns them.

Each reader is an entry point of the group :data:`READERS`, and its name is the suffix of the files that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.logfile import first_content

#: entry-point group of functions ``read(path, wanted)``; each returns a RecordedFile with the requested message types
READERS = "wavesim.recordings"
#: entry-point group of the function that converts such a file to a Log
CONVERTERS = "wavesim.logs"
#: suffixes of the files, and the programs that write them
SUFFIXES = {
    ".tlog": "MAVLink ground stations",
    ".bin": "ArduPilot",
    ".ulg": "PX4",
    ".lsf": "DUNE",
    ".lsf.gz": "DUNE",
}


@dataclass(frozen=True)
class RecordedMessages:
    """Messages of one type from one source, in the units and axes of their format."""

    name: str  #: type and source, such as `IMU[0]` or `EulerAngles (AHRS)`
    type: str
    time: Floats  #: times (T) in s on the vehicle's clock; Unix times if the file relates this clock to civil time
    columns: dict[str, Floats]  #: values (T) or (T, n)
    received: Floats | None = None  #: times (T) in s on the clock of the program that wrote the file
    source: str = ""  #: system and device; messages of one device have the same source


@dataclass
class RecordedFile:
    """Content of a file."""

    messages: list[RecordedMessages]
    others: dict[str, int] = field(default_factory=dict)  #: number of messages of each type that was not requested
    notes: list[str] = field(default_factory=list)
    kind: str = ""  #: `submarine` or `surface`, if the file states the kind of the vehicle
    origin: tuple[float, float] | None = None  #: latitude and longitude in rad of the origin of local positions


def suffix_of(path: Path) -> str:
    """Return the suffix of a file in a format of :data:`SUFFIXES`; empty for other files."""
    name = path.name.lower()
    return next((s for s in SUFFIXES if name.endswith(s)), "") if not path.is_dir() else ""


def is_foreign(path: Path) -> bool:
    """Return whether a path is a recording from another program: a log in a format of :data:`SUFFIXES`, a ROS bag, or a
    folder.
    """
    if suffix_of(path) or path.suffix.lower() in (".db3", ".bag") or path.is_dir():
        return True
    return path.suffix.lower() == ".mcap" and path.is_file() and first_content(path) == "messages"


def reader_of(path: Path) -> Callable[[Path, Collection[str]], RecordedFile]:
    """Return the reader for a file. Raise LogError if no installed package reads this format."""
    from importlib.metadata import entry_points

    suffix = suffix_of(path)
    for entry in entry_points(group=READERS, name=suffix.removeprefix(".")):
        found: Callable[[Path, Collection[str]], RecordedFile] = entry.load()
        return found
    raise LogError(f"no installed package reads {suffix or path.suffix} files; run pip install 'wavesim[studies]'")
