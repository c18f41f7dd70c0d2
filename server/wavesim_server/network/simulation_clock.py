"""The simulation clock as the engine publishes it in shared memory."""

from __future__ import annotations

from typing import Any

from wavesim_sdk.shared_memory import SharedMemoryArea


class SimulationClock:
    """Reads the clock; calling this object returns the record of the clock."""

    def __init__(self, area: SharedMemoryArea, step_ns: int) -> None:
        self._table, self._step_ns = area["clock"], step_ns

    def __call__(self) -> Any:
        return self._table.snapshot()[1][0]

    @property
    def tick(self) -> int:
        return int(self()["tick"])

    @property
    def time_ns(self) -> int:
        return int(self()["time_ns"])

    def time_s(self, tick: int) -> float:
        """Return the simulation time of a tick in s."""
        return tick * self._step_ns * 1e-9

    def time_ns_of(self, tick: int) -> int:
        """Return the simulation time of a tick in ns."""
        return tick * self._step_ns

    def tick_and_state(self) -> tuple[int, int]:
        """Return the tick and the run state, both read at the same moment."""
        clock = self()
        return int(clock["tick"]), int(clock["state"])
