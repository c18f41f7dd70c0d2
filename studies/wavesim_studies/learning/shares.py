"""Division of the blocks of copies among threads, and the tables of the arrays with which each thread works."""

from __future__ import annotations

import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_server import array_tables


class Shares:
    """Consecutive shares of ``blocks`` blocks, one for each thread."""

    def __init__(self, blocks: int) -> None:
        self.blocks, self.count = blocks, 1
        self.states: list[Any] = []  #: state of each thread; the tables contain the addresses of its arrays
        self._parts: tuple[Any, ...] = ()  # what the states were made of
        self._tables: list[Any] = []
        self._pool: ThreadPoolExecutor | None = None

    def set_threads(self, count: int) -> None:
        """Divide the blocks among ``count`` threads. Raise ConfigError if ``count`` is below 1."""
        if count < 1:
            raise ConfigError(f"invalid number of threads {count}: use at least 1")
        if self._pool is not None:
            self._pool.shutdown()
        self._pool = ThreadPoolExecutor(count - 1, "wavesim-learning") if count > 1 else None
        self.count, self._parts = count, ()

    def tables(
        self, parts: tuple[Any, ...], make: Callable[[], Any], pack: Callable[[Any], Any] = array_tables.pack
    ) -> list[Any]:
        """Return the table of each thread: ``pack(make())``, where ``make`` returns the state of a thread.

        The tables are rebuilt if one of ``parts`` has been replaced by another object, or if the number of threads has
        been set.
        """
        if len(self._parts) != len(parts) or any(map(operator.is_not, parts, self._parts)):
            self._parts = parts
            self.states = [make() for _ in range(self.count)]
            self._tables = [pack(state) for state in self.states]
        return self._tables

    def run(self, work: Callable[[int, int, int], Any]) -> None:
        """Call ``work(thread, first block, end block)`` for each share, and wait until all calls have returned."""
        ends = [round(k * self.blocks / self.count) for k in range(self.count + 1)]
        others = [self._pool.submit(work, k, ends[k], ends[k + 1]) for k in range(1, self.count) if self._pool]
        try:
            work(0, ends[0], ends[1])
        finally:  # an interrupt takes effect only when no thread works on the copies any more
            for other in others:
                other.result()
