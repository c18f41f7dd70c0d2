"""The avoider to the end of its mission: it passes others, returns to its leg, changes course only a few times, and
keeps its domain.
"""

from __future__ import annotations

import importlib
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.guidance.avoidance import Avoider
from wavesim_sdk.guidance.avoidance_plans import Plans, Turning
from wavesim_sdk.guidance.control import LineOfSight, Waypoint
from wavesim_sdk.guidance.encounters import EncounterRole, domain
from wavesim_sdk.guidance.targets import Target
from wavesim_studies.traffic.colregs_score import VesselTrack, changes, score_run
from wavesim_studies.traffic.encounter_runs import MODEL_SPEEDS_AND_TIMES, EncounterRun, run_encounter
from wavesim_studies.traffic.encounters import IMAZU, Encounter, VesselStart, imazu
from wavesim_world.config import library, load

pytestmark = pytest.mark.compiled

U, LENGTH = 3.0, 2.0  # m/s, m: of the otter
MEET = 400.0 / U  #: s until all meet at the origin
OWN = VesselStart("own", -400.0, 0.0, 0.0, U)


def ahead(gap: float, off: float, share: float, name: str = "t") -> VesselStart:
    """A slower one on the same course."""
    return VesselStart(name, -400.0 + gap, off, 0.0, share * U)


def towards(course: float, speed: float, off: float = 0.0) -> VesselStart:
    """One that comes to the origin when own ship does."""
    c = math.radians(course)
    return VesselStart("t", -speed * MEET * math.cos(c), -speed * MEET * math.sin(c) + off, c, speed)


def sailed(*others: VesselStart, goal: float = 600.0) -> EncounterRun:
    return run_encounter(Encounter("own", OWN, (goal, 0.0), others, "here"))


def holds(found: EncounterRun, turns: int = 4, extra: float = 40.0, share: float = 0.9) -> None:
    """What every run must show: mission complete, back on the leg, few changes of course, little extra way, domain kept."""
    own, score = found.tracks["own"], found.score
    assert score.economy["mission"] == 1.0
    assert abs(own.places[-1, 1]) < 1.0, "back on her leg"
    assert score.turns <= turns, str(score)
    sailed = float(np.hypot(*np.diff(own.places, axis=0).T).sum())
    assert sailed - float(np.hypot(*(own.places[-1] - own.places[0]))) < extra * LENGTH
    assert min(p.distance for p in score.pairs) > share * domain(LENGTH)[1], str(score)


def passed(found: EncounterRun) -> None:
    """Own ship is ahead of all at the end."""
    own = found.tracks["own"].places[-1, 0]
    assert all(own > t.places[-1, 0] + domain(LENGTH)[1] for n, t in found.tracks.items() if n != "own")


@pytest.mark.parametrize(("off", "speed"), list(itertools.product((0.0, 8.0, -8.0), (0.6, 1.2))))
def test_a_slow_vessel_ahead_is_passed(off: float, speed: float) -> None:
    """The line of sight of the moment led back behind her, again and again: 31 changes of course, 250 % more way, never past her."""
    found = sailed(ahead(100.0, off, speed / U))
    holds(found, extra=15.0, share=1.0)
    passed(found)
    assert set(found.score.economy.values()) == {1.0} and found.score.pairs[0].role is EncounterRole.OVERTAKING
    assert found.score.total > 0.98, "her first turn may be a little less than a large one"


def overtakes(off: float, share: float) -> None:
    """Overtake a vessel that has this share of the speed and is off by so many metres; check that both keep clear."""
    gap = 120.0 if share < 0.9 else 50.0
    found = sailed(ahead(gap, off, share), goal=max(600.0, -400.0 + 1.6 * (gap + 60.0) / (1.0 - share)))
    holds(found, extra=15.0, share=1.0)
    passed(found)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("off", [-16.0, -8.0, -2.0, 0.0, 2.0, 8.0, 16.0])
def test_overtaking(off: float, share: float) -> None:
    overtakes(off, share)


