"""Reset, snapshots and rewind of a running server, with emulators in their own processes and lockstep clients."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Server, wavesim
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import Refused, SessionEnded
from wavesim_sdk.log import read
from wavesim_sdk.onboard import Step
from wavesim_sdk.shared_memory import SYNCHRONOUS
from wavesim_server import Lab
from wavesim_server.snapshots import Snapshot
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

SENSORS = ("ahrs", "ctd", "imu")
CONFIG = """<time step="10 ms" duration="6 s" pace="fast" {time}/><log state_rate="10 Hz"/>
<network newcomers="lockstep" lockstep_timeout="60 s" keepalive_timeout="60 s"><grant to="a" rights="control"/></network>
<world><bed depth="80 m"/><current north="0.1 m/s"><drift speed="0.1 m/s" speed_deviation="0.05 m/s"/></current>
<wind speed="6 m/s" slow_deviation="1 m/s"/><waves height="0.5 m" peak="1 rad/s"/></world>
<fleet><sensors><ctd rate="5 Hz" latency="150 ms" drop_out="0.2"/><ahrs rate="10 Hz"/><imu rate="20 Hz"/></sensors>
<vehicle name="a" model="lauv" position="0 0 15 m" client="required" watchdog="2 s" failsafe="zero">
  <fault part="ahrs" kind="bias" field="heading" amount="5 deg" at="1 s" for="1 s"/></vehicle>
<vehicle name="b" model="remus100" position="30 0 15 m" client="required"/>
<vehicle name="boat" model="jolner" position="0 60 0 m" client="none"/>
<buoy name="pinger" model="buoy" position="50 20 3 m"><transducer threshold="60 dB"><pinger frequency="26 kHz" period="1 s"/></transducer></buoy>
<fence name="box"><corner north="-100 m" east="-100 m"/><corner north="100 m" east="-100 m"/><corner north="0 m" east="100 m"/></fence>
</fleet>"""


def content(step: Step) -> tuple[Any, ...]:
    """Everything that a step tells a program about the simulation."""
    values = sorted((name, v.time_ns, repr(v.numbers)) for name, v in step.state.sensors.items())
    return step.tick, step.state.time_ns, tuple(step.state.motion), tuple(step.state.actuation), values


def answer(broker: Broker, step: Step) -> None:
    turn = 0.1 * step.sensors.ahrs.heading if "ahrs" in step.state.sensors else 0.0
    broker.answer({a.name: 4.0 if "prop" in a.name else turn for a in broker.actuators})


class Boats:
    """Both lockstep clients; the second one answers in a thread."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.a, self.b = (Broker(n, ("127.0.0.1", server.port), lockstep=0.1) for n in "ab")
        self.a.connect()
        self.b.connect()
        self.seen_by_b: list[Step] = []
        self.thread = threading.Thread(target=self._drive_b, daemon=True)
        self.thread.start()

    def _drive_b(self) -> None:
        with contextlib.suppress(SessionEnded):  # unlike steps(), poll() goes on after the end of the run
            while True:
                for step in self.b.poll(0.5):
                    self.seen_by_b.append(step)
                    if step.state.step:
                        answer(self.b, step)

    def take(self, count: int) -> list[tuple[Any, ...]]:
        """Answer some steps, but not the last one."""
        found: list[tuple[Any, ...]] = []
        for step in self.a.steps():
            found.append(content(step))
            self.last = step
            if len(found) == count:
                return found
            answer(self.a, step)
        return found


@contextmanager
def running(serve: Callable[..., Server], loaded: LoadedConfig, log: Path) -> Iterator[Boats]:
    server = serve(loaded.path, "--log", str(log))
    command = [sys.executable, "-m", "wavesim_sdk", "emulate"]
    emulators = [
        subprocess.Popen([*command, s, str(loaded.path), "-s", where], stderr=subprocess.DEVNULL)
        for s, where in zip(SENSORS, (f"127.0.0.1:{server.port}", server.name, server.name), strict=True)
    ]
    try:
        state, limit = SharedState(server.name), time.monotonic() + 60.0
        while not all(state.vehicles[s].header[SYNCHRONOUS] for s in SENSORS):
            assert time.monotonic() < limit
            time.sleep(0.02)
        boats = Boats(server)
        yield boats
        server.send("shutdown")
        assert server.process.wait(30) == 0
        boats.thread.join(10)
        assert not boats.thread.is_alive()
    finally:
        for p in emulators:
            p.kill()
            p.wait()


