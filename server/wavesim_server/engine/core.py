"""The engine's core. It decides which ticks are due, and serves the participants between ticks.

The core does not use a clock, processes or files: ``now`` is passed to :meth:`Engine.poll`, and areas, queues and
semaphores are passed to the constructor. In real time, each tick has an absolute deadline. In fast mode, one compiled
call advances the simulation until the next participant is due (an emulator, a lockstep client, the log or a viewer).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from wavesim_sdk.front_rings import FrontRings
from wavesim_sdk.guidance.encounters import CONTACT_NOTICE_PREFIX
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import RunState
from wavesim_server.engine.command_executor import CommandExecutor
from wavesim_server.engine.emulators import LIVENESS_CHECK_S, Emulators
from wavesim_server.engine.event_queue import EngineEvents
from wavesim_server.engine.pace import TickPacer
from wavesim_server.engine.publication import EngineTables
from wavesim_server.engine.records import (
    LoggedSequences,
    channel_state_records,
    line_records,
    log_records,
    played_sounds,
    signal_records,
)
from wavesim_server.engine.run_control import RunControl
from wavesim_server.engine.time_changes import Served, TimeChanges
from wavesim_server.fault_schedule import FaultSchedule
from wavesim_server.fences import Fences
from wavesim_server.messages import (
    BodiesFrozenEvent,
    LockstepDueEvent,
    NoticeEvent,
    RecordQueue,
    SlowEmulator,
)
from wavesim_server.simulation import Simulation
from wavesim_server.watchdog import Watchdog

VIEW_S = 0.1  #: maximum interval, in s of simulated time, between two publications of the tables in fast mode
FULL_QUEUE_RETRY_S = 0.0005  #: interval in s between two attempts to send to a full queue
NO_GENERATION = 2**62  #: generation number that belongs to no body
LOGGED_TABLES = ("state", "actuation", "surroundings")  #: tables whose rows are logged


class Engine:
    """Engine of one run. Call :meth:`begin` once, then call :meth:`poll` whenever it is due or a command arrives, until
    :attr:`is_over`.

    ``commands`` is None if the front end is in this process and calls :attr:`command_executor` directly.
    """

    def __init__(
        self,
        simulation: Simulation,
        areas: Mapping[str, SharedMemoryArea],
        commands: RecordQueue | None,
        events: EngineEvents,
        emulators: Emulators,
        pacer: TickPacer,
        *,
        log: bool = False,
    ) -> None:
        self.sim, self.commands, self.emulators = simulation, commands, emulators
        config = simulation.config
        self.pacer, self.events = pacer, events
        self.end_tick: int | None = None
        self._set_duration(config.time.duration)
        self.hold_tick: int | None = None  #: tick at which the simulation waits, although its run state does not change
        self.log_ticks = max(1, round(1e9 / config.log.state_rate / simulation.step_ns)) if log else 0
        self.view_ticks = max(1, int(VIEW_S * 1e9) // simulation.step_ns)
        self.watchdog = Watchdog(simulation.loaded, simulation.step_ns)
        self.fences = Fences([f.request() for f in config.fleet.fence], simulation.capacity, simulation.step_ns)
        self.fault_schedule = FaultSchedule(simulation.loaded, simulation.step_ns)
        self.instruments = emulators.instruments
        self.publication = EngineTables(simulation, areas, self.instruments)
        self.run = RunControl(simulation, self.pacer, self.publication, self.events)
        self.time_changes = TimeChanges(self)
        self.command_executor = CommandExecutor(
            simulation,
            self.instruments,
            self.run,
            self.events,
            self.publication,
            self.watchdog,
            self.fences,
            self.fault_schedule,
        )
        self.command_executor.request_time_change = self.time_changes.request
        self.vehicles = areas["vehicles"]
        self.front_rings: FrontRings | None = None  #: rings to which the engine writes the fronts at hydrophones
        self._logged_sounds: set[int] = set()  # numbers of the sounds that the log contains
        self._served_tick = -1  # last tick whose participants were served
        self._asked_tick = -1  # last tick at which emulators were signalled
        self._logged_sequences = LoggedSequences(self.vehicles, self.instruments)

    def override_time(self, speed: float | None, duration: float | None) -> None:
        """Replace the speed and the duration (s; 0 = no end) given in the configuration; None keeps a value."""
        if speed is not None:
            self.pacer.speed = speed
        if duration is not None:
            self._set_duration(duration)

    def _set_duration(self, duration: float) -> None:
        """End the run at the given simulation time in s, but not before the first tick has run; 0 means never."""
        self.end_tick = max(1, round(duration * 1e9 / self.sim.step_ns)) if duration else None

    @property
    def is_over(self) -> bool:
        """Whether the run has been shut down."""
        return self.run.is_over

    # -- the loop ------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Add the bodies that need no client, and publish the tables."""
        self.run.now = now
        self.enter_residents()
        self._publish_fronts()
        self.publication.begin(self.end_tick)
        self.publication.publish_fences(self.fences.current)
        self.publication.publish_snapshots(())
        self.run.publish()

    def enter_residents(self) -> None:
        """Add the bodies that need no client, with their instruments."""
        self.sim.enter_residents()
        for row in self.sim.occupants:
            self.instruments.enter(row, self.sim.suite_in_row(row))

    @property
    def served(self) -> Served:
        """Which stages of the current tick have been completed."""
        tick = self.sim.tick
        return Served(self._asked_tick == tick, self._served_tick == tick and not self.run.awaits_release)

    def restart_at_tick(self, served: Served) -> None:
        """Continue at the current tick after a change of the simulation time."""
        tick = self.sim.tick
        self._asked_tick, self._served_tick = tick if served.asked else -1, tick if served.released else -1
        self._logged_sequences = LoggedSequences(self.vehicles, self.instruments)
        self._logged_sounds.clear()
        self._publish_fronts()

    def _publish_fronts(self) -> None:
        """Write the fronts since the last call to their rings, before the emulators are asked for this tick."""
        if self.front_rings is not None:
            self.front_rings.write(self.sim.take_fronts())

    def poll(self, now: float) -> float:
        """Do all work that is due. Return the time at which to call again (infinity: not until a command arrives)."""
        self.run.now = now
        try:
            if not self.events.push_backlog():
                return now + FULL_QUEUE_RETRY_S
            if self.commands is not None:
                for kind, payload in self.commands.pop_all():
                    if not self.command_executor.execute_record(kind, payload):
                        self.commands.count_damaged()
            if self.time_changes.is_waiting:
                if not self.emulators.poll(now):
                    return now + LIVENESS_CHECK_S
                self.time_changes.carry_out()
            due = self._run_due(now)
            for v in self.emulators.verdicts(now, self.sim.time_ns * 1e-9):
                self.events.emit(SlowEmulator(v.name, int(v.slow), v.text))
            return min(due, now + FULL_QUEUE_RETRY_S) if self.events.has_backlog else due
        finally:
            self.events.wake_front()

    def _run_due(self, now: float) -> float:
        if self.run.is_halted():
            return math.inf
        if not self._serve(now):
            return now + LIVENESS_CHECK_S
        if self.run.is_halted() or self.is_held:
            return math.inf
        if self.pacer.speed > 0.0:
            due = self.pacer.next_deadline(now, self._next_stop() - self.sim.tick)
            if now < due:
                return due
            self._advance(self.pacer.take_due_ticks(now, self._next_stop() - self.sim.tick))
        else:
            self._advance(self._next_stop() - self.sim.tick)
        if not self._serve(now):
            return now + LIVENESS_CHECK_S
        return math.inf if self.run.is_halted() or self.is_held else now

    @property
    def is_held(self) -> bool:
        """Whether the simulation is waiting at :attr:`hold_tick`."""
        return self.hold_tick is not None and self.sim.tick >= self.hold_tick

    def _next_stop(self) -> int:
        """Return the next tick at which a participant, a schedule, the log or a viewer is due."""
        tick = self.sim.tick
        view = self.view_ticks * max(1, int(self.pacer.speed))  # viewers follow wall time
        periods = [view, *self.run.lockstep.values(), *(n for _, n in self.run.instrument_steps)]
        if self.log_ticks:
            periods.append(self.log_ticks)
        stop = min((tick // p + 1) * p for p in periods)
        stop = min(stop, self.emulators.next_tick(tick), self.watchdog.next_tick(), self.fences.next_tick(tick))
        stop = min(stop, self.fault_schedule.next_tick(tick))
        for tick_ in (self.end_tick, self.hold_tick, self.time_changes.next_tick(tick)):
            if tick_ is not None:
                stop = min(stop, tick_)
        return min(stop, tick + self.run.budget) if self.run.budget is not None else stop

    def _advance(self, ticks: int) -> None:
        frozen = len(self.sim.frozen_bodies)
        for row, text in self.sim.fleet.take_clipped():
            self.events.emit(
                NoticeEvent(self.sim.time_ns, row, self.sim.occupants[row].name, text, self.run.generation(row))
            )
        self.sim.advance(ticks)
        self._publish_fronts()
        if self.run.budget is not None:
            self.run.budget -= ticks
        sent, receptions = self.sim.take_signals()
        for record in signal_records(sent, receptions, self.sim.identity["generation"]):
            self.events.emit(record)
        if self.log_ticks and len(sent):
            for sound in played_sounds(sent, self.sim, self._logged_sounds):
                self.events.emit(sound)
        for changes in channel_state_records(self.sim.take_channel_states(), self.sim.identity["generation"]):
            self.events.emit(changes)
        for time_ns, row, what, speed in self.sim.take_meetings():
            if (o := self.sim.occupants.get(row)) is not None:
                text = f"{CONTACT_NOTICE_PREFIX}{what} at {speed:.2g} m/s"
                self.events.emit(NoticeEvent(time_ns, row, o.name, text, self.run.generation(row)))
        for time_ns, name, row, load in self.sim.line_system.take_breaks():
            body = self.sim.occupants[row].name if row in self.sim.occupants else name
            generation = self.run.generation(row) if row >= 0 else NO_GENERATION  # a line between anchors has no body
            self.events.emit(
                NoticeEvent(time_ns, max(row, 0), body, f"line '{name}' broke at {load:.4g} N", generation)
            )
        if len(self.sim.frozen_bodies) > frozen:
            self.events.emit(BodiesFrozenEvent(self.sim.time_ns, self.sim.frozen_bodies))

    def _serve(self, now: float) -> bool:
        """Publish the tables, and serve each participant that is due at this tick. Returns False while the engine is
        waiting for emulators.
        """
        tick = self.sim.tick
        if self._served_tick == tick:
            return True
        if self._asked_tick != tick:
            self.time_changes.take_due(tick)
            self._asked_tick = tick
            self._apply_scheduled(tick)
            self.run.publish()
            self.emulators.ask(tick, now, wait=self.pacer.speed == 0.0)
        if not self.emulators.poll(now):
            return False
        self.publication.counts.sensors_late = self.emulators.late
        self._served_tick = tick
        if self.end_tick is not None and tick >= self.end_tick:
            self.run.set_state(RunState.ENDED)
        elif self.run.budget == 0:
            self.run.budget = None
            self.run.set_state(RunState.PAUSED)
        rows = self.run.steps_due(tick)
        if rows and self.run.state is not RunState.ENDED:
            self.run.awaits_release = True
            self.events.emit(LockstepDueEvent(tick, rows, [self.run.generation(row) for row in rows]))
            self.events.wake_front()
        # Logged while the clients compute: the simulation waits for their answers anyway.
        logged = self.log_ticks > 0 and tick % self.log_ticks == 0
        if logged or tick % self.view_ticks == 0:
            self.publication.publish_surroundings()
            self.publication.publish_lines()
        if logged:
            tables = dict.fromkeys(LOGGED_TABLES, self.sim.rows)
            if self.publication.effort_rows:
                tables["effort"] = self.publication.effort_rows
            for record in log_records(
                tick, tables, self.vehicles, self._logged_sequences, self.sim.identity["generation"]
            ):
                self.events.emit(record)
            if self.sim.config.fleet.line:
                for record in line_records(tick, self.vehicles):
                    self.events.emit(record)
        return True

    def _apply_scheduled(self, tick: int) -> None:
        """Apply scheduled faults, watchdogs and fences at this tick."""
        for change in self.fault_schedule.changes_at(tick):
            self.command_executor.apply_scheduled_fault(change)
        for row, name, command, text in self.watchdog.take_due(tick):
            if command is not None:
                self.sim.command(row, command)
            self.events.emit(NoticeEvent(self.sim.time_ns, row, name, text, self.run.generation(row)))
        if self.fences.next_tick(tick - 1) == tick:
            rows = np.array([k for k, o in sorted(self.sim.occupants.items()) if o.model.type != "buoy"], np.int64)
            for row, text in self.fences.crossings(tick, rows, self.sim.state()["p_WB_W"][rows]):
                self.events.emit(
                    NoticeEvent(self.sim.time_ns, row, self.sim.occupants[row].name, text, self.run.generation(row))
                )

    def flush(self) -> bool:
        """Send the queued events; return whether the queue is empty."""
        done = self.events.push_backlog()
        self.events.wake_front()
        return done
