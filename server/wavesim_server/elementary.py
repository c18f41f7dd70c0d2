"""The elementary functions for kernels: importing them from here makes them known to the compiler."""

from wavesim_sdk import compiled_elementary as _compiled  # noqa: F401  # tells Numba
from wavesim_sdk.elementary import (
    LEAST,
    acos,
    asin,
    asinh,
    atan2,
    cos,
    exp,
    flush,
    hypot,
    log,
    log10,
    power,
    sin,
    sin_cos,
)  # fmt: skip

__all__ = [
    "LEAST", "acos", "asin", "asinh", "atan2", "cos", "exp", "flush", "hypot", "log", "log10", "power", "sin", "sin_cos",
]  # fmt: skip
