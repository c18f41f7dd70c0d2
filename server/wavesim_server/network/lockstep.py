"""The barrier of a lockstep tick: who is waited for, what they answered, and when the engine may go on.

Nothing here reads a clock: ``now`` is given. It never stands longer than its time limit: whoever has not answered by then
is dismissed, that is asked but not waited for, until it answers again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Values = Sequence[float | None]


@dataclass(frozen=True)
class StepReply:
    """What a client answered to a step."""

    command: Values | None
    estimate: Values | None


@dataclass
class Barrier:
    """The lockstep tick that the engine waits at. Clients are named by the tokens of their sessions."""

    time_limit: float
    tick: int | None = None  #: None = the engine does not wait
    waiting: set[int] = field(default_factory=set)
    replies: dict[int, StepReply] = field(default_factory=dict)
    dismissed: set[int] = field(default_factory=set)
    deadline: float = math.inf
    since: float = 0.0  #: when the engine came to that tick

    def begin(self, tick: int, clients: Iterable[int], now: float) -> None:
        """The engine waits at a tick for these clients."""
        self.tick, self.replies = tick, {}
        self.waiting = set(clients) - self.dismissed
        self.since, self.deadline = now, now + self.time_limit

    def add_reply(self, client: int, tick: int, reply: StepReply) -> None:
        """A client answered; whether in time shows the tick."""
        self.dismissed.discard(client)
        if tick == self.tick:
            self.replies[client] = reply
            self.waiting.discard(client)

    def remove_client(self, client: int) -> None:
        """A client's session is over: it is waited for no longer, and what it answered does not count."""
        self.dismissed.discard(client)
        self.waiting.discard(client)
        self.replies.pop(client, None)

    def replace_client(self, old: int, new: int, same_client: bool) -> bool:
        """Another session took the place of one; whether it has to be asked for the tick under way. What the one answered
        counts if the other is of the ``same`` client."""
        asked, reply = old in self.waiting, self.replies.get(old)
        self.remove_client(old)
        if asked:
            self.waiting.add(new)
        elif same_client and reply is not None:
            self.replies[new] = reply
        return asked

    def forgive(self, seconds: float) -> None:
        """The front itself stood still for so long: that is nobody's waiting."""
        self.deadline += seconds
        self.since += seconds

    def take_replies(self, now: float) -> dict[int, StepReply] | None:
        """The replies, once all have come or time is up; the engine goes on. None as long as somebody is waited for."""
        if self.tick is None or (self.waiting and now < self.deadline):
            return None
        self.dismissed |= self.waiting
        replies, self.replies = self.replies, {}
        self.tick, self.deadline = None, math.inf
        self.waiting = set()
        return replies
