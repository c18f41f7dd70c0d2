"""Gymnasium environments: a vector of copies, and a single copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from wavesim_sdk.arrays import Array
from wavesim_studies.learning import kernels
from wavesim_studies.learning.core import Core
from wavesim_studies.learning.custom import Task
from wavesim_studies.learning.custom_core import CustomCore, make_core

if TYPE_CHECKING:
    from wavesim_studies.learning.team_rows import TeamRows

__all__ = ["SingleTaskEnv", "VectorTaskEnv"]

_MODES = {
    AutoresetMode.NEXT_STEP: kernels.NEXT_STEP,
    AutoresetMode.SAME_STEP: kernels.SAME_STEP,
    AutoresetMode.DISABLED: kernels.DISABLED,
}


def spaces(core: Core | CustomCore | TeamRows) -> tuple[Any, Any]:
    """Return the observation space and the action space of a single copy."""
    box = gymnasium.spaces.Box
    return box(-core.bound, core.bound, (core.size,), np.float32), box(-1.0, 1.0, (core.actions,), np.float32)


class VectorTaskEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc]
    """Copies of a task, advanced in one compiled call. With ``copy=False``, the returned arrays are reused by the next
    step.

    ``task`` is the name of a built-in task, or a :class:`~wavesim_studies.learning.custom.Task` or its class.
    ``autoreset_mode`` has the same meaning as in Gymnasium; the other options are passed to
    :class:`~wavesim_studies.learning.core.Core`, or to the class of your task.
    """

    def __init__(
        self,
        task: str | Task | type[Task] = "StationKeeping",
        num_envs: int = 1,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
        threads: int = 1,
        **options: Any,
    ) -> None:
        mode = AutoresetMode(autoreset_mode)
        self.core = make_core(task, num_envs, **options)
        self.core.set_threads(threads)
        self.core.set_reset_mode(_MODES[mode])
        self.metadata = {"autoreset_mode": mode, "render_modes": []}
        self.num_envs, self._copy, self.render_mode, self._mode = num_envs, copy, render_mode, mode
        self.single_observation_space, self.single_action_space = spaces(self.core)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._seeded = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Reset all copies, or those selected by ``options["reset_mask"]``. Copy ``i`` uses the random numbers of seed
        + i.
        """
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self.core.seed(int(self.np_random.integers(2**31)) if seed is None else seed)
            self._seeded = True
        mask = (options or {}).get("reset_mask")
        if mask is not None and not np.any(mask):
            raise ValueError("reset_mask must select at least one copy")
        self.core.reset_copies(mask)
        return self._given(self.core.outputs.observation), {}

    def _given(self, array: Array) -> Array:
        return array.copy() if self._copy else array

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Advance all copies by one step, as defined by Gymnasium.

        ``infos`` contains distance (m), heading_error (rad), reward_place, reward_still and reward_effort, or what your
        task reports. For copies whose episode has ended, it also contains success and, with SAME_STEP, final_obs and
        final_info.
        """
        out = self.core.outputs
        self.core.step(np.ascontiguousarray(actions, np.float32))
        infos: dict[str, Any] = {name: self._given(values) for name, values in self.core.infos().items()}
        ended = out.terminated | out.truncated
        if ended.any():
            success = self.core.success
            infos |= {"success": success, "_success": ended}
            if self._mode == AutoresetMode.SAME_STEP:
                last = np.empty(self.num_envs, object)
                for i in np.flatnonzero(ended):
                    last[i] = out.last[i].copy()
                infos |= {
                    "final_obs": last,
                    "_final_obs": ended,
                    "final_info": {"success": success, "_success": ended},
                    "_final_info": ended,
                }
        return (
            self._given(out.observation),
            self._given(out.reward),
            self._given(out.terminated),
            self._given(out.truncated),
            infos,
        )


class SingleTaskEnv(gymnasium.Env):  # type: ignore[misc]
    """One copy of a task as a Gymnasium environment."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self, task: str | Task | type[Task] = "StationKeeping", render_mode: str | None = None, **options: Any
    ) -> None:
        self.core = make_core(task, 1, **options)
        self.core.set_reset_mode(kernels.DISABLED)
        self.observation_space, self.action_space = spaces(self.core)
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start a new episode. The same seed always starts the same episode."""
        super().reset(seed=seed)
        self.core.seed(int(self.np_random.integers(2**31)) if seed is None else seed)
        self.core.reset_copies()
        return self.core.outputs.observation[0].copy(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Advance the copy by one step, as defined by Gymnasium. ``info`` has the same keys as in
        :class:`VectorTaskEnv`.
        """
        out = self.core.outputs
        self.core.step(np.ascontiguousarray(action, np.float32)[None, :])
        info: dict[str, Any] = {name: float(values[0]) for name, values in self.core.infos().items()}
        info["success"] = bool(self.core.success[0])
        return out.observation[0].copy(), float(out.reward[0]), bool(out.terminated[0]), bool(out.truncated[0]), info
