"""Adapter for PufferLib 3: an environment whose agents are the copies. It writes directly into the trainer's buffers.

from wavesim_studies.learning.puffer import Puffer
env = Puffer("StationKeeping", 4096)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import WaveSimError

try:
    from pufferlib import PufferEnv as Base
except ImportError:
    raise WaveSimError("PufferLib 3 is not installed; run pip install 'pufferlib>=3,<4'") from None

from wavesim_studies.learning.custom import Task
from wavesim_studies.learning.custom_core import make_core
from wavesim_studies.learning.env import spaces


class Puffer(Base):  # type: ignore[misc]
    """A PufferLib environment of ``num_envs`` copies of a task.

    ``task`` is the name of a built-in task, or your :class:`~wavesim_studies.learning.custom.Task`. ``buf`` contains the
    trainer's arrays; ``options`` are passed to :class:`~wavesim_studies.learning.core.Core`, or to the class of your
    task.
    """

    def __init__(
        self,
        task: str | Task | type[Task] = "StationKeeping",
        num_envs: int = 1024,
        *,
        buf: Mapping[str, Array] | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.core = make_core(task, num_envs, **options)
        self.single_observation_space, self.single_action_space = spaces(self.core)
        self.num_agents, self._seed = num_envs, seed
        self.render_mode = None
        super().__init__(buf)
        if self.observations.dtype == np.float32 and self.observations.flags.c_contiguous:
            self.core.set_observation_buffer(self.observations)

    def reset(self, seed: int | None = None) -> tuple[Array, list[dict[str, Any]]]:
        """Start new episodes in all copies. Copy ``i`` uses the random numbers of seed + i."""
        self.core.seed(self._seed if seed is None else int(seed))
        self.core.reset_copies()
        return self._give(), []

    def _give(self) -> Array:
        if self.core.outputs.observation is not self.observations:
            self.observations[:] = self.core.outputs.observation
        return self.observations  # type: ignore[no-any-return]

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, list[dict[str, Any]]]:
        """Advance all copies by one step, as defined by PufferLib. A copy is reset in the step in which its episode
        ends, and infos describe the episodes that ended in this step.
        """
        self.core.step(np.ascontiguousarray(actions, np.float32))
        out = self.core.outputs
        self.rewards[:], self.terminals[:], self.truncations[:] = out.reward, out.terminated, out.truncated
        ended = out.terminated | out.truncated
        infos = (
            [{"success": float(self.core.success[ended].mean()), "episodes": int(ended.sum())}] if ended.any() else []
        )
        return self._give(), self.rewards, self.terminals, self.truncations, infos

    def close(self) -> None:
        """Do nothing: there are no resources to release."""
