"""The program that compiles all kernels of a server, by processes side by side: ``python -m wavesim_server.compiling THREADS``.

Sound is compiled while motion is translated; the kernels of single bodies are, by a fork that knows motion's translation, while
the tick is.  What one of them could not do is done, or said, at the end.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from wavesim_sdk import forked_process

if TYPE_CHECKING:
    from wavesim_server.simulation import Simulation


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """No collection of garbage meanwhile: a compiler makes millions of objects, of which most stay until it has done."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def make_empty_world(threads: int = 1) -> Simulation:
    """A world with nothing in it."""
    from wavesim_sdk.config import load_text
    from wavesim_server.simulation import Simulation

    world = "<wavesim><world><bed depth='30 m'/></world><shared vehicles='4' signals='16'/></wavesim>"
    return Simulation(load_text(world), threads=threads)


def exercise_small_functions(world: Simulation) -> None:
    """Ask a small world for all that compiled functions do but for a tick."""
    # so near the bed, and each other, that they are looked at closely
    first = world.enter("first", "lauv", (0.0, 0.0, 29.5))
    world.enter("second", "buoy", (0.0, 1.0, 29.5))
    world.ping(first, 25e3)
    world.set_weather(current_north=0.1)
    world.state()
    world.effort()
    world.surroundings()
    world.current()
    world.live_signals(world.new_signals_table())


def exercise_all(threads: int = 1) -> None:
    """Ask for all that compiled functions do, so that each is there, compiled or loaded, before time runs: whoever asks for one
    in mid-run would have everybody wait for its compilation. Ticks by several threads too, if so many are wanted; small fleets
    have theirs by one."""
    world = make_empty_world(threads)
    exercise_small_functions(world)
    world.advance(2)
    if threads > 1:
        world.threads.min_bodies = 0
        world.advance(2)
    world.take_signals()


def compile_in_parallel() -> None:
    """Compile the kernels, by three processes, of which two are busy at a time."""
    world = make_empty_world()
    begun = [forked_process.fork_process("wavesim-sound", world.compile_sound)]
    try:
        world.compile_motion()
        begun.append(forked_process.fork_process("wavesim-bodies", lambda: exercise_small_functions(world)))
        world.compile_tick()
        for process in begun:
            process.wait()
    finally:
        for process in begun:
            process.kill()
            process.wait()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    threads = int(sys.argv[1])
    with gc_paused():
        if len(os.sched_getaffinity(0)) > 1:
            compile_in_parallel()
        exercise_all(threads)


if __name__ == "__main__":
    main()
