"""Formal model of lockstep: the steps of one body, over a network that loses, copies, delays and reorders datagrams.

The server asks for one step after another, sends events and executes requests in between, and gives up waiting when its
time limit expires. A second program may take over from the first. The joins themselves are those of the session model,
so here they happen at once. The properties are:

- a program gets each step at most once, in order, and not before the events that preceded it;
- the server counts an answer for the step to which it belongs, from the program that drives, and after its requests;
- a program that answers late is waited for again;
- the server never waits for an answer that cannot come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol import model_checker
from tests.protocol.model_checker import Action, Exploration

Datagram = tuple[object, ...]  #: kind, number of the program and content


class Bounds(NamedTuple):
    """Limits of the explored model."""

    steps: int = 2
    events: int = 1
    requests: int = 1
    time_limits: int = 0  #: number of steps at which the server may give up waiting
    takeovers: int = 0
    loses: bool = False  #: whether the network may lose everything that is on the wire


class Program(NamedTuple):
    """The program that drives."""

    number: int = 0
    received: int = 0  #: number of events received
    step: int = 0  #: newest step that has arrived
    last_event: int = 0  #: number of the last event before this step
    handed: bool = True  #: whether the program has this step
    answered: int = 0  #: step of its last answer
    counted: int = 0  #: number of requests that this answer counts
    asked: int = 0
    acknowledged: int = 0  #: number of requests that the server acknowledged
    steps: tuple[int, ...] = ()  #: the steps that the program got


class Server(NamedTuple):
    """The server's side of the program that drives."""

    events: int = 0
    acknowledged: int = 0  #: number of events that the program acknowledged
    executed: int = 0  #: number of requests executed
    pending: int = 0  #: step for which an answer has not been counted; 0 = none
    before: int = 0  #: number of the last event before that step
    done: int = -1  #: number of requests that a received answer counts; -1 = no answer
    last_answered: int = 0
    is_dismissed: bool = False  #: whether the server does not wait for this program


class State(NamedTuple):
    program: Program = Program()
    server: Server = Server()
    wire: frozenset[Datagram] = frozenset()
    tick: int = 0  #: last step that the server asked for
    is_waiting: bool = False
    time_limits: int = 0
    faults: frozenset[str] = frozenset()  #: properties that an action has violated


class Rules:
    """The rules of lockstep. A test replaces one by a wrong rule to show that the checker notices."""

    def is_released_with(self, received: int, last_event: int) -> bool:
        """Return whether a program gets a step when it has received so many events."""
        return received >= last_event

    def is_newer(self, tick: int, current: int) -> bool:
        return tick > current

    def counts_requests(self, executed: int, counted: int) -> bool:
        """Return whether an answer counts when so many requests were executed."""
        return executed >= counted

    def belongs(self, tick: int, pending: int) -> bool:
        """Return whether an answer belongs to the pending step."""
        return tick == pending

    def repeats_answer(self) -> bool:
        return True

    def repeats_step(self) -> bool:
        return True

    def hands_over_step(self) -> bool:
        """Return whether a program that takes over gets the step for which the server is waiting."""
        return True

    def forgives(self) -> bool:
        """Return whether a late answer ends the dismissal."""
        return True


def steps(state: State, bounds: Bounds, rules: Rules) -> Iterator[tuple[Action, State]]:
    """Yield each action that is possible in a state and changes it, with the state that follows."""
    for action, after in _actions(state, bounds, rules):
        if after != state:
            yield action, after


def _actions(state: State, bounds: Bounds, rules: Rules) -> Iterator[tuple[Action, State]]:
    p, s = state.program, state.server
    if not state.is_waiting and state.tick < bounds.steps:
        yield ("server asks",), _asks(state)
    if state.is_waiting and state.time_limits < bounds.time_limits:
        dismissed = s._replace(is_dismissed=True)
        yield (
            ("time limit",),
            state._replace(server=dismissed, is_waiting=False, time_limits=state.time_limits + 1),
        )
    if s.events < bounds.events:
        pushed = state._replace(server=s._replace(events=s.events + 1))
        yield ("server pushes",), _sent(pushed, ("EVENTS", p.number, s.events + 1, s.events + 1, s.executed))
    yield ("server sends",), _server_sends(state, rules)
    if p.asked < bounds.requests:
        asks = state._replace(program=p._replace(asked=p.asked + 1))
        yield ("program asks",), _sent(asks, ("REQUESTS", p.number, p.asked + 1, p.asked + 1, p.received))
    if p.handed and p.step > p.answered:
        answers = state._replace(program=p._replace(answered=p.step, counted=p.asked))
        yield ("program answers",), _sent(answers, ("DONE", p.number, p.step, p.asked, p.received))
    yield ("program sends",), _program_sends(state)
    if p.number < bounds.takeovers:
        yield ("takeover",), _take_over(state, rules)
    if bounds.loses:
        yield ("network loses all",), state._replace(wire=frozenset())
    for datagram in sorted(state.wire):
        yield ("deliver", datagram), deliver(state, datagram, rules)


def _sent(state: State, *datagrams: Datagram) -> State:
    return state._replace(wire=state.wire.union(datagrams))


def _asks(state: State) -> State:
    tick, s = state.tick + 1, state.server
    asked = s._replace(pending=tick, before=s.events, done=-1)
    state = state._replace(tick=tick, server=asked, is_waiting=not s.is_dismissed)
    return _sent(state, ("STEP", state.program.number, tick, s.events, s.executed))


