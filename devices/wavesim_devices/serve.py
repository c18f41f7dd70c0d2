"""Serving of virtual devices. A device joins the crew of a body. It processes each step, and the bytes from its hosts."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from wavesim_devices.line_faults import FaultyLine, LineFault, is_active
from wavesim_devices.ports import Bytes, Connection, OpenPort
from wavesim_devices.sensor_selection import select_sensors
from wavesim_devices.traffic import CLOSED, OPENED, RECEIVED, SENT, TrafficReporter
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.device_faults import DISCONNECTED, RESTARTED
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.wire.items import DeviceFault

#: wall time in s between two steps of devices that use sound; it is short so that these devices answer promptly
SOUND_PERIOD_S = 0.02

MAX_REPORTED = 10  #: number of failures of a device that are reported individually


class Device(Protocol):
    """Interface of a virtual device. A device also has either the ``receive`` or the ``connect`` method."""

    def step(self, step: Step) -> None:
        """Process a new simulation state."""


@runtime_checkable
class SharedDevice(Device, Protocol):
    """Device that treats all its hosts as one: it receives from each of them and sends to all of them."""

    def receive(self, data: bytes) -> None:
        """Process bytes received from a host."""


@runtime_checkable
class ConnectingDevice(Device, Protocol):
    """Device with several ports, or with answers that go only to the host that sent the command."""

    def connect(self, port: str, send: Bytes) -> Connection:
        """Create the connection to a host on a port. ``send`` sends bytes to this host alone."""


#: function that creates a device; its arguments are the broker, a function that sends bytes to all hosts, and the
#: sensor names by type
Maker = Callable[[AsyncBroker, Bytes, dict[str, str]], SharedDevice | ConnectingDevice]


@dataclass(frozen=True)
class DeviceType:
    """Type of virtual device: its title, the function that creates it, the sensor types that it reads, and the sensor
    type that it requires.
    """

    title: str
    create: Maker
    types: tuple[str, ...] = ()
    required_type: str = ""
    uses_acoustics: bool = False  #: whether the device needs acoustic receptions


@dataclass(frozen=True)
class TrafficOptions:
    """Options for the traffic between a device and its hosts."""

    record: Path | None = None  #: file that records the traffic
    is_printed: bool = False
    faults: tuple[LineFault, ...] = ()
    seed: int = 0  #: seed of the random numbers that the line faults use


@dataclass(frozen=True)
class DeviceOptions:
    """Options of a virtual device: body, server and role."""

    body: str
    server: tuple[str, int]
    #: name by which faults refer to the device; if the name is empty, faults cannot refer to the device
    device: str = ""
    #: whether the device joins as the pilot; the body is then in the simulation only during the device's session
    pilot: bool = False
    lockstep: float = 0.0
    #: names of the sensors to use; a name is required if the body has several sensors of a type
    sensors: tuple[str, ...] = ()
    traffic: TrafficOptions = TrafficOptions()
    report: Callable[[str], None] = print


class Host:
    """Host program on a port of a device. Its bytes are dropped until the device has joined the body."""

    def __init__(self, served: ServedDevice, port: str, number: int, send: Bytes) -> None:
        self.served, self.port, self.number, self._send = served, port, number, send
        self._connection: Connection | None = None
        self._inward, self._outward = (
            FaultyLine(deliver, served.faults, f"{served.seed} {port} {number} {what}", lambda: served.traffic.time)
            for deliver, what in ((self._to_device, RECEIVED), (self._to_host, SENT))
        )
        self._note(OPENED)

    def _note(self, what: str, data: bytes = b"") -> None:
        self.served.traffic.note(self.port, self.number, what, data)

    def connect(self) -> None:
        """Connect the host to the device, if the device exists and has separate connections to its hosts."""
        if isinstance(self.served.device, ConnectingDevice):
            self._connection = self.served.device.connect(self.port, self.send)

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        self.served.counts["received"] += len(data)
        self._note(RECEIVED, data)
        self._inward.put(data)

    def send(self, data: bytes) -> None:
        """Send bytes from the device to the host. An empty byte string closes the connection."""
        self._outward.put(data)

    def _to_device(self, data: bytes) -> None:
        try:
            if self._connection is not None:
                self._connection.receive(data)
            elif isinstance(self.served.device, SharedDevice):
                self.served.device.receive(data)
        except Exception as error:  # a device's defect: it must not end the other hosts' service
            self.served.report_failure(
                error, f"while processing {len(data)} bytes from host {self.number} of '{self.port}'"
            )

    def _to_host(self, data: bytes) -> None:
        if data:
            self.served.counts["sent"] += len(data)
            self._note(SENT, data)
        self._send(data)

    def step(self) -> None:
        """Deliver the bytes that a line fault has delayed."""
        self._inward.step()
        self._outward.step()

    def disconnect(self) -> None:
        """Close the connection to the device and, if hosts connect to the port individually, the connection to the
        host.
        """
        self._send(b"")
        self.forget_device()

    def forget_device(self) -> None:
        """Close the connection to the device."""
        if self._connection is not None:
            self.served.counts["errors"] += self.errors
            self._connection.close()
            self._connection = None

    @property
    def errors(self) -> int:
        """Number of invalid commands that the connection to the device has counted."""
        return int(getattr(self._connection, "errors", 0))

    def close(self) -> None:
        """Remove the host after it has closed its connection to the port, and close the connection to the device."""
        self.served.hosts.remove(self)
        self._note(CLOSED)
        self.forget_device()


class ServedDevice:
    """Virtual device together with its ports and hosts."""

    def __init__(
        self,
        device_type: DeviceType,
        open_ports: Mapping[str, OpenPort],
        traffic: TrafficReporter | None = None,
        options: TrafficOptions | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        options = options or TrafficOptions()
        self.device_type, self.traffic, self.report = device_type, traffic or TrafficReporter(), report
        #: faults from the options, followed by the fault that the server has set; the lines to all hosts share this
        #: list
        self.faults, self.seed = [*options.faults], options.seed
        self._scheduled = len(self.faults)
        self.device: SharedDevice | ConnectingDevice | None = None
        self.hosts: list[Host] = []
        #: numbers of bytes received and sent, of failures, and of errors in closed connections
        self.counts: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()  # of the hosts at each port
        self._make: Callable[[], SharedDevice | ConnectingDevice] | None = None  # None until it has joined
        self._was_disconnected = False
        self.ports = {name: open_port(partial(self._accept, name)) for name, open_port in open_ports.items()}

    def _accept(self, port: str, send: Bytes) -> Host:
        self._numbers[port] += 1
        host = Host(self, port, self._numbers[port], send)
        self.hosts.append(host)
        if self._was_disconnected:
            host.disconnect()
        else:
            host.connect()
        return host

    def create(self, broker: AsyncBroker, sensors: dict[str, str]) -> None:
        """Create the device, and connect the hosts that connected to a port before the device existed."""
        self._make = partial(self.device_type.create, broker, self.send, sensors)
        self._start()

    def _start(self) -> None:
        if self._make is not None:
            self.device = self._make()
            for host in self.hosts:
                host.connect()

    def send(self, data: bytes) -> None:
        """Send bytes to all hosts."""
        for host in self.hosts:
            host.send(data)

    def switch_fault(self, fault: DeviceFault) -> None:
        """Replace the fault that the server has set. The faults from the options remain as scheduled."""
        self.faults[self._scheduled :] = [LineFault(fault.kind, fault.amount)] if fault.kind != "none" else []

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        now = step.time
        is_disconnected = is_active(self.faults, (DISCONNECTED, RESTARTED), now)
        if is_disconnected and not self._was_disconnected:
            for host in list(self.hosts):
                host.disconnect()
        if is_active(self.faults, (RESTARTED,), now):
            self.device = None
        elif self.device is None:
            self._start()
        elif self._was_disconnected and not is_disconnected:
            for host in self.hosts:
                host.connect()
        self._was_disconnected = is_disconnected
        for host in self.hosts:
            host.step()
        if self.device is not None:
            self.device.step(step)

    def report_failure(self, error: Exception, occasion: str) -> None:
        """Count a failure of the device, and report it if it is one of the first ``MAX_REPORTED`` failures."""
        self.counts["failures"] += 1
        if self.counts["failures"] <= MAX_REPORTED:
            self.report(f"{self.device_type.title} failed {occasion}: {place_of(error)}: {error!r}")

    @property
    def errors(self) -> int:
        """Number of invalid commands that the device and its connections have counted; 0 for a device without commands."""
        return int(getattr(self.device, "errors", 0)) + self.counts["errors"] + sum(h.errors for h in self.hosts)

    @property
    def summary(self) -> str:
        """Text for the user at the end of the run: the numbers of bytes received and sent, and any failures."""
        unread = sum(port.dropped for port in self.ports.values())
        parts = [f"{self.counts['received']} B received", f"{self.counts['sent']} B sent"]
        parts += [f"{self.errors} invalid commands"] if self.errors else []
        parts += [f"{unread} B dropped because no host read them"] if unread else []
        parts += [f"{self.counts['failures']} device failures"] if self.counts["failures"] else []
        return f"{self.device_type.title}: {', '.join(parts)}"

    @property
    def title(self) -> str:
        """Text for the user: the device and its ports."""
        if len(self.ports) == 1:
            return f"{self.device_type.title} of '{{}}' at {next(iter(self.ports.values())).path}"
        return f"{self.device_type.title} of '{{}}' at " + ", ".join(f"{n} {p.path}" for n, p in self.ports.items())


def place_of(error: BaseException) -> str:
    """Return the file and line at which an error was raised, for use in a message."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


