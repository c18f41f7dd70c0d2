"""Containment of the viewer's own errors. Each error is counted, shown in the page and printed on the console.

A viewer that freezes silently is worse than one that reports missing data. Each item that the viewer reads or sends is
therefore a separate *part*. If a part raises an exception, the viewer omits it from the current frame and tries it
again with the next frame. All other parts continue.
"""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator

from wavesim_sdk.terminal_text import echo

MOST_KINDS = 100  #: maximum number of distinct errors; further errors are counted together


def print_line(text: str) -> None:
    """Print a line on the console."""
    echo(text, err=True)


class LogThrottle:
    """Filter that passes the 1st, 10th, 100th ... occurrence of an error, so that repetitions do not flood the console."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, kind: str) -> int:
        """Count an occurrence of an error. Return the number of its occurrences so far if it should be reported now,
        otherwise 0.
        """
        kind = kind if kind in self.counts or len(self.counts) < MOST_KINDS else "others"
        self.counts[kind] += 1
        n = self.counts[kind]
        return n if str(n).strip("0") == "1" else 0


class ErrorRegistry:
    """Errors of the viewer, by the part that raised them."""

    def __init__(self, write_line: Callable[[str], None] = print_line) -> None:
        self.total = 0
        #: last error of each failing part; the entry is removed when the part works again
        self.failed_parts: dict[str, str] = {}
        self._print_line, self._often = write_line, LogThrottle()

    @contextlib.contextmanager
    def contain(self, name: str) -> Iterator[None]:
        """Run a part. An exception ends only this part."""
        try:
            yield
        except Exception as error:  # last line of defence: see the module docstring
            text = self.record(name, error)
            if name in self.failed_parts or len(self.failed_parts) < MOST_KINDS:
                self.failed_parts[name] = text
        else:
            self.failed_parts.pop(name, None)

    def discard(self, prefix: str, current: Collection[str]) -> None:
        """Forget the failed parts whose names have this prefix, except the ``current`` ones."""
        for name in [n for n in self.failed_parts if n.startswith(prefix) and n not in current]:
            del self.failed_parts[name]

    def record(self, part: str, error: Exception) -> str:
        """Count an error that a part has raised, and report the error on the console. Return its text."""
        self.total += 1
        text = f"{type(error).__name__}: {error}"[:300]
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        if n := self._often.count(f"{part} {type(error).__name__} {place}"):
            again = "" if n == 1 else f" ({n} times so far)"
            self._print_line(f"wavesim viz: {part} failed{again}; everything else continues")
            if n == 1:
                self._print_line("".join(traceback.format_exception(error)).rstrip())
        return text
