"""Trims and linear models of vehicles, to design controllers with other programs."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavesim_studies.linear_models.linearisation import LinearModel, MotionMode, linearise
    from wavesim_studies.linear_models.trim import VehicleTrim, find_trim

__all__ = ["LinearModel", "MotionMode", "VehicleTrim", "find_trim", "linearise"]


def __getattr__(name: str) -> Any:
    """Import a module only on first use, because the command line must stay light."""
    if name in __all__:
        module = "trim" if name in ("VehicleTrim", "find_trim") else "linearisation"
        return getattr(importlib.import_module(f"wavesim_studies.linear_models.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
