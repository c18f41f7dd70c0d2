"""Battery charge and mission status of the vehicles, taken from the on-board programs' notices and from the values in a
log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from wavesim_sdk.log import Log
from wavesim_sdk.mission_status import MissionStatus
from wavesim_viz.page_content import FleetStatus, MissionState, Notice

__all__ = ["LoggedFleet", "MissionTracker", "mission_state"]


def mission_state(status: MissionStatus) -> MissionState:
    """Return the status of a mission in the form that the page uses."""
    return {
        "mode": status.mode,
        "waypoint": status.waypoint,
        "count": status.count,
        "target": list(status.target) if status.target is not None else None,
    }


class MissionTracker:
    """Newest mission status of each body, by name."""

    def __init__(self) -> None:
        self._states: dict[str, MissionState] = {}

    def take(self, notices: Iterable[Notice]) -> None:
        """Store the mission status from each notice that contains one."""
        for notice in notices:
            status = MissionStatus.parse(notice["text"])
            if status is not None:
                self._states[notice["name"]] = mission_state(status)

    def by_row(self, names: Mapping[int, str]) -> dict[str, MissionState]:
        """Return the mission status of the bodies in these rows. The keys are the rows as text."""
        return {str(row): self._states[name] for row, name in names.items() if name in self._states}


class LoggedFleet:
    """Battery charge and mission status of the vehicles in a log. ``names`` maps rows to names of bodies."""

    def __init__(self, log: Log, names: Mapping[int, str]) -> None:
        self._names = names
        self._batteries = {
            row: series
            for row, name in names.items()
            for series in log.sensors(name).values()
            if series.type == "battery"
        }

    def at(self, time_s: float, notices: Iterable[Notice]) -> FleetStatus:
        """Return the status at the given time. ``notices`` are the notices up to this time."""
        charges: dict[str, float] = {}
        for row, series in self._batteries.items():
            k = int(np.searchsorted(series.time_ns, time_s * 1e9, "right")) - 1
            if k >= 0 and series.records["valid"][k]:
                charges[str(row)] = round(float(series.records["charge"][k]), 3)
        missions = MissionTracker()
        missions.take(notices)
        return {"charges": charges, "missions": missions.by_row(self._names)}
