"""Models of the measurements: expected values, and derivatives with respect to the error state (compiled kernels).

Events are rows of WIDTH numbers. :mod:`wavesim_studies.navigation.measurements` builds the rows for measurements.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.elementary import atan2
from wavesim_studies.navigation.strapdown import (
    CLOCK,
    CLONE,
    CURRENT,
    G_,
    MOORING,
    OFFSET,
    Q_,
    SCALE,
    SKEW,
    SOUND,
    V_,
    FilterArrays,
    cross,
    cross_matrix,
    matrix,
)

#: columns of an event row
WIDTH = 56
T, KIND, SENSOR, M, ID, GATE, BED, SHARED, Z, NOISE, LEVER, PLACE, ROWS, EXTRA, EXCURSION = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    12,
    28,
    31,
    34,
    46,
    55,
)
#: kinds of events in the rows
MARK, KEEP, DROP, POSITION, DEPTH, BOTTOM, WATER, ANGLES, ROUND_TRIP, ONE_WAY, DIRECTION, PLANE = range(12)
#: columns of ``event_outcomes``, which holds the outcome of each event
OUTCOME_WIDTH = 10  # code (1 accepted, 0 rejected, -1 without information, 2 + a: accepted as an echo), NIS, whitened innovation (4), innovation (4)


class SensorPose(NamedTuple):
    """Attitude and lever arm for one measurement, and two vectors for temporary values."""

    R: Floats  #: attitude R_WB of the body
    arm: Floats  #: position of the sensor relative to the IMU, in W
    u: Floats
    t: Floats


# ------------------------------------------------------------------ measurements


@device_function
def angle(y: float, x: float) -> float:
    """Compute atan2. This separate function is compiled only once for all callers."""
    return float(atan2(y, x))


@device_function
def _slant_range(x: Floats, p: Floats, R: Floats, e: Floats, image: int, u: Floats, arm: Floats) -> float:
    """Return the distance from the transducer to a beacon, or to the image of the beacon in the surface (1) or the bed
    (2).

    ``p`` is the position of the IMU in W; the state ``x`` contains the displacement of moored beacons. ``u`` receives the
    gradient, and ``arm`` the lever arm in W.
    """
    d2 = 0.0
    for i in range(3):
        arm[i] = R[i, 0] * e[LEVER] + R[i, 1] * e[LEVER + 1] + R[i, 2] * e[LEVER + 2]
        b = e[PLACE + i] + (e[EXCURSION] * x[MOORING + i] if i < 2 else 0.0)
        if i == 2 and image == 1:
            b = -b
        if i == 2 and image == 2:
            b = 2.0 * e[BED] - b
        u[i] = p[i] + arm[i] - b
        d2 += u[i] * u[i]
    d = math.sqrt(d2)
    for i in range(3):
        u[i] /= d
    return d


@device_function
def _position_model(e: Floats, x: Floats, ix: Ints, pose: SensorPose, z: Floats, H: Floats) -> None:
    """Model a measured position along the directions in W (one per row), or a depth with its offset."""
    arm, t = pose.arm, pose.t
    for k in range(int(e[M])):
        d = e[ROWS + 3 * k : ROWS + 3 * k + 3]
        for i in range(3):
            z[k] += d[i] * (x[i] + arm[i])
            H[k, i] = d[i]
        cross(arm, d, t)  # d . (a x arm) = a . (arm x d)
        for i in range(3):
            H[k, 6 + i] = t[i]
        if e[KIND] == DEPTH and ix[5] >= 0:
            z[k] += x[OFFSET]
            H[k, ix[5]] = 1.0


@device_function
def _velocity(e: Floats, x: Floats, ix: Ints, w: Floats, pose: SensorPose, z: Floats, H: Floats) -> None:
    """Model a velocity over ground or through water along the directions in B (one per row). Include the scale error
    and the misalignment of the log.
    """
    kind, R, u, t = int(e[KIND]), pose.R, pose.u, pose.t
    A, B, y, g = np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.empty(3)
    l = e[LEVER : LEVER + 3]
    for i in range(3):  # y: measured velocity, W
        y[i] = x[V_ + i] - (x[CURRENT + i] if kind == WATER and i < 2 else 0.0)
    cross(w, l, t)
    for i in range(3):
        u[i] = R[0, i] * y[0] + R[1, i] * y[1] + R[2, i] * y[2] + t[i]
    for i in range(3):  # A = R^T [y]x
        a, b, c = R[0, i], R[1, i], R[2, i]
        A[i, 0], A[i, 1], A[i, 2] = b * y[2] - c * y[1], c * y[0] - a * y[2], a * y[1] - b * y[0]
    cross_matrix(l, 1.0, B)
    cross(u, x[SKEW : SKEW + 3], t)
    factor = 1.0 + x[SCALE]
    for k in range(int(e[M])):
        d = e[ROWS + 3 * k : ROWS + 3 * k + 3]
        s = 0.0
        cross(x[SKEW : SKEW + 3], d, g)
        for i in range(3):  # g = d^T (1 - [skew]x)
            s += d[i] * (u[i] + t[i])
            g[i] = factor * (d[i] + g[i])
        z[k] = factor * s
        for i in range(3):
            to_v = R[i, 0] * g[0] + R[i, 1] * g[1] + R[i, 2] * g[2]
            H[k, 3 + i] = to_v
            H[k, 6 + i] = A[0, i] * g[0] + A[1, i] * g[1] + A[2, i] * g[2]
            H[k, 9 + i] = B[0, i] * g[0] + B[1, i] * g[1] + B[2, i] * g[2]
            if kind == WATER and i < 2 and ix[0] >= 0:
                H[k, ix[0] + i] = -to_v
        if ix[3] >= 0:
            H[k, ix[3]] = s
        if ix[4] >= 0:
            cross(d, u, y)  # d . (u x m) = m . (d x u)
            for i in range(3):
                H[k, ix[4] + i] = factor * y[i]


@device_function
def _attitude(e: Floats, R: Floats, z: Floats, H: Floats) -> None:
    """Model roll, pitch or heading; the rows select the angle."""
    level = R[0, 0] * R[0, 0] + R[1, 0] * R[1, 0]
    across = R[2, 1] * R[2, 1] + R[2, 2] * R[2, 2]
    for k in range(int(e[M])):
        which = int(e[ROWS + k])
        if which == 0:
            z[k] = angle(R[2, 1], R[2, 2])
            H[k, 6] = (R[2, 2] * R[1, 1] - R[2, 1] * R[1, 2]) / across
            H[k, 7] = -(R[2, 2] * R[0, 1] - R[2, 1] * R[0, 2]) / across
        elif which == 1:
            root = math.sqrt(level)
            z[k] = angle(-R[2, 0], root)
            H[k, 6], H[k, 7] = -R[1, 0] / root, R[0, 0] / root
        else:
            z[k] = angle(R[1, 0], R[0, 0])
            H[k, 6], H[k, 7], H[k, 8] = -R[0, 0] * R[2, 0] / level, -R[1, 0] * R[2, 0] / level, 1.0


@device_function
def _add_displacement(e: Floats, ix: Ints, fit: float, u: Floats, H: Floats) -> None:
    """Add the derivative of a leg with respect to the displacement of moored beacons, if the latter is estimated. ``u``
    is the gradient of the leg.
    """
    if ix[6] >= 0:
        for i in range(2):
            H[0, ix[6] + i] -= fit * e[EXCURSION] * u[i]


@device_function
def _sound_path_model(
    e: Floats, state: FilterArrays, ix: Ints, image: int, pose: SensorPose, z: Floats, H: Floats
) -> bool:
    """Model the path length of sound to or from a beacon.

    For a round trip, the state contains a clone of the pose at the start of the trip.

    ``image`` selects which legs are echoes. Return False if the clone is missing.
    """
    x, clones, count = state.x, state.clones, state.sizes
    R, arm, u, t = pose.R, pose.arm, pose.u, pose.t
    kind, fit = int(e[KIND]), 1.0 / (1.0 + x[SOUND])
    d = _slant_range(x, x[0:3], R, e, image % 3, u, arm)
    cross(arm, u, t)
    for i in range(3):
        H[0, i], H[0, 6 + i] = fit * u[i], fit * t[i]
    _add_displacement(e, ix, fit, u, H)
    if kind == ROUND_TRIP:
        k = 0
        while k < count[1] and clones[k, 0] != e[ID]:
            k += 1
        if k == count[1]:
            return False
        o = count[0] + CLONE * k
        matrix(clones[k, 4:8], R)
        d += _slant_range(x, clones[k, 1:4], R, e, image // 3, u, arm)
        cross(arm, u, t)
        for i in range(3):
            H[0, o + i], H[0, o + 3 + i] = fit * u[i], fit * t[i]
        _add_displacement(e, ix, fit, u, H)
    z[0] = fit * d
    if ix[2] >= 0:
        H[0, ix[2]] = -fit * fit * d
    if kind == ONE_WAY and ix[1] >= 0:
        z[0] += x[CLOCK]
        H[0, ix[1]] = 1.0
    return True


@device_function
def _second_order_bias(u: Floats, d: float, P: Floats, o: int, found: Floats) -> None:
    """Add the mean and the standard deviation of the second-order error of a distance d in the direction u to ``found``
    (2).

    Position uncertainty across the path increases the distance on average. The block of P that begins at the index o
    is the covariance of the position.
    """
    square, trace = 0.0, 0.0
    along = 0.0
    for i in range(3):
        for j in range(3):
            along += u[i] * P[o + i, o + j] * u[j]
    for i in range(3):
        for j in range(3):
            q = along * u[i] * u[j] + P[o + i, o + j]
            for k in range(3):
                q -= u[i] * u[k] * P[o + k, o + j] + P[o + i, o + k] * u[k] * u[j]
            square += q * q
            if i == j:
                trace += q
    found[0] += 0.5 * trace / d
    found[1] += math.sqrt(0.5 * square) / d


@device_function
def second_order_terms(e: Floats, x: Floats, clones: Floats, count: Ints, image: int, P: Floats, found: Floats) -> None:
    """Write the mean and the standard deviation (m) of the second-order terms of an acoustic path to ``found``
    (Bar-Shalom, Li & Kirubarajan 2001, 10.3).

    Both legs of a round trip have the same error. Rotation about a lever arm is neglected.
    """
    found[0] = found[1] = 0.0
    R, u, arm = np.empty((3, 3)), np.empty(3), np.empty(3)
    fit = 1.0 / (1.0 + x[SOUND])
    matrix(x[Q_:G_], R)
    _second_order_bias(u, _slant_range(x, x[0:3], R, e, image % 3, u, arm), P, 0, found)
    if int(e[KIND]) == ROUND_TRIP:
        for k in range(count[1]):
            if clones[k, 0] == e[ID]:
                matrix(clones[k, 4:8], R)
                _second_order_bias(
                    u, _slant_range(x, clones[k, 1:4], R, e, image // 3, u, arm), P, count[0] + CLONE * k, found
                )
    found[0] *= fit
    found[1] *= fit


@device_function
def _direction(e: Floats, x: Floats, ix: Ints, pose: SensorPose, z: Floats, H: Floats) -> None:
    """Model azimuth and elevation of the direction to a beacon. ``rows`` contains R_SB."""
    R, arm, u, t = pose.R, pose.arm, pose.u, pose.t
    y, g = np.empty(3), np.empty(3)
    for i in range(3):
        u[i] = e[PLACE + i] + (e[EXCURSION] * x[MOORING + i] if i < 2 else 0.0) - x[i]
    for i in range(3):
        t[i] = R[0, i] * u[0] + R[1, i] * u[1] + R[2, i] * u[2] - e[LEVER + i]
    for k in range(3):
        d = e[ROWS + 3 * k : ROWS + 3 * k + 3]
        y[k] = d[0] * t[0] + d[1] * t[1] + d[2] * t[2]
    level = y[0] * y[0] + y[1] * y[1]
    root = math.sqrt(level)
    far = level + y[2] * y[2]
    z[0], z[1] = angle(y[1], y[0]), angle(y[2], root)
    for k in range(2):
        if k == 0:
            g[0], g[1], g[2] = -y[1] / level, y[0] / level, 0.0
        else:
            g[0], g[1], g[2] = -y[2] * y[0] / (root * far), -y[2] * y[1] / (root * far), root / far
        for i in range(3):  # derivative by the direction in B, then in W
            t[i] = e[ROWS + i] * g[0] + e[ROWS + 3 + i] * g[1] + e[ROWS + 6 + i] * g[2]
        for i in range(3):
            arm[i] = R[i, 0] * t[0] + R[i, 1] * t[1] + R[i, 2] * t[2]
            H[k, i] = -arm[i]
            if i < 2 and ix[6] >= 0:
                H[k, ix[6] + i] = e[EXCURSION] * arm[i]
        cross(arm, u, t)  # arm . (u x a) = a . (arm x u)
        for i in range(3):
            H[k, 6 + i] = t[i]


@device_function
def _to_plane(e: Floats, x: Floats, pose: SensorPose, z: Floats, H: Floats) -> None:
    """Model ranges to a plane (point PLACE, normal EXTRA) along beams. The rows contain the directions of the beams in
    B.
    """
    R, arm, u, t = pose.R, pose.arm, pose.u, pose.t
    for k in range(int(e[M])):
        d = e[ROWS + 3 * k : ROWS + 3 * k + 3]
        above = along = 0.0
        for i in range(3):
            u[i] = R[i, 0] * d[0] + R[i, 1] * d[1] + R[i, 2] * d[2]
            above += e[EXTRA + i] * (e[PLACE + i] - x[i] - arm[i])
            along += e[EXTRA + i] * u[i]
        z[k] = above / along
        for i in range(3):
            H[k, i] = -e[EXTRA + i] / along
            u[i] = arm[i] + z[k] * u[i]  # from the unit to the end of the beam
        cross(u, e[EXTRA : EXTRA + 3], t)
        for i in range(3):
            H[k, 6 + i] = -t[i] / along


@device_function
def expected_measurement(e: Floats, state: FilterArrays, ix: Ints, w: Floats, image: int, H: Floats, z: Floats) -> bool:
    """Compute the expected measurement z (4) and its derivative H (4, N) with respect to the error state. ``w`` is the
    angular velocity in B.

    Return False if a required clone is missing. Round trips and one-way paths are in m: the travel time, without the
    turn-around time, is multiplied by the assumed speed of sound.
    """
    x, n = state.x, state.sizes[0] + CLONE * state.sizes[1]
    kind = int(e[KIND])
    for k in range(int(e[M])):
        z[k] = 0.0
        for j in range(n):
            H[k, j] = 0.0
    R, u, arm, t = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(3)
    pose = SensorPose(R, arm, u, t)
    matrix(x[Q_:G_], R)
    for i in range(3):
        arm[i] = R[i, 0] * e[LEVER] + R[i, 1] * e[LEVER + 1] + R[i, 2] * e[LEVER + 2]
    if kind in (ROUND_TRIP, ONE_WAY):
        return _sound_path_model(e, state, ix, image, pose, z, H)
    if kind in (POSITION, DEPTH):
        _position_model(e, x, ix, pose, z, H)
    elif kind in (BOTTOM, WATER):
        _velocity(e, x, ix, w, pose, z, H)
    elif kind == ANGLES:
        _attitude(e, R, z, H)
    elif kind == DIRECTION:
        _direction(e, x, ix, pose, z, H)
    else:
        _to_plane(e, x, pose, z, H)
    return True
