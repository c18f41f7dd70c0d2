"""Learning environments: the engine's kernels with a Gymnasium interface. One compiled call per step advances thousands
of copies of a task.

import gymnasium, wavesim_studies.learning
envs = gymnasium.make_vec("wavesim/StationKeeping-v0", num_envs=4096)
"""

from wavesim_studies.learning.register import register

register()
