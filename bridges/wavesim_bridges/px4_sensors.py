"""Sensor values for PX4, computed from a vehicle's motion: inertial, magnetic and pressure sensors, satellite
navigation, odometry and the true state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pygeomag import GeoMag

from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.mavlink_codec import MavlinkWriter
from wavesim_bridges.vehicle_motion import GRAVITY, VehicleMotion
from wavesim_sdk.arrays import Floats
from wavesim_sdk.frames import rotation

FRAME_US = 4000  #: period of the frames in us on PX4's clock (250 Hz)
#: every fifth frame carries compass, pressure and odometry data (50 Hz), and every ``GPS``-th frame carries GPS data
#: (10 Hz)
SLOW = 5
GPS = 25
DEEP_M = 0.5  #: depth in m below which GPS has no fix
YEAR = 2026.0  #: year for which the World Magnetic Model 2025 is evaluated
#: standard deviations of the sensor noise: acceleration (m/s2), turn rate (rad/s), magnetic field (gauss) and pressure
#: (hPa). The noise is necessary because PX4 treats a constant value as a failed sensor
ACCELERATION, RATE, FIELD, PRESSURE = 0.02, 0.001, 0.0005, 0.02
#: accuracy that is stated in the odometry messages (m, m/s, rad), although their values have no error
PLACE, SPEED, ANGLE = 0.01, 0.01, 0.005
_INERTIAL, _MAGNETIC, _PRESSURE = 0x3F, 0x1C0, 0x1A00  # bits of fields_updated
_SURFACE_HPA, _LAPSE, _EXPONENT = 1013.25, 2.25577e-5, 5.25588  # lapse rates of the standard atmosphere, per m
_TEMPERATURE = 15.0


def magnetic_field(origin: WorldOrigin) -> Floats:
    """Return the Earth's magnetic field at the origin (in gauss, in NED) from the World Magnetic Model, which is also
    the source of PX4's declination table.
    """
    found = GeoMag(coefficients_file="wmm/WMM_2025.COF").calculate(origin.latitude, origin.longitude, 0.0, YEAR)
    return 1e-5 * np.array([found.x, found.y, found.z], float)


def diagonal(*variances: float) -> list[float]:
    """Return the upper triangle of a diagonal 6 x 6 covariance matrix in row-major order, as MAVLink sends it."""
    found = [0.0] * 21
    for k, variance in enumerate(variances):
        found[k * (13 - k) // 2] = variance
    return found


class Px4Sensors:
    """Generator of sensor frames for one PX4 instance. ``now_us`` is the time of PX4's clock in us.

    The barometer reports the air pressure at an altitude equal to the negative depth. PX4 has no model of water
    pressure, so it would interpret a depth of 3 m as a change in altitude of 2 km.
    """

    def __init__(self, origin: WorldOrigin, odometry: bool, seed: int) -> None:
        self._origin, self._odometry = origin, odometry
        self._field = magnetic_field(origin)
        self._rng = np.random.default_rng(seed)
        self._writer = MavlinkWriter(1, 200)
        self._pose, self._twist = diagonal(*[PLACE**2] * 3, *[ANGLE**2] * 3), diagonal(*[SPEED**2] * 3, *[RATE**2] * 3)
        self.reset()

    def reset(self) -> None:
        """Reset the state for a new PX4 instance."""
        self._number = -1
        self._truth_every = 0

    def set_truth_interval(self, us: float) -> None:
        """Set the interval at which PX4 requests HIL_STATE_QUATERNION."""
        self._truth_every = max(math.ceil(us / FRAME_US), 1) if 0.0 < us < 1e9 else 0

    def frame(self, motion: VehicleMotion, now_us: int, ranges: Sequence[float] = ()) -> bytes:
        """Return all messages that are due in the next frame. ``ranges`` are in m, downwards; -1 means no echo."""
        self._number += 1
        n, R = self._number, rotation(motion.attitude)
        slow = n % SLOW == 0
        place = self._place(motion) if n % GPS == 0 or (self._truth_every and n % self._truth_every == 0) else {}
        found = self._hil_sensor(motion, R, now_us, slow)
        if slow and self._odometry:
            found += self._of_odometry(motion, R, now_us)
        if slow:
            for k, distance in enumerate(ranges):
                found += self._distance(now_us, k, distance)
        if n % GPS == 0:
            found += self._hil_gps(motion, now_us, place)
        if self._truth_every and n % self._truth_every == 0:
            found += self._truth(motion, R, now_us, place)
        return found

    def _hil_sensor(self, m: VehicleMotion, R: Floats, now_us: int, slow: bool) -> bytes:
        noise = self._rng.standard_normal(10)
        force, rates = m.force + ACCELERATION * noise[:3], m.rates + RATE * noise[3:6]
        values = {
            "time_usec": now_us,
            "fields_updated": _INERTIAL,
            "xacc": force[0],
            "yacc": force[1],
            "zacc": force[2],
            "xgyro": rates[0],
            "ygyro": rates[1],
            "zgyro": rates[2],
        }
        if slow:
            field = R.T @ self._field + FIELD * noise[6:9]
            altitude = -float(m.position[2])
            pressure = _SURFACE_HPA * (1.0 - _LAPSE * altitude) ** _EXPONENT + PRESSURE * noise[9]
            values |= {
                "xmag": field[0],
                "ymag": field[1],
                "zmag": field[2],
                "abs_pressure": pressure,
                "pressure_alt": altitude,
                "temperature": _TEMPERATURE,
                "fields_updated": _INERTIAL | _MAGNETIC | _PRESSURE,
            }
        return self._writer.frame("HIL_SENSOR", **values)

    def _of_odometry(self, m: VehicleMotion, R: Floats, now_us: int) -> bytes:
        x, y, z = m.position.tolist()
        vx, vy, vz = (R.T @ m.velocity).tolist()
        p, q, r = m.rates.tolist()
        return self._writer.frame(
            "ODOMETRY",
            time_usec=now_us,
            frame_id=1,
            child_frame_id=12,
            estimator_type=2,
            quality=100,
            x=x,
            y=y,
            z=z,
            q=m.attitude.tolist(),
            vx=vx,
            vy=vy,
            vz=vz,
            rollspeed=p,
            pitchspeed=q,
            yawspeed=r,
            pose_covariance=self._pose,
            velocity_covariance=self._twist,
        )

    def _distance(self, now_us: int, number: int, metres: float) -> bytes:
        far = 5000
        cm = round(100.0 * metres) if 0.0 <= metres < far / 100 else far + 1
        return self._writer.frame(
            "DISTANCE_SENSOR",
            time_boot_ms=now_us // 1000,
            min_distance=20,
            max_distance=far,
            current_distance=cm,
            type=1,
            id=number,
            orientation=25,
        )

    def _place(self, m: VehicleMotion) -> dict[str, int]:
        latitude, longitude = self._origin.degrees(float(m.position[0]), float(m.position[1]))
        return {"lat": round(1e7 * latitude), "lon": round(1e7 * longitude), "alt": round(-1e3 * float(m.position[2]))}

    def _hil_gps(self, m: VehicleMotion, now_us: int, place: dict[str, int]) -> bytes:
        speed, at_surface = math.hypot(m.velocity[0], m.velocity[1]), m.position[2] <= DEEP_M
        course = round(math.degrees(math.atan2(m.velocity[1], m.velocity[0])) * 100) % 36000
        return self._writer.frame(
            "HIL_GPS",
            time_usec=now_us,
            **place,
            fix_type=3 if at_surface else 0,
            satellites_visible=12 if at_surface else 0,
            eph=30,
            epv=40,
            vel=_short(100 * speed),
            cog=course if speed > 0.1 else 65535,
            **{k: _short(100 * float(v)) for k, v in zip(("vn", "ve", "vd"), m.velocity, strict=True)},
        )

    def _truth(self, m: VehicleMotion, R: Floats, now_us: int, place: dict[str, int]) -> bytes:
        acceleration = (m.force + GRAVITY * R[2]) * (1000.0 / GRAVITY)  # milli-g in the body frame, without gravity
        return self._writer.frame(
            "HIL_STATE_QUATERNION",
            time_usec=now_us,
            attitude_quaternion=m.attitude.tolist(),
            **place,
            **dict(zip(("rollspeed", "pitchspeed", "yawspeed"), m.rates.tolist(), strict=True)),
            **{k: _short(100 * float(v)) for k, v in zip(("vx", "vy", "vz"), m.velocity, strict=True)},
            **{k: _short(float(a)) for k, a in zip(("xacc", "yacc", "zacc"), acceleration, strict=True)},
        )


def _short(value: float) -> int:
    return min(max(round(value), -32767), 32767)
