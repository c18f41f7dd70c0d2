"""Axes of SDF and URDF: x forward, y to port, z up (REP 103). WaVeSim's body axes point forward, to starboard and down."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.importers.model_draft import format_numbers

FLIP = np.array([1.0, -1.0, -1.0])  #: signs of a vector when its axes change; the change is a half turn about x
FLIP6 = np.concatenate([FLIP, FLIP])  #: the same for a velocity or a force with its moment


def flipped(vector: Sequence[float] | Floats) -> Floats:
    """Return a vector (3,) or (6,) along the other axes."""
    v = np.asarray(vector, float)
    return np.asarray(v * (FLIP if len(v) == 3 else FLIP6))


def flipped_attitude(attitude: Sequence[float]) -> tuple[float, float, float]:
    """Return the fixed-axis roll, pitch and yaw (rad) of a frame whose own axes and reference axes both change."""
    roll, pitch, yaw = attitude
    return roll, -pitch, -yaw


def attitude_with_x_along(direction: Floats) -> tuple[float, float, float]:
    """Return the roll, pitch and yaw (rad) of a frame whose x axis has the given direction (3,)."""
    return 0.0, -math.asin(max(-1.0, min(1.0, direction[2]))), math.atan2(direction[1], direction[0])


def numbers(*values: float | Sequence[float] | Floats) -> str:
    """Return numbers and vectors as text, separated by spaces."""
    flat = np.concatenate([np.atleast_1d(np.asarray(v, float)) for v in values])
    return format_numbers(*flat)
