"""What goes wrong in the viewer itself ends where it happened: it is counted, and told in the page and on the console.

A viewer that stands still without a word is worse than one that says what it lacks: so each thing that is read or sent is
a *part*; a part that raises is left out of this frame and tried again with the next, and the others go on.
"""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator

import click

MOST_KINDS = 100  #: different errors that are told apart; more are counted together


def print_line(text: str) -> None:
    """A word on the console."""
    click.echo(text, err=True)


class LogThrottle:
    """Lets the 1st, 10th, 100th ... of its kind through, so that what repeats does not flood a console."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, kind: str) -> int:
        """How many there were by now if it is to be told, else 0."""
        kind = kind if kind in self.counts or len(self.counts) < MOST_KINDS else "others"
        self.counts[kind] += 1
        n = self.counts[kind]
        return n if str(n).strip("0") == "1" else 0


class ErrorRegistry:
    """Errors of the viewer, by the part that raised them."""

    def __init__(self, tell: Callable[[str], None] = print_line) -> None:
        self.total = 0
        self.failed_parts: dict[str, str] = {}  #: part -> its last error, until it works again
        self._print_line, self._often = tell, LogThrottle()

    @contextlib.contextmanager
    def contain(self, name: str) -> Iterator[None]:
        """Run a part; whatever it raises ends it alone."""
        try:
            yield
        except Exception as error:  # the last line of defence: see the module's first sentence
            text = self.record(name, error)
            if name in self.failed_parts or len(self.failed_parts) < MOST_KINDS:
                self.failed_parts[name] = text
        else:
            self.failed_parts.pop(name, None)

    def discard(self, prefix: str, kept: Collection[str]) -> None:
        """Parts with this prefix that nobody wants any more are not missing."""
        for name in [n for n in self.failed_parts if n.startswith(prefix) and n not in kept]:
            del self.failed_parts[name]

    def record(self, part: str, error: Exception) -> str:
        """Count an error that ended one attempt, and tell the console; what is said of it."""
        self.total += 1
        text = f"{type(error).__name__}: {error}"[:300]
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        if n := self._often.count(f"{part} {type(error).__name__} {place}"):
            again = "" if n == 1 else f" ({n} times by now)"
            self._print_line(f"wavesim viz: {part} failed{again}; the rest goes on")
            if n == 1:
                self._print_line("".join(traceback.format_exception(error)).rstrip())
        return text
