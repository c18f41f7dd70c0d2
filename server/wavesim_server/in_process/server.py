"""Engine, front end and emulators of a trial that runs in one process. They exchange objects instead of encoded
messages.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from wavesim_sdk.tables import RunState
from wavesim_sdk.wire.messages import MAX_DATAGRAM, Join
from wavesim_sdk.wire.session import LocalClient, Session
from wavesim_server.engine.core import Engine
from wavesim_server.engine.event_queue import LocalEvents
from wavesim_server.engine.pace import TickPacer
from wavesim_server.in_process.emulators import LocalEmulators
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.logbook.log_part import CHUNK_NS, FAST_CHUNK_NS
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.network.broadcast import Address
from wavesim_server.network.engine_queue import LocalEngineQueue
from wavesim_server.network.front import Front
from wavesim_server.network.process import MAX_DATAGRAMS_AT_ONCE, load_keyring
from wavesim_server.resources import attach_areas, attach_front_rings
from wavesim_server.serve import ServerOptions
from wavesim_server.simulation import Simulation
from wavesim_world.config import LoadedConfig

__all__ = ["InProcessServer"]

IDLE_S = 0.05  #: maximum wall time in s of one pause
PUBLISH_S = 0.02  #: wall time in s between two updates of the front end's tables in shared memory


class NetworkPort:
    """UDP socket for the participants that run outside this process."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        sock.setblocking(False)

    def receive(self) -> Iterator[tuple[bytes, Address]]:
        """Yield the datagrams that have arrived, with their senders."""
        for _ in range(MAX_DATAGRAMS_AT_ONCE):
            try:
                data, sender = self._socket.recvfrom(MAX_DATAGRAM + 1)
            except BlockingIOError:
                return
            except ConnectionError:  # a client's port is closed; this concerns none of the others
                continue
            yield data, sender[:2]

    def send(self, batch: Iterable[tuple[bytes, Address]]) -> None:
        """Send datagrams. Datagrams for which the system has no room are lost, as they would be in a network."""
        for data, address in batch:
            with contextlib.suppress(OSError):
                self._socket.sendto(data, address)

    def wait(self, timeout: float) -> None:
        """Wait for a datagram for at most ``timeout`` seconds."""
        select.select([self._socket], [], [], timeout)


class InProcessServer:
    """The server of a trial in one process, with shared memory that is named after the server.

    In real time, or with participants outside this process, the clock of the sessions is wall time. Otherwise, it is
    simulation time plus the wall time during which nothing happened; therefore, no client is ever too slow.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        options: ServerOptions,
        print_line: Callable[[str], None],
        network: NetworkPort | None = None,
    ) -> None:
        self.network = network
        areas = attach_areas(options.name)
        self.simulation = Simulation(loaded, options.seed)
        instruments = InstrumentRegistry(loaded.sensor_rows, self.simulation.step_ns)
        self._emulators = LocalEmulators(self.simulation, instruments, areas, options.name)
        pacer = TickPacer.from_config(loaded.config.time)
        self._events, self._commands = LocalEvents(), LocalEngineQueue()
        self.engine = Engine(self.simulation, areas, None, self._events, self._emulators, pacer, log=bool(options.log))
        self.engine.front_rings = attach_front_rings(loaded, options.name)
        self.engine.override_time(options.speed, options.duration)
        chunk_ns = CHUNK_NS if self.engine.pacer.speed > 0.0 else FAST_CHUNK_NS
        log = (
            LogWriter(Path(options.log), loaded, options.seed, options.name, chunk_ns=chunk_ns) if options.log else None
        )
        keys = load_keyring(loaded) if network is not None else None
        self.front = Front(
            loaded, options.name, options.seed, areas, self._commands, log=log, keys=keys, print_line=print_line
        )
        self.front.has_network = network is not None
        self.idle_s = 0.0  #: total wall time in s during which neither the simulation nor the programs advanced
        self._front_due = self._engine_due = self._publish_at = 0.0
        self.engine.begin(time.monotonic())
        self._emulators.begin()
        self._take_events()

    @property
    def now(self) -> float:
        """The time in s that the front end uses."""
        if self.engine.pacer.speed > 0.0 or self.network is not None:
            return time.monotonic()
        return 1.0 + self.simulation.time_ns * 1e-9 + self.idle_s

    # -- time --------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Do the work that is due. Return False if no further work is due until a program acts or time passes."""
        if self.network is not None:
            for data, address in self.network.receive():
                self.front.receive(data, address, self.now)
        has_commands = self._execute_commands()
        self._engine_due = self.engine.poll(wall := time.monotonic())
        has_events = self._take_events()
        now = self.now
        if now >= self._front_due or wall >= self._publish_at:
            self._front_due, self._publish_at = self.front.poll(now), wall + PUBLISH_S
        else:
            self.front.set_time(now)
            self.front.hand_over()
        self._send()
        return has_commands or has_events or self._engine_due <= wall or bool(self._commands.waiting)

    def pause(self) -> float:
        """Return the wall time in s to wait when no work is due."""
        return min(max(self._engine_due - time.monotonic(), 0.0), max(self._front_due - self.now, 0.0), IDLE_S)

    def _send(self) -> None:
        if self.network is not None:
            for batch in self.front.outgoing:
                self.network.send(batch)
        self.front.outgoing.clear()

    def _execute_commands(self) -> bool:
        waiting, executor = self._commands.waiting, self.engine.command_executor
        has_any = bool(waiting)
        while waiting:
            executor.execute(waiting.popleft())
        return has_any

    def _take_events(self) -> bool:
        waiting, now = self._events.waiting, self.now
        has_any = bool(waiting)
        while waiting:
            self.front.handle_event(waiting.popleft(), now)
        return has_any

    # -- the trial ---------------------------------------------------------------------------------

    def control(self, verb: str) -> None:
        """Execute a command from the commander: start, pause, resume, shutdown."""
        self.front.command({"verb": verb}, self.now)
        self.front.hand_over()
        self._execute_commands()
        self._take_events()
        self.front.replies.clear()

    @property
    def run_state(self) -> RunState:
        """Run state of the simulation, for example running or ended."""
        return self.engine.run.state

    @property
    def is_held(self) -> bool:
        """Whether the simulation has reached the tick at which it waits, and has done all work that is due at this
        tick.
        """
        return self.engine.is_held and not self._commands.waiting and not self.engine.run.awaits_release

    def status(self) -> Mapping[str, Any]:
        """Return the status of the server, as `wavesim status` shows it."""
        return self.front.status()

    def finish(self) -> None:
        """End the run and all sessions, and close the log."""
        self.control("shutdown")
        self._emulators.release()
        self.front.finish(self.now)
        self._send()

    # -- the programs ------------------------------------------------------------------------------

    def join(self, join: Join, client: LocalClient) -> Session:
        """Open a session. Raises NotAdmitted if the client may not join."""
        return self.front.join_local(join, client, self.now)

    def request(self, session: Session, number: int, item: Any) -> None:
        """Accept a request from a session."""
        self.front.request_local(session, number, item)

    def deliver(self, session: Session, message: Any) -> None:
        """Accept a message from a session."""
        self.front.receive_local(session, message)

    def end(self, session: Session) -> None:
        """End a session whose program has exited without leaving."""
        self.front.end_local(session)
