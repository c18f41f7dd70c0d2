"""Sessions of programs in the server's process: the same contents, rights and refusals as over the network."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import wavesim
from tests.in_process.conftest import output
from wavesim_sdk.log import read
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_world.config import load

pytestmark = [pytest.mark.system, pytest.mark.timeout(200), pytest.mark.xdist_group("trial")]
Make = Callable[..., InProcessTrial]

BEACON = """<buoy name="lbl" model="buoy" position="100 50 8 m"><transducer position="0 0 0.3 m" threshold="90 dB"
turn_around="15 ms" recharge="500 ms" query="25 kHz" reply="26 kHz"/></buoy>"""

NAVIGATES = """
heard = []
with Broker(a.vehicle, SERVER, lockstep=0.1, effort=True, others=True) as broker:
    for step in broker.steps():
        heard += [(r.reception_ns, r.frequency) for r in step.receptions]
        if round(step.time * 10) % 20 == 5:
            broker.ping(25e3)
        if step.sensors:
            depth, x = step.sensors.ctd.pressure / 1e4, step.state.actuation["propeller"]
            estimate = [x, 0.0, depth, 1.0, 1.0, 0.1, 0.0, 0.0, depth, None]
            broker.answer({"propeller": 6.0 + 0.1 * step.sensors.ahrs.heading}, estimate)
print(len(heard) > 2, step.state.effort is not None)
"""
ASYNC = """
import asyncio
async def pilot():
    async with AsyncBroker(a.vehicle, SERVER, lockstep=0.1) as broker:
        async for step in broker.steps():
            await asyncio.sleep(0.001)  # the server waits meanwhile
            broker.answer({"propeller": 5.0 + step.time})
async def instrument():
    async with AsyncBroker(a.vehicle, SERVER, role="instrument", state_period=0.5) as broker:
        times = [step.time async for step in broker.steps()]
    print("instrument", len(times), max(times, default=0.0))  # over the network, a slow one may miss all
async def both():
    await asyncio.gather(pilot(), instrument())
asyncio.run(both())
"""


def in_processes(trial: InProcessTrial) -> Path:
    """The folder of the same trial with every participant in a process of its own."""
    out = trial.folder.parent / "processes"
    more = ["--out", str(out), "--name", trial.name, "--port", "0", "--quiet", "--no-plots"]
    done = wavesim("trial", trial.loaded.path, *more, timeout=150)
    assert done.returncode == 0, done.stderr
    return out / trial.name


def test_one_content_hash_in_one_process_in_processes_and_mixed(make_trial: Make) -> None:
    trial = make_trial(seconds=6.0, fleet=BEACON, one=NAVIGATES, two=NAVIGATES, three=ASYNC)
    trial.run(plots=False)
    trial.check()
    inside = read(trial.log).content_hash
    assert output(trial, "one") == output(trial, "two") == "True True\n"
    assert output(trial, "three").startswith("instrument 1")
    assert read(in_processes(trial) / "run.mcap").content_hash == inside
    config = trial.loaded.path.read_text()
    trial.loaded.path.write_text(config.replace('run="two.py"', 'run="two.py" own_process="yes"'))
    mixed = InProcessTrial(load(trial.loaded.path), trial.folder.parent / "mixed", name=trial.name, port=0, quiet=True)
    mixed.run(plots=False)
    mixed.check()
    assert list(mixed.processes) == ["program-two"] and len(mixed.host.programs) == 2
    ours, theirs = read(trial.log), read(mixed.log)  # the hashes cover the configurations, which differ
    assert ours.series.keys() == theirs.series.keys()
    for topic, series in ours.series.items():
        assert series.records.tobytes() == theirs.series[topic].records.tobytes(), topic
    assert ours.json["/commands"] == theirs.json["/commands"]


def test_an_observer_with_rights_and_missions_from_another_program(make_trial: Make) -> None:
    referee = """
from wavesim_sdk.observer import Observer
seen = set()
with Observer("referee", SERVER, rate=5.0) as referee, Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer({"propeller": 3.0})
        for frame in referee.poll(0.0):
            seen |= {referee.names[int(b["id"])] for b in frame.bodies}
        if round(step.time * 10) == 10:
            print(referee.wait(referee.push((0.0, 50.0, 0.0), body="auv")))
            print(referee.wait(referee.mission([(10.0, 0.0, 5.0, 1.0)], body="auv")))
            print(referee.wait(referee.fault("ctd", "lost", body="auv")))
            try:
                referee.wait(referee.weather(wind_speed=9.0))
            except Exception as error:
                print(type(error).__name__, error)
