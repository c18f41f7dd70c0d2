"""SIGKILL of any process: the others continue, or the server reports what happened; no objects are left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.processes import children

from tests.conftest import CLI, Server
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import NotRunning
from wavesim_sdk.log import read
from wavesim_sdk.shared_memory import OWNER
from wavesim_sdk.tables import STATE, RunState
from wavesim_server.resources import remove_leftovers
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.system

CONFIG = """<time step="4 ms"/><network keepalive_period="100 ms" keepalive_timeout="700 ms" lockstep_timeout="5 s"/><world><bed depth="200 m"/></world>
<fleet><sensors><ctd rate="10 Hz"/><ahrs rate="10 Hz"/></sensors><vehicle name="a" model="lauv" position="0 0 20 m" client="optional"/>
<vehicle name="b" model="lauv" position="50 0 20 m" client="optional"/></fleet>"""

PROGRAM = """
import sys
from wavesim_sdk.broker import Broker
with Broker(sys.argv[1], ("127.0.0.1", int(sys.argv[2])), lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer([5.0])
"""


class Processes:
    """Processes that are ended after the test."""

    def __init__(self) -> None:
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        self.all.append(subprocess.Popen([*arguments], stderr=subprocess.DEVNULL))
        return self.all[-1]

    def emulator(self, sensor: str, config: Path, server: Server) -> subprocess.Popen[bytes]:
        return self.start(*CLI, "emulate", sensor, str(config), "--server", server.name)

    def program(self, name: str, server: Server) -> subprocess.Popen[bytes]:
        return self.start(sys.executable, "-c", PROGRAM, name, str(server.port))


@pytest.fixture
def processes() -> Iterator[Processes]:
    p = Processes()
    yield p
    for process in p.all:
        if process.poll() is None:
            process.kill()
        process.wait()


def until(condition: Callable[[], bool], timeout: float = 30.0) -> None:
    limit = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < limit, "timed out"
        time.sleep(0.02)


def test_emulators_and_brokers_are_killed_and_replaced(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: Processes
) -> None:
    loaded = config(CONFIG)
    server = serve(loaded.path, "--speed", "0")
    reader = SharedState(server.name)
    ctd = processes.emulator("ctd", loaded.path, server)
    processes.emulator("ahrs", loaded.path, server)
    processes.program("a", server)
    b = processes.program("b", server)
    until(lambda: all(reader.vehicles[s].header[OWNER] for s in ("ctd", "ahrs")))
    server.wait(lambda s: s["clients_total"] == 2)
    server.send("start")
    until(lambda: reader.values("ctd")["sequence"][0] > 20)

    # an emulator dies: time goes on, the other sensor and both clients do not notice
    ctd.kill()
    ctd.wait()
    stale = reader.values("ctd")["tick"][0]
    until(lambda: reader.values("ahrs")["tick"][0] > stale + 500)
    assert reader.values("ctd")["tick"][0] == stale, "nobody writes the dead one's values"
    assert server.status()["clients_total"] == 2

    # another takes over
    second = processes.emulator("ctd", loaded.path, server)
    until(lambda: reader.vehicles["ctd"].header[OWNER] == second.pid)
    until(lambda: reader.values("ctd")["tick"][0] > stale + 500)
    until(lambda: reader.values("ctd")["tick"][0] == reader.values("ahrs")["tick"][0])

    # a third is refused while the second lives
    third = processes.emulator("ctd", loaded.path, server)
    assert third.wait(60) == 3

    # a broker dies: removed after the keep-alive time, the others go on, and it may come again
    b.kill()
    server.wait(lambda s: s["clients_total"] == 1 and s["vehicles"] == 1)
    tick = int(str(server.status()["tick"]))
    server.wait(lambda s: int(str(s["tick"])) > tick + 500)
    until(lambda: reader.clients()["status"][1] == 2)
    processes.program("b", server)
    server.wait(lambda s: s["clients_total"] == 2 and s["vehicles"] == 2)
    generation = reader.vehicles["identity"].snapshot()[1]["generation"]
    assert generation[1] == 2 and generation[0] == 1


def test_a_killed_engine_is_reported_at_once(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    server = serve(config(CONFIG).path, "--speed", "1", "--start")
    children = subprocess.run(
        ["pgrep", "-P", str(server.process.pid), "wavesim-engine"],
        capture_output=True,
        text=True,
        check=True,
    )
    os.kill(int(children.stdout.split()[0]), signal.SIGKILL)
    started = time.monotonic()
    assert server.process.wait(60) == 9
    assert time.monotonic() - started < 15
    assert server.process.stderr is not None
    assert "the engine process was killed by signal 9" in server.process.stderr.read()


BROKEN = """
import sys
if "serve" in sys.orig_argv:
    from wavesim_server.simulation import Simulation
    advance = Simulation.advance
    def broken(self, ticks=1):
        if self.tick >= 250:
            raise ZeroDivisionError("in a test")
        advance(self, ticks)
    Simulation.advance = broken
"""


def test_an_engine_that_fails_at_a_tick_says_so_in_one_line(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    log = tmp_path / "run.mcap"
    text = CONFIG.replace('client="optional"', 'client="none"')
    server = serve(config(text).path, "--speed", "1", "--start", "--log", str(log))
    assert server.process.wait(60) == 9
    assert server.process.stderr is not None
    failed, stops = server.process.stderr.read().splitlines()[-2:]
    assert "the engine failed at 1." in failed and "ZeroDivisionError: in a test" in failed and "report it" in failed
    assert stops == "wavesim: the engine failed (see above); the server stops"
    found = read(log)
    assert found.complete and found.series["/state/a"].time_ns[-1] >= 0.9e9, "what happened before is in the log"


def test_a_killed_server_leaves_a_readable_log_and_restarts_without_help(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path, processes: Processes
) -> None:
    log = tmp_path / "run.mcap"
    loaded = config(CONFIG.replace('client="optional"', 'client="none"'))
    server = serve(loaded.path, "--speed", "20", "--start", "--log", str(log))
    server.wait(lambda s: s["time_ns"] > 40e9)
    pids = [
        int(p)
        for p in subprocess.run(
            ["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
    ]
    killed_at = float(str(server.status()["time_ns"])) * 1e-9
    for pid in [*pids, server.process.pid]:
        os.kill(pid, signal.SIGKILL)
    server.process.wait()
    found = read(log)
    assert not found.complete
    assert killed_at - found.end_ns * 1e-9 < 20 * 1.0, "at most the last second of wall time is lost"
    again = serve(loaded.path, "--speed", "1", "--start")
    assert again.wait(lambda s: s["tick"] > 10)["state"] == "running"


def test_orphans_end_when_the_supervisor_is_killed(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str
) -> None:
    server = serve(config(CONFIG).path, "--speed", "1", "--start")
    pids = [
        int(p)
        for p in subprocess.run(
            ["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
    ]
    assert len(pids) == 2
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    until(lambda: not any(Path(f"/proc/{p}").exists() for p in pids), 10)
    assert remove_leftovers(name), "what a killed supervisor leaves is found and removed"


def test_parts_that_are_still_starting_end_without_their_supervisor(
    config: Callable[..., LoadedConfig], name: str
) -> None:
    """It is gone before they could ask who their parent is."""
    with subprocess.Popen([*CLI, "serve", str(config(CONFIG).path), "--name", name, "--port", "0"]) as server:
        until(lambda: set(children(server.pid)) == {"engine", "front"})
        parts = children(server.pid).values()
        for pid in parts:
            os.kill(pid, signal.SIGSTOP)
        server.kill()
    for pid in parts:
        os.kill(pid, signal.SIGCONT)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in parts))
    remove_leftovers(name)


def test_a_front_that_crashes_is_started_again(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> None:
    """With `restarts`: time goes on, bodies wait for their clients and go with those that do not come, a log each; then enough is enough."""
    text = (
        CONFIG.replace("<network ", '<network restarts="1" newcomers="free" ')
        .replace("<sensors>", "<!--")
        .replace("</sensors>", "-->")
    )
    log = tmp_path / "run.mcap"
    server = serve(config(text).path, "--log", str(log), "--start")
    state = SharedState(server.name)
    at = ("127.0.0.1", server.port)
    with (
        Broker("guest", at, model="lauv", position=(9.0, 9.0, 9.0)) as guest,
        Broker("a", at) as a,
        Broker("b", at) as b,
    ):
        for broker in (guest, a, b):
            next(broker.steps())
        generations = state.vehicles["identity"].snapshot()[1]["generation"][:3].tolist()
        while int(state.clock()["tick"]) < 500:  # some chunks of the log
            for broker in (guest, a, b):
                broker.poll(0.01)
        before = int(state.clock()["tick"])
        os.kill(children(server.process.pid)["front"], signal.SIGKILL)
        begun = time.monotonic()
        assert server.process.stderr is not None
        lines = iter(server.process.stderr.readline, "")  # who joined stands there too
        assert any("the front-end process was killed by signal 9 and is being restarted" in line for line in lines)
        assert time.monotonic() - begun < 1.0, "reported within a second"
        with Broker("a", at) as again, Broker("guest", at, model="lauv") as guest_again:
            assert next(again.steps()).state.tick > before
            assert next(guest_again.steps()).state.motion[0] == pytest.approx(9.0, abs=3.0), "where it was"
            while len(state.snapshot().rows) > 2 or int(state.clock()["tick"]) < before + 1000:  # b did not come
                again.poll(0.01)
                guest_again.poll(0.01)
            identity = state.vehicles["identity"].snapshot()[1]
            assert [int(identity["generation"][k]) for k in (0, 2)] == [generations[0], generations[2]]
            assert bytes(identity["name"][2]) == b"guest"
            os.kill(children(server.process.pid)["front"], signal.SIGKILL)
            assert server.process.wait(15) == 9
    for path in (log, tmp_path / "run-2.mcap"):
        found = read(path)
        assert len(found.get("/state/a", STATE).records)


@pytest.mark.parametrize("part", ["engine", "front"])
def test_a_part_killed_after_the_last_tick_of_a_trial_is_no_success(
    config: Callable[..., LoadedConfig], tmp_path: Path, name: str, part: str
) -> None:
    path = config(
        '<time duration="1 s" step="4 ms"/><fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>'
    ).path
    trial = subprocess.Popen(
        [
            *CLI,
            "trial",
            str(path),
            "--out",
            str(tmp_path),
            "--name",
            name,
            "--port",
            "0",
            "--quiet",
            "--realtime",
            "--no-plots",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    state: list[SharedState] = []

    def runs() -> bool:
        with contextlib.suppress(NotRunning):  # it is not there yet, or just being made
            state.append(SharedState(name))
        return bool(state) and state[0].run_state() is RunState.RUNNING

    try:
        until(runs)
        killed = children(trial.pid)[part]
        trial.send_signal(signal.SIGSTOP)  # it looks at the clock now and then: it must not see the end before the kill
        until(lambda: state[0].run_state() is RunState.ENDED)
        os.kill(killed, signal.SIGKILL)
        trial.send_signal(signal.SIGCONT)
        _, error = trial.communicate(timeout=60)
    finally:
        trial.kill()
    assert trial.returncode == 9 and f"the {part} process was killed by signal 9" in error, error
    assert "Traceback" not in error
