"""Compiled kernel that labels the cells (beam and range bin) of a sonar image with what the rays hit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_emulators.sonar.kernels import FAR, NO_HIT, SURFACE
from wavesim_emulators.sonar.types import Ints32
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats, Ints

#: a gap between the echoes of two neighbouring rays on one object belongs to the object if it is at most this multiple
#: of the distance between the rays; a longer gap is a shadow within the object
CONNECTED = 3.0


class LabelledRays(NamedTuple):
    """Rays of a fan with the intervals of bins that they cover (:class:`~wavesim_emulators.sonar.kernels.EchoBins`),
    the ranges and the labels of their hits, and the angle between neighbouring rays, divided by the size of a bin.

    ``background`` contains the intervals that the rays would cover without any object. It has length 0 if no ray hits
    an object.
    """

    intervals: Floats
    geometry: Floats
    what: Ints
    spacing: Floats
    background: Floats


@device_function
def bins_of(begin: float, end: float, bins: int) -> tuple[int, int]:
    """Return the first bin of an interval, and the bin after its last one."""
    if not (end > 0.0 and begin < bins):
        return 0, 0
    return max(int(np.floor(begin)), 0), min(int(np.floor(end)), bins - 1) + 1


@kernel
def label_cells(rays: LabelledRays, first: Ints, end: Ints, labels: Ints32) -> None:
    """Set the labels (beams, bins, 2) of the cells of each beam. A beam consists of the columns from ``first[beam]`` to
    ``end[beam]`` - 1.

    Objects take precedence: if the echo of a ray on an object covers a cell, the cell belongs to this object, even if
    the echo of the bed is stronger. If several objects cover a cell, it belongs to the strongest. A cell without an
    echo that the bed or the surface would cover, if an object did not block the ray, is the shadow of this object.
    """
    intervals, what, background = rays.intervals, rays.what, rays.background
    bins, count = labels.shape[1], what.shape[1]
    behind = np.empty((bins, 3))  # strongest echo of the bed or the surface: energy, material, object
    front = np.empty((bins, 3))  # strongest echo of an object
    shade = np.empty((bins, 2))  # strongest echo that an object blocks: energy, object
    for beam in range(labels.shape[0]):
        behind[:, 0] = front[:, 0] = shade[:, 0] = -1.0
        for j in range(first[beam], end[beam]):
            for k in range(count):
                label, r = what[j, k, 1], rays.geometry[j, k, 0]
                table = front if label > SURFACE else behind
                if label != NO_HIT and 0.0 < r < FAR:
                    a, b, share = intervals[j, k, 0], intervals[j, k, 1], intervals[j, k, 2]
                    begin, after = bins_of(a, b, bins)
                    for i in range(begin, after):
                        energy = share * max(min(b, i + 1.0) - max(a, float(i)), 0.0)
                        if energy > table[i, 0]:
                            table[i, 0], table[i, 1], table[i, 2] = energy, what[j, k, 0], label
                    if label > SURFACE and k + 1 < count and what[j, k + 1, 1] == label:
                        low = min(b, intervals[j, k + 1, 1])
                        high = max(a, intervals[j, k + 1, 0])
                        if low < high <= low + CONNECTED * r * rays.spacing[k] + 1.0:
                            begin, after = bins_of(low, high, bins)
                            for i in range(begin, after):
                                if table[i, 0] < 0.0:
                                    table[i, 0], table[i, 1], table[i, 2] = 0.0, what[j, k, 0], label
                if len(background) > 0 and background[j, k, 1] > background[j, k, 0]:
                    blocker, factor = label, 1.0
                    if blocker <= SURFACE:
                        # next to an object, the interval of a ray on the bed ends at its hit
                        factor = 1e-9
                        if k > 0:
                            blocker = what[j, k - 1, 1]
                        if blocker <= SURFACE and k + 1 < count:
                            blocker = what[j, k + 1, 1]
                    if blocker > SURFACE:
                        a, b, share = background[j, k, 0], background[j, k, 1], background[j, k, 2]
                        begin, after = bins_of(a, b, bins)
                        for i in range(begin, after):
                            energy = factor * share * max(min(b, i + 1.0) - max(a, float(i)), 0.0)
                            if energy > shade[i, 0]:
                                shade[i, 0], shade[i, 1] = energy, blocker
        for i in range(bins):
            labels[beam, i, 0] = labels[beam, i, 1] = NO_HIT
            if front[i, 0] >= 0.0:
                labels[beam, i, 0], labels[beam, i, 1] = int(front[i, 1]), int(front[i, 2])
            elif behind[i, 0] >= 0.0:
                labels[beam, i, 0], labels[beam, i, 1] = int(behind[i, 1]), int(behind[i, 2])
            elif shade[i, 0] >= 0.0:
                labels[beam, i, 1] = -int(shade[i, 1])
