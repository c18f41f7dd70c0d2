"""Quantities that a VectorNav sensor measures, computed from the sensors of a body."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from wavesim_sdk.epoch import EPOCH, utc
from wavesim_sdk.frames import quaternion, rotation
from wavesim_sdk.wire.state import Value

GAUSS = 1e4  #: number of gauss in a tesla
_GPS_EPOCH_S = 315964800  # 1980-01-06 in Unix time
LEAP_S = 18  #: difference in s between GPS time and UTC
WEEK_NS = 604_800_000_000_000
NOMINAL_SPEED_ACCURACY = 0.05  #: nominal accuracy of the speed in m/s
TRACKING, LOST = 0x0006, 0x0003  #: INS status codes: tracking with a GNSS fix, and loss of GNSS


class Sampler:
    """Collector of the newest measured quantities. When the GNSS fix is lost, the fix type and the number of satellites
    become 0, and the INS status reports the loss. The other GNSS quantities keep their last values.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, tuple[float, ...]] = {
            "temperature": (25.0,),
            "pressure": (101.325,),
            "ins_status": (0,),
            "ypr_accuracy": (0.3, 0.1, 0.1),
        }
        self._last_ns: int | None = None

    def take(self, values: Mapping[str, Value]) -> None:
        """Store the newest value of each sensor type. `ahrs` and `imu` must be among them."""
        n, imu, ahrs = self.numbers, values["imu"], values["ahrs"]
        self._clock(imu.time_ns)
        R = rotation(quaternion(ahrs.roll, ahrs.pitch, ahrs.heading))
        q = quaternion(ahrs.roll, ahrs.pitch, ahrs.heading).tolist()
        yaw = math.degrees(math.remainder(ahrs.heading, 2.0 * math.pi))
        n["ypr"] = yaw, math.degrees(ahrs.pitch), math.degrees(ahrs.roll)
        n["quaternion"] = q[1], q[2], q[3], q[0]
        n["matrix"] = tuple(R.T.flatten().tolist())  # from NED to the body
        n["rates"], n["acceleration"], n["imu"] = imu.rates, imu.force, (*imu.force, *imu.rates)
        n["acceleration_ned"] = tuple((R @ np.array(imu.force)).tolist())
        interval = 0.0 if self._last_ns is None else (imu.time_ns - self._last_ns) * 1e-9
        self._last_ns = imu.time_ns
        angles, velocities = [interval * w for w in imu.rates], [interval * f for f in imu.force]
        n["delta_angles"], n["delta_velocities"] = (interval, *map(math.degrees, angles)), tuple(velocities)
        n["deltas"] = (*n["delta_angles"], *velocities)
        self._surroundings(values, R)
        self._receiver(values.get("gps"), R)

    def _clock(self, time_ns: int) -> None:
        n, moment = self.numbers, utc(time_ns)
        gps_ns = (round(EPOCH.timestamp()) - _GPS_EPOCH_S + LEAP_S) * 10**9 + time_ns
        n["startup"], n["gps_ns"], n["tow_ns"], n["week"] = (
            (time_ns,),
            (gps_ns,),
            (gps_ns % WEEK_NS,),
            (gps_ns // WEEK_NS,),
        )
        n["utc"] = (
            moment.year - 2000, moment.month, moment.day, moment.hour, moment.minute, moment.second,
            moment.microsecond // 1000,
        )  # fmt: skip
        n["time_status"] = (0x07,)

    def _surroundings(self, values: Mapping[str, Value], R: np.ndarray) -> None:
        n = self.numbers
        if (field := values.get("magnetometer")) is not None:
            magnetic = [GAUSS * b for b in field.field]
            n["magnetic"], n["magnetic_ned"] = tuple(magnetic), tuple((R @ np.array(magnetic)).tolist())
        if (ctd := values.get("ctd")) is not None:
            n["temperature"] = (ctd.temperature,)
        if (gauge := values.get("pressure") or ctd) is not None:
            n["pressure"] = (10.0 * gauge.pressure,)
        n["magnetic_pressure"] = (*n.get("magnetic", (0.0, 0.0, 0.0)), *n["temperature"], *n["pressure"])

    def _receiver(self, gps: Value | None, R: np.ndarray) -> None:
        n = self.numbers
        if gps is None:
            n["fix"] = n["satellites"] = (0,)
            n["ins_status"] = (LOST if "lla" in n else 0,)
            return
        north, east = gps.sog * math.cos(gps.cog), gps.sog * math.sin(gps.cog)
        lla = math.degrees(gps.latitude), math.degrees(gps.longitude), gps.height
        n["lla"] = n["gps_lla"] = lla
        n["velocity"] = n["gps_velocity"] = north, east, 0.0
        n["velocity_body"] = tuple((R.T @ np.array((north, east, 0.0))).tolist())
        n["gps_accuracy"] = gps.hacc, gps.hacc, 1.5 * gps.hacc
        n["position_accuracy"], n["speed_accuracy"] = (gps.hacc,), (NOMINAL_SPEED_ACCURACY,)
        n["time_accuracy"], n["fix"], n["satellites"] = (3e-8,), (3,), (gps.satellites,)
        h, v = gps.hdop, 1.5 * gps.hdop
        p = math.hypot(h, v)
        n["dops"] = math.hypot(p, h), p, h, v, h, h / math.sqrt(2.0), h / math.sqrt(2.0)
        n["ins_status"] = (TRACKING,)
