"""The core of the engine: which participants are served at which tick, waiting, and state that is removed with a body."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.server.harbour import Harbour, done, status
from wavesim_sdk import commands
from wavesim_sdk.shared_memory import OWNER, OWNER_START, SYNCHRONOUS
from wavesim_sdk.tables import RECEPTION, SENT, RunState
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.items import Control, Fault, Notice, Ping, Subscribe
from wavesim_sdk.wire.messages import Done, Leave, Role, Type
from wavesim_server import messages
from wavesim_server.engine import core
from wavesim_server.messages import MAX_RECORD_BYTES
from wavesim_server.ring import Ring
from wavesim_world.config import LoadedConfig

FLEET = """<time step="10 ms" pace="fast"/><log state_rate="10 Hz"/>
<network newcomers="lockstep" keepalive_period="0.1 s" keepalive_timeout="0.5 s" lockstep_timeout="0.2 s" takeover="yes"/>
<fleet><sensors><ahrs rate="10 Hz"/></sensors>
<vehicle name="a" model="lauv" position="0 0 5 m" client="optional" watchdog="50 ms" failsafe="zero"/>
<vehicle name="b" model="lauv" position="9 0 5 m" client="optional"/>
<vehicle name="c" model="lauv" position="9 9 5 m" client="none"/>
<fence name="box"><corner north="-100 m" east="-100 m"/><corner north="100 m" east="-100 m"/><corner north="0 m" east="100 m"/></fence>
</fleet>"""


@pytest.fixture
def harbour(config: Callable[..., LoadedConfig]) -> Harbour:
    return Harbour(config(FLEET), limit=0.2)


def synchronous(harbour: Harbour, sensor: str = "ahrs") -> Any:
    """An emulator of this process that wants to be asked."""
    import os

    from wavesim_sdk.shared_memory import process_start

    header = harbour.areas["vehicles"][sensor].header
    header[OWNER], header[OWNER_START], header[SYNCHRONOUS] = os.getpid(), process_start(os.getpid()), 1
    return header


def events(harbour: Harbour, kind: type[Any]) -> Iterator[Any]:
    """The events of the engine, taken before the front has them."""
    return (e for e in (messages.decode_event(*r) for r in harbour.events.pop_all()) if isinstance(e, kind))


# ------------------------------------------------------------------------------------------ ticks


def test_shared_memory_says_which_configuration_runs(harbour: Harbour) -> None:
    """An emulator of another one ends by it (`tests/emulators/test_process.py`); none at all would be taken for its own."""
    world = harbour.areas["simulation"]["world"].snapshot()[1][0]
    assert bytes(world["digest"]).decode() == harbour.loaded.digest == status(harbour)["digest"] != ""
    assert (world["step_ns"], world["seed"]) == (10_000_000, 1)


def test_a_step_of_some_ticks(harbour: Harbour) -> None:
    assert harbour.order("step", ticks=7) == (True, "running at 0.000 s")
    harbour.run(0.05)
    assert harbour.sea.tick == 7 and harbour.state is RunState.PAUSED
    assert harbour.order("step", ticks=1)[0]
    harbour.run(0.05)
    assert harbour.sea.tick == 8
    clock = harbour.front.clock()
    assert (clock["tick"], clock["time_ns"], clock["state"]) == (8, 80_000_000, 2)


def test_the_run_ends_at_its_end(harbour: Harbour) -> None:
    harbour.engine.end_tick = 25
    harbour.order("start")
    harbour.run(0.1)
    assert harbour.sea.tick == 25 and harbour.state is RunState.ENDED
    for verb in ("start", "pause", "stop", "resume"):
        ok, text = harbour.order(verb)
        assert not ok and "has ended" in text
    assert not harbour.order("step", ticks=3)[0]
    assert harbour.order("speed", factor=2) == (True, "speed 2")
    assert harbour.order("shutdown")[0] and harbour.engine.is_over


@pytest.mark.parametrize(
    ("duration", "ticks"),
    [(None, 90_000), (0.0, 0), (0.25, 25), (0.001, 1)],
    ids=["configured", "never", "set", "short"],
)
def test_the_end_of_the_run_in_shared_memory(
    config: Callable[..., LoadedConfig], duration: float | None, ticks: int
) -> None:
    """The duration of the command line replaces that of the configuration everywhere; a short one is not *never*."""
    sea = Harbour(config(FLEET.replace('<time step="10 ms"', '<time step="10 ms" duration="900 s"')), duration=duration)
    assert sea.engine.end_tick == (ticks or None)
    assert int(sea.areas["simulation"]["world"].snapshot()[1][0]["duration_ns"]) == ticks * 10_000_000


def test_verbs_of_the_timer(harbour: Harbour) -> None:
    assert harbour.order("start")[0] and harbour.state is RunState.RUNNING
    assert harbour.order("step", ticks=3) == (False, "the simulation is running; pause it before you step")
    assert harbour.order("pause")[0] and harbour.state is RunState.PAUSED
    tick = harbour.sea.tick
    harbour.run(0.1)
    assert harbour.sea.tick == tick
    assert harbour.order("resume")[0] and harbour.order("stop")[0] and harbour.state is RunState.STOPPED
    assert harbour.order("speed", factor=0) == (True, "as fast as possible")


def test_real_time_is_kept_by_the_core(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET), speed=1.0)
    harbour.order("start")
    tick, now = harbour.sea.tick, harbour.now
    harbour.run(1.0)
    assert harbour.sea.tick - tick == pytest.approx(100 * (harbour.now - now), abs=2)
    assert harbour.engine.run.is_real_time
    harbour.order("speed", factor=3)
    assert not harbour.engine.run.is_real_time
    tick = harbour.sea.tick
    harbour.run(1.0)
    assert harbour.sea.tick - tick == pytest.approx(300, abs=5)
    assert harbour.order("pause")[0] and not harbour.engine.run.is_real_time


def test_the_engine_says_when_it_must_be_called_again(harbour: Harbour) -> None:
    engine = harbour.engine
    assert engine.poll(harbour.now) == math.inf, "nothing moves before a command comes"
    engine.pacer.speed = 1.0
    engine.run.set_state(RunState.RUNNING)
    assert engine.poll(200.0) == pytest.approx(200.01)
    assert engine.poll(200.005) == pytest.approx(200.01) and harbour.sea.tick == 0
    assert engine.poll(200.0101) <= 200.0101 and harbour.sea.tick == 1


# ------------------------------------------------------------------------------------------ lockstep


def test_clients_are_asked_at_multiples_of_their_periods(harbour: Harbour) -> None:
    a = harbour.join("a", lockstep_ns=30_000_000)
    b = harbour.join("b", lockstep_ns=50_000_000)
    harbour.order("start")
    asked: dict[str, list[int]] = {"a": [], "b": []}
    for _ in range(120):
        harbour.run(0.002)
        for name, client in (("a", a), ("b", b)):
            for s in client.states:
                asked[name].append(s.tick)
                client.session.done(s.tick, [float(s.tick)])
            client.events.clear()
        if harbour.sea.tick >= 30:
            break
    assert asked["a"][:9] == [0, 3, 6, 9, 12, 15, 18, 21, 24] and asked["b"][:6] == [0, 5, 10, 15, 20, 25]
    acted = done(harbour, "command")
    assert all(values[2][0] == values[0] for values in acted), "at exactly the tick that was asked"


def test_a_frozen_client_holds_a_step_no_longer_than_the_limit(harbour: Harbour) -> None:
    a, b = harbour.join("a", lockstep_ns=10_000_000), harbour.join("b", lockstep_ns=10_000_000)
    harbour.order("start")
    for _ in range(100):
        harbour.run(0.005)
        for s in b.states:  # a never answers
            b.session.done(s.tick, None)
        b.events.clear()
        if harbour.sea.tick > 3:
            break
    assert harbour.now - 100.0 < 0.2 + 0.3, "only the first step waited"
    assert harbour.sea.tick > 3 and not harbour.front.barrier.waiting & {a.session.token}
    a.session.done(a.states[-1].tick, None)
    harbour.run(0.01)
    assert harbour.front.barrier.dismissed == set(), "it is waited for again"


def test_a_client_that_answers_late_is_waited_for_again_although_time_runs_ahead_of_it(harbour: Harbour) -> None:
    b = harbour.join("b", lockstep_ns=10_000_000)
    harbour.order("start")
    harbour.run(0.25)
    asked = [s.tick for s in b.states]
    assert len(asked) > 10, "it was too slow for the first, and time does not wait for it"
    b.session.done(asked[0], [9.0])
    harbour.run(0.01)
    tick = harbour.sea.tick
    harbour.run(0.1)
    assert harbour.sea.tick == tick and harbour.front.barrier.waiting == {b.session.token}
    assert done(harbour, "command") == [], "what it said was too late"
    b.session.done(tick, [1.0])
    harbour.run(0.01)
    assert harbour.sea.tick == tick + 1 and done(harbour, "command") == [(tick, 1, (1.0,))]


def test_requests_of_a_lockstep_client_that_left_do_not_happen(harbour: Harbour) -> None:
    a, b = harbour.join("a", lockstep_ns=10_000_000), harbour.join("b", lockstep_ns=10_000_000)
    harbour.order("start")
    a.session.request(Ping(25e3))
    harbour.run(0.02)
    a.session.done(0, [1.0])
    harbour.run(0.01)
    assert harbour.front.request_handler.pending_sounds != {}
    a.session.leave()
    harbour.run(0.05)
    assert harbour.front.request_handler.pending_sounds == {}, "what it asked for is not even kept"
    b.session.done(0, None)
    harbour.run(0.02)
    assert harbour.sea.tick == 1, "the step is released"
    assert done(harbour, "ping") == [] and done(harbour, "command") == []
    again = harbour.join("a", lockstep_ns=10_000_000)
    b.session.done(1, None)
    harbour.run(0.01)
    if again.states:
        again.session.done(again.states[-1].tick, None)
    harbour.run(0.05)
    assert done(harbour, "ping") == [], "nor for who comes after"


def test_a_pilot_that_comes_back_is_asked_again_and_its_requests_happen(harbour: Harbour) -> None:
    a = harbour.join("a", lockstep_ns=10_000_000)
    harbour.order("start")
    harbour.run(0.01)
    a.session.request(Ping(25e3))
    harbour.run(0.02)
    again = harbour.join("a", previous=a.session.token, lockstep_ns=10_000_000)
    assert [s.tick for s in again.states if s.step] == [0]
    again.session.done(0, [2.0])
    harbour.run(0.02)
    assert len(done(harbour, "ping")) == 1 and done(harbour, "command")[0] == (0, 0, (2.0,))


def test_what_an_old_session_asked_for_does_not_happen_after_a_takeover(harbour: Harbour) -> None:
    a = harbour.join("a", lockstep_ns=10_000_000)
    harbour.order("start")
    a.session.request(Ping(25e3))
    harbour.run(0.02)
    other = harbour.join("a", lockstep_ns=10_000_000)
    assert [s.tick for s in other.states if s.step] == [0]
    other.session.done(0, None)
    harbour.run(0.02)
    assert harbour.sea.tick == 1 and done(harbour, "ping") == []


def test_a_pilot_that_comes_back_free_is_waited_for_no_longer(harbour: Harbour) -> None:
    a = harbour.join("a", lockstep_ns=10_000_000)
    harbour.order("start")
    again = harbour.join("a", previous=a.session.token)
    harbour.run(0.05)
    assert harbour.sea.tick > 0 and harbour.engine.run.lockstep == {} and again.states


def test_an_answer_to_another_tick_releases_nothing(harbour: Harbour) -> None:
    harbour.join("a", lockstep_ns=10_000_000)
    harbour.order("start")
    assert harbour.engine.run.awaits_release
    for tick in (1, 7):
        queue = harbour.front.engine_queue
        answer = Done(tick, 0, (1.0,), None)
        queue.forward(0, 1, answer, codec.encode_payload(answer)[1])
        queue.send(messages.ReleaseCommand(tick))
    harbour.front.hand_over()
    harbour.engine.poll(harbour.now)
    assert harbour.engine.run.awaits_release and done(harbour, "command") == []


# ------------------------------------------------------------------------------------------ who leaves


def test_nothing_of_a_body_stays_for_the_next_one_in_its_row(harbour: Harbour) -> None:
    pilot = harbour.join("new", model="lauv", lockstep_ns=30_000_000)
    harbour.engine.watchdog._names[3], harbour.engine.watchdog._due[3] = "a", 10**6
    (box,) = harbour.engine.fences._watched.values()
    box.violating[3] = True
    assert harbour.order("fault", body="new", part="ahrs", kind="lost")[0]
    table = harbour.areas["vehicles"]["instruments"]
    row = harbour.engine.instruments.installed(3)[0].row
    assert table.snapshot()[1][row]["fault"] == 1
    pilot.session.leave()
    harbour.run(0.05)
    assert table.snapshot()[1][row]["body"] == -1 and table.snapshot()[1][row]["fault"] == 0
    assert harbour.engine.run.lockstep == {}
    assert harbour.engine.watchdog._due.get(3) is None and harbour.engine.watchdog._names.get(3) is None
    assert not box.violating[3]
    harbour.join("newer", model="lauv")
    entry = table.snapshot()[1][harbour.engine.instruments.installed(3)[0].row]
    assert (entry["fault"], entry["generation"]) == (0, 2)


def test_the_next_client_has_its_own_allowance(harbour: Harbour) -> None:
    first = harbour.join("a")
    numbers = [first.session.request(Ping(25e3)) for _ in range(205)]
    harbour.run(0.1)
    outcomes = [first.outcome(n) for n in numbers]
    assert outcomes[199] is None and outcomes[200] is not None and "more than 20" in outcomes[200][1]
    first.session.leave()
    harbour.run(0.05)
    second = harbour.join("a")
    number = second.session.request(Ping(25e3))
    harbour.run(0.05)
    assert second.outcome(number) is None and len(done(harbour, "ping")) == 201
    assert status(harbour)["acoustic_refused"] == {"a": 5}


# ------------------------------------------------------------------------------------------ emulators


def test_emulators_are_asked_when_an_instrument_is_due_and_waited_for(harbour: Harbour) -> None:
    synchronous(harbour)
    bell = harbour.bells["ahrs"]
    harbour.order("step", ticks=45)
    harbour.run(0.1)
    assert bell.asked == 5, "at ticks 0, 10, 20, 30, 40"
    bell.answers = False
    harbour.order("step", ticks=10)
    harbour.run(0.1)
    assert harbour.sea.tick == 50 and harbour.engine.emulators.pending == ["ahrs"]
    bell.answers = True
    harbour.run(0.05)
    assert harbour.sea.tick == 55 and harbour.engine.emulators.late == 0


def test_the_engine_sleeps_until_all_have_answered(harbour: Harbour) -> None:
    """One wake-up instead of one for each: it waits for the last first."""
    emulators, order = harbour.engine.emulators, list[str]()

    class Slow:
        def __init__(self, name: str, answers: bool = True) -> None:
            self.name, self.answers = name, answers

        def ask(self) -> None: ...

        def wait_answer(self, timeout: float = 0.0) -> bool:
            order.append(self.name)
            assert timeout <= 0.02
            return self.answers

    emulators.signals = {s: Slow(s, s != "a") for s in "abc"}
    emulators._since = time.monotonic()
    emulators.pending = ["b", "c"]
    emulators.wait(0.02)
    assert order == ["c", "b"] and not emulators.pending
    emulators.pending = ["a", "c"]
    emulators.wait(0.02)
    assert emulators.pending == ["a"], "still to come"


def test_an_emulator_that_does_not_answer_is_waited_for_once_until_it_asks_again(harbour: Harbour) -> None:
    header = synchronous(harbour)
    harbour.bells["ahrs"].answers = False
    harbour.order("start")
    harbour.run(0.15)
    assert harbour.sea.tick == 0 and harbour.engine.emulators.late == 0
    harbour.run(0.1)
    assert harbour.sea.tick > 50, "then it goes on without it"
    assert header[SYNCHRONOUS] == 0 and harbour.engine.emulators.late == 1
    assert harbour.front.clock()["sensors_late"] == 1
    asked = harbour.bells["ahrs"].asked
    harbour.run(0.05)
    assert harbour.bells["ahrs"].asked == asked, "nor is it asked"
    harbour.bells["ahrs"].answers = True
    header[SYNCHRONOUS] = 1
    harbour.run(0.05)
    assert harbour.bells["ahrs"].asked > asked and harbour.engine.emulators.late == 1


def test_an_emulator_that_died_is_not_waited_for(harbour: Harbour) -> None:
    header = synchronous(harbour)
    harbour.bells["ahrs"].answers = False
    harbour.order("start")
    harbour.run(0.01)
    assert harbour.sea.tick == 0
    header[OWNER_START] += 1  # its number is another process's by now
    harbour.run(0.02)
    assert harbour.sea.tick > 0 and harbour.engine.emulators.late == 1


def test_an_emulator_that_becomes_free_is_not_waited_for(harbour: Harbour) -> None:
    header = synchronous(harbour)
    harbour.bells["ahrs"].answers = False
    harbour.order("start")
    harbour.run(0.01)
    header[SYNCHRONOUS] = 0
    harbour.run(0.02)
    assert harbour.sea.tick > 0 and harbour.engine.emulators.late == 0


def test_in_real_time_nobody_is_waited_for(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET), speed=1.0)
    synchronous(harbour)
    harbour.bells["ahrs"].answers = False
    harbour.order("start")
    harbour.run(0.3)
    assert harbour.sea.tick >= 29 and harbour.bells["ahrs"].asked in (3, 4)


# ------------------------------------------------------------------------------------------ watchdog, log, ring


def test_the_watchdog_acts_at_its_tick(harbour: Harbour) -> None:
    a = harbour.join("a")
    harbour.order("step", ticks=3)
    a.session.actuate([5.0])
    harbour.run(0.02)
    harbour.order("step", ticks=4)
    assert [t for t, *_ in done(harbour, "command")] == [3] and harbour.sea.tick == 7
    harbour.order("step", ticks=1)
    harbour.run(0.02)
    assert done(harbour, "command")[1] == (8, 0, (0.0,) * 5), "50 ms after the command, not a tick later"
    assert [n.time_ns for n in a.of(Notice)] == [80_000_000]
    harbour.order("step", ticks=20)
    assert len(done(harbour, "command")) == 2, "once"


def test_a_contact_is_reported_to_the_body_it_happens_to(harbour: Harbour) -> None:
    """And to log and viewers, as every notice; one of a body that has left to nobody."""
    a = harbour.join("a")
    harbour.sea.meetings = [[(20_000_000, 0, "the sea bed", 0.5), (20_000_000, 7, "'a'", 0.5)]]
    harbour.order("step", ticks=3)
    assert [(n.time_ns, n.text) for n in a.of(Notice)] == [(20_000_000, "contact with the sea bed at 0.5 m/s")]


def test_each_answer_feeds_the_watchdog(harbour: Harbour) -> None:
    a = harbour.join("a", lockstep_ns=20_000_000)
    harbour.order("start")
    for _ in range(10):
        harbour.run(0.005)
        a.session.done(a.states[-1].tick, None)
    assert harbour.sea.tick >= 18 and a.of(Notice) == []


def test_records_for_the_log(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET), log=True)
    harbour.frozen = True
    engine = harbour.engine
    table = harbour.areas["vehicles"]["ahrs"]
    record = np.zeros(table.capacity, table.dtype)
    record["sequence"][0], record["generation"][0], record["heading"][0] = 1, 1, 2.5
    table.publish(record, 0)
    engine.run.budget = 25
    engine.run.set_state(RunState.RUNNING)
    while engine.run.state is RunState.RUNNING:
        engine.poll(harbour.now)
    logged = list(events(harbour, messages.LogRecordsEvent))
    bodies = ["state", "actuation", "surroundings"]
    assert [(e.tick, *e.tables) for e in logged] == [(0, *bodies, "ahrs"), (10, *bodies), (20, *bodies)]
    assert np.frombuffer(logged[0].rows, np.int64).tolist() == [2, 0] * 4, "of the body in row 2, and its sensor 0"


def test_forces_are_sent_on_request(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET), log=True)
    a, b = harbour.join("a", effort=1), harbour.join("b")
    harbour.order("step", ticks=5)
    harbour.run(0.1)
    assert a.states[-1].effort is not None and a.states[-1].effort.total == (5.0,) * 6
    assert b.states[-1].effort is None
    table = harbour.areas["vehicles"]["effort"]
    assert table.latest["total"][:, 0].tolist()[:3] == [5.0, 0.0, 0.0]
    number = b.session.request(Subscribe(effort=1))
    harbour.run(0.1)
    assert b.outcome(number) == (True, "") and b.states[-1].effort is not None
    a.session.leave()
    harbour.run(0.05)
    assert table.latest["total"][:, 0].tolist()[:3] == [0.0, 5.0, 0.0]
    b.session.leave()
    harbour.run(0.05)
    assert not table.latest["total"].any()


def test_forces_of_all_in_the_log(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET.replace("<log ", '<log effort="yes" ')), log=True)
    harbour.frozen = True
    harbour.engine.run.budget = 1
    harbour.engine.run.set_state(RunState.RUNNING)
    harbour.engine.poll(harbour.now)
    (logged,) = events(harbour, messages.LogRecordsEvent)
    assert logged.tables[3] == "effort" and logged.counts[3] == 1
    assert np.frombuffer(logged.rows, np.int64).reshape(-1, 2)[3].tolist() == [2, 0]


def test_lines_are_published_and_logged_and_reported_when_they_break(config: Callable[..., LoadedConfig]) -> None:
    """Fails when the log asks whose body a line is, as of the tables of bodies, or when no client gets a notice."""
    line = """<line name="tether" length="20 m" diameter="8 mm" mass="50 g/m" stiffness="50 kN">
    <end body="c"/><end position="9 9 20 m"/></line></fleet>"""
    harbour = Harbour(config(FLEET.replace("</fleet>", line)), log=True)
    harbour.frozen = True
    harbour.engine.run.budget = 25
    harbour.engine.run.set_state(RunState.RUNNING)
    harbour.sea.broken = [(130_000_000, "tether", 2, 812.3), (140_000_000, "between-anchors", -1, 5.0)]
    while harbour.engine.run.state is RunState.RUNNING:
        harbour.engine.poll(harbour.now)
    decoded = [messages.decode_event(*r) for r in harbour.events.pop_all()]
    logged = [e for e in decoded if isinstance(e, messages.LogRecordsEvent) and e.tables == ("lines",)]
    assert [e.tick for e in logged] == [0, 10, 20] and np.frombuffer(logged[0].rows, np.int64).tolist() == [0, 0]
    notices = [(e.time_ns, e.row, e.name, e.text) for e in decoded if isinstance(e, messages.NoticeEvent)]
    assert notices == [
        (130_000_000, 2, "c", "line 'tether' broke at 812.3 N"),
        (140_000_000, 0, "between-anchors", "line 'between-anchors' broke at 5 N"),
    ]
    table = harbour.areas["vehicles"]["lines"].latest
    assert table["name"].tolist() == [b"tether"] and len(table) == 1


PLANNED = FLEET.replace(
    'client="none"/>',
    """client="none"><fault at="100 ms" for="50 ms" every="200 ms" part="rudder-top" kind="lost"/>
