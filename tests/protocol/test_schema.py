"""Declarations of messages: accepted and refused values, error messages, and generated results."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavesim_sdk.wire import protocol_export
from wavesim_sdk.wire.items import EVENTS, REQUESTS, Ping
from wavesim_sdk.wire.schema import (
    AnyValue,
    Bin,
    Int,
    List,
    Malformed,
    Nullable,
    Number,
    Numbers,
    Schema,
    Struct,
    TaggedItem,
    TaggedUnion,
    Text,
    check,
    pack,
    record_field,
    sanitise_text,
    schema_of,
    unpack,
)
from wavesim_sdk.wire.value_types import FAST_CHECK_NAMES, ValueType


@dataclass(frozen=True, slots=True)
class Point:
    x: float = record_field(Number(-10.0, 10.0), "north", "m")
    y: float = record_field(Number(-10.0, 10.0), "east", "m")


@dataclass(frozen=True, slots=True)
class Route:
    name: str = record_field(Text(8), "its name")
    points: tuple[Point, ...] = record_field(List(Struct(Point), 3), "its points")
    speed: float | None = record_field(Nullable(Number(0.0)), "nil = any", "m/s")
    laps: int = record_field(Int(1, 9), "times", default=1, optional=True)


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


GOOD: list[tuple[ValueType, Any, Any]] = [
    (Int(0, 9), 0, 0),
    (Int(0, 9), 9, 9),
    (Int(), -(2**63), -(2**63)),
    (Int(0, 2**64 - 1), 2**64 - 1, 2**64 - 1),
    (Number(), 3, 3.0),
    (Number(), 2**64 - 1, float(2**64 - 1)),
    (Number(0.0, 1.0), 1.0, 1.0),
    (Text(4), "", ""),
    (Text(4), "\u00e4\u00f6", "\u00e4\u00f6"),
    (Bin(2, 3), b"abc", b"abc"),
    (Numbers(3), [1, 2.5], (1.0, 2.5)),
    (Numbers(3), (), ()),
    (Numbers(exact=2), (1.0, 2.0), (1.0, 2.0)),
    (Numbers(3, allow_nil=True), (None, 1.0), (None, 1.0)),
    (Numbers(2, low=0.0, high=1.0), (0.0, 1), (0.0, 1.0)),
    (List(Int(0, 3), 2), [3, 0], (3, 0)),
    (Nullable(Int(0, 3)), None, None),
    (Nullable(Int(0, 3)), 2, 2),
    (AnyValue(2), {"a": [1]}, {"a": [1]}),
]
BAD: list[tuple[ValueType, Any, str]] = [
    (Int(0, 9), 10, "expected an integer from 0 to 9, got 10"),
    (Int(0, 9), -1, "expected an integer from 0 to 9, got -1"),
    (Int(0, 1), True, "expected an integer from 0 to 1, got True"),
    (Int(0, 9), 1.0, "expected an integer from 0 to 9, got 1.0"),
    (Int(0, 9), None, "expected an integer from 0 to 9, got None"),
    (Int(0, 2**62), 2**62 + 1, r"from 0 to 2\^62"),
    (Number(), math.nan, "expected a finite number, got nan"),
    (Number(), math.inf, "expected a finite number, got inf"),
    (Number(), 10**400, "expected a finite number"),
    (Number(), True, "expected a finite number"),
    (Number(), "1", "expected a finite number, got 1 characters"),
    (Number(0.0, 1.0), 1.5, r"expected a finite number from 0 to 1, got 1.5"),
    (Text(4), "\u00e4\u00f6\u00fc", "the text has 6 bytes; the maximum is 4"),
    (Text(4), "abcde", "the text has 5 bytes; the maximum is 4"),
    (Text(9), "a\nb", "control characters"),
    (Text(9), "a\x7f", "control characters"),
    (Text(9), "a\u202eb", "control characters"),
    (Text(9), b"a", "expected text, got 1 bytes"),
    (Text(9), "\ud800", "the text is not valid Unicode"),
    (Bin(2, 3), b"a", "expected 2 to 3 bytes, got 1 bytes"),
    (Bin(2, 3), b"abcd", "4 bytes"),
    (Bin(2, 3), "abc", "expected 2 to 3 bytes, got 3 characters"),
    (Numbers(2), (1.0, 2.0, 3.0), "expected a list of at most 2 numbers, got a list of 3"),
    (Numbers(exact=2), (1.0,), "expected a list of 2 numbers, got a list of 1"),
    (Numbers(exact=2), (1.0, 2.0, 3.0), "expected a list of 2 numbers, got a list of 3"),
    (Numbers(3), (1.0, None), r"\[1\]: expected a finite number, got None"),
    (Numbers(3), (1.0, math.nan), r"\[1\]: expected a finite number, got nan"),
    (Numbers(3), (1.0, [1.0]), r"\[1\]: expected a finite number, got a list of 1"),
    (Numbers(3, allow_nil=True), (None, math.inf), r"\[1\]: expected a finite number, got inf"),
    (Numbers(3, low=0.0), (1.0, -1.0), r"\[1\]: expected a finite number from 0 to .*, got -1.0"),
    (Numbers(3), "123", "expected a list of at most 3 numbers, got 3 characters"),
    (Numbers(3), {}, "expected a list of at most 3 numbers, got dict"),
    (List(Int(0, 3), 2), [1, 2, 3], "expected a list of at most 2 elements, got a list of 3"),
    (List(Int(0, 3), 2), [1, 4], r"\[1\]: expected an integer from 0 to 3, got 4"),
    (Nullable(Int(0, 3)), 4, "expected an integer from 0 to 3, got 4"),
    (AnyValue(2), [[[[]]]], "nested more than 2 levels deep"),
]


@pytest.mark.parametrize(("kind", "value", "kept"), GOOD)
def test_what_is_let_through(kind: ValueType, value: Any, kept: Any) -> None:
    found = kind.make_checker()(value)
    assert found == kept and type(found) is type(kept)


@pytest.mark.parametrize(("kind", "value", "text"), BAD)
def test_what_is_refused(kind: ValueType, value: Any, text: str) -> None:
    with pytest.raises(Malformed, match=text):
        kind.make_checker()(value)


def one_of(kind: ValueType) -> Schema[Any]:
    """The schema of a record of one item, declared at this moment."""
    return Schema(dataclasses.make_dataclass("One", [("x", Any, record_field(kind, "it"))], frozen=True))


ALL = [kind for kind, *_ in (*GOOD, *BAD)]
ODD = [None, True, 0, 1, -1, 2.0, 0.5, 2**64, -(2**64), 1e308, -1e308, "", "abc", b"", b"ab", b"abc", (), [], (1.0,), (1.0, 0.5),
       [1.0, 0.5], (1, 0.5), (True, 1.0), (None, None), (1e308, 1e308), (math.inf, -math.inf), (2.0, 0.5), ([],), {}, {"a": 1},
       ((1.0, 2.0),)]  # fmt: skip


@pytest.mark.parametrize("kind", ALL)
def test_a_record_of_one_item_is_checked_as_its_item_is(kind: ValueType) -> None:
    """Whatever way the check goes: what is taken is kept the same, what is refused is refused in the same words."""
    schema, check_ = one_of(kind), kind.make_checker()
    for value in (*(v for _, v, _ in (*GOOD, *BAD)), *(k for _, _, k in GOOD), *ODD):
        for values in ((value,), [value], (value, "of the future")):
            try:
                kept = check_(value)
            except Malformed as malformed:
                with pytest.raises(Malformed) as caught:
                    schema.decode(values)
                assert str(caught.value) == str(malformed.with_prefix("x"))
            else:
                found = schema.decode(values).x
                assert repr(found) == repr(kept), "also in its types"


@pytest.mark.parametrize(("kind", "kept"), [(kind, kept) for kind, _, kept in GOOD])
def test_what_is_as_it_will_be_kept_is_sure_at_once(kind: ValueType, kept: Any) -> None:
    """The expression of a kind is true of that, where it can be checked without a loop, and of nothing that is refused."""
    expression = kind.fast_check("v")
    bounded = isinstance(kind, Numbers) and (kind.low, kind.high) != (Numbers.low, Numbers.high)
    careful = isinstance(kind, Text | List | AnyValue) or (bounded and None in kept)
    if expression is None:
        assert careful
        return
    assert eval(expression, {**FAST_CHECK_NAMES, "v": kept}) is (not careful)
    for other, value, _ in BAD:
        if repr(other) == repr(kind):
            assert eval(expression, {**FAST_CHECK_NAMES, "v": value}) is False


def test_numbers_with_gaps_are_sure_at_once() -> None:
    """As each answer of a navigator without a range has one."""
    test = Numbers(4, allow_nil=True).fast_check("v")
    assert test is not None
    for value, sure in (
        ((1.0, None, 3.0), True),
        ((), True),
        ((None,), True),
        ((1, None), False),
        ((math.nan, None), False),
        ((math.inf, None), False),
        ((None,) * 5, False),
        ([1.0], False),
    ):
        assert eval(test, {**FAST_CHECK_NAMES, "v": value}) is sure, value


def test_what_travels_of_records_within_records() -> None:
    points = (Point(1.0, 2.0), Point(3.0, 4.0))
    listed, maybe = List(Struct(Point), 3).make_encoder(), Nullable(Struct(Point)).make_encoder()
    assert listed is not None and maybe is not None
    assert listed(points) == [(1.0, 2.0), (3.0, 4.0)] and maybe(points[0]) == (1.0, 2.0) and maybe(None) is None
    for kind in (List(Int(), 3), Nullable(Int()), Int(), Numbers(3), AnyValue(2)):
        assert kind.make_encoder() is None, "it travels as it is kept"
    for kind, value, there in (
        (List(Struct(Point), 3), points, ([(1.0, 2.0), (3.0, 4.0)],)),
        (Int(0, 9), 3, (3,)),
        (Nullable(Struct(Point)), None, (None,)),
        (Nullable(Struct(Point)), points[1], ((3.0, 4.0),)),
    ):
        schema = one_of(kind)
        assert schema.encode(schema.record(value)) == there and schema.decode(there).x == value
        assert schema.check(schema.record(value)).x == value


def test_records_of_none_one_and_several_items() -> None:
    empty = Schema(dataclasses.make_dataclass("Empty", [], frozen=True))
    assert empty.encode(empty.record()) == () and empty.decode(()) == empty.decode([1, 2]) == empty.record()
    several = Schema(
        dataclasses.make_dataclass(
            "Several",
            [
                ("a", Any, record_field(Int(0, 9), "first")),
                ("b", Any, record_field(List(Int(), 2), "second", "m")),
                ("c", Any, record_field(Int(0, 9), "third", "s", optional=True, default=7)),
            ],
            frozen=True,
        )
    )
    assert several.decode((1, [2], 3)) == several.record(1, (2,), 3) and several.decode([1, ()]) == several.record(
        1, ()
    )
    assert several.encode(several.record(1, (2,))) == (1, (2,), 7)
    assert (
        several.from_dict({"a": 1, "b": [2]})
        == several.record(1, (2,))
        == several.from_dict({"b": (2,), "c": 7, "a": 1})
    )
    assert several.to_dict(several.record(1, (2,), 3)) == {"a": 1, "b": (2,), "c": 3}
    assert several.describe() == [
        {"name": "a", "type": "int", "minimum": 0, "maximum": 9, "doc": "first"},
        {"name": "b", "type": "list", "least": 0, "most": 2, "of": Int().describe(), "unit": "m", "doc": "second"},
        {"name": "c", "type": "int", "minimum": 0, "maximum": 9, "unit": "s", "doc": "third", "optional": True},
    ]
    assert several.markdown_rows() == [
        "| `a` | int 0..9 |  | first |",
        "| `b` | list (at most 2) of int -2^63..2^63-1 | m | second |",
        "| `c` | int 0..9 | s | third |",
    ]
    assert empty.markdown_rows() == [] and empty.describe() == []
    for values, text in (
        ((), "expected 2 items, got a list of 0"),
        ((1,), "expected 2 items, got a list of 1"),
        ((1, (), 10), "c: expected an integer from 0 to 9, got 10"),
        ((1, [None]), "b[0]: expected an integer"),
        (None, "expected 2 items, got None"),
        ({1: 2}, "expected 2 items, got dict"),
    ):
        with pytest.raises(Malformed) as caught:
            several.decode(values)
        assert str(caught.value).startswith(text)


def test_two_items_and_what_may_be_left_out() -> None:
    two = Schema(
        dataclasses.make_dataclass(
            "Two",
            [
                ("a", Any, record_field(Int(0, 9), "first")),
                ("b", Any, record_field(AnyValue(2), "second", optional=True, default_factory=list)),
            ],
            frozen=True,
        )
    )
    assert two.encode(two.record(1, 2)) == (1, 2) and two.decode((1,)) == two.record(1, [])
    with pytest.raises(Malformed, match=r"^a: expected an integer from 0 to 9, got 10$"):
        two.decode((10,))
    with pytest.raises(Malformed, match=r"^missing a$"):
        two.from_dict({})
    with pytest.raises(Malformed, match=rf"^unknown field '{'x' * 40}'; valid fields: a, b$"):
        two.from_dict({"a": 1, "x" * 50: 2})
    empty = Schema(dataclasses.make_dataclass("Empty", [], frozen=True))
    with pytest.raises(Malformed, match=r"^unknown field 'x'; valid fields: none$"):
        empty.from_dict({"x": 1})


def test_a_record_has_one_schema_and_its_bytes_are_msgpack() -> None:
    record = dataclasses.make_dataclass("Any", [("x", Any, record_field(AnyValue(4), "it"))], frozen=True)
    assert schema_of(record) is schema_of(record) and schema_of(record) is not schema_of(Nothing)
    assert unpack(record, msgpack.packb([[1, {2: [3]}]])) == record((1, {2: (3,)}))
    for bad in (b"", b"\xc1", b"\x91", b"\x91\x01\x02"):
        with pytest.raises(Malformed, match=r"^not msgpack: \w*(Error|Exception|Data|Format\w*)$"):
            unpack(record, bad)
    with pytest.raises(Malformed, match=r"^expected a list whose first element is a number$"):
        TaggedUnion("shapes", {1: Point}).decode([])


def test_kinds_that_only_the_servers_processes_use() -> None:
    numbered = TaggedItem("shapes")
    assert numbered.make_checker()([9, None]) == [9, None] and eval(numbered.fast_check("v") or "", {"v": None}) is True
    assert numbered.describe() == {"type": "numbered", "family": "shapes"}
    assert numbered.markdown() == "[`kind` int, ...] (see shapes)"
    assert (AnyValue(3).markdown(), AnyValue(3).describe(), AnyValue(3).make_encoder()) == (
        "any",
        {"type": "any"},
        None,
    )
    for value, good in (
        ({"a": {"b": 1}}, True),
        ({"a": {"b": [1]}}, False),
        ([[1]], True),
        ([[[1]]], False),
        ((), True),
    ):
        if good:
            assert AnyValue(2).make_checker()(value) is value
        else:
            with pytest.raises(Malformed, match="nested more than 2 levels deep"):
                AnyValue(2).make_checker()(value)


def test_a_record_there_and_back() -> None:
    route = Route("a", (Point(1.0, 2.0), Point(3.0, 4.0)), None, 2)
    assert schema_of(Route).encode(route) == ("a", [(1.0, 2.0), (3.0, 4.0)], None, 2)
    assert unpack(Route, pack(route)) == route == check(route)
    assert unpack(Nothing, pack(Nothing())) == Nothing()


def test_the_place_of_an_error_is_named() -> None:
    for values, text in (
        (
            ["a", [[1.0, 2.0], [3.0, 40.0]], None],
            r"^points\[1\]\.y: expected a finite number from -10 to 10, got 40.0$",
        ),
        (["a", [[1.0, 2.0], [3.0]], None], r"^points\[1\]: expected 2 items, got a list of 1$"),
        (["a" * 9, [], None], r"^name: the text has 9 bytes; the maximum is 8$"),
        (["a", []], r"^expected 3 items, got a list of 2$"),
        (17, r"^expected 3 items, got 17$"),
    ):
        with pytest.raises(Malformed, match=text):
            schema_of(Route).decode(values)


def test_records_grow_at_their_end() -> None:
    """An old receiver ignores what it does not know; a new one takes the default of what an old sender leaves out."""
    assert schema_of(Route).decode(["a", [], 1.5, 3, "new", {"x": 1}]) == Route("a", (), 1.5, 3)
    assert schema_of(Route).decode(["a", [], 1.5]) == Route("a", (), 1.5, 1)


def test_an_optional_item_stands_at_the_end() -> None:
    @dataclass(frozen=True, slots=True)
    class Bad:
        a: int = record_field(Int(), "", optional=True, default=0)
        b: int = record_field(Int(), "", default=0)

    with pytest.raises(TypeError, match="optional items must be at the end"):
        schema_of(Bad)


def test_values_by_name() -> None:
    assert schema_of(Route).from_dict({"name": "a", "points": [[1, 2]], "speed": None}) == Route(
        "a", (Point(1.0, 2.0),), None
    )
    assert schema_of(Route).to_dict(Route("a", (), 1.5)) == {"name": "a", "points": [], "speed": 1.5, "laps": 1}
    for values, text in (
        ({"name": "a", "lap": 2}, "unknown field 'lap'; valid fields: name, points, speed, laps"),
        ({"name": 3}, "name: expected text, got 3"),
        ({"name": "a"}, "missing points, speed"),
    ):
        with pytest.raises(Malformed, match=text):
            schema_of(Route).from_dict(values)


def test_a_family_tells_its_members_apart() -> None:
    family = TaggedUnion("shapes", {1: Point, 7: Nothing})
    assert family.encode(Point(1.0, 2.0)) == (1, 1.0, 2.0) and family.decode([1, 1.0, 2.0, "new"]) == Point(1.0, 2.0)
    assert family.encode(Nothing()) == (7,) and family.decode((7,)) == Nothing()
    assert family.decode([2, "of the future"]) is None
    for bad in ([], 1, ["1"], [True], [1], [1, 1.0], [1, 1.0, math.nan], None, "x", {}):
        with pytest.raises(Malformed):
            family.decode(bad)


def test_texts_are_made_clean() -> None:
    assert sanitise_text("a\nb\x00c\u202ed", 400) == "a b c d"
    assert sanitise_text("\u00e4" * 10, 5) == "\u00e4\u00e4"
    assert sanitise_text("\ud800x", 9) == "?x"
    for text in ("a\nb" * 200, "\U0001f6a2" * 200, ""):
        assert Text(400).make_checker()(sanitise_text(text, 400)) == sanitise_text(text, 400)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
def test_foreign_bytes_are_malformed_or_a_record(data: bytes) -> None:
    for record in (Route, Point, Nothing, Ping):
        try:
            found = unpack(record, data)
        except Malformed:
            continue
        assert isinstance(found, record)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=1000, deadline=None)
@given(st.sampled_from([EVENTS, REQUESTS]), st.integers(0, 12), st.lists(values, max_size=15))
def test_items_of_any_values_are_malformed_or_what_they_say(family: TaggedUnion, number: int, rest: list[Any]) -> None:
    """What comes through can be sent again and is the same."""
    try:
        found = family.decode([number, *rest])
    except Malformed:
        return
    if found is not None:
        again = msgpack.unpackb(msgpack.packb(family.encode(found)))
        assert family.decode(again) == found


def test_the_machine_readable_schema_says_everything() -> None:
    protocol = json.loads(protocol_export.protocol_json())
    assert protocol["version"] == 2 and len(protocol["messages"]) == 22
    for group in ("messages", "events", "requests"):
        for entry in protocol[group]:
            for field in entry["fields"]:
                assert field["type"] in ("int", "float", "str", "bin", "list", "numbered") and field["doc"], entry[
                    "name"
                ]
    join = next(m for m in protocol["messages"] if m["name"] == "JOIN")
    assert [f["name"] for f in join["fields"]][:4] == ["cookie", "nonce", "name", "role"]
    assert next(f for f in join["fields"] if f["name"] == "lockstep_ns")["maximum"] == 2**62
    assert protocol["sensors"]["ctd"][0] == {
        "name": "pressure",
        "unit": "dbar",
        "count": 1,
        "doc": "Absolute pressure.",
    }
    assert protocol["outcomes"]["HEARD"] == 0 and protocol["rights"]["CONTROL"] == 32
