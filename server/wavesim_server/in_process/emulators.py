"""The emulators of a trial that runs in one process. They compute the values for a tick as soon as the engine has
published that tick.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Ints
from wavesim_sdk.attach import FleetSnapshot, SensorTableClaim, SharedState
from wavesim_sdk.front_rings import FrontReader
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_server.instruments import DueTicks, InstrumentRegistry, installed_emulators
from wavesim_server.simulation import Simulation
from wavesim_server.trial import EMULATOR_PREFIX, ParticipantFailed
from wavesim_server.waits import Verdict

__all__ = ["LocalEmulators"]


class LocalEmulators:
    """The emulators in a run. They read the engine's tables without copying them.

    When :meth:`ask` returns, all emulators have answered.
    """

    late = 0
    pending: tuple[str, ...] = ()

    def __init__(
        self,
        simulation: Simulation,
        instruments: InstrumentRegistry,
        areas: Mapping[str, SharedMemoryArea],
        server: str,
    ) -> None:
        self._simulation, self.instruments, self._server = simulation, instruments, server
        loaded, installed = simulation.loaded, installed_emulators()
        #: for each sensor type, the bank of instruments and its table of values
        self._banks: dict[str, Any] = {}
        for sensor, count in loaded.sensor_rows.items():
            self._banks[sensor] = installed[sensor].load()(loaded).sensor_bank(simulation.seed, count)
        needs = {table for bank in self._banks.values() for table in bank.emulator.needs}
        tables = {**areas["vehicles"].tables, **areas["simulation"].tables}
        self._tables = {name: tables[name] for name in sorted({"state", "weather", *needs} - {"instruments"})}
        self._due = DueTicks(instruments)
        self._version = -1
        self._rows: Ints = np.zeros(0, np.int64)
        self._claims: dict[str, SensorTableClaim] = {}

    def begin(self) -> None:
        """Open the emulators and claim their tables.

        The engine must have published its tables, because emulators that attach to the server wait for these tables.
        """
        for bank in self._banks.values():
            bank.emulator.open(self._server)
            if bank.emulator.needs_fronts:
                bank.emulator.connect(FrontReader.open(self._server).take)
        state = SharedState(self._server)
        self._claims = {sensor: SensorTableClaim(state, sensor) for sensor in self._banks}
        for claim in self._claims.values():
            claim.request_synchronous()

    def release(self) -> None:
        """Release the tables of sensor values."""
        for claim in self._claims.values():
            claim.release()

    def next_tick(self, tick: int) -> int:
        """Return the next tick after ``tick`` at which an emulator is due."""
        return self._due.next_tick(tick)

    def ask(self, tick: int, now: float, wait: bool) -> None:
        """Compute the values that are due at a tick."""
        if due := self._due.take(tick):
            view = self._view()
            for sensor in due:
                bank = self._banks[sensor]
                try:
                    has_values = bank.compute(view, tick)
                except Exception as error:
                    raise self._failed(sensor, error) from error
                if has_values:
                    self._claims[sensor].table.publish_numbers(bank.numbers, tick)

    def _failed(self, sensor: str, error: Exception) -> ParticipantFailed:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}:{place.lineno}: {place.line}"
        time_s = self._simulation.time_ns * 1e-9
        return ParticipantFailed(
            f"{EMULATOR_PREFIX}{sensor} failed at {time_s:.3f} s and ended the trial: {where}: {type(error).__name__}: {error}"
        )

    def _view(self) -> FleetSnapshot:
        """Return a view of the bodies at the published tick. The view refers to the engine's arrays."""
        sim, version = self._simulation, self.instruments.version
        if version != self._version:
            self._version, self._rows = version, np.array(sim.rows, np.int64)
        tables = {name: table.latest for name, table in self._tables.items()}
        state, tables["instruments"] = tables.pop("state"), self.instruments.rows
        return FleetSnapshot(sim.tick, sim.time_ns, self._rows, sim.identity, state, tables, (version,))

    def poll(self, now: float) -> bool:
        """Return True, because :meth:`ask` has already computed all values."""
        return True

    def wait(self, timeout: float) -> None:
        """Return immediately, because :meth:`ask` has already computed all values."""

    def save(self) -> dict[str, Any]:
        """Return the state of all instruments for a snapshot."""
        return {sensor: bank.save() for sensor, bank in self._banks.items()}

    def restore(self, state: Mapping[str, Any] | None, seed: int) -> None:
        """Restore a state that :meth:`save` returned, or the initial state (None)."""
        for sensor, bank in self._banks.items():
            saved = None if state is None else state[sensor]
            if saved is None:
                bank.reload(np.zeros_like(bank.table), seed)
            elif "groups" in saved:
                bank.restore(saved, seed)
            else:
                bank.reload(saved["table"], seed)
            self._claims[sensor].table.publish_numbers(bank.numbers, 0)
        self._version = -1

    def verdicts(self, now: float, time_s: float) -> list[Verdict]:
        """Return an empty list, because the engine never waits for these emulators."""
        return []
