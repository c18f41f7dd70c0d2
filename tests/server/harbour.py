"""A server in this process on a clock that the test advances: optionally an engine, a front, and clients without
sockets.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import (
    ACTUATOR_FAULT,
    GEOMETRY,
    IDENTITY,
    RECEPTION,
    SENT,
    STATE,
    SURROUNDINGS,
    BodyType,
    RunState,
)
from wavesim_sdk.wire.client import ClientSession, SessionEvent
from wavesim_sdk.wire.items import Answer, RequestRefused
from wavesim_sdk.wire.messages import Join
from wavesim_sdk.wire.state import State
from wavesim_server.acoustics.channel import NO_CHANNEL_STATES
from wavesim_server.engine.core import Engine
from wavesim_server.engine.emulators import SynchronousEmulators
from wavesim_server.engine.event_queue import EventQueue
from wavesim_server.engine.pace import TickPacer
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.network.engine_queue import EngineQueue
from wavesim_server.network.front import Front
from wavesim_server.resources import area_tables
from wavesim_server.ring import Ring
from wavesim_server.simulation import Simulation
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig


class Sea:
    """In place of the simulation and of its parts: bodies that do not move. What is done to it is kept."""

    def __init__(self, loaded: LoadedConfig) -> None:
        self.loaded, self.config, self.seed = loaded, loaded.config, 1
        self.step_ns = round(loaded.config.time.step * 1e9)
        self.tick = 0
        self.capacity = loaded.config.shared.vehicles
        self.occupants: dict[int, Any] = {}
        self.identity = np.zeros(self.capacity, IDENTITY.dtype)
        self.geometry = np.zeros(self.capacity, GEOMETRY.dtype)
        self.actuator_faults = np.zeros(self.capacity, ACTUATOR_FAULT.dtype)
        self.done: list[tuple[Any, ...]] = []
        self.meetings: list[list[tuple[int, int, str, float]]] = []
        self.broken: list[tuple[int, str, int, float]] = []
        self.signals: list[tuple[Any, Any]] = []
        self.channel_states: list[Any] = []
        self.frozen_bodies: list[str] = []
        self.counters = (0, 0, 0)
        self.fleet = self.channel = self.contacts = self.results = self.line_system = self
        self.dropped = self.paths_dropped = 0
        self.breaks: set[str] = set()  #: names of methods that fail as nobody expects

    @property
    def time_ns(self) -> int:
        return self.tick * self.step_ns

    @property
    def time_s(self) -> float:
        return self.time_ns * 1e-9

    @property
    def rows(self) -> list[int]:
        return sorted(self.occupants)

    suite_in_row = Simulation.suite_in_row

    def _note(self, what: str, *values: Any) -> None:
        if what in self.breaks:
            raise ZeroDivisionError(what)
        self.done.append((self.tick, what, *values))

    def enter_residents(self) -> None:
        for row, body in enumerate(self.config.fleet.bodies):
            if body.client == "none":
                self.enter(body.name, "", (0, 0, 0), (0, 0, 0), row)

    def enter(self, name: str, model: str, position: Any, attitude: Any, row: int, generation: int = 0) -> int:
        self._note("enter", row, name)
        body = next((b for b in self.config.fleet.bodies if b.name == name), None)
        kind = self.loaded.model(body.model if body is not None else model)
        if kind.name == "buoy" and name == "unstable":
            raise ValueError("its model is not stable at this time step")
        self.occupants[row] = Occupant(name, kind, kind.transducer)
        self.identity[row] = (
            1,
            BodyType[kind.type.upper()],
            name.encode(),
            kind.name.encode(),
            generation or self.identity[row]["generation"] + 1,
        )
        return row

    def listen(self, row: int) -> None:
        self._note("listen", row)

    def leave(self, row: int) -> None:
        self._note("leave", row)
        del self.occupants[row]
        self.identity[row]["present"] = 0

    def command(self, row: int, values: Sequence[float | None]) -> None:
        self._note("command", row, tuple(values))

    def ping(self, row: int, *values: Any, number: int) -> None:
        self._note("ping", row, number)

    def send(self, row: int, *values: Any, number: int) -> None:
        self._note("send", row, number)

    def advance(self, ticks: int) -> None:
        self.tick += ticks

    def actuators(self, row: int) -> Any:
        return actuators_of(self.occupants[row].model)

    def row_of(self, name: str) -> int | None:
        return next((row for row, o in self.occupants.items() if o.name == name), None)

    def effort(self, rows: Sequence[int], table: Any) -> None:
        table["total"][rows] = self.tick

    present_rows = None

    def fill_surroundings(self, time: float, rows: None, table: Any) -> None:
        table[:, SURROUNDINGS.first_columns["level"]] = self.tick

    def state(self) -> Any:
        return np.zeros(self.capacity, STATE.dtype)

    def live_signals(self, table: Any, time: float) -> int:
        return 0

    def take_clipped(self) -> list[tuple[int, str]]:
        return []

    def take_breaks(self) -> list[tuple[int, str, int, float]]:
        found, self.broken = self.broken, []
        return found

    def lines(self, table: Any) -> Any:
        table["present"], table["name"], table["first_body"] = 1, b"tether", 2
        return table

    def take_meetings(self) -> list[tuple[int, int, str, float]]:
        return self.meetings.pop(0) if self.meetings else []

    def take_signals(self) -> tuple[Any, Any]:
        if self.signals:
            return self.signals.pop(0)
        return np.zeros(0, SENT.dtype), np.zeros(0, RECEPTION.dtype)

    def take_channel_states(self) -> Any:
        return self.channel_states.pop(0) if self.channel_states else NO_CHANNEL_STATES

    def fill(self, time: float, state: Any, actuation: Any, weather: Any) -> None:
        state[:, STATE.first_columns["p_WB_W"]] = self.tick

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *values, **named: self._note(name, *values, *named.values())


@dataclass
class Occupant:
    """Who is in a row of the sea."""

    name: str
    model: Any
    transducer: Any = None


class Bell:
    """An emulator that answers when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = True
        self._waits = False

    def ask(self) -> None:
        self.asked += 1
        self._waits = True

    def wait_answer(self, timeout: float = 0.0) -> bool:
        if self._waits and self.answers:
            self._waits = False
            return True
        return False


