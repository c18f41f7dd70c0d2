"""Navigation by acoustic ranges: a small extended Kalman filter over round trips.

:mod:`reference` uses the larger reference filter.

State: north, east, drift of the water (north, east). Between measurements the position follows heading and speed
through water plus the drift. A round trip measures two paths: out from the position at the query, and back to the
position at the reception. Both positions are known relative to the current position, from the recent track, so the vehicle's motion does
not blur the range.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk.algebra import dot, matmul, norm, vecmat
from wavesim_sdk.elementary import sin_cos

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Beacon:
    """A surveyed transponder: position, reply frequency and turn-around time."""

    position: tuple[float, float, float]
    frequency: float
    turn_around: float


class Navigator:
    """Navigation filter of one vehicle."""

    HISTORY = 400

    def __init__(self, place: tuple[float, float], sound_speed: float, lever: Sequence[float]) -> None:
        """Create the filter at ``place`` (north, east); ``lever`` is the position of the transducer in B."""
        self.x = np.array([*place, 0.0, 0.0])
        self.P = np.diag(np.square([1.0, 1.0, 0.2, 0.2]))
        self.Q = np.diag(np.square([0.03, 0.03, 0.0006, 0.0006]))
        self.c, self.lever = sound_speed, lever
        self.dead_reckoning = np.array(place)
        self.innovation = math.nan
        self.accepted = self.rejected = 0
        self._times: list[float] = []
        self._track: list[tuple[float, float, float]] = []  # relative track of the transducer
        self._moved = np.zeros(2)
        self._time = -1.0

    @property
    def place(self) -> tuple[float, float]:
        """Estimated position (north, east) in m."""
        return float(self.x[0]), float(self.x[1])

    @property
    def current(self) -> tuple[float, float]:
        """Estimated drift of the water (north, east) in m/s."""
        return float(self.x[2]), float(self.x[3])

    @property
    def sigma(self) -> tuple[float, float]:
        """Standard deviations of the estimated position in m."""
        return math.sqrt(self.P[0, 0]), math.sqrt(self.P[1, 1])

    def predict(
        self,
        time: float,
        attitude: tuple[float, float, float],
        rates: Sequence[float],
        v: Sequence[float],
        depth: float,
    ) -> None:
        """Advance to ``time`` (s) with the instrument values of this time, and record the position of the transducer.

        The values are roll, pitch and heading, the rates, and the speed through water in B.
        """
        dt = time - self._time if self._time >= 0.0 else 0.0
        self._time = time
        s, c = sin_cos(attitude[2])
        surge, sway, _ = v
        lever = self.lever
        through = np.array([surge * c - sway * s, surge * s + sway * c])
        self.dead_reckoning += through * dt
        step = (through + self.x[2:4]) * dt
        self.x[:2] += step
        self._moved += step
        P = self.P  # F P F^T + Q dt, where F adds dt times the drift to the position
        P[:2] += dt * P[2:4]
        P[:, :2] += dt * P[:, 2:4]
        P += self.Q * dt
        self._times.append(time)
        self._track.append(
            (
                self._moved[0] + c * lever[0] - s * lever[1],
                self._moved[1] + s * lever[0] + c * lever[1],
                depth + lever[2],
            )
        )
        if len(self._times) > self.HISTORY:
            del self._times[: self.HISTORY // 2], self._track[: self.HISTORY // 2]

    def _at(self, time: float) -> Array:
        """Return the transducer position on the relative track, interpolated between steps."""
        k = min(max(bisect_left(self._times, time), 1), len(self._times) - 1)
        t0, t1 = self._times[k - 1], self._times[k]
        part = (time - t0) / (t1 - t0)
        a, b = np.array(self._track[k - 1]), np.array(self._track[k])
        return np.asarray(a + part * (b - a))

    def round_trip(self, asked: float, heard: float, beacon: Beacon, sigma: float = 0.8) -> bool:
        """Update the filter with a round trip (times in s). Return False if it is too far from the prediction."""
        if len(self._times) < 2 or asked < self._times[0]:
            return False
        measured = self.c * (heard - asked - beacon.turn_around)
        H = np.zeros(4)
        expected = 0.0
        for time in (asked, heard):
            at = self._at(time)
            place = np.array([self.x[0] - self._moved[0] + at[0], self.x[1] - self._moved[1] + at[1], at[2]])
            difference = place - np.array(beacon.position)
            distance = float(norm(difference))
            expected += distance
            H[:2] += difference[:2] / distance
        self.innovation = float(measured - expected)
        gain = vecmat(H, self.P)
        S = float(dot(H, gain)) + sigma * sigma
        if self.innovation * self.innovation > 25.0 * S:
            self.rejected += 1
            return False
        gain = gain / S
        self.x += gain * self.innovation
        self.P = matmul(np.eye(4) - np.outer(gain, H), self.P)
        self.P = 0.5 * (self.P + self.P.T)
        self.accepted += 1
        return True
