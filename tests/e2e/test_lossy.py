"""Lossy links between real clients and a real server: every event arrives once and in order, states stay current, and
memory does not grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.conftest import Server
from wavesim_sdk.broker import Broker
from wavesim_sdk.testing import LossyProxy
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("lossy"), pytest.mark.timeout(200)]

SEA = """<time step="20 ms"/><network keepalive_timeout="20 s" lockstep_timeout="20 s"/><world><bed depth="3000 m"/></world><fleet>
<vehicle name="a" model="lauv" position="0 0 30 m" client="optional"/><buoy name="c" model="buoy" position="300 0 1 m"/></fleet>"""


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
def test_events_over_a_lossy_link(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], loss: float
) -> None:
    """Pings and their answers through a link that loses, doubles and delays by up to 0.5 s."""
    server = serve(config(SEA).path, "--speed", "1")
    delay = (0.0, 0.5) if loss else (0.0, 0.02)
    with (
        LossyProxy(("127.0.0.1", server.port), loss=loss, duplicate=loss / 2, delay=delay, seed=7) as proxy,
        Broker("a", proxy.address, state_period=0.05) as broker,
    ):
        server.send("start")
        wanted: dict[int, float] = {}
        sent, heard, ages, refused = [], [], [], []
        limit = time.monotonic() + 14.0
        asked = time.monotonic()
        while time.monotonic() < limit:
            if time.monotonic() > asked and len(wanted) < 12:
                asked += 0.8
                wanted[broker.ping(25_000.0)] = time.monotonic()
            for step in broker.poll(0.05):
                sent += step.sent
                refused += step.refused
                heard += step.receptions
                ages.append(step.state.time_ns)
        truth = float(str(server.status()["time_ns"]))
    assert [s.request for s in sent] + [r.request for r in refused] == sorted(wanted) or sorted(
        [s.request for s in sent] + [r.request for r in refused]
    ) == sorted(wanted), "every request was answered once"
    assert [s.id for s in sent] == sorted(s.id for s in sent), "in order"
    mine = [h.query for h in heard]
    assert len(mine) == len(set(mine)) and mine == sorted(mine)
    assert len(mine) >= len(sent) - 2 and len(sent) >= 6, "the buoy answered"
    for h in heard:
        assert h.range == pytest.approx(300.0, abs=30.0)
    assert ages == sorted(ages), "no old state after a newer one"
    assert truth * 1e-9 - ages[-1] * 1e-9 < 1.5, "fresh"
    if loss:
        assert proxy.counts["lost"] > 20 and proxy.counts["doubled"] > 5


@pytest.mark.parametrize("loss", [0.1, 0.3])
def test_lockstep_over_a_lossy_link_is_the_same_run(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], loss: float
) -> None:
    """Lost datagrams cost time, not determinism: the states of each step are those of a good link."""
    tracks = []
    for bad in (0.0, loss):
        server = serve(config(SEA).path, "--speed", "0")
        with (
            LossyProxy(("127.0.0.1", server.port), loss=bad, duplicate=bad / 2, delay=(0.0, 0.01), seed=3) as proxy,
            Broker("a", proxy.address, lockstep=0.2) as broker,
        ):
            server.send("start")
            seen = []
            for step in broker.steps():
                seen.append(
                    (step.state.time_ns, step.state.motion, [(r.reception_ns, r.id, r.range) for r in step.receptions])
                )
                if len(seen) % 10 == 5:
                    broker.ping(25_000.0)
                broker.answer([5.0, 0.1 * (len(seen) % 3)])
                if len(seen) == 60:
                    break
            first = seen[0][0]
            tracks.append([(t - first, m, r) for t, m, r in seen])
        server.end()
    good, lossy = tracks
    assert [t for t, _, _ in good] == [t for t, _, _ in lossy]
    assert any(r for _, _, r in good)
    assert good == lossy
