"""What a compiled function is made of: the files of all functions that it reaches, and the constants that they name.

Numba keeps a compiled function until its own file changes; whatever is compiled into it may lie in others.  So the functions
that one reaches are looked for as the compiler will find them: by the names in their code.  A file counts as it was when its
functions were made, not as it is when somebody asks.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba.core import types

#: Numba's own versions decide what becomes of these
_OUTSIDE = frozenset({*sys.stdlib_module_names, "numba", "numpy", "llvmlite"})
_PLAIN = (int, float, complex, str, bytes, bool, np.generic, np.dtype, types.Type)
#: digests of files, taken when a function was made a part or a kernel
_noted: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()


@functools.lru_cache(maxsize=512)
def _digest(path: str, modified_ns: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def file_digest(path: str) -> str:
    """Of a file as it is now; of one that is not there, of its name."""
    try:
        found = Path(path).stat()
        return _digest(path, found.st_mtime_ns, found.st_size)
    except OSError:
        return path


def record_digest(function: Any) -> None:
    """Keep what the file of a function is like now."""
    _noted[function] = file_digest(function.__code__.co_filename)


def _names(code: CodeType) -> set[str]:
    """All that a function names, and those inside of it do."""
    found = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Name and value of what a function reaches: globals, variables of functions around it, members of modules."""
    names = _names(function.__code__)
    around = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    todo = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    todo += [(name, cell.cell_contents) for name, cell in around]
    while todo:
        name, value = todo.pop()
        if not isinstance(value, ModuleType):
            yield name, value
        elif value.__name__.partition(".")[0] not in _OUTSIDE:
            todo += [(f"{name}.{n}", getattr(value, n)) for n in names if hasattr(value, n)]


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions behind a value: of something compiled, of an intrinsic, of what decorators have wrapped."""
    for behind in (value, *(getattr(value, a, None) for a in ("py_func", "_defn", "__wrapped__"))):
        if isinstance(behind, FunctionType) and (behind.__module__ or "").partition(".")[0] not in _OUTSIDE:
            yield behind


def _text(value: Any) -> str:
    """A constant as text; nothing of what is none."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, type) and issubclass(value, tuple):
        return f"{value.__qualname__} {getattr(value, '_fields', '')}"
    return repr(value) if isinstance(value, _PLAIN) else ""


def reachable_sources(function: FunctionType) -> tuple[dict[str, str], set[str]]:
    """Digests of the files of all functions that are compiled into one, by their paths; and the constants, as texts."""
    files: dict[str, str] = {}
    constants: set[str] = set()
    seen, todo = {function}, [function]
    while todo:
        f = todo.pop()
        path = f.__code__.co_filename
        files[path] = _noted[f] if f in _noted else files.get(path) or file_digest(path)
        for name, value in _named(f):
            more = [g for g in _functions(value) if g not in seen]
            seen.update(more)
            todo += more
            constants.add(f"{name} {_text(value)}")
    return files, constants


def named_tuple_members(kinds: Any) -> str:
    """The members of all named tuples among types of arguments: a signature knows only their classes."""
    found = ""
    for kind in kinds:
        if isinstance(kind, types.BaseNamedTuple):
            found += f"{kind.instance_class.__qualname__} {kind.fields} {named_tuple_members(kind.types)} "
    return found
