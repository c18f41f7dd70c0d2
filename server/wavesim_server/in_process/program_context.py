"""Process-wide state of which each program has its own copy: output, arguments, modules, and random numbers."""

from __future__ import annotations

import builtins
import ctypes
import importlib.util
import os
import sys
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import numpy as np
from numpy.random import get_bit_generator  # type: ignore[attr-defined]  # missing in NumPy's types

#: modules with a global state that programs use as if it were their own; each program gets its own copy of these
#: modules
PRIVATE_LIBRARIES = ("random",)


def _copy_of_library(name: str) -> ModuleType:
    """Load a library module a second time and return the new instance.

    When such a module is loaded, it registers a function that Python calls in forked processes. This function cannot be
    unregistered. Therefore, the copy registers nothing; a weak set holds its generator instead.
    """
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    real = os.register_at_fork

    def register_for_lifetime(*, after_in_child: Any) -> None:
        _generators.add(after_in_child.__self__)

    os.register_at_fork = register_for_lifetime  # type: ignore[assignment]
    try:
        spec.loader.exec_module(module)
    finally:
        os.register_at_fork = real
    return module


_generators: weakref.WeakSet[Any] = weakref.WeakSet()  #: global random generators of the copied modules


def _seed_after_fork() -> None:
    for generator in tuple(_generators):
        generator.seed()


os.register_at_fork(after_in_child=_seed_after_fork)


class SharedRandomState:
    """State of NumPy's global generator. A program may seed and use the generator as if no other program used it.

    Copying this state takes as long as a whole step; therefore, it is copied only for programs that have used the
    generator.
    """

    def __init__(self) -> None:
        address = get_bit_generator().ctypes.state_address
        # the 624 words of the Mersenne Twister, and its position
        self._words = (ctypes.c_uint32 * 625).from_address(address)
        self.initial: Any = np.random.get_state()

    def mark(self) -> tuple[int, int]:
        """Return numbers that change when the generator is used or seeded."""
        return self._words[0], self._words[624]


class ProgramContext:
    """The process-wide state of one program. It is active only while the program is running.

    Only one program runs at a time. Each program has its own instances of the modules in its folder. Therefore, two
    programs that run the same file, or import modules of the same name, do not share these modules.
    """

    def __init__(
        self, file: Path, arguments: list[str], output: TextIO | None, numpy_random: SharedRandomState
    ) -> None:
        self.folder = file.parent.resolve()
        self._prefix = f"{self.folder}{os.sep}"
        self.output = output  #: text file for the output of the program; None means the terminal
        self.main = ModuleType("__main__")
        self.main.__file__ = str(file)
        self.main.__builtins__ = builtins  # type: ignore[attr-defined]
        self._arguments = [str(file), *arguments]
        self._modules: dict[str, ModuleType] = {n: _copy_of_library(n) for n in PRIVATE_LIBRARIES}
        self._modules["__main__"] = self.main
        self._path = [str(self.folder), *sys.path]
        self._numpy_random = numpy_random
        self._random: Any = None  # state of NumPy's global generator, if the program has used it
        self._mark = (0, 0)
        self._replaced: dict[str, ModuleType | None] = {}
        self._outer: tuple[list[str], list[str], TextIO, TextIO] | None = None
        self._module_count = 0

    def enter(self) -> None:
        """Activate the state of this program."""
        self._outer = sys.argv, sys.path, sys.stdout, sys.stderr
        sys.argv, sys.path = self._arguments, self._path
        if self.output is not None:
            sys.stdout = sys.stderr = self.output
        self._replaced = {name: sys.modules.get(name) for name in self._modules}
        sys.modules.update(self._modules)
        self._module_count = len(sys.modules)
        if self._random is not None:
            np.random.set_state(self._random)
        self._mark = self._numpy_random.mark()

    def leave(self) -> None:
        """Restore the state of the process."""
        assert self._outer is not None
        self._arguments, self._path = sys.argv, sys.path
        sys.argv, sys.path, sys.stdout, sys.stderr = self._outer
        if len(sys.modules) != self._module_count:
            self._take_new_modules()
        for name, former in self._replaced.items():
            if former is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = former
        if self._random is not None or self._numpy_random.mark() != self._mark:
            self._random = np.random.get_state()
            np.random.set_state(self._numpy_random.initial)

    def _take_new_modules(self) -> None:
        """Store those modules from the program's folder that the program has imported."""
        for name, module in list(sys.modules.items()):
            if name not in self._modules and self._is_own(module):
                self._modules[name], self._replaced[name] = module, None

    def _is_own(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        return isinstance(file, str) and file.startswith(self._prefix) and "site-packages" not in file
