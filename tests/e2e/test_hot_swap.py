"""Every sensor is killed, frozen and replaced while a server runs: stale values are withheld in time, and nothing else
changes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server
from tests.e2e.test_sensors import await_sensors, latest, processes
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.log import read
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.shared_memory import OWNER
from wavesim_sdk.tables import STATE
from wavesim_server import Simulation
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]

WATER = "ctd pressure temperature conductivity salinity scalar sound_velocity echosounder ranger scanner multibeam dvl adcp navigation"
VESSEL = "imu ahrs magnetometer gps uwb speedlog anemometer encoder rpm leak battery radar ais"
WORLD = """<time step="10 ms"/><log state_rate="10 Hz"/><world><bed depth="40 m"/><wind speed="5 m/s" gusts="20"/><current north="0.2 m/s"/>
<scalar name="dye"><gaussian peak="3" north="0 m" east="0 m" sigma_north="50 m" sigma_east="50 m"/></scalar></world>
<fleet><vehicle name="v" model="{model}" position="0 0 {depth} m" client="optional"><sensors>{sensors}</sensors></vehicle></fleet>"""
STALE_S = 5 / 5.0  #: five periods at 5 Hz


def element(sensor: str, height: float) -> str:
    own = {"multibeam": ' send="no"', "ais": ' mmsi="211000001"'}.get(sensor, "")
    return f'<{sensor.replace("_", "-")} rate="5 Hz" position="0 0 {height} m"{own}/>'


def test_every_sensor_is_in_the_test() -> None:
    assert {*WATER.split(), *VESSEL.split(), "sonar", "camera", "lidar", "hydrophone"} == set(SENSORS), (
        "frames: test_sonars.py and test_hydrophones.py"
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "depth", "height", "sensors"),
    [
        pytest.param("lauv", 10.0, 0.0, WATER.split(), marks=pytest.mark.xdist_group("water"), id="water"),
        pytest.param("otter", 0.0, -2.0, VESSEL.split(), marks=pytest.mark.xdist_group("vessel"), id="vessel"),
    ],
)
def test_kill_freeze_and_swap(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
    model: str,
    depth: float,
    height: float,
    sensors: list[str],
) -> None:
    xml = WORLD.format(model=model, depth=depth, sensors="".join(element(s, height) for s in sensors))
    path = config(xml).path
    server = serve(path, "--speed", "1", "--log", str(tmp_path / "swapped.mcap"))
    manager = launch("emulate", "all", path, "-s", server.name)
    processes.append(manager)
    sent = set(sensors) - {"multibeam"}
    state = SharedState(server.name)
    server.send("start")
    server.wait(lambda s: float(str(s["time_ns"])) > 1e9)  # with a log, and before any body is there
    with Broker("v", ("127.0.0.1", server.port)) as broker:
        pids = await_sensors(server.name, sensors, 60.0, lambda: latest(broker, 0.05))
        assert set(latest(broker, 1.0)) == sent

        # killed, all of them; each comes back by itself
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
        before = {s: int(state.values(s)["sequence"][0]) for s in sensors}
        limit = time.monotonic() + 60.0
        waiting = set(sensors)
        while waiting and time.monotonic() < limit:
            latest(broker, 0.1)
            waiting = {
                s
                for s in waiting
                if int(state.vehicles[s].header[OWNER]) in (0, pids[s])
                or int(state.values(s)["sequence"][0]) <= before[s]
            }
        assert not waiting, "not started again"
        assert set(latest(broker, 1.0)) == sent

        # frozen, every second one: no longer sent after five periods, the others go on
        pids = await_sensors(server.name, sensors)
        frozen = set(sensors[::2])
        for s in frozen:
            os.kill(pids[s], signal.SIGSTOP)
        try:
            latest(broker, STALE_S + 0.6)
            assert set(latest(broker, 1.0)) == sent - frozen
        finally:
            for s in frozen:
                os.kill(pids[s], signal.SIGCONT)
        latest(broker, 0.6)
        assert set(latest(broker, 1.0)) == sent

        # swapped: another process takes over the column of one that is ended in order
        swap = sensors[0]
        manager.send_signal(signal.SIGTERM)
        assert manager.wait(30) == 0
        latest(broker, STALE_S + 0.6)
        assert set(latest(broker, 0.5)) == set(), "nobody writes: all are stale"
        processes.append(launch("emulate", swap, path, "-s", server.name, "--free"))
        limit = time.monotonic() + 60.0
        while set(latest(broker, 0.3)) != {swap} and time.monotonic() < limit:
            pass
        assert set(latest(broker, 0.5)) == {swap}
    clock = state.clock()
    assert clock["slipped_ns"] < 1e9, "the tick went on"
    server.send("shutdown")
    assert server.process.wait(30) == 0

    # the body went the same way as with no emulator at all
    log = read(tmp_path / "swapped.mcap")
    track = log.get("/state/v", STATE)
    twin = Simulation(config(xml))
    twin.advance(log.json["/bodies"][0][0] // twin.step_ns)
    row = twin.enter("v")
    assert len(track.records) > 50
    for time_ns, record in zip(track.time_ns, track.records, strict=True):
        twin.advance(int(time_ns) // twin.step_ns - twin.tick)
        assert twin.state()[row] == record
