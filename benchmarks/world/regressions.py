"""Fixed defects, each with a patch that removes the fix and a seed that detects the defect then.

python -m benchmarks.world --regressions     find these seeds again; required after a change to the world's code
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.world.report import Report
from benchmarks.world.runner import run
from benchmarks.world.server import Server
from wavesim_sdk.wire import codec, joining, messages, reliable
from wavesim_sdk.wire.client import ClientSession
from wavesim_sdk.wire.items import EVENTS, REQUESTS, Request
from wavesim_sdk.wire.messages import Done, Join, Refusal, Requests, Type
from wavesim_sdk.wire.schema import Malformed, schema_of
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import NotAdmitted, Session
from wavesim_server.engine.command_executor import CommandExecutor
from wavesim_server.engine.event_queue import EventQueue
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.messages import EnterCommand, LogRecordsEvent
from wavesim_server.network import acoustic_events, state_datagrams
from wavesim_server.network.admission import AdmissionPolicy
from wavesim_server.network.crews import Crews
from wavesim_server.network.event_dispatcher import EngineEventDispatcher
from wavesim_server.network.front import Front
from wavesim_server.network.lockstep import Barrier
from wavesim_server.ring import PushResult, Ring

WITHOUT = frozenset({"rekeying"})  #: the seeds were found before keys changed during a run
ENOUGH = 3  #: number of seeds that detect a defect; the one with the fewest steps is used


@dataclass(frozen=True)
class Regression:
    """A fixed defect. ``finds`` is the beginning of the failure; ``defects`` are numbers in
    docs/evidence/reliability.md.
    """

    defects: tuple[int, ...]
    out: Callable[[], contextlib.AbstractContextManager[Any]]
    finds: tuple[str, ...]
    seed: int

    def run(self) -> Report:
        """Run the seed without the fix."""
        with self.out():
            return run(self.seed, WITHOUT)


def _unchecked(record: type[Any]) -> Callable[[Any], Any]:
    """Declare only the number of items of a record."""
    count = len(schema_of(record).fields)
    return lambda values: record(*[*values, *[None] * count][:count])


def _message(kind: Type) -> Any:
    return mock.patch.dict(codec._DECODE, {kind: _unchecked(messages.MESSAGES[kind][2])})


# -- one typed boundary ------------------------------------------------------------------------------------------------


def actuate_unchecked() -> Any:
    """Pass any content of ACTUATE to the engine."""
    return _message(Type.ACTUATE)


def done_unchecked() -> Any:
    """Pass any content of DONE to the engine."""
    return _message(Type.DONE)


def estimate_unchecked() -> Any:
    """Pass any content of ESTIMATE to the tables and the log."""
    return _message(Type.ESTIMATE)


def observe_unchecked() -> Any:
    """Accept any content of OBSERVE."""
    return mock.patch.dict(REQUESTS._decode, {Request.OBSERVE: _unchecked(REQUESTS.records[Request.OBSERVE])})


def join_unchecked() -> Any:
    """Accept any content of JOIN, from any client."""
    return mock.patch.object(joining._WHOLE, "decode", _unchecked(Join))


def program_unchecked() -> Any:
    """Allow a program to answer NaN."""

    def done(self: ClientSession, tick: int, command: Any, estimate: Any = None) -> None:
        self._done = Done(tick, self._outbox.last, command, estimate)
        self._queue(self._done)

    return mock.patch.object(ClientSession, "done", done)


# -- whatever a session does ends that session only --------------------------------------------------------------------


def endless_refusals() -> Any:
    """Let a client that acknowledges nothing end the front."""

    def push(self: ServerSessions, session: Session, event: Any) -> None:
        session.outbox.push(EVENTS.encode(event))
        self._unflushed[session.token] = session

    return mock.patch.object(ServerSessions, "push", push)


def engine_uncontained() -> Any:
    """Let a model that is unstable at this time step end the engine."""
    return mock.patch.object(CommandExecutor, "_enter", _enter)


def _enter(self: CommandExecutor, c: Any) -> None:
    if c.row not in self.sim.occupants:
        self._let_in(c)
        self.run.announce_body(c.row, present=True)
    self.run.publish()
    self.tables.publish_identity()


def resume_unchecked() -> Any:
    """Skip admission when a session resumes: any period is accepted."""
    lockstep = AdmissionPolicy._lockstep

    def lenient(self: AdmissionPolicy, join: Join) -> int:
        return join.lockstep_ns // self.step_ns if join.previous else lockstep(self, join)

    return mock.patch.object(AdmissionPolicy, "_lockstep", lenient)


# -- what does not fit -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def one_datagram() -> Iterator[None]:
    """Send a state of any size in one datagram."""
    state_datagrams.divide_sensors.cache_clear()
    state_datagrams.cached_template.cache_clear()
    with mock.patch.object(state_datagrams, "MAX_BODY_BYTES", 10**6), mock.patch.object(codec, "MAX_DATAGRAM", 1200):
        yield
    state_datagrams.divide_sensors.cache_clear()
    state_datagrams.cached_template.cache_clear()


def whole_records() -> Any:
    """Let a record that is larger than its ring wait for room that never comes."""

    def push(self: Ring, kind: int, payload: bytes) -> PushResult:
        return PushResult.DONE if self._append(kind, payload) else PushResult.FULL

    return mock.patch.object(Ring, "push", push)


def silent_pieces() -> Any:
    """Signal only whole records to the reader, so that it makes no room for the next pieces of a large record."""

    def push_backlog(self: EventQueue) -> bool:
        while self._backlog and self._ring.push(*self._backlog[0]):
            self._backlog.popleft()
            self._wake_due = True
        return not self._backlog

    return mock.patch.object(EventQueue, "push_backlog", push_backlog)


def log_that_must_begin() -> Any:
    """Let a full disk at the beginning of the log end the front."""

    def begin(self: LogWriter) -> None:
        try:
            real(self)
        except OSError as error:
            raise RuntimeError("the front ended") from error

    real = LogWriter._begin
    return mock.patch.object(LogWriter, "_begin", begin)


# -- what sessions receive ---------------------------------------------------------------------------------------------


def stale_welcome() -> Any:
    """Send tick 0 and a stopped clock in the WELCOME after resuming."""
    real = joining.make_welcome

    def welcome(session: Session, clock: tuple[int, int], keepalive: tuple[float, float]) -> Any:
        return real(session, (0, 0) if session.resumed else clock, keepalive)

    return mock.patch.object(joining, "make_welcome", welcome)


def new_or_resumed() -> Any:
    """Omit from the WELCOME whether the session is new or resumed."""
    real = joining.make_welcome

    def welcome(session: Session, clock: tuple[int, int], keepalive: tuple[float, float]) -> Any:
        how, session.resumed = session.resumed, messages.Resumption.NEW
        try:
            return real(session, clock, keepalive)
        finally:
            session.resumed = how

    return mock.patch.object(joining, "make_welcome", welcome)


def expired_is_new() -> Any:
    """Start a new session silently for an unknown token."""
    real = joining.resolve_join

    def wanted(body: Any, *more: Any) -> Any:
        try:
            return real(body, *more)
        except NotAdmitted as refused:
            if refused.code != Refusal.EXPIRED:
                raise
            fresh = (*body[:JOIN_PREVIOUS], 0, *body[JOIN_PREVIOUS + 1 :])
            return real(fresh, *more)

    return mock.patch.object(joining, "resolve_join", wanted)


JOIN_PREVIOUS = [i.name for i in schema_of(Join).fields].index("previous")


def stalled_requests() -> Any:
    """Let a malformed request block the requests beside it repeatedly."""
    real = ServerSessions._handle

    def handle(self: ServerSessions, session: Session, message: Any, body: bytes, now: float) -> Any:
        if isinstance(message, Requests):
            for item in message.items:
                try:
                    REQUESTS.decode(item)
                except Malformed as malformed:
                    raise codec.Dropped("fields", str(malformed)) from None
        return real(self, session, message, body, now)

    return mock.patch.object(ServerSessions, "_handle", handle)


def nested_requests() -> Any:
    """Let a request that is nested too deeply block the requests beside it."""
    real = codec.unpack_payload

    def unpack(plain: bytes, kind: Type) -> Any:
        if (
            codec._LARGE(plain)
            and messages.MESSAGES[kind][0]
            and not codec.is_within_limits(plain, 1200, messages.MAX_DEPTH)
        ):
            raise codec.Dropped("body")
        return real(plain, kind)

    return mock.patch.object(codec, "unpack_payload", unpack)


def address_is_fixed() -> Any:
    """End a session when its client changes its address."""

    def elsewhere(*_: Any) -> Any:
        raise codec.Dropped("address")

    return mock.patch.object(ServerSessions, "_receive_from_new_address", elsewhere)


def locked_out() -> Any:
    """Drop the JOIN of an ended session without an answer."""
    real = ServerSessions._join

    def join(self: ServerSessions, body: Any, data: bytes, address: Any, now: float, owner: Any) -> Any:
        cookie, nonce = joining.cookie_and_nonce(body)
        if self._address_validator.is_valid_cookie(cookie, address, now) and self._address_validator.is_replayed_join(
            address, nonce
        ):
            raise codec.Dropped("replay")
        return real(self, body, data, address, now, owner)

    return mock.patch.object(ServerSessions, "_join", join)


def no_repeats() -> Any:
    """Never repeat lost messages."""
    return mock.patch.object(reliable.RttEstimator, "timeout", lambda self, repeats=0: 1e9)


# -- bodies and steps --------------------------------------------------------------------------------------------------


def orphans_crew() -> Any:
    """Keep the crew of a newcomer when the body leaves whose pilot joined an earlier front."""

    def body_leaves(self: Front, row: int, silent: bool) -> None:
        self.bodies.pop(row, None)
        self.engine_queue.leave(row)
        self.tables.mark_departed(row, 2 if silent else 3)

    return mock.patch.object(Front, "_remove_body", body_leaves)


def epochs_anew() -> Any:
    """Number sessions from the beginning with each front."""
    return mock.patch.object(Crews, "start_new_epochs", lambda self, dice: None)


def endless_barrier() -> Any:
    """Let a lockstep client that does not answer delay all others without limit."""
    real = Barrier.take_replies

    def opened(self: Barrier, now: float) -> Any:
        return None if self.waiting else real(self, now)

    return mock.patch.object(Barrier, "take_replies", opened)


def late_answers() -> Any:
    """Never wait again for a lockstep client whose answers come after the next step."""
    real = ServerSessions._handle

    def handle(self: ServerSessions, session: Session, message: Any, body: bytes, now: float) -> Any:
        late = (
            isinstance(message, Done) and session.pending_step is not None and message.tick < session.pending_step.tick
        )
        return [] if late else real(self, session, message, body, now)

    return mock.patch.object(ServerSessions, "_handle", handle)


def requests_of_the_gone() -> Any:
    """Keep the requests of a client that has left."""
    from wavesim_server.network.requests import RequestHandler as Service

    return mock.patch.object(Service, "discard", lambda self, session: None)


def copies_recorded() -> Any:
    """Let a copy that arrives first from another address move the replay window."""
    real = codec.open_payload
    return mock.patch.object(
        codec, "open_payload", lambda data, header, seal=None, record=True: real(data, header, seal)
    )


@contextlib.contextmanager
def forged_life() -> Iterator[None]:
    """Count every datagram that names a session as activity."""
    real = ServerSessions._receive_in_session

    def of_session(self: ServerSessions, session: Session, header: Any, data: bytes, address: Any, now: float) -> Any:
        session.last_heard = now
        return real(self, session, header, data, address, now)

    with mock.patch.object(ServerSessions, "_receive_in_session", of_session):
        yield


# -- parts that stand still, rows that are used again ------------------------------------------------------------------


@contextlib.contextmanager
def blamed_for_a_stall() -> Iterator[None]:
    """Count the time of a stall of the front as silence of its clients, and check them before their datagrams are read."""

    def wakes(self: Server, now: float) -> None:
        self._turn_front(now)
        self._read(now)
        self._take_events(now)

    with (
        mock.patch.object(Front, "set_time", lambda self, now: setattr(self, "now", now)),
        mock.patch.object(Server, "_wakes", wakes),
    ):
        yield


def rows_without_generations() -> Any:
    """Send everything about a row to its current client, including reports about the previous body."""
    real = acoustic_events.push_signal_events

    def push(sent: Any, receptions: Any, senders: Any, receivers: Any, *more: Any) -> None:
        real(sent, receptions, np.ones_like(senders), np.ones_like(receivers), *more)

    return mock.patch.object(acoustic_events, "push_signal_events", push)


@contextlib.contextmanager
def unseen_bodies() -> Iterator[None]:
    """Keep a body that only a crashed front knew, and use it for a client that joins later in the same row."""
    enters, roster = CommandExecutor._enter, Front._on_body_presence

    def enter(self: CommandExecutor, c: EnterCommand) -> None:
        there = c.row in self.sim.occupants
        enters(self, replace(c, generation=self.run.generation(c.row)) if there else c)

    with (
        mock.patch.object(CommandExecutor, "_enter", enter),
        mock.patch.object(Front, "_on_body_presence", lambda self, r: None if r.is_present else roster(self, r)),
    ):
        yield


def names_by_row() -> Any:
    """Log records of the previous body of a row under the name of the current body."""

    def table(self: EngineEventDispatcher, log: LogWriter, e: LogRecordsEvent) -> None:
        log.records(e.tick * self.step_ns, e.tables, e.counts, e.rows, e.records)

    return mock.patch.object(EngineEventDispatcher, "_table", table)


_ENGINE = ("Malformed in", "internal: the engine failed")
_FRONT = ("internal: the front failed",)
REGRESSIONS: dict[str, Regression] = {
    "actuate unchecked": Regression((1,), actuate_unchecked, (*_ENGINE, *_FRONT), 39),
    "done unchecked": Regression((1,), done_unchecked, (*_ENGINE, *_FRONT), 289),
    "estimate unchecked": Regression((2,), estimate_unchecked, _FRONT, 148),
    "observe unchecked": Regression((3,), observe_unchecked, _FRONT, 95),
    "endless refusals": Regression((4,), endless_refusals, _FRONT, 59),
    "join unchecked": Regression((5, 32), join_unchecked, (*_ENGINE, *_FRONT), 232),
    "resume unchecked": Regression((6,), resume_unchecked, ("a period that cannot be",), 230),
    "engine uncontained": Regression((7,), engine_uncontained, ("internal: the engine failed", "ConfigError in"), 127),
    "one datagram": Regression((8,), one_datagram, ("no states", "no steps", *_FRONT), 20),
    "whole records": Regression(
        (12,), whole_records, ("a barrier waits too long", "no rest", "no reply", "the log differs"), 27
    ),
    "program unchecked": Regression((18,), program_unchecked, ("a program's mistake",), 49),
    "stale welcome": Regression((26,), stale_welcome, ("a welcome that is not true",), 27),
    "new or resumed": Regression((26,), new_or_resumed, ("how it came",), 27),
    "expired is new": Regression((26,), expired_is_new, ("how it came",), 20),
    "stalled requests": Regression((27,), stalled_requests, ("requests are owed",), 4),
    "nested requests": Regression((27,), nested_requests, ("requests are owed",), 4),
    "no repeats": Regression(
        (34,), no_repeats, ("events are owed", "requests are owed", "not admitted", "no steps"), 9
    ),
    "address is fixed": Regression((35,), address_is_fixed, ("lost", "forgotten"), 105),
    "requests of the gone": Regression((40,), requests_of_the_gone, ("somebody who left", "memory is not"), 4),
    "locked out": Regression((), locked_out, ("not admitted",), 996),
    "silent pieces": Regression((), silent_pieces, ("a barrier waits too long", "no rest", "no reply"), 104),
    "log that must begin": Regression((), log_that_must_begin, ("RuntimeError in begin",), 1),
    "orphan's crew": Regression((), orphans_crew, ("a state that was not", "bodies differ", "crew"), 45),
    "epochs anew": Regression((), epochs_anew, ("an answer without a request", "answered twice"), 385),
    "endless barrier": Regression((), endless_barrier, ("a barrier waits too long",), 21),
    "blamed for a stall": Regression((), blamed_for_a_stall, ("wrongly considered silent",), 2128),
    "rows without generations": Regression((), rows_without_generations, ("data of a former body",), 265),
    "unseen bodies": Regression((), unseen_bodies, ("no steps", "bodies differ"), 636),
    "names by row": Regression((), names_by_row, ("the log differs",), 691),
    "copies recorded": Regression((), copies_recorded, ("somebody without a key",), 16),
    "forged life": Regression((), forged_life, ("somebody without a key",), 16),
    "late answers": Regression((), late_answers, ("left out", "no rest"), 108),
}


def find(seeds: Sequence[int]) -> int:
    """Print for each regression the seed, of the first three that find it, that needs the fewest steps; 1 if no seed
    finds it.
    """
    lost = 0
    for name, regression in REGRESSIONS.items():
        found: list[tuple[int, int, str]] = []
        with regression.out():
            for seed in seeds:
                report = run(seed, WITHOUT)
                if report.broken.startswith(regression.finds):
                    found.append((report.steps, seed, report.broken))
                if len(found) == ENOUGH:
                    break
        steps, seed, broken = min(found, default=(0, -1, "not found"))
        lost += not found
        print(f"{name}: seed {seed}, step {steps}: {broken:.100}", flush=True)
    return min(lost, 1)
