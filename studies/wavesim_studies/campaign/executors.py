"""Executors run the rows of a campaign, either in processes on this machine or in dask workers on any machines. The two
executors have the same interface.

Both executors use :class:`~wavesim_studies.campaign.worker.Worker`, a process that can be killed, because dask has no
time limit per task and cannot stop a running task.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import importlib
import logging
import os
import queue
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from wavesim_sdk.errors import WaveSimError
from wavesim_studies.campaign import clusters
from wavesim_studies.campaign.run import KILLED, Outcome, failed_outcome
from wavesim_studies.campaign.schema import WorkersConfig
from wavesim_studies.campaign.worker import Worker

Job = tuple[int, str, float]  #: a job for a worker: row, key of the run, and time limit in s


class Executor(Protocol):
    """Interface that runs jobs and yields their outcomes in any order."""

    count: int

    def submit(self, job: Job) -> None: ...
    def results(self) -> Iterator[tuple[int, Outcome]]: ...
    def close(self) -> None: ...


class LocalExecutor:
    """Worker processes on this machine, each controlled by one thread."""

    def __init__(self, count: int, file: Path, out: Path) -> None:
        self.count = count
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[int, Outcome] | WaveSimError] = queue.SimpleQueue()
        self._open = 0
        self._workers = [Worker(file, out) for _ in range(count)]
        self._threads = [threading.Thread(target=self._serve, args=(w,), daemon=True) for w in self._workers]
        for thread in self._threads:
            thread.start()

    def _serve(self, worker: Worker) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._done.put((job[0], worker.run_row(*job)))
            except WaveSimError as error:
                self._done.put(error)
                return
            except OSError as error:
                self._done.put(WaveSimError(f"cannot start a worker: {error.strerror}"))
                return

    def submit(self, job: Job) -> None:
        self._open += 1
        self._jobs.put(job)

    def results(self) -> Iterator[tuple[int, Outcome]]:
        """Yield outcomes until all jobs are done, including jobs submitted in the meantime."""
        while self._open:
            done = self._done.get()
            if isinstance(done, WaveSimError):
                raise done
            self._open -= 1
            yield done

    def close(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        for worker in self._workers:
            worker.stop()
        for thread, worker in zip(self._threads, self._workers, strict=True):
            thread.join()
            worker.close()


#: worker processes that this dask worker has started: (file, out, thread) -> (client, process)
_here: dict[tuple[str, str, int], tuple[str, Worker]] = {}


def on_dask(row: int, key: str, timeout: float, file: str, out: str, whose: str) -> Outcome:
    """Run a job on a dask worker. Each thread of the dask worker runs its jobs in its own process.

    ``whose`` identifies the client. A process that another client started is terminated, because it has read earlier
    versions of the files.
    """
    place = file, out, threading.get_ident()
    if place in _here and _here[place][0] != whose:
        _here.pop(place)[1].close()
    if place not in _here:
        _here[place] = whose, Worker(Path(file), Path(out))
    return _here[place][1].run_row(row, key, timeout)


def end_processes(whose: str = "") -> None:
    """Terminate the processes of a client, or all processes. This function is called at the end of a campaign on dask
    workers that keep running, and whenever a dask worker exits.
    """
    for place, (client, worker) in list(_here.items()):
        if not whose or client == whose:
            _here.pop(place, None)
            worker.close()


atexit.register(end_processes)


class SchedulerLost(WaveSimError):
    """Raised when the connection to the scheduler is lost during a campaign."""


class DaskExecutor:
    """Dask workers from an existing scheduler, on this machine, on SSH hosts, in a batch system or in Kubernetes."""

    def __init__(self, workers: WorkersConfig, count: int, file: Path, out: Path) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise WaveSimError(
                "dask is not installed; run pip install 'wavesim-studies[dask]', or use <workers kind=\"pool\">"
            ) from None
        self._file, self._out, self._whose = str(file), str(out), uuid.uuid4().hex
        self._cluster: Any = None
        self._address, self._is_lost = "", False
        self._levels: dict[str, int] = {}  # levels that the user's loggers had before
        # dask reports each lost worker in several lines, although it repeats the lost runs
        self._silence("distributed.client")
        try:
            if address := clusters.options_of(workers).get("address"):
                self._address = str(address)
                self._client: Any = clusters.attached(self._address)
                self.count = count or sum(self._client.nthreads().values())
                self._most = count or 4 * self.count  # other clients may use the scheduler as well
            else:
                self.count = count or _cores()
                self._most = 4 * self.count
                self._cluster = clusters.made(workers, self.count)
                self._client = distributed.Client(self._cluster)
        except BaseException:
            self._restore_levels()
            raise
        self._running: Any = distributed.as_completed([], loop=self._client.loop)
        self._rows: dict[str, int] = {}
        self._wait: list[Job] = []

    def submit(self, job: Job) -> None:
        self._wait.append(job)
        self._fill()

    def _fill(self) -> None:
        """Submit a few jobs per worker to dask at a time, and release the future of each finished job."""
        while self._wait and len(self._rows) < self._most:
            job = self._wait.pop(0)
            future = self._client.submit(on_dask, *job, self._file, self._out, self._whose, pure=False, retries=0)
            self._rows[future.key] = job[0]
            self._running.add(future)

    def results(self) -> Iterator[tuple[int, Outcome]]:
        """Yield outcomes until all jobs are done, including jobs submitted in the meantime."""
        while self._rows or self._wait:
            with self._scheduler_answers():
                future = next(self._running)
                row = self._rows.pop(future.key)
                error = None if future.cancelled() else future.exception()
                outcome = (
                    failed_outcome(KILLED, f"the dask worker {_what_happened(error)}", 0.0)
                    if error is not None
                    else future.result()
                )
                self._fill()
            yield row, outcome

    @contextlib.contextmanager
    def _scheduler_answers(self) -> Iterator[None]:
        """Convert the errors of a lost connection to SchedulerLost. Dask reports it in many ways: it cancels all runs, or
        a call raises one of several errors.
        """
        try:
            yield
        except Exception as error:
            expected = isinstance(error, (OSError, concurrent.futures.CancelledError))
            if not expected and self._client.status == "running":
                raise  # the scheduler is there, so that close() can cancel the jobs
            self._is_lost = True
            where = f" at {self._address}" if self._address else ""
            raise SchedulerLost(
                f"the dask scheduler{where} no longer answers ({type(error).__name__}); the finished runs are kept; "
                "run the same command again to execute the rest"
            ) from error

    def close(self) -> None:
        """Cancel all jobs, and terminate every process and cluster that this executor started."""
        # dask warns about each process that does not end within 4 s, and then kills it
        self._silence("distributed", *(n for n in logging.root.manager.loggerDict if n.startswith("distributed.")))
        try:
            self._close()
        finally:
            self._restore_levels()

    def _silence(self, *names: str) -> None:
        """Suppress the messages of loggers until :meth:`close`."""
        for logger in map(logging.getLogger, names):
            self._levels.setdefault(logger.name, logger.level)
            logger.setLevel(logging.CRITICAL)

    def _restore_levels(self) -> None:
        """Restore the previous levels of the loggers, because the process belongs to the user."""
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)

    def _close(self) -> None:
        if not self._is_lost:  # a lost scheduler would block each call for 30 s
            with contextlib.suppress(Exception):  # the cluster may have ended already
                self._client.cancel(list(self._running.futures), force=True)
            with contextlib.suppress(Exception):
                self._client.run(end_processes, self._whose, on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.close(timeout=1 if self._is_lost else 10)
        with contextlib.suppress(Exception):
            if self._cluster is not None:
                self._cluster.close(timeout=10)


def _what_happened(error: BaseException) -> str:
    """Describe the failure of a dask worker, derived from the error of its job."""
    name = type(error).__name__
    return f"was lost: {error}" if name == "KilledWorker" else f"cannot execute the run: {name}: {error}"


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def executor(workers: WorkersConfig, file: Path, out: Path, count: int = 0) -> Executor:
    """Return the executor that a campaign configures, with ``count`` workers (0 = the configured number)."""
    count = count or workers.count
    return (
        LocalExecutor(count or _cores(), file, out)
        if workers.kind == "pool"
        else DaskExecutor(workers, count, file, out)
    )
