"""Signals of SeaTrac beacons in the water.

The transducer of the addressed beacon replies to each request automatically, so ranges do not depend on how fast the
beacons' programs run. The content of an answer follows this reply in a separate packet.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from wavesim_devices.seatrac.messages import MAX_BEACON, MessageType

OVERHEAD_S = 0.4  #: duration in s of a packet without data (assumed)
BYTE_S = 0.08  #: duration of a data byte in s
#: pause in s between the reply and the content of an answer; it is longer than the transducer takes to recharge
GAP_S = 0.06
_HEADER = struct.Struct(">2s4B")
_MAGIC = b"ST"


class Protocol(IntEnum):
    """Protocol to which the content of a message belongs."""

    PING = 0
    ECHO = 1
    NAV = 2
    DATA = 3


@dataclass(frozen=True)
class AcousticMessage:
    """A packet between two beacons."""

    protocol: Protocol
    kind: MessageType
    source: int
    destination: int  #: identifier of the destination; 0 = all beacons
    content: bytes = b""

    @property
    def is_simple_ping(self) -> bool:
        """Whether the message is a ping whose answer contains no depth. Such a ping needs no payload."""
        return self.protocol is Protocol.PING and self.kind is not MessageType.REQUEST_X

    @property
    def duration(self) -> float:
        """Duration of the packet in s."""
        return OVERHEAD_S + BYTE_S * len(self.content)

    def encode(self) -> bytes:
        """Return the payload of the signal."""
        return _HEADER.pack(_MAGIC, self.protocol, self.kind, self.source, self.destination) + self.content

    @classmethod
    def decode(cls, payload: bytes) -> AcousticMessage | None:
        """Return the message that a payload contains, or None if it comes from a modem of another manufacturer."""
        if len(payload) < _HEADER.size:
            return None
        magic, protocol, kind, source, destination = _HEADER.unpack_from(payload)
        if magic != _MAGIC or protocol not in iter(Protocol) or kind not in iter(MessageType):
            return None
        if not 1 <= source <= MAX_BEACON or destination > MAX_BEACON:
            return None
        return cls(Protocol(protocol), MessageType(kind), source, destination, payload[_HEADER.size :])
