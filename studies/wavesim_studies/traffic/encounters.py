"""Encounters: start positions of own ship and the other vessels, with the 22 Imazu cases and a reader for files of
DNV's traffic generator.

    case = imazu(5)                                # ships, 12 kn, 30 minutes
    small = imazu(5, speed=3.0, time=300.0)        # the same for boats of 3 m/s
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.guidance.encounters import EncounterRole, closest_approach, role

__all__ = ["IMAZU", "Encounter", "VesselStart", "imazu", "read_dnv"]

KNOT = 1852.0 / 3600.0
SOURCE = (
    "Imazu's problem as tabulated by R. Sawada, K. Sato, T. Majima, Automatic ship collision avoidance using deep reinforcement "
    "learning with LSTM in continuous action spaces, J. Mar. Sci. Technol. 26, 2021, table 4"
)
#: courses of the other vessels in degrees; an s marks a slow vessel, which has 7/10 of own ship's speed
IMAZU = {
    1: "180", 2: "270", 3: "0s", 4: "45", 5: "180 270", 6: "350 315", 7: "0s 315", 8: "180 270", 9: "330 270", 10: "270 15", 11: "90 330",
    12: "315 350", 13: "180 10 45", 14: "350 315 270", 15: "0s 315 270", 16: "45s 90 270", 17: "0s 10 315", 18: "225 345 330",
    19: "15 345 225", 20: "0s 345 270", 21: "345 15 270", 22: "0s 315 270",
}  # fmt: skip
SLOW = 0.7


@dataclass(frozen=True)
class VesselStart:
    """Start of a vessel: position (m), course (rad), speed (m/s), and optional waypoints (north, east)."""

    name: str
    north: float
    east: float
    course: float
    speed: float
    waypoints: tuple[tuple[float, float], ...] = field(default=())

    @property
    def velocity(self) -> tuple[float, float]:
        """Velocity to the north and to the east in m/s."""
        return self.speed * math.cos(self.course), self.speed * math.sin(self.course)


@dataclass(frozen=True)
class Encounter:
    """An encounter: own ship, its goal, and the other vessels."""

    name: str
    own: VesselStart
    goal: tuple[float, float]
    others: tuple[VesselStart, ...]
    source: str

    @property
    def meeting(self) -> float:
        """Time in s at which the last of the other vessels reaches its closest point of approach if no vessel acts; 60
        s if all have already passed.
        """
        own, others = np.array([self.own.north, self.own.east]), [np.array([t.north, t.east]) for t in self.others]
        flown = [np.subtract(t.velocity, self.own.velocity) for t in self.others]
        times = [float(closest_approach(p - own, v)[1]) for p, v in zip(others, flown, strict=True)]
        return round(max(times), 6) if max(times) > 0.0 else 60.0

    def role(self, k: int) -> EncounterRole:
        """Return the role of own ship towards the other vessel ``k`` at the start."""
        o, t = self.own, self.others[k]
        return role((t.north - o.north, t.east - o.east), o.course, t.course, o.speed, t.speed)


def imazu(case: int, speed: float = 12.0 * KNOT, time: float = 1800.0) -> Encounter:
    """Return a case of the Imazu problem, scaled by speed (m/s) and by the time (s) after which all vessels meet at the
    origin.

    The vessels meet if none of them acts. Own ship approaches from the south; x is north and y is east. Raise
    ValueError unless the case is 1 to 22.
    """
    if case not in IMAZU:
        raise ValueError(f"unknown Imazu case {case}: use 1 to {max(IMAZU)}")
    if not (0.0 < speed < math.inf and 0.0 < time < math.inf):
        raise ValueError(f"speed and time must be positive and finite, got {speed} m/s and {time} s")
    reach = speed * time
    others = []
    for k, text in enumerate(IMAZU[case].split()):
        share = SLOW if text.endswith("s") else 1.0
        course = math.radians(float(text.rstrip("s")))
        place = -share * reach * math.cos(course), -share * reach * math.sin(course)
        others.append(VesselStart(f"target{k + 1}", *place, course, share * speed))
    return Encounter(
        f"imazu-{case:02d}", VesselStart("own", -reach, 0.0, 0.0, speed), (reach, 0.0), tuple(others), SOURCE
    )


# ------------------------------------------------------------------ DNV


def read_dnv(path: Path) -> Encounter:
    """Read a traffic situation from a JSON file of DNV's ship-traffic-generator.

    Own ship and targets have a position (degrees, or north and east in NM or m), a speed in knots and a course in
    degrees. Raise ConfigError, stating the problem, if the file is invalid.
    """
    try:
        document = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"cannot read the file: {error}", str(path)) from None
    own = _entry(document, ("ownShip", "own_ship"), path)
    targets = document.get("targetShips", document.get("target_ships", document.get("targetShip")))
    if not isinstance(targets, list) or not targets:
        raise ConfigError("'targetShips' is missing or empty", str(path))
    origin = _geodetic(own)
    first = _start(own, "own", origin, path)
    others = tuple(_start(t, f"target{k + 1}", origin, path) for k, t in enumerate(targets))
    goal = first.waypoints[-1] if first.waypoints else _ahead(first, 3600.0)
    return Encounter(str(document.get("title", path.stem)), first, goal, others, "DNV ship-traffic-generator")


def _entry(d: Any, names: tuple[str, ...], path: Path) -> Any:
    for name in names:
        if isinstance(d, dict) and name in d:
            return d[name]
    raise ConfigError(f"'{names[0]}' is missing", str(path))


def _initial(ship: Any) -> Any:
    return ship.get("initial", ship.get("start_pose", ship)) if isinstance(ship, dict) else {}


def _geodetic(ship: Any) -> Origin | None:
    """Return the position of own ship, which is the origin of the situation, if this position is in degrees.
    :func:`_start` reports an invalid position.
    """
    try:
        position = _initial(ship)["position"]
        lat, lon = (position.get(long, position.get(long[:3])) for long in ("latitude", "longitude"))
        return Origin(math.radians(float(lat)), math.radians(float(lon)))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _ahead(s: VesselStart, seconds: float) -> tuple[float, float]:
    return s.north + s.velocity[0] * seconds, s.east + s.velocity[1] * seconds


def _start(ship: Any, name: str, origin: Origin | None, path: Path) -> VesselStart:
    initial = _initial(ship)
    try:
        place = _place(initial["position"], origin)
        course = math.radians(float(initial.get("cog", initial.get("course", initial.get("heading")))))
        speed = float(initial.get("sog", initial.get("speed"))) * KNOT
        legs = tuple(_place(w["position"], origin) for w in ship.get("waypoints", []))
        if not all(map(math.isfinite, (*place, course, speed, *itertools.chain(*legs)))):
            raise ValueError("not finite")
        if speed < 0.0 or (speed == 0.0 and name == "own"):
            raise ValueError(f"invalid speed of {speed / KNOT:g} kn")
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"'{name}' has no valid position, course and speed: {error!r}", str(path)) from None
    return VesselStart(name, *place, course, speed, legs)


def _place(position: Any, origin: Origin | None) -> tuple[float, float]:
    if origin is not None:
        lat, lon = position.get("lat", position.get("latitude")), position.get("lon", position.get("longitude"))
        north, east, _ = origin.ned(math.radians(float(lat)), math.radians(float(lon))).tolist()
        return north, east
    return float(position["north"]) * 1852.0, float(position["east"]) * 1852.0
