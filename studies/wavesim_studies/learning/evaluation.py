"""Evaluation of a policy from any training library, over episodes that were not used in training.

from wavesim_studies.learning.evaluation import evaluate
from wavesim_studies.learning.policy import Policy

print(evaluate(Policy.load("policy.npz"), "StationKeeping"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import ConfigError
from wavesim_studies.campaign.statistics import share_interval
from wavesim_studies.learning.custom_core import make_core

__all__ = ["UNSEEN", "Evaluation", "evaluate", "evaluate_core"]

#: seed of the first episode of an evaluation. Training uses the seeds below VALIDATION_SEEDS.
UNSEEN = 1_000_000
VALIDATION_SEEDS = 500_000  #: first seed of the episodes that select the best policy during training


@dataclass(frozen=True)
class Evaluation:
    """Results of the episodes of an evaluation, one element per episode.

    ``infos`` contains the quantities that the task reports, at the end of each episode: for the shipped tasks,
    ``distance`` (m) and ``heading_error`` (rad).
    """

    succeeded: Array  #: episodes that met the task's condition for success
    completed: Array  #: episodes that reached the time limit
    returns: Array  #: sums of the rewards
    steps: Array  #: numbers of steps
    infos: dict[str, Array] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)  #: units of the infos by name, for the text

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.succeeded)

    @property
    def success(self) -> float:
        """Fraction of successful episodes."""
        return float(self.succeeded.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the fraction of successes."""
        return share_interval(int(self.succeeded.sum()), self.episodes)[1:]

    def mean(self, name: str) -> float:
        """Return the mean of an entry of ``infos`` over the completed episodes; NaN if no episode was completed."""
        values = self.infos[name][self.completed]
        return float(values.mean()) if len(values) else float("nan")

    def summary(self) -> dict[str, float]:
        """Return the results as numbers: success and its interval, and means over episodes."""
        low, high = self.interval
        return {
            "episodes": self.episodes,
            "success": self.success,
            "low": low,
            "high": high,
            "completed": float(self.completed.mean()),
            "return": float(self.returns.mean()),
            "steps": float(self.steps.mean()),
            **{name: self.mean(name) for name in self.infos},
        }

    def __str__(self) -> str:
        low, high = self.interval
        parts = [
            f"success {100.0 * self.success:.1f} % of {self.episodes} episodes"
            f" (95 % interval {100.0 * low:.1f} to {100.0 * high:.1f} %)",
            f"return {self.returns.mean():.4g}",
            *(
                f"{name} {self.mean(name):.3g} {self.units.get(name, '')}".rstrip()
                for name in self.infos
                if not name.startswith("reward_")
            ),
        ]
        return ", ".join(parts)


def evaluate(policy: Any, task: Any, episodes: int = 300, seed: int = UNSEEN, **options: Any) -> Evaluation:
    """Run episodes of a task with a policy; episode ``i`` uses seed + i.

    ``policy`` is a function that returns the actions (n, actions) for the observations (n, numbers), an object with
    ``act(observations, ended)`` such as :class:`~wavesim_studies.learning.policy.Policy`, or a model of
    Stable-Baselines3. ``ended`` marks the copies whose observation is the first one of an episode. ``task`` is the name
    of a built-in task, or your :class:`~wavesim_studies.learning.custom.Task` or its class; ``options`` are passed to
    it. Raise ConfigError if the policy returns actions of a wrong shape, or values that are not finite.
    """
    if episodes < 1:
        raise ConfigError(f"an evaluation requires at least one episode, got {episodes}")
    return evaluate_core(make_core(task, episodes, **options), policy, seed)


def acting(policy: Any) -> Callable[[Array, Array], Array]:
    """Convert a policy of any supported kind to a function of (observations, ended). Raise ConfigError if the object is
    not a policy.
    """
    if callable(getattr(policy, "act", None)):
        return policy.act  # type: ignore[no-any-return]
    if callable(getattr(policy, "predict", None)):
        return lambda observation, ended: policy.predict(observation, deterministic=True)[0]
    if callable(policy):
        return lambda observation, ended: policy(observation)
    raise ConfigError(
        "a policy must be a function (observations) -> actions, or an object with a method 'act' or 'predict'; got "
        f"{type(policy).__name__}"
    )


def evaluate_core(core: Any, policy: Any, seed: int = UNSEEN) -> Evaluation:
    """Run one episode of each copy of a core; copy ``i`` uses seed + i."""
    act = acting(policy)
    if not np.isfinite(core.limit):
        raise ConfigError("an evaluation requires a task with a time limit")
    core.seed(seed)
    core.reset_copies()
    out, n = core.outputs, core.copies
    shape = (n, core.actions)
    running, succeeded, completed, returns = np.ones(n, bool), np.zeros(n, bool), np.zeros(n, bool), np.zeros(n)
    steps, infos, ended = np.zeros(n, np.int64), dict[str, Array](), np.ones(n, bool)
    while running.any():
        actions = np.asarray(act(out.observation, ended))
        if actions.shape != shape:
            raise ConfigError(
                f"the policy returned actions of shape {actions.shape} for {n} observations; expected {shape}"
            )
        if not np.isfinite(actions).all():
            raise ConfigError(f"the policy returned an action that is not finite, at step {int(steps.max())}")
        core.step(np.ascontiguousarray(actions, np.float32))
        ended = out.terminated | out.truncated
        returns[running] += out.reward[running]
        steps += running
        now = ended & running
        if now.any():
            succeeded[now], completed[now] = core.success[now], out.truncated[now]
            for name, values in core.infos().items():
                infos.setdefault(name, np.full(n, np.nan))[now] = values[now]
            running &= ~ended
    return Evaluation(succeeded, completed, returns, steps, infos, core.units)
