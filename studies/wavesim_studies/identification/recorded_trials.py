"""Recorded trials of a vehicle: commands and measurements over time, whatever file they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_studies.identification.model_copies import DOWN, EAST, NORTH, PITCH, ROLL, STATES, YAW, P, U
from wavesim_studies.navigation.columns import ColumnRole

#: channels of measurements: the quantity of each, the usual names of its column, and the start of its noise estimate
CHANNELS: dict[str, ColumnRole] = {
    "north": ColumnRole("length", ("x",)),
    "east": ColumnRole("length", ("y",)),
    "depth": ColumnRole("length", ("down", "z")),
    "roll": ColumnRole("angle", ("phi",)),
    "pitch": ColumnRole("angle", ("theta",)),
    "heading": ColumnRole("angle", ("yaw", "psi", "hdg")),
    "surge": ColumnRole("speed", ("u",)),
    "sway": ColumnRole("speed", ("v",)),
    "heave": ColumnRole("speed", ("w",)),
    "water_surge": ColumnRole("speed"),
    "water_sway": ColumnRole("speed"),
    "speed": ColumnRole("speed", ("sog", "ground_speed")),
    "roll_rate": ColumnRole("angular rate", ("p",)),
    "pitch_rate": ColumnRole("angular rate", ("q",)),
    "yaw_rate": ColumnRole("angular rate", ("r", "wz", "gyro_z")),
}
#: smallest credible noise of a channel, by its quantity: limited by the rounding of usual logs
LEAST_NOISE = {"length": 1e-3, "angle": 1e-4, "speed": 1e-4, "angular rate": 1e-5}
UNITS = {"length": "m", "angle": "rad", "speed": "m/s", "angular rate": "rad/s"}
_STATE_OF = {"north": NORTH, "east": EAST, "depth": DOWN, "roll": ROLL, "pitch": PITCH, "heading": YAW}
ORIGIN = (0.0, 0.0, 0.0)  #: origin of the body frame
_RATES = ("surge", "sway", "heave", "roll_rate", "pitch_rate", "yaw_rate")
_STATE_OF |= {name: U + k for k, name in enumerate(_RATES)}


def unit_of(channel: str) -> str:
    """Return the SI unit of a channel."""
    return UNITS[CHANNELS[channel].quantity]


def state_of(channel: str) -> int | None:
    """Return the row of the state that a channel measures directly, or None."""
    return _STATE_OF.get(channel)


def predicted(channel: str, states: Floats, current: Floats, arm: tuple[float, ...] = ORIGIN) -> Floats:
    """Return the values (M) that a channel would measure in the states (STATES, M), in a current (3, M) in m/s.

    ``arm`` is the position in B, in m, of the instrument. Positions and velocities are those of this place.
    """
    row = _STATE_OF.get(channel)
    if row is not None and (not any(arm) or row in (ROLL, PITCH, YAW) or row >= P):
        return np.asarray(states[row], float)
    R = frames.rotation(frames.quaternion(*states[ROLL : YAW + 1]))
    if row is not None and row <= DOWN:
        return np.asarray(states[row] + np.einsum("mj,j->m", R[:, row], arm), float)
    v = states[U : U + 3] + np.cross(states[P : P + 3].T, arm).T
    if row is not None:
        return np.asarray(v[row - U], float)
    if channel == "speed":
        return np.asarray(np.hypot(*np.einsum("mij,jm->im", R, v)[:2]), float)
    through = v - np.einsum("mji,jm->im", R, current)
    return np.asarray(through[("water_surge", "water_sway").index(channel)], float)


@dataclass(frozen=True)
class MeasuredSeries:
    """Values (T) of one channel in SI units, at times (T) in s. Headings are continuous."""

    time: Floats
    value: Floats
    sigma: float = 0.0  #: standard deviation of the noise that the recording states; 0 = unknown
    arm: tuple[float, ...] = ORIGIN  #: position of the instrument in B, in m: forward, starboard, down

    def averaged(self, period: float) -> MeasuredSeries:
        """Return the means over intervals of ``period`` s, which are nearly as informative and far fewer."""
        if len(self.time) < 2 or float(np.median(np.diff(self.time))) > 0.75 * period:
            return self
        bins = np.floor((self.time - self.time[0]) / period + 1e-9).astype(np.int64)
        _, first, count = np.unique(bins, return_index=True, return_counts=True)
        mean = [np.add.reduceat(x, first) / count for x in (self.time, self.value)]
        return replace(self, time=mean[0], value=mean[1], sigma=self.sigma / float(np.sqrt(count.mean())))


@dataclass(frozen=True)
class RecordedTrial:
    """Commands and measurements of one trial, in SI units. Time 0 is the first command."""

    name: str  #: name of the file, for reports
    digest: str  #: SHA-256 of the file or files
    commands: dict[str, MeasuredSeries]  #: command of each actuator; it holds until the next one
    channels: dict[str, MeasuredSeries]
    licence: str = ""  #: licence of the data, as the map states it
    notes: tuple[str, ...] = field(default=())

    @property
    def begin(self) -> float:
        """Time in s from which commands and measurements are known."""
        return float(
            max(min(s.time[0] for s in self.commands.values()), min(s.time[0] for s in self.channels.values()))
        )

    @property
    def end(self) -> float:
        """Time in s until which commands and measurements are known."""
        return float(
            min(max(s.time[-1] for s in self.commands.values()), max(s.time[-1] for s in self.channels.values()))
        )

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    def averaged(self, period: float) -> RecordedTrial:
        """Return the trial with channels averaged over intervals of ``period`` s."""
        return replace(self, channels={k: s.averaged(period) for k, s in self.channels.items()})

    def with_channels(self, chosen: tuple[str, ...]) -> RecordedTrial:
        """Return the trial with some of its channels only. Raise LogError if it lacks one of them."""
        for name in chosen:
            if name not in self.channels:
                raise LogError(f"{self.name} has no channel '{name}'; channels: {', '.join(self.channels)}")
        return replace(self, channels={k: s for k, s in self.channels.items() if not chosen or k in chosen})

    def part(self, begin: float, end: float) -> RecordedTrial:
        """Return the trial with the measurements between two times in s only. All commands are kept."""
        kept = {}
        for name, s in self.channels.items():
            inside = (s.time >= begin - 1e-9) & (s.time <= end + 1e-9)
            if inside.sum() >= 2:
                kept[name] = replace(s, time=s.time[inside], value=s.value[inside])
        if not kept:
            raise LogError(f"{self.name} has no measurements between {begin:.1f} and {end:.1f} s")
        return replace(self, channels=kept)

    def reversed_commands(self, actuator: str) -> RecordedTrial:
        """Return the trial with the opposite sign of one actuator's commands, if it has any."""
        if actuator not in self.commands:
            return self
        s = self.commands[actuator]
        return replace(self, commands={**self.commands, actuator: replace(s, value=-s.value)})


