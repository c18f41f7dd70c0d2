"""Parameter rows of an aircraft, from its <aerodynamics> element; see :mod:`wavesim_server.dynamics.aerodynamics`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import parameter_rows as P
from wavesim_world.config.aerodynamics import Aerodynamics
from wavesim_world.config.world import World


def set_rows(p: Floats, a: Aerodynamics, fins: Sequence[str], world: World, step: float) -> None:
    """Set the parameter rows of an aircraft. ``fins`` contains the names of its fins. Raises ValueError if the world
    has no gravity, because weight and buoyancy determine whether an aircraft is in the water.
    """
    if world.gravity == 0.0:
        raise ValueError("an aircraft needs gravity; set the `gravity` of <world>")
    rho = world.wind.air_density
    p[P.AIR_AREA], p[P.AIR_SPAN], p[P.AIR_CHORD] = 0.5 * rho * a.area, a.span, a.chord
    p[P.AIR_DRAG], p[P.AIR_INDUCED] = a.drag, a.area / (math.pi * a.efficiency * a.span * a.span)
    p[P.AIR_STALL], p[P.AIR_SHARPNESS] = a.stall, a.sharpness
    for row, values in (
        (P.AIR_LIFT, a.lift),
        (P.AIR_PITCH, a.pitch),
        (P.AIR_SIDE, a.side),
        (P.AIR_ROLL, a.roll),
        (P.AIR_YAW, a.yaw),
    ):
        p[row : row + len(values)] = values
    for c in a.control:
        row = P.AIR_CONTROL + 6 * fins.index(c.fin)
        p[row : row + 6] = c.lift, c.drag, c.side, c.roll, c.pitch, c.yaw
    p[P.AIR_DIAMETER] = 1.0
    if (o := a.propeller) is not None:
        square = o.diameter * o.diameter
        p[P.AIR_PROPELLER], p[P.AIR_DIAMETER] = rho * square * square, o.diameter
        p[P.AIR_KT : P.AIR_KT + 3] = o.kt
        p[P.AIR_KQ : P.AIR_KQ + 3] = [o.torque_share * o.diameter * k for k in o.kq]
    p[P.AIR_DITCHING], p[P.AIR_STEP] = 1.0 / a.ditching, step


def damping(p: Floats, speed: float) -> Floats:
    """Return the linearised aerodynamic forces in straight flight at ``speed`` (m/s) as a drag matrix (6, 6)."""
    force = p[P.AIR_AREA] * speed
    span, chord = p[P.AIR_SPAN], p[P.AIR_CHORD]
    d = np.zeros((6, 6))
    d[0, 0] = 2.0 * force * p[P.AIR_DRAG]
    d[2, 2], d[2, 4] = force * p[P.AIR_LIFT + 1], 0.5 * force * chord * p[P.AIR_LIFT + 2]
    d[4, 2] = -force * chord * p[P.AIR_PITCH + 1]
    d[4, 4] = -0.5 * force * chord * chord * p[P.AIR_PITCH + 2]
    for axis, row, arm in ((1, P.AIR_SIDE, 1.0), (3, P.AIR_ROLL, span), (5, P.AIR_YAW, span)):
        d[axis, [1, 3, 5]] = -force * arm * p[row + 1 : row + 4] * np.array([1.0, 0.5 * span, 0.5 * span])
    # the velocity of the aircraft turns with its axes
    d[1, 5], d[2, 4] = d[1, 5] + p[P.TOTAL_INERTIA] * speed, d[2, 4] - p[P.TOTAL_INERTIA] * speed
    return d
