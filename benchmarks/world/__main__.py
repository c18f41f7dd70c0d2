"""Hunt for faults: many seeds, or one of them again.

python -m benchmarks.world --seeds 1000 [--from 0] [--jobs 2]    a thousand worlds; those that break are listed
python -m benchmarks.world --seed 17                                one of them again, step by step the same
python -m benchmarks.world --seed 17 --shrink                       the same with all left out that it does not need to break
python -m benchmarks.world --regressions                            mends taken out: which seed finds each, anew
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.world.regressions import find
from benchmarks.world.runner import hunt, replay, shrink


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.world", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=100, help="how many worlds")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share them")
    parser.add_argument(
        "--twice", type=int, default=16, help="each so many-th seed is run twice, for its hash; 0 = none"
    )
    parser.add_argument("--seed", type=int, help="run this one alone, and tell the last things that happened")
    parser.add_argument("--without", default="", help="things to leave out of it, as --shrink tells them")
    parser.add_argument("--shrink", action="store_true", help="leave out of it what it does not need to break")
    parser.add_argument("--regressions", action="store_true", help="take mends out: which seed finds each?")
    a = parser.parse_args()
    without = frozenset(filter(None, a.without.split(",")))
    if a.regressions:
        return find(range(a.first, a.first + a.seeds))
    if a.seed is None:
        return hunt(range(a.first, a.first + a.seeds), a.jobs, a.twice)
    return shrink(a.seed, without) if a.shrink else replay(a.seed, without)


if __name__ == "__main__":
    sys.exit(main())
