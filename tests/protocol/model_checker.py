"""Checker of formal models: it visits all states of a model, and finds those from which nothing can be completed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

from wavesim_sdk.wire.reliable import Outbox

Action = tuple[object, ...]  #: name and arguments
S = TypeVar("S", bound=Hashable)


class Exploration(NamedTuple, Generic[S]):
    """All reachable states of a model."""

    parents: dict[S, tuple[S, Action] | None]  #: each reachable state, with the step that first led to it
    successors: dict[S, list[S]]

    def trace(self, state: S) -> list[tuple[Action, S]]:
        """Return a shortest sequence of actions that leads to a state, each with the state after it."""
        found: list[tuple[Action, S]] = []
        while (step := self.parents[state]) is not None:
            found.append((step[1], state))
            state = step[0]
        return found[::-1]

    def sampled(self, count: int) -> list[list[tuple[Action, S]]]:
        """Return about ``count`` traces, to states that are spread over all distances."""
        states = list(self.parents)
        return [self.trace(state) for state in states[:: max(1, len(states) // count)]]


def explore(
    first: S, steps: Callable[[S], Iterable[tuple[Action, S]]], violations: Callable[[S], list[str]]
) -> Exploration[S]:
    """Visit all reachable states, nearest first. Nothing follows a state that violates a property."""
    parents: dict[S, tuple[S, Action] | None] = {first: None}
    successors: dict[S, list[S]] = {}
    waiting = deque([first])
    while waiting:
        state = waiting.popleft()
        after = successors[state] = []
        if violations(state):
            continue
        for action, following in steps(state):
            after.append(following)
            if following not in parents:
                parents[following] = (state, action)
                waiting.append(following)
    return Exploration(parents, successors)


def stuck_states(exploration: Exploration[S], is_complete: Callable[[S], bool]) -> list[S]:
    """Return the states from which no sequence of actions completes the exchange."""
    before: dict[S, list[S]] = {}
    for state, following in exploration.successors.items():
        for each in following:
            before.setdefault(each, []).append(state)
    reached = {state for state in exploration.parents if is_complete(state)}
    waiting = list(reached)
    while waiting:
        for state in before.get(waiting.pop(), ()):
            if state not in reached:
                reached.add(state)
                waiting.append(state)
    return [state for state in exploration.parents if state not in reached]


@contextmanager
def new_items_only(outbox: Outbox) -> Iterator[None]:
    """Let no timeout of a repetition expire while the real sessions perform an action of a model."""
    timer, outbox._repeat_at = outbox._repeat_at, math.inf
    yield
    if outbox._repeat_at == math.inf:
        outbox._repeat_at = timer
