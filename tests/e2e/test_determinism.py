"""One configuration and seed give one hash: ten networked lockstep brokers, with viewers, under load, on one and two
threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server
from wavesim_sdk.attach import SharedState
from wavesim_sdk.log import read
from wavesim_sdk.shared_memory import SYNCHRONOUS
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.long, pytest.mark.system, pytest.mark.xdist_group("determinism"), pytest.mark.timeout(240)]

BROKERS = 10
CONFIG = """<time step="20 ms" duration="12 s"/><log state_rate="10 Hz"/><network lockstep_timeout="60 s" keepalive_timeout="60 s"/>
<world><bed depth="80 m"/><current north="0.1 m/s"><drift speed="0.1 m/s" speed_deviation="0.05 m/s"/></current>
<wind speed="6 m/s" gusts="20"/></world><acoustics ambient_noise="60 dB"/><fleet><sensors><ctd rate="5 Hz"/><ahrs rate="5 Hz"/></sensors>{fleet}
<buoy name="c" model="buoy" position="150 80 1 m"/></fleet>"""
PROGRAM = """
import sys
from wavesim_sdk.broker import Broker
k = int(sys.argv[1])
with Broker(f"v{k}", ("127.0.0.1", int(sys.argv[2])), lockstep=0.1 * (1 + k % 2)) as broker:
    for n, step in enumerate(broker.steps()):
        if n % 12 == k:
            broker.ping(25_000.0)
        turn = 0.02 * len(step.receptions) + (0.1 * step.sensors.ahrs.heading if "ahrs" in step.state.sensors else 0.0)
        broker.answer([3.0 + 0.3 * k, 0.1 * turn, -0.1 * turn], [*step.state.motion[:3], *[1.0] * 7])
"""
LOAD = "while True: sum(i * i for i in range(10_000))"


def run(
    loaded: LoadedConfig,
    serve: Callable[..., Server],
    log: Path,
    *,
    threads: int = 1,
    viewer: bool = False,
    load: bool = False,
) -> str:
    """The hash of a run."""
    os.environ["NUMBA_NUM_THREADS"] = str(threads)
    try:
        server = serve(loaded.path, "--speed", "0", "--log", str(log))
    finally:
        del os.environ["NUMBA_NUM_THREADS"]
    command = [sys.executable, "-m", "wavesim_sdk", "emulate"]
    others = [
        subprocess.Popen([*command, s, str(loaded.path), "-s", server.name], stderr=subprocess.DEVNULL)
        for s in ("ctd", "ahrs")
    ]
    brokers = [subprocess.Popen([sys.executable, "-c", PROGRAM, str(k), str(server.port)]) for k in range(BROKERS)]
    if viewer:
        code = f"from wavesim_sdk.observer import Observer\nwith Observer('eye', ('127.0.0.1', {server.port}), sounds=True) as o:\n    for f in o.frames(): pass"
        others.append(subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL))
    if load:
        others += [subprocess.Popen([sys.executable, "-c", LOAD]) for _ in range(2)]
    try:
        state, limit = SharedState(server.name), time.monotonic() + 60.0
        server.wait(lambda s: s["clients_total"] == BROKERS, 60.0)
        while not all(
            state.vehicles[s].header[SYNCHRONOUS] for s in ("ctd", "ahrs")
        ):  # synchronous from the first tick on
            assert time.monotonic() < limit
            time.sleep(0.02)
        server.send("start")
        for broker in brokers:
            assert broker.wait(120) == 0
        server.wait(lambda s: s["state"] == "ended", 60.0)
        server.send("shutdown")
        assert server.process.wait(30) == 0
    finally:
        for p in (*others, *brokers):
            p.kill()
            p.wait()
    found = read(log)
    assert len(found.series["/acoustics/sent"].records) > 40 and len(found.series["/sensor/v3/ahrs"].records) > 40
    return found.content_hash


def test_one_hash(config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path) -> None:
    fleet = "".join(
        f'<vehicle name="v{k}" model="{("lauv", "remus100")[k % 2]}" position="{20 * k} {15 * (k % 3)} {10 + k} m" client="required"/>'
        for k in range(BROKERS)
    )
    loaded = config(CONFIG.format(fleet=fleet))
    first = run(loaded, serve, tmp_path / "a.mcap")
    assert run(loaded, serve, tmp_path / "b.mcap", threads=2, viewer=True) == first
    assert run(loaded, serve, tmp_path / "c.mcap", load=True) == first
