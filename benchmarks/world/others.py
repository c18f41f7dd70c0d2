"""Other participants: the commander's queue, and foreign senders on the network."""

from __future__ import annotations

import json
import random
from collections import deque
from typing import TYPE_CHECKING, Any

from benchmarks.world.absurd import packed
from benchmarks.world.clock import Timer
from benchmarks.world.network import Address
from benchmarks.world.server import ADDRESS
from wavesim_sdk import commander, commands
from wavesim_sdk.commands import TIMER_VERBS
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.messages import HEADER_BYTES, MAGIC, MESSAGES, MIN_HELLO, VERSION, Hello, Type
from wavesim_sdk.wire.schema import schema_of

if TYPE_CHECKING:
    from benchmarks.world.world import World
    from wavesim_server.network.front import Front


VERBS = {verb: v for verb, v in commands.VERBS.items() if verb not in ("mission", "command")}  # as in world.LEFT_OUT


class Commander:
    """A tool that writes into the commander's queue."""

    def __init__(self, world: World, r: random.Random) -> None:
        self.world, self.random = world, r
        self._next = Timer(world.clock, self._act)
        self._id = 0
        self.waiting: dict[int, str] = {}
        self.pace = r.choice((0.1, 0.5))
        self.calm = r.random() < 0.4  #: whether it starts the clock and is silent from then on
        self.shutdown = r.random() < 0.05

    def start(self, now: float) -> None:
        """Start the clock."""
        self.world.clock.at(now + 0.1, lambda at: self.send("start"))
        if not self.calm:
            self._next.at(now + 0.2)

    def send(self, verb: str, **arguments: Any) -> None:
        """Send one command."""
        self._id += 1
        message = {"verb": verb, "reply": "/wavesim.world.reply.1", "id": self._id, **arguments}
        try:
            data = json.dumps(message).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError):
            return  # no JSON can say it
        self._take(data)

    def _take(self, data: bytes) -> None:
        command = commander.parse_command(data[: commander.COMMAND_BYTES])
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
        """Handle a reply, whether or not it is awaited."""
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
    """A sender on the network that has no session, and sees the sessions of others."""

    def __init__(self, world: World, r: random.Random) -> None:
        self.world, self.random = world, r
        self.address = world.new_address()
        self._next = Timer(world.clock, self._act)
        self.pace = r.choice((0.04, 0.1))
        self._cookie = b""

    def start(self, now: float) -> None:
        """Start sending."""
        self.world.network.open(self.address, self._receive)
        self._next.at(now)

    def _receive(self, data: bytes, source: Address, now: float) -> None:
        """Keep the cookie and forget everything else."""
        try:
            header = codec.decode_header(data, from_client=False)
            if header.type is Type.CHALLENGE:
                self._cookie = codec.decode_payload(data, header).cookie
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
        """Send a datagram that pretends to be from a session, from another address."""
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


class Thief:
    """An attacker between clients and server without a key (after Dolev and Yao). The attacker sees every datagram,
    copies it and delivers the copy first, replays and forges datagrams of any client from any address, and relays
    challenges of the server to clients. The attacker cannot hold datagrams back. None of this may affect a session.
    """

    def __init__(self, world: World, r: random.Random) -> None:
        self.world, self.random = world, r
        self.address = world.new_address()
        self._seen: deque[tuple[bytes, Address]] = deque(maxlen=200)  # what clients said, and from where
        self._relays = r.random() < 0.5
        self._steals = r.choice((0.1, 0.5, 1.0))  #: fraction of the datagrams whose copy arrives first
        self._forgeries: deque[bytes] = deque(maxlen=200)

    def start(self) -> None:
        """Start the attack."""
        self.world.network.tap = self._watch
        self.world.network.open(self.address, self._asked)

    def _watch(self, data: bytes, source: Address, target: Address) -> None:
        if self.world.calm or target != ADDRESS:
            return
        r = self.random
        self._seen.append((data, source))
        if r.random() < self._steals:
            self._say(data, self.address, 0.0)
        if r.random() < 0.2:
            old, its = r.choice(self._seen)
            self._say(old, r.choice((self.address, its, source)), 0.1 * r.random())
        if r.random() < 0.2:
            self._say(self._forged(data), r.choice((self.address, source)), 0.1 * r.random())

    def _say(self, data: bytes, source: Address, after: float) -> None:
        self.world.note("stolen")
        self.world.network.slip(data, source, ADDRESS, after)

    def _forged(self, data: bytes) -> bytes:
        changed = bytearray(data)
        if len(changed) >= HEADER_BYTES:
            changed[16:20] = self.random.getrandbits(32).to_bytes(4, "little")
            if self.random.random() < 0.3:
                changed[6] ^= 1
            self._forgeries.append(bytes(changed))
        return bytes(changed)

    def said(self, data: bytes, source: Address) -> bool:
        """Return whether the attacker made a datagram, or sent it from its own address."""
        return source == self.address or data in self._forgeries

    def touches(self, front: Front, data: bytes) -> tuple[Any, ...]:
        """Return the values of a session that the attacker's datagram must not change. Return nothing if the attacker
        relayed it to its own address and it is an exact copy of what the client sends.
        """
        token = int.from_bytes(data[8:16], "little")
        s = front.sessions.by_token.get(token)
        if s is None or (s.address == self.address and data not in self._forgeries):
            return ()
        window = (s.seal._highest, s.seal._seen) if s.seal is not None else ()
        return (s.address, s.last_heard, s.newest_sequence, s.inbox.received, len(s.outbox), s.datagrams_in, *window)

    def _asked(self, data: bytes, source: Address, now: float) -> None:
        """Relay a challenge of the server: only the client can answer it."""
        if self._relays and not self.world.calm and self._seen and self.random.random() < 0.3:
            token = data[8:16]
            client = next((its for said, its in reversed(self._seen) if said[8:16] == token), None)
            if client is not None:
                self.world.network.slip(data, ADDRESS, client, 0.0)