def test_reset_server_equals_a_fresh_one(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> None:
    loaded = config(CONFIG.format(time=""))
    with running(serve, loaded, tmp_path / "fresh.mcap") as boats:
        boats.server.send("start")
        fresh = boats.take(10_000)
    with running(serve, loaded, tmp_path / "run.mcap") as boats:
        boats.server.send("start")
        assert boats.take(23) == fresh[:23]
        number = boats.a.control("reset")  # while the server waits for the answer to a step
        answer(boats.a, boats.last)
        assert boats.a.wait(number) == "reset at 2.200 s"
        assert wavesim("start", "-s", boats.server.name).returncode == 0
        again = boats.take(10_000)
        changes = [c for step in boats.seen_by_b for c in step.time_changes]
        assert [(c.time_ns, c.before_ns) for c in changes] == [(0, 2_200_000_000)]
    assert again == fresh and len(fresh) == 60
    whole, cut, second = (read(tmp_path / f"{n}.mcap") for n in ("fresh", "run", "run-2"))
    assert second.content_hash == whole.content_hash != cut.content_hash
    assert [c["verb"] for _, c in cut.json["/commands"]][-1] == "reset"
    assert second.metadata["earlier_run"] == cut.metadata["run"] and cut.complete
    assert len(whole.series["/sensor/a/ctd"].records) > 15 and len(whole.series["/acoustics/reception"].records) > 8


def without(sensor: str, steps: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(*head, [v for v in values if v[0] != sensor]) for *head, values in steps]


def test_return_to_snapshots(config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path) -> None:
    """States and values repeat exactly. Only values that were on their way to their publication are lost."""
    loaded = config(CONFIG.format(time='snapshot_period="1 s" snapshots="3"'))
    with running(serve, loaded, tmp_path / "run.mcap") as boats:
        name, a = boats.server.name, boats.a
        boats.server.send("start")
        first = boats.take(23)
        boats.server.send("snapshot", action="save", name="mid")  # the step at 2.2 s is not answered yet
        file = tmp_path / "branch.snapshot"
        saved = wavesim("snapshot", "save", str(file), "-s", name)
        assert saved.stdout == f"wrote the snapshot '{file}' at 2.200 s\n"
        answer(a, boats.last)
        number = a.snapshot("save", "other")
        first += boats.take(20)
        assert a.wait(number).startswith("saved the snapshot 'other' at 2.")

        number = a.snapshot("restore", "mid")
        answer(a, boats.last)
        assert a.wait(number) == "returned from 4.200 s to 2.200 s"
        second = boats.take(21)
        assert second[0][0] == 220
        assert without("ctd", second) == without("ctd", first[22:])
        assert second[6:] == first[28:], "0.5 s later, the CTD's values are the same again"

        rewound = wavesim("rewind", "3.7 s", "-s", name)
        assert rewound.stdout == "returned from 4.200 s to 3.000 s\n"
        assert without("ctd", boats.take(6)) == without("ctd", first[30:36])

        for arguments, text in (
            (("rewind", "0.5"), "no automatic snapshot at or before 0.500 s; the oldest is at 2.000 s"),
            (("snapshot", "restore", "mit"), "no snapshot is named 'mit'; did you mean 'mid'?"),
            (("snapshot", "restore", str(tmp_path / "x.snapshot")), "cannot read the snapshot"),
            (("snapshot", "save", "a b"), "invalid name 'a b'"),
        ):
            refused = wavesim(*arguments, "-s", name)
            assert refused.returncode != 0 and text in refused.stderr and refused.stderr.count("\n") == 1
        with pytest.raises(Refused, match="may not name a file"):
            number = a.snapshot("save", "/tmp/a.snapshot")
            answer(a, boats.last)
            a.wait(number)
        number = a.snapshot("remove", "mid")
        boats.take(2)
        answer(a, boats.last)
        assert a.wait(number) == "removed the snapshot 'mid'"
    assert [read(p).json["/run"][0] for p in sorted(tmp_path.glob("run-*.mcap"))] == [
        (2_200_000_000, {"state": "running"}),
        (3_000_000_000, {"state": "running"}),
    ]
    lab = Lab(loaded.path)
    lab.restore(Snapshot.read(file))
    assert lab.time_s == pytest.approx(2.2) and lab.names == ["a", "b", "boat", "pinger"]
    assert tuple(lab.state()[lab.row("a")]["p_WB_W"]) == first[22][2][:3]
