"""MACA-U (Ng, Soh and Motani 2008): nodes reserve the channel with a request (RTS) and a permission (CTS).

A node that overhears a request or a permission for others stays silent until their exchange can no longer be disturbed.
A node without an answer waits for a random time, which doubles with each attempt.
"""

from __future__ import annotations

from mac import SECOND, Heard, Node, Protocol, Transmission

RTS, CTS, DATA = 1, 2, 3  #: first byte of a packet; in RTS and CTS, the second byte is the size of the payload
CONTROL = 2  #: bytes of a request or permission
MOST_DOUBLINGS = 5


class MacaU(Protocol):
    """MACA-U without acknowledgements. Packets go to one address each, and have at most 255 bytes with the first byte."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.delay = round(node.longest_delay * SECOND) + node.reaction
        self.queue: list[tuple[bytes, int]] = []
        self.silent = 0  #: time until which the node must not send a request
        self.attempts, self.draws = 0, 0
        self.expected_until: int | None = None  #: time until which a permission may arrive

    def on_packet(self, asked: int, payload: bytes, to: int) -> list[Transmission]:
        self.queue.append((bytes([DATA]) + payload, to))
        if self.timer is None:
            self.timer = max(asked, self.silent, self.free)
        return []

    def on_timer(self, now: int) -> list[Transmission]:
        if not self.queue:
            return []
        if self.expected_until is not None:  # there was no permission
            self.expected_until = None
            self.attempts += 1
            self.timer = max(now, self.silent) + self._backoff()
            return []
        if now < max(self.silent, self.free):
            self.timer = max(self.silent, self.free)
            return []
        payload, to = self.queue[0]
        request = self.transmit(now, bytes([RTS, len(payload)]), to)
        self.expected_until = self.timer = self.free + 2 * self.delay + self.node.duration(CONTROL) + self.node.reaction
        return [request]

    def on_reception(self, heard: Heard) -> list[Transmission]:
        kind, size = heard.payload[0], heard.payload[1] if len(heard.payload) > 1 else 0
        mine, at = heard.to == self.node.address, heard.end + self.node.reaction
        if kind == RTS and mine and self.expected_until is None and at >= max(self.silent, self.free):
            answer = self.transmit(at, bytes([CTS, size]), heard.sender)
            self._stay_silent(self.free + 2 * self.delay + self.node.duration(size))
            return [answer]
        if kind == CTS and mine and self.expected_until is not None and at >= self.free:
            payload, to = self.queue.pop(0)
            self.expected_until, self.timer, self.attempts = None, None, 0
            data = self.transmit(at, payload, to)
            if self.queue:
                self.timer = max(self.free, self.silent) + self._backoff()
            return [data]
        if kind == RTS and not mine:
            self._stay_silent(heard.end + 2 * self.delay + self.node.duration(CONTROL))
        if kind == CTS and not mine:
            self._stay_silent(heard.end + 2 * self.delay + self.node.duration(size))
        return []

    def _stay_silent(self, until: int) -> None:
        self.silent = max(self.silent, until)

    def _backoff(self) -> int:
        """Return a random waiting time."""
        slot = self.delay + self.node.duration(CONTROL)
        self.draws += 1
        return round(slot * 2.0 ** min(self.attempts, MOST_DOUBLINGS) * self.node.draw("back-off", self.draws))
