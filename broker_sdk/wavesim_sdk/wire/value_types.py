"""Types of the items in a record, with their bounds and checks."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Checker = Callable[[Any], Any]
LARGEST = sys.float_info.max
LIST_TYPES = (tuple, list)
_FLOATS = frozenset({float})
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
)  # includes characters that change the writing direction


#: names that the expressions of :meth:`ValueType.fast_check` may use
FAST_CHECK_NAMES = {
    "isfinite": math.isfinite,
    "all_floats": _FLOATS.issuperset,
    "floats_or_gaps": frozenset({float, type(None)}).issuperset,
}


class Malformed(Exception):
    """A value does not match its declaration."""

    def __init__(self, why: str, place: str = "") -> None:
        super().__init__(f"{place}: {why}" if place else why)
        self.reason, self.path = why, place

    def with_prefix(self, outer: str) -> Malformed:
        """Return a copy of this error whose path begins with the name of the enclosing item."""
        inner = self.path if not self.path or self.path.startswith("[") else f".{self.path}"
        return Malformed(self.reason, outer + inner)


def sanitise_text(text: str, most: int) -> str:
    """Return a string without control characters, truncated to at most ``most`` bytes of UTF-8."""
    text = _CONTROL.sub(" ", text)
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def describe_value(value: Any) -> str:
    """Return a value from a peer as text that is short enough for a message."""
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, str | bytes):
        return f"{len(value)} {'characters' if isinstance(value, str) else 'bytes'}"
    return repr(value)[:24] if isinstance(value, int | float) or value is None else type(value).__name__


def _bound(value: float) -> str:
    """Return a bound as human-readable text."""
    for power in (64, 63, 62, 53, 32, 31):
        if value == 2**power:
            return f"2^{power}"
        if value == 2**power - 1:
            return f"2^{power}-1"
        if value == -(2**power):
            return f"-2^{power}"
    return f"{value:g}" if isinstance(value, float) else str(value)


class ValueType:
    """Base class of all item types."""

    def make_checker(self) -> Checker:
        """Return the function that checks a value of this type. The function returns the value to keep, or raises
        Malformed.
        """
        raise NotImplementedError

    def fast_check(self, value: str) -> str | None:
        """Return a Python expression that quickly checks a value of this type, or None if there is no such expression.

        The expression is true if the variable ``value`` is valid and needs no conversion. Nearly all values pass this
        check. All other values go to the checker, which converts them or reports what is wrong. The expression may use
        the names in FAST_CHECK_NAMES.
        """
        return None

    def make_encoder(self) -> Checker | None:
        """Return the function that converts a stored value into the transmitted one, or None if both are the same."""
        return None

    def markdown(self) -> str:
        """Return the type in the notation of docs/PROTOCOL.md."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Return the type in the form of the machine-readable schema."""
        raise NotImplementedError


