"""Wind over the water."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import exp, log


def wind_profile(drag: float, height: Any) -> Floats:
    """Return the mean wind at a height z (m), divided by the mean wind at 10 m. The profile is 5/2 sqrt(k) ln(z/z0)
    with z0 = 10 exp(-2/(5 sqrt k)), and 0 below z0.
    """
    root = np.sqrt(drag)
    z0 = 10.0 * exp(-2.0 / (5.0 * root))
    return np.asarray(np.maximum(2.5 * root * log(np.maximum(height, 0.01) / z0), 0.0))
