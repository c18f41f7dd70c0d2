"""Bounded per-address state that a server keeps outside sessions: rate limits, cookies, and JOINs that cannot be used
again.
"""

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
TOTAL_HANDSHAKE_RATE = (
    5000.0  #: total number of HELLO datagrams per second from all hosts; the same limit applies to JOIN
)
JOIN_COST = 5.0  #: cost of a JOIN, counted in datagrams: the server must decrypt it and may add a body
USED_JOIN_LIFETIME_S = (
    2.0 * COOKIE_PERIOD_S
)  #: time in s for which JOINs of ended sessions are stored; at least the lifetime of a cookie


class TokenBucket:
    """Rate limit in events (such as datagrams) per second. ``burst`` is the maximum number of events in one burst; by
    default, the number that the rate permits in one second.
    """

    __slots__ = ("burst", "rate", "received", "tokens", "updated_at")

    def __init__(self, rate: float, burst: float | None = None) -> None:
        self.rate = rate
        self.burst = self.tokens = rate if burst is None else burst
        self.updated_at = 0.0
        #: number of bytes received from a host without a validated address, minus the number sent to the host
        self.received = 0

    def consume(self, now: float, cost: float = 1.0) -> bool:
        """Count an event with this cost if the rate permits it; return whether it does."""
        if self.rate == math.inf:
            return True
        self.tokens = min(self.tokens + self.rate * max(now - self.updated_at, 0.0), self.burst)
        self.updated_at = max(self.updated_at, now)
        if self.tokens < cost:
            return False
        self.tokens -= cost
        return True

    def is_full(self, now: float) -> bool:
        """Return whether the limit currently permits a whole burst. It then equals a new limit and need not be stored."""
        return self.tokens + self.rate * (now - self.updated_at) >= self.burst


class AddressValidator:
    """Rate limits and cookies for addresses without a session, and the JOINs of ended sessions."""

    def __init__(self, rate: float, rng: random.Random) -> None:
        self._rate = rate
        self._hosts: dict[str, TokenBucket] = {}
        total_rate = math.inf if rate == math.inf else TOTAL_HANDSHAKE_RATE
        self._hellos, self._joins = TokenBucket(total_rate), TokenBucket(total_rate)
        self._used_joins: dict[tuple[Address, int], float] = {}  # joins of ended sessions, with the time of their end
        self._secret = rng.randbytes(32)

    def count_datagram(self, host: str, now: float, cost: float = 1.0) -> None:
        """Count a datagram from outside a session against the limit of its host; raise Dropped if the limit is
        exceeded.
        """
        bucket = self._hosts.get(host)
        if bucket is None:
            if len(self._hosts) >= MAX_HOSTS:
                self._hosts.clear()
            bucket = self._hosts[host] = TokenBucket(self._rate)
        if not bucket.consume(now, min(cost, self._rate)):
            raise Dropped("strangers")

    def affords(self, host: str, received: int, answer: int) -> bool:
        """Return whether the server may send an answer of ``answer`` bytes to a host whose address has not been
        validated.

        The server never sends such a host more bytes than it has received from that host, so that no client can use the
        server to flood a third party. ``received`` is the size in bytes of the datagram that the server would answer;
        call :meth:`count_datagram` first.
        """
        bucket = self._hosts[host]
        bucket.received = min(bucket.received + received, MAX_DATAGRAM)
        if bucket.received < answer:
            return False
        bucket.received -= answer
        return True

    def count_hello(self, now: float) -> None:
        """Count a HELLO against the combined limit for all hosts; raise Dropped if the limit is exceeded."""
        if not self._hellos.consume(now):
            raise Dropped("strangers")

    def count_join(self, now: float) -> None:
        """Count a JOIN against the combined limit for all hosts, before its cookie is checked; raise Dropped if the
        limit is exceeded.
        """
        if not self._joins.consume(now):
            raise Dropped("strangers")

    def _mac(self, what: str, address: Address, period: int) -> bytes:
        text = f"{what}|{address[0]}|{address[1]}|{period}"
        return hmac.digest(self._secret, text.encode(), hashlib.sha256)[:COOKIE_BYTES]

    def make_cookie(self, address: Address, now: float) -> bytes:
        """Return the cookie that an address must send back."""
        return self._mac("cookie", address, int(now // COOKIE_PERIOD_S))

    def is_valid_cookie(self, cookie: bytes, address: Address, now: float) -> bool:
        """Return whether the server sent this cookie to the address in the current or the previous period."""
        period = int(now // COOKIE_PERIOD_S)
        return any(hmac.compare_digest(cookie, self._mac("cookie", address, p)) for p in (period, period - 1))

    def make_challenge(self, token: int, address: Address, now: float) -> int:
        """Return the number that a session must send back from its new address."""
        return self._number(token, address, int(now // COOKIE_PERIOD_S))

    def is_valid_proof(self, number: int, token: int, address: Address, now: float) -> bool:
        """Return whether a PROOF contains the number that the server sent to this address."""
        period = int(now // COOKIE_PERIOD_S)
        return number in (self._number(token, address, period), self._number(token, address, period - 1))

    def _number(self, token: int, address: Address, period: int) -> int:
        return int.from_bytes(self._mac(f"prove {token}", address, period)[:8], "big")

    def mark_join_used(self, address: Address, nonce: int, now: float) -> None:
        """Record that the session opened by this JOIN has ended, so that a copy of the JOIN cannot start the session
        again.
        """
        while self._used_joins and now - next(iter(self._used_joins.values())) > USED_JOIN_LIFETIME_S:
            del self._used_joins[next(iter(self._used_joins))]
        self._used_joins[address, nonce] = now

    def is_replayed_join(self, address: Address, nonce: int) -> bool:
        """Return whether the session opened by this JOIN has already ended."""
        return (address, nonce) in self._used_joins
