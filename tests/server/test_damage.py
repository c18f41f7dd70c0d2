"""A run that lost something says so at its end; a part that stood still blames nobody else for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.harbour import Client, Harbour, status
from wavesim_sdk.area import OWNER, OWNER_START, SYNCHRONOUS, process_start
from wavesim_sdk.config import Loaded
from wavesim_sdk.log import read
from wavesim_sdk.wire.messages import Role
from wavesim_server.logbook import report
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.network.damage import MOST

FLEET = """<time step="10 ms" pace="fast"/><network keepalive_period="0.1 s" keepalive_timeout="0.5 s" lockstep_timeout="1 s"/>
<fleet><sensors><ctd rate="10 Hz"/></sensors><vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/>
<vehicle name="b" model="lauv" position="9 0 5 m" client="optional"/></fleet>"""


def logged(loaded: Loaded, path: Path, **more: float) -> Harbour:
    """A harbour that writes a log."""
    harbour = Harbour(loaded, log=True, **more)
    log = LogWriter(path, loaded, 1)
    harbour.front.log = harbour.front.news.log = harbour.front.damage.log = log
    return harbour


def test_who_falls_silent_while_time_runs_is_missing(config: Callable[..., Loaded], tmp_path: Path) -> None:
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
    assert found.startswith("'a' (pilot) is silent and was removed, at ")
    harbour.front.finish(harbour.now)
    table = report.make(tmp_path / "a.mcap")
    assert table["damage"] == ["'a' (pilot) is silent and was removed"]
    assert "LOST      'a' (pilot) is silent and was removed" in report.text(table).splitlines()
    assert read(tmp_path / "a.mcap").complete


def test_who_does_not_answer_its_step_in_time_is_named(config: Callable[..., Loaded]) -> None:
    harbour = Harbour(config(FLEET.replace('timeout="0.5 s"', 'timeout="9 s"')))
    harbour.join("a", lockstep_ns=100_000_000)
    harbour.order("start")
    harbour.run(1.3)  # nobody answers
    (found,) = status(harbour)["damage"]
    assert found.startswith("'a' did not answer its step within 1 s, at 0.")
    assert any("'a' did not answer its step within 1 s" in said for said in harbour.said)


def test_a_log_that_stops_is_said_once(config: Callable[..., Loaded]) -> None:
    loaded = config(FLEET)
    harbour = logged(loaded, Path("/dev/full"))
    harbour.run(0.2)
    assert status(harbour)["damage"] == [status(harbour)["log"]] == ["the log stopped: No space left on device"]
    assert sum("the log stopped" in said for said in harbour.said) == 1


def test_no_end_of_damage_costs_no_memory(config: Callable[..., Loaded]) -> None:
    harbour = Harbour(config(FLEET))
    harbour.order("start")
    for k in range(MOST + 5):
        harbour.front.damage.tell(f"{k}")
    found = status(harbour)["damage"]
    assert len(found) == MOST + 1 and found[-1] == "and 5 more"


def test_an_emulator_that_stands_still_in_real_time_is_counted(config: Callable[..., Loaded]) -> None:
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
def crew(config: Callable[..., Loaded]) -> tuple[Harbour, Client, Client]:
    harbour = Harbour(config(FLEET))
    return harbour, harbour.join("a"), harbour.join("b", lockstep_ns=100_000_000)


def test_a_front_that_stood_still_removes_nobody(crew: tuple[Harbour, Client, Client]) -> None:
    """Whatever it hears first: a timer, a datagram, a record of the engine."""
    harbour, a, _ = crew
    harbour.order("start")
    for first in ("turn", "receive", "event"):
        harbour.now += 7.0
        if first == "receive":
            harbour.front.receive(b"nothing", ("127.0.0.1", 9), harbour.now)
        elif first == "event":
            harbour.front.event(4, b"\xc0", harbour.now)
        harbour.run(0.1)
        names = {m.session.name for m in harbour.front.crews.by_token.values()}
        assert names == {"a", "b"} and status(harbour)["damage"] == [], first
    assert status(harbour)["stood_still_s"] == pytest.approx(21.0, abs=0.1)
    assert sum("the front stood still for 7.0 s" in said for said in harbour.said) == 3
    assert status(harbour)["clients"][0]["rtt_ms"] < 100.0
    a.cut = True
    harbour.run(0.8)
    assert {m.session.name for m in harbour.front.crews.by_token.values()} == {"b"}, "silence still counts"


def test_a_step_outlasts_a_front_that_stood_still(crew: tuple[Harbour, Client, Client]) -> None:
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


def test_an_engine_that_stood_still_waits_for_its_emulators(config: Callable[..., Loaded]) -> None:
    harbour = Harbour(config(FLEET), limit=1.0)
    harbour.join("a")
    header = harbour.areas["vehicles"]["ctd"].header
    header[SYNCHRONOUS], header[OWNER], header[OWNER_START] = 1, os.getpid(), process_start(os.getpid())
    harbour.bells["ctd"].answers = False
    harbour.order("start")
    assert harbour.engine.emulators.awaited == ["ctd"]
    harbour.now += 7.0
    harbour.run(0.5)
    assert harbour.engine.emulators.awaited == ["ctd"] and harbour.engine.emulators.late == 0
    harbour.run(0.7)
    assert harbour.engine.emulators.late == 1
