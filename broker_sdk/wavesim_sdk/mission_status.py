"""Actions of vehicle commands, and mission status messages that people and programs can read."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["MISSION_ACCEPTED", "STATUS_PREFIX", "VEHICLE_ACTIONS", "MissionStatus", "is_routine"]

#: names of the actions of vehicle commands
VEHICLE_ACTIONS = ("goto", "loiter", "return", "pause", "resume", "abort")
STATUS_PREFIX = "mission: "
MISSION_ACCEPTED = "accepts a mission of "  #: beginning of the notice from a program that accepts a new mission
_TEXT = re.compile(
    re.escape(STATUS_PREFIX) + r"(?P<mode>[^;]{1,40})"
    r"(?:; waypoint (?P<waypoint>\d{1,6}) of (?P<count>\d{1,6}))?"
    r"(?:; to (?P<north>-?\d{1,9}\.\d) m north, (?P<east>-?\d{1,9}\.\d) m east)?"
)
_ACCEPTED = re.compile(rf"(?:{'|'.join(VEHICLE_ACTIONS)}): accepted(?:: .*)?|{MISSION_ACCEPTED}.*", re.DOTALL)


def is_routine(text: str) -> bool:
    """Return whether a notice reports normal operation: progress of a mission, or a command or mission that was accepted."""
    return MissionStatus.parse(text) is not None or _ACCEPTED.fullmatch(text) is not None


@dataclass(frozen=True)
class MissionStatus:
    """Current activity of a vehicle, published as a notice: ``mission: survey; waypoint 3 of 8; to 100.0 m north, -50.0
    m east``.
    """

    mode: str  #: name of the activity, one or two words, such as "mission", "loiter" or "paused"
    waypoint: int = 0  #: number of the current waypoint, from 1; 0 = none
    count: int = 0  #: number of waypoints in the mission; 0 = none
    target: tuple[float, float] | None = None  #: point towards which the vehicle is going: north and east in m (W)

    def __str__(self) -> str:
        text = STATUS_PREFIX + self.mode
        if self.count:
            text += f"; waypoint {self.waypoint} of {self.count}"
        if self.target is not None:
            text += f"; to {self.target[0]:.1f} m north, {self.target[1]:.1f} m east"
        return text

    @classmethod
    def parse(cls, text: str) -> MissionStatus | None:
        """Return the mission status in the text of a notice, or None if the text is not a mission status."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        target = None if found["north"] is None else (float(found["north"]), float(found["east"]))
        return cls(found["mode"], int(found["waypoint"] or 0), int(found["count"] or 0), target)
