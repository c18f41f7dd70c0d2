"""Track of a towed tag from the arrival times of its pings, with the clocks of the receivers already known.

Each ping is located on its own first. A smoother with nearly constant velocity then uses all arrivals at once, as the
fixed-interval smoother of Rauch, Tung & Striebel (1965) in information form, repeated with weights that limit the effect
of late arrivals. The times of the pings are unknown and are eliminated as in ``clock_solution``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_sdk.errors import LogError
from wavesim_studies.field_trials.clock_solution import (
    ClockSolution,
    Moving,
    PingGroups,
    Survey,
    cauchy_weights,
    group_means,
    group_pings,
    robust_scale,
    solve_clocks,
)
from wavesim_studies.field_trials.detection_files import DetectionTrial

GAP = 2.0  #: silence in s that separates two pings
FEWEST = 4  #: least number of receivers of a ping that is located
ROUNDS = 15
START_SHIFT = 2.0  #: distance in m of the first estimate from the first receiver, where the direction is undefined
STATES = 4  #: east, north and their rates


@dataclass(frozen=True)
class TowedTrack:
    """Positions and times of the pings of one tag."""

    groups: PingGroups
    time: Floats  #: time of emission on the common clock in s (P)
    position: Floats  #: east and north in m (P, 2)
    covariance: Floats  #: of the positions in m2 (P, 2, 2)
    residual: Floats  #: arrival residual of each row in ``groups`` in s (R)
    distance: Floats  #: distance from the tag to the receiver of each row in m (R)
    scale: float  #: 1.4826 times the median absolute residual in s
    depth: float  #: assumed depth of the tag in m


@dataclass(frozen=True)
class Towing:
    """Assumptions on a towed tag."""

    depth: float = 1.0  #: in m
    acceleration: float = 0.01  #: spectral density of the random acceleration along each axis in m2/s3


@dataclass(frozen=True)
class _Arrivals:
    """Arrival times on the common clock, with the positions of their receivers."""

    ping: Ints
    count: int
    time: Floats
    place: Floats  #: (R, 3)
    speed: float
    depth: float

    def linearise(self, position: Floats, weight: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return (ping time, residual, derivatives with respect to east and north, distance)."""
        way = position[self.ping] - self.place[:, :2]
        distance = np.sqrt(np.sum(way * way, axis=1) + (self.depth - self.place[:, 2]) ** 2)
        early = self.time - distance / self.speed
        emission = group_means(early, self.ping, weight, self.count)
        J = way / (self.speed * np.maximum(distance, 1e-6))[:, None]
        return (
            emission,
            early - emission[self.ping],
            J - group_means(J, self.ping, weight, self.count)[self.ping],
            distance,
        )

    def information(self, J: Floats, residual: Floats, weight: Floats, scale: float) -> tuple[Floats, Floats]:
        """Return the information matrix (P, 2, 2) and vector (P, 2) of each ping."""
        A, b = np.zeros((self.count, 2, 2)), np.zeros((self.count, 2))
        np.add.at(A, self.ping, J[:, :, None] * J[:, None, :] * (weight / scale**2)[:, None, None])
        np.add.at(b, self.ping, J * (weight * residual / scale**2)[:, None])
        return A, b


def _motion_information(dt: float, density: float) -> Floats:
    """Return the information matrix of two successive states (8, 8) under a random acceleration."""
    noise = density * np.array([[dt**3 / 3.0, dt**2 / 2.0], [dt**2 / 2.0, dt]])
    inner = np.linalg.inv(noise)
    F = np.array([[1.0, dt], [0.0, 1.0]])
    L = np.hstack([-F, np.eye(2)])
    one = L.T @ inner @ L
    full = np.zeros((2 * STATES, 2 * STATES))
    for axis in range(2):
        at = np.array([axis, axis + 2, axis + 4, axis + 6])  # position, rate, then those of the next state
        full[np.ix_(at, at)] = one
    return full


def _smoothing_step(A: Floats, b: Floats, state: Floats, time: Floats, density: float) -> tuple[Floats, Floats]:
    """Solve the block tridiagonal system of all pings. Returns (change of the states (P, 4), covariances (P, 4, 4))."""
    count = len(time)
    diagonal, upper, right = (
        np.zeros((count, STATES, STATES)),
        np.zeros((count, STATES, STATES)),
        np.zeros((count, STATES)),
    )
    diagonal[:, :2, :2], right[:, :2] = A, b
    diagonal[:, range(2, 4), range(2, 4)] += 1e-2  # the tag moves at a few m/s at most
    right[:, 2:] -= 1e-2 * state[:, 2:]
    for k in range(count - 1):
        both = _motion_information(max(time[k + 1] - time[k], 0.1), density)
        pull = both @ np.concatenate([state[k], state[k + 1]])
        diagonal[k] += both[:STATES, :STATES]
        diagonal[k + 1] += both[STATES:, STATES:]
        upper[k] = both[:STATES, STATES:]
        right[k] -= pull[:STATES]
        right[k + 1] -= pull[STATES:]
    for k in range(1, count):
        gain = np.linalg.solve(diagonal[k - 1], upper[k - 1]).T
        diagonal[k] -= gain @ upper[k - 1]
        right[k] -= gain @ right[k - 1]
    change, covariance = np.zeros((count, STATES)), np.linalg.inv(diagonal)
    change[-1] = covariance[-1] @ right[-1]
    for k in range(count - 2, -1, -1):
        G = covariance[k] @ upper[k]
        change[k] = covariance[k] @ right[k] - G @ change[k + 1]
        covariance[k] = covariance[k] + G @ covariance[k + 1] @ G.T
    return change, np.asarray(covariance)


