"""Declarations: what they let through, what they refuse and how they say it, and what follows from them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavesim_sdk.wire import document
from wavesim_sdk.wire.items import EVENTS, REQUESTS, Ping
from wavesim_sdk.wire.kinds import Kind
from wavesim_sdk.wire.schema import (
    Bin,
    Family,
    Int,
    List,
    Malformed,
    Maybe,
    Number,
    Numbers,
    Plain,
    Struct,
    Text,
    check,
    clean,
    item,
    pack,
    schema_of,
    unpack,
)


@dataclass(frozen=True, slots=True)
class Point:
    x: float = item(Number(-10.0, 10.0), "north", "m")
    y: float = item(Number(-10.0, 10.0), "east", "m")


@dataclass(frozen=True, slots=True)
class Route:
    name: str = item(Text(8), "its name")
    points: tuple[Point, ...] = item(List(Struct(Point), 3), "its points")
    speed: float | None = item(Maybe(Number(0.0)), "nil = any", "m/s")
    laps: int = item(Int(1, 9), "times", default=1, optional=True)


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


GOOD: list[tuple[Kind, Any, Any]] = [
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
    (Numbers(3, gaps=True), (None, 1.0), (None, 1.0)),
    (Numbers(2, low=0.0, high=1.0), (0.0, 1), (0.0, 1.0)),
    (List(Int(0, 3), 2), [3, 0], (3, 0)),
    (Maybe(Int(0, 3)), None, None),
    (Maybe(Int(0, 3)), 2, 2),
    (Plain(2), {"a": [1]}, {"a": [1]}),
]
BAD: list[tuple[Kind, Any, str]] = [
    (Int(0, 9), 10, "10 is no whole number from 0 to 9"),
    (Int(0, 9), -1, "-1 is no whole number"),
    (Int(0, 1), True, "no whole number"),
    (Int(0, 9), 1.0, "1.0 is no whole number"),
    (Int(0, 9), None, "None is no whole number"),
    (Int(0, 2**62), 2**62 + 1, r"from 0 to 2\^62"),
    (Number(), math.nan, "nan is no finite number"),
    (Number(), math.inf, "inf is no finite number"),
    (Number(), 10**400, "no finite number"),
    (Number(), True, "no finite number"),
    (Number(), "1", "1 characters is no finite number"),
    (Number(0.0, 1.0), 1.5, r"1.5 is no finite number 0..1"),
    (Text(4), "\u00e4\u00f6\u00fc", "it has 6 bytes; 4 may be"),
    (Text(4), "abcde", "it has 5 bytes; 4 may be"),
    (Text(9), "a\nb", "control characters"),
    (Text(9), "a\x7f", "control characters"),
    (Text(9), "a\u202eb", "control characters"),
    (Text(9), b"a", "1 bytes is no text"),
    (Text(9), "\ud800", "no Unicode"),
    (Bin(2, 3), b"a", "1 bytes where 2 to 3 bytes belong"),
    (Bin(2, 3), b"abcd", "4 bytes"),
    (Bin(2, 3), "abc", "3 characters where"),
    (Numbers(2), (1.0, 2.0, 3.0), "a list of 3 where a list of at most 2 numbers belongs"),
    (Numbers(exact=2), (1.0,), "a list of 1 where a list of 2 numbers belongs"),
    (Numbers(exact=2), (1.0, 2.0, 3.0), "a list of 3 where a list of 2 numbers belongs"),
    (Numbers(3), (1.0, None), r"\[1\]: None is no finite number"),
    (Numbers(3), (1.0, math.nan), r"\[1\]: nan"),
    (Numbers(3), (1.0, [1.0]), r"\[1\]: a list of 1"),
    (Numbers(3, gaps=True), (None, math.inf), r"\[1\]: inf"),
    (Numbers(3, low=0.0), (1.0, -1.0), r"\[1\]: -1.0 is no finite number"),
    (Numbers(3), "123", "3 characters where a list"),
    (Numbers(3), {}, "dict where a list"),
    (List(Int(0, 3), 2), [1, 2, 3], "a list of 3 where a list of at most 2 belongs"),
    (List(Int(0, 3), 2), [1, 4], r"\[1\]: 4 is no whole number"),
    (Maybe(Int(0, 3)), 4, "4 is no whole number"),
    (Plain(2), [[[[]]]], "nested deeper than 2"),
]


@pytest.mark.parametrize(("kind", "value", "kept"), GOOD, ids=repr)
def test_what_is_let_through(kind: Kind, value: Any, kept: Any) -> None:
    found = kind.checker()(value)
    assert found == kept and type(found) is type(kept)


@pytest.mark.parametrize(("kind", "value", "text"), BAD, ids=repr)
def test_what_is_refused(kind: Kind, value: Any, text: str) -> None:
    with pytest.raises(Malformed, match=text):
        kind.checker()(value)


def test_a_record_there_and_back() -> None:
    route = Route("a", (Point(1.0, 2.0), Point(3.0, 4.0)), None, 2)
    assert schema_of(Route).encode(route) == ("a", [(1.0, 2.0), (3.0, 4.0)], None, 2)
    assert unpack(Route, pack(route)) == route == check(route)
    assert unpack(Nothing, pack(Nothing())) == Nothing()


def test_the_place_of_an_error_is_named() -> None:
    for values, text in (
        (["a", [[1.0, 2.0], [3.0, 40.0]], None], r"^points\[1\]\.y: 40.0 is no finite number -10..10$"),
        (["a", [[1.0, 2.0], [3.0]], None], r"^points\[1\]: a list of 1 where 2 items belong$"),
        (["a" * 9, [], None], r"^name: it has 9 bytes; 8 may be$"),
        (["a", []], r"^a list of 2 where 3 items belong$"),
        (17, r"^17 where 3 items belong$"),
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
        a: int = item(Int(), "", optional=True, default=0)
        b: int = item(Int(), "", default=0)

    with pytest.raises(TypeError, match="optional items stand at the end"):
        schema_of(Bad)


def test_values_by_name() -> None:
    assert schema_of(Route).from_map({"name": "a", "points": [[1, 2]], "speed": None}) == Route(
        "a", (Point(1.0, 2.0),), None
    )
    assert schema_of(Route).to_map(Route("a", (), 1.5)) == {"name": "a", "points": [], "speed": 1.5, "laps": 1}
    for values, text in (
        ({"name": "a", "lap": 2}, "there is no 'lap'; known are name, points, speed, laps"),
        ({"name": 3}, "name: 3 is no text"),
        ({"name": "a"}, "it needs points, speed"),
    ):
        with pytest.raises(Malformed, match=text):
            schema_of(Route).from_map(values)


def test_a_family_tells_its_members_apart() -> None:
    family = Family("shapes", {1: Point, 7: Nothing})
    assert family.encode(Point(1.0, 2.0)) == (1, 1.0, 2.0) and family.decode([1, 1.0, 2.0, "new"]) == Point(1.0, 2.0)
    assert family.encode(Nothing()) == (7,) and family.decode((7,)) == Nothing()
    assert family.decode([2, "of the future"]) is None
    for bad in ([], 1, ["1"], [True], [1], [1, 1.0], [1, 1.0, math.nan], None, "x", {}):
        with pytest.raises(Malformed):
            family.decode(bad)


def test_texts_are_made_clean() -> None:
    assert clean("a\nb\x00c\u202ed", 400) == "a b c d"
    assert clean("\u00e4" * 10, 5) == "\u00e4\u00e4"
    assert clean("\ud800x", 9) == "?x"
    for text in ("a\nb" * 200, "\U0001f6a2" * 200, ""):
        assert Text(400).checker()(clean(text, 400)) == clean(text, 400)


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
def test_items_of_any_values_are_malformed_or_what_they_say(family: Family, number: int, rest: list[Any]) -> None:
    """What comes through can be sent again and is the same."""
    try:
        found = family.decode([number, *rest])
    except Malformed:
        return
    if found is not None:
        again = msgpack.unpackb(msgpack.packb(family.encode(found)))
        assert family.decode(again) == found


def test_the_machine_readable_schema_says_everything() -> None:
    protocol = json.loads(document.protocol_json())
    assert protocol["version"] == 2 and len(protocol["messages"]) == 21
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
        "doc": "Absolute pressure P0 + P1 z + P2 z^2.",
    }
    assert protocol["outcomes"]["HEARD"] == 0 and protocol["rights"]["CONTROL"] == 32
