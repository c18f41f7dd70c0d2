"""Network side of the emulator checker: a server that accepts one emulator and uses a fake engine's shared memory."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
import time
from collections.abc import Callable
from types import TracebackType

from wavesim_sdk.attach import SharedState
from wavesim_sdk.emulator_service import EmulatorService
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire.items import Answer
from wavesim_sdk.wire.messages import MAX_DATAGRAM, Join, Refusal, Role
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Admission, Happening, Joined, NotAdmitted, Requested, Session, SessionGone
from wavesim_sdk.wire.udp import open_socket

PERIOD_S, TIMEOUT_S = 0.5, 5.0  #: period and timeout in s of the keep-alive
POLL_S = 0.01
SOUND_SPEED = 1500.0


class EmulatorServer:
    """Server on a loopback UDP port, in its own thread, for the emulator of one sensor type."""

    def __init__(self, name: str, sensor: str) -> None:
        self.sensor, self._state = sensor, SharedState(name)
        self._socket = open_socket("127.0.0.1", 0)
        self.port: int = self._socket.getsockname()[1]
        self._sessions = ServerSessions(self._admit, lambda: (0, int(RunState.RUNNING)), PERIOD_S, TIMEOUT_S)
        self._services: dict[int, EmulatorService] = {}
        self._actions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> EmulatorServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        self._run_soon(lambda: None)
        self._thread.join()
        for service in self._services.values():
            service.release()
        self._socket.close()
        os.close(self._wake)

    def end(self) -> None:
        """End the session, as a server that shuts down does."""
        self._run_soon(self._end_sessions)

    def _end_sessions(self) -> None:
        for session in list(self._sessions.by_token.values()):
            self._sessions.bye(session, "the server shuts down")

    def _run_soon(self, action: Callable[[], None]) -> None:
        self._actions.put(action)
        os.eventfd_write(self._wake, 1)

    def _admit(self, join: Join, previous: Session | None) -> Admission:
        if join.role != Role.EMULATOR or join.name != self.sensor:
            raise NotAdmitted(Refusal.ROLE, f"join as an emulator with the name '{self.sensor}'")
        if self._services:
            raise NotAdmitted(Refusal.NAME_IN_USE, f"another emulator serves '{self.sensor}'")
        return Admission(-1, int(self._state.world()["step_ns"]), SOUND_SPEED)

    def _run(self) -> None:
        while not self._is_over:
            select.select([self._socket.fileno(), self._wake], [], [], POLL_S)
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wake)
            while not self._actions.empty():
                self._actions.get()()
            with contextlib.suppress(OSError):
                while True:
                    data, address = self._socket.recvfrom(MAX_DATAGRAM + 1)
                    self._handle(self._sessions.receive(data, address[:2], time.monotonic()))
            now = time.monotonic()
            self._handle(self._sessions.poll(now))
            self._sessions.flush(now)
            for data, address in self._sessions.outgoing:
                with contextlib.suppress(OSError):
                    self._socket.sendto(data, address)
            self._sessions.outgoing.clear()

    def _handle(self, happenings: list[Happening]) -> None:
        for h in happenings:
            match h:
                case Joined(session=session):
                    self._services[session.token] = self._serve(session)
                case SessionGone(session=session) if session.token in self._services:
                    self._services.pop(session.token).release()
                case Requested(session=session, number=number, request=request) if session.token in self._services:
                    try:
                        if self._services[session.token].handle(request):  # type: ignore[arg-type]
                            self._sessions.push(session, Answer(number, 1, ""))
                    except ValueError as error:
                        self._sessions.refuse(session, number, str(error))

    def _serve(self, session: Session) -> EmulatorService:
        def report_due(due: int) -> None:
            self._run_soon(lambda: service.on_due(due))

        service = EmulatorService(
            self._state, self.sensor, lambda event: self._sessions.push(session, event), report_due
        )
        return service
