"""Compiled kernel that labels the cells (beam and range bin) of a sonar image with what the rays hit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_emulators.sonar.ray_kernels import FAR, NO_HIT, SURFACE
from wavesim_emulators.sonar.types import Ints32
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats, Ints

#: a gap between the echoes of two neighbouring rays on one object belongs to the object if it is at most this multiple
#: of the distance between the rays; a longer gap is a shadow within the object
CONNECTED = 3.0
MAIN_LOBE = 0.01  #: minimum two-way beam pattern of the rays whose objects take precedence over the bed
#: a cell is in the shadow of an object if the energy that the object keeps from the cell is more than this multiple of
#: the energy of the remaining echo, such as the echo of the surface in a sidelobe
DARKER = 10.0
#: weight of a ray next to the object when the object's shadow is computed, relative to a ray that the object blocks
NEXT_TO = 1e-9


class LabelledRays(NamedTuple):
    """Rays of a fan.

    ``intervals`` are the intervals of bins that the rays cover
    (:class:`~wavesim_emulators.sonar.echo_kernels.EchoBins`). ``geometry`` and ``what`` contain the ranges and the
    labels of the hits. ``spacing`` is the angle between neighbouring rays, divided by the size of a bin. ``gain`` is
    the beam pattern across the beams, relative to its maximum. ``background`` contains the intervals that the rays
    would cover without any object. It has length 0 if no ray hits an object.
    """

    intervals: Floats
    geometry: Floats
    what: Ints
    spacing: Floats
    gain: Floats
    background: Floats


@device_function
def spread(begin: float, end: float, share: float, material: int, label: int, strongest: Floats) -> None:
    """Record an echo in those bins of an interval in which it is the strongest echo so far. ``share`` is its energy per
    bin.

    ``strongest`` (bins, 3) contains energy, material and label, with an energy of -1 in a bin without an echo.
    """
    bins = len(strongest)
    if not (end > 0.0 and begin < bins):
        return
    for i in range(max(int(np.floor(begin)), 0), min(int(np.floor(end)), bins - 1) + 1):
        energy = share * max(min(end, i + 1.0) - max(begin, float(i)), 0.0)
        if energy > strongest[i, 0]:
            strongest[i, 0], strongest[i, 1], strongest[i, 2] = energy, material, label


@device_function
def blocked_ray(what: Ints, j: int, k: int) -> int:
    """Return the number of a ray that hits an object: ray k or, if this ray hits none, the ray above or below it.
    Return -1 if none of the three hits an object. The neighbours are included because the echo of the bed next to an
    object ends at the hit on the object.
    """
    if what[j, k, 1] > SURFACE:
        return k
    if k > 0 and what[j, k - 1, 1] > SURFACE:
        return k - 1
    return k + 1 if k + 1 < what.shape[1] and what[j, k + 1, 1] > SURFACE else -1


@kernel
def label_cells(rays: LabelledRays, first: Ints, end: Ints, labels: Ints32) -> None:
    """Set the labels (beams, bins, 2) of the cells of each beam. A beam consists of the columns from ``first[beam]`` to
    ``end[beam]`` - 1.

    Objects take precedence: if the echo of a ray on an object covers a cell, the cell belongs to this object, even if
    the echo of the bed is stronger. Outside the main lobe, where an object is hardly visible, the strongest echo takes
    precedence instead. If several objects cover a cell, it belongs to the object with the strongest echo. A cell is in
    the shadow of an object if the object keeps most of the energy of the bed or the surface from the cell.
    """
    intervals, what, background = rays.intervals, rays.what, rays.background
    bins, count = labels.shape[1], what.shape[1]
    behind, front, shade = np.empty((bins, 3)), np.empty((bins, 3)), np.empty((bins, 3))
    for beam in range(labels.shape[0]):
        behind[:, 0] = front[:, 0] = shade[:, 0] = -1.0
        for j in range(first[beam], end[beam]):
            for k in range(count):
                material, label, r = what[j, k, 0], what[j, k, 1], rays.geometry[j, k, 0]
                a, b = intervals[j, k, 0], intervals[j, k, 1]
                table = front if label > SURFACE and rays.gain[k] >= MAIN_LOBE else behind
                if label != NO_HIT and 0.0 < r < FAR:
                    spread(a, b, intervals[j, k, 2], material, label, table)
                if label > SURFACE and k + 1 < count and what[j, k + 1, 1] == label:
                    low, high = min(b, intervals[j, k + 1, 1]), max(a, intervals[j, k + 1, 0])
                    if low < high <= low + CONNECTED * r * rays.spacing[k] + 1.0:
                        spread(low, high, 0.0, material, label, table)
                if len(background) > 0 and background[j, k, 1] > background[j, k, 0]:
                    hit = blocked_ray(what, j, k)
                    if hit >= 0:  # the shadow begins behind the object
                        share = background[j, k, 2] * (1.0 if hit == k else NEXT_TO)
                        near = max(background[j, k, 0], intervals[j, hit, 0])
                        spread(near, background[j, k, 1], share, NO_HIT, -what[j, hit, 1], shade)
        for i in range(bins):
            labels[beam, i, 0] = labels[beam, i, 1] = NO_HIT
            if shade[i, 0] > DARKER * behind[i, 0]:
                behind[i, 0] = -1.0
            for table in (front, behind, shade):
                if table[i, 0] >= 0.0:
                    labels[beam, i, 0], labels[beam, i, 1] = int(table[i, 1]), int(table[i, 2])
                    break
