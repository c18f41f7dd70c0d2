"""The codec: data of a peer raises only a named drop, and unknown senders cost little."""

from __future__ import annotations

import contextlib
import itertools
import math
import struct
import time
import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wavesim_sdk.wire import codec
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire.codec import DROP_REASONS, Dropped
from wavesim_sdk.wire.messages import HEADER_BYTES, MAGIC, MAX_DATAGRAM, MESSAGES, Type
from wavesim_sdk.wire.schema import schema_of
from wavesim_sdk.wire.vectors import ALTERNATIVES, TOKEN, VECTORS

U64 = 2**64 - 1


def _name(vector: Any) -> str:
    return codec.message_type(vector[3]).name


@pytest.mark.parametrize("vector", VECTORS, ids=_name)
def test_there_and_back(vector: tuple[int, int, int, Any]) -> None:
    token, sequence, ack, message = vector
    data = codec.encode(message, token, sequence, ack)
    kind = codec.message_type(message)
    header = codec.decode_header(data, from_client=MESSAGES[kind][0])
    assert (header.type, header.token, header.sequence, header.ack) == (kind, token, sequence, ack)
    found = codec.decode_payload(data, header)
    assert type(found) is type(message) and codec.encode(found, token, sequence, ack) == data


def test_every_type_has_a_vector() -> None:
    assert {codec.message_type(v[3]) for v in VECTORS} == set(Type) == set(MESSAGES)


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_other_encodings_of_the_same_are_taken(name: str) -> None:
    message, body = ALTERNATIVES[name]
    kind = codec.message_type(message)
    data = codec.encode(message, TOKEN, 9, 1)[:HEADER_BYTES] + bytes.fromhex(body)
    assert codec.decode_payload(data, codec.decode_header(data, MESSAGES[kind][0])) == message


def test_a_message_that_fits_no_datagram_is_not_sent() -> None:
    with pytest.raises(ValueError, match=r"FLEET has 12\d\d bytes; the maximum size of a datagram is 1200"):
        codec.encode(m.Fleet(1, 1, 1, 0, 1, bytes(1200)))


def test_a_datagram_of_just_the_size_is_sent_and_taken() -> None:
    def fleet(size: int) -> m.Fleet:
        return m.Fleet(1, 1, 1, 0, 1, bytes(size))

    room = MAX_DATAGRAM - len(codec.encode(fleet(1000))) + 1000
    data = codec.encode(fleet(room))
    assert len(data) == MAX_DATAGRAM == 1200
    assert codec.decode_payload(data, codec.decode_header(data, False)) == fleet(room)
    with pytest.raises(ValueError, match="FLEET has 1201 bytes"):
        codec.encode(fleet(room + 1))
    assert codec.protocol_version(data[:HEADER_BYTES]) == 2 and codec.protocol_version(data[: HEADER_BYTES - 1]) is None


def test_outside_of_a_session_a_datagram_has_no_numbers() -> None:
    kind, body = codec.encode_payload(m.Hello(1, bytes(40)))
    assert kind is Type.HELLO and msgpack.unpackb(body) == [1, bytes(40)]
    for data in (codec.encode(m.Hello(1, bytes(40))), codec.encode_datagram(kind, body)):
        assert data == struct.pack("<4sBBHQII", MAGIC, 2, 1, 0, 0, 0, 0) + body


