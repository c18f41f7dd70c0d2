"""Added mass of a vehicle without a panel code: that of the ellipsoid with the same volume and the same radii of
gyration (Lamb, Hydrodynamics, 1932, art. 114).

A floating hull is half of the body that consists of its wetted part and the mirror image of this part. This holds for
slow motion, in which the water surface stays flat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_studies.from_mesh import added_mass_of_parts
from wavesim_world import hull_geometry as geometry
from wavesim_world.hull import Hull

#: relative standard deviation in surge, sway, heave, roll, pitch and yaw. Bodies between a box and a spindle differ from
#: the ellipsoid with the same radii of gyration by so much; appendages are not counted
SUBMERGED = (0.35, 0.2, 0.2, 0.7, 0.3, 0.3)
AFLOAT = (0.5, 0.3, 0.4, 0.8, 0.5, 0.5)


class EllipsoidAddedMass(NamedTuple):
    """Added mass (6, 6) about the origin in body axes, the relative standard deviation (6,) of its diagonal, and notes."""

    matrix: Array
    deviation: Array
    notes: tuple[str, ...]


def ellipsoid_added_mass(triangles: Array, density: float, waterline: float | None = None) -> EllipsoidAddedMass:
    """Return the added mass of a closed body, triangles (n, 3, 3) in m and body axes, in water of a density in kg/m3.

    ``waterline`` is the z of the waterline of a floating hull in m.
    """
    t, share = np.asarray(triangles, float), 1.0
    if waterline is not None:
        t = Hull(t).wetted_triangles((0.0, 0.0, 1.0), waterline)
        mirror = t * [1.0, 1.0, -1.0] + [0.0, 0.0, 2.0 * waterline]
        t, share = np.concatenate([t, mirror[:, ::-1]]), 0.5
    mass = geometry.mass_properties(t)
    # an even ellipsoid with half-axes a has the second moments V a^2/5 along its axes
    second = (0.5 * np.trace(mass.inertia) * np.eye(3) - mass.inertia) / mass.volume
    values, vectors = np.linalg.eigh(second)
    half = np.sqrt(5.0 * np.maximum(values, 1e-12 * values.max()))
    half = half * (mass.volume / (4.0 / 3.0 * np.pi * half.prod())) ** (1.0 / 3.0)
    part = added_mass_of_parts.ellipsoid(2.0 * half, density)
    matrix = share * added_mass_of_parts.about_origin(part, vectors.T, mass.centre)
    scale = np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    matrix = np.where(np.abs(matrix) > 1e-3 * scale, 0.5 * (matrix + matrix.T), 0.0)
    deviation = SUBMERGED if waterline is None else AFLOAT
    axes = " x ".join(f"{2.0 * h:.3g}" for h in sorted(half, reverse=True))
    said = f"added mass: ellipsoid of {axes} m with the volume and the radii of gyration of the mesh (Lamb)"
    if waterline is not None:
        said = f"added mass: half of the {said.removeprefix('added mass: ')}, for the wetted part and its mirror image"
    return EllipsoidAddedMass(matrix, np.array(deviation), (said,))
