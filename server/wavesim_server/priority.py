"""The engine before everything else while it keeps wall time, where the user may ask for that (root, or `ulimit -r`)."""

from __future__ import annotations

import os

MAX_SLIPS = 3


class RealTimePriority:
    """The scheduling of this process: real-time (SCHED_FIFO) at real time or slower, else the ordinary one.

    An engine that runs as fast as it can, or cannot keep up, would starve everybody else: it never has it, and one that
    gave up wall time several times does not get it again. Nor on a machine of one processor.
    """

    def __init__(self) -> None:
        self._possible = (os.cpu_count() or 1) > 1
        self._is_realtime, self._slips = False, 0

    def set_realtime(self, realtime: bool) -> None:
        """Ask for it, or give it back."""
        if realtime == self._is_realtime or not self._possible:
            return
        try:
            os.sched_setscheduler(
                0, os.SCHED_FIFO if realtime else os.SCHED_OTHER, os.sched_param(1 if realtime else 0)
            )
        except OSError:  # not permitted: all goes on as before
            self._possible = False
            return
        self._is_realtime = realtime

    def count_slip(self) -> None:
        """Wall time was given up: after some times never again (the first tick may, it loads what was compiled)."""
        self._slips += 1
        if self._slips > MAX_SLIPS:
            self.set_realtime(False)
            self._possible = False
