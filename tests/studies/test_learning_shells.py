"""The adapters for Stable-Baselines3 and PufferLib: with the packages if installed, otherwise with stand-ins for their
documented interfaces.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from tests.studies.small_tasks import Depth
from wavesim_sdk.errors import WaveSimError
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics.sizes import LANES
from wavesim_studies.learning.core import Core
from wavesim_studies.learning.custom_core import CustomCore
from wavesim_studies.learning.policy import Policy

N, STEPS = 11, 6
#: what a VecEnv must have (Stable-Baselines3, base_vec_env)
ABSTRACT = ("reset", "step_async", "step_wait", "close", "get_attr", "set_attr", "env_method", "env_is_wrapped")


def _vec_env() -> Any:
    class VecEnv(ABC):
        def __init__(self, num_envs: int, observation_space: Any, action_space: Any) -> None:
            self.num_envs, self.observation_space, self.action_space = num_envs, observation_space, action_space
            self.reset_infos = [{} for _ in range(num_envs)]
            self.render_mode = self.get_attr("render_mode")[0]

        @abstractmethod
        def get_attr(self, name: str, indices: Any = None) -> list[Any]: ...

        def step(self, actions: Any) -> Any:
            self.step_async(actions)
            return self.step_wait()

    for name in ABSTRACT:
        setattr(VecEnv, name, abstractmethod(lambda self, *args, **named: None))
    VecEnv.__abstractmethods__ = frozenset(ABSTRACT)
    return VecEnv


def _puffer_env() -> Any:
    class PufferEnv:
        def __init__(self, buf: Any = None) -> None:
            box, n = self.single_observation_space, self.num_agents
            made = {
                "observations": np.zeros((n, *box.shape), box.dtype),
                "rewards": np.zeros(n, np.float32),
                "terminals": np.zeros(n, bool),
                "truncations": np.zeros(n, bool),
                "masks": np.ones(n, bool),
                "actions": np.zeros((n, *self.single_action_space.shape), np.float32),
            }
            for name, array in (made if buf is None else buf).items():
                setattr(self, name, array)

    return PufferEnv


def _installed(monkeypatch: pytest.MonkeyPatch, package: str, places: dict[str, dict[str, Any]]) -> None:
    """The package, or stand-ins of the modules of it that are used."""
    if importlib.util.find_spec(package) is not None:
        pytest.importorskip(package)
        return
    for name, members in places.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)


def _shell(monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    monkeypatch.delitem(sys.modules, f"wavesim_studies.learning.{name}", raising=False)
    return importlib.import_module(f"wavesim_studies.learning.{name}")


@pytest.fixture
def sb3(monkeypatch: pytest.MonkeyPatch) -> Any:
    base = "stable_baselines3"
    _installed(monkeypatch, base, {base: {}, f"{base}.common": {}, f"{base}.common.vec_env": {"VecEnv": _vec_env()}})
    return _shell(monkeypatch, "sb3")


@pytest.fixture
def puffer(monkeypatch: pytest.MonkeyPatch) -> Any:
    _installed(monkeypatch, "pufferlib", {"pufferlib": {"PufferEnv": _puffer_env()}})
    return _shell(monkeypatch, "puffer")


def actions(steps: int) -> Any:
    return np.random.default_rng(1).uniform(-1.0, 1.0, (steps, N, 6)).astype(np.float32)


def core(seed: int) -> Core:
    made = Core("StationKeeping", N)
    made.rules = made.rules._replace(steps=STEPS)
    made.seed(seed)
    made.reset_copies()
    return made


def test_stable_baselines_receives_what_the_core_says(sb3: Any) -> None:
    envs = sb3.VecEnv("StationKeeping", N, seed=5)
    envs.core.rules = envs.core.rules._replace(steps=STEPS)
    twin, kept = core(5), envs.reset()
    first = kept.copy()
    assert (kept == twin.outputs.observation).all() and envs.observation_space.contains(kept[0])
    ended = 0
    for k, a in enumerate(actions(2 * STEPS)):
        if k == 3:
            for c in (envs.core, twin):
                c.fleet.blocks.reshape(-1, B.ROWS, LANES)[4 // LANES, B.PX, 4 % LANES] = 50.0
        seen, reward, done, infos = envs.step(a)
        twin.step(a)
        out = twin.outputs
        assert (seen == out.observation).all() and reward == pytest.approx(out.reward) and reward.dtype == np.float32
        assert (done == (out.terminated | out.truncated)).all() and len(infos) == N
        for i in range(N):
            if done[i]:
                assert (infos[i]["terminal_observation"] == out.last[i]).all()
                assert infos[i]["TimeLimit.truncated"] == out.truncated[i]
                ended += 1
            else:
                assert infos[i] == {}
    assert ended >= 2 * N and (kept == first).all(), "what was given is not written again"
    assert envs.get_attr("render_mode", [0, 3]) == [None, None] and envs.env_is_wrapped(object) == [False] * N
    assert envs.seed(9)[:2] == [9, 10] and (envs.reset() == core(9).outputs.observation).all()
    with pytest.raises(WaveSimError, match="all copies share their attributes"):
        envs.set_attr("x", 1)
    envs.close()


def test_a_task_of_a_user_has_the_same_shells(sb3: Any, puffer: Any) -> None:
    """The values of its core, and the same in both; the episodes end at the time limit and before."""
    twin, envs, env = CustomCore(Depth(), N), sb3.VecEnv(Depth(), N, seed=5), puffer.Puffer(Depth, N)
    twin.seed(5)
    twin.reset_copies()
    assert (envs.reset() == twin.outputs.observation).all() and (env.reset(5)[0] == twin.outputs.observation).all()
    ended = 0
    for a in np.random.default_rng(1).uniform(-1.0, 1.0, (20, N, 5)).astype(np.float32):
        seen, reward, done, infos = envs.step(a)
        buffers = env.step(a)
        twin.step(a)
        out = twin.outputs
        assert (seen == out.observation).all() and (buffers[0] == out.observation).all()
        assert (reward == out.reward.astype("f4")).all() and (buffers[1] == reward).all()
        assert (done == (buffers[2] | buffers[3])).all() and (buffers[3] == out.truncated).all()
        for i in np.flatnonzero(done):
            assert (infos[i]["terminal_observation"] == out.last[i]).all()
            assert infos[i]["is_success"] == twin.success[i] and infos[i]["TimeLimit.truncated"] == out.truncated[i]
        if done.any():
            assert buffers[4] == [{"success": twin.success[done].mean(), "episodes": int(done.sum())}]
        ended += int(done.sum())
    assert ended > N


class Numbers:
    """What the trainer keeps its parameters in: an array that must be detached and copied to the host first."""

    def __init__(self, values: Any) -> None:
        self.detach = self.cpu = lambda: self
        self.numpy = lambda: values


def test_an_exported_policy_computes_what_its_model_did(sb3: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    layers = [
        SimpleNamespace(
            weight=Numbers(rng.normal(size=(b, a)).astype("f4")), bias=Numbers(rng.normal(size=b).astype("f4"))
        )
        for a, b in ((26, 64), (64, 64), (64, 6))
    ]
    between = type("Tanh", (), {})()
    net = [layers[0], between, layers[1], between]
    policy = SimpleNamespace(mlp_extractor=SimpleNamespace(policy_net=net), action_net=layers[2])
    sb3.exported_policy(SimpleNamespace(policy=policy)).save(tmp_path / "p.npz")
    x = 0.2 * rng.normal(size=(5, 26)).astype("f4")
    (W1, b1), (W2, b2), (W3, b3) = ((layer.weight.numpy(), layer.bias.numpy()) for layer in layers)
    wanted = [W3 @ np.tanh(W2 @ np.tanh(W1 @ row + b1) + b2) + b3 for row in x]
    assert Policy.load(tmp_path / "p.npz").act(x) == pytest.approx(np.clip(wanted, -1.0, 1.0), abs=1e-5)


@pytest.mark.parametrize("given", [False, True])
def test_puffer_finds_all_in_its_own_buffers(puffer: Any, given: bool) -> None:
    buf = {
        "observations": np.zeros((N, 26), np.float32),
        "rewards": np.zeros(N, np.float32),
        "terminals": np.zeros(N, bool),
        "truncations": np.zeros(N, bool),
        "masks": np.ones(N, bool),
        "actions": np.zeros((N, 6), np.float32),
    }
    env = puffer.Puffer("StationKeeping", N, buf=buf if given else None)
    env.core.rules = env.core.rules._replace(steps=STEPS)
    twin, (seen, first_infos) = core(7), env.reset(7)
    assert first_infos == [] and (seen == twin.outputs.observation).all() and env.num_agents == N
    ends = 0
    for a in actions(2 * STEPS):
        seen, rewards, terminals, truncations, infos = env.step(a)
        twin.step(a)
        assert seen is env.observations and (buf["observations"] is seen) == given
        assert (seen == twin.outputs.observation).all() and rewards == pytest.approx(twin.outputs.reward)
        assert (terminals == twin.outputs.terminated).all() and (truncations == twin.outputs.truncated).all()
        ends += int(infos[0]["episodes"]) if infos else 0
    assert ends == 2 * N
    env.close()


def test_observations_go_nowhere_else() -> None:
    with pytest.raises(ValueError, match="C-contiguous"):
        core(1).set_observation_buffer(np.zeros((N, 25), np.float32))


@pytest.mark.parametrize(("name", "package"), [("sb3", "stable_baselines3"), ("puffer", "pufferlib")])
def test_without_the_package_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    for module in [m for m in sys.modules if m == package or m.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(WaveSimError, match="is not installed; run pip install"):
        _shell(monkeypatch, name)
