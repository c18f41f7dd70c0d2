"""Threads of on-board programs in the server's process, of which one runs at a time.

A program runs until it waits for the server. Then its thread lets the simulation advance until a program has received something,
and that program continues. With one program, no thread is ever switched. The main thread starts and ends the trial, waits when
nothing is due, shows the progress, and finds programs that hang.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from wavesim_sdk.errors import SessionEnded
from wavesim_sdk.wire.client import Phase, SessionEvent
from wavesim_sdk.wire.local import LocalSession
from wavesim_sdk.wire.messages import Refuse
from wavesim_sdk.wire.session import NotAdmitted, Session
from wavesim_server.in_process.program_context import ProgramContext
from wavesim_server.in_process.server import InProcessServer

__all__ = ["HostedProgram", "ProgramHost"]

LOOK_S = 0.05  #: interval in s at which the main thread checks the programs
LONGEST_WAIT_S = 3600.0  #: maximum time in s of one wait, because a thread cannot wait for an infinite time
STOP_S = 2.0  #: time in s within which programs must end after the end of the trial


class HostedProgram:
    """One program: its thread, its sessions and its exit code."""

    def __init__(self, label: str, run: Callable[[], int], context: ProgramContext, lock: threading.Lock) -> None:
        self.label, self.run, self.context = label, run, context
        self.sessions: list[LocalSession] = []
        self.turn = threading.Condition(lock)  #: notified when this program may run
        self.exit_code: int | None = None  #: None while the program runs
        self.has_begun = False
        self.wants_turn = False  #: whether the time limit of the program's wait has passed
        self.thread: threading.Thread | None = None

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
        self.failure: BaseException | None = None  #: error of the simulation
        self.is_over = False
        self.calls = 0  #: number of times that programs have waited for the server
        self.on_error: Callable[[HostedProgram, BaseException], None] = lambda program, error: None
        self._lock = threading.Lock()
        self._main = threading.Condition(self._lock)
        self._current: HostedProgram | None = None  # None = the main thread
        self._sessions: dict[LocalSession, tuple[Session | None, HostedProgram]] = {}

    # -- the main thread ---------------------------------------------------------------------------

    def add(self, label: str, run: Callable[[], int], context: ProgramContext) -> None:
        """Add a program, which begins when :meth:`drive` lets it run. The function ``run`` returns the program's exit
        code.
        """
        program = HostedProgram(label, run, context, self._lock)
        program.thread = threading.Thread(target=self._run, args=(program,), name=label, daemon=True)
        self.programs.append(program)
        program.thread.start()

    def drive(self, is_done: Callable[[], bool], look: Callable[[], None]) -> None:
        """Run the programs and the simulation until ``is_done`` returns True. Call ``look`` about every 50 ms."""
        with self._lock:
            looked_at = 0.0
            while not is_done():
                if self.failure is not None:
                    raise self.failure
                if time.monotonic() >= looked_at:
                    looked_at = time.monotonic() + LOOK_S
                    look()
                if self._current is not None:
                    self._main.wait(LOOK_S)
                elif not self._advance(None):
                    self._pause(self.server.pause())

    def _pause(self, seconds: float) -> None:
        """Wait in the main thread until a program's thread acts, a datagram arrives, or the time limit has passed."""
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
        """End all programs; return the labels of those that do not end."""
        with self._lock:
            self.is_over = True
            for program in self.programs:
                program.turn.notify_all()
        limit = time.monotonic() + STOP_S
        left = []
        for program in self.programs:
            assert program.thread is not None
            while program.thread.is_alive() and time.monotonic() < limit:
                program.thread.join(0.05)
                if program.thread.is_alive():
                    _interrupt(program.thread)
            if program.thread.is_alive():
                left.append(program.label)
        with self._lock:
            self._switch(None)  # also takes back the modules and output of a program that hangs
        return left

    @property
    def running(self) -> HostedProgram | None:
        """The program whose thread may run now; None = the main thread."""
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
        """Return the program of the present thread. A thread that a program started counts as a thread of the running
        program.
        """
        mine = threading.current_thread()
        program = next((p for p in self.programs if p.thread is mine), self._current)
        if program is None or self.is_over:
            raise SessionEnded("the trial has ended")
        return program

    def request(self, session: LocalSession, number: int, item: Any) -> None:
        """Take a request."""
        with self._lock:
            served, _ = self._sessions[session]
            if served is not None:
                self.server.request(served, number, item)

    def deliver(self, session: LocalSession, message: Any) -> None:
        """Take a message."""
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
        """Let the simulation advance until the session has received something, or until the wall time ``limit``."""
        with self._lock:
            if session not in self._sessions:
                raise SessionEnded("the session has ended")
            program, seen = self._sessions[session][1], session.deliveries
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
            if not has_turn:
                program.wants_turn |= left <= 0.0
                program.turn.wait(min(max(left, LOOK_S), LONGEST_WAIT_S))
            elif program.has_input:  # for another thread of the program, which goes first
                program.turn.wait(LOOK_S)
            else:
                self._advance(program)

    # -- turns -----------------------------------------------------------------------------------

    def _advance(self, mine: HostedProgram | None) -> bool:
        """Run a program that can continue. If there is none, advance the simulation.

        Returns False if there is nothing to do; the main thread then runs.
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
        self._switch(None)
        return False

    def _give_turn(self, first: int) -> bool:
        """Let the next program that can continue run, counted from an index; return whether there is one."""
        for program in (*self.programs[first:], *self.programs[:first]):
            if program.exit_code is None and program.has_input:
                self._switch(program)
                return True
        return False

    def _switch(self, to: HostedProgram | None) -> None:
        """Switch to a program, or to the main thread (None)."""
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

    def _run(self, program: HostedProgram) -> None:
        """Wait until the program may run for the first time, then run it to its end."""
        with self._lock:
            while self._current is not program:
                if self.is_over:
                    program.exit_code = 0
                    return
                program.turn.wait()
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
            self._switch(None)


def _exit_code(exit_: SystemExit) -> int:
    """Return the exit code that Python gives a process for this exception."""
    if exit_.code is None or isinstance(exit_.code, int):
        return exit_.code or 0
    sys.stderr.write(f"{exit_.code}\n")
    return 1


def _interrupt(thread: threading.Thread) -> None:
    """Raise KeyboardInterrupt in a thread as soon as it runs Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt))
