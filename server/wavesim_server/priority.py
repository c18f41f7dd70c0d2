"""Real-time priority for the engine while it keeps up with wall time, if the user may request such priority (root, or
`ulimit -r`).
"""

from __future__ import annotations

import os

MAX_SLIPS = 3


class RealTimePriority:
    """The scheduling of this process: real-time (SCHED_FIFO) if the simulation runs in real time or slower, otherwise
    the default scheduling.

    An engine that runs as fast as possible, or cannot keep up, would starve all other processes. Therefore, it never
    receives real-time priority. The same applies to an engine that has lost wall time several times, and to any engine
    on a single-processor machine.
    """

    def __init__(self) -> None:
        self._possible = (os.cpu_count() or 1) > 1
        self._is_realtime, self._slips = False, 0

    def set_realtime(self, realtime: bool) -> None:
        """Request or release real-time priority."""
        if realtime == self._is_realtime or not self._possible:
            return
        try:
            os.sched_setscheduler(
                0, os.SCHED_FIFO if realtime else os.SCHED_OTHER, os.sched_param(1 if realtime else 0)
            )
        except OSError:  # not permitted: continue with the ordinary scheduling
            self._possible = False
            return
        self._is_realtime = realtime

    def count_slip(self) -> None:
        """Count an occasion on which the simulation lost wall time.

        After several losses, real-time priority is released permanently. (The first tick may lose time because it
        loads kernels.)
        """
        self._slips += 1
        if self._slips > MAX_SLIPS:
            self.set_realtime(False)
            self._possible = False
