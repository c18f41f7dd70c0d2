"""The instruments of all bodies: their rows in the `instruments` table and in the value tables, their periods, and
their faults.

This module does not use shared memory. Instead, the engine publishes :attr:`InstrumentRegistry.rows` when
:attr:`InstrumentRegistry.is_changed` is True.
"""

from __future__ import annotations

import functools
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Ints, Record
from wavesim_sdk.errors import InvalidArgument, UnknownName
from wavesim_sdk.names import suggest_name
from wavesim_sdk.sensors import value_fields
from wavesim_sdk.tables import INSTRUMENTS, SensorFault
from wavesim_sdk.wire.items import FieldDescription, SensorDescription
from wavesim_server.watchdog import NEVER
from wavesim_world.config.sensors import InstrumentConfig
from wavesim_world.sensor_faults import parse_fault


@functools.cache  # reading the entry points takes longer than building a simulation
def installed_emulators() -> dict[str, EntryPoint]:
    """Return the emulators of the installed packages, by sensor type."""
    return {e.name: e for e in entry_points(group="wavesim.emulators")}


class MeasurementSchedule(NamedTuple):
    """The ticks at which an emulator processes an instrument.

    The instrument measures at each multiple of ``period`` and publishes the value ``latency`` ticks later.
    """

    period: int
    latency: int

    def next_tick(self, tick: int) -> int:
        """Return the next tick after ``tick`` at which the instrument measures or publishes."""
        if self.latency == 0:
            return (tick // self.period + 1) * self.period
        out = tick - self.latency
        return min((tick // self.period + 1) * self.period, max(out // self.period + 1, 0) * self.period + self.latency)


@dataclass(frozen=True)
class InstalledInstrument:
    """An instrument on board a body, and its row in the `instruments` table."""

    instrument: InstrumentConfig
    row: int
    place: int
    schedule: MeasurementSchedule


def describe_instrument(number: int, instrument: InstrumentConfig, step_ns: int) -> SensorDescription:
    """Describe an instrument for clients: its number in the suite, name, type, period and fields."""
    fields = (FieldDescription(f.name, f.unit, f.shape[0] if f.shape else 1) for f in value_fields(instrument.table))
    period_ns = instrument.period(step_ns * 1e-9) * step_ns
    return SensorDescription(number, instrument.name, instrument.type, period_ns, tuple(fields))


class InstrumentRegistry:
    """The instruments of all bodies in the simulation. ``capacity`` is ``LoadedConfig.sensor_rows``."""

    def __init__(self, capacity: Mapping[str, int], step_ns: int) -> None:
        self.step_ns = step_ns
        self.types = tuple(capacity)
        total = max(1, sum(capacity.values()))
        self.rows: Record = np.zeros(total, INSTRUMENTS.dtype)
        self.rows["body"] = -1
        self.is_changed = True
        self.version = 0  #: number that is incremented when an instrument is added or removed, or when a fault changes
        self._free = list(range(total))
        self._places = {name: list(range(count)) for name, count in capacity.items()}
        self._generations = {name: np.zeros(count, np.int64) for name, count in capacity.items()}
        # row in `instruments` by row of the value table
        self._row_at_place = {name: np.full(count, -1) for name, count in capacity.items()}
        #: for each sensor type, the occupied rows of the value table with their generations and owners; cached until a
        #: body is added or removed
        self._owners_by_type: dict[str, tuple[Ints, Ints, Ints]] = {}
        self._suites: dict[int, dict[str, InstalledInstrument]] = {}
        self._schedules: dict[str, Counter[MeasurementSchedule]] = {name: Counter() for name in capacity}

    def installed(self, body: int) -> Sequence[InstalledInstrument]:
        """Return the instruments on the body in a row, in the order of its suite."""
        return tuple(self._suites.get(body, {}).values())

    def enter(self, body: int, suite: Iterable[InstrumentConfig]) -> None:
        """Add a body with its instruments. Raises InvalidArgument, and changes nothing, if the tables have no room for
        them.
        """
        suite = tuple(suite)
        if body in self._suites:
            raise InvalidArgument(f"the body in row {body} already has its instruments")
        for name, count in Counter(i.type for i in suite).items():
            if count > len(self._places.get(name, ())):
                raise InvalidArgument(
                    f"no room for {count} more sensors of type '{name}': the sensors in the configuration determine the size of the table for this type; "
                    "add to the configuration a body whose model has these sensors"
                )
        self._suites[body] = {}
        for number, instrument in enumerate(suite):
            self._add(body, number, instrument)
        self.is_changed |= bool(suite)
        self.version += 1

    def _add(self, body: int, number: int, instrument: InstrumentConfig) -> None:
        row, place = heapq.heappop(self._free), heapq.heappop(self._places[instrument.type])
        pace = self._install(body, instrument, row, place)
        generations = self._generations[instrument.type]
        generations[place] += 1
        record = self.rows[row]
        record["body"], record["number"], record["place"], record["period"] = body, number, place, pace.period
        record["type"], record["name"] = instrument.type.encode(), instrument.name.encode()
        record["generation"] = generations[place]
        self._row_at_place[instrument.type][place] = row
        self._owners_by_type.clear()

    def _install(self, body: int, instrument: InstrumentConfig, row: int, place: int) -> MeasurementSchedule:
        late = -(-round(instrument.parameters.latency * 1e9) // self.step_ns)
        pace = MeasurementSchedule(instrument.period(self.step_ns * 1e-9), late)
        self._schedules[instrument.type][pace] += 1
        self._suites[body][instrument.name] = InstalledInstrument(instrument, row, place, pace)
        return pace

    def leave(self, body: int) -> None:
        """Remove a body with its instruments."""
        self._owners_by_type.clear()
        self.version += 1
        for entry in self._suites.pop(body, {}).values():
            type_ = entry.instrument.type
            self.rows[entry.row] = np.zeros((), INSTRUMENTS.dtype)
            self.rows["body"][entry.row] = -1
            self._row_at_place[type_][entry.place] = -1
            heapq.heappush(self._free, entry.row)
            heapq.heappush(self._places[type_], entry.place)
            self._schedules[type_][entry.schedule] -= 1
            self._schedules[type_] += Counter()  # drops entries that reached zero
            self.is_changed = True

    def set_fault(self, body: int, name: str, kind: str, amount: float | str = 0.0, field: str = "") -> None:
        """Set a fault on an instrument, or clear it (`none`). Raises InvalidArgument if the fault is invalid."""
        suite = self._suites.get(body, {})
        if name not in suite:
            raise UnknownName(f"no sensor named '{name}'{suggest_name(name, suite) or '; this body has no sensors'}")
        entry = suite[name]
        fault = parse_fault(entry.instrument, kind, amount, field)
        record = self.rows[entry.row]
        bits = int(record["fault_amount"]) if record["fault"] == SensorFault.WET else 0
        record["fault"], record["fault_first"], record["fault_count"] = fault.kind, fault.first, fault.count
        wet = fault.kind is SensorFault.WET  # adds one flooded compartment
        record["fault_amount"] = bits | int(fault.amount) if wet else fault.amount
        self.is_changed = True
        self.version += 1

    def save(self) -> dict[str, Any]:
        """Return the state for a snapshot. The state contains only the names of the instruments, because the
        configuration describes them.
        """
        return {
            "rows": self.rows.copy(),
            "free": list(self._free),
            "places": {name: list(places) for name, places in self._places.items()},
            "generations": {name: g.copy() for name, g in self._generations.items()},
            "row_at_place": {name: r.copy() for name, r in self._row_at_place.items()},
            "suites": {
                body: [(e.instrument.name, e.row, e.place) for e in suite.values()]
                for body, suite in self._suites.items()
            },
        }

    def clear(self) -> None:
        """Remove all instruments, as at the beginning."""
        rows, version = self.rows, self.version
        self.__init__({name: len(g) for name, g in self._generations.items()}, self.step_ns)  # type: ignore[misc]
        rows[:] = self.rows  # others refer to this array
        self.rows, self.version = rows, version + 1

    def restore(self, state: Mapping[str, Any], suite_of: Callable[[int], Iterable[InstrumentConfig]]) -> None:
        """Restore a state that :meth:`save` returned; ``suite_of`` returns the instruments on the body in a row."""
        self.rows[:] = state["rows"]
        self._free = list(state["free"])
        self._places = {name: list(places) for name, places in state["places"].items()}
        for name in self.types:
            self._generations[name][:] = state["generations"][name]
            self._row_at_place[name][:] = state["row_at_place"][name]
        self._owners_by_type.clear()
        self._suites = {body: {} for body in state["suites"]}
        self._schedules = {name: Counter() for name in self.types}
        for body, installed in state["suites"].items():
            known = {i.name: i for i in suite_of(body)}
            for name, row, place in installed:
                self._install(body, known[name], row, place)
        self.is_changed = True
        self.version += 1  # also if time goes back: others compare it to notice a change

    def occupied(self, type_: str) -> tuple[Ints, Ints, Ints]:
        """Return those rows of the value table whose instruments are in the simulation, with their generations and
        owners.

        The owners are an array (n, 2) with the row of the body and the number of the instrument in the body's suite. A
        value with another generation belongs to an earlier instrument.
        """
        if type_ not in self._owners_by_type:
            places = np.flatnonzero(self._row_at_place[type_] >= 0)
            rows = self.rows[self._row_at_place[type_][places]]
            self._owners_by_type[type_] = places, rows["generation"], np.column_stack([rows["body"], rows["number"]])
        return self._owners_by_type[type_]

    def periods(self, type_: str) -> tuple[int, ...]:
        """Return the periods in ticks of all instruments of a type."""
        return tuple({pace.period: None for pace in self._schedules[type_]})

    def next_due(self, type_: str, tick: int) -> int | None:
        """Return the next tick after ``tick`` at which the emulator of a type must run; None if there are no
        instruments of this type.
        """
        return min([pace.next_tick(tick) for pace in self._schedules[type_]], default=None)


class DueTicks:
    """The next tick at which an instrument of each sensor type measures or publishes a value."""

    def __init__(self, registry: InstrumentRegistry, types: Iterable[str] | None = None) -> None:
        self._registry, self._types = registry, registry.types if types is None else tuple(types)
        self._version, self._next = -1, NEVER
        self._by_type: dict[str, int] = {}

    def after(self, tick: int) -> Mapping[str, int]:
        """Return the next tick after ``tick`` at which each sensor type is due, by sensor type. Types without an
        instrument have no entry.
        """
        if self._version != self._registry.version or self._next <= tick:
            self._version = self._registry.version
            due = {s: self._registry.next_due(s, tick) for s in self._types}
            self._by_type = {s: at for s, at in due.items() if at is not None}
            self._next = min(self._by_type.values(), default=NEVER)
        return self._by_type

    def next_tick(self, tick: int) -> int:
        """Return the next tick after ``tick`` at which any sensor type is due."""
        self.after(tick)
        return self._next

    def take(self, tick: int) -> list[str]:
        """Return the sensor types that are due at a tick."""
        due = [s for s, at in self.after(tick - 1).items() if at == tick]
        for s in due:
            self._by_type[s] = self._registry.next_due(s, tick) or NEVER
        self._next = min(self._by_type.values(), default=NEVER)
        return due
