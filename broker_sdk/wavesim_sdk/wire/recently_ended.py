"""Sessions that are over, whose clients may not know: they are told a few times unasked, and for a while when they speak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wavesim_sdk.wire.address_validation import Address
from wavesim_sdk.wire.session import Session

MAX_SESSIONS = 4096
KEPT_S = 10.0
MAX_BYES = 3  #: that a BYE is said unasked, the first time when the session ends
AGAIN_S = 0.2  #: between the first two of them; then twice as long
ANSWER_S = 0.1  #: at most so often is one who asks told


@dataclass
class _EndedSession:
    session: Session
    text: str
    until: float
    repeat_at: float
    sent: int
    answer_at: float


class RecentlyEnded:
    """Those of a server, by token."""

    def __init__(self) -> None:
        self._by_token: dict[int, _EndedSession] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def __contains__(self, token: int) -> bool:
        return token in self._by_token

    def add(self, session: Session, text: str, now: float, unasked: bool) -> None:
        """A session is over; whether its client is to be told without asking."""
        if len(self._by_token) >= MAX_SESSIONS:
            del self._by_token[next(iter(self._by_token))]
        said = 1 if unasked else MAX_BYES
        self._by_token[session.token] = _EndedSession(session, text, now + KEPT_S, now + AGAIN_S, said, now)

    def find_for(self, token: int, address: Address, now: float) -> tuple[Session, str] | None:
        """Somebody speaks of a session: what to say, if it is over, he is its client, and he was not just told."""
        f = self._by_token.get(token)
        if f is None or f.session.address != address or now < f.answer_at:
            return None
        f.answer_at = now + ANSWER_S
        return f.session, f.text

    def take_due(self, now: float) -> Iterator[tuple[Session, str]]:
        """Whom to tell again now; the oldest are forgotten."""
        for token, f in list(self._by_token.items()):
            if now >= f.until:
                del self._by_token[token]
            elif f.sent < MAX_BYES and now >= f.repeat_at:
                f.repeat_at = now + AGAIN_S * 2.0**f.sent
                f.sent += 1
                yield f.session, f.text
