"""How well the logs determine the unknowns: covariance, correlated pairs, and unknowns that stayed at their priors.

The residuals of a real log are correlated in time, so that a log of twice the rate does not have twice the information.
The covariance is therefore that of a robust estimate (Huber 1981, 6.3), the sandwich ``H^-1 M H^-1``. The loss of a
residual r has the slope psi(r). H contains the mean of psi' of each channel. M contains the mean of psi^2, multiplied by
the correlation time of the residuals.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy import stats

from wavesim_sdk.arrays import Floats
from wavesim_studies.correlation_times import autocorrelation, correlation_time
from wavesim_studies.identification.least_squares import Solution
from wavesim_studies.identification.shooting import ShootingProblem

INFORMED = 0.9  #: share of the prior's standard deviation above which an unknown counts as not informed
PAIRED = 0.95  #: correlation above which the logs do not distinguish two unknowns
LAGS = 60  #: longest correlation that is considered, in intervals between values


@dataclass(frozen=True)
class ChannelResiduals:
    """Residuals of one channel after the fit."""

    noise: float  #: standard deviation in the unit of the channel
    count: int
    #: factor by which correlation in time reduces the number of independent values
    correlation_time: float
    whiteness: float  #: p value of the test of Ljung and Box with ten lags; small = not white
    outliers: float  #: share of values beyond four standard deviations


@dataclass(frozen=True)
class FitUncertainty:
    """Covariance of the standardised unknowns (n, n) and the residuals of each channel."""

    covariance: Floats
    channels: dict[str, ChannelResiduals]

    def pairs(self) -> list[tuple[int, int, float]]:
        """Return the pairs of unknowns that the logs cannot tell apart, with their correlation."""
        sd = np.sqrt(np.diagonal(self.covariance))
        correlation = self.covariance / np.outer(sd, sd)
        return [
            (i, j, float(correlation[i, j]))
            for i in range(len(sd))
            for j in range(i)
            if abs(correlation[i, j]) > PAIRED
        ]

    def informed(self, k: int) -> bool:
        """Return whether the logs determine an unknown better than its prior does."""
        return bool(np.sqrt(self.covariance[k, k]) < INFORMED)


def ljung_box(rho: Floats, count: int, lags: int = 10) -> float:
    """Return the p value of the test of Ljung and Box for white residuals."""
    lags = min(lags, len(rho) - 1, max(count - 1, 1))
    q = count * (count + 2.0) * float(np.sum(rho[1 : lags + 1] ** 2 / (count - np.arange(1, lags + 1))))
    return float(stats.chi2.sf(q, lags))


def uncertainty(problem: ShootingProblem, solution: Solution) -> FitUncertainty:
    """Return the covariance of the common unknowns, and the residuals of the channels."""
    J, w, r = solution.jacobian, solution.weights, solution.residuals
    k, data = len(problem.unknowns), sum(len(v.value) for v in problem.measured)
    bends, factors, found = np.ones(len(r)), np.ones(len(r)), {}
    psi = w * r  # slope of the loss; its derivative is w^3
    parameters = len(problem.segments) * len(problem.free) / max(len(problem.channels), 1)
    for channel in problem.channels:
        parts = split_residuals(problem, psi, channel)
        mine = problem.rows_of(channel)
        count = int(mine.sum())
        if not count:
            continue
        clipped = [np.clip(p, -4.0, 4.0) for p in parts]
        rho = autocorrelation([p - np.mean(np.concatenate(clipped)) for p in clipped], LAGS)
        time = correlation_time(rho)
        # the free start states take up residuals: without the correction, noise seems too small in short segments
        freedom = max(count - parameters, 0.5 * count)
        bends[mine] = float(np.mean(w[mine] ** 3))
        factors[mine] = time * float(np.sum(psi[mine] ** 2)) / freedom
        found[channel] = ChannelResiduals(
            problem.sigma[channel], count, time, ljung_box(rho, count), float(np.mean(np.abs(r[mine]) > 4.0))
        )
    links = slice(data, len(r) - problem.size)
    if links.stop > links.start:
        factors[links] = min(1.0, float(np.mean(r[links] ** 2)))
    bread, meat = ((J.T @ J.multiply(f[:, None]).tocsr()).toarray() for f in (bends, factors))
    whole = np.linalg.solve(bread, np.linalg.solve(bread, meat).T)
    return FitUncertainty(0.5 * (whole + whole.T)[:k, :k], found)


def split_residuals(problem: ShootingProblem, r: Floats, channel: str) -> list[Floats]:
    """Return the residuals of a channel in parts without gaps: one for each log."""
    parts: list[Floats] = []
    first = 0
    for values in problem.measured:
        if values.channel == channel and len(values.value):
            mine = r[first : first + len(values.value)]
            dt = np.diff(values.time)
            gaps = (np.flatnonzero(dt > 3.0 * np.median(dt)) + 1).tolist() if len(dt) else []
            parts += np.split(mine, gaps)
        first += len(values.value)
    return parts


def unexplained(problem: ShootingProblem, solution: Solution) -> list[str]:
    """Return sentences about residuals that are not white: the structure of the model does not fit. The worst of three
    ranges of speed is named.
    """
    found: list[str] = []
    speeds = _speeds(problem)
    if speeds is None:
        return found
    first = 0
    for values in problem.measured:
        last = first + len(values.value)
        r, v = np.clip(solution.residuals[first:last], -4.0, 4.0), speeds[first:last]
        first = last
        if len(r) < 60:
            continue
        edges = np.quantile(v, [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0])
        scores = []
        for low, high in itertools.pairwise(edges):
            part = r[(v >= low) & (v <= high)]
            if len(part) < 20 or float(part @ part) <= 0.0:
                continue
            rho = float(part[1:] @ part[:-1]) / float(part @ part)
            scores.append((abs(rho) * np.sqrt(len(part)), rho, low, high))
        if not scores:
            continue
        worst = max(scores)
        if worst[0] > 4.0 and worst[1] > 0.0:
            where = f" at {worst[2]:.2g} to {worst[3]:.2g} m/s" if edges[-1] - edges[0] > 0.1 else ""
            found.append(
                f"the residuals of '{values.channel}' in log {values.log + 1} are not white{where} "
                f"(autocorrelation {worst[1]:.2f}): the form of the model does not describe this motion fully"
            )
    return found


def _speeds(problem: ShootingProblem) -> Floats | None:
    """Return the measured or usual speed in m/s at each measured value, or None if no log has speeds."""
    parts = []
    for values in problem.measured:
        channels = problem.trials[values.log].channels
        name = next((c for c in ("surge", "water_surge", "speed") if c in channels), "")
        if name:
            smooth = channels[name].averaged(2.0)  # else a value would select its own noise
            parts.append(np.abs(np.interp(values.time, smooth.time, smooth.value)))
        elif "north" in channels and "east" in channels:
            t = values.time
            p = [
                [np.interp(t + side, channels[c].time, channels[c].value) for side in (-1.0, 1.0)]
                for c in ("north", "east")
            ]
            parts.append(np.hypot(p[0][1] - p[0][0], p[1][1] - p[1][0]) / 2.0)
        else:
            return None
    return np.concatenate(parts)
