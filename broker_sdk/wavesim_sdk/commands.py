"""Commands for a running server. The commander queue, the sessions that have the right to send commands, and the engine
all use the same commands.

Each command is a request in the wire protocol (:mod:`wavesim_sdk.wire.items`), where its checks, units and bounds are
declared. This module adds the verbs, their descriptions for the command line, and the conversion from the JSON in the
queue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from wavesim_sdk.fences import check_fence
from wavesim_sdk.mission_status import VEHICLE_ACTIONS
from wavesim_sdk.names import suggest_name
from wavesim_sdk.timer_verbs import TIMER_VERBS as TIMER_VERBS
from wavesim_sdk.wire.items import (
    MAX_ITEM_CORNERS,
    MAX_ITEM_WAYPOINTS,
    MAX_MISSION_WAYPOINTS,
    REQUESTS,
    Allocate,
    Control,
    Fault,
    Fence,
    Mission,
    Pose,
    Push,
    SnapshotAction,
    VehicleCommand,
    Weather,
)
from wavesim_sdk.wire.messages import Right
from wavesim_sdk.wire.schema import Malformed, check, schema_of

Command = Control | Fault | Push | Pose | Allocate | Weather | Mission | VehicleCommand | Fence | SnapshotAction
SNAPSHOT_ACTIONS = ("save", "restore", "remove")
#: suffix of snapshot files; a name without this suffix and without a folder refers to a snapshot in memory
SNAPSHOT_SUFFIX = ".snapshot"
TIME_CHANGE_VERBS = ("reset", "rewind")  #: verbs of the clock that change the simulation time

#: record, meaning and required right of each verb, except the verbs that control the clock
VERBS: dict[str, tuple[type[Any], str, Right]] = {
    "fault": (
        Fault,
        "set a fault, or clear it (none). Actuators: stuck, frozen for `amount` s, lost, reduced to the fraction `amount`, "
        "reversed. Sensors: lost, frozen, bias, spikes, noisy, wet, unlocked",
        Right.FAULT,
    ),
    "push": (
        Push,
        "apply an external force and moment (N, N m, in B) to a body until the next push, or for `duration` s",
        Right.PUSH,
    ),
    "pose": (
        Pose,
        "set position (W), attitude and velocity (B) of a body; omitted values stay unchanged",
        Right.POSE,
    ),
    "allocate": (
        Allocate,
        "set the thruster allocation matrix of a body: six rows, each with one value per thruster",
        Right.ALLOCATE,
    ),
    "weather": (Weather, "change current, wind and waves; omitted values stay unchanged", Right.WEATHER),
    "mission": (
        Mission,
        "send waypoints (north, east, down, speed) to a pilot that accepts missions",
        Right.MISSION,
    ),
    "command": (
        VehicleCommand,
        "send a vehicle one of the commands goto, loiter, return, pause, resume or abort; its program answers",
        Right.MISSION,
    ),
    "fence": (
        Fence,
        "add a fence, or replace the fence with this name; without corners, remove it",
        Right.FENCE,
    ),
    "snapshot": (
        SnapshotAction,
        "save the complete state of the simulation under a name or in a file, restore it, or remove it",
        Right.CONTROL,
    ),
}
_NAMES: dict[type[Any], str] = {record: verb for verb, (record, _, _) in VERBS.items()}
#: the right that a session needs for each command
RIGHTS: dict[type[Any], Right] = {Control: Right.CONTROL} | {record: right for record, _, right in VERBS.values()}
_SNAPSHOT_NAME = re.compile("[A-Za-z0-9_.-]{1,32}")
MAX_TICKS = 10_000_000
MIN_SPEED, MAX_SPEED = 1e-3, 1000.0


def verb_of(command: Command) -> str:
    """Return the verb of a command."""
    return command.verb if isinstance(command, Control) else _NAMES[type(command)]


def target_body(command: Command) -> str | None:
    """Return the name of the body that a command acts on: None if it acts on no body, "" for the sender's own body."""
    return None if isinstance(command, Control | Weather | Fence | SnapshotAction) else command.body


def for_body(command: Command, body: str) -> Command:
    """Return a copy of the command, addressed to the body with this name."""
    if isinstance(command, Control | Weather | Fence | SnapshotAction):
        return command
    return replace(command, body=body)


def make_command(verb: str, arguments: Mapping[str, Any]) -> Command:
    """Create a command from a verb and named values, as received in JSON. If they are invalid, raises ValueError with a
    message for the user.
    """
    if verb in TIMER_VERBS:
        name = TIMER_VERBS[verb][0]
        value = arguments.get(name) if name else None
        if name and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f"'{verb}' requires {name}=NUMBER")
        return check_plausible(_checked(verb, Control(verb, value)))
    if verb not in VERBS:
        raise ValueError(f"unknown command '{verb[:40]}'")
    record = VERBS[verb][0]
    values = {k: v for k, v in arguments.items() if v is not None}
    for name in ("matrix", "corners"):  # of `allocate` and `fence`
        if isinstance(rows := values.get(name), list):
            values[name] = [v for row in rows for v in (row if isinstance(row, list) else [row])]
    if isinstance(corners := values.get("corners"), list) and len(corners) > 2 * MAX_ITEM_CORNERS:
        raise ValueError(f"fence: {len(corners) // 2} corners are too many; the maximum is {MAX_ITEM_CORNERS}")
    try:
        command: Command = schema_of(record).from_dict(values)
    except Malformed as error:
        raise ValueError(f"{verb}: {error}") from None
    return check_plausible(command)


