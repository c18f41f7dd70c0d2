"""Comparison of acoustic ranges and detections: residuals of ranges for each pair of nodes, and the share of detected
signals by distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.log import Log
from wavesim_sdk.tables import RECEPTION, SENT, STATE, Outcome
from wavesim_studies.comparison.block_bootstrap import (
    Interval,
    block_length,
    bootstrap_interval,
    mean_interval,
    share_interval,
)
from wavesim_studies.navigation.metrics import robust_deviation

__all__ = ["AcousticRun", "DetectionShare", "RangeDifference", "acoustic_run", "compare_detections", "compare_ranges"]

LEAST_RANGES = 8  #: smallest number of ranges of a pair that are compared
LEAST_SIGNALS = 10  #: smallest number of signals in a bin of distance
BINS = 8
PERMUTATIONS = 999
RESAMPLES = 999
#: outcomes of a signal that the receiver could not have received whatever its distance, and later paths
_EXCLUDED = tuple(
    int(o)
    for o in (
        Outcome.OUT_OF_BAND,
        Outcome.TRANSMITTING,
        Outcome.RECEIVER_LEFT,
        Outcome.NOT_SENT,
        Outcome.ECHO,
        Outcome.FOREIGN,
    )
)


@dataclass(frozen=True)
class AcousticRun:
    """Acoustic ranges and detections in a log.

    ``residuals`` contains, for each pair of nodes, measured range minus true distance in m, in the order of time. The
    distance of a two-way range is the mean of those of query and reply.
    ``signals`` (S) numbers the signal of each opportunity to receive, ``distances`` (S) are in m, and ``detected`` (S)
    is 1 or 0.
    """

    residuals: dict[str, Floats]
    signals: Ints
    distances: Floats
    detected: Floats


@dataclass(frozen=True)
class RangeDifference:
    """Residuals of the ranges of one pair of nodes: measured range minus true distance, in m."""

    pair: str
    real_count: int
    simulated_count: int
    real_bias: Interval
    simulated_bias: Interval
    real_mad: Interval  #: median absolute deviation from the median, times 1.4826
    simulated_mad: Interval
    statistic: float  #: largest difference between the distribution functions (Kolmogorov and Smirnov)
    p: float  #: probability of a difference at least as large if both runs have one distribution


@dataclass(frozen=True)
class DetectionShare:
    """Share of detected signals in one bin of distance. The intervals treat all receptions of a signal as one cluster."""

    low: float  #: ends of the bin in m
    high: float
    real: Interval
    simulated: Interval
    real_count: int
    simulated_count: int
    change: Interval  #: real minus simulated share


def acoustic_run(log: Log, begin: float, end: float) -> AcousticRun | None:
    """Return the acoustic ranges and detections in a log between two times in s, or None if it has none."""
    receptions = log.get("/acoustics/reception", RECEPTION)
    r = receptions.records
    now = (r["emission_ns"] >= begin * 1e9) & (r["emission_ns"] <= end * 1e9)
    r, at = r[now], receptions.time_ns[now]
    if not len(r):
        return None
    order = np.argsort(r["arrival_ns"], kind="stable")
    r, at = r[order], at[order]
    source, receiver = (np.array(log.names_at(r[k], at), object) for k in ("source", "receiver"))
    distance = _distances(log, r, source, receiver)
    heard = r["outcome"] == Outcome.HEARD
    residuals: dict[str, Floats] = {}
    asked = np.isfinite(r["measured"])
    ranges = np.where(asked, r["measured"], r["one_way"])
    error = ranges - np.where(asked, 0.5 * (distance + _query_distances(log, r, distance)), distance)
    usable = heard & np.isfinite(error) & (distance > 0.0)
    for a, b, two_way in sorted(
        {(a, b, bool(t)) for a, b, t in zip(source[usable], receiver[usable], asked[usable], strict=True)}
    ):
        mine = usable & (source == a) & (receiver == b) & (asked == two_way)
        residuals[f"{a} > {b}{', two-way' if two_way else ''}"] = np.asarray(error[mine], float)
    return AcousticRun(residuals, *_opportunities(log, r, (source, receiver), distance, (begin, end)))


def _positions(log: Log, name: str, time_ns: Ints) -> Floats:
    """Return the positions (N, 3) of a body at these times, or NaN."""
    topic = f"/state/{name}"
    if topic not in log.series or not len(log.series[topic].time_ns):
        return np.full((len(time_ns), 3), np.nan)
    state = log.get(topic, STATE)
    return np.stack([np.interp(time_ns, state.time_ns, state.records["p_WB_W"][:, k]) for k in range(3)], axis=1)


def _distances(log: Log, r: Any, source: Any, receiver: Any) -> Floats:
    """Return the distances in m of the receptions: those in the log or, where it has none, those between the tracks."""
    found = np.where(r["distance"] > 0.0, r["distance"], np.nan)
    for a, b in sorted({(a, b) for a, b in zip(source, receiver, strict=True)}):
        mine = np.isnan(found) & (source == a) & (receiver == b)
        if mine.any():
            apart = _positions(log, b, r["arrival_ns"][mine]) - _positions(log, a, r["emission_ns"][mine])
            found[mine] = np.linalg.norm(apart, axis=1)
    return np.asarray(found)


def _query_distances(log: Log, r: Any, distance: Floats) -> Floats:
    """Return, for each reply, the distance in m over which its query travelled, because a two-way range is the mean of
    both ways. A reply whose query left no reception in the log has the ``distance`` of the reply itself.
    """
    receptions = log.get("/acoustics/reception", RECEPTION)
    mine = np.isin(receptions.records["id"], r["query"][r["query"] != 0])
    mine &= receptions.records["outcome"] == Outcome.HEARD
    q, at = receptions.records[mine], receptions.time_ns[mine]
    ends = [np.array(log.names_at(q[k], at), object) for k in ("source", "receiver")]
    known = dict(
        zip(zip(q["id"].tolist(), q["receiver"].tolist(), strict=True), _distances(log, q, *ends), strict=True)
    )
    pairs = zip(r["query"].tolist(), r["source"].tolist(), distance, strict=True)
    return np.array([known.get((query, source), d) for query, source, d in pairs], float)


def _opportunities(
    log: Log, r: Any, nodes: tuple[Any, Any], distance: Floats, window: tuple[float, float]
) -> tuple[Ints, Floats, Floats]:
    """Return signal, distance and detection of each pair of signal and receiver. Signals that left no trace at a
    receiver, which receives others of the same source, count as missed.
    """
    source, receiver = nodes
    found: dict[tuple[int, str], tuple[float, float]] = {}
    barred = set()
    for signal, name, outcome, d in zip(
        r["id"].tolist(), receiver, r["outcome"].tolist(), distance.tolist(), strict=True
    ):
        if outcome in _EXCLUDED:
            barred.add((signal, name))
            continue
        before = found.get((signal, name), (d, 0.0))
        found[signal, name] = (before[0], max(before[1], float(outcome == Outcome.HEARD)))
    pairs: dict[str, set[str]] = {}
    for a, b in zip(source, receiver, strict=True):
        pairs.setdefault(a, set()).add(b)
    sent = log.get("/acoustics/sent", SENT)
    s = sent.records
    now = (s["emission_ns"] >= window[0] * 1e9) & (s["emission_ns"] <= window[1] * 1e9) & (s["outcome"] == 0)
    names = log.names_at(s["source"][now], sent.time_ns[now])
    missed: dict[str, list[Any]] = {}
    for row, a in zip(s[now], names, strict=True):
        for b in pairs.get(a, ()):
            key = (int(row["id"]), b)
            if key not in found and key not in barred:
                missed.setdefault(b, []).append(row)
    for b, rows in missed.items():  # one interpolation of the track for all signals
        apart = _positions(log, b, np.array([r["emission_ns"] for r in rows])) - [r["origin_W"] for r in rows]
        for row, d in zip(rows, np.linalg.norm(apart, axis=1).tolist(), strict=True):
            found[int(row["id"]), b] = (d, 0.0)
    keys = [k for k, (d, _) in found.items() if d == d]
    return (
        np.array([k[0] for k in keys], np.int64),
        np.array([found[k][0] for k in keys], float),
        np.array([found[k][1] for k in keys], float),
    )


def _mad(x: Floats) -> Floats:
    return np.asarray(robust_deviation(x, np.median(x, axis=-1, keepdims=True)))


def compare_ranges(real: AcousticRun, simulated: Sequence[AcousticRun]) -> list[RangeDifference]:
    """Compare the residuals of the ranges of each pair of nodes that both runs contain. The residuals of all simulated
    runs are pooled.
    """
    found = []
    for pair, a in real.residuals.items():
        parts = [s.residuals[pair] for s in simulated if pair in s.residuals]
        b = np.concatenate(parts) if parts else np.zeros(0)
        if len(a) < LEAST_RANGES or len(b) < LEAST_RANGES:
            continue
        statistic, p = two_sample(a, parts)
        found.append(
            RangeDifference(
                pair,
                len(a),
                len(b),
                mean_interval(a),
                mean_interval(b),
                bootstrap_interval(a, _mad),
                bootstrap_interval(b, _mad),
                statistic,
                p,
            )
        )
    return found


def two_sample(a: Floats, parts: Sequence[Floats]) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov statistic of a series and of pooled other series, and its p-value.

    The p-value is that of a permutation of blocks of time, because residuals are correlated in time: a block is at least
    as long as the correlation.
    """
    b = max(block_length(a), *(block_length(x) for x in parts))
    b = min(b, max(len(a) // 4, 1))
    series = [x for x in (a, *parts) if len(x)]
    counts = [-(-len(x) // b) for x in series]  # blocks of each series
    firsts = np.cumsum([0, *counts])
    pooled = np.concatenate(series)
    blocks = np.concatenate([np.arange(len(x)) // b + first for x, first in zip(series, firsts, strict=False)])
    own = np.arange(firsts[-1]) < counts[0]
    order = np.argsort(pooled, kind="stable")
    last = np.append(np.diff(pooled[order]) > 0.0, True)
    ordered = blocks[order]

    def statistic(labels: Any) -> float:
        is_real = labels[ordered]
        n = int(is_real.sum())
        gap = np.cumsum(np.where(is_real, 1.0 / n, -1.0 / (len(pooled) - n)))
        return float(np.abs(gap[last]).max())

    observed = statistic(own)
    rng = np.random.default_rng(3)
    larger = sum(statistic(rng.permutation(own)) >= observed - 1e-12 for _ in range(PERMUTATIONS))
    return observed, (larger + 1.0) / (PERMUTATIONS + 1.0)


def compare_detections(real: AcousticRun, simulated: Sequence[AcousticRun]) -> list[DetectionShare]:
    """Compare the shares of detected signals in bins of distance. Signals of a source are detected by many receivers or
    by none, so signals are the clusters of the bootstrap.
    """
    if not len(real.distances) or not any(len(s.distances) for s in simulated):
        return []
    top = float(np.percentile(real.distances, 99.5))
    width = _round(top / BINS)
    found = []
    offset = 0
    signals = []
    for s in simulated:  # the same number in another run is another signal
        signals.append(s.signals + offset)
        offset += int(s.signals.max(initial=0)) + 1
    pooled = (
        np.concatenate(signals),
        np.concatenate([s.distances for s in simulated]),
        np.concatenate([s.detected for s in simulated]),
    )
    for k in range(math.floor(top / width) + 1):
        low, high = k * width, (k + 1) * width
        parts = []
        for ids, distance, detected in ((real.signals, real.distances, real.detected), pooled):
            inside = (distance >= low) & (distance < high)
            parts.append((ids[inside], detected[inside]))
        if min(len(p[1]) for p in parts) < LEAST_SIGNALS:
            continue
        shares = [_clustered(*p) for p in parts]
        change = _change(*shares)
        found.append(DetectionShare(low, high, shares[0], shares[1], len(parts[0][1]), len(parts[1][1]), change))
    return found


def _round(x: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is at least x."""
    power = 10.0 ** math.floor(math.log10(max(x, 1e-3)))
    return next(f * power for f in (1.0, 2.0, 5.0, 10.0) if f * power >= x * (1.0 - 1e-9))


def _clustered(signals: Ints, detected: Floats) -> Interval:
    """Return the share of detections with its interval.

    The interval is Wilson's for the number of independent detections that follows from the variance of a bootstrap over
    signals; it has a width even if all signals were detected.
    """
    ids, index = np.unique(signals, return_inverse=True)
    hits, of = np.bincount(index, detected), np.bincount(index).astype(float)
    weights = np.random.default_rng(5).multinomial(len(ids), np.full(len(ids), 1.0 / len(ids)), RESAMPLES)
    p, variance = float(detected.mean()), float(((weights @ hits) / (weights @ of)).var())
    independent = p * (1.0 - p) / variance if variance > 0.0 and 0.0 < p < 1.0 else float(len(ids))
    return share_interval(detected, independent)


def _change(a: Interval, b: Interval) -> Interval:
    """Return the difference of two independent shares, with its interval from those of the shares (Newcombe 1998)."""
    d = a.value - b.value
    below, above = math.hypot(a.value - a.low, b.high - b.value), math.hypot(a.high - a.value, b.value - b.low)
    return Interval(d, d - below, d + above)
