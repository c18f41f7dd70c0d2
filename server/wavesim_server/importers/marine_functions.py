"""Functions that the vehicles of Fossen's Python and MATLAB simulators call, after T. I. Fossen, Handbook of Marine Craft
Hydrodynamics and Motion Control, 2nd edition, 2021. Vectors and matrices are NumPy arrays; axes are forward, starboard,
down.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wavesim_sdk.kinematics import euler_to_rotation, skew
from wavesim_server.dynamics.cross_flow_sections import HOERNER_DRAG, HOERNER_RATIO
from wavesim_server.importers.spatial_matrices import shift_matrix

CROSS_FLOW_DENSITY = (
    1026.0  #: density of the water in kg/m3 in the simulators' drag functions, whatever their vehicles use
)
OSWALD = 0.7  #: efficiency factor of the hull as a wing


def rotation(roll: float, pitch: float, yaw: float) -> Any:
    """Return the rotation matrix from body axes to north-east-down (eq. 2.31)."""
    return euler_to_rotation((roll, pitch, yaw))


def coriolis(mass: Any, nu: Any) -> Any:
    """Return the Coriolis matrix of a 6x6 or 3x3 (surge, sway, yaw) mass matrix (eq. 3.46)."""
    m = 0.5 * (np.asarray(mass) + np.asarray(mass).T)
    if len(nu) == 3:
        a, b = m[0, 0] * nu[0], m[1, 1] * nu[1] + m[1, 2] * nu[2]
        return np.array([[0.0, 0.0, -b], [0.0, 0.0, a], [b, -a, 0.0]])
    a, b = m[:3, :3] @ nu[:3] + m[:3, 3:] @ nu[3:], m[3:, :3] @ nu[:3] + m[3:, 3:] @ nu[3:]
    return np.block([[np.zeros((3, 3)), -skew(a)], [-skew(a), -skew(b)]])


def restoring(weight: float, buoyancy: float, pitch: float, roll: float, r_bg: Any, r_bb: Any) -> Any:
    """Return the restoring forces g(eta) of a submerged body (eq. 4.6)."""
    down = rotation(roll, pitch, 0.0).T @ [0.0, 0.0, 1.0]
    moment = np.cross(r_bg, weight * down) - np.cross(r_bb, buoyancy * down)
    return -np.concatenate([(weight - buoyancy) * down, moment])


def restoring_by_rotation(weight: float, buoyancy: float, turn: Any, r_bg: Any, r_bb: Any) -> Any:
    """Return the restoring forces g(eta) for a rotation matrix."""
    down = np.asarray(turn).T @ [0.0, 0.0, 1.0]
    moment = np.cross(r_bg, weight * down) - np.cross(r_bb, buoyancy * down)
    return -np.concatenate([(weight - buoyancy) * down, moment])


def lift_and_drag(span: float, area: float, parasitic: float, attack: float, speed: float) -> Any:
    """Return the forces on a hull as a wing of low aspect ratio (Beard and McLain 2012)."""
    ratio = span**2 / area
    lift = math.pi * ratio / (1.0 + math.sqrt(1.0 + (ratio / 2.0) ** 2)) * attack
    drag = parasitic + lift**2 / (math.pi * OSWALD * ratio)
    pressure = 0.5 * CROSS_FLOW_DENSITY * speed**2 * area
    c, s = math.cos(attack), math.sin(attack)
    return pressure * np.array([s * lift - c * drag, 0.0, -c * lift - s * drag, 0.0, 0.0, 0.0])


def section_drag(beam: float, draft: float) -> float:
    """Return the drag coefficient of a section by Hoerner's curve."""
    return float(np.interp(beam / (2.0 * draft), HOERNER_RATIO, HOERNER_DRAG))


def cross_flow(length: float, beam: float, draft: float, nu: Any) -> Any:
    """Return the cross-flow drag as the exact integral along the hull. The simulators sum 21 strips of a twentieth of
    the length.
    """
    c = 0.5 * CROSS_FLOW_DENSITY * draft * section_drag(beam, draft)
    half, v, r = length / 2.0, float(nu[1]), float(nu[5])
    ends = [-half, *([-v / r] if r and abs(v / r) < half else []), half]  # the integrand changes its sign at -v/r
    force = moment = 0.0
    for a, b in itertools.pairwise(ends):
        positive = 1.0 if v + r * 0.5 * (a + b) >= 0.0 else -1.0
        for end, weight in ((b, positive), (a, -positive)):
            force += weight * (v * v * end + v * r * end**2 + r * r * end**3 / 3.0)
            moment += weight * (v * v * end**2 / 2.0 + 2.0 * v * r * end**3 / 3.0 + r * r * end**4 / 4.0)
    return np.array([0.0, -c * force, 0.0, 0.0, 0.0, -c * moment])


def saturated(value: Any, low: Any, high: Any = None) -> Any:
    """Return a value within its limits; with one limit, both directions have it."""
    low, high = (-np.abs(low), np.abs(low)) if high is None else (low, high)
    return np.clip(value, low, high) if np.ndim(value) else float(min(max(value, low), high))


PYTHON_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Smtrx": skew,
    "Hmtrx": shift_matrix,
    "Rzyx": rotation,
    "m2c": coriolis,
    "gvect": restoring,
    "forceLiftDrag": lift_and_drag,
    "crossFlowDrag": cross_flow,
    "Hoerner": section_drag,
    "sat": saturated,
}
