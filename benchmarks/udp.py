"""Measure what asyncio-dgram costs beside the wrapper and beside bare sockets: processor time per datagram, memory in a flood.

python -m benchmarks.udp [datagrams]
"""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import asyncio_dgram
import numpy as np

from wavesim_sdk.wire import sendmmsg
from wavesim_sdk.wire.udp import UdpSocket, open_socket

PAYLOAD = bytes(120)
BURST = 200  #: datagrams that wait in the socket at once, for example the requests of 200 clients in a lockstep step
ROUNDS = 3


def sender() -> socket.socket:
    """Return a socket on the loopback interface."""
    return open_socket("127.0.0.1", 0)


def fill(out: socket.socket, address: tuple[str, int], number: int) -> None:
    """Send ``number`` datagrams."""
    for _ in range(number):
        out.sendto(PAYLOAD, address)


async def bare(count: int) -> float:
    """Processor time (s) that a loop of ``recvfrom`` takes for ``count`` datagrams."""
    into, out = open_socket("127.0.0.1", 0), sender()
    spent = 0.0
    for _ in range(count // BURST):
        fill(out, into.getsockname(), BURST)
        start = time.process_time()
        for _ in range(BURST):
            into.recvfrom(2048)
        spent += time.process_time() - start
    into.close()
    out.close()
    return spent


async def wrapped(count: int) -> float:
    """Processor time (s) of the wrapper, used as the front end uses it."""
    into, out = open_socket("127.0.0.1", 0), sender()
    address, taken = into.getsockname(), 0
    event = asyncio.Event()

    def take(data: bytes, source: tuple[str, int]) -> None:
        nonlocal taken
        taken += 1
        for _ in port.receive_pending():
            taken += 1
        if taken % BURST == 0:
            event.set()

    port = await UdpSocket.wrap(into, take)
    spent = 0.0
    for _ in range(count // BURST):
        fill(out, address, BURST)
        event.clear()
        start = time.process_time()
        await event.wait()
        spent += time.process_time() - start
    port.close()
    out.close()
    return spent


async def library(count: int) -> float:
    """Processor time (s) of asyncio-dgram: one task awaits ``recv``."""
    into, out = open_socket("127.0.0.1", 0), sender()
    address = into.getsockname()
    stream = await asyncio_dgram.from_socket(into)
    spent = 0.0
    for _ in range(count // BURST):
        fill(out, address, BURST)
        start = time.process_time()
        for _ in range(BURST):
            await stream.recv()
        spent += time.process_time() - start
    stream.close()
    out.close()
    return spent


async def send_rows(count: int) -> float:
    """Processor time (s) of sending bursts in one system call, as the front end sends states."""
    into, out = open_socket("127.0.0.1", 0), sender()
    port = await UdpSocket.wrap(out, lambda _data, _address: None)
    rows = np.zeros((BURST, len(PAYLOAD)), np.uint8)
    addresses = sendmmsg.pack_address(into.getsockname()) * BURST
    start = time.process_time()
    for _ in range(count // BURST):
        port.send_rows(rows, addresses)
    spent = time.process_time() - start
    port.close()
    into.close()
    return spent


async def send_library(count: int) -> float:
    """Processor time (s) of sending each datagram with asyncio-dgram."""
    into, out = open_socket("127.0.0.1", 0), sender()
    stream: Any = await asyncio_dgram.from_socket(out)
    address = into.getsockname()
    start = time.process_time()
    for _ in range(count):
        await stream.send(PAYLOAD, address)
    spent = time.process_time() - start
    stream.close()
    into.close()
    return spent


async def send_bare(count: int) -> float:
    """Processor time (s) of ``sendto`` for each datagram."""
    into, out = open_socket("127.0.0.1", 0), sender()
    address = into.getsockname()
    start = time.process_time()
    for _ in range(count):
        out.sendto(PAYLOAD, address)
    spent = time.process_time() - start
    out.close()
    into.close()
    return spent


async def flood(count: int) -> float:
    """Memory (MB) that asyncio-dgram keeps when the program that owns the stream is busy with one datagram at a time."""
    into, out = open_socket("127.0.0.1", 0), sender()
    address = into.getsockname()
    stream = await asyncio_dgram.from_socket(into)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count // BURST):
        fill(out, address, BURST)
        for _ in range(BURST):
            await asyncio.sleep(0)  # other tasks run; nobody calls recv
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    stream.close()
    out.close()
    return grown


def main(count: int) -> None:
    """Print one line for each way."""
    ways: dict[str, Callable[[int], Coroutine[Any, Any, float]]] = {
        "receive: recvfrom": bare,
        "receive: wrapper with a handler": wrapped,
        "receive: asyncio-dgram, recv": library,
        "send: sendmmsg": send_rows,
        "send: sendto": send_bare,
        "send: asyncio-dgram, send": send_library,
    }
    best: dict[str, float] = {name: min(asyncio.run(way(count)) for _ in range(ROUNDS)) for name, way in ways.items()}
    for name, spent in best.items():
        print(f"{name:34} {1e6 * spent / count:6.2f} us per datagram")
    print(f"{count} datagrams that nobody reads: asyncio-dgram keeps {asyncio.run(flood(count)):.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40_000)
