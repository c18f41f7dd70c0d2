"""MAVLink mission items, and their effect on a vehicle that follows waypoints.

Waypoints (NAV_WAYPOINT, NAV_SPLINE_WAYPOINT) and speed changes (DO_CHANGE_SPEED) have an effect. Every other item is
reported as a notice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wavesim_sdk.errors import ConfigError

WAYPOINT, SPLINE_WAYPOINT, CHANGE_SPEED = 16, 82, 178
#: names of the commands (MAV_CMD) that mission planners write most often
COMMANDS = {
    16: "NAV_WAYPOINT",
    17: "NAV_LOITER_UNLIM",
    18: "NAV_LOITER_TURNS",
    19: "NAV_LOITER_TIME",
    20: "NAV_RETURN_TO_LAUNCH",
    21: "NAV_LAND",
    22: "NAV_TAKEOFF",
    31: "NAV_LOITER_TO_ALT",
    82: "NAV_SPLINE_WAYPOINT",
    84: "NAV_VTOL_TAKEOFF",
    85: "NAV_VTOL_LAND",
    92: "NAV_GUIDED_ENABLE",
    93: "NAV_DELAY",
    112: "CONDITION_DELAY",
    114: "CONDITION_DISTANCE",
    115: "CONDITION_YAW",
    177: "DO_JUMP",
    178: "DO_CHANGE_SPEED",
    179: "DO_SET_HOME",
    181: "DO_SET_RELAY",
    183: "DO_SET_SERVO",
    189: "DO_LAND_START",
    195: "DO_SET_ROI_LOCATION",
    197: "DO_SET_ROI_NONE",
    201: "DO_SET_ROI",
    203: "DO_DIGICAM_CONTROL",
    205: "DO_MOUNT_CONTROL",
    206: "DO_SET_CAM_TRIGG_DIST",
    211: "DO_GRIPPER",
    530: "SET_CAMERA_MODE",
    1000: "DO_GIMBAL_MANAGER_PITCHYAW",
    2000: "IMAGE_START_CAPTURE",
    2001: "IMAGE_STOP_CAPTURE",
    2500: "VIDEO_START_CAPTURE",
    2501: "VIDEO_STOP_CAPTURE",
}
#: coordinate frames (MAV_FRAME): latitude and longitude with an altitude above mean sea level or the home position, or
#: with an altitude above the terrain; local north-east-down; local east-north-up
_GLOBAL, _TERRAIN, _NED, _ENU = (0, 3, 5, 6), (10, 11), 1, 4


@dataclass(frozen=True)
class MissionItem:
    """Item of a mission. ``x`` and ``y`` are north and east in m, or latitude and longitude in degrees."""

    x: float
    y: float
    depth: float = 0.0  #: depth below the water surface in m
    is_geodetic: bool = False
    speed: float | None = None  #: speed in m/s that the file states for this waypoint; None = not stated
    acceptance: float = 0.0  #: acceptance radius in m; 0 = none
    hold: float = 0.0  #: time in s for which the vehicle is to hold at the waypoint
    number: int = 0  #: number of the item in its file
    command: int = WAYPOINT
    parameters: tuple[float, ...] = ()

    @classmethod
    def of_mavlink(
        cls, number: int, command: int, frame: int, values: Sequence[float], file: str, line: int = 0
    ) -> MissionItem:
        """Create an item from the command, frame and seven parameters of a MAVLink mission item. Raises ConfigError if
        the frame of a waypoint is unknown, or relative to the terrain.
        """
        x, y, z = values[4:7]
        if command not in (WAYPOINT, SPLINE_WAYPOINT):
            return cls(math.nan, math.nan, number=number, command=command, parameters=tuple(values))
        if frame in _TERRAIN:
            raise ConfigError(
                f"the altitude of item {number} is relative to the terrain; make it relative to the home position",
                file,
                line,
            )
        if frame not in (*_GLOBAL, _NED, _ENU):
            raise ConfigError(f"item {number} has the unknown coordinate frame {frame}", file, line)
        north, east = (y, x) if frame == _ENU else (x, y)
        depth = 0.0 if math.isnan(z) else z if frame == _NED else -z + 0.0
        hold, acceptance = (0.0 if math.isnan(v) else max(0.0, v) for v in values[:2])
        return cls(
            north,
            east,
            depth,
            is_geodetic=frame in _GLOBAL,
            acceptance=acceptance if command == WAYPOINT else 0.0,
            hold=hold,
            number=number,
            command=command,
            parameters=tuple(values),
        )

    @property
    def name(self) -> str:
        """Number and command of the item, such as ``item 3 (NAV_TAKEOFF)``."""
        return f"item {self.number} ({COMMANDS.get(self.command, f'MAV_CMD {self.command}')})"


@dataclass
class Route:
    """Points of a mission file before their conversion to W."""

    points: list[MissionItem] = field(default_factory=list)
    speed: float | None = None  #: speed in m/s for points that do not specify one
    lookahead: float | None = None
    acceptance: float | None = None
    notices: list[str] = field(default_factory=list)


def read_items(items: Iterable[MissionItem], file: str) -> Route:
    """Return the route that the items describe. A speed change applies to the waypoints after it."""
    route, speed = Route(), None
    for item in items:
        if item.command == CHANGE_SPEED:
            kind, wanted = item.parameters[:2]
            if kind in (2.0, 3.0):
                route.notices.append(f"{item.name} changes the climb or descent speed and is ignored")
            elif wanted == -2.0:
                speed = None  # the default speed again
            elif wanted > 0.0:
                speed = wanted
            elif wanted != -1.0:  # -1: unchanged
                raise ConfigError(f"{item.name} has the invalid speed {wanted:g} m/s", file)
        elif item.command not in (WAYPOINT, SPLINE_WAYPOINT):
            route.notices.append(f"{item.name} is not a waypoint and is ignored")
        elif math.isnan(item.x + item.y):
            route.notices.append(f"{item.name} has no position and is ignored")
        else:
            if item.command == SPLINE_WAYPOINT:
                route.notices.append(f"{item.name} is a point of a curve; the legs to it and from it are straight")
            route.points.append(MissionItem(**{**item.__dict__, "speed": speed}))
    return route
