"""Input of the filter for a vehicle without an IMU: its motion from an attitude reference (AHRS) and measured
velocities.

The filter propagates the motion with the rates of the AHRS. The centripetal acceleration is the cross product of the
rates and the velocity. All other accelerations are random; their size is the part of the measured speed changes that the
noise of the velocity does not explain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_studies.navigation.filter import FilterDesign

__all__ = ["ahrs_motion", "rates_of_angles", "speed_walk"]

#: random acceleration in m/s/sqrt(s) that is assumed for a vehicle with neither an IMU nor a measured velocity
RANDOM_ACCELERATION = 0.1
#: accuracy that is assumed by default: noise density of the rates in rad/sqrt(s), and standard deviation of tilt in rad
RATE_NOISE, TILT_SIGMA = 1e-3, 0.005


def ahrs_motion(
    time: Any,
    angles: Any,
    rates: Any = None,
    velocity: tuple[Any, Any, float] | None = None,
    *,
    rate_noise: float = RATE_NOISE,
    tilt_noise: float = TILT_SIGMA,
    **design: Any,
) -> tuple[FilterDesign, Floats]:
    """Return the filter design and the samples (T, 7) that the filter expects, for a vehicle without an IMU.

    ``time`` (T) in s, ``angles`` (T, 3) with roll, pitch and heading in rad, and ``rates`` (T, 3) in rad/s are the
    values of the AHRS; without ``rates``, they are computed from the angles. ``velocity`` contains the times in s, the
    velocities (N, 3) in m/s and their standard deviation in m/s, measured by a Doppler log or speed log. All vectors
    are in B (forward, starboard, down). ``rate_noise`` is the noise density of the rates in rad/sqrt(s), and
    ``tilt_noise`` the error density of roll and pitch in rad sqrt(s). Further keywords are passed to ``FilterDesign``,
    such as ``current`` for velocities through the water.
    """
    time, angles = np.asarray(time, float), np.asarray(angles, float)
    if len(time) < 2 or angles.shape != (len(time), 3) or not (np.diff(time) > 0.0).all():
        raise ValueError("`time` (T) must increase and have at least two values; `angles` must have the shape (T, 3)")
    if (np.abs(angles[:, :2]) > np.pi).any():
        raise ValueError("roll and pitch must be in rad; values beyond pi were found")
    rates = rates_of_angles(time, angles) if rates is None else np.asarray(rates, float)
    v, agility = np.zeros((len(time), 3)), RANDOM_ACCELERATION
    if velocity is not None and len(velocity[0]) >= 3:
        at, measured = np.asarray(velocity[0], float), np.asarray(velocity[1], float)
        v = np.stack([np.interp(time, at, axis) for axis in measured.T], axis=1)
        agility = speed_walk(at, measured, velocity[2])
    made = FilterDesign(**{"gyro_noise": rate_noise, **design})
    gravity = made.gravity
    R = frames.rotation(frames.quaternion(*angles.T))
    force = np.cross(rates, v) - gravity * R[:, 2, :]
    if "accelerometer_noise" not in design:
        noise = float((agility**2 + (gravity * tilt_noise) ** 2) ** 0.5)
        made = FilterDesign(**{"gyro_noise": rate_noise, "accelerometer_noise": noise, **design})
    return made, np.concatenate([time[:, None], _mean(force), _mean(rates)], axis=1)


def _mean(x: Floats) -> Floats:
    """Return the mean of each value and its predecessor, because the filter expects the mean over each interval."""
    return np.concatenate([x[:1], 0.5 * (x[1:] + x[:-1])])


def rates_of_angles(time: Floats, angles: Floats) -> Floats:
    """Return the angular velocities (T, 3) in B in rad/s that belong to changing angles (T, 3): roll, pitch, heading."""
    roll, pitch, heading = np.gradient(np.unwrap(angles, axis=0), time, axis=0).T
    (s, c), pitched = (np.sin(angles[:, 0]), np.cos(angles[:, 0])), angles[:, 1]
    return np.stack(
        [
            roll - np.sin(pitched) * heading,
            c * pitch + s * np.cos(pitched) * heading,
            -s * pitch + c * np.cos(pitched) * heading,
        ],
        axis=1,
    )


def speed_walk(time: Floats, velocity: Floats, noise: float) -> float:
    """Return the random walk in m/s/sqrt(s) of measured velocities (N, 3) with a standard deviation ``noise``.

    The random walk is the part of the velocity change in one second that the noise does not explain.
    """
    step = max(round(1.0 / max(float(np.median(np.diff(time))), 1e-3)), 1)
    lag, change = time[step:] - time[:-step], velocity[step:] - velocity[:-step]
    walk = float((np.square(change).mean(axis=1) - 2.0 * noise**2).sum() / lag.sum()) if len(lag) else 0.0
    return max(walk, 1e-6) ** 0.5
