"""Wind over the water."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import exp, log

SURFACE_LAYER = 100.0  #: height in m up to which the mean wind increases; above it, the wind is constant


def profile_law(drag: float) -> tuple[float, float]:
    """Return the factor a and the roughness length z0 in m of the profile a ln(z/z0) of the mean wind."""
    root = float(np.sqrt(drag))
    return 2.5 * root, 10.0 * float(exp(-2.0 / (5.0 * root)))


def wind_profile(drag: float, height: Any) -> Floats:
    """Return the mean wind at a height z (m), divided by the mean wind at 10 m. The profile is 5/2 sqrt(k) ln(z/z0)
    with z0 = 10 exp(-2/(5 sqrt k)). It is 0 below z0, and constant above the surface layer.
    """
    factor, z0 = profile_law(drag)
    return np.asarray(np.maximum(factor * log(np.clip(height, 0.01, SURFACE_LAYER) / z0), 0.0))
