"""Typed records, each declared once, for datagrams, events, requests and the messages between the server's processes.

    @dataclass(frozen=True, slots=True)
    class Ping:
        frequency: float = record_field(Number(0.0, 1e9), "carrier", "Hz")
        level: float | None = record_field(Nullable(Number()), "source level; nil = the transducer's own", "dB re 1 uPa at 1 m")

A record is transmitted as the array of its items, in order. The declaration defines its checks (:meth:`Schema.decode`
raises only :class:`Malformed`), its encoding, its line in docs/PROTOCOL.md and its entry in the machine-readable
schema. A record may grow only at its end: a receiver ignores elements after those that it knows, and uses the default
value of a missing ``optional`` item.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import msgpack

from wavesim_sdk.wire.value_types import (
    FAST_CHECK_NAMES,
    LIST_TYPES,
    AnyValue,
    Bin,
    Checker,
    Int,
    List,
    Malformed,
    Nullable,
    Number,
    Numbers,
    TaggedItem,
    Text,
    ValueType,
    describe_value,
    sanitise_text,
)

__all__ = [
    "AnyValue",
    "Bin",
    "Int",
    "List",
    "Malformed",
    "Nullable",
    "Number",
    "Numbers",
    "RecordField",
    "Schema",
    "Struct",
    "TaggedItem",
    "TaggedUnion",
    "Text",
    "ValueType",
    "check",
    "pack",
    "record_field",
    "sanitise_text",
    "schema_of",
    "unpack",
]

T = TypeVar("T")


@dataclass(frozen=True)
class RecordField:
    """One declared item of a record."""

    name: str
    value_type: ValueType
    unit: str
    doc: str
    optional: bool


def record_field(kind: ValueType, doc: str, unit: str = "", optional: bool = False, **default: Any) -> Any:
    """Declare a field of a record: ``record_field(Int(0, 9), "its meaning", "s", default=0)``.

    The default value applies when Python code creates a record. In a datagram, only an ``optional`` field may be
    missing.
    """
    return dataclasses.field(metadata={"item": (kind, doc, unit, optional)}, **default)


class Schema(Generic[T]):
    """Checks and encoder of a record type, prepared once from its declaration."""

    def __init__(self, record: type[T]) -> None:
        self.record = record
        self.fields = tuple(RecordField(f.name, *_declared(f)) for f in dataclasses.fields(record))  # type: ignore[arg-type]  # T is a dataclass
        must = [k for k, i in enumerate(self.fields) if not i.optional]
        self.required_count = must[-1] + 1 if must else 0
        if len(must) != self.required_count:
            raise TypeError(f"{record.__name__}: optional items must be at the end")
        self._checks = tuple(i.value_type.make_checker() for i in self.fields)
        names = [i.name for i in self.fields]
        self._get: Callable[[T], tuple[Any, ...]]
        if len(names) > 1:
            self._get = operator.attrgetter(*names)
        elif names:
            only = operator.attrgetter(names[0])
            self._get = lambda record: (only(record),)
        else:
            self._get = lambda record: ()
        self.decode: Callable[[Any], T] = self._quick()
        encoders = [(k, i.value_type.make_encoder()) for k, i in enumerate(self.fields)]
        self._encoders = tuple((k, e) for k, e in encoders if e is not None)

    def _quick(self) -> Callable[[Any], T]:
        """Return the ``decode`` function, which checks received values and makes a record of them. It raises Malformed,
        naming the invalid value, if a value is invalid.

        ``decode`` is one generated function for all items, because a separate call for each item would take most of the
        time spent on a datagram. Values that fail its quick tests go to :meth:`_carefully`.
        """
        names = [f"v{k}" for k in range(len(self.fields))]
        tests, calls = [f"type(values) is tuple and len(values) == {len(names)}"], []
        for k, (name, i) in enumerate(zip(names, self.fields, strict=True)):
            if (test := i.value_type.fast_check(name)) is not None:
                tests.append(test)
            else:
                calls.append(f"{name} = check{k}({name})")
        listed = "".join(f"{name}, " for name in names)
        lines = [
            "def decode(values):",
            f"    if {tests[0]}:",
            f"        {listed}= values" if names else "        pass",
            f"        if {' and '.join(tests[1:]) or 'True'}:",
            "            try:",
            *(f"                {call}" for call in calls),
            f"                return record({listed})",
            "            except Malformed:",
            "                pass",
            "    return carefully(values)",
        ]
        known = {**FAST_CHECK_NAMES, "record": self.record, "carefully": self._carefully, "Malformed": Malformed}
        known |= {f"check{k}": check for k, check in enumerate(self._checks)}
        exec("\n".join(lines), known)  # only from declarations in this program
        return cast("Callable[[Any], T]", known["decode"])

    def _carefully(self, values: Any) -> T:
        if type(values) not in LIST_TYPES or len(values) < self.required_count:
            raise Malformed(f"expected {self.required_count} items, got {describe_value(values)}")
        try:
            return self.record(*[check(v) for check, v in zip(self._checks, values, strict=False)])
        except Malformed:
            for i, check, v in zip(self.fields, self._checks, values, strict=False):
                try:
                    check(v)
                except Malformed as error:
                    raise error.with_prefix(i.name) from None
            raise

    def encode(self, record: T) -> tuple[Any, ...]:
        """Return the values of a record without checking them; see :meth:`check`."""
        values = self._get(record)
        if not self._encoders:
            return values
        changed = list(values)
        for k, encoder in self._encoders:
            changed[k] = encoder(changed[k])
        return tuple(changed)

    def check(self, record: T) -> T:
        """Return the record as a receiver decodes it. Raises Malformed if a receiver would reject it."""
        return self.decode(self.encode(record))

    def from_dict(self, values: Mapping[str, Any]) -> T:
        """Return a record made from named values, for example from JSON. Values that have a default may be missing."""
        known = {i.name: check for i, check in zip(self.fields, self._checks, strict=True)}
        for name in values:
            if name not in known:
                raise Malformed(f"unknown field '{str(name)[:40]}'; valid fields: {', '.join(known) or 'none'}")
        kept = {}
        for name, check in known.items():
            if name in values:
                try:
                    kept[name] = check(values[name])
                except Malformed as error:
                    raise error.with_prefix(name) from None
        try:
            return self.record(**kept)
        except TypeError:
            missing = [f.name for f in dataclasses.fields(self.record) if f.name not in kept and _bare(f)]  # type: ignore[arg-type]  # T is a dataclass
            raise Malformed(f"missing {', '.join(missing)}") from None

    def to_dict(self, record: T) -> dict[str, Any]:
        """Return the values of a record by name."""
        return dict(zip((i.name for i in self.fields), self.encode(record), strict=True))

    def describe(self) -> list[dict[str, Any]]:
        """Return the fields in a record in the form of the machine-readable schema."""
        return [
            {
                "name": i.name,
                **i.value_type.describe(),
                **({"unit": i.unit} if i.unit else {}),
                "doc": i.doc,
                **({"optional": True} if i.optional else {}),
            }
            for i in self.fields
        ]

    def markdown_rows(self) -> list[str]:
        """Return the fields in a record as rows of a Markdown table: name, type, unit and meaning."""
        return [f"| `{i.name}` | {i.value_type.markdown()} | {i.unit} | {i.doc} |" for i in self.fields]


@dataclass(frozen=True)
class Struct(ValueType):
    """Type of a nested record, which is transmitted as the array of its items."""

    record: type[Any]

    def make_checker(self) -> Checker:
        return schema_of(self.record).decode

    def make_encoder(self) -> Checker | None:
        return schema_of(self.record).encode

    def markdown(self) -> str:
        return "[" + ", ".join(f"`{i.name}` {i.value_type.markdown()}" for i in schema_of(self.record).fields) + "]"

    def describe(self) -> dict[str, Any]:
        return {"type": "struct", "name": self.record.__name__, "fields": schema_of(self.record).describe()}


def _declared(field: dataclasses.Field[Any]) -> tuple[ValueType, str, str, bool]:
    kind, doc, unit, optional = field.metadata["item"]
    return kind, unit, doc, optional


def _bare(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


_known: dict[type[Any], Schema[Any]] = {}
_pack = msgpack.Packer().pack  # one packer for all: each packer allocates its own buffer


def schema_of(record: type[T]) -> Schema[T]:
    """Return the schema of a declared record."""
    known = _known.get(record)
    if known is None:
        known = _known[record] = Schema(record)
    return cast("Schema[T]", known)


def check(record: T) -> T:
    """Check all values of a record and return the record. Raises Malformed if a value is invalid."""
    return schema_of(type(record)).check(record)


def pack(record: Any) -> bytes:
    """Return a record as bytes."""
    data: bytes = msgpack.packb(schema_of(type(record)).encode(record))
    return data


def unpack(record: type[T], data: bytes) -> T:
    """Return the record in these bytes. Raises Malformed if they are invalid."""
    try:
        values = msgpack.unpackb(data, use_list=False, strict_map_key=False)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # the errors of msgpack
        raise Malformed(f"not msgpack: {type(error).__name__}") from None
    return schema_of(record).decode(values)


class TaggedUnion:
    """Union of records, such as events. The number of its type precedes each record. Unknown numbers belong
    to later versions.
    """

    def __init__(self, name: str, records: Mapping[int, type[Any]]) -> None:
        self.name, self.records = name, dict(records)
        self.numbers = {record: int(number) for number, record in self.records.items()}
        self._decode = {int(n): schema_of(r).decode for n, r in self.records.items()}
        self._encode = {r: schema_of(r).encode for r in self.numbers}
        self._lengths = {int(n): 1 + len(schema_of(r).fields) for n, r in self.records.items()}

    def encode(self, record: Any) -> tuple[Any, ...]:
        """Return the number and the values of a record."""
        kind = type(record)
        return (self.numbers[kind], *self._encode[kind](record))

    def decode(self, values: Any) -> Any:
        """Return the record, or None if its number is unknown. Raises Malformed if the values do not match the type
        with this number.
        """
        if type(values) not in LIST_TYPES or not values or type(values[0]) is not int:
            raise Malformed("expected a list whose first element is a number")
        decode = self._decode.get(values[0])
        return None if decode is None else decode(values[1:])

    def pack(self, record: Any) -> bytes:
        """Return the number and the values of a record as bytes."""
        data: bytes = _pack(self.encode(record))
        return data

    def pack_checked(self, values: Any) -> bytes:
        """Return a number and its values as bytes, without unused elements. The values must have passed :meth:`decode`."""
        data: bytes = _pack(values[: self._lengths[values[0]]])
        return data

    def unpack(self, data: bytes) -> Any:
        """Return the record encoded in bytes from :meth:`pack` or :meth:`pack_checked`."""
        return self.decode(msgpack.unpackb(data, use_list=False))
