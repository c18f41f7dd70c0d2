"""Values made from declarations: ordinary values, values at the bounds, and invalid values.

This module names no message or field. It reads :meth:`wavesim_sdk.wire.schema.Schema.describe`, so that new fields are
tested automatically.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgpack

Description = Mapping[str, Any]
LARGEST = 1.7976931348623157e308
SPECIAL = (0, 1, 2, 3, 255, 256, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**62, 2**63 - 1, -1, -2, -(2**31))
TINY = (0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-9, 0.1, 1e3, -1e6, 1e300, -1e300, LARGEST)
LETTERS = ("a", "Z", "0", "-", "_", ".", "/", " ", "\u00e9", "\u65e5", "\U0001f6a2", "'", '"', "<", "&", "%", "\\")


class Absurd:
    """Draws values. ``words`` are names that have a meaning in the world."""

    def __init__(self, r: random.Random, words: Sequence[str], families: Mapping[str, Mapping[int, Any]]) -> None:
        self.random, self.words, self._families = r, list(words), families

    # -- what the declaration allows -----------------------------------------------------------------

    def good(self, d: Description) -> Any:
        """Return a valid value, ordinary or at the bounds."""
        if d.get("nil") and self.random.random() < 0.25:
            return None
        return _GOOD[d["type"]](self, d)

    def _int(self, d: Description) -> int:
        low, high = d["minimum"], d["maximum"]
        r = self.random
        how = r.random()
        if how < 0.3:
            return int(r.choice((low, high)))
        if how < 0.6:
            return int(min(max(r.choice(SPECIAL), low), high))
        if how < 0.8:
            return int(min(max(r.randrange(64), low), high))
        return r.randint(low, high)

    def _float(self, d: Description) -> float:
        low, high = d.get("minimum", -LARGEST), d.get("maximum", LARGEST)
        r = self.random
        how = r.random()
        if how < 0.2:
            return float(r.choice((low, high)))
        if how < 0.5:
            return float(min(max(r.choice(TINY), low), high))
        return float(min(max(r.gauss(0.0, 10.0 ** r.randint(-3, 6)), low), high))

    def _str(self, d: Description) -> str:
        most, r = d["most_bytes"], self.random
        how = r.random()
        if how < 0.6 and self.words:
            text = r.choice(self.words)
        elif how < 0.7:
            text = ""
        else:
            text = "".join(r.choices(LETTERS, k=r.choice((1, 3, most))))
        return text.encode()[:most].decode("utf-8", "ignore")

    def _bin(self, d: Description) -> bytes:
        least, most = d["least_bytes"], d["most_bytes"]
        return self.random.randbytes(self._size(least, min(most, 900)))

    def _size(self, least: int, most: int) -> int:
        return self.random.choice((least, min(least + 1, most), min(least + 3, most), most))

    def _list(self, d: Description) -> list[Any]:
        one = d["of"]
        each = 2 if one["type"] in ("struct", "list", "numbered") else 9
        most = max(d["least"], min(d["most"], 900 // (each * 9)))
        return [self.good(one) for _ in range(self._size(d["least"], most))]

    def _struct(self, d: Description) -> list[Any]:
        return [self.good(f) for f in d["fields"]]

    def _numbered(self, d: Description) -> list[Any]:
        return self.item(d["family"], 0.0)

    def _any(self, d: Description) -> Any:
        return self.random.choice((None, 1, "a", [1.0], {"a": [1]}))

    # -- what it does not allow ----------------------------------------------------------------------

    def bad(self, d: Description) -> Any:
        """Return a value that is well-formed msgpack but not as declared."""
        r = self.random
        if r.random() < 0.5:
            return self.nonsense()
        kind = d["type"]
        if kind == "int":
            return r.choice((d["maximum"] + 1, d["minimum"] - 1, -(2**63), 2**64 - 1, 0.5, float(d["maximum"]), True))
        if kind == "float":
            beyond = (d.get("maximum", LARGEST) * 2.0 + 1.0, d.get("minimum", -LARGEST) * 2.0 - 1.0)
            return r.choice((*beyond, float("nan"), float("inf"), float("-inf"), 2**64 - 1, "1", True))
        if kind == "str":
            return r.choice(
                ("x" * (d["most_bytes"] + 1), "a\x00b", "a\nb", "\u202eabc", b"abc", _Torn(b"\xff\xfe"), "n" * 1000)
            )
        if kind == "bin":
            return r.choice((bytes(min(d["most_bytes"], 1000) + 1), "text", b"" if d["least_bytes"] else None))
        if kind in ("list", "struct"):
            value = self.good({**d, "nil": False})
            if value and r.random() < 0.5:
                value[r.randrange(len(value))] = self.nonsense()
                return value
            return r.choice((value[:-1] if d.get("least") else value * 50, [value], [[]], {}, [None] * 40))
        return self.nonsense()

    def nonsense(self) -> Any:
        """Return any value that msgpack can encode."""
        return self.random.choice(_NONSENSE)

    # -- records -------------------------------------------------------------------------------------

    def record(self, items: Sequence[Description], bad: float, known: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the values of a record. Each is invalid with the probability ``bad``, unless ``known`` contains a
        value for it.
        """
        r = self.random
        values = [
            known[i["name"]] if known and i["name"] in known else self.bad(i) if r.random() < bad else self.good(i)
            for i in items
        ]
        if bad and r.random() < 0.1:
            return values[: r.randrange(len(values) + 1)]
        if r.random() < 0.05:
            values.append(r.choice((None, 1, "later", [1.0], {"a": 1})))  # what a later version may say
        return values

    def item(self, family: str, bad: float, number: int | None = None) -> list[Any]:
        """Return a numbered item, such as a request, with this number or any."""
        r, records = self.random, self._families[family]
        number = r.choice(sorted(records)) if number is None else number
        values = [number, *self.record(records[number], bad)]
        if bad and r.random() < 0.15:
            return r.choice([*_NO_ITEMS, [number]])
        return values


