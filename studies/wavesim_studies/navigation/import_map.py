"""Declarations of all elements and keys of an import map, in the same form as for a configuration. An import map
assigns files or topics to instruments.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from wavesim_world.config import xml
from wavesim_world.config.build import read_element
from wavesim_world.config.schema import Vector, child, children, choice, key, place, text
from wavesim_world.config.sensors import SensorsConfig

TYPES = ("", "imu", "ahrs", "dvl", "speedlog", "pressure", "ctd", "gps", "uwb")
BODY_FRAMES = ("FRD", "FLU")


@dataclass(frozen=True)
class ImportedTable:
    """CSV file with a header. It contains the values of one instrument, or the true track."""

    file: str = text("Path of the CSV file, relative to the folder that is imported.")
    sensor: str = text("Name of the instrument, or `truth` for the true track.")
    type: str = choice("Type of the instrument; empty: the name of the instrument is its type.", TYPES, "")
    columns: str = text(
        "Columns as NAME=COLUMN or NAME=COLUMN:UNIT, separated by spaces, for example `time=t:ns roll=phi:deg "
        "rates=p,q,r`. Columns with common names need not be listed.",
        "",
    )
    frame: str = choice(
        "Axes of the vectors: FRD (forward, starboard, down) or FLU (forward, left, up).", BODY_FRAMES, "FRD"
    )
    place: str = place()


@dataclass(frozen=True)
class ImportedTopic:
    """Topic of a bag, or message of a vehicle's log, that belongs to an instrument. Topics and messages of common types
    need not be listed.
    """

    name: str = text("Name of the topic, or of the message as `wavesim nav import` lists it, such as `IMU[1]`.")
    sensor: str = text(
        "Name of the instrument; empty: derived from the name of the topic. If the topic contains an IMU and an AHRS, "
        "`-ahrs` is appended to the name of the AHRS.",
        "",
    )
    type: str = choice(
        "Type of the instrument; empty: derived from the message type. For Imu messages, `imu` or `ahrs` selects one of "
        "the two.",
        TYPES,
        "",
    )
    place: str = place()


@dataclass(frozen=True)
class ImportMap:
    """Description of a recording from other programs: the vehicle, its instruments, and their files or topics."""

    vehicle: str = text("Name of the vehicle in the log.", "vehicle")
    configuration: str = text(
        "WaVeSim configuration that contains the vehicle and its instruments, as a path relative to the map file. "
        "Empty: `<sensors>` declares the instruments.",
        "",
    )
    origin: Vector = key(
        "Latitude and longitude of the origin of the world frame. Default: the first fix.", "angle", (), count=2
    )
    sensors: SensorsConfig | None = child(SensorsConfig, "Mounting positions and accuracies of the instruments.")
    table: tuple[ImportedTable, ...] = children(ImportedTable, "A CSV file.")
    topic: tuple[ImportedTopic, ...] = children(ImportedTopic, "A topic of a bag, or a message of a log.")
    place: str = place()


def read_map(path: Path) -> tuple[ImportMap, str]:
    """Return an import map, and the text of its `<sensors>` element. Raise ConfigError if the file is invalid."""
    made, written = read_element(path, "import", ImportMap)
    element = xml.parse(written.encode(), str(path)).find("sensors")
    return made, "" if element is None else etree.tostring(element, encoding="unicode", with_tail=False)
