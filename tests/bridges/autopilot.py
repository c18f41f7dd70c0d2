"""A stand-in for ArduPilot's side of the JSON interface, written from its description: it paces itself by our timestamps,
reads our text as ArduPilot does (by searching for names), mixes by ArduSub's table, and holds depth and heading.

Depth comes from a simulated barometer and goes through a cascade of position, velocity and acceleration, both with ArduSub's
constants and parameters, so that the parameter files of the bridge matter here as they do there."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Callable, Mapping

from tests.bridges.standin import StandIn
from wavesim_bridges.ardupilot import parameter_files, parameters

#: ArduSub: forward, lateral, yaw, throttle, roll, pitch of each motor
VECTORED = (
    (-1, 1, 1, 0, 0, 0),
    (-1, -1, -1, 0, 0, 0),
    (1, 1, -1, 0, 0, 0),
    (1, -1, 1, 0, 0, 0),
    (0, 0, 0, -1, 1, 0),
    (0, 0, 0, -1, -1, 0),
)
VECTORED_6DOF = (
    *VECTORED[:4],
    (0, 0, 0, -1, 1, -1),
    (0, 0, 0, -1, -1, -1),
    (0, 0, 0, -1, 1, 1),
    (0, 0, 0, -1, -1, 1),
)


#: what ArduSub has without any file, and what its `sub.parm` sets of it
DEFAULTS = {
    "BARO_SPEC_GRAV": 1.0,
    "PSC_POSZ_P": 3.0,
    "PSC_VELZ_P": 8.0,
    "PSC_ACCZ_P": 0.5,
    "PSC_ACCZ_I": 0.1,
    "PSC_ACCZ_FF": 0.0,
    "FRAME_CONFIG": 1.0,
    "SERVO8_FUNCTION": 40.0,
}
SUB_PARM = {**DEFAULTS, "PSC_ACCZ_P": 2.0, "PSC_ACCZ_I": 4.0, "PSC_ACCZ_FF": 0.75, "SERVO8_FUNCTION": 7.0}


def shipped(*names: str) -> dict[str, float]:
    """Parameters of an ArduSub that was started with `sub.parm` and these files of ours."""
    files = parameter_files()
    return SUB_PARM | {p: float(value) for name in names for p, value, _ in parameters(files[name])}


def reported_depth(depth: float, parm: Mapping[str, float]) -> float:
    """What ArduSub's barometer makes of a true depth (m), calibrated at the surface: it simulates the pressure of sea water, and
    reads it by a gravity of its own and the specific gravity that it was given."""
    pressure, at_surface = 101325.0 + 1024.0 * 9.80665 * depth, 101325.0
    return (pressure - at_surface) / 9800.0 / parm["BARO_SPEC_GRAV"]


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


class Lowpass:
    """A filter of the first order."""

    def __init__(self, frequency: float) -> None:
        self.tau, self.value = 1.0 / (2 * math.pi * frequency), 0.0

    def __call__(self, value: float, dt: float) -> float:
        self.value += dt / (dt + self.tau) * (value - self.value)
        return self.value


class DepthControl:
    """ArduSub's: depth error -> climb rate -> acceleration -> throttle (-1..1, positive is up)."""

    FASTEST, HARDEST = 2.0, 2.0  #: m/s, m/s2: `PILOT_SPEED_UP`, `PILOT_ACCEL_Z`

    def __init__(self, parm: Mapping[str, float]) -> None:
        self.parm, self.time, self.integral = parm, -1.0, 0.0
        self.velocity_error, self.acceleration_error, self.throttle = Lowpass(5.0), Lowpass(20.0), Lowpass(2.0)

    def __call__(self, s: State, depth: float) -> float:
        parm, dt = self.parm, min(max(s.time - self.time, 0.0), 0.01) if self.time >= 0.0 else 0.0
        self.time = s.time
        up = reported_depth(s.position[2], parm) - depth
        near = self.HARDEST / parm["PSC_POSZ_P"] ** 2  # beyond, such a speed as can still be braked
        speed = parm["PSC_POSZ_P"] * up
        if abs(up) > near:
            speed = math.copysign(math.sqrt(2 * self.HARDEST * (abs(up) - near / 2)), up)
        speed = max(-self.FASTEST, min(self.FASTEST, speed))
        wanted = parm["PSC_VELZ_P"] * self.velocity_error(speed + s.velocity[2], dt)
        down = (-math.sin(s.pitch), math.cos(s.pitch) * math.sin(s.roll), math.cos(s.pitch) * math.cos(s.roll))
        felt = -(sum(d * f for d, f in zip(down, s.force, strict=True)) + 9.80665)
        error = self.acceleration_error(wanted - felt, dt)
        if abs(self.throttle.value) < 0.5 or error * self.integral < 0.0:
            self.integral = max(-0.5, min(0.5, self.integral + 0.1 * parm["PSC_ACCZ_I"] * error * dt))
        out = 0.1 * (parm["PSC_ACCZ_P"] * error + parm["PSC_ACCZ_FF"] * wanted) + self.integral
        return 2.0 * self.throttle(max(-0.5, min(0.5, out)), dt)


def rov(
    table: tuple[tuple[int, ...], ...],
    depth: float,
    heading: float = 0.0,
    forward: float = 0.0,
    parm: Mapping[str, float] | None = None,
) -> Pilot:
    """Holds the depth that it reports, heading, roll and pitch. Without ``parm`` it was started with our file of a BlueROV2."""
    throttle = DepthControl(shipped("bluerov2") if parm is None else parm)

    def fly(s: State) -> list[float]:
        turn = (heading - s.yaw + math.pi) % (2 * math.pi) - math.pi
        wish = (
            forward,
            0.0,
            0.8 * turn - 0.4 * s.gyro[2],
            throttle(s, depth),
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
    """Flies until its clock, which is ours, has gone ``seconds`` on, or until ``die`` is called."""

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