@pytest.mark.long
@pytest.mark.parametrize("off", [-16.0, -8.0, 0.0, 8.0, 16.0])
def test_head_on(off: float) -> None:
    found = sailed(towards(180.0, U, off))
    holds(found, extra=20.0, share=1.0)
    assert found.largest_turns[0] == 0.0, "never to port"


@pytest.mark.long
@pytest.mark.parametrize("course", [s * c for c in (30, 60, 90, 120, 150) for s in (1, -1)])
@pytest.mark.parametrize("speed", [1.0, 3.0, 5.0])
def test_crossing(course: float, speed: float) -> None:
    found = sailed(towards(course, speed))
    overtaken = found.score.pairs[0].role in (EncounterRole.STAND_ON, EncounterRole.OVERTAKEN)
    holds(found, turns=5, extra=20.0, share=0.8 if overtaken else 0.9)  # who stands on begins late
    if not overtaken and found.score.pairs[0].role is not EncounterRole.OVERTAKING:
        assert found.largest_turns[0] == 0.0, "never to port"


@pytest.mark.long
@pytest.mark.parametrize("course", [-25.0, -35.0, -85.0, -95.0])
@pytest.mark.parametrize("speed", [2.5, 3.0, 3.5, 4.5, 5.0])
def test_crossing_nearby(course: float, speed: float) -> None:
    """Beside cases that had a string of returns begun and given up."""
    found = sailed(towards(course, speed))
    overtaken = found.score.pairs[0].role is EncounterRole.OVERTAKEN
    holds(found, turns=5, extra=20.0, share=0.8 if overtaken else 0.9)
    if not overtaken:
        assert found.largest_turns[0] == 0.0, "never to port"


@pytest.mark.long
@pytest.mark.parametrize("share", [0.85, 0.97])
@pytest.mark.parametrize("off", [-2.0, 0.0, 2.0])
def test_overtaking_nearby(off: float, share: float) -> None:
    overtakes(off, share)


SEVERAL = {
    "two abreast": [ahead(100.0, 0.0, 0.4, "a"), ahead(100.0, 25.0, 0.4, "b")],
    "two abreast, a gap too narrow between": [ahead(100.0, -10.0, 0.4, "a"), ahead(100.0, 25.0, 0.4, "b")],
    "two in line": [ahead(100.0, 0.0, 0.4, "a"), ahead(170.0, 0.0, 0.33, "b")],
    "slow and head-on": [ahead(100.0, 0.0, 0.4, "a"), VesselStart("b", 300.0, 20.0, math.pi, U)],
    "slow, and a fast one that overtakes": [ahead(100.0, 0.0, 0.4, "a"), VesselStart("b", -440.0, 25.0, 0.0, 1.2 * U)],
    "slow, and one that keeps pace to starboard": [ahead(100.0, 0.0, 0.4, "a"), VesselStart("b", -400.0, 22.0, 0.0, U)],
    "slow, and one that keeps pace to port": [ahead(100.0, 0.0, 0.4, "a"), VesselStart("b", -400.0, -22.0, 0.0, U)],
    "five": [ahead(100.0 + 60.0 * k, 0.0, 0.33 + 0.03 * k, f"t{k}") for k in range(5)],
    "stopped": [VesselStart("a", -200.0, 0.0, 0.0, 0.0)],
    "adrift": [VesselStart("a", -200.0, 3.0, 2.0, 0.05)],
}


@pytest.mark.long
@pytest.mark.parametrize("which", SEVERAL)
def test_several(which: str) -> None:
    holds(sailed(*SEVERAL[which]), extra=20.0, share=0.9)


