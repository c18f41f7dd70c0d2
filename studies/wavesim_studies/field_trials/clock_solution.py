"""Clocks, receiver positions and sound speed from the detections of fixed tags.

The time of a ping occurs in every equation of that ping and in no other. It is eliminated by subtracting the weighted
mean over the ping's receivers (Frisch & Waugh 1933), so that only clocks, positions and sound speed remain as unknowns:
about a hundred for twenty receivers, whatever the number of pings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_sdk.errors import LogError
from wavesim_studies.field_trials.detection_files import DetectionTrial
from wavesim_studies.navigation.metrics import robust_deviation

WINDOW, BIN = 200.0, 0.5  #: largest clock difference in s that the coarse search finds, and width of its bins
FIRST_GAP, GAP = 2.5, 0.5  #: silence in s that separates two pings of a tag, before and after the clocks are known
FEWEST = 3  #: least number of receivers of a ping that is used
CAUCHY = 2.385  #: width of the Cauchy weight in standard deviations; 95 % efficient for normal errors
DEGREE = 9  #: degree of the polynomial in time that describes a clock; see docs/evidence/real-trials.md
ROUNDS, REGROUP_ROUNDS = 12, (3, 6)  #: rounds of Gauss and Newton, and rounds after which pings are grouped again
SMALLEST_SCALE = 0.2e-3  #: least scale of the residuals in s, because times have a resolution of 1 ms


@dataclass(frozen=True)
class PingGroups:
    """Detections grouped into pings. Only the first detection of a ping by each receiver is kept."""

    rows: Ints  #: indices of the detections (R)
    ping: Ints  #: ping of each of them (R)
    count: int  #: number of pings


@dataclass(frozen=True)
class Survey:
    """Knowledge before the solution: the receiver that keeps the time, the surveyed positions and the sound speed."""

    keeper: int  #: index of the receiver whose clock is the common clock
    held: Mask  #: receivers with the better surveyed positions (N)
    deviation: float = 2.0  #: standard deviation of the other surveyed positions along each axis in m
    tag_deviation: float = 3.0  #: standard deviation of a fixed tag from the survey of its mooring along each axis in m
    sound_speed: float = 1500.0  #: expected value in m/s
    speed_deviation: float = math.inf  #: its standard deviation in m/s; infinity = it is only the initial value
    held_deviation: float = 0.0  #: standard deviation of the held positions along each axis in m; 0 = they are exact

    @property
    def deviations(self) -> Floats:
        """Standard deviation of each surveyed position along each axis in m (N)."""
        return np.where(self.held, self.held_deviation, self.deviation)


def _clock_readings(coefficients: Floats, receiver: Ints, s: Floats) -> Floats:
    """Return the differences in s of the clocks from the common clock at scaled times s (R)."""
    return np.asarray(np.sum(coefficients[receiver] * chebyshev.chebvander(s, DEGREE), axis=1))


@dataclass(frozen=True)
class ClockSolution:
    """Clocks, positions and sound speed with their covariance.

    The clock of a receiver shows ``t + sum(coefficient[k] T_k(s))`` at the common time t, where T_k are the Chebyshev
    polynomials and ``s = (t - middle) / half``. The unknowns are ordered as: the coefficients of each clock but the
    keeper's, east and north of each position that is not exact, east and north of each fixed tag, and the sound speed.
    """

    coefficients: Floats  #: (N, DEGREE + 1) in s
    middle: float
    half: float
    positions: Floats  #: (N, 3) east, north, depth in m
    tag_positions: Floats  #: positions of the fixed tags in m, in the rows of the receivers on the same moorings (N, 3)
    sound_speed: float
    covariance: Floats  #: (U, U)
    clock_index: Ints  #: first unknown of each clock (N); -1 for the keeper
    position_index: Ints  #: first unknown of each position (N); -1 if it is exact
    tag_index: Ints  #: first unknown of each fixed tag (N); -1 for receivers without a tag
    groups: PingGroups
    ping_time: Floats  #: time of each ping on the common clock in s
    residual: Floats  #: arrival residual of each row in ``groups`` in s
    scale: float  #: 1.4826 times the median absolute residual in s

    def reading(self, receiver: Ints, time: Floats) -> Floats:
        """Return the difference in s between the receivers' clocks and the common clock at common times."""
        return _clock_readings(self.coefficients, receiver, (time - self.middle) / self.half)

    def common(self, receiver: Ints, local: Floats) -> Floats:
        """Return the common times at which the receivers' clocks show the times ``local``."""
        time = local - self.coefficients[receiver, 0]
        for _ in range(3):
            time = local - self.reading(receiver, time)
        return np.asarray(time)

    def offset_and_drift(self, receiver: int, time: float) -> tuple[Floats, Floats]:
        """Return the offset in s and the drift of a clock at a common time, and their covariance (2, 2)."""
        s, unit = (time - self.middle) / self.half, np.eye(DEGREE + 1)
        rows = np.array([chebyshev.chebval(s, unit), chebyshev.chebval(s, chebyshev.chebder(unit)) / self.half])
        first = self.clock_index[receiver]
        if first < 0:
            return np.zeros(2), np.zeros((2, 2))
        part = slice(first, first + DEGREE + 1)
        return rows @ self.coefficients[receiver], rows @ self.covariance[part, part] @ rows.T


