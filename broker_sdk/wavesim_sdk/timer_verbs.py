"""Verbs of the simulation clock, without the command records: the command line needs only the verbs."""

from __future__ import annotations

#: verb of the simulation clock -> (name of its value or "", meaning)
TIMER_VERBS: dict[str, tuple[str, str]] = {
    "start": ("", "start the simulation clock, also after a pause or stop"),
    "stop": ("", "stop the simulation clock; clients stay connected"),
    "pause": ("", "pause the simulation clock"),
    "resume": ("", "start the clock again after a pause"),
    "step": ("ticks", "step a paused or stopped simulation by a number of TICKS"),
    "speed": (
        "factor",
        "set the speed. FACTOR is the number of simulated seconds per wall-clock second; 0 = as fast as possible",
    ),
    "shutdown": ("", "end the server"),
}
