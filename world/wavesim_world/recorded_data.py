"""Recorded actuator commands and recorded tracks, read from columns of numbers in a file.

columns, times = read_columns(Path("trial.csv"), rate=None)
which, values = parse_map(model, "port=left_rpm*0.01", columns)
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wavesim_sdk.actuators import actuator_index
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_world.actuators import actuators_of
from wavesim_world.config.vehicle import Model


def actuator_position(model: Model, name: str) -> int:
    """Return the index of an actuator in the model's order, given its name or number.

    Raises ConfigError, suggesting the nearest name, if the actuator is unknown.
    """
    try:
        return actuator_index(actuators_of(model), name)
    except ValueError as error:
        raise ConfigError(f"'{model.name}': {error}") from None


def read_columns(path: Path, rate: float | None) -> tuple[dict[str, Floats], Floats]:
    """Return the columns (by name and by number) and the times (s) from a CSV file with a header, or from a file with
    plain columns of numbers.

    The times are from the column ``time``, ``t``, ``time_s``, ``t_ns`` or ``time_ns``, shifted to start at 0; without
    such a column, they are the line numbers divided by ``rate``.
    """
    try:
        lines = [line.strip().rstrip(",").strip() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the file: {error}", str(path)) from None
    rows = [re.split(r"\s*[,;]\s*|\s+", line) for line in lines if line and not line.startswith("#")]
    if not rows:
        raise ConfigError("the file is empty", str(path))
    header: list[str] = []
    if not all(_is_number(cell) for cell in rows[0]):
        header = next(csv.reader([lines[0]]))
        rows = rows[1:]
    try:
        data = np.array([[float(cell) for cell in row] for row in rows])
    except ValueError as error:
        raise ConfigError(f"a value is not a number: {error}", str(path)) from None
    columns = {str(k + 1): data[:, k] for k in range(data.shape[1])} | dict(zip(header, data.T, strict=False))
    for name, factor in (("time", 1.0), ("t", 1.0), ("time_s", 1.0), ("t_ns", 1e-9), ("time_ns", 1e-9)):
        if name in columns:
            return columns, (columns[name] - columns[name][0]) * factor
    if rate is None:
        raise ConfigError(
            "the file has no column time, t, time_s, t_ns or time_ns; set --rate to the number of lines per second",
            str(path),
        )
    return columns, np.arange(len(data)) / rate


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def parse_map(model: Model, item: str, columns: Mapping[str, Floats]) -> tuple[int, Floats]:
    """Parse ``actuator=column*factor``. Return the index of the actuator and its values in SI units."""
    match = re.fullmatch(r"([^=]+)=([^*]+?)(?:\*([-+0-9.eE]+|deg|rpm))?", item)
    if match is None:
        raise ConfigError(f"invalid --map {item}: use actuator=column or actuator=column*factor")
    which = actuator_position(model, match[1].strip())
    column = match[2].strip()
    if column not in columns:
        raise ConfigError(f"--map {item}: unknown column '{column}'{suggest_name(column, columns)}")
    factor = {"deg": math.pi / 180, "rpm": 1 / 60}.get(match[3] or "1")
    return which, columns[column] * (float(match[3] or 1.0) if factor is None else factor)
