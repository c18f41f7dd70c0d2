# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False, disable-error-code="call-overload"
"""All code that relies on private parts of Numba. No other module uses such parts.

:data:`PRIVATE_PARTS` lists the parts of Numba that this module uses. They may change in any release of Numba;
therefore, importing this module with an untested version of Numba raises
:class:`wavesim_kernels.numba_version.UnsupportedNumba`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba as nb
from llvmlite import ir
from numba import types

from wavesim_kernels import cache as kernel_cache
from wavesim_kernels import numba_version
from wavesim_kernels import sources as kernel_sources

numba_version.check_numba_version()  # before the imports that fail with another version

# isort: split
from numba.core.caching import (  # noqa: E402
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserProvidedCacheLocator,
)
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler, Flags  # noqa: E402
from numba.core.registry import CPUDispatcher, cpu_target  # noqa: E402
from numba.core.typing.templates import AttributeTemplate as AttributeTemplate  # noqa: E402
from numba.np import arrayobj  # noqa: E402

#: private parts of Numba, each with the purpose for which this module uses it
PRIVATE_PARTS = {
    # device functions are linked into kernels before any machine code is generated
    "numba.core.codegen.JITCodeLibrary.finalize": "overridden to link device functions into a kernel, or to generate no machine code for a device function",
    "numba.core.codegen.JITCodeLibrary._raise_if_finalized": "called by this module's version of finalize",
    "numba.core.codegen.JITCodeLibrary._ensure_finalized": "called before a module is linked",
    "numba.core.codegen.JITCodeLibrary._finalize_dynamic_globals": "called by this module's version of finalize",
    "numba.core.codegen.JITCodeLibrary._get_module_for_linking": "overridden to return the module together with every function that it calls",
    "numba.core.codegen.JITCodeLibrary.get_pointer_to_function": "overridden because a device function has no address",
    "numba.core.codegen.JITCodeLibrary.enable_object_caching": "called so that the object code of a kernel is stored",
    "numba.core.compiler.Compiler.compile_extra": "overridden to choose the library, the flags and the typing context",
    # one translation of each device function, for all callers and all literal arguments
    "numba.core.compiler.Compiler.define_pipelines": "overridden to omit the passes that kernels do not need; the passes are identified by name",
    "numba.core.compiler.Flags.copy": "overridden so that all functions share one set of flags",
    "numba.core.registry.cpu_target.options.parse_as_flags": "called to create the shared flags",
    "numba.core.registry.CPUDispatcher.get_call_template": "overridden to ignore the values of literals",
    # less work in type inference
    "numba.core.typing.context.Context.resolve_function_type": "overridden to reuse the signatures of operators",
    # cache by the digest of everything compiled into a kernel
    "numba.core.caching.FunctionCache.load_overload": "overridden to name the files by the digest of the sources",
    "numba.core.caching.FunctionCache.save_overload": "overridden to remove the cache files of earlier versions of the source",
    "numba.core.caching.FunctionCache._index_key": "extended to add the members of named tuples and the options to the key",
    "numba.core.caching.CompileResultCacheImpl.check_cachable": "base class of the rules that determine what can be cached, and how",
    "numba.core.caching.IndexDataCacheFile": "determines the names of a kernel's cache files, and reads these files",
    "numba.core.caching.UserProvidedCacheLocator.ensure_cache_path": "creates the cache folder when a kernel is stored",
    "numba.core.dispatcher.Dispatcher.enable_caching": "not called; the attribute _cache is set to our cache instead",
    # arrays and kernels by address
    "numba.core.typing.templates.AttributeTemplate": "declares the types of the members of a tuple of arrays",
    "numba.core.base.BaseContext.make_array": "gives access to the address and the strides of an array",
    "numba.core.base.BaseContext.get_abi_sizeof": "returns the size of an array element",
    "numba.core.base.BaseContext.get_data_type": "returns the LLVM type of an array element",
    "numba.np.arrayobj.populate_array": "creates a view of an array without a reference count",
    "numba.core.base.BaseContext.get_value_type": "returns the LLVM type of a number",
    "numba.core.base.BaseContext.cast": "converts a number to float64",
    "numba.core.base.BaseContext.make_tuple": "creates a tuple of views",
    "numba.core.callconv.CPUCallConv.call_function": "calls a kernel by its address",
    "numba.core.callconv.CPUCallConv.return_status_propagate": "propagates exceptions from a kernel that is called by address",
    # machine code in wheels
    "numba.core.codegen.JITCodeLibrary._finalize_final_module": "extended to keep a copy of each module, from which code for other processors is compiled",
    "numba.np.numpy_support.as_dtype": "returns the dtype of the elements of an array",
    "numba.core.callconv.CPUCallConv.get_function_type": "returns the LLVM type of a kernel",
}

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
_DEVICE_FUNCTION_OPTIONS = {**OPTIONS, "nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _DeviceFunctionLibrary(JITCodeLibrary):
    """Code library of a device function. No machine code is generated from it.

    Each function is simplified separately, because Numba removes only those reference counts that are visible before
    inlining.
    """

    def finalize(self) -> None:
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"  # Numba's linkage for code that may be linked more than once
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the module together with everything that it calls, for a library that is not a kernel."""
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
    """Library of a kernel. Each device function that the kernel calls directly or indirectly is linked into it once."""

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
    """Return these libraries together with the libraries of all device functions that they call.

    Callers come first, because linking keeps only code that is called.
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

    When Numba compiles a function for a caller, it caches the function under the caller's flags. With one common set of
    flags, each function is compiled once, and it is not force-inlined merely because a caller is.
    """

    __slots__ = ()

    def copy(self) -> Flags:
        return _COMMON

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


