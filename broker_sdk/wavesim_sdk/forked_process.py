"""Child processes created by fork. They start with all modules that their parent has imported.

A new interpreter needs at least a third of a second of processor time for imports. A forked process starts with the
imported modules, and shares with its parent all memory to which neither process writes. The child first releases
everything else that it inherits (lock, sockets, signal handlers, session), and therefore behaves like a new program.

The parent must not have other threads, because a lock that another thread holds would stay locked in the child forever.
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
NAME_BYTES = 15  #: maximum length of a process name in Linux


class ForkedProcess:
    """A child process, with the methods of :class:`subprocess.Popen` for waiting and for ending the process."""

    def __init__(self, pid: int, name: str) -> None:
        self.pid, self.name = pid, name
        #: exit code, or minus the signal number if a signal ended the process; None while the process is running
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code (minus the signal number if a signal ended the process), or None while the process is
        running.
        """
        if self.returncode is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process to exit, and return the exit code (minus the signal number if a signal ended the
        process). Raises subprocess.TimeoutExpired after ``timeout`` seconds.
        """
        limit = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if limit is None else limit - time.monotonic()
            if timeout is not None and left is not None and left <= 0.0:
                raise TimeoutExpired(self.name, timeout)
            try:
                watched = os.pidfd_open(self.pid)
            except OSError:  # no file descriptor is free
                time.sleep(LOOK_S)
                continue
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            poll.poll(None if left is None else 1e3 * left)
            os.close(watched)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:  # while it runs, no other process has its PID
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_process(
    name: str, run: Callable[[], object], keep: Iterable[int] = (), output: int | None = None
) -> ForkedProcess:
    """Fork a process that calls ``run`` and then exits. The process has its own session, so that Ctrl-C does not reach
    it.

    ``name`` (at most 15 bytes) appears in process lists. The child has an empty standard input and the descriptors in
    ``keep``. Its standard output and standard error go to the descriptor ``output``, if given. It prints exceptions;
    SystemExit sets the exit code as usual in Python. Functions registered with :mod:`atexit` are not called. Raises
    OSError if the system cannot fork.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # otherwise the child would write it again
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, signal.valid_signals()
    )  # so that no signal reaches the parent's handlers in the child
    try:
        pid = os.fork()
        if pid == 0:
            _child(name, run, {*keep}, output, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ForkedProcess(pid, name)


def _child(name: str, run: Callable[[], object], keep: set[int], output: int | None, mask: set[int]) -> None:
    """Run the child process. This function does not return."""
    code = 1
    try:
        os.setsid()
        _let_go(keep, output)
        with contextlib.suppress(OSError):
            Path("/proc/self/comm").write_text(name[:NAME_BYTES])
        gc.unfreeze()
        gc.freeze()  # keep the parent's objects out of garbage collection, which would write to shared pages and so copy them
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
    """Release the signal handlers and descriptors inherited from the parent."""
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
    """Return the process exit code that corresponds to the code of a SystemExit."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1
