"""Machine code of kernels in wheels, for several processor levels. This module does not import Numba, and it imports
NumPy only when a kernel is loaded.

``make wheels`` compiles the kernels of each package into shared libraries, one for each processor level, and writes a
table of their entry points. The extension module ``_caller`` passes the arguments of a Python call to an entry point.
Only wheels contain the libraries, the table and ``_caller``; therefore, a checkout compiles its kernels. The code for
all levels computes bit-identical results.

An installation from wheels also compiles kernels if the tested version of Numba is installed, because only then can
functions from other packages be compiled into the kernels. The WAVESIM_KERNELS variable chooses between ``compile`` and
``machine-code``.
"""

from __future__ import annotations

import enum
import functools
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import WaveSimError

_CALLER = "wavesim_kernels._caller"


class Mode(enum.Enum):
    """How kernels run: compiled from their sources, as machine code from the wheels, or as plain Python functions."""

    COMPILE, MACHINE_CODE, PYTHON = range(3)


def _choose_mode() -> Mode:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return Mode.PYTHON
    chosen = os.environ.get("WAVESIM_KERNELS", "")
    if chosen not in ("", "compile", "machine-code"):
        raise WaveSimError(f"invalid WAVESIM_KERNELS '{chosen}': use 'compile' or 'machine-code'")
    is_shipped = importlib.util.find_spec(_CALLER) is not None
    if chosen == "machine-code" and not is_shipped:
        raise WaveSimError(
            "WAVESIM_KERNELS is 'machine-code', but this installation contains no machine code; install the "
            "WaVeSim wheels"
        )
    if chosen == "compile" or not is_shipped:
        return Mode.COMPILE
    return Mode.MACHINE_CODE if chosen or not _has_compiler() else Mode.COMPILE


def _has_compiler() -> bool:
    from importlib import metadata

    from wavesim_kernels.numba_version import TESTED_VERSIONS

    try:
        return all(metadata.version(package) == tested for package, tested in TESTED_VERSIONS.items())
    except metadata.PackageNotFoundError:
        return False


MODE = _choose_mode()

