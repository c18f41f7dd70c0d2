"""Who runs the rows: processes of this machine, or dask's workers here and elsewhere, behind one interface.

Each of either is a :class:`~wavesim_studies.campaign.worker.Worker`, a process that can be killed: dask knows no time limit of
a task, and cannot stop one.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import importlib
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.campaign.model import Workers
from wavesim_studies.campaign.run import KILLED, Outcome, nothing
from wavesim_studies.campaign.worker import Worker

Job = tuple[int, str, float]  #: row, key, time limit in s


class Executor(Protocol):
    """Runs jobs; what becomes of them comes in any order."""

    count: int

    def submit(self, job: Job) -> None: ...
    def results(self) -> Iterator[tuple[int, Outcome]]: ...
    def close(self) -> None: ...


class Pool:
    """Processes of this machine, a thread of ours for each."""

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
                self._done.put((job[0], worker.ask(*job)))
            except WaveSimError as error:
                self._done.put(error)
                return
            except OSError as error:
                self._done.put(WaveSimError(f"a worker cannot be started: {error.strerror}"))
                return

    def submit(self, job: Job) -> None:
        self._open += 1
        self._jobs.put(job)

    def results(self) -> Iterator[tuple[int, Outcome]]:
        """Until all is done, also what is submitted meanwhile."""
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


_here: dict[tuple[str, str], Worker] = {}


def on_dask(row: int, key: str, timeout: float, file: str, out: str) -> Outcome:
    """A job on one of dask's workers, by a process of its own."""
    if (file, out) not in _here:
        _here[file, out] = worker = Worker(Path(file), Path(out))
        atexit.register(worker.close)
    return _here[file, out].ask(row, key, timeout)


class Dask:
    """Dask's workers: of this machine, by SSH, of a batch system or of Kubernetes."""

    def __init__(self, workers: Workers, count: int, file: Path, out: Path) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise WaveSimError(
                "dask is not installed; pip install 'wavesim-studies[dask]', or <workers kind=\"pool\">"
            ) from None
        self.count, self._file, self._out = count, str(file), str(out)
        self._cluster = _cluster(workers, count)
        self._client: Any = distributed.Client(self._cluster)
        self._running: Any = distributed.as_completed([], loop=self._client.loop)
        self._rows: dict[str, int] = {}
        self._wait: list[Job] = []

    def submit(self, job: Job) -> None:
        self._wait.append(job)
        self._fill()

    def _fill(self) -> None:
        """A few jobs for each worker are under way; futures are let go as they end."""
        while self._wait and len(self._rows) < 4 * self.count:
            job = self._wait.pop(0)
            future = self._client.submit(on_dask, *job, self._file, self._out, pure=False, retries=0)
            self._rows[future.key] = job[0]
            self._running.add(future)

    def results(self) -> Iterator[tuple[int, Outcome]]:
        """Until all is done, also what is submitted meanwhile."""
        while self._rows or self._wait:
            future = next(self._running)
            row = self._rows.pop(future.key)
            error = future.exception()
            outcome = nothing(KILLED, f"its worker was lost: {error}", 0.0) if error is not None else future.result()
            self._fill()
            yield row, outcome

    def close(self) -> None:
        with contextlib.suppress(Exception):  # a cluster that is gone already
            self._client.close(timeout=10)
        with contextlib.suppress(Exception):
            self._cluster.close(timeout=10)


def _options(text: str) -> dict[str, Any]:
    """NAME=VALUE with ; between: numbers, True, False and None as such, all else as text."""
    options: dict[str, Any] = {}
    for piece in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or not name.isidentifier():
            raise ConfigError(f'<workers options="...">: "{piece}" is not NAME=VALUE')
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    return options


def _cluster(workers: Workers, count: int) -> Any:
    """A cluster of the kind that the campaign asks for. What is heavy, or rare, is an installation of the user's."""
    options = _options(workers.options)
    page = ":0" if workers.dashboard else None
    try:
        if workers.kind == "dask":
            return importlib.import_module("distributed").LocalCluster(
                n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address=page
            )
        if workers.kind == "ssh":
            hosts = workers.hosts.split()
            if not hosts:
                raise ConfigError('<workers kind="ssh"> needs hosts')
            each = {"nthreads": 1, "n_workers": -(-count // len(hosts))}
            distributed = importlib.import_module("distributed")
            return distributed.SSHCluster([hosts[0], *hosts], worker_options=each, **options)
        if workers.kind == "slurm":
            cluster = importlib.import_module("dask_jobqueue").SLURMCluster(cores=1, processes=1, **options)
        else:
            cluster = importlib.import_module("dask_kubernetes.operator").KubeCluster(**options)
        cluster.scale(count)
        return cluster
    except TypeError as error:  # an option that it does not know
        raise ConfigError(f'<workers kind="{workers.kind}">: {error}') from None
    except ImportError as error:
        raise WaveSimError(f'<workers kind="{workers.kind}"> needs the package {error.name}') from None


def executor(workers: Workers, file: Path, out: Path, count: int = 0) -> Executor:
    """What a campaign asks for; ``count`` instead of its own."""
    count = count or workers.count or len(os.sched_getaffinity(0))
    return Pool(count, file, out) if workers.kind == "pool" else Dask(workers, count, file, out)
