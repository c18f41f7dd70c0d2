"""Learning environments: Gymnasium's own checks, the engine's motion, independent copies, and three autoreset modes."""

from __future__ import annotations

import argparse
import importlib
import math
import tracemalloc
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import wavesim_studies.learning  # noqa: E402, F401
from tests.studies.reset_modes import ResetTwin  # noqa: E402
from wavesim_sdk.errors import ConfigError, WaveSimError  # noqa: E402
from wavesim_server.dynamics import block_rows as B  # noqa: E402
from wavesim_server.dynamics.sizes import LANES  # noqa: E402
from wavesim_server.study import empty_sea  # noqa: E402
from wavesim_studies.learning.baselines import Pid, RandomPolicy  # noqa: E402
from wavesim_studies.learning.core import Core  # noqa: E402
from wavesim_studies.learning.env import VectorTaskEnv  # noqa: E402
from wavesim_studies.learning.evaluation import evaluate, evaluate_core  # noqa: E402
from wavesim_studies.learning.policy import Policy  # noqa: E402
from wavesim_studies.learning.tasks import TASKS  # noqa: E402
from wavesim_studies.navigation.learned_dead_reckoning import DeadReckoningNetwork  # noqa: E402
from wavesim_studies.neural_networks import DenseNetwork, forward  # noqa: E402
from wavesim_world.config import load  # noqa: E402


@pytest.mark.parametrize("task", TASKS)
def test_gymnasium_has_nothing_to_say(task: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"wavesim/{task}-v0").unwrapped)


def actions(n: int, steps: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, n, 6)).astype(np.float32)


def test_a_copy_is_the_same_alone_and_among_others() -> None:
    """And the same as one environment with its seed; whatever the neighbours do."""
    many, few = Core("StationKeeping", 21), Core("StationKeeping", 4)
    alone = Core("StationKeeping", 1)
    inputs = actions(21, 40)
    other = inputs.copy()
    other[:, np.arange(21) != 3] = 1.0
    for core, seed in ((many, 5), (few, 5), (alone, 8)):
        core.seed(seed)
        core.reset_copies()
    for k in range(40):
        many.step(inputs[k])
        few.step(np.ascontiguousarray(other[k, :4]))
        alone.step(np.ascontiguousarray(inputs[k, 3:4]))
        seen = [c.outputs.observation[i].tobytes() for c, i in ((many, 3), (few, 3), (alone, 0))]
        assert seen[0] == seen[1] == seen[2]
    assert len({o.tobytes() for o in many.outputs.observation}) == 21
    again = many.outputs.observation.copy()
    many.seed(5)
    many.reset_copies()
    for k in range(40):
        many.step(inputs[k])
    assert (many.outputs.observation == again).all()


@pytest.mark.compiled
def test_the_first_of_four_thousand_is_the_only_one() -> None:
    """To the bit, through ends and resets: whoever let lanes or blocks see each other would change it."""
    many, alone, inputs = Core("StationKeeping", 4096), Core("StationKeeping", 1), actions(4096, 24, 3)
    for core in (many, alone):
        core.rules = core.rules._replace(steps=10)
        core.seed(11)
        core.reset_copies()
    for a in inputs:
        many.step(a)
        alone.step(np.ascontiguousarray(a[:1]))
        for ours, theirs in zip(many.outputs, alone.outputs, strict=True):
            assert ours[:1].tobytes() == theirs.tobytes()


@pytest.mark.parametrize("hulls", [0.0, 1.0])
def test_threads_do_not_change_a_bit(hulls: float) -> None:
    """Through ends and resets, with a last block that is not full, and more threads than blocks."""
    cores = [Core("Lemniscate", 37, hulls=hulls) for _ in range(3)]
    for core, threads in zip(cores, (1, 3, 64), strict=True):
        core.set_threads(threads)
        core.rules = core.rules._replace(steps=4)
        core.seed(2)
        core.reset_copies()
    for action in actions(37, 12):
        for core in cores:
            core.step(action)
        for of_one, of_three, of_many in zip(*(core.outputs for core in cores), strict=True):
            assert of_one.tobytes() == of_three.tobytes() == of_many.tobytes()
    with pytest.raises(ConfigError, match="invalid number of threads 0"):
        cores[0].set_threads(0)


@pytest.mark.compiled
def test_a_step_allocates_nothing() -> None:
    """Neither Python nor the compiled code: resets, ends and all."""
    core = Core("Circle", 512, substeps=2)
    core.rules = core.rules._replace(steps=5)
    core.seed(1)
    core.reset_copies()
    inputs = actions(512, 40)
    core.step(inputs[0])
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats().alloc
    peaks = []
    for _ in range(5):  # Python's in the best of some tries: other threads have their own
        tracemalloc.start()
        try:
            base = tracemalloc.get_traced_memory()[0]
            for a in inputs:
                core.step(a)
            peaks.append(tracemalloc.get_traced_memory()[1] - base)
        finally:
            tracemalloc.stop()
    assert rtsys.get_allocation_stats().alloc == before + 5 * 40 * 2, (
        "a handle of each array that Python hands over, the table and the actions, and no more"
    )
    assert min(peaks) < 10_000 < core.outputs.observation.nbytes, "but for a few Python objects that a call is made of"


