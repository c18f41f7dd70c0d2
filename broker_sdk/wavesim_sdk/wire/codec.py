"""The codec: bytes to checked messages and back, pure functions.

A peer cannot make :func:`decode` raise anything but :class:`Dropped`, whose reason is one of the
names in docs/PROTOCOL.md.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack

from wavesim_sdk.wire.messages import (
    EVENTS,
    HEADER_BYTES,
    MAGIC,
    MAX_DATAGRAM,
    MAX_DEPTH,
    MESSAGES,
    REQUESTS,
    VERSION,
    Element,
    Event,
    Request,
    Type,
)

_HEADER = struct.Struct("<4sBBHQII")
SEALED = 1  #: flag
REASONS = (
    "size", "magic", "version", "flags", "type", "key", "token", "address", "rate", "replay", "seal", "body", "fields", "old",
)  # fmt: skip


class Sealer(Protocol):
    """What seals bodies: see :mod:`wavesim_sdk.wire.seal`."""

    def close(self, header: bytes, plain: bytes, sequence: int) -> bytes:
        """The sealed body."""

    def open(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """The body, or Dropped."""


class Dropped(Exception):
    """A datagram was dropped, for a named reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Header:
    type: Type
    token: int
    sequence: int
    ack: int
    sealed: bool = False


def encode(
    kind: Type, body: list[Any], token: int = 0, sequence: int = 0, ack: int = 0, seal: Sealer | None = None
) -> bytes:
    """One datagram. The body is trusted: it comes from this program."""
    flags = 0 if seal is None else SEALED
    header = _HEADER.pack(MAGIC, VERSION, kind, flags, token, sequence & 0xFFFFFFFF, ack & 0xFFFFFFFF)
    plain: bytes = msgpack.packb(body)
    data = header + (plain if seal is None else seal.close(header, plain, sequence))
    if len(data) > MAX_DATAGRAM:
        raise ValueError(f"{kind.name} has {len(data)} bytes; a datagram holds {MAX_DATAGRAM}")
    return data


def decode_header(data: bytes, from_client: bool) -> Header:
    """Rules 1 to 5 of the document."""
    if not HEADER_BYTES <= len(data) <= MAX_DATAGRAM:
        raise Dropped("size")
    magic, version, kind, flags, token, sequence, ack = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise Dropped("magic")
    if version != VERSION:
        raise Dropped("version")
    if flags & ~SEALED:
        raise Dropped("flags")
    try:
        type_ = Type(kind)
    except ValueError:
        raise Dropped("type") from None
    if MESSAGES[type_][0] != from_client:
        raise Dropped("type")
    return Header(type_, token, sequence, ack, bool(flags & SEALED))


def decode_body(data: bytes, header: Header, seal: Sealer | None = None) -> list[Any]:
    """Rules 9 to 12: the body's elements, opened and checked."""
    if header.sealed != (seal is not None):
        raise Dropped("flags")
    kind = header.type
    plain = data[HEADER_BYTES:]
    if seal is not None:
        plain = seal.open(data[:HEADER_BYTES], plain, header.sequence)
    try:
        body = msgpack.unpackb(plain)
    except (ValueError, TypeError, OverflowError, RecursionError):  # what msgpack raises on foreign bytes
        raise Dropped("body") from None
    if type(body) is not list or _depth(body) > MAX_DEPTH:
        raise Dropped("body")
    check(body, MESSAGES[kind][2])
    if kind in (Type.EVENTS, Type.REQUESTS):
        known: dict[Any, tuple[Element, ...]] = dict(EVENTS) if kind is Type.EVENTS else dict(REQUESTS)
        for item in body[1]:
            _item(item, known)
    return body


def _item(item: Any, known: dict[Any, tuple[Element, ...]]) -> None:
    if type(item) is not list or not item or type(item[0]) is not int:
        raise Dropped("fields")
    if item[0] in known:  # an unknown kind is the future's: kept, and ignored by the receiver
        check(item[1:], known[item[0]])


def event(kind: Event, *values: Any) -> list[Any]:
    """An item for EVENTS."""
    return [int(kind), *values]


def request(kind: Request, *values: Any) -> list[Any]:
    """An item for REQUESTS."""
    return [int(kind), *values]


def check(values: list[Any], elements: tuple[Element, ...]) -> None:
    """Raise Dropped("fields") unless the values are what the elements declare."""
    if len(values) < len(elements):
        raise Dropped("fields")
    for value, element in zip(values, elements, strict=False):
        if not any(_is(value, t, element.size) for t in element.types.split("|")):
            raise Dropped("fields")


def _is(value: Any, kind: str, size: int) -> bool:
    if kind == "nil":
        return value is None
    if kind == "int":
        return type(value) is int
    if kind == "float":
        return _number(value)
    if kind == "str":
        return type(value) is str and (not size or len(value) <= size)
    if kind == "bin":
        return type(value) is bytes and (not size or len(value) == size)
    if kind == "map":
        return type(value) is dict and all(
            type(k) is str and type(v) is list and all(x is None or _number(x) for x in v) for k, v in value.items()
        )
    # A list of numbers (nil allowed), or of items that are checked one by one.
    return (
        type(value) is list
        and (not size or len(value) == size)
        and all(v is None or type(v) is list or _number(v) for v in value)
    )


def _number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _depth(value: Any) -> int:
    """Nesting depth, without recursion on a peer's bytes."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [c for v in level if type(v) in (list, dict) for c in (v.values() if type(v) is dict else v)]
        level = [v for v in level if type(v) in (list, dict)]
    return depth
