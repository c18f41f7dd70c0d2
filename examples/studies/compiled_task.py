"""A learning task whose methods are compiled by Numba: the same task as ``DepthAndHeading`` in own_tasks.py.

A compiled method has no ``self``, so it is a ``staticmethod``. It receives the same arrays, and is called once per step
for all copies. Its loops over the copies are compiled, so they need no intermediate arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from own_tasks import DepthAndHeading


class CompiledDepthAndHeading(DepthAndHeading):
    """A LAUV keeps a depth and a heading."""

    @staticmethod
    @numba.njit
    def observe(s: Any) -> Any:
        """Compute the observation with one row per value, and return its transpose."""
        o = np.empty((13, s.copies))
        for i in range(s.copies):
            error = s.heading[i] - s.attitude[i, 2] + 0.0087 * s.normal[i, 1]
            o[0, i] = s.depth[i] - s.position[i, 2] + 0.05 * s.normal[i, 0]
            o[1, i], o[2, i] = math.sin(error), math.cos(error)
            o[3, i], o[4, i] = s.attitude[i, 0], s.attitude[i, 1]
            for k in range(3):
                o[5 + k, i], o[8 + k, i] = s.velocity[i, k], s.rates[i, k]
            o[11, i], o[12, i] = s.action[i, 0], s.action[i, 1]
        return o.T

    @staticmethod
    @numba.njit
    def reward(s: Any) -> Any:
        """Reward small errors, and penalise changes of the angles."""
        r = np.empty(s.copies)
        for i in range(s.copies):
            depth = s.depth[i] - s.position[i, 2]
            aim = 0.5 + 0.5 * math.cos(s.heading[i] - s.attitude[i, 2])
            change = 0.0
            for k in range(2):
                change += (s.action[i, k] - s.previous_action[i, k]) ** 2
            r[i] = aim / (1.0 + depth * depth) - 0.02 * change
        return r

    @staticmethod
    @numba.njit
    def terminated(s: Any) -> Any:
        """End an episode if the depth error exceeds 8 m."""
        return np.abs(s.depth - s.position[:, 2]) > 8.0