def test_noise_is_as_large_as_it_is_said_to_be() -> None:
    """Of one moment of 4000 copies, against the same without: standard deviations, no correlation, tails as normal numbers have them."""
    cores = [Core("StationKeeping", 4000, vary=0.0, noise=n) for n in (0.0, 1.0)]
    for core in cores:
        core.seed(5)
        core.reset_copies()
    off = (cores[1].outputs.observation - cores[0].outputs.observation).astype(float)
    level = off[:, 8:14] / [0.01, 0.01, 0.01, 0.002, 0.002, 0.002]
    assert level.std(axis=0) == pytest.approx(np.ones(6), abs=0.04) and abs(level.mean(axis=0)).max() < 0.06
    assert abs(np.corrcoef(level.T) - np.eye(6)).max() < 0.06
    assert (abs(level) > 2.0).mean() == pytest.approx(0.0455, abs=0.006) and 3.5 < abs(level).max() < 6.0
    place = np.linalg.norm(off[:, :3], axis=1)
    assert np.sqrt(np.mean(place**2)) == pytest.approx(np.sqrt(2 * (0.05**2 + 0.02**2) + 0.02**2 + 0.02**2), rel=0.05)


def test_too_few_values_are_refused() -> None:
    """The kernels trust their arrays: they would read what lies behind them."""
    core = Core("StationKeeping", 4)
    for shape in ((3, 6), (4, 5), (6,), (4, 6, 1)):
        with pytest.raises(ValueError, match=r"expected actions of shape \(4, 6\)"):
            core.step(np.zeros(shape, np.float32))
    with pytest.raises(ValueError, match=r"expected a mask of shape \(4,\)"):
        core.reset_copies(np.ones(3, bool))
    for wrong in ({"copies": 0}, {"copies": -1}, {"substeps": 0}, {"dt": 0.0}, {"dt": math.nan}):
        with pytest.raises(ConfigError, match="copies and substeps must be >= 1 and dt positive"):
            Core("StationKeeping", **{"copies": 1, **wrong})
    with pytest.raises(ConfigError, match=r"'lauv' is not a vehicle driven by thrusters only; allowed: .*bluerov2"):
        Core("StationKeeping", 1, model="lauv")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no file of arrays", None])
def test_what_is_no_policy_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "p.npz"
    if content is not None:
        path.write_bytes(content)
    for load_, said in (
        (Policy.load, "does not contain a valid policy"),
        (DeadReckoningNetwork.load, "does not contain a valid network"),
    ):
        with pytest.raises(WaveSimError, match=said):
            load_(path)


def test_arrays_that_are_no_layers_are_no_network(tmp_path: Path) -> None:
    np.savez(tmp_path / "n.npz", np.zeros(3), np.ones(3), np.ones(3), np.zeros((3, 4)), np.zeros(5))
    with pytest.raises(WaveSimError, match="not the layers of one network"):
        DeadReckoningNetwork.load(tmp_path / "n.npz")


def test_what_is_not_a_number_is_no_action() -> None:
    core, other = Core("StationKeeping", 3, vary=0.0), Core("StationKeeping", 3, vary=0.0)
    for c, a in ((core, np.nan), (other, 0.0)):
        c.seed(1)
        c.reset_copies()
        c.step(np.full((3, 6), a, np.float32))
    assert core.outputs.observation.tobytes() == other.outputs.observation.tobytes()


def test_it_moves_as_the_engine_does() -> None:
    core = Core("StationKeeping", 1, vary=0.0, noise=0.0)
    core.seed(3)
    core.reset_copies()
    b = core.fleet.blocks[0].reshape(-1, LANES)[:, 0]
    sim = empty_sea(1, 0.05)
    row = sim.enter("v", "bluerov2-marinegym", (0.0, 0.0, 20.0))
    sim.fleet.body(row)[:13] = b[:13]
    for a in actions(1, 100, 4):
        core.step(a)
        sim.command(row, (a[0].astype(float) * core.rules.max_command).tolist())
        sim.advance(1)
        assert b[:13] == pytest.approx(sim.fleet.body(row)[:13], abs=1e-9)
    assert np.abs(b[7:13]).max() > 0.1


