"""Entry points in wheels, through which callers call kernels without Numba: LLVM code and a description of the
arguments.

An entry point has the signature ``int32_t entry(const int64_t *arguments, int64_t *result)``. An array is passed as its
address, lengths and strides; a tuple, as its members; and a number, as one word. The function returns 0 or an error
code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.np.numpy_support import as_dtype

from wavesim_kernels import numba_internals

_LONG, _CODE = ir.IntType(64), ir.IntType(32)


class EntryPoint(NamedTuple):
    """Entry point of one kernel for one combination of argument types."""

    module: Any  # optimised LLVM module with the kernel, llvmlite.binding.ModuleRef
    code: str  # LLVM code of the entry point
    native: str  # symbol of the kernel in the module
    arguments: list[Any]  # description for wavesim_kernels.machine_code
    result: str  # kinds of the numbers that it returns


def _number_kind(kind: Any) -> str:
    known = {types.boolean: "b", types.int64: "i", types.uint64: "u", types.float64: "d"}
    if kind not in known:
        raise TypeError(f"a kernel that Python calls cannot have a parameter or result of the type {kind}")
    return known[kind]


def describe(kind: Any) -> Any:
    """Return the description of an argument type, in the form in which the table of a wheel stores it."""
    if isinstance(kind, types.BaseTuple):
        return [describe(member) for member in kind.types]
    if isinstance(kind, types.Array):
        dtype = np.lib.format.dtype_to_descr(as_dtype(kind.dtype))
        return {"dtype": dtype, "dimensions": kind.ndim, "layout": kind.layout}
    return _number_kind(kind)


class _Words:
    """Generator of code that reads values from consecutive words."""

    def __init__(self, context: Any, builder: Any, address: Any) -> None:
        self._context, self._builder, self._address, self._next = context, builder, address, 0

    def _word(self) -> Any:
        place = self._builder.gep(self._address, [_LONG(self._next)])
        self._next += 1
        return self._builder.load(place, typ=_LONG)

    def value(self, kind: Any) -> Any:
        context, builder = self._context, self._builder
        if isinstance(kind, types.BaseTuple):
            return numba_internals.tuple_of(context, builder, kind, [self.value(member) for member in kind.types])
        if isinstance(kind, types.Array):
            address, *lengths = [self._word() for _ in range(1 + 2 * kind.ndim)]
            shape, strides = lengths[: kind.ndim], lengths[kind.ndim :]
            return numba_internals.strided_view(context, builder, kind, address, shape, strides)
        if kind == types.boolean:
            return builder.icmp_unsigned("!=", self._word(), _LONG(0))
        return builder.bitcast(self._word(), numba_internals.llvm_type(context, kind))


def entry_point(kernel: Any, kinds: tuple[Any, ...], symbol: str) -> EntryPoint:
    """Return the entry point ``symbol`` of a kernel that was compiled for these argument types."""
    made = kernel.overloads[kinds]
    context, result = made.target_context, made.signature.return_type
    module = ir.Module(symbol)
    function = ir.Function(module, ir.FunctionType(_CODE, [_LONG.as_pointer()] * 2), symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    words = _Words(context, builder, function.args[0])
    values = [words.value(kind) for kind in kinds]
    status, value = numba_internals.call_kernel(context, builder, made, values)
    results = result.types if isinstance(result, types.BaseTuple) else [] if result == types.none else [result]
    letters = "".join(map(_number_kind, results))
    for k, letter in enumerate(letters):
        one = builder.extract_value(value, k) if isinstance(result, types.BaseTuple) else value
        one = builder.bitcast(one, _LONG) if letter == "d" else builder.zext(one, _LONG) if letter == "b" else one
        builder.store(one, builder.gep(function.args[1], [_LONG(k)]))
    builder.ret(builder.select(status.is_error, status.code, _CODE(0)))
    return EntryPoint(
        numba_internals.optimised_module(made),
        str(module),
        made.fndesc.llvm_func_name,
        [describe(kind) for kind in kinds],
        letters,
    )


def link(entry: EntryPoint, exported: set[str]) -> Any:
    """Return a module with the kernel and its entry point. Only the ``exported`` symbols are visible, and code that they
    do not use is removed.
    """
    whole = entry.module.clone()
    code = binding.parse_assembly(entry.code)
    code.triple, code.data_layout = whole.triple, whole.data_layout
    whole.link_in(code)
    for symbol in (*whole.functions, *whole.global_variables):
        if not symbol.is_declaration and symbol.name not in exported:
            symbol.linkage = "internal"
    for name in exported:
        whole.get_function(name).linkage = "external"
    return whole
