"""Lockstep with real processes: at real time it keeps wall time, whatever the period."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.conftest import Server
from wavesim_sdk.broker import Broker
from wavesim_sdk.config import Loaded

pytestmark = pytest.mark.system


@pytest.mark.parametrize("period", [0.005, 0.02, 0.1])
def test_lockstep_at_real_time_keeps_wall_time(
    config: Callable[..., Loaded], serve: Callable[..., Server], period: float
) -> None:
    """A step waits for its answer and for its time, and for nothing else."""
    fleet = '<fleet><vehicle name="a" model="lauv" position="0 0 9 m" client="optional"/></fleet>'
    server = serve(config(f'<time step="5 ms"/>{fleet}').path, "--speed", "1")
    with Broker("a", ("127.0.0.1", server.port), lockstep=period) as broker:
        server.send("start")
        begun = None
        for step in broker.steps():
            broker.answer([5.0])
            begun = begun or (time.monotonic(), step.time)
            if step.time >= begun[1] + 2.0:
                break
        took = time.monotonic() - begun[0]
    assert 1.9 < took < 3.0, f"2 s of simulation took {took:.2f} s"