@pytest.mark.parametrize("name", ["NextStep", "SameStep", "Disabled"])
def test_three_ways_to_begin_anew(name: str) -> None:
    n, steps = 11, 6
    envs = VectorTaskEnv("StationKeeping", n, autoreset_mode=name)
    envs.core.rules = envs.core.rules._replace(steps=steps)
    envs.reset(seed=2)
    alone = Core("StationKeeping", n)
    alone.rules = alone.rules._replace(steps=steps)
    twin = ResetTwin(alone, envs.core.rules.mode)
    ends = 0
    for k, a in enumerate(actions(n, 20, 1)):
        if k == 3:  # one that is blown away: its episode ends out of turn
            for core in (envs.core, twin.core):
                core.fleet.blocks.reshape(-1, B.ROWS, LANES)[4 // LANES, B.PX, 4 % LANES] = 50.0
        observation, reward, terminated, truncated, info = envs.step(a)
        wanted = twin.step(a)
        for ours, theirs in zip((observation, reward, terminated, truncated), wanted[:4], strict=True):
            assert (ours == theirs).all(), k
        ended = terminated | truncated
        ends += int(ended.sum())
        assert (info.get("_success", np.zeros(n, bool)) == ended).all()
        if name == "SameStep" and ended.any():
            assert all((info["final_obs"][i] == wanted[4][i]).all() for i in np.flatnonzero(ended))
        if name == "Disabled" and ended.any():
            with pytest.raises(ValueError, match="at least one"):
                envs.reset(options={"reset_mask": np.zeros(n, bool)})
            fresh, _ = envs.reset(options={"reset_mask": ended})
            twin.core.reset_copies(ended)
            twin.ended[:] = False
            assert (fresh == twin.core.outputs.observation).all()
    assert ends > 2 * n and not envs.core.fleet.blocks.reshape(-1, B.ROWS, LANES)[4 // LANES, B.PX, 4 % LANES] > 40.0


def test_make_vec_hulls_and_a_step_that_keeps_nothing() -> None:
    envs = gymnasium.make_vec("wavesim/Circle-v0", num_envs=600, hulls=1.0, substeps=4)
    first, _ = envs.reset(seed=1)
    kept = first.copy()
    seen = envs.step(envs.action_space.sample())[0]
    assert (first == kept).all() and seen.shape == (600, 26)
    core = envs.unwrapped.core
    kinds = core.fleet.heads[:, 1]
    assert len(set(kinds.tolist())) == 64 and len(np.unique(core.fleet.params[np.unique(kinds)], axis=0)) == 64
    assert np.isfinite(seen).all()


def test_a_controller_keeps_station_and_chance_does_not() -> None:
    core = Core("StationKeeping", 40, vary=0.0, noise=0.2)
    assert evaluate_core(core, Pid(core), 1).success > 0.9
    assert evaluate_core(core, RandomPolicy(core), 1).success == 0.0


def test_the_gradients_of_the_networks() -> None:
    random = np.random.default_rng(1)
    network = DenseNetwork((3, 8, 8, 2), random, 1.0)
    network.parameters = [p.astype(np.float64) for p in network.parameters]
    x, d = random.normal(size=(5, 3)), random.normal(size=(5, 2))
    assert (network(x) == forward(network.parameters, x)).all()
    for p, g in zip(network.parameters, network.gradients(d), strict=True):
        at = tuple(int(random.integers(k)) for k in p.shape)
        old = p[at]
        p[at] = old + 1e-6
        high = (network(x) * d).sum()
        p[at] = old - 1e-6
        low = (network(x) * d).sum()
        p[at] = old
        assert g[at] == pytest.approx((high - low) / 2e-6, rel=1e-5, abs=1e-8)


ONBOARD = Path(__file__).parents[2] / "examples" / "onboard"


def test_the_policy_that_ships_keeps_station_in_episodes_it_has_not_seen() -> None:
    """Training had the seeds from 1 on. 276 of 300 are Wilson's least bound of 95 % successes; PID beside it: 88 %."""
    found = evaluate(Policy.load(ONBOARD / "station-keeping.npz"), "StationKeeping")
    assert found.succeeded.sum() >= 276 and found.mean("distance") < 0.1


def test_on_board_it_gets_the_same_inputs_as_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the example: its observation is the environment's, its network that of the trainer."""
    monkeypatch.syspath_prepend(ONBOARD)
    learned = importlib.import_module("learned")
    loaded = load(ONBOARD.parent / "trials" / "learned.xml")
    options = argparse.Namespace(policy=ONBOARD / "station-keeping.npz")
    rov = learned.Rov(loaded, loaded.config.fleet.bodies[0], options)
    core, policy = Core("StationKeeping", 1, vary=0.0, noise=0.0), Policy.load(options.policy)
    core.seed(3)
    core.reset_copies()
    assert rov.most == core.rules.max_command
    for k in range(60):
        seen, body = core.outputs.observation.copy(), core.fleet.blocks[0].reshape(-1, LANES)[:13, 0]
        monkeypatch.setattr(learned, "SHARE", float(seen[0, 19]))
        assert rov.observation(body) == pytest.approx(seen[0], abs=1e-6)
        step = SimpleNamespace(state=SimpleNamespace(motion=tuple(body.tolist())))
        commands, _ = rov.act(step, None)
        action = policy.act(seen)
        assert np.array(list(commands.values())) / rov.most == pytest.approx(action[0], abs=1e-4), k
        core.step(action)
