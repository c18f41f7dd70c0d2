"""Commands over the network and scheduled commands on a real server: they are executed, and the log contains all of
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.conftest import Server
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import Refused, SessionLost
from wavesim_sdk.log import Log, read
from wavesim_sdk.observer import Observer
from wavesim_sdk.onboard import ReceivedMission

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("orders"), pytest.mark.timeout(120)]

WORLD = """<time step="20 ms" pace="fast"/><log state_rate="10 Hz" effort="yes"/>
<network><grant to="boat" role="pilot" rights="fault push pose allocate weather control"/>
<grant to="referee" role="observer" rights="fault pose mission fence" others="yes"/></network>
<world><bed depth="100 m"/><wind speed="3 m/s" direction="90 deg"/><current north="0.2 m/s"/></world>
<fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="required"><sensors><ahrs rate="10 Hz"/></sensors>
<fault part="port" kind="lost" at="1 s" for="2 s"/><fault part="ahrs" kind="bias" amount="5 deg" field="heading" at="1.2 s" for="0.4 s" every="2 s"/>
</vehicle>
<vehicle name="thrown" model="lauv" position="0 50 20 m" attitude="0 0 90 deg" velocity="1.2 0.1 0 m/s" angular_velocity="0 0 5 deg/s"/>
<vehicle name="holds" model="remus100" position="0 99 20 m" speed="1.5 m/s"/>
</fleet>"""

#: more than one request holds
LAWN = [(10.0 * k, -25.5 if k % 2 else 25.5, 3.0, 1.25) for k in range(30)]


@dataclass
class Run:
    """What the pilot and the referee saw, and the log."""

    log: Log
    efforts: list[Any] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    moved: dict[str, tuple[float, ...]] = field(default_factory=dict)
    refused: str = ""
    missions: list[tuple[int, ReceivedMission]] = field(default_factory=list)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Five seconds in lockstep with a pilot that may do everything and a referee that may do some things."""
    folder = tmp_path_factory.mktemp("orders")
    path = folder / "orders.xml"
    path.write_text(f"<wavesim>{WORLD}</wavesim>")
    log = folder / "run.mcap"
    server = Server(path, f"orders-{folder.name[-6:]}", "--log", str(log))
    found = Run(Log(log))
    try:
        _play(server, found)
        assert server.process.wait(20) == 0
    finally:
        server.end()
        assert server.process.stderr is not None
        server.process.stderr.close()
    found.log = read(log)
    yield found


def _play(server: Server, found: Run) -> None:
    at = ("127.0.0.1", server.port)
    asked: dict[int, str] = {}

    def ask(what: str, number: int) -> None:
        asked[number] = what

    with Observer("referee", at) as referee, Broker("boat", at, lockstep=0.1, effort=True) as boat:
        ask("start", boat.control("start"))
        for step in boat.steps():
            for answer in step.answers:
                found.answers[asked[answer.request]] = answer.text
            found.efforts.append((step.time, step.state.effort))
            assert step.state.motion is not None
            match step.state.tick:
                case 5:
                    with pytest.raises(Refused, match="no program that accepts missions is driving 'boat'"):
                        referee.wait(referee.mission(LAWN, body="boat"))
                    ask("take", boat.take_missions())
                case 25:  # 0.5 s
                    ask("weather", boat.weather(wind_speed=12.0, current_east=-0.3, current_down=0.02, wave_height=1.0))
                    ask("push", boat.push((300.0, 0.0, 0.0)))
                case 100:  # 2 s
                    referee.wait(referee.fault("rudder-top", "stuck", body="thrown"))
                    assert referee.wait(referee.mission(LAWN, body="boat")) == "mission 'boat' starting at 2.000 s"
                    yard = ((-40.0, -40.0), (40.0, -40.0), (40.0, 40.0), (-40.0, 40.0))
                    done = "added the fence 'yard' (keep inside) starting at 2.000 s"
                    assert referee.wait(referee.fence("yard", yard)) == done
                    with pytest.raises(Refused, match="no fence is named 'yrad'; did you mean 'yard'"):
                        referee.wait(referee.remove_fence("yrad"))
                    with pytest.raises(Refused, match="not permitted to use 'push'"):
                        referee.wait(referee.push((1.0, 0.0, 0.0), body="boat"))
                case 150:  # 3 s
                    ask("pose", boat.pose((50.0, 0.0, -0.1), (0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 0.0, 0.0, 0.0)))
                    ask("allocate", boat.allocate([[1.0, 0.0], *[[0.0, 0.0]] * 5]))
                case 155:
                    found.moved["pose"] = step.state.motion
                case 200:
                    ask("fault", boat.fault("starboard", "lost"))
                    ask("other", boat.fault("rudder-top", "lost", body="thrown"))
                case 250:
                    ask("shutdown", boat.control("shutdown"))
            for mission in step.missions:
                found.missions.append((step.state.tick, mission))
                ask("take", boat.take_missions(f"takes {len(mission.points)} waypoints"))
            found.refused += " ".join(r.text for r in step.refused)
            boat.answer({"port": 50.0, "starboard": 50.0})
            if step.state.tick == 250:
                with pytest.raises(SessionLost, match="the server shuts down"):
                    boat.poll(10.0)
                found.answers |= {asked[a.request]: a.text for a in boat.since.answers}
                return


