"""Frames of the S2C modem in the water. A frame is the payload of a packet that the simulated modem sends.

| byte | content |
|---|---|
| 0 | kind |
| 1 | sequence number of the message |
| 2 | identifier of the sending program; 255 = none |
| 3, 4 | burst: number of the fragment, number of fragments |
| 3 to 6 | acknowledgement: turn-around time in us, big endian; 0 = unknown. A piggyback message may follow |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

HEAD_BYTES, BURST_HEAD_BYTES, ACK_HEAD_BYTES = 3, 5, 7
NO_PROCESS = 255


class FrameKind(IntEnum):
    """Kind of a frame."""

    IM_NOACK = 0
    IM_ACK = 1
    IM_FORCE = 2
    IMS = 3
    BURST = 4
    ACKNOWLEDGEMENT = 5


IM_FLAGS = {FrameKind.IM_NOACK: "noack", FrameKind.IM_ACK: "ack", FrameKind.IM_FORCE: "force"}


@dataclass(frozen=True)
class S2cFrame:
    """Frame that carries a message."""

    kind: FrameKind
    sequence: int
    process: int | None = None
    data: bytes = b""
    fragment: int = 0
    fragments: int = 1
    turn_around_us: int = 0

    def pack(self) -> bytes:
        """Return the bytes of the frame."""
        head = bytes([self.kind, self.sequence, NO_PROCESS if self.process is None else self.process])
        if self.kind == FrameKind.BURST:
            head += bytes([self.fragment, self.fragments])
        elif self.kind == FrameKind.ACKNOWLEDGEMENT:
            head += self.turn_around_us.to_bytes(4, "big")
        return head + self.data

    @classmethod
    def unpack(cls, frame: bytes) -> S2cFrame | None:
        """Return the frame that bytes contain, or None if they come from another kind of modem."""
        if len(frame) < HEAD_BYTES or frame[0] > max(FrameKind):
            return None
        kind, process = FrameKind(frame[0]), None if frame[2] == NO_PROCESS else frame[2]
        if kind == FrameKind.BURST:
            if len(frame) < BURST_HEAD_BYTES or not frame[3] < frame[4]:
                return None
            return cls(kind, frame[1], process, frame[5:], frame[3], frame[4])
        if kind == FrameKind.ACKNOWLEDGEMENT:
            if len(frame) < ACK_HEAD_BYTES:
                return None
            return cls(kind, frame[1], process, frame[7:], turn_around_us=int.from_bytes(frame[3:7], "big"))
        return cls(kind, frame[1], process, frame[3:])