#: processor features that each level has in addition to those of the level below, with the names that Linux uses
_X86_64 = {
    "x86-64": set[str](),
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm", "sse4_2", "popcnt", "cx16"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
LEVELS: dict[str, dict[str, set[str]]] = {"x86_64": _X86_64, "aarch64": {"aarch64": set()}}


@functools.cache
def level() -> str:
    """Return the highest level that this processor supports, or WAVESIM_CPU_LEVEL if it is set."""
    levels = LEVELS.get(platform.machine(), {})
    chosen = os.environ.get("WAVESIM_CPU_LEVEL")
    if chosen is not None:
        if chosen not in levels:
            raise WaveSimError(f"invalid WAVESIM_CPU_LEVEL '{chosen}': use one of {', '.join(levels)}")
        return chosen
    found = ""
    features = _features() if len(levels) > 1 else set()
    for name, needed in levels.items():
        if not needed <= features:
            break
        found = name
    return found


def _features() -> set[str]:
    with Path("/proc/cpuinfo").open() as file:
        for line in file:
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    return set()


def description() -> str:
    """Return a description of how kernels run in this process, for the log of a run."""
    return f"machine code for {level()}" if MODE is Mode.MACHINE_CODE else MODE.name.lower()


class _Library:
    """Machine code of all kernels of a package."""

    def __init__(self, package: str) -> None:
        folder = _folder(package)
        path = folder / f"{level()}.so"
        if not path.exists():
            raise WaveSimError(
                f"'{package}' has no machine code for this processor; run pip install 'wavesim[extend]' to compile its kernels"
            )
        import ctypes

        self.table = json.loads((folder / "kernels.json").read_text())
        self._code = ctypes.CDLL(str(path))

    def address(self, symbol: str) -> int:
        import ctypes

        found = ctypes.cast(getattr(self._code, symbol), ctypes.c_void_p).value
        assert found is not None
        return found


def _folder(package: str) -> Path:
    return Path(str(getattr(sys.modules[package], "__file__", None))).parent / "machine_code"


@functools.cache
def _library(package: str) -> _Library:
    return _Library(package)


def check_sources(package: str) -> None:
    """Raise WaveSimError if a file that is compiled into the kernels of a package has been changed since the package
    was installed.
    """
    from wavesim_kernels.cache import file_digest

    site = _folder(package).parents[1]
    for path, digest in _library(package).table["sources"].items():
        if file_digest(str(site / path)) != digest:
            raise WaveSimError(
                f"{path} differs from the machine code of '{package}': reinstall the wheels, or run pip install 'wavesim[extend]' to compile the kernels"
            )


def _dtype(text: Any) -> Any:
    import numpy as np

    return np.lib.format.descr_to_dtype(_tuples(text))


def _tuples(value: Any) -> Any:
    """Restore the tuples in the description of a dtype, because JSON stores tuples as lists."""
    if not isinstance(value, list):
        return value
    if value and isinstance(value[0], list):
        return [tuple(_shape(member) for member in field) for field in value]
    return value


def _shape(member: Any) -> Any:
    is_shape = isinstance(member, list) and all(isinstance(number, int) for number in member)
    return tuple(member) if is_shape else _tuples(member)


def _steps(kinds: list[Any]) -> list[tuple[Any, ...]]:
    """Return a description of how the caller reads arguments: (kind, number of members or dimensions, dtype, layout)."""
    found: list[tuple[Any, ...]] = []
    for kind in kinds:
        if isinstance(kind, str):
            found.append((kind, 0, None, "A"))
        elif isinstance(kind, list):
            found += [("t", len(kind), None, "A"), *_steps(kind)]
        else:
            found.append(("a", kind["dimensions"], _dtype(kind["dtype"]), kind["layout"]))
    return found


def _name(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"


#: address and result type of each kernel that other kernels call by address; the keys are the names of the kernels
_addresses: dict[Any, int] = {}


def _bind(function: Any) -> Callable[..., Any] | None:
    """Return a function that calls the machine code of a kernel, or None if the package has no machine code for it."""
    library = _library(function.__module__.partition(".")[0])
    made = library.table["kernels"].get(_name(function))
    if made is None:
        return None
    overloads = [
        (library.address(o["symbol"]), len(o["arguments"]), _steps(o["arguments"]), o["result"], o["nogil"])
        for o in made
    ]
    bound: Callable[..., Any] = importlib.import_module(_CALLER).bind(_name(function), overloads)
    if "native" in made[0]:
        _addresses[bound] = library.address(made[0]["native"])
    return bound


def kernel(function: Any) -> Callable[..., Any]:
    """Return a function that calls the machine code of a kernel.

    Raises WaveSimError if there is no machine code for the kernel because it belongs to another package.
    """
    function = getattr(function, "py_func", function)
    try:
        found = _bind(function)
    except WaveSimError as error:
        raise WaveSimError(f"kernel '{_name(function)}': {error}") from None
    return found or _Uncallable(function, f"the machine code of '{_name(function)}' is missing")


def device_function(function: Any) -> Any:
    """Return a function that is compiled into kernels. Python can call it if the wheel has machine code for such calls."""
    found = _bind(function) if _folder(function.__module__.partition(".")[0]).is_dir() else None
    return found or _Uncallable(function, f"'{_name(function)}' has machine code only inside kernels")


class _Uncallable:
    """Function that has no machine code; a call raises an error that states how to compile it."""

    def __init__(self, function: Any, reason: str) -> None:
        self.py_func, self._reason = function, reason
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        raise WaveSimError(f"{self._reason}; run pip install 'wavesim[extend]' to compile it")


def address(kernel: Any) -> int:
    """Return the address by which other kernels call a kernel. Raises TypeError if the wheel does not contain the
    address.
    """
    try:
        return _addresses[kernel]
    except KeyError:
        raise TypeError(f"the machine code of {kernel.__name__} has no address for other kernels") from None
