"""Commands that maintain a surge speed. They are found by solving the model's equation of motion for straight, level
motion in still water.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from wavesim_sdk.algebra import dot, matvec, norm, pseudo_inverse, vecmat
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import effort
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.fleet import ActuatorState, VehicleType
from wavesim_server.dynamics.single_body import SingleBody
from wavesim_server.dynamics.sizes import LANES

MIN_FORWARD_SHARE = 0.3  #: minimum fraction of a thruster's force that acts along surge; other thrusters are not used
#: maximum remaining lateral force as a fraction of the thrust; for moments, as a fraction of the thrust times half the
#: length
MAX_IMBALANCE = 0.02
SEARCH_POINTS = 64  #: number of search points for a command, from zero to its limit
REFINEMENT_POINTS = 8  #: number of points inside a search interval that are tested each time it is narrowed
STRAIGHT_DOFS = [0, 1, 5]  #: degrees of freedom of straight motion: surge, sway, yaw
NEAR = 1e-9  #: relative tolerance of the thrust in the search for a command


class TowedModel:
    """Forces from a model's actuators and hull at a constant surge speed and a level attitude."""

    def __init__(self, form: VehicleType, speed: float) -> None:
        self.vehicle_type, self.actuator_state, self._body = form, ActuatorState(form), SingleBody(form)
        self._state = np.zeros(B.RIGID_ROWS)
        self._state[B.QW], self._state[B.NU] = 1.0, speed
        # fully submerged; heave, roll and pitch are ignored
        self._state[B.PZ] = 100.0 * form.compiled.params[P.BOUNDING_RADIUS]

    def forces(self, actual: Floats) -> tuple[Floats, Floats]:
        """Return the actuator forces and the hull forces, each of shape (6, lanes), for actuator values of shape
        (SLOTS, lanes).
        """
        out = self._body.efforts(np.tile(self._state, (LANES, 1)), actual.T)
        of_actuators, of_hull = (out[:, k : k + 6].T.copy() for k in (effort.ACTUATORS, effort.DRAG))
        return of_actuators, of_hull

    def at_rest(self) -> Floats:
        """Return the values of the actuators before any command, in all lanes."""
        return np.tile(self._body.rest_values[:, None], LANES)

    @functools.cached_property
    def _idle(self) -> Floats:
        return self.forces(self.at_rest())[0]

    def thrusts(self, k: int, commands: Floats) -> Floats:
        """Return the thrust of thruster k for each command, along the thruster's column of the allocation matrix."""
        column = self.column(k)[:3]
        found = []
        for first in range(0, len(commands), LANES):
            some = commands[first : first + LANES]
            actual = self.at_rest()
            for l, command in enumerate(some):
                self.actuator_state.commands[k] = float(command)
                actual[k, l] = self.actuator_state.setpoint(k)[1]
            found.append((vecmat(column, (self.forces(actual)[0] - self._idle)[:3]) / dot(column, column))[: len(some)])
        return np.concatenate(found)

    def column(self, k: int) -> Floats:
        """Return the force and moment that a unit thrust produces."""
        return self.vehicle_type.compiled.params[P.THRUSTER_WRENCH + 6 * k : P.THRUSTER_WRENCH + 6 * k + 6]


def trim_commands(form: VehicleType, speed: float) -> list[float | None]:
    """Return the commands with which a body maintains a surge speed through the water, in the order of the actuators.
    Raises ValueError if the body cannot maintain it.
    """
    name = form.model.name
    if speed == 0.0:
        return []
    towed = TowedModel(form, speed)
    columns = [towed.column(k) for k in range(len(form.model.thruster))]
    pushing = [k for k, c in enumerate(columns) if abs(c[0]) > MIN_FORWARD_SHARE * max(float(norm(c[:3])), 1e-300)]
    if not pushing:
        raise ValueError(f"model '{name}' cannot maintain a speed: it has no forward thruster")
    idle, drag = towed.forces(towed.at_rest())
    wanted = -(idle + drag)[STRAIGHT_DOFS, 0]
    matrix = np.array([columns[k][STRAIGHT_DOFS] for k in pushing]).T
    scale = np.array([1.0, 1.0, 2.0 / form.compiled.params[P.BOUNDING_RADIUS]])
    thrust = matvec(pseudo_inverse(matrix * scale[:, None], 1e-9)[0], wanted * scale)
    left = np.abs((matvec(matrix, thrust) - wanted) * scale)
    if left.max() > MAX_IMBALANCE * abs(wanted[0]) + 1e-9:
        raise ValueError(
            f"model '{name}' cannot maintain a straight course at {speed:g} m/s with its thrusters alone, because they would turn the vehicle"
        )
    ahead = dot(matrix[0], thrust)
    thrust *= wanted[0] / ahead if ahead else 1.0
    commands: list[float | None] = [None] * len(form.actuators)
    for k, size in zip(pushing, thrust, strict=True):
        found = _least_command(towed, k, float(size))
        if found is None:
            actuator = form.actuators[k]
            most = towed.thrusts(k, np.array([actuator.minimum, actuator.maximum]))
            raise ValueError(
                f"model '{name}' cannot maintain {speed:g} m/s: '{actuator.name}' needs a thrust of {size:.4g} N, but its range at that speed is "
                f"{most[0]:.4g} to {most[1]:.4g} N"
            )
        commands[k] = found
    return commands


def _least_command(towed: TowedModel, k: int, thrust: float) -> float | None:
    """Return the smallest command with which a thruster produces a given thrust; None if there is no such command
    within the thruster's limits.
    """
    actuator = towed.vehicle_type.actuators[k]
    if abs(thrust) < 1e-12:
        return 0.0
    for limit in (actuator.maximum, actuator.minimum):
        grid = np.linspace(0.0, limit, SEARCH_POINTS + 1)
        excess = (towed.thrusts(k, grid) - thrust) * math.copysign(1.0, thrust)
        reached = np.flatnonzero(excess[1:] >= 0.0)
        if not len(reached):
            continue
        low, high = float(grid[reached[0]]), float(grid[reached[0] + 1])
        while abs(high - low) > 1e-14 * max(abs(high), 1e-3):
            parts = np.linspace(low, high, REFINEMENT_POINTS + 2)
            enough = (towed.thrusts(k, parts[1:-1]) - thrust) * math.copysign(1.0, thrust) >= 0.0
            j = int(np.argmax(enough)) if enough.any() else REFINEMENT_POINTS
            if (low, high) == (parts[j], parts[j + 1]):
                break
            low, high = float(parts[j]), float(parts[j + 1])
        # otherwise the thrust jumps here: a jet that idles
        if abs(towed.thrusts(k, np.array([high]))[0] - thrust) <= NEAR * abs(thrust):
            return high
    return None
