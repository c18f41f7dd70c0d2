"""Heading, depth and speed control for a torpedo-shaped AUV and a twin-thruster boat."""

from __future__ import annotations

import math

from wavesim_sdk.frames import wrap


def clamp(value: float, limit: float) -> float:
    return max(-limit, min(limit, value))


class Speed:
    """PI control of surge speed; the output is a thrust in N."""

    def __init__(self, kp: float, ki: float, low: float, high: float) -> None:
        self.kp, self.ki, self.low, self.high = kp, ki, low, high
        self._integral = 0.0

    def thrust(self, wanted: float, surge: float, dt: float) -> float:
        error = wanted - surge
        raw = self.kp * error + self.ki * (self._integral + error * dt)
        if self.low < raw < self.high:  # no wind-up while saturated
            self._integral += error * dt
        return max(self.low, min(self.high, raw))


class Heading:
    """PD control of heading with the measured rate of turn."""

    def __init__(self, kp: float, kd: float, limit: float) -> None:
        self.kp, self.kd, self.limit = kp, kd, limit

    def turn(self, wanted: float, heading: float, rate: float) -> float:
        """Control action, positive to starboard."""
        return clamp(self.kp * wrap(wanted - heading) - self.kd * rate, self.limit)


class Depth:
    """Depth by pitch: an outer PI loop asks for a pitch angle, an inner PD loop moves the planes."""

    def __init__(
        self,
        kz: float = 0.12,
        ki: float = 0.008,
        kp: float = 1.2,
        kd: float = 1.0,
        pitch_limit: float = math.radians(25.0),
        limit: float = math.radians(15.0),
    ) -> None:
        self.kz, self.ki, self.kp, self.kd = kz, ki, kp, kd
        self.pitch_limit, self.limit = pitch_limit, limit
        self._integral = 0.0

    def planes(self, wanted: float, depth: float, pitch: float, rate: float, dt: float) -> float:
        """Plane angle, positive for nose up."""
        error = wanted - depth
        ask = -self.kz * error - self.ki * self._integral
        if abs(ask) < self.pitch_limit and abs(error) < 3.0:
            self._integral += error * dt
        return clamp(self.kp * (clamp(ask, self.pitch_limit) - pitch) - self.kd * rate, self.limit)
