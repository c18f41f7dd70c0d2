"""Multiple shooting: residuals of many short segments of the logs, and their derivatives by parallel copies.

Each segment starts from a free state. Residuals are the differences between measured and simulated values over the
noise, the jumps of the state between one segment and the next, and the deviations from the priors. Forward differences
need one copy of every segment for each coefficient, each unknown input and each component of the state.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_sdk.errors import ConfigError, LogError
from wavesim_studies.identification import recorded_trials as rt
from wavesim_studies.identification.coefficients import ModelCoefficients
from wavesim_studies.identification.least_squares import robust_scale
from wavesim_studies.identification.model_copies import (
    DOWN,
    STATES,
    YAW,
    CopyInputs,
    ModelCopies,
    U,
    density_of,
    resting_depth,
)
from wavesim_studies.identification.recorded_trials import HeldCommands, RecordedTrial
from wavesim_studies.identification.unknowns import FittedUnknown
from wavesim_studies.navigation.metrics import robust_deviation, wrapped
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model

EPS = 1e-5  #: size of a forward difference of a standardised unknown
#: standard deviations of the jumps of the state between segments: position in m, attitude in rad, velocity in m/s,
#: angular velocity in rad/s
JUMPS = np.array([0.05] * 3 + [0.01] * 3 + [0.02] * 3 + [0.01] * 3)
#: standard deviations of a start state around the measurements
START = np.array([20.0] * 3 + [0.5] * 3 + [1.0] * 3 + [0.5] * 3)
#: standard deviations of components of a start state that no channel measures: those of a body near its equilibrium
UNSEEN = np.array([1.0] * 3 + [0.1, 0.1, 0.5] + [1.0, 0.3, 0.2] + [0.2, 0.2, 0.5])
KNOWN_SPEED = 0.05  #: standard deviation in m/s of an assumed start speed
#: the same for vehicles on the surface: they heave, roll and pitch little, but the surge at the origin depends on it
UNSEEN_AFLOAT = np.array([1.0, 1.0, 0.02] + [0.03, 0.03, 0.5] + [1.0, 0.3, 0.05] + [0.05, 0.05, 0.5])


@dataclass(frozen=True)
class ShootingOptions:
    """Settings of the shooting."""

    segment: float = 6.0  #: length of a segment in s
    step: float = 0.02  #: time step of the simulation in s
    period: float = 0.1  #: interval in s over which measurements are averaged
    gap: float = 2.0  #: length in s of a gap in the commands that ends a segment
    jump: float = 1.0  #: factor for the standard deviations of the jumps between segments; infinite = no link
    robust: bool = True  #: whether outliers count less than their squares
    world: str = ""  #: XML element `<world>`, or its content
    workers: int = 1


@dataclass(frozen=True)
class LogSegment:
    """Part of a log that is simulated from its own start state."""

    log: int
    begin: float  #: s
    steps: int
    follows: bool  #: whether the segment begins where the previous one ends


def segments_of(trial: RecordedTrial, log: int, options: ShootingOptions) -> list[LogSegment]:
    """Divide a log into segments of equal length. Segments do not cover gaps in the commands."""
    times = np.unique(np.concatenate([s.time for s in trial.commands.values()]))
    inside = times[(times > trial.begin) & (times < trial.end)]
    edges = np.concatenate([[trial.begin], inside, [trial.end]])
    wide = np.flatnonzero(np.diff(edges) > options.gap)
    parts = np.stack([np.r_[edges[0], edges[wide + 1]], np.r_[edges[wide] + options.gap, edges[-1]]], axis=1)
    made: list[LogSegment] = []
    for begin, end in parts:
        steps = int((min(end, trial.end) - begin) / options.step + 1e-6)
        count = max(1, round(steps * options.step / options.segment))
        if steps * options.step < 0.5:
            continue
        bounds = np.round(np.linspace(0, steps, count + 1)).astype(int)
        made += [
            LogSegment(log, begin + options.step * a, int(b - a), k > 0)
            for k, (a, b) in enumerate(itertools.pairwise(bounds))
        ]
    return made


@dataclass(frozen=True)
class ChannelValues:
    """Measured values of one channel of one log, with their places in the simulated segments."""

    channel: str
    log: int
    time: Floats
    value: Floats
    segment: Ints


class ShootingProblem:
    """Residuals and their derivatives for a model, logs and unknowns.

    The vector of unknowns begins with ``unknowns``, standardised by their priors. The free components of the start states
    of all segments follow, in units of ``JUMPS``, relative to what the measurements suggest.
    """

    def __init__(
        self,
        model: Model,
        trials: Sequence[RecordedTrial],
        unknowns: Sequence[FittedUnknown],
        options: ShootingOptions,
        assumed: dict[str, float] | None = None,
    ) -> None:
        self.model, self.options, self.unknowns = model, options, list(unknowns)
        self.trials = [t.averaged(options.period) for t in trials]
        self.assumed = assumed or {}
        self._coefficients = ModelCoefficients(model)
        self._actuators = tuple(a.name for a in actuators_of(model))
        self.segments = [s for k, t in enumerate(self.trials) for s in segments_of(t, k, options)]
        if not self.segments:
            raise LogError(f"{', '.join(t.name for t in trials)}: commands and measurements do not overlap")
        moving = ["uvwpqr".index(name) for name in model.active.split()]
        self.free = sorted([*moving, *(k + U for k in moving)])
        self.sigma = {c: _first_noise(self.trials, c) for c in self.channels}
        self._held = [HeldCommands(t.commands, self._actuators, np.zeros(len(self._actuators))) for t in self.trials]
        self._set_starts()
        self._set_measured({})
        lag = max([*(t.lag for t in model.thruster), *(f.lag for f in model.fin)], default=0.0)
        self._warm_up = round(min(20.0, 8.0 * lag + 1.0) / options.step)
        steps = max(s.steps for s in self.segments) + round(0.5 / options.step)
        self._steps = steps
        n = sum(len(v.value) for v in self.measured)
        #: mask of the residuals that may be outliers
        self.robust = self._robust_mask(n)

    @property
    def channels(self) -> list[str]:
        return list(dict.fromkeys(c for t in self.trials for c in t.channels))

    @property
    def size(self) -> int:
        """Number of unknowns, including the start states."""
        return len(self.unknowns) + len(self.segments) * len(self.free)

    @property
    def _links(self) -> int:
        linked = sum(s.follows for s in self.segments) if np.isfinite(self.options.jump) else 0
        return linked * len(self.free)

    def _robust_mask(self, measured: int) -> Mask:
        return np.arange(measured + self._links + self.size) < (measured if self.options.robust else 0)

    def _set_starts(self) -> None:
        """Derive the start states of all segments and their priors from the measurements."""
        model = self.model
        depth = resting_depth(model, density_of(self.options.world))
        starts, self._start_sd = [], np.zeros((STATES, len(self.segments)))
        for k, s in enumerate(self.segments):
            trial, default = self.trials[s.log], np.zeros(STATES)
            default[DOWN] = depth
            default[U] = self.assumed.get("speed", _usual_speed(trial))
            starts.append(rt.interpolated_start(trial, s.begin, default))
            seen = [row for c in trial.channels if (row := rt.state_of(c)) is not None]
            self._start_sd[:, k] = UNSEEN_AFLOAT if model.type == "surface" else UNSEEN
            self._start_sd[seen, k] = START[seen]
            if "speed" in self.assumed and U not in seen:
                self._start_sd[U, k] = KNOWN_SPEED
        self.starts = np.array(starts).T

    def _set_measured(self, shifts: dict[tuple[str, int], float]) -> None:
        """Assign measured values to segments, with clocks shifted by ``shifts`` (s), by channel and log."""
        self.measured: list[ChannelValues] = []
        for log, trial in enumerate(self.trials):
            mine = [(k, s) for k, s in enumerate(self.segments) if s.log == log]
            begins = np.array([s.begin for _, s in mine])
            ends = np.array([s.begin + s.steps * self.options.step for _, s in mine])
            for name, series in trial.channels.items():
                t = series.time + shifts.get((name, log), 0.0)
                at = np.searchsorted(begins, t + 1e-9, side="right") - 1
                keep = (at >= 0) & (t <= ends[np.maximum(at, 0)] + 1e-6) & np.isfinite(series.value)
                numbers = np.array([k for k, _ in mine], np.int64)[np.maximum(at, 0)]
                self.measured.append(ChannelValues(name, log, series.time[keep], series.value[keep], numbers[keep]))

    # ---------------------------------------------------------------- values of the unknowns

    def value(self, x: Floats, path: str, log: int) -> float:
        """Return the value of an unknown for one log. Quantities that are not unknown have their assumed value, or 0."""
        for k, u in enumerate(self.unknowns):
            if u.path == path and u.log in (-1, log):
                return u.value(float(x[k]))
        return self.assumed.get(path, 0.0)

    def coefficients(self, x: Floats) -> dict[str, float]:
        """Return the values of the fitted coefficients by path."""
        return {u.path: u.value(float(x[k])) for k, u in enumerate(self.unknowns) if u.kind == "coefficient"}

    def model_at(self, x: Floats) -> Model:
        """Return the model with the fitted coefficients."""
        values = self.coefficients(x)
        return self._coefficients.model_with(values) if values else self.model

    def start_states(self, x: Floats) -> Floats:
        """Return the start states (STATES, segments)."""
        found = self.starts.copy()
        offsets = x[len(self.unknowns) :].reshape(len(self.segments), len(self.free)).T
        found[self.free] += offsets * JUMPS[self.free, None]
        return found

    # ---------------------------------------------------------------- simulation

    def simulate(self, xs: Sequence[Floats], models: Sequence[Model], model_of: Sequence[int]) -> Floats:
        """Simulate all segments for several vectors of unknowns, each with one of the models. Return the states (times,
        STATES, vectors, segments).
        """
        n, v = len(self.segments), len(xs)
        copies = ModelCopies(
            models, np.repeat(np.array(model_of), n), self.options.step, self.options.world, self.options.workers
        )
        total = self._steps + self._warm_up
        commands = np.zeros((total, len(self._actuators), v, n))
        start, current, push = np.zeros((STATES, v, n)), np.zeros((3, v, n)), np.zeros((6, v, n))
        known: dict[tuple[float, ...], Floats] = {}
        for a, x in enumerate(xs):
            start[:, a] = self.start_states(x)
            for b, s in enumerate(self.segments):
                delay = self.value(x, "delay", s.log)
                offsets = tuple(self.value(x, f"offset/{name}", s.log) for name in self._actuators)
                if (b, delay, *offsets) not in known:
                    first = s.begin - delay - self._warm_up * self.options.step
                    times = first + self.options.step * np.arange(total, dtype=np.float64)
                    known[b, delay, *offsets] = self._held[s.log].means(times, self.options.step) + offsets
                commands[:, :, a, b] = known[b, delay, *offsets]
                current[0, a, b] = self.value(x, "current/north", s.log)
                current[1, a, b] = self.value(x, "current/east", s.log)
                push[0, a, b] = self.value(x, "push", s.log)
        self._current = current
        inputs = CopyInputs(_flat(start), _flat(commands), _flat(current), _flat(push), self._warm_up)
        return copies.run(inputs, 1).reshape(-1, STATES, v, n)

    def _at(self, values: ChannelValues, x: Floats) -> tuple[Ints, Floats]:
        """Return the index of the simulated time before each measured value, and the fraction of the interval after
        it.
        """
        shift = self.value(x, f"shift/{values.channel}", values.log)
        begins = np.array([s.begin for s in self.segments])[values.segment]
        at = (values.time + shift - begins) / self.options.step
        index = np.clip(np.floor(at).astype(np.int64), 0, self._steps - 1)
        return index, at - index

    def predictions(self, states: Floats, a: int, values: ChannelValues, x: Floats) -> Floats:
        """Return the values (M) that the channel would measure in the simulation of vector ``a``."""
        index, f = self._at(values, x)
        before, after = states[index, :, a, values.segment], states[index + 1, :, a, values.segment]
        at = (1.0 - f)[:, None] * before + f[:, None] * after
        arm = self.trials[values.log].channels[values.channel].arm
        found = rt.predicted(values.channel, at.T, self._current[:, a, values.segment], arm)
        return found + self.value(x, f"bias/{values.channel}", values.log)

    def _jumps(self, states: Floats, a: int, starts: Floats) -> Floats:
        """Return the jumps (links, free components) of the state from the end of a segment to the start of the next."""
        if not self._links:
            return np.zeros((0, len(self.free)))
        following = [k for k, s in enumerate(self.segments) if s.follows]
        ends = []
        for k in following:
            ends.append(states[self.segments[k - 1].steps, :, a, k - 1])
        jump = np.array(ends) - starts[:, following].T
        jump[:, YAW] = wrapped(jump[:, YAW])
        return np.asarray(jump[:, self.free] / (JUMPS[self.free] * self.options.jump), float)

    def _deviations(self, states: Floats, a: int, x: Floats) -> list[Floats]:
        """Return, for each part of ``measured``, measured minus simulated values, divided by their noise."""
        parts = []
        for values in self.measured:
            r = values.value - self.predictions(states, a, values, x)
            if values.channel == "heading":
                r = wrapped(r)
            parts.append(r / self.sigma[values.channel])
        return parts

    def _residuals(self, states: Floats, a: int, x: Floats) -> Floats:
        parts = self._deviations(states, a, x)
        starts = self.start_states(x)
        parts.append(self._jumps(states, a, starts).ravel())
        parts.append(x[: len(self.unknowns)])
        scale = (self._start_sd[self.free] / JUMPS[self.free, None]).T.ravel()
        parts.append(x[len(self.unknowns) :] / scale)
        return np.concatenate(parts)

    def residuals(self, x: Floats) -> Floats:
        """Return all residuals; infinite if the model cannot be simulated with these values."""
        try:
            model = self.model_at(x)
            return self._residuals(self.simulate([x], [model], [0]), 0, x)
        except (ConfigError, OverflowError):
            return np.full(len(self.robust), np.inf)

    def jacobian(self, x: Floats) -> tuple[Floats, sparse.csr_matrix]:
        """Return all residuals, and their derivatives by all unknowns. Raise ConfigError if the simulation diverges."""
        k, f, n = len(self.unknowns), len(self.free), len(self.segments)
        xs, models, model_of = [x], [self.model_at(x)], [0]
        for j, u in enumerate(self.unknowns):
            xs.append(_moved(x, [j]))
            if u.kind == "coefficient":
                models.append(self.model_at(xs[-1]))
            model_of.append(len(models) - 1 if u.kind == "coefficient" else 0)
        for i in range(f):  # the same component of the start states of all segments
            xs.append(_moved(x, [k + f * s + i for s in range(n)]))
            model_of.append(0)
        states = self.simulate(xs, models, model_of)
        base = self._residuals(states, 0, x)
        if not np.isfinite(base).all():
            raise ConfigError(
                f"the simulation of '{self.model.name}' diverges with these logs; use a smaller time step (--step), shorter "
                "segments (--segment) or better starts (PATH=START)"
            )
        rows: list[Ints] = []
        columns: list[Ints] = []
        entries: list[Floats] = []

        def add(row: Ints, column: Ints, entry: Floats) -> None:
            keep = entry != 0.0
            rows.append(row[keep])
            columns.append(column[keep])
            entries.append(entry[keep])

        fixed = [self._fixed_rows(states, a, xa) for a, xa in enumerate(xs)]
        count = len(fixed[0])
        segment_of = np.concatenate([v.segment for v in self.measured])
        following = (
            np.array([s for s in range(n) if self.segments[s].follows], np.int64)
            if self._links
            else np.zeros(0, np.int64)
        )
        segment_of = np.concatenate([segment_of, np.repeat(following - 1, f)])
        index = np.arange(count)
        for j in range(k):
            add(index, np.full(count, j), (fixed[1 + j] - fixed[0]) / EPS)
        for i in range(f):
            add(index, k + f * segment_of + i, (fixed[1 + k + i] - fixed[0]) / EPS)
        if self._links:
            first = count - self._links
            scale = 1.0 / self.options.jump
            for i in range(f):
                add(first + f * np.arange(len(following)) + i, k + f * following + i, np.full(len(following), -scale))
        prior = np.concatenate([np.ones(k), (JUMPS[self.free, None] / self._start_sd[self.free]).T.ravel()])
        add(count + np.arange(self.size), np.arange(self.size), prior)
        made = sparse.csr_matrix(
            (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), (len(base), self.size)
        )
        return base, made

    def _fixed_rows(self, states: Floats, a: int, x: Floats) -> Floats:
        """Return the residuals of vector ``a`` of a Jacobian without the priors. Jumps are relative to the start states of
        the first vector, because the derivative by the start of the next segment is known.
        """
        parts = self._deviations(states, a, x)
        base_starts = np.asarray(states[0, :, 0])
        parts.append(self._jumps(states, a, base_starts).ravel())
        return np.concatenate(parts)

    def rows_of(self, channel: str) -> Mask:
        """Return a mask of the residuals of one channel."""
        mask, first = np.zeros(len(self.robust), bool), 0
        for values in self.measured:
            mask[first : first + len(values.value)] = values.channel == channel
            first += len(values.value)
        return mask

    def update_noise(self, r: Floats) -> None:
        """Set the noise of each channel to the spread of its residuals ``r``, in units of the present noise."""
        for channel in self.channels:
            mine = r[self.rows_of(channel)]
            if len(mine):
                least = rt.LEAST_NOISE[rt.CHANNELS[channel].quantity]
                self.sigma[channel] = max(robust_scale(mine) * self.sigma[channel], least)

    def reassign(self, x: Floats) -> None:
        """Assign measured values to segments again after the shifts of clocks have changed."""
        shifts = {(u.target, u.log): u.value(float(x[k])) for k, u in enumerate(self.unknowns) if u.kind == "shift"}
        if shifts:
            self._set_measured(shifts)
            n = sum(len(v.value) for v in self.measured)
            self.robust = self._robust_mask(n)


def _flat(array: Floats) -> Floats:
    """Join the last two axes of an array."""
    return array.reshape(*array.shape[:-2], -1)


def _moved(x: Floats, which: list[int]) -> Floats:
    made = x.copy()
    made[which] += EPS
    return made


def _usual_speed(trial: RecordedTrial) -> float:
    """Return the mean speed in m/s over the trial, from positions or from the channel `speed`."""
    if "speed" in trial.channels:
        return float(np.mean(trial.channels["speed"].value))
    if "north" in trial.channels and "east" in trial.channels:
        t = np.arange(trial.begin, trial.end, 2.0)
        p = [np.interp(t, trial.channels[c].time, trial.channels[c].value) for c in ("north", "east")]
        return float(np.median(np.hypot(*np.diff(p, axis=1))) / 2.0) if len(t) > 1 else 0.0
    return 0.0


def _first_noise(trials: Sequence[RecordedTrial], channel: str) -> float:
    """Return the noise of a channel with which a fit begins: as stated or from the second differences of its values, but
    at least a tenth of its variation, because the model with its first values does not describe more.
    """
    series = [t.channels[channel] for t in trials if channel in t.channels]
    least = rt.LEAST_NOISE[rt.CHANNELS[channel].quantity]
    variation = float(np.nanstd(np.concatenate([s.value - np.nanmean(s.value) for s in series])))
    if stated := [s.sigma for s in series if s.sigma > 0.0]:
        return max(max(stated), least, 0.1 * variation)
    second = np.concatenate([np.diff(s.value, 2) for s in series])
    second = second[np.isfinite(second)]
    if not len(second):
        return max(least, 0.1 * variation)
    return max(float(robust_deviation(second) / np.sqrt(6.0)), least, 0.1 * variation)
