"""Wall time of the ticks, on a clock that the test advances."""

from __future__ import annotations

import pytest

from wavesim_server.engine.pace import TickPacer

STEP = 0.01


def test_ticks_keep_wall_time() -> None:
    pace = TickPacer(STEP, 1.0)
    now = 50.0
    for k in range(1, 200):
        due = pace.next_deadline(now, 1000)
        assert due == pytest.approx(50.0 + k * STEP)
        assert pace.next_deadline(now + 0.001, 1000) == due, "asking does not move it"
        now = due + 0.0002  # always a little late
        assert pace.take_due_ticks(now, 1000) == 1
    assert (pace.late_count, pace.slips, pace.slipped_ns) == (0, 0, 0)
    assert pace.lateness_ns == pytest.approx(200_000, abs=100)


def test_slower_than_real_time() -> None:
    pace = TickPacer(STEP, 0.5)
    assert pace.next_deadline(0.0, 1000) == pytest.approx(0.02)
    assert pace.take_due_ticks(0.02, 1000) == 1
    assert pace.next_deadline(0.02, 1000) == pytest.approx(0.04)


@pytest.mark.parametrize(("speed", "ticks"), [(1.0, 1), (2.0, 1), (2.5, 1), (10.0, 4), (100.0, 40)])
def test_several_ticks_at_once_at_a_higher_speed(speed: float, ticks: int) -> None:
    pace = TickPacer(STEP, speed)
    assert pace.next_deadline(0.0, 1000) == pytest.approx(ticks * STEP / speed)
    assert pace.take_due_ticks(ticks * STEP / speed, 1000) == ticks


@pytest.mark.parametrize("speed", [1e9, 1e300])
def test_a_speed_that_nothing_can_keep_leaves_time_for_commands(speed: float) -> None:
    pace = TickPacer(STEP, speed)
    now = pace.next_deadline(0.0, 10**9)
    assert pace.take_due_ticks(now, 10**9) == 1000
    for _ in range(5):  # each call takes a tenth of a second: it falls behind, and is given the time
        now += 0.1
        assert pace.next_deadline(now, 10**9) <= now and pace.take_due_ticks(now, 10**9) == 1000
    assert pace.slips > 0


def test_not_more_ticks_than_until_somebody_is_due() -> None:
    pace = TickPacer(STEP, 100.0)
    assert pace.next_deadline(0.0, 3) == pytest.approx(3 * STEP / 100.0)
    assert pace.take_due_ticks(0.0003, 3) == 3
    pace.next_deadline(0.0003, 40)
    assert pace.take_due_ticks(0.0043, 10) == 10, "somebody came who is due earlier"
    assert pace.next_deadline(0.0043, 40) == pytest.approx(0.0003 + 0.001 + 0.004), "and the clock is not moved by it"


def test_a_tick_more_than_a_step_late_is_counted_and_caught_up() -> None:
    pace = TickPacer(STEP, 1.0)
    assert pace.take_due_ticks(pace.next_deadline(0.0, 9) + STEP, 9) == 1
    assert pace.late_count == 0, "exactly a step is not more than a step"
    assert pace.take_due_ticks(pace.next_deadline(0.0, 9) + 2.0 * STEP + 1e-6, 9) == 1
    assert pace.late_count == 1 and pace.lateness_max_ns == pytest.approx(20_001_000, abs=10)
    assert pace.next_deadline(9.9, 9) == pytest.approx(0.03), "the deadlines stay where they are"
    assert pace.slips == 0


def test_wall_time_that_cannot_be_caught_up_is_given_up() -> None:
    pace = TickPacer(STEP, 1.0)
    due = pace.next_deadline(0.0, 9)
    pace.take_due_ticks(due + 0.25, 9)
    assert (pace.slips, pace.slipped_ns) == (0, 0), "a quarter of a second is caught up"
    due = pace.next_deadline(0.0, 9)
    now = due + 0.3
    pace.take_due_ticks(now, 9)
    assert pace.slips == 1 and pace.slipped_ns == pytest.approx(300_000_000, abs=1000)
    assert pace.next_deadline(now, 9) == pytest.approx(now + STEP), "from here on as if nothing had been"
    pace.take_due_ticks(now + STEP, 9)
    assert pace.lateness_ns == pytest.approx(0, abs=1000) and pace.slips == 1


def test_what_was_late_and_given_up_adds_up() -> None:
    pace = TickPacer(STEP, 10.0)
    now = 0.0
    for k in range(1, 4):
        now = pace.next_deadline(now, 1000) + 0.5
        assert pace.take_due_ticks(now, 1000) == 4
        assert pace.lateness_ns == pace.lateness_max_ns == pytest.approx(500_000_000, abs=50)
        assert (pace.late_count, pace.slips) == (4 * k, k) and pace.slipped_ns == pytest.approx(
            k * 500_000_000, abs=150
        )


def test_a_new_start_owes_nothing() -> None:
    pace = TickPacer(STEP, 1.0)
    pace.take_due_ticks(pace.next_deadline(0.0, 9), 9)
    pace.next_deadline(0.0, 9)
    pace.restart()
    assert pace.next_deadline(77.0, 9) == pytest.approx(77.0 + STEP)


def test_the_factor_is_that_of_the_last_second() -> None:
    pace = TickPacer(STEP, 1.0)
    assert pace.measure_speed(10.0, 0) == 0.0
    assert pace.measure_speed(10.9, 900_000_000) == 0.0, "not before a second is over"
    assert pace.measure_speed(11.0, 2_000_000_000) == pytest.approx(2.0)
    assert pace.measure_speed(11.5, 9_000_000_000) == pytest.approx(2.0)
    assert pace.measure_speed(12.0, 2_500_000_000) == pytest.approx(0.5)
    assert pace.measure_speed(16.0, 8_500_000_000) == pytest.approx(1.5), "or longer, if nobody asked"
