"""The functions of :mod:`wavesim_sdk.randomness`, compiled; the results are bit-identical."""

from wavesim_sdk.compiled_elementary import normal, uniform

__all__ = ["normal", "uniform"]
