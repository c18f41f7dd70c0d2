"""No participant can delay all others without limit: admission of bodies, slow participants, and exhausted budgets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.server.harbour import Bell, Client, Harbour, status
from wavesim_sdk.shared_memory import OWNER, OWNER_START, SYNCHRONOUS, process_start
from wavesim_sdk.tables import NOTICE
from wavesim_sdk.wire.client import JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.messages import Refusal, Role
from wavesim_server.waits import MOST, SHARE, WINDOW_S, Waits
from wavesim_world.config import LoadedConfig

FLEET = """<time step="20 ms" pace="fast"/><network keepalive_timeout="5 s" {network}/>
<fleet><sensors><ahrs rate="50 Hz"/></sensors>
<vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/><vehicle name="b" model="lauv" position="9 0 5 m" client="optional"/>
</fleet>"""
STEP_NS = 20_000_000

Make = Callable[..., Harbour]


@pytest.fixture
def make(config: Callable[..., LoadedConfig]) -> Make:
    def made(network: str = "", **more: Any) -> Harbour:
        return Harbour(config(FLEET.format(network=network)), **more)

    return made


class Thinker:
    """A lockstep client that answers each step after so long."""

    def __init__(self, harbour: Harbour, name: str, seconds: float, period: int = 1, **more: Any) -> None:
        self.harbour, self.seconds = harbour, seconds
        self.client: Client = harbour.join(name, lockstep_ns=period * STEP_NS, **more)
        self.seen: dict[int, float] = {}
        self.answered = 0

    def turn(self) -> None:
        for state in self.client.states:
            if state.step and state.tick not in self.seen:
                self.seen[state.tick] = self.harbour.now
        due = [tick for tick, at in self.seen.items() if self.harbour.now >= at + self.seconds]
        for tick in due:
            self.seen[tick] = float("inf")
            self.answered += 1
            if self.client.session.phase is Phase.JOINED:
                self.client.session.done(tick, None)

    @property
    def end(self) -> str | None:
        return next((e.text for e in self.client.of(SessionClosed)), None)


def sail(harbour: Harbour, seconds: float, *thinkers: Thinker, grain: float = 0.02) -> None:
    end = harbour.now + seconds
    while harbour.now < end:
        harbour.run(grain, min(grain, 0.005))
        for t in thinkers:
            t.turn()


def notices(harbour: Harbour) -> list[tuple[str, str]]:
    total, rows = harbour.areas["simulation"][NOTICE.name].snapshot()
    return [(bytes(r["name"]).decode(), bytes(r["text"]).decode()) for r in rows[:total]]


# ------------------------------------------------------------------------------- who may bring a body


@pytest.mark.parametrize(
    ("network", "free", "lockstep"),
    [
        ("", False, False),
        ('newcomers="none"', False, False),
        ('newcomers="free"', True, False),
        ('newcomers="lockstep"', True, True),
    ],
)
def test_who_may_join_under_a_name_that_the_configuration_does_not_have(
    make: Make, network: str, free: bool, lockstep: bool
) -> None:
    harbour = make(network)
    for name, wanted, period in (("one", free, 0), ("two", lockstep, STEP_NS)):
        client = harbour.join(name, model="lauv", lockstep_ns=period)
        refused = client.of(JoinRefused)
        assert (client.session.phase is Phase.JOINED) == wanted
        if not wanted:
            (why,) = refused
            assert "<network newcomers=" in why.text, "it says what would allow it"
            assert why.code == (Refusal.BAD_VALUE if free else Refusal.UNKNOWN_NAME)
    assert harbour.join("a", lockstep_ns=STEP_NS).session.phase is Phase.JOINED, "a configured one may do both"
    assert {"one" if free else "a", "a"} <= {name for name, _ in harbour.front.bodies.values()}


def test_a_name_that_is_nearly_one_gets_a_suggestion(make: Make) -> None:
    harbour = make()
    harbour.front.admission_policy.reserved_rows["lauv"] = 0
    (why,) = harbour.join("luav", model="lauv").of(JoinRefused)
    assert "'luav'" in why.text and "did you mean 'lauv'?" in why.text


def test_a_listener_is_never_waited_for(make: Make) -> None:
    harbour = make('newcomers="lockstep"')
    (why,) = harbour.join("a", role=Role.LISTENER, lockstep_ns=STEP_NS).of(JoinRefused)
    assert why.text == "lockstep_ns: only a pilot or an instrument can request lockstep"


def test_a_newcomer_does_not_come_by_lockstep_by_resuming(make: Make) -> None:
    harbour = make('newcomers="free"')
    guest = harbour.join("guest", model="lauv")
    (why,) = harbour.join("guest", model="lauv", previous=guest.session.token, lockstep_ns=STEP_NS).of(JoinRefused)
    assert 'newcomers="lockstep"' in why.text and guest.session.phase is Phase.JOINED
    assert harbour.join("guest", previous=guest.session.token).session.phase is Phase.JOINED


# ------------------------------------------------------------------------------- the account


def test_an_account_by_hand() -> None:
    waits = Waits(10.0)
    assert waits.left("x", 0.0) == 10.0
    assert not waits.charge("x", 6.0, 6.0, 0.0) and waits.left("x", 0.0) == 4.0
    assert not waits.charge("x", 4.0, 10.0, 0.0) and waits.left("x", 0.0) == 0.0
    assert waits.charge("x", 0.1, 10.1, 0.0)
    assert waits.left("x", 0.1) == pytest.approx(10.0 - (10.1 - SHARE * 0.1)), "time that goes on pays it back"
    assert not waits.charge("x", 1.0, 99.0, 100.0) and waits.left("x", 100.0) == 9.0, "and never more than that"
    assert waits.accounts["x"].waited_s == pytest.approx(11.1)
    for k in range(2 * MOST):
        waits.charge(f"n{k}", 1.0, 99.0, 100.0)
        waits.charge("x", 1e-3, 99.0, 100.0)
        assert len(waits.accounts) <= MOST
    assert "x" in waits.accounts, "who is waited for now is not the one that is forgotten"


def test_who_is_slow_is_looked_at_once_in_a_window() -> None:
    waits = Waits(1e9)
    assert waits.look(100.0, 0.0, {}) == []
    waits.charge("x", 3.0, 103.0, 0.02)
    waits.charge("y", 2.4, 104.0, 0.02)
    assert waits.look(104.9, 0.04, {}) == []
    (verdict,) = waits.look(100.0 + WINDOW_S, 0.04, {})
    assert (verdict.name, verdict.slow) == ("x", True) and waits.slow == ["x"]
    assert (
        verdict.text == "slow: the simulation waited 3.0 of the last 5.0 s for this participant and advanced by 0.04 s"
    )
    (verdict,) = waits.look(110.0, 0.04, {"z": 90.0, "x": 107.5})
    assert (verdict.name, verdict.slow) == ("z", True) and waits.slow == ["x", "z"], (
        "of a wait that lasts: this window's part"
    )
    waits.charge("x", 4.9, 115.0, 60.0)
    assert {(v.name, v.slow) for v in waits.look(115.0, 60.0, {})} == {("x", False), ("z", False)}, (
        "time went on faster than that"
    )


# ------------------------------------------------------------------------------- clients


@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_a_client_that_holds_everybodys_time_is_named_and_ended(make: Make, speed: float) -> None:
    """As found: a stranger that answered each step after 4.5 s gave 5 ticks in 23 s, and nothing was said."""
    harbour = make('newcomers="lockstep" lockstep_budget="20 s"', speed=speed)
    quick = Thinker(harbour, "a", 0.0)
    stranger = Thinker(harbour, "stranger", 4.5, model="lauv")
    harbour.order("start")
    sail(harbour, 11.0, quick, stranger)
    assert harbour.sea.tick <= 3
    reports = [text for text in harbour.said if "slow" in text]
    assert len(reports) == 1 and reports[0].startswith("'stranger' is slow: the simulation waited "), harbour.said
    assert [name for name, text in notices(harbour) if text.startswith("slow: ")] == ["stranger"], "on every page"
    state = status(harbour)
    assert state["slow"] == ["stranger"]
    accounts = {c["name"]: c for c in state["clients"]}
    assert 8.0 < accounts["stranger"]["waited_s"] < 12.0 and accounts["a"]["waited_s"] < 0.5
    assert 8.0 < accounts["stranger"]["budget_left_s"] < 15.0 and accounts["a"]["budget_left_s"] > 19.0
    sail(harbour, 18.0, quick, stranger)
    assert stranger.end == (
        "this client answered too slowly: its delays beyond 50 s per simulated second used up its budget of 20 s (<network lockstep_budget>)"
    )
    assert (
        "'stranger' (pilot) was disconnected: its slow answers used up the time for which the server may wait for it"
        in harbour.said
    )
    assert any("'stranger' (pilot) was disconnected" in text for text in harbour.front.data_loss.texts)
    before = harbour.sea.tick
    sail(harbour, 2.0 * WINDOW_S, quick, stranger)
    assert harbour.sea.tick > before + 200 and quick.end is None, "time goes on for the others"
    assert status(harbour)["slow"] == [] and "'stranger' is no longer slow" in harbour.said


def test_it_comes_back_to_the_same_account(make: Make) -> None:
    """What was waited for a client counts also if it leaves before it answers, and if it comes again in another session."""
    harbour = make('lockstep_budget="100 s" lockstep_timeout="2 s"')
    client = harbour.join("a", lockstep_ns=STEP_NS)
    harbour.order("start")
    sail(harbour, 1.0)
    client.session.leave()
    sail(harbour, 0.01, grain=0.001)
    account = harbour.front.steps.waits.accounts["a"]
    assert account.waited_s == pytest.approx(1.0, abs=0.05)
    again = harbour.join("a", lockstep_ns=STEP_NS)
    sail(harbour, 1.0)
    harbour.join("a", lockstep_ns=STEP_NS, previous=again.session.token).session.leave()
    sail(harbour, 0.01, grain=0.001)
    assert harbour.front.steps.waits.accounts["a"] is account and account.waited_s == pytest.approx(2.1, abs=0.1)


def test_a_single_answer_that_takes_for_ever_ends_at_the_budget(make: Make) -> None:
    """Whoever allows an hour for a step allows it to those within their budget."""
    harbour = make('lockstep_budget="1 s" lockstep_timeout="1 h"')
    client = harbour.join("a", lockstep_ns=STEP_NS)
    harbour.order("start")
    sail(harbour, 0.9)
    assert client.session.phase is Phase.JOINED and harbour.sea.tick == 0
    sail(harbour, 0.4)
    assert [e.text for e in client.of(SessionClosed)] and harbour.sea.tick > 0


@pytest.mark.parametrize("seconds", [0.3, 0.9, 1.1, 1.5, 2.5])
def test_nobody_is_waited_for_longer_than_its_share_and_budget(make: Make, seconds: float) -> None:
    """Whatever it does: also if it answers just too late each time, and is waited for again."""
    harbour = make('lockstep_budget="5 s" lockstep_timeout="1 s"', speed=1.0)
    thinker = Thinker(harbour, "a", seconds)
    harbour.order("start")
    for _ in range(20):
        sail(harbour, 1.0, thinker, grain=0.05)
        waited = harbour.front.steps.waits.accounts["a"].waited_s
        assert waited <= 5.0 + SHARE * harbour.sea.tick * 0.02 + 0.2
    assert waited > 3.0


@pytest.mark.parametrize(("seconds", "period"), [(0.5, 5), (4.0, 50), (0.9, 1)])
def test_a_program_that_computes_long_within_its_share_is_never_ended(make: Make, seconds: float, period: int) -> None:
    harbour = make('lockstep_budget="5 s"')
    thinker = Thinker(harbour, "a", seconds, period)
    harbour.order("start")
    sail(harbour, 30.0, thinker, grain=0.05)
    assert thinker.end is None and thinker.answered >= 7
    assert status(harbour)["clients"][0]["budget_left_s"] > 0.0


def test_a_front_that_stood_still_blames_nobody(make: Make) -> None:
    harbour = make('lockstep_budget="1 s"')
    quick = Thinker(harbour, "a", 0.05)
    harbour.order("start")
    sail(harbour, 1.0, quick)
    before = harbour.front.steps.waits.accounts["a"].waited_s
    for _ in range(4):
        harbour.now += 2.0  # stopped, or without a processor
        sail(harbour, 0.2, quick)
    assert quick.end is None and harbour.front.steps.waits.accounts["a"].waited_s < before + 2.0
    assert status(harbour)["slow"] == []


# ------------------------------------------------------------------------------- emulators


def attend(harbour: Harbour) -> Any:
    header = harbour.areas["vehicles"]["ahrs"].header
    header[OWNER], header[OWNER_START], header[SYNCHRONOUS] = os.getpid(), process_start(os.getpid()), 1
    return header


class SlowBell(Bell):
    """An emulator that answers each question after 4.5 s."""

    def __init__(self, harbour: Harbour) -> None:
        super().__init__()
        self.harbour, self.at = harbour, 0.0

    def ask(self) -> None:
        super().ask()
        self.at = self.harbour.now + 4.5

    def wait_answer(self, timeout: float = 0.0) -> bool:
        return self.harbour.now >= self.at and super().wait_answer()


def test_a_slow_emulator_is_named_and_freed(make: Make) -> None:
    """In fast time everybody waits for it: answers within the time limit were never reported."""
    harbour = make('lockstep_budget="20 s"', speed=0.0, limit=5.0)
    harbour.join("a")
    header, harbour.bells["ahrs"] = attend(harbour), SlowBell(harbour)
    harbour.order("start")
    sail(harbour, 11.0)
    assert status(harbour)["slow"] == ["emulator ahrs"]
    said = [text for text in harbour.said if "ahrs" in text]
    assert len(said) == 1 and said[0].startswith("'emulator ahrs' is slow: the simulation waited ")
    assert header[SYNCHRONOUS] == 1
    assert harbour.sea.tick < 10
    begun = harbour.now
    while header[SYNCHRONOUS] and harbour.now < begun + 60.0:
        harbour.run(0.1)
    assert 20.0 < harbour.now - 100.0 < 30.0 and harbour.engine.emulators.late == 1
    harbour.run(0.1)
    said = [text for text in harbour.said if "ahrs" in text]
    assert said[1].startswith(
        "'emulator ahrs' is no longer synchronous: its delays beyond 50 s per simulated second used up its budget of 20 s"
    )
    before = harbour.sea.tick
    harbour.run(0.5)
    assert harbour.sea.tick > before + 100 and status(harbour)["slow"] == []
    assert [name for name, _ in notices(harbour)] == ["emulator ahrs", "emulator ahrs"]
    before = harbour.sea.tick
    header[SYNCHRONOUS] = 1  # it may ask again
    sail(harbour, 1.0)
    assert harbour.sea.tick < before + 10 and header[SYNCHRONOUS] == 1


def test_of_several_emulators_the_one_that_is_waited_for_pays(config: Callable[..., LoadedConfig]) -> None:
    inner = FLEET.format(network="").replace('<ahrs rate="50 Hz"/>', '<ahrs rate="50 Hz"/><ctd rate="50 Hz"/>')
    harbour = Harbour(config(inner), speed=0.0, limit=5.0)
    harbour.join("a")
    for sensor in ("ahrs", "ctd"):
        header = harbour.areas["vehicles"][sensor].header
        header[OWNER], header[OWNER_START], header[SYNCHRONOUS] = os.getpid(), process_start(os.getpid()), 1
    harbour.order("start")
    for slow in ("ahrs", "ctd"):
        before = {
            s: harbour.engine.emulators.waits.accounts[s].waited_s for s in harbour.engine.emulators.waits.accounts
        }
        harbour.bells[slow].answers = False
        harbour.run(1.0)
        harbour.bells[slow].answers = True
        harbour.run(0.01)
        after = harbour.engine.emulators.waits.accounts
        paid = {s: after[s].waited_s - before.get(s, 0.0) for s in after}
        quick = next(s for s in paid if s != slow)
        assert paid[slow] == pytest.approx(1.0, abs=0.05) and paid[quick] < 0.05, paid
