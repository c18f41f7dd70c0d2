"""Teams that communicate by sound: PettingZoo's own checks, exact times, half duplex, collisions, time slots, and the
benefit of communication.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from pettingzoo.test import parallel_api_test, parallel_seed_test

from wavesim_sdk import frames
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.tables import Outcome
from wavesim_studies.learning import teams

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("teams")]


def test_pettingzoo_has_nothing_to_say() -> None:
    """Members that end leave; the same seed gives the same observations."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(teams.Localisation(members=3, limit=40), num_cycles=60)
        parallel_seed_test(lambda: teams.Localisation(members=2, limit=25), num_cycles=30)


def test_who_strays_too_far_leaves_the_water(monkeypatch: pytest.MonkeyPatch) -> None:
    env = teams.Localisation(members=3, limit=20)
    env.reset(seed=1)
    assert env.simulation is not None
    env.simulation.set_pose(env.members["m1"].row, (teams.FAR + 1.0, 0.0, 20.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        observations, _, gone, late, _ = env.step({a: np.zeros(9, np.float32) for a in env.agents})
    assert gone == {"m0": False, "m1": True, "m2": False} and not any(late.values())
    assert env.agents == ["m0", "m2"] and set(observations) == {"m0", "m1", "m2"}
    env.step({a: np.full(9, np.nan) for a in env.agents})  # what is not a number is nothing
    assert env.simulation.row_of("m1") is None and np.isfinite(env.state()).all()


class Traced:
    """Goes tick by tick, and keeps where transducers were at the end of each."""

    def __init__(self, env: teams.Localisation) -> None:
        assert env.simulation is not None
        self.sim, self.advance = env.simulation, env.simulation.advance
        self.time: list[float] = []
        self.place: list[Any] = []
        self._look()
        env.simulation.advance = self._advance  # type: ignore[method-assign]

    def _advance(self, ticks: int = 1) -> None:
        for _ in range(ticks):
            self.advance(1)
            self._look()

    def _look(self) -> None:
        state = self.sim.state()
        lever = np.array([0.3, 0.0, 0.08])
        self.time.append(self.sim.time_ns * 1e-9)
        self.place.append(state["p_WB_W"] + frames.rotation(state["q_WB"]) @ lever)

    def at(self, row: int, time: float) -> Any:
        places = np.array(self.place)[:, row]
        return np.array([np.interp(time, self.time, places[:, k]) for k in range(3)])


def test_a_packet_is_heard_after_the_way_it_went() -> None:
    """Out at t, in at t + r/c to a microsecond, r from where the engine had the two; late in the step as well."""
    env = teams.Localisation(members=3, limit=20)
    env.reset(seed=4)
    traced, seen = Traced(env), 0
    for step in range(6):
        actions = {}
        for k, a in enumerate(env.agents):
            actions[a] = np.zeros(9, np.float32)
            actions[a][:5] = 0.3 * k, 1.0, 1.0 if step % 3 == k else -1.0, 1.0, 0.5 * (step > 2)
        _, _, _, _, infos = env.step(actions)
        for a, info in infos.items():
            for r in info["receptions"]:
                out, in_ = r["sent_ns"] * 1e-9, r["arrival_ns"] * 1e-9
                way = np.linalg.norm(traced.at(env.members[a].row, in_) - traced.at(r["source"], out))
                assert abs(in_ - out - way / 1500.0) < 1e-6
                assert r["outcome"] == Outcome.HEARD and abs(r["range"] - way) < 2.0
                seen += 1
    assert seen >= 10


def test_what_is_said_is_what_is_heard() -> None:
    env = teams.Localisation(members=2, limit=20)
    env.reset(seed=2)
    said = np.array([1.0, -1.0, 0.2, 0.0])
    actions = {a: np.zeros(9, np.float32) for a in env.agents}
    actions["m0"][2], actions["m0"][3], actions["m0"][5:] = 1.0, 1.0, said
    observations, _, _, _, infos = env.step(actions)
    heard = observations["m1"][teams.OWN :]
    assert heard[0] == 1.0 and heard[6:] == pytest.approx(said, abs=0.01)
    believed = env.members["m0"].navigator.x[:2] / 1000.0
    assert heard[3:5] == pytest.approx(believed, abs=0.003) and 0.1 < heard[1] < 1.0
    assert (observations["m0"][teams.OWN :] == 0.0).all() and not infos["m0"]["receptions"]
    actions["m0"][3] = -1.0  # whispered: 150 dB are not what 188 dB are
    env.members["m0"].navigator.has_gps = True
    quiet = env.step(actions)[4]["m1"]["receptions"][0]
    assert quiet["level"] == pytest.approx(infos["m1"]["receptions"][0]["level"] - 38.0, abs=0.5)


def test_two_who_always_send_hear_nothing() -> None:
    env = teams.Localisation(members=2, limit=20)
    found = teams.evaluate_schedule(env, teams.transmit_always(env), 3)
    assert found["sent"] == 40 and found["heard"] == 0


def test_five_in_slots_hear_all() -> None:
    env = teams.Localisation(members=5, limit=30)
    found = teams.evaluate_schedule(env, teams.tdma(env), 3)
    assert found["sent"] == 30 and found["heard"] == 4 * 30
    chance = teams.evaluate_schedule(env, teams.aloha(env, 0.5), 3)
    assert chance["heard"] < 0.5 * 4 * chance["sent"], "half of the time somebody else speaks, or oneself"


def test_talking_halves_the_error_of_silence() -> None:
    env = teams.Localisation(members=5, limit=100)
    silent, slots = (
        np.mean([teams.evaluate_schedule(env, plan(env), seed)["rms"] for seed in (1, 2)])
        for plan in (teams.transmit_never, teams.tdma)
    )
    assert slots < 0.5 * silent


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="2 to 20 members"):
        teams.Localisation(members=1)
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        teams.Localisation(members=2).state()
    env = teams.Localisation(members=2)
    env.reset(seed=1)
    for wrong in ({}, {"m0": np.zeros(9)}, {"m0": np.zeros(9), "m1": np.zeros(8)}, {"m0": np.zeros(9), "m1": None}):
        with pytest.raises(ValueError, match=r"'m[01]' expects an action of 9 numbers"):
            env.step(wrong)
