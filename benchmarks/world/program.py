"""A program with consecutive sessions: it joins, receives, answers its steps, and checks all data that it receives."""

from __future__ import annotations

import math
import random
from collections import deque
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from benchmarks.world.clock import Timer
from benchmarks.world.ledger import Book
from benchmarks.world.network import Address
from benchmarks.world.report import Broken
from benchmarks.world.scenes import NEWCOMERS
from benchmarks.world.server import ADDRESS
from wavesim_sdk.wire import items
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.messages import Join, Refusal, Resumption, Role, Welcome
from wavesim_sdk.wire.schema import Malformed
from wavesim_sdk.wire.state import State

if TYPE_CHECKING:
    from benchmarks.world.world import World

KEPT = 30  #: number of own datagrams that are stored for repetition
REFUSED_AGAIN_S = 0.4
LOST_S = 0.7  #: a server that is silent for longer than its own time limit has been replaced
LEAST_S = 0.002  #: minimum time between two turns of a program


class Program:
    """A program. :class:`~benchmarks.world.clients.Client` adds its random actions."""

    thinks: float  #: maximum wall time for a step in s
    lockstep_ticks: int

    def __init__(self, world: World, name: str, r: random.Random, role: Role, body: str) -> None:
        self.world, self.name, self.random, self.role, self.body = world, name, r, role, body
        self.address: Address = world.new_address()
        self.session: ClientSession | None = None
        self._key: bytes | None = None
        self.book: Book | None = None
        self.welcome: Welcome | None = None
        self.last_token = 0
        self.steps = self.states = self.tick = 0
        self.joined_at = self.heard_at = self.state_at = 0.0
        self.gone = False  #: whether it has ended for good, without a farewell
        self._quits = False
        self._deaf = self._mute = 0.0  # until then it reads nothing, sends nothing
        self._harmed = 0.0  # until then something of its own was wrong
        self._spoke = math.inf  # when it said something first at this address
        self._period_ns = 0.0
        self._own: deque[bytes] = deque(maxlen=KEPT)
        self._due = Timer(world.clock, self._turn)
        self.listens = 0  #: whether it receives sound regardless of the random choice
        self._step_ns = round(world.scene.loaded.config.time.step * 1e9)

    # -- sessions --------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Start the program."""
        self.begin(self.join(), now)

    def join(self, **changed: Any) -> Join:
        """Return the JOIN that the program sends."""
        r = self.random
        model = NEWCOMERS.get(self.body, "")
        wanted: dict[str, Any] = {
            "name": self.body,
            "role": self.role,
            "model": model,
            "position": (r.uniform(-50, 50), r.uniform(-50, 50), r.uniform(1, 30)),
            "lockstep_ns": self.lockstep_ticks * self._step_ns,
            "state_period_ns": r.choice((0, 100_000_000, 300_000_000)),
            "acoustics": max(r.randrange(2), self.listens),
            "effort": 0,
            "others": r.randrange(2),
        }
        return Join(**{**wanted, **changed})

    def begin(self, join: Join, now: float, address: Address | None = None) -> None:
        """Start another session in place of the current one."""
        if address is not None or self.session is None:
            self._go(self.address if address is None else address)
        self._key = self.world.key(join.name)
        self.session = ClientSession(join, self._key, self.random)
        self.book = Book(self.name)
        self.book.client_side(self.session)
        self.welcome, self.joined_at, self.heard_at, self._period_ns = None, now, now, 0.0
        self.world.note("join", self.name, join.name, Role(join.role).name, join.previous and "again")
        self._due.at(now)

    def has_new_key(self, now: float) -> None:
        """Join with the new key if a join with an earlier key is under way, which the server may no longer decrypt."""
        session = self.session
        if session is None or self.gone or self._quits or session.phase not in (Phase.HELLO, Phase.JOINING):
            return
        if self._key != self.world.key(session.join.name, newest=True):
            self.begin(self.join(), now)

    def _go(self, address: Address) -> None:
        """Use an address from now on."""
        self.world.network.close(self.address)
        self.address, self._spoke = address, math.inf
        self.world.network.open(address, self._receive)

    def _was_ended_elsewhere(self) -> bool:
        """Return whether the session was ended, other than for silence, while the server had its previous address. The
        BYE was sent there, and the new address receives none.
        """
        front = self.world.server.front
        if front is None or self.session is None:
            return False
        over = front.sessions._recently_ended._by_token.get(self.session.token)
        return over is not None and over.session.address != self.address and "no activity" not in over.text

    def _well(self, now: float) -> bool:
        """Return whether the program was served and has sent what it should."""
        return (
            self.world.clean and self.honest and now - self._harmed > LOST_S + 0.6 and not self._was_ended_elsewhere()
        )

    @property
    def live(self) -> bool:
        """Return whether the program considers its session to be alive."""
        return not self.gone and self.session is not None and self.welcome is not None and self._joined()

    def _joined(self) -> bool:
        return self.session is not None and self.session.phase is Phase.JOINED

    @property
    def period(self) -> float:
        """Return the wall time between states that the program requested last."""
        return self._period_ns * 1e-9

    @property
    def honest(self) -> bool:
        """Return whether the guarantees of the protocol apply to this session."""
        return self.book is not None and not self.book.liar

    def lie(self) -> None:
        """From now on, no guarantee applies to this session."""
        if self.book is not None:
            self.book.liar = True
            known = self.world.books.get(self.session.token) if self.session is not None else None
            if known is not None:
                known.liar = True

    # -- datagrams -------------------------------------------------------------------------------------

    def _receive(self, data: bytes, source: Address, now: float) -> None:
        if self.gone or now < self._deaf or self.session is None or source != ADDRESS:
            return
        before = self.session.token
        for event in self.session.receive(data, now):
            self._on(event, now)
        self.heard_at = self.session.last_heard
        if self.session.token != before:
            self.world.token(self)
        self._due.at(now)

    def _turn(self, now: float) -> None:
        session = self.session
        if session is None or self.gone:
            return
        if now < self._mute:
            self._due.at(self._mute)
            return
        if self.live and now - session.last_heard > LOST_S:  # the server does not know it any more
            self.world.note("lost", self.name)
            if self._well(now) and now - self.world.server.stood > LOST_S + 0.6:
                raise Broken(f"lost: {self.name} heard nothing for {LOST_S} s, and nothing was wrong")
            self.begin(self.join(), now)
            return
        for data in session.outgoing(now):
            self._send(data)
        timer = session.next_timer()
        if timer is not None:
            self._due.at(max(timer, now + LEAST_S))

    def _send(self, data: bytes) -> None:
        self._own.append(data)
        self._spoke = min(self._spoke, self.world.clock.now)
        self.world.network.send(data, self.address, ADDRESS)

    def _on(self, event: Any, now: float) -> None:
        match event:
            case Welcome():
                self._welcomed(event, now)
            case State():
                self._state(event, now)
            case JoinRefused(code, text):
                self.world.note("refused", self.name, _named(Refusal, code), text)
                if code == Refusal.INTERNAL and self.honest:
                    raise Broken(f"a join failed inside the server: {text}")
                if self.honest and code == Refusal.EXPIRED:
                    self.last_token = 0
                self.world.clock.at(now + REFUSED_AGAIN_S, self._again)
            case SessionClosed(text):
                self.world.note("ended", self.name, text)
                if "failed" in text:
                    raise Broken(f"a session ended by a failure of the server: {self.name}: {text}")
                if "no activity" in text and self._well(now):
                    raise Broken(f"wrongly considered silent: {self.name}, which spoke")
                self.world.clock.at(now + REFUSED_AGAIN_S, self._again)
            case _:
                self.world.note(type(event).__name__)
                self._happened(event)

    def _happened(self, event: Any) -> None:
        """Check that an event about a body that joined with this session is from after the join."""
        welcome = self.welcome
        if welcome is None or self.role is not Role.PILOT or welcome.resumed != Resumption.NEW or not self.honest:
            return
        if (
            isinstance(event, items.Reception) and len(self.world.server.disks) == 1
        ):  # else it may have come to a body that was there
            book = self.world.books.get(self.session.token) if self.session is not None else None
            if book is None:
                return
            since = book.since * self._step_ns
            if event.reception_ns < since:
                raise Broken(f"data of a former body: {self.name}, in row {welcome.id} since {since} ns: {event}")

    def _again(self, now: float) -> None:
        if self._quits or self.gone or self.session is None:
            return
        if self.session.phase is Phase.CLOSED:
            self.begin(self.join(), now)

    def _welcomed(self, welcome: Welcome, now: float) -> None:
        assert self.session is not None
        self.welcome = welcome
        self.last_token = self.session.ticket
        self._period_ns = max(self._period_ns, welcome.state_period_ns)  # it may have asked for another before
        self.world.note("welcome", self.name, welcome.id, _named(Resumption, welcome.resumed))
        if self.honest:
            self.world.check_welcome(self, welcome)

    def _state(self, state: State, now: float) -> None:
        self.states += 1
        self.state_at, self.tick = now, state.tick
        self.world.note("step" if state.step else "state", self.name, state.tick)
        if self.honest:
            self.world.check_state(self, state)
        if state.step:
            self.steps += 1
            think = self._think(now)
            if think is not None:
                self.world.clock.at(now + think, lambda at: self._answer(state, at))

    def _think(self, now: float) -> float | None:
        """Return the time until the answer to a step, or None if the program does not answer it."""
        return self.random.uniform(0.01, self.thinks)

    def _answer(self, state: State, now: float) -> None:
        if self.gone or not self._joined() or self.session is None:
            return
        r = self.random
        count = len(self.session.body.actuators)
        if r.random() < 0.05:
            self._nonsense(state.tick, count)
        command = r.choice((None, [1.0] * count, [None] * count, [0.5], []))
        estimate = r.choice((None, [float(k) for k in range(10)], [None] * 10))
        self.session.done(state.tick, command, estimate)
        if self.world.calm and not self.session._outbox:  # else the server waits for its requests
            self.world.answers.setdefault(self.session.token, now)
        self._due.at(now)

    def _nonsense(self, tick: int, count: int) -> None:
        """Check that the program itself is informed about data that cannot be sent, and that nothing of it is sent or
        awaited.
        """
        assert self.session is not None
        for bad in ([float("nan")], [1e300], ["1"], [[1.0]], [0.0] * 100):
            try:
                self.session.done(tick, bad, None)  # type: ignore[arg-type]  # that is the point
            except Malformed:
                continue
            raise Broken(f"a program's mistake was not reported: {bad}")

    def quit(self) -> None:
        """Leave in order at the end of the world."""
        self._quits = True
        if self.session is not None and not self.gone:
            self.session.leave()
            self._due.at(self.world.clock.now)

    def wake(self) -> None:
        """Recover: read and send as usual."""
        self._deaf = self._mute = 0.0
        self._due.at(self.world.clock.now)


def _named(codes: type[IntEnum], code: int) -> str:
    """Return the name of a code. Without a seal, the code may have been changed on its way."""
    return codes(code).name if code in list(codes) else str(code)
