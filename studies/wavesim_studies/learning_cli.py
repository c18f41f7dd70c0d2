"""Commands in the ``wavesim learn`` group: train policies for a task, and evaluate them on unseen episodes.

This module is not part of the package ``learning``, because the import of that package requires Gymnasium.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import MissingPackage
from wavesim_sdk.named_objects import load_object
from wavesim_sdk.names import suggest_name
from wavesim_sdk.terminal_text import echo, finite_json

BASELINES = ("pid", "random")
#: algorithms of Stable-Baselines3 for continuous actions
ALGORITHMS = ("PPO", "A2C", "SAC", "TD3", "DDPG")

task_argument = click.argument("task")
options_option = click.option(
    "--option",
    "options",
    metavar="NAME=VALUE",
    multiple=True,
    help="Option of the task, for example hulls=1 or noise=0. Repeatable.",
)


@click.group()
def learn() -> None:
    """Train and evaluate policies for learning tasks."""


@learn.command()
@task_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for checkpoints and results; default: runs/learning/ followed by the name of the task.",
)
@click.option(
    "--samples",
    default=1_000_000,
    show_default=True,
    type=click.IntRange(1),
    help="Number of samples: the total number of steps of all copies.",
)
@click.option("--seconds", type=Quantity("time", low=1e-3), help="Limit of the training time in s; default: none.")
@click.option("--copies", default=1024, show_default=True, type=click.IntRange(1), help="Number of copies of the task.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Seed of the training.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="Number of threads.")
@click.option(
    "--interval",
    default=100_000,
    show_default=True,
    type=click.IntRange(1),
    help="Number of samples between two evaluations, each of which writes a checkpoint.",
)
@click.option(
    "--episodes", default=300, show_default=True, type=click.IntRange(1), help="Number of episodes per evaluation."
)
@click.option(
    "--algorithm",
    default="PPO",
    show_default=True,
    type=click.Choice(ALGORITHMS, case_sensitive=False),
    help="Algorithm of Stable-Baselines3.",
)
@options_option
@click.option("--resume", is_flag=True, help="Continue the training in the folder from its last checkpoint.")
@json_option
def train(
    task: str,
    out: Path | None,
    samples: int,
    seconds: float | None,
    copies: int,
    seed: int,
    threads: int,
    interval: int,
    episodes: int,
    algorithm: str,
    options: tuple[str, ...],
    resume: bool,
    as_json: bool,
) -> None:
    """Train a policy for TASK with Stable-Baselines3.

    TASK is the name of a shipped task, such as StationKeeping, or FILE.py:CLASS for a task of your own. The folder
    receives checkpoints, the learning curve, and the policy with the best evaluation (best.npz). After Ctrl-C, run the
    same command with --resume to continue from the last checkpoint.
    """
    found = _task(task)
    given = _options(options)
    _core(found, copies, given)  # unknown options are reported before the folder is made
    from wavesim_studies.learning.training import TrainingSettings
    from wavesim_studies.learning.training import train as run

    folder = out or Path("runs/learning") / task.rpartition(":")[2]
    settings = TrainingSettings(
        samples=samples,
        seconds=seconds or float("inf"),
        copies=copies,
        seed=seed,
        interval=interval,
        episodes=episodes,
        threads=threads,
    )
    chosen = None if algorithm == "PPO" else _algorithm(algorithm)
    try:
        result = run(found, folder, settings, algorithm=chosen, options=given, resume=resume, report=_report(as_json))
    except KeyboardInterrupt:
        kept = any(folder.glob("checkpoint-*.zip"))
        next_step = (
            "run the same command with --resume to continue from the last checkpoint" if kept else "no checkpoint yet"
        )
        echo(f"interrupted; {next_step}\nfolder    {folder}", err=as_json)
        raise
    if as_json:
        row = {"samples": result.samples, "seconds": result.seconds, "processor_seconds": result.processor_seconds}
        echo(finite_json(row | result.evaluation.summary()))
        return
    echo(
        f"{result.samples} samples in {result.seconds:.0f} s ({result.processor_seconds:.0f} s of processor time);"
        f" unseen episodes:\n{result.evaluation}\nfolder    {folder}"
    )


def _report(as_json: bool) -> Any:
    def report(row: dict[str, float]) -> None:
        echo(
            f"{row['samples'] * 1e-6:8.2f} million samples {row['seconds']:7.1f} s   success {100.0 * row['success']:5.1f} %"
            f"   return {row['return']:9.4g}",
            err=as_json,
        )

    return report


@learn.command()
@click.argument("policy")
@task_argument
@click.option("--episodes", default=300, show_default=True, type=click.IntRange(1), help="Number of episodes.")
@click.option(
    "--seed", type=click.IntRange(0), help="Seed of the first episode; default: 1000000, which no training run uses."
)
@options_option
@json_option
def evaluate(policy: str, task: str, episodes: int, seed: int | None, options: tuple[str, ...], as_json: bool) -> None:
    """Evaluate a policy on unseen episodes of TASK.

    POLICY is a .npz file, the folder of a training run, or a baseline: pid or random. TASK is the name of a shipped task, or
    FILE.py:CLASS. The report contains the fraction of successes with its 95 % Wilson interval.
    """
    core = _core(_task(task), episodes, _options(options))
    from wavesim_studies.learning import evaluation

    result = evaluation.evaluate_core(core, _policy(policy, core), evaluation.UNSEEN if seed is None else seed)
    echo(finite_json(result.summary()) if as_json else str(result))


def _policy(text: str, core: Any) -> Any:
    """Return the policy that an argument names."""
    from wavesim_studies.learning.baselines import Pid, RandomPolicy
    from wavesim_studies.learning.core import Core
    from wavesim_studies.learning.policy import Policy
    from wavesim_studies.learning.tasks import TASKS
    from wavesim_studies.learning.training import load_best

    if text in BASELINES:
        if text == "random":
            return RandomPolicy(core)
        if isinstance(core, Core):
            return Pid(core)
        raise click.BadParameter(f"the PID controller applies only to {', '.join(TASKS)}", param_hint="POLICY")
    path = Path(text)
    if not path.exists():
        raise click.BadParameter(
            f"'{text}' is neither a file or folder nor one of {', '.join(BASELINES)}", param_hint="POLICY"
        )
    return load_best(path) if path.is_dir() else Policy.load(path)


def _task(text: str) -> Any:
    """Return the task that an argument names: the name of a shipped task, or the class in FILE.py:CLASS."""
    if importlib.util.find_spec("gymnasium") is None:
        raise MissingPackage("learning tasks need the 'gymnasium' package: run pip install 'wavesim[learning]'")
    if ":" not in text:
        from wavesim_studies.learning.tasks import TASK_NAMES

        if text not in TASK_NAMES:
            raise ConfigError(
                f"unknown task '{text}'{suggest_name(text, TASK_NAMES)}; for your own task, write FILE.py:CLASS"
            )
        return text
    found = load_object(text, "task")
    if not isinstance(found, type):
        raise ConfigError(f"task '{text}' is not a class")
    return found


def _options(texts: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of a task from NAME=VALUE."""
    found = dict[str, Any]()
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"'{text}' must be NAME=VALUE", param_hint="--option")
        found[name] = _value(value)
    return found


def _core(task: Any, copies: int, options: dict[str, Any]) -> Any:
    """Return copies of a task. Raise ConfigError if the task does not accept the options."""
    from wavesim_studies.learning.custom_core import make_core

    try:
        return make_core(task, copies, **options)
    except TypeError as error:
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        raise ConfigError(f"the task does not accept these options ({given}): {error}") from None


def _value(text: str) -> float | int | str:
    """Convert a string to a number if it represents one; otherwise, return the string."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _algorithm(name: str) -> Any:
    importlib.import_module("wavesim_studies.learning.sb3")  # it reports a missing package
    return getattr(importlib.import_module("stable_baselines3"), name)
