"""Long short-term memory (LSTM; Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000) in NumPy, with
explicit gradients. The tests compare the gradients with finite differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array

State = tuple[Array, Array]  #: output h and cell c, (batch, H) each


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _split(z: Array) -> tuple[Array, Array, Array, Array]:
    """Return the input, forget and output gates and the cell's candidate value, computed from the weighted inputs z
    (batch, 4 H).
    """
    n = z.shape[1] // 4
    i, f, o = (_sigmoid(z[:, k * n : (k + 1) * n]) for k in range(3))
    return i, f, o, np.tanh(z[:, 3 * n :])


def step(parameters: Sequence[Array], x: Array, state: State) -> tuple[Array, State]:
    """Return the output (batch, O) for inputs (batch, F), and the next state.

    ``parameters`` contains the weights (F + H, 4 H) and biases of the gates, and the weights (H, O) and biases of the
    output.
    """
    W, b, V, d = parameters
    h, c = state
    i, f, o, g = _split(np.concatenate([x, h], axis=1) @ W + b)
    c = f * c + i * g
    h = o * np.tanh(c)
    return h @ V + d, (h, c)


def start(parameters: Sequence[Array], batch: int) -> State:
    """Return the state before the first step."""
    units = parameters[2].shape[0]
    return np.zeros((batch, units), parameters[2].dtype), np.zeros((batch, units), parameters[2].dtype)


class RecurrentNetwork:
    """One layer of LSTM units and a linear output, for sequences (T, batch, F)."""

    def __init__(self, inputs: int, units: int, outputs: int, random: Any, last: float) -> None:
        scale = 1.0 / np.sqrt(inputs + units)
        bias = np.zeros(4 * units)
        bias[units : 2 * units] = 1.0  # an open forget gate lets gradients pass at the beginning
        self.parameters: list[Array] = [
            (scale * random.normal(size=(inputs + units, 4 * units))).astype(np.float32),
            bias.astype(np.float32),
            (last / np.sqrt(units) * random.normal(size=(units, outputs))).astype(np.float32),
            np.zeros(outputs, np.float32),
        ]
        self._kept: list[tuple[Array, ...]] = []

    def __call__(self, x: Array) -> Array:
        """Return the outputs (T, batch, O), starting from a state of zeros."""
        W, b, V, d = self.parameters
        h, c = start(self.parameters, x.shape[1])
        self._kept = []
        for now in x:
            joined = np.concatenate([now, h], axis=1)
            i, f, o, g = _split(joined @ W + b)
            before, c = c, f * c + i * g
            bent = np.tanh(c)
            h = o * bent
            self._kept.append((joined, i, f, o, g, before, bent, h))
        return np.stack([kept[-1] for kept in self._kept]) @ V + d

    def gradients(self, d: Array) -> list[Array]:
        """Return the gradients of a loss, where ``d`` (T, batch, O) is the derivative of the loss with respect to the
        outputs of the last call (backpropagation through time).
        """
        W, _, V, _ = self.parameters
        units, inputs = V.shape[0], W.shape[0] - V.shape[0]
        dW, db, dV = np.zeros_like(W), np.zeros(4 * units, W.dtype), np.zeros_like(V)
        dh = np.zeros((d.shape[1], units), W.dtype)
        dc = np.zeros_like(dh)
        for now, (joined, i, f, o, g, before, bent, h) in zip(d[::-1], reversed(self._kept), strict=True):
            dV += h.T @ now
            dh = dh + now @ V.T
            dc = dc + dh * o * (1.0 - bent * bent)
            dz = np.concatenate(
                [
                    dc * g * i * (1.0 - i),
                    dc * before * f * (1.0 - f),
                    dh * bent * o * (1.0 - o),
                    dc * i * (1.0 - g * g),
                ],
                axis=1,
            )
            dW += joined.T @ dz
            db += dz.sum(axis=0)
            dh = (dz @ W.T)[:, inputs:]
            dc = dc * f
        return [dW, db, dV, d.sum(axis=(0, 1))]
