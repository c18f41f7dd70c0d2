"""Statistics of campaigns: intervals, comparison of two campaigns, the gate, and Sobol indices."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_studies.campaign.metrics import CampaignMetric
from wavesim_studies.campaign.run import OK

Table = Sequence[Mapping[str, Any]]
LEVEL = 0.95
RESAMPLES = 9999
SENSITIVITY_RESAMPLES = 400  #: number of bootstrap samples for the intervals of Sobol indices
SUCCESS = "success"


def column(table: Table, name: str) -> Floats:
    """Return the numbers of a column, with NaN where a row has no value."""
    return np.array([math.nan if row.get(name) is None else float(row[name]) for row in table])


def succeeded(row: Mapping[str, Any]) -> bool:
    """Return whether a run counts as successful."""
    return bool(row.get(SUCCESS, row["status"] == OK))


def mean_interval(values: Floats, seed: int = 0) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval (BCa): (mean, low, high)."""
    good = values[np.isfinite(values)]
    if not len(good):
        return math.nan, math.nan, math.nan
    mean = float(good.mean())
    if len(good) < 2 or float(np.ptp(good)) == 0.0:
        return mean, mean, mean
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # distributions with hardly any spread cause warnings; percentiles are used for them
        made = {"n_resamples": RESAMPLES, "confidence_level": LEVEL, "vectorized": True, "batch": 1000}
        found = stats.bootstrap(
            (good,), np.mean, method="BCa", rng=np.random.default_rng(seed), **made
        ).confidence_interval
        if not math.isfinite(found.low):
            found = stats.bootstrap(
                (good,), np.mean, method="percentile", rng=np.random.default_rng(seed), **made
            ).confidence_interval
    return mean, float(found.low), float(found.high)


def share_interval(successes: int, of: int) -> tuple[float, float, float]:
    """Return the fraction of successes and its 95 % Wilson interval: (fraction, low, high)."""
    if not of:
        return math.nan, 0.0, 1.0
    found = stats.binomtest(successes, of).proportion_ci(LEVEL, method="wilson")
    return successes / of, float(found.low), float(found.high)


@dataclass(frozen=True)
class MetricDifference:
    """Difference of a metric between an earlier and a later campaign, computed from pairs of rows."""

    name: str
    unit: str
    better: str  #: direction that counts as better: `lower`, `higher`, or empty if neither does
    pairs: int
    left_out: int  #: number of pairs in which one run has no value for the metric
    before: float
    after: float
    change: float  #: mean difference: after minus before
    low: float
    high: float
    share_better: float
    worst: float  #: largest change for the worse among the pairs
    #: p-value: probability of at least this change by chance alone, with Holm's correction for the number of metrics
    p: float
    margin: float  #: margin of the gate, in the unit of the metric

    @property
    def verdict(self) -> str:
        """Verdict of the gate. It is ``worse`` if the whole interval is beyond the margin, ``undecided`` if only part
        of the interval is, and ``pass`` otherwise.

        If neither direction of a metric counts as better, the verdict is ``not judged``.
        """
        if not self.better:
            return "not judged"
        if self.pairs < 2 or not math.isfinite(self.change):
            return "undecided"
        low, high = (self.low, self.high) if self.better == "lower" else (-self.high, -self.low)
        return "worse" if low > self.margin else "undecided" if high > self.margin else "pass"


def pairs(before: Table, after: Table, factors: Sequence[str]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return pairs of rows with the same point and replicate."""

    def key(row: Mapping[str, Any]) -> str:
        return json.dumps([[row.get(f) for f in factors], row["replicate"]])

    known = {key(row): row for row in before}
    return [(known[key(row)], row) for row in after if key(row) in known]


def compare(
    before: Table, after: Table, factors: Sequence[str], metrics: Sequence[CampaignMetric]
) -> list[MetricDifference]:
    """Compare each metric and the success rates of two campaigns. Raise ConfigError if they have no run in common."""
    both = pairs(before, after, factors)
    if not both:
        raise ConfigError("these campaigns have no point and replicate in common")
    found = [
        _difference(m, column([a for a, _ in both], m.name), column([b for _, b in both], m.name)) for m in metrics
    ]
    won = [np.array([float(succeeded(pair[k])) for pair in both]) for k in (0, 1)]
    found.append(_difference(CampaignMetric(SUCCESS, "", "higher", 0.05, "", None, False), *won))
    order = np.argsort([d.p for d in found])
    least = 0.0
    for rank, k in enumerate(order.tolist()):  # Holm 1979
        least = max(least, min(1.0, (len(found) - rank) * found[k].p))
        found[k] = MetricDifference(**{**vars(found[k]), "p": least})
    return found


def _difference(m: CampaignMetric, before: Floats, after: Floats) -> MetricDifference:
    good = np.isfinite(before) & np.isfinite(after)
    a, b = before[good], after[good]
    change = b - a
    mean, low, high = mean_interval(change)
    worse = -change if m.better == "higher" else change if m.better else np.full(len(change), math.nan)
    margin = m.margin * (abs(float(a.mean())) if m.name != SUCCESS else 1.0) if len(a) else math.nan
    return MetricDifference(
        m.name,
        m.unit,
        m.better,
        len(a),
        int((~good).sum()),
        float(a.mean()) if len(a) else math.nan,
        float(b.mean()) if len(b) else math.nan,
        mean,
        low,
        high,
        float((worse < 0).mean()) if len(a) and m.better else math.nan,
        float(worse.max()) if len(a) else math.nan,
        _p(change),
        margin,
    )


def _p(change: Floats) -> float:
    """Return the fraction of random sign patterns whose mean change is at least as large as the observed one."""
    if len(change) < 2 or not np.any(change):
        return 1.0
    signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(RESAMPLES, len(change)))
    greater = np.abs(signs @ change) >= abs(change.sum()) * (1.0 - 1e-12)
    return float((greater.sum() + 1) / (RESAMPLES + 1))


def sensitivity(values: Floats, factors: int, n: int) -> dict[str, Floats]:
    """Return Sobol indices from the ordered runs of design=sensitivity.

    The arrays ``first`` and ``total`` have shape (factors,). ``first_interval`` and ``total_interval`` contain their
    95 % intervals and have shape (factors, 2). Raise ConfigError if a run is missing.
    """
    if len(values) != n * (factors + 2) or not np.isfinite(values).all():
        raise ConfigError("Sobol indices need the results of all runs")
    blocks = values.reshape(factors + 2, n)
    evaluations = {"f_A": blocks[:1], "f_B": blocks[1:2], "f_AB": blocks[2:, None, :]}
    found = stats.sobol_indices(func=evaluations, n=n)
    # intervals: runs resampled by weights; the estimators are those of Saltelli et al. (2010) and Jansen (1999)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=SENSITIVITY_RESAMPLES) / n
    centred = blocks - blocks[:2].mean()
    a, b, mixed = centred[0], centred[1], centred[2:]
    variance = weights @ (0.5 * (a * a + b * b)) - (weights @ (0.5 * (a + b))) ** 2
    drawn = {"first": weights @ (b * (mixed - a)).T, "total": weights @ (0.5 * (a - mixed) ** 2).T}
    ends = [50.0 * (1.0 - LEVEL), 50.0 * (1.0 + LEVEL)]
    spread = {f"{k}_interval": np.percentile(v / variance[:, None], ends, axis=0).T for k, v in drawn.items()}
    return {"first": found.first_order, "total": found.total_order, **spread}
