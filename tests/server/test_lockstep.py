"""The barrier of a lockstep tick: waits for all, not longer than its limit, and forgets who left."""

from __future__ import annotations

import math

from wavesim_server.network.lockstep import Barrier, Reply

LIMIT = 2.0
A, B, C = 11, 12, 13


def reply(value: float) -> Reply:
    return Reply((value,), None)


def closed(*clients: int, tick: int = 5, now: float = 10.0) -> Barrier:
    barrier = Barrier(LIMIT)
    barrier.close(tick, clients, now)
    return barrier


def test_it_opens_when_all_have_answered() -> None:
    barrier = closed(A, B)
    assert barrier.open(10.0) is None
    barrier.answered(A, 5, reply(1.0))
    assert barrier.open(10.0) is None and barrier.waiting == {B}
    barrier.answered(B, 5, reply(2.0))
    assert barrier.open(10.0) == {A: reply(1.0), B: reply(2.0)}
    assert barrier.tick is None and barrier.deadline == math.inf
    assert barrier.open(99.0) is None, "it is told once"


def test_without_clients_it_opens_at_once() -> None:
    assert closed().open(10.0) == {}


def test_it_stands_no_longer_than_its_limit() -> None:
    barrier = closed(A, B)
    assert barrier.deadline == 12.0
    barrier.answered(A, 5, reply(1.0))
    assert barrier.open(11.999) is None
    assert barrier.open(12.0) == {A: reply(1.0)}
    assert barrier.dismissed == {B}


def test_a_dismissed_client_is_waited_for_again_once_it_answers() -> None:
    barrier = closed(A, B)
    barrier.open(12.0)
    barrier.close(6, (A, B), 20.0)
    assert barrier.open(20.0) == {}, "nobody is waited for"
    barrier.close(7, (A, B), 30.0)
    barrier.answered(A, 7, reply(3.0))
    assert barrier.open(30.0) == {A: reply(3.0)}, "its answer counts, if it is there in time"
    barrier.close(8, (A, B), 40.0)
    assert barrier.waiting == {A}
    barrier.answered(B, 5, reply(9.0))
    assert barrier.open(40.0) is None and barrier.replies == {}, "an answer to another tick moves nothing"
    barrier.answered(A, 8, reply(4.0))
    assert barrier.open(40.0) == {A: reply(4.0)}
    barrier.close(9, (A, B), 50.0)
    assert barrier.waiting == {A, B}


def test_a_client_that_left_counts_for_nothing() -> None:
    barrier = closed(A, B, C)
    barrier.answered(A, 5, reply(1.0))
    barrier.gone(A)
    barrier.gone(B)
    assert barrier.open(10.0) is None
    barrier.answered(C, 5, reply(3.0))
    assert barrier.open(10.0) == {C: reply(3.0)}


def test_a_client_that_left_is_dismissed_no_longer() -> None:
    barrier = closed(A)
    barrier.open(12.0)
    barrier.gone(A)
    barrier.close(6, (A,), 20.0)
    assert barrier.waiting == {A}, "somebody else by that number"


def test_a_session_that_goes_on_for_another_is_asked_in_its_place() -> None:
    barrier = closed(A, B)
    assert barrier.goes_on(A, C, same=True)
    assert barrier.waiting == {B, C} and barrier.deadline == 12.0, "the limit is that of the tick"
    assert not barrier.goes_on(99, 98, same=True) and barrier.waiting == {B, C} and barrier.replies == {}


def test_what_a_client_answered_before_it_came_back_counts() -> None:
    barrier = closed(A, B)
    barrier.answered(A, 5, reply(1.0))
    assert not barrier.goes_on(A, C, same=True)
    barrier.answered(B, 5, reply(2.0))
    assert barrier.open(10.0) == {B: reply(2.0), C: reply(1.0)}


def test_what_a_client_answered_before_another_took_over_does_not() -> None:
    barrier = closed(A, B)
    barrier.answered(A, 5, reply(1.0))
    assert not barrier.goes_on(A, C, same=False)
    barrier.answered(B, 5, reply(2.0))
    assert barrier.open(10.0) == {B: reply(2.0)}


def test_answers_outside_of_a_tick_are_nothing() -> None:
    barrier = Barrier(LIMIT)
    barrier.answered(A, 5, reply(1.0))
    assert barrier.open(10.0) is None and barrier.replies == {}
