"""Contacts in a simulation: the contact memory of the kernels, the order of the rows, and the new contacts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import contact_events, contact_memory, sleep
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.bodies import TickScratch
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.environment import exposure
from wavesim_server.occupants import Occupant
from wavesim_world.config import LoadedConfig


class Contacts:
    """Contacts between bodies, and of bodies with obstacles and the sea bed."""

    def __init__(
        self, loaded: LoadedConfig, fleet: FleetDynamics, occupants: Mapping[int, Occupant], scratch: TickScratch
    ) -> None:
        self._fleet, self._occupants, self._scratch = fleet, occupants, scratch
        self._step_ns = round(fleet.step * 1e9)
        #: name of the obstacle to which each fixed geometry belongs
        self.obstacle_names = exposure.obstacle_names(loaded)
        self._obstacles = list(dict.fromkeys(self.obstacle_names))
        number = {name: k for k, name in enumerate(self._obstacles)}
        owners = [number[name] for name in self.obstacle_names]
        shapes = exposure.obstacle_shapes(loaded)
        self.memory = contact_memory.make_contact_memory(fleet.capacity, shapes, owners, fleet.step)
        self._order_stale = False  # True when bodies were added or removed since the rows were last sorted

    @property
    def count(self) -> int:
        """Number of contacts resolved since the start."""
        return int(self._scratch.counters[1])

    @property
    def dropped(self) -> int:
        """Number of contacts and candidate pairs omitted since the start because the contact tables were full."""
        return int(self.memory.counters[contact_memory.N_LOST])

    def take_meetings(self) -> list[tuple[int, int, str, float]]:
        """Return the contacts that have begun since the last call; see :meth:`Simulation.take_meetings`."""
        m = self.memory.events
        count = int(m.counters[contact_events.N_EVENTS])
        if not count:
            return []
        m.counters[contact_events.N_EVENTS] = 0
        return [
            (round(tick) * self._step_ns, round(row), self._partner_name(round(partner)), speed)
            for row, partner, tick, speed in m.events[:count].tolist()
        ]

    def _partner_name(self, code: int) -> str:
        if code >= 0:
            return f"'{self._occupants[code].name}'" if code in self._occupants else "a body"
        return "the sea bed" if code == contact_events.BED else self._obstacles[-2 - code]

    # -- changes of the fleet ------------------------------------------------------------------

    def add(self, row: int) -> None:
        """Add a new body, without any contacts."""
        self._order_stale = True
        self.memory.events.last_contacts[row, :, contact_events.LAST_TICK] = -np.inf

    def remove(self) -> None:
        """Record that a body has been removed."""
        self._order_stale = True

    def wake(self, row: int) -> None:
        """Wake a body after a change that was not caused by a contact."""
        sleep.wake(self.memory.sleep, row)

    def relist(self) -> None:
        """Request a new list of the pairs that can meet, for the next tick, because a body was moved."""
        self.memory.counters[contact_memory.N_STALE] = 1

    def sort_rows(self) -> None:
        """If bodies were added or removed, sort the occupied rows by the southern edge of their bodies, as the contact
        search requires.
        """
        if self._order_stale:
            self._order_stale = False
            rows = np.array(sorted(self._occupants), np.int64)
            seats, f = self._fleet.slots[rows], self._fleet
            block, lane = seats // LANES, seats % LANES
            low = f.blocks[block, B.PX * LANES + lane] - f.params[f.block_heads[block, B.HEAD_MODEL], P.BOUNDING_RADIUS]
            self._scratch.order[: len(rows)] = rows[np.argsort(low, kind="stable")]
            self._scratch.counters[0] = len(rows)
            self.relist()
