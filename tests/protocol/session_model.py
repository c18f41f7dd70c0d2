"""Formal model of a session, without clocks and bytes, and a checker that visits all its states.

The wire is a set of datagrams. Any of them may arrive at any time, any number of times, or never, and the network may
lose all of them: this is a network that loses, copies, delays and reorders datagrams. Each side sends an event or a
request at once, and may repeat everything that is not acknowledged at any time. A client program may crash; its next
program resumes the session with the ticket of the first.

The model is bounded by the numbers of events, requests and attempts to join. Within these bounds, :func:`explore`
visits every state, and :func:`violations` states what must hold in it. :func:`stuck_states` returns the states from
which nothing can complete the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol import model_checker
from tests.protocol.model_checker import Action, Exploration

HELLO, JOINING, JOINED, LEAVING, CLOSED = "hello", "joining", "joined", "leaving", "closed"
NEW, LIVE, OVER = "new", "live", "over"
Datagram = tuple[object, ...]  #: kind, attempt and content


class Bounds(NamedTuple):
    """Limits of the explored model."""

    events: int = 2
    requests: int = 1
    attempts: int = 2  #: nonces of clients; a client whose nonce is used up, and a restarted client, take the next
    server_ends: bool = False  #: whether the server may end a session by itself
    leaves: bool = True  #: whether the client may leave
    loses: bool = False  #: whether the network may lose everything that is on the wire


class Client(NamedTuple):
    """The client program that is running."""

    attempt: int = 0  #: number of its nonce
    phase: str = HELLO
    previous: int = -1  #: attempt whose session the join resumes; -1 = none
    received: int = 0  #: number of events received in this session
    events: tuple[int, ...] = ()  #: events that the program received in this session
    asked: int = 0  #: number of requests made in this session
    acknowledged: int = 0  #: number of requests that the server acknowledged


class Session(NamedTuple):
    """The server's session of one attempt."""

    status: str = NEW
    items: tuple[int, ...] = ()  #: events of the session, numbered from 1
    acknowledged: int = 0
    executed: int = 0  #: number of requests executed


class State(NamedTuple):
    client: Client
    sessions: tuple[Session, ...]
    wire: frozenset[Datagram]
    pushed: int = 0  #: number of events that the simulation has created
    seen: tuple[int, ...] = ()  #: events that the client programs have received
    programs: int = 1
    has_left: bool = False  #: whether the client asked to leave
    has_ended: bool = False  #: whether the server ended the session by itself


def initial(bounds: Bounds) -> State:
    return State(Client(), (Session(),) * bounds.attempts, frozenset())


class Rules:
    """The rules of the protocol. A test replaces one by a wrong rule to show that the checker notices."""

    def accepts_list(self, first: int, received: int) -> bool:
        """Return whether a numbered list leaves no gap after the items received so far."""
        return first <= received + 1

    def is_new(self, number: int, received: int) -> bool:
        return number > received

    def carried_over(self, old: Session) -> tuple[int, ...]:
        """Return the events that a resumed session repeats."""
        return old.items[old.acknowledged :]

    def allows_join_again(self, session: Session) -> bool:
        """Return whether a JOIN whose session has ended opens another one."""
        return False

    def first_to_send(self, session: Session) -> int:
        return session.acknowledged + 1

    def ends_without_request(self, state: State) -> bool:
        """Return whether the server ends a session when its client crashes."""
        return False


def steps(state: State, bounds: Bounds, rules: Rules) -> Iterator[tuple[Action, State]]:
    """Yield each action that is possible in a state and changes it, with the state that follows."""
    for action, after in _actions(state, bounds, rules):
        if after is not None and after != state:
            yield action, after


