"""Kernels, which Python calls, and parts of kernels, which are only ever compiled into them.

Numba makes a library of its own of every compiled function: optimised, made machine code and kept on disk, and then
linked into its callers, where all of that happens again, up to the entry.  For what nobody calls but kernels that was most of
the whole compilation.  A part is translated once and goes as it is into the kernels that call it; only they are optimised and
made machine code.  The code of a kernel stays the same.

A part that Python calls (a test does) is compiled by itself then.  With compilation off it is the function.
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

from wavesim_sdk import kernel_sources

Function = TypeVar("Function", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
_PART = {**_OPTIONS, "nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: what every kernel is made with, besides what it reaches by name
_ALWAYS = [
    str(Path(__file__).with_name(f"{name}.py")) for name in ("compiled_elementary", "kernel_compiler", "kernel_sources")
]


class _DeviceFunctionLibrary(JITCodeLibrary):
    """Code of a part: never machine code by itself. (Its function is tidied up by itself, for what Numba sees of counted references
    before it inlines it leaves out.)"""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"  # as Numba has what may be linked more than once
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """With all that it calls, for libraries that are no kernels."""
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
        return self  # whom Numba asks next to tell the machine code its environment

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _KernelLibrary(JITCodeLibrary):
    """Code of a kernel: each part that it reaches is linked into it once."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.enable_object_caching()

    def finalize(self) -> None:
        libraries = _whole(self._linking_libraries)
        for library in libraries:
            if isinstance(library, _DeviceFunctionLibrary):
                self._final_module.link_in(_module(library), preserve=True)
        for function in self._final_module.functions:  # nobody else calls this copy of a part
            if not function.is_declaration and function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        self._linking_libraries = [library for library in libraries if not isinstance(library, _DeviceFunctionLibrary)]
        super().finalize()


def _whole(libraries: Iterable[Any]) -> list[Any]:
    """Libraries, and those that parts among them call; callers first, because only what is called is linked."""
    found = dict.fromkeys(libraries)
    todo = list(found)
    for library in todo:  # it grows on the way
        if isinstance(library, _DeviceFunctionLibrary):
            todo += [called for called in dict.fromkeys(library._linking_libraries) if called not in found]
            found.update(dict.fromkeys(library._linking_libraries))
    return list(found)


def _module(library: Any) -> Any:
    return library._final_module if isinstance(library, _DeviceFunctionLibrary) else library._get_module_for_linking()


class _SharedFlags(Flags):
    """Options of a part or a kernel.  What Numba compiles on their way is kept by the options of who asked: here all ask with the
    same, so that it is compiled once, and is not inlined by force because somebody up the stack is."""

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
    """Numba's typing context; it tries each way in which an operator could be meant at each place where the operator stands, most of
    them in vain, and this looks up what was found before."""

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


#: passes that do nothing with kernels: they have no such things as these are for, and nobody looks at the annotations
_NEEDLESS = {
    "WithLifting", "GenericRewrites", "RewriteDynamicRaises", "InlineInlinables", "FindLiterallyCalls", "LiteralUnroll",
    "LiteralPropagationSubPipelinePass", "InlineOverloads", "NopythonRewrites", "NoPythonSupportedFeatureValidation",
    "AnnotateTypes", "DumpParforDiagnostics",
}  # fmt: skip


class _Compiler(Compiler):
    """Numba's own, with less to do."""

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
    """With the library of a part."""

    def compile_extra(self, function: Any) -> Any:
        return self._compile(function, _DeviceFunctionLibrary)


class _KernelCompiler(_Compiler):
    def compile_extra(self, function: Any) -> Any:
        return self._compile(function, _KernelLibrary)


class _Cache(FunctionCache):
    """Numba's own asks whether the file of a function has changed; this one asks for whatever is compiled into it."""

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
    """A decorator for kernels, which Python calls: kept on disk until a source of what is compiled into them changes. Of a part
    it makes a kernel beside it. ``options``: of ``numba.njit``."""
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
        """Without a translation of its own for each number that is written down in a call."""
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
    """A function as a part of the kernels that call it."""
    return _make_device_function(function)


def always_inline(function: Function) -> Function:
    """The same, with its code in the place of each call."""
    return _make_device_function(function, forceinline=True)


def compile_for_types(function: Any, *arguments: Any) -> None:
    """Compile a kernel, or load it, for arguments like these; or translate a part and all that it calls: a kernel that calls it is
    compiled the sooner."""
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        function.compile(tuple(map(nb.typeof, arguments)))


#: the same for functions that Numba is told of by ``overload``, inlined wherever they are called: loops can then become vectors
ALWAYS_INLINE_OPTIONS: Any = {**_OPTIONS, "forceinline": True, "pipeline_class": DeviceFunctionCompiler}
