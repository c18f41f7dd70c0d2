"""Kernels that other kernels call by address.

A kernel called by name is compiled again as part of each caller. A kernel called by address is compiled only once. The
cost of the call is negligible for a large kernel, and the caller can be compiled first.

If compilation is disabled, the function itself takes the place of its address.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from numba import types
from numba.extending import intrinsic

from wavesim_kernels import numba_internals
from wavesim_kernels.compiler import JIT_DISABLED


def kernel_address(kernel: Any, *arguments: Any) -> Any:
    """Return the machine-code address of a kernel for arguments of these types, for :data:`call_kernel`.

    The kernel is compiled or loaded first if needed.

    Raises TypeError if the kernel does not return a 64-bit integer.
    """
    if JIT_DISABLED:
        return kernel
    result, address = numba_internals.machine_code_address(kernel, tuple(map(nb.typeof, arguments)))
    if result != types.int64:
        raise TypeError(f"{kernel.__name__} must return a 64-bit integer, but returns {result}")
    return address


def _make_call() -> Any:
    if JIT_DISABLED:
        return lambda address, table, tick, start, end: address(table, tick, start, end)

    @intrinsic
    def made(typing_context: Any, address: Any, table: Any, tick: Any, start: Any, end: Any) -> Any:
        kinds = (table, tick, start, end)

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return numba_internals.call_address(context, builder, types.int64, arguments[0], kinds, arguments[1:])

        return types.int64(address, *kinds), build

    return made


#: ``call_kernel(address, table, tick, start, end)`` calls a kernel with these arguments, which returns an integer
call_kernel: Any = _make_call()
