"""The front end's process: one asyncio loop around the core, with UDP, keep-alive, commander queue and logger."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import posix_ipc

from wavesim_sdk.commander import CommanderQueue
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.wire.sendmmsg import pack_address
from wavesim_sdk.wire.udp import Address, UdpSocket
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.network.broadcast import DatagramRows
from wavesim_server.network.engine_queue import EngineQueue
from wavesim_server.network.front import STALL_THRESHOLD_S, Front
from wavesim_server.resources import attach_areas, exit_without_resource, ring_names
from wavesim_server.ring import Ring
from wavesim_world.config import LoadedConfig

if TYPE_CHECKING:
    from wavesim_sdk.wire.seal import Keyring
    from wavesim_server.serve import ProcessArguments

EVENT_BUDGET_S = 0.02  #: maximum duration of event handling before other input is read
#: maximum time for which logging is delayed while answers are pending; during this time, the programs need the
#: processors
STEP_LOG_DELAY_S = 0.002
MAX_DATAGRAMS_AT_ONCE = 256  #: maximum number of datagrams that are read at a time
IDLE_S = 0.1  #: maximum time between two checks of the parent process
LINE_BYTES = 4000  #: number of bytes that a writable pipe accepts without blocking


class Console:
    """Prints lines to standard error.

    Lines are lost if the pipe is full, so that a pipe that is not read cannot block the server.
    """

    def __init__(self) -> None:
        self._poll = select.poll()
        self._poll.register(sys.stderr, select.POLLOUT)

    def print_line(self, text: str) -> None:
        """Print one or several lines."""
        if not self._poll.poll(0):
            return
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"wavesim: {text}"[:LINE_BYTES] + "\n")
            sys.stderr.flush()


class FrontProcess:
    """The core of the front end with its socket, its queue and its clock."""

    def __init__(self, front: Front, queue: CommanderQueue, events_fd: int, supervisor: int) -> None:
        self.front, self.queue, self.events_fd = front, queue, events_fd
        front.gauges = self._gauges
        self.udp: UdpSocket | None = None
        self._ended = asyncio.Event()
        self._has_more_events = False  # events are left for the next iteration of the loop
        # set while events wait until a step has been answered
        self._timer: asyncio.TimerHandle | None = None
        #: process ID of the supervisor; the front end exits when the supervisor no longer exists
        self._supervisor = supervisor
        self._address: tuple[str, int] = ("", 0)

    def _gauges(self) -> dict[str, Any]:
        return {
            "address": self._address,
            "queue_dropped": self.udp.dropped if self.udp is not None else 0,
            "commander_bad": self.queue.malformed_count,
            "commander_unread": self.queue.undelivered_count,
        }

    async def run(self, sock: socket.socket) -> None:
        """Run until the supervisor sends SIGTERM."""
        self._address = sock.getsockname()[:2]
        self.udp = await UdpSocket.wrap(sock, self._on_datagram)
        loop = asyncio.get_running_loop()

        def run_soon(action: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(self._run, action)

        self.front.emulators.run_soon = run_soon
        loop.add_reader(self.events_fd, self._on_events_ready)
        loop.add_reader(self.queue.fd, self._on_commander)
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        clock, ended = asyncio.create_task(self._on_timer()), asyncio.create_task(self._ended.wait())
        await asyncio.wait([clock, ended], return_when=asyncio.FIRST_COMPLETED)
        failed = clock.done() and clock.exception() is not None
        clock.cancel()
        self._on_events(math.inf)
        self.front.finish(time.monotonic())
        self._send()
        self._reply()
        self.udp.close()
        await asyncio.sleep(0)  # the transport closes in the next iteration of the loop
        self.queue.close()
        if failed:
            clock.result()

    def _on_datagram(self, data: bytes, address: Address) -> None:
        now = time.monotonic()
        self.front.receive(data, address, now)
        if self.udp is not None:  # otherwise it is still being created
            self._read(now, MAX_DATAGRAMS_AT_ONCE)  # then other input gets its turn
            self._hand_over(now)

    def _read(self, now: float, most: int | None = None) -> None:
        """Read the datagrams that are waiting in the socket."""
        assert self.udp is not None
        for data, sender in self.udp.receive_pending(most):
            self.front.receive(data, sender, now)

    async def _on_timer(self) -> None:
        while os.getppid() == self._supervisor:
            now = time.monotonic()
            if now - self.front.now > STALL_THRESHOLD_S:
                self._read(now)  # before sessions are checked for silence
            due = self.front.poll(now)
            self.queue.poll(now)
            self._send()
            await asyncio.sleep(min(max(due - time.monotonic(), 0.001), IDLE_S))

    def _on_events_ready(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.events_fd)
        if not self._has_more_events and self._timer is None:
            self._on_events()

    def _on_events(self, longest: float = EVENT_BUDGET_S) -> None:
        """Handle the events from the engine.

        The engine may produce events as fast as they are read; therefore, other input is read after a time limit.
        """
        self._has_more_events, self._timer = False, None
        until = time.monotonic() + longest
        asked = self.front.barrier.tick
        assert self.front.events is not None
        for kind, payload in self.front.events.pop_all():
            self.front.event(kind, payload, now := time.monotonic())
            if self.front.outgoing:  # a step must not wait for the log records behind it
                self._send()
            if self.front.barrier.tick not in (None, asked) and longest <= EVENT_BUDGET_S:
                self._timer = asyncio.get_running_loop().call_later(STEP_LOG_DELAY_S, self._on_events)
                break
            if now >= until:
                self._has_more_events = True
                asyncio.get_running_loop().call_soon(self._on_events)
                break
        self._hand_over(time.monotonic())

    def _on_commander(self) -> None:
        now = time.monotonic()
        for message in self.queue.receive():
            self.front.command(message, now)
        self._hand_over(now)

    def _run(self, action: Callable[[], None]) -> None:
        """Run an action that another thread has requested."""
        action()
        self._hand_over(time.monotonic())

    def _hand_over(self, now: float) -> None:
        self.front.set_time(now)
        self.front.hand_over()
        self._send()
        self._reply()
        if self._timer is not None and self.front.barrier.tick is None:
            self._timer.cancel()
            self._timer, self._has_more_events = None, True
            asyncio.get_running_loop().call_soon(self._on_events)

    def _reply(self) -> None:
        for message, reply in self.front.replies:
            self.queue.reply(message, reply)
        self.front.replies.clear()

    def _send(self) -> None:
        assert self.udp is not None
        for batch in self.front.outgoing:
            if isinstance(batch, DatagramRows):
                self.udp.send_rows(batch.matrix, b"".join([pack_address(s.address) for s in batch.sessions]))
            else:
                self.udp.send_each(batch)
        self.front.outgoing.clear()


def load_keyring(loaded: LoadedConfig) -> Keyring | None:
    """Return the keys of a configuration; None means that datagrams are not encrypted."""
    if not loaded.config.network.keys:
        return None
    from wavesim_sdk.wire import seal

    return seal.read_keyring(loaded.data_file(loaded.config.network.keys))


def attach_front(
    loaded: LoadedConfig, name: str, seed: int, commands_fd: int, log: LogWriter | None, again: bool
) -> Front:
    """Create a front end that uses the shared memory and the rings of a server."""
    areas = attach_areas(name)
    commands, events = ring_names(name)
    front = Front(
        loaded,
        name,
        seed,
        areas,
        EngineQueue(Ring.attach(commands), lambda: os.eventfd_write(commands_fd, 1)),
        Ring.attach(events),
        log,
        keys=load_keyring(loaded),
        load_keys=lambda: load_keyring(loaded),
        print_line=Console().print_line,
    )
    if again:
        front.take_over(time.monotonic())
    return front


def main(part: ProcessArguments) -> None:
    """Run the front end of a server until the supervisor stops it."""
    loaded, options = part.loaded, part.options
    try:
        log = LogWriter(Path(options.log), loaded, options.seed, options.name) if options.log else None
        front = attach_front(loaded, options.name, options.seed, part.commands_fd, log, part.is_restart)
        queue = CommanderQueue(options.name, loaded.config.shared.group)
    except WaveSimError as error:
        sys.stderr.write(f"wavesim: {error}\n")
        sys.exit(error.exit_code)
    except (OSError, posix_ipc.Error) as error:
        exit_without_resource("front", error)
    sock = socket.socket(fileno=part.socket)
    sock.setblocking(False)

    async def serve() -> None:
        await FrontProcess(front, queue, part.events_fd, part.supervisor_pid).run(sock)

    try:
        asyncio.run(serve())
    except OSError as error:
        exit_without_resource("front", error)
