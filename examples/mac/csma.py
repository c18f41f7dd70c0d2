"""Non-persistent CSMA (Kleinrock and Tobagi 1975): a node sends a packet only if it finds the channel idle.

Otherwise, the packet waits for a random time, and the node looks at the channel again. The modem needs carrier sense
(`<transducer carrier_sense="yes">`).
"""

from __future__ import annotations

import heapq

from mac import SECOND, Node, SensingProtocol, Transmission

from wavesim_sdk.elementary import log


class Csma(SensingProtocol):
    """Non-persistent CSMA without acknowledgements. ``retry`` is the mean waiting time in s (exponential distribution) of
    a packet that finds the channel busy; 0 = the packet is lost.
    """

    def __init__(self, node: Node, retry: float) -> None:
        super().__init__(node)
        self.retry, self.draws = retry, 0
        self.waiting: list[tuple[int, int, bytes, int]] = []  #: time of the next attempt, number, payload, destination

    def on_packet(self, asked: int, payload: bytes, to: int) -> list[Transmission]:
        return self._attempt(asked, payload, to)

    def on_timer(self, now: int) -> list[Transmission]:
        _, _, payload, to = heapq.heappop(self.waiting)
        return self._attempt(now, payload, to)

    def _attempt(self, now: int, payload: bytes, to: int) -> list[Transmission]:
        is_free = now >= self.free and not self.is_busy(now)
        if not is_free and self.retry > 0.0:
            self.draws += 1
            wait = -log(1.0 - self.node.draw("retry", self.draws)) * self.retry
            heapq.heappush(self.waiting, (now + 1 + round(wait * SECOND), self.draws, payload, to))
        self.timer = self.waiting[0][0] if self.waiting else None
        return [self.transmit(now, payload, to)] if is_free else []
