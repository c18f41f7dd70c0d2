"""Streaming of frames from imaging sonars, cameras, lidars and hydrophones to their subscribers, in pieces and at a
limited rate. Each frame is sent once.

A subscriber that falls behind receives only the newest image. Blocks of a hydrophone are consecutive parts of one
signal, so they are sent in order as long as the ring contains them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.frame_rings import FrameRings
from wavesim_sdk.imaging_frames import FRAME_SENSOR_TYPES, ImagingFrame, no_such_source
from wavesim_sdk.wire.frame_pieces import split_frame
from wavesim_sdk.wire.messages import PIECE_BYTES, Piece
from wavesim_sdk.wire.server import ServerSessions
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.network.crews import CrewMember
from wavesim_server.network.state_datagrams import InstrumentLocator
from wavesim_world.config import LoadedConfig

POLL_PERIOD_S = 0.005  #: interval in s between two checks for new frames
SEND_S = 0.002  #: interval in s between two bursts of pieces
#: duration in s of one burst at the limited rate; a longer burst would overflow the socket of a receiver
BURST_S = 0.01


@dataclass
class _SonarCursor:
    """A session's position in the sequence of frames from one instrument."""

    last_frame: int  #: sequence number of the newest frame that has been checked
    last_described: int = 0  #: number of the newest frame that has been sent, counted from 1
    next: float = 0.0


@dataclass
class FrameSubscription:
    """The frame subscription of one session."""

    member: CrewMember
    period: float
    cursors: dict[int, _SonarCursor] = field(default_factory=dict)  #: state of each frame stream, by instrument number
    pieces: deque[Piece] = field(default_factory=deque)  #: remaining pieces of the current frame
    credit: float = 0.0  #: number of bytes that may currently be sent
    credited_at: float = 0.0


class FrameStreamer:
    """All frame subscriptions. ``rate`` is the limit for each of them in bytes per second."""

    def __init__(
        self, server: str, sessions: ServerSessions, instruments: InstrumentLocator | None, rate: float
    ) -> None:
        self.by_token: dict[int, FrameSubscription] = {}
        self._server, self._sessions, self._instruments, self._rate = server, sessions, instruments, rate
        self._rings: FrameRings | None = None

    def subscribe(self, member: CrewMember, names: Any, period: float, now: float) -> None:
        """Handle a FRAMES request. Raises ValueError if it is invalid."""
        suite = member.grant.suite
        sonars = {i.name: k for k, i in enumerate(suite) if i.type in FRAME_SENSOR_TYPES and i.parameters.send}
        for name in names or ():
            if name not in sonars:
                raise ValueError(no_such_source(member.grant.body, name, sonars))
        wanted = [k for name, k in sonars.items() if names is None or name in names]
        old = self.by_token.pop(member.session.token, None)
        if not wanted:
            return
        if self._rings is None:
            try:
                self._rings = FrameRings.attach(self._server)
            except (AttachError, NotRunning) as error:
                raise ValueError(str(error)) from None
        feed = FrameSubscription(member, period, credited_at=now)
        for number in wanted:
            before = old.cursors.get(number) if old is not None else None
            feed.cursors[number] = before or _SonarCursor(self._newest_frame(member, number))
        self.by_token[member.session.token] = feed

    def _ring(self, member: CrewMember, number: int) -> tuple[int, int] | None:
        """Return the ring and the generation of an instrument on a body in the simulation, or None."""
        assert self._rings is not None
        assert self._instruments is not None  # a body with a sonar has rows of instruments
        found = self._instruments.locate(member.row, number)
        return (
            (self._rings.ring_index(member.grant.suite[number].type, found[0]), found[1]) if found is not None else None
        )

    def _newest_frame(self, member: CrewMember, number: int) -> int:
        assert self._rings is not None
        found = self._ring(member, number)
        return int(self._rings.done[found[0]]) if found is not None else 0

    def poll(self, now: float) -> float:
        """Send all pieces that are due; return the time at which to call this method again."""
        later = math.inf
        for token, feed in list(self.by_token.items()):
            if feed.member.session.is_over:
                del self.by_token[token]
                continue
            try:
                later = min(later, now + self._send_due(feed, now))
            except Exception as error:  # it ends only this session
                self._sessions.fail_session(feed.member.session, error)
        return later

    def _send_due(self, feed: FrameSubscription, now: float) -> float:
        feed.credit = min(feed.credit + (now - feed.credited_at) * self._rate, max(BURST_S * self._rate, PIECE_BYTES))
        feed.credited_at = now
        if not feed.pieces:
            self._start_newest_frame(feed, now)
        while feed.pieces and feed.credit >= PIECE_BYTES:
            feed.credit -= PIECE_BYTES
            self._sessions.send(feed.member.session, feed.pieces.popleft())
        return max(SEND_S, PIECE_BYTES / self._rate) if feed.pieces else POLL_PERIOD_S

    def _start_newest_frame(self, feed: FrameSubscription, now: float) -> None:
        """Among the instruments with a new frame, select the one that has waited longest, and start sending its newest
        frame or, for a hydrophone, its next one.
        """
        assert self._rings is not None
        for number, sonar in sorted(feed.cursors.items(), key=lambda item: item[1].next):
            found = self._ring(feed.member, number)
            if found is None or now < sonar.next:
                continue
            place, generation = found
            newest = int(self._rings.done[place])
            if newest == sonar.last_frame:
                continue
            if newest > sonar.last_frame and feed.member.grant.suite[number].type == "hydrophone":
                newest = max(sonar.last_frame + 1, newest - self._rings.slots + 2)
            frame, sonar.last_frame = self._rings.read(place, newest), newest
            if frame is None or int(frame.record["generation"]) != generation:
                continue
            behind = now - sonar.next
            sonar.next = now + feed.period - (behind if behind < feed.period else 0.0)
            sonar.last_described += 1
            if not feed.member.session.admission.sends_truth:
                frame = frame.without_truth()
            feed.pieces.extend(split_frame(number, sonar.last_described, frame.data))
            return