class Envelope:
    """In place of a seal: what it is given goes before and behind the body."""

    def seal(self, header: bytes, plain: bytes, sequence: int) -> bytes:
        return b"<%b|%d>" % (header, sequence) + plain[::-1]

    def open(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        label = b"<%b|%d>" % (header, sequence)
        if not sealed.startswith(label):
            raise Dropped("seal")
        return sealed.removeprefix(label)[::-1]


def test_a_seal_is_given_header_body_and_sequence() -> None:
    """The whole sequence number: what stands in the header are its 32 lower bits."""
    message, seal = m.KeepaliveReply(12), Envelope()
    data = codec.encode(message, TOKEN, 2**33 + 9, 4, seal)
    header = struct.pack("<4sBBHQII", MAGIC, 2, Type.KEEPALIVE_REPLY, 1, TOKEN, 9, 4)
    assert data == header + b"<%b|%d>" % (header, 2**33 + 9) + b"\x0c\x91"
    data = codec.encode(message, TOKEN, 9, 4, seal)
    found = codec.decode_header(data, True)
    assert found.sealed and codec.decode_payload(data, found, seal) == message
    for bad, opener, reason in (
        (data, None, "flags"),
        (codec.encode(message, TOKEN, 9, 4), seal, "flags"),
        (data[:20] + b"\x05" + data[21:], seal, "seal"),
        (data[:16] + b"\x08" + data[17:], seal, "seal"),
    ):
        with pytest.raises(Dropped) as caught:
            codec.decode_payload(bad, codec.decode_header(bad, True), opener)
        assert caught.value.reason == reason


def test_a_drop_says_its_reason_and_what_people_should_know() -> None:
    plain, more = Dropped("size"), Dropped("fields", "x: expected text, got 7")
    assert (str(plain), plain.reason, plain.detail) == ("size", "size", "")
    assert (str(more), more.reason, more.detail) == (
        "fields: x: expected text, got 7",
        "fields",
        "x: expected text, got 7",
    )


def _datagram(
    body: bytes, kind: int = Type.KEEPALIVE_REPLY, magic: bytes = MAGIC, version: int = 2, flags: int = 0
) -> bytes:
    return struct.pack("<4sBBHQII", magic, version, kind, flags, 1, 1, 0) + body


def _of(kind: Type, *values: Any) -> bytes:
    return _datagram(msgpack.packb(list(values)), kind=kind)


_JOIN = [bytes(16), 7, "a", 0, "", [0.0] * 3, [0.0] * 3, 0, 0, 0, None, 1, 0, 0]


def _join(at: int, value: Any) -> bytes:
    return _of(Type.JOIN, *_JOIN[:at], value, *_JOIN[at + 1 :])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "size"),
        (b"x" * 23, "size"),
        (_datagram(b"\x91\x01" + b"\0" * 1200), "size"),
        (_datagram(b"\x91\x01", magic=b"XXXX"), "magic"),
        (_datagram(b"\x91\x01", version=1), "version"),
        (_datagram(b"\x91\x01", version=3), "version"),
        (_datagram(b"\x91\x01", flags=1), "flags"),
        (_datagram(b"\x91\x01", flags=2), "flags"),
        (_datagram(b"\x91\x01", kind=99), "type"),
        (_datagram(b"\x91\x01", kind=Type.STATE), "type"),
        (_datagram(b""), "body"),
        (_datagram(b"\xc1"), "body"),
        (_datagram(b"\x01"), "body"),
        (_datagram(b"\x80"), "body"),
        (_datagram(b"\x91\x01\x01"), "body"),
        (_datagram(b"\x91" * 500 + b"\x01"), "fields"),
        (_datagram(b"\x91" * 1170 + b"\x01"), "body"),
        (_datagram(b"\x91" * 500 + b"\x01", kind=Type.JOIN), "body"),
        (_datagram(b"\xdd\xff\xff\xff\xff"), "body"),
        (_datagram(b"\x91\xa1\xff"), "fields"),
        (_of(Type.KEEPALIVE_REPLY), "fields"),
        (_of(Type.KEEPALIVE_REPLY, "1"), "fields"),
        (_of(Type.KEEPALIVE_REPLY, True), "fields"),
        (_of(Type.KEEPALIVE_REPLY, 1.0), "fields"),
        (_of(Type.KEEPALIVE_REPLY, -1), "fields"),
        (_of(Type.KEEPALIVE_REPLY, 2**32), "fields"),
        (_of(Type.ACTUATE, [math.nan]), "fields"),
        (_of(Type.ACTUATE, [math.inf]), "fields"),
        (_of(Type.ACTUATE, [1e300]), "fields"),
        (_of(Type.ACTUATE, [[[]]]), "fields"),
        (_of(Type.ACTUATE, [["1"]]), "fields"),
        (_of(Type.ACTUATE, [1.0] * 100), "fields"),
        (_of(Type.DONE, 1, 0, [[[]]], None), "fields"),
        (_of(Type.DONE, 1, 0, None, [[1.0]] * 10), "fields"),
        (_of(Type.DONE, U64, 0, None, None), "fields"),
        (_of(Type.DONE, 1, U64, None, None), "fields"),
        (_of(Type.ESTIMATE, [[1.0, [2.0]]] * 10), "fields"),
        (_of(Type.ESTIMATE, [1.0] * 9), "fields"),
        (_of(Type.REQUESTS, 0, []), "fields"),
        (_of(Type.REQUESTS, 1, 5), "fields"),
        (_of(Type.REQUESTS, 1, [[]] * 257), "fields"),
        (_join(2, "a" * 32), "fields"),
        (_join(2, "a\n"), "fields"),
        (_join(5, [[0.0], 0.0, 0.0]), "fields"),
        (_join(5, [None, 0.0, 0.0]), "fields"),
        (_join(5, [0.0, 0.0]), "fields"),
        (_join(6, [math.nan, 0.0, 0.0]), "fields"),
        (_join(7, -4_000_000), "fields"),
        (_join(7, 4e6), "fields"),
        (_join(7, U64), "fields"),
        (_join(8, U64), "fields"),
        (_join(10, ["a", ["b"]]), "fields"),
        (_join(11, 2), "fields"),
    ],
)
def test_drop_reasons(data: bytes, reason: str) -> None:
    with pytest.raises(Dropped) as caught:
        codec.decode_payload(data, codec.decode_header(data, from_client=True))
    assert caught.value.reason == reason


