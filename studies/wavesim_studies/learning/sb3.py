"""Adapter for Stable-Baselines3: thousands of copies as its ``VecEnv``.

    from stable_baselines3 import PPO
    from wavesim_studies.learning.sb3 import VecEnv, exported_policy
    model = PPO("MlpPolicy", VecEnv("StationKeeping", 1024)).learn(1_000_000)
    exported_policy(model).save("policy.npz")

A copy is reset in the step in which its episode ends, as Stable-Baselines3 requires. Thousands of dicts per step would
cost more than the physics. The list of infos therefore repeats one empty dict, and only copies whose episode has ended
have their own dict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.extras import MissingPackage

try:
    from stable_baselines3.common.vec_env import VecEnv as Base
except ImportError:
    raise MissingPackage("Stable-Baselines3 is not installed; run pip install 'wavesim-studies[sb3]'") from None

from wavesim_studies.learning.custom import Task
from wavesim_studies.learning.custom_core import make_core
from wavesim_studies.learning.env import spaces
from wavesim_studies.learning.policy import Policy

Indices = int | Iterable[int] | None


def exported_policy(model: Any) -> Policy:
    """Return the trained ``MlpPolicy`` of a model as a policy that needs only NumPy, regardless of the algorithm.

    Raise WaveSimError unless its network consists of dense layers with tanh, ReLU or ELU between them.
    """
    policy = model.policy
    if hasattr(policy, "mlp_extractor"):  # PPO, A2C: the actions are clipped
        layers, squash = [*policy.mlp_extractor.policy_net, policy.action_net], False
    elif hasattr(policy, "actor"):  # SAC: a tanh limits the actions; TD3 and DDPG have it as their last layer
        layers, squash = [*getattr(policy.actor, "latent_pi", ()), *_layers(policy.actor.mu)], True
        layers = layers[:-1] if type(layers[-1]).__name__ == "Tanh" else layers
    else:
        raise WaveSimError(f"cannot export a policy of the type {type(policy).__name__}: it has no dense actor network")
    extractor = getattr(getattr(policy, "actor", policy), "features_extractor", None)
    if extractor is not None and type(extractor).__name__ != "FlattenExtractor":
        raise WaveSimError(f"cannot export a policy with the features extractor {type(extractor).__name__}")
    if getattr(model, "use_sde", False):
        raise WaveSimError("cannot export a policy with state-dependent exploration (use_sde)")
    found: list[Array] = []
    between = set[str]()
    for layer in layers:
        if hasattr(layer, "weight"):
            found += [layer.weight.detach().cpu().numpy().T.copy(), layer.bias.detach().cpu().numpy().copy()]
        else:
            between.add(type(layer).__name__.lower())
    if len(between) > 1:
        raise WaveSimError(f"cannot export a network with several kinds of layers ({', '.join(sorted(between))})")
    return Policy(found, next(iter(between), "tanh"), squash)


def _layers(network: Any) -> list[Any]:
    """Return the layers of a network, which may be a single layer."""
    return [network] if hasattr(network, "weight") else list(network)


class VecEnv(Base):  # type: ignore[misc]
    """The ``VecEnv`` with ``num_envs`` copies of a task: a built-in task by its name, or your
    :class:`~wavesim_studies.learning.custom.Task`. ``options`` are passed to
    :class:`~wavesim_studies.learning.core.Core`, or to the class of your task.
    """

    def __init__(
        self, task: str | Task | type[Task] = "StationKeeping", num_envs: int = 1024, seed: int = 0, **options: Any
    ) -> None:
        self.core = make_core(task, num_envs, **options)
        self.render_mode: str | None = None
        self._seed, self._actions, self._none = (
            seed,
            np.zeros((num_envs, self.core.actions), np.float32),
            dict[str, Any](),
        )
        super().__init__(num_envs, *spaces(self.core))

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed for the next reset; copy ``i`` uses seed + i."""
        self._seed = self._seed if seed is None else seed
        return [self._seed + i for i in range(self.num_envs)]

    def reset(self) -> Array:
        """Start new episodes in all copies; return observations (n, numbers)."""
        self.core.seed(self._seed)
        self._seed += self.num_envs  # the next reset gives other episodes
        self.core.reset_copies()
        self.reset_infos: list[dict[str, Any]] = [self._none] * self.num_envs
        first: Array = self.core.outputs.observation.copy()
        return first

    def step_async(self, actions: Array) -> None:
        """Set the actions (n, thrusters) for the next step."""
        self._actions = np.ascontiguousarray(actions, np.float32)

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """Return observations, rewards, ends and infos. The infos of copies whose episode has ended contain
        ``terminal_observation``, ``TimeLimit.truncated`` and ``is_success``.
        """
        self.core.step(self._actions)
        out, success = self.core.outputs, self.core.success
        ended = out.terminated | out.truncated
        infos = [self._none] * self.num_envs
        for i in np.flatnonzero(ended).tolist():
            infos[i] = {
                "terminal_observation": out.last[i].copy(),
                "TimeLimit.truncated": bool(out.truncated[i]),
                "is_success": bool(success[i]),
            }
        return out.observation.copy(), out.reward.astype(np.float32), ended, infos

    def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def _count(self, indices: Indices) -> int:
        return self.num_envs if indices is None else 1 if isinstance(indices, int) else len(list(indices))

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return the value of an attribute for each copy. All copies have the same value."""
        return [getattr(self, attr_name)] * self._count(indices)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Raise WaveSimError, because copies have no individual attributes."""
        raise WaveSimError(f"cannot set '{attr_name}': all copies share their attributes")

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **named: Any) -> list[Any]:
        """Raise WaveSimError, because copies have no individual methods."""
        raise WaveSimError(f"cannot call '{method_name}' on individual environments: all copies are one object")

    def env_is_wrapped(self, wrapper_class: Any, indices: Indices = None) -> list[bool]:
        """Return False for each copy, because no copy is wrapped."""
        return [False] * self._count(indices)
