"""Packets of Tritech's SeaNet protocol.

A packet consists of ``@``, its length as four hexadecimal digits and again as u16, source and destination node, number
of bytes that follow, message, sequence (80 hex = last packet), node, payload and line feed. The length counts the bytes
from the u16 length to the payload. Numbers are little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

VERSION_DATA, HEAD_DATA, ALIVE, USER_DATA, REBOOT, HEAD_COMMAND = 1, 2, 4, 6, 16, 19
SEND_VERSION, SEND_USER_DATA, SEND_DATA, STOP_ALIVE = 23, 24, 25, 66
HOST, ALL = 255, 255  #: node number of the host, and destination of packets for all nodes
SONAR = 2  #: node number of an imaging sonar
MAX_LENGTH = 512  #: maximum length of a packet from the host
_HEAD = struct.Struct("<HBBBBBB")
_OVERHEAD = 6  #: number of bytes in a packet that its length field does not count
_LAST = 0x80

#: settings of a head command: V3B, HdCtrl, HdType, transmitter constants, range scale, left limit, right limit, ADSpan,
#: ADLow, gain of both channels, slopes, MOTime, step, ADInterval, NBins, MaxADbuf, lockout, axes, Ctl2, ScanZ
SETTINGS = struct.Struct("<BHB18sHHHBBBB4sBBHH10s")
V3B_BYTES = 16  #: length of the V3B block that two-channel heads use


def encode_packet(message: int, payload: bytes = b"", source: int = SONAR, destination: int = HOST) -> bytes:
    """Return a packet. The field for the number of bytes that follow is 0 if this number does not fit in a byte, as in
    a reply with echoes.
    """
    length = _HEAD.size + len(payload)
    count = length - 5 if length - 5 < 256 and message != HEAD_DATA else 0
    node = source if destination == HOST else destination
    head = _HEAD.pack(length, source, destination, count, message, _LAST, node)
    return b"@%04X" % length + head + payload + b"\n"


@dataclass
class PacketReader:
    """Reader that turns received bytes into (message, payload) pairs. It counts malformed packets."""

    buffer: bytearray = field(default_factory=bytearray)
    bad: int = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the packets that have been received completely so far. Packets for other nodes are skipped."""
        self.buffer += data
        found: list[tuple[int, bytes]] = []
        while (start := self.buffer.find(b"@")) >= 0:
            del self.buffer[:start]
            if len(self.buffer) < 7:
                return found
            length = struct.unpack_from("<H", self.buffer, 5)[0]
            if bytes(self.buffer[1:5]).upper() != b"%04X" % length or not _HEAD.size <= length <= MAX_LENGTH:
                self._drop()
                continue
            size = length + _OVERHEAD
            if len(self.buffer) < size:
                return found
            if self.buffer[size - 1] != 0x0A:
                self._drop()
                continue
            _, _, destination, _, message, _, _ = _HEAD.unpack_from(self.buffer, 5)
            if destination in (SONAR, ALL):
                found.append((message, bytes(self.buffer[5 + _HEAD.size : size - 1])))
            del self.buffer[:size]
        self.buffer.clear()
        return found

    def _drop(self) -> None:
        """Count a malformed packet and drop its first byte. The search for the next packet starts after this byte."""
        self.bad += 1
        del self.buffer[:1]
