"""Parts of a training run that need Stable-Baselines3: the environment, the callback, and the models in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.learning.custom_core import make_core
from wavesim_studies.learning.sb3 import VecEnv, exported_policy  # first: it reports a missing package
from wavesim_studies.learning.team_rows import TeamRows
from wavesim_studies.learning.training_state import BEST, Evaluator, TrainingFolder, TrainingSettings, reserve_seeds

import torch  # isort: skip
from stable_baselines3.common.callbacks import BaseCallback  # isort: skip

BEST_MODEL = "best.zip"


class StaggeredVecEnv(VecEnv):
    """A ``VecEnv`` whose first episodes end at different times.

    If all copies started their episodes at the same time, each update would see only one phase of the episodes.
    """

    _left: Array | None = None

    def reset(self) -> Array:
        """Start new episodes in all copies; return observations (n, numbers)."""
        first = super().reset()
        self._left = None
        if np.isfinite(self.core.limit) and not isinstance(self.core, TeamRows):  # a team starts as a whole
            random = np.random.default_rng(self._seed)
            self._left = np.asarray(random.integers(1, int(self.core.limit) + 1, self.num_envs))
        return first

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """Return observations, rewards, ends and infos; see :class:`.sb3.VecEnv`."""
        seen, rewards, ended, infos = super().step_wait()
        if self._left is None:
            return seen, rewards, ended, infos
        self._left -= 1
        cut = (self._left == 0) & ~ended
        if cut.any():
            for i in np.flatnonzero(cut).tolist():
                infos[i] = {"terminal_observation": seen[i].copy(), "TimeLimit.truncated": True, "is_success": False}
            self.core.reset_copies(cut)
            seen, ended = self.core.outputs.observation.copy(), ended | cut
        if self._left.max() <= 0:
            self._left = None
        return seen, rewards, ended, infos


class Monitor(BaseCallback):  # type: ignore[misc]
    """Callback that evaluates the policy and writes a checkpoint at regular intervals, and stops the training when its
    time is up.
    """

    def __init__(self, run: Training) -> None:
        super().__init__()
        self._run = run

    def _on_rollout_start(self) -> None:
        if self._run.is_due(self.num_timesteps):
            self._run.measure(self.model)

    def _on_step(self) -> bool:
        return self._run.evaluator.elapsed() < self._run.settings.seconds


class Training:
    """State of one call of :func:`.training.train`."""

    def __init__(
        self,
        task: Any,
        settings: TrainingSettings,
        options: dict[str, Any],
        folder: TrainingFolder,
        report: Callable[[dict[str, float]], object] | None,
    ) -> None:
        self.settings, self.folder = settings, folder
        self._seed = reserve_seeds(folder.state, settings)
        kind = StaggeredVecEnv if settings.spread else VecEnv
        self.envs = kind(task, settings.copies, **options)
        self.envs.core.set_threads(settings.threads)
        validation = make_core(task, settings.episodes, **options)
        validation.reset_copies()
        validation.step(
            np.zeros((settings.episodes, validation.actions), np.float32)
        )  # compiled before the clock starts
        self.evaluator, self._report = Evaluator(validation, folder), report
        self._last = folder.state["samples"]
        self._last_seconds = 0.0

    def is_due(self, samples: int) -> bool:
        """Return whether it is time for the next evaluation."""
        s = self.settings
        late = self.evaluator.elapsed() - self._last_seconds >= s.interval_seconds
        return samples > self._last and (samples - self._last >= s.interval or late)

    def learn(self, algorithm: Any, arguments: dict[str, Any]) -> None:
        """Train up to the number of samples or the time limit."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self.settings.threads)  # for small networks, more threads cost more than they save
        try:
            model = self._model(algorithm, arguments)
            self.envs.seed(self._seed)  # a new or loaded model has seeded them with its own seed
            left = self.settings.samples - model.num_timesteps
            if left > 0:
                model.learn(left, callback=Monitor(self), reset_num_timesteps=model.num_timesteps == 0)
            if model.num_timesteps > self._last:
                self.measure(model)
        finally:
            torch.set_num_threads(threads)

    def _model(self, algorithm: Any, arguments: dict[str, Any]) -> Any:
        if self.folder.state["resumed"]:
            return self._load(algorithm, self.folder.last_checkpoint(), arguments.get("device", "cpu"))
        try:
            arguments = {"policy": "MlpPolicy", "seed": self.settings.seed, "device": "cpu"} | arguments
            return algorithm(env=self.envs, **arguments)
        except (TypeError, ValueError, AssertionError) as error:
            raise ConfigError(f"{algorithm.__name__} rejects its arguments: {error}") from None

    def _load(self, algorithm: Any, path: Path, device: Any) -> Any:
        try:
            return algorithm.load(path, env=self.envs, device=device)
        except (OSError, ValueError, KeyError, RuntimeError, EOFError) as error:
            raise WaveSimError(f"cannot load {path}: {error}") from None

    def measure(self, model: Any) -> None:
        """Evaluate the policy, keep it if it is the best one, and write a checkpoint."""
        try:
            policy: Any = exported_policy(model)
        except WaveSimError:  # a network of another kind is evaluated by its own trainer
            policy = model
        row, is_best = self.evaluator.measure(policy, model.num_timesteps)
        if is_best:
            self.folder.replace(BEST_MODEL, lambda path: model.save(path))
            if policy is not model:
                self.folder.replace(BEST, policy.save)
        self.folder.add_checkpoint(lambda path: model.save(path))
        self._last, self._last_seconds = model.num_timesteps, self.evaluator.elapsed()
        if self._report is not None:
            self._report(row)

    def best_policy(self, algorithm: Any) -> Any:
        """Return the best policy so far: a policy for NumPy, or a model if its network cannot be exported."""
        if not (self.folder.path / BEST_MODEL).exists():
            raise WaveSimError("the training ended before its first evaluation; give it more samples or more time")
        model = algorithm.load(self.folder.path / BEST_MODEL, device="cpu")
        try:
            return exported_policy(model)
        except WaveSimError:
            return model
