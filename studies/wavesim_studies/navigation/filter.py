"""The reference filter: an error-state extended Kalman filter for an IMU, for whole runs and for live use.

design = FilterDesign(gyro_noise=1e-5, accelerometer_noise=1e-3, current=0.3)
track = estimate(design, design.start(p, v, q, sigma), imu, measurements, marks)
smoothed = track.smoothed()
"""

from __future__ import annotations

import bisect
import contextlib
import fcntl
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wavesim_kernels import cache as kernel_cache
from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_studies.navigation import forward_filter, measurement_models, smoother, strapdown
from wavesim_studies.navigation.innovation_monitor import InnovationMonitor, warn
from wavesim_studies.navigation.measurements import drop_pose, event_order, keep_pose, schedule

__all__ = ["Filter", "FilterDesign", "FilterState", "Track", "compile_filter", "estimate"]

SENSORS = 32  #: maximum number of sensors with separate counts of rejections
CLONES = 4
#: for each optional state: its index in the nominal state, and its size
OPTIONAL = {
    "current": (strapdown.CURRENT, 2),
    "clock": (strapdown.CLOCK, 2),
    "sound": (strapdown.SOUND, 1),
    "scale": (strapdown.SCALE, 1),
    "skew": (strapdown.SKEW, 3),
    "offset": (strapdown.OFFSET, 1),
    "mooring": (strapdown.MOORING, 2),
}


@dataclass(frozen=True)
class FilterDesign:
    """Assumed properties of the instruments, from which the filter is configured.

    Noise densities are per square root of a second. Time constants are in s; 0 means a random walk. Each optional
    state, such as ``current``, is declared by its initial standard deviation, and is active if this is not 0.
    """

    gyro_noise: float = 1e-5  #: noise density of the gyro in rad/sqrt(s)
    gyro_walk: float = 0.0  #: random walk of the gyro bias in rad/s/sqrt(s)
    gyro_time: float = 0.0
    #: noise density of the accelerometer in m/s/sqrt(s), as one number or three (axes of B)
    accelerometer_noise: float | tuple[float, float, float] = 1e-3
    accelerometer_walk: float = 0.0  #: random walk of the accelerometer bias in m/s2/sqrt(s)
    accelerometer_time: float = 0.0
    current: float = 0.0  #: water current in m/s, north and east
    current_walk: float = 0.0  #: random walk of the current in m/s/sqrt(s)
    current_time: float = 0.0
    #: offset of the vehicle's clock (positive = ahead), and the rate of this offset, both multiplied by the speed of
    #: sound (m, m/s)
    clock: tuple[float, float] = (0.0, 0.0)
    clock_walk: float = 0.0  #: random walk of the clock offset in m/sqrt(s)
    clock_drift: float = 0.0  #: random walk of the rate of the clock offset in m/s/sqrt(s)
    sound: float = 0.0  #: relative error of the assumed speed of sound
    sound_walk: float = 0.0
    scale: float = 0.0  #: relative scale error of the Doppler log
    scale_walk: float = 0.0
    skew: float = 0.0  #: misalignment of the Doppler log in rad
    offset: float = 0.0  #: offset of the depth in m
    offset_walk: float = 0.0
    mooring: float = 0.0  #: displacement (north, east) of all moored beacons, relative to their expected excursions
    gravity: float = 9.81  #: acceleration due to gravity in m/s2
    earth: tuple[float, float, float] = (0.0, 0.0, 0.0)  #: angular velocity of the Earth in W in rad/s
    #: whether the filter estimates, from the innovations, a factor for the noise of each sensor (0.25 to 4)
    adaptive: bool = False

    @functools.cached_property
    def optional_states(self) -> dict[str, Floats]:
        """Optional states that are active, with their initial standard deviations."""
        return {k: s for k, (_, n) in OPTIONAL.items() if (s := np.broadcast_to(getattr(self, k), n)).any()}

    @functools.cached_property
    def state_offsets(self) -> dict[str, slice]:
        """Slice of each state in the error vector."""
        found = {k: slice(3 * i, 3 * i + 3) for i, k in enumerate(("p", "v", "attitude", "gyro", "accelerometer"))}
        at = strapdown.BASE
        for k, s in self.optional_states.items():
            found[k] = slice(at, at + len(s))
            at += len(s)
        return found

    @functools.cached_property
    def size(self) -> int:
        """Size of the error vector without clones."""
        return max(s.stop for s in self.state_offsets.values())

    @functools.cached_property
    def state_indices(self) -> Any:
        """Indices of the optional states in the error vector, as the kernels expect them."""
        places = self.state_offsets
        return np.array([places[k].start if k in places else -1 for k in OPTIONAL], np.int64)

    @functools.cached_property
    def noise(self) -> Floats:
        """Noise densities and time constants, as the kernels expect them."""
        names = (
            "gyro_noise",
            "accelerometer",
            "gyro_walk",
            "accelerometer_walk",
            "current_walk",
            "clock_walk",
            "clock_drift",
            "sound_walk",
            "scale_walk",
            "offset_walk",
            "gyro_time",
            "accelerometer_time",
            "current_time",
        )
        along = np.broadcast_to(self.accelerometer_noise, 3)
        values = [float(along[0] if n == "accelerometer" else getattr(self, n)) for n in names]
        return np.array([*values, *along[1:]])

    @functools.cached_property
    def constants(self) -> strapdown.FilterConstants:
        """Constants of a run, as the kernels expect them."""
        return strapdown.FilterConstants(
            self.state_indices, self.gravity, np.array(self.earth), self.noise, self.adaptive
        )

    def start(self, time: float, p: Any, v: Any, q_WB: Any, sigma: Sequence[Any], clones: int = CLONES) -> FilterState:
        """Return an initial state from the position, velocity (both in W) and attitude of the IMU.

        ``sigma`` contains the standard deviations of position, velocity, attitude, gyro bias and accelerometer bias,
        each as one number or three. The optional states are initially 0.
        """
        x = np.zeros(strapdown.NOMINAL)
        x[0:3], x[3:6], x[6:10] = p, v, q_WB
        P = np.zeros((self.size + strapdown.CLONE * clones,) * 2)
        spread = np.concatenate([np.broadcast_to(s, 3) for s in sigma] + list(self.optional_states.values()))
        P[np.arange(self.size), np.arange(self.size)] = spread**2
        memory = np.zeros(strapdown.MEMORY)
        memory[:2] = time
        count = np.array([self.size, 0, 0], np.int64)
        adaptation = np.tile([1.0, 0.0], (SENSORS, 1))
        return FilterState(self, x, P, np.zeros((clones, 8)), count, memory, np.zeros(SENSORS, np.int64), adaptation)


