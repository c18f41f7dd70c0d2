"""Execution of the cases of the exam in worker processes. The results do not depend on the number of workers."""

from __future__ import annotations

import concurrent.futures
import json
import multiprocessing
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import LogError
from wavesim_studies.exam.facts import write_tables
from wavesim_studies.exam.live import FACTS
from wavesim_studies.exam.run import simulate
from wavesim_studies.exam.scenario import FOLDER, Scenario
from wavesim_studies.exam.scoring import Job, case_result

__all__ = ["export_case", "find_estimates", "run_jobs"]


def run_jobs(
    jobs: Sequence[Job], workers: int, finished: Callable[[Job, list[dict[str, Any]]], object]
) -> list[dict[str, Any]]:
    """Run cases and return their results in the order of the jobs.

    ``finished`` is called after each case with its job and all results so far, so that an interruption loses no case.
    """
    if workers <= 1 or len(jobs) <= 1:
        found: list[dict[str, Any]] = []
        for job in jobs:
            found.append(case_result(job))
            finished(job, found)
        return found
    context = multiprocessing.get_context("spawn")
    results: dict[int, dict[str, Any]] = {}
    with concurrent.futures.ProcessPoolExecutor(min(workers, len(jobs)), context) as pool:
        running = {pool.submit(case_result, job): k for k, job in enumerate(jobs)}
        try:
            for future in concurrent.futures.as_completed(running):
                k = running[future]
                results[k] = future.result()
                finished(jobs[k], [results[i] for i in sorted(results)])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [results[k] for k in range(len(jobs))]


def export_case(scenario: Scenario, level: str, seed: int, folder: Path) -> Path:
    """Simulate a case and write what a program may know to a folder in ``folder``. Return the path of this folder.

    The facts also contain the content hash of the run, because an estimate can only be scored on the same run.
    """
    run = simulate(scenario, level, seed)
    place = folder / run.name
    try:
        write_tables(run.tables, place)
        facts = {**run.facts, "content_hash": run.log.content_hash}
        (place / FACTS).write_text(json.dumps(facts, indent=2) + "\n")
        for file in scenario.files:
            shutil.copyfile(FOLDER / file, place / file)
    except OSError as error:
        raise LogError(f"cannot write to {place}: {error.strerror}") from None
    return place


def find_estimates(folder: Path, scenario: Scenario) -> tuple[dict[tuple[str, int], tuple[Path, ...]], list[Path]]:
    """Return the estimates in a folder of exported cases: for each level and seed, a file for each scored vehicle. Also
    return the folders of the cases that lack an estimate.

    The estimate of a case is in its folder: ``estimate.csv`` or ``estimate.tum`` or, if several vehicles are scored,
    ``estimate-VEHICLE.csv``. Raise LogError if a case belongs to another version of the scenario.
    """
    found, lacking = {}, []
    for facts in sorted(folder.glob(f"{scenario.name}-*/{FACTS}")):
        try:
            known = json.loads(facts.read_text())
            name, level, seed, digest = known["scenario"], str(known["level"]), int(known["seed"]), known["digest"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LogError(f"{facts} is not a file of `wavesim exam export`: {error}") from None
        if name != scenario.name:
            continue
        if digest != scenario.digest or "content_hash" not in known:
            raise LogError(f"{facts} was exported from another version of '{scenario.name}': export it again")
        files = [_estimate_of(facts.parent, v, len(scenario.vehicles) > 1) for v in scenario.vehicles]
        if all(files):
            found[level, seed] = tuple(f for f in files if f is not None)
        else:
            lacking.append(facts.parent)
    return found, lacking


def _estimate_of(folder: Path, vehicle: str, several: bool) -> Path | None:
    stem = f"estimate-{vehicle}" if several else "estimate"
    return next((p for kind in ("csv", "tum") if (p := folder / f"{stem}.{kind}").exists()), None)
