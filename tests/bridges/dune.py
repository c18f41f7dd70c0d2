"""A stand-in for DUNE, written from the description of IMC: it hears a simulated state, controls depth and heading by it as an
LAUV's on-board software does, and asks for a thruster and four fins."""

from __future__ import annotations

import math
import socket
import struct
import threading
import time
from collections.abc import Callable

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
    assert sync == 0xFE54 and len(data) == HEADER + size + 2 and abs(stamp - time.time()) < 5.0
    assert struct.unpack("<H", data[-2:])[0] == checksum(data[:-2])
    return number, source, data[HEADER:-2]


class State:
    """Message 50."""

    def __init__(self, payload: bytes) -> None:
        values = struct.unpack("<dd16f", payload)
        self.lat, self.lon, self.height, self.x, self.y, self.z, self.phi, self.theta, self.psi = values[:9]
        self.u, self.v, self.w, self.p, self.q, self.r, *self.stream = values[9:]


Asked = tuple[float, list[float]]  #: thruster, fins
Pilot = Callable[[State], Asked]


def autopilot(depth: float, heading: float, thrust: float = 0.8, dt: float = 0.04) -> Pilot:
    """Holds depth by pitch, and heading. Fins 0 and 3: positive turns to port; 1 and 2: positive puts the nose down."""
    integral = 0.0

    def fly(s: State) -> Asked:
        nonlocal integral
        error = depth - s.z
        pitch = -0.2 * error - 0.02 * integral
        if abs(error) < 0.7:
            integral += error * dt
        nose_up = 1.2 * (max(-0.4, min(0.4, pitch)) - s.theta) - 1.0 * s.q
        turn = (heading - s.psi + math.pi) % (2 * math.pi) - math.pi
        starboard = 1.0 * turn - 1.2 * s.r
        plane, rudder = (max(-0.26, min(0.26, -v)) for v in (nose_up, starboard))
        return thrust, [rudder, plane, plane, rudder]

    return fly


class Dune(threading.Thread):
    """Flies until it dies. It hears at one port; ``told`` are the payloads that it got, by message."""

    def __init__(self, bridge: int, pilot: Pilot | None = None, source: int = 0x00D1, servo: int = 302) -> None:
        super().__init__(daemon=True)
        self.bridge, self.pilot, self.source, self.servo = ("127.0.0.1", bridge), pilot, source, servo
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.settimeout(0.1)
        self.port: int = self.sock.getsockname()[1]
        self.states: list[State] = []
        self.told: dict[int, list[bytes]] = {}
        self.error: Exception | None = None
        self._over = threading.Event()

    def die(self) -> None:
        """As by kill -9: not a word more."""
        self._over.set()
        if self.ident is not None:
            self.join(10)
        self.sock.close()

    def ask(self, thrust: float, fins: list[float]) -> None:
        """Messages 301, and 302 or 281."""
        self.sock.sendto(packet(301, struct.pack("<Bf", 0, thrust), self.source), self.bridge)
        for number, angle in enumerate(fins):
            self.sock.sendto(packet(self.servo, struct.pack("<Bf", number, angle), self.source), self.bridge)

    def run(self) -> None:
        try:
            while not self._over.is_set():
                try:
                    number, source, payload = opened(self.sock.recv(4096))
                except TimeoutError:
                    continue
                assert source == self.source
                self.told.setdefault(number, []).append(payload)
                if number == 50:
                    self.states.append(State(payload))
                    if self.pilot is not None:
                        self.ask(*self.pilot(self.states[-1]))
        except Exception as error:
            self.error = error