class FrameLogger:
    """Logs every n-th frame, as configured for each instrument. In fast mode, the emulator of the instrument waits for
    the log.
    """

    def __init__(
        self,
        server: str,
        loaded: LoadedConfig,
        bodies: Mapping[int, tuple[str, str]],
        log: LogWriter,
        lost: Callable[[str], None],
    ) -> None:
        self._server, self._loaded, self._bodies, self._log, self._report_loss = server, loaded, bodies, log, lost
        #: for each (body, instrument): the number n, such that every n-th frame is logged
        self._every: dict[tuple[str, str], int] = {}
        self._rings: FrameRings | None = None
        self._seen: Any = None

    def poll(self, now: float) -> float:
        """Write the new frames to the log. Return the time at which to call this method again."""
        if not any(self._loaded.sensor_rows.get(type_) for type_ in FRAME_SENSOR_TYPES):
            return math.inf
        if self._rings is None:
            try:
                self._rings = FrameRings.attach(self._server, writable=True)
            except NotRunning:  # an engine without the other processes
                return math.inf
            self._seen = self._rings.done.copy()
            self._rings.logged[:] = self._seen + 1
        for ring in (self._rings.done != self._seen).nonzero()[0].tolist():
            self._write_frames(self._rings, ring, int(self._rings.done[ring]))
        return now + POLL_PERIOD_S

    def _write_frames(self, rings: FrameRings, ring: int, newest: int) -> None:
        first = max(int(self._seen[ring]) + 1, newest - rings.slots + 1)
        missing = first - int(self._seen[ring]) - 1
        frame = None
        for number in range(first, newest + 1):
            frame = rings.read(ring, number)
            every = self._log_every(frame) if frame is not None else 1
            if frame is None:
                missing += 1
            elif every and (number - 1) % every == 0:
                self._log.frame(frame)
            self._seen[ring] = number
            rings.logged[ring] = number + 1
        if missing and (frame is None or self._log_every(frame)):
            whose = "of a sonar" if frame is None else f"of '{frame.body}' {frame.name}"
            self._report_loss(f"{missing} frames {whose} arrived too fast for the log")

    def _log_every(self, frame: ImagingFrame) -> int:
        """Return the log interval of an instrument in frames."""
        key = frame.body, frame.name
        if key not in self._every:
            suite = self._loaded.suite_by_name(frame.body, dict(self._bodies.values()).get(frame.body, ""))
            of = next((i.parameters for i in suite if i.name == frame.name and i.type in FRAME_SENSOR_TYPES), None)
            self._every[key] = int(getattr(of, "log", 1))
        return self._every[key]
