"""Names that people write, and the help they get when one is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or the list of what is allowed."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; allowed are: {', '.join(known)}" if known else ""
