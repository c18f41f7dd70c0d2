"""A siege: a server with well-behaved clients, and an adversary who knows everything about the network but no key.

Each seed runs a world and then a siege. Its clients do nothing wrong: they resume, leave, move, vanish, and are late. The
adversary sees all datagrams, and adds others: copies that overtake the originals, replays, forgeries and joins (after
Dolev and Yao). Neither draws random numbers of the world, so the seeds of the regressions stay valid.

:class:`Judge` decides by what was on the network and in the engine, without asking the sessions what they allow.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.world import invariants, scenes
from benchmarks.world.network import Address, Weather
from benchmarks.world.program import Program
from benchmarks.world.report import Broken
from benchmarks.world.server import ADDRESS
from benchmarks.world.world import BEGIN_S, CALM_S, SETTLED_S, World
from wavesim_sdk.wire import codec, items
from wavesim_sdk.wire.client import ClientSession, Phase
from wavesim_sdk.wire.items import EventKind
from wavesim_sdk.wire.messages import (
    HEADER_BYTES,
    MIN_HELLO,
    Ack,
    Actuate,
    Hello,
    Join,
    Leave,
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
    from collections.abc import Sequence

    from benchmarks.world.clients import Client
    from wavesim_sdk.wire.state import State
    from wavesim_server.network.front import Front

THEMES = ("resume", "restless", "move", "vanish", "lossy steps", "dawdle", "frozen emulator", "probe", "flood")
SUSPENDS = 0.15  #: fraction of the sieges in which the whole machine is suspended once
BYE_AGAIN_S = 0.5  #: time after the first BYE by which it must have been repeated
UNKNOWN = 99  #: kind of request that does not exist; each request of it must be refused
SEEN = 3000  #: number of datagrams that the adversary remembers
MARK = "mark of the siege"  #: text of the notices about each newcomer's body
#: events that a resumed session does not receive again, and those whose request belonged to the earlier session
_DESCRIPTIONS = {EventKind.ACTUATOR, EventKind.SENSOR}
_RESULTS = {EventKind.SENT, EventKind.REQUEST_REFUSED, EventKind.ANSWER}
#: ends of which the client knows, so that BYE is only an answer to its datagrams
_UNSAID = ("left", "another session has resumed this session")
_ACTS = (Actuated, Estimated, Requested, StepDone)


class Citizen(Program):
    """A client that keeps to the protocol. ``habits`` are what happens to it, each at a random time."""

    world: Siege

    def __init__(
        self, world: Siege, name: str, role: Role, body: str, ticks: int = 0, habits: Sequence[str] = ()
    ) -> None:
        super().__init__(world, name, world.stream(name), role, body)
        self.lockstep_ticks, self.thinks, self.habits = ticks, 0.02, list(habits)
        self.listens = 1
        self.said: dict[int, list[float]] = {}  #: tick -> command in the answer to its STEP
        self.must_fail: set[int] = set()  #: requests that must be refused
        self._sounds: dict[int, tuple[float, int, int]] = {}  # request -> time, and tick and steps at that time
        self._losing = 0  # number of copies of the next STEP that are lost
        loss = world.stream(f"{name}'s loss")
        self._loss = loss if loss.random() < 0.5 else None  # of events, but never of three datagrams in succession
        self._lost = 0
        self._busy_until = 0.0
        self.punctual = "dawdle" not in self.habits  #: whether it answers each STEP that it receives in time

    def start(self, now: float) -> None:
        """Start the program, and plan what happens to it."""
        super().start(now)
        end = BEGIN_S + self.world.length
        for habit in self.habits:
            if habit == "dawdle":
                continue  # see _think
            self.world.clock.at(self.random.uniform(now + 0.5, end - 0.9), HABITS[habit].__get__(self))
        self.world.clock.at(now + 0.2, self._work)

    def begin(self, join: Join, now: float, address: Address | None = None) -> None:
        super().begin(join, now, address)
        self.must_fail, self._sounds = set(), {}

    def request(self, request: Any) -> int:
        """Send a request and return its number; 0 if the program has not joined."""
        if not self._joined() or self.session is None:
            return 0
        self._due.at(self.world.clock.now)
        return self.session.request(request)

    def _work(self, now: float) -> None:
        """Do what pilots do: command, ask, emit sound, and try what is not permitted."""
        if self.world.calm or self.gone:
            return
        r = self.random
        if self._joined() and self.session is not None and now >= self._deaf:
            how = r.random()
            if self.role is Role.PILOT and not self.lockstep_ticks and how < 0.4:
                self.session.actuate([0.1] * len(self.session.body.actuators))
                self._due.at(now)
            elif how < 0.6 and self.body in ("auv", "usv") and self.role is Role.PILOT:
                if number := self.request(items.Ping(25_000.0)):
                    self._sounds[number] = now, self.tick, self.steps
            elif how < 0.75 and self.role is Role.PILOT:
                other = r.choice([b for b in ("auv", "usv", "drifter", "wreck") if b != self.body])
                if self.body != "usv":  # which may command others
                    self.must_fail.add(self.request(items.Push(other, (1.0, 0.0, 0.0))))
            elif self.role is Role.PILOT and how < 0.9:
                self.must_fail.add(self.request(items.Fault("", "nonesuch", "lost")))
            elif self.role is Role.PILOT:
                self.must_fail.add(self.session._outbox.push((UNKNOWN, 1)))
                self._due.at(now)
        self.world.clock.at(now + r.uniform(0.01, 0.06), self._work)

    # -- what it receives ----------------------------------------------------------------------------

    def _receive(self, data: bytes, source: Address, now: float) -> None:
        if self._losing and len(data) > HEADER_BYTES and data[5] == Type.STEP and now >= self._deaf:
            self._losing -= 1
            self.world.note("lost step", self.name)
            return
        if len(data) > HEADER_BYTES and data[5] == Type.EVENTS and self._loss is not None and not self.world.calm:
            self._lost = self._lost + 1 if self._lost < 2 and self._loss.random() < 0.3 else 0
            if self._lost:  # a STEP waits for the events before it, and each repetition may be lost, too
                self._harmed = max(self._harmed, now)
                return
        super()._receive(data, source, now)

    def _think(self, now: float) -> float | None:
        if now < self._busy_until:
            return None
        if self.world.calm or "dawdle" not in self.habits or self.random.random() > 0.2:
            return self.random.uniform(0.005, self.thinks)
        self._busy_until = now + self.random.uniform(1.05, 1.4)  # longer than the server waits
        return self._busy_until - now

    def _answer(self, state: State, now: float) -> None:
        if self.gone or not self._joined() or self.session is None:
            return
        command = [1e-4 * state.tick] * len(self.session.body.actuators)
        self.said[state.tick] = command
        self.session.done(state.tick, command)
        if self.world.calm and not self.session._outbox:
            self.world.answers.setdefault(self.session.token, now)
        self._due.at(now)

    def _state(self, state: State, now: float) -> None:
        super()._state(state, now)
        assert self.book is not None
        if self.book.events.heard < len(self.book.events.said):
            return  # the answers may be among the events that are lost and repeated
        for number, (asked, tick, steps) in list(self._sounds.items()):
            if self.book.answers[number]:
                del self._sounds[number]
            elif now - max(asked, self._harmed) > 1.5 and (
                self.steps - steps > 4 if self.lockstep_ticks else state.tick - tick > 10
            ):
                raise Broken(f"a sound without an answer: {self.name} asked number {number} {now - asked:.2f} s ago")

    def _happened(self, event: Any) -> None:
        super()._happened(event)
        match event:
            case items.Answer(number, ok, text):
                if ok and number in self.must_fail:
                    raise Broken(f"without the right: {self.name} asked number {number} and was answered: {text}")
                if ok not in self.world.judge.executed.get(text, {ok}):
                    raise Broken(f"an answer that is not true: {self.name} received {event}")
            case items.Notice(time_ns, text) if text.startswith(MARK) and self.book is not None:
                welcome, book = self.welcome, self.world.books.get(self.session.token if self.session else 0)
                is_new = welcome is not None and welcome.resumed == Resumption.NEW and self.role is Role.PILOT
                if is_new and book is not None and time_ns < book.since * self._step_ns:
                    raise Broken(f"of a life before: {self.name}, since {book.since * self._step_ns} ns: {event}")

    # -- what happens to it --------------------------------------------------------------------------

    def ail(self, now: float) -> None:
        """Hear no more answers, and start again with the memory of the session."""
        for _ in range(3):
            self.request(items.Subscribe(None, 1, 0, 0, 0))
        self._harmed = self._deaf = now + 0.1
        self.world.clock.at(now + 0.11, self._revive)

    def _revive(self, now: float) -> None:
        if self._joined() and not self.gone and not self.world.calm:
            elsewhere = self.world.new_address() if self.random.random() < 0.5 else None
            self.begin(self.join(previous=self.last_token), now, elsewhere)

    def come_and_go(self, now: float) -> None:
        """Emit sound, leave, and come again at once, again and again."""
        if self.world.calm or self.gone:
            return
        session = self.session
        if self._joined() and session is not None and now - self.joined_at > 0.05:
            if self.role is Role.INSTRUMENT:
                for _ in range(3):
                    self.request(items.Ping(25_000.0))
            self.world.clock.at(now + 0.012, self._go_away)
            return
        self.world.clock.at(now + 0.02, self.come_and_go)

    def _go_away(self, now: float) -> None:
        if self.session is not None and self._joined():
            self.session.leave()
            self._due.at(now)
        self._come_back(now)

    def _come_back(self, now: float) -> None:
        if self.world.calm or self._quits or self.session is None:
            return
        if self.session.phase is Phase.CLOSED:
            self.begin(self.join(), now)
            self.world.clock.at(now + self.random.uniform(0.1, 0.5), self.come_and_go)
        else:
            self.world.clock.at(now + 0.002, self._come_back)

    def move(self, now: float) -> None:
        """Change the address."""
        if self._joined():
            self._harmed = now
            self._go(self.world.new_address())
            self._due.at(now)

    def vanish(self, now: float) -> None:
        """End without a farewell."""
        self.gone = True
        self.world.network.close(self.address)
        self._due.stop()

    def lose_steps(self, now: float) -> None:
        """Lose the first two copies of the next STEP."""
        self._losing = 2 if self._joined() and self.steps > 2 else 0


HABITS: dict[str, Callable[..., None]] = {
    "resume": Citizen.ail,
    "restless": Citizen.come_and_go,
    "move": Citizen.move,
    "vanish": Citizen.vanish,
    "lossy steps": Citizen.lose_steps,
}


class Judge:
    """What must hold, whatever the adversary does."""

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
        self._received: Counter[str] = Counter()  # bytes from each other host
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
        engine.command_executor._actuate = actuated  # type: ignore[method-assign, assignment]
        engine.watchdog.note_command = commanded  # type: ignore[method-assign]

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
                    raise Broken(f"moved to an address that proved nothing: {h.session.name} to {address}")
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
            raise Broken(f"somebody elsewhere changed a session: {what}")
        if session.seal is not None and data not in self._genuine:
            raise Broken(f"a forged datagram acted: {what}")
        if session.seal is not None and data in self._acted:
            raise Broken(f"a datagram acted twice: {what}")
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
                raise Broken(f"a session of another: {_whose(session)} continues {_whose(old)}")
            self._carried_over(old, session)

    def _carried_over(self, old: Session, session: Session) -> None:
        """Check that what the client of the earlier session has not heard is said to it again."""
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
        """Judge what does not happen."""
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
    """Return what a datagram that is dropped must not change in a session."""
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


class Adversary:
    """Sees all datagrams, states any source address, and has the key of another name (``*``), but no key of a victim.

    In scenes without keys, it does not state the address of a client whose token it knows, because such a datagram is
    the same as one of the client.
    """

    def __init__(self, world: Siege, r: random.Random) -> None:
        self.world, self.random = world, r
        self.address = world.new_address()
        self.injecting = False  #: whether the datagram that arrives is from the adversary
        self._seen: deque[tuple[bytes, Address]] = deque(maxlen=SEEN)
        self._joins: list[tuple[bytes, Address]] = []
        self._steals = r.choice((0.05, 0.3))
        self._sealed = world.scene.sealed

    def start(self, now: float) -> None:
        """Start the attack."""
        self.world.network.open(self.address, lambda data, source, at: None)
        self.world.clock.at(now + 0.3, self._act)

    def watch(self, data: bytes, source: Address, target: Address) -> None:
        """See a datagram of a client, and perhaps overtake it."""
        if self.world.calm or target != ADDRESS or source == self.address:
            return
        r, kind = self.random, data[5]
        if kind == Type.JOIN:
            self._joins.append((data, source))
            self._say(data, (source[0], source[1] + 20_000), 0.0)
            for _ in range(3):
                self._say(data, source, r.uniform(0.1, 1.5))
        elif kind == Type.PROOF:
            self._say(data, self.world.new_address(), 0.0)
        elif kind != Type.HELLO:
            self._seen.append((data, source))
            if r.random() < self._steals:
                self._say(data, self.address, 0.0)
            if r.random() < 0.15:
                self._say(self._changed(data), self._place(source), 0.1 * r.random())

    def _act(self, now: float) -> None:
        if self.world.calm:
            return
        r = self.random
        if self._seen:
            data, source = r.choice(self._seen)
            self._say(data, self._place(source), 0.0)
            data, source = self._seen[-1 - min(int(r.expovariate(0.2)), len(self._seen) - 1)]
            self._say(data, self._place(source), 0.0)
            self._say(self._plain(data), self._place(source), 0.0)
            data, source = self._seen[int(len(self._seen) * r.random() ** 3)]  # behind the replay window
            self._say(data, self._place(source), 0.0)
        self.world.clock.at(now + r.uniform(0.005, 0.03), self._act)

    def _place(self, source: Address) -> Address:
        return source if self._sealed and self.random.random() < 0.8 else self.address

    def _changed(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self.random.choice((1, 1, 3))):
            changed[self.random.randrange(6, len(changed))] ^= 1 << self.random.randrange(8)
        return bytes(changed)

    def _plain(self, data: bytes) -> bytes:
        """Return a datagram of the same session without a seal."""
        message = self.random.choice((Leave(), Ack(), Actuate((1.0,))))
        sequence = int.from_bytes(data[16:20], "little") + self.random.choice((1, 2, 1000))
        return codec.encode(message, int.from_bytes(data[8:16], "little"), min(sequence, 2**31), 0)

    def _say(self, data: bytes, source: Address, after: float) -> None:
        self.world.note("stolen")
        self.world.clock.at(self.world.clock.now + after, lambda now: self._arrive(data, source, now))

    def _arrive(self, data: bytes, source: Address, now: float) -> None:
        if self.world.calm:
            return
        self.injecting = True
        try:
            self.world.network.arrive(data, source, ADDRESS, now)
        finally:
            self.injecting = False

    # -- probes --------------------------------------------------------------------------------------

    def probe(self, now: float) -> None:
        """Try what only others may do: continue their sessions, and be answered with more than was said."""
        r = self.random
        self._say(codec.encode(Hello(r.getrandbits(63), b"")), (self.world.new_address()[0], 4000), 0.0)
        victims = [c for c in self.world.citizens if c.live and c.session is not None]
        if victims:
            victim = r.choice(victims)
            assert victim.session is not None
            key, role = self.world.key(victim.body), victim.role
            if self._sealed and r.random() < 0.5:
                key = scenes.KEYS["*"]
            else:
                role = Role.LISTENER if victim.role is Role.PILOT else Role.PILOT
            Intruder(self.world, Join(name=victim.body, role=role, previous=victim.session.token), key, r)
        if not self.world.calm:
            self.world.clock.at(now + r.uniform(0.1, 0.4), self.probe)

    def flood(self, now: float) -> None:
        """Say more HELLOs than a host may, then wait and say another."""
        rate = self.world.scene.loaded.config.network.datagram_rate
        place = self.world.new_address()
        for _ in range(int(rate) + 30):
            self._say(self._hello(), place, 0.0)

        def full(at: float) -> None:
            if self.world.calm:
                return
            answered = self.world.judge.challenges[place[0]]
            if answered > rate + 5:
                raise Broken(f"no limit: {answered} of {rate + 30:.0f} HELLOs of one host were answered at once")
            self._say(self._hello(), place, 0.0)
            self.world.clock.at(at + 0.05, lambda later: again(answered))

        def again(answered: int) -> None:
            if not self.world.calm and self.world.judge.challenges[place[0]] == answered:
                raise Broken("never heard again: a host that was quiet for a second is not answered")

        self.world.clock.at(now + 1.2, full)

    def _hello(self) -> bytes:
        return codec.encode(Hello(self.random.getrandbits(63), bytes(MIN_HELLO - HEADER_BYTES)))


class Intruder:
    """A client that tries to continue the session of another."""

    def __init__(self, world: Siege, join: Join, key: bytes | None, r: random.Random) -> None:
        self.world = world
        self.address = world.new_address()
        self.session = ClientSession(join, key, r)
        world.intruders.add(self.address)
        world.network.open(self.address, self._receive)
        self._turn(world.clock.now)
        world.note("intruder", join.name, int(join.role))

    def _receive(self, data: bytes, source: Address, now: float) -> None:
        self.session.receive(data, now)
        self._turn(now)

    def _turn(self, now: float) -> None:
        for data in self.session.outgoing(now):
            self.world.network.send(data, self.address, ADDRESS)


class Siege(World):
    """A world with an adversary; see the module."""

    scenes = scenes.BESIEGED
    possible_plagues: tuple[str, ...] = ()
    clients: list[Client]

    def __init__(self, seed: int, without: frozenset[str] = frozenset()) -> None:
        self.citizens: list[Citizen] = []
        self.intruders: set[Address] = set()  #: addresses of clients that have no session of their own
        super().__init__(seed, without | {"thief", "stall", "rekeying"})
        r = self.stream("siege")
        self.loud = "loud" not in without and "restless" in self.themes  # events that reach who came later
        self.length = r.choice((2.5, 3.5))
        self.server.slow = r.choice((0.01, 0.03))
        self.commander.calm = True
        self.suspends = "suspend" not in without and self.stream("suspend").random() < SUSPENDS
        self.adversary = Adversary(self, self.stream("adversary"))
        self.judge = Judge(self)
        self.network.tap = self._tap

    def stream(self, of: str) -> random.Random:
        """Return random numbers for one part of the siege."""
        return random.Random(f"{self.seed} siege {of}")

    def _weather(self) -> Weather:
        return Weather(delay=self.stream("delay").choice((0.001, 0.004, 0.01)))

    def _populate(self, r: random.Random) -> list[Client]:
        self.themes = [t for t in r.sample(THEMES, 4) if f"theme {t}" not in self.without]
        on = set(self.themes)

        def those(*habits: str) -> list[str]:
            return [h for h in habits if h in on]

        ticks = r.choice((0, 1, 2)) if not on & {"dawdle", "lossy steps"} else 1
        found = [
            Citizen(self, "auv-pilot", Role.PILOT, "auv", ticks, those("resume", "lossy steps", "move")),
            Citizen(self, "usv-pilot", Role.PILOT, "usv", 0, those("restless") or those("resume")),
        ]
        if "restless" in on:
            found += [
                Citizen(self, "comes-and-goes", Role.PILOT, "newby", 0, ["restless"]),
                Citizen(self, "sounder", Role.INSTRUMENT, "auv", 0, ["restless"]),
            ]
        if "vanish" in on:
            found.append(Citizen(self, "vanisher", Role.PILOT, "late-one", 0, ["vanish"]))
        if "dawdle" in on:
            found.append(Citizen(self, "dawdler", Role.PILOT, "third", 1, ["dawdle"]))
            found[0].thinks = 0.1  # so that a late answer often arrives while another one is awaited
        if "move" in on:
            found.append(Citizen(self, "walker", Role.PILOT, "drifter", 0, ["move", "move"]))
        self.citizens = [c for c in found if c.name not in self.without]
        return self.citizens  # type: ignore[return-value]  # they do what clients do, except for their acts

    @property
    def parts(self) -> list[str]:
        """Return the parts that can be omitted."""
        names = [c.name for c in self.citizens] + [f"theme {t}" for t in self.themes]
        rare = ["suspend"] if self.suspends else []
        return [p for p in (*names, *rare, "adversary", "loud") if p not in self.without]

    def client_of(self, token: int) -> Citizen | None:
        """Return the client that has this session now."""
        return next((c for c in self.citizens if c.session is not None and c.session.token == token), None)

    def front_begins(self, front: Front) -> None:
        super().front_begins(front)
        receive = front.sessions.receive

        def judged(data: bytes, address: Address, now: float) -> Any:
            return self.judge.receives(front, receive, data, address, now, self.adversary.injecting)

        front.sessions.receive = judged  # type: ignore[method-assign]  # to see what goes in and comes out

    def _tap(self, data: bytes, source: Address, target: Address) -> None:
        self.judge.on_the_way(data, source, target)
        if "adversary" not in self.without:
            self.adversary.watch(data, source, target)

    def turned(self, now: float) -> None:
        super().turned(now)
        self._mark()

    def _mark(self) -> None:
        """Let the engine say something about each newcomer, so that each row has notices on their way."""
        engine = self.server.engine
        for row, occupant in engine.sim.occupants.items():
            if occupant.name in ("newby", "usv") and not self.calm and not engine.is_over:
                engine.events.emit(
                    messages.NoticeEvent(engine.sim.time_ns, row, occupant.name, MARK, engine.run.generation(row))
                )

    def _until(self, end: float) -> None:
        while self.clock.step(end):
            invariants.hold(self)
            if self.clock.steps % invariants.EVERY == 0:
                self.judge.hold()

    def _live(self) -> None:
        now = self.clock.now
        self.server.start(now)
        sizes = self.server.sizes() if self.seed % 8 == 0 else {}
        for emulator in self.emulators:
            emulator.start(now)
        self.commander.start(now)
        for k, citizen in enumerate(self.citizens):
            self.clock.at(now + 0.02 * k, citizen.start)
        if "adversary" not in self.without:
            self.adversary.start(now)
            if "probe" in self.themes:
                self.clock.at(now + 0.6, self.adversary.probe)
            if "flood" in self.themes:
                self.clock.at(now + 0.4, self.adversary.flood)
        if self.suspends:
            self.clock.at(now + self.stream("suspend at").uniform(0.3, 2.0), self._suspend)
        if "frozen emulator" in self.themes:
            self.clock.at(now + 0.5, self._freeze)
        self._until(self.clock.now + self.length)
        if self.suspends:
            self._until(self.clock.now + 1.0)
        self._become_calm()
        self._until(self.clock.now + CALM_S)
        before = invariants.said(self)
        self._until(self.clock.now + SETTLED_S)
        invariants.at_rest(self, before)
        self._leave(sizes)
        self.witness.read_logs()

    def _suspend(self, now: float) -> None:
        """Suspend the machine: no process of it runs for a while. Nobody may be removed for that."""
        seconds = self.stream("suspended for").choice((0.4, 2.0, 8.0, 3600.0))
        self.note("suspend", seconds)
        self.clock.jump(seconds)
        self.server.stood = self.clock.now
        for citizen in self.citizens:
            if citizen.session is not None:
                citizen.session.last_heard += seconds
        for token in self.judge.life:
            self.judge.life[token] += seconds

    def _freeze(self, now: float) -> None:
        for emulator in self.emulators:
            emulator.state = "frozen"
