"""Where compiled kernels are kept.

Each kernel is compiled anew when something has changed of what it is made of (:mod:`wavesim_sdk.kernel_sources`).  Beyond that each
state of the sources has a folder of its own, named by them, in which a file says that all has been compiled; folders of
earlier states are removed.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import wavesim_sdk

if TYPE_CHECKING:
    from wavesim_server.simulation import Simulation

_VARIABLE = "NUMBA_CACHE_DIR"
_KEPT = 4  #: folders that are kept
_IN_USE_S = 86_400.0  #: and those that were asked for since: another process may be writing there
#: where compiled functions are, and what they are made of
KERNELS = (
    "acoustics",
    "dynamics",
    "environment",
    "draws.py",
    "pointers.py",
    "seabed.py",
    "start.py",
    "threads.py",
    "tick.py",
)
#: what of the SDK is compiled into them: functions, and constants
COMPILED_IN = ("actuators.py", "compiled.py", "elementary.py", "ocean/surface.py", "parts.py", "tables.py")


def choose() -> None:
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
    for module in COMPILED_IN:
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
        for old in [d for d in others[: -(_KEPT - 1)] if d.stat().st_mtime < time.time() - _IN_USE_S]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return  # no home: Numba looks for a place itself
    os.environ[_VARIABLE] = str(folder)
    if "numba" in sys.modules:  # has read the variable already
        from numba.core import config

        setattr(config, "CACHE_DIR", str(folder))  # noqa: B010  # a name that Numba makes while it runs


def warm(say: Callable[[str], None]) -> None:
    """Compile the kernels, unless that has been done; ``say`` is told when it takes its time.

    Sound is compiled while motion is translated, side by side.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return
    done = Path(os.environ[_VARIABLE]) / "complete" if _VARIABLE in os.environ else None
    if done is not None and done.exists():
        return
    say("compiling the kernels, once: about a minute")
    with nothing_collected():
        if done is not None and len(os.sched_getaffinity(0)) > 1:
            code = "from wavesim_server import cache; cache.compile_sound()"
            with subprocess.Popen([sys.executable, "-c", code]) as sound:
                try:
                    small_world().compile_motion()
                except BaseException:
                    sound.terminate()
                    raise
        exercise()
    if done is not None:
        done.touch()


def compile_sound() -> None:
    """One half of :func:`warm`, in a process of its own."""
    with contextlib.suppress(KeyboardInterrupt), nothing_collected():
        small_world().compile_sound()


@contextlib.contextmanager
def nothing_collected() -> Iterator[None]:
    """No collection of garbage meanwhile: a compiler makes millions of objects, of which most stay until it has done."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def small_world() -> Simulation:
    """A world with nothing in it."""
    from wavesim_sdk.config import load_text
    from wavesim_server.simulation import Simulation

    world = "<wavesim><world><bed depth='30 m'/></world><shared vehicles='4' signals='16'/></wavesim>"
    return Simulation(load_text(world))


def exercise(threads: int = 1) -> None:
    """Ask a small world for all that compiled functions do, so that each is there, compiled or loaded, before time runs:
    whoever asks for one in mid-run would have everybody wait for its compilation."""
    world = small_world()
    world.threads.count, world.threads.least = threads, 0
    # so near the bed, and each other, that they are looked at closely
    first = world.enter("first", "lauv", (0.0, 0.0, 29.5))
    world.enter("second", "buoy", (0.0, 1.0, 29.5))
    world.ping(first, 25e3)
    world.set_weather(current_north=0.1)
    world.advance(2)
    world.take_signals()
    world.state()
    world.effort()
    world.surroundings()
    world.current()
    world.live_signals(world.new_signals_table())
