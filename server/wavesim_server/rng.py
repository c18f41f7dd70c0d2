"""The numbers of :mod:`wavesim_sdk.randomness`, compiled: the same bits."""

from wavesim_sdk.compiled_elementary import normal, uniform

__all__ = ["normal", "uniform"]
