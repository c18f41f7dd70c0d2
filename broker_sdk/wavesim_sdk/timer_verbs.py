"""Words for the simulation's timer, apart from the records that carry them: the command line needs only the words."""

from __future__ import annotations

#: verb on the simulation's timer -> (name of its value or "", meaning)
TIMER_VERBS: dict[str, tuple[str, str]] = {
    "start": ("", "arm the timer: time runs (also after pause or stop)"),
    "stop": ("", "unarm the timer; clients may still talk"),
    "pause": ("", "hold time"),
    "resume": ("", "go on after a pause"),
    "step": ("ticks", "advance a paused or stopped simulation by a number of ticks"),
    "speed": ("factor", "simulated seconds per wall second; 0 = as fast as possible"),
    "shutdown": ("", "end the server"),
}
