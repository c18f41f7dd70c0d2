"""Functions that are only ever compiled into others: parts of a kernel.

Numba makes a library of its own of every compiled function: optimised, made machine code and kept on disk, and then
linked into its callers, where all of that happens again.  For what nobody calls but kernels that was half of the whole
compilation (measured: 87 s of processor time for the kernels of sound).  A part is translated once and goes as it is into the
kernels that call it; only they are optimised and made machine code.  The code of a kernel stays the same.

A part that Python calls (a test does) is compiled by itself then.  With compilation off it is the function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba as nb
from numba.core import config, types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

Function = TypeVar("Function", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
_PART = {**_OPTIONS, "nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _Library(JITCodeLibrary):
    """Code that is linked into that of its callers, and never machine code by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return self  # whom Numba asks next to tell the machine code its environment

    def set_env(self, name: str, environment: Any) -> None:
        pass


class PartCompiler(Compiler):
    """Numba's own, with such a library."""

    def compile_extra(self, function: Any) -> Any:
        self.state.library = _Library(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


class _Cache(FunctionCache):
    """Numba's own asks whether the file of a function has changed; this one asks for whatever is compiled into it."""

    def __init__(self, function: Any, sources: bytes) -> None:
        super().__init__(function)
        self._sources = sources

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return (*super()._index_key(signature, codegen), self._sources)


def kernel(*folders: Path, **options: Any) -> Callable[[Function], Function]:
    """A decorator for kernels, which Python calls: kept on disk until a source in these folders changes, or one of the elementary
    functions. ``options``: of ``numba.njit``."""
    own = [Path(__file__).with_name(f"{name}.py") for name in ("compiled", "elementary", "parts")]
    sources = hashlib.sha256(
        b"".join(p.read_bytes() for p in (*own, *(p for f in folders for p in sorted(f.glob("*.py")))))
    )

    def decorated(function: Function) -> Function:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        made: Any = nb.njit(**_OPTIONS, **options)(function)
        made._cache = _Cache(function, sources.digest())
        return cast(Function, made)

    return decorated


class _Part(CPUDispatcher):
    _whole: Any = None

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        """Without a translation of its own for each number that is written down in a call."""
        plain = {name: types.unliteral(kind) for name, kind in named.items()}
        return super().get_call_template([types.unliteral(kind) for kind in arguments], plain)

    def __call__(self, *arguments: Any) -> Any:
        if self._whole is None:
            self._whole = kernel(Path(self.py_func.__code__.co_filename).parent)(self.py_func)
        return self._whole(*arguments)


def part(function: Function) -> Function:
    """A function as a part of the kernels that call it."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    return cast(Function, _Part(function, targetoptions=_PART, pipeline_class=PartCompiler))


#: the same for functions that Numba is told of by ``overload``, inlined wherever they are called: loops can then become vectors
INLINED: Any = {**_OPTIONS, "forceinline": True, "pipeline_class": PartCompiler}
