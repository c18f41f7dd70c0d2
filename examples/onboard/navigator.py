"""Navigation by acoustic ranges: a small extended Kalman filter that uses round-trip times.

:mod:`reference` navigates with the larger reference filter.

The state is the position (north, east) and the drift of the water (north, east). Between measurements, the position is
advanced with the heading, the speed through water and the drift. A round trip measures two paths: out from the position
at the query, and back to the position at the reception. Both positions are known relative to the current position, from
the recent track, so the vehicle's motion does not blur the range.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from wavesim_sdk.elementary import sin_cos


@dataclass(frozen=True)
class Beacon:
    """A surveyed transponder: position, reply frequency and turn-around time."""

    position: tuple[float, float, float]
    frequency: float
    turn_around: float


class Navigator:
    """Navigation filter of one vehicle. Its matrices are lists, because lists are much faster than arrays for so few
    numbers.
    """

    HISTORY = 400
    GAP = 1.0  # s without instruments after which the motion in between counts as unknown
    GAP_SPEED = 1.0  # m/s, standard deviation of the velocity in a gap

    def __init__(self, place: tuple[float, float], sound_speed: float, lever: Sequence[float]) -> None:
        """Create the filter at ``place`` (north, east); ``lever`` is the position of the transducer in B."""
        self.x = [*place, 0.0, 0.0]
        self.P = [[0.0] * 4 for _ in range(4)]
        for k, deviation in enumerate((1.0, 1.0, 0.2, 0.2)):
            self.P[k][k] = deviation * deviation
        self.Q = [0.03 * 0.03, 0.03 * 0.03, 0.0006 * 0.0006, 0.0006 * 0.0006]  # diagonal, per s
        self.c, self.lever = sound_speed, lever
        self.dead_reckoning = place
        self.sound_uncertainty = 0.0  # relative standard deviation of the sound speed
        self.innovation = math.nan
        self.accepted = self.rejected = 0
        self._times: list[float] = []
        self._track: list[tuple[float, float, float]] = []  # relative track of the transducer
        self._moved = 0.0, 0.0
        self._time = -1.0

    @property
    def place(self) -> tuple[float, float]:
        """Estimated position (north, east) in m."""
        return self.x[0], self.x[1]

    @property
    def current(self) -> tuple[float, float]:
        """Estimated drift of the water (north, east) in m/s."""
        return self.x[2], self.x[3]

    @property
    def sigma(self) -> tuple[float, float]:
        """Standard deviations of the estimated position in m."""
        return math.sqrt(self.P[0][0]), math.sqrt(self.P[1][1])

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
        lever, x = self.lever, self.x
        north, east = surge * c - sway * s, surge * s + sway * c  # speed through water in W
        self.dead_reckoning = self.dead_reckoning[0] + north * dt, self.dead_reckoning[1] + east * dt
        north, east = (north + x[2]) * dt, (east + x[3]) * dt
        x[0] += north
        x[1] += east
        moved = self._moved = self._moved[0] + north, self._moved[1] + east
        p0, p1, p2, p3 = self.P  # F P F^T + Q dt, where F adds dt times the drift to the position
        for k in range(4):
            p0[k] += dt * p2[k]
            p1[k] += dt * p3[k]
        for k, row in enumerate(self.P):
            row[0] += dt * row[2]
            row[1] += dt * row[3]
            row[k] += self.Q[k] * dt
        if dt > self.GAP:  # otherwise the filter would reject the ranges that could correct its position
            for k in (0, 1):
                self.P[k][k] += self.GAP_SPEED * dt * self.GAP_SPEED * dt
        self._times.append(time)
        self._track.append(
            (
                moved[0] + c * lever[0] - s * lever[1],
                moved[1] + s * lever[0] + c * lever[1],
                depth + lever[2],
            )
        )
        if len(self._times) > self.HISTORY:
            del self._times[: self.HISTORY // 2], self._track[: self.HISTORY // 2]

    def _at(self, time: float) -> list[float]:
        """Return the transducer position on the relative track, interpolated between steps."""
        k = min(max(bisect_left(self._times, time), 1), len(self._times) - 1)
        t0, t1 = self._times[k - 1], self._times[k]
        part = (time - t0) / (t1 - t0)
        return [a + part * (b - a) for a, b in zip(self._track[k - 1], self._track[k], strict=True)]

    def round_trip(self, asked: float, heard: float, beacon: Beacon, sigma: float = 0.8) -> bool:
        """Update the filter with a round trip (times in s). Return False if the measurement is too far from the
        prediction.
        """
        if len(self._times) < 2 or asked < self._times[0]:
            return False
        measured = self.c * (heard - asked - beacon.turn_around)
        h0 = h1 = expected = 0.0  # h0, h1: derivatives of the measurement by north and east; those by the drift are 0
        for time in (asked, heard):
            at = self._at(time)
            north = self.x[0] - self._moved[0] + at[0] - beacon.position[0]
            east = self.x[1] - self._moved[1] + at[1] - beacon.position[1]
            down = at[2] - beacon.position[2]
            distance = math.sqrt(north * north + east * east + down * down)
            expected += distance
            h0 += north / distance
            h1 += east / distance
        self.innovation = measured - expected
        if self.sound_uncertainty > 0.0:
            unknown = self.sound_uncertainty * expected
            sigma = math.sqrt(sigma * sigma + unknown * unknown)
        p0, p1 = self.P[0], self.P[1]
        gain = [h0 * a + h1 * b for a, b in zip(p0, p1, strict=True)]
        S = h0 * gain[0] + h1 * gain[1] + sigma * sigma
        if self.innovation * self.innovation > 25.0 * S:
            self.rejected += 1
            return False
        gain = [g / S for g in gain]
        self.x = [x + g * self.innovation for x, g in zip(self.x, gain, strict=True)]
        new = []  # (I - gain h) P
        for k, (g, row) in enumerate(zip(gain, self.P, strict=True)):
            a, b = float(k == 0) - g * h0, float(k == 1) - g * h1
            new.append([a * u + b * v + (w if k > 1 else 0.0) for u, v, w in zip(p0, p1, row, strict=True)])
        self.P = [[0.5 * (new[i][j] + new[j][i]) for j in range(4)] for i in range(4)]
        self.accepted += 1
        return True
