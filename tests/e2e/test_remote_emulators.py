"""Emulators that serve a server over the network: the same values as on its machine, replaced while it runs, and refused."""

from __future__ import annotations

import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CLI, Server, wavesim
from tests.e2e.test_sensors import processes
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.emulator_attachment import RemoteAttachment
from wavesim_sdk.errors import Refused, SessionLost
from wavesim_sdk.log import frames, read
from wavesim_sdk.shared_memory import OWNER, SYNCHRONOUS
from wavesim_sdk.testing import LossyProxy
from wavesim_sdk.wire import seal
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("remote"), pytest.mark.timeout(240)]

#: dvl has a latency, wet rays and no value near the bed; imu has hidden state, which a replacement continues
SEA = """<time step="10 ms"/><log state_rate="100 Hz"/><network keepalive_timeout="20 s" lockstep_timeout="20 s" {network}/>
<world><bed depth="40 m"/><current north="0.2 m/s"/></world><fleet>
<vehicle name="v" model="lauv" position="0 0 10 m" client="none"><sensors><ctd rate="10 Hz"/><imu rate="50 Hz"/>
<dvl rate="5 Hz" latency="0.1 s"/></sensors></vehicle>
<vehicle name="w" model="lauv" position="20 0 12 m" client="none"/></fleet>"""
SENSORS = ("ctd", "imu", "dvl")
HEADER = struct.Struct("<4sBBHQII")
Serve = Callable[..., Server]
Make = Callable[..., LoadedConfig]


def await_lockstep(server: Server, sensors: tuple[str, ...], timeout: float = 60.0) -> SharedState:
    """Wait until the engine waits for these emulators."""
    state, limit = SharedState(server.name), time.monotonic() + timeout
    while any(not state.vehicles[s].header[SYNCHRONOUS] for s in sensors):
        assert time.monotonic() < limit, "the emulators did not start"
        time.sleep(0.02)
    return state


def step(server: Server, ticks: int) -> None:
    """Advance the stopped clock. At the last of these ticks no value may be due: the clock shows it before the answers."""
    end = int(str(server.status()["tick"])) + ticks
    server.send("step", ticks=ticks)
    server.wait(lambda s: int(str(s["tick"])) == end, 60.0)


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


@pytest.fixture
def hash_of(
    config: Make, serve: Serve, processes: list[subprocess.Popen[str]], tmp_path: Path
) -> Callable[[list[tuple[str, int]]], str]:
    """Run a server whose emulators are replaced: (where, ticks) of each part. Return the content hash of its log."""
    path = config(SEA.format(network="")).path

    def run(parts: list[tuple[str, int]], loss: float = 0.0) -> str:
        log = tmp_path / f"{len(list(tmp_path.glob('*.mcap')))}.mcap"
        server = serve(path, "--speed", "0", "--seed", "7", "--log", str(log))
        with LossyProxy(("127.0.0.1", server.port), loss=loss, duplicate=loss / 2, seed=3) as proxy:
            address = "{}:{}".format(*proxy.address) if loss else f"127.0.0.1:{server.port}"
            for where, ticks in parts:
                emulators = launch("emulate", "all", path, "-s", server.name if where == "local" else address)
                processes.append(emulators)
                await_lockstep(server, SENSORS)
                remote = server.status()["emulators"]
                assert isinstance(remote, list) and len(remote) == (0 if where == "local" else 3)
                step(server, ticks)
                stop(emulators)
            status = server.status()
        assert status["sensors_late"] == 0 and status["damage"] == []
        assert server.end() == 0
        found, ticks = read(log), sum(n for _, n in parts)
        assert found.damage_notice == ""
        counts = {name: len(series.time_ns) for name, series in found.sensors("v").items()}
        assert counts["ctd"] == ticks // 10 + 1 and counts["imu"] == ticks // 2 + 1, counts
        assert found.content_hash
        return found.content_hash

    return run


def test_the_same_run_over_the_network(hash_of: Callable[..., str]) -> None:
    local = hash_of([("local", 401)])
    assert hash_of([("remote", 401)]) == local


def test_replaced_while_the_server_runs(hash_of: Callable[..., str]) -> None:
    """Local, remote, local: hidden states and sequence numbers continue, as between two local processes."""
    local = hash_of([("local", 151), ("local", 152), ("local", 150)])
    assert hash_of([("local", 151), ("remote", 152), ("local", 150)]) == local


