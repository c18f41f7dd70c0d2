"""Codec for MAVLink 2 frames. It uses neither sockets nor a clock."""

from __future__ import annotations

import binascii
import struct
from dataclasses import dataclass
from typing import Any

from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.mavlink_messages import MESSAGES

MAGIC, HEADER, CHECK, SIGNATURE = 0xFD, 10, 2, 13
#: for each type in the standard, the format character of :mod:`struct`
_CODES = {
    "uint8_t": "B",
    "int8_t": "b",
    "uint16_t": "H",
    "int16_t": "h",
    "uint32_t": "I",
    "int32_t": "i",
    "uint64_t": "Q",
    "int64_t": "q",
    "float": "f",
    "char": "s",
}
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _mirrored(crc: int) -> int:
    return _MIRRORED[crc & 0xFF] << 8 | _MIRRORED[crc >> 8]


def x25(data: bytes, crc: int = 0xFFFF) -> int:
    """Return the CRC-16/MCRF4XX that MAVLink uses. The function reverses the order of the bits and uses
    :func:`binascii.crc_hqx`, which has the same polynomial.
    """
    return _mirrored(binascii.crc_hqx(data.translate(_MIRRORED), _mirrored(crc)))


@dataclass(frozen=True)
class _Field:
    name: str
    kind: str
    code: str
    count: int  #: number of elements if the field is an array; 0 if the field is a single value

    @property
    def size(self) -> int:
        """Size in bytes of one element of the field. In a frame, fields are ordered by this size."""
        return struct.calcsize(self.code)


class MessageLayout:
    """Encoding of one message type. The original fields are sorted by size, largest first. Fields that were added to
    the standard later follow the original ones.
    """

    def __init__(self, number: int, name: str, fields: str) -> None:
        self.number, self.name = number, name
        first, _, later = fields.partition("|")
        own = sorted(map(_field, first.split(",")), key=lambda f: -f.size)
        self._fields = own + [_field(f) for f in later.split(",") if f.strip()]
        self._struct = struct.Struct("<" + "".join(f"{f.count or ''}{f.code}" for f in self._fields))
        crc = x25(f"{name} ".encode())
        for f in own:
            crc = x25(f"{f.kind} {f.name} ".encode() + (bytes([f.count]) if f.count else b""), crc)
        self.crc_extra = (crc & 0xFF) ^ (crc >> 8)

    def pack(self, values: dict[str, Any]) -> bytes:
        """Encode the payload. Missing fields become zero."""
        flat: list[Any] = []
        left = dict(values)
        for f in self._fields:
            if f.code == "s":
                flat.append(left.pop(f.name, "").encode()[: f.count])
            elif f.count:
                flat += left.pop(f.name, (0,) * f.count)
            else:
                flat.append(left.pop(f.name, 0))
        if left:
            raise TypeError(f"{self.name} has no field {', '.join(left)}")
        return self._struct.pack(*flat)

    def unpack(self, payload: bytes) -> dict[str, Any]:
        """Decode the fields. Senders truncate trailing zeros, and newer senders may append fields."""
        flat = iter(self._struct.unpack(payload.ljust(self._struct.size, b"\0")[: self._struct.size]))
        found: dict[str, Any] = {}
        for f in self._fields:
            if f.code == "s":
                found[f.name] = next(flat).split(b"\0")[0].decode("ascii", "replace")
            else:
                found[f.name] = tuple(next(flat) for _ in range(f.count)) if f.count else next(flat)
        return found


def _field(text: str) -> _Field:
    kind, name = text.split()
    base, _, count = kind.rstrip("]").partition("[")
    return _Field(name, base, _CODES[base], int(count or 0))


LAYOUTS = {number: MessageLayout(number, *text.split(":")) for number, text in MESSAGES.items()}
NUMBERS = {layout.name: layout.number for layout in LAYOUTS.values()}


@dataclass(frozen=True)
class MavlinkMessage:
    """Received message. ``fields`` maps the field names of the standard to values."""

    name: str
    system: int
    component: int
    fields: dict[str, Any]


class MavlinkWriter:
    """Encoder for the frames of one sender."""

    def __init__(self, system: int, component: int) -> None:
        self.system, self.component = system, component
        self._sequence = 0

    def frame(self, name: str, **values: Any) -> bytes:
        """Encode a message for sending."""
        layout = LAYOUTS[NUMBERS[name]]
        payload = layout.pack(values)
        payload = payload.rstrip(b"\0") or payload[:1]
        head = bytes([len(payload), 0, 0, self._sequence, self.system, self.component]) + layout.number.to_bytes(
            3, "little"
        )
        self._sequence = (self._sequence + 1) & 0xFF
        return bytes([MAGIC]) + head + payload + x25(head + payload + bytes([layout.crc_extra])).to_bytes(2, "little")


def read(data: bytes) -> tuple[list[MavlinkMessage], list[str]]:
    """Decode the messages in a datagram. Also return, for each unusable part of the datagram, the reason. Skip messages
    of undeclared types.
    """
    found: list[MavlinkMessage] = []
    at = 0
    while at < len(data):
        try:
            message, at = _one(data, at)
        except MalformedMessage as unusable:
            return found, [str(unusable)]
        if message is not None:
            found.append(message)
    return found, []


class MavlinkStream:
    """Decoder for a byte stream that arrives in pieces. After invalid bytes, it resynchronises at the start of the next
    frame.
    """

    def __init__(self) -> None:
        self._left = b""

    def feed(self, data: bytes) -> tuple[list[MavlinkMessage], list[str]]:
        """Add bytes to the stream. Return the messages that they complete, and the reasons why any bytes are
        unusable.
        """
        found: list[MavlinkMessage] = []
        faults: list[str] = []
        data, at = self._left + data, 0
        while at < len(data):
            start = data.find(MAGIC, at)
            if start != at:
                faults.append("magic")
            if start < 0:
                at = len(data)
                break
            at = start
            whole = len(data) >= at + HEADER and len(data) >= at + HEADER + data[at + 1] + CHECK + SIGNATURE * (
                data[at + 2] & 1
            )
            if not whole:
                break
            try:
                message, at = _one(data, at)
            except MalformedMessage as unusable:
                faults.append(str(unusable))
                at += 1
                continue
            if message is not None:
                found.append(message)
        self._left = data[at:]
        return found, faults


def _one(data: bytes, at: int) -> tuple[MavlinkMessage | None, int]:
    if data[at] != MAGIC:
        raise MalformedMessage("MAVLink 1" if data[at] == 0xFE else "magic")
    if len(data) < at + HEADER + CHECK:
        raise MalformedMessage("size")
    length, incompatible, _, _, system, component = data[at + 1 : at + 7]
    end = at + HEADER + length + CHECK
    if incompatible & ~1:
        raise MalformedMessage("flags")
    if len(data) < end + SIGNATURE * incompatible:
        raise MalformedMessage("size")
    after = end + SIGNATURE * incompatible
    layout = LAYOUTS.get(int.from_bytes(data[at + 7 : at + 10], "little"))
    if layout is None:
        return None, after
    if x25(data[at + 1 : end - CHECK] + bytes([layout.crc_extra])) != int.from_bytes(data[end - CHECK : end], "little"):
        raise MalformedMessage("checksum")
    return MavlinkMessage(layout.name, system, component, layout.unpack(data[at + HEADER : end - CHECK])), after
