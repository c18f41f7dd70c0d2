"""Instruments that are computed inside the engine process, with the same classes that the emulator processes use."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats, Record, as_numbers
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.imaging_frames import FRAME_SENSOR_TYPES
from wavesim_sdk.tables import ACTUATION, STATE, WEATHER
from wavesim_server.frame_collector import FrameCollector
from wavesim_server.front_relay import FrontRelay
from wavesim_server.instruments import DueTicks, InstrumentRegistry, installed_emulators
from wavesim_server.simulation import Simulation


def _with_numbers(table: Record) -> tuple[Record, Floats]:
    """Return a table, and a view of it as a matrix of numbers (rows, numbers)."""
    return table, as_numbers(table)


class InstrumentBanks:
    """The instruments in a simulation, by sensor type, for callers that have no emulator processes.

    Instruments measure at the ticks that :meth:`next_due` returns. ``registry`` contains the instruments of all bodies.
    Sonars, cameras, lidars and hydrophones are included only if ``imaging`` is set; their frames are then collected in
    :attr:`frames`.
    """

    def __init__(self, simulation: Simulation, registry: InstrumentRegistry, imaging: bool = False) -> None:
        loaded = simulation.loaded
        self._simulation, self._registry = simulation, registry
        #: for each sensor type, the bank of instruments and its table of values
        self.by_type: dict[str, Any] = {
            name: installed_emulators()[name].load()(loaded).sensor_bank(simulation.seed, count)
            for name, count in loaded.sensor_rows.items()
            if name in installed_emulators() and (imaging or name not in FRAME_SENSOR_TYPES)
        }
        self.frames = FrameCollector(simulation)
        #: the sensor types that produce frames
        self.imaging_types = [name for name in FRAME_SENSOR_TYPES if name in self.by_type]
        for name in self.imaging_types:
            self.by_type[name].emulator.open_remote(functools.partial(self.frames.add, name))
        self.fronts = FrontRelay(simulation.take_fronts, loaded.sensor_rows.get("hydrophone", 0))
        if "hydrophone" in self.by_type:
            self.by_type["hydrophone"].emulator.connect(self.fronts.reader())
        capacity = simulation.capacity
        self._state = _with_numbers(np.zeros(capacity, STATE.dtype))
        needs = {table for bank in self.by_type.values() for table in bank.emulator.needs}
        self._actuation = _with_numbers(np.zeros(capacity if "actuation" in needs else 0, ACTUATION.dtype))
        self._weather = _with_numbers(np.zeros(1, WEATHER.dtype))
        self._tables = {"instruments": registry.rows, "weather": self._weather[0], "actuation": self._actuation[0]}
        self._version = -1
        self._rows = np.zeros(0, np.int64)
        self._due = DueTicks(registry, self.by_type)

    def save(self) -> dict[str, Any]:
        """Return the state of all instruments for a snapshot."""
        return {name: bank.save() for name, bank in self.by_type.items()} | {"frames": dict(self.frames.numbers)}

    def restore(self, state: Mapping[str, Any], seed: int) -> None:
        """Restore a state that :meth:`save` returned. ``seed`` is the seed of the random numbers from now on."""
        for name, bank in self.by_type.items():
            saved = state[name]
            if "groups" in saved:
                bank.restore(saved, seed)
            else:  # from a server whose emulators run in other processes
                bank.reload(saved["table"], seed)
        self._version = -1
        self.frames.numbers = dict(state.get("frames", {}))
        self.frames.take()

    @contextlib.contextmanager
    def initial_values(self) -> Iterator[None]:
        """Return a context manager. It measures with all instruments except sonars, cameras, lidars and hydrophones,
        and restores their previous state at the end of its context.
        """
        saved = {name: bank.save() for name, bank in self.by_type.items() if name not in self.imaging_types}
        try:
            self.measure(list(saved))
            yield
        finally:
            for name, state in saved.items():
                self.by_type[name].restore(state, self._simulation.seed)
            self._version = -1

    def next_due(self, end: int) -> int:
        """Return the next tick at which an instrument measures or publishes, but at most ``end``."""
        return min(self._due.next_tick(self._simulation.tick), end)

    def measure_due(self) -> None:
        """Compute the values that are due at the current tick."""
        if types := self._due.take(self._simulation.tick):
            self.measure(types)

    def measure(self, types: Sequence[str]) -> None:
        """Compute the values of the given sensor types that are due at or before the current tick."""
        view = self.view()
        for name in types:
            self.by_type[name].compute(view, view.tick)

    def view(self) -> FleetSnapshot:
        """Return the bodies and the instruments at the current tick."""
        s = self._simulation
        if self._version != self._registry.version:
            self._version = self._registry.version
            self._rows = np.array(s.rows, np.int64)
            self._state[1][:] = self._actuation[1][:] = 0.0  # of bodies that have left
        s.results.fill(s.time_s, self._state[1], self._actuation[1], self._weather[1])
        return FleetSnapshot(s.tick, s.time_ns, self._rows, s.identity, self._state[0], self._tables, (self._version,))
