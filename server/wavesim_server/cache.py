"""Where compiled kernels are kept.

Each kernel is compiled anew when something has changed of what it is made of (:mod:`wavesim_sdk.kernel_sources`).  Beyond that each
state of the sources has a folder of its own, named by them, in which a file says that all has been compiled; folders of
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
_MAX_FOLDERS = 4  #: folders that are kept
_IN_USE_S = 86_400.0  #: and those that were asked for since: another process may be writing there
#: where compiled functions are, and what they are made of
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
#: what of the SDK is compiled into them: functions, and constants
SDK_SOURCES = (
    "actuators.py",
    "compiled_elementary.py",
    "elementary.py",
    "ocean/surface.py",
    "kernel_compiler.py",
    "tables.py",
)


def choose_cache_folder() -> None:
    """Set Numba's cache folder, unless the user has (NUMBA_CACHE_DIR).

    By that variable, because importing Numba takes a third of a second, which only the engine needs to spend.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wavesim"
    chosen = os.environ.get(_VARIABLE)
    if chosen and Path(chosen).parent != base:  # one of ours may be that of the program which started this one
        return
    package = Path(__file__).parent
    state = hashlib.sha256(importlib.metadata.version("numba").encode())
    for part in KERNELS:
        for path in sorted((package / part).rglob("*.py")) if "." not in part else [package / part]:
            state.update(path.read_bytes())
    for module in SDK_SOURCES:
        state.update((Path(wavesim_sdk.__file__).parent / module).read_bytes())
    for entry in sorted(importlib.metadata.entry_points(group="wavesim.dynamics"), key=lambda e: e.name):
        state.update(f"{entry.name} {entry.value}".encode())  # what other packages add to the equation of motion
        with contextlib.suppress(ImportError, OSError):  # who loads it says what is wrong
            spec = importlib.util.find_spec(entry.module)
            if spec is not None and spec.origin is not None:
                state.update(Path(spec.origin).read_bytes())
    state.update(str(package).encode())  # Numba asks for the place of a file as well
    folder = base / state.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.touch()
        others = sorted((d for d in base.iterdir() if d.is_dir() and d != folder), key=lambda d: d.stat().st_mtime)
        for old in [d for d in others[: -(_MAX_FOLDERS - 1)] if d.stat().st_mtime < time.time() - _IN_USE_S]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return  # no home: Numba looks for a place itself
    os.environ[_VARIABLE] = str(folder)
    if "numba" in sys.modules:  # has read the variable already
        from numba.core import config

        setattr(config, "CACHE_DIR", str(folder))  # noqa: B010  # a name that Numba makes while it runs


def print_to_stderr(text: str) -> None:
    """What the commands let :func:`ensure_compiled` say."""
    sys.stderr.write(f"wavesim: {text}\n")


def ensure_compiled(report: Callable[[str], None] = print_to_stderr, threads: int = 1) -> None:
    """Compile the kernels, those of ticks by several threads too if so many are wanted, unless that has been done; ``say`` is told
    when it takes its time.

    By a program of its own (:mod:`wavesim_server.compiling`): whoever asks may have threads, and shall not keep the compiler.
    WaveSimError if it fails; it has said why.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return
    folder = Path(os.environ[_VARIABLE]) if _VARIABLE in os.environ else None
    done = folder and folder / ("complete" if threads == 1 else "complete-threads")
    if done is not None and done.exists():
        return
    if folder is not None and (folder / "complete").exists():
        report("compiling the kernels of ticks by several threads, once: about half a minute")
    else:
        report("compiling the kernels, once: about a minute")
    # a session of its own: Ctrl-C goes to us, who end it
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
