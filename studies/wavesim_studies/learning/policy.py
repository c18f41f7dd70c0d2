"""Inference with a trained policy, using only NumPy. Train the policy with Stable-Baselines3; see :mod:`.sb3`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_studies.neural_networks import forward, load


class Policy:
    """A trained policy, which returns the mean action that its network computes."""

    def __init__(self, parameters: Sequence[Array]) -> None:
        self.parameters = list(parameters)

    def act(self, observation: Array, ended: Array | None = None) -> Array:
        """Return actions (n, thrusters) for observations (n, numbers)."""
        return np.clip(forward(self.parameters, observation.astype(np.float32)), -1.0, 1.0)

    def save(self, path: Path) -> None:
        """Write the policy to a .npz file."""
        np.savez(path, *self.parameters)

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Read a policy from a .npz file. Raise WaveSimError if the file is invalid."""
        return cls(load(path, "policy"))
