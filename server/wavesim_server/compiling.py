"""Compilation of all kernels of a server before they are needed (:func:`ensure_compiled`).

The compiler is a program, ``python -m wavesim_server.compiling THREADS [hydrophones]``, which compiles in parallel. One process
compiles the sound kernels while the main process compiles the motion kernels. The main process then forks a copy, which
already has the motion kernels. The copy compiles the kernels of single bodies while the main process compiles the tick.
A final pass compiles each kernel that one of the processes failed to compile, or reports the error.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from wavesim_kernels import machine_code
from wavesim_kernels.cache import CompletionRecord, cache_folder
from wavesim_kernels.numba_version import check_numba_version
from wavesim_sdk import forked_process
from wavesim_sdk.errors import WaveSimError
from wavesim_server import compile_progress

if TYPE_CHECKING:
    from wavesim_server.simulation import Simulation


def completion_record(threads: int) -> CompletionRecord:
    """Return the record of the compiled kernels. It includes the kernels of multi-threaded ticks if ``threads`` > 1."""
    name = "complete" if threads == 1 else "complete-threads"
    return CompletionRecord(name, Path(__file__).parent, "wavesim.dynamics")


def hydrophone_record() -> CompletionRecord:
    """Return the record of the compiled kernels that only worlds with hydrophones need."""
    return CompletionRecord("complete-hydrophones", Path(__file__).parent, "wavesim.dynamics")


def print_to_stderr(text: str) -> None:
    """Print a message from :func:`ensure_compiled` to standard error."""
    sys.stderr.write(f"wavesim: {text}\n")


def ensure_compiled(
    report: Callable[[str], None] = print_to_stderr, threads: int = 1, hydrophones: bool = False
) -> None:
    """Compile the kernels if necessary, including the kernels of multi-threaded ticks if ``threads`` > 1, and those of
    hydrophones if ``hydrophones`` is set. Wheels already contain compiled kernels.

    ``report`` receives a message when compilation starts. The compiler runs in a separate program, because the caller
    may have threads and must not keep the compiler in memory.
    Raises WaveSimError if that program fails; in that case, the program has already reported the reason. Also raises
    WaveSimError if a source of the kernels in a wheel has been changed.
    """
    if machine_code.MODE is machine_code.Mode.MACHINE_CODE:
        machine_code.check_sources("wavesim_server")
    if machine_code.MODE is not machine_code.Mode.COMPILE:
        return
    check_numba_version()
    needed = [completion_record(threads), *([hydrophone_record()] if hydrophones else [])]
    record = next((r for r in needed if not r.is_current()), None)
    if record is None:
        return
    if not _make_folder(record.path.parent):
        report(f"cannot store kernels in {cache_folder()}, so each process compiles its own; set NUMBA_CACHE_DIR")
        return
    if record.has_current_functions():
        report("checking the compiled kernels, because other sources have changed")
    elif record is not needed[0]:
        report("compiling the kernels for hydrophones (once, about half a minute)")
    elif threads > 1 and completion_record(1).is_current():
        report("compiling the kernels for multi-threaded ticks (once, about half a minute)")
    else:
        report("compiling the kernels (once, about a minute)")
    # in a session of its own: Ctrl-C reaches only this process, which stops the compiler
    command = [
        sys.executable,
        "-m",
        "wavesim_server.compiling",
        str(threads),
        *(["hydrophones"] if hydrophones else []),
    ]
    with subprocess.Popen(command, start_new_session=True) as program:
        try:
            code = compile_progress.follow(program)
        except BaseException:
            program.terminate()
            raise
    if code:
        raise WaveSimError("the kernels could not be compiled (see above)")


@contextlib.contextmanager
def compiled_on_first_use(name: str, what: str, report: Callable[[str], None] = print_to_stderr) -> Iterator[None]:
    """Report that kernels are compiled if the body of the ``with`` statement calls them for the first time.

    These kernels belong to a tool and not to a server. ``name`` names their record in the cache, and ``what`` their
    purpose in the message. Raises WaveSimError if a source of the kernels in a wheel has been changed.
    """
    if machine_code.MODE is machine_code.Mode.MACHINE_CODE:
        machine_code.check_sources("wavesim_server")
    if machine_code.MODE is not machine_code.Mode.COMPILE:
        yield
        return
    check_numba_version()
    record = CompletionRecord(name, Path(__file__).parent, "wavesim.dynamics")
    if record.is_current():
        yield
        return
    if not record.has_current_functions():
        report(f"compiling the kernels for {what} (once, about half a minute)")
    with gc_paused():
        yield
    if _make_folder(record.path.parent):
        from wavesim_kernels.numba_internals import used_sources

        record.write(used_sources)


def _make_folder(folder: Path) -> bool:
    """Create a folder and return whether this process can write to it."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return os.access(folder, os.W_OK | os.X_OK)


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection, because the compiler creates millions of objects and keeps most of them until it
    exits."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def make_empty_world(threads: int = 1) -> Simulation:
    """Create a simulation without bodies."""
    from wavesim_server.simulation import Simulation
    from wavesim_world.config import load_text

    world = "<wavesim><world><bed depth='30 m'/></world><shared vehicles='4' signals='16'/></wavesim>"
    return Simulation(load_text(world), threads=threads)


