"""A Micron and an Imagenex head of a vessel on a real server. Both read the same sonar, which sees a wall ahead."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.conftest import CLI, Server
from tests.devices import test_imagenex, test_micron
from tests.devices.bench import device, processes
from tests.nursery import launch
from wavesim_devices.micron import packets as p
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.timeout(200)]
__all__ = ["processes"]

SEA = """<time step="5 ms"/><world><bed depth="40 m"/><obstacles>
<block position="8.5 0 5 m" size="1 40 20 m" material="concrete"/></obstacles></world><network keepalive_timeout="20 s"/>
<fleet><vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="optional"><sensors>
<sonar preset="micron" sector="12 deg" range="20 m" rate="30 Hz" gain="-30" position="0 0 5 m"/>
</sensors></vehicle></fleet>"""


def connect(place: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2])), timeout=40.0)


def strongest(samples: bytes, each: float) -> float:
    return (max(range(len(samples)), key=samples.__getitem__) + 0.5) * each if any(samples) else 0.0


def test_both_heads_see_the_wall(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    path = config(SEA).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "sonar", path, "-s", server.name))
    micron = connect(device(processes, server, "micron", "--tcp", "0"))
    crew = [*CLI, "device", "imagenex", "boat", "--port", str(server.port), "--tcp", "0"]
    processes.append(subprocess.Popen(crew, stdout=subprocess.PIPE, text=True))
    assert processes[-1].stdout is not None
    imagenex = connect(processes[-1].stdout.readline())
    server.send("start")
    limit = time.monotonic() + 90.0
    with micron, imagenex, micron.makefile("rb") as from_micron, imagenex.makefile("rb") as from_imagenex:
        micron.sendall(test_micron.command(control=0x3305, left=3200, right=3200))  # it stares ahead

        def ping_micron() -> float:
            micron.sendall(test_micron.PING)
            while True:
                head = from_micron.read(7)
                packet = head + from_micron.read(int(head[1:5], 16) - 1)
                if packet[10] == p.HEAD_DATA:
                    return strongest(packet[44:-1], 0.5 * 1500.0 * 52 * 640e-9)

        def ping_imagenex() -> float:
            imagenex.sendall(test_imagenex.command("881A"))
            return strongest(test_imagenex.Echoes(from_imagenex.read(513)).samples, 0.02)

        for ping in (ping_micron, ping_imagenex):
            while not (found := ping()):
                assert time.monotonic() < limit, "no echo"
            assert found == pytest.approx(8.3, abs=0.35), "the vessel settles some decimetres astern"
