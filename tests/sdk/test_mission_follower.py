"""The mission follower of the SDK: its guidance without and with commands, and the status that it reports."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from wavesim_sdk.commands import VEHICLE_ACTIONS, make_command
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.guidance.control import LineOfSight, Waypoint
from wavesim_sdk.guidance.mission import FollowerSettings, MissionFollower
from wavesim_sdk.mission_status import MissionStatus
from wavesim_sdk.observer import Observer
from wavesim_sdk.wire.items import CommandReceived

ROUTE = [Waypoint(0.0, 200.0, 5.0, 1.5), Waypoint(200.0, 200.0, 5.0, 1.5)]


class Recorder:
    """Broker that records what a program publishes."""

    def __init__(self) -> None:
        self.accepted: list[str] = []
        self.refused: list[str] = []
        self.reports: list[MissionStatus] = []

    def take_missions(self, text: str = "") -> None: ...

    def take_commands(self) -> None: ...

    def accept_command(self, command: CommandReceived, text: str) -> None:
        self.accepted.append(text)

    def refuse_command(self, command: CommandReceived, reason: str) -> None:
        self.refused.append(reason)

    def report_mission(self, status: MissionStatus) -> None:
        self.reports.append(status)


class Craft:
    """Point that follows the course at the wanted speed, with a turn rate of at most 0.2 rad/s."""

    def __init__(self, **settings: Any) -> None:
        self.follower = MissionFollower(ROUTE, (0.0, 0.0), FollowerSettings(**settings))
        self.broker, self.place, self.heading, self.depth = Recorder(), (0.0, 0.0), 0.0, 5.0
        self.track: list[tuple[float, float]] = []

    def sail(self, seconds: float, *commands: tuple[Any, ...]) -> None:
        given = [CommandReceived(k, c[0], c[1] if len(c) > 1 else None) for k, c in enumerate(commands, 1)]
        for _ in range(round(seconds / 0.5)):
            step: Any = SimpleNamespace(missions=[], commands=given)
            given = []
            self.follower.update(step, self.broker, self.place, self.depth)  # type: ignore[arg-type]
            turn = math.remainder(self.follower.course(*self.place) - self.heading, 2.0 * math.pi)
            self.heading += max(-0.1, min(0.1, turn))
            speed, north, east = self.follower.target.speed, *self.place
            self.place = north + 0.5 * speed * math.cos(self.heading), east + 0.5 * speed * math.sin(self.heading)
            self.track.append(self.place)


def test_without_commands_it_is_line_of_sight_guidance() -> None:
    craft, plain = Craft(), LineOfSight(ROUTE, (0.0, 0.0))
    for k in range(400):
        place = 0.7 * k, 1.1 * k - 0.002 * k * k
        assert craft.follower.course(*place) == plain.course(*place) and craft.follower.target is plain.target


def test_goto_arrives_and_loiters_and_resume_continues_the_mission() -> None:
    craft = Craft(circle=25.0)
    craft.sail(20.0)
    craft.sail(150.0, ("goto", (100.0, 50.0, 5.0, 2.0)))
    assert craft.follower.mode == "loiter" and craft.broker.accepted[0].endswith("at 2.0 m/s, then loiters")
    craft.sail(120.0)
    away = [math.dist(p, (100.0, 50.0)) for p in craft.track[-150:]]
    assert min(away) > 20.0 and max(away) < 32.0, (min(away), max(away))
    craft.sail(400.0, ("resume",))
    assert craft.follower.mode == "mission" and {s.waypoint for s in craft.broker.reports[-2:]} <= {1, 2}


def test_a_vehicle_that_can_hold_its_position_stays_at_the_point() -> None:
    craft = Craft(circle=0.0)
    craft.sail(60.0)
    craft.sail(200.0, ("return",))
    assert max(math.dist(p, (0.0, 0.0)) for p in craft.track[-100:]) < 8.0
    assert craft.follower.mode == "loiter" and craft.follower.target.depth == 0.0, "a boat has no depth"


def test_abort_stops_a_boat_and_surfaces_an_auv() -> None:
    boat, auv = Craft(circle=0.0), Craft(is_submersible=True)
    for craft in (boat, auv):
        craft.sail(20.0)
        craft.sail(2.0, ("abort",))
    assert boat.follower.target.speed == 0.0
    assert auv.follower.target.speed > 0.0 and auv.follower.target.depth == 0.0, "it needs speed to rise"
    auv.depth = 0.3
    auv.sail(1.0, ("resume",))
    assert auv.follower.target.speed == 0.0 and auv.broker.refused == ["there is no mission to resume"]
    assert auv.broker.reports[-1] == MissionStatus("aborted")


def test_pause_keeps_the_mission() -> None:
    craft = Craft()
    craft.sail(20.0)
    craft.sail(60.0, ("pause",), ("pause",))
    assert craft.broker.refused == ["the vehicle is not following a mission (paused)"]
    assert all(math.dist(p, craft.track[40]) < 60.0 for p in craft.track[40:])
    craft.sail(1.0, ("resume",), ("resume",))
    assert craft.broker.refused[1:] == ["the mission is not paused"]
    assert craft.follower.status == MissionStatus("mission", 1, 2, (0.0, 200.0))


@pytest.mark.parametrize(
    "status",
    [
        MissionStatus("aborted"),
        MissionStatus("mission", 3, 8, (-12.5, 0.0)),
        MissionStatus("goto", target=(1e6, -1e6)),
        MissionStatus("survey", 2, 4),
    ],
)
def test_a_status_is_a_notice_that_people_and_programs_can_read(status: MissionStatus) -> None:
    assert MissionStatus.parse(str(status)) == status
    assert len(str(status)) < 160, "it fits into a notice"


def test_other_notices_are_no_status() -> None:
    for text in ("accepts a mission of 3 waypoint(s)", "mission: ", "mission: a; waypoint 1", ""):
        assert MissionStatus.parse(text) is None, text


def test_mistakes_are_refused_before_anything_is_sent() -> None:
    for arguments, text in (
        ({"action": "lioter"}, "command: unknown action 'lioter'; did you mean 'loiter'?"),
        ({"action": "goto"}, "command: 'goto' needs a point"),
        ({"action": "goto", "point": [0.0, 0.0, 0.0, -1.0]}, "command: the speed must not be below 0 m/s"),
        ({"action": "goto", "point": [0.0, 0.0]}, "command: point"),
    ):
        with pytest.raises(ValueError, match=text.replace("?", r"\?")):
            make_command("command", {"body": "lauv", **arguments})
    with pytest.raises(InvalidArgument, match="point must be 4 finite numbers"):
        Observer("x").vehicle_command("goto", (1.0, 2.0))  # type: ignore[arg-type]
    assert "abort" in VEHICLE_ACTIONS


def test_an_aircraft_keeps_its_height_and_circles_when_its_mission_is_aborted() -> None:
    """It has nowhere to stop: a point without a height keeps the present one, and an abort leaves it circling in the air."""
    craft = Craft(circle=25.0, is_aircraft=True)
    craft.depth = -120.0
    craft.sail(20.0, ("goto", (100.0, 50.0, 0.0, 2.0)))
    assert craft.follower.target == Waypoint(100.0, 50.0, -120.0, 2.0)
    craft.sail(1.0, ("goto", (100.0, 50.0, -150.0, 2.0)))
    assert craft.follower.target.depth == -150.0
    craft.depth = -140.0
    craft.sail(60.0, ("abort",))
    assert craft.follower.mode == "aborted" and craft.follower.target.speed == 2.0
    assert craft.follower.target.depth == -140.0 and "circles with a radius of 25 m" in craft.broker.accepted[-1]
