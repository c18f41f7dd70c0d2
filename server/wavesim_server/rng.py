"""Compiled version of :mod:`wavesim_sdk.randomness`, with identical bits."""

from wavesim_sdk.compiled_elementary import normal, uniform

__all__ = ["normal", "uniform"]