def test_a_lossy_link_is_the_same_run(hash_of: Callable[..., str]) -> None:
    local = hash_of([("local", 101)])
    assert hash_of([("remote", 101)], loss=0.1) == local


FRAMES = """<time step="10 ms"/><network keepalive_timeout="20 s" lockstep_timeout="20 s"/><world><bed depth="25 m"/></world><fleet>
<vehicle name="v" model="lauv" position="0 0 10 m" client="none"><sensors>
<camera name="eye" rate="4 Hz" width="320" height="240" attitude="0 -60 0 deg" log="1"/>
<sonar preset="m750d-low" beams="32" bins="64" range="30 m" rate="4 Hz"/></sensors></vehicle></fleet>"""


def frames_of(path: Path) -> list[tuple[str, int, bytes]]:
    """All frames of a log by name of the instrument and number: name, number and bytes."""
    return sorted((frame.name, int(frame.record["number"]), frame.data) for frame in frames(path))


def test_frames_over_the_network(
    config: Make, serve: Serve, processes: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    """The camera and the sonar of WaVeSim: equal frames, and equal hashes, also with a replacement and 5 % loss."""
    path, found = config(FRAMES).path, []
    for parts in ("local local", "remote local", "lossy lossy"):
        log = tmp_path / f"{parts[:5]}.mcap"
        server = serve(path, "--speed", "0", "--seed", "7", "--log", str(log))
        with LossyProxy(("127.0.0.1", server.port), loss=0.05, seed=5) as proxy:
            addresses = {
                "local": server.name,
                "remote": f"127.0.0.1:{server.port}",
                "lossy": "{}:{}".format(*proxy.address),
            }
            for where in parts.split():
                emulators = launch("emulate", "all", path, "-s", addresses[where])
                processes.append(emulators)
                await_lockstep(server, ("camera", "sonar"))
                step(server, 101)
                stop(emulators)
        status = server.status()
        assert status["sensors_late"] == 0 and status["damage"] == []
        assert server.end() == 0
        found.append((read(log).content_hash, frames_of(log)))
    assert len(found[0][1]) == 9 + 8, "the first ping of the sonar would begin before the run"
    assert found[1] == found[0] and found[2] == found[0]


def test_a_renderer_of_the_user(
    config: Make, serve: Serve, processes: list[subprocess.Popen[str]], root: Path, tmp_path: Path
) -> None:
    """The example of the documents, over the network and, unchanged, on the server's machine."""
    path = config(FRAMES.replace("<sonar", "<!--").replace('4 Hz"/></sensors>', "--></sensors>")).path
    found = []
    for how in ("remote", "local"):
        log = tmp_path / f"{how}.mcap"
        server = serve(path, "--speed", "0", "--log", str(log))
        address = server.name if how == "local" else f"127.0.0.1:{server.port}"
        renderer = subprocess.Popen([sys.executable, root / "examples/remote-camera/renderer.py", address], text=True)
        processes.append(renderer)
        await_lockstep(server, ("camera",))
        step(server, 101)
        assert server.end() == 0
        assert renderer.wait(20) == 0, "it ends with the server"
        found.append(frames_of(log))
    assert [number for _, number, _ in found[0]] == [1, 2, 3, 4, 5]
    assert found[0] == found[1]


def test_refusals(config: Make, serve: Serve, processes: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    keys = tmp_path / "trial.keys"
    assert wavesim("keys", keys, "ctd", "imu").returncode == 0
    sea = SEA.format(network='keys="trial.keys"').replace('keepalive_timeout="20 s"', 'keepalive_timeout="200 s"')
    path = config(sea).path  # the attachment below answers nothing while other programs start
    server = serve(path, "--speed", "1")
    address = ("127.0.0.1", server.port)
    ctd, imu = (seal.find_key(keys, name) for name in ("ctd", "imu"))
    with pytest.raises(Refused, match="this key belongs to 'imu'"):
        RemoteAttachment(address, "ctd", key=imu)
    with pytest.raises(SessionLost, match="check that it has this key"):
        RemoteAttachment(address, "ctd", key=bytes(32))
    with RemoteAttachment(address, "ctd", key=ctd):
        with pytest.raises(Refused, match=r"the emulator at 127.0.0.1:\d+ already serves 'ctd'; stop it first"):
            RemoteAttachment(address, "ctd", key=ctd)
        second = wavesim("emulate", "ctd", path, "-s", server.name)
        assert (
            second.returncode != 0 and "already writes the values of the sensor 'ctd'; stop it first" in second.stderr
        )
    processes.append(launch("emulate", "ctd", path, "-s", server.name))
    state = await_lockstep(server, ("ctd",))
    with pytest.raises(
        Refused, match=rf"process {state.vehicles['ctd'].header[OWNER]} on the server's machine already"
    ):
        RemoteAttachment(address, "ctd", key=ctd)


def silent_sea(keepalive: str, lockstep: str) -> str:
    network = f'keepalive_timeout="{keepalive}" lockstep_timeout="{lockstep}"'
    return SEA.format(network="").replace('keepalive_timeout="20 s" lockstep_timeout="20 s"', network)


def test_a_silent_emulator_is_removed_and_replaced(
    config: Make, serve: Serve, processes: list[subprocess.Popen[str]]
) -> None:
    """Keep-alive ends its session before the engine's time limit: no value is late, and another emulator continues."""
    path = config(silent_sea("3 s", "60 s")).path
    server = serve(path, "--speed", "0")
    silent = subprocess.Popen([*CLI, "emulate", "ctd", path, "-s", f"127.0.0.1:{server.port}"], text=True)
    processes.append(silent)
    state = await_lockstep(server, ("ctd",))
    step(server, 101)
    silent.send_signal(signal.SIGSTOP)
    try:
        step(server, 100)
        status = server.status()
        assert (status["emulators"], status["sensors_late"]) == ([], 0)
        assert state.vehicles["ctd"].header[OWNER] == 0
        processes.append(launch("emulate", "ctd", path, "-s", f"127.0.0.1:{server.port}"))
        await_lockstep(server, ("ctd",))
        before = int(state.values("ctd")["sequence"][0])
        step(server, 100)
        assert int(state.values("ctd")["sequence"][0]) == before + 10
    finally:
        silent.send_signal(signal.SIGCONT)
    assert silent.wait(20) == 5, "it learns that it was removed"


def test_a_silent_emulator_is_late_once(config: Make, serve: Serve, processes: list[subprocess.Popen[str]]) -> None:
    """The engine's time limit passes before keep-alive: the engine stops waiting, and waits again after an answer."""
    path = config(silent_sea("120 s", "2 s")).path
    server = serve(path, "--speed", "0")
    silent = launch("emulate", "ctd", path, "-s", f"127.0.0.1:{server.port}")
    processes.append(silent)
    state = await_lockstep(server, ("ctd",))
    step(server, 101)
    late = int(str(server.status()["sensors_late"]))  # 0, unless the machine stood still for two seconds
    before = int(state.values("ctd")["sequence"][0])
    silent.send_signal(signal.SIGSTOP)
    try:
        step(server, 100)
        status = server.status()
        assert status["sensors_late"] == late + 1 and len(status["emulators"]) == 1  # type: ignore[arg-type]
        assert int(state.values("ctd")["sequence"][0]) == before
    finally:
        silent.send_signal(signal.SIGCONT)
    server.wait(lambda _: int(state.values("ctd")["sequence"][0]) > before)
    stop(silent)


def test_free_running_beside_invalid_bytes(config: Make, serve: Serve, processes: list[subprocess.Popen[str]]) -> None:
    """An emulator at its own pace, while strangers send noise: every datagram of theirs is counted as dropped."""
    path = config(SEA.format(network="")).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "ctd", path, "-s", f"127.0.0.1:{server.port}", "--free"))
    server.wait(lambda s: s["emulators"] != [], 60.0)
    server.send("start")
    state, rng = SharedState(server.name), random.Random(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(500):
            head = HEADER.pack(b"WVSM", 2, rng.choice((17, 16, 3, 99)), 0, rng.getrandbits(63), 1, 0)
            stranger.sendto(head + rng.randbytes(rng.randrange(100)), ("127.0.0.1", server.port))
    server.wait(lambda s: sum(dict(s["drops"]).values()) == 500)  # type: ignore[call-overload]
    seen = int(state.values("ctd")["sequence"][0])
    server.wait(lambda s: int(state.values("ctd")["sequence"][0]) > seen + 5)
