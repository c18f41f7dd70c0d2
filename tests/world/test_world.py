"""The world that hunts for faults: seeds that must live, each with one hash, and defects that it must find again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.world.regressions import REGRESSIONS
from benchmarks.world.runner import run

BATCH = 25
AGAIN = (0, 1, 2, 3, 40)  #: one of each kind, and another


@pytest.mark.parametrize("first", range(0, 300, BATCH))
def test_worlds_live(first: int) -> None:
    broken = [report for report in map(run, range(first, first + BATCH)) if report.broken]
    assert not broken, "\n\n".join(map(str, broken))


def test_one_hash_for_each_seed_here_and_in_another_process(root: Path) -> None:
    """In any order, and whatever the hashes of texts are."""
    first = {seed: run(seed).hash for seed in AGAIN}
    assert first == {seed: run(seed).hash for seed in reversed(AGAIN)} and len(set(first.values())) == len(AGAIN)
    script = f"from benchmarks.world.runner import run; print({{seed: run(seed).hash for seed in {AGAIN}}})"
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(first)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_defect_is_found_when_its_mend_is_out(name: str) -> None:
    """And not when it is in."""
    regression = REGRESSIONS[name]
    found = regression.run()
    assert found.broken.startswith(regression.finds), f"another seed? python -m benchmarks.world --regressions; {found}"
    assert not run(regression.seed).broken


def test_a_seed_that_breaks_breaks_again_at_the_same_step() -> None:
    regression = REGRESSIONS["stale welcome"]
    first, again = regression.run(), regression.run()
    assert first.broken and str(first) == str(again) and first.hash == again.hash
    assert f"broke at step {first.steps}," in str(first) and first.last


def test_what_a_broken_seed_does_not_need_can_be_left_out() -> None:
    regression = REGRESSIONS["stale welcome"]
    with regression.out():
        whole = run(regression.seed)
        less = run(regression.seed, frozenset({"stranger-0", "stranger-1", "disk", "emulators"}))
    assert less.kind == whole.kind and less.steps <= whole.steps