print(sorted(seen))
"""
    pilot = """
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    broker.take_missions("waits for missions")
    for step in broker.steps():
        for mission in step.missions:
            print("mission", round(step.time, 1), mission.points)
        if step.time > 1.5 and "ctd" in step.sensors:
            print("the fault had no effect")
"""
    grants = '<grant to="referee" role="observer" rights="push mission fault" others="yes"/>'
    trial = make_trial(seconds=3.0, grants=grants, auv=pilot, other=referee)
    trial.run(plots=False)
    trial.check()
    said = output(trial, "other").splitlines()
    assert said[:3] == [
        f"{what} 'auv' starting at 1.000 s" for what in ("push", "mission", "fault 'lost' in 'ctd' of")
    ], said
    assert said[3].startswith("Refused the server refused request") and "not permitted to use 'weather'" in said[3]
    assert said[4] == "['auv', 'other']"
    assert output(trial, "auv") == "mission 1.1 ((10.0, 0.0, 5.0, 1.0),)\n"
    verbs = [c["verb"] for _, c in read(trial.log).json["/commands"]]
    assert {"push", "mission", "fault"} <= set(verbs)


def test_two_threads_of_one_program_with_a_broker_each(make_trial: Make) -> None:
    source = """
import threading
steps = {}
def drive(role, lockstep):
    with Broker(a.vehicle, SERVER, role=role, lockstep=lockstep) as broker:
        steps[role] = sum(1 for _ in broker.steps())
listener = threading.Thread(target=drive, args=("listener", 0.0))
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    listener.start()
    for step in broker.steps():
        broker.answer({"propeller": 4.0})
listener.join()
print(steps["listener"] > 5)
"""
    trial = make_trial(seconds=4.0, one=source)
    trial.run(plots=False)
    trial.check()
    assert output(trial, "one") == "True\n"


def test_refusals_and_mistakes_are_those_of_the_network(make_trial: Make) -> None:
    source = """
def attempt(make):
    try:
        with make() as broker:
            broker.answer({"propellor": 1.0})
    except Exception as error:
        print(type(error).__name__, error)
attempt(lambda: Broker("absent", SERVER))
attempt(lambda: Broker("x" * 80, SERVER))
attempt(lambda: Broker(a.vehicle, SERVER, sensors=["dvl"]))
attempt(lambda: Broker(a.vehicle, SERVER))
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    attempt(lambda: Broker(a.vehicle, SERVER, lockstep=0.1))
    for step in broker.steps():
        broker.answer({"propeller": 1.0})
try:
    broker.poll()
except Exception as error:
    print(type(error).__name__, error)
"""
    trial = make_trial(one=source)
    trial.run(plots=False)
    inside = output(trial, "one")
    assert inside == (in_processes(trial) / "program-one.txt").read_text()
    assert inside.count("\n") == 6 and "did you mean 'propeller'" in inside


def test_frames_of_a_sonar_arrive(make_trial: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its emulator attaches to the server, and does not wait for it: the tables are published by then."""

    def fail(_seconds: float) -> None:
        raise AssertionError("an emulator waits for the engine in its own process")

    monkeypatch.setattr("wavesim_sdk.attach.time", SimpleNamespace(monotonic=time.monotonic, sleep=fail))
    source = """
frames = []
with Broker(a.vehicle, SERVER, lockstep=0.2) as broker:
    broker.subscribe_frames()
    for step in broker.steps():
        frames += broker.take_frames()
print(len(frames), len(frames[0].data) > 1000 if frames else None, broker.frames_lost)
"""
    trial = make_trial(seconds=3.0, one=source)
    path = trial.loaded.path
    path.write_text(path.read_text().replace("<ahrs", '<sonar name="ahead" preset="p900-45"/><ahrs'))
    trial = InProcessTrial(load(path), trial.folder.parent, quiet=True)
    trial.run(plots=False)
    trial.check()
    count, *_, lost = output(trial, "one").split()
    assert int(count) > 1 and lost == "0", output(trial, "one")


def test_a_bridge_and_a_body_without_program_are_named_as_outside(make_trial: Make) -> None:
    from wavesim_server.in_process.trial import outside_participants

    trial = make_trial(one="pass")
    bodies = list(trial.loaded.config.fleet.bodies)
    program = bodies[0].program
    assert program is not None
    bodies[0] = dataclasses.replace(bodies[0], program=dataclasses.replace(program, run="", bridge="mavlink"))
    bodies.append(dataclasses.replace(bodies[0], name="rover", program=None))
    fleet: Any = trial.loaded.config.fleet
    object.__setattr__(fleet, "vehicle", tuple(bodies))
    assert outside_participants(trial) == ["one (bridge mavlink)", "rover (its program joins from outside)"]
    assert json.dumps(outside_participants(trial))