@dataclass
class FilterState:
    """State of the filter at one time; see :mod:`strapdown` and :mod:`forward_filter`."""

    design: FilterDesign
    x: Floats
    P: Floats
    clones: Floats
    count: Any
    memory: Floats
    streak: Any
    adaptation: Floats

    @property
    def time(self) -> float:
        """Time of the state in s."""
        return float(self.memory[0])

    @property
    def p(self) -> Floats:
        """Position (3) of the IMU in W in m."""
        return self.x[:3]

    @property
    def covariance(self) -> Floats:
        """Covariance (n, n) of the error, without clones."""
        return self.P[: self.design.size, : self.design.size]

    def optional_state(self, name: str) -> Floats:
        """Return the value of an optional state."""
        a, n = OPTIONAL[name]
        return self.x[a : a + n]

    @property
    def arrays(self) -> strapdown.FilterArrays:
        """Arrays of the state, which the kernels modify in place."""
        return strapdown.FilterArrays(
            self.x, self.P, self.clones, self.count, self.memory, self.streak, self.adaptation
        )

    def copy(self) -> FilterState:
        """Return an independent copy of the state."""
        names = ("x", "P", "clones", "count", "memory", "streak", "adaptation")
        return replace(self, **{k: getattr(self, k).copy() for k in names})

    def noise_factor(self, sensor: int) -> float:
        """Return the factor by which the filter multiplies the assumed noise of a sensor; 1 if it does not adapt."""
        return float(self.adaptation[sensor, 0] ** 0.5)

    def run(self, imu: Floats, events: Floats, nodes: Floats, covariances: Floats, tape: Floats) -> Floats:
        """Advance the state through samples and events. Return the outcome of each event (E, OUTCOME_WIDTH)."""
        outcomes = np.full((len(events), measurement_models.OUTCOME_WIDTH), np.nan)
        output = forward_filter.RunOutput(outcomes, nodes, covariances, tape)
        forward_filter.run(imu, events, self.arrays, self.design.constants, output)
        return outcomes


