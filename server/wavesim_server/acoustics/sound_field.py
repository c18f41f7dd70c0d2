"""Sound speed on a three-dimensional grid, linear in tetrahedra; compiled.

Each cell of the grid is divided into six tetrahedra (Kuhn 1960). A tetrahedron contains the points whose coordinates in
the cell, as fractions of its edges, have the same order. Neighbouring cells divide their common face along the same
diagonal, so the sound speed is continuous. In a tetrahedron, the derivative along an axis is the difference between
the two corners that differ along this axis, divided by the length of the edge.

Outside the grid, the values at its edge apply. Between two times of the grid, the sound speed is interpolated
linearly; each signal uses the time of its emission.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics.types import Vector

NORTH, EAST, DOWN = range(3)  #: names of the axes
BELOW = 1e6  #: thickness in m of the layer below the grid


class SoundField(NamedTuple):
    """The grid at one time.

    ``c`` (times, columns * levels) contains the sound speed in m/s; the levels of one column are contiguous, and the
    columns are ordered from west to east, then from south to north. ``depths`` (levels,) begins with 0. The first
    column is at (``north``, ``east``) in W in m. The field is the row ``row`` of ``c``, plus ``weight`` times the
    difference from the next row. A field without rows means that the sound speed is not given by a grid.
    """

    c: Floats
    depths: Floats
    north: float
    east: float
    step_north: float
    step_east: float
    columns_north: int
    columns_east: int
    row: int
    weight: float


class Axis(NamedTuple):
    """One of the three axes of the cell that contains a point.

    ``cell`` is the index of the cell along the axis and ``size`` its length in m, ``inverse`` is 1 / ``size``, and
    ``place`` is the position of the point in the cell, in m. ``stride`` is the distance between the two ends of an edge
    in a row of the field, or 0 outside the grid, where the values at its edge apply. ``along`` is the component of the
    ray's direction along this axis.
    """

    name: int
    cell: int
    stride: int
    size: float
    inverse: float
    place: float
    along: float


@device_function
def time_weight(times: Floats, time: float) -> tuple[int, float]:
    """Return (row, weight) of a time in s for the rows of a field. The field is constant before the first and after the
    last time.
    """
    last = times.shape[0] - 1
    if last < 1 or not time > times[0]:
        return 0, 0.0
    if time >= times[last]:
        return last, 0.0
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if times[middle] <= time:
            low = middle
        else:
            high = middle
    return low, (time - times[low]) / (times[low + 1] - times[low])


@always_inline
def value_at(field: SoundField, index: int) -> float:
    """Return the sound speed at a corner of the grid."""
    c: float = field.c[field.row, index]
    if field.weight > 0.0:
        c += field.weight * (field.c[field.row + 1, index] - c)
    return c


@device_function
def make_axis(field: SoundField, name: int, cell: int, place: float, along: float) -> Axis:
    """Return an axis of a cell. ``place`` is the position in the cell in m; a negative value means the far end of the
    cell.
    """
    if name == DOWN:
        last = field.depths.shape[0] - 1
        size = field.depths[cell + 1] - field.depths[cell] if cell < last else BELOW
        stride = 1 if cell < last else 0
    elif name == NORTH:
        size = field.step_north
        stride = field.depths.shape[0] * field.columns_east if 0 <= cell < field.columns_north - 1 else 0
    else:
        size = field.step_east
        stride = field.depths.shape[0] if 0 <= cell < field.columns_east - 1 else 0
    return Axis(name, cell, stride, size, 1.0 / size, place if place >= 0.0 else size, along)


@device_function
def axes_at(field: SoundField, point: Vector, direction: Vector) -> tuple[int, Axis, Axis, Axis]:
    """Return (index of the corner with the lowest coordinates, axes) of the cell that contains a point. The axes are in
    the order of the point's coordinates in the cell, from the largest to the smallest; this order selects the
    tetrahedron.
    """
    levels = field.depths.shape[0]
    u, v = (point.x - field.north) / field.step_north, (point.y - field.east) / field.step_east
    i, j = math.floor(u), math.floor(v)
    k = levels - 1
    while k > 0 and field.depths[k] > point.z:
        k -= 1
    first = make_axis(field, NORTH, int(i), (u - i) * field.step_north, direction.x)
    middle = make_axis(field, EAST, int(j), (v - j) * field.step_east, direction.y)
    last = make_axis(field, DOWN, k, max(point.z - field.depths[k], 0.0), direction.z)
    north = min(max(int(i), 0), field.columns_north - 1)
    east = min(max(int(j), 0), field.columns_east - 1)
    if middle.place * middle.inverse > first.place * first.inverse:
        first, middle = middle, first
    if last.place * last.inverse > middle.place * middle.inverse:
        middle, last = last, middle
    if middle.place * middle.inverse > first.place * first.inverse:
        first, middle = middle, first
    return (north * field.columns_east + east) * levels + k, first, middle, last


@device_function
def corner_speeds(
    field: SoundField, corner: int, first: Axis, middle: Axis, last: Axis
) -> tuple[float, float, float, float]:
    """Return the sound speeds at the four corners of a tetrahedron, in the order in which its sorted axes reach them."""
    second = corner + first.stride
    third = second + middle.stride
    return (
        value_at(field, corner),
        value_at(field, second),
        value_at(field, third),
        value_at(field, third + last.stride),
    )


@device_function
def speed_at(field: SoundField, point: Vector) -> float:
    """Return the sound speed at a point in m/s."""
    corner, first, middle, last = axes_at(field, point, point)
    c0, c1, c2, c3 = corner_speeds(field, corner, first, middle, last)
    return (
        c0
        + (c1 - c0) * (first.place * first.inverse)
        + (c2 - c1) * (middle.place * middle.inverse)
        + (c3 - c2) * (last.place * last.inverse)
    )


@device_function
def gradient_at(field: SoundField, point: Vector) -> Vector:
    """Return the gradient of the sound speed at a point in 1/s, in W."""
    corner, first, middle, last = axes_at(field, point, point)
    c0, c1, c2, c3 = corner_speeds(field, corner, first, middle, last)
    x = y = z = 0.0
    for axis, rise in ((first, c1 - c0), (middle, c2 - c1), (last, c3 - c2)):
        slope = rise * axis.inverse
        if axis.name == NORTH:
            x = slope
        elif axis.name == EAST:
            y = slope
        else:
            z = slope
    return Vector(x, y, z)
