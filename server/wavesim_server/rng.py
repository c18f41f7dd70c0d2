"""The functions of :mod:`wavesim_sdk.randomness`, compiled; they return the same bits."""

from wavesim_sdk.compiled_elementary import normal, uniform

__all__ = ["normal", "uniform"]