#: model: changes of course, extra way in lengths, nearest in lengths, mean score, that the 22 cases must keep
WHOLE = {"otter": (8, 70.0, 10.0, 0.97), "jolner": (8, 70.0, 10.0, 0.97), "supply": (9, 70.0, 10.0, 0.96)}


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("model", WHOLE)
def test_all_of_imazu_to_the_end(model: str) -> None:
    turns, extra, near, mean = WHOLE[model]
    box = library()[model].box
    assert box is not None
    scores = []
    for case in IMAZU:
        found = run_encounter(imazu(case, *MODEL_SPEEDS_AND_TIMES[model]), model)
        own, score = found.tracks["own"], found.score
        scores.append(score.total)
        assert score.economy["mission"] == 1.0, case
        assert abs(own.places[-1, 1]) < 1.0 * box.length, case
        assert score.turns <= turns, (case, str(score))
        assert score.extra * 2.0 * abs(own.places[0, 0]) < extra * box.length, (case, str(score))
        assert min(p.distance for p in score.pairs) > near * box.length, (case, str(score))
        if case in (14, 15):
            assert found.largest_turns[0] == 0.0, case
    assert np.mean(scores) > mean


# ------------------------------------------------------------------ without an engine


def point(
    avoider: Avoider, targets: list[VesselStart], seconds: int, way: list[tuple[float, float]], rate: float = 0.2
) -> np.ndarray:
    """Own ship as a point that turns at a rate (rad/s) at most, along a way: places and courses (n, 3), once a second."""
    steer = LineOfSight(
        [Waypoint(north=n, east=e, depth=0.0, speed=U) for n, e in way[1:]], way[0], 8.0 * LENGTH, 2.0 * LENGTH
    )
    n, e, course, found = *way[0], 0.0, []
    for t in range(seconds):
        wanted = steer.course(n, e), U
        seen = [
            Target(k, (s.north + s.velocity[0] * t, s.east + s.velocity[1] * t), s.velocity, LENGTH)
            for k, s in enumerate(targets)
        ]
        velocity = U * math.cos(course), U * math.sin(course)
        order = avoider.order((n, e), velocity, wanted, seen, steer.ahead) or wanted
        off = math.remainder(order[0] - course, 2.0 * math.pi)
        course += max(-rate, min(rate, off))
        n, e = n + order[1] * math.cos(course), e + order[1] * math.sin(course)
        found.append((n, e, course))
    return np.array(found)


@pytest.mark.parametrize("seed", range(3))
def test_random_traffic_never_keeps_her_from_her_way(seed: int) -> None:
    """Up to five vessels anywhere, on any course, at 0 to 1.3 of her speed, for 20 minutes: she is back on her leg and ahead."""
    rng = np.random.default_rng(seed)
    for _ in range(4):
        others = []
        for k in range(int(rng.integers(1, 6))):
            n, e = rng.uniform(-200.0, 600.0), rng.uniform(-300.0, 300.0)
            if math.hypot(n + 400.0, e) > 100.0:
                others.append(VesselStart(f"t{k}", n, e, rng.uniform(-math.pi, math.pi), rng.uniform(0.0, 1.3) * U))
        found = point(Avoider(LENGTH, U), others, 1200, [(-400.0, 0.0), (9000.0, 0.0)])
        assert abs(found[-1, 1]) < 1.0 and found[-1, 0] > -400.0 + 0.9 * U * 1200.0, others


@pytest.mark.parametrize("rate", [0.06, 0.2, 0.5])
def test_one_that_keeps_pace_does_not_hold_her_for_ever(rate: float) -> None:
    """A vessel as fast as she, on a course nearly that of her evasion, between her and her leg. A plan that returns later was free at
    every moment, and she left her leg for good; also if she turns much more slowly than plans believe."""
    c = math.radians(45.0)
    other = VesselStart("t", -400.0 * math.cos(c), -400.0 * math.sin(c), c, U)
    found = point(Avoider(LENGTH, U), [other], 500, [(-400.0, 0.0), (9000.0, 0.0)], rate=rate)
    assert np.abs(found[:, 1]).max() < 200.0 * LENGTH and abs(found[-1, 1]) < 1.0


