"""Scheduled faults: the start and the end of each configured fault in ticks, so that runs are repeatable.

    schedule = FaultSchedule(loaded, step_ns)
    schedule.next_tick(tick)      # the next tick after this one at which a fault begins or ends
    for change in schedule.changes_at(tick): ...
    for change in schedule.active_faults("auv", tick): ...    # for a body that enters at this tick

A change states the fault that an actuator or sensor has from the tick of the change. When one fault ends while another
fault of the same actuator or sensor continues, the schedule repairs the actuator or sensor and then starts the other
fault again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from wavesim_world.config import LoadedConfig
from wavesim_world.config.model import FaultConfig

NEVER = sys.maxsize


@dataclass(frozen=True, slots=True)
class FaultChange:
    """The fault that an actuator or a sensor has from now on; the kind ``none`` ends all of its faults."""

    body: str
    part: str  #: name of the actuator or sensor
    kind: str
    #: magnitude as in the configuration, with its unit; an empty string means that the fault has no magnitude
    amount: str
    field: str  #: affected field of a sensor; an empty name means all fields


@dataclass(frozen=True, slots=True)
class _ScheduledFault:
    """A fault with its times in ticks. It begins at ``begins_at``, lasts for ``duration``, and recurs every ``period``
    (0 = once).
    """

    body: str
    fault: FaultConfig
    begins_at: int
    duration: int
    period: int

    def is_active(self, tick: int) -> bool:
        since = tick - self.begins_at
        return since >= 0 and (since % self.period if self.period else since) < self.duration

    def next_change(self, tick: int) -> int:
        """Return the next tick after ``tick`` at which the fault begins or ends."""
        if tick < self.begins_at:
            return self.begins_at
        into = (tick - self.begins_at) % self.period if self.period else tick - self.begins_at
        if into < self.duration:
            return NEVER if self.duration == NEVER else tick + self.duration - into
        return tick + self.period - into if self.period else NEVER

    @property
    def change(self) -> FaultChange:
        f = self.fault
        return FaultChange(self.body, f.part, f.kind, f.amount, f.field)


class FaultSchedule:
    """All scheduled faults in a configuration."""

    def __init__(self, loaded: LoadedConfig, step_ns: int) -> None:
        def ticks(seconds: float) -> int:  # rounded up: no change before its time
            return -(-round(seconds * 1e9) // step_ns)

        self._scheduled = [
            _ScheduledFault(
                body.name, f, ticks(f.at), max(1, ticks(f.duration)) if f.duration else NEVER, ticks(f.every)
            )
            for body in loaded.config.fleet.bodies
            for f in body.fault
        ]

    def next_tick(self, tick: int) -> int:
        """Return the next tick after ``tick`` at which any fault begins or ends."""
        return min((p.next_change(tick) for p in self._scheduled), default=NEVER)

    def changes_at(self, tick: int) -> Iterator[FaultChange]:
        """Yield the changes at a tick, in the order of the bodies and of their faults in the configuration."""
        changed = [p for p in self._scheduled if p.is_active(tick) != (tick > 0 and p.is_active(tick - 1))]
        repaired: set[tuple[str, str]] = set()
        for p in changed:
            where = p.body, p.fault.part
            if not p.is_active(tick) and where not in repaired:
                repaired.add(where)
                yield FaultChange(*where, "none", "", "")
        for p in self._scheduled:
            if p.is_active(tick) and (p in changed or (p.body, p.fault.part) in repaired):
                yield p.change

    def active_faults(self, body: str, tick: int) -> Iterator[FaultChange]:
        """Return the faults of a body that is added at this tick."""
        return (p.change for p in self._scheduled if p.body == body and p.is_active(tick))
