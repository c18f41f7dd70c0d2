"""Lockstep with real processes: at real-time pace it follows wall time for any period."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server, wavesim
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import AsyncBroker, Broker
from wavesim_sdk.errors import SessionEnded
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.system


@pytest.mark.parametrize("period", [0.005, 0.02, 0.1])
def test_lockstep_at_real_time_keeps_wall_time(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], period: float
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
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path, root: Path
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


def test_a_stranger_on_an_open_server_does_not_hold_time(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    """Where newcomers may join in lockstep, one that answers late is named, and is ended when its budget is used up."""
    text = '<time step="20 ms"/><network keepalive_timeout="60 s" lockstep_budget="6 s" newcomers="{}"/>{}'
    fleet = '<fleet><vehicle name="a" model="lauv" position="0 0 9 m" client="optional"/></fleet>'
    server = serve(config(text.format("lockstep", fleet)).path)
    at = ("127.0.0.1", server.port)
    ended: list[str] = []

    def think() -> None:
        """Answer each step after a second and a half."""
        try:
            with Broker("stranger", at, model="lauv", lockstep=0.02) as broker:
                joined.set()
                for _ in broker.steps():
                    time.sleep(1.5)
                    broker.answer(None)
        except SessionEnded as error:
            ended.append(str(error))

    joined = threading.Event()
    program = threading.Thread(target=think)
    with Broker("a", at) as bystander:
        program.start()
        assert joined.wait(30.0)
        server.send("start")
        slow = server.wait(lambda status: status["slow"] == ["stranger"])
        result = wavesim("status", "-s", server.name)
        assert "slow       stranger: " in result.stdout and "lockstep is waiting for it, waited" in result.stdout, (
            result.stdout
        )
        (client,) = [c for c in slow["clients"] if c["name"] == "stranger"]  # type: ignore[attr-defined]
        assert client["waited_s"] > 2.5 and client["budget_left_s"] < 6.0
        state = SharedState(server.name)
        total, rows = state.history("notice", 0)
        assert any(bytes(r["name"]) == b"stranger" and bytes(r["text"]).startswith(b"slow: ") for r in rows[:total])
        server.wait(lambda status: status["clients_total"] == 1)
        program.join(20.0)
        assert len(ended) == 1 and "used up its budget of 6 s" in ended[0], ended
        before = bystander.poll(5.0)[-1].time
        until = time.monotonic() + 20.0
        while (now := bystander.poll(1.0)[-1].time) < before + 1.0:
            assert time.monotonic() < until, f"time does not go on: {now}"
