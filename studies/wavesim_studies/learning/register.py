"""Registration of the tasks with Gymnasium."""

from __future__ import annotations

from wavesim_studies.learning.tasks import TASKS


def register() -> None:
    """Register all tasks with Gymnasium. Repeated calls have no effect."""
    import gymnasium

    for name in TASKS:
        known = f"wavesim/{name}-v0"
        if known not in gymnasium.registry:
            gymnasium.register(
                known,
                entry_point="wavesim_studies.learning.env:SingleTaskEnv",
                vector_entry_point="wavesim_studies.learning.env:VectorTaskEnv",
                kwargs={"task": name},
            )
