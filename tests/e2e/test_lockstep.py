"""Lockstep with real processes: at real time it keeps wall time, whatever the period."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server
from wavesim_sdk.broker import AsyncBroker, Broker
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
    assert 1.9 < took < 8.0, f"2 s of simulation took {took:.2f} s"  # a busy machine has not the time; it was 40 s once


def test_who_comes_after_the_end_has_no_steps(
    config: Callable[..., Loaded], serve: Callable[..., Server], tmp_path: Path, root: Path
) -> None:
    """A loop over the steps of a run that has ended is over; it waits for nothing."""
    fleet = '<fleet><vehicle name="a" model="lauv" position="0 0 9 m" client="optional"/></fleet>'
    server = serve(config(f'<time step="20 ms" duration="0.1 s"/>{fleet}').path)
    server.send("start")
    server.wait(lambda status: status["state"] == "ended")
    for period in (0.0, 0.1):
        with Broker("a", ("127.0.0.1", server.port), lockstep=period) as broker:
            assert broker.ended and list(broker.steps()) == []

    async def late() -> list[object]:
        async with AsyncBroker("a", ("127.0.0.1", server.port)) as broker:
            return [step async for step in broker.steps()]

    assert asyncio.run(late()) == []
    node = shutil.which("node")
    if node is not None:
        script = tmp_path / "late.mjs"
        script.write_text(
            f"""import {{ Broker }} from {json.dumps(str(root / "examples/js-broker/broker.js"))};
            const broker = await Broker.connect({{ name: "a", port: {server.port} }});
            let n = 0;
            for await (const step of broker.steps()) n++;
            await broker.close();
            console.log(n);"""
        )
        assert subprocess.run([node, script], capture_output=True, text=True, timeout=60).stdout.strip() == "0"
