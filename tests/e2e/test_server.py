"""A real server: commander, clients that join and leave, stopped and running clock."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.processes import children

from tests.conftest import Server, run_trial, wavesim
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import AsyncBroker, Broker
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import ConfigError, NotRunning, Refused
from wavesim_sdk.log import read
from wavesim_sdk.server_address import address_of
from wavesim_sdk.shared_memory import no_such_server
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.system

FLEET = """<time step="4 ms"/><network newcomers="free" keepalive_period="100 ms" keepalive_timeout="1 s" lockstep_timeout="1 s"/><world><bed depth="200 m"/></world>
<fleet><vehicle name="hidden" model="lauv" position="0 0 20 m" client="optional" truth="none"/>
<vehicle name="boat" model="jolner" position="50 0 -0.1 m" client="optional"/>
<buoy name="fixed" model="buoy" position="0 300 10 m"><mooring anchor="0 300 100 m" length="89.9 m" stiffness="1000 N/m" damping="100 N s/m"/></buoy></fleet>"""


@pytest.fixture
def server(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> Server:
    return serve(config(FLEET).path, "--speed", "1")


def test_faults_and_pushes_on_command(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    """By the commands that a user types."""
    fleet = '<fleet><vehicle name="boat" model="jolner" position="50 0 0 m"/></fleet>'
    server = serve(config(f'<time step="4 ms"/><world><bed depth="200 m"/></world>{fleet}').path, "--speed", "0")
    pushed = wavesim("push", "boat", "100", "0", "0", "0", "0", "20", "-s", server.name)
    assert pushed.returncode == 0 and "push 'boat'" in pushed.stdout
    wrong = wavesim("push", "bota", "1", "0", "0", "-s", server.name)
    assert wrong.returncode == 4 and "present: boat" in wrong.stderr
    wrong = wavesim("fault", "boat", "starbord", "lost", "-s", server.name)
    assert wrong.returncode == 4 and "did you mean 'starboard'?" in wrong.stderr
    assert wavesim("fault", "boat", "starboard", "stuck", "-s", server.name).returncode == 0
    assert (
        wavesim("fault", "boat", "port", "none", "-s", server.name).stdout == "repaired 'port' of 'boat' at 0.000 s\n"
    )
    assert wavesim("fault", "boat", "starboard", "broken", "-s", server.name).returncode == 4
    server.send("step", ticks=1250)
    server.wait(lambda s: s["tick"] == 1250)
    state = SharedState(server.name).snapshot().state[0]
    assert state["v_WB_B"][0] > 0.3 and state["w_WB_B"][2] > 0.05
    with Commander(server.name) as commander:
        assert "matrix" in commander.send("allocate", body="boat", matrix=[[1.0]]).text
        assert commander.send("allocate", body="boat", matrix=[[1.0, 1.0], *[[0.0, 0.0]] * 5]).ok
        assert not commander.send("fault", body="boat", part="x", kind="lost").ok
        numbered = commander.send("fault", body="boat", part="7", kind="lost")
        assert not numbered.ok and "unknown actuator 7; use 0 to 1" in numbered.text
        assert "missing body" in commander.send("fault", part="port", kind="lost").text
        assert "unknown field 'vehicle'" in commander.send("fault", vehicle="boat", part="port", kind="lost").text


def test_an_upwelling_on_command(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    """A neutral body in still water rises after the command, and sinks after the next; a wrong one changes nothing."""
    fleet = '<fleet><vehicle name="rov" model="vita1" position="0 0 50 m"/></fleet>'
    server = serve(config(f'<time step="20 ms"/><world><bed depth="200 m"/></world>{fleet}').path, "--speed", "0")
    state, depths = SharedState(server.name), [50.0]
    for k, down in enumerate(("-0.2", "21", "0.4 kn"), 1):
        done = wavesim("weather", "--current-down", down, "-s", server.name)
        if down == "21":
            assert done.returncode == 4 and "current_down 21.0 is out of range (-20 to 20)" in done.stderr
        else:
            assert done.returncode == 0 and done.stdout.startswith("weather starting at"), done.stderr
        server.send("step", ticks=1500)
        server.wait(lambda s, k=k: s["tick"] == 1500 * k)  # type: ignore[misc]
        now = state.snapshot()
        depths.append(float(now.state[0]["p_WB_W"][2]))
        expected = -0.2 if k < 3 else 0.4 * 1852 / 3600
        assert state.weather()["current_W"].tolist() == pytest.approx([0.0, 0.0, expected])
    rose, further, sank = np.diff(depths)
    assert -6.0 < rose < -3.0 and further == pytest.approx(-6.0, abs=0.5) and 2.0 < sank < 6.2


def test_the_commander(server: Server) -> None:
    s = server.status()
    assert (s["state"], s["tick"], s["vehicles"], s["buoys"]) == ("stopped", 0, 0, 1)
    server.send("step", ticks=25)
    s = server.wait(lambda s: s["tick"] == 25)
    assert s["state"] == "paused" and s["time_ns"] == 100_000_000 and s["timestamp"] == 1000
    server.send("start")
    server.wait(lambda s: s["tick"] > 100)
    with Commander(server.name) as commander:
        refused = commander.send("step", ticks=1)
        assert not refused.ok and "pause it" in refused.text
        unknown = commander.send("strat")
        assert not unknown.ok and "did you mean 'start'" in unknown.text
        assert (
            "'speed' requires" in commander.send("speed", speed="x").text
            or "requires factor" in commander.send("speed", factor="x").text
        )
        assert not commander.send("speed", factor=-1).ok
    server.send("pause")
    first = server.status()
    assert first["state"] == "paused"
    assert server.status()["tick"] == first["tick"], "time stands still"
    server.send("resume")
    server.wait(lambda s: s["tick"] > first["tick"])
    server.send("speed", factor=0)
    server.wait(lambda s: s["time_ns"] > 20e9)
    server.send("stop")
    assert server.status()["state"] == "stopped"
    server.send("shutdown")
    assert server.process.wait(10) == 0


def test_a_wrong_server_name_is_answered_with_the_running_servers(
    server: Server, config: Callable[..., LoadedConfig]
) -> None:
    """In one text, wherever a name is taken: `-s` forgotten, or misspelt."""
    commands = (
        ["status"],
        ["start"],
        ["viz", "--port", "0"],
        ["emulate", "ctd", config(FLEET.replace("<fleet>", "<fleet><sensors><ctd/></sensors>")).path],
        ["device", "nmea", "boat"],
        ["mailbox", "boat", "--queue", "/none"],
        ["record", "boat", "sonar", "x.xtf"],
    )
    for wrong, hint in (("absent", "running here: "), (server.name + "x", f"did you mean '{server.name}'?\n")):
        for command in commands:
            said = wavesim(*command, "-s", wrong)
            assert said.returncode == 3, command
            assert said.stderr.startswith(f"wavesim: no server named '{wrong}' is running; {hint}"), said.stderr
            assert "/wavesim." not in said.stderr
    assert f"'{server.name}'?" not in str(no_such_server(server.name)), "only other names are suggested"


def test_a_server_is_named_in_one_way_everywhere(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name here, or host and port, as an argument or by WAVESIM_SERVER."""
    here = ("127.0.0.1", server.port)
    assert address_of(server.name) == address_of(f"127.0.0.1:{server.port}") == address_of(here) == here
    monkeypatch.setenv("WAVESIM_SERVER", server.name)
    assert address_of(None) == here
    for broker in (Broker("boat"), Broker("boat", server.name)):
        with broker:
            assert broker.poll(5.0)
    with pytest.raises(ConfigError, match="use its name or HOST:PORT"):
        address_of("demo:x")
    with pytest.raises(NotRunning, match="no server named 'absent'"):
        address_of("absent")
    (entry,) = [s for s in json.loads(wavesim("servers", "--json").stdout) if s["name"] == server.name]
    assert entry["address"] == list(here) and entry["state"] == "stopped"
    assert server.name in wavesim("servers").stdout
    done = wavesim("device", "nmea", "absent", "--tcp", "0")
    assert f"127.0.0.1:{server.port}" in done.stderr or "absent" in done.stderr, done.stderr