def test_a_plan_knows_the_corner_ahead() -> None:
    """Back by 60 deg on the leg, or on the next one where the corner comes first; late by what both cost."""
    plans = Plans((0.0, 0.0), (U, 0.0), [(0.0, 0.0), (300.0, 0.0), (300.0, 300.0)], U, LENGTH)
    turn, hold = math.radians(90.0), 20.0
    paths = plans.sail(np.array([turn, 0.0]), np.ones(2), np.array([hold, 0.0]), np.array([0.0, 0.0]))
    across, begins = U * hold, paths.lasts[0, 0]
    steep = math.radians(60.0)
    corner, lost = (float(f(np.array(turn))) * LENGTH for f in (plans.turning.corner, plans.turning.lost))
    later = float(sum(plans.turning.lost(np.array(v)) for v in (turn + steep, steep))) * LENGTH / U
    assert begins == pytest.approx((corner + lost) / U), "the corner lies ahead, and there she loses way"
    assert paths.back[0] == pytest.approx(begins + hold + across / math.sin(steep) / U + later), (
        "so it does at the later corners"
    )
    assert paths.starts[0][4, 0] == pytest.approx(corner + across / math.tan(steep)) and not paths.cut[0]
    assert paths.late[0] == pytest.approx(paths.back[0] - paths.starts[0][4, 0] / U)
    assert paths.late[1] == pytest.approx(0.0, abs=1e-9)
    near = Plans((280.0, 0.0), (U, 0.0), [(0.0, 0.0), (300.0, 0.0), (300.0, 300.0)], U, LENGTH)
    assert near.sail(np.array([turn]), np.ones(1), np.array([hold]), np.zeros(1)).cut[0]


@pytest.mark.parametrize("reach", [0.7, 1.0, 1.8])
def test_turns_are_measured(reach: float) -> None:
    """A vessel that turns as a :class:`Turning` says is measured as that."""
    made = Turning(reach, 4.0)
    for degrees in (30.0, 60.0, 90.0):
        seen, turn = Turning(), math.radians(degrees)
        seen.measure(turn, float(made.corner(np.array(turn))), float(made.lost(np.array(turn))))
        assert (seen.reach, seen.loss) == pytest.approx((made.reach, made.loss))


def test_the_others_hold_their_course() -> None:
    """In cases 5 to 22 all meet at the origin; there they collided, and own ship avoided what was left of them."""
    found = run_encounter(imazu(19, *MODEL_SPEEDS_AND_TIMES["otter"]), "otter", avoider=None)
    for name, t in found.tracks.items():
        assert name == "own" or np.ptp(t.velocities, axis=0).max() < 1e-9


def test_roles_of_those_who_are_gone_are_forgotten() -> None:
    """A radar gives its numbers again."""
    avoider = Avoider(LENGTH, U)
    avoider.order((0.0, 0.0), (U, 0.0), (0.0, U), [Target(7, (100.0, 0.0), (-U, 0.0), LENGTH)])
    assert avoider.roles == {7: EncounterRole.HEAD_ON}
    for _ in range(70):
        assert avoider.order((0.0, 0.0), (U, 0.0), (0.0, U), []) is None
    assert not avoider.roles


def test_nobody_expects_a_pier_to_give_way() -> None:
    """One to port was stood on for until 35 lengths."""
    for east in (-3.0, 3.0):
        avoider = Avoider(LENGTH, U)
        pier = Target(-1, (100.0, east), (0.0, 0.0), 1.0, fixed=True)
        assert avoider.order((0.0, 0.0), (U, 0.0), (0.0, U), [pier]) is not None
        assert avoider.roles == {-1: EncounterRole.OVERTAKING} or east > 0.0


def test_a_corner_is_not_cut_from_beside_the_leg() -> None:
    """An arc begins before its waypoint; from far off the leg that skipped the waypoint by its whole distance."""
    corners = [Waypoint(north=n, east=e, depth=0.0, speed=5.0) for n, e in ((400.0, 0.0), (400.0, 400.0), (0.0, 400.0))]

    def steer() -> LineOfSight:
        return LineOfSight(corners, (0.0, 0.0), 21.0, 21.0, 45.0, 8.4)

    for east, skipped in ((5.0, True), (100.0, False)):
        guidance = steer()
        guidance.course(200.0, east)
        guidance.course(360.0, east)
        assert (guidance.target is corners[1]) is skipped
        assert guidance.ahead == (
            ((400.0, 0.0), (400.0, 400.0), (0.0, 400.0)) if skipped else ((0.0, 0.0), (400.0, 0.0), (400.0, 400.0))
        )
    guidance.course(401.0, east)
    assert guidance.target is corners[1], "abeam of it, it is past: nobody turns back for ever"


