"""Rotations and angles, for the NED world frame W, the forward-starboard-down body frame B and scalar-first
quaternions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import asin, atan2, sin_cos


def quaternion(roll: Any, pitch: Any, heading: Any) -> Floats:
    """Return q_WB (..., 4) for roll, pitch and heading in rad, given as numbers or arrays (Fossen 2021, eq. 2.79)."""
    (sr, cr), (sp, cp), (sy, cy) = sin_cos(roll / 2), sin_cos(pitch / 2), sin_cos(heading / 2)
    return np.array(
        [
            cy * cp * cr + sy * sp * sr,
            cy * cp * sr - sy * sp * cr,
            sy * cp * sr + cy * sp * cr,
            sy * cp * cr - cy * sp * sr,
        ]
    ).T


def _parts(q: Any) -> Any:
    """Return the four components of quaternions (..., 4), or of one quaternion given as a list or tuple of floats."""
    if isinstance(q, tuple | list) and type(q[0]) is float:
        return q
    q = np.asarray(q)
    return q[..., 0], q[..., 1], q[..., 2], q[..., 3]


def rotation_elements(w: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return the nine elements of R_WB, in row-major order, for the unit quaternion q_WB, whose components are numbers
    or arrays. Kernels compile this function.
    """
    return (
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - z * w),
        2.0 * (x * z + y * w),
        2.0 * (x * y + z * w),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - x * w),
        2.0 * (x * z - y * w),
        2.0 * (y * z + x * w),
        1.0 - 2.0 * (x * x + y * y),
    )


def rotation(q_WB: Floats) -> Floats:
    """Return R_WB (..., 3, 3) of unit quaternions (..., 4), such that ``v_W = R_WB v_B``."""
    w, x, y, z = _parts(q_WB)
    R = np.empty((*w.shape, 9))
    for k, element in enumerate(rotation_elements(w, x, y, z)):
        R[..., k] = element
    return R.reshape(*w.shape, 3, 3)


def roll(q_WB: Any) -> Any:
    """Return the roll (...) in rad of unit quaternions (..., 4); for one quaternion, return a float."""
    w, x, y, z = _parts(q_WB)
    return atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))


def pitch(q_WB: Any) -> Any:
    """Return the pitch (...) in rad of unit quaternions (..., 4); for one quaternion, return a float."""
    w, x, y, z = _parts(q_WB)
    return asin(2 * (w * y - z * x))


def heading(q_WB: Any) -> Any:
    """Return the heading (...) in rad, in (-pi, pi], of unit quaternions (..., 4); for one quaternion, return a float."""
    w, x, y, z = _parts(q_WB)
    return atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


ANGLES = {"roll": roll, "pitch": pitch, "heading": heading}


def euler(q_WB: Floats) -> Floats:
    """Return roll, pitch and heading (..., 3) in rad, with the heading in (-pi, pi]."""
    return np.stack([angle(q_WB) for angle in ANGLES.values()], axis=-1)


def wrap(angle: float) -> float:
    """Wrap an angle in rad to (-pi, pi]."""
    return float(-((math.pi - angle) % (2.0 * math.pi)) + math.pi)
