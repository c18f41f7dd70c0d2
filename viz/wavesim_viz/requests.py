"""Messages from a page on its websocket, validated here before anything acts on them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from wavesim_sdk.actuators import MAX_ACTUATORS
from wavesim_sdk.errors import WaveSimError

MOST_ROW = 1 << 24
MOST_VALUE = 1e12
MOST_LETTERS, MOST_WORD, MOST_VALUES = 32, 64, 8
MOST_WAYPOINTS = 1000  #: of a mission
MOST_PICTURES = 8  #: sonars that a page may show
COMMANDER_VERBS = ("push", "pose", "weather")


class InvalidRequest(WaveSimError):
    """A page sent a message that the viewer's page never sends; ``kind`` is counted."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Request the data of one body; None: of no body."""

    row: int | None


@dataclass(frozen=True, slots=True)
class PicturesRequest:
    """Request the frames of these sonars, (row, name) each, and of no others."""

    sonars: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """Start, stop, seek and so on."""

    verb: str
    value: float | None


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """Inject a fault into a part of a body."""

    row: int
    part: str
    kind: str
    amount: str
    field: str


@dataclass(frozen=True, slots=True)
class AcknowledgeRequest:
    """Acknowledge an alarm; None: all."""

    number: int | None


@dataclass(frozen=True, slots=True)
class CommanderRequest:
    """Apply a force, move a body, change the weather, send a mission: a commander verb with its values; ``row`` None: not
    for a body.
    """

    verb: str
    row: int | None
    values: dict[str, float | list[float]]


@dataclass(frozen=True, slots=True)
class DriveRequest:
    """Drive a body from a page: shares of its actuator ranges, -1 to 1; None: leave."""

    body: str
    shares: tuple[float | None, ...] | None


def _no_constant(name: str) -> Any:
    raise InvalidRequest("number", f"{name} is not a JSON number")


Request = (
    WatchRequest
    | PicturesRequest
    | ControlRequest
    | FaultRequest
    | AcknowledgeRequest
    | CommanderRequest
    | DriveRequest
)


def parse_request(text: str) -> Request:
    """Decode the request in a message from a page; :class:`InvalidRequest` if it is not valid."""
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InvalidRequest("json", "invalid JSON") from None
    match message:
        case {"do": "watch", "row": None}:
            return WatchRequest(None)
        case {"do": "watch", "row": row}:
            return WatchRequest(_row(row))
        case {"do": "pictures", "sonars": list() as sonars} if len(sonars) <= MOST_PICTURES:
            return PicturesRequest(tuple(_sonar(s) for s in sonars))
        case {"do": "control", "verb": str() as verb} if 0 < len(verb) <= MOST_LETTERS and verb.isascii():
            return ControlRequest(verb, _value(message.get("value")))
        case {"do": "fault", "row": row, "part": part, "kind": kind, "amount": amount, "field": field}:
            return FaultRequest(_row(row), _word(part), _word(kind), _word(amount, 0), _word(field, 0))
        case {"do": "order", "verb": str() as verb, "row": row, "values": dict() as values} if verb in COMMANDER_VERBS:
            return CommanderRequest(verb, None if row is None else _row(row), _values(values))
        case {"do": "order", "verb": "mission", "row": row, "values": {"points": list() as points}}:
            return CommanderRequest("mission", _row(row), _values({"points": points}, 4 * MOST_WAYPOINTS))
        case {"do": "drive", "body": body, "shares": None}:
            return DriveRequest(_word(body), None)
        case {"do": "drive", "body": body, "shares": list() as shares} if len(shares) <= MAX_ACTUATORS:
            return DriveRequest(_word(body), tuple(_value(v) for v in shares))
        case {"do": "acknowledge", "alarm": None}:
            return AcknowledgeRequest(None)
        case {"do": "acknowledge", "alarm": number}:
            return AcknowledgeRequest(_row(number))
    raise InvalidRequest("request", "unknown request")


def _sonar(given: Any) -> tuple[int, str]:
    match given:
        case [row, name]:
            return _row(row), _word(name)
    raise InvalidRequest("sonar", "a sonar must be given as [row, name]")


def _values(given: dict[str, Any], most: int = MOST_VALUES) -> dict[str, float | list[float]]:
    if len(given) > MOST_VALUES:
        raise InvalidRequest("values", f"an order takes at most {MOST_VALUES} values")
    found: dict[str, float | list[float]] = {}
    for name, value in given.items():
        numbers = [_value(v) for v in (value if isinstance(value, list) and len(value) <= most else [value])]
        good = [v for v in numbers if v is not None]
        if len(good) != len(numbers):
            raise InvalidRequest("number", "expected a number as value")
        found[_word(name)] = good if isinstance(value, list) else good[0]
    return found


def _row(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_ROW:
        raise InvalidRequest("row", "there is no such row")
    return value


def _word(value: Any, least: int = 1) -> str:
    if not isinstance(value, str) or not least <= len(value) <= MOST_WORD or not value.isprintable():
        raise InvalidRequest("word", f"a word may have at most {MOST_WORD} letters")
    return value


def _value(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest("number", "expected a number as value")
    # an integer beyond the range of a float is compared before it is converted
    if not -MOST_VALUE <= value <= MOST_VALUE or not math.isfinite(value):
        raise InvalidRequest("number", f"a value must lie within {MOST_VALUE:g}")
    return value
