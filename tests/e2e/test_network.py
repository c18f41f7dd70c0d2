"""A real server over real UDP: keys, observers, the watchdog, and takeover of a body."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Server, wavesim
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import ConfigError, Refused, SessionLost
from wavesim_sdk.observer import FleetFrame, Observer
from wavesim_sdk.wire import seal
from wavesim_sdk.wire.link import KEYS_VARIABLE
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("network"), pytest.mark.timeout(120)]

FLEET = """<time step="4 ms"/><network {network}/><world><bed depth="100 m"/></world>{acoustics}<fleet>
<vehicle name="a" model="lauv" position="0 0 20 m" client="optional" {a}/><vehicle name="b" model="lauv" position="500 0 20 m"/>
<buoy name="c" model="buoy" position="900 0 0 m"/></fleet>"""


def fleet(network: str = "", a: str = "", acoustics: str = "") -> str:
    return FLEET.format(network=network, a=a, acoustics=acoustics)


# ------------------------------------------------------------------ keys


def test_a_server_with_keys(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "trial.keys"
    assert wavesim("keys", keys, "a", "monitor").returncode == 0
    assert keys.stat().st_mode & 0o777 == 0o600
    server = serve(config(fleet('keys="trial.keys"')).path)
    at = ("127.0.0.1", server.port)
    with pytest.raises(SessionLost, match="it may require a key"), Broker("a", at) as broker:
        pass
    broker = Broker("a", at, key=os.urandom(32))
    with pytest.raises(SessionLost, match="does not answer this join; check that it has this key"):
        broker.connect(1.0)
    monkeypatch.setenv(KEYS_VARIABLE, str(keys))
    server.send("start")
    with Broker("a", at) as broker, Observer("monitor", at) as monitor:
        assert broker.poll(5.0)[0].state.motion is not None
        seen = (frame.bodies["id"].tolist() for frame in monitor.frames())
        assert next(ids for ids in seen if 0 in ids) == [0, 1, 2], "its first frames may be older than the body"
        with pytest.raises(Refused, match="this key belongs to 'a'"):
            Broker("b", at, key=seal.find_key(keys, "a")).connect()
    drops = server.status()["drops"]
    assert drops["flags"] > 10 and drops["key"] >= 3  # type: ignore[index]
    with pytest.raises(ConfigError, match="no key for 'stranger'"):
        Broker("stranger", at)


def test_who_may_be_served_elsewhere(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """Not loopback: with keys, or by an explicit word that is repeated at each start."""
    with pytest.raises(
        ConfigError, match="is not loopback, so other machines could reach the server: set `keys` to a key file"
    ):
        config(fleet('address="0.0.0.0"'))
    assert config(fleet('address="0.0.0.0" insecure="yes"')).config.network.insecure
    wavesim("keys", tmp_path / "k")
    assert config(fleet('address="0.0.0.0" keys="k"')).config.network.keys == "k"
    with pytest.raises(ConfigError, match="file 'nokeys' does not exist"):
        config(fleet('keys="nokeys"'))


def test_a_key_file_that_others_may_read_is_refused(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    wavesim("keys", tmp_path / "k")
    (tmp_path / "k").chmod(0o644)
    for command in ("check", "serve"):
        done = wavesim(command, config(fleet('keys="k"')).path)
        assert (
            done.returncode == 2
            and "other users may read this key file" in done.stderr
            and "Traceback" not in done.stderr
        )


# ------------------------------------------------------------------ observers


def frames(observer: Observer, seconds: float) -> list[FleetFrame]:
    limit, found = time.monotonic() + seconds, []
    while time.monotonic() < limit:
        found += observer.poll(0.05)
    return found


def test_observers_see_everything_they_ask_for(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    server = serve(config(fleet('observers="2"')).path)
    at = ("127.0.0.1", server.port)
    state = SharedState(server.name)
    with (
        Observer("eye", at, rate=25.0, sounds=True) as eye,
        Observer("near", at, center=(480, 0, 20), radius=50.0) as near,
    ):
        with pytest.raises(Refused, match="maximum of 2 observers"):
            Observer("third", at).connect()
        assert server.status()["observers"] == ["eye", "near"]
        server.send("start")
        seen = frames(eye, 1.5)
        assert 20 < len(seen) < 50 and all(f.is_complete for f in seen)
        assert eye.names == {1: "b", 2: "c"} and eye.models == {1: "lauv", 2: "buoy"}
        with Broker("a", at) as broker:
            broker.poll(2.0)
            broker.ping(25_000.0)
            broker.poll(0.2)
            seen = frames(eye, 1.5)
            assert eye.names[0] == "a" and seen[-1].bodies["id"].tolist() == [0, 1, 2]
        server.send("pause")
        last = frames(eye, 0.5)[-1]
        truth = state.snapshot()
        assert last.tick == truth.tick and last.run_state == 2 == eye.run_state
        for body in last.bodies:
            own = truth.state[int(body["id"])]
            assert np.array_equal(body["p_WB_W"], own["p_WB_W"])
            assert body["q_WB"] == pytest.approx(own["q_WB"], abs=1e-7) and body["v_WB_B"] == pytest.approx(
                own["v_WB_B"], abs=1e-6
            )
        assert 0 not in eye.names, "a left"
        signals = [s for f in seen for s in f.signals]
        fates = [s for f in seen for s in f.fates]
        assert signals[0].source == 0 and signals[0].frequency == 25_000.0
        assert {f.receiver for f in fates if f.id == signals[0].id} >= {2}
        assert all(f.bodies["id"].tolist() == [1] for f in frames(near, 1.0)[1:])
        near.watch(50.0, bodies=[2])
        found = frames(near, 1.0)
        assert found[-1].bodies["id"].tolist() == [2] and len(found) > 30
        near.watch(0.0)
        frames(near, 0.3)
        assert frames(near, 0.5) == []


def test_an_observer_controls_nothing(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    server = serve(config(fleet()).path)
    with Observer("eye", ("127.0.0.1", server.port)) as eye:
        server.send("start")
        eye.link.session.actuate([100.0] * 8)
        eye.link.session.estimate([1.0] * 10)
        frames(eye, 0.5)
        state = SharedState(server.name)
        assert not state.vehicles["actuation"].snapshot()[1]["command"][:, :16].any()
        assert server.status()["clients_total"] == 0


# ------------------------------------------------------------------ watchdog, taking over


@pytest.mark.parametrize(
    ("failsafe", "expected", "text"),
    [
        ('failsafe="zero"', 0.0, "actuators at zero"),
        ('failsafe="hold"', 5.0, "commands are held"),
        ('failsafe="safe" safe="2.5"', 2.5, "actuators at 2.5"),
    ],
)
def test_the_watchdog(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    failsafe: str,
    expected: float,
    text: str,
    tmp_path: Path,
) -> None:
    server = serve(config(fleet(a=f'watchdog="500 ms" {failsafe}')).path, "--log", str(tmp_path / "w.mcap"))
    state = SharedState(server.name)

    def commanded() -> float:
        return float(state.vehicles["actuation"].snapshot()[1]["command"][0, 0])

    with Broker("a", ("127.0.0.1", server.port)) as broker:
        server.send("start")
        limit, notices = time.monotonic() + 60.0, []
        fed, slowest = time.monotonic(), 1.0
        while slowest > 0.3:  # a machine that stalls itself is no proof
            notices, slowest, end = [], 0.0, time.monotonic() + 1.5
            while time.monotonic() < end:
                for step in broker.poll(0.05):
                    notices += step.notices
                    broker.answer([5.0])
                slowest, fed = max(slowest, time.monotonic() - fed), time.monotonic()
            assert time.monotonic() < limit
        assert commanded() == 5.0 and notices == []
        last = 0
        while not notices and time.monotonic() < limit:
            for step in broker.poll(0.05):
                notices, last = notices + step.notices, step.state.time_ns
        assert text in notices[0].text and notices[0].time_ns <= last
        assert commanded() == expected
        broker.answer([4.0])
        while commanded() != 4.0 and time.monotonic() < limit:
            broker.poll(0.05)
        assert commanded() == 4.0, "it obeys again"


def test_a_second_client_takes_over_if_it_may(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    server = serve(config(fleet('takeover="yes"')).path)
    at = ("127.0.0.1", server.port)
    server.send("start")
    with Broker("a", at) as first:
        first.poll(2.0)
        where = SharedState(server.name).snapshot().identity["generation"][0]
        with Broker("a", at) as second:
            assert second.poll(2.0)
            with pytest.raises(SessionLost, match="another client took over"):
                for _ in range(100):
                    first.poll(0.05)
            assert SharedState(server.name).snapshot().identity["generation"][0] == where, "the body stays"


# ------------------------------------------------------------------ figures for others


def test_prometheus_text(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    server = serve(config(fleet()).path)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _ in range(7):
            s.sendto(b"noise", ("127.0.0.1", server.port))
    server.wait(lambda s: s["drops"].get("size") == 7)  # type: ignore[attr-defined]
    done = wavesim("status", "--prometheus", "-s", server.name)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert f'wavesim_drops_total{{server="{server.name}",reason="size"}} 7' in lines
    assert f'wavesim_vehicles{{server="{server.name}"}} 1' in lines
    assert "# TYPE wavesim_drops_total counter" in lines and "# TYPE wavesim_vehicles gauge" in lines
    names = [line.split("{")[0] for line in lines if not line.startswith("#")]
    assert all(n.startswith("wavesim_") and n.replace("_", "").isalnum() for n in names)
    assert json.loads(wavesim("status", "--json", "-s", server.name).stdout)["drops"] == {"size": 7}
