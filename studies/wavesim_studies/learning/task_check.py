"""Check of a user's task: correct values, and copies that do not depend on each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk.errors import WaveSimError
from wavesim_studies.learning.custom import Task

__all__ = ["check_task"]


def check_task(task: Task | type[Task], steps: int = 200, seed: int = 0) -> None:
    """Check a task of your own with random actions. Raise WaveSimError if a method returns a wrong value, or if a copy
    depends on other copies or on what the task did before.
    """
    from wavesim_studies.learning.custom_core import make_core  # the engine takes long to import

    copies, chosen = 5, 3
    many: Any = make_core(task, copies)
    alone: Any = make_core(task, 1)
    draws = np.random.default_rng(seed)
    many.seed(seed)
    alone.seed(seed + chosen)
    many.reset_copies()
    alone.reset_copies()
    for step in range(steps):
        ours, theirs = many.outputs, alone.outputs
        for name, one, other in zip(ours._fields, ours, theirs, strict=True):
            if one[chosen].tobytes() != other[0].tobytes():
                raise WaveSimError(
                    f"{type(many.task).__name__}: the {name} of a copy depends on other copies, or on attributes of the task "
                    f"that change: at step {step}, a copy among {copies} differs from the same copy alone"
                )
        actions = draws.uniform(-1.0, 1.0, (copies, many.actions)).astype(np.float32)
        many.step(actions)
        alone.step(actions[chosen : chosen + 1])