async def _read_ports() -> None:
    """Let the devices receive all bytes that have arrived. A step then includes the bytes that the hosts sent before
    the step.
    """
    for _ in range(3):  # the selector reports the socket, its stream wakes the task of the port, the task reads
        await asyncio.sleep(0)


def _state_period(broker: AsyncBroker, sensors: Collection[str], acoustics: bool) -> float:
    """Return the wall time in s between two states. It is short enough for a device to read every value from its
    fastest sensor in real time.
    """
    periods = [s.period_ns * 0.5e-9 for s in broker.sensors if s.name in sensors and s.period_ns]
    return min([broker.welcome.state_period_ns * 1e-9, *periods, *([SOUND_PERIOD_S] if acoustics else [])])


async def serve_devices(options: DeviceOptions, *devices: tuple[DeviceType, Mapping[str, OpenPort]]) -> None:
    """Join a body and serve its devices, each on its own ports, until the run ends."""
    served: list[ServedDevice] = []
    traffic = TrafficReporter(options.traffic.record, options.report if options.traffic.is_printed else None)
    try:
        for device_type, open_ports in devices:
            served.append(ServedDevice(device_type, open_ports, traffic, options.traffic, options.report))
            for port in served[-1].ports.values():
                await port.open()
        places = {name: port.where for s in served for name, port in s.ports.items()}
        traffic.begin(", ".join(dict.fromkeys(s.device_type.title for s in served)), options.body, places)
        role = "pilot" if options.pilot else "instrument"
        async with AsyncBroker(
            options.body, options.server, role=role, lockstep=options.lockstep, device=options.device
        ) as broker:
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
                traffic.time = step.time
                for s in served:
                    for fault in step.device_faults:
                        s.switch_fault(fault)
                    s.step(step)
                await asyncio.sleep(0)  # let the ports send between steps that arrive together
            broker.raise_if_shut_down()
    finally:
        traffic.close()
        for s in served:
            for port in s.ports.values():
                await port.close()
            if s.device is not None:
                options.report(s.summary)
