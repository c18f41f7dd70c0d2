"""Registration of tasks with Gymnasium."""

from __future__ import annotations

from typing import Any

from wavesim_studies.learning.custom import Task
from wavesim_studies.learning.tasks import TASKS, TEAM_TASK


def register(task: type[Task] | Task | None = None, name: str = "", **options: Any) -> str:
    """Register a task of your own with Gymnasium and return its id, for example ``wavesim/Depth-v0`` for the class
    ``Depth``.

    ``name`` replaces the name of the class, and ``options`` are passed to the class. A second registration of a name
    replaces the first. Without a task, the function registers the built-in tasks.
    """
    if task is None:
        for built_in in TASKS:
            _register(built_in, {"task": built_in})
        _register(TEAM_TASK, {"task": TEAM_TASK}, single=None)  # a team has several copies
        return ""
    kind = task if isinstance(task, type) else type(task)
    return _register(name or kind.__name__, {"task": task, **options})


_SINGLE = "wavesim_studies.learning.env:SingleTaskEnv"


def _register(name: str, options: dict[str, Any], single: str | None = _SINGLE) -> str:
    import gymnasium

    known = f"wavesim/{name}-v0"
    gymnasium.registry.pop(known, None)
    gymnasium.register(
        known,
        entry_point=single,
        vector_entry_point="wavesim_studies.learning.env:VectorTaskEnv",
        kwargs=options,
    )
    return known