@dataclass(frozen=True)
class Int(ValueType):
    """An integer within bounds; true and false are not accepted."""

    low: int = -(2**63)
    high: int = 2**63 - 1

    def make_checker(self) -> Checker:
        low, high = self.low, self.high

        def check(value: Any) -> int:
            if type(value) is int and low <= value <= high:
                return value
            if isinstance(value, int) and type(value) is not bool and low <= value <= high:  # an enumeration
                return int(value)
            raise Malformed(f"expected an integer from {_bound(low)} to {_bound(high)}, got {describe_value(value)}")

        return check

    def fast_check(self, value: str) -> str | None:
        return f"type({value}) is int and {self.low} <= {value} <= {self.high}"

    def markdown(self) -> str:
        return f"int {_bound(self.low)}..{_bound(self.high)}"

    def describe(self) -> dict[str, Any]:
        return {"type": "int", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Number(ValueType):
    """A finite number within bounds; an integer is converted to a float."""

    low: float = -LARGEST
    high: float = LARGEST

    def make_checker(self) -> Checker:
        low, high, words = self.low, self.high, self._range(" from ", " to ")

        def check(value: Any) -> float:
            if type(value) is int:
                value = float(value) if -(2**64) < value < 2**64 else math.inf
            if isinstance(value, float) and low <= value <= high:  # false for NaN
                return float(value)
            raise Malformed(f"expected a finite number{words}, got {describe_value(value)}")

        return check

    def fast_check(self, value: str) -> str | None:
        return f"type({value}) is float and {self.low!r} <= {value} <= {self.high!r}"

    def _range(self, before: str, between: str) -> str:
        if self.low == -LARGEST and self.high == LARGEST:
            return ""
        return f"{before}{_bound(self.low)}{between}{_bound(self.high)}"

    def markdown(self) -> str:
        return f"float{self._range(' ', '..')}"

    def describe(self) -> dict[str, Any]:
        bounds = {"minimum": self.low, "maximum": self.high}
        return {"type": "float", **{k: v for k, v in bounds.items() if abs(v) != LARGEST}}


@dataclass(frozen=True)
class Text(ValueType):
    """A UTF-8 string without control characters, of at most ``max_bytes`` bytes."""

    max_bytes: int

    def make_checker(self) -> Checker:
        most, control = self.max_bytes, _CONTROL.search

        def check(value: Any) -> str:
            if type(value) is not str:
                raise Malformed(f"expected text, got {describe_value(value)}")
            if not (value.isascii() and value.isprintable()) and control(value):
                raise Malformed("the text has control characters")
            try:
                size = len(value) if value.isascii() else len(value.encode())
            except UnicodeEncodeError:
                raise Malformed("the text is not valid Unicode") from None
            if size > most:
                raise Malformed(f"the text has {size} bytes; the maximum is {most}")
            return value

        return check

    def markdown(self) -> str:
        return f"str ({self.max_bytes})"

    def describe(self) -> dict[str, Any]:
        return {"type": "str", "most_bytes": self.max_bytes}


@dataclass(frozen=True)
class Bin(ValueType):
    """A byte string whose length is within bounds."""

    min_bytes: int
    max_bytes: int

    def make_checker(self) -> Checker:
        least, most = self.min_bytes, self.max_bytes

        def check(value: Any) -> bytes:
            if type(value) is bytes and least <= len(value) <= most:
                return value
            raise Malformed(f"expected {least} to {most} bytes, got {describe_value(value)}")

        return check

    def fast_check(self, value: str) -> str | None:
        return f"type({value}) is bytes and {self.min_bytes} <= len({value}) <= {self.max_bytes}"

    def markdown(self) -> str:
        return (
            f"bin ({self.min_bytes})"
            if self.min_bytes == self.max_bytes
            else f"bin ({self.min_bytes}..{self.max_bytes})"
        )

    def describe(self) -> dict[str, Any]:
        return {"type": "bin", "least_bytes": self.min_bytes, "most_bytes": self.max_bytes}


@dataclass(frozen=True)
class Numbers(ValueType):
    """A list of finite numbers within bounds: exactly ``exact`` of them, or at most ``max_count``. ``allow_nil``
    permits nil in place of a missing number.
    """

    max_count: int = 0
    exact: int = 0
    allow_nil: bool = False
    low: float = -LARGEST
    high: float = LARGEST

    def make_checker(self) -> Checker:
        least, most = self.exact, self.exact or self.max_count
        bounded = (self.low, self.high) != (-LARGEST, LARGEST)
        number = Number(self.low, self.high).make_checker()
        gaps, finite = self.allow_nil, math.isfinite

        def check(value: Any) -> tuple[float | None, ...]:
            if type(value) not in LIST_TYPES or not least <= len(value) <= most:
                count = str(most) if least else f"at most {most}"
                raise Malformed(f"expected a list of {count} numbers, got {describe_value(value)}")
            if not bounded and _FLOATS.issuperset(map(type, value)) and all(map(finite, value)):
                return tuple(value)  # the usual case, without a call for each number
            kept: list[float | None] = []
            for k, v in enumerate(value):
                try:
                    kept.append(None if gaps and v is None else number(v))
                except Malformed as error:
                    raise error.with_prefix(f"[{k}]") from None
            return tuple(kept)

        return check

    def fast_check(self, value: str) -> str | None:
        size = f"type({value}) is tuple and {self.exact} <= len({value}) <= {self.exact or self.max_count}"
        finite = f"all_floats(map(type, {value})) and isfinite(sum({value}))"  # the sum reveals NaN and infinity
        if self.allow_nil and (self.low, self.high) == (-LARGEST, LARGEST):
            return f"{size} and floats_or_gaps(map(type, {value})) and isfinite(sum([x for x in {value} if x is not None]))"
        if (self.low, self.high) == (-LARGEST, LARGEST):
            return f"{size} and {finite}"
        return (
            f"{size} and {finite} and (not {value} or {self.low!r} <= min({value}) and max({value}) <= {self.high!r})"
        )

    def markdown(self) -> str:
        of = Number(self.low, self.high).markdown() + ("\\|nil" if self.allow_nil else "")
        return f"list ({self.exact}) of {of}" if self.exact else f"list (at most {self.max_count}) of {of}"

    def describe(self) -> dict[str, Any]:
        of = {**Number(self.low, self.high).describe(), **({"nil": True} if self.allow_nil else {})}
        return {"type": "list", "least": self.exact, "most": self.exact or self.max_count, "of": of}


@dataclass(frozen=True)
class List(ValueType):
    """A list of at most ``max_count`` elements."""

    element: ValueType
    max_count: int

    def make_checker(self) -> Checker:
        most, one = self.max_count, self.element.make_checker()

        def check(value: Any) -> tuple[Any, ...]:
            if type(value) not in LIST_TYPES or len(value) > most:
                raise Malformed(f"expected a list of at most {most} elements, got {describe_value(value)}")
            try:
                return tuple([one(v) for v in value])
            except Malformed:
                for k, v in enumerate(value):
                    try:
                        one(v)
                    except Malformed as error:
                        raise error.with_prefix(f"[{k}]") from None
                raise

        return check

    def make_encoder(self) -> Checker | None:
        one = self.element.make_encoder()
        return None if one is None else lambda value: [one(v) for v in value]

    def markdown(self) -> str:
        return f"list (at most {self.max_count}) of {self.element.markdown()}"

    def describe(self) -> dict[str, Any]:
        return {"type": "list", "least": 0, "most": self.max_count, "of": self.element.describe()}


@dataclass(frozen=True)
class Nullable(ValueType):
    """A value of another type, or nil."""

    value_type: ValueType

    def make_checker(self) -> Checker:
        some = self.value_type.make_checker()
        return lambda value: None if value is None else some(value)

    def fast_check(self, value: str) -> str | None:
        some = self.value_type.fast_check(value)
        return None if some is None else f"({value} is None or {some})"

    def make_encoder(self) -> Checker | None:
        some = self.value_type.make_encoder()
        return None if some is None else lambda value: None if value is None else some(value)

    def markdown(self) -> str:
        return f"{self.value_type.markdown()}\\|nil"

    def describe(self) -> dict[str, Any]:
        return {**self.value_type.describe(), "nil": True}


@dataclass(frozen=True)
class TaggedItem(ValueType):
    """Type of an item in a :class:`TaggedUnion`; the item is transmitted after the number of its type.

    The item remains a plain list at this stage. The union decodes each item separately, so that an invalid item does
    not affect its neighbours.
    """

    family: str

    def make_checker(self) -> Checker:
        return lambda value: value

    def fast_check(self, value: str) -> str | None:
        return "True"

    def markdown(self) -> str:
        return f"[`kind` int, ...] (see {self.family})"

    def describe(self) -> dict[str, Any]:
        return {"type": "numbered", "family": self.family}


@dataclass(frozen=True)
class AnyValue(ValueType):
    """Any msgpack value up to a maximum nesting depth. Only the processes of one server use this type; peers never do."""

    depth: int = 8

    def make_checker(self) -> Checker:
        most = self.depth

        def check(value: Any) -> Any:
            level = [value]
            for _ in range(most + 1):
                level = [c for v in level if isinstance(v, list | tuple | dict) for c in _children(v)]
                if not level:
                    return value
            raise Malformed(f"the value is nested more than {most} levels deep")

        return check

    def markdown(self) -> str:
        return "any"

    def describe(self) -> dict[str, Any]:
        return {"type": "any"}


def _children(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value)
