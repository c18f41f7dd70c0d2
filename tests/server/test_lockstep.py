"""The barrier of a lockstep tick: it waits for all participants, not longer than its limit, and forgets those that
left.
"""

from __future__ import annotations

import math
from typing import Any

from wavesim_sdk.wire.messages import Done
from wavesim_sdk.wire.session import StepDone
from wavesim_server.network.lockstep import Barrier

LIMIT = 2.0
A, B, C = 11, 12, 13
SESSION: Any = None  # the barrier does not use it


def reply(value: float) -> StepDone:
    return StepDone(SESSION, Done(5, 0, (value,), None))


def closed(*clients: int, tick: int = 5, now: float = 10.0) -> Barrier:
    barrier = Barrier(LIMIT)
    barrier.begin(tick, clients, now)
    return barrier


def test_it_opens_when_all_have_answered() -> None:
    barrier = closed(A, B)
    assert barrier.take_replies(10.0) is None
    barrier.add_reply(A, 5, reply(1.0))
    assert barrier.take_replies(10.0) is None and barrier.waiting == {B}
    barrier.add_reply(B, 5, reply(2.0))
    assert barrier.take_replies(10.0) == {A: reply(1.0), B: reply(2.0)}
    assert barrier.tick is None and barrier.deadline == math.inf
    assert barrier.take_replies(99.0) is None, "it is reported once"


def test_without_clients_it_opens_at_once() -> None:
    assert closed().take_replies(10.0) == {}


def test_it_stands_no_longer_than_its_limit() -> None:
    barrier = closed(A, B)
    assert barrier.deadline == 12.0
    barrier.add_reply(A, 5, reply(1.0))
    assert barrier.take_replies(11.999) is None
    assert barrier.take_replies(12.0) == {A: reply(1.0)}
    assert barrier.dismissed == {B}


def test_a_dismissed_client_is_waited_for_again_once_it_answers() -> None:
    barrier = closed(A, B)
    barrier.take_replies(12.0)
    barrier.begin(6, (A, B), 20.0)
    assert barrier.take_replies(20.0) == {}, "nobody is waited for"
    barrier.begin(7, (A, B), 30.0)
    barrier.add_reply(A, 7, reply(3.0))
    assert barrier.take_replies(30.0) == {A: reply(3.0)}, "its answer counts, if it is there in time"
    barrier.begin(8, (A, B), 40.0)
    assert barrier.waiting == {A}
    barrier.add_reply(B, 5, reply(9.0))
    assert barrier.take_replies(40.0) is None and barrier.replies == {}, "an answer to another tick moves nothing"
    barrier.add_reply(A, 8, reply(4.0))
    assert barrier.take_replies(40.0) == {A: reply(4.0)}
    barrier.begin(9, (A, B), 50.0)
    assert barrier.waiting == {A, B}


def test_a_client_that_left_counts_for_nothing() -> None:
    barrier = closed(A, B, C)
    barrier.add_reply(A, 5, reply(1.0))
    barrier.remove_client(A)
    barrier.remove_client(B)
    assert barrier.take_replies(10.0) is None
    barrier.add_reply(C, 5, reply(3.0))
    assert barrier.take_replies(10.0) == {C: reply(3.0)}


def test_a_client_that_left_is_dismissed_no_longer() -> None:
    barrier = closed(A)
    barrier.take_replies(12.0)
    barrier.remove_client(A)
    barrier.begin(6, (A,), 20.0)
    assert barrier.waiting == {A}, "somebody else by that number"


def test_a_session_that_goes_on_for_another_is_asked_in_its_place() -> None:
    barrier = closed(A, B)
    assert barrier.replace_client(A, C, same_client=True)
    assert barrier.waiting == {B, C} and barrier.deadline == 12.0, "the limit is that of the tick"
    assert not barrier.replace_client(99, 98, same_client=True) and barrier.waiting == {B, C} and barrier.replies == {}


def test_what_a_client_answered_before_it_came_back_counts() -> None:
    barrier = closed(A, B)
    barrier.add_reply(A, 5, reply(1.0))
    assert not barrier.replace_client(A, C, same_client=True)
    barrier.add_reply(B, 5, reply(2.0))
    assert barrier.take_replies(10.0) == {B: reply(2.0), C: reply(1.0)}


def test_what_a_client_answered_before_another_took_over_does_not() -> None:
    barrier = closed(A, B)
    barrier.add_reply(A, 5, reply(1.0))
    assert not barrier.replace_client(A, C, same_client=False)
    barrier.add_reply(B, 5, reply(2.0))
    assert barrier.take_replies(10.0) == {B: reply(2.0)}


def test_answers_outside_of_a_tick_are_nothing() -> None:
    barrier = Barrier(LIMIT)
    barrier.add_reply(A, 5, reply(1.0))
    assert barrier.take_replies(10.0) is None and barrier.replies == {}
