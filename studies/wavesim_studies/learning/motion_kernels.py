"""Motion of the copies of a user's task: the kernels read commands, compute the dynamics, and write true states.

The arrays of a task have a row for each quantity and a column for each copy. The dynamics work in blocks of four
bodies, so these kernels copy the commands into the blocks and the states out of them. ``owners`` contains the index of
the copy to which each lane belongs, or -1. A lane never affects another lane, so the motion of a copy does not depend
on its lane.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiled_elementary import uniform
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats, Ints, Keys, Mask
from wavesim_server import array_tables
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import integrators, rotation
from wavesim_server.dynamics.lanes import load, sqrt, store
from wavesim_server.dynamics.sizes import FINS, LANES, SLOTS, THRUSTERS
from wavesim_server.dynamics.types import Packed
from wavesim_server.elementary import atan2, sin_cos
from wavesim_studies.learning.kernels import FleetView, Singles, normal_pair

L = LANES
#: rows of the arrays of a task: position, Euler angles, quaternion, velocity and rates, current, external force and
#: moment in B, net weight, index of the model, step, time
POSITION, ATTITUDE, QUATERNION, VELOCITY, CURRENT, WRENCH, NET_WEIGHT, MODEL, STEP, TIME = (
    0,
    3,
    6,
    10,
    16,
    19,
    25,
    26,
    27,
    28,
)
ROWS = 29  #: number of these rows; the rows of the actuators follow, and then the rows that only the task uses
#: columns with the command law of an actuator: slot, minimum and maximum command, dead band, offset and gain of its
#: motor
SLOT, LEAST, GREATEST, DEAD_BAND, OFFSET, GAIN = range(6)
LAW = 6


class MotionState(NamedTuple):
    """Arrays and numbers of the motion. Threads share the arrays, except the scratch space."""

    fleet: FleetView
    owners: Ints  # copy of each lane
    laws: Floats  # (actuators, LAW)
    rows: Floats  # (rows, copies)
    waiting: Mask  # copies whose episode has ended
    diverged: Mask  # copies whose state diverged (NaN or infinity) in the last step
    angles: Floats  # scratch space for three angles of a block
    h: float
    substeps: int
    actual: int  # first row of the actual values of the actuators
    command: int  # first row of the commands, as fractions from -1 to 1
    effect: int  # first row of the remaining fractions of the actuators' forces


unpack_motion_state = array_tables.make_unpacker(MotionState)


@device_function
def _set_inputs(b: Floats, l: int, i: int, m: MotionState) -> None:
    """Copy the commands and the surroundings of one copy into its lane."""
    rows = m.rows
    for k in range(m.laws.shape[0]):
        slot = int(m.laws[k, SLOT])
        share = min(max(rows[m.command + k, i], -1.0), 1.0)
        value = share * m.laws[k, GREATEST] if share > 0.0 else -share * m.laws[k, LEAST]
        if abs(value) < m.laws[k, DEAD_BAND]:
            value = 0.0
        offset = math.copysign(m.laws[k, OFFSET], value) if value != 0.0 else 0.0
        b[(B.ACTUATOR_COMMAND + slot) * L + l] = m.laws[k, GAIN] * value + offset
        if slot < THRUSTERS + FINS:
            b[(B.ACTUATOR_EFFECT + slot) * L + l] = rows[m.effect + k, i]
    for k in range(3):
        b[(B.V_WF_W + k) * L + l] = rows[CURRENT + k, i]
    w, x, y, z = b[B.QW * L + l], b[B.QX * L + l], b[B.QY * L + l], b[B.QZ * L + l]
    net = rows[NET_WEIGHT, i]
    b[B.EXTERNAL_WRENCH * L + l] = rows[WRENCH, i] + net * (2.0 * (x * z - y * w))
    b[(B.EXTERNAL_WRENCH + 1) * L + l] = rows[WRENCH + 1, i] + net * (2.0 * (y * z + x * w))
    b[(B.EXTERNAL_WRENCH + 2) * L + l] = rows[WRENCH + 2, i] + net * (1.0 - 2.0 * (x * x + y * y))
    for k in range(3):
        b[(B.EXTERNAL_WRENCH + 3 + k) * L + l] = rows[WRENCH + 3 + k, i]


@device_function
def _angles(b: Floats, angles: Floats) -> None:
    """Compute the Euler angles of a block."""
    r11, _, _, r21, _, _, r31, r32, r33 = rotation.matrix(load(b, B.QW), load(b, B.QX), load(b, B.QY), load(b, B.QZ))
    store(angles, 0, atan2(r32, r33))
    store(angles, 1, atan2(-r31, sqrt(r11 * r11 + r21 * r21)))
    store(angles, 2, atan2(r21, r11))


@device_function
def _read_state(b: Floats, l: int, i: int, m: MotionState) -> None:
    """Copy the state of one lane to its copy. If the state diverged, the copy receives a level attitude at rest."""
    rows = m.rows
    total = 0.0
    for k in range(B.RIGID_ROWS):
        total += abs(b[(B.PX + k) * L + l])
    m.diverged[i] = not total < math.inf
    if m.diverged[i]:
        for row in range(VELOCITY + 6):
            rows[row, i] = 0.0
        rows[QUATERNION, i] = 1.0
        for k in range(m.laws.shape[0]):
            rows[m.actual + k, i] = 0.0
        return
    for k in range(3):
        rows[POSITION + k, i] = b[(B.PX + k) * L + l]
        rows[ATTITUDE + k, i] = m.angles[k * L + l]
    for k in range(4):
        rows[QUATERNION + k, i] = b[(B.QW + k) * L + l]
    for k in range(6):
        rows[VELOCITY + k, i] = b[(B.NU + k) * L + l]
    for k in range(m.laws.shape[0]):
        rows[m.actual + k, i] = b[(B.ACTUATOR_STATE + int(m.laws[k, SLOT])) * L + l]


@kernel(nogil=True)
def advance(table: Packed, first_block: int, end_block: int) -> None:
    """Advance the copies in the blocks from ``first_block`` to ``end_block`` - 1 by one step of the task. ``table`` is
    a packed :class:`MotionState`.
    """
    m = unpack_motion_state(table)
    f = m.fleet
    for block in range(first_block, end_block):
        if block + 1 < end_block:
            integrators.prefetch_block(f.blocks[block + 1])
        b, kind = f.blocks[block], f.heads[block, B.HEAD_MODEL]
        for l in range(L):
            i = m.owners[block * L + l]
            if i >= 0:
                _set_inputs(b, l, i, m)
        for _ in range(m.substeps):
            integrators.step_block(b, f.params[kind], f.work, f.kinds[kind], f.tables, m.h, integrators.RK4, False)
        _angles(b, m.angles)
        for l in range(L):
            i = m.owners[block * L + l]
            if i >= 0 and not m.waiting[i]:
                _read_state(b, l, i, m)


@kernel
def place(blocks: Floats, slots: Ints, laws: Floats, rows: Floats, actual: int) -> None:
    """Initialise bodies from the columns of ``rows``. Quaternions are computed from the Euler angles. ``slots``
    contains the lane of each column, as block times LANES plus lane.
    """
    for i in range(slots.shape[0]):
        b, l = blocks[slots[i] // L], slots[i] % L
        sr, cr = sin_cos(0.5 * rows[ATTITUDE, i])
        sp, cp = sin_cos(0.5 * rows[ATTITUDE + 1, i])
        sy, cy = sin_cos(0.5 * rows[ATTITUDE + 2, i])
        rows[QUATERNION, i] = cr * cp * cy + sr * sp * sy
        rows[QUATERNION + 1, i] = sr * cp * cy - cr * sp * sy
        rows[QUATERNION + 2, i] = cr * sp * cy + sr * cp * sy
        rows[QUATERNION + 3, i] = cr * cp * sy - sr * sp * cy
        for row in range(B.MEMORY_STATE, B.ACTUATOR_STATE):
            b[row * L + l] = 0.0
        for k in range(3):
            b[(B.PX + k) * L + l] = rows[POSITION + k, i]
        for k in range(4):
            b[(B.QW + k) * L + l] = rows[QUATERNION + k, i]
        for k in range(6):
            b[(B.NU + k) * L + l] = rows[VELOCITY + k, i]
        for k in range(SLOTS):
            b[(B.ACTUATOR_STATE + k) * L + l] = 0.0
        for k in range(laws.shape[0]):
            b[(B.ACTUATOR_STATE + int(laws[k, SLOT])) * L + l] = rows[actual + k, i]


@kernel
def draw(
    keys: Keys,
    counters: Ints,
    rows: Floats,
    first: int,
    uniforms: int,
    first_normal: int,
    normals: int,
    scratch: Floats,
) -> None:
    """Draw random numbers for each copy: uniform numbers in (0, 1) in the rows from ``first``, and normal numbers in
    the rows from ``first_normal``. Each hash yields two normal numbers. The number of keys is a multiple of LANES, and
    ``scratch`` has LANES elements.
    """
    for i in range(keys.shape[0]):
        for k in range(uniforms):
            rows[first + k, i] = uniform(keys[i], counters[i], k)
    for pair in range((normals + 1) // 2):
        for group in range(keys.shape[0] // L):
            for l in range(L):
                scratch[l] = uniform(keys[group * L + l], counters[group * L + l], uniforms + pair)
            one, other = normal_pair(load(scratch, 0))
            store(rows[first_normal + 2 * pair], group, one)
            if 2 * pair + 1 < normals:
                store(rows[first_normal + 2 * pair + 1], group, other)


@kernel
def show(values: Floats, bound: float, skipped: Mask, seen: Singles) -> int:
    """Write observations to ``seen`` (copies, values), limited to the range from -bound to bound. Return the index of
    the first copy with a NaN, or -1 if there is none. Skip the copies that the mask selects.
    """
    wrong = -1
    for i in range(seen.shape[0]):
        if skipped[i]:
            continue
        for k in range(seen.shape[1]):
            value = values[k, i]
            if value != value and wrong < 0:
                wrong = i
            seen[i, k] = min(max(value, -bound), bound)
    return wrong
