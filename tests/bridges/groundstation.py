"""A stand-in for a ground station, written from the documents of MAVLink's services with its own codec. It sends the
requests of QGroundControl on connecting, in the same order, and then those of its user. Every request that needs an
answer must get one.
"""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from tests.bridges.px4 import COMMAND, HEARTBEAT, crc, packed
from tests.bridges.standin import StandIn

Layout = tuple[int, struct.Struct, int]
ME = (255, 190)
ANSWER_S = 3.0  #: so long a station waits before it asks again
#: name: number, layout on the wire, CRC_EXTRA
SAYS: dict[str, Layout] = {
    "PARAM_REQUEST_LIST": (21, struct.Struct("<BB"), 159),
    "PARAM_REQUEST_READ": (20, struct.Struct("<hBB16s"), 214),
    "MISSION_REQUEST_LIST": (43, struct.Struct("<BBB"), 132),
    "MISSION_REQUEST_INT": (51, struct.Struct("<HBBB"), 196),
    "MISSION_COUNT": (44, struct.Struct("<HBBB"), 221),
    "MISSION_ITEM_INT": (73, struct.Struct("<4f2ifHH6B"), 38),
    "MISSION_ACK": (47, struct.Struct("<4B"), 153),
    "PING": (4, struct.Struct("<QIBB"), 237),
    "TIMESYNC": (111, struct.Struct("<qq"), 34),
    "SYSTEM_TIME": (2, struct.Struct("<QI"), 137),
    "REQUEST_DATA_STREAM": (66, struct.Struct("<HBBBB"), 148),
}
HEARS: dict[str, Layout] = {
    "HEARTBEAT": HEARTBEAT,
    "COMMAND_ACK": (77, struct.Struct("<HBBiBB"), 143),
    "AUTOPILOT_VERSION": (148, struct.Struct("<QQ4IHH24B"), 178),
    "AVAILABLE_MODES": (435, struct.Struct("<IIBBB35s"), 134),
    "PARAM_VALUE": (22, struct.Struct("<fHH16sB"), 220),
    "HOME_POSITION": (242, struct.Struct("<3i10f"), 104),
    "PROTOCOL_VERSION": (300, struct.Struct("<3H16B"), 217),
    "CURRENT_MODE": (436, struct.Struct("<IIB"), 193),
    "MESSAGE_INTERVAL": (244, struct.Struct("<iH"), 95),
    "VFR_HUD": (74, struct.Struct("<4fhH"), 20),
    "MISSION_CURRENT": (42, struct.Struct("<HHBB"), 28),
    "GLOBAL_POSITION_INT": (33, struct.Struct("<I4i3hH"), 104),
    **{n: SAYS[n] for n in SAYS if n.startswith(("MISSION", "PING", "TIME"))},
}
_BY_NUMBER = {number: (name, layout, extra) for name, (number, layout, extra) in HEARS.items()}


