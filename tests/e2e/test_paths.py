"""Addresses over real UDP: an attacker on the path copies the datagrams of a client and delivers them first, from its
own port.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server, wavesim
from wavesim_sdk.broker import Broker
from wavesim_sdk.testing import Address, LossyProxy
from wavesim_sdk.wire import seal
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("network"), pytest.mark.timeout(120)]

ALIVE_S = 1.0  #: keep-alive timeout
SERVER = """<time step="4 ms"/><network keys="trial.keys" keepalive_period="0.2 s" keepalive_timeout="1 s"/>
<fleet><vehicle name="a" model="lauv" position="0 0 20 m" client="optional"/></fleet>"""


class Copier(LossyProxy):
    """The way between a client and its server. Of each datagram of the client a copy arrives before it, from elsewhere. The client's
    own address at the server changes when :meth:`move` is called, as behind a NAT that forgot it."""

    def __enter__(self) -> Copier:
        self.elsewhere = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.elsewhere.bind(("127.0.0.1", 0))
        self.elsewhere.setblocking(False)
        self.copies = self.bytes = 0
        return super().__enter__()

    def __exit__(self, *what: object) -> None:
        super().__exit__(*what)  # type: ignore[arg-type]
        self.elsewhere.close()

    def _pass(self, transport: asyncio.DatagramTransport, data: bytes, to: Address) -> None:
        if to == self.target:
            self.copies += 1
            self.bytes += len(data)
            self.elsewhere.sendto(data, to)
        super()._pass(transport, data, to)

    def move(self) -> None:
        """The client has another address from now on; nothing reaches it at the one before."""
        self._loop.call_soon_threadsafe(self._forget)

    def _forget(self) -> None:
        for transport in self._clients.values():
            transport.close()
        self._clients.clear()

    def answered(self) -> int:
        """Bytes that the server sent to where the copies came from."""
        total = 0
        while True:
            try:
                total += len(self.elsewhere.recv(2048))
            except BlockingIOError:
                return total


def test_whoever_copies_a_session_does_not_end_it(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> None:
    """27 copies within a keep-alive time once ended it: BYE, "no activity". It also moves to another address meanwhile."""
    assert wavesim("keys", tmp_path / "trial.keys", "a").returncode == 0
    server = serve(config(SERVER).path)
    key = seal.find_key(tmp_path / "trial.keys", "a")
    with Copier(("127.0.0.1", server.port)) as way, Broker("a", way.address, key=key) as broker:
        server.send("start")
        for moves in (False, True):
            copies, until = way.copies, time.monotonic() + 3.0 * ALIVE_S
            if moves:
                way.move()
            newest = 0.0
            while time.monotonic() < until or way.copies < copies + 27:
                steps = broker.poll(0.1)
                newest = max([newest, *(step.time for step in steps)])
                broker.answer([5.0])
            before = newest
            while newest < before + 0.3:  # states still come: its server has it, where it is
                newest = max([newest, *(step.time for step in broker.poll(1.0))])
        assert not broker.ended
        drops = server.status()["drops"]
        assert drops["address"] >= 54 and drops.get("replay", 0) == 0, drops  # type: ignore[index,attr-defined]
        assert 0 < way.answered() <= way.bytes