def coarse_offsets(trial: DetectionTrial, keeper: int) -> Floats:
    """Return the offset of each receiver's clock from the keeper's to about a second.

    The offset is the most frequent difference between the times at which both receivers heard the same fixed tag.
    """
    edges = np.arange(-WINDOW, WINDOW + BIN, BIN)
    offsets = np.zeros(len(trial.serials))
    for n in range(len(offsets)):
        if n == keeper:
            continue
        counts = np.zeros(len(edges) - 1, np.int64)
        for tag in trial.fixed_tags:
            own = np.sort(trial.time[(trial.tag == tag) & (trial.receiver == keeper)])
            other = trial.time[(trial.tag == tag) & (trial.receiver == n)]
            low, high = np.searchsorted(own, other - WINDOW), np.searchsorted(own, other + WINDOW)
            for time, a, b in zip(other, low, high, strict=True):
                counts += np.histogram(time - own[a:b], edges)[0]
        pairs = counts[:-1] + counts[1:]  # a peak may lie across two bins
        best = int(np.argmax(pairs))
        rest = np.delete(pairs, range(max(best - 4, 0), best + 5))
        if pairs[best] < 4 or pairs[best] < 2 * rest.max(initial=0):
            raise LogError(
                f"receiver {trial.serials[n]} and the keeper, receiver {trial.serials[keeper]}, heard too few pings of "
                f"fixed tags in common to find the offset of its clock ({counts.sum()} pairs)"
            )
        offsets[n] = edges[best + 1]
    return offsets


def group_pings(trial: DetectionTrial, used: Mask, common: Floats, gap: float, fewest: int) -> PingGroups:
    """Group the detections ``used`` (D) into pings.

    A silence of ``gap`` seconds on the common clock separates two pings of a tag. Pings with fewer receivers than
    ``fewest`` are left out.
    """
    rows = np.flatnonzero(used)
    rows = rows[np.lexsort((common[rows], trial.tag[rows]))]
    if not len(rows):
        return PingGroups(rows, rows, 0)
    starts = np.ones(len(rows), bool)
    starts[1:] = (np.diff(common[rows]) > gap) | (np.diff(trial.tag[rows]) != 0)
    ping = np.cumsum(starts) - 1
    _, first = np.unique(ping * len(trial.serials) + trial.receiver[rows], return_index=True)
    rows, ping = rows[np.sort(first)], ping[np.sort(first)]
    enough = np.bincount(ping) >= fewest
    keep = enough[ping]
    return PingGroups(rows[keep], (np.cumsum(enough) - 1)[ping[keep]], int(enough.sum()))


def cauchy_weights(residual: Floats, scale: float) -> Floats:
    """Return the weight of each residual; it falls to one half at 2.385 standard deviations."""
    return 1.0 / (1.0 + (residual / (CAUCHY * scale)) ** 2)