class GroundStation(StandIn):
    """Listens at a port as QGroundControl does at 14550, speaks to whom it hears. ``result`` of each command by its number and
    first parameter; ``sees`` what came last, by name."""

    def __init__(self, port: int, items: list[tuple[int, int, float]]) -> None:
        super().__init__()
        self.items = items  #: latitude, longitude (1e-7 deg), altitude (m) of a mission
        self.sees: dict[str, tuple[Any, ...]] = {}
        self.results: dict[tuple[int, float], int] = {}
        self.modes: dict[str, int] = {}
        self.parameters: dict[str, float] = {}
        self.plans: dict[int, int] = {}  #: items by the kind of mission
        self._came: list[tuple[str, tuple[Any, ...]]] = []
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind(("127.0.0.1", port))
        self._sock.settimeout(0.05)
        self.vehicle: tuple[str, int] = ("", 0)
        self._beat = 0.0
        self.system = 0

    def fly(self) -> None:
        with self._sock:
            self._connect()
            self._use()

    # -- the wire

    def _say(self, name: str, *values: Any) -> None:
        self._came.clear()
        self._sock.sendto(packed(SAYS[name], *values, sender=ME), self.vehicle)

    def _listen(self) -> None:
        now = time.monotonic()
        if self.vehicle[1] and now - self._beat > 1.0:
            self._beat = now
            self._sock.sendto(packed(HEARTBEAT, 0, 6, 8, 0, 4, 3, sender=ME), self.vehicle)
        try:
            data, self.vehicle = self._sock.recvfrom(4096)
        except TimeoutError:
            return
        assert data[0] == 0xFD and len(data) == 12 + data[1], "one whole frame"
        name, layout, extra = _BY_NUMBER.get(int.from_bytes(data[7:10], "little"), ("", struct.Struct(""), 0))
        if name:
            assert crc(data[1:-2] + bytes([extra])) == int.from_bytes(data[-2:], "little"), name
            self.sees[name] = values = layout.unpack(data[10:-2].ljust(layout.size, b"\0"))
            self._came.append((name, values))
            self.system = data[5]

    def _wait(
        self, what: str, name: str, wanted: Callable[[tuple[Any, ...]], bool] = lambda _: True
    ) -> tuple[Any, ...]:
        limit = time.monotonic() + ANSWER_S
        while True:
            for came, values in self._came:
                if came == name and wanted(values):
                    return values
            assert time.monotonic() < limit and not self.over.is_set(), f"{what} was left unanswered: no {name}"
            self._listen()

    def _command(self, number: int, *values: float) -> int:
        self._came.clear()
        p = [*values, *[0.0] * (7 - len(values))]
        self._sock.sendto(packed(COMMAND, *p, number, self.system, 1, 0, sender=ME), self.vehicle)
        ack = self._wait(f"command {number} {values}", "COMMAND_ACK", lambda v: v[0] == number and v[4:] == ME)
        self.results[number, values[0] if values else 0.0] = ack[1]
        return int(ack[1])

    def _request(self, name: str) -> None:
        """A message by MAV_CMD_REQUEST_MESSAGE: an accepted request brings it."""
        if self._command(512, float(HEARS[name][0])) == 0:
            self._wait(f"a request for {name}", name)

    # -- on connecting

    def _connect(self) -> None:
        self._wait("listening", "HEARTBEAT")
        self._request("AUTOPILOT_VERSION")
        assert self._command(512, 435.0, 0.0) == 0
        count = self._wait("a request for modes", "AVAILABLE_MODES")[2]
        self._wait("a request for modes", "AVAILABLE_MODES", lambda v: v[3] == count)
        self.modes = {v[5].split(b"\0")[0].decode(): v[0] for n, v in self._came if n == "AVAILABLE_MODES"}
        assert len(self.modes) == count
        for metadata in (397.0, 395.0):
            assert self._command(512, metadata) != 0, "there is no such file, nor a file server"
        self._parameters()
        for kind in (0, 1, 2):
            self._download(kind)
        for name in ("HOME_POSITION", "PROTOCOL_VERSION", "CURRENT_MODE"):
            self._request(name)
        assert self._command(410) == 0
        self._wait("the deprecated request for home", "HOME_POSITION")
        for absent in (259.0, 280.0, 9999.0):
            self._command(512, absent)  # cameras, gimbals
        for other in (521, 522, 527, 2504, 31010):
            self._command(other, 1.0)
        self._say("SYSTEM_TIME", time.time_ns() // 1000, 0)
        self._say("REQUEST_DATA_STREAM", 4, self.system, 1, 0, 1)
        self._say("PING", 5, 77, 0, 0)
        assert self._wait("a ping", "PING", lambda v: v[2:] == ME)[1] == 77
        self._say("TIMESYNC", 0, 4711)
        assert self._wait("time", "TIMESYNC", lambda v: v[0] != 0)[1] == 4711

    def _parameters(self) -> None:
        self._say("PARAM_REQUEST_LIST", self.system, 1)
        count = self._wait("the list of parameters", "PARAM_VALUE")[1]
        for index in range(count):
            self._say("PARAM_REQUEST_READ", index, self.system, 1, b"")
            value = self._wait(f"parameter {index}", "PARAM_VALUE", lambda v, k=index: v[2] == k)  # type: ignore[misc]
            self.parameters[value[3].split(b"\0")[0].decode()] = value[0]

    def _download(self, kind: int) -> None:
        self._say("MISSION_REQUEST_LIST", self.system, 1, kind)
        count = self._wait(f"the list of plan {kind}", "MISSION_COUNT", lambda v: v[3] == kind)[0]
        for k in range(count):
            self._say("MISSION_REQUEST_INT", k, self.system, 1, kind)
            item = self._wait(f"item {k}", "MISSION_ITEM_INT", lambda v, k=k: v[7] == k)  # type: ignore[misc]
            assert item[4:7] == self.items[k]
        self._say("MISSION_ACK", self.system, 1, 0, kind)
        self.plans[kind] = count

    def _upload(self) -> None:
        self._say("MISSION_COUNT", len(self.items), self.system, 1, 0)
        for k, item in enumerate(self.items):
            self._wait(f"offering item {k}", "MISSION_REQUEST_INT", lambda v, k=k: v[0] == k)  # type: ignore[misc]
            self._say("MISSION_ITEM_INT", 0.0, 0.0, 0.0, math.nan, *item, k, 16, self.system, 1, 6, 0, 1, 0)
        assert self._wait("a mission", "MISSION_ACK")[2] == 0

    # -- what its user does

    def _use(self) -> None:
        assert self._command(176, 1.0, float(self.modes["Hold"])) == 0, "the whole number, as QGroundControl says it"
        self._wait("a mode", "HEARTBEAT", lambda v: v[0] == self.modes["Hold"])
        self._upload()
        self._download(0)
        assert self._command(400, 1.0) == 0 and self._command(300) == 0
        self._wait("a start", "HEARTBEAT", lambda v: v[0] == self.modes["Mission"] and v[3] & 128 != 0)
        assert self._command(511, 33.0, 100_000.0) == 0 and self._command(510, 33.0) == 0
        assert self._wait("an interval", "MESSAGE_INTERVAL") == (100_000, 33)
        assert self._command(262, 6.0) == 0 and self._command(262, 1.0) == 4
        assert self._command(400, 0.0) == 0
        self._wait("the instruments", "VFR_HUD")


class OnMission(GroundStation):
    """Sends its vehicle on the mission, and watches until ``die`` is called; ``complete`` once the mission is. ``track``:
    latitude, longitude (degrees) and altitude (m) as received."""

    def __init__(self, port: int, items: list[tuple[int, int, float]]) -> None:
        super().__init__(port, items)
        self.track: list[tuple[float, float, float]] = []
        self.complete = False

    def fly(self) -> None:
        with self._sock:
            self._wait("listening", "HEARTBEAT")
            self._upload()
            assert self._command(400, 1.0) == 0 and self._command(300) == 0
            while not self.over.is_set():
                self._came.clear()
                self._listen()
                self.track += [
                    (1e-7 * v[1], 1e-7 * v[2], 1e-3 * v[3]) for n, v in self._came if n == "GLOBAL_POSITION_INT"
                ]
                self.complete = self.complete or self.sees.get("MISSION_CURRENT", (0, 0, 0))[2] == 5
