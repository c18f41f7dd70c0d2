"""Conversion between the axis conventions of WaVeSim and ROS (REP 103): NED and ENU in the world, FRD and FLU on a
body.

Each function is its own inverse.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_sdk.arrays import Floats

_HALF = math.sqrt(0.5)


def ned_to_enu(ned: Floats) -> Floats:
    """Convert a position or a vector (..., 3) in the world frame between NED and ENU."""
    return np.stack([ned[..., 1], ned[..., 0], -ned[..., 2]], axis=-1)


def frd_to_flu(frd: Floats) -> Floats:
    """Convert a vector (..., 3) in the body frame between FRD and FLU."""
    return frd * (1.0, -1.0, -1.0)


def attitude_enu(q: Floats) -> Floats:
    """Convert attitude quaternions (..., 4) between the conventions FRD-to-NED and FLU-to-ENU (REP 103)."""
    w, x, y, z = np.moveaxis(np.asarray(q), -1, 0)
    return _HALF * np.stack([w + z, x + y, x - y, w - z], axis=-1)
