"""Columns of CSV files: their roles and units.

A layout is a text such as ``time=t:ns north=x east=y heading=psi:deg rates=p,q,r:deg/s``. Each role names a column (for
a vector: three columns, separated by commas) and, after a colon, its unit. Without a unit, values are in SI units,
angles in rad and pressures in dbar. Roles that the layout does not name are found by the common names of their columns.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wavesim_sdk import units
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.names import suggest_name

#: units of a role's quantity, with factors to the unit of WaVeSim's logs
UNITS: dict[str, dict[str, float]] = {
    **units.QUANTITIES,
    "angle": units.QUANTITIES["angle"] | {"degE7": math.radians(1e-7)},  # integers of many receivers
    "angular rate": units.QUANTITIES["angular rate"] | {"mrad/s": 1e-3},
    "speed": units.QUANTITIES["speed"] | {"cm/s": 1e-2, "mm/s": 1e-3, "km/h": 1.0 / 3.6},
    "acceleration": {"m/s2": 1.0, "g": 9.80665, "mg": 9.80665e-3},
    "pressure": {"dbar": 1.0, "bar": 10.0, "mbar": 1e-2, "hPa": 1e-2, "kPa": 0.1, "Pa": 1e-4, "psi": 0.689475729},
    "length": units.QUANTITIES["length"] | {"ft": 0.3048},
    "": {"": 1.0},
}
_UNIT_SUFFIX = re.compile(
    r"^(.+?)[ _]*(?:\((\S+)\)|\[(\S+)\]|_(deg|rad|m|s|ms|us|ns|dbar|pa|kpa|bar|mbar))$", re.IGNORECASE
)
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class ColumnRole:
    """Role of a column, or of three columns for a vector: its quantity, and the usual names of its columns."""

    quantity: str
    names: tuple[str, ...] = ()
    size: int = 1
    usual: bool = True  #: whether the name of the role is also a usual name of its columns


@dataclass(frozen=True)
class ColumnChoice:
    """Columns that have a role, and the factor that converts their values to SI units."""

    columns: tuple[str, ...]
    factor: float
    stated: bool  #: whether a layout or the name of the column states the unit


def parse_layout(text: str, keys: Sequence[str], where: str) -> dict[str, str]:
    """Return the pairs KEY=VALUE of a layout. Raise LogError for an unknown key."""
    found = {}
    for pair in text.split():
        name, equals, value = pair.partition("=")
        if not equals or not value:
            raise LogError(f"{where}: '{pair}' must be NAME=COLUMN or NAME=COLUMN:UNIT")
        if name not in keys:
            raise LogError(f"{where}: unknown name '{name}'{suggest_name(name, keys)}")
        found[name] = value
    return found


def choose_columns(
    header: Sequence[str], roles: Mapping[str, ColumnRole], layout: Mapping[str, str], where: str
) -> dict[str, ColumnChoice]:
    """Return the columns of each role. Roles without columns are omitted. Raise LogError if a layout names a column
    that the header does not contain.
    """
    found = {name: _stated(header, name, role, layout[name], where) for name, role in roles.items() if name in layout}
    taken = {column for choice in found.values() for column in choice.columns}
    free = [column for column in header if column not in taken]
    for name, role in roles.items():
        if name not in layout and (usual := _usual(free, name, role)) is not None:
            found[name] = usual
    return found


def _stated(header: Sequence[str], name: str, role: ColumnRole, text: str, where: str) -> ColumnChoice:
    columns, colon, unit = text.rpartition(":")
    if not colon or text in header:
        columns, unit = text, ""
    wanted = tuple(columns.split(",")) if role.size > 1 else (columns,)
    if len(wanted) != role.size:
        raise LogError(f"{where}: '{name}={text}' must name {role.size} columns, separated by commas")
    for column in wanted:
        if column not in header:
            raise LogError(f"{where} has no column '{column}' for '{name}'; columns: {', '.join(header) or 'none'}")
    allowed = UNITS[role.quantity]
    if unit and unit not in allowed:
        raise LogError(
            f"{where}: unknown unit '{unit}' in '{name}={text}'; use one of {', '.join(filter(None, allowed)) or 'none'}"
        )
    return ColumnChoice(wanted, allowed[unit] if unit else 1.0, bool(unit))


def _usual(header: Sequence[str], name: str, role: ColumnRole) -> ColumnChoice | None:
    """Return the columns whose names are usual for a role. A name may end in a unit, as in ``heading_deg``."""
    for usual in (*([name] if role.usual else []), *role.names):
        wanted = [usual] if role.size == 1 else [f"{usual}_{axis}" for axis in AXES[: role.size]]
        hits = [_find(header, each, role) for each in wanted]
        if all(hits):
            first = hits[0]
            assert first is not None
            return ColumnChoice(tuple(hit[0] for hit in hits if hit), first[1], first[2])
    return None


def _find(header: Sequence[str], usual: str, role: ColumnRole) -> tuple[str, float, bool] | None:
    """Return the column with a given name, the factor of its unit, and whether the name of the column states the
    unit.
    """
    for column in header:
        if column.lower() == usual.lower():
            return column, 1.0, False
    by_lower_case = {unit.lower(): factor for unit, factor in UNITS[role.quantity].items()}
    for column in header:
        match = _UNIT_SUFFIX.match(column)
        unit = next((part for part in match.groups()[1:] if part), "").lower() if match else ""
        if match and match[1].lower() == usual.lower() and unit in by_lower_case:
            return column, by_lower_case[unit], True
    return None


class TableReader:
    """An open CSV file: its header, and its rows, which can be read once."""

    def __init__(self, path: Path, lines: Iterable[str]) -> None:
        lines = (line for line in lines if line.strip() and not line.startswith("#"))
        first = next(lines, "")
        delimiter = max(",;\t", key=first.count)
        self.path = path
        self.rows = csv.reader(itertools.chain([first] if first else [], lines), delimiter=delimiter)
        self.header = [cell.strip() for cell in next(self.rows, [])]

    def values(self, roles: Mapping[str, ColumnRole], chosen: Mapping[str, ColumnChoice]) -> dict[str, Floats]:
        """Return the values of each role in SI units, (T) or (T, 3). An empty cell is NaN. Raise LogError for a cell that
        is not a number.
        """
        names = list(dict.fromkeys(name for choice in chosen.values() for name in choice.columns))
        at = [self.header.index(name) for name in names]
        numbers = array("d")  # the text of a long recording would need ten times the memory
        for number, row in enumerate(self.rows, start=2):
            if not row:
                continue
            try:
                numbers.extend([float(row[k]) if row[k].strip() else math.nan for k in at])
            except (ValueError, IndexError):
                wrong = next(n for n, k in zip(names, at, strict=True) if k >= len(row) or not _is_number(row[k]))
                raise LogError(f"{self.path}: row {number} has no number in the column '{wrong}'") from None
        table = np.array(numbers).reshape(-1, len(names))
        found = {}
        for role, choice in chosen.items():
            x = table[:, [names.index(name) for name in choice.columns]] * choice.factor
            found[role] = x if roles[role].size > 1 else x[:, 0]
        return found


def _is_number(cell: str) -> bool:
    """Return whether a cell is empty or contains a number."""
    try:
        float(cell.strip() or 0)
    except ValueError:
        return False
    return True


@contextmanager
def open_table(path: Path) -> Iterator[TableReader]:
    """Open a CSV file. Its delimiter may be a comma, a semicolon or a tab. Raise LogError if it cannot be read."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield TableReader(path, file)
    except UnicodeDecodeError:
        raise LogError(f"cannot read {path}: it is not a text file") from None
    except (OSError, csv.Error) as error:
        raise LogError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def check_angles(where: str, values: Mapping[str, Floats], chosen: Mapping[str, ColumnChoice]) -> None:
    """Raise LogError if angles seem to be in degrees although they are read as rad."""
    for name in ("roll", "pitch", "heading", "yaw"):
        if name not in values or not np.isfinite(values[name]).any():
            continue
        limit = {"roll": np.pi, "pitch": 0.5 * np.pi}.get(name, 2.0 * np.pi)
        greatest = float(np.nanmax(np.abs(values[name])))
        unit = "" if name not in chosen else f" in column '{chosen[name].columns[0]}'"
        if greatest > limit + 1e-3 and (name in ("roll", "pitch") or not chosen[name].stated):
            raise LogError(
                f"{where}: {name} reaches {greatest:.4g} rad{unit}; state its unit, for example "
                f"{name}={chosen[name].columns[0]}:deg (for an unwrapped heading: :rad)"
            )
