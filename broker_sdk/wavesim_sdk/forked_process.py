"""Processes that begin with all that their parent has imported.

A new interpreter spends a third of a second and more of a processor on imports before it does anything.  A fork begins where its
parent stands; memory that neither of them writes to is there once.  What a parent holds besides (its lock, its sockets, its handlers
of signals, its session) is no business of the child's, which therefore lets go of all of it first, as a new program would.

Only for parents without threads of their own: a lock that another thread held would stay locked in the child for ever.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from subprocess import TimeoutExpired

LOOK_S = 0.01
MAX_DESCRIPTOR = 2**31 - 1
NAME_BYTES = 15  #: of a process' name, as Linux keeps it


class ForkedProcess:
    """A child process, to be watched and ended like a :class:`subprocess.Popen`."""

    def __init__(self, pid: int, name: str) -> None:
        self.pid, self.name = pid, name
        self.returncode: int | None = None  #: exit code, or -signal; None while it runs

    def poll(self) -> int | None:
        """Exit code, or -signal; None while it runs."""
        if self.returncode is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Exit code, or -signal. TimeoutExpired (of :mod:`subprocess`) if it runs for longer, s."""
        limit = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if limit is None else limit - time.monotonic()
            if timeout is not None and left is not None and left <= 0.0:
                raise TimeoutExpired(self.name, timeout)
            try:
                watched = os.pidfd_open(self.pid)
            except OSError:  # no descriptor is left
                time.sleep(LOOK_S)
                continue
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            poll.poll(None if left is None else 1e3 * left)
            os.close(watched)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:  # until then nobody else has its number
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_process(
    name: str, run: Callable[[], object], keep: Iterable[int] = (), output: int | None = None
) -> ForkedProcess:
    """A process, ``name`` in lists of processes (15 bytes), that does ``run`` and ends, in a session of its own: Ctrl-C does not reach it.

    It reads nothing from its standard input, and has of the descriptors only those to ``keep``, standard output and error (both
    go to the descriptor ``output``, if one is given).  What it raises it prints; SystemExit means what it means to Python.
    What was registered with :mod:`atexit` is not done.  OSError if the system has no room for it.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or the child would write it once more
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, signal.valid_signals()
    )  # none finds the parent's handlers in the child
    try:
        pid = os.fork()
        if pid == 0:
            _child(name, run, {*keep}, output, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ForkedProcess(pid, name)


def _child(name: str, run: Callable[[], object], keep: set[int], output: int | None, mask: set[int]) -> None:
    """The child's way; it does not return."""
    code = 1
    try:
        os.setsid()
        _let_go(keep, output)
        with contextlib.suppress(OSError):
            Path("/proc/self/comm").write_text(name[:NAME_BYTES])
        gc.unfreeze()
        gc.freeze()  # what the parent has made stays: looking through it would make pages of their own of shared ones
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        run()
        code = 0
    except SystemExit as end:
        code = _meaning(end.code)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _let_go(keep: set[int], output: int | None) -> None:
    """Of signals' handlers and descriptors that are the parent's."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if output is not None:
        os.dup2(output, 1)
        os.dup2(output, 2)
    kept = sorted({0, 1, 2, *keep, MAX_DESCRIPTOR})
    for below, above in itertools.pairwise(kept):
        os.closerange(below + 1, above)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _meaning(code: object) -> int:
    """The exit code of a SystemExit."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1
