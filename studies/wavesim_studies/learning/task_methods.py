"""The methods and settings of a user's task, with one clear message for each mistake."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array, Floats
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.learning.custom import FIELDS, Task
from wavesim_studies.learning.task_arrays import size_of

LONGEST_STEP = 0.1  #: maximum of `<time step>` in s
METHODS = ("start", "command", "update", "observe", "reward", "terminated", "success", "info")
_INTEGERS = ("observations", "actions", "uniforms", "normals")


class TaskMethods:
    """The methods of a task. Calls and results are checked."""

    def __init__(self, task: Task) -> None:
        self.task, self.name = task, type(task).__name__
        self._check_settings()
        self._functions = {name: self._method(name) for name in METHODS}
        #: methods that the task defines
        self.own = {name for name in METHODS if self._overridden(name)}

    def _check_settings(self) -> None:
        t = self.task
        for name in _INTEGERS:
            value = getattr(t, name)
            if not isinstance(value, int) or value < (1 if name == "observations" else 0):
                least = "1 or more" if name == "observations" else "0 or more"
                raise ConfigError(f"{self.name}.{name}: expected an integer of {least}, got {value!r}")
        if not isinstance(t.substeps, int) or t.substeps < 1:
            raise ConfigError(f"{self.name}.substeps: expected an integer of 1 or more, got {t.substeps!r}")
        for name in ("dt", "limit", "bound"):
            value = getattr(t, name)
            if not isinstance(value, (int, float)) or not value > 0.0:
                raise ConfigError(f"{self.name}.{name}: expected a positive number, got {value!r}")
        if not t.dt / t.substeps <= LONGEST_STEP:
            raise ConfigError(
                f"{self.name}: dt / substeps is {t.dt / t.substeps:g} s, but a Runge-Kutta step may last at most "
                f"{LONGEST_STEP:g} s; use more substeps"
            )
        if not isinstance(t.variables, Mapping):
            raise ConfigError(f"{self.name}.variables: expected a dict of names and sizes, got {t.variables!r}")
        if not isinstance(t.units, Mapping) or not all(isinstance(unit, str) for unit in t.units.values()):
            raise ConfigError(f"{self.name}.units: expected a dict of names and units, got {t.units!r}")
        for name, size in t.variables.items():
            if not name.isidentifier() or name.startswith("_") or name in FIELDS:
                raise ConfigError(
                    f"{self.name}.variables: '{name}' is not a free name for a variable; the state already has "
                    + ", ".join(FIELDS)
                )
            if not all(isinstance(n, int) and n > 0 for n in size_of(size)):
                raise ConfigError(
                    f"{self.name}.variables: '{name}' needs a size of 1 or more, or a shape such as (3, 2), got {size!r}"
                )
        for name in ("observe", "reward"):
            if not self._overridden(name):
                raise ConfigError(f"{self.name} does not define {name}(self, s)")

    def _method(self, name: str) -> Any:
        """Return a method of the task. A function that Numba compiled is not bound to the task, with or without
        ``staticmethod``, because compiled code cannot use ``self``.
        """
        found = inspect.getattr_static(self.task, name)
        function = found.__func__ if isinstance(found, staticmethod) else found
        if not hasattr(function, "py_func"):
            return getattr(self.task, name)
        if len(inspect.signature(function.py_func).parameters) != 1:
            raise ConfigError(
                f"{self.name}.{name}: a compiled method has no self; write @staticmethod, @numba.njit, and def {name}(s)"
            )
        return function

    def _overridden(self, name: str) -> bool:
        return name in vars(self.task) or getattr(type(self.task), name) is not getattr(Task, name)

    def call(self, name: str, s: Any) -> Any:
        """Call a method of the task. Raise WaveSimError if it fails."""
        try:
            return self._functions[name](s)
        except Exception as error:
            raise WaveSimError(f"{self.name}.{name}(s) failed: {type(error).__name__}: {error}") from error

    def checked(self, name: str, value: Any, shape: tuple[int, ...], kind: str) -> Array:
        """Return the result of a method as an array. Raise WaveSimError if its shape or its type is wrong."""
        call = name if "(" in name else f"{name}(s)"
        found = np.asarray(value)
        if found.shape != shape:
            raise WaveSimError(f"{self.name}.{call} must return an array of shape {shape}, got {found.shape}")
        if found.dtype.kind not in ("b" if kind == "b" else "fiub"):
            wanted = "booleans" if kind == "b" else "numbers"
            raise WaveSimError(f"{self.name}.{call} must return {wanted}, got {found.dtype}")
        return found

    def store(self, name: str, value: Any, s: Any, staged: Floats) -> None:
        """Store the result of a method, which is an array (copies, size) or a sequence of columns."""
        n, size = s.copies, len(staged)
        columns = value if isinstance(value, (tuple, list)) else (value,)
        at = 0
        for column in columns:
            found = np.asarray(column)
            width = found.shape[1] if found.ndim == 2 else 1
            if (
                found.ndim > 2
                or (found.ndim and len(found) != n)
                or found.dtype.kind not in "fiub"
                or at + width > size
            ):
                break
            staged[at : at + width, :n] = found.T
            at += width
        else:
            if at == size:
                return
        shapes = ", ".join(str(np.shape(c)) for c in columns)
        raise WaveSimError(
            f"{self.name}.{name}(s) must return numbers of shape {(n, size)}, or columns that together have this shape; "
            f"got {shapes}"
        )
