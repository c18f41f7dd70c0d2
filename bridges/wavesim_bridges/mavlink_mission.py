"""Missions of a vehicle without an autopilot: their upload and download through MAVLink's mission protocol, and their
progress.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.mavlink_codec import MavlinkMessage, MavlinkWriter
from wavesim_bridges.pilot import Setpoint
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.arrays import Floats

MOST_ITEMS = 500
#: wall time in s after which a missing mission item is requested again, and the maximum number of requests
RETRY_S, ATTEMPTS = 1.0, 5
RADIUS_M = 1.0  #: default acceptance radius of a waypoint in m
WAYPOINT, LOITER_TIME, RETURN, DELAY, SPEED = 16, 19, 20, 93, 178
_GLOBAL, _LOCAL = (0, 3, 5, 6), (1,)  # frames
#: result codes in MISSION_ACK
ACCEPTED, UNSUPPORTED_FRAME, UNSUPPORTED, NO_SPACE, BAD_X, BAD_Y, BAD_Z, BAD_SEQUENCE, CANCELLED = (
    0,
    2,
    3,
    4,
    10,
    11,
    12,
    13,
    15,
)
NOT_STARTED, ACTIVE, PAUSED, COMPLETE = 2, 3, 4, 5  #: mission states in MISSION_CURRENT


class MissionItemRefused(Exception):
    """Raised when a mission item cannot be executed. ``reason`` is the code for MISSION_ACK."""

    def __init__(self, reason: int) -> None:
        self.reason = reason


@dataclass
class _Upload:
    sender: dict[str, int]
    count: int
    items: list[dict[str, Any]] = field(default_factory=list)
    requested_at: float = 0.0
    attempts: int = 0


class MavlinkMission:
    """Items of a mission, and the progress of the mission. The mission protocol uses the wall time ``now`` in s; the
    progress uses the simulation time of the vehicle's motion.
    """

    def __init__(self, writer: MavlinkWriter, origin: WorldOrigin) -> None:
        self.items: list[dict[str, Any]] = []
        self.current = 0
        self._writer, self._origin = writer, origin
        self._upload: _Upload | None = None
        self._speed = math.nan
        self._since: float | None = None  # time when the current item's position was reached, or its delay began
        self._calls: dict[str, Callable[[MavlinkMessage, float], list[bytes]]] = {
            "MISSION_COUNT": self._begin,
            "MISSION_ITEM_INT": self._item,
            "MISSION_REQUEST_LIST": self._list,
            "MISSION_REQUEST": self._request,
            "MISSION_REQUEST_INT": self._request,
            "MISSION_CLEAR_ALL": self._clear,
            "MISSION_SET_CURRENT": self._set_current,
        }
        self.names = tuple(self._calls)

    # -- the protocol

    def receive(self, m: MavlinkMessage, now: float) -> list[bytes]:
        """Answer a message of the mission protocol, that is, a message whose name is in ``names``."""
        return self._calls[m.name](m, now)

    def take_due_frames(self, now: float) -> list[bytes]:
        """Request a missing mission item again if its request has timed out."""
        up = self._upload
        if up is None or now - up.requested_at < RETRY_S:
            return []
        if up.attempts >= ATTEMPTS:
            self._upload = None
            return [self._ack(up.sender, CANCELLED)]
        return self._ask(up, now)

    def _ack(self, who: dict[str, int], result: int, kind: int = 0) -> bytes:
        return self._writer.frame("MISSION_ACK", **who, type=result, mission_type=kind)

    def _ask(self, up: _Upload, now: float) -> list[bytes]:
        up.requested_at = now
        up.attempts += 1
        return [self._writer.frame("MISSION_REQUEST_INT", **up.sender, seq=len(up.items))]

    def _begin(self, m: MavlinkMessage, now: float) -> list[bytes]:
        who, kind, count = _sender(m), m.fields["mission_type"], m.fields["count"]
        if kind or count == 0:
            if not kind:
                self._replace_items([])
            return [self._ack(who, UNSUPPORTED if count else ACCEPTED, kind)]
        if count > MOST_ITEMS:
            return [self._ack(who, NO_SPACE)]
        self._upload = _Upload(who, count)
        return self._ask(self._upload, now)

    def _item(self, m: MavlinkMessage, now: float) -> list[bytes]:
        up, who, f = self._upload, _sender(m), m.fields
        if up is None or who != up.sender or f["mission_type"]:
            return [self._ack(who, BAD_SEQUENCE, f["mission_type"])]
        if f["seq"] != len(up.items):
            return []  # a duplicate
        try:
            self._checked(f)
        except MissionItemRefused as refused:
            self._upload = None
            return [self._ack(who, refused.reason)]
        up.items.append(f)
        up.attempts = 0
        if len(up.items) < up.count:
            return self._ask(up, now)
        self._upload = None
        self._replace_items(up.items)
        return [self._ack(who, ACCEPTED)]

    def _checked(self, f: dict[str, Any]) -> None:
        """Raise MissionItemRefused for an item that cannot be executed."""
        if f["command"] not in (WAYPOINT, LOITER_TIME, RETURN, DELAY, SPEED):
            raise MissionItemRefused(UNSUPPORTED)
        if f["command"] in (WAYPOINT, LOITER_TIME):
            if f["frame"] not in _GLOBAL + _LOCAL:
                raise MissionItemRefused(UNSUPPORTED_FRAME)
            if f["frame"] in _GLOBAL and abs(f["x"]) > 900_000_000:
                raise MissionItemRefused(BAD_X)
            if f["frame"] in _GLOBAL and abs(f["y"]) > 1_800_000_000:
                raise MissionItemRefused(BAD_Y)
            if not math.isfinite(f["z"]):
                raise MissionItemRefused(BAD_Z)

    def _list(self, m: MavlinkMessage, now: float) -> list[bytes]:
        kind = m.fields["mission_type"]
        count = 0 if kind else len(self.items)
        return [self._writer.frame("MISSION_COUNT", **_sender(m), count=count, mission_type=kind)]

    def _request(self, m: MavlinkMessage, now: float) -> list[bytes]:
        seq, kind = m.fields["seq"], m.fields["mission_type"]
        if kind or seq >= len(self.items):
            return [self._ack(_sender(m), BAD_SEQUENCE, kind)]
        return [
            self._writer.frame("MISSION_ITEM_INT", **{**self.items[seq], **_sender(m), "current": seq == self.current})
        ]

    def _clear(self, m: MavlinkMessage, now: float) -> list[bytes]:
        kind = m.fields["mission_type"]
        if kind in (0, 255):
            self._replace_items([])
        return [self._ack(_sender(m), ACCEPTED, kind)]

    def _set_current(self, m: MavlinkMessage, now: float) -> list[bytes]:
        return self.mission_current_frame() if self.go_to(m.fields["seq"]) else []

    def _replace_items(self, items: list[dict[str, Any]]) -> None:
        self.items = items
        self.go_to(0)

    # -- progress

    def go_to(self, seq: int) -> bool:
        """Set the current item. Return False if the item does not exist."""
        if seq and not 0 <= seq < len(self.items):
            return False
        self.current, self._since, self._speed = seq, None, math.nan
        return True

    @property
    def complete(self) -> bool:
        """True if the mission is complete."""
        return self.current >= len(self.items)

    def mission_current_frame(self, state: int = NOT_STARTED) -> list[bytes]:
        """Encode the MISSION_CURRENT message."""
        count = len(self.items)
        state = COMPLETE if count and self.complete else state
        return [
            self._writer.frame(
                "MISSION_CURRENT", seq=min(self.current, max(count - 1, 0)), total=count, mission_state=state
            )
        ]

    def update_progress(self, motion: VehicleMotion, level: bool) -> list[bytes]:
        """Update the progress. Return the messages for the ground stations. If ``level`` is set, ignore the depth, as
        for a boat.
        """
        frames: list[bytes] = []
        while not self.complete and self._done(self.items[self.current], motion, level):
            frames.append(self._writer.frame("MISSION_ITEM_REACHED", seq=self.current))
            self.current, self._since = self.current + 1, None
            frames += self.mission_current_frame(ACTIVE)
        return frames

    def _done(self, f: dict[str, Any], motion: VehicleMotion, level: bool) -> bool:
        if f["command"] == SPEED:
            self._speed = f["param2"] if f["param2"] > 0.0 else math.nan
            return True
        if f["command"] != DELAY and self._since is None:
            way = (self._place(f) - motion.position)[: 2 if level else 3]
            radius = f["param2"] if f["command"] == WAYPOINT and f["param2"] > 0.0 else RADIUS_M
            if float(np.linalg.norm(np.nan_to_num(way))) > radius:
                return False
        self._since = motion.time if self._since is None else self._since
        stay = f["param1"] if f["command"] != RETURN and math.isfinite(f["param1"]) else 0.0
        return motion.time - self._since >= stay

    def _place(self, f: dict[str, Any]) -> Floats:
        if f["command"] == RETURN:
            return np.array([0.0, 0.0, math.nan])  # home, at the present depth
        if f["frame"] in _LOCAL:
            return np.array([1e-4 * f["x"], 1e-4 * f["y"], f["z"]])
        return np.array([*self._origin.metres(1e-7 * f["x"], 1e-7 * f["y"]), -f["z"]])

    def setpoint(self) -> Setpoint | None:
        """Return the target position. It is the position of the current item or, if this item has no position, the
        position of the last earlier item that has one. The result is None if there is no target yet.
        """
        for f in self.items[min(self.current, len(self.items) - 1) :: -1] if self.items else ():
            if f["command"] in (WAYPOINT, LOITER_TIME, RETURN):
                heading = math.radians(f["param4"]) if math.isfinite(f["param4"]) else math.nan
                return Setpoint(self._place(f), heading=heading, speed=self._speed)
        return None


def _sender(m: MavlinkMessage) -> dict[str, int]:
    return {"target_system": m.system, "target_component": m.component}
