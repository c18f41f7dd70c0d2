"""Serve virtual devices: a device joins the crew of a body and processes each step and the bytes from its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

from wavesim_devices.ports import Bytes, Connection, OpenPort
from wavesim_devices.sensor_selection import select_sensors
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError

SOUND_PERIOD_S = 0.02  #: wall time in s between two steps of devices that use sound, so that they answer promptly


class Device(Protocol):
    """Interface of a virtual device. It also has either ``receive`` or ``connect``."""

    def step(self, step: Step) -> None:
        """Process a new simulation state."""


@runtime_checkable
class SharedDevice(Device, Protocol):
    """Device that treats all hosts as one: it receives from each of them and sends to all of them."""

    def receive(self, data: bytes) -> None:
        """Process bytes received from a host."""


@runtime_checkable
class ConnectingDevice(Device, Protocol):
    """Device with several ports, or with answers for the host that asked."""

    def connect(self, port: str, send: Bytes) -> Connection:
        """Create the connection with a host at a port. ``send`` sends bytes to this host alone."""


#: function that creates a device; arguments: the broker, a function that sends bytes to all hosts, the sensor names by type
Maker = Callable[[AsyncBroker, Bytes, dict[str, str]], SharedDevice | ConnectingDevice]


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


class Host:
    """Host program at a port of a device. Its bytes are dropped until the device has joined the body."""

    def __init__(self, served: ServedDevice, port: str, send: Bytes) -> None:
        self._served, self._port, self.send = served, port, send
        self._connection: Connection | None = None

    def connect(self) -> None:
        """Connect the host with the device, if both exist."""
        if isinstance(self._served.device, ConnectingDevice):
            self._connection = self._served.device.connect(self._port, self.send)

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        if self._connection is not None:
            self._connection.receive(data)
        elif isinstance(self._served.device, SharedDevice):
            self._served.device.receive(data)

    def close(self) -> None:
        """Forget the host."""
        self._served.hosts.remove(self)
        if self._connection is not None:
            self._connection.close()


class ServedDevice:
    """Virtual device together with its ports and hosts."""

    def __init__(self, device_type: DeviceType, open_ports: Mapping[str, OpenPort]) -> None:
        self.device_type = device_type
        self.device: SharedDevice | ConnectingDevice | None = None
        self.hosts: list[Host] = []
        self.ports = {name: open_port(partial(self._accept, name)) for name, open_port in open_ports.items()}

    def _accept(self, port: str, send: Bytes) -> Host:
        host = Host(self, port, send)
        self.hosts.append(host)
        host.connect()
        return host

    def create(self, broker: AsyncBroker, sensors: dict[str, str]) -> None:
        """Create the device, and connect the hosts that came before it."""
        self.device = self.device_type.create(broker, self.send, sensors)
        for host in self.hosts:
            host.connect()

    def send(self, data: bytes) -> None:
        """Send bytes to all hosts."""
        for host in self.hosts:
            host.send(data)

    @property
    def title(self) -> str:
        """Text for the user that states the device and its ports."""
        if len(self.ports) == 1:
            return f"{self.device_type.title} of '{{}}' at {next(iter(self.ports.values())).path}"
        return f"{self.device_type.title} of '{{}}' at " + ", ".join(f"{n} {p.path}" for n, p in self.ports.items())


async def _read_ports() -> None:
    """Let the devices receive all bytes that have arrived, so that a step contains what its hosts sent before it."""
    for _ in range(3):  # the selector reports the socket, its stream wakes the task of the port, the task reads
        await asyncio.sleep(0)


def _state_period(broker: AsyncBroker, sensors: Collection[str], acoustics: bool) -> float:
    """Return the wall time in s between two states, short enough for every value of the fastest sensor at real time."""
    periods = [s.period_ns * 0.5e-9 for s in broker.sensors if s.name in sensors and s.period_ns]
    return min([broker.welcome.state_period_ns * 1e-9, *periods, *([SOUND_PERIOD_S] if acoustics else [])])


async def serve_devices(options: DeviceOptions, *devices: tuple[DeviceType, Mapping[str, OpenPort]]) -> None:
    """Join a body and serve its devices, each on its own ports, until the run ends."""
    served: list[ServedDevice] = []
    try:
        for device_type, open_ports in devices:
            served.append(ServedDevice(device_type, open_ports))
            for port in served[-1].ports.values():
                await port.open()
        role = "pilot" if options.pilot else "instrument"
        async with AsyncBroker(options.body, options.server, role=role, lockstep=options.lockstep) as broker:
            taken = set().union(*(s.device_type.types for s in served))
            selected = select_sensors(broker.sensors, sorted(taken), options.sensors)
            if taken and not selected:
                raise BrokerError(
                    f"'{options.body}' has no sensor for this device, which uses {', '.join(sorted(taken))}"
                )
            for s in served:
                own = select_sensors(
                    broker.sensors,
                    s.device_type.types,
                    [n for t, n in selected.items() if t in s.device_type.types],
                    s.device_type.required_type,
                )
                s.create(broker, own)
            acoustics = any(s.device_type.uses_acoustics for s in served)
            period = _state_period(broker, selected.values(), acoustics)
            broker.subscribe(tuple(selected.values()), acoustics=acoustics, state_period=period)
            for s in served:
                options.report(s.title.format(options.body))
            async for step in broker.steps():
                if options.lockstep:
                    await _read_ports()
                for s in served:
                    if s.device is not None:
                        s.device.step(step)
                await asyncio.sleep(0)  # let the ports send between steps that arrive together
            broker.raise_if_shut_down()
    finally:
        for s in served:
            for port in s.ports.values():
                await port.close()
