"""State of the filter, strap-down propagation, and propagation of the covariance (compiled kernels).

The caller provides the arrays of :class:`FilterArrays`, and the functions change them. ``x`` (28) is the nominal state.
It contains p_WI_W of the IMU (m), v_WI_W (m/s), q_WB, gyro bias (rad/s), accelerometer bias (m/s2), and current (north,
east, m/s). The next elements are the offset of the vehicle's clock (positive = ahead) and the rate of this offset, both
multiplied by the speed of sound (m, m/s). Four errors follow: scale of the assumed speed of sound, scale of the Doppler
log, misalignment of the Doppler log (rad), and offset of depth (m). The last elements are the displacement of the
moored beacons (north, east), relative to their expected excursions.

``P`` (N, N) is the covariance of the error; its first n rows are in use. The error states are p, v, attitude (a
rotation in W: R = exp([a]x) R^), gyro bias and accelerometer bias. The optional states follow, at the indices in ``ix``
(seven values; -1 = absent). Six more rows follow for each clone (p, attitude).

The error-state filter follows Sola (2017, arXiv 1711.02508), with errors in W. The coning and sculling corrections use
two samples (Savage 1998).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels import compiler as kernel_compiler
from wavesim_kernels.compiled_elementary import rotation_elements
from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.elementary import sin_cos

# ------------------------------------------------------------------ indices
NOMINAL, BASE, CLONE = 28, 15, 6
P_, V_, Q_, G_, B_ = 0, 3, 6, 10, 13  # indices in x
CURRENT, CLOCK, SOUND, SCALE, SKEW, OFFSET, MOORING = 16, 18, 20, 21, 22, 25, 26
#: indices in ``noise``: densities (per square root of s), time constants in s (0 = a random walk), and the densities of
#: the second and third axis of the accelerometer
NOISES = 15
GYRO, ACCELEROMETER, GYRO_WALK, ACCELEROMETER_WALK, CURRENT_WALK, CLOCK_WALK, CLOCK_DRIFT = 0, 1, 2, 3, 4, 5, 6
SOUND_WALK, SCALE_WALK, OFFSET_WALK, GYRO_TIME, ACCELEROMETER_TIME, CURRENT_TIME = 7, 8, 9, 10, 11, 12
ACCELEROMETER_Y, ACCELEROMETER_Z = 13, 14
#: indices in ``memory``: time, time of the last sample, its angle and velocity increments, corrected rates, corrected
#: force
MEMORY, RATES, FORCE = 14, 8, 11

#: decorator for functions that Python calls
kernel = kernel_compiler.kernel(nogil=True)


class FilterArrays(NamedTuple):
    """Arrays of the filter, which the kernels change in place."""

    x: Floats  #: nominal state of the filter
    P: Floats  #: covariance of the error
    clones: Floats  #: cloned poses (K, 8): number of the clone, p, q
    sizes: Ints  #: number n of error states without clones, number of clones, length of the tape
    memory: Floats  #: times, the last sample, and the current rates and specific force (MEMORY)
    streak: Ints  #: number of successive rejections for each sensor
    #: for each sensor: factor of the assumed noise variance, and number of measurements that determined it
    adaptation: Floats


class FilterConstants(NamedTuple):
    """Constants of a filter run."""

    ix: Ints  #: indices of the optional states in the error vector
    gravity: float  #: acceleration due to gravity in m/s2
    earth: Floats  #: angular velocity of the Earth in W in rad/s
    noise: Floats  #: noise densities and time constants (NOISES)
    adaptive: bool  #: whether the noise of the measurements is estimated


class MotionWork(NamedTuple):
    """Temporary values of the propagation; see :func:`transition` and :func:`corrected_rates`."""

    F: Floats
    moved: Floats
    w: Floats
    f: Floats


# ------------------------------------------------------------------ rotations


@device_function
def matrix(q: Floats, R: Floats) -> None:
    """Compute the rotation matrix R_WB of a quaternion."""
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_elements(q[0], q[1], q[2], q[3])
    R[0, 0], R[0, 1], R[0, 2] = r11, r12, r13
    R[1, 0], R[1, 1], R[1, 2] = r21, r22, r23
    R[2, 0], R[2, 1], R[2, 2] = r31, r32, r33


@device_function
def rotate_quaternion(q: Floats, a: float, b: float, c: float, side: float) -> None:
    """Rotate a quaternion by a rotation vector, in W (side 1) or in B (side -1)."""
    angle = math.sqrt(a * a + b * b + c * c)
    s, w = sin_cos(0.5 * angle)
    k = s / angle if angle > 1e-12 else 0.5
    x, y, z = k * a, k * b, k * c
    qw, qx, qy, qz = q[0], q[1], q[2], q[3]
    rw = w * qw - x * qx - y * qy - z * qz
    rx = w * qx + x * qw + side * (y * qz - z * qy)
    ry = w * qy + y * qw + side * (z * qx - x * qz)
    rz = w * qz + z * qw + side * (x * qy - y * qx)
    m = 1.0 / math.sqrt(rw * rw + rx * rx + ry * ry + rz * rz)
    q[0], q[1], q[2], q[3] = m * rw, m * rx, m * ry, m * rz


@device_function
def cross(a: Floats, b: Floats, out: Floats) -> None:
    x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    out[0], out[1], out[2] = x, y, z


@device_function
def _skewed(R: Floats, f: Floats, factor: float, out: Floats) -> None:
    """Compute out = factor R [f]x."""
    for i in range(3):
        a, b, c = R[i, 0], R[i, 1], R[i, 2]
        out[i, 0], out[i, 1], out[i, 2] = (
            factor * (b * f[2] - c * f[1]),
            factor * (c * f[0] - a * f[2]),
            factor * (a * f[1] - b * f[0]),
        )


@device_function
def cross_matrix(a: Floats, factor: float, out: Floats) -> None:
    out[0, 0], out[0, 1], out[0, 2] = 0.0, -factor * a[2], factor * a[1]
    out[1, 0], out[1, 1], out[1, 2] = factor * a[2], 0.0, -factor * a[0]
    out[2, 0], out[2, 1], out[2, 2] = -factor * a[1], factor * a[0], 0.0


# ------------------------------------------------------------------ from one time to the next


@device_function
def transition(q: Floats, w: Floats, f: Floats, dt: float, earth: Floats, F: Floats, moved: Floats) -> None:
    """Compute blocks of the transition over dt at constant rates w and specific force f in B.

    The inputs are in rad/s and m/s2, after the biases and the rotation of the Earth have been removed. F (9, 3, 3)
    contains the derivatives in blocks of 3 x 3: p with respect to a, bg and ba; v with respect to v, a, bg and ba; a
    with respect to a and bg. Here p is position, v velocity, a attitude, and bg and ba are the biases of gyro and
    accelerometer. ``moved`` (2, 3) contains the contributions of the specific force to the mean velocity and to the
    change of position, in W.
    """
    R, u, t = np.empty((3, 3)), np.empty(3), np.empty(3)
    matrix(q, R)
    a, b = np.empty(3), np.empty(3)
    for i in range(3):
        u[i] = w[i] * dt
    cross(u, f, a)
    cross(u, a, b)
    cross(u, b, t)
    for i in range(3):
        s1 = s2 = 0.0
        for j in range(3):
            s1 += R[i, j] * (f[j] + 0.5 * a[j] + b[j] / 6.0 + t[j] / 24.0)
            s2 += R[i, j] * (0.5 * f[j] + a[j] / 6.0 + b[j] / 24.0 + t[j] / 120.0)
        moved[0, i], moved[1, i] = s1, s2
    cross_matrix(moved[1], -dt * dt, F[0])
    _skewed(R, f, dt * dt * dt / 6.0, F[1])
    cross_matrix(earth, -2.0 * dt, F[3])
    cross_matrix(moved[0], -dt, F[4])
    _skewed(R, f, 0.5 * dt * dt, F[5])
    cross_matrix(earth, -dt, F[7])
    _skewed(R, u, -0.5 * dt, F[8])
    _skewed(R, u, -0.5 * dt, F[6])
    _skewed(R, u, -dt * dt / 6.0, F[2])
    for i in range(3):
        F[3, i, i] += 1.0
        F[7, i, i] += 1.0
        for j in range(3):
            F[2, i, j] -= 0.5 * dt * dt * R[i, j]
            F[6, i, j] -= dt * R[i, j]
            F[8, i, j] -= dt * R[i, j]


@device_function
def _advance_rows(P: Floats, columns: int, dt: float, F: Floats) -> None:
    """Compute the rows of the product F P for position (p), velocity (v) and attitude (a)."""
    for i in range(3):
        for j in range(columns):
            P[i, j] += (
                dt * P[3 + i, j]
                + F[0, i, 0] * P[6, j]
                + F[0, i, 1] * P[7, j]
                + F[0, i, 2] * P[8, j]
                + F[1, i, 0] * P[9, j]
                + F[1, i, 1] * P[10, j]
                + F[1, i, 2] * P[11, j]
                + F[2, i, 0] * P[12, j]
                + F[2, i, 1] * P[13, j]
                + F[2, i, 2] * P[14, j]
            )
    for j in range(columns):
        v0, v1, v2, a0, a1, a2 = P[3, j], P[4, j], P[5, j], P[6, j], P[7, j], P[8, j]
        g0, g1, g2, b0, b1, b2 = P[9, j], P[10, j], P[11, j], P[12, j], P[13, j], P[14, j]
        for i in range(3):
            P[3 + i, j] = (
                F[3, i, 0] * v0
                + F[3, i, 1] * v1
                + F[3, i, 2] * v2
                + F[4, i, 0] * a0
                + F[4, i, 1] * a1
                + F[4, i, 2] * a2
                + F[5, i, 0] * g0
                + F[5, i, 1] * g1
                + F[5, i, 2] * g2
                + F[6, i, 0] * b0
                + F[6, i, 1] * b1
                + F[6, i, 2] * b2
            )
            P[6 + i, j] = (
                F[7, i, 0] * a0
                + F[7, i, 1] * a1
                + F[7, i, 2] * a2
                + F[8, i, 0] * g0
                + F[8, i, 1] * g1
                + F[8, i, 2] * g2
            )


@device_function
def _apply_decay(P: Floats, n: int, dt: float, ix: Ints, noise: Floats) -> None:
    """Apply the exponential decay to the biases and currents that have a time constant."""
    for k in range(3):
        first = ix[0] if k == 2 else 9 + 3 * k
        if first >= 0 and noise[GYRO_TIME + k] > 0.0:
            keep = 1.0 / (1.0 + dt / noise[GYRO_TIME + k])
            for i in range(first, first + (2 if k == 2 else 3)):
                for j in range(n):
                    P[i, j] *= keep
                for j in range(n):
                    P[j, i] *= keep


@device_function
def propagate_covariance(P: Floats, n: int, dt: float, F: Floats, ix: Ints, noise: Floats, q: Floats) -> None:
    """Propagate the covariance: P = F P F^T + Q. ``q`` is the attitude."""
    _advance_rows(P, n, dt, F)
    S = np.empty((15, 9))
    for i in range(9):
        for j in range(15):
            S[j, i] = P[i, j]
    _advance_rows(S, S.shape[1], dt, F)
    for i in range(9):
        for j in range(9):
            P[i, j] = 0.5 * (S[i, j] + S[j, i])
        for j in range(9, n):
            P[j, i] = P[i, j]
    qg = noise[GYRO] * noise[GYRO]
    for i in range(3):
        P[6 + i, 6 + i] += qg * dt
    _add_acceleration_noise(P, dt, noise, q)
    _apply_decay(P, n, dt, ix, noise)
    _add_process_noise(P, n, dt, ix, noise)


@device_function
def _add_acceleration_noise(P: Floats, dt: float, noise: Floats, q: Floats) -> None:
    """Add the noise of the specific force to position and velocity. Its density may differ between the axes of B."""
    x, y, z = noise[ACCELEROMETER], noise[ACCELEROMETER_Y], noise[ACCELEROMETER_Z]
    if x == y == z:
        for i in range(3):
            qa = x * x
            P[i, i] += qa * dt * dt * dt / 3.0
            P[i, 3 + i] += 0.5 * qa * dt * dt
            P[3 + i, i] += 0.5 * qa * dt * dt
            P[3 + i, 3 + i] += qa * dt
        return
    R = np.empty((3, 3))
    matrix(q, R)
    for i in range(3):
        for j in range(3):
            qa = R[i, 0] * R[j, 0] * x * x + R[i, 1] * R[j, 1] * y * y + R[i, 2] * R[j, 2] * z * z
            P[i, j] += qa * dt * dt * dt / 3.0
            P[i, 3 + j] += 0.5 * qa * dt * dt
            P[3 + i, j] += 0.5 * qa * dt * dt
            P[3 + i, 3 + j] += qa * dt


@device_function
def _add_process_noise(P: Floats, n: int, dt: float, ix: Ints, noise: Floats) -> None:
    """Add process noise of biases, current, clock and the other estimated states."""
    for i in range(3):
        P[9 + i, 9 + i] += noise[GYRO_WALK] * noise[GYRO_WALK] * dt
        P[12 + i, 12 + i] += noise[ACCELEROMETER_WALK] * noise[ACCELEROMETER_WALK] * dt
    if ix[0] >= 0:
        for i in range(2):
            P[ix[0] + i, ix[0] + i] += noise[CURRENT_WALK] * noise[CURRENT_WALK] * dt
    c = ix[1]
    if c >= 0:
        for j in range(n):
            P[c, j] += dt * P[c + 1, j]
        for j in range(n):
            P[j, c] += dt * P[j, c + 1]
        P[c, c] += noise[CLOCK_WALK] * noise[CLOCK_WALK] * dt
        P[c + 1, c + 1] += noise[CLOCK_DRIFT] * noise[CLOCK_DRIFT] * dt
    if ix[2] >= 0:
        P[ix[2], ix[2]] += noise[SOUND_WALK] * noise[SOUND_WALK] * dt
    if ix[3] >= 0:
        P[ix[3], ix[3]] += noise[SCALE_WALK] * noise[SCALE_WALK] * dt
    if ix[5] >= 0:
        P[ix[5], ix[5]] += noise[OFFSET_WALK] * noise[OFFSET_WALK] * dt


@device_function
def corrected_rates(x: Floats, memory: Floats, earth: Floats, w: Floats, f: Floats) -> None:
    """Compute the rates and the specific force, corrected for biases and for the rotation of the Earth."""
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_elements(x[Q_], x[Q_ + 1], x[Q_ + 2], x[Q_ + 3])
    w[0] = memory[RATES] - x[G_] - (r11 * earth[0] + r21 * earth[1] + r31 * earth[2])
    w[1] = memory[RATES + 1] - x[G_ + 1] - (r12 * earth[0] + r22 * earth[1] + r32 * earth[2])
    w[2] = memory[RATES + 2] - x[G_ + 2] - (r13 * earth[0] + r23 * earth[1] + r33 * earth[2])
    for i in range(3):
        f[i] = memory[FORCE + i] - x[B_ + i]


@device_function
def propagate_state(
    x: Floats, w: Floats, dt: float, gravity: float, earth: Floats, ix: Ints, noise: Floats, moved: Floats
) -> None:
    """Advance the nominal state by dt. ``moved`` is the result of :func:`transition`."""
    c = np.empty(3)
    cross(earth, x[V_ : V_ + 3], c)
    for i in range(3):
        down = gravity if i == 2 else 0.0
        x[i] += dt * (x[V_ + i] + dt * (moved[1, i] + 0.5 * down - c[i]))
        x[V_ + i] += dt * (moved[0, i] + down - 2.0 * c[i])
    rotate_quaternion(x[Q_:G_], w[0] * dt, w[1] * dt, w[2] * dt, -1.0)
    for i in range(3):
        if noise[GYRO_TIME] > 0.0:
            x[G_ + i] /= 1.0 + dt / noise[GYRO_TIME]
        if noise[ACCELEROMETER_TIME] > 0.0:
            x[B_ + i] /= 1.0 + dt / noise[ACCELEROMETER_TIME]
        if i < 2 and ix[0] >= 0 and noise[CURRENT_TIME] > 0.0:
            x[CURRENT + i] /= 1.0 + dt / noise[CURRENT_TIME]
    if ix[1] >= 0:
        x[CLOCK] += dt * x[CLOCK + 1]


# ------------------------------------------------------------------ backward


@device_function
def _withdraw_rows(A: Floats, columns: int, dt: float, F: Floats) -> None:
    """Compute the rows of the product F^T A for velocity (v), attitude (a), gyro bias (bg) and accelerometer bias
    (ba).
    """
    for j in range(columns):
        p0, p1, p2, v0, v1, v2 = A[0, j], A[1, j], A[2, j], A[3, j], A[4, j], A[5, j]
        a0, a1, a2 = A[6, j], A[7, j], A[8, j]
        for i in range(3):
            A[12 + i, j] += (
                F[2, 0, i] * p0
                + F[2, 1, i] * p1
                + F[2, 2, i] * p2
                + F[6, 0, i] * v0
                + F[6, 1, i] * v1
                + F[6, 2, i] * v2
            )
            A[9 + i, j] += (
                F[1, 0, i] * p0
                + F[1, 1, i] * p1
                + F[1, 2, i] * p2
                + F[5, 0, i] * v0
                + F[5, 1, i] * v1
                + F[5, 2, i] * v2
                + F[8, 0, i] * a0
                + F[8, 1, i] * a1
                + F[8, 2, i] * a2
            )
            A[6 + i, j] = (
                F[0, 0, i] * p0
                + F[0, 1, i] * p1
                + F[0, 2, i] * p2
                + F[4, 0, i] * v0
                + F[4, 1, i] * v1
                + F[4, 2, i] * v2
                + F[7, 0, i] * a0
                + F[7, 1, i] * a1
                + F[7, 2, i] * a2
            )
            A[3 + i, j] = F[3, 0, i] * v0 + F[3, 1, i] * v1 + F[3, 2, i] * v2
        A[3, j] += dt * p0
        A[4, j] += dt * p1
        A[5, j] += dt * p2


@device_function
def propagate_back(A: Floats, a: Floats, n: int, dt: float, F: Floats, ix: Ints, noise: Floats) -> None:
    """Compute A = F^T A F and a = F^T a, the reverse of :func:`propagate_covariance`."""
    c = ix[1]
    if c >= 0:
        for j in range(n):
            A[c + 1, j] += dt * A[c, j]
        for j in range(n):
            A[j, c + 1] += dt * A[j, c]
        a[c + 1] += dt * a[c]
    _apply_decay(A, n, dt, ix, noise)
    for k in range(3):
        first = ix[0] if k == 2 else 9 + 3 * k
        if first >= 0 and noise[GYRO_TIME + k] > 0.0:
            for i in range(first, first + (2 if k == 2 else 3)):
                a[i] /= 1.0 + dt / noise[GYRO_TIME + k]
    S = np.empty((15, 16))
    _withdraw_rows(A, n, dt, F)
    for i in range(15):
        S[i, 15] = a[i]
        for j in range(15):
            S[i, j] = A[j, i]
    _withdraw_rows(S, S.shape[1], dt, F)
    for i in range(15):
        a[i] = S[i, 15]
        for j in range(15):
            A[i, j] = 0.5 * (S[i, j] + S[j, i])
        for j in range(15, n):
            A[j, i] = A[i, j]
