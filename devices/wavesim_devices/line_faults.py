"""Faults on the line between a device and its hosts: lost, garbled, doubled and late bytes, silence and disconnections.

A fault has a kind, a magnitude, and times on the simulation clock, for example ``garbled 0.001 at=60s for=10s
every=120s``. Each direction of each line has its own sequence of random numbers, derived from a seed.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wavesim_sdk import units
from wavesim_sdk.device_faults import (
    BYTE_KINDS,
    DEAF_KINDS,
    LATE,
    RESTARTED,
    STALLED,
    line_fault_amount,
)

_TIMES = {"at": "at", "for": "duration", "every": "every"}


@dataclass(frozen=True)
class LineFault:
    """A fault on the line. Times are simulation times in s."""

    kind: str
    amount: float = 0.0  #: probability that a byte is affected, or the delay in s
    at: float = 0.0
    duration: float = 0.0  #: duration in s; 0 = until the end of the run
    every: float = 0.0  #: interval in s between the starts of a repeated fault; 0 = the fault occurs once

    def is_active(self, time: float) -> bool:
        """Return whether the fault is active at the given time."""
        since = time - self.at + 1e-9
        if since < 0.0:
            return False
        return not self.duration or (since % self.every if self.every else since) < self.duration


def parse_fault(text: str) -> LineFault:
    """Read a fault such as ``silent at=60s for=5s``. Raises ValueError if it is invalid."""
    kind, *words = text.split() or [""]
    amount, values = "", dict[str, float]()
    for word in words:
        key, equals, value = word.rpartition("=")
        if not equals:
            amount = word
            continue
        if key not in _TIMES:
            raise ValueError(f"unknown key '{key}' of fault '{kind}': use at, for or every")
        try:
            values[_TIMES[key]] = units.parse(value, "time")[0]
        except ValueError as error:
            raise ValueError(f"fault '{kind}': {error}") from None
    fault = LineFault(kind, line_fault_amount(kind, amount), **values)
    if kind == RESTARTED and not fault.duration:
        raise ValueError("fault 'restarted' needs the time until the device runs again, such as 'restarted for=3s'")
    if min(fault.at, fault.duration, fault.every) < 0.0 or (fault.every and fault.every <= fault.duration):
        raise ValueError(f"fault '{kind}': times must not be negative, and 'every' must be longer than 'for'")
    if fault.every and not fault.duration:
        raise ValueError(f"fault '{kind}': 'every' needs 'for'")
    return fault


def is_active(faults: Sequence[LineFault], kinds: Sequence[str], time: float) -> bool:
    """Return whether a fault of one of the given kinds is active at the given time."""
    return any(f.kind in kinds and f.is_active(time) for f in faults)


class FaultyLine:
    """One direction of the line between a device and a host. ``deliver`` receives the bytes that arrive, and ``clock``
    returns the simulation time in s. ``step`` must be called at each simulation step.
    """

    def __init__(
        self, deliver: Callable[[bytes], None], faults: Sequence[LineFault], seed: str, clock: Callable[[], float]
    ) -> None:
        self.deliver, self.faults, self.clock, self.affected = deliver, faults, clock, 0
        self._random = random.Random(seed)
        self._held: deque[tuple[float, bytes]] = deque()  # time of arrival, bytes

    def put(self, data: bytes) -> None:
        """Send bytes over the line. An empty byte string closes the connection."""
        now = self.clock()
        delay = 0.0
        if data:
            if is_active(self.faults, DEAF_KINDS, now):
                self.affected += len(data)
                return
            for fault in self.faults:
                if fault.kind in BYTE_KINDS and fault.is_active(now):
                    data = self._disturb(data, fault)
            if not data:
                return
            delay = sum(f.amount for f in self.faults if f.kind == LATE and f.is_active(now))
        self._held.append((now + delay, data))
        self.step()

    def step(self) -> None:
        """Deliver the bytes that have arrived, in the order in which they were sent."""
        now = self.clock()
        while self._held and self._held[0][0] <= now and not is_active(self.faults, (STALLED,), now):
            self.deliver(self._held.popleft()[1])

    def _disturb(self, data: bytes, fault: LineFault) -> bytes:
        hit = [self._random.random() < fault.amount for _ in data]
        self.affected += sum(hit)
        if fault.kind == "lost":
            return bytes(b for b, is_hit in zip(data, hit, strict=True) if not is_hit)
        if fault.kind == "garbled":
            return bytes(b ^ (is_hit << self._random.randrange(8)) for b, is_hit in zip(data, hit, strict=True))
        return bytes(b for b, is_hit in zip(data, hit, strict=True) for _ in range(1 + is_hit))
