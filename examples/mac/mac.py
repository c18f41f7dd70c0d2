"""Interface of the protocols in this folder. The same object works in a broker program and in a library run.

All times are in nanoseconds on the node's own clock.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk.elementary import log

SECOND = 1_000_000_000
NEVER = 2**62  #: time that never comes, in ns


class Transmission(NamedTuple):
    """A packet that a protocol transmits: its time, payload, and destination address (0 = all)."""

    at: int
    payload: bytes
    to: int


class Heard(NamedTuple):
    """A packet that the modem has received. ``end`` is the time at which its last bit arrived."""

    end: int
    sender: int
    to: int
    payload: bytes


class ChannelChange(NamedTuple):
    """The modem reports that the channel became busy or idle. The modem needs carrier sense for it."""

    at: int
    busy: bool


@dataclass(frozen=True)
class Node:
    """Data that a protocol knows about its node and its network. ``longest_delay`` is the longest travel time in s between
    any two nodes. ``index`` is the number of the node among ``count`` nodes. ``period`` is the interval in s at which the
    node's program runs.
    """

    name: str
    address: int
    seed: int
    index: int
    count: int
    bit_rate: float
    preamble: float
    longest_delay: float
    period: float

    def duration(self, size: int) -> int:
        """Return the duration in ns of a packet with a payload of ``size`` bytes."""
        return round((self.preamble + 8.0 * size / self.bit_rate) * SECOND)

    @property
    def reaction(self) -> int:
        """Time in ns from the end of a reception to the earliest transmission that can answer it: three periods."""
        return round(3.0 * self.period * SECOND)

    @property
    def sensing_delay(self) -> int:
        """Age in ns of the channel state that a decision uses: two periods. A newer state is not always known."""
        return round(2.0 * self.period * SECOND)

    def draw(self, purpose: str, number: int) -> float:
        """Return random number ``number`` of this node, between 0 and 1. It does not depend on other nodes."""
        keys = np.array([randomness.key(self.seed, self.name, purpose)], np.uint64)
        return float(randomness.uniform(keys, number, 0)[0])


class Protocol:
    """A medium access protocol. Each method returns the transmissions that it has decided on.

    The caller invokes :meth:`on_timer` when the node's clock reaches ``timer``.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.free = 0  #: time at which the last planned transmission ends
        self.timer: int | None = None

    def on_packet(self, asked: int, payload: bytes, to: int) -> list[Transmission]:
        """Accept a packet that the node wants to send at the time ``asked``."""
        raise NotImplementedError

    def on_reception(self, heard: Heard) -> list[Transmission]:
        """Process a packet from another node."""
        return []

    def on_channel(self, change: ChannelChange) -> None:
        """Process a change of the channel between busy and idle."""

    def on_timer(self, now: int) -> list[Transmission]:
        """Process the end of the waiting time."""
        return []

    def transmit(self, at: int, payload: bytes, to: int) -> Transmission:
        """Plan a transmission, and mark the transmitter as busy until its end."""
        self.free = at + self.node.duration(len(payload))
        return Transmission(at, payload, to)


class SensingProtocol(Protocol):
    """A protocol that knows whether its channel is busy."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._changes = [ChannelChange(-NEVER, False)]

    def on_channel(self, change: ChannelChange) -> None:
        self._changes.append(change)

    def is_busy(self, at: int) -> bool:
        """Return whether a decision for the time ``at`` considers the channel as busy. Times must not decrease."""
        known = bisect.bisect_right(self._changes, at - self.node.sensing_delay, key=lambda c: c.at) - 1
        del self._changes[:known]  # older changes are not needed any more
        return self._changes[0].busy


class Traffic:
    """Poisson traffic of one node: packets with a fixed size to one address, at a mean rate per second."""

    def __init__(self, node: Node, rate: float, size: int, to: int) -> None:
        self.node, self.rate, self.to = node, rate, to
        self.payload, self.count, self.next = bytes(size), 0, 0
        self._draw_next()

    def _draw_next(self) -> None:
        wait = -log(1.0 - self.node.draw("traffic", self.count)) / self.rate
        self.next += round(wait * SECOND)
        self.count += 1

    def before(self, end: int) -> list[int]:
        """Return the times of all further packets before ``end``."""
        times = []
        while self.next < end:
            times.append(self.next)
            self._draw_next()
        return times


class Station:
    """A node's protocol with its traffic. A program calls :meth:`step` once per period.

    Packets are decided on one period before they leave, so a run does not depend on the delay between the program and
    the simulation.
    """

    def __init__(self, protocol: Protocol, traffic: Traffic | None = None) -> None:
        self.protocol, self.traffic = protocol, traffic
        self.period = round(protocol.node.period * SECOND)
        self.planned: list[Transmission] = []

    def is_due(self, now: int) -> bool:
        """Return whether a step has anything to do even if nothing was heard."""
        at = self.traffic.next if self.traffic else NEVER
        if (timer := self.protocol.timer) is not None and timer < at:
            at = timer
        if self.planned and self.planned[0].at < at:
            at = self.planned[0].at
        return at < now + 2 * self.period

    def step(self, now: int, heard: list[Heard], changes: Sequence[ChannelChange] = ()) -> list[Transmission]:
        """Return the transmissions that leave before ``now`` + 2 periods and have not been returned before.

        ``heard`` contains the packets that have arrived since the last step, and ``changes`` the changes of the channel.
        """
        protocol, end = self.protocol, now + 2 * self.period
        for change in changes:
            protocol.on_channel(change)
        decided = [t for h in sorted(heard) for t in protocol.on_reception(h)]
        if (traffic := self.traffic) is not None:
            for asked in traffic.before(end):
                decided += self._timers(asked)
                decided += protocol.on_packet(asked, traffic.payload, traffic.to)
        decided += self._timers(end)
        for transmission in decided:
            heapq.heappush(self.planned, transmission)
        leaving = []
        while self.planned and self.planned[0].at < end:
            leaving.append(heapq.heappop(self.planned))
        return leaving

    def _timers(self, end: int) -> list[Transmission]:
        found = []
        while (now := self.protocol.timer) is not None and now < end:
            self.protocol.timer = None
            found += self.protocol.on_timer(now)
        return found
