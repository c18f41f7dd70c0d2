"""What a server keeps of those that have no session: next to nothing, and bounded."""

from __future__ import annotations

import hashlib
import hmac
import math
from typing import TYPE_CHECKING

from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.messages import COOKIE_BYTES, MAX_DATAGRAM

if TYPE_CHECKING:
    import random

Address = tuple[str, int]
MAX_HOSTS = 4096
COOKIE_PERIOD_S = 10.0
TOTAL_HANDSHAKE_RATE = 5000.0  #: HELLOs, and JOINs, of all strangers together in a second
JOIN_COST = 5.0  #: datagrams that a JOIN counts for: it is opened, and may be a new body
USED_JOIN_LIFETIME_S = 2.0 * COOKIE_PERIOD_S  #: no cookie lives longer


class TokenBucket:
    """Datagrams per second, with a second's worth at once."""

    __slots__ = ("rate", "received", "tokens", "updated_at")

    def __init__(self, rate: float) -> None:
        self.rate = self.tokens = rate
        self.updated_at = 0.0
        self.received = 0  #: bytes from a host that proved nothing, less those sent there

    def consume(self, now: float, cost: float = 1.0) -> bool:
        """Whether one more is within the rate."""
        if self.rate == math.inf:
            return True
        self.tokens = min(self.tokens + self.rate * max(now - self.updated_at, 0.0), self.rate)
        self.updated_at = max(self.updated_at, now)
        if self.tokens < cost:
            return False
        self.tokens -= cost
        return True


class AddressValidator:
    """Limits, cookies and used joins."""

    def __init__(self, rate: float, rng: random.Random) -> None:
        self._rate = rate
        self._hosts: dict[str, TokenBucket] = {}
        total_rate = math.inf if rate == math.inf else TOTAL_HANDSHAKE_RATE
        self._hellos, self._joins = TokenBucket(total_rate), TokenBucket(total_rate)
        self._used_joins: dict[tuple[Address, int], float] = {}  # joins of sessions that are over, and when they ended
        self._secret = rng.randbytes(32)

    def count_datagram(self, host: str, now: float, cost: float = 1.0) -> None:
        """Another datagram of a host from outside of its sessions; Dropped if it is too many."""
        bucket = self._hosts.get(host)
        if bucket is None:
            if len(self._hosts) >= MAX_HOSTS:
                self._hosts.clear()
            bucket = self._hosts[host] = TokenBucket(self._rate)
        if not bucket.consume(now, min(cost, self._rate)):
            raise Dropped("strangers")

    def affords(self, host: str, received: int, answer: int) -> bool:
        """Whether an answer of so many bytes may go to a host that proved nothing: never more than came from there, or others could
        be flooded by way of this server. ``received``: bytes of the datagram that asks, after :meth:`knock`."""
        bucket = self._hosts[host]
        bucket.received = min(bucket.received + received, MAX_DATAGRAM)
        if bucket.received < answer:
            return False
        bucket.received -= answer
        return True

    def count_hello(self, now: float) -> None:
        """One more HELLO of anybody; Dropped if it is too many."""
        if not self._hellos.consume(now):
            raise Dropped("strangers")

    def count_join(self, now: float) -> None:
        """One more JOIN of anybody, before its cookie was looked at."""
        if not self._joins.consume(now):
            raise Dropped("strangers")

    def _mac(self, what: str, address: Address, period: int) -> bytes:
        text = f"{what}|{address[0]}|{address[1]}|{period}"
        return hmac.digest(self._secret, text.encode(), hashlib.sha256)[:COOKIE_BYTES]

    def make_cookie(self, address: Address, now: float) -> bytes:
        """What an address has to return."""
        return self._mac("cookie", address, int(now // COOKIE_PERIOD_S))

    def is_valid_cookie(self, cookie: bytes, address: Address, now: float) -> bool:
        """Whether an address was given this cookie in this period or the one before."""
        period = int(now // COOKIE_PERIOD_S)
        return any(hmac.compare_digest(cookie, self._mac("cookie", address, p)) for p in (period, period - 1))

    def make_challenge(self, token: int, address: Address, now: float) -> int:
        """What a session that speaks from another address has to return from there."""
        return self._number(token, address, int(now // COOKIE_PERIOD_S))

    def is_valid_proof(self, number: int, token: int, address: Address, now: float) -> bool:
        """Whether that number came back from where it was sent."""
        period = int(now // COOKIE_PERIOD_S)
        return number in (self._number(token, address, period), self._number(token, address, period - 1))

    def _number(self, token: int, address: Address, period: int) -> int:
        return int.from_bytes(self._mac(f"prove {token}", address, period)[:8], "big")

    def mark_join_used(self, address: Address, nonce: int, now: float) -> None:
        """The session of this join is over: a copy of the JOIN brings it back no more."""
        while self._used_joins and now - next(iter(self._used_joins.values())) > USED_JOIN_LIFETIME_S:
            del self._used_joins[next(iter(self._used_joins))]
        self._used_joins[address, nonce] = now

    def is_replayed_join(self, address: Address, nonce: int) -> bool:
        """Whether the session of this join is over."""
        return (address, nonce) in self._used_joins
