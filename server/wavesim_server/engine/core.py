"""The engine's core: which ticks are due, and which participants are served between them.

The core uses no clock, process or files: ``now`` is passed to :meth:`Engine.poll`; areas, queues and semaphores are
passed to the constructor. In real time, each tick has an absolute deadline. In fast mode, one compiled call advances
until the next participant is due (an emulator, a lockstep client, the log, a viewer).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from wavesim_sdk.guidance.encounters import CONTACT_NOTICE_PREFIX
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import RunState
from wavesim_server.engine.command_executor import CommandExecutor
from wavesim_server.engine.emulators import LIVENESS_CHECK_S, SynchronousEmulators
from wavesim_server.engine.pace import TickPacer
from wavesim_server.engine.publication import EngineTables
from wavesim_server.engine.records import LoggedSequences, line_records, log_records, signal_records
from wavesim_server.fault_schedule import FaultSchedule
from wavesim_server.fences import Fences
from wavesim_server.messages import (
    BodiesFrozenEvent,
    BodyPresenceEvent,
    EngineEvent,
    LockstepDueEvent,
    LogRecordsEvent,
    NoticeEvent,
    RecordQueue,
    RunStateEvent,
    SlowEmulator,
    encode,
)
from wavesim_server.simulation import Simulation
from wavesim_server.watchdog import Watchdog

VIEW_S = 0.1  #: maximum interval between two publications of the tables in fast mode (simulated time)
FULL_QUEUE_RETRY_S = 0.0005  #: retry interval for a full queue
NO_GENERATION = 2**62  #: a generation that matches no body
LOGGED_TABLES = ("state", "actuation", "surroundings")  #: tables whose rows are logged


class Engine:
    """One run. Call :meth:`begin` once, then :meth:`poll` when it is due or a command arrives, until :attr:`is_over`."""

    def __init__(
        self,
        simulation: Simulation,
        areas: Mapping[str, SharedMemoryArea],
        commands: RecordQueue,
        events: RecordQueue,
        emulators: SynchronousEmulators,
        *,
        log: bool = False,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.sim, self.commands, self.events, self.emulators = simulation, commands, events, emulators
        self._wake = wake  # signals the reader of the events
        config = simulation.config
        self.state = RunState.STOPPED
        self.pacer = TickPacer(simulation.step_ns * 1e-9, config.time.speed if config.time.pace == "realtime" else 0.0)
        self.end_tick = round(config.time.duration * 1e9) // simulation.step_ns or None
        self.log_ticks = max(1, round(1e9 / config.log.state_rate / simulation.step_ns)) if log else 0
        self.view_ticks = max(1, int(VIEW_S * 1e9) // simulation.step_ns)
        self.lockstep: dict[int, int] = {}  # row -> period in ticks
        self.budget: int | None = None  # remaining ticks of a `step` command
        self.awaits_release = False  # True while the engine waits for ReleaseCommand
        self.is_over = False
        self.watchdog = Watchdog(simulation.loaded, simulation.step_ns)
        self.fences = Fences(config.fleet.fence, simulation.capacity, simulation.step_ns)
        self.fault_schedule = FaultSchedule(simulation.loaded, simulation.step_ns)
        self.instruments = emulators.instruments
        self.publication = EngineTables(simulation, areas, self.instruments)
        self.command_executor = CommandExecutor(self)
        self.vehicles = areas["vehicles"]
        self.now = 0.0  # wall time of this poll
        self._started = False
        self._served_tick = -1  # last tick whose participants were served
        self._asked_tick = -1  # last tick at which emulators were signalled
        self._logged_sequences = LoggedSequences(self.vehicles, self.instruments)
        self._backlog: deque[tuple[int, bytes]] = deque()  # events that did not fit into the queue
        self._wake_due = False

    # -- the loop ------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Add the bodies without a client, and publish the tables."""
        self.now = now
        self.sim.enter_residents()
        for row, occupant in self.sim.occupants.items():
            self.instruments.enter(row, self.sim.loaded.suite_by_name(occupant.name, occupant.model.name))
        self.publication.begin()
        self.publish()

    def poll(self, now: float) -> float:
        """Do all due work, and return the time of the next call (infinity: only when a command arrives)."""
        self.now = now
        try:
            if not self._push_backlog():
                return now + FULL_QUEUE_RETRY_S
            for kind, payload in self.commands.pop_all():
                self.command_executor.execute(kind, payload)
            due = self._run_due(now)
            for v in self.emulators.verdicts(now, self.sim.time_ns * 1e-9):
                self.emit(SlowEmulator(v.name, int(v.slow), v.text))
            return min(due, now + FULL_QUEUE_RETRY_S) if self._backlog else due
        finally:
            self._wake_front()

    def _run_due(self, now: float) -> float:
        if self._is_halted():
            return math.inf
        if not self._serve(now):
            return now + LIVENESS_CHECK_S
        if self._is_halted():
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
        return math.inf if self._is_halted() else now

    def _is_halted(self) -> bool:
        """Return whether the simulation is stopped until a command arrives."""
        return self.is_over or self.state is not RunState.RUNNING or self.awaits_release

    @property
    def is_real_time(self) -> bool:
        """Whether ticks follow wall time at real time or slower."""
        return self.state is RunState.RUNNING and 0.0 < self.pacer.speed <= 1.0

    def _next_stop(self) -> int:
        """Return the next tick at which a participant, a schedule, the log or a viewer is due."""
        tick = self.sim.tick
        view = self.view_ticks * max(1, int(self.pacer.speed))  # viewers follow wall time
        periods = [view, *self.lockstep.values()]
        if self.log_ticks:
            periods.append(self.log_ticks)
        stop = min((tick // p + 1) * p for p in periods)
        stop = min(stop, self.emulators.next_tick(tick), self.watchdog.next_tick(), self.fences.next_tick(tick))
        stop = min(stop, self.fault_schedule.next_tick(tick))
        if self.end_tick is not None:
            stop = min(stop, self.end_tick)
        return min(stop, tick + self.budget) if self.budget is not None else stop

    def _advance(self, ticks: int) -> None:
        frozen = len(self.sim.frozen_bodies)
        for row, text in self.sim.take_clipped():
            self.emit(NoticeEvent(self.sim.time_ns, row, self.sim.occupants[row].name, text, self.generation(row)))
        self.sim.advance(ticks)
        if self.budget is not None:
            self.budget -= ticks
        for record in signal_records(*self.sim.take_signals(), self.sim.identity["generation"]):
            self.emit(record)
        for time_ns, row, what, speed in self.sim.take_meetings():
            if (o := self.sim.occupants.get(row)) is not None:
                text = f"{CONTACT_NOTICE_PREFIX}{what} at {speed:.2g} m/s"
                self.emit(NoticeEvent(time_ns, row, o.name, text, self.generation(row)))
        for time_ns, name, row, load in self.sim.take_breaks():
            body = self.sim.occupants[row].name if row in self.sim.occupants else name
            generation = self.generation(row) if row >= 0 else NO_GENERATION  # a line between anchors has no body
            self.emit(NoticeEvent(time_ns, max(row, 0), body, f"line '{name}' broke at {load:.4g} N", generation))
        if len(self.sim.frozen_bodies) > frozen:
            self.emit(BodiesFrozenEvent(self.sim.time_ns, self.sim.frozen_bodies))

    def _serve(self, now: float) -> bool:
        """Publish, and serve each participant that is due at this tick. Returns False while emulators are awaited."""
        tick = self.sim.tick
        if self._served_tick == tick:
            return True
        if self._asked_tick != tick:
            self._asked_tick = tick
            self._apply_scheduled(tick)
            self.publish()
            self.emulators.ask(tick, now, wait=self.pacer.speed == 0.0)
        if not self.emulators.poll(now):
            return False
        self.publication.counts.sensors_late = self.emulators.late
        self._served_tick = tick
        if self.end_tick is not None and tick >= self.end_tick:
            self.set_state(RunState.ENDED)
        elif self.budget == 0:
            self.budget = None
            self.set_state(RunState.PAUSED)
        rows = [row for row, period in sorted(self.lockstep.items()) if tick % period == 0]
        if rows and self.state is not RunState.ENDED:
            self.awaits_release = True
            self.emit(LockstepDueEvent(tick, rows, [self.generation(row) for row in rows]))
            self._wake_front()
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
                self.emit(record)
            if self.sim.config.fleet.line:
                for record in line_records(tick, self.vehicles):
                    self.emit(record)
        return True

    def _apply_scheduled(self, tick: int) -> None:
        """Apply scheduled faults, watchdogs and fences."""
        for change in self.fault_schedule.changes_at(tick):
            self.command_executor.apply_scheduled_fault(change)
        for row, name, command, text in self.watchdog.take_due(tick):
            if command is not None:
                self.sim.command(row, command)
            self.emit(NoticeEvent(self.sim.time_ns, row, name, text, self.generation(row)))
        if self.fences.next_tick(tick - 1) == tick:
            rows = np.array([k for k, o in sorted(self.sim.occupants.items()) if o.model.type != "buoy"], np.int64)
            for row, text in self.fences.crossings(tick, rows, self.sim.state()["p_WB_W"][rows]):
                self.emit(NoticeEvent(self.sim.time_ns, row, self.sim.occupants[row].name, text, self.generation(row)))

    # -- state changes ----------------------------------------------------------------------------

    def set_state(self, state: RunState) -> None:
        """Change the state of the timer: start, stop, pause or end."""
        if state is self.state:
            return
        self.state = state
        if state is RunState.RUNNING:
            self.pacer.restart()
            if not self._started:
                self._started = True
                for row in self.sim.rows:
                    self.announce_body(row, present=True, new=False)
        else:
            self.budget = None
        self.publish()  # before the front receives the event and logs the counters
        self.emit(RunStateEvent(int(state), self.sim.time_ns))

    def announce_body(self, row: int, present: bool, new: bool = True) -> None:
        """Report the entry or the departure of a body.

        The log contains the bodies that are in the simulation when the clock starts, then every change until the end of
        the run. After the end, programs leave in any order, which is not logged.
        """
        o = self.sim.occupants[row]
        logged = self._started and self.state is not RunState.ENDED
        self.emit(
            BodyPresenceEvent(
                self.sim.time_ns,
                row,
                o.name,
                o.model.name,
                o.model.type,
                int(present),
                int(new),
                int(logged),
                self.generation(row),
            )
        )

    def generation(self, row: int) -> int:
        """Return the generation of the body in a row, or of the last body that occupied it."""
        return int(self.sim.identity["generation"][row])

    def publish(self) -> None:
        """Publish the tables of this tick."""
        self.publication.counts.events_dropped = self.events.dropped
        self.publication.publish_tick(self.state, self.pacer, self.now)
        if self.state is not RunState.RUNNING:  # while running, together with the ticks that are logged or viewed
            self.publication.publish_surroundings()
            self.publication.publish_lines()

    # -- events -----------------------------------------------------------------------------------

    def emit(self, event: EngineEvent) -> None:
        """Send an event to the front.

        In real time, log records that do not fit are dropped and counted; all other events wait.
        """
        record = encode(event)
        if not self._backlog and self.events.push(*record):
            self._wake_due = True
        elif self.pacer.speed > 0.0 and isinstance(event, LogRecordsEvent):
            self.events.count_dropped()
        else:
            self._backlog.append(record)

    def flush(self) -> bool:
        """Send the queued events; return whether the queue is empty."""
        done = self._push_backlog()
        self._wake_front()
        return done

    def _push_backlog(self) -> bool:
        while self._backlog and self.events.push(*self._backlog[0]):
            self._backlog.popleft()
            self._wake_due = True
        # pieces of a large record wait until the reader makes room
        self._wake_due = self._wake_due or bool(self._backlog)
        return not self._backlog

    def _wake_front(self) -> None:
        if self._wake_due:
            self._wake_due = False
            self._wake()
