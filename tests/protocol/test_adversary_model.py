"""The formal model of a session under attack: its properties in all states, and its traces against the code."""

from __future__ import annotations

import pytest

from tests.protocol import adversary_model as model
from tests.protocol.adversary_model import ADVERSARY, CLIENT, Action, Bounds, Rules, State
from wavesim_sdk.testing import InMemoryLink, sessions_for_tests
from wavesim_sdk.wire import codec, seal
from wavesim_sdk.wire.client import ClientSession
from wavesim_sdk.wire.messages import Join, Type

KEY = bytes(range(32))
ADDRESSES = {CLIENT: ("127.0.0.1", 4000), ADVERSARY: ("127.0.0.1", 6666)}
BOUNDS = [Bounds(3, 8), Bounds(3, 8, is_silent=True)]
NEXT_S = 1.0  #: longer than the interval after which a client that hears nothing sends an ACK


@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_properties_hold_in_every_state(bounds: Bounds) -> None:
    found = model.explore(bounds).parents
    assert len(found) > 3000
    assert not [state for state in found if model.violations(state, bounds)]
    assert any(state.is_removed for state in found) == bounds.is_silent
    assert any(state.address == ADVERSARY for state in found), "an adversary can redirect a session, but not end it"


class CopiesAreRecorded(Rules):
    def records(self, state: State, sequence: int) -> State:
        return state._replace(window=state.window | {sequence})


class ReplaysAreAccepted(Rules):
    def is_replay(self, state: State, sequence: int) -> bool:
        return False


class ProofsAreAcceptedTwice(Rules):
    def is_used_proof(self, state: State, sequence: int) -> bool:
        return False


class UsedProofsAreIgnored(Rules):
    def ignores_proof(self, state: State, sequence: int) -> bool:
        return self.is_used_proof(state, sequence)


class DroppedDatagramsCount(Rules):
    def counts_as_life(self, state: State) -> bool:
        return True


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (CopiesAreRecorded(), "a client that sends was removed"),
        (ReplaysAreAccepted(), "a datagram counted as a sign of life twice"),
        (ProofsAreAcceptedTwice(), "a datagram counted as a sign of life twice"),
        (DroppedDatagramsCount(), "a datagram counted as a sign of life twice"),
        (UsedProofsAreIgnored(), "a client that proved its address did not get its session back"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Rules) else None,
)
def test_a_wrong_rule_violates_a_property(rules: Rules, found: str) -> None:
    bounds = Bounds(2, 6)
    assert any(found in model.violations(state, bounds) for state in model.explore(bounds, rules).parents)


class Replay:
    """A real session with a key, in which the client, the network and the adversary perform the actions of a trace."""

    def __init__(self) -> None:
        keys = seal.Keyring([seal.KeyHolder("a", KEY)])
        link = InMemoryLink(
            ClientSession(Join(name="a"), KEY), sessions_for_tests(keys=keys), address=ADDRESSES[CLIENT]
        )
        link.run(0.2)
        self.client, self.server, self.session, self.now = link.client, link.sessions, link.session, link.now
        self.sent: list[bytes] = []
        self.challenges: dict[str, bytes] = {}
        self.signs_of_life = 0
        self._send()

    def _send(self) -> None:
        self.now += NEXT_S
        self.start = self.now
        self._take(1)

    def _take(self, count: int) -> None:
        found = self.client.outgoing(self.now)
        assert len(found) == count
        self.sent += found

    def perform(self, action: Action, after: State) -> None:
        self.now += 0.001
        match action:
            case ("network delivers", (int(sequence), _)):
                self._receive(self.sent[sequence - 1], CLIENT)
            case ("adversary delivers", (int(sequence), _), str(source)):
                self._receive(self.sent[sequence - 1], source)
            case ("client proves" | "adversary relays", str(address)):
                self.client.receive(self.challenges[address], self.now)
                self._take(1)
            case ("period ends",):
                if after.is_removed:
                    self.now = self.session.last_heard + 5.001  # the keep-alive timeout
                self.server.poll(self.now)
                self.server.outgoing.clear()
                if len(after.sent) > len(self.sent):
                    self._send()
                self.start = self.now

    def _receive(self, data: bytes, source: str) -> None:
        self.server.receive(data, ADDRESSES[source], self.now)
        self.signs_of_life += self.session.last_heard == self.now
        for answer, address in self.server.outgoing:
            if codec.decode_header(answer, from_client=False).type is Type.PROVE:
                self.challenges[next(name for name, a in ADDRESSES.items() if a == address)] = answer
        self.server.outgoing.clear()

    def compare(self, state: State) -> None:
        """Assert that the real session is in a state of the model."""
        assert self.session.address == ADDRESSES[state.address]
        assert self.session.is_over == state.is_removed
        assert self.signs_of_life == state.signs_of_life
        assert state.is_removed or (self.session.last_heard > self.start) == state.is_heard
        assert state.challenges <= self.challenges.keys()


def replay_all(bounds: Bounds) -> int:
    explored = model.explore(bounds)
    parents = explored.parents
    # a trace that another one continues needs no replay of its own
    inner = {step[0] for step in parents.values() if step is not None}
    ends = [state for state in parents if state not in inner]
    for end in ends:
        run = Replay()
        for action, state in explored.trace(end):
            run.perform(action, state)
            run.compare(state)
    return len(ends)


@pytest.mark.parametrize("bounds", [Bounds(3, 5), Bounds(3, 5, is_silent=True)])
def test_the_code_follows_the_model_in_every_state(bounds: Bounds) -> None:
    assert replay_all(bounds) > 100


def test_a_session_that_accepts_a_proof_twice_leaves_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal.SessionSeal, "is_new", lambda self, sequence: True)
    with pytest.raises(AssertionError):
        replay_all(Bounds(2, 4))
