"""On-board programs in the server's process, only one of which runs at a time.

A program runs until it waits for the server. It then lets the simulation advance until any program has received data;
that program then continues. Most programs are greenlets of one thread, because a switch between greenlets takes a
microsecond, whereas a switch between threads takes a hundred times as long. Each program that has threads or an event
loop has its own thread. The main thread starts and ends the trial, waits when nothing is due, shows the progress, and
finds programs that hang.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet

from wavesim_sdk.errors import BrokerError, SessionEnded
from wavesim_sdk.wire.client import Phase, SessionEvent
from wavesim_sdk.wire.local import LocalSession
from wavesim_sdk.wire.messages import Refuse
from wavesim_sdk.wire.session import NotAdmitted, Session
from wavesim_server.in_process.program_context import ProgramContext
from wavesim_server.in_process.server import InProcessServer

__all__ = ["HostedProgram", "ProgramHost"]

LOOK_S = 0.05  #: interval in s at which the main thread checks the programs
LONGEST_WAIT_S = 3600.0  #: maximum time in s for one wait, because a thread cannot wait for an infinite time
STOP_S = 2.0  #: time in s within which programs must end after the end of the trial


class HostedProgram:
    """One program, with its thread, its sessions and its exit code."""

    def __init__(
        self,
        label: str,
        run: Callable[[], int],
        context: ProgramContext,
        turn: threading.Condition,
        shares_thread: bool,
    ) -> None:
        self.label, self.run, self.context, self.shares_thread = label, run, context, shares_thread
        self.sessions: list[LocalSession] = []
        self.turn = turn  #: condition that is notified when this program may run
        self.exit_code: int | None = None  #: exit code of the program; None while it is running
        self.has_begun = False
        self.wants_turn = False  #: whether the time limit of the program's wait has expired
        self.limit = math.inf  #: wall time at which the wait of a greenlet ends
        self.thread = threading.current_thread()  #: thread of the program; a placeholder until the program is added
        self.greenlet: greenlet | None = None  #: greenlet of the program, if it shares a thread and has begun

    @property
    def has_input(self) -> bool:
        """Whether the program can continue."""
        if self.wants_turn or not self.has_begun:
            return True
        for session in self.sessions:  # noqa: SIM110  # a generator would take three times as long, several times per step
            if session.received and session.waiting_threads:
                return True
        return False


class ProgramHost:
    """The programs, and the server that they share with the main thread."""

    def __init__(self, server: InProcessServer, name: str, address: tuple[str, int]) -> None:
        self.server, self.name, self.address = server, name, address
        self.programs: list[HostedProgram] = []
        self.failure: BaseException | None = None  #: error of the simulation, if it failed
        self.is_over = False
        self.calls = 0  #: number of times that programs have waited for the server
        self.on_error: Callable[[HostedProgram, BaseException], None] = lambda program, error: None
        self._earlier_threads = set(threading.enumerate())
        self._lock = threading.Lock()
        self._main = threading.Condition(self._lock)
        self._shared = SharedThread(self, self._lock)
        self._current: HostedProgram | None = None  # None = the main thread
        self._sessions: dict[LocalSession, tuple[Session | None, HostedProgram]] = {}

    # -- the main thread ---------------------------------------------------------------------------

    def add(self, label: str, run: Callable[[], int], context: ProgramContext, *, shares_thread: bool) -> None:
        """Add a program. It begins when :meth:`drive` lets it run. The function ``run`` returns the exit code of the
        program.
        """
        turn = self._shared.turn if shares_thread else threading.Condition(self._lock)
        program = HostedProgram(label, run, context, turn, shares_thread)
        own = threading.Thread(target=self.run, args=(program,), name=label, daemon=True)
        program.thread = self._shared.thread if shares_thread else own
        self.programs.append(program)
        if not program.thread.is_alive():
            program.thread.start()

    def drive(self, is_done: Callable[[], bool], look: Callable[[], None]) -> None:
        """Run the programs and the simulation until ``is_done`` returns True. Call ``look`` about every 50 ms."""
        with self._lock:
            looked_at = 0.0
            while not is_done():
                if self.failure is not None:
                    raise self.failure
                if (now := time.monotonic()) >= looked_at:
                    looked_at = now + LOOK_S
                    for program in self.programs:
                        program.wants_turn |= program.limit <= now
                    look()
                if self._current is not None:
                    self._main.wait(LOOK_S)
                elif not self._advance(None):
                    self._pause(self.server.pause())

    def _pause(self, seconds: float) -> None:
        """Let the main thread wait until a program's thread acts, a datagram arrives, or the time limit expires."""
        before = time.monotonic()
        if self.server.network is None:
            self._main.wait(seconds)
        else:
            self._lock.release()
            try:
                self.server.network.wait(seconds)
            finally:
                self._lock.acquire()
        self.server.idle_s += time.monotonic() - before

    def stop(self) -> list[str]:
        """End all programs and the threads that they have started; return the names of the programs that do not end."""
        with self._lock:
            self.is_over = True
            for program in self.programs:
                program.turn.notify_all()
        limit = time.monotonic() + STOP_S
        ours = {program.thread for program in self.programs}
        for thread in [*ours, *self._find_leaked_threads()]:
            while thread.is_alive() and time.monotonic() < limit:
                thread.join(LOOK_S)
                with self._lock:
                    if self._runs_program(thread):
                        _interrupt(thread)
        with self._lock:
            self.switch(None)  # also takes back the modules and output of a program that hangs
        leaked = [f"thread {thread.name}" for thread in self._find_leaked_threads()]
        return [*(p.label for p in self.programs if p.exit_code is None), *leaked]

    def _find_leaked_threads(self) -> list[threading.Thread]:
        """Return the threads that programs have started and that are still running."""
        known = self._earlier_threads | {program.thread for program in self.programs}
        return [thread for thread in threading.enumerate() if thread not in known]

    def _runs_program(self, thread: threading.Thread) -> bool:
        """Return whether a thread is running a program that has not ended, rather than code of the host."""
        if thread is self._shared.thread and not self._shared.runs_program:
            return False
        mine = [p for p in self.programs if p.thread is thread]
        return any(p.exit_code is None for p in mine) if mine else thread.is_alive()

    @property
    def running(self) -> HostedProgram | None:
        """The program that may run now; None means the main thread."""
        return self._current

    # -- the server of the programs (LocalServer) ----------------------------------------------------

    def join(self, session: LocalSession) -> None:
        """Open the session of a program."""
        with self._lock:
            program = self._program_of_thread()
            served: Session | None = None
            try:
                served = self.server.join(session.join, session)
                session.token = served.token
            except NotAdmitted as refused:
                session.take_message(Refuse(0, int(refused.code), refused.text))
            self._sessions[session] = served, program
            program.sessions.append(session)

    def _program_of_thread(self) -> HostedProgram:
        """Return the program of the current thread. A thread that was started by a program counts as a thread of the
        running program.
        """
        mine = threading.current_thread()
        program = self._current
        if mine is not self._shared.thread:
            program = next((p for p in self.programs if p.thread is mine), program)
        if program is None or self.is_over:
            raise SessionEnded("the trial has ended")
        _check_thread(program)
        return program

    def request(self, session: LocalSession, number: int, item: Any) -> None:
        """Accept a request from a session."""
        with self._lock:
            served, _ = self._sessions[session]
            if served is not None:
                self.server.request(served, number, item)

    def deliver(self, session: LocalSession, message: Any) -> None:
        """Accept a message from a session."""
        with self._lock:
            served, program = self._sessions[session]
            if served is not None:
                self.server.deliver(served, message)
            if session.phase is Phase.CLOSED:
                del self._sessions[session]
                program.sessions.remove(session)
            if self._current is None:
                self._main.notify()

    def take_received(self, session: LocalSession) -> list[SessionEvent]:
        """Return and remove the events that a session has received."""
        with self._lock:
            events, session.received = session.received, []
            if session in self._sessions:
                self._sessions[session][1].turn.notify_all()  # another thread of the program may now go on
            return events

    def wait(self, session: LocalSession, limit: float) -> None:
        """Let the simulation advance until the session has received data, or until the wall time ``limit``."""
        with self._lock:
            if session not in self._sessions:
                raise SessionEnded("the session has ended")
            program, seen = self._sessions[session][1], session.deliveries
            _check_thread(program)
            self.calls += 1
            session.waiting_threads += 1
            try:
                self._wait(session, program, seen, limit)
            finally:
                session.waiting_threads -= 1

    def _wait(self, session: LocalSession, program: HostedProgram, seen: int, limit: float) -> None:
        has_tried = False
        while True:
            if self.is_over:
                raise SessionEnded("the trial has ended")
            has_turn, left = self._current is program, limit - time.monotonic()
            if has_turn and (session.received or session.deliveries != seen or (has_tried and left <= 0.0)):
                program.wants_turn = False
                return
            has_tried = True
            if not has_turn and program.shares_thread:
                program.limit = limit
                self._shared.run_others(self._current)
                program.limit = math.inf
            elif not has_turn:
                program.wants_turn |= left <= 0.0
                program.turn.wait(min(max(left, LOOK_S), LONGEST_WAIT_S))
            elif program.has_input:  # for another thread of the program, which goes first
                program.turn.wait(LOOK_S)
            else:
                self._advance(program)

    # -- turns -----------------------------------------------------------------------------------

    def _advance(self, mine: HostedProgram | None) -> bool:
        """Run a program that can continue. If there is no such program, advance the simulation.

        Returns False if no program can continue and the simulation cannot advance; the main thread then runs.
        """
        first = -1 if mine is None else self.programs.index(mine)
        if self._give_turn(first + 1):
            return True
        try:
            while self.server.advance():
                if self._give_turn(max(first, 0)):  # this program first, which saves a switch of threads
                    return True
                if mine is None:
                    return True
        except BaseException as error:
            self.failure = error
        self.switch(None)
        return False

    def _give_turn(self, first: int) -> bool:
        """Search for the next program that can continue, starting at an index, and let it run. Return whether there is
        such a program.
        """
        for program in (*self.programs[first:], *self.programs[:first]):
            if program.exit_code is None and program.has_input:
                self.switch(program)
                return True
        return False

    def switch(self, to: HostedProgram | None) -> None:
        """Let a program, or the main thread (None), run next."""
        if to is self._current:
            return
        if self._current is not None:
            self._current.context.leave()
        self._current = to
        if to is None:
            self._main.notify()
        else:
            to.context.enter()
            to.turn.notify_all()

    def run(self, program: HostedProgram) -> None:
        """Wait until the program may run for the first time, then run it to its end."""
        with self._lock:
            while self._current is not program and not self.is_over:
                program.turn.wait()
            if self.is_over:
                self._end(program, 0)
                return
            program.has_begun = True
        code = 1
        try:
            code = program.run()
        except SystemExit as exit_:
            code = _exit_code(exit_)
        except BaseException as error:
            if not self.is_over:
                traceback.print_exc()
                self.on_error(program, error)
        finally:
            with self._lock:
                self._end(program, code)

    def _end(self, program: HostedProgram, code: int) -> None:
        for session in program.sessions:  # left open, as by a process that was killed
            served, _ = self._sessions.pop(session)
            if served is not None:
                self.server.end(served)
        program.sessions.clear()
        program.exit_code = code
        if self._current is program:
            self.switch(None)


