"""Reader of the tables that state the positions of the elements of hydrophones."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.front_tables import FRONT_ELEMENTS
from wavesim_world.config.hydrophone import HydrophoneArrayConfig, HydrophoneElement
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.model import BodyConfig
from wavesim_world.config.schema import Vector
from wavesim_world.config.sensors import SensorsConfig
from wavesim_world.config.validation import fail_at

COLUMNS = ("x", "y", "z")
MAX_TABLE_BYTES = 1 << 20


def read_arrays(loaded: LoadedConfig) -> LoadedConfig:
    """Return the configuration with the elements from the table of every hydrophone that names one. Its digest also
    covers these files.

    Raises ConfigError for the first invalid table.
    """
    texts: list[str] = []

    def one(h: HydrophoneArrayConfig) -> HydrophoneArrayConfig:
        if not h.elements:
            return h
        if h.element:
            fail_at(h.place, "<hydrophone>: it has both `elements` and <element>; remove one of them")
        path = loaded.file_beside(h.elements, h.place)
        text, positions = read_elements(path)
        texts.append(text)
        return dataclasses.replace(h, element=tuple(HydrophoneElement(position=p) for p in positions))

    def with_arrays(sensors: SensorsConfig | None) -> SensorsConfig | None:
        if sensors is None or not any(h.elements for h in sensors.hydrophone):
            return sensors
        return dataclasses.replace(sensors, hydrophone=tuple(map(one, sensors.hydrophone)))

    def all_bodies(bodies: Iterable[BodyConfig]) -> tuple[BodyConfig, ...]:
        return tuple(dataclasses.replace(b, sensors=with_arrays(b.sensors)) for b in bodies)

    config, fleet = loaded.config, loaded.config.fleet
    models = {
        name: dataclasses.replace(model, sensors=with_arrays(model.sensors)) for name, model in loaded.models.items()
    }
    fleet = dataclasses.replace(
        fleet, vehicle=all_bodies(fleet.vehicle), buoy=all_bodies(fleet.buoy), sensors=with_arrays(fleet.sensors)
    )
    if not texts:
        return loaded
    return dataclasses.replace(
        loaded,
        config=dataclasses.replace(config, fleet=fleet),
        models=models,
        digest=hashlib.sha256("\0".join([loaded.digest, *texts]).encode()).hexdigest(),
    )


def read_elements(path: Path) -> tuple[str, tuple[Vector, ...]]:
    """Return the text of a table of elements, and the positions of the elements in m. Raises ConfigError if the table is
    invalid.
    """
    try:
        if path.stat().st_size > MAX_TABLE_BYTES:
            raise ConfigError(f"the table is larger than {MAX_TABLE_BYTES >> 20} MiB", str(path))
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read the table of elements: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError("the table of elements is not a text file", str(path)) from None
    rows = [
        (number, [cell.strip() for cell in row])
        for number, row in enumerate(csv.reader(text.splitlines()), 1)
        if "".join(row).strip()
    ]
    if not rows or sorted(rows[0][1]) != sorted(COLUMNS):
        raise ConfigError(
            "the first line of a table of elements must be x,y,z; each further line is the position of an element in m",
            str(path),
        )
    order = [rows[0][1].index(name) for name in COLUMNS]
    positions: list[Vector] = []
    for number, row in rows[1:]:
        try:
            values = [float(cell) for cell in row]
        except ValueError:
            values = []
        if len(values) != len(COLUMNS) or not all(map(math.isfinite, values)):
            raise ConfigError("a position must consist of three numbers", str(path), number)
        positions.append(tuple(values[k] for k in order))
    if not positions:
        raise ConfigError("the table contains no elements", str(path))
    return text, tuple(positions)


def element_groups(loaded: LoadedConfig) -> int:
    """Return the maximum number of groups of FRONT_ELEMENTS elements of a hydrophone that the bodies of a configuration,
    or bodies that join later, can have; at least 1.
    """
    suites = [loaded.suite(body) for body in loaded.config.fleet.bodies]
    suites += [loaded.suite_of_model(model) for model in loaded.models.values()]
    found: list[Any] = [i.parameters for suite in suites for i in suite if i.type == "hydrophone"]
    most = max((len(h.element_positions) for h in found), default=1)
    return -(-most // FRONT_ELEMENTS)
