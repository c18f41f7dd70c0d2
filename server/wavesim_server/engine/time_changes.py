"""Changes of the simulation time in a running server: reset, and return to a snapshot.

The sessions continue. After a change, the simulation contains the bodies of the connected clients and the bodies that
need no client. A body whose client has left since the snapshot is removed; a body whose client has joined since then
starts at its initial pose.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from wavesim_sdk import commands
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire import items
from wavesim_server.engine.command_executor import CommandExecutor
from wavesim_server.engine.emulators import Emulators
from wavesim_server.engine.event_queue import EngineEvents
from wavesim_server.engine.publication import EngineTables
from wavesim_server.engine.run_control import RunControl
from wavesim_server.fences import Fences
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.messages import RunStateEvent, TimeChangedEvent
from wavesim_server.simulation import Simulation
from wavesim_server.snapshots import Snapshot, capture, read_state
from wavesim_server.watchdog import Watchdog

MAX_SNAPSHOTS = 16  #: maximum number of named snapshots in a server's memory


class Served(NamedTuple):
    """Which stages of a tick the engine has completed."""

    asked: bool  #: whether scheduled changes have been applied and emulators have been signalled
    released: bool  #: whether all participants have been served and lockstep clients have answered


class ChangedEngine(Protocol):
    """Interface through which a time change acts on the engine."""

    sim: Simulation
    instruments: InstrumentRegistry
    emulators: Emulators
    watchdog: Watchdog
    fences: Fences
    events: EngineEvents
    run: RunControl
    publication: EngineTables
    command_executor: CommandExecutor
    end_tick: int | None

    @property
    def served(self) -> Served:
        """Which stages of the current tick have been completed."""

    def restart_at_tick(self, served: Served) -> None:
        """Continue at the current tick."""

    def enter_residents(self) -> None:
        """Add the bodies that need no client, with their instruments."""


class TimeChanges:
    """Snapshots of a running server, and the time changes that commands request."""

    def __init__(self, engine: ChangedEngine) -> None:
        self._engine = engine
        config = engine.sim.config.time
        #: number of ticks between two automatic snapshots; 0 = none
        self.period = round(config.snapshot_period * 1e9) // engine.sim.step_ns if config.snapshot_period else 0
        self.recent: deque[Snapshot] = deque(
            maxlen=config.snapshots
        )  #: automatic snapshots, in ascending order of time
        self.named: dict[str, Snapshot] = {}
        #: changes that wait until all emulators have answered, each with the function that reports its result
        self._waiting: list[tuple[items.Control | items.SnapshotAction, Callable[[bool, str], None]]] = []

    def request(self, command: items.Control | items.SnapshotAction, report: Callable[[bool, str], None]) -> None:
        """Queue a command for :meth:`carry_out`. Once it has been executed, call ``report`` with the result."""
        self._waiting.append((command, report))

    @property
    def is_waiting(self) -> bool:
        """Whether a command waits until all emulators have answered."""
        return bool(self._waiting)

    def carry_out(self) -> None:
        """Execute the waiting commands. An emulator must not be writing values at this time."""
        waiting, self._waiting = self._waiting, []
        for command, report in waiting:
            try:
                self._execute(command, report)
            except (ValueError, WaveSimError) as error:
                report(False, str(error))

    def _execute(self, command: items.Control | items.SnapshotAction, report: Callable[[bool, str], None]) -> None:
        engine = self._engine
        if isinstance(command, items.Control) and command.verb == "reset":
            report(True, f"reset at {engine.sim.time_s:.3f} s")
            self._change(None)
        elif isinstance(command, items.Control):
            self._restore(self._recent_before(float(command.value or 0.0)), report)
        elif command.action == "save":
            report(True, self._save(command.name))
        elif command.action == "remove":
            del self.named[self._known(command.name)]
            report(True, f"removed the snapshot '{command.name}'")
        else:
            is_file = commands.is_snapshot_file(command.name)
            self._restore(Snapshot.read(command.name) if is_file else self.named[self._known(command.name)], report)

    def _known(self, name: str) -> str:
        if name not in self.named:
            there = suggest_name(name, self.named) or "; there are no named snapshots"
            raise ValueError(f"no snapshot is named '{name}'{there}")
        return name

    def _save(self, name: str) -> str:
        snapshot = self.take()
        where = f"at {snapshot.time_s:.3f} s"
        if commands.is_snapshot_file(name):
            snapshot.write(Path(name))
            return f"wrote the snapshot '{name}' {where}"
        if name not in self.named and len(self.named) >= MAX_SNAPSHOTS:
            raise ValueError(f"the server already holds {MAX_SNAPSHOTS} snapshots; remove one, or write to a file")
        self.named[name] = snapshot
        return f"saved the snapshot '{name}' {where}"

    # -- automatic snapshots -----------------------------------------------------------------------

    def take_due(self, tick: int) -> None:
        """Take an automatic snapshot if it is due at a tick, before the engine serves this tick."""
        if self.period and tick % self.period == 0 and not (self.recent and self.recent[-1].tick >= tick):
            self.recent.append(self.take())
            self._publish_recent()

    def _publish_recent(self) -> None:
        """Publish the times to which a viewer may return the simulation."""
        step_ns = self._engine.sim.step_ns
        self._engine.publication.publish_snapshots([s.tick * step_ns for s in self.recent])

    def next_tick(self, tick: int) -> int | None:
        """Return the next tick after ``tick`` at which an automatic snapshot is due; None = never."""
        return (tick // self.period + 1) * self.period if self.period else None

    def _recent_before(self, time_s: float) -> Snapshot:
        if not self.period:
            raise ValueError('this server takes no automatic snapshots; set <time snapshot_period="10 s"/>')
        found = [s for s in self.recent if s.time_s <= time_s + 1e-9]
        if not found:
            oldest = f"the oldest is at {self.recent[0].time_s:.3f} s" if self.recent else "there is none yet"
            raise ValueError(f"no automatic snapshot at or before {time_s:.3f} s; {oldest}")
        return found[-1]

    # -- taking and restoring ----------------------------------------------------------------------

    def take(self) -> Snapshot:
        """Return a snapshot of the simulation and of everything that the engine stores about it."""
        e = self._engine
        return capture(
            e.sim,
            vars(e.sim),
            instruments=e.instruments.save(),
            banks=e.emulators.save(),
            engine={
                "watchdog": e.watchdog.save(),
                "fences": e.fences,
                "served": tuple(e.served),
            },
        )

    def _restore(self, snapshot: Snapshot, report: Callable[[bool, str], None]) -> None:
        sim = self._engine.sim
        if snapshot.seed != sim.seed:
            raise ValueError(f"the snapshot has the seed {snapshot.seed}, but this server uses the seed {sim.seed}")
        parts = read_state(sim, snapshot)
        if "banks" not in parts:
            raise ValueError("the snapshot has no instruments: it was made by a Simulation, not by a Lab or a server")
        report(True, f"returned from {sim.time_s:.3f} s to {snapshot.time_s:.3f} s")
        self._change(parts)
        while self.recent and self.recent[-1].tick > snapshot.tick:
            self.recent.pop()
        self._publish_recent()

    def _change(self, parts: dict[str, Any] | None) -> None:
        """Restore a snapshot, given by its parts, or the initial state (None)."""
        e, before_ns = self._engine, self._engine.sim.time_ns
        if parts is None or e.run.state is RunState.ENDED:
            # before the change, so that this state belongs to the log that ends here
            e.run.set_state(RunState.STOPPED if parts is None else RunState.PAUSED)
        generations = e.sim.identity["generation"].copy()
        if parts is None:
            self.recent.clear()
            self._publish_recent()
            self._begin_again()
            served = Served(False, False)
        else:
            served = Served(*parts.get("engine", {}).get("served", (True, True)))
            self._put_back(parts)
        e.sim.identity["generation"] = np.maximum(generations, e.sim.identity["generation"])
        e.events.emit(TimeChangedEvent(e.sim.time_ns, before_ns))
        self._match_bodies(generations)
        e.restart_at_tick(served)
        e.run.restart(is_new=parts is None)
        e.publication.begin(e.end_tick)
        e.publication.publish_fences(e.fences.current)
        e.run.publish()
        if parts is not None:
            e.run.announce_bodies()
            e.events.emit(RunStateEvent(int(e.run.state), e.sim.time_ns))

    def _begin_again(self) -> None:
        e = self._engine
        e.sim.restart()
        e.instruments.clear()
        e.emulators.restore(None, e.sim.seed)
        e.watchdog.restore({})
        vars(e.fences).update(
            vars(Fences([f.request() for f in e.sim.config.fleet.fence], e.sim.capacity, e.sim.step_ns))
        )
        e.enter_residents()

    def _put_back(self, parts: dict[str, Any]) -> None:
        e = self._engine
        e.sim.put_back(parts["simulation"])
        e.instruments.restore(parts["instruments"], e.sim.suite_in_row)
        e.emulators.restore(parts["banks"], e.sim.seed)
        if own := parts.get("engine"):
            e.watchdog.restore(own["watchdog"])
            vars(e.fences).update(vars(own["fences"]))

    def _match_bodies(self, generations: Any) -> None:
        """Make the simulation contain exactly the bodies of the connected clients and those that need no client."""
        e, clients = self._engine, self._engine.command_executor.entries
        configured = {b.name: b for b in e.sim.config.fleet.bodies}
        for row, occupant in list(e.sim.occupants.items()):
            body = configured.get(occupant.name)
            is_resident = body is not None and body.client == "none"
            if not is_resident and (row not in clients or clients[row].name != occupant.name):
                e.command_executor.remove_body(row)
        for row, entry in clients.items():
            current = dataclasses.replace(entry, generation=int(generations[row]))
            if row in e.sim.occupants:
                e.sim.identity["generation"][row] = current.generation
                continue
            e.command_executor.add_body(current)
        for row in e.sim.occupants:
            e.sim.identity["generation"][row] = max(1, generations[row])
