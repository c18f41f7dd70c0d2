"""Pure ALOHA (Abramson 1970): a node sends a packet as soon as its transmitter is free."""

from __future__ import annotations

from mac import Protocol, Transmission


class Aloha(Protocol):
    """Pure ALOHA without acknowledgements."""

    def on_packet(self, asked: int, payload: bytes, to: int) -> list[Transmission]:
        return [self.transmit(max(asked, self.free), payload, to)]
