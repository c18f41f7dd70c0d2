"""A user's program that runs when the run ends: it ends too, with its own last line and without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.conftest import Server, wavesim
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

FLEET = '<fleet><vehicle name="a" model="lauv" position="0 0 9 m" client="optional"/></fleet>'
PROGRAM = """
from wavesim_sdk import Broker
with Broker("a", ("127.0.0.1", {port}), lockstep={lockstep}) as broker:
    for step in broker.steps():
        print("step", flush=True)
        broker.answer({{"propeller": 1.0}})
print("end:", broker.end_reason or "the run has ended")
"""
ASYNC = """
import asyncio
from wavesim_sdk import AsyncBroker
async def run():
    async with AsyncBroker("a", ("127.0.0.1", {port}), lockstep={lockstep}) as broker:
        async for step in broker.steps():
            print("step", flush=True)
            broker.answer({{"propeller": 1.0}})
    print("end:", broker.end_reason or "the run has ended")
asyncio.run(run())
"""


@pytest.mark.parametrize("end", ["shutdown", "interrupt", "terminate", "duration"])
@pytest.mark.parametrize(("text", "lockstep"), [(PROGRAM, 0.1), (PROGRAM, 0.0), (ASYNC, 0.1)])
def test_a_program_ends_with_the_run(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], text: str, lockstep: float, end: str
) -> None:
    server = serve(config(FLEET).path, *(["--duration", "2"] if end == "duration" else []))
    program = subprocess.Popen(
        [sys.executable, "-c", text.format(port=server.port, lockstep=lockstep)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        server.wait(lambda s: s["clients_total"] == 1, 60.0)
        server.send("start")
        assert program.stdout is not None and program.stdout.readline() == "step\n"
        if end == "shutdown":
            assert wavesim("shutdown", "-s", server.name).returncode == 0
        elif end != "duration":
            server.process.send_signal(signal.SIGINT if end == "interrupt" else signal.SIGTERM)
        out, error = program.communicate(timeout=60)
        if end != "duration":
            server.process.wait(60)  # a second signal would end it before it has removed what it shares
    finally:
        program.kill()
        program.wait()
    why = "the run has ended" if end == "duration" else "the server shuts down"
    assert (out.splitlines()[-1], error, program.returncode) == (f"end: {why}", "", 0)
