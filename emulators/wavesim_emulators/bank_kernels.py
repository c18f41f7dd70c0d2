"""Kernels that instruments of all types use: random numbers, poses of sensors, and the publication of values.

Arrays have one row per instrument, or a single row if it is the same for all. Tables are flat views (rows, numbers).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_kernels import compiled_elementary
from wavesim_kernels.compiler import always_inline, kernel
from wavesim_sdk.sensors import HEAD_COLUMNS
from wavesim_sdk.shared_memory import Record
from wavesim_sdk.tables import STATE, Table

Floats = np.ndarray[Any, np.dtype[np.float64]]
Rows = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Words = np.ndarray[Any, np.dtype[np.int64]]
Keys = np.ndarray[Any, np.dtype[np.uint64]]


def first_columns(table: Table) -> dict[str, int]:
    """Return the index of the first number of each column in the flat view of a table."""
    fields = table.dtype.fields or {}
    return {name: int(field[1]) // 8 for name, field in fields.items()}


def as_numbers(rows: Record) -> Floats:
    """Return a view of rows as a matrix of numbers."""
    return rows.view(np.float64).reshape(len(rows), rows.dtype.itemsize // 8)


def as_words(rows: Record) -> Words:
    """Return a view of rows as a matrix of 8-byte words, which NumPy copies five times as fast as records."""
    return rows.view(np.int64).reshape(len(rows), rows.dtype.itemsize // 8)


_state = first_columns(STATE)
POSITION, ATTITUDE, VELOCITY = _state["p_WB_W"], _state["q_WB"], _state["v_WB_B"]
TURN_RATE, VELOCITY_THROUGH_WATER = _state["w_WB_B"], _state["v_FB_B"]

VALID, SEQUENCE = 2, 3  #: columns of every sensor's table
#: the bits of the integers 1 and 0, as numbers: values of the column `valid` in a matrix of numbers
TRUE, FALSE = float(np.int64(1).view(np.float64)), 0.0
assert HEAD_COLUMNS == SEQUENCE + 1

#: columns of a pose: position in W, depth below the water surface, velocity over ground in W, velocity through the
#: water in S, R_WB, R_WS
PLACE, DEPTH, SPEED, THROUGH, R_WB, R_WS, POSE_COLUMNS = 0, 3, 4, 7, 10, 19, 28


@always_inline
def minimum(a: float, b: float) -> float:
    """Return the smaller number, or NaN if one is NaN."""
    return a if a < b or a != a else b


@always_inline
def maximum(a: float, b: float) -> float:
    """Return the larger number, or NaN if one is NaN."""
    return a if a > b or a != a else b


@kernel
def fill_normals(keys: Keys, scale: Floats, tick: int, first: int, out: Floats) -> None:
    """Fill ``out`` (n, count) with standard normal numbers times ``scale`` (n,). The first one has the index ``first``.

    If all scales are zero, all numbers are positive zeros.
    """
    is_zero = True
    for i in range(len(scale)):
        is_zero = is_zero and scale[i] == 0.0
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = 0.0 if is_zero else scale[i] * compiled_elementary.normal(keys[i], tick, first + k)


@kernel
def fill_uniforms(keys: Keys, tick: int, first: int, out: Floats) -> None:
    """Fill ``out`` (n, count) with uniform numbers in (0, 1). The first one has the index ``first``."""
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = compiled_elementary.uniform(keys[i], tick, first + k)


@kernel
def fill_poses(
    state: Floats,
    bodies: Rows,
    levers: Floats,
    crosses: Floats,
    rotations: Floats,
    is_rotated: bool,
    level: float,
    out: Floats,
) -> None:
    """Fill the poses of sensors (n, POSE_COLUMNS) from the table `state`.

    ``levers`` are positions in B, ``crosses`` the matrices M with ``w x lever = w M``, and ``rotations`` R_BS. ``level``
    is the height in m of the water surface above the mean.
    """
    for i in range(len(bodies)):
        b, one = state[bodies[i]], out[i]
        k = i if len(levers) > 1 else 0
        m = i if len(rotations) > 1 else 0
        x, y, z = levers[k, 0], levers[k, 1], levers[k, 2]
        r = compiled_elementary.rotation_elements(b[ATTITUDE], b[ATTITUDE + 1], b[ATTITUDE + 2], b[ATTITUDE + 3])
        one[R_WB], one[R_WB + 1], one[R_WB + 2], one[R_WB + 3], one[R_WB + 4] = r[0], r[1], r[2], r[3], r[4]
        one[R_WB + 5], one[R_WB + 6], one[R_WB + 7], one[R_WB + 8] = r[5], r[6], r[7], r[8]
        for j in range(3):
            one[PLACE + j] = b[POSITION + j] + (
                one[R_WB + 3 * j] * x + one[R_WB + 3 * j + 1] * y + one[R_WB + 3 * j + 2] * z
            )
            for c in range(3):
                one[R_WS + 3 * j + c] = one[R_WB + 3 * j + c]
                if is_rotated:
                    one[R_WS + 3 * j + c] = (
                        one[R_WB + 3 * j] * rotations[m, 0, c]
                        + one[R_WB + 3 * j + 1] * rotations[m, 1, c]
                        + one[R_WB + 3 * j + 2] * rotations[m, 2, c]
                    )
        one[DEPTH] = one[PLACE + 2] + level
        u, v, w = turned_velocity(b, VELOCITY, crosses[k])
        for j in range(3):
            one[SPEED + j] = one[R_WB + 3 * j] * u + one[R_WB + 3 * j + 1] * v + one[R_WB + 3 * j + 2] * w
        u, v, w = turned_velocity(b, VELOCITY_THROUGH_WATER, crosses[k])
        if is_rotated:
            u, v, w = (
                u * rotations[m, 0, 0] + v * rotations[m, 1, 0] + w * rotations[m, 2, 0],
                u * rotations[m, 0, 1] + v * rotations[m, 1, 1] + w * rotations[m, 2, 1],
                u * rotations[m, 0, 2] + v * rotations[m, 1, 2] + w * rotations[m, 2, 2],
            )
        one[THROUGH], one[THROUGH + 1], one[THROUGH + 2] = u, v, w


@always_inline
def turned_velocity(body: Floats, column: int, cross: Floats) -> tuple[float, float, float]:
    """Return the velocity in B of a sensor, from a velocity of the body's origin and the angular velocity."""
    p, q, r = body[TURN_RATE], body[TURN_RATE + 1], body[TURN_RATE + 2]
    return (
        body[column] + (p * cross[0, 0] + q * cross[1, 0] + r * cross[2, 0]),
        body[column + 1] + (p * cross[0, 1] + q * cross[1, 1] + r * cross[2, 1]),
        body[column + 2] + (p * cross[0, 2] + q * cross[1, 2] + r * cross[2, 2]),
    )


@kernel
def publish(values: Words, places: Rows, generations: Rows, generation: int, end: int, table: Words) -> int:
    """Copy values to their rows of the table, up to the column ``end``, and increment their sequence numbers.

    Values of removed instruments are skipped: the column ``generation`` differs from ``generations``, the generations
    of the present instruments by row of the table. Return the number of published values.
    """
    count = 0
    for i in range(len(places)):
        row = places[i]
        if values[i, generation] == generations[row]:
            sequence = table[row, SEQUENCE] + 1
            for k in range(end):
                table[row, k] = values[i, k]
            table[row, SEQUENCE] = sequence
            count += 1
    return count
