"""The formal model of a session: its properties in all states, and its traces against the code."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.protocol import session_model as model
from tests.protocol.model_checker import new_items_only
from tests.protocol.session_model import Action, Bounds, Datagram, Rules, State
from wavesim_sdk.testing import stopped_clock
from wavesim_sdk.wire import address_validation, codec, recently_ended
from wavesim_sdk.wire.client import ClientSession
from wavesim_sdk.wire.items import Notice, Ping
from wavesim_sdk.wire.messages import (
    Bye,
    Challenge,
    Events,
    Hello,
    Join,
    Leave,
    Refusal,
    Refuse,
    Requests,
    Welcome,
)
from wavesim_sdk.wire.reliable import Inbox, Outbox
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Admission, Joined, Requested, Resumed, Session

#: bounds of the models that are checked in each run; the last two lose datagrams for good
CHECKED = [
    Bounds(2, 1, 1),
    Bounds(1, 0, 2),
    Bounds(0, 1, 2),
    Bounds(1, 0, 2, server_ends=True),
    Bounds(1, 1, 1, server_ends=True, loses=True),
    Bounds(1, 0, 2, leaves=False, loses=True),
]
LARGE = [Bounds(1, 1, 2), Bounds(1, 2, 1, server_ends=True), Bounds(2, 1, 1, server_ends=True, loses=True)]
RESUMED = Bounds(1, 0, 2)
NEXT_S = 1.1  #: longer than every timeout of a repetition
TRACES = 1000  #: number of traces of each model that are replayed against the code


def check_model(bounds: Bounds) -> None:
    found = model.explore(bounds)
    assert len(found.parents) > 500
    assert not [state for state in found.parents if model.violations(state)]
    assert not model.stuck_states(found)


@pytest.mark.parametrize("bounds", CHECKED)
def test_the_properties_hold_in_every_state_and_every_exchange_can_be_completed(bounds: Bounds) -> None:
    check_model(bounds)


@pytest.mark.long
@pytest.mark.parametrize("bounds", LARGE)
def test_the_properties_hold_within_large_bounds(bounds: Bounds) -> None:
    check_model(bounds)


# -- the checker notices wrong rules -----------------------------------------------------------------------------------


class AcceptsGaps(Rules):
    def accepts_list(self, first: int, received: int) -> bool:
        return True


class AcceptsTwice(Rules):
    def is_new(self, number: int, received: int) -> bool:
        return True


class ForgetsOnResumption(Rules):
    def carried_over(self, old: model.Session) -> tuple[int, ...]:
        return ()


class ForgetsTheNewest(Rules):
    def carried_over(self, old: model.Session) -> tuple[int, ...]:
        return super().carried_over(old)[:-1]


class JoinsAgain(Rules):
    def allows_join_again(self, session: model.Session) -> bool:
        return True


class NeverRepeats(Rules):
    def first_to_send(self, session: model.Session) -> int:
        return len(session.items)


class EndsAtACrash(Rules):
    def ends_without_request(self, state: State) -> bool:
        return True


@pytest.mark.parametrize(
    ("rules", "bounds", "found"),
    [
        (AcceptsGaps(), Bounds(2, 0, 1), "an event was lost"),
        (AcceptsTwice(), Bounds(1, 0, 1), "the events of a session arrived twice, in another order or with gaps"),
        (AcceptsTwice(), Bounds(0, 1, 1), "a request was executed twice"),
        (ForgetsOnResumption(), Bounds(2, 0, 2), "an event was lost"),
        (ForgetsTheNewest(), Bounds(2, 0, 2), "an event was lost"),
        (JoinsAgain(), Bounds(0, 0, 2), "one client has two sessions"),
        (EndsAtACrash(), Bounds(0, 0, 2), "a session ended that neither its client nor the server ended"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Rules) else None,
)
def test_a_wrong_rule_violates_a_property(rules: Rules, bounds: Bounds, found: str) -> None:
    states = model.explore(bounds, rules).parents
    assert any(found in model.violations(state) for state in states)


def test_without_repetition_an_exchange_gets_stuck() -> None:
    bounds = Bounds(2, 0, 1, leaves=False, loses=True)
    assert model.stuck_states(model.explore(bounds, NeverRepeats()))
    assert not model.stuck_states(model.explore(bounds))


# -- traces of the model against the code -------------------------------------------------------------------------------


class Replay:
    """The real sessions of a client and a server, which perform the actions of a trace."""

    def __init__(self, limit: int) -> None:
        self.now, self.pushed, self._limit = 1000.0, 0, limit
        admission = Admission(0, 4_000_000, 1500.0)
        self.server = ServerSessions(
            lambda join, old: admission, stopped_clock, 0.5, 1e9, rng=random.Random(1), max_sessions=8
        )
        self.wire: dict[Datagram, bytes] = {}
        self.sessions: dict[int, Session] = {}
        self.executed: list[int] = []
        self.seen: list[int] = []
        self.attempts: dict[int, int] = {}  # by nonce
        self.addresses: list[tuple[str, int]] = []  # by attempt
        self.port = 4000
        self.client = ClientSession(Join(name="auv"), rng=random.Random(2))

    @property
    def attempt(self) -> int:
        """Attempt of the client's nonce."""
        nonce = self.client._nonce
        if nonce not in self.attempts:
            self.attempts[nonce] = len(self.attempts)
            self.addresses.append(("127.0.0.1", self.port))
        return self.attempts[nonce]

    def perform(self, action: Action) -> None:
        current = self.attempt
        match action:
            case ("client sends",):
                self.now += NEXT_S
                for data in self.client.outgoing(self.now):
                    self._post(data, from_client=True)
            case ("client asks",):
                self.client.request(Ping(25e3))
                with new_items_only(self.client._outbox):
                    for data in self.client.outgoing(self.now):
                        self._post(data, from_client=True)
            case ("client leaves",):
                self.client.leave()
            case ("client restarts",):
                self.port += 1
                join = replace(self.client.join, previous=self.client.ticket)
                self.client = ClientSession(join, rng=random.Random(3))
            case ("server pushes", int(n)):
                self.pushed += 1
                self.server.push(self.sessions[n], Notice(self.pushed, "event"))
                with new_items_only(self.sessions[n].outbox):
                    self.server.flush(self.now)
            case ("server sends", _):
                self.now += NEXT_S
                self.server.poll(self.now)
            case ("server ends", int(n)):
                self.server.bye(self.sessions[n], "the end")
            case ("deliver", datagram):
                self._deliver(datagram)  # type: ignore[arg-type]
        for data, _ in self.server.outgoing:
            self._post(data, from_client=False)
        self.server.outgoing.clear()
        assert self.attempt in (current, current + 1)

    def _deliver(self, datagram: Datagram) -> None:
        kind, n, data = datagram[0], datagram[1], self.wire[datagram]
        assert isinstance(n, int)
        if kind in ("HELLO", "JOIN", "REQUESTS", "ACK", "LEAVE"):
            for happened in self.server.receive(data, self.addresses[n], self.now):
                match happened:
                    case Joined(session) | Resumed(session):
                        self.sessions[self.attempts[session.nonce]] = session
                    case Requested(_, number, _, _):
                        self.executed.append(number)
        elif self.addresses[n] == self.addresses[self.attempt]:
            for event in self.client.receive(data, self.now):
                if isinstance(event, Notice):
                    self.seen.append(event.time_ns)

    def _post(self, data: bytes, from_client: bool) -> None:
        """Put a datagram on the wire under its name in the model."""
        header = codec.decode_header(data, from_client)
        message = codec.decode_payload(data, header)
        token = {s.token: n for n, s in self.sessions.items()}
        token.update({s.token: self.attempts[s.nonce] for s in self.server.by_token.values()})
        n = token.get(header.token, -1)
        found: Datagram
        match message:
            case Hello(nonce):
                found = ("HELLO", self.attempts[nonce])
            case Challenge(nonce):
                found = ("CHALLENGE", self.attempts[nonce])
            case Join():
                previous = token.get(message.previous, -1) if message.previous else -1
                found = ("JOIN", self.attempts[message.nonce], previous)
            case Welcome():
                found = ("WELCOME", self.attempts[message.nonce])
            case Refuse(nonce, code):
                found = ("REFUSE", self.attempts[nonce], "used" if code == Refusal.COOKIE else "expired")
            case Requests(first, items):
                found = ("REQUESTS", n, first, first + len(items) - 1, header.ack)
            case Events(first, items):
                found = ("EVENTS", n, first, tuple(item[1] for item in items), header.ack)
            case Leave():
                found = ("LEAVE", n, header.ack)
            case Bye():
                found = ("BYE", n, header.ack)
            case _:
                found = ("ACK" if from_client else "KEEPALIVE", n, header.ack)
        self.wire.setdefault(found, data)

    def compare(self, state: State) -> None:
        """Assert that the real sessions are in a state of the model."""
        c, real = state.client, self.client
        assert self.attempt == c.attempt
        assert real.phase.value == c.phase
        assert (real._inbox.received, real._outbox.last) == (c.received, c.asked)
        assert real._outbox.last - len(real._outbox) == c.acknowledged
        assert tuple(self.seen) == state.seen
        for n, session in enumerate(state.sessions):
            found = self.sessions.get(n)
            assert (found is None) == (session.status == model.NEW)
            if found is not None:
                assert found.is_over == (session.status == model.OVER)
                assert found.inbox.received == session.executed
            if found is not None and session.status == model.LIVE:
                assert tuple(item[1] for item in found.outbox.unacknowledged()) == session.items[session.acknowledged :]
        assert state.wire <= self.wire.keys(), "the code did not send what the model sends"


