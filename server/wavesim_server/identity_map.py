"""Mapping whose keys are compared by identity. Models, for example, can be equal and still be different objects."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class IdentityMap(MutableMapping[Key, Value]):
    """Mapping from the identity of keys to values. It keeps its keys alive, so that no identity is reused."""

    def __init__(self) -> None:
        self._items: dict[int, tuple[Key, Value]] = {}

    def __getitem__(self, key: Key) -> Value:
        return self._items[id(key)][1]

    def __setitem__(self, key: Key, value: Value) -> None:
        self._items[id(key)] = key, value

    def __delitem__(self, key: Key) -> None:
        del self._items[id(key)]

    def __contains__(self, key: object) -> bool:
        return id(key) in self._items

    def __iter__(self) -> Iterator[Key]:
        return (key for key, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __getstate__(self) -> list[tuple[Key, Value]]:
        """Return the items, because identities are valid only in this process."""
        return list(self._items.values())

    def __setstate__(self, items: list[tuple[Key, Value]]) -> None:
        self._items = {id(key): (key, value) for key, value in items}