def test_bad_messages_in_the_commander_queue_are_counted(server: Server) -> None:
    import posix_ipc

    from wavesim_sdk.commander import queue_name

    queue = posix_ipc.MessageQueue(queue_name(server.name))
    for junk in (b"", b"\xff\xfe", b"[]", b'{"verb": 1, "id": 1}', b"[" * 1000):
        queue.send(junk)
    queue.close()
    server.wait(lambda s: s["commander_bad"] == 5)


def test_clients_talk_while_the_simulation_is_stopped(server: Server) -> None:
    with Broker("boat", ("127.0.0.1", server.port)) as broker:
        step = broker.poll(5.0)[-1]
        assert step.state.tick == 0 and step.state.run_state == 0
        assert step.state.motion is not None and step.state.motion[:2] == (50.0, 0.0)
        broker.answer([40.0, 40.0])
        broker.poll(0.2)
        assert server.status()["clients_total"] == 1
        server.send("start")
        limit = time.monotonic() + 60.0
        while time.monotonic() < limit:
            state = broker.poll(1.0)[-1].state
            if state.motion is not None and state.motion[7] > 0.3 and state.actuation[1] > 39.7:
                break
        assert state.motion is not None and state.motion[7] > 0.3, "the command given while stopped moves the boat"
        assert state.actuation[:2] == pytest.approx([40.0, 40.0], rel=1e-2)
        server.wait(lambda s: s["clients"][0]["rtt_ms"] > 0)  # type: ignore[index]
    server.wait(lambda s: s["clients_total"] == 0 and s["vehicles"] == 0)


