"""The barrier of a lockstep tick. It knows for which clients the engine is waiting, collects their replies, and decides
when the engine may continue.

This module does not read a clock; callers pass ``now``. A barrier never lasts longer than its time limit. A client that
has not answered by then is dismissed: it still receives STEP, but the engine does not wait for it until it answers
again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from wavesim_sdk.wire.session import StepDone


@dataclass
class Barrier:
    """The lockstep tick at which the engine is waiting. Clients are identified by the tokens of their sessions."""

    time_limit: float
    tick: int | None = None  #: tick at which the engine is waiting; None means that it is not waiting
    waiting: set[int] = field(default_factory=set)
    replies: dict[int, StepDone] = field(default_factory=dict)
    dismissed: set[int] = field(default_factory=set)
    deadline: float = math.inf
    since: float = 0.0  #: time at which the engine reached the current tick

    def begin(self, tick: int, clients: Iterable[int], now: float) -> None:
        """Start waiting for the given clients at a tick."""
        self.tick, self.replies = tick, {}
        self.waiting = set(clients) - self.dismissed
        self.since, self.deadline = now, now + self.time_limit

    def extend(self, clients: Iterable[int], now: float) -> None:
        """Wait for further clients at the same tick; their time limit begins now."""
        self.waiting |= set(clients) - self.dismissed
        self.since, self.deadline = now, now + self.time_limit

    def add_reply(self, client: int, tick: int, reply: StepDone) -> None:
        """Add a reply from a client; ``tick`` shows whether the reply is in time."""
        self.dismissed.discard(client)
        if tick == self.tick:
            self.replies[client] = reply
            self.waiting.discard(client)

    def remove_client(self, client: int) -> None:
        """Remove a client whose session has ended, and discard its reply."""
        self.dismissed.discard(client)
        self.waiting.discard(client)
        self.replies.pop(client, None)

    def replace_client(self, old: int, new: int, same_client: bool) -> bool:
        """Replace the session of a client; return whether the new session must receive the current STEP.

        An earlier reply still counts if the new session belongs to the same client.
        """
        asked, reply = old in self.waiting, self.replies.get(old)
        self.remove_client(old)
        if asked:
            self.waiting.add(new)
        elif same_client and reply is not None:
            self.replies[new] = reply
        return asked

    def cancel(self) -> None:
        """Stop waiting, and discard the replies."""
        self.tick, self.deadline, self.waiting, self.replies = None, math.inf, set(), {}

    def forgive(self, seconds: float) -> None:
        """Extend the time limit by the duration of a front-end stall, for which the clients are not responsible."""
        self.deadline += seconds
        self.since += seconds

    def take_replies(self, now: float) -> dict[int, StepDone] | None:
        """Return the replies when all of them have arrived or the time limit has expired, so that the engine may
        continue.

        Returns None while a reply is awaited.
        """
        if self.tick is None or (self.waiting and now < self.deadline):
            return None
        self.dismissed |= self.waiting
        replies, self.replies = self.replies, {}
        self.tick, self.deadline = None, math.inf
        self.waiting = set()
        return replies
