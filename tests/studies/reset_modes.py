"""A slow twin of the autoreset modes: copies that never begin anew by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_studies.learning import kernels


class ResetTwin:
    """What each mode means, in plain words. ``core`` has just been made; it is seeded with 2 and reset here."""

    def __init__(self, core: Any, mode: int) -> None:
        self.core, self.mode, self.ended = core, mode, np.zeros(core.copies, bool)
        core.set_reset_mode(kernels.DISABLED)
        core.seed(2)
        core.reset_copies()

    def step(self, a: Any) -> tuple[Any, ...]:
        """Return observation, reward, both ends, and the observation before a reset."""
        core, before = self.core, self.ended.copy()
        core.step(a)
        out = core.outputs
        reward, end = out.reward.copy(), [out.terminated.copy(), out.truncated.copy()]
        self.ended = end[0] | end[1]
        last = out.observation.copy()
        if self.mode == kernels.SAME_STEP and self.ended.any():
            core.reset_copies(self.ended)
        if self.mode == kernels.NEXT_STEP and before.any():
            core.reset_copies(before)
        return out.observation.copy(), reward, *end, last
