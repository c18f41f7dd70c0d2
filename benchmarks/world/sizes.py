"""Sizes of all queues, tables and lists. A size that grows and never shrinks is a leak."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

DEPTH = 9
ENOUGH = 12  #: maximum number of elements of a container that are inspected
_ATOMS = (
    int,
    float,
    str,
    bytes,
    bool,
    type(None),
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    complex,
    np.generic,
)


def sizes(roots: Mapping[str, Any], skip: Set[str] = frozenset()) -> dict[str, int]:
    """Place -> how many things are in the container there; things of equal place (such as all sessions) are added up.

    ``skip`` names attributes that are not followed.
    """
    found: dict[str, int] = {}
    seen: set[int] = set()
    for name, root in roots.items():
        _walk(root, name, DEPTH, found, seen, skip)
    return found


def _walk(thing: Any, place: str, depth: int, found: dict[str, int], seen: set[int], skip: Set[str]) -> None:
    if depth == 0 or isinstance(thing, _ATOMS) or id(thing) in seen:
        return
    if isinstance(thing, np.ndarray):
        found[place] = found.get(place, 0) + thing.size
        return
    if isinstance(thing, bytearray):
        found[place] = found.get(place, 0) + len(thing)
        return
    seen.add(id(thing))
    if isinstance(thing, dict | list | set | frozenset | tuple | deque):
        if not isinstance(thing, tuple | frozenset):
            found[place] = found.get(place, 0) + len(thing)
        parts = thing.values() if isinstance(thing, dict) else thing
        for _, part in zip(range(ENOUGH), parts, strict=False):
            _walk(part, f"{place}[]", depth - 1, found, seen, skip)
        return
    if isinstance(thing, types.MethodType):
        return
    module = type(thing).__module__
    if not module.startswith(("wavesim", "benchmarks")):
        return
    for name, part in _attributes(thing):
        if name not in skip:
            _walk(part, f"{place}.{name}", depth - 1, found, seen, skip)


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name):
                yield name, getattr(thing, name)
