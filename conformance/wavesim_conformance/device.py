"""Conformance checker for virtual devices. It checks that invalid bytes and misbehaving hosts do not harm a device.

    wavesim conformance --device -- wavesim device run gauge.py {name} --port {port} --lockstep 0.1 --at tcp:0

The checker acts as a scripted server with a sensor of each type, and connects to the ports that the device prints. It
sends incomplete and malformed commands and 1 MB of noise, acts as a host that never reads, and connects two hosts at
the same time. After each test, the device must answer the next step and serve a new host. At the end, it must have
counted all bytes and reported no failure.
"""

from __future__ import annotations

import os
import random
import re
import select
import socket
import subprocess
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from wavesim_conformance.broker import NAME, ConformanceChecker, Finding
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.sensors import all_sensor_tables, value_count, value_fields
from wavesim_sdk.testing import STEP_NS, FakeServer
from wavesim_sdk.wire.items import ActuatorDescription, FieldDescription, SensorDescription
from wavesim_sdk.wire.messages import Join
from wavesim_sdk.wire.session import Admission, Session, StepDone

NOISE_BYTES = 1_000_000
#: size in bytes of a chunk of noise; a device may close a connection between chunks, for example after an invalid HTTP
#: request
CHUNK_BYTES = 4000
ANSWER_S = 10.0
NOISE_S = 60.0  #: time in s within which a device must process the noise
STEP_TICKS = 25  #: number of ticks in the lockstep period of 100 ms
#: invalid commands for the usual kinds of protocols; `--send` adds valid commands, which are also sent in truncated form
MALFORMED = (
    b"\r\n", b"\0", b"$", b"$\r\n", b"$P\r\n", b"$CCCFG,*00\r\n", b"#01\r\n", b"AT\r\n", b"AT?\n", b"+++AT*SENDIM,x,y\n",
    b"wcs,,,\r\n", b"wc\n", b'{"command":\r\n', b'{"a": [1e999, {"b": null}]}\n', b"[" * 200 + b"\n", b'"\\ud800"\n',
    b"GET / HTTP/9.9\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"BR\xff\xff\0\0\0\0", b"BR\x02\0\xe8\x03\0\0\0\0",
    b"\xb5\x62\x06\x08\xff\xff", b"\xfa\xff\xc0\xff\xff\xff", b"INTERVAL=1e9\r\n", b"=\r\n", b"\xff" * 300, b"9" * 20_000 + b"\r\n",
)  # fmt: skip

#: actuators of the scripted body, for devices that join as its pilot
ACTUATORS = (
    ActuatorDescription(0, "propeller", 0, "N", -6.0, 12.0),
    *(
        ActuatorDescription(number, name, 1, "rad", -0.4, 0.4)
        for number, name in enumerate(("rudder-top", "rudder-bottom", "plane-port", "plane-starboard"), start=1)
    ),
)


class HostLink(Protocol):
    """A host program that is connected to a port."""

    def send(self, data: bytes) -> bool:
        """Send bytes; return False if the device has closed the connection."""

    def is_open(self) -> bool:
        """Return whether the device has kept the connection open, or True if the port does not show this."""

    def receive(self, timeout: float) -> bool:
        """Return whether bytes from the device arrive within this time in s. This call is not available for a host that
        reads in a thread.
        """

    def finish(self) -> None:
        """Wait until the device has read all bytes, if the port shows whether it has."""

    def close(self) -> None:
        """Close the connection."""


class TcpHost:
    """Host on a TCP port. A thread reads and drops what the device sends, unless ``reads`` is false."""

    def __init__(self, port: int, *, reads: bool = True) -> None:
        self._socket = socket.socket()
        if not reads:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(ANSWER_S)
        self._socket.connect(("127.0.0.1", port))
        self.is_closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        if reads:
            self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):
            while self._socket.recv(65536):
                pass
        self.is_closed = True

    def send(self, data: bytes) -> bool:
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise
        except OSError:
            return False
        return not self.is_closed

    def is_open(self) -> bool:
        # the kernel's state: the thread may be late
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        return not poll.poll(0)

    def receive(self, timeout: float) -> bool:
        self._socket.settimeout(timeout)
        try:
            return bool(self._socket.recv(65536))
        except TimeoutError:
            return False

    def finish(self) -> None:
        if self._reader.ident is None:  # it reads nothing
            return
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._reader.join(NOISE_S)  # the device closes the connection at the end of the bytes

    def close(self) -> None:
        with suppress(OSError):  # the device has closed it already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class PtyHost:
    """Host on a pseudo-terminal. To the device, all hosts on a pseudo-terminal are the same host."""

    def __init__(self, path: str, *, reads: bool = True) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self._reads = reads
        tty.setraw(self._file)

    def send(self, data: bytes) -> bool:
        limit = time.monotonic() + ANSWER_S
        while data:
            try:
                data = data[os.write(self._file, data) :]
            except BlockingIOError:
                if time.monotonic() > limit:
                    raise TimeoutError from None
                time.sleep(0.001)
            if self._reads:
                with suppress(BlockingIOError):
                    os.read(self._file, 65536)
        return True

    def is_open(self) -> bool:
        return True

    def receive(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._file], [], [], timeout)
        return bool(ready) and bool(os.read(self._file, 65536))

    def finish(self) -> None:
        """Do nothing, because the terminal buffers up to 4 kB and does not show whether the device has read the bytes."""

    def close(self) -> None:
        os.close(self._file)


