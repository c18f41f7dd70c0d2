"""Code shared by the stand-ins for flight stacks."""

from __future__ import annotations

import threading


class StandIn(threading.Thread):
    """A stack in a thread: flies until it is done, or until :meth:`die` is called. What went wrong stands in ``error``."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.error: Exception | None = None
        self.over = threading.Event()

    def die(self) -> None:
        """As by kill -9: not a word more, its sockets are closed."""
        self.over.set()
        self.join(10)

    def done(self, timeout: float) -> None:
        """It has flown to its end, and nothing went wrong."""
        self.join(timeout)
        assert not self.is_alive() and self.error is None, self.error

    def run(self) -> None:
        try:
            self.fly()
        except Exception as error:
            self.error = error

    def fly(self) -> None:
        """To its end."""
        raise NotImplementedError
