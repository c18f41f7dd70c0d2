"""Result of a world: its hash, counts of events, and the failure if there was one."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from dataclasses import dataclass, field

KEPT = 25  #: number of recent events that are stored


class Broken(BaseException):  # no containment may catch it
    """An invariant is violated."""


@dataclass(frozen=True)
class Report:
    """The result of one run of one seed."""

    seed: int
    hash: str
    steps: int
    time: float  #: virtual time in s
    counts: Counter[str] = field(default_factory=Counter)
    broken: str = ""  #: violated invariant; empty = none
    trouble: str = ""  #: traceback, and output on standard error
    last: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Return the first words of the failure, which are the same for seeds that find the same fault."""
        return self.broken.split(":")[0][:80]

    def __str__(self) -> str:
        if not self.broken:
            return f"seed {self.seed}: well after {self.steps} steps, {self.time:.2f} s; hash {self.hash}"
        lines = [f"seed {self.seed} broke at step {self.steps}, {self.time:.4f} s: {self.broken}"]
        if self.last:
            lines += ["the last things that happened:", *(f"  {line}" for line in self.last)]
        if self.trouble:
            lines += ["", self.trouble]
        return "\n".join(lines)


class Trace:
    """Summary of the events of a world: a hash of all of them, counts, and the last ones for people."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._hash = hashlib.blake2b(digest_size=8)
        self._last: deque[tuple[float, str, tuple[object, ...]]] = deque(maxlen=KEPT)

    def note(self, now: float, what: str, *more: object) -> None:
        """Record an event. ``what`` is one of a few words, and ``more`` contains the details."""
        self.counts[what] += 1
        self._last.append((now, what, more))
        self._hash.update(f"{now:.9f} {what} {more}".encode("utf-8", "replace"))

    def data(self, data: bytes) -> None:
        """Add bytes only to the hash."""
        self._hash.update(data)

    @property
    def hash(self) -> str:
        """Return a value that is equal for equal runs."""
        return self._hash.hexdigest()

    @property
    def last(self) -> tuple[str, ...]:
        """Return the last events, one line each."""
        return tuple(f"{now:9.4f} {what} {' '.join(map(_short, more))}".rstrip() for now, what, more in self._last)


def _short(thing: object) -> str:
    text = thing if isinstance(thing, str) else repr(thing)
    return text if len(text) <= 160 else f"{text[:150]} ... ({len(text)})"