class _Torn:
    """Bytes that are sent as a text but are not valid UTF-8."""

    def __init__(self, data: bytes) -> None:
        self.data = data


def packed(value: Any) -> bytes:
    """Encode a value as msgpack, including invalid texts."""
    if isinstance(value, _Torn):
        return bytes((0xA0 | len(value.data),)) + value.data
    if isinstance(value, list | tuple):
        head = bytes((0x90 | len(value),)) if len(value) < 16 else b"\xdc" + len(value).to_bytes(2, "big")
        return head + b"".join(map(packed, value))
    try:
        data: bytes = msgpack.packb(value)
    except (OverflowError, ValueError):  # beyond 64 bits: there is no such value on the wire
        data = msgpack.packb(2**64 - 1)
    return data


#: values in place of an item
_NO_ITEMS: tuple[Any, ...] = ([], [None], [[]], ["1"], [2**63], 7, None, "x", [-1, 2], [99, 1, 2])


def _deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


_GOOD: dict[str, Callable[[Absurd, Description], Any]] = {
    "int": Absurd._int,
    "float": Absurd._float,
    "str": Absurd._str,
    "bin": Absurd._bin,
    "list": Absurd._list,
    "struct": Absurd._struct,
    "numbered": Absurd._numbered,
    "any": Absurd._any,
}
_NONSENSE: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 2**64 - 1, -(2**63), 0.5, float("nan"), float("inf"), -0.0, "", "x" * 900, b"", bytes(900),
    [], [[]], [[[]]], [[[[[[]]]]]], [None], [float("nan")] * 3, [[1.0]] * 3, [2**64 - 1] * 3, {}, {"a": 1}, {1: [2]}, _deep(60),
    msgpack.ExtType(5, b"12"), [{}], ["a"] * 70, [0.0] * 100, _Torn(b"\xc3"), "n" * 10_000,
)  # fmt: skip
