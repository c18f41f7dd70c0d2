"""The socket of the server: bounded; every error of a peer or the system is counted, and the server continues."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.wire import sendmmsg, udp
from wavesim_sdk.wire.messages import MAX_DATAGRAM
from wavesim_sdk.wire.sendmmsg import pack_address
from wavesim_sdk.wire.udp import FEW, SOCKET_BUFFER, UdpSocket, open_socket

pytestmark = [pytest.mark.timeout(20)]
NOWHERE = ("127.0.0.1", 0)  #: no port: refused by the system


@pytest.fixture(params=["127.0.0.1", "::1"])
def peer(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """Somebody else's socket."""
    with socket.socket(socket.AF_INET6 if ":" in request.param else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((request.param, 0))
        sock.settimeout(5.0)
        yield sock


def address_of(sock: socket.socket) -> tuple[str, int]:
    host, port = sock.getsockname()[:2]
    return host, port


def beside(peer: socket.socket) -> socket.socket:
    """A socket as the server opens it."""
    return open_socket(address_of(peer)[0], 0)


# -- the socket ------------------------------------------------------------------------------------------------


def test_a_socket_has_large_buffers_and_never_waits(peer: socket.socket) -> None:
    with beside(peer) as sock:
        assert sock.family == peer.family and sock.gettimeout() == 0.0
        assert sock.getsockname()[0] == peer.getsockname()[0] and sock.getsockname()[1] > 0
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            with socket.socket(peer.family, socket.SOCK_DGRAM) as asked:  # how much of it the system grants
                asked.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER)
                assert sock.getsockopt(socket.SOL_SOCKET, option) == asked.getsockopt(socket.SOL_SOCKET, option)


def test_a_port_that_is_taken_is_an_error_and_costs_no_descriptor(peer: socket.socket) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(OSError, match="in use") as error:
        open_socket(*address_of(peer))
    assert set(Path("/proc/self/fd").iterdir()) == before, error


# -- what comes --------------------------------------------------------------------------------------------------


class Taken(list[Any]):
    """Datagrams that were handed over."""

    def take(self, *datagram: Any) -> None:
        self.append(datagram)

    async def number(self, count: int) -> None:
        """Wait until there are so many."""
        while len(self) < count:
            await asyncio.sleep(0)


async def test_datagrams_are_handed_over_in_order_with_their_sender(peer: socket.socket) -> None:
    taken = Taken()
    port = await UdpSocket.wrap(sock := beside(peer), taken.take)
    for data in (b"one", b"two"):
        peer.sendto(data, address_of(sock))
    await taken.number(2)
    assert taken == [(b"one", address_of(peer)), (b"two", address_of(peer))]
    port.close()
    await asyncio.sleep(0)
    assert len(taken) == 2 and port.errors == 0, "the end of the transport is no datagram"


async def test_an_error_of_the_socket_is_counted_and_the_next_datagram_comes(peer: socket.socket) -> None:
    with socket.socket(peer.family, socket.SOCK_DGRAM) as gone:
        gone.bind((address_of(peer)[0], 0))
        closed = gone.getsockname()
    sock = beside(peer)
    sock.connect(closed)
    taken = Taken()
    port = await UdpSocket.wrap(sock, taken.take)
    for count in (1, 2):
        sock.send(b"is anybody there?")  # the system tells that nobody is: an error at the next call
        while port.errors < count:
            await asyncio.sleep(0)
    sock.connect(address_of(peer))
    for data in (b"one", b"two"):
        peer.sendto(data, address_of(sock))
    await taken.number(2)
    assert taken == [(b"one", address_of(peer)), (b"two", address_of(peer))]
    assert port.errors == 2
    port.close()


async def test_all_that_came_by_now_is_drained(peer: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    port = await UdpSocket.wrap(sock := beside(peer), Taken().take)
    for k in range(5):
        peer.sendto(b"%d" % k, address_of(sock))
    peer.sendto(bytes(1400), address_of(sock))
    monkeypatch.setattr(udp, "MAX_PENDING", 3)
    first = list(port.receive_pending())
    assert first == [(b"%d" % k, address_of(peer)) for k in range(3)], "no more in a turn: others want to be served"
    rest = [data for data, _ in port.receive_pending()]
    assert rest[:2] == [b"3", b"4"] and len(rest[2]) == MAX_DATAGRAM + 1, "too large, and seen to be"
    assert list(port.receive_pending()) == [] and port.errors == 0
    port.close()
    await asyncio.sleep(0)
    sock.close()
    assert list(port.receive_pending()) == [] and list(port.receive_pending()) == [] and port.errors == 2


async def test_what_the_system_discards_is_counted(peer: socket.socket) -> None:
    """The receive buffer is full because no datagram is read, as in a server that is too slow."""
    taken = Taken()
    port = await UdpSocket.wrap(sock := beside(peer), taken.take)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(200):
        peer.sendto(bytes(1000), address_of(sock))
    left = len(list(port.receive_pending()))
    assert 0 < left < 200 and port.dropped == 200 - left and port.errors == 0
    port.close()


# -- what goes ---------------------------------------------------------------------------------------------------


async def test_one_goes_at_once_or_is_counted(peer: socket.socket) -> None:
    port = await UdpSocket.wrap(beside(peer), Taken().take)
    longest = bytes(MAX_DATAGRAM)
    for data in (b"one", longest):
        port.send_now(data, address_of(peer))
        assert peer.recv(2048) == data
    with pytest.raises(ValueError, match="a datagram of 1201 bytes exceeds the maximum of 1200"):
        port.send_now(longest + b"x", address_of(peer))
    assert port.errors == 0
    for count in (1, 2):
        port.send_now(b"x", (address_of(peer)[0], 0))
        assert port.errors == count
    port.close()


@pytest.mark.parametrize("count", [1, FEW - 1, FEW, 10])
async def test_many_go_by_one_call_and_few_by_one_each(
    peer: socket.socket, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    real = sendmmsg.send_datagrams

    def counted(sock: socket.socket, datagrams: Any, addresses: bytes) -> int:
        calls.append(len(datagrams))
        return real(sock, datagrams, addresses)

    monkeypatch.setattr(sendmmsg, "send_datagrams", counted)
    port = await UdpSocket.wrap(beside(peer), Taken().take)
    to = [(address_of(peer)[0], 0) if k == 1 else address_of(peer) for k in range(count)]  # the second goes nowhere
    for turn in (1, 2):
        port.send_each([(b"%d" % k, address) for k, address in enumerate(to)])
        for k in range(count):
            assert k == 1 or peer.recv(10) == b"%d" % k
        assert port.errors == turn * (count > 1)
    assert calls == ([count] * 2 if count >= FEW else [])
    port.close()


async def test_rows_of_a_matrix_go_each_to_its_address(peer: socket.socket) -> None:
    port = await UdpSocket.wrap(beside(peer), Taken().take)
    rows = np.frombuffer(b"aabbccdd", np.uint8).reshape(4, 2)
    good, bad = pack_address(address_of(peer)), pack_address((address_of(peer)[0], 0))
    for turn in (1, 2):
        port.send_rows(rows, good + bad + bad + good)
        assert [peer.recv(10), peer.recv(10)] == [b"aa", b"dd"] and port.errors == 2 * turn
    port.close()
