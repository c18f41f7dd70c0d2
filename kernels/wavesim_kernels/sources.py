"""Sources of a compiled function: the files of all functions that it reaches, and the constants that these functions
name.

Numba caches a compiled function until the function's own file changes, although code from other files is compiled into
it. Like the compiler, this module finds the functions that are reached through the names in the code. The digest of a
file is computed from its content at the time when its functions were defined, not when this module is called.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import types

from wavesim_kernels.cache import file_digest

#: modules in which names are not followed, because the cache key already includes Numba's version
_OUTSIDE = frozenset({*sys.stdlib_module_names, "numba", "numpy", "llvmlite"})
_PLAIN = (int, float, complex, str, bytes, bool, np.generic, np.dtype, types.Type)
#: digest of each source file, recorded when a function in the file became a device function or a kernel
_noted: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()


def record_digest(function: Any) -> None:
    """Record the digest of the current content of the file that contains a function."""
    _noted[function] = file_digest(function.__code__.co_filename)


def _names(code: CodeType) -> set[str]:
    """Return all names used by a code object and by the code nested in it."""
    found = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each object that a function reaches: globals, variables of enclosing functions,
    and module members.
    """
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
    """Yield the Python functions behind a value, which may be a compiled function, an intrinsic or a decorated
    function.
    """
    for behind in (value, *(getattr(value, a, None) for a in ("py_func", "_defn", "__wrapped__"))):
        if isinstance(behind, FunctionType) and (behind.__module__ or "").partition(".")[0] not in _OUTSIDE:
            yield behind


def _text(value: Any) -> str:
    """Return the text of a value that is a constant, or an empty string for any other value."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, type) and issubclass(value, tuple):
        return f"{value.__qualname__} {getattr(value, '_fields', '')}"
    return repr(value) if isinstance(value, _PLAIN) else ""


def reachable_sources(function: FunctionType) -> tuple[dict[str, str], set[str]]:
    """Return the digests, by path, of the source files of all functions compiled into this one, and the constants as
    strings.
    """
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


def named_tuple_members(kinds: Iterable[Any]) -> str:
    """Return the members of all named tuples among the argument types, because a signature contains only their classes."""
    found = ""
    for kind in kinds:
        if issubclass(type(kind), types.BaseNamedTuple):
            found += f"{kind.instance_class.__qualname__} {kind.fields} {named_tuple_members(kind.types)} "
    return found