def _actions(state: State, bounds: Bounds, rules: Rules) -> Iterator[tuple[Action, State | None]]:
    client = state.client
    yield ("client sends",), _client_sends(state)
    if client.phase == JOINED:
        if client.asked < bounds.requests:
            asked = client.asked + 1
            request = ("REQUESTS", client.attempt, asked, asked, client.received)
            yield ("client asks",), _sent(state._replace(client=client._replace(asked=asked)), request)
        if bounds.leaves:
            yield ("client leaves",), state._replace(client=client._replace(phase=LEAVING), has_left=True)
        if client.attempt + 1 < bounds.attempts and state.programs == 1:
            restarted = Client(attempt=client.attempt + 1, previous=client.attempt)
            crashed = state._replace(client=restarted, programs=2)
            if rules.ends_without_request(state):
                crashed = _with_session(crashed, client.attempt, status=OVER)
            yield ("client restarts",), crashed
    for n, session in enumerate(state.sessions):
        if session.status != LIVE:
            continue
        if state.pushed < bounds.events:
            event = state.pushed + 1
            pushed = _with_session(state._replace(pushed=event), n, items=(*session.items, event))
            yield (
                ("server pushes", n),
                _sent(pushed, ("EVENTS", n, len(session.items) + 1, (event,), session.executed)),
            )
        yield ("server sends", n), _server_sends(state, n, rules)
        if bounds.server_ends:
            ended = _with_session(state._replace(has_ended=True), n, status=OVER)
            yield ("server ends", n), _sent(ended, ("BYE", n, session.executed))
    if bounds.loses:
        yield ("network loses all",), state._replace(wire=frozenset())
    for datagram in sorted(state.wire):
        yield ("deliver", datagram), deliver(state, datagram, bounds, rules)


def _with_session(state: State, n: int, **changes: object) -> State:
    sessions = list(state.sessions)
    sessions[n] = sessions[n]._replace(**changes)  # type: ignore[arg-type]
    return state._replace(sessions=tuple(sessions))


def _sent(state: State, *datagrams: Datagram) -> State:
    return state._replace(wire=state.wire.union(datagrams))


def _client_sends(state: State) -> State:
    c = state.client
    if c.phase == HELLO:
        return _sent(state, ("HELLO", c.attempt))
    if c.phase == JOINING:
        return _sent(state, ("JOIN", c.attempt, c.previous))
    if c.phase == LEAVING:
        return _sent(state, ("LEAVE", c.attempt, c.received))
    if c.phase == JOINED:
        if c.asked > c.acknowledged:
            return _sent(state, ("REQUESTS", c.attempt, c.acknowledged + 1, c.asked, c.received))
        return _sent(state, ("ACK", c.attempt, c.received))
    return state


def _server_sends(state: State, n: int, rules: Rules) -> State:
    session = state.sessions[n]
    first = rules.first_to_send(session)
    items = session.items[first - 1 :]
    if items:
        state = _sent(state, ("EVENTS", n, first, items, session.executed))
    return _sent(state, ("KEEPALIVE", n, session.executed))


def deliver(state: State, datagram: Datagram, bounds: Bounds, rules: Rules) -> State | None:
    """Return the state after a datagram has arrived; None if the bounds do not permit it."""
    kind, n = datagram[0], datagram[1]
    assert isinstance(n, int)
    if kind in ("CHALLENGE", "WELCOME", "REFUSE", "EVENTS", "KEEPALIVE", "BYE"):
        return _client_receives(state, datagram, bounds, rules) if n == state.client.attempt else state
    return _server_receives(state, datagram, rules)


def _client_receives(state: State, datagram: Datagram, bounds: Bounds, rules: Rules) -> State | None:
    c = state.client
    match datagram:
        case ("CHALLENGE", _) if c.phase == HELLO:
            return state._replace(client=c._replace(phase=JOINING))
        case ("WELCOME", _) if c.phase == JOINING:
            return state._replace(client=c._replace(phase=JOINED))
        case ("REFUSE", _, "used") if c.phase == JOINING:
            if c.attempt + 1 >= bounds.attempts:
                return None
            return state._replace(client=Client(attempt=c.attempt + 1, previous=c.previous))
        case ("REFUSE", _, "expired") if c.phase == JOINING:
            return state._replace(client=c._replace(phase=CLOSED))
        case ("BYE", _, int(ack)) if c.phase in (JOINED, LEAVING):
            return state._replace(client=c._replace(phase=CLOSED, acknowledged=max(c.acknowledged, ack)))
        case ("KEEPALIVE", _, int(ack)) if c.phase in (JOINED, LEAVING):
            return state._replace(client=c._replace(acknowledged=max(c.acknowledged, ack)))
        case ("EVENTS", _, int(first), tuple(items), int(ack)) if c.phase in (JOINED, LEAVING):
            c = c._replace(acknowledged=max(c.acknowledged, ack))
            new: list[int] = []
            if c.phase == JOINED and rules.accepts_list(first, c.received):
                new = [item for k, item in enumerate(items, first) if rules.is_new(k, c.received)]
                c = c._replace(received=max(c.received, first + len(items) - 1), events=(*c.events, *new))
            return state._replace(client=c, seen=(*state.seen, *new))
    return state


