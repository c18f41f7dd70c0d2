"""One emulator and some fixed bodies, without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wavesim_emulators.base import Emulator
from wavesim_emulators.sensor_bank import SensorBank
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.frames import quaternion
from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.tables import ACTUATION, IDENTITY, STATE, WEATHER
from wavesim_server.instruments import InstrumentRegistry
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
STEP_NS = 4_000_000


class Bench:
    """Bodies b0, b1, ... of a model; each has what the fleet gives it. ``period``: a value at each multiple of so many ticks, 0 =
    by the rate of the instruments."""

    def __init__(
        self,
        loaded: LoadedConfig,
        of: type[Emulator],
        bodies: int = 1,
        seed: int = 1,
        period: int = 1,
        model: str = "lauv",
    ) -> None:
        self.loaded, self.of, self.seed, self.period, self.model = loaded, of, seed, period, model
        n = loaded.config.shared.vehicles
        self.identity, self.state = np.zeros(n, IDENTITY.dtype), np.zeros(n, STATE.dtype)
        self.actuation = np.zeros(n, ACTUATION.dtype)
        self.state["q_WB"][:, 0] = 1.0
        self.instruments = InstrumentRegistry(loaded.sensor_rows, STEP_NS)
        for row in range(bodies):
            self.enter(row, f"b{row}")
        self.weather: Any = None  # a record; None = calm
        self.replace()

    def replace(self, keep: bool = False) -> None:
        """Another process takes over; ``keep``: with the table as it stands."""
        old = (
            self.out
            if keep
            else np.zeros(self.loaded.sensor_rows[self.of.sensor], sensor_table_of(self.of.sensor).dtype)
        )
        self.station = SensorBank(self.of(self.loaded), self.seed, old.copy())

    @property
    def out(self) -> Any:
        """The table of values: of body k at row k, as long as each has one instrument and none left."""
        return self.station.table

    @property
    def emulator(self) -> Any:
        return self.station.emulator

    def enter(self, row: int, name: str) -> None:
        who = self.identity[row]
        who["present"], who["name"], who["model"] = 1, name.encode(), self.model.encode()
        who["generation"] += 1
        self.instruments.enter(row, self.loaded.suite_by_name(name, self.model))
        if self.period:
            self.instruments.rows["period"] = self.period

    def leave(self, row: int) -> None:
        self.identity["present"][row] = 0
        self.instruments.leave(row)

    def fault(self, row: int, kind: str, amount: float | str = 0.0, field: str = "") -> None:
        """Of the first instrument of a body."""
        name = self.instruments.installed(row)[0].instrument.name
        self.instruments.set_fault(row, name, kind, amount, field)

    def put(
        self, p: Any, angles: Any = (0.0, 0.0, 0.0), v: Any = (0.0, 0.0, 0.0), w: Any = (0.0, 0.0, 0.0), row: int = 0
    ) -> None:
        s = self.state
        s["p_WB_W"][row], s["q_WB"][row], s["v_WB_B"][row], s["w_WB_B"][row] = p, quaternion(*angles), v, w
        s["v_FB_B"][row] = v

    def drive(self, *actual: float, row: int = 0) -> None:
        """The actual values of the first actuators of a body."""
        self.actuation["actual"][row, : len(actual)] = actual

    def level(self, metres: float) -> None:
        """The water stands so much above its mean."""
        self.weather = np.zeros(1, WEATHER.dtype)
        self.weather["level"] = metres

    def view(self, tick: int) -> FleetSnapshot:
        rows = np.flatnonzero(self.identity["present"])
        tables = {"instruments": self.instruments.rows.copy(), "actuation": self.actuation.copy()}
        if self.weather is not None:
            tables["weather"] = self.weather
        return FleetSnapshot(tick, tick * STEP_NS, rows, self.identity.copy(), self.state.copy(), tables)

    def at(self, tick: int, due: int | None = None) -> Any:
        """The table after what was due at a tick."""
        self.station.compute(self.view(tick), tick if due is None else due)
        return self.out


def bench(
    config: Make,
    of: type[Emulator],
    attributes: str = 'noise="0"',
    inner: str = "",
    world: str = "",
    bodies: int = 1,
    period: int = 1,
    model: str = "lauv",
) -> Bench:
    """A bench whose bodies have one instrument each."""
    name = of.sensor.replace("_", "-")
    given = f"<fleet><sensors><{name} {attributes}>{inner}</{name}></sensors></fleet>"
    return Bench(
        config(f"<world>{world}</world><shared vehicles='64'/>{given}"), of, bodies, period=period, model=model
    )
