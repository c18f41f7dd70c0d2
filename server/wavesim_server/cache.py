"""The cache of compiled kernels.

A kernel is recompiled when one of its sources has changed (:mod:`wavesim_sdk.kernel_sources`). In addition, each state
of the sources has its own folder, named after their hash. A file in it states that all kernels are compiled. Folders of
earlier states are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import wavesim_sdk
from wavesim_sdk.errors import WaveSimError

_VARIABLE = "NUMBA_CACHE_DIR"
_MAX_FOLDERS = 4  #: maximum number of folders that are kept regardless of their age
_IN_USE_S = 86_400.0  #: folders used within this time are also kept: another process may be writing there
#: modules with compiled functions, and the modules that these include
KERNELS = (
    "acoustics",
    "indirect_calls.py",
    "dynamics",
    "environment",
    "rng.py",
    "array_tables.py",
    "seabed.py",
    "start_clearance.py",
    "threads.py",
    "tick.py",
)
#: modules of the SDK whose functions and constants are compiled into kernels
SDK_SOURCES = (
    "actuators.py",
    "compiled_elementary.py",
    "elementary.py",
    "ocean/surface.py",
    "kernel_compiler.py",
    "randomness.py",
    "tables.py",
)


def choose_cache_folder() -> None:
    """Set Numba's cache folder, unless the user has set it (NUMBA_CACHE_DIR).

    The folder is set through the environment, because importing Numba takes a third of a second, and only the engine
    needs it.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wavesim"
    chosen = os.environ.get(_VARIABLE)
    # a folder below our base is inherited from a parent process of this program
    if chosen and Path(chosen).parent != base:
        return
    package = Path(__file__).parent
    state = hashlib.sha256(importlib.metadata.version("numba").encode())
    for part in KERNELS:
        for path in sorted((package / part).rglob("*.py")) if "." not in part else [package / part]:
            state.update(path.read_bytes())
    for module in SDK_SOURCES:
        state.update((Path(wavesim_sdk.__file__).parent / module).read_bytes())
    for entry in sorted(importlib.metadata.entry_points(group="wavesim.dynamics"), key=lambda e: e.name):
        state.update(f"{entry.name} {entry.value}".encode())  # dynamics terms from other packages
        with contextlib.suppress(ImportError, OSError):  # the loader of the entry point reports the error
            spec = importlib.util.find_spec(entry.module)
            if spec is not None and spec.origin is not None:
                state.update(Path(spec.origin).read_bytes())
    state.update(str(package).encode())  # Numba's cache also depends on a file's path
    folder = base / state.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.touch()
        others = sorted((d for d in base.iterdir() if d.is_dir() and d != folder), key=lambda d: d.stat().st_mtime)
        for old in [d for d in others[: -(_MAX_FOLDERS - 1)] if d.stat().st_mtime < time.time() - _IN_USE_S]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return  # no writable home: Numba selects a folder itself
    os.environ[_VARIABLE] = str(folder)
    if "numba" in sys.modules:  # it has already read the variable
        from numba.core import config

        setattr(config, "CACHE_DIR", str(folder))  # noqa: B010  # Numba creates this attribute at run time


def print_to_stderr(text: str) -> None:
    """Print a message of :func:`ensure_compiled` to standard error."""
    sys.stderr.write(f"wavesim: {text}\n")


def ensure_compiled(report: Callable[[str], None] = print_to_stderr, threads: int = 1) -> None:
    """Compile the kernels unless that has been done, including those of multi-threaded ticks if ``threads`` > 1.

    ``report`` receives a message when compilation starts. The compiler runs in a separate program
    (:mod:`wavesim_server.compiling`), because the caller may have threads and must not keep the compiler in memory.
    Raises WaveSimError if that program fails; the program has then already reported the reason.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return
    folder = Path(os.environ[_VARIABLE]) if _VARIABLE in os.environ else None
    done = folder and folder / ("complete" if threads == 1 else "complete-threads")
    if done is not None and done.exists():
        return
    if folder is not None and (folder / "complete").exists():
        report("compiling the kernels for multi-threaded ticks (once, about half a minute)")
    else:
        report("compiling the kernels (once, about a minute)")
    # in a session of its own: Ctrl-C reaches only this process, which stops the compiler
    command = [sys.executable, "-m", "wavesim_server.compiling", str(threads)]
    with subprocess.Popen(command, start_new_session=True) as program:
        try:
            code = program.wait()
        except BaseException:
            program.terminate()
            raise
    if code:
        raise WaveSimError("the kernels could not be compiled (see above)")
    if folder is not None and done is not None:
        (folder / "complete").touch()
        done.touch()
