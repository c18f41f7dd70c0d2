"""Kernels, which Python calls, and device functions, which are compiled only into kernels.

Numba builds a separate library for every compiled function: it optimises it, generates machine code and caches it. It
then links it into each caller and repeats all of this there. For functions called only by kernels, this accounted for most of
the compile time.  A device function is translated once and linked unoptimised into the kernels that call it; only
kernels are optimised and turned into machine code.  The resulting code of a kernel is the same.

A device function called from Python, as in tests, is compiled as a kernel at that time.  With compilation off it is the plain
function.  How Numba is made to do this is in :mod:`wavesim_kernels.numba_internals`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba as nb

from wavesim_kernels import numba_internals
from wavesim_kernels import sources as kernel_sources

Function = TypeVar("Function", bound=Callable[..., Any])
#: whether compilation is off (NUMBA_DISABLE_JIT)
JIT_DISABLED: bool = nb.config.DISABLE_JIT  # type: ignore[attr-defined]  # Numba creates it at run time


def kernel(function: Function | None = None, **options: Any) -> Any:
    """Decorate a kernel, which Python calls. It is cached on disk until any source compiled into it changes.

    Applied to a device function, it makes a separate kernel. ``options`` are those of ``numba.njit``.
    """
    if function is None:
        return lambda given: kernel(given, **options)
    if JIT_DISABLED:
        return function
    function = getattr(function, "py_func", function)
    kernel_sources.record_digest(function)
    return numba_internals.make_kernel(function, options)


def _make_device_function(function: Function, **options: Any) -> Function:
    if JIT_DISABLED:
        return function
    kernel_sources.record_digest(function)
    return cast(Function, numba_internals.make_device_function(function, options))


def device_function(function: Function) -> Function:
    """Decorate a device function, which is compiled into the kernels that call it."""
    return _make_device_function(function)


def always_inline(function: Function) -> Function:
    """Decorate a device function that is inlined at each call."""
    return _make_device_function(function, forceinline=True)


def compile_for_types(function: Any, *arguments: Any) -> None:
    """Compile or load a kernel for arguments of these types.

    For a device function, translate it and everything it calls, so that kernels that call it compile sooner.
    """
    if not JIT_DISABLED:
        function.compile(tuple(map(nb.typeof, arguments)))


#: options of functions registered with ``overload``, inlined at each call so that loops can be vectorised
ALWAYS_INLINE_OPTIONS: Any = {
    **numba_internals.OPTIONS,
    "forceinline": True,
    "pipeline_class": numba_internals.DeviceFunctionCompiler,
}
