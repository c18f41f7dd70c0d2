"""The fleet: models and start poses become rows of blocks, and come out again as tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.config import Model, matrix
from wavesim_sdk.config.model import Mooring, World
from wavesim_server.dynamics import rows as r

Array = np.ndarray[Any, np.dtype[np.float64]]
#: actuator time constants below this are taken as immediate, s
NO_LAG = 1e-9


@dataclass(frozen=True)
class Shape:
    """A primitive in numbers: code, half sizes, radius of its enclosing sphere, volume."""

    code: int
    half: tuple[float, float, float]
    reach: float
    volume: float
    size: tuple[float, float, float]
    capsule: tuple[float, float]  # half length of the axis, radius


def shape_of(model: Model) -> Shape:
    """Geometry of a model. For contact a box is the capsule along its longer side that fits inside."""
    if model.box is not None:
        b = model.box
        half = (b.length / 2, b.width / 2, b.height / 2)
        radius = min(half[1], half[2])
        return Shape(
            0,
            half,
            math.hypot(*half),
            b.length * b.width * b.height,
            (b.length, b.width, b.height),
            (max(half[0] - radius, 0.0), radius),
        )
    if model.cylinder is not None:
        c = model.cylinder
        a = c.length / 2
        volume = math.pi * c.radius**2 * c.length
        return Shape(
            1,
            (a, c.radius, c.radius),
            math.hypot(a, c.radius),
            volume,
            (c.length, 2 * c.radius, 2 * c.radius),
            (max(a - c.radius, 0.0), c.radius),
        )
    assert model.sphere is not None
    radius = model.sphere.diameter / 2
    d = model.sphere.diameter
    return Shape(2, (radius, radius, radius), radius, 4 / 3 * math.pi * radius**3, (d, d, d), (0.0, radius))


def _skew(v: Any) -> Array:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]], dtype=float)


def mass_matrices(model: Model) -> tuple[Array, Array, Array]:
    """(M_RB, M_A, I_b about the origin) of a model."""
    m, g, i = model.mass.value, np.array(model.mass.centre), model.inertia
    about_g = np.array([[i.xx, i.xy, i.xz], [i.xy, i.yy, i.yz], [i.xz, i.yz, i.zz]])
    s = _skew(g)
    about_o = about_g - m * s @ s
    rigid = np.block([[m * np.eye(3), -m * s], [m * s, about_o]])
    return rigid, matrix(model.added_mass), about_o


class Fleet:
    """Blocks of all bodies. ``row`` is a body's place; lane ``row % 8`` of block ``row // 8``."""

    def __init__(self, capacity: int, step: float, world: World) -> None:
        self.capacity, self.step, self.world = capacity, step, world
        n = (capacity + r.LANES - 1) // r.LANES
        self.blocks = np.zeros((n, r.BLOCK))
        self._rows = self.blocks.reshape(n, r.ROWS, r.LANES)
        self._rows[:, r.QW] = 1.0
        self.counts = np.zeros((n, 3), np.int64)
        self._actuators = np.zeros((capacity, 2), np.int64)
        self.limits = np.zeros((capacity, r.ACTUATORS, 2))

    def body(self, row: int) -> Array:
        """The rows of one body, as a view."""
        return self._rows[row // r.LANES, :, row % r.LANES]

    def add(
        self, row: int, model: Model, position: tuple[float, ...], attitude: tuple[float, ...], mooring: Mooring | None
    ) -> None:
        """Put a body at rest into a row."""
        shape = shape_of(model)
        rigid, added, about_o = mass_matrices(model)
        b = self.body(row)
        b[:] = 0.0
        b[r.PX : r.PX + 3] = position
        b[r.QW : r.QW + 4] = frames.quaternion(*attitude)
        b[r.SHAPE] = shape.code
        b[r.HALF : r.HALF + 3] = shape.half
        b[r.REACH] = shape.reach
        volume = model.buoyancy.volume if model.buoyancy else shape.volume
        b[r.FULL_B] = self.world.density * self.world.gravity * volume
        b[r.RB : r.RB + 3] = model.buoyancy.centre if model.buoyancy else 0.0
        b[r.WEIGHT] = model.mass.value * self.world.gravity
        b[r.MASS] = model.mass.value
        b[r.RG : r.RG + 3] = model.mass.centre
        b[r.IB : r.IB + 9] = about_o.ravel()
        b[r.MA : r.MA + 36] = (0.5 * (added + added.T)).ravel()
        b[r.MINV : r.MINV + 36] = np.linalg.inv(rigid + added).ravel()
        b[r.DL : r.DL + 36] = matrix(model.linear_drag).ravel()
        b[r.DQ : r.DQ + 36] = matrix(model.quadratic_drag).ravel()
        b[r.LIFT : r.LIFT + 36] = matrix(model.lift).ravel()
        if mooring is not None:
            b[r.MOOR : r.MOOR + 6] = (*mooring.anchor, mooring.length, mooring.stiffness, mooring.damping)
        self._add_actuators(row, b, model)
        b[r.CAPSULE_HALF], b[r.CAPSULE_R] = shape.capsule
        b[r.PRESENT] = 1.0
        self._actuators[row] = len(model.thruster), len(model.fin)
        self._count(row // r.LANES)

    def _add_actuators(self, row: int, b: Array, model: Model) -> None:
        half = 0.5 * self.step
        self.limits[row] = 0.0
        b[r.A_RATE : r.A_RATE + r.ACTUATORS] = 1e300
        for k, t in enumerate(model.thruster):
            direction = np.array(t.direction) / np.linalg.norm(t.direction)
            b[r.A_DECAY + k] = math.exp(-half / t.lag) if t.lag > NO_LAG else 0.0
            for i, c in enumerate(t.coefficients):
                b[r.T_C + 8 * i + k] = c
            b[r.T_H + 6 * k : r.T_H + 6 * k + 6] = (*direction, *np.cross(t.position, direction))
            self.limits[row, k] = t.minimum, t.maximum
        for k, f in enumerate(model.fin):
            normal = np.array(f.normal) / np.linalg.norm(f.normal)
            a = r.THRUSTERS + k
            b[r.A_DECAY + a] = math.exp(-half / f.lag) if f.lag > NO_LAG else 0.0
            b[r.A_RATE + a] = f.rate * half
            b[r.F_K + k] = 0.5 * self.world.density * f.area * f.lift_slope
            b[r.F_H + 6 * k : r.F_H + 6 * k + 6] = (*normal, *np.cross(f.position, normal))
            b[r.F_W + k] = float(f.inflow)
            b[r.F_Y + k], b[r.F_Z + k] = f.position[1], f.position[2]
            self.limits[row, a] = -f.limit, f.limit

    def remove(self, row: int) -> None:
        """Take a body out."""
        b = self.body(row)
        b[:] = 0.0
        b[r.QW] = 1.0
        self._actuators[row] = 0
        self._count(row // r.LANES)

    def _count(self, block: int) -> None:
        span = slice(block * r.LANES, (block + 1) * r.LANES)
        self.counts[block, 0] = int(self._rows[block, r.PRESENT].sum())
        self.counts[block, 1:] = self._actuators[span].max(axis=0, initial=0)

    def command(self, row: int, values: list[float | None]) -> None:
        """Set actuator commands, saturated; None keeps the earlier one."""
        b, limits = self.body(row), self.limits[row]
        for k, value in enumerate(values[: r.ACTUATORS]):
            if value is not None:
                b[r.A_CMD + k] = min(max(value, limits[k, 0]), limits[k, 1])
