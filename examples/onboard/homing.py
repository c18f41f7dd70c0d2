"""The on-board program of an AUV with a USBL head that homes on the transponder of a dock.

python homing.py --config ../trials/usbl-dock.xml --vehicle lauv
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

import program
from auv import Auv
from wavesim_sdk.acoustics import usbl_offset
from wavesim_sdk.algebra import norm
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.config import Body, Loaded
from wavesim_sdk.elementary import atan2, hypot, sin_cos
from wavesim_sdk.frames import quaternion

NEAR = 25.0  #: m from the dock at which it slows down
DOCKED = 3.0  #: m at which it stops


class Homer(Auv):
    """Between fixes it counts its own motion; at each fix it starts from the measured offset again."""

    def __init__(self, loaded: Loaded, body: Body) -> None:
        super().__init__(loaded, body)
        (self.dock,) = self.beacons.values()
        start = np.array(body.position)
        self.offset = np.array(self.dock.position) - start + np.array([30.0, -40.0, 0.0])  # a poor first guess
        self.sigma = 50.0
        self.attitude = quaternion(0.0, 0.0, 0.0)
        self._at_time = -1.0

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], list[float | None]]:
        sensors = step.sensors
        if {"ctd", "ahrs", "speedlog"} <= sensors.keys():
            heading = sensors.ahrs.heading
            self.attitude = quaternion(sensors.ahrs.roll, sensors.ahrs.pitch, heading)
            dt = step.time - self._at_time if self._at_time >= 0.0 else 0.0
            surge, sway, _ = sensors.speedlog.v_FB_B
            s, c = sin_cos(heading)
            self.offset -= np.array([surge * c - sway * s, surge * s + sway * c, 0.0]) * dt
            self.sigma += 0.15 * dt
        self._at_time = step.time
        return super().act(step, broker)

    def _listen(self, step: Step) -> None:
        self.navigator.innovation = math.nan
        for heard in step.receptions:
            offset = usbl_offset(heard, self.attitude.tolist())
            if offset is not None:
                self.navigator.innovation = float(norm(offset) - norm(self.offset))
                self.offset = np.asarray(offset)
                self.sigma = 0.1 + 0.01 * float(norm(offset))

    def _steer(
        self, depth: float, pitch: float, heading: float, q: float, r: float, surge: float, sway: float, dt: float
    ) -> dict[str, float]:
        far = float(hypot(self.offset[0], self.offset[1]))
        if far < DOCKED:
            self.docked = True
        if getattr(self, "docked", False):
            return self._commands(0.0, 0.0, 0.0)
        wanted = self.crab.heading(atan2(self.offset[1], self.offset[0]), heading, surge, sway, (0.0, 0.0), dt)
        rudder = -self.heading.turn(wanted, heading, r)
        planes = self.depth.planes(self.dock.position[2], depth, pitch, q, dt)
        speed = 1.4 if far > NEAR else 0.8
        return self._commands(self.speed.thrust(speed, surge, dt), rudder, planes)

    def _estimate(self, depth: float) -> list[float | None]:
        place: Any = np.array(self.dock.position) - self.offset
        n = self.navigator
        innovation = None if math.isnan(n.innovation) else n.innovation
        values = [place[0], place[1], depth, self.sigma, self.sigma, 0.1, *n.dead_reckoning, depth]
        return [*(float(v) for v in values), innovation]


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Homer))
