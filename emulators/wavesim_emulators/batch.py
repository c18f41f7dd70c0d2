"""Batches of instruments with equal parameters on any number of bodies: kinematics, mounting and noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from wavesim_emulators import bank_kernels
from wavesim_kernels import randomness
from wavesim_sdk import frames
from wavesim_sdk.algebra import vecmat
from wavesim_sdk.arrays import Floats, Ints, Mask, Record, as_numbers
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.tables import WEATHER
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import SensorConfig
from wavesim_world.config.world import World
from wavesim_world.ocean.water import uniform_current


class NoiseStreams:
    """Random numbers of some instruments, with a separate stream per instrument and purpose.

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
        found = np.empty((len(self.scale), count))
        bank_kernels.fill_normals(self.streams(self.purpose), self.scale, self.tick, index, found)
        return found

    def uniform(self, index: int = 0) -> Floats:
        """Return one uniform number in (0, 1) per instrument. It does not depend on the noise factor."""
        return self.uniforms(1, index)[:, 0]

    def uniforms(self, count: int, index: int = 0) -> Floats:
        """Return ``count`` uniform numbers in (0, 1) per instrument (n, count), starting with number ``index``."""
        found = np.empty((len(self.scale), count))
        bank_kernels.fill_uniforms(self.streams(f"{self.purpose} chance"), self.tick, index, found)
        return found

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
        #: positions, and rotations row by row, for kernels; one row if all sensors have the same mount, otherwise one row per sensor
        self.levers, self.rotations = self.lever.reshape(-1, 3), np.ascontiguousarray(self.R_BS).reshape(-1, 9)

    def velocity_B(self, v_B: Floats, w_B: Floats) -> Floats:
        """Return the velocities in B of the sensors, from the velocities (n, 3) of the body origins."""
        turning = vecmat(w_B, self._cross)
        return np.asarray(v_B + turning)

    def to_sensor_frame(self, vectors_B: Floats) -> Floats:
        """Transform vectors (n, 3) from B to S."""
        if not self.is_rotated:
            return vectors_B
        return np.asarray(vecmat(vectors_B, self.R_BS))


class TickTables(NamedTuple):
    """Tables that instruments read at a tick."""

    view: FleetSnapshot
    weather: Any  #: record of the table `weather`
    state_numbers: Floats  #: the table `state` as a matrix of numbers
    level: float  #: height of the water surface above the mean, m


class Members(Protocol):
    """The instruments of a batch, which stay the same from tick to tick."""

    parameters: Any
    prepared: Any
    period: int
    mounting: Mounting
    noise: Floats
    streams: NoiseStreams
    bodies: Ints
    table_rows: Ints
    fresh: Mask
    entries: Any  #: rows of the table `instruments`
    has_faults: bool
    zeros: Floats
    values: Record  #: newest value of each
    numbers: Floats  #: view of the values


class Batch:
    """Instruments with equal parameters at one tick. Arrays have one row per instrument.

    The names, mounts and noise of the instruments may differ, so ``parameters`` contains none of these. ``prepared`` is
    the result of the emulator's ``prepare``. ``rows`` are the rows of the bodies, and ``state`` their motion. ``fresh``
    marks instruments without an earlier value.
    """

    def __init__(self, members: Members, inputs: TickTables) -> None:
        self.members = members
        #: the table `state` as a matrix of numbers, for kernels; its rows are those of the bodies (``rows``)
        self.view, self.weather, self.state_numbers, self.level = inputs
        view = inputs.view
        self.tick, self.time_ns = view.tick, view.time_ns
        self.noise = Noise(members.streams, view.tick, members.noise)
        self.since = members.zeros  #: time in s since the last value, for types that have a state; 0 = no earlier value
        self._state: Record | None = None
        self._poses: Floats | None = None

    def __len__(self) -> int:
        return len(self.members.bodies)

    @property
    def parameters(self) -> Any:
        return self.members.parameters

    @property
    def prepared(self) -> Any:
        return self.members.prepared

    @property
    def mounting(self) -> Mounting:
        return self.members.mounting

    @property
    def period(self) -> int:
        """Number of ticks from one value to the next."""
        return self.members.period

    @property
    def rows(self) -> Ints:
        return self.members.bodies

    @property
    def table_rows(self) -> Ints:
        """Rows of the instruments in the table of the sensor type."""
        return self.members.table_rows

    @property
    def fresh(self) -> Mask:
        return self.members.fresh

    @property
    def fault(self) -> Any:
        """Faults of the instruments (n,), values of :class:`~wavesim_sdk.tables.SensorFault`."""
        return self.members.entries["fault"]

    @property
    def fault_amount(self) -> Any:
        """Amounts of the faults (n,)."""
        return self.members.entries["fault_amount"]

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
            m, rows = self.members.mounting, self.members.bodies
            self._poses, level = np.empty((len(rows), bank_kernels.POSE_COLUMNS)), float(self.weather["level"])
            bank_kernels.fill_poses(self.state_numbers, rows, m.levers, m.rotations, m.is_rotated, level, self._poses)
        return self._poses

    def numbers(self, out: Record) -> Floats:
        """Return the values that :meth:`Emulator.measure` writes as a matrix of numbers, for kernels."""
        return self.members.numbers if out is self.members.values else as_numbers(out)

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
