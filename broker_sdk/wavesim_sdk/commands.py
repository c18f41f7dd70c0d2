"""What a running server can be told to do: the same commands for its queue, for sessions that may, and for its engine.

Each is a declared record of the wire's requests (:mod:`wavesim_sdk.wire.items`): its checks, units and bounds stand there.
Here is what belongs to people: verbs, their words for the command line, and what the queue's JSON may say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from wavesim_sdk.timer_verbs import TIMER_VERBS as TIMER_VERBS
from wavesim_sdk.wire.items import (
    MAX_ITEM_WAYPOINTS,
    MAX_MISSION_WAYPOINTS,
    REQUESTS,
    Allocate,
    Control,
    Fault,
    Mission,
    Pose,
    Push,
    Weather,
)
from wavesim_sdk.wire.messages import Right
from wavesim_sdk.wire.schema import Malformed, check, schema_of

Command = Control | Fault | Push | Pose | Allocate | Weather | Mission

#: other verbs -> (record, meaning)
VERBS: dict[str, tuple[type[Any], str]] = {
    "fault": (
        Fault,
        "break an actuator (stuck, frozen for `amount` s, lost, reduced to the share `amount`, reversed) or a sensor (lost, "
        "frozen, bias, spikes, noisy, wet, unlocked) of a body, or mend it (none)",
    ),
    "push": (Push, "apply a force and a moment (N, N m, in B) to a body until the next push"),
    "pose": (Pose, "put a body elsewhere: position in W, attitude, velocity in B; what is not given stays"),
    "allocate": (Allocate, "set the thruster allocation matrix of a body: six rows of one number per thruster"),
    "weather": (Weather, "change current, wind and waves from now on; what is not given stays"),
    "mission": (Mission, "send waypoints to a pilot that takes missions: north, east, down, speed of each"),
}

#: what a session needs to be permitted
RIGHTS: dict[type[Any], Right] = {
    Control: Right.CONTROL,
    Fault: Right.FAULT,
    Push: Right.PUSH,
    Pose: Right.POSE,
    Allocate: Right.ALLOCATE,
    Weather: Right.WEATHER,
    Mission: Right.MISSION,
}
_NAMES: dict[type[Any], str] = {record: verb for verb, (record, _) in VERBS.items()}
MAX_TICKS = 10_000_000
MIN_SPEED, MAX_SPEED = 1e-3, 1000.0


def verb_of(command: Command) -> str:
    """The verb of a command."""
    return command.verb if isinstance(command, Control) else _NAMES[type(command)]


def target_body(command: Command) -> str | None:
    """The name of the body that a command acts on; None if it acts on none, "" for the sender's own."""
    return None if isinstance(command, Control | Weather) else command.body


def for_body(command: Command, body: str) -> Command:
    """The command, on a body of that name."""
    if isinstance(command, Control | Weather):
        return command
    return replace(command, body=body)


def make_command(verb: str, arguments: Mapping[str, Any]) -> Command:
    """A command from a verb and values by name, as JSON brings them. ValueError says what is wrong, for people."""
    if verb in TIMER_VERBS:
        name = TIMER_VERBS[verb][0]
        value = arguments.get(name) if name else None
        if name and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f"'{verb}' needs {name}=NUMBER")
        return check_plausible(_checked(verb, Control(verb, value)))
    if verb not in VERBS:
        raise ValueError(f"there is no command '{verb[:40]}'")
    record = VERBS[verb][0]
    given = {k: v for k, v in arguments.items() if v is not None}
    if record is Allocate and isinstance(matrix := given.get("matrix"), list):
        given["matrix"] = [v for row in matrix for v in (row if isinstance(row, list) else [row])]
    try:
        command: Command = schema_of(record).from_dict(given)
    except Malformed as error:
        raise ValueError(f"{verb}: {error}") from None
    return check_plausible(command)


def _checked(verb: str, command: Command) -> Command:
    try:
        return check(command)
    except Malformed as error:
        raise ValueError(f"{verb}: {error}") from None


def check_plausible(command: Command) -> Command:
    """The command, if its values can be: what bounds of single items do not say. ValueError if not."""
    if isinstance(command, Control):
        _sensible_control(command)
    if isinstance(command, Allocate) and (not command.matrix or len(command.matrix) % 6):
        raise ValueError(f"allocate: a matrix has six rows; {len(command.matrix)} numbers are no six rows")
    if isinstance(command, Mission):
        _sensible_mission(command)
    if isinstance(command, Pose | Weather):
        asked = [f.name for f in fields(command) if f.name != "body"]
        if all(getattr(command, name) is None for name in asked):
            raise ValueError(f"{verb_of(command)}: it needs one of {', '.join(asked)}")
    return command


def _sensible_mission(command: Mission) -> None:
    points = command.points
    if not points or len(points) % 4:
        raise ValueError(f"mission: {len(points)} numbers are no waypoints of four: north, east, down, speed")
    if command.first + len(points) // 4 > command.count:
        raise ValueError(f"mission: it has {command.count} waypoints, and these go beyond them")
    if min(points[3::4]) <= 0.0:
        raise ValueError("mission: the speed at a waypoint is above 0")


def split_mission(waypoints: Sequence[Sequence[float]], number: int, body: str = "") -> list[Mission]:
    """The parts of a mission: waypoints of north, east, down (m, W) and speed (m/s). ValueError if it cannot be."""
    if not 0 < len(waypoints) <= MAX_MISSION_WAYPOINTS or any(len(w) != 4 for w in waypoints):
        raise ValueError(f"a mission has 1 to {MAX_MISSION_WAYPOINTS} waypoints, each of north, east, down, speed")
    firsts = range(0, len(waypoints), MAX_ITEM_WAYPOINTS)
    rows = [[float(v) for w in waypoints[k : k + MAX_ITEM_WAYPOINTS] for v in w] for k in firsts]
    return [Mission(body, number, k, len(waypoints), tuple(r)) for k, r in zip(firsts, rows, strict=True)]


def _sensible_control(command: Control) -> None:
    verb, value = command.verb, command.value
    if verb not in TIMER_VERBS:
        raise ValueError(f"there is no command '{verb}'; known are {', '.join(TIMER_VERBS)}")
    name = TIMER_VERBS[verb][0]
    if name and value is None:
        raise ValueError(f"'{verb}' needs a number: {name}")
    if verb == "step" and value is not None and (value != int(value) or not 1 <= value <= MAX_TICKS):
        raise ValueError(f"a step is 1 to {MAX_TICKS} whole ticks")
    if verb == "speed" and value and not MIN_SPEED <= value <= MAX_SPEED:
        raise ValueError(f"speed is 0 (as fast as possible), or {MIN_SPEED:g} to {MAX_SPEED:g}")


def to_dict(command: Command) -> dict[str, Any]:
    """Verb and values by name, for the log."""
    named = schema_of(type(command)).to_dict(command)
    named.pop("verb", None)
    return {"verb": verb_of(command), **{k: _plain(v) for k, v in named.items() if v is not None and v != ""}}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def encode(command: Command) -> tuple[Any, ...]:
    """Its number and values, to be part of another record."""
    return REQUESTS.encode(command)


def decode(encoded: Any) -> Command:
    """What :func:`encode` made."""
    command: Command = REQUESTS.decode(encoded)
    return command