@dataclass
class Track:
    """States of a filter or a smoother at marked times."""

    design: FilterDesign
    time: Floats  #: times (T) of the states in s
    x: Floats  #: nominal states (T, 28), one row per time
    #: covariances of the error (T, n, n); while ``tape`` exists, they include the clones (T, n, N)
    P: Floats
    events: Floats  #: events (E, WIDTH) that the filter has processed
    event_outcomes: Floats  #: outcome (E, OUTCOME_WIDTH) of each event
    final_state: FilterState
    tape: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def p(self) -> Floats:
        """Positions (T, 3) of the IMU in W in m."""
        return self.x[:, :3]

    @property
    def v(self) -> Floats:
        """Velocities (T, 3) of the IMU in W in m/s."""
        return self.x[:, 3:6]

    @property
    def q(self) -> Floats:
        """Attitudes (T, 4) as quaternions."""
        return self.x[:, 6:10]

    def at(self, lever: Any) -> Floats:
        """Return the positions (T, 3) of a point on the body. ``lever`` is the vector from the IMU to this point, in B."""
        return np.asarray(self.p + frames.rotation(self.q) @ np.asarray(lever, float))

    @property
    def covariance(self) -> Floats:
        """Covariances (T, n, n) of the error, without clones."""
        return self.P[:, :, : self.P.shape[1]]

    def optional(self, name: str) -> Floats:
        """Return the values (T, k) of an optional state."""
        place, size = OPTIONAL[name]
        return self.x[:, place : place + size]

    def error(self, p: Any, v: Any, q: Any, **others: Any) -> Floats:
        """Return the error (T, n) of the estimate: the correction that leads from the estimate to the truth.

        Pass the true values of ``gyro``, ``accelerometer`` and optional states by name. The errors of states that are
        not passed are NaN.
        """
        found = np.full((len(self.time), self.design.size), np.nan)
        found[:, 0:3], found[:, 3:6] = p - self.p, v - self.v
        R = np.einsum("tij,tkj->tik", frames.rotation(np.asarray(q)), frames.rotation(self.q))
        found[:, 6:9] = rotation_vector(R)
        values = {"gyro": self.x[:, 10:13], "accelerometer": self.x[:, 13:16]}
        for name, true in others.items():
            estimate_ = values[name] if name in values else self.optional(name)
            found[:, self.design.state_offsets[name]] = true - estimate_
        return found

    def smoothed(self) -> Track:
        """Return the track smoothed by later measurements. The track must have been computed with ``smooth=True``."""
        if not len(self.tape):
            raise ValueError("only a track created with smooth=True can be smoothed")
        x, P, d = self.x.copy(), self.P.copy(), self.design
        smoother.smooth(self.tape, self.final_state.count, d.constants, x, P)
        return replace(self, x=x, P=P[:, :, : d.size].copy(), tape=np.zeros(0))


def rotation_vector(R: Floats) -> Floats:
    """Return the rotation vectors (..., 3) in rad of rotation matrices (..., 3, 3). Rotations must be below half a
    turn.
    """
    axis = 0.5 * np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1)
    s = np.linalg.norm(axis, axis=-1)
    angle = np.arctan2(s, 0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0))
    return np.asarray(axis * np.where(s > 1e-9, angle / np.maximum(s, 1e-12), 1.0)[..., None])


