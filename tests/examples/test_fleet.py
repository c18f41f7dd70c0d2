"""Ten vehicles with five different suites on a real server with real emulators: each has exactly the instruments that
it carries.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Server, wavesim
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.log import read
from wavesim_sdk.shared_memory import OWNER
from wavesim_world.config import LoadedConfig, load

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("fleet"), pytest.mark.timeout(240)]

SURVEY = ["ahrs", "ctd", "dvl", "echosounder"]
MAPPER = ["ahrs", "dvl-down", "dvl-up", "ctd-bow", "ctd-stern", "multibeam"]
FLOAT = ["pressure", "temperature"]
BOAT = ["ahrs", "gps", "anemometer", "echosounder", "battery"]
SUITES = {
    **dict.fromkeys(("survey1", "survey2", "survey3"), SURVEY),
    **dict.fromkeys(("mapper1", "mapper2"), MAPPER),
    **dict.fromkeys(("boat1", "boat2"), BOAT),
    **dict.fromkeys(("float1", "float2"), FLOAT),
    "decoy": [],
}


@pytest.fixture(scope="module")
def loaded(root: Path) -> LoadedConfig:
    return load(root / "examples/trials/fleet.xml")


@pytest.fixture
def emulators() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for p in started:
        p.terminate()
        p.wait(60)


def until(found: Callable[[], bool], what: str, timeout: float = 60.0) -> None:
    limit = time.monotonic() + timeout
    while not found():
        assert time.monotonic() < limit, what
        time.sleep(0.05)


def test_the_instruments_of_each_body_are_listed_before_a_run(root: Path, loaded: LoadedConfig) -> None:
    assert {b.name: [i.name for i in loaded.suite(b)] for b in loaded.config.fleet.bodies} == SUITES
    assert len({tuple(s) for s in SUITES.values()}) == 5 and len(SUITES) == 10
    said = wavesim("check", root / "examples/trials/fleet.xml")
    assert "decoy            lauv         client none      sensors: none" in said.stdout
    assert "dvl-down (dvl) 5 Hz, dvl-up (dvl) 2 Hz, ctd-bow (ctd) 10 Hz" in said.stdout
    bodies = json.loads(wavesim("check", root / "examples/trials/fleet.xml", "--json").stdout)["bodies"]
    assert {b["name"]: [s["name"] for s in b["sensors"]] for b in bodies} == SUITES


@pytest.mark.long
def test_a_fleet_of_five_suites(
    root: Path,
    serve: Callable[..., Server],
    loaded: LoadedConfig,
    emulators: list[subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    path, log = root / "examples/trials/fleet.xml", tmp_path / "fleet.mcap"
    server = serve(path, "--log", str(log))
    emulators.append(launch("emulate", "all", path, "-s", server.name))
    state = SharedState(server.name)
    assert {b: list(state.instruments(b)) for b in SUITES} == SUITES
    server.send("start")

    def everybody() -> bool:
        return all(state.sensor(b, i)["valid"] for b, suite in SUITES.items() for i in suite)

    until(everybody, "not every instrument has a value")
    time.sleep(2.0)

    # each its own mounting and rate, on the truth of one moment
    down, up = (state.sensor("mapper1", n) for n in ("dvl-down", "dvl-up"))
    assert down["locked"] == 4 and up["locked"] == 0 and np.isnan(up["bottom"]).all()
    assert np.isfinite(up["water"]).all()
    fast, slow = (int(state.sensor("mapper1", n)["sequence"]) for n in ("ctd-bow", "ctd-stern"))
    assert 3.0 < fast / slow < 7.0
    assert np.isfinite(state.sensor("mapper2", "multibeam")["range"]).sum() == 64
    above, below = (state.sensor(b, "pressure")["depth"] for b in ("float1", "float2"))
    assert below - above == pytest.approx(15.0, abs=1.0)

    # emulators are killed: the others' values and everybody's place stay
    before = {t: int(state.vehicles[t].header[OWNER]) for t in ("dvl", "battery")}
    used = state.values("battery")["used"].copy()
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: all(int(state.vehicles[t].header[OWNER]) not in (0, before[t]) for t in before), "nobody took over")
    numbers = {n: int(state.sensor("mapper1", n)["sequence"]) for n in ("dvl-down", "dvl-up")}
    until(lambda: all(state.sensor("mapper1", n)["sequence"] > k + 2 for n, k in numbers.items()), "no new values")
    charge = state.values("battery")["used"]
    assert (charge >= used).all() and (charge < used + 1.0).all(), "the battery goes on where it was"

    # a program that only listens
    with Broker("mapper1", ("127.0.0.1", server.port), role="listener") as broker:
        types = {d.name: d.type for d in broker.sensors}
        assert types == {i.name: i.type for i in loaded.suite_by_name("mapper1", "")}
        step = next(s for s in broker.steps() if len(s.sensors) == len(MAPPER))
        assert step.sensors["dvl-down"].locked == 4 and step.sensors["ctd-bow"].temperature == pytest.approx(
            step.sensors["ctd-stern"].temperature, abs=0.05
        )
    with Broker("decoy", ("127.0.0.1", server.port), role="listener") as broker:
        assert broker.sensors == () and len(next(broker.steps()).sensors) == 0

    # a fault is one instrument's
    assert wavesim("fault", "mapper1", "dvl-down", "unlocked", "-s", server.name).returncode == 0
    until(lambda: state.sensor("mapper1", "dvl-down")["locked"] == 0, "the fault did not act")
    assert state.sensor("mapper2", "dvl-down")["locked"] == 4
    wrong = wavesim("fault", "decoy", "ctd", "lost", "-s", server.name)
    assert wrong.returncode == 4 and "'decoy'" in wrong.stderr

    server.send("shutdown")
    server.process.wait(30)
    found = read(log)
    assert {b: set(found.sensors(b)) for b in SUITES} == {b: set(s) for b, s in SUITES.items()}
    assert (
        wavesim("log", "ctd", log, "mapper1", tmp_path / "m.cnv")
        .stderr.strip()
        .endswith("'mapper1' has several CTDs; select one of ctd-bow, ctd-stern")
    )
    done = wavesim("log", "ctd", log, "mapper1", tmp_path / "m.cnv", "--sensor", "ctd-stern")
    assert done.returncode == 0 and (tmp_path / "m.cnv").stat().st_size > 500
    assert wavesim("log", "export", log, "--csv", tmp_path / "csv").returncode == 0
    assert (tmp_path / "csv" / "sensor.mapper1.ctd-bow.csv").exists()
