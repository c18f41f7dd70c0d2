"""Trials of simulated vehicles with known coefficients, recorded by noisy sensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wavesim_server.study import TRACK, replay
from wavesim_studies.identification import MeasuredSeries, RecordedTrial
from wavesim_studies.identification.coefficients import ModelCoefficients
from wavesim_world.config import Model, library
from wavesim_world.recorded_data import actuator_position

COLUMN = {
    "north": "north", "east": "east", "depth": "down", "roll": "roll", "pitch": "pitch", "heading": "yaw", "surge": "u",
    "sway": "v", "heave": "w", "roll_rate": "p", "pitch_rate": "q", "yaw_rate": "r",
}  # fmt: skip
NOISE = {
    "north": 0.3, "east": 0.3, "depth": 0.03, "roll": 0.005, "pitch": 0.005, "heading": 0.01, "surge": 0.01, "sway": 0.01,
    "heave": 0.01, "roll_rate": 0.003, "pitch_rate": 0.003, "yaw_rate": 0.003,
}  # fmt: skip

START = 2.0  #: s
Commands = dict[str, Callable[[float], float]]


def square(high: float, half: float, phase: float = 0.0) -> Callable[[float], float]:
    """Return a command that switches between ``high`` and -``high`` every ``half`` s."""
    return lambda t: high if int((t + phase) // half) % 2 == 0 else -high


def steps(levels: Sequence[float], each: float) -> Callable[[float], float]:
    """Return a command that takes each level for ``each`` s, again and again."""
    return lambda t: levels[int(t // each) % len(levels)]


def sail(
    model: Model,
    commands: Commands,
    seconds: float,
    seed: int = 1,
    *,
    channels: Sequence[str] = ("north", "east", "heading", "yaw_rate", "surge", "sway"),
    noise: float = 1.0,
    period: float = 0.1,
    **start: Any,
) -> RecordedTrial:
    """Sail a vehicle and record it: commands at 10 Hz, measurements every ``period`` s with white noise. They begin after
    START s, when the actuators no longer move from rest.
    """
    times = np.arange(0.0, seconds + 0.05, 0.1)
    values = {name: np.array([f(t + 1e-9) for t in times]) for name, f in commands.items()}
    track = replay(
        model, times, {actuator_position(model, n): v for n, v in values.items()}, 0.02, every=period, **start
    )
    track = track[track[:, 0] > START - 1e-6]
    random = np.random.default_rng(seed)
    held = {n: MeasuredSeries(times, v) for n, v in values.items()}
    measured = {}
    for c in channels:
        true = track[:, TRACK.index(COLUMN[c])]
        true = np.unwrap(true) if c == "heading" else true
        measured[c] = MeasuredSeries(track[:, 0], true + noise * NOISE[c] * random.standard_normal(len(true)))
    return RecordedTrial(f"{model.name}-{seed}", "0" * 64, held, measured)


def distort(trial: RecordedTrial, channel: str, change: Callable[[Any, Any], tuple[Any, Any]]) -> RecordedTrial:
    """Return the trial with other times and values of one channel."""
    s = trial.channels[channel]
    time, value = change(s.time.copy(), s.value.copy())
    return replace(trial, channels={**trial.channels, channel: replace(s, time=time, value=value)})


def csv_lines(
    trial: RecordedTrial, factors: dict[str, float] | None = None, names: dict[str, str] | None = None
) -> str:
    """Return the trial as a CSV file with one row for each command."""
    factors, names = factors or {}, names or {}
    series = {**trial.commands, **trial.channels}
    t = next(iter(trial.commands.values())).time
    t = t[t > START - 1e-6]
    columns = [np.interp(t, s.time, s.value) * factors.get(n, 1.0) for n, s in series.items()]
    head = ",".join(["time", *(names.get(n, n) for n in series)])
    rows = [",".join(f"{x:.9g}" for x in row) for row in np.stack([t, *columns], axis=1)]
    return "\n".join([head, *rows]) + "\n"


ZIGZAG = {"rudder": square(math.radians(20.0), 6.0)}

#: vehicles with planted coefficients: factors of the coefficients, commands, and the start of the replay
CASES: dict[str, tuple[dict[str, float], Commands, dict[str, Any]]] = {
    "lauv": (
        {"linear-drag/N_r": 1.3, "lift/N_v": 0.8, "quadratic-drag/X_u": 1.25, "fin[*]/lift_slope": 0.85, "added-mass/Y_v": 1.2},
        {
            "propeller": steps([8.0, 8.0, 4.0, 10.0], 15.0),
            "rudder-top": square(0.2, 6.0),
            "rudder-bottom": square(0.2, 6.0),
        },
        {"position": (0.0, 0.0, 20.0), "velocity": [1.3, 0, 0, 0, 0, 0]},
    ),
    "otter": (
        {"linear-drag/X_u": 1.3, "quadratic-drag/N_r": 0.7, "added-mass/N_r": 1.3, "cross-flow/sway": 0.8},
        {"port": steps([9.0, 14.0, 6.0], 7.0), "starboard": steps([9.0, 5.0, 13.0, 7.0], 8.0)},
        {"velocity": [1.0, 0, 0, 0, 0, 0]},
    ),
    "bluerov2": (
        {"quadratic-drag/X_u": 1.3, "quadratic-drag/Y_v": 0.75, "quadratic-drag/N_r": 1.2, "added-mass/X_u": 1.4, "added-mass/N_r": 0.7},
        {
            "front-starboard": steps([15.0, -10.0, 20.0, 0.0, -20.0], 3.0),
            "front-port": steps([15.0, 10.0, -20.0, 5.0, -20.0, 18.0], 3.5),
            "rear-starboard": steps([15.0, 10.0, -15.0, 0.0], 4.0),
            "rear-port": steps([15.0, -10.0, 12.0, -5.0], 4.5),
        },
        {"position": (0.0, 0.0, 20.0)},
    ),
}  # fmt: skip
ALL = (
    "north",
    "east",
    "depth",
    "roll",
    "pitch",
    "heading",
    "surge",
    "sway",
    "heave",
    "roll_rate",
    "pitch_rate",
    "yaw_rate",
)
AFLOAT = ("north", "east", "heading", "yaw_rate", "surge", "sway")


def planted_trial(name: str, seed: int) -> tuple[dict[str, float], RecordedTrial]:
    """Return the planted coefficients of one of ``CASES`` by path, and its trial of 60 s."""
    factors, commands, start = CASES[name]
    model = library()[name]
    c = ModelCoefficients(model)
    planted = {path: c.value(path) * f for path, f in factors.items()}
    channels = AFLOAT if model.type == "surface" else ALL
    return planted, sail(c.model_with(planted), commands, 60.0, seed, channels=channels, **start)
