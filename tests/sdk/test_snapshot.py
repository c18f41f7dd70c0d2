"""One moment in several tables: a reader between two of the engine's writes sees neither half a tick nor another body's motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wavesim_sdk import attach
from wavesim_sdk.area import Area, TableView
from wavesim_sdk.attach import SharedState, simulation_tables
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import VEHICLE_TABLES, WORLD

STEP_NS = 4_000_000
ROWS = 4


class Sea:
    """The areas of a server, and who writes them."""

    def __init__(self) -> None:
        self.simulation = Area.private(simulation_tables(ROWS, 8))
        self.vehicles = Area.private([(t, ROWS) for t in (*VEHICLE_TABLES, SENSORS["ctd"])])
        world = np.zeros(1, WORLD.dtype)
        world["step_ns"] = STEP_NS
        self.generation = 0
        self.vehicles["instruments"].begin()["body"] = -1
        self.vehicles["instruments"].end(0)
        self.enter(0)
        self.tick(1)
        self.simulation["world"].publish(world, 0)
        self.state = SharedState.over(self.simulation, self.vehicles)

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
    with pytest.raises(AttachError, match="change faster than they can be read together"):
        sea.state.snapshot("actuation")
    sea.simulation.header[5] = 2**22 + 1
    with pytest.raises(NotRunning, match="ended between two of its tables"):
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
    with pytest.raises(AttachError, match="'body1' has no sensor 'gps'; it has probe"):
        sea.state.sensor("body1", "gps")
    sea.enter(0)
    assert sea.state.sensor("body2", "probe")["valid"] == 0, "the value is of the one that was there before"
    with pytest.raises(AttachError, match="no sensor of the type 'gps'; name it under <sensors>"):
        sea.state.values("gps")
