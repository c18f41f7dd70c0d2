"""Commands to a vehicle in one process: its program receives them, and the sender receives the answer of the program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.in_process.conftest import output
from wavesim_sdk.log import read
from wavesim_sdk.mission_status import MissionStatus
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_viz.replay import ReplaySource

pytestmark = [pytest.mark.system, pytest.mark.timeout(200), pytest.mark.xdist_group("trial")]
Make = Callable[..., InProcessTrial]

OPERATOR = """
from wavesim_sdk.observer import Observer
with Observer("operator", SERVER) as operator, Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    asked = {}
    for step in broker.steps():
        broker.answer()
        operator.poll(0.0)
        for number, (body, action, point) in enumerate(COMMANDS):
            if number not in asked and step.time > 0.95 + 0.2 * number:
                asked[number] = operator.vehicle_command(action, point, body=body)
    for number in asked.values():
        try:
            print(operator.wait(number, 0.0))
        except Exception as error:
            print(error)
"""
FOLLOWS = """
from wavesim_sdk.guidance.control import Waypoint
from wavesim_sdk.guidance.mission import FollowerSettings, MissionFollower
follower = MissionFollower([Waypoint(0.0, 500.0, 5.0, 1.2), Waypoint(500.0, 500.0)], (0.0, 0.0), FollowerSettings(is_submersible=True, max_depth=50.0))
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        follower.update(step, broker, (0.0, 0.0), 5.0)
        broker.answer()
print(follower.mode)
"""
IGNORES = """
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer()
"""
SILENT = IGNORES.replace("    for", "    broker.take_commands()\n    for", 1)


def test_the_sender_receives_the_answer_of_the_program(make_trial: Make) -> None:
    """Accepted, refused with the reason, not supported, no answer, no program: five different answers."""
    commands = [
        ("auv", "goto", (30.0, 40.0, 5.0, 0.0)),
        ("auv", "goto", (30.0, 40.0, 99.0, 0.0)),
        ("auv", "pause", None),
        ("auv", "resume", None),
        ("auv", "pause", None),
        ("auv", "abort", None),
        ("plain", "loiter", None),
        ("silent", "loiter", None),
        ("absent", "loiter", None),
        ("auv", "resume", None),
    ]
    grants = '<grant to="operator" role="observer" rights="mission" others="yes"/>'
    trial = make_trial(
        seconds=8.0,
        grants=grants,
        auv=FOLLOWS,
        plain=IGNORES,
        silent=SILENT,
        other=OPERATOR.replace("COMMANDS", repr(commands)),
    )
    trial.run(plots=False)
    trial.check()
    said = [
        line.split(": ", 1)[1] if "refused request" in line else line for line in output(trial, "other").splitlines()
    ]
    assert said == [
        "accepted: goes 50 m at 1.2 m/s, then loiters",
        "refused: 99 m is deeper than the vehicle's maximum depth of 50 m",
        "refused: the vehicle is not following a mission (goto)",
        "accepted: continues to waypoint 1 of 2",
        "accepted: circles with a radius of 25 m; `resume` continues the mission",
        "accepted: ends its mission and surfaces",
        "not supported: the program that drives this vehicle does not accept commands, or does not accept them yet",
        "no answer within 4 s",
        "command: no program drives 'absent'",
        "refused: there is no mission to resume",
    ]
    assert output(trial, "auv") == "aborted\n"
    log = read(trial.log)
    sent = [
        (c["arguments"]["body"], c["arguments"]["action"]) for _, c in log.json["/commands"] if c["verb"] == "command"
    ]
    assert sent == [(body, action) for body, action, _ in commands if body != "absent"]
    notices = [n["text"] for _, n in log.json["/notices"] if n["body"] == "auv"]
    assert "goto: accepted: goes 50 m at 1.2 m/s, then loiters" in notices
    modes = [(m.mode, m.waypoint) for text in notices if (m := MissionStatus.parse(text)) is not None]
    assert modes == [("mission", 1), ("goto", 0), ("mission", 1), ("paused", 0), ("aborted", 0)]
    # a replay shows the same at each time
    source = ReplaySource(trial.log)
    (row,) = (str(b[0]) for b in source.log.bodies.items() if b[1]["name"] == "auv")
    for seconds, mode in ((0.5, "mission"), (1.3, "goto"), (7.5, "aborted")):
        assert source.control("pause", None)[0] and source.control("seek", seconds)[0]
        assert source.frame() is not None
        assert source.fleet()["missions"][row]["mode"] == mode, seconds
