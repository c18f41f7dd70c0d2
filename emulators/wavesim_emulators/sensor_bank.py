"""Management of all instruments of a sensor type: due times, latency, drop-outs and faults.

The module does not depend on a clock, on processes or on shared memory: its inputs are snapshots, and its output is a
table of values.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_emulators.bank_kernels import SEQUENCE, publish
from wavesim_emulators.batch import Batch, KeyedInstrument, Measuring, Noise, steady_weather
from wavesim_kernels import randomness
from wavesim_sdk.arrays import Floats, Ints, Mask, Record, as_numbers, as_words
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.errors import AttachError
from wavesim_sdk.sensors import HEAD_COLUMNS, sensor_table_of, value_count
from wavesim_sdk.tables import SensorFault

__all__ = ["InstrumentGroup", "KeyedInstrument", "SensorBank"]

#: purposes (names) of the random numbers for drop-outs and faults; sensors must use other names
DROP, SPIKE, SIGN = "drop-out", "spike", "sign of a spike"


class InstrumentGroup:
    """Instruments that differ only in name, mount, noise and body. One pass computes the values of all of them."""

    def __init__(self, emulator: Measuring, parameters: Any, period: int) -> None:
        self.parameters, self.period = parameters, period
        self.prepared = emulator.prepare(parameters)
        self.latency_ns = round(parameters.latency * 1e9)
        self.served = -1  # last due tick that was served
        self.measured_tick = -1  # tick of the newest values
        self.pending: deque[tuple[int, Ints, Record]] = deque()

    def set_instruments(self, entries: Record, fitted: Sequence[KeyedInstrument], newest: Record) -> None:
        """Set the instruments of the group. ``newest`` contains the last value in the row of each instrument, which may
        come from an earlier instrument in this row.
        """
        self.entries = entries  # rows of the `instruments` table
        self.batch = Batch(self.parameters, self.prepared, self.period, entries, fitted, newest)
        #: newest value of each instrument, published or not
        self.values, self.table_rows, fresh = newest, self.batch.table_rows, self.batch.fresh
        self.values[fresh] = np.zeros((), newest.dtype)
        self.values["generation"] = entries["generation"]
        self.words = as_words(newest)
        self.tick, self.time_ns, self.valid = (self.words[:, k] for k in range(SEQUENCE))  # columns
        self.is_any_fresh = bool(fresh.any())

    def resume(self, served: int, measured_tick: int, pending: Sequence[tuple[int, Ints, Record]]) -> None:
        """Continue from a snapshot, with its times and its unpublished values."""
        self.served, self.measured_tick = served, measured_tick
        self.pending = deque((at, rows.copy(), values.copy()) for at, rows, values in pending)

    def is_due(self, tick: int) -> bool:
        """Return whether a value has become due since the last one was computed."""
        return tick // self.period > self.served // self.period


class SensorBank:
    """All instruments of a sensor type. ``table`` contains their values, in the rows given by the `instruments` table."""

    def __init__(self, emulator: Measuring, seed: int, table: Record) -> None:
        self.emulator, self.seed, self.table = emulator, seed, table
        self.groups: dict[tuple[Any, int], InstrumentGroup] = {}
        names = table.dtype.names or ()
        self.has_state = "measured_ns" in names
        self.numbers = as_numbers(table)  #: the table as a matrix of numbers
        self._words = as_words(table)
        self._count = value_count(sensor_table_of(emulator.sensor))
        self._generation = HEAD_COLUMNS + self._count  # column
        #: number of columns in a row, excluding the state: published values and generation
        self._visible_width = self._generation + 1
        self._last = table.copy()  # newest value of each, as of the last change of the instruments
        self._generations = np.zeros(len(table), np.int64)  # generation of present instruments; 0 = none
        self._version: tuple[int, ...] | None = None
        self._instruments: dict[Any, KeyedInstrument] = {}  # by names of body, model, instrument
        self._saved_groups: dict[Any, Any] = {}  # restored groups that have not been formed again

    def compute(self, view: FleetSnapshot, due: int) -> bool:
        """Update the table to a tick: compute the values of all instruments that are due at or before ``due`` and have
        not been computed yet. Return True if the table changed.
        """
        changed = False
        if view.version is None or view.version != self._version:
            changed = self._update_groups(view, due)
        weather: Any = None
        for group in self.groups.values():
            if group.is_due(due) and view.tick > group.measured_tick:
                if weather is None:
                    weather, level = self._weather(view)
                    self.emulator.begin(view, weather)
                group.batch.begin(view, weather, level)
                changed |= self._measure(group, view)
                group.served, group.measured_tick = due, view.tick
            while group.pending and group.pending[0][0] <= view.time_ns:
                _, places, values = group.pending.popleft()
                changed |= self._publish(places, as_words(values), self._visible_width)
        return changed

    def compute_now(self, view: FleetSnapshot) -> None:
        """Compute the values of all instruments at the tick of the view, whether or not they are due."""
        self._update_groups(view, view.tick)
        weather, level = self._weather(view)
        self.emulator.begin(view, weather)
        for group in self.groups.values():
            group.batch.begin(view, weather, level)
            self._measure(group, view)

    def pause(self, step_ns: int) -> float:
        """Shortest period of all instruments in s; 0.2 s if there are none."""
        return min((g.period * step_ns * 1e-9 for g in self.groups.values()), default=0.2)

    # -- instruments -------------------------------------------------------------------------------

    def _update_groups(self, view: FleetSnapshot, due: int) -> bool:
        """Sort the instruments into groups after bodies have joined or left, or faults have changed. Return True if an
        instrument that has values was removed.
        """
        self._version = view.version
        self._keep_newest()
        instruments = view.tables["instruments"]
        mine = np.flatnonzero((instruments["body"] >= 0) & (instruments["type"] == self.emulator.sensor.encode()))
        mine = mine[view.identity["present"][instruments["body"][mine]] == 1]
        entries = instruments[mine]
        known, self._instruments = self._instruments, {}  # without removed instruments
        fitted = [self._resolve_instrument(view, entry, known) for entry in entries]
        sorted_in: dict[tuple[Any, int], list[int]] = {}
        for k, (instrument, _) in enumerate(fitted):
            sorted_in.setdefault((instrument.batch_key[1], int(entries["period"][k])), []).append(k)
        for kind in self.groups.keys() - sorted_in.keys():
            del self.groups[kind]
        for kind, members in sorted_in.items():
            if kind not in self.groups:
                self.groups[kind] = InstrumentGroup(self.emulator, *kind)
                self.groups[kind].served = due - 1
                if saved := self._saved_groups.pop(_group_name(*kind), None):
                    self.groups[kind].resume(*saved)
            own = entries[members]
            self.groups[kind].set_instruments(own, [fitted[k] for k in members], self._last.take(own["place"]))
        self._saved_groups.clear()
        self._generations[:] = 0
        self._generations[entries["place"]] = entries["generation"]
        gone = (self.table["valid"] == 1) & (self.table["generation"] != self._generations)
        self.table["valid"][gone] = 0
        return bool(gone.any())

    def _keep_newest(self) -> None:
        for group in self.groups.values():
            measured = ~group.batch.fresh
            as_words(self._last)[group.table_rows[measured]] = group.words[measured]

    # -- snapshots ---------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return the state for a snapshot: the values, published or not, and the times of the last measurements."""
        self._keep_newest()
        groups = {
            _group_name(*kind): (g.served, g.measured_tick, [(t, p.copy(), v.copy()) for t, p, v in g.pending])
            for kind, g in self.groups.items()
        }
        return {"table": self.table.copy(), "last": self._last.copy(), "groups": groups | self._saved_groups}

    def restore(self, state: Mapping[str, Any], seed: int) -> None:
        """Return to a state from :meth:`save`. ``seed`` is the seed of the random numbers from now on."""
        self.reload(state["table"], seed)
        self._last[:] = state["last"]
        self._saved_groups = dict(state["groups"])

    def reload(self, table: Record, seed: int) -> None:
        """Continue from a table of values, as a process does when it takes over from another one."""
        self.seed = seed
        self._words[:] = as_words(np.ascontiguousarray(table))
        self._last[:] = self.table
        self.groups.clear()
        self._instruments.clear()
        self._saved_groups.clear()
        self._version = None

    def _resolve_instrument(
        self, view: FleetSnapshot, entry: Any, known: dict[Any, KeyedInstrument]
    ) -> KeyedInstrument:
        """Return the configuration of an instrument and the key of its random numbers."""
        who = view.identity[entry["body"]]
        asked = bytes(who["name"]), bytes(who["model"]), bytes(entry["name"])
        if asked in known:
            self._instruments[asked] = known[asked]
            return known[asked]
        body, model, name = (part.decode() for part in asked)
        suite = self.emulator.loaded.suite_by_name(body, model)
        found = next((i for i in suite if i.name == name and i.type == self.emulator.sensor), None)
        if found is None:
            raise AttachError(
                f"the server's body '{body}' has a {self.emulator.sensor} '{name}' that this configuration does not have"
            )
        self._instruments[asked] = found, randomness.key(self.seed, body, name)
        return self._instruments[asked]

    def _weather(self, view: FleetSnapshot) -> tuple[Record, float]:
        """Return the weather at a tick, and the height in m of the water surface above the mean."""
        if "weather" in view.tables:
            return view.weather, view.level
        weather = steady_weather(self.emulator.loaded.config.world, view.time_ns * 1e-9)
        return weather, float(weather["level"])

    # -- values --------------------------------------------------------------------------------------

    def _measure(self, group: InstrumentGroup, view: FleetSnapshot) -> bool:
        """Compute the values of a group. Values without latency are written to the table; the others are queued. Return
        True if the table changed.
        """
        now, p, places, batch = group.values, group.parameters, group.table_rows, group.batch
        if self.has_state:
            batch.since = np.where(batch.fresh, 0.0, (view.time_ns - now["measured_ns"]) * 1e-9)
            now["measured_ns"] = view.time_ns
        before = now.copy() if batch.has_faults else None
        group.tick.fill(view.tick)
        group.time_ns.fill(view.time_ns)
        group.valid.fill(1)
        self.emulator.measure(batch, now)
        if before is not None:
            self._apply_faults(group, batch, before, now, group.entries)
        if group.is_any_fresh:
            batch.fresh, group.is_any_fresh = np.zeros(len(now), bool), False
        if group.latency_ns == 0 and p.drop_out == 0.0:
            return self._publish(places, group.words, self._words.shape[1])
        come: Any = slice(None)
        if p.drop_out > 0.0:
            come = np.flatnonzero(batch.noise.for_purpose(DROP).uniform() >= p.drop_out)
        if self.has_state:  # store the state at once, however late the value: a process that takes over needs it
            self._words[places, self._visible_width :] = group.words[:, self._visible_width :]
        group.pending.append((view.time_ns + group.latency_ns, places[come], now[come].copy()))
        return self.has_state

    def _publish(self, places: Ints, words: Any, end: int) -> bool:
        """Publish the first ``end`` columns of the values, except those of removed instruments."""
        return bool(publish(words, places, self._generations, self._generation, end, self._words) > 0)

    def _apply_faults(self, group: InstrumentGroup, batch: Batch, before: Record, now: Record, faults: Record) -> None:
        """Apply the commanded faults to the values."""
        kind = faults["fault"]
        values, last = self._values(now), self._values(before)
        column = np.arange(self._count)
        first, end = faults["fault_first"], faults["fault_first"] + faults["fault_count"]
        hit: Mask = (column >= first[:, None]) & (column < end[:, None])

        def struck(fault: SensorFault) -> Mask:
            return np.asarray(hit & (kind == fault)[:, None])

        if (kind == SensorFault.NOISY).any():
            louder = before.copy()
            factor = np.where(kind == SensorFault.NOISY, faults["fault_amount"], 1.0)
            batch.noise = Noise(batch.noise.streams, batch.tick, batch.noise.scale * factor)
            self.emulator.measure(batch, louder)
            loud = struck(SensorFault.NOISY)
            values[loud] = self._values(louder)[loud]
        lost = struck(SensorFault.LOST)
        whole: Mask = np.asarray(lost.all(axis=1))
        now["valid"][whole] = 0
        values[lost & ~whole[:, None]] = np.nan
        frozen = struck(SensorFault.FROZEN) & ~batch.fresh[:, None]
        values[frozen] = last[frozen]
        amount = faults["fault_amount"]
        np.add(values, amount[:, None], out=values, where=struck(SensorFault.BIAS))
        spike = struck(SensorFault.SPIKES) & (batch.noise.for_purpose(SPIKE).uniform() < amount)[:, None]
        sign = np.where(batch.noise.for_purpose(SIGN).uniform() < 0.5, -1.0, 1.0)[:, None]
        np.add(values, sign * 10.0 * (1.0 + np.abs(values)), out=values, where=spike)

    def _values(self, rows: Record) -> Floats:
        """Return a view (n, count) of the numbers in records of values."""
        return as_numbers(rows)[:, HEAD_COLUMNS : HEAD_COLUMNS + self._count]


def _group_name(parameters: Any, period: int) -> tuple[str, int]:
    """Return the name of a group of instruments in a snapshot. It is the same in every process, and does not contain
    the location of the configuration file.
    """
    return repr(_compared_values(parameters)), period


def _compared_values(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        own = [_compared_values(getattr(value, f.name)) for f in dataclasses.fields(value) if f.compare]
        return [type(value).__name__, *own]
    return [_compared_values(v) for v in value] if isinstance(value, tuple) else value
