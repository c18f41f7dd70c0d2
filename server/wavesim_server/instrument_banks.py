"""Instruments computed in the process of the engine, by the same classes as in the processes of the emulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_kernels.compiler import kernel
from wavesim_sdk.arrays import Record, as_numbers
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.tables import ACTUATION, STATE, WEATHER
from wavesim_server import tick
from wavesim_server.dynamics.types import Floats, Ints, Packed
from wavesim_server.environment import weather as w
from wavesim_server.environment.flow import uniform_flow
from wavesim_server.instruments import InstrumentRegistry, installed_emulators
from wavesim_server.simulation import Simulation

#: types whose values are frames, which only a running server stores
FRAME_TYPES = ("sonar", "camera")


@kernel
def fill_inputs(
    table: Packed, places: Ints, counts: Ints, time: float, state: Floats, actuation: Floats, weather: Floats
) -> None:
    """Fill the tables `state`, `actuation` and `weather`, given as flat views. Without rows, `actuation` is omitted."""
    now = tick.unpack_tick_state(table)
    order = now.scratch.order
    for k in range(now.scratch.counters[0]):
        tick.publish_state(now.bodies, order[k], state)
        if len(actuation):
            tick.publish_actuation(now.bodies, order[k], now.fleet.feedback, places, counts, actuation)
    north, east = uniform_flow(now.environment.flow, time)
    air, wind = now.weather.state, now.weather.wind
    row = weather[0]
    row[0], row[1], row[2] = north + air[w.W_NORTH], east + air[w.W_EAST], 0.0
    row[3], row[4], row[5] = air[w.W_WIND], wind[w.I_WIND_FROM], -air[w.W_LEVEL]
    row[6], row[7], row[8] = wind[w.I_HEIGHT], wind[w.I_PEAK], wind[w.I_WAVES_TO]


def _with_numbers(table: Record) -> tuple[Record, Floats]:
    """Return a table and its view (rows, numbers)."""
    return table, as_numbers(table)


class InstrumentBanks:
    """The instruments of a simulation by sensor type, for callers that have no emulator processes.

    Instruments measure at the ticks of :meth:`next_due`. ``registry`` contains the instruments of all bodies.
    """

    def __init__(self, simulation: Simulation, registry: InstrumentRegistry) -> None:
        loaded = simulation.loaded
        self._simulation, self._registry = simulation, registry
        #: by sensor type: a bank with its table of values
        self.by_type: dict[str, Any] = {
            name: installed_emulators()[name].load()(loaded).sensor_bank(simulation.seed, count)
            for name, count in loaded.sensor_rows.items()
            if name in installed_emulators() and name not in FRAME_TYPES
        }
        capacity = simulation.capacity
        self._state = _with_numbers(np.zeros(capacity, STATE.dtype))
        needs = {table for bank in self.by_type.values() for table in bank.emulator.needs}
        self._actuation = _with_numbers(np.zeros(capacity if "actuation" in needs else 0, ACTUATION.dtype))
        self._weather = _with_numbers(np.zeros(1, WEATHER.dtype))
        self._tables = {"instruments": registry.rows, "weather": self._weather[0], "actuation": self._actuation[0]}
        self._version = -1
        self._rows = np.zeros(0, np.int64)
        self._due: dict[str, int] = {}  # next tick of each type
        self._next: int | None = None

    def _refresh(self) -> None:
        """Adapt to bodies that have entered or left, and to changed faults."""
        self._version = self._registry.version
        self._rows = np.array(self._simulation.rows, np.int64)
        self._state[1][:] = self._actuation[1][:] = 0.0  # of bodies that have left
        tick = self._simulation.tick
        due = {name: self._registry.next_due(name, tick) for name in self.by_type}
        self._due = {name: at for name, at in due.items() if at is not None}
        self._next = min(self._due.values(), default=None)

    def next_due(self, end: int) -> int:
        """Return the next tick at which an instrument measures or publishes, at most ``end``."""
        if self._version != self._registry.version or (self._next or end) <= self._simulation.tick:
            self._refresh()
        return end if self._next is None or self._next > end else self._next

    def measure_due(self) -> None:
        """Compute the values that are due at the present tick."""
        tick = self._simulation.tick
        if tick != self._next:
            return
        types = [name for name, at in self._due.items() if at == tick]
        self.measure(types)
        for name in types:
            self._due[name] = self._registry.next_due(name, tick) or tick
        self._next = min(self._due.values())

    def measure(self, types: Sequence[str]) -> None:
        """Compute the values of some types that are due at or before the present tick."""
        s = self._simulation
        if self._version != self._registry.version:
            self._refresh()
        s.contacts.sort_rows()
        _, table = s.tick_executor.state()
        fleet = s.fleet
        fill_inputs(
            table,
            fleet.actuator_slots,
            fleet.actuator_counts,
            s.time_ns * 1e-9,
            self._state[1],
            self._actuation[1],
            self._weather[1],
        )
        view = FleetSnapshot(s.tick, s.time_ns, self._rows, s.identity, self._state[0], self._tables, (self._version,))
        for name in types:
            self.by_type[name].compute(view, s.tick)
