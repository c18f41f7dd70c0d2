"""Correlation of a series in time, and the number of values that count as one independent value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavesim_sdk.arrays import Floats

__all__ = ["autocorrelation", "correlation_time"]


def autocorrelation(parts: Sequence[Floats], lags: int) -> Floats:
    """Return the autocorrelation (lags + 1) of a series of mean 0 that consists of several parts, each without gaps.

    It is 0 beyond lag 0 for a series without power, and beyond the longest part.
    """
    sums, count = np.zeros(lags + 1), sum(map(len, parts))
    for x in parts:
        power = np.square(np.abs(np.fft.rfft(x, 2 * len(x))))
        mine = np.fft.irfft(power, 2 * len(x))[: min(lags + 1, len(x))]
        sums[: len(mine)] += mine
    return sums / sums[0] if sums[0] > 1e-20 * count else np.asarray(np.eye(1, lags + 1)[0])


def correlation_time(rho: Floats) -> float:
    """Return the integrated autocorrelation time in samples, at least 1: 1 + 2 sum(rho), where ``rho`` begins with lag 0.
    A series of N values is worth N divided by this number of independent values.

    The sum ends where the sum of two neighbouring correlations is not positive (Geyer 1992).
    """
    pairs = rho[: 2 * (len(rho) // 2)].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    pairs = pairs[: ends[0]] if len(ends) else pairs
    return max(2.0 * float(pairs.sum()) - 1.0, 1.0)
