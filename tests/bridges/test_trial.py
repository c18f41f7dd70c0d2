"""A trial with the programs of three stacks on board: the trial starts each bridge, which finds its stack, controls the
vehicle and ends with the trial.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.bridges import dune, moosdb, ros2
from tests.conftest import wavesim
from wavesim_sdk.log import STATE, read
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.system


@pytest.fixture
def domain() -> Iterator[int]:
    yield from ros2.domains()


def vehicle(name: str, model: str, place: str, bridge: str, options: str, period: str) -> str:
    return (
        f'<vehicle name="{name}" model="{model}" position="{place}" client="required">'
        f'<program bridge="{bridge}" options="{options}" period="{period}"/></vehicle>'
    )


def test_a_trial_of_three_stacks(config: Callable[..., LoadedConfig], name: str, domain: int, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        listen = free.getsockname()[1]
    sea, lauv = moosdb.Database(), dune.Dune(listen, dune.autopilot(3.0, dune.steady(0.0)))
    other, world = tmp_path / "world.xml", '<time step="4 ms"/><world latitude="41.18 deg" longitude="-8.7 deg"/>'
    rov = ros2.Node(domain)
    thrusts, odometry = rov.writer("/rov/actuators/cmd", ros2.Float64MultiArray), list[ros2.Odometry]()

    def fly(o: ros2.Odometry) -> None:
        odometry.append(o)
        thrusts.write(ros2.Float64MultiArray(ros2.MultiArrayLayout(), [10.0, 10.0, 10.0, 10.0, 0.0, 0.0]))

    bare = '<vehicle name="rov" model="bluerov2" position="0 60 2 m" client="required"/>'
    other.write_text(f"<wavesim>{world}<fleet>{bare}</fleet></wavesim>")
    where = f"--listen {listen} --dune {lauv.port} --origin 41.18,-8.7"
    fleet = (
        vehicle("lauv", "lauv", "0 0 3 m", "dune", where, "40 ms")
        + vehicle("auv", "lauv", "0 30 3 m", "moos", f"--db 127.0.0.1:{sea.port} --config {other}", "40 ms")
        + vehicle("rov", "bluerov2", "0 60 2 m", "ros2", f"--domain {domain} --config {other}", "20 ms")
    )
    clock = '<time step="4 ms" duration="4 s" pace="realtime"/><log state_rate="125 Hz"/>'
    path = config(world.replace('<time step="4 ms"/>', clock) + f"<fleet>{fleet}</fleet>").path
    app = moosdb.App(sea, moosdb.helm([(100.0, 60.0)], 3.0))
    lauv.start()
    lauv.ask(0.0, [])
    rov.read("/rov/odom", ros2.Odometry, fly)
    try:
        done = wavesim("trial", path, "--name", name, "--port", "0", "--out", tmp_path, "--no-plots", timeout=200.0)
    finally:
        lauv.die()
        app.die()
        sea.die()
        rov.close()
    said = {v: (tmp_path / name / f"program-{v}.txt").read_text() for v in ("lauv", "auv", "rov")}
    assert done.returncode == 0, (done.stderr, said)
    assert lauv.error is None and app.error is None and not rov.errors and not sea.errors
    assert "a DUNE at 127.0.0.1" in said["lauv"] and "to the community" in said["auv"], said
    assert "the first message on /rov/actuators/cmd" in said["rov"] and "Traceback" not in "".join(said.values())
    log = read(tmp_path / name / "run.mcap")

    def track(name: str) -> np.ndarray:
        return np.asarray(log.get(f"/state/{name}", STATE).records["p_WB_W"])

    for body in said:
        assert np.linalg.norm(track(body)[-1] - track(body)[0]) > 0.5, f"{body} was not flown"
    heard = {
        "lauv": np.array([(s.x, s.y, s.z) for s in lauv.states[10:]]),
        "auv": np.array([(y, x, z) for x, y, z in app.track[10:]]),
        "rov": np.array([(p.y, p.x, -p.z) for p in (o.pose.pose.position for o in odometry[10:])]),
    }
    for body, places in heard.items():
        apart = np.linalg.norm(places[:, None] - track(body)[None], axis=2).min(axis=1)
        assert len(places) > 20 and apart.max() < 0.02, f"{body} received its true position"