<fault at="120 ms" part="ahrs" kind="bias" amount="5 deg" field="heading"/></vehicle>""",
).replace(
    'failsafe="zero"/>', 'failsafe="zero"><fault at="30 ms" part="propeller" kind="reduced" amount="0.5"/></vehicle>'
)


def test_faults_by_the_clock(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(PLANNED), log=True)
    harbour.order("step", ticks=40)
    harbour.run(0.1)
    failed = done(harbour, "fail")
    assert failed == [(10, 2, 1, "lost", ""), (15, 2, 1, "none", ""), (30, 2, 1, "lost", ""), (35, 2, 1, "none", "")]
    entry = harbour.areas["vehicles"]["instruments"].snapshot()[1][0]
    assert entry["fault"] == 3 and entry["fault_amount"] == pytest.approx(math.radians(5.0))
    a = harbour.join("a")
    assert a.session.welcome is not None and done(harbour, "fail")[4] == (40, 0, 0, "reduced", "0.5"), (
        "whoever comes later"
    )


def test_scheduled_faults_are_reported_to_the_log(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(PLANNED))
    harbour.frozen = True
    harbour.engine.run.budget = 20
    harbour.engine.run.set_state(RunState.RUNNING)
    while harbour.engine.run.state is RunState.RUNNING:
        harbour.engine.poll(harbour.now)
    found = [(e.number, e.ok, e.time_ns, commands.decode(e.command)) for e in events(harbour, messages.ExecutedEvent)]
    assert found == [
        (0, 1, 100_000_000, Fault("c", "rudder-top", "lost")),
        (0, 1, 120_000_000, Fault("c", "ahrs", "bias", math.radians(5.0), "heading")),
        (0, 1, 150_000_000, Fault("c", "rudder-top", "none")),
    ]


def test_many_signals_go_in_several_records() -> None:
    from wavesim_server.engine.records import signal_records

    sent, receptions = np.zeros(5, SENT.dtype), np.zeros(20_000, RECEPTION.dtype)
    receptions["id"], receptions["receiver"] = np.arange(20_000), np.arange(20_000) % 2
    lives = np.array([3, 4])
    found = list(signal_records(sent, receptions, lives))
    assert len(found) > 4 and found[0].sent == sent.tobytes()
    assert all(len(r.sent) + len(r.receptions) <= MAX_RECORD_BYTES for r in found)
    assert b"".join(r.receptions for r in found) == receptions.tobytes()
    assert b"".join(r.receivers for r in found) == lives[receptions["receiver"]].tobytes()
    assert found[0].senders == np.full(5, 3).tobytes()
    assert list(signal_records(sent[:0], receptions[:0], lives)) == []
    assert len(list(signal_records(sent[:1], receptions[:1], lives))) == 1


def test_a_full_ring_holds_the_engine_and_loses_nothing(harbour: Harbour) -> None:
    harbour.frozen = True
    engine = harbour.engine
    engine.run.budget = 10**6
    sent = np.zeros(300, SENT.dtype)
    for _ in range(20):
        harbour.sea.signals.append((sent, np.zeros(0, RECEPTION.dtype)))
    engine.run.set_state(RunState.RUNNING)
    ticks = []
    for _ in range(100):
        assert engine.poll(harbour.now) <= harbour.now + core.FULL_QUEUE_RETRY_S
        ticks.append(harbour.sea.tick)
    assert len(set(ticks[20:])) == 1, "it stands still"
    count = 0
    for _ in range(400):
        count += sum(len(e.sent) // SENT.dtype.itemsize for e in events(harbour, messages.SignalsEvent))
        engine.poll(harbour.now)
        if count == 6000:
            break
    assert count == 6000 and engine.flush()


def test_the_reader_of_a_large_record_is_rung_and_the_engine_comes_back_although_nothing_moves(
    harbour: Harbour,
) -> None:
    """A record goes in pieces: the room for the rest is made by a reader that has no whole record yet."""
    engine, rung = harbour.engine, list[int]()
    list(harbour.events.pop_all())
    engine.events._ring = harbour.events = Ring.create_private(4096)
    engine.events._wake = lambda: rung.append(1)
    engine.events.emit(messages.SignalsEvent(bytes(10_000), b"", b"", b""))
    assert engine.run.state is RunState.STOPPED
    for _ in range(20):
        due = engine.poll(harbour.now)
        assert due == (harbour.now + core.FULL_QUEUE_RETRY_S if engine.events.has_backlog else math.inf) and rung
        found = list(events(harbour, messages.SignalsEvent))
        rung.clear()
        if found:
            break
    assert found == [messages.SignalsEvent(bytes(10_000), b"", b"", b"")]
    # what could not be sent in a turn after which the engine waits for a command
    engine.events._ring = harbour.events = Ring.create_private(64)
    harbour.commands.push(*messages.forward(Type.REQUESTS, -1, 1, commands.encode(Control("pause"))))
    assert engine.poll(harbour.now) == harbour.now + core.FULL_QUEUE_RETRY_S and engine.events.has_backlog


def test_the_engine_is_rung_for_the_room_of_a_large_command(harbour: Harbour) -> None:
    front, rung = harbour.front, list[int]()
    front.engine_queue._ring = harbour.commands = Ring.create_private(4096)
    front.engine_queue._wake = lambda: rung.append(1)
    front.engine_queue.send(messages.EffortCommand(tuple(range(10_000))))
    found: list[Any] = []
    for _ in range(40):
        front.hand_over()
        assert rung
        rung.clear()
        found += list(harbour.commands.pop_all())
        if found:
            break
    assert [messages.decode_command(*r) for r in found] == [messages.EffortCommand(tuple(range(10_000)))]


def test_in_real_time_a_full_ring_loses_log_records_only(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET), speed=1.0, log=True)
    harbour.frozen = True
    harbour.engine.run.set_state(RunState.RUNNING)
    while harbour.events.push(9, bytes(1000)):
        pass
    while harbour.events.push(9, b""):
        pass
    dropped = harbour.events.dropped
    for k in range(100):
        harbour.engine.poll(harbour.now + 0.01 * k)
        harbour.engine.events._backlog.clear()
    assert harbour.events.dropped > dropped and harbour.sea.tick > 80


def test_who_is_there_is_logged_when_time_starts(harbour: Harbour) -> None:
    harbour.join("a")
    harbour.frozen = True
    list(events(harbour, messages.BodyPresenceEvent))
    harbour.engine.run.set_state(RunState.RUNNING)
    found = list(events(harbour, messages.BodyPresenceEvent))
    assert [(r.row, r.is_present, r.is_new, r.is_logged) for r in found] == [(0, 1, 0, 1), (2, 1, 0, 1)]
    harbour.engine.command_executor._dispatch(messages.ClientMessage(0, 0, Leave(), b""))
    assert [(r.row, r.is_present, r.is_new, r.is_logged) for r in events(harbour, messages.BodyPresenceEvent)] == [
        (0, 0, 1, 1)
    ]


def test_the_transducer_of_a_body_with_a_client_listens(harbour: Harbour) -> None:
    """Bodies without a client listen only when asked, if their transducer is so configured."""
    assert done(harbour, "listen") == []
    harbour.join("a")
    assert done(harbour, "listen") == [(0, 0)]


def test_a_body_without_pilot_stays_when_its_crew_leaves(harbour: Harbour) -> None:
    listener = harbour.join("c", role=int(Role.LISTENER))
    listener.session.leave()
    harbour.run(0.05)
    assert 2 in harbour.sea.occupants
