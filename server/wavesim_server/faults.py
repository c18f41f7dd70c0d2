"""Faults by the clock: when each fault of the configuration begins and ends, in ticks, so that runs repeat.

    schedule = Schedule(loaded, step_ns)
    schedule.next_tick(tick)      # the next tick after this one at which something changes
    for change in schedule.due(tick): ...
    for change in schedule.active("auv", tick): ...    # what a body that comes now finds

A change says what a part of a body suffers from now on.  Where a fault ends while another one of the same part goes on,
the part is repaired and the other one begins anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from wavesim_sdk.config import LoadedConfig
from wavesim_sdk.config.model import FaultConfig

NEVER = sys.maxsize


@dataclass(frozen=True, slots=True)
class Change:
    """What a part suffers from now on; the kind ``none`` ends all that it had."""

    body: str
    part: str  #: an actuator or a sensor
    kind: str
    amount: str  #: as it is written, with its unit; empty = none
    field: str  #: of a sensor; empty = all


@dataclass(frozen=True, slots=True)
class _Planned:
    """A fault in ticks: it acts from ``at`` for ``length``, and again after each ``every`` (0: once)."""

    body: str
    fault: FaultConfig
    at: int
    length: int
    every: int

    def acts(self, tick: int) -> bool:
        since = tick - self.at
        return since >= 0 and (since % self.every if self.every else since) < self.length

    def next(self, tick: int) -> int:
        """The next tick after this one at which it begins or ends."""
        if tick < self.at:
            return self.at
        into = (tick - self.at) % self.every if self.every else tick - self.at
        if into < self.length:
            return NEVER if self.length == NEVER else tick + self.length - into
        return tick + self.every - into if self.every else NEVER

    @property
    def change(self) -> Change:
        f = self.fault
        return Change(self.body, f.part, f.kind, f.amount, f.field)


class Schedule:
    """All faults of a configuration that have a time."""

    def __init__(self, loaded: LoadedConfig, step_ns: int) -> None:
        def ticks(seconds: float) -> int:  # rounded up: nothing begins or ends before its time
            return -(-round(seconds * 1e9) // step_ns)

        self._planned = [
            _Planned(body.name, f, ticks(f.at), max(1, ticks(f.duration)) if f.duration else NEVER, ticks(f.every))
            for body in loaded.config.fleet.bodies
            for f in body.fault
        ]

    def next_tick(self, tick: int) -> int:
        """The next tick after this one at which something changes."""
        return min((p.next(tick) for p in self._planned), default=NEVER)

    def due(self, tick: int) -> Iterator[Change]:
        """What changes at a tick, in the order of bodies and of their faults in the configuration."""
        changed = [p for p in self._planned if p.acts(tick) != (tick > 0 and p.acts(tick - 1))]
        repaired: set[tuple[str, str]] = set()
        for p in changed:
            where = p.body, p.fault.part
            if not p.acts(tick) and where not in repaired:
                repaired.add(where)
                yield Change(*where, "none", "", "")
        for p in self._planned:
            if p.acts(tick) and (p in changed or (p.body, p.fault.part) in repaired):
                yield p.change

    def active(self, body: str, tick: int) -> Iterator[Change]:
        """What a body that comes at this tick suffers from."""
        return (p.change for p in self._planned if p.body == body and p.acts(tick))
