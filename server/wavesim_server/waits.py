"""Measurement of how long each participant keeps the simulation waiting. It shows which participants are slow, and
which have used up their budget.

Each participant whose answer the engine awaits (a lockstep client or a synchronous emulator) can delay all others. For
each participant, the engine may wait :data:`SHARE` wall seconds per simulated second without a charge. Time beyond this
allowance is charged to the participant's account; unused allowance reduces the charge again. This module does not read
a clock; callers pass ``now`` (wall time) and ``time_s`` (simulation time).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

#: wall seconds per simulated second for which the engine may wait for a participant without charging its budget
SHARE = 50.0
WINDOW_S = 5.0  #: wall time between two checks for slow participants
SLOW = 0.5  #: a participant counts as slow if the engine waits for it for more than this fraction of the check period
MOST = 1024  #: maximum number of participants whose accounts are kept


@dataclass
class Account:
    """The waiting account of one participant."""

    time_s: float  #: simulation time of the participant's last answer
    waited_s: float = 0.0  #: total time spent waiting for the participant
    spent_s: float = 0.0  #: waiting time charged to the participant's budget
    window_s: float = 0.0  #: waiting time since the current window began
    slow: bool = False
    last: float = -math.inf  #: wall time of the participant's last answer


@dataclass(frozen=True)
class Verdict:
    """A report that a participant has become slow, or is no longer slow. ``text`` is the notice to publish."""

    name: str
    slow: bool
    text: str


class Waits:
    """Time for which the engine has waited for each participant of a run, by name. A participant that joins again with
    the same name keeps its account.
    """

    def __init__(self, budget_s: float) -> None:
        self.budget_s = budget_s
        self.accounts: dict[str, Account] = {}
        self._began = -math.inf  # wall time at which the window began
        self._began_s = 0.0  # simulation time at which the window began

    def charge(self, name: str, seconds: float, now: float, time_s: float) -> bool:
        """Charge a wait of ``seconds``, which ended at ``now``, to the participant; return whether its budget is used
        up.
        """
        account = self.accounts.get(name) or self._new(name, time_s)
        paid = account.spent_s - SHARE * (time_s - account.time_s)
        account.spent_s = paid + seconds if paid > 0.0 else seconds
        account.time_s, account.last = time_s, now
        account.waited_s += seconds
        window = now - self._began
        account.window_s += seconds if seconds < window else window
        return account.spent_s > self.budget_s

    def _new(self, name: str, time_s: float) -> Account:
        if len(self.accounts) >= MOST:
            del self.accounts[min(self.accounts, key=lambda n: self.accounts[n].last)]
        account = self.accounts[name] = Account(time_s)
        return account

    def left(self, name: str, time_s: float) -> float:
        """Return the remaining wall time for which the engine may wait for a participant."""
        account = self.accounts.get(name)
        if account is None:
            return self.budget_s
        return self.budget_s - max(0.0, account.spent_s - SHARE * max(0.0, time_s - account.time_s))

    @property
    def slow(self) -> list[str]:
        """Names of the slow participants."""
        return sorted(name for name, account in self.accounts.items() if account.slow)

    def look(self, now: float, time_s: float, waiting: Mapping[str, float]) -> list[Verdict]:
        """Return the participants that have become slow, or are no longer slow, since the last check. There is one
        check per window.

        For each participant for which the engine is waiting, ``waiting`` contains the wall time at which the wait
        began.
        """
        if self._began == -math.inf:
            self._began, self._began_s = now, time_s
        elapsed = now - self._began
        if elapsed < WINDOW_S:
            return []
        for name in waiting.keys() - self.accounts.keys():
            self._new(name, time_s)
        passed, found = time_s - self._began_s, []
        for name, account in self.accounts.items():
            waited = account.window_s
            if name in waiting:
                waited += now - max(waiting[name], self._began)
            slow = waited >= SLOW * elapsed and waited >= passed
            if slow != account.slow:
                text = f"the simulation waited {waited:.1f} of the last {elapsed:.1f} s for this participant and advanced by {passed:.3g} s"
                found.append(Verdict(name, slow, f"slow: {text}" if slow else "no longer slow"))
            account.slow, account.window_s = slow, 0.0
        self._began, self._began_s = now, time_s
        return found

    def forgive(self, seconds: float) -> None:
        """Exclude a stall of this process from the waiting times, because the participants are not responsible for it."""
        self._began += seconds
