"""Measurement of the Water Linked DVL: velocity, beams and altitude, computed from one value of the ``dvl`` sensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_devices.waterlinked_dvl.settings import RANGE_MODES, WATER_SPEED, DvlSettings, Variant
from wavesim_sdk.arrays import Floats
from wavesim_sdk.wire.state import Value

BEAM_ANGLE = math.radians(22.5)  #: angle between each beam and the z axis in rad
ORDER = (1, 2, 3, 0)  #: the sensor's beams (azimuths 45, 135, 225, 315 degrees) in the order of transducers 0 to 3
WATER_LAYER = (1.5, 4.5)  #: distances along z in m between which the velocity of the water is measured
#: unit vectors of transducers 0 to 3 in the frame of the DVL: x forward, y starboard, z down (4, 3)
DIRECTIONS = np.array(
    [
        (math.sin(BEAM_ANGLE) * math.cos(a), math.sin(BEAM_ANGLE) * math.sin(a), math.cos(BEAM_ANGLE))
        for a in np.radians((135.0, 225.0, 315.0, 45.0))
    ]
)
NOISE_DBM = -96.0  #: noise density of a transducer in dBm
_MEMORY = 20  #: number of measurements over which the noise of a beam is averaged
INVALID_FOM = 2.707  #: figure of merit that is reported for an invalid velocity


@dataclass(frozen=True)
class Beam:
    """Echo at one transducer: velocity along the beam in m/s and distance in m. NaN means that there was no echo."""

    velocity: float
    distance: float

    @property
    def valid(self) -> bool:
        """Whether there was an echo."""
        return math.isfinite(self.distance)

    @property
    def level(self) -> float:
        """Level of the echo in dBm: a nominal level that decreases with the distance, or the noise level if there was
        no echo.
        """
        return -35.0 - 20.0 * math.log10(max(self.distance, 0.1)) if self.valid else NOISE_DBM


@dataclass(frozen=True)
class Measurement:
    """One measurement. The velocity is given in the frame of the vehicle (x forward, y starboard, z down), that is,
    after the mounting rotation.
    """

    time_ns: int
    interval_ms: float  #: time in ms since the previous measurement
    velocity: tuple[float, float, float]  #: velocity of the vehicle in m/s; NaN = invalid
    covariance: Floats  #: covariance of the velocity in (m/s)2, with the shape (3, 3)
    beams: tuple[Beam, ...]
    altitude: float  #: altitude above the bottom in m; NaN = unknown
    is_water: bool = False  #: whether the velocity is relative to the water

    @property
    def valid(self) -> bool:
        """Whether the velocity is valid."""
        return math.isfinite(self.velocity[0])

    @property
    def figure_of_merit(self) -> float:
        """Standard deviation of the velocity in m/s."""
        return math.sqrt(float(np.trace(self.covariance))) if self.valid else INVALID_FOM


def rotation_about_z(degrees: float) -> Floats:
    """Return the matrix (3, 3) that transforms vectors from the DVL frame to the vehicle frame."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


class Meter:
    """Converter of sensor values into measurements. Each pair of opposite beams measures
    the vertical velocity; the noise of the beams follows from the difference between the two results.
    """

    def __init__(self, variant: Variant, sound_speed: float) -> None:
        self.variant, self.sound_speed = variant, sound_speed
        self._beam_variance = 0.005**2

    def bottom(self, value: Value, settings: DvlSettings, interval_ms: float) -> Measurement:
        """Measure the velocity over the bottom, using the beams for which the altitude is within the limits of the
        range mode and the variant.
        """
        scale = settings.speed_of_sound / self.sound_speed  # it measures times and frequencies
        modes = [RANGE_MODES[k] for k in settings.modes]
        lowest, highest = min(m.lowest for m in modes), min(max(m.highest for m in modes), self.variant.maximum)
        beams = []
        for k in ORDER:
            vertical = value.ranges[k] * math.cos(BEAM_ANGLE)
            good = lowest <= vertical <= highest
            beams.append(Beam(value.beams[k] * scale, value.ranges[k] * scale) if good else Beam(math.nan, math.nan))
        found = [b.distance for b in beams if b.valid]
        if len(found) == len(beams):
            a, b, c, d = (beam.velocity for beam in beams)
            self._beam_variance += (((a + c - b - d) / 2.0) ** 2 - self._beam_variance) / _MEMORY
        velocity = [v * scale for v in value.bottom]
        if len(found) < 3 or not math.hypot(*velocity) <= self.variant.maximum_speed:
            return self._measurement(value.time_ns, interval_ms, None, beams, settings)
        altitude = sum(found) / len(found) * math.cos(BEAM_ANGLE)
        return self._measurement(value.time_ns, interval_ms, velocity, beams, settings, altitude)

    def water(self, value: Value, settings: DvlSettings, interval_ms: float) -> Measurement:
        """Measure the velocity through the water in a layer below the DVL. The layer must end above the bottom."""
        velocity = [v * settings.speed_of_sound / self.sound_speed for v in value.water]
        if value.altitude < WATER_LAYER[1] or not math.hypot(*velocity) <= WATER_SPEED:
            none = [Beam(math.nan, math.nan)] * len(ORDER)
            return self._measurement(value.time_ns, interval_ms, None, none, settings, is_water=True)
        middle = sum(WATER_LAYER) / 2.0 / math.cos(BEAM_ANGLE)
        beams = [Beam(float(v), middle) for v in DIRECTIONS @ np.array(velocity)]
        return self._measurement(value.time_ns, interval_ms, velocity, beams, settings, is_water=True)

    def _measurement(
        self,
        time_ns: int,
        interval_ms: float,
        velocity: Sequence[float] | None,
        beams: Sequence[Beam],
        settings: DvlSettings,
        altitude: float = math.nan,
        is_water: bool = False,
    ) -> Measurement:
        turned, covariance = np.full(3, math.nan), np.zeros((3, 3))
        if velocity is not None:
            turn = rotation_about_z(settings.mounting_rotation_offset)
            used = DIRECTIONS[[b.valid for b in beams]]
            turned = turn @ np.array(velocity)
            covariance = turn @ (self._beam_variance * np.linalg.inv(used.T @ used)) @ turn.T
        x, y, z = turned.tolist()
        return Measurement(time_ns, interval_ms, (x, y, z), covariance, tuple(beams), altitude, is_water)
