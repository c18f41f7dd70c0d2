"""Inference with a trained policy, using only NumPy. To train a policy, see :mod:`.training`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import WaveSimError
from wavesim_studies.neural_networks import are_layers, forward, load

#: activation functions of a network, by their names in policy files
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "elu": lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
}


class Policy:
    """A trained policy, which returns the mean action that its network computes.

    ``parameters`` contains the weights and the biases of each dense layer in turn, and ``activation`` is the function
    between them: tanh, relu or elu. With ``squash``, a tanh limits the actions, as in SAC; otherwise, they are clipped.
    """

    def __init__(self, parameters: Sequence[Array], activation: str = "tanh", squash: bool = False) -> None:
        if activation not in ACTIVATIONS:
            raise WaveSimError(f"unknown activation '{activation}' of a policy; use one of {', '.join(ACTIVATIONS)}")
        self.parameters, self.activation, self.squash = list(parameters), activation, squash

    def act(self, observation: Array, ended: Array | None = None) -> Array:
        """Return actions (n, actions) for observations (n, numbers). Raise WaveSimError if the policy expects a
        different number of values.
        """
        if observation.shape[-1] != len(self.parameters[0]):
            raise WaveSimError(f"the policy has {len(self.parameters[0])} inputs, got {observation.shape[-1]} values")
        action = forward(self.parameters, observation.astype(np.float32), ACTIVATIONS[self.activation])
        return np.tanh(action) if self.squash else np.clip(action, -1.0, 1.0)

    def save(self, path: Path) -> None:
        """Write the policy to a .npz file."""
        # a file of a plain network has nothing but its layers, so that any program can evaluate it
        arrays: dict[str, Any] = {f"arr_{k}": p for k, p in enumerate(self.parameters)}
        if (self.activation, self.squash) != ("tanh", False):
            arrays["form"] = np.array(self.activation + (" squash" if self.squash else ""))
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Read a policy from a .npz file. Raise WaveSimError if the file is invalid."""
        parameters, others = load(path, "policy", 2)
        form = others.get("form", np.array("tanh"))
        if not are_layers(parameters) or form.ndim or form.dtype.kind != "U":
            raise WaveSimError(f"{path} does not contain a valid policy: its arrays are not the layers of one network")
        activation, _, squash = str(form).partition(" ")
        return cls(parameters, activation, squash == "squash")
