"""A virtual device at work: it joins a body's crew, and its instrument meets each step and the bytes of its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.devices.ports import Bytes, Port
from wavesim_sdk.devices.sensor_selection import select_sensors
from wavesim_sdk.errors import BrokerError

Ports = Callable[[Bytes], Port]  #: makes a port that hands its bytes to a function


class Device(Protocol):
    """What a device is made of."""

    def receive(self, data: bytes) -> None:
        """Bytes of the host."""

    def step(self, step: Step) -> None:
        """The simulation has come to a new state."""


#: makes the instrument; the function sends bytes to the host, the names are those of the sensors by their types
Maker = Callable[[AsyncBroker, Bytes, dict[str, str]], Device]


@dataclass(frozen=True)
class DeviceType:
    """A kind of device: its title, the types of sensors that it looks at, the one without which it is none, how it is made."""

    title: str
    create: Maker
    types: tuple[str, ...] = ()
    required_type: str = ""
    uses_acoustics: bool = False  #: whether it hears


@dataclass(frozen=True)
class DeviceOptions:
    """Whose device it is, and where."""

    body: str
    server: tuple[str, int]
    pilot: bool = False  #: the body comes and goes with it; else it serves beside whoever drives
    lockstep: float = 0.0
    sensors: tuple[str, ...] = ()  #: by name, where the body has several of a type
    report: Callable[[str], None] = print


class ServedDevice:
    """An instrument and its port."""

    def __init__(self, kind: DeviceType, ports: Ports) -> None:
        self.device_type = kind
        self.device: Device | None = None
        self.port = ports(self._receive)

    def _receive(self, data: bytes) -> None:
        if self.device is not None:
            self.device.receive(data)


async def serve_devices(options: DeviceOptions, *devices: tuple[DeviceType, Ports]) -> None:
    """Join a body and serve its instruments, each at a port of its own, until the run has ended."""
    outlets: list[ServedDevice] = []
    try:
        for kind, ports in devices:
            outlets.append(ServedDevice(kind, ports))
            await outlets[-1].port.open()
        role = "pilot" if options.pilot else "instrument"
        async with AsyncBroker(options.body, options.server, role=role, lockstep=options.lockstep) as broker:
            taken = set().union(*(o.device_type.types for o in outlets))
            selected = select_sensors(broker.sensors, sorted(taken), options.sensors)
            if taken and not selected:
                raise BrokerError(
                    f"'{options.body}' has no sensor for this device; it takes {', '.join(sorted(taken))}"
                )
            for o in outlets:
                own = select_sensors(
                    broker.sensors,
                    o.device_type.types,
                    [n for t, n in selected.items() if t in o.device_type.types],
                    o.device_type.required_type,
                )
                o.device = o.device_type.create(broker, o.port.send, own)
            broker.subscribe(tuple(selected.values()), acoustics=any(o.device_type.uses_acoustics for o in outlets))
            for o in outlets:
                options.report(f"{o.device_type.title} of '{options.body}' at {o.port.path}")
            async for step in broker.steps():
                for o in outlets:
                    if o.device is not None:
                        o.device.step(step)
                await asyncio.sleep(0)  # let the ports speak between steps that come in one go
    finally:
        for o in outlets:
            await o.port.close()


class LineSplitter:
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
