"""Declarations of instruments that measure the motion of the body: IMU, AHRS, speed log, encoder."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_world.config.schema import Vector, choice, flag, key
from wavesim_world.config.sensor_base import SensorConfig, covariance


@dataclass(frozen=True)
class ImuConfig(SensorConfig):
    """Inertial measurement unit with errors on each axis, in SI units.

    The errors of the IMU are white noise, biases (turn-on, instability and random walk), scale factors, misalignment
    and quantisation. If `grade` selects a specific instrument, its errors replace the values of all keys left at their
    defaults.
    """

    grade: str = choice(
        "Grade of the IMU. The errors of this grade replace the values of all keys left at their defaults. mems: the "
        "defaults "
        "of the keys, for a MEMS IMU typical of robots. tactical: Sensonor STIM300. navigation: Honeywell HG9900.",
        ("mems", "tactical", "navigation"),
        "mems",
    )
    gyro_noise: float = key("Angular random walk of the gyros, in rad/s/sqrt(Hz).", default=3.394e-4, low=0.0)
    gyro_walk: float = key("Random walk of the gyro bias, in rad/s2/sqrt(Hz).", default=3.8785e-5, low=0.0)
    gyro_turn_on: float = key(
        "Standard deviation of the gyro turn-on bias, in rad/s. The bias differs from one start to the next.",
        default=0.0087,
        low=0.0,
    )
    gyro_instability: float = key(
        "Bias instability of the gyros: the flat level of the Allan deviation, in rad/s.", default=0.0, low=0.0
    )
    gyro_scale: float = key("Standard deviation of the gyro scale factor error.", "drift", 0.0, low=0.0)
    gyro_step: float = key(
        "Quantisation step of the angle that the gyros measure; 0 = no quantisation.", "angle", 0.0, low=0.0
    )
    accelerometer_noise: float = key(
        "Velocity random walk of the accelerometers, in m/s2/sqrt(Hz).", default=0.004, low=0.0
    )
    accelerometer_walk: float = key("Random walk of the accelerometer bias, in m/s3/sqrt(Hz).", default=0.006, low=0.0)
    accelerometer_turn_on: float = key(
        "Standard deviation of the accelerometer turn-on bias, in m/s2. The bias differs from one start to the next.",
        default=0.196,
        low=0.0,
    )
    accelerometer_instability: float = key(
        "Bias instability of the accelerometers: the flat level of the Allan deviation, in m/s2.", default=0.0, low=0.0
    )
    accelerometer_scale: float = key(
        "Standard deviation of the accelerometer scale factor error.", "drift", 0.0, low=0.0
    )
    accelerometer_step: float = key(
        "Quantisation step of the velocity increment that the accelerometers measure in each sample; 0 = no quantisation.",
        "speed",
        0.0,
        low=0.0,
    )
    acceleration_covariance: Vector = covariance("the specific force", "frame S, (m/s2)2", "`accelerometer_noise`")
    angular_rate_covariance: Vector = covariance("the angular rate", "frame S, (rad/s)2", "`gyro_noise`")
    instability_time: float = key(
        "Correlation time of the bias instability of gyros and accelerometers.", "time", 300.0, low=0.1
    )
    misalignment: float = key(
        "Standard deviation of the misalignment between any two axes of the IMU.", "angle", 0.0, low=0.0
    )
    earth: bool = flag(
        "Whether the IMU measures the rotation of the earth: its angular rate, and the Coriolis acceleration of a "
        "moving body.",
        False,
    )

    @functools.cached_property
    def resolved(self) -> ImuConfig:
        """Copy of this configuration in which the grade replaces the value of every key left at its default."""
        standing = {f.name for f in fields(ImuConfig) if getattr(self, f.name) == f.default}
        return replace(self, **{k: v for k, v in IMU_GRADES[self.grade].items() if k in standing})


#: IMU errors of each grade in SI units, from data sheets. The names are fields of ImuConfig.
# STIM300 (10 g): 0.15 deg/sqrt(h), 0.5 deg/h, 5 deg/h over temperature, 500 ppm; 0.06 m/s/sqrt(h), 0.05 mg, 0.75 mg
# from start to start, 300 ppm; 1 mrad. HG9900: 0.002 deg/sqrt(h), 0.0035 deg/h, 5 ppm; 25 ug, 100 ppm. The sheet of the
# HG9900 omits velocity random walk, instability and misalignment; assumed: 5 ug/sqrt(Hz), a third of the biases, 20 urad.
IMU_GRADES: dict[str, dict[str, Any]] = {
    "mems": {},
    "tactical": {
        "gyro_noise": 4.363e-5,
        "gyro_walk": 0.0,
        "gyro_turn_on": 2.424e-5,
        "gyro_instability": 2.424e-6,
        "gyro_scale": 5e-4,
        "accelerometer_noise": 1e-3,
        "accelerometer_walk": 0.0,
        "accelerometer_turn_on": 7.36e-3,
        "accelerometer_instability": 4.905e-4,
        "accelerometer_scale": 3e-4,
        "misalignment": 1e-3,
    },
    "navigation": {
        "gyro_noise": 5.818e-7,
        "gyro_walk": 0.0,
        "gyro_turn_on": 1.697e-8,
        "gyro_instability": 5.66e-9,
        "gyro_scale": 5e-6,
        "accelerometer_noise": 4.9e-5,
        "accelerometer_walk": 0.0,
        "accelerometer_turn_on": 2.4525e-4,
        "accelerometer_instability": 8.2e-5,
        "accelerometer_scale": 1e-4,
        "misalignment": 2e-5,
    },
}


@dataclass(frozen=True)
class AhrsConfig(SensorConfig):
    """Attitude and heading reference system."""

    orientation_covariance: Vector = covariance(
        "roll, pitch and heading", "rad2", "independent errors of 0.1, 0.1 and 0.3 deg"
    )
    angular_rate_covariance: Vector = covariance(
        "the angular rate", "frame B, (rad/s)2", "independent errors of 0.02 deg/s"
    )


@dataclass(frozen=True)
class SpeedLogConfig(SensorConfig):
    """Speed log: speed through the water."""

    velocity_covariance: Vector = covariance("the velocity", "frame B, (m/s)2", "independent errors of 1 cm/s")


@dataclass(frozen=True)
class EncoderConfig(SensorConfig):
    """Encoder: actual values of the actuators. The noise of a value depends on the unit of its actuator. If
    actuators of the same kind have different noise, declare several encoders.
    """

    angle_sigma: float = key(
        "Standard deviation of the noise in the angles of fins and swivels.", "angle", 0.0, low=0.0
    )
    rotation_sigma: float = key(
        "Standard deviation of the noise in the shaft speeds of thrusters.", "rotation", 0.0, low=0.0
    )
    force_sigma: float = key(
        "Standard deviation of the noise in the thrust of thrusters without a shaft.", "force", 0.0, low=0.0
    )
    mass_sigma: float = key(
        "Standard deviation of the noise in the reported mass of ballast tanks.", "mass", 0.0, low=0.0
    )

    @property
    def sigmas(self) -> dict[str, float]:
        """Standard deviation of the noise for each unit of actual values."""
        return {"rad": self.angle_sigma, "1/s": self.rotation_sigma, "N": self.force_sigma, "kg": self.mass_sigma}
