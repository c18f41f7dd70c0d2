"""Six parameters of a simulated trial, fitted to the detections of fixed tags alone.

Three describe the share of detections against distance, two the errors of the arrival times, and one the errors of the
survey. The level of a reception fluctuates by 5.57 dB, as the sum of many paths with random phases does (Dyer 1970).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from wavesim_sdk.arrays import Floats, Mask
from wavesim_studies.field_trials.clock_solution import ClockSolution
from wavesim_studies.field_trials.detection_files import DetectionTrial

FLUCTUATION = 5.57  #: standard deviation in dB of the level of a sum of many random paths
#: greatest delay of a late arrival in s; assumed, as receivers report the tag beside them 1.3 to 2.3 ms late
LATE_TIME = 3e-3
RESOLUTION = 1e-3  #: resolution of a detection in s


@dataclass(frozen=True)
class MediumFit:
    """The free parameters of the simulated trial."""

    margin: float  #: source level minus threshold in dB
    extra_loss: float  #: loss per metre beyond spherical spreading in dB/m
    drop_out: float  #: probability that a reception above the threshold is lost
    timing_noise: float  #: standard deviation of an arrival time in s
    late_share: float  #: probability that an arrival is late, by a delay of 0 to ``LATE_TIME``
    survey_error: float  #: standard deviation along each axis of the positions that were held in m

    def share(self, distance: Floats) -> Floats:
        """Return the probability that a ping is detected at a distance in m."""
        loss = 20.0 * np.log10(np.maximum(distance, 1.0)) + self.extra_loss * distance
        return np.asarray((1.0 - self.drop_out) * stats.norm.cdf((self.margin - loss) / FLUCTUATION))


def opportunities(trial: DetectionTrial, clocks: ClockSolution) -> tuple[Floats, Mask]:
    """For each ping of a fixed tag and each receiver, return the distance and whether the receiver heard the ping.

    Receivers on the mooring of the tag are left out. Both arrays are flat.
    """
    groups, count = clocks.groups, len(trial.serials)
    heard = np.zeros((groups.count, count), bool)
    heard[groups.ping, trial.receiver[groups.rows]] = True
    tag = np.zeros(groups.count, np.int64)
    tag[groups.ping] = trial.tag[groups.rows]
    home = np.array([trial.fixed_tags[int(t)] for t in tag])
    way = clocks.positions[home][:, None, :] - clocks.positions[None, :, :]
    distance, away = np.sqrt(np.sum(way * way, axis=2)), np.arange(count)[None, :] != home[:, None]
    return distance[away], heard[away]


def _logistic(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))


def _fit_shares(distance: Floats, heard: Mask) -> tuple[float, float, float]:
    def parameters(x: Floats) -> tuple[float, float, float]:
        return float(x[0]), float(np.exp(x[1])), _logistic(x[2])

    def cost(x: Floats) -> float:
        share = np.clip(MediumFit(*parameters(x), 0.0, 0.0, 0.0).share(distance), 1e-6, 1.0 - 1e-6)
        return -float(np.sum(np.log(np.where(heard, share, 1.0 - share))))

    start = np.array([60.0, np.log(0.05), -3.0])
    return parameters(optimize.minimize(cost, start, method="Nelder-Mead", options={"maxiter": 2000}).x)


def _fit_times(residual: Floats) -> tuple[float, float]:
    """Fit a normal error plus a share of uniform delays; the common delay of all arrivals is free."""
    r, most = 1e3 * residual, 1e3 * LATE_TIME

    def cost(x: Floats) -> float:
        mean, width, share = x[0], np.exp(x[1]), _logistic(x[2])
        late = (stats.norm.cdf((r - mean) / width) - stats.norm.cdf((r - mean - most) / width)) / most
        density = (1.0 - share) * stats.norm.pdf(r, mean, width) + share * late
        return -float(np.sum(np.log(np.maximum(density, 1e-12))))

    start = np.array([0.0, np.log(0.4), -3.0])
    x = optimize.minimize(cost, start, method="Nelder-Mead", options={"maxiter": 2000}).x
    width = 1e-3 * float(np.exp(x[1]))
    noise = np.sqrt(max(width**2 - RESOLUTION**2 / 12.0, 0.0))  # rounding is simulated separately
    return float(noise), _logistic(x[2])


def _fit_survey(trial: DetectionTrial, clocks: ClockSolution) -> float:
    """Return the survey error of held receivers in m, from the mean residuals of each pair of receiver and fixed tag.

    A position error of a receiver changes its mean arrival times from the tags in different directions. Its clock takes
    up their mean, and the rest is proportional to the error.
    """
    receiver = trial.receiver[clocks.groups.rows]
    home = np.array([trial.fixed_tags[int(t)] for t in trial.tag[clocks.groups.rows]])
    found = expected = 0.0
    for n in np.flatnonzero(clocks.position_index < 0):
        places, counts = np.unique(home[receiver == n], return_counts=True)
        if len(places) < 2:
            continue
        means = np.array([clocks.residual[(receiver == n) & (home == h)].mean() for h in places])
        way = clocks.positions[n, :2] - clocks.positions[places, :2]
        toward = way / np.linalg.norm(way, axis=1)[:, None] / clocks.sound_speed
        weight = counts / counts.sum()
        found += float(np.sum((means - weight @ means) ** 2))
        expected += float(np.sum((toward - weight @ toward) ** 2))
    return float(np.sqrt(found / expected)) if expected > 0.0 else 0.0


def fit_medium(trial: DetectionTrial, clocks: ClockSolution) -> MediumFit:
    """Return the six parameters, from the fixed tags alone."""
    shares, times = _fit_shares(*opportunities(trial, clocks)), _fit_times(clocks.residual)
    return MediumFit(*shares, *times, _fit_survey(trial, clocks))
