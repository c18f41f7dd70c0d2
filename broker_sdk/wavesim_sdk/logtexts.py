"""What the plain messages and the metadata of a log look like: those of a foreign hand are checked before anybody uses them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from wavesim_sdk.tables import BodyType, RunState

Check = Callable[[Any], bool]


def is_text(value: Any) -> bool:
    """Whether a value is a text for a line, of no great length."""
    return isinstance(value, str) and len(value) <= 4096 and value.isprintable()


def _one_of(words: Iterable[str]) -> Check:
    known = {w.lower() for w in words}
    return lambda value: isinstance(value, str) and value in known


def _grid(value: Any) -> bool:
    """Rows of numbers or None, one number at least."""
    rows = value if isinstance(value, list) else []
    cells = [c for row in rows if isinstance(row, list) for c in row]
    return (
        any(map(_number, cells))
        and all(c is None or _number(c) for c in cells)
        and all(isinstance(r, list) for r in rows)
    )


def _axis(value: Any) -> bool:
    return isinstance(value, list) and 1 < len(value) <= 2000 and all(map(_number, value))


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _row(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not _flag(value) and abs(value) < 1e300  # false for NaN, too


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def _each(**checks: Check) -> Check:
    """A list of objects."""
    return lambda value: isinstance(value, list) and all(_has(v, checks) for v in value)


def _map(value: Any) -> bool:
    return isinstance(value, dict)


def _has(value: Any, checks: Mapping[str, Check]) -> bool:
    return isinstance(value, dict) and all(name in value and check(value[name]) for name, check in checks.items())


#: topic -> what its messages must have
NEEDED: dict[str, dict[str, Check]] = {
    "/bodies": {
        "row": _row,
        "name": is_text,
        "model": is_text,
        "type": _one_of(BodyType.__members__),
        "present": _flag,
    },
    "/run": {"state": _one_of(RunState.__members__)},
    "/commands": {"sender": is_text, "verb": is_text, "arguments": _map},
    "/faults": {"body": is_text, "part": is_text, "kind": is_text, "begins": _flag},
    "/frozen": {"bodies": _texts},
    "/notices": {"body": is_text, "text": is_text},
    "/host/damage": {"text": is_text},
    "/world/bed": {"north": _axis, "east": _axis, "depth": _grid},
}
#: and what they may have
OPTIONAL: dict[str, dict[str, Check]] = {
    "/bodies": {
        "actuators": _each(name=is_text, kind=is_text, unit=is_text),
        "instruments": _each(name=is_text, type=is_text),
    },
    "/faults": {"amount": _number, "field": is_text},
    "/world/bed": {"mean": _number},
}


def well_formed(topic: str, value: Any) -> dict[str, Any]:
    """The message, if it can be one of its topic; ValueError if not."""
    if not _has(value, NEEDED.get(topic, {})):
        raise ValueError(f"no message of {topic}")
    if not all(check(value[name]) for name, check in OPTIONAL.get(topic, {}).items() if name in value):
        raise ValueError(f"no message of {topic}")
    if topic == "/world/bed" and [len(row) for row in value["depth"]] != [len(value["east"])] * len(value["north"]):
        raise ValueError(f"no message of {topic}")
    if topic == "/host/health" and not all(map(_number, value.values())):
        raise ValueError(f"no message of {topic}")
    found: dict[str, Any] = value
    return found


def sound(metadata: Mapping[str, str]) -> dict[str, str]:
    """The metadata without the values that nobody can read."""
    found = dict(metadata)
    for name, check in (("versions", _map), ("origin", _place), ("step_ns", _step)):
        if name in found and not check(_plain(found[name])):
            del found[name]
    return found


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _place(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(map(_number, value))
        and all(abs(v) <= math.pi for v in value)
    )


def _step(value: Any) -> bool:
    return type(value) is int and 0 < value <= 10**12
