"""Tools for testing programs that use the wire protocol: a lossy network, sessions in memory and a scripted server.

Examples::

    with LossyProxy(("127.0.0.1", 9750), loss=0.3, delay=(0.0, 0.5), seed=1) as proxy:
        broker = Broker("auv", proxy.address)

    with FakeServer() as server:                       # real UDP, no simulation
        broker = Broker("auv", server.address, lockstep=0.1)
        server.step("auv", tick=25)
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from wavesim_sdk.wire.client import ClientSession, SessionEvent
from wavesim_sdk.wire.items import ActuatorDescription, AnyEvent, FieldDescription, SensorDescription
from wavesim_sdk.wire.messages import MAX_DATAGRAM, Join, Reading, Role, SensorsMessage, StepMessage
from wavesim_sdk.wire.schema import check
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Admission, Happening, Requested, Session
from wavesim_sdk.wire.state_parts import split_readings

Address = tuple[str, int]
STEP_NS = 4_000_000

#: body used in the tests, with two actuators and two sensors
ACTUATORS = (
    ActuatorDescription(0, "propeller", 0, "1/s", -25.0, 25.0),
    ActuatorDescription(1, "rudder", 1, "rad", -0.5, 0.5),
)
SENSORS = (
    SensorDescription(
        0,
        "ctd",
        "ctd",
        100_000_000,
        tuple(
            FieldDescription(name, unit, 1)
            for name, unit in (("pressure", "dbar"), ("temperature", "C"), ("conductivity", "S/m"), ("salinity", ""))
        ),
    ),
    SensorDescription(1, "sonar", "multibeam", 500_000_000, (FieldDescription("range", "m", 256),)),
)


def admit_all(join: Join, _old: Session | None = None) -> Admission:
    """Admit each client to row 3, with ticks of 4 ms and states every 50 ms; an observer is admitted without a body."""
    if join.role == Role.OBSERVER:
        return Admission(-1, STEP_NS, 1500.0)
    return Admission(3, STEP_NS, 1500.0, 50_000_000, actuators=ACTUATORS, sensors=SENSORS)


def stopped_clock() -> tuple[int, int]:
    """Return the tick and the run state of a simulation clock that is stopped at tick 0, for sessions without a
    simulation.
    """
    return 0, 0


def sessions_for_tests(
    admit: Callable[[Join, Session | None], Admission] = admit_all, keepalive: float = 0.5, **options: Any
) -> ServerSessions:
    """Return the server side of all sessions, with reproducible secrets."""
    options.setdefault("rng", random.Random(7))
    return ServerSessions(admit, options.pop("clock", stopped_clock), keepalive, 5.0, **options)


@dataclass
class InMemoryLink:
    """Client and server in memory, with a lossy network between them, in virtual time."""

    client: ClientSession
    sessions: ServerSessions = field(default_factory=sessions_for_tests)
    loss: float = 0.0  #: probability that a datagram is lost; the probability of a duplicate is half of it
    seed: int = 0
    now: float = 100.0
    address: Address = ("127.0.0.1", 4000)
    #: maximum delay of a datagram in s; 0 selects 0.1 s if datagrams are lost, and 0.001 s otherwise
    delay: float = 0.0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.in_flight: list[tuple[float, bool, bytes]] = []
        self.events: list[SessionEvent] = []
        self.server_events: list[Happening] = []

    def transmit(self, to_server: bool, data: bytes) -> None:
        """Send a datagram over the lossy network."""
        for _ in range(2 if self.rng.random() < self.loss / 2 else 1):
            if self.rng.random() >= self.loss:
                delay = self.delay or (0.1 if self.loss else 0.001)
                self.in_flight.append((self.now + self.rng.uniform(0.0, delay), to_server, data))

    def run(self, seconds: float) -> None:
        """Advance virtual time by ``seconds``."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.005
            for data in self.client.outgoing(self.now):
                self.transmit(True, data)
            self.server_events += self.sessions.poll(self.now)
            due = [w for w in self.in_flight if w[0] <= self.now]
            self.in_flight = [w for w in self.in_flight if w[0] > self.now]
            for _, to_server, data in sorted(due):
                if to_server:
                    self.server_events += self.sessions.receive(data, self.address, self.now)
                else:
                    self.events += self.client.receive(data, self.now)
            for data, address in self.sessions.outgoing:
                if address == self.address:
                    self.transmit(False, data)
            self.sessions.outgoing.clear()

    @property
    def session(self) -> Session:
        """The server's side of the session."""
        return next(iter(self.sessions.by_token.values()))


