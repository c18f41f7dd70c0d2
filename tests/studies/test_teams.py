"""Teams that communicate by sound, with PettingZoo's interface: its own checks, half duplex, collisions, time slots, and the
benefit of communication. `test_team_vectors.py` compares them with the engine.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from pettingzoo.test import parallel_api_test, parallel_seed_test

from wavesim_sdk.errors import ConfigError
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
    env.vector.place(0, 1, (teams.FAR + 1.0, 0.0, 20.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        observations, _, gone, late, _ = env.step({a: np.zeros(9, np.float32) for a in env.agents})
    assert gone == {"m0": False, "m1": True, "m2": False} and not any(late.values())
    assert env.agents == ["m0", "m2"] and set(observations) == {"m0", "m1", "m2"}
    env.step({a: np.full(9, np.nan) for a in env.agents})  # what is not a number is nothing
    assert np.isfinite(env.state()).all()


def test_what_is_said_is_what_is_heard() -> None:
    env = teams.Localisation(members=2, limit=20)
    env.reset(seed=2)
    said = np.array([1.0, -1.0, 0.2, 0.0])
    actions = {a: np.zeros(9, np.float32) for a in env.agents}
    actions["m0"][2], actions["m0"][3], actions["m0"][5:] = 1.0, 1.0, said
    observations, _, _, _, infos = env.step(actions)
    heard = observations["m1"][teams.OWN :]
    assert heard[0] == 1.0 and heard[6:] == pytest.approx(said, abs=0.01)
    believed = observations["m0"][:2]  # in km, one second after the packet left
    assert heard[3:5] == pytest.approx(believed, abs=0.003) and 0.1 < heard[1] < 1.0
    assert (observations["m0"][teams.OWN :] == 0.0).all() and not infos["m0"]["receptions"]
    actions["m0"][3] = -1.0  # whispered: 150 dB are not what 188 dB are
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
