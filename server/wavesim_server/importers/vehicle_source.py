"""Vehicle from source code: its constants, and its equation of motion as a function that can be evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.marine_functions import PYTHON_FUNCTIONS
from wavesim_server.importers.source_code import SourceError, SourceReader, UnknownValue

STEP = 1e-3  #: time step in s with which Python vehicles are evaluated; the acceleration does not depend on it


class MotionEvaluation(NamedTuple):
    """Acceleration (6,) in a state, the variables of the equation of motion, and the arguments of its drag functions."""

    acceleration: Floats
    values: dict[str, Any]
    calls: dict[str, tuple[Any, ...]]


class VehicleSource:
    """Class of Fossen's Python Vehicle Simulator, with the methods `__init__` and `dynamics`."""

    language = "Python Vehicle Simulator"
    functions: Mapping[str, Callable[..., Any]] = PYTHON_FUNCTIONS

    def __init__(self, path: Path, text: str, given: Mapping[str, float]) -> None:
        self.path, self.given, self.used_given = path, given, set[str]()
        kind = next(
            (
                c
                for c in ast.parse(text).body
                if isinstance(c, ast.ClassDef) and _methods(c) >= {"__init__", "dynamics"}
            ),
            None,
        )
        if kind is None:
            raise ConfigError("the file has no class with the methods `__init__` and `dynamics`", str(path))
        self.name = kind.name
        self._functions = {f.name: f for f in kind.body if isinstance(f, ast.FunctionDef)}
        reader = SourceReader(self.functions, given)
        start = self._functions["__init__"]
        for argument, default in zip(start.args.args[-len(start.args.defaults) :], start.args.defaults, strict=False):
            reader.values[argument.arg] = ast.literal_eval(default)
        self._run(reader, start.body)
        self.constants, self.lines = reader.values, reader.lines
        self.controls = len(np.atleast_1d(self.values_of("self.u_actual", "u_actual")))

    def _run(self, reader: SourceReader, statements: list[ast.stmt]) -> None:
        try:
            reader.run(statements)
        except SourceError as error:
            raise ConfigError(f"cannot evaluate the source code: {error}", str(self.path)) from None
        self.used_given |= reader.used_given

    def values_of(self, *names: str) -> Any:
        """Return the first of several variables that the file has. Raises ConfigError for an unknown value."""
        found = self.find(*names)
        if found is None:
            raise ConfigError(f"the source code has no variable `{names[0]}`", str(self.path))
        return found

    def find(self, *names: str) -> Any:
        """Return the first of several variables that the file has, or None."""
        for name in names:
            value = self.constants.get(name)
            if isinstance(value, UnknownValue):
                raise ConfigError(
                    f"cannot evaluate `{name}`: {value}; supply its value with --set value.{name}=...", str(self.path)
                )
            if value is not None:
                return value
        return None

    def evaluate(self, position: Floats, velocity: Floats, controls: Floats) -> MotionEvaluation:
        """Evaluate the equation of motion in still water.

        The position contains north, east, down and roll, pitch, yaw; the velocity contains u, v, w, p, q, r; the
        controls are the actual values in the units of the file.
        """
        calls: dict[str, tuple[Any, ...]] = {}
        reader = SourceReader(recorded(self.functions, calls), self.given)
        reader.values |= {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in self.constants.items()}
        reader.values |= {
            "eta": position.copy(),
            "nu": velocity.copy(),
            "u_actual": controls.copy(),
            "u_control": controls.copy(),
            "sampleTime": STEP,
        }
        self._run(reader, self._functions["dynamics"].body)
        after = reader.result[0] if isinstance(reader.result, list) else reader.result
        if after is None or isinstance(after, UnknownValue):
            raise ConfigError(unknown_motion(after, reader.values), str(self.path))
        return MotionEvaluation((after - velocity) / STEP, reader.values, calls)


def unknown_motion(cause: Any, values: Mapping[str, Any]) -> str:
    """Return the message for an equation of motion that needs an unknown value."""
    names = [name for name, value in values.items() if isinstance(value, UnknownValue) and value == cause]
    way_out = f"; if `{names[0]}` is a number, supply it with --set value.{names[0]}=..." if names else ""
    return f"cannot evaluate the equation of motion: {cause}{way_out}"


def _methods(kind: ast.ClassDef) -> set[str]:
    return {f.name for f in kind.body if isinstance(f, ast.FunctionDef)}


def recorded(
    functions: Mapping[str, Callable[..., Any]], calls: dict[str, tuple[Any, ...]]
) -> dict[str, Callable[..., Any]]:
    """Return functions that also record the arguments of their last call."""

    def record(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            calls[name] = arguments
            return function(*arguments)

        return called

    return {name: record(name, function) for name, function in functions.items()}
