"""Intervals for statistics of one series whose values are correlated in time.

Consecutive values of a log are not independent, so the usual intervals are too narrow. The circular block bootstrap
draws whole blocks of the series. Their length follows from the autocorrelation (Politis and White 2004, corrected by
Patton, Politis and White 2009).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from wavesim_sdk.arrays import Floats
from wavesim_studies import correlation_times

__all__ = ["Interval", "bootstrap_interval", "correlation_time", "mean_interval", "rms_interval", "share_interval"]

LEVEL = 0.95
RESAMPLES = 999
LEAST_BLOCKS = 4  #: with fewer independent blocks, no interval is stated
#: minimum length of a block in correlation times; shorter blocks lose part of the correlation, and intervals get narrow
BLOCK_TIMES = 3.0
SEED = 41
MOST_DRAWN = 5_000_000  #: values of resampled series that are in memory at a time


class Interval(NamedTuple):
    """Estimate of a statistic, and its 95 % interval. The bounds are NaN if the series is too short for an interval."""

    value: float
    low: float
    high: float


def correlation_time(x: Floats) -> float:
    """Return the integrated autocorrelation time of a series in samples, between 1 and the length of the series."""
    n = len(x)
    return min(correlation_times.correlation_time(_autocorrelation(x, n - 1)), float(n)) if n >= 4 else 1.0


def _autocorrelation(x: Floats, lags: int) -> Floats:
    return correlation_times.autocorrelation([x - x.mean()], lags)


def block_length(x: Floats) -> int:
    """Return the length of the blocks in samples, between 1 and a third of the series."""
    n = len(x)
    if n < 6:
        return 1
    near = max(5, math.isqrt(int(math.log10(n))))
    most = min(math.isqrt(n) + near, n - 1)
    r = _autocorrelation(x, most)
    limit = 2.0 * math.sqrt(math.log10(n) / n)
    small = np.abs(r[1:]) < limit
    run = np.convolve(small, np.ones(near, int))[near - 1 :]  # number of small correlations among the next ones
    hits = np.flatnonzero(run[: max(len(small) - near + 1, 0)] == near)
    significant = np.flatnonzero(~small)
    m = int(hits[0]) if len(hits) else int(significant[-1]) + 1 if len(significant) else 1
    m = min(2 * max(m, 1), most)
    k = np.arange(-m, m + 1)
    window = np.clip(2.0 * (1.0 - np.abs(k) / m), 0.0, 1.0)  # flat top
    rho = r[np.abs(k)]
    g, spectrum = float((window * np.abs(k) * rho).sum()), float((window * rho).sum())
    if spectrum <= 0.0:
        return 1
    b = (2.0 * g * g / (4.0 / 3.0 * spectrum**2)) ** (1.0 / 3.0) * n ** (1.0 / 3.0)
    return int(min(max(math.ceil(b), 1), n // 3))


def _widened(value: float, drawn: Floats, blocks: float) -> Interval:
    """Return the interval of drawn statistics, wider by Student's quantile for a small number of blocks."""
    if blocks < LEAST_BLOCKS:
        return Interval(value, math.nan, math.nan)
    low, high = np.percentile(drawn, [50.0 * (1.0 - LEVEL), 50.0 * (1.0 + LEVEL)])
    tail = 0.5 * (1.0 + LEVEL)
    factor = float(stats.t.ppf(tail, blocks - 1.0) / stats.norm.ppf(tail)) * math.sqrt(blocks / (blocks - 1.0))
    return Interval(value, value + factor * (float(low) - value), value + factor * (float(high) - value))


def _length_for(x: Floats) -> tuple[int, float]:
    """Return the length of the blocks, and the number of blocks that count as independent."""
    n, time = len(x), correlation_time(x)
    b = min(max(block_length(x), math.ceil(BLOCK_TIMES * time) if time > 1.5 else 1), max(n // 4, 1))
    return b, n / max(b, time)


def _drawn_means(columns: Floats, b: int, seed: int) -> Floats:
    """Return the means (RESAMPLES, k) of columns (N, k) over resampled series of circular blocks."""
    n = len(columns)
    count = -(-n // b)
    circular = np.concatenate([columns, columns[:b]])
    sums = np.concatenate([np.zeros((1, columns.shape[1])), np.cumsum(circular, axis=0)])
    totals = sums[b : b + n] - sums[:n]
    starts = np.random.default_rng(seed).integers(0, n, (RESAMPLES, count))
    return np.asarray(totals[starts].sum(axis=1) / (count * b))


def mean_interval(x: Floats, seed: int = SEED) -> Interval:
    """Return the mean of a series, with its interval."""
    x = np.asarray(x, float)
    if not len(x):
        return Interval(math.nan, math.nan, math.nan)
    b, blocks = _length_for(x)
    mean = float(x.mean())
    return _widened(mean, mean + _drawn_means((x - mean)[:, None], b, seed)[:, 0], blocks)


def rms_interval(x: Floats, seed: int = SEED) -> Interval:
    """Return the root mean square of a series (N) or of vectors (N, k), with its interval."""
    x = np.asarray(x, float)
    square = np.square(x) if x.ndim == 1 else np.square(x).sum(axis=1)
    if not len(square) or not square.any():
        return Interval(math.nan if not len(square) else 0.0, math.nan, math.nan)
    b, blocks = _length_for(square)
    mean = float(square.mean())
    # a mean square is skewed; its logarithm is nearly symmetric
    drawn = np.log(np.maximum(_drawn_means(square[:, None], b, seed)[:, 0], 1e-6 * mean))
    return Interval(*(math.exp(0.5 * v) if v == v else v for v in _widened(math.log(mean), drawn, blocks)))


def bootstrap_interval(x: Floats, statistic: Callable[[Floats], Floats], seed: int = SEED) -> Interval:
    """Return any statistic of a series, with its interval. ``statistic`` maps arrays (..., N) to (...)."""
    x = np.asarray(x, float)
    if len(x) < 2:
        return Interval(float(statistic(x)) if len(x) else math.nan, math.nan, math.nan)
    b, blocks = _length_for(x)
    n = len(x)
    starts = np.random.default_rng(seed).integers(0, n, (RESAMPLES, -(-n // b)))
    drawn = []
    for part in np.array_split(starts, min(-(-RESAMPLES * n // MOST_DRAWN), RESAMPLES)):  # long series need much memory
        at = ((part[:, :, None] + np.arange(b)) % n).reshape(len(part), -1)[:, :n]
        drawn.append(np.asarray(statistic(x[at])))
    return _widened(float(statistic(x)), np.concatenate(drawn), blocks)


def share_interval(hits: Floats, independent: float) -> Interval:
    """Return the fraction of ones in a series of zeros and ones, with its Wilson interval for a number of independent
    values.

    Unlike a bootstrap, this interval has a width even if all values are equal.
    """
    n = len(hits)
    if not n:
        return Interval(math.nan, 0.0, 1.0)
    p, m, z = float(np.mean(hits)), min(max(independent, 1.0), n), float(stats.norm.ppf(0.5 * (1.0 + LEVEL)))
    middle = (p + z * z / (2.0 * m)) / (1.0 + z * z / m)
    half = z / (1.0 + z * z / m) * math.sqrt(p * (1.0 - p) / m + z * z / (4.0 * m * m))
    return Interval(p, max(middle - half, 0.0), min(middle + half, 1.0))
