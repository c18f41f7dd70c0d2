"""The adversary of a siege: it sees all datagrams and adds others (after Dolev and Yao), but holds no key of its victims."""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING

from benchmarks.world import scenes
from benchmarks.world.network import Address
from benchmarks.world.report import Broken
from benchmarks.world.server import ADDRESS
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.client import ClientSession
from wavesim_sdk.wire.messages import (
    HEADER_BYTES,
    MIN_HELLO,
    Ack,
    Actuate,
    Hello,
    Join,
    Leave,
    Role,
    Type,
)

if TYPE_CHECKING:
    from benchmarks.world.siege import Siege

SEEN = 3000  #: number of datagrams that the adversary remembers


class Adversary:
    """Adversary that sees all datagrams, may state any source address, and has the key of another name (``*``), but no
    key of a victim.

    In scenes without keys, it does not state the address of a client whose token it knows, because the server
    could not distinguish such a datagram from one that the client sent.
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
        """Try to continue the sessions of others, and to provoke an answer that is larger than the datagram."""
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
        """Send more HELLOs than a host may, then wait and send another."""
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
                raise Broken("never answered again: a host that was quiet for a second is not answered")

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
