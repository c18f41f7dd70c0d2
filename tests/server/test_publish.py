"""Data that the front writes to shared memory: the newest records with a count of missed ones, clients, and estimates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.attach import simulation_tables
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import (
    CLIENTS,
    CREW,
    CREW_ROWS,
    ESTIMATE,
    HISTORY_ROWS,
    NOTICE,
    RECEPTION,
    SENT,
    VEHICLE_TABLES,
)
from wavesim_sdk.wire.messages import Join, Right, Role
from wavesim_sdk.wire.session import Admission, Session
from wavesim_server.network.crews import CrewMember, SessionGrant
from wavesim_server.network.front_tables import CLIENTS_PERIOD_S, HISTORY_PERIOD_S, FrontTables, NewestRecords

BODIES = 4


@pytest.fixture
def area() -> SharedMemoryArea:
    return SharedMemoryArea.create_private([(NOTICE, 8)])


class Desk:
    """A publisher, and what a reader sees of it."""

    def __init__(self) -> None:
        self.simulation = SharedMemoryArea.create_private(simulation_tables(BODIES, 2))
        self.vehicles = SharedMemoryArea.create_private([(t, BODIES) for t in VEHICLE_TABLES])
        self.publisher = FrontTables(self.simulation, self.vehicles)

    def seen(self, table: str) -> tuple[int, Any]:
        """(tick, rows) of a table."""
        area = self.vehicles if table == ESTIMATE.name else self.simulation
        return area[table].snapshot()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def member(row: int, role: Role = Role.PILOT, ordinal: int = 0, name: str = "auv", token: int = 7) -> CrewMember:
    session = Session(
        token, ("10.0.0.7", 4321), Join(name=name, role=role, lockstep_ns=50), Admission(row, 1, 1500.0), 98.5
    )
    berth = SessionGrant(row, name, "lauv", 1, True, True, Right(0), False, 0, (), ())
    return CrewMember(session, berth, math.inf, ordinal=ordinal)


# -- the newest records ---------------------------------------------------------------------------------


def rows_of(first: int, count: int) -> Any:
    rows = np.zeros(count, NOTICE.dtype)
    rows["time_ns"] = np.arange(first, first + count)
    return rows


def test_the_newest_of_many(area: SharedMemoryArea) -> None:
    newest = NewestRecords(area[NOTICE.name])
    draw = np.random.default_rng(3)
    written = seen = missed = 0
    taken: list[int] = []
    while written < 500:
        count = int(draw.integers(0, 12))
        newest.add(rows_of(written, count))
        written += count
        if draw.random() < 0.5:
            newest.publish()
            total, ring = area[NOTICE.name].snapshot()
            assert total == written
            assert ring.tobytes() == newest.rows.tobytes(), "those of before, too: only what is new is written"
            first = max(seen, total - 8)
            missed += first - seen
            taken += ring[np.arange(first, total) % 8]["time_ns"].tolist()
            seen = total
    assert len(taken) + missed == seen
    assert taken == sorted(set(taken)), "each once, in order"


@pytest.mark.parametrize("count", [1, 7, 8, 9, 20])
def test_after_each_number_of_records_the_last_eight_are_there(area: SharedMemoryArea, count: int) -> None:
    newest = NewestRecords(area[NOTICE.name])
    for start in (0, count):
        newest.add(rows_of(start, count))
        newest.publish()
        total, ring = area[NOTICE.name].snapshot()
        last = range(max(0, total - 8), total)
        assert total == start + count and [int(ring[k % 8]["time_ns"]) for k in last] == list(last)


def test_nothing_new_is_not_written_again(area: SharedMemoryArea) -> None:
    newest, table = NewestRecords(area[NOTICE.name]), area[NOTICE.name]
    newest.publish()
    assert table.header[1] == 0, "nothing was ever published"
    newest.add(rows_of(0, 3))
    newest.publish()
    newest.publish()
    assert table.header[1] == 1


def test_a_front_after_one_that_crashed_counts_on(area: SharedMemoryArea) -> None:
    first = NewestRecords(area[NOTICE.name])
    first.add(rows_of(0, 11))
    first.publish()
    after = NewestRecords(area[NOTICE.name])
    after.publish()
    assert area[NOTICE.name].header[1] == 1, "what is there already is not published again"
    after.add(rows_of(11, 2))
    after.publish()
    total, ring = area[NOTICE.name].snapshot()
    assert total == 13 and sorted(ring["time_ns"].tolist()) == list(range(5, 13))


# -- signals and notices ---------------------------------------------------------------------------------


def test_signals_and_notices_come_in_their_tables(desk: Desk) -> None:
    sent, receptions = np.zeros(2, SENT.dtype), np.zeros(3, RECEPTION.dtype)
    sent["id"], receptions["id"] = (4, 5), (6, 7, 8)
    desk.publisher.signals(sent, receptions)
    desk.publisher.notice(12_000, 3, "b\u00f6at", "no command for 2 s: \u2026")
    for table in (SENT.name, RECEPTION.name, NOTICE.name):
        assert desk.seen(table)[0] == 0, "not before it is due"
    desk.publisher.flush(50)
    total, rows = desk.seen(SENT.name)
    assert total == 2 and rows["id"][:3].tolist() == [4, 5, 0] and len(rows) == HISTORY_ROWS
    total, rows = desk.seen(RECEPTION.name)
    assert total == 3 and rows["id"][:4].tolist() == [6, 7, 8, 0]
    total, rows = desk.seen(NOTICE.name)
    assert total == 1 and (rows[0]["time_ns"], rows[0]["row"]) == (12_000, 3)
    assert bytes(rows[0]["name"]).decode() == "b\u00f6at" and bytes(rows[0]["text"]).decode().endswith("2 s: \u2026")


# -- what navigators believe -----------------------------------------------------------------------------


def test_what_a_navigator_believes(desk: Desk) -> None:
    desk.publisher.flush(1)
    assert desk.vehicles[ESTIMATE.name].header[1] == 0, "nobody believes anything yet"
    desk.publisher.estimate(2, [1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 7.0, 8.0, 9.0, None, 99.0])
    desk.publisher.flush(25)
    tick, rows = desk.seen(ESTIMATE.name)
    assert tick == 25 and rows["p_WB_W"][2].tolist() == [1.0, 2.0, 3.0] and rows["sigma"][2].tolist() == [0.1, 0.2, 0.3]
    assert rows["dead_reckoning_W"][2].tolist() == [7.0, 8.0, 9.0] and np.isnan(rows["innovation"][2])
    assert not rows["p_WB_W"][[0, 1, 3]].any(), "and of nobody else"
    desk.publisher.flush(26)
    assert desk.seen(ESTIMATE.name)[0] == 25, "nothing new"
    desk.publisher.estimate(1, [5.0] * 10)
    desk.publisher.flush(27)
    tick, rows = desk.seen(ESTIMATE.name)
    assert tick == 27 and rows["p_WB_W"][1:3, 0].tolist() == [5.0, 1.0], "the others stay"


def test_too_few_numbers_are_no_belief(desk: Desk) -> None:
    desk.publisher.estimate(2, [1.0] * 9)
    desk.publisher.flush(25)
    assert desk.vehicles[ESTIMATE.name].header[1] == 0


def test_what_was_believed_does_not_stay_for_the_next_in_the_row(desk: Desk) -> None:
    for row in (1, 2):
        desk.publisher.estimate(row, [1.0] * 10)
    desk.publisher.flush(25)
    desk.publisher.mark_departed(2, 3)
    desk.publisher.flush(30)
    tick, rows = desk.seen(ESTIMATE.name)
    assert tick == 30 and not rows["p_WB_W"][2].any() and rows["innovation"][2] == 0.0
    assert rows["p_WB_W"][1].tolist() == [1.0] * 3


# -- who is there --------------------------------------------------------------------------------------------


def test_a_pilot_with_all_that_is_known_of_it(desk: Desk) -> None:
    pilot = member(2)
    s = pilot.session
    s.rtt_statistics.sent, s.datagrams_in, s.datagrams_out = 9, 41, 42
    for seconds in (0.02, 0.01, 0.06):
        s.rtt_statistics.add_sample(seconds)
    desk.publisher.poll(100.0, 25, [pilot])
    tick, rows = desk.seen(CLIENTS.name)
    assert tick == 25 and rows["status"].tolist() == [0, 0, 1, 0]
    r = rows[2]
    assert (bytes(r["name"]), bytes(r["address"]), r["port"], r["type"]) == (b"auv", b"10.0.0.7", 4321, 1)
    assert (r["lockstep_ns"], r["silent"], r["keepalives"], r["replies"]) == (50, 1.5, 9, 3)
    assert (r["rtt_last"], r["rtt_mean"], r["rtt_min"], r["rtt_max"]) == (0.06, pytest.approx(0.03), 0.01, 0.06)
    assert (r["datagrams_in"], r["datagrams_out"]) == (41, 42)
    assert desk.seen(CREW.name)[1]["body"].tolist() == [-1] * (BODIES + CREW_ROWS), "a pilot is no crew"


def test_others_on_board_in_the_order_of_bodies_and_ordinals(desk: Desk) -> None:
    crew = [
        member(3, Role.LISTENER, 1),
        member(1, Role.INSTRUMENT, 2),
        member(1),
        member(1, Role.LISTENER, 1),
    ]
    last = crew[0].session
    last.datagrams_in, last.datagrams_out = 5, 6
    last.rtt_statistics.add_sample(0.5)
    desk.publisher.poll(100.0, 25, iter(crew))
    tick, rows = desk.seen(CREW.name)
    there = rows[rows["body"] >= 0]
    assert tick == 25 and len(there) == 3 and (rows["body"][:3] >= 0).all(), "no empty row between them"
    assert there["body"].tolist() == [1, 1, 3] and there["ordinal"].tolist() == [1, 2, 1]
    assert there["role"].tolist() == [Role.LISTENER, Role.INSTRUMENT, Role.LISTENER]
    r = there[2]
    assert (bytes(r["address"]), r["port"], r["silent"], r["rtt_mean"]) == (b"10.0.0.7", 4321, 1.5, 0.5)
    assert (r["datagrams_in"], r["datagrams_out"]) == (5, 6)
    assert desk.seen(CLIENTS.name)[1]["status"].tolist() == [0, 1, 0, 0]
    desk.publisher.poll(101.0, 30, [])
    assert (desk.seen(CREW.name)[1]["body"] == -1).all(), "who went is there no more"


def test_more_on_board_than_rows_leaves_out_the_last(desk: Desk) -> None:
    room = BODIES + CREW_ROWS
    desk.publisher.poll(100.0, 25, [member(0, Role.LISTENER, k + 1) for k in range(room + 3)])
    assert desk.seen(CREW.name)[1]["ordinal"].tolist() == list(range(1, room + 1))


def test_how_a_client_went_stays_until_the_next_comes(desk: Desk) -> None:
    pilots = [member(k, token=k) for k in range(3)]
    desk.publisher.poll(100.0, 25, pilots)
    desk.publisher.mark_departed(0, 2)
    desk.publisher.mark_departed(1, 3)
    desk.publisher.poll(101.0, 30, pilots[2:])
    tick, rows = desk.seen(CLIENTS.name)
    assert tick == 30 and rows["status"].tolist() == [2, 3, 1, 0] and bytes(rows["name"][0]) == b"auv"
    desk.publisher.poll(102.0, 35, [])
    assert desk.seen(CLIENTS.name)[1]["status"].tolist() == [2, 3, 1, 0], (
        "reported once: the third was not reported as ended"
    )
    desk.publisher.poll(103.0, 40, pilots[:1])
    assert desk.seen(CLIENTS.name)[1]["status"].tolist() == [1, 3, 1, 0]
    desk.publisher.mark_departed(0, 3)
    desk.publisher.poll(104.0, 45, [pilots[0]])
    assert desk.seen(CLIENTS.name)[1]["status"][0] == 1, "who is there again is there"


def test_clients_and_records_have_their_own_periods(desk: Desk) -> None:
    def ticks() -> tuple[int, int, int]:
        return desk.seen(CLIENTS.name)[0], desk.seen(CREW.name)[0], desk.seen(NOTICE.name)[0]

    desk.publisher.poll(100.0, 1, [])
    assert ticks() == (1, 1, 0)
    desk.publisher.notice(1, 0, "a", "x")
    desk.publisher.poll(100.0 + 0.9 * HISTORY_PERIOD_S, 2, [])
    assert ticks() == (1, 1, 0)
    desk.publisher.poll(100.0 + HISTORY_PERIOD_S, 3, [])
    assert ticks() == (1, 1, 1)
    desk.publisher.notice(2, 0, "a", "x")
    desk.publisher.poll(100.0 + CLIENTS_PERIOD_S - 0.001, 4, [])
    assert ticks() == (1, 1, 2)
    desk.publisher.poll(100.0 + CLIENTS_PERIOD_S, 5, [])
    assert ticks() == (5, 1, 2), "a table that stays empty is not written again"
    desk.publisher.poll(100.0 + 1.5 * CLIENTS_PERIOD_S, 6, [])
    assert ticks() == (5, 1, 2) and CLIENTS_PERIOD_S == 0.2 and HISTORY_PERIOD_S == 0.02
