"""The formal model of lockstep: its properties in all states, and its traces against the code."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.protocol import lockstep_model as model
from tests.protocol.lockstep_model import Bounds, Datagram, Rules, State
from tests.protocol.model_checker import Action, new_items_only
from wavesim_sdk.testing import stopped_clock
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.client import ClientSession
from wavesim_sdk.wire.items import Notice, Ping
from wavesim_sdk.wire.messages import Done, Events, Join, Requests, StepMessage
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Admission, Joined, Resumed, Session, StepDone
from wavesim_sdk.wire.state import State as BodyState
from wavesim_server.network.lockstep import Barrier

CHECKED = [
    Bounds(2, 1, 1),
    Bounds(2, 0, 1, time_limits=1),
    Bounds(2, 0, 1, takeovers=1),
    Bounds(1, 1, 1, takeovers=1),
    Bounds(1, 1, 0, time_limits=1, loses=True),
]
LARGE = [
    Bounds(2, 1, 1, time_limits=1),
    Bounds(2, 1, 1, takeovers=1),
    Bounds(2, 0, 1, takeovers=1, time_limits=1),
    Bounds(2, 1, 1, time_limits=1, loses=True),
    Bounds(3, 1, 1),
]
NEXT_S = 1.1  #: longer than every timeout of a repetition
TRACES = 1000  #: number of traces of each model that are replayed against the code


def check_model(bounds: Bounds) -> None:
    found = model.explore(bounds)
    assert len(found.parents) > 500
    assert not [state for state in found.parents if model.violations(state)]
    assert not model.stuck_states(found, bounds)


@pytest.mark.parametrize("bounds", CHECKED)
def test_the_properties_hold_in_every_state_and_every_step_can_be_completed(bounds: Bounds) -> None:
    check_model(bounds)


@pytest.mark.long
@pytest.mark.parametrize("bounds", LARGE)
def test_the_properties_hold_within_large_bounds(bounds: Bounds) -> None:
    check_model(bounds)


# -- the checker notices wrong rules -----------------------------------------------------------------------------------


class IgnoresEvents(Rules):
    def is_released_with(self, received: int, last_event: int) -> bool:
        return True


class AcceptsOldSteps(Rules):
    def is_newer(self, tick: int, current: int) -> bool:
        return tick != current


class IgnoresRequests(Rules):
    def counts_requests(self, executed: int, counted: int) -> bool:
        return True


class AcceptsOldAnswers(Rules):
    def belongs(self, tick: int, pending: int) -> bool:
        return True


class NeverAnswersAgain(Rules):
    def repeats_answer(self) -> bool:
        return False


class NeverAsksAgain(Rules):
    def repeats_step(self) -> bool:
        return False


class KeepsTheStep(Rules):
    def hands_over_step(self) -> bool:
        return False


class NeverForgives(Rules):
    def forgives(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("rules", "bounds", "found"),
    [
        (IgnoresEvents(), Bounds(1, 1, 0), "a program got a step before an event that preceded it"),
        (AcceptsOldSteps(), Bounds(2, 0, 0, time_limits=1), "a program got a step twice or out of order"),
        (IgnoresRequests(), Bounds(1, 0, 1), "an answer counted before its requests"),
        (AcceptsOldAnswers(), Bounds(2, 0, 0, time_limits=1), "an answer counted for another step"),
        (
            NeverForgives(),
            Bounds(1, 0, 0, time_limits=1),
            "a program that has answered its last step is not waited for",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Rules) else None,
)
def test_a_wrong_rule_violates_a_property(rules: Rules, bounds: Bounds, found: str) -> None:
    assert any(found in model.violations(state) for state in model.explore(bounds, rules).parents)
    assert not any(model.violations(state) for state in model.explore(bounds).parents)


@pytest.mark.parametrize(
    ("rules", "bounds"),
    [
        (NeverAnswersAgain(), Bounds(1, 0, 0, loses=True)),
        (NeverAsksAgain(), Bounds(1, 0, 0, loses=True)),
        (KeepsTheStep(), Bounds(1, 0, 0, takeovers=1)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Rules) else None,
)
def test_with_a_wrong_rule_a_step_gets_stuck(rules: Rules, bounds: Bounds) -> None:
    assert model.stuck_states(model.explore(bounds, rules), bounds)
    assert not model.stuck_states(model.explore(bounds), bounds)


# -- traces of the model against the code -------------------------------------------------------------------------------


class Replay:
    """The real sessions and the real barrier, which perform the actions of a trace."""

    def __init__(self) -> None:
        self.now, self.tick, self.pushed = 1000.0, 0, 0
        admission = Admission(0, 4_000_000, 1500.0)
        self.server = ServerSessions(
            lambda join, old: admission, stopped_clock, 0.5, 1e9, rng=random.Random(1), max_sessions=8, takeover=True
        )
        self.barrier = Barrier(1e6)
        self.wire: dict[Datagram, bytes] = {}
        self.number = -1
        self.join()

    def join(self) -> Session | None:
        """Let a program join over a perfect network; return the session that it replaces."""
        self.number += 1
        self.client = ClientSession(Join(name="auv"), rng=random.Random(self.number))
        self.address, self.steps = ("127.0.0.1", 4000 + self.number), []
        former = None
        while self.client.welcome is None:
            for data in self.client.outgoing(self.now):
                for happened in self.server.receive(data, self.address, self.now):
                    match happened:
                        case Joined(session):
                            self.session = session
                        case Resumed(session, old):
                            self.session, former = session, old
            for data, address in self.server.outgoing:
                if address == self.address:
                    self.client.receive(data, self.now)
            self.server.outgoing.clear()
            self.now += NEXT_S
        return former

    def perform(self, action: Action) -> None:
        match action:
            case ("server asks",):
                self.tick += 1
                self.barrier.begin(self.tick, [self.session.token], self.now)
                self._ask()
                self._release(self.now)
            case ("time limit",):
                self._release(self.barrier.deadline)
            case ("server pushes",):
                self.pushed += 1
                self.server.push(self.session, Notice(self.pushed, "event"))
                with new_items_only(self.session.outbox):
                    self.server.flush(self.now)
            case ("server sends",):
                self.now += NEXT_S
                self.server.poll(self.now)
            case ("program asks",):
                self.client.request(Ping(25e3))
                self._client_sends_new()
            case ("program answers",):
                self.client.done(self.steps[-1], None)
                self._client_sends_new()
            case ("program sends",):
                self.now += NEXT_S
                self._client_sends()
            case ("takeover",):
                former = self.join()
                assert former is not None
                if self.barrier.replace_client(former.token, self.session.token, same_client=False):
                    self._ask()
            case ("deliver", datagram):
                self._deliver(datagram)  # type: ignore[arg-type]
        for data, address in self.server.outgoing:
            if address == self.address:
                self._post(data, from_client=False)
        self.server.outgoing.clear()

    def _ask(self) -> None:
        with new_items_only(self.session.outbox):
            step = StepMessage(self.tick, 1000 * self.tick, 1, 0, None, (), None, (), 0)
            self.server.step(self.session, step, (), self.now)

    def _release(self, now: float) -> None:
        self.barrier.take_replies(now)

    def _client_sends(self) -> None:
        for data in self.client.outgoing(self.now):
            self._post(data, from_client=True)

    def _client_sends_new(self) -> None:
        with new_items_only(self.client._outbox):
            self._client_sends()

    def _deliver(self, datagram: Datagram) -> None:
        data = self.wire[datagram]
        if datagram[0] in ("REQUESTS", "DONE", "ACK"):
            for happened in self.server.receive(data, self.address, self.now):
                if isinstance(happened, StepDone):
                    self.barrier.add_reply(self.session.token, happened.message.tick, happened)
                    self._release(self.now)
        else:
            for event in self.client.receive(data, self.now):
                if isinstance(event, BodyState) and event.step:
                    self.steps.append(event.tick)
            self._client_sends_new()

    def _post(self, data: bytes, from_client: bool) -> None:
        """Put a datagram on the wire under its name in the model."""
        header = codec.decode_header(data, from_client)
        message: Any = codec.decode_payload(data, header)
        found: Datagram
        match message:
            case StepMessage():
                found = ("STEP", self.number, message.tick, message.last_event, header.ack)
            case Events(first, items):
                found = ("EVENTS", self.number, first, first + len(items) - 1, header.ack)
            case Requests(first, items):
                found = ("REQUESTS", self.number, first, first + len(items) - 1, header.ack)
            case Done(tick, last_request):
                found = ("DONE", self.number, tick, last_request, header.ack)
            case _:
                found = ("ACK" if from_client else "KEEPALIVE", self.number, header.ack)
        self.wire.setdefault(found, data)

    def compare(self, state: State) -> None:
        """Assert that the real sessions are in a state of the model."""
        p, client = state.program, self.client
        assert self.number == p.number
        assert (client._inbox.received, client._outbox.last) == (p.received, p.asked)
        assert client._outbox.last - len(client._outbox) == p.acknowledged
        assert tuple(self.steps) == p.steps
        assert (0 if client._done is None else client._done.tick) == p.answered
        s, session = state.server, self.session
        assert session.outbox.last == s.events and session.inbox.received == s.executed
        assert session.outbox.last - len(session.outbox) == s.acknowledged
        assert (0 if session.pending_step is None else session.pending_step.tick) == s.pending
        assert (-1 if session.pending_done is None else session.pending_done.message.last_request) == s.done
        assert max(session.last_answered_tick, 0) == s.last_answered
        assert (session.token in self.barrier.dismissed) == s.is_dismissed
        assert (self.barrier.waiting == {session.token}) == state.is_waiting
        assert bool(self.barrier.waiting) == state.is_waiting
        assert state.wire <= self.wire.keys(), "the code did not send what the model sends"


def replay(trace: list[tuple[Action, State]]) -> None:
    """Perform a trace and compare each state."""
    run = Replay()
    run.compare(State())
    for action, state in trace:
        run.perform(action)
        run.compare(state)


def replay_all(bounds: Bounds, traces: int) -> None:
    for trace in model.explore(bounds).sampled(traces):
        replay(trace)


@pytest.mark.parametrize("bounds", [b for b in CHECKED if not b.loses])
def test_the_code_follows_the_model(bounds: Bounds) -> None:
    replay_all(bounds, TRACES)


@pytest.mark.long
@pytest.mark.parametrize("bounds", [b for b in LARGE if not b.loses])
def test_the_code_follows_the_model_within_large_bounds(bounds: Bounds) -> None:
    replay_all(bounds, 20 * TRACES)


def _release_early(self: ServerSessions, session: Session) -> list[StepDone]:
    done, session.pending_done = session.pending_done, None
    if done is not None:
        session.pending_step, session.last_answered_tick = None, done.message.tick
    return [] if done is None else [done]


def _never_forgive(self: Barrier, client: int, tick: int, reply: StepDone) -> None:
    if tick == self.tick:
        self.replies[client] = reply
        self.waiting.discard(client)


def _keep_step(self: Barrier, old: int, new: int, same_client: bool) -> bool:
    self.remove_client(old)
    return False


def _hand_over_early(self: ClientSession) -> list[object]:
    step = self._step
    if step is None or self._handed:
        return []
    self._handed = True
    return list(self._build_state(step, step=True))


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "bounds"),
    [
        (ServerSessions, "_release_done", _release_early, Bounds(1, 0, 1)),
        (Barrier, "add_reply", _never_forgive, Bounds(2, 0, 0, time_limits=1)),
        (Barrier, "replace_client", _keep_step, Bounds(1, 0, 0, takeovers=1)),
        (ClientSession, "_release_step", _hand_over_early, Bounds(1, 1, 0)),
    ],
    ids=["requests", "late answer", "takeover", "events"],
)
def test_a_wrong_rule_in_the_code_leaves_the_model(
    owner: type, name: str, wrong: object, bounds: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay_all(bounds, TRACES)
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises((AssertionError, KeyError)):
        replay_all(bounds, TRACES)
