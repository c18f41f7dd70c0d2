"""Virtual network with lost, late, repeated, reordered and damaged datagrams, determined by one seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.world.clock import Clock

Address = tuple[str, int]
Receive = Callable[[bytes, Address, float], None]


@dataclass
class Weather:
    """The quality of the network: fractions of datagrams, and times in seconds."""

    loss: float = 0.0
    double: float = 0.0
    flip: float = 0.0  #: fraction of datagrams in which one to three bits are changed
    cut: float = 0.0  #: fraction of datagrams whose end is missing
    late: float = 0.0  #: fraction of datagrams delayed by up to a second, so that others overtake them
    delay: float = 0.001
    jitter: float = 0.0

    @classmethod
    def draw(cls, r: random.Random) -> Weather:
        """Return a good, bad or terrible network."""
        how = r.random()
        if how < 0.3:
            return cls(delay=r.uniform(0.0, 0.02))
        worst = 0.15 if how < 0.8 else 0.5
        return cls(
            loss=r.uniform(0.0, worst),
            double=r.uniform(0.0, worst),
            flip=r.choice((0.0, r.uniform(0.0, 0.1))),
            cut=r.choice((0.0, r.uniform(0.0, 0.05))),
            late=r.uniform(0.0, 0.3 * worst),
            delay=r.uniform(0.0, 0.04),
            jitter=r.uniform(0.0, 0.05),
        )


class Network:
    """Carries datagrams between addresses. ``damaged`` is called with each address whose datagram was changed on its
    way.
    """

    def __init__(self, clock: Clock, r: random.Random, weather: Weather, damaged: Callable[[Address], None]) -> None:
        self.weather = weather
        self.carried = 0
        self._clock, self._random, self._damaged = clock, r, damaged
        self._places: dict[Address, Receive] = {}
        self.tap: Callable[[bytes, Address, Address], None] | None = (
            None  #: called with every datagram that is sent, before it is carried
        )

    def open(self, address: Address, receive: Receive) -> None:
        """From now on, deliver the datagrams for an address to this receiver."""
        self._places[address] = receive

    def close(self, address: Address) -> None:
        """Drop all datagrams in transit to an address."""
        self._places.pop(address, None)

    def send(self, data: bytes, source: Address, target: Address) -> None:
        """Carry or lose a datagram."""
        r, w = self._random, self.weather
        if self.tap is not None:
            self.tap(data, source, target)
        copies = 2 if w.double and r.random() < w.double else 1
        for _ in range(copies):
            if w.loss and r.random() < w.loss:
                continue
            sent = data
            if (w.flip and r.random() < w.flip) or (w.cut and r.random() < w.cut):
                sent = self._damage(data)
                self._damaged(source)
                self._damaged(target)
            after = w.delay + (w.jitter * r.random() if w.jitter else 0.0)
            if w.late and r.random() < w.late:
                after += r.random()
            self._clock.at(self._clock.now + after, _Flight(self, sent, source, target))

    def slip(self, data: bytes, source: Address, target: Address, after: float) -> None:
        """Carry a datagram of an attacker, who may state any source. It does not use the random numbers of others."""
        self._clock.at(self._clock.now + after, _Flight(self, data, source, target))

    def _damage(self, data: bytes) -> bytes:
        r, w = self._random, self.weather
        if not data or r.random() * (w.flip + w.cut) < w.cut:
            return data[: r.randrange(len(data) + 1)]
        changed = bytearray(data)
        for _ in range(r.randint(1, 3)):
            changed[r.randrange(len(changed))] ^= 1 << r.randrange(8)
        return bytes(changed)

    def arrive(self, data: bytes, source: Address, target: Address, now: float) -> None:
        """Deliver a datagram."""
        place = self._places.get(target)
        if place is not None:
            self.carried += 1
            place(data, source, now)


class _Flight:
    """A datagram in transit."""

    __slots__ = ("data", "network", "source", "target")

    def __init__(self, network: Network, data: bytes, source: Address, target: Address) -> None:
        self.network, self.data, self.source, self.target = network, data, source, target

    def __call__(self, now: float) -> None:
        self.network.arrive(self.data, self.source, self.target, now)
