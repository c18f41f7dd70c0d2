"""A stand-in for PX4's side of the simulator interface, written from its description with its own codec. It is a TCP
client that takes its time from the simulator, answers each frame once its controllers run, and flies by the sensor
values.
"""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.bridges.standin import StandIn

#: number: (layout on the wire, CRC_EXTRA)
LAYOUTS = {
    107: (struct.Struct("<Q13fIB"), 108),
    113: (struct.Struct("<Q3i3H3hH3BH"), 124),
    331: (struct.Struct("<Q55f4Bb"), 91),
    115: (struct.Struct("<Q7f3i3h2H3h"), 4),
    132: (struct.Struct("<I3H4B"), 85),
}
HEARTBEAT, COMMAND, CONTROLS = (
    (0, struct.Struct("<I5B"), 50),
    (76, struct.Struct("<7fH3B"), 152),
    (93, struct.Struct("<QQ16fB"), 47),
)


def crc(data: bytes) -> int:
    """X.25, bit by bit."""
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x8408 if value & 1 else 0)
    return value


def packed(kind: tuple[int, struct.Struct, int], *values: float | bytes, sender: tuple[int, int] = (1, 1)) -> bytes:
    """A frame, of PX4 unless it is another's."""
    number, layout, extra = kind
    payload = layout.pack(*values).rstrip(b"\0") or b"\0"
    body = bytes([len(payload), 0, 0, 0, *sender]) + number.to_bytes(3, "little") + payload
    return b"\xfd" + body + crc(body + bytes([extra])).to_bytes(2, "little")


@dataclass
class Seen:
    """The values that PX4 received last."""

    time_us: int = 0
    force: tuple[float, ...] = ()
    gyro: tuple[float, ...] = ()
    magnetic: tuple[float, ...] = ()  #: gauss
    pressure: float = math.nan  #: hPa
    gps: tuple[float, ...] = ()  #: degrees, degrees, m
    way: tuple[float, ...] = ()  #: m/s north, east
    fix: int = -1
    odometry: tuple[float, ...] = ()  #: x, y, z, q, v, rates
    truth: tuple[float, ...] = ()
    distance_cm: int = -1
    counts: dict[int, int] = field(default_factory=dict)


Pilot = Callable[[Seen], list[float]]
STAY_M = 4.0  #: a boat goes astern rather than turn round


