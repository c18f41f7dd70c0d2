"""Datagrams from outside a session: they cost little, are limited, and must prove their address."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from wavesim_sdk.testing import sessions_for_tests
from wavesim_sdk.wire import address_validation, codec
from wavesim_sdk.wire.address_validation import (
    COOKIE_PERIOD_S,
    MAX_HOSTS,
    TOTAL_HANDSHAKE_RATE,
    AddressValidator,
    TokenBucket,
)
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.messages import Challenge, Hello, Join

A, B = ("10.0.0.1", 4000), ("10.0.0.2", 4000)


def strangers_of(rate: float = math.inf, seed: int = 1) -> AddressValidator:
    return AddressValidator(rate, random.Random(seed))


def test_a_bucket_holds_a_second_and_fills_again() -> None:
    bucket = TokenBucket(10.0)
    assert [bucket.consume(0.0) for _ in range(11)] == [True] * 10 + [False]
    assert not bucket.consume(0.09) and bucket.consume(0.11) and not bucket.consume(0.11)
    assert [bucket.consume(100.0) for _ in range(11)] == [True] * 10 + [False], "never more than a second's worth"
    assert not bucket.consume(50.0), "time that runs backwards gives nothing and takes nothing"
    assert bucket.consume(100.2, 1.5) and not bucket.consume(100.2, 1.5)
    assert all(TokenBucket(math.inf).consume(0.0, 1e9) for _ in range(3))


def test_a_cookie_lives_for_one_to_two_periods() -> None:
    """Not a period longer: ten to twenty seconds, as the page says."""
    s = strangers_of()
    for born in (0.0, 3.0, COOKIE_PERIOD_S - 0.001):
        cookie = s.make_cookie(A, born)
        last = 2 * COOKIE_PERIOD_S - 0.001
        assert (
            s.is_valid_cookie(cookie, A, born)
            and s.is_valid_cookie(cookie, A, COOKIE_PERIOD_S)
            and s.is_valid_cookie(cookie, A, last)
        )
        assert not s.is_valid_cookie(cookie, A, 2 * COOKIE_PERIOD_S) and not s.is_valid_cookie(cookie, A, 1e6)
    assert len(s.make_cookie(A, 0.0)) == 16 and COOKIE_PERIOD_S == 10.0


def test_a_cookie_belongs_to_an_address_and_a_server() -> None:
    s = strangers_of()
    cookie = s.make_cookie(A, 0.0)
    for other in (B, (A[0], A[1] + 1)):
        assert not s.is_valid_cookie(cookie, other, 0.0) and s.make_cookie(other, 0.0) != cookie
    assert not strangers_of(seed=2).is_valid_cookie(cookie, A, 0.0) and strangers_of().is_valid_cookie(cookie, A, 0.0)
    assert not s.is_valid_cookie(cookie[:15], A, 0.0) and not s.is_valid_cookie(b"", A, 0.0)


def test_a_proof_belongs_to_a_session_an_address_and_a_time() -> None:
    s = strangers_of()
    number = s.make_challenge(7, A, 5.0)
    assert s.is_valid_proof(number, 7, A, 5.0) and s.is_valid_proof(number, 7, A, 2 * COOKIE_PERIOD_S - 0.001)
    assert not s.is_valid_proof(number, 7, A, 2 * COOKIE_PERIOD_S)
    assert (
        not s.is_valid_proof(number, 8, A, 5.0)
        and not s.is_valid_proof(number, 7, B, 5.0)
        and not s.is_valid_proof(number + 1, 7, A, 5.0)
    )
    assert 0 <= number < 2**64


def too_many(ask: Callable[..., None], *values: Any) -> None:
    """It is dropped, under the name that the page gives."""
    with pytest.raises(Dropped) as caught:
        ask(*values)
    assert caught.value.reason == "strangers" and caught.value.reason in codec.DROP_REASONS


def test_a_host_knocks_no_faster_than_allowed() -> None:
    s = strangers_of(rate=10.0)
    for _ in range(10):
        s.count_datagram("a", 0.0)
    too_many(s.count_datagram, "a", 0.0)
    s.count_datagram("b", 0.0)
    s.count_datagram("a", 0.1)
    s.count_datagram("c", 0.0, 100.0)
    too_many(s.count_datagram, "c", 0.5, 100.0)
    s.count_datagram("c", 1.0, 100.0)


def test_what_is_kept_of_hosts_is_bounded() -> None:
    s = strangers_of(rate=10.0)
    for k in range(3 * MAX_HOSTS):
        s.count_datagram(f"host {k}", 0.0)
        assert len(s._hosts) <= MAX_HOSTS


def test_all_strangers_together_are_limited() -> None:
    """Many hosts cost no more than a few; joins are counted for themselves, so that a flood of HELLOs shuts nobody out who is
    through already."""
    s = strangers_of(rate=100.0)
    for _ in range(int(TOTAL_HANDSHAKE_RATE)):
        s.count_hello(0.0)
    too_many(s.count_hello, 0.0)
    for _ in range(int(TOTAL_HANDSHAKE_RATE)):
        s.count_join(0.0)
    too_many(s.count_join, 0.0)
    s.count_hello(0.5)
    s.count_join(0.5)


def test_a_server_without_a_limit_has_none_for_strangers_either() -> None:
    s = strangers_of(rate=math.inf)
    for k in range(int(TOTAL_HANDSHAKE_RATE) + 10):
        s.count_hello(0.0)
        s.count_join(0.0)
        s.count_datagram("a", 0.0, float(k))


def test_the_join_of_a_session_that_is_over_brings_nothing_back() -> None:
    s = strangers_of()
    s.mark_join_used(A, 7, 100.0)
    assert s.is_replayed_join(A, 7) and not s.is_replayed_join(A, 8) and not s.is_replayed_join(B, 7)
    s.mark_join_used(B, 1, 100.0 + 2 * COOKIE_PERIOD_S)
    assert s.is_replayed_join(A, 7), "as long as its cookie may live"
    s.mark_join_used(B, 2, 100.1 + 2 * COOKIE_PERIOD_S)
    assert not s.is_replayed_join(A, 7) and s.is_replayed_join(B, 1) and len(s._used_joins) == 2, (
        "and no longer is it kept"
    )


def test_a_flood_of_hellos_and_forged_joins_is_counted_and_bounded() -> None:
    sessions = sessions_for_tests(rate=100.0)
    hello, join = codec.encode(Hello(1, bytes(40))), codec.encode(Join(name="a"))
    for k in range(12_000):
        sessions.receive(hello, (f"10.1.{k // 250}.{k % 250}", 9), 0.0)
    assert (
        len(sessions.outgoing) == TOTAL_HANDSHAKE_RATE and sessions.drops["strangers"] == 12_000 - TOTAL_HANDSHAKE_RATE
    )
    for k in range(300):
        sessions.receive(join, ("10.2.0.1", 1000 + k), 0.0)
    assert len(sessions.outgoing) == TOTAL_HANDSHAKE_RATE + 100 / address_validation.JOIN_COST, "one host, many ports"
    for k in range(6000):
        sessions.receive(join, (f"10.4.{k // 250}.{k % 250}", 9), 0.0)
    assert len(sessions.outgoing) == 2 * TOTAL_HANDSHAKE_RATE, "many hosts"
    assert sessions.drops["strangers"] == 12_000 + 300 + 6000 - len(sessions.outgoing) and sessions.by_token == {}
    sessions.receive(hello, ("10.3.0.1", 9), 1.0)
    answer = codec.decode_header(sessions.outgoing[-1][0], from_client=False)
    assert isinstance(codec.decode_payload(sessions.outgoing[-1][0], answer), Challenge), "a second later all is well"
