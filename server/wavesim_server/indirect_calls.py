"""Kernels that other kernels call by address.

A kernel that is called by name is compiled again as part of each caller. A kernel that is called by address is compiled
only once. The cost of the call is negligible for a large kernel, and the caller can be compiled before the kernel.

If compilation is disabled, the function itself is used instead of its address.
"""

from __future__ import annotations

from typing import Any

from wavesim_kernels.compiler import MODE, Mode
from wavesim_kernels.compiler import kernel_address as kernel_address


def _make_call() -> Any:
    if MODE is not Mode.COMPILE:
        return lambda address, table, tick, start, end: address(table, tick, start, end)
    from numba import types
    from numba.extending import intrinsic

    from wavesim_kernels import numba_internals

    @intrinsic
    def made(typing_context: Any, address: Any, table: Any, tick: Any, start: Any, end: Any) -> Any:
        kinds = (table, tick, start, end)

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return numba_internals.call_address(context, builder, types.int64, arguments[0], kinds, arguments[1:])

        return types.int64(address, *kinds), build

    return made


#: ``call_kernel(address, table, tick, start, end)`` calls the kernel at an address with these arguments; the kernel returns an integer
call_kernel: Any = _make_call()
