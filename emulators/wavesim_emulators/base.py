"""The base of every emulator: how the values of a type of sensor follow from the motion of the bodies that carry it.

A new emulator names its type and says how values follow from poses::

    class Depth(Emulator):
        sensor = "depth"
        def measure(self, now, out):
            out["depth"] = now.mounted.p_WS_W[:, 2] + 0.01 * now.noise(0)

``now`` holds instruments of equal parameters on any number of bodies, ``out`` a row for each of them.  Who has such an
instrument, how often it is due, latency, drop-outs, faults at run time and hot swap are the affair of
:class:`~wavesim_emulators.sensor_bank.SensorBank`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from wavesim_sdk import frames, randomness
from wavesim_sdk.algebra import matmul, matvec, vecmat
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.config import LoadedConfig
from wavesim_sdk.config.sensors import SensorConfig
from wavesim_sdk.config.world import World
from wavesim_sdk.ocean.water import uniform_current
from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.shared_memory import Record
from wavesim_sdk.tables import WEATHER

if TYPE_CHECKING:
    from wavesim_emulators.sensor_bank import SensorBank

Rows = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

PREDRAWN_VALUES = 32  #: values for which random numbers are drawn at a time
AHEAD_NUMBERS = 4096  #: at most so many at a time, where there are several


class NoiseStreams:
    """Random numbers of some instruments: a stream of its own for each and for each purpose.

    A number is known long before its tick (it is a hash of that), and a call of NumPy costs as much for a few numbers as for a
    hundred: so those of the next values are drawn together with the one that is asked for.
    """

    def __init__(self, keys: Any, period: int) -> None:
        """``keys`` of the instruments (n,); ``period``: ticks from one value to the next."""
        self._own, self._period = keys, period
        self._keys: dict[str, Any] = {}
        self._drawn: dict[tuple[Any, ...], tuple[int, Floats]] = {}  # what -> first tick, numbers (ticks, n, count)

    def __len__(self) -> int:
        return len(self._own)

    def __call__(self, purpose: str) -> Any:
        """Keys of the instruments for a purpose."""
        if purpose not in self._keys:
            self._keys[purpose] = randomness.stream(self._own, purpose)
        return self._keys[purpose]

    def normal(self, purpose: str, tick: int, first: int, count: int) -> Floats:
        """Standard normal numbers (n, count), the first of which has the index ``first``."""
        return self._numbers(randomness.normal, purpose, tick, first, count)

    def uniform(self, purpose: str, tick: int, first: int, count: int) -> Floats:
        """The same in (0, 1)."""
        return self._numbers(randomness.uniform, purpose, tick, first, count)

    def _numbers(self, law: Callable[..., Floats], purpose: str, tick: int, first: int, count: int) -> Floats:
        what = law, purpose, first, count
        begun, numbers = self._drawn.get(what, (0, ()))
        ahead, rest = divmod(tick - begun, self._period)
        if rest or not 0 <= ahead < len(numbers):
            follows = not rest and ahead == len(numbers)  # who asks for any tick, at its own pace, asks for no other
            more = max(1, min(PREDRAWN_VALUES, AHEAD_NUMBERS // max(1, len(self) * count))) if follows else 1
            ticks = tick + self._period * np.arange(more)
            numbers = law(self(purpose)[:, None], ticks[:, None, None], np.arange(first, first + count))
            numbers.flags.writeable = False  # they are handed out as they are
            self._drawn[what], ahead = (tick, numbers), 0
        return np.asarray(numbers[ahead])


class Noise:
    """Random numbers for some instruments at one tick, of one purpose."""

    def __init__(self, streams: NoiseStreams, tick: int, scale: Any, purpose: str = "value") -> None:
        self.streams, self.tick, self.purpose = streams, tick, purpose
        self.scale = np.broadcast_to(np.asarray(scale, float), len(streams))
        self.is_zero = not self.scale.any()

    @property
    def keys(self) -> Any:
        """Of the instruments."""
        return self.streams(self.purpose)

    def __call__(self, index: int) -> Floats:
        """One standard normal number for each, times the sensor's factor; ``index`` tells its quantities apart."""
        return self.normals(1, index)[:, 0]

    def normals(self, count: int, index: int = 0) -> Floats:
        """``count`` of them for each (n, count), from ``index`` on."""
        if self.is_zero:
            return np.zeros((len(self.scale), count))
        return np.asarray(self.scale[:, None] * self.streams.normal(self.purpose, self.tick, index, count))

    def uniform(self, index: int = 0) -> Floats:
        """One uniform number in (0, 1) for each, whatever the factor."""
        return self.streams.uniform(f"{self.purpose} chance", self.tick, index, 1)[:, 0]

    def for_purpose(self, purpose: str) -> Noise:
        """Numbers for another purpose, that have nothing to do with these."""
        return Noise(self.streams, self.tick, self.scale, purpose)


class SensorKinematics(NamedTuple):
    """Where sensors are: position and velocity in W, rotations, angular velocity in B."""

    p_WS_W: Floats
    R_WB: Floats
    R_WS: Floats
    v_WS_W: Floats
    w_WB_B: Floats


