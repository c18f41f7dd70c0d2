"""Choose worlds by what happens in them.

Each part of a world has random numbers of its own. A *variation* of a seed takes the numbers of some parts from other
seeds. The behaviour of a run is the set of its events, how often each happened (by powers of two), and which followed
which. A variation with new behaviour is kept, and later variations change one or a few parts of those that are kept:
rare situations are varied more often than common ones.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.world.report import Report
from benchmarks.world.runner import PRINTED_SEEDS, run_variation

FRESH = 0.3  #: fraction of the runs with a new seed instead of a variation
SWAPS = (1, 1, 2, 3)  #: numbers of parts that a variation changes


@dataclass
class Kept:
    """A run whose behaviour was new."""

    seed: int
    swaps: Mapping[str, int]
    parts: tuple[str, ...]
    new: frozenset[str]  #: behaviour that it was the first to show
    varied: int = 0  #: how often it was varied


@dataclass
class Search:
    """The runs so far."""

    random: random.Random
    first: int  #: first seed
    kept: list[Kept] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    fresh: int = 0

    def choose(self) -> tuple[int, dict[str, int]]:
        """Return the next seed and the parts whose random numbers come from other seeds."""
        r = self.random
        if not self.kept or r.random() < FRESH:
            self.fresh += 1
            return self.first + self.fresh - 1, {}
        rarity = [sum(1.0 / self.seen[b] for b in k.new) / (1.0 + k.varied) for k in self.kept]
        kept = r.choices(self.kept, rarity)[0]
        kept.varied += 1
        changed = r.sample(kept.parts, min(r.choice(SWAPS), len(kept.parts)))
        return kept.seed, {**kept.swaps, **{part: r.getrandbits(31) for part in changed}}

    def learn(self, seed: int, swaps: Mapping[str, int], report: Report) -> None:
        """Keep a run if its behaviour is new."""
        new = report.behaviour - self.seen.keys()
        self.seen.update(report.behaviour)
        if new:
            self.kept.append(Kept(seed, swaps, tuple(sorted(report.parts)), frozenset(new)))


def hunt(seeds: range) -> int:
    """Run as many variations as there are seeds, and print those that fail. Return the exit code."""
    begun = reported = time.monotonic()
    search, broken = Search(random.Random(seeds.start), seeds.start), Counter[str]()
    for done in range(1, len(seeds) + 1):
        seed, swaps = search.choose()
        report = run_variation(seed, swaps)
        search.learn(seed, swaps, report)
        if report.broken:
            broken[report.kind] += 1
            if broken[report.kind] <= PRINTED_SEEDS:
                print(f"{report}\nagain: python -m benchmarks.world --seed {seed}{as_option(swaps)}\n", flush=True)
        if time.monotonic() - reported > 30.0:
            reported = time.monotonic()
            print(f"{done} runs after {reported - begun:.0f} s: {len(search.seen)} kinds of behaviour", flush=True)
    print(
        f"{len(seeds)} runs in {time.monotonic() - begun:.1f} s: {len(search.seen)} kinds of behaviour, of which "
        f"{sum(n == 1 for n in search.seen.values())} once; {len(search.kept)} runs with new behaviour; "
        f"{broken.total()} broken"
    )
    return min(broken.total(), 1)


def as_option(swaps: Mapping[str, int]) -> str:
    """Return the option that selects a variation."""
    return " --swap " + ",".join(f'"{part}={seed}"' for part, seed in sorted(swaps.items())) if swaps else ""
