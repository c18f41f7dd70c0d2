"""The process that executes runs, and the handle that controls it.

If a run hangs or crashes, only its process is affected: the handle kills this process and starts another.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import WaveSimError
from wavesim_studies.campaign.run import KILLED, TIMED_OUT, Outcome, die_with_parent, failed_outcome

START_LIMIT_S = 300.0  #: time limit in s for the startup of a worker, which may have to compile the kernels
STARTS = 5  #: number of consecutive times that a worker process may be killed during startup


class Worker:
    """One worker process for the rows of one campaign."""

    def __init__(self, file: Path, out: Path) -> None:
        self._file, self._out = file, out
        self._process: subprocess.Popen[bytes] | None = None
        self._lock, self._over = threading.Lock(), False

    def run_row(self, row: int, key: str, timeout: float) -> Outcome:
        """Execute a run and return its outcome. A run that exceeds ``timeout`` s is terminated. Raise WaveSimError if
        :meth:`stop` has been called.
        """
        for _ in range(2):  # a process that ended between two runs must not make the next run fail
            there = self._process
            process = there if there is not None and there.poll() is None else self._start()
            try:
                assert process.stdin is not None
                process.stdin.write(json.dumps({"row": row, "key": key}).encode() + b"\n")
                process.stdin.flush()
                break
            except OSError:
                self.close()
        start = time.perf_counter()
        answer = self._line(process, timeout)
        if answer:
            found: Outcome = json.loads(answer)
            return found
        late = time.perf_counter() - start >= timeout
        code = process.poll()
        self.close()
        wall = time.perf_counter() - start
        said = f"stopped after {timeout:g} s" if late else f"the worker process exited with code {code}"
        return failed_outcome(TIMED_OUT if late else KILLED, said, wall)

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a worker process and wait until it is ready. Raise WaveSimError if it exits, or is killed
        repeatedly.
        """
        for _ in range(STARTS):
            process = self._begin()
            if self._line(process, START_LIMIT_S) == b"ready":
                return process
            code = process.poll()
            self.close()
            if code is None or code >= 0:
                break
        raise WaveSimError("cannot start a worker")

    def _begin(self) -> subprocess.Popen[bytes]:
        self.close()
        command = [sys.executable, "-m", "wavesim_studies.campaign.worker", str(self._file), str(self._out)]
        limits = {f"{n}_NUM_THREADS": "1" for n in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
        limits["PYTHONDONTWRITEBYTECODE"] = (
            "1"  # bytecode would also be used for a version of a file that was changed within the same second
        )
        with self._lock:
            if self._over:
                raise WaveSimError("the campaign has ended")
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | limits,
                start_new_session=True,
            )
            self._process = process
        return process

    @staticmethod
    def _line(process: subprocess.Popen[bytes], timeout: float) -> bytes:
        """Read the next line that a process prints. The result is empty if the process exits or the timeout expires."""
        assert process.stdout is not None
        file, said, end = process.stdout.fileno(), b"", time.monotonic() + timeout
        while not said.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0.0 or not select.select([file], [], [], left)[0]:
                return b""
            part = os.read(file, 65536)
            if not part:
                process.wait()
                return b""
            said += part
        return said.strip()

    def stop(self) -> None:
        """End the current run and accept no further runs. This method is called from another thread."""
        with self._lock:
            self._over = True
            process = self._process
        if process is not None:
            self._end(process)

    def close(self) -> None:
        """Terminate the process and everything that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        self._end(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        for sign, limit in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 60.0)):
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, sign)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(limit)


def main() -> None:
    """Run the worker process: read a request line, execute the run, write a response line."""
    die_with_parent()
    from wavesim_server import compiling
    from wavesim_studies.campaign.plan import CampaignPlan
    from wavesim_studies.campaign.run import INVALID, execute_run

    out, asked_by = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0))
    os.dup2(2, 1)  # keep the output of programs apart from our responses
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # keep programs from reading our requests
    plan = CampaignPlan(Path(sys.argv[1]), Path(sys.argv[2]))
    if plan.campaign.run.kind != "function":
        compiling.ensure_compiled(lambda _: None)
    rows = plan.rows
    out.write(b"ready\n")
    out.flush()
    for line in asked_by:
        asked: dict[str, Any] = json.loads(line)
        row = rows[asked["row"]] if asked["row"] < len(rows) else None
        if row is None or row.key != asked["key"]:
            done: Outcome = failed_outcome(INVALID, "the campaign's files have changed since it began", 0.0)
        else:
            done = execute_run(plan, row)
        out.write(json.dumps(done).encode() + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
