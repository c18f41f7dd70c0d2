"""The actuators of a vehicle model, in the order in which the server numbers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavesim_sdk.actuators import FIRST_SLOT, Actuator, ActuatorKind

if TYPE_CHECKING:
    from wavesim_world.config.actuators import Thruster
    from wavesim_world.config.vehicle import Model


def actuators_of(model: Model) -> tuple[Actuator, ...]:
    """Return the actuators of a model, in the order of the model."""
    found = [_thruster(t, k) for k, t in enumerate(model.thruster)]
    found += [_make_actuator(f.name, ActuatorKind.FIN, k, "rad", -f.limit, f.limit) for k, f in enumerate(model.fin)]
    for k, t in enumerate(model.thruster):
        if (s := t.swivel) is not None:
            found.append(_make_actuator(f"{t.name}-angle", ActuatorKind.ANGLE, k, "rad", s.minimum, s.maximum))
    for k, t in enumerate(model.thruster):
        if (d := t.deflector) is not None:
            found.append(_make_actuator(f"{t.name}-deflector", ActuatorKind.DEFLECTOR, k, "", d.minimum, d.maximum))
    found += [
        _make_actuator(b.name, ActuatorKind.BALLAST, k, "kg", b.minimum, b.maximum) for k, b in enumerate(model.ballast)
    ]
    tanks = len(model.ballast)
    found += [
        _make_actuator(a.name, ActuatorKind.OTHER, tanks + k, a.unit, a.minimum, a.maximum)
        for k, a in enumerate(model.actuator)
    ]
    return tuple(found)


def _make_actuator(name: str, kind: ActuatorKind, number: int, unit: str, minimum: float, maximum: float) -> Actuator:
    return Actuator(name, kind, unit, minimum, maximum, FIRST_SLOT[kind] + number, unit)


def _thruster(t: Thruster, number: int) -> Actuator:
    actual = "N" if t.law == "force" else "1/s"
    unit = actual if tuple(t.motor) == (0.0, 1.0) else ""  # a motor law maps a command in another unit to it
    return Actuator(t.name, ActuatorKind.THRUSTER, unit, t.minimum, t.maximum, number, actual)
