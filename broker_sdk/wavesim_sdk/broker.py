"""Brokers: the client side of the simulator for on-board software.

A broker joins by name and then works step by step::

    with Broker("lauv", lockstep=0.1) as broker:
        for step in broker.steps():
            for heard in step.receptions:
                ...
            broker.answer([thrust])

In lockstep the server waits for each answer; with ``lockstep=0`` a step is simply each new state.
:class:`AsyncBroker` is the same for asyncio programs.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from wavesim_sdk.errors import BrokerError
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.client import (
    Join,
    Notice,
    Phase,
    Reception,
    RequestRefused,
    RunStateChanged,
    SessionEvent,
    SignalSent,
    State,
    Welcome,
)
from wavesim_sdk.wire.link import Link, check, no_answer, own_address
from wavesim_sdk.wire.messages import Request
from wavesim_sdk.wire.udp import Udp, open_socket

DEFAULT_SERVER = ("127.0.0.1", 9750)
JOIN_TIMEOUT_S = 10.0
Command = Sequence[float | None]


@dataclass
class Step:
    """One state, with everything that happened since the one before."""

    state: State
    receptions: list[Reception] = field(default_factory=list)
    sent: list[SignalSent] = field(default_factory=list)
    refused: list[RequestRefused] = field(default_factory=list)
    run_states: list[RunStateChanged] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    @property
    def time(self) -> float:
        """Simulation time in s."""
        return self.state.time_ns * 1e-9


class _Steps:
    """Collects session events into steps; raises when the session is over."""

    def __init__(self) -> None:
        self.welcome: Welcome | None = None
        self.ended = False
        self.listeners: list[Callable[[Reception], None]] = []
        self._next = Step(State(0, 0, 0, None, [], {}))

    def feed(self, event: SessionEvent) -> Step | None:
        """A finished step, if this event completes one."""
        step = self._next
        match event:
            case Welcome():
                self.welcome = event
            case Reception():
                step.receptions.append(event)
                for call in self.listeners:
                    call(event)
            case SignalSent():
                step.sent.append(event)
            case RequestRefused():
                step.refused.append(event)
            case RunStateChanged():
                step.run_states.append(event)
                self.ended = self.ended or event.run_state == 3
            case Notice():
                step.notices.append(event)
            case State():
                step.state = event
                self._next = Step(event)
                return step
        return None


class _Base:
    """What both kinds of broker share: the session and the calls that need no waiting."""

    def __init__(
        self,
        name: str,
        server: tuple[str, int] = DEFAULT_SERVER,
        *,
        model: str = "",
        position: tuple[float, float, float] = (0.0, 0.0, 0.0),
        attitude: tuple[float, float, float] = (0.0, 0.0, 0.0),
        lockstep: float = 0.0,
        state_period: float = 0.0,
        previous: int = 0,
        key: bytes | None = None,
    ) -> None:
        join = Join(name, model, position, attitude, round(lockstep * 1e9), round(state_period * 1e9), previous)
        self.name, self.server, self.lockstep = name, server, lockstep
        self._link = Link(join, server, key)
        self.session = self._link.session
        self._steps = _Steps()
        self._step: State | None = None

    @property
    def welcome(self) -> Welcome:
        """What the server said at joining."""
        if self._steps.welcome is None:
            raise BrokerError("the broker has not joined")
        return self._steps.welcome

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self._steps.ended

    def ping(
        self, frequency: float, level: float | None = None, *, at: int | None = None, code: int | None = None
    ) -> int:
        """Ask the transducer to send a pulse (Hz, dB re 1 uPa at 1 m); returns the request's number.

        It leaves at the time of the step under way (in lockstep) or at the next tick, or ``at`` a time of the
        node's own clock (ns). A refusal, such as a transducer that still recharges, comes in ``Step.refused``.
        """
        return self.session.request(codec.request(Request.PING, float(frequency), level, at, code))

    def send(self, payload: bytes, to: int = 0, level: float | None = None, *, at: int | None = None) -> int:
        """Send a packet by modem, to an address or (0) to all; otherwise like :meth:`ping`."""
        return self.session.request(codec.request(Request.SEND, to, payload, level, at))

    def range_to(self, address: int, level: float | None = None, *, at: int | None = None) -> int:
        """Ask the modem of an address to answer; its range comes as ``range`` of a reception of kind 3."""
        return self.session.request(codec.request(Request.RANGE, address, level, at))

    def on_reception(self, call: Callable[[Reception], None]) -> None:
        """Call a function with every reception, before its step is handed out."""
        self._steps.listeners.append(call)

    def answer(self, command: Command | None = None, estimate: Command | None = None) -> None:
        """Actuator commands (None: as before), and what the navigator believes.

        ``command``: thrusters 0..7, fins 8..11 (N or 1/s; rad). ``estimate``: position x3, sigma x3, dead
        reckoning x3, last range innovation.
        """
        values = None if command is None else list(command)
        if self._step is not None and self._step.step:
            self.session.done(self._step.tick, values, None if estimate is None else list(estimate))
            self._step = None
            return
        if values is not None:
            self.session.actuate(values)
        if estimate is not None:
            self.session.estimate(list(estimate))


class Broker(_Base):
    """A blocking broker. Call :meth:`steps` or :meth:`poll` often: they also answer the keep-alive."""

    def __enter__(self) -> Broker:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connect(self, timeout: float = JOIN_TIMEOUT_S) -> Welcome:
        """Join the server."""
        self._steps.welcome = self._link.connect(timeout)
        return self.welcome

    def _turn(self, limit: float) -> list[Step]:
        """Steps that came within a turn."""
        return [step for event in self._link.turn(limit) if (step := self._steps.feed(event)) is not None]

    def poll(self, timeout: float = 0.0) -> list[Step]:
        """Steps that arrive within ``timeout`` seconds; returns at once when there is one."""
        limit = time.monotonic() + timeout
        while True:
            finished = self._turn(limit)
            if finished:
                self._step = finished[-1].state
                self._link.flush(time.monotonic())
                return finished
            self._link.check_alive()
            if time.monotonic() >= limit:
                return []

    def steps(self) -> Iterator[Step]:
        """Every step until the run has ended."""
        while not self.ended:
            for step in self.poll(0.5):
                yield step
                if self._step is not None and self._step.step:
                    self.answer()  # the caller had nothing to say
                self._link.flush(time.monotonic())

    def close(self) -> None:
        """Leave the server."""
        self._link.close()


class AsyncBroker(_Base):
    """The same for asyncio programs."""

    async def __aenter__(self) -> AsyncBroker:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def connect(self, timeout: float = JOIN_TIMEOUT_S) -> Welcome:
        """Join the server."""
        self._udp = await Udp.over(open_socket(own_address(self.server[0]), 0))
        self._queue: asyncio.Queue[Step | BrokerError] = asyncio.Queue(1024)
        self._wake = asyncio.Event()
        self._joined = asyncio.Event()
        self._error: BrokerError | None = None
        self._tasks = [asyncio.create_task(self._receive()), asyncio.create_task(self._timer())]
        try:
            await asyncio.wait_for(self._joined.wait(), timeout)
        except TimeoutError:
            await self.close()
            raise no_answer(self.server, self.session) from None
        if self._steps.welcome is None:
            await self.close()
            raise self._error or no_answer(self.server, self.session)
        return self.welcome

    async def _receive(self) -> None:
        while (got := await self._udp.receive()) is not None:
            data, address = got
            if address != self.server:
                continue
            try:
                for event in self.session.receive(data, time.monotonic()):
                    check(event)
                    step = self._steps.feed(event)
                    if step is not None:
                        self._put(step)
            except BrokerError as error:
                self._error = error
                self._put(error)
            if self._steps.welcome is not None or self._error is not None:
                self._joined.set()
            await self._flush()
            self._wake.set()

    def _put(self, item: Step | BrokerError) -> None:
        if self._queue.full():  # the program is slow: the latest states count, its events are kept
            old = self._queue.get_nowait()
            if isinstance(old, Step) and isinstance(item, Step):
                item.receptions[:0], item.sent[:0] = old.receptions, old.sent
        self._queue.put_nowait(item)

    async def _flush(self) -> None:
        for data in self.session.outgoing(time.monotonic()):
            await self._udp.send(data, self.server)

    async def _timer(self) -> None:
        while True:
            await self._flush()
            timer = self.session.next_timer()
            self._wake.clear()
            wait = 0.5 if timer is None else max(timer - time.monotonic(), 0.0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    async def steps(self) -> AsyncIterator[Step]:
        """Every step until the run has ended."""
        while not self.ended:
            try:
                item = await asyncio.wait_for(self._queue.get(), 0.5)
            except TimeoutError:
                silence = time.monotonic() - self.session.last_heard
                if silence > 2.0 * max(self.welcome.keepalive_timeout, 1.0):
                    raise no_answer(self.server, self.session) from None
                continue
            if isinstance(item, BrokerError):
                raise item
            self._step = item.state
            yield item
            if self._step is not None and self._step.step:
                self.answer()
            await self._flush()

    async def close(self) -> None:
        """Leave the server."""
        if self.session.phase is Phase.JOINED:
            self.session.leave()
            await self._flush()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._udp.close()
