"""Built-in tasks. Each of them defines the reference position of the vehicle over time, and the criterion for
success.
"""

from __future__ import annotations

from dataclasses import dataclass

STATION, CIRCLE, HELIX, LEMNISCATE = range(4)
LAST_S = 5.0  #: time in s at the end of an episode over which success is judged


@dataclass(frozen=True)
class ReferenceTask:
    """A built-in task with a reference position. ``size`` is in m, ``period`` is in s, and ``limit`` is the maximum
    duration of an episode in s.

    An episode succeeds if the mean distance (m) and the mean heading error (rad) over its last :data:`LAST_S` seconds
    are below ``distance`` and ``heading``.
    """

    code: int
    limit: float
    size: float
    period: float
    distance: float
    heading: float


#: limit of the heading error in rad for tasks that accept any heading; it exceeds pi, which is the maximum error
_ANY = 4.0
TASKS = {
    "StationKeeping": ReferenceTask(STATION, 20.0, 0.0, 1.0, 0.2, 0.0873),
    "Circle": ReferenceTask(CIRCLE, 40.0, 2.0, 30.0, 0.3, _ANY),
    "Helix": ReferenceTask(HELIX, 40.0, 2.0, 30.0, 0.3, _ANY),
    "Lemniscate": ReferenceTask(LEMNISCATE, 40.0, 3.0, 40.0, 0.3, _ANY),
}
TEAM_TASK = "TeamLocalisation"  #: name of the task whose copies are the members of teams; see ``team_rows.py``
TASK_NAMES = (*TASKS, TEAM_TASK)  #: names of all built-in tasks
