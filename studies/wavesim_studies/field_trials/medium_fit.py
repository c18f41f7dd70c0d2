"""Six parameters of a simulated trial, fitted to the detections of fixed tags alone.

Three describe the share of detections against distance, two the errors of the arrival times, and one the errors of the
survey. The level of a reception fluctuates by 5.57 dB, as the sum of many paths with random phases does (Dyer 1970).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, stats

from wavesim_sdk.arrays import Floats, Mask
from wavesim_studies.field_trials.clock_solution import ClockSolution, Survey, solve_clocks
from wavesim_studies.field_trials.detection_files import DetectionTrial
from wavesim_studies.field_trials.towed_track import FEWEST

FLUCTUATION = 5.57  #: standard deviation in dB of the level of a sum of many random paths
#: greatest delay of a late arrival in s; assumed, as receivers report the tag beside them 1.3 to 2.3 ms late
LATE_TIME = 3e-3
RESOLUTION = 1e-3  #: resolution of a detection in s
WIDE = 3.0  #: standard deviation in m of held positions in the solution that shows their errors


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


def opportunities(trial: DetectionTrial, clocks: ClockSolution, span: tuple[float, float]) -> tuple[Floats, Mask]:
    """For each ping of a fixed tag and each receiver, return the distance and whether the receiver heard the ping.

    Receivers on the mooring of the tag, pings outside the common times ``span`` in s, and pings that fewer than four
    other receivers heard are left out, as for the towed tag. Both arrays have a row for each ping.
    """
    groups, count = clocks.groups, len(trial.serials)
    heard = np.zeros((groups.count, count), bool)
    heard[groups.ping, trial.receiver[groups.rows]] = True
    tag = np.zeros(groups.count, np.int64)
    tag[groups.ping] = trial.tag[groups.rows]
    home = np.array([trial.fixed_tags[int(t)] for t in tag])
    way = clocks.tag_positions[home][:, None, :] - clocks.positions[None, :, :]
    distance, away = np.sqrt(np.sum(way * way, axis=2)), np.arange(count)[None, :] != home[:, None]
    away &= ((heard & away).sum(axis=1) >= FEWEST)[:, None]
    away &= ((clocks.ping_time >= span[0]) & (clocks.ping_time <= span[1]))[:, None]
    return distance[away].reshape(-1, count - 1), heard[away].reshape(-1, count - 1)


def enough_receivers(share: Floats) -> Floats:
    """Return the probability that at least four receivers hear each ping, from the probabilities (P, N) of each one."""
    counts = np.zeros((len(share), FEWEST))  # probability of 0, 1, 2 and 3 receivers
    counts[:, 0] = 1.0
    for p in share.T[:, :, None]:
        more = np.column_stack([np.zeros(len(share)), counts[:, :-1]])
        counts = (1.0 - p) * counts + p * more
    return np.asarray(np.maximum(1.0 - counts.sum(axis=1), 1e-12))


def _logistic(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))


def fit_shares(distance: Floats, heard: Mask) -> tuple[float, float, float]:
    """Return the first three parameters from the distances and detections (P, N) of the pings that at least four
    receivers heard. The likelihood is conditional on this number, because the other pings are left out.
    """

    def parameters(x: Floats) -> tuple[float, float, float]:
        return float(x[0]), float(np.exp(x[1])), _logistic(x[2])

    def cost(x: Floats) -> float:
        share = np.clip(MediumFit(*parameters(x), 0.0, 0.0, 0.0).share(distance), 1e-6, 1.0 - 1e-6)
        return -float(np.sum(np.log(np.where(heard, share, 1.0 - share))) - np.sum(np.log(enough_receivers(share))))

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


def fit_survey(trial: DetectionTrial, survey: Survey) -> Survey:
    """Return the survey with the standard deviation of its held positions, from the fixed tags alone.

    The positions are first solved with a wide prior. The deviation then maximises the likelihood of these positions,
    given their covariance and that of the survey.
    """
    clocks = solve_clocks(trial, replace(survey, held_deviation=WIDE))
    first = clocks.position_index[survey.held]
    places = np.column_stack([first, first + 1]).ravel()
    error = (clocks.positions - trial.surveyed)[survey.held, :2].ravel()
    precision = np.linalg.inv(clocks.covariance[np.ix_(places, places)])
    pull = precision @ error  # information of the data; the wide prior expects no error
    values, axes = np.linalg.eigh(precision - np.eye(len(error)) / WIDE**2)
    values, pull = np.maximum(values, 0.0), axes.T @ pull

    def cost(deviation: float) -> float:
        gain = 1.0 + deviation**2 * values
        return 0.5 * float(np.sum(np.log(gain) - deviation**2 * pull**2 / gain))

    found = optimize.minimize_scalar(cost, bounds=(0.0, 2.0 * WIDE), method="bounded")
    return replace(survey, held_deviation=float(found.x))


def fit_medium(trial: DetectionTrial, clocks: ClockSolution, survey: Survey, span: tuple[float, float]) -> MediumFit:
    """Return the six parameters, from the fixed tags alone.

    The shares come from pings between the common times ``span`` in s, because noise changes within hours.
    """
    shares = fit_shares(*opportunities(trial, clocks, span))
    return MediumFit(*shares, *_fit_times(clocks.residual), survey.held_deviation)
