"""The state of a run, with its timer and lockstep participants, and the events that report it to the front end."""

from __future__ import annotations

from wavesim_sdk.tables import RunState
from wavesim_server.engine.event_queue import EngineEvents
from wavesim_server.engine.pace import TickPacer
from wavesim_server.engine.publication import EngineTables
from wavesim_server.messages import BodyPresenceEvent, RunStateEvent
from wavesim_server.simulation import Simulation


class RunControl:
    """State of the timer and of lockstep. Every change is published and reported."""

    def __init__(self, simulation: Simulation, pacer: TickPacer, tables: EngineTables, events: EngineEvents) -> None:
        self._sim, self.pacer, self._tables, self._events = simulation, pacer, tables, events
        self.state = RunState.STOPPED
        self.is_over = False
        self.budget: int | None = None  #: number of remaining ticks of a `step` command
        self.lockstep: dict[int, int] = {}  #: lockstep period of the pilot of each body in ticks, by row
        #: row and period in ticks of each instrument in lockstep
        self.instrument_steps: tuple[tuple[int, int], ...] = ()
        self.awaits_release = False  #: True while the engine is waiting for ReleaseCommand
        self.now = 0.0  #: wall time of the current call of the engine
        self._started = False

    def steps_due(self, tick: int) -> list[int]:
        """Return the rows of those bodies that have a participant due at a tick."""
        pilots = {row for row, period in self.lockstep.items() if tick % period == 0}
        present = self._sim.occupants
        return sorted(pilots | {row for row, n in self.instrument_steps if tick % n == 0 and row in present})

    def is_halted(self) -> bool:
        """Return whether the simulation is stopped until a command arrives."""
        return self.is_over or self.state is not RunState.RUNNING or self.awaits_release

    @property
    def is_real_time(self) -> bool:
        """Whether the simulation is paced by wall time, that is, in real time or slower."""
        return self.state is RunState.RUNNING and 0.0 < self.pacer.speed <= 1.0

    def set_state(self, state: RunState) -> None:
        """Change the state of the timer: start, stop, pause or end."""
        if state is self.state:
            return
        self.state = state
        if state is RunState.RUNNING:
            self.pacer.restart()
            if not self._started:
                self._started = True
                self.announce_bodies()
        else:
            self.budget = None
        self.publish()  # before the front receives the event and logs the counters
        self._events.emit(RunStateEvent(int(state), self._sim.time_ns))

    def set_speed(self, speed: float) -> None:
        """Change the speed in simulated seconds per wall second; 0 = as fast as possible."""
        self.pacer.speed = speed
        self.pacer.restart()
        self.publish()

    def restart(self, is_new: bool) -> None:
        """Continue after a change of the simulation time; ``is_new`` states whether the run begins again."""
        self.budget, self.awaits_release = None, False
        self._started = self._started and not is_new
        self.pacer.restart()

    def announce_bodies(self) -> None:
        """Report all bodies for the log."""
        for row in self._sim.rows:
            self.announce_body(row, present=True, new=False)

    def announce_body(self, row: int, present: bool, new: bool = True) -> None:
        """Report that a body was added or removed.

        The log contains the bodies that are in the simulation when the clock starts, and every later change until the
        end of the run. After the end, programs leave in an arbitrary order; these departures are not logged.
        """
        o = self._sim.occupants[row]
        logged = self._started and self.state is not RunState.ENDED
        self._events.emit(
            BodyPresenceEvent(
                self._sim.time_ns,
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
        return int(self._sim.identity["generation"][row])

    def publish(self) -> None:
        """Publish the tables for this tick."""
        self._tables.counts.events_dropped = self._events.dropped
        self._tables.publish_tick(self.state, self.pacer, self.now)
        if self.state is not RunState.RUNNING:  # while running, together with the ticks that are logged or viewed
            self._tables.publish_surroundings()
            self._tables.publish_lines()
