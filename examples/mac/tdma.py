"""Time division multiple access (TDMA): each node sends only in its own slots, which repeat after all nodes had one.

The guard time after each packet equals the longest delay, so packets never collide at any node. The clocks of all nodes
must agree.
"""

from __future__ import annotations

from mac import SECOND, Node, Protocol, Transmission


class Tdma(Protocol):
    """TDMA for packets with ``size`` bytes, one packet per slot."""

    def __init__(self, node: Node, size: int, guard: float = 1.0) -> None:
        super().__init__(node)
        self.slot = node.duration(size) + round(guard * node.longest_delay * SECOND)
        self.cycle, self.first = node.count * self.slot, node.index * self.slot

    def on_packet(self, asked: int, payload: bytes, to: int) -> list[Transmission]:
        number = -(-(max(asked, self.free) - self.first) // self.cycle)
        return [self.transmit(self.first + max(number, 0) * self.cycle, payload, to)]
