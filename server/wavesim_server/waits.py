"""How long each participant keeps the simulation waiting: who is slow, and who has used up its budget.

Everybody whose answer is waited for can stand on everybody's time: a lockstep client, a synchronous emulator. A simulated second
may cost each of them :data:`SHARE` wall seconds of waiting; what is beyond that adds up, and less than that pays it back. Nothing
here reads a clock: ``now`` (wall time) and ``time_s`` (simulation time) are given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

SHARE = 50.0  #: wall time that a simulated second may wait for a participant without touching its budget
WINDOW_S = 5.0  #: of wall time, after which it is looked who is slow
SLOW = 0.5  #: share of that time in which one participant was waited for
MOST = 1024  #: participants that are remembered


@dataclass
class Account:
    """One participant."""

    time_s: float  #: simulation time of its last answer
    waited_s: float = 0.0  #: in all
    spent_s: float = 0.0  #: of its budget
    window_s: float = 0.0  #: since the window began
    slow: bool = False
    last: float = -math.inf  #: wall time of its last answer


@dataclass(frozen=True)
class Verdict:
    """A participant became slow, or is slow no longer. ``text`` says so to people."""

    name: str
    slow: bool
    text: str


class Waits:
    """All participants of a run, by name: who comes back under the same name goes on with the same account."""

    def __init__(self, budget_s: float) -> None:
        self.budget_s = budget_s
        self.accounts: dict[str, Account] = {}
        self._began = -math.inf  # of the window
        self._began_s = 0.0  # the same in simulation time

    def charge(self, name: str, seconds: float, now: float, time_s: float) -> bool:
        """It was waited for so long, until ``now``; whether its budget is used up."""
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
        """Wall time that may still be waited for it now."""
        account = self.accounts.get(name)
        if account is None:
            return self.budget_s
        return self.budget_s - max(0.0, account.spent_s - SHARE * max(0.0, time_s - account.time_s))

    @property
    def slow(self) -> list[str]:
        """Names of those that are slow."""
        return sorted(name for name, account in self.accounts.items() if account.slow)

    def look(self, now: float, time_s: float, waiting: Mapping[str, float]) -> list[Verdict]:
        """Who became slow since the last look, and who is so no longer: once in a window. ``waiting``: those that are waited for, and
        since when."""
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
                text = f"time waited {waited:.1f} of the last {elapsed:.1f} s for its answers and advanced by {passed:.3g} s"
                found.append(Verdict(name, slow, f"slow: {text}" if slow else "no longer slow"))
            account.slow, account.window_s = slow, 0.0
        self._began, self._began_s = now, time_s
        return found

    def forgive(self, seconds: float) -> None:
        """The process itself stood still for so long: that is nobody's waiting."""
        self._began += seconds