def slope_share(weight: Floats) -> float:
    """Return the mean slope of the weighted residual, divided by the mean weight.

    The weights make each round a least-squares problem, but the precision of the result depends on this slope.
    """
    slope = weight * (2.0 * weight - 1.0)  # derivative of r / (1 + r^2), with the weight w = 1 / (1 + r^2)
    return max(float(np.sum(slope) / np.sum(weight)), 0.1)


def robust_scale(residual: Floats) -> float:
    """Return 1.4826 times the median absolute value, which is the standard deviation of normal errors."""
    return max(float(robust_deviation(residual)), SMALLEST_SCALE)


def group_means(values: Floats, ping: Ints, weight: Floats, count: int) -> Floats:
    """Return the weighted mean of the rows of each ping; ``values`` is (R) or (R, U)."""
    total = np.maximum(np.bincount(ping, weight, count), 1e-300)
    if values.ndim == 1:
        return np.bincount(ping, weight * values, count) / total
    sums = np.zeros((count, values.shape[1]))
    np.add.at(sums, ping, weight[:, None] * values)
    return sums / total[:, None]


def add_changes(solution: ClockSolution | _Unknowns, change: Floats) -> None:
    """Add changes of the unknowns (U) to the clocks and positions of a solution, in place."""
    for n in range(len(solution.positions)):
        if (k := int(solution.clock_index[n])) >= 0:
            solution.coefficients[n] += change[k : k + DEGREE + 1]
        for index, places in (
            (solution.position_index, solution.positions),
            (solution.tag_index, solution.tag_positions),
        ):
            if (p := int(index[n])) >= 0:
                places[n, :2] += change[p : p + 2]


