"""Encounters simulated with the engine as a library. Own ship can have any model and any avoider. The other vessels
keep their course and speed.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.guidance.avoiders import REFERENCE, AvoiderFactory, make_avoider
from wavesim_sdk.guidance.control import Waypoint
from wavesim_sdk.guidance.targets import Target
from wavesim_server.simulation import Simulation
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_studies.traffic.colregs_score import ColregsScore, VesselTrack, score_run
from wavesim_studies.traffic.encounters import Encounter, VesselStart
from wavesim_world.config import Model, library
from wavesim_world.ship_autopilot import ShipMotion, WaypointPilot

__all__ = ["EncounterRun", "run_encounter", "thrust_for_speed"]

#: suitable speed in m/s and time in s until the ships meet, for each model
MODEL_SPEEDS_AND_TIMES = {
    "otter": (3.0, 300.0),
    "jolner": (2.5, 300.0),
    "odin": (5.0, 300.0),
    "supply": (6.1733, 1800.0),
}
RUN_IN = 200.0  #: distance in ship lengths sailed before an encounter begins
LARGE = 30.0  #: length in m above which vessels use a longer time step and control period


@dataclass(frozen=True)
class EncounterRun:
    """Result of an encounter run: tracks by name (own ship is `own`), score, and the avoider in its final state (None if
    own ship kept its course).
    """

    encounter: Encounter
    tracks: dict[str, VesselTrack]
    score: ColregsScore
    avoider: Any

    @property
    def largest_turns(self) -> tuple[float, float]:
        """Largest course changes to port (negative) and to starboard that the reference avoider selected, in rad from
        the course of the leg. Both are 0 for an avoider without the attribute ``chosen_turns``.
        """
        chosen = getattr(self.avoider, "chosen_turns", ())
        return min([0.0, *chosen]), max([0.0, *chosen])


def _motion(sim: Simulation, row: int) -> ShipMotion:
    s = sim.state()[row]
    heading = float(frames.euler(s["q_WB"])[2])
    (north, east), (surge, sway) = s["p_WB_W"][:2].tolist(), s["v_WB_B"][:2].tolist()
    return ShipMotion(north, east, heading, surge, sway, float(s["w_WB_B"][2]))


@functools.cache
def thrust_for_speed(model: str, speed: float) -> float:
    """Return the thrust in N that keeps a library model at a speed. The thrust is determined by simulating a run over a
    hundred ship lengths.
    """
    own = library()[model]
    assert own.box is not None
    step, period = _time_steps(own.box.length)
    sim = empty_sea(1, step)
    row = sim.enter("own", position=(0.0, 0.0, equilibrium_depth(own, 1025.0)), variant=own)
    pilot = WaypointPilot(own, (0.0, 0.0), speed=speed)
    for _ in range(round(max(100.0 * own.box.length / speed, 60.0) / period)):
        sim.command(row, pilot.commands(_motion(sim, row), period))
        sim.advance(round(period / step))
    return pilot.autopilot.speed_controller.steady_thrust


def _time_steps(length: float) -> tuple[float, float]:
    """Return the time step of the engine and the control period, in s, for a vessel of this length."""
    return (0.1, 1.0) if length > LARGE else (0.02, 0.2)


def run_encounter(
    encounter: Encounter,
    model: str = "otter",
    avoider: str | AvoiderFactory | None = REFERENCE,
    beyond: float | None = None,
) -> EncounterRun:
    """Simulate an encounter until own ship has passed its goal, but at most for twice the time that the straight route
    takes.

    If ``beyond`` is given, the run instead lasts (1 + ``beyond``) times as long as the vessels would take to meet.
    ``avoider`` is a name, a class or a function (see :mod:`wavesim_sdk.guidance.avoiders`); it decides once a second.
    With None, own ship keeps its course. Raise ConfigError if ``avoider`` does not provide an avoider, and
    AvoiderFailed if the avoider fails.
    """
    own = library()[model]
    length = own.box.length if own.box is not None else 1.0
    step, period = _time_steps(length)
    o = encounter.own
    checked = None if avoider is None else make_avoider(avoider, length, o.speed)
    sim = empty_sea(1, step)
    row = sim.enter(
        "own", position=(o.north, o.east, equilibrium_depth(own, 1025.0)), attitude=(0, 0, o.course), variant=own
    )
    goal = Waypoint(north=encounter.goal[0], east=encounter.goal[1], depth=0.0, speed=o.speed)
    thrust = _run_in(sim, row, own, o, period)
    pilot = WaypointPilot(own, (o.north, o.east), [goal], lookahead=8.0 * length, thrust=thrust)
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in ("own", *(t.name for t in encounter.others))}
    order = None
    turns = round(1.0 / period)
    long = math.hypot(goal.north - o.north, goal.east - o.east)
    last = 2.0 * long / o.speed if beyond is None else (1.0 + beyond) * encounter.meeting
    for n in range(round(last) * turns):
        now = _motion(sim, row)
        if beyond is None and n % turns == 0 and _passed(now, o, goal, length):
            break
        if n % turns == 0:  # once a second
            seen = {t.name: _motion_at(t, n * period) for t in encounter.others}
            for name, m in ("own", now), *seen.items():
                found[name].append((m.north, m.east, *m.velocity))
            if checked is not None:
                targets = [Target(k, (m.north, m.east), m.velocity, length) for k, m in enumerate(seen.values())]
                order = checked.order(
                    (now.north, now.east), now.velocity, pilot.course_and_speed(now), targets, pilot.way
                )
        sim.command(row, pilot.commands(now, period, order))
        sim.advance(round(period / step))
    times = np.arange(len(found["own"]), dtype=float)
    rows_of = {name: np.array(v, float) for name, v in found.items()}
    tracks = {name: VesselTrack(times, v[:, :2], v[:, 2:]) for name, v in rows_of.items()}
    roles = {t.name: (encounter.role(k), tracks[t.name]) for k, t in enumerate(encounter.others)}
    score = score_run(tracks["own"], roles, length, encounter.goal if beyond is None else None)
    return EncounterRun(encounter, tracks, score, None if checked is None else checked.avoider)


def _motion_at(t: VesselStart, time: float) -> ShipMotion:
    """Return the motion of another vessel at ``time`` (s). The vessel keeps its course and speed.

    The other vessels are not bodies in the simulation, because in many cases all of them meet at the origin, where
    bodies would collide and leave their courses.
    """
    north, east = t.velocity
    return ShipMotion(t.north + north * time, t.east + east * time, t.course, t.speed, 0.0, 0.0)


def _run_in(sim: Simulation, row: int, own: Model, start: VesselStart, period: float) -> float:
    """Run own ship until its shafts have reached their speed, before the encounter begins. Otherwise, the initial loss
    of speed would count as an action.

    Return the thrust in N that maintains the speed.
    """
    sim.set_pose(row, velocity=(start.speed, *[0.0] * 5))
    straight = WaypointPilot(
        own,
        (start.north, start.east),
        course=start.course,
        speed=start.speed,
        thrust=thrust_for_speed(own.name, start.speed),
    )
    for _ in range(round(RUN_IN * straight.length / start.speed / period)):
        sim.command(row, straight.commands(_motion(sim, row), period))
        sim.advance(round(period * 1e9) // sim.step_ns)
    sim.set_pose(row, (start.north, start.east, float(sim.state()[row]["p_WB_W"][2])))
    return straight.autopilot.speed_controller.steady_thrust


def _passed(now: ShipMotion, start: VesselStart, goal: Waypoint, length: float) -> bool:
    """Return whether own ship is within two ship lengths of the goal, or abeam of it."""
    left = goal.north - now.north, goal.east - now.east
    leg = goal.north - start.north, goal.east - start.east
    return math.hypot(*left) < 2.0 * length or left[0] * leg[0] + left[1] * leg[1] < 0.0
