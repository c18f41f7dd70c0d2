"""Drag coefficients of shapes, from tables and formulas of the literature.

The coefficients apply at Reynolds numbers below the drag crisis (about 3e5, based on the width across the flow).
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_sdk.arrays import Array

#: length along the flow divided by the width across the flow, of the sections in the table
LENGTH_RATIO = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
#: corner radius divided by half of the smaller side: 0 for a rectangle, 1 for rounded ends, a circle at ratio 1
ROUNDING = np.array([0.0, 0.1, 0.35, 0.7, 1.0])
#: 2-D drag coefficient for each ratio (rows) and rounding (columns): DNV-RP-C205 (2010), table E-1, after Delany and
#: Sorensen (NACA TN 3038, 1953). The first row is a flat plate. The values for ratios 4 and 8 follow Hoerner (1965, 3-15).
SECTION_DRAG = np.array(
    [
        [1.98, 1.98, 1.98, 1.98, 1.98],
        [2.50, 2.20, 1.90, 1.75, 1.60],
        [2.20, 1.95, 1.15, 1.00, 1.00],
        [1.60, 1.35, 0.65, 0.50, 0.40],
        [1.15, 1.00, 0.45, 0.30, 0.25],
        [0.95, 0.85, 0.35, 0.22, 0.18],
    ]
)
#: length of a member divided by its width, and its drag divided by that of the same length of an endless member:
#: DNV-RP-C205, table 6-2, below the drag crisis. The value at 1 follows from a cube (1.05) and a sphere (0.47).
SPAN_RATIO = np.array([1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 100.0])
SPAN_FACTOR = np.array([0.50, 0.58, 0.62, 0.68, 0.74, 0.82, 0.98])
FLAT_HEAD = 0.8  #: drag coefficient of a flat face at the front of a body, based on its area (Hoerner, 3-12)
LARGEST_BASE_DRAG = 0.35  #: limit of the base drag coefficient; with the flat face, it gives a disc 1.15


def section_drag(length: Array, width: Array, fullness: Array) -> Array:
    """Return the 2-D drag coefficients of sections, based on their width across the flow.

    ``length`` and ``width`` are the extents along and across the flow in m. ``fullness`` is the area of the section
    divided by the area of its box. It determines the radius of the corners.
    """
    small = np.minimum(length, width)
    ratio = np.where(width > 0.0, length / np.where(width > 0.0, width, 1.0), 0.0)
    lost = (1.0 - fullness) * length * width / (4.0 - math.pi)  # square of the corner radius
    rounding = np.clip(2.0 * np.sqrt(lost) / np.where(small > 0.0, small, 1.0), 0.0, 1.0)
    row = np.interp(ratio, LENGTH_RATIO, np.arange(len(LENGTH_RATIO)))
    column = np.interp(rounding, ROUNDING, np.arange(len(ROUNDING)))
    i = np.minimum(row.astype(int), len(LENGTH_RATIO) - 2)
    j = np.minimum(column.astype(int), len(ROUNDING) - 2)
    a, b = row - i, column - j
    upper = (1.0 - b) * SECTION_DRAG[i, j] + b * SECTION_DRAG[i, j + 1]
    lower = (1.0 - b) * SECTION_DRAG[i + 1, j] + b * SECTION_DRAG[i + 1, j + 1]
    return np.asarray((1.0 - a) * upper + a * lower)


def span_factor(ratio: float) -> float:
    """Return the drag of a member divided by that of the same length of an endless member. ``ratio`` is the length of
    the member divided by its width.
    """
    return float(np.interp(math.log(max(ratio, 1e-9)), np.log(SPAN_RATIO), SPAN_FACTOR))


def head_drag(flat: float) -> float:
    """Return the pressure drag coefficient of a front end, based on the largest section area.

    ``flat`` is the part of this area that faces forward within 20 deg. The coefficient is 0 up to a share of 0.4 (round
    and ogival heads, or corners with a radius of a fifth of the diameter), and 0.8 for a flat face (Hoerner, 3-12).
    """
    sharp = min(max((flat - 0.4) / 0.6, 0.0), 1.0)
    return FLAT_HEAD * flat * sharp * math.sqrt(sharp)


def base_drag(friction: float) -> float:
    """Return the drag coefficient of a blunt tail, based on its area (Hoerner, 3-19: 0.029 divided by the square root
    of ``friction``, the friction drag coefficient based on the same area).
    """
    return min(0.029 / math.sqrt(max(friction, 1e-9)), LARGEST_BASE_DRAG)


def ellipsoid_drag(thickness: float, friction: float) -> float:
    """Return the drag coefficient of an ellipsoid along its axis with laminar separation, based on its frontal area
    (Hoerner, 3-12). ``thickness`` is its diameter divided by its length; ``friction`` is based on the wetted area.
    """
    pressure = min(0.44 * thickness, FLAT_HEAD + LARGEST_BASE_DRAG)
    return pressure + 4.0 * friction * (1.0 / thickness + math.sqrt(thickness))