def test_a_drop_for_its_fields_says_which() -> None:
    data = _of(Type.ACTUATE, [1.0, math.nan])
    with pytest.raises(
        Dropped, match=r"fields: command\[1\]: expected a finite number from -1e\+09 to 1e\+09, got nan"
    ):
        codec.decode_payload(data, codec.decode_header(data, True))


def test_trailing_elements_are_ignored() -> None:
    data = _of(Type.KEEPALIVE_REPLY, 12, "from the future", {"a": [1]}, {5: 6, None: 7})
    assert codec.decode_payload(data, codec.decode_header(data, True)) == m.KeepaliveReply(12)


def test_the_version_of_what_looks_like_ours() -> None:
    assert codec.protocol_version(_datagram(b"\x90", version=1)) == 1
    assert (
        codec.protocol_version(_datagram(b"\x90", magic=b"XXXX")) is None
        and codec.protocol_version(b"WVSM\x01") is None
    )


# ------------------------------------------------------------------------------- what a few bytes may cost

BOMBS = {
    "arrays in arrays": b"\x91" * 1170,
    "large arrays in large arrays": (b"\xdc\x04\x80" * 392)[:1170],
    "arrays of 256 in arrays of 256": (b"\xdc\x01\x00" * 392)[:1170],
    "maps in maps": b"\x81" * 1170,
    "large maps": (b"\xde\x04\x00" * 392)[:1170],
    "many empty arrays": b"\xdc\x04\x80" + b"\x90" * 1152,
    "many extensions": b"\xdc\x01\x80" + b"\xc7\x00\x01" * 384,
    "a promise of four billion": b"\xdd\xff\xff\xff\xff",
    "a text that is not there": b"\x91\xdb\xff\xff\xff\xff",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_costs_next_to_nothing(bomb: str) -> None:
    """Before the walk over the bytes some of these took 6 ms and 3.5 MB each. Memory tells on every machine, in the best of
    some tries: other threads have their own. A session's own nesting may cost some."""
    for kind, most in ((Type.JOIN, 8e3), (Type.HELLO, 8e3), (Type.ACTUATE, 100e3)):
        data = _datagram(BOMBS[bomb], kind=kind)
        header = codec.decode_header(data, True)
        took, held = math.inf, math.inf
        for _ in range(20):
            begin = time.thread_time()
            with contextlib.suppress(Dropped):
                codec.decode_payload(data, header)
            took = min(took, time.thread_time() - begin)
        for _ in range(5):
            tracemalloc.start()
            with contextlib.suppress(Dropped):
                codec.decode_payload(data, header)
            held = min(held, tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert took < 3e-3 and held < most, f"{kind.name}: {took * 1e6:.0f} us, {held} bytes"


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_the_walk_counts_elements_and_depth_exactly() -> None:
    for depth in range(1, 8):
        data = msgpack.packb(_nested(depth))
        assert codec.is_within_limits(data, 100, 5) == (depth <= 5)
        assert codec.is_within_limits(data, depth + 1, 100) and not codec.is_within_limits(data, depth, 100)
    for count in (0, 1, 15, 16, 31, 200):
        data = msgpack.packb(list(range(count)))
        assert codec.is_within_limits(data, count + 1, 2) and not codec.is_within_limits(data, count, 2)
        assert not codec.is_within_limits(data[:-1], 1000, 9) and not codec.is_within_limits(data + b"\0", 1000, 9)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 15, 16, 17])
