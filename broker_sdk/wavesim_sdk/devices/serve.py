"""A virtual device at work: it joins a body's crew, and its instrument meets each step and the bytes of its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.devices.pick import pick
from wavesim_sdk.devices.ports import Bytes, Port
from wavesim_sdk.errors import BrokerError

Ports = Callable[[Bytes], Port]  #: makes a port that hands its bytes to a function


class Instrument(Protocol):
    """What a device is made of."""

    def receive(self, data: bytes) -> None:
        """Bytes of the host."""

    def step(self, step: Step) -> None:
        """The simulation has come to a new state."""


#: makes the instrument; the function sends bytes to the host, the names are those of the sensors by their types
Maker = Callable[[AsyncBroker, Bytes, dict[str, str]], Instrument]


@dataclass(frozen=True)
class Kind:
    """A kind of device: its title, the types of sensors that it looks at, the one without which it is none, how it is made."""

    title: str
    make: Maker
    types: tuple[str, ...] = ()
    needs: str = ""
    sound: bool = False  #: whether it hears


@dataclass(frozen=True)
class Place:
    """Whose device it is, and where."""

    name: str
    server: tuple[str, int]
    pilot: bool = False  #: the body comes and goes with it; else it serves beside whoever drives
    lockstep: float = 0.0
    sensors: tuple[str, ...] = ()  #: by name, where the body has several of a type
    say: Callable[[str], None] = print


class Outlet:
    """An instrument and its port."""

    def __init__(self, kind: Kind, ports: Ports) -> None:
        self.kind = kind
        self.instrument: Instrument | None = None
        self.port = ports(self._receive)

    def _receive(self, data: bytes) -> None:
        if self.instrument is not None:
            self.instrument.receive(data)


async def serve(place: Place, *devices: tuple[Kind, Ports]) -> None:
    """Join a body and serve its instruments, each at a port of its own, until the run has ended."""
    outlets: list[Outlet] = []
    try:
        for kind, ports in devices:
            outlets.append(Outlet(kind, ports))
            await outlets[-1].port.open()
        role = "pilot" if place.pilot else "instrument"
        async with AsyncBroker(place.name, place.server, role=role, lockstep=place.lockstep) as broker:
            taken = set().union(*(o.kind.types for o in outlets))
            picked = pick(broker.sensors, sorted(taken), place.sensors)
            if taken and not picked:
                raise BrokerError(f"'{place.name}' has no sensor for this device; it takes {', '.join(sorted(taken))}")
            for o in outlets:
                own = pick(
                    broker.sensors, o.kind.types, [n for t, n in picked.items() if t in o.kind.types], o.kind.needs
                )
                o.instrument = o.kind.make(broker, o.port.send, own)
            broker.subscribe(tuple(picked.values()), acoustics=any(o.kind.sound for o in outlets))
            for o in outlets:
                place.say(f"{o.kind.title} of '{place.name}' at {o.port.path}")
            async for step in broker.steps():
                for o in outlets:
                    if o.instrument is not None:
                        o.instrument.step(step)
                await asyncio.sleep(0)  # let the ports speak between steps that come in one go
    finally:
        for o in outlets:
            await o.port.close()


class Lines:
    """Bytes of a host to whole lines, ended by CR or LF; longer ones than a limit are dropped and counted."""

    def __init__(self, limit: int = 128) -> None:
        self.limit, self.dropped = limit, 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[str]:
        """The lines that are complete, without their ends; empty ones are left out."""
        found = []
        self._buffer += data.replace(b"\n", b"\r")
        while (end := self._buffer.find(b"\r")) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            if len(line) > self.limit:
                self.dropped += 1
            elif line.strip():
                found.append(line.decode("ascii", errors="replace").strip())
        if len(self._buffer) > self.limit:
            self.dropped += 1
            self._buffer.clear()
        return found
