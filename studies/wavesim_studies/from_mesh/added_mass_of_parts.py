"""Added mass of simple bodies in an endless fluid, from tables and closed forms."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_server.importers.spatial_matrices import shift_matrix

#: long side of a rectangular plate divided by its short side a, and its added mass divided by rho pi/4 a^2 b:
#: DNV-RP-C205 (2010), table D-2
PLATE_RATIO = np.array([1.0, 1.25, 1.59, 2.0, 2.5, 3.17, 4.0, 5.0, 6.25, 8.0, 10.0, 100.0])
PLATE_FACTOR = np.array([0.579, 0.642, 0.704, 0.757, 0.801, 0.840, 0.872, 0.897, 0.917, 0.934, 0.947, 1.0])
#: length of a box along the motion divided by the short side across it, and its added mass divided by that of a plate:
#: DNV-RP-C205, tables D-1 (endless rectangle) and D-2 (square prism), which differ by up to 8 % (mean)
DEPTH_RATIO = np.array([0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
DEPTH_FACTOR = np.array([1.0, 1.13, 1.20, 1.35, 1.50, 1.63, 1.78, 1.95])
#: length of a cylinder divided by its diameter, and its added mass across the axis divided by the displaced mass:
#: DNV-RP-C205, table D-2
CYLINDER_RATIO = np.array([0.0, 1.2, 2.5, 5.0, 9.0, 100.0])
CYLINDER_FACTOR = np.array([0.0, 0.62, 0.78, 0.90, 0.96, 1.0])
SHAPES = ("box", "cylinder", "ellipsoid")


class PartInertia(NamedTuple):
    """Added mass (3,) in kg along the axes of a part, and added moments of inertia (3,) in kg m2 about them."""

    mass: Array
    moment: Array


def ellipsoid(size: Array, density: float) -> PartInertia:
    """Return the added mass of an ellipsoid with three diameters in m (Lamb, Hydrodynamics, 1932, art. 114)."""
    from scipy.special import elliprd

    half = 0.5 * np.maximum(np.asarray(size, float), 1e-6 * float(np.max(size)))
    s = half**2
    volume = 4.0 / 3.0 * math.pi * float(half.prod())
    alpha = np.array([2.0 / 3.0 * half.prod() * elliprd(s[(k + 1) % 3], s[(k + 2) % 3], s[k]) for k in range(3)], float)
    mass = density * volume * alpha / (2.0 - alpha)
    moment = np.zeros(3)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        d, t = s[i] - s[j], s[i] + s[j]
        below = 2.0 * d + t * (alpha[i] - alpha[j])
        if abs(d) > 1e-12 * t:
            moment[k] = density * volume / 5.0 * d * d * (alpha[j] - alpha[i]) / below
    return PartInertia(mass, moment)


def box(size: Array, density: float) -> PartInertia:
    """Return the added mass of a box (length, width, height in m)."""
    mass = np.zeros(3)
    for k in range(3):
        short, long = sorted((float(size[(k + 1) % 3]), float(size[(k + 2) % 3])))
        if short > 0.0:
            plate = (
                density * math.pi / 4.0 * short**2 * long * float(np.interp(long / short, PLATE_RATIO, PLATE_FACTOR))
            )
            mass[k] = plate * float(np.interp(float(size[k]) / short, DEPTH_RATIO, DEPTH_FACTOR))
    return _with_moments(size, mass, density)


def cylinder(size: Array, density: float) -> PartInertia:
    """Return the added mass of a circular cylinder along x (length, and twice the diameter, in m) with flat ends."""
    length, diameter = float(size[0]), 0.5 * float(size[1] + size[2])
    across = density * math.pi / 4.0 * diameter**2 * length
    across *= float(np.interp(length / diameter, CYLINDER_RATIO, CYLINDER_FACTOR))
    along = density * diameter**3 / 3.0 * float(np.interp(length / diameter, DEPTH_RATIO, DEPTH_FACTOR))
    found = _with_moments(size, np.array([along, across, across]), density)
    return found._replace(moment=found.moment * np.array([0.0, 1.0, 1.0]))


def _with_moments(size: Array, mass: Array, density: float) -> PartInertia:
    """Return the masses with the moments of the ellipsoid of the same size, increased in the ratio of the masses."""
    like = ellipsoid(size, density)
    ratio = mass / like.mass
    moment = [like.moment[k] * math.sqrt(ratio[(k + 1) % 3] * ratio[(k + 2) % 3]) for k in range(3)]
    return PartInertia(mass, np.array(moment))


def about_origin(part: PartInertia, frame: Array, centre: Array) -> Array:
    """Return the added mass matrix (6, 6) about the origin. The rows of ``frame`` (3, 3) are the axes of the part in
    body axes, and ``centre`` is its middle in m.
    """
    h = shift_matrix(centre)
    whole = np.kron(np.eye(2), frame)
    return np.asarray(h.T @ whole.T @ np.diag([*part.mass, *part.moment]) @ whole @ h)
