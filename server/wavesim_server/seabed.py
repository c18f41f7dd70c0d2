"""Compiled sea-bed functions for the tick. Bodies rest on the bed, and sound is reflected from it.

``wavesim_world.ocean`` contains a simpler version of the same functions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.elementary import exp
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.bed import max_slope, triangulated_bed


class BedParameters(NamedTuple):
    """Parameters of the bed: the plane, the bumps (n, 5), the maximum slope of the bed, and whether soundings are used."""

    plane: Floats
    bumps: Floats
    max_slope: float
    has_soundings: bool


class SoundingsMesh(NamedTuple):
    """Soundings as triangles, with points (n, 3), corners (m, 3) and neighbours (m, 3)."""

    points: Floats
    corners: Ints
    neighbours: Ints


class SeaBed(NamedTuple):
    """The sea bed and, for each body, the triangle below it, at which the next search begins."""

    parameters: BedParameters
    mesh: SoundingsMesh
    cursors: Ints  # (rows,)


def make_bed(loaded: LoadedConfig) -> tuple[BedParameters, SoundingsMesh]:
    """Build the bed of a configuration in the form that the kernels use."""
    t, slope = triangulated_bed(loaded), max_slope(loaded)
    if t is not None:
        return BedParameters(np.zeros(3), np.zeros((0, 5)), slope, True), SoundingsMesh(
            *(
                np.array(a, d, order="C")
                for a, d in ((t.points, float), (t.simplices, np.int64), (t.neighbors, np.int64))
            )
        )
    bed = loaded.config.world.bed
    bumps = np.array([[b.height, b.north, b.east, b.alpha, b.beta] for b in bed.bump]).reshape(-1, 5)
    empty = np.zeros((0, 3), np.int64)
    return BedParameters(np.array([bed.depth, bed.slope_north, bed.slope_east]), bumps, slope, False), SoundingsMesh(
        np.zeros((0, 3)), empty, empty
    )


@device_function
def bed_depth(bed: BedParameters, net: SoundingsMesh, cursor: Ints, row: int, x: float, y: float) -> float:
    """Return the depth of the bed below (x, y); NaN outside the soundings."""
    if not bed.has_soundings:
        depth = bed.plane[0] + bed.plane[1] * x + bed.plane[2] * y
        for i in range(bed.bumps.shape[0]):
            dx = bed.bumps[i, 3] * (x - bed.bumps[i, 1])
            dy = bed.bumps[i, 4] * (y - bed.bumps[i, 2])
            depth += bed.bumps[i, 0] * exp(-dx * dx - dy * dy)
        return depth
    # walk from the last triangle found towards the point
    t = cursor[row]
    for _ in range(net.corners.shape[0]):
        a, b, c = net.corners[t, 0], net.corners[t, 1], net.corners[t, 2]
        ax, ay = net.points[a, 0], net.points[a, 1]
        bx, by = net.points[b, 0], net.points[b, 1]
        cx, cy = net.points[c, 0], net.points[c, 1]
        det = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
        wa = ((by - cy) * (x - cx) + (cx - bx) * (y - cy)) / det
        wb = ((cy - ay) * (x - cx) + (ax - cx) * (y - cy)) / det
        wc = 1.0 - wa - wb
        if wa >= -1e-12 and wb >= -1e-12 and wc >= -1e-12:
            cursor[row] = t
            return wa * net.points[a, 2] + wb * net.points[b, 2] + wc * net.points[c, 2]
        side = 0 if wa <= wb and wa <= wc else 1 if wb <= wc else 2
        t = net.neighbours[t, side]
        if t < 0:
            return math.nan
    return math.nan
