"""Binary packets of the Nucleus: a header of 10 bytes, the common fields, and the data."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

IMU, MAGNETOMETER, ALTIMETER, BOTTOM_TRACK, WATER_TRACK, AHRS, INS = 0x82, 0x87, 0xAA, 0xB4, 0xBE, 0xD2, 0xDC
SERIAL = 100001
FIGURE_OF_MERIT = 0.005  #: nominal figure of merit of a velocity in m/s
_AHRS_OFFSET = 36


def checksum(data: bytes) -> int:
    """Return the checksum: the sum of B58C (hex) and the little-endian words of the data. If the number of bytes is
    odd, the last byte counts as the high byte of a word.
    """
    words: tuple[int, ...] = struct.unpack(f"<{len(data) // 2}H", data[: len(data) // 2 * 2])
    return (0xB58C + sum(words) + (data[-1] << 8 if len(data) % 2 else 0)) & 0xFFFF


def packet(identifier: int, data: bytes) -> bytes:
    """Return a packet: the header, followed by the data."""
    head = struct.pack("<BBBBHH", 0xA5, 10, identifier, 0x20, len(data), checksum(data) if data else 0)
    return head + struct.pack("<H", checksum(head)) + data


def _common(version: int, offset: int, unix_us: int) -> bytes:
    return struct.pack("<BBBBII", version, offset, 1, 0, unix_us // 1_000_000, unix_us % 1_000_000)


@dataclass(frozen=True)
class WaterState:
    """State of the water at the instrument: speed of sound in m/s, temperature in deg C, gauge pressure in dbar."""

    sound_speed: float
    temperature: float
    pressure: float


def _number(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def track(
    unix_us: int, water: WaterState, velocities: Sequence[float], distances: Sequence[float], xyz: Sequence[float]
) -> bytes:
    """Return the data of a bottom or water track: velocities along the beams, distances and velocity. NaN marks an
    invalid number.
    """
    beams, ranges = [math.isfinite(v) for v in velocities], [math.isfinite(d) for d in distances]
    valid = [math.isfinite(v) for v in xyz]
    bits = [*beams, *ranges, *beams, *valid, *valid]
    status = sum(1 << k for k, is_set in enumerate(bits) if is_set)
    fom = [FIGURE_OF_MERIT if v else 0.0 for v in (*beams, *valid)]
    travel = [2.0 * _number(d) / water.sound_speed for d in distances]
    numbers = (
        *map(_number, velocities), *map(_number, distances), *fom[:3], *travel, 0.0, 0.0, 0.0, *map(_number, xyz),
        *fom[3:], max(travel),
    )  # fmt: skip
    head = _common(1, 36, unix_us) + struct.pack("<III", status, SERIAL, 0)
    return head + struct.pack("<3f22f", water.sound_speed, water.temperature, water.pressure, *numbers)


def altimeter(unix_us: int, water: WaterState, distance: float) -> bytes:
    """Return the data of the altimeter. A distance of NaN means that there is no valid distance."""
    status = (3 if math.isfinite(distance) else 0) | 3 << 16
    head = _common(1, 36, unix_us) + struct.pack("<III", status, SERIAL, 0)
    numbers = water.sound_speed, water.temperature, water.pressure, _number(distance)
    return head + struct.pack("<4fHH", *numbers, 100 if math.isfinite(distance) else 0, 0)


def vectors(unix_us: int, status: int, numbers: Sequence[float]) -> bytes:
    """Return the data of the IMU or the magnetometer."""
    return _common(1, 16, unix_us) + struct.pack(f"<I{len(numbers)}f", status, *numbers)


@dataclass(frozen=True)
class Attitude:
    """Attitude: roll, pitch and heading in deg, quaternion (scalar first), rotation matrix, and other values in the
    AHRS packet."""

    angles: tuple[float, float, float]
    quaternion: Sequence[float]
    matrix: Sequence[float]  #: rotation matrix from the body frame to NED, in row-major order
    declination: float
    depth: float

    def data(self, unix_us: int) -> bytes:
        """Return the data of the AHRS packet."""
        head = struct.pack("<IIBBHff", SERIAL, 0, 0, 0, 0, 0.5, 0.5)
        numbers = *self.angles, *self.quaternion, *self.matrix, self.declination, self.depth
        return _common(2, _AHRS_OFFSET, unix_us) + bytes(4) + head + struct.pack("<18f", *numbers)


@dataclass(frozen=True)
class Navigation:
    """Inertial navigation: course in deg, altitude and position in m from the start, velocities in m/s, rates in deg/s.
    ``latitude`` and ``longitude`` are in deg, or None if there is no start position.
    """

    course: float
    altitude: float
    latitude: float | None
    longitude: float | None
    position: Sequence[float]
    velocity_ned: Sequence[float]
    velocity_body: Sequence[float]
    rates: Sequence[float]

    def data(self, unix_us: int, attitude: Attitude, water: WaterState) -> bytes:
        """Return the data of the INS packet."""
        known = self.latitude is not None
        numbers = self.course, water.temperature, water.pressure, _number(self.altitude)
        speed = math.hypot(self.velocity_ned[0], self.velocity_ned[1])
        return (
            attitude.data(unix_us)
            + struct.pack("<fI4fdd8x", FIGURE_OF_MERIT, known, *numbers, self.latitude or 0.0, self.longitude or 0.0)
            + struct.pack("<13f", *self.position, *self.velocity_ned, *self.velocity_body, speed, *self.rates)
        )
