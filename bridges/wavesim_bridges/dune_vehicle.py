"""Conversion between a vehicle and IMC messages: DUNE's actuator commands, instrument values and motion."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from wavesim_bridges import imc
from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.imc_codec import ImcMessage
from wavesim_bridges.servo_outputs import ServoOutput, moved_by
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.arrays import Floats
from wavesim_sdk.frames import euler, rotation, wrap
from wavesim_sdk.wire.items import ActuatorDescription, SensorDescription
from wavesim_sdk.wire.state import Sensors, Value

#: thruster of the `lauv` model
THRUSTERS = {0: ServoOutput("propeller")}
#: fins of the `lauv` model; a positive angle of fins 1 and 2 moves the nose down in IMC, but up in WaVeSim
SERVOS = {
    0: ServoOutput("rudder-bottom"),
    1: ServoOutput("plane-port", -1.0),
    2: ServoOutput("plane-starboard", -1.0),
    3: ServoOutput("rudder-top"),
}

# -- motion ----------------------------------------------------------------------------------------------


class ReferencePoint:
    """Reference point of the reported states on the sea surface: the world's origin or an operator's fix."""

    def __init__(self, world: WorldOrigin) -> None:
        self.world = world
        self.north = self.east = 0.0
        self.move(0.0, 0.0)

    def move(self, north: float, east: float) -> None:
        """Move the reference to a world position, in m."""
        self.north, self.east = north, east
        latitude, longitude = self.world.degrees(north, east)
        self.latitude, self.longitude = math.radians(latitude), math.radians(longitude)

    def offset(self, motion: VehicleMotion) -> tuple[float, float, float]:
        """Return the vehicle's position (north, east, down) relative to the reference."""
        north, east, down = map(float, motion.position)
        return north - self.north, east - self.east, down


def simulated_state(
    motion: VehicleMotion, through: Sequence[float] | Floats, reference: ReferencePoint
) -> imc.SimulatedState:
    """Return the true motion in the form in which DUNE's own physics reports it. ``through`` is the velocity through
    the water in the body frame; for an aircraft, it is the velocity over ground.
    """
    flow = motion.velocity - rotation(motion.attitude) @ through
    numbers = (*reference.offset(motion), *euler(motion.attitude), *through, *motion.rates, *flow)
    return imc.SimulatedState(reference.latitude, reference.longitude, 0.0, *map(float, numbers))


def estimated_state(motion: VehicleMotion, reference: ReferencePoint, flies: bool = False) -> imc.EstimatedState:
    """Return the true motion as a vehicle reports it to its operators. The altitude of an aircraft (``flies``) is its
    height above the sea; other vehicles do not know their altitude.
    """
    place, over_ground = reference.offset(motion), rotation(motion.attitude).T @ motion.velocity
    vertical = max(place[2], 0.0), max(-place[2], 0.0) if flies else -1.0
    numbers = (*place, *euler(motion.attitude), *over_ground, *motion.velocity, *motion.rates, *vertical)
    return imc.EstimatedState(reference.latitude, reference.longitude, 0.0, *map(float, numbers))


# -- actuators -------------------------------------------------------------------------------------------


class ImcActuators:
    """Mapping of IMC's thrusters and servos to the actuators that they move."""

    def __init__(
        self,
        thrusters: Mapping[int, ServoOutput],
        servos: Mapping[int, ServoOutput],
        actuators: Sequence[ActuatorDescription],
    ) -> None:
        self._actuator_of_output: dict[tuple[bool, int], tuple[ActuatorDescription, float]] = {}
        self.neutral: list[float | None] = [None] * len(actuators)
        for thruster, outputs in ((True, thrusters), (False, servos)):
            for number, output in outputs.items():
                a = moved_by(output, actuators)
                self._actuator_of_output[thruster, number] = (a, output.sign)
                self.neutral[a.number] = 0.0

    def command(self, message: ImcMessage) -> tuple[int, float] | None:
        """Return the index of the actuator that a message commands, and the commanded value. Return None if the message
        commands no actuator. Raise MalformedMessage for invalid values.
        """
        match message:
            case imc.SetThrusterActuation(id=number, value=value):
                thruster = True
            case imc.SetServoPosition(id=number, value=value) | imc.ServoPosition(id=number, value=value):
                thruster = False
            case _:
                return None
        if not math.isfinite(value):
            raise MalformedMessage("no number")
        if (thruster, number) not in self._actuator_of_output:
            raise MalformedMessage("no such thruster" if thruster else "no such servo")
        a, sign = self._actuator_of_output[thruster, number]
        value *= sign
        if thruster:
            value *= a.maximum if value >= 0.0 else -a.minimum
        return a.number, min(max(value, a.minimum), a.maximum)


# -- instruments -----------------------------------------------------------------------------------------