def at(run: Run, topic: str, seconds: float) -> Any:
    """The record of a topic at a time."""
    series = run.log.series[topic]
    return series.records[int(np.flatnonzero(series.time_ns == round(seconds * 1e9))[0])]


def test_every_order_is_answered_and_logged_with_its_sender(run: Run) -> None:
    assert run.answers == {
        "take": "",
        "start": "running at 0.000 s",
        "weather": "weather starting at 0.500 s",
        "push": "push 'boat' starting at 0.500 s",
        "pose": "pose 'boat' starting at 3.000 s",
        "allocate": "allocate 'boat' starting at 3.000 s",
        "fault": "fault 'lost' in 'starboard' of 'boat' starting at 4.000 s",
        "shutdown": "the server shuts down at 5.000 s",
    }
    assert (
        run.refused
        == 'this session may command its own body only; to allow commands to other bodies, set <grant others="yes">'
    )
    orders = [
        (t // 10**6, c["sender"], c["verb"]) for t, c in run.log.json["/commands"] if c["sender"] != "configuration"
    ]
    assert orders == [
        (0, "boat", "start"),
        (500, "boat", "weather"),
        (500, "boat", "push"),
        (2000, "referee", "fault"),
        (2000, "referee", "mission"),
        (2000, "referee", "mission"),
        (2000, "referee", "fence"),
        (3000, "boat", "pose"),
        (3000, "boat", "allocate"),
        (4000, "boat", "fault"),
        (5000, "boat", "shutdown"),
    ]
    fence = next(c["arguments"] for _, c in run.log.json["/commands"] if c["verb"] == "fence")
    corners = [-40.0, -40.0, 40.0, -40.0, 40.0, 40.0, -40.0, 40.0]
    assert fence == {"name": "yard", "keep": "inside", "corners": corners}
    left = [
        (t // 10**6, n["body"]) for t, n in run.log.json["/notices"] if n["text"].startswith("left the fence 'yard'")
    ]
    assert left == [(2200, "thrown"), (2200, "holds"), (3200, "boat")], "the boat is moved at 3 s"
    pushed = next(c["arguments"] for _, c in run.log.json["/commands"] if c["verb"] == "push")
    assert pushed == {"body": "boat", "force": [300.0, 0.0, 0.0], "torque": [0.0, 0.0, 0.0]}


def test_a_mission_comes_whole_to_a_pilot_that_takes_missions_and_what_it_says_is_logged(run: Run) -> None:
    ((tick, mission),) = run.missions
    assert 100 < tick <= 105 and mission.points == tuple(LAWN)
    assert [(w.north, w.east, w.depth, w.speed) for w in mission.waypoints] == LAWN
    notices = [(n["body"], n["text"]) for _, n in run.log.json["/notices"]]
    assert ("boat", "takes 30 waypoints") in notices
    parts = [c["arguments"] for _, c in run.log.json["/commands"] if c["verb"] == "mission"]
    assert [(p["body"], p["first"], p["count"], len(p["points"])) for p in parts] == [
        ("boat", 0, 30, 96),
        ("boat", 24, 30, 24),
    ]


def test_faults_by_the_clock_and_by_sessions_stand_in_the_log_from_beginning_to_end(run: Run) -> None:
    bias = {"amount": math.radians(5.0), "field": "heading"}
    assert [(t // 10**6, f["body"], f["part"], f["kind"], f["begins"]) for t, f in run.log.json["/faults"]] == [
        (1000, "boat", "port", "lost", True),
        (1200, "boat", "ahrs", "bias", True),
        (1600, "boat", "ahrs", "none", False),
        (2000, "thrown", "rudder-top", "stuck", True),
        (3000, "boat", "port", "none", False),
        (3200, "boat", "ahrs", "bias", True),
        (3600, "boat", "ahrs", "none", False),
        (4000, "boat", "starboard", "lost", True),
    ]
    assert all(f.items() >= bias.items() for _, f in run.log.json["/faults"] if f["kind"] == "bias")
    turning = {t: at(run, "/effort/boat", t)["actuators"][5] for t in (0.9, 1.0, 3.0, 3.1)}
    assert turning[0.9] == 0.0, "both shafts pull alike"
    assert turning[1.0] < -10.0 and turning[3.0] == 0.0, "the port one is lost for two seconds"


def test_forces_and_their_parts_for_who_asked_and_in_the_log(run: Run) -> None:
    assert len(run.efforts) == 51
    for time, effort in run.efforts[:-1]:  # the last one is sent before the log of its tick, which the shutdown ends
        logged = at(run, "/effort/boat", time)
        parts = ("restoring", "drag", "actuators", "environment", "external", "contact")
        assert np.sum([logged[p] for p in parts], axis=0) == pytest.approx(logged["total"], abs=1e-6)
        assert all(getattr(effort, p) == pytest.approx(logged[p]) for p in ("acceleration", "total", *parts))
    assert at(run, "/effort/boat", 0.4)["external"][0] == 0.0 and at(run, "/effort/boat", 0.6)["external"][0] == 300.0
    speed = run.log.series["/state/thrown"].records["v_WB_B"][:, 0]
    gained = np.diff(speed[2:6]) / 0.1  # between records; the acceleration is that at the record
    assert gained == pytest.approx(run.log.series["/effort/thrown"].records["acceleration"][2:5, 0], rel=0.2)


def test_wind_current_and_waves_at_the_body_stand_in_the_log(run: Run) -> None:
    for name in ("boat", "thrown", "holds"):
        before, after = at(run, f"/surroundings/{name}", 0.4), at(run, f"/surroundings/{name}", 0.6)
        assert before["current_W"] == pytest.approx([0.2, 0.0, 0.0]) and before["wind_W"] == pytest.approx(
            [0.0, -3.0, 0.0]
        )
        assert before["wave"] == 0.0
        assert after["current_W"] == pytest.approx([0.2, -0.3, 0.02]) and after["wind_W"] == pytest.approx(
            [0.0, -12.0, 0.0]
        )
        assert after["wave"] == after["level"] != 0.0
    waves = np.concatenate(
        [run.log.series[f"/surroundings/{n}"].records["wave"][6:] for n in ("boat", "thrown", "holds")]
    )
    assert 0.1 < waves.std() < 0.6, "a sea of one metre"


def test_a_pose_that_was_set_and_another_allocation(run: Run) -> None:
    state = at(run, "/state/boat", 3.1)
    assert state["p_WB_W"] == pytest.approx([50.0, 0.0, -0.1], abs=0.5)
    assert 2.0 * math.atan2(state["q_WB"][3], state["q_WB"][0]) == pytest.approx(1.0, abs=0.1)
    assert run.moved["pose"][:3] == pytest.approx(state["p_WB_W"]), "the pilot receives the new pose"
    acts = at(run, "/effort/boat", 3.1)["actuators"]
    assert acts[0] > 10.0 and not acts[1:].any(), "only the first thruster counts, and it pulls straight ahead"
    assert not at(run, "/effort/boat", 4.2)["external"][1:].any()


def test_initial_motion_by_the_configuration(run: Run) -> None:
    thrown = at(run, "/state/thrown", 0.0)
    assert thrown["v_WB_B"].tolist() == [1.2, 0.1, 0.0] and thrown["w_WB_B"][2] == pytest.approx(math.radians(5.0))
    held = run.log.series["/state/holds"]
    calm = held.time_ns <= 500_000_000
    assert held.records["v_FB_B"][calm, 0] == pytest.approx(1.5, abs=1e-3), "and it holds it, in calm water"
