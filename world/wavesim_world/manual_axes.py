"""Mappings from an operator's controls to a body: thruster allocation, a force on the hull, or each actuator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wavesim_world.actuators import actuators_of
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.vehicle import Model
from wavesim_world.mixing import Mixer

__all__ = ["DEMANDS", "MAPPINGS", "NEUTRAL", "actuator_commands", "allocated_commands", "default_wrench"]

#: how controls act: through the mixer, as a force and moment on the hull, or on each actuator directly
MAPPINGS = ("allocation", "force", "actuators")
DEMANDS = ("surge", "sway", "heave", "yaw")
NEUTRAL = (0.0, 0.0, 0.0, 0.0)  #: neutral demands: ahead, to starboard, down, turn
_ACCELERATION = 0.2  #: acceleration in m/s2 that the default force gives to the body's mass


def allocated_commands(mixer: Mixer, axes: Sequence[float]) -> dict[str, float]:
    """Return commands by actuator for four demands, each from -1 to 1: ahead, to starboard, down, and turn to
    starboard.

    If a model has no control in heave, it dives by means of its planes. Ballast tanks keep their commands.
    """
    demands = dict(zip(DEMANDS, axes, strict=True))
    if "heave" not in mixer.axes:
        demands["pitch"] = -demands["heave"]
    return mixer(**{axis: demand for axis, demand in demands.items() if axis in mixer.axes})


def actuator_commands(model: Model, rest: Mapping[str, float], fractions: Mapping[str, float]) -> dict[str, float]:
    """Return commands by actuator. ``fractions`` (from -1 to 1, by actuator) replace the commands in ``rest``.

    A fraction of 1 is the maximum of an actuator, and -1 is its minimum. An actuator that works in one direction only
    does not move for negative fractions.
    """
    found = dict(rest)
    for a in actuators_of(model):
        if (part := fractions.get(a.name)) is not None:
            wanted = part * a.maximum if part > 0.0 else -part * min(a.minimum, 0.0)
            found[a.name] = max(a.minimum, min(a.maximum, wanted))
    return found


def default_wrench(model: Model) -> tuple[float, float, float, float]:
    """Return default forces in surge, sway and heave (N) and a default moment in yaw (N m) for a full deflection.

    The forces accelerate the body's mass by 0.2 m/s2. The moment equals that force times a lever arm of a quarter of
    the body's length.
    """
    force = _ACCELERATION * model.mass.value
    return force, force, force, 0.25 * shape_of(model).size[0] * force
