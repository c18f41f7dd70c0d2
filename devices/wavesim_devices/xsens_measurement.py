"""Measurement of an Xsens MTi: the numbers for each data identifier, computed from the newest values of the body's
sensors.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.epoch import utc
from wavesim_sdk.frames import quaternion, rotation
from wavesim_sdk.wire.state import Value

PA_PER_DBAR = 1e4
#: rotation matrix from NED to the local frame, by the coordinate bits of a data identifier
LOCAL: Mapping[int, Floats] = MappingProxyType(
    {
        0x0: np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]),
        0x4: np.eye(3),
        0x8: np.diag([1.0, -1.0, -1.0]),
    }
)
HOUSING = np.diag([1.0, -1.0, -1.0])  #: rotation matrix from the body to the housing


def _matrix_quaternion(R: Floats) -> list[float]:
    """Return the quaternion of a rotation matrix. Its first element is the scalar, and is not negative."""
    trace = float(np.trace(R))
    if trace > 0.0:
        s = 2.0 * math.sqrt(1.0 + trace)
        return [s / 4.0, (R[2, 1] - R[1, 2]) / s, (R[0, 2] - R[2, 0]) / s, (R[1, 0] - R[0, 1]) / s]
    i = int(np.argmax(np.diag(R)))
    j, k = (i + 1) % 3, (i + 2) % 3
    s = 2.0 * math.sqrt(max(1.0 + R[i, i] - R[j, j] - R[k, k], 1e-12))
    q = [(R[k, j] - R[j, k]) / s, 0.0, 0.0, 0.0]
    q[1 + i], q[1 + j], q[1 + k] = s / 4.0, (R[j, i] + R[i, j]) / s, (R[k, i] + R[i, k]) / s
    return [-x for x in q] if q[0] < 0.0 else q


@dataclass
class MtiMeasurement:
    """Newest value of each sensor type. The types must include `ahrs` and `imu`."""

    number: int
    values: Mapping[str, Value]

    @property
    def time_ns(self) -> int:
        """Time of the measurement."""
        return self.values["imu"].time_ns

    def orientation(self, frame: int) -> Floats:
        """Return the rotation matrix from the housing to the local frame."""
        a = self.values["ahrs"]
        return np.asarray(LOCAL[frame] @ rotation(quaternion(a.roll, a.pitch, a.heading)) @ HOUSING.T)

    def numbers(self, group: int, frame: int) -> Sequence[float] | None:
        """Return the numbers of a quantity, or None if it is not measured. The quantity is given by its data identifier
        without the low nibble.
        """
        v = self.values
        gps = v.get("gps")
        match group:
            case 0x0810:
                return [v["ctd"].temperature] if "ctd" in v else [25.0]
            case 0x2010:
                return _matrix_quaternion(self.orientation(frame))
            case 0x2030:
                R = self.orientation(frame)
                pitch = -math.asin(min(max(R[2, 0], -1.0), 1.0))
                return [math.degrees(a) for a in (math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0]))]
            case 0x4020:
                return (HOUSING @ np.array(v["imu"].force)).tolist()  # type: ignore[no-any-return]
            case 0x8020:
                return (HOUSING @ np.array(v["imu"].rates)).tolist()  # type: ignore[no-any-return]
            case 0xC020:
                field = v.get("magnetometer")  # relative to the field at the factory: about 49 uT
                return None if field is None else (HOUSING @ np.array(field.field) / 49e-6).tolist()
            case 0x5020:
                return None if gps is None else [gps.height]
            case 0x5040:
                return None if gps is None else [math.degrees(gps.latitude), math.degrees(gps.longitude)]
            case 0xD010:
                if gps is None:
                    return None
                north_east = np.array([gps.sog * math.cos(gps.cog), gps.sog * math.sin(gps.cog), 0.0])
                return (LOCAL[frame] @ north_east).tolist()  # type: ignore[no-any-return]
        return None

    def integers(self, group: int) -> bytes | None:
        """Return the content of a data identifier that consists of integers, or None if it is not measured."""
        t, ns = utc(self.time_ns), self.time_ns
        pressure = self.values.get("pressure") or self.values.get("ctd")
        match group:
            case 0x1010:
                clock = (t.month, t.day, t.hour, t.minute, t.second, 7)
                return struct.pack(">IH6B", ns % 10**9 // 1000 * 1000, t.year, *clock)
            case 0x1020:
                return struct.pack(">H", self.number & 0xFFFF)
            case 0x1060:
                return struct.pack(">I", ns // 100_000 & 0xFFFFFFFF)
            case 0x3010:
                return None if pressure is None else struct.pack(">I", round(pressure.pressure * PA_PER_DBAR))
            case 0xE010:
                return bytes((0x07 if "gps" in self.values else 0x03,))
            case 0xE020:
                return struct.pack(">I", 0x07 if "gps" in self.values else 0x03)
        return None
