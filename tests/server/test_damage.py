"""A run with losses reports them at its end; a part that stalled does not blame other participants."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.harbour import Client, Harbour, status
from wavesim_sdk import commands, forked_process
from wavesim_sdk.log import read
from wavesim_sdk.shared_memory import OWNER, OWNER_START, SYNCHRONOUS, process_start
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire.items import Control
from wavesim_sdk.wire.messages import Role, Type
from wavesim_server import messages
from wavesim_server.logbook import report
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.network.data_loss import MAX_TEXTS
from wavesim_server.network.engine_queue import EngineQueue
from wavesim_server.network.front import Front
from wavesim_server.ring import WRITTEN
from wavesim_server.trial import Trial
from wavesim_world.config import LoadedConfig

FLEET = """<time step="10 ms" pace="fast"/><network newcomers="free" keepalive_period="0.1 s" keepalive_timeout="0.5 s" lockstep_timeout="1 s"/>
<fleet><sensors><ctd rate="10 Hz"/></sensors><vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/>
<vehicle name="b" model="lauv" position="9 0 5 m" client="optional"/></fleet>"""


def logged(loaded: LoadedConfig, path: Path, **more: float) -> Harbour:
    """A harbour that writes a log."""
    harbour = Harbour(loaded, log=True, **more)
    log = LogWriter(path, loaded, 1)
    harbour.front.log = harbour.front.event_dispatcher.log = harbour.front.data_loss.log = log
    return harbour


def test_who_falls_silent_while_time_runs_is_missing(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """In the status, in the log, in its table; who leaves is not, and nobody is while time stands."""
    harbour = logged(config(FLEET), tmp_path / "a.mcap")
    early = harbour.join("a", role=int(Role.INSTRUMENT))
    early.cut = True
    harbour.run(0.8)
    assert status(harbour)["damage"] == []
    a, b, listener = harbour.join("a"), harbour.join("b"), harbour.join("a", role=int(Role.LISTENER))
    harbour.order("start")
    a.cut = listener.cut = True
    b.session.leave()
    harbour.run(0.8)
    (found,) = status(harbour)["damage"]
    assert found.startswith("'a' (pilot) fell silent and was removed, at ")
    harbour.front.finish(harbour.now)
    table = report.trial_table(tmp_path / "a.mcap")
    assert table["damage"] == ["'a' (pilot) fell silent and was removed"]
    assert "LOST      'a' (pilot) fell silent and was removed" in report.table_text(table).splitlines()
    assert read(tmp_path / "a.mcap").complete


def test_who_does_not_answer_its_step_in_time_is_named(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET.replace('timeout="0.5 s"', 'timeout="9 s"')))
    harbour.join("a", lockstep_ns=100_000_000)
    harbour.order("start")
    harbour.run(1.3)  # nobody answers
    (found,) = status(harbour)["damage"]
    assert found.startswith("'a' did not answer its step within 1 s, at 0.")
    assert any("'a' did not answer its step within 1 s" in said for said in harbour.said)


def test_a_log_that_stops_is_said_once(config: Callable[..., LoadedConfig]) -> None:
    loaded = config(FLEET)
    harbour = logged(loaded, Path("/dev/full"))
    harbour.run(0.2)
    assert status(harbour)["damage"] == [status(harbour)["log"]] == ["the log stopped: No space left on device"]
    assert sum("the log stopped" in said for said in harbour.said) == 1


def test_a_queue_that_another_process_overwrote_is_reported(config: Callable[..., LoadedConfig]) -> None:
    """Once, on the console and in the status; who joins later has its states."""
    harbour = Harbour(config(FLEET))
    harbour.join("a")
    harbour.order("start")
    harbour.run(0.3)
    harbour.commands._header[WRITTEN] += 8  # the record before is read again, from its middle
    harbour.run(0.3)
    (found,) = status(harbour)["damage"]
    assert found.startswith("a queue between the front end and the engine was damaged: ")
    assert sum("a queue between" in said for said in harbour.said) == 1
    late = harbour.join("b", 0.5)
    assert late.states, "the queue works again"


def test_no_end_of_damage_costs_no_memory(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET))
    harbour.order("start")
    for k in range(MAX_TEXTS + 5):
        harbour.front.data_loss.record(f"{k}")
    found = status(harbour)["damage"]
    assert len(found) == MAX_TEXTS + 1 and found[-1] == "and 5 more"


def test_an_emulator_that_stands_still_in_real_time_is_counted(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET), speed=1.0, limit=0.5)
    harbour.join("a")
    harbour.areas["vehicles"]["ctd"].header[SYNCHRONOUS] = 1
    harbour.order("start")
    harbour.run(1.0)
    assert harbour.bells["ctd"].asked > 5 and harbour.engine.emulators.late == 0
    harbour.bells["ctd"].answers = False
    harbour.run(0.4)
    assert harbour.engine.emulators.late == 0
    harbour.run(1.0)
    assert harbour.engine.emulators.late >= 1
    harbour.run(0.2)
    assert harbour.areas["simulation"]["clock"].snapshot()[1][0]["sensors_late"] >= 1


@pytest.fixture
def crew(config: Callable[..., LoadedConfig]) -> tuple[Harbour, Client, Client]:
    harbour = Harbour(config(FLEET))
    return harbour, harbour.join("a"), harbour.join("b", lockstep_ns=100_000_000)


def test_a_stalled_front_removes_nobody(crew: tuple[Harbour, Client, Client]) -> None:
    """Whatever it hears first: a timer, a datagram, a record of the engine."""
    harbour, a, _ = crew
    harbour.order("start")
    for first in ("turn", "receive", "event"):
        harbour.now += 7.0
        if first == "turn":
            harbour.front.poll(harbour.now)
        elif first == "receive":
            harbour.front.receive(b"nothing", ("127.0.0.1", 9), harbour.now)
        elif first == "event":
            harbour.front.event(4, b"\xc0", harbour.now)
        harbour.run(0.1)
        names = {m.session.name for m in harbour.front.crews.by_token.values()}
        assert names == {"a", "b"} and status(harbour)["damage"] == [], first
    assert status(harbour)["stood_still_s"] == pytest.approx(21.0, abs=0.1)
    assert sum("the front end stalled for 7.0 s" in said for said in harbour.said) == 3
    assert status(harbour)["clients"][0]["rtt_ms"] < 100.0
    a.cut = True
    harbour.run(0.8)
    assert {m.session.name for m in harbour.front.crews.by_token.values()} == {"b"}, "silence still counts"


def test_a_step_outlasts_a_stalled_front(crew: tuple[Harbour, Client, Client]) -> None:
    harbour, _, b = crew
    harbour.order("start")
    harbour.run(0.05)
    asked = [s for s in b.states if s.step][-1]
    harbour.now += 7.0
    harbour.run(0.5)
    assert b.session.token in harbour.front.barrier.waiting, "it is waited for"
    b.session.done(asked.tick, [1.0])
    harbour.run(0.05)
    assert [s for s in b.states if s.step][-1].tick > asked.tick and status(harbour)["damage"] == []


def test_a_stalled_engine_waits_for_its_emulators(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET), limit=1.0)
    harbour.join("a")
    header = harbour.areas["vehicles"]["ctd"].header
    header[SYNCHRONOUS], header[OWNER], header[OWNER_START] = 1, os.getpid(), process_start(os.getpid())
    harbour.bells["ctd"].answers = False
    harbour.order("start")
    assert harbour.engine.emulators.pending == ["ctd"]
    harbour.now += 7.0
    harbour.run(0.5)
    assert harbour.engine.emulators.pending == ["ctd"] and harbour.engine.emulators.late == 0
    harbour.run(0.7)
    assert harbour.engine.emulators.late == 1


def test_the_log_of_a_front_that_took_over_has_no_records_of_a_body_under_the_name_of_another(
    config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    """Records of one that had left stood once under the name of its successor in the row, or under none."""
    harbour = logged(config(FLEET), tmp_path / "a.mcap")
    harbour.join("one", model="lauv")
    harbour.join("short", model="lauv")
    harbour.order("start")
    front, row = harbour.front, 2
    assert front.bodies[row][0] == "one" and front.bodies[row + 1][0] == "short"

    def engine() -> None:
        for _ in range(20):
            harbour.engine.poll(harbour.now)

    engine()  # its events have no reader any more
    enter = messages.EnterCommand(row, 7, "two", "lauv", (0, 0, 0), (0, 0, 0), 0, int(front.generations[row]) + 1)
    leave = [messages.forward(Type.LEAVE, k, 0, messages.LEAVE_PAYLOAD) for k in (row, row + 1)]
    for record in (leave[0], messages.encode(enter), leave[1]):
        harbour.commands.push(*record)
    engine()
    log = LogWriter(tmp_path / "b.mcap", harbour.loaded, 1)
    harbour.front = Front(
        harbour.loaded,
        "harbour",
        1,
        harbour.areas,
        EngineQueue(harbour.commands),
        harbour.events,
        log,
        rng=random.Random(2),
    )
    harbour.front.take_over(harbour.now)
    harbour.run(0.01)
    (text,) = harbour.front.data_loss.texts
    harbour.front.finish(harbour.now)
    found = read(tmp_path / "b.mcap")
    assert int(text.split()[0]) > 0 and text.endswith(
        "records are missing from the log: their bodies left the simulation while the front end was not running"
    )
    assert [t["text"] for _, t in found.json["/host/damage"]] == [text]
    assert [topic for topic in found.series if topic.startswith("/state/")] == ["/state/two"]
    assert len(found.series["/state/two"].records) > 0
    assert [(b["name"], b["present"]) for _, b in found.json["/bodies"]] == [("two", True)]


def test_a_trial_whose_log_lacks_its_end_is_damaged(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """Whatever cut it, and although every process ended well."""
    loaded = config(FLEET.replace("<time ", '<time duration="9 s" '))
    trial = Trial(loaded, tmp_path, quiet=True)
    trial.folder.mkdir()
    harbour = logged(loaded, trial.log)
    harbour.order("start")
    harbour.run(2.0)
    whole = trial.log.stat().st_size
    harbour.front.finish(harbour.now)
    trial._finish(plots=False, wall=1.0)
    assert trial.damage == []
    os.truncate(trial.log, whole)
    assert "is incomplete" in trial._finish(plots=False, wall=1.0)
    (text,) = trial.damage
    assert "is incomplete: it ends at " in text


def test_what_a_navigator_believes_stands_under_its_own_name(
    config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    """Whoever had the row before it, and however far behind the engine is."""
    harbour = logged(config(FLEET), tmp_path / "a.mcap")
    harbour.order("start")
    one = harbour.join("one", model="lauv")
    harbour.frozen = True
    one.session.leave()
    harbour.run(0.05)
    harbour.join("two", model="lauv").session.estimate([1.0] * 10)
    harbour.run(0.05)
    harbour.front.finish(harbour.now)
    assert [topic for topic in read(tmp_path / "a.mcap").series if "estimate" in topic] == ["/estimate/two"]


def test_who_leaves_after_the_end_is_no_part_of_the_run_however_far_behind_the_log_is(
    config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    """And who left before it is. What decided was once the time at which the front heard of it."""
    harbour = logged(config(FLEET), tmp_path / "a.mcap")
    harbour.engine.end_tick = 100
    for name in "ab":
        harbour.join(name)
    harbour.commands.push(*messages.forward(Type.REQUESTS, -1, 1, commands.encode(Control("start", None))))
    harbour.engine.poll(harbour.now)
    for row in (0, 1):
        harbour.commands.push(*messages.forward(Type.LEAVE, row, 0, messages.LEAVE_PAYLOAD))
        for _ in range(50):
            harbour.engine.poll(harbour.now)
    assert harbour.state is RunState.ENDED
    harbour.run(0.01)
    harbour.front.finish(harbour.now)
    bodies = [(b["name"], b["present"]) for _, b in read(tmp_path / "a.mcap").json["/bodies"]]
    assert bodies == [("a", True), ("b", True), ("a", False)]


@pytest.mark.timeout(30)
def test_emulators_are_stopped_all_at_once_and_a_program_that_failed_is_lost(
    config: Callable[..., LoadedConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails where anybody waits a moment for an emulator, which serves until it is stopped."""
    trial = Trial(config(FLEET.replace("<time ", '<time duration="9 s" ')), tmp_path, quiet=True)
    monkeypatch.setattr("wavesim_server.trial.EXIT_GRACE_S", 1e4)
    emulators = [forked_process.fork_process("emulator", signal.pause) for _ in range(3)]
    failed = forked_process.fork_process("program", lambda: sys.exit(3))
    failed.wait()
    trial.processes = {f"emulator-{k}": process for k, process in enumerate(emulators)} | {"program-a": failed}
    trial._end_participants()
    assert [process.returncode for process in emulators] == [-signal.SIGTERM] * 3
    assert trial.lost == {"program-a": 3}
