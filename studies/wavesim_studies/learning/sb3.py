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

try:
    from stable_baselines3.common.vec_env import VecEnv as Base
except ImportError:
    raise WaveSimError("Stable-Baselines3 is not installed; run pip install 'wavesim-studies[sb3]'") from None

from wavesim_studies.learning.custom import Task
from wavesim_studies.learning.custom_core import make_core
from wavesim_studies.learning.env import spaces
from wavesim_studies.learning.policy import Policy

Indices = int | Iterable[int] | None


def exported_policy(model: Any) -> Policy:
    """Return the trained ``MlpPolicy`` of a PPO or A2C model as a policy that needs only NumPy.

    The layers of the network must be dense, with tanh between them, as they are by default.
    """
    layers = [layer for layer in model.policy.mlp_extractor.policy_net if hasattr(layer, "weight")]
    found: list[Array] = []
    for layer in (*layers, model.policy.action_net):
        found += [layer.weight.detach().cpu().numpy().T.copy(), layer.bias.detach().cpu().numpy().copy()]
    return Policy(found)


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
        """Do nothing, because nothing has to be closed."""

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
