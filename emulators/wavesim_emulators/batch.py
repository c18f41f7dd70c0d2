"""Batches of instruments with equal parameters on any number of bodies: kinematics, mounting and noise."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk import frames
from wavesim_sdk.algebra import matmul, matvec, vecmat
from wavesim_sdk.arrays import Floats, Ints, Mask, Record
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.tables import WEATHER
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import SensorConfig
from wavesim_world.config.world import World
from wavesim_world.ocean.water import uniform_current

PREDRAWN_VALUES = 32  #: number of sensor values whose random numbers are drawn in one call
AHEAD_NUMBERS = 4096  #: maximum count of random numbers drawn in one call if each value needs several


class NoiseStreams:
    """Random numbers of some instruments, with a separate stream per instrument and purpose.

    Each number is a hash that depends on its tick, so it is known in advance. A NumPy call takes as long for a few
    numbers as for a hundred, so the numbers for the next values are drawn together with the requested ones.
    """

    def __init__(self, keys: Any, period: int) -> None:
        """``keys`` (n,) contains one key per instrument, which selects its random numbers. ``period`` is the number of
        ticks from one value to the next.
        """
        self._own, self._period = keys, period
        self._keys: dict[str, Any] = {}
        self._drawn: dict[tuple[Any, ...], tuple[int, Floats]] = {}  # purpose -> first tick, numbers (ticks, n, count)

    def __len__(self) -> int:
        return len(self._own)

    def __call__(self, purpose: str) -> Any:
        """Return one key per instrument, which selects its random numbers for this purpose."""
        if purpose not in self._keys:
            self._keys[purpose] = randomness.stream(self._own, purpose)
        return self._keys[purpose]

    def normal(self, purpose: str, tick: int, first: int, count: int) -> Floats:
        """Return standard normal numbers (n, count); the first one has the index ``first``."""
        return self._numbers(randomness.normal, purpose, tick, first, count)

    def uniform(self, purpose: str, tick: int, first: int, count: int) -> Floats:
        """Return uniform numbers in (0, 1), like :meth:`normal`."""
        return self._numbers(randomness.uniform, purpose, tick, first, count)

    def _numbers(self, law: Callable[..., Floats], purpose: str, tick: int, first: int, count: int) -> Floats:
        what = law, purpose, first, count
        begun, numbers = self._drawn.get(what, (0, ()))
        ahead, rest = divmod(tick - begun, self._period)
        if rest or not 0 <= ahead < len(numbers):
            # an emulator at its own pace skips ticks: drawing ahead would be wasted
            follows = not rest and ahead == len(numbers)
            more = max(1, min(PREDRAWN_VALUES, AHEAD_NUMBERS // max(1, len(self) * count))) if follows else 1
            ticks = tick + self._period * np.arange(more)
            numbers = law(self(purpose)[:, None], ticks[:, None, None], np.arange(first, first + count))
            numbers.flags.writeable = False  # callers get them without a copy
            self._drawn[what], ahead = (tick, numbers), 0
        return np.asarray(numbers[ahead])


class Noise:
    """Random numbers for some instruments at one tick, for one purpose."""

    def __init__(self, streams: NoiseStreams, tick: int, scale: Any, purpose: str = "value") -> None:
        self.streams, self.tick, self.purpose = streams, tick, purpose
        self.scale = np.broadcast_to(np.asarray(scale, float), len(streams))
        self.is_zero = not self.scale.any()

    @property
    def keys(self) -> Any:
        """Keys, one per instrument, that select the random numbers for the purpose of this noise."""
        return self.streams(self.purpose)

    def __call__(self, index: int) -> Floats:
        """Return one standard normal number per instrument, times the sensor's noise factor. ``index`` distinguishes
        the quantities of a sensor.
        """
        return self.normals(1, index)[:, 0]

    def normals(self, count: int, index: int = 0) -> Floats:
        """Return ``count`` normal numbers per instrument (n, count), starting with number ``index``, times the noise
        factor.
        """
        if self.is_zero:
            return np.zeros((len(self.scale), count))
        return np.asarray(self.scale[:, None] * self.streams.normal(self.purpose, self.tick, index, count))

    def uniform(self, index: int = 0) -> Floats:
        """Return one uniform number in (0, 1) per instrument. It does not depend on the noise factor."""
        return self.streams.uniform(f"{self.purpose} chance", self.tick, index, 1)[:, 0]

    def for_purpose(self, purpose: str) -> Noise:
        """Return the random numbers for another purpose, which are independent of these."""
        return Noise(self.streams, self.tick, self.scale, purpose)


class SensorKinematics(NamedTuple):
    """Poses and motion of sensors: position and velocity in W, rotations, angular velocity in B."""

    p_WS_W: Floats
    R_WB: Floats
    R_WS: Floats
    v_WS_W: Floats
    w_WB_B: Floats


class Mounting:
    """Mounts of sensors on their bodies: one mount if all are equal, otherwise one row for each sensor."""

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
        """Return the lever arms of the sensors in W (n, 3)."""
        return np.asarray(matvec(R_WB, self.lever))

    def velocity_B(self, v_B: Floats, w_B: Floats) -> Floats:
        """Return the velocities in B of the sensors, from the velocities (n, 3) of the body origins."""
        turning = vecmat(w_B, self._cross)
        return np.asarray(v_B + turning)

    def to_sensor_frame(self, vectors_B: Floats) -> Floats:
        """Transform vectors (n, 3) from B to S."""
        if not self.is_rotated:
            return vectors_B
        return np.asarray(vecmat(vectors_B, self.R_BS))


class Batch:
    """Instruments with equal parameters at one tick. Arrays have one row per instrument.

    The names, mounts and noise of the instruments may differ, so ``parameters`` contains none of these. ``prepared`` is
    the result of the emulator's ``prepare``. ``rows`` are the rows of the bodies, and ``state`` their motion. ``fresh``
    marks instruments without an earlier value.
    """

    def __init__(
        self,
        parameters: Any,
        prepared: Any,
        mounting: Mounting,
        period: int,
        view: FleetSnapshot,
        rows: Ints,
        noise: Noise,
        fresh: Mask,
        since: Floats,
        fault: Any,
        fault_amount: Any,
        weather: Any,
        table_rows: Ints,
    ) -> None:
        self.parameters, self.prepared, self.mounting = parameters, prepared, mounting
        self.period = period  #: number of ticks from one value to the next
        self.view, self.rows, self.noise, self.fresh = view, rows, noise, fresh
        self.tick, self.time_ns = view.tick, view.time_ns
        self.since = since  #: time in s since the last value, for types that have a state; 0 = no earlier value
        self.fault, self.fault_amount, self.weather = fault, fault_amount, weather
        self.table_rows = table_rows  #: rows of the instruments in the table of the sensor type

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def time(self) -> float:
        """Simulation time in s."""
        return self.time_ns * 1e-9

    @functools.cached_property
    def state(self) -> Record:
        return self.view.state.take(self.rows)  # ten times as fast as indexing

    @functools.cached_property
    def R_WB(self) -> Floats:
        return frames.rotation(self.state["q_WB"])

    @functools.cached_property
    def p_WS_W(self) -> Floats:
        """Positions of the sensors in W (n, 3)."""
        return np.asarray(self.state["p_WB_W"] + self.mounting.lever_W(self.R_WB))

    @functools.cached_property
    def depth(self) -> Floats:
        """Depths in m of the sensors below the water surface at this tick; negative in air."""
        return np.asarray(self.p_WS_W[:, 2] + self.weather["level"])

    @functools.cached_property
    def R_WS(self) -> Floats:
        return np.asarray(matmul(self.R_WB, self.mounting.R_BS)) if self.mounting.is_rotated else self.R_WB

    @functools.cached_property
    def mounted(self) -> SensorKinematics:
        """Pose and motion of the sensors."""
        state = self.state
        speed = self.mounting.velocity_B(state["v_WB_B"], state["w_WB_B"])
        v_WS_W = matvec(self.R_WB, speed)
        return SensorKinematics(self.p_WS_W, self.R_WB, self.R_WS, v_WS_W, state["w_WB_B"])


class Measuring(Protocol):
    """The part of an emulator that a :class:`~wavesim_emulators.sensor_bank.SensorBank` calls."""

    @property
    def sensor(self) -> str: ...

    @property
    def loaded(self) -> LoadedConfig: ...

    def prepare(self, parameters: Any) -> Any: ...

    def begin(self, view: FleetSnapshot, weather: Any) -> None: ...

    def measure(self, now: Batch, out: Record) -> None: ...


def steady_weather(world: World, time_s: float) -> Record:
    """Return the configured weather, without gusts, drift and the slowly varying part of the wind."""
    w = np.zeros(1, WEATHER.dtype)
    w["current_W"] = uniform_current(world.current, time_s)
    w["wind_speed"], w["wind_direction"] = world.wind.mean, world.wind.direction
    w["level"] = world.tide.level(time_s)
    record: Record = w[0]
    return record
