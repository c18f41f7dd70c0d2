"""What an item of a record may be: its type, its bounds, and the check that follows from them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Checker = Callable[[Any], Any]
LARGEST = sys.float_info.max
LISTS = (tuple, list)
_FLOATS = frozenset({float})
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # also what turns the direction of a line


#: what the expressions of :meth:`Kind.test` may name
SURE = {
    "isfinite": math.isfinite,
    "all_floats": _FLOATS.issuperset,
    "floats_or_gaps": frozenset({float, type(None)}).issuperset,
}


class Malformed(Exception):
    """A value is not what its declaration says."""

    def __init__(self, why: str, place: str = "") -> None:
        super().__init__(f"{place}: {why}" if place else why)
        self.why, self.place = why, place

    def within(self, outer: str) -> Malformed:
        """The same, seen from one level above."""
        inner = self.place if not self.place or self.place.startswith("[") else f".{self.place}"
        return Malformed(self.why, outer + inner)


def clean(text: str, most: int) -> str:
    """A text without control characters, cut to so many bytes of UTF-8."""
    text = _CONTROL.sub(" ", text)
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def show(value: Any) -> str:
    """A foreign value, short enough for a message."""
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, str | bytes):
        return f"{len(value)} {'characters' if isinstance(value, str) else 'bytes'}"
    return repr(value)[:24] if isinstance(value, int | float) or value is None else type(value).__name__


def _bound(value: float) -> str:
    """A bound as a person reads it."""
    for power in (64, 63, 62, 53, 32, 31):
        if value == 2**power:
            return f"2^{power}"
        if value == 2**power - 1:
            return f"2^{power}-1"
        if value == -(2**power):
            return f"-2^{power}"
    return f"{value:g}" if isinstance(value, float) else str(value)


class Kind:
    """What an item may be. ``checker`` is called once for each declaration and returns what checks values."""

    def checker(self) -> Checker:
        """A function that returns the value as it is kept, or raises Malformed."""
        raise NotImplementedError

    def test(self, value: str) -> str | None:
        """Python for "this variable holds a good value, to be kept as it is", which nearly all values pass; what fails it is
        for the checker to say. It may use SURE. None = there is no such expression."""
        return None

    def encoder(self) -> Checker | None:
        """A function from the kept value to the one that travels; None = the same."""
        return None

    def words(self) -> str:
        """For the document."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """For the machine-readable schema."""
        raise NotImplementedError


@dataclass(frozen=True)
class Int(Kind):
    """A whole number within bounds; true and false are none."""

    low: int = -(2**63)
    high: int = 2**63 - 1

    def checker(self) -> Checker:
        low, high = self.low, self.high

        def check(value: Any) -> int:
            if type(value) is int and low <= value <= high:
                return value
            if isinstance(value, int) and type(value) is not bool and low <= value <= high:  # an enumeration
                return int(value)
            raise Malformed(f"{show(value)} is no whole number from {_bound(low)} to {_bound(high)}")

        return check

    def test(self, value: str) -> str | None:
        return f"type({value}) is int and {self.low} <= {value} <= {self.high}"

    def words(self) -> str:
        return f"int {_bound(self.low)}..{_bound(self.high)}"

    def describe(self) -> dict[str, Any]:
        return {"type": "int", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Number(Kind):
    """A finite number within bounds; a whole number is taken for it."""

    low: float = -LARGEST
    high: float = LARGEST

    def checker(self) -> Checker:
        low, high, words = self.low, self.high, self._range()

        def check(value: Any) -> float:
            if type(value) is int:
                value = float(value) if -(2**64) < value < 2**64 else math.inf
            if isinstance(value, float) and low <= value <= high:  # NaN is within nothing
                return float(value)
            raise Malformed(f"{show(value)} is no finite number{words}")

        return check

    def test(self, value: str) -> str | None:
        return f"type({value}) is float and {self.low!r} <= {value} <= {self.high!r}"

    def _range(self) -> str:
        if self.low == -LARGEST and self.high == LARGEST:
            return ""
        return f" {_bound(self.low)}..{_bound(self.high)}"

    def words(self) -> str:
        return f"float{self._range()}"

    def describe(self) -> dict[str, Any]:
        bounds = {"minimum": self.low, "maximum": self.high}
        return {"type": "float", **{k: v for k, v in bounds.items() if abs(v) != LARGEST}}


@dataclass(frozen=True)
class Text(Kind):
    """UTF-8 without control characters, of at most so many bytes."""

    most: int

    def checker(self) -> Checker:
        most, control = self.most, _CONTROL.search

        def check(value: Any) -> str:
            if type(value) is not str:
                raise Malformed(f"{show(value)} is no text")
            if not (value.isascii() and value.isprintable()) and control(value):
                raise Malformed("it has control characters")
            try:
                size = len(value) if value.isascii() else len(value.encode())
            except UnicodeEncodeError:
                raise Malformed("it is no Unicode") from None
            if size > most:
                raise Malformed(f"it has {size} bytes; {most} may be")
            return value

        return check

    def words(self) -> str:
        return f"str ({self.most})"

    def describe(self) -> dict[str, Any]:
        return {"type": "str", "most_bytes": self.most}


@dataclass(frozen=True)
class Bin(Kind):
    """Bytes."""

    least: int
    most: int

    def checker(self) -> Checker:
        least, most = self.least, self.most

        def check(value: Any) -> bytes:
            if type(value) is bytes and least <= len(value) <= most:
                return value
            raise Malformed(f"{show(value)} where {least} to {most} bytes belong")

        return check

    def test(self, value: str) -> str | None:
        return f"type({value}) is bytes and {self.least} <= len({value}) <= {self.most}"

    def words(self) -> str:
        return f"bin ({self.least})" if self.least == self.most else f"bin ({self.least}..{self.most})"

    def describe(self) -> dict[str, Any]:
        return {"type": "bin", "least_bytes": self.least, "most_bytes": self.most}


@dataclass(frozen=True)
class Numbers(Kind):
    """A list of finite numbers within bounds: ``exact`` of them or at most ``most``; with ``gaps``, nil stands for none."""

    most: int = 0
    exact: int = 0
    gaps: bool = False
    low: float = -LARGEST
    high: float = LARGEST

    def checker(self) -> Checker:
        least, most = self.exact, self.exact or self.most
        bounded = (self.low, self.high) != (-LARGEST, LARGEST)
        number = Number(self.low, self.high).checker()
        gaps, finite = self.gaps, math.isfinite

        def check(value: Any) -> tuple[float | None, ...]:
            if type(value) not in LISTS or not least <= len(value) <= most:
                count = str(most) if least else f"at most {most}"
                raise Malformed(f"{show(value)} where a list of {count} numbers belongs")
            if not bounded and _FLOATS.issuperset(map(type, value)) and all(map(finite, value)):
                return tuple(value)  # nearly always: no call for each number
            kept: list[float | None] = []
            for k, v in enumerate(value):
                try:
                    kept.append(None if gaps and v is None else number(v))
                except Malformed as error:
                    raise error.within(f"[{k}]") from None
            return tuple(kept)

        return check

    def test(self, value: str) -> str | None:
        size = f"type({value}) is tuple and {self.exact} <= len({value}) <= {self.exact or self.most}"
        finite = f"all_floats(map(type, {value})) and isfinite(sum({value}))"  # a sum tells NaN and infinities
        if self.gaps and (self.low, self.high) == (-LARGEST, LARGEST):
            return f"{size} and floats_or_gaps(map(type, {value})) and isfinite(sum([x for x in {value} if x is not None]))"
        if (self.low, self.high) == (-LARGEST, LARGEST):
            return f"{size} and {finite}"
        return (
            f"{size} and {finite} and (not {value} or {self.low!r} <= min({value}) and max({value}) <= {self.high!r})"
        )

    def words(self) -> str:
        of = Number(self.low, self.high).words() + ("\\|nil" if self.gaps else "")
        return f"list ({self.exact}) of {of}" if self.exact else f"list (at most {self.most}) of {of}"

    def describe(self) -> dict[str, Any]:
        of = {**Number(self.low, self.high).describe(), **({"nil": True} if self.gaps else {})}
        return {"type": "list", "least": self.exact, "most": self.exact or self.most, "of": of}


@dataclass(frozen=True)
class List(Kind):
    """A list of at most so many."""

    of: Kind
    most: int

    def checker(self) -> Checker:
        most, one = self.most, self.of.checker()

        def check(value: Any) -> tuple[Any, ...]:
            if type(value) not in LISTS or len(value) > most:
                raise Malformed(f"{show(value)} where a list of at most {most} belongs")
            try:
                return tuple([one(v) for v in value])
            except Malformed:
                for k, v in enumerate(value):
                    try:
                        one(v)
                    except Malformed as error:
                        raise error.within(f"[{k}]") from None
                raise

        return check

    def encoder(self) -> Checker | None:
        one = self.of.encoder()
        return None if one is None else lambda value: [one(v) for v in value]

    def words(self) -> str:
        return f"list (at most {self.most}) of {self.of.words()}"

    def describe(self) -> dict[str, Any]:
        return {"type": "list", "least": 0, "most": self.most, "of": self.of.describe()}


@dataclass(frozen=True)
class Maybe(Kind):
    """The kind, or nil."""

    of: Kind

    def checker(self) -> Checker:
        some = self.of.checker()
        return lambda value: None if value is None else some(value)

    def test(self, value: str) -> str | None:
        some = self.of.test(value)
        return None if some is None else f"({value} is None or {some})"

    def encoder(self) -> Checker | None:
        some = self.of.encoder()
        return None if some is None else lambda value: None if value is None else some(value)

    def words(self) -> str:
        return f"{self.of.words()}\\|nil"

    def describe(self) -> dict[str, Any]:
        return {**self.of.describe(), "nil": True}


@dataclass(frozen=True)
class Numbered(Kind):
    """An item of a :class:`Family`, its number first. It stays a plain list here: the family decodes it, one by one, so that
    a bad one does not spoil its neighbours."""

    family: str

    def checker(self) -> Checker:
        return lambda value: value

    def test(self, value: str) -> str | None:
        return "True"

    def words(self) -> str:
        return f"[`kind` int, ...]: {self.family} below"

    def describe(self) -> dict[str, Any]:
        return {"type": "numbered", "family": self.family}


@dataclass(frozen=True)
class Plain(Kind):
    """Whatever msgpack carries, nested at most so deep: for processes of one server, never for peers."""

    depth: int = 8

    def checker(self) -> Checker:
        most = self.depth

        def check(value: Any) -> Any:
            level = [value]
            for _ in range(most + 1):
                level = [c for v in level if isinstance(v, list | tuple | dict) for c in _children(v)]
                if not level:
                    return value
            raise Malformed(f"it is nested deeper than {most}")

        return check

    def words(self) -> str:
        return "any"

    def describe(self) -> dict[str, Any]:
        return {"type": "any"}


def _children(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value)
