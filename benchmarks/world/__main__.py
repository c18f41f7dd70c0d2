"""Search for faults: run many seeds, or repeat one of them.

python -m benchmarks.world --seeds 1000 [--from 0] [--jobs 2]    run a thousand worlds; list those that fail
python -m benchmarks.world --seed 17                                repeat one of them, identical step by step
python -m benchmarks.world --seed 17 --shrink                       the same without everything that the failure does not need
python -m benchmarks.world --regressions                            remove fixes: find a seed that detects each
python -m benchmarks.world --planted [NAME ...] --seeds 300         plant bugs: find a seed that reports each
python -m benchmarks.world --numerical --seeds 1000 [--from 0]      the numerical world: random fleets, seas and commands
python -m benchmarks.world --numerical --seed 17                    repeat one of them
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.world.planted import search
from benchmarks.world.regressions import find
from benchmarks.world.runner import hunt, replay, shrink


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.world", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=100, help="number of worlds")
    parser.add_argument("--from", type=int, default=0, dest="first", help="first seed")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument(
        "--twice", type=int, default=16, help="run every N-th seed twice and compare the hashes; 0 = none"
    )
    parser.add_argument("--seed", type=int, help="run only this seed, and print its last events")
    parser.add_argument("--without", default="", help="events to omit, as printed by --shrink")
    parser.add_argument("--shrink", action="store_true", help="omit everything that the failure does not need")
    parser.add_argument("--regressions", action="store_true", help="remove fixes: find a seed that detects each")
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="plant these bugs (default: all), one at a time")
    parser.add_argument(
        "--numerical", action="store_true", help="run random fleets and seas instead: finite or refused, energy bounded"
    )
    a = parser.parse_args()
    if a.numerical:
        from benchmarks.world import numerics  # the other worlds do not need it

        seeds = range(a.first, a.first + a.seeds)
        return numerics.hunt(seeds, a.jobs, a.twice) if a.seed is None else numerics.replay(a.seed)
    without = frozenset(filter(None, a.without.split(",")))
    if a.regressions:
        return find(range(a.first, a.first + a.seeds))
    if a.planted is not None:
        return search(a.planted, range(a.first, a.first + a.seeds), a.jobs)
    if a.seed is None:
        return hunt(range(a.first, a.first + a.seeds), a.jobs, a.twice)
    return shrink(a.seed, without) if a.shrink else replay(a.seed, without)


if __name__ == "__main__":
    sys.exit(main())
