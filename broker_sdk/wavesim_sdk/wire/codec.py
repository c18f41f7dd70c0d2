"""Codec: pure functions that convert between bytes and validated messages.

:func:`decode_header` and :func:`decode_payload` accept any bytes that a peer may send. The only exception that they
raise is :class:`Dropped`, with one of the drop reasons in docs/PROTOCOL.md.
"""

from __future__ import annotations

import re
import struct
from typing import Any, NamedTuple, Protocol

import msgpack

from wavesim_sdk.wire.messages import HEADER_BYTES, MAGIC, MAX_DATAGRAM, MAX_DEPTH, MESSAGES, VERSION, Type
from wavesim_sdk.wire.schema import Malformed, schema_of

_HEADER = struct.Struct("<4sBBHQII")
SEALED_FLAG = 1  #: header flag of a sealed payload
MAX_HANDSHAKE_ELEMENTS = 160  #: maximum number of elements in a payload from outside a session
DROP_REASONS = (
    "size",
    "magic",
    "version",
    "flags",
    "type",
    "key",
    "token",
    "address",
    "rate",
    "replay",
    "seal",
    "body",
    "fields",
    "old",
    "strangers",
    "item",
    "internal",
)

_DECODE = {kind: schema_of(record).decode for kind, (_, _, record) in MESSAGES.items()}
#: functions with which the engine checks the payloads that the front end has forwarded; separate from the functions of
#: the front end, because a test in benchmarks/world replaces only those
_DECODE_FORWARDED = {int(kind): schema_of(record).decode for kind, (_, _, record) in MESSAGES.items()}
_ENCODE = {record: (int(kind), schema_of(record).encode) for kind, (_, _, record) in MESSAGES.items()}
_pack = msgpack.Packer().pack  # one packer for all: each packer allocates its own buffer
_LARGE = re.compile(b"[\xdc-\xdf]").search  # array16 .. map32, or bytes that look like them
_FROM_CLIENT = {kind.value: (kind, from_client) for kind, (from_client, _, _) in MESSAGES.items()}


class Sealer(Protocol):
    """Interface of the payload seals; see :mod:`wavesim_sdk.wire.seal`."""

    def seal(self, header: bytes, plain: bytes, sequence: int) -> bytes:
        """Return the sealed payload."""

    def open(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """Decrypt a payload and record its sequence number as received. Raises Dropped if this fails."""

    def authenticate(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """Decrypt a payload without recording its sequence number. Raises Dropped if this fails."""


class Dropped(Exception):
    """A datagram was dropped for the named ``reason``; ``detail`` is a human-readable text."""

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
    """Return the datagram type of a message."""
    return Type(_ENCODE[type(message)][0])


def encode_payload(message: Any) -> tuple[Type, bytes]:
    """Return the type and the plain payload of a message. The message is not checked, because this program created it."""
    kind, values = _ENCODE[type(message)]
    return Type(kind), _pack(values(message))


def encode_datagram(
    kind: int, plain: bytes, token: int = 0, sequence: int = 0, ack: int = 0, seal: Sealer | None = None
) -> bytes:
    """Return the datagram that consists of header and payload; the payload is sealed if ``seal`` is given."""
    flags = 0 if seal is None else SEALED_FLAG
    header = _HEADER.pack(MAGIC, VERSION, kind, flags, token, sequence & 0xFFFFFFFF, ack & 0xFFFFFFFF)
    data = header + (plain if seal is None else seal.seal(header, plain, sequence))
    if len(data) > MAX_DATAGRAM:
        raise ValueError(f"{Type(kind).name} has {len(data)} bytes; the maximum size of a datagram is {MAX_DATAGRAM}")
    return data


def encode(message: Any, token: int = 0, sequence: int = 0, ack: int = 0, seal: Sealer | None = None) -> bytes:
    """Return the datagram for a message. The message is not checked, because this program created it."""
    kind, values = _ENCODE[type(message)]
    return encode_datagram(kind, _pack(values(message)), token, sequence, ack, seal)


def protocol_version(data: bytes) -> int | None:
    """Return the protocol version of a datagram, or None if the datagram does not begin with the magic bytes of this
    protocol.
    """
    return data[4] if len(data) >= HEADER_BYTES and data[:4] == MAGIC else None


def decode_header(data: bytes, from_client: bool) -> Header:
    """Decode a header according to the receive rules 1 to 5 in docs/PROTOCOL.md."""
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


def open_payload(data: bytes, header: Header, seal: Sealer | None = None, record: bool = True) -> bytes:
    """Return the decrypted payload. If ``record`` is false, the replay window stays unchanged."""
    if header.sealed != (seal is not None):
        raise Dropped("flags")
    plain = data[HEADER_BYTES:]
    if seal is None:
        return plain
    opened = seal.open if record else seal.authenticate
    return opened(data[:HEADER_BYTES], plain, header.sequence)


def unpack_payload(plain: bytes, kind: Type) -> tuple[Any, ...]:
    """Return the unchecked elements of a payload.

    A few bytes can announce a large array. Therefore, if a payload comes from outside a session or has large counts,
    the function checks the limits before it allocates memory for the elements.
    """
    if not MESSAGES[kind][1]:
        good = is_within_limits(plain, MAX_HANDSHAKE_ELEMENTS, MAX_DEPTH)
    else:
        # Nesting is not limited here: if one deeply nested item dropped the datagram, its valid items would be repeated for ever.
        good = not (MESSAGES[kind][0] and _LARGE(plain)) or is_within_limits(plain, MAX_DATAGRAM, MAX_DATAGRAM)
    if not good:
        raise Dropped("body")
    try:
        # Invalid UTF-8 or an unusual map key makes only its own element invalid, not the others.
        payload = msgpack.unpackb(plain, use_list=False, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, TypeError, OverflowError, RecursionError):  # the errors of msgpack
        raise Dropped("body") from None
    if type(payload) is not tuple:
        raise Dropped("body")
    return payload


def decode_payload(data: bytes, header: Header, seal: Sealer | None = None) -> Any:
    """Decrypt a datagram, check the message in it, and return the message."""
    return decode_plain(open_payload(data, header, seal), header.type)


def decode_plain(plain: bytes, kind: Type) -> Any:
    """Check the message in a decrypted payload and return it."""
    payload = unpack_payload(plain, kind)
    try:
        return _DECODE[kind](payload)
    except Malformed as malformed:
        raise Dropped("fields", str(malformed)) from None


def decode_forwarded(plain: bytes, kind: int) -> Any:
    """Return the message in a payload that another process of this server received. Raises Malformed if that process
    forwarded a payload that does not match the schema.
    """
    return _DECODE_FORWARDED[kind](msgpack.unpackb(plain, use_list=False))


# first bytes in msgpack: the fixed number of bytes that follow, or the size of the count
_FIXED = [0] * 256
_FIXED[0xA0:0xC0] = range(32)  # short texts
_FIXED[0xCA:0xD4] = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8]  # float32 .. int64
_FIXED[0xD4:0xD9] = [2, 3, 5, 9, 17]  # short extensions
_LENGTH = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}  # bin, ext, str
_COUNT = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}  # arrays and maps: bytes of the count, values in each


def is_within_limits(data: bytes, elements: int, depth: int) -> bool:
    """Return whether msgpack data is complete and within the limits on elements and nesting.

    The function scans the bytes in at most ``elements`` steps and does not allocate any values.
    """
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
