"""One moment in several tables: a reader between two writes of the engine sees neither half a tick nor the motion of
another body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wavesim_sdk import attach
from wavesim_sdk.attach import SharedState, simulation_tables
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.shared_memory import SharedMemoryArea, TableView
from wavesim_sdk.tables import CREW_ROWS, FENCE_CORNERS, HISTORY_ROWS, VEHICLE_TABLES, WORLD, RunState

STEP_NS = 4_000_000
ROWS = 4


class Sea:
    """The areas of a server, and who writes them."""

    def __init__(self) -> None:
        self.simulation = SharedMemoryArea.create_private(simulation_tables(ROWS, 8))
        self.vehicles = SharedMemoryArea.create_private([(t, ROWS) for t in (*VEHICLE_TABLES, SENSORS["ctd"])])
        world = np.zeros(1, WORLD.dtype)
        world["step_ns"] = STEP_NS
        self.generation = 0
        self.vehicles["instruments"].begin_write()["body"] = -1
        self.vehicles["instruments"].end_write(0)
        self.enter(0)
        self.tick(1)
        self.simulation["world"].publish(world, 0)
        self.state = SharedState.from_areas(self.simulation, self.vehicles)

    def tick(self, tick: int, *tables: str) -> None:
        """Where everybody is tells the tick and the generation of who is there."""
        for name in tables or ("state", "actuation", "weather"):
            area = self.simulation if name == "weather" else self.vehicles
            rows = np.zeros(area[name].capacity, area[name].dtype)
            rows.view(np.float64)[:] = tick + 1000 * self.generation
            area[name].publish(rows, tick)

    def enter(self, row: int) -> None:
        """Another body in a row, with an instrument."""
        self.generation += 1
        for name in ("instruments", "identity"):
            rows = self.vehicles[name].snapshot()[1]
            rows["generation"][row] = self.generation
            if name == "identity":
                rows["present"][row], rows["name"][row] = 1, f"body{self.generation}".encode()
            else:
                rows["body"][row], rows["type"][row], rows["name"][row] = row, b"ctd", b"probe"
            self.vehicles[name].publish(rows, 0)


@pytest.fixture
def sea() -> Sea:
    return Sea()


def between(
    monkeypatch: pytest.MonkeyPatch, table: str, view: TableView, act: Callable[[], Any], times: int = 1
) -> list[int]:
    """Let something happen each time that a table has been read, some times."""
    seen: list[int] = []
    real = TableView.snapshot

    def snapshot(self: TableView) -> Any:
        found = real(self)
        if self is view and len(seen) < times:
            seen.append(1)
            act()
        return found

    monkeypatch.setattr(TableView, "snapshot", snapshot)
    return seen


@pytest.mark.parametrize("table", ["identity", "instruments", "state", "actuation", "weather"])
def test_a_tick_between_two_tables(sea: Sea, monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    view = sea.state.table(table)
    between(monkeypatch, table, view, lambda: sea.tick(2))
    found = sea.state.snapshot("actuation", "weather", "instruments")
    values = {
        found.tick + 1000.0,
        float(found.state["p_WB_W"][0, 0]),
        float(found.tables["actuation"]["actual"][0, 0]),
        float(found.tables["weather"]["level"][0]),
    }
    assert len(values) == 1 and found.time_ns == found.tick * STEP_NS


@pytest.mark.parametrize("table", ["identity", "instruments", "state"])
def test_a_body_that_gives_its_row_to_another_between_two_tables(
    sea: Sea, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """The motion, the instruments and the name belong to one body, whatever the moment."""

    def change() -> None:
        sea.generation += 1
        sea.tick(2)
        sea.generation -= 1
        sea.enter(0)

    between(monkeypatch, table, sea.state.table(table), change)
    found = sea.state.snapshot("instruments")
    generation = int(found.identity["generation"][0])
    assert found.tables["instruments"]["generation"][0] == generation
    assert (
        found.state["p_WB_W"][0, 0] // 1000 == generation and found.identity["name"][0] == f"body{generation}".encode()
    )


def test_equal_versions_are_the_same_bodies(sea: Sea) -> None:
    first = sea.state.snapshot("instruments")
    sea.tick(2)
    second = sea.state.snapshot("instruments")
    assert first.version == second.version and second.tick == 2
    sea.enter(1)
    assert sea.state.snapshot("instruments").version != first.version
    assert sea.state.snapshot().rows.tolist() == [0, 1]


def test_tables_that_never_agree(sea: Sea, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "AGREE_S", 0.05)
    sea.tick(2, "state")  # the engine was killed before it wrote the next table
    with pytest.raises(
        AttachError, match="are changing too fast: this program cannot read all of them at the same tick"
    ):
        sea.state.snapshot("actuation")
    sea.simulation.header[5] = 2**22 + 1
    with pytest.raises(NotRunning, match="exited while it was publishing a tick"):
        sea.state.snapshot("actuation")
    with pytest.raises(AttachError, match="no table 'sonar'"):
        sea.state.snapshot("sonar")


def test_the_value_of_an_instrument_by_its_name(sea: Sea) -> None:
    values = np.zeros(ROWS, SENSORS["ctd"].dtype)
    values["valid"], values["generation"], values["temperature"] = 1, [1, 0, 0, 0], [7.5, 8.5, 0.0, 0.0]
    sea.vehicles["ctd"].publish(values, 1)
    found = sea.state.sensor("body1", "probe")
    assert found["valid"] == 1 and found["temperature"] == 7.5
    assert list(sea.state.instruments("body1")) == ["probe"]
    with pytest.raises(AttachError, match="'body1' has no sensor 'gps'; available: probe"):
        sea.state.sensor("body1", "gps")
    sea.enter(0)
    assert sea.state.sensor("body2", "probe")["valid"] == 0, "the value is of the one that was there before"
    with pytest.raises(AttachError, match="no sensor of type 'gps'; add it under <sensors>"):
        sea.state.values("gps")


# -- tables by themselves ----------------------------------------------------------------------------------


def publish(area: SharedMemoryArea, table: str, at: int = 9, **columns: Any) -> None:
    """Some values in the first rows of a table, nothing in the others."""
    rows = np.zeros(area[table].capacity, area[table].dtype)
    for name, values in columns.items():
        rows[name][: len(values)] = values
    area[table].publish(rows, at)


def test_what_there_is_one_of(sea: Sea) -> None:
    publish(sea.simulation, "clock", tick=[250], state=[RunState.PAUSED], speed=[2.5])
    publish(sea.simulation, "world", step_ns=[STEP_NS], density=[1025.0])
    publish(sea.simulation, "weather", level=[1.5])
    assert (sea.state.clock()["tick"], sea.state.clock()["speed"]) == (250, 2.5)
    assert sea.state.run_state() is RunState.PAUSED
    assert sea.state.world()["density"] == 1025.0 and sea.state.weather()["level"] == 1.5


def test_who_is_connected_and_who_sounds(sea: Sea) -> None:
    publish(sea.simulation, "clients", status=[0, 1], port=[0, 4000])
    publish(sea.simulation, "crew", body=[2, 3, 0], role=[1, 2, 0], ordinal=[1, 1, 0])
    publish(sea.simulation, "signals", id=[0, 7, 0, 1])
    publish(sea.vehicles, "estimate", innovation=[0.5])
    clients = sea.state.clients()
    assert clients["port"].tolist() == [0, 4000, 0, 0], "all rows: each is that of a body"
    assert sea.state.crew()["body"].tolist() == [2, 3] and sea.state.signals()["id"].tolist() == [7, 1]
    assert sea.state.estimates()["innovation"].tolist() == [0.5, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("table", ["sent", "reception", "notice"])
def test_what_came_since_a_reader_looked_last(sea: Sea, table: str) -> None:
    capacity = sea.simulation[table].capacity
    assert sea.state.history(table, 0)[1].tolist() == []
    times = np.arange(3 * capacity)
    column = "time_ns" if table == "notice" else "id"
    for total in (1, 5, capacity, capacity + 3, 2 * capacity):
        ring = np.zeros(capacity, np.int64)
        ring[times[max(0, total - capacity) : total] % capacity] = times[max(0, total - capacity) : total]
        publish(sea.simulation, table, total, **{column: ring})
        for seen in (0, 1, total - 1, total, max(0, total - capacity)):
            count, rows = sea.state.history(table, seen)
            expected = list(range(max(seen, total - capacity), total))
            assert count == total and rows[column].tolist() == expected


def test_a_body_by_its_name(sea: Sea) -> None:
    sea.enter(2)
    assert (sea.state.row("body1"), sea.state.row("body2")) == (0, 2)
    publish(sea.vehicles, "identity", present=[0, 0, 1], name=[b"body1", b"", b"body2"])
    with pytest.raises(AttachError, match="body 'body1' is not in the simulation"):
        sea.state.row("body1")
    with pytest.raises(AttachError, match="body 'body' is not in the simulation"):
        sea.state.row("body")
    assert sea.state.row("body2") == 2 and sea.state.snapshot().rows.tolist() == [2]


def test_the_instruments_of_a_body_in_the_order_of_its_suite(sea: Sea) -> None:
    publish(
        sea.vehicles,
        "instruments",
        body=[1, 0, 0, -1],
        number=[0, 1, 0, 0],
        name=[b"x", b"second", b"first", b"gone"],
        type=[b"ctd"] * 4,
        place=[0, 2, 1, 3],
        generation=[1] * 4,
    )
    assert list(sea.state.instruments("body1")) == ["first", "second"]
    assert [int(r["place"]) for r in sea.state.instruments("body1").values()] == [1, 2]
    publish(sea.vehicles, "ctd", valid=[1] * 4, generation=[1] * 4, temperature=[5.0, 6.0, 7.0, 8.0])
    assert sea.state.sensor("body1", "second")["temperature"] == 7.0
    assert sea.state.values("ctd")["temperature"].tolist() == [5.0, 6.0, 7.0, 8.0]
    with pytest.raises(AttachError, match=r"^'body1' has no sensor 'x'; available: first, second$"):
        sea.state.sensor("body1", "x")
    publish(sea.vehicles, "instruments", body=[-1] * 4)
    with pytest.raises(AttachError, match=r"^'body1' has no sensor 'x'; available: none$"):
        sea.state.sensor("body1", "x")


def test_a_table_of_either_area(sea: Sea) -> None:
    assert sea.state.table("clock") is sea.simulation["clock"] and sea.state.table("ctd") is sea.vehicles["ctd"]
    found = sea.state.snapshot("clock", "ctd")
    assert set(found.tables) == {"clock", "ctd"} and found.tick == 1 and found.version is not None
    assert sea.state.server == "", "areas of this process belong to no server by name"


def test_how_many_rows_the_tables_of_the_simulation_have() -> None:
    rows = {table.name: count for table, count in simulation_tables(5, 8)}
    assert rows == {
        "clock": 1,
        "world": 1,
        "weather": 1,
        "fences": FENCE_CORNERS,
        "clients": 5,
        "crew": 5 + CREW_ROWS,
        "signals": 8,
        "sent": HISTORY_ROWS,
        "reception": HISTORY_ROWS,
        "notice": HISTORY_ROWS,
        "snapshots": 1,
        "time_change": 1,
    }
    assert {t.name: n for t, n in simulation_tables(5, 8, 60)}["snapshots"] == 60
