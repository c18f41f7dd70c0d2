"""Codec for MOOS: messages, and the packets between a MOOSDB and its clients. It uses neither sockets nor a clock.

A client sends :data:`GREETING`, then a packet with its name. The MOOSDB answers with WELCOME or POISON. From then on,
both sides may send packets at any time. All numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from wavesim_bridges.core import MalformedMessage

GREETING = b"ELKS CAN'T DANCE 2/8/10".ljust(32, b"\0")
NOTIFY, REGISTER, NAME, WELCOME, POISON, TIMING = "N", "R", "i", "W", "K", "T"
MOST_BYTES = 1 << 22  #: maximum size of a packet in bytes; a MOOSDB sends much smaller packets
#: packet header: total length, number of messages, and a compression flag that is never set
_PACKET = struct.Struct("<iiB")
_HEAD = struct.Struct("<iicc")  #: message header: total length, message number, message type, and type of the value
_COUNT = struct.Struct("<i")
_NUMBERS = struct.Struct("<ddd")  #: numeric fields in a message: time, value, and second value


@dataclass(frozen=True)
class MoosMessage:
    """MOOS message. ``kind`` is a letter; ``value`` is a number, a string or bytes; ``time`` is MOOS time in s (Unix
    time, scaled by the time warp); ``second`` is an additional number; ``source`` is the sender's name.
    """

    kind: str
    key: str = ""
    value: float | str | bytes = 0.0
    time: float = 0.0
    source: str = ""
    source_aux: str = ""
    community: str = ""
    second: float = 0.0


def _text(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return _COUNT.pack(len(data)) + data


def _message(m: MoosMessage) -> bytes:
    number = m.value if isinstance(m.value, (int, float)) else 0.0
    text = "" if isinstance(m.value, (int, float)) else m.value
    type_ = b"D" if isinstance(m.value, (int, float)) else b"S" if isinstance(m.value, str) else b"B"
    body = b"".join(
        [
            *map(_text, (m.source, m.source_aux, m.community, m.key)),
            _NUMBERS.pack(m.time, number, m.second),
            _text(text),
        ]
    )
    return _HEAD.pack(_HEAD.size + len(body), -1, m.kind.encode("latin-1"), type_) + body


def packed(messages: Iterable[MoosMessage]) -> bytes:
    """Encode a packet."""
    parts = [_message(m) for m in messages]
    return _PACKET.pack(_PACKET.size + sum(map(len, parts)), len(parts), 0) + b"".join(parts)


class _Cursor:
    """Reader of one packet from start to end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise MalformedMessage("truncated")
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self) -> bytes:
        return self.take(_COUNT.unpack(self.take(_COUNT.size))[0])

    def message(self) -> MoosMessage:
        start = self.at
        size, _, kind, type_ = _HEAD.unpack(self.take(_HEAD.size))
        source, aside, community, key = (self.text().decode(errors="replace") for _ in range(4))
        time, number, second = _NUMBERS.unpack(self.take(_NUMBERS.size))
        raw = self.text()
        if self.at - start != size:
            raise MalformedMessage("length of a message")
        value: float | str | bytes
        match type_:
            case b"D":
                value = number
            case b"S":
                value = raw.decode(errors="replace")
            case b"B":
                value = raw
            case _:
                raise MalformedMessage("type of a value")
        return MoosMessage(kind.decode("latin-1"), key, value, time, source, aside, community, second)


def parse_packet(packet: bytes) -> list[MoosMessage]:
    """Decode the messages of one complete packet."""
    cursor = _Cursor(packet)
    size, count, compressed = _PACKET.unpack(cursor.take(_PACKET.size))
    if compressed:
        raise MalformedMessage("compressed")
    if size != len(packet):
        raise MalformedMessage("length of a packet")
    found = []
    while cursor.at < len(packet):
        found.append(cursor.message())
    if len(found) != count:
        raise MalformedMessage("number of messages")
    return found


class MoosReader:
    """Decoder for a byte stream from a MOOSDB."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[MoosMessage]:
        """Return the messages of the packets that are complete. Raise MalformedMessage if the rest of the stream cannot
        be decoded.
        """
        self._buffer += data
        while len(self._buffer) >= _COUNT.size:
            (size,) = _COUNT.unpack_from(self._buffer)
            if not _PACKET.size <= size <= MOST_BYTES:
                raise MalformedMessage("length of a packet")
            if len(self._buffer) < size:
                return
            packet = bytes(self._buffer[:size])
            del self._buffer[:size]
            yield from parse_packet(packet)


class MoosWriter:
    """Encoder for the packets of one client. Each message contains the client's name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def greeting(self, now: float) -> bytes:
        """Encode the first packet of a client that receives asynchronously. ``now`` is Unix time."""
        return GREETING + packed([MoosMessage(NAME, "asynchronous", self.name, now)])

    def packet(self, *said: MoosMessage) -> bytes:
        """Encode messages from this client."""
        return packed(replace(m, source=self.name) for m in said)
