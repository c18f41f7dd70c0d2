"""Observers: clients that receive all bodies of a server over the network, but do not have their own body.

    with Observer("monitor", ("127.0.0.1", 9750), rate=20.0) as observer:
        for frame in observer.frames():
            for body in frame.bodies:
                print(observer.names[int(body["id"])], body["p_WB_W"])

A slow observer loses frames but never events. The server ends the session of an observer that sends no
acknowledgements. An observer to which the configuration grants rights can also send commands:
``observer.wait(observer.push((50.0, 0.0, 0.0), body="auv"))``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np

from wavesim_sdk import arguments
from wavesim_sdk.arrays import Record
from wavesim_sdk.broker import ANSWER_TIMEOUT_S, JOIN_TIMEOUT_S
from wavesim_sdk.errors import SessionEnded, SessionLost
from wavesim_sdk.onboard import RequestOutcomes
from wavesim_sdk.privileged_requests import PrivilegedRequests
from wavesim_sdk.server_address import ServerName, address_of
from wavesim_sdk.wire.client import SessionEvent
from wavesim_sdk.wire.items import (
    Answer,
    BodyChanged,
    FateSeen,
    Observe,
    RequestRefused,
    RunStateChanged,
    SignalSeen,
    TimeChanged,
)
from wavesim_sdk.wire.link import open_link
from wavesim_sdk.wire.messages import FLEET_DTYPE, SHUTDOWN, Fleet, Join, Role
from wavesim_sdk.wire.schema import Malformed

__all__ = ["FleetFrame", "Observer"]

_KEPT = 4  #: maximum number of ticks for which incomplete frames are kept
KEPT_FRAMES = 256  #: maximum number of frames kept during :meth:`Observer.wait`


@dataclass
class FleetFrame:
    """The requested bodies at one tick; ``is_complete`` is False if part of the frame was lost.

    ``time_changes`` lists the time changes since the previous frame. ``signals`` and ``fates`` contain only events
    after the last of these changes.
    """

    tick: int
    time_ns: int
    run_state: int
    bodies: Record
    is_complete: bool
    signals: list[SignalSeen] = field(default_factory=list)
    fates: list[FateSeen] = field(default_factory=list)
    time_changes: list[TimeChanged] = field(default_factory=list)


class Observer(PrivilegedRequests):
    """A blocking observer.

    The observer receives frames ``rate`` times a second (wall time). A frame covers all bodies, or only those in the
    rows ``bodies``, or only those within ``radius`` (m) of ``center`` (W).
    """

    def __init__(
        self,
        name: str,
        server: ServerName | None = None,
        *,
        rate: float = 20.0,
        bodies: Sequence[int] | None = None,
        center: Sequence[float] | None = None,
        radius: float = 1e12,
        sounds: bool = False,
        key: bytes | None = None,
    ) -> None:
        """Prepare a session; :meth:`connect` or a ``with`` block starts it. Raises InvalidArgument if an argument is invalid.

        :param name: any name that describes the observer; grants and keys refer to this name
        :param server: name of a server on this machine, ``"HOST:PORT"`` or ``(host, port)``; None: the server that the
            environment variable WAVESIM_SERVER names, or port 9750 of this machine if the variable is not set
        :param rate: frames per second of wall time; 0: no frames
        :param bodies: rows of the bodies to receive; None: all bodies
        :param center: centre (north, east, down; in W, m) of the area of interest; None: no limit
        :param radius: radius of the area of interest in m
        :param sounds: whether to receive all signals and their outcomes
        :param key: key of 32 or 64 bytes (`wavesim keys`); None: the key in the file that WAVESIM_KEYS names, if this
            environment variable is set
        """
        join = Join(name=arguments.short_name("name", name), role=Role.OBSERVER)
        self.link = open_link(join, address_of(server), arguments.key_bytes(key))
        self.session = self.link.session
        self.names: dict[int, str] = {}  #: names of the bodies in the simulation, by row
        self.models: dict[int, str] = {}
        self.run_state = 0
        self._parts: dict[int, dict[int, Fleet]] = {}
        self._signals: list[SignalSeen] = []
        self._fates: list[FateSeen] = []
        self._time_changes: list[TimeChanged] = []
        self._newest = -1
        self._outcomes = RequestOutcomes()
        self._kept: list[FleetFrame] = []  # frames that came during wait()
        self.watch(rate, bodies, center, radius, sounds)

    def watch(
        self,
        rate: float,
        bodies: Sequence[int] | None = None,
        center: Sequence[float] | None = None,
        radius: float = 1e12,
        sounds: bool = False,
    ) -> None:
        """Change what this observer receives; a rate of 0 stops the frames."""
        frames = arguments.at_least_zero("rate", rate, "frames per second")
        period = round(1e9 / frames) if frames else 0
        middle = None if center is None else arguments.numbers("center", center, 3, "m: north, east, down")
        rows = None if bodies is None else tuple(arguments.whole("each row in bodies", row) for row in bodies)
        reach = arguments.at_least_zero("radius", radius, "m")
        request = Observe(period, rows, middle, reach, int(bool(sounds)))
        try:
            self.session.request(request)
        except Malformed as malformed:
            raise arguments.request_error(request, malformed) from None

    def __enter__(self) -> Observer:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.link.close()

    def connect(self, timeout: float = JOIN_TIMEOUT_S) -> None:
        """Join the server as an observer."""
        self.run_state = self.link.connect(timeout).run_state
        self.link.flush(time.monotonic())

    def poll(self, timeout: float = 0.0) -> list[FleetFrame]:
        """Wait at most ``timeout`` seconds for frames. Return immediately when a frame is complete or a newer one has
        begun.
        """
        limit = time.monotonic() + timeout
        while True:
            found, self._kept = self._kept, []
            found = found or self._poll_once(limit)
            if found or time.monotonic() >= limit:
                return found
            self.link.check_alive()

    def _poll_once(self, limit: float) -> list[FleetFrame]:
        return [f for event in self.link.poll(limit) if (f := self._feed(event)) is not None]

    def wait(self, request: int, timeout: float = ANSWER_TIMEOUT_S) -> str:
        """Wait for the answer to a request and return its text. Raises Refused if the server refuses it, or SessionLost
        after ``timeout`` seconds.

        Frames that arrive while waiting are kept for :meth:`poll`.
        """
        limit = time.monotonic() + timeout
        while (said := self._outcomes.take(request)) is None:
            if time.monotonic() >= limit:
                raise SessionLost(f"the server did not answer request {request} within {timeout:g} s")
            self._kept = [*self._kept, *self._poll_once(limit)][-KEPT_FRAMES:]
            self.link.check_alive()
        return said

    def frames(self) -> Iterator[FleetFrame]:
        """Yield every frame until the run has ended or the server is shut down."""
        while self.run_state != 3:
            try:
                frames = self.poll(0.5)
            except SessionEnded:
                if self.session.end_reason == SHUTDOWN:
                    return
                raise
            yield from frames

    def _feed(self, event: SessionEvent) -> FleetFrame | None:
        match event:
            case BodyChanged(present=1):
                self.names[event.id], self.models[event.id] = event.name, event.model
            case BodyChanged():
                self.names.pop(event.id, None)
                self.models.pop(event.id, None)
            case RunStateChanged():
                self.run_state = event.run_state
            case TimeChanged():
                self._newest = -1
                self._parts.clear()
                self._signals.clear()
                self._fates.clear()
                self._time_changes.append(event)
            case SignalSeen():
                self._signals.append(event)
            case FateSeen():
                self._fates.append(event)
            case Answer() | RequestRefused():
                self._outcomes.add(event)
            case Fleet():
                return self._add_part(event)
        return None

    def _add_part(self, part: Fleet) -> FleetFrame | None:
        if part.tick < self._newest:
            return None  # too late; while the clock is stopped, the same tick comes repeatedly
        parts = self._parts.setdefault(part.tick, {})
        parts[part.part] = part
        if len(parts) == part.parts:
            return self._finish(part.tick)
        if len(self._parts) > _KEPT:
            return self._finish(min(self._parts))
        return None

    def _finish(self, tick: int) -> FleetFrame:
        parts = self._parts.pop(tick)
        for old in [t for t in self._parts if t < tick]:
            del self._parts[old]
        self._newest = max(self._newest, tick)
        first = next(iter(parts.values()))
        data = b"".join(parts[k].bodies for k in sorted(parts))
        bodies = np.frombuffer(data[: len(data) // FLEET_DTYPE.itemsize * FLEET_DTYPE.itemsize], FLEET_DTYPE)
        signals, fates, self._signals, self._fates = self._signals, self._fates, [], []
        changes, self._time_changes = self._time_changes, []
        complete = len(parts) == first.parts
        return FleetFrame(tick, first.time_ns, first.run_state, bodies, complete, signals, fates, changes)
