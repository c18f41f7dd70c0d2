"""What a page may say on its websocket: checked here, before anything acts on it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from wavesim_sdk.errors import WaveSimError

MOST_ROW = 1 << 24
MOST_VALUE = 1e12
MOST_LETTERS = 32


class Nonsense(WaveSimError):
    """A page said what none of ours says; ``kind`` is counted."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Watch:
    """The data of one body are wanted; None: of none."""

    row: int | None


@dataclass(frozen=True, slots=True)
class Control:
    """Start, stop, seek and so on."""

    verb: str
    value: float | None


def _no_constant(name: str) -> Any:
    raise Nonsense("number", f"{name} is no number of JSON")


def asked(text: str) -> Watch | Control:
    """The request in a message of a page; :class:`Nonsense` if it is none."""
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Nonsense("json", "that is no JSON") from None
    match message:
        case {"do": "watch", "row": None}:
            return Watch(None)
        case {"do": "watch", "row": int() as row} if not isinstance(row, bool):
            if not 0 <= row < MOST_ROW:
                raise Nonsense("row", "there is no such row")
            return Watch(row)
        case {"do": "control", "verb": str() as verb} if 0 < len(verb) <= MOST_LETTERS and verb.isascii():
            return Control(verb, _value(message.get("value")))
    raise Nonsense("request", "that is no request of this page")


def _value(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Nonsense("number", "a value is a number")
    # an integer beyond what a float holds is compared before it is converted
    if not -MOST_VALUE <= value <= MOST_VALUE or not math.isfinite(value):
        raise Nonsense("number", f"a value lies within {MOST_VALUE:g}")
    return value
