"""Rotation matrices, quaternions, Euler angles and their rates (Fossen 2021, chapter 2; SNAME 1950).

    q_WB = rotation_to_quaternion(R_WB)
    rates = matvec(euler_rate_matrix(euler), w_WB_B)
    eta_dot = matvec(jacobian(euler), nu)

The world frame W is north-east-down and the body frame B is forward-starboard-down. Euler angles (..., 3) are roll,
pitch and heading in rad: rotations about z, then y, then x (ZYX). Quaternions (..., 4) are scalar-first, and ``w_WB_B``
(..., 3) contains p, q and r in rad/s. Every function takes one value or an array of values. To multiply the returned
matrices, use :mod:`wavesim_sdk.algebra`, whose results are bit-identical on every machine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.algebra import dot, matmul, matvec
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, sin_cos
from wavesim_sdk.frames import quaternion, rotation

__all__ = [
    "GIMBAL_LOCK",
    "body_rate_matrix",
    "euler_by_quaternion",
    "euler_rate_matrix",
    "euler_rates",
    "euler_to_rotation",
    "jacobian",
    "quaternion_by_euler",
    "quaternion_conjugate",
    "quaternion_jacobian",
    "quaternion_product",
    "quaternion_rate_matrix",
    "quaternion_rates",
    "quaternion_to_euler",
    "quaternion_to_rotation",
    "rotate_vector",
    "rotation_to_euler",
    "rotation_to_quaternion",
    "skew",
    "smallest_signed_angle",
]

GIMBAL_LOCK = 1e-9  #: cosine of the pitch below which roll and heading cannot be separated


def smallest_signed_angle(angle: Any) -> Floats:
    """Wrap angles (...) in rad to (-pi, pi]."""
    return np.asarray(math.pi - (math.pi - np.asarray(angle, float)) % (2.0 * math.pi))


def skew(v: Any) -> Floats:
    """Return the skew-symmetric matrices S(v), shape (..., 3, 3), of vectors (..., 3), such that S(a) b is the cross
    product of a and b.
    """
    x, y, z = np.moveaxis(np.asarray(v, float), -1, 0)
    o = np.zeros_like(x)
    return _matrix([[o, -z, y], [z, o, -x], [-y, x, o]])


# ------------------------------------------------------------------ conversions


def euler_to_rotation(euler: Any) -> Floats:
    """Return R_WB (..., 3, 3) of Euler angles (..., 3), such that ``v_W = R_WB v_B``."""
    roll, pitch, heading = np.moveaxis(np.asarray(euler, float), -1, 0)
    (sr, cr), (sp, cp), (sy, cy) = sin_cos(roll), sin_cos(pitch), sin_cos(heading)
    return _matrix(
        [
            [cy * cp, cy * sp * sr - sy * cr, sy * sr + cy * sp * cr],
            [sy * cp, cy * cr + sy * sp * sr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def quaternion_to_rotation(q_WB: Any) -> Floats:
    """Return R_WB (..., 3, 3) of quaternions (..., 4). The function normalises the quaternions."""
    return rotation(_unit(q_WB))


def rotation_to_euler(R_WB: Any, near: Any = None) -> Floats:
    """Return roll, pitch and heading (..., 3) in rad of rotation matrices (..., 3, 3), with the pitch in [-pi/2, pi/2].

    If the bow points straight up or down (gimbal lock), only the sum or the difference of roll and heading is
    determined. The function then uses the heading of ``near``, the previous Euler angles (..., 3), or 0 if ``near`` is
    not given. This choice changes the rotation by less than 1e-8 rad.
    """
    R = np.asarray(R_WB, float)
    level = np.sqrt(R[..., 0, 0] * R[..., 0, 0] + R[..., 1, 0] * R[..., 1, 0])  # cosine of the pitch
    kept = 0.0 if near is None else np.asarray(near, float)[..., 2]
    heading = np.where(level > GIMBAL_LOCK, atan2(R[..., 1, 0], R[..., 0, 0]), kept)
    s, c = sin_cos(heading)
    # the roll follows from the heading, so that rounding errors near gimbal lock cancel each other
    roll = atan2(s * R[..., 0, 2] - c * R[..., 1, 2], c * R[..., 1, 1] - s * R[..., 0, 1])
    return np.stack([roll, atan2(-R[..., 2, 0], level), heading], axis=-1)


def quaternion_to_euler(q_WB: Any, near: Any = None) -> Floats:
    """Return roll, pitch and heading (..., 3) in rad of quaternions (..., 4); see :func:`rotation_to_euler`."""
    return rotation_to_euler(quaternion_to_rotation(q_WB), near)


def rotation_to_quaternion(R_WB: Any, near: Any = None) -> Floats:
    """Return unit quaternions q_WB (..., 4) of rotation matrices (..., 3, 3), computed from the largest component
    (Shepperd 1978).

    Both q and -q describe the rotation. The function returns the one closer to ``near``, the previous quaternions
    (..., 4). Without ``near``, it returns the one whose scalar part is not negative.
    """
    R = np.asarray(R_WB, float)
    a, b, c = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    yz, zy = R[..., 2, 1] - R[..., 1, 2], R[..., 2, 1] + R[..., 1, 2]
    zx, xz = R[..., 0, 2] - R[..., 2, 0], R[..., 0, 2] + R[..., 2, 0]
    xy, yx = R[..., 1, 0] - R[..., 0, 1], R[..., 1, 0] + R[..., 0, 1]
    # row i is 4 q_i q
    products = _matrix(
        [
            [1.0 + a + b + c, yz, zx, xy],
            [yz, 1.0 + a - b - c, yx, xz],
            [zx, yx, 1.0 - a + b - c, zy],
            [xy, xz, zy, 1.0 - a - b + c],
        ]
    )
    largest = np.argmax(np.stack([products[..., i, i] for i in range(4)], axis=-1), axis=-1)
    q = _unit(np.take_along_axis(products, largest[..., None, None], axis=-2)[..., 0, :])
    reference = np.array([1.0, 0.0, 0.0, 0.0]) if near is None else np.asarray(near, float)
    return np.asarray(np.where(dot(q, reference)[..., None] < 0.0, -q, q))


# ------------------------------------------------------------------ quaternions


def quaternion_product(a: Any, b: Any) -> Floats:
    """Return the Hamilton products (..., 4) of quaternions (..., 4): the rotation b followed by the rotation a. For
    frames, ``q_WC = quaternion_product(q_WB, q_BC)``.
    """
    aw, ax, ay, az = np.moveaxis(np.asarray(a, float), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, float), -1, 0)
    return np.stack(
        np.broadcast_arrays(
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ),
        axis=-1,
    )


def quaternion_conjugate(q: Any) -> Floats:
    """Return the conjugates (..., 4) of quaternions (..., 4). For unit quaternions, ``q_BW`` is the conjugate of
    ``q_WB``.
    """
    return np.asarray(np.asarray(q, float) * np.array([1.0, -1.0, -1.0, -1.0]))


def rotate_vector(q_WB: Any, v_B: Any) -> Floats:
    """Convert vectors (..., 3) in B to vectors (..., 3) in W: the vector part of q v q*."""
    return np.asarray(matvec(quaternion_to_rotation(q_WB), np.asarray(v_B, float)))


# ------------------------------------------------------------------ rates


def euler_rate_matrix(euler: Any) -> Floats:
    """Return T, shape (..., 3, 3), such that T w_WB_B contains the rates of roll, pitch and heading.

    T grows without limit as the pitch approaches 90 degrees. Near 90 degrees, use quaternions.
    """
    roll, pitch, _ = np.moveaxis(np.asarray(euler, float), -1, 0)
    (sr, cr), (sp, cp) = sin_cos(roll), sin_cos(pitch)
    o, one = np.zeros_like(roll), np.ones_like(roll)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _matrix([[one, sr * sp / cp, cr * sp / cp], [o, cr, -sr], [o, sr / cp, cr / cp]])


def body_rate_matrix(euler: Any) -> Floats:
    """Return the inverse of the matrix T of :func:`euler_rate_matrix`, shape (..., 3, 3). It converts the rates of
    roll, pitch and heading to w_WB_B, and exists for every pitch.
    """
    roll, pitch, _ = np.moveaxis(np.asarray(euler, float), -1, 0)
    (sr, cr), (sp, cp) = sin_cos(roll), sin_cos(pitch)
    o, one = np.zeros_like(roll), np.ones_like(roll)
    return _matrix([[one, o, -sp], [o, cr, cp * sr], [o, -sr, cp * cr]])


def quaternion_rate_matrix(q_WB: Any) -> Floats:
    """Return T, shape (..., 4, 3), such that T w_WB_B is the rate of the quaternion.

    T contains the factor 1/2, which some texts write separately.
    """
    w, x, y, z = np.moveaxis(0.5 * np.asarray(q_WB, float), -1, 0)
    return _matrix([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])


def euler_rates(euler: Any, w_WB_B: Any) -> Floats:
    """Return the rates of roll, pitch and heading (..., 3) in rad/s, computed from w_WB_B."""
    return np.asarray(matvec(euler_rate_matrix(euler), np.asarray(w_WB_B, float)))


def quaternion_rates(q_WB: Any, w_WB_B: Any) -> Floats:
    """Return the rates of the quaternions (..., 4) in 1/s, computed from w_WB_B."""
    return np.asarray(matvec(quaternion_rate_matrix(q_WB), np.asarray(w_WB_B, float)))


def jacobian(euler: Any) -> Floats:
    """Return J(eta), shape (..., 6, 6), such that ``eta_dot = J nu``.

    eta contains north, east and down (m) and the Euler angles (rad). nu contains u, v, w (m/s) and p, q, r (rad/s).
    """
    return _blocks(euler_to_rotation(euler), euler_rate_matrix(euler))


def quaternion_jacobian(q_WB: Any) -> Floats:
    """Return J(eta), shape (..., 7, 6), such that ``eta_dot = J nu``, where eta contains north, east and down (m) and
    the attitude quaternion.
    """
    return _blocks(quaternion_to_rotation(q_WB), quaternion_rate_matrix(q_WB))


def euler_by_quaternion(q_WB: Any) -> Floats:
    """Return the derivatives (..., 3, 4) of roll, pitch and heading with respect to the quaternions (..., 4).

    Scaling the quaternion does not change the angles. The derivatives grow without limit near gimbal lock.
    """
    q = np.asarray(q_WB, float)
    rates = np.swapaxes(quaternion_rate_matrix(q), -1, -2) * (4.0 / dot(q, q)[..., None, None])
    return np.asarray(matmul(euler_rate_matrix(quaternion_to_euler(q)), rates))


def quaternion_by_euler(euler: Any) -> Floats:
    """Return the derivatives (..., 4, 3) of the quaternion with respect to roll, pitch and heading, for Euler angles
    (..., 3).
    """
    angles = np.asarray(euler, float)
    # frames.quaternion transposes its result: a last axis of angles stays the first axis of the result
    q = quaternion(*(np.ravel(angles[..., k]) for k in range(3))).reshape((*angles.shape[:-1], 4))
    return np.asarray(matmul(quaternion_rate_matrix(q), body_rate_matrix(angles)))


def _unit(q: Any) -> Floats:
    q = np.asarray(q, float)
    return np.asarray(q / np.sqrt(dot(q, q))[..., None])


def _matrix(rows: list[list[Any]]) -> Floats:
    """Return matrices (..., n, m) from rows of numbers or arrays (...)."""
    elements = np.broadcast_arrays(*(element for row in rows for element in row))
    return np.stack(elements, axis=-1).reshape((*elements[0].shape, len(rows), len(rows[0])))


def _blocks(a: Floats, b: Floats) -> Floats:
    """Return block-diagonal matrices with the blocks a and b."""
    found = np.zeros((*a.shape[:-2], a.shape[-2] + b.shape[-2], a.shape[-1] + b.shape[-1]))
    found[..., : a.shape[-2], : a.shape[-1]] = a
    found[..., a.shape[-2] :, a.shape[-1] :] = b
    return found
