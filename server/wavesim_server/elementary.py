"""The elementary functions for kernels; importing this module registers these functions with Numba."""

from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers them with Numba
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
)

__all__ = [
    "LEAST",
    "acos",
    "asin",
    "asinh",
    "atan2",
    "cos",
    "exp",
    "flush",
    "hypot",
    "log",
    "log10",
    "power",
    "sin",
    "sin_cos",
]
