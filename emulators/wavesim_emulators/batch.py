"""Batches of instruments with equal parameters on any number of bodies: kinematics, mounting and noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wavesim_emulators import bank_kernels
from wavesim_kernels import randomness
from wavesim_sdk import frames
from wavesim_sdk.algebra import covariance_factor, matvec, vecmat
from wavesim_sdk.arrays import Floats, Mask, Record, as_numbers
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.tables import WEATHER
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import InstrumentConfig, SensorConfig
from wavesim_world.config.world import World
from wavesim_world.ocean.water import uniform_current

KeyedInstrument = tuple[InstrumentConfig, int]  #: an instrument and the key of its random numbers


class NoiseStreams:
    """Random numbers for some instruments, with a separate stream per instrument and purpose.

    Each number is a hash of its stream, its tick and its index.
    """

    def __init__(self, keys: Any) -> None:
        """``keys`` (n,) contains one key per instrument, which selects its random numbers."""
        self._own = keys
        self._keys: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._own)

    def __call__(self, purpose: str) -> Any:
        """Return one key per instrument, which selects its random numbers for this purpose."""
        if purpose not in self._keys:
            self._keys[purpose] = randomness.stream(self._own, purpose)
        return self._keys[purpose]


class Noise:
    """Random numbers for some instruments at one tick, for one purpose."""

    def __init__(self, streams: NoiseStreams, tick: int, scale: Any, purpose: str = "value") -> None:
        self.streams, self.tick, self.purpose = streams, tick, purpose
        self.scale: Floats = scale if isinstance(scale, np.ndarray) else np.full(len(streams), scale, float)

    @property
    def keys(self) -> Any:
        """Keys of the streams of random numbers, one per instrument."""
        return self.streams(self.purpose)

    def __call__(self, index: int) -> Floats:
        """Return one standard normal random number per instrument, multiplied by the sensor's noise factor. ``index``
        distinguishes the quantities of a sensor.
        """
        return self.normals(1, index)[:, 0]

    def normals(self, count: int, index: int = 0) -> Floats:
        """Return ``count`` standard normal random numbers per instrument (n, count), multiplied by the noise factor.
        The index of the first number is ``index``.
        """
        found = np.empty((len(self.scale), count))
        bank_kernels.fill_normals(self.streams(self.purpose), self.scale, self.tick, index, found)
        return found

    def uniform(self, index: int = 0) -> Floats:
        """Return one uniform random number in (0, 1) per instrument. It does not depend on the noise factor."""
        return self.uniforms(1, index)[:, 0]

    def uniforms(self, count: int, index: int = 0) -> Floats:
        """Return ``count`` uniform random numbers in (0, 1) per instrument (n, count). The index of the first number is
        ``index``.
        """
        found = np.empty((len(self.scale), count))
        bank_kernels.fill_uniforms(self.streams(f"{self.purpose} chance"), self.tick, index, found)
        return found

    def for_purpose(self, purpose: str) -> Noise:
        """Return random numbers for another purpose. They are independent of the numbers for this purpose."""
        return Noise(self.streams, self.tick, self.scale, purpose)


class CovarianceNoise:
    """Errors of a vector with a declared covariance (nine numbers). If none is declared, ``factor`` is None."""

    def __init__(self, declared: Sequence[float]) -> None:
        self.factor: Floats | None = covariance_factor(np.reshape(declared, (3, 3))) if declared else None

    def errors(self, normals: Floats, otherwise: Any) -> Floats:
        """Convert standard normal numbers (n, 3) to errors: with the declared covariance or, without one, with the
        standard deviations ``otherwise``.
        """
        return np.asarray(otherwise * normals if self.factor is None else matvec(self.factor, normals))


class SensorKinematics(NamedTuple):
    """Poses and motion of sensors: position and velocity in W, rotations, angular velocity in B."""

    p_WS_W: Floats
    R_WB: Floats
    R_WS: Floats
    v_WS_W: Floats
    w_WB_B: Floats


class Mounting:
    """Mounts of sensors on their bodies: a single row if all mounts are equal, otherwise one row per sensor."""

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
        #: positions, and rotation matrices in row-major order, for kernels; one entry if all sensors have the same
        #: mount, otherwise one per sensor
        self.levers, self.rotations = self.lever.reshape(-1, 3), np.ascontiguousarray(self.R_BS).reshape(-1, 9)

    def velocity_B(self, v_B: Floats, w_B: Floats) -> Floats:
        """Return the velocities of the sensors in B, computed from the velocities (n, 3) of the body origins."""
        turning = vecmat(w_B, self._cross)
        return np.asarray(v_B + turning)

    def to_sensor_frame(self, vectors_B: Floats) -> Floats:
        """Transform vectors (n, 3) from B to S."""
        if not self.is_rotated:
            return vectors_B
        return np.asarray(vecmat(vectors_B, self.R_BS))


class Batch:
    """Instruments with equal parameters, processed tick by tick. Arrays have one row per instrument.

    The names, mounts and noise of the instruments may differ, so ``parameters`` contains none of these. ``prepared`` is
    the result of the emulator's ``prepare``. ``rows`` are the rows of the bodies, and ``state`` their motion. ``fresh``
    marks instruments without an earlier value.
    """

    view: FleetSnapshot
    weather: Any  #: record of the `weather` table
    level: float  #: height of the water surface above the mean, m
    tick: int
    time_ns: int
    noise: Noise

    def __init__(
        self,
        parameters: Any,
        prepared: Any,
        period: int,
        entries: Record,
        fitted: Sequence[KeyedInstrument],
        values: Record,
    ) -> None:
        """Create a batch of the instruments ``fitted``, each with the key of its random numbers.

        ``entries`` contains their rows in the `instruments` table, and ``values`` (n,) their newest values.
        """
        self.parameters, self.prepared = parameters, prepared
        self.period = period  #: number of ticks from one value to the next
        #: rows of the bodies; rows of the instruments in the table of the sensor type
        self.rows, self.table_rows = entries["body"].copy(), entries["place"].copy()
        #: faults of the instruments (values of :class:`~wavesim_sdk.tables.SensorFault`) and their magnitudes
        self.fault, self.fault_amount = entries["fault"], entries["fault_amount"]
        self.has_faults = bool(self.fault.any())
        self.mounting = Mounting([i.parameters for i, _ in fitted])
        streams = NoiseStreams(np.array([key for _, key in fitted], np.uint64))
        self._noise = Noise(streams, 0, np.array([i.parameters.noise for i, _ in fitted], float))
        self.fresh: Mask = values["generation"] != entries["generation"]
        self.since: Floats = np.zeros(len(fitted))  #: time in s since the last value, for types that have a state
        self._values, self._numbers = values, as_numbers(values)
        self._state: Record | None = None
        self._poses: Floats | None = None

    def begin(self, view: FleetSnapshot, weather: Any, level: float) -> None:
        """Begin a tick."""
        self.view, self.weather, self.level = view, weather, level
        self.tick, self.time_ns = view.tick, view.time_ns
        self.noise, self.noise.tick = self._noise, self.tick
        self._state = self._poses = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def state_numbers(self) -> Floats:
        """The `state` table as a matrix of numbers, for kernels; the attribute ``rows`` selects the rows of the
        bodies.
        """
        return self.view.state_numbers

    @property
    def time(self) -> float:
        """Simulation time in s."""
        return self.time_ns * 1e-9

    @property
    def state(self) -> Record:
        if self._state is None:
            self._state = self.view.state.take(self.rows)  # ten times as fast as indexing
        return self._state

    @property
    def poses(self) -> Floats:
        """Poses and motion of the sensors (n, POSE_COLUMNS), for kernels."""
        if self._poses is None:
            m, rows = self.mounting, self.rows
            self._poses = np.empty((len(rows), bank_kernels.POSE_COLUMNS))
            bank_kernels.fill_poses(
                self.view.state_numbers, rows, m.levers, m.rotations, m.is_rotated, self.level, self._poses
            )
        return self._poses

    def numbers(self, out: Record) -> Floats:
        """Return a matrix of numbers for kernels: the values that :meth:`Emulator.measure` writes."""
        return self._numbers if out is self._values else as_numbers(out)

    @property
    def R_WB(self) -> Floats:
        return self.poses[:, bank_kernels.R_WB : bank_kernels.R_WB + 9].reshape(-1, 3, 3)

    @property
    def p_WS_W(self) -> Floats:
        """Positions of the sensors in W (n, 3)."""
        return self.poses[:, bank_kernels.PLACE : bank_kernels.PLACE + 3]

    @property
    def depth(self) -> Floats:
        """Depths in m of the sensors below the water surface at this tick; negative in air."""
        return self.poses[:, bank_kernels.DEPTH]

    @property
    def R_WS(self) -> Floats:
        return self.poses[:, bank_kernels.R_WS : bank_kernels.R_WS + 9].reshape(-1, 3, 3)

    @property
    def mounted(self) -> SensorKinematics:
        """Pose and motion of the sensors."""
        v_WS_W = self.poses[:, bank_kernels.SPEED : bank_kernels.SPEED + 3]
        return SensorKinematics(self.p_WS_W, self.R_WB, self.R_WS, v_WS_W, self.state["w_WB_B"])


class Measuring(Protocol):
    """Interface through which a :class:`~wavesim_emulators.sensor_bank.SensorBank` calls an emulator."""

    @property
    def sensor(self) -> str: ...

    @property
    def loaded(self) -> LoadedConfig: ...

    def prepare(self, parameters: Any) -> Any: ...

    def begin(self, view: FleetSnapshot, weather: Any) -> None: ...

    def measure(self, now: Batch, out: Record) -> None: ...


def steady_weather(world: World, time_s: float) -> Record:
    """Return the configured weather, without gusts, drift or the slowly varying component of the wind."""
    w = np.zeros(1, WEATHER.dtype)
    w["current_W"] = uniform_current(world.current, time_s)
    w["wind_speed"], w["wind_direction"] = world.wind.mean, world.wind.direction
    w["level"] = world.tide.level(time_s)
    record: Record = w[0]
    return record
