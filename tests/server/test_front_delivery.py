"""The engine writes the fronts at hydrophones to their rings, also after a change of the simulation time."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.physics.courses import HYDROPHONE, world
from tests.server.harbour import Harbour
from wavesim_sdk.front_rings import SEGMENT, FrontReader, FrontRings
from wavesim_sdk.tables import RunState
from wavesim_server import Simulation
from wavesim_server.engine.time_changes import Served

PINGER = 'source_level="190 dB" pulse="50 ms" recharge="0 s"'


@pytest.fixture
def rings() -> Iterator[FrontRings]:
    name = f"delivery-{os.getpid()}"
    yield FrontRings.create(name, 1)
    SEGMENT.remove(name)


def test_readers_in_other_processes_receive_what_a_library_run_receives(rings: FrontRings) -> None:
    loaded = world(
        "20 ms", 1, transducer=PINGER, beam='<pinger frequency="25 kHz" period="0.3 s"/>', hydrophone=HYDROPHONE
    )
    alone = Simulation(loaded)
    harbour = Harbour(loaded, speed=0.0, duration=1.0, real=True)
    harbour.engine.front_rings = rings
    alone.enter_residents()
    alone.advance(50)
    assert harbour.order("start")[0]
    reader, got, signals = FrontReader(rings), b"", b""
    while harbour.state is RunState.RUNNING or not got:
        harbour.run(0.001)
        batch = reader.take()
        got, signals = got + batch.fronts.tobytes(), signals + batch.waveforms.tobytes()
        assert batch.time_ns == harbour.sea.time_ns and batch.lost == 0
    assert harbour.sea.tick == 50
    expected = alone.take_fronts()
    assert len(expected.waveforms) == 4 and len(expected.fronts) >= 36
    assert (got, signals) == (expected.fronts.tobytes(), expected.waveforms.tobytes())

    snapshot = harbour.sea.snapshot()
    harbour.sea.advance(5)
    harbour.sea.restore(snapshot)
    harbour.engine.restart_at_tick(Served(True, True))
    again = reader.take()
    assert again.is_restarted and again.time_ns == snapshot.tick * snapshot.step_ns
    assert again.fronts.tobytes() == expected.fronts.tobytes(), "all are younger than two seconds"