_COMMON = _SharedFlags()
cpu_target.options.parse_as_flags(_COMMON, {**OPTIONS, "nopython": True})
_signatures: dict[Any, Any] = {}


class _CachingTypingContext:
    """Numba's typing context, extended by a cache of resolved operators.

    Numba tries every overload of an operator at every use, and most of these attempts fail. This class reuses earlier
    results.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, named: Any) -> Any:
        if type(function) is not types.Function or named:
            return self._context.resolve_function_type(function, arguments, named)
        key = function, tuple(arguments)
        found = _signatures.get(key)
        if found is None:
            found = self._context.resolve_function_type(function, arguments, named)
            if found is not None:
                _signatures[key] = found
        return found


#: compiler passes that have no effect on kernels, because kernels do not contain the constructs that these passes
#: handle
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
    """Numba compiler with fewer passes."""

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
    """Numba compiler for device functions."""

    def compile_extra(self, function: Any) -> Any:
        return self._compile(function, _DeviceFunctionLibrary)


class _KernelCompiler(_Compiler):
    def compile_extra(self, function: Any) -> Any:
        return self._compile(function, _KernelLibrary)


class _Locator(UserProvidedCacheLocator):
    """Cache folder of a kernel. It is created when the kernel is stored."""

    def __init__(self, function: Any) -> None:
        self._py_file, self._lineno = function.__code__.co_filename, function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(kernel_cache.folder_for(Path(self._py_file).absolute().parent))


class _Implementation(CompileResultCacheImpl):
    def __init__(self, function: Any) -> None:
        self._lineno, self._locator = function.__code__.co_firstlineno, _Locator(function)


#: the files whose functions are compiled into the kernels that this process has loaded or stored
used_sources: set[str] = set()
#: sources on which every kernel depends, in addition to those that it reaches by name
_ALWAYS = [
    str(Path(__file__).with_name(f"{name}.py"))
    for name in ("compiled_elementary", "elementary_intrinsics", "compiler", "sources", "numba_internals")
]
#: time in s for which files compiled from earlier sources are kept after their last use, because another process may be
#: using them
_KEPT_S = 86_400.0


class _Cache(FunctionCache):
    """Cache of a kernel, in files named by the digest of everything that is compiled into it.

    Numba's own cache checks only the file that contains the function, and it selects its folder when the function is
    defined.
    """

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._py_func, self._options = function, sorted(options.items())
        self._name, self._impl = repr(function), _Implementation(function)
        self.enable()

    @functools.cached_property
    def _cache_path(self) -> str:
        return str(self._impl.locator.get_cache_path())

    @functools.cached_property
    def _cache_file(self) -> Any:  # type: ignore[override]  # an attribute of the base class
        """Index of the stored signatures. It is computed when the kernel is first used, because only then do all
        functions exist.
        """
        files, constants = kernel_sources.reachable_sources(self._py_func)
        always = {path: kernel_cache.file_digest(path) for path in _ALWAYS}
        used_sources.update(files, always)
        digest = hashlib.sha256("\n".join([*always.values(), *sorted(files.values()), *sorted(constants)]).encode())
        name = f"{self._family}-{digest.hexdigest()[:16]}.{sys.implementation.cache_tag}"
        return IndexDataCacheFile(self._cache_path, name, digest.hexdigest())

    @property
    def _family(self) -> str:
        """Prefix of the cache file names for all versions of this function."""
        name = f"{Path(self._py_func.__code__.co_filename).stem}.{self._py_func.__qualname__}"
        return name.replace("<", "").replace(">", "")

    def load_overload(self, signature: Any, context: Any) -> Any:
        with contextlib.suppress(OSError):  # an unreadable folder
            found = super().load_overload(signature, context)
            if found is not None:
                with contextlib.suppress(OSError):
                    os.utime(self._cache_file._index_path)  # states that these files are in use
            return found
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        with contextlib.suppress(OSError):  # a folder that cannot be written: the kernel is compiled in each process
            super().save_overload(signature, data)
            self._remove_earlier()

    def _remove_earlier(self) -> None:
        """Remove the cached files of this function that were compiled from earlier sources and not used recently."""
        folder, kept = Path(self._cache_path), Path(self._cache_file._index_path)
        for index in folder.glob(f"{self._family}-????????????????.{sys.implementation.cache_tag}.nbi"):
            if index != kept and index.stat().st_mtime < time.time() - _KEPT_S:
                for path in folder.glob(f"{index.stem}.*"):
                    path.unlink(missing_ok=True)

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        own = super()._index_key(signature, codegen)
        return (*own, kernel_sources.named_tuple_members(signature), str(self._options))


#: all kernels of this process
kernels: list[Any] = []
kernels_with_address: list[Any] = []  #: kernels that other kernels call by address


def make_kernel(function: Any, options: dict[str, Any]) -> Any:
    """Return a function that is compiled as a kernel and stored on disk."""
    made: Any = nb.njit(**OPTIONS, no_cfunc_wrapper=True, pipeline_class=_KernelCompiler, **options)(function)
    made._cache = _Cache(function, options)
    kernels.append(made)
    return made


class _DeviceFunction(CPUDispatcher):
    _whole: Any = None

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        """Ignore the values of literals, so that a call with a literal number does not need a separate specialisation."""
        plain = {name: types.unliteral(kind) for name, kind in named.items()}
        return super().get_call_template([types.unliteral(kind) for kind in arguments], plain)

    def __call__(self, *arguments: Any) -> Any:
        if self._whole is None:
            kernel_sources.record_digest(self.py_func)
            self._whole = make_kernel(self.py_func, {})
        return self._whole(*arguments)


def make_device_function(function: Any, options: dict[str, Any]) -> Any:
    """Return a function that is compiled into the kernels that call it."""
    return _DeviceFunction(
        function, targetoptions={**_DEVICE_FUNCTION_OPTIONS, **options}, pipeline_class=DeviceFunctionCompiler
    )


#: the value ``None`` in LLVM code
NONE = ir.Constant(ir.IntType(8).as_pointer(), None)


def llvm_type(context: Any, kind: Any) -> Any:
    """Return the LLVM type of a value of a Numba type."""
    return context.get_value_type(kind)


def array_struct(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Return the LLVM structure of an array, with the members ``data``, ``shape`` and ``strides``."""
    return context.make_array(kind)(context, builder, array)


