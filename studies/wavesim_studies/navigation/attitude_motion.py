"""Filter input for a vehicle without an IMU: its motion from an attitude reference (AHRS) and measured
velocities.

The filter propagates the motion with the rates of the AHRS. The centripetal acceleration is the cross product of the
rates and the velocity. All other accelerations are modelled as random; their density follows from the measured speeds
(:mod:`random_accelerations`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.algebra import matvec
from wavesim_sdk.arrays import Floats
from wavesim_sdk.kinematics import body_rate_matrix
from wavesim_studies.navigation.filter import FilterDesign
from wavesim_studies.navigation.random_accelerations import random_accelerations

__all__ = ["ahrs_motion", "rates_of_angles"]

#: random acceleration in m/s/sqrt(s) that is assumed for a vehicle with neither an IMU nor a measured velocity
RANDOM_ACCELERATION = 0.1
#: accuracy that is assumed by default: noise density of the rates in rad/sqrt(s), and standard deviation of tilt in rad
RATE_NOISE, TILT_SIGMA = 1e-3, 0.005


def ahrs_motion(
    time: Any,
    angles: Any,
    rates: Any = None,
    velocity: tuple[Any, Any, Any] | None = None,
    *,
    rate_noise: float = RATE_NOISE,
    tilt_noise: float = TILT_SIGMA,
    **design: Any,
) -> tuple[FilterDesign, Floats]:
    """Return the filter design and the samples (T, 10) that the filter expects, for a vehicle without an IMU.

    ``time`` (T) in s, ``angles`` (T, 3) with roll, pitch and heading in rad, and ``rates`` (T, 3) in rad/s are the
    values of the AHRS; without ``rates``, the rates are computed from the angles. ``velocity`` contains the times in s,
    the velocities (N, 3) in m/s and their standard deviation (one number or three) in m/s, measured by a Doppler log or
    speed log. All vectors are in B (forward, starboard, down). Columns 7 to 9 of the samples are the random
    accelerations of the axes.

    ``rate_noise`` is the noise density of the rates in rad/sqrt(s), and ``tilt_noise`` the error density of roll and
    pitch in rad sqrt(s). Further keywords are passed to ``FilterDesign``, such as ``current`` for velocities through
    the water.
    """
    time, angles = np.asarray(time, float), np.asarray(angles, float)
    if len(time) < 2 or angles.shape != (len(time), 3) or not (np.diff(time) > 0.0).all():
        raise ValueError("`time` (T) must increase and have at least two values; `angles` must have the shape (T, 3)")
    if not np.isfinite(angles).all():
        raise ValueError("`angles` must be finite; omit the times at which they are unknown")
    if (np.abs(angles[:, :2]) > np.pi).any():
        raise ValueError("roll and pitch must be in rad; values beyond pi were found")
    rates = rates_of_angles(time, angles) if rates is None else np.asarray(rates, float)
    if not np.isfinite(rates).all():
        raise ValueError("`rates` must be finite; omit the times at which they are unknown")
    v, agility = np.zeros((len(time), 3)), np.full((len(time), 3), RANDOM_ACCELERATION)
    if velocity is not None and np.isfinite(velocity[1]).all(axis=1).sum() >= 3:
        at, measured = np.asarray(velocity[0], float), np.asarray(velocity[1], float)
        known = np.isfinite(measured).all(axis=1)  # a Doppler log without bottom lock gives NaN
        at, measured = at[known], measured[known]
        walks = random_accelerations(at, measured, np.maximum(np.broadcast_to(velocity[2], 3), 1e-4))
        v, agility = (np.stack([np.interp(time, at, axis) for axis in x.T], axis=1) for x in (measured, walks))
    made = FilterDesign(**{"gyro_noise": rate_noise, **design})
    gravity = made.gravity
    R = frames.rotation(frames.quaternion(*angles.T))
    force = np.cross(rates, v) - gravity * R[:, 2, :]
    samples = np.concatenate([time[:, None], _mean(force), _mean(rates)], axis=1)
    if "accelerometer_noise" in design:
        return made, samples
    # the noise of the tilt adds horizontal accelerations; a smaller part covers the start of a vertical motion
    agility = np.hypot(agility, gravity * tilt_noise * np.array([1.0, 1.0, 0.4]))
    made = replace(made, accelerometer_noise=float(np.sqrt(np.mean(np.square(agility)))))
    return made, np.concatenate([samples, agility], axis=1)


def _mean(x: Floats) -> Floats:
    """Return the mean over the interval before each value, because the filter expects such means. The values are
    interpolated by a cubic through the two values on either side of the interval.
    """
    if len(x) < 4:
        return np.concatenate([x[:1], 0.5 * (x[1:] + x[:-1])])
    inner = (13.0 * (x[1:-2] + x[2:-1]) - x[:-3] - x[3:]) / 24.0
    return np.concatenate([x[:1], 0.5 * (x[:1] + x[1:2]), inner, 0.5 * (x[-2:-1] + x[-1:])])


def rates_of_angles(time: Floats, angles: Floats) -> Floats:
    """Return the angular velocities (T, 3) in B in rad/s, computed from the changes of the angles (T, 3): roll, pitch,
    heading.
    """
    changes = np.gradient(np.unwrap(angles, axis=0), time, axis=0)
    return matvec(body_rate_matrix(angles), changes)
