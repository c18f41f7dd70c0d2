"""The records of one tick, from the engine's tables to the events and to the log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import CLOCK, LINES, STATE, SURROUNDINGS, WEATHER
from wavesim_server import messages
from wavesim_server.engine import records
from wavesim_server.engine.records import LoggedSequences, line_records, log_records
from wavesim_server.network.event_dispatcher import EngineEventDispatcher

CTD = sensor_table_of("ctd")
GENERATIONS = np.array([5, 0, 7, 0])


class Ship:
    """Two bodies, each with a CTD, and the tables that their engine publishes."""

    def __init__(self) -> None:
        self.area = SharedMemoryArea.create_private([(STATE, 4), (LINES, 2), (CTD, 3)])
        self.version = 0
        self.made = [1, 1]
        self.types = ("ctd",)
        self.seen = LoggedSequences(self.area, self)  # type: ignore[arg-type]  # it stands for the registry

    def occupied(self, type_: str) -> tuple[Any, Any, Any]:
        return np.array([0, 2]), np.array(self.made), np.array([[0, 1], [2, 0]])

    def measure(self, sequences: tuple[int, int, int], generations: tuple[int, int, int] = (1, 0, 1)) -> None:
        values = np.zeros(3, CTD.dtype)
        values["sequence"], values["generation"], values["pressure"] = sequences, generations, [10.0, 20.0, 30.0]
        self.area["ctd"].publish(values, 0)

    def logged(self, **tables: list[int]) -> list[messages.LogRecordsEvent]:
        return list(log_records(9, tables, self.area, self.seen, GENERATIONS))


def whose(event: messages.LogRecordsEvent) -> list[list[int]]:
    return np.frombuffer(event.rows, np.int64).reshape(-1, 2).tolist()


def pressures(event: messages.LogRecordsEvent) -> list[float]:
    return np.frombuffer(event.records, CTD.visible.dtype)["pressure"].tolist()


def test_only_new_values_of_present_instruments() -> None:
    ship = Ship()
    assert ship.logged() == [], "nothing was ever measured"
    ship.measure((1, 1, 1))
    (event,) = ship.logged()
    assert event.tables == ("ctd",) and event.counts == (2,) and whose(event) == [[0, 1], [2, 0]]
    assert pressures(event) == [10.0, 30.0]
    assert np.frombuffer(event.generations, np.int64).tolist() == [5, 7]
    assert ship.logged() == [], "each value once"
    ship.measure((1, 2, 2))
    (event,) = ship.logged()
    assert whose(event) == [[2, 0]] and pressures(event) == [30.0]
    ship.measure((2, 2, 3), (1, 0, 4))
    (event,) = ship.logged()
    assert whose(event) == [[0, 1]], "the other value belongs to an earlier instrument"
    ship.made, ship.version = [1, 4], 1
    (event,) = ship.logged()
    assert whose(event) == [[2, 0]], "its instrument is known now; the first value stays logged"


def test_a_body_that_takes_over_a_row_has_its_own_generation() -> None:
    ship = Ship()
    (first,) = ship.logged(state=[0, 2])
    ship.version = 1
    (second,) = log_records(9, {"state": [0, 2]}, ship.area, ship.seen, GENERATIONS + 1)
    assert [np.frombuffer(e.generations, np.int64).tolist() for e in (first, second)] == [[5, 7], [6, 8]]


def test_many_records_go_in_several_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 2 * STATE.dtype.itemsize)
    ship = Ship()
    rows = ship.area["state"].begin_write()
    rows["p_WB_W"][:, 0] = range(4)
    ship.area["state"].end_write(0)
    ship.measure((1, 0, 1))
    events = ship.logged(state=[0, 1, 2, 3])
    assert [e.counts for e in events] == [(2,), (2,), (2,)] and [len(e.records) for e in events[:2]] == [256, 256]
    states = np.frombuffer(events[0].records + events[1].records, STATE.dtype)
    assert states["p_WB_W"][:, 0].tolist() == [0, 1, 2, 3]
    assert [whose(e) for e in events[:2]] == [[[0, 0], [1, 0]], [[2, 0], [3, 0]]]
    assert np.frombuffer(events[1].generations, np.int64).tolist() == [7, 0]


def test_records_of_bodies_that_the_log_does_not_list_are_omitted() -> None:
    written, omitted = list[Any](), list[int]()
    log: Any = SimpleNamespace(records=lambda *what: written.append(what))
    parts: list[Any] = [None] * 5
    dispatcher = EngineEventDispatcher(*parts, log, None, 4, print, GENERATIONS, omitted.append)  # type: ignore[arg-type]
    dispatcher.logged_generations[:] = [5, 0, 3, 0]
    ship = Ship()
    ship.measure((1, 0, 1))
    (event,) = ship.logged(state=[0, 2])
    dispatcher.dispatch(event)
    ((time_ns, tables, counts, rows, data),) = written
    assert (time_ns, tables, list(counts), omitted) == (36, ("state", "ctd"), [1, 1], [2])
    assert np.frombuffer(rows, np.int64).tolist() == [0, 0, 0, 1]
    assert len(data) == STATE.dtype.itemsize + CTD.visible.dtype.itemsize
    assert np.frombuffer(data[STATE.dtype.itemsize :], CTD.visible.dtype)["pressure"].tolist() == [10.0]


def test_lines_belong_to_no_body() -> None:
    ship = Ship()
    assert list(line_records(9, ship.area)) == []
    rows = np.zeros(2, LINES.dtype)
    rows["present"] = [0, 1]
    ship.area["lines"].publish(rows, 0)
    (event,) = line_records(9, ship.area)
    assert whose(event) == [[1, 0]] and event.records == rows[1].tobytes()
    assert np.frombuffer(event.generations, np.int64).tolist() == [messages.NO_BODY]


@pytest.mark.parametrize("table", [CLOCK, WEATHER, SURROUNDINGS], ids=lambda t: t.name)
def test_a_row_from_its_numbers(table: Any) -> None:
    area = SharedMemoryArea.create_private([(table, 1)])
    count = table.dtype.itemsize // 8
    area[table.name].publish_row(3, *range(count))
    tick, rows = area[table.name].snapshot()
    flat = [float(n) for name in rows.dtype.names for n in np.ravel(rows[name])]
    assert tick == 3 and flat == list(range(count))


def test_an_event_crosses_the_ring_unchanged() -> None:
    ship = Ship()
    ship.measure((1, 0, 1))
    (event,) = ship.logged(state=[0, 2])
    assert messages.decode_event(*messages.encode(event)) == event