def _whole(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _gps(v: Value, at: float) -> ImcMessage | None:
    if not _whole(*v.numbers):
        return None
    date, valid = time.gmtime(at), 0b010111111  # all but vacc and vdop, which WaVeSim's receivers do not provide
    return imc.GpsFix(
        valid,
        0,
        date.tm_year,
        date.tm_mon,
        date.tm_mday,
        at % 86400.0,
        v.latitude,
        v.longitude,
        v.height,
        min(max(round(v.satellites), 0), 255),
        v.cog,
        v.sog,
        v.hdop,
        0.0,
        v.hacc,
        0.0,
    )


def _euler(v: Value, at: float) -> ImcMessage | None:
    heading = wrap(v.heading) if _whole(v.heading) else v.heading
    return imc.EulerAngles(at, v.roll, v.pitch, heading, heading) if _whole(v.roll, v.pitch, heading) else None


def _rates(v: Value, at: float) -> ImcMessage | None:
    return imc.AngularVelocity(at, *v.rates) if _whole(*v.rates) else None


def _acceleration(v: Value, at: float) -> ImcMessage | None:
    return imc.Acceleration(at, *v.force) if _whole(*v.force) else None


def _velocity(kind: Callable[..., ImcMessage], field: str) -> Callable[[Value, float], ImcMessage | None]:
    def convert(v: Value, at: float) -> ImcMessage:
        bits = sum(1 << k for k, x in enumerate(v[field]) if math.isfinite(x))
        return kind(bits, *(x if math.isfinite(x) else 0.0 for x in v[field]))

    return convert


def _distance(field: str) -> Callable[[Value, float], ImcMessage | None]:
    def convert(v: Value, at: float) -> ImcMessage:
        echo = math.isfinite(v[field])
        return imc.Distance(int(echo), (), (), v[field] if echo else 0.0)

    return convert


def _number(kind: Callable[[float], ImcMessage], field: str) -> Callable[[Value, float], ImcMessage | None]:
    return lambda v, at: kind(v[field]) if _whole(v[field]) else None


def _rpm(v: Value, at: float) -> ImcMessage | None:
    """Return the speed message of the first thruster that has a shaft."""
    turning = [r for r in v.numbers if math.isfinite(r)]
    return imc.Rpm(min(max(round(turning[0]), -32768), 32767)) if turning else None


#: for each IMC message, the sensor type that supplies its values, and the conversion; if a message has several rows,
#: the first usable one applies
_MESSAGE_OF_SENSOR: tuple[tuple[type[ImcMessage], str, Callable[[Value, float], ImcMessage | None]], ...] = (
    (imc.GpsFix, "gps", _gps),
    (imc.EulerAngles, "ahrs", _euler),
    (imc.AngularVelocity, "imu", _rates),
    (imc.AngularVelocity, "ahrs", _rates),
    (imc.Acceleration, "imu", _acceleration),
    (imc.GroundVelocity, "dvl", _velocity(imc.GroundVelocity, "bottom")),
    (imc.WaterVelocity, "dvl", _velocity(imc.WaterVelocity, "water")),
    (imc.WaterVelocity, "speedlog", _velocity(imc.WaterVelocity, "v_FB_B")),
    (imc.Distance, "echosounder", _distance("range")),
    (imc.Distance, "dvl", _distance("altitude")),
    (imc.Temperature, "ctd", _number(imc.Temperature, "temperature")),
    (imc.Temperature, "temperature", _number(imc.Temperature, "temperature")),
    (imc.Depth, "pressure", _number(imc.Depth, "depth")),
    (imc.Conductivity, "ctd", _number(imc.Conductivity, "conductivity")),
    (imc.Conductivity, "conductivity", _number(imc.Conductivity, "conductivity")),
    (imc.Rpm, "rpm", _rpm),
)


class ImcInstruments:
    """Messages of a vehicle's instruments. Each message type comes from one instrument, and each value is sent once."""

    def __init__(self, sensors: Iterable[SensorDescription]) -> None:
        names: dict[str, str] = {}
        for s in sensors:
            names.setdefault(s.type, s.name)
        converters: dict[type[ImcMessage], tuple[str, Callable[[Value, float], ImcMessage | None]]] = {}
        for kind, sensor, convert in _MESSAGE_OF_SENSOR:
            if sensor in names:
                converters.setdefault(kind, (names[sensor], convert))
        self.kinds = list(converters)
        self._converters = list(converters.values())
        self._seen: dict[str, int] = {}

    def messages(self, sensors: Sensors, time_ns: int, now: float) -> list[ImcMessage]:
        """Return the new messages. The simulation time ``time_ns`` corresponds to the Unix time ``now``."""
        found = []
        for name, convert in self._converters:
            value = sensors.get(name)
            if value is not None and value.time_ns != self._seen.get(name):
                message = convert(value, now - 1e-9 * (time_ns - value.time_ns))
                if message is not None:
                    found.append(message)
        self._seen.update((name, value.time_ns) for name, value in sensors.items())
        return found
