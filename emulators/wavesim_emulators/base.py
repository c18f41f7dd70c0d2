"""The base of every emulator: attach, take a snapshot, compute, write, at its own rate.

A new emulator names its sensor and says how values follow from poses::

    class Depth(Emulator):
        sensor = "depth"
        def measure(self, view, rows, noise, out):
            out["depth"][rows] = view.state["p_WB_W"][rows, 2] + 0.01 * noise(0)

Mounting, rate, latency, drop-out, faults at run time and hot swap are the base's.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar

import numpy as np

from wavesim_sdk import frames, randomness
from wavesim_sdk.area import Record
from wavesim_sdk.attach import SensorColumn, SharedState, Snapshot
from wavesim_sdk.config import Loaded
from wavesim_sdk.config.world import World
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.ocean.water import tide
from wavesim_sdk.sensors import HEAD
from wavesim_sdk.tables import SENSOR_FAULTS, WEATHER, SensorFault

Rows = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
DROP, SPIKE, SIGN = 1000, 1001, 1002  #: indices of draws that no sensor uses


class Noise:
    """Random numbers for some rows at one tick; each body has its own stream."""

    def __init__(self, keys: Any, tick: int, scale: Any) -> None:
        self.keys, self.tick, self.scale = keys, tick, np.broadcast_to(np.asarray(scale, float), len(keys))

    def __call__(self, index: int) -> Floats:
        """One standard normal number for each row, times the sensor's factor; ``index`` tells its quantities apart."""
        if not self.scale.any():
            return np.zeros(len(self.keys))
        return self.scale * randomness.normal(self.keys, self.tick, index)

    def vector(self, index: int) -> Floats:
        """Three of them (n, 3), from ``index`` on."""
        return np.stack([self(index + k) for k in range(3)], axis=1)

    def chance(self, index: int) -> Floats:
        """One uniform number in (0, 1) for each row, whatever the factor."""
        return randomness.uniform(self.keys, self.tick, index)


@dataclass(frozen=True)
class Mounted:
    """Where a sensor is: position and velocity in W, rotations, angular velocity in B; all for the rows asked for."""

    p_WS_W: Floats
    R_WB: Floats
    R_WS: Floats
    v_WS_W: Floats
    w_WB_B: Floats