class Mounting:
    """Place and attitude of some sensors on their bodies: one for all of them if they have the same, else a row for each."""

    def __init__(self, declared: Sequence[SensorConfig]) -> None:
        places, attitudes = ([getattr(s, name) for s in declared] for name in ("position", "attitude"))
        self.lever = np.array(places[0] if len(set(places)) == 1 else places, float)
        self.is_rotated = any(map(any, attitudes))
        turns = [frames.rotation(frames.quaternion(*a)) for a in dict.fromkeys(attitudes)]
        at = {a: k for k, a in enumerate(dict.fromkeys(attitudes))}
        self.R_BS = turns[0] if len(turns) == 1 else np.array(turns)[[at[a] for a in attitudes]]
        self._cross = np.zeros((*self.lever.shape, 3))  # w x lever = w @ this
        for i, j, k, sign in ((0, 1, 2, -1), (0, 2, 1, 1), (1, 0, 2, 1), (1, 2, 0, -1), (2, 0, 1, -1), (2, 1, 0, 1)):
            self._cross[..., i, j] = sign * self.lever[..., k]

    def lever_W(self, R_WB: Floats) -> Floats:
        """The arms in W (n, 3)."""
        return np.asarray(matvec(R_WB, self.lever))

    def velocity_B(self, v_B: Floats, w_B: Floats) -> Floats:
        """Velocity in B of the sensor's place, for velocities (n, 3) of the body's origin."""
        turning = vecmat(w_B, self._cross)
        return np.asarray(v_B + turning)

    def to_sensor_frame(self, vectors_B: Floats) -> Floats:
        """Vectors (n, 3) of B in S."""
        if not self.is_rotated:
            return vectors_B
        return np.asarray(vecmat(vectors_B, self.R_BS))


class Batch:
    """Instruments of equal parameters at one tick: arrays have one row for each.

    Their names, places, attitudes and noise may differ: ``parameters`` has none of them.  ``prepared`` is what the emulator made of the parameters, ``rows`` are the rows of the bodies, ``state`` their motion,
    ``fresh`` says which instruments have no value before this one.
    """

    def __init__(
        self, parameters: Any, prepared: Any, mounting: Mounting, period: int, view: FleetSnapshot, rows: Rows, noise: Noise,
        fresh: Flags, since: Floats, fault: Any, fault_amount: Any, weather: Any, table_rows: Rows,
    ) -> None:  # fmt: skip
        self.parameters, self.prepared, self.mounting = parameters, prepared, mounting
        self.period = period  #: ticks from one value to the next
        self.view, self.rows, self.noise, self.fresh = view, rows, noise, fresh
        self.tick, self.time_ns = view.tick, view.time_ns
        self.since = since  #: s since the last value, of types that keep a state; 0 = none before
        self.fault, self.fault_amount, self.weather = fault, fault_amount, weather
        self.table_rows = table_rows  #: rows of the type's table

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def time(self) -> float:
        """Simulation time in s."""
        return self.time_ns * 1e-9

    @functools.cached_property
    def state(self) -> Record:
        return self.view.state.take(self.rows)  # ten times as fast as an index

    @functools.cached_property
    def R_WB(self) -> Floats:
        return frames.rotation(self.state["q_WB"])

    @functools.cached_property
    def p_WS_W(self) -> Floats:
        """Where the sensors are."""
        return np.asarray(self.state["p_WB_W"] + self.mounting.lever_W(self.R_WB))

    @functools.cached_property
    def depth(self) -> Floats:
        """Depth of the sensors below the water as it stands now; negative in the air."""
        return np.asarray(self.p_WS_W[:, 2] + self.weather["level"])

    @functools.cached_property
    def R_WS(self) -> Floats:
        return np.asarray(matmul(self.R_WB, self.mounting.R_BS)) if self.mounting.is_rotated else self.R_WB

    @functools.cached_property
    def mounted(self) -> SensorKinematics:
        """Place, attitude and motion of the sensors."""
        state = self.state
        speed = self.mounting.velocity_B(state["v_WB_B"], state["w_WB_B"])
        v_WS_W = matvec(self.R_WB, speed)
        return SensorKinematics(self.p_WS_W, self.R_WB, self.R_WS, v_WS_W, state["w_WB_B"])


class Emulator:
    """Computes the values of one type of sensor. It keeps nothing between two values: a state belongs into hidden columns of
    the sensor's table, where a process that takes over finds it."""

    sensor: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()  #: more tables of shared memory, of the same tick

    def __init__(self, loaded: LoadedConfig) -> None:
        self.loaded = loaded

    def prepare(self, parameters: Any) -> Any:
        """What follows from the parameters alone; done once for instruments of equal parameters."""
        return None

    def sensor_bank(self, seed: int, count: int) -> SensorBank:
        """All instruments of this type, with a table of their own of so many rows: for who has no server."""
        from wavesim_emulators.sensor_bank import SensorBank

        return SensorBank(self, seed, np.zeros(count, sensor_table_of(self.sensor).dtype))

    def open(self, server: str) -> None:
        """Called once in a process that serves a running server: for what an emulator writes beside its table."""

    def begin(self, view: FleetSnapshot, weather: Any) -> None:
        """Called once at each tick, before :meth:`measure`."""

    def measure(self, now: Batch, out: Record) -> None:
        """Write the values into the columns of ``out``; ``out["valid"]`` is 1 before the call, 0 means there is no value.

        ``out`` holds the last value, and in its hidden columns the state that belongs to it: zeros where ``now.fresh``.
        """
        raise NotImplementedError(f"{type(self).__name__} computes nothing")


def steady_weather(world: World, time_s: float) -> Record:
    """The weather without gusts, drift and slow wind."""
    w = np.zeros(1, WEATHER.dtype)
    w["current_W"] = uniform_current(world.current, time_s)
    w["wind_speed"], w["wind_direction"] = world.wind.mean, world.wind.direction
    w["level"] = world.tide.level(time_s)
    record: Record = w[0]
    return record
