"""Frames of an imaging sonar and a camera, from their process to a program over a lossy network, while the process is
frozen, killed and replaced.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Server
from tests.e2e.test_sensors import processes
from tests.emulators.bench import STEP_NS, Bench
from tests.nursery import launch
from wavesim_emulators.base import Emulator
from wavesim_emulators.sonar.camera import CameraEmulator
from wavesim_emulators.sonar.emulator import SonarEmulator
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.frame_rings import FrameReader, FrameRings, remove_rings
from wavesim_sdk.log import frames, read
from wavesim_sdk.shared_memory import OWNER, SYNCHRONOUS
from wavesim_sdk.tables import STATE
from wavesim_sdk.testing import LossyProxy
from wavesim_world.config import LoadedConfig
from wavesim_world.sonars.frame_sizes import create_rings

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("sonars"), pytest.mark.timeout(200)]

PERIOD = 25  #: ticks
WORLD = """<time pace="fast"/><log state_rate="10 Hz"/><network lockstep_timeout="4 s" keepalive_timeout="60 s"/>
<world><bed depth="9 m" slope_north="0.1"/><current north="0.5 m/s"/></world>
<fleet><vehicle name="auv" model="lauv" position="0 0 4 m" client="optional"><sensors>
{sensor}</sensors></vehicle></fleet>"""
EYES: dict[str, tuple[str, type[Emulator]]] = {
    "sonar": ('preset="m750d-low" range="15 m" beams="32" bins="200" speckle="no"', SonarEmulator),
    "camera": ('width="60" height="40" attitude="0 -90 0 deg" log="1"', CameraEmulator),
}


@pytest.mark.parametrize("kind", EYES)
def test_lost_frozen_killed_and_replaced(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
    kind: str,
) -> None:
    keys, emulator = EYES[kind]
    loaded = config(WORLD.replace("{sensor}", f'<{kind} name="eye" rate="10 Hz" {keys}/>'))
    server = serve(loaded.path, "--log", str(tmp_path / "run.mcap"))
    shared = SharedState(server.name)

    def emulate() -> subprocess.Popen[str]:
        """A process that is asked and waited for."""
        header = shared.vehicles[kind].header
        before = int(header[OWNER])
        process = launch("emulate", kind, loaded.path, "-s", server.name)
        processes.append(process)
        limit = time.monotonic() + 60.0
        while int(header[OWNER]) in (0, before) or not header[SYNCHRONOUS]:
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.02)
        return process

    first = emulate()
    got = {}
    with (
        LossyProxy(("127.0.0.1", server.port), loss=0.05, duplicate=0.02, delay=(0.0, 0.002), seed=4) as proxy,
        Broker("auv", proxy.address, lockstep=0.1) as broker,
    ):
        broker.subscribe_frames("eye")
        server.send("start")

        def go_on(steps: int) -> None:
            for n, _ in enumerate(broker.steps(), 1):
                got.update({int(f.record["number"]): f for f in broker.take_frames()})
                broker.answer([0.0])
                if n == steps:
                    return

        eye = FrameReader.open(server.name, "auv", "eye")
        done, ring = eye.rings.done, eye.ring

        def until(frames: int) -> None:
            """Steps until so many frames were made: who missed a step on a busy machine asks to be waited for again."""
            limit = time.monotonic() + 60.0
            while int(done[ring]) < frames:
                assert time.monotonic() < limit
                go_on(1)

        until(30)
        header = shared.vehicles[kind].header
        while not header[SYNCHRONOUS]:
            until(int(done[ring]) + 1)
        owner = int(header[OWNER])
        os.kill(owner, signal.SIGSTOP)
        before = shared.clock()["sensors_late"]
        go_on(8)
        assert shared.clock()["sensors_late"] > before, "it was waited for, then no longer"
        frozen = int(done[ring])
        os.kill(owner, signal.SIGCONT)
        until(frozen + 3)
        first.kill()
        first.wait(30)
        go_on(3)
        killed = int(done[ring])
        emulate()
        until(killed + 22)
        go_on(1)
        lost = broker.frames_lost
        assert proxy.counts["lost"] > 8
    server.send("shutdown")
    assert server.process.wait(30) == 0

    logged = list(frames(tmp_path / "run.mcap", "auv", "eye"))
    assert [int(f.record["number"]) for f in logged] == list(range(1, len(logged) + 1)), "who takes over goes on"
    assert len(logged) >= killed + 20
    assert len(got) >= 8 and lost >= 3, "one datagram in twenty, seven to a frame"
    for number, frame in got.items():
        assert frame.data == logged[number - 1].data, "whole, the same bytes, or not at all"
    assert len(got) + lost <= len(logged)

    # the same seed, in this process: the same bytes, whoever wrote them
    state = read(tmp_path / "run.mcap").get("/state/auv", STATE)
    remove_rings(server.name)
    create_rings(loaded, server.name)
    try:
        bench = Bench(loaded, emulator, bodies=0, seed=loaded.config.seed, period=PERIOD)
        bench.enter(0, "auv")
        bench.emulator.open(server.name)
        rings = FrameRings.attach(server.name)
        reader = FrameReader(rings, rings.ring_index(kind, 0))
        for frame in logged[:-1]:  # the body may have left before the log had its last state
            k = int(np.searchsorted(state.time_ns, int(frame.record["time_ns"])))
            assert state.time_ns[k] == frame.record["time_ns"]
            bench.state[0] = state.records[k]
            bench.at(int(frame.record["time_ns"]) // STEP_NS)
            again = reader.next()
            assert again is not None and again.data == frame.data
    finally:
        remove_rings(server.name)
