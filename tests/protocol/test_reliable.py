"""Numbered items: delivered once and in order, repeated by the measured round trip, within bounds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavesim_sdk.wire.reliable import (
    ACK_DELAY_S,
    FIRST_WAIT_S,
    ITEMS_BYTES,
    MAX_PENDING,
    MAX_TIMEOUT_S,
    MIN_TIMEOUT_S,
    SMALL_WINDOW,
    WINDOW,
    Inbox,
    Outbox,
    RttEstimator,
)


def numbers(found: list[tuple[int, list[int]]]) -> list[int]:
    """What some datagrams carry, checked against their first numbers: item k of these tests is the number k."""
    for first, items in found:
        assert items == list(range(first, first + len(items)))
    return [i for _, items in found for i in items]


def filled(count: int, pace: RttEstimator | None = None) -> Outbox:
    outbox = Outbox(pace or RttEstimator())
    for k in range(1, count + 1):
        assert outbox.push(k) == k
    return outbox


# ------------------------------------------------------------------------------------------------ how long to wait


def test_the_wait_follows_the_measured_round_trip() -> None:
    pace = RttEstimator()
    assert pace.timeout() == FIRST_WAIT_S == 0.2
    pace.add_sample(0.1)
    assert pace.timeout() == pytest.approx(0.1 + 4 * 0.05), "RFC 6298: half of the first sample is its spread"
    pace.add_sample(0.3)
    assert pace.rtt_variation == pytest.approx(0.75 * 0.05 + 0.25 * 0.2) and pace.smoothed_rtt == pytest.approx(
        0.875 * 0.1 + 0.125 * 0.3
    )
    for _ in range(200):
        pace.add_sample(0.05)
    assert pace.timeout() == pytest.approx(0.05, rel=0.01), "a steady round trip has no spread"


def test_the_wait_is_bounded_and_doubles() -> None:
    pace = RttEstimator()
    for _ in range(100):
        pace.add_sample(0.0001)
    assert pace.timeout() == MIN_TIMEOUT_S == 0.02
    assert [pace.timeout(k) for k in range(4)] == [0.02, 0.04, 0.08, 0.16]
    assert pace.timeout(100) == MAX_TIMEOUT_S == 1.0
    pace.add_sample(30.0)
    assert pace.timeout() == 1.0


# ------------------------------------------------------------------------------------------------ sending


def test_a_single_item_waits_and_is_due_at_once() -> None:
    outbox = Outbox(RttEstimator())
    assert not outbox.has_unsent and outbox.next_timer() is None
    outbox.push(1)
    assert outbox.has_unsent and outbox.next_timer() == 0.0
    outbox.take_due(0.0)
    assert not outbox.has_unsent


def test_new_items_go_at_once_and_only_once() -> None:
    outbox = filled(3)
    assert outbox.has_unsent and numbers(outbox.take_due(0.0)) == [1, 2, 3]
    assert not outbox.has_unsent and outbox.take_due(0.0) == []
    outbox.push(4)
    assert numbers(outbox.take_due(0.01)) == [4]


def test_what_is_not_acknowledged_is_repeated_after_the_wait_and_then_ever_later() -> None:
    outbox = filled(2)
    outbox.take_due(0.0)
    wait = FIRST_WAIT_S + ACK_DELAY_S
    assert outbox.next_timer() == pytest.approx(wait)
    assert outbox.take_due(wait - 0.001) == [] and numbers(outbox.take_due(wait)) == [1, 2]
    again = wait + 2 * FIRST_WAIT_S + ACK_DELAY_S
    assert outbox.take_due(again - 0.001) == [] and numbers(outbox.take_due(again)) == [1, 2]
    outbox.acknowledge(1, again)
    assert numbers(outbox.take_due(again + wait + 1e-9)) == [2], "an acknowledgement ends the doubling"
    outbox.acknowledge(2, again + wait)
    assert outbox.next_timer() is None and len(outbox) == 0 and outbox.take_due(100.0) == []


def test_an_acknowledgement_of_what_was_never_sent_is_ignored() -> None:
    outbox = filled(2)
    outbox.acknowledge(1, 0.0)
    assert len(outbox) == 2, "pushed, but not sent yet"
    outbox.take_due(0.0)
    outbox.push(3)
    for nonsense in (3, 4, 2**32 - 1):
        outbox.acknowledge(nonsense, 0.0)
        assert len(outbox) == 3
    outbox.acknowledge(2, 0.0)
    assert outbox.unacknowledged() == [3] and numbers(outbox.take_due(0.0)) == [3]


def test_old_acknowledgements_change_nothing() -> None:
    outbox = filled(3)
    outbox.take_due(0.0)
    outbox.acknowledge(2, 0.1)
    timer = outbox.next_timer()
    for old in (0, 1, 2):
        outbox.acknowledge(old, 0.15)
    assert outbox.next_timer() == timer and outbox.unacknowledged() == [3]


def test_only_what_was_sent_once_tells_the_round_trip() -> None:
    pace = RttEstimator()
    outbox = filled(1, pace)
    outbox.take_due(0.0)
    outbox.acknowledge(1, 0.05)
    assert pace.smoothed_rtt == 0.05
    outbox.push(2)
    outbox.take_due(1.0)
    outbox.take_due(9.0)  # repeated: whose acknowledgement this will be is unknown
    outbox.acknowledge(2, 9.01)
    assert pace.smoothed_rtt == 0.05
    outbox.push(3)
    outbox.take_due(10.0)
    outbox.acknowledge(3, 10.1)
    assert pace.smoothed_rtt == pytest.approx(0.875 * 0.05 + 0.125 * 0.1)


def test_a_round_trip_is_that_of_the_first_item_on_its_way() -> None:
    pace = RttEstimator()
    outbox = filled(1, pace)
    outbox.take_due(0.0)
    outbox.push(2)
    outbox.take_due(0.1)
    outbox.acknowledge(1, 0.15)
    assert pace.smoothed_rtt == 0.15
    outbox.acknowledge(2, 0.9)
    assert pace.smoothed_rtt == 0.15, "the second was sent while the first was timed"


def test_what_was_sent_before_a_loss_tells_no_round_trip_when_it_is_sent_again() -> None:
    pace = RttEstimator()
    outbox = Outbox(pace)
    for _ in range(2 * SMALL_WINDOW):
        outbox.push(bytes(ITEMS_BYTES - 3))
    assert len(outbox.take_due(0.0)) == 2 * SMALL_WINDOW
    assert len(outbox.take_due(5.0)) == SMALL_WINDOW, "again from the gap, a few"
    outbox.acknowledge(SMALL_WINDOW, 5.1)
    assert len(outbox.take_due(5.1)) == SMALL_WINDOW, "and the others again"
    outbox.acknowledge(2 * SMALL_WINDOW, 5.2)
    assert pace.smoothed_rtt is None and len(outbox) == 0


def test_each_repeat_in_vain_doubles_the_wait_and_an_answer_ends_that() -> None:
    outbox = filled(3)
    outbox.take_due(0.0)
    now, waits = 0.0, []
    for _ in range(4):
        timer = outbox.next_timer()
        assert timer is not None and outbox.take_due(timer - 1e-6) == []
        waits.append(timer - now - ACK_DELAY_S)
        now = timer
        assert numbers(outbox.take_due(now)) == [1, 2, 3]
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.0])
    outbox.acknowledge(1, now)
    assert outbox.next_timer() == pytest.approx(now + FIRST_WAIT_S + ACK_DELAY_S)


def test_the_time_of_what_is_next_counts_from_its_own_sending() -> None:
    """Not from the answer to what went before it: that may have been long under way, and this is lost since."""
    pace = RttEstimator()
    outbox = filled(1, pace)
    outbox.take_due(0.0)
    for k in (2, 3):
        outbox.push(k)
    outbox.take_due(0.05)
    outbox.push(4)
    outbox.take_due(0.1)
    outbox.acknowledge(1, 0.2)
    assert outbox.next_timer() == pytest.approx(0.05 + pace.timeout() + ACK_DELAY_S)
    outbox.acknowledge(2, 0.3)
    assert outbox.next_timer() == pytest.approx(0.05 + pace.timeout() + ACK_DELAY_S), "of 2 and 3, sent together"
    outbox.acknowledge(3, 0.4)
    assert outbox.next_timer() == pytest.approx(0.1 + pace.timeout() + ACK_DELAY_S)
    again = outbox.next_timer()
    assert again is not None and numbers(outbox.take_due(again)) == [4]
    outbox.push(5)
    outbox.take_due(again + 0.5)
    outbox.acknowledge(4, again + 0.6)
    assert outbox.next_timer() == pytest.approx(again + 0.5 + pace.timeout() + ACK_DELAY_S), "a repeat is a sending"


def test_two_items_that_just_fit_go_in_one_datagram() -> None:
    outbox = Outbox(RttEstimator())
    for size in (500, ITEMS_BYTES - 500, 500, ITEMS_BYTES - 499):
        outbox.push(bytes(size - 3))  # with three bytes of its own
    assert [len(items) for _, items in outbox.take_due(0.0)] == [2, 1, 1]


def test_an_item_that_fits_no_datagram_is_refused_at_once() -> None:
    outbox = Outbox(RttEstimator())
    outbox.push(bytes(ITEMS_BYTES - 3))
    with pytest.raises(
        ValueError, match=f"the item has {ITEMS_BYTES + 1} bytes; the maximum that fits in a datagram is {ITEMS_BYTES}"
    ):
        outbox.push(bytes(ITEMS_BYTES - 2))
    assert outbox.last == 1 and len(outbox) == 1


def test_a_peer_that_acknowledges_nothing_is_reported() -> None:
    outbox = filled(MAX_PENDING)
    with pytest.raises(OverflowError, match="the peer acknowledged none of the last 4096"):
        outbox.push(0)
    outbox.take_due(0.0)
    outbox.acknowledge(1, 0.1)
    assert outbox.push(0) == MAX_PENDING + 1


def test_datagrams_are_filled_and_never_more() -> None:
    outbox = Outbox(RttEstimator())
    for _ in range(40):
        outbox.push(bytes(298))  # 301 bytes with their head
    found = outbox.take_due(0.0)
    assert [len(items) for _, items in found] == [ITEMS_BYTES // 301] * (40 // (ITEMS_BYTES // 301)) + [40 % 3] * (
        40 % 3 > 0
    )
    small = filled(600).take_due(0.0)
    assert [(first, len(items)) for first, items in small] == [(1, 256), (257, 256), (513, 88)]


def test_the_window_bounds_what_is_on_its_way() -> None:
    outbox = Outbox(RttEstimator())
    for _ in range(100):
        outbox.push(bytes(ITEMS_BYTES - 3))
    first = outbox.take_due(0.0)
    assert len(first) == WINDOW and outbox.has_unsent and outbox.take_due(0.0) == []
    outbox.acknowledge(10, 0.05)
    assert [n for n, _ in outbox.take_due(0.05)] == list(range(WINDOW + 1, WINDOW + 11))
    late = outbox.take_due(5.0)
    assert [n for n, _ in late] == list(range(11, 11 + SMALL_WINDOW)), "after a loss it begins small, from the gap"
    outbox.acknowledge(10 + SMALL_WINDOW, 5.1)
    assert [n for n, _ in outbox.take_due(5.1)] == list(range(15, 15 + 2 * SMALL_WINDOW)), "and grows again"
    outbox.acknowledge(WINDOW + 10, 5.2)
    assert outbox.take_due(5.2)[0][0] == WINDOW + 11, "what the peer had already is not sent again"
    again = filled(10 * 256)
    again.take_due(0.0)
    assert len(again.take_due(9.0)) == SMALL_WINDOW and again.has_unsent
    again.acknowledge(10 * 256, 9.1)
    assert not again.has_unsent and len(again) == 0


# ------------------------------------------------------------------------------------------------ receiving


def test_an_inbox_takes_each_once_and_leaves_no_gap() -> None:
    inbox = Inbox()
    assert inbox.accept(2, ["b"]) == [] and inbox.received == 0, "a gap"
    assert inbox.accept(1, ["a", "b"]) == [(1, "a"), (2, "b")]
    assert inbox.accept(1, ["a", "b"]) == [] and inbox.accept(2, ["b", "c"]) == [(3, "c")]
    assert inbox.accept(0, ["x", "y", "z", "0", "1"]) == [], "numbers begin with 1"
    assert inbox.accept(5, ["e"]) == [] and inbox.accept(4, []) == [] and inbox.received == 3


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.0, 0.6), st.integers(1, 400))
def test_over_any_bad_link_all_come_once_and_in_order(seed: int, loss: float, count: int) -> None:
    """Loss, doubling and reordering in both directions."""
    dice = random.Random(seed)
    outbox, inbox = Outbox(RttEstimator()), Inbox()
    got: list[int] = []
    on_the_way: list[tuple[float, int, list[int] | int]] = []
    now, pushed = 0.0, 0
    while len(got) < count:
        now += 0.01
        assert now < 3000.0, "it never arrives"
        for _ in range(dice.randrange(20)):
            if pushed < count:
                pushed += 1
                outbox.push(pushed)
        for first, items in outbox.take_due(now):
            for _ in range(1 + (dice.random() < 0.1)):
                if dice.random() >= loss:
                    on_the_way.append((now + dice.uniform(0.0, 0.1), first, items))
        due = [w for w in on_the_way if w[0] <= now]
        on_the_way = [w for w in on_the_way if w[0] > now]
        for _, first, payload in sorted(due, key=lambda w: w[0]):
            if isinstance(payload, list):
                got += [item for _, item in inbox.accept(first, payload)]
                if dice.random() >= loss:
                    on_the_way.append((now + dice.uniform(0.0, 0.1), 0, inbox.received))
            else:
                outbox.acknowledge(payload, now)
    assert got == list(range(1, count + 1))