@dataclass
class Client:
    """A session without a socket."""

    session: ClientSession
    address: tuple[str, int]
    events: list[SessionEvent] = field(default_factory=list)
    cut: bool = False  #: nothing goes either way

    @property
    def states(self) -> list[State]:
        return [e for e in self.events if isinstance(e, State)]

    def of(self, kind: type[Any]) -> list[Any]:
        return [e for e in self.events if isinstance(e, kind)]

    def outcome(self, number: int) -> tuple[bool, str] | None:
        """What was said to a request."""
        for e in self.events:
            if isinstance(e, Answer) and e.request == number:
                return bool(e.ok), e.text
            if isinstance(e, RequestRefused) and e.request == number:
                return False, e.text
        return None


class Harbour:
    """Engine and front on private memory; :meth:`run` lets time pass in steps of a millisecond."""

    def __init__(
        self,
        loaded: LoadedConfig,
        *,
        speed: float | None = None,
        duration: float | None = None,
        log: bool = False,
        limit: float = 1.0,
        real: bool = False,
    ) -> None:
        """``real`` replaces the sea by a real simulation."""
        self.loaded = loaded
        self.now = 100.0
        self.areas = {name: SharedMemoryArea.create_private(tables) for name, tables in area_tables(loaded).items()}
        self.commands, self.events = Ring.create_private(1 << 16), Ring.create_private(1 << 18)
        self.sea: Any = Simulation(loaded) if real else Sea(loaded)
        instruments = InstrumentRegistry(loaded.sensor_rows, self.sea.step_ns)
        self.bells = {s: Bell() for s in instruments.types}
        emulators = SynchronousEmulators(
            self.areas["vehicles"], self.bells, instruments, limit, loaded.config.network.lockstep_budget
        )
        pacer = TickPacer.from_config(loaded.config.time)
        events = EventQueue(self.events, pacer)
        self.engine = Engine(self.sea, self.areas, self.commands, events, emulators, pacer, log=log)
        self.engine.override_time(speed, duration)
        self.said: list[str] = []
        self.replies: dict[int, tuple[bool, str]] = {}
        self.front = Front(
            loaded,
            "harbour",
            1,
            self.areas,
            EngineQueue(self.commands),
            self.events,
            rng=random.Random(1),
            print_line=self.said.append,
        )
        self.clients: list[Client] = []
        self.frozen = False  #: the engine does nothing
        self.engine.begin(self.now)
        self._engine_due, self._front_due = 0.0, 0.0

    def join(self, name: str, seconds: float = 0.05, **more: Any) -> Client:
        """A client that has joined, or been refused."""
        client = Client(ClientSession(Join(name=name, **more), rng=random.Random(len(self.clients))), self._address())
        self.clients.append(client)
        self.run(seconds)
        return client

    def _address(self) -> tuple[str, int]:
        return "127.0.0.1", 4000 + len(self.clients)

    def order(self, verb: str, **arguments: Any) -> tuple[bool, str]:
        """A command of the commander, and what came of it."""
        number = len(self.replies) + 1
        self.front.command({"verb": verb, "id": number, **arguments}, self.now)
        self.run(0.01)
        return self.replies[number]

    def run(self, seconds: float, grain: float = 0.001) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self.now < end:
            self.now += grain
            self._turn()

    def _turn(self) -> None:
        if not self.frozen:
            for _ in range(20):
                if self.engine.poll(self.now) > self.now:
                    break
        for kind, payload in self.events.pop_all():
            self.front.event(kind, payload, self.now)
        for client in self.clients:
            for data in client.session.outgoing(self.now):
                if not client.cut:
                    self.front.receive(data, client.address, self.now)
        self.front.poll(self.now)
        outgoing, self.front.outgoing = self.front.outgoing, []
        by_address = {c.address: c for c in self.clients}
        for batch in outgoing:
            for data, address in batch:
                client = by_address.get(address)
                if client is not None and not client.cut:
                    client.events += client.session.receive(data, self.now)
        for message, reply in self.front.replies:
            self.replies[int(message["id"])] = reply.ok, reply.text
        self.front.replies.clear()

    @property
    def state(self) -> RunState:
        return self.engine.run.state


def done(harbour: Harbour, what: str) -> list[tuple[Any, ...]]:
    """What happened in the sea, of one kind: (tick, values ...)."""
    return [(tick, *values) for tick, kind, *values in harbour.sea.done if kind == what]


def status(harbour: Harbour) -> Mapping[str, Any]:
    """The server's report of itself."""
    return harbour.front.status()


NEVER = math.inf
