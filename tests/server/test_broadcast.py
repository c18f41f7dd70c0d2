"""Broadcasts to real sessions in memory: which sessions are due, in which order, and which session a failure affects."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import VEHICLE_TABLES
from wavesim_sdk.testing import sessions_for_tests
from wavesim_sdk.wire import seal
from wavesim_sdk.wire.client import ClientSession, SessionClosed, SessionEvent
from wavesim_sdk.wire.items import Notice, Observe
from wavesim_sdk.wire.messages import FLEET_BODIES, FLEET_DTYPE, Fleet, Join, Right, Role, Type
from wavesim_sdk.wire.session import Admission, Joined, Session
from wavesim_sdk.wire.state import State
from wavesim_server.network.broadcast import BATCHING_S, DatagramRows, StateBroadcaster
from wavesim_server.network.crews import CrewMember, Crews, SessionGrant
from wavesim_server.network.observers import Observers
from wavesim_server.network.state_datagrams import MAX_WRITTEN_SINGLY

ROWS = 40
STEP_NS = 4_000_000
MANY = MAX_WRITTEN_SINGLY + 3  #: so many are written together
KEY = bytes(range(32))


class Quay:
    """A broadcast, its sessions, and clients that hear what it sends."""

    def __init__(self, keyed: bool = False) -> None:
        self.now = 100.0
        self.area = SharedMemoryArea.create_private([(t, ROWS) for t in VEHICLE_TABLES])
        self.broke: list[Exception] = []
        keys = seal.Keyring([seal.KeyHolder("*", KEY)]) if keyed else None
        self.key = KEY if keyed else None
        self.sessions = sessions_for_tests(self._admit, keys=keys, on_error=self.broke.append)
        self.crews, self.observers = Crews(), Observers(self.sessions.push)
        self.bodies: dict[int, object] = {}
        self.clock = (500, 1)
        self.broadcast = StateBroadcaster(
            self.area,
            STEP_NS,
            self.sessions,
            self.crews,
            self.observers,
            self.bodies,
            lambda: self.clock,
            np.ones(ROWS, np.int64),
        )
        self.clients: dict[tuple[str, int], ClientSession] = {}
        self.events: dict[str, list[SessionEvent]] = {}
        self.enter(range(ROWS))
        state = np.zeros(ROWS, self.area["state"].dtype)
        state["p_WB_W"][:, 0] = np.arange(ROWS) + 0.5
        self.area["state"].publish(state, 500)

    @staticmethod
    def _admit(join: Join, _old: Session | None) -> Admission:
        row = -1 if join.role == Role.OBSERVER else int(join.name.rpartition("-")[2])
        return Admission(row, STEP_NS, 1500.0)

    def enter(self, rows: Sequence[int], name: str = "auv", present: int = 1, here: bool = True, life: int = 1) -> None:
        """Bodies come, as the engine and the front know of them."""
        identity = self.area["identity"].latest.copy()
        for row in rows:
            identity[row]["present"], identity[row]["name"] = present, f"{name}-{row}".encode()
            identity[row]["generation"] = life
            self.bodies.pop(row, None)
            if here:
                self.bodies[row] = object()
        self.area["identity"].publish(identity, 500)

    def session(self, name: str, **join: Any) -> Session:
        """A client joins."""
        address = ("10.0.0.7", 4000 + len(self.clients))
        client = ClientSession(Join(name=name, **join), self.key, random.Random(len(self.clients)))
        self.clients[address], self.events[name] = client, []
        for _ in range(4):
            for data in client.outgoing(self.now):
                for happening in self.sessions.receive(data, address, self.now):
                    if isinstance(happening, Joined):
                        joined = happening.session
            self.hear()
        self.events[name].clear()
        return joined

    def member(self, row: int, period: float = 0.5, **join: Any) -> CrewMember:
        """A pilot joins; the next state is due now."""
        session = self.session(f"auv-{row}", **join)
        ticks = 25 if join.get("lockstep_ns") else 0
        berth = SessionGrant(row, f"auv-{row}", "lauv", 1, True, True, Right(0), False, 0, (), (), lockstep_ticks=ticks)
        member = CrewMember(session, berth, period, next_state=self.now)
        self.crews.join(member)
        return member

    def members(self, count: int, **more: Any) -> list[CrewMember]:
        return [self.member(row, **more) for row in range(count)]

    def watch(self, name: str = "eye", period: float = 0.1) -> Session:
        """An observer joins, and asks for all bodies."""
        session = self.session(name, role=int(Role.OBSERVER))
        self.observers.join(session, self.area["identity"].latest[:0])
        self.observers.set_view(session, Observe(round(period * 1e9), None, None, 1e12, 0), self.now)
        return session

    def datagrams(self) -> list[tuple[bytes, tuple[str, int]]]:
        """What goes out, in its order."""
        outgoing, self.broadcast.outgoing = self.broadcast.outgoing, []
        return [datagram for batch in outgoing for datagram in batch]

    def hear(self) -> None:
        """The clients take what was sent to them."""
        self.broadcast.collect_session_datagrams()
        for data, address in self.datagrams():
            client = self.clients[address]
            self.events[client.join.name] += client.receive(data, self.now)

    def states(self, member: CrewMember) -> list[tuple[int, bool]]:
        """(tick, a step?) of the states that its client heard; they are of its own row."""
        states = [e for e in self.events[member.session.name] if isinstance(e, State)]
        assert all(s.motion is not None and s.motion[0] == member.row + 0.5 for s in states)
        return [(s.tick, s.step) for s in states]

    def turn(self, now: float | None = None) -> float:
        """A turn, and what is sent in it arrives."""
        self.now = self.now if now is None else now
        later = self.broadcast.poll(self.now)
        self.hear()
        return later


@pytest.fixture
def quay() -> Quay:
    return Quay()


# -- who is due ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("count", [1, MANY])
def test_each_that_is_due_hears_its_own_state(count: int, keyed: bool) -> None:
    quay = Quay(keyed)
    members = quay.members(count + 1)
    members[-1].next_state = quay.now + 0.01
    quay.turn()
    assert [quay.states(m) for m in members] == [[(500, False)]] * count + [[]]
    quay.clock = (600, 2)
    quay.turn(quay.now + 0.01)
    assert [quay.states(m) for m in members] == [[(500, False)]] * count + [[(600, False)]]
    received = [e for e in quay.events[members[-1].session.name] if isinstance(e, State)]
    assert (received[0].time_ns, received[0].run_state) == (600 * STEP_NS, 2)
    assert not quay.broke


def test_lockstep_clients_and_those_that_want_no_states_are_sent_none(quay: Quay) -> None:
    silent = [quay.member(0, lockstep_ns=100_000_000), quay.member(1, period=math.inf)]
    assert quay.turn() == math.inf
    assert [quay.states(m) for m in silent] == [[], []]


@pytest.mark.parametrize(("late", "following"), [(0.0, 0.5), (0.125, 0.5), (0.5, 1.0), (0.625, 1.125), (9.0, 9.5)])
def test_states_keep_their_period_unless_they_are_later_than_one(quay: Quay, late: float, following: float) -> None:
    member = quay.member(0)
    begun = quay.now
    quay.turn(begun + late)
    assert member.next_state == begun + following and len(quay.states(member)) == 1


@pytest.mark.parametrize(
    ("periods", "later"), [((), math.inf), ((0.5,), BATCHING_S), ((0.5, 0.008), 0.002), ((0.001,), 0.001)]
)
def test_when_to_call_again(quay: Quay, periods: tuple[float, ...], later: float) -> None:
    for row, period in enumerate(periods):
        quay.member(row, period=period)
    assert quay.turn() == pytest.approx(quay.now + later)
    quay.watch(period=0.0625)
    quay.turn()
    assert quay.turn() == pytest.approx(quay.now + min(later, 0.0625)), "an observer may be due before"


def test_an_observer_that_is_due_first_is_not_kept_waiting(quay: Quay) -> None:
    quay.member(0)
    quay.watch(period=0.0625)
    quay.turn()
    quay.now += 0.0615
    assert quay.broadcast.poll(quay.now) == pytest.approx(quay.now + 0.001)


@pytest.mark.parametrize("away", [{"present": 0}, {"here": False}, {"life": 0}], ids=["absent", "unknown", "another's"])
def test_a_body_that_is_not_there_yet_has_no_state(quay: Quay, away: dict[str, Any]) -> None:
    first, other = quay.members(2)
    quay.enter([0], **away)
    quay.turn()
    assert (quay.states(first), quay.states(other)) == ([], [(500, False)])
    assert (first.is_aboard, other.is_aboard) == (False, True)
    quay.enter([0])
    for _ in range(2):
        quay.clock = (quay.clock[0] + 1, 1)
        quay.turn(quay.now + 0.5)
    assert quay.states(first) == [(501, False), (502, False)] and len(quay.states(other)) == 3


def test_where_nobody_is_aboard_nothing_is_written(quay: Quay, monkeypatch: pytest.MonkeyPatch) -> None:
    quay.member(0)
    quay.enter([0], present=0)
    monkeypatch.setattr(quay.broadcast.writer, "write", None)
    quay.turn()
    assert not quay.broke


def test_who_is_where_is_a_copy(quay: Quay) -> None:
    identity = quay.broadcast.identity()
    assert bytes(identity[3]["name"]) == b"auv-3" and len(identity) == ROWS
    quay.enter([3], name="another")
    assert bytes(identity[3]["name"]) == b"auv-3"


# -- what goes, and in what order ----------------------------------------------------------------------------------


def test_what_sessions_have_to_say_goes_out_once(quay: Quay) -> None:
    member = quay.member(0)
    quay.broadcast.collect_session_datagrams()
    assert quay.broadcast.outgoing == [], "nothing is nothing"
    quay.sessions.push(member.session, Notice(1, "look"))
    quay.sessions.flush(quay.now)
    quay.broadcast.collect_session_datagrams()
    quay.broadcast.collect_session_datagrams()
    assert len(quay.broadcast.outgoing) == 1 and quay.sessions.outgoing == []
    quay.hear()
    assert quay.events["auv-0"] == [Notice(1, "look")]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("count", [1, 2, MANY])
def test_a_step_comes_behind_what_happened_before_it_and_is_repeated(count: int, keyed: bool) -> None:
    quay = Quay(keyed)
    members = quay.members(count, lockstep_ns=100_000_000)
    for k, m in enumerate(members):
        for _ in range(k + 1):
            quay.sessions.push(m.session, Notice(k, "look"))
    quay.clock = (999, 3)
    quay.broadcast.send_steps(members, 525, quay.now)
    quay.hear()
    for k, m in enumerate(members):
        *notices, state = quay.events[m.session.name]
        assert notices == [Notice(k, "look")] * (k + 1)
        assert isinstance(state, State) and (state.tick, state.step, state.run_state) == (525, True, 3)
        assert quay.states(m) == [(525, True)]
        question = m.session.pending_step
        assert question is not None and question.tick == 525
        assert question.repeat_at == quay.now + m.session.rtt_estimator.timeout()
    quay.broadcast.send_steps(members, 550, quay.now)
    quay.broadcast.collect_session_datagrams()
    assert len(quay.datagrams()) == count, "which are lost"
    quay.now += 1.0
    quay.sessions.poll(quay.now)
    quay.hear()
    assert [quay.states(m) for m in members] == [[(525, True), (550, True)]] * count


@pytest.mark.parametrize("step", [False, True])
def test_what_goes_to_many_is_one_matrix(quay: Quay, step: bool) -> None:
    members = quay.members(MANY, **({"lockstep_ns": 100_000_000} if step else {}))
    quay.sessions.push(members[0].session, Notice(1, "look"))
    if step:
        quay.broadcast.send_steps(members, 525, quay.now)
    else:
        quay.sessions.flush(quay.now)
        quay.broadcast.poll(quay.now)
    events, rows = quay.broadcast.outgoing
    assert isinstance(events, list) and len(events) == 1, "what was said before goes before"
    assert isinstance(rows, DatagramRows) and rows.sessions == [m.session for m in members] and len(rows.matrix) == MANY
    assert [address for _, address in rows] == [m.session.address for m in members]
    assert [data for data, _ in rows] == [row.tobytes() for row in rows.matrix]


def test_each_of_the_sealed_goes_alone() -> None:
    quay = Quay(keyed=True)
    members = quay.members(MANY)
    quay.broadcast.poll(quay.now)
    assert [batch.sessions for batch in quay.broadcast.outgoing if isinstance(batch, DatagramRows)] == [
        [m.session] for m in members
    ]


def test_few_go_with_the_sessions_own(quay: Quay) -> None:
    quay.members(2)
    quay.broadcast.poll(quay.now)
    (batch,) = quay.broadcast.outgoing
    assert isinstance(batch, list) and len(batch) == 2


# -- observers -----------------------------------------------------------------------------------------------------


def test_observers_that_are_due_see_everybody(quay: Quay) -> None:
    quay.enter([7], present=0)
    eyes = [quay.watch(name) for name in ("eye", "lens")]
    quay.clock = (600, 2)
    quay.turn()
    for s in eyes:
        fleets = [e for e in quay.events[s.name] if isinstance(e, Fleet)]
        assert [(f.tick, f.time_ns, f.run_state) for f in fleets] == [(600, 600 * STEP_NS, 2)] * 3
        assert [(f.part, f.parts) for f in fleets] == [(k, 3) for k in range(-(-(ROWS - 1) // FLEET_BODIES))]
        seen = np.concatenate([np.frombuffer(f.bodies, FLEET_DTYPE) for f in fleets])
        assert seen["id"].tolist() == [row for row in range(ROWS) if row != 7]
        assert (seen["p_WB_W"][:, 0] == seen["id"] + 0.5).all()
    quay.turn()
    assert all(len(quay.events[s.name]) == 3 for s in eyes), "not before it is due again"


# -- failures ------------------------------------------------------------------------------------------------------


def breaks(quay: Quay, monkeypatch: pytest.MonkeyPatch, *rows: int) -> list[int]:
    """States of these rows cannot be written. How many were to be written at a time."""
    real, asked = quay.broadcast.writer.write, list[int]()

    def bodies(members: Sequence[CrewMember], view: Any, kind: Type) -> Iterator[Any]:
        asked.append(len(members))
        for m in members:
            if m.row in rows:
                raise ZeroDivisionError(m.session.name)
        yield from real(members, view, kind)

    monkeypatch.setattr(quay.broadcast.writer, "write", bodies)
    return asked


@pytest.mark.parametrize("step", [False, True])
def test_a_failure_costs_the_session_that_met_it(quay: Quay, step: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    members = quay.members(MANY, **({"lockstep_ns": 100_000_000} if step else {}))
    asked = breaks(quay, monkeypatch, 1, 3)
    if step:
        quay.broadcast.send_steps(members, 525, quay.now)
        quay.hear()
    else:
        quay.turn()
    assert [str(e) for e in quay.broke] == ["auv-1", "auv-3"] and quay.sessions.drops["internal"] == 2
    for m in members:
        closed = [e for e in quay.events[m.session.name] if isinstance(e, SessionClosed)]
        if m.row in (1, 3):
            assert [e.text for e in closed] == ["internal server error while serving this session"]
            assert m.session.is_over and quay.states(m) == []
        else:
            assert not closed and quay.states(m) == [(525 if step else 500, step)]
            assert (m.session.pending_step is not None) == step
    assert asked == [MANY] + [1] * MANY


def test_a_failure_of_one_alone_is_not_tried_again(quay: Quay, monkeypatch: pytest.MonkeyPatch) -> None:
    member = quay.member(0)
    asked = breaks(quay, monkeypatch, 0)
    quay.turn()
    assert asked == [1] and member.session.is_over and [str(e) for e in quay.broke] == ["auv-0"]


def test_a_session_that_ended_meanwhile_is_left_out(quay: Quay, monkeypatch: pytest.MonkeyPatch) -> None:
    members = quay.members(MANY)
    quay.sessions.bye(members[2].session, "enough")
    asked = breaks(quay, monkeypatch, 0, 2)
    quay.turn()
    assert [str(e) for e in quay.broke] == ["auv-0"] and asked == [MANY] + [1] * (MANY - 1)
    assert quay.states(members[2]) == [] and quay.states(members[4]) == [(500, False)]