class UdpHost:
    """Host on a UDP port. It sends to a device that listens on the port, or answers a device that sends to the port."""

    def __init__(self, port: int, *, reads: bool = True) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(1.0)
        try:
            self._socket.bind(("127.0.0.1", port))
            #: address of the device; None until it has sent something
            self.peer: tuple[str, int] | None = None
        except OSError:  # the device listens there
            self.peer = ("127.0.0.1", port)

    def send(self, data: bytes) -> bool:
        try:
            if self.peer is None:
                self.peer = self._socket.recvfrom(65536)[1]
            for k in range(0, len(data), 1400):
                self._socket.sendto(data[k : k + 1400], self.peer)
        except (TimeoutError, ConnectionRefusedError):
            # the device has not sent anything, or has gone; the next step shows it. Wait only once for a silent device
            self._socket.settimeout(0.001)
            return True
        return True

    def is_open(self) -> bool:
        return True

    def receive(self, timeout: float) -> bool:
        self._socket.settimeout(timeout)
        try:
            return bool(self._socket.recv(65536))
        except (TimeoutError, ConnectionRefusedError):
            return False

    def finish(self) -> None:
        """Do nothing, because a UDP port does not show what the device has read."""

    def close(self) -> None:
        self._socket.close()


def open_host(place: str, *, reads: bool = True) -> HostLink:
    """Connect to a port, given its location as `wavesim device` prints it: `127.0.0.1:4001`, `udp 127.0.0.1:4001` or a
    path."""
    if place.startswith("/") or ":" not in place:
        return PtyHost(place, reads=reads)
    port = int(place.rpartition(":")[2])
    return UdpHost(port, reads=reads) if place.startswith("udp ") else TcpHost(port, reads=reads)


