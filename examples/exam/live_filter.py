"""On-board program for the exam with a navigation filter: dead reckoning, corrected by each range.

    wavesim exam run lbl --program examples/exam/live_filter.py

The exam's own pilot steers the vehicle. This class receives each step from the broker and returns its estimate.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from wavesim_sdk.broker import Estimate, Step
from wavesim_studies.exam.live import main


class RangeFilter:
    """Kalman filter with the states north, east and current. Times of replies are rounded to the step."""

    def __init__(self, facts: dict[str, Any], vehicle: str) -> None:
        own = facts["vehicles"][vehicle]
        self.nodes = {n["reply"]: np.array(n["position"]) for n in facts["nodes"].values() if "reply" in n}
        self.noise = 0.5 * facts["sound_speed"] * own["timing_sigma"]
        self.x = np.array([*own["start"], 0.0, 0.0])
        self.P = np.diag(np.square([own["start_sigma"]] * 2 + [facts["prior"]["current_sigma"]] * 2))
        self.time: float | None = None
        self.depth = 0.0

    def step(self, step: Step) -> Estimate | None:
        """Process one step."""
        sensors: Any = step.sensors
        if not {"ahrs", "ctd", "speedlog"} <= sensors.keys():
            return None
        dt = 0.0 if self.time is None else step.time - self.time
        self.time = step.time
        self.depth = (sensors.ctd.pressure - 10.1325) / 1.0052  # dbar to m in water of 1025 kg/m3
        heading, (u, v, _) = sensors.ahrs.heading, sensors.speedlog.v_FB_B
        F = np.eye(4)
        F[0, 2] = F[1, 3] = dt
        self.x = F @ self.x
        self.x[:2] += dt * np.array(
            [u * np.cos(heading) - v * np.sin(heading), u * np.sin(heading) + v * np.cos(heading)]
        )
        self.P = F @ self.P @ F.T + np.diag([4e-4 * dt] * 2 + [0.0] * 2)
        for heard in step.receptions:
            if heard.range is not None:
                self.update(heard.range, min(self.nodes, key=lambda f: abs(f - heard.frequency)))
        sigma = np.sqrt(np.diag(self.P))
        return Estimate(
            north=float(self.x[0]),
            east=float(self.x[1]),
            depth=self.depth,
            sigma_north=float(sigma[0]),
            sigma_east=float(sigma[1]),
        )

    def update(self, length: float, reply: float) -> None:
        """Correct the state by a range to the node with this reply frequency."""
        away = np.array([self.x[0], self.x[1], self.depth]) - self.nodes[reply]
        distance = float(np.linalg.norm(away))
        H = np.array([away[0] / distance, away[1] / distance, 0.0, 0.0])
        across = float(np.trace(self.P[:2, :2]) - H @ self.P @ H) / distance
        S = float(H @ self.P @ H) + self.noise**2 + 0.5**2 + across**2
        innovation = length - distance
        if innovation**2 < 9.0 * S:
            gain = self.P @ H / S
            self.x = self.x + gain * innovation
            self.P = self.P - np.outer(gain, H @ self.P)


if __name__ == "__main__":
    sys.exit(main(RangeFilter))
