"""Learning environments: the engine's kernels with a Gymnasium interface. One compiled call per step advances thousands
of copies of a task.

import gymnasium, wavesim_studies.learning
envs = gymnasium.make_vec("wavesim/StationKeeping-v0", num_envs=4096)

For a task of your own, subclass :class:`Task`.
"""

from wavesim_studies.learning.custom import Task, to_body, to_world
from wavesim_studies.learning.register import register
from wavesim_studies.learning.task_check import check_task

__all__ = ["Task", "check_task", "register", "to_body", "to_world"]

register()
