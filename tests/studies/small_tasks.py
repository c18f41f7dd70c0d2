"""Two small tasks of a user, for tests."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from wavesim_studies import learning


class Still(learning.Task):
    """Nothing but the motion, from a given pose."""

    dt, substeps, observations = 0.1, 4, 1
    speed, depth = 0.0, math.nan

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def start(self, s: Any) -> None:
        if math.isfinite(self.depth):
            s.position[:, 2] = self.depth
        s.attitude = (0.05, -0.1, 2.0)
        s.velocity[:, 0] = self.speed

    def observe(self, s: Any) -> Any:
        return (s.time / 10.0,)

    def reward(self, s: Any) -> Any:
        return np.zeros(s.copies)


class Depth(learning.Task):
    """Small, and with everything: draws, variables, ends of both kinds, other parameters in each episode."""

    model, dt, limit = "lauv", 0.1, 0.8
    observations, uniforms, normals = 18, 6, 3
    variables: ClassVar = {"target": 1, "course": 2, "gains": (2, 2)}

    def start(self, s: Any) -> None:
        s.target = 9.0 + 2.0 * s.uniform[:, 0]
        s.course = s.uniform[:, 1:3]
        s.gains[:, 1, 0] = s.uniform[:, 3] + 0.1 * s.normal[:, 2]
        s.position[:, 2] = 10.0
        s.velocity[:, 0] = 1.5
        s.current[:, :2] = s.uniform[:, 4:6] - 0.5
        s.effect[:, :2] = 0.5 + 0.5 * s.uniform[:, 1:3]
        s.net_weight = s.uniform[:, 0]

    def update(self, s: Any) -> None:
        s.target += 0.01 * s.normal[:, 0]
        s.wrench[:, 5] = 0.1 * s.normal[:, 1]

    def observe(self, s: Any) -> Any:
        effort = (s.action**2 + s.rates[:, :1] * np.sin(s.actuators)).sum(axis=1)
        return (
            s.target - s.position[:, 2],
            s.attitude,
            s.velocity,
            np.exp(s.rates),
            s.course,
            s.gains[:, 1, 0] + s.normal[:, 2],
            effort,
            s.previous_action[:, :2],
            s.time,
            0.5,
        )

    def reward(self, s: Any) -> Any:
        return -((s.target - s.position[:, 2]) ** 2) - (s.action**2).sum(axis=1)

    def terminated(self, s: Any) -> Any:
        return s.target - s.position[:, 2] > 0.95

    def success(self, s: Any) -> Any:
        return s.target > 10.0

    def info(self, s: Any) -> Any:
        return {"distance": abs(s.target - s.position[:, 2])}
