"""Validation of call arguments, with error messages that use the caller's names for the arguments."""

from __future__ import annotations

import math
import operator
from typing import Any

from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.names import shorten
from wavesim_sdk.wire.items import Range
from wavesim_sdk.wire.messages import MAX_COORDINATE, NAME_BYTES
from wavesim_sdk.wire.schema import Malformed, schema_of
from wavesim_sdk.wire.value_types import describe_value

KEY_BYTES = 32  #: size of a pre-shared key in bytes
MAX_SECONDS = 1e9  #: maximum period in s
#: request fields whose Python arguments have other names
_RENAMED = {"at_ns": "at", "points": "waypoints", "period_ns": "period", "state_period_ns": "state_period"}


def number(name: str, value: Any, unit: str = "") -> float:
    """Check and return a finite number."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if isinstance(value, str | bytes) or not math.isfinite(found):
        raise InvalidArgument(f"{name} must be a finite number{f' of {unit}' if unit else ''}, got {shown(value)}")
    return found


def at_least_zero(name: str, value: Any, unit: str) -> float:
    """Check and return a finite number that is not negative."""
    found = number(name, value, unit)
    if found < 0.0:
        raise InvalidArgument(f"{name} must be at least 0 {unit}, got {shown(value)}")
    return found


def numbers(name: str, values: Any, count: int, unit: str, limit: float = math.inf) -> tuple[float, ...]:
    """Check and return ``count`` finite numbers within +-``limit``."""
    try:
        found = tuple(float(v) for v in values)
    except (TypeError, ValueError, OverflowError):
        found = ()
    if isinstance(values, str | bytes) or len(found) != count or not all(math.isfinite(v) for v in found):
        raise InvalidArgument(f"{name} must be {count} finite numbers ({unit}), got {shown(values)}")
    if max(map(abs, found)) > limit:
        raise InvalidArgument(f"{name} must be within +-{limit:g} {unit}, got {shown(values)}")
    return found


def whole(name: str, value: Any, unit: str = "") -> int:
    """Check and return an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgument(
            f"{name} must be a whole number{f' of {unit}' if unit else ''}, got {shown(value)}"
        ) from None


def seconds(name: str, value: Any, zero: str) -> int:
    """Convert a period in s to ns. ``zero`` states, for the error message, what a period of 0 means."""
    try:
        found = number(name, value)
    except InvalidArgument:
        found = -1.0
    if not 0.0 <= found <= MAX_SECONDS:
        raise InvalidArgument(f"{name} must be a positive number of seconds, or 0 ({zero}), got {shown(value)}")
    return round(found * 1e9)


def short_name(name: str, value: Any) -> str:
    """Check and return the name of a body, actuator or sensor; it must fit into a message."""
    if not isinstance(value, str) or len(value.encode("utf-8", "replace")) > NAME_BYTES or not _is_printable(value):
        raise InvalidArgument(f"{name} must be printable text of at most {NAME_BYTES} bytes, got {shown(value)}")
    return value


def names(name: str, values: Any) -> tuple[str, ...] | None:
    """Check and return a sequence of names. None, which means all names, is returned unchanged."""
    if values is None:
        return None
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidArgument(f'{name} must be a list of names, such as ["ctd"], or None (all), got {shown(values)}')
    return tuple(short_name(f"each name in {name}", v) for v in values)


def position(name: str, values: Any) -> tuple[float, ...]:
    """Check and return an initial position in W, in m."""
    return numbers(name, values, 3, "m: north, east, down", MAX_COORDINATE)


def attitude(name: str, values: Any) -> tuple[float, ...]:
    """Check and return an initial attitude in rad."""
    return numbers(name, values, 3, "rad: roll, pitch, heading", MAX_COORDINATE)


def payload_bytes(value: Any) -> bytes:
    """Check and return the payload of a packet."""
    if not isinstance(value, bytes | bytearray | memoryview):
        hint = "; use payload.encode()" if isinstance(value, str) else ""
        raise InvalidArgument(f"payload must be bytes, got {shown(value)}{hint}")
    return bytes(value)


def request_error(request: Any, error: Malformed) -> InvalidArgument:
    """Return the error for a request that cannot be sent. The error message uses the names of the call's arguments."""
    field, bracket, rest = error.path.partition("[")
    argument = "address" if isinstance(request, Range) else _RENAMED.get(field, field)
    unit = next((f" ({f.unit})" for f in schema_of(type(request)).fields if f.name == field and f.unit), "")
    wanted, got, found = error.reason.removeprefix("expected ").partition(", got ")
    if not got:
        return InvalidArgument(f"invalid {argument}{bracket}{rest}: {error.reason}")
    value = getattr(request, field, None)
    found = shown(value) if isinstance(value, str) else found
    return InvalidArgument(f"{argument}{bracket}{rest} must be {wanted}{unit}, got {found}")


def key_bytes(value: Any) -> bytes | None:
    """Check and return a pre-shared key. The public key of the server may follow it. None is valid and means that there
    is no key.
    """
    if value is None or (isinstance(value, bytes) and len(value) in (KEY_BYTES, 2 * KEY_BYTES)):
        return value
    # without the key itself
    raise InvalidArgument(f"key must be {KEY_BYTES} or {2 * KEY_BYTES} bytes, got {describe_value(value)}")


def _is_printable(text: str) -> bool:
    return all(c.isprintable() for c in text)


def shown(value: Any) -> str:
    """Return a short text that describes a value passed by a caller."""
    return repr(shorten(value)) if isinstance(value, str) else shorten(value, 60)
