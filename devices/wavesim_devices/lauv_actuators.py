"""Virtual motor controller (BROOM) and servo controller (SCRTv4) of a LAUV, with the LUCL protocol.

The controllers command the propeller and the four fins of a body, so the device joins as the body's pilot. The answers
contain the actual values of the actuators.

Motor: the host commands a fraction of the full voltage, or a speed. The speed is the electrical frequency in units of
100 (command) or 10 (answer) revolutions per minute; the mechanical speed is the electrical frequency divided by the
number of pole pairs. The force of the propeller grows with the square of the speed, and reaches the limits of the
actuator at full speed. The motor stops if no command arrives within its watchdog time.

Servos: the host commands a position between the ends of the servo as a number from 0 to 255. A state contains the
positions in degrees from the lower end, and is sent at the rate that the host requests. Without commands,
a servo keeps its position.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavesim_devices.lucl import BoardConnection, Command, LuclBoard
from wavesim_devices.ports import Bytes
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_sdk.wire.messages import Role

MOTOR = "propeller"
#: actuator that each servo moves, and the sign that converts the servo angle to the fin angle
SERVOS = (("rudder-bottom", -1.0), ("plane-port", -1.0), ("plane-starboard", 1.0), ("rudder-top", 1.0))
STATE, ACTUATE, CONFIGURATION, VOLTAGE_LOOP, CURRENT_LOOP, SPEED_LOOP = range(1, 7)  #: commands of the motor controller
NO_CONTROL, VOLTAGE_CONTROL, SPEED_CONTROL = 0, 1, 3
MAX_REFERENCE = 511
POLE_PAIRS = 12
WATCHDOG_S = 0.1  #: unit of the watchdog in s (assumed)
BATTERY_V, MAX_CURRENT_A, TEMPERATURE = 24.0, 5.0, 25  #: nominal values of the motor controller
#: factory content of the configuration areas
AREAS: Mapping[int, bytes] = {
    CONFIGURATION: struct.pack("<bBBBBB", 0, 30, 85, 75, 100, 50),
    VOLTAGE_LOOP: struct.pack("<HBhhh", 511, 1, 0, 0, 0),
    CURRENT_LOOP: struct.pack("<HBhhh", 152, 2, 0, 0, 0),
    SPEED_LOOP: struct.pack("<HBhhh", 2400, 10, 0, 0, 0),
}
#: commands of the servo controller
SERVO_STATE, CONSTANTS, EFFECTIVE, SET_SERVO, SELF_TEST, FUSES = 1, 2, 4, 9, 11, 12
RATES = (0, 1, 2, 5, 10)  #: rates in Hz at which a host can request the state
EXCURSION_DEG = 45  #: angle in degrees from the centre of a servo's range to each end
RESOLUTION = 255  #: number of position steps between the ends of a servo's range
SELF_TEST_PASSED = 0xF0
IDLE_MA = 20  #: nominal current of a servo in mA


@dataclass(frozen=True)
class Propeller:
    """Conversion between the speed of the motor and the command for the propeller."""

    actuator: ActuatorDescription
    full_rpm: float  #: speed in 1/min at which the force reaches its limit

    def command(self, rpm: float) -> float:
        """Return the command for a speed in 1/min, within the limits of the actuator."""
        a, part = self.actuator, rpm / self.full_rpm
        limit = a.maximum if part >= 0.0 else -a.minimum
        value = rpm / 60.0 if a.unit == "1/s" else limit * part * abs(part)
        return min(max(value, a.minimum), a.maximum)

    def rpm(self, actual: float) -> float:
        """Return the speed in 1/min for the actual value of the actuator."""
        a = self.actuator
        if a.unit == "1/s":
            return actual * 60.0
        limit = a.maximum if actual >= 0.0 else -a.minimum
        return math.copysign(self.full_rpm * math.sqrt(abs(actual) / limit), actual) if limit > 0.0 else 0.0


class MotorController(LuclBoard):
    """Virtual BROOM. ``sign`` is -1 if a negative reference drives the vehicle ahead, as on a LAUV."""

    def __init__(self, propeller: Propeller, sign: float) -> None:
        super().__init__(b"BROOM", (1, 2, 0))
        self.propeller, self.sign = propeller, sign
        self.areas = dict(AREAS)
        self.rpm = self.actual_rpm = 0.0  #: commanded and actual speed; positive drives ahead
        self._now = self._last = 0.0
        self.commands |= {
            STATE: self._state,
            ACTUATE: self._actuate,
            **{number: self._area(number) for number in AREAS},
        }

    def reset(self) -> None:
        """Stop the motor. The configuration areas are kept."""
        self.rpm = 0.0

    def step(self, now: float, actual: float) -> float:
        """Store the actual value of the actuator, and return the next command for the actuator."""
        self._now, self.actual_rpm = now, self.propeller.rpm(actual)
        if now - self._last > self.areas[CONFIGURATION][1] * WATCHDOG_S:
            self.rpm = 0.0
        return self.propeller.command(self.rpm)

    @property
    def _part(self) -> float:
        """Actual speed as a fraction of the full speed."""
        return min(max(self.actual_rpm / self.propeller.full_rpm, -1.0), 1.0)

    def _area(self, number: int) -> Command:
        def access(data: bytes, _: BoardConnection) -> bytes | None:
            if data and len(data) != len(AREAS[number]):
                return None
            self.areas[number] = data or self.areas[number]
            return self.areas[number]

        return access

    def _state(self, data: bytes, _: BoardConnection) -> bytes | None:
        if len(data) > 1:  # the host may send the errors that it wants to clear
            return None
        current = round(MAX_CURRENT_A * self._part**2 * abs(self._part) * MAX_REFERENCE / 10.0)
        volts = bytes((round(5.0 / 0.025), round(BATTERY_V / 0.25)))
        return bytes((0, TEMPERATURE, TEMPERATURE, TEMPERATURE)) + volts + struct.pack(">h", current)

    def _actuate(self, data: bytes, _: BoardConnection) -> bytes | None:
        if len(data) != 2:
            return None
        mode, reference = data[0] >> 6, (data[0] & 0x3) << 8 | data[1]
        reference -= 1024 if reference & 0x200 else 0
        if mode == VOLTAGE_CONTROL:
            rpm = self.propeller.full_rpm * reference / MAX_REFERENCE
        elif mode == SPEED_CONTROL:
            limit = 10.0 * struct.unpack_from("<H", self.areas[SPEED_LOOP])[0] / POLE_PAIRS
            rpm = min(max(100.0 * reference / POLE_PAIRS, -limit), limit)
        elif mode == NO_CONTROL:
            rpm = 0.0
        else:
            return None
        self.rpm, self._last = self.sign * rpm, self._now
        volts = round(BATTERY_V * self.sign * self._part / 0.125)
        current = round(MAX_CURRENT_A * self._part**2 * 32.0)
        electrical = round(self.sign * self.actual_rpm * POLE_PAIRS / 10.0)
        return struct.pack(">hhh", volts, current, min(max(electrical, -32768), 32767))


class ServoController(LuclBoard):
    """Virtual SCRTv4."""

    def __init__(self, actuators: Sequence[ActuatorDescription]) -> None:
        super().__init__(b"SCRT", (4, 0, 0))
        self.actuators = actuators
        self.wanted: list[float | None] = [None] * len(SERVOS)  #: commanded angles in rad; None = no command yet
        self.positions = [0.0] * len(SERVOS)  #: actual angles of the servos in rad
        self.rates: dict[BoardConnection, int] = {}  #: rate in Hz at which each host receives the state
        self._periods: dict[BoardConnection, int] = {}
        self._time_ns = 0
        ends = struct.pack("<4H", *(4 * (EXCURSION_DEG,)))
        self.commands |= {
            SERVO_STATE: self._state,
            CONSTANTS: lambda data, _: bytes((len(SERVOS), 0, 0, 0, 0, 0, RESOLUTION, 0)) if not data else None,
            EFFECTIVE: lambda data, _: bytes(18) + ends + ends if not data else None,
            SET_SERVO: self._set,
            SELF_TEST: lambda data, _: bytes((SELF_TEST_PASSED,)) if not data else None,
            FUSES: lambda data, _: bytes(1) if not data else None,
        }

    def reset(self) -> None:
        """Stop sending states."""
        self.rates.clear()

    def step(self, time_ns: int, actual: Sequence[float], hosts: Sequence[BoardConnection]) -> dict[str, float]:
        """Store the actual angles of the fins, and return the next commands for the fins. Send the state to the hosts
        that requested it.
        """
        self._time_ns = time_ns
        self.positions = [sign * angle for (_, sign), angle in zip(SERVOS, actual, strict=True)]
        for host in list(self.rates):
            if host not in hosts:
                del self.rates[host]
                self._periods.pop(host, None)
            elif rate := self.rates[host]:
                period = time_ns * rate // 10**9
                if self._periods.get(host, -1) < period:
                    self._periods[host] = period
                    host.send_frame(SERVO_STATE, self._states())
        commands = {}
        for angle, (name, sign), a in zip(self.wanted, SERVOS, self.actuators, strict=True):
            if angle is not None:
                commands[name] = min(max(sign * angle, a.minimum), a.maximum)
        return commands

    def _states(self) -> bytes:
        degrees = [round(math.degrees(p)) + EXCURSION_DEG for p in self.positions]
        return b"".join(struct.pack("<6H", 0, 0, min(max(d, 0), 2 * EXCURSION_DEG), 0, 0, IDLE_MA) for d in degrees)

    def _state(self, data: bytes, host: BoardConnection) -> bytes | None:
        if len(data) > 1 or (data and data[0] not in RATES):
            return None
        if data:
            self.rates[host] = data[0]
            self._periods[host] = self._time_ns * data[0] // 10**9  # the answer is the first state
        return self._states()

    def _set(self, data: bytes, _: BoardConnection) -> bytes | None:
        if len(data) != 2 or data[0] >= len(SERVOS):
            return None
        self.wanted[data[0]] = math.radians(2 * EXCURSION_DEG * data[1] / RESOLUTION - EXCURSION_DEG)
        return data


class LauvActuators:
    """The motor controller and the servo controller, each on its own port."""

    def __init__(self, broker: AsyncBroker, full_rpm: float, *, inverted: bool) -> None:
        if broker.join.role != Role.PILOT:
            raise BrokerError("this device commands the actuators, which only a pilot may do: add --pilot")
        known = {a.name: a for a in broker.actuators}
        missing = [name for name in (MOTOR, *(n for n, _ in SERVOS)) if name not in known]
        if missing:
            raise BrokerError(f"'{broker.name}' has no actuator '{missing[0]}'; it has {', '.join(known) or 'none'}")
        self.broker = broker
        self.motor = MotorController(Propeller(known[MOTOR], full_rpm), -1.0 if inverted else 1.0)
        self.servos = ServoController([known[name] for name, _ in SERVOS])
        self.hosts: list[BoardConnection] = []

    @property
    def errors(self) -> int:
        """Number of rejected commands."""
        return self.motor.refused + self.servos.refused

    def connect(self, port: str, send: Bytes) -> BoardConnection:
        """Connect a host to the board that a port belongs to."""
        return BoardConnection(self.motor if port == "motor" else self.servos, send, self.hosts)

    def step(self, step: Step) -> None:
        """Process a new simulation state: command the actuators."""
        actual = step.state.actuation
        commands = self.servos.step(step.state.time_ns, [actual[name] for name, _ in SERVOS], self.hosts)
        commands[MOTOR] = self.motor.step(step.time, actual[MOTOR])
        self.broker.answer(commands)
