"""The base of every emulator: attach, take a snapshot, compute, write, at its own rate.

A new emulator names its sensor and says how values follow from poses::

    class Depth(Emulator):
        sensor = "depth"
        def measure(self, view, rows, noise, out):
            out["depth"][rows] = view.state["p_WB_W"][rows, 2]
"""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any, ClassVar

import numpy as np

from wavesim_sdk import randomness
from wavesim_sdk.area import Record
from wavesim_sdk.attach import SensorColumn, SharedState, Snapshot
from wavesim_sdk.config import Loaded
from wavesim_sdk.errors import AttachError, NotRunning

Rows = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


class Noise:
    """Standard normal numbers for some rows at one tick; each body has its own stream."""

    def __init__(self, keys: Any, tick: int, scale: float) -> None:
        self._keys, self._tick, self._scale = keys, tick, scale

    def __call__(self, index: int) -> Floats:
        """One number for each row; ``index`` tells the quantities of a sensor apart."""
        if self._scale == 0.0:
            return np.zeros(len(self._keys))
        return self._scale * randomness.normal(self._keys, self._tick, index)


class Emulator:
    """One sensor of all bodies."""

    sensor: ClassVar[str]

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        parameters = getattr(loaded.config.emulators, self.sensor, None)
        if parameters is None:
            raise AttachError(f"the configuration has no <{self.sensor}> under <emulators>")
        self.parameters = parameters
        self.period_ticks = max(1, round(1.0 / parameters.rate / loaded.config.time.step))
        self._stop = False

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        """Write the values of ``rows`` into the columns of ``out``; set ``out["valid"][rows]`` to 0 where
        there is no value (it is 1 before the call)."""
        raise NotImplementedError(f"{type(self).__name__} computes nothing")

    def run(self, server: str, free: bool = False) -> int:
        """Serve a running server until it ends or a signal comes; returns how often values were written.

        Synchronous (the default): the engine says when a value is due and, unless time is real, waits
        for it.  ``free``: at its own pace in wall time, as in the paper.
        """
        for s in (signal.SIGINT, signal.SIGTERM):
            signal.signal(s, self._on_signal)
        simulation = SharedState(server)
        column = SensorColumn(simulation, self.sensor)
        seed = int(simulation.world()["seed"])
        keys: dict[bytes, int] = {}
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
                self._write(column, view, out, keys, seed)
                written += 1
                if not free:
                    column.answer()
        except NotRunning:
            pass
        finally:
            column.release()
        return written

    def _write(self, column: SensorColumn, view: Snapshot, out: Record, keys: dict[bytes, int], seed: int) -> None:
        rows = view.rows
        for name in view.identity["name"][rows]:
            if name not in keys:
                keys[name] = randomness.key(seed, name.decode(), self.sensor)
        streams = np.array([keys[n] for n in view.identity["name"][rows]], np.uint64)
        out["valid"] = 0
        out["valid"][rows] = 1
        out["tick"][rows], out["time_ns"][rows] = view.tick, view.time_ns
        self.measure(view, rows, Noise(streams, view.tick, self.parameters.noise), out)
        out["sequence"][rows] += 1
        column.write(out, view.tick)

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop = True
