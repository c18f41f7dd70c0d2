"""Checks of the JSON content of HTTP requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class InvalidContent(Exception):
    """Raised for content that a device rejects. The text of the exception is the error message."""


@dataclass(frozen=True)
class NumberField:
    """Setting that is a number between two limits."""

    low: float
    high: float
    is_whole: bool = False

    def check(self, name: str, value: Any) -> float | int:
        """Return the number. Raises InvalidContent if it is invalid."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            raise InvalidContent(f"{name} must be a number between {self.low:g} and {self.high:g}")
        if self.is_whole:
            if value != int(value):
                raise InvalidContent(f"{name} must be a whole number")
            return int(value)
        return float(value)


@dataclass(frozen=True)
class ChoiceField:
    """Setting that is one of several words."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any) -> str:
        """Return the word. Raises InvalidContent if it is invalid."""
        if not isinstance(value, str) or value not in self.words:
            raise InvalidContent(f"{name} must be one of {', '.join(self.words)}")
        return value


class JsonField(Protocol):
    """Interface of a setting that can check its values."""

    def check(self, name: str, value: Any) -> Any:
        """Return the value of the setting with this name. Raises InvalidContent if it is invalid."""


Fields = Mapping[str, JsonField]


def check_fields(content: Any, fields: Fields, required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the checked values of a JSON object. Raises InvalidContent if one of them is invalid."""
    if not isinstance(content, dict):
        raise InvalidContent("the content must be a JSON object")
    for name in content:
        if name not in fields:
            raise InvalidContent(f"unknown key '{name[:40]}': use {', '.join(fields)}")
    for name in required:
        if name not in content:
            raise InvalidContent(f"'{name}' is missing")
    return {name: fields[name].check(name, value) for name, value in content.items()}
