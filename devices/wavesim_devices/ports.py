"""Ports of virtual devices: a pseudo-terminal, or a TCP or UDP port on loopback.

Each host program that uses a port has its own connection. ``path`` is the location of an open port in readable form,
and ``where`` is the same location in the syntax of the command line. A port calls ``accept`` when a host connects, and
passes the function that sends bytes to this host alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import termios
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wavesim_sdk.errors import WaveSimError

Bytes = Callable[[bytes], None]


class Connection(Protocol):
    """The device's end of a connection to one host."""

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""

    def close(self) -> None:
        """Remove the host after it has closed the connection."""


#: function that creates the connection to a host, given a function that sends bytes to this host
Accept = Callable[[Bytes], Connection]
BACKLOG_BYTES = 65536
#: time in s between two checks of a terminal that is being drained, and how many successive checks must find it empty
DRAIN_POLL_S, DRAINED_POLLS = 0.02, 25
#: maximum number of hosts connected to a TCP port at the same time; the port closes further connections
MAX_CLIENTS = 64


def _taken(port: int, error: OSError) -> WaveSimError:
    """Return the error for a port that cannot be opened. Its text contains the operating system's message, which
    asyncio would hide.
    """
    return WaveSimError(f"cannot listen on 127.0.0.1:{port}: {os.strerror(error.errno) if error.errno else error}")


class PtyPort:
    """Pseudo-terminal. Programs open its path, or a symbolic link to it, as a serial port. All these programs count as
    one host.
    """

    def __init__(self, accept: Accept, link: str = "") -> None:
        self.dropped = 0
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)  # kept open, so that clients can connect and disconnect
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self._link = Path(link) if link else None
        if self._link is not None:
            if self._link.is_symlink():
                self._link.unlink()
            try:
                self._link.symlink_to(self.path)
            except OSError as error:
                os.close(self._master)
                os.close(self._slave)
                raise WaveSimError(f"cannot create the symbolic link {link}: {error.strerror}") from None
            self.path = link
        self.where = f"pty:{link}"
        self._connection = accept(self.send)

    async def open(self) -> None:
        """Start reading from the terminal."""
        asyncio.get_running_loop().add_reader(self._master, self._ready)

    def _ready(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            self._connection.receive(os.read(self._master, 4096))

    def send(self, data: bytes) -> None:
        """Send bytes to the client. If no client is reading them, drop and count the bytes."""
        try:
            self.dropped += len(data) - os.write(self._master, data)
        except BlockingIOError:
            self.dropped += len(data)

    async def drain(self, patience: float) -> None:
        """Wait for at most ``patience`` s until the client has read every byte. Unread bytes are lost when the terminal
        closes.
        """
        limit, empty = time.monotonic() + patience, 0
        # A terminal does not report that it was read, and the kernel hands written bytes over later, so it must stay empty.
        while time.monotonic() < limit and empty < DRAINED_POLLS:
            await asyncio.sleep(DRAIN_POLL_S)
            empty = 0 if any(fcntl.ioctl(self._slave, termios.FIONREAD, bytes(4))) else empty + 1

    async def close(self) -> None:
        """Close the terminal and remove the symbolic link."""
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        os.close(self._slave)
        if self._link is not None and self._link.is_symlink():
            self._link.unlink()


class TcpPort:
    """TCP server on loopback. Each client is a separate host."""

    def __init__(self, accept: Accept, port: int) -> None:
        self._accept, self._port, self.dropped = accept, port, 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None  # None until it listens
        self.path = self.where = ""

    async def open(self) -> None:
        """Start listening for clients."""
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        except OSError as error:
            raise _taken(self._port, error) from None
        self.path = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.where = f"tcp:{self.path.rpartition(':')[2]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= MAX_CLIENTS:
            writer.close()
            return
        self._writers.add(writer)
        connection = self._accept(lambda data: self._send(writer, data))
        # asyncio cancels the task when the program ends
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while data := await reader.read(4096):
                connection.receive(data)
        self._writers.discard(writer)
        connection.close()
        writer.close()

    def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Send bytes to a client. If the client is not reading them, drop and count the bytes. An empty byte string
        closes the connection.
        """
        if not data:
            writer.close()
        elif writer.is_closing() or writer.transport.get_write_buffer_size() > BACKLOG_BYTES:
            self.dropped += len(data)
        else:
            writer.write(data)

    async def close(self) -> None:
        """Close the server and its connections, even if it never started listening."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.close()


@dataclass
class UdpTarget:
    """Destination of datagrams: an address on loopback, or a multicast group on the loopback interface. A device can
    change the address.
    """

    address: tuple[str, int] | None = None  #: address and port; None if no datagrams are sent


class UdpPort:
    """Sender of datagrams to a UDP port on loopback. Each datagram contains one sentence or reply. The sender also
    receives the answers to its datagrams. If a ``target`` is given, the datagrams go to the address of the target, and
    ``port`` is only the port on which hosts usually listen.
    """

    def __init__(self, accept: Accept, port: int, target: UdpTarget | None = None) -> None:
        self._target, self.dropped = target or UdpTarget(("127.0.0.1", port)), 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        self.path, self.where = f"udp 127.0.0.1:{port}", f"udp:{port}"
        self._connection = accept(self.send)

    async def open(self) -> None:
        """Start listening for answers."""
        asyncio.get_running_loop().add_reader(self._socket, self._ready)

    def _ready(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
            self._connection.receive(self._socket.recv(65536))

    def send(self, data: bytes) -> None:
        """Send one datagram. If no program is listening, drop and count it."""
        if not data or self._target.address is None:  # an empty string closes a connection; here there is none
            return
        try:
            self._socket.sendto(data, self._target.address)
        except (BlockingIOError, ConnectionRefusedError):
            self.dropped += len(data)

    async def close(self) -> None:
        """Close the socket."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()


class UdpServerPort:
    """UDP server on loopback. Replies go to the client that sent the last datagram."""

    def __init__(self, accept: Accept, port: int) -> None:
        self._peer, self.dropped = ("", 0), 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise _taken(port, error) from None
        number = self._socket.getsockname()[1]
        self.path, self.where = f"udp 127.0.0.1:{number}", f"udp-server:{number}"
        self._connection = accept(self.send)

    async def open(self) -> None:
        """Start listening for clients."""
        asyncio.get_running_loop().add_reader(self._socket, self._ready)

    def _ready(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
            data, self._peer = self._socket.recvfrom(65536)
            self._connection.receive(data)

    def send(self, data: bytes) -> None:
        """Send one datagram to the client. If there is no client, drop and count it."""
        if not data:  # closes a connection; here there is none
            return
        if not self._peer[1]:
            self.dropped += len(data)
            return
        try:
            self._socket.sendto(data, self._peer)
        except (BlockingIOError, ConnectionRefusedError):
            self.dropped += len(data)

    async def close(self) -> None:
        """Close the socket."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()


Port = PtyPort | TcpPort | UdpPort | UdpServerPort
#: function that creates a port, given the function that the port calls when a host connects
OpenPort = Callable[[Accept], Port]
