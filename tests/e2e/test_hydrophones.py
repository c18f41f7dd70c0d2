"""Samples of a hydrophone from a server, its emulator and a broker over the network: when the ping arrives, what is left
of it when the emulator is killed, and the same bytes from a server, a trial in one process and a Lab.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Server
from tests.e2e.test_remote_emulators import await_lockstep, step, stop
from tests.e2e.test_sensors import processes
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.frame_rings import FrameReader
from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_sdk.log import frames
from wavesim_sdk.shared_memory import OWNER, SYNCHRONOUS
from wavesim_sdk.testing import LossyProxy
from wavesim_server import Lab
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("hydrophones"), pytest.mark.timeout(240)]

SPEED, PULSE, RATE, CARRIER = 1500.0, 4e-3, 48e3, 12e3
PLACE, SOURCE, FAR = (0.0, 0.0, 5.0), (30.0, 0.0, 5.0), 0.5
TICKS = 80  #: of 10 ms
#: elements of a second record of each arrival, which describes only eight elements
MORE = "".join(f'<element position="0 {0.1 * k:.1f} 0 m"/>' for k in range(1, 9))
#: the ROV floats freely; the pinger sends at 0.1 s and at 0.4 s
WORLD = f"""<time step="10 ms" pace="fast" duration="0.8 s"/><log state_rate="100 Hz"/><network lockstep_timeout="60 s" keepalive_timeout="60 s"/>
<world><bed depth="200 m"/></world><acoustics sound_speed="{SPEED} m/s" absorption="0 dB/m" ambient_noise="70 dB"/>
<fleet><vehicle name="rov" model="bluerov2-heavy" position="0 0 5 m" client="{{client}}"><sensors>
<hydrophone name="ears" sampling="48 kHz" rate="20 Hz" gain="40 dB" log="1"><element position="0 0 0 m"/><element position="{FAR} 0 0 m"/>
{MORE}</hydrophone></sensors></vehicle>
<buoy name="pinger" model="buoy" position="30 0 5 m"><transducer source_level="160 dB" pulse="4 ms" recharge="100 ms">
<pinger frequency="12 kHz" period="0.3 s" offset="0.1 s"/></transducer>
<mooring anchor="30 0 200 m" length="194.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy></fleet>"""


def joined(blocks: list[ImagingFrame]) -> np.ndarray:
    """All samples as one signal; no block may be missing, except before the first."""
    for before, block in itertools.pairwise(blocks):
        assert block.first_sample == before.first_sample + int(before.record["bins"])
    assert blocks[0].first_sample == 0
    return np.hstack([b.pressures for b in blocks])


def arrival(pressure: np.ndarray, since: float, until: float) -> float:
    """The time at which a pulse with symmetric edges is half over: the centroid of its power, less half its length."""
    first, end = round(since * RATE), round(until * RATE)
    power = pressure[first:end] ** 2
    return float(np.sum(power * np.arange(first, end)) / np.sum(power)) / RATE - 0.5 * PULSE


def test_a_lab_hears_the_ping_at_the_right_time_and_level(config: Callable[..., LoadedConfig]) -> None:
    lab = Lab(config(WORLD.format(client="none").replace("<hydrophone", '<hydrophone ambient="no"')), imaging=True)
    lab.advance(20)
    snapshot = lab.snapshot()
    before = lab.take_frames()
    lab.advance(15)
    after = lab.take_frames()
    sound = joined([*before, *after])
    for channel, distance in enumerate((30.0, 30.0 - FAR)):
        at = arrival(sound[channel], 0.115, 0.128)
        assert at == pytest.approx(0.1 + distance / SPEED, abs=20e-6), (
            "a fifth of the echoes' delay would be 100 times as much"
        )
        ping = sound[channel, round(0.115 * RATE) : round(0.128 * RATE)]
        level = 10.0 * math.log10(float(np.sum(ping**2)) / (PULSE * RATE))  # the mean square over the length
        assert level == pytest.approx(160.0 - 20.0 * math.log10(30.0), abs=0.1), "that of the reference point"
    assert not sound[:, : round(0.1 * RATE)].any()
    newest = lab.frame("rov", "ears")
    assert (newest.first_sample, newest.payload) == (after[-1].first_sample, after[-1].payload)
    lab.restore(snapshot)
    lab.advance(15)
    assert (joined([*before, *lab.take_frames()]) == sound).all(), "again after a return to a snapshot"


