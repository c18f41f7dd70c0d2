"""A virtual device at work: it joins as a body, and its instrument meets each step and the bytes of its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.devices.ports import Bytes, Port

Ports = Callable[[Bytes], Port]  #: makes a port that hands its bytes to a function


class Instrument(Protocol):
    """What a device is made of."""

    def receive(self, data: bytes) -> None:
        """Bytes of the host."""

    def step(self, step: Step) -> None:
        """The simulation has come to a new state."""


Maker = Callable[[AsyncBroker, Bytes], Instrument]  #: makes the instrument; the function sends bytes to the host


@dataclass(frozen=True)
class Place:
    """Whose device it is, where, and at which port."""

    name: str
    server: tuple[str, int]
    ports: Ports
    lockstep: float = 0.0
    say: Callable[[str], None] = print


async def serve(place: Place, title: str, make: Maker) -> None:
    """Join as a body and serve its instrument at a port until the run has ended."""
    instrument: Instrument | None = None
    port = place.ports(lambda data: instrument.receive(data) if instrument is not None else None)
    await port.open()
    try:
        async with AsyncBroker(place.name, place.server, lockstep=place.lockstep) as broker:
            instrument = make(broker, port.send)
            place.say(f"{title} of '{place.name}' at {port.path}")
            async for step in broker.steps():
                instrument.step(step)
                await asyncio.sleep(0)  # let the port speak between steps that come in one go
    finally:
        await port.close()


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
