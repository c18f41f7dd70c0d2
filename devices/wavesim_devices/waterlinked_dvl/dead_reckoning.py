"""Dead reckoning of the Water Linked DVL: a position computed from its own velocities and the attitude of the body."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_devices.waterlinked_dvl.measurement import Measurement, rotation_about_z
from wavesim_sdk.arrays import Floats
from wavesim_sdk.frames import quaternion, rotation

MAX_AGE_S = 1.0  #: maximum age of a velocity that is used to extrapolate the position


@dataclass(frozen=True)
class LocalPosition:
    """Position in m and angles in deg in the local frame (the frame of the vehicle at the time of the reset)."""

    time_ns: int
    position: tuple[float, float, float]
    deviation: float  #: standard deviation of the position in m
    angles: tuple[float, float, float]  #: roll, pitch and yaw in deg


class DeadReckoning:
    """Position since the last reset. Velocities are integrated with the trapezoidal rule, even over a gap between two
    valid velocities. The yaw drifts at a constant rate, like the yaw of a calibrated gyro.
    """

    def __init__(self, yaw_drift: float) -> None:
        self.yaw_drift = yaw_drift  #: drift rate of the yaw in deg/s
        self._start_ns: int | None = None  # None until the first attitude
        self._R_WB = self._R_start = self._R_LB = np.eye(3)
        self._position = np.zeros(3)
        self._variance = 0.0
        self._last: tuple[int, Floats] | None = None  # time and velocity of the last valid measurement, local frame

    def reset(self, time_ns: int) -> None:
        """Make the current frame of the vehicle the local frame."""
        self._start_ns, self._R_start, self._R_LB = time_ns, self._R_WB, np.eye(3)
        self._position, self._variance, self._last = np.zeros(3), 0.0, None

    def turn(self, time_ns: int, roll: float, pitch: float, heading: float) -> None:
        """Store the attitude of the body in rad."""
        self._R_WB = rotation(quaternion(roll, pitch, heading))
        if self._start_ns is None:
            self.reset(time_ns)
        else:
            drift = rotation_about_z(self.yaw_drift * (time_ns - self._start_ns) * 1e-9)
            self._R_LB = self._R_start.T @ drift @ self._R_WB

    def move(self, measured: Measurement) -> None:
        """Add a velocity over the bottom. An invalid velocity leaves a gap."""
        if self._start_ns is None or not measured.valid:
            return
        velocity = self._R_LB @ np.array(measured.velocity)
        if self._last is not None:
            seconds = (measured.time_ns - self._last[0]) * 1e-9
            self._position = self._position + 0.5 * (self._last[1] + velocity) * seconds
            change = float(np.linalg.norm(velocity - self._last[1]))
            self._variance += (measured.figure_of_merit * seconds) ** 2 + (0.5 * change * seconds) ** 2
        self._last = measured.time_ns, velocity

    def at(self, time_ns: int) -> LocalPosition | None:
        """Return the position at the given time, or None before the first attitude."""
        if self._start_ns is None:
            return None
        position = self._position
        if self._last is not None and (age := (time_ns - self._last[0]) * 1e-9) <= MAX_AGE_S:
            position = position + self._last[1] * age
        x, y, z = position.tolist()
        R = self._R_LB
        roll, yaw = math.atan2(R[2, 1], R[2, 2]), math.atan2(R[1, 0], R[0, 0])
        pitch = -math.asin(min(max(R[2, 0], -1.0), 1.0))
        angles = math.degrees(roll), math.degrees(pitch), math.degrees(yaw)
        return LocalPosition(time_ns, (x, y, z), math.sqrt(self._variance), angles)