def replay(trace: list[tuple[Action, State]], bounds: Bounds) -> None:
    """Perform a trace, compare each state, and at the end deliver each datagram that the model ignores there."""
    run, rules, state = Replay(bounds.attempts), Rules(), model.initial(bounds)
    run.compare(state)
    for action, state in trace:
        run.perform(action)
        run.compare(state)
    for datagram in sorted(state.wire):
        if model.deliver(state, datagram, bounds, rules) == state:
            run.perform(("deliver", datagram))
            run.compare(state)


@pytest.fixture(autouse=True)
def lasting_cookies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model has no clock, so cookies and the memory of ended sessions do not expire."""
    monkeypatch.setattr(address_validation, "COOKIE_PERIOD_S", 1e9)
    monkeypatch.setattr(recently_ended, "KEPT_S", 1e9)
    monkeypatch.setattr(recently_ended, "ANSWER_S", 0.0)


@pytest.mark.parametrize("bounds", [b for b in CHECKED if not b.loses])
def test_the_code_follows_the_model(bounds: Bounds) -> None:
    for trace in model.explore(bounds).sampled(TRACES):
        replay(trace, bounds)


@pytest.mark.long
@pytest.mark.parametrize("bounds", [b for b in LARGE if not b.loses])
def test_the_code_follows_the_model_within_large_bounds(bounds: Bounds) -> None:
    for trace in model.explore(bounds).sampled(20 * TRACES):
        replay(trace, bounds)


def test_the_replayed_traces_contain_every_action() -> None:
    found = [model.explore(b) for b in (Bounds(1, 0, 2, server_ends=True), Bounds(0, 1, 2))]
    actions = [action for each in found for trace in each.sampled(TRACES) for action, _ in trace]
    assert {action[0] if action[0] != "deliver" else action[1][0] for action in actions} == {  # type: ignore[index]
        *("client sends", "client asks", "client leaves", "client restarts"),
        *("server pushes", "server sends", "server ends"),
        *("HELLO", "CHALLENGE", "JOIN", "WELCOME", "REFUSE", "REQUESTS", "EVENTS", "ACK", "KEEPALIVE", "LEAVE", "BYE"),
    }


def _accept_gaps(self: Inbox, first: int, items: list[object]) -> list[tuple[int, object]]:
    new = items[max(0, self.received + 1 - first) :]
    self.received = max(self.received, first + len(items) - 1)
    return list(enumerate(new, self.received - len(new) + 1))


def _forget_unacknowledged(self: ServerSessions, old: Session, session: Session) -> None:
    return None


def _acknowledge_all(self: Outbox, number: int, now: float) -> None:
    self._pending.clear()


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "bounds"),
    [
        (Inbox, "accept", _accept_gaps, Bounds(2, 0, 1)),
        (ServerSessions, "_carry_over", _forget_unacknowledged, RESUMED),
        (Outbox, "acknowledge", _acknowledge_all, Bounds(2, 0, 1)),
        (address_validation.AddressValidator, "is_replayed_join", lambda *_: False, Bounds(0, 0, 2)),
    ],
    ids=["gaps", "resumption", "acknowledgement", "used join"],
)
def test_a_wrong_rule_in_the_code_leaves_the_model(
    owner: type, name: str, wrong: object, bounds: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = model.explore(bounds)
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises((AssertionError, KeyError)):
        for trace in found.sampled(2000):
            replay(trace, bounds)
