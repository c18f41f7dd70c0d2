"""The codec: nothing that a peer sends raises anything but a named drop."""

from __future__ import annotations

import struct

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.codec import REASONS, Dropped
from wavesim_sdk.wire.messages import HEADER_BYTES, MAGIC, MESSAGES, Type
from wavesim_sdk.wire.vectors import VECTORS


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v[0].name)
def test_there_and_back(vector: tuple[Type, int, int, int, list[object]]) -> None:
    kind, token, sequence, ack, body = vector
    data = codec.encode(kind, body, token, sequence, ack)
    header = codec.decode_header(data, from_client=MESSAGES[kind][0])
    assert (header.type, header.token, header.sequence, header.ack) == (kind, token, sequence, ack)
    assert codec.decode_body(data, header) == body


def test_every_type_has_a_vector() -> None:
    assert {v[0] for v in VECTORS} == set(Type) == set(MESSAGES)


def _datagram(
    body: bytes, kind: int = Type.KEEPALIVE_REPLY, magic: bytes = MAGIC, version: int = 1, flags: int = 0
) -> bytes:
    return struct.pack("<4sBBHQII", magic, version, kind, flags, 1, 1, 0) + body


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "size"),
        (b"x" * 23, "size"),
        (_datagram(b"\x91\x01" + b"\0" * 1200), "size"),
        (_datagram(b"\x91\x01", magic=b"XXXX"), "magic"),
        (_datagram(b"\x91\x01", version=2), "version"),
        (_datagram(b"\x91\x01", flags=1), "flags"),
        (_datagram(b"\x91\x01", kind=99), "type"),
        (_datagram(b"\x91\x01", kind=Type.STATE), "type"),
        (_datagram(b""), "body"),
        (_datagram(b"\xc1"), "body"),
        (_datagram(b"\x01"), "body"),
        (_datagram(b"\x91\x01\x01"), "body"),
        (_datagram(msgpack.packb([[[[[[1]]]]]])), "body"),
        (_datagram(b"\x91" * 500 + b"\x01"), "body"),
        (_datagram(b"\xdd\xff\xff\xff\xff"), "body"),
        (_datagram(msgpack.packb([])), "fields"),
        (_datagram(msgpack.packb(["1"])), "fields"),
        (_datagram(msgpack.packb([True])), "fields"),
        (_datagram(msgpack.packb([[float("nan")]]), kind=Type.ACTUATE), "fields"),
        (_datagram(msgpack.packb([1, [[1, "x", None]]]), kind=Type.REQUESTS), "fields"),
        (_datagram(msgpack.packb([1, [3]]), kind=Type.REQUESTS), "fields"),
    ],
)
def test_drop_reasons(data: bytes, reason: str) -> None:
    with pytest.raises(Dropped) as caught:
        codec.decode_body(data, codec.decode_header(data, from_client=True))
    assert caught.value.reason == reason


def test_trailing_elements_are_ignored() -> None:
    data = _datagram(msgpack.packb([12, "from the future"]))
    assert codec.decode_body(data, codec.decode_header(data, True))[0] == 12


@settings(max_examples=1500, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(list(Type)), st.booleans())
@example(b"\xdc\xff\xff" + b"\x90" * 100, Type.JOIN, True)
def test_foreign_bytes(noise: bytes, kind: Type, headed: bool) -> None:
    data = _datagram(noise, kind=kind) if headed else noise
    try:
        header = codec.decode_header(data, from_client=MESSAGES[kind][0])
        codec.decode_body(data, header)
    except Dropped as dropped:
        assert dropped.reason in REASONS


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(VECTORS), st.integers(0, 400), st.integers(0, 255))
def test_flipped_bytes(vector: tuple[Type, int, int, int, list[object]], at: int, value: int) -> None:
    kind, token, sequence, ack, body = vector
    data = bytearray(codec.encode(kind, body, token, sequence, ack))
    data[HEADER_BYTES + at % (len(data) - HEADER_BYTES)] = value
    try:
        codec.decode_body(bytes(data), codec.decode_header(bytes(data), MESSAGES[kind][0]))
    except Dropped as dropped:
        assert dropped.reason in ("body", "fields")
