"""Reports of the front end about a run: lines on the console, notices in viewers, losses, and estimates from
programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wavesim_server.network.crews import CrewMember
from wavesim_server.network.data_loss import DataLossReport
from wavesim_server.network.front_tables import FrontTables
from wavesim_server.network.simulation_clock import SimulationClock


class RunReports:
    """Reports about one run. ``bodies`` contains the name and model of the body in each row."""

    def __init__(
        self,
        print_line: Callable[[str], None],
        tables: FrontTables,
        data_loss: DataLossReport,
        clock: SimulationClock,
        bodies: Mapping[int, tuple[str, str]],
    ) -> None:
        self.print_line, self.data_loss = print_line, data_loss
        self._tables, self._clock, self._bodies = tables, clock, bodies

    def estimate(self, member: CrewMember, values: Any, time_ns: int) -> None:
        """Publish and log the estimate from a pilot."""
        self._tables.estimate(member.row, values)
        if (log := self.data_loss.log) is not None:
            log.estimate(time_ns, member.grant.body, values)

    def notice(self, name: str, text: str) -> None:
        """Report an event that concerns a participant, on the console and as a notice in every viewer.

        Notices about participants are not logged, because the log describes the simulation, which does not depend on
        waiting times.
        """
        self.print_line(f"'{name}' is {text}")
        row = next((row for row, (body, _) in self._bodies.items() if body == name), 0)
        self._tables.notice(self._clock.time_ns, row, name, text)