def test_the_walk_counts_both_halves_of_a_map(count: int) -> None:
    for value, elements in (
        ({k: k for k in range(count)}, 2 * count + 1),
        ({k: [] for k in range(count)}, 2 * count + 1),
        ([{}] * count, count + 1),
        ([[]] * count, count + 1),
        ([""] * count, count + 1),
    ):
        data = msgpack.packb(value)
        assert codec.is_within_limits(data, elements, 2) and not codec.is_within_limits(data, elements - 1, 2)
        assert not codec.is_within_limits(data + b"\0", 1000, 9) and (
            not count or not codec.is_within_limits(data[:-1], 1000, 9)
        )


SIZES = [0, 1, 31, 32, 255, 256, 65_535, 65_536]
SIMPLE = [None, True, False, 0, 127, -1, -32, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, U64, -33, -128, -129, -32_768,
          -32_769, -(2**31), -(2**31) - 1, -(2**63), 0.5, *("x" * n for n in SIZES), *(b"x" * n for n in SIZES)]  # fmt: skip


@pytest.mark.parametrize("single", [False, True])
def test_the_walk_steps_over_each_encoding_of_a_value(single: bool) -> None:
    """Alone, and between others: what follows begins where it should."""
    for value in SIMPLE:
        data = msgpack.packb(value, use_single_float=single)
        assert codec.is_within_limits(data, 1, 0) and not codec.is_within_limits(data, 0, 0)
        assert not codec.is_within_limits(data[:-1], 9, 9) and not codec.is_within_limits(data + b"\0", 9, 9)
        between = b"\x93\x05" + data + b"\xc0"
        assert (
            codec.is_within_limits(between, 4, 1)
            and not codec.is_within_limits(between, 3, 1)
            and not codec.is_within_limits(between[:-1], 9, 9)
        )
    for count in (0, 1, 15, 16, 300):
        for data in (msgpack.packb([None] * count), msgpack.packb(dict.fromkeys(range(count)))):
            assert codec.is_within_limits(data, 700, 1) and not codec.is_within_limits(data + b"\0", 700, 1)


@pytest.mark.parametrize("head", [b"\xdc\x01\x02", b"\xdd\0\0\x01\x02", b"\xde\0\x81", b"\xdf\0\0\0\x81"])
def test_the_walk_reads_counts_in_the_order_of_the_net(head: bytes) -> None:
    """Arrays of 258, maps of 129."""
    data = head + b"\x05" * 258
    assert codec.is_within_limits(data, 259, 1) and not codec.is_within_limits(data, 258, 1)
    assert not codec.is_within_limits(data[:-1], 999, 1) and not codec.is_within_limits(data + b"\0", 999, 1)


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), U64)
    | st.floats(-1e30, 1e30)
    | st.text(max_size=300)
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=18) | st.dictionaries(st.text(max_size=3), inner, max_size=18),
    max_leaves=30,
)


