"""UDP socket, based on asyncio-dgram, that can be exposed to untrusted networks.

asyncio-dgram puts each datagram into an unbounded queue, from which a task fetches it, and keeps errors until the next
call. Here, asyncio-dgram provides the transport only: each datagram goes to a function at once, and errors are counted.
To send datagrams, and to read all waiting ones, this module uses the socket itself. ``docs/decisions.md`` states the
cost of each approach.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from asyncio_dgram.aio import DatagramServer, Protocol

from wavesim_sdk.wire import sendmmsg
from wavesim_sdk.wire.messages import MAX_DATAGRAM

Address = tuple[str, int]
MAX_PENDING = 4096  #: maximum number of datagrams read from the socket in one call
FEW = 4  #: minimum number of datagrams that are sent together in one system call
SOCKET_BUFFER = 4 * 1024 * 1024


Taker = Callable[[bytes, Address], None]  #: type of a function that receives a datagram and its address


class _HandlerQueue(asyncio.Queue[Any]):
    """Receive queue for asyncio-dgram that stores nothing: it passes each datagram to a function."""

    def __init__(self, handler: Taker) -> None:
        super().__init__()
        self._handler = handler

    def put_nowait(self, item: Any) -> None:
        data, address = item
        if data is not None:  # None reports that the transport is closed
            self._handler(data, address[:2])


class _ErrorCounter(asyncio.Queue[Any]):
    """Error queue for asyncio-dgram that only counts the errors."""

    count = 0

    def put_nowait(self, item: Any) -> None:
        self.count += 1


def open_socket(address: str, port: int) -> socket.socket:
    """Open and bind a UDP socket with large buffers; raises OSError if it cannot be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


class UdpSocket:
    """UDP socket that passes each datagram to a function. It counts the errors that occur while datagrams are received
    or sent.
    """

    def __init__(self, stream: DatagramServer, socket_errors: _ErrorCounter, sock: socket.socket) -> None:
        self._stream, self._socket_errors, self._socket = stream, socket_errors, sock
        self._errors = 0

    @classmethod
    async def wrap(cls, sock: socket.socket, handler: Taker) -> UdpSocket:
        """Wrap a socket that is already bound; ``handler`` is called with each datagram and its address.

        A task that waits for each datagram would cost more than processing the datagram.
        """
        queue, errors, drained = _HandlerQueue(handler), _ErrorCounter(), asyncio.Event()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: Protocol(queue, errors, drained), sock=sock)
        stream = DatagramServer(transport, queue, errors, drained)  # type: ignore[arg-type]  # its stub names the wrong class
        return cls(stream, errors, sock)

    @property
    def errors(self) -> int:
        """Number of errors that the system reported while datagrams were received or sent."""
        return self._errors + self._socket_errors.count

    @property
    def dropped(self) -> int:
        """Number of datagrams that the system discarded because the socket's receive buffer was full; 0 on systems
        that do not report it.
        """
        inode = str(os.fstat(self._socket.fileno()).st_ino)
        for table in ("/proc/net/udp", "/proc/net/udp6"):
            try:
                rows = Path(table).read_text().splitlines()
            except OSError:
                continue
            for fields in map(str.split, rows):
                if fields[9] == inode:
                    return int(fields[-1])
        return 0

    def receive_pending(self, most: int | None = None) -> Iterator[tuple[bytes, Address]]:
        """Return up to ``most`` further datagrams that are waiting in the socket. This is needed because asyncio reads
        only one datagram per iteration of its event loop.
        """
        for _ in range(MAX_PENDING if most is None else most):
            try:
                data, address = self._socket.recvfrom(MAX_DATAGRAM + 1)
            except OSError as error:
                self._errors += not isinstance(error, BlockingIOError)
                return
            yield data, address[:2]

    def send_now(self, data: bytes, address: Address) -> None:
        """Send one datagram; if the system cannot accept it now, it is dropped and counted."""
        if len(data) > MAX_DATAGRAM:
            raise ValueError(f"a datagram of {len(data)} bytes exceeds the maximum of {MAX_DATAGRAM}")
        try:
            self._socket.sendto(data, address)
        except OSError:
            self._errors += 1

    def send_rows(self, rows: Any, addresses: bytes) -> None:
        """Send each row of ``rows`` (n, size) as a datagram; make ``addresses`` with
        :func:`wavesim_sdk.wire.sendmmsg.pack_address`.
        """
        self._errors += len(rows) - sendmmsg.send_rows(self._socket, rows, addresses)

    def send_each(self, datagrams: Sequence[tuple[bytes, Address]]) -> None:
        """Send several datagrams, each to its address."""
        if len(datagrams) < FEW:
            for data, address in datagrams:
                self.send_now(data, address)
            return
        addresses = b"".join([sendmmsg.pack_address(address) for _, address in datagrams])
        self._errors += len(datagrams) - sendmmsg.send_datagrams(
            self._socket, [data for data, _ in datagrams], addresses
        )

    def close(self) -> None:
        self._stream.close()
