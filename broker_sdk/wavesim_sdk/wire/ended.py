"""Sessions that are over, whose clients may not know: they are told a few times unasked, and for a while when they speak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wavesim_sdk.wire.session import Session
from wavesim_sdk.wire.strangers import Address

MOST = 4096
KEPT_S = 10.0
TIMES = 3  #: that a BYE is said unasked, the first time when the session ends
AGAIN_S = 0.2  #: between the first two of them; then twice as long
ANSWER_S = 0.1  #: at most so often is one who asks told


@dataclass
class _Farewell:
    session: Session
    text: str
    until: float
    again_at: float
    said: int
    answer_at: float


class Ended:
    """Those of a server, by token."""

    def __init__(self) -> None:
        self._of: dict[int, _Farewell] = {}

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, token: int) -> bool:
        return token in self._of

    def add(self, session: Session, text: str, now: float, unasked: bool) -> None:
        """A session is over; whether its client is to be told without asking."""
        if len(self._of) >= MOST:
            del self._of[next(iter(self._of))]
        said = 1 if unasked else TIMES
        self._of[session.token] = _Farewell(session, text, now + KEPT_S, now + AGAIN_S, said, now)

    def asked(self, token: int, address: Address, now: float) -> tuple[Session, str] | None:
        """Somebody speaks of a session: what to say, if it is over, he is its client, and he was not just told."""
        f = self._of.get(token)
        if f is None or f.session.address != address or now < f.answer_at:
            return None
        f.answer_at = now + ANSWER_S
        return f.session, f.text

    def due(self, now: float) -> Iterator[tuple[Session, str]]:
        """Whom to tell again now; the oldest are forgotten."""
        for token, f in list(self._of.items()):
            if now >= f.until:
                del self._of[token]
            elif f.said < TIMES and now >= f.again_at:
                f.again_at = now + AGAIN_S * 2.0**f.said
                f.said += 1
                yield f.session, f.text