def _checked(verb: str, command: Command) -> Command:
    try:
        return check(command)
    except Malformed as error:
        raise ValueError(f"{verb}: {error}") from None


def check_plausible(command: Command) -> Command:
    """Check the combinations of values in a command and return the command. Raises ValueError if a combination is
    invalid.
    """
    if isinstance(command, Control):
        _sensible_control(command)
    if isinstance(command, Allocate) and (not command.matrix or len(command.matrix) % 6):
        raise ValueError(f"allocate: expected a matrix of six rows, got {len(command.matrix)} numbers")
    if isinstance(command, Mission):
        _sensible_mission(command)
    if isinstance(command, VehicleCommand):
        _check_vehicle_command(command)
    if isinstance(command, Fence) and command.corners:
        check_fence(command)
    if isinstance(command, SnapshotAction):
        _check_snapshot(command)
    if isinstance(command, Pose | Weather):
        names = [f.name for f in fields(command) if f.name != "body"]
        if all(getattr(command, name) is None for name in names):
            raise ValueError(f"{verb_of(command)}: at least one of these values is required: {', '.join(names)}")
    return command


def _sensible_mission(command: Mission) -> None:
    points = command.points
    if not points or len(points) % 4:
        raise ValueError(
            f"mission: expected four numbers per waypoint (north, east, down, speed), got {len(points)} numbers"
        )
    if command.first + len(points) // 4 > command.count:
        raise ValueError(
            f"mission: a part of the mission has waypoints beyond number {command.count}, which is the last one"
        )
    if min(points[3::4]) <= 0.0:
        raise ValueError("mission: the speed at each waypoint must be above 0 m/s")


def _check_vehicle_command(command: VehicleCommand) -> None:
    if command.action not in VEHICLE_ACTIONS:
        raise ValueError(f"command: unknown action '{command.action}'{suggest_name(command.action, VEHICLE_ACTIONS)}")
    if command.action == "goto" and command.point is None:
        raise ValueError("command: 'goto' needs a point: north, east, down in m and speed in m/s")
    if command.point is not None and command.point[3] < 0.0:
        raise ValueError("command: the speed must not be below 0 m/s; 0 = the vehicle's default cruise speed")


def is_snapshot_file(name: str) -> bool:
    """Return whether the name of a snapshot refers to a file on the server's machine."""
    return "/" in name or name.endswith(SNAPSHOT_SUFFIX)


def _check_snapshot(command: SnapshotAction) -> None:
    if command.action not in SNAPSHOT_ACTIONS:
        raise ValueError(f"snapshot: unknown action '{command.action}'{suggest_name(command.action, SNAPSHOT_ACTIONS)}")
    if not is_snapshot_file(command.name) and not _SNAPSHOT_NAME.fullmatch(command.name):
        raise ValueError(f"snapshot: invalid name '{command.name[:40]}': use 1 to 32 letters, digits, '-', '_' or '.'")


def split_mission(waypoints: Sequence[Sequence[float]], number: int, body: str = "") -> list[Mission]:
    """Split waypoints (north, east and down in m, in frame W; speed in m/s) into the MISSION requests that carry them.

    Raises ValueError if the waypoints are invalid.
    """
    if not 0 < len(waypoints) <= MAX_MISSION_WAYPOINTS or any(len(w) != 4 for w in waypoints):
        raise ValueError(
            f"a mission must have 1 to {MAX_MISSION_WAYPOINTS} waypoints of four numbers each: north, east, down, speed"
        )
    firsts = range(0, len(waypoints), MAX_ITEM_WAYPOINTS)
    rows = [[float(v) for w in waypoints[k : k + MAX_ITEM_WAYPOINTS] for v in w] for k in firsts]
    return [Mission(body, number, k, len(waypoints), tuple(r)) for k, r in zip(firsts, rows, strict=True)]


def _sensible_control(command: Control) -> None:
    verb, value = command.verb, command.value
    if verb not in TIMER_VERBS:
        raise ValueError(f"unknown command '{verb}'; valid commands: {', '.join(TIMER_VERBS)}")
    name = TIMER_VERBS[verb][0]
    if name and value is None:
        raise ValueError(f"'{verb}' requires a number: {name}")
    if verb == "step" and value is not None and (value != int(value) or not 1 <= value <= MAX_TICKS):
        raise ValueError(f"a step must be a whole number of ticks from 1 to {MAX_TICKS}, got {value:g}")
    if verb == "speed" and value and not MIN_SPEED <= value <= MAX_SPEED:
        raise ValueError(f"speed must be 0 (as fast as possible) or from {MIN_SPEED:g} to {MAX_SPEED:g}, got {value:g}")


def to_dict(command: Command) -> dict[str, Any]:
    """Return the verb of a command and its named values, for the log."""
    named = schema_of(type(command)).to_dict(command)
    named.pop("verb", None)
    return {"verb": verb_of(command), **{k: _plain(v) for k, v in named.items() if v is not None and v != ""}}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def encode(command: Command) -> bytes:
    """Encode a command as bytes in the wire format of a REQUESTS item."""
    return REQUESTS.pack(command)


def decode(item: bytes) -> Command:
    """Decode a command from bytes in the wire format."""
    command: Command = REQUESTS.unpack(item)
    return command