class HeldCommands:
    """Commands of a trial, held between the records, with the mean over each time step."""

    def __init__(self, commands: Mapping[str, MeasuredSeries], actuators: tuple[str, ...], rest: Floats) -> None:
        self._sums = []
        for k, name in enumerate(actuators):
            if name not in commands:
                self._sums.append((np.zeros(1), np.zeros(1), rest[k], rest[k]))
                continue
            t, v = commands[name].time, commands[name].value
            total = np.concatenate([[0.0], np.cumsum(v[:-1] * np.diff(t))])
            self._sums.append((t, total, v[0], v[-1]))

    def _integral(self, k: int, at: Floats) -> Floats:
        t, total, first, last = self._sums[k]
        inside = np.interp(at, t, total)
        return np.asarray(inside + np.minimum(at - t[0], 0.0) * first + np.maximum(at - t[-1], 0.0) * last, float)

    def means(self, begin: Floats, step: float) -> Floats:
        """Return the mean commands (..., actuators) over the steps that begin at these times (...) in s."""
        found = [(self._integral(k, begin + step) - self._integral(k, begin)) / step for k in range(len(self._sums))]
        return np.stack(found, axis=-1)


def interpolated_start(trial: RecordedTrial, at: float, default: Floats) -> Floats:
    """Return the state (STATES) that the measurements suggest at a time; states that no channel measures have the
    default value. Positions and velocities are converted from the places of the instruments to the origin.
    """
    state = default.copy()
    assert len(state) == STATES
    converted = []
    for name, series in trial.channels.items():
        if (row := state_of(name)) is None or not len(series.time):
            continue
        near = np.abs(series.time - at) < 1.0
        if near.sum() >= 4:  # a line through the noise
            slope, level = np.polyfit(series.time[near] - at, series.value[near], 1)
            state[row] = level if abs(slope) < 1e3 else np.interp(at, series.time, series.value)
        else:
            state[row] = np.interp(at, series.time, series.value)
        if any(series.arm):
            converted.append((name, row, series.arm))
    turning = state.copy()
    turning[:ROLL] = turning[U:P] = 0.0
    for name, row, arm in converted:
        if row <= DOWN or U <= row < P:
            state[row] -= predicted(name, turning[:, None], np.zeros((3, 1)), arm)[0]
    return state
