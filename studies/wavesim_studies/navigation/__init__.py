"""Navigation: a reference filter and smoother, and metrics for estimates."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavesim_studies.navigation.filter import Filter, FilterDesign, FilterState, Track, compile_filter, estimate

__all__ = ["Filter", "FilterDesign", "FilterState", "Track", "compile_filter", "estimate"]


def __getattr__(name: str) -> Any:
    """Import the filter only on first use, because the command line must work without the filter's libraries."""
    if name in __all__:
        return getattr(importlib.import_module("wavesim_studies.navigation.filter"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
