"""A command in its own process, with its output."""

from __future__ import annotations

import subprocess
import threading
import time

from tests.nursery import launch


class Program:
    """`wavesim ...`. Its words are read as they come, so that it never waits for us."""

    def __init__(self, *arguments: str) -> None:
        self.process = launch(*arguments, stderr=subprocess.PIPE)
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            self._lines.extend(lines)

    @property
    def said(self) -> str:
        """All that it has said until now."""
        return "".join(self._lines)

    def wait(self, text: str, seconds: float = 150.0) -> None:
        """Until it has said this."""
        limit = time.monotonic() + seconds
        while text not in self.said:
            over = not self._reader.is_alive() and text not in self.said
            assert not over, f"it ended and had not said '{text}': {self.said}"
            assert time.monotonic() < limit, f"'{text}' was not said in {seconds:g} s: {self.said}"
            time.sleep(0.01)

    def kill(self) -> None:
        """As by kill -9."""
        self.process.kill()
        self._over()

    def end(self) -> str:
        """End it as a user does, if it has not ended; what it said."""
        if self.process.poll() is None:
            self.process.terminate()
        return self._over()

    def _over(self) -> str:
        self.process.wait(60)
        self._reader.join(60)
        return self.said