class SharedThread:
    """The thread that all programs with greenlets share. All calls hold the host's lock, even during a switch between
    greenlets.
    """

    def __init__(self, host: ProgramHost, lock: threading.Lock) -> None:
        self._host, self._lock = host, lock
        self.turn = threading.Condition(lock)  #: condition that is notified when one of the programs may run
        self.thread = threading.Thread(target=self._run, name="programs", daemon=True)
        self.runs_program = False  #: whether a program is running or ending in this thread

    def run_others(self, current: HostedProgram | None) -> None:
        """Switch to another program. A waiting greenlet calls this method.

        If the program ``current`` has a greenlet in this thread, that greenlet runs. Otherwise, the thread sleeps until
        one of its programs may run.
        """
        if current is not None and current.greenlet is not None:
            current.greenlet.switch()
        else:
            self._scheduler.switch()

    def _run(self) -> None:
        """Start each program when its first turn comes. When the trial is over, let each program end."""
        self._scheduler = getcurrent()
        with self._lock:
            while (program := self._next()) is not None:
                if program.greenlet is None:
                    program.greenlet = greenlet(self._begin)
                self.runs_program = True
                try:
                    program.greenlet.switch(program)
                except BaseException as error:
                    self._host.failure = error
                self.runs_program = False

    def _next(self) -> HostedProgram | None:
        """Wait for a program that may run. Return None if all programs have ended and the trial is over."""
        while True:
            current = self._host.running
            if current is not None and current.shares_thread:
                return current
            if self._host.is_over:
                return next((p for p in self._host.programs if p.shares_thread and p.exit_code is None), None)
            self.turn.wait()

    def _begin(self, program: HostedProgram) -> None:
        self._lock.release()
        try:
            self._host.run(program)
        finally:
            self._lock.acquire()


def _check_thread(program: HostedProgram) -> None:
    """Reject a call from a second thread if the program shares its main thread with other programs. The second thread
    would wait forever. Such a program shares a thread because its imports did not reveal that it starts threads.
    """
    if program.shares_thread and threading.current_thread() is not program.thread:
        raise BrokerError(
            f"{program.label} uses a broker in a second thread, but does not import threading: add `import threading` to the "
            "program's file"
        )


def _exit_code(exit_: SystemExit) -> int:
    """Return the code with which a Python process exits after this exception."""
    if exit_.code is None or isinstance(exit_.code, int):
        return exit_.code or 0
    sys.stderr.write(f"{exit_.code}\n")
    return 1


def _interrupt(thread: threading.Thread) -> None:
    """Raise KeyboardInterrupt in a thread as soon as the thread runs Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt))
