"""Edges of objects, found between the rays of a fan.

The distance between rays is large compared with the shadow of a low object at a small grazing angle: at a range of 35 m
and 5 m above the bed, 0.4 deg of elevation correspond to 1.7 m of range. Bisection finds where an object begins or ends
between two rays, so that highlights and shadows end within an eighth of this distance.
"""

from __future__ import annotations

import numpy as np

from wavesim_emulators.sonar import ray_kernels as k
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_sdk.arrays import Floats, Ints

ROUNDS = 3  #: number of bisections; each halves the error


def find_edges(world: SonarScene, fan: k.Fan, labels: Ints, de: Floats, search: tuple[float, float, bool]) -> Floats:
    """Return the edges of rays, as :class:`~wavesim_emulators.sonar.echo_kernels.FanWeights` contains them. The array
    has length 0 if no ray hits an object.

    ``labels`` (columns, rays) are the objects that the rays hit. ``search`` contains the range, the level of the sea
    surface, and whether the surface is visible.
    """
    if len(fan.e) < 2 or not (labels > k.SURFACE).any():
        return np.zeros((0, 0, 2))
    order = 1.0 if fan.e[1] > fan.e[0] else -1.0
    edges = np.empty((*labels.shape, 2))
    edges[..., 0], edges[..., 1] = -0.5 * order * de, 0.5 * order * de
    here, beyond = labels[:, :-1], labels[:, 1:]
    column, ray = np.nonzero((here != beyond) & (np.maximum(here, beyond) > k.SURFACE))
    if not len(column):
        return edges
    near, far, known = fan.e[ray], fan.e[ray + 1], here[column, ray]
    u = np.ascontiguousarray(fan.u[column])
    for _ in range(ROUNDS):
        middle = 0.5 * (near + far)
        same = world.cast_rays(k.Fan(fan.origin, fan.R, u, middle), *search) == known
        near, far = np.where(same, middle, near), np.where(same, far, middle)
    middle = 0.5 * (near + far)
    edges[column, ray, 1] = middle - fan.e[ray]
    edges[column, ray + 1, 0] = middle - fan.e[ray + 1]
    return edges
