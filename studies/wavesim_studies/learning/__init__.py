"""Learning environments: the engine's kernels under Gymnasium, with thousands of copies in one compiled call per step.

import gymnasium, wavesim_studies.learning
envs = gymnasium.make_vec("wavesim/StationKeeping-v0", num_envs=4096)
"""

from wavesim_studies.learning.register import register

register()
