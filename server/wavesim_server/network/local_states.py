"""States for clients in the server's process. They are read directly from the tables, without copying and without
messages.

The tables are written by the same process, and never while this code is running.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.sensors import HEAD_COLUMNS
from wavesim_sdk.shared_memory import DONE, SharedMemoryArea, TableView
from wavesim_sdk.tables import MAX_ACTUATORS
from wavesim_sdk.wire.state import Actuation, Body, Effort, Layout, Sensors, State, Value
from wavesim_server.network.crews import CrewMember
from wavesim_server.network.state_datagrams import MAX_FUTURE_NS, InstrumentLocator, value_count_of


class TableRow:
    """Some columns of one row of a table, as Python numbers. ``columns`` is a format of the `struct` module."""

    __slots__ = ("_buffers", "_header", "_offset", "_unpack")

    def __init__(self, table: TableView, row: int, columns: str) -> None:
        self._header, self._buffers = table.header, tuple(words.data for words in table.words)
        self._unpack, self._offset = struct.Struct(f"={columns}").unpack_from, row * table.dtype.itemsize

    def read(self) -> tuple[Any, ...]:
        """Return the values from the last completed write."""
        return self._unpack(self._buffers[self._header[DONE] & 1], self._offset)


class SensorRow(NamedTuple):
    """The value of one sensor as a row: time, validity, components, and the generation of the instrument."""

    layout: Layout
    row: TableRow
    generation: int
    max_age_ns: int


class StateRows(NamedTuple):
    """The rows of a session's state; None for parts that the session does not receive."""

    motion: TableRow | None
    actuation: TableRow
    effort: TableRow | None
    sensors: list[SensorRow]
    version: int  #: value of :attr:`InstrumentLocator.version` when the sensors were located


class LocalStates:
    """Makes the states for sessions whose clients are in this process."""

    def __init__(self, vehicles: SharedMemoryArea, step_ns: int, instruments: InstrumentLocator | None) -> None:
        self._vehicles, self._step_ns, self._instruments = vehicles, step_ns, instruments

    def make(self, m: CrewMember, body: Body, tick: int, run_state: int, is_step: bool) -> State:
        """Return the state of a session at a tick. ``body`` contains the client's description of its body."""
        assert self._instruments is not None
        rows: StateRows | None = m.state_layout
        if rows is None or rows.version != self._instruments.version:
            rows = m.state_layout = self._find_rows(m, body, self._instruments)
        time_ns = tick * self._step_ns
        values = {}
        for layout, row, generation, max_age_ns in rows.sensors:
            measured_ns, valid, *_, owner = numbers = row.read()
            if (
                valid == 1
                and owner == generation
                and 0 <= measured_ns <= time_ns + MAX_FUTURE_NS
                and time_ns - measured_ns <= max_age_ns
            ):
                values[layout.name] = Value(layout, measured_ns, _finite_or_nan(numbers[2:-1]))
        return State(
            tick,
            time_ns,
            run_state,
            None if rows.motion is None else rows.motion.read(),
            Actuation.from_values(rows.actuation.read(), body.positions),
            Sensors(values),
            None if rows.effort is None else Effort.from_numbers(np.nan_to_num(rows.effort.read()).tolist()),
            is_step,
        )

    def _find_rows(self, m: CrewMember, body: Body, instruments: InstrumentLocator) -> StateRows:
        state, actuation, effort = (self._vehicles[name] for name in ("state", "actuation", "effort"))
        sensors = []
        for number in m.sensor_numbers:
            place, layout = instruments.locate(m.row, number), body.layouts.get(number)
            if place is not None and layout is not None:
                type_ = m.grant.suite[number].type
                columns = f"8x2q{8 * (HEAD_COLUMNS - 3)}x{value_count_of(type_)}dq"
                row = TableRow(self._vehicles[type_], place[0], columns)
                sensors.append(SensorRow(layout, row, place[1], m.grant.max_age_ns[number]))
        return StateRows(
            TableRow(state, m.row, f"{state.dtype.itemsize // 8}d") if m.grant.sends_truth else None,
            TableRow(actuation, m.row, f"{8 * MAX_ACTUATORS}x{m.grant.actuator_count}d"),
            TableRow(effort, m.row, f"{effort.dtype.itemsize // 8}d") if m.wants_effort else None,
            sensors,
            instruments.version,
        )


def _finite_or_nan(numbers: tuple[float, ...]) -> tuple[float, ...]:
    if math.isfinite(sum(numbers)):  # the sum reveals NaN and infinity
        return numbers
    return tuple([v if math.isfinite(v) else math.nan for v in numbers])
