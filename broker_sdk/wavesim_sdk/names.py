"""Names that people write, and the help they get when one is wrong."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable

from wavesim_sdk.errors import ConfigError

_SERVER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


def server_name(name: str) -> str:
    """The name of a server, which names its shared memory, queues and files too; ConfigError if it cannot."""
    if not _SERVER.fullmatch(name):
        raise ConfigError(
            f"'{shorten(name)}' is no name of a server: 1 to 64 letters, digits, - and _, no - at the beginning"
        )
    return name


def suggest_name(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or the list of what is allowed."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; allowed are: {', '.join(known)}" if known else ""


def shorten(value: object, most: int = 40) -> str:
    """A value that somebody sent, for a message: short, and whatever it is no error."""
    try:
        text = value if isinstance(value, str) else reprlib.repr(value)
    except Exception:  # a number of thousands of digits, an object whose repr fails
        text = f"a {type(value).__name__}"
    return text[:most]
