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


def loopback() -> socket.socket:
    """Return a socket on the loopback interface."""
    return open_socket("127.0.0.1", 0)


def fill(out: socket.socket, address: tuple[str, int]) -> None:
    """Send a burst of datagrams."""
    for _ in range(BURST):
        out.sendto(PAYLOAD, address)


async def received(address: tuple[str, int], count: int, receive: Callable[[], Coroutine[Any, Any, None]]) -> float:
    """Processor time (s) that ``receive``, which takes one burst, needs for ``count`` datagrams."""
    spent = 0.0
    with loopback() as out:
        for _ in range(count // BURST):
            fill(out, address)
            start = time.process_time()
            await receive()
            spent += time.process_time() - start
    return spent


async def sent(count: int, send: Callable[[tuple[str, int]], Coroutine[Any, Any, None]]) -> float:
    """Processor time (s) that ``send``, which sends one burst to an address, needs for ``count`` datagrams."""
    with loopback() as into:
        start = time.process_time()
        for _ in range(count // BURST):
            await send(into.getsockname())
        return time.process_time() - start


async def bare(count: int) -> float:
    """Processor time (s) that a loop of ``recvfrom`` takes for ``count`` datagrams."""
    with loopback() as into:

        async def receive() -> None:
            for _ in range(BURST):
                into.recvfrom(2048)

        return await received(into.getsockname(), count, receive)


async def wrapped(count: int) -> float:
    """Processor time (s) of the wrapper, used as the front end uses it."""
    taken, event = 0, asyncio.Event()

    def take(data: bytes, source: tuple[str, int]) -> None:
        nonlocal taken
        taken += 1 + sum(1 for _ in port.receive_pending())
        if taken % BURST == 0:
            event.set()

    async def receive() -> None:
        await event.wait()
        event.clear()

    into = loopback()
    port = await UdpSocket.wrap(into, take)
    spent = await received(into.getsockname(), count, receive)
    port.close()
    return spent


async def library(count: int) -> float:
    """Processor time (s) of asyncio-dgram: one task awaits ``recv``."""
    into = loopback()
    address, stream = into.getsockname(), await asyncio_dgram.from_socket(into)

    async def receive() -> None:
        for _ in range(BURST):
            await stream.recv()

    spent = await received(address, count, receive)
    stream.close()
    return spent


async def send_rows(count: int) -> float:
    """Processor time (s) of sending bursts in one system call, as the front end sends states."""
    port = await UdpSocket.wrap(loopback(), lambda _data, _address: None)
    rows = np.zeros((BURST, len(PAYLOAD)), np.uint8)

    async def send(address: tuple[str, int]) -> None:
        port.send_rows(rows, sendmmsg.pack_address(address) * BURST)

    spent = await sent(count, send)
    port.close()
    return spent


async def send_library(count: int) -> float:
    """Processor time (s) of sending each datagram with asyncio-dgram."""
    stream: Any = await asyncio_dgram.from_socket(loopback())

    async def send(address: tuple[str, int]) -> None:
        for _ in range(BURST):
            await stream.send(PAYLOAD, address)

    spent = await sent(count, send)
    stream.close()
    return spent


async def send_bare(count: int) -> float:
    """Processor time (s) of ``sendto`` for each datagram."""
    with loopback() as out:

        async def send(address: tuple[str, int]) -> None:
            fill(out, address)

        return await sent(count, send)


async def flood(count: int) -> float:
    """Memory (MB) that asyncio-dgram keeps if no task fetches the datagrams."""
    into = loopback()
    address, stream = into.getsockname(), await asyncio_dgram.from_socket(into)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with loopback() as out:
        for _ in range(count // BURST):
            fill(out, address)
            for _ in range(BURST):
                await asyncio.sleep(0)  # other tasks run, but none calls recv
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    stream.close()
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
    print(f"{count} datagrams that no task fetches: asyncio-dgram keeps {asyncio.run(flood(count)):.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40_000)
