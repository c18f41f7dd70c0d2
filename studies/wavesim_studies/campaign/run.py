"""Execution of one campaign run in the current process."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import log as logs
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.campaign.metrics import RunResult
from wavesim_studies.campaign.plan import CampaignPlan, PlannedRun
from wavesim_world.config import LoadedConfig, allow_files, load

#: status of a run; only a run whose process was killed is repeated
OK, FAILED, INVALID, TIMED_OUT, KILLED = "ok", "failed", "invalid", "timed out", "killed"
STOP = (
    "stop"  #: status that ends the whole campaign, because its folder cannot be written; it never appears in the table
)
_PR_SET_PDEATHSIG = 1
TRACK_EVERY = 0.5  #: interval in s between the states that an in-process run records
Outcome = dict[str, Any]  #: outcome of a run with the keys status, reason, metrics, wall, simulated, hash, host, cpu


def folder_of(plan: CampaignPlan, row: PlannedRun) -> Path:
    """Return the folder that contains a run's own configuration and log."""
    return plan.folder / "rows" / f"{row.number:05}"


def execute_run(plan: CampaignPlan, row: PlannedRun, folder: Path | None = None) -> Outcome:
    """Execute one run and measure it. Any exception becomes the run's failure."""
    start = time.perf_counter()
    base = plan.base_configuration  # its relative paths refer to its folder
    with allow_files(*([] if base is None else [base.path.parent])):
        return _execute(plan, row, folder or folder_of(plan, row)) | {"wall": time.perf_counter() - start}


def _execute(plan: CampaignPlan, row: PlannedRun, folder: Path) -> Outcome:
    outcome: Outcome = {"status": OK, "reason": "", "metrics": {}, "simulated": 0.0, "hash": "", "files": plan.digest}
    try:
        result, content = _run(plan, row, folder)
        outcome["hash"] = content
        if isinstance(result, RunResult):
            outcome["simulated"] = result.seconds
            if result.frozen:
                raise WaveSimError(f"the state diverged (NaN or infinity): {', '.join(result.frozen)}")
            outcome["metrics"] = {m.name: _number(m.value(result), m.name) for m in plan.metrics}
        else:
            outcome["metrics"] = {m.name: _number(result.get(m.name), m.name) for m in plan.metrics}
        plan.check_files()
    except ProcessKilled as error:
        outcome |= {"status": KILLED, "reason": str(error)}
    except FolderNotWritable as error:
        outcome |= {"status": STOP, "reason": str(error)}
    except ConfigError as error:
        outcome |= {"status": INVALID, "reason": str(error)}
    except (Exception, SystemExit) as error:  # a user's program may raise anything
        outcome |= {"status": FAILED, "reason": f"{type(error).__name__}: {error}"}
    if plan.success is not None:
        outcome["success"] = outcome["status"] == OK and plan.success(outcome["metrics"])
    return outcome | {"host": platform.node(), "cpu": _cpu()}


def failed_outcome(status: str, reason: str, wall: float) -> Outcome:
    """Return the outcome of a run that produced no result."""
    return {
        "status": status,
        "reason": reason,
        "metrics": {},
        "simulated": 0.0,
        "hash": "",
        "wall": wall,
        "host": platform.node(),
        "cpu": _cpu(),
    }


def _number(value: Any, name: str) -> float | None:
    """Return a metric as a finite number, or None."""
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise WaveSimError(f"metric '{name}' must be a number, got {value!r:.40}") from None
    return number if math.isfinite(number) else None


