"""Learning environments: the engine's own kernels under Gymnasium, thousands of copies in one compiled call a step.

import gymnasium, wavesim_studies.learning
envs = gymnasium.make_vec("wavesim/StationKeeping-v0", num_envs=4096)
"""

from wavesim_studies.learning.register import register

register()
