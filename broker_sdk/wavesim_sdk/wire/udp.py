"""asyncio-dgram, made safe for a socket that strangers can reach.

asyncio-dgram 3.0 queues without bound, raises an earlier send's error in another task's ``recv`` and
closes its transport on a malformed address.  Here the queue is bounded (what does not fit is dropped
and counted), errors are counted, and addresses are only ever those a datagram came from.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import asyncio_dgram
from asyncio_dgram.aio import DatagramServer, Protocol

from wavesim_sdk.wire import sendmmsg
from wavesim_sdk.wire.messages import MAX_DATAGRAM

Address = tuple[str, int]
QUEUE_LENGTH = 4096
FEW = 4  #: from so many datagrams on, one system call for all
SOCKET_BUFFER = 4 * 1024 * 1024


Taker = Callable[[bytes, Address], None]  #: a function that is handed a datagram


class _BoundedQueue(asyncio.Queue[Any]):
    """A queue that drops the newest when it is full, and counts; or hands each datagram to a function at once."""

    dropped = 0
    handler: Taker | None = None

    def put_nowait(self, item: Any) -> None:
        if self.handler is not None and item[0] is not None:
            self.handler(item[0], item[1][:2])
        elif self.qsize() >= QUEUE_LENGTH and item[0] is not None:
            self.dropped += 1
        else:
            super().put_nowait(item)


def open_socket(address: str, port: int) -> socket.socket:
    """A bound UDP socket with large buffers; OSError as from bind."""
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
    """One UDP socket: bounded receive, guarded send."""

    def __init__(self, stream: DatagramServer, queue: _BoundedQueue, sock: socket.socket) -> None:
        self._stream, self._queue, self._socket = stream, queue, sock
        self.errors = 0

    @classmethod
    async def wrap(cls, sock: socket.socket, handler: Taker | None = None) -> UdpSocket:
        """Wrap a bound socket. With ``take`` each datagram is handed to that function when it comes, and :meth:`receive` has
        none: a task that waits for each would cost more than what it does with it."""
        loop = asyncio.get_running_loop()
        queue, errors, drained = _BoundedQueue(), asyncio.Queue[Any](), asyncio.Event()
        queue.handler = handler
        transport, _ = await loop.create_datagram_endpoint(lambda: Protocol(queue, errors, drained), sock=sock)
        stream = DatagramServer(transport, queue, errors, drained)  # type: ignore[arg-type]  # its stub names the wrong class

        return cls(stream, queue, sock)

    @property
    def dropped(self) -> int:
        """Datagrams that did not fit into the queue."""
        return self._queue.dropped

    async def receive(self) -> tuple[bytes, Address] | None:
        """The next datagram; None when the socket is closed."""
        while True:
            try:
                got: Any = await self._stream.recv()
                return got[0], got[1][:2]
            except asyncio_dgram.TransportClosed:
                return None
            except OSError:
                self.errors += 1

    def receive_pending(self, most: int | None = None) -> Iterator[tuple[bytes, Address]]:
        """What else has come to the socket by now, of a flood so many: asyncio takes one datagram a turn of its loop."""
        for _ in range(QUEUE_LENGTH if most is None else most):
            try:
                data, address = self._socket.recvfrom(MAX_DATAGRAM + 1)
            except OSError as error:
                self.errors += not isinstance(error, BlockingIOError)
                return
            yield data, address[:2]

    def send_now(self, data: bytes, address: Address) -> None:
        """Send one datagram of this program's own making; what the system cannot take now is dropped and counted."""
        if len(data) > MAX_DATAGRAM:
            raise ValueError(f"{len(data)} bytes are too many for a datagram")
        try:
            self._socket.sendto(data, address)
        except OSError:
            self.errors += 1

    def send_rows(self, rows: Any, addresses: bytes) -> None:
        """Rows (n, size) of bytes, a datagram each, to addresses of :func:`wavesim_sdk.wire.sendmmsg.pack_address`."""
        self.errors += len(rows) - sendmmsg.send_rows(self._socket, rows, addresses)

    def send_each(self, datagrams: Sequence[tuple[bytes, Address]]) -> None:
        """Several datagrams at once."""
        if len(datagrams) < FEW:
            for data, address in datagrams:
                self.send_now(data, address)
            return
        addresses = b"".join([sendmmsg.pack_address(address) for _, address in datagrams])
        self.errors += len(datagrams) - sendmmsg.send_datagrams(
            self._socket, [data for data, _ in datagrams], addresses
        )

    def close(self) -> None:
        self._stream.close()
