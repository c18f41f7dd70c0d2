"""A recorded and a simulated trial, analysed by the same code and compared by distance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import stats

from wavesim_sdk.arrays import Floats, Mask
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
    probability: float  #: that the two samples have the same distribution (Kolmogorov and Smirnov)
    quantiles: Floats  #: recorded and simulated (2, Q)

    @property
    def agrees(self) -> bool:
        """Whether the test passes, or all quantiles differ by at most 0.2 ms."""
        worst = np.abs(self.quantiles[0] - self.quantiles[1]).max()
        return bool(self.probability > 0.05 or worst <= QUANTILE_LIMIT)


def compare_residuals(recorded: Analysis, simulated: list[Analysis]) -> list[ResidualBin]:
    """Compare the residuals by distance. Several simulated trials are put together."""
    found = []
    other = np.concatenate([s.track.residual for s in simulated])
    far = np.concatenate([s.track.distance for s in simulated])
    for low, high in pairwise(RESIDUAL_BINS.tolist()):
        a = recorded.track.residual[(recorded.track.distance >= low) & (recorded.track.distance < high)]
        b = other[(far >= low) & (far < high)]
        if len(a) < 5 or len(b) < 5:
            continue
        p = float(stats.ks_2samp(a, b).pvalue)
        quantiles = np.array([np.quantile(a, QUANTILES), np.quantile(b, QUANTILES)])
        found.append(ResidualBin(low, high, len(a), len(b), p, quantiles))
    return found


@dataclass(frozen=True)
class ShareBin:
    """Share of detections in one interval of distance."""

    low: float
    high: float
    opportunities: int  #: pairs of ping and receiver in the recording
    recorded: float
    interval: tuple[float, float]  #: 95 % interval of the recorded share, from bootstrap samples of whole pings
    simulated: float

    @property
    def agrees(self) -> bool:
        """Whether the simulated share lies in the interval."""
        return self.interval[0] <= self.simulated <= self.interval[1]


def compare_shares(recorded: Analysis, simulated: list[Analysis], seed: int = 0) -> list[ShareBin]:
    """Compare the shares of detections by distance, over pings that four receivers or more heard.

    Intervals come from resampling whole pings, because the receivers of one ping are not independent.
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
        inside_other = [(d >= low) & (d < high) for d, _ in others]
        total = sum(int(i.sum()) for i in inside_other)
        hit = sum(int((i & h).sum()) for i, (_, h) in zip(inside_other, others, strict=True))
        found.append(
            ShareBin(
                float(low),
                float(high),
                int(chances.sum()),
                float(hits.sum() / chances.sum()),
                (float(np.quantile(shares, 0.025)), float(np.quantile(shares, 0.975))),
                hit / max(total, 1),
            )
        )
    return found
