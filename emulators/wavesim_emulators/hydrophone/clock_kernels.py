"""The clock of a hydrophone in kernels: an array of the sampling rate in Hz, the offset in s and the drift in s/s."""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats


@device_function
def number_at(time: float, clock: Floats) -> int:
    """Return the number of the first sample at or after a simulation time in s."""
    return math.ceil(float((time + clock[1] + clock[2] * time) * clock[0]))


@device_function
def time_of(number: int, clock: Floats) -> float:
    """Return the simulation time of a sample in s."""
    return float((number / clock[0] - clock[1]) / (1.0 + clock[2]))
