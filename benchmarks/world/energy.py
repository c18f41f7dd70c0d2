"""Bounds of the motion of a body from its configured matrices, independent of the compiled equation of motion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_server import Lab
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_world.config import Model
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.validation import matrix

TRIALS = 400  #: number of random velocities with which the drag is tested
SPEEDS = (1e-3, 1.0, 30.0)  #: their magnitudes in m/s


def always_brakes(model: Model) -> bool:
    """Return whether drag and body lift take energy from the body at every tested velocity, in the model's own scale.

    False also for terms whose power this module does not compute.
    """
    if (
        model.derivatives
        or model.term
        or model.memory
        or model.radiation
        or model.coriolis_without
        or not model.coriolis
    ):
        return False
    if model.coriolis_added == "plane" or model.body_lift or model.hull is not None:
        return False
    c = model.cross_flow
    if c is not None and (c.still or c.yaw not in (-1.0, c.sway) or c.pitch not in (-1.0, c.heave)):
        return False
    linear, square, lift = (matrix(getattr(model, k)) for k in ("linear_drag", "quadratic_drag", "lift"))
    r = np.random.default_rng(1)
    length = shape_of(model).bounding_radius
    for speed in SPEEDS:
        nu = r.normal(size=(TRIALS, 6)) * r.choice((0.01, 1.0), size=(TRIALS, 6)) * speed
        nu[:, 3:] /= length
        size = np.abs(nu)
        force = nu @ linear.T + (size * nu) @ square.T + size[:, :1] * (nu @ lift.T)
        power = (nu * force).sum(axis=1)
        scale = (size * np.abs(force)).sum(axis=1)
        if (power < -1e-12 * scale).any():
            return False
    return True


@dataclass
class Body:
    """The inertia and the loads of one body."""

    name: str
    model: Model
    row: int
    inertia: Floats
    root: Floats  #: square root L with inertia = L L'
    inverse_root: Floats
    weight: float
    weight_moment: Floats
    buoyancy: float
    buoyancy_moment: Floats
    radius: float
    brakes: bool
    thrust: float  #: bound of the norm of the actuators' loads in the metric of the inertia; inf = unknown

    @classmethod
    def of(cls, lab: Lab, name: str) -> Body:
        """Read a body from the engine (its inertia and weight) and from its model (all else)."""
        row = lab.row(name)
        c, model = lab.fleet.coefficients(row), lab.occupants[row].model
        total = c[P.TOTAL_INERTIA : P.TOTAL_INERTIA + 36].reshape(6, 6)
        total = np.asarray(0.5 * (total + total.T), dtype=np.float64)
        root = np.asarray(np.linalg.cholesky(total), dtype=np.float64)
        inverse = np.asarray(np.linalg.inv(root), dtype=np.float64)
        full = float(c[P.FULL_BUOYANCY])
        return cls(
            name, model, row, total, root, inverse,
            float(c[P.WEIGHT]), c[P.WEIGHT_MOMENT : P.WEIGHT_MOMENT + 3],
            full, full * c[P.FULL_BUOYANCY_CENTRE : P.FULL_BUOYANCY_CENTRE + 3],
            shape_of(model).bounding_radius, always_brakes(model), _thrust(model, inverse),
        )  # fmt: skip

    @property
    def passive(self) -> bool:
        """Whether nothing supplies energy to the body in still water, without commands, far below the surface."""
        # a stalled fin also cancels its share of the hull's lift, so its power depends on the fins and the hull together
        fins = any(f.inflow or f.law != "linear" or f.stall for f in self.model.fin)
        return self.brakes and not fins and self.model.restoring is None and not self.model.ballast

    def motion(self, b: Floats) -> float:
        """Return the norm of the velocity through the water in the metric of the inertia: sqrt(2 E)."""
        nu = b[B.NU : B.NU + 6].copy()
        nu[:3] -= frames.rotation(b[B.QW : B.QW + 4]).T @ b[B.V_WF_W : B.V_WF_W + 3]
        return float(np.linalg.norm(self.root.T @ nu))

    def energy(self, b: Floats) -> tuple[float, float]:
        """Return the kinetic and potential energy of a submerged body, and the scale of their rounding errors."""
        down = frames.rotation(b[B.QW : B.QW + 4])[2]
        net, moment = self.weight - self.buoyancy, self.weight_moment - self.buoyancy_moment
        kinetic = 0.5 * self.motion(b) ** 2
        potential = -net * b[B.PZ] - float(moment @ down)
        scale = kinetic + abs(net * b[B.PZ]) + float(np.abs(moment).sum())
        return kinetic + potential, scale

    def load(self, gravity_share: float, restoring: float) -> float:
        """Return a bound of all loads but drag and environment, in the metric of the inertia.

        ``gravity_share`` is the largest acceleration of the water per gravity; ``restoring`` the largest distance from
        the equilibrium depth.
        """
        weight = (self.weight + self.buoyancy) * (1.0 + gravity_share)
        arms = np.linalg.norm(self.weight_moment) + np.linalg.norm(self.buoyancy_moment) + self.buoyancy * self.radius
        linear, angular = self.inverse_root[:, :3], self.inverse_root[:, 3:]
        total = np.linalg.norm(linear, 2) * weight + np.linalg.norm(angular, 2) * arms * (1.0 + gravity_share)
        if self.model.restoring is not None:
            g = np.abs(matrix(self.model.restoring))
            total += np.linalg.norm(np.abs(self.inverse_root) @ g @ np.array([0, 0, restoring, math.pi, math.pi, 0.0]))
        return float(total + self.thrust)


def _thrust(model: Model, inverse: Floats) -> float:
    """Return a bound of the thrusters' loads, or infinity if they depend on the speed or there are other actuators."""
    if model.fin or model.ballast or model.actuator:
        return math.inf
    total = 0.0
    placement = matrix_of_allocation(model)
    for k, t in enumerate(model.thruster):
        laws = [t.coefficients, t.reverse or t.coefficients]
        if t.open_water is not None or t.deflector is not None or any(law[2] for law in laws):
            return math.inf
        peak = 0.0
        for command in (t.minimum, t.maximum):
            n = abs(t.motor[0]) + abs(t.motor[1] * command)
            peak = max(peak, *(abs(c[0]) * n + abs(c[1]) * n * n for c in laws))
        if placement is not None:
            wrench = placement[:, k]
        else:
            d = np.array(t.direction) / np.linalg.norm(t.direction)
            wrench = np.concatenate([d, np.cross(t.position, d)])
        size = np.linalg.norm(inverse @ wrench)
        if t.swivel is not None:
            size = np.linalg.norm(inverse, 2) * (1.0 + np.linalg.norm(t.position))
        total += peak * float(size)
    return total


def matrix_of_allocation(model: Model) -> Floats | None:
    """Return the allocation matrix of a model, or None if the positions of its thrusters apply."""
    if model.allocation is None:
        return None
    return np.array(model.allocation.rows).reshape(6, -1)