class Px4(StandIn):
    """Flies until ``seconds`` of its clock have gone by, or until ``die`` is called.

    ``plain``: it only answers, and keeps no track. ``answers``: the seconds that it takes for the answer to a frame, by the frame's number; None: there is none.
    """

    def __init__(
        self,
        pilot: Pilot,
        seconds: float,
        port: int,
        *,
        every: int = 1,
        check: bool = False,
        plain: bool = False,
        answers: Callable[[int], float | None] = lambda _: 0.0,
    ) -> None:
        super().__init__()
        self.pilot, self.seconds, self.port, self.every, self.check, self.plain, self.answers = (
            pilot,
            seconds,
            port,
            every,
            check,
            plain,
            answers,
        )
        self.seen = Seen()
        self.times: list[int] = []
        self.track: list[Seen] = []

    def fly(self) -> None:
        with self._connected() as sock:
            sock.sendall(packed(HEARTBEAT, 0, 0, 12, 0, 0, 3))
            sock.sendall(packed(COMMAND, 115.0, 8000.0, 0, 0, 0, 0, 0, 511, 1, 1, 0))
            self._fly(sock)

    def _connected(self) -> socket.socket:
        limit = time.monotonic() + 60.0
        while True:  # PX4 does so for ever
            try:
                return socket.create_connection(("127.0.0.1", self.port), 20.0)
            except ConnectionRefusedError:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.02)

    def _fly(self, sock: socket.socket) -> None:
        left, number = b"", 0
        while not self.over.is_set() and (len(self.times) < 2 or self.times[-1] < self.times[0] + 1e6 * self.seconds):
            data = sock.recv(4096)
            if not data:
                raise EOFError("the bridge has hung up")
            left += data
            while len(left) >= 12 and len(left) >= 12 + left[1]:
                size = 12 + left[1]
                if self.take(left[:size]):
                    number += 1
                    self._answer(sock, number)
                left = left[size:]

    def take(self, frame: bytes) -> bool:
        """True for a new time."""
        assert frame[0] == 0xFD, "the stream is whole"
        number = int.from_bytes(frame[7:10], "little")
        layout, extra = LAYOUTS[number]
        if self.check:
            assert crc(frame[1:-2] + bytes([extra])) == int.from_bytes(frame[-2:], "little"), number
        v = layout.unpack(frame[10:-2].ljust(layout.size, b"\0"))
        seen = self.seen
        seen.counts[number] = seen.counts.get(number, 0) + 1
        if number == 107:
            updated, source = v[14], v[15]
            assert source == 0
            seen.time_us, seen.force, seen.gyro = v[0], v[1:4], v[4:7]
            if updated & 0x1C0:
                seen.magnetic = v[7:10]
            if updated & 0x1A00 == 0x1A00:
                seen.pressure = v[10]
            self.times.append(v[0])
            return True
        if number == 113:
            seen.gps, seen.way, seen.fix = (1e-7 * v[1], 1e-7 * v[2], 1e-3 * v[3]), (0.01 * v[7], 0.01 * v[8]), v[11]
        elif number == 331:
            assert v[56:58] == (1, 12) and v[59] == 2, "local NED, body FRD, vision"
            seen.odometry = v[1:14]
        elif number == 115:
            seen.truth = v[1:]
        else:
            seen.distance_cm = v[3]
            assert v[6] == 25, "down"
        return False

    def _answer(self, sock: socket.socket, number: int) -> None:
        if not self.plain:
            self.track.append(Seen(self.seen.time_us, gps=self.seen.gps, odometry=self.seen.odometry))
        late = self.answers(number)
        if number % self.every or late is None or not (self.seen.odometry or self.seen.gps):
            return
        if late:
            time.sleep(late)
        outputs = self.pilot(self.seen)
        sock.sendall(packed(CONTROLS, self.seen.time_us, 1, *outputs, *[0.0] * (16 - len(outputs)), 129))


def _turn(goal: float, heading: float) -> float:
    return (goal - heading + math.pi) % (2 * math.pi) - math.pi


def uuv(depth: float, heading: float) -> Pilot:
    """Holds depth and heading by odometry; BlueROV2 heavy: 1 to 4 all push ahead, 5 and 8 push up, 6 and 7 down."""

    def fly(s: Seen) -> list[float]:
        _, _, z, qw, qx, qy, qz, *_ = s.odometry
        yaw = math.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))
        down = max(-0.8, min(0.8, 0.9 * (depth - z) - 0.8 * s.odometry[9]))
        turn = max(-0.5, min(0.5, 0.8 * _turn(heading, yaw) - 0.5 * s.gyro[2]))
        return [-turn, turn, -turn, turn, -down, down, down, -down]

    return fly


def boat(points: list[tuple[float, float]], near: float = 1.5) -> Pilot:
    """Goes from point to point (latitude, longitude) by satellites and compass: 1 port, 2 starboard. At the last it stays: near it
    it goes astern rather than turn round, and brakes by its speed over ground."""
    left = list(points)

    def fly(s: Seen) -> list[float]:
        north = 111_111.0 * (left[0][0] - s.gps[0])
        east = 111_320.0 * math.cos(math.radians(s.gps[0])) * (left[0][1] - s.gps[1])
        if math.hypot(north, east) < near and len(left) > 1:
            del left[0]
        heading = math.atan2(-s.magnetic[1], s.magnetic[0]) - math.radians(0.95)  # declination 0.95 degrees west
        turn = _turn(math.atan2(east, north), heading)
        way = math.hypot(north, east)
        along = north * math.cos(heading) + east * math.sin(heading)
        speed = s.way[0] * math.cos(heading) + s.way[1] * math.sin(heading)
        if way < STAY_M and len(left) == 1:
            turn = math.remainder(turn, math.pi)
        elif along < 0.0:
            along = 0.0
        ahead = max(-0.9, min(0.9, 0.4 * along - (0.5 * speed if len(left) == 1 else 0.0)))
        steer = max(-0.4, min(0.4, 0.7 * turn - 0.5 * s.gyro[2])) if way > 1.0 else 0.0
        return [ahead + steer, ahead - steer]

    return fly