def estimate(
    design: FilterDesign,
    start: FilterState,
    imu: Floats,
    measurements: Any,
    marks: Any,
    smooth: bool = False,
    monitor: InnovationMonitor | None = None,
    say: Callable[[str], object] | None = None,
) -> Track:
    """Run the filter over samples and measurements in chronological order, and return states at ``marks`` (s).

    ``imu`` (S, 7) contains the end time in s, the mean specific force and the mean rates in B since the previous
    sample. Three more columns (S, 10) replace ``accelerometer_noise`` along the axes of B during the sample. ``start``
    is not changed.

    ``say`` is called with a warning when the innovations of a sensor do not fit its assumed noise. Pass a ``monitor``
    that knows the names of the sensors.
    """
    state, events = start.copy(), schedule(measurements, marks)
    marks, n = np.asarray(marks, float), design.size
    trips = (events[:, measurement_models.KIND] == measurement_models.KEEP).any()
    if trips and not len(state.clones):
        raise ValueError("round trips require a start state with clones: set `clones` in start()")
    size = len(state.P) if smooth and trips else n
    if not trips:
        state.P, state.clones = np.ascontiguousarray(state.P[:n, :n]), state.clones[:0]
    taken = events[:, measurement_models.M].sum()
    tape = np.zeros(int(13 * (len(imu) + len(events)) + 16 * len(events) + taken * (2 * size + 8)) if smooth else 0)
    nodes, covariances = (
        np.full((len(marks), strapdown.NOMINAL), np.nan),
        np.full((len(marks), n, len(state.P)), np.nan),
    )
    outcomes = state.run(np.ascontiguousarray(imu, float), events, nodes, covariances, tape)
    for text in (monitor or InnovationMonitor(adaptive=design.adaptive)).add_outcomes(events, outcomes):
        (say or warn)(text)
    P = covariances if smooth else covariances[:, :, :n]
    return Track(design, marks, nodes, P, events, outcomes, state, tape)


