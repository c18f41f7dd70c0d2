"""Named coefficients of a model file: paths, values in SI units, and models with other values.

A path begins inside `<model>`. It has the form of the paths in campaigns, with three additions:

- `linear-drag/N_r` is an element of a matrix: the row of the force or moment N and the column of the velocity r.
- `derivatives/N_r` is the derivative with this name.
- `thruster[port]/coefficients[1]` is a number of a key with several numbers, counted from 0.

`fin[*]/lift_slope` is the same value in all elements.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import units
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_studies.campaign import config_paths
from wavesim_world.config import Model, xml
from wavesim_world.config.build import build
from wavesim_world.config.schema import Key, child_elements, keys
from wavesim_world.config.validation import check_model
from wavesim_world.config.vehicle import Derivatives, Matrix6

FORCES, VELOCITIES = "XYZKMN", "uvwpqr"
_ELEMENT = re.compile(rf"([{FORCES}])_([{VELOCITIES}])")
_INDEXED = re.compile(r"([\w-]+)\[(\d+)\]")


@dataclass(frozen=True)
class CoefficientPlace:
    """Place of one number in the XML element of a model: an attribute, or the text of the element if it is empty."""

    element: Any
    attribute: str
    index: int
    quantity: str
    count: int
    default: Any

    def _numbers(self) -> list[float]:
        text = self.element.get(self.attribute) if self.attribute else self.element.text
        if text is None:
            given = self.default if isinstance(self.default, tuple) else (self.default,)
            return [float(x) for x in given]
        return list(units.parse(text, self.quantity, self.count))

    def read(self) -> float:
        """Return the value in SI units."""
        return self._numbers()[self.index]

    def write(self, value: float) -> None:
        """Replace the stored value with ``value``, which is in SI units."""
        numbers = self._numbers()
        numbers[self.index] = value
        unit = next((name for name, factor in units.QUANTITIES.get(self.quantity, {}).items() if factor == 1.0), "")
        if self.attribute:
            text = " ".join(repr(float(x)) for x in numbers)
            self.element.set(self.attribute, f"{text} {unit}".strip())
        else:
            rows = [" ".join(f"{x!r}" for x in numbers[k : k + 6]) for k in range(0, len(numbers), 6)]
            self.element.text = "\n      " + "\n      ".join(rows) + "\n    "


class ModelCoefficients:
    """The XML element of a model, whose coefficients can be read and changed by path."""

    def __init__(self, model: Model) -> None:
        file = model.place.rpartition(":")[0]
        self.name, self.path = model.name, Path(file)
        try:
            root = xml.parse(self.path.read_bytes(), file)
        except OSError as error:
            raise ConfigError(f"cannot read the file: {error.strerror}", file) from None
        self.element = copy.deepcopy(next(e for e in root.iter("model") if e.get("name") == model.name))

    def value(self, path: str) -> float:
        """Return the value of a coefficient in SI units. Raise ConfigError if the path is invalid."""
        return _places(copy.deepcopy(self.element), path)[0].read()

    def element_with(self, values: Mapping[str, float]) -> Any:
        """Return a copy of the XML element in which the coefficients at these paths have other values."""
        element = copy.deepcopy(self.element)
        for path, value in values.items():
            for place in _places(element, path):
                place.write(value)
        return element

    def model_with(self, values: Mapping[str, float]) -> Model:
        """Return the model with other values of the coefficients at these paths. Raise ConfigError if it is
        invalid.
        """
        made = build(self.element_with(values), Model, str(self.path))
        check_model(made)
        return made


def _places(root: Any, path: str) -> list[CoefficientPlace]:
    """Return the places of a coefficient. There are several if the path contains `[*]`."""
    *steps, last = path.strip("/").split("/")
    found: list[tuple[Any, type]] = [(root, Model)]
    for number, step in enumerate(steps):
        found = [pair for element, of in found for pair in _children(element, of, step, "/".join(steps[: number + 1]))]
    return [_place(element, of, last, path) for element, of in found]


def _children(element: Any, of: type, step: str, path: str) -> list[tuple[Any, type]]:
    if not step.endswith("[*]"):
        child, of_child = config_paths.child_element(element, of, step, path)
        return [(child, of_child)]
    name = step.removesuffix("[*]")
    declared = {c.name: c.of for _, c in child_elements(of)}
    if name not in declared:
        raise ConfigError(f"'{path}': <{element.tag}> has no element <{name}>{suggest_name(name, declared)}")
    found = [(e, declared[name]) for e in element if e.tag == name]
    if not found:
        raise ConfigError(f"'{path}' matches nothing: <{element.tag}> has no <{name}>")
    return found


def _place(element: Any, of: type, last: str, path: str) -> CoefficientPlace:
    if issubclass(of, Matrix6) and (match := _ELEMENT.fullmatch(last)):
        return _matrix_place(element, FORCES.index(match[1]), VELOCITIES.index(match[2]))
    if of is Derivatives:
        names = {e.get("name"): e for e in element if e.tag == "derivative"}
        if last in names:
            return CoefficientPlace(names[last], "value", 0, "", 1, None)
        raise ConfigError(f"'{path}': the model has no derivative '{last}'{suggest_name(last, [*names])}")
    match = _INDEXED.fullmatch(last)
    name, index = (match[1], int(match[2])) if match else (last, 0)
    declared = {k.name: k for _, k in keys(of) if k.kind == "number"}
    if name not in declared:
        offered = [*declared, *(f"{f}_{v}" for f, v in zip(FORCES, VELOCITIES, strict=True) if issubclass(of, Matrix6))]
        raise ConfigError(f"'{path}': <{element.tag}> has no coefficient '{last}'{suggest_name(last, offered)}")
    return _attribute_place(element, declared[name], index, match is not None, path)


def _attribute_place(element: Any, declared: Key, index: int, indexed: bool, path: str) -> CoefficientPlace:
    if declared.count != 1 and not indexed:
        raise ConfigError(f"'{path}' has {declared.count} numbers; write {path}[0] to {path}[{declared.count - 1}]")
    if index >= declared.count:
        raise ConfigError(f"'{path}': the key '{declared.name}' has {declared.count} number(s), counted from 0")
    return CoefficientPlace(element, declared.name, index, declared.quantity, declared.count, declared.default)


def _matrix_place(element: Any, row: int, column: int) -> CoefficientPlace:
    """Return the place of an element of a matrix. If the file has only the diagonal, and the element is not on it, write
    all 36 numbers first.
    """
    diagonal = element.get("diagonal")
    if diagonal is not None and row == column:
        return CoefficientPlace(element, "diagonal", row, "", 6, None)
    if diagonal is not None:
        full = np.diag(units.parse(diagonal, "", 6))
        del element.attrib["diagonal"]
        element.text = " ".join(repr(float(x)) for x in full.ravel())
    return CoefficientPlace(element, "", 6 * row + column, "", 36, None)
