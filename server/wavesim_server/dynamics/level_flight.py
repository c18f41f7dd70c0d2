"""Trim of an aircraft: the attitude and the commands with which it maintains a speed in straight, level flight.

The solver uses the compiled equation of motion. It finds the angles of attack and roll, the shaft speed and the angles
of the control surfaces for which all six forces and moments vanish. With fewer than three control surfaces, the
aircraft also sideslips.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.algebra import matvec, pseudo_inverse
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, sin_cos
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import effort
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.fleet import VehicleType
from wavesim_server.dynamics.single_body import SingleBody
from wavesim_server.dynamics.sizes import SLOT_FIN, SLOTS

ITERATIONS = 50  #: maximum number of Newton iterations
MAX_ANGLE = 0.2  #: maximum change of an angle in rad in one iteration
CHANGE = 1e-6  #: step of an unknown in the numerical derivative, in rad or 1/s
#: remaining force as a fraction of the weight, below which the flight is in equilibrium; for moments, as a fraction of
#: the weight times the span
TOLERANCE = 1e-10
ALPHA, BETA, ROLL, SHAFT, FIRST_FIN = range(5)  #: indices of the unknowns of the trim


class Trim(NamedTuple):
    """Straight, level flight in equilibrium."""

    alpha: float  #: angle of attack in rad
    beta: float  #: sideslip angle in rad
    attitude: tuple[float, float]  #: roll and pitch in rad
    velocity: tuple[float, float, float]  #: velocity through the air in B, m/s
    commands: list[float]  #: commands, in the order of the actuators


class Flight:
    """Forces and moments on an aircraft in straight, level flight at a speed in m/s."""

    def __init__(self, form: VehicleType, speed: float) -> None:
        self.form, self.speed, self._body = form, speed, SingleBody(form)
        self.thrusters, self.fins = len(form.model.thruster), len(form.model.fin)

    def motion(self, x: Floats) -> tuple[tuple[float, float], tuple[float, float, float]]:
        """Return the roll and pitch angles and the velocity in B that correspond to the unknowns."""
        (sa, ca), (sb, cb), (sr, cr) = (sin_cos(float(x[k])) for k in (ALPHA, BETA, ROLL))
        pitch = float(atan2(sb * sr + cb * sa * cr, ca * cb))
        return (float(x[ROLL]), pitch), (self.speed * ca * cb, self.speed * sb, self.speed * sa * cb)

    def forces(self, unknowns: Floats) -> Floats:
        """Return the sum of all forces and moments (n, 6) for n sets of unknowns (n, unknowns)."""
        states, actual = np.zeros((len(unknowns), B.RIGID_ROWS)), np.zeros((len(unknowns), SLOTS))
        states[:, B.PZ] = -1000.0
        for k, x in enumerate(unknowns):
            (roll, pitch), states[k, B.NU : B.NU + 3] = self.motion(x)
            states[k, B.QW : B.QW + 4] = frames.quaternion(roll, pitch, 0.0)
        actual[:, : self.thrusters] = unknowns[:, SHAFT, None]
        actual[:, SLOT_FIN : SLOT_FIN + self.fins] = unknowns[:, FIRST_FIN:]
        return self._body.efforts(states, actual)[:, effort.TOTAL : effort.TOTAL + 6]


def find_trim(form: VehicleType, speed: float) -> Trim:
    """Return the trim of an aircraft at a speed through the air in m/s. Raises ValueError if it cannot maintain this
    speed.
    """
    name, p = form.model.name, form.compiled.params
    if not form.model.thruster:
        raise ValueError(f"aircraft '{name}' cannot maintain a speed: it has no thruster")
    flight = Flight(form, speed)
    x = np.zeros(FIRST_FIN + flight.fins)
    x[ALPHA], x[SHAFT] = 0.05, form.model.thruster[0].maximum
    free = [k for k in range(len(x)) if k != BETA or flight.fins < 3]
    scale = 1.0 / (p[P.WEIGHT] * np.array([1.0, 1.0, 1.0, p[P.AIR_SPAN], p[P.AIR_SPAN], p[P.AIR_SPAN]]))
    steps = CHANGE * np.eye(len(x))[free]
    size = np.where(
        np.arange(len(x)) == SHAFT, x[SHAFT], 1.0
    )  # an angle of 1 rad and the full shaft speed weigh equally
    for _ in range(ITERATIONS):
        all_forces = flight.forces(np.concatenate([x[None], x + steps, x - steps])) * scale
        left, n = all_forces[0], len(free)
        if not np.isfinite(left).all():
            break
        if np.abs(left).max() < TOLERANCE:
            return _as_trim(flight, x)
        slopes = ((all_forces[1 : 1 + n] - all_forces[1 + n :]) / (2.0 * CHANGE)).T
        change = -matvec(pseudo_inverse(slopes * size[free], 1e-7)[0], left) * size[free]
        before = x[SHAFT]
        angles = [k for k, which in enumerate(free) if which != SHAFT]
        x[free] += change * min(1.0, MAX_ANGLE / max(float(np.abs(change[angles]).max()), 1e-300))
        x[SHAFT] = max(x[SHAFT], 0.9 * before)  # a slow propeller has no thrust, and its slope does not lead back
    raise ValueError(f"aircraft '{name}' has no straight, level flight at {speed:g} m/s; try another speed")


def _as_trim(flight: Flight, x: Floats) -> Trim:
    """Return the solution as a trim. Raises ValueError if an actuator would exceed its limits."""
    attitude, velocity = flight.motion(x)
    model, speed = flight.form.model, flight.speed
    commands = [float(x[SHAFT])] * flight.thrusters + [float(a) for a in x[FIRST_FIN:]]
    for actuator, command in zip(flight.form.actuators, commands, strict=True):
        if not actuator.minimum <= command <= actuator.maximum:
            raise ValueError(
                f"aircraft '{model.name}' cannot maintain {speed:g} m/s: '{actuator.name}' needs {command:.4g} {actuator.unit}, "
                f"but its range is {actuator.minimum:.4g} to {actuator.maximum:.4g} {actuator.unit}"
            )
    if x[ALPHA] > flight.form.compiled.params[P.AIR_STALL]:
        raise ValueError(f"aircraft '{model.name}' stalls at {speed:g} m/s; use a higher speed")
    return Trim(float(x[ALPHA]), float(x[BETA]), attitude, velocity, commands)


def stall_speed(form: VehicleType) -> float:
    """Return the speed in m/s at which the lift at the stall angle equals the weight."""
    p = form.compiled.params
    lift = 0.5 * (p[P.AIR_LIFT] + p[P.AIR_LIFT + 1] * p[P.AIR_STALL])  # half of the wing's lift remains at this angle
    return float(math.sqrt(p[P.WEIGHT] / (p[P.AIR_AREA] * lift)))