def test_killed_replaced_and_the_same_bytes_everywhere(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    """The emulator is killed between the pings and replaced after the second one: its successor still hears it."""
    loaded = config(WORLD.format(client="optional"))
    server = serve(loaded.path, "--log", str(tmp_path / "run.mcap"))
    shared = SharedState(server.name)

    def emulate() -> subprocess.Popen[str]:
        header = shared.vehicles["hydrophone"].header
        before = int(header[OWNER])
        process = launch("emulate", "hydrophone", loaded.path, "-s", server.name)
        processes.append(process)
        limit = time.monotonic() + 100.0
        while int(header[OWNER]) in (0, before) or not header[SYNCHRONOUS]:
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.02)
        return process

    first = emulate()
    got: dict[int, ImagingFrame] = {}
    with Broker("rov", ("127.0.0.1", server.port), lockstep=0.01) as broker:
        broker.subscribe_frames("ears")
        server.send("start")
        ears = FrameReader.open(server.name, "rov", "ears")
        for tick, step in enumerate(broker.steps()):
            assert step.time == pytest.approx(0.01 * tick, abs=0.011)
            got.update({f.first_sample: f for f in broker.take_frames()})
            if tick == 30:
                first.kill()
                first.wait(30)
                killed = int(ears.rings.done[ears.ring])
            if tick == 55:
                assert int(ears.rings.done[ears.ring]) == killed, "no emulator makes blocks"
                emulate()
            broker.answer({})
        got.update({f.first_sample: f for f in broker.take_frames()})
    server.send("shutdown")
    assert server.process.wait(60) == 0

    logged = list(frames(tmp_path / "run.mcap", "rov", "ears"))
    lab = Lab(config(WORLD.format(client="none")), imaging=True)  # no client has to join
    lab.advance(TICKS)
    expected = lab.take_frames()
    assert [f.first_sample for f in logged] == [f.first_sample for f in expected][: len(logged)]
    assert len(logged) >= len(expected) - 1 > killed + 4
    assert all(a.payload == b.payload for a, b in zip(logged, expected, strict=False))
    assert len(got) > 5 and all(f.payload == logged[int(f.record["number"]) - 1].payload for f in got.values())
    sound = joined(logged)
    for ping in (0.1, 0.4):
        at = arrival(sound[0], ping + 0.015, ping + 0.028)
        assert at == pytest.approx(ping + 30.0 / SPEED, abs=50e-6), "with noise"


def test_a_trial_in_one_process_gives_the_same_bytes(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    loaded = config(WORLD.format(client="none").replace("<log ", '<log file="run.mcap" '))
    trial = InProcessTrial(loaded, tmp_path / "out", quiet=True)
    trial.run(plots=False)
    trial.check()
    logged = list(frames(trial.log, "rov", "ears"))
    lab = Lab(loaded, imaging=True)
    lab.advance(TICKS)
    expected = lab.take_frames()
    assert len(logged) >= len(expected) - 1 > 10
    assert all(a.data == b.data for a, b in zip(logged, expected, strict=False))


def test_an_emulator_on_another_machine_gives_the_same_bytes(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    """It is replaced between the arrivals of the pings, and 5 % of all datagrams are lost."""
    loaded = config(WORLD.format(client="none"))
    server = serve(loaded.path, "--speed", "0", "--log", str(tmp_path / "run.mcap"))
    with LossyProxy(("127.0.0.1", server.port), loss=0.05, seed=5) as proxy:
        for ticks in (42, 37):  # no block is due at the last tick
            emulator = launch("emulate", "all", loaded.path, "-s", "{}:{}".format(*proxy.address))
            processes.append(emulator)
            await_lockstep(server, ("hydrophone",))
            step(server, ticks)
            stop(emulator)
        status = server.status()
    assert status["sensors_late"] == 0 and status["damage"] == []
    assert server.end() == 0
    logged = list(frames(tmp_path / "run.mcap", "rov", "ears"))
    lab = Lab(loaded, imaging=True)
    lab.advance(TICKS - 1)
    expected = lab.take_frames()
    assert len(logged) == len(expected) > 10
    assert all(a.data == b.data for a, b in zip(logged, expected, strict=True))
    assert arrival(joined(logged)[0], 0.415, 0.428) == pytest.approx(0.4 + 30.0 / SPEED, abs=50e-6)
