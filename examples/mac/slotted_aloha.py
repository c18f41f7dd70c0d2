"""Slotted ALOHA (Roberts 1975): a node sends a packet at the start of the next slot.

A slot has room for one packet and a guard time. Propagation delay tolerant ALOHA (PDT-ALOHA) uses a guard of a part
``guard`` of the longest delay.
"""

from __future__ import annotations

from mac import SECOND, Node, Protocol, Transmission


class SlottedAloha(Protocol):
    """Slotted ALOHA for packets with ``size`` bytes, without acknowledgements. ``guard`` is relative to the longest
    delay.
    """

    def __init__(self, node: Node, size: int, guard: float = 0.0) -> None:
        super().__init__(node)
        self.slot = node.duration(size) + round(guard * node.longest_delay * SECOND)

    def on_packet(self, asked: int, payload: bytes, to: int) -> list[Transmission]:
        number = -(-max(asked, self.free) // self.slot)
        return [self.transmit(number * self.slot, payload, to)]
