"""Wrapper around asyncio-dgram that is safe to use on a socket that anyone can reach.

asyncio-dgram 3.0 has an unbounded queue, and closes its transport on a malformed address. If a send fails, it raises
the error later, in the ``recv`` of another task. This wrapper has a bounded queue, and drops and counts datagrams that
do not fit. It also counts errors. It sends datagrams only to addresses from which it has received at least one
datagram.
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
FEW = 4  #: minimum number of datagrams that are sent together in one system call
SOCKET_BUFFER = 4 * 1024 * 1024


Taker = Callable[[bytes, Address], None]  #: type of a function that receives a datagram and its address


class _BoundedQueue(asyncio.Queue[Any]):
    """Queue that drops and counts new datagrams when it is full.

    If ``handler`` is set, the queue passes each datagram to the handler immediately and does not store it.
    """

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
    """One UDP socket with a bounded receive queue. It counts the datagrams that it could not send."""

    def __init__(self, stream: DatagramServer, queue: _BoundedQueue, sock: socket.socket) -> None:
        self._stream, self._queue, self._socket = stream, queue, sock
        self.errors = 0

    @classmethod
    async def wrap(cls, sock: socket.socket, handler: Taker | None = None) -> UdpSocket:
        """Wrap a socket that is already bound.

        With ``handler``, each datagram is passed to that function immediately, and :meth:`receive` does not return any.
        A task that waits for each datagram would cost more than processing the datagram.
        """
        loop = asyncio.get_running_loop()
        queue, errors, drained = _BoundedQueue(), asyncio.Queue[Any](), asyncio.Event()
        queue.handler = handler
        transport, _ = await loop.create_datagram_endpoint(lambda: Protocol(queue, errors, drained), sock=sock)
        stream = DatagramServer(transport, queue, errors, drained)  # type: ignore[arg-type]  # its stub names the wrong class

        return cls(stream, queue, sock)

    @property
    def dropped(self) -> int:
        """Number of datagrams that did not fit into the receive queue."""
        return self._queue.dropped

    async def receive(self) -> tuple[bytes, Address] | None:
        """Wait for the next datagram and return it, or None when the socket is closed."""
        while True:
            try:
                got: Any = await self._stream.recv()
                return got[0], got[1][:2]
            except asyncio_dgram.TransportClosed:
                return None
            except OSError:
                self.errors += 1

    def receive_pending(self, most: int | None = None) -> Iterator[tuple[bytes, Address]]:
        """Return up to ``most`` further datagrams that are waiting in the socket. This is needed because asyncio reads
        only one per iteration of its loop.
        """
        for _ in range(QUEUE_LENGTH if most is None else most):
            try:
                data, address = self._socket.recvfrom(MAX_DATAGRAM + 1)
            except OSError as error:
                self.errors += not isinstance(error, BlockingIOError)
                return
            yield data, address[:2]

    def send_now(self, data: bytes, address: Address) -> None:
        """Send one datagram; if the system cannot accept it now, it is dropped and counted."""
        if len(data) > MAX_DATAGRAM:
            raise ValueError(f"a datagram of {len(data)} bytes exceeds the maximum of {MAX_DATAGRAM}")
        try:
            self._socket.sendto(data, address)
        except OSError:
            self.errors += 1

    def send_rows(self, rows: Any, addresses: bytes) -> None:
        """Send each row of ``rows`` (n, size) as a datagram; make ``addresses`` with
        :func:`wavesim_sdk.wire.sendmmsg.pack_address`.
        """
        self.errors += len(rows) - sendmmsg.send_rows(self._socket, rows, addresses)

    def send_each(self, datagrams: Sequence[tuple[bytes, Address]]) -> None:
        """Send several datagrams, each to its address."""
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
