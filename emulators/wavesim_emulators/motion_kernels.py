"""Kernels of motion sensors: AHRS, speed log and Doppler log. The tests contain a readable second implementation of
each kernel.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators import ray_kernels
from wavesim_emulators.bank_kernels import (
    ATTITUDE,
    DEPTH,
    FALSE,
    FLAGS,
    NUMBERS,
    R_WS,
    RAYS,
    ROWS,
    SPEED,
    THROUGH,
    TRUE,
    TURN_RATE,
    VALID,
    VECTOR,
    VELOCITY_THROUGH_WATER,
    Kernels,
    to_inner,
)
from wavesim_emulators.ray_kernels import CLOSING, DIRECTION, RANGE
from wavesim_kernels import compiled_elementary  # noqa: F401  # registers the elementary functions with Numba
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk import elementary
from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_sdk.sensors import DVL_BEAMS, SENSORS
from wavesim_world.instruments import HEADING_SIGMA, RATE_SIGMA, SPEED_SIGMA, TILT_SIGMA

_ahrs, _log, _dvl = (SENSORS[name].first_columns for name in ("ahrs", "speedlog", "dvl"))
_ROLL, _PITCH, _HEADING, _RATES = _ahrs["roll"], _ahrs["pitch"], _ahrs["heading"], _ahrs["rates"]
_LOG_SPEED = _log["v_FB_B"]
_BOTTOM, _WATER, _ALTITUDE = _dvl["bottom"], _dvl["water"], _dvl["altitude"]
_BEAMS, _RANGES, _LOCKED = _dvl["beams"], _dvl["ranges"], _dvl["locked"]


@device_function
def atan2(y: float, x: float) -> float:
    """Return the angle of the vector (x, y) in rad. This wrapper is compiled only once, for all callers."""
    return float(elementary.atan2(y, x))


@kernel
def fill_ahrs(state: Floats, bodies: Ints, noise: Floats, out: Floats) -> None:
    """Compute the values of AHRS instruments from the `state` table and standard normal random numbers (n, 6)."""
    for i in range(len(bodies)):
        b = state[bodies[i]]
        w, x, y, z = b[ATTITUDE], b[ATTITUDE + 1], b[ATTITUDE + 2], b[ATTITUDE + 3]
        pitch = elementary.asin(2 * (w * y - z * x))
        heading = atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) + HEADING_SIGMA * noise[i, 2]
        out[i, _ROLL] = atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)) + TILT_SIGMA * noise[i, 0]
        out[i, _PITCH] = pitch + TILT_SIGMA * noise[i, 1]
        out[i, _HEADING] = heading % (2 * math.pi)
        for k in range(3):
            out[i, _RATES + k] = b[TURN_RATE + k] + RATE_SIGMA * noise[i, 3 + k]


@kernel
def fill_speed_log(state: Floats, bodies: Ints, noise: Floats, out: Floats) -> None:
    """Compute the values of speed logs from the `state` table and standard normal random numbers (n, 3)."""
    for i in range(len(bodies)):
        for k in range(3):
            out[i, _LOG_SPEED + k] = state[bodies[i], VELOCITY_THROUGH_WATER + k] + SPEED_SIGMA * noise[i, k]


@device_function
def solve_velocity(inverse: Floats, along: Floats, row: Floats, first: int) -> None:
    """Compute the velocity in S from the velocities along the beams. ``inverse`` is a matrix (3, beams)."""
    for j in range(3):
        total = inverse[j, 0] * along[0]
        for k in range(1, inverse.shape[1]):
            total = total + inverse[j, k] * along[k]
        row[first + j] = total


@kernel
def fill_dvl(
    poses: Floats,
    rays: Floats,
    beams: Floats,
    is_lost: Mask,
    solutions: Floats,
    limits: Floats,
    noise: Floats,
    out: Floats,
) -> None:
    """Compute the values of Doppler logs from their rays (n, beams, RAY_COLUMNS).

    ``beams`` (beams, 3) are directions in S. ``is_lost`` (n, beams) marks beams without an echo. ``solutions``
    contains, for each bit mask of beams with bottom lock, the matrix that converts beam velocities to a velocity; NaN =
    none. ``limits`` contains the minimum range and the standard deviations of the velocities over the bottom and
    through the water. ``noise`` (n, 2 beams) contains standard normal random numbers.
    """
    count = len(beams)
    over, water = np.empty(count), np.empty(count)
    for i in range(len(poses)):
        pose, row = poses[i], out[i]
        x, y, z = to_inner(pose[R_WS : R_WS + 9], pose[SPEED], pose[SPEED + 1], pose[SPEED + 2])
        locked, mask, down = 0, 0, 0.0
        for k in range(count):
            d, ray = beams[k], rays[i, k]
            along = d[0] * x + d[1] * y + d[2] * z - ray[CLOSING]
            over[k] = along + limits[1] * noise[i, k]
            through = d[0] * pose[THROUGH] + d[1] * pose[THROUGH + 1] + d[2] * pose[THROUGH + 2]
            water[k] = through + limits[2] * noise[i, count + k]
            has_lock = not is_lost[i, k] and ray[RANGE] < math.inf and ray[RANGE] >= limits[0]
            row[_BEAMS + k], row[_RANGES + k] = over[k] if has_lock else math.nan, ray[RANGE] if has_lock else math.nan
            if has_lock:
                locked, mask, down = locked + 1, mask | 1 << k, down + ray[RANGE] * ray[DIRECTION + 2]
        for k in range(count, DVL_BEAMS):
            row[_BEAMS + k] = row[_RANGES + k] = math.nan
        if solutions[mask, 0, 0] == solutions[mask, 0, 0]:
            solve_velocity(solutions[mask], over, row, _BOTTOM)
        else:
            row[_BOTTOM] = row[_BOTTOM + 1] = row[_BOTTOM + 2] = math.nan
        solve_velocity(solutions[len(solutions) - 1], water, row, _WATER)
        row[_ALTITUDE] = down / locked if locked > 0 else math.nan
        row[_LOCKED] = locked
        row[VALID] = TRUE if pose[DEPTH] > 0.0 else FALSE


AHRS_KERNELS: Kernels = ((fill_ahrs, NUMBERS, ROWS, NUMBERS, NUMBERS),)
SPEED_LOG_KERNELS: Kernels = ((fill_speed_log, NUMBERS, ROWS, NUMBERS, NUMBERS),)
DVL_KERNELS: Kernels = (
    *ray_kernels.KERNELS,
    (fill_dvl, NUMBERS, RAYS, NUMBERS, FLAGS, RAYS, VECTOR, NUMBERS, NUMBERS),
)
