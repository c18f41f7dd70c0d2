"""Cyclic waypoint missions, and a vessel's distance from the planned route of straight legs and arcs.

track = run_waypoints(load("examples/trials/usv-gale.xml"), "odin", radius=45.0, seconds=480.0)
print(rms(track.off[track.times > 60.0]))
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_server import Lab
from wavesim_world.config import BodyConfig, LoadedConfig
from wavesim_world.ship_autopilot import ShipMotion, WaypointPilot

PERIOD = 0.1  #: control period of the vessel in s
#: a waypoint counts as missed if the vessel passes more than this distance in m outside the arc
PASS_TOLERANCE_M = 10.0


@dataclass(frozen=True)
class WaypointRoute:
    """Waypoints (n, 2) of a closed route and the radius (m) of the arcs that round its corners.

    ``first`` is the start position, before the first corner.
    """

    first: Floats
    corners: Floats
    radius: float

    @classmethod
    def of_body(cls, body: BodyConfig, radius: float) -> WaypointRoute:
        """Return the route of a body in a configuration."""
        corners = np.array([(w.north, w.east) for w in body.waypoint], float)
        return cls(np.array(body.position[:2], float), corners, radius)

    def distance(self, places: Floats) -> Floats:
        """Return the distances (T) in m from positions (T, 2) to the nearest leg or arc."""
        away = np.full(len(places), np.inf)
        n = len(self.corners)
        before = [self.first, *self.corners]
        for k in range(n + 1):
            b, c = self.corners[k % n], self.corners[(k + 1) % n]
            a = before[k]
            d, t1, t2, side = self._cut(a, b, c)
            begin = a if k == 0 else a + t1 * self._cut(before[k - 1], a, b)[0]
            away = np.minimum(away, _to_leg(places, begin, b - d * t1))
            centre = b - d * t1 + side * self.radius * np.array([-t1[1], t1[0]])
            inside = ((places - b + d * t1) @ t1 > 0.0) & ((b + d * t2 - places) @ t2 > 0.0)
            off = np.abs(np.linalg.norm(places - centre, axis=1) - self.radius)
            away = np.where(inside & (self.radius > 0.0), np.minimum(away, off), away)
        return away

    def _cut(self, a: Floats, b: Floats, c: Floats) -> tuple[float, Floats, Floats, float]:
        """Return the geometry of the arc at corner b as (cut, before, after, side). The arc begins at the distance
        ``cut`` from the corner. ``before`` and ``after`` are the directions of the legs before and after the corner.
        """
        t1, t2 = (b - a) / np.linalg.norm(b - a), (c - b) / np.linalg.norm(c - b)
        turn = math.atan2(t1[0] * t2[1] - t1[1] * t2[0], t1 @ t2)
        return self.radius * math.tan(abs(turn) / 2.0), t1, t2, math.copysign(1.0, turn)

    def reached(self, places: Floats) -> int:
        """Count the corners that the vessel passed in order, in all rounds of the route. A corner counts as passed if
        the vessel comes within a limit of it. The limit is the distance between the corner and its arc, plus
        ``PASS_TOLERANCE_M``.
        """
        n, found, first = len(self.corners), 0, 0
        while first < len(places):
            a, b, c = (self.corners[(found + k) % n] for k in (-1, 0, 1))
            before = self._cut(self.first if found == 0 else a, b, c)[0]
            least = math.hypot(self.radius, before) - self.radius
            near = np.flatnonzero(np.linalg.norm(places[first:] - b, axis=1) < least + PASS_TOLERANCE_M)
            if not len(near):
                break
            found, first = found + 1, first + int(near[0]) + 1
        return found


@dataclass(frozen=True)
class WaypointRun:
    """Result of a mission: times (T) in s, positions (T, 2) in m, speeds over ground (T) in m/s, and distances (T) from
    the route in m.
    """

    times: Floats
    places: Floats
    speeds: Floats
    off: Floats
    reached: int  #: number of waypoints reached


def run_waypoints(loaded: LoadedConfig, name: str, radius: float, seconds: float) -> WaypointRun:
    """Simulate a vessel that follows its waypoints, with the engine as a library. The vessel is alone, in the
    configured weather.

    Raise ConfigError if the vessel or its waypoints are missing.
    """
    bodies = {b.name: b for b in loaded.config.fleet.bodies}
    if name not in bodies or not bodies[name].waypoint:
        raise ConfigError(f"no vessel '{name}' with waypoints{suggest_name(name, bodies)}", str(loaded.path))
    body = bodies[name]
    corners = [(w.north, w.east) for w in body.waypoint]
    if len(corners) < 2 or any(a == b for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)):
        raise ConfigError(
            f"'{name}' needs at least two waypoints, and successive waypoints must differ", str(loaded.path)
        )
    lab = Lab(_only_body(loaded, body))
    row = lab.enter(name, body.model, body.position, body.attitude)
    start = body.position[0], body.position[1]
    pilot = WaypointPilot(loaded.model(body.model), start, body.waypoint, radius=radius)
    found = []
    for k in range(round(seconds / PERIOD)):
        s = lab.state()[row]
        heading = float(frames.euler(s["q_WB"])[2])
        (north, east), (surge, sway) = s["p_WB_W"][:2].tolist(), s["v_WB_B"][:2].tolist()
        now = ShipMotion(north, east, heading, surge, sway, float(s["w_WB_B"][2]))
        found.append((k * PERIOD, north, east, math.hypot(surge, sway)))
        lab.commands({name: pilot.commands(now, PERIOD if k else 0.0)})
        lab.run(PERIOD)
    rows, way = np.array(found), WaypointRoute.of_body(body, radius)
    return WaypointRun(rows[:, 0], rows[:, 1:3], rows[:, 3], way.distance(rows[:, 1:3]), way.reached(rows[:, 1:3]))


def _only_body(loaded: LoadedConfig, body: BodyConfig) -> LoadedConfig:
    """Return the configuration without the other bodies, because the vessel could collide with bodies that have no
    program.
    """
    fleet = dataclasses.replace(
        loaded.config.fleet, vehicle=(dataclasses.replace(body, client="required"),), buoy=(), line=()
    )
    return dataclasses.replace(loaded, config=dataclasses.replace(loaded.config, fleet=fleet))


def _to_leg(places: Floats, a: Floats, b: Floats) -> Floats:
    d = b - a
    along = np.clip((places - a) @ d / float(d @ d), 0.0, 1.0)
    return np.asarray(np.linalg.norm(places - a - along[:, None] * d, axis=1))


def rms(values: Floats) -> float:
    """Return the root mean square of the values."""
    return float(np.sqrt(np.mean(np.square(values))))
