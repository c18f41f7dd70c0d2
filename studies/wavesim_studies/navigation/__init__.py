"""Navigation: a reference filter and smoother, and metrics of navigation estimates."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavesim_studies.navigation.attitude_motion import ahrs_motion
    from wavesim_studies.navigation.filter import Filter, FilterDesign, FilterState, Track, compile_filter, estimate

__all__ = ["Filter", "FilterDesign", "FilterState", "Track", "ahrs_motion", "compile_filter", "estimate"]


def __getattr__(name: str) -> Any:
    """Import the filter only on first use, because the command line must work without the filter's libraries."""
    if name in __all__:
        module = "attitude_motion" if name == "ahrs_motion" else "filter"
        return getattr(importlib.import_module(f"wavesim_studies.navigation.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
