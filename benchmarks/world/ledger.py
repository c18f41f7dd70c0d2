"""Independent record of all messages sent, for comparison with the messages received.

It does not use the code under test: it wraps both ends of each queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgpack

from benchmarks.world.report import Broken
from wavesim_sdk.wire.client import ClientSession
from wavesim_sdk.wire.items import EVENTS, REQUESTS, Answer, RequestRefused, SignalSent
from wavesim_sdk.wire.session import Session


@dataclass
class Mail:
    """One direction of a session: the items that one side queued, in order, and how many of them the other side
    received.
    """

    said: list[bytes] = field(default_factory=list)
    heard: int = 0

    def hear(self, number: int, item: Any, who: str) -> None:
        """Record that the receiver received an item."""
        if number != self.heard + 1:
            raise Broken(f"not once and in order: {who} got item {number} after {self.heard}")
        if number > len(self.said):
            raise Broken(f"never said: {who} got item {number}, {len(self.said)} were said: {item!r}")
        if msgpack.packb(item) != self.said[number - 1]:
            said = msgpack.unpackb(self.said[number - 1])
            raise Broken(f"changed in transit: {who} got item {number} as {item!r} instead of {said!r}")
        self.heard = number


class Book:
    """Both directions of a session, and the results of its requests."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.events, self.requests = Mail(), Mail()
        self.answers: Counter[int] = Counter()
        self.liar = (
            False  #: whether the guarantees do not apply: the client sends invalid data, or its datagrams were damaged
        )
        self.server: Session | None = None
        self.client: ClientSession | None = None
        self.since = 0  #: tick at which the server admitted it; a repeated WELCOME states a later tick

    def server_side(self, session: Session) -> None:
        """Watch the server's end from its creation."""
        self.server = session
        self.events.said += [msgpack.packb(item) for item in session.outbox.unacknowledged()]
        _watch(session.outbox, "push", lambda result, item: self.events.said.append(msgpack.packb(item)))
        _watch(session.inbox, "accept", lambda result, *_: self._requests(result))

    def client_side(self, session: ClientSession) -> None:
        """Watch the client's end."""
        self.client = session
        _watch(session._outbox, "push", lambda result, item, *_: self.requests.said.append(msgpack.packb(item)))
        _watch(session._inbox, "accept", lambda result, *_: self._events(result))

    def adopt(self, client: Book) -> None:
        """Merge the records of both ends once the client of this session is known."""
        self.requests.said = client.requests.said
        self.liar = client.liar = self.liar or client.liar
        client.requests, client.events, client.answers = self.requests, self.events, self.answers
        self.client, client.server = client.client, self.server

    def _requests(self, items: list[tuple[int, Any]]) -> None:
        for number, item in items:
            if not self.liar:
                self.requests.hear(number, item, f"the server, of {self.who},")

    def _events(self, items: list[tuple[int, Any]]) -> None:
        for number, item in items:
            if self.liar:
                continue
            self.events.hear(number, item, self.who)
            event = EVENTS.decode(item)
            if isinstance(event, Answer | RequestRefused | SignalSent) and event.request:
                self._answered(event)

    def _answered(self, event: Answer | RequestRefused | SignalSent) -> None:
        number = event.request
        self.answers[number] += 1
        if number > self.requests.heard:
            raise Broken(
                f"an answer without a request: {self.who} received {event}, it asked {self.requests.heard} times"
            )
        if self.answers[number] > 1:
            asked = REQUESTS.decode(msgpack.unpackb(self.requests.said[number - 1], strict_map_key=False))
            raise Broken(f"answered twice: {self.who}, {asked}: {event}")

    @property
    def unanswered(self) -> list[int]:
        """Return the numbers of requests that the server received and did not answer."""
        return [n for n in range(1, self.requests.heard + 1) if not self.answers[n]]


def _watch(thing: Any, name: str, note: Callable[..., None]) -> None:
    """Call ``note`` with the result and the arguments of each call of a method of one object."""
    call = getattr(thing, name)

    def watched(*arguments: Any) -> Any:
        result = call(*arguments)
        note(result, *arguments)
        return result

    setattr(thing, name, watched)
