"""Differences between a real run and simulations, with intervals, and how well the ensemble covers the real run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_studies.comparison.block_bootstrap import (
    Interval,
    correlation_time,
    mean_interval,
    rms_interval,
    share_interval,
)
from wavesim_studies.comparison.channels import Channel
from wavesim_studies.navigation.metrics import robust_deviation

__all__ = ["EnsembleCoverage", "QuantityDifference", "coverage", "difference"]

BANDS = (0.5, 0.9, 0.95)  #: probabilities of the bands of the ensemble
LEAST_RUNS = 3  #: with fewer simulated runs, the coverage is not computed
SAME = 1e-4  #: spread of an ensemble, relative to the largest value, below which its runs count as equal
LEAST_VALUES = 10
#: factors between units that are often confused, with the mistake that each would be
UNIT_FACTORS = {180.0 / math.pi: "degrees instead of radians", 1000.0: "a factor of 1000 (mm for m, ms for s?)"}
UNIT_TOLERANCE = 0.06
ALIKE = 0.9  #: correlation above which a ratio of 57.3 or 1000 counts as a wrong unit, and below its negative, as a wrong sign


@dataclass(frozen=True)
class EnsembleCoverage:
    """Share of the real values inside the central bands of an ensemble, and the ranks of the real values among the
    simulated ones.
    """

    shares: dict[str, Interval]  #: for each band, for example `90`: share and 95 % interval
    ranks: list[int]  #: number of real values at each rank, from below all runs to above all runs
    bands: str  #: `order statistics` or `Student's t`
    independent: float  #: number of independent values

    @property
    def verdict(self) -> str:
        """Verdict on the spread of the ensemble from the shares that differ from the nominal ones."""
        low = [name for name, s in self.shares.items() if s.high < float(name) / 100.0]
        high = [name for name, s in self.shares.items() if s.low > float(name) / 100.0]
        return (
            "overconfident"
            if low and not high
            else "too cautious"
            if high and not low
            else "consistent"
            if not low
            else "wrong shape"
        )


@dataclass(frozen=True)
class QuantityDifference:
    """Difference of one quantity: real minus simulated (for an ensemble: minus its mean)."""

    name: str
    unit: str
    values: int  #: number of compared values
    bias: Interval
    rms: Interval
    spread: float  #: standard deviation of the difference
    mad: float  #: median absolute deviation from the median, times 1.4826
    p95: float  #: 95th percentile of the absolute difference
    worst: float
    final: float
    correlation: float  #: correlation of the real with the simulated values; NaN for components of the track error
    gain: float  #: slope of the real over the simulated values
    noise: tuple[float, float] = (math.nan, math.nan)  #: noise of the real and the simulated values (instruments only)
    coverage: EnsembleCoverage | None = None


def ensemble_at(members: Sequence[Channel], time: Floats, gap: float) -> Floats:
    """Return the values (M, T) of all simulated runs at these times. Angles are unwrapped relative to the first run."""
    found = np.stack([m.at(time, gap) for m in members])
    if members[0].turns:
        found = found[0] + members[0].difference(found, found[0])
    return found


def white_noise(x: Floats) -> float:
    """Return the standard deviation of the white noise in a series. It is estimated from the second differences, which
    suppress slow signals.
    """
    if len(x) < LEAST_VALUES:
        return math.nan
    d = np.diff(x, 2)
    return float(robust_deviation(d, np.median(d)) / math.sqrt(6.0))


def summary(name: str, unit: str, e: Floats) -> QuantityDifference:
    """Return the statistics of differences (T), without those that need the compared values."""
    size = np.abs(e)
    return QuantityDifference(
        name,
        unit,
        len(e),
        mean_interval(e),
        rms_interval(e),
        float(e.std()),
        float(robust_deviation(e, np.median(e))),
        float(np.percentile(size, 95)),
        float(size.max()),
        float(e[-1]),
        math.nan,
        math.nan,
    )


def difference(
    real: Channel, members: Sequence[Channel], window: tuple[float, float], gap: float, most: int
) -> QuantityDifference | None:
    """Compare a channel with those of the simulated runs at the times of the real values inside ``window``.

    At most about ``most`` values are compared, evenly chosen. Return None if fewer than ten values are common, or if all
    values are equal. Raise LogError if the values have a wrong unit.
    """
    inside = (real.time >= window[0]) & (real.time <= window[1])
    time, y = real.time[inside], real.values[inside]
    stride = max(-(-len(time) // most), 1)
    x = ensemble_at(members, time[::stride], gap)
    good = np.isfinite(x).all(axis=0) & np.isfinite(y[::stride])
    if good.sum() < LEAST_VALUES:
        return None
    x, values = x[:, good], y[::stride][good]
    if np.ptp(values) == 0.0 and (x == values[0]).all():
        return None
    mean = x.mean(axis=0)
    e = real.difference(values, mean)
    rho, gain = _related(mean + e, mean)
    _check_unit(real, values, mean, rho, gain)
    found = summary(real.name, real.unit, e)
    noise = (math.nan, math.nan)
    if real.sampled:
        noise = (white_noise(y), float(np.median([white_noise(m.values) for m in members])))
    return QuantityDifference(
        **{
            **vars(found),
            "correlation": rho,
            "gain": gain,
            "noise": noise,
            "coverage": coverage(mean + e, x),
        }
    )


def _related(y: Floats, x: Floats) -> tuple[float, float]:
    """Return the correlation of two series, and the slope of y over x."""
    dy, dx = y - y.mean(), x - x.mean()
    vy, vx = float(dy @ dy), float(dx @ dx)
    if vy <= 0.0 or vx <= 0.0:
        return math.nan, math.nan
    return float(dx @ dy) / math.sqrt(vx * vy), float(dx @ dy) / vx


def _check_unit(real: Channel, y: Floats, x: Floats, rho: float, gain: float) -> None:
    """Raise LogError if the real values are the simulated ones in another unit."""
    if real.turns and (most := float(np.abs(y).max())) > 2.0 * math.pi + 0.1:
        raise LogError(
            f"'{real.name}' of the real run reaches {most:.4g} rad: degrees instead of radians? State the unit in --layout "
            "or in the import map"
        )
    if not rho > ALIKE:
        return
    for factor, mistake in UNIT_FACTORS.items():
        for ratio in (factor, 1.0 / factor):
            if abs(gain / ratio - 1.0) < UNIT_TOLERANCE:
                raise LogError(
                    f"'{real.name}' of the real run is {gain:.3g} times that of the simulation, with a correlation of "
                    f"{rho:.2f}: {mistake}? State the unit in --layout or in the import map"
                )


def coverage(y: Floats, x: Floats) -> EnsembleCoverage | None:
    """Return how an ensemble (M, T) covers real values (T), or None if it has too few runs or if its runs hardly differ.

    The band of probability P contains a further run of the same configuration with probability P. Its ends are order
    statistics where the ensemble has enough runs (19 for 90 %), otherwise those of a prediction interval by Student's t.
    """
    m, n = x.shape
    if m < LEAST_RUNS or float(np.median(np.ptp(x, axis=0))) <= SAME * float(np.abs(y).max()):
        return None
    rng = np.random.default_rng(11)
    ties = (x == y).sum(axis=0)
    rank = (x < y).sum(axis=0) + np.floor(rng.random(n) * (ties + 1)).astype(int)
    independent = min(n / correlation_time(rank.astype(float)), _independent(x))
    shares, kinds = {}, set()
    for band in BANDS:
        if m + 1 >= 2.0 / (1.0 - band) - 1e-9:
            low, high = np.quantile(x, [0.5 - 0.5 * band, 0.5 + 0.5 * band], axis=0, method="weibull")
            kinds.add("order statistics")
        else:
            half = stats.t.ppf(0.5 + 0.5 * band, m - 1) * x.std(axis=0, ddof=1) * math.sqrt(1.0 + 1.0 / m)
            low, high = x.mean(axis=0) - half, x.mean(axis=0) + half
            kinds.add("Student's t")
        hits = ((y >= low) & (y <= high)).astype(float)
        shares[f"{100.0 * band:g}"] = share_interval(hits, independent)
    return EnsembleCoverage(
        shares, np.bincount(rank, minlength=m + 1).tolist(), " and ".join(sorted(kinds)), float(independent)
    )


def _independent(x: Floats) -> float:
    """Return the number of independent values in one run of an ensemble (M, T), from the ensemble itself.

    The share of a run's values that are in the middle half of the ensemble varies from run to run. A constant that differs
    between runs, such as a bias or the start, makes it vary more than the correlation within one run reveals.
    """
    m, n = x.shape
    u = (np.argsort(np.argsort(x, axis=0, kind="stable"), axis=0) + 0.5) / m
    shares = (np.abs(u - 0.5) <= 0.25).mean(axis=1)
    p, variance = float(shares.mean()), float(shares.var(ddof=1))
    return p * (1.0 - p) / variance if variance > 0.0 and 0.0 < p < 1.0 else float(n)
