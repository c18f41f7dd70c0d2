"""Compilation of kernels, which Python calls, and of device functions, which are only compiled into kernels.

Numba builds a separate library for every compiled function: it optimises the function, generates machine code and
caches the result. It then links the function into each caller and repeats all of these steps there. For functions that
only kernels call, this accounted for most of the compile time. A device function is translated once and linked, without
optimisation, into the kernels that call it; only kernels are optimised and turned into machine code. The resulting
kernel code is the same.

A device function that is called from Python, for example in a test, is compiled as a kernel at that time. With
compilation off, it is the plain function. The module :mod:`wavesim_kernels.numba_internals` makes Numba treat device
functions in this way.

Wheels contain the machine code of all kernels (:mod:`wavesim_kernels.machine_code`). When that code is used, Numba is
not imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from wavesim_kernels import machine_code
from wavesim_kernels.machine_code import MODE as MODE
from wavesim_kernels.machine_code import Mode as Mode

if MODE is Mode.COMPILE:
    import numba as nb

    from wavesim_kernels import numba_internals
    from wavesim_kernels import sources as kernel_sources

Function = TypeVar("Function", bound=Callable[..., Any])
#: whether kernels are plain functions (NUMBA_DISABLE_JIT)
JIT_DISABLED = MODE is Mode.PYTHON


def kernel(function: Function | None = None, **options: Any) -> Any:
    """Decorate a kernel, which is called from Python. It is cached on disk until any source that is compiled into it
    changes.

    When applied to a device function, this decorator makes a separate kernel. ``options`` are passed to ``numba.njit``.
    """
    if function is None:
        return lambda given: kernel(given, **options)
    if MODE is Mode.PYTHON:
        return function
    if MODE is Mode.MACHINE_CODE:
        return machine_code.kernel(function)
    function = getattr(function, "py_func", function)
    kernel_sources.record_digest(function)
    return numba_internals.make_kernel(function, options)


def _make_device_function(function: Function, **options: Any) -> Any:
    if MODE is Mode.PYTHON:
        return function
    if MODE is Mode.MACHINE_CODE:
        return machine_code.device_function(function)
    kernel_sources.record_digest(function)
    return numba_internals.make_device_function(function, options)


def device_function(function: Function) -> Function:
    """Decorate a device function, which is compiled into the kernels that call it."""
    made: Function = _make_device_function(function)
    return made


def always_inline(function: Function) -> Function:
    """Decorate a device function that is inlined wherever it is called."""
    made: Function = _make_device_function(function, forceinline=True)
    return made


def compile_for_types(function: Any, *arguments: Any) -> None:
    """Compile or load a kernel for arguments of these types.

    A device function is translated together with everything that it calls. Kernels that call this function then compile
    faster.
    """
    if MODE is Mode.COMPILE:
        function.compile(tuple(map(nb.typeof, arguments)))


def kernel_address(kernel: Any, *arguments: Any) -> Any:
    """Return the machine-code address of a kernel for arguments of these types. Other kernels call the kernel by this
    address.

    The kernel is compiled or loaded first if necessary. With compilation off, the kernel itself is returned instead of
    its address. Raises TypeError if the kernel does not return a 64-bit integer.
    """
    if MODE is Mode.PYTHON:
        return kernel
    if MODE is Mode.MACHINE_CODE:
        return machine_code.address(kernel)
    result, address = numba_internals.machine_code_address(kernel, tuple(map(nb.typeof, arguments)))
    if result != nb.types.int64:
        raise TypeError(f"{kernel.__name__} must return a 64-bit integer, but returns {result}")
    return address
