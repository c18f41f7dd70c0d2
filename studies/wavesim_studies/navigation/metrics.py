"""Quality of an estimate: position error, error per distance travelled, and consistency with the reported
covariance.

Tracks are aligned only on request, because alignment hides the heading error.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats

__all__ = [
    "NavigationScore",
    "absolute_trajectory_error",
    "aligned",
    "bounds",
    "legs",
    "mean_bounds",
    "nees",
    "path",
    "relative_pose_error",
    "rms_distance",
    "score",
    "whiteness",
]


def aligned(p: Any, truth: Any) -> Floats:
    """Return positions (T, 3) after the rotation and the translation that best fit them to the true positions (Umeyama
    1991, without scale).
    """
    p, truth = np.asarray(p, float), np.asarray(truth, float)
    a, b = p - p.mean(axis=0), truth - truth.mean(axis=0)
    U, _, V = np.linalg.svd(b.T @ a)
    R = U @ np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ V))]) @ V
    return np.asarray(a @ R.T + truth.mean(axis=0))


def absolute_trajectory_error(p: Any, truth: Any, align: bool = False) -> Floats:
    """Return the absolute trajectory error (T) in m."""
    return np.asarray(np.linalg.norm((aligned(p, truth) if align else np.asarray(p)) - truth, axis=1))


def rms_distance(offsets: Any) -> float:
    """Return the RMS length in m of vectors (T, k)."""
    return float(np.sqrt(np.square(np.asarray(offsets, float)).sum(axis=1).mean()))


def robust_deviation(x: Any, middle: Any = 0.0) -> Any:
    """Return 1.4826 times the median absolute deviation (...) of values (..., N) from ``middle``. For normal errors
    around ``middle``, this is their standard deviation.
    """
    return 1.4826 * np.median(np.abs(np.asarray(x) - middle), axis=-1)


def wrapped(angle: Any) -> Floats:
    """Return angles in rad, reduced to the range from -pi to pi."""
    return np.asarray(angle - 2.0 * np.pi * np.round(angle / (2.0 * np.pi)))


def path(truth: Any) -> Floats:
    """Return the distance (T) in m that has been travelled along a track (T, k)."""
    steps = np.linalg.norm(np.diff(np.asarray(truth, float), axis=0), axis=1)
    return np.concatenate([[0.0], np.cumsum(steps)])


def legs(truth: Any, distance: float) -> Floats:
    """Return pairs of indices (N, 2) of the consecutive track segments that have the length ``distance``."""
    found, way = [0], 0.0
    for i, step in enumerate(np.linalg.norm(np.diff(np.asarray(truth, float), axis=0), axis=1), start=1):
        way += step
        if way >= distance:
            found.append(i)
            way = 0.0
    return np.array(list(itertools.pairwise(found)), int).reshape(-1, 2)


def relative_pose_error(p: Any, q: Any, true_p: Any, true_q: Any, distance: float) -> Floats:
    """Return the relative pose error (N) in m: the error at the end of each leg of ``distance`` m, relative to the pose
    at its start.
    """
    pairs = legs(true_p, distance)
    if not len(pairs):
        return np.zeros(0)
    i, j = pairs.T
    found = []
    for place, attitude in ((p, q), (true_p, true_q)):
        at, R = np.asarray(place, float), frames.rotation(np.asarray(attitude, float))
        found.append(np.einsum("nji,nj->ni", R[i], at[j] - at[i]))
    return np.asarray(np.linalg.norm(found[0] - found[1], axis=1))


def nees(error: Any, covariance: Any) -> Floats:
    """Return the normalised estimation error squared (T) of errors (T, n) with covariances (T, n, n)."""
    error = np.asarray(error, float)
    return np.asarray(np.einsum("ti,ti->t", error, np.linalg.solve(covariance, error[:, :, None])[:, :, 0]))


def bounds(numbers: float, runs: int, share: float = 0.95) -> tuple[float, float]:
    """Return the interval that contains, with probability ``share``, the mean NEES or NIS of a consistent filter over
    ``runs`` runs. ``numbers`` is the number of errors that each NEES or NIS combines.
    """
    low, high = stats.chi2.ppf([0.5 * (1.0 - share), 0.5 * (1.0 + share)], numbers * runs) / runs
    return float(low), float(high)


def whiteness(innovations: Any, lag: int = 1) -> float:
    """Return the correlation of whitened innovations (N) at ``lag``. If it exceeds 1.96 / sqrt(N), the innovations are
    not white (95 % confidence).
    """
    x = np.asarray(innovations, float)
    return float((x[lag:] * x[:-lag]).sum() / (x * x).sum())


@dataclass(frozen=True)
class NavigationScore:
    """Score of one track against the true states. Lengths are in m, and horizontal unless stated otherwise."""

    rms: float
    p95: float
    worst: float
    final: float
    depth_rms: float
    heading_rms: float  #: RMS heading error in rad
    distance: float
    percent: float  #: final error in % of the distance travelled
    #: RMS of the relative error over 10, 100 and 1000 m (three dimensions, or two without depths)
    per_leg: dict[str, float]
    nees: float  #: mean NEES of the horizontal position, which is 2 for a consistent filter; NaN without covariances
    #: interval that contains the mean NEES of a consistent filter with 95 % probability, for one run with correlated
    #: errors; NaN without covariances
    nees_bounds: tuple[float, float] = (float("nan"), float("nan"))


def mean_bounds(error: Any, covariance: Any) -> tuple[float, float]:
    """Return the interval that contains, with 95 % probability, the mean NEES of one run of a consistent filter with
    errors (T, n) and covariances (T, n, n).

    Successive errors are correlated, and a run may contain only a few independent errors. Their number follows from the
    correlation of the normalised errors, up to the first lag at which it is not positive. Large errors are clipped,
    because a short transient would otherwise hide a slow error.
    """
    error = np.asarray(error, float)
    z = np.linalg.solve(np.linalg.cholesky(covariance), error[:, :, None])[:, :, 0]
    size = 2.0 * np.median(np.abs(z), axis=0)
    z = np.clip(z, -size, size)
    n = len(z)
    power = np.square(np.abs(np.fft.rfft(z, 2 * n, axis=0)))
    correlation = np.fft.irfft(power, axis=0)[:n].sum(axis=1)
    runs = 1.0
    if correlation[0] > 0.0:
        r = correlation / correlation[0]
        r = r[: int(np.argmax(r <= 0.0))] if (r <= 0.0).any() else r
        runs = max(n / (1.0 + 2.0 * float(np.square(r[1:]).sum())), 1.0)
    low, high = stats.chi2.ppf([0.025, 0.975], error.shape[1] * runs) / runs
    return float(low), float(high)


def score(p: Any, q: Any, true_p: Any, true_q: Any, covariance: Any = None) -> NavigationScore:
    """Score a track against the true track at the same times.

    ``p`` and ``true_p`` (T, 3) are positions in W in m; the down component may be NaN. ``q`` and ``true_q`` (T, 4) are
    attitudes q_WB, scalar first, or None: without them, the heading error is NaN, and the relative error compares
    displacements. ``covariance`` (T, 2, 2) is the covariance of the horizontal position in m2.
    """
    p, true_p = np.asarray(p, float), np.asarray(true_p, float)
    flat = np.linalg.norm((p - true_p)[:, :2], axis=1)
    heading_rms = float("nan")
    if q is None or true_q is None:
        q = true_q = np.tile((1.0, 0.0, 0.0, 0.0), (len(p), 1))
    else:
        turn = frames.euler(np.asarray(q))[:, 2] - frames.euler(np.asarray(true_q))[:, 2]
        heading_rms = _rms(wrapped(turn))
    distance = float(path(true_p[:, :2])[-1])
    with_depth = np.isfinite(p[:, 2]).all() and np.isfinite(true_p[:, 2]).all()
    level = (1.0, 1.0, 1.0) if with_depth else (1.0, 1.0, 0.0)
    solid, true_solid = np.nan_to_num(p) * level, np.nan_to_num(true_p) * level
    over = {f"{d:g}": relative_pose_error(solid, q, true_solid, true_q, d) for d in (10.0, 100.0, 1000.0)}
    error = (true_p - p)[:, :2]
    return NavigationScore(
        rms=_rms(flat),
        p95=float(np.percentile(flat, 95)),
        worst=float(flat.max()),
        final=float(flat[-1]),
        depth_rms=_rms((p - true_p)[:, 2]) if with_depth else float("nan"),
        heading_rms=heading_rms,
        distance=distance,
        percent=100.0 * float(flat[-1]) / distance if distance > 0.0 else float("nan"),
        per_leg={k: _rms(v) for k, v in over.items() if len(v)},
        nees=float("nan") if covariance is None else float(nees(error, covariance).mean()),
        **({} if covariance is None else {"nees_bounds": mean_bounds(error, covariance)}),
    )


def _rms(x: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(x))))
