"""The actuator watchdog: it acts once, at its exact tick, and only for the bodies that it watches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wavesim_server.watchdog import NEVER, Watchdog
from wavesim_world.config import load

STEP_NS = 4_000_000
CONFIG = """<wavesim><time step="4 ms"/>
<models><model name="m" type="surface"><box length="2 m" width="1 m" height="0.5 m"/><mass value="100 kg"/>
<inertia xx="5" yy="80" zz="81"/><added-mass diagonal="1 1 1 1 1 1"/><linear-drag diagonal="8 9 10 3 4 5"/>
<thruster name="left" position="-1 -0.3 0 m" direction="1 0 0" law="force" minimum="-9" maximum="9" lag="0 s"/>
<thruster name="right" position="-1 0.3 0 m" direction="1 0 0" law="force" minimum="-9" maximum="9" lag="0 s"/>
</model></models>
<fleet>
<vehicle name="zero" model="m" position="0 0 0 m" watchdog="1 s"/>
<vehicle name="hold" model="m" position="9 0 0 m" watchdog="1.002 s" failsafe="hold"/>
<vehicle name="safe" model="m" position="19 0 0 m" watchdog="1 ms" failsafe="safe" safe="1.5 -2"/>
<vehicle name="none" model="m" position="29 0 0 m"/>
</fleet></wavesim>"""


@pytest.fixture
def watchdog(tmp_path: Path) -> Watchdog:
    (tmp_path / "c.xml").write_text(CONFIG)
    return Watchdog(load(tmp_path / "c.xml"), STEP_NS)


def barks(watchdog: Watchdog, tick: int) -> list[tuple[int, str, list[float | None] | None, str]]:
    return list(watchdog.take_due(tick))


def test_it_barks_at_the_first_tick_that_is_late_and_not_before(watchdog: Watchdog) -> None:
    assert watchdog.next_tick() == NEVER == sys.maxsize
    watchdog.watch(3, "zero", 100)
    assert watchdog.next_tick() == 350
    assert barks(watchdog, 349) == []
    assert barks(watchdog, 350) == [(3, "zero", [0.0, 0.0], "no command for 1 s: actuators at zero")]
    assert watchdog.next_tick() == NEVER and barks(watchdog, 351) == [], "once, until the next command"
    watchdog.note_command(3, 400)
    assert watchdog.next_tick() == 650 and len(barks(watchdog, 1000)) == 1


def test_a_time_between_two_ticks_is_rounded_up(watchdog: Watchdog) -> None:
    watchdog.watch(0, "hold", 0)
    assert watchdog.next_tick() == 251
    assert barks(watchdog, 250) == []
    assert barks(watchdog, 251) == [(0, "hold", None, "no command for 1.002 s: commands are held")]


def test_the_shortest_time_is_a_tick(watchdog: Watchdog) -> None:
    watchdog.watch(0, "safe", 7)
    assert watchdog.next_tick() == 8 and barks(watchdog, 7) == []
    assert barks(watchdog, 8) == [(0, "safe", [1.5, -2.0], "no command for 0.001 s: actuators at 1.5 -2")]


def test_a_command_puts_it_off(watchdog: Watchdog) -> None:
    watchdog.watch(0, "zero", 0)
    watchdog.note_command(0, 249)
    assert watchdog.next_tick() == 499 and barks(watchdog, 498) == []


def test_several_bark_in_the_order_of_their_rows(watchdog: Watchdog) -> None:
    for row, name in ((5, "zero"), (2, "safe"), (3, "hold")):
        watchdog.watch(row, name, 0)
    assert watchdog.next_tick() == 1
    assert [b[:2] for b in barks(watchdog, 251)] == [(2, "safe"), (3, "hold"), (5, "zero")]


def test_who_has_none_is_not_watched(watchdog: Watchdog) -> None:
    watchdog.watch(0, "none", 0)
    watchdog.watch(1, "somebody", 0)
    watchdog.note_command(0, 5)
    watchdog.note_command(2, 5)
    assert watchdog.next_tick() == NEVER and barks(watchdog, 10**9) == []


def test_nothing_stays_for_the_next_body_in_the_row(watchdog: Watchdog) -> None:
    watchdog.watch(0, "zero", 0)
    watchdog.watch(1, "zero", 10)
    watchdog.remove(0)
    watchdog.remove(7)
    assert watchdog.next_tick() == 260
    watchdog.note_command(0, 100)
    assert watchdog.next_tick() == 260, "the row has another body now"
    assert [b[0] for b in barks(watchdog, 260)] == [1]
    assert watchdog.next_tick() == NEVER and barks(watchdog, 10**9) == []
