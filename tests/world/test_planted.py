"""Bugs planted into the server in memory: the worlds find them, and find nothing in the server as it is."""

from __future__ import annotations

from unittest import mock

import pytest
from benchmarks.world import planted
from benchmarks.world.planted import BY_WORLD, FOUND_AT, PLANTED, Constant, Edit, NotApplied, Planted
from benchmarks.world.runner import run

from wavesim_sdk.wire import reliable

#: bugs that a siege finds at once; the others are long
FEW = (
    "last event lost on resume",
    "downgrade",
    "replay in the window",
    "spent joins",
    "proof of any address",
    "resumed by another key",
    "right to others ignored",
    "refusals reported as success",
)
SIEGE = frozenset({"world"})  # without the world


@pytest.mark.parametrize("name", FEW)
def test_a_siege_finds_a_planted_bug_and_nothing_without_it(name: str) -> None:
    seed = FOUND_AT[name]
    with PLANTED[name].applied():
        found = run(seed, SIEGE)
    assert found.broken, f"another seed? python -m benchmarks.world --planted '{name}'"
    sound = run(seed, SIEGE)
    assert not sound.broken, str(sound)


@pytest.mark.long
@pytest.mark.parametrize("name", FOUND_AT)
def test_the_worlds_find_each_planted_bug(name: str) -> None:
    part = frozenset({"siege"}) if name in BY_WORLD else SIEGE
    with PLANTED[name].applied():
        found = run(FOUND_AT[name], part)
    assert found.broken, f"another seed? python -m benchmarks.world --planted '{name}'"


def test_all_planted_bugs_are_known_to_be_found() -> None:
    assert set(PLANTED) == set(FOUND_AT)


def test_each_planted_bug_matches_the_code_and_is_taken_out_again() -> None:
    for bug in PLANTED.values():
        before = [getattr(c.owner, c.name) for c in bug.changes]
        with bug.applied():
            assert all(getattr(c.owner, c.name) != b for c, b in zip(bug.changes, before, strict=True))
        assert [getattr(c.owner, c.name) for c in bug.changes] == before


@pytest.mark.parametrize(
    "change",
    [
        Edit(reliable.Inbox, "accept", (("no such text", "x"),)),
        Edit(reliable.Inbox, "accept", (("self", "x"),)),  # more than once
        Edit(reliable.Inbox, "nonesuch", (("self", "x"),)),
        Constant(reliable, "MAX_PENDING", 5, 6),
    ],
)
def test_a_planted_bug_that_does_not_match_the_code_is_an_error(change: Edit | Constant) -> None:
    with pytest.raises(NotApplied), Planted("a bug", (change,)).applied():
        pass


def test_the_table_says_what_was_found_and_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    seed = FOUND_AT["spent joins"]
    none = Planted("nothing", (Constant(reliable, "MAX_PENDING", reliable.MAX_PENDING, reliable.MAX_PENDING),))
    with (
        mock.patch.dict(PLANTED, {"none": none}),
        mock.patch.object(planted, "run", lambda s: run(s, SIEGE)),
    ):
        assert planted.search(["spent joins", "none"], range(seed, seed + 1), 1) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["spent", "joins", str(seed)] and "a JOIN was used twice" in lines[1]
    assert lines[2].split(maxsplit=1) == ["none", "not found in 1"] and lines[3].startswith("1 of 2 found")
    with pytest.raises(SystemExit, match="no planted bug named nonesuch"):
        planted.search(["nonesuch"], range(1), 1)
