"""Camera lens: a pinhole camera with radial distortion (Brown). The image centre is on the x axis of S.

Pixel (0, 0) is at the top left, with its centre at the coordinates (0.5, 0.5). Frame S has x ahead, y to the right, z
down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats

NEWTON = 12


def focal_length(width: int, view: float) -> float:
    """Return the focal length in pixels, which is equal for both axes. ``view`` is the horizontal field of view in rad."""
    return 0.5 * width / math.tan(0.5 * view)


def is_invertible(width: int, height: int, view: float, k: Sequence[float]) -> bool:
    """Return whether each point of the image corresponds to exactly one direction."""
    corner = math.hypot(width, height) / (2.0 * focal_length(width, view))
    r = np.linspace(0.0, 4.0 * corner, 2001)
    seen = r * (1.0 + k[0] * r**2 + k[1] * r**4)
    falls = np.flatnonzero(np.diff(seen) <= 0.0)
    return bool(seen[falls[0]] > corner) if len(falls) else bool(seen[-1] > corner)


def project(points: Any, width: int, height: int, view: float, k: Sequence[float]) -> Floats:
    """Project points (n, 3) in S to column and row (n, 2) in pixels. The result is NaN for points behind the camera."""
    x, y, z = np.asarray(points, float).T
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(x > 0.0, np.stack([y, z]) / x, np.nan)
    r2 = (a * a).sum(axis=0)
    at = focal_length(width, view) * a * (1.0 + k[0] * r2 + k[1] * r2 * r2)
    return np.asarray(at.T + [0.5 * width, 0.5 * height])


def pixel_slopes(width: int, height: int, view: float, k: Sequence[float]) -> tuple[Floats, Floats]:
    """Return (y/x, z/x) in S for the direction of each pixel, both of shape (height, width)."""
    f = focal_length(width, view)
    a, b = np.meshgrid((np.arange(width) + 0.5 - 0.5 * width) / f, (np.arange(height) + 0.5 - 0.5 * height) / f)
    seen = np.maximum(np.hypot(a, b), 1e-12)
    r = seen.copy()
    for _ in range(NEWTON):
        r2 = r * r
        r -= (r * (1.0 + k[0] * r2 + k[1] * r2 * r2) - seen) / (1.0 + 3.0 * k[0] * r2 + 5.0 * k[1] * r2 * r2)
    return a * r / seen, b * r / seen
