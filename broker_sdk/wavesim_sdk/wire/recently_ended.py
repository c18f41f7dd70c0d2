"""Recently ended sessions. Their clients may not yet know that the sessions have ended.

The server repeats the BYE of such a session a few times. For a while, it also answers each datagram from the client
with BYE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wavesim_sdk.wire.address_validation import Address
from wavesim_sdk.wire.session import Session

MAX_SESSIONS = 4096
KEPT_S = 10.0
#: number of times that the server sends a BYE unprompted, including the one at the end of the session
MAX_BYES = 3
AGAIN_S = 0.2  #: time in s between the first two BYEs; the interval doubles after each BYE
ANSWER_S = 0.1  #: minimum time in s between two answers to the same client


@dataclass
class _EndedSession:
    session: Session
    text: str
    until: float
    repeat_at: float
    sent: int
    answer_at: float


class RecentlyEnded:
    """The recently ended sessions of a server, by token."""

    def __init__(self) -> None:
        self._by_token: dict[int, _EndedSession] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def __contains__(self, token: int) -> bool:
        return token in self._by_token

    def add(self, session: Session, text: str, now: float, unasked: bool) -> None:
        """Add a session that has ended. If ``unasked`` is set, repeat its BYE without waiting for a datagram from the
        client.
        """
        if len(self._by_token) >= MAX_SESSIONS:
            del self._by_token[next(iter(self._by_token))]
        said = 1 if unasked else MAX_BYES
        self._by_token[session.token] = _EndedSession(session, text, now + KEPT_S, now + AGAIN_S, said, now)

    def find_for(self, token: int, address: Address, now: float) -> tuple[Session, str] | None:
        """Return the ended session and the text of its BYE if a datagram with this token and address must be answered
        with BYE; otherwise, return None.

        A datagram must be answered if its session has ended, it comes from the address of the session's client, and the
        last answer is not too recent.
        """
        f = self._by_token.get(token)
        if f is None or f.session.address != address or now < f.answer_at:
            return None
        f.answer_at = now + ANSWER_S
        return f.session, f.text

    def take_due(self, now: float) -> Iterator[tuple[Session, str]]:
        """Return the sessions whose BYE is due again; remove the sessions that ended more than KEPT_S ago."""
        for token, f in list(self._by_token.items()):
            if now >= f.until:
                del self._by_token[token]
            elif f.sent < MAX_BYES and now >= f.repeat_at:
                f.repeat_at = now + AGAIN_S * 2.0**f.sent
                f.sent += 1
                yield f.session, f.text
