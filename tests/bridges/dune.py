"""The bridge as a process, and a stand-in for DUNE written from the description of IMC. The stand-in receives a
simulated state, controls depth and heading as the on-board software of an LAUV does, and commands a thruster and four
fins.
"""

from __future__ import annotations

import math
import socket
import struct
import threading
import time
from collections.abc import Callable

from tests.bridges.program import Program
from tests.conftest import Server

HEADER = 20


def checksum(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xA001 if crc & 1 else crc >> 1
    return crc


def packet(number: int, payload: bytes, source: int = 0x00D1, order: str = "<") -> bytes:
    head = struct.pack(order + "HHHdHBHB", 0xFE54, number, len(payload), time.time(), source, 255, 0xFFFF, 255)
    return head + payload + struct.pack(order + "H", checksum(head + payload))


def opened(data: bytes) -> tuple[int, int, bytes]:
    """(number, source, payload) of a packet that has to be right."""
    sync, number, size, stamp, source, _, _, _ = struct.unpack_from("<HHHdHBHB", data)
    assert sync == 0xFE54 and len(data) == HEADER + size + 2 and abs(stamp - time.time()) < 60.0
    assert struct.unpack("<H", data[-2:])[0] == checksum(data[:-2])
    return number, source, data[HEADER:-2]


def text(value: str) -> bytes:
    return struct.pack("<H", len(value)) + value.encode()


def texts(payload: bytes, at: int, count: int) -> tuple[str, ...]:
    """Texts that begin at a place, one behind the other."""
    found = []
    for _ in range(count):
        (length,) = struct.unpack_from("<H", payload, at)
        found.append(payload[at + 2 : at + 2 + length].decode())
        at += 2 + length
    return tuple(found)


def beacons(*names: str, op: int = 0) -> bytes:
    """LblConfig; where the beacons are is the world's affair."""
    each = [struct.pack("<H", 202) + text(name) + struct.pack("<ddfBBB", 0.7, -0.15, 5.0, 1, 2, 0) for name in names]
    return struct.pack("<BH", op, len(each)) + b"".join(each)


def parameters(entity: str, **values: str) -> bytes:
    """SetEntityParameters; `_` for a blank."""
    each = [struct.pack("<H", 801) + text(name.replace("_", " ")) + text(value) for name, value in values.items()]
    return text(entity) + struct.pack("<H", len(each)) + b"".join(each)


#: entities that a DUNE says it has
ENTITIES = {
    "Depth Sensor": 40,
    "AHRS": 41,
    "LBL": 42,
    "Acoustic Modem": 43,
    "Leak Sensor - Nose": 44,
    "Leak Sensor - Tail": 45,
}


class State:
    """Message 50."""

    def __init__(self, payload: bytes) -> None:
        values = struct.unpack("<dd16f", payload)
        self.lat, self.lon, self.height, self.x, self.y, self.z, self.phi, self.theta, self.psi = values[:9]
        self.u, self.v, self.w, self.p, self.q, self.r, *self.stream = values[9:]


Asked = tuple[float, list[float]]  #: thruster, fins
Pilot = Callable[[State], Asked]


Course = Callable[[State], float]  #: the heading that is wanted


def steady(heading: float) -> Course:
    """The same all the time."""
    return lambda s: heading


def through(*points: tuple[float, float], near: float = 2.0) -> Course:
    """To one point (north, east) after the other, and on."""
    left, course = list(points), 0.0

    def heading(s: State) -> float:
        nonlocal course
        if left and math.hypot(left[0][0] - s.x, left[0][1] - s.y) < near:
            left.pop(0)
        if left:
            course = math.atan2(left[0][1] - s.y, left[0][0] - s.x)
        return course

    return heading


def autopilot(depth: float, course: Course, thrust: float = 0.8, dt: float = 0.04) -> Pilot:
    """Holds depth by pitch, and a course. Fins 0 and 3: positive turns to port; 1 and 2: positive puts the nose down."""
    integral = 0.0

    def fly(s: State) -> Asked:
        nonlocal integral
        error = depth - s.z
        pitch = -0.2 * error - 0.02 * integral
        if abs(error) < 0.7:
            integral += error * dt
        nose_up = 1.2 * (max(-0.4, min(0.4, pitch)) - s.theta) - 1.0 * s.q
        turn = (course(s) - s.psi + math.pi) % (2 * math.pi) - math.pi
        starboard = 1.0 * turn - 1.2 * s.r
        plane, rudder = (max(-0.26, min(0.26, -v)) for v in (nose_up, starboard))
        return thrust, [rudder, plane, plane, rudder]

    return fly


class Dune(threading.Thread):
    """Flies until it dies. It listens at one port; ``received`` holds the payloads by message."""

    def __init__(self, bridge: int, pilot: Pilot | None = None, source: int = 0x00D1, servo: int = 302) -> None:
        super().__init__(daemon=True)
        self.bridge, self.pilot, self.source, self.servo = ("127.0.0.1", bridge), pilot, source, servo
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.settimeout(0.1)
        self.port: int = self.sock.getsockname()[1]
        self.states: list[State] = []
        self.received: dict[int, list[bytes]] = {}
        self.entities: dict[int, set[int]] = {}  # of whom, by message
        self.error: Exception | None = None
        self._over = threading.Event()

    def die(self) -> None:
        """As by kill -9: not a word more."""
        self._over.set()
        if self.ident is not None:
            self.join(10)
        self.sock.close()

    def __enter__(self) -> Dune:
        return self

    def __exit__(self, *of: object) -> None:
        self.die()

    def ask(self, thrust: float, fins: list[float]) -> None:
        """Messages 301, and 302 or 281."""
        self.sock.sendto(packet(301, struct.pack("<Bf", 0, thrust), self.source), self.bridge)
        for number, angle in enumerate(fins):
            self.sock.sendto(packet(self.servo, struct.pack("<Bf", number, angle), self.source), self.bridge)

    def say(self, number: int, payload: bytes = b"", source: int | None = None) -> None:
        self.sock.sendto(packet(number, payload, self.source if source is None else source), self.bridge)

    def run(self) -> None:
        try:
            while not self._over.is_set():
                try:
                    data = self.sock.recv(4096)
                except TimeoutError:
                    continue
                number, source, payload = opened(data)
                assert source == self.source
                self.received.setdefault(number, []).append(payload)
                self.entities.setdefault(number, set()).add(data[16])
                if number == 5:
                    assert payload == b"\1\0\0", "the question"
                    self.say(5, b"\0" + text(";".join(f"{label}={k}" for label, k in ENTITIES.items())))
                if number == 50:
                    self.states.append(State(payload))
                    if self.pilot is not None:
                        self.ask(*self.pilot(self.states[-1]))
        except Exception as error:
            self.error = error


class Bridge(Program):
    """The command, once it has joined."""

    def __init__(self, server: Server, vehicle: str, dune: int, *options: str) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        where = ["--port", str(server.port), "--listen", str(self.port), "--dune", str(dune)]
        super().__init__("bridge", "dune", "--vehicle", vehicle, *where, *options)
        self.wait(f"'{vehicle}' joined")

    def __enter__(self) -> Bridge:
        return self

    def __exit__(self, *of: object) -> None:
        self.end()


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "timed out"
        time.sleep(0.02)
