"""The engine's tables in shared memory, published one complete tick at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.fences import fence_rows
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import BodyType, RunState
from wavesim_sdk.wire.items import Fence
from wavesim_server.engine.pace import TickPacer
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.simulation import Simulation


@dataclass
class LossCounts:
    """Loss counters that are published in the record of the clock."""

    events_dropped: int = 0
    sensors_late: int = 0


class EngineTables:
    """Writes the engine's tables."""

    def __init__(
        self, simulation: Simulation, areas: Mapping[str, SharedMemoryArea], instruments: InstrumentRegistry
    ) -> None:
        self.sim, self.areas, self.instruments = simulation, areas, instruments
        self.counts = LossCounts()
        #: rows of the bodies whose forces at least one session receives
        self.requested_effort_rows: tuple[int, ...] = ()
        self._buoys = 0
        self._published_effort = self._published_signals = False
        vehicles, tables = areas["vehicles"], areas["simulation"]
        self._tick_tables = vehicles["state"], vehicles["actuation"], tables["weather"]
        self._signals_table, self._clock_table = tables["signals"], tables["clock"]

    def begin(self, end_tick: int | None) -> None:
        """Publish the tables that never change, and the bodies. ``end_tick`` is the last tick of the run; None means
        that the run has no end.
        """
        config, a = self.sim.config, self.sim.config.acoustics
        table = self.areas["simulation"]["world"]
        w = table.begin_write()[0]
        w["step_ns"], w["seed"] = self.sim.step_ns, self.sim.seed
        w["duration_ns"] = (end_tick or 0) * self.sim.step_ns
        w["sound_speed"], w["spreading"], w["ambient_noise"] = a.sound_speed, a.spreading or 20.0, a.ambient_noise
        w["absorption"] = a.absorption if a.absorption_model == "constant" else np.nan
        w["density"], w["gravity"] = config.world.density, config.world.gravity
        w["origin"] = (config.world.latitude, config.world.longitude)
        w["digest"] = self.sim.loaded.digest.encode()
        table.end_write(self.sim.tick)
        self.publish_identity()

    def publish_identity(self) -> None:
        """Publish the body in each row after its instruments, so that no reader sees a body without its instruments."""
        self.publish_instruments()
        self.publish_actuator_faults()
        vehicles, who = self.areas["vehicles"], self.sim.identity
        self._buoys = int(((who["type"] == BodyType.BUOY) & (who["present"] == 1)).sum())
        vehicles["identity"].publish(who, self.sim.tick)
        vehicles["geometry"].publish(self.sim.geometry, self.sim.tick)

    def publish_instruments(self) -> None:
        """Publish the instruments and their faults if any of these have changed."""
        if self.instruments.is_changed:
            self.instruments.is_changed = False
            self.areas["vehicles"]["instruments"].publish(self.instruments.rows, self.sim.tick)

    def publish_actuator_faults(self) -> None:
        """Publish the faults of the actuators if any of these have changed."""
        if self.sim.has_new_actuator_faults:
            self.sim.has_new_actuator_faults = False
            self.areas["vehicles"]["actuator_fault"].publish(self.sim.actuator_faults, self.sim.tick)

    def publish_fences(self, fences: Sequence[Fence]) -> None:
        """Publish the current fences, at the start and after each change."""
        self.areas["simulation"]["fences"].publish(fence_rows(fences), self.sim.tick)

    def publish_snapshots(self, times_ns: Sequence[int]) -> None:
        """Publish the simulation times of the automatic snapshots."""
        table = self.areas["simulation"]["snapshots"]
        rows = table.begin_write()
        rows["time_ns"] = -1
        rows["time_ns"][: len(times_ns)] = times_ns
        table.end_write(self.sim.tick)

    def publish_tick(self, state: RunState, pace: TickPacer, now: float) -> None:
        """Publish the motion, sound, weather and clock for this tick."""
        sim, tick = self.sim, self.sim.tick
        motion, actuation, weather = tables = self._tick_tables
        sim.results.fill(sim.time_s, motion.begin_numbers(), actuation.begin_numbers(), weather.begin_numbers())
        for table in tables:
            table.end_write(tick)
        self._effort()
        self._signals()
        self._clock(state, pace, now)

    @property
    def effort_rows(self) -> list[int]:
        """Return the rows whose forces are to be computed."""
        there = self.sim.occupants
        return sorted(
            there if self.sim.config.log.effort else (row for row in self.requested_effort_rows if row in there)
        )

    def _effort(self) -> None:
        rows = self.effort_rows
        if rows or self._published_effort:
            self._published_effort = bool(rows)
            table = self.areas["vehicles"]["effort"]
            records = table.begin_write()
            records[:] = 0  # clears rows that are no longer requested
            self.sim.results.effort(rows, records)
            table.end_write(self.sim.tick)

    def _signals(self) -> None:
        live = self.sim.channel.counters[2] > 0
        if live or self._published_signals:
            self._published_signals = live
            self.sim.channel.live_signals(self._signals_table.begin_write(), self.sim.time_s)
            self._signals_table.end_write(self.sim.tick)

    def publish_surroundings(self) -> None:
        """Publish the state of water and air at the bodies. Call this only when the log or a viewer needs the values,
        not at each tick.
        """
        table = self.areas["vehicles"]["surroundings"]
        results = self.sim.results
        results.fill_surroundings(self.sim.time_s, results.present_rows, table.begin_numbers())
        table.end_write(self.sim.tick)

    def publish_lines(self) -> None:
        """Publish the lines. Call this only when the log or a viewer needs the values, not at each tick."""
        if self.sim.config.fleet.line:
            table = self.areas["vehicles"]["lines"]
            self.sim.results.lines(table.begin_write())
            table.end_write(self.sim.tick)

    def _clock(self, state: RunState, pace: TickPacer, now: float) -> None:
        sent, heard, live = self.sim.channel.counters
        self._clock_table.publish_row(
            self.sim.tick,
            self.sim.tick,
            self.sim.time_ns,
            self.sim.time_ns // 100_000,
            int(state),
            pace.speed,
            pace.measure_speed(now, self.sim.time_ns),
            pace.late_count,
            pace.lateness_ns,
            pace.lateness_max_ns,
            pace.slipped_ns,
            len(self.sim.occupants) - self._buoys,
            self._buoys,
            live,
            sent,
            heard,
            self.counts.events_dropped,
            self.counts.sensors_late,
            self.sim.contacts.dropped,
            self.sim.channel.paths_dropped,
        )
