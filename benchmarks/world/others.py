"""Those beside the clients: the commander's queue, and strangers on the network."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from benchmarks.world.absurd import packed
from benchmarks.world.clock import Timer
from benchmarks.world.network import Address
from benchmarks.world.server import ADDRESS
from wavesim_sdk import commander, commands
from wavesim_sdk.commands import TIMER_VERBS
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.messages import MAGIC, MESSAGES, MIN_HELLO, VERSION, Hello, Type
from wavesim_sdk.wire.schema import schema_of

if TYPE_CHECKING:
    from benchmarks.world.world import World


VERBS = {verb: v for verb, v in commands.VERBS.items() if verb != "mission"}  # as in world.LEFT_OUT


class Commander:
    """Whoever writes into the commander's queue."""

    def __init__(self, world: World, r: random.Random) -> None:
        self.world, self.random = world, r
        self._next = Timer(world.clock, self._act)
        self._id = 0
        self.waiting: dict[int, str] = {}
        self.pace = r.choice((0.1, 0.5))
        self.calm = r.random() < 0.4  #: starts time and is silent from then on
        self.shutdown = r.random() < 0.05

    def start(self, now: float) -> None:
        """Time shall run."""
        self.world.clock.at(now + 0.1, lambda at: self.send("start"))
        if not self.calm:
            self._next.at(now + 0.2)

    def send(self, verb: str, **arguments: Any) -> None:
        """One command."""
        self._id += 1
        message = {"verb": verb, "reply": "/wavesim.world.reply.1", "id": self._id, **arguments}
        try:
            data = json.dumps(message).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError):
            return  # no JSON can say it
        self._take(data)

    def _take(self, data: bytes) -> None:
        command = commander.parse(data[: commander.COMMAND_BYTES])
        if command is None:
            self.world.note("bad command")
            return
        verb = str(command["verb"])
        if verb == "shutdown" and not self.shutdown:
            return
        self.world.note("command", verb[:40])
        self.waiting[command["id"]] = verb
        if not self.world.server.command(command, self.world.clock.now):
            del self.waiting[command["id"]]  # nobody is there

    def replied(self, message: dict[str, Any], ok: bool) -> bool:
        """A reply came; whether somebody waited for it."""
        self.world.note("reply", message["verb"][:40], ok)
        return self.waiting.pop(message["id"], None) is not None

    def _act(self, now: float) -> None:
        if self.world.calm:
            return
        r = self.random
        how = r.random()
        if how < 0.1:
            self._take(
                r.choice(
                    (
                        b"",
                        b"[]",
                        b"{}",
                        b'{"verb": "start"}',
                        b"[" * 900,
                        r.randbytes(50),
                        b"null",
                        b'{"verb":1,"id":2}',
                    )
                )
            )
        elif how < 0.5:
            verb = r.choice((*TIMER_VERBS, "status"))
            self.send(verb, **({"ticks": r.choice((1, 3, 20))} if verb == "step" else {"factor": r.choice((0, 1, 5))}))
        else:
            self._absurd()
        self._next.at(now + r.expovariate(1.0 / self.pace))

    def _absurd(self) -> None:
        r = self.random
        absurd = self.world.absurd(r)
        verb = r.choice((*VERBS, *TIMER_VERBS, "nonesuch", ""))
        record = VERBS[verb][0] if verb in VERBS else r.choice([v[0] for v in VERBS.values()])
        bad = r.choice((0.0, 0.2))
        arguments = {
            i["name"]: absurd.bad(i) if r.random() < bad else absurd.good(i) for i in schema_of(record).describe()
        }
        if "body" in arguments and r.random() < 0.7:
            arguments["body"] = r.choice(self.world.scene.bodies)
        if r.random() < 0.2:
            arguments[r.choice(("ticks", "factor", "nonesuch"))] = absurd.nonsense()
        self.send(verb, **arguments)


class Stranger:
    """Somebody on the network who has no session, and sees those of others."""

    def __init__(self, world: World, r: random.Random) -> None:
        self.world, self.random = world, r
        self.address = world.new_address()
        self._next = Timer(world.clock, self._act)
        self.pace = r.choice((0.04, 0.1))
        self._cookie = b""

    def start(self, now: float) -> None:
        """Begin."""
        self.world.network.open(self.address, self._receive)
        self._next.at(now)

    def _receive(self, data: bytes, source: Address, now: float) -> None:
        """It keeps the cookie, and forgets all else."""
        try:
            header = codec.decode_header(data, from_client=False)
            if header.type is Type.CHALLENGE:
                self._cookie = codec.decode_body(data, header).cookie
        except codec.Dropped:
            pass

    def _act(self, now: float) -> None:
        if self.world.calm:
            return
        r = self.random
        how = r.choice((self._garbage, self._old_version, self._bomb, self._token, self._join, self._flood))
        how()
        self._next.at(now + r.expovariate(1.0 / self.pace))

    def _send(self, data: bytes) -> None:
        self.world.note("strange")
        self.world.network.send(data, self.address, ADDRESS)

    def _header(self, kind: int, version: int = VERSION, flags: int = 0, token: int = 0) -> bytes:
        return codec._HEADER.pack(MAGIC, version, kind, flags, token, self.random.getrandbits(32), 0)

    def _garbage(self) -> None:
        self._send(self.random.randbytes(self.random.choice((0, 1, 23, 24, 100, 1200, 1201))))

    def _old_version(self) -> None:
        self._send(self._header(Type.HELLO, version=1) + packed([7, bytes(self.random.choice((0, 40)))]))

    def _bomb(self) -> None:
        kind = self.random.choice((Type.JOIN, Type.HELLO))
        body = self.random.choice(
            (b"\x91" * 1100, b"\xdd\xff\xff\xff\xff", b"\x9f" + b"\xdf\xff\xff\xff\xff", b"\xc7\xff\x01")
        )
        self._send(self._header(kind, flags=self.random.randrange(2)) + body)

    def _token(self) -> None:
        """In the name of somebody's session, from elsewhere."""
        tokens = sorted(self.world.books)
        token = self.random.choice(tokens) if tokens else 5
        kind = self.random.choice([t for t, (mine, inside, _) in MESSAGES.items() if mine and inside])
        values = self.world.absurd(self.random).record(schema_of(MESSAGES[kind][2]).describe(), 0.0)
        self._send(self._header(kind, flags=self.random.randrange(2), token=token) + packed(values))

    def _join(self) -> None:
        known = {"cookie": self._cookie, "nonce": self.random.getrandbits(63)} if self.random.random() < 0.7 else {}
        values = self.world.absurd(self.random).record(schema_of(MESSAGES[Type.JOIN][2]).describe(), 0.1, known)
        self._send(self._header(Type.JOIN, flags=self.random.randrange(2)) + packed(values))
        self._send(codec.encode(Hello(self.random.getrandbits(63), bytes(MIN_HELLO))))  # for another cookie

    def _flood(self) -> None:
        data = codec.encode(Hello(self.random.getrandbits(63), bytes(MIN_HELLO)))
        for _ in range(self.random.choice((3, 30))):
            self._send(data)
