"""A stand-in for ArduPilot's side of the JSON interface, written from its description: it paces itself by our timestamps,
reads our text as ArduPilot does (by searching for names), mixes by ArduSub's table, and holds depth and heading."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Callable

from tests.bridges.standin import StandIn

#: ArduSub: forward, lateral, yaw, throttle, roll, pitch of each motor
VECTORED = (
    (-1, 1, 1, 0, 0, 0), (-1, -1, -1, 0, 0, 0), (1, 1, -1, 0, 0, 0), (1, -1, 1, 0, 0, 0), (0, 0, 0, -1, 1, 0), (0, 0, 0, -1, -1, 0),
)  # fmt: skip
VECTORED_6DOF = (
    *VECTORED[:4], (0, 0, 0, -1, 1, -1), (0, 0, 0, -1, -1, -1), (0, 0, 0, -1, 1, 1), (0, 0, 0, -1, -1, 1),
)  # fmt: skip


class State:
    """What ArduPilot finds in our text: names within their section, the numbers right behind them."""

    def __init__(self, text: str) -> None:
        assert text.startswith("\n{") and text.endswith("}\n")
        self.text = text
        self.time = float(self._after("", "timestamp"))
        self.gyro, self.force = self._vector("imu", "gyro"), self._vector("imu", "accel_body")
        self.position, self.velocity = self._vector("", "position"), self._vector("", "velocity")
        w, x, y, z = self._vector("", "quaternion")
        self.roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
        self.pitch = math.asin(max(-1.0, min(1.0, 2 * (w * y - z * x))))
        self.yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

    def _after(self, section: str, name: str) -> str:
        at = self.text.index(section) + len(section) if section else 0
        at = self.text.index(name, at) + len(name)
        return self.text[self.text.index(":", at) + 1 :].split(",")[0].rstrip("}\n")

    def _vector(self, section: str, name: str) -> tuple[float, ...]:
        at = self.text.index(section) + len(section) if section else 0
        at = self.text.index(name, at) + len(name)
        start = self.text.index(":", at) + 1
        assert self.text[start] == "[", "no blank before the bracket"
        return tuple(map(float, self.text[start + 1 : self.text.index("]", start)].split(",")))


Pilot = Callable[[State], list[float]]  #: outputs -1..1 by number


def rov(table: tuple[tuple[int, ...], ...], depth: float, heading: float = 0.0, forward: float = 0.0) -> Pilot:
    """Holds depth, heading, roll and pitch."""

    def fly(s: State) -> list[float]:
        turn = (heading - s.yaw + math.pi) % (2 * math.pi) - math.pi
        throttle = 1.2 * (s.position[2] - depth) + 1.0 * s.velocity[2]
        wish = (
            forward,
            0.0,
            0.8 * turn - 0.4 * s.gyro[2],
            throttle,
            -0.3 * s.roll - 0.1 * s.gyro[0],
            -0.3 * s.pitch - 0.1 * s.gyro[1],
        )
        return [max(-1.0, min(1.0, sum(f * v for f, v in zip(factors, wish, strict=True)))) for factors in table]

    return fly


def skid(north: float, east: float) -> Pilot:
    """Steers a boat of two thrusters to a point, and stops there."""

    def fly(s: State) -> list[float]:
        n, e = north - s.position[0], east - s.position[1]
        turn = (math.atan2(e, n) - s.yaw + math.pi) % (2 * math.pi) - math.pi
        ahead = min(0.6, 0.15 * math.hypot(n, e)) * max(math.cos(turn), 0.0)
        steer = max(-0.4, min(0.4, 0.6 * turn - 0.6 * s.gyro[2])) if math.hypot(n, e) > 1.0 else 0.0
        return [ahead + steer, 0.0, ahead - steer]

    return fly


class Autopilot(StandIn):
    """Flies until its clock, which is ours, has gone ``seconds`` on, or until it is told to ``die``."""

    def __init__(self, pilot: Pilot, seconds: float, instance: int = 0, magic: int = 18458) -> None:
        super().__init__()
        self.pilot, self.seconds, self.magic = pilot, seconds, magic
        self.address = ("127.0.0.1", 9002 + 10 * instance)
        self.states: list[State] = []
        self.steps: list[float] = []

    def fly(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0.5)
            count, outputs = 0, [0.0] * 6
            while not self.over.is_set() and (
                not self.states or self.states[-1].time < self.states[0].time + self.seconds
            ):
                channels = 16 if self.magic == 18458 else 32
                pwm = [round(1500 + 400 * u) for u in outputs] + [0] * (channels - len(outputs))
                sock.sendto(struct.pack(f"<HHI{channels}H", self.magic, 1200, count, *pwm), self.address)
                try:
                    state = State(sock.recv(4096).decode())
                except TimeoutError:
                    continue  # the same frame again
                if self.states:
                    self.steps.append(state.time - self.states[-1].time)
                self.states.append(state)
                outputs = self.pilot(state)
                count += 1
