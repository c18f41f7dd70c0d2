"""Clients: pilots, instruments, listeners, observers. Each performs normal actions, and some forbidden ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.world.absurd import packed
from benchmarks.world.clock import Timer
from benchmarks.world.program import Program
from benchmarks.world.server import ADDRESS
from wavesim_sdk.wire import codec, items, seal
from wavesim_sdk.wire.items import Request
from wavesim_sdk.wire.messages import MAGIC, MESSAGES, VERSION, Join, Role, Type
from wavesim_sdk.wire.schema import schema_of

if TYPE_CHECKING:
    from benchmarks.world.world import World

#: requests that a client may send, except its farewell, after which it receives nothing
SAID = [t for t, (from_client, inside, _) in MESSAGES.items() if from_client and inside and t is not Type.LEAVE]


class Client(Program):
    """A program with random actions."""

    def __init__(self, world: World, name: str, r: random.Random, role: Role, body: str) -> None:
        super().__init__(world, name, r, role, body)
        self._next = Timer(world.clock, self._act)
        self.pace = r.choice((0.02, 0.08))
        acts = ACTS if role is not Role.OBSERVER else OBSERVER_ACTS
        usual = [a for a in acts if a not in UNUSUAL]
        rare = [a for a in acts if a in UNUSUAL]
        self.habits = r.sample(usual, r.randint(1, len(usual))) + r.sample(rare, r.choice((0, 1, 2, len(rare))))
        self.habits = [h for h in self.habits if f"{name}.{h}" not in world.without]
        self.favourite = r.choice(self.habits) if self.habits else ""
        self.thinks = r.choice((0.03, 0.1, 0.4))  #: maximum wall time for a step in s
        self.lockstep_ticks = r.choice((0, 1, 2, 5)) if role is Role.PILOT else 0

    def start(self, now: float) -> None:
        """Start the program."""
        super().start(now)
        self._next.at(now + 0.1 * self.random.random())

    def _act(self, now: float) -> None:
        if self.world.calm or self.gone:
            return
        if self.habits and self.session is not None:
            name = self.favourite if self.random.random() < 0.4 else self.random.choice(self.habits)
            self.world.note(f"act {name}", self.name)
            ACTS_ALL[name](self, now)
            self._due.at(now)
        self._next.at(now + self.random.expovariate(1.0 / self.pace))

    def actuate(self, now: float) -> None:
        if self._joined() and self.session is not None:
            count = len(self.session.body.actuators)
            self.session.actuate([self.random.choice((None, 0.0, 1.0, -1e9, 1e9, 1e-300)) for _ in range(count)])

    def estimate(self, now: float) -> None:
        if self._joined() and self.session is not None:
            self.session.estimate([self.random.choice((None, 1.0, -1e308)) for _ in range(10)])

    def ask(self, now: float) -> None:
        """Send a random valid request."""
        r = self.random
        self.request(
            r.choice(
                (
                    items.Ping(r.choice((25_000.0, 26_000.0, 1.0))),
                    items.Send(r.randrange(4), r.randbytes(r.choice((0, 5, 64, 65)))),
                    items.Range(r.randrange(4)),
                    items.Subscribe(None, r.randrange(2), r.randrange(2), r.randrange(2), r.choice((0, 100_000_000))),
                    items.Push("", (r.uniform(-50, 50), 0.0, 0.0)),
                    items.Pose("", position=(r.uniform(-20, 20), 0.0, 5.0)),
                    items.Fault("", r.choice(self.world.scene.words)[:31], r.choice(("lost", "none"))),
                    items.Weather(current_north=r.uniform(-1, 1)),
                )
            )
        )

    def request(self, request: Any) -> None:
        """Send this request if the program has joined."""
        if isinstance(request, items.Subscribe):
            self._period_ns = max(self._period_ns, request.state_period_ns)
        if self._joined() and self.session is not None:
            try:
                self.session.request(request)
            except OverflowError:
                self.world.note("overflow", self.name)

    def ask_absurd(self, now: float, kind: int | None = None) -> None:
        """Send a request of invalid values, some of which are malformed. It is sent like any other request."""
        if self._joined() and self.session is not None:
            self._period_ns = math.inf  # nobody knows what it asked for
            for _ in range(self.random.choice((1, 1, 3, 20))):
                item = self.world.absurd(self.random).item("requests", self.random.choice((0.0, 0.0, 0.3)), kind)
                try:
                    self.session._outbox.push(item)
                except (OverflowError, ValueError, TypeError):  # too many, too long, no Unicode
                    return

    def observe(self, now: float) -> None:
        r = self.random
        if r.random() < 0.3:
            self.ask_absurd(now, Request.OBSERVE)
            return
        self.request(
            items.Observe(
                r.choice((0, 1, 50_000_000, 2**62)),
                r.choice((None, (), (0, 2), tuple(range(40)))),
                r.choice((None, (0.0, 0.0, 0.0))),
                r.choice((0.0, 100.0, 1e12)),
                r.randrange(2),
            )
        )

    def say_absurd(self, now: float) -> None:
        """Send a datagram of invalid values, past everything that the program's session would send."""
        session = self.session
        if session is None or not self._joined():
            return
        self.lie()
        r = self.random
        for _ in range(r.choice((1, 12))):
            kind = r.choice((*SAID, Type.ACTUATE, Type.DONE, Type.DONE) if self.role is Role.PILOT else SAID)
            known = {"tick": self.tick, "last_request": 0} if r.random() < 0.7 else {}
            values = self.world.absurd(r).record(
                schema_of(MESSAGES[kind][2]).describe(), r.choice((0.0, 0.1, 0.5)), known
            )
            self.say(kind, packed(values))

    def say(self, kind: Type, body: bytes, ack: int | None = None) -> None:
        """Send any datagram body, sealed as the session requires."""
        session = self.session
        assert session is not None
        session._sequence += 1
        ack = session._inbox.received if ack is None else ack
        flags = 0 if session._seal is None else codec.SEALED_FLAG
        header = codec._HEADER.pack(MAGIC, VERSION, kind, flags, session.token, session._sequence, ack)
        data = header + (body if session._seal is None else session._seal.seal(header, body, session._sequence))
        self._send(data)

    def join_absurd(self, now: float) -> None:
        """Continue the session with a JOIN that is invalid or altered."""
        session = self.session
        if session is None or not session._cookie:
            return
        self.lie()  # its session may go on without it
        for _ in range(self.random.choice((1, 4))):
            self._send(self._absurd_join(session._cookie, session.token))

    def _absurd_join(self, cookie: bytes, token: int) -> bytes:
        r = self.random
        absurd = self.world.absurd(r)
        known: dict[str, Any] = {"cookie": cookie, "nonce": r.getrandbits(63)}
        if r.random() < 0.6:
            known |= {"previous": r.choice((token, self.last_token, 0, r.getrandbits(63)))}
        if r.random() < 0.6:
            known |= {"name": self.body, "role": int(self.role)}
        body = packed(absurd.record(schema_of(Join).describe(), r.choice((0.0, 0.1, 0.2)), known))
        key = self.world.key(self.body)
        header = codec._HEADER.pack(
            MAGIC, VERSION, Type.JOIN, int(key is not None), 0 if key is None else seal.key_id(key), 1, 0
        )
        if key is not None:
            public = seal.EphemeralKey(r.randbytes(32)).public
            body = seal.HandshakeSeal(key, seal.JOIN, r.randbytes(seal.NONCE_BYTES), public).seal(header, body, 1)
        return header + body

    def mum(self, now: float) -> None:
        """From now on, acknowledge nothing and send many requests."""
        session = self.session
        if session is None or not self._joined():
            return
        self.lie()

        def unacknowledged(message: Any) -> bytes:
            session._sequence += 1
            return codec.encode(message, session.token, session._sequence, 0, session._seal)

        session._encode = unacknowledged  # type: ignore[method-assign]  # no program of ours does so
        self._pester(now)
        self.world.clock.at(now + 0.15, self._pester)

    def _pester(self, now: float) -> None:
        for _ in range(200):
            self.request(items.Ping(25_000.0))
        self._due.at(now)

    def repeat(self, now: float) -> None:
        """Send old datagrams again."""
        for data in self.random.sample(list(self._own), min(len(self._own), 5)):
            self.world.network.send(data, self.address, ADDRESS)

    def deaf(self, now: float) -> None:
        """Read nothing for a while, but continue to send."""
        self._harmed = self._deaf = now + self.random.uniform(0.1, 1.5)

    def freeze(self, now: float) -> None:
        """Do nothing for a while."""
        self._harmed = self._deaf = self._mute = now + self.random.uniform(0.1, 1.5)

    def move(self, now: float) -> None:
        """Give the client another address. If it did not stay at the previous address until the server validated it, it
        proved nothing there and may be considered silent.
        """
        weather = self.world.network.weather
        if self._spoke <= now < self._spoke + 2.0 * (weather.delay + weather.jitter):
            self._harmed = max(self._harmed, now)
        self._go(self.world.new_address())

    def vanish(self, now: float) -> None:
        """Kill the program without a farewell."""
        self.gone = True
        self.world.network.close(self.address)
        self._due.stop()

    def leave(self, now: float) -> None:
        """Leave in order, and join again as a new client."""
        if self.session is not None:
            self.session.leave()
            soon = 0.01 if self.world.loud else 1.0  # its row may be another's before the engine has heard of it
            self.world.clock.at(now + soon * self.random.random(), self._again)

    def resume(self, now: float) -> None:
        """Kill the program and start it again with its memory, and perhaps other settings."""
        r = self.random
        changed: dict[str, Any] = {"previous": self.last_token}
        if r.random() < 0.3:
            changed["lockstep_ns"] = self._step_ns * r.choice((0, 1, 3)) + r.choice((0, 0, 1))
        if self.role is not Role.PILOT:
            changed.pop("lockstep_ns", None)
        if r.random() < 0.2:
            changed["sensors"] = r.choice(((), ("ctd",), ("nonesuch",)))
        if r.random() < 0.1:
            changed["model"] = "remus100"
        self.begin(self.join(**changed), now, self.world.new_address() if r.random() < 0.7 else None)

    def forget(self, now: float) -> None:
        """Start the program again without its memory, while its old session is still alive."""
        self.begin(self.join(), now, self.world.new_address())


Act = Callable[[Client, float], None]
ACTS_ALL: dict[str, Act] = {
    "actuate": Client.actuate,
    "estimate": Client.estimate,
    "ask": Client.ask,
    "ask_absurd": Client.ask_absurd,
    "observe": Client.observe,
    "say_absurd": Client.say_absurd,
    "join_absurd": Client.join_absurd,
    "repeat": Client.repeat,
    "deaf": Client.deaf,
    "freeze": Client.freeze,
    "move": Client.move,
    "vanish": Client.vanish,
    "leave": Client.leave,
    "resume": Client.resume,
    "forget": Client.forget,
    "mum": Client.mum,
}
ACTS = tuple(ACTS_ALL)
OBSERVER_ACTS = (
    "observe",
    "ask",
    "ask_absurd",
    "say_absurd",
    "join_absurd",
    "repeat",
    "deaf",
    "move",
    "vanish",
    "resume",
    "mum",
)
UNUSUAL = frozenset(
    {"say_absurd", "join_absurd", "vanish", "freeze", "deaf", "forget", "leave", "resume", "move", "repeat", "mum"}
)