def as_float(context: Any, builder: Any, kind: Any, number: Any) -> Any:
    """Return a number of a Numba type as float64 in LLVM code."""
    return context.cast(builder, number, kind, types.float64)


def array_view(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """Return a view of a contiguous array, given its address and lengths (64-bit integers). The view does not count
    references.
    """
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [shape[0].type(size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    return strided_view(context, builder, kind, address, shape, strides)


def strided_view(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any], strides: list[Any]) -> Any:
    """Return a view of an array, given its address, lengths and strides (64-bit integers). The view does not count
    references.
    """
    array = context.make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    data = builder.inttoptr(address, array.data.type)
    arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


def tuple_of(context: Any, builder: Any, kind: Any, members: list[Any]) -> Any:
    """Return a tuple of values in LLVM code."""
    return context.make_tuple(builder, kind, members)


def machine_code_address(kernel: Any, kinds: tuple[Any, ...]) -> tuple[Any, int]:
    """Return the type that a kernel returns for these argument types, and the address of its machine code."""
    if kinds not in kernel.overloads:
        kernel.compile(kinds)
    made = kernel.overloads[kinds]
    kernels_with_address.append(kernel)
    return made.signature.return_type, made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def call_address(context: Any, builder: Any, result: Any, address: Any, kinds: Any, arguments: Any) -> Any:
    """Return the result of a kernel called by its address; an exception in the kernel propagates to the caller."""
    convention = context.call_conv
    function = builder.inttoptr(address, convention.get_function_type(result, kinds).as_pointer())
    status, value = convention.call_function(builder, function, result, kinds, arguments)
    with builder.if_then(status.is_error, likely=False):
        convention.return_status_propagate(builder, status)
    return value


def call_kernel(context: Any, builder: Any, made: Any, arguments: list[Any]) -> tuple[Any, Any]:
    """Call a compiled kernel of another module by the symbol of the kernel; return the status and the result."""
    convention, signature = context.call_conv, made.signature
    kind = convention.get_function_type(signature.return_type, signature.args)
    function = ir.Function(builder.module, kind, made.fndesc.llvm_func_name)
    status, value = convention.call_function(builder, function, signature.return_type, signature.args, arguments)
    return status, value


def keep_portable_modules() -> None:
    """Make libraries keep an unchanged copy of their optimised modules, because code generation adapts the modules to
    the processor of this machine.

    Call this function before any function is compiled.
    """
    finalize = JITCodeLibrary._finalize_final_module

    def finalize_copy(library: Any) -> None:
        shared = library._final_module.clone()
        for function in shared.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"
        finalize(library)
        if library._shared_module is None:  # not one that was loaded, with its module
            library._shared_module = shared

    JITCodeLibrary._finalize_final_module = finalize_copy  # type: ignore[method-assign]


def optimised_module(made: Any) -> Any:
    """Return the optimised LLVM module of a compiled kernel."""
    return made.library._get_module_for_linking()
