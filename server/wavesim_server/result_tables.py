"""Tables that publish the state of a simulation, filled from its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Record, as_numbers
from wavesim_sdk.tables import ACTUATION, EFFORT, LINES, STATE, SURROUNDINGS
from wavesim_server import tick
from wavesim_server.contacts import Contacts
from wavesim_server.dynamics import effort
from wavesim_server.dynamics.bodies import TickScratch
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_server.environment.weather_model import WeatherModel
from wavesim_server.line_system import LineSystem
from wavesim_server.occupants import Occupant


class ResultTables:
    """Fills the tables of the bodies. ``occupants`` holds the body in each occupied row."""

    def __init__(
        self,
        fleet: FleetDynamics,
        contacts: Contacts,
        occupants: Mapping[int, Occupant],
        scratch: TickScratch,
        weather_model: WeatherModel,
        line_system: LineSystem,
    ) -> None:
        self._fleet, self._contacts, self._occupants, self._scratch = fleet, contacts, occupants, scratch
        self._weather_model, self._line_system = weather_model, line_system
        self._effort_scratch = effort.make_scratch(fleet.work)

    def motion(self) -> tuple[Record, Record]:
        """Return new tables `state` and `actuation` of all rows."""
        capacity = self._fleet.capacity
        state, actuation = np.zeros(capacity, STATE.dtype), np.zeros(capacity, ACTUATION.dtype)
        self.fill_motion(state, actuation)
        return state, actuation

    def fill_motion(self, state: Record, actuation: Record) -> None:
        """Fill the tables `state` and `actuation`, of ``capacity`` rows, in place."""
        f = self._fleet
        self._contacts.sort_rows()
        tick.publish(
            self._fleet.arrays,
            self._scratch.order,
            int(self._scratch.counters[0]),
            f.feedback,
            f.actuator_slots,
            f.actuator_counts,
            as_numbers(state),
            as_numbers(actuation),
        )

    def effort(self, rows: Sequence[int] | None = None, table: Record | None = None) -> Record:
        """Return the table `effort`, or a new one, with accelerations and forces of the given rows (default: all)."""
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
        """Return the table `surroundings`, or a new one, with water and air at the given rows (default: all).

        ``time`` is the simulation time in s.
        """
        table = np.zeros(len(self._fleet.slots), SURROUNDINGS.dtype) if table is None else table
        self._weather_model.surroundings(as_numbers(table), self._present_rows(rows), self._fleet, time)
        return table

    def lines(self, table: Record | None = None) -> Record:
        """Write the lines of the configuration to the table `lines`, or to a new one, and return it."""
        table = np.zeros(max(1, len(self._line_system.declared)), LINES.dtype) if table is None else table
        self._line_system.publish(table)
        return table

    def _present_rows(self, rows: Sequence[int] | None) -> Any:
        return np.array([*self._occupants] if rows is None else [k for k in rows if k in self._occupants], np.int64)
