"""Changes of time in engine and front: which bodies there are afterwards, and what clients and operators learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.server.harbour import Client, Harbour
from wavesim_sdk.attach import SharedState
from wavesim_sdk.observer import Observer
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire.items import Control, RunStateChanged, SignalSeen, SnapshotAction, TimeChanged
from wavesim_sdk.wire.messages import Fleet, Role
from wavesim_world.config import LoadedConfig

FLEET = """<time step="10 ms" pace="fast" duration="3 s" {time}/>
<network newcomers="free" keepalive_period="0.1 s" keepalive_timeout="0.5 s"><grant to="a" rights="control"/></network>
<fleet><sensors><ctd/></sensors>
<vehicle name="a" model="lauv" position="0 0 5 m" client="optional" watchdog="500 ms" failsafe="zero"/>
<vehicle name="b" model="lauv" position="9 0 5 m" client="optional"/>
<vehicle name="c" model="lauv" position="9 9 5 m" client="none"/></fleet>"""


@pytest.fixture
def harbour(config: Callable[..., LoadedConfig]) -> Harbour:
    return Harbour(config(FLEET.format(time='snapshot_period="0.5 s" snapshots="3"')), limit=0.2, real=True)


def step(harbour: Harbour, ticks: int) -> None:
    assert harbour.order("step", ticks=ticks)[0]
    harbour.run(0.05)
    assert harbour.state in (RunState.PAUSED, RunState.ENDED)


def names(harbour: Harbour) -> list[str]:
    return [o.name for _, o in sorted(harbour.sea.occupants.items())]


def states(harbour: Harbour) -> bytes:
    return bytes(harbour.sea.state()["p_WB_W"].tobytes())


def test_present_clients_keep_their_bodies(harbour: Harbour) -> None:
    """One client leaves after the snapshot, and another one joins."""
    first = harbour.join("a")
    step(harbour, 20)
    harbour.order("snapshot", action="save", name="s")
    second = harbour.join("b", position=(0.0, 0.0, 0.0))
    first.session.leave()
    step(harbour, 30)
    assert names(harbour) == ["b", "c"]
    assert harbour.order("snapshot", action="restore", name="s") == (True, "returned from 0.500 s to 0.200 s")
    harbour.run(0.1)
    assert names(harbour) == ["b", "c"] and harbour.sea.tick == 20
    assert second.of(TimeChanged) == [TimeChanged(200_000_000, 500_000_000)]
    assert np.allclose(harbour.sea.state()["p_WB_W"][1], (9.0, 0.0, 5.0)), "at its initial pose, the client stays"
    assert harbour.areas["vehicles"]["identity"].snapshot()[1]["present"].tolist()[:3] == [0, 1, 1]
    third = harbour.join("a")
    step(harbour, 5)
    assert names(harbour) == ["a", "b", "c"] and not third.of(TimeChanged)


def test_reset_after_the_end(harbour: Harbour) -> None:
    client = harbour.join("a")
    harbour.order("start")
    harbour.run(0.2)
    assert harbour.state is RunState.ENDED
    assert not harbour.order("start")[0]
    end = states(harbour)
    assert harbour.order("reset") == (True, "reset at 3.000 s")
    harbour.run(0.1)
    assert harbour.state is RunState.STOPPED and harbour.sea.tick == 0
    assert int(harbour.front.clock()["tick"]) == 0
    assert client.of(TimeChanged) == [TimeChanged(0, 3_000_000_000)]
    assert [e.run_state for e in client.of(RunStateChanged)] == [1, 3, 0]
    assert client.states[-1].tick == 0, "states go on"
    harbour.order("start")
    harbour.run(0.2)
    assert harbour.state is RunState.ENDED and states(harbour) == end
    assert any("the simulation time changed from 3.000 s to 0.000 s" in line for line in harbour.said)


def test_automatic_snapshots_are_bounded_and_end_with_a_rewind(harbour: Harbour) -> None:
    step(harbour, 290)
    recent = harbour.engine.time_changes.recent
    assert [s.tick for s in recent] == [150, 200, 250]
    late = states(harbour)
    assert harbour.order("rewind", time=2.2) == (True, "returned from 2.900 s to 2.000 s")
    assert harbour.state is RunState.PAUSED and [s.tick for s in recent] == [150, 200]
    step(harbour, 90)
    assert states(harbour) == late and [s.tick for s in recent] == [150, 200, 250]
    assert harbour.order("rewind", time=1.0) == (
        False,
        "no automatic snapshot at or before 1.000 s; the oldest is at 1.500 s",
    )


def test_viewers_learn_where_they_can_return(harbour: Harbour) -> None:
    """The table lists the snapshots as they are taken, discarded by a return, and lost by a reset."""
    state = SharedState.from_areas(harbour.areas["simulation"], harbour.areas["vehicles"])
    assert state.snapshot_times() == []
    step(harbour, 290)
    assert state.snapshot_times() == [1_500_000_000, 2_000_000_000, 2_500_000_000]
    harbour.order("rewind", time=2.2)
    harbour.run(0.1)
    assert state.snapshot_times() == [1_500_000_000, 2_000_000_000]
    change = state.time_change()
    assert (change["count"], change["time_ns"], change["before_ns"]) == (1, 2_000_000_000, 2_900_000_000)
    harbour.order("reset")
    harbour.run(0.1)
    change = state.time_change()
    assert (change["count"], change["time_ns"], change["before_ns"]) == (2, 0, 2_000_000_000)
    assert state.snapshot_times() == []


def test_records_before_a_time_change_are_told_from_those_after_it(harbour: Harbour) -> None:
    """A reader that comes late sees both in one table; the numbers at the change separate them."""
    state = SharedState.from_areas(harbour.areas["simulation"], harbour.areas["vehicles"])
    step(harbour, 60)
    harbour.front.tables.notice(580_000_000, 2, "c", "before")
    assert harbour.order("rewind", time=0.5)[0]
    harbour.run(0.1)
    harbour.front.tables.notice(510_000_000, 2, "c", "after")
    harbour.run(0.1)
    total, records = state.history("notice", 0)
    texts = [bytes(r["text"]).decode() for r in records]
    split = int(state.time_change()["notice"])
    assert total == len(texts) and "before" in texts[:split] and texts[split:] == ["after"]


def test_without_a_period_nothing_is_stored(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET.format(time="")), limit=0.2, real=True)
    step(harbour, 200)
    assert not harbour.engine.time_changes.recent
    ok, text = harbour.order("rewind", time=1.0)
    assert not ok and 'set <time snapshot_period="10 s"/>' in text


def test_memory_holds_a_bounded_number_of_named_snapshots(harbour: Harbour) -> None:
    for k in range(16):
        assert harbour.order("snapshot", action="save", name=f"s{k}")[0]
    ok, text = harbour.order("snapshot", action="save", name="one-more")
    assert not ok and "already holds 16 snapshots" in text
    assert harbour.order("snapshot", action="save", name="s3")[0], "replaces the earlier one"
    assert harbour.order("snapshot", action="remove", name="s5") == (True, "removed the snapshot 's5'")
    assert harbour.order("snapshot", action="save", name="one-more")[0]


def test_right_is_needed(harbour: Harbour) -> None:
    a, b = harbour.join("a"), harbour.join("b")
    step(harbour, 10)
    numbers = [a.session.request(Control("reset")), a.session.request(SnapshotAction("save", "x"))]
    refused = [b.session.request(Control("reset")), b.session.request(SnapshotAction("save", "x"))]
    harbour.run(0.1)
    assert [a.outcome(n) for n in numbers] == [(True, "reset at 0.100 s"), (True, "saved the snapshot 'x' at 0.000 s")]
    assert all("not permitted to use" in outcome_text(b, n) for n in refused)


def outcome_text(client: Client, number: int) -> str:
    outcome = client.outcome(number)
    assert outcome is not None and not outcome[0]
    return outcome[1]


def test_watchdog_and_fences_return_too(harbour: Harbour) -> None:
    client = harbour.join("a")
    client.session.actuate([5.0] * 4)
    step(harbour, 20)
    assert harbour.order("snapshot", action="save", name="s")[0]
    due = harbour.engine.watchdog.next_tick()
    corners = [[-50, -50], [50, -50], [0, 50]]
    assert harbour.order("fence", name="f", keep="inside", corners=corners)[0]
    step(harbour, 100)
    assert harbour.engine.watchdog.next_tick() > 10**9, "it has expired"
    assert harbour.order("snapshot", action="restore", name="s")[0]
    assert harbour.engine.watchdog.next_tick() == due and not harbour.engine.fences.current
    assert not harbour.areas["simulation"]["fences"].snapshot()[1]["name"][0]


def test_observer_continues(harbour: Harbour) -> None:
    eye = harbour.join("eye", role=Role.OBSERVER)
    step(harbour, 50)
    assert harbour.order("reset")[0]
    harbour.run(0.1)
    assert eye.of(TimeChanged) == [TimeChanged(0, 500_000_000)]
    observer = Observer("eye", ("127.0.0.1", 1))
    observer._signals = [SignalSeen(1, 0, 0, 400_000_000, 25e3, 180.0, (0.0, 0.0, 5.0))]
    observer._newest, observer._parts = 50, {50: {}}
    assert observer._feed(TimeChanged(0, 500_000_000)) is None
    assert observer._newest == -1 and not observer._parts
    frame = observer._feed(Fleet(0, 0, 2, 0, 1, b""))
    assert frame is not None and not frame.signals, "they belong to the discarded part of the run"
    assert frame.time_changes == [TimeChanged(0, 500_000_000)]
