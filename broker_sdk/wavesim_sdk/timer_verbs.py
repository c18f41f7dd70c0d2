"""Verbs that control the simulation clock. They have their own module, so that the command line does not have to load
the message records.
"""

from __future__ import annotations

#: for each verb, the name of its value (or "" if it has none) and its meaning
TIMER_VERBS: dict[str, tuple[str, str]] = {
    "start": ("", "start the simulation clock (also after pause or stop)"),
    "stop": ("", "stop the simulation clock; clients stay connected"),
    "pause": ("", "pause the simulation clock"),
    "resume": ("", "resume the simulation clock after a pause"),
    "step": ("ticks", "advance a paused or stopped simulation by TICKS ticks"),
    "speed": ("factor", "set the speed: 1 = real time, 0 = as fast as possible"),
    "reset": ("", "reset the simulation to its beginning, and stop it"),
    "rewind": ("time", "rewind to the automatic snapshot at or before TIME (s)"),
    "shutdown": ("", "shut down the server"),
}