def compile_filter() -> None:
    """Compile the filter unless it has already been compiled (about 10 s of processor time).

    If several processes start together, one of them compiles and the others wait.
    """
    folder = kernel_cache.cache_folder()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # without a writable folder each process compiles on its own
            folder.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((folder / "wavesim-navigation.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        made = Filter(FilterDesign().start(0.0, np.zeros(3), np.zeros(3), (1.0, 0.0, 0.0, 0.0), [1.0] * 5))
        made.sample(0.1, (0.0, 0.0, -9.81), np.zeros(3))


class Filter:
    """The filter for live use. It accepts samples in chronological order, and measurements with any delay.

    For a measurement that arrives late or refers to an earlier pose, the filter returns to a saved state. It then
    processes all later samples and measurements again, so that the result is the same as if each measurement
    had been on time.
    """

    def __init__(
        self,
        start: FilterState,
        memory: float = 10.0,
        every: float = 0.2,
        names: Sequence[str] | Mapping[int, str] = (),
        say: Callable[[str], object] | None = None,
    ) -> None:
        """Create a filter that saves its state every ``every`` seconds and can go back by at most ``memory`` seconds.

        ``say`` is called with a warning when the innovations of a sensor do not fit its assumed noise. A measurement
        contributes to the warnings only when it is older than ``memory``, because its outcome is then final. ``names``
        are the names of the sensors by number.
        """
        self.monitor, self.say = InnovationMonitor(names, adaptive=start.design.adaptive), say or warn
        self.state, self.memory, self.every = start.copy(), memory, every
        self.late_count = 0
        self._imu: list[Floats] = []
        self._events: list[Floats] = []  # in chronological order
        self._outcomes: list[Floats] = []  # outcomes of the processed events, in the same order
        self._requested_clones: set[float] = set()  # times whose clones are among the events
        self._saved_states = [self.state.copy()]
        self._counts: Counter[tuple[int, int]] = Counter()

    @property
    def time(self) -> float:
        """Time of the newest sample in s."""
        return self.state.time

    def sample(self, time: float, force: Any, rates: Any) -> None:
        """Add a sample from the IMU: the mean specific force and mean rates in B since the previous sample. ``time`` is the end of the
        interval.
        """
        self._imu.append(np.array([time, *force, *rates]))
        self._advance(self._imu[-1:])
        if time - self._saved_states[-1].time >= self.every:
            self._saved_states.append(self.state.copy())
            self._discard_before(time - self.memory)

    def add(self, *measurements: Floats) -> None:
        """Add measurements, with any times and in any order."""
        done, first, since = len(self._outcomes), len(self._events), self.time
        for row in measurements:
            wanted = [row]
            if (
                row[measurement_models.KIND] == measurement_models.ROUND_TRIP
                and row[measurement_models.ID] not in self._requested_clones
            ):
                wanted += [
                    keep_pose(row[measurement_models.ID]),
                    drop_pose(row[measurement_models.ID] + self.memory, row[measurement_models.ID]),
                ]
            earliest = min(r[measurement_models.T] for r in wanted)
            if earliest <= self._saved_states[0].time < self.time:
                self.late_count += 1
                continue
            since = min(since, earliest)
            for r in wanted:
                if r[measurement_models.KIND] == measurement_models.KEEP:
                    self._requested_clones.add(r[measurement_models.ID])
                at = bisect.bisect_right(self._events, event_order(r), key=event_order)
                self._events.insert(at, r)
                first = min(first, at)
        if since > self.time - 1e-9 and first >= done:
            self._advance([])
            if self._saved_states[-1].time == self.time:
                self._saved_states[-1] = self.state.copy()
            return
        del self._saved_states[max(i for i, s in enumerate(self._saved_states) if i == 0 or s.time < since) + 1 :]
        self.state = self._saved_states[-1].copy()
        del self._outcomes[self._first(self.time) :]
        again = [s for s in self._imu if s[0] > self.time + 1e-9]
        while again:
            k = 1
            while k < len(again) and again[k - 1][0] - self.time < self.every:
                k += 1
            self._advance(again[:k])
            self._saved_states.append(self.state.copy())
            del again[:k]

    def innovation(self, row: Floats) -> Floats:
        """Return the innovation (m) of a measurement, even if the measurement was rejected. The innovation is NaN if
        the measurement has not been processed yet, or was discarded.
        """
        m = int(row[measurement_models.M])
        for event, outcome in zip(reversed(self._events[: len(self._outcomes)]), reversed(self._outcomes), strict=True):
            if event is row:
                return outcome[6 : 6 + m]
        return np.full(m, np.nan)

    def counts(self, sensor: int) -> dict[str, int]:
        """Count the measurements of a sensor by outcome: accepted (``taken``), rejected (``refused``), or without
        information (``impossible``).
        """
        found = self._counts.copy()
        for row, outcome in zip(self._events, self._outcomes, strict=False):
            found[
                int(row[measurement_models.SENSOR]), int(np.sign(outcome[0])) if row[measurement_models.M] else 9
            ] += 1
        return {"taken": found[sensor, 1], "refused": found[sensor, 0], "impossible": found[sensor, -1]}

    def _first(self, time: float) -> int:
        """Return the index of the first event after a given time."""
        return bisect.bisect_right(self._events, time + 1e-9, key=_time)

    def _advance(self, samples: list[Floats]) -> None:
        a, b = len(self._outcomes), self._first(samples[-1][0] if samples else self.time)
        events = np.array(self._events[a:b]).reshape(-1, measurement_models.WIDTH)
        none = np.zeros((0, strapdown.NOMINAL)), np.zeros((0, 1, 1)), np.zeros(0)
        self._outcomes += list(self.state.run(np.array(samples).reshape(-1, 7), events, *none))

    def _discard_before(self, before: float) -> None:
        while len(self._saved_states) > 1 and self._saved_states[1].time <= before:
            del self._saved_states[0]
        since = self._saved_states[0].time
        k = self._first(since)
        for text in self.monitor.add_outcomes(np.array(self._events[:k]), np.array(self._outcomes[:k])):
            self.say(text)
        for row, outcome in zip(self._events[:k], self._outcomes[:k], strict=True):
            if row[measurement_models.M]:
                self._counts[int(row[measurement_models.SENSOR]), int(np.sign(outcome[0]))] += 1
            elif row[measurement_models.KIND] == measurement_models.KEEP:
                self._requested_clones.discard(row[measurement_models.ID])
        del self._events[:k], self._outcomes[:k]
        self._imu = [s for s in self._imu if s[0] > since]


def _time(row: Floats) -> float:
    """Return the time of an event in s."""
    return float(row[measurement_models.T])
