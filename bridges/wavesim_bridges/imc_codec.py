"""Codec for IMC packets. A packet consists of a 20-byte header, the fields of the message in sequence, and a CRC-16/ARC
of both.

The first two bytes indicate the byte order. Field layouts use the characters of :mod:`struct` and three additional
ones: ``t`` is a string preceded by its length; ``r`` is raw bytes preceded by their length; ``l`` is a list of
messages, each preceded by its message number. The messages in a list contain no lists themselves. The known messages
are declared in :mod:`wavesim_bridges.imc`, which is generated from the standard's IMC.xml.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, dataclass_transform

from wavesim_bridges.core import MalformedMessage
from wavesim_sdk.checksums import crc16

SYNC = 0xFE54
EVERYBODY = 0xFFFF
UNKNOWN_ENTITY = 255
_HEADER, _CRC = "HHHdHBHB", "H"
HEADER_SIZE, CRC_SIZE = struct.calcsize("<" + _HEADER), struct.calcsize("<" + _CRC)


MESSAGES: dict[int, type[ImcMessage]] = {}


@dataclass_transform(frozen_default=True)
class ImcMessage:
    """Base class of the messages, which are frozen dataclasses. The codec knows every message class that has a number."""

    ID: ClassVar[int]
    LAYOUT: ClassVar[str]

    def __init_subclass__(cls, number: int | None = None, layout: str = "") -> None:
        dataclass(frozen=True)(cls)
        if number is not None:
            cls.ID, cls.LAYOUT = number, layout
            MESSAGES[number] = cls


class UnknownMessage(ImcMessage):
    """Message whose type is not declared."""

    number: int


@dataclass(frozen=True)
class ImcPacket:
    """Message with its envelope: Unix time in s, and the source and destination systems and entities."""

    message: ImcMessage
    time: float
    source: int
    destination: int = EVERYBODY
    source_entity: int = UNKNOWN_ENTITY
    destination_entity: int = UNKNOWN_ENTITY


def _payload(message: ImcMessage) -> bytes:
    found = b""
    for code, value in zip(message.LAYOUT, vars(message).values(), strict=True):
        match code:
            case "t" | "r":
                data = value.encode() if code == "t" else value
                found += struct.pack("<H", len(data)) + data
            case "l":
                found += struct.pack("<H", len(value))
                found += b"".join(struct.pack("<H", m.ID) + _payload(m) for m in value)
            case _:
                found += struct.pack("<" + code, value)
    return found


def packed(packet: ImcPacket) -> bytes:
    """Encode a packet in little-endian byte order."""
    payload = _payload(packet.message)
    head = struct.pack(
        "<" + _HEADER,
        SYNC,
        packet.message.ID,
        len(payload),
        packet.time,
        packet.source,
        packet.source_entity,
        packet.destination,
        packet.destination_entity,
    )
    return head + payload + struct.pack("<" + _CRC, crc16(head + payload))


def read(data: bytes, versions: Collection[int] = (SYNC,)) -> ImcPacket:
    """Decode a datagram in either byte order. If it is invalid, raise MalformedMessage with the first reason that
    applies: truncated, sync, size, crc or payload. ``versions`` are the accepted synchronisation numbers.
    """
    if len(data) < HEADER_SIZE + CRC_SIZE:
        raise MalformedMessage("truncated")
    order = ">" if data[0] == SYNC >> 8 else "<"
    sync, number, size, time, source, source_entity, destination, destination_entity = struct.unpack_from(
        order + _HEADER, data
    )
    if sync not in versions:
        raise MalformedMessage("sync")
    if len(data) != HEADER_SIZE + size + CRC_SIZE:
        raise MalformedMessage("size")
    if struct.unpack_from(order + _CRC, data, HEADER_SIZE + size)[0] != crc16(data[:-CRC_SIZE]):
        raise MalformedMessage("crc")
    found: ImcMessage = UnknownMessage(number)
    if number in MESSAGES:
        try:
            found, end = _fields(MESSAGES[number], order, data[:-CRC_SIZE], HEADER_SIZE)
        except (struct.error, UnicodeDecodeError, KeyError):
            raise MalformedMessage("payload") from None
        if end != HEADER_SIZE + size:
            raise MalformedMessage("payload")
    return ImcPacket(found, time, source, destination, source_entity, destination_entity)


def _fields(kind: type[ImcMessage], order: str, data: bytes, at: int) -> tuple[ImcMessage, int]:
    """Decode a message whose fields begin at an offset. Return the message and the offset of its end."""
    values: list[Any] = []
    for code in kind.LAYOUT:
        if code not in "trl":
            values += struct.unpack_from(order + code, data, at)
            at += struct.calcsize(order + code)
            continue
        (length,) = struct.unpack_from(order + "H", data, at)
        at += 2
        if code == "l":
            some = []
            for _ in range(length):
                (number,) = struct.unpack_from(order + "H", data, at)
                if "l" in MESSAGES[number].LAYOUT:
                    raise struct.error
                one, at = _fields(MESSAGES[number], order, data, at + 2)
                some.append(one)
            values.append(tuple(some))
        else:
            if at + length > len(data):
                raise struct.error
            values.append(data[at : at + length].decode() if code == "t" else data[at : at + length])
            at += length
    return kind(*values), at
