"""Measure processor time of a cold compilation of everything that a trial needs, with an empty cache, in one process.

python -m benchmarks.compilation
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        begun = time.process_time()
        from wavesim_server import compiling
        from wavesim_server.simulation import Simulation  # noqa: F401  # with all kernels

        def took(what: str, run: Callable[[], object]) -> None:
            start = time.process_time()
            run()
            print(f"{what:42} {time.process_time() - start:6.1f} s", flush=True)

        print(f"{'imports':42} {time.process_time() - begun:6.1f} s")
        with compiling.gc_paused():
            world = compiling.make_empty_world()
            took("sound", world.tick_executor.compile_sound)
            took("motion, translated", world.tick_executor.compile_motion)
            took("the tick", world.tick_executor.compile_tick)
            took("what else a trial asks for", compiling.exercise_all)
        print(f"{'together':42} {time.process_time() - begun:6.1f} s")


if __name__ == "__main__":
    main()
