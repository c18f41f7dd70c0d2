"""Building blocks for declaring the configuration: one frozen dataclass per XML element.

Each attribute of an element is a field made by :func:`key`, and each child element a field made by :func:`child` or
:func:`children`. The reader, the XSD and ``docs/CONFIG.md`` all derive from these fields, so the unit, default and
range of each key are written only once.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

REQUIRED: Any = object()
Vector = tuple[float, ...]


def type_name(of: type) -> str:
    """Return the name of an element's type in the XSD, the reference and the configurator."""
    return of.__name__.removesuffix("Config") or "Config"


@dataclass(frozen=True)
class Key:
    """Declaration of an XML attribute: its quantity (empty for a pure number), the count and range of its numbers, and
    its description.
    """

    name: str
    kind: str  # "number", "integer", "text", "choice", "flag", "numbers" (element text)
    doc: str
    quantity: str = ""
    count: int = 1
    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  #: words that are allowed instead of a number

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Child:
    """Declaration of a child element: its class, and whether it may be absent or repeated."""

    name: str
    of: type
    doc: str
    many: bool = False
    required: bool = False
    least: int = 0


def key(
    doc: str,
    quantity: str = "",
    default: Any = REQUIRED,
    *,
    count: int = 1,
    low: float | None = None,
    high: float | None = None,
    integer: bool = False,
    name: str = "",
) -> Any:
    """Declare an attribute that contains ``count`` numbers (0 = any number of them) with a unit of ``quantity``.

    ``name`` is the XML name of the attribute, if Python does not allow that name for a field.
    """
    kind = "integer" if integer else "number"
    return _field(Key(name, kind, doc, quantity, count, default, low, high), default)


def key_or_word(
    word: str,
    doc: str,
    quantity: str,
    default: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    name: str = "",
    count: int = 1,
) -> Any:
    """Declare an attribute that contains either ``count`` numbers or ``word``."""
    return _field(Key(name, "number", doc, quantity, count, default, low, high, words=(word,)), default)


def text(doc: str, default: Any = REQUIRED, *, name: str = "") -> Any:
    return _field(Key(name, "text", doc, default=default), default)


def choice(doc: str, choices: tuple[str, ...], default: Any = REQUIRED) -> Any:
    return _field(Key("", "choice", doc, default=default, choices=choices), default)


def flag(doc: str, default: bool) -> Any:
    return _field(Key("", "flag", doc, default=default), default)


def content(doc: str, count: int = 0) -> Any:
    """Declare the numbers between the tags of the element; ``count`` is their number (0 = any)."""
    return _field(Key("", "numbers", doc, count=count, default=()), ())


def child(of: type, doc: str, *, required: bool = False) -> Any:
    return dataclasses.field(
        default=None,
        metadata={"schema": Child("", of, doc, required=required)},
        kw_only=True,
    )


def children(of: type, doc: str, *, name: str = "", least: int = 0) -> Any:
    return dataclasses.field(
        default=(),
        metadata={"schema": Child(name, of, doc, many=True, least=least)},
        kw_only=True,
    )


def place() -> Any:
    """Declare the field that holds the position of the element as ``file:line``. The reader sets it."""
    return dataclasses.field(default="", metadata={"place": True}, kw_only=True, compare=False)


def order() -> Any:
    """Declare the field that holds the number of the element among its siblings, counted from 0. The reader sets it."""
    return dataclasses.field(default=0, metadata={"order": True}, kw_only=True, compare=False)


def _field(schema: Key, default: Any) -> Any:
    if default is REQUIRED:
        return dataclasses.field(metadata={"schema": schema}, kw_only=True)
    return dataclasses.field(default=default, metadata={"schema": schema}, kw_only=True)


def keys(of: type) -> tuple[tuple[str, Key], ...]:
    """Return the attributes of an element class, as pairs of the field name and the declaration with its XML name."""
    return _declared(of)[0]


def child_elements(of: type) -> tuple[tuple[str, Child], ...]:
    """Return the child elements of an element class, as pairs of the field name and the declaration with its XML
    name.
    """
    return _declared(of)[1]


@functools.cache  # the reader calls it for every element
def _declared(of: type) -> tuple[tuple[tuple[str, Key], ...], tuple[tuple[str, Child], ...]]:
    found = [(f.name, f.metadata.get("schema")) for f in dataclasses.fields(of)]
    return (
        tuple((name, dataclasses.replace(s, name=s.name or name)) for name, s in found if isinstance(s, Key)),
        tuple(
            (name, dataclasses.replace(s, name=s.name or name.replace("_", "-")))
            for name, s in found
            if isinstance(s, Child)
        ),
    )
