"""Validation of the requests that a page sends on its websocket, before they have any effect."""

from __future__ import annotations

import json
import math
from typing import Any

from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.mission_status import VEHICLE_ACTIONS
from wavesim_viz.page_content import FenceInfo
from wavesim_viz.page_protocol import (
    AcknowledgeRequest,
    CommanderRequest,
    ControlRequest,
    DetailsRequest,
    DriveRequest,
    FaultRequest,
    FencesRequest,
    MosaicRequest,
    PageRequest,
    PicturesRequest,
    ShelveRequest,
    VehicleCommandRequest,
    WatchRequest,
)

MOST_ROW = 1 << 24
MOST_VALUE = 1e12
MOST_LETTERS, MOST_WORD, MOST_VALUES = 32, 64, 8
MOST_WAYPOINTS = 1000  #: maximum number of waypoints in a mission
MOST_FENCES = 1024  #: maximum number of fences in a request, and maximum number of corners of each fence
MOST_PICTURES = 8  #: maximum number of sonars and cameras that a page may show
MOST_SHELVED_S = 86_400.0  #: maximum simulation time in s for which a page may shelve an alarm
#: number of values in a point (north, east, down, speed) and in the axes of manual control (ahead, starboard, down,
#: turn)
FOUR = 4
MOST_ACTUATORS = 64
COMMANDER_VERBS = ("push", "pose", "weather")


class InvalidRequest(WaveSimError):
    """Raised when a page sends a message that the viewer's own page never sends. The viewer counts these errors by
    ``kind``.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def _no_constant(name: str) -> Any:
    raise InvalidRequest("number", f"{name} is not a JSON number")


def parse_request(text: str) -> PageRequest:
    """Decode the request in a message from a page. Raise :class:`InvalidRequest` if it is not valid."""
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InvalidRequest("json", "invalid JSON") from None
    match message:
        case {"do": "watch", "row": row}:
            return WatchRequest(None if row is None else _row(row))
        case {"do": "details"}:
            return DetailsRequest()
        case {"do": "pictures", "sonars": list() as sonars} if len(sonars) <= MOST_PICTURES:
            return PicturesRequest(tuple(_sonar(s) for s in sonars))
        case {"do": "mosaic", "on": bool() as on}:
            return MosaicRequest(on)
        case {"do": "control", "verb": str() as verb} if 0 < len(verb) <= MOST_LETTERS and verb.isascii():
            return ControlRequest(verb, _value(message.get("value")))
        case {"do": "fault", "row": row, "part": part, "kind": kind, "amount": amount, "field": field}:
            return FaultRequest(_row(row), _word(part), _word(kind), _word(amount, 0), _word(field, 0))
        case {"do": "order", "verb": str() as verb, "row": row, "values": dict() as values} if verb in COMMANDER_VERBS:
            return CommanderRequest(verb, None if row is None else _row(row), _values(values))
        case {"do": "order", "verb": "mission", "row": row, "values": {"points": list() as points}}:
            return CommanderRequest("mission", _row(row), _values({"points": points}, 4 * MOST_WAYPOINTS))
        case {"do": "fences", "changes": list() as changes} if len(changes) <= MOST_FENCES:
            return FencesRequest(tuple(_fence(c) for c in changes))
        case {"do": "command", "row": row, "number": number, "action": str() as action, "point": point} if (
            action in VEHICLE_ACTIONS
        ):
            return VehicleCommandRequest(_row(row), _row(number), action, _four(point, "point"))
        case {"do": "drive", "body": body, "axes": axes, "mapping": "allocation" | "force" | "actuators" as mapping}:
            return DriveRequest(_word(body), _demands(axes, mapping), mapping)
        case {"do": "acknowledge", "alarm": number}:
            return AcknowledgeRequest(None if number is None else _row(number))
        case {"do": "shelve", "alarm": number, "seconds": seconds}:
            return ShelveRequest(_row(number), _seconds(seconds))
    raise InvalidRequest("request", "unknown request")


def _sonar(sonar: Any) -> tuple[int, str, int]:
    match sonar:
        case [row, name, channel]:
            return _row(row), _word(name), _row(channel)
    raise InvalidRequest("sonar", "invalid sonar: expected [row, name, channel]")


def _values(values: dict[str, Any], most: int = MOST_VALUES) -> dict[str, float | list[float]]:
    if len(values) > MOST_VALUES:
        raise InvalidRequest("values", f"too many values in a command: the maximum is {MOST_VALUES}")
    found: dict[str, float | list[float]] = {}
    for name, value in values.items():
        numbers = [_value(v) for v in (value if isinstance(value, list) and len(value) <= most else [value])]
        good = [v for v in numbers if v is not None]
        if len(good) != len(numbers):
            raise InvalidRequest("number", "invalid value: expected a number")
        found[_word(name)] = good if isinstance(value, list) else good[0]
    return found


def _fence(change: Any) -> FenceInfo:
    match change:
        case {"name": name, "keep": keep, "corners": list() as corners} if len(corners) <= MOST_FENCES:
            return {"name": _word(name), "keep": _word(keep), "corners": [_corner(c) for c in corners]}
    raise InvalidRequest("fence", "invalid fence: expected name, keep and corners")


def _corner(corner: Any) -> tuple[float, float]:
    match corner:
        case [north, east]:
            n, e = _value(north), _value(east)
            if n is not None and e is not None:
                return n, e
    raise InvalidRequest("number", "invalid corner: expected [north, east]")


def _row(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_ROW:
        raise InvalidRequest("row", "unknown row")
    return value


def _four(value: Any, what: str) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers = [_value(v) for v in value] if isinstance(value, list) and len(value) == FOUR else []
    if not numbers or None in numbers:
        raise InvalidRequest("number", f"invalid {what}: expected {FOUR} numbers")
    return tuple(v for v in numbers if v is not None)


def _demands(value: Any, mapping: str) -> tuple[float, ...] | None:
    """Return the demands of manual control: four numbers, or a fraction for each actuator."""
    if value is None or mapping != "actuators":
        return _four(value, "axes")
    numbers = [_value(v) for v in value] if isinstance(value, list) and 0 < len(value) <= MOST_ACTUATORS else []
    found = tuple(v for v in numbers if v is not None and abs(v) <= 1.0)
    if not found or len(found) != len(numbers):
        raise InvalidRequest("number", f"invalid axes: expected 1 to {MOST_ACTUATORS} numbers from -1 to 1")
    return found


def _seconds(value: Any) -> float:
    seconds = _value(value)
    if seconds is None or not 0.0 <= seconds <= MOST_SHELVED_S:
        raise InvalidRequest("number", f"invalid time: expected a number of seconds from 0 to {MOST_SHELVED_S:g}")
    return float(seconds)


def _word(value: Any, least: int = 1) -> str:
    if not isinstance(value, str) or not least <= len(value) <= MOST_WORD or not value.isprintable():
        raise InvalidRequest("word", f"invalid word: expected at most {MOST_WORD} printable characters")
    return value


def _value(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest("number", "invalid value: expected a number")
    # an integer beyond the range of a float is compared before it is converted
    if not -MOST_VALUE <= value <= MOST_VALUE or not math.isfinite(value):
        raise InvalidRequest("number", f"invalid value: expected a number from -{MOST_VALUE:g} to {MOST_VALUE:g}")
    return value
