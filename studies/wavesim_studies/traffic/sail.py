"""Encounters sailed as library runs: own ship of any model with the reference avoider, others that hold their course."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.avoidance import Avoider
from wavesim_sdk.config import Model, library
from wavesim_sdk.config.model import Waypoint
from wavesim_sdk.helm import Motion, Pilot
from wavesim_sdk.targets import Target
from wavesim_server.simulation import Simulation
from wavesim_server.study import empty_sea, resting_depth
from wavesim_studies.traffic.encounters import Encounter, Start
from wavesim_studies.traffic.score import Score, Track, judge

#: speed in m/s and time in s to the meeting that suit a model
SUITED = {"otter": (3.0, 300.0), "jolner": (2.5, 300.0), "odin": (5.0, 300.0), "supply": (6.1733, 1800.0)}
RUN_IN = 200.0  #: lengths of way before an encounter begins
LARGE = 30.0  #: m: a vessel longer than that is stepped and steered more slowly


@dataclass(frozen=True)
class Sailed:
    """A run: tracks by name (own ship is `own`), and its score."""

    encounter: Encounter
    tracks: dict[str, Track]
    score: Score
    turned: tuple[float, float]  #: greatest choice to port (negative) and to starboard, rad off the wanted course


def _motion(sim: Simulation, row: int) -> Motion:
    s = sim.state()[row]
    heading = float(frames.euler(s["q_WB"])[2])
    (north, east), (surge, sway) = s["p_WB_W"][:2].tolist(), s["v_WB_B"][:2].tolist()
    return Motion(north, east, heading, surge, sway, float(s["w_WB_B"][2]))


@functools.cache
def thrust_at(model: str, speed: float) -> float:
    """What holds a model of the library at a speed, N: from a run of a hundred lengths alone."""
    own = library()[model]
    assert own.box is not None
    step, period = _pace(own.box.length)
    sim = empty_sea(1, step)
    row = sim.enter("own", position=(0.0, 0.0, resting_depth(own, 1025.0)), variant=own)
    pilot = Pilot(own, (0.0, 0.0), speed=speed)
    for _ in range(round(max(100.0 * own.box.length / speed, 60.0) / period)):
        sim.command(row, pilot.act(_motion(sim, row), period))
        sim.advance(round(period / step))
    return pilot.helm.speed.steady


def _pace(length: float) -> tuple[float, float]:
    """(step of the engine, period of control) in s for a vessel of a length."""
    return (0.1, 1.0) if length > LARGE else (0.02, 0.2)


def sail(encounter: Encounter, model: str = "otter", avoid: bool = True, beyond: float | None = None) -> Sailed:
    """Sail an encounter until own ship has passed her goal, or for twice the time that takes; or until ``beyond`` times the time to the
    meeting has passed after it. ``avoid``: with the avoider."""
    own = library()[model]
    length = own.box.length if own.box is not None else 1.0
    step, period = _pace(length)
    o = encounter.own
    sim = empty_sea(1, step)
    row = sim.enter(
        "own", position=(o.north, o.east, resting_depth(own, 1025.0)), attitude=(0, 0, o.course), variant=own
    )
    goal = Waypoint(north=encounter.goal[0], east=encounter.goal[1], depth=0.0, speed=o.speed)
    thrust = _run_in(sim, row, own, o, period)
    pilot = Pilot(own, (o.north, o.east), [goal], lookahead=8.0 * length, thrust=thrust)
    avoider = Avoider(length, o.speed)
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
            seen = {t.name: _held(t, n * period) for t in encounter.others}
            for name, m in ("own", now), *seen.items():
                found[name].append((m.north, m.east, *m.velocity))
            if avoid:
                targets = [Target(k, (m.north, m.east), m.velocity, length) for k, m in enumerate(seen.values())]
                order = avoider.order((now.north, now.east), now.velocity, pilot.wanted(now), targets, pilot.way)
        sim.command(row, pilot.act(now, period, order))
        sim.advance(round(period / step))
    times = np.arange(len(found["own"]), dtype=float)
    rows_of = {name: np.array(v, float) for name, v in found.items()}
    tracks = {name: Track(times, v[:, :2], v[:, 2:]) for name, v in rows_of.items()}
    roles = {t.name: (encounter.role(k), tracks[t.name]) for k, t in enumerate(encounter.others)}
    score = judge(tracks["own"], roles, length, encounter.goal if beyond is None else None)
    return Sailed(encounter, tracks, score, (min([0.0, *avoider.turns]), max([0.0, *avoider.turns])))


def _held(t: Start, time: float) -> Motion:
    """One of the others after a time. They are no bodies here: in many cases all meet at the origin, and there they collided and left their
    courses."""
    north, east = t.velocity
    return Motion(t.north + north * time, t.east + east * time, t.course, t.speed, 0.0, 0.0)


def _run_in(sim: Simulation, row: int, own: Model, start: Start, period: float) -> float:
    """Let her shafts come to their speed before the encounter begins: way lost to that is no action of hers. Returns what
    holds her speed, N."""
    sim.set_pose(row, velocity=(start.speed, *[0.0] * 5))
    straight = Pilot(own, (start.north, start.east), course=start.course, speed=start.speed, thrust=thrust_at(own.name, start.speed))  # fmt: skip
    for _ in range(round(RUN_IN * straight.length / start.speed / period)):
        sim.command(row, straight.act(_motion(sim, row), period))
        sim.advance(round(period * 1e9) // sim.step_ns)
    sim.set_pose(row, (start.north, start.east, float(sim.state()[row]["p_WB_W"][2])))
    return straight.helm.speed.steady


def _passed(now: Motion, start: Start, goal: Waypoint, length: float) -> bool:
    """Within two lengths of the goal, or abeam of it."""
    left = goal.north - now.north, goal.east - now.east
    leg = goal.north - start.north, goal.east - start.east
    return math.hypot(*left) < 2.0 * length or left[0] * leg[0] + left[1] * leg[1] < 0.0