def noise(seed: int, samples: Sequence[bytes]) -> Iterator[bytes]:
    """Yield 1 MB of noise: random bytes, printable characters with line ends, and damaged commands."""
    rng = random.Random(seed)
    printable = bytes(range(0x20, 0x7F)) + b'\r\n$#{}"*,'
    for k in range(NOISE_BYTES // CHUNK_BYTES):
        data = bytearray(rng.randbytes(CHUNK_BYTES))
        if k % 3 == 1:
            data = bytearray(rng.choices(printable, k=CHUNK_BYTES))
        elif k % 3 == 2:
            data = bytearray(b"".join(rng.choices(samples, k=CHUNK_BYTES))[:CHUNK_BYTES])  # each has at least 1 B
            for at in rng.sample(range(CHUNK_BYTES), 40):
                data[at] = rng.randrange(256)
        yield bytes(data)


class PortChecker(ConformanceChecker):
    """Checker for the ports of a device. ``is_alive`` tests whether the device is still running; ``samples`` are valid
    commands."""

    def __init__(
        self,
        places: Sequence[str],
        is_alive: Callable[[], bool],
        samples: Sequence[bytes] = (),
        say: Callable[[Finding], None] = lambda f: None,
    ) -> None:
        super().__init__(say)
        self.places, self.is_alive, self.samples = places, is_alive, samples
        self.sent = 0  #: number of bytes that the device must have counted
        self._hosts: list[HostLink] = []

    def run(self) -> list[Finding]:
        for place in self.places:
            for rule, act in (
                ("incomplete and malformed commands do not harm the device", self._malformed),
                ("1 MB of noise does not harm the device", self._noise),
                ("a host that never reads does not harm the device", self._never_reads),
                ("two hosts are served at the same time", self._two_hosts),
            ):
                if not self._check(f"{place}: {rule}", place, act):
                    return self.findings
        return self.findings

    def _check(self, rule: str, place: str, act: Callable[[str], str]) -> bool:
        try:
            text = act(place)
            for host in self._hosts:
                host.finish()
        except TimeoutError:
            text = f"the device did not accept the bytes within {ANSWER_S:g} s"
        except OSError as error:
            text = f"cannot connect: {error.strerror or error}"
        finally:
            for host in self._hosts:
                host.close()
            self._hosts.clear()
        if not text and not self.is_alive():
            text = "the device no longer answers"
        return self.record(rule, not text, text)

    def _open(self, place: str, *, reads: bool = True) -> HostLink:
        self._hosts.append(open_host(place, reads=reads))
        return self._hosts[-1]

    def _malformed(self, place: str) -> str:
        halves = [s[:k] for s in self.samples for k in (1, len(s) // 2, len(s) - 1)]
        for data in (*halves, *MALFORMED, *self.samples):
            host = self._open(place)
            host.send(data)
            if data in halves:  # the host breaks off, and another one begins
                self._hosts.pop().close()
        return ""

    def _noise(self, place: str) -> str:
        begin, sent = time.monotonic(), 0
        host = self._open(place)
        for data in noise(7, [*MALFORMED, *self.samples]):
            sent += len(data)
            if not host.send(data):  # the device may close a connection, but must accept a new one
                self._hosts.pop().close()
                host, sent = self._open(place), 0
            if time.monotonic() - begin > NOISE_S:
                return f"the device needs more than {NOISE_S:g} s to process the noise"
        if not (isinstance(host, UdpHost) and host.peer is None):
            self.sent += sent
        return ""

    def _never_reads(self, place: str) -> str:
        mute, other = self._open(place, reads=False), self._open(place)
        for data in (*self.samples, *MALFORMED) * 20:
            if isinstance(mute, TcpHost) and not mute.send(data):
                break
        self._await_bytes()
        if not other.is_open():
            return "the device no longer serves other hosts"
        other.send(b"\r\n")
        return ""

    def _await_bytes(self) -> None:
        """Wait until a device in lockstep has processed the bytes, that is, until the end of the second step."""
        self.is_alive()
        self.is_alive()

    def _two_hosts(self, place: str) -> str:
        closed = []
        for count in (1, 2):  # a device may close the connection after these bytes, but for one host as for two
            hosts = [self._open(place) for _ in range(count)]
            for data in (*self.samples, b"\r\n"):
                half = len(data) // 2
                for part in (data[:half], data[half:]):
                    for host in hosts:
                        host.send(part)
            self._await_bytes()
            closed.append(not all(h.is_open() for h in hosts))
        return (
            "a single host keeps its connection, but if two hosts are connected, one of them loses it"
            if closed == [False, True]
            else ""
        )


def admit(join: Join, _old: Session | None = None) -> Admission:
    """Admit a device to a body with a sensor of each type, a propeller and four fins."""
    sensors = [
        SensorDescription(
            number,
            table.name,
            table.name,
            100_000_000,
            tuple(FieldDescription(f.name, f.unit, f.shape[0] if f.shape else 1) for f in value_fields(table)),
        )
        for number, table in enumerate(all_sensor_tables().values())
    ]
    if all(s.type != "sonar" for s in sensors):
        sensors.append(SensorDescription(len(sensors), "sonar", "sonar", 500_000_000, ()))
    return Admission(3, STEP_NS, 1500.0, 50_000_000, actuators=ACTUATORS, sensors=sensors)


class DeviceServer(FakeServer):
    """Scripted server for one device, in lockstep."""

    def __init__(self) -> None:
        super().__init__(admit)
        self.tick = 0

    def advance(self) -> bool:
        """Send the next step; return whether the device answers it."""
        self.tick += STEP_TICKS
        values = {name: (0.0,) * value_count(table) for name, table in all_sensor_tables().items()}
        try:
            self.step(NAME, self.tick, values)
        except TimeoutError:  # the device has gone
            return False
        return ConformanceChecker.wait_until(
            lambda: any(e.message.tick >= self.tick for e in self.events_of(StepDone, NAME)[-3:]), ANSWER_S
        )


def places_of(line: str) -> list[str]:
    """Return the locations of the ports from the first line that a device prints."""
    places = line.rpartition(" at ")[2].strip().split(", ")
    return places if len(places) == 1 else [p.partition(" ")[2] for p in places]


class DeviceChecker(ConformanceChecker):
    """Checker for a device that is started by a command."""

    def __init__(
        self, command: Sequence[str], samples: Sequence[bytes] = (), say: Callable[[Finding], None] = lambda f: None
    ) -> None:
        super().__init__(say)
        self.command, self.samples = command, samples

    def run(self) -> list[Finding]:
        with DeviceServer() as server, self._started(server) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            if not self.record(
                "the device joins and prints the locations of its ports", " at " in first, first or "the device exited"
            ):
                return self.findings
            alive = self.record(
                "the device answers a step in lockstep", server.advance(), "no answer; use --lockstep 0.1"
            )
            if not alive:
                return self.findings
            ports = PortChecker(places_of(first), server.advance, self.samples, self.report)
            self.findings += ports.run()
            if not all(f.ok for f in self.findings):
                return self.findings
            server.bye(NAME)
            said = process.stdout.read()
            process.wait(ANSWER_S)
        received = re.search(r"(\d+) B received", said)
        count = int(received[1]) if received else 0
        self.record(
            "the device counts the bytes that it receives", count >= ports.sent, f"{count} of {ports.sent} B counted"
        )
        self.record(
            "the device reports no failure", "failure" not in said and " failed " not in said, said.strip()[-500:]
        )
        return self.findings

    @contextmanager
    def _started(self, server: DeviceServer) -> Iterator[subprocess.Popen[str]]:
        command = [part.format(port=server.address[1], name=NAME) for part in self.command]
        environment = {**os.environ, "WAVESIM_KEYS": ""}
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment
            )
        except OSError as error:
            raise BrokerError(f"cannot start '{command[0]}': {error.strerror}") from None
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