def _server_receives(state: State, datagram: Datagram, rules: Rules) -> State:
    n = datagram[1]
    assert isinstance(n, int)
    session = state.sessions[n]
    match datagram:
        case ("HELLO", _):
            return _sent(state, ("CHALLENGE", n))
        case ("JOIN", _, int(previous)):
            if session.status == LIVE:
                return _sent(state, ("WELCOME", n))
            if session.status == OVER and not rules.allows_join_again(session):
                return _sent(state, ("REFUSE", n, "used"))
            if previous < 0:
                return _sent(_with_session(state, n, status=LIVE), ("WELCOME", n))
            old = state.sessions[previous]
            if old.status != LIVE:
                return _sent(state, ("REFUSE", n, "expired"))
            items = rules.carried_over(old)
            state = _with_session(_with_session(state, previous, status=OVER), n, status=LIVE, items=items)
            return _sent(state, ("WELCOME", n), *([("EVENTS", n, 1, items, 0)] if items else []))
        case (str(kind), _, *_) if session.status == LIVE:
            ack = datagram[-1]
            assert isinstance(ack, int)
            state = _with_session(state, n, acknowledged=max(session.acknowledged, ack))
            match datagram:
                case ("REQUESTS", _, int(first), int(last), _) if rules.accepts_list(first, session.executed):
                    new = [k for k in range(first, last + 1) if rules.is_new(k, session.executed)]
                    return _with_session(state, n, executed=session.executed + len(new))
            if kind == "LEAVE":
                return _sent(_with_session(state, n, status=OVER), ("BYE", n, session.executed))
        case _ if session.status == OVER and n == state.client.attempt:  # nobody is left at an earlier address
            return _sent(state, ("BYE", n, session.executed))
    return state


def violations(state: State) -> list[str]:
    """Return the properties that do not hold in a state."""
    c, found = state.client, []
    session = state.sessions[c.attempt]
    highest = 0
    for event in state.seen:
        if event > highest + 1:
            found.append("an event was lost")
        highest = max(highest, event)
    if c.events != session.items[: c.received]:
        found.append("the events of a session arrived twice, in another order or with gaps")
    for n, each in enumerate(state.sessions):
        asked = c.asked if n == c.attempt else None
        if asked is not None and each.executed > asked:
            found.append("a request was executed twice")
        if n == c.attempt and each.acknowledged > c.received:
            found.append("the server takes an event for received that its client has not received")
    if c.acknowledged > session.executed:
        found.append("the client takes a request for executed that the server has not executed")
    if sum(each.status == LIVE for each in state.sessions) > 1:
        found.append("one client has two sessions")
    if not (state.has_left or state.has_ended) and OVER in [s.status for s in state.sessions]:
        over = [n for n, s in enumerate(state.sessions) if s.status == OVER]
        resumed = [n for n in over if any(s.status != NEW for s in state.sessions[n + 1 :])]
        if over != resumed:
            found.append("a session ended that neither its client nor the server ended")
    return found


def is_complete(state: State) -> bool:
    """Return whether nothing is left to do: the client has left or was refused, or everything has arrived. This also
    holds if only a further attempt, which the bounds exclude, could join.
    """
    c, session = state.client, state.sessions[state.client.attempt]
    if c.phase == CLOSED or (c.phase == JOINING and session.status == OVER and c.attempt + 1 == len(state.sessions)):
        return True
    all_events = c.received == len(session.items) == session.acknowledged
    return c.phase == JOINED and session.status == LIVE and all_events and c.asked == c.acknowledged == session.executed


def explore(bounds: Bounds, rules: Rules | None = None) -> Exploration[State]:
    """Visit all states that are reachable within the bounds."""
    rules = rules or Rules()
    return model_checker.explore(initial(bounds), lambda state: steps(state, bounds, rules), violations)


def stuck_states(exploration: Exploration[State]) -> list[State]:
    """Return the states from which no sequence of actions completes the exchange."""
    return model_checker.stuck_states(exploration, is_complete)
