"""Actuators that messages identify by name, as in Panisim: `cs_1` is the first control surface in deg, `th_1` the first
thruster in RPM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.ros2.message_types import ACTUATOR, Message
from wavesim_bridges.ros2.mounted_instrument import MessageFactory
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.actuators import Actuator, ActuatorKind
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frames import euler
from wavesim_sdk.wire.items import ActuatorDescription

__all__ = ["ACTUATOR", "NamedCommands", "message", "vessel_state"]
PREFIXES = {ActuatorKind.FIN: "cs", ActuatorKind.THRUSTER: "th"}
#: factors that convert WaVeSim's units to the units in messages (deg, RPM)
_UNITS = {"rad": math.degrees(1.0), "1/s": 60.0}
_RPM = 2.0 * math.pi / 60.0  #: rad/s


class _Numbered(Protocol):
    """Actuator or actuator description that has a number."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> int: ...


def names_of(actuators: Sequence[_Numbered]) -> list[str]:
    """Return the name of each actuator in messages. Numbers start at 1. Actuators that are neither control surfaces
    nor thrusters keep their own names.
    """
    counts, found = dict.fromkeys(PREFIXES, 0), []
    for a in actuators:
        kind = ActuatorKind(a.kind)
        if kind in counts:
            counts[kind] += 1
            found.append(f"{PREFIXES[kind]}_{counts[kind]}")
        else:
            found.append(a.name)
    return found


class NamedCommands:
    """Commands in `Actuator` messages. A thruster with a command in N needs ``rotor_constant``, in N/(rad/s)2."""

    def __init__(self, actuators: Sequence[ActuatorDescription], rotor_constant: float, file: str) -> None:
        self._constant = rotor_constant
        self._known: dict[str, ActuatorDescription] = {a.name: a for a in actuators}
        for name, a in zip(names_of(actuators), actuators, strict=True):
            if a.kind == ActuatorKind.THRUSTER and a.unit == "N" and rotor_constant <= 0.0:
                raise WaveSimError(
                    f"{file}: '{a.name}' is commanded in N, but this layout uses RPM: add a rotor_constant above 0 to [commands] named"
                )
            self._known[name] = a

    def values(self, message: Message) -> dict[int, float]:
        """Return the commands by actuator, limited to the actuators' ranges. Raises MalformedMessage if a name is
        unknown, a value is not finite, or the numbers of names and values differ.
        """
        names, values = message.actuator_names, message.actuator_values
        if len(names) != len(values):
            raise MalformedMessage(f"{len(values)} numbers for {len(names)} names")
        if strange := [name for name in names if name not in self._known]:
            raise MalformedMessage(f"no actuator named '{strange[0][:32]}'")
        if not all(map(math.isfinite, values)):
            raise MalformedMessage("no number")
        return {
            a.number: self._value(a, float(u)) for a, u in zip(map(self._known.get, names), values, strict=True) if a
        }

    def _value(self, a: ActuatorDescription, u: float) -> float:
        if a.kind == ActuatorKind.THRUSTER and a.unit == "N":
            u *= self._constant * _RPM * abs(_RPM * u)
        else:
            u /= _UNITS.get(a.unit, 1.0)
        return min(max(u, a.minimum), a.maximum)


def message(make: MessageFactory, actuators: Sequence[Actuator], values: Sequence[float], stamp: int) -> Message:
    """Return the actual values as an `Actuator` message: angles in deg, shaft speeds in RPM, other values in WaVeSim's
    unit.
    """
    found = [_UNITS.get(a.actual_unit, 1.0) * v for a, v in zip(actuators, values, strict=False)]
    given = {"header": make.header(stamp, ""), "actuator_names": names_of(actuators)[: len(found)]}
    given |= {"actuator_values": np.array(found, float), "covariance": np.zeros(len(found))}
    fields = make.types.fields(ACTUATOR)
    return make.types.new(ACTUATOR)(*(given[name] for name in fields))


def vessel_state(
    make: MessageFactory,
    motion: VehicleMotion,
    velocity: Sequence[float],
    actuators: Sequence[Actuator],
    values: Sequence[float],
) -> Message:
    """Return the true state as a Float64MultiArray: u, v, w, p, q, r in the body frame, x, y, z (NED), roll, pitch, yaw
    (rad), angles of the control surfaces (rad), shaft speeds (RPM) or thrusts (N) of the thrusters.
    """
    by_kind: Mapping[int, list[float]] = {kind: [] for kind in PREFIXES}
    for a, value in zip(actuators, values, strict=False):
        if a.kind in by_kind:
            by_kind[a.kind].append(60.0 * value if a.actual_unit == "1/s" else value)
    surfaces, thrusters = (by_kind[kind] for kind in PREFIXES)
    angles: Floats = euler(motion.attitude)
    numbers = [*velocity, *motion.rates, *motion.position, *angles, *surfaces, *thrusters]
    labels = [("velocity", 3), ("rates", 3), ("position", 3), ("euler", 3)]
    labels += [(name, len(part)) for name, part in (("control_surfaces", surfaces), ("thrusters", thrusters)) if part]
    return make.numbers([float(x) for x in numbers], labels)
