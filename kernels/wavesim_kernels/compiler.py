"""Kernels, which Python calls, and device functions, which are compiled only into kernels.

Numba builds a separate library for every compiled function: it optimises it, generates machine code and caches it. It
then links it into each caller and repeats all of this there. For functions called only by kernels, this accounted for most of
the compile time.  A device function is translated once and linked unoptimised into the kernels that call it; only
kernels are optimised and turned into machine code.  The resulting code of a kernel is the same.

A device function called from Python, as in tests, is compiled as a kernel at that time.  With compilation off it is the plain
function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba as nb
from numba.core import config
from numba.core import types as numba_types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.registry import CPUDispatcher, cpu_target

from wavesim_kernels import sources as kernel_sources

Function = TypeVar("Function", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
_PART = {**_OPTIONS, "nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: sources that every kernel depends on, in addition to those that it reaches by name
_ALWAYS = [
    str(Path(__file__).with_name(f"{name}.py")) for name in ("compiled_elementary", "compiler", "sources")
]


class _DeviceFunctionLibrary(JITCodeLibrary):
    """Code library of a device function. No machine code is generated from it.

    Each function is simplified separately, because Numba removes only those reference counts that it sees before inlining.
    """

    def finalize(self) -> None:
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"  # Numba's linkage for code that may be linked more than once
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the module with everything that it calls, for libraries that are not kernels."""
        self._ensure_finalized()
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for library in _whole(self._linking_libraries):
                self._shared_module.link_in(_module(library), preserve=True)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return self  # Numba calls set_env on it next

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _KernelLibrary(JITCodeLibrary):
    """Library of a kernel: each device function that it reaches is linked into it once."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.enable_object_caching()

    def finalize(self) -> None:
        libraries = _whole(self._linking_libraries)
        for library in libraries:
            if isinstance(library, _DeviceFunctionLibrary):
                self._final_module.link_in(_module(library), preserve=True)
        for function in self._final_module.functions:  # only this kernel calls this copy of a device function
            if not function.is_declaration and function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        self._linking_libraries = [library for library in libraries if not isinstance(library, _DeviceFunctionLibrary)]
        super().finalize()


def _whole(libraries: Iterable[Any]) -> list[Any]:
    """Return these libraries and those of all device functions that they call.

    Callers are first, because linking keeps only called code.
    """
    found = dict.fromkeys(libraries)
    todo = list(found)
    for library in todo:  # the list grows during the loop
        if isinstance(library, _DeviceFunctionLibrary):
            todo += [called for called in dict.fromkeys(library._linking_libraries) if called not in found]
            found.update(dict.fromkeys(library._linking_libraries))
    return list(found)


def _module(library: Any) -> Any:
    return library._final_module if isinstance(library, _DeviceFunctionLibrary) else library._get_module_for_linking()


class _SharedFlags(Flags):
    """Compiler flags of a device function or a kernel.

    When Numba compiles a function for a caller, it caches it under the caller's flags. With one common set of flags,
    each function is compiled once, and is not force-inlined merely because a caller is.
    """

    __slots__ = ()

    def copy(self) -> Flags:
        return _COMMON

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


_COMMON = _SharedFlags()
cpu_target.options.parse_as_flags(_COMMON, {**_OPTIONS, "nopython": True})
_signatures: dict[Any, Any] = {}


class _CachingTypingContext:
    """Numba's typing context with a cache of resolved operators.

    Numba tries every overload of an operator at every use, and most of them fail. This class reuses earlier results.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, named: Any) -> Any:
        if type(function) is not numba_types.Function or named:
            return self._context.resolve_function_type(function, arguments, named)
        key = function, tuple(arguments)
        found = _signatures.get(key)
        if found is None:
            found = self._context.resolve_function_type(function, arguments, named)
            if found is not None:
                _signatures[key] = found
        return found


#: compiler passes without effect on kernels, which lack the constructs these passes handle; annotations are not used either
_NEEDLESS = {
    "WithLifting",
    "GenericRewrites",
    "RewriteDynamicRaises",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "NoPythonSupportedFeatureValidation",
    "AnnotateTypes",
    "DumpParforDiagnostics",
}


class _Compiler(Compiler):
    """Numba's compiler with fewer passes."""

    def _compile(self, function: Any, library: type[JITCodeLibrary]) -> Any:
        self.state.library = library(self.state.targetctx.codegen(), function.__qualname__)
        self.state.flags = _SharedFlags(self.state.flags)
        self.state.typingctx = _CachingTypingContext(self.state.typingctx)
        return super().compile_extra(function)

    def define_pipelines(self) -> list[Any]:
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [p for p in pipeline.passes if p[0].__name__ not in _NEEDLESS]
        pipeline.finalize()
        return [pipeline]


class DeviceFunctionCompiler(_Compiler):
    """Compiler of device functions."""

    def compile_extra(self, function: Any) -> Any:
        return self._compile(function, _DeviceFunctionLibrary)


class _KernelCompiler(_Compiler):
    def compile_extra(self, function: Any) -> Any:
        return self._compile(function, _KernelLibrary)


class _Cache(FunctionCache):
    """Cache keyed by everything compiled into a function; Numba's own cache checks only the file of the function."""

    _reached: str | None = None

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        super().__init__(function)
        self._options = sorted(options.items())

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        if self._reached is None:
            files, constants = kernel_sources.reachable_sources(self._py_func)
            texts = [*map(kernel_sources.file_digest, _ALWAYS), *sorted(files.values()), *sorted(constants)]
            self._reached = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        own = super()._index_key(signature, codegen)
        return (*own, self._reached, kernel_sources.named_tuple_members(signature), str(self._options))


def kernel(function: Function | None = None, **options: Any) -> Any:
    """Decorate a kernel, which Python calls. It is cached on disk until any source compiled into it changes.

    Applied to a device function, it makes a separate kernel. ``options`` are those of ``numba.njit``.
    """
    if function is None:
        return lambda given: kernel(given, **options)
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    function = getattr(function, "py_func", function)
    kernel_sources.record_digest(function)
    made: Any = nb.njit(**_OPTIONS, no_cfunc_wrapper=True, pipeline_class=_KernelCompiler, **options)(function)
    made._cache = _Cache(function, options)
    return made


class _DeviceFunction(CPUDispatcher):
    _whole: Any = None

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        """Ignore the values of literals, so that a literal number in a call does not need its own translation."""
        plain = {name: numba_types.unliteral(kind) for name, kind in named.items()}
        return super().get_call_template([numba_types.unliteral(kind) for kind in arguments], plain)

    def __call__(self, *arguments: Any) -> Any:
        if self._whole is None:
            self._whole = kernel(self)
        return self._whole(*arguments)


def _make_device_function(function: Function, **options: Any) -> Function:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    kernel_sources.record_digest(function)
    return cast(
        Function, _DeviceFunction(function, targetoptions={**_PART, **options}, pipeline_class=DeviceFunctionCompiler)
    )


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
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        function.compile(tuple(map(nb.typeof, arguments)))


#: options of functions registered with ``overload``, inlined at each call so that loops can be vectorised
ALWAYS_INLINE_OPTIONS: Any = {**_OPTIONS, "forceinline": True, "pipeline_class": DeviceFunctionCompiler}