def exercise_small_functions(world: Simulation) -> None:
    """Call all compiled functions of a small simulation except the tick, so that they are compiled or loaded."""
    import numpy as np

    from wavesim_sdk.tables import SIGNALS

    # close enough to the bed and to each other for the contact kernels to run
    first = world.enter("first", "lauv", (0.0, 0.0, 29.5))
    world.enter("second", "buoy", (0.0, 1.0, 29.5))
    world.ping(first, 25e3)
    world.set_weather(current_north=0.1)
    world.state()
    world.results.effort()
    world.results.surroundings(0.0)
    world.weather_model.uniform_flow(0.0)
    world.channel.live_signals(np.zeros(world.config.shared.signals, SIGNALS.dtype), 0.0)


def exercise_all(threads: int = 1) -> None:
    """Call all compiled functions, so that each of them is compiled or loaded before the clock starts.

    If a kernel were first needed during the run, all participants would have to wait for its compilation. With
    ``threads`` > 1, the kernels include those of multi-threaded ticks; small fleets use one thread.
    """
    world = make_empty_world(threads)
    exercise_small_functions(world)
    world.advance(2)
    if threads > 1:
        world.tick_executor.threads.min_bodies = 0
        world.advance(2)
    world.take_signals()


def exercise_hydrophones() -> None:
    """Call the compiled functions of hydrophones, so that each of them is compiled or loaded before the clock starts."""
    from wavesim_server.simulation import Simulation
    from wavesim_world.config import load_text

    vehicle = "<vehicle name='a' model='lauv' position='0 0 5 m'><sensors><hydrophone/></sensors></vehicle>"
    Simulation(load_text(f"<wavesim><fleet>{vehicle}</fleet></wavesim>")).advance(1)


def compile_in_parallel() -> None:
    """Compile the kernels in three processes, two of which are busy at any time."""
    world = make_empty_world()
    begun = [forked_process.fork_process("wavesim-sound", world.tick_executor.compile_sound)]
    try:
        world.tick_executor.compile_motion()
        begun.append(forked_process.fork_process("wavesim-bodies", lambda: exercise_small_functions(world)))
        world.tick_executor.compile_tick()
        for process in begun:
            process.wait()
    finally:
        for process in begun:
            process.kill()
            process.wait()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    threads, hydrophones = int(sys.argv[1]), "hydrophones" in sys.argv[2:]
    with gc_paused():
        if len(os.sched_getaffinity(0)) > 1:
            compile_in_parallel()
        exercise_all(threads)
        if hydrophones:
            exercise_hydrophones()
    from wavesim_kernels.numba_internals import used_sources

    for count in {1, threads}:
        completion_record(count).write(used_sources)
    if hydrophones:
        hydrophone_record().write(used_sources)


if __name__ == "__main__":
    main()
