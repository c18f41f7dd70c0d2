"""Serve virtual devices: a device joins the crew of a body and processes each step and the bytes from its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wavesim_devices.ports import Bytes, Port
from wavesim_devices.sensor_selection import select_sensors
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError

Ports = Callable[[Bytes], Port]  #: function that opens a port, which passes received bytes to a callback


class Device(Protocol):
    """Interface of a virtual device."""

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""

    def step(self, step: Step) -> None:
        """Process a new simulation state."""


#: function that creates an instrument; arguments: the broker, a function that sends bytes, the sensor names by type
Maker = Callable[[AsyncBroker, Bytes, dict[str, str]], Device]


@dataclass(frozen=True)
class DeviceType:
    """Type of virtual device: its title, the function that creates it, the sensor types that it reads, and the one that
    it requires.
    """

    title: str
    create: Maker
    types: tuple[str, ...] = ()
    required_type: str = ""
    uses_acoustics: bool = False  #: whether the device needs acoustic receptions


@dataclass(frozen=True)
class DeviceOptions:
    """Options of a virtual device: body, server and role."""

    body: str
    server: tuple[str, int]
    #: whether the device joins as the pilot; the body is then in the simulation only during its session
    pilot: bool = False
    lockstep: float = 0.0
    sensors: tuple[str, ...] = ()  #: names of the sensors to use; required if the body has several sensors of a type
    report: Callable[[str], None] = print


class ServedDevice:
    """Virtual instrument together with its port."""

    def __init__(self, kind: DeviceType, ports: Ports) -> None:
        self.device_type = kind
        self.device: Device | None = None
        self.port = ports(self._receive)

    def _receive(self, data: bytes) -> None:
        if self.device is not None:
            self.device.receive(data)


async def serve_devices(options: DeviceOptions, *devices: tuple[DeviceType, Ports]) -> None:
    """Join a body and serve its instruments, each on its own port, until the run ends."""
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
                    f"'{options.body}' has no sensor for this device, which uses {', '.join(sorted(taken))}"
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
                await asyncio.sleep(0)  # let the ports send between steps that arrive together
    finally:
        for o in outlets:
            await o.port.close()


class LineSplitter:
    """Splitter of bytes from the host into lines that end with CR or LF. It drops and counts lines above a maximum
    length.
    """

    def __init__(self, limit: int = 128) -> None:
        self.limit, self.dropped = limit, 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[str]:
        """Return the complete lines without their line ends, and without empty lines."""
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
