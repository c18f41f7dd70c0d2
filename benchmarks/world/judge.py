"""The judge of a siege decides by what was on the network and in the engine, without asking the sessions what they allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.world import invariants
from benchmarks.world.network import Address
from benchmarks.world.report import Broken
from benchmarks.world.server import ADDRESS
from wavesim_sdk.wire.items import EventKind
from wavesim_sdk.wire.messages import (
    Resumption,
    Role,
    Type,
)
from wavesim_sdk.wire.session import (
    Actuated,
    AddressMigrated,
    Estimated,
    Joined,
    Requested,
    Resumed,
    Session,
    SessionGone,
    StepDone,
)
from wavesim_server import messages

if TYPE_CHECKING:
    from benchmarks.world.siege import Siege
    from wavesim_server.network.front import Front

BYE_AGAIN_S = 0.5  #: time after the first BYE by which it must have been repeated
#: events that a resumed session does not receive again, and those whose request belonged to the earlier session
_DESCRIPTIONS = {EventKind.ACTUATOR, EventKind.SENSOR}
_RESULTS = {EventKind.SENT, EventKind.REQUEST_REFUSED, EventKind.ANSWER}
#: ends of which the client knows, so that BYE is only an answer to its datagrams
_UNSAID = ("left", "another session has resumed this session")
_ACTS = (Actuated, Estimated, Requested, StepDone)


class Judge:
    """Judge of what must hold, whatever the adversary does."""

    def __init__(self, world: Siege) -> None:
        self.world = world
        self.executed: dict[str, set[int]] = {}  #: text of the engine about a command -> whether it was executed
        self.life: dict[int, float] = {}  #: session -> time of the last datagram that its own client sent
        self._genuine: set[bytes] = set()  # what clients sent
        self._acted: set[bytes] = set()  # what had an effect
        self._challenged: set[Address] = set()
        self._asked_to_prove: set[Address] = set()
        self._joins: set[tuple[Address, int]] = set()
        self._known: set[str] = {ADDRESS[0]}  # hosts of clients
        self._received: Counter[str] = Counter()  # bytes from each of the other hosts
        self._sent: Counter[str] = Counter()
        self._byes: Counter[int] = Counter()
        self.challenges: Counter[str] = Counter()  #: number of CHALLENGEs to each host
        self._commanded: dict[int, int] = {}  # row -> tick of the last command or answer
        self._watch_engine()

    # -- the engine ----------------------------------------------------------------------------------

    def _watch_engine(self) -> None:
        engine = self.world.server.engine
        emit, actuate, note = engine.events.emit, engine.command_executor._actuate, engine.watchdog.note_command

        def emitted(event: messages.EngineEvent) -> None:
            if isinstance(event, messages.ExecutedEvent):
                self.executed.setdefault(event.text, set()).add(int(event.ok))
            elif isinstance(event, messages.NoticeEvent) and event.text.startswith("no command for"):
                since = event.time_ns - self._commanded.get(event.row, 0) * engine.sim.step_ns
                limit = next(b.watchdog for b in engine.sim.config.fleet.bodies if b.name == event.name)
                if since < 1e9 * limit - 0.5 * engine.sim.step_ns:
                    raise Broken(f"the watchdog acted too early: {event.name}, {1e-9 * since:.2f} s after a command")
            emit(event)

        def commanded(row: int, tick: int) -> None:
            self._commanded[row] = tick
            note(row, tick)

        def actuated(row: int, token: int, values: Any) -> None:
            client = self.world.client_of(token)
            if client is not None and client.lockstep_ticks and client.role is Role.PILOT:
                said = client.said.get(engine.sim.tick)
                if said is None or list(values) != said:
                    raise Broken(
                        f"a command of another step: {client.name} at tick {engine.sim.tick}: {values[:1]}, not {said}"
                    )
            actuate(row, token, values)

        engine.events.emit = emitted  # type: ignore[method-assign]  # to see what the engine does
        engine.command_executor._actuate = actuated  # type: ignore[method-assign, assignment]  # to see commands
        engine.watchdog.note_command = commanded  # type: ignore[method-assign]  # to see commands

    # -- the network ---------------------------------------------------------------------------------

    def on_the_way(self, data: bytes, source: Address, target: Address) -> None:
        """Judge what the server sends, and remember what clients send."""
        if target == ADDRESS:
            self._genuine.add(data)
            return
        kind, host = data[5], target[0]
        if kind == Type.CHALLENGE:
            self._challenged.add(target)
            self.challenges[host] += 1
        elif kind == Type.PROVE:
            self._asked_to_prove.add(target)
        elif kind == Type.BYE:
            self._bye(int.from_bytes(data[8:16], "little"))
        if host not in self._known:
            self._sent[host] += len(data)
            if self._sent[host] > self._received[host]:
                raise Broken(f"amplified: {host} sent {self._received[host]} bytes and received {self._sent[host]}")

    def _bye(self, token: int) -> None:
        self._byes[token] += 1
        if self._byes[token] == 1:
            due = self.world.clock.now + BYE_AGAIN_S
            self.world.clock.at(due, lambda now: self._bye_again(token) if now - due < 0.1 else None)

    def _bye_again(self, token: int) -> None:
        front = self.world.server.front
        over = front.sessions._recently_ended._by_token.get(token) if front is not None else None
        if over is not None and over.text not in _UNSAID and self._byes[token] < 2:
            raise Broken(f"a BYE that was not repeated: session of {over.session.name}")

    def receives(
        self, front: Front, receive: Callable[..., Any], data: bytes, address: Address, now: float, injected: bool
    ) -> Any:
        """Let the front receive a datagram, and judge what it does."""
        if address[0] not in self._known:
            self._received[address[0]] += len(data)
        token = int.from_bytes(data[8:16], "little")
        session = front.sessions.by_token.get(token)
        where, before = (session.address, _state(session)) if session is not None else (None, ())
        happened = receive(data, address, now)
        for h in happened:
            if isinstance(h, Joined | Resumed):
                self._joined(h, address)
            elif isinstance(h, AddressMigrated):
                self._known.add(address[0])
                if address not in self._asked_to_prove:
                    raise Broken(f"moved to an unproven address: {h.session.name} to {address}")
        if session is not None:
            migrated = any(isinstance(h, AddressMigrated) for h in happened)
            acted = _state(session) != before or any(
                h.session is session and (isinstance(h, _ACTS) or (isinstance(h, SessionGone) and h.reason == "left"))
                for h in happened
            )
            if acted:
                self._acts(session, data, where == address or migrated, injected)
                self.life[token] = now
        return happened

    def _acts(self, session: Session, data: bytes, from_its_place: bool, injected: bool) -> None:
        what = f"{session.name}: {Type(data[5]).name}"
        if not from_its_place:
            raise Broken(f"a foreign datagram changed a session: {what}")
        if session.seal is not None and data not in self._genuine:
            raise Broken(f"a forged datagram took effect: {what}")
        if session.seal is not None and data in self._acted:
            raise Broken(f"a datagram took effect twice: {what}")
        if injected and session.seal is None:
            raise Broken(f"the adversary acts in an open session: {what}")
        self._acted.add(data)

    def _joined(self, h: Joined | Resumed, address: Address) -> None:
        session = h.session
        self._known.add(address[0])
        self.life[session.token] = self.world.clock.now
        if address not in self._challenged:
            raise Broken(f"a session at an address without a cookie: {session.name} at {address}")
        if (address, session.nonce) in self._joins:
            raise Broken(f"a JOIN was used twice: {session.name} at {address}")
        self._joins.add((address, session.nonce))
        if isinstance(h, Resumed) and h.resumption is Resumption.RESUMED:
            old = h.previous
            if address in self.world.intruders or _whose(session) != _whose(old):
                raise Broken(f"continued the session of another client: {_whose(session)} continues {_whose(old)}")
            self._carried_over(old, session)

    def _carried_over(self, old: Session, session: Session) -> None:
        """Check that the resumed session repeats the events that its client has not yet received."""
        book = self.world.books.get(old.token)
        if book is None or session.is_over:
            return
        unheard = [_of_request_0(i) for i in map(_unpacked, book.events.said[book.events.heard :])]
        expected = [i for i in unheard if i[0] not in _DESCRIPTIONS]
        said = [_unpacked(_packed(i)) for i in session.outbox.unacknowledged()]
        if expected and said[-len(expected) :] != expected:
            raise Broken(
                f"events lost on resuming: {session.name}: {len(expected)} events were not heard: {expected[-1]}"
            )

    # -- time ----------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Check that silent clients are removed, and that the server waits for clients that answered every STEP."""
        world = self.world
        front, now = world.server.front, world.clock.now
        if front is None:
            return
        limit = world.scene.loaded.config.network.keepalive_timeout + invariants.GRACE_S
        for token, session in front.sessions.by_token.items():
            if session.datagrams_in and now - self.life[token] > limit:
                raise Broken(f"a silent client stays: {session.name} said nothing for {now - self.life[token]:.2f} s")
        for token in front.barrier.dismissed:
            client = world.client_of(token)
            if client is not None and client.live and client.punctual and now - client._harmed > 1.5:
                raise Broken(f"a STEP was lost: {client.name} answered all, and is not waited for")


def _state(s: Session) -> tuple[Any, ...]:
    """Return the values of a session that a dropped datagram must not change."""
    window = (s.seal._highest, s.seal._seen) if s.seal is not None else ()
    return (s.address, s.last_heard, s.newest_sequence, s.inbox.received, len(s.outbox), s.datagrams_in, *window)


def _whose(s: Session) -> tuple[str, str, str]:
    """Return the name, role and key of a session."""
    return s.name, s.role.name, s.key_holder.name if s.key_holder is not None else ""


def _packed(item: Any) -> bytes:
    import msgpack

    data: bytes = msgpack.packb(item)
    return data


def _unpacked(data: bytes) -> list[Any]:
    import msgpack

    item: list[Any] = msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogateescape")
    return item


def _of_request_0(item: list[Any]) -> list[Any]:
    return [item[0], 0, *item[2:]] if item[0] in _RESULTS else item
