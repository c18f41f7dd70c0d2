"""Runner of a campaign: it executes the rows that have no final state in the journal, and keeps all other rows."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from wavesim_sdk import termination_signals
from wavesim_sdk.errors import WaveSimError
from wavesim_studies.campaign.executors import Executor, executor
from wavesim_studies.campaign.journal import Journal
from wavesim_studies.campaign.plan import CampaignPlan, PlannedRun, code_version
from wavesim_studies.campaign.run import FAILED, KILLED, OK, STOP


@contextlib.contextmanager
def _exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a campaign, so that only one client runs it."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise WaveSimError(f"cannot write to {folder}: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise WaveSimError(f"another process is running this campaign in {folder}") from None
        yield


def rows_to_run(
    plan: CampaignPlan, journal: Journal, retried_statuses: tuple[str, ...] = ()
) -> list[tuple[PlannedRun, int]]:
    """Return all rows to run, each with the number of earlier attempts in which the process of the run was killed.

    Rows whose status is in ``retried_statuses`` are run again, even if that status is final.
    """
    known, most = journal.states(), plan.campaign.run.attempts
    found = []
    for row in plan.rows:
        status, attempts = known.get(row.key, ("", 0))
        if status in retried_statuses:
            found.append((row, 0))
        elif not status or (status == KILLED and attempts < most):
            found.append((row, attempts))
    return found


def run(
    plan: CampaignPlan,
    *,
    workers: int = 0,
    retried_statuses: tuple[str, ...] = (),
    quiet: bool = False,
    worker_settings: Executor | None = None,
) -> Counter[str]:
    """Run all rows that still have to be run, and return the number of rows in each state. After Ctrl-C, the finished
    rows are kept.
    """
    with _exclusive_lock(plan.folder), Journal(plan.folder, new=True) as journal:
        journal.note("campaign", plan.text)
        journal.note("file", str(plan.path))
        journal.note("code", code_version())
        journal.note(f"files {plan.digest}", json.dumps(plan.files))
        with contextlib.suppress(OSError):
            shutil.copy(plan.path, plan.folder / "campaign.xml")
        todo = {row.number: (row, attempts) for row, attempts in rows_to_run(plan, journal, retried_statuses)}
        if todo:
            _run_rows(plan, journal, todo, workers, quiet, worker_settings)
        states = journal.states()
        return Counter(states[row.key][0] for row in plan.rows if row.key in states)


def _interrupt(_signal: int, _frame: object) -> None:
    for sign in (
        termination_signals.termination_signals()
    ):  # ignore repeated signals: a second one must not interrupt the end of the workers
        signal.signal(sign, signal.SIG_IGN)
    raise KeyboardInterrupt


def _run_rows(
    plan: CampaignPlan,
    journal: Journal,
    todo: dict[int, tuple[PlannedRun, int]],
    workers: int,
    quiet: bool,
    who: Executor | None,
) -> None:
    c = plan.campaign
    before = {s: signal.signal(s, _interrupt) for s in termination_signals.termination_signals()}
    who = who or executor(c.workers, plan.path, plan.folder.parent, workers)
    try:
        for row, _ in todo.values():
            who.submit((row.number, row.key, c.run.timeout))
        bad = 0
        with tqdm(
            total=len(plan.rows),
            initial=len(plan.rows) - len(todo),
            disable=quiet,
            desc=f"campaign {c.name}",
            unit="run",
            mininterval=0.1 if sys.stderr.isatty() else 10.0,
            ascii=None if sys.stderr.isatty() else " -",
        ) as bar:
            for number, outcome in who.results():
                if outcome["status"] == STOP:
                    raise WaveSimError(outcome["reason"])
                row, attempts = todo[number]
                attempts += 1
                todo[number] = row, attempts
                killed = outcome["status"] == KILLED
                if killed and attempts >= c.run.attempts:
                    outcome |= {"status": FAILED, "reason": f"{outcome['reason']}, {attempts} times"}
                journal.record_outcome(row, attempts, outcome)
                if killed and attempts < c.run.attempts:
                    who.submit((row.number, row.key, c.run.timeout))
                    continue
                bad += outcome["status"] != OK
                bar.set_postfix_str(f"{bad} not ok" if bad else "", refresh=False)
                bar.update()
    finally:
        who.close()
        for sign, handler in before.items():
            signal.signal(sign, handler)
