"""Dense networks in NumPy with tanh between layers, explicit gradients, and the Adam optimizer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import WaveSimError


def load(path: Path, what: str, least: int = 0) -> tuple[list[Array], dict[str, Array]]:
    """Return the arrays that ``np.savez`` wrote to a file: the arrays without a name as a list, and the others by name.
    Raise WaveSimError if the file does not contain at least ``least`` arrays without a name; the message describes the
    file as ``what``.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            others = {name: file[name] for name in file.files}
        found = [others.pop(f"arr_{k}") for k in range(sum(name.startswith("arr_") for name in others))]
        if len(found) < least:
            raise ValueError(f"expected at least {least} arrays, got {len(found)}")
        return found, others
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise WaveSimError(f"{path} does not contain a valid {what}: {error}") from None


def are_layers(parameters: Sequence[Array]) -> bool:
    """Return whether the arrays are the weights and biases of consecutive dense layers with matching sizes."""
    weights, biases = parameters[::2], parameters[1::2]
    if len(weights) != len(biases) or any(p.dtype.kind not in "fiu" for p in parameters):
        return False
    fits = all(w.ndim == 2 and b.shape == w.shape[1:] for w, b in zip(weights, biases, strict=True))
    return fits and all(w.shape[1] == after.shape[0] for w, after in itertools.pairwise(weights))


def forward(parameters: Sequence[Array], x: Array, activation: Callable[[Array], Array] = np.tanh) -> Array:
    """Return the output of dense layers with tanh or another ``activation`` between them; ``parameters`` contains the
    weights and the biases of each layer in turn.
    """
    for k in range(0, len(parameters), 2):
        x = x @ parameters[k] + parameters[k + 1]
        x = activation(x) if k + 2 < len(parameters) else x
    return x


class DenseNetwork:
    """Dense layers with tanh between them and explicit gradients."""

    def __init__(self, sizes: Sequence[int], random: Any, last: float) -> None:
        self.parameters: list[Array] = []
        for k, (a, b) in enumerate(itertools.pairwise(sizes)):
            q = np.linalg.qr(random.normal(size=(max(a, b), min(a, b))))[0]
            q = q if a >= b else q.T
            self.parameters += [
                (q[:a, :b] * (last if k == len(sizes) - 2 else 1.4)).astype(np.float32),
                np.zeros(b, np.float32),
            ]
        self._kept: list[Array] = []

    def __call__(self, x: Array) -> Array:
        self._kept = [x]
        for k in range(0, len(self.parameters), 2):
            x = x @ self.parameters[k] + self.parameters[k + 1]
            if k + 2 < len(self.parameters):
                np.tanh(x, out=x)
            self._kept.append(x)
        return x

    def gradients(self, d: Array) -> list[Array]:
        """Return the gradients of a loss, where ``d`` is the derivative of the loss with respect to the output of the
        last call.
        """
        found: list[Array] = []
        for k in range(len(self.parameters) - 2, -1, -2):
            x = self._kept[k // 2]
            found = [x.T @ d, d.sum(0), *found]
            if k:
                d = (d @ self.parameters[k].T) * (1.0 - x * x)
        return found


class Adam:
    """Adam optimizer (Kingma & Ba 2015) that updates parameters in place."""

    def __init__(self, parameters: Sequence[Array], rate: float) -> None:
        self.parameters, self.rate, self._step = list(parameters), rate, 0
        self._m, self._v = ([np.zeros_like(p) for p in self.parameters] for _ in range(2))

    def apply(self, gradients: Sequence[Array], most: float = 0.5) -> None:
        norm = float(np.sqrt(sum(float((g * g).sum()) for g in gradients)))
        scale = min(1.0, most / (norm + 1e-8))
        self._step += 1
        rate = self.rate * np.sqrt(1.0 - 0.999**self._step) / (1.0 - 0.9**self._step)
        for p, g, m, v in zip(self.parameters, gradients, self._m, self._v, strict=True):
            m += 0.1 * (scale * g - m)
            v += 0.001 * (scale * scale * g * g - v)
            p -= (rate * m / (np.sqrt(v) + 1e-5)).astype(np.float32)
