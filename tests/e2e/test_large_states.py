"""A vehicle with more instruments than fit a datagram: its state is sent in parts, open and sealed, and arrives
complete at every broker.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Server, wavesim
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import AsyncBroker, Broker, Step
from wavesim_sdk.shared_memory import OWNER
from wavesim_sdk.wire import seal
from wavesim_sdk.wire.items import SensorDescription
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

WORLD = """<time step="20 ms"/><network {network}/><world><bed depth="60 m" slope_north="0.1"/></world>
<fleet><vehicle name="mapper" model="lauv" position="0 0 20 m" client="optional"><sensors>
<multibeam name="ahead" rate="10 Hz" beams="256" width="100 deg" attitude="0 20 0 deg"/>
<multibeam name="down" rate="10 Hz" beams="256" width="120 deg"/>
<multibeam name="astern" rate="10 Hz" beams="200" width="90 deg" attitude="0 -20 0 deg"/>
<scanner name="head" rate="10 Hz"/><imu rate="10 Hz"/><ahrs rate="10 Hz"/></sensors></vehicle></fleet>"""
NAMES = ["ahead", "down", "astern", "head", "imu", "ahrs"]


@pytest.fixture(params=["open", "sealed"])
def vessel(
    request: pytest.FixtureRequest, config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> Iterator[tuple[Server, bytes | None]]:
    """A server with its emulators, and the key of its clients."""
    key = None
    if request.param == "sealed":
        assert wavesim("keys", tmp_path / "trial.keys").returncode == 0
        key = seal.find_key(tmp_path / "trial.keys", "mapper")
    path = config(WORLD.format(network='keys="trial.keys"' if key else "")).path
    server = serve(path, "--speed", "0")
    emulators = launch("emulate", "all", path, "-s", server.name)
    try:
        state = SharedState(server.name)
        until(lambda: all(state.vehicles[t].header[OWNER] for t in ("multibeam", "scanner", "imu", "ahrs")))
        yield server, key
    finally:
        emulators.terminate()
        emulators.wait(20)


def until(found: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60.0
    while not found():
        assert time.monotonic() < limit
        time.sleep(0.01)


def whole(server: Server, step: Step, sensors: Sequence[SensorDescription]) -> None:
    """The values of a step are those of the shared memory, each of them."""
    state, count = SharedState(server.name), 0
    fields = {s.name: [f.name for f in s.fields] for s in sensors}
    for name in NAMES:
        record, value = state.sensor("mapper", name), step.sensors[name]
        for field in fields[name]:
            numbers = np.atleast_1d(np.array(getattr(value, field), float))
            assert numbers == pytest.approx(np.atleast_1d(record[field]), nan_ok=True), (name, field)
            count += numbers.size
    assert count > 3 * 256 and 9 * count > 5 * 1200, "numbers for at least six datagrams"
    ranges = np.array(step.sensors.down.range, float)
    assert np.isfinite(ranges).all() and 39.0 < ranges.min() < 41.0


def measured(step: Step, tick: int) -> bool:
    """Whether its values are of this tick: a free client's state may leave before the emulators have answered, and comes again."""
    return step.state.tick == tick and all(v.time_ns == step.state.time_ns for v in step.sensors.values())


def test_a_state_in_parts_is_whole(vessel: tuple[Server, bytes | None]) -> None:
    server, key = vessel
    at = ("127.0.0.1", server.port)
    with Broker("mapper", at, key=key) as pilot, Broker("mapper", at, role="listener", key=key) as listener:
        server.send("step", ticks=50)
        for broker in (pilot, listener):
            step = next(s for s in broker.steps() if measured(s, 50))
            assert list(step.sensors) == NAMES
            whole(server, step, broker.sensors)

    async def look() -> None:
        async with AsyncBroker("mapper", at, key=key) as broker:
            await asyncio.to_thread(server.send, "step", ticks=50)
            async for step in broker.steps():
                if measured(step, 100):
                    whole(server, step, broker.sensors)
                    break

    asyncio.run(look())
    with Broker("mapper", at, lockstep=0.1, key=key) as pilot:
        threading.Timer(0.0, server.send, ("step",), {"ticks": 50}).start()
        seen = []
        for step in pilot.steps():
            if step.state.tick < 110:
                continue  # it has just come: its instruments measure first, an inertial one the time since
            assert list(step.sensors) == NAMES, step.time
            whole(server, step, pilot.sensors)
            seen.append(step.state.tick)
            if step.state.tick == 150:
                break
    assert seen == list(range(110, 151, 5)), "every step of lockstep"
