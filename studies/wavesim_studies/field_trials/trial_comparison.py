"""A recorded and a simulated trial, analysed by the same code and compared by distance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import stats

from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_studies.comparison.block_bootstrap import share_interval
from wavesim_studies.field_trials.clock_solution import ClockSolution, Survey, solve_clocks
from wavesim_studies.field_trials.detection_files import DetectionTrial
from wavesim_studies.field_trials.towed_track import (
    TowedTrack,
    Towing,
    best_shift,
    distance_to_fixes,
    held_out_errors,
    solve_track,
)

RESIDUAL_BINS = np.arange(0.0, 251.0, 50.0)  #: limits of the distances in m for residuals
SHARE_BINS = np.array([0, 25, 50, 75, 100, 125, 150, 175, 200, 225, 300], float)  #: and for shares of detections
QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
QUANTILE_LIMIT = 0.2e-3  #: largest difference of quantiles in s that counts as agreement
BOOTSTRAPS = 2000


@dataclass(frozen=True)
class Analysis:
    """Results from one trial: clocks and positions from the fixed tags, and the track of the towed tag."""

    trial: DetectionTrial
    clocks: ClockSolution
    track: TowedTrack
    tag: int

    def distances(self) -> tuple[Floats, Mask]:
        """Return the distance in m from each ping of the towed tag to each receiver, and who heard it; both (P, N)."""
        track, places = self.track, self.clocks.positions
        way = track.position[:, None, :] - places[None, :, :2]
        distance = np.sqrt(np.sum(way * way, axis=2) + (track.depth - places[None, :, 2]) ** 2)
        heard = np.zeros(distance.shape, bool)
        heard[track.groups.ping, self.trial.receiver[track.groups.rows]] = True
        return distance, heard

    def summary(self) -> dict[str, float]:
        """Return the figures of the reconstruction; times in ms, distances in m."""
        track, gps = self.track, self.trial.gps
        shift = best_shift(track, gps)
        as_is, moved = distance_to_fixes(track, gps), distance_to_fixes(track, gps, shift)
        return {
            "sound_speed": self.clocks.sound_speed,
            "fixed_residual_ms": 1e3 * self.clocks.scale,
            "towed_residual_ms": 1e3 * track.scale,
            "pings": track.groups.count,
            "median_to_gps": float(np.median(as_is)),
            "rms_to_gps": float(np.sqrt(np.mean(as_is**2))),
            "clock_shift_s": shift,
            "median_to_gps_shifted": float(np.median(moved)),
        }

    def held_out(self, towing: Towing | None = None) -> Floats:
        """Return the median absolute error in s of the predicted arrivals at each receiver that was left out (N)."""
        return np.array(
            [
                np.median(np.abs(held_out_errors(self.trial, self.clocks, self.tag, n, towing)))
                for n in range(len(self.trial.serials))
            ]
        )


def analyse(trial: DetectionTrial, survey: Survey, tag: int) -> Analysis:
    """Analyse a recorded or simulated trial: clocks from the fixed tags, then the track of the towed tag."""
    clocks = solve_clocks(trial, survey)
    return Analysis(trial, clocks, solve_track(trial, clocks, tag), tag)


@dataclass(frozen=True)
class ResidualBin:
    """Arrival residuals of the towed tag in one interval of distance; times in s."""

    low: float
    high: float
    recorded: int
    simulated: int
    probability: float  #: that the samples have the same distribution, with the arrivals of a receiver as one block
    plain: float  #: the same by Kolmogorov and Smirnov, as if all arrivals were independent
    quantiles: Floats  #: recorded and simulated (2, Q)

    @property
    def difference(self) -> float:
        """Largest difference of the quantiles in s."""
        return float(np.abs(self.quantiles[0] - self.quantiles[1]).max())

    @property
    def agrees(self) -> bool:
        """Whether the test passes, or all quantiles differ by at most 0.2 ms."""
        return self.probability > 0.05 or self.difference <= QUANTILE_LIMIT


def block_probability(values: Floats, trial: Ints, receiver: Ints, seed: int = 0) -> float:
    """Return the probability that the values (R) of trial 0 have the distribution of those of all other trials.

    A receiver has errors of its own position and clock, so its arrivals within a trial are one block. If the trials have
    the same distribution, the blocks of one receiver can be exchanged between trials. The statistic is that of
    Kolmogorov and Smirnov. The probability comes from random exchanges (Good 2005).
    """
    order, count = np.argsort(values, kind="stable"), int(trial.max()) + 1
    trial, receiver = trial[order], receiver[order]
    last = np.append(np.diff(values[order]) > 0.0, True)  # steps at equal values count together
    random = np.random.default_rng(seed)
    chosen = random.integers(0, count, (BOOTSTRAPS, int(receiver.max()) + 1))
    chosen[0] = 0

    def statistic(first: Ints) -> float:
        inside = first[receiver] == trial
        if inside.all() or not inside.any():
            return 0.0
        steps = np.cumsum(inside) / inside.sum() - np.cumsum(~inside) / (~inside).sum()
        return float(np.abs(steps[last]).max())

    found = np.array([statistic(first) for first in chosen])
    return float(np.mean(found >= found[0] - 1e-12))


def compare_residuals(recorded: Analysis, simulated: list[Analysis]) -> list[ResidualBin]:
    """Compare the residuals by distance. Several simulated trials are put together."""
    every, found = [recorded, *simulated], []
    residual = np.concatenate([a.track.residual for a in every])
    distance = np.concatenate([a.track.distance for a in every])
    receiver = np.concatenate([a.trial.receiver[a.track.groups.rows] for a in every])
    trial = np.repeat(np.arange(len(every)), [len(a.track.residual) for a in every])
    for low, high in pairwise(RESIDUAL_BINS.tolist()):
        inside = (distance >= low) & (distance < high)
        a, b = residual[inside & (trial == 0)], residual[inside & (trial > 0)]
        if len(a) < 5 or len(b) < 5:
            continue
        found.append(
            ResidualBin(
                low,
                high,
                len(a),
                len(b),
                block_probability(residual[inside], trial[inside], receiver[inside]),
                float(stats.ks_2samp(a, b).pvalue),
                np.array([np.quantile(a, QUANTILES), np.quantile(b, QUANTILES)]),
            )
        )
    return found


@dataclass(frozen=True)
class ShareBin:
    """Share of detections in one interval of distance."""

    low: float
    high: float
    opportunities: int  #: pairs of ping and receiver in the recording
    recorded: float
    interval: tuple[float, float]  #: 95 % interval of the recorded share
    simulated: float

    @property
    def agrees(self) -> bool:
        """Whether the simulated share lies in the interval."""
        return self.interval[0] <= self.simulated <= self.interval[1]


def compare_shares(recorded: Analysis, simulated: list[Analysis], seed: int = 0) -> list[ShareBin]:
    """Compare the shares of detections by distance, over pings that four receivers or more heard.

    The receivers of one ping are not independent. Resampling whole pings gives the number of independent chances, and
    this number gives the interval (Wilson 1927). If all chances have the same result, each ping counts as one chance.
    """
    random, found = np.random.default_rng(seed), []
    distance, heard = recorded.distances()
    others = [s.distances() for s in simulated]
    picks = random.integers(0, len(distance), (BOOTSTRAPS, len(distance)))
    for low, high in pairwise(SHARE_BINS.tolist()):
        inside = (distance >= low) & (distance < high)
        chances, hits = inside.sum(axis=1), (inside & heard).sum(axis=1)
        if chances.sum() < 5:
            continue
        shares = hits[picks].sum(axis=1) / np.maximum(chances[picks].sum(axis=1), 1)
        share, variance = float(hits.sum() / chances.sum()), float(np.var(shares))
        independent = share * (1.0 - share) / variance if variance > 0.0 else float(np.count_nonzero(chances))
        inside_other = [(d >= low) & (d < high) for d, _ in others]
        total = sum(int(i.sum()) for i in inside_other)
        hit = sum(int((i & h).sum()) for i, (_, h) in zip(inside_other, others, strict=True))
        found.append(
            ShareBin(
                float(low),
                float(high),
                int(chances.sum()),
                share,
                share_interval(heard[inside], independent)[1:],
                hit / max(total, 1),
            )
        )
    return found