def test_the_truth_is_hidden_where_the_configuration_says_so(server: Server) -> None:
    with Broker("hidden", ("127.0.0.1", server.port)) as broker:
        assert broker.poll(5.0)[-1].state.motion is None


def test_new_vehicles_by_model_and_every_refusal(server: Server) -> None:
    at = ("127.0.0.1", server.port)
    with Broker("newcomer", at, model="remus100", position=(10.0, 20.0, 30.0)) as broker:
        state = broker.poll(5.0)[-1].state
        assert state.motion is not None and state.motion[:3] == (10.0, 20.0, 30.0)
        assert broker.welcome.id == 3 and broker.welcome.step_ns == 4_000_000 and broker.welcome.sound_speed == 1500.0
        reader = SharedState(server.name)
        assert reader.row("newcomer") == 3
        for name, model, message in (
            ("newcomer", "", "is in use"),
            ("stranger", "", "has no body 'stranger'; to add a new body, specify its model"),
            ("stranger", "remsu100", "did you mean 'remus100'"),
            ("fixed", "", "without a pilot"),
            ("a b", "remus100", "letters, digits"),
        ):
            with pytest.raises(Refused, match=message):
                Broker(name, at, model=model).connect()
        with pytest.raises(Refused, match="is not a multiple of the time step"):
            Broker("boat", at, lockstep=0.0051).connect()


def test_acoustics_reach_the_broker(server: Server) -> None:
    with Broker("hidden", ("127.0.0.1", server.port), lockstep=0.1) as broker:
        server.send("speed", factor=0)
        threading.Timer(0.0, server.send, ("start",)).start()
        asked, heard, refused = None, None, []
        for step in broker.steps():
            if step.state.tick == 25:
                broker.ping(25e3)
            if step.state.tick == 50:
                broker.ping(25e3)
            for s in step.sent:
                asked = asked or s
            refused += [r.text for r in step.refused]
            for h in step.receptions:
                heard = heard or h
            if heard is not None or step.time > 3.0:
                break
        assert asked is not None and asked.emission_ns == 100_000_000 and asked.frequency == 25e3
        assert heard is not None and heard.query == asked.id and heard.frequency == pytest.approx(26e3, abs=2.0)
        distance = 1500.0 * (heard.reception_ns - asked.emission_ns - 15_000_000) * 1e-9 / 2
        assert distance == pytest.approx(np.hypot(300, 10), abs=2.0)
        assert heard.range == pytest.approx(distance, abs=1e-6) and 120 < heard.level < 160
        assert refused == ["the transducer was recharging; nothing was sent"]


