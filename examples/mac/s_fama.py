"""Slotted FAMA (Molins and Stojanovic 2006): a handshake in slots that are as long as the longest delay and a permission.

A node sends a request (RTS) at the start of a slot in which its channel is idle. The other node answers with a permission
(CTS) in the next slot, the data follow in the slot after it, and an acknowledgement (ACK) follows when the data have
arrived. A node that overhears a packet for others stays silent until their exchange has ended. The modem needs carrier
sense (`<transducer carrier_sense="yes">`).
"""

from __future__ import annotations

from mac import SECOND, Heard, Node, SensingProtocol, Transmission

RTS, CTS, DATA, ACK = 1, 2, 3, 4  #: first byte of a packet; in RTS and CTS, the second byte is the size of the data
CONTROL = 2  #: bytes of each packet without data
MOST_DOUBLINGS = 5


class SFama(SensingProtocol):
    """Slotted FAMA. Packets go to one address each, and have at most 255 bytes with the first byte.

    The delays include the time in which a program can react to a reception.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.delay = round(node.longest_delay * SECOND) + node.reaction
        self.slot = self.delay + node.duration(CONTROL)
        self.queue: list[tuple[bytes, int]] = []
        self.silent = 0  #: time until which the node must not start an exchange
        self.attempts, self.draws = 0, 0
        self.expected = 0  #: type of the answer that the node waits for; 0 = none

    def data_slots(self, size: int) -> int:
        """Return the number of slots after which data of ``size`` bytes have arrived everywhere."""
        return -(-(self.node.duration(size) + self.delay) // self.slot)

    def on_packet(self, asked: int, payload: bytes, to: int) -> list[Transmission]:
        self.queue.append((bytes([DATA]) + payload, to))
        if self.timer is None:
            self.timer = self._slot_from(max(asked, self.silent, self.free))
        return []

    def on_timer(self, now: int) -> list[Transmission]:
        if self.expected:  # the answer has not arrived
            self.expected, self.attempts, self.draws = 0, self.attempts + 1, self.draws + 1
            slots = int(2 ** min(self.attempts, MOST_DOUBLINGS) * self.node.draw("back-off", self.draws))
            self.timer = self._slot_from(max(now, self.silent)) + slots * self.slot
        elif now < max(self.silent, self.free) or self.is_busy(now):
            self.timer = self._slot_from(max(now + 1, self.silent, self.free))
        elif self.queue:
            payload, to = self.queue[0]
            self.expected, self.timer = CTS, now + 2 * self.slot
            return [self.transmit(now, bytes([RTS, len(payload)]), to)]
        return []

    def on_reception(self, heard: Heard) -> list[Transmission]:
        kind, size = heard.payload[0], heard.payload[1] if len(heard.payload) > 1 else 0
        start = (heard.end - self.node.duration(len(heard.payload))) // self.slot * self.slot
        following = start + self.slot
        if heard.to != self.node.address:
            self._stay_silent(kind, start, len(heard.payload) if kind == DATA else size)
        elif kind == RTS and not self.expected and following >= max(self.silent, self.free):
            self._stay_silent(CTS, following, size)
            return [self.transmit(following, bytes([CTS, size]), heard.sender)]
        elif kind == CTS and self.expected == CTS:
            payload, to = self.queue[0]
            self.expected, self.timer = ACK, following + (self.data_slots(len(payload)) + 1) * self.slot
            return [self.transmit(following, payload, to)]
        elif kind == DATA:
            at = start + self.data_slots(len(heard.payload)) * self.slot
            return [self.transmit(at, bytes([ACK, 0]), heard.sender)]
        elif kind == ACK and self.expected == ACK:
            self.queue.pop(0)
            self.expected, self.attempts = 0, 0
            self.timer = max(following, self._slot_from(self.silent)) if self.queue else None
        return []

    def _stay_silent(self, kind: int, start: int, size: int) -> None:
        """Stay silent until the exchange of a packet has ended. The packet is of this type; its slot began at ``start``."""
        slots = {RTS: 2, CTS: self.data_slots(size) + 2, DATA: self.data_slots(size) + 1, ACK: 1}[kind]
        self.silent = max(self.silent, start + slots * self.slot)

    def _slot_from(self, at: int) -> int:
        """Return the start of the first slot at or after a time."""
        return -(-at // self.slot) * self.slot