class _Unknowns:
    """Place of each unknown, and the current values."""

    def __init__(self, trial: DetectionTrial, survey: Survey, offsets: Floats) -> None:
        self.receivers = n = len(trial.serials)
        self.clock_index, self.position_index = np.full(n, -1), np.full(n, -1)
        others = np.flatnonzero(np.arange(n) != survey.keeper)
        self.clock_index[others] = (DEGREE + 1) * np.arange(len(others))
        free = np.flatnonzero(survey.deviations > 0.0)
        self.position_index[free] = (DEGREE + 1) * len(others) + 2 * np.arange(len(free))
        self.tag_index, moored = np.full(n, -1), np.flatnonzero(trial.moored_tag)
        self.tag_index[moored] = (DEGREE + 1) * len(others) + 2 * len(free) + 2 * np.arange(len(moored))
        self.count = (DEGREE + 1) * len(others) + 2 * len(free) + 2 * len(moored) + 1
        self.coefficients = np.zeros((n, DEGREE + 1))
        self.coefficients[:, 0] = offsets
        self.positions, self.sound_speed = trial.surveyed.copy(), survey.sound_speed
        self.tag_positions = trial.surveyed.copy()
        self.precision = np.zeros(self.count)
        self.precision[self.position_index[free]] = self.precision[self.position_index[free] + 1] = (
            survey.deviations[free] ** -2.0
        )
        first = self.tag_index[moored]
        self.precision[first] = self.precision[first + 1] = survey.tag_deviation**-2.0
        self.precision[-1] = survey.speed_deviation**-2.0

    def step(self, change: Floats) -> None:
        add_changes(self, change)
        self.sound_speed += change[-1]

    def prior_error(self, survey: Floats, sound_speed: float) -> Floats:
        """Return the differences of positions and sound speed from their expected values, by unknown."""
        error = np.zeros(self.count)
        error[-1] = self.sound_speed - sound_speed
        for index, places in ((self.position_index, self.positions), (self.tag_index, self.tag_positions)):
            for n in np.flatnonzero(index >= 0):
                error[index[n] : index[n] + 2] = places[n, :2] - survey[n, :2]
        return error

    def jacobian_to(self, receiver: Ints, place: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        """Return travel times in s from the places (R, 3), and the derivatives of the arrival times (R, U) and of the
        travel times with respect to the receivers' east and north (R, 2).
        """
        rows = np.arange(len(receiver))
        way = self.positions[receiver] - place
        distance = np.sqrt(np.sum(way * way, axis=1))
        travel, toward = (
            distance / self.sound_speed,
            way[:, :2] / (self.sound_speed * np.maximum(distance, 1e-9))[:, None],
        )
        J = np.zeros((len(rows), self.count))
        for k, values in enumerate(chebyshev.chebvander(s, DEGREE).T):
            self._add(J, self.clock_index[receiver], k, values)
        for axis in range(2):
            self._add(J, self.position_index[receiver], axis, toward[:, axis])
        J[:, -1] = -travel / self.sound_speed
        return travel, J, toward

    def jacobian(self, receiver: Ints, home: Ints, s: Floats) -> tuple[Floats, Floats]:
        """Return the travel times in s from the tags on the moorings ``home``, and the derivatives of the arrival times
        (R, U).
        """
        travel, J, toward = self.jacobian_to(receiver, self.tag_positions[home], s)
        for axis in range(2):
            self._add(J, self.tag_index[home], axis, -toward[:, axis])
        return travel, J

    @staticmethod
    def _add(J: Floats, first: Ints, element: int, values: Floats) -> None:
        """Add values (R) to the columns ``first + element`` of the rows whose ``first`` (R) is not negative."""
        rows = np.flatnonzero(first >= 0)
        J[rows, first[rows] + element] += values[rows]


@dataclass(frozen=True)
class Moving:
    """Arrivals of a tag that moves, with its estimated position at each ping. The positions are eliminated too."""

    groups: PingGroups
    position: Floats  #: east, north and depth of the tag at each ping in m (P, 3)


@dataclass
class _Round:
    """Result of one round of Gauss and Newton."""

    normal: Floats  #: normal matrix (U, U)
    pulls: Floats  #: derivative of the cost of each ping (P, U)
    residual: Floats  #: (R) in s
    ping_time: Floats  #: (P) in s
    scale: float
    weight: Floats  #: (R)


def _reweighted(early: Floats, groups: PingGroups, weight: Floats) -> tuple[Floats, float, Floats]:
    """Return the residuals (R) from the weighted mean of each ping, their scale, and their weights (R)."""
    for _ in range(3):  # the mean depends on the weights, and the weights on the mean
        residual = early - group_means(early, groups.ping, weight, groups.count)[groups.ping]
        scale = robust_scale(residual)
        weight = cauchy_weights(residual, scale)
    return residual, scale, weight


def _linearise(
    trial: DetectionTrial, unknowns: _Unknowns, groups: PingGroups, home: Ints, s: Floats, last: _Round | None
) -> _Round:
    """Return the normal equations at the current values. ``s`` is the scaled common time of each row."""
    ping, receiver = groups.ping, trial.receiver[groups.rows]
    travel, J = unknowns.jacobian(receiver, home, s)
    early = (
        trial.time[groups.rows] - travel - _clock_readings(unknowns.coefficients, receiver, s)
    )  # emission time by each row
    weight = np.ones(len(ping)) if last is None or len(last.weight) != len(ping) else last.weight
    _, scale, weight = _reweighted(early, groups, weight)
    emission = group_means(early, ping, weight, groups.count)
    residual = early - emission[ping]
    J -= group_means(J, ping, weight, groups.count)[ping]
    weighted = J * weight[:, None] / scale**2
    pulls = np.zeros((groups.count, unknowns.count))
    np.add.at(pulls, ping, weighted * residual[:, None])
    return _Round(weighted.T @ J, pulls, residual, emission, scale, weight)


def _moving_information(
    trial: DetectionTrial, unknowns: _Unknowns, moving: Moving, common: Floats, span: tuple[float, float]
) -> tuple[Floats, Floats, float]:
    """Return the derivative of the cost of each ping of a moving tag (P, U), the normal matrix, and the slope share.

    Within each ping, whatever a change of its time and position explains is projected out.
    """
    rows, ping, count = moving.groups.rows, moving.groups.ping, moving.groups.count
    receiver, s = trial.receiver[rows], (common[rows] - span[0]) / span[1]
    travel, J, toward = unknowns.jacobian_to(receiver, moving.position[ping], s)
    early = trial.time[rows] - travel - _clock_readings(unknowns.coefficients, receiver, s)
    residual, scale, weight = _reweighted(early, moving.groups, np.ones(len(rows)))
    root = np.sqrt(weight) / scale
    pulls, normal = np.zeros((count, unknowns.count)), np.zeros((unknowns.count, unknowns.count))
    for k, part in enumerate(np.split(np.arange(len(rows)), np.flatnonzero(np.diff(ping)) + 1)):
        local = np.column_stack([np.ones(len(part)), toward[part]]) * root[part, None]
        Q = np.linalg.qr(local)[0]
        A, b = J[part] * root[part, None], residual[part] * root[part]
        A, b = A - Q @ (Q.T @ A), b - Q @ (Q.T @ b)
        pulls[k] = A.T @ b
        normal += A.T @ A
    return pulls, normal, slope_share(weight)


def solve_clocks(
    trial: DetectionTrial, survey: Survey, offsets: Floats | None = None, moving: Moving | None = None
) -> ClockSolution:
    """Return clocks, positions and sound speed from the fixed tags of a trial, and from a ``moving`` tag if it is given.

    A fixed tag is near the receiver on its mooring, but not at the same place. A receiver's detections of the tag on its
    own mooring give their distance, so they are used as soon as the other detections have given the direction. Errors
    are weighted by Cauchy's rule. The covariance is the sandwich of Huber (1967) with pings as clusters.

    Raises LogError if a clock has too few pings in common with the keeper.
    """
    receiver = trial.receiver
    unknowns = _Unknowns(trial, survey, coarse_offsets(trial, survey.keeper) if offsets is None else offsets)
    home = np.full(len(trial.time), -1)
    for tag, n in trial.fixed_tags.items():
        home[trial.tag == tag] = n
    used = (home >= 0) & (home != receiver)
    common = trial.time - unknowns.coefficients[receiver, 0]
    middle, half = 0.5 * float(common[used].min() + common[used].max()), 0.5 * float(np.ptp(common[used]))
    groups = group_pings(trial, used, common, FIRST_GAP, FEWEST)
    state: _Round | None = None
    for number in range(ROUNDS):
        if number in REGROUP_ROUNDS:
            groups = group_pings(trial, home >= 0 if number == REGROUP_ROUNDS[-1] else used, common, GAP, FEWEST)
        state = _linearise(trial, unknowns, groups, home[groups.rows], (common[groups.rows] - middle) / half, state)
        prior = unknowns.precision * unknowns.prior_error(trial.surveyed, survey.sound_speed)
        normal, pulls = state.normal + np.diag(unknowns.precision), state.pulls
        curvature = slope_share(state.weight) * state.normal + np.diag(unknowns.precision)
        if moving is not None and number > REGROUP_ROUNDS[-1]:
            more, matrix, share = _moving_information(trial, unknowns, moving, common, (middle, half))
            normal, pulls, curvature = normal + matrix, np.vstack([pulls, more]), curvature + share * matrix
        unknowns.step(np.linalg.solve(normal, pulls.sum(axis=0) - prior))
        for _ in range(3):
            common = trial.time - _clock_readings(unknowns.coefficients, receiver, (common - middle) / half)
    assert state is not None
    equations = len(groups.rows)
    spare = np.full(len(pulls), equations / max(equations - groups.count - unknowns.count, 1))
    if moving is not None:  # time, east and north of each of its pings
        heard = np.bincount(moving.groups.ping)
        spare[groups.count :] = heard / np.maximum(heard - 3, 1)
    inverse = np.linalg.inv(curvature)
    covariance = inverse @ ((spare[:, None] * pulls).T @ pulls + np.diag(unknowns.precision)) @ inverse
    return ClockSolution(
        unknowns.coefficients,
        middle,
        half,
        unknowns.positions,
        unknowns.tag_positions,
        unknowns.sound_speed,
        covariance,
        unknowns.clock_index,
        unknowns.position_index,
        unknowns.tag_index,
        groups,
        state.ping_time,
        state.residual,
        state.scale,
    )
