"""Mission follower for on-board programs. It handles waypoints, missions, commands from an operator, and the vehicle's
answers.

    follower = MissionFollower(waypoints, (0.0, 0.0))
    ...
    follower.update(step, broker, (north, east))    # missions and commands: carry them out, answer them, report
    course = follower.course(north, east)
    depth, speed = follower.target.depth, follower.target.speed

Without commands, the course and the target are exactly those of :class:`~.control.LineOfSight`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from wavesim_sdk.elementary import atan2, hypot
from wavesim_sdk.guidance.control import LineOfSight, Waypoint
from wavesim_sdk.mission_status import MISSION_ACCEPTED, MissionStatus

if TYPE_CHECKING:
    from wavesim_sdk.onboard import BrokerBase, Step
    from wavesim_sdk.wire.items import CommandReceived

__all__ = ["FollowerSettings", "MissionFollower"]

MAX_DISTANCE_M = 1e5  #: maximum distance in m from the vehicle to a point; a command to go farther is refused


class MissionLimits(Protocol):
    """Interface of any mission with a lookahead distance and an acceptance radius in m, such as the ``mission`` of a
    body in a configuration or :class:`~.mission_files.MissionFile`; 0 or None = not set.
    """

    @property
    def lookahead(self) -> float | None: ...

    @property
    def acceptance(self) -> float | None: ...


@dataclass(frozen=True)
class FollowerSettings:
    """Properties of the vehicle that is to follow a mission."""

    lookahead: float = 12.0  #: lookahead distance of line-of-sight guidance in m
    acceptance: float = 10.0  #: distance in m within which a waypoint counts as reached
    #: radius in m of the circle on which the vehicle loiters; 0 = the vehicle can hold its position
    circle: float = 25.0
    is_submersible: bool = False  #: whether the vehicle can dive; if it can, it surfaces when its mission is aborted
    max_depth: float = math.inf  #: maximum depth in m to which the vehicle may go
    is_aircraft: bool = False  #: whether the vehicle flies; if it does, it also circles when its mission is aborted

    def with_mission(self, mission: MissionLimits | None) -> FollowerSettings:
        """Return the settings with the lookahead distance and the acceptance radius that a mission file states."""
        if mission is None:
            return self
        return replace(
            self, lookahead=mission.lookahead or self.lookahead, acceptance=mission.acceptance or self.acceptance
        )


class MissionFollower:
    """Guidance along a mission that an operator can interrupt.

    The modes are *mission*, *goto* (followed by *loiter*), *return* (to the start, followed by *loiter*), *loiter*,
    *paused* (the vehicle loiters and keeps its mission), and *aborted* (the vehicle has no mission; it surfaces if it
    can dive, and stops). A vehicle that cannot hold its position loiters on a circle.
    """

    def __init__(
        self, waypoints: Sequence[Waypoint], start: tuple[float, float], settings: FollowerSettings | None = None
    ) -> None:
        self.settings, self.home = settings or FollowerSettings(), start
        self.mode = "mission"
        self.waypoints = list(waypoints)
        self._steer: LineOfSight | None = self._along(waypoints, start) if waypoints else None
        self._hold: Waypoint | None = None  # where it goes or loiters, other than a mission
        self._place, self._depth, self._course = start, 0.0, 0.0
        self._reported: MissionStatus | None = None
        self._has_joined = False
        if not waypoints:
            self.mode, self._hold = "loiter", Waypoint(*start, speed=1.0)

    def _along(self, waypoints: Sequence[Waypoint], start: tuple[float, float]) -> LineOfSight:
        return LineOfSight(waypoints, start, self.settings.lookahead, self.settings.acceptance)

    # -- guidance ------------------------------------------------------------------------------------

    @property
    def target(self) -> Waypoint:
        """Position to which the vehicle should go, with the desired depth in m and speed in m/s. A speed of 0 means
        that it should stop.
        """
        if self._hold is None:
            assert self._steer is not None
            return self._steer.target
        if self.mode == "aborted" and not self.settings.is_aircraft:
            submerged = self.settings.is_submersible and self._depth > 1.0  # it needs speed to rise
            return replace(self._hold, depth=0.0, speed=self._hold.speed if submerged else 0.0)
        if self._is_circling or self.mode in ("goto", "return"):
            return self._hold
        away = hypot(self._hold.north - self._place[0], self._hold.east - self._place[1])
        slower = min(1.0, max(0.0, float(away) - 1.0) / 10.0)  # it holds its position
        return replace(self._hold, speed=self._hold.speed * slower)

    def course(self, north: float, east: float) -> float:
        """Return the desired course over ground in rad."""
        self._place = north, east
        if self._hold is None:
            assert self._steer is not None
            self._course = self._steer.course(north, east)
            return self._course
        dn, de = self._hold.north - north, self._hold.east - east
        bearing, away = float(atan2(de, dn)), float(hypot(dn, de))
        if self.mode in ("goto", "return") and away < self.settings.acceptance:
            self.mode = "loiter"
        if not self._is_circling:
            if away > 1.0 and self.mode != "aborted":  # otherwise it keeps its heading
                self._course = bearing
            return self._course
        radius = self.settings.circle
        # starboard turns: along the tangent on the circle, towards its centre from far away
        return bearing - 0.5 * math.pi + float(atan2(away - radius, 0.5 * radius))

    @property
    def _is_circling(self) -> bool:
        return self.settings.circle > 0.0 and self.mode in ("loiter", "paused", "aborted")

    # -- operator ------------------------------------------------------------------------------------

    def update(self, step: Step, broker: BrokerBase, place: tuple[float, float], depth: float = 0.0) -> None:
        """Carry out the missions and commands received in a step, answer them, and report changes.

        ``place`` is the position of the vehicle (north, east) in m in W; ``depth`` is its depth in m.
        """
        self._place, self._depth = place, depth
        if not self._has_joined:
            self._has_joined = True
            broker.take_missions()
            broker.take_commands()
        for mission in step.missions:
            self.waypoints = mission.waypoints
            self._steer, self._hold, self.mode = self._along(self.waypoints, place), None, "mission"
            broker.take_missions(f"{MISSION_ACCEPTED}{len(mission.points)} waypoint(s)")
        for command in step.commands:
            refusal = self._refusal(command)
            if refusal:
                broker.refuse_command(command, refusal)
            else:
                broker.accept_command(command, self._execute(command))
        status = self.status
        if status != self._reported:
            self._reported = status
            broker.report_mission(status)

    @property
    def status(self) -> MissionStatus:
        """Current activity of the vehicle."""
        if self._hold is None:
            assert self._steer is not None
            target, number = self._steer.target, self._steer.target_number
            return MissionStatus(self.mode, number, len(self.waypoints), (target.north, target.east))
        if self.mode == "aborted":
            return MissionStatus(self.mode)
        return MissionStatus(self.mode, target=(self._hold.north, self._hold.east))

    def _refusal(self, command: CommandReceived) -> str:
        """Return the reason why the vehicle cannot carry out a command, or an empty string if it can."""
        if command.action == "resume" and self._steer is None:
            return "there is no mission to resume"
        if command.action == "resume" and self._hold is None:
            return "the mission is not paused"
        if command.action == "pause" and self._hold is not None:
            return f"the vehicle is not following a mission ({self.mode})"
        if command.point is not None:
            north, east, down, _ = command.point
            if hypot(north - self._place[0], east - self._place[1]) > MAX_DISTANCE_M:
                return f"the point is more than {MAX_DISTANCE_M / 1000.0:g} km away"
            if down > self.settings.max_depth:
                return f"{down:g} m is deeper than the vehicle's maximum depth of {self.settings.max_depth:g} m"
        return ""

    def _execute(self, command: CommandReceived) -> str:
        """Carry out a command and return a string that states the vehicle's new activity."""
        before = self.target
        here = Waypoint(*self._place, self._depth_or_surface(self._depth), self._cruise(before))
        match command.action:
            case "goto" if command.point is not None:
                self._hold, self.mode = self._point(command.point, here), "goto"
            case "loiter":
                self._hold, self.mode = here if command.point is None else self._point(command.point, here), "loiter"
            case "return":
                self._hold, self.mode = replace(here, north=self.home[0], east=self.home[1]), "return"
            case "pause":
                self._hold, self.mode = here, "paused"
            case "resume":
                self._hold, self.mode = None, "mission"
                return f"continues to waypoint {self.status.waypoint} of {self.status.count}"
            case _:
                self._hold, self.mode, self._steer = here, "aborted", None
                if not self.settings.is_aircraft:
                    return f"ends its mission and {'surfaces' if self.settings.is_submersible else 'stops'}"
        if self.mode in ("goto", "return"):
            away = hypot(self._hold.north - self._place[0], self._hold.east - self._place[1])
            return f"goes {away:.0f} m at {self._hold.speed:.1f} m/s, then loiters"
        how = f"circles with a radius of {self.settings.circle:g} m" if self.settings.circle else "holds its position"
        return how + ("; `resume` continues the mission" if self.mode == "paused" else "")

    def _point(self, point: Sequence[float], here: Waypoint) -> Waypoint:
        north, east, down, speed = point
        return Waypoint(north, east, self._depth_or_surface(down), speed or here.speed)

    def _depth_or_surface(self, depth: float) -> float:
        """Return ``depth`` (m), limited to the depths that the vehicle can reach. An aircraft keeps its height unless
        ``depth`` is negative.
        """
        if self.settings.is_aircraft:
            return depth if depth < 0.0 else self._depth
        return max(0.0, depth) if self.settings.is_submersible else 0.0

    def _cruise(self, before: Waypoint) -> float:
        """Return the speed in m/s for a command without a speed: the speed of the vehicle's mission."""
        hold = self._hold.speed if self._hold is not None else before.speed
        return hold or 1.0
