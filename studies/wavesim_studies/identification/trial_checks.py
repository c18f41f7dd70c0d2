"""Checks of recorded trials for usual mistakes: wrong units, swapped columns, opposite signs and clock jumps.

A mistake that makes the trial useless is an error; a suspicion is a sentence.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_studies.identification.recorded_trials import MeasuredSeries, RecordedTrial
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model

BEYOND = 1.5  #: factor beyond the limits of an actuator above which the unit must be wrong
FAST = 17.5  #: turn rate in rad/s that no vehicle reaches
JUMP_S = 600.0  #: gap in s that counts as a jump of the clock
LAG_S = 1.0  #: longest delay in s between a turn rate and the change of the heading


def check_trial(trial: RecordedTrial, model: Model) -> None:
    """Raise LogError if a trial cannot be right."""
    _check_commands(trial, model)
    for name in ("roll_rate", "pitch_rate", "yaw_rate"):
        if name in trial.channels and (most := float(np.nanmax(np.abs(trial.channels[name].value)))) > FAST:
            raise LogError(
                f"{trial.name}: {name} reaches {most:.4g} rad/s; state its unit, for example {name}=COLUMN:deg/s"
            )
    for name, series in (*trial.commands.items(), *trial.channels.items()):
        steps = np.diff(series.time)
        if len(steps) and float(steps.max()) > JUMP_S:
            at = float(series.time[int(np.argmax(steps))])
            raise LogError(
                f"{trial.name}: the clock of '{name}' jumps by {steps.max():.0f} s after t = {at:.1f} s; split the file there"
            )
    if trial.seconds < 2.0:
        raise LogError(
            f"{trial.name}: commands and measurements overlap for {max(trial.seconds, 0.0):.1f} s only; check the time "
            "columns and their units"
        )
    _check_rate_and_heading(trial)
    _check_position(trial)


def _check_commands(trial: RecordedTrial, model: Model) -> None:
    for a in actuators_of(model):
        if a.name not in trial.commands:
            continue
        values = trial.commands[a.name].value
        worst = float(values[int(np.argmax(np.abs(values)))])
        limit = a.maximum if worst > 0.0 else a.minimum
        if abs(worst) > BEYOND * abs(limit) + 1e-9 and abs(worst) > BEYOND * max(abs(a.maximum), abs(a.minimum)):
            hint = {"rad": "deg", "1/s": "rpm"}.get(a.unit, "UNIT")
            raise LogError(
                f"{trial.name}: the command of '{a.name}' reaches {worst:.4g} {a.unit}, but the model allows {a.minimum:.4g} to "
                f"{a.maximum:.4g}; state its unit, for example {a.name}=COLUMN:{hint}"
            )
    if all(np.ptp(s.value) < 1e-9 for s in trial.commands.values()):
        raise LogError(
            f"{trial.name}: no command changes, so the trial shows no response; check the columns of the commands"
        )


def _slopes(s: MeasuredSeries, at: Floats, window: float) -> Floats:
    """Return the mean slopes of a series over ``window`` s around these times."""
    ends = [np.interp(at + side * 0.5 * window, s.time, s.value) for side in (-1.0, 1.0)]
    return np.asarray((ends[1] - ends[0]) / window, float)


def _means(s: MeasuredSeries, at: Floats, window: float) -> Floats:
    """Return the means of a series over ``window`` s around these times."""
    total = np.concatenate([[0.0], np.cumsum(0.5 * (s.value[1:] + s.value[:-1]) * np.diff(s.time))])
    ends = [np.interp(at + side * 0.5 * window, s.time, total) for side in (-1.0, 1.0)]
    return np.asarray((ends[1] - ends[0]) / window, float)


def _check_rate_and_heading(trial: RecordedTrial) -> None:
    """Compare the yaw rate with the change of the heading."""
    if not {"heading", "yaw_rate"} <= trial.channels.keys():
        return
    heading, rate = trial.channels["heading"], trial.channels["yaw_rate"]
    window = max(1.0, 4.0 * float(np.median(np.diff(heading.time))))
    begin, end = max(heading.time[0], rate.time[0]) + window, min(heading.time[-1], rate.time[-1]) - window
    if end - begin < 10.0 * window:
        return
    at = np.arange(begin, end, 0.5 * window)
    change, mean = _slopes(heading, at, window), _means(rate, at, window)
    if min(change.std(), mean.std()) < math.radians(0.02):
        return
    r = float(np.corrcoef(change, mean)[0, 1])
    ratio = float(mean.std() / change.std())
    if abs(r) < 0.5:
        raise LogError(
            f"{trial.name}: yaw_rate does not follow the change of the heading (correlation {r:.2f}); check their columns, or use "
            "--channel to select one of them"
        )
    if r < 0.0:
        raise LogError(
            f"{trial.name}: yaw_rate has the opposite sign of the change of the heading (correlation {r:.2f}); both must be "
            "positive to starboard"
        )
    for wrong, what in (
        (180.0 / math.pi, "yaw_rate seems to be in deg/s"),
        (math.pi / 180.0, "heading seems to be in deg"),
    ):
        if abs(math.log(ratio / wrong)) < 0.5:
            name, unit = ("yaw_rate", "deg/s") if wrong > 1.0 else ("heading", "deg")
            raise LogError(f"{trial.name}: {what}; state its unit, for example {name}=COLUMN:{unit}")


def _check_position(trial: RecordedTrial) -> None:
    """Compare the course over ground with the heading, which reveals swapped columns."""
    if not {"north", "east", "heading"} <= trial.channels.keys():
        return
    north, east, heading = (trial.channels[k] for k in ("north", "east", "heading"))
    at = np.arange(north.time[0] + 2.0, north.time[-1] - 2.0, 1.0)
    if len(at) < 20:
        return
    v = _slopes(north, at, 4.0), _slopes(east, at, 4.0)
    psi = np.interp(at, heading.time, heading.value)
    speed = np.hypot(*v)
    if speed.mean() < 0.05 or np.ptp(psi) < 0.5:
        return

    def agreement(a: Floats, b: Floats) -> float:
        """Return the length (0 to 1) of the mean direction of the course relative to the heading."""
        course = np.arctan2(b, a) - psi
        return float(np.hypot(np.sum(speed * np.cos(course)), np.sum(speed * np.sin(course))) / speed.sum())

    as_given, swapped = agreement(*v), agreement(v[1], v[0])
    if swapped > 0.8 and as_given < 0.6 * swapped:
        raise LogError(
            f"{trial.name}: the track fits the heading only with north and east swapped (agreement {swapped:.2f} instead of "
            f"{as_given:.2f}); check their columns"
        )


def suspicions(trial: RecordedTrial) -> list[str]:
    """Return sentences about values that are unusual but possible."""
    found = [f"{trial.name}: {note}" for note in trial.notes]
    if {"surge", "sway"} <= trial.channels.keys():
        u, v = (
            float(np.std(trial.channels[k].value)) + abs(float(np.mean(trial.channels[k].value)))
            for k in ("surge", "sway")
        )
        if v > 2.0 * u and v > 0.1:
            found.append(f"{trial.name}: sway is larger than surge ({v:.2g} and {u:.2g} m/s): are the columns swapped?")
    return found
