"""Sessions of emulators on other machines, one for each sensor type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from wavesim_sdk.attach import SharedState
from wavesim_sdk.emulator_service import EmulatorRequest, EmulatorService, unknown_sensor
from wavesim_sdk.errors import AttachError, WaveSimError
from wavesim_sdk.shared_memory import OWNER, OWNER_START, SharedMemoryArea, is_process_alive
from wavesim_sdk.wire import items
from wavesim_sdk.wire.address_validation import TokenBucket
from wavesim_sdk.wire.messages import PIECE_BYTES, Join, Refusal, Right
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import NotAdmitted, Session
from wavesim_server.network.admission import JoinResult
from wavesim_server.network.crews import SessionGrant
from wavesim_world.config import LoadedConfig

#: type of a function that runs another function in the front end's thread as soon as possible
RunSoon = Callable[[Callable[[], None]], None]


MAX_BACKLOG = 2048  #: number of unacknowledged events above which arrivals of sound wait
POLL_S = 0.002  #: interval in s at which to continue to send them


class EmulatorSessions:
    """The emulators that have joined a server over the network.

    ``run_soon`` is None in a server without a network, because such a server refuses emulators.
    """

    run_soon: RunSoon | None = None

    def __init__(
        self,
        name: str,
        loaded: LoadedConfig,
        areas: Mapping[str, SharedMemoryArea],
        sessions: ServerSessions,
        now: Callable[[], float],
    ) -> None:
        self.by_token: dict[int, tuple[Session, EmulatorService]] = {}
        self._name, self._loaded, self._areas, self._sessions = name, loaded, areas, sessions
        self._now = now
        self._state: SharedState | None = None
        network = loaded.config.network
        #: maximum number of datagrams per second; values and frames may each arrive at the rate that applies to other
        #: sessions
        self._rate = network.datagram_rate + network.frame_rate / PIECE_BYTES
        #: function that is called before a frame is overwritten
        self.before_frame: Callable[[float], Any] = lambda now: None

    def admit(self, join: Join, previous: Session | None) -> JoinResult:
        """Return the result of a join. Raises NotAdmitted if another emulator serves this sensor type."""
        sensor, config = join.name, self._loaded.config
        if sensor not in self._loaded.sensor_rows:
            raise NotAdmitted(Refusal.UNKNOWN_NAME, unknown_sensor(sensor, tuple(self._loaded.sensor_rows)))
        world = self._areas["simulation"]["world"].snapshot()[1][0]
        if self.run_soon is None or not world["step_ns"]:
            raise NotAdmitted(Refusal.FULL, "the server is still starting; try again")
        other = self._session_of(sensor)
        header = self._areas["vehicles"][sensor].header
        if other is not None and other is not previous:
            where = "{}:{}".format(*other.address)
            raise NotAdmitted(Refusal.NAME_IN_USE, f"the emulator at {where} already serves '{sensor}'; stop it first")
        if other is None and is_process_alive(header[OWNER], header[OWNER_START]):
            text = f"process {header[OWNER]} on the server's machine already serves '{sensor}'; stop it first"
            raise NotAdmitted(Refusal.NAME_IN_USE, text)
        grant = SessionGrant(-1, "", "", 0, True, False, Right(0), False, 0, (), ())
        return JoinResult(-1, int(world["step_ns"]), config.acoustics.sound_speed, grant=grant)

    def _session_of(self, sensor: str) -> Session | None:
        return next((s for s, service in self.by_token.values() if service.sensor == sensor), None)

    def join(self, session: Session, previous: Session | None) -> None:
        """Claim the table of the sensor type for a session."""
        if previous is not None:
            self.leave(previous)
        if self._state is None:
            self._state = SharedState.from_areas(self._areas["simulation"], self._areas["vehicles"])
            self._state.server = self._name
        try:
            service = EmulatorService(
                self._state,
                session.name,
                lambda event: self._sessions.push(session, event),
                lambda due: self._report_due(session.token, due),
                lambda: self.before_frame(self._now()),
                lambda: MAX_BACKLOG - len(session.outbox),
            )
        except AttachError as error:  # a local emulator claimed it in this moment
            self._sessions.bye(session, str(error))
            return
        session.rate_limiter = TokenBucket(self._rate)
        self.by_token[session.token] = session, service

    def poll(self, now: float) -> float:
        """Continue to send arrivals that have been waiting. Return the time at which to call this method again."""
        later = math.inf
        for session, service in list(self.by_token.values()):
            try:
                if service.continue_sending():
                    later = now + POLL_S
            except Exception as error:  # it ends only this session
                self._sessions.fail_session(session, error)
        return later

    def _report_due(self, token: int, due: int) -> None:
        """Let the front end's thread handle the due tick. This method is called by the thread that watches the claim."""
        assert self.run_soon is not None
        self.run_soon(lambda: self._on_due(token, due))

    def _on_due(self, token: int, due: int) -> None:
        if token not in self.by_token:
            return
        session, service = self.by_token[token]
        try:
            service.on_due(due)
        except Exception as error:  # it ends only this session
            self._sessions.fail_session(session, error)

    def leave(self, session: Session) -> bool:
        """Release the claim of a session. Return whether the session was an emulator."""
        found = self.by_token.pop(session.token, None)
        if found is not None:
            found[1].release()
        return found is not None

    def handle(self, session: Session, number: int, request: EmulatorRequest) -> None:
        """Handle a request from an emulator. Raises ValueError, stating the reason, if the request is refused."""
        found = self.by_token.get(session.token)
        if found is None:
            raise ValueError(f"only an emulator may send {type(request).__name__.upper()}")
        try:
            if found[1].handle(request):
                self._sessions.push(session, items.Answer(number, 1, ""))
        except WaveSimError as error:
            raise ValueError(str(error)) from None

    def finish(self) -> None:
        """Release the claims of all emulators."""
        for session, _ in list(self.by_token.values()):
            self.leave(session)
