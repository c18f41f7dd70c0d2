"""Vectors of teams: the engine as the judge of motion and sound, independent teams, reset modes, and trainers' rows."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")

import wavesim_studies.learning  # noqa: E402, F401
from tests.studies.team_reference import ReferenceTeam  # noqa: E402
from tests.studies.test_learning_shells import sb3  # noqa: E402, F401
from wavesim_sdk.errors import ConfigError  # noqa: E402
from wavesim_sdk.tables import Outcome  # noqa: E402
from wavesim_studies.learning import teams  # noqa: E402

pytestmark = pytest.mark.xdist_group("teams")
compiled = pytest.mark.compiled


def actions(steps: int, count: int, members: int, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, count, members, 9)).astype(np.float32)


def scattered(vector: teams.VectorLocalisation, seed: int) -> None:
    """Place members up to 2.5 km from the centre: packets travel for seconds, and some are too weak."""
    random = np.random.default_rng(seed)
    for team in range(vector.teams):
        for k in range(vector.members):
            far, turn = 1000.0 + 1500.0 * random.random(), 2.0 * np.pi * random.random()
            place = far * np.cos(turn), far * np.sin(turn), 20.0 + 10.0 * random.random()
            vector.place(team, k, place, np.pi * random.uniform(-1.0, 1.0))


def in_order(receptions: Any) -> Any:
    """By receiver, sender and time: the order of signals that leave in the same nanosecond depends on rounding."""
    return receptions[np.lexsort((receptions["emission_ns"] // 1000, receptions["source"], receptions["receiver"]))]


@compiled
@pytest.mark.parametrize(("seed", "far"), [(1, False), (2, True), (3, True)])
def test_the_engine_judges_motion_and_sound(seed: int, far: bool) -> None:
    """Each reception of a random plan has the engine's outcome, time, level and range; the motion is the engine's, too.
    Of three teams, the last one is compared.
    """
    steps, members = 25, 4
    vector = teams.VectorLocalisation(3, members)
    vector.reset(seed)
    if far:
        scattered(vector, seed)
    judge = ReferenceTeam(vector, 2, 4)
    plan, outcomes, late = actions(steps, 3, members, seed), Counter[Outcome](), 0
    plan[..., 2] = np.where(plan[..., 2] > 0.3, 1.0, -1.0)
    for given in plan:
        observations, rewards, _, _, infos = vector.step(given)
        seen, wanted, records = judge.step(given[2])
        mine, records = in_order(vector.receptions(2)), in_order(records)
        for name in ("source", "receiver", "outcome"):
            assert mine[name].tolist() == records[name].tolist()
        assert mine["arrival_ns"] == pytest.approx(records["arrival_ns"], abs=1000)
        assert mine["emission_ns"] == pytest.approx(records["emission_ns"], abs=2)
        for name, tolerance in (("level", 1e-6), ("one_way", 1e-5), ("range", 1e-5), ("doppler", 1e-4)):
            assert mine[name] == pytest.approx(records[name], abs=tolerance, nan_ok=True)
        outcomes.update(Outcome(int(r["outcome"])) for r in mine)
        late += int((mine["arrival_ns"] // 10**9 > mine["emission_ns"] // 10**9).sum())
        state = judge.sim.state()
        bodies = np.array([[*state[m.row]["p_WB_W"], *state[m.row]["v_WB_B"]] for m in judge.members])
        assert vector.state()[2, :, :6] == pytest.approx(bodies, abs=1e-9)
        assert observations[2] == pytest.approx(seen, abs=1e-5)
        assert rewards[2] == pytest.approx(wanted, abs=1e-5)
        heard = [sum(r["receiver"] == k and r["outcome"] == 0 for r in records) for k in range(members)]
        assert infos["heard"][2].tolist() == heard
    assert outcomes[Outcome.HEARD] > 5 and outcomes[Outcome.TRANSMITTING] > 5 and outcomes[Outcome.COLLISION] > 5
    if far:
        assert late > 10 and outcomes[Outcome.BELOW_THRESHOLD] + outcomes[Outcome.FADED] > 5


@compiled
def test_a_longer_step_changes_little() -> None:
    """50 ms instead of 5 ms, with a new random course and speed in each of 40 steps."""
    vector = teams.VectorLocalisation(1, 2)
    vector.reset(4)
    judge = ReferenceTeam(vector, 0, 40)
    for given in actions(40, 1, 2, 4):
        vector.step(given)
        judge.step(given[0])
    state = judge.sim.state()
    bodies = np.array([[*state[m.row]["p_WB_W"], *state[m.row]["v_WB_B"]] for m in judge.members])
    away = np.abs(vector.state()[0, :, :6] - bodies)
    assert away[:, :3].max() < 0.03 and away[:, 3:].max() < 0.003


def results(vector: teams.VectorLocalisation, team: int) -> Any:
    o, rows = vector.outputs, slice(team * vector.members, (team + 1) * vector.members)
    parts = (o.observation, o.reward, o.terminated, o.truncated, o.last, o.error, o.sigma, o.heard, o.lost)
    return b"".join(part[rows].tobytes() for part in parts) + vector.state()[team].tobytes()


@compiled
def test_a_team_is_the_same_alone_and_among_others() -> None:
    """To the bit, through ends and resets, with the seed that follows from its number; with two threads as well."""
    many, alone = teams.VectorLocalisation(11, 3, limit=7), teams.VectorLocalisation(1, 3, limit=7)
    shared, single = teams.VectorLocalisation(11, 3, limit=7), teams.Localisation(3, limit=7)
    shared.set_threads(2)
    many.reset(5)
    shared.reset(5)
    alone.reset(14)
    seen, _ = single.reset(14)
    plan, ended = actions(20, 11, 3, 1), 0
    for step, given in enumerate(plan):
        observations, _, _, _, infos = many.step(given)
        shared.step(given)
        alone.step(given[9:10])
        assert results(many, 9) == results(alone, 0)
        assert [results(many, k) for k in range(11)] == [results(shared, k) for k in range(11)]
        if step < 6:
            seen, *_ = single.step({f"m{k}": given[9, k] for k in range(3)})
            assert all(seen[f"m{k}"].tobytes() == observations[9, k].tobytes() for k in range(3))
        ended += int(infos["ended"].sum())
    assert ended == 22 and len({results(many, k) for k in range(11)}) == 11


def test_a_team_of_two_without_compilation_too() -> None:
    """Two steps: a packet arrives, and the filter uses its range."""
    vector = teams.VectorLocalisation(1, 2, substeps=2)
    first = vector.reset(1).copy()
    given = np.zeros((1, 2, 9), np.float32)
    given[0, 0, 2:4] = 1.0
    observations, rewards, _, _, infos = vector.step(given)
    assert infos["heard"].tolist() == [[0, 1]] and infos["lost"].tolist() == [[0, 0]]
    assert observations[0, 1, teams.OWN] == 1.0 and (first[0, :, teams.OWN :] == 0.0).all()
    assert infos["sigma"][0, 1] < 1.0 and (rewards < 0.0).all() and (rewards > -1.0).all()


@compiled
def test_three_reset_modes() -> None:
    """A new episode begins in the same step, in the next step with a reward of zero, or when it is asked for."""
    same, later, never = (
        teams.VectorLocalisation(5, 2, limit=3, autoreset=mode) for mode in ("SameStep", "NextStep", "Disabled")
    )
    start = {v: v.reset(2).copy() for v in (same, later, never)}
    plan = actions(5, 5, 2, 3)
    for step, given in enumerate(plan):
        got = {v: [np.copy(part) for part in v.step(given)[:4]] for v in (same, later, never)}
        if step < 2:
            assert len({part.tobytes() for part in (g[0] for g in got.values())}) == 1
        elif step == 2:
            assert all(g[3].all() and not g[2].any() for g in got.values())
            assert (same.outputs.last == later.outputs.observation).all()
            assert not (got[same][0] == got[later][0]).all() and (got[same][0][..., 8] == 0.0).all()
        elif step == 3:  # the next episode has begun with the same values
            assert (got[later][0][..., 8] == 0.0).all() and (got[later][1] == 0.0).all() and not got[later][3].any()
            assert (got[never][0] == 0.0).all() and (got[never][1] == 0.0).all() and not never.outputs.present.any()
    assert (never.reset(2) == start[never]).all()
    mask = np.arange(5) == 3
    before = never.outputs.observation.copy()
    after = never.reset(chosen=mask)
    assert (np.any(after != before.reshape(after.shape), axis=(1, 2)) == mask).all()


@compiled
def test_a_lost_member_leaves_its_team() -> None:
    vector = teams.VectorLocalisation(2, 3, limit=6)
    vector.reset(1)
    vector.place(1, 2, (teams.FAR + 1.0, 0.0, 20.0))
    given = np.zeros((2, 3, 9), np.float32)
    given[1, 2, 2] = given[1, 0, 2] = 1.0
    _, rewards, gone, late, infos = vector.step(given)
    assert gone.tolist() == [[False] * 3, [False, False, True]] and not late.any() and infos["present"].all()
    rewards = rewards.copy()
    observations, after, gone, _, infos = vector.step(given)
    assert not gone.any() and infos["present"].tolist() == [[True] * 3, [True, True, False]]
    assert after[1, 2] == 0.0 and rewards[1, 2] < -0.05 and (observations[1, 2] == 0.0).all()
    assert infos["heard"][1].tolist() == [0, 1, 0], "a member that was lost neither sends nor receives"
    for _ in range(4):
        _, _, _, late, infos = vector.step(given)
    assert infos["ended"].all() and late.tolist() == [[True] * 3, [True, True, False]]
    assert vector.step(given)[4]["present"].all()


@compiled
def test_there_is_room_for_all_packets() -> None:
    """Twenty members send in every step, far apart, so that many packets are under way."""
    vector = teams.VectorLocalisation(2, 20)
    vector.reset(1)
    scattered(vector, 1)
    given = actions(30, 2, 20, 1)
    given[..., 2:4] = 1.0
    for step in given:
        vector.step(step)
    assert vector.media.media[0].counters[0].live > 60 and vector.outputs.lost.sum() > 100


@compiled
def test_members_are_copies_for_trainers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = gymnasium.make_vec(
            "wavesim/TeamLocalisation-v0", num_envs=12, members=3, limit=4, autoreset_mode="SameStep"
        )
    vector = teams.VectorLocalisation(4, 3, limit=4)
    seen, _ = envs.reset(seed=6)
    assert (seen.reshape(4, 3, -1) == vector.reset(6)).all() and envs.single_action_space.shape == (9,)
    core = envs.unwrapped.core
    for v in (core.vector, vector):
        v.place(0, 1, (teams.FAR + 1.0, 0.0, 20.0))
    ends = np.zeros(12, int)
    for given in actions(4, 4, 3, 8):
        seen, rewards, gone, late, infos = envs.step(given.reshape(12, 9))
        wanted = vector.step(given)
        assert (seen.reshape(4, 3, -1) == wanted[0]).all() and (rewards.reshape(4, 3) == wanted[1]).all()
        assert (infos["error"].reshape(4, 3) == wanted[4]["error"]).all()
        ends += gone | late
    assert ends.tolist() == [1, 2, *[1] * 10], "a lost member ends a second time, with its team"
    assert (np.array(infos["final_obs"].tolist()).reshape(4, 3, -1) == wanted[4]["last"]).all()
    with pytest.raises(ValueError, match="all members of a team, or none"):
        core.reset_copies(np.arange(12) == 0)


@compiled
def test_stable_baselines_trains_members_as_copies(sb3: Any) -> None:  # noqa: F811
    envs, vector = (
        sb3.VecEnv("TeamLocalisation", 6, seed=4, members=3, limit=2),
        teams.VectorLocalisation(2, 3, limit=2),
    )
    assert (envs.reset().reshape(2, 3, -1) == vector.reset(4)).all()
    for given in actions(2, 2, 3, 1):
        seen, rewards, done, infos = envs.step(given.reshape(6, 9))
        wanted = vector.step(given)
        assert (seen.reshape(2, 3, -1) == wanted[0]).all() and rewards == pytest.approx(wanted[1].ravel())
    assert done.all() and all(info["TimeLimit.truncated"] for info in infos)
    last = np.array([info["terminal_observation"] for info in infos])
    assert (last.reshape(2, 3, -1) == wanted[4]["last"]).all()


@compiled
def test_a_vector_runs_the_plans_of_the_table() -> None:
    """The means of eight teams are the means of eight single episodes."""
    many, one = teams.VectorLocalisation(8, 5, limit=30), teams.Localisation(5, limit=30)
    found = teams.evaluate_schedule(many, teams.tdma(many), 1)
    singles = [teams.evaluate_schedule(one, teams.tdma(one), seed) for seed in range(1, 9)]
    assert found["sent"] == 30 and found["heard"] == 4 * 30
    assert found["reward"] == pytest.approx(np.mean([s["reward"] for s in singles]))
    assert found["rms"] == pytest.approx(np.sqrt(np.mean([s["rms"] ** 2 for s in singles])))


def test_mistakes_of_a_vector() -> None:
    for options, message in (
        ({"teams": 0}, "teams and limit must be >= 1"),
        ({"teams": 1, "substeps": 1}, "substeps 2 to 200"),
        ({"teams": 1, "autoreset": "Never"}, "unknown autoreset mode 'Never': use one of NextStep, SameStep, Disabled"),
    ):
        with pytest.raises(ConfigError, match=message):
            teams.VectorLocalisation(**options)
    vector = teams.VectorLocalisation(2, 2)
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        vector.step(np.zeros((2, 2, 9)))
    vector.reset(1)
    with pytest.raises(ValueError, match=r"expected actions of shape \(2, 2, 9\), got \(4, 9\)"):
        vector.step(np.zeros((4, 9)))
    with pytest.raises(ValueError, match=r"expected a mask of shape \(2,\), got \(3,\)"):
        vector.reset(chosen=np.ones(3, bool))
    with pytest.raises(ConfigError, match="multiple of 5 members, got 12"):
        gymnasium.make_vec("wavesim/TeamLocalisation-v0", num_envs=12)
