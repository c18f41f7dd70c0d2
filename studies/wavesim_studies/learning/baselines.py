"""Baselines for learners: a conventional controller, and random actions."""

from __future__ import annotations

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_studies.learning.core import Core
from wavesim_studies.learning.custom_core import CustomCore

#: gains for position in N/m, N s/m and N/(m s), and for attitude in N m/rad and N m s/rad
POSITION, SPEED, INTEGRAL, ATTITUDE, RATE = 20.0, 18.0, 4.0, 6.0, 2.5
REACH = 1.5  #: limits of the position error in the control law (m) and of its integral (m s)


class Pid:
    """PID control of position and heading, and PD control of roll and pitch. A pseudo-inverse allocates the control
    forces to the thrusters.
    """

    def __init__(self, core: Core) -> None:
        self._inverse = np.linalg.pinv(core.matrix).astype(np.float64)
        self._dt, self._most = core.rules.dt, core.rules.max_command
        self._sum = np.zeros((core.copies, 3))

    def act(self, observation: Array, ended: Array | None = None) -> Array:
        """Return actions (n, thrusters) from -1 to 1 for observations (n, numbers). ``ended`` selects the copies whose
        integrals are reset.
        """
        if ended is not None:
            self._sum[ended] = 0.0
        o = observation.astype(np.float64)
        error = o[:, :3]
        error = error * np.minimum(1.0, REACH / np.maximum(np.linalg.norm(error, axis=1), 1e-9))[:, None]
        self._sum = np.clip(self._sum + error * self._dt, -REACH, REACH)
        wanted = np.empty((len(o), 6))
        wanted[:, :3] = POSITION * error + SPEED * (o[:, 14:17] - o[:, 8:11]) + INTEGRAL * self._sum
        wanted[:, 3] = -ATTITUDE * o[:, 6] - RATE * o[:, 11]
        wanted[:, 4] = ATTITUDE * o[:, 5] - RATE * o[:, 12]
        wanted[:, 5] = ATTITUDE * np.arctan2(o[:, 3], o[:, 4]) - RATE * o[:, 13]
        thrust = wanted @ self._inverse.T
        return np.clip(thrust / self._most, -1.0, 1.0).astype(np.float32)


class RandomPolicy:
    """Baseline that takes random actions."""

    def __init__(self, core: Core | CustomCore, seed: int = 0) -> None:
        self._random, self._size = np.random.default_rng(seed), core.actions

    def act(self, observation: Array, ended: Array | None = None) -> Array:
        """Return random actions; see :class:`Pid`."""
        return self._random.uniform(-1.0, 1.0, (len(observation), self._size)).astype(np.float32)
