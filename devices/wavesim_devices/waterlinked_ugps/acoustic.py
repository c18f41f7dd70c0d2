"""Position of the locator relative to the antenna.

The locator pings at multiples of a period on a clock that is synchronised with the clock of the topside (through a
cable, or with a satellite receiver before the dive). The arrival time of a ping therefore gives the range to the
locator, and the arrival times at the antenna's hydrophones give the direction of the locator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wavesim_devices.level_frame import Point, level_direction
from wavesim_sdk.wire.items import Reception

POSITION_GAIN, VELOCITY_GAIN = 0.5, 0.15  #: gains with which each ping corrects the filtered position and velocity
SPREAD_GAIN = 0.1  #: gain of the running mean square of the filter's innovations
PING_LIMIT = 4.0  #: number of periods without a ping after which the filter restarts


@dataclass(frozen=True)
class RawPosition:
    """Position computed from one ping: forward, starboard and down from the antenna (m), in a level frame."""

    time: float  #: time of arrival on the node's clock in s
    point: Point
    level: float  #: received level in dB
    noise: float  #: noise level in the band of the ping in dB


def raw_position(
    heard: Reception,
    emission: tuple[float, float],
    sound_speed: float,
    attitude: tuple[float, float],
    down: float | None,
) -> RawPosition | None:
    """Return the position computed from a ping, or None if the ping has no direction or its range contradicts the
    depth.

    ``emission`` is the period and the offset of the pings in s, and ``attitude`` is roll and pitch in rad. ``down`` is
    the known depth below the antenna in m; if it is None, the depth follows from the elevation of the arrival.
    """
    if heard.azimuth is None or heard.elevation is None:
        return None
    period, offset = emission
    time = heard.reception_ns * 1e-9
    distance = sound_speed * ((time - offset) % period)
    point = [distance * v for v in level_direction(heard.azimuth, heard.elevation, *attitude)]
    if down is not None:
        flat = math.hypot(point[0], point[1])
        if abs(down) > distance or not flat:
            return None
        scale = math.sqrt(distance**2 - down**2) / flat
        point = [scale * point[0], scale * point[1], down]
    return RawPosition(time, (point[0], point[1], point[2]), heard.level, heard.level - heard.snr)


class PositionFilter:
    """Filter that assumes constant velocity (alpha-beta filter)."""

    def __init__(self, period: float) -> None:
        self._period = period
        self.point: Point | None = None
        self.std = 0.0  #: root mean square of the horizontal innovations in m
        self._velocity = [0.0, 0.0, 0.0]
        self._time = 0.0

    def update(self, raw: RawPosition) -> Point:
        """Add a position and return the filtered position."""
        step = raw.time - self._time
        if self.point is None or not 0.0 < step <= PING_LIMIT * self._period:
            self.point, self._velocity, self.std = raw.point, [0.0, 0.0, 0.0], 0.0
        else:
            ahead = [p + v * step for p, v in zip(self.point, self._velocity, strict=True)]
            off = [r - p for r, p in zip(raw.point, ahead, strict=True)]
            self._velocity = [v + VELOCITY_GAIN * d / step for v, d in zip(self._velocity, off, strict=True)]
            x, y, z = (p + POSITION_GAIN * d for p, d in zip(ahead, off, strict=True))
            self.point = x, y, z
            self.std = math.sqrt((1.0 - SPREAD_GAIN) * self.std**2 + SPREAD_GAIN * (off[0] ** 2 + off[1] ** 2))
        self._time = raw.time
        return self.point


def receiver_distances(point: Point, receivers: Sequence[Point], antenna: Point, rotation: float) -> list[float]:
    """Return the distance in m between a point and each receiver.

    ``point`` and the position of the ``antenna`` are in the frame of the topside. ``receivers`` are in the frame of the
    antenna, which is rotated by ``rotation`` (rad).
    """
    s, c = math.sin(rotation), math.cos(rotation)
    found = []
    for x, y, z in receivers:
        place = antenna[0] + c * x - s * y, antenna[1] + s * x + c * y, antenna[2] + z
        found.append(math.dist(point, place))
    return found