class Emulator:
    """One sensor of all bodies."""

    sensor: ClassVar[str]

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        parameters: Any = loaded.config.emulators.get(self.sensor)
        if parameters is None:
            raise AttachError(f"the configuration has no <{self.sensor}> under <emulators>")
        self.parameters = parameters
        self.period_ticks = max(1, round(1.0 / parameters.rate / loaded.config.time.step))
        self.lever = np.array(parameters.position)
        self.R_BS = frames.rotation(frames.quaternion(*parameters.attitude))
        self.index = loaded.config.emulators.names.index(self.sensor)
        self.simulation: SharedState | None = None
        #: rows (of the whole table) whose body entered since the last value
        self.new: np.ndarray[Any, np.dtype[np.bool_]] = np.zeros(0, bool)
        #: fault and its amount of each row that is measured
        self.faulty: Any = np.zeros(0, np.int64)
        self.amount: Any = np.zeros(0)
        self._generation: Any = None
        self._streams: dict[bytes, int] = {}
        self._late: deque[tuple[int, Rows, Record]] = deque()
        self._last: Record | None = None
        self._stop = False

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        """Write the values of ``rows`` into the columns of ``out``; set ``out["valid"][rows]`` to 0 where
        there is no value (it is 1 before the call)."""
        raise NotImplementedError(f"{type(self).__name__} computes nothing")

    def mounted(self, view: Snapshot, rows: Rows) -> Mounted:
        """The sensor's place and motion on each body."""
        state = view.state[rows]
        R_WB = frames.rotation(state["q_WB"])
        speed = state["v_WB_B"] + np.cross(state["w_WB_B"], self.lever)
        return Mounted(
            state["p_WB_W"] + R_WB @ self.lever,
            R_WB,
            R_WB @ self.R_BS,
            np.einsum("nij,nj->ni", R_WB, speed),
            state["w_WB_B"],
        )

    def weather(self, time_ns: int) -> Any:
        """A record of the table ``weather``; without a server that of calm weather at a time."""
        if self.simulation is not None:
            return self.simulation.weather()
        return still(self.loaded.config.world, time_ns * 1e-9)

    def key(self, seed: int, name: bytes) -> int:
        """The stream of random numbers of a body's sensor."""
        if name not in self._streams:
            self._streams[name] = randomness.key(seed, name.decode(), self.sensor)
        return self._streams[name]

    # -- the process -----------------------------------------------------------------------------

    def run(self, server: str, free: bool = False) -> int:
        """Serve a running server until it ends or a signal comes; returns how often values were written.

        Synchronous (the default): the engine says when a value is due and, unless time is real, waits
        for it.  ``free``: at its own pace in wall time, as in the paper.
        """
        for s in (signal.SIGINT, signal.SIGTERM):
            signal.signal(s, self._on_signal)
        simulation = self.simulation = SharedState(server)
        column = SensorColumn(simulation, self.sensor)
        seed = int(simulation.world()["seed"])
        out = simulation.sensor(self.sensor)
        written = 0
        if not free:
            column.synchronise(self.period_ticks)
        try:
            while not self._stop:
                if free:
                    time.sleep(1.0 / self.parameters.rate)
                    if not simulation.alive():
                        break
                elif column.wait_due(0.2) is None:
                    if not simulation.alive():
                        break
                    if not column.synchronous:  # the engine gave up on us: ask to be waited for again
                        column.synchronise(self.period_ticks)
                    continue
                view = simulation.snapshot()
                faults = simulation.vehicles["sensor_faults"].snapshot()[1]
                if self.compute(view, faults, seed, out):
                    column.write(out, view.tick)
                written += 1
                if not free:
                    column.answer()
        except NotRunning:
            pass
        finally:
            column.release()
        return written

    def compute(self, view: Snapshot, faults: Record, seed: int, out: Record) -> bool:
        """Values of one tick into ``out``, after latency, drop-outs and faults; whether there was anything to write."""
        generation = view.identity["generation"]
        self.new = np.ones(len(generation), bool) if self._generation is None else generation != self._generation
        self._generation = generation.copy()
        rows = view.rows
        keys = np.array([self.key(seed, n) for n in view.identity["name"][rows]], np.uint64)
        kind, amount = faults["kind"][rows, self.index], faults["amount"][rows, self.index]
        scale = self.parameters.noise * np.where(kind == SensorFault.NOISY, amount, 1.0)
        noise = Noise(keys, view.tick, scale)
        now = out.copy() if self._last is None else self._last.copy()
        now["valid"] = 0
        now["valid"][rows] = 1
        now["tick"][rows], now["time_ns"][rows] = view.tick, view.time_ns
        self.faulty, self.amount = kind, amount
        self.measure(view, rows, noise, now)
        if kind.any():
            self._break(now, rows, kind, amount, noise)
        self._last = now
        come = rows
        if self.parameters.drop_out > 0.0:
            come = rows[noise.chance(DROP) >= self.parameters.drop_out]
        gone = np.flatnonzero((out["valid"] == 1) & (view.identity["present"] == 0))
        out["valid"][gone] = 0
        self._late.append((view.time_ns + round(self.parameters.latency * 1e9), come, now[come]))
        ripe = len(gone) > 0
        while self._late and self._late[0][0] <= view.time_ns:
            _, some, values = self._late.popleft()
            here = view.identity["present"][some] == 1
            sequence = out["sequence"][some[here]] + 1
            out[some[here]] = values[here]
            out["sequence"][some[here]] = sequence
            ripe = True
        return ripe

    def _break(self, now: Record, rows: Rows, kind: Any, amount: Any, noise: Noise) -> None:
        """What the commanded faults make of the values."""
        values = now.view(np.float64).reshape(len(now), -1)
        now["valid"][rows[kind == SensorFault.LOST]] = 0
        if self._last is not None:
            before = self._last.view(np.float64).reshape(len(now), -1)
            frozen = rows[kind == SensorFault.FROZEN]
            values[frozen, HEAD:] = before[frozen, HEAD:]
        off = kind == SensorFault.BIAS
        values[rows[off], HEAD:] += amount[off, None]
        spike = (kind == SensorFault.SPIKES) & (noise.chance(SPIKE) < amount)
        sign = np.where(noise.chance(SIGN) < 0.5, -1.0, 1.0)[spike, None]
        values[rows[spike], HEAD:] += sign * 10.0 * (1.0 + np.abs(values[rows[spike], HEAD:]))

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop = True


def still(world: World, time_s: float) -> Record:
    """The weather without gusts, drift and slow wind."""
    w = np.zeros(1, WEATHER.dtype)
    w["current_W"] = tide(world.current, time_s)
    w["wind_speed"], w["wind_direction"] = world.wind.mean, world.wind.direction
    w["level"] = world.tide.level(time_s)
    record: Record = w[0]
    return record


def no_faults(capacity: int) -> Record:
    """A table of faults without any."""
    return np.zeros(capacity, SENSOR_FAULTS.dtype)
