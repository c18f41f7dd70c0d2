"""Run many worlds, one after the other or in several processes; repeat one of them, or reduce it."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from benchmarks.world.report import Report
from benchmarks.world.siege import Siege
from benchmarks.world.world import World, altered

GRAIN = 8  #: number of seeds that a worker processes at once
PRINTED_SEEDS = 5  #: number of seeds that are printed for each type of failure


Run = Callable[[int], Report]  #: the run of one seed
Task = tuple[int, bool, Run]

#: the parts of a seed; the omitted parts of a failure name all of them but one
PARTS: dict[str, type[World]] = {"world": World, "siege": Siege}


def run(seed: int, without: frozenset[str] = frozenset()) -> Report:
    """Run a world and then a siege from beginning to end; ``without`` may name one of them. A failure ends the run."""
    with altered():
        reports: list[Report] = []
        for name, kind in PARTS.items():
            if name not in without:
                reports.append(kind(seed, without).run())
                if reports[-1].broken:
                    return reports[-1]
    return functools.reduce(_together, reports)


def _together(world: Report, siege: Report) -> Report:
    steps, seconds, counts = world.steps + siege.steps, world.time + siege.time, world.counts + siege.counts
    return Report(world.seed, f"{world.hash}-{siege.hash}", steps, seconds, counts)


def check(seed: int, twice: bool, run: Run) -> Report:
    """Run one world. With ``twice``, a second run must be the same to the byte."""
    report = run(seed)
    if twice and not report.broken:
        again = run(seed)
        if (again.hash, again.steps) != (report.hash, report.steps):
            text = f"not repeatable: {report.hash} after {report.steps} steps, then {again.hash} after {again.steps}"
            return Report(seed, report.hash, report.steps, report.time, report.counts, text)
    return report


def _checked(task: Task) -> Report:
    return check(*task)


def _reports(tasks: Sequence[Task], workers: int) -> Iterator[Report]:
    if workers < 2:
        yield from map(_checked, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:  # each has hashes of texts of its own
        yield from pool.imap(_checked, tasks, GRAIN)


def hunt(seeds: range, workers: int, twice: int, run: Run = run) -> int:
    """Run many worlds and print the failures. Return the exit code, which is 1 if any seed failed."""
    begun = reported = time.monotonic()
    tasks = [(seed, bool(twice) and seed % twice == 0, run) for seed in seeds]
    counts: Counter[str] = Counter()
    steps, virtual, broken = 0, 0.0, list[Report]()
    for done, report in enumerate(_reports(tasks, workers), 1):
        counts.update(report.counts)
        steps, virtual = steps + report.steps, virtual + report.time
        if report.broken:
            broken.append(report)
            if sum(b.kind == report.kind for b in broken) == 1:
                print(f"{report}\n", flush=True)
        if time.monotonic() - reported > 30.0:
            reported = time.monotonic()
            print(f"{done} of {len(tasks)} worlds after {reported - begun:.0f} s, {len(broken)} broken", flush=True)
    took = time.monotonic() - begun
    print(
        f"{len(tasks)} worlds (seeds {seeds.start} to {seeds.stop - 1}) in {took:.1f} s, {1e3 * took / max(len(tasks), 1):.1f} ms each; "
        f"{steps} steps, {virtual / 3600.0:.1f} h of virtual time; {len(broken)} broken"
    )
    for kind, found in itertools.groupby(sorted(broken, key=lambda b: (b.kind, b.seed)), key=lambda b: b.kind):
        which = [b.seed for b in found]
        print(
            f"  {len(which)} x {kind}: seeds {', '.join(map(str, which[:PRINTED_SEEDS]))}{' ...' if len(which) > PRINTED_SEEDS else ''}"
        )
    print("what happened: " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    return min(len(broken), 1)


def replay(seed: int, without: frozenset[str]) -> int:
    """Repeat one seed."""
    report = run(seed, without)
    print(report)
    return int(bool(report.broken))


def shrink(seed: int, without: frozenset[str]) -> int:
    """Omit one part after another of a failing world, as long as it fails in the same way."""
    report = run(seed, without)
    if not report.broken:
        print(report)
        return 0
    left = True
    while left:
        left = False
        for part in [*PARTS, *World(seed, without).parts, *Siege(seed, without).parts]:
            if set(PARTS) <= without | {part}:
                continue
            less = run(seed, without | {part})
            if less.kind == report.kind:
                report, without, left = less, without | {part}, True
                print(f"also without {part}: step {report.steps}", flush=True)
    left_out = ",".join(sorted(without))
    print(
        f"\n{report}\n\nagain: python -m benchmarks.world --seed {seed}"
        + (f" --without {left_out}" if left_out else "")
    )
    return 1