def test_homing_goes_on_if_it_was_wrong_about_the_dock(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """One belief within 3 m stopped it for the rest of the run, wherever it was."""
    monkeypatch.syspath_prepend(str(root / "examples/onboard"))
    loaded = load(root / "examples/trials/usbl-dock.xml")
    homer = importlib.import_module("homing").Homer(loaded, next(b for b in loaded.config.fleet.bodies if b.program))
    dock = homer.dock.position

    def docked(off: float) -> bool:
        homer.navigator.place = np.array([dock[0] + off, dock[1]])
        homer._steer(5.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.1)
        return bool(homer.docked)

    assert [docked(off) for off in (50.0, 2.0, 8.0, 2.0, 12.0, 8.0, 2.5)] == [
        False,
        True,
        True,
        True,
        False,
        False,
        True,
    ]


# ------------------------------------------------------------------ the score


def weaving(swings: int) -> VesselTrack:
    """Behind a slow vessel, 60 deg to and fro."""
    places, velocities = [np.array([-400.0, 0.0])], []
    legs = [(20, 0.0)] + [(12, s * 60.0) for k in range(swings) for s in ((1.0, -1.0)[k % 2],)] + [(100, 0.0)]
    for seconds, course in legs:
        v = U * np.array([math.cos(math.radians(course)), math.sin(math.radians(course))])
        for _ in range(seconds):
            velocities.append(v)
            places.append(places[-1] + v)
    return VesselTrack(np.arange(len(velocities), dtype=float), np.array(places[:-1]), np.array(velocities))


def test_weaving_cannot_score_1() -> None:
    """Out and back is what it takes; each further swing costs, and so do way, time, and a mission that is not completed."""
    far = VesselTrack(np.arange(4000.0), np.tile([0.0, 900.0], (4000, 1)), np.zeros((4000, 2)))
    scores = []
    for swings in (2, 6, 10, 16):
        own = weaving(swings)
        other = VesselTrack(own.times, far.places[: len(own.times)], far.velocities[: len(own.times)])
        found = score_run(own, {"t": (EncounterRole.OVERTAKING, other)}, LENGTH, goal=tuple(own.places[-1]))
        assert found.turns == swings + 1 == changes(own, LENGTH)
        scores.append(found.total)
        lost = score_run(own, {"t": (EncounterRole.OVERTAKING, other)}, LENGTH, goal=(9e3, 0.0))
        assert lost.total == 0.0
    assert (
        scores[0] == 1.0
        and scores == sorted(scores, reverse=True)
        and scores[1] < 0.75
        and scores[2] < 0.35
        and scores[3] == 0.0
    )


def test_economy_by_its_formulas() -> None:
    straight = VesselTrack(
        np.arange(300.0), np.stack([U * np.arange(300.0), np.zeros(300)], axis=1), np.tile([U, 0.0], (300, 1))
    )
    other = VesselTrack(straight.times, straight.places + [0.0, 500.0], straight.velocities)
    found = score_run(straight, {"t": (EncounterRole.OVERTAKING, other)}, LENGTH)
    assert found.economy == {"way": 1.0, "time": 1.0, "courses": 1.0} and found.turns == 0
    assert abs(found.late) < 1e-9 and abs(found.extra) < 1e-12
    slow = VesselTrack(
        straight.times + np.where(straight.times > 100.0, 70.0, 0.0), straight.places, straight.velocities
    )
    found = score_run(
        slow, {"t": (EncounterRole.OVERTAKING, VesselTrack(slow.times, other.places, other.velocities))}, LENGTH
    )
    assert found.late == pytest.approx(70.0)  # 105 lengths: half of what is between 30 and 180
    assert (
        found.economy["time"] == pytest.approx(0.5)
        and found.economy["way"] == 1.0
        and found.total == pytest.approx(0.5)
    )
