"""Terms of the equation of motion of a hull, in the form of Gazebo's Hydrodynamics plugin, along forward, port, up.

The plugin computes the force F_i = sum (linear_ij + sum absolute_ijk abs(nu_k) + sum signed_ijk nu_k) nu_j. The physics
engine adds -(M_RB + M_A) nu' - C(nu) nu, with the full added mass and the Coriolis force that belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.model_compiler import skew
from wavesim_server.importers.spatial_matrices import spatial_inertia
from wavesim_studies.linear_models.trim import ModelMotion
from wavesim_studies.model_export.axes import FLIP, FLIP6

NEGLIGIBLE = 1e-9  #: coefficients that are smaller, relative to the largest, are rounding errors
#: parts of the equation of motion that have no counterpart in Gazebo, by the attribute of the model
NOT_IN_GAZEBO = {
    "fading_drag": "linear drag that decreases with speed",
    "surge_friction": "surge friction by the ITTC line",
    "body_lift": "lift and drag of the hull as a slender wing",
    "memory": "fluid memory",
    "radiation": "radiated waves",
    "wind_drag": "wind forces",
    "wave_filter": "wave forces",
    "rao": "wave forces",
    "ballast": "ballast tanks",
    "actuator": "actuators from other packages",
    "term": "terms from other packages",
}
# basis of the named derivatives: 0 = 1, 1-6 = u..r, 7-12 = their absolute values, 13-15 = U, U^2, 1/U, from 16 fin angles
_SPEED_POWER = {13: 1, 14: 2, 15: -1}
_FIRST_ABSOLUTE, _FIRST_SPEED, FIRST_FIN = 7, 13, 16


@dataclass
class HullTerms:
    """Inertia and forces of a hull, in SI units about the origin, along forward, port and up."""

    mass: float
    centre: Floats  #: centre of mass (3,)
    inertia: Floats  #: moments of inertia (3, 3) about the centre of mass
    added: Floats  #: added mass (6, 6), symmetric
    linear: Floats  #: (6, 6)
    absolute: Floats  #: (6, 6, 6)
    signed: Floats  #: (6, 6, 6)
    missing: list[str] = field(default_factory=list)  #: parts of the model that the terms do not contain
    notes: list[str] = field(default_factory=list)  #: choices that a reader of the file should know


def hull_terms(motion: ModelMotion) -> HullTerms:
    """Return the terms of a model. ``missing`` lists the parts of its equation of motion that they do not contain."""
    p, ints, model = motion.form.compiled.params, motion.form.compiled.ints, motion.model

    def matrix(row: int) -> Floats:
        return p[row : row + 36].reshape(6, 6)

    total, carried = matrix(P.TOTAL_INERTIA), matrix(P.MASS)
    symmetric = 0.5 * (total + total.T)
    absolute, signed = np.zeros((6, 6, 6)), np.zeros((6, 6, 6))
    index = np.arange(6)
    absolute[:, index, index] = -matrix(P.QUADRATIC_DRAG)
    absolute[:, :, 0] -= matrix(P.BODY_LIFT)
    missing = list(dict.fromkeys(text for name, text in NOT_IN_GAZEBO.items() if getattr(model, name)))
    signed += _coriolis(symmetric - carried)
    _omitted_munk_terms(p, signed)
    flags = int(ints[M.FLAGS])
    if flags & M.ON_SURFACE:
        signed[:, 0, 4] += p[P.HEAVE_ADDED_MASS : P.HEAVE_ADDED_MASS + 6]
        signed[:, 1, 3] -= p[P.HEAVE_ADDED_MASS : P.HEAVE_ADDED_MASS + 6]
        missing.append("drag against the vertical velocity; drag acts against the velocity along the body's z axis")
    if flags & M.HAS_CROSS:
        _cross_flow(p, absolute)
        missing.append(
            "cross-flow drag in combined motions; the file has its values in pure sway, yaw, heave and pitch"
        )
        if p[P.CROSS_STILL] > 0.0:
            missing.append("the sway speed below which there is no cross-flow drag")
    linear = -matrix(P.LINEAR_DRAG)
    missing += _named_derivatives(p, ints, linear, absolute, signed)
    if np.abs(total - total.T).max() > NEGLIGIBLE * np.abs(total).max():
        missing.append("the part of the added mass that is not symmetric")
    if not motion.free_dofs.all():
        missing.append(f"the limit to the degrees of freedom {model.active}; in Gazebo, the model moves in all six")
    mass, centre = model.mass.value, FLIP * np.asarray(model.mass.centre, float)
    sign = np.outer(FLIP6, FLIP6)
    found = HullTerms(
        mass,
        centre,
        np.zeros((3, 3)),
        np.zeros((6, 6)),
        linear * sign,
        absolute * sign[:, :, None],
        signed * sign[:, :, None] * FLIP6,
        missing,
    )
    _divide_inertia(found, symmetric * sign, (total - matrix(P.ADDED_MASS)) * sign)
    return found


def _divide_inertia(found: HullTerms, total: Floats, rigid: Floats) -> None:
    """Set the moments of inertia, and the added mass such that the sum with the mass equals the total inertia (6, 6)."""
    s = skew(found.centre)
    inertia = 0.5 * (rigid + rigid.T)[3:, 3:] + found.mass * s @ s
    sizes, axes = np.linalg.eigh(inertia)
    kept = np.maximum(sizes, 1e-6 * max(float(sizes[2]), 1e-9))
    kept[2] = min(kept[2], 0.999 * (kept[0] + kept[1]))  # no body has a larger one
    found.inertia = axes @ np.diag(kept) @ axes.T if np.abs(kept - sizes).max() > 0.0 else inertia
    found.added = total - spatial_inertia(found.mass, found.centre, found.inertia)
    if np.abs(rigid - spatial_inertia(found.mass, found.centre, found.inertia)).max() > 1e-9 * np.abs(rigid).max():
        found.notes.append(
            "No rigid body has exactly the rigid-body mass matrix of the model. The added mass contains the difference, "
            "so that the sum is that of the model."
        )


def _coriolis(difference: Floats) -> Floats:
    """Return the terms (6, 6, 6) of +C(nu) nu for a symmetric mass matrix (6, 6).

    With h = M nu, the force is omega x h_1, and the moment is omega x h_2 + v x h_1.
    """
    found, cross = np.zeros((6, 6, 6)), np.zeros((3, 3, 3))
    for i in range(3):
        cross[i, (i + 1) % 3, (i + 2) % 3], cross[i, (i + 2) % 3, (i + 1) % 3] = 1.0, -1.0
    found[:3, 3:] += np.einsum("iab,bk->iak", cross, difference[:3])
    found[3:, 3:] += np.einsum("iab,bk->iak", cross, difference[3:])
    found[3:, :3] += np.einsum("iab,bk->iak", cross, difference[:3])
    return found


def _omitted_munk_terms(p: Floats, signed: Floats) -> None:
    """Add the terms that cancel the omitted elements of C_A (see `terms.omit_munk_terms`)."""
    a1, a2, a3 = p[P.ADDED_MASS_ROWS : P.ADDED_MASS_ROWS + 18].reshape(3, 6)
    o = p[P.OMITTED_MUNK : P.OMITTED_MUNK + 8]
    signed[0, 4] += a3 * o[0]
    signed[0, 5] -= a2 * o[1]
    signed[1, 5] += a1 * o[2]
    signed[2, 4] -= a1 * o[3]
    signed[4, 2] += a1 * o[5]
    signed[4, 0] -= a3 * o[4]
    signed[5, 0] += a2 * o[6]
    signed[5, 1] -= a1 * o[7]


def _cross_flow(p: Floats, absolute: Floats) -> None:
    """Add the cross-flow drag for motions in one degree of freedom."""
    low, high = p[P.CROSS_CENTRE] - p[P.CROSS_HALF], p[P.CROSS_CENTRE] + p[P.CROSS_HALF]
    length = high - low
    first = (high * high - low * low) / 2.0  # integral of x
    square = (high * high * abs(high) - low * low * abs(low)) / 3.0  # integral of x abs(x)
    cube = (high**3 * abs(high) - low**3 * abs(low)) / 4.0  # integral of x^2 abs(x)
    absolute[1, 1, 1] -= p[P.CROSS_SWAY] * length
    absolute[1, 5, 5] -= p[P.CROSS_SWAY] * square
    absolute[5, 1, 1] -= p[P.CROSS_YAW] * first
    absolute[5, 5, 5] -= p[P.CROSS_YAW] * cube
    absolute[2, 2, 2] -= p[P.CROSS_HEAVE] * length
    absolute[2, 4, 4] += p[P.CROSS_HEAVE] * square  # the vertical velocity at x is w - x q
    absolute[4, 2, 2] += p[P.CROSS_PITCH] * first
    absolute[4, 4, 4] -= p[P.CROSS_PITCH] * cube


def _named_derivatives(p: Floats, ints: Ints, linear: Floats, absolute: Floats, signed: Floats) -> list[str]:
    """Add the named derivatives without fin angles, and return texts about those that have no counterpart."""
    left = 0
    for t in range(ints[M.DERIVATIVE_COUNT]):
        axis, factors, speeds, fins = derivative(ints, t)
        value = p[P.DERIVATIVE_COEFFICIENT + t]
        if fins or value == 0.0:
            continue  # see fin_parts
        plain = [f - 1 for f in factors if f < _FIRST_ABSOLUTE]
        sizes = [f - _FIRST_ABSOLUTE for f in factors if f >= _FIRST_ABSOLUTE]
        if speeds == 0 and len(plain) == 1 and not sizes:
            linear[axis, plain[0]] += value
        elif speeds == 0 and len(plain) == 2 and not sizes:
            signed[axis, plain[0], plain[1]] += value
        elif speeds == 0 and len(plain) == 1 and len(sizes) == 1:
            absolute[axis, plain[0], sizes[0]] += value
        else:
            left += 1
    return [f"{left} of the named derivatives (constants, or products of more than two velocities)"] if left else []


def derivative(ints: Ints, number: int) -> tuple[int, list[int], int, list[int]]:
    """Return the axis of a named derivative, its velocities as indices into the basis, the power of the speed, and the
    numbers of its fins.
    """
    term = M.DERIVATIVES + M.TERM_SIZE * number
    factors = [int(f) for f in ints[term + M.TERM_FACTORS : term + M.TERM_SIZE] if f]
    speeds = sum(_SPEED_POWER.get(f, 0) for f in factors)
    fins = [f - FIRST_FIN for f in factors if f >= FIRST_FIN]
    return int(ints[term + M.TERM_AXIS]), [f for f in factors if f < _FIRST_SPEED], speeds, fins
