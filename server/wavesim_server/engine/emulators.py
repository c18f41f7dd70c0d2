"""The synchronous emulators: asked at the ticks at which their values are due, and waited for within a time limit."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any, Protocol

import posix_ipc

from wavesim_sdk.shared_memory import DUE, OWNER, OWNER_START, SYNCHRONOUS, SharedMemoryArea, is_process_alive
from wavesim_server.instruments import Instruments
from wavesim_server.waits import SHARE, Verdict, Waits
from wavesim_server.watchdog import NEVER

ASLEEP_S = 0.25  #: nothing looked at for longer: the engine itself stood still, and the emulators are not to blame
LOOK_S = 0.02  #: awaited emulators are looked at this often: one of them may have died


class Bell(Protocol):
    """How an emulator is asked, and how it says that it has written."""

    def ask(self) -> None:
        """Ask; answers to earlier questions are forgotten."""

    def answered(self, timeout: float = 0.0) -> bool:
        """Whether it has answered, after waiting for at most ``timeout`` seconds."""


class Semaphores:
    """The bell of an emulator in a process of its own."""

    def __init__(self, due: posix_ipc.Semaphore, done: posix_ipc.Semaphore) -> None:
        self._due, self._done = due, done

    def ask(self) -> None:
        """Ask; a late answer to an earlier question counts for nothing."""
        with contextlib.suppress(posix_ipc.BusyError):
            while self._done.value:
                self._done.acquire(0)
        self._due.release()

    def answered(self, timeout: float = 0.0) -> bool:
        """Whether it has answered."""
        try:
            self._done.acquire(timeout)
        except (posix_ipc.BusyError, posix_ipc.SignalError):
            return False
        return True


class Emulators:
    """One for each type of sensor of the run; each serves all instruments of its type."""

    def __init__(
        self,
        vehicles: SharedMemoryArea,
        bells: Mapping[str, Bell],
        instruments: Instruments,
        time_limit: float,
        budget: float = math.inf,
    ) -> None:
        self.vehicles, self.bells, self.instruments, self.time_limit = vehicles, bells, instruments, time_limit
        self.awaited: list[str] = []  #: types whose values of this tick are not written yet
        self.late = 0  #: answers that did not come in time
        self._limit = self._look_at = self._turned_at = 0.0
        self._unanswered: dict[str, float] = {}  # in real time: since when
        self.waits = Waits(budget)
        self._since = self._time_s = (
            0.0  # the one that is waited for now: since when; simulation time of the values asked for
        )
        self._freed: list[str] = []  # not waited for any more, and not told yet

    def _synchronous(self) -> list[str]:
        return [s for s in self.bells if self.vehicles[s].header[SYNCHRONOUS] == 1]

    def next_tick(self, tick: int) -> int:
        """The next tick at which one of them is asked."""
        due = (self.instruments.next_due(s, tick) for s in self._synchronous())
        return min((t for t in due if t is not None), default=NEVER)

    def ask(self, tick: int, now: float, wait: bool) -> None:
        """Ask those that are due at a tick; whether they are waited for."""
        due = [s for s in self._synchronous() if self.instruments.due(s, tick)]
        for s in due:
            if not wait:
                self._overdue(s, now)
            self.vehicles[s].header[DUE] = tick
            self.bells[s].ask()
        self.awaited, self._limit = (due if wait else []), now + self.time_limit
        self._look_at = now + LOOK_S
        self._turned_at = self._since = now
        self._time_s = tick * self.instruments.step_ns * 1e-9

    def _overdue(self, s: str, now: float) -> None:
        """Nobody waits in real time; but an emulator that answers nothing for the time limit is late there, too."""
        if s not in self._unanswered or self.bells[s].answered():
            self._unanswered[s] = now
        elif now - self._unanswered[s] > self.time_limit:
            self._unanswered[s] = now
            self.late += 1

    def turn(self, now: float) -> bool:
        """Whether all have answered, or are waited for no longer."""
        asleep, self._turned_at = now - self._turned_at, now
        if asleep > ASLEEP_S:
            self._limit += asleep
            self._since += asleep
            self.waits.forgive(asleep)
        while self.awaited:
            s = self.awaited[0]
            header = self.vehicles[s].header
            if not self.bells[s].answered() and header[SYNCHRONOUS] == 1:
                solvent = now - self._since <= self.waits.left(s, self._time_s)
                if now < self._limit and solvent and self._lives(header, now):
                    return False
                self.late += 1
                header[SYNCHRONOUS] = 0  # free until an emulator asks to be waited for again
            self._charge(self.awaited.pop(0), now)
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
        found = self.waits.look(now, time_s, {self.awaited[0]: self._since} if self.awaited else {})
        for s in self._freed:
            text = (
                f"no longer waited for: it kept the simulation waiting for more than {self.waits.budget_s:g} s beyond {SHARE:g} s "
                "for each simulated second (<network lockstep_budget>)"
            )
            found.append(Verdict(s, False, text))
            self.waits.accounts.pop(s, None)
        self._freed.clear()
        return found

    def _lives(self, header: Any, now: float) -> bool:
        """Whether an emulator that has not answered yet is still there. Nearly all answer before that is looked at."""
        if now < self._look_at:
            return True
        self._look_at = now + LOOK_S
        return is_process_alive(int(header[OWNER]), int(header[OWNER_START]))

    def sleep(self, timeout: float) -> None:
        """Wait until all have answered, or so long. For the last one first: then the others mostly have, and the engine, which wants a
        processor as they do, is woken once."""
        limit = time.monotonic() + timeout
        while self.awaited and self.bells[self.awaited[-1]].answered(max(limit - time.monotonic(), 0.0)):
            self._charge(self.awaited.pop(), time.monotonic())
