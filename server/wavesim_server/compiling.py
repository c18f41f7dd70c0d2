"""The program that compiles all kernels of a server in parallel: ``python -m wavesim_server.compiling THREADS``.

One process compiles the sound kernels while this one compiles motion. This process then forks a copy, which already has
the motion kernels. The copy compiles the kernels of single bodies, while this process compiles the tick. A final pass
compiles each kernel that one of the processes failed to compile, or reports the error.
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
    """Pause garbage collection: the compiler creates millions of objects and keeps most of them until it ends."""
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
    """Use all compiled functions of a small simulation except the tick."""
    # close enough to the bed and to each other for the contact kernels to run
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
    """Use all compiled functions, so that each is compiled or loaded before the clock starts.

    A kernel first needed during the run would make all participants wait for its compilation. With ``threads`` > 1 this
    includes multi-threaded ticks; small fleets use one thread.
    """
    world = make_empty_world(threads)
    exercise_small_functions(world)
    world.advance(2)
    if threads > 1:
        world.threads.min_bodies = 0
        world.advance(2)
    world.take_signals()


def compile_in_parallel() -> None:
    """Compile the kernels in three processes, of which two are busy at a time."""
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
