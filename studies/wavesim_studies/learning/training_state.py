"""State of a training run: its settings, its folder with checkpoints, and its evaluations. This module does not import
a trainer.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.terminal_text import finite_json
from wavesim_studies.learning.evaluation import VALIDATION_SEEDS, evaluate_core

STATE = "training.json"  #: file that describes the state of a training run
BEST = "best.npz"


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training run. Copy ``i`` uses the random numbers of seed + i."""

    samples: int = 1_000_000  #: number of samples: total number of steps of all copies
    seconds: float = float("inf")  #: limit of the wall time of this call in s
    copies: int = 1024  #: number of copies of the task
    seed: int = 1  #: seed of the training
    interval: int = 100_000  #: number of samples between two evaluations, each with a checkpoint
    #: wall time in s after which an evaluation is due, whatever the number of samples
    interval_seconds: float = float("inf")
    episodes: int = 300  #: number of episodes of each evaluation
    checkpoints: int = 2  #: number of checkpoints that are kept
    threads: int = 1  #: number of threads of the task and of PyTorch
    spread: bool = True  #: end the first episodes of the copies at different times

    def __post_init__(self) -> None:
        for name in (
            "samples",
            "seconds",
            "copies",
            "interval",
            "interval_seconds",
            "episodes",
            "checkpoints",
            "threads",
        ):
            if not getattr(self, name) > 0:
                raise ConfigError(f"the setting '{name}' of a training run must be positive, got {getattr(self, name)}")
        if self.seed < 0 or self.seed + self.copies > VALIDATION_SEEDS:
            raise ConfigError(
                f"the seeds of a training run, from {self.seed} to {self.seed + self.copies - 1}, must be from 0 to"
                f" {VALIDATION_SEEDS - 1}; evaluations use the seeds above"
            )


def opened(folder: Path, task: str, resume: bool) -> dict[str, Any]:
    """Return the state of the training run in a folder, or the initial state of a new one. Raise ConfigError if the
    folder is not empty, or if it contains no training run for the task to resume.
    """
    path = folder / STATE
    if not resume:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            kind = (
                "already contains a training run; resume it, or"
                if path.exists()
                else "exists and is not an empty folder;"
            )
            raise ConfigError(f"{folder} {kind} choose another folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WaveSimError(f"cannot create the folder {folder}: {error.strerror}") from None
        return {"task": task, "samples": 0, "seconds": 0.0, "processor_seconds": 0.0, "resumed": 0, "curve": []}
    try:
        state: dict[str, Any] = json.loads(path.read_text())
        found = state["task"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{folder} contains no training run to resume: {error}") from None
    if found != task:
        raise ConfigError(f"{folder} contains a training run for the task {found}, not for {task}; use another folder")
    state["resumed"] += 1
    state["curve"] = [{k: float("nan") if v is None else v for k, v in row.items()} for row in state["curve"]]
    return state


def reserve_seeds(state: dict[str, Any], settings: TrainingSettings) -> int:
    """Return the first seed for the copies of this call, and record in the state that the seeds are used. The episodes
    thus differ from those in earlier calls of the training run. Raise ConfigError if the copies would reach the seeds
    of evaluations.
    """
    first = max(settings.seed, int(state.get("unused_seed", 0)))
    if first + settings.copies > VALIDATION_SEEDS:
        raise ConfigError(
            f"no unused seeds are left for {settings.copies} copies: earlier calls of this training run used the seeds below"
            f" {first}, and evaluations use the seeds from {VALIDATION_SEEDS}; use fewer copies, or start a training run in"
            " another folder"
        )
    state["unused_seed"] = first + settings.copies
    return first


def check_arguments(state: dict[str, Any], arguments: Mapping[str, Any]) -> None:
    """Store the arguments of an algorithm in the state of a new training run. For a resumed run, raise ConfigError if
    they differ from the stored arguments, because the checkpoint determines the arguments.
    """
    # the device does not change the training; an address in memory differs in each process
    given = {k: re.sub(r" at 0x[0-9a-f]+", "", repr(v)) for k, v in arguments.items() if k != "device"}
    if not state["resumed"]:
        state["arguments"] = given
        return
    stored = state.get("arguments", {})
    for name, value in given.items():
        if stored.get(name) != value:
            raise ConfigError(
                f"a resumed training run keeps the arguments of its first call: '{name}' was"
                f" {stored.get(name, 'not given')}, got {value}; omit it, or start a training run in another folder"
            )


class TrainingFolder:
    """The files of a training run. An interrupt never leaves an incomplete file, because each file is written under
    another name and then renamed.
    """

    def __init__(self, path: Path, state: dict[str, Any], checkpoints: int) -> None:
        self.path, self.state, self._kept = path, state, checkpoints

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints, oldest first."""
        return sorted(self.path.glob("checkpoint-*.zip"))

    def last_checkpoint(self) -> Path:
        """Return the newest checkpoint. Raise ConfigError if there is none."""
        found = self.checkpoints()
        if not found:
            raise ConfigError(f"{self.path} contains no checkpoint to resume; start the training run in another folder")
        return found[-1]

    def add_checkpoint(self, save: Callable[[Path], object]) -> None:
        """Write a checkpoint and the state, then remove the checkpoints that are no longer kept."""
        self.replace(f"checkpoint-{self.state['samples']:012d}.zip", save)
        self.write()
        for old in self.checkpoints()[: -self._kept]:
            old.unlink()

    def write(self) -> None:
        """Write the state."""
        text = finite_json(self.state, 1, default=str)
        self.replace(STATE, lambda path: path.write_text(text))

    def replace(self, name: str, save: Callable[[Path], object]) -> None:
        """Write a file of the training run with ``save``. The previous version is replaced only when the new one is
        complete.
        """
        beside = self.path / f"new-{name}"
        try:
            save(beside)
            beside.replace(self.path / name)
        except OSError as error:
            raise WaveSimError(f"cannot write to {self.path / name}: {error.strerror or error}") from None


class Evaluator:
    """Evaluation of policies during training. It uses the same episodes each time, and records which policy is the
    best.
    """

    def __init__(self, core: Any, folder: TrainingFolder) -> None:
        self._core, self._folder = core, folder
        self._start, self._start_processor = time.perf_counter(), time.process_time()
        self._before = folder.state["seconds"], folder.state["processor_seconds"]
        rows = folder.state["curve"]
        self._best = max(((r["success"], r["return"]) for r in rows), default=(-1.0, 0.0))

    def elapsed(self) -> float:
        """Return the wall time in s since the start of this call."""
        return time.perf_counter() - self._start

    def measure(self, policy: Any, samples: int) -> tuple[dict[str, float], bool]:
        """Evaluate a policy and add a row to the curve. Return the row, and whether the policy is the best one so far."""
        found = evaluate_core(self._core, policy, VALIDATION_SEEDS).summary()
        state = self._folder.state
        state["samples"] = samples
        state["seconds"] = self._before[0] + self.elapsed()
        state["processor_seconds"] = self._before[1] + time.process_time() - self._start_processor
        row = {k: state[k] for k in ("samples", "seconds", "processor_seconds")} | found
        state["curve"].append(row)
        score = (row["success"], row["return"])
        better = score > self._best
        self._best = max(score, self._best)
        return row, better
