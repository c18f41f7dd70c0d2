"""Proximal policy optimisation (Schulman et al. 2017) in NumPy: two networks of 2 x 64, Adam, generalised advantages.

A time limit does not count as termination: the estimated value of the last observation replaces the rewards after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_studies.learning.core import Array, Core
from wavesim_studies.neural_networks import Adam, DenseNetwork, load


class Policy:
    """A trained policy, which returns the mean action that its network computes."""

    def __init__(self, parameters: Sequence[Array]) -> None:
        self.parameters = list(parameters)

    def act(self, observation: Array, ended: Array | None = None) -> Array:
        """Return actions (n, thrusters) for observations (n, numbers)."""
        x = observation.astype(np.float32)
        for k in range(0, len(self.parameters), 2):
            x = x @ self.parameters[k] + self.parameters[k + 1]
            x = np.tanh(x) if k + 2 < len(self.parameters) else x
        return np.clip(x, -1.0, 1.0)

    def save(self, path: Path) -> None:
        """Write to a .npz file."""
        np.savez(path, *self.parameters)

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Read from a .npz file. Raise WaveSimError if it is invalid."""
        return cls(load(path, "policy"))


@dataclass(frozen=True)
class PpoSettings:
    """Settings of the training."""

    steps: int = 32  #: steps of each copy between two updates
    epochs: int = 4
    parts: int = 4  #: number of minibatches per epoch
    rate: float = 7e-4
    gamma: float = 0.98
    decay: float = 0.95
    clip: float = 0.2
    entropy: float = 0.001
    spread: float = -0.7  #: initial logarithm of the standard deviation of actions


def train(
    core: Core,
    samples: int,
    seed: int = 1,
    settings: PpoSettings | None = None,
    say: Callable[[dict[str, float]], None] = lambda _: None,
    limit: float = 1e9,
) -> Policy:
    """Train a policy for a task whose copies reset in the same step. Stop after ``samples`` samples or ``limit``
    seconds.

    At each update, ``say`` is called with the number of samples, reward per step, success rate of the ended episodes,
    and wall time.
    """
    s, random, n = settings or PpoSettings(), np.random.default_rng(seed), core.copies
    actor, critic = (
        DenseNetwork((core.size, 64, 64, core.actions), random, 0.01),
        DenseNetwork((core.size, 64, 64, 1), random, 1.0),
    )
    spread = np.full(core.actions, s.spread, np.float32)
    adam = Adam([*actor.parameters, spread, *critic.parameters], s.rate)
    core.seed(seed)
    core.reset_copies()
    out = core.outputs
    seen = np.empty((s.steps, n, core.size), np.float32)
    did = np.empty((s.steps, n, core.actions), np.float32)
    chance, reward, value, cut = (np.empty((s.steps, n), np.float32) for _ in range(4))
    start, done = time.perf_counter(), 0
    while done < samples and time.perf_counter() - start < limit:
        adam.rate = s.rate * max(0.05, 1.0 - done / samples)
        won, ended_all = 0.0, 0
        for k in range(s.steps):
            seen[k] = out.observation
            value[k] = critic(seen[k])[:, 0]
            noise = random.standard_normal((n, core.actions), np.float32)
            did[k] = actor(seen[k]) + np.exp(spread) * noise
            chance[k] = (-0.5 * noise * noise - spread).sum(1)
            core.step(did[k])
            ended = out.terminated | out.truncated
            reward[k], cut[k] = out.reward, ended
            if ended.any():
                won += float(out.episode_info[ended, 2].sum())
                ended_all += int(ended.sum())
                late = out.truncated
                if late.any():
                    reward[k, late] += s.gamma * critic(out.last[late])[:, 0]
        done += s.steps * n
        advantage, after = np.zeros((s.steps, n), np.float32), critic(out.observation)[:, 0]
        running = np.zeros(n, np.float32)
        for k in range(s.steps - 1, -1, -1):
            error = reward[k] + s.gamma * (1.0 - cut[k]) * after - value[k]
            running = error + s.gamma * s.decay * (1.0 - cut[k]) * running
            advantage[k], after = running, value[k]
        _update(actor, critic, spread, adam, s, random, (seen, did, chance, advantage, advantage + value))
        say(
            {
                "samples": float(done),
                "reward": float(out.reward.mean()),
                "success": won / ended_all if ended_all else float("nan"),
                "wall": time.perf_counter() - start,
            }
        )
    return Policy([p.copy() for p in actor.parameters])


def _update(
    actor: DenseNetwork,
    critic: DenseNetwork,
    spread: Array,
    adam: Adam,
    s: PpoSettings,
    random: Any,
    data: tuple[Array, Array, Array, Array, Array],
) -> None:
    """Train for some epochs on the collected samples."""
    seen, did, chance, advantage, target = (a.reshape(-1, *a.shape[2:]) for a in data)
    size = len(seen) // s.parts
    for _ in range(s.epochs):
        order = random.permutation(len(seen))
        for part in range(s.parts):
            at = order[part * size : (part + 1) * size]
            x, a = seen[at], advantage[at]
            a = (a - a.mean()) / (a.std() + 1e-8)
            inverse = np.exp(-spread)
            z = (did[at] - actor(x)) * inverse
            ratio = np.exp(np.clip((-0.5 * z * z - spread).sum(1) - chance[at], -20.0, 20.0))
            free = np.where(a > 0.0, ratio < 1.0 + s.clip, ratio > 1.0 - s.clip)
            weight = -(a * ratio * free / size)[:, None]
            by_actor = actor.gradients((weight * z * inverse).astype(np.float32))
            by_spread = (weight * (z * z - 1.0)).sum(0) - s.entropy
            error = critic(x)[:, 0] - target[at]
            by_critic = critic.gradients((0.5 * error / size)[:, None].astype(np.float32))
            adam.apply([*by_actor, by_spread.astype(np.float32), *by_critic])
