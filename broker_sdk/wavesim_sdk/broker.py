"""Brokers: the clients through which on-board programs connect to the server.

A broker joins a body by name and then works step by step::

    with Broker("lauv", lockstep=0.1) as broker:
        for step in broker.steps():
            for reception in step.receptions:
                ...
            print(step.sensors.ctd.temperature)
            broker.answer({"propeller": 8.0, "rudder-top": 0.1})

The default server is the one that the environment variable WAVESIM_SERVER names. If this variable is not set, it is the
server on port 9750 of this machine. ``Broker("lauv", "demo")`` selects a server on this machine by name, and
``Broker("lauv", "10.0.0.5:9750")`` selects a server on another machine.

In lockstep, the server waits for each answer; with ``lockstep=0``, each new state is a step. ``broker.actuators`` and
``broker.sensors`` describe the body. Additional programs for the body join with ``role="instrument"``, or with
``role="listener"`` if they only receive. :class:`AsyncBroker` is the equivalent for asyncio programs.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from wavesim_sdk.errors import SessionEnded, SessionLost
from wavesim_sdk.estimate import Estimate
from wavesim_sdk.onboard import BrokerBase, Command, Step
from wavesim_sdk.server_address import DEFAULT_SERVER
from wavesim_sdk.wire.client import ClientSession, Phase, SessionEvent
from wavesim_sdk.wire.link import (
    FAREWELL_S,
    is_silent,
    local_address,
    make_session,
    no_answer_error,
    open_link,
    raise_if_ended,
)
from wavesim_sdk.wire.local import LocalConnection, find_local_server
from wavesim_sdk.wire.messages import Welcome
from wavesim_sdk.wire.udp import Address, UdpSocket, open_socket

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

__all__ = ["DEFAULT_SERVER", "AsyncBroker", "Broker", "Command", "Estimate", "Step"]

JOIN_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 5.0
LOOK_S = 0.5  #: maximum interval in s at which to check whether the server is still answering
#: number of steps kept for a slow program; the oldest kept step also contains the events of the discarded steps
KEPT_STEPS = 1024


class Broker(BrokerBase):
    """A blocking broker. Call :meth:`steps` or :meth:`poll` often, because these methods also answer keep-alives."""

    def _create_session(self, key: bytes | None) -> ClientSession:
        self._link = open_link(self.join, self.server, key)
        self._kept: list[Step] = []  # steps that came during wait()
        return self._link.session

    def __enter__(self) -> Broker:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connect(self, timeout: float = JOIN_TIMEOUT_S) -> Welcome:
        """Join the server; return when it has sent the description of the body."""
        return self._link.connect(timeout)

    def _poll_once(self, limit: float) -> list[Step]:
        """Poll the link once and return the steps received."""
        return [step for event in self._link.poll(limit) if (step := self._feed(event)) is not None]

    def poll(self, timeout: float = 0.0) -> list[Step]:
        """Wait at most ``timeout`` seconds for steps. Return immediately when a step arrives or the run ends."""
        limit, over = time.monotonic() + timeout, self.ended
        while True:
            finished, self._kept = self._kept, []
            finished = finished or self._poll_once(limit)
            if finished:
                self._step = finished[-1].state
                self._link.flush(time.monotonic())
                return finished
            self._link.check_alive()
            if time.monotonic() >= limit or self.ended is not over:
                return []

    def steps(self) -> Iterator[Step]:
        """Yield every step until the run has ended or the server is shut down.

        Raises SessionEnded if the server ends only this session, and SessionLost if the server no longer answers.
        """
        while not self.ended or self._kept:
            try:
                arrived = self.poll(0.5)
            except SessionEnded:
                if self.is_shut_down:
                    return
                raise
            for step in arrived:
                yield step
                if self._step is not None and self._step.step:
                    self.answer()  # the caller did not answer
                self._link.flush(time.monotonic())

    def wait(self, request: int, timeout: float = ANSWER_TIMEOUT_S) -> str:
        """Wait for the answer to a request and return its text. Raises Refused if the server refuses it, or SessionLost
        after ``timeout`` seconds.

        The server answers all requests except ping, send and range_to. Steps that arrive in the meantime are kept for :meth:`poll`.
        In lockstep, the server may answer a request only after you have answered the current step; therefore, call
        :meth:`answer` first.
        """
        limit = time.monotonic() + timeout
        while True:
            said = self._steps.outcomes.take(request)
            if said is not None:
                return said
            if time.monotonic() >= limit:
                raise SessionLost(f"the server did not answer request {request} within {timeout:g} s")
            self._kept += self._poll_once(limit)
            self._link.check_alive()

    def close(self) -> None:
        """Leave the server."""
        self._link.close()


class AsyncBroker(BrokerBase):
    """:class:`Broker` for asyncio; it answers keep-alives whenever the event loop is running."""

    def _create_session(self, key: bytes | None) -> ClientSession:
        self._udp: UdpSocket | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._waiting: deque[Step] = deque()
        self._error: Exception | None = None
        self._changed = asyncio.Event()  # a datagram came, the session ended, or the server is silent
        inside = find_local_server(self.server)
        self._local = None if inside is None else LocalConnection(self.join, inside)
        return make_session(self.join, key) if self._local is None else self._local.session

    async def __aenter__(self) -> AsyncBroker:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def connect(self, timeout: float = JOIN_TIMEOUT_S) -> Welcome:
        """Join the server; return when it has sent the description of the body."""
        if self._local is not None:
            self._local.join()
        else:
            self._udp = await UdpSocket.wrap(open_socket(local_address(self.server[0]), 0), self._take)
        limit = time.monotonic() + timeout
        try:
            self._flush()
            while self.session.welcome is None:
                if self._error is not None:
                    raise self._error
                if not await self._something(limit - time.monotonic()):
                    raise no_answer_error(self.server, self.session)
        except BaseException:
            await self.close()
            raise
        return self.welcome

    async def _something(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for a step, an event or the end of the session; return whether anything arrived."""
        if self._local is not None:
            return await self._something_local(self._local, seconds)
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    async def _something_local(self, local: LocalConnection, seconds: float) -> bool:
        """Like :meth:`_something`, for a server in this process: let the simulation advance in a thread, so that other
        tasks of the program can run meanwhile.
        """
        if not self._changed.is_set():
            await asyncio.to_thread(local.wait, time.monotonic() + min(max(seconds, 0.0), LOOK_S))
            if events := local.take_received():
                self._take_events(events)
        has_changed = self._changed.is_set()
        self._changed.clear()
        return has_changed

    def _take(self, data: bytes, address: Address) -> None:
        """Process a datagram immediately. Waking a task for each datagram would cost more than processing it."""
        if address == self.server:
            self._take_events(self.session.receive(data, time.monotonic()))

    def _take_events(self, events: list[SessionEvent]) -> None:
        try:
            for event in events:
                raise_if_ended(event)
                step = self._feed(event)
                if step is not None:
                    self._put(step)
            self._flush()
        except Exception as error:  # the end of the session, or an error in a reception callback
            self._error = error
        self._changed.set()

    def _put(self, step: Step) -> None:
        self._waiting.append(step)
        if len(self._waiting) > KEPT_STEPS:
            self._waiting.popleft().merge_into(self._waiting[0])

    def _flush(self) -> None:
        """Send everything that is due. Schedule the next call for the next timer or the next check that the server is
        answering, whichever comes first.
        """
        if self._local is not None:
            self._local.session.flush()
        if self._udp is None:
            return
        now = time.monotonic()
        for data in self.session.outgoing(now):
            self._udp.send_now(data, self.server)
        timer = self.session.next_timer()
        at = now + LOOK_S if timer is None else min(timer, now + LOOK_S)
        if self._alarm is not None:
            if self._alarm.when() <= at:
                return
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_at(at, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._flush()
        if is_silent(self.session, time.monotonic()):
            self._changed.set()

    async def _next(self) -> Step | None:
        """Wait for the next step and return it, or None when the run has ended or the server is shut down."""
        while not self._waiting:
            if self._error is not None and self.is_shut_down:
                return None
            if self._error is not None:
                raise self._error
            if self.ended:
                return None
            if self._local is not None:
                await self._something_local(self._local, LOOK_S)
                continue
            await self._changed.wait()
            self._changed.clear()
            if not self._waiting and is_silent(self.session, time.monotonic()):
                raise no_answer_error(self.server, self.session)
        return self._waiting.popleft()

    async def steps(self) -> AsyncIterator[Step]:
        """Yield every step until the run has ended or the server is shut down; see :meth:`Broker.steps`."""
        while (step := await self._next()) is not None:
            self._step = step.state
            yield step
            if self._step is not None and self._step.step:
                self.answer()
            self._flush()

    async def frames(self, *sonars: str, period: float = 0.0) -> AsyncIterator[ImagingFrame]:
        """Yield frames from imaging sonars as they arrive, until the run has ended; see :meth:`subscribe_frames`.

        Another task may receive steps at the same time.
        """
        await self.wait(self.subscribe_frames(*sonars, period=period))
        try:
            while True:
                come = self.take_frames()
                for frame in come:
                    yield frame
                if self._error is not None and not self.is_shut_down:
                    raise self._error
                if (self.ended or self.is_shut_down) and not come:
                    return
                if not come and not await self._something(LOOK_S) and is_silent(self.session, time.monotonic()):
                    raise no_answer_error(self.server, self.session)
        finally:
            if self.session.phase is Phase.JOINED:
                self.stop_frames()
                self._flush()

    async def wait(self, request: int, timeout: float = ANSWER_TIMEOUT_S) -> str:
        """Wait for the answer to a request and return its text. Raises Refused if the server refuses it, or SessionLost
        after ``timeout`` seconds.

        The server answers all requests except ping, send and range_to.
        """
        limit = time.monotonic() + timeout
        self._flush()
        while True:
            said = self._steps.outcomes.take(request)
            if said is not None:
                return said
            if self._error is not None:
                raise self._error
            if not await self._something(limit - time.monotonic()):
                raise SessionLost(f"the server did not answer request {request} within {timeout:g} s")

    async def close(self) -> None:
        """Leave the server, and wait briefly for its confirmation."""
        if self._local is not None:
            self._local.close()
        if self._udp is None:
            return
        self.session.leave()
        limit = time.monotonic() + FAREWELL_S
        self._flush()
        while self.session.phase is Phase.LEAVING and await self._something(limit - time.monotonic()):
            pass
        self._udp.close()
        self._udp = None
        if self._alarm is not None:
            self._alarm.cancel()
