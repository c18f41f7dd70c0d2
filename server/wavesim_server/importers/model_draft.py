"""Draft of a model from a file: its content, the values that the file lacks, and the content that a model cannot
represent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError

#: keys of the ``--set`` option and their meanings
SETTINGS = {
    "mass": "mass in kg",
    "added-mass": "diagonal of the added mass matrix: six numbers",
    "inertia": "moments of inertia: three numbers (about x, y, z), in kg m2",
    "rigid-body": "`upper` or `lower`: the valid half of the asymmetric M_RB",
    "size": "three numbers (length, width, height), in m",
    "thrusters": "seven numbers `x y z dx dy dz max` for each thruster, in m and N",
    "cross-flow-density": "water density for which the drag coefficients were determined, in kg/m3",
    "centre": "centre of mass relative to the origin: three numbers (forward, starboard, down), in m",
    "linear-drag": "linear damping in addition to wave radiation damping: six numbers, in N per m/s and N m per rad/s (all 0 = none)",
    "restoring": "linear restoring matrix G for z down, including the contribution of the weight: 36 numbers, row by row",
    "origin-depth": "depth of the reference point for moments below the mean surface, in m",
    "length": "length scale (ULEN) of the dimensionless numbers, in m",
    "gravity": "gravitational acceleration used to make the numbers dimensionless, in m/s2",
    "water-density": "water density used to make the numbers dimensionless, in kg/m3",
    "wave-column": "content of the first column of WAMIT's files: `period` (default) or `frequency`",
    "type": "`surface` or `underwater`: type of the vessel",
    "derivatives": "`prime` or `dimensional`: system of units of the hydrodynamic derivatives",
    "hull-file": "panel hull of WAMIT or HydRA (.gdf), for the cross-flow drag",
    "volume": "displaced volume in m3",
    "thrust-limit": "maximum thrust in N, in either direction, of the thrusters for which the file states no limit",
    "coriolis": "`fossen` (default), or `gz` for the Coriolis forces of gz-sim, which have the opposite sign",
    "xacro": "arguments of a xacro file: `NAME:=VALUE ...`",
    "forward": "axis of the link that points ahead: `x` (default), `-x`, `y` or `-y`",
    "active": "free degrees of freedom: `u v r` for a boat in the horizontal plane, `u v w p q r` for all of them",
}
EMPTY_VALUES: tuple[Any, ...] = (None, 0, 0.0, "", "None", "none", False)


class ImportedModel(NamedTuple):
    """A models file, notes for the user, and the content of the additional files to which the models file refers."""

    xml: str
    notes: list[str]
    files: dict[str, str | bytes]


class TrackedTable(Mapping[str, Any]):
    """Table from a file. It records which of its entries the reader has not used."""

    def __init__(self, table: Mapping[str, Any], where: str = "") -> None:
        self._table, self._where, self._read = table, where, set[str]()
        self._ignored: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self._read.add(key)
        return self._table[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def ignore(self, *keys: str) -> None:
        """Mark entries that are irrelevant to the model because the original code does not use them or another entry
        repeats them.
        """
        self._ignored += [k for k in keys if k in self._table and k not in self._read]
        self._read.update(keys)

    @property
    def unread(self) -> list[str]:
        """Return `where: key = value` for each meaningful entry that was not read."""
        return self._describe(k for k in self._table if k not in self._read)

    @property
    def ignored(self) -> list[str]:
        """Return `where: key = value` for each ignored entry."""
        return self._describe(self._ignored)

    def _describe(self, keys: Iterable[str]) -> list[str]:
        at = f"{self._where}: " if self._where else ""
        return [f"{at}{k} = {str(self._table[k])[:60]}" for k in keys if _is_meaningful(self._table[k])]


def _is_meaningful(value: Any) -> bool:
    """Return whether an entry contains information; zeros, `None` and empty values do not."""
    if isinstance(value, Mapping):
        return any(map(_is_meaningful, value.values()))
    return any(map(_is_meaningful, value)) if isinstance(value, list | tuple) else value not in EMPTY_VALUES


def format_numbers(*numbers: float) -> str:
    return " ".join(f"{float(n) + 0.0:.12g}" for n in numbers)


@dataclass
class ModelDraft:
    """Draft of a <model>, with its attributes and elements, gaps and notes."""

    name: str
    source: str
    settings: dict[str, str]
    angles: str | None
    attributes: dict[str, str] = field(default_factory=dict)
    elements: list[etree._Element] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)  #: content of the imported file that a model cannot represent
    notes: list[str] = field(default_factory=list)
    used_settings: set[str] = field(default_factory=set)
    #: content of the files that the model refers to, by name; they are to be written next to the models file
    files: dict[str, str | bytes] = field(default_factory=dict)

    def add(self, tag: str, content: str = "", **attributes: str) -> etree._Element:
        """Add an element to the model."""
        element = etree.Element(tag, attributes)
        element.text = content or None
        self.elements.append(element)
        return element

    def matrix(self, tag: str, m: Floats) -> None:
        """Add a 6x6 element, written as its diagonal if all other entries are zero."""
        if np.count_nonzero(m - np.diag(np.diag(m))) == 0:
            self.add(tag, diagonal=format_numbers(*np.diag(m)))
        else:
            self.add(tag, "\n" + "\n".join("      " + format_numbers(*row) for row in m) + "\n    ")

    def derivatives(self, found: Mapping[str, float], **system: str) -> None:
        """Add the named derivatives that are not zero."""
        nonzero = {name: value for name, value in found.items() if value}
        if nonzero:
            list_ = self.add("derivatives", **system)
            for name, value in nonzero.items():
                etree.SubElement(list_, "derivative", name=name, value=f"{value:.12g}")

    def record_unused(self, table: TrackedTable) -> None:
        """Record the table entries that the model cannot represent, and those that are irrelevant to the model."""
        self.unused += table.unread
        if table.ignored:
            self.notes.append(f"entries that have no meaning for the model: {', '.join(table.ignored)}")

    def require_numbers(self, key: str, count: int) -> list[float] | None:
        """Return the numbers that the user supplied for a value that the file lacks; record a gap if there are none."""
        given = self.require_text(key)
        if given is None:
            return None
        numbers = [float(n) for n in re.split(r"[\s,]+", given)]
        if count and len(numbers) != count:
            raise ConfigError(f"--set {key}: {SETTINGS[key]}; got {len(numbers)}")
        return numbers

    def require_text(self, key: str, why: str = "") -> str | None:
        """Return the text that the user supplied for a value that the file lacks; record a gap if there is none."""
        self.used_settings.add(key)
        if key not in self.settings:
            gap = f"--set {key}=...  ({SETTINGS[key]}{why})"
            if gap not in self.missing:
                self.missing.append(gap)
            return None
        return self.settings[key].strip()

    def angle(self, value: float, where: str) -> float:
        """Convert an angle from the file to rad, using the unit that the user states."""
        if self.angles is None:
            note = f"--angles deg or --angles rad  (the file states no unit for {where})"
            if note not in self.missing:
                self.missing.append(note)
            return 0.0
        return math.radians(value) if self.angles == "deg" else value

    def xml(self, path: Path, partial: bool) -> ImportedModel:
        """Return the models file. Raises ConfigError, listing them all, if there are gaps or if content would be lost."""
        useless = [k for k in self.settings if k not in self.used_settings]
        if useless:
            raise ConfigError(f"--set {useless[0]}: not needed; the file contains this value", str(path))
        if self.missing:
            gaps = "\n  ".join(self.missing)
            raise ConfigError(f"the file lacks values that a model needs; supply\n  {gaps}", str(path))
        if self.unused and not partial:
            lost = "\n  ".join(self.unused)
            raise ConfigError(
                f"a model cannot represent these entries in the file; use --partial to omit them\n  {lost}", str(path)
            )
        notes = [*self.notes, *(f"omitted: {item}" for item in self.unused)]
        root = etree.Element("models")
        model = etree.SubElement(root, "model", {"name": self.name, "source": self.source, **self.attributes})
        model.extend([etree.Comment(f" {note.replace('--', '- -')} ") for note in notes])
        model.extend(self.elements)
        etree.indent(root)
        xml = etree.tostring(root, pretty_print=True, xml_declaration=True, encoding="utf-8").decode()
        return ImportedModel(xml, notes, self.files)