def _run(plan: CampaignPlan, row: PlannedRun, folder: Path) -> tuple[Any, str]:
    if plan.campaign.run.kind == "function":
        assert plan.program is not None
        returned = plan.program(dict(row.factors), row.seed)
        if not isinstance(returned, dict):
            raise WaveSimError(f"{plan.campaign.run.program} must return a dictionary of metrics, got {returned!r:.40}")
        return returned, hashlib.sha256(repr(sorted(returned.items(), key=repr)).encode()).hexdigest()
    path = folder / "config.xml"
    data = plan.configuration(row, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
    except OSError as error:
        raise FolderNotWritable(f"cannot write to {path}: {error.strerror}") from None
    loaded = load(path)
    return _run_in_lab(plan, loaded) if plan.campaign.run.kind == "lab" else _run_trial(plan, loaded, folder)


def _run_in_lab(plan: CampaignPlan, loaded: LoadedConfig) -> tuple[RunResult, str]:
    from wavesim_server import Lab

    lab, seconds = Lab(loaded), plan.duration
    returned: Any = None
    if plan.program is not None:
        returned = plan.program(lab, seconds)
        if not lab.tracks:
            lab.run(0.0, TRACK_EVERY)
    else:
        lab.run(seconds, TRACK_EVERY)
    sent, receptions = lab.take_signals()
    tracks = {}
    for name in dict.fromkeys(n for _, there, _ in lab.tracks for n in there):
        at = [(t, table[there.index(name)]) for t, there, table in lab.tracks if name in there]
        tracks[name] = np.array([t for t, _ in at]), np.array([s for _, s in at])
    rows = {o.name: row for row, o in lab.occupants.items()}
    touched: dict[str, int] = {}
    for _, k, _, _ in lab.take_meetings():
        if k in lab.occupants:
            touched[lab.occupants[k].name] = touched.get(lab.occupants[k].name, 0) + 1
    state = hashlib.sha256()
    for name, (times, states) in sorted(tracks.items()):
        state.update(name.encode() + times.tobytes() + states.tobytes())
    state.update(sent.tobytes() + receptions.tobytes())
    result = RunResult(
        loaded,
        lab.time_ns * 1e-9,
        rows,
        tracks,
        sent,
        receptions,
        touched,
        tuple(lab.frozen_bodies),
        None,
        returned if isinstance(returned, dict) else {},
    )
    return result, state.hexdigest()


class FolderNotWritable(WaveSimError):
    """Raised when the folder of the campaign cannot be written."""


class ProcessKilled(WaveSimError):
    """Raised when a process of the run was killed. This is a failure of the machine, not of the run."""


def die_with_parent() -> None:
    """Ensure that a new process exits when its parent exits for any reason."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _run_trial(plan: CampaignPlan, loaded: LoadedConfig, folder: Path) -> tuple[RunResult, str]:
    """Run a whole trial, with a server that has a unique name and a free port. The trial runs in this process if all
    participants allow it.
    """
    from wavesim_server.in_process.trial import InProcessTrial, outside_participants

    name, keep = f"campaign-{os.getpid()}", plan.campaign.run.logs
    made, kept = folder / name, folder / "trial"
    shutil.rmtree(kept, ignore_errors=True)  # left by an earlier attempt
    trial = InProcessTrial(loaded, folder, name=name, port=0, quiet=True)
    try:
        if outside_participants(trial):
            _run_in_processes(loaded, folder, name)
        else:
            trial.run(plots=False)
            trial.check()
        log = trial.recorded or logs.read(made / "run.mcap")
        result = RunResult.of_log(loaded, log)
    except WaveSimError as error:
        if keep != "none" and made.exists():
            made.rename(kept)
            error.args = (str(error).replace(str(made.absolute()), str(kept.absolute())),)  # it names output files
        raise
    if keep == "all":
        made.rename(kept)
    else:
        shutil.rmtree(made)
    return result, log.content_hash


def _run_in_processes(loaded: LoadedConfig, folder: Path, name: str) -> None:
    """Run a trial in separate processes. Raise WaveSimError if the trial fails, and ProcessKilled if it was killed."""
    command = [
        sys.executable,
        "-m",
        "wavesim_sdk",
        "trial",
        str(loaded.path),
        "--out",
        str(folder),
        "--name",
        name,
        "--port",
        "0",
        "--quiet",
        "--no-plots",
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    ) as process:
        _, said = process.communicate()
    if process.returncode < 0:
        raise ProcessKilled(f"the trial was killed by signal {-process.returncode}")
    if process.returncode:
        last = said.strip().splitlines()
        raise WaveSimError(f"the trial ended with exit code {process.returncode}: {last[-1] if last else 'no output'}")


@functools.cache
def _cpu() -> str:
    """Return the name of the processor, because rounding, and thus the hash, may differ between processor types."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "")