def _server_sends(state: State, rules: Rules) -> State:
    s, n = state.server, state.program.number
    if s.events > s.acknowledged:
        state = _sent(state, ("EVENTS", n, s.acknowledged + 1, s.events, s.executed))
    if s.pending and rules.repeats_step():
        state = _sent(state, ("STEP", n, s.pending, s.before, s.executed))
    return _sent(state, ("KEEPALIVE", n, s.executed))


def _program_sends(state: State) -> State:
    p = state.program
    if p.asked > p.acknowledged:
        return _sent(state, ("REQUESTS", p.number, p.acknowledged + 1, p.asked, p.received))
    return _sent(state, ("ACK", p.number, p.received))


def _take_over(state: State, rules: Rules) -> State:
    n = state.program.number + 1
    # datagrams of the replaced program have no effect any more
    fresh = state._replace(program=Program(number=n), server=Server(), wire=frozenset())
    if state.is_waiting and rules.hands_over_step():
        fresh = fresh._replace(server=Server(pending=state.tick))
        fresh = _sent(fresh, ("STEP", n, state.tick, 0, 0))
    return fresh


def deliver(state: State, datagram: Datagram, rules: Rules) -> State:
    """Return the state after a datagram has arrived."""
    p = state.program
    match datagram:
        case ("STEP", _, int(tick), int(last_event), int(ack)):
            p = p._replace(acknowledged=max(p.acknowledged, ack))
            if tick == p.answered:
                again = ("DONE", p.number, p.answered, p.counted, p.received)
                state = state._replace(program=p)
                return _sent(state, again) if rules.repeats_answer() else state
            if rules.is_newer(tick, p.step):
                p = p._replace(step=tick, last_event=last_event, handed=False)
            return _released(state._replace(program=p), rules)
        case ("EVENTS", _, int(first), int(last), int(ack)):
            p = p._replace(acknowledged=max(p.acknowledged, ack))
            if first <= p.received + 1:
                p = p._replace(received=max(p.received, last))
            return _released(state._replace(program=p), rules)
        case ("KEEPALIVE", _, int(ack)):
            return state._replace(program=p._replace(acknowledged=max(p.acknowledged, ack)))
    return _server_receives(state, datagram, rules)


def _released(state: State, rules: Rules) -> State:
    """Hand the newest step to the program if all events before it have arrived."""
    p = state.program
    if p.handed or not rules.is_released_with(p.received, p.last_event):
        return state
    faults = set(state.faults)
    if p.steps and p.step <= p.steps[-1]:
        faults.add("a program got a step twice or out of order")
    if p.received < p.last_event:
        faults.add("a program got a step before an event that preceded it")
    p = p._replace(handed=True, steps=(*p.steps, p.step))
    return state._replace(program=p, faults=frozenset(faults))


def _server_receives(state: State, datagram: Datagram, rules: Rules) -> State:
    ack = datagram[-1]
    assert isinstance(ack, int)
    s = state.server._replace(acknowledged=max(state.server.acknowledged, ack))
    match datagram:
        case ("REQUESTS", _, int(first), int(last), _) if first <= s.executed + 1:
            s = s._replace(executed=max(s.executed, last))
            return _counted(state._replace(server=s), rules)
        case ("DONE", _, int(tick), int(counted), _):
            if rules.belongs(tick, s.pending) and s.pending:
                if tick != s.pending:
                    state = state._replace(faults=state.faults | {"an answer counted for another step"})
                return _counted(state._replace(server=s._replace(done=counted)), rules)
            if s.last_answered < tick < s.pending:
                s = s._replace(last_answered=tick, is_dismissed=s.is_dismissed and not rules.forgives())
    return state._replace(server=s)


def _counted(state: State, rules: Rules) -> State:
    """Count the answer to the pending step if its requests have been executed."""
    s = state.server
    if s.done < 0 or not rules.counts_requests(s.executed, s.done):
        return state
    faults = set(state.faults)
    if s.executed < s.done:
        faults.add("an answer counted before its requests")
    is_dismissed = s.is_dismissed and not rules.forgives()
    s = s._replace(pending=0, done=-1, last_answered=s.pending, is_dismissed=is_dismissed)
    is_waiting = state.is_waiting and s.last_answered != state.tick
    return state._replace(server=s, is_waiting=is_waiting, faults=frozenset(faults))


def violations(state: State) -> list[str]:
    """Return the properties that do not hold in a state."""
    found = sorted(state.faults)
    p, s = state.program, state.server
    if s.last_answered > p.answered:
        found.append("the server counted an answer that the program did not give")
    if s.acknowledged > p.received or p.acknowledged > s.executed or s.executed > p.asked:
        found.append("one side takes something for received that has not arrived")
    if s.is_dismissed and p.answered and s.last_answered == p.answered == state.tick:
        found.append("a program that has answered its last step is not waited for")
    return found


def is_complete(state: State, bounds: Bounds) -> bool:
    """Return whether the server has asked for all steps, and the program that drives has answered the last one."""
    p, s = state.program, state.server
    if state.tick < bounds.steps or state.is_waiting:
        return False
    all_arrived = p.received == s.events == s.acknowledged and p.asked == p.acknowledged == s.executed
    # a program that took over after the last step has none to answer
    return all_arrived and not s.is_dismissed and s.pending == 0


def explore(bounds: Bounds, rules: Rules | None = None) -> Exploration[State]:
    """Visit all states that are reachable within the bounds."""
    rules = rules or Rules()
    return model_checker.explore(State(), lambda state: steps(state, bounds, rules), violations)


def stuck_states(exploration: Exploration[State], bounds: Bounds) -> list[State]:
    """Return the states from which no sequence of actions completes the exchange."""
    return model_checker.stuck_states(exploration, lambda state: is_complete(state, bounds))
