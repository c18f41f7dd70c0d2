"""The engine's tables in the shared memory: a whole tick at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.area import Area
from wavesim_sdk.tables import BodyType, RunState
from wavesim_server.engine.pace import Pace
from wavesim_server.environment.weather import W_LEVEL, W_WIND
from wavesim_server.instruments import Instruments
from wavesim_server.simulation import Simulation


@dataclass
class Counts:
    """What the clock's record tells beside the time."""

    events_dropped: int = 0
    sensors_late: int = 0


class Publication:
    """Writes them."""

    def __init__(self, simulation: Simulation, areas: Mapping[str, Area], instruments: Instruments) -> None:
        self.sim, self.areas, self.instruments = simulation, areas, instruments
        self.counts = Counts()
        self.effort = False  #: whether anybody wants the forces
        self._buoys = 0

    def begin(self) -> None:
        """What does not change, and who is there."""
        config, a = self.sim.config, self.sim.config.acoustics
        table = self.areas["simulation"]["world"]
        w = table.begin()[0]
        w["step_ns"], w["seed"] = self.sim.step_ns, self.sim.seed
        w["duration_ns"] = round(config.time.duration * 1e9)
        w["sound_speed"], w["spreading"], w["ambient_noise"] = a.sound_speed, a.spreading, a.ambient_noise
        w["absorption"] = a.absorption if a.absorption_model == "constant" else np.nan
        w["density"], w["gravity"] = config.world.density, config.world.gravity
        w["origin"] = (config.world.latitude, config.world.longitude)
        w["digest"] = self.sim.loaded.digest.encode()
        table.end(self.sim.tick)
        self.identity()

    def identity(self) -> None:
        """Who is in each row, after what they carry: whoever is there has it."""
        self.suites()
        vehicles, who = self.areas["vehicles"], self.sim.identity
        self._buoys = int(((who["type"] == BodyType.BUOY) & (who["present"] == 1)).sum())
        vehicles["identity"].publish(who, self.sim.tick)
        vehicles["geometry"].publish(self.sim.geometry, self.sim.tick)

    def suites(self) -> None:
        """The instruments and their faults, if anything changed."""
        if self.instruments.changed:
            self.instruments.changed = False
            self.areas["vehicles"]["instruments"].publish(self.instruments.rows, self.sim.tick)

    def tick(self, state: RunState, pace: Pace, now: float) -> None:
        """Motion, sound, weather and clock of this tick."""
        sim, tick = self.sim, self.sim.tick
        vehicles, simulation = self.areas["vehicles"], self.areas["simulation"]
        motion, actuation = vehicles["state"].begin(), vehicles["actuation"].begin()
        sim.publish(motion, actuation)
        vehicles["state"].end(tick)
        vehicles["actuation"].end(tick)
        sim.live_signals(simulation["signals"].begin())
        simulation["signals"].end(tick)
        self._weather()
        self._clock(state, pace, now)

    def _weather(self) -> None:
        table = self.areas["simulation"]["weather"]
        now = self.sim.weather
        # whole records: each field by itself costs a view of its own
        table.begin()[0] = (tuple(self.sim.current()), now.state[W_WIND], now.wind[1], -now.state[W_LEVEL])
        table.end(self.sim.tick)

    def _clock(self, state: RunState, pace: Pace, now: float) -> None:
        sent, heard, live = self.sim.counters
        table = self.areas["simulation"]["clock"]
        table.begin()[0] = (
            self.sim.tick, self.sim.time_ns, self.sim.time_ns // 100_000, int(state), pace.speed,
            pace.measure(now, self.sim.time_ns), pace.late, pace.lateness_ns, pace.lateness_max_ns, pace.slipped_ns,
            len(self.sim.occupants) - self._buoys, self._buoys, live, sent, heard, self.counts.events_dropped,
            self.counts.sensors_late,
        )  # fmt: skip
        table.end(self.sim.tick)
