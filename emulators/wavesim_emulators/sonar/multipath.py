"""Multipath: ghosts of strong echoes, caused by reflections at the sea surface and at the bed.

The sound path from the sonar to a point and the path back may differ. The direct path has the length r. The other paths
are straight lines to mirror images of the point: in the surface (length s), or in the bed and then the surface (length
m). The ghosts have the ranges ``(r + s)/2``, ``(r + m)/2`` and ``s``. Each of the first two ghosts results from two
paths: the reflection occurs on the way to the point or on the way back. The levels of the ghosts follow from the sonar
equation: spreading and absorption along both paths, the beam pattern in both directions, and the losses of the
reflections. The surface loss is caused by bubbles (APL-UW TR 9407). The loss at the bed follows from the fraction of
energy that the bed reflects at normal incidence.

A rough surface reflects at many points, whose paths are longer. If the slopes of the surface have the variance v in each
direction, and the point of reflection divides a path into a and b, the additional length has an exponential
distribution with the mean ``4 v a b/(a + b)`` (facets, second order in the slope). The energy of a ghost is spread
accordingly.

Objects, point targets and the bed below the sonar produce ghosts. The ghosts of the bed below are the well-known second
echoes, at the water depth and at the altitude plus the water depth. The model assumes that a point scatters in all
directions as it does towards the sonar. It omits objects in the reflected path, the slope of the bed, and the change of
direction caused by a rough surface.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.sonar import ray_kernels as k
from wavesim_emulators.sonar.design import RayFan, SonarDesign
from wavesim_emulators.sonar.multipath_kernels import GHOSTS, Reflections, add_ghosts, find_ghosts, ghost_profile
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_emulators.sonar.types import Singles
from wavesim_sdk.arrays import Floats
from wavesim_world.sonars import materials, patterns

STEEP = 0.95  #: minimum cosine of the angle of incidence on the bed for a second echo
#: entries per lambda/L in the table of the beam pattern across the array, and its extent in lambda/L
RESOLUTION, EXTENT = 64, 40


class SonarMultipath:
    """Reflections that one sonar receives in a world."""

    def __init__(self, design: SonarDesign, world: SonarScene, wind: float) -> None:
        self.design, self.world = design, world
        self.enabled = design.multipath and design.surface
        surface = materials.sea_surface(wind)
        loss = materials.surface_loss(design.preset.frequency, wind, 0.5 * math.pi)
        bed = world.palette.materials[world.ground].reflected_energy()
        axis = design.preset.tilt if design.preset.kind == "sidescan" else 0.0
        scale = design.height / design.wavelength * RESOLUTION
        self.fixed = (loss, materials.MAX_SURFACE_LOSS, surface.slope**2, bed, design.decay, axis, scale)
        self.pattern = patterns.line(np.arange(RESOLUTION * EXTENT + 2) / RESOLUTION)

    def warm_up(self) -> None:
        """Compile the kernels, even if nothing in the world has ghosts yet."""
        ghosts = self.find(np.array([0.0, 0.0, 1.0]), np.eye(3), np.array([[1.0, 1.0, 1.0, 0.0, 0.0]]), 0.0)
        add_ghosts(ghosts, 0.0, 0.1, self.design.bin, np.zeros((1, 8), np.float32))
        ghost_profile(np.ones(4), self.design.bin, np.zeros((1, 8), np.float32))

    def find(self, p: Floats, R: Floats, echoes: Floats, level: float) -> Floats:
        """Return the ghosts of ``echoes``, for a sonar at ``p`` whose fan has the axes ``R``. The columns of both
        arrays are listed in :mod:`~wavesim_emulators.sonar.multipath_kernels`.
        """
        depth = self.world.depth(float(p[0]), float(p[1])) + level
        water = Reflections(np.array([float(p[2]) + level, depth, *self.fixed]), self.pattern)
        ghosts = np.empty((GHOSTS * len(echoes), 4))
        return ghosts[: find_ghosts(R, echoes, water, self.design.range, ghosts)]

    def add_to_columns(
        self, energy: Singles, fan: k.Fan, rays: RayFan, hits: k.FanHits, tables: Floats, level: float
    ) -> None:
        """Add the ghosts of the echoes of rays to the energy (columns, bins) of their columns."""
        label, geometry = hits.labels[..., 1], hits.geometry
        column, ray = np.nonzero((label > k.SURFACE) | ((label == k.BED) & (geometry[..., 1] > STEEP)))
        if not len(column):
            return
        d = self.design
        r, cosine = geometry[column, ray, 0], np.maximum(geometry[column, ray, 1], 1e-4)
        s_b = tables[hits.labels[column, ray, 0], np.rint(np.degrees(np.arccos(np.minimum(cosine, 1.0)))).astype(int)]
        ahead = np.sqrt(1.0 - fan.u[column] ** 2)
        width = d.energy_per_ray * rays.gain_u[column] * rays.du[column] * ahead * rays.de[ray]
        echoes = np.empty((len(column), 5))
        echoes[:, 0] = r
        echoes[:, 1] = width * s_b * np.exp(-d.decay * r) / (r * r * cosine)
        local = np.stack([ahead * np.cos(fan.e[ray]), fan.u[column], ahead * np.sin(fan.e[ray])], axis=1)
        # a product from a linear-algebra library would depend on the number of its threads
        echoes[:, 2:] = np.einsum("nj,ij->ni", local, fan.R)
        ghosts = self.find(fan.origin, fan.R, echoes, level)
        add_ghosts(ghosts, float(rays.angle[0]), float(rays.angle[1] - rays.angle[0]), d.bin, energy)
