"""Kernels used by instruments of all types: random numbers, poses of sensors, and the publication of values.

Arrays have one row per instrument, or a single row if all instruments share the same values. Tables are flat views (rows, numbers).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_kernels import compiled_elementary
from wavesim_kernels.compiler import always_inline, device_function, kernel
from wavesim_sdk.arrays import Floats, Ints, Keys
from wavesim_sdk.sensors import HEAD_COLUMNS
from wavesim_sdk.tables import STATE

#: a kernel followed by example arguments, whose types determine what is compiled; one entry per kernel
Kernels = tuple[tuple[Any, ...], ...]

_state = STATE.first_columns
POSITION, ATTITUDE, VELOCITY = _state["p_WB_W"], _state["q_WB"], _state["v_WB_B"]
TURN_RATE, VELOCITY_THROUGH_WATER = _state["w_WB_B"], _state["v_FB_B"]

VALID, SEQUENCE = 2, 3  #: columns of every sensor's table
#: floats whose bits equal the integers 1 and 0, for the integer column `valid` in a matrix of floats
TRUE, FALSE = float(np.int64(1).view(np.float64)), 0.0
assert HEAD_COLUMNS == SEQUENCE + 1

#: columns of a pose: position in W, depth below the water surface, velocity over ground in W, velocity through the
#: water in S, R_WB, R_WS
PLACE, DEPTH, SPEED, THROUGH, R_WB, R_WS, POSE_COLUMNS = 0, 3, 4, 7, 10, 19, 28


#: example arguments of the types that kernels receive: matrices of numbers, arrays of rays, vectors, and rows of tables
NUMBERS, RAYS, VECTOR, ROWS = np.zeros((1, 1)), np.zeros((1, 1, 1)), np.zeros(1), np.zeros(1, np.int64)
WORDS, FLAGS, KEYS = np.zeros((1, 1), np.int64), np.zeros((1, 1), bool), np.zeros(1, np.uint64)


@always_inline
def minimum(a: float, b: float) -> float:
    """Return the smaller number, or NaN if either number is NaN."""
    return a if a < b or a != a else b


@always_inline
def maximum(a: float, b: float) -> float:
    """Return the larger number, or NaN if either number is NaN."""
    return a if a > b or a != a else b


@kernel
def fill_normals(keys: Keys, scale: Floats, tick: int, first: int, out: Floats) -> None:
    """Fill ``out`` (n, count) with standard normal random numbers, multiplied by ``scale`` (n,). The index of the first
    number is ``first``.

    If all scales are zero, all numbers are +0.0.
    """
    is_zero = True
    for i in range(len(scale)):
        is_zero = is_zero and scale[i] == 0.0
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = 0.0 if is_zero else scale[i] * compiled_elementary.normal(keys[i], tick, first + k)


@kernel
def fill_uniforms(keys: Keys, tick: int, first: int, out: Floats) -> None:
    """Fill ``out`` (n, count) with uniform random numbers in (0, 1). The index of the first number is ``first``."""
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = compiled_elementary.uniform(keys[i], tick, first + k)


@device_function
def to_outer(R: Floats, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return R v. The matrix R (9,) is in row-major order. With R_WB, this function converts a vector from B to W."""
    return (
        R[0] * x + R[1] * y + R[2] * z,
        R[3] * x + R[4] * y + R[5] * z,
        R[6] * x + R[7] * y + R[8] * z,
    )


@device_function
def to_inner(R: Floats, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return R^T v, where R^T is the transpose of R. With R_WB, this function converts a vector from W to B."""
    return (
        x * R[0] + y * R[3] + z * R[6],
        x * R[1] + y * R[4] + z * R[7],
        x * R[2] + y * R[5] + z * R[8],
    )


@device_function
def turned_velocity(body: Floats, column: int, lever: Floats) -> tuple[float, float, float]:
    """Return the velocity of a sensor in B, computed from the velocity of the body's origin and the angular velocity.

    Multiplications by zero are not omitted, so zeros have the same sign as in a matrix product.
    """
    p, q, r = body[TURN_RATE], body[TURN_RATE + 1], body[TURN_RATE + 2]
    x, y, z = lever[0], lever[1], lever[2]
    return (
        body[column] + (p * 0.0 + q * z + r * -y),
        body[column + 1] + (p * -z + q * 0.0 + r * x),
        body[column + 2] + (p * y + q * -x + r * 0.0),
    )


@kernel
def fill_poses(
    state: Floats, bodies: Ints, levers: Floats, rotations: Floats, is_rotated: bool, level: float, out: Floats
) -> None:
    """Fill the poses of sensors (n, POSE_COLUMNS) from the `state` table.

    ``levers`` contains positions in B. ``rotations`` (1 or n, 9) contains R_BS in row-major order. ``level`` is the
    height in m of the water surface above the mean.
    """
    for i in range(len(bodies)):
        b, one = state[bodies[i]], out[i]
        lever, R_BS = levers[i if len(levers) > 1 else 0], rotations[i if len(rotations) > 1 else 0]
        R, turned = one[R_WB : R_WB + 9], one[R_WS : R_WS + 9]
        q = b[ATTITUDE : ATTITUDE + 4]
        R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8] = compiled_elementary.rotation_elements(
            q[0], q[1], q[2], q[3]
        )
        x, y, z = to_outer(R, lever[0], lever[1], lever[2])
        one[PLACE], one[PLACE + 1], one[PLACE + 2] = b[POSITION] + x, b[POSITION + 1] + y, b[POSITION + 2] + z
        one[DEPTH] = one[PLACE + 2] + level
        x, y, z = turned_velocity(b, VELOCITY, lever)
        one[SPEED], one[SPEED + 1], one[SPEED + 2] = to_outer(R, x, y, z)
        x, y, z = turned_velocity(b, VELOCITY_THROUGH_WATER, lever)
        if is_rotated:
            x, y, z = to_inner(R_BS, x, y, z)
            for k in range(3):
                turned[k], turned[3 + k], turned[6 + k] = to_outer(R, R_BS[k], R_BS[3 + k], R_BS[6 + k])
        else:
            for k in range(9):
                turned[k] = R[k]
        one[THROUGH], one[THROUGH + 1], one[THROUGH + 2] = x, y, z


@kernel
def publish(values: Ints, places: Ints, generations: Ints, generation: int, end: int, table: Ints) -> int:
    """Copy rows of values (their first ``end`` columns) to the table, and increment the sequence number of each row.

    ``generations`` contains the generation of the current instrument in each row. If a value has another generation in
    its column ``generation``, its instrument was removed, and the value is skipped. Return the number of copied rows.
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


#: kernels of all sensor types
KERNELS: Kernels = (
    (fill_normals, KEYS, VECTOR, 0, 0, NUMBERS),
    (fill_uniforms, KEYS, 0, 0, NUMBERS),
    (fill_poses, NUMBERS, ROWS, NUMBERS, NUMBERS, False, 0.0, NUMBERS),
    (publish, WORDS, ROWS, ROWS, 0, 0, WORDS),
)
