"""Formal model of a session with keys, under attack by an adversary who has no key.

The adversary sees each datagram, delivers copies of it from an address of its own, before or after the original, and
relays what the server sends to that address. It cannot make a sealed datagram. Time is divided into keep-alive periods.
In each period, the client sends one datagram, or nothing if it is silent. A period ends when the network has delivered
everything that the client and the server sent to each other. The properties are:

- the server never removes a client that sends, whatever the adversary does;
- each datagram of the client counts as a sign of life at most once, so the server removes a silent client, too;
- if the last datagram of the client proves its own address and has arrived from there, the session is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol import model_checker
from tests.protocol.model_checker import Action, Exploration

CLIENT, ADVERSARY = "client", "adversary"
DATA = ""  #: what a datagram proves if it is not a PROOF
Datagram = tuple[int, str]  #: sequence, and the address that a PROOF validates


class State(NamedTuple):
    sent: tuple[Datagram, ...] = ()  #: datagrams of the client, in the order of their sequences from 1
    delivered: frozenset[int] = frozenset()  #: sequences that have arrived from the client's address
    challenges: frozenset[str] = frozenset()  #: addresses whose PROVE the client has not received yet
    proven: frozenset[str] = frozenset()  #: addresses whose PROVE the client has received in this period
    address: str = CLIENT  #: address of the session
    window: frozenset[int] = frozenset()  #: sequences that count as received
    newest: int = 0
    signs_of_life: int = 0
    is_heard: bool = False  #: whether there was a sign of life in this period
    period: int = 0
    moves: int = 0  #: number of the adversary's actions
    is_removed: bool = False


class Rules:
    """The receive rules. A test replaces one by a wrong rule."""

    def records(self, state: State, sequence: int) -> State:
        """Process the sequence of a datagram from another address."""
        return state

    def is_replay(self, state: State, sequence: int) -> bool:
        return sequence in state.window

    def is_used_proof(self, state: State, sequence: int) -> bool:
        """Return whether a PROOF from a new address was already received from another one. It moves the session, but is
        not a second sign of life.
        """
        return sequence in state.window

    def ignores_proof(self, state: State, sequence: int) -> bool:
        """Return whether a PROOF that is not older than all other datagrams moves nothing."""
        return False

    def counts_as_life(self, state: State) -> bool:
        """Return whether a dropped datagram is a sign of life."""
        return False


class Bounds(NamedTuple):
    periods: int = 2
    moves: int = 3  #: number of the adversary's actions
    is_silent: bool = False  #: whether the client sends only in the first period


def _life(state: State) -> State:
    return state._replace(is_heard=True, signs_of_life=state.signs_of_life + 1)


def receive(state: State, datagram: Datagram, source: str, rules: Rules) -> State:
    """Return the state after the server has received a client's datagram from an address."""
    sequence, proves = datagram
    if source == state.address:
        if rules.is_replay(state, sequence):
            return _life(state) if rules.counts_as_life(state) else state
        newest = max(state.newest, sequence)
        return _life(state._replace(window=state.window | {sequence}, newest=newest))
    if proves == source:
        if sequence < state.newest or rules.ignores_proof(state, sequence):
            return state
        moved = state._replace(window=state.window | {sequence}, newest=sequence, address=source)
        return moved if rules.is_used_proof(state, sequence) else _life(moved)
    state = rules.records(state, sequence)
    if rules.counts_as_life(state):
        state = _life(state)
    return state if source in state.proven else state._replace(challenges=state.challenges | {source})


def steps(state: State, bounds: Bounds, rules: Rules) -> Iterator[tuple[Action, State]]:
    if state.is_removed or state.period >= bounds.periods:
        return
    waiting = [d for d in state.sent if d[0] not in state.delivered]
    for datagram in waiting:
        after = receive(state, datagram, CLIENT, rules)
        yield ("network delivers", datagram), after._replace(delivered=state.delivered | {datagram[0]})
    if CLIENT in state.challenges:
        yield ("client proves", CLIENT), _prove(state, CLIENT)
    if state.moves < bounds.moves:
        for datagram in state.sent:
            for source in (CLIENT, ADVERSARY):
                after = receive(state, datagram, source, rules)
                yield ("adversary delivers", datagram, source), after._replace(moves=state.moves + 1)
        if ADVERSARY in state.challenges:
            after = _prove(state, ADVERSARY)
            yield ("adversary relays", ADVERSARY), after._replace(moves=state.moves + 1)
    if not waiting and CLIENT not in state.challenges:
        sends = not (bounds.is_silent and state.period)
        yield ("period ends",), _next_period(state, sends)


def _prove(state: State, address: str) -> State:
    proof = (len(state.sent) + 1, address)
    return state._replace(
        sent=(*state.sent, proof), challenges=state.challenges - {address}, proven=state.proven | {address}
    )


def _next_period(state: State, sends: bool) -> State:
    if not state.is_heard:
        return state._replace(is_removed=True)
    sent = (*state.sent, (len(state.sent) + 1, DATA)) if sends else state.sent
    return state._replace(sent=sent, period=state.period + 1, is_heard=False, proven=frozenset())


def initial() -> State:
    return State(sent=((1, DATA),))


def violations(state: State, bounds: Bounds) -> list[str]:
    found = []
    if state.is_removed and not bounds.is_silent:
        found.append("a client that sends was removed")
    if state.signs_of_life > len(state.sent):
        found.append("a datagram counted as a sign of life twice")
    last, proves = state.sent[-1]
    if proves == CLIENT and last in state.delivered and state.address == ADVERSARY:
        found.append("a client that proved its address did not get its session back")
    return found


def explore(bounds: Bounds, rules: Rules | None = None) -> Exploration[State]:
    """Visit all states that are reachable within the bounds."""
    rules = rules or Rules()
    return model_checker.explore(
        initial(), lambda state: steps(state, bounds, rules), lambda state: violations(state, bounds)
    )
