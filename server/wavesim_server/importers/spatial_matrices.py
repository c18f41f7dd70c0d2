"""Matrices (6, 6) of masses and added masses about other points of a body (Fossen 2021, appendix C)."""

from __future__ import annotations

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.kinematics import skew


def shift_matrix(r: Floats) -> Floats:
    """Return the matrix H (6, 6) that gives the velocity at the point r (3,) from the velocity at the origin."""
    h = np.eye(6)
    h[:3, 3:] = -skew(r)
    return h


def shifted(m: Floats, old: Floats, new: Floats) -> Floats:
    """Return the matrix (6, 6) about the point ``new`` (3,) from the matrix about the point ``old`` (3,)."""
    h = shift_matrix(np.asarray(old, float) - np.asarray(new, float))
    return np.asarray(h.T @ m @ h)


def spatial_inertia(mass: float, centre: Floats, inertia: Floats) -> Floats:
    """Return the mass matrix (6, 6) about the origin for a mass, its centre, and the inertia about this centre."""
    s = skew(centre)
    return np.block([[mass * np.eye(3), -mass * s], [mass * s, inertia - mass * s @ s]])
