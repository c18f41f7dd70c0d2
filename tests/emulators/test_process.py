"""An emulator attaches to a server: it refuses another configuration, and serves the instruments that are present."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tests.emulators.bench import Make
from wavesim_conformance.emulator import MOUNTED_INSTRUMENTS, FakeEngine
from wavesim_emulators import water
from wavesim_emulators.process import EmulatorProcess
from wavesim_sdk.errors import AttachError
from wavesim_sdk.shared_memory import OWNER, SYNCHRONOUS
from wavesim_sdk.tables import WORLD
from wavesim_world.config import LoadedConfig

FLEET = """<fleet><sensors><pressure name="first" rate="10 Hz" position="0 0 1 m"/></sensors>
<vehicle name="alpha" model="jolner" position="0 0 0 m"><sensors><pressure name="second" rate="5 Hz" position="0 0 2 m"/></sensors></vehicle>
<vehicle name="gamma" model="jolner" position="0 20 0 m"><sensors inherit="no"/></vehicle></fleet>"""


@pytest.fixture
def loaded(config: Make) -> LoadedConfig:
    return config(FLEET)


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    made = FakeEngine(f"process-test-{os.getpid()}", "pressure")
    yield made
    made.close()


def run_as(engine: FakeEngine, digest: str) -> None:
    """The server says which configuration it runs."""
    world = engine.simulation[WORLD.name].snapshot()[1]
    world["digest"] = digest.encode()
    engine.simulation[WORLD.name].publish(world, 0)


def test_another_configuration_than_the_servers_is_refused(engine: FakeEngine, loaded: LoadedConfig) -> None:
    run_as(engine, "0" * 64)
    with pytest.raises(
        AttachError, match=r"runs a different configuration \(digest 000000000000\) than .*config.*\.xml"
    ):
        EmulatorProcess(water.PressureEmulator(loaded), engine.name)
    assert engine.table.header[SYNCHRONOUS] == engine.table.header[OWNER] == 0, "it claims nothing"
    run_as(engine, loaded.digest)
    EmulatorProcess(water.PressureEmulator(loaded), engine.name)
    assert engine.table.header[OWNER] == os.getpid()


def test_a_comment_more_is_another_configuration(config: Make, engine: FakeEngine, loaded: LoadedConfig) -> None:
    """The digest is of the text: a file that changed while the server ran is reported."""
    run_as(engine, config(FLEET + "<!-- changed -->").digest)
    with pytest.raises(AttachError, match=r"runs a different configuration \(digest"):
        EmulatorProcess(water.PressureEmulator(loaded), engine.name)


def test_it_answers_only_for_those_that_are_due(
    engine: FakeEngine, loaded: LoadedConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the process is a thread here
    process = EmulatorProcess(water.PressureEmulator(loaded), engine.name)
    thread = threading.Thread(target=process.run)
    thread.start()
    try:
        while not engine.table.header[SYNCHRONOUS]:
            time.sleep(0.01)
        assert engine.request_values(25, 10.0) is not None
        values = engine.values()
        first, second, other = (place for _, _, place in MOUNTED_INSTRUMENTS)
        assert values["sequence"][[first, second, other]].tolist() == [1, 0, 1]
        assert engine.request_values(50, 10.0) is not None
        values = engine.values()
        assert values["sequence"][[first, second, other]].tolist() == [2, 1, 2]
        assert values["depth"][second] - values["depth"][first] == pytest.approx(1.0, abs=0.1), "each at its place"
        assert not np.delete(values["sequence"], [first, second, other]).any()
        engine.set_body(0, "")
        engine.set_body(1, "")
        assert engine.request_values(75, 10.0) is not None, "with nobody there it answers too"
        assert not engine.values()["valid"].any()
    finally:
        process._stop = True
        thread.join(10)
    assert not thread.is_alive()
