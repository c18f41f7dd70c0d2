"""Kernels that other kernels call by address.

A kernel called by name is compiled again as part of each caller. A kernel called by address is compiled only once. The
cost of the call is negligible for a large kernel, and the caller can be compiled first.

If compilation is disabled, the function itself takes the place of its address.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from numba.core import cgutils, types
from numba.extending import intrinsic

from wavesim_server.array_tables import JIT_DISABLED


def kernel_address(kernel: Any, *arguments: Any) -> Any:
    """Return the machine-code address of a kernel for arguments of these types, for :data:`call_kernel`.

    The kernel is compiled or loaded first if needed.

    Raises TypeError if the kernel does not return a 64-bit integer.
    """
    if JIT_DISABLED:
        return kernel
    kinds = tuple(map(nb.typeof, arguments))
    if kinds not in kernel.overloads:
        kernel.compile(kinds)
    made = kernel.overloads[kinds]
    if made.signature.return_type != types.int64:
        raise TypeError(f"{kernel.__name__} must return a 64-bit integer, but returns {made.signature.return_type}")
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def _make_call() -> Any:
    if JIT_DISABLED:
        return lambda address, table, tick, start, end: address(table, tick, start, end)

    @intrinsic
    def made(typing_context: Any, address: Any, table: Any, tick: Any, start: Any, end: Any) -> Any:
        kinds = (table, tick, start, end)

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(types.int64, kinds)
            function = builder.inttoptr(arguments[0], kind.as_pointer())
            status, result = convention.call_function(builder, function, types.int64, kinds, arguments[1:])
            with cgutils.if_unlikely(builder, status.is_error):  # type: ignore[no-untyped-call]
                convention.return_status_propagate(builder, status)
            return result

        return types.int64(address, *kinds), build

    return made


#: ``call_kernel(address, table, tick, start, end)`` calls a kernel with these arguments, which returns an integer
call_kernel: Any = _make_call()
