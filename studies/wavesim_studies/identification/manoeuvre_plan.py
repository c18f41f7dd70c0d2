"""Manoeuvres that would teach most about a model: the Fisher information of their commands, before sailing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server import manoeuvres, sailing
from wavesim_studies.identification import recorded_trials as rt
from wavesim_studies.identification.model_copies import (
    DOWN,
    STATES,
    CopyInputs,
    ModelCopies,
    U,
    density_of,
    resting_depth,
)
from wavesim_studies.identification.recorded_trials import MeasuredSeries, RecordedTrial
from wavesim_studies.identification.shooting import ShootingOptions, ShootingProblem
from wavesim_studies.identification.unknowns import FittedUnknown
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model

SHARES = (0.4, 0.8)  #: fractions of the full speed
#: standard deviations of the measurements of usual instruments: GPS or acoustic fix, pressure, AHRS, Doppler log
USUAL_NOISE = {
    "north": 0.5, "east": 0.5, "depth": 0.05, "roll": 0.01, "pitch": 0.01, "heading": 0.02, "surge": 0.02, "sway": 0.02,
    "heave": 0.02, "water_surge": 0.05, "water_sway": 0.05, "speed": 0.05, "roll_rate": 0.005, "pitch_rate": 0.005,
    "yaw_rate": 0.005,
}  # fmt: skip
EVERY = 0.5  #: interval in s at which a manoeuvre changes its commands


@dataclass(frozen=True)
class PlannedManoeuvre:
    """A manoeuvre, and its information about the unknowns."""

    name: str
    trial: RecordedTrial  #: commands, and the measurements that the model would give without noise
    information: Floats  #: Fisher information (n, n) of the standardised unknowns


def plan(
    model: Model,
    unknowns: Sequence[FittedUnknown],
    channels: Sequence[str],
    options: ShootingOptions,
    seconds: float = 60.0,
    noise: dict[str, float] | None = None,
) -> list[PlannedManoeuvre]:
    """Return the possible manoeuvres of a model, each with its information. Raise ConfigError if it has no actuators."""
    noise = {**USUAL_NOISE, **(noise or {})}
    found = []
    for name, commands in _candidates(model, seconds, options):
        trial = _rehearse(model, name, commands, channels, noise, options)
        problem = ShootingProblem(model, [trial], unknowns, options)
        problem.sigma = {c: noise[c] / math.sqrt(max(options.period / 0.1, 1.0)) for c in channels}
        _, J = problem.jacobian(np.zeros(problem.size))
        k, data = len(unknowns), J.shape[0] - problem.size
        normal = (J[: data + problem.size].T @ J).toarray() - np.diag([1.0] * k + [0.0] * (problem.size - k))
        states = normal[k:, k:]
        found.append(
            PlannedManoeuvre(name, trial, normal[:k, :k] - normal[:k, k:] @ np.linalg.solve(states, normal[k:, :k]))
        )
    return found


def best_order(planned: Sequence[PlannedManoeuvre], count: int) -> list[tuple[PlannedManoeuvre, Floats]]:
    """Return the manoeuvres to sail, the best first, each with the standard deviations (n,) of the standardised unknowns
    after it. Each is the one that adds most to the logarithm of the determinant of the information.
    """
    rest, chosen = list(planned), []
    total = np.eye(len(planned[0].information))
    for _ in range(min(count, len(rest))):
        gains = [float(np.linalg.slogdet(total + p.information)[1]) for p in rest]
        best = rest.pop(int(np.argmax(gains)))
        total = total + best.information
        chosen.append((best, np.sqrt(np.diagonal(np.linalg.inv(total)))))
    return chosen


def _candidates(model: Model, seconds: float, options: ShootingOptions) -> list[tuple[str, list[dict[str, float]]]]:
    """Return the commands of each manoeuvre at intervals of EVERY s. Feedback manoeuvres are sailed with the model."""
    steps = round(seconds / EVERY)
    if not actuators_of(model):
        raise ConfigError(f"'{model.name}' has no actuators")
    made: list[tuple[str, list[dict[str, float]]]] = []
    if sailing.hard_turn(model, 1.0):
        driven = bool(sailing.forward_thrusters(model))
        for share in SHARES if driven else SHARES[-1:]:
            speed = f" at {100 * share:.0f} % speed" if driven else ""
            for angle in (10.0, 20.0):
                helm = manoeuvres.degrees(model, angle)
                made.append(
                    (f"zig-zag {angle:.0f}/{angle:.0f}{speed}", _zigzag(model, share, helm, angle, steps, options))
                )
            for side, word in ((1.0, "starboard"), (-1.0, "port")):
                made.append((f"circle to {word}{speed}", [manoeuvres.steer(model, share, side)] * steps))
            if driven:
                ahead = manoeuvres.ahead(model, share)
                stop = dict.fromkeys(ahead, 0.0)
                made.append(
                    (
                        f"coast-down from {100 * share:.0f} % speed",
                        [ahead] * (steps // 2) + [stop] * (steps - steps // 2),
                    )
                )
    else:
        for a in actuators_of(model):
            made.append((f"steps of '{a.name}'", _steps(a.name, 0.6 * min(a.maximum, -a.minimum or a.maximum), steps)))
        names = [a.name for a in actuators_of(model)]
        for first, second in itertools.combinations(names, 2):
            high = {a.name: 0.6 * min(a.maximum, -a.minimum or a.maximum) for a in actuators_of(model)}
            both = [
                {first: x[first], second: y[second]}
                for x, y in zip(_steps(first, high[first], steps), _steps(second, high[second], steps, 2), strict=True)
            ]
            made.append((f"steps of '{first}' and '{second}'", both))
    return made


def _steps(name: str, high: float, steps: int, period: int = 1) -> list[dict[str, float]]:
    """Return steps forward, off, backward, off, each held for 5 s times ``period``."""
    held = round(5.0 * period / EVERY)
    return [{name: (high, 0.0, -high, 0.0)[k // held % 4]} for k in range(steps)]


def _zigzag(
    model: Model, share: float, helm: float, angle: float, steps: int, options: ShootingOptions
) -> list[dict[str, float]]:
    """Return the commands of a zig-zag that the model sails: the helm reverses whenever the heading has changed by
    ``angle`` deg.
    """
    side, made, begun = 1.0, [], 0.0
    copies = ModelCopies([model], np.zeros(1, np.int64), options.step, options.world)
    state, per = _steady(model, share, options.world), round(EVERY / options.step)
    actuators = [a.name for a in actuators_of(model)]
    for _ in range(steps):
        turned = math.degrees(state[5, 0] - begun)
        if turned * side > angle:
            side = -side
        made.append(manoeuvres.steer(model, share, side * helm))
        commands = np.array([made[-1].get(n, 0.0) for n in actuators])[None, :, None].repeat(per, axis=0)
        inputs = CopyInputs(state, commands, np.zeros((3, 1)), np.zeros((6, 1)), 0)
        state = copies.run(inputs, per)[-1]
    return made


def _steady(model: Model, share: float, world: str) -> Floats:
    """Return a start state (STATES, 1) at rest in depth and attitude, with about the speed of a share of the thrust."""
    state = np.zeros((STATES, 1))
    state[DOWN] = resting_depth(model, density_of(world))
    state[U] = 0.7 * share * model.valid_speed
    return state


def _rehearse(
    model: Model,
    name: str,
    commands: list[dict[str, float]],
    channels: Sequence[str],
    noise: dict[str, float],
    options: ShootingOptions,
) -> RecordedTrial:
    """Simulate a manoeuvre. Return it as a trial with measurements without noise."""
    actuators = [a.name for a in actuators_of(model)]
    per = round(EVERY / options.step)
    table = np.array([[c.get(n, 0.0) for n in actuators] for c in commands])
    copies = ModelCopies([model], np.zeros(1, np.int64), options.step, options.world)
    share = 0.0 if "steps" in name else SHARES[-1]
    inputs = CopyInputs(
        _steady(model, share, options.world),
        table.repeat(per, axis=0)[:, :, None],
        np.zeros((3, 1)),
        np.zeros((6, 1)),
        0,
    )
    every = max(1, round(options.period / options.step))
    states = copies.run(inputs, every)[:, :, 0]
    t = options.step * every * np.arange(len(states), dtype=np.float64)
    times = EVERY * np.arange(len(table) + 1, dtype=np.float64)
    held = {n: MeasuredSeries(times, np.append(table[:, k], table[-1, k])) for k, n in enumerate(actuators)}
    measured = {c: MeasuredSeries(t, rt.predicted(c, states.T, np.zeros((3, len(t)))), noise[c]) for c in channels}
    return RecordedTrial(name, "", held, measured)
