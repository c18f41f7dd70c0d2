"""The codec: bytes to checked messages and back, pure functions.

A peer cannot make :func:`decode_header` and :func:`decode_body` raise anything but :class:`Dropped`, whose reason is one
of the names in docs/PROTOCOL.md.
"""

from __future__ import annotations

import re
import struct
from typing import Any, NamedTuple, Protocol

import msgpack

from wavesim_sdk.wire.messages import HEADER_BYTES, MAGIC, MAX_DATAGRAM, MAX_DEPTH, MESSAGES, VERSION, Type
from wavesim_sdk.wire.schema import Malformed, schema_of

_HEADER = struct.Struct("<4sBBHQII")
SEALED_FLAG = 1  #: flag
MAX_HANDSHAKE_ELEMENTS = 160  #: in a body that comes from outside of a session
DROP_REASONS = (
    "size", "magic", "version", "flags", "type", "key", "token", "address", "rate", "replay", "seal", "body", "fields", "old",
    "strangers", "item", "internal",
)  # fmt: skip

_DECODE = {kind: schema_of(record).decode for kind, (_, _, record) in MESSAGES.items()}
_ENCODE = {record: (int(kind), schema_of(record).encode) for kind, (_, _, record) in MESSAGES.items()}
_pack = msgpack.Packer().pack  # one for all: a new one would have memory of its own
_LARGE = re.compile(b"[\xdc-\xdf]").search  # array16 .. map32, or bytes that look so
_FROM_CLIENT = {kind.value: (kind, from_client) for kind, (from_client, _, _) in MESSAGES.items()}


