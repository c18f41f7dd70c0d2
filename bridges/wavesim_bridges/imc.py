"""IMC, the language of DUNE and Neptus: packets, and the messages that are of use here, each declared once.

A packet is a header of 20 bytes, the message's fields one after the other, and a CRC-16/ARC of both. Its first two bytes tell the
byte order. Layouts of fields are those of :mod:`struct`, and besides ``s``, a text behind its length, and ``l``, a list of other
messages, of which only the empty one is known here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

SYNC = 0xFE54
EVERYBODY = 0xFFFF
UNKNOWN_ENTITY = 255
_HEADER, _CRC = "HHHdHBHB", "H"
HEADER_SIZE, CRC_SIZE = struct.calcsize("<" + _HEADER), struct.calcsize("<" + _CRC)
_M = TypeVar("_M", bound="type[Message]")


class Unusable(Exception):
    """A datagram that is no packet with a message of ours; the text is the reason."""


class Message:
    """The fields of a message, in order."""

    ID: ClassVar[int]
    LAYOUT: ClassVar[str]


MESSAGES: dict[int, type[Message]] = {}


def _message(number: int, layout: str = "") -> Callable[[_M], _M]:
    def note(kind: _M) -> _M:
        kind.ID, kind.LAYOUT = number, layout.replace(" ", "")
        MESSAGES[number] = kind
        return kind

    return note


@_message(50, "ddf fff fff fff fff fff")
@dataclass(frozen=True)
class SimulatedState(Message):
    """Origin (rad, m); north, east, down of it (m); roll, pitch, heading (rad); velocity through the water in the body (m/s);
    rates (rad/s); velocity of the water, north, east, down (m/s)."""

    lat: float
    lon: float
    height: float
    x: float
    y: float
    z: float
    phi: float
    theta: float
    psi: float
    u: float
    v: float
    w: float
    p: float
    q: float
    r: float
    svx: float
    svy: float
    svz: float


@_message(150)
@dataclass(frozen=True)
class Heartbeat(Message):
    """The sender lives."""


UUV = 2


@_message(151, "sBHddfs")
@dataclass(frozen=True)
class Announce(Message):
    """Who the sender is, where (rad, m), and at which addresses to be reached."""

    sys_name: str
    sys_type: int
    owner: int
    lat: float
    lon: float
    height: float
    services: str


@_message(250, "h")
@dataclass(frozen=True)
class Rpm(Message):
    value: int


@_message(253, "HBHBBfddfBffffff")
@dataclass(frozen=True)
class GpsFix(Message):
    """``validity`` bits: date, time, position, course, speed, hacc, vacc, hdop, vdop."""

    validity: int
    type: int
    utc_year: int
    utc_month: int
    utc_day: int
    utc_time: float
    lat: float
    lon: float
    height: float
    satellites: int
    cog: float
    sog: float
    hdop: float
    vdop: float
    hacc: float
    vacc: float


@_message(254, "ddddd")
@dataclass(frozen=True)
class EulerAngles(Message):
    time: float
    phi: float
    theta: float
    psi: float
    psi_magnetic: float


@_message(256, "dddd")
@dataclass(frozen=True)
class AngularVelocity(Message):
    time: float
    x: float
    y: float
    z: float


@_message(257, "dddd")
@dataclass(frozen=True)
class Acceleration(Message):
    time: float
    x: float
    y: float
    z: float


@_message(259, "Bddd")
@dataclass(frozen=True)
class GroundVelocity(Message):
    """``validity`` bits: x, y, z."""

    validity: int
    x: float
    y: float
    z: float


@_message(260, "Bddd")
@dataclass(frozen=True)
class WaterVelocity(Message):
    """``validity`` bits: x, y, z."""

    validity: int
    x: float
    y: float
    z: float


@_message(262, "Bllf")
@dataclass(frozen=True)
class Distance(Message):
    validity: int
    location: tuple[()]
    beam_config: tuple[()]
    value: float


@_message(263, "f")
@dataclass(frozen=True)
class Temperature(Message):
    value: float


@_message(265, "f")
@dataclass(frozen=True)
class Depth(Message):
    value: float


@_message(269, "f")
@dataclass(frozen=True)
class Conductivity(Message):
    value: float


@_message(281, "Bf")
@dataclass(frozen=True)
class ServoPosition(Message):
    id: int
    value: float


@_message(301, "Bf")
@dataclass(frozen=True)
class SetThrusterActuation(Message):
    id: int
    value: float


@_message(302, "Bf")
@dataclass(frozen=True)
class SetServoPosition(Message):
    id: int
    value: float


# -- packets ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Packet:
    """A message on its way: unix time in s, systems and entities."""

    message: Message
    time: float
    source: int
    destination: int = EVERYBODY
    source_entity: int = UNKNOWN_ENTITY
    destination_entity: int = UNKNOWN_ENTITY


def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0xA001 if byte & 1 else 0)
        found.append(byte)
    return tuple(found)


_TABLE = _table()


def crc(data: bytes) -> int:
    """CRC-16/ARC."""
    found = 0
    for byte in data:
        found = found >> 8 ^ _TABLE[(found ^ byte) & 0xFF]
    return found


def packed(packet: Packet) -> bytes:
    """The bytes of a packet, little-endian."""
    message = packet.message
    payload = b""
    for code, f in zip(message.LAYOUT, fields(message), strict=True):  # type: ignore[arg-type]  # all are dataclasses
        value = getattr(message, f.name)
        match code:
            case "s":
                text = value.encode()
                payload += struct.pack("<H", len(text)) + text
            case "l":
                payload += struct.pack("<H", 0)
            case _:
                payload += struct.pack("<" + code, value)
    head = struct.pack(
        "<" + _HEADER, SYNC, message.ID, len(payload), packet.time,
        packet.source, packet.source_entity, packet.destination, packet.destination_entity,
    )  # fmt: skip
    return head + payload + struct.pack("<" + _CRC, crc(head + payload))


def read(data: bytes) -> Packet:
    """The packet that a datagram is, in either byte order. Refused in this order: truncated, sync, size, crc, unknown message,
    payload."""
    if len(data) < HEADER_SIZE + CRC_SIZE:
        raise Unusable("truncated")
    order = {0x54: "<", 0xFE: ">"}.get(data[0], "<")
    sync, number, size, time, source, source_entity, destination, destination_entity = struct.unpack_from(
        order + _HEADER, data
    )
    if sync != SYNC:
        raise Unusable("sync")
    if len(data) != HEADER_SIZE + size + CRC_SIZE:
        raise Unusable("size")
    if struct.unpack_from(order + _CRC, data, HEADER_SIZE + size)[0] != crc(data[:-CRC_SIZE]):
        raise Unusable("crc")
    kind = MESSAGES.get(number)
    if kind is None:
        raise Unusable("unknown message")
    message = _fields(kind, order, data[HEADER_SIZE:-CRC_SIZE])
    return Packet(message, time, source, destination, source_entity, destination_entity)


def _fields(kind: type[Message], order: str, payload: bytes) -> Message:
    values: list[Any] = []
    at = 0
    try:
        for code in kind.LAYOUT:
            if code in "sl":
                (length,) = struct.unpack_from(order + "H", payload, at)
                at += 2
                if length and code == "l":
                    raise Unusable("payload")
                values.append(payload[at : at + length].decode() if code == "s" else ())
                at += length
            else:
                values += struct.unpack_from(order + code, payload, at)
                at += struct.calcsize(order + code)
    except (struct.error, UnicodeDecodeError):
        raise Unusable("payload") from None
    if at != len(payload):
        raise Unusable("payload")
    return kind(*values)