@settings(max_examples=400, deadline=None)
@given(_values, st.booleans())
def test_the_walk_takes_whatever_msgpack_writes(value: Any, single: bool) -> None:
    data = msgpack.packb(value, use_single_float=single)
    assert codec.is_within_limits(data, 100_000, 100)
    assert not codec.is_within_limits(data[:-1], 100_000, 100) and not codec.is_within_limits(
        data + b"\xc0", 100_000, 100
    )


def test_the_walk_knows_extensions() -> None:
    for size in (1, 2, 3, 4, 8, 16, 17, 300, 70_000):
        data = msgpack.packb(msgpack.ExtType(5, bytes(size)))
        assert (
            codec.is_within_limits(data, 2, 2)
            and not codec.is_within_limits(data[:-1], 2, 2)
            and not codec.is_within_limits(data + b"\0", 2, 2)
        )


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=200))
def test_what_the_walk_takes_is_msgpack_and_what_it_refuses_never_grows(data: bytes) -> None:
    """Whatever it lets through is small; whatever msgpack reads whole within the limits it lets through."""
    try:
        msgpack.unpackb(data, strict_map_key=False)
        whole = True
    except (ValueError, TypeError, RecursionError):
        whole = False
    if whole:
        assert codec.is_within_limits(data, 1000, 1000)


# ------------------------------------------------------------------------------------------- foreign bytes


@settings(max_examples=1500, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(list(Type)), st.booleans())
@example(b"\xdc\xff\xff" + b"\x90" * 100, Type.JOIN, True)
def test_foreign_bytes(noise: bytes, kind: Type, headed: bool) -> None:
    data = _datagram(noise, kind=kind) if headed else noise
    try:
        header = codec.decode_header(data, from_client=MESSAGES[kind][0])
        codec.decode_payload(data, header)
    except Dropped as dropped:
        assert dropped.reason in DROP_REASONS


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(VECTORS), st.integers(0, 1100), st.integers(0, 255))
def test_flipped_bytes(vector: tuple[int, int, int, Any], at: int, value: int) -> None:
    token, sequence, ack, message = vector
    kind = codec.message_type(message)
    data = bytearray(codec.encode(message, token, sequence, ack))
    data[HEADER_BYTES + at % (len(data) - HEADER_BYTES)] = value
    try:
        codec.decode_payload(bytes(data), codec.decode_header(bytes(data), MESSAGES[kind][0]))
    except Dropped as dropped:
        assert dropped.reason in ("body", "fields")


ABSURD = [
    None, True, -1, U64, 2**63, -(2**63), 2**62, math.nan, math.inf, -math.inf, 1e308, "", "x" * 1000, "\0", b"", b"x" * 1000,
    [], [[]], [[[]]], [None], [math.nan], [[1.0, [2.0]]] * 3, [1.0] * 100, {}, {"a": [1]}, [{}], 0.5,
]  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS, ids=_name)
def test_well_formed_but_absurd_values(vector: tuple[int, int, int, Any]) -> None:
    """Each element of each message, each absurd value: what comes through has only values that its declaration allows, so that
    it can be sent again and is the same."""
    message = vector[3]
    kind = codec.message_type(message)
    values = list(schema_of(type(message)).encode(message))
    let_through = 0
    for at, absurd in itertools.product(range(len(values)), ABSURD):
        data = _of(kind, *values[:at], absurd, *values[at + 1 :])
        if len(data) > MAX_DATAGRAM:
            continue
        try:
            found = codec.decode_payload(data, codec.decode_header(data, MESSAGES[kind][0]))
        except Dropped as dropped:
            assert dropped.reason in ("body", "fields")
            continue
        let_through += 1
        again = codec.encode(found)
        assert codec.encode(codec.decode_payload(again, codec.decode_header(again, MESSAGES[kind][0]))) == again
    assert let_through <= 8 * len(values)


def test_each_reason_is_counted_separately() -> None:
    assert len(set(DROP_REASONS)) == len(DROP_REASONS)
    assert not any(a in b for a, b in itertools.permutations(DROP_REASONS, 2))
