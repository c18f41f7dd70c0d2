"""The synchronous emulators. The engine signals them at the ticks at which their values are due, and waits for them
within a time limit.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import posix_ipc

from wavesim_sdk.shared_memory import DUE, OWNER, OWNER_START, SYNCHRONOUS, SharedMemoryArea, is_process_alive
from wavesim_server.instruments import DueTicks, InstrumentRegistry
from wavesim_server.waits import SHARE, Verdict, Waits
from wavesim_server.watchdog import NEVER

#: interval in s between two polls above which the engine itself counts as stalled; the wait is then not charged to the
#: emulators
STALL_THRESHOLD_S = 0.25
LIVENESS_CHECK_S = 0.02  #: interval in s between two checks of whether awaited emulators are still running


class EmulatorSignal(Protocol):
    """The signals to and from one emulator."""

    def ask(self) -> None:
        """Request the values of this tick; earlier answers are discarded."""

    def wait_answer(self, timeout: float = 0.0) -> bool:
        """Return whether the emulator has answered, after waiting for at most ``timeout`` seconds."""


class SemaphoreSignal:
    """The semaphores of an emulator in its own process."""

    def __init__(self, due: posix_ipc.Semaphore, done: posix_ipc.Semaphore) -> None:
        self._due, self._done = due, done

    def ask(self) -> None:
        """Request the values of this tick; a late answer to an earlier request is discarded."""
        with contextlib.suppress(posix_ipc.BusyError):
            while self._done.value:
                self._done.acquire(0)
        self._due.release()

    def wait_answer(self, timeout: float = 0.0) -> bool:
        """Return whether the emulator has answered."""
        try:
            self._done.acquire(timeout)
        except (posix_ipc.BusyError, posix_ipc.SignalError):
            return False
        return True


class Emulators(Protocol):
    """The emulators in a run, as the engine uses them."""

    instruments: InstrumentRegistry
    late: int  #: number of answers that exceeded the time limit

    @property
    def pending(self) -> Sequence[str]:
        """Sensor types whose values for this tick have not yet been written."""

    def next_tick(self, tick: int) -> int:
        """Return the next tick after ``tick`` at which an emulator is due."""

    def ask(self, tick: int, now: float, wait: bool) -> None:
        """Request the values that are due at a tick; ``wait`` states whether the engine waits for them."""

    def poll(self, now: float) -> bool:
        """Return whether all emulators have answered, apart from those for which the engine has stopped waiting."""

    def wait(self, timeout: float) -> None:
        """Wait until all emulators have answered or the timeout has expired."""

    def verdicts(self, now: float, time_s: float) -> list[Verdict]:
        """Return the reports about emulators that became slow, recovered, or used up their budget."""

    def save(self) -> dict[str, Any]:
        """Return the state of the instruments for a snapshot, by sensor type."""

    def restore(self, state: Mapping[str, Any] | None, seed: int) -> None:
        """Restore a state that :meth:`save` returned, or the initial state (None)."""


class SynchronousEmulators:
    """The emulators in a run, one for each sensor type; each emulator serves all instruments of its type."""

    def __init__(
        self,
        vehicles: SharedMemoryArea,
        bells: Mapping[str, EmulatorSignal],
        instruments: InstrumentRegistry,
        time_limit: float,
        budget: float = math.inf,
    ) -> None:
        self.vehicles, self.signals, self.instruments, self.time_limit = vehicles, bells, instruments, time_limit
        self._due = DueTicks(instruments, bells)
        self.pending: list[str] = []  #: sensor types whose values for this tick have not yet been written
        self.late = 0  #: number of answers that exceeded the time limit
        self._deadline = self._liveness_check_at = self._polled_at = 0.0
        self._unanswered: dict[str, float] = {}  # in real time: types without an answer, and since when
        self.waits = Waits(budget)
        self._since = self._time_s = 0.0  # start of the present wait; simulation time of the requested values
        self._freed: list[str] = []  # types that the engine no longer waits for, not yet reported

    def _synchronous(self) -> list[str]:
        return [s for s in self.signals if self.vehicles[s].header[SYNCHRONOUS] == 1]

    def next_tick(self, tick: int) -> int:
        """Return the next tick after ``tick`` at which an emulator is due."""
        due = self._due.after(tick)
        return min((due[s] for s in self._synchronous() if s in due), default=NEVER)

    def ask(self, tick: int, now: float, wait: bool) -> None:
        """Signal the emulators that are due at a tick; ``wait`` states whether the engine waits for them."""
        due = [s for s in self._due.take(tick) if self.vehicles[s].header[SYNCHRONOUS] == 1]
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
        """Count an emulator as late if it exceeds the time limit. Call this only in real time, where the engine does
        not wait for emulators.
        """
        if s not in self._unanswered or self.signals[s].wait_answer():
            self._unanswered[s] = now
        elif now - self._unanswered[s] > self.time_limit:
            self._unanswered[s] = now
            self.late += 1

    def poll(self, now: float) -> bool:
        """Return whether all emulators have answered, apart from those for which the engine has stopped waiting."""
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
                header[SYNCHRONOUS] = 0  # until an emulator requests synchronous service again
            self._charge(self.pending.pop(0), now)
        return True

    def _charge(self, s: str, now: float) -> None:
        """Charge one emulator with the wait since the previous answer; stop waiting for this emulator if its budget is
        used up.
        """
        if self.waits.charge(s, now - self._since, now, self._time_s):
            header = self.vehicles[s].header
            self.late += int(header[SYNCHRONOUS])
            header[SYNCHRONOUS] = 0
            self._freed.append(s)
        self._since = now

    def verdicts(self, now: float, time_s: float) -> list[Verdict]:
        """Return the reports about emulators that became slow, recovered, or used up their budget."""
        found = self.waits.look(now, time_s, {self.pending[0]: self._since} if self.pending else {})
        for s in self._freed:
            text = (
                f"no longer synchronous: its delays beyond {SHARE:g} s per simulated second used up its budget of "
                f"{self.waits.budget_s:g} s (<network lockstep_budget>)"
            )
            found.append(Verdict(s, False, text))
            self.waits.accounts.pop(s, None)
        self._freed.clear()
        return found

    def save(self) -> dict[str, Any]:
        """Return the values of all sensors. An emulator process keeps all other state in hidden columns of its table,
        except values that have not been published yet.
        """
        return {s: {"table": self.vehicles[s].snapshot()[1]} for s in self.instruments.types}

    def restore(self, state: Mapping[str, Any] | None, seed: int) -> None:
        """Write the values of a snapshot, or zeros, to the tables. An emulator process detects this and continues from
        these values.
        """
        for s in self.instruments.types:
            table = self.vehicles[s]
            empty = np.zeros(table.capacity, table.dtype)
            table.publish(empty if state is None else state[s]["table"], 0)
        self.waits.accounts.clear()
        self._unanswered.clear()

    def _is_alive(self, header: Any, now: float) -> bool:
        """Return whether an emulator that has not answered is still running. Most emulators answer before the first
        check.
        """
        if now < self._liveness_check_at:
            return True
        self._liveness_check_at = now + LIVENESS_CHECK_S
        return is_process_alive(int(header[OWNER]), int(header[OWNER_START]))

    def wait(self, timeout: float) -> None:
        """Wait until all emulators have answered or the timeout has expired.

        The engine first waits for the last emulator in the list of pending ones. When this emulator has answered, most
        others have also answered, so the engine usually wakes only once. Whenever it wakes, it competes with the
        emulators for a processor.
        """
        limit = time.monotonic() + timeout
        while self.pending and self.signals[self.pending[-1]].wait_answer(max(limit - time.monotonic(), 0.0)):
            self._charge(self.pending.pop(), time.monotonic())