class Sealer(Protocol):
    """What seals bodies: see :mod:`wavesim_sdk.wire.seal`."""

    def seal(self, header: bytes, plain: bytes, sequence: int) -> bytes:
        """The sealed body."""

    def open(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """The body, or Dropped; it counts as received from now on."""

    def authenticate(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """The body, or Dropped; nothing is recorded."""


class Dropped(Exception):
    """A datagram was dropped, for a named reason; ``detail`` is for people."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


class Header(NamedTuple):
    type: Type
    token: int
    sequence: int
    ack: int
    sealed: bool = False


def message_type(message: Any) -> Type:
    """The type under which a message travels."""
    return Type(_ENCODE[type(message)][0])


def encode_body(message: Any) -> tuple[Type, bytes]:
    """Type and plain body of a message. It is trusted: it comes from this program."""
    kind, values = _ENCODE[type(message)]
    return Type(kind), _pack(values(message))


def encode_datagram(
    kind: int, plain: bytes, token: int = 0, sequence: int = 0, ack: int = 0, seal: Sealer | None = None
) -> bytes:
    """Header and body, sealed if there is a seal."""
    flags = 0 if seal is None else SEALED_FLAG
    header = _HEADER.pack(MAGIC, VERSION, kind, flags, token, sequence & 0xFFFFFFFF, ack & 0xFFFFFFFF)
    data = header + (plain if seal is None else seal.seal(header, plain, sequence))
    if len(data) > MAX_DATAGRAM:
        raise ValueError(f"{Type(kind).name} has {len(data)} bytes; a datagram holds {MAX_DATAGRAM}")
    return data


def encode(message: Any, token: int = 0, sequence: int = 0, ack: int = 0, seal: Sealer | None = None) -> bytes:
    """One datagram. The message is trusted: it comes from this program."""
    kind, values = _ENCODE[type(message)]
    return encode_datagram(kind, _pack(values(message)), token, sequence, ack, seal)


def protocol_version(data: bytes) -> int | None:
    """The version of something that begins like a datagram of this protocol."""
    return data[4] if len(data) >= HEADER_BYTES and data[:4] == MAGIC else None


def decode_header(data: bytes, from_client: bool) -> Header:
    """Rules 1 to 5 of the document."""
    if not HEADER_BYTES <= len(data) <= MAX_DATAGRAM:
        raise Dropped("size")
    magic, version, kind, flags, token, sequence, ack = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise Dropped("magic")
    if version != VERSION:
        raise Dropped("version")
    if flags & ~SEALED_FLAG:
        raise Dropped("flags")
    known = _FROM_CLIENT.get(kind)
    if known is None or known[1] != from_client:
        raise Dropped("type")
    return Header(known[0], token, sequence, ack, flags == SEALED_FLAG)


def open_body(data: bytes, header: Header, seal: Sealer | None = None, record: bool = True) -> bytes:
    """The body in the clear. Without ``record`` the replay window stays as it is."""
    if header.sealed != (seal is not None):
        raise Dropped("flags")
    plain = data[HEADER_BYTES:]
    if seal is None:
        return plain
    opened = seal.open if record else seal.authenticate
    return opened(data[:HEADER_BYTES], plain, header.sequence)


def unpack_body(plain: bytes, kind: Type) -> tuple[Any, ...]:
    """The elements of a body, not yet checked. A few bytes can promise much: what comes from outside of a session, or has
    large counts, is walked through before memory is spent on it."""
    if not MESSAGES[kind][1]:
        good = is_within_limits(plain, MAX_HANDSHAKE_ELEMENTS, MAX_DEPTH)
    else:
        # an item that is nested too deep is the fault of that item: dropped with it, those beside it would come again for ever
        good = not (MESSAGES[kind][0] and _LARGE(plain)) or is_within_limits(plain, MAX_DATAGRAM, MAX_DATAGRAM)
    if not good:
        raise Dropped("body")
    try:
        # a text that is no UTF-8, or a map with odd keys, is the fault of its element, not of those beside it
        body = msgpack.unpackb(plain, use_list=False, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, TypeError, OverflowError, RecursionError):  # what msgpack raises on foreign bytes
        raise Dropped("body") from None
    if type(body) is not tuple:
        raise Dropped("body")
    return body


def decode_body(data: bytes, header: Header, seal: Sealer | None = None) -> Any:
    """The message, opened and checked."""
    return decode_plain(open_body(data, header, seal), header.type)


def decode_plain(plain: bytes, kind: Type) -> Any:
    """The message of an opened body, checked."""
    body = unpack_body(plain, kind)
    try:
        return _DECODE[kind](body)
    except Malformed as malformed:
        raise Dropped("fields", str(malformed)) from None


# msgpack's first bytes: how many bytes follow (fixed), or where the count stands
_FIXED = [0] * 256
_FIXED[0xA0:0xC0] = range(32)  # short texts
_FIXED[0xCA:0xD4] = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8]  # float32 .. int64
_FIXED[0xD4:0xD9] = [2, 3, 5, 9, 17]  # short extensions
_LENGTH = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}  # bin, ext, str
_COUNT = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}  # arrays and maps: bytes of the count, values in each


def is_within_limits(data: bytes, elements: int, depth: int) -> bool:
    """Whether msgpack holds at most so many elements, nested at most so deep, and all that it promises: a walk over the bytes
    that costs at most ``elements`` steps and makes nothing."""
    at, end = 0, len(data)
    left = [1]  # elements still to come at each level
    while left:
        if not left[-1]:
            left.pop()
            continue
        elements -= 1
        if at >= end or elements < 0:
            return False
        left[-1] -= 1
        first = data[at]
        at += 1
        if 0x80 <= first < 0xA0:
            left.append((first & 15) * (2 if first < 0x90 else 1))
        elif first in _COUNT:
            size, each = _COUNT[first]
            left.append(int.from_bytes(data[at : at + size], "big") * each)
            at += size
        elif first in _LENGTH:
            size = _LENGTH[first]
            at += size + int.from_bytes(data[at : at + size], "big") + (1 if 0xC7 <= first <= 0xC9 else 0)
        else:
            at += _FIXED[first]
        if len(left) > depth + 1 or at > end:
            return False
    return at == end
