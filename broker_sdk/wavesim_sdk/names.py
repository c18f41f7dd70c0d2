"""Names that people write, and the help they get when one is wrong."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or the list of what is allowed."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; allowed are: {', '.join(known)}" if known else ""


def shown(value: object, most: int = 40) -> str:
    """A value that somebody sent, for a message: short, and whatever it is no error."""
    try:
        text = value if isinstance(value, str) else reprlib.repr(value)
    except Exception:  # a number of thousands of digits, an object whose repr fails
        text = f"a {type(value).__name__}"
    return text[:most]
