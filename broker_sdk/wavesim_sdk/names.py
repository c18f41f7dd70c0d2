"""Validation of names that users type, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable

from wavesim_sdk.errors import ConfigError

_SERVER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


def server_name(name: str) -> str:
    """Check and return the name of a server, which becomes part of the names of its shared memory, queues and files.

    Raises ConfigError if the server name is invalid.
    """
    if not _SERVER.fullmatch(name):
        raise ConfigError(
            f"invalid server name '{shorten(name)}': use 1 to 64 letters, digits, - and _, and do not start with -"
        )
    return name


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: ``; did you mean 'x'?``, or a list of the valid names if no name is similar."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; allowed: {', '.join(known)}" if known else ""


def shorten(value: object, most: int = 40) -> str:
    """Return an untrusted value as a short text for a message. This function never raises an exception."""
    try:
        text = value if isinstance(value, str) else reprlib.repr(value)
    except Exception:  # a number with thousands of digits, or an object whose repr fails
        text = f"a {type(value).__name__}"
    return text[:most]
