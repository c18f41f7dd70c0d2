"""The functions of :mod:`wavesim_kernels.randomness`, compiled; the results are bit-identical."""

from wavesim_kernels.compiled_elementary import normal, uniform

__all__ = ["normal", "uniform"]