class _LoopThread(ABC):
    """Asyncio loop in a separate thread, which runs for the duration of a ``with`` block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._loop.close()

    @abstractmethod
    async def _open(self) -> None:
        """Bind the ports of the proxy."""

    @abstractmethod
    async def _close(self) -> None:
        """Close the ports of the proxy."""


class _Port(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes, Address], None]) -> None:
        self._received = received

    def datagram_received(self, data: bytes, address: Any) -> None:
        self._received(data, address[:2])

    def error_received(self, _error: Exception) -> None:
        """Ignore the error. If the peer is not running (yet), the datagram counts as lost."""


async def _bind(received: Callable[[bytes, Address], None]) -> asyncio.DatagramTransport:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Port(received), local_addr=("127.0.0.1", 0))
    return transport


class LossyProxy(_LoopThread):
    """UDP proxy on loopback that loses, duplicates, delays and reorders datagrams in both directions, reproducibly for
    a given seed.
    """

    def __init__(
        self,
        target: Address,
        *,
        loss: float = 0.0,
        duplicate: float = 0.0,
        delay: tuple[float, float] = (0.0, 0.0),
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.target, self.loss, self.duplicate, self.delay = target, loss, duplicate, delay
        self.counts: Counter[str] = Counter()  #: numbers of datagrams that were forwarded, lost and duplicated
        self.address: Address = ("", 0)
        self._random = random.Random(seed)
        self._clients: dict[Address, asyncio.DatagramTransport] = {}
        self._opening: dict[Address, list[bytes]] = {}

    async def _open(self) -> None:
        self._front = await _bind(self._from_client)
        self.address = self._front.get_extra_info("sockname")[:2]

    async def _close(self) -> None:
        for transport in (self._front, *self._clients.values()):
            transport.close()
        await asyncio.sleep(0)

    def _from_client(self, data: bytes, client: Address) -> None:
        if client in self._clients:
            self._pass(self._clients[client], data, self.target)
            return
        waiting = self._opening.setdefault(client, [])
        waiting.append(data)
        if len(waiting) == 1:
            task = self._loop.create_task(self._new(client))
            task.add_done_callback(lambda t: t.exception())

    async def _new(self, client: Address) -> None:
        transport = await _bind(lambda data, _: self._pass(self._front, data, client))
        self._clients[client] = transport
        for data in self._opening.pop(client):
            self._pass(transport, data, self.target)

    def _pass(self, transport: asyncio.DatagramTransport, data: bytes, to: Address) -> None:
        copies = 2 if self._random.random() < self.duplicate else 1
        self.counts["doubled"] += copies - 1
        for _ in range(copies):
            if self._random.random() < self.loss:
                self.counts["lost"] += 1
                continue
            self.counts["passed"] += 1
            self._loop.call_later(self._random.uniform(*self.delay), self._send, transport, data, to)

    @staticmethod
    def _send(transport: asyncio.DatagramTransport, data: bytes, to: Address) -> None:
        if not transport.is_closing():
            transport.sendto(data, to)


class FakeServer(_LoopThread):
    """Server side of the protocol over real UDP, without a simulation.

    ``server_events`` lists the records of all sessions, and ``raw`` lists every received datagram. Set
    ``drop_datagram`` to a function that selects the incoming datagrams to lose, and ``answer`` to a function that
    returns the answer to a request.
    """

    def __init__(
        self, admit: Callable[[Join, Session | None], Admission] = admit_all, *, keepalive: float = 0.3, **options: Any
    ) -> None:
        super().__init__()
        self.sessions = ServerSessions(admit, options.pop("clock", stopped_clock), keepalive, 5.0, **options)
        self.server_events: list[Happening] = []
        self.raw: list[tuple[float, bytes]] = []
        self.drop_datagram: Callable[[bytes], bool] = lambda data: False
        self.answer: Callable[[Requested], AnyEvent | None] = lambda request: None
        self.address: Address = ("", 0)

    async def _open(self) -> None:
        self._port = await _bind(self._received)
        self.address = self._port.get_extra_info("sockname")[:2]
        self._timer = self._loop.create_task(self._tick())

    async def _close(self) -> None:
        self._timer.cancel()
        self._port.close()
        await asyncio.sleep(0)

    def _received(self, data: bytes, address: Address) -> None:
        now = time.monotonic()
        self.raw.append((now, data))
        if len(data) <= MAX_DATAGRAM and not self.drop_datagram(data):
            new = self.sessions.receive(data, address, now)
            self.server_events += new
            for happening in new:
                if isinstance(happening, Requested) and (answer := self.answer(happening)) is not None:
                    self.sessions.push(happening.session, answer)
            self._flush()

    def _flush(self) -> None:
        for data, address in self.sessions.outgoing:
            self._port.sendto(data, address)
        self.sessions.outgoing.clear()

    async def _tick(self) -> None:
        while True:
            self.server_events += self.sessions.poll(time.monotonic())
            self._flush()
            await asyncio.sleep(0.01)

    # -- called by a test, from its thread -------------------------------------------------------------------

    def _do(self, function: Callable[[], None]) -> None:
        async def run() -> None:
            function()
            self._flush()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10.0)

    def session(self, name: str, timeout: float = 10.0) -> Session:
        """Return the session of a client, once the client has joined."""
        limit = time.monotonic() + timeout
        while True:
            for s in list(self.sessions.by_token.values()):
                if s.name == name:
                    return s
            if time.monotonic() > limit:
                raise TimeoutError(f"'{name}' did not join within {timeout:g} s")
            time.sleep(0.01)

    def send(self, name: str, message: Any) -> None:
        """Send any message from the server to a client."""
        session = self.session(name)
        self._do(lambda: self.sessions.send(session, message))

    def send_bytes(self, name: str, data: bytes) -> None:
        """Send any bytes from the server's port to a client."""
        address = self.session(name).address
        self._do(lambda: self._port.sendto(data, address))

    def event(self, name: str, event: AnyEvent) -> None:
        """Send an event, which is delivered once and in order."""
        session = self.session(name)
        self._do(lambda: self.sessions.push(session, check(event)))

    def item(self, name: str, item: Any) -> None:
        """Send an event made from plain values, which may be invalid."""
        session = self.session(name)

        def push() -> None:
            session.outbox.push(item)

        self._do(push)

    def step(self, name: str, tick: int, sensors: Mapping[str, Sequence[float | None]] | None = None) -> None:
        """Send a STEP to a lockstep client; ``sensors`` contains values by name."""
        session = self.session(name)
        step, parts = make_step(session, tick, sensors or {})
        self._do(lambda: self.sessions.step(session, step, parts, time.monotonic()))

    def bye(self, name: str, text: str = "the test is over") -> None:
        """End a session."""
        session = self.session(name)
        self._do(lambda: self.sessions.bye(session, text))

    def events_of(self, kind: type[Happening], name: str) -> list[Any]:
        """Return all events of one type in the sessions of a client."""
        return [h for h in list(self.server_events) if isinstance(h, kind) and h.session.name == name]


def make_step(
    session: Session, tick: int, sensors: Mapping[str, Sequence[float | None]]
) -> tuple[StepMessage, list[SensorsMessage]]:
    """Return a STEP for the test body, and SENSORS datagrams with the readings that do not fit into the STEP."""
    sensor_numbers = {s.name: s.number for s in session.admission.sensors}
    readings = [Reading(sensor_numbers[name], tick * STEP_NS, 0, tuple(values)) for name, values in sensors.items()]
    count = len(session.admission.actuators)
    step = StepMessage(tick, tick * STEP_NS, 1, 0, None, (0.0,) * count, None, (), 0)
    first, parts = split_readings(step, readings)
    return replace(step, sensors=first), parts
