"""Tables that publish the state of a simulation and are filled from its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_kernels.compiler import kernel
from wavesim_sdk.arrays import Floats, Ints, Record, as_numbers
from wavesim_sdk.tables import ACTUATION, EFFORT, LINES, STATE, SURROUNDINGS
from wavesim_server import tick
from wavesim_server.contacts import Contacts
from wavesim_server.dynamics import effort
from wavesim_server.dynamics.bodies import TickScratch
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_server.dynamics.types import Packed
from wavesim_server.environment import weather as w
from wavesim_server.environment.flow import uniform_flow
from wavesim_server.line_system import LineSystem
from wavesim_server.occupants import Occupant

NO_WEATHER = np.zeros((0, 0))  #: empty array for callers that need only the motion


@kernel
def fill_tables(
    table: Packed, places: Ints, counts: Ints, time: float, state: Floats, actuation: Floats, weather: Floats
) -> None:
    """Fill the `state`, `actuation` and `weather` tables, given as matrices of numbers. Tables without rows are
    omitted.
    """
    now = tick.unpack_tick_state(table)
    order = now.scratch.order
    for k in range(now.scratch.counters[0]):
        tick.publish_state(now.bodies, order[k], state)
        if len(actuation):
            tick.publish_actuation(now.bodies, order[k], now.fleet.feedback, places, counts, actuation)
    if len(weather):
        north, east, down = uniform_flow(now.environment.flow, time)
        air, wind = now.weather.state, now.weather.wind
        row = weather[0]
        row[0], row[1], row[2] = north + air[w.W_NORTH], east + air[w.W_EAST], down
        row[3], row[4], row[5] = air[w.W_WIND], wind[w.I_WIND_FROM], -air[w.W_LEVEL]
        row[6], row[7], row[8] = wind[w.I_HEIGHT], wind[w.I_PEAK], wind[w.I_WAVES_TO]


@kernel
def fill_surroundings(table: Packed, rows: Ints, time: float, out: Floats) -> None:
    """Fill rows in the `surroundings` table, given as a matrix of numbers."""
    now = tick.unpack_tick_state(table)
    w.fill_surroundings(now.weather, now.environment.flow, now.bodies.blocks, now.bodies.slots, rows, time, out)


class ResultTables:
    """Fills the tables that describe the bodies.

    ``occupants`` contains the body in each occupied row. ``packed_state`` returns all arrays of a tick for the kernels.
    """

    def __init__(
        self,
        fleet: FleetDynamics,
        contacts: Contacts,
        occupants: Mapping[int, Occupant],
        scratch: TickScratch,
        line_system: LineSystem,
        packed_state: Callable[[], Packed],
    ) -> None:
        self._fleet, self._contacts, self._occupants, self._scratch = fleet, contacts, occupants, scratch
        self._line_system, self._packed_state = line_system, packed_state
        self._effort_scratch = effort.make_scratch(fleet.work)

    def motion(self) -> tuple[Record, Record]:
        """Return new `state` and `actuation` tables with all rows."""
        capacity = self._fleet.capacity
        state, actuation = np.zeros(capacity, STATE.dtype), np.zeros(capacity, ACTUATION.dtype)
        self.fill(0.0, as_numbers(state), as_numbers(actuation), NO_WEATHER)
        return state, actuation

    def fill(self, time: float, state: Floats, actuation: Floats, weather: Floats) -> None:
        """Fill the `state`, `actuation` and `weather` tables in place, given as matrices of numbers.

        ``time`` is the simulation time in s. If `actuation` or `weather` has no rows, it is omitted.
        """
        self._contacts.sort_rows()
        packed, f = self._packed_state(), self._fleet
        fill_tables(packed, f.actuator_slots, f.actuator_counts, time, state, actuation, weather)

    def effort(self, rows: Sequence[int] | None = None, table: Record | None = None) -> Record:
        """Write the accelerations and forces in the given rows (default: all rows) to the `effort` table, or to a new
        one, and return the table.
        """
        f, asked = self._fleet, self._present_rows(rows)
        table = np.zeros(len(f.slots), EFFORT.dtype) if table is None else table
        effort.fill_efforts(
            self._fleet.arrays,
            f.models,
            self._effort_scratch,
            asked[np.argsort(f.slots[asked])],
            self._scratch.last_finite,
            self._scratch.faults,
            f.step,
            as_numbers(table),
        )
        return table

    def surroundings(self, time: float, rows: Sequence[int] | None = None, table: Record | None = None) -> Record:
        """Write the properties of water and air in the given rows (default: all rows) to the `surroundings` table, or
        to a new one, and return the table.

        ``time`` is the simulation time in s.
        """
        table = np.zeros(len(self._fleet.slots), SURROUNDINGS.dtype) if table is None else table
        self.fill_surroundings(time, self._present_rows(rows), as_numbers(table))
        return table

    def fill_surroundings(self, time: float, rows: Ints, table: Floats) -> None:
        """Fill rows in the `surroundings` table in place, given as a matrix of numbers."""
        fill_surroundings(self._packed_state(), rows, time, table)

    @property
    def present_rows(self) -> Ints:
        """The occupied rows, in any order."""
        self._contacts.sort_rows()
        rows: Ints = self._scratch.order[: self._scratch.counters[0]]
        return rows

    def lines(self, table: Record | None = None) -> Record:
        """Write the lines of the configuration to the `lines` table, or to a new one, and return the table."""
        table = np.zeros(max(1, len(self._line_system.declared)), LINES.dtype) if table is None else table
        self._line_system.publish(table)
        return table

    def _present_rows(self, rows: Sequence[int] | None) -> Any:
        return np.array([*self._occupants] if rows is None else [k for k in rows if k in self._occupants], np.int64)
