"""Live navigation of an AUV that has no IMU, with the reference filter (docs/navigation.md).

The filter uses round trips, one-way travel times and directions from a USBL head, and replaces
:class:`navigator.Navigator`.

The filter propagates its state with the rates and angles of the AHRS. The acceleration is computed from the turn rate
and the speed; its uncertainty is the random acceleration of the vehicle. Speed through water, depth, angles and
acoustic measurements correct the filter; the current is part of the state. A round trip involves two positions: the one
at the query, and the one at the reception of the reply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from navigator import Beacon
from wavesim_sdk.algebra import matvec
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.frames import quaternion, rotation
from wavesim_studies.navigation import Filter, FilterDesign, compile_filter
from wavesim_studies.navigation import measurements as make
from wavesim_world.instruments import HEADING_SIGMA, PRESSURE_SIGMA, RATE_SIGMA, SPEED_SIGMA, TILT_SIGMA

Array = np.ndarray[Any, np.dtype[np.float64]]
GRAVITY = 9.81
RATES = RATE_SIGMA * math.sqrt(0.1)  #: noise of the rates of an AHRS at 10 Hz, in rad/sqrt(s)
AGILITY = 0.1  #: random acceleration of the vehicle in m/s/sqrt(s)
CURRENT, CURRENT_WALK = 0.2, 0.002  #: standard deviation of the current in m/s, and its random walk in m/s/sqrt(s)
# Measurements of one time are processed in this order: a range needs an accurate position of the transducer.
ANGLES, DEPTH, SPEED, HEAD, SOUND = range(5)  #: number of each instrument, in the order of processing
NAMES = "ahrs", "depth", "speedlog", "directions", "sound"  #: names of the instruments in warnings
JOLT = 400.0  #: gate for speed measurements, wide enough for a vehicle that starts to move
MEMORY = 2.0  #: maximum delay of a reply in s
#: standard deviation in m of the length of acoustic paths, because beacons swing on their moorings
TWO_WAY, ONE_WAY = 0.3, 0.3


class Reference:
    """Navigation filter of one vehicle."""

    def __init__(
        self,
        place: tuple[float, float],
        sound_speed: float,
        lever: Sequence[float],
        doubt: float = 1.0,
        clock: float = 0.0,
        drift: float = 0.0,
    ) -> None:
        """Create the filter at ``place`` (north, east), with a standard deviation of ``doubt`` m.

        ``lever`` is the position of the transducer in B. ``clock`` (s) and ``drift`` (s/s) are the standard deviations
        of the vehicle's own clock.
        """
        compile_filter()  # compile before joining, so that no other participant has to wait
        self.c, self.doubt, self.lever = sound_speed, doubt, lever
        self.clock = (clock * sound_speed, drift * sound_speed)
        self.place = place
        self.current = 0.0, 0.0
        self.sigma = doubt, doubt
        self.dead_reckoning = list(place)
        self.innovation = math.nan
        self._filter: Filter | None = None
        self._before = np.zeros((2, 3))

    def predict(
        self,
        time: float,
        attitude: tuple[float, float, float],
        rates: Sequence[float],
        v: Sequence[float],
        depth: float,
    ) -> None:
        """Advance to ``time`` (s) with the instrument values of this time: roll, pitch, heading; rates; speed through
        water (B).
        """
        roll, pitch, heading = attitude
        (sr, cr), (sp, cp), (sh, ch) = (sin_cos(a) for a in attitude)
        p, q, r = rates
        push = (
            q * v[2] - r * v[1] + GRAVITY * sp,
            r * v[0] - p * v[2] - GRAVITY * sr * cp,
            p * v[1] - q * v[0] - GRAVITY * cr * cp,
        )
        now = np.array([push, rates], float)
        if self._filter is None:
            self._filter = self._begin(time, attitude, v, depth)
        else:
            dt = time - self._filter.time
            self.dead_reckoning[0] += (v[0] * ch - v[1] * sh) * dt
            self.dead_reckoning[1] += (v[0] * sh + v[1] * ch) * dt
            self._filter.sample(time, *(0.5 * (now + self._before)))  # an IMU reports means
            angles = make.angles(
                time,
                {"roll": roll, "pitch": pitch, "heading": heading},
                (TILT_SIGMA, TILT_SIGMA, HEADING_SIGMA),
                ANGLES,
            )
            self._filter.add(
                angles,
                make.depth(time, depth, PRESSURE_SIGMA, sensor=DEPTH),
                make.velocity(time, v, SPEED_SIGMA, water=True, sensor=SPEED, gate=JOLT),
            )
        self._before = now
        self._look()

    def _begin(self, time: float, attitude: tuple[float, float, float], v: Sequence[float], depth: float) -> Filter:
        design = FilterDesign(
            gyro_noise=RATES,
            accelerometer_noise=AGILITY,
            gravity=GRAVITY,
            current=CURRENT,
            current_walk=CURRENT_WALK,
            clock=self.clock,
        )
        q_WB = quaternion(*attitude)
        sigma = [(self.doubt, self.doubt, 0.1), 0.3, 0.005, 1e-5, 1e-3]
        place = *self.place, depth
        start = design.start(time, place, matvec(rotation(q_WB), np.array(v, float)), q_WB, sigma)
        return Filter(start, memory=MEMORY, names=NAMES)

    def _look(self) -> None:
        assert self._filter is not None
        state = self._filter.state
        north, east, _ = state.p.tolist()
        self.place = north, east
        north, east = state.optional_state("current").tolist()
        self.current = north, east
        self.sigma = math.sqrt(state.P[0, 0]), math.sqrt(state.P[1, 1])

    def round_trip(self, asked: float, heard: float, beacon: Beacon, sigma: float = TWO_WAY) -> None:
        """Update the filter with a round trip (times in s)."""
        length = self.c * (heard - asked - beacon.turn_around)
        self._take(make.round_trip(asked, heard, length, beacon.position, sigma, self.lever, sensor=SOUND))

    def one_way(self, sent: float, heard: float, beacon: Beacon, sigma: float = ONE_WAY) -> None:
        """Update the filter with a one-way travel time from a beacon whose clock and schedule are known."""
        self._take(make.one_way(heard, self.c * (heard - sent), beacon.position, sigma, self.lever, sensor=SOUND))

    def direction(self, heard: float, azimuth: float, elevation: float, beacon: Beacon, sigma: float) -> None:
        """Update the filter with the direction of a beacon (rad in B), measured by a USBL head."""
        if self._filter is not None:
            self._filter.add(make.direction(heard, azimuth, elevation, beacon.position, sigma, self.lever, sensor=HEAD))
            self._look()

    def _take(self, row: Array) -> None:
        if self._filter is None:
            return  # the filter has not started
        self._filter.add(row)
        self.innovation = float(self._filter.innovation(row)[0])
        self._look()
