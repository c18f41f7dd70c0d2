"""Training of a policy with Stable-Baselines3, with checkpoints, evaluations and export of the best policy.

    from wavesim_studies.learning.training import TrainingSettings, train

    result = train("StationKeeping", "runs/station", TrainingSettings(samples=1_000_000))
    print(result.evaluation)

The folder receives a checkpoint and an evaluation at regular intervals. ``train(..., resume=True)`` continues from the
last checkpoint. The policy that was the best in the evaluations is kept in ``best.npz``, which
:class:`~wavesim_studies.learning.policy.Policy` evaluates with NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_studies.learning.evaluation import UNSEEN, Evaluation, evaluate
from wavesim_studies.learning.policy import Policy
from wavesim_studies.learning.training_state import BEST, TrainingFolder, TrainingSettings, check_arguments, opened

__all__ = ["TrainingResult", "TrainingSettings", "draw_curve", "train"]


@dataclass(frozen=True)
class TrainingResult:
    """Result of a training run: the best policy, and its evaluation over episodes that were used neither to train nor
    to select it.
    """

    policy: Any  #: a :class:`Policy`, or a model of Stable-Baselines3 if its network cannot be exported
    evaluation: Evaluation  #: evaluation of the best policy over unseen episodes
    folder: Path
    samples: int
    seconds: float  #: wall time in s, without the final evaluation
    processor_seconds: float  #: processor time of all threads in s
    curve: list[dict[str, float]] = field(default_factory=list)  #: one row per evaluation during training


def default_arguments(copies: int) -> dict[str, Any]:
    """Return the arguments for PPO that suit thousands of copies and short steps."""
    steps = max(1, 16_384 // copies)
    return {
        "learning_rate": falling_rate(2e-3),
        "n_steps": steps,
        "batch_size": max(2, copies * steps // 8),
        "n_epochs": 3,
        "gamma": 0.97,
        "ent_coef": 0.001,
        "policy_kwargs": {"log_std_init": -0.7},
    }


def falling_rate(first: float) -> Callable[[float], float]:
    """Return a learning rate that falls linearly from ``first`` at the start of the training to 2 % of ``first`` at the
    end.
    """
    return lambda left: first * max(0.02, float(left))


def train(
    task: Any,
    folder: Path | str,
    settings: TrainingSettings | None = None,
    *,
    algorithm: Any = None,
    arguments: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    resume: bool = False,
    report: Callable[[dict[str, float]], object] | None = None,
) -> TrainingResult:
    """Train a policy for a task, and write checkpoints, the best policy and the curve to ``folder``.

    ``task`` is the name of a shipped task, or your own task. ``algorithm`` is a class of Stable-Baselines3 or a
    compatible class; it receives the ``arguments``. Without ``algorithm``, PPO is used with settings for many copies,
    which ``arguments`` override. ``options`` are passed to the task. ``report`` is called with each row of the curve.

    The evaluations and the training use different seeds, and the final evaluation uses seeds that the selection of the
    best policy did not use. Raise WaveSimError if Stable-Baselines3 is missing, if the folder already contains a
    training run, or if there is nothing to resume. After an interrupt, the last checkpoint is kept. A resumed training
    run keeps the ``arguments`` of its first call; ConfigError is raised if other ``arguments`` are passed. The copies
    of a resumed run use seeds that no earlier call used.
    """
    from wavesim_studies.learning.sb3_monitor import Training

    settings, folder = settings or TrainingSettings(), Path(folder)
    state = opened(folder, _name(task), resume)
    given = dict(arguments or {})
    if algorithm is None:
        from stable_baselines3 import PPO

        algorithm, arguments = PPO, default_arguments(settings.copies) | given
    if resume and state["algorithm"] != algorithm.__name__:
        raise ConfigError(
            f"{folder} contains a training run with {state['algorithm']}, not with {algorithm.__name__}; use another folder"
        )
    check_arguments(state, given)
    state |= {"algorithm": algorithm.__name__, "settings": asdict(settings)}
    run = Training(task, settings, dict(options or {}), TrainingFolder(folder, state, settings.checkpoints), report)
    run.learn(algorithm, dict(arguments or {}))
    policy = run.best_policy(algorithm)
    evaluation = evaluate(policy, task, settings.episodes, UNSEEN, **dict(options or {}))
    state["evaluation"] = evaluation.summary()
    run.folder.write()
    draw_curve(state["curve"], folder / "curve.png")
    return TrainingResult(
        policy,
        evaluation,
        folder,
        int(state["samples"]),
        state["seconds"],
        state["processor_seconds"],
        list(state["curve"]),
    )


def _name(task: Any) -> str:
    """Return the name of a shipped task, or the name of the class of a user's task."""
    return task if isinstance(task, str) else task.__name__ if isinstance(task, type) else type(task).__name__


def draw_curve(curve: list[dict[str, float]], path: Path) -> None:
    """Plot the success rate with its interval, and the return, against the number of samples."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    samples = np.array([row["samples"] * 1e-6 for row in curve])
    left.fill_between(samples, [r["low"] for r in curve], [r["high"] for r in curve], alpha=0.25, lw=0.0)
    left.plot(samples, [r["success"] for r in curve])
    left.set(xlabel="million samples", ylabel="fraction of successes (95 % interval)", ylim=(0.0, 1.0))
    right.plot(samples, [r["return"] for r in curve])
    right.set(xlabel="million samples", ylabel="mean return")
    figure.savefig(path, dpi=110)


def load_best(folder: Path) -> Policy:
    """Return the best policy of the training run in a folder. Raise WaveSimError if the folder does not contain a
    policy.
    """
    return Policy.load(folder / BEST)
