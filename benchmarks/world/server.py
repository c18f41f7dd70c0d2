"""A server in one process: engine and front on private memory, driven by the virtual clock.

It replaces the shells of the processes: it calls the cores when they are due, carries their datagrams and records, and
writes the log to a disk that may be full. It also removes the front and starts another.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.world import scenes
from benchmarks.world.clock import Timer
from benchmarks.world.emulators import Bell
from benchmarks.world.network import Address
from benchmarks.world.sizes import sizes
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_server.engine.core import Engine
from wavesim_server.engine.emulators import SynchronousEmulators
from wavesim_server.engine.event_queue import EventQueue
from wavesim_server.engine.pace import TickPacer
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.network.engine_queue import EngineQueue
from wavesim_server.network.front import Front
from wavesim_server.resources import area_tables
from wavesim_server.ring import READ, WRITTEN, Ring
from wavesim_server.simulation import Simulation

if TYPE_CHECKING:
    from benchmarks.world.scenes import Scene
    from benchmarks.world.world import World

ADDRESS: Address = ("10.0.0.1", 9750)
LOOK_S = 0.04
SWITCH_S = 0.0005  #: time to switch from one process to another
BEHIND_S = 0.15  #: time that the front needs for earlier records of the engine
ENGINE_S = 0.005  #: until the engine goes on: time that nothing holds up costs us, not the clock


#: configuration, shared tables and log file, which do not grow with clients
_NOT_OURS = frozenset({"loaded", "config", "areas", "log", "_log", "vehicles", "said", "emulator"}) | {
    "tick_executor",  # the arrays of the fleet once more, as the kernels receive them
}


@functools.cache
def _made(name: str) -> dict[str, tuple[SharedMemoryArea, bytearray, bytes]]:
    """The shared-memory areas of a scene, and their initial bytes."""
    made = {}
    for area, tables in area_tables(scenes.scene(name).loaded).items():
        new = SharedMemoryArea.create_private(tables)
        memory = new._memory
        assert isinstance(memory, bytearray)
        made[area] = new, memory, bytes(memory)
    return made


def _areas(scene: Scene) -> dict[str, SharedMemoryArea]:
    """Return empty areas. One world lives after another, so the areas are reused: creating them would take a tenth of
    the time of a world.
    """
    found = {}
    for name, (area, memory, first) in _made(scene.name).items():
        memory[:] = first
        found[name] = area
    return found


class Disk(io.BytesIO):
    """A file on a disk of limited size."""

    def __init__(self, room: float) -> None:
        super().__init__()
        self.room = room

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)

    def close(self) -> None:
        """Close the file; the part that was written can be read."""


class Server:
    """Engine, front and the queues between them."""

    def __init__(self, world: World, scene: Scene, r: random.Random) -> None:
        self.world, self.scene = world, scene
        self.loaded = loaded = scene.loaded
        self.areas = _areas(scene)
        small = "rings" in world.plagues and r.random() < 0.5
        self.commands = Ring.create_private(r.choice((2_000, 8_000)) if small else 1 << 16)
        self.events = Ring.create_private(r.choice((3_000, 16_000)) if small else 1 << 18)
        self.room = r.choice((0, 900, 6_000, 20_000)) if "disk" in world.plagues and r.random() < 0.3 else float("inf")
        self.disks: list[Disk] = []
        self.seldom = LOOK_S  #: interval between two checks of the sessions by the front
        self.slow = r.choice((0.02, 0.04, 0.08))  #: wall time in s of a turn of the engine
        simulation = Simulation(loaded, world.seed)
        instruments = InstrumentRegistry(loaded.sensor_rows, simulation.step_ns)
        vehicles = self.areas["vehicles"]
        self.bells = {name: Bell() for name in instruments.types}
        emulators = SynchronousEmulators(
            vehicles,
            self.bells,
            instruments,
            loaded.config.network.lockstep_timeout,
            loaded.config.network.lockstep_budget,
        )
        pacer = TickPacer.from_config(loaded.config.time)
        self.engine_events = EventQueue(self.events, pacer, self._events_wait)
        self.engine = Engine(simulation, self.areas, self.commands, self.engine_events, emulators, pacer, log=True)
        self._resident = max(row for row, b in enumerate(loaded.config.fleet.bodies) if b.client == "none")
        self._dice = r
        self.engine_queue = EngineQueue(self.commands, self.wake_engine)
        self.front: Front | None = None
        self.front_since = 0.0
        self.said: list[str] = []
        self.stood = 0.0  #: time until which a part is stopped
        self._still = ""  #: part that is stopped
        self._unread: list[Callable[[float], None]] = []  #: inputs that wait for the front meanwhile
        self._engine_due = Timer(world.clock, self._turn_engine)
        self._front_due = Timer(world.clock, self._turn_front)
        self._look = Timer(world.clock, self._take_events)

    def start(self, now: float) -> None:
        """Start both processes."""
        self.engine.begin(now)
        self._begin_front(now, again=False)
        self._engine_due.at(now)

    # -- SIGSTOP and SIGCONT -------------------------------------------------------------------------

    def stand_still(self, part: str, now: float, seconds: float) -> None:
        """Stop a process: it does nothing, and its inputs wait."""
        self._still, self.stood = part, now + seconds
        self.world.clock.at(self.stood, self.go_on)

    def is_stopped(self, part: str) -> bool:
        """Return whether a process is stopped."""
        return self._still == part

    def go_on(self, now: float) -> None:
        """Continue a stopped process."""
        if not self._still:
            return
        self._still, self.stood = "", now
        self._engine_due.at(now)
        self._wakes(now)

    def _wakes(self, now: float) -> None:
        """Run the front: it reads the socket before it checks its sessions, and reads the engine at a random time."""
        if self._dice.random() < 0.5:
            self._take_events(now)
        self._read(now)
        self._turn_front(now)
        self._take_events(now)

    def _read(self, now: float) -> None:
        unread, self._unread = self._unread, []
        for read in unread:
            read(now)

    # -- the engine ----------------------------------------------------------------------------------

    def _turn_engine(self, now: float) -> None:
        if self._still == "engine":
            return
        if self.engine.is_over:
            if not self.engine.flush():
                self._engine_due.at(now + SWITCH_S)
            return
        if self.world.loud:
            self._ping()
        due = self.engine.poll(now)
        if due <= now:
            due = now + self.slow
        self._engine_due.at(due)
        self.world.turned(now)

    def _ping(self) -> None:
        """Let a resident body emit a sound that all others receive."""
        with contextlib.suppress(ValueError):  # its transducer is busy
            self.engine.sim.ping(self._resident, 25_000.0)

    def wake_engine(self) -> None:
        """Run the engine, because commands wait or an emulator has answered."""
        self._engine_due.at(self.world.clock.now + ENGINE_S)

    def _events_wait(self) -> None:
        self._look.at(self.world.clock.now + (BEHIND_S if self._behind else SWITCH_S))

    @property
    def _behind(self) -> bool:
        return self.world.loud and not self.world.calm

    # -- the front -----------------------------------------------------------------------------------

    def _begin_front(self, now: float, again: bool) -> None:
        self.front_since = now
        disk = Disk(self.room)
        self.disks.append(disk)
        self.engine_queue = EngineQueue(self.commands, self.wake_engine)
        self.front = Front(
            self.loaded,
            "world",
            self.world.seed,
            self.areas,
            self.engine_queue,
            self.events,
            LogWriter(disk, self.loaded, self.world.seed),
            keys=self.world.officer.keyring_at_start() if self.scene.sealed else None,
            load_keys=self.world.officer.keyring,
            rng=self._dice,
            print_line=self._say,
        )
        self.world.front_begins(self.front)
        if again:
            self.front.take_over(now)
        self.world.network.open(ADDRESS, self.receive)
        self._settle()
        self._front_due.at(now)
        self._look.at(now)

    def _say(self, text: str) -> None:
        self.said.append(text)

    def _turn_front(self, now: float) -> None:
        if self.front is not None and self._still != "front":
            due = self.front.poll(now)
            self._send()
            self._front_due.at(max(due, now + self.seldom))

    def receive(self, data: bytes, source: Address, now: float) -> None:
        """Deliver a datagram to the front."""
        if self._still == "front":
            self._unread.append(lambda at: self.receive(data, source, at))
        elif self.front is not None:
            self.front.receive(data, source, now)
            self._settle()

    def _take_events(self, now: float) -> None:
        if self.front is not None and self._still != "front":
            self._hear(now)
            # Who is behind reads without a pause, and the engine fills the room: else a small ring would cost several delays.
            while self._behind and self.engine_events.has_backlog and self._still != "engine":
                self.engine.flush()
                self._hear(now)
            self._settle()

    def _hear(self, now: float) -> None:
        assert self.front is not None
        for kind, payload in self.events.pop_all():
            self.front.event(kind, payload, now)

    def command(self, message: dict[str, Any], now: float) -> bool:
        """Deliver a command of the queue. Return whether a process took it."""
        if self.front is None:
            return False
        if self._still == "front":
            self._unread.append(lambda at: self._obey(message, at))
        else:
            self._obey(message, now)
        return True

    def _obey(self, message: dict[str, Any], now: float) -> None:
        assert self.front is not None
        self.front.command(message, now)
        self._settle()

    def _settle(self) -> None:
        assert self.front is not None
        self.front.hand_over()
        self._send()

    def _send(self) -> None:
        assert self.front is not None
        outgoing, self.front.outgoing = self.front.outgoing, []
        for some in outgoing:
            for data, address in some:
                self.world.network.send(data, ADDRESS, address)
        replies, self.front.replies = self.front.replies, []
        for message, reply in replies:
            self.world.replied(message, reply)

    def crash(self, lose: Callable[[], bool]) -> None:
        """Kill the process of the front. ``lose`` states whether it had already taken the next record of the engine."""
        self.front = None
        self._still, self._unread = "", []  # SIGKILL ends who is stopped, too
        self._engine_due.at(self.world.clock.now)
        self._front_due.stop()
        self.world.network.close(ADDRESS)
        for _ in self.events.pop_all():
            if not lose():
                break

    def restart(self, now: float) -> None:
        """Start another front, as the supervisor does."""
        if self.front is None:
            self._begin_front(now, again=True)

    def finish(self, now: float) -> None:
        """End both processes in order: the last records of the engine are read, and the log is closed."""
        assert self.front is not None
        for _ in range(1000):
            written = self.engine.flush()
            self._hear(now)
            if written:
                break
        self.front.finish(now)

    @property
    def lost(self) -> bool:
        """Return whether records may be missing in the log."""
        return len(self.disks) > 1 or self.room < float("inf") or self.engine.events.dropped > 0

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all containers."""
        return sizes({"front": self.front, "engine": self.engine}, _NOT_OURS)

    @property
    def quiet(self) -> bool:
        """Return whether no data is in transit between the two processes."""
        front = self.front
        if front is None or self.engine_queue.waiting_count or self.engine_events.has_backlog:
            return False
        return all(ring._header[WRITTEN] == ring._header[READ] for ring in (self.commands, self.events))