def test_who_comes_goes_or_dies_stands_on_the_console(server: Server) -> None:
    """A client that says nothing more for the keep-alive time is gone."""
    at = ("127.0.0.1", server.port)
    with Broker("boat", at):
        pass
    silent = Broker("hidden", at)
    silent.connect()
    server.wait(lambda s: s["clients_total"] == 0)
    silent.close()
    server.end()
    assert server.process.stderr is not None
    lines = [re.sub(r":\d+", "", line) for line in server.process.stderr]
    assert lines == [
        "wavesim: 'boat' joined as pilot from 127.0.0.1\n",
        "wavesim: 'boat' (pilot) left\n",
        "wavesim: 'hidden' joined as pilot from 127.0.0.1\n",
        "wavesim: 'hidden' (pilot) fell silent and was removed\n",
    ]


def test_a_server_shares_with_its_group_where_the_configuration_says_so(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    """Areas, semaphores and the commander's queue, whatever the umask; the rings between its own processes are nobody's."""
    fleet = '<fleet><sensors><ahrs rate="1 Hz"/></sensors><vehicle name="v" model="lauv" position="0 0 9 m"/></fleet>'
    path = config(f'<shared group="yes"/>{fleet}').path
    before = os.umask(0o077)
    try:
        server = serve(path)
    finally:
        os.umask(before)
    names = ("simulation", "vehicles", "claim", "ahrs.due", "ahrs.done")
    assert modes(server.name) == {**dict.fromkeys(names, 0o660), "commands": 0o600, "events": 0o600, "commander": 0o620}


def modes(name: str) -> dict[str, int]:
    """Who may use memory, semaphores and queue of a server."""
    files = [*Path("/dev/shm").glob(f"wavesim.{name}.*"), *Path("/dev/shm").glob(f"sem.wavesim.{name}.*")]
    found = {f.name.partition(f"{name}.")[2]: f.stat().st_mode & 0o777 for f in files}
    with Commander(name) as commander:
        return {**found, "commander": os.fstat(commander._queue.mqd).st_mode & 0o777}


def test_a_bad_ping_is_refused_to_that_client_alone(server: Server) -> None:
    with Broker("hidden", ("127.0.0.1", server.port)) as broker:
        broker.ping(1e9)
        limit = time.monotonic() + 60.0
        texts: list[str] = []
        while not texts and time.monotonic() < limit:
            texts += [r.text for s in broker.poll(0.5) for r in s.refused]
        assert "out of range" in texts[0]


async def test_asyncio_brokers(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    patient = FLEET.replace('timeout="1 s"', 'timeout="60 s"')  # a busy machine may hold this process up for a second
    server = serve(config(patient).path, "--speed", "1")
    at = ("127.0.0.1", server.port)
    async with AsyncBroker("boat", at, lockstep=0.02) as boat, AsyncBroker("hidden", at, lockstep=0.1) as auv:
        await asyncio.to_thread(server.send, "speed", factor=0)
        await asyncio.to_thread(server.send, "start")
        times: dict[str, list[float]] = {"boat": [], "hidden": []}

        async def drive(broker: AsyncBroker) -> None:
            async for step in broker.steps():
                times[broker.name].append(step.time)
                broker.answer([10.0])
                if step.time >= 3.0:
                    return

        await asyncio.wait_for(asyncio.gather(drive(boat), drive(auv)), 90)
    assert times["boat"] == pytest.approx(np.arange(0, 3.001, 0.02))
    assert times["hidden"] == pytest.approx(np.arange(0, 3.001, 0.1))


def test_shared_memory_shows_the_run(server: Server) -> None:
    reader = SharedState(server.name)
    assert set(modes(server.name).values()) == {0o600}, "it is this user's alone"
    with Broker("boat", ("127.0.0.1", server.port)) as broker:
        server.send("start")
        server.wait(lambda s: s["tick"] > 200)
        broker.poll(0.2)
        view = reader.snapshot()
        assert [bytes(n) for n in view.identity["name"][view.rows]] == [b"boat", b"fixed"]
        assert view.time_ns == view.tick * 4_000_000 > 0
        world = reader.world()
        assert world["sound_speed"] == 1500.0 and world["step_ns"] == 4_000_000
        clients = reader.clients()
        assert clients["status"].tolist()[:3] == [0, 1, 0] and clients["name"][1] == b"boat"
        limit = time.monotonic() + 60.0
        while reader.clients()["replies"][1] < 2 and time.monotonic() < limit:
            broker.poll(0.1)
        record = reader.clients()[1]
        assert record["replies"] >= 2 and 0 < record["rtt_min"] <= record["rtt_mean"] <= record["rtt_max"] < 1.0
    assert reader.alive()


def test_a_lockstep_client_that_is_too_slow_is_no_longer_waited_for(server: Server) -> None:
    with Broker("boat", ("127.0.0.1", server.port), lockstep=0.1) as broker:
        server.send("speed", factor=0)
        server.send("start")
        broker.poll(5.0)  # the step of tick 0 is taken and never answered
        limit = time.monotonic() + 60.0
        while server.status()["tick"] == 0 and time.monotonic() < limit:
            broker.poll(0.05)
        assert server.status()["tick"] > 0


def test_the_engine_goes_first_only_while_it_keeps_wall_time(server: Server) -> None:
    """Real-time scheduling at real time, the ordinary one when paused, faster, or as fast as possible."""
    engine = children(server.process.pid)["engine"]

    def policy(wanted: int) -> None:
        limit = time.monotonic() + 60.0
        while os.sched_getscheduler(engine) != wanted:
            assert time.monotonic() < limit, os.sched_getscheduler(engine)
            time.sleep(0.01)

    first = os.SCHED_FIFO if may_be_first() else os.SCHED_OTHER
    policy(os.SCHED_OTHER)
    server.send("start")
    policy(first)
    server.send("speed", factor=0)
    policy(os.SCHED_OTHER)
    server.send("speed", factor=1)
    policy(first)
    server.send("pause")
    policy(os.SCHED_OTHER)


def may_be_first() -> bool:
    """Whether this user may have it: tried in a process of its own."""
    trial = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    return (os.cpu_count() or 1) > 1 and subprocess.run(
        [sys.executable, "-c", trial], capture_output=True
    ).returncode == 0


def test_a_status_of_five_hundred_required_bodies_comes_whole(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    names = [f"vehicle-{k:03}" for k in range(500)]
    fleet = "".join(
        f'<vehicle name="{n}" model="lauv" position="{20 * (k // 25)} {20 * (k % 25)} 9 m" client="required"/>'
        for k, n in enumerate(names)
    )
    server = serve(config(f'<shared vehicles="500"/><fleet>{fleet}</fleet>').path)
    assert server.status()["missing"] == names


CROWD = """
import argparse
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import SessionLost
parser = argparse.ArgumentParser()
for name in ("--config", "--vehicle", "--port"):
    parser.add_argument(name)
port = int(parser.parse_args().port)
brokers = [Broker(f"vehicle-{k:03}", ("127.0.0.1", port)) for k in range(500)]
try:
    for k, broker in enumerate(brokers):
        broker.connect()
        # A slow machine needs longer for all of them than the server waits for one.
        for joined in brokers[:k]:
            joined.poll(0.0)
    while True:
        for broker in brokers:
            broker.poll(0.0)
except SessionLost:
    pass
"""


def test_a_trial_of_five_hundred_required_bodies_starts_and_ends(
    config: Callable[..., LoadedConfig], tmp_path: Path, name: str
) -> None:
    (tmp_path / "crowd.py").write_text(CROWD)
    program = '<program run="crowd.py"/>'
    fleet = "".join(
        f'<vehicle name="vehicle-{k:03}" model="lauv" position="{20 * (k // 25)} {20 * (k % 25)} 9 m" client="required">'
        + ("" if k else program)
        + "</vehicle>"
        for k in range(500)
    )
    path = config(
        '<shared vehicles="500"/><time duration="0.2 s" step="20 ms"/><log state_rate="10 Hz"/>'
        f'<network state_rate="1 Hz"/><fleet>{fleet}</fleet>'
    ).path
    done = run_trial(path, tmp_path, name)
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / name / "run.mcap").bodies) == 500
