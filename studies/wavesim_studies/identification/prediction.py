"""Prediction of a trial by a model: the simulation of the whole trial from one start state, beside the measurements.

Only the first seconds of the measurements are used, for the start state. Everything after them is prediction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_studies.identification import recorded_trials as rt
from wavesim_studies.identification.least_squares import solve
from wavesim_studies.identification.recorded_trials import RecordedTrial
from wavesim_studies.identification.shooting import ShootingOptions, ShootingProblem
from wavesim_world.config import Model

HORIZONS = (10.0, 25.0)  #: times in s after the start at which the distance from the track is reported


@dataclass(frozen=True)
class ChannelError:
    """Error of the prediction of one channel."""

    rms: float  #: root mean square of the error, in the unit of the channel
    variation: float  #: standard deviation of the measured values
    explained: float  #: share of the variance that the prediction explains
    mean: float  #: mean error


@dataclass(frozen=True)
class TrialPrediction:
    """Prediction of a trial."""

    trial: RecordedTrial
    begin: float  #: s, of the start state
    start_seconds: float  #: length in s of the measurements that the start state uses
    time: Floats  #: times (T) in s of the simulation
    states: Floats  #: simulated states (T, 12)
    values: dict[str, tuple[Floats, Floats, Floats]]  #: time, measured and predicted values by channel
    errors: dict[str, ChannelError]
    #: distances in m from the measured track, by time in s after the start
    distances: dict[float, float]
    length: float  #: length in m of the measured track

    def channel(self, name: str) -> Floats:
        """Return the predicted values (T) of a channel at all times, in still water, at the place of its instrument."""
        return _channel(self.trial, self.states, name)


def predict(
    model: Model,
    trial: RecordedTrial,
    options: ShootingOptions,
    assumed: dict[str, float] | None = None,
    start_seconds: float = 3.0,
) -> TrialPrediction:
    """Predict a trial. ``assumed`` contains the values of delay, push, offsets and others by path."""
    first = trial.part(trial.begin, trial.begin + start_seconds)
    short = replace(options, segment=start_seconds + 1.0, gap=np.inf)
    problem = ShootingProblem(model, [first], [], short, assumed)
    x = np.zeros(problem.size)
    for _ in range(2):
        solution = solve(problem.residuals, problem.jacobian, x, problem.robust, 15)
        x = solution.x
        problem.update_noise(solution.residuals)
    start = problem.start_states(x)[:, 0]
    whole = ShootingProblem(model, [trial], [], replace(options, segment=np.inf, gap=np.inf), assumed)
    whole.starts[:, 0] = start
    zero = np.zeros(whole.size)
    states = whole.simulate([zero], [model], [0])
    values, errors = {}, {}
    for v in whole.measured:
        made = whole.predictions(states, 0, v, zero)
        series = trial.channels[v.channel]
        if v.channel == "heading":
            made = made + 2.0 * np.pi * np.round((v.value - made)[:1] / (2.0 * np.pi))
        values[v.channel] = v.time, v.value, made
        after = v.time > trial.begin + (0.0 if series.time[-1] < trial.begin + start_seconds else start_seconds)
        errors[v.channel] = _error(v.value[after], made[after])
    time = whole.segments[0].begin + options.step * np.arange(len(states), dtype=np.float64)
    distances, length = _distances(trial, time, states[:, :, 0, 0], whole.segments[0].begin)
    return TrialPrediction(
        trial, whole.segments[0].begin, start_seconds, time, states[:, :, 0, 0], values, errors, distances, length
    )


def _error(measured: Floats, made: Floats) -> ChannelError:
    e = made - measured
    variance = float(np.var(measured)) if len(measured) else 0.0
    square = float(np.mean(e * e)) if len(e) else np.nan
    share = 1.0 - square / variance if variance > 0.0 else np.nan
    return ChannelError(square**0.5, variance**0.5, share, float(np.mean(e)) if len(e) else np.nan)


def _channel(trial: RecordedTrial, states: Floats, name: str) -> Floats:
    return rt.predicted(name, states.T, np.zeros((3, len(states))), trial.channels[name].arm)


def _distances(trial: RecordedTrial, time: Floats, states: Floats, begin: float) -> tuple[dict[float, float], float]:
    if not {"north", "east"} <= trial.channels.keys():
        return {}, 0.0
    north, east = trial.channels["north"], trial.channels["east"]
    end = min(float(north.time[-1]), float(time[-1]))
    at = [*(h for h in HORIZONS if begin + h < end), end - begin]
    found = {}
    for h in at:
        t = begin + h
        off = [
            np.interp(t, time, _channel(trial, states, name)) - np.interp(t, s.time, s.value)
            for name, s in (("north", north), ("east", east))
        ]
        found[round(float(h), 2)] = math.hypot(float(off[0]), float(off[1]))
    seconds = np.arange(begin, end, 1.0)
    steps = [np.diff(np.interp(seconds, s.time, s.value)) for s in (north, east)]
    length = float(np.hypot(steps[0], steps[1]).sum())
    return found, length
