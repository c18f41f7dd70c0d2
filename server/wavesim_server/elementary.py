"""The elementary functions for kernels: importing them from here makes them known to the compiler."""

from wavesim_sdk import compiled as _compiled  # noqa: F401  # tells Numba
from wavesim_sdk.elementary import acos, asin, asinh, atan2, cos, exp, hypot, log, log10, power, sin, sin_cos

__all__ = ["acos", "asin", "asinh", "atan2", "cos", "exp", "hypot", "log", "log10", "power", "sin", "sin_cos"]