def _first_positions(arrivals: _Arrivals, rows_first: Ints) -> tuple[Floats, Floats]:
    """Locate each ping on its own, starting at the receiver that heard it first. Returns (positions, weights)."""
    position = arrivals.place[rows_first, :2] + START_SHIFT
    weight = np.ones(len(arrivals.ping))
    for _ in range(2 * ROUNDS):
        _, residual, J, _ = arrivals.linearise(position, weight)
        scale = robust_scale(residual)
        weight = cauchy_weights(residual, scale)
        _, residual, J, _ = arrivals.linearise(position, weight)
        A, b = arrivals.information(J, residual, weight, scale)
        A += np.eye(2) * 1e-3 * np.trace(A, axis1=1, axis2=2)[:, None, None]
        change = np.linalg.solve(A, b[:, :, None])[:, :, 0]
        position += change * np.minimum(1.0, 50.0 / np.maximum(np.linalg.norm(change, axis=1), 1e-9))[:, None]
    return position, weight


def solve_track(
    trial: DetectionTrial, clocks: ClockSolution, tag: int, towing: Towing | None = None, without: int = -1
) -> TowedTrack:
    """Return the track of a towed tag. ``without`` is a receiver whose detections are not used.

    Raises LogError if no ping was heard by four receivers.
    """
    towing = towing or Towing()
    common = clocks.common(trial.receiver, trial.time)
    used: Mask = (trial.tag == tag) & (trial.receiver != without)
    groups = group_pings(trial, used, common, GAP, FEWEST)
    if groups.count < 2:
        raise LogError(f"fewer than two pings of tag {tag} were heard by {FEWEST} receivers or more")
    receiver = trial.receiver[groups.rows]
    arrivals = _Arrivals(
        groups.ping, groups.count, common[groups.rows], clocks.positions[receiver], clocks.sound_speed, towing.depth
    )
    order = np.lexsort((arrivals.time, arrivals.ping))
    first = order[np.searchsorted(arrivals.ping[order], np.arange(groups.count))]
    position, weight = _first_positions(arrivals, first)
    state = np.hstack([position, np.zeros_like(position)])
    for _ in range(ROUNDS):
        _, residual, J, _ = arrivals.linearise(state[:, :2], weight)
        scale = robust_scale(residual)
        weight = cauchy_weights(residual, scale)
        time, residual, J, _ = arrivals.linearise(state[:, :2], weight)
        A, b = arrivals.information(J, residual, weight, scale)
        change, covariance = _smoothing_step(A, b, state, time, towing.acceleration)
        state += change
    time, residual, _, distance = arrivals.linearise(state[:, :2], weight)
    return TowedTrack(
        groups, time, state[:, :2], covariance[:, :2, :2], residual, distance, robust_scale(residual), towing.depth
    )


def solve_together(
    trial: DetectionTrial, survey: Survey, tag: int, towing: Towing | None = None, rounds: int = 2
) -> tuple[ClockSolution, TowedTrack]:
    """Return clocks, positions, sound speed and track from fixed and towed tags together.

    The towed tag comes close to every receiver, so it determines positions that a few fixed tags leave uncertain.
    """
    towing = towing or Towing()
    clocks = solve_clocks(trial, survey)
    offsets = clocks.coefficients[:, 0]
    track = solve_track(trial, clocks, tag, towing)
    for _ in range(rounds):
        places = np.column_stack([track.position, np.full(track.groups.count, towing.depth)])
        clocks = solve_clocks(trial, survey, offsets, Moving(track.groups, places))
        track = solve_track(trial, clocks, tag, towing)
    return clocks, track


def held_out_errors(
    trial: DetectionTrial, clocks: ClockSolution, tag: int, receiver: int, towing: Towing | None = None
) -> Floats:
    """Return the errors in s of the predicted arrivals at a receiver that did not contribute to the track.

    Only pings that at least six other receivers heard are predicted.
    """
    track = solve_track(trial, clocks, tag, towing, without=receiver)
    heard = np.bincount(track.groups.ping, minlength=track.groups.count)
    rows = np.flatnonzero((trial.tag == tag) & (trial.receiver == receiver))
    common = clocks.common(trial.receiver[rows], trial.time[rows])
    way = track.position - clocks.positions[receiver, :2]
    depth = track.depth - clocks.positions[receiver, 2]
    expected = track.time + np.sqrt(np.sum(way * way, axis=1) + depth * depth) / clocks.sound_speed
    difference = common[:, None] - expected
    nearest = np.argmin(np.abs(difference), axis=1)
    errors = difference[np.arange(len(rows)), nearest]
    return np.asarray(errors[(np.abs(errors) < GAP) & (heard[nearest] >= 6)])


def distance_to_fixes(track: TowedTrack, gps: Floats, shift: float = 0.0) -> Floats:
    """Return the distance in m of each ping within the time of the fixes from the interpolated fixes.

    ``shift`` in s is added to the common clock.
    """
    time = track.time + shift
    inside = (time >= gps[0, 0]) & (time <= gps[-1, 0])
    east, north = (np.interp(time[inside], gps[:, 0], gps[:, k]) for k in (1, 2))
    return np.asarray(np.sqrt((track.position[inside, 0] - east) ** 2 + (track.position[inside, 1] - north) ** 2))


def best_shift(track: TowedTrack, gps: Floats, limit: float = 10.0) -> float:
    """Return the constant in s which, added to the common clock, gives the least median distance to the fixes."""
    shifts = np.arange(-limit, limit + 0.25, 0.25)
    return float(shifts[np.argmin([np.median(distance_to_fixes(track, gps, s)) for s in shifts])])
