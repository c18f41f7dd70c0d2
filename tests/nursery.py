"""Starts our programs as forks of one process that has imported them and loaded the kernels.

Two hundred tests need a server, and two hundred run a command. Starting one costs 1.4 s of processor time, mostly for
imports and kernels that are always the same; a fork has them at once. The fork then does what the command does. A test
that starts a program with its own environment gets a new interpreter. Tests of signals and of the start use one, too.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any

from wavesim_sdk import console, forked_process
from wavesim_sdk.cli import load_commands
from wavesim_server import compiling

CLI = [sys.executable, "-m", "wavesim_sdk"]
MOST_BYTES = 200_000  #: of a request
#: of the test that runs; nobody but pytest reads it
_OWN = ("PYTEST_CURRENT_TEST",)


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in _OWN}


class Nursery:
    """The process that forks, as seen by the tests."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.environment, self._lock = _environment(), threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.nursery", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parent.parent,
                start_new_session=True,
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()

    def ask(self, request: Any, *fds: int) -> Any:
        """The answer to a request. Raises OSError if the nursery cannot do it."""
        data = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._socket, [data], fds)
            answer = json.loads(self._socket.recv(MOST_BYTES))
        if isinstance(answer, dict):
            raise OSError(f"the nursery: {answer['error']}")
        return answer


@functools.cache
def _nursery() -> Nursery:
    return Nursery()


class Program(forked_process.ForkedProcess):
    """A child of the nursery. ``stdout`` and ``stderr`` are pipes, if that was asked for."""

    stdout: IO[str] | None = None
    stderr: IO[str] | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = _nursery().ask({"poll": self.pid})
        return self.returncode


def launch(
    *arguments: str | Path, stdout: int | None = None, stderr: int | None = None
) -> Program | subprocess.Popen[str]:
    """Start ``wavesim ARGUMENTS``; the streams as :class:`subprocess.Popen` has them: None, PIPE or DEVNULL."""
    words = [str(a) for a in arguments]
    if _environment() != _nursery().environment:
        return subprocess.Popen([*CLI, *words], stdout=stdout, stderr=stderr, text=True)
    (out, read_out), (error, read_error) = _stream(stdout, 1), _stream(stderr, 2)
    program = _fork(words, Path.cwd(), out, error)
    program.stdout, program.stderr = read_out, read_error
    return program


def _stream(wanted: int | None, own: int) -> tuple[int, IO[str] | None]:
    """The descriptor to which a program writes, and what reads it if it is a pipe."""
    if wanted == subprocess.PIPE:
        read, write = os.pipe()
        return write, os.fdopen(read)
    return (os.dup(own) if wanted is None else os.open(os.devnull, os.O_WRONLY)), None


def run(*arguments: str | Path, timeout: float, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``wavesim ARGUMENTS`` to its end, as :func:`subprocess.run` does it; ``cwd`` is the folder."""
    words = [str(a) for a in arguments]
    if _environment() != _nursery().environment:
        return subprocess.run([*CLI, *words], capture_output=True, text=True, timeout=timeout, check=False, cwd=cwd)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        program = _fork(words, cwd or Path.cwd(), os.dup(out.fileno()), os.dup(error.fileno()))
        try:
            code = program.wait(timeout)
        finally:
            program.kill()
            program.wait()  # so that nothing of it runs during the next test
        said = [stream.read() for stream in (out, error) if stream.seek(0) == 0]
    return subprocess.CompletedProcess(words, code, *said)


def _fork(words: list[str], folder: Path, out: int, error: int) -> Program:
    """Fork a program that writes to two descriptors, which are closed here."""
    try:
        return Program(_nursery().ask({"run": words, "folder": str(folder.absolute())}, out, error), "wavesim")
    finally:
        os.close(out)
        os.close(error)


def _run(words: list[str], folder: str, out: int, error: int) -> None:
    """What a child does: as the command begins."""
    os.chdir(folder)
    sys.path[0] = folder  # as ``python -m`` sets it
    for fd, stream in ((out, 1), (error, 2)):
        os.dup2(fd, stream)
        os.close(fd)
    sys.argv[:] = ["wavesim", *words]
    try:
        console.main()
    finally:
        atexit._run_exitfuncs()  # a fork ends without them


def _import() -> None:
    """What servers, emulators and commands have in common."""
    load_commands()
    for module in (
        "wavesim_server.serve",
        "wavesim_server.network.process",
        "wavesim_server.engine.process",
        "wavesim_server.trial",
        "wavesim_world.data_files",
    ):
        importlib.import_module(module)
    for entry in entry_points(group="wavesim.emulators"):
        with contextlib.suppress(ImportError):  # an extra that is not there
            entry.load()
    compiling.exercise_all()


def main(ours: socket.socket) -> None:
    """Until the tests close their end."""
    _import()
    children: dict[int, forked_process.ForkedProcess] = {}
    with contextlib.suppress(ConnectionError):  # the tests have been killed
        while True:
            text, fds, flags, _ = socket.recv_fds(ours, MOST_BYTES, 2)
            if not text:
                return
            answer: Any = {"error": f"the request has more than {MOST_BYTES} bytes"}
            if not flags & socket.MSG_TRUNC:
                try:
                    answer = _answer(json.loads(text), fds, children)
                except OSError as refused:  # no process is free
                    answer = {"error": str(refused)}
            for fd in fds:
                os.close(fd)
            ours.send(json.dumps(answer).encode())


def _answer(request: Any, fds: list[int], children: dict[int, forked_process.ForkedProcess]) -> Any:
    """Poll or fork a child."""
    if "poll" in request:
        return children[request["poll"]].poll()
    child = forked_process.fork_process(
        "wavesim", functools.partial(_run, request["run"], request["folder"], *fds), fds
    )
    children[child.pid] = child
    return child.pid


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with contextlib.suppress(KeyboardInterrupt):
        main(socket.socket(fileno=int(sys.argv[1])))
