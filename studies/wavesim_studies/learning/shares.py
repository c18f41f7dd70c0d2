"""Division of the blocks of copies among threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wavesim_sdk.errors import ConfigError


class Shares:
    """Consecutive shares of ``blocks`` blocks, one for each thread."""

    def __init__(self, blocks: int) -> None:
        self.blocks, self.count = blocks, 1
        self._pool: ThreadPoolExecutor | None = None

    def set_threads(self, count: int) -> None:
        """Divide the blocks among ``count`` threads. Raise ConfigError if ``count`` is below 1."""
        if count < 1:
            raise ConfigError(f"invalid number of threads {count}: use at least 1")
        if self._pool is not None:
            self._pool.shutdown()
        self._pool = ThreadPoolExecutor(count - 1, "wavesim-learning") if count > 1 else None
        self.count = count

    def run(self, work: Callable[[int, int, int], Any]) -> None:
        """Call ``work(thread, first block, end block)`` for each share, and wait until all calls have returned."""
        ends = [round(k * self.blocks / self.count) for k in range(self.count + 1)]
        others = [self._pool.submit(work, k, ends[k], ends[k + 1]) for k in range(1, self.count) if self._pool]
        try:
            work(0, ends[0], ends[1])
        finally:  # an interrupt takes effect only when no thread works on the copies any more
            for other in others:
                other.result()
