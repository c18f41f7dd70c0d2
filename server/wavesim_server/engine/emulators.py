"""The synchronous emulators: asked at the ticks at which their values are due, and waited for within a time limit."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any, Protocol

import posix_ipc

from wavesim_sdk.shared_memory import DUE, OWNER, OWNER_START, SYNCHRONOUS, SharedMemoryArea, is_process_alive
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.waits import SHARE, Verdict, Waits
from wavesim_server.watchdog import NEVER

STALL_THRESHOLD_S = (
    0.25  #: nothing looked at for longer: the engine itself stood still, and the emulators are not to blame
)
LIVENESS_CHECK_S = 0.02  #: awaited emulators are looked at this often: one of them may have died


class EmulatorSignal(Protocol):
    """How an emulator is asked, and how it says that it has written."""

    def ask(self) -> None:
        """Ask; answers to earlier questions are forgotten."""

    def wait_answer(self, timeout: float = 0.0) -> bool:
        """Whether it has answered, after waiting for at most ``timeout`` seconds."""


class SemaphoreSignal:
    """The bell of an emulator in a process of its own."""

    def __init__(self, due: posix_ipc.Semaphore, done: posix_ipc.Semaphore) -> None:
        self._due, self._done = due, done

    def ask(self) -> None:
        """Ask; a late answer to an earlier question counts for nothing."""
        with contextlib.suppress(posix_ipc.BusyError):
            while self._done.value:
                self._done.acquire(0)
        self._due.release()

    def wait_answer(self, timeout: float = 0.0) -> bool:
        """Whether it has answered."""
        try:
            self._done.acquire(timeout)
        except (posix_ipc.BusyError, posix_ipc.SignalError):
            return False
        return True


class SynchronousEmulators:
    """One for each type of sensor of the run; each serves all instruments of its type."""

    def __init__(
        self,
        vehicles: SharedMemoryArea,
        bells: Mapping[str, EmulatorSignal],
        instruments: InstrumentRegistry,
        time_limit: float,
        budget: float = math.inf,
    ) -> None:
        self.vehicles, self.signals, self.instruments, self.time_limit = vehicles, bells, instruments, time_limit
        self.pending: list[str] = []  #: types whose values of this tick are not written yet
        self.late = 0  #: answers that did not come in time
        self._deadline = self._liveness_check_at = self._polled_at = 0.0
        self._unanswered: dict[str, float] = {}  # in real time: since when
        self.waits = Waits(budget)
        self._since = self._time_s = (
            0.0  # the one that is waited for now: since when; simulation time of the values asked for
        )
        self._freed: list[str] = []  # not waited for any more, and not told yet

    def _synchronous(self) -> list[str]:
        return [s for s in self.signals if self.vehicles[s].header[SYNCHRONOUS] == 1]

    def next_tick(self, tick: int) -> int:
        """The next tick at which one of them is asked."""
        due = (self.instruments.next_due(s, tick) for s in self._synchronous())
        return min((t for t in due if t is not None), default=NEVER)

    def ask(self, tick: int, now: float, wait: bool) -> None:
        """Ask those that are due at a tick; whether they are waited for."""
        due = [s for s in self._synchronous() if self.instruments.is_due(s, tick)]
        for s in due:
            if not wait:
                self._count_overdue(s, now)
            self.vehicles[s].header[DUE] = tick
            self.signals[s].ask()
        self.pending, self._deadline = (due if wait else []), now + self.time_limit
        self._liveness_check_at = now + LIVENESS_CHECK_S
        self._polled_at = self._since = now
        self._time_s = tick * self.instruments.step_ns * 1e-9

    def _count_overdue(self, s: str, now: float) -> None:
        """Nobody waits in real time; but an emulator that answers nothing for the time limit is late there, too."""
        if s not in self._unanswered or self.signals[s].wait_answer():
            self._unanswered[s] = now
        elif now - self._unanswered[s] > self.time_limit:
            self._unanswered[s] = now
            self.late += 1

    def poll(self, now: float) -> bool:
        """Whether all have answered, or are waited for no longer."""
        asleep, self._polled_at = now - self._polled_at, now
        if asleep > STALL_THRESHOLD_S:
            self._deadline += asleep
            self._since += asleep
            self.waits.forgive(asleep)
        while self.pending:
            s = self.pending[0]
            header = self.vehicles[s].header
            if not self.signals[s].wait_answer() and header[SYNCHRONOUS] == 1:
                solvent = now - self._since <= self.waits.left(s, self._time_s)
                if now < self._deadline and solvent and self._is_alive(header, now):
                    return False
                self.late += 1
                header[SYNCHRONOUS] = 0  # free until an emulator asks to be waited for again
            self._charge(self.pending.pop(0), now)
        return True

    def _charge(self, s: str, now: float) -> None:
        """One is waited for no longer: what was waited since the one before it counts. Whose budget is used up is free."""
        if self.waits.charge(s, now - self._since, now, self._time_s):
            header = self.vehicles[s].header
            self.late += int(header[SYNCHRONOUS])
            header[SYNCHRONOUS] = 0
            self._freed.append(s)
        self._since = now

    def verdicts(self, now: float, time_s: float) -> list[Verdict]:
        """Who became slow, who is so no longer, and who is waited for no longer: what there is to tell."""
        found = self.waits.look(now, time_s, {self.pending[0]: self._since} if self.pending else {})
        for s in self._freed:
            text = (
                f"no longer waited for: it kept the simulation waiting for more than {self.waits.budget_s:g} s beyond {SHARE:g} s "
                "for each simulated second (<network lockstep_budget>)"
            )
            found.append(Verdict(s, False, text))
            self.waits.accounts.pop(s, None)
        self._freed.clear()
        return found

    def _is_alive(self, header: Any, now: float) -> bool:
        """Whether an emulator that has not answered yet is still there. Nearly all answer before that is looked at."""
        if now < self._liveness_check_at:
            return True
        self._liveness_check_at = now + LIVENESS_CHECK_S
        return is_process_alive(int(header[OWNER]), int(header[OWNER_START]))

    def wait(self, timeout: float) -> None:
        """Wait until all have answered, or so long. For the last one first: then the others mostly have, and the engine, which wants a
        processor as they do, is woken once."""
        limit = time.monotonic() + timeout
        while self.pending and self.signals[self.pending[-1]].wait_answer(max(limit - time.monotonic(), 0.0)):
            self._charge(self.pending.pop(), time.monotonic())
